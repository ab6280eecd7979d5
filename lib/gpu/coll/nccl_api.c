/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_api.c - find NCCL's functions, and say what its codes mean. */
#include "gpu/coll/nccl_api.h"

#include <dlfcn.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(type, name, params) {#name, offsetof(struct dt_nccl_api, name)},
    DT_NCCL_FUNCTIONS(SYMBOL)
#undef SYMBOL
};
#define NSYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

/* 2.9 and later have two digits for the minor number. */
static dt_result_t check_version(struct dt_nccl_api *api, struct dt_error *err)
{
    int version = 0;
    if (!api->ncclGetVersion || api->ncclGetVersion(&version) != DT_NCCL_OK)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "NCCL: " DT_NCCL_LIBRARY " does not tell its "
                            "version: install NCCL 2.14 or later");
    if (version < DT_NCCL_VERSION)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "NCCL: " DT_NCCL_LIBRARY " has version code %d, "
                            "2.14 or later is needed (%d): install it, or set "
                            "LD_LIBRARY_PATH to where it is",
                            version, DT_NCCL_VERSION);
    api->version = version;
    return DT_SUCCESS;
}

dt_result_t dt_nccl_find(struct dt_nccl_api *api, struct dt_error *err)
{
    const char *missing = NULL;
    /* it has threads of its own: never unmap it */
    void *library =
        dlopen(DT_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "NCCL: it is not here: %s: install it, or set "
                            "LD_LIBRARY_PATH to where it is",
                            dlerror());
    for (size_t i = 0; i < NSYMBOLS; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        memcpy((char *)api + symbols[i].offset, &symbol, sizeof(symbol));
        if (!symbol && !missing)
            missing = symbols[i].name;
    }
    dt_result_t rc = check_version(api, err);
    if (rc == DT_SUCCESS && missing)
        rc = dt_error_set(err, DT_ERR_UNSUPPORTED,
                          "NCCL: " DT_NCCL_LIBRARY " has no %s: install NCCL "
                          "2.14 or later",
                          missing);
    dlclose(library);
    return rc;
}

dt_result_t dt_nccl_error(const struct dt_nccl_api *api,
                          struct dt_nccl_comm *comm, int code,
                          const char *doing, struct dt_error *err)
{
    if (code == DT_NCCL_OK)
        return DT_SUCCESS;
    const char *name = api->ncclGetErrorString(code);
    const char *words = comm ? api->ncclGetLastError(comm) : NULL;
    /* of some lines the first says most */
    int length = words ? (int)strcspn(words, "\n") : 0;
    return dt_error_set(
        err, code == DT_NCCL_REMOTE ? DT_ERR_PROC_FAILED : DT_ERR_SYSTEM,
        "NCCL: cannot %s: %s (%d)%s%.*s: NCCL_DEBUG=WARN tells more", doing,
        name ? name : "unknown", code, length ? ": " : "",
        length < 160 ? length : 160, length ? words : "");
}
