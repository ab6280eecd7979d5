/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.c - the GPU's kernels, run by the host, give the bits that
 * dt_exec gives; and the image for the device has all of them. */
#include "gpu/cuda/image.h"
#include "host.h"

enum { MOST = 6000, PAD = 32, TRIES = 60 };

static const dt_dtype_t types[] = {DT_DTYPE_F16,    DT_DTYPE_BF16,
                                   DT_DTYPE_F32,    DT_DTYPE_F64,
                                   DT_DTYPE_F8E4M3, DT_DTYPE_F8E5M2};
static const char *const names[] = {"F16", "BF16",   "F32",
                                    "F64", "F8E4M3", "F8E5M2"};

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

static bool try_scale(dt_dtype_t dtype, uint64_t *seed)
{
    size_t size = dt_dtype_size(dtype), count = some_count(seed);
    size_t off = below(seed, PAD), all = (count + 2 * PAD) * size;
    size_t dst_off = below(seed, 2) ? off : below(seed, PAD);
    double factor = some_factor(seed);
    char *src = room(dtype, count), *got = room(dtype, count);
    char *want = room(dtype, count);
    fill_special(src, count + 2 * PAD, dtype, seed);
    dt_exec_scale(want + dst_off * size, src + off * size, count, dtype,
                  factor);
    dt_cuda_scale(NULL, 0, got + dst_off * size, src + off * size, count, dtype,
                  factor, NULL, NULL);
    bool right = !memcmp(got, want, all);
    dt_cuda_scale(NULL, 0, src + off * size, src + off * size, count, dtype,
                  factor, NULL, NULL);
    right &= !memcmp(src + off * size, want + dst_off * size, count * size);
    if (!right)
        diag("%zu elements, offsets %zu and %zu, factor %g", count, off,
             dst_off, factor);
    free(src);
    free(got);
    free(want);
    return right;
}

static void check_scales(uint64_t *seed)
{
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        bool right = true;
        for (int i = 0; i < TRIES && right; i++)
            right = try_scale(types[t], seed);
        ok(right, "scale: %s is dt_exec's", names[t]);
    }
}

static void check_refusals(void)
{
    float buf[4] = {1};
    char *odd = (char *)buf + 1;
    struct dt_error err = {""};
    const unsigned before = launches;
    ok(dt_cuda_scale(NULL, 0, NULL, NULL, 0, DT_DTYPE_F32, 2, NULL, &err) ==
               DT_SUCCESS &&
           launches == before,
       "nothing launches nothing");
    ok(dt_cuda_scale(NULL, 0, odd, buf, 1, DT_DTYPE_F16, 2, NULL, &err) ==
           DT_ERR_INVALID_ARG,
       "half an element off is refused: %s", err.text);
    ok(dt_cuda_scale(NULL, 0, odd, buf, 1, DT_DTYPE_F8E4M3, 2, NULL, &err) ==
           DT_SUCCESS,
       "a byte may be anywhere");
    ok(dt_cuda_scale(NULL, 0, buf, NULL, 1, DT_DTYPE_F32, 2, NULL, &err) ==
           DT_ERR_INVALID_ARG,
       "so is no buffer: %s", err.text);
    ok(dt_cuda_scale(NULL, 0, buf, buf, 1, DT_DTYPE_I32, 2, NULL, &err) ==
           DT_ERR_UNSUPPORTED,
       "integers are refused: %s", err.text);
    ok(dt_cuda_scale(NULL, 0, buf, buf, 1, (dt_dtype_t)10, 2, NULL, &err) ==
           DT_ERR_UNSUPPORTED,
       "so is an unknown type: %s", err.text);
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
    check_scales(&seed);
    check_refusals();
    check_image();
    return tap_done();
}
