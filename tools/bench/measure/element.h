/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* element.h - the element types of libdt: their names, limits and values. */
#ifndef DT_TOOLS_BENCH_ELEMENT_H
#define DT_TOOLS_BENCH_ELEMENT_H

#include "dt.h"

enum { NUMBER_DTYPES = 10, NUMBER_OPS = 5 };

/* The names that nccl-tests uses: "float", "bfloat16", "sum". */
const char *dtype_name(dt_dtype_t dtype);
const char *op_name(dt_op_t op);

/* Look up by these names; false if there is none. */
bool dtype_by_name(const char *name, dt_dtype_t *dtype);
bool op_by_name(const char *name, dt_op_t *op);

bool dtype_is_float(dt_dtype_t dtype);
bool dtype_is_signed(dt_dtype_t dtype);

/* All integers from 0 up to this one are exact, and so are their sums up to it
 * in any order. */
int64_t dtype_exact(dt_dtype_t dtype);

/* Store and load one element, which need not be aligned. value must be exact in
 * dtype; a value that does not fit a double is rounded when loaded. */
void number_store(void *at, dt_dtype_t dtype, double value);
double number_load(const void *at, dt_dtype_t dtype);

#endif
