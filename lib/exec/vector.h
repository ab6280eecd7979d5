/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vector.h - registers of WIDTH bytes, as vector types of GNU C.
 *
 * A file of kernels defines
 *   WIDTH    the bytes of a register,
 *   BLOCK    how many registers a loop holds at a time,
 *   TARGET   the attribute of functions that use the processor's extension,
 *   KERNELS  the name of its table, and NAME, that of the set,
 * and includes this file. Then it may define what the processor has
 * instructions for (HAVE_CHOOSE, HAVE_IF, HAVE_PART, HAVE_STREAM, HAVE_F16),
 * and includes floats.h, f8.h and loops.h, which have portable versions of
 * the rest. Values are passed as u32v and cast, so that one function
 * type serves all element types. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "exec/kernels.h"

#define INLINE static TARGET __attribute__((always_inline, unused)) inline

typedef int8_t i8v __attribute__((vector_size(WIDTH)));
typedef uint8_t u8v __attribute__((vector_size(WIDTH)));
typedef int32_t i32v __attribute__((vector_size(WIDTH)));
typedef uint32_t u32v __attribute__((vector_size(WIDTH)));
typedef int64_t i64v __attribute__((vector_size(WIDTH)));
typedef uint64_t u64v __attribute__((vector_size(WIDTH)));
typedef float f32v __attribute__((vector_size(WIDTH)));
typedef double f64v __attribute__((vector_size(WIDTH)));

/* as many elements of 16 and 8 bits as f32v has of 32 */
typedef uint16_t half_u16v __attribute__((vector_size(WIDTH / 2)));
typedef uint8_t quarter_u8v __attribute__((vector_size(WIDTH / 4)));
typedef int8_t quarter_i8v __attribute__((vector_size(WIDTH / 4)));
typedef int32_t half_i32v __attribute__((vector_size(WIDTH / 2)));

/* the same in memory: not aligned, and aliasing any type */
typedef u32v any_u32v __attribute__((aligned(1), may_alias));
typedef half_u16v any_half_u16v __attribute__((aligned(1), may_alias));
typedef quarter_u8v any_quarter_u8v __attribute__((aligned(1), may_alias));

enum { LANES32 = WIDTH / 4 };

INLINE u32v peek(const char *p)
{
    return *(const any_u32v *)p;
}

INLINE void poke(char *p, u32v bits)
{
    *(any_u32v *)p = bits;
}

INLINE u32v all32(uint32_t value)
{
    return value - (u32v){0};
}

INLINE u64v all64(uint64_t value)
{
    return value - (u64v){0};
}
