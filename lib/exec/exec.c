/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exec.c - the choice of kernels, and reductions. */
#include "exec/exec.h"

#include <stdatomic.h>
#include <string.h>

#include "exec/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#define X86
#endif

/* the fastest first */
static const struct dt_exec_kernels *const sets[] = {
#ifdef X86
    &dt_exec_avx512,
    &dt_exec_avx2,
#endif
#if defined(__aarch64__)
    &dt_exec_neon,
#endif
    &dt_exec_portable,
};

/* The results of all sets are equal, and each thread finds the same one, so a
 * race to set it is harmless. */
static _Atomic(const struct dt_exec_kernels *) in_use;

static bool can(const struct dt_exec_kernels *set)
{
#ifdef X86
    unsigned a, b, c, d;
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") &&
                __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
    if (set == &dt_exec_avx2)
        return avx2;
    if (set == &dt_exec_avx512)
        return avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
    (void)set;
    return true;
}

const struct dt_exec_kernels *dt_exec_kernels(void)
{
    const struct dt_exec_kernels *set =
        atomic_load_explicit(&in_use, memory_order_relaxed);
    for (size_t i = 0; !set; i++)
        if (can(sets[i]))
            set = sets[i];
    atomic_store_explicit(&in_use, set, memory_order_relaxed);
    return set;
}

bool dt_exec_use(const char *name)
{
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        if (!strcmp(sets[i]->name, name) && can(sets[i])) {
            atomic_store(&in_use, sets[i]);
            return true;
        }
    return false;
}

const char *dt_exec_name(void)
{
    return dt_exec_kernels()->name;
}

void dt_exec_reduce_to(const struct dt_exec_out *out, const void *const *in,
                       size_t n, size_t count, dt_dtype_t dtype, dt_op_t op,
                       double scale)
{
    if (op == DT_OP_AVG && !out->divisor)
        op = DT_OP_SUM;
    dt_exec_kernels()->reduce[dtype][op](out, in, n,
                                         count * dt_dtype_size(dtype), scale);
}

void dt_exec_reduce_n(void *dst, const void *const *in, size_t n, size_t count,
                      dt_dtype_t dtype, dt_op_t op, double scale)
{
    const struct dt_exec_out out = {.at = &dst, .n = 1};
    dt_exec_reduce_to(&out, in, n, count, dtype, op, scale);
}

void dt_exec_reduce(void *dst, const void *a, const void *b, size_t count,
                    dt_dtype_t dtype, dt_op_t op)
{
    const void *const in[] = {a, b};
    dt_exec_reduce_n(dst, in, 2, count, dtype, op, 1.0);
}

void dt_exec_scale(void *dst, const void *src, size_t count, dt_dtype_t dtype,
                   double factor)
{
    dt_exec_reduce_n(dst, &src, 1, count, dtype, DT_OP_SUM, factor);
}

void dt_exec_divide(void *buf, size_t count, dt_dtype_t dtype, size_t divisor)
{
    const void *in = buf;
    const struct dt_exec_out out = {.at = &buf, .n = 1, .divisor = divisor};
    dt_exec_reduce_to(&out, &in, 1, count, dtype, DT_OP_AVG, 1.0);
}
