/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* list.c - dt-ckpt list: the checkpoints of a directory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/format/format.h"
#include "files/checkpoint.h"
#include "text/columns.h"
#include "text/describe.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

/* What is known of one entry. */
struct row {
    const struct dt_store_entry *entry;
    bool known; /* its manifest could be read */
    bool complete;
    struct checkpoint c;
    struct dt_error state; /* "complete", or why not */
};

static void leftover(struct row *row)
{
    const char *old = strstr(row->entry->name, ".old-");
    const char *what =
        old ? "left from removing it" : "being written, or left from that";
    struct dt_error found = row->state;
    dt_error_set(&row->state, DT_SUCCESS, "%s%s%s", what,
                 row->complete ? ", complete"
                 : row->known  ? "; "
                               : "",
                 row->known && !row->complete ? found.text : "");
}

static void look(struct row *row, int dirfd, const char *dir)
{
    const struct dt_store_entry *entry = row->entry;
    struct checkpoint c;
    dt_result_t rc = DT_ERR_NOT_FOUND;
    row->known = entry->complete &&
                 checkpoint_open_at(&c, dirfd, dir, entry->name, &row->state) ==
                     DT_SUCCESS;
    if (row->known) {
        row->c = c;
        rc = checkpoint_files(&row->c, &row->state);
        if (rc == DT_SUCCESS && c.manifest.step != entry->step)
            rc = dt_error_set(&row->state, DT_ERR_CORRUPT,
                              "its manifest is of step %" PRId64,
                              c.manifest.step);
    } else if (!entry->complete) {
        dt_error_set(&row->state, rc, "no " DT_MANIFEST_NAME);
    } else { /* the row has the path already */
        size_t path = strlen(dir) + strlen(entry->name) + strlen("/: ");
        size_t len = strlen(row->state.text);
        path = path < len ? path : len;
        memmove(row->state.text, row->state.text + path, len - path + 1);
    }
    row->complete = rc == DT_SUCCESS;
    if (row->complete)
        dt_error_set(&row->state, rc, "complete");
    if (entry->hidden)
        leftover(row);
}

static void add_row(struct columns *table, const struct row *row)
{
    const struct dt_manifest *m = &row->c.manifest;
    char size[SIZE_TEXT];
    columns_add(table, "%" PRId64 "%s", row->entry->step,
                row->entry->hidden ? " (hidden)" : "");
    if (row->known) {
        columns_add(table, "%s", m->created);
        columns_add(table, "%s", size_text(size, row->c.bytes));
        columns_add(table, "%d", m->world_size);
        columns_add(table, "%d", m->num_nodes);
        columns_add(table, "%s", m->run_id);
        columns_add(table, "%.2f", m->copy_s);
        columns_add(table, "%.2f", m->write_s);
    } else {
        for (int i = 0; i < 7; i++)
            columns_add(table, "-");
    }
    columns_add(table, "%s", row->state.text);
}

static dt_result_t print_table(const struct row *row, size_t count,
                               struct dt_error *err)
{
    static const char *const head[] = {"STEP",   "WHEN",    "SIZE",
                                       "RANKS",  "NODES",   "RUN",
                                       "COPY s", "WRITE s", "STATE"};
    struct columns table = {.columns = 9, .right = 0xdd};
    if (count == 0)
        return DT_SUCCESS;
    for (size_t i = 0; i < table.columns; i++)
        columns_add(&table, "%s", head[i]);
    for (size_t i = 0; i < count; i++)
        add_row(&table, &row[i]);
    return columns_print(&table, err);
}

static json_t *row_json(const struct row *row)
{
    const struct dt_manifest *m = &row->c.manifest;
    json_t *json = json_pack(
        "{s:I, s:s, s:b, s:b, s:s}", "step", (json_int_t)row->entry->step,
        "name", row->entry->name, "hidden", row->entry->hidden, "complete",
        row->complete, "state", row->state.text);
    if (!row->known || !json)
        return json;
    json_t *more = json_pack(
        "{s:s, s:I, s:i, s:i, s:s, s:I, s:s, s:f, s:f, s:I, s:i}", "created",
        m->created, "bytes", (json_int_t)row->c.bytes, "ranks", m->world_size,
        "nodes", m->num_nodes, "run_id", m->run_id, "restart_count",
        (json_int_t)m->restart_count, "redundancy", m->redundancy, "copy_s",
        m->copy_s, "write_s", m->write_s, "tensors", (json_int_t)m->count,
        "version", m->version);
    int rc = more ? json_object_update(json, more) : -1;
    json_decref(more);
    if (rc == 0)
        return json;
    json_decref(json);
    return NULL;
}

static dt_result_t print_rows(const struct row *row, size_t count,
                              struct dt_error *err)
{
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(all, row_json(&row[i]))) {
            json_decref(all);
            return dt_no_memory(err);
        }
    return print_json(all, err);
}

dt_result_t command_list(const struct options *options, int *status,
                         struct dt_error *err)
{
    const char *dir = options->arg[0];
    struct dt_store_entry *entry = NULL;
    struct row *row = NULL;
    size_t count = 0;
    (void)status;
    int fd = dt_store_open(dir);
    if (fd < 0)
        return dt_failed(err, dir);
    dt_result_t rc = dt_store_list(fd, &entry, &count, err);
    if (rc == DT_SUCCESS && !(row = calloc(count + 1, sizeof(*row))))
        rc = dt_no_memory(err);
    for (size_t i = 0; i < count && rc == DT_SUCCESS; i++) {
        row[i].c.fd = row[i].c.in = -1;
        row[i].entry = &entry[i];
        look(&row[i], fd, dir);
        if (row[i].c.fd >= 0)
            close(row[i].c.fd); /* there may be more than may be open */
        row[i].c.fd = -1;
        rc = interrupt_check(err);
    }
    if (rc == DT_SUCCESS)
        rc = options->json ? print_rows(row, count, err)
                           : print_table(row, count, err);
    for (size_t i = 0; i < count && row; i++)
        checkpoint_close(&row[i].c);
    free(row);
    free(entry);
    close(fd);
    return rc;
}
