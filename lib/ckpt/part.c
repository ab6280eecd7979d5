/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* part.c - what one rank wrote, and the parts of all ranks as one manifest. */
#include <jansson.h>
#include <stdlib.h>

#include "ckpt/body.h"
#include "ckpt/build.h"

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
        dt_body_print_files(out, &body);
        fputs(",\"tensors\":", out);
        dt_body_print_tensors(out, &body);
        putc('}', out);
        failed = ferror(out);
        failed = fclose(out) || failed;
    }
    dt_manifest_clear(&body);
    if (failed) {
        free(out_text);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
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
        rc = dt_body_parse(build, json_object_get(root, "files"),
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
