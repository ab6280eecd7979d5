/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* host.h - between libdt and the collectives of the module libdt_cuda.so: what
 * the module calls of libdt, and its entry. */
#ifndef DT_GPU_HOST_H
#define DT_GPU_HOST_H

#include "coll/api/api.h"
#include "coll/engine/engine.h"
#include "gpu/gpu.h"

/* X(result, name without dt_, parameters, arguments) */
#define DT_GPU_HOST(X)                                                         \
    X(const char *, call_name, (enum dt_call_kind kind), (kind))               \
    X(dt_result_t, comm_leave, (struct dt_comm * comm, struct dt_error * err), \
      (comm, err))                                                             \
    X(dt_result_t, comm_begin,                                                 \
      (struct dt_comm * comm, const struct dt_shape *shape,                    \
       const void *sendbuf, void *recvbuf, struct dt_request **request,        \
       struct dt_error *err),                                                  \
      (comm, shape, sendbuf, recvbuf, request, err))                           \
    X(void, comm_close, (struct dt_comm * comm), (comm))                       \
    X(dt_result_t, comm_failure,                                               \
      (const struct dt_comm *comm, struct dt_error *err), (comm, err))         \
    X(dt_result_t, comm_retire,                                                \
      (struct dt_comm * comm, struct dt_request * request,                     \
       struct dt_error * err),                                                 \
      (comm, request, err))                                                    \
    X(dt_result_t, comm_run,                                                   \
      (struct dt_comm * comm, const struct dt_shape *shape,                    \
       const void *sendbuf, void *recvbuf, struct dt_error *err),              \
      (comm, shape, sendbuf, recvbuf, err))                                    \
    X(dt_result_t, comm_twin,                                                  \
      (struct dt_comm * comm, struct dt_comm * *twin, struct dt_error * err),  \
      (comm, twin, err))                                                       \
    X(dt_result_t, progress_need,                                              \
      (struct dt_world * world, struct dt_error * err), (world, err))          \
    X(void, world_check, (struct dt_world * world), (world))                   \
    X(dt_result_t, world_fail,                                                 \
      (struct dt_world * world, dt_result_t why, const struct dt_error *err),  \
      (world, why, err))                                                       \
    X(void, world_let_in, (struct dt_world * world), (world))                  \
    X(void, world_listen, (struct dt_world * world, int patience),             \
      (world, patience))                                                       \
    X(void, world_lock, (struct dt_world * world), (world))                    \
    X(bool, world_progress, (struct dt_world * world), (world))                \
    X(struct dt_tl *, world_route,                                             \
      (const struct dt_world *world, size_t peer), (world, peer))              \
    X(void, world_unlock, (struct dt_world * world), (world))

/* The sizes of what both sides read: a module of another release is refused. */
struct dt_gpu_layout {
    size_t host, device, world, comm, request, call, tl;
};

struct dt_gpu_host {
    struct dt_gpu_layout layout; /* DT_GPU_LAYOUT */
#define DT_GPU_MEMBER(type, name, params, args) type(*name) params;
    DT_GPU_HOST(DT_GPU_MEMBER)
#undef DT_GPU_MEMBER
};

#define DT_GPU_LAYOUT                                                          \
    {                                                                          \
        sizeof(struct dt_gpu_host), sizeof(struct dt_device_ops),              \
            sizeof(struct dt_world), sizeof(struct dt_comm),                   \
            sizeof(struct dt_request), sizeof(struct dt_call),                 \
            sizeof(struct dt_tl_ops)                                           \
    }

/* The module's entry, by the name DT_GPU_DEVICE_SYMBOL: a device for a world,
 * whose close closes gpu, too; on an error gpu stays the caller's. functions
 * must stay where it is. Errors: NO_MEMORY, UNSUPPORTED (another version). */
#define DT_GPU_DEVICE_SYMBOL "dt_gpu_open_device"
typedef dt_result_t dt_gpu_open_device_fn(const struct dt_gpu_host *functions,
                                          struct dt_gpu *gpu,
                                          struct dt_device **device,
                                          struct dt_error *err);
extern dt_gpu_open_device_fn dt_gpu_open_device
    __attribute__((visibility("default")));

#endif
