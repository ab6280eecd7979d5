/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mock.h - a driver for tests: GPUs whose memory is the host's, and whose
 * streams are threads. What the environment says when it is first used:
 *
 *   DT_MOCK_GPUS=n       so many devices (2); 0: none
 *   DT_MOCK_VERSION=n    the driver's version (13000)
 *   DT_MOCK_NO_PEER=p    "all", or pairs: "0-1,2-3" do not reach each other
 *   DT_MOCK_HIDDEN=1     the host cannot touch memory of devices, as on a real
 *                        one, nor do addresses that were freed come back
 *   DT_MOCK_FAIL=f       "cuMemAlloc_v2=2,cuMemcpyAsync=719@3": the function
 *                        answers this code, from its third call on
 *   DT_MOCK_DELAY=d      "cuMemcpyAsync=20000": microseconds; of what is put on
 *                        a stream, when its turn comes
 *
 * As on a real one: unknown, freed and wrong handles are refused; nothing works
 * before cuInit, nor in a child that was forked after it; freeing waits for
 * the device; copies to ordinary host memory wait for the stream. Not as on a
 * real one: the host can read the memory of devices unless it is hidden, and
 * the default stream waits for no other. */
#ifndef DT_MOCK_H
#define DT_MOCK_H

#include <pthread.h>
#include <sys/types.h>

#include "gpu/cuda/driver.h"

#define MOCK_DEVICES 16

struct mock_graph;

/* What only programs use. */
#define MOCK_FUNCTIONS(X)                                                      \
    DT_CU_FUNCTIONS(X)                                                         \
    X(cuCtxSetCurrent, (struct dt_cu_context * ctx))                           \
    X(cuCtxGetCurrent, (struct dt_cu_context * *ctx))                          \
    X(cuMemAllocManaged, (dt_cu_ptr * ptr, size_t size, unsigned flags))       \
    X(cuStreamCreate, (dt_stream_t * stream, unsigned flags))                  \
    X(cuLaunchHostFunc,                                                        \
      (dt_stream_t stream, void (*fn)(void *arg), void *arg))                  \
    X(cuStreamBeginCapture_v2, (dt_stream_t stream, int mode))                 \
    X(cuStreamEndCapture, (dt_stream_t stream, struct mock_graph * *graph))    \
    X(cuGraphInstantiateWithFlags,                                             \
      (struct mock_graph * *exec, struct mock_graph * graph,                   \
       unsigned long long flags))                                              \
    X(cuGraphLaunch, (struct mock_graph * exec, dt_stream_t stream))           \
    X(cuGraphExecDestroy, (struct mock_graph * exec))                          \
    X(cuGraphDestroy, (struct mock_graph * graph))

#define MOCK_EXPORT                __attribute__((visibility("default")))
#define MOCK_DECLARE(name, params) MOCK_EXPORT int name params;
MOCK_FUNCTIONS(MOCK_DECLARE)
#undef MOCK_DECLARE

/* How often this process has called a function of the driver; -1: unknown. */
MOCK_EXPORT int dt_mock_calls(const char *name);

/* From now on a function answers this code, 0: as it should. */
MOCK_EXPORT void dt_mock_fail(const char *name, int code);

/* n mappings of size bytes each, one behind the other, as allocators make them
 * who map memory piece by piece; 0: no memory. */
MOCK_EXPORT dt_cu_ptr dt_mock_mappings(int device, size_t n, size_t size);

/* How often this process has launched a kernel; -1: unknown. */
MOCK_EXPORT int dt_mock_launches(const char *kernel);

/* ---- among the files of the mock ---- */

enum mock_call {
#define MOCK_CALL(name, params) CALL_##name,
    MOCK_FUNCTIONS(MOCK_CALL)
#undef MOCK_CALL
        MOCK_CALLS
};

enum {
    CU_ALREADY_REGISTERED = 712,
    CU_NOT_REGISTERED = 713,
    CU_CAPTURE_INVALID = 401,
};

struct mock_memory {
    struct mock_memory *next;
    dt_cu_ptr start;
    size_t size;
    uint64_t id;
    unsigned type;
    bool managed, plain;
    bool imported, registered;
    int device, fd; /* -1: none */
    char *shown; /* NULL: at start; else where the mock reads and writes it */
};

struct dt_cu_context {
    int device, uses;
    struct mock_stream *stream; /* the default one */
};

/* Begin a function: count, fail, delay. queued: the delay is mock_delay()'s. */
int mock_begin(enum mock_call call, bool queued);
#define BEGIN(name)                                                            \
    do {                                                                       \
        int begin_code = mock_begin(CALL_##name, false);                       \
        if (begin_code)                                                        \
            return begin_code;                                                 \
    } while (0)
#define BEGIN_QUEUED(name)                                                     \
    do {                                                                       \
        int begin_code = mock_begin(CALL_##name, true);                        \
        if (begin_code)                                                        \
            return begin_code;                                                 \
    } while (0)
unsigned mock_delay(enum mock_call call);

/* One lock for all; changed: something on some stream is done. */
extern pthread_mutex_t mock_lock;
extern pthread_cond_t mock_changed;

int mock_devices(void);
bool mock_reaches(int device, int peer);
/* The thread's current one, or NULL. */
struct dt_cu_context *mock_context(void);
struct dt_cu_context *mock_primary(int device);

/* NULL, or what this is in; under the lock. */
struct mock_memory *mock_find(dt_cu_ptr ptr);
/* Where the mock reads and writes it. */
char *mock_reach(const void *at);
/* Is all of it memory that the driver knows? */
bool mock_knows(dt_cu_ptr ptr, size_t len);

void mock_add(struct mock_memory what);
/* Take one out that begins at ptr and is of this sort; NULL: none. */
struct mock_memory *mock_take(dt_cu_ptr ptr, unsigned type, bool imported,
                              bool registered);

/* Until all is done that is on the streams of a device. */
void mock_drain(int device);

#endif
