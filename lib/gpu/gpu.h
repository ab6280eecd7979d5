/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.h - the interface to GPUs: memory, streams, kernels, and memory that
 * processes share.
 *
 * This code has run on one NVIDIA H200, which several ranks shared, and under
 * the test driver (tests/mock); never between GPUs.
 *
 * The implementation is a module of its own, libdt_cuda.so, which loads the
 * CUDA driver by dlopen. A process without GPUs never loads the module.
 *
 * Streams are as in dt.h: DT_STREAM_NONE is the default stream of the current
 * device. Work that is put on a stream runs after all work that was put there
 * before. The functions that put work on a stream return without waiting. The
 * only functions that wait for a GPU are share_alloc, finish, settle, and those
 * that free or destroy: share_free, host_free, host_unpin, stream_destroy.
 *
 * Every function may be called from any thread, and leaves the current context
 * of the thread unchanged. Devices are numbered as this process sees them
 * (CUDA_VISIBLE_DEVICES). Their primary contexts are used, as by the CUDA
 * runtime and by PyTorch.
 *
 * Errors, unless a function says otherwise: INVALID_ARG (there is no such
 * device, stream or memory), NO_MEMORY, UNSUPPORTED (this GPU or driver does
 * not support it), SYSTEM (any other error of the driver, which the text names;
 * also a GPU that has fallen off the bus, and the fault of an earlier kernel,
 * which is sticky). */
#ifndef DT_GPU_GPU_H
#define DT_GPU_GPU_H

#include "base/error.h"

/* The most ranks of a node in one exchange, and the most blocks of its
 * kernel. */
#define DT_GPU_PEERS  16
#define DT_GPU_BLOCKS 64

struct dt_gpu {
    const struct dt_gpu_ops *ops;
    /* the members of the module follow */
};

enum dt_gpu_kind {
    DT_GPU_HOST,    /* ordinary memory, unknown to the driver */
    DT_GPU_PINNED,  /* host memory that the driver has pinned */
    DT_GPU_MEMORY,  /* memory of one device */
    DT_GPU_MANAGED, /* managed memory: both host and device may use it */
};

/* Where memory is located. */
struct dt_gpu_place {
    enum dt_gpu_kind kind;
    int device;  /* MEMORY, MANAGED; else -1 */
    char *base;  /* MEMORY: start of its allocation; else NULL */
    size_t size; /* bytes of the allocation */
    uint64_t id; /* of the allocation; never reused in this process */
};

/* A copy of rows of len bytes each. dst and src may each be in host memory or
 * in memory of any device. With rows 1 it is a plain copy. */
struct dt_gpu_copy {
    void *dst;
    const void *src;
    size_t len, rows;
    size_t dst_pitch, src_pitch; /* bytes from row to row; rows > 1 */
};

/* Elements on their way into a bucket, or out of it, as lib/grad/convert.h has
 * it: dst[i] = after * (to) (before * src[i]) / divisor, each rounded to its
 * type; integers are truncated. src NULL: zeros. dst and src are aligned to
 * their elements, and do not overlap; src may be in memory of host_alloc. */
struct dt_gpu_part {
    void *dst;
    const void *src;
    size_t count;
    dt_dtype_t to, from;
    double before, after;
    uint32_t divisor; /* 0 and 1: none */
};

/* The handle by which other processes import memory of share_alloc, a CUDA IPC
 * handle. */
struct dt_gpu_handle {
    unsigned char bytes[64];
};

/* The board of a rank in an exchange: memory of share_alloc, at least
 * dt_gpu_board_size(slot) bytes, zero before the first exchange. It has flags,
 * mail (posted rows), and two slots of slot bytes each. The layout is private
 * to the kernels. */
#define DT_GPU_FLAGS    ((size_t)64 << 10)
#define DT_GPU_MAIL     ((size_t)512 << 10)
#define DT_GPU_SLOT_MIN ((size_t)16 << 10) /* slot is also a multiple of 16 */
static inline size_t dt_gpu_board_size(size_t slot)
{
    return DT_GPU_FLAGS + DT_GPU_MAIL + 2 * slot;
}

/* Bytes of the longest row that can be posted. */
#define DT_GPU_POST_MAX ((size_t)8 << 10)

enum dt_gpu_way {
    /* Row r of recv, count elements, is the row that rank r has for this
     * rank. */
    DT_GPU_PLACE,
    /* recv is the reduction, in the order of the ranks, of the rows that the
     * ranks have for this rank. */
    DT_GPU_REDUCE,
    /* recv is the reduction, in the order of the ranks, of the only row of
     * each. Each rank reduces a part, and the others read its result. This is
     * for long rows; in REDUCE every rank reads all rows. */
    DT_GPU_SPREAD,
};

/* One collective among ranks whose GPUs can read each other's memory. For the
 * same boards, all ranks put the same exchanges on a stream in the same order.
 * An exchange is complete on a rank when the rank has its result and no other
 * rank needs its send buffer any more. */
struct dt_gpu_exchange {
    enum dt_gpu_way way;
    size_t rank, size; /* this rank; number of ranks, at most DT_GPU_PEERS */
    void *board[DT_GPU_PEERS]; /* board of each rank, mapped in this process */
    size_t slot;
    /* send is NULL where this rank contributes nothing, recv where it receives
     * nothing. The buffers do not overlap, or are in place as in dt.h: recv is
     * send, or recv is this rank's row of send, or the other way round. */
    const void *send;
    void *recv;
    size_t count; /* elements in a row */
    /* Rows of send: 1, which all ranks read, or size, one for each rank. A rank
     * whose bit is not set in `from` contributes nothing, and is not read. */
    size_t send_rows;
    uint32_t from;
    size_t send_pitch, recv_pitch; /* bytes from row to row; may be 0 where
                                      there is only one row, of any rank */
    /* PLACE and REDUCE of short rows: instead of leaving its rows to be read, a
     * rank writes them into the boards of the others, with the number of the
     * round as a flag in each word (data and flag in one write, as NCCL's LL
     * protocol). This takes one transfer latency instead of two, and twice the
     * bytes. The result has the same bits. */
    bool post;
    dt_dtype_t dtype;
    dt_op_t op;
    /* REDUCE, SPREAD: the scale of dt_exec_reduce_n. AVG is SUM, rounded to the
     * type as there, and then divided by size as by dt_exec_divide. The bits
     * are those of the host's collectives. */
    double scale;
    /* in memory of host_alloc, by host addresses */
    const uint32_t *abort; /* not 0: the exchange ends at once */
    uint32_t *done;        /* set to done_value at the end, also when aborted */
    uint32_t done_value;
};

/* What enter saves for leave; private to the module. */
struct dt_gpu_scope {
    int capture_mode;
};

struct dt_gpu_ops {
    size_t size; /* of this struct, as the module was compiled */
    const char *name;

    /* Find the driver. This is cheap: the driver is not initialized before a
     * function needs it. Errors: UNSUPPORTED, with the reason in one line:
     * there is no driver, it is too old, or it is the stub of the toolkit. That
     * a driver has no GPU is reported by the functions that need one, as
     * UNSUPPORTED. */
    dt_result_t (*open)(struct dt_gpu **gpu, struct dt_error *err);
    /* Close the module's state and free what the caller has not freed. NULL is
     * allowed. */
    void (*close)(struct dt_gpu *gpu);

    /* Find where these len > 0 bytes are. Memory that the driver does not know
     * is HOST; so is memory that was freed, and all memory until the process
     * has initialized the driver. INVALID_ARG: the bytes begin in an allocation
     * of a device and exceed it. Takes some 100 ns. */
    dt_result_t (*locate)(struct dt_gpu *gpu, const void *ptr, size_t len,
                          struct dt_gpu_place *place, struct dt_error *err);

    /* ---- devices ---- */

    dt_result_t (*devices)(struct dt_gpu *gpu, int *count,
                           struct dt_error *err);
    /* The PCI address, as dt_topo has it: "0000:1b:00.0". */
    dt_result_t (*bus)(struct dt_gpu *gpu, int device, char bus[24],
                       struct dt_error *err);
    /* SUCCESS if device can directly read memory of the GPU with this PCI
     * address, which may be its own. UNSUPPORTED, with the reason: it cannot,
     * or this process does not see that GPU. */
    dt_result_t (*reaches)(struct dt_gpu *gpu, int device, const char *bus,
                           struct dt_error *err);
    /* Between enter and leave, code outside of this module runs with this
     * device as the thread's current one, and disturbs no stream capture. Call
     * leave once for each successful enter. */
    dt_result_t (*enter)(struct dt_gpu *gpu, int device,
                         struct dt_gpu_scope *scope, struct dt_error *err);
    void (*leave)(struct dt_gpu *gpu, struct dt_gpu_scope *scope);

    /* ---- memory ---- */

    /* Allocate memory that other processes can import by *handle, and wait
     * until it is zeroed. handle NULL: it is not exported. UNSUPPORTED: this
     * GPU or driver cannot share it, or not here (containers, MIG, cgroups). */
    dt_result_t (*share_alloc)(struct dt_gpu *gpu, int device, size_t size,
                               void **ptr, struct dt_gpu_handle *handle,
                               struct dt_error *err);
    dt_result_t (*share_free)(struct dt_gpu *gpu, void *ptr,
                              struct dt_error *err);
    /* Import memory of another process for use by device, until release. The
     * owner must not free it before. UNSUPPORTED: not possible between these
     * two processes or devices (containers, MIG, cgroups, no peer-to-peer). */
    dt_result_t (*import)(struct dt_gpu *gpu, int device,
                          const struct dt_gpu_handle *handle, void **ptr,
                          struct dt_error *err);
    void (*release)(struct dt_gpu *gpu, void *ptr);

    /* Allocate zeroed pinned host memory on the NUMA node of the device. All
     * devices can use it at the same address. */
    dt_result_t (*host_alloc)(struct dt_gpu *gpu, int device, size_t size,
                              void **ptr, struct dt_error *err);
    void (*host_free)(struct dt_gpu *gpu, void *ptr);
    /* Pin existing host memory for all devices, so that copies from and to it
     * run at full speed and asynchronously. device: any device that is in use
     * anyway. The pages must stay the same until host_unpin. */
    dt_result_t (*host_pin)(struct dt_gpu *gpu, int device, void *ptr,
                            size_t size, struct dt_error *err);
    void (*host_unpin)(struct dt_gpu *gpu, void *ptr);

    /* ---- streams ---- */

    /* The device of a stream. For DT_STREAM_NONE it is the thread's current
     * device, or 0 where there is none. capturing: the stream is being captured
     * into a graph. */
    dt_result_t (*stream_device)(struct dt_gpu *gpu, dt_stream_t stream,
                                 int *device, bool *capturing,
                                 struct dt_error *err);
    /* Create a stream that does not synchronize with the default stream, with
     * the highest priority. */
    dt_result_t (*stream_create)(struct dt_gpu *gpu, int device,
                                 dt_stream_t *stream, struct dt_error *err);
    void (*stream_destroy)(struct dt_gpu *gpu, dt_stream_t stream);
    /* Work that is put on `after` from now on waits for all that is on
     * `before`. Both are streams of device; DT_STREAM_NONE is its default
     * stream. */
    dt_result_t (*order)(struct dt_gpu *gpu, int device, dt_stream_t before,
                         dt_stream_t after, struct dt_error *err);
    /* Is all work on the stream complete? Never waits. If the GPU is lost and
     * the stream has work, this returns an error. */
    dt_result_t (*query)(struct dt_gpu *gpu, int device, dt_stream_t stream,
                         bool *done, struct dt_error *err);
    /* Block until all work on the stream is complete. */
    dt_result_t (*finish)(struct dt_gpu *gpu, int device, dt_stream_t stream,
                          struct dt_error *err);
    /* The same for all streams of the device, whoever created them. */
    dt_result_t (*settle)(struct dt_gpu *gpu, int device, struct dt_error *err);

    /* An event of device stands for all that was on a stream of it when it was
     * recorded; work that is put on a stream after event_await waits for that,
     * also if the event is recorded again meanwhile. DT_STREAM_NONE is the
     * default stream of device. */
    dt_result_t (*event_create)(struct dt_gpu *gpu, int device, void **event,
                                struct dt_error *err);
    void (*event_destroy)(struct dt_gpu *gpu, int device, void *event);
    dt_result_t (*event_record)(struct dt_gpu *gpu, int device, void *event,
                                dt_stream_t stream, struct dt_error *err);
    dt_result_t (*event_await)(struct dt_gpu *gpu, int device, void *event,
                               dt_stream_t stream, struct dt_error *err);

    /* ---- put on a stream of device ---- */

    dt_result_t (*copy)(struct dt_gpu *gpu, int device,
                        const struct dt_gpu_copy *copy, dt_stream_t stream,
                        struct dt_error *err);
    /* Write value to *flag after all earlier work, whose effects the host then
     * sees. flag is in memory of host_alloc. */
    dt_result_t (*signal)(struct dt_gpu *gpu, int device, uint32_t *flag,
                          uint32_t value, dt_stream_t stream,
                          struct dt_error *err);
    /* Wait on the stream until (int32_t)(*flag - value) >= 0. The caller
     * ensures that the flag is written in the end, also after a failure. */
    dt_result_t (*await)(struct dt_gpu *gpu, int device, const uint32_t *flag,
                         uint32_t value, dt_stream_t stream,
                         struct dt_error *err);

    /* dt_exec_scale on memory of device, with the same bits. dst may be src.
     * UNSUPPORTED: this is no floating-point type. */
    dt_result_t (*scale)(struct dt_gpu *gpu, int device, void *dst,
                         const void *src, size_t count, dt_dtype_t dtype,
                         double factor, dt_stream_t stream,
                         struct dt_error *err);
    /* n parts. UNSUPPORTED: there is no kernel for these types: I32, I64, F16,
     * BF16, F32 and F64 without a cast, and F32 and F64 from and to F16 and
     * BF16. */
    dt_result_t (*convert)(struct dt_gpu *gpu, int device,
                           const struct dt_gpu_part *parts, size_t n,
                           dt_stream_t stream, struct dt_error *err);
    /* UNSUPPORTED: there is no kernel for this op on this type. Can be captured
     * into a graph. */
    dt_result_t (*exchange)(struct dt_gpu *gpu, int device,
                            const struct dt_gpu_exchange *exchange,
                            dt_stream_t stream, struct dt_error *err);
};

/* The name of the module, and of its symbol of type struct dt_gpu_ops. */
#define DT_GPU_MODULE "libdt_cuda.so"
#define DT_GPU_SYMBOL "dt_gpu_cuda"

/* Load the module and open it. The module is searched for beside the program or
 * library that contains this code, in the folder slurm-dt/ beside that (where
 * it is installed), then as the dynamic loader does. Where this process shows
 * no sign of a GPU (no driver loaded, no DT_GPUS, no /dev/nvidiactl), *gpu is
 * NULL, and the result is SUCCESS. Errors: UNSUPPORTED, with the reason. */
dt_result_t dt_gpu_load(struct dt_gpu **gpu, struct dt_error *err);
void dt_gpu_unload(struct dt_gpu *gpu);

/* A function of the loaded module by its name; NULL where there is none. */
void (*dt_gpu_symbol(const char *name))(void);

#endif
