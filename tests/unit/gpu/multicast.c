/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* multicast.c - sums by the switch between GPUs, which the mock driver
 * plays: beside those of the host, of numbers that are exact in any order. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "mock.h"

#define GUARD 64 /* bytes that nobody writes */

static const struct {
    const char *name;
    dt_dtype_t dtype;
} types[] = {
    {"i8", DT_DTYPE_I8},   {"u8", DT_DTYPE_U8},   {"i32", DT_DTYPE_I32},
    {"i64", DT_DTYPE_I64}, {"f16", DT_DTYPE_F16}, {"bf16", DT_DTYPE_BF16},
    {"f32", DT_DTYPE_F32}, {"f64", DT_DTYPE_F64}, {"f8", DT_DTYPE_F8E4M3}};
static const struct {
    const char *name;
    dt_op_t op;
} ops[] = {{"sum", DT_OP_SUM},
           {"avg", DT_OP_AVG},
           {"min", DT_OP_MIN},
           {"max", DT_OP_MAX},
           {"prod", DT_OP_PROD}};
#define TYPES (sizeof(types) / sizeof(types[0]))
#define OPS   (sizeof(ops) / sizeof(ops[0]))

enum kind { ALLREDUCE, REDUCE_SCATTER, SCALED, KINDS };
static const char *const kinds[KINDS] = {"allreduce", "reduce_scatter",
                                         "allreduce_scaled"};

/* One call, and its memory. */
struct sum {
    enum kind kind;
    size_t type, op, count;
    size_t shift; /* elements */
    bool in_place;
    char *gpu[2], *host[2]; /* send, receive */
    dt_stream_t stream;
};

static size_t size_of(const struct sum *s)
{
    return dt_dtype_size(types[s->type].dtype);
}

/* 1 to 3 as a float of so many bits of fraction. */
static uint32_t small_float(unsigned n, unsigned fraction, unsigned bias)
{
    return (bias + (n > 1)) << fraction |
           (n == 3 ? (uint32_t)1 << (fraction - 1) : 0);
}

static uint64_t code_of(dt_dtype_t dtype, unsigned n)
{
    double number = n;
    uint64_t code = n;
    switch (dtype) {
    case DT_DTYPE_F16:
        return small_float(n, 10, 15);
    case DT_DTYPE_BF16:
        return small_float(n, 7, 127);
    case DT_DTYPE_F32:
        return small_float(n, 23, 127);
    case DT_DTYPE_F8E4M3:
        return small_float(n, 3, 7);
    case DT_DTYPE_F64:
        memcpy(&code, &number, sizeof(code));
        return code;
    default:
        return code;
    }
}

static void fill(const struct sum *s, char *at, size_t count)
{
    const size_t size = size_of(s);
    uint64_t code[3];
    for (unsigned n = 0; n < 3; n++)
        code[n] = code_of(types[s->type].dtype, n + 1);
    for (size_t i = 0; i < count; i++)
        memcpy(at + i * size,
               &code[(i * 7 + i / 5 + (size_t)dt_rank() * 4 + s->op) % 3],
               size);
}

static dt_result_t run(const struct sum *s, char *const *buf,
                       dt_stream_t stream)
{
    const dt_dtype_t dtype = types[s->type].dtype;
    const dt_op_t op = ops[s->op].op;
    dt_comm_t world = dt_comm_world();
    const size_t at = GUARD + s->shift * size_of(s);
    const char *from = buf[!s->in_place ? 0 : 1] + at;
    char *to = buf[1] + at;
    if (s->kind == ALLREDUCE)
        return dt_allreduce(from, to, s->count, dtype, op, world, stream);
    if (s->kind == SCALED)
        return dt_allreduce_scaled(from, to, s->count, dtype, op, 2, 1, world,
                                   stream);
    if (s->in_place)
        to += (size_t)dt_rank() * s->count * size_of(s);
    return dt_reduce_scatter(from, to, s->count, dtype, op, world, stream);
}

/* Both: the host's, and the GPU's, with all that is around it. */
static bool is_right(const struct sum *s)
{
    const size_t rows = s->kind == REDUCE_SCATTER ? (size_t)dt_size() : 1;
    const size_t len = rows * s->count * size_of(s);
    const size_t all = 2 * GUARD + s->shift * size_of(s) + len;
    char *const *const both[] = {s->host, s->gpu};
    for (size_t b = 0; b < 2; b++) {
        char *in = both[b][s->in_place] + GUARD + s->shift * size_of(s);
        memset(both[b][0], 0xa5, all);
        memset(both[b][1], 0xa5, all);
        fill(s, in, rows * s->count);
    }
    bool right = run(s, s->host, DT_STREAM_NONE) == DT_SUCCESS &&
                 run(s, s->gpu, s->stream) == DT_SUCCESS;
    gpu_sync(s->stream);
    return right && !memcmp(s->gpu[0], s->host[0], all) &&
           !memcmp(s->gpu[1], s->host[1], all);
}

static void try_one(const struct sum *s)
{
    const dt_dtype_t dtype = types[s->type].dtype;
    const dt_op_t op = ops[s->op].op;
    const bool is_float = dtype >= DT_DTYPE_F16;
    int before = dt_mock_launches("dt_multicast");
    if (s->kind == SCALED && !(is_float && op == DT_OP_SUM))
        return;
    expect(is_right(s), "%s %s %s of %zu, %zu elements off%s", kinds[s->kind],
           types[s->type].name, ops[s->op].name, s->count, s->shift,
           s->in_place ? ", in place" : "");
    int n = dt_mock_launches("dt_multicast") - before;
    if (dt_rank() == 0)
        printf("%s %s %s %s %s\n", kinds[s->kind], types[s->type].name,
               ops[s->op].name, s->count * size_of(s) > 8192 ? "long" : "short",
               n ? "multicast" : "other");
}

static void try_counts(struct sum *s, const size_t *counts, size_t n)
{
    static const size_t shifts[] = {0, 1, 3, 7};
    for (size_t c = 0; c < n; c++)
        for (size_t k = 0; k < 4; k++) {
            s->count = counts[c];
            s->shift = shifts[(k + c + s->type) % 4];
            s->in_place = (k + c + s->op) % 2;
            try_one(s);
            if (n == 1)
                break;
        }
}

/* sums [few]: all types, operations and sizes; then nothing is left of the
 * window. */
void mode_sums(int argc, char **argv)
{
    static const size_t counts[] = {1, 1025, 8193, 10007}, some[] = {9001};
    static const size_t many[] = {2100003}; /* several rounds */
    const size_t room = (size_t)20 << 20;
    struct sum s = {.stream = gpu_stream()};
    const bool few = argc > 0;
    (void)argv;
    for (int i = 0; i < 2; i++) {
        s.gpu[i] = gpu_memory(room);
        s.host[i] = malloc(room);
    }
    expect(dt_barrier(dt_comm_world(), s.stream) == DT_SUCCESS, "the first");
    for (s.kind = 0; s.kind < KINDS; s.kind++)
        for (s.type = 0; s.type < TYPES; s.type++)
            for (s.op = 0; s.op < OPS; s.op++)
                try_counts(&s, few ? some : counts, few ? 1 : 4);
    s.kind = ALLREDUCE;
    s.type = 6;
    s.op = 0;
    if (!few)
        try_counts(&s, many, 1);
    s.kind = REDUCE_SCATTER;
    const size_t rows[] = {many[0] * 2 / (size_t)dt_size()};
    if (!few)
        try_counts(&s, rows, 1);
    for (int i = 0; i < 2; i++)
        free(s.host[i]);
    expect(dt_finalize() == DT_SUCCESS, "finalize");
    int (*left)(void) = NULL; /* an old driver has none */
    *(void **)&left = dlsym(RTLD_DEFAULT, "dt_mock_vmm_left");
    expect(!left || left() == 0, "something of the window is left");
}
