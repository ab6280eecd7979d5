/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* launch.c - grids and arguments of the kernels. */
#include "gpu/cuda/cuda.h"

#include "exec/exec.h"

_Static_assert(DT_CUDA_PEERS == DT_GPU_PEERS &&
                   DT_CUDA_BLOCKS == DT_GPU_BLOCKS &&
                   DT_CUDA_FLAGS == DT_GPU_FLAGS &&
                   DT_CUDA_MAIL == DT_GPU_MAIL &&
                   DT_CUDA_LETTER * DT_CUDA_POSTERS == DT_GPU_POST_MAX,
               "the kernels' sizes are those of gpu.h");
_Static_assert(DT_CUDA_POSTERS * 2 * DT_CUDA_PEERS * DT_CUDA_LETTER * 2 ==
                   DT_CUDA_MAIL,
               "mail is two letters from each rank to each block, which are "
               "half numbers");
_Static_assert(DT_KERNEL_dt_reduce_f8e5m2 - DT_KERNEL_dt_reduce_i8 ==
                       DT_DTYPE_F8E5M2 - DT_DTYPE_I8 &&
                   DT_KERNEL_dt_scale_f8e5m2 - DT_KERNEL_dt_scale_f16 ==
                       DT_DTYPE_F8E5M2 - DT_DTYPE_F16,
               "the kernels are in the order of the types");

_Static_assert(sizeof(struct dt_convert_args) <= 4096,
               "CUDA takes 4 KiB of arguments for a kernel");

enum {
    THREADS = 256,    /* of a block that works for itself */
    BLOCKS = 1024,    /* about as many as a GPU runs at once */
    WORK = 16,        /* vectors of a thread, where there are enough */
    PER_THREAD = 8,   /* elements that a thread converts, where they are few */
    SHARED = 8 << 10, /* bytes of a block that others wait for */
};

/* A pointer to elements that kernels may use. */
static bool fits(const void *ptr, dt_dtype_t dtype)
{
    return ptr && (uintptr_t)ptr % dt_dtype_size(dtype) == 0;
}

static size_t ceiling(size_t count, size_t by)
{
    return count / by + (count % by != 0);
}

static size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

static dt_result_t not_fit(struct dt_error *err, const char *what,
                           dt_dtype_t dtype)
{
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s of the GPU's kernels must be aligned to its "
                        "elements of %zu bytes, and not NULL",
                        what, dt_dtype_size(dtype));
}

static dt_result_t no_such(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "there is no GPU kernel for this type or operation: "
                        "only floating-point types are scaled");
}

/* ---- scale ---- */

dt_result_t dt_cuda_scale(struct dt_gpu *gpu, int device, void *dst,
                          const void *src, size_t count, dt_dtype_t dtype,
                          double factor, dt_stream_t stream,
                          struct dt_error *err)
{
    const struct dt_scale_args args = {
        .dst = dst, .src = src, .count = count, .factor = factor};
    if (!dt_exec_is_float(dtype))
        return no_such(err);
    if (!count)
        return DT_SUCCESS;
    if (!fits(dst, dtype) || !fits(src, dtype))
        return not_fit(err, "a buffer", dtype);
    size_t vectors = ceiling(count * dt_dtype_size(dtype), 16);
    size_t blocks = at_most(ceiling(vectors, THREADS), BLOCKS);
    size_t many = ceiling(vectors, (size_t)THREADS * WORK);
    if (blocks < many)
        blocks = at_most(many, (size_t)1 << 30);
    return dt_cuda_launch(gpu, device,
                          (enum dt_kernel)(DT_KERNEL_dt_scale_f16 + (int)dtype -
                                           (int)DT_DTYPE_F16),
                          (unsigned)blocks, THREADS, &args, sizeof(args),
                          stream, err);
}

/* ---- convert ---- */

static bool is_cast(const struct dt_gpu_part *part)
{
#define CAST(FROM, TO)                                                         \
    if (part->from == DT_DTYPE_##FROM && part->to == DT_DTYPE_##TO)            \
        return true;
    DT_CUDA_CASTS(CAST)
#undef CAST
    return false;
}

static dt_result_t check_part(const struct dt_gpu_part *part,
                              struct dt_error *err)
{
    if (!is_cast(part))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "there is no GPU kernel that converts elements of "
                            "%zu bytes to %zu",
                            dt_dtype_size(part->from), dt_dtype_size(part->to));
    if (part->count && !fits(part->dst, part->to))
        return not_fit(err, "a buffer", part->to);
    if (part->count && part->src && !fits(part->src, part->from))
        return not_fit(err, "a buffer", part->from);
    return DT_SUCCESS;
}

static unsigned blocks_of(const struct dt_gpu_part *part)
{
    size_t blocks = ceiling(part->count, (size_t)THREADS * PER_THREAD);
    return (unsigned)at_most(blocks, BLOCKS);
}

dt_result_t dt_cuda_convert(struct dt_gpu *gpu, int device,
                            const struct dt_gpu_part *parts, size_t n,
                            dt_stream_t stream, struct dt_error *err)
{
    struct dt_convert_args args = {.parts = 0};
    unsigned blocks = 0;
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; rc == DT_SUCCESS && i < n; i++) {
        const struct dt_gpu_part *part = &parts[i];
        rc = check_part(part, err);
        if (rc == DT_SUCCESS && part->count) {
            args.part[args.parts++] = (struct dt_convert_part){
                .dst = part->dst,
                .src = part->src,
                .count = part->count,
                .before = part->before,
                .after = part->after,
                .first = blocks,
                .divisor = part->divisor,
                .from = (int32_t)part->from,
                .to = (int32_t)part->to,
            };
            blocks += blocks_of(part);
        }
        if (rc != DT_SUCCESS || !args.parts ||
            (args.parts < DT_CUDA_PARTS && i + 1 < n))
            continue;
        rc = dt_cuda_launch(gpu, device, DT_KERNEL_dt_convert, blocks, THREADS,
                            &args, sizeof(args), stream, err);
        args.parts = blocks = 0;
    }
    return rc;
}

/* ---- exchange ---- */

static dt_result_t check(const struct dt_gpu_exchange *x, struct dt_error *err)
{
    const bool reduces = x->way != DT_GPU_PLACE;
    if (!dt_dtype_size(x->dtype) ||
        (reduces && !dt_exec_supports(x->dtype, x->op)))
        return no_such(err);
    if (x->size < 1 || x->size > DT_GPU_PEERS || x->rank >= x->size ||
        x->from >> x->size)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %zu of %zu, that reads ranks 0x%x: an "
                            "exchange is among 1 to %d",
                            x->rank, x->size, (unsigned)x->from, DT_GPU_PEERS);
    for (size_t i = 0; i < x->size; i++)
        if (!x->board[i])
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "an exchange needs the board of rank %zu", i);
    if (x->slot < DT_GPU_SLOT_MIN || x->slot % 16)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a slot of %zu bytes, wanted a multiple of 16 that "
                            "is at least %zu",
                            x->slot, DT_GPU_SLOT_MIN);
    if ((x->send_rows != 1 && x->send_rows != x->size) ||
        (x->send_rows != 1 && x->way == DT_GPU_SPREAD))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu rows to send, wanted one, or, but for SPREAD, "
                            "one for each of %zu ranks",
                            x->send_rows, x->size);
    if (x->post && (x->way == DT_GPU_SPREAD ||
                    x->count > DT_GPU_POST_MAX / dt_dtype_size(x->dtype)))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu elements cannot be posted, wanted at most %zu "
                            "bytes, and not of SPREAD",
                            x->count, DT_GPU_POST_MAX);
    if (x->count > SIZE_MAX / 8 / DT_GPU_PEERS / DT_GPU_BLOCKS)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "an exchange of %zu elements is too large",
                            x->count);
    if (!x->abort || !x->done)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "an exchange needs its abort and its done word");
    if (x->count && x->from >> x->rank & 1 && !x->send)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %zu is to show something, but has no buffer "
                            "to send",
                            x->rank);
    if (x->way == DT_GPU_REDUCE && x->recv && !fits(x->recv, x->dtype))
        return not_fit(err, "the result", x->dtype);
    return DT_SUCCESS;
}

/* How the regions of a slot are used; elem: bytes of what is counted. */
static void cut_slot(struct dt_exchange_args *args, size_t elem)
{
    args->region = args->slot / DT_GPU_BLOCKS / 16 * 16;
    args->room = args->region / args->rows / 16 * 16;
    if (args->spread) {
        /* as many vectors as leave room for a part of them behind */
        size_t all = args->region / 16, n = all * args->size / (args->size + 1);
        while (n + ceiling(n, args->size) > all)
            n--;
        args->room = n * 16;
    }
    args->step = (args->post ? DT_CUDA_LETTER : args->room) / elem;
}

/* The blocks of a grid, at most so many; each has the same part, and the last
 * one the rest. */
static size_t cut_count(struct dt_exchange_args *args, size_t elem,
                        size_t blocks)
{
    const size_t unit = 128 / elem; /* a line of the GPU's caches */
    if (!args->count)
        return 1;
    args->part = ceiling(ceiling(args->count, unit), blocks) * unit;
    return ceiling(args->count, args->part);
}

static void name_ranks(struct dt_exchange_args *args,
                       const struct dt_gpu_exchange *x)
{
    for (size_t i = 0; i < x->size; i++) {
        args->board[i] = x->board[i];
        if (x->from >> i & 1) {
            args->source[args->sources] = x->board[i];
            args->who[args->sources++] = (uint8_t)i;
        }
    }
}

dt_result_t dt_cuda_exchange(struct dt_gpu *gpu, int device,
                             const struct dt_gpu_exchange *x,
                             dt_stream_t stream, struct dt_error *err)
{
    dt_result_t rc = check(x, err);
    if (rc != DT_SUCCESS)
        return rc;
    const bool place = x->way == DT_GPU_PLACE;
    size_t elem = dt_dtype_size(x->dtype), bytes = x->count * elem;
    struct dt_exchange_args args = {
        .send = x->from >> x->rank & 1 ? x->send : NULL,
        .recv = x->recv,
        .count = place ? bytes : x->count,
        .slot = x->slot,
        .send_pitch = x->send_pitch,
        .recv_pitch = x->recv_pitch,
        .abort = x->abort,
        .done = x->done,
        .scale = x->scale,
        .done_value = x->done_value,
        .rank = (uint32_t)x->rank,
        .size = (uint32_t)x->size,
        .rows = (uint32_t)x->send_rows,
        .op = x->op == DT_OP_AVG ? DT_OP_SUM : x->op,
        .spread = x->way == DT_GPU_SPREAD,
        .post = x->post,
        .from = x->from,
    };
    name_ranks(&args, x);
    if (x->op == DT_OP_AVG && !place)
        args.divisor = args.size;
    elem = place ? 1 : elem;
    size_t work = place || x->post ? bytes * x->size : bytes;
    size_t blocks = x->post ? ceiling(bytes, DT_CUDA_LETTER)
                            : at_most(ceiling(work, SHARED), DT_GPU_BLOCKS);
    cut_slot(&args, elem);
    blocks = cut_count(&args, elem, blocks);
    size_t threads = ceiling(ceiling(work / blocks, 16), 32) * 32;
    threads = at_most(threads < 64 ? 64 : threads, DT_CUDA_THREADS);
    enum dt_kernel kernel =
        place ? DT_KERNEL_dt_place
              : (enum dt_kernel)(DT_KERNEL_dt_reduce_i8 + (int)x->dtype);
    return dt_cuda_launch(gpu, device, kernel, (unsigned)blocks,
                          (unsigned)threads, &args, sizeof(args), stream, err);
}
