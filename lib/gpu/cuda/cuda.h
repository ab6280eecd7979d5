/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cuda.h - what the files of the module libdt_cuda share. What of it has run on
 * hardware is said in gpu/gpu.h. */
#ifndef DT_GPU_CUDA_CUDA_H
#define DT_GPU_CUDA_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/cuda/args.h"
#include "gpu/cuda/driver.h"
#include "gpu/gpu.h"

/* The state of a device, from its first use on. */
struct dt_cuda_device {
    _Atomic(struct dt_cu_context *)
        context; /* the primary context; NULL: not used yet */
    pthread_mutex_t lock;
    struct dt_cu_event
        *event; /* for dt_cuda_order, which holds lock while it uses it */
    struct dt_cu_module *module;
    atomic_bool loaded; /* the kernels are loaded */
    struct dt_cu_function *kernel[DT_KERNELS];
};

/* Kinds of resources, which close frees if the caller has not. */
enum dt_cuda_kind {
    DT_CUDA_SHARED,
    DT_CUDA_IMPORTED,
    DT_CUDA_PINNED,
    DT_CUDA_REGISTERED, /* pinned memory that the caller owns */
    DT_CUDA_STREAM,
};

struct dt_cuda_thing {
    struct dt_cuda_thing *next;
    enum dt_cuda_kind kind;
    int device;
    void *at;
};

struct dt_cuda {
    struct dt_gpu gpu; /* first */
    struct dt_cuda_driver driver;
    pthread_mutex_t lock; /* protects the members below */
    struct dt_cuda_thing *things;
    struct dt_cuda_device *device;
    atomic_int count; /* of device; 0: the driver is not initialized yet */
};

/* The symbol DT_GPU_SYMBOL of the module. */
extern const struct dt_gpu_ops dt_gpu_cuda
    __attribute__((visibility("default")));

static inline struct dt_cuda *dt_cuda_of(struct dt_gpu *gpu)
{
    return (struct dt_cuda *)gpu;
}

/* ---- context.c ---- */

/* Initialize the driver if that has not been done. */
dt_result_t dt_cuda_start(struct dt_cuda *cuda, struct dt_error *err);

/* The same; INVALID_ARG if this process does not see such a device. */
dt_result_t dt_cuda_check_device(struct dt_cuda *cuda, int device,
                                 struct dt_error *err);

/* Make the primary context of the device the thread's current one, and set the
 * thread's capture mode so that its calls disturb no capture of another thread.
 * dt_cuda_leave undoes both; call it once for each successful enter. */
struct dt_cuda_scope {
    const struct dt_cuda_driver *driver;
    struct dt_cuda_device *device;
    int capture_mode;
};
dt_result_t dt_cuda_enter(struct dt_gpu *gpu, int device,
                          struct dt_cuda_scope *scope, struct dt_error *err);
void dt_cuda_leave(struct dt_cuda_scope *scope);

/* Record a resource, which close frees. On NO_MEMORY the resource is freed. */
dt_result_t dt_cuda_keep(struct dt_cuda *cuda,
                         const struct dt_cuda_thing *thing,
                         struct dt_error *err);
/* Remove a resource from the record and free it; *code is the driver's result.
 * false: the resource is not recorded. */
bool dt_cuda_drop(struct dt_cuda *cuda, enum dt_cuda_kind kind, void *at,
                  int *code);
/* The same for everything that is left. */
void dt_cuda_drop_all(struct dt_cuda *cuda);

/* Launch a kernel on a stream of device. args is the kernel's argument, passed
 * by value, and is read during the call only. The first launch on a device
 * loads all kernels. */
dt_result_t dt_cuda_launch(struct dt_gpu *gpu, int device,
                           enum dt_kernel kernel, unsigned blocks,
                           unsigned threads, const void *args, size_t size,
                           dt_stream_t stream, struct dt_error *err);

/* ---- functions of struct dt_gpu_ops, by file ---- */

/* Each X(name): dt_cuda_<name> is the function of that name there, which has
 * its contract. */
#define DT_CUDA_MEMORY(X)                                                      \
    X(locate) X(host_alloc) X(host_free) X(host_pin) X(host_unpin) X(copy)
#define DT_CUDA_SHARE(X)                                                       \
    X(reaches) X(share_alloc) X(share_free) X(import) X(release)
#define DT_CUDA_STREAMS(X)                                                     \
    X(stream_device) X(stream_create) X(stream_destroy) X(order)
#define DT_CUDA_WAIT(X)   X(query) X(finish) X(settle) X(signal) X(await)
#define DT_CUDA_LAUNCH(X) X(scale) X(convert) X(exchange)
#define DT_CUDA_EVENTS(X)                                                      \
    X(event_create) X(event_destroy) X(event_record) X(event_await)

#define DT_CUDA_OPS(X)                                                         \
    DT_CUDA_MEMORY(X)                                                          \
    DT_CUDA_SHARE(X)                                                           \
    DT_CUDA_STREAMS(X) DT_CUDA_WAIT(X) DT_CUDA_EVENTS(X) DT_CUDA_LAUNCH(X)
#define DT_CUDA_DECLARE(name)                                                  \
    __typeof__(*((struct dt_gpu_ops *)NULL)->name) dt_cuda_##name;
DT_CUDA_OPS(DT_CUDA_DECLARE)
#undef DT_CUDA_DECLARE

#endif
