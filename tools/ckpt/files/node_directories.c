/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node_directories.c - the checkpoint directories of several nodes, side by
 * side. */
#include "files/node_directories.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/format/format.h"

/* ---- all of them ---- */

static int newest_first(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

static dt_result_t add_steps(struct node_directories *dirs, int fd,
                             struct dt_error *err)
{
    struct dt_store_entry *entry;
    size_t count;
    dt_result_t rc = dt_store_list(fd, &entry, &count, err);
    if (rc != DT_SUCCESS)
        return rc;
    void *more =
        realloc(dirs->step, (dirs->nsteps + count + 1) * sizeof(int64_t));
    if (more)
        dirs->step = more;
    else
        rc = dt_no_memory(err);
    for (size_t i = 0; i < count && rc == DT_SUCCESS; i++)
        if (entry[i].complete && !entry[i].hidden)
            dirs->step[dirs->nsteps++] = entry[i].step;
    free(entry);
    return rc;
}

/* Each once. */
static void sort_steps(struct node_directories *dirs)
{
    size_t n = 0;
    qsort(dirs->step, dirs->nsteps, sizeof(*dirs->step), newest_first);
    for (size_t i = 0; i < dirs->nsteps; i++)
        if (i == 0 || dirs->step[i] != dirs->step[i - 1])
            dirs->step[n++] = dirs->step[i];
    dirs->nsteps = n;
}

dt_result_t node_directories_open(struct node_directories *dirs, char **path,
                                  int n, struct dt_error *err)
{
    struct node_directories all = {.dir = calloc((size_t)n, sizeof(*all.dir))};
    dt_result_t rc = all.dir ? DT_SUCCESS : dt_no_memory(err);
    for (; all.n < n && rc == DT_SUCCESS; all.n++) {
        struct node_directory *d = &all.dir[all.n];
        rc = directory_open(&d->place, path[all.n], false, err);
        if (rc != DT_SUCCESS)
            break;
        d->fd = -1;
        rc = add_steps(&all, d->place.fd, err);
    }
    if (rc == DT_SUCCESS && all.nsteps == 0)
        rc = dt_error_set(err, DT_ERR_NOT_FOUND,
                          "%s: no complete checkpoint here%s", path[0],
                          n > 1 ? ", nor in the others" : "");
    if (rc != DT_SUCCESS) {
        node_directories_close(&all);
        return rc;
    }
    sort_steps(&all);
    *dirs = all;
    return DT_SUCCESS;
}

void node_directories_close(struct node_directories *dirs)
{
    for (int i = 0; i < dirs->n; i++)
        directory_close(&dirs->dir[i].place);
    free(dirs->dir);
    free(dirs->step);
    *dirs = (struct node_directories){0};
}

/* ---- one checkpoint ---- */

static void leave(struct node_directory *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    d->fresh = false;
}

/* Open the checkpoint name in d, if it exists. The first one becomes *c and
 * sets *identity; the others must have the same. */
static dt_result_t enter(struct node_directory *d, const char *name,
                         struct checkpoint *c, uint64_t *identity,
                         struct dt_error *err)
{
    struct checkpoint found;
    struct stat st;
    if (fstatat(d->place.fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return DT_SUCCESS;
    dt_result_t rc =
        checkpoint_open_at(&found, d->place.fd, d->place.path, name, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (*identity && *identity != found.identity)
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          "%s and %s are of different saves", c->path,
                          found.path);
    d->fd = rc == DT_SUCCESS ? fcntl(found.fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (rc == DT_SUCCESS && d->fd < 0)
        rc = dt_failed(err, found.path);
    if (*identity || rc != DT_SUCCESS) {
        checkpoint_close(&found);
        return rc;
    }
    *identity = found.identity;
    *c = found;
    return DT_SUCCESS;
}

dt_result_t node_directories_enter(struct node_directories *dirs, int64_t step,
                                   struct checkpoint *c, struct dt_error *err)
{
    char name[DT_STORE_NAME];
    uint64_t identity = 0;
    dt_result_t rc = DT_SUCCESS;
    dt_store_name(name, step);
    for (int i = 0; i < dirs->n && rc == DT_SUCCESS; i++)
        rc = enter(&dirs->dir[i], name, c, &identity, err);
    if (rc == DT_SUCCESS && !identity)
        rc = dt_error_set(err, DT_ERR_NOT_FOUND, "%s is gone", name);
    if (rc == DT_SUCCESS)
        return rc;
    for (int i = 0; i < dirs->n; i++)
        leave(&dirs->dir[i]);
    if (identity)
        checkpoint_close(c);
    return rc;
}

static bool has_any(const struct node_directory *d, const struct dt_manifest *m,
                    int node)
{
    struct stat st;
    for (size_t f = 0; f < m->nfiles; f++)
        if (m->file[f].node == node && d->fd >= 0 &&
            fstatat(d->fd, m->file[f].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

dt_result_t node_directories_for(struct node_directories *dirs,
                                 const struct dt_manifest *manifest, int node,
                                 struct node_directory **found,
                                 struct dt_error *err)
{
    struct node_directory *spare = NULL, *any = NULL;
    for (int i = dirs->n; i-- > 0;) {
        struct node_directory *h = &dirs->dir[i];
        if ((h->fresh && h->node == node) || has_any(h, manifest, node)) {
            *found = h;
            return DT_SUCCESS;
        }
        if (h->fd < 0)
            spare = h;
        else
            any = h;
    }
    if (!spare) {
        *found = any;
        return DT_SUCCESS;
    }
    dt_result_t rc = new_checkpoint_open(&spare->making, &spare->place,
                                         manifest->step, true, err);
    if (rc != DT_SUCCESS)
        return rc;
    spare->fd = spare->making.fd;
    spare->fresh = true;
    spare->node = node;
    *found = spare;
    return DT_SUCCESS;
}

dt_result_t node_directories_leave(struct node_directories *dirs,
                                   const struct checkpoint *c, dt_result_t rc,
                                   struct dt_error *err)
{
    char *text = NULL;
    size_t len = 0;
    if (rc == DT_SUCCESS)
        rc = dt_manifest_text(c->fd, &text, &len, err);
    for (int i = 0; i < dirs->n; i++) {
        struct node_directory *d = &dirs->dir[i];
        if (d->fresh) {
            rc = new_checkpoint_close(&d->making, text, len, rc, err);
            d->fd = -1; /* it is closed */
        }
        leave(d);
    }
    free(text);
    return rc;
}
