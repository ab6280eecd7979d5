/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* block.h - threads, memory and flags as the kernels use them: on a GPU, or,
 * for the tests, on a host that emulates it.
 *
 * The body of a kernel consists of phases between barriers. In a phase,
 * EACH_THREAD(t) runs for each thread of the block: on the device in parallel,
 * each in its own thread; on the host one after the other. So only a later
 * phase may read what a phase writes, and a variable outside of a phase has the
 * same value in all threads. The host also runs the blocks one after the other,
 * which works because a block waits only for the blocks of the same number on
 * other GPUs. */
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
#define IN_BLOCK  __shared__ __align__(16) /* __shared__: one for the block */
#define UNROLL(n) _Pragma("unroll")
#define ROLLED    _Pragma("unroll 1") /* the code is large enough */

/* A barrier of the block; afterwards its threads see each other's writes. */
FN void barrier(void)
{
    __syncthreads();
}

/* The same; returns whether mine is true in any thread. */
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

/* A release at system scope, after all writes of this block before its last
 * barrier. */
FN void show_flag(uint32_t *flag, uint32_t value)
{
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(flag), "r"(value)
                 : "memory");
}

/* An acquire at system scope, before all reads of this block after its next
 * barrier. */
FN uint32_t see_flag(const uint32_t *flag)
{
    uint32_t value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(flag)
                 : "memory");
    return value;
}

/* Returns the value before the increment. */
FN uint32_t count_up(uint32_t *counter)
{
    uint32_t old;
    asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;"
                 : "=r"(old)
                 : "l"(counter)
                 : "memory");
    return old;
}

/* Data and flag in one 8-byte write: a reader sees both or neither. */
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
    return looks % 64 == 0; /* reading abort in host memory takes long */
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

/* A release, as the host has no kernel boundaries that order the writes. */
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

/* Wait until the flag has this value, or the next. false: abort was set. A flag
 * that is further ahead is an old one, from before the numbers wrapped. */
FN bool await_flag(const uint32_t *flag, uint32_t value, const uint32_t *abort)
{
    for (uint32_t looks = 1; see_flag(flag) - value > 1; looks++)
        if (pause_between(looks) && see_flag(abort))
            return false;
    return true;
}

/* Get element i, of elements of this size, of a vec. */
FN uint64_t get_code(const struct vec *v, size_t size, size_t i)
{
    if (size == 8)
        return v->w[2 * i] | (uint64_t)v->w[2 * i + 1] << 32;
    if (size == 4)
        return v->w[i];
    const size_t at = i * size;
    return v->w[at / 4] >> at % 4 * 8 & (size == 2 ? 0xffff : 0xff);
}

/* Set element i, which is zero before. */
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
