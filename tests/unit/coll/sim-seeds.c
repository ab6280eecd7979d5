/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim-seeds.c - random programs in the simulator: whatever the delays, the
 * order of things and the deaths, every collective is right or fails, and none
 * hangs.
 *
 *   sim-seeds.t [FIRST [LAST]]     the seeds to try, in this process */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim-program.h"
#include "../tap.h"

#define SEEDS 3000 /* by default */

/* What one operation of one rank has of its own. */
struct memory {
    char *buf[2];
    size_t *counts;
    size_t step;
    bool receives;
};

struct run {
    struct program program;
    struct sim_job job;
    struct memory memory[MAX_RANKS][MAX_OPS];
};

/* ---- before ---- */

/* The four arrays of an uneven step, those that it has. */
static void give_counts(const struct program *p, const struct memory *m,
                        size_t rank, struct dt_shape *shape)
{
    const struct sim_part *part = &p->parts[p->steps[m->step].comm][rank];
    const size_t n = part->size;
    size_t *sends = m->counts, *recvs = sends + 2 * n, from = 0, to = 0;
    bool all = shape->coll == DT_COLL_ALLTOALL;
    for (size_t i = 0; i < n; i++) {
        size_t giver = all ? part->rank : i, taker = all ? part->rank : i;
        sends[i] = program_count(p, m->step, giver, i);
        recvs[i] = program_count(p, m->step, i, taker);
        sends[n + i] = from;
        recvs[n + i] = to;
        from += sends[i];
        to += recvs[i];
    }
    shape->count = 0;
    if (all || shape->coll == DT_COLL_ALLGATHER) {
        shape->sendcounts = sends;
        shape->recvdispls = recvs + n;
    }
    if (all)
        shape->senddispls = sends + n;
    if (all || shape->coll == DT_COLL_REDUCE_SCATTER)
        shape->recvcounts = recvs;
}

/* Elements before this rank's block, in the buffer that has all blocks. */
static size_t block_at(const struct program *p, size_t step, size_t rank)
{
    const struct sim_part *part = &p->parts[p->steps[step].comm][rank];
    size_t at = 0;
    for (size_t i = 0; i < part->rank; i++)
        at += program_count(p, step, i, i);
    return at;
}

/* Both ends in one buffer, as dt.h says for each collective. */
static void put_in_place(const struct program *p, const struct memory *m,
                         size_t rank, struct sim_op *op)
{
    size_t elem = dt_dtype_size(op->shape.dtype);
    size_t at = block_at(p, m->step, rank) * elem;
    switch (op->shape.coll) {
    case DT_COLL_ALLGATHER:
    case DT_COLL_GATHER:
        op->send = m->buf[1] + at;
        break;
    case DT_COLL_REDUCE_SCATTER:
    case DT_COLL_SCATTER:
        op->recv = m->buf[0] + at;
        break;
    default:
        op->send = op->recv;
        break;
    }
}

static void prepare_op(struct run *run, size_t r, size_t step, bool sends,
                       bool receives)
{
    const struct program *p = &run->program;
    const struct sim_step *s = &p->steps[step];
    const struct sim_part *part = &p->parts[s->comm][r];
    size_t in = sends ? program_sends(p, step, r) : 0;
    size_t out = receives ? program_receives(p, step, r) : 0;
    size_t number = run->job.nops[r]++;
    struct sim_op *op = &run->job.ops[r][number];
    struct memory *m = &run->memory[r][number];
    op->shape = s->shape;
    op->comm = s->comm;
    op->shape.root %= part->size;
    *m = (struct memory){.step = step, .receives = receives};
    m->buf[0] = malloc(in * 8 + 8);
    m->buf[1] = malloc(out * 8 + 8);
    memset(m->buf[1], 0x5a, out * 8 + 8);
    op->send = m->buf[0];
    op->recv = m->buf[1];
    if (s->uneven) {
        m->counts = calloc(4 * part->size, sizeof(*m->counts));
        give_counts(p, m, r, &op->shape);
    }
    bool rooted = s->shape.coll == DT_COLL_REDUCE ||
                  s->shape.coll == DT_COLL_GATHER ||
                  s->shape.coll == DT_COLL_SCATTER;
    if (s->shape.coll == DT_COLL_BCAST)
        op->shape.in_place = true;
    else if (rooted && part->rank != op->shape.root)
        op->shape.in_place = false;
    if (op->shape.in_place)
        put_in_place(p, m, r, op);
    for (size_t k = 0; k < in; k++)
        program_put(op->send, s->shape.dtype, k, program_value(p, step, r, k));
}

static void prepare(struct run *run, size_t r)
{
    const struct program *p = &run->program;
    for (size_t i = 0; i < p->nsteps; i++) {
        const struct sim_part *part = &p->parts[p->steps[i].comm][r];
        if (!p->steps[i].message) {
            prepare_op(run, r, i, true, true);
            continue;
        }
        if (part->size == 1)
            continue;
        for (int receives = 1; receives >= 0; receives--) {
            prepare_op(run, r, i, !receives, receives);
            struct dt_shape *shape =
                &run->job.ops[r][run->job.nops[r] - 1].shape;
            shape->coll = receives ? DT_COLL_RECV : DT_COLL_SEND;
            shape->root =
                (part->rank + (receives ? part->size - 1 : 1)) % part->size;
        }
    }
}

/* ---- after ---- */

static bool right(const struct run *run, size_t r, size_t i)
{
    const struct program *p = &run->program;
    const struct memory *m = &run->memory[r][i];
    dt_dtype_t dtype = p->steps[m->step].shape.dtype;
    size_t elem = dt_dtype_size(dtype);
    size_t n = m->receives ? program_receives(p, m->step, r) : 0;
    for (size_t k = 0; k < n; k++) {
        char want[8];
        program_put(want, dtype, 0, program_expects(p, m->step, r, k));
        if (memcmp(want, (char *)run->job.ops[r][i].recv + k * elem, elem)) {
            diag("seed %llu: step %zu (%d) of %zu elements, rank %zu, "
                 "element %zu is wrong",
                 (unsigned long long)p->seed, m->step,
                 (int)p->steps[m->step].shape.coll, n, r, k);
            return false;
        }
    }
    return true;
}

static bool judge(const struct run *run)
{
    const struct program *p = &run->program;
    bool quiet = p->kill_at == SIZE_MAX && p->stop_at == SIZE_MAX;
    for (size_t r = 0; r < p->size; r++)
        for (size_t i = 0; i < run->job.nops[r] && !run->job.dead[r]; i++) {
            const struct sim_op *op = &run->job.ops[r][i];
            if (op->result == DT_SUCCESS ? !right(run, r, i) : quiet) {
                diag("seed %llu: rank %zu of %zu, operation %zu (%d): %s, kill "
                     "%zd stop %zd",
                     (unsigned long long)p->seed, r, p->size, i,
                     (int)op->shape.coll, dt_strerror(op->result),
                     (ssize_t)p->kill_at, (ssize_t)p->stop_at);
                return false;
            }
        }
    return true;
}

/* Who waits for what. */
static void explain(const struct run *run)
{
    const struct program *p = &run->program;
    const struct sim_job *job = &run->job;
    diag("seed %llu hangs: %zu ranks, %zu steps, kill %zd, stop %zd, "
         "victim %zu",
         (unsigned long long)p->seed, p->size, p->nsteps, (ssize_t)p->kill_at,
         (ssize_t)p->stop_at, p->victim);
    for (size_t r = 0; r < p->size; r++)
        for (size_t i = 0; i < job->begun[r] && !job->dead[r]; i++) {
            const struct dt_request *q = job->ops[r][i].request;
            if (q)
                diag(
                    "  rank %zu on node %zu: operation %zu (%d, %zu "
                    "elements): %zu operations left, %zu in flight, %zu on the "
                    "board, %llu of %llu rounds released",
                    r, p->node_of[r], i, (int)q->shape.coll, q->shape.count,
                    q->left, q->nflight, q->nwatch,
                    (unsigned long long)q->released,
                    (unsigned long long)q->rounds);
        }
}

static bool open_all(struct run *run, const struct dt_sim_config *config)
{
    const struct program *p = &run->program;
    bool good = sim_job_open(&run->job, config, MAX_OPS, p->depth);
    for (size_t r = 0; good && r < p->size; r++) {
        for (size_t c = 1; good && c < p->ncomms; c++)
            good = sim_job_comm(&run->job, r, c, p->parts[c][r].members,
                                p->parts[c][r].size);
        prepare(run, r);
    }
    return good;
}

static bool run_seed(struct run *run, uint64_t seed)
{
    struct program *p = &run->program;
    program_make(p, seed);
    const struct dt_sim_config config = {.size = p->size,
                                         .node_of = p->node_of,
                                         .seed = seed,
                                         .node_latency = 1e-6,
                                         .node_byte = 1e-10,
                                         .net_latency = 1e-5,
                                         .net_byte = 1e-9,
                                         .jitter = (double)program_pick(p, 5),
                                         .lost = 0.02,
                                         .resend = 1e-3,
                                         .rounds_room = 8};
    memset(run->memory, 0, sizeof(run->memory));
    bool good = open_all(run, &config);
    if (good && !sim_job_run(&run->job, p->kill_at, p->stop_at, p->victim)) {
        explain(run);
        good = false;
    }
    good = good && judge(run);
    sim_job_close(&run->job);
    for (size_t r = 0; r < p->size; r++)
        for (size_t i = 0; i < MAX_OPS; i++) {
            free(run->memory[r][i].buf[0]);
            free(run->memory[r][i].buf[1]);
            free(run->memory[r][i].counts);
        }
    return good;
}

int main(int argc, char **argv)
{
    static struct run run;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t last = argc > 2   ? strtoull(argv[2], NULL, 10)
                    : argc > 1 ? first
                               : SEEDS;
    size_t bad = 0;
    for (uint64_t seed = first; seed <= last && bad < 10; seed++)
        bad += !run_seed(&run, seed);
    ok(!bad, "seeds %llu to %llu: right or failed, none hangs",
       (unsigned long long)first, (unsigned long long)last);
    return tap_done();
}
