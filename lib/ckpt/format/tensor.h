/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tensor.h - the name, element type and shape of a tensor. */
#ifndef DT_CKPT_FORMAT_TENSOR_H
#define DT_CKPT_FORMAT_TENSOR_H

#include "base/error.h"

#define DT_TENSOR_NAME_MAX 200 /* bytes, without the NUL */
#define DT_TENSOR_DIMS_MAX 32

struct dt_tensor {
    char name[DT_TENSOR_NAME_MAX + 1];
    dt_dtype_t dtype;
    int ndim;
    int64_t shape[DT_TENSOR_DIMS_MAX];
    size_t bytes; /* of the data, row-major */
};

/* Set tensor, after a check of all arguments: the name has 1 to 200 characters
 * of printable ASCII and is not "__metadata__", the number of bytes fits.
 * Error: INVALID_ARG. */
dt_result_t dt_tensor_init(struct dt_tensor *tensor, const char *name,
                           dt_dtype_t dtype, int ndim, const int64_t *shape,
                           struct dt_error *err);

/* Are the element types and shapes equal? */
bool dt_tensor_same_type(const struct dt_tensor *a, const struct dt_tensor *b);

/* "F32 [128, 784]" into text, always terminated. Returns text. */
const char *dt_tensor_type(const struct dt_tensor *tensor, char *text,
                           size_t len);

/* "F32", and the type of such a name; -1 if there is none. */
const char *dt_tensor_dtype_name(dt_dtype_t dtype);
int dt_tensor_dtype_find(const char *name);

#endif
