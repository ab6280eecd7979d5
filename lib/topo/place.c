/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.c - cut the granted GPUs by order. */
#include "topo/place.h"

static dt_result_t check(const struct dt_place_request *request, size_t task,
                         struct dt_error *err)
{
    size_t ngpus = request->ngpus, ntasks = request->ntasks;
    if (task >= ntasks || ntasks > SIZE_MAX / DT_PLACE_MAX_GPUS)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "no task %zu of %zu", task,
                            ntasks);
    if (!ngpus)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "Slurm granted no GPU to this step: ask for them "
                            "with --gpus-per-node=<n> (or --gres=gpu:<n>), or "
                            "leave --dt-gpus out");
    if (ngpus > DT_PLACE_MAX_GPUS)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu GPUs are more than the %d known to "
                            "--dt-gpus: ask for fewer, or leave it out",
                            ngpus, DT_PLACE_MAX_GPUS);
    if (request->policy != DT_PLACE_COUNT)
        return DT_SUCCESS;

    size_t count = request->count;
    if (!count || count > DT_PLACE_MAX_GPUS)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu GPUs per task: expected 1 to %d", count,
                            DT_PLACE_MAX_GPUS);
    if (ntasks * count > ngpus)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu task%s %zu GPUs, Slurm granted %zu: ask "
                            "Slurm for more, or --dt-gpus for fewer",
                            ntasks, ntasks == 1 ? " needs" : "s need",
                            ntasks * count, ngpus);
    return DT_SUCCESS;
}

/* The own GPUs of a task are consecutive: how many, and from which on. */
static size_t share(const struct dt_place_request *request, size_t task,
                    size_t *first)
{
    size_t ngpus = request->ngpus, ntasks = request->ntasks;
    if (request->policy == DT_PLACE_COUNT) {
        *first = task * request->count;
        return request->count;
    }
    if (ntasks > ngpus) {
        *first = task * ngpus / ntasks;
        return 1;
    }
    size_t even = ngpus / ntasks, larger = ngpus % ntasks;
    *first = task * even + (task < larger ? task : larger);
    return even + (task < larger);
}

/* Deal the tasks' own GPUs out in turns: first the first one of every task,
 * in order of tasks, then the second ones, and so on. */
static void see_in_turns(const struct dt_place_request *request,
                         struct dt_place_task *placed)
{
    size_t n = 0, ntasks = request->ntasks;
    if (ntasks > request->ngpus)
        ntasks = request->ngpus; /* shared: one turn, all in order */
    struct dt_place_request dealt = *request;
    dealt.ntasks = ntasks;
    for (size_t turn = 0; n < request->ngpus; turn++)
        for (size_t task = 0; task < ntasks; task++) {
            size_t first, own = share(&dealt, task, &first);
            if (turn < own)
                placed->visible[n++] = first + turn;
        }
    placed->nvisible = n;
}

dt_result_t dt_place(const struct dt_place_request *request, size_t task,
                     struct dt_place_task *placed, struct dt_error *err)
{
    dt_result_t rc = check(request, task, err);
    if (rc != DT_SUCCESS)
        return rc;

    size_t first;
    placed->nown = share(request, task, &first);
    for (size_t i = 0; i < placed->nown; i++)
        placed->own[i] = first + i;

    switch (request->policy) {
    case DT_PLACE_AUTO:
        see_in_turns(request, placed);
        break;
    case DT_PLACE_ROTATE:
        placed->nvisible = request->ngpus;
        for (size_t i = 0; i < request->ngpus; i++)
            placed->visible[i] = (first + i) % request->ngpus;
        break;
    case DT_PLACE_SINGLE:
    case DT_PLACE_COUNT:
        placed->nvisible = placed->nown;
        for (size_t i = 0; i < placed->nown; i++)
            placed->visible[i] = placed->own[i];
        break;
    }
    return DT_SUCCESS;
}
