/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* repair.c - dt-ckpt repair: rebuild the files of lost nodes from the
 * directories of the others, first the ranks', then the parity. Nothing is
 * written unless all can be rebuilt. */
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
    size_t lost, lost_parity, lost_bytes;
    size_t missing; /* files that cannot be rebuilt */
    size_t nparity; /* of nodes that were looked for */
    struct parity_file {
        int node, dir, fd; /* -1: it is lost */
    } * parity;
    unsigned char *memory; /* a cut, a block of it, and a chunk of parity */
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

/* Where the file begins in the span of its member. */
static size_t file_start(const struct dt_redundancy_set *set, int member, int f)
{
    const struct dt_span *span = &set->span[member];
    size_t at = 0;
    while (at < span->count && span->part[at].file != f)
        at++;
    return span->part[at].start;
}

/* Is enough there for all of the file? */
static bool can_make(const struct repair *r,
                     const struct dt_redundancy_set *set, int f)
{
    const struct dt_manifest_file *file = &r->manifest->file[f];
    int member = file->node - set->layout.first;
    size_t from = file_start(set, member, f), end = from + file->size;
    struct dt_cut cut;
    for (; from < end; from += cut.len)
        if (!dt_redundancy_set_cut(set, member, from, end, SIZE_MAX, &cut))
            return false;
    return true;
}

/* Write the file's bytes to fd. */
static dt_result_t make_file(const struct repair *r,
                             const struct dt_redundancy_set *set, int f, int fd,
                             struct dt_error *err)
{
    const struct dt_manifest_file *file = &r->manifest->file[f];
    int member = file->node - set->layout.first;
    size_t from = file_start(set, member, f), end = from + file->size;
    dt_result_t rc = DT_SUCCESS;
    while (from < end && rc == DT_SUCCESS) {
        struct dt_cut cut;
        dt_redundancy_set_cut(set, member, from, end, BLOCK, &cut);
        rc = make_cut(r, set, &cut, err);
        if (rc == DT_SUCCESS && dt_file_write(fd, r->memory, cut.len))
            rc = dt_failed(err, file->name);
        from += cut.len;
        bar_add(cut.len);
    }
    return rc;
}

static dt_result_t rebuild_file(const struct repair *r,
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
    if (rc != DT_SUCCESS)
        return rc;
    r->holder[f] = (int)(dir - r->dirs->dir);
    print_line(stdout, "%s/step-%012" PRId64 "/%s: rebuilt, of node %d",
               dir->place.path, m->step, m->file[f].name, m->file[f].node);
    return rc;
}

/* ---- parity ---- */

/* Compute a chunk of a parity block, from byte `from` of it on, behind the cut.
 */
static dt_result_t make_chunk(const struct repair *r,
                              const struct dt_redundancy_set *set, int member,
                              int parity, size_t from, size_t len,
                              struct dt_error *err)
{
    unsigned char *chunk = r->memory + 2 * BLOCK;
    dt_result_t rc = DT_SUCCESS;
    for (size_t done = 0; done < len && rc == DT_SUCCESS;) {
        struct dt_cut cut;
        dt_redundancy_set_parity_cut(set, member, parity, from + done,
                                     len - done, &cut);
        rc = make_cut(r, set, &cut, err);
        memcpy(chunk + done, r->memory, cut.len);
        done += cut.len;
    }
    return rc;
}

static dt_result_t make_parity(const struct repair *r,
                               const struct dt_redundancy_set *set,
                               const struct dt_parity *want, int fd,
                               struct dt_error *err)
{
    int member = want->node - set->layout.first;
    size_t n = 0, chunks = dt_parity_chunks(want);
    unsigned char *chunk = r->memory + 2 * BLOCK;
    uint64_t *sum = calloc((size_t)want->layout.m * chunks, sizeof(*sum));
    dt_result_t rc = sum ? DT_SUCCESS : dt_no_memory(err);
    for (int p = 0; p < want->layout.m; p++)
        for (size_t at = 0; at < want->length && rc == DT_SUCCESS;
             at += want->chunk) {
            size_t left = want->length - at;
            size_t len = left < want->chunk ? left : want->chunk;
            rc = make_chunk(r, set, member, p, at, len, err);
            if (rc == DT_SUCCESS)
                rc = dt_parity_write(fd, want, p, at, chunk, len, err);
            if (rc == DT_SUCCESS)
                sum[n++] = dt_checksum(chunk, len);
            bar_add(len);
        }
    if (rc == DT_SUCCESS)
        rc = dt_parity_finish(fd, want, sum, err);
    free(sum);
    return rc;
}

static dt_result_t rebuild_parity(const struct repair *r,
                                  const struct dt_redundancy_set *set, int node,
                                  struct dt_error *err)
{
    struct dt_parity want = set->parity;
    struct node_directory *dir;
    struct outfile out;
    char name[DT_PARITY_NAME];
    want.node = node;
    dt_parity_name(name, want.num_nodes, node);
    dt_result_t rc =
        node_directories_for(r->dirs, r->manifest, node, &dir, err);
    if (rc == DT_SUCCESS)
        rc = outfile_open(&out, dir->fd, name, true, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = outfile_close(&out, make_parity(r, set, &want, out.fd, err), err);
    if (rc == DT_SUCCESS)
        print_line(stdout, "%s/step-%012" PRId64 "/%s: rebuilt, of node %d",
                   dir->place.path, r->manifest->step, name, node);
    return rc;
}

/* ---- a redundancy set, and all of them ---- */

static bool is_in(const struct dt_redundancy_set *set, int node)
{
    return node >= set->layout.first &&
           node < set->layout.first + set->layout.size;
}

/* Count what cannot be rebuilt, a line each. */
static size_t name_missing(const struct repair *r,
                           const struct dt_redundancy_set *set)
{
    const struct dt_manifest *m = r->manifest;
    size_t missing = 0;
    for (size_t f = 0; f < m->nfiles; f++) {
        if (r->holder[f] >= 0 || !is_in(set, m->file[f].node) ||
            can_make(r, set, (int)f))
            continue;
        note(stderr,
             "step %" PRId64 ": %s of node %d is still missing, and too much "
             "else is lost: %s cannot rebuild it from these directories",
             m->step, m->file[f].name, m->file[f].node, r->scheme.text);
        missing++;
    }
    return missing;
}

static dt_result_t rebuild_set(struct repair *r, struct dt_redundancy_set *set,
                               struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    dt_result_t rc = DT_SUCCESS;
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++)
        if (r->holder[f] < 0 && is_in(set, m->file[f].node))
            rc = rebuild_file(r, set, (int)f, err);
    for (int i = 0; i < set->layout.size && rc == DT_SUCCESS; i++)
        if (set->parity_holder[i] < 0)
            rc = rebuild_parity(r, set, set->layout.first + i, err);
    return rc;
}

static dt_result_t visit(struct repair *r, int node, bool *done,
                         dt_result_t (*act)(struct repair *r,
                                            struct dt_redundancy_set *set,
                                            struct dt_error *err),
                         struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    struct dt_redundancy_set set;
    dt_result_t rc =
        dt_redundancy_set_init(&set, m, r->holder, &r->scheme, node, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t f = 0; f < m->nfiles; f++)
        done[f] = done[f] || is_in(&set, m->file[f].node);
    rc = find_parity(r, &set, err);
    if (rc == DT_SUCCESS)
        rc = act(r, &set, err);
    dt_redundancy_set_clear(&set);
    return rc;
}

/* Do it for each set that has files: a manifest may claim any number of nodes.
 */
static dt_result_t each_set(struct repair *r,
                            dt_result_t (*act)(struct repair *r,
                                               struct dt_redundancy_set *set,
                                               struct dt_error *err),
                            struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    bool *done = calloc(m->nfiles + 1, sizeof(*done));
    dt_result_t rc = done ? DT_SUCCESS : dt_no_memory(err);
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++)
        if (!done[f])
            rc = visit(r, m->file[f].node, done, act, err);
    free(done);
    return rc;
}

static dt_result_t count(struct repair *r, struct dt_redundancy_set *set,
                         struct dt_error *err)
{
    (void)err;
    r->missing += name_missing(r, set);
    for (int i = 0; i < set->layout.size; i++)
        if (set->parity_holder[i] < 0) {
            r->lost_parity++;
            r->lost_bytes += (size_t)set->layout.m * set->parity.length;
        }
    return DT_SUCCESS;
}

static dt_result_t rebuild_all(struct repair *r, struct dt_error *err)
{
    const struct dt_manifest *m = r->manifest;
    dt_result_t rc =
        dt_erasure_parse(m->redundancy, "its redundancy", &r->scheme, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (r->scheme.m == 0 && r->lost)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "step %" PRId64 " was saved without redundancy, "
                            "and %zu of its files are lost or damaged",
                            m->step, r->lost);
    if (r->scheme.m > 0)
        rc = each_set(r, count, err);
    if (rc == DT_SUCCESS && r->missing)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "step %" PRId64 ": %zu files are still missing, "
                            "nothing was written",
                            m->step, r->missing);
    if (rc != DT_SUCCESS || (r->lost == 0 && r->lost_parity == 0)) {
        if (rc == DT_SUCCESS)
            print_line(stdout, "step %" PRId64 ": nothing is lost", m->step);
        return rc;
    }
    r->memory = malloc(3 * BLOCK);
    if (!r->memory)
        return dt_no_memory(err);
    bar_start("rebuild", r->lost_bytes);
    rc = each_set(r, rebuild_set, err);
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
    if (rc == DT_SUCCESS)
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
