/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* protect.c - opening a checkpoint on the disks of the nodes. */
#include "ckpt/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/checksum.h"
#include "ckpt/nodes.h"
#include "ckpt/rebuild.h"
#include "ckpt/store.h"
#include "ckpt/verify.h"

#define PIECE ((size_t)8 << 20) /* of a manifest on its way */

struct opening {
    struct dt_ckpt *ckpt;
    const struct dt_tier *tier;
    const struct dt_known *known;
    struct dt_source source;
    char *text; /* the manifest */
    size_t len;
    int32_t *have, *who; /* [nfiles] this rank or -1, and any rank or -1 */
    dt_result_t code;
    struct dt_error why;
};

static dt_result_t corrupt(struct opening *o, const char *what,
                           const char *reason)
{
    return o->code =
               dt_error_set(&o->why, DT_ERR_CORRUPT, "%s: %s", what, reason);
}

static int open_dir(int dirfd, const char *name)
{
    return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Is it there, in its size, and with check in its sums, too? */
static dt_result_t look_for(const struct dt_source *source, int file,
                            bool check, struct dt_error *err)
{
    const struct dt_manifest_file *want = &source->manifest.file[file];
    struct dt_error why = {0};
    size_t size;
    int fd = dt_file_open(source->fd, want->name, &size);
    if (fd < 0)
        return dt_manifest_unopened(want->name, err);
    dt_result_t rc = DT_SUCCESS;
    if (size != want->size)
        rc = dt_error_set(&why, DT_ERR_CORRUPT, "%zu bytes long, expected %zu",
                          size, want->size);
    else if (check)
        rc = dt_verify_file(&source->manifest, file, fd, &why);
    close(fd);
    return rc == DT_SUCCESS
               ? rc
               : dt_error_set(err, rc, "%s: %s", want->name, why.text);
}

/* Open the directory here whose manifest it is, and keep the text. */
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
        int fd = open_dir(dirfd, entry[i].name);
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

/* The text to all, from the lowest rank that has it. */
static dt_result_t share_manifest(struct opening *o, struct dt_error *err)
{
    size_t len = o->text ? o->len : 0;
    dt_result_t rc = dt_node_agree(o->ckpt, o->code, len, &o->why, err);
    if (rc != DT_SUCCESS)
        return rc;
    int root = 0;
    while (root < o->ckpt->size && o->ckpt->votes[root].bytes == 0)
        root++;
    if (root == o->ckpt->size)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            DT_MANIFEST_NAME ": is missing or unreadable");
    o->len = o->ckpt->votes[root].bytes;
    if (!o->text)
        o->text = malloc(o->len + 1);
    if (!o->text)
        o->code = dt_error_set(&o->why, DT_ERR_NO_MEMORY, "out of memory");
    rc = dt_node_agree(o->ckpt, o->code, 0, &o->why, err);
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

/* Here the job was cut short before the manifest came; or that is damaged. */
static void find_rest(struct opening *o)
{
    const struct dt_manifest *m = &o->source.manifest;
    char name[DT_STORE_NAME];
    int dirfd = dt_store_open(o->tier->dir);
    if (dirfd < 0)
        return;
    dt_store_partial_name(name, m->step, m->tag);
    int fd = open_dir(dirfd, name);
    if (fd < 0) {
        dt_store_name(name, m->step);
        fd = open_dir(dirfd, name);
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
        corrupt(o, DT_MANIFEST_NAME, "changed on its way");
    else
        o->code =
            dt_manifest_parse(&o->source.manifest, o->text, o->len, &o->why);
    if (o->code == DT_SUCCESS)
        o->code = check_manifest(o);
    if (o->code != DT_SUCCESS)
        return;
    if (o->source.fd < 0)
        find_rest(o);
    size_t n = o->source.manifest.nfiles;
    o->have = calloc(n + 1, sizeof(*o->have));
    o->who = calloc(n + 1, sizeof(*o->who));
    o->source.holder = calloc(n + 1, sizeof(*o->source.holder));
    if (!o->have || !o->who || !o->source.holder)
        o->code = dt_error_set(&o->why, DT_ERR_NO_MEMORY, "out of memory");
}

/* Who has which file: the ranks of a node look after some each. */
static dt_result_t look_around(struct opening *o, bool check,
                               struct dt_error *err)
{
    size_t n = o->source.manifest.nfiles;
    size_t lanes = (size_t)dt_node_ranks(o->ckpt, o->ckpt->node);
    size_t lane = (size_t)dt_node_lane(o->ckpt);
    for (size_t f = 0; f < n; f++)
        o->have[f] =
            o->source.fd >= 0 && f % lanes == lane &&
                    look_for(&o->source, (int)f, check, NULL) == DT_SUCCESS
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

/* ---- a node that has nothing of it ---- */

static bool is_all_there(const struct opening *o)
{
    for (size_t f = 0; f < o->source.manifest.nfiles; f++)
        if (o->source.holder[f] < 0)
            return false;
    return true;
}

/* A directory for what this node may get. In the memory of the nodes there is
 * no parity, and so nothing comes back. */
static void make_place(struct opening *o)
{
    const struct dt_manifest *m = &o->source.manifest;
    char name[DT_STORE_NAME];
    if (o->source.fd >= 0 || o->tier == &o->ckpt->tier[DT_TIER_MEMORY])
        return;
    int dirfd =
        dt_file_make_dirs(o->tier->dir) ? -1 : dt_store_open(o->tier->dir);
    dt_store_partial_name(name, m->step, m->tag);
    o->source.made = true; /* all ranks of the node do so */
    if (dirfd >= 0)
        mkdirat(dirfd, name, 0777);
    o->source.fd = dirfd >= 0 ? open_dir(dirfd, name) : -1;
    if (o->source.fd < 0)
        o->code = dt_error_set(&o->why, dt_file_result(errno), "%s: %s",
                               o->tier->dir, strerror(errno));
    if (dirfd >= 0)
        close(dirfd);
}

/* With the manifest it is there for the next load, too, and the next save
 * leaves it where it is. */
static void finish_place(struct opening *o, dt_result_t rc)
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

static dt_result_t bring_back(struct opening *o, bool check,
                              struct dt_error *err)
{
    bool damaged = false;
    make_place(o);
    dt_result_t rc = dt_node_agree(o->ckpt, o->code, 0, &o->why, err);
    if (rc == DT_SUCCESS)
        rc = dt_rebuild(o->ckpt, &o->source, check, &damaged, err);
    if (rc == DT_ERR_CORRUPT && damaged && !check) {
        rc = look_around(o, true, err);
        if (rc == DT_SUCCESS)
            rc = dt_rebuild(o->ckpt, &o->source, true, &damaged, err);
    }
    finish_place(o, rc);
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
    rc = dt_node_agree(o->ckpt, o->code, 0, &o->why, err);
    if (rc == DT_SUCCESS)
        rc = look_around(o, check, err);
    if (rc == DT_SUCCESS && !is_all_there(o))
        rc = bring_back(o, check, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t f = 0; f < o->source.manifest.nfiles; f++)
        if (o->ckpt->node_of[o->source.holder[f]] == o->ckpt->node)
            o->source.holder[f] = o->ckpt->rank;
    return rc;
}

dt_result_t dt_protect_open(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                            const struct dt_known *known, bool check,
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

/* ---- a commit that was cut short ---- */

static bool is_that(int dirfd, const char *name, int fd)
{
    struct stat a, b;
    return fstatat(dirfd, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void dt_protect_complete(const struct dt_ckpt *ckpt, const struct dt_tier *tier,
                         const struct dt_source *source)
{
    const struct dt_manifest *m = &source->manifest;
    char name[DT_STORE_NAME];
    if (ckpt->local_rank != 0 || source->fd < 0 || source->made ||
        (tier->guard && !dt_guard_held(tier->guard)))
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
