/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* driver.c - find the driver's functions, and say what its codes mean. */
#include "gpu/cuda/driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(name, params) {#name, offsetof(struct dt_cuda_driver, name)},
    DT_CU_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

/* The version first: one that is too old lacks symbols, too. */
static dt_result_t check_version(const struct dt_cuda_driver *driver,
                                 struct dt_error *err)
{
    int version = 0;
    int code = driver->cuDriverGetVersion ? driver->cuDriverGetVersion(&version)
                                          : DT_CU_NOT_FOUND;
    if (code == DT_CU_STUB)
        return dt_cuda_driver_error(driver, code, err, "find the driver");
    if (code || version < DT_CU_VERSION)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "CUDA: the driver is of CUDA %d.%d, %d.%d or later "
                            "is needed: update the driver",
                            version / 1000, version % 1000 / 10,
                            DT_CU_VERSION / 1000, DT_CU_VERSION % 1000 / 10);
    return DT_SUCCESS;
}

static dt_result_t find_symbols(struct dt_cuda_driver *driver,
                                struct dt_error *err)
{
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(driver->library, symbols[i].name);
        memcpy((char *)driver + symbols[i].offset, &symbol, sizeof(symbol));
        if (!symbol && !missing)
            missing = symbols[i].name;
    }
    dt_result_t rc = check_version(driver, err);
    if (rc || !missing)
        return rc;
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "CUDA: the driver has no %s: update the driver",
                        missing);
}

dt_result_t dt_cuda_driver_open(struct dt_cuda_driver *driver,
                                struct dt_error *err)
{
    struct dt_cuda_driver found = {.library = NULL};
    /* it has threads of its own: never unmap it */
    found.library =
        dlopen(DT_CU_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!found.library)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "CUDA: no driver: %s: install NVIDIA's driver, or "
                            "set LD_LIBRARY_PATH to where it is",
                            dlerror());
    dt_result_t rc = find_symbols(&found, err);
    if (rc)
        dt_cuda_driver_close(&found);
    else
        *driver = found;
    return rc;
}

void dt_cuda_driver_close(struct dt_cuda_driver *driver)
{
    if (driver->library)
        dlclose(driver->library);
    driver->library = NULL;
}

static dt_result_t result_of(int code)
{
    switch (code) {
    case DT_CU_OK:
        return DT_SUCCESS;
    case DT_CU_INVALID_VALUE:
    case DT_CU_INVALID_DEVICE:
    case DT_CU_INVALID_CONTEXT:
    case DT_CU_INVALID_HANDLE:
        return DT_ERR_INVALID_ARG;
    case DT_CU_OUT_OF_MEMORY:
        return DT_ERR_NO_MEMORY;
    case DT_CU_STUB:
    case DT_CU_NO_DEVICE:
    case DT_CU_NO_BINARY:
    case DT_CU_NO_PEER:
    case DT_CU_UNSUPPORTED_PTX:
    case DT_CU_NOT_SUPPORTED:
    case DT_CU_CAPTURE_UNSUPPORTED:
        return DT_ERR_UNSUPPORTED;
    default:
        return DT_ERR_SYSTEM;
    }
}

static const char *advice(int code)
{
    switch (code) {
    case DT_CU_NOT_INITIALIZED:
        return ": a driver that was started before a fork does not work in the "
               "child: start it there";
    case DT_CU_DEINITIALIZED:
        return ": this process is ending";
    case DT_CU_STUB:
        return ": this is the toolkit's stub, not a driver: take its folder "
               "out of LD_LIBRARY_PATH";
    case DT_CU_NO_DEVICE:
        return ": the driver has no GPU for this process: see nvidia-smi and "
               "CUDA_VISIBLE_DEVICES";
    case DT_CU_NO_BINARY:
    case DT_CU_UNSUPPORTED_PTX:
        return ": slurm-dt was built for other GPUs or a later driver";
    default:
        return "";
    }
}

dt_result_t dt_cuda_driver_error(const struct dt_cuda_driver *driver, int code,
                                 struct dt_error *err, const char *doing, ...)
{
    dt_result_t rc = result_of(code);
    const char *name = NULL;
    char what[160];
    va_list ap;
    if (!rc)
        return rc;
    va_start(ap, doing);
    vsnprintf(what, sizeof(what), doing, ap);
    va_end(ap);
    if (!driver->cuGetErrorName || driver->cuGetErrorName(code, &name) || !name)
        name = code == DT_CU_STUB ? "CUDA_ERROR_STUB_LIBRARY" : "unknown";
    return dt_error_set(err, rc, "CUDA: cannot %s: %s (%d)%s", what, name, code,
                        advice(code));
}
