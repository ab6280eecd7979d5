/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.c - the kernels that work on one GPU's memory: their bits are those
 * of the host, and their speed that of a copy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "exec/exec.h"

#define TESTS 400
#define MOST  70000 /* bytes of an input */

/* ---- right? ---- */

struct trial {
    struct device *d;
    uint64_t state;
    char *in, *out;          /* of the GPU */
    char *bits, *want, *got; /* of the host */
};

static size_t below(struct trial *t, size_t n)
{
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(t->state >> 33) % n;
}

static void fill(struct trial *t, size_t len)
{
    for (size_t i = 0; i < len; i++)
        t->bits[i] = (char)below(t, 256);
    move(t->d, t->in, t->bits, len);
}

static void compare(struct trial *t, const char *at, size_t len, size_t k,
                    const char *what)
{
    finish(t->d);
    move(t->d, t->got, at, len);
    if (memcmp(t->got, t->want, len) != 0)
        fail("%s, trial %zu: other bits than the host's", what, k);
}

/* A number of elements, and how far a buffer is from being aligned. */
static size_t some(struct trial *t, size_t elem, size_t *shift)
{
    *shift = below(t, 3) ? 0 : below(t, 16) * elem;
    return 1 + below(t, below(t, 2) ? 64 : MOST / elem - 16);
}

static void try_fold(struct trial *t, size_t k)
{
    const struct dt_gpu_ops *ops = t->d->gpu->ops;
    struct dt_error err;
    const dt_dtype_t dtype = (dt_dtype_t)(k % (DT_DTYPE_F8E5M2 + 1));
    const dt_op_t op = (dt_op_t)below(t, DT_OP_PROD + 1);
    const size_t elem = dt_dtype_size(dtype), n = 1 + below(t, DT_GPU_PEERS);
    const bool scaled = op == DT_OP_SUM && dt_exec_is_float(dtype);
    const double scale = scaled && below(t, 2) ? 0.7 : 1;
    const void *host[DT_GPU_PEERS], *gpu[DT_GPU_PEERS];
    size_t shift, count = some(t, elem, &shift);
    fill(t, n * MOST);
    for (size_t i = 0; i < n; i++) {
        host[i] = t->bits + i * MOST + shift;
        gpu[i] = t->in + i * MOST + shift;
    }
    dt_exec_reduce_n(t->want, host, n, count, dtype, op, scale);
    need(ops->fold(t->d->gpu, 0, t->out + shift, gpu, n, count, dtype, op,
                   scale, t->d->stream, &err),
         &err);
    compare(t, t->out + shift, count * elem, k, "fold");
}

static const dt_dtype_t floats[] = {DT_DTYPE_F16, DT_DTYPE_BF16, DT_DTYPE_F32,
                                    DT_DTYPE_F8E4M3, DT_DTYPE_F8E5M2};
#define FLOATS (sizeof(floats) / sizeof(floats[0]))

/* The host's: to F32, scaled, and rounded once. */
static void convert(void *dst, dt_dtype_t to, const void *src, dt_dtype_t from,
                    size_t count, double factor)
{
    float *wide = malloc((count + 1) * sizeof(float));
    if (from == DT_DTYPE_F32)
        memcpy(wide, src, count * sizeof(float));
    else
        dt_exec_cast(wide, DT_DTYPE_F32, src, from, count);
    dt_exec_scale(wide, wide, count, DT_DTYPE_F32, factor);
    if (to == DT_DTYPE_F32)
        memcpy(dst, wide, count * sizeof(float));
    else
        dt_exec_cast(dst, to, wide, DT_DTYPE_F32, count);
    free(wide);
}

static void try_cast(struct trial *t, size_t k)
{
    struct dt_error err;
    const dt_dtype_t from = floats[k % FLOATS], to = floats[below(t, FLOATS)];
    const double factor = 0.3;
    size_t shift, count = some(t, sizeof(float), &shift);
    fill(t, MOST);
    convert(t->want, to, t->bits + shift, from, count, factor);
    need(t->d->gpu->ops->cast(t->d->gpu, 0, t->out + shift, to, t->in + shift,
                              from, count, factor, t->d->stream, &err),
         &err);
    compare(t, t->out + shift, count * dt_dtype_size(to), k, "cast");
}

/* Many tensors into one buffer, and back. */
static void try_pack(struct trial *t, size_t k)
{
    const struct dt_gpu_ops *ops = t->d->gpu->ops;
    struct dt_error err;
    struct dt_gpu_tensor tensors[300];
    const dt_dtype_t from = floats[k % FLOATS], to = floats[below(t, FLOATS)];
    const size_t a = dt_dtype_size(from), b = dt_dtype_size(to);
    size_t n = 1 + below(t, 300), at = 0, total = 0;
    fill(t, DT_GPU_PEERS * MOST);
    for (size_t i = 0; i < n; i++) {
        size_t count = below(t, 800);
        at += below(t, 3) * a;
        tensors[i] = (struct dt_gpu_tensor){t->in + at, count};
        convert(t->want + total * b, to, t->bits + at, from, count, 0.5);
        at += count * a;
        total += count;
    }
    need(ops->pack(t->d->gpu, 0, t->out, to, tensors, n, from, 0.5,
                   t->d->stream, &err),
         &err);
    compare(t, t->out, total * b, k, "pack");
    need(ops->unpack(t->d->gpu, 0, tensors, n, from, t->out, to, 2,
                     t->d->stream, &err),
         &err);
    for (size_t i = 0, place = 0; i < n; place += tensors[i++].count)
        convert(t->bits + ((char *)tensors[i].data - t->in), from,
                t->got + place * b, to, tensors[i].count, 2);
    memcpy(t->want, t->bits, at);
    compare(t, t->in, at, k, "unpack");
}

void check_kernels(struct device *d)
{
    const size_t room = DT_GPU_PEERS * MOST;
    struct trial t = {.d = d, .state = 1};
    t.in = device_memory(d, room);
    t.out = device_memory(d, 2 * room);
    t.bits = calloc(1, room);
    t.want = calloc(1, 2 * room);
    t.got = calloc(1, 2 * room);
    for (size_t k = 0; k < TESTS; k++) {
        try_fold(&t, k);
        try_cast(&t, k);
        if (k % 4 == 0)
            try_pack(&t, k);
    }
    d->gpu->ops->share_free(d->gpu, t.in, NULL);
    d->gpu->ops->share_free(d->gpu, t.out, NULL);
    free(t.bits);
    free(t.want);
    free(t.got);
    printf("fold, cast, pack, unpack: the host's bits\n");
}

/* ---- fast? ---- */

#define TENSORS 161 /* of ResNet-50 */
struct plan {
    char *dst, *src[4];
    struct dt_gpu_tensor tensors[TENSORS];
    size_t n, total; /* elements of all of them */
    size_t shrink;   /* where long buffers are short, so are they */
};

static void add(struct plan *p, size_t count)
{
    count = count / p->shrink + 1;
    p->tensors[p->n++] =
        (struct dt_gpu_tensor){p->src[0] + p->total * sizeof(float), count};
    p->total += count;
}

/* A convolution, and its normalisation's two. */
static void add_layer(struct plan *p, size_t in, size_t out, size_t kernel)
{
    add(p, in * out * kernel * kernel);
    add(p, out);
    add(p, out);
}

/* "Deep Residual Learning for Image Recognition" (He et al. 2015), table 1. */
static void resnet_50(struct plan *p)
{
    static const size_t blocks[] = {3, 4, 6, 3};
    size_t in = 64;
    add_layer(p, 3, 64, 7);
    for (size_t s = 0; s < 4; s++) {
        const size_t mid = (size_t)64 << s, out = 4 * mid;
        for (size_t b = 0; b < blocks[s]; b++) {
            add_layer(p, in, mid, 1);
            add_layer(p, mid, mid, 3);
            add_layer(p, mid, out, 1);
            if (b == 0)
                add_layer(p, in, out, 1);
            in = out;
        }
    }
    add(p, 2048 * 1000);
    add(p, 1000);
}

enum { COPY, MOVE, CAST, FOLD_2, FOLD_4, PACK, PACK_BF16, UNPACK, KINDS };

/* Elements of all but the tensors, and the bytes that each kind moves. */
static size_t elements(const struct device *d)
{
    return d->bytes / sizeof(float);
}

static double moved(const struct device *d, const struct plan *p, size_t kind)
{
    const double s = (double)d->bytes, all = (double)p->total * sizeof(float);
    const double bytes[KINDS] = {
        [COPY] = 2 * s,          [MOVE] = 2 * s,     [CAST] = 1.5 * s,
        [FOLD_2] = 3 * s,        [FOLD_4] = 5 * s,   [PACK] = 2 * all,
        [PACK_BF16] = 1.5 * all, [UNPACK] = 2 * all,
    };
    return bytes[kind];
}

static void one(struct device *d, void *context, size_t kind)
{
    const struct dt_gpu_ops *ops = d->gpu->ops;
    struct plan *p = context;
    struct dt_error err;
    dt_result_t rc = DT_SUCCESS;
    const struct dt_gpu_tensor whole = {p->src[0], elements(d)};
    const struct dt_gpu_copy copy = {
        .dst = p->dst, .src = p->src[0], .len = d->bytes, .rows = 1};
    const dt_dtype_t f32 = DT_DTYPE_F32, bf16 = DT_DTYPE_BF16;
    const size_t n = elements(d);
    if (kind == COPY)
        rc = ops->copy(d->gpu, 0, &copy, d->stream, &err);
    else if (kind == MOVE)
        rc = ops->pack(d->gpu, 0, p->dst, f32, &whole, 1, f32, 1, d->stream,
                       &err);
    else if (kind == CAST)
        rc = ops->cast(d->gpu, 0, p->dst, bf16, p->src[0], f32, n, 1, d->stream,
                       &err);
    else if (kind == FOLD_2 || kind == FOLD_4)
        rc = ops->fold(d->gpu, 0, p->dst, (const void *const *)p->src,
                       kind == FOLD_2 ? 2 : 4, n, f32, DT_OP_SUM, 1, d->stream,
                       &err);
    else if (kind == UNPACK)
        rc = ops->unpack(d->gpu, 0, p->tensors, p->n, f32, p->dst, f32, 1,
                         d->stream, &err);
    else
        rc = ops->pack(d->gpu, 0, p->dst, kind == PACK ? f32 : bf16, p->tensors,
                       p->n, f32, 1, d->stream, &err);
    need(rc, &err);
}

void time_kernels(struct device *d)
{
    static const char *const names[KINDS] = {
        [MOVE] = "copy by our kernel",
        [CAST] = "f32 to bf16",
        [FOLD_2] = "sum of 2, f32",
        [FOLD_4] = "sum of 4, f32",
        [PACK] = "pack of ResNet-50's 161 tensors",
        [PACK_BF16] = "the same, to bf16",
        [UNPACK] = "unpack of them",
    };
    const size_t least = (size_t)103 << 20; /* what the tensors take */
    struct plan p = {.shrink = d->bytes < least ? least / d->bytes : 1};
    double t[KINDS];
    const size_t room = d->bytes + (d->bytes < least ? d->bytes : 0);
    p.dst = device_memory(d, room);
    for (size_t i = 0; i < 4; i++)
        p.src[i] = device_memory(d, room);
    resnet_50(&p);
    measure(d, one, &p, KINDS, t);
    const double limit = moved(d, &p, COPY) / t[COPY] * 1e-9;
    for (size_t k = MOVE; k < KINDS; k++)
        row(d, names[k], moved(d, &p, k) / t[k] * 1e-9, limit, "GB/s",
            k < PACK ? ">= 0.92 of a copy's" : ">= 0.9 of a copy's");
    for (size_t i = 0; i < 4; i++)
        d->gpu->ops->share_free(d->gpu, p.src[i], NULL);
    d->gpu->ops->share_free(d->gpu, p.dst, NULL);
}
