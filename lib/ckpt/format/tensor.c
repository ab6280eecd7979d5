/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tensor.c - the name, element type and shape of a tensor. */
#include "ckpt/format/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* the names that safetensors uses */
static const char *const dtype_names[] = {
    [DT_DTYPE_I8] = "I8",          [DT_DTYPE_U8] = "U8",
    [DT_DTYPE_I32] = "I32",        [DT_DTYPE_I64] = "I64",
    [DT_DTYPE_F16] = "F16",        [DT_DTYPE_BF16] = "BF16",
    [DT_DTYPE_F32] = "F32",        [DT_DTYPE_F64] = "F64",
    [DT_DTYPE_F8E4M3] = "F8_E4M3", [DT_DTYPE_F8E5M2] = "F8_E5M2",
};

const char *dt_tensor_dtype_name(dt_dtype_t dtype)
{
    return dtype_names[dtype];
}

int dt_tensor_dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof(dtype_names) / sizeof(*dtype_names); i++)
        if (strcmp(dtype_names[i], name) == 0)
            return (int)i;
    return -1;
}

static dt_result_t check_name(const char *name, struct dt_error *err)
{
    size_t len = name ? strnlen(name, DT_TENSOR_NAME_MAX + 1) : 0;
    if (len == 0 || len > DT_TENSOR_NAME_MAX)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a tensor's name has 1 to %d characters",
                            DT_TENSOR_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        if (name[i] < ' ' || name[i] > '~')
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "character %zu of a tensor's name is not "
                                "printable ASCII",
                                i + 1);
    if (strcmp(name, "__metadata__") == 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the name __metadata__ is safetensors' own");
    return DT_SUCCESS;
}

dt_result_t dt_tensor_init(struct dt_tensor *tensor, const char *name,
                           dt_dtype_t dtype, int ndim, const int64_t *shape,
                           struct dt_error *err)
{
    dt_result_t rc = check_name(name, err);
    if (rc != DT_SUCCESS)
        return rc;
    size_t bytes = dt_dtype_size(dtype);
    if (bytes == 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: %d is no element type", name,
                            (int)dtype);
    if (ndim < 0 || ndim > DT_TENSOR_DIMS_MAX || (ndim > 0 && !shape))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: %d dimensions, expected 0 to %d", name,
                            ndim, DT_TENSOR_DIMS_MAX);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0 ||
            __builtin_mul_overflow(bytes, (size_t)shape[i], &bytes) ||
            bytes > INT64_MAX)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "tensor %s: dimension %d is negative or too "
                                "large",
                                name, i);

    *tensor = (struct dt_tensor){.dtype = dtype, .ndim = ndim, .bytes = bytes};
    strcpy(tensor->name, name);
    if (ndim > 0)
        memcpy(tensor->shape, shape, (size_t)ndim * sizeof(*shape));
    return DT_SUCCESS;
}

bool dt_tensor_same_type(const struct dt_tensor *a, const struct dt_tensor *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape)) == 0;
}

const char *dt_tensor_type(const struct dt_tensor *tensor, char *text,
                           size_t len)
{
    size_t at = (size_t)snprintf(text, len, "%s [", dtype_names[tensor->dtype]);
    for (int i = 0; i < tensor->ndim && at < len; i++)
        at += (size_t)snprintf(text + at, len - at, "%s%" PRId64, i ? ", " : "",
                               tensor->shape[i]);
    if (at < len)
        snprintf(text + at, len - at, "]");
    return text;
}
