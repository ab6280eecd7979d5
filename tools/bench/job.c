/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.c - the ranks of the job, where they run, and reductions over them. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* ---- where this rank is ---- */

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = from ? strlen(from) : 0;
    if (len < size)
        memcpy(to, from ? from : "", len + 1);
    else
        snprintf(to, size, "%.*s...", (int)size - 4, from);
    for (; *to; to++)
        if (*to < ' ' || *to > '~')
            *to = '?';
}

static void print_cpus(char *text, size_t size)
{
    char list[512] = "";
    cpu_set_t set;
    size_t len = 0;
    if (sched_getaffinity(0, sizeof(set), &set))
        CPU_ZERO(&set);
    for (int i = 0, last; i < CPU_SETSIZE && len < size; i = last + 1) {
        last = i;
        if (!CPU_ISSET(i, &set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
            last++;
        len += (size_t)snprintf(list + len, sizeof(list) - len,
                                last > i ? "%s%d-%d" : "%s%d", len ? "," : "",
                                i, last);
    }
    copy_text(text, size, list);
}

static void find_place(struct place *place)
{
    char host[256] = "";
    const char *node = getenv("SLURMD_NODENAME");
    memset(place, 0, sizeof(*place));
    gethostname(host, sizeof(host) - 1);
    copy_text(place->host, sizeof(place->host), node && *node ? node : host);
    print_cpus(place->cpus, sizeof(place->cpus));
    copy_text(place->gpus, sizeof(place->gpus), getenv("DT_GPUS"));
    copy_text(place->nics, sizeof(place->nics), getenv("DT_NICS"));
    place->pid = (int32_t)getpid();
    place->node = dt_node_rank();
    place->local_rank = dt_local_rank();
}

/* ---- reductions ---- */

static dt_result_t all_of(const struct job *job, double *value, size_t n,
                          dt_op_t op, struct dt_error *err)
{
    dt_result_t rc = dt_allreduce(value, value, n, DT_DTYPE_F64, op, job->comm,
                                  DT_STREAM_NONE);
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}

dt_result_t job_max(const struct job *job, double *value, size_t n,
                    struct dt_error *err)
{
    return all_of(job, value, n, DT_OP_MAX, err);
}

dt_result_t job_sum(const struct job *job, double *value, size_t n,
                    struct dt_error *err)
{
    return all_of(job, value, n, DT_OP_SUM, err);
}

dt_result_t job_agree(const struct job *job, dt_result_t result,
                      struct dt_error *err)
{
    int32_t mine = (int32_t)result, worst = 0;
    dt_result_t rc = dt_allreduce(&mine, &worst, 1, DT_DTYPE_I32, DT_OP_MIN,
                                  job->comm, DT_STREAM_NONE);
    if (rc != DT_SUCCESS)
        return fail_in_libdt(err, rc);
    return (dt_result_t)worst;
}

dt_result_t job_barrier(const struct job *job, struct dt_error *err)
{
    dt_result_t rc = dt_barrier(job->comm, DT_STREAM_NONE);
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}

/* ---- the ranks ---- */

static void index_nodes(struct job *job)
{
    job->least_local = job->size;
    for (int i = 0; i < job->nodes; i++) {
        int ranks = 0;
        for (int r = 0; r < job->size; r++) {
            if (job->place[r].node != i)
                continue;
            ranks++;
            if (!job->place[r].local_rank)
                job->first[i] = r;
        }
        if (ranks < job->least_local)
            job->least_local = ranks;
        if (ranks > job->most_local)
            job->most_local = ranks;
    }
}

/* Make the names of nodes unique: simulated nodes share a host. */
static void name_nodes(struct job *job)
{
    char text[sizeof(job->place->host)];
    if (job->nodes < 2 || strcmp(job_node_name(job, 0), job_node_name(job, 1)))
        return;
    for (int r = 0; r < job->size; r++) {
        snprintf(text, sizeof(text), "%.40s/%d", job->place[r].host,
                 job->place[r].node);
        memcpy(job->place[r].host, text, sizeof(text));
    }
}

dt_result_t job_make(struct job *job, struct dt_error *err)
{
    struct place mine;
    *job = (struct job){.comm = dt_comm_world(),
                        .rank = dt_rank(),
                        .size = dt_size(),
                        .node = dt_node_rank(),
                        .nodes = dt_num_nodes(),
                        .local_rank = dt_local_rank(),
                        .local_size = dt_local_size()};
    job->place = calloc((size_t)job->size, sizeof(*job->place));
    job->first = calloc((size_t)job->nodes, sizeof(*job->first));
    dt_result_t rc = DT_SUCCESS;
    if (!job->place || !job->first)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to begin with");
    rc = job_agree(job, rc, err);
    if (rc == DT_SUCCESS) {
        find_place(&mine);
        rc = dt_allgather(&mine, job->place, sizeof(mine) / sizeof(int32_t),
                          DT_DTYPE_I32, job->comm, DT_STREAM_NONE);
        if (rc != DT_SUCCESS)
            fail_in_libdt(err, rc);
    }
    if (rc != DT_SUCCESS) {
        job_clear(job);
        return rc;
    }
    index_nodes(job);
    name_nodes(job);
    return DT_SUCCESS;
}

void job_clear(struct job *job)
{
    free(job->place);
    free(job->first);
    *job = (struct job){0};
}

int job_rank_of(const struct job *job, int node, int local_rank)
{
    for (int r = 0; r < job->size; r++)
        if (job->place[r].node == node &&
            job->place[r].local_rank == local_rank)
            return r;
    return -1;
}

const char *job_node_name(const struct job *job, int node)
{
    return job->place[job->first[node]].host;
}
