/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.c - dt-ckpt watch: a line for each new checkpoint. It asks once a
 * second: other nodes' changes to a shared file system raise no event here. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/format/format.h"
#include "files/checkpoint.h"
#include "text/describe.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

/* What was there when it was looked at last. */
struct seen {
    int64_t step;
    uint64_t identity; /* of its manifest; 0: it cannot be read */
};

struct watch {
    const char *dir;
    int fd;
    struct seen *seen;
    size_t count;
    bool first;   /* nothing is new yet */
    int64_t left; /* lines still to be printed, or -1 */
};

static bool was_seen(const struct watch *w, const struct seen *one)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->seen[i].step == one->step &&
            w->seen[i].identity == one->identity)
            return true;
    return false;
}

static void print_one(struct watch *w, const struct checkpoint *c)
{
    char size[SIZE_TEXT];
    if (w->left == 0)
        return;
    print_line(stdout, "%s: %s, %d ranks on %d nodes, run %s, %.2f s", c->path,
               size_text(size, c->bytes), c->manifest.world_size,
               c->manifest.num_nodes, c->manifest.run_id,
               c->manifest.copy_s + c->manifest.write_s);
    fflush(stdout);
    if (w->left > 0)
        w->left--;
}

/* Print new checkpoints, the oldest first. */
static dt_result_t look(struct watch *w, struct dt_error *err)
{
    struct dt_store_entry *entry;
    size_t count, n = 0;
    dt_result_t rc = dt_store_list(w->fd, &entry, &count, err);
    if (rc != DT_SUCCESS)
        return dt_failed_in(err, w->dir, rc);
    struct seen *seen = calloc(count + 1, sizeof(*seen));
    if (!seen)
        rc = dt_no_memory(err);
    for (size_t i = count; i-- > 0 && rc == DT_SUCCESS;) {
        struct checkpoint c;
        struct dt_error why;
        if (!entry[i].complete || entry[i].hidden)
            continue;
        bool known = checkpoint_open_at(&c, w->fd, w->dir, entry[i].name,
                                        &why) == DT_SUCCESS;
        seen[n] = (struct seen){entry[i].step, known ? c.identity : 0};
        if (known && !w->first && !was_seen(w, &seen[n]))
            print_one(w, &c);
        n++;
        if (known)
            checkpoint_close(&c);
    }
    free(entry);
    if (rc == DT_SUCCESS) {
        free(w->seen);
        w->seen = seen;
        w->count = n;
        w->first = false;
    }
    return rc;
}

dt_result_t command_watch(const struct options *options, int *status,
                          struct dt_error *err)
{
    const struct timespec pause = {.tv_sec = 1};
    struct watch w = {
        .dir = options->arg[0], .first = true, .left = options->count};
    (void)status;
    w.fd = dt_store_open(w.dir);
    if (w.fd < 0)
        return dt_failed(err, w.dir);
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && w.left != 0 && !interrupted()) {
        rc = look(&w, err);
        if (rc == DT_SUCCESS && w.left != 0 && !ferror(stdout))
            nanosleep(&pause, NULL); /* ^C cuts it short */
        if (ferror(stdout))
            break;
    }
    free(w.seen);
    close(w.fd);
    return rc;
}
