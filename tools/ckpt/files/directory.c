/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory.c - a checkpoint directory that a command changes. */
#include "files/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "text/interrupt.h"

dt_result_t directory_open(struct directory *place, const char *path, bool make,
                           struct dt_error *err)
{
    struct directory p = {.path = path};
    if (getrandom(&p.tag, sizeof(p.tag), 0) != sizeof(p.tag))
        return dt_failed(err, "random numbers");
    if (make && dt_file_make_dirs(path))
        return dt_failed(err, path);
    p.fd = dt_store_open(path);
    if (p.fd < 0)
        return dt_failed(err, path);
    dt_result_t rc =
        dt_directory_lock_take(p.fd, path, "dt-ckpt", 0, &p.lock, err);
    if (rc == DT_SUCCESS)
        *place = p;
    else
        close(p.fd);
    return rc;
}

dt_result_t directory_look(struct directory *place, const char *path,
                           struct dt_error *err)
{
    *place = (struct directory){.path = path, .fd = dt_store_open(path)};
    return place->fd < 0 ? dt_failed(err, path) : DT_SUCCESS;
}

void directory_close(struct directory *place)
{
    dt_directory_lock_release(place->lock);
    close(place->fd);
}

dt_result_t new_checkpoint_open(struct new_checkpoint *fresh,
                                struct directory *place, int64_t step,
                                bool force, struct dt_error *err)
{
    struct new_checkpoint f = {.place = place, .step = step};
    struct stat st;
    dt_store_name(f.name, step);
    dt_store_partial_name(f.partial, step, place->tag);
    if (!force && fstatat(place->fd, f.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s/%s is there already; --force replaces it",
                            place->path, f.name);
    dt_store_sweep(place->fd,
                   ""); /* it is locked: hidden entries are leftovers */
    if (mkdirat(place->fd, f.partial, 0777))
        return dt_failed(err, place->path);
    f.fd = dt_store_open_at(place->fd, f.partial);
    if (f.fd < 0) {
        dt_result_t rc = dt_failed(err, f.partial);
        dt_store_remove(place->fd, f.partial, NULL);
        return rc;
    }
    *fresh = f;
    return DT_SUCCESS;
}

dt_result_t new_checkpoint_file(const struct new_checkpoint *fresh,
                                const char *name, int *fd, struct dt_error *err)
{
    *fd = openat(fresh->fd, name,
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return *fd < 0 ? dt_failed(err, name) : DT_SUCCESS;
}

dt_result_t new_checkpoint_close_file(int fd, const char *name, dt_result_t rc,
                                      struct dt_error *err)
{
    if (rc == DT_SUCCESS && dt_file_sync(fd))
        rc = dt_failed(err, name);
    if (close(fd) && rc == DT_SUCCESS)
        rc = dt_failed(err, name);
    return rc;
}

dt_result_t new_checkpoint_close(struct new_checkpoint *fresh, const char *text,
                                 size_t len, dt_result_t rc,
                                 struct dt_error *err)
{
    struct directory *place = fresh->place;
    if (rc == DT_SUCCESS)
        rc = interrupt_check(err);
    if (rc == DT_SUCCESS)
        rc = dt_manifest_put(fresh->fd, text, len, err);
    if (rc == DT_SUCCESS && !dt_directory_lock_held(place->lock))
        rc = dt_error_set(err, DT_ERR_BUSY, "%s: a job has taken it over",
                          place->path);
    if (rc == DT_SUCCESS)
        rc = dt_store_publish(place->fd, fresh->partial, fresh->step,
                              place->tag, err);
    close(fresh->fd);
    if (rc != DT_SUCCESS)
        dt_store_remove(place->fd, fresh->partial, NULL);
    return rc;
}
