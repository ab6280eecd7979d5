/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* flush.c - dt-ckpt flush: copy what another directory lacks, verified. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "commands/verify.h"
#include "files/directory.h"
#include "text/describe.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

#define CHUNK ((size_t)1 << 20)

/* Does it have a complete checkpoint of that step? */
static bool has_step(const struct directory *to, int64_t step)
{
    char path[DT_STORE_NAME + sizeof("/" DT_MANIFEST_NAME)];
    char name[DT_STORE_NAME];
    struct stat st;
    dt_store_name(name, step);
    snprintf(path, sizeof(path), "%s/%s", name, DT_MANIFEST_NAME);
    return fstatat(to->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static dt_result_t copy_bytes(int from, int to, size_t size, const char *name,
                              struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    char *buf = malloc(CHUNK);
    if (!buf)
        return dt_no_memory(err);
    for (size_t at = 0; at < size && rc == DT_SUCCESS;) {
        size_t n = size - at < CHUNK ? size - at : CHUNK;
        ssize_t got = dt_file_read(from, buf, n, (off_t)at);
        if (got == (ssize_t)n && dt_file_write(to, buf, n) == 0)
            rc = interrupt_check(err);
        else if (got >= 0 && got < (ssize_t)n)
            rc = dt_error_set(err, DT_ERR_CORRUPT, "%s is truncated", name);
        else
            rc = dt_failed(err, name);
        bar_add(n);
        at += n;
    }
    free(buf);
    return rc;
}

static dt_result_t copy_file(struct checkpoint *c, size_t i,
                             const struct new_checkpoint *fresh,
                             struct dt_error *err)
{
    const struct dt_manifest_file *file = &c->manifest.file[i];
    int fd;
    dt_result_t rc = checkpoint_file(c, (int)i, err);
    if (rc == DT_SUCCESS)
        rc = new_checkpoint_file(fresh, file->name, &fd, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = copy_bytes(c->in, fd, file->size, file->name, err);
    return new_checkpoint_close_file(fd, file->name, rc, err);
}

static void first_damage(const char *text, void *arg)
{
    struct dt_error *why = arg;
    if (!why->text[0])
        dt_error_set(why, DT_ERR_CORRUPT, "%s", text);
}

/* If the copies match the manifest, the originals did, too. */
static dt_result_t verify_copy(const struct checkpoint *c,
                               const struct new_checkpoint *fresh,
                               struct dt_error *err)
{
    struct checkpoint copy = *c;
    struct dt_error why = {""};
    copy.in = copy.open_file = -1;
    copy.block = NULL;
    copy.fd = fresh->fd;
    copy.whole = calloc(c->manifest.nfiles + 1, sizeof(*copy.whole));
    if (!copy.whole)
        return dt_no_memory(err);
    dt_result_t rc = verify_checkpoint(&copy, first_damage, &why, err);
    if (rc == DT_ERR_CORRUPT)
        dt_error_set(err, rc, "%s: %s", c->path, why.text);
    if (copy.in >= 0)
        close(copy.in);
    free(copy.whole);
    free(copy.block);
    return rc;
}

static dt_result_t copy_checkpoint(struct checkpoint *c, struct directory *to,
                                   struct dt_error *err)
{
    struct new_checkpoint fresh;
    char *text = NULL, what[DT_STORE_NAME + 8];
    size_t len = 0;
    dt_result_t rc = dt_manifest_text(c->fd, &text, &len, err);
    if (rc == DT_SUCCESS)
        rc = new_checkpoint_open(&fresh, to, c->manifest.step, true, err);
    if (rc != DT_SUCCESS)
        goto free_text;
    snprintf(what, sizeof(what), "copy %s", c->name);
    bar_start(what, 2 * c->bytes); /* and once more to verify */
    for (size_t i = 0; i < c->manifest.nfiles && rc == DT_SUCCESS; i++)
        rc = copy_file(c, i, &fresh, err);
    if (rc == DT_SUCCESS)
        rc = verify_copy(c, &fresh, err);
    rc = new_checkpoint_close(&fresh, text, len, rc, err);
    progress_end();
free_text:
    free(text);
    return rc;
}

/* A damaged or incomplete checkpoint is reported and skipped. */
static dt_result_t flush_one(int fd, const char *from, const char *name,
                             struct directory *to, bool *lost,
                             struct dt_error *err)
{
    struct checkpoint c;
    char size[SIZE_TEXT];
    dt_result_t rc = checkpoint_open_at(&c, fd, from, name, err);
    if (rc == DT_SUCCESS) {
        rc = checkpoint_files(&c, err);
        rc = rc == DT_SUCCESS ? copy_checkpoint(&c, to, err)
                              : dt_failed_in(err, c.path, rc);
        if (rc == DT_SUCCESS)
            print_line(stdout, "%s/%s: copied, %s", to->path, c.name,
                       size_text(size, c.bytes));
        checkpoint_close(&c);
    }
    if (rc == DT_ERR_CORRUPT || rc == DT_ERR_NOT_FOUND ||
        rc == DT_ERR_VERSION) {
        note(stderr, "%s", err->text);
        *lost = true;
        rc = DT_SUCCESS;
    }
    return rc;
}

dt_result_t command_flush(const struct options *options, int *status,
                          struct dt_error *err)
{
    const char *from = options->arg[0];
    struct directory to;
    struct dt_store_entry *entry = NULL;
    size_t count = 0;
    bool lost = false;
    int fd = dt_store_open(from);
    if (fd < 0)
        return dt_failed(err, from);
    dt_result_t rc = dt_store_list(fd, &entry, &count, err);
    if (rc == DT_SUCCESS)
        rc = directory_open(&to, options->arg[1], true, err);
    if (rc != DT_SUCCESS)
        goto close_from;
    for (size_t i = count; i-- > 0 && rc == DT_SUCCESS;) /* the oldest first */
        if (entry[i].complete && !entry[i].hidden &&
            !has_step(&to, entry[i].step))
            rc = flush_one(fd, from, entry[i].name, &to, &lost, err);
    directory_close(&to);
    *status = lost;
close_from:
    free(entry);
    close(fd);
    return rc;
}
