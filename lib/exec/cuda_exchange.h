/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cuda_exchange.h - the bodies of the kernels that exchange with other GPUs;
 * see struct dt_gpu_exchange, and cuda_kernels.h for how they are included.
 *
 * A board is flags, then two slots. Block b has line b of the flags and the
 * region b of each slot for itself: between ranks, only blocks of the same
 * number meet, in rounds that they count in their line, where a graph that is
 * replayed finds them. In round r it puts what it shows into slot r % 2, tells
 * everyone, waits for everyone, and reads.
 *
 * Two slots suffice: who writes round r + 2 has been told of round r + 1 by all
 * ranks, whether they show anything or not, and each tells it only after having
 * read all of round r. What is still read is round r + 1, in the other slot.
 *
 * SPREAD meets a second time in its round, on flags of their own, and shows
 * the results behind what it showed first; the same holds for them. */
#ifndef DT_EXEC_CUDA_EXCHANGE_H
#define DT_EXEC_CUDA_EXCHANGE_H

#include "exec/cuda_kernels.h"

/* The flags of a block: of each rank, the last round that it has shown, and has
 * reduced its part of; my round; the blocks that have ended, in block 0's. */
struct line {
    uint32_t shown[DT_CUDA_PEERS], reduced[DT_CUDA_PEERS];
    uint32_t round, ended;
    uint32_t spare[256 - 2 * DT_CUDA_PEERS - 2];
};

FN struct line *line_of(char *board, uint32_t block)
{
    return (struct line *)board + block;
}

/* A block's part of the rows, and where a round of it is. */
struct round {
    uint64_t first, count; /* elements of a row */
    uint64_t at;           /* bytes from each board's beginning */
    uint32_t number;
};

FN struct round round_of(const struct dt_exchange_args *a,
                         struct dt_block block, uint64_t done, uint64_t part,
                         uint32_t number)
{
    struct round r = {
        block.index * a->part + done, smaller(part - done, a->step),
        DT_CUDA_FLAGS + number % 2 * a->slot + block.index * a->region, number};
    return r;
}

/* The elements of a row that are this block's. */
FN uint64_t part_of(const struct dt_exchange_args *a, struct dt_block block)
{
    const uint64_t first = block.index * a->part;
    return block.index + 1 == block.grid ? a->count - first : a->part;
}

/* The threads, dealt out to `rows` rows: one works on row k, in this lane. */
struct share {
    uint32_t row;
    struct lane lane;
};

FN struct share share_of(uint32_t t, uint32_t threads, uint32_t rows)
{
    const uint32_t each = threads / rows;
    struct share s = {t / each, {t % each, each}};
    return s;
}

/* Put what I show into my slot. */
FN void show(const struct dt_exchange_args *a, struct dt_block block,
             const struct round *r, size_t size)
{
    char *slot = a->board[a->rank] + r->at;
    if (!a->send)
        return;
    EACH_THREAD(t, block)
    {
        struct share s = share_of(t, block.threads, a->rows);
        if (s.row < a->rows)
            copy_bytes(slot + s.row * a->room,
                       a->send + s.row * a->send_pitch + r->first * size,
                       r->count * size, s.lane);
    }
}

/* Tell all that I am so far, and wait for them; second: that I have reduced,
 * else that I have shown. False: told to give up. */
FN bool meet(const struct dt_exchange_args *a, struct dt_block block,
             bool second, uint32_t number)
{
    bool stop = false;
    barrier();
    EACH_THREAD(t, block)
    {
        if (t < a->size) {
            struct line *line = line_of(a->board[t], block.index);
            show_flag((second ? line->reduced : line->shown) + a->rank, number);
        }
    }
    EACH_THREAD(t, block)
    {
        if (t < a->size && !stop) {
            struct line *line = line_of(a->board[a->rank], block.index);
            stop = !await_flag((second ? line->reduced : line->shown) + t,
                               number, a->abort);
        }
    }
    return !barrier_any(stop);
}

/* All threads are through with the boards: count the rounds, and tell the host
 * if this is the last block. */
FN void leave(const struct dt_exchange_args *a, struct dt_block block,
              uint32_t number)
{
    barrier();
    EACH_THREAD(t, block)
    {
        if (t == 0) {
            uint32_t *ended = &line_of(a->board[a->rank], 0)->ended;
            line_of(a->board[a->rank], block.index)->round = number;
            if (block.grid == 1) {
                show_flag(a->done, a->done_value);
            } else if (count_up(ended) + 1 == block.grid) {
                *ended = 0;
                show_flag(a->done, a->done_value);
            }
        }
    }
}

/* ---- place ---- */

FN void place(const struct dt_exchange_args *a, struct dt_block block,
              const struct round *r)
{
    const uint64_t at = r->at + (a->rows > 1 ? a->rank * a->room : 0);
    if (!a->recv || !a->sources)
        return;
    EACH_THREAD(t, block)
    {
        struct share s = share_of(t, block.threads, a->sources);
        if (s.row < a->sources)
            copy_bytes(a->recv + a->who[s.row] * a->recv_pitch + r->first,
                       a->source[s.row] + at, r->count, s.lane);
    }
}

FN void run_dt_place(const struct dt_exchange_args *a, struct dt_block block)
{
    uint32_t number = line_of(a->board[a->rank], block.index)->round;
    const uint64_t part = part_of(a, block);
    uint64_t done = 0;
    do { /* of no elements, too, which is a barrier */
        struct round r = round_of(a, block, done, part, number);
        show(a, block, &r, 1);
        if (!meet(a, block, false, ++number))
            break;
        place(a, block, &r);
        done += r.count;
    } while (done < part);
    leave(a, block, number);
}

/* ---- reduce ---- */

/* Of a round, the elements that a rank reduces for the others. */
struct piece {
    uint64_t first, count;
};

FN struct piece piece_of(const struct dt_exchange_args *a,
                         const struct round *r, uint32_t rank, size_t size)
{
    const uint64_t unit = 16 / size;
    const uint64_t units = (r->count + unit - 1) / unit;
    const uint64_t each = (units + a->size - 1) / a->size * unit;
    const uint64_t first = smaller(rank * each, r->count);
    struct piece p = {first, smaller(r->count - first, each)};
    return p;
}

/* What to fold in this round, and where to; nothing: count is 0. */
FN struct fold fold_of(const struct dt_exchange_args *a, const struct round *r,
                       size_t size)
{
    const struct piece p = piece_of(a, r, a->rank, size);
    const uint64_t row = a->rows > 1 ? a->rank * a->room : 0;
    const uint64_t count = a->spread ? p.count : a->recv ? r->count : 0;
    char *result = a->board[a->rank] + r->at + a->room;
    struct fold f = {a->spread ? result : a->recv + r->first * size,
                     a->source,
                     a->sources,
                     r->at + (a->spread ? p.first * size : row),
                     a->sources ? count : 0,
                     a->scale};
    return f;
}

/* Of AVG. */
FN void divide_all(const struct fold *f, int dtype, uint32_t by, uint32_t t,
                   uint32_t threads)
{
    const size_t size = size_of(dtype);
    ROLLED
    for (uint64_t i = t; i < f->count; i += threads) {
        char *at = f->dst + i * size;
        store_code(at, size, divide(dtype, load_code(at, size), by));
    }
}

/* SPREAD: get all results. */
FN void gather(const struct dt_exchange_args *a, struct dt_block block,
               const struct round *r, size_t size)
{
    if (!a->recv || !a->sources)
        return;
    EACH_THREAD(t, block)
    {
        struct share s = share_of(t, block.threads, a->size);
        if (s.row < a->size) {
            struct piece p = piece_of(a, r, s.row, size);
            copy_bytes(a->recv + (r->first + p.first) * size,
                       a->board[s.row] + r->at + a->room, p.count * size,
                       s.lane);
        }
    }
}

#define KERNEL_REDUCE(type, TYPE, wide)                                        \
    FN void run_dt_reduce_##type(const struct dt_exchange_args *a,             \
                                 struct dt_block block)                        \
    {                                                                          \
        const size_t size = size_of(DT_DTYPE_##TYPE);                          \
        uint32_t number = line_of(a->board[a->rank], block.index)->round;      \
        const uint64_t part = part_of(a, block);                               \
        uint64_t done = 0;                                                     \
        do {                                                                   \
            struct round r = round_of(a, block, done, part, number);           \
            const struct fold f = fold_of(a, &r, size);                        \
            show(a, block, &r, size);                                          \
            if (!meet(a, block, false, ++number))                              \
                break;                                                         \
            EACH_THREAD(t, block)                                              \
            {                                                                  \
                struct lane lane = {t, block.threads};                         \
                if (f.count)                                                   \
                    fold_##wide(&f, DT_DTYPE_##TYPE, a->op, lane);             \
            }                                                                  \
            if (a->divisor) {                                                  \
                barrier();                                                     \
                EACH_THREAD(t, block)                                          \
                {                                                              \
                    divide_all(&f, DT_DTYPE_##TYPE, a->divisor, t,             \
                               block.threads);                                 \
                }                                                              \
            }                                                                  \
            if (a->spread) {                                                   \
                if (!meet(a, block, true, number))                             \
                    break;                                                     \
                gather(a, block, &r, size);                                    \
            }                                                                  \
            done += r.count;                                                   \
        } while (done < part);                                                 \
        leave(a, block, number);                                               \
    }
DT_CUDA_TYPES(KERNEL_REDUCE)

#endif
