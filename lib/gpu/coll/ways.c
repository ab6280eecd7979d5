/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ways.c - choose the way of a communicator's collectives on GPU memory: what
 * DT_GPU_WAY says, else the rule of the tuning file. Without both, kernels over
 * CUDA IPC do what they can inside a node, if each rank has a GPU of its own;
 * the rest is staged through the host or, where the network reads GPU memory,
 * sent directly.
 *
 * Nothing is measured here: the ways give different bits, and a program gets
 * the same bits in every run. dt-bench --tune measures once and writes the
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "gpu/coll/comm.h"

dt_result_t dt_gpu_agree(struct dt_comm *twin, dt_result_t mine,
                         const struct dt_error *why, struct dt_error *err)
{
    const struct dt_shape shape = {.coll = DT_COLL_ALLREDUCE,
                                   .dtype = DT_DTYPE_I32,
                                   .op = DT_OP_MIN,
                                   .count = 1,
                                   .prescale = 1,
                                   .postscale = 1};
    int32_t ours = mine, worst;
    dt_result_t rc = dt_comm_run(twin, &shape, &ours, &worst, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (mine != DT_SUCCESS)
        *err = *why;
    else if (worst != DT_SUCCESS)
        dt_error_set(err, (dt_result_t)worst,
                     "another rank could not get ready for its GPU, and says "
                     "why");
    return (dt_result_t)worst;
}

/* ---- what is wanted ---- */

/* DT_GPU_WAY, in words that a collective can move. */
struct wish {
    int32_t given;  /* else the rules of the tuning parameters count */
    int32_t way;    /* enum dt_tune_way */
    int32_t strict; /* this one, or an error */
};

static const char strict[] = "strict,";

static dt_result_t read_wish(struct wish *wish, struct dt_error *err)
{
    const char *value = getenv(DT_ENV_GPU_WAY);
    const size_t len = sizeof(strict) - 1;
    enum dt_tune_way way;
    *wish = (struct wish){.given = value && *value};
    if (!wish->given)
        return DT_SUCCESS;
    wish->strict = !strncmp(value, strict, len);
    if (!dt_tune_way(wish->strict ? value + len : value, &way))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            DT_ENV_GPU_WAY "=%s: expected " DT_TUNE_WAY_WORDS
                                           ", or strict, and one of them",
                            value);
    wish->way = (int32_t)way;
    return DT_SUCCESS;
}

/* The first rank's, if all can be understood. */
static dt_result_t agree_on_wish(struct dt_comm *twin, struct wish *wish,
                                 struct dt_error *err)
{
    const struct dt_shape shape = {.coll = DT_COLL_BCAST,
                                   .dtype = DT_DTYPE_I32,
                                   .count = sizeof(*wish) / sizeof(int32_t),
                                   .in_place = true,
                                   .prescale = 1,
                                   .postscale = 1};
    struct dt_error why = {""};
    dt_result_t rc = read_wish(wish, &why);
    rc = dt_gpu_agree(twin, rc, &why, err);
    return rc == DT_SUCCESS ? dt_comm_run(twin, &shape, wish, wish, err) : rc;
}

static void set_rules(struct dt_gpu_comm *gpu, const struct wish *wish)
{
    const struct dt_comm *comm = gpu->comm;
    const enum dt_tune_scope scope =
        comm->layout.nnodes == 1 ? DT_TUNE_NODE : DT_TUNE_NET;
    for (size_t i = 0; i < DT_TUNE_COLLS; i++)
        gpu->rules[i] = wish->given
                            ? (struct dt_tune_rule){0, wish->way, wish->way}
                            : comm->world->tune.gpu[scope][i];
}

static bool is_wanted(const struct dt_gpu_comm *gpu, enum dt_tune_way way)
{
    for (size_t i = 0; i < DT_TUNE_COLLS; i++)
        if (gpu->rules[i].brief == (int32_t)way ||
            gpu->rules[i].lengthy == (int32_t)way)
            return true;
    return false;
}

/* ---- what is to be had ---- */

static dt_result_t insist(const struct wish *wish, enum dt_tune_way way,
                          const char *name, const char *reason,
                          struct dt_error *err)
{
    if (!wish->strict || wish->way != (int32_t)way)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_UNSUPPORTED, DT_ENV_GPU_WAY "=%s%s: %s",
                        strict, name, reason);
}

/* It was asked for, so somebody wants to know. Once: what follows is much the
 * same for other communicators. */
static void tell_why_not(struct dt_gpu_comm *gpu, const struct wish *wish,
                         enum dt_tune_way way, const char *reason)
{
    gpu->missed[way] = true;
    for (const struct dt_gpu_comm *other = gpu->next; other;
         other = other->next)
        if (other->missed[way])
            return;
    if (gpu->comm->world->rank == 0)
        dt_report("%s: it goes on without NCCL: %s",
                  wish->given ? DT_ENV_GPU_WAY "=nccl" : DT_ENV_TUNE, reason);
}

/* If one rank cannot do it with one other, none does. */
static dt_result_t agree_on_direct(struct dt_gpu_comm *gpu,
                                   struct dt_comm *twin, struct dt_error *err)
{
    const struct dt_error why = {""};
    dt_result_t mine = dt_gpu_direct_all(gpu) ? DT_SUCCESS : DT_ERR_UNSUPPORTED;
    dt_result_t rc = dt_gpu_agree(twin, mine, &why, err);
    gpu->direct = rc == DT_SUCCESS;
    return rc == DT_ERR_UNSUPPORTED ? DT_SUCCESS : rc;
}

static dt_result_t open_nccl(struct dt_gpu_comm *gpu, struct dt_comm *twin,
                             const struct wish *wish, struct dt_error *err)
{
    struct dt_error why = {""};
    char reason[512] = "";
    dt_result_t rc =
        dt_gpu_nccl_open(twin, gpu->gpu, gpu->device, &gpu->nccl, reason, &why);
    rc = dt_gpu_agree(twin, rc, &why, err);
    if (rc != DT_SUCCESS || gpu->nccl)
        return rc;
    rc = insist(wish, DT_TUNE_NCCL, "nccl", reason, err);
    if (rc == DT_SUCCESS)
        tell_why_not(gpu, wish, DT_TUNE_NCCL, reason);
    return rc;
}

static dt_result_t open_node(struct dt_gpu_comm *gpu, struct dt_comm *twin,
                             const struct wish *wish, struct dt_error *err)
{
    struct dt_error why = {""};
    dt_result_t rc = dt_gpu_node_open(twin, gpu->gpu, gpu->device, &gpu->node,
                                      gpu->reason, &why);
    rc = dt_gpu_agree(twin, rc, &why, err);
    if (rc != DT_SUCCESS || gpu->node)
        return rc;
    return insist(wish, DT_TUNE_IPC, "ipc", gpu->reason, err);
}

dt_result_t dt_gpu_open_ways(struct dt_gpu_comm *gpu, struct dt_comm *twin,
                             struct dt_error *err)
{
    struct wish wish;
    dt_result_t rc = agree_on_wish(twin, &wish, err);
    if (rc != DT_SUCCESS)
        return rc;
    set_rules(gpu, &wish);
    if (is_wanted(gpu, DT_TUNE_NCCL))
        rc = open_nccl(gpu, twin, &wish, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (wish.given && wish.way == DT_TUNE_STAGED) {
        snprintf(gpu->reason, sizeof(gpu->reason), DT_ENV_GPU_WAY "=staged");
        return DT_SUCCESS;
    }
    rc = agree_on_direct(gpu, twin, err);
    if (rc == DT_SUCCESS)
        rc = open_node(gpu, twin, &wish, err);
    return rc;
}

/* ---- the way of a call ---- */

/* Of the larger buffer of a rank. */
static size_t bytes_of(const struct dt_gpu_comm *gpu,
                       const struct dt_shape *shape)
{
    const bool one = shape->coll == DT_COLL_ALLREDUCE ||
                     shape->coll == DT_COLL_REDUCE ||
                     shape->coll == DT_COLL_BCAST;
    return shape->count * dt_dtype_size(shape->dtype) *
           (one ? 1 : gpu->comm->size);
}

/* Of an uneven form a rank may know its own counts only. */
static int32_t way_of(const struct dt_gpu_comm *gpu,
                      const struct dt_shape *shape)
{
    const struct dt_tune_rule *rule = &gpu->rules[shape->coll];
    if (rule->brief == rule->lengthy || shape->sendcounts || shape->recvcounts)
        return rule->lengthy;
    return bytes_of(gpu, shape) > rule->upto ? rule->lengthy : rule->brief;
}

/* Kernels of several processes on one GPU take turns of milliseconds, and none
 * promises that they ever run at the same time, as they must when they wait for
 * each other: under MPS, four ranks that also trained came to a stop. */
static int32_t default_way(const struct dt_gpu_comm *gpu)
{
    return gpu->node && gpu->node->shares ? DT_TUNE_STAGED : DT_TUNE_IPC;
}

enum dt_gpu_route dt_gpu_route_of(const struct dt_gpu_comm *gpu,
                                  const struct dt_call *call)
{
    if (call->kind == DT_CALL_SEND || call->kind == DT_CALL_RECV)
        return DT_GPU_STAGED;
    int32_t way = way_of(gpu, &call->shape);
    if (way == DT_TUNE_UNSET)
        way = default_way(gpu);
    if (gpu->nccl && way == DT_TUNE_NCCL && !call->capturing &&
        dt_gpu_nccl_serves(&call->shape))
        return DT_GPU_BY_NCCL;
    /* a graph cannot capture what goes through the host */
    if (!gpu->node || (way == DT_TUNE_STAGED && !call->capturing) ||
        !dt_gpu_node_serves(&call->shape))
        return DT_GPU_STAGED;
    return DT_GPU_BY_NODE;
}
