/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exchange.h - the bodies of the kernels that exchange data with other GPUs;
 * see struct dt_gpu_exchange for what they do and kernels.h for how they are
 * included.
 *
 * Each rank has a board: flags, LL buffers, then two slots. Block b of a kernel
 * owns line b of the flags, its LL buffer, and region b of each slot, so blocks
 * of the same number on all ranks exchange with each other and with no others.
 * They count their rounds in their line of flags, where the replay of a graph
 * finds the count. In round r a block writes its data into slot r % 2, writes
 * its flag at every peer, waits for the flags of all peers, and reads their
 * slots.
 *
 * Two slots are enough. A rank that writes round r + 2 has seen the flags of
 * all ranks for round r + 1, and each rank writes that flag only after it has
 * read all of round r. Only round r + 1, in the other slot, may still be read.
 *
 * SPREAD synchronizes a second time in each round, by flags of their own, and
 * writes the results behind its inputs; the same argument holds for them.
 *
 * A posted round needs neither flags nor slots. It is NCCL's LL protocol: every
 * rank writes one message into the LL buffer of every rank, and each word of it
 * carries the round number as its flag; see post. Posted rounds have a count of
 * their own, because flags that nobody writes must not fall 2^31 rounds behind.
 */
#ifndef DT_GPU_CUDA_EXCHANGE_H
#define DT_GPU_CUDA_EXCHANGE_H

#include "gpu/cuda/kernels.h"

/* The flags of a block: the last round that each rank has written, and whose
 * part it has reduced; this rank's round; the number of blocks that have ended,
 * in block 0's line; this rank's count of posted rounds. */
struct line {
    uint32_t shown[DT_CUDA_PEERS], reduced[DT_CUDA_PEERS];
    uint32_t round, ended, posted;
    uint32_t spare[256 - 2 * DT_CUDA_PEERS - 3];
};

FN struct line *line_of(char *board, uint32_t block)
{
    return (struct line *)board + block;
}

/* The count of rounds that a block uses. */
FN uint32_t *count_of(const struct dt_exchange_args *a, struct dt_block block)
{
    struct line *line = line_of(a->board[a->rank], block.index);
    return a->post ? &line->posted : &line->round;
}

/* A block's part of the rows, and where a round of it is. */
struct round {
    uint64_t first, count; /* elements of a row */
    uint64_t at;           /* bytes from each board's beginning */
};

FN struct round round_of(const struct dt_exchange_args *a,
                         struct dt_block block, uint64_t done, uint64_t part,
                         uint32_t number)
{
    struct round r = {block.index * a->part + done,
                      smaller(part - done, a->step),
                      DT_CUDA_FLAGS + DT_CUDA_MAIL + number % 2 * a->slot +
                          block.index * a->region};
    return r;
}

/* The row for me, in a slot. */
FN uint64_t my_row(const struct dt_exchange_args *a)
{
    return a->rows > 1 ? a->rank * a->room : 0;
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

/* Put what I show into my slot, which begins here. */
FN void show(const struct dt_exchange_args *a, struct dt_block block,
             char *slot, const struct round *r, size_t size)
{
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
 * else that I have shown. One may be a round ahead: it goes no further before I
 * have shown mine of that. False: told to give up. */
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
            *count_of(a, block) = number;
            if (block.grid == 1) {
                show_flag(a->done, a->done_value);
            } else if (count_up(ended) + 1 == block.grid) {
                *ended = 0;
                show_flag(a->done, a->done_value);
            }
        }
    }
}

/* ---- letters ---- */

enum { WORDS = DT_CUDA_LETTER / 4, BATCH = 4 /* loads under way at once */ };

/* In a board, what a block gets from a rank: two letters, of words of four
 * bytes below the round's number. */
FN uint64_t *letter_of(char *board, uint32_t block, uint32_t rank,
                       uint32_t number)
{
    uint64_t *mail = (uint64_t *)(board + DT_CUDA_FLAGS);
    return mail +
           ((block * 2 + number % 2) * DT_CUDA_PEERS + rank) * (uint64_t)WORDS;
}

/* What was in the letters of all ranks, and in those of each source. */
struct opened {
    uint32_t word[DT_CUDA_PEERS][WORDS];
    const char *source[DT_CUDA_PEERS];
};

/* Bytes 4 * i to 4 * i + 3 of len; 0 for those behind them. */
FN uint32_t bytes_at(const char *from, uint64_t len, uint64_t i)
{
    uint32_t bytes = 0;
    if ((uintptr_t)from % 4 == 0 && 4 * i + 4 <= len)
        return *(const code32 *)(from + 4 * i);
    for (uint32_t k = 0; k < 4 && 4 * i + k < len; k++)
        bytes |= (uint32_t)(uint8_t)from[4 * i + k] << 8 * k;
    return bytes;
}

FN void write_letter(uint64_t *to, uint64_t words, const char *from,
                     uint64_t len, uint32_t number, struct lane lane)
{
    ROLLED
    for (uint64_t i = lane.first; i < words; i += BATCH * lane.step) {
        uint32_t bytes[BATCH];
        UNROLL(BATCH)
        for (uint32_t k = 0; k < BATCH; k++)
            bytes[k] = bytes_at(from, len, i + k * lane.step);
        UNROLL(BATCH)
        for (uint32_t k = 0; k < BATCH; k++)
            if (i + k * lane.step < words)
                put_word(to + i + k * lane.step,
                         (uint64_t)number << 32 | bytes[k]);
    }
}

/* Wait for all words; false: told to give up. */
FN bool read_letter(uint32_t *to, const uint64_t *from, uint64_t words,
                    uint32_t number, const uint32_t *abort, struct lane lane)
{
    uint32_t looks = 0;
    ROLLED
    for (uint64_t i = lane.first; i < words; i += BATCH * lane.step) {
        uint64_t word[BATCH];
        for (bool all = false; !all;) {
            all = true;
            UNROLL(BATCH)
            for (uint32_t k = 0; k < BATCH; k++)
                word[k] =
                    see_word(from + smaller(i + k * lane.step, words - 1));
            UNROLL(BATCH)
            for (uint32_t k = 0; k < BATCH; k++)
                all = all && word[k] >> 32 == number;
            if (!all && pause_between(++looks) && see_flag(abort))
                return false;
        }
        UNROLL(BATCH)
        for (uint32_t k = 0; k < BATCH; k++)
            if (i + k * lane.step < words)
                to[i + k * lane.step] = (uint32_t)word[k];
    }
    return true;
}

/* Words of a letter from this rank: one, too, where there is nothing to say. */
FN uint64_t words_of(const struct dt_exchange_args *a, uint32_t rank,
                     uint64_t len)
{
    const uint64_t words = a->from >> rank & 1 ? (len + 3) / 4 : 0;
    return words ? words : 1;
}

/* Send each rank its row, and open what comes; false: told to give up.
 *
 * A launch is one round of each of its blocks, and every rank hears of every
 * rank in every round. So two letters suffice: who writes round r + 2 has read
 * a word of round r + 1 from every rank, and none of them began that before its
 * launch of round r was over, with all it read. What one rank writes to one
 * place comes in order, as it is of different launches.
 *
 * A word has come when its number is this round's, so an old one must not have
 * it. Numbers come again after 2^32 rounds, but no word is older than 2^30: two
 * rounds in a row, one for each slot, then write whole letters. The same keeps
 * the count's 0 from being taken for the one that boards begin with: when it
 * comes to 0, all words have been written. */
FN bool post(const struct dt_exchange_args *a, struct dt_block block,
             const struct round *r, size_t size, uint32_t number,
             struct opened *opened)
{
    const uint64_t len = r->count * size;
    const bool whole = number % (1u << 30) < 2;
    const uint64_t mine = whole ? WORDS : words_of(a, a->rank, len);
    bool stop = false;
    EACH_THREAD(t, block)
    {
        struct share s = share_of(t, block.threads, a->size);
        const uint64_t row = a->rows > 1 ? s.row * a->send_pitch : 0;
        const char *from = a->send ? a->send + row + r->first * size : NULL;
        if (s.row < a->size)
            write_letter(
                letter_of(a->board[s.row], block.index, a->rank, number), mine,
                from, from ? len : 0, number, s.lane);
    }
    EACH_THREAD(t, block)
    {
        struct share s = share_of(t, block.threads, a->size);
        if (s.row < a->size && !stop)
            stop = !read_letter(
                opened->word[s.row],
                letter_of(a->board[a->rank], block.index, s.row, number),
                words_of(a, s.row, len), number, a->abort, s.lane);
        if (t < a->sources)
            opened->source[t] = (const char *)opened->word[a->who[t]];
    }
    return !barrier_any(stop);
}

/* All that is shown in a round is there to be read; false: told to give up. */
FN bool share_all(const struct dt_exchange_args *a, struct dt_block block,
                  const struct round *r, size_t size, uint32_t number,
                  struct opened *opened)
{
    if (a->post)
        return post(a, block, r, size, number, opened);
    show(a, block, a->board[a->rank] + r->at, r, size);
    return meet(a, block, false, number);
}

/* ---- place ---- */

/* My row of each source is at this byte. */
FN void place(const struct dt_exchange_args *a, struct dt_block block,
              const struct round *r, const char *const *source, uint64_t at)
{
    if (!a->recv || !a->sources)
        return;
    EACH_THREAD(t, block)
    {
        struct share s = share_of(t, block.threads, a->sources);
        if (s.row < a->sources)
            copy_bytes(a->recv + a->who[s.row] * a->recv_pitch + r->first,
                       source[s.row] + at, r->count, s.lane);
    }
}

FN void run_dt_place(const struct dt_exchange_args *a, struct dt_block block)
{
    IN_BLOCK struct opened opened;
    uint32_t number = *count_of(a, block);
    const uint64_t part = part_of(a, block);
    uint64_t done = 0;
    do { /* of no elements, too, which is a barrier */
        const struct round r = round_of(a, block, done, part, number);
        if (!share_all(a, block, &r, 1, ++number, &opened))
            break;
        if (a->post)
            place(a, block, &r, opened.source, 0);
        else
            place(a, block, &r, a->source, r.at + my_row(a));
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
    const uint64_t count = a->spread ? p.count : a->recv ? r->count : 0;
    char *result = a->board[a->rank] + r->at + a->room;
    struct fold f = {a->spread ? result : a->recv + r->first * size,
                     a->source,
                     a->sources,
                     r->at + (a->spread ? p.first * size : my_row(a)),
                     a->sources ? count : 0,
                     a->scale,
                     false};
    return f;
}

/* The same of letters: a few elements for each thread. */
FN struct fold fold_letters(struct fold f, const struct opened *opened)
{
    f.in = opened->source;
    f.at = 0;
    f.few = true;
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
        IN_BLOCK struct opened opened;                                         \
        const size_t size = size_of(DT_DTYPE_##TYPE);                          \
        uint32_t number = *count_of(a, block);                                 \
        const uint64_t part = part_of(a, block);                               \
        uint64_t done = 0;                                                     \
        do {                                                                   \
            const struct round r = round_of(a, block, done, part, number);     \
            if (!share_all(a, block, &r, size, ++number, &opened))             \
                break;                                                         \
            const struct fold f = fold_of(a, &r, size);                        \
            const struct fold few = fold_letters(f, &opened);                  \
            EACH_THREAD(t, block)                                              \
            {                                                                  \
                struct lane lane = {t, block.threads};                         \
                if (f.count && a->post)                                        \
                    fold_##wide(&few, DT_DTYPE_##TYPE, a->op, lane);           \
                else if (f.count)                                              \
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
