/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* npy.c - NumPy's file format: one array, with a line of text before it. */
#include "files/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/file.h"
#include "ckpt/format/format.h"
#include "files/floats.h"

#define MAGIC      "\x93NUMPY"
#define MAGIC_LEN  6
#define PREFIX_MAX 12    /* magic, version, length of the text */
#define TEXT_MAX   65536 /* far more than 32 dimensions need */
#define ALIGN      64

static const struct {
    dt_dtype_t dtype;
    const char *descr;
} types[] = {
    {DT_DTYPE_I8, "|i1"},  {DT_DTYPE_U8, "|u1"},  {DT_DTYPE_I32, "<i4"},
    {DT_DTYPE_I64, "<i8"}, {DT_DTYPE_F16, "<f2"}, {DT_DTYPE_F32, "<f4"},
    {DT_DTYPE_F64, "<f8"},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

static dt_result_t corrupt(struct dt_error *err, const char *why)
{
    return dt_error_set(err, DT_ERR_CORRUPT, "%s", why);
}

/* ---- reading ---- */

bool npy_is(int fd)
{
    char magic[MAGIC_LEN];
    return dt_file_read(fd, magic, sizeof(magic), 0) == MAGIC_LEN &&
           memcmp(magic, MAGIC, MAGIC_LEN) == 0;
}

static void skip(const char **at, const char *spaces)
{
    *at += strspn(*at, spaces);
}

/* 'text' into to. */
static bool take_string(const char **at, char *to, size_t room)
{
    char quote = **at;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(*at + 1, quote);
    if (!end || (size_t)(end - *at - 1) >= room)
        return false;
    memcpy(to, *at + 1, (size_t)(end - *at - 1));
    to[end - *at - 1] = '\0';
    *at = end + 1;
    return true;
}

/* "(3, 4)" */
static bool take_shape(const char **at, int *ndim, int64_t *shape)
{
    if (*(*at)++ != '(')
        return false;
    for (*ndim = 0;; ++*ndim) {
        skip(at, " ");
        if (**at == ')') {
            ++*at;
            return true;
        }
        char *end;
        if (*ndim == DT_TENSOR_DIMS_MAX || **at < '0' || **at > '9')
            return false;
        errno = 0;
        shape[*ndim] = strtoll(*at, &end, 10);
        *at = end;
        skip(at, " ");
        if (errno || (**at != ',' && **at != ')'))
            return false;
        *at += **at == ',';
    }
}

struct text {
    char descr[32];
    bool fortran, has_shape, has_order;
    int ndim;
    int64_t shape[DT_TENSOR_DIMS_MAX];
};

static bool take_value(const char **at, const char *key, struct text *text)
{
    if (strcmp(key, "descr") == 0)
        return take_string(at, text->descr, sizeof(text->descr));
    if (strcmp(key, "shape") == 0) {
        text->has_shape = true;
        return take_shape(at, &text->ndim, text->shape);
    }
    if (strcmp(key, "fortran_order") != 0)
        return false;
    text->has_order = true;
    text->fortran = strncmp(*at, "True", 4) == 0;
    if (!text->fortran && strncmp(*at, "False", 5) != 0)
        return false;
    *at += text->fortran ? 4 : 5;
    return true;
}

/* "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" */
static bool parse_text(const char *at, struct text *text)
{
    char key[32];
    *text = (struct text){0};
    if (*at++ != '{')
        return false;
    for (;;) {
        skip(&at, " ");
        if (*at == '}')
            return text->descr[0] && text->has_shape && text->has_order;
        if (!take_string(&at, key, sizeof(key)))
            return false;
        skip(&at, " ");
        if (*at++ != ':')
            return false;
        skip(&at, " ");
        if (!take_value(&at, key, text))
            return false;
        skip(&at, " ");
        if (*at != ',' && *at != '}')
            return false;
        at += *at == ',';
    }
}

/* What the text means. */
static dt_result_t understand(const struct text *text, const char *name,
                              struct dt_tensor *tensor, struct dt_error *err)
{
    char descr[4];
    snprintf(descr, sizeof(descr), "%.3s", text->descr);
    if (strlen(text->descr) == 3 && strchr("<=|", descr[0]))
        descr[0] = descr[2] == '1' ? '|' : '<';
    for (int i = 0; i < TYPES; i++) {
        if (strlen(text->descr) != 3 || strcmp(types[i].descr, descr) != 0)
            continue;
        if (text->fortran && text->ndim > 1)
            return dt_error_set(err, DT_ERR_UNSUPPORTED,
                                "its elements are in Fortran's order; save "
                                "numpy.ascontiguousarray() of it");
        return dt_tensor_init(tensor, name, types[i].dtype, text->ndim,
                              text->shape, err);
    }
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "its elements are of type \"%s\", expected one of "
                        "|i1 |u1 <i4 <i8 <f2 <f4 <f8",
                        text->descr);
}

/* The text of the file fd, to be freed, and where the data begins. */
static dt_result_t read_text(int fd, char **text, size_t *offset,
                             struct dt_error *err)
{
    unsigned char prefix[PREFIX_MAX];
    ssize_t got = dt_file_read(fd, prefix, sizeof(prefix), 0);
    if (got < 0)
        return dt_error_set(err, DT_ERR_IO, "%s", strerror(errno));
    struct dt_cursor cursor = dt_cursor(prefix, (size_t)got);
    dt_cursor_bytes(&cursor, MAGIC_LEN);
    uint64_t version = dt_cursor_uint(&cursor, 1);
    dt_cursor_uint(&cursor, 1);
    size_t width = version == 1 ? 2 : 4;
    uint64_t len = dt_cursor_uint(&cursor, width);
    if (cursor.failed || version < 1 || version > 3 || len > TEXT_MAX)
        return corrupt(err, "its header is broken");
    char *line = calloc(1, len + 1);
    if (!line)
        return dt_no_memory(err);
    size_t begin = MAGIC_LEN + 2 + width;
    if (dt_file_read(fd, line, len, (off_t)begin) != (ssize_t)len) {
        free(line);
        return corrupt(err, "its header is cut off");
    }
    *text = line;
    *offset = begin + len;
    return DT_SUCCESS;
}

dt_result_t npy_read(int fd, size_t size, const char *name,
                     struct dt_tensor *tensor, size_t *offset,
                     struct dt_error *err)
{
    char *line = NULL;
    struct text text;
    struct dt_tensor found;
    size_t begin = 0;
    dt_result_t rc = read_text(fd, &line, &begin, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = parse_text(line, &text) ? understand(&text, name, &found, err)
                                 : corrupt(err, "its header is broken");
    free(line);
    if (rc == DT_SUCCESS && (begin > size || found.bytes != size - begin))
        rc = corrupt(err, "its data does not fit its header");
    if (rc != DT_SUCCESS)
        return rc;
    *tensor = found;
    *offset = begin;
    return DT_SUCCESS;
}

/* ---- writing ---- */

bool npy_widens(dt_dtype_t dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype == dtype)
            return false;
    return true;
}

static dt_result_t write_head(int fd, const char *path,
                              const struct dt_tensor *tensor,
                              struct dt_error *err)
{
    char head[2 * ALIGN + 24 * DT_TENSOR_DIMS_MAX];
    size_t begin = MAGIC_LEN + 4, at = begin;
    const char *descr = "<f4";
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype == tensor->dtype)
            descr = types[i].descr;
    at += (size_t)snprintf(head + at, sizeof(head) - at,
                           "{'descr': '%s', 'fortran_order': False, "
                           "'shape': (",
                           descr);
    for (int i = 0; i < tensor->ndim; i++)
        at += (size_t)snprintf(head + at, sizeof(head) - at, "%" PRId64 "%s",
                               tensor->shape[i],
                               i + 1 < tensor->ndim || i == 0 ? ", " : "");
    at += (size_t)snprintf(head + at, sizeof(head) - at, "), }");
    while ((at + 1) % ALIGN)
        head[at++] = ' ';
    head[at++] = '\n';
    memcpy(head, MAGIC "\1\0", MAGIC_LEN + 2);
    head[MAGIC_LEN + 2] = (char)((at - begin) & 0xff);
    head[MAGIC_LEN + 3] = (char)((at - begin) >> 8);
    return dt_file_write(fd, head, at) ? dt_failed(err, path) : DT_SUCCESS;
}

static dt_result_t write_widened(int fd, const char *path, dt_dtype_t dtype,
                                 const void *data, size_t len,
                                 struct dt_error *err)
{
    float wide[4096];
    size_t n = len / dt_dtype_size(dtype), room = sizeof(wide) / sizeof(*wide);
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        for (; k < room && i < n; k++, i++)
            wide[k] = (float)float_get(dtype, data, i);
        if (dt_file_write(fd, wide, k * sizeof(*wide)))
            return dt_failed(err, path);
    }
    return DT_SUCCESS;
}

dt_result_t npy_write(int fd, const char *path, const struct dt_tensor *tensor,
                      const struct origin *origin, struct dt_error *err)
{
    struct stream stream;
    const void *data;
    size_t len;
    dt_result_t rc = write_head(fd, path, tensor, err);
    if (rc == DT_SUCCESS)
        rc = stream_open(&stream, origin, err);
    if (rc != DT_SUCCESS)
        return rc;
    while ((rc = stream_next(&stream, &data, &len, err)) == DT_SUCCESS &&
           len > 0) {
        if (npy_widens(tensor->dtype))
            rc = write_widened(fd, path, tensor->dtype, data, len, err);
        else if (dt_file_write(fd, data, len))
            rc = dt_failed(err, path);
        if (rc != DT_SUCCESS)
            break;
    }
    stream_close(&stream);
    return rc;
}
