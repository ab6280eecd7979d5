/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* homes.c - the checkpoint directories of several nodes, side by side. */
#include "homes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "words.h"

/* ---- all of them ---- */

static int newest_first(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

static dt_result_t add_steps(struct homes *homes, int fd, struct dt_error *err)
{
    struct dt_store_entry *entry;
    size_t count;
    dt_result_t rc = dt_store_list(fd, &entry, &count, err);
    if (rc != DT_SUCCESS)
        return rc;
    void *more =
        realloc(homes->step, (homes->nsteps + count + 1) * sizeof(int64_t));
    if (more)
        homes->step = more;
    else
        rc = no_memory(err);
    for (size_t i = 0; i < count && rc == DT_SUCCESS; i++)
        if (entry[i].complete && !entry[i].hidden)
            homes->step[homes->nsteps++] = entry[i].step;
    free(entry);
    return rc;
}

/* Each once. */
static void sort_steps(struct homes *homes)
{
    size_t n = 0;
    qsort(homes->step, homes->nsteps, sizeof(*homes->step), newest_first);
    for (size_t i = 0; i < homes->nsteps; i++)
        if (i == 0 || homes->step[i] != homes->step[i - 1])
            homes->step[n++] = homes->step[i];
    homes->nsteps = n;
}

dt_result_t homes_open(struct homes *homes, char **path, int n,
                       struct dt_error *err)
{
    struct homes all = {.home = calloc((size_t)n, sizeof(*all.home))};
    dt_result_t rc = all.home ? DT_SUCCESS : no_memory(err);
    for (; all.n < n && rc == DT_SUCCESS; all.n++) {
        struct home *home = &all.home[all.n];
        rc = place_open(&home->place, path[all.n], false, err);
        if (rc != DT_SUCCESS)
            break;
        home->fd = -1;
        rc = add_steps(&all, home->place.fd, err);
    }
    if (rc == DT_SUCCESS && all.nsteps == 0)
        rc = dt_error_set(err, DT_ERR_NOT_FOUND,
                          "%s: no complete checkpoint here%s", path[0],
                          n > 1 ? ", nor in the others" : "");
    if (rc != DT_SUCCESS) {
        homes_close(&all);
        return rc;
    }
    sort_steps(&all);
    *homes = all;
    return DT_SUCCESS;
}

void homes_close(struct homes *homes)
{
    for (int i = 0; i < homes->n; i++)
        place_close(&homes->home[i].place);
    free(homes->home);
    free(homes->step);
    *homes = (struct homes){0};
}

/* ---- one checkpoint ---- */

static void leave(struct home *home)
{
    if (home->fd >= 0)
        close(home->fd);
    home->fd = -1;
    home->fresh = false;
}

/* The checkpoint name in home, if it is there: its identity becomes *identity,
 * or is compared with it if that is not 0. The first is opened as *c. */
static dt_result_t enter(struct home *home, const char *name,
                         struct checkpoint *c, uint64_t *identity,
                         struct dt_error *err)
{
    struct checkpoint found;
    struct stat st;
    if (fstatat(home->place.fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return DT_SUCCESS;
    dt_result_t rc =
        checkpoint_open_at(&found, home->place.fd, home->place.path, name, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (*identity && *identity != found.identity)
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          "%s and %s are of different saves", c->path,
                          found.path);
    home->fd = rc == DT_SUCCESS ? fcntl(found.fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (rc == DT_SUCCESS && home->fd < 0)
        rc = failed(err, found.path);
    if (*identity || rc != DT_SUCCESS) {
        checkpoint_close(&found);
        return rc;
    }
    *identity = found.identity;
    *c = found;
    return DT_SUCCESS;
}

dt_result_t homes_enter(struct homes *homes, int64_t step, struct checkpoint *c,
                        struct dt_error *err)
{
    char name[DT_STORE_NAME];
    uint64_t identity = 0;
    dt_result_t rc = DT_SUCCESS;
    dt_store_name(name, step);
    for (int i = 0; i < homes->n && rc == DT_SUCCESS; i++)
        rc = enter(&homes->home[i], name, c, &identity, err);
    if (rc == DT_SUCCESS && !identity)
        rc = dt_error_set(err, DT_ERR_NOT_FOUND, "%s is gone", name);
    if (rc == DT_SUCCESS)
        return rc;
    for (int i = 0; i < homes->n; i++)
        leave(&homes->home[i]);
    if (identity)
        checkpoint_close(c);
    return rc;
}

static bool has_any(const struct home *home, const struct dt_manifest *m,
                    int node)
{
    struct stat st;
    for (size_t f = 0; f < m->nfiles; f++)
        if (m->file[f].node == node && home->fd >= 0 &&
            fstatat(home->fd, m->file[f].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

dt_result_t homes_for_node(struct homes *homes,
                           const struct dt_manifest *manifest, int node,
                           struct home **home, struct dt_error *err)
{
    struct home *spare = NULL, *any = NULL;
    for (int i = homes->n; i-- > 0;) {
        struct home *h = &homes->home[i];
        if ((h->fresh && h->node == node) || has_any(h, manifest, node)) {
            *home = h;
            return DT_SUCCESS;
        }
        if (h->fd < 0)
            spare = h;
        else
            any = h;
    }
    if (!spare) {
        *home = any;
        return DT_SUCCESS;
    }
    dt_result_t rc =
        fresh_open(&spare->making, &spare->place, manifest->step, true, err);
    if (rc != DT_SUCCESS)
        return rc;
    spare->fd = spare->making.fd;
    spare->fresh = true;
    spare->node = node;
    *home = spare;
    return DT_SUCCESS;
}

dt_result_t homes_leave(struct homes *homes, const struct checkpoint *c,
                        dt_result_t rc, struct dt_error *err)
{
    char *text = NULL;
    size_t len = 0;
    if (rc == DT_SUCCESS)
        rc = dt_manifest_text(c->fd, &text, &len, err);
    for (int i = 0; i < homes->n; i++) {
        struct home *home = &homes->home[i];
        if (home->fresh) {
            rc = fresh_close(&home->making, text, len, rc, err);
            home->fd = -1; /* it is closed */
        }
        leave(home);
    }
    free(text);
    return rc;
}
