/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* block.h - threads, memory and flags as the kernels see them: those of a
 * GPU, or, for the tests, of a host that plays it.
 *
 * A kernel's body is phases between barriers. In a phase, EACH_THREAD(t) runs
 * for each thread of the block: on the device all at once, each in its own
 * thread; on the host one after the other. So what a phase writes, only a later
 * one reads, and a variable outside of a phase has the same value in all
 * threads. The host runs the blocks one after the other, too: a block waits for
 * other GPUs' blocks of its own number only. */
#ifndef DT_GPU_CUDA_BLOCK_H
#define DT_GPU_CUDA_BLOCK_H

#include "gpu/cuda/args.h"
#include "gpu/cuda/numbers.h"

struct dt_block {
    uint32_t index, grid, threads;
};

/* 16 bytes: the widest access */
struct vec {
    uint32_t w[4];
};

#ifdef __CUDACC__

#define EACH_THREAD(t, block)                                                  \
    for (uint32_t t = threadIdx.x, t##_end = t + 1; t < t##_end; t++)
#define IN_BLOCK  __shared__ __align__(16) /* one for all threads of it */
#define UNROLL(n) _Pragma("unroll")
#define ROLLED    _Pragma("unroll 1") /* the code is large enough */

/* All threads are here, and what they wrote is seen by those of the block. */
FN void barrier(void)
{
    __syncthreads();
}

/* The same; is it so for any thread? */
FN bool barrier_any(bool mine)
{
    return __syncthreads_or(mine);
}

FN struct vec load_vec(const char *p)
{
    uint4 v = *(const uint4 *)p;
    struct vec all = {{v.x, v.y, v.z, v.w}};
    return all;
}

FN void store_vec(char *p, const struct vec *v)
{
    *(uint4 *)p = make_uint4(v->w[0], v->w[1], v->w[2], v->w[3]);
}

/* After all that this block wrote before its last barrier. */
FN void show_flag(uint32_t *flag, uint32_t value)
{
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(flag), "r"(value)
                 : "memory");
}

/* Before all that this block reads after its next barrier. */
FN uint32_t see_flag(const uint32_t *flag)
{
    uint32_t value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(flag)
                 : "memory");
    return value;
}

/* The value before. */
FN uint32_t count_up(uint32_t *counter)
{
    uint32_t old;
    asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;"
                 : "=r"(old)
                 : "l"(counter)
                 : "memory");
    return old;
}

/* A word and its number, in one: who sees the one sees the other. */
FN void put_word(uint64_t *at, uint64_t word)
{
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(at), "l"(word));
}

FN uint64_t see_word(const uint64_t *at)
{
    uint64_t word;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(word) : "l"(at));
    return word;
}

FN bool pause_between(uint32_t looks)
{
    return looks % 64 == 0; /* the host's memory is far away */
}

#else

#include <sched.h>

#define EACH_THREAD(t, block) for (uint32_t t = 0; t < (block).threads; t++)
#define IN_BLOCK              __attribute__((aligned(16)))
#define UNROLL(n)
#define ROLLED

FN void barrier(void)
{
}

FN bool barrier_any(bool any)
{
    return any;
}

FN struct vec load_vec(const char *p)
{
    struct vec all;
    memcpy(&all, p, sizeof(all));
    return all;
}

FN void store_vec(char *p, const struct vec *v)
{
    memcpy(p, v, sizeof(*v));
}

FN void show_flag(uint32_t *flag, uint32_t value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

FN uint32_t see_flag(const uint32_t *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

FN uint32_t count_up(uint32_t *counter)
{
    return __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
}

/* In order with the rest, as on a device a kernel is with the next. */
FN void put_word(uint64_t *at, uint64_t word)
{
    __atomic_store_n(at, word, __ATOMIC_RELEASE);
}

FN uint64_t see_word(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

FN bool pause_between(uint32_t looks)
{
    (void)looks;
    sched_yield();
    return true;
}

#endif

/* Wait until the flag has this value, or the next; false: told to give up. One
 * further ahead is an old one, from before the numbers came round. */
FN bool await_flag(const uint32_t *flag, uint32_t value, const uint32_t *abort)
{
    for (uint32_t looks = 1; see_flag(flag) - value > 1; looks++)
        if (pause_between(looks) && see_flag(abort))
            return false;
    return true;
}

/* Element i of those of this size in a vec. */
FN uint64_t get_code(const struct vec *v, size_t size, size_t i)
{
    if (size == 8)
        return v->w[2 * i] | (uint64_t)v->w[2 * i + 1] << 32;
    if (size == 4)
        return v->w[i];
    const size_t at = i * size;
    return v->w[at / 4] >> at % 4 * 8 & (size == 2 ? 0xffff : 0xff);
}

/* The element is zero so far. */
FN void put_code(struct vec *v, size_t size, size_t i, uint64_t code)
{
    const size_t at = i * size;
    if (size == 8) {
        v->w[2 * i] = (uint32_t)code;
        v->w[2 * i + 1] = (uint32_t)(code >> 32);
    } else if (size == 4) {
        v->w[i] = (uint32_t)code;
    } else {
        code &= size == 2 ? 0xffff : 0xff;
        v->w[at / 4] |= (uint32_t)code << at % 4 * 8;
    }
}

/* Elements before p is aligned to 16 bytes. */
FN size_t head_of(const void *p, size_t size)
{
    return (0 - (uintptr_t)p) % 16 / size;
}

FN uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
