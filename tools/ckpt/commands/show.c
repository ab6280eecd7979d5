/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* show.c - dt-ckpt show: what a checkpoint has, and which rank wrote it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ckpt/format/format.h"
#include "files/checkpoint.h"
#include "text/columns.h"
#include "text/describe.h"
#include "text/options.h"
#include "text/terminal.h"

#define TYPE_TEXT 800

/* A blob has as many bytes as each rank had. */
static const char *type_text(const struct dt_manifest_tensor *t,
                             char text[TYPE_TEXT])
{
    if (t->kind == DT_MANIFEST_BLOB)
        return "bytes";
    return dt_tensor_type(&t->tensor, text, TYPE_TEXT);
}

/* ---- for people ---- */

static void print_head(const struct checkpoint *c, const char *state)
{
    const struct dt_manifest *m = &c->manifest;
    char size[SIZE_TEXT];
    print_line(stdout, "%s: %s", c->path, state);
    print_line(stdout, "step %" PRId64 " of run %s, restart %" PRId64 ", %s",
               m->step, m->run_id, m->restart_count, m->created);
    print_line(stdout, "%zu tensors in %zu files, %s, of %d ranks on %d nodes",
               m->count, m->nfiles, size_text(size, c->bytes), m->world_size,
               m->num_nodes);
    print_line(stdout,
               "it took %.2f s to copy and %.2f s to write; redundancy %s; "
               "format version %d",
               m->copy_s, m->write_s, m->redundancy[0] ? m->redundancy : "none",
               m->version);
    putchar('\n');
}

static dt_result_t print_tensors(const struct dt_manifest *m,
                                 struct dt_error *err)
{
    struct columns table = {.columns = 5, .right = 0x18};
    char type[TYPE_TEXT], size[SIZE_TEXT];
    columns_add(&table, "TENSOR");
    columns_add(&table, "TYPE");
    columns_add(&table, "KIND");
    columns_add(&table, "SLICES");
    columns_add(&table, "SIZE");
    for (size_t i = 0; i < m->count; i++) {
        const struct dt_manifest_tensor *t = &m->tensor[i];
        columns_add(&table, "%s", t->tensor.name);
        columns_add(&table, "%s", type_text(t, type));
        columns_add(&table, "%s", kind_text(t));
        columns_add(&table, "%zu", t->nslices);
        columns_add(&table, "%s", size_text(size, stored_bytes(t)));
    }
    return columns_print(&table, err);
}

static dt_result_t print_files(const struct dt_manifest *m,
                               struct dt_error *err)
{
    struct columns table = {.columns = 5, .right = 0x1e};
    char size[SIZE_TEXT];
    size_t *slices = calloc(m->nfiles + 1, sizeof(*slices));
    if (!slices)
        return dt_no_memory(err);
    for (size_t i = 0; i < m->count; i++)
        for (size_t s = 0; s < m->tensor[i].nslices; s++)
            slices[m->tensor[i].slice[s].file]++;
    putchar('\n');
    columns_add(&table, "FILE");
    columns_add(&table, "RANK");
    columns_add(&table, "NODE");
    columns_add(&table, "SLICES");
    columns_add(&table, "SIZE");
    for (size_t i = 0; i < m->nfiles; i++) {
        columns_add(&table, "%s", m->file[i].name);
        columns_add(&table, "%d", m->file[i].rank);
        columns_add(&table, "%d", m->file[i].node);
        columns_add(&table, "%zu", slices[i]);
        columns_add(&table, "%s", size_text(size, m->file[i].size));
    }
    free(slices);
    return columns_print(&table, err);
}

static dt_result_t print_tensor(const struct dt_manifest *m,
                                const struct dt_manifest_tensor *t,
                                struct dt_error *err)
{
    static const char *const head[] = {"RANK", "NODE", "AT",  "EXTENT",
                                       "SIZE", "BYTE", "FILE"};
    struct columns table = {.columns = 7, .right = 0x33};
    char type[TYPE_TEXT], at[INDEX_TEXT], extent[INDEX_TEXT], size[SIZE_TEXT];
    print_line(stdout, "%s: %s, %s, %zu slices", t->tensor.name,
               type_text(t, type), kind_text(t), t->nslices);
    for (size_t i = 0; i < table.columns; i++)
        columns_add(&table, "%s", head[i]);
    for (size_t i = 0; i < t->nslices; i++) {
        const struct dt_manifest_slice *s = &t->slice[i];
        columns_add(&table, "%d", s->rank);
        columns_add(&table, "%d", m->file[s->file].node);
        columns_add(&table, "%s", index_text(at, t->tensor.ndim, s->at));
        columns_add(&table, "%s",
                    index_text(extent, t->tensor.ndim, s->extent));
        columns_add(&table, "%s", size_text(size, s->bytes));
        columns_add(&table, "%zu", s->offset);
        columns_add(&table, "%s", m->file[s->file].name);
    }
    return columns_print(&table, err);
}

/* ---- for programs ---- */

static json_t *numbers_json(int n, const int64_t *number)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        if (json_array_append_new(array, json_integer(number[i]))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *tensor_json(const struct dt_manifest *m,
                           const struct dt_manifest_tensor *t)
{
    json_t *slices = json_array();
    for (size_t i = 0; i < t->nslices; i++) {
        const struct dt_manifest_slice *s = &t->slice[i];
        json_t *slice = json_pack(
            "{s:i, s:i, s:s, s:I, s:I, s:o, s:o}", "rank", s->rank, "node",
            m->file[s->file].node, "file", m->file[s->file].name, "offset",
            (json_int_t)s->offset, "bytes", (json_int_t)s->bytes, "at",
            numbers_json(t->tensor.ndim, s->at), "extent",
            numbers_json(t->tensor.ndim, s->extent));
        if (json_array_append_new(slices, slice)) {
            json_decref(slices);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:o, s:s, s:b, s:I, s:o}", "name",
                     t->tensor.name, "dtype",
                     dt_tensor_dtype_name(t->tensor.dtype), "shape",
                     numbers_json(t->tensor.ndim, t->tensor.shape), "kind",
                     t->kind == DT_MANIFEST_GLOBAL ? "global"
                     : t->kind == DT_MANIFEST_OWN  ? "own"
                                                   : "blob",
                     "replicated", t->replicated, "bytes",
                     (json_int_t)stored_bytes(t), "slices", slices);
}

static json_t *files_json(const struct dt_manifest *m)
{
    json_t *files = json_array();
    for (size_t i = 0; i < m->nfiles; i++)
        if (json_array_append_new(
                files,
                json_pack("{s:s, s:i, s:i, s:I}", "name", m->file[i].name,
                          "rank", m->file[i].rank, "node", m->file[i].node,
                          "bytes", (json_int_t)m->file[i].size))) {
            json_decref(files);
            return NULL;
        }
    return files;
}

static json_t *checkpoint_json(const struct checkpoint *c, const char *state,
                               const struct dt_manifest_tensor *only)
{
    const struct dt_manifest *m = &c->manifest;
    json_t *tensors = json_array();
    for (size_t i = 0; i < m->count; i++)
        if ((!only || only == &m->tensor[i]) &&
            json_array_append_new(tensors, tensor_json(m, &m->tensor[i]))) {
            json_decref(tensors);
            return NULL;
        }
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:s, s:s, s:i, s:i, s:s, s:f, s:f, s:i, s:I, "
        "s:o, s:o}",
        "path", c->path, "state", state, "step", (json_int_t)m->step,
        "restart_count", (json_int_t)m->restart_count, "run_id", m->run_id,
        "created", m->created, "ranks", m->world_size, "nodes", m->num_nodes,
        "redundancy", m->redundancy, "copy_s", m->copy_s, "write_s", m->write_s,
        "version", m->version, "bytes", (json_int_t)c->bytes, "tensors",
        tensors, "files", files_json(m));
}

static dt_result_t print_all(const struct checkpoint *c, const char *state,
                             struct dt_error *err)
{
    print_head(c, state);
    dt_result_t rc = print_tensors(&c->manifest, err);
    return rc == DT_SUCCESS ? print_files(&c->manifest, err) : rc;
}

dt_result_t command_show(const struct options *options, int *status,
                         struct dt_error *err)
{
    struct checkpoint c;
    const struct dt_manifest_tensor *only = NULL;
    struct dt_error state = {"complete"};
    (void)status;
    dt_result_t rc = checkpoint_open(&c, options->arg[0], err);
    if (rc != DT_SUCCESS)
        return rc;
    checkpoint_files(&c, &state);
    if (options->tensor &&
        !(only = dt_manifest_find(&c.manifest, options->tensor)))
        rc = dt_error_set(err, DT_ERR_NOT_FOUND,
                          "%s: no tensor is called %s; dt-ckpt show lists "
                          "them",
                          c.path, options->tensor);
    else if (options->json)
        rc = print_json(checkpoint_json(&c, state.text, only), err);
    else if (only)
        rc = print_tensor(&c.manifest, only, err);
    else
        rc = print_all(&c, state.text, err);
    checkpoint_close(&c);
    return rc;
}
