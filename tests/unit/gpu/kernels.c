/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.c - the GPU's kernels, run by the host, give the bits that
 * dt_exec gives; and the image for the device has all of them. */
#include "gpu/cuda/image.h"
#include "grad/convert.h"
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

/* ---- convert ---- */

enum { PARTS = 150 }; /* more than a launch takes */

static const dt_dtype_t casts[][2] = {
#define CAST(FROM, TO) {DT_DTYPE_##FROM, DT_DTYPE_##TO},
    DT_CUDA_CASTS(CAST)
#undef CAST
};
enum { CASTS = sizeof(casts) / sizeof(casts[0]) };

struct conversion {
    struct dt_gpu_part part;
    char *src, *got, *want;
    size_t bytes; /* of got and want */
};

/* Integers that a factor keeps within their type. */
static void small_integers(char *buf, size_t count, dt_dtype_t dtype,
                           uint64_t *seed)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value = (int64_t)below(seed, 20001) - 10000;
        if (dtype == DT_DTYPE_I32)
            ((int32_t *)(void *)buf)[i] = (int32_t)value;
        else
            ((int64_t *)(void *)buf)[i] = value * 1000003;
    }
}

static void expect_out(struct conversion *c, char *want, double factor,
                       size_t divisor)
{
    struct dt_gpu_part *p = &c->part;
    p->after = factor;
    p->divisor = (uint32_t)divisor;
    if (!dt_exec_is_float(p->to) && factor != 1.0) {
        p->after = factor / (double)divisor;
        p->divisor = 1;
    }
    dt_convert_out(want, p->to, p->src, p->from, p->count, factor, divisor);
}

static struct conversion conversion(dt_dtype_t from, dt_dtype_t to,
                                    uint64_t *seed)
{
    size_t count = some_count(seed), off = below(seed, PAD);
    size_t all = count + 2 * PAD, to_size = dt_dtype_size(to);
    double factor = some_factor(seed);
    struct conversion c = {.src = room(from, count),
                           .got = room(to, count),
                           .want = room(to, count),
                           .bytes = all * to_size};
    if (dt_exec_is_float(from))
        fill_special(c.src, all, from, seed);
    else
        small_integers(c.src, all, from, seed);
    c.part = (struct dt_gpu_part){.dst = c.got + off * to_size,
                                  .src = c.src +
                                         below(seed, PAD) * dt_dtype_size(from),
                                  .count = count,
                                  .to = to,
                                  .from = from,
                                  .before = 1,
                                  .after = 1};
    char *want = c.want + off * to_size;
    if (below(seed, 8) == 0) {
        c.part.src = NULL;
        memset(want, 0, count * to_size);
    } else if (below(seed, 2)) {
        c.part.before = factor;
        dt_convert_in(want, to, c.part.src, from, count, factor);
    } else {
        expect_out(&c, want, factor, 1 + below(seed, 4));
    }
    return c;
}

/* All at once, and the bits are those of lib/grad/convert.h. */
static void check_conversions(uint64_t *seed)
{
    static struct conversion all[PARTS];
    struct dt_gpu_part parts[PARTS];
    size_t wrong = 0;
    for (int n = 1; n <= PARTS; n += n < 70 ? 23 : 80) {
        for (int i = 0; i < n; i++) {
            const dt_dtype_t *cast = casts[i % CASTS];
            all[i] = conversion(cast[0], cast[1], seed);
            parts[i] = all[i].part;
        }
        const unsigned before = launches;
        struct dt_error err = {""};
        if (dt_cuda_convert(NULL, 0, parts, (size_t)n, NULL, &err))
            diag("%s", err.text);
        ok(launches - before <= (unsigned)n / DT_CUDA_PARTS + 1,
           "%d parts in %u launches", n, launches - before);
        for (int i = 0; i < n; i++) {
            const struct dt_gpu_part *p = &parts[i];
            bool right = !memcmp(all[i].got, all[i].want, all[i].bytes);
            wrong += !right;
            if (!right)
                diag("%zu elements, type %d to %d, factors %g and %g, divisor "
                     "%u",
                     p->count, (int)p->from, (int)p->to, p->before, p->after,
                     (unsigned)p->divisor);
            free(all[i].src);
            free(all[i].got);
            free(all[i].want);
        }
    }
    ok(wrong == 0, "conversions are those of the host");
}

static void check_wrong_parts(void)
{
    float buf[4] = {0};
    struct dt_error err = {""};
    struct dt_gpu_part part = {.dst = buf,
                               .src = buf + 2,
                               .count = 1,
                               .to = DT_DTYPE_I8,
                               .from = DT_DTYPE_F32,
                               .before = 1,
                               .after = 1};
    ok(dt_cuda_convert(NULL, 0, &part, 1, NULL, &err) == DT_ERR_UNSUPPORTED,
       "no such cast: %s", err.text);
    part.to = DT_DTYPE_F32;
    part.dst = (char *)buf + 2;
    ok(dt_cuda_convert(NULL, 0, &part, 1, NULL, &err) == DT_ERR_INVALID_ARG,
       "misaligned: %s", err.text);
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
    for (int i = 0; i < 10; i++)
        check_conversions(&seed);
    check_wrong_parts();
    check_refusals();
    check_image();
    return tap_done();
}
