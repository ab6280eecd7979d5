/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* route.c - which way a call on GPU memory goes, by the rules of its
 * communicator and by what is to be had. */
#include "coll/api/call.h"
#include "gpu/coll/comm.h"
#include "gpu/coll/node.h"
#include "base/names.h"
#include "../tap.h"

#define IPC    DT_TUNE_IPC
#define NCCL   DT_TUNE_NCCL
#define STAGED DT_TUNE_STAGED

enum { RANKS = 4 };

static char nccl; /* only looked at for being there */
static struct dt_gpu_node node;

static struct dt_gpu_comm gpu;
static struct dt_comm comm = {.size = RANKS};

static void rule_all(struct dt_tune_rule rule)
{
    comm.size = RANKS;
    gpu = (struct dt_gpu_comm){.comm = &comm,
                               .nccl = (struct dt_gpu_nccl *)(void *)&nccl,
                               .node = &node};
    for (size_t i = 0; i < DT_TUNE_COLLS; i++)
        gpu.rules[i] = rule;
}

static struct dt_call sum(enum dt_coll coll, size_t count)
{
    return (struct dt_call){.shape = {.coll = coll,
                                      .dtype = DT_DTYPE_F32,
                                      .op = DT_OP_SUM,
                                      .count = count,
                                      .prescale = 1,
                                      .postscale = 1}};
}

static enum dt_gpu_route route(enum dt_coll coll, size_t count)
{
    const struct dt_call call = sum(coll, count);
    return dt_gpu_route_of(&gpu, &call);
}

/* Up to 1024 bytes one way, above another: of the larger buffer. */
static void sizes(void)
{
    static const struct {
        enum dt_coll coll;
        size_t count; /* that is just short */
    } cases[] = {
        {DT_COLL_ALLREDUCE, 256},
        {DT_COLL_REDUCE, 256},
        {DT_COLL_BCAST, 256},
        {DT_COLL_ALLGATHER, 256 / RANKS},
        {DT_COLL_REDUCE_SCATTER, 256 / RANKS},
        {DT_COLL_ALLTOALL, 256 / RANKS},
        {DT_COLL_GATHER, 256 / RANKS},
        {DT_COLL_SCATTER, 256 / RANKS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const enum dt_coll coll = cases[i].coll;
        const size_t count = cases[i].count;
        rule_all((struct dt_tune_rule){0, IPC, IPC});
        gpu.rules[coll] = (struct dt_tune_rule){1024, STAGED, NCCL};
        ok(route(coll, count) == DT_GPU_STAGED &&
               route(coll, count + 1) == DT_GPU_BY_NCCL,
           "%s: short and long", dt_name_coll(coll));
    }
    rule_all((struct dt_tune_rule){0, IPC, IPC});
    gpu.rules[DT_COLL_BCAST] = (struct dt_tune_rule){0, NCCL, NCCL};
    ok(route(DT_COLL_ALLREDUCE, 1) == DT_GPU_BY_NODE &&
           route(DT_COLL_BCAST, 1) == DT_GPU_BY_NCCL,
       "each has its own rule");
}

/* Ranks that share a GPU wait for each other in kernels only if they are told
 * to, or cannot otherwise. */
static void shared_gpu(void)
{
    struct dt_call captured = sum(DT_COLL_ALLREDUCE, 1);
    captured.capturing = true;
    rule_all(dt_tune_default.gpu[DT_TUNE_NODE][DT_COLL_ALLREDUCE]);
    ok(route(DT_COLL_ALLREDUCE, 1) == DT_GPU_BY_NODE,
       "without a rule: by the kernels of the node");
    node.shares = true;
    ok(route(DT_COLL_ALLREDUCE, 1) == DT_GPU_STAGED,
       "staged where ranks share a GPU");
    ok(dt_gpu_route_of(&gpu, &captured) == DT_GPU_BY_NODE,
       "but not in a graph");
    rule_all((struct dt_tune_rule){0, IPC, IPC});
    ok(route(DT_COLL_ALLREDUCE, 1) == DT_GPU_BY_NODE,
       "and not if a rule says otherwise");
    node.shares = false;
}

/* Uneven ones go as long ones do, whatever a rank's own counts. */
static void uneven(void)
{
    const size_t counts[RANKS] = {1};
    struct dt_call call = sum(DT_COLL_ALLTOALL, 0);
    call.shape.sendcounts = call.shape.senddispls = counts;
    call.shape.recvcounts = call.shape.recvdispls = counts;
    rule_all((struct dt_tune_rule){1024, IPC, NCCL});
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_BY_NCCL, "alltoallv");
    rule_all((struct dt_tune_rule){1024, NCCL, IPC});
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_STAGED,
       "which has no exchange in a node");
    call = sum(DT_COLL_REDUCE_SCATTER, 0);
    call.shape.recvcounts = counts;
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_STAGED, "reduce_scatterv");
}

static void not_to_be_had(void)
{
    struct dt_call call = sum(DT_COLL_ALLREDUCE, 1000);
    rule_all((struct dt_tune_rule){0, NCCL, NCCL});
    gpu.nccl = NULL;
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_BY_NODE, "no NCCL: the node");
    gpu.node = NULL;
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_STAGED, "nor that: the host");
    rule_all((struct dt_tune_rule){0, IPC, IPC});
    gpu.node = NULL;
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_STAGED,
       "NCCL only where the rule says so");
    rule_all((struct dt_tune_rule){0, NCCL, NCCL});
    call.shape.op = DT_OP_MIN;
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_BY_NODE,
       "what NCCL has not goes by the node");
    call.kind = DT_CALL_SEND;
    call.shape.coll = DT_COLL_SEND;
    ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_STAGED, "messages by the host");
}

/* A graph can capture nothing but exchanges. */
static void captured(void)
{
    struct dt_call call = sum(DT_COLL_ALLREDUCE, 1000);
    call.capturing = true;
    for (int32_t way = 0; way < DT_TUNE_WAYS; way++) {
        rule_all((struct dt_tune_rule){0, way, way});
        ok(dt_gpu_route_of(&gpu, &call) == DT_GPU_BY_NODE,
           "a graph, by rule %d", (int)way);
    }
}

int main(void)
{
    sizes();
    shared_gpu();
    uneven();
    not_to_be_had();
    captured();
    return tap_done();
}
