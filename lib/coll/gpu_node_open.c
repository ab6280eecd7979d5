/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_node_open.c - do the GPUs of these ranks reach each other?
 *
 * Four steps, and after each the ranks tell each other how it went, so that
 * all of them come to the same answer:
 *
 *   1. make a board, and show its handle
 *   2. import the others'
 *   3. put exchanges of numbers on a stream
 *   4. wait for them, and look at what came
 *
 * What could hang is tried here, with an end: a GPU that does not see what
 * another writes waits for it forever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/gpu_node_part.h"
#include "coll/gpu_vote.h"

/* The first kernel of a process may have to be loaded, and the ranks may share
 * one GPU. */
#define TEST_SECONDS 20

/* What a rank tells of a step. */
struct vote {
    struct dt_gpu_vote base;
    char bus[24];
    struct dt_gpu_handle handle;
};

struct opening {
    struct dt_comm *comm;
    struct dt_gpu_node *node;
    dt_stream_t stream; /* of the test */
    struct vote mine, all[DT_GPU_PEERS];
};

/* ---- 1 ---- */

static void make_board(struct opening *o, struct dt_gpu *gpu, int device)
{
    const struct dt_gpu_ops *ops = gpu->ops;
    struct dt_error err = {"no memory"};
    void *words = NULL;
    struct dt_gpu_node *node = calloc(1, sizeof(*node));
    if (!node) {
        dt_gpu_object(&o->mine.base, &err);
        return;
    }
    o->node = node;
    node->gpu = gpu;
    node->device = device;
    node->rank = o->comm->rank;
    node->size = o->comm->size;
    node->timeout = o->comm->world->timeout;
    dt_result_t rc = ops->bus(gpu, device, o->mine.bus, &err);
    if (rc == DT_SUCCESS)
        rc = ops->host_alloc(gpu, device, sizeof(*node->words), &words, &err);
    if (rc == DT_SUCCESS) {
        node->words = words;
        rc = ops->share_alloc(gpu, device, dt_gpu_board_size(DT_GPU_NODE_SLOT),
                              &node->board[node->rank], &o->mine.handle, &err);
    }
    if (rc != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

/* ---- 2 ---- */

/* The number that this process has for a GPU; -1: it does not see it. */
static dt_result_t find_device(struct dt_gpu *gpu, const char *bus, int *device,
                               struct dt_error *err)
{
    int count;
    dt_result_t rc = gpu->ops->devices(gpu, &count, err);
    *device = -1;
    for (int i = 0; rc == DT_SUCCESS && i < count && *device < 0; i++) {
        char name[24] = "";
        rc = gpu->ops->bus(gpu, i, name, err);
        if (!strcmp(name, bus))
            *device = i;
    }
    return rc;
}

/* May my GPU read that of rank r? Importing it may succeed all the same. */
static dt_result_t look_at(const struct opening *o, size_t r,
                           struct dt_error *err)
{
    struct dt_gpu *gpu = o->node->gpu;
    const char *bus = o->all[r].bus;
    int peer;
    bool yes = true;
    if (!strcmp(bus, o->mine.bus))
        return DT_SUCCESS;
    dt_result_t rc = find_device(gpu, bus, &peer, err);
    if (rc == DT_SUCCESS && peer < 0)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "GPU %s of rank %zu is not visible here: let every "
                            "task see all GPUs of the node (srun "
                            "--gpus-per-node and --dt-gpus, not "
                            "--gpus-per-task)",
                            bus, r);
    if (rc == DT_SUCCESS)
        rc = gpu->ops->reaches(gpu, o->node->device, peer, &yes, err);
    if (rc == DT_SUCCESS && !yes)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "GPU %s cannot read GPU %s of rank %zu: no "
                            "peer-to-peer between them (nvidia-smi topo -p2p "
                            "r)",
                            o->mine.bus, bus, r);
    return rc;
}

static void import_boards(struct opening *o)
{
    struct dt_gpu_node *node = o->node;
    struct dt_error err, why = {""};
    for (size_t r = 0; r < node->size; r++) {
        o->all[r].bus[sizeof(o->all[r].bus) - 1] = '\0';
        if (r == node->rank)
            continue;
        dt_result_t rc = look_at(o, r, &why);
        if (rc == DT_SUCCESS) {
            rc = node->gpu->ops->import(node->gpu, node->device,
                                        &o->all[r].handle, &node->board[r],
                                        &err);
            if (rc != DT_SUCCESS)
                dt_error_set(&why, rc,
                             "it cannot import memory of rank %zu (GPU %s): "
                             "%.256s",
                             r, o->all[r].bus, err.text);
        }
        if (rc != DT_SUCCESS) {
            dt_gpu_object(&o->mine.base, &why);
            return;
        }
    }
}

/* ---- 3 ---- */

static uint32_t number(size_t from, size_t to, size_t round, size_t i)
{
    size_t n = (from * DT_GPU_PEERS + to) * DT_GPU_NODE_ROUNDS + round;
    return (uint32_t)(n * DT_GPU_NODE_NUMBERS + i + 1) * 2654435761u;
}

/* Every rank shows every rank other numbers. */
static dt_result_t start_round(struct opening *o, size_t round,
                               struct dt_error *err)
{
    struct dt_gpu_node *node = o->node;
    const struct dt_shape shape = {.coll = DT_COLL_ALLTOALL,
                                   .dtype = DT_DTYPE_I32,
                                   .count = DT_GPU_NODE_NUMBERS,
                                   .prescale = 1,
                                   .postscale = 1};
    uint32_t(*shown)[DT_GPU_NODE_NUMBERS] = node->words->shown[round];
    uint32_t ticket;
    node->post = round % 2 ? DT_GPU_NODE_POST : 0;
    for (size_t r = 0; r < node->size; r++)
        for (size_t i = 0; i < DT_GPU_NODE_NUMBERS; i++)
            shown[r][i] = number(node->rank, r, round, i);
    return dt_gpu_node_start(node, &shape, shown, node->words->seen[round],
                             o->stream, &ticket, err);
}

static void start_test(struct opening *o)
{
    struct dt_gpu *gpu = o->node->gpu;
    struct dt_error err;
    dt_result_t rc =
        gpu->ops->stream_create(gpu, o->node->device, &o->stream, &err);
    for (size_t k = 0; rc == DT_SUCCESS && k < DT_GPU_NODE_ROUNDS; k++)
        rc = start_round(o, k, &err);
    o->node->post = DT_GPU_NODE_POST;
    if (rc != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

/* ---- 4 ---- */

static bool right(const struct dt_gpu_node *node, size_t r)
{
    for (size_t k = 0; k < DT_GPU_NODE_ROUNDS; k++)
        for (size_t i = 0; i < DT_GPU_NODE_NUMBERS; i++)
            if (node->words->seen[k][r][i] != number(r, node->rank, k, i))
                return false;
    return true;
}

static void end_test(struct opening *o)
{
    struct dt_gpu_node *node = o->node;
    struct dt_error err = {""};
    size_t r = 0;
    if (!dt_gpu_node_wait(node, node->last, TEST_SECONDS))
        dt_error_set(&err, DT_ERR_TIMED_OUT,
                     "what the other ranks' GPUs wrote did not come within %d "
                     "s, though their memory could be imported: the IOMMU, or "
                     "ACS in a PCIe switch, may be in the way",
                     TEST_SECONDS);
    while (!err.text[0] && r < node->size && right(node, r))
        r++;
    if (!err.text[0] && r < node->size)
        dt_error_set(&err, DT_ERR_UNSUPPORTED,
                     "it reads other numbers from the GPU of rank %zu than "
                     "that one wrote",
                     r);
    dt_gpu_object(&o->mine.base, &err);
}

/* ---- all ---- */

static void (*const steps[])(struct opening *o) = {import_boards, start_test,
                                                   end_test};

/* Nobody may free what another still has, so all let go of it first. */
static void undo(struct opening *o, bool together)
{
    struct dt_gpu_node *node = o->node;
    char reason[512];
    bool yes;
    if (node && node->words)
        dt_gpu_node_abort(node);
    dt_gpu_node_leave(node);
    if (o->stream && !node->stuck)
        node->gpu->ops->stream_destroy(node->gpu, o->stream);
    if (together)
        dt_gpu_vote(o->comm, &o->mine.base, o->all, sizeof(o->mine), &yes,
                    reason, NULL);
    dt_gpu_node_close(node);
}

static bool few_enough(const struct dt_comm *comm, char reason[512])
{
    if (comm->layout.nnodes > 1)
        snprintf(reason, 512, "its ranks are on %zu nodes",
                 comm->layout.nnodes);
    else if (comm->size > DT_GPU_PEERS)
        snprintf(reason, 512, "it has %zu ranks, more than %d on one node",
                 comm->size, DT_GPU_PEERS);
    return comm->layout.nnodes == 1 && comm->size <= DT_GPU_PEERS;
}

dt_result_t dt_gpu_node_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_node **node,
                             char reason[512], struct dt_error *err)
{
    struct opening o = {.comm = comm};
    bool yes;
    if (!few_enough(comm, reason)) {
        *node = NULL;
        return DT_SUCCESS;
    }
    make_board(&o, gpu, device);
    dt_result_t rc = dt_gpu_vote(o.comm, &o.mine.base, o.all, sizeof(o.mine),
                                 &yes, reason, err);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (rc != DT_SUCCESS || !yes)
            break;
        steps[i](&o);
        rc = dt_gpu_vote(o.comm, &o.mine.base, o.all, sizeof(o.mine), &yes,
                         reason, err);
    }
    if (rc != DT_SUCCESS || !yes) {
        undo(&o, rc == DT_SUCCESS);
        o.node = NULL;
    } else {
        gpu->ops->stream_destroy(gpu, o.stream);
    }
    if (rc == DT_SUCCESS)
        *node = o.node;
    return rc;
}
