/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node_local.c - checkpoints of a tier of which each node has its own
 * directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/nodes.h"
#include "ckpt/redundancy/rebuild.h"
#include "ckpt/redundancy/redundancy.h"

#define PIECE ((size_t)8 << 20) /* of a manifest, per broadcast */

/* One result for all ranks of the world. */
static dt_result_t agree(struct dt_ckpt *ckpt, struct dt_vote *mine,
                         struct dt_error *err)
{
    return dt_vote_agree(dt_comm_world(), mine, ckpt->votes, ckpt->size, err);
}

/* ---- which there are ---- */

/* Does errno say that the node has lost its disk? Then it has no checkpoints.
 */
static bool is_lost(int why)
{
    return why == ENOENT || why == ENOTDIR || why == EIO || why == ESTALE;
}

/* The checksum of the manifest in the directory name; 0 if it cannot be read.
 */
static uint64_t identify(int dirfd, const char *name)
{
    char *text = NULL;
    size_t len;
    uint64_t identity = 0;
    int fd = dt_store_open_at(dirfd, name);
    if (fd < 0)
        return 0;
    if (dt_manifest_text(fd, &text, &len, NULL) == DT_SUCCESS)
        identity = dt_checksum(text, len);
    free(text);
    close(fd);
    return identity;
}

static dt_result_t list_here(const struct dt_tier *tier,
                             struct dt_node_local **known, uint64_t *count,
                             struct dt_error *err)
{
    struct dt_store_entry *entry = NULL;
    struct dt_error why = {0};
    size_t n = 0;
    int dirfd = dt_store_open(tier->dir);
    if (dirfd < 0 && is_lost(errno))
        return DT_SUCCESS;
    if (dirfd < 0)
        return dt_error_set(err, dt_file_result(errno), "cannot open %s: %s",
                            tier->dir, strerror(errno));
    dt_result_t rc = dt_store_list(dirfd, &entry, &n, &why);
    if (rc != DT_SUCCESS) {
        close(dirfd);
        return dt_error_set(err, rc, "%s: %s", tier->dir, why.text);
    }
    struct dt_node_local *list = calloc(n + 1, sizeof(*list));
    if (!list)
        rc = dt_no_memory(err);
    for (size_t i = 0; i < n && list; i++) {
        if (!entry[i].complete)
            continue;
        struct dt_node_local *k = &list[(*count)++];
        k->step = entry[i].step;
        k->identity = identify(dirfd, entry[i].name);
        strcpy(k->name, entry[i].name);
    }
    *known = list;
    free(entry);
    close(dirfd);
    return rc;
}

/* A checkpoint that several nodes may have. */
struct found {
    struct dt_node_local known;
    int nodes;
};

/* Within a step, the one on most nodes is most likely to be complete. */
static int best_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->known.step != y->known.step)
        return x->known.step > y->known.step ? -1 : 1;
    if (x->nodes != y->nodes)
        return x->nodes > y->nodes ? -1 : 1;
    if (x->known.identity != y->known.identity)
        return x->known.identity < y->known.identity ? -1 : 1;
    return strcmp(y->known.name, x->known.name); /* "step" before ".step" */
}

/* Reduce all[n] to one entry per checkpoint. Returns how many remain. */
static size_t merge(struct found *all, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        all[i].nodes = 1;
    qsort(all, n, sizeof(*all), best_first);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && all[kept - 1].known.step == all[i].known.step &&
            all[kept - 1].known.identity == all[i].known.identity)
            all[kept - 1].nodes++;
        else
            all[kept++] = all[i];
    }
    qsort(all, kept, sizeof(*all), best_first);
    return kept;
}

/* Allgatherv of the lists, whose lengths the votes have announced. */
static dt_result_t share_lists(struct dt_ckpt *ckpt,
                               const struct dt_node_local *mine,
                               struct dt_node_local *all, size_t *sizes,
                               struct dt_error *err)
{
    size_t *at = sizes + ckpt->size;
    for (int r = 0; r < ckpt->size; r++) {
        sizes[r] = ckpt->votes[r].found * sizeof(*all) / sizeof(int64_t);
        at[r] = r ? at[r - 1] + sizes[r - 1] : 0;
    }
    return dt_vote_outcome(dt_allgatherv(mine, all, sizes, at, DT_DTYPE_I64,
                                         dt_comm_world(), DT_STREAM_NONE),
                           err);
}

dt_result_t dt_node_local_list(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                               struct dt_node_local **known, size_t *count,
                               struct dt_error *err)
{
    struct dt_vote mine = {0};
    struct dt_node_local *here = NULL, *all = NULL;
    struct found *found = NULL;
    size_t total = 0, *sizes = NULL;
    if (dt_nodes_rail(ckpt) == 0)
        mine.code = list_here(tier, &here, &mine.found, &mine.err);
    dt_result_t rc = agree(ckpt, &mine, err);
    if (rc != DT_SUCCESS)
        goto free_lists;
    for (int r = 0; r < ckpt->size; r++)
        total += ckpt->votes[r].found;
    all = calloc(total + 1, sizeof(*all));
    found = calloc(total + 1, sizeof(*found));
    sizes = calloc(2 * (size_t)ckpt->size, sizeof(*sizes));
    if (!all || !found || !sizes)
        mine.code = dt_no_memory(&mine.err);
    rc = agree(ckpt, &mine, err);
    if (rc == DT_SUCCESS)
        rc = share_lists(ckpt, here, all, sizes, err);
    if (rc != DT_SUCCESS)
        goto free_lists;
    for (size_t i = 0; i < total; i++)
        found[i].known = all[i];
    *count = merge(found, total);
    for (size_t i = 0; i < *count; i++)
        all[i] = found[i].known;
    *known = all;
    all = NULL;
free_lists:
    free(sizes);
    free(found);
    free(all);
    free(here);
    return rc;
}

/* ---- opening one ---- */

struct opening {
    struct dt_ckpt *ckpt;
    const struct dt_tier *tier;
    const struct dt_node_local *known;
    struct dt_source source;
    char *text; /* the manifest */
    size_t len;
    int32_t *have,
        *who; /* [nfiles] this rank or -1; a rank that has it or -1 */
    struct dt_vote mine; /* code and err: the first error of this rank */
};

static dt_result_t corrupt(struct opening *o, const char *what,
                           const char *reason)
{
    return dt_error_set(&o->mine.err, DT_ERR_CORRUPT, "%s: %s", what, reason);
}

/* Is the file there with its size and, with check, with its checksums? */
static bool has_file(const struct dt_source *source, int file, bool check)
{
    int fd;
    if (dt_manifest_open_file(&source->manifest, file, source->fd, &fd, NULL) !=
        DT_SUCCESS)
        return false;
    bool good = !check ||
                dt_verify_file(&source->manifest, file, fd, NULL) == DT_SUCCESS;
    close(fd);
    return good;
}
/* Open the directory on this node that has the manifest, and keep its text. */
static void find_manifest(struct opening *o)
{
    struct dt_store_entry *entry = NULL;
    size_t n = 0;
    int dirfd = dt_store_open(o->tier->dir);
    if (dirfd < 0)
        return;
    if (dt_store_list(dirfd, &entry, &n, NULL) != DT_SUCCESS)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!entry[i].complete || entry[i].step != o->known->step)
            continue;
        char *text = NULL;
        int fd = dt_store_open_at(dirfd, entry[i].name);
        if (fd >= 0 &&
            dt_manifest_text(fd, &text, &o->len, NULL) == DT_SUCCESS &&
            dt_checksum(text, o->len) == o->known->identity) {
            o->text = text;
            o->source.fd = fd;
            break;
        }
        free(text);
        if (fd >= 0)
            close(fd);
    }
    free(entry);
    close(dirfd);
}

/* Broadcast the text from the lowest rank that has it. */
static dt_result_t share_manifest(struct opening *o, struct dt_error *err)
{
    o->mine.text_bytes = o->text ? o->len : 0;
    dt_result_t rc = agree(o->ckpt, &o->mine, err);
    if (rc != DT_SUCCESS)
        return rc;
    int root = 0;
    while (root < o->ckpt->size && o->ckpt->votes[root].text_bytes == 0)
        root++;
    if (root == o->ckpt->size)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            DT_MANIFEST_NAME ": is missing or unreadable");
    o->len = o->ckpt->votes[root].text_bytes;
    if (!o->text)
        o->text = malloc(o->len + 1);
    if (!o->text)
        o->mine.code = dt_no_memory(&o->mine.err);
    rc = agree(o->ckpt, &o->mine, err);
    for (size_t at = 0; at < o->len && rc == DT_SUCCESS; at += PIECE)
        rc = dt_vote_outcome(
            dt_bcast(o->text + at, o->len - at < PIECE ? o->len - at : PIECE,
                     DT_DTYPE_U8, root, dt_comm_world(), DT_STREAM_NONE),
            err);
    return rc;
}

/* Is the manifest in fd damaged? */
static bool is_damaged(int fd)
{
    struct dt_manifest manifest = {0};
    uint64_t identity;
    dt_result_t rc = dt_manifest_read(&manifest, fd, &identity, NULL);
    dt_manifest_clear(&manifest);
    return rc == DT_ERR_CORRUPT;
}

/* This node has no manifest, because the job ended before it was written, or a
 * damaged one: find the directory by its name. */
static void find_directory(struct opening *o)
{
    const struct dt_manifest *m = &o->source.manifest;
    char name[DT_STORE_NAME];
    int dirfd = dt_store_open(o->tier->dir);
    if (dirfd < 0)
        return;
    dt_store_partial_name(name, m->step, m->tag);
    int fd = dt_store_open_at(dirfd, name);
    if (fd < 0) {
        dt_store_name(name, m->step);
        fd = dt_store_open_at(dirfd, name);
        if (fd >= 0 && !is_damaged(fd)) {
            close(fd); /* another checkpoint of this step */
            fd = -1;
        }
    }
    o->source.fd = fd;
    close(dirfd);
}

static dt_result_t check_manifest(struct opening *o)
{
    const struct dt_manifest *m = &o->source.manifest;
    if (m->step != o->known->step)
        return corrupt(o, DT_MANIFEST_NAME, "is of another step");
    if (m->version < 2)
        return corrupt(o, DT_MANIFEST_NAME,
                       "knows no nodes: this checkpoint belongs on a file "
                       "system that all nodes share");
    return DT_SUCCESS;
}

static void read_manifest(struct opening *o)
{
    o->source.identity = o->known->identity;
    if (dt_checksum(o->text, o->len) != o->known->identity)
        o->mine.code =
            corrupt(o, DT_MANIFEST_NAME, "changed while it was sent");
    else
        o->mine.code = dt_manifest_parse(&o->source.manifest, o->text, o->len,
                                         &o->mine.err);
    if (o->mine.code == DT_SUCCESS)
        o->mine.code = check_manifest(o);
    if (o->mine.code != DT_SUCCESS)
        return;
    if (o->source.fd < 0)
        find_directory(o);
    size_t n = o->source.manifest.nfiles;
    o->have = calloc(n + 1, sizeof(*o->have));
    o->who = calloc(n + 1, sizeof(*o->who));
    o->source.holder = calloc(n + 1, sizeof(*o->source.holder));
    if (!o->have || !o->who || !o->source.holder)
        o->mine.code = dt_no_memory(&o->mine.err);
}

/* Find the holder of each file. Each rank of a node looks for some of them. */
static dt_result_t find_holders(struct opening *o, bool check,
                                struct dt_error *err)
{
    size_t n = o->source.manifest.nfiles;
    size_t ranks = (size_t)dt_nodes_ranks(o->ckpt, o->ckpt->node);
    size_t rail = (size_t)dt_nodes_rail(o->ckpt);
    for (size_t f = 0; f < n; f++)
        o->have[f] = o->source.fd >= 0 && f % ranks == rail &&
                             has_file(&o->source, (int)f, check)
                         ? o->ckpt->rank
                         : -1;
    dt_result_t rc = DT_SUCCESS;
    if (n > 0)
        rc = dt_vote_outcome(dt_allreduce(o->have, o->who, n, DT_DTYPE_I32,
                                          DT_OP_MAX, dt_comm_world(),
                                          DT_STREAM_NONE),
                             err);
    for (size_t f = 0; f < n; f++)
        o->source.holder[f] = o->who[f];
    return rc;
}

/* ---- rebuilding what is lost ---- */

static bool is_all_there(const struct opening *o)
{
    for (size_t f = 0; f < o->source.manifest.nfiles; f++)
        if (o->source.holder[f] < 0)
            return false;
    return true;
}

/* Create a directory for the files that this node may rebuild, if it has none.
 * In the memory tier there is no parity, so nothing can be rebuilt. */
static void make_directory(struct opening *o)
{
    const struct dt_manifest *m = &o->source.manifest;
    char name[DT_STORE_NAME];
    if (o->source.fd >= 0 || o->tier == &o->ckpt->tier[DT_TIER_MEMORY])
        return;
    int dirfd =
        dt_file_make_dirs(o->tier->dir) ? -1 : dt_store_open(o->tier->dir);
    dt_store_partial_name(name, m->step, m->tag);
    o->source.made = true; /* on all ranks of the node */
    if (dirfd >= 0)
        mkdirat(dirfd, name, 0777);
    o->source.fd = dirfd >= 0 ? dt_store_open_at(dirfd, name) : -1;
    if (o->source.fd < 0)
        o->mine.code = dt_failed(&o->mine.err, o->tier->dir);
    if (dirfd >= 0)
        close(dirfd);
}

/* With the manifest the directory is there for the next load, too, and the next
 * save does not remove it. */
static void finish_directory(struct opening *o, dt_result_t rc)
{
    const struct dt_manifest *m = &o->source.manifest;
    char name[DT_STORE_NAME];
    bool mine = o->source.made && o->ckpt->local_rank == 0;
    int dirfd = mine ? dt_store_open(o->tier->dir) : -1;
    if (dirfd < 0)
        return;
    dt_store_partial_name(name, m->step, m->tag);
    if (unlinkat(dirfd, name, AT_REMOVEDIR) && rc == DT_SUCCESS)
        dt_manifest_put(o->source.fd, o->text, o->len, NULL);
    close(dirfd);
}

static dt_result_t rebuild_lost(struct opening *o, bool check,
                                struct dt_error *err)
{
    bool damaged = false;
    make_directory(o);
    dt_result_t rc = agree(o->ckpt, &o->mine, err);
    if (rc == DT_SUCCESS)
        rc = dt_rebuild(o->ckpt, &o->source, check, &damaged, err);
    if (rc == DT_ERR_CORRUPT && damaged && !check) {
        rc = find_holders(o, true, err);
        if (rc == DT_SUCCESS)
            rc = dt_rebuild(o->ckpt, &o->source, true, &damaged, err);
    }
    finish_directory(o, rc);
    return rc;
}

static dt_result_t open_nodes(struct opening *o, bool check,
                              struct dt_error *err)
{
    find_manifest(o);
    dt_result_t rc = share_manifest(o, err);
    if (rc != DT_SUCCESS)
        return rc;
    read_manifest(o);
    rc = agree(o->ckpt, &o->mine, err);
    if (rc == DT_SUCCESS)
        rc = find_holders(o, check, err);
    if (rc == DT_SUCCESS && !is_all_there(o))
        rc = rebuild_lost(o, check, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t f = 0; f < o->source.manifest.nfiles; f++)
        if (o->ckpt->node_of[o->source.holder[f]] == o->ckpt->node)
            o->source.holder[f] = o->ckpt->rank;
    return rc;
}

dt_result_t dt_node_local_open(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                               const struct dt_node_local *known, bool check,
                               struct dt_source *source, struct dt_error *err)
{
    struct opening o = {
        .ckpt = ckpt, .tier = tier, .known = known, .source = {.fd = -1}};
    dt_result_t rc = open_nodes(&o, check, err);
    o.source.text = o.text;
    o.source.len = o.len;
    free(o.have);
    free(o.who);
    if (rc == DT_SUCCESS)
        *source = o.source;
    else
        dt_source_close(&o.source);
    return rc;
}

/* ---- a commit that was interrupted ---- */

static bool is_that(int dirfd, const char *name, int fd)
{
    struct stat a, b;
    return fstatat(dirfd, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void dt_node_local_complete(const struct dt_ckpt *ckpt,
                            const struct dt_tier *tier,
                            const struct dt_source *source)
{
    const struct dt_manifest *m = &source->manifest;
    char name[DT_STORE_NAME];
    if (ckpt->local_rank != 0 || source->fd < 0 || source->made ||
        (tier->lock && !dt_directory_lock_held(tier->lock)))
        return;
    int dirfd = dt_store_open(tier->dir);
    if (dirfd < 0)
        return;
    dt_store_partial_name(name, m->step, m->tag);
    if (is_that(dirfd, name, source->fd)) {
        unlinkat(source->fd, DT_MANIFEST_TMP, 0);
        if (dt_manifest_put(source->fd, source->text, source->len, NULL) ==
            DT_SUCCESS)
            dt_store_publish(dirfd, name, m->step, m->tag, NULL);
    }
    close(dirfd);
}
