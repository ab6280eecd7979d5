/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_ways.c - by which of its ways a communicator's calls on GPU memory go:
 * NCCL's, if the user wants it; exchanges in a node; handed to the network
 * where they are; else through the host.
 *
 * Nothing is measured to choose: the ways give different bits, and those are to
 * be the same in every run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "coll/gpu_comm.h"

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

enum wish { IPC, NCCL, STAGED };

static dt_result_t read_wish(int32_t *wish, struct dt_error *err)
{
    static const char *const names[] = {
        [IPC] = "ipc", [NCCL] = "nccl", [STAGED] = "staged"};
    const char *value = getenv(DT_ENV_GPU_WAY);
    *wish = IPC;
    if (!value || !*value)
        return DT_SUCCESS;
    for (int32_t i = 0; i < 3; i++)
        if (!strcmp(value, names[i])) {
            *wish = i;
            return DT_SUCCESS;
        }
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        DT_ENV_GPU_WAY "=%s: expected ipc, nccl or staged",
                        value);
}

/* The first rank's, if all can be understood. */
static dt_result_t agree_on_wish(struct dt_comm *twin, int32_t *wish,
                                 struct dt_error *err)
{
    const struct dt_shape shape = {.coll = DT_COLL_BCAST,
                                   .dtype = DT_DTYPE_I32,
                                   .count = 1,
                                   .in_place = true,
                                   .prescale = 1,
                                   .postscale = 1};
    struct dt_error why = {""};
    dt_result_t rc = read_wish(wish, &why);
    rc = dt_gpu_agree(twin, rc, &why, err);
    return rc == DT_SUCCESS ? dt_comm_run(twin, &shape, wish, wish, err) : rc;
}

/* It was asked for, so somebody wants to know. Once: what follows is much the
 * same for other communicators. */
static void tell_why_not(const struct dt_gpu_comm *gpu, const char *reason)
{
    if (gpu->comm->world->rank == 0 && !gpu->next)
        fprintf(stderr,
                "dt: " DT_ENV_GPU_WAY "=nccl: it goes on without NCCL: %s\n",
                reason);
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

dt_result_t dt_gpu_open_ways(struct dt_gpu_comm *gpu, struct dt_comm *twin,
                             struct dt_error *err)
{
    struct dt_error why = {""};
    char reason[512] = "";
    int32_t wish = IPC;
    dt_result_t rc = agree_on_wish(twin, &wish, err);
    if (rc == DT_SUCCESS && wish == NCCL) {
        rc = dt_gpu_nccl_open(twin, gpu->gpu, gpu->device, &gpu->nccl, reason,
                              &why);
        rc = dt_gpu_agree(twin, rc, &why, err);
        if (rc == DT_SUCCESS && !gpu->nccl)
            tell_why_not(gpu, reason);
    }
    if (rc != DT_SUCCESS || wish == STAGED) {
        snprintf(gpu->reason, sizeof(gpu->reason), DT_ENV_GPU_WAY "=staged");
        return rc;
    }
    rc = agree_on_direct(gpu, twin, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = dt_gpu_node_open(twin, gpu->gpu, gpu->device, &gpu->node, gpu->reason,
                          &why);
    return dt_gpu_agree(twin, rc, &why, err);
}

enum dt_gpu_route dt_gpu_route_of(const struct dt_gpu_comm *gpu,
                                  const struct dt_call *call)
{
    if (call->kind == DT_CALL_SEND || call->kind == DT_CALL_RECV)
        return DT_GPU_STAGED;
    if (gpu->nccl && !call->capturing &&
        dt_gpu_nccl_serves(gpu->nccl, &call->shape))
        return DT_GPU_BY_NCCL;
    if (gpu->node && dt_gpu_node_serves(gpu->node, &call->shape))
        return DT_GPU_BY_NODE;
    return DT_GPU_STAGED;
}
