/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.c - allreduce on one node: bit for bit what folding all inputs in order
 * gives, wherever the buffers are. */
#include "coll/node/local.h"

#include <unistd.h>

#include "exec/exec.h"
#include "../tl/node-ranks.h"

#define OPS    (r->tl->ops)
#define BOARDS (r->tl->boards)
#define ARENA  ((size_t)4 << 20) /* of each kind of memory */
#define GUARD  ((size_t)64)

/* One operation, as all ranks know it, and where this rank has its buffers. */
struct op {
    struct dt_shape shape;
    uint64_t seed;
    bool note;  /* some rank's */
    size_t who; /* whose */
    char *send, *recv;
    struct dt_local local;
};

struct memory {
    char *plain, *shared;
    char *expected;
    uint64_t round;
};

static void open_memory(struct node_rank *r, struct memory *memory)
{
    void *shared;
    NEED(BOARDS->mem_alloc(r->tl, ARENA, &shared, &r->err) == DT_SUCCESS, "%s",
         r->err.text);
    memory->shared = shared;
    memory->plain = malloc(ARENA);
    memory->expected = malloc(2 * ARENA);
    memory->round = 0;
    NEED(memory->plain && memory->expected, "no memory");
}

static void close_memory(struct memory *memory)
{
    free(memory->plain);
    free(memory->expected);
}

#define NUMBERS 13

/* What inputs are made of: finite in every type. */
static void list_numbers(char *numbers, dt_dtype_t dtype)
{
    size_t elem = dt_dtype_size(dtype);
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t n = (int64_t)i - 4;
        float f = (float)n + (dtype == DT_DTYPE_F32 ? 0.1f : 0);
        double d = (double)n + 0.25;
        if (!dt_exec_is_float(dtype))
            memcpy(numbers + i * elem, &n, elem);
        else if (dtype == DT_DTYPE_F64)
            memcpy(numbers + i * elem, &d, elem);
        else
            dt_exec_cast(numbers + i * elem, dtype, &f, DT_DTYPE_F32, 1);
    }
}

/* The input of a rank. */
static void fill(char *buf, const struct dt_shape *shape, uint64_t seed,
                 size_t rank)
{
    size_t elem = dt_dtype_size(shape->dtype);
    char numbers[NUMBERS * 8];
    uint64_t x = seed * 77 + rank * 1000003 + 5;
    list_numbers(numbers, shape->dtype);
    for (size_t i = 0; i < shape->count; i++, buf += elem) {
        const char *number = numbers + node_random(&x) % NUMBERS * elem;
        switch (elem) { /* copies of a known length are fast */
        case 1:
            *buf = *number;
            break;
        case 2:
            memcpy(buf, number, 2);
            break;
        case 4:
            memcpy(buf, number, 4);
            break;
        default:
            memcpy(buf, number, 8);
            break;
        }
    }
}

static void expect(struct node_rank *r, char *expected, char *scratch,
                   const struct op *op)
{
    const struct dt_shape *shape = &op->shape;
    size_t len = shape->count * dt_dtype_size(shape->dtype);
    const void *in[NODE_RANKS];
    char *inputs = r->size * len <= ARENA ? scratch : malloc(r->size * len);
    NEED(inputs, "no memory");
    for (size_t i = 0; i < r->size; i++) {
        fill(inputs + i * len, shape, op->seed, i);
        in[i] = inputs + i * len;
    }
    dt_exec_reduce_n(expected, in, r->size, shape->count, shape->dtype,
                     shape->op, shape->prescale * shape->postscale);
    if (shape->op == DT_OP_AVG)
        dt_exec_divide(expected, shape->count, shape->dtype, r->size);
    if (inputs != scratch)
        free(inputs);
}

/* A random shape, the same on all ranks. */
static void think_up(struct op *op, uint64_t *common, size_t max_len)
{
    static const dt_dtype_t dtypes[] = {
        DT_DTYPE_I8,  DT_DTYPE_U8,  DT_DTYPE_I32,    DT_DTYPE_I64,
        DT_DTYPE_F16, DT_DTYPE_F32, DT_DTYPE_F64,    DT_DTYPE_BF16,
        DT_DTYPE_F32, DT_DTYPE_F32, DT_DTYPE_F8E4M3, DT_DTYPE_F8E5M2};
    dt_dtype_t dtype = dtypes[node_random(common) % 12];
    dt_op_t what = (dt_op_t)(node_random(common) % 5);
    size_t elem = dt_dtype_size(dtype), max = max_len / elem;
    size_t count = (size_t)1 << node_random(common) % 24;
    count = 1 + (count + node_random(common) % count) % max;
    if (node_random(common) % 4 == 0)
        count = 1 + count % 40;
    bool scaled = dt_exec_is_float(dtype) &&
                  (what == DT_OP_SUM || what == DT_OP_AVG) &&
                  node_random(common) % 3 == 0;
    op->seed = node_random(common);
    op->note = node_random(common) % 4 == 0;
    op->who = node_random(common);
    op->shape = (struct dt_shape){.coll = DT_COLL_ALLREDUCE,
                                  .dtype = dtype,
                                  .op = what,
                                  .count = count,
                                  .in_place = node_random(common) % 2,
                                  .prescale = scaled ? 0.7 : 1.0,
                                  .postscale = scaled ? 3.0 : 1.0};
}

/* Buffers of this rank's own choice, in part k of 4. */
static void choose(struct op *op, struct memory *memory, uint64_t *own,
                   size_t k, int registered)
{
    size_t part = ARENA / 4, skew = node_random(own) % 3 * 17;
    bool a = registered < 0 ? node_random(own) % 2 : registered != 0;
    bool b = registered < 0 ? node_random(own) % 2 : registered != 0;
    op->send = (a ? memory->shared : memory->plain) + k * part + GUARD + skew;
    op->recv = (b ? memory->shared : memory->plain) + (k + 1) * part + GUARD;
    if (op->shape.in_place)
        op->recv = op->send;
}

static void begin(struct node_rank *r, struct op *op, struct memory *memory)
{
    size_t len = op->shape.count * dt_dtype_size(op->shape.dtype);
    NEED(dt_local_serves(r->board, &op->shape), "does not serve");
    if (!op->shape.in_place)
        memset(op->recv, 0x55, len);
    memset(op->recv - GUARD, 0x33, GUARD);
    memset(op->recv + len, 0x33, GUARD);
    fill(op->send, &op->shape, op->seed, r->me);
    dt_local_begin(&op->local, r->board, &op->shape, op->send, op->recv,
                   memory->round, op->note && op->who % r->size == r->me);
    memory->round += dt_local_rounds(r->board, &op->shape);
}

static void finish(struct node_rank *r, struct op *op)
{
    unsigned turn = 0;
    uint64_t passed = 0;
    while (!op->local.done) {
        if (!dt_local_progress(&op->local))
            node_wait(r, &turn);
        NEED(op->local.released >= passed &&
                 op->local.released <= dt_local_rounds(r->board, &op->shape),
             "passed %llu", (unsigned long long)op->local.released);
        passed = op->local.released;
        BOARDS->release(r->board, op->local.round + passed);
    }
    NEED(passed == dt_local_rounds(r->board, &op->shape), "rounds left");
}

static void examine(struct node_rank *r, struct op *op, struct memory *memory)
{
    size_t len = op->shape.count * dt_dtype_size(op->shape.dtype);
    expect(r, memory->expected, memory->expected + ARENA, op);
    for (size_t i = 0; i < GUARD; i++)
        NEED(op->recv[len + i] == 0x33 && op->recv[-1 - (ptrdiff_t)i] == 0x33,
             "wrote beyond the buffer");
    NEED(op->local.notice == op->note, "note");
    if (!memcmp(op->recv, memory->expected, len))
        return;
    size_t i = 0;
    while (op->recv[i] == memory->expected[i])
        i++;
    NEED(false, "type %d, op %d, count %zu: byte %zu of %zu is wrong",
         op->shape.dtype, op->shape.op, op->shape.count, i, len);
}

/* What case_random does. */
struct program {
    int ops;
    size_t max_len;
    int registered; /* memory: 1 is, 0 is not, -1 some */
    bool late;      /* each in its turn */
};

static void case_random(struct node_rank *r)
{
    const struct program *p = r->arg;
    struct memory memory;
    uint64_t common =
        r->size * 31 + (unsigned)(p->registered + 1) * 7 + p->late;
    uint64_t own = common * 1000 + r->me;
    open_memory(r, &memory);
    for (int i = 0; i < p->ops; i++) {
        struct op op[2];
        bool two = node_random(&common) % 3 == 0;
        if (p->late && (size_t)i % r->size == r->me)
            usleep(500 + (unsigned)(node_random(&own) % 3000));
        for (size_t k = 0; k <= two; k++) {
            think_up(&op[k], &common, p->max_len);
            choose(&op[k], &memory, &own, 2 * k, p->registered);
            begin(r, &op[k], &memory);
        }
        for (size_t k = 0; k <= two; k++) {
            finish(r, &op[k]);
            examine(r, &op[k], &memory);
        }
    }
    close_memory(&memory);
    unsigned turn = 0;
    while (!BOARDS->released(r->board, memory.round))
        node_wait(r, &turn);
    node_barrier(r);
}

/* Every type with every operation, short and long. */
static void case_types(struct node_rank *r)
{
    struct memory memory;
    uint64_t own = r->me;
    open_memory(r, &memory);
    for (int dtype = DT_DTYPE_I8; dtype <= DT_DTYPE_F8E5M2; dtype++)
        for (int what = DT_OP_SUM; what <= DT_OP_PROD; what++)
            for (size_t count = 1; count < 40000; count = count * 7 + 3) {
                struct op op = {.seed = count + (unsigned)dtype};
                op.shape = (struct dt_shape){.coll = DT_COLL_ALLREDUCE,
                                             .dtype = (dt_dtype_t)dtype,
                                             .op = (dt_op_t)what,
                                             .count = count,
                                             .prescale = 1,
                                             .postscale = 1};
                if (!dt_local_serves(r->board, &op.shape))
                    continue;
                choose(&op, &memory, &own, 0, -1);
                begin(r, &op, &memory);
                finish(r, &op);
                examine(r, &op, &memory);
            }
    close_memory(&memory);
    node_barrier(r);
}

/* Lengths around all bounds, long ones first, so that what is left of a longer
 * or an other operation lies where a shorter one is looked for; several times
 * around the board. */
static void case_bounds(struct node_rank *r)
{
    static const size_t bounds[] = {65536, 32768, 16384, 8192, 4096, 2048, 1024,
                                    256,   128,   112,   64,   48,   8,    2};
    struct memory memory;
    uint64_t own = r->me;
    open_memory(r, &memory);
    for (size_t turn = 0; turn < 4; turn++)
        for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
            for (size_t len = bounds[i] + 1; len >= bounds[i] - 1; len--) {
                struct op op = {.seed = len * 31 + turn, .note = len % 3 == 0};
                op.shape = (struct dt_shape){.coll = DT_COLL_ALLREDUCE,
                                             .dtype = DT_DTYPE_U8,
                                             .op = DT_OP_SUM,
                                             .count = len,
                                             .in_place = turn % 2,
                                             .prescale = 1,
                                             .postscale = 1};
                choose(&op, &memory, &own, 0, -1);
                begin(r, &op, &memory);
                finish(r, &op);
                examine(r, &op, &memory);
            }
    close_memory(&memory);
    node_barrier(r);
}

/* Ranks that disagree: an error, and in time. */
static void case_disagree(struct node_rank *r)
{
    static const size_t counts[][2] = {
        {1, 2}, {100, 101}, {3, 5000}, {50000, 50016}, {8, 1000000}};
    size_t which = r->node->word[0];
    struct dt_shape shape = {.coll = DT_COLL_ALLREDUCE,
                             .dtype = DT_DTYPE_F32,
                             .count = counts[which % 5][r->me == 1],
                             .prescale = 1,
                             .postscale = 1};
    struct dt_local local;
    char *send = calloc(1000000, 8), *recv = send + 4000000;
    dt_local_begin(&local, r->board, &shape, send, recv, 0, false);
    dt_result_t result = DT_SUCCESS;
    for (int i = 0; !local.done && result == DT_SUCCESS; i++) {
        dt_local_progress(&local);
        BOARDS->release(r->board, local.released);
        if (i % 64)
            continue;
        result = OPS->check(r->tl, &r->err);
        sched_yield(); /* the other may have no core now */
    }
    NEED(result == DT_ERR_PROC_FAILED, "no error");
    node_barrier(r);
    free(send);
}

static const struct program private = {300, 100000, 0, false},
                            registered = {300, 100000, 1, false},
                            mixed = {300, 100000, -1, false},
                            large = {30, ARENA / 4 - 512, -1, false},
                            late = {60, 300000, -1, true},
                            many = {6, 20000, -1, false};

static const struct node_case cases[] = {
    {"all types", case_types, {2, 3}},
    {"bounds", case_bounds, {2, 3, 5}},
    {"private", case_random, {2, 3, 4, 8}, .arg = &private},
    {"registered", case_random, {2, 3, 4, 8}, .arg = &registered},
    {"mixed", case_random, {2, 3, 5, 16}, .arg = &mixed},
    {"large", case_random, {2, 3, 4}, .arg = &large},
    {"one is late", case_random, {2, 3, 5}, .arg = &late},
    {"many ranks", case_random, {17, 64}, .arg = &many},
    {"ranks disagree", case_disagree, {2}},
};

int main(int argc, char **argv)
{
    return node_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
