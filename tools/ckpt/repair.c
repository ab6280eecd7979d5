/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* repair.c - dt-ckpt repair: bring back the files of lost nodes, from the
 * directories of the others. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/team.h"
#include "ckpt/verify.h"
#include "homes.h"
#include "interrupt.h"
#include "options.h"
#include "outfile.h"
#include "progress.h"
#include "words.h"

#define BLOCK ((size_t)1 << 20)

/* One checkpoint. */
struct repair {
    struct homes *homes;
    struct dt_redundancy scheme;
    struct dt_source source; /* holder: a home that has the file, or -1 */
    size_t lost, lost_bytes;
    struct dt_parity_file {
        bool looked;
        int home, fd; /* -1: nobody has it */
    } * parity;       /* [num_nodes] */
    unsigned char *memory;
};

/* ---- what is there ---- */

/* Is it there, and every byte as it was? */
static bool has_file(const struct repair *r, const struct home *home, int f)
{
    const struct dt_manifest *m = &r->source.manifest;
    struct dt_error why;
    size_t size;
    int fd = home->fd < 0 ? -1 : dt_file_open(home->fd, m->file[f].name, &size);
    if (fd < 0)
        return false;
    bool good =
        size == m->file[f].size && dt_verify_file(m, f, fd, &why) == DT_SUCCESS;
    close(fd);
    return good;
}

static dt_result_t find_files(struct repair *r, struct dt_error *err)
{
    const struct dt_manifest *m = &r->source.manifest;
    r->source.holder = calloc(m->nfiles + 1, sizeof(*r->source.holder));
    r->parity = calloc((size_t)m->num_nodes + 1, sizeof(*r->parity));
    dt_result_t rc =
        r->source.holder && r->parity ? DT_SUCCESS : no_memory(err);
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++) {
        r->source.holder[f] = -1;
        for (int h = 0; h < r->homes->n && r->source.holder[f] < 0; h++)
            if (has_file(r, &r->homes->home[h], (int)f))
                r->source.holder[f] = h;
        if (r->source.holder[f] < 0) {
            r->lost++;
            r->lost_bytes += m->file[f].size;
        }
        progress_add(m->file[f].size);
        rc = interrupt_check(err);
    }
    return rc;
}

/* Who has the parity of the team's nodes? Each is read once. */
static void find_parity(struct repair *r, struct dt_team *team)
{
    for (int i = 0; i < team->group.size; i++) {
        struct dt_parity want = team->parity;
        want.node = team->group.first + i;
        struct dt_parity_file *file = &r->parity[want.node];
        if (!file->looked)
            *file = (struct dt_parity_file){true, -1, -1};
        for (int h = 0; h < r->homes->n && file->fd < 0; h++)
            if (r->homes->home[h].fd >= 0) {
                file->home = h;
                file->fd = dt_parity_open(r->homes->home[h].fd, &want, true);
            }
        team->keeper[i] = file->fd < 0 ? -1 : file->home;
    }
}

/* ---- bringing back ---- */

static dt_result_t read_piece(const struct repair *r,
                              const struct dt_cut_piece *piece,
                              unsigned char *to, size_t len,
                              struct dt_error *err)
{
    const struct home *home = &r->homes->home[piece->holder];
    const char *name = "parity";
    size_t size;
    int fd = -1;
    if (piece->file < 0) {
        fd = r->parity[piece->node].fd;
    } else {
        name = r->source.manifest.file[piece->file].name;
        fd = dt_file_open(home->fd, name, &size);
    }
    dt_result_t rc = DT_SUCCESS;
    if (fd < 0 ||
        dt_file_read(fd, to, len, (off_t)piece->offset) != (ssize_t)len)
        rc = dt_error_set(err, DT_ERR_IO, "%s/%s: cannot be read any more",
                          home->place.path, name);
    if (piece->file >= 0 && fd >= 0)
        close(fd);
    return rc;
}

/* The bytes of one cut, at r->memory; behind them there is room for a piece. */
static dt_result_t make_cut(const struct repair *r, const struct dt_team *team,
                            const struct dt_cut *cut, struct dt_error *err)
{
    unsigned char row[255], *piece = r->memory + BLOCK;
    dt_result_t rc = interrupt_check(err);
    if (rc == DT_SUCCESS)
        rc = dt_team_row(team, cut, row, err);
    memset(r->memory, 0, cut->len);
    for (int i = 0; i < team->group.k && rc == DT_SUCCESS; i++) {
        if (cut->use[i].holder < 0)
            continue;
        rc = read_piece(r, &cut->use[i], piece, cut->len, err);
        if (rc == DT_SUCCESS)
            dt_redundancy_add(r->memory, row[i], piece, cut->len);
    }
    return rc;
}

static dt_result_t too_much(const struct repair *r, int f, struct dt_error *err)
{
    const struct dt_manifest *m = &r->source.manifest;
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "step %" PRId64 ": %s of node %d and too much else is "
                        "lost: %s cannot bring it back from these directories",
                        m->step, m->file[f].name, m->file[f].node,
                        r->scheme.text);
}

/* The file's bytes into fd. */
static dt_result_t make_file(const struct repair *r, const struct dt_team *team,
                             int f, int fd, struct dt_error *err)
{
    const struct dt_manifest_file *file = &r->source.manifest.file[f];
    int member = file->node - team->group.first;
    const struct dt_span *span = &team->span[member];
    size_t at = 0;
    while (at < span->count && span->part[at].file != f)
        at++;
    size_t from = span->part[at].start, end = from + file->size;
    dt_result_t rc = DT_SUCCESS;
    while (from < end && rc == DT_SUCCESS) {
        struct dt_cut cut;
        if (!dt_team_cut(team, member, from, end, BLOCK, &cut))
            return too_much(r, f, err);
        rc = make_cut(r, team, &cut, err);
        if (rc == DT_SUCCESS && dt_file_write(fd, r->memory, cut.len))
            rc = failed(err, file->name);
        from += cut.len;
        progress_add(cut.len);
    }
    return rc;
}

static dt_result_t bring_back(const struct repair *r,
                              const struct dt_team *team, int f,
                              struct dt_error *err)
{
    const struct dt_manifest *m = &r->source.manifest;
    struct outfile out;
    struct home *home;
    dt_result_t rc = homes_for_node(r->homes, m, m->file[f].node, &home, err);
    if (rc == DT_SUCCESS)
        rc = outfile_open(&out, home->fd, m->file[f].name, true, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = make_file(r, team, f, out.fd, err);
    if (rc == DT_SUCCESS) {
        rc = dt_verify_file(m, f, out.fd, err);
        if (rc != DT_SUCCESS)
            inside(err, m->file[f].name, rc);
    }
    rc = outfile_close(&out, rc, err);
    if (rc == DT_SUCCESS) {
        progress_clear();
        printf("%s/step-%012" PRId64 "/%s: brought back, of node %d\n",
               home->place.path, m->step, m->file[f].name, m->file[f].node);
    }
    return rc;
}

static dt_result_t bring_back_all(struct repair *r, struct dt_error *err)
{
    const struct dt_manifest *m = &r->source.manifest;
    dt_result_t rc =
        dt_redundancy_parse(m->redundancy, "its redundancy", &r->scheme, err);
    if (rc == DT_SUCCESS && r->scheme.m == 0)
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          "step %" PRId64 " was saved without redundancy, and "
                          "%zu of its files are lost or damaged",
                          m->step, r->lost);
    r->memory = rc == DT_SUCCESS ? malloc(2 * BLOCK) : NULL;
    if (rc == DT_SUCCESS && !r->memory)
        rc = no_memory(err);
    progress_start("bring back", r->lost_bytes);
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++) {
        struct dt_team team;
        if (r->source.holder[f] >= 0)
            continue;
        rc = dt_team_init(&team, &r->source, &r->scheme, m->file[f].node, err);
        if (rc != DT_SUCCESS)
            break;
        find_parity(r, &team);
        rc = bring_back(r, &team, (int)f, err);
        dt_team_clear(&team);
    }
    progress_end();
    return rc;
}

static void clear(struct repair *r)
{
    for (int n = 0; n < r->source.manifest.num_nodes && r->parity; n++)
        if (r->parity[n].looked && r->parity[n].fd >= 0)
            close(r->parity[n].fd);
    free(r->parity);
    free(r->source.holder);
    free(r->memory);
}

static dt_result_t repair_step(struct homes *homes, int64_t step,
                               struct dt_error *err)
{
    struct checkpoint c;
    char what[DT_STORE_NAME + 8];
    dt_result_t rc = homes_enter(homes, step, &c, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct repair r = {.homes = homes,
                       .source = {.fd = -1, .manifest = c.manifest}};
    snprintf(what, sizeof(what), "verify %s", c.name);
    progress_start(what, c.bytes);
    rc = find_files(&r, err);
    progress_end();
    if (rc == DT_SUCCESS && r.lost == 0)
        printf("step %" PRId64 ": nothing is lost\n", step);
    else if (rc == DT_SUCCESS)
        rc = bring_back_all(&r, err);
    rc = homes_leave(homes, &c, rc, err);
    clear(&r);
    checkpoint_close(&c);
    return rc;
}

dt_result_t command_repair(const struct options *options, int *status,
                           struct dt_error *err)
{
    struct homes homes;
    dt_result_t rc = homes_open(&homes, options->arg, options->nargs, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < homes.nsteps && rc == DT_SUCCESS; i++) {
        rc = repair_step(&homes, homes.step[i], err);
        if (rc == DT_ERR_CORRUPT || rc == DT_ERR_VERSION) { /* the next may */
            note("%s", err->text);
            *status = 1;
            rc = DT_SUCCESS;
        }
    }
    homes_close(&homes);
    return rc;
}
