/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.h - GPUs: their memory, streams, kernels, and what processes share.
 *
 * All of it is in a module of its own, libdt_cuda.so, which finds the driver by
 * dlopen; a process without GPUs never loads it.
 *
 * Streams are as in dt.h: DT_STREAM_NONE is the driver's default stream of the
 * current device. What is "put on a stream" runs after all that was put there
 * before; these functions only put it there, and return. Nothing here waits for
 * a GPU but finish, settle and the ends: free, host_free, host_unpin,
 * stream_destroy.
 *
 * Every function may be called from any thread. The thread's current context
 * is the same afterwards. Devices are numbered as this process sees them
 * (CUDA_VISIBLE_DEVICES), and their primary contexts are used, as by the CUDA
 * runtime and by PyTorch.
 *
 * Errors, where nothing else is said: INVALID_ARG (no such device, stream or
 * memory), NO_MEMORY, UNSUPPORTED (this GPU or driver cannot), SYSTEM (what the
 * driver said, by name; also a GPU that has fallen off the bus, and an earlier
 * kernel's fault, which is sticky). */
#ifndef DT_GPU_GPU_H
#define DT_GPU_GPU_H

#include "base/error.h"

/* Ranks of a node that can be in one exchange, and how many parts run side by
 * side in one. */
#define DT_GPU_PEERS  16
#define DT_GPU_BLOCKS 64

struct dt_gpu {
    const struct dt_gpu_ops *ops;
    /* the module's own follows */
};

enum dt_gpu_kind {
    DT_GPU_HOST,    /* not of the driver: ordinary memory */
    DT_GPU_PINNED,  /* host memory of the driver */
    DT_GPU_MEMORY,  /* of one device */
    DT_GPU_MANAGED, /* moves by itself: both may use it */
};

/* Where memory is. */
struct dt_gpu_place {
    enum dt_gpu_kind kind;
    int device;  /* MEMORY, MANAGED; else -1 */
    char *base;  /* MEMORY: its allocation, all of it; else NULL */
    size_t size; /* of that, bytes */
    uint64_t id; /* of that; never used again in this process */
};

/* Rows of len bytes, so far apart: dst and src each in any memory, of the host
 * or of any device. rows 1: a plain copy. */
struct dt_gpu_copy {
    void *dst;
    const void *src;
    size_t len, rows;
    size_t dst_pitch, src_pitch; /* bytes from row to row; rows > 1 */
};

/* How processes share memory of GPUs. */
enum dt_gpu_sharing {
    DT_GPU_SHARE_IPC, /* a handle, for processes of one IPC namespace */
    DT_GPU_SHARE_FD,  /* a file descriptor, which has to be handed over */
    DT_GPU_SHARINGS
};

/* What others import memory of share_alloc by; plain bytes, but for FD. */
struct dt_gpu_handle {
    uint32_t sharing;
    int32_t fd;    /* FD: this process's, and its holder's to close; else -1 */
    uint64_t size; /* of the memory, bytes */
    unsigned char bytes[64];
};

/* One of many tensors that are packed into one buffer, or unpacked. */
struct dt_gpu_tensor {
    void *data;
    size_t count; /* elements */
};

/* What each rank's shared memory is to an exchange: share_alloc'ed, at least
 * dt_gpu_board_size(slot) bytes, zeroed before the first one. Flags, mail, and
 * two slots of slot bytes each; the layout is the kernels' own. */
#define DT_GPU_FLAGS    ((size_t)64 << 10)
#define DT_GPU_MAIL     ((size_t)512 << 10)
#define DT_GPU_SLOT_MIN ((size_t)16 << 10) /* and a multiple of 16 */
static inline size_t dt_gpu_board_size(size_t slot)
{
    return DT_GPU_FLAGS + DT_GPU_MAIL + 2 * slot;
}

/* Bytes of the longest row that can be posted. */
#define DT_GPU_POST_MAX ((size_t)8 << 10)

enum dt_gpu_way {
    /* recv row r, count elements, = the row for me of rank r */
    DT_GPU_PLACE,
    /* recv = op over ranks, in their order, of the row for me */
    DT_GPU_REDUCE,
    /* recv = op over ranks, in their order, of their only row; each rank
     * reduces a part and shows the others the result. For long ones: REDUCE has
     * every rank read everything. */
    DT_GPU_SPREAD,
};

/* One collective among ranks whose GPUs can read each other's memory. All of
 * them put the same one on a stream, in the same order for the same boards; it
 * is over on this rank when this rank has its result and the others do not need
 * its send buffer any more. */
struct dt_gpu_exchange {
    enum dt_gpu_way way;
    size_t rank, size;         /* who am I; how many, at most DT_GPU_PEERS */
    void *board[DT_GPU_PEERS]; /* of each rank, as this process sees it */
    size_t slot;
    /* NULL: this rank shows nothing, or gets nothing. Apart, or in place as in
     * dt.h: recv is send, or this rank's row of it, or the other way round */
    const void *send;
    void *recv;
    size_t count; /* elements of a row */
    /* Rows of send: 1, which all ranks read, or size, one for each rank. A rank
     * whose bit is missing from `from` shows nothing, and is not read. */
    size_t send_rows;
    uint32_t from;
    size_t send_pitch, recv_pitch; /* bytes from row to row; may be 0: a row
                                    * that is the only one, of whatever rank */
    /* PLACE, REDUCE, short rows: instead of being read where it is shown, what
     * a rank shows is written to the others' boards, each word beside the
     * round's number. One trip from GPU to GPU instead of two, for twice the
     * bytes; the result has the same bits. */
    bool post;
    dt_dtype_t dtype;
    dt_op_t op;
    /* REDUCE, SPREAD: that of dt_exec_reduce_n. AVG is SUM, rounded to the type
     * as there, and then divided by size as dt_exec_divide does it: the bits
     * are those of the host's collectives. */
    double scale;
    /* in memory of host_alloc, as the host sees it */
    const uint32_t *abort; /* not 0: give up, at once */
    uint32_t *done;        /* gets done_value at the end, aborted or not */
    uint32_t done_value;
};

/* What a thread gets back from leave; the module's own. */
struct dt_gpu_scope {
    int capture_mode;
};

struct dt_gpu_ops {
    size_t size; /* of this struct, as the implementer knew it */
    const char *name;

    /* Find the driver. Cheap: the driver itself is not started before a
     * function needs it. Errors: UNSUPPORTED, with the reason in one line: no
     * driver, too old a one, the stub of the toolkit. A driver without a GPU
     * is found out by what needs one, UNSUPPORTED. */
    dt_result_t (*open)(struct dt_gpu **gpu, struct dt_error *err);
    /* What was not given back goes, too. NULL is fine. */
    void (*close)(struct dt_gpu *gpu);

    /* Where are these len > 0 bytes? Memory that the driver does not know is
     * HOST, and also what was freed; and all of it while nobody has started
     * the driver. INVALID_ARG: they begin in a device's allocation, and leave
     * it. Some 100 ns. */
    dt_result_t (*locate)(struct dt_gpu *gpu, const void *ptr, size_t len,
                          struct dt_gpu_place *place, struct dt_error *err);

    /* ---- devices ---- */

    dt_result_t (*devices)(struct dt_gpu *gpu, int *count,
                           struct dt_error *err);
    /* What dt_topo and users call it: "0000:1b:00.0". */
    dt_result_t (*bus)(struct dt_gpu *gpu, int device, char bus[24],
                       struct dt_error *err);
    /* Can device read memory of peer directly? Equal ones can. */
    dt_result_t (*reaches)(struct dt_gpu *gpu, int device, int peer, bool *yes,
                           struct dt_error *err);
    /* What others than this module do in between, on this thread, is done on
     * this device, and disturbs no capture: leave, once for each successful
     * enter. */
    dt_result_t (*enter)(struct dt_gpu *gpu, int device,
                         struct dt_gpu_scope *scope, struct dt_error *err);
    void (*leave)(struct dt_gpu *gpu, struct dt_gpu_scope *scope);

    /* ---- memory ---- */

    /* Zeroed memory that other processes can import; waits until it is zero.
     * UNSUPPORTED: not shared so by this GPU or driver, or not here
     * (containers, MIG, cgroups). */
    dt_result_t (*share_alloc)(struct dt_gpu *gpu, int device,
                               enum dt_gpu_sharing sharing, size_t size,
                               void **ptr, struct dt_gpu_handle *handle,
                               struct dt_error *err);
    dt_result_t (*share_free)(struct dt_gpu *gpu, void *ptr,
                              struct dt_error *err);
    /* Another process's, for use by device, until release; it must not be freed
     * before that. A descriptor stays the caller's. UNSUPPORTED: not between
     * these (containers, MIG, cgroups, no peer-to-peer). */
    dt_result_t (*import)(struct dt_gpu *gpu, int device,
                          const struct dt_gpu_handle *handle, void **ptr,
                          struct dt_error *err);
    void (*release)(struct dt_gpu *gpu, void *ptr);

    /* Zeroed host memory, pinned, near the device (its NUMA node), that all
     * devices can use at the same address. */
    dt_result_t (*host_alloc)(struct dt_gpu *gpu, int device, size_t size,
                              void **ptr, struct dt_error *err);
    void (*host_free)(struct dt_gpu *gpu, void *ptr);
    /* Pin memory that the host already has, for all devices: what is copied
     * from and to it goes at full speed, and beside the host. device: any that
     * is used anyway. Its pages must be the same until unpin. */
    dt_result_t (*host_pin)(struct dt_gpu *gpu, int device, void *ptr,
                            size_t size, struct dt_error *err);
    void (*host_unpin)(struct dt_gpu *gpu, void *ptr);

    /* ---- streams ---- */

    /* The device of a stream; of DT_STREAM_NONE: the thread's current one, or 0
     * where none is. capturing: it is being captured into a graph. */
    dt_result_t (*stream_device)(struct dt_gpu *gpu, dt_stream_t stream,
                                 int *device, bool *capturing,
                                 struct dt_error *err);
    /* One that does not wait for the default stream; of the highest priority.
     */
    dt_result_t (*stream_create)(struct dt_gpu *gpu, int device,
                                 dt_stream_t *stream, struct dt_error *err);
    void (*stream_destroy)(struct dt_gpu *gpu, dt_stream_t stream);
    /* What is put on `after` from now on waits for all that is on `before`. The
     * device is that of both; where one is DT_STREAM_NONE, it is device's. */
    dt_result_t (*order)(struct dt_gpu *gpu, int device, dt_stream_t before,
                         dt_stream_t after, struct dt_error *err);
    /* Is all on it done? Never waits. An error also tells that the GPU is lost,
     * if there was something on the stream. */
    dt_result_t (*query)(struct dt_gpu *gpu, int device, dt_stream_t stream,
                         bool *done, struct dt_error *err);
    /* Wait here until all on the stream is done. */
    dt_result_t (*finish)(struct dt_gpu *gpu, int device, dt_stream_t stream,
                          struct dt_error *err);
    /* The same for all streams of the device, whoever made them. */
    dt_result_t (*settle)(struct dt_gpu *gpu, int device, struct dt_error *err);

    /* ---- put on a stream of device ---- */

    dt_result_t (*copy)(struct dt_gpu *gpu, int device,
                        const struct dt_gpu_copy *copy, dt_stream_t stream,
                        struct dt_error *err);
    /* *flag = value, seen by the host after all that was before; flag is in
     * memory of host_alloc. */
    dt_result_t (*signal)(struct dt_gpu *gpu, int device, uint32_t *flag,
                          uint32_t value, dt_stream_t stream,
                          struct dt_error *err);
    /* Until (int32_t)(*flag - value) >= 0. Whoever puts this somewhere sees to
     * it that the flag is written, also after a failure. */
    dt_result_t (*await)(struct dt_gpu *gpu, int device, const uint32_t *flag,
                         uint32_t value, dt_stream_t stream,
                         struct dt_error *err);

    /* dt_exec_reduce_n on memory that device can read; n <= DT_GPU_PEERS. The
     * bits are those of dt_exec_reduce_n. */
    dt_result_t (*fold)(struct dt_gpu *gpu, int device, void *dst,
                        const void *const *in, size_t n, size_t count,
                        dt_dtype_t dtype, dt_op_t op, double scale,
                        dt_stream_t stream, struct dt_error *err);
    /* dt_exec_cast with a factor, applied in F32 (F64 between two F64) before
     * the rounding; to == from is a scale, or, with 1.0, a copy of any type.
     * dst may be src when the sizes of the types are equal. */
    dt_result_t (*cast)(struct dt_gpu *gpu, int device, void *dst,
                        dt_dtype_t to, const void *src, dt_dtype_t from,
                        size_t count, double factor, dt_stream_t stream,
                        struct dt_error *err);
    /* n tensors of type from, one behind the other, into dst of type to; and
     * back, from src. tensors is read during the call only. */
    dt_result_t (*pack)(struct dt_gpu *gpu, int device, void *dst,
                        dt_dtype_t to, const struct dt_gpu_tensor *tensors,
                        size_t n, dt_dtype_t from, double factor,
                        dt_stream_t stream, struct dt_error *err);
    dt_result_t (*unpack)(struct dt_gpu *gpu, int device,
                          const struct dt_gpu_tensor *tensors, size_t n,
                          dt_dtype_t to, const void *src, dt_dtype_t from,
                          double factor, dt_stream_t stream,
                          struct dt_error *err);
    /* UNSUPPORTED: not this op on this type. Can be captured into a graph. */
    dt_result_t (*exchange)(struct dt_gpu *gpu, int device,
                            const struct dt_gpu_exchange *exchange,
                            dt_stream_t stream, struct dt_error *err);
};

/* The module, and its symbol that is a struct dt_gpu_ops. */
#define DT_GPU_MODULE "libdt_cuda.so"
#define DT_GPU_SYMBOL "dt_gpu_cuda"

/* Load the module, and open it. It is looked for beside the program or library
 * that this code is in, in slurm-dt/ beside that, where it is installed, then
 * as the loader does. Where this process shows no sign of a GPU (no driver
 * loaded, no DT_GPUS, no /dev/nvidiactl) *gpu is NULL, and that is a success.
 * Errors: UNSUPPORTED, with the reason. */
dt_result_t dt_gpu_load(struct dt_gpu **gpu, struct dt_error *err);
void dt_gpu_unload(struct dt_gpu *gpu);

/* A function of the module, which has been loaded; NULL: it has none of this
 * name. */
void (*dt_gpu_symbol(const char *name))(void);

#endif
