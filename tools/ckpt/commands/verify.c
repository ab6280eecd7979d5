/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.c - dt-ckpt verify: whether a checkpoint has the checksums of its
 * manifest. */
#include "commands/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "text/describe.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

/* ---- one checkpoint ---- */

struct piece {
    const struct dt_tensor *tensor;
    const struct dt_manifest_slice *slice;
};

struct check {
    struct checkpoint *c;
    damage_fn *fn;
    void *arg;
    bool damaged;
};

static void damage(struct check *check, const char *text)
{
    check->damaged = true;
    check->fn(text, check->arg);
}

/* About file i. */
static void damage_of_file(struct check *check, size_t i, const char *why)
{
    char text[700];
    snprintf(text, sizeof(text), "%s: %s", check->c->manifest.file[i].name,
             why);
    damage(check, text);
}

static int by_file(const void *a, const void *b)
{
    const struct dt_manifest_slice *x = ((const struct piece *)a)->slice;
    const struct dt_manifest_slice *y = ((const struct piece *)b)->slice;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* All slices that have bytes, file by file, in the order of the file. */
static struct piece *all_pieces(const struct dt_manifest *m, size_t *count)
{
    size_t n = 0, used = 0;
    for (size_t i = 0; i < m->count; i++)
        n += m->tensor[i].nslices;
    struct piece *piece = calloc(n + 1, sizeof(*piece));
    for (size_t i = 0; i < m->count && piece; i++)
        for (size_t s = 0; s < m->tensor[i].nslices; s++)
            if (m->tensor[i].slice[s].bytes > 0)
                piece[used++] = (struct piece){&m->tensor[i].tensor,
                                               &m->tensor[i].slice[s]};
    if (piece)
        qsort(piece, used, sizeof(*piece), by_file);
    *count = used;
    return piece;
}

/* Do the manifest and the header of the file describe the same data? Both lists
 * are in the order of the file. */
static void match_header(struct check *check, size_t file,
                         const struct dt_safetensors *st,
                         const struct piece *piece, size_t n)
{
    size_t e = 0;
    for (size_t i = 0; i < n; i++) {
        const struct dt_manifest_slice *slice = piece[i].slice;
        while (e < st->count && (st->entry[e].offset < slice->offset ||
                                 st->entry[e].tensor.bytes == 0))
            e++;
        if (e == st->count || st->entry[e].offset != slice->offset ||
            st->entry[e].tensor.bytes != slice->bytes ||
            st->entry[e].tensor.dtype != piece[i].tensor->dtype ||
            strcmp(st->entry[e].tensor.name, piece[i].tensor->name) != 0) {
            char text[300];
            snprintf(text, sizeof(text),
                     "its header and the manifest disagree about tensor "
                     "%s",
                     piece[i].tensor->name);
            damage_of_file(check, file, text);
            return;
        }
    }
}

/* Version 1 has a sum of all the file, which is checked as it is opened. */
static dt_result_t check_header(struct check *check, size_t file,
                                const struct piece *piece, size_t n,
                                struct dt_error *err)
{
    struct checkpoint *c = check->c;
    const struct dt_manifest_file *f = &c->manifest.file[file];
    struct dt_safetensors st;
    dt_result_t rc;
    if (c->manifest.version > 1) {
        uint64_t sum = 0;
        rc = f->header > f->size
                 ? dt_error_set(err, DT_ERR_CORRUPT, "no room for its header")
                 : dt_checksum_file(c->in, f->header, &sum, err);
        if (rc == DT_SUCCESS && sum != f->checksum)
            rc = dt_error_set(err, DT_ERR_CORRUPT,
                              "the checksum of its header differs");
        if (rc != DT_SUCCESS)
            return rc;
    }
    rc = dt_safetensors_read(&st, c->in, f->size, err);
    if (rc != DT_SUCCESS)
        return rc;
    match_header(check, file, &st, piece, n);
    dt_safetensors_clear(&st);
    return DT_SUCCESS;
}

/* Its damaged blocks in one line. */
static dt_result_t check_blocks(struct check *check, const struct piece *piece,
                                unsigned char *block, struct dt_error *err)
{
    const struct dt_manifest_slice *slice = piece->slice;
    struct dt_error why = {""}, first = {""};
    char text[1200];
    size_t bad = 0;
    for (size_t at = 0; at < slice->bytes; at += DT_MANIFEST_BLOCK) {
        size_t end = slice->bytes - at < DT_MANIFEST_BLOCK
                         ? slice->bytes
                         : at + DT_MANIFEST_BLOCK;
        dt_result_t rc = interrupt_check(err);
        if (rc != DT_SUCCESS)
            return rc;
        if (checkpoint_read(check->c, slice, at, end, block, &why) !=
                DT_SUCCESS &&
            bad++ == 0)
            first = why;
        bar_add(end - at);
    }
    if (bad == 0)
        return DT_SUCCESS;
    size_t path = strlen(check->c->path) + strlen(": ");
    snprintf(text, sizeof(text), "%s (tensor %s, rank %d%s)",
             strlen(first.text) > path ? first.text + path : first.text,
             piece->tensor->name, slice->rank,
             bad > 1 ? "; more of its blocks, too" : "");
    damage(check, text);
    return DT_SUCCESS;
}

static dt_result_t check_file(struct check *check, size_t file,
                              const struct piece *piece, size_t n,
                              unsigned char *block, struct dt_error *err)
{
    struct checkpoint *c = check->c;
    struct dt_error why = {""};
    if (checkpoint_file(c, (int)file, &why) != DT_SUCCESS) {
        size_t path = strlen(c->path) + strlen(": ");
        damage(check, strlen(why.text) > path ? why.text + path : why.text);
        return interrupt_check(err);
    }
    if (check_header(check, file, piece, n, &why) != DT_SUCCESS)
        damage_of_file(check, file, why.text);
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < n && rc == DT_SUCCESS; i++)
        rc = check_blocks(check, &piece[i], block, err);
    return rc;
}

dt_result_t verify_checkpoint(struct checkpoint *c, damage_fn *fn, void *arg,
                              struct dt_error *err)
{
    struct check check = {c, fn, arg, false};
    size_t count, i = 0;
    struct piece *piece = all_pieces(&c->manifest, &count);
    unsigned char *block = malloc(DT_MANIFEST_BLOCK);
    dt_result_t rc = piece && block ? DT_SUCCESS : dt_no_memory(err);
    for (size_t f = 0; f < c->manifest.nfiles && rc == DT_SUCCESS; f++) {
        size_t first = i;
        while (i < count && piece[i].slice->file == (int)f)
            i++;
        rc = check_file(&check, f, piece + first, i - first, block, err);
    }
    free(block);
    free(piece);
    if (rc == DT_SUCCESS && check.damaged)
        rc = dt_error_set(err, DT_ERR_CORRUPT, "%s is damaged", c->path);
    return rc;
}

/* ---- the command ---- */

struct report {
    const char *path;
    json_t *all;     /* the array of results, or NULL: as text */
    json_t *damages; /* of this one */
    bool failed;     /* no memory for one of them */
    bool damaged;    /* any of all */
};

static void report_damage(const char *text, void *arg)
{
    struct report *report = arg;
    report->damaged = true;
    if (report->all) {
        report->failed |=
            json_array_append_new(report->damages, json_string(text)) != 0;
        return;
    }
    print_line(stdout, "%s: %s", report->path, text);
}

static void report_end(struct report *report, const struct checkpoint *c)
{
    char size[SIZE_TEXT];
    if (report->all) {
        json_t *one = json_pack("{s:s, s:b, s:o}", "path", report->path, "ok",
                                json_array_size(report->damages) == 0, "damage",
                                report->damages);
        report->failed |= json_array_append_new(report->all, one) != 0;
        report->damages = json_array();
    } else if (c) {
        print_line(stdout, "%s: ok, %zu tensors in %zu files, %s", report->path,
                   c->manifest.count, c->manifest.nfiles,
                   size_text(size, c->bytes));
    }
}

/* c is closed. */
static dt_result_t verify_opened(struct report *report, struct checkpoint *c,
                                 struct dt_error *err)
{
    char what[DT_STORE_NAME + 8];
    snprintf(what, sizeof(what), "verify %s", c->name);
    report->path = c->path;
    bar_start(what, c->bytes);
    dt_result_t rc = verify_checkpoint(c, report_damage, report, err);
    progress_end();
    if (rc == DT_SUCCESS || rc == DT_ERR_CORRUPT)
        report_end(report, rc == DT_SUCCESS ? c : NULL);
    checkpoint_close(c);
    return rc == DT_ERR_CORRUPT ? DT_SUCCESS : rc;
}

/* One that cannot even be opened. */
static dt_result_t cannot_open(struct report *report, const char *path,
                               dt_result_t rc, struct dt_error *err)
{
    if (rc != DT_ERR_CORRUPT)
        return rc;
    size_t len = strlen(path) + strlen(": ");
    report->path = path;
    report_damage(strlen(err->text) > len ? err->text + len : err->text,
                  report);
    report_end(report, NULL);
    return DT_SUCCESS;
}

/* Every checkpoint in the directory fd, path, the newest first. */
static dt_result_t verify_directory(struct report *report, int fd,
                                    const char *path,
                                    const struct dt_store_entry *entry,
                                    size_t count, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    size_t found = 0;
    for (size_t i = 0; i < count && rc == DT_SUCCESS; i++) {
        struct checkpoint c;
        char *name;
        if (entry[i].hidden || !entry[i].complete)
            continue;
        found++;
        if (asprintf(&name, "%s/%s", path, entry[i].name) < 0)
            return dt_no_memory(err);
        rc = checkpoint_open_at(&c, fd, path, entry[i].name, err);
        rc = rc == DT_SUCCESS ? verify_opened(report, &c, err)
                              : cannot_open(report, name, rc, err);
        free(name);
    }
    if (rc == DT_SUCCESS && found == 0)
        rc = dt_error_set(err, DT_ERR_NOT_FOUND, "%s: no complete checkpoint",
                          path);
    return rc;
}

static dt_result_t verify_path(struct report *report, const char *path,
                               struct dt_error *err)
{
    struct checkpoint c;
    struct dt_store_entry *entry = NULL;
    size_t count = 0;
    int fd = dt_store_open(path);
    dt_result_t rc =
        fd < 0 ? DT_SUCCESS : dt_store_list(fd, &entry, &count, err);
    if (rc == DT_SUCCESS && count > 0) {
        rc = verify_directory(report, fd, path, entry, count, err);
    } else if (rc == DT_SUCCESS) {
        rc = checkpoint_open(&c, path, err);
        rc = rc == DT_SUCCESS ? verify_opened(report, &c, err)
                              : cannot_open(report, path, rc, err);
    }
    free(entry);
    if (fd >= 0)
        close(fd);
    return rc;
}

dt_result_t command_verify(const struct options *options, int *status,
                           struct dt_error *err)
{
    struct report report = {0};
    dt_result_t rc = DT_SUCCESS;
    if (options->json) {
        report.all = json_array();
        report.damages = json_array();
        if (!report.all || !report.damages)
            rc = dt_no_memory(err);
    }
    for (int i = 0; i < options->nargs && rc == DT_SUCCESS; i++)
        rc = verify_path(&report, options->arg[i], err);
    json_decref(report.damages);
    if (rc == DT_SUCCESS && report.failed)
        rc = dt_no_memory(err);
    if (rc == DT_SUCCESS && options->json)
        rc = print_json(json_incref(report.all), err);
    json_decref(report.all);
    if (report.damaged)
        *status = 1;
    return rc;
}
