/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.c - where memory is, pinned host memory, and copies. */
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/cuda/cuda.h"

/* ---- where is it ---- */

struct range {
    dt_cu_ptr start;
    size_t size;
    uint64_t id;
    unsigned type, managed, plain;
    int device;
};

static int ask(struct dt_cuda *cuda, dt_cu_ptr ptr, struct range *range)
{
    int names[] = {DT_CU_MEMORY_TYPE, DT_CU_RANGE_START,    DT_CU_RANGE_SIZE,
                   DT_CU_BUFFER_ID,   DT_CU_DEVICE_ORDINAL, DT_CU_IS_MANAGED,
                   DT_CU_IS_PLAIN};
    *range = (struct range){.device = -1};
    void *values[] = {&range->type,   &range->start,   &range->size, &range->id,
                      &range->device, &range->managed, &range->plain};
    return cuda->driver.cuPointerGetAttributes(sizeof(names) / sizeof(names[0]),
                                               names, values, ptr);
}

static bool holds(const struct range *range, dt_cu_ptr ptr, size_t len)
{
    return ptr >= range->start && ptr - range->start <= range->size &&
           len <= range->size - (size_t)(ptr - range->start);
}

/* Allocators map their memory piece by piece, and each is a range of its own:
 * join those that follow. */
static int join(struct dt_cuda *cuda, struct range *range, dt_cu_ptr ptr,
                size_t len)
{
    struct range next;
    int code = 0;
    while (!range->plain && !holds(range, ptr, len)) {
        code = ask(cuda, range->start + range->size, &next);
        if (code || next.type != range->type || next.plain ||
            next.device != range->device || !next.size ||
            next.start != range->start + range->size)
            break;
        range->size += next.size;
    }
    return code;
}

dt_result_t dt_cuda_locate(struct dt_gpu *gpu, const void *ptr, size_t len,
                           struct dt_gpu_place *place, struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    dt_cu_ptr at = (dt_cu_ptr)(uintptr_t)ptr;
    struct range range;
    int code = ask(cuda, at, &range);
    if (!code && range.type == DT_CU_MEMORY_DEVICE && !range.managed)
        code = join(cuda, &range, at, len);
    /* a driver that nobody has started has no memory */
    if (code == DT_CU_NOT_INITIALIZED || code == DT_CU_INVALID_VALUE ||
        code == DT_CU_DEINITIALIZED)
        range = (struct range){.type = 0};
    else if (code)
        return dt_cuda_driver_error(&cuda->driver, code, err,
                                    "look up the address %p", ptr);
    *place = (struct dt_gpu_place){.kind = DT_GPU_HOST, .device = -1};
    if (range.managed) {
        place->kind = DT_GPU_MANAGED;
        place->device = range.device;
    } else if (range.type == DT_CU_MEMORY_HOST && holds(&range, at, len)) {
        place->kind = DT_GPU_PINNED; /* half of it would be ordinary */
    } else if (range.type == DT_CU_MEMORY_DEVICE) {
        if (!holds(&range, at, len))
            return dt_error_set(
                err, DT_ERR_INVALID_ARG,
                "%zu bytes at %p leave their GPU allocation, %zu bytes at %p",
                len, ptr, range.size, (void *)(uintptr_t)range.start);
        place->kind = DT_GPU_MEMORY;
        place->device = range.device;
        place->base = (char *)(uintptr_t)range.start;
        place->size = range.size;
        place->id = range.id;
    }
    return DT_SUCCESS;
}

/* ---- pinned host memory ---- */

/* What a thread's memory policy was, if it was changed. */
struct policy {
    bool changed;
    int mode;
    unsigned long nodes[16]; /* 1024 nodes, the kernel's limit */
};

/* The NUMA node of a device, or -1. */
static int node_of(struct dt_cuda *cuda, int device)
{
    char bus[24] = "", path[64];
    int node = -1;
    if (cuda->gpu.ops->bus(&cuda->gpu, device, bus, NULL))
        return -1;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", bus);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

/* The driver takes pages by the policy of the thread that asks. */
static void prefer_node(int node, struct policy *old)
{
    const size_t bits = 8 * sizeof(old->nodes[0]), words = 16;
    unsigned long nodes[16] = {0};
    old->changed = false;
    if (node < 0 || (size_t)node >= bits * words ||
        syscall(SYS_get_mempolicy, &old->mode, old->nodes, bits * words, NULL,
                0))
        return;
    nodes[(size_t)node / bits] = 1ul << (size_t)node % bits;
    old->changed =
        !syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, bits * words);
}

static void restore_policy(const struct policy *old)
{
    if (old->changed)
        syscall(SYS_set_mempolicy, old->mode, old->nodes,
                8 * sizeof(old->nodes));
}

dt_result_t dt_cuda_host_alloc(struct dt_gpu *gpu, int device, size_t size,
                               void **ptr, struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    struct policy policy;
    void *at = NULL;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    prefer_node(node_of(cuda, device), &policy);
    int code = cuda->driver.cuMemHostAlloc(
        &at, size, DT_CU_HOST_PORTABLE | DT_CU_HOST_MAPPED);
    restore_policy(&policy);
    dt_cuda_leave(&scope);
    if (code)
        return dt_cuda_driver_error(&cuda->driver, code, err,
                                    "pin %zu bytes of host memory", size);
    const struct dt_cuda_thing thing = {
        .kind = DT_CUDA_PINNED, .device = device, .at = at};
    rc = dt_cuda_keep(cuda, &thing, err);
    if (rc)
        return rc;
    memset(at, 0, size);
    *ptr = at;
    return DT_SUCCESS;
}

void dt_cuda_host_free(struct dt_gpu *gpu, void *ptr)
{
    int code;
    dt_cuda_drop(dt_cuda_of(gpu), DT_CUDA_PINNED, ptr, &code);
}

dt_result_t dt_cuda_host_pin(struct dt_gpu *gpu, int device, void *ptr,
                             size_t size, struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code =
        cuda->driver.cuMemHostRegister_v2(ptr, size, DT_CU_HOST_PORTABLE);
    dt_cuda_leave(&scope);
    if (code)
        return dt_cuda_driver_error(&cuda->driver, code, err,
                                    "pin %zu bytes at %p", size, ptr);
    const struct dt_cuda_thing thing = {
        .kind = DT_CUDA_REGISTERED, .device = device, .at = ptr};
    return dt_cuda_keep(cuda, &thing, err);
}

void dt_cuda_host_unpin(struct dt_gpu *gpu, void *ptr)
{
    int code;
    dt_cuda_drop(dt_cuda_of(gpu), DT_CUDA_REGISTERED, ptr, &code);
}

/* ---- copies ---- */

/* Does the driver take it as one of two dimensions? */
static bool is_2d(const struct dt_gpu_copy *copy)
{
    return copy->dst_pitch >= copy->len && copy->src_pitch >= copy->len &&
           copy->dst_pitch <= DT_CU_MAX_PITCH &&
           copy->src_pitch <= DT_CU_MAX_PITCH;
}

static int copy_2d(const struct dt_cuda_driver *driver,
                   const struct dt_gpu_copy *copy, dt_stream_t stream)
{
    const struct dt_cu_copy_2d args = {
        .src = {.type = DT_CU_MEMORY_UNIFIED,
                .device = (dt_cu_ptr)(uintptr_t)copy->src,
                .pitch = copy->src_pitch},
        .dst = {.type = DT_CU_MEMORY_UNIFIED,
                .device = (dt_cu_ptr)(uintptr_t)copy->dst,
                .pitch = copy->dst_pitch},
        .width = copy->len,
        .height = copy->rows,
    };
    return driver->cuMemcpy2DAsync_v2(&args, stream);
}

static int copy_rows(const struct dt_cuda_driver *driver,
                     const struct dt_gpu_copy *copy, size_t len, size_t rows,
                     dt_stream_t stream)
{
    dt_cu_ptr dst = (dt_cu_ptr)(uintptr_t)copy->dst;
    dt_cu_ptr src = (dt_cu_ptr)(uintptr_t)copy->src;
    int code = 0;
    for (size_t i = 0; !code && i < rows; i++)
        code = driver->cuMemcpyAsync(dst + i * copy->dst_pitch,
                                     src + i * copy->src_pitch, len, stream);
    return code;
}

dt_result_t dt_cuda_copy(struct dt_gpu *gpu, int device,
                         const struct dt_gpu_copy *copy, dt_stream_t stream,
                         struct dt_error *err)
{
    struct dt_cuda_scope scope;
    int code;
    if (!copy->len || !copy->rows)
        return DT_SUCCESS;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    if (copy->dst_pitch == copy->len && copy->src_pitch == copy->len)
        code = copy_rows(scope.driver, copy, copy->len * copy->rows, 1, stream);
    else if (copy->rows > 1 && is_2d(copy))
        code = copy_2d(scope.driver, copy, stream);
    else
        code = copy_rows(scope.driver, copy, copy->len, copy->rows, stream);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "copy %zu rows of %zu bytes from %p to %p",
                                copy->rows, copy->len, copy->src, copy->dst);
}
