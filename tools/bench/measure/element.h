/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* element.h - numbers in the element types of libdt. */
#ifndef DT_TOOLS_BENCH_ELEMENT_H
#define DT_TOOLS_BENCH_ELEMENT_H

#include "dt.h"

enum { NUMBER_DTYPES = 10, NUMBER_OPS = 5 };

/* As nccl-tests call them: "float", "bfloat16", "sum". */
const char *dtype_name(dt_dtype_t dtype);
const char *op_name(dt_op_t op);

/* Their values by these names; false if there is none. */
bool dtype_by_name(const char *name, dt_dtype_t *dtype);
bool op_by_name(const char *name, dt_op_t *op);

bool dtype_is_float(dt_dtype_t dtype);
bool dtype_is_signed(dt_dtype_t dtype);

/* Whole numbers from 0 up to this one are all exact, and so are their sums up
 * to it, whatever the order. */
int64_t dtype_exact(dt_dtype_t dtype);

/* Element at of dtype, which need not be aligned. store: value is exact in
 * dtype. load: what does not fit a double is rounded. */
void number_store(void *at, dt_dtype_t dtype, double value);
double number_load(const void *at, dt_dtype_t dtype);

#endif
