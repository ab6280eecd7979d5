/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim-program.c - what a seed decides, and the slow way to each result. */
#include "sim-program.h"

#include <string.h>

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t program_pick(struct program *p, size_t n)
{
    return mix(p->state += 0x9e3779b97f4a7c15u) % n;
}

/* ---- what is done ---- */

/* Some colors, and the ranks of each in an order of its own. */
static void make_comm(struct program *p, size_t c)
{
    size_t colors = c ? 1 + program_pick(p, 3) : 1, n = 0;
    size_t color_of[MAX_RANKS], *members = p->members[c];
    for (size_t r = 0; r < p->size; r++)
        color_of[r] = program_pick(p, colors);
    for (size_t color = 0; color < colors; color++) {
        size_t first = n;
        for (size_t r = 0; r < p->size; r++) {
            if (color_of[r] != color)
                continue;
            size_t at = c ? first + program_pick(p, n - first + 1) : n;
            memmove(&members[at + 1], &members[at],
                    (n++ - at) * sizeof(*members));
            members[at] = r;
        }
        for (size_t i = first; i < n; i++)
            p->parts[c][members[i]] =
                (struct sim_part){n - first, i - first, &members[first]};
    }
}

static bool is_float(dt_dtype_t dtype)
{
    return dtype == DT_DTYPE_F32 || dtype == DT_DTYPE_BF16 ||
           dtype == DT_DTYPE_F64;
}

static bool reduces(enum dt_coll coll)
{
    return coll == DT_COLL_ALLREDUCE || coll == DT_COLL_REDUCE ||
           coll == DT_COLL_REDUCE_SCATTER;
}

static void make_step(struct program *p, struct sim_step *step)
{
    static const dt_dtype_t dtypes[] = {DT_DTYPE_I32,  DT_DTYPE_F32,
                                        DT_DTYPE_BF16, DT_DTYPE_I64,
                                        DT_DTYPE_I8,   DT_DTYPE_F64};
    static const dt_op_t ops[] = {DT_OP_SUM, DT_OP_MIN, DT_OP_MAX, DT_OP_PROD,
                                  DT_OP_AVG};
    struct dt_shape *shape = &step->shape;
    size_t kind = program_pick(p, DT_COLL_SEND + 1);
    *step = (struct sim_step){.message = kind == DT_COLL_SEND,
                              .comm = program_pick(p, p->ncomms)};
    *shape = (struct dt_shape){
        .coll = (enum dt_coll)kind,
        .dtype = dtypes[program_pick(p, 6)],
        .op = ops[program_pick(p, 5)],
        .count = 1 + program_pick(p, program_pick(p, 2) ? 4 : 300),
        .root = program_pick(p, p->size),
        .in_place = program_pick(p, 3) == 0,
        .prescale = 1,
        .postscale = 1};
    if (program_pick(p, 60) == 0)
        shape->count = 1 + program_pick(p, 400000 / p->size);
    if (kind == DT_COLL_ALLREDUCE && is_float(shape->dtype) &&
        (shape->op == DT_OP_SUM || shape->op == DT_OP_AVG) &&
        program_pick(p, 3) == 0) {
        shape->prescale = 0.5;
        shape->postscale = program_pick(p, 2) ? 4 : 1;
    }
    step->uneven =
        (kind == DT_COLL_ALLGATHER || kind == DT_COLL_REDUCE_SCATTER ||
         kind == DT_COLL_ALLTOALL) &&
        program_pick(p, 3) == 0;
    if (step->message || kind == DT_COLL_ALLTOALL)
        shape->in_place = false;
}

static size_t pick_size(struct program *p)
{
    if (program_pick(p, 50) == 0)
        return 2 + program_pick(p, MAX_RANKS - 1);
    return 2 + program_pick(p, program_pick(p, 4) ? 7 : 15);
}

void program_make(struct program *p, uint64_t seed)
{
    *p = (struct program){.seed = seed, .state = mix(seed + 1)};
    p->size = pick_size(p);
    size_t nnodes = 1 + program_pick(p, p->size);
    bool even = program_pick(p, 2);
    for (size_t r = 0; r < p->size; r++)
        p->node_of[r] = even ? r * nnodes / p->size : program_pick(p, nnodes);
    p->ncomms = 1 + program_pick(p, SIM_COMMS);
    for (size_t c = 0; c < p->ncomms; c++)
        make_comm(p, c);
    p->nsteps = 1 + program_pick(p, MAX_STEPS);
    p->depth = 2 + program_pick(p, 3);
    for (size_t i = 0; i < p->nsteps; i++)
        make_step(p, &p->steps[i]);
    p->kill_at = p->stop_at = SIZE_MAX;
    p->victim = program_pick(p, p->size);
    switch (program_pick(p, 4)) {
    case 0:
        p->kill_at = program_pick(p, 200);
        break;
    case 1:
        p->stop_at = program_pick(p, 200);
        break;
    default:
        break;
    }
}

/* ---- how much ---- */

static const struct sim_part *part_of(const struct program *p, size_t step,
                                      size_t rank)
{
    return &p->parts[p->steps[step].comm][rank];
}

/* Not all of a communicator have nothing: its rank 0 gives itself, or gets,
 * one at least. */
size_t program_count(const struct program *p, size_t step, size_t from,
                     size_t to)
{
    const struct sim_step *s = &p->steps[step];
    if (!s->uneven)
        return s->shape.count;
    bool both = s->shape.coll == DT_COLL_ALLTOALL;
    uint64_t of = s->shape.coll == DT_COLL_ALLGATHER ? from : to;
    uint64_t bits =
        mix(p->seed * 77 + step * 1009 + of * 131 + (both ? from * 8191 : 0));
    return bits % (s->shape.count + 1) + (from + to == 0 || of == 0);
}

/* Where the block of a rank of the part is, among those of all. */
static size_t first_of(const struct program *p, size_t step, size_t index)
{
    size_t first = 0;
    for (size_t i = 0; i < index; i++)
        first += program_count(p, step, i, i);
    return first;
}

size_t program_sends(const struct program *p, size_t step, size_t rank)
{
    const struct sim_step *s = &p->steps[step];
    const struct sim_part *part = part_of(p, step, rank);
    size_t n = 0;
    switch (s->shape.coll) {
    case DT_COLL_SCATTER:
    case DT_COLL_BCAST:
        if (part->rank != s->shape.root % part->size)
            return 0;
        return s->shape.count *
               (s->shape.coll == DT_COLL_SCATTER ? part->size : 1);
    case DT_COLL_REDUCE_SCATTER:
        return first_of(p, step, part->size);
    case DT_COLL_ALLTOALL:
        for (size_t i = 0; i < part->size; i++)
            n += program_count(p, step, part->rank, i);
        return n;
    default:
        return program_count(p, step, part->rank, part->rank);
    }
}

size_t program_receives(const struct program *p, size_t step, size_t rank)
{
    const struct sim_step *s = &p->steps[step];
    const struct sim_part *part = part_of(p, step, rank);
    size_t n = 0;
    switch (s->shape.coll) {
    case DT_COLL_REDUCE:
    case DT_COLL_GATHER:
        if (part->rank != s->shape.root % part->size)
            return 0;
        return s->shape.count *
               (s->shape.coll == DT_COLL_GATHER ? part->size : 1);
    case DT_COLL_ALLGATHER:
        return first_of(p, step, part->size);
    case DT_COLL_ALLTOALL:
        for (size_t i = 0; i < part->size; i++)
            n += program_count(p, step, i, part->rank);
        return n;
    default:
        return program_count(p, step, part->rank, part->rank);
    }
}

/* ---- values: whole numbers, so small that every step is exact ---- */

double program_value(const struct program *p, size_t step, size_t rank,
                     size_t i)
{
    const struct dt_shape *shape = &p->steps[step].shape;
    uint64_t bits = mix(p->seed * 31 + step * 1000003 + rank * 10007 + i);
    if (shape->op == DT_OP_PROD && reduces(shape->coll)) /* few twos */
        return bits % 5 == 0 && rank < 5 ? 2 : bits & 64 ? 1 : -1;
    if (shape->dtype == DT_DTYPE_I8)
        return (double)(bits % 3) - 1; /* 64 of them do not wrap */
    return (double)(bits % 7) - 3;
}

static double reduced(const struct program *p, size_t step,
                      const struct sim_part *part, size_t i)
{
    const struct dt_shape *shape = &p->steps[step].shape;
    double v = program_value(p, step, part->members[0], i);
    for (size_t r = 1; r < part->size; r++) {
        double w = program_value(p, step, part->members[r], i);
        v = shape->op == DT_OP_MIN    ? (w < v ? w : v)
            : shape->op == DT_OP_MAX  ? (w > v ? w : v)
            : shape->op == DT_OP_PROD ? v * w
                                      : v + w;
    }
    v *= shape->prescale;
    if (shape->op == DT_OP_AVG && shape->dtype == DT_DTYPE_F64)
        v /= (double)part->size;
    else if (shape->op == DT_OP_AVG && is_float(shape->dtype))
        v = (float)v / (float)part->size;
    else if (shape->op == DT_OP_AVG)
        v = (double)((int)v / (int)part->size);
    return v * shape->postscale;
}

double program_expects(const struct program *p, size_t step, size_t rank,
                       size_t i)
{
    const struct sim_step *s = &p->steps[step];
    const struct sim_part *part = part_of(p, step, rank);
    const size_t *members = part->members, root = s->shape.root % part->size;
    size_t from = 0, at = 0, count;
    if (s->message) /* from the one before */
        return program_value(
            p, step, members[(part->rank + part->size - 1) % part->size], i);
    switch (s->shape.coll) {
    case DT_COLL_BCAST:
        return program_value(p, step, members[root], i);
    case DT_COLL_SCATTER:
        return program_value(p, step, members[root],
                             part->rank * s->shape.count + i);
    case DT_COLL_ALLGATHER:
    case DT_COLL_GATHER:
        while (i >= (count = program_count(p, step, from, from))) {
            i -= count;
            from++;
        }
        return program_value(p, step, members[from], i);
    case DT_COLL_ALLTOALL:
        while (i >= (count = program_count(p, step, from, part->rank))) {
            i -= count;
            from++;
        }
        for (size_t to = 0; to < part->rank; to++)
            at += program_count(p, step, from, to);
        return program_value(p, step, members[from], at + i);
    case DT_COLL_REDUCE_SCATTER:
        return reduced(p, step, part, first_of(p, step, part->rank) + i);
    default:
        return reduced(p, step, part, i);
    }
}

void program_put(void *buf, dt_dtype_t dtype, size_t i, double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    switch (dtype) {
    case DT_DTYPE_I8:
        ((int8_t *)buf)[i] = (int8_t)value;
        break;
    case DT_DTYPE_I64:
        ((int64_t *)buf)[i] = (int64_t)value;
        break;
    case DT_DTYPE_F32:
        ((float *)buf)[i] = f;
        break;
    case DT_DTYPE_F64:
        ((double *)buf)[i] = value;
        break;
    case DT_DTYPE_BF16:
        ((uint16_t *)buf)[i] =
            (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        break;
    default:
        ((int32_t *)buf)[i] = (int32_t)value;
        break;
    }
}
