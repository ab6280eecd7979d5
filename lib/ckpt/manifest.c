/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.c - what a checkpoint holds and in which files, as JSON. */
#include "ckpt/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/body.h"
#include "ckpt/build.h"
#include "ckpt/checksum.h"

#define FORMAT "slurm-dt checkpoint"

/* How a manifest of version 2 begins. The rest of it, behind a brace, is what
 * the checksum is of. */
#define SEAL     "{\"checksum\":\""
#define SEAL_END "\","
#define SEAL_LEN                                                               \
    (sizeof(SEAL) - 1 + DT_CHECKSUM_TEXT - 1 + sizeof(SEAL_END) - 1)

static dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
}

static dt_result_t corrupt(struct dt_error *err, const char *why)
{
    return dt_error_set(err, DT_ERR_CORRUPT, DT_MANIFEST_NAME ": %s", why);
}

/* ---- printing ---- */

static int64_t microseconds(double seconds)
{
    return seconds > 0 && seconds < 1e12 ? (int64_t)(seconds * 1e6 + 0.5) : 0;
}

/* The object without its checksum: keys sorted, no white space. */
static void print_object(FILE *out, const struct dt_manifest *m)
{
    fprintf(out,
            "{\"copy_us\":%" PRId64 ",\"created\":", microseconds(m->copy_s));
    dt_body_print_string(out, m->created);
    fputs(",\"files\":", out);
    dt_body_print_files(out, m);
    fprintf(out, ",\"format\":\"" FORMAT "\",\"num_nodes\":%d,\"redundancy\":",
            m->num_nodes);
    dt_body_print_string(out, m->redundancy);
    fprintf(out,
            ",\"restart_count\":%" PRId64 ",\"run_id\":", m->restart_count);
    dt_body_print_string(out, m->run_id);
    fprintf(out,
            ",\"step\":%" PRId64 ",\"tag\":\"%016" PRIx64 "\",\"tensors\":",
            m->step, m->tag);
    dt_body_print_tensors(out, m);
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
        return no_memory(err);
    /* the object's own brace becomes the last byte of the seal */
    fprintf(out, SEAL "%016d" SEAL_END, 0);
    fseeko(out, SEAL_LEN - 1, SEEK_SET);
    print_object(out, manifest);
    bool failed = ferror(out);
    if (fclose(out) || failed) {
        free(out_text);
        return no_memory(err);
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

/* ---- parsing: version 1 ----
 *
 * File r is rank r's; a tensor is in one of them or in each. Where, is only in
 * their headers. */

static bool parse_file_1(struct dt_build *build, int rank, json_t *json)
{
    struct dt_manifest_file file = {.rank = rank};
    json_t *size = json_object_get(json, "size");
    const char *sum = json_string_value(json_object_get(json, "xxh3_64"));
    if (!dt_body_parse_string(file.name, sizeof(file.name),
                              json_object_get(json, "name")) ||
        !json_is_integer(size) || json_integer_value(size) < 0 || !sum ||
        !dt_checksum_parse(sum, &file.checksum))
        return false;
    file.size = (size_t)json_integer_value(size);
    return dt_build_file(build, &file, NULL) == DT_SUCCESS;
}

static bool parse_tensor_1(struct dt_build *build, const char *name,
                           json_t *json)
{
    const char *file = json_string_value(json_object_get(json, "file"));
    json_t *replicated = json_object_get(json, "replicated");
    struct dt_tensor tensor;
    size_t index, first = 0, last = build->nfiles;
    if (!json_is_boolean(replicated) || json_is_true(replicated) != !!file ||
        !dt_body_parse_tensor(&tensor, name, json_object_get(json, "dtype"),
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
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a field is missing or wrong");
    for (int r = 0; r < m->world_size; r++)
        if (!parse_file_1(build, r, json_array_get(files, (size_t)r)))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "an entry of \"files\" is wrong");
    for (void *it = json_object_iter(tensors); it;
         it = json_object_iter_next(tensors, it))
        if (!parse_tensor_1(build, json_object_iter_key(it),
                            json_object_iter_value(it)))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "an entry of \"tensors\" is wrong");
    return DT_SUCCESS;
}

/* ---- parsing: version 2 ---- */

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
           dt_body_parse_string(m->redundancy, sizeof(m->redundancy),
                                json_object_get(root, "redundancy")) &&
           parse_seconds(json_object_get(root, "copy_us"), &m->copy_s) &&
           parse_seconds(json_object_get(root, "write_us"), &m->write_s);
}

static dt_result_t parse_2(struct dt_manifest *m, struct dt_build *build,
                           json_t *root, json_t *files, json_t *tensors,
                           struct dt_error *err)
{
    if (!parse_fields_2(m, root))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a field is missing or wrong");
    dt_result_t rc = dt_body_parse(build, files, tensors, -1, err);
    for (size_t i = 0; i < build->nfiles && rc == DT_SUCCESS; i++)
        if (build->file[i].rank >= m->world_size ||
            build->file[i].node >= m->num_nodes)
            rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                              "file %s is of rank %d of %d on node %d of %d",
                              build->file[i].name, build->file[i].rank,
                              m->world_size, build->file[i].node, m->num_nodes);
    return rc;
}

/* ---- parsing ---- */

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
        !dt_body_parse_string(m->run_id, sizeof(m->run_id),
                              json_object_get(root, "run_id")) ||
        !dt_body_parse_string(m->created, sizeof(m->created),
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
                                    : no_memory(err);
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
        return no_memory(err);
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

/* ---- looking ---- */

static int compare_name(const void *name, const void *tensor)
{
    const struct dt_manifest_tensor *t = tensor;
    return strcmp(name, t->tensor.name);
}

const struct dt_manifest_tensor *
dt_manifest_find(const struct dt_manifest *manifest, const char *name)
{
    if (manifest->count == 0)
        return NULL;
    return bsearch(name, manifest->tensor, manifest->count,
                   sizeof(*manifest->tensor), compare_name);
}
