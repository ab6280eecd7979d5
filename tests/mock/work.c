/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* work.c - what the mock driver's streams do: copies, values, kernels. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cuda/args.h"
#include "streams.h"

/* ---- copies ---- */

static void run_copy(struct mock_op *op)
{
    const char *src = op->src ? op->src : op->bytes;
    for (size_t i = 0; i < op->rows; i++)
        memmove(op->dst + i * op->dst_pitch, src + i * op->src_pitch,
                op->width);
}

/* From ordinary memory: read it now, its owner may go on. */
static void stage(struct mock_op *op)
{
    op->nbytes = op->width * op->rows;
    op->bytes = malloc(op->nbytes);
    if (!op->bytes)
        abort();
    for (size_t i = 0; i < op->rows; i++)
        memcpy((char *)op->bytes + i * op->width, op->src + i * op->src_pitch,
               op->width);
    op->src = NULL;
    op->src_pitch = op->width;
}

static bool is_known(const void *at, size_t pitch, size_t rows, size_t width)
{
    return mock_knows((dt_cu_ptr)(uintptr_t)at, (rows - 1) * pitch + width);
}

static bool is_begun(const void *at)
{
    return mock_knows((dt_cu_ptr)(uintptr_t)at, 1);
}

static int copy(struct mock_op *op, dt_stream_t stream)
{
    bool dst = is_known(op->dst, op->dst_pitch, op->rows, op->width);
    bool src = is_known(op->src, op->src_pitch, op->rows, op->width);
    /* over the end of an allocation */
    if ((!dst && is_begun(op->dst)) || (!src && is_begun(op->src))) {
        free(op);
        return DT_CU_INVALID_VALUE;
    }
    if (src)
        op->src = mock_reach(op->src);
    else
        stage(op);
    op->dst = mock_reach(op->dst);
    int code = mock_put(stream, op, false);
    return code || dst ? code : mock_finish(stream);
}

int cuMemcpyAsync(dt_cu_ptr dst, dt_cu_ptr src, size_t size, dt_stream_t stream)
{
    BEGIN_QUEUED(cuMemcpyAsync);
    if (!size)
        return DT_CU_OK;
    if (!dst || !src)
        return DT_CU_INVALID_VALUE;
    struct mock_op *op = mock_op(run_copy, CALL_cuMemcpyAsync);
    op->dst = (char *)(uintptr_t)dst;
    op->src = (const char *)(uintptr_t)src;
    op->width = op->dst_pitch = op->src_pitch = size;
    op->rows = 1;
    return copy(op, stream);
}

int cuMemcpy2DAsync_v2(const struct dt_cu_copy_2d *args, dt_stream_t stream)
{
    BEGIN_QUEUED(cuMemcpy2DAsync_v2);
    const struct dt_cu_side *src = &args->src, *dst = &args->dst;
    if (!args->width || !args->height)
        return DT_CU_OK;
    if (src->type != DT_CU_MEMORY_UNIFIED ||
        dst->type != DT_CU_MEMORY_UNIFIED || !src->device || !dst->device ||
        src->pitch < args->width || dst->pitch < args->width ||
        src->pitch > DT_CU_MAX_PITCH || dst->pitch > DT_CU_MAX_PITCH ||
        src->x || src->y || dst->x || dst->y)
        return DT_CU_INVALID_VALUE;
    struct mock_op *op = mock_op(run_copy, CALL_cuMemcpy2DAsync_v2);
    op->dst = (char *)(uintptr_t)dst->device;
    op->src = (const char *)(uintptr_t)src->device;
    op->width = args->width;
    op->rows = args->height;
    op->dst_pitch = dst->pitch;
    op->src_pitch = src->pitch;
    return copy(op, stream);
}

static void run_set(struct mock_op *op)
{
    memset(op->dst, (int)op->value, op->width);
}

int cuMemsetD8Async(dt_cu_ptr ptr, unsigned char value, size_t size,
                    dt_stream_t stream)
{
    BEGIN_QUEUED(cuMemsetD8Async);
    if (!mock_knows(ptr, size))
        return DT_CU_INVALID_VALUE;
    struct mock_op *op = mock_op(run_set, CALL_cuMemsetD8Async);
    op->dst = mock_reach((void *)(uintptr_t)ptr);
    op->value = value;
    op->width = size;
    return mock_put(stream, op, false);
}

/* ---- values ---- */

static void run_write(struct mock_op *op)
{
    __atomic_store_n(op->flag, op->value, __ATOMIC_SEQ_CST);
}

static void run_wait(struct mock_op *op)
{
    while ((int32_t)(__atomic_load_n(op->flag, __ATOMIC_SEQ_CST) - op->value) <
           0)
        usleep(20);
}

static int put_value(dt_stream_t stream, dt_cu_ptr ptr, uint32_t value,
                     void (*run)(struct mock_op *op), enum mock_call call)
{
    if (ptr % sizeof(uint32_t) || !mock_knows(ptr, sizeof(uint32_t)))
        return DT_CU_INVALID_VALUE;
    struct mock_op *op = mock_op(run, call);
    op->flag = (uint32_t *)(uintptr_t)ptr;
    op->value = value;
    return mock_put(stream, op, true);
}

int cuStreamWriteValue32_v2(dt_stream_t stream, dt_cu_ptr ptr, uint32_t value,
                            unsigned flags)
{
    BEGIN_QUEUED(cuStreamWriteValue32_v2);
    if (flags)
        return DT_CU_NOT_SUPPORTED;
    return put_value(stream, ptr, value, run_write,
                     CALL_cuStreamWriteValue32_v2);
}

int cuStreamWaitValue32_v2(dt_stream_t stream, dt_cu_ptr ptr, uint32_t value,
                           unsigned flags)
{
    BEGIN_QUEUED(cuStreamWaitValue32_v2);
    if (flags != DT_CU_WAIT_GEQ)
        return DT_CU_NOT_SUPPORTED;
    return put_value(stream, ptr, value, run_wait, CALL_cuStreamWaitValue32_v2);
}

/* ---- functions of the host ---- */

static void run_fn(struct mock_op *op)
{
    op->fn(op->arg);
}

int cuLaunchHostFunc(dt_stream_t stream, void (*fn)(void *arg), void *arg)
{
    BEGIN_QUEUED(cuLaunchHostFunc);
    struct mock_op *op = mock_op(run_fn, CALL_cuLaunchHostFunc);
    op->fn = fn;
    op->arg = arg;
    return mock_put(stream, op, false);
}

/* ---- kernels ---- */

static void run_kernel(struct mock_op *op)
{
    for (unsigned i = 0; i < op->grid; i++)
        op->kernel->run(op->bytes, i, op->grid, op->threads);
}

/* Where extra says the parameters are; NULL: it does not. */
static const void *parameters(void **extra, size_t *size)
{
    if (!extra || extra[0] != DT_CU_PARAM_POINTER ||
        extra[2] != DT_CU_PARAM_SIZE || extra[4] != DT_CU_PARAM_END)
        return NULL;
    *size = *(const size_t *)extra[3];
    return extra[1];
}

static atomic_int launches[DT_KERNELS];

static atomic_int *launches_of(const char *name)
{
    for (int i = 0; i < DT_KERNELS; i++)
        if (!strcmp(dt_kernel_name((enum dt_kernel)i), name))
            return &launches[i];
    return NULL;
}

int dt_mock_launches(const char *kernel)
{
    const atomic_int *n = launches_of(kernel);
    return n ? *n : -1;
}

int cuLaunchKernel(struct dt_cu_function *function, unsigned grid_x,
                   unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared,
                   dt_stream_t stream, void **params, void **extra)
{
    BEGIN_QUEUED(cuLaunchKernel);
    const struct dt_mock_kernel *kernel =
        (const struct dt_mock_kernel *)function;
    size_t size = 0;
    const void *args = parameters(extra, &size);
    (void)shared;
    if (!kernel || !args || params || size != kernel->size || !grid_x ||
        !block_x || block_x > 1024 || grid_y != 1 || grid_z != 1 ||
        block_y != 1 || block_z != 1)
        return DT_CU_INVALID_VALUE;
    struct mock_op *op = mock_op(run_kernel, CALL_cuLaunchKernel);
    op->kernel = kernel;
    op->grid = grid_x;
    op->threads = block_x;
    op->nbytes = size;
    op->bytes = malloc(size);
    if (!op->bytes)
        abort();
    memcpy(op->bytes, args, size);
    ++*launches_of(kernel->name);
    return mock_put(stream, op, true);
}
