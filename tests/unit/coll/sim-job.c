/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim-job.c - a job in the simulator. */
#include "sim-job.h"

#include <stdlib.h>

/* There is no launcher. */
static const struct dt_boot_ops boot_ops;
static struct dt_boot boot = {.ops = &boot_ops};

static bool open_rank(struct sim_job *job, size_t r, const size_t *node_of,
                      size_t room)
{
    struct dt_world *world = &job->worlds[r];
    struct dt_error err;
    world->rank = r;
    world->size = job->size;
    world->boot = &boot;
    world->timeout = 1;
    world->tune = dt_tune_default;
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        world->tl[i] = dt_sim_tl(job->sim, r);
    pthread_mutex_init(&world->lock, NULL);
    job->ops[r] = calloc(room + 1, sizeof(*job->ops[r]));
    return job->ops[r] &&
           dt_layout_init(&world->layout, r, job->size, node_of, &err) ==
               DT_SUCCESS &&
           sim_job_comm(job, r, 0, NULL, job->size);
}

bool sim_job_comm(struct sim_job *job, size_t rank, size_t comm,
                  const size_t *members, size_t n)
{
    struct dt_error err;
    return dt_comm_open(&job->worlds[rank], members, n, (uint32_t)comm,
                        comm + 1, &job->comms[rank][comm], &err) == DT_SUCCESS;
}

bool sim_job_open(struct sim_job *job, const struct dt_sim_config *config,
                  size_t room, size_t depth)
{
    size_t n = config->size;
    struct dt_error err;
    *job = (struct sim_job){.size = n, .depth = depth};
    job->worlds = calloc(n, sizeof(*job->worlds));
    job->comms = calloc(n, sizeof(*job->comms));
    job->nops = calloc(n, sizeof(*job->nops));
    job->dead = calloc(n, sizeof(*job->dead));
    job->ops = calloc(n, sizeof(struct sim_op *));
    job->begun = calloc(n, sizeof(*job->begun));
    if (!job->worlds || !job->comms || !job->nops || !job->dead || !job->ops ||
        !job->begun || dt_sim_open(config, &job->sim, &err) != DT_SUCCESS)
        return false;
    for (size_t r = 0; r < n; r++)
        if (!open_rank(job, r, config->node_of, room))
            return false;
    return true;
}

void sim_job_close(struct sim_job *job)
{
    for (size_t r = 0; job->sim && r < job->size; r++)
        dt_sim_kill(job->sim, r); /* nothing of it is looked at any more */
    for (size_t r = 0; job->comms && r < job->size; r++) {
        for (size_t c = 0; c < SIM_COMMS; c++)
            dt_comm_close(job->comms[r][c]);
        free(job->ops[r]);
        dt_layout_fini(&job->worlds[r].layout);
        pthread_mutex_destroy(&job->worlds[r].lock);
    }
    dt_sim_close(job->sim);
    free(job->worlds);
    free(job->comms);
    free(job->nops);
    free(job->dead);
    free(job->ops);
    free(job->begun);
}

static void finish(struct sim_job *job, size_t r, struct sim_op *op)
{
    struct dt_error err;
    dt_result_t rc = dt_comm_test(job->comms[r][op->comm], op->request, &err);
    if (rc == DT_IN_PROGRESS)
        return;
    op->request = NULL;
    op->over = true;
    op->result = rc;
}

/* Begin the next, as deep as may be. */
static void begin(struct sim_job *job, size_t r)
{
    struct dt_error err;
    size_t open = 0;
    for (size_t i = 0; i < job->begun[r]; i++)
        open += !job->ops[r][i].over;
    for (; open < job->depth && job->begun[r] < job->nops[r]; open++) {
        struct sim_op *op = &job->ops[r][job->begun[r]++];
        op->result = dt_comm_start(job->comms[r][op->comm], &op->shape,
                                   op->send, op->recv, &op->request, &err);
        op->over = op->result != DT_SUCCESS;
    }
}

static void progress(struct sim_job *job, size_t r)
{
    if (job->dead[r])
        return;
    for (;;) {
        size_t left = 0, begun = job->begun[r];
        for (size_t i = 0; i < begun; i++) {
            struct sim_op *op = &job->ops[r][i];
            if (!op->over)
                finish(job, r, op);
            left += !op->over;
        }
        begin(job, r);
        if (job->begun[r] == begun)
            return;
    }
}

static bool rank_over(const struct sim_job *job, size_t r)
{
    for (size_t i = 0; i < job->nops[r] && !job->dead[r]; i++)
        if (!job->ops[r][i].over)
            return false;
    return true;
}

/* Nothing moves any more: those who wait look around. true: that helped. */
static bool look(struct sim_job *job)
{
    bool helped = false;
    for (size_t r = 0; r < job->size; r++) {
        struct dt_world *world = &job->worlds[r];
        if (rank_over(job, r))
            continue;
        dt_world_lock(world);
        dt_world_check(world);
        dt_world_unlock(world);
        if (world->failure == DT_SUCCESS)
            continue;
        progress(job, r);
        helped |= rank_over(job, r);
    }
    return helped;
}

/* One of those who wait has waited too long. */
static bool time_out(struct sim_job *job)
{
    for (size_t r = 0; r < job->size; r++) {
        struct dt_world *world = &job->worlds[r];
        if (rank_over(job, r) || world->failure != DT_SUCCESS)
            continue;
        struct dt_error err = {"too late"};
        dt_world_lock(world);
        dt_world_fail(world, DT_ERR_TIMED_OUT, &err);
        dt_world_unlock(world);
        progress(job, r);
        return true;
    }
    return false;
}

static bool all_over(const struct sim_job *job)
{
    for (size_t r = 0; r < job->size; r++)
        if (!rank_over(job, r))
            return false;
    return true;
}

bool sim_job_run(struct sim_job *job, size_t kill_at, size_t stop_at,
                 size_t victim)
{
    bool silent = false;
    for (size_t r = 0; r < job->size; r++)
        progress(job, r);
    for (size_t events = 0; !all_over(job); events++) {
        if (events == kill_at) {
            dt_sim_kill(job->sim, victim);
            job->dead[victim] = true;
        }
        if (events == stop_at) {
            silent = true;
            job->dead[victim] = true;
        }
        size_t r = dt_sim_step(job->sim);
        if (r != DT_SIM_OVER)
            progress(job, r);
        else if (events < kill_at && kill_at != SIZE_MAX)
            events = kill_at - 1;
        else if (events < stop_at && stop_at != SIZE_MAX)
            events = stop_at - 1;
        else if (!look(job) && !(silent && time_out(job)))
            return all_over(job);
    }
    return true;
}
