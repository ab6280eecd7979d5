/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* safetensors.c - one file of tensors: a length, a JSON header, the data. */
#include "ckpt/format/safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/file.h"
#include "ckpt/format/failure.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "safetensors is little-endian, tensors are written as they are");

#define LENGTH_BYTES 8 /* of the header's length */

static dt_result_t corrupt(struct dt_error *err, const char *why)
{
    return dt_error_set(err, DT_ERR_CORRUPT, "%s", why);
}

/* ---- writing ---- */

static json_t *entry_json(const struct dt_tensor *tensor, size_t begin)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->ndim; i++)
        if (json_array_append_new(shape, json_integer(tensor->shape[i]))) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                     dt_tensor_dtype_name(tensor->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + tensor->bytes));
}

/* The header as text. NULL: out of memory. order is that of the data. */
static char *header_text(size_t count, const struct dt_tensor *const *tensor,
                         const size_t *order)
{
    json_t *root = json_pack("{s:{s:s, s:s}}", "__metadata__", "format",
                             "slurm-dt", "version", "1");
    size_t at = 0;
    int rc = root ? 0 : -1;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct dt_tensor *t = tensor[order[i]];
        rc = json_object_set_new(root, t->name, entry_json(t, at));
        at += t->bytes;
    }
    char *text = rc ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

/* Larger element types first, else in the order given. NULL: out of memory. */
static size_t *data_order(size_t count, const struct dt_tensor *const *tensor)
{
    size_t *order = calloc(count + 1, sizeof(*order)), n = 0;
    for (size_t width = 8; order && width > 0; width /= 2)
        for (size_t i = 0; i < count; i++)
            if (dt_dtype_size(tensor[i]->dtype) == width)
                order[n++] = i;
    return order;
}

dt_result_t dt_safetensors_layout(size_t count,
                                  const struct dt_tensor *const *tensor,
                                  size_t *offset, char **header,
                                  size_t *header_len, size_t *size,
                                  struct dt_error *err)
{
    dt_result_t rc = dt_no_memory(err);
    char *json = NULL, *out = NULL;
    size_t *order = data_order(count, tensor);
    if (order)
        json = header_text(count, tensor, order);
    if (!json)
        goto free_order;
    size_t len = strlen(json), padded = (len + 7) / 8 * 8;
    out = malloc(LENGTH_BYTES + padded + 1);
    if (!out)
        goto free_json;
    for (int i = 0; i < LENGTH_BYTES; i++)
        out[i] = (char)(padded >> 8 * i);
    memcpy(out + LENGTH_BYTES, json, len);
    memset(out + LENGTH_BYTES + len, ' ', padded - len);
    out[LENGTH_BYTES + padded] = '\0';
    size_t at = LENGTH_BYTES + padded;
    *header = out;
    *header_len = at;
    for (size_t i = 0; i < count; i++) {
        offset[order[i]] = at;
        at += tensor[order[i]]->bytes;
    }
    *size = at;
    rc = DT_SUCCESS;
free_json:
    free(json);
free_order:
    free(order);
    return rc;
}

/* ---- reading ---- */

static dt_result_t unknown_type(const char *name, const char *type,
                                struct dt_error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    if (type[strspn(type, letters)])
        return corrupt(err, "malformed element type in the header");
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "tensor %s has elements of type %.20s, which libdt "
                        "does not know",
                        name, type);
}

/* Parse one entry of the header. The data begins at base and has space bytes.
 */
static dt_result_t parse_entry(struct dt_safetensors_entry *entry,
                               const char *name, json_t *value, size_t base,
                               size_t space, struct dt_error *err)
{
    const char *dtype_name;
    json_t *shape_json;
    json_int_t begin, end;
    if (json_unpack(value, "{s:s, s:o, s:[II!]}", "dtype", &dtype_name, "shape",
                    &shape_json, "data_offsets", &begin, &end) ||
        !json_is_array(shape_json) ||
        json_array_size(shape_json) > DT_TENSOR_DIMS_MAX)
        return corrupt(err, "malformed header entry");
    int dtype = dt_tensor_dtype_find(dtype_name);
    int64_t shape[DT_TENSOR_DIMS_MAX];
    int ndim = (int)json_array_size(shape_json);
    for (int i = 0; i < ndim; i++) {
        json_t *dim = json_array_get(shape_json, (size_t)i);
        if (!json_is_integer(dim))
            return corrupt(err, "malformed shape in the header");
        shape[i] = json_integer_value(dim);
    }
    struct dt_error why = {0};
    if (dt_tensor_init(&entry->tensor, name,
                       dtype < 0 ? DT_DTYPE_U8 : (dt_dtype_t)dtype, ndim, shape,
                       &why) != DT_SUCCESS)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "impossible tensor in the header: %s", why.text);
    if (dtype < 0)
        return unknown_type(entry->tensor.name, dtype_name, err);
    if (begin < 0 || end < begin || (size_t)end > space ||
        (size_t)(end - begin) != entry->tensor.bytes)
        return corrupt(err, "offsets in the header do not fit");
    entry->offset = base + (size_t)begin;
    return DT_SUCCESS;
}

static int by_offset(const void *a, const void *b)
{
    const struct dt_safetensors_entry *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    /* the empty ones first: they end where they begin */
    return (x->tensor.bytes > y->tensor.bytes) -
           (x->tensor.bytes < y->tensor.bytes);
}

/* The format requires data without gaps or overlap. */
static bool covers(struct dt_safetensors *st, size_t base, size_t size)
{
    if (st->count > 0)
        qsort(st->entry, st->count, sizeof(*st->entry), by_offset);
    for (size_t i = 0; i < st->count; i++) {
        if (st->entry[i].offset != base)
            return false;
        base += st->entry[i].tensor.bytes;
    }
    return base == size;
}

/* All entries of a header into st->entry, which has room for them. */
static dt_result_t parse_entries(struct dt_safetensors *st, json_t *root,
                                 size_t base, size_t size, struct dt_error *err)
{
    for (void *it = json_object_iter(root); it;
         it = json_object_iter_next(root, it)) {
        const char *name = json_object_iter_key(it);
        if (strcmp(name, "__metadata__") == 0)
            continue;
        dt_result_t rc =
            parse_entry(&st->entry[st->count++], name,
                        json_object_iter_value(it), base, size - base, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    if (!covers(st, base, size))
        return corrupt(err, "the data does not fit the header");
    return DT_SUCCESS;
}

dt_result_t dt_safetensors_parse(struct dt_safetensors *st, const char *header,
                                 size_t len, size_t size, struct dt_error *err)
{
    struct dt_safetensors found = {0};
    dt_result_t rc;
    if (size < LENGTH_BYTES || len > size - LENGTH_BYTES)
        return corrupt(err, "header is longer than the file");
    json_t *root = json_loadb(header, len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(root)) {
        rc = corrupt(err, "header is not a JSON object");
        goto free_root;
    }
    found.entry = calloc(json_object_size(root) + 1, sizeof(*found.entry));
    if (!found.entry) {
        rc = dt_no_memory(err);
        goto free_root;
    }
    rc = parse_entries(&found, root, LENGTH_BYTES + len, size, err);
    if (rc == DT_SUCCESS)
        *st = found;
    else
        dt_safetensors_clear(&found);
free_root:
    json_decref(root);
    return rc;
}

dt_result_t dt_safetensors_read(struct dt_safetensors *st, int fd, size_t size,
                                struct dt_error *err)
{
    unsigned char prefix[LENGTH_BYTES];
    ssize_t n = dt_file_read(fd, prefix, sizeof(prefix), 0);
    if (n < 0)
        return dt_error_set(err, DT_ERR_IO, "%s", strerror(errno));
    struct dt_cursor cursor = dt_cursor(prefix, (size_t)n);
    uint64_t len = dt_cursor_uint(&cursor, LENGTH_BYTES);
    if (cursor.failed)
        return corrupt(err, "shorter than a header");
    if (len > DT_SAFETENSORS_HEADER_MAX || size < LENGTH_BYTES ||
        len > size - LENGTH_BYTES)
        return corrupt(err, "header is longer than the file");
    char *header = malloc(len + 1);
    if (!header)
        return dt_no_memory(err);
    dt_result_t rc;
    n = dt_file_read(fd, header, len, LENGTH_BYTES);
    if (n < 0)
        rc = dt_error_set(err, DT_ERR_IO, "%s", strerror(errno));
    else if ((size_t)n < len)
        rc = corrupt(err, "truncated");
    else
        rc = dt_safetensors_parse(st, header, len, size, err);
    free(header);
    return rc;
}

const struct dt_safetensors_entry *
dt_safetensors_find(const struct dt_safetensors *st, const char *name)
{
    for (size_t i = 0; i < st->count; i++)
        if (strcmp(st->entry[i].tensor.name, name) == 0)
            return &st->entry[i];
    return NULL;
}

void dt_safetensors_clear(struct dt_safetensors *st)
{
    free(st->entry);
    *st = (struct dt_safetensors){0};
}
