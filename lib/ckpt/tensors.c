/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tensors.c - the tensors, slices and blobs that the program has named. */
#include "ckpt/tensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/api.h"

struct dt_ckpt_tensor *dt_tensors_find(const struct dt_ckpt *ckpt,
                                       const char *name)
{
    for (size_t i = 0; i < ckpt->count; i++)
        if (strcmp(ckpt->tensor[i].type.name, name) == 0)
            return &ckpt->tensor[i];
    return NULL;
}

void dt_tensors_clear(struct dt_ckpt *ckpt)
{
    for (size_t i = 0; i < ckpt->count; i++)
        if (ckpt->tensor[i].kind == DT_MANIFEST_BLOB)
            free(ckpt->tensor[i].data);
    free(ckpt->tensor);
    ckpt->tensor = NULL;
    ckpt->count = ckpt->room = 0;
}

uint64_t dt_tensors_fingerprint(const struct dt_ckpt *ckpt)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ckpt->count; i++) {
        const struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        /* dt_tensor_init cleared what is beyond the name and the shape */
        uint64_t part[4] = {sum, dt_checksum(&t->type, sizeof(t->type)),
                            t->kind, t->replicated};
        sum = dt_checksum(part, sizeof(part));
    }
    return sum;
}

/* Append t, whose name is new. */
static dt_result_t append(struct dt_ckpt *ckpt, const struct dt_ckpt_tensor *t,
                          struct dt_error *err)
{
    if (ckpt->count == ckpt->room) {
        size_t room = ckpt->room ? 2 * ckpt->room : 32;
        void *more = realloc(ckpt->tensor, room * sizeof(*ckpt->tensor));
        if (!more)
            return dt_no_memory(err);
        ckpt->tensor = more;
        ckpt->room = room;
    }
    ckpt->tensor[ckpt->count++] = *t;
    return DT_SUCCESS;
}

/* ---- tensors ---- */

static dt_result_t add(struct dt_ckpt *ckpt, const struct dt_ckpt_tensor *new,
                       struct dt_error *err)
{
    if (!new->data &&new->bytes > 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "tensor %s has no data",
                            new->type.name);
    if (dt_tensors_find(ckpt, new->type.name))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "there is a tensor %s already", new->type.name);
    return append(ckpt, new, err);
}

static dt_result_t add_tensor(struct dt_ckpt *ckpt, const char *name,
                              void *data, dt_dtype_t dtype, int ndim,
                              const int64_t *shape, unsigned flags,
                              struct dt_error *err)
{
    bool replicated = flags & DT_CKPT_REPLICATED;
    struct dt_ckpt_tensor new = {.kind = replicated ? DT_MANIFEST_GLOBAL
                                                    : DT_MANIFEST_OWN,
                                 .replicated = replicated,
                                 .data = data};
    if (!ckpt)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_add_tensor: no handle");
    if (flags & ~(unsigned)DT_CKPT_REPLICATED)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_add_tensor: unknown flags %#x", flags);
    dt_result_t rc = dt_tensor_init(&new.type, name, dtype, ndim, shape, err);
    if (rc != DT_SUCCESS)
        return rc;
    memcpy(new.extent, new.type.shape, sizeof(new.extent));
    new.bytes = new.type.bytes;
    return add(ckpt, &new, err);
}

dt_result_t dt_ckpt_add_tensor(dt_ckpt_t ckpt, const char *name, void *data,
                               dt_dtype_t dtype, int ndim, const int64_t *shape,
                               unsigned flags)
{
    struct dt_error err = {0};
    return dt_api_return(
        add_tensor(ckpt, name, data, dtype, ndim, shape, flags, &err), &err);
}

static dt_result_t add_slice(struct dt_ckpt *ckpt, const char *name, void *data,
                             dt_dtype_t dtype, int ndim, const int64_t *shape,
                             const int64_t *offset, const int64_t *extent,
                             struct dt_error *err)
{
    struct dt_ckpt_tensor new = {.kind = DT_MANIFEST_GLOBAL, .data = data};
    struct dt_tensor part;
    struct dt_error why = {0};
    if (!ckpt || (ndim > 0 && (!offset || !extent)))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_add_slice: expected a handle, an offset "
                            "and an extent");
    dt_result_t rc = dt_tensor_init(&new.type, name, dtype, ndim, shape, err);
    if (rc != DT_SUCCESS)
        return rc;
    const struct dt_slice slice = {ndim, offset, extent};
    rc = dt_slice_check(&slice, new.type.shape, &why);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, "tensor %s: %s", name, why.text);
    rc = dt_tensor_init(&part, name, dtype, ndim, extent, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (ndim > 0)
        memcpy(new.at, offset, (size_t)ndim * sizeof(*offset));
    memcpy(new.extent, part.shape, sizeof(new.extent));
    new.bytes = part.bytes;
    return add(ckpt, &new, err);
}

dt_result_t dt_ckpt_add_slice(dt_ckpt_t ckpt, const char *name, void *data,
                              dt_dtype_t dtype, int ndim, const int64_t *shape,
                              const int64_t *offset, const int64_t *extent)
{
    struct dt_error err = {0};
    return dt_api_return(
        add_slice(ckpt, name, data, dtype, ndim, shape, offset, extent, &err),
        &err);
}

/* ---- blobs ---- */

dt_result_t dt_tensors_keep_blob(struct dt_ckpt *ckpt, const char *name,
                                 void *data, size_t bytes, bool replicated,
                                 struct dt_error *err)
{
    struct dt_ckpt_tensor new = {.kind = DT_MANIFEST_BLOB,
                                 .replicated = replicated,
                                 .data = data,
                                 .bytes = bytes};
    dt_result_t rc =
        dt_tensor_init(&new.type, name, DT_DTYPE_U8, 1, (int64_t[]){0}, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_ckpt_tensor *old = dt_tensors_find(ckpt, name);
    if (!old)
        return append(ckpt, &new, err);
    if (old->kind != DT_MANIFEST_BLOB || old->replicated != replicated)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s is the name of something else already", name);
    free(old->data);
    old->data = data;
    old->bytes = bytes;
    return DT_SUCCESS;
}

static dt_result_t set_blob(struct dt_ckpt *ckpt, const char *name,
                            const void *data, size_t bytes, unsigned flags,
                            struct dt_error *err)
{
    if (!ckpt || (!data && bytes > 0) || bytes > INT64_MAX ||
        (flags & ~(unsigned)DT_CKPT_REPLICATED))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_set_blob: expected a handle, data, and "
                            "DT_CKPT_REPLICATED or no flags");
    char *copy = malloc(bytes + 1);
    if (!copy)
        return dt_no_memory(err);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    dt_result_t rc = dt_tensors_keep_blob(ckpt, name, copy, bytes,
                                          flags & DT_CKPT_REPLICATED, err);
    if (rc != DT_SUCCESS)
        free(copy);
    return rc;
}

dt_result_t dt_ckpt_set_blob(dt_ckpt_t ckpt, const char *name, const void *data,
                             size_t bytes, unsigned flags)
{
    struct dt_error err = {0};
    return dt_api_return(set_blob(ckpt, name, data, bytes, flags, &err), &err);
}

static dt_result_t get_blob(struct dt_ckpt *ckpt, const char *name, void *data,
                            size_t *bytes, struct dt_error *err)
{
    if (!ckpt || !name || !bytes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_get_blob: expected a handle, a name and "
                            "the room there is");
    const struct dt_ckpt_tensor *blob = dt_tensors_find(ckpt, name);
    if (!blob || blob->kind != DT_MANIFEST_BLOB || !blob->data)
        return dt_error_set(err, DT_ERR_NOT_FOUND, "there is no blob %s", name);
    if (data && *bytes < blob->bytes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "blob %s has %zu bytes, there is room for %zu",
                            name, blob->bytes, *bytes);
    if (data && blob->bytes > 0)
        memcpy(data, blob->data, blob->bytes);
    *bytes = blob->bytes;
    return DT_SUCCESS;
}

dt_result_t dt_ckpt_get_blob(dt_ckpt_t ckpt, const char *name, void *data,
                             size_t *bytes)
{
    struct dt_error err = {0};
    return dt_api_return(get_blob(ckpt, name, data, bytes, &err), &err);
}
