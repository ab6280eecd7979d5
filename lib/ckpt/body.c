/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* body.c - the files and tensors of a manifest as JSON. */
#include "ckpt/body.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/checksum.h"

#define SUM_DIGITS (DT_CHECKSUM_TEXT - 1)

static const char *const kinds[] = {
    [DT_MANIFEST_GLOBAL] = "global",
    [DT_MANIFEST_OWN] = "own",
    [DT_MANIFEST_BLOB] = "blob",
};

static dt_result_t wrong(struct dt_error *err, const char *what)
{
    return dt_error_set(err, DT_ERR_INVALID_ARG, "%s", what);
}

/* ---- printing ---- */

void dt_body_print_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', out);
        putc(*text < ' ' || *text > '~' ? '?' : *text, out);
    }
    putc('"', out);
}

static void print_sum(FILE *out, uint64_t sum)
{
    char text[DT_CHECKSUM_TEXT];
    dt_checksum_print(sum, text);
    fputs(text, out);
}

static void print_numbers(FILE *out, const int64_t *number, int n)
{
    putc('[', out);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%" PRId64, i ? "," : "", number[i]);
    putc(']', out);
}

void dt_body_print_files(FILE *out, const struct dt_manifest *manifest)
{
    putc('[', out);
    for (size_t i = 0; i < manifest->nfiles; i++) {
        const struct dt_manifest_file *file = &manifest->file[i];
        fprintf(out,
                "%s{\"header\":%zu,\"name\":\"%s\",\"node\":%d,\"rank\":%d,"
                "\"size\":%zu,\"xxh3_64\":\"",
                i ? "," : "", file->header, file->name, file->node, file->rank,
                file->size);
        print_sum(out, file->checksum);
        fputs("\"}", out);
    }
    putc(']', out);
}

static bool is_whole(const struct dt_manifest_tensor *t,
                     const struct dt_manifest_slice *slice)
{
    return t->kind != DT_MANIFEST_BLOB &&
           memcmp(slice->extent, t->tensor.shape,
                  (size_t)t->tensor.ndim * sizeof(int64_t)) == 0;
}

static void print_slice(FILE *out, const struct dt_manifest_tensor *t,
                        const struct dt_manifest_slice *slice)
{
    fprintf(out, "[%d,%zu,", slice->file, slice->offset);
    if (!is_whole(t, slice)) {
        print_numbers(out, slice->at, t->tensor.ndim);
        putc(',', out);
        print_numbers(out, slice->extent, t->tensor.ndim);
        putc(',', out);
    }
    putc('"', out);
    for (size_t i = 0; i < dt_build_blocks(slice->bytes); i++)
        print_sum(out, slice->sum[i]);
    fputs("\"]", out);
}

void dt_body_print_tensors(FILE *out, const struct dt_manifest *manifest)
{
    putc('{', out);
    for (size_t i = 0; i < manifest->count; i++) {
        const struct dt_manifest_tensor *t = &manifest->tensor[i];
        if (i > 0)
            putc(',', out);
        dt_body_print_string(out, t->tensor.name);
        fprintf(out, ":{\"dtype\":\"%s\",\"kind\":\"%s\",\"replicated\":%s,",
                dt_tensor_dtype_name(t->tensor.dtype), kinds[t->kind],
                t->replicated ? "true" : "false");
        if (t->kind != DT_MANIFEST_BLOB) {
            fputs("\"shape\":", out);
            print_numbers(out, t->tensor.shape, t->tensor.ndim);
            putc(',', out);
        }
        fputs("\"slices\":[", out);
        for (size_t k = 0; k < t->nslices; k++) {
            if (k > 0)
                putc(',', out);
            print_slice(out, t, &t->slice[k]);
        }
        fputs("]}", out);
    }
    putc('}', out);
}

/* ---- parsing ---- */

bool dt_body_parse_string(char *to, size_t room, json_t *json)
{
    const char *text = json_string_value(json);
    if (!text || strlen(text) >= room ||
        strlen(text) != json_string_length(json))
        return false;
    strcpy(to, text);
    return true;
}

static bool parse_size(json_t *json, size_t *size)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        return false;
    *size = (size_t)json_integer_value(json);
    return true;
}

static bool parse_int(json_t *json, int *number)
{
    size_t size;
    if (!parse_size(json, &size) || size > INT32_MAX)
        return false;
    *number = (int)size;
    return true;
}

static bool parse_numbers(json_t *json, int n, int64_t *number)
{
    if (!json_is_array(json) || json_array_size(json) != (size_t)n)
        return false;
    for (int i = 0; i < n; i++) {
        json_t *value = json_array_get(json, (size_t)i);
        if (!json_is_integer(value))
            return false;
        number[i] = json_integer_value(value);
    }
    return true;
}

bool dt_body_parse_tensor(struct dt_tensor *tensor, const char *name,
                          json_t *dtype, json_t *shape)
{
    const char *type = json_string_value(dtype);
    int64_t dims[DT_TENSOR_DIMS_MAX];
    size_t ndim = json_array_size(shape);
    return type && dt_tensor_dtype_find(type) >= 0 &&
           ndim <= DT_TENSOR_DIMS_MAX &&
           parse_numbers(shape, (int)ndim, dims) &&
           dt_tensor_init(tensor, name, (dt_dtype_t)dt_tensor_dtype_find(type),
                          (int)ndim, dims, NULL) == DT_SUCCESS;
}

static dt_result_t parse_file(struct dt_build *build, json_t *json, int rank,
                              struct dt_error *err)
{
    struct dt_manifest_file file = {0};
    const char *sum = json_string_value(json_object_get(json, "xxh3_64"));
    if (!dt_body_parse_string(file.name, sizeof(file.name),
                              json_object_get(json, "name")) ||
        !parse_size(json_object_get(json, "size"), &file.size) ||
        !parse_size(json_object_get(json, "header"), &file.header) ||
        !parse_int(json_object_get(json, "rank"), &file.rank) ||
        !parse_int(json_object_get(json, "node"), &file.node) || !sum ||
        !dt_checksum_parse(sum, &file.checksum))
        return wrong(err, "an entry of \"files\" is wrong");
    if (rank >= 0 && file.rank != rank)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %d names a file of rank %d's", rank,
                            file.rank);
    return dt_build_file(build, &file, err);
}

static bool parse_sums(json_t *json, size_t n, uint64_t *sum)
{
    const char *text = json_string_value(json);
    char one[DT_CHECKSUM_TEXT] = {0};
    if (!text || json_string_length(json) != n * SUM_DIGITS)
        return false;
    for (size_t i = 0; i < n; i++) {
        memcpy(one, text + i * SUM_DIGITS, SUM_DIGITS);
        if (!dt_checksum_parse(one, &sum[i]))
            return false;
    }
    return true;
}

static dt_result_t parse_slice(struct dt_build *build, size_t index,
                               size_t first_file, json_t *json,
                               struct dt_error *err)
{
    const struct dt_manifest_tensor *t = &build->tensor[index];
    int64_t at[DT_TENSOR_DIMS_MAX], extent[DT_TENSOR_DIMS_MAX];
    struct dt_manifest_slice slice = {.bytes = t->tensor.bytes};
    size_t n = json_array_size(json), file;
    json_t *sums = json_array_get(json, n - 1);
    size_t blocks = json_string_length(sums) / SUM_DIGITS;
    bool boxed = n == 5;
    if ((n != 3 || t->kind == DT_MANIFEST_BLOB) && !boxed)
        return wrong(err, "an entry of \"slices\" is wrong");
    if (!parse_size(json_array_get(json, 0), &file) ||
        file >= build->nfiles - first_file ||
        !parse_size(json_array_get(json, 1), &slice.offset) ||
        (boxed &&
         (!parse_numbers(json_array_get(json, 2), t->tensor.ndim, at) ||
          !parse_numbers(json_array_get(json, 3), t->tensor.ndim, extent))))
        return wrong(err, "an entry of \"slices\" is wrong");
    slice.file = (int)(first_file + file);
    slice.rank = build->file[slice.file].rank;
    if (boxed) {
        slice.at = at;
        slice.extent = extent;
        slice.bytes = dt_dtype_size(t->tensor.dtype);
        for (int d = 0; d < t->tensor.ndim; d++)
            if (extent[d] < 0 ||
                __builtin_mul_overflow(slice.bytes, (size_t)extent[d],
                                       &slice.bytes))
                return wrong(err, "a slice is negative or too large");
    }
    if (blocks != dt_build_blocks(slice.bytes))
        return wrong(err, "a slice has not as many checksums as blocks");
    uint64_t *sum = calloc(blocks + 1, sizeof(*sum));
    if (!sum)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    slice.sum = sum;
    dt_result_t rc = parse_sums(sums, blocks, sum)
                         ? dt_build_slice(build, index, &slice, err)
                         : wrong(err, "a checksum of a slice is wrong");
    free(sum);
    return rc;
}

static dt_result_t parse_tensor(struct dt_build *build, const char *name,
                                json_t *json, size_t first_file, int rank,
                                struct dt_error *err)
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    json_t *replicated = json_object_get(json, "replicated");
    json_t *shape = json_object_get(json, "shape");
    json_t *slices = json_object_get(json, "slices");
    struct dt_tensor tensor;
    size_t k = 0, index;
    while (kind && k < 3 && strcmp(kinds[k], kind) != 0)
        k++;
    json_t *row = k == DT_MANIFEST_BLOB ? json_pack("[i]", 0) : NULL;
    bool good =
        kind && k < 3 && json_is_boolean(replicated) && json_is_array(slices) &&
        dt_body_parse_tensor(&tensor, name, json_object_get(json, "dtype"),
                             row ? row : shape);
    json_decref(row);
    if (!good)
        return wrong(err, "an entry of \"tensors\" is wrong");
    dt_result_t rc =
        dt_build_tensor(build, &tensor, (enum dt_manifest_kind)k,
                        json_is_true(replicated), rank, &index, err);
    for (size_t i = 0; i < json_array_size(slices) && rc == DT_SUCCESS; i++)
        rc = parse_slice(build, index, first_file, json_array_get(slices, i),
                         err);
    return rc;
}

dt_result_t dt_body_parse(struct dt_build *build, json_t *files,
                          json_t *tensors, int rank, struct dt_error *err)
{
    size_t first_file = build->nfiles;
    dt_result_t rc = DT_SUCCESS;
    if (!json_is_array(files) || !json_is_object(tensors))
        return wrong(err, "\"files\" or \"tensors\" is missing");
    for (size_t i = 0; i < json_array_size(files) && rc == DT_SUCCESS; i++)
        rc = parse_file(build, json_array_get(files, i), rank, err);
    for (void *it = json_object_iter(tensors); it && rc == DT_SUCCESS;
         it = json_object_iter_next(tensors, it))
        rc = parse_tensor(build, json_object_iter_key(it),
                          json_object_iter_value(it), first_file, rank, err);
    return rc;
}
