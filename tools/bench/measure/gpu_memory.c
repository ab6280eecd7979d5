/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_memory.c - the few functions of CUDA's driver that a benchmark needs. */
#include "measure/gpu_memory.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Those of NVIDIA's "CUDA Driver API"; 0 is success. */
typedef unsigned long long address;
struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*retain)(void **context, int device);
    int (*unuse)(int device);
    int (*enter)(void *context);
    int (*alloc)(address *ptr, size_t bytes);
    int (*free)(address ptr);
    int (*copy)(address dst, address src, size_t bytes, void *stream);
    int (*stream)(void **stream, unsigned flags);
    int (*finish)(void *stream);
    int (*end_stream)(void *stream);
    int (*name)(int code, const char **name);
    int (*bus)(char *bus, int len, int device);
    int (*reaches)(int *yes, int device, int peer);
    int (*show)(struct gpu_handle *handle, address ptr);
    int (*import)(address *ptr, struct gpu_handle handle, unsigned flags);
    int (*release)(address ptr);
};

struct gpu {
    struct driver driver;
    int device;
    bool retained;
    void *context, *stream;
};

#define LIBRARY      "libcuda.so.1"
#define NON_BLOCKING 1 /* CU_STREAM_NON_BLOCKING */
#define LAZY_PEER    1 /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */

dt_result_t gpu_find(struct dt_error *err)
{
    if (dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL))
        return DT_SUCCESS; /* for the life of the process */
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "--mem cuda: no driver of NVIDIA's here: %s",
                        dlerror());
}

static dt_result_t load(struct driver *driver, struct dt_error *err)
{
    const struct {
        void *at;
        const char *name;
    } wanted[] = {
        {&driver->init, "cuInit"},
        {&driver->count, "cuDeviceGetCount"},
        {&driver->retain, "cuDevicePrimaryCtxRetain"},
        {&driver->unuse, "cuDevicePrimaryCtxRelease_v2"},
        {&driver->enter, "cuCtxSetCurrent"},
        {&driver->alloc, "cuMemAlloc_v2"},
        {&driver->free, "cuMemFree_v2"},
        {&driver->copy, "cuMemcpyAsync"},
        {&driver->stream, "cuStreamCreate"},
        {&driver->finish, "cuStreamSynchronize"},
        {&driver->end_stream, "cuStreamDestroy_v2"},
        {&driver->name, "cuGetErrorName"},
        {&driver->bus, "cuDeviceGetPCIBusId"},
        {&driver->reaches, "cuDeviceCanAccessPeer"},
        {&driver->show, "cuIpcGetMemHandle"},
        {&driver->import, "cuIpcOpenMemHandle_v2"},
        {&driver->release, "cuIpcCloseMemHandle"},
    };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *symbol = library ? dlsym(library, wanted[i].name) : NULL;
        if (!symbol)
            return dt_error_set(err, DT_ERR_UNSUPPORTED,
                                "--mem cuda: " LIBRARY
                                " has no %s: a newer driver is "
                                "needed",
                                wanted[i].name);
        *(void **)wanted[i].at = symbol;
    }
    return DT_SUCCESS;
}

static dt_result_t said(const struct gpu *gpu, int code, const char *what,
                        struct dt_error *err)
{
    const char *name = NULL;
    if (!code)
        return DT_SUCCESS;
    gpu->driver.name(code, &name);
    return dt_error_set(err, code == 2 ? DT_ERR_NO_MEMORY : DT_ERR_SYSTEM,
                        "GPU %d: %s: %s (%d)", gpu->device, what,
                        name ? name : "unknown error", code);
}

dt_result_t gpu_open(struct gpu **out, const struct job *job,
                     struct dt_error *err)
{
    struct gpu *gpu = calloc(1, sizeof(*gpu));
    int count = 0;
    if (!gpu)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a GPU");
    dt_result_t rc = load(&gpu->driver, err);
    if (rc == DT_SUCCESS)
        rc = said(gpu, gpu->driver.init(0), "the driver does not start", err);
    if (rc == DT_SUCCESS)
        rc = said(gpu, gpu->driver.count(&count), "how many are there", err);
    if (rc == DT_SUCCESS && count < 1)
        rc = dt_error_set(err, DT_ERR_UNSUPPORTED,
                          "--mem cuda: rank %d sees no GPU on %s", job->rank,
                          job_node_name(job, job->node));
    if (rc != DT_SUCCESS) {
        free(gpu);
        return rc;
    }
    gpu->device = job->local_rank % count;
    rc = said(gpu, gpu->driver.retain(&gpu->context, gpu->device),
              "cannot be used", err);
    gpu->retained = rc == DT_SUCCESS;
    if (rc == DT_SUCCESS)
        rc = said(gpu, gpu->driver.enter(gpu->context), "no context", err);
    if (rc == DT_SUCCESS)
        rc = said(gpu, gpu->driver.stream(&gpu->stream, NON_BLOCKING),
                  "no stream", err);
    if (rc == DT_SUCCESS)
        *out = gpu;
    else
        gpu_close(gpu);
    return rc;
}

void gpu_close(struct gpu *gpu)
{
    if (!gpu)
        return;
    if (gpu->stream)
        gpu->driver.end_stream(gpu->stream);
    if (gpu->retained)
        gpu->driver.unuse(gpu->device);
    free(gpu);
}

dt_result_t gpu_alloc(struct gpu *gpu, size_t bytes, char **ptr,
                      struct dt_error *err)
{
    address memory = 0;
    char text[32];
    int code = gpu->driver.alloc(&memory, bytes);
    if (code == 2) /* CUDA_ERROR_OUT_OF_MEMORY */
        return dt_error_set(
            err, DT_ERR_NO_MEMORY,
            "GPU %d has no memory for a buffer of %s: give a smaller "
            "-e",
            gpu->device, size_text(text, bytes));
    dt_result_t rc = said(gpu, code, "no memory", err);
    if (rc == DT_SUCCESS)
        *ptr = (char *)(uintptr_t)memory;
    return rc;
}

void gpu_free(struct gpu *gpu, char *ptr)
{
    if (ptr)
        gpu->driver.free((uintptr_t)ptr);
}

dt_result_t gpu_copy(struct gpu *gpu, void *dst, const void *src, size_t bytes,
                     struct dt_error *err)
{
    int code =
        gpu->driver.copy((uintptr_t)dst, (uintptr_t)src, bytes, gpu->stream);
    dt_result_t rc = said(gpu, code, "a copy failed", err);
    return rc == DT_SUCCESS ? gpu_finish(gpu, err) : rc;
}

dt_stream_t gpu_stream(const struct gpu *gpu)
{
    return gpu->stream;
}

dt_result_t gpu_finish(struct gpu *gpu, struct dt_error *err)
{
    return said(gpu, gpu->driver.finish(gpu->stream), "the stream failed", err);
}

/* ---- between processes ---- */

dt_result_t gpu_bus(const struct gpu *gpu, char bus[24], struct dt_error *err)
{
    memset(bus, 0, 24);
    return said(gpu, gpu->driver.bus(bus, 23, gpu->device), "no bus id", err);
}

dt_result_t gpu_show(const struct gpu *gpu, char *ptr,
                     struct gpu_handle *handle, struct dt_error *err)
{
    return said(gpu, gpu->driver.show(handle, (uintptr_t)ptr),
                "its memory cannot be shown to other processes "
                "(cuIpcGetMemHandle)",
                err);
}

/* The number that this process has for a GPU; -1: it does not see it. */
static int number_of(const struct gpu *gpu, const char *bus)
{
    int count = 0;
    char name[24];
    if (gpu->driver.count(&count))
        return -1;
    for (int i = 0; i < count; i++) {
        memset(name, 0, sizeof(name));
        if (!gpu->driver.bus(name, sizeof(name) - 1, i) && !strcmp(name, bus))
            return i;
    }
    return -1;
}

dt_result_t gpu_reaches(const struct gpu *gpu, const char *bus,
                        struct dt_error *err)
{
    int peer = number_of(gpu, bus), yes = 1;
    if (peer < 0)
        return dt_error_set(
            err, DT_ERR_UNSUPPORTED,
            "it does not see that GPU: let every task see all GPUs of "
            "the node (srun --gpus-per-node and --dt-gpus, not "
            "--gpus-per-task)");
    if (peer == gpu->device)
        return DT_SUCCESS;
    dt_result_t rc = said(gpu, gpu->driver.reaches(&yes, gpu->device, peer),
                          "cuDeviceCanAccessPeer", err);
    if (rc == DT_SUCCESS && !yes)
        rc = dt_error_set(
            err, DT_ERR_UNSUPPORTED,
            "no peer-to-peer between them (nvidia-smi topo -p2p r)");
    return rc;
}

dt_result_t gpu_import(const struct gpu *gpu, const struct gpu_handle *handle,
                       char **ptr, struct dt_error *err)
{
    address memory = 0;
    dt_result_t rc =
        said(gpu, gpu->driver.import(&memory, *handle, LAZY_PEER),
             "memory of another process cannot be mapped "
             "(cuIpcOpenMemHandle): containers, MIG or cgroups may be in the "
             "way",
             err);
    if (rc == DT_SUCCESS)
        *ptr = (char *)(uintptr_t)memory;
    return rc;
}

void gpu_release(const struct gpu *gpu, char *ptr)
{
    if (ptr)
        gpu->driver.release((uintptr_t)ptr);
}
