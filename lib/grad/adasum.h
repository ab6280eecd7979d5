/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* adasum.h - adaptive summation of gradients. */
#ifndef DT_GRAD_ADASUM_H
#define DT_GRAD_ADASUM_H

#include "dt.h"

/* out = the adaptive sum of n vectors of count elements, which lie one behind
 * the other at all; n is a power of two, the type a floating-point one of 16
 * bits or more. Pairs of neighbours are added first, then pairs of pairs, in
 * F64. False where memory is out. */
bool dt_adasum(void *out, const void *all, int n, size_t count,
               dt_dtype_t dtype);

#endif
