/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node_open.c - do the GPUs of these ranks reach each other?
 *
 * Five steps, and after each the ranks tell each other how it went, so that
 * all of them come to the same answer:
 *
 *   1. make a board, and show its handle
 *   2. hand the others a descriptor, where that is the handle
 *   3. import the others'
 *   4. put exchanges of numbers on a stream
 *   5. wait for them, and look at what came
 *
 * Where the driver refuses to share memory so, in step 1 to 3 on any rank, all
 * begin again with the next kind of handle.
 *
 * What could hang is tried here, with an end: a GPU that does not see what
 * another writes waits for it forever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/coll/hatch.h"
#include "gpu/coll/node_part.h"
#include "gpu/coll/vote.h"

/* The first kernel of a process may have to be loaded, and the ranks may share
 * one GPU. */
#define TEST_SECONDS 20

/* What a rank tells of a step. */
struct vote {
    struct dt_gpu_vote base;
    bool refused; /* it cannot, but another kind of handle may do */
    char bus[24];
    struct dt_gpu_handle handle;
    struct dt_gpu_hatch_name hatch;
};

/* One try, with one kind of handle. */
struct opening {
    struct dt_comm *comm;
    struct dt_gpu *gpu;
    int device;
    enum dt_gpu_sharing sharing;
    struct dt_gpu_node *node;
    dt_stream_t stream; /* of the test */
    int hatch;          /* FD: through which descriptors come; else -1 */
    struct vote mine, all[DT_GPU_PEERS];
};

/* This rank cannot go on; UNSUPPORTED: not with handles of this kind. */
static void refuse(struct opening *o, dt_result_t rc,
                   const struct dt_error *err)
{
    if (!o->mine.base.why[0])
        o->mine.refused = rc == DT_ERR_UNSUPPORTED;
    dt_gpu_object(&o->mine.base, err);
}

/* ---- 1 ---- */

static dt_result_t get_memory(struct opening *o, struct dt_error *err)
{
    const struct dt_gpu_ops *ops = o->gpu->ops;
    struct dt_gpu_node *node = o->node;
    void *words = NULL;
    dt_result_t rc = ops->bus(o->gpu, o->device, o->mine.bus, err);
    if (rc == DT_SUCCESS)
        rc = ops->share_alloc(o->gpu, o->device, o->sharing,
                              dt_gpu_board_size(DT_GPU_NODE_SLOT),
                              &node->board[node->rank], &o->mine.handle, err);
    if (rc == DT_SUCCESS)
        rc = ops->host_alloc(o->gpu, o->device, sizeof(*node->words), &words,
                             err);
    node->words = words;
    if (rc == DT_SUCCESS && o->sharing == DT_GPU_SHARE_FD)
        rc = dt_gpu_hatch_open(&o->hatch, &o->mine.hatch, err);
    return rc;
}

static void make_board(struct opening *o)
{
    struct dt_error err = {"no memory"};
    struct dt_gpu_node *node = calloc(1, sizeof(*node));
    o->mine.handle.fd = -1;
    if (!node) {
        refuse(o, DT_ERR_NO_MEMORY, &err);
        return;
    }
    o->node = node;
    node->gpu = o->gpu;
    node->device = o->device;
    node->sharing = o->sharing;
    node->rank = o->comm->rank;
    node->size = o->comm->size;
    node->timeout = o->comm->world->timeout;
    dt_result_t rc = get_memory(o, &err);
    if (rc != DT_SUCCESS)
        refuse(o, rc, &err);
}

/* ---- 2 ---- */

static void hand_over(struct opening *o)
{
    struct dt_error err, why;
    const uint32_t rank = (uint32_t)o->node->rank;
    for (size_t r = 0; r < o->node->size; r++) {
        if (r == o->node->rank)
            continue;
        dt_result_t rc =
            dt_gpu_hatch_put(&o->all[r].hatch, rank, o->mine.handle.fd, &err);
        if (rc != DT_SUCCESS) {
            dt_error_set(&why, rc, "it cannot show memory to rank %zu: %.256s",
                         r, err.text);
            refuse(o, rc, &why);
            return;
        }
    }
}

/* ---- 3 ---- */

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
    struct dt_gpu *gpu = o->gpu;
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

/* fd: that of this rank's descriptor here, or -1. */
static dt_result_t import_board(struct opening *o, size_t r, int fd,
                                struct dt_error *why)
{
    struct dt_gpu_node *node = o->node;
    struct dt_error err;
    struct dt_gpu_handle handle = o->all[r].handle;
    handle.fd = fd;
    if (o->sharing == DT_GPU_SHARE_FD && fd < 0)
        return dt_error_set(why, DT_ERR_UNSUPPORTED,
                            "no descriptor came from rank %zu", r);
    dt_result_t rc =
        o->gpu->ops->import(o->gpu, o->device, &handle, &node->board[r], &err);
    if (rc != DT_SUCCESS)
        dt_error_set(why, rc,
                     "it cannot import memory of rank %zu (GPU %s): %.256s", r,
                     o->all[r].bus, err.text);
    return rc;
}

static void import_boards(struct opening *o)
{
    const size_t n = o->node->size;
    int fds[DT_GPU_PEERS];
    struct dt_error why = {""};
    dt_gpu_hatch_take(o->hatch, fds, n);
    for (size_t r = 0; !o->mine.base.why[0] && r < n; r++) {
        o->all[r].bus[sizeof(o->all[r].bus) - 1] = '\0';
        if (r == o->node->rank)
            continue;
        if (look_at(o, r, &why) != DT_SUCCESS) {
            dt_gpu_object(&o->mine.base, &why);
            break;
        }
        dt_result_t rc = import_board(o, r, fds[r], &why);
        if (rc != DT_SUCCESS)
            refuse(o, rc, &why);
    }
    for (size_t r = 0; r < n; r++)
        if (fds[r] >= 0)
            close(fds[r]);
}

/* ---- 4 ---- */

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

/* ---- 5 ---- */

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

/* ---- one try ---- */

static dt_result_t vote(struct opening *o, bool *yes, char reason[512],
                        struct dt_error *err)
{
    return dt_gpu_vote(o->comm, &o->mine.base, o->all, sizeof(o->mine), yes,
                       reason, err);
}

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
        o->gpu->ops->stream_destroy(o->gpu, o->stream);
    if (together)
        vote(o, &yes, reason, NULL);
    dt_gpu_node_close(node);
    o->node = NULL;
}

static dt_result_t go_through(struct opening *o, bool *yes, char reason[512],
                              struct dt_error *err)
{
    static void (*const steps[])(struct opening * o) = {
        make_board, hand_over, import_boards, start_test, end_test};
    dt_result_t rc = DT_SUCCESS;
    *yes = true;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i] == hand_over && o->sharing != DT_GPU_SHARE_FD)
            continue;
        steps[i](o);
        rc = vote(o, yes, reason, err);
        if (rc != DT_SUCCESS || !*yes)
            break;
    }
    return rc;
}

/* o->node is what is open, or NULL. */
static dt_result_t attempt(struct opening *o, char reason[512],
                           struct dt_error *err)
{
    bool yes;
    dt_result_t rc = go_through(o, &yes, reason, err);
    if (o->mine.handle.fd >= 0)
        close(o->mine.handle.fd);
    if (o->hatch >= 0)
        close(o->hatch);
    if (rc != DT_SUCCESS || !yes)
        undo(o, rc == DT_SUCCESS);
    else
        o->gpu->ops->stream_destroy(o->gpu, o->stream);
    return rc;
}

/* ---- all ---- */

static bool few_enough(const struct dt_comm *comm, char reason[512])
{
    if (comm->size > DT_GPU_PEERS)
        snprintf(reason, 512, "it has %zu ranks, more than %d", comm->size,
                 DT_GPU_PEERS);
    else if (comm->layout.nnodes > 1)
        snprintf(reason, 512, "its ranks are on %zu nodes",
                 comm->layout.nnodes);
    return comm->size <= DT_GPU_PEERS && comm->layout.nnodes == 1;
}

/* All who cannot were refused this kind of handle, as their last votes say. */
static bool is_refusal(const struct opening *o)
{
    bool all = true;
    for (size_t r = 0; r < o->comm->size; r++)
        all = all && (!o->all[r].base.why[0] || o->all[r].refused);
    return all;
}

static void append(char reason[512], const char *more)
{
    size_t len = strlen(reason);
    snprintf(reason + len, 512 - len, "%s%s", len ? "; " : "", more);
}

dt_result_t dt_gpu_node_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_node **node,
                             char reason[512], struct dt_error *err)
{
    enum dt_gpu_sharing sharing = DT_GPU_SHARE_IPC;
    dt_result_t rc = DT_SUCCESS;
    bool again = few_enough(comm, reason);
    struct opening o = {.node = NULL};
    if (again)
        reason[0] = '\0';
    for (; again && sharing < DT_GPU_SHARINGS; sharing++) {
        char why[512] = "";
        o = (struct opening){.comm = comm,
                             .gpu = gpu,
                             .device = device,
                             .sharing = sharing,
                             .hatch = -1};
        rc = attempt(&o, why, err);
        again = rc == DT_SUCCESS && !o.node && is_refusal(&o);
        if (rc == DT_SUCCESS && !o.node)
            append(reason, why);
    }
    if (rc == DT_SUCCESS)
        *node = o.node;
    return rc;
}
