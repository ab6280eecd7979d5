/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* limit.c - measure the limits of this machine. */
#include "measure/limit.h"

#include <stdlib.h>
#include <string.h>

#include "measure/pingpong.h"

/* LONG is the size of long messages. A measurement takes about SHORT_US in
 * BATCHES, of which the fastest counts. */
enum { LONG = 4 << 20, SHORT_US = 30000, MOST = 1000, BATCHES = 3 };

/* ---- copying ---- */

/* us for one copy of bytes, which all ranks do at the same time. */
static dt_result_t time_copy(const struct bench *bench, size_t bytes,
                             double *us, struct dt_error *err)
{
    const struct buffers *buffers = &bench->buffers;
    double best = 0;
    memcpy(buffers->b, buffers->a, bytes);
    for (int batch = 0; batch < BATCHES; batch++) {
        dt_result_t rc = job_barrier(bench->job, err);
        if (rc != DT_SUCCESS)
            return rc;
        double start = now_us(), time;
        int n = 0;
        do {
            memcpy(buffers->b, buffers->a, bytes);
            __asm__ volatile("" ::"r"(buffers->b) : "memory");
            time = now_us() - start;
        } while (++n < MOST && time < SHORT_US / BATCHES / 4);
        if (!batch || time / n < best)
            best = time / n;
    }
    *us = best;
    return job_max(bench->job, us, 1, err);
}

/* ---- between nodes ---- */

/* The first `ranks` local ranks of each node send to the next node, all at the
 * same time. */
static dt_result_t shift(const struct job *job, char *buf, int ranks,
                         struct dt_error *err)
{
    int next = job_rank_of(job, (job->node + 1) % job->nodes, job->local_rank);
    int before = job_rank_of(job, (job->node + job->nodes - 1) % job->nodes,
                             job->local_rank);
    if (job->local_rank >= ranks)
        return DT_SUCCESS;
    dt_result_t rc = dt_group_start();
    if (rc == DT_SUCCESS)
        rc = dt_send(buf, LONG, DT_DTYPE_U8, next, job->comm, DT_STREAM_NONE);
    if (rc == DT_SUCCESS)
        rc = dt_recv(buf + LONG, LONG, DT_DTYPE_U8, before, job->comm,
                     DT_STREAM_NONE);
    if (rc == DT_SUCCESS)
        rc = dt_group_end();
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}

static dt_result_t time_shifts(const struct job *job, char *buf, int ranks,
                               int n, double *us, struct dt_error *err)
{
    dt_result_t rc = job_barrier(job, err);
    double start = now_us();
    for (int i = 0; rc == DT_SUCCESS && i < n; i++)
        rc = shift(job, buf, ranks, err);
    *us = (now_us() - start) / n;
    return rc == DT_SUCCESS ? job_max(job, us, 1, err) : rc;
}

static dt_result_t rate_of(const struct job *job, char *buf, int ranks,
                           double *rate, struct dt_error *err)
{
    double us = 0, best = 0;
    dt_result_t rc = time_shifts(job, buf, ranks, 1, &us, err);
    double enough = us > 0 ? SHORT_US / us : 1;
    int n = enough < 1 ? 1 : enough > MOST ? MOST : (int)enough;
    for (int batch = 0; rc == DT_SUCCESS && batch < BATCHES; batch++) {
        rc = time_shifts(job, buf, ranks, n, &us, err);
        if (!batch || us < best)
            best = us;
    }
    if (rc == DT_SUCCESS && best > 0)
        *rate = (double)ranks * LONG / best / 1e3;
    return rc;
}

static dt_result_t measure_links(const struct job *job, struct limit *limit,
                                 struct dt_error *err)
{
    char *buf = calloc(2, LONG);
    dt_result_t rc = DT_SUCCESS;
    if (!buf)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for long messages");
    rc = job_agree(job, rc, err);
    if (rc == DT_SUCCESS)
        rc = pingpong_nodes(job, &limit->link_us, err);
    if (rc == DT_SUCCESS)
        rc = rate_of(job, buf, 1, &limit->link, err);
    limit->rails = limit->link;
    if (rc == DT_SUCCESS && job->least_local > 1)
        rc = rate_of(job, buf, job->least_local, &limit->rails, err);
    if (limit->link > limit->rails) /* one rank fills it */
        limit->rails = limit->link;
    free(buf);
    return rc;
}

dt_result_t limit_measure(const struct bench *bench, struct limit *limit,
                          struct dt_error *err)
{
    double us = 0;
    *limit = (struct limit){.copy_bytes = bench->buffers.bytes};
    dt_result_t rc = pingpong_cores(bench->job, &limit->core_us, err);
    if (rc == DT_SUCCESS)
        rc = time_copy(bench, limit->copy_bytes, &us, err);
    if (rc == DT_SUCCESS && us > 0)
        limit->copy = (double)limit->copy_bytes / us / 1e3;
    if (rc == DT_SUCCESS && bench->job->nodes > 1)
        rc = measure_links(bench->job, limit, err);
    return rc;
}

/* ---- a row ---- */

/* Bytes that a rank reads and writes, in copies of a row's size. */
static double copies(const struct operation *operation, int ranks)
{
    bool one_is_part = operation->parts_sent != operation->parts_received;
    return one_is_part ? (1 + 1.0 / ranks) / 2 : 1;
}

/* For sendrecv: the ranks of one node whose next rank is on another node. */
static int most_leaving(const struct job *job)
{
    int most = 0;
    for (int node = 0; node < job->nodes; node++) {
        int leaving = 0;
        for (int r = 0; r < job->size; r++)
            leaving += job->place[r].node == node &&
                       job->place[(r + 1) % job->size].node != node;
        if (leaving > most)
            most = leaving;
    }
    return most;
}

/* Bytes that leave or enter a node, in messages of a row's size. */
static double crossings(const struct operation *operation,
                        const struct job *job)
{
    double others = (double)(job->nodes - 1) / job->nodes;
    int local = job->most_local;
    if (job->nodes == 1)
        return 0;
    if (operation->parts_sent && operation->parts_received)
        return local * (double)(job->size - local) / job->size;
    if (operation->split)
        return others;
    if (operation->data == DATA_MOVED && !operation->rooted)
        return most_leaving(job);
    return operation->rooted ? 1 : 2 * others;
}

static int doublings(int nodes)
{
    int n = 0;
    while (1 << n < nodes)
        n++;
    return n;
}

dt_result_t limit_row(const struct bench *bench, const struct limit *limit,
                      const struct row *row, double *us, struct dt_error *err)
{
    const struct operation *operation = bench->options->operation;
    const struct job *job = bench->job;
    double memory = 0, net = 0;
    if (operation->data != DATA_NONE) {
        dt_result_t rc = time_copy(bench, row->bytes, &memory, err);
        if (rc != DT_SUCCESS)
            return rc;
        memory *= copies(operation, job->size);
        if (limit->rails > 0)
            net = crossings(operation, job) * (double)row->bytes /
                  limit->rails / 1e3;
    }
    *us = (job->most_local > 1 ? limit->core_us : 0) +
          limit->link_us * doublings(job->nodes) +
          (net > memory ? net : memory);
    return DT_SUCCESS;
}

void limit_print(FILE *out, const struct limit *limit)
{
    char text[32], more[32];
    if (limit->core_us > 0)
        fprintf(out, "# limit: a flag from core to core, %s\n",
                time_text(text, limit->core_us));
    fprintf(out, "# limit: copying %s, all ranks at once, %s each\n",
            size_text(text, limit->copy_bytes), rate_text(more, limit->copy));
    if (limit->link > 0) {
        fprintf(out, "# limit: a message from node to node, %s\n",
                time_text(text, limit->link_us));
        fprintf(out, "# limit: out of a node, %s by one rank, %s by all\n",
                rate_text(text, limit->link), rate_text(more, limit->rails));
    }
}
