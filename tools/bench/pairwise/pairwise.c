/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pairwise.c - measure all pairs of nodes, and all pairs of ranks of a node. */
#include "pairwise/pairwise.h"

#include <stdlib.h>
#include <string.h>

#include "measure/pingpong.h"

/* At most so many pairs that look slow are measured again, alone. */
enum { SUSPECTS = 64 };

/* The players: the node leaders, or the ranks of one node. */
struct players {
    const struct job *job;
    int node;   /* the node whose ranks these are; -1: node leaders */
    int n, me;  /* me is -1 on ranks that are not players */
    int rounds; /* the largest number on any node */
    char *buf;
};

static int rank_of(const struct players *players, int player)
{
    const struct job *job = players->job;
    return players->node < 0 ? job->first[player]
                             : job_rank_of(job, players->node, player);
}

/* ---- one pair ---- */

static dt_result_t meet(const struct players *players, int other,
                        struct pairs *pairs, struct dt_error *err)
{
    const struct job *job = players->job;
    int me = players->me, n = pairs->n, peer = rank_of(players, other);
    bool first = me < other;
    double *us = &pairs->us[me * n + other];
    double *gbs = &pairs->gbs[me * n + other];
    dt_result_t rc = pingpong(job, peer, first, us, err);
    if (first)
        pairs->us[other * n + me] = *us;
    if (rc == DT_SUCCESS)
        rc = stream(job, players->buf, peer, first, gbs, err);
    if (rc == DT_SUCCESS)
        rc = stream(job, players->buf, peer, !first, gbs, err);
    return rc;
}

static dt_result_t meet_all(const struct players *players, bool alone,
                            struct pairs *pairs, struct dt_error *err)
{
    dt_result_t rc = job_barrier(players->job, err);
    for (int round = 0; rc == DT_SUCCESS && round < players->rounds; round++) {
        int other = -1;
        if (players->me >= 0 && round < pairs_rounds(players->n, alone))
            other = pairs_partner(players->n, alone, round, players->me);
        if (other >= 0)
            rc = meet(players, other, pairs, err);
        if (rc == DT_SUCCESS)
            rc = job_barrier(players->job, err);
        progress_show("%s, round %d of %d",
                      players->node < 0 ? "nodes" : "ranks of a node",
                      round + 1, players->rounds);
    }
    return rc;
}

/* ---- all pairs ---- */

static dt_result_t pairs_make(struct pairs *pairs, int n, struct dt_error *err)
{
    *pairs = (struct pairs){.n = n};
    if (!n)
        return DT_SUCCESS;
    pairs->us = calloc((size_t)n * (size_t)n, sizeof(*pairs->us));
    pairs->gbs = calloc((size_t)n * (size_t)n, sizeof(*pairs->gbs));
    if (!pairs->us || !pairs->gbs)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for %d x %d pairs", n, n);
    return DT_SUCCESS;
}

static void pairs_clear(struct pairs *pairs)
{
    free(pairs->us);
    free(pairs->gbs);
    *pairs = (struct pairs){0};
}

/* Combine what the ranks have measured: an entry is 0 on all ranks but one. */
static dt_result_t unite(const struct job *job, struct pairs *pairs,
                         struct dt_error *err)
{
    size_t n = (size_t)pairs->n * (size_t)pairs->n;
    dt_result_t rc = n ? job_sum(job, pairs->us, n, err) : DT_SUCCESS;
    return rc == DT_SUCCESS && n ? job_sum(job, pairs->gbs, n, err) : rc;
}

/* Measure a pair again: other pairs may have slowed it down. */
static dt_result_t try_again(const struct players *players, int one, int two,
                             struct pairs *pairs, struct dt_error *err)
{
    int n = pairs->n, way[] = {one * n + two, two * n + one};
    double us[2], gbs[2];
    for (int i = 0; i < 2; i++) {
        us[i] = pairs->us[way[i]];
        gbs[i] = pairs->gbs[way[i]];
        pairs->us[way[i]] = pairs->gbs[way[i]] = 0;
    }
    dt_result_t rc = DT_SUCCESS;
    if (players->me == one || players->me == two)
        rc = meet(players, players->me == one ? two : one, pairs, err);
    for (int i = 0; rc == DT_SUCCESS && i < 2; i++) {
        rc = job_sum(players->job, &pairs->us[way[i]], 1, err);
        if (rc == DT_SUCCESS)
            rc = job_sum(players->job, &pairs->gbs[way[i]], 1, err);
        if (us[i] < pairs->us[way[i]])
            pairs->us[way[i]] = us[i];
        if (gbs[i] > pairs->gbs[way[i]])
            pairs->gbs[way[i]] = gbs[i];
    }
    return rc;
}

static bool suspect(const struct pairs *pairs, int one, int two)
{
    return pairs_slow(pairs, one, two) || pairs_slow(pairs, two, one) ||
           pairs_late(pairs, one, two);
}

static dt_result_t settle(struct pairs *pairs, struct dt_error *err)
{
    return pairs_settle(pairs) ? DT_SUCCESS
                               : dt_error_set(err, DT_ERR_NO_MEMORY,
                                              "no memory to compare the pairs");
}

/* Check the combined matrices and measure outliers again; the same on all
 * ranks.
 */
static dt_result_t look_through(const struct players *players,
                                struct pairs *pairs, struct dt_error *err)
{
    int tried = 0;
    dt_result_t rc = job_agree(players->job, settle(pairs, err), err);
    for (int one = 0; rc == DT_SUCCESS && one < pairs->n; one++)
        for (int two = one + 1; rc == DT_SUCCESS && two < pairs->n; two++)
            if (suspect(pairs, one, two) && tried++ < SUSPECTS) {
                progress_show("once more: %d and %d", rank_of(players, one),
                              rank_of(players, two));
                rc = try_again(players, one, two, pairs, err);
            }
    return rc == DT_SUCCESS ? settle(pairs, err) : rc;
}

static dt_result_t among_nodes(const struct players *players, bool alone,
                               struct pairs *pairs, struct dt_error *err)
{
    dt_result_t rc = meet_all(players, alone, pairs, err);
    if (rc == DT_SUCCESS)
        rc = unite(players->job, pairs, err);
    return rc == DT_SUCCESS ? look_through(players, pairs, err) : rc;
}

/* All nodes measure at the same time; all ranks get all results. */
static dt_result_t among_ranks(const struct players *players, bool alone,
                               struct pairs *within, struct dt_error *err)
{
    const struct job *job = players->job;
    dt_result_t rc = meet_all(players, alone, &within[job->node], err);
    for (int node = 0; rc == DT_SUCCESS && node < job->nodes; node++) {
        struct players theirs = *players;
        theirs.node = node;
        theirs.me = node == job->node ? players->me : -1;
        rc = unite(job, &within[node], err);
        if (rc == DT_SUCCESS)
            rc = look_through(&theirs, &within[node], err);
    }
    return rc;
}

/* ---- the whole ---- */

static int ranks_of_node(const struct job *job, int node)
{
    int n = 0;
    for (int r = 0; r < job->size; r++)
        n += job->place[r].node == node;
    return n;
}

static dt_result_t make(struct matrices *matrices, char **buf,
                        struct dt_error *err)
{
    const struct job *job = matrices->job;
    *buf = calloc(1, STREAM_BYTES);
    matrices->within = calloc((size_t)job->nodes, sizeof(*matrices->within));
    if (!*buf || !matrices->within)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for the messages");
    memset(*buf, 1, STREAM_BYTES);
    dt_result_t rc = pairs_make(&matrices->nodes, job->nodes, err);
    for (int node = 0; rc == DT_SUCCESS && node < job->nodes; node++) {
        int n = ranks_of_node(job, node);
        rc = pairs_make(&matrices->within[node], n > 1 ? n : 0, err);
    }
    return rc;
}

static dt_result_t measure(struct matrices *matrices, char *buf,
                           struct dt_error *err)
{
    const struct job *job = matrices->job;
    int most = 0;
    progress_start(job->rank == 0, PROGRESS_US);
    for (int node = 0; node < job->nodes; node++)
        if (matrices->within[node].n > most)
            most = matrices->within[node].n;
    const struct players nodes = {.job = job,
                                  .node = -1,
                                  .n = job->nodes,
                                  .me = job->local_rank == 0 ? job->node : -1,
                                  .rounds =
                                      pairs_rounds(job->nodes, matrices->alone),
                                  .buf = buf};
    const struct players ranks = {.job = job,
                                  .node = job->node,
                                  .n = job->local_size,
                                  .me = job->local_rank,
                                  .rounds = pairs_rounds(most, matrices->alone),
                                  .buf = buf};
    dt_result_t rc =
        among_nodes(&nodes, matrices->alone, &matrices->nodes, err);
    if (rc == DT_SUCCESS)
        rc = among_ranks(&ranks, matrices->alone, matrices->within, err);
    progress_clear();
    return rc;
}

static dt_result_t print(const struct options *options,
                         const struct matrices *matrices, struct dt_error *err)
{
    if (matrices->job->rank != 0)
        return DT_SUCCESS;
    if (options->json)
        return matrices_json(stdout, matrices, err);
    matrices_print(stdout, matrices);
    return DT_SUCCESS;
}

dt_result_t pairwise_run(const struct options *options, const struct job *job,
                         struct dt_error *err)
{
    struct matrices matrices = {.job = job, .alone = options->alone};
    char *buf = NULL;
    if (job->size < 2)
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "--pairwise: expected two ranks or more: start it with "
            "srun -N2 or more");
    if (options->memory == MEMORY_CUDA)
        return pairwise_gpu_run(options, job, err);
    dt_result_t rc = job_agree(job, make(&matrices, &buf, err), err);
    if (rc == DT_SUCCESS)
        rc = measure(&matrices, buf, err);
    if (rc == DT_SUCCESS)
        rc = print(options, &matrices, err);
    free(buf);
    pairs_clear(&matrices.nodes);
    for (int node = 0; matrices.within && node < job->nodes; node++)
        pairs_clear(&matrices.within[node]);
    free(matrices.within);
    return rc;
}
