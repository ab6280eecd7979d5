/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* restore_parity.c - after a load: parity that was lost with a node. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "ckpt/nodes.h"
#include "ckpt/redundancy/protect.h"
#include "ckpt/redundancy/redundancy.h"

#define NOWHERE (-1)
#define UNKNOWN (-2)

struct restoring {
    const struct dt_ckpt *ckpt;
    const struct dt_source *source;
    struct dt_erasure scheme;
    int *place;  /* [nodes of the save] the node that has all its files */
    int *stands; /* [ranks] the node of the save whose files its node has */
    int mine;    /* that of this rank's node, or NOWHERE */
    struct dt_erasure_layout layout; /* its redundancy set, of which ... */
    bool possible;                   /* ... all nodes have a place */
    struct dt_protect_part part;
    struct dt_vote vote; /* code and err: the first error of this rank */
};

/* ---- who is who: the same on all ranks, without communication ---- */

/* Has a node of this job the files of node n of the save for itself? */
static bool is_placed(const struct restoring *p, int n)
{
    int place = p->place[n];
    int rank = place < 0 ? -1 : dt_nodes_rank_at(p->ckpt, place, 0);
    return rank >= 0 && p->stands[rank] == n;
}

static bool is_taken(const struct restoring *p, int node)
{
    bool taken = false;
    for (int n = 0; n < p->source->manifest.num_nodes && !taken; n++)
        taken = p->place[n] == node;
    return taken;
}

static void find_places(struct restoring *p)
{
    const struct dt_manifest *m = &p->source->manifest;
    for (int n = 0; n < m->num_nodes; n++)
        p->place[n] = UNKNOWN;
    for (size_t f = 0; f < m->nfiles; f++) {
        int *place = &p->place[m->file[f].node];
        int node = p->ckpt->node_of[p->source->holder[f]];
        *place = *place == UNKNOWN || *place == node ? node : NOWHERE;
    }
    for (int n = 0; n < m->num_nodes; n++) /* those that had no files */
        if (p->place[n] == UNKNOWN && n < p->ckpt->num_nodes && !is_taken(p, n))
            p->place[n] = n;
    for (int r = 0; r < p->ckpt->size; r++) {
        p->stands[r] = NOWHERE;
        for (int n = m->num_nodes - 1; n >= 0; n--)
            if (p->place[n] == p->ckpt->node_of[r])
                p->stands[r] = n;
    }
    p->mine = p->stands[p->ckpt->rank];
}

static void find_set(struct restoring *p)
{
    if (p->mine == NOWHERE ||
        dt_erasure_layout(&p->scheme, p->source->manifest.num_nodes, p->mine,
                          &p->layout, NULL) != DT_SUCCESS)
        return;
    p->possible = true;
    for (int i = 0; i < p->layout.size; i++)
        p->possible = p->possible && is_placed(p, p->layout.first + i);
}

/* ---- what is lost ---- */

/* The rank that speaks for its node looks for its parity. A file that is there
 * but not good is removed: another one gets its name. */
static void look(struct restoring *p)
{
    struct dt_redundancy_set set;
    char name[DT_PARITY_NAME];
    struct dt_directory_lock *lock = p->ckpt->tier[DT_TIER_DIR].lock;
    if (lock && !dt_directory_lock_held(lock)) {
        p->vote.code = dt_error_set(&p->vote.err, DT_ERR_BUSY,
                                    "another job has taken the directory");
        return;
    }
    p->vote.code =
        dt_redundancy_set_init(&set, &p->source->manifest, p->source->holder,
                               &p->scheme, p->mine, &p->vote.err);
    if (p->vote.code != DT_SUCCESS)
        return;
    set.parity.node = p->mine;
    int fd = dt_parity_open(p->source->fd, &set.parity, false);
    p->vote.lost = fd < 0;
    if (fd >= 0)
        close(fd);
    dt_parity_name(name, p->source->manifest.num_nodes, p->mine);
    if (p->vote.lost && p->possible)
        unlinkat(p->source->fd, name, 0);
    dt_redundancy_set_clear(&set);
}

static bool is_in_set(const struct restoring *p, int n)
{
    return p->possible && n >= p->layout.first &&
           n < p->layout.first + p->layout.size;
}

/* Is there anything to do? Sets part.idle and part.lost. */
static bool count_lost(struct restoring *p)
{
    const struct dt_ckpt *ckpt = p->ckpt;
    bool any = false;
    p->part = (struct dt_protect_part){.idle = true};
    for (int r = 0; r < ckpt->size; r++) {
        if (!ckpt->votes[r].lost)
            continue;
        any = true;
        p->part.idle = p->part.idle && !is_in_set(p, p->stands[r]);
        p->part.lost = p->part.lost || ckpt->node_of[r] == ckpt->node;
    }
    for (int n = 0; n < p->source->manifest.num_nodes; n++)
        any = any || !is_placed(p, n);
    return any;
}

/* ---- all together ---- */

/* What parity is computed from must be right. Each rank of a node reads some of
 * the files. */
static void verify(struct restoring *p)
{
    const struct dt_manifest *m = &p->source->manifest;
    size_t ranks = (size_t)dt_nodes_ranks(p->ckpt, p->ckpt->node);
    size_t rail = (size_t)dt_nodes_rail(p->ckpt);
    for (size_t f = 0; f < m->nfiles; f++) {
        struct dt_error why = {0};
        int fd;
        if (m->file[f].node != p->mine)
            continue;
        if (p->part.files++ % ranks != rail || p->vote.code != DT_SUCCESS)
            continue;
        dt_result_t rc =
            dt_manifest_open_file(m, (int)f, p->source->fd, &fd, &p->vote.err);
        if (rc == DT_SUCCESS) {
            rc = dt_verify_file(m, (int)f, fd, &why);
            close(fd);
            if (rc != DT_SUCCESS)
                dt_error_set(&p->vote.err, rc, "%s: %s", m->file[f].name,
                             why.text);
        }
        p->vote.code = rc;
    }
}

static dt_result_t write_lost(struct restoring *p, struct dt_error *err)
{
    const struct dt_manifest *m = &p->source->manifest;
    struct dt_ckpt saved = *p->ckpt;
    saved.redundancy = p->scheme;
    saved.num_nodes = m->num_nodes;
    saved.tag = m->tag;
    saved.node = p->mine;
    saved.node_of = p->stands;
    if (!p->part.idle)
        verify(p);
    p->vote.code = dt_protect_lost(&saved, p->source->fd, &p->part,
                                   p->vote.code, &p->vote.err);
    return dt_vote_agree(p->ckpt->comm, &p->vote, p->ckpt->votes, p->ckpt->size,
                         err);
}

static dt_result_t restore(struct restoring *p, struct dt_error *err)
{
    const struct dt_manifest *m = &p->source->manifest;
    p->place = calloc((size_t)m->num_nodes, sizeof(*p->place));
    p->stands = calloc((size_t)p->ckpt->size, sizeof(*p->stands));
    if (!p->place || !p->stands) {
        p->vote.code = dt_no_memory(&p->vote.err);
    } else {
        find_places(p);
        find_set(p);
        if (p->mine != NOWHERE && dt_nodes_rail(p->ckpt) == 0)
            look(p);
    }
    dt_result_t rc = dt_vote_agree(p->ckpt->comm, &p->vote, p->ckpt->votes,
                                   p->ckpt->size, err);
    if (rc != DT_SUCCESS || !count_lost(p))
        return rc;
    rc = write_lost(p, err);
    for (int n = 0; n < m->num_nodes && rc == DT_SUCCESS; n++)
        if (!is_placed(p, n))
            rc =
                dt_error_set(err, DT_ERR_UNSUPPORTED,
                             "no node has the files of node %d of the save for "
                             "itself",
                             n);
    return rc;
}

dt_result_t dt_restore_parity(const struct dt_ckpt *ckpt,
                              const struct dt_source *source,
                              struct dt_error *err)
{
    struct restoring p = {.ckpt = ckpt, .source = source};
    if (source->shared ||
        dt_erasure_parse(source->manifest.redundancy, "\"redundancy\"",
                         &p.scheme, NULL) != DT_SUCCESS ||
        p.scheme.m == 0)
        return DT_SUCCESS; /* on all ranks */
    dt_result_t rc = restore(&p, err);
    free(p.place);
    free(p.stands);
    return rc;
}
