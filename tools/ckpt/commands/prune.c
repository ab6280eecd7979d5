/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* prune.c - dt-ckpt prune: remove old checkpoints. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "files/checkpoint.h"
#include "files/directory.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

enum fate { KEPT, REMOVED, BROKEN };

/* Are its files there with their sizes? */
static bool is_whole(const struct directory *dir, const char *name)
{
    struct checkpoint c;
    struct dt_error err;
    if (checkpoint_open_at(&c, dir->fd, dir->path, name, &err) != DT_SUCCESS)
        return false;
    dt_result_t rc = checkpoint_files(&c, &err);
    checkpoint_close(&c);
    /* on a node's own disk are that node's files only */
    return rc == DT_SUCCESS || rc == DT_ERR_NOT_FOUND;
}

/* A broken checkpoint does not count, and stays so that it can be examined. */
static void decide(const struct directory *dir, const struct options *options,
                   const struct dt_store_entry *entry, size_t count,
                   enum fate *fate)
{
    int64_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (entry[i].hidden)
            continue;
        bool marked = options->every > 0 && entry[i].step % options->every == 0;
        if (!entry[i].complete || !is_whole(dir, entry[i].name))
            fate[i] = BROKEN;
        else if (kept < options->keep)
            kept++;
        else if (!marked)
            fate[i] = REMOVED;
    }
}

static dt_result_t remove_one(const struct directory *dir,
                              const struct dt_store_entry *entry,
                              struct dt_error *err)
{
    char old[DT_STORE_NAME];
    dt_result_t rc = interrupt_check(err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!dt_directory_lock_held(dir->lock))
        return dt_error_set(err, DT_ERR_BUSY, "%s: a job has taken it over",
                            dir->path);
    dt_store_old_name(old, entry->step, dir->tag);
    if (renameat(dir->fd, entry->name, dir->fd, old) || dt_file_sync(dir->fd))
        return dt_failed_in(err, dir->path, dt_failed(err, entry->name));
    return dt_store_remove(dir->fd, old, err);
}

static dt_result_t print_fates(const struct options *options,
                               const struct dt_store_entry *entry, size_t count,
                               const enum fate *fate, struct dt_error *err)
{
    json_t *list[3] = {json_array(), json_array(), json_array()};
    bool failed = false;
    for (size_t i = 0; i < count; i++)
        if (!entry[i].hidden)
            failed |= json_array_append_new(
                          list[fate[i]],
                          json_integer((json_int_t)entry[i].step)) != 0;
    json_t *root =
        json_pack("{s:b, s:o, s:o, s:o}", "dry_run", options->dry_run, "kept",
                  list[KEPT], "removed", list[REMOVED], "broken", list[BROKEN]);
    if (failed && root) {
        json_decref(root);
        root = NULL;
    }
    return print_json(root, err);
}

static dt_result_t prune(const struct directory *dir,
                         const struct options *options,
                         const struct dt_store_entry *entry, size_t count,
                         struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    enum fate *fate = calloc(count + 1, sizeof(*fate));
    if (!fate)
        return dt_no_memory(err);
    decide(dir, options, entry, count, fate);
    for (size_t i = 0; i < count && rc == DT_SUCCESS; i++) {
        if (entry[i].hidden || fate[i] == KEPT)
            continue;
        if (fate[i] == BROKEN)
            note(stderr, "%s/%s is not complete: it does not count, and stays",
                 dir->path, entry[i].name);
        else if (!options->dry_run)
            rc = remove_one(dir, &entry[i], err);
        if (rc == DT_SUCCESS && fate[i] == REMOVED && !options->json)
            print_line(stdout, "%s/%s: %s", dir->path, entry[i].name,
                       options->dry_run ? "would be removed" : "removed");
    }
    if (rc == DT_SUCCESS && options->json)
        rc = print_fates(options, entry, count, fate, err);
    free(fate);
    return rc;
}

dt_result_t command_prune(const struct options *options, int *status,
                          struct dt_error *err)
{
    struct directory dir;
    struct dt_store_entry *entry;
    size_t count;
    (void)status;
    dt_result_t rc = options->dry_run
                         ? directory_look(&dir, options->arg[0], err)
                         : directory_open(&dir, options->arg[0], false, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!options->dry_run) /* it is locked: hidden entries are leftovers */
        dt_store_sweep(dir.fd, "");
    rc = dt_store_list(dir.fd, &entry, &count, err);
    if (rc == DT_SUCCESS) {
        rc = prune(&dir, options, entry, count, err);
        free(entry);
    }
    directory_close(&dir);
    return rc;
}
