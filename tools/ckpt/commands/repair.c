/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* repair.c - dt-ckpt repair: rebuild the files of lost nodes from the
 * directories of the others. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "files/node_directories.h"
#include "files/outfile.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

#define BLOCK ((size_t)1 << 20)

/* One checkpoint. */
struct repair {
    struct node_directories *dirs;
    struct dt_erasure scheme;
    const struct dt_manifest *manifest;
    int *holder; /* [nfiles] the directory that has the file, or -1: lost */
    size_t lost, lost_bytes;
    size_t nparity; /* of nodes that were looked for */
    struct parity_file {
        int node, dir, fd; /* -1: it is lost */
    } * parity;
    unsigned char *memory;
};

/* ---- what is lost ---- */

/* Is the file in that directory, with the checksums of the manifest? */
static bool has_file(const struct repair *r, const struct node_directory *dir,
                     int f)
{
    const struct dt_manifest *m = r->manifest;
    int fd;
    if (dir->fd < 0 ||
        dt_manifest_open_file(m, f, dir->fd, &fd, NULL) != DT_SUCCESS)
        return false;
    bool good = dt_verify_file(m, f, fd, NULL) == DT_SUCCESS;
    close(fd);
    return good;
}

static dt_result_t find_files(struct repair *r, struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    r->holder = calloc(m->nfiles + 1, sizeof(*r->holder));
    dt_result_t rc = r->holder ? DT_SUCCESS : dt_no_memory(err);
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++) {
        r->holder[f] = -1;
        for (int h = 0; h < r->dirs->n && r->holder[f] < 0; h++)
            if (has_file(r, &r->dirs->dir[h], (int)f))
                r->holder[f] = h;
        if (r->holder[f] < 0) {
            r->lost++;
            r->lost_bytes += m->file[f].size;
        }
        bar_add(m->file[f].size);
        rc = interrupt_check(err);
    }
    return rc;
}

/* That of a node; NULL: it was not looked for. */
static struct parity_file *parity_of(const struct repair *r, int node)
{
    for (size_t i = 0; i < r->nparity; i++)
        if (r->parity[i].node == node)
            return &r->parity[i];
    return NULL;
}

static struct parity_file *add_parity(struct repair *r, int node)
{
    struct parity_file *more =
        realloc(r->parity, (r->nparity + 1) * sizeof(*more));
    if (!more)
        return NULL;
    r->parity = more;
    more[r->nparity] = (struct parity_file){node, -1, -1};
    return &more[r->nparity++];
}

/* Find the parity files of the set's nodes. Each is read once. */
static dt_result_t find_parity(struct repair *r, struct dt_redundancy_set *set,
                               struct dt_error *err)
{
    for (int i = 0; i < set->layout.size; i++) {
        struct dt_parity want = set->parity;
        want.node = set->layout.first + i;
        struct parity_file *file = parity_of(r, want.node);
        if (!file && !(file = add_parity(r, want.node)))
            return dt_no_memory(err);
        for (int h = 0; h < r->dirs->n && file->fd < 0; h++)
            if (r->dirs->dir[h].fd >= 0) {
                file->dir = h;
                file->fd = dt_parity_open(r->dirs->dir[h].fd, &want, true);
            }
        set->parity_holder[i] = file->fd < 0 ? -1 : file->dir;
    }
    return DT_SUCCESS;
}

/* ---- rebuilding ---- */

static dt_result_t read_block(const struct repair *r,
                              const struct dt_cut_block *block,
                              unsigned char *to, size_t len,
                              struct dt_error *err)
{
    const struct node_directory *dir = &r->dirs->dir[block->holder];
    const char *name = "parity";
    size_t size;
    int fd = -1;
    if (block->file < 0) {
        fd = parity_of(r, block->node)->fd; /* it was found */
    } else {
        name = r->manifest->file[block->file].name;
        fd = dt_file_open(dir->fd, name, &size);
    }
    dt_result_t rc = DT_SUCCESS;
    if (fd < 0 ||
        dt_file_read(fd, to, len, (off_t)block->offset) != (ssize_t)len)
        rc = dt_error_set(err, DT_ERR_IO, "%s/%s: cannot be read any more",
                          dir->place.path, name);
    if (block->file >= 0 && fd >= 0)
        close(fd);
    return rc;
}

/* Compute the bytes of one cut at r->memory, which has room for one block more.
 */
static dt_result_t make_cut(const struct repair *r,
                            const struct dt_redundancy_set *set,
                            const struct dt_cut *cut, struct dt_error *err)
{
    unsigned char row[255], *piece = r->memory + BLOCK;
    dt_result_t rc = interrupt_check(err);
    if (rc == DT_SUCCESS)
        rc = dt_redundancy_set_row(set, cut, row, err);
    memset(r->memory, 0, cut->len);
    for (int i = 0; i < set->layout.k && rc == DT_SUCCESS; i++) {
        if (cut->use[i].holder < 0)
            continue;
        rc = read_block(r, &cut->use[i], piece, cut->len, err);
        if (rc == DT_SUCCESS)
            dt_erasure_add(r->memory, row[i], piece, cut->len);
    }
    return rc;
}

static dt_result_t too_much(const struct repair *r, int f, struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "step %" PRId64 ": %s of node %d and too much else is "
                        "lost: %s cannot rebuild it from these directories",
                        m->step, m->file[f].name, m->file[f].node,
                        r->scheme.text);
}

/* Write the file's bytes to fd. */
static dt_result_t make_file(const struct repair *r,
                             const struct dt_redundancy_set *set, int f, int fd,
                             struct dt_error *err)
{
    const struct dt_manifest_file *file = &r->manifest->file[f];
    int member = file->node - set->layout.first;
    const struct dt_span *span = &set->span[member];
    size_t at = 0;
    while (at < span->count && span->part[at].file != f)
        at++;
    size_t from = span->part[at].start, end = from + file->size;
    dt_result_t rc = DT_SUCCESS;
    while (from < end && rc == DT_SUCCESS) {
        struct dt_cut cut;
        if (!dt_redundancy_set_cut(set, member, from, end, BLOCK, &cut))
            return too_much(r, f, err);
        rc = make_cut(r, set, &cut, err);
        if (rc == DT_SUCCESS && dt_file_write(fd, r->memory, cut.len))
            rc = dt_failed(err, file->name);
        from += cut.len;
        bar_add(cut.len);
    }
    return rc;
}

static dt_result_t rebuild(const struct repair *r,
                           const struct dt_redundancy_set *set, int f,
                           struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    struct outfile out;
    struct node_directory *dir;
    dt_result_t rc =
        node_directories_for(r->dirs, m, m->file[f].node, &dir, err);
    if (rc == DT_SUCCESS)
        rc = outfile_open(&out, dir->fd, m->file[f].name, true, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = make_file(r, set, f, out.fd, err);
    if (rc == DT_SUCCESS) {
        rc = dt_verify_file(m, f, out.fd, err);
        if (rc != DT_SUCCESS)
            dt_failed_in(err, m->file[f].name, rc);
    }
    rc = outfile_close(&out, rc, err);
    if (rc == DT_SUCCESS)
        print_line(stdout, "%s/step-%012" PRId64 "/%s: rebuilt, of node %d",
                   dir->place.path, m->step, m->file[f].name, m->file[f].node);
    return rc;
}

static dt_result_t rebuild_all(struct repair *r, struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    dt_result_t rc =
        dt_erasure_parse(m->redundancy, "its redundancy", &r->scheme, err);
    if (rc == DT_SUCCESS && r->scheme.m == 0)
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          "step %" PRId64 " was saved without redundancy, and "
                          "%zu of its files are lost or damaged",
                          m->step, r->lost);
    r->memory = rc == DT_SUCCESS ? malloc(2 * BLOCK) : NULL;
    if (rc == DT_SUCCESS && !r->memory)
        rc = dt_no_memory(err);
    bar_start("rebuild", r->lost_bytes);
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++) {
        struct dt_redundancy_set set;
        if (r->holder[f] >= 0)
            continue;
        rc = dt_redundancy_set_init(&set, m, r->holder, &r->scheme,
                                    m->file[f].node, err);
        if (rc != DT_SUCCESS)
            break;
        rc = find_parity(r, &set, err);
        if (rc == DT_SUCCESS)
            rc = rebuild(r, &set, (int)f, err);
        dt_redundancy_set_clear(&set);
    }
    progress_end();
    return rc;
}

static void clear(struct repair *r)
{
    for (size_t i = 0; i < r->nparity; i++)
        if (r->parity[i].fd >= 0)
            close(r->parity[i].fd);
    free(r->parity);
    free(r->holder);
    free(r->memory);
}

static dt_result_t repair_step(struct node_directories *dirs, int64_t step,
                               struct dt_error *err)
{
    struct checkpoint c;
    char what[DT_STORE_NAME + 8];
    dt_result_t rc = node_directories_enter(dirs, step, &c, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct repair r = {.dirs = dirs, .manifest = &c.manifest};
    snprintf(what, sizeof(what), "verify %s", c.name);
    bar_start(what, c.bytes);
    rc = find_files(&r, err);
    progress_end();
    if (rc == DT_SUCCESS && r.lost == 0)
        print_line(stdout, "step %" PRId64 ": nothing is lost", step);
    else if (rc == DT_SUCCESS)
        rc = rebuild_all(&r, err);
    rc = node_directories_leave(dirs, &c, rc, err);
    clear(&r);
    checkpoint_close(&c);
    return rc;
}

dt_result_t command_repair(const struct options *options, int *status,
                           struct dt_error *err)
{
    struct node_directories dirs;
    dt_result_t rc =
        node_directories_open(&dirs, options->arg, options->nargs, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < dirs.nsteps && rc == DT_SUCCESS; i++) {
        rc = repair_step(&dirs, dirs.step[i], err);
        if (rc == DT_ERR_CORRUPT ||
            rc == DT_ERR_VERSION) { /* the next step may be intact */
            note(stderr, "%s", err->text);
            *status = 1;
            rc = DT_SUCCESS;
        }
    }
    node_directories_close(&dirs);
    return rc;
}
