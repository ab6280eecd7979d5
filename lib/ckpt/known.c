/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* known.c - which checkpoints there are on the disks of the nodes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/checksum.h"
#include "ckpt/nodes.h"
#include "ckpt/protect.h"
#include "ckpt/store.h"

/* A node that has lost its disk has none. */
static bool is_lost(int why)
{
    return why == ENOENT || why == ENOTDIR || why == EIO || why == ESTALE;
}

/* The checksum of its manifest; 0 if that cannot be read. */
static uint64_t identify(int dirfd, const char *name)
{
    char *text = NULL;
    size_t len;
    uint64_t identity = 0;
    int fd =
        openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (dt_manifest_text(fd, &text, &len, NULL) == DT_SUCCESS)
        identity = dt_checksum(text, len);
    free(text);
    close(fd);
    return identity;
}

static dt_result_t list_here(const struct dt_tier *tier,
                             struct dt_known **known, size_t *count,
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
    struct dt_known *list = calloc(n + 1, sizeof(*list));
    if (!list)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n && list; i++) {
        if (!entry[i].complete)
            continue;
        struct dt_known *k = &list[(*count)++];
        k->step = entry[i].step;
        k->identity = identify(dirfd, entry[i].name);
        strcpy(k->name, entry[i].name);
    }
    *known = list;
    free(entry);
    close(dirfd);
    return rc;
}

/* One that several nodes may have. */
struct found {
    struct dt_known known;
    int nodes;
};

/* What is on most nodes is most likely to be whole. */
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

/* all[n] to those that differ, which are as many as returned. */
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

/* Everybody's lists to everybody, as the votes have announced them. */
static dt_result_t share_lists(struct dt_ckpt *ckpt,
                               const struct dt_known *mine,
                               struct dt_known *all, size_t *sizes,
                               struct dt_error *err)
{
    size_t *at = sizes + ckpt->size;
    for (int r = 0; r < ckpt->size; r++) {
        sizes[r] = ckpt->votes[r].bytes * sizeof(*all) / sizeof(int64_t);
        at[r] = r ? at[r - 1] + sizes[r - 1] : 0;
    }
    return dt_vote_outcome(dt_allgatherv(mine, all, sizes, at, DT_DTYPE_I64,
                                         dt_comm_world(), DT_STREAM_NONE),
                           err);
}

dt_result_t dt_protect_list(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                            struct dt_known **known, size_t *count,
                            struct dt_error *err)
{
    struct dt_error why = {0};
    struct dt_known *mine = NULL, *all = NULL;
    struct found *found = NULL;
    size_t n = 0, total = 0, *sizes = NULL;
    dt_result_t rc = DT_SUCCESS;
    if (dt_node_lane(ckpt) == 0)
        rc = list_here(tier, &mine, &n, &why);
    rc = dt_node_agree(ckpt, rc, n, &why, err);
    if (rc != DT_SUCCESS)
        goto free_lists;
    for (int r = 0; r < ckpt->size; r++)
        total += ckpt->votes[r].bytes;
    all = calloc(total + 1, sizeof(*all));
    found = calloc(total + 1, sizeof(*found));
    sizes = calloc(2 * (size_t)ckpt->size, sizeof(*sizes));
    if (!all || !found || !sizes)
        rc = dt_error_set(&why, DT_ERR_NO_MEMORY, "out of memory");
    rc = dt_node_agree(ckpt, rc, n, &why, err);
    if (rc == DT_SUCCESS)
        rc = share_lists(ckpt, mine, all, sizes, err);
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
    free(mine);
    return rc;
}
