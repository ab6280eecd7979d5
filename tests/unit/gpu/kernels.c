/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.c - the GPU's kernels, run by the host, give the bits that
 * dt_exec gives; and the image for the device has all of them. */
#include "gpu/cuda/image.h"
#include "host.h"

enum { MOST = 6000, PAD = 32, TRIES = 60 };

static const dt_dtype_t types[] = {
    DT_DTYPE_I8,     DT_DTYPE_U8,    DT_DTYPE_I32, DT_DTYPE_I64,
    DT_DTYPE_F16,    DT_DTYPE_BF16,  DT_DTYPE_F32, DT_DTYPE_F64,
    DT_DTYPE_F8E4M3, DT_DTYPE_F8E5M2};
static const char *const names[] = {"I8",   "U8",  "I32", "I64",    "F16",
                                    "BF16", "F32", "F64", "F8E4M3", "F8E5M2"};

static size_t some_count(uint64_t *seed)
{
    size_t most[] = {3, 40, 700, MOST};
    return below(seed, most[below(seed, 4)] + 1);
}

/* room for count elements, and a few before and behind */
static char *room(dt_dtype_t dtype, size_t count)
{
    char *at = aligned_alloc(64, (count * dt_dtype_size(dtype) + 127 +
                                  2 * PAD * dt_dtype_size(dtype)) /
                                     64 * 64);
    if (!at)
        abort();
    memset(at, 0x5a, (count + 2 * PAD) * dt_dtype_size(dtype));
    return at;
}

static double some_factor(uint64_t *seed)
{
    static const double factors[] = {1.0, 0.5, 1 / 3.0, 1e-3, -7.25, 4096};
    return factors[below(seed, 6)];
}

static bool try_fold(dt_dtype_t dtype, dt_op_t op, uint64_t *seed)
{
    size_t size = dt_dtype_size(dtype), n = 1 + below(seed, DT_GPU_PEERS);
    size_t count = some_count(seed), all = (count + 2 * PAD) * size;
    bool alike = below(seed, 2), inside = below(seed, 3) == 0, right;
    size_t off = below(seed, PAD);
    bool scales = op == DT_OP_SUM && dt_exec_is_float(dtype);
    double scale = scales ? some_factor(seed) : 1.0;
    char *base[DT_GPU_PEERS], *got = room(dtype, count);
    char *want = room(dtype, count);
    const void *in[DT_GPU_PEERS];
    for (size_t k = 0; k < n; k++) {
        base[k] = room(dtype, count);
        fill_special(base[k], count + 2 * PAD, dtype, seed);
        in[k] = base[k] + (alike ? off : below(seed, PAD)) * size;
    }
    if (inside) { /* dst is one of the inputs */
        size_t k = below(seed, n);
        char *dst = (char *)in[k];
        memcpy(want, base[k], all);
        dt_exec_reduce_n(want + (dst - base[k]), in, n, count, dtype, op,
                         scale);
        dt_cuda_fold(NULL, 0, dst, in, n, count, dtype, op, scale, NULL, NULL);
        right = !memcmp(base[k], want, all);
    } else {
        dt_exec_reduce_n(want + off * size, in, n, count, dtype, op, scale);
        dt_cuda_fold(NULL, 0, got + off * size, in, n, count, dtype, op, scale,
                     NULL, NULL);
        right = !memcmp(got, want, all);
    }
    if (!right)
        diag("%zu inputs of %zu elements, %s", n, count,
             inside ? "in place" : "apart");
    for (size_t k = 0; k < n; k++)
        free(base[k]);
    free(got);
    free(want);
    return right;
}

static void check_folds(uint64_t *seed)
{
    static const char *const ops[] = {"SUM", "MIN", "MAX", "AVG", "PROD"};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
        for (int op = DT_OP_SUM; op <= DT_OP_PROD; op++) {
            bool right = true;
            for (int i = 0; i < TRIES && right; i++)
                right = try_fold(types[t], (dt_op_t)op, seed);
            ok(right, "fold: %s of %s is dt_exec's", ops[op], names[t]);
        }
}

/* What a cast with a factor is: by way of F32 in two, but from F64. */
static void expect_cast(void *dst, dt_dtype_t to, const void *src,
                        dt_dtype_t from, size_t count, double factor)
{
    float *wide = malloc((count + 1) * sizeof(*wide));
    if (!wide)
        abort();
    if (to == from && factor == 1.0) {
        memcpy(dst, src, count * dt_dtype_size(to));
    } else if (to == from) {
        dt_exec_scale(dst, src, count, to, factor);
    } else if (factor == 1.0) {
        dt_exec_cast(dst, to, src, from, count);
    } else {
        dt_exec_cast(wide, DT_DTYPE_F32, src, from, count);
        if (from == DT_DTYPE_F32)
            memcpy(wide, src, count * sizeof(*wide));
        dt_exec_scale(wide, wide, count, DT_DTYPE_F32, factor);
        if (to == DT_DTYPE_F32)
            memcpy(dst, wide, count * sizeof(*wide));
        else
            dt_exec_cast(dst, to, wide, DT_DTYPE_F32, count);
    }
    free(wide);
}

static bool try_cast(dt_dtype_t to, dt_dtype_t from, uint64_t *seed)
{
    size_t out = dt_dtype_size(to), in = dt_dtype_size(from);
    size_t count = some_count(seed), off = below(seed, PAD);
    size_t dst_off = below(seed, 2) ? off : below(seed, PAD);
    /* what is between F64 and few digits is nobody's business but its own */
    double factor = from == DT_DTYPE_F64 && out < 4 ? 1.0 : some_factor(seed);
    char *src = room(from, count), *got = room(to, count);
    char *want = room(to, count);
    fill_special(src, count + 2 * PAD, from, seed);
    expect_cast(want + dst_off * out, to, src + off * in, from, count, factor);
    dt_cuda_cast(NULL, 0, got + dst_off * out, to, src + off * in, from, count,
                 factor, NULL, NULL);
    bool right = !memcmp(got, want, (count + 2 * PAD) * out);
    if (in == out) {
        dt_cuda_cast(NULL, 0, src + off * in, to, src + off * in, from, count,
                     factor, NULL, NULL);
        right &= !memcmp(src + off * in, want + dst_off * out, count * out);
    }
    if (!right)
        diag("%zu elements, offsets %zu and %zu, factor %g", count, off,
             dst_off, factor);
    free(src);
    free(got);
    free(want);
    return right;
}

static void check_casts(uint64_t *seed)
{
    for (size_t f = 4; f < 10; f++) {
        bool right = true;
        for (size_t t = 4; t < 10; t++)
            for (int i = 0; i < TRIES && right; i++) {
                right = try_cast(types[t], types[f], seed);
                if (!right)
                    diag("to %s", names[t]);
            }
        ok(right, "cast: from %s to each is dt_exec's", names[f]);
    }
}

/* A list with long ones, empty ones and many; there and back. */
static bool try_list(dt_dtype_t packed, dt_dtype_t data, double factor,
                     size_t n, uint64_t *seed)
{
    size_t size = dt_dtype_size(data), width = dt_dtype_size(packed), all = 0;
    struct dt_gpu_tensor *list = calloc(n, sizeof(*list));
    char **base = calloc(n, sizeof(*base));
    bool right = list && base;
    for (size_t i = 0; i < n && right; i++) {
        list[i].count = below(seed, 20) ? some_count(seed) : 0;
        if (i == n / 2)
            list[i].count = 150001; /* of several blocks */
        base[i] = room(data, list[i].count);
        list[i].data = base[i] + below(seed, PAD) * size;
        fill_special(base[i], list[i].count + 2 * PAD, data, seed);
        all += list[i].count;
    }
    size_t off = below(seed, PAD), bytes = (all + 2 * PAD) * width;
    char *got = room(packed, all), *want = room(packed, all);
    char *to = want + off * width;
    for (size_t i = 0; i < n && right; i++) {
        expect_cast(to, packed, list[i].data, data, list[i].count, factor);
        to += list[i].count * width;
    }
    right &= dt_cuda_pack(NULL, 0, got + off * width, packed, list, n, data,
                          factor, NULL, NULL) == DT_SUCCESS;
    right &= !memcmp(got, want, bytes);
    right &= dt_cuda_unpack(NULL, 0, list, n, data, want + off * width, packed,
                            factor, NULL, NULL) == DT_SUCCESS;
    to = want + off * width;
    for (size_t i = 0; i < n && right; i++) {
        char *back = room(data, list[i].count);
        expect_cast(back, data, to, packed, list[i].count, factor);
        right &= !memcmp(back, list[i].data, list[i].count * size);
        to += list[i].count * width;
        free(back);
    }
    for (size_t i = 0; base && i < n; i++)
        free(base[i]);
    free(base);
    free(list);
    free(got);
    free(want);
    return right;
}

static void check_lists(uint64_t *seed)
{
    ok(try_list(DT_DTYPE_F32, DT_DTYPE_F32, 1.0, 161, seed),
       "pack and unpack of 161 tensors");
    unsigned before = launches;
    ok(try_list(DT_DTYPE_I8, DT_DTYPE_I8, 1.0, 300, seed),
       "and of 300 of single bytes");
    ok(launches == before + 4, "in two launches each");
    ok(try_list(DT_DTYPE_BF16, DT_DTYPE_F32, 1.0, 20, seed),
       "to BF16 and back");
    ok(try_list(DT_DTYPE_F16, DT_DTYPE_F32, 0.125, 20, seed),
       "to F16, times an eighth each way");
    ok(try_list(DT_DTYPE_F8E4M3, DT_DTYPE_BF16, 1.0, 20, seed),
       "from BF16 to F8E4M3 and back");
    ok(try_list(DT_DTYPE_F64, DT_DTYPE_F64, 3.0, 20, seed), "F64 times three");
    before = launches;
    ok(dt_cuda_pack(NULL, 0, NULL, DT_DTYPE_F32, NULL, 0, DT_DTYPE_F32, 1.0,
                    NULL, NULL) == DT_SUCCESS &&
           launches == before,
       "an empty list launches nothing");
}

static void check_refusals(void)
{
    char buf[64];
    const void *in[17] = {buf};
    struct dt_error err = {""};
    ok(dt_cuda_fold(NULL, 0, buf, in, 17, 1, DT_DTYPE_F32, DT_OP_SUM, 1.0, NULL,
                    &err) == DT_ERR_INVALID_ARG,
       "17 inputs are refused: %s", err.text);
    ok(dt_cuda_fold(NULL, 0, buf + 1, in, 1, 1, DT_DTYPE_I8, DT_OP_SUM, 1.0,
                    NULL, &err) == DT_SUCCESS,
       "a byte may be anywhere");
    in[0] = (void *)((uintptr_t)buf | 1);
    ok(dt_cuda_fold(NULL, 0, buf, in, 1, 1, DT_DTYPE_F16, DT_OP_SUM, 1.0, NULL,
                    &err) == DT_ERR_INVALID_ARG,
       "half an element off is refused: %s", err.text);
    ok(dt_cuda_fold(NULL, 0, buf, in, 1, 1, (dt_dtype_t)10, DT_OP_SUM, 1.0,
                    NULL, &err) == DT_ERR_UNSUPPORTED,
       "an unknown type is refused: %s", err.text);
    ok(dt_cuda_cast(NULL, 0, buf, DT_DTYPE_I32, buf, DT_DTYPE_F32, 1, 1.0, NULL,
                    &err) == DT_ERR_UNSUPPORTED,
       "so is a cast to integers: %s", err.text);
}

/* Symbols are strings in the image of each GPU, unless it is compressed, which
 * nvcc is told not to do. */
static void check_image(void)
{
    size_t found = 0;
    if (!dt_cuda_image_size) {
        ok(true, "the image has all kernels # SKIP built without nvcc");
        return;
    }
    for (int k = 0; k < DT_KERNELS; k++) {
        const char *name = dt_kernel_name((enum dt_kernel)k);
        bool there = memmem(dt_cuda_image, dt_cuda_image_size, name,
                            strlen(name) + 1) != NULL;
        found += there;
        if (!there)
            diag("%s is missing", name);
    }
    ok(found == DT_KERNELS, "the image of %zu bytes has all %d kernels",
       dt_cuda_image_size, DT_KERNELS);
}

int main(void)
{
    uint64_t seed = 6;
    check_folds(&seed);
    check_casts(&seed);
    check_lists(&seed);
    check_refusals();
    check_image();
    return tap_done();
}
