/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* driver.h - the functions of the CUDA driver that the module uses, declared as
 * in the driver's ABI, and the library that has them. No header of NVIDIA's is
 * needed. */
#ifndef DT_GPU_CUDA_DRIVER_H
#define DT_GPU_CUDA_DRIVER_H

#include "base/error.h"

#define DT_CU_LIBRARY "libcuda.so.1"

/* The oldest supported driver, CUDA 11.7, the first in which stream memory
 * operations (write and wait of 32-bit values) work on host memory on every
 * stream. */
#define DT_CU_VERSION 11070

/* Result codes. All others are used for their name only. */
enum {
    DT_CU_OK = 0,
    DT_CU_INVALID_VALUE = 1,
    DT_CU_OUT_OF_MEMORY = 2,
    DT_CU_NOT_INITIALIZED = 3,
    DT_CU_DEINITIALIZED = 4, /* the process is ending */
    DT_CU_STUB = 34,
    DT_CU_NO_DEVICE = 100,
    DT_CU_INVALID_DEVICE = 101,
    DT_CU_INVALID_IMAGE = 200,
    DT_CU_INVALID_CONTEXT = 201,
    DT_CU_MAP_FAILED = 205,
    DT_CU_NO_BINARY = 209,
    DT_CU_NO_PEER = 217,
    DT_CU_INVALID_PTX = 218,
    DT_CU_UNSUPPORTED_PTX = 222,
    DT_CU_OPERATING_SYSTEM = 304,
    DT_CU_INVALID_HANDLE = 400,
    DT_CU_NOT_FOUND = 500,
    DT_CU_NOT_READY = 600,
    DT_CU_NOT_PERMITTED = 800,
    DT_CU_NOT_SUPPORTED = 801,
    DT_CU_CAPTURE_UNSUPPORTED = 900,
};

/* Attributes of a pointer, each with the type of its value. */
enum {
    DT_CU_MEMORY_TYPE = 2,    /* unsigned: DT_CU_MEMORY_* */
    DT_CU_BUFFER_ID = 7,      /* uint64_t */
    DT_CU_IS_MANAGED = 8,     /* unsigned */
    DT_CU_DEVICE_ORDINAL = 9, /* int */
    DT_CU_IS_PLAIN = 10,      /* unsigned; not by virtual memory management */
    DT_CU_RANGE_START = 11,   /* dt_cu_ptr */
    DT_CU_RANGE_SIZE = 12,    /* size_t */
};

enum {
    DT_CU_MEMORY_HOST = 1,
    DT_CU_MEMORY_DEVICE = 2,
    DT_CU_MEMORY_UNIFIED = 4, /* copies: the address tells which */
};

#define DT_CU_HOST_PORTABLE   1u
#define DT_CU_HOST_MAPPED     2u
#define DT_CU_IPC_LAZY_PEER   1u
#define DT_CU_NON_BLOCKING    1u
#define DT_CU_NO_TIMING       2u
#define DT_CU_WAIT_GEQ        0u
#define DT_CU_CAPTURE_RELAXED 2
#define DT_CU_MAX_PITCH       INT32_MAX

/* cuLaunchKernel's form for all parameters in one buffer */
#define DT_CU_PARAM_END     ((void *)0)
#define DT_CU_PARAM_POINTER ((void *)1)
#define DT_CU_PARAM_SIZE    ((void *)2)

typedef unsigned long long dt_cu_ptr;
struct dt_cu_context;
struct dt_cu_event;
struct dt_cu_module;
struct dt_cu_function;

struct dt_cu_ipc {
    unsigned char bytes[64];
};

struct dt_cu_side {
    size_t x, y;
    int type;
    void *host;
    dt_cu_ptr device;
    void *array;
    size_t pitch;
};

struct dt_cu_copy_2d {
    struct dt_cu_side src, dst;
    size_t width, height;
};

/* X(symbol, parameters); all return an int, of which 0 is success */
#define DT_CU_FUNCTIONS(X)                                                     \
    X(cuInit, (unsigned flags))                                                \
    X(cuDriverGetVersion, (int *version))                                      \
    X(cuGetErrorName, (int code, const char **name))                           \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))                          \
    X(cuDeviceGetCount, (int *count))                                          \
    X(cuDeviceGetPCIBusId, (char *bus, int len, int device))                   \
    X(cuDeviceCanAccessPeer, (int *yes, int device, int peer))                 \
    X(cuDevicePrimaryCtxRetain, (struct dt_cu_context * *ctx, int device))     \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                              \
    X(cuCtxPushCurrent_v2, (struct dt_cu_context * ctx))                       \
    X(cuCtxPopCurrent_v2, (struct dt_cu_context * *ctx))                       \
    X(cuCtxGetDevice, (int *device))                                           \
    X(cuCtxSynchronize, (void))                                                \
    X(cuCtxGetStreamPriorityRange, (int *lowest, int *highest))                \
    X(cuMemAlloc_v2, (dt_cu_ptr * ptr, size_t size))                           \
    X(cuMemFree_v2, (dt_cu_ptr ptr))                                           \
    X(cuMemHostAlloc, (void **ptr, size_t size, unsigned flags))               \
    X(cuMemFreeHost, (void *ptr))                                              \
    X(cuMemHostRegister_v2, (void *ptr, size_t size, unsigned flags))          \
    X(cuMemHostUnregister, (void *ptr))                                        \
    X(cuMemsetD8Async,                                                         \
      (dt_cu_ptr ptr, unsigned char value, size_t size, dt_stream_t stream))   \
    X(cuMemcpyAsync,                                                           \
      (dt_cu_ptr dst, dt_cu_ptr src, size_t size, dt_stream_t stream))         \
    X(cuMemcpy2DAsync_v2,                                                      \
      (const struct dt_cu_copy_2d *copy, dt_stream_t stream))                  \
    X(cuPointerGetAttributes,                                                  \
      (unsigned n, int *attributes, void **values, dt_cu_ptr ptr))             \
    X(cuIpcGetMemHandle, (struct dt_cu_ipc * handle, dt_cu_ptr ptr))           \
    X(cuIpcOpenMemHandle_v2,                                                   \
      (dt_cu_ptr * ptr, struct dt_cu_ipc handle, unsigned flags))              \
    X(cuIpcCloseMemHandle, (dt_cu_ptr ptr))                                    \
    X(cuStreamCreateWithPriority,                                              \
      (dt_stream_t * stream, unsigned flags, int priority))                    \
    X(cuStreamDestroy_v2, (dt_stream_t stream))                                \
    X(cuStreamSynchronize, (dt_stream_t stream))                               \
    X(cuStreamQuery, (dt_stream_t stream))                                     \
    X(cuStreamIsCapturing, (dt_stream_t stream, int *status))                  \
    X(cuStreamGetCtx, (dt_stream_t stream, struct dt_cu_context * *ctx))       \
    X(cuStreamWaitEvent,                                                       \
      (dt_stream_t stream, struct dt_cu_event * event, unsigned flags))        \
    X(cuStreamWriteValue32_v2,                                                 \
      (dt_stream_t stream, dt_cu_ptr ptr, uint32_t value, unsigned flags))     \
    X(cuStreamWaitValue32_v2,                                                  \
      (dt_stream_t stream, dt_cu_ptr ptr, uint32_t value, unsigned flags))     \
    X(cuEventCreate, (struct dt_cu_event * *event, unsigned flags))            \
    X(cuEventRecord, (struct dt_cu_event * event, dt_stream_t stream))         \
    X(cuEventDestroy_v2, (struct dt_cu_event * event))                         \
    X(cuModuleLoadData, (struct dt_cu_module * *module, const void *image))    \
    X(cuModuleUnload, (struct dt_cu_module * module))                          \
    X(cuModuleGetFunction, (struct dt_cu_function * *function,                 \
                            struct dt_cu_module * module, const char *name))   \
    X(cuLaunchKernel,                                                          \
      (struct dt_cu_function * function, unsigned grid_x, unsigned grid_y,     \
       unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,  \
       unsigned shared, dt_stream_t stream, void **params, void **extra))

struct dt_cuda_driver {
    void *library;
#define DT_CU_MEMBER(name, params) int(*name) params;
    DT_CU_FUNCTIONS(DT_CU_MEMBER)
#undef DT_CU_MEMBER
};

/* Load the library of the driver, which then stays loaded, and find its
 * functions. The driver is not initialized. UNSUPPORTED, with the reason: there
 * is no driver, it is the stub of the toolkit, or it is too old. */
dt_result_t dt_cuda_driver_open(struct dt_cuda_driver *driver,
                                struct dt_error *err);
void dt_cuda_driver_close(struct dt_cuda_driver *driver);

/* Convert a code of the driver to a result, with an error text that names it.
 * doing says what failed: "copy 12 bytes". SUCCESS for DT_CU_OK. */
dt_result_t dt_cuda_driver_error(const struct dt_cuda_driver *driver, int code,
                                 struct dt_error *err, const char *doing, ...)
    __attribute__((format(printf, 4, 5)));

#endif
