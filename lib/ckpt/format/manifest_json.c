/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest_json.c - the manifest, and one rank's part of it, as JSON. */
#include "ckpt/format/manifest_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/format/build.h"
#include "ckpt/format/checksum.h"
#include "ckpt/format/failure.h"

#define FORMAT "slurm-dt checkpoint"

/* The beginning of a manifest of version 2. The checksum is that of a brace and
 * the rest of the text. */
#define SEAL     "{\"checksum\":\""
#define SEAL_END "\","
#define SEAL_LEN                                                               \
    (sizeof(SEAL) - 1 + DT_CHECKSUM_TEXT - 1 + sizeof(SEAL_END) - 1)

#define SUM_DIGITS (DT_CHECKSUM_TEXT - 1)

static dt_result_t corrupt(struct dt_error *err, const char *why)
{
    return dt_error_set(err, DT_ERR_CORRUPT, DT_MANIFEST_NAME ": %s", why);
}

/* ---- files and tensors, printed: sorted keys, no white space ---- */

static const char *const kinds[] = {
    [DT_MANIFEST_GLOBAL] = "global",
    [DT_MANIFEST_OWN] = "own",
    [DT_MANIFEST_BLOB] = "blob",
};

static dt_result_t wrong(struct dt_error *err, const char *what)
{
    return dt_error_set(err, DT_ERR_INVALID_ARG, "%s", what);
}

static void print_string(FILE *out, const char *text)
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

static void print_files(FILE *out, const struct dt_manifest *manifest)
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
    for (size_t i = 0; i < dt_manifest_blocks(slice->bytes); i++)
        print_sum(out, slice->sum[i]);
    fputs("\"]", out);
}

static void print_tensors(FILE *out, const struct dt_manifest *manifest)
{
    putc('{', out);
    for (size_t i = 0; i < manifest->count; i++) {
        const struct dt_manifest_tensor *t = &manifest->tensor[i];
        if (i > 0)
            putc(',', out);
        print_string(out, t->tensor.name);
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

/* ---- files and tensors, parsed ---- */

static bool parse_string(char *to, size_t room, json_t *json)
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

static bool parse_type(struct dt_tensor *tensor, const char *name,
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

/* Of a manifest of version 1 if old, where file r is rank r's. */
static dt_result_t parse_file(struct dt_build *build, json_t *json, int rank,
                              bool old, struct dt_error *err)
{
    struct dt_manifest_file file = {.rank = rank};
    const char *sum = json_string_value(json_object_get(json, "xxh3_64"));
    if (!parse_string(file.name, sizeof(file.name),
                      json_object_get(json, "name")) ||
        !parse_size(json_object_get(json, "size"), &file.size) ||
        (!old && (!parse_size(json_object_get(json, "header"), &file.header) ||
                  !parse_int(json_object_get(json, "rank"), &file.rank) ||
                  !parse_int(json_object_get(json, "node"), &file.node))) ||
        !sum || !dt_checksum_parse(sum, &file.checksum))
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
    if (blocks != dt_manifest_blocks(slice.bytes))
        return wrong(err, "a slice has not as many checksums as blocks");
    uint64_t *sum = calloc(blocks + 1, sizeof(*sum));
    if (!sum)
        return dt_no_memory(err);
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
    bool good = kind && k < 3 && json_is_boolean(replicated) &&
                json_is_array(slices) &&
                parse_type(&tensor, name, json_object_get(json, "dtype"),
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

static dt_result_t parse_body(struct dt_build *build, json_t *files,
                              json_t *tensors, int rank, struct dt_error *err)
{
    size_t first_file = build->nfiles;
    dt_result_t rc = DT_SUCCESS;
    if (!json_is_array(files) || !json_is_object(tensors))
        return wrong(err, "\"files\" or \"tensors\" is missing");
    for (size_t i = 0; i < json_array_size(files) && rc == DT_SUCCESS; i++)
        rc = parse_file(build, json_array_get(files, i), rank, false, err);
    for (void *it = json_object_iter(tensors); it && rc == DT_SUCCESS;
         it = json_object_iter_next(tensors, it))
        rc = parse_tensor(build, json_object_iter_key(it),
                          json_object_iter_value(it), first_file, rank, err);
    return rc;
}

/* ---- the manifest, printed ---- */

static int64_t microseconds(double seconds)
{
    return seconds > 0 && seconds < 1e12 ? (int64_t)(seconds * 1e6 + 0.5) : 0;
}

/* The object without its checksum: keys sorted, no white space. */
static void print_object(FILE *out, const struct dt_manifest *m)
{
    fprintf(out,
            "{\"copy_us\":%" PRId64 ",\"created\":", microseconds(m->copy_s));
    print_string(out, m->created);
    fputs(",\"files\":", out);
    print_files(out, m);
    fprintf(out, ",\"format\":\"" FORMAT "\",\"num_nodes\":%d,\"redundancy\":",
            m->num_nodes);
    print_string(out, m->redundancy);
    fprintf(out,
            ",\"restart_count\":%" PRId64 ",\"run_id\":", m->restart_count);
    print_string(out, m->run_id);
    fprintf(out,
            ",\"step\":%" PRId64 ",\"tag\":\"%016" PRIx64 "\",\"tensors\":",
            m->step, m->tag);
    print_tensors(out, m);
    fprintf(out, ",\"version\":%d,\"world_size\":%d,\"write_us\":%" PRId64 "}",
            DT_MANIFEST_VERSION, m->world_size, microseconds(m->write_s));
}

dt_result_t dt_manifest_print(const struct dt_manifest *manifest, char **text,
                              size_t *len, struct dt_error *err)
{
    char *out_text = NULL;
    size_t out_len = 0;
    FILE *out = open_memstream(&out_text, &out_len);
    if (!out)
        return dt_no_memory(err);
    /* the brace of the object becomes the last byte of the seal */
    fprintf(out, SEAL "%016d" SEAL_END, 0);
    fseeko(out, SEAL_LEN - 1, SEEK_SET);
    print_object(out, manifest);
    bool failed = ferror(out);
    if (fclose(out) || failed) {
        free(out_text);
        return dt_no_memory(err);
    }
    char sum[DT_CHECKSUM_TEXT];
    char *object = out_text + SEAL_LEN - 1;
    dt_checksum_print(dt_checksum(object, strlen(object)), sum);
    *object = ',';
    memcpy(out_text + sizeof(SEAL) - 1, sum, sizeof(sum) - 1);
    *text = out_text;
    *len = out_len;
    return DT_SUCCESS;
}

/* ---- the manifest of version 1, parsed ----
 *
 * File r is rank r's; a tensor is in one of them or in each. Where, is only in
 * their headers. */

static bool parse_tensor_1(struct dt_build *build, const char *name,
                           json_t *json)
{
    const char *file = json_string_value(json_object_get(json, "file"));
    json_t *replicated = json_object_get(json, "replicated");
    struct dt_tensor tensor;
    size_t index, first = 0, last = build->nfiles;
    if (!json_is_boolean(replicated) || json_is_true(replicated) != !!file ||
        !parse_type(&tensor, name, json_object_get(json, "dtype"),
                    json_object_get(json, "shape")))
        return false;
    if (file) {
        while (first < build->nfiles &&
               strcmp(build->file[first].name, file) != 0)
            first++;
        if (first == build->nfiles)
            return false;
        last = first + 1;
    }
    if (dt_build_tensor(build, &tensor,
                        file ? DT_MANIFEST_GLOBAL : DT_MANIFEST_OWN, file,
                        (int)first, &index, NULL) != DT_SUCCESS)
        return false;
    for (; first < last; first++) {
        struct dt_manifest_slice slice = {
            .file = (int)first, .rank = (int)first, .bytes = tensor.bytes};
        if (dt_build_slice(build, index, &slice, NULL) != DT_SUCCESS)
            return false;
    }
    return true;
}

static dt_result_t parse_1(struct dt_manifest *m, struct dt_build *build,
                           json_t *files, json_t *tensors, struct dt_error *err)
{
    build->unplaced = true;
    m->num_nodes = 1;
    strcpy(m->redundancy, "none");
    if (json_array_size(files) != (size_t)m->world_size)
        return wrong(err, "a field is missing or wrong");
    dt_result_t rc = DT_SUCCESS;
    for (int r = 0; r < m->world_size && rc == DT_SUCCESS; r++)
        rc = parse_file(build, json_array_get(files, (size_t)r), r, true, err);
    for (void *it = json_object_iter(tensors); it && rc == DT_SUCCESS;
         it = json_object_iter_next(tensors, it))
        if (!parse_tensor_1(build, json_object_iter_key(it),
                            json_object_iter_value(it)))
            return wrong(err, "an entry of \"tensors\" is wrong");
    return rc;
}

/* ---- the manifest of version 2, parsed ---- */

static bool parse_seconds(json_t *json, double *seconds)
{
    *seconds = (double)json_integer_value(json) / 1e6;
    return json_is_integer(json) && json_integer_value(json) >= 0;
}

static bool parse_fields_2(struct dt_manifest *m, json_t *root)
{
    json_t *nodes = json_object_get(root, "num_nodes");
    const char *tag = json_string_value(json_object_get(root, "tag"));
    m->num_nodes = (int)json_integer_value(nodes);
    return json_is_integer(nodes) && json_integer_value(nodes) >= 1 &&
           json_integer_value(nodes) <= INT32_MAX && tag &&
           dt_checksum_parse(tag, &m->tag) &&
           parse_string(m->redundancy, sizeof(m->redundancy),
                        json_object_get(root, "redundancy")) &&
           parse_seconds(json_object_get(root, "copy_us"), &m->copy_s) &&
           parse_seconds(json_object_get(root, "write_us"), &m->write_s);
}

static dt_result_t parse_2(struct dt_manifest *m, struct dt_build *build,
                           json_t *root, json_t *files, json_t *tensors,
                           struct dt_error *err)
{
    if (!parse_fields_2(m, root))
        return wrong(err, "a field is missing or wrong");
    dt_result_t rc = parse_body(build, files, tensors, -1, err);
    for (size_t i = 0; i < build->nfiles && rc == DT_SUCCESS; i++)
        if (build->file[i].rank >= m->world_size ||
            build->file[i].node >= m->num_nodes)
            rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                              "file %s is of rank %d of %d on node %d of %d",
                              build->file[i].name, build->file[i].rank,
                              m->world_size, build->file[i].node, m->num_nodes);
    return rc;
}

/* ---- the manifest of any version, parsed ---- */

/* Everything under a root whose checksum is right. */
static dt_result_t parse_root(struct dt_manifest *m, json_t *root,
                              struct dt_error *err)
{
    json_t *files = json_object_get(root, "files");
    json_t *tensors = json_object_get(root, "tensors");
    json_int_t version, step, restart_count, world_size;
    struct dt_build build = {0};
    struct dt_error why = {0};
    dt_result_t rc;
    if (json_unpack(root, "{s:I, s:I, s:I, s:I}", "version", &version, "step",
                    &step, "restart_count", &restart_count, "world_size",
                    &world_size) ||
        step < 0 || world_size < 1 || world_size > INT32_MAX ||
        !json_is_object(tensors) ||
        !parse_string(m->run_id, sizeof(m->run_id),
                      json_object_get(root, "run_id")) ||
        !parse_string(m->created, sizeof(m->created),
                      json_object_get(root, "created")))
        return corrupt(err, "a field is missing or wrong");
    m->version = (int)version;
    m->step = step;
    m->restart_count = restart_count;
    m->world_size = (int)world_size;
    if (version == 1)
        rc = parse_1(m, &build, files, tensors, &why);
    else
        rc = parse_2(m, &build, root, files, tensors, &why);
    if (rc == DT_SUCCESS)
        rc = dt_build_finish(&build, m->world_size, m, &why);
    dt_build_clear(&build);
    return rc == DT_ERR_INVALID_ARG ? corrupt(err, why.text)
           : rc == DT_SUCCESS       ? rc
                                    : dt_no_memory(err);
}

/* Is it exactly as printed, and the checksum right? */
static bool is_sealed(const char *text, size_t len)
{
    char stated[DT_CHECKSUM_TEXT] = {0};
    uint64_t sum;
    if (len < SEAL_LEN || memcmp(text, SEAL, sizeof(SEAL) - 1) != 0)
        return false;
    memcpy(stated, text + sizeof(SEAL) - 1, sizeof(stated) - 1);
    return memcmp(text + SEAL_LEN - sizeof(SEAL_END) + 1, SEAL_END,
                  sizeof(SEAL_END) - 1) == 0 &&
           dt_checksum_parse(stated, &sum) &&
           dt_checksum_pair("{", 1, text + SEAL_LEN, len - SEAL_LEN) == sum;
}

/* The checksum of everything but the checksum: of the compact text with
 * sorted keys, so that it does not depend on the layout of the file. */
static dt_result_t self_checksum(json_t *root, uint64_t *sum,
                                 struct dt_error *err)
{
    json_t *without = json_copy(root);
    json_object_del(without, "checksum");
    char *text =
        without ? json_dumps(without, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(without);
    if (!text)
        return dt_no_memory(err);
    *sum = dt_checksum(text, strlen(text));
    free(text);
    return DT_SUCCESS;
}

/* Every version keeps the keys format, version and checksum. */
static dt_result_t check_envelope(json_t *root, bool sealed,
                                  struct dt_error *err)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    json_t *version = json_object_get(root, "version");
    const char *text = json_string_value(json_object_get(root, "checksum"));
    uint64_t stated, sum = 0;
    if (!format || strcmp(format, FORMAT) != 0 || !json_is_integer(version) ||
        !text || !dt_checksum_parse(text, &stated))
        return corrupt(err, "is not a manifest of slurm-dt");
    dt_result_t rc = sealed ? DT_SUCCESS : self_checksum(root, &sum, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!sealed && sum != stated)
        return corrupt(err, "checksum differs");
    if (json_integer_value(version) > DT_MANIFEST_VERSION)
        return dt_error_set(err, DT_ERR_VERSION,
                            "was written by a newer slurm-dt: format version "
                            "%lld, this one reads up to %d",
                            (long long)json_integer_value(version),
                            DT_MANIFEST_VERSION);
    if (json_integer_value(version) < 1)
        return corrupt(err, "there is no such version");
    return DT_SUCCESS;
}

dt_result_t dt_manifest_parse(struct dt_manifest *manifest, const char *text,
                              size_t len, struct dt_error *err)
{
    struct dt_manifest found = {0};
    if (len > DT_MANIFEST_MAX)
        return corrupt(err, "too large");
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        return corrupt(err, "is torn or no JSON");
    }
    dt_result_t rc = check_envelope(root, is_sealed(text, len), err);
    if (rc == DT_SUCCESS)
        rc = parse_root(&found, root, err);
    json_decref(root);
    if (rc == DT_SUCCESS)
        *manifest = found;
    else
        dt_manifest_clear(&found);
    return rc;
}

/* ---- the part of one rank ---- */

struct dt_part {
    int rank, node;
    struct dt_build build;
};

struct dt_part *dt_part_create(int rank, int node)
{
    struct dt_part *part = calloc(1, sizeof(*part));
    if (part) {
        part->rank = rank;
        part->node = node;
    }
    return part;
}

void dt_part_destroy(struct dt_part *part)
{
    if (!part)
        return;
    dt_build_clear(&part->build);
    free(part);
}

dt_result_t dt_part_add_file(struct dt_part *part,
                             const struct dt_manifest_file *file, int *index,
                             struct dt_error *err)
{
    struct dt_manifest_file mine = *file;
    mine.rank = part->rank;
    mine.node = part->node;
    dt_result_t rc = dt_build_file(&part->build, &mine, err);
    if (rc == DT_SUCCESS)
        *index = (int)part->build.nfiles - 1;
    return rc;
}

dt_result_t dt_part_add_slice(struct dt_part *part,
                              const struct dt_tensor *tensor,
                              enum dt_manifest_kind kind, bool replicated,
                              const struct dt_manifest_slice *slice,
                              struct dt_error *err)
{
    struct dt_manifest_slice mine = *slice;
    size_t index;
    mine.rank = part->rank;
    if (!mine.sum && mine.bytes > 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: a part without checksums",
                            tensor->name);
    dt_result_t rc = dt_build_tensor(&part->build, tensor, kind, replicated,
                                     part->rank, &index, err);
    if (rc == DT_SUCCESS)
        rc = dt_build_slice(&part->build, index, &mine, err);
    return rc;
}

dt_result_t dt_part_print(const struct dt_part *part, char **text, size_t *len,
                          struct dt_error *err)
{
    struct dt_manifest body = {0};
    char *out_text = NULL;
    size_t out_len = 0;
    dt_result_t rc = dt_build_finish(&part->build, 0, &body, err);
    if (rc != DT_SUCCESS)
        return rc;
    FILE *out = open_memstream(&out_text, &out_len);
    bool failed = !out;
    if (out) {
        fputs("{\"files\":", out);
        print_files(out, &body);
        fputs(",\"tensors\":", out);
        print_tensors(out, &body);
        putc('}', out);
        failed = ferror(out);
        failed = fclose(out) || failed;
    }
    dt_manifest_clear(&body);
    if (failed) {
        free(out_text);
        return dt_no_memory(err);
    }
    *text = out_text;
    *len = out_len;
    return DT_SUCCESS;
}

static dt_result_t add_part(struct dt_build *build, int rank, const char *text,
                            size_t len, struct dt_error *err)
{
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    dt_result_t rc;
    if (!root)
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "rank %d's part is torn or there is no memory", rank);
    else
        rc = parse_body(build, json_object_get(root, "files"),
                        json_object_get(root, "tensors"), rank, err);
    json_decref(root);
    return rc;
}

dt_result_t dt_manifest_join(struct dt_manifest *manifest, int nparts,
                             const char *const *text, const size_t *len,
                             struct dt_error *err)
{
    struct dt_build build = {0};
    dt_result_t rc = DT_SUCCESS;
    for (int r = 0; r < nparts && rc == DT_SUCCESS; r++)
        rc = add_part(&build, r, text[r], len[r], err);
    if (rc == DT_SUCCESS)
        rc = dt_build_finish(&build, nparts, manifest, err);
    dt_build_clear(&build);
    return rc;
}
