/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.c - find the module for GPUs, and load it where there are any. */
#include "gpu/gpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"

/* A cheap look, without starting anything. */
static bool has_gpus(void)
{
    const char *named = getenv(DT_ENV_GPUS);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver)
        dlclose(driver);
    return driver || (named && *named) || access("/dev/nvidiactl", F_OK) == 0;
}

/* The folder of the library or program that this function is in, without the
 * last slash; "" if that cannot be told. */
static void own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    folder[0] = '\0';
    /* a program is known by what its caller named it */
    if (dladdr((void *)own_folder, &info) && info.dli_fname &&
        info.dli_fname[0] == '/')
        snprintf(folder, PATH_MAX, "%s", info.dli_fname);
    else if (readlink("/proc/self/exe", folder, PATH_MAX - 1) < 0)
        return;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

/* The first that is there, even if it is broken: then the error is of it. Once
 * loaded it stays, as it has nothing to undo. */
static void *find_module(void)
{
    static const char *const beside[] = {"", "/slurm-dt"};
    char folder[PATH_MAX], path[PATH_MAX + 64];
    own_folder(folder);
    for (size_t i = 0; i < 2 && *folder; i++) {
        snprintf(path, sizeof(path), "%s%s/" DT_GPU_MODULE, folder, beside[i]);
        if (access(path, F_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    return dlopen(DT_GPU_MODULE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static dt_result_t find_ops(const struct dt_gpu_ops **found,
                            struct dt_error *err)
{
    void *module = find_module();
    if (!module)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "there are GPUs, but not " DT_GPU_MODULE
                            ": %s: install slurm-dt completely",
                            dlerror());
    const struct dt_gpu_ops *ops = dlsym(module, DT_GPU_SYMBOL);
    if (!ops || ops->size != sizeof(*ops))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            DT_GPU_MODULE " is of another version of slurm-dt "
                                          "(%zu bytes of functions, %zu are "
                                          "expected): install both again",
                            ops ? ops->size : 0, sizeof(*ops));
    *found = ops;
    return DT_SUCCESS;
}

dt_result_t dt_gpu_load(struct dt_gpu **gpu, struct dt_error *err)
{
    const struct dt_gpu_ops *ops = NULL;
    if (!has_gpus()) {
        *gpu = NULL;
        return DT_SUCCESS;
    }
    dt_result_t rc = find_ops(&ops, err);
    return rc ? rc : ops->open(gpu, err);
}

void (*dt_gpu_symbol(const char *name))(void)
{
    void *module = find_module();
    void *symbol = module ? dlsym(module, name) : NULL;
    void (*function)(void);
    memcpy(&function, &symbol, sizeof(function)); /* as POSIX has it */
    return function;
}

void dt_gpu_unload(struct dt_gpu *gpu)
{
    if (gpu)
        gpu->ops->close(gpu);
}
