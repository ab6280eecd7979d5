/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stall.c - who waits for whom. */
#include "grad/stall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "coll/engine/engine.h"
#include "grad/entry.h"

/* What one rank tells. */
struct waits {
    double seconds; /* 0: it waits for nothing */
    char name[248];
};

struct dt_stall {
    dt_comm_t comm;
    dt_request_t request; /* the exchange that is under way */
    bool under_way;
    int64_t started; /* exchanges */
    double next;
    struct waits *all; /* [size] */
};

dt_result_t dt_stall_open(struct dt_grad *grad, struct dt_error *err)
{
    if (grad->options.stall_seconds < 0 && grad->options.stall_fatal <= 0)
        return DT_SUCCESS;
    struct dt_stall *stall = calloc(1, sizeof(*stall));
    if (stall)
        stall->all = calloc((size_t)dt_size(), sizeof(*stall->all));
    if (!stall || !stall->all) {
        free(stall);
        return dt_no_memory(err);
    }
    grad->stall = stall;
    stall->next = dt_grad_now();
    dt_result_t rc = dt_comm_split(grad->world, 0, dt_rank(), &stall->comm);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

/* ---- what this rank waits for ---- */

static void note(struct waits *mine, const char *name, double since, double now)
{
    if (now - since <= mine->seconds)
        return;
    mine->seconds = now - since;
    snprintf(mine->name, sizeof(mine->name), "%s", name);
}

static void note_set(struct waits *mine, struct dt_grad_set *set, double now)
{
    for (struct dt_grad_work *w = set->telling; w; w = w->next)
        if (w->kind != DT_WORK_JOIN)
            note(mine, w->name, w->since, now);
    for (struct dt_entry *e = set->entries; e; e = e->next)
        if (e->work && e->kind != DT_WORK_JOIN)
            note(mine, e->name, e->work->since, now);
}

static void note_plan(struct waits *mine, struct dt_grad_plan *plan, double now)
{
    if (plan->launched == plan->finished)
        return;
    struct dt_bucket *b =
        &plan->buckets[plan->finished % (uint64_t)plan->nbuckets];
    note(mine, b->gradients[b->n - 1]->work.name, b->since, now);
}

static dt_result_t start(struct dt_grad *grad, double now, struct dt_error *err)
{
    struct dt_stall *stall = grad->stall;
    struct waits *mine = &stall->all[dt_rank()];
    memset(mine, 0, sizeof(*mine));
    for (struct dt_grad_set *set = grad->sets; set; set = set->next)
        note_set(mine, set, now);
    for (struct dt_grad_plan *plan = grad->plans; plan; plan = plan->next)
        note_plan(mine, plan, now);
    stall->started++;
    stall->under_way = true;
    dt_result_t rc =
        dt_iallgather(mine, stall->all, sizeof(*mine), DT_DTYPE_U8, stall->comm,
                      DT_STREAM_NONE, &stall->request);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

/* ---- what all wait for ---- */

/* The rank that waits longest, if it is for as long as that; else -1. */
static int longest(const struct dt_stall *stall, double seconds)
{
    int who = 0;
    for (int r = 1; r < dt_size(); r++)
        if (stall->all[r].seconds > stall->all[who].seconds)
            who = r;
    return stall->all[who].seconds >= seconds ? who : -1;
}

/* The ranks that wait for this name, or those that do not: "0-3,7". */
static void list(const struct dt_stall *stall, const char *name, bool wait,
                 char *text, size_t room)
{
    size_t at = 0;
    int size = dt_size(), from = -1;
    text[0] = '\0';
    for (int r = 0; r <= size; r++) {
        bool in = r < size && (strcmp(stall->all[r].name, name) == 0) == wait;
        if (in && from < 0)
            from = r;
        if (in || from < 0)
            continue;
        int len = from == r - 1
                      ? snprintf(text + at, room - at, ",%d", from)
                      : snprintf(text + at, room - at, ",%d-%d", from, r - 1);
        from = -1;
        if (len < 0 || at + (size_t)len + 4 >= room) {
            snprintf(text + at, room - at, "...");
            break;
        }
        at += (size_t)len;
    }
    if (text[0] == ',')
        memmove(text, text + 1, strlen(text));
}

static void describe(const struct dt_stall *stall, int who, char *text,
                     size_t room)
{
    char with[100], without[100], name[160];
    const struct waits *w = &stall->all[who];
    dt_printable(name, sizeof(name), w->name);
    list(stall, w->name, true, with, sizeof(with));
    list(stall, w->name, false, without, sizeof(without));
    if (without[0])
        snprintf(text, room,
                 "'%s' waits for %.0f s: started by rank %s, but not by rank "
                 "%s",
                 name, w->seconds, with, without);
    else
        snprintf(text, room,
                 "'%s' waits for %.0f s on all ranks: a rank, or the network, "
                 "is stopped",
                 name, w->seconds);
}

static dt_result_t judge(struct dt_grad *grad, struct dt_error *err)
{
    const struct dt_grad_options *o = &grad->options;
    struct dt_stall *stall = grad->stall;
    char text[512];
    int who = o->stall_seconds < 0 ? -1 : longest(stall, o->stall_seconds);
    if (who >= 0 && dt_rank() == 0) {
        describe(stall, who, text, sizeof(text));
        dt_report("note: %s", text);
    }
    who = o->stall_fatal > 0 ? longest(stall, o->stall_fatal) : -1;
    if (who < 0)
        return DT_SUCCESS;
    describe(stall, who, text, sizeof(text));
    struct dt_world *world = grad->world->world;
    dt_error_set(err, DT_ERR_TIMED_OUT, "%s", text);
    dt_world_lock(world);
    dt_world_fail(world, DT_ERR_TIMED_OUT, err);
    dt_world_unlock(world);
    return DT_ERR_TIMED_OUT;
}

static double period(const struct dt_grad *grad)
{
    double warn = grad->options.stall_seconds;
    double fatal = grad->options.stall_fatal;
    double least = warn > 0 && (fatal <= 0 || warn < fatal) ? warn : fatal;
    return least / 2;
}

dt_result_t dt_stall_look(struct dt_grad *grad, double now,
                          struct dt_error *err)
{
    struct dt_stall *stall = grad->stall;
    if (!stall)
        return DT_SUCCESS;
    if (!stall->under_way) {
        if (now < stall->next)
            return DT_SUCCESS;
        stall->next = now + period(grad);
        return start(grad, now, err);
    }
    dt_result_t rc = dt_test(&stall->request);
    if (rc == DT_IN_PROGRESS)
        return DT_SUCCESS;
    stall->under_way = false;
    return rc == DT_SUCCESS ? judge(grad, err) : dt_grad_failed(rc, err);
}

/* ---- the end ---- */

/* All ranks have started as many exchanges, and all are complete. */
static void settle(struct dt_grad *grad, struct dt_stall *stall)
{
    struct dt_error err;
    int64_t most;
    if (dt_allreduce(&stall->started, &most, 1, DT_DTYPE_I64, DT_OP_MAX,
                     grad->world, DT_STREAM_NONE) != DT_SUCCESS)
        return;
    for (;;) {
        if (stall->under_way && dt_wait(&stall->request) != DT_SUCCESS)
            return;
        stall->under_way = false;
        if (stall->started >= most ||
            start(grad, dt_grad_now(), &err) != DT_SUCCESS)
            break;
    }
    dt_comm_destroy(stall->comm);
}

void dt_stall_close(struct dt_grad *grad, bool together)
{
    struct dt_stall *stall = grad->stall;
    if (!stall)
        return;
    if (together)
        settle(grad, stall);
    free(stall->all);
    free(stall);
    grad->stall = NULL;
}
