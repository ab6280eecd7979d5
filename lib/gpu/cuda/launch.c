/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* launch.c - grids and arguments of the kernels. */
#include "gpu/cuda/launch.h"

#include <string.h>

#include "gpu/cuda/cuda.h"
#include "gpu/cuda/args.h"
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
_Static_assert(sizeof(struct dt_tensors_args) <= 4096,
               "more than a driver takes");
_Static_assert(DT_KERNEL_dt_fold_f8e5m2 - DT_KERNEL_dt_fold_i8 ==
                       DT_DTYPE_F8E5M2 - DT_DTYPE_I8 &&
                   DT_KERNEL_dt_reduce_f8e5m2 - DT_KERNEL_dt_reduce_i8 ==
                       DT_DTYPE_F8E5M2 - DT_DTYPE_I8 &&
                   DT_KERNEL_dt_cast_f8e5m2 - DT_KERNEL_dt_cast_f16 ==
                       DT_DTYPE_F8E5M2 - DT_DTYPE_F16,
               "the kernels are in the order of the types");

enum {
    THREADS = 256,    /* of a block that works for itself */
    CHUNK = 64 << 10, /* bytes of its part of a tensor */
    BLOCKS = 1024,    /* about as many as a GPU runs at once */
    WORK = 16,        /* vectors of a thread, where there are enough */
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
                        "the GPU's kernels do not know this type or operation: "
                        "casts are between floating-point types");
}

/* ---- fold ---- */

dt_result_t dt_cuda_fold(struct dt_gpu *gpu, int device, void *dst,
                         const void *const *in, size_t n, size_t count,
                         dt_dtype_t dtype, dt_op_t op, double scale,
                         dt_stream_t stream, struct dt_error *err)
{
    struct dt_fold_args args = {
        .dst = dst, .count = count, .scale = scale, .n = (uint32_t)n, .op = op};
    if (!dt_exec_supports(dtype, op))
        return no_such(err);
    if (n < 1 || n > DT_GPU_PEERS)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a GPU folds 1 to %d inputs, not %zu", DT_GPU_PEERS,
                            n);
    if (!count)
        return DT_SUCCESS;
    if (!fits(dst, dtype))
        return not_fit(err, "the result", dtype);
    for (size_t k = 0; k < n; k++) {
        if (!fits(in[k], dtype))
            return not_fit(err, "an input", dtype);
        args.in[k] = in[k];
    }
    size_t vectors = ceiling(count * dt_dtype_size(dtype), 16);
    size_t blocks = at_most(ceiling(vectors, THREADS), BLOCKS);
    size_t many = ceiling(vectors, (size_t)THREADS * WORK);
    if (blocks < many)
        blocks = at_most(many, (size_t)1 << 30);
    return dt_cuda_launch(
        gpu, device, (enum dt_kernel)(DT_KERNEL_dt_fold_i8 + (int)dtype),
        (unsigned)blocks, THREADS, &args, sizeof(args), stream, err);
}

/* ---- tensors ---- */

/* What the launches of one list have in common. Plain copies count bytes,
 * casts elements. */
struct list {
    struct dt_gpu *gpu;
    int device;
    dt_stream_t stream;
    dt_dtype_t packed, data; /* the types on the two sides */
    enum dt_kernel kernel;
    size_t unit;                   /* of what is counted, in an element */
    size_t packed_size, data_size; /* bytes of what is counted */
    struct dt_tensors_args args;
};

static dt_result_t choose_kernel(struct list *list, struct dt_error *err)
{
    struct dt_tensors_args *args = &list->args;
    dt_dtype_t from = args->unpack ? list->packed : list->data;
    dt_dtype_t to = args->unpack ? list->data : list->packed;
    size_t in = dt_dtype_size(from), out = dt_dtype_size(to);
    if (in && from == to && args->factor == 1.0) {
        list->kernel = DT_KERNEL_dt_move;
        list->unit = in;
        list->packed_size = list->data_size = 1;
        args->chunk = CHUNK;
        return DT_SUCCESS;
    }
    if (!dt_exec_is_float(from) || !dt_exec_is_float(to))
        return no_such(err);
    list->kernel =
        (enum dt_kernel)(DT_KERNEL_dt_cast_f16 + (int)from - (int)DT_DTYPE_F16);
    list->unit = 1;
    list->packed_size = dt_dtype_size(list->packed);
    list->data_size = dt_dtype_size(list->data);
    args->to = to;
    args->chunk = CHUNK / (in > out ? in : out);
    return DT_SUCCESS;
}

static dt_result_t launch_list(struct list *list, struct dt_error *err)
{
    struct dt_tensors_args *args = &list->args;
    if (!args->n)
        return DT_SUCCESS;
    dt_result_t rc = dt_cuda_launch(list->gpu, list->device, list->kernel,
                                    args->first[args->n], THREADS, args,
                                    sizeof(*args), list->stream, err);
    args->packed += args->start[args->n] * list->packed_size;
    args->n = 0;
    return rc;
}

/* One more; when there are as many as an argument has room for, or as many
 * blocks as a grid, off they go. */
static dt_result_t add(struct list *list, char *data, uint64_t count,
                       struct dt_error *err)
{
    struct dt_tensors_args *args = &list->args;
    const uint32_t most = (uint32_t)1 << 30; /* blocks */
    dt_result_t rc = DT_SUCCESS;
    while (count && rc == DT_SUCCESS) {
        const uint32_t n = args->n++;
        const uint64_t part =
            at_most((most - args->first[n]) * args->chunk, count);
        args->data[n] = data;
        args->start[n + 1] = args->start[n] + part;
        args->first[n + 1] =
            args->first[n] + (uint32_t)ceiling(part, args->chunk);
        if (n + 1 == DT_CUDA_TENSORS || args->first[n + 1] == most)
            rc = launch_list(list, err);
        data += part * list->data_size;
        count -= part;
    }
    return rc;
}

static dt_result_t run_list(struct list *list,
                            const struct dt_gpu_tensor *tensors, size_t n,
                            struct dt_error *err)
{
    dt_result_t rc = choose_kernel(list, err);
    for (size_t i = 0; i < n && rc == DT_SUCCESS; i++)
        if (tensors[i].count && !fits(tensors[i].data, list->data))
            rc = not_fit(err, "a tensor", list->data);
        else if (tensors[i].count && !fits(list->args.packed, list->packed))
            rc = not_fit(err, "the buffer of tensors", list->packed);
    for (size_t i = 0; i < n && rc == DT_SUCCESS; i++)
        rc = add(list, tensors[i].data, tensors[i].count * list->unit, err);
    return rc == DT_SUCCESS ? launch_list(list, err) : rc;
}

dt_result_t dt_cuda_pack(struct dt_gpu *gpu, int device, void *dst,
                         dt_dtype_t to, const struct dt_gpu_tensor *tensors,
                         size_t n, dt_dtype_t from, double factor,
                         dt_stream_t stream, struct dt_error *err)
{
    struct list list = {
        .gpu = gpu,
        .device = device,
        .stream = stream,
        .packed = to,
        .data = from,
        .args = {.packed = dst, .factor = factor},
    };
    return run_list(&list, tensors, n, err);
}

dt_result_t dt_cuda_unpack(struct dt_gpu *gpu, int device,
                           const struct dt_gpu_tensor *tensors, size_t n,
                           dt_dtype_t to, const void *src, dt_dtype_t from,
                           double factor, dt_stream_t stream,
                           struct dt_error *err)
{
    struct list list = {
        .gpu = gpu,
        .device = device,
        .stream = stream,
        .packed = from,
        .data = to,
        .args = {.packed = (char *)src, .factor = factor, .unpack = 1},
    };
    return run_list(&list, tensors, n, err);
}

dt_result_t dt_cuda_cast(struct dt_gpu *gpu, int device, void *dst,
                         dt_dtype_t to, const void *src, dt_dtype_t from,
                         size_t count, double factor, dt_stream_t stream,
                         struct dt_error *err)
{
    const struct dt_gpu_tensor all = {dst, count};
    return dt_cuda_unpack(gpu, device, &all, 1, to, src, from, factor, stream,
                          err);
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
