/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* args.h - the names of the kernels, and their arguments: one struct by value.
 * It is C for the host that launches, and C++ for the device. */
#ifndef DT_GPU_CUDA_ARGS_H
#define DT_GPU_CUDA_ARGS_H

#include <stdint.h>

/* As DT_GPU_PEERS, DT_GPU_BLOCKS, DT_GPU_FLAGS and DT_GPU_MAIL of gpu.h. */
#define DT_CUDA_PEERS  16
#define DT_CUDA_BLOCKS 64
#define DT_CUDA_FLAGS  65536u
#define DT_CUDA_MAIL   524288u

/* Bytes of a row that a block posts, and blocks that post: a thread then has at
 * most eight words to write, and to read. */
#define DT_CUDA_LETTER  1024u
#define DT_CUDA_POSTERS 8

/* The most threads of a block; the kernels are compiled for this number. */
#define DT_CUDA_THREADS 512

/* X(type, DTYPE, arithmetic): all types, and those of floating point */
#define DT_CUDA_TYPES(X)                                                       \
    X(i8, I8, i32)                                                             \
    X(u8, U8, i32)                                                             \
    X(i32, I32, i32)                                                           \
    X(i64, I64, i64)                                                           \
    DT_CUDA_FLOATS(X)
#define DT_CUDA_FLOATS(X)                                                      \
    X(f16, F16, f32)                                                           \
    X(bf16, BF16, f32)                                                         \
    X(f32, F32, f32)                                                           \
    X(f64, F64, f64)                                                           \
    X(f8e4m3, F8E4M3, f32)                                                     \
    X(f8e5m2, F8E5M2, f32)

/* The kernels in the order of the types; each X(name, args) */
#define DT_CUDA_SCALE(type, TYPE, wide)  X(dt_scale_##type, dt_scale_args)
#define DT_CUDA_REDUCE(type, TYPE, wide) X(dt_reduce_##type, dt_exchange_args)
#define DT_CUDA_KERNELS                                                        \
    DT_CUDA_FLOATS(DT_CUDA_SCALE)                                              \
    DT_CUDA_TYPES(DT_CUDA_REDUCE)                                              \
    X(dt_place, dt_exchange_args)                                              \
    X(dt_convert, dt_convert_args)

/* Pairs of types that dt_convert takes, from and to. */
#define DT_CUDA_CASTS(X)                                                       \
    X(I32, I32)                                                                \
    X(I64, I64)                                                                \
    X(F16, F16)                                                                \
    X(BF16, BF16)                                                              \
    X(F32, F32)                                                                \
    X(F64, F64)                                                                \
    X(F32, F16)                                                                \
    X(F32, BF16)                                                               \
    X(F64, F16)                                                                \
    X(F64, BF16)                                                               \
    X(F16, F32)                                                                \
    X(BF16, F32)                                                               \
    X(F16, F64)                                                                \
    X(BF16, F64)

/* DT_KERNEL_dt_scale_f16 ... */
enum dt_kernel {
#define X(name, args) DT_KERNEL_##name,
    DT_CUDA_KERNELS
#undef X
        DT_KERNELS /* how many */
};

/* The name of the kernel in the image. */
static inline const char *dt_kernel_name(enum dt_kernel kernel)
{
    static const char *const names[] = {
#define X(name, args) #name,
        DT_CUDA_KERNELS
#undef X
    };
    return names[kernel];
}

/* dt_scale_TYPE: any grid and block. */
struct dt_scale_args {
    char *dst;
    const char *src;
    uint64_t count;
    double factor;
};

/* dt_convert: blocks from `first` on, up to that of the next part, work on a
 * part; together they are the grid. All parts fit into the 4 KiB that arguments
 * may have. */
#define DT_CUDA_PARTS 64
struct dt_convert_part {
    char *dst;
    const char *src; /* NULL: zeros */
    uint64_t count;
    double before, after; /* factors before and after the cast */
    uint32_t first, divisor;
    int32_t from, to; /* DT_DTYPE_ */
};
struct dt_convert_args {
    struct dt_convert_part part[DT_CUDA_PARTS];
    uint32_t parts;
};

/* dt_place (count is bytes), dt_reduce_TYPE: a grid of at most DT_CUDA_BLOCKS,
 * the same on all ranks, as are all of these but those of send,
 * recv, and what the host is told by. */
struct dt_exchange_args {
    char *board[DT_CUDA_PEERS];        /* boards of all ranks */
    const char *source[DT_CUDA_PEERS]; /* rows of the ranks that contribute */
    const char *send;                  /* NULL: this rank contributes nothing */
    char *recv;                        /* NULL: this rank receives nothing */
    uint64_t count;                    /* elements of a row */
    uint64_t part;   /* elements for a block; the last has the rest */
    uint64_t step;   /* elements in a round */
    uint64_t slot;   /* bytes */
    uint64_t region; /* bytes of the slot for a block */
    uint64_t room;   /* of them, for a row; SPREAD: the result is behind it */
    uint64_t send_pitch, recv_pitch; /* bytes */
    const uint32_t *abort;
    uint32_t *done;
    double scale;
    uint32_t done_value;
    uint32_t rank, size, sources, rows;
    uint32_t divisor; /* of the result; 0: no division */
    int32_t op;
    uint32_t spread, post;
    uint32_t from;              /* bits: the ranks that contribute */
    uint8_t who[DT_CUDA_PEERS]; /* the rank of each source */
};

#endif
