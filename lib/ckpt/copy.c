/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* copy.c - copies between this process's buffers and the program's memory. */
#include "ckpt/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ckpt/format/format.h"
#include "exec/exec.h"
#include "gpu/gpu.h"

#define DEVICES 64
#define NON_TEMPORAL                                                           \
    ((size_t)1 << 20) /* bytes from which on a copy bypasses caches */

struct dt_copy {
    struct dt_gpu *gpu;    /* NULL: none here, or ... */
    struct dt_error why;   /* ... none that can be used */
    bool settled[DEVICES]; /* waited for since start */
    bool pending[DEVICES]; /* copies are on the default stream of it */
};

dt_result_t dt_copy_open(struct dt_copy **copy, struct dt_error *err)
{
    struct dt_copy *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_no_memory(err);
    /* where no GPU can be used no tensor should be on one: GPUs are granted on
     * nodes without a driver, too */
    if (dt_gpu_load(&new->gpu, &new->why) != DT_SUCCESS)
        new->gpu = NULL;
    *copy = new;
    return DT_SUCCESS;
}

void dt_copy_close(struct dt_copy *copy)
{
    if (!copy)
        return;
    dt_gpu_unload(copy->gpu);
    free(copy);
}

void dt_copy_start(struct dt_copy *copy)
{
    memset(copy->settled, 0, sizeof(copy->settled));
}

/* ---- which memory ---- */

static bool is_readable(const char *at)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)at, 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ||
           errno != EFAULT; /* not permitted: assume so */
}

/* Memory that no driver knows may be a GPU's that was freed, or that of a GPU
 * whose driver is missing. To touch it would be a segmentation fault. */
static dt_result_t check_host(const struct dt_copy *copy, const char *data,
                              size_t len, struct dt_error *err)
{
    if ((!copy->gpu && !*copy->why.text) ||
        (is_readable(data) && is_readable(data + len - 1)))
        return DT_SUCCESS;
    if (copy->gpu)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu bytes at %p are memory neither of the host "
                            "nor of a GPU; was it freed?",
                            len, (const void *)data);
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "%zu bytes at %p are not memory of the host, and no "
                        "GPU can be used: %s",
                        len, (const void *)data, copy->why.text);
}

static dt_result_t settle(struct dt_copy *copy, int device,
                          struct dt_error *err)
{
    if (device >= DEVICES)
        return dt_error_set(err, DT_ERR_UNSUPPORTED, "GPU %d is one too many",
                            device);
    if (copy->settled[device])
        return DT_SUCCESS;
    dt_result_t rc = copy->gpu->ops->settle(copy->gpu, device, err);
    copy->settled[device] = rc == DT_SUCCESS;
    return rc;
}

/* The device whose memory this is, or -1: the host's. Managed memory is a
 * GPU's here: the host would make it move, and its GPU fetch it back. */
static dt_result_t device_of(struct dt_copy *copy, const void *data, size_t len,
                             int *device, struct dt_error *err)
{
    struct dt_gpu_place place = {.kind = DT_GPU_HOST};
    *device = -1;
    if (copy->gpu) {
        dt_result_t rc =
            copy->gpu->ops->locate(copy->gpu, data, len, &place, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    if (place.kind == DT_GPU_HOST)
        return check_host(copy, data, len, err);
    if (place.kind == DT_GPU_PINNED || place.device < 0)
        return DT_SUCCESS;
    *device = place.device;
    return settle(copy, place.device, err);
}

bool dt_copy_is_host(struct dt_copy *copy, const void *data, size_t len)
{
    int device = -1;
    return len == 0 ||
           (device_of(copy, data, len, &device, NULL) == DT_SUCCESS &&
            device < 0);
}

/* ---- copies ---- */

/* Long copies use non-temporal stores, as a reduction of one input does: a
 * plain store would first read what it overwrites. */
static void copy_here(char *to, const char *from, size_t len)
{
    const size_t elem = sizeof(int64_t);
    size_t many =
        len >= NON_TEMPORAL && (uintptr_t)to % elem == 0 ? len / elem : 0;
    const struct dt_exec_out out = {
        .at = (void *[]){to}, .n = 1, .stream = true};
    if (many > 0)
        dt_exec_reduce_to(&out, (const void *[]){from}, 1, many, DT_DTYPE_I64,
                          DT_OP_SUM, 1);
    memcpy(to + many * elem, from + many * elem, len - many * elem);
}

dt_result_t dt_copy_begin(struct dt_copy *copy, void *to, const void *from,
                          size_t len, struct dt_error *err)
{
    int source, target;
    if (len == 0)
        return DT_SUCCESS;
    dt_result_t rc = device_of(copy, from, len, &source, err);
    if (rc == DT_SUCCESS)
        rc = device_of(copy, to, len, &target, err);
    if (rc != DT_SUCCESS)
        return rc;
    int device = source >= 0 ? source : target;
    if (device < 0) {
        copy_here(to, from, len);
        return DT_SUCCESS;
    }
    const struct dt_gpu_copy plain = {
        .dst = to, .src = from, .len = len, .rows = 1};
    rc = copy->gpu->ops->copy(copy->gpu, device, &plain, DT_STREAM_NONE, err);
    copy->pending[device] |= rc == DT_SUCCESS;
    return rc;
}

dt_result_t dt_copy_finish(struct dt_copy *copy, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (int d = 0; d < DEVICES; d++) {
        if (!copy->pending[d])
            continue;
        copy->pending[d] = false;
        dt_result_t end = copy->gpu->ops->finish(copy->gpu, d, DT_STREAM_NONE,
                                                 rc == DT_SUCCESS ? err : NULL);
        rc = rc == DT_SUCCESS ? end : rc;
    }
    return rc;
}

/* ---- pinned memory ---- */

/* The first one that was looked at, or DEVICES. */
static int first_of(const struct dt_copy *copy)
{
    int d = 0;
    while (d < DEVICES && !copy->settled[d])
        d++;
    return d;
}

bool dt_copy_has_gpus(const struct dt_copy *copy)
{
    return first_of(copy) < DEVICES;
}

dt_result_t dt_copy_pin(struct dt_copy *copy, void *memory, size_t len,
                        struct dt_error *err)
{
    return copy->gpu->ops->host_pin(copy->gpu, first_of(copy), memory, len,
                                    err);
}

void dt_copy_unpin(struct dt_copy *copy, void *memory)
{
    copy->gpu->ops->host_unpin(copy->gpu, memory);
}
