/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.h - the kernels behind exec.h: one set per vector extension of a
 * processor. */
#ifndef DT_EXEC_KERNELS_H
#define DT_EXEC_KERNELS_H

#include "exec/exec.h"

#define DT_EXEC_NDTYPES (DT_DTYPE_F8E5M2 + 1)
#define DT_EXEC_NOPS    (DT_OP_PROD + 1)

/* dt_exec_reduce_to of `bytes` bytes of one type with one operation. */
typedef void dt_exec_reduce_fn(const struct dt_exec_out *out,
                               const void *const *in, size_t n, size_t bytes,
                               double scale);
/* Convert count elements of one type to F32 (exact), or from F32 (rounded to
 * nearest even). */
typedef void dt_exec_widen_fn(void *dst, const void *src, size_t count);
typedef void dt_exec_narrow_fn(void *dst, const void *src, size_t count);

struct dt_exec_kernels {
    const char *name;
    dt_exec_reduce_fn *reduce[DT_EXEC_NDTYPES][DT_EXEC_NOPS];
    /* of the floating-point types of 8 and 16 bits; NULL for the others */
    dt_exec_widen_fn *widen[DT_EXEC_NDTYPES];
    dt_exec_narrow_fn *narrow[DT_EXEC_NDTYPES];
};

extern const struct dt_exec_kernels dt_exec_portable;
/* defined only in a build for such processors */
extern const struct dt_exec_kernels dt_exec_avx2;
extern const struct dt_exec_kernels dt_exec_avx512;
extern const struct dt_exec_kernels dt_exec_neon;

/* The set in use. */
const struct dt_exec_kernels *dt_exec_kernels(void);

/* For tests: use the set of that name from now on; false when this processor
 * does not support it. */
bool dt_exec_use(const char *name);

#endif
