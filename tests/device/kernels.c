/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.c - the kernels that work on one GPU's memory: their bits are those
 * of the host, and their speed that of a copy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "exec/exec.h"
#include "gpu/cuda/args.h"
#include "grad/convert.h"

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

static void try_scale(struct trial *t, size_t k)
{
    struct dt_error err;
    const size_t floats = DT_DTYPE_F8E5M2 - DT_DTYPE_F16 + 1;
    const dt_dtype_t dtype = (dt_dtype_t)(DT_DTYPE_F16 + k % floats);
    const size_t elem = dt_dtype_size(dtype);
    size_t shift, count = some(t, elem, &shift);
    fill(t, MOST);
    dt_exec_scale(t->want, t->bits + shift, count, dtype, 0.3);
    need(t->d->gpu->ops->scale(t->d->gpu, 0, t->out + shift, t->in + shift,
                               count, dtype, 0.3, t->d->stream, &err),
         &err);
    compare(t, t->out + shift, count * elem, k, "scale");
}

/* ---- gradients into a bucket and out of it ---- */

enum { PARTS = 100, PART = 640 }; /* bytes of a part, of either type */

static const dt_dtype_t casts[][2] = {
#define CAST(FROM, TO) {DT_DTYPE_##FROM, DT_DTYPE_##TO},
    DT_CUDA_CASTS(CAST)
#undef CAST
};

/* Into it with a factor, or out of it with a factor and a divisor. Integers
 * have none, as they may leave their type. */
static struct dt_gpu_part convert_part(struct trial *t, size_t p, size_t k)
{
    const dt_dtype_t *cast =
        casts[(k + p) % (sizeof(casts) / sizeof(casts[0]))];
    struct dt_gpu_part part = {.dst = t->out + p * PART,
                               .src = t->in + p * PART,
                               .count = 1 + below(t, PART / 8),
                               .to = cast[1],
                               .from = cast[0],
                               .before = 1,
                               .after = 1};
    char *want = t->want + p * PART;
    const char *bits = t->bits + p * PART;
    const double factor = dt_exec_is_float(part.to) ? 0.3 : 1;
    if (below(t, 2)) {
        part.before = factor;
        dt_convert_in(want, part.to, bits, part.from, part.count, factor);
    } else {
        part.after = factor;
        part.divisor = 3;
        dt_convert_out(want, part.to, bits, part.from, part.count, factor, 3);
    }
    return part;
}

static void try_convert(struct trial *t, size_t k)
{
    struct dt_error err;
    struct dt_gpu_part parts[PARTS];
    fill(t, MOST);
    memset(t->want, 0, MOST);
    move(t->d, t->out, t->want, MOST);
    for (size_t p = 0; p < PARTS; p++)
        parts[p] = convert_part(t, p, k);
    need(
        t->d->gpu->ops->convert(t->d->gpu, 0, parts, PARTS, t->d->stream, &err),
        &err);
    compare(t, t->out, PARTS * PART, k, "convert");
}

void check_kernels(struct device *d)
{
    struct trial t = {.d = d, .state = 1};
    t.in = device_memory(d, MOST);
    t.out = device_memory(d, MOST);
    t.bits = calloc(1, MOST);
    t.want = calloc(1, MOST);
    t.got = calloc(1, MOST);
    for (size_t k = 0; k < TESTS; k++)
        try_scale(&t, k);
    for (size_t k = 0; k < TESTS; k++)
        try_convert(&t, k);
    d->gpu->ops->share_free(d->gpu, t.in, NULL);
    d->gpu->ops->share_free(d->gpu, t.out, NULL);
    free(t.bits);
    free(t.want);
    free(t.got);
    printf("scale, convert: the host's bits\n");
}

/* ---- fast? ---- */

struct plan {
    char *dst, *src;
};

static void one(struct device *d, void *context, size_t scale)
{
    const struct dt_gpu_ops *ops = d->gpu->ops;
    const struct plan *p = context;
    struct dt_error err;
    const struct dt_gpu_copy copy = {
        .dst = p->dst, .src = p->src, .len = d->bytes, .rows = 1};
    need(scale ? ops->scale(d->gpu, 0, p->dst, p->src, d->bytes / sizeof(float),
                            DT_DTYPE_F32, 0.3, d->stream, &err)
               : ops->copy(d->gpu, 0, &copy, d->stream, &err),
         &err);
}

void time_kernels(struct device *d)
{
    struct plan p = {device_memory(d, d->bytes), device_memory(d, d->bytes)};
    double t[2];
    measure(d, one, &p, 2, t);
    row(d, "scaling f32", 2 * (double)d->bytes / t[1] * 1e-9,
        2 * (double)d->bytes / t[0] * 1e-9, "GB/s", ">= 0.92 of a copy's");
    d->gpu->ops->share_free(d->gpu, p.src, NULL);
    d->gpu->ops->share_free(d->gpu, p.dst, NULL);
}
