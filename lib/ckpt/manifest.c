/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.c - what a checkpoint holds and in which files, as JSON. */
#include "ckpt/manifest.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/checksum.h"

#define FORMAT "slurm-dt checkpoint"

static dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
}

static dt_result_t corrupt(struct dt_error *err, const char *why)
{
    return dt_error_set(err, DT_ERR_CORRUPT, DT_MANIFEST_NAME ": %s", why);
}

/* The checksum of everything but the checksum: of the compact text with
 * sorted keys, so that it does not depend on the layout of the file. */
static dt_result_t self_checksum(json_t *root, uint64_t *sum,
                                 struct dt_error *err)
{
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return no_memory(err);
    *sum = dt_checksum(text, strlen(text));
    free(text);
    return DT_SUCCESS;
}

/* ---- printing ---- */

static json_t *file_json(const struct dt_manifest_file *file)
{
    char sum[DT_CHECKSUM_TEXT];
    dt_checksum_print(file->checksum, sum);
    return json_pack("{s:s, s:I, s:s}", "name", file->name, "size",
                     (json_int_t)file->size, "xxh3_64", sum);
}

static json_t *tensor_json(const struct dt_manifest *manifest,
                           const struct dt_manifest_tensor *entry)
{
    const struct dt_tensor *t = &entry->tensor;
    json_t *shape = json_array();
    for (int i = 0; i < t->ndim; i++)
        if (json_array_append_new(shape, json_integer(t->shape[i]))) {
            json_decref(shape);
            return NULL;
        }
    json_t *json =
        json_pack("{s:s, s:o, s:b}", "dtype", dt_tensor_dtype_name(t->dtype),
                  "shape", shape, "replicated", entry->file >= 0);
    if (entry->file >= 0 &&
        json_object_set_new(json, "file",
                            json_string(manifest->file[entry->file].name))) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *manifest_json(const struct dt_manifest *manifest)
{
    json_t *files = json_array(), *tensors = json_object();
    json_t *root = json_pack(
        "{s:s, s:i, s:I, s:s, s:I, s:s, s:i, s:o, s:o}", "format", FORMAT,
        "version", DT_MANIFEST_VERSION, "step", (json_int_t)manifest->step,
        "run_id", manifest->run_id, "restart_count",
        (json_int_t)manifest->restart_count, "created", manifest->created,
        "world_size", manifest->world_size, "files", files, "tensors", tensors);
    int rc = root ? 0 : -1;
    for (int i = 0; i < manifest->world_size && rc == 0; i++)
        rc = json_array_append_new(files, file_json(&manifest->file[i]));
    for (size_t i = 0; i < manifest->count && rc == 0; i++)
        rc = json_object_set_new(tensors, manifest->tensor[i].tensor.name,
                                 tensor_json(manifest, &manifest->tensor[i]));
    if (rc) {
        json_decref(root);
        return NULL;
    }
    return root;
}

dt_result_t dt_manifest_print(const struct dt_manifest *manifest, char **text,
                              size_t *len, struct dt_error *err)
{
    json_t *root = manifest_json(manifest);
    if (!root)
        return no_memory(err);
    uint64_t sum;
    char sum_text[DT_CHECKSUM_TEXT];
    dt_result_t rc = self_checksum(root, &sum, err);
    if (rc != DT_SUCCESS)
        goto free_root;
    dt_checksum_print(sum, sum_text);
    char *out = NULL;
    if (json_object_set_new(root, "checksum", json_string(sum_text)) == 0)
        out = json_dumps(root, JSON_INDENT(1));
    if (!out) {
        rc = no_memory(err);
        goto free_root;
    }
    *len = strlen(out);
    *text = out;
free_root:
    json_decref(root);
    return rc;
}

/* ---- parsing ---- */

static bool copy_string(char *to, size_t room, json_t *json)
{
    const char *text = json_string_value(json);
    if (!text || strlen(text) >= room)
        return false;
    strcpy(to, text);
    return true;
}

static bool good_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return name[0] && name[0] != '.' && name[strspn(name, allowed)] == '\0';
}

static bool parse_file(struct dt_manifest_file *file, json_t *json)
{
    json_t *size = json_object_get(json, "size");
    const char *sum = json_string_value(json_object_get(json, "xxh3_64"));
    if (!copy_string(file->name, sizeof(file->name),
                     json_object_get(json, "name")) ||
        !good_name(file->name) || !json_is_integer(size) ||
        json_integer_value(size) < 0 || !sum)
        return false;
    file->size = (size_t)json_integer_value(size);
    return dt_checksum_parse(sum, &file->checksum);
}

static bool parse_tensor(const struct dt_manifest *manifest,
                         struct dt_manifest_tensor *entry, const char *name,
                         json_t *json)
{
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    const char *file = json_string_value(json_object_get(json, "file"));
    json_t *shape_json = json_object_get(json, "shape");
    json_t *replicated = json_object_get(json, "replicated");
    size_t ndim = json_array_size(shape_json);
    if (!dtype || dt_tensor_dtype_find(dtype) < 0 ||
        !json_is_array(shape_json) || ndim > DT_TENSOR_DIMS_MAX ||
        !json_is_boolean(replicated) || json_is_true(replicated) != !!file)
        return false;
    int64_t shape[DT_TENSOR_DIMS_MAX];
    for (size_t i = 0; i < ndim; i++) {
        json_t *dim = json_array_get(shape_json, i);
        if (!json_is_integer(dim))
            return false;
        shape[i] = json_integer_value(dim);
    }
    entry->file = DT_MANIFEST_PER_RANK;
    for (int i = 0; file && i < manifest->world_size; i++)
        if (strcmp(manifest->file[i].name, file) == 0)
            entry->file = i;
    if (file && entry->file < 0)
        return false;
    return dt_tensor_init(&entry->tensor, name,
                          (dt_dtype_t)dt_tensor_dtype_find(dtype), (int)ndim,
                          shape, NULL) == DT_SUCCESS;
}

/* Everything under a root whose checksum is right. */
static dt_result_t parse_body(struct dt_manifest *m, json_t *root,
                              struct dt_error *err)
{
    json_t *files = json_object_get(root, "files");
    json_t *tensors = json_object_get(root, "tensors");
    json_int_t step, restart_count, world_size;
    if (json_unpack(root, "{s:I, s:I, s:I}", "step", &step, "restart_count",
                    &restart_count, "world_size", &world_size) ||
        step < 0 || world_size < 1 || !json_is_object(tensors) ||
        (size_t)world_size != json_array_size(files) ||
        !copy_string(m->run_id, sizeof(m->run_id),
                     json_object_get(root, "run_id")) ||
        !copy_string(m->created, sizeof(m->created),
                     json_object_get(root, "created")))
        return corrupt(err, "a field is missing or wrong");
    m->step = step;
    m->restart_count = restart_count;
    m->file = calloc((size_t)world_size, sizeof(*m->file));
    m->tensor = calloc(json_object_size(tensors) + 1, sizeof(*m->tensor));
    if (!m->file || !m->tensor)
        return no_memory(err);
    for (; m->world_size < world_size; m->world_size++)
        if (!parse_file(&m->file[m->world_size],
                        json_array_get(files, (size_t)m->world_size)))
            return corrupt(err, "an entry of \"files\" is wrong");
    for (void *it = json_object_iter(tensors); it;
         it = json_object_iter_next(tensors, it))
        if (!parse_tensor(m, &m->tensor[m->count++], json_object_iter_key(it),
                          json_object_iter_value(it)))
            return corrupt(err, "an entry of \"tensors\" is wrong");
    return DT_SUCCESS;
}

/* Every version keeps the keys format, version and checksum. */
static dt_result_t check_envelope(json_t *root, struct dt_error *err)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    json_t *version = json_object_get(root, "version");
    const char *text = json_string_value(json_object_get(root, "checksum"));
    uint64_t stated, sum;
    if (!format || strcmp(format, FORMAT) != 0 || !json_is_integer(version) ||
        !text || !dt_checksum_parse(text, &stated))
        return corrupt(err, "is not a manifest of slurm-dt");
    json_object_del(root, "checksum");
    dt_result_t rc = self_checksum(root, &sum, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (sum != stated)
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
    dt_result_t rc = check_envelope(root, err);
    if (rc == DT_SUCCESS)
        rc = parse_body(&found, root, err);
    json_decref(root);
    if (rc == DT_SUCCESS)
        *manifest = found;
    else
        dt_manifest_clear(&found);
    return rc;
}

void dt_manifest_clear(struct dt_manifest *manifest)
{
    free(manifest->file);
    free(manifest->tensor);
    *manifest = (struct dt_manifest){0};
}
