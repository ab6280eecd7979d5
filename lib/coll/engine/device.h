/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* device.h - collectives on memory that is not the host's: what coll calls of
 * a module that has them. The world has one such device, or none.
 *
 * The calls are put on streams and return; the thread of progress.h moves what
 * goes through the host. What a communicator needs for them is made at its
 * first such call. Their requests have on_device set, and belong to these
 * functions alone. */
#ifndef DT_COLL_ENGINE_DEVICE_H
#define DT_COLL_ENGINE_DEVICE_H

#include "coll/engine/world.h"

struct dt_backoff;
struct dt_call;
struct dt_gpu;
struct dt_request;

struct dt_device_ops {
    /* ---- calls ---- */

    /* Find the buffers of this valid call, which is not empty. Sets on_device,
     * and then device and capturing. Errors: INVALID_ARG, UNSUPPORTED (a
     * stream, but memory of the host); those of the driver. */
    dt_result_t (*place)(struct dt_call *call, struct dt_error *err);

    /* Start a call that has on_device set. The first of a communicator is
     * collective and blocks; send and receive never are. Does not wait for the
     * device. *request is to be given to end, wait, a successful test or
     * forget. */
    dt_result_t (*begin)(const struct dt_call *call,
                         struct dt_request **request, struct dt_error *err);

    /* What is put on the call's stream from now on runs after the call. Does
     * nothing on DT_STREAM_NONE. */
    dt_result_t (*follow)(struct dt_request *request, struct dt_error *err);

    /* The end of a blocking call: follow and forget it, or, on DT_STREAM_NONE,
     * wait for it. */
    dt_result_t (*end)(struct dt_request *request, struct dt_error *err);

    /* The caller gives the request up; the call goes on. */
    void (*forget)(struct dt_request *request);

    /* As dt_comm_wait and dt_comm_test. */
    dt_result_t (*wait)(struct dt_request *request, struct dt_error *err);
    dt_result_t (*test)(struct dt_request *request, struct dt_error *err);

    /* ---- the end ---- */

    /* Complete all that is under way on comm, and send its ranks the shutdown
     * message: before the last barrier. */
    dt_result_t (*leave)(struct dt_comm *comm, struct dt_error *err);

    /* Free what comm has here, requests too: when all ranks have left, or after
     * a failure. */
    void (*close_comm)(struct dt_comm *comm);

    /* Close what is left of all communicators, then the device. */
    void (*close)(struct dt_device *device);

    /* ---- progress; called with the lock of the world held ---- */

    /* While messages in memory of the device are under way, its context has to
     * be the thread's current one when the transports move. True: exit_context
     * undoes it, and takes *scope. */
    bool (*enter)(struct dt_world *world, int *scope);
    void (*exit_context)(struct dt_world *world, int scope);

    /* Is anything under way that needs the host? */
    bool (*busy)(const struct dt_world *world);

    /* May anything be under way that the host does not know of (graphs)? */
    bool (*hidden)(const struct dt_world *world);

    /* Nothing of the device has moved: wait a little, with the lock released,
     * and check from time to time that the peers and the device are alive.
     * others: something else has moved. */
    void (*idle)(struct dt_backoff *backoff, struct dt_world *world,
                 bool others);

    /* Move what can be moved; after a failure, release everything that the
     * device waits for. device->moves counts what moved. */
    void (*step)(struct dt_world *world);
};

struct dt_device {
    const struct dt_device_ops *ops;
    /* memory, streams and kernels, as in gpu/gpu.h; the device's own */
    struct dt_gpu *gpu;
    uint64_t moves; /* with the lock of the world */
    /* the module's own follows */
};

/* ---- the same, where there may be no device ---- */

static inline bool dt_device_enter(struct dt_world *world, int *scope)
{
    return world->device && world->device->ops->enter(world, scope);
}

static inline bool dt_device_busy(const struct dt_world *world)
{
    return world->device && world->device->ops->busy(world);
}

static inline bool dt_device_hidden(const struct dt_world *world)
{
    return world->device && world->device->ops->hidden(world);
}

static inline void dt_device_step(struct dt_world *world)
{
    if (world->device)
        world->device->ops->step(world);
}

static inline dt_result_t dt_device_leave(struct dt_world *world,
                                          struct dt_comm *comm,
                                          struct dt_error *err)
{
    return world->device ? world->device->ops->leave(comm, err) : DT_SUCCESS;
}

#endif
