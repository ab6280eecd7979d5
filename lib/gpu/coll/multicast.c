/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* multicast.c - one window for the GPUs of a node, and what goes by it.
 *
 * Six steps, and after each the ranks tell each other how it went:
 *
 *   1. rank 0 makes the window; all name their GPUs
 *   2. rank 0 hands its descriptor to the others
 *   3. these join
 *   4. all bind their memory, which would wait for those who have not joined
 *   5. put a sum of numbers on a stream
 *   6. wait for it, and look at what came */
#include "gpu/coll/multicast.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/coll/hatch.h"
#include "gpu/coll/node_part.h"
#include "gpu/coll/vote.h"

/* As those of gpu_node_open.c; and bytes that are some vectors for each of the
 * most ranks. */
#define TEST_SECONDS 20
#define TEST_NUMBERS (DT_GPU_PEERS * DT_GPU_NODE_NUMBERS)

/* What a rank tells of a step. */
struct vote {
    struct dt_gpu_vote base;
    char bus[24];
    struct dt_gpu_handle handle;    /* rank 0's */
    struct dt_gpu_hatch_name hatch; /* the others' */
};

struct opening {
    struct dt_comm *comm;
    struct dt_gpu_node *node;
    dt_stream_t stream; /* of the test */
    int hatch;          /* or -1 */
    struct vote mine, all[DT_GPU_PEERS];
};

/* ---- 1 ---- */

static void make(struct opening *o)
{
    struct dt_gpu_node *node = o->node;
    const struct dt_gpu_ops *ops = node->gpu->ops;
    struct dt_error err = {""};
    dt_result_t rc = ops->bus(node->gpu, node->device, o->mine.bus, &err);
    if (rc == DT_SUCCESS && node->rank == 0)
        rc = ops->window_make(node->gpu, node->device, node->size,
                              DT_GPU_NODE_SLOT, &node->window, &o->mine.handle,
                              &err);
    else if (rc == DT_SUCCESS)
        rc = dt_gpu_hatch_open(&o->hatch, &o->mine.hatch, &err);
    if (rc != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

/* ---- 2 ---- */

/* Each rank finds the same. */
static void look_around(struct opening *o)
{
    struct dt_error err;
    for (size_t r = 0; r < o->node->size; r++)
        for (size_t s = 0; s < r; s++)
            if (!strncmp(o->all[s].bus, o->all[r].bus, sizeof(o->mine.bus))) {
                dt_error_set(&err, DT_ERR_UNSUPPORTED,
                             "ranks %zu and %zu have the same GPU, %.23s: give "
                             "each rank its own",
                             s, r, o->all[r].bus);
                dt_gpu_object(&o->mine.base, &err);
            }
}

static void hand_over(struct opening *o)
{
    struct dt_error err, why;
    look_around(o);
    for (size_t r = 1;
         o->node->rank == 0 && !o->mine.base.why[0] && r < o->node->size; r++) {
        dt_result_t rc =
            dt_gpu_hatch_put(&o->all[r].hatch, 0, o->mine.handle.fd, &err);
        if (rc == DT_SUCCESS)
            continue;
        dt_error_set(&why, rc, "it cannot show a window to rank %zu: %.256s", r,
                     err.text);
        dt_gpu_object(&o->mine.base, &why);
    }
}

/* ---- 3, 4 ---- */

static void join(struct opening *o)
{
    struct dt_gpu_node *node = o->node;
    struct dt_gpu_handle handle = o->all[0].handle;
    struct dt_error err = {"no descriptor came from rank 0"};
    dt_result_t rc = DT_ERR_UNSUPPORTED;
    if (node->rank == 0)
        return;
    dt_gpu_hatch_take(o->hatch, &handle.fd, 1);
    if (handle.fd >= 0) {
        rc = node->gpu->ops->window_join(node->gpu, node->device, &handle,
                                         &node->window, &err);
        close(handle.fd);
    }
    if (rc != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

static void bind_memory(struct opening *o)
{
    struct dt_gpu_node *node = o->node;
    struct dt_error err;
    if (node->gpu->ops->window_bind(node->gpu, &node->window, &err) !=
        DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

/* ---- 5, 6 ---- */

static uint32_t number(size_t rank, size_t i)
{
    return (uint32_t)(rank * TEST_NUMBERS + i + 1) * 2654435761u;
}

static void start_test(struct opening *o)
{
    struct dt_gpu_node *node = o->node;
    const struct dt_shape sum = {.coll = DT_COLL_ALLREDUCE,
                                 .dtype = DT_DTYPE_I32,
                                 .op = DT_OP_SUM,
                                 .count = TEST_NUMBERS,
                                 .prescale = 1,
                                 .postscale = 1};
    uint32_t *shown = node->words->shown[0][0], ticket;
    struct dt_error err;
    for (size_t i = 0; i < TEST_NUMBERS; i++)
        shown[i] = number(node->rank, i);
    dt_result_t rc = node->gpu->ops->stream_create(node->gpu, node->device,
                                                   &o->stream, &err);
    if (rc == DT_SUCCESS)
        rc = dt_gpu_multicast_start(node, &sum, shown, node->words->seen[0],
                                    o->stream, &ticket, &err);
    if (rc != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

static bool right(const struct dt_gpu_node *node)
{
    const uint32_t *seen = node->words->seen[0][0];
    for (size_t i = 0; i < TEST_NUMBERS; i++) {
        uint32_t sum = 0;
        for (size_t r = 0; r < node->size; r++)
            sum += number(r, i);
        if (seen[i] != sum)
            return false;
    }
    return true;
}

static void end_test(struct opening *o)
{
    struct dt_error err;
    if (!dt_gpu_node_wait(o->node, o->node->last, TEST_SECONDS))
        dt_error_set(&err, DT_ERR_TIMED_OUT,
                     "a sum by the switch is not there after %d s",
                     TEST_SECONDS);
    else if (!right(o->node))
        dt_error_set(&err, DT_ERR_UNSUPPORTED,
                     "the switch adds wrong, or slurm-dt was built without "
                     "kernels for this GPU");
    else
        return;
    dt_gpu_object(&o->mine.base, &err);
}

/* ---- all ---- */

static dt_result_t go_through(struct opening *o, bool *yes, char reason[512],
                              struct dt_error *err)
{
    static void (*const steps[])(struct opening * o) = {
        make, hand_over, join, bind_memory, start_test, end_test};
    dt_result_t rc = DT_SUCCESS;
    *yes = true;
    for (size_t i = 0;
         rc == DT_SUCCESS && *yes && i < sizeof(steps) / sizeof(steps[0]);
         i++) {
        steps[i](o);
        rc = dt_gpu_vote(o->comm, &o->mine.base, o->all, sizeof(o->mine), yes,
                         reason, err);
    }
    return rc;
}

dt_result_t dt_gpu_multicast_open(struct dt_comm *comm,
                                  struct dt_gpu_node *node, bool *yes,
                                  char reason[512], struct dt_error *err)
{
    struct opening o = {
        .comm = comm, .node = node, .hatch = -1, .mine.handle.fd = -1};
    *yes = false;
    if (node->apart) {
        snprintf(reason, 512, "its ranks are on %zu nodes",
                 comm->layout.nnodes);
        return DT_SUCCESS;
    }
    dt_result_t rc = go_through(&o, yes, reason, err);
    if (rc != DT_SUCCESS || !*yes) {
        dt_gpu_node_abort(node);
        dt_gpu_node_leave(node);
    }
    if (o.mine.handle.fd >= 0)
        close(o.mine.handle.fd);
    if (o.hatch >= 0)
        close(o.hatch);
    if (o.stream && !node->stuck)
        node->gpu->ops->stream_destroy(node->gpu, o.stream);
    return rc;
}

bool dt_gpu_multicast_serves(const struct dt_gpu_node *node,
                             const struct dt_shape *shape)
{
    return node->window.all &&
           (shape->coll == DT_COLL_ALLREDUCE ||
            shape->coll == DT_COLL_REDUCE_SCATTER) &&
           dt_gpu_multicasts(shape->dtype, shape->op) &&
           shape->prescale * shape->postscale == 1 &&
           shape->count * dt_dtype_size(shape->dtype) > node->post;
}

dt_result_t dt_gpu_multicast_start(struct dt_gpu_node *node,
                                   const struct dt_shape *shape,
                                   const void *sendbuf, void *recvbuf,
                                   dt_stream_t stream, uint32_t *ticket,
                                   struct dt_error *err)
{
    struct dt_gpu_exchange x =
        dt_gpu_node_exchange(node, shape, sendbuf, recvbuf);
    x.way = DT_GPU_MULTICAST;
    x.window = &node->window;
    if (shape->coll == DT_COLL_REDUCE_SCATTER) {
        x.send_rows = node->size;
        x.send_pitch = shape->count * dt_dtype_size(shape->dtype);
    }
    return dt_gpu_node_put(node, &x, stream, ticket, err);
}
