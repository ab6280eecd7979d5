/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.c - a checkpoint directory in which something is about to change. */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "interrupt.h"
#include "words.h"

dt_result_t place_open(struct place *place, const char *path, bool make,
                       struct dt_error *err)
{
    struct place p = {.path = path};
    if (getrandom(&p.tag, sizeof(p.tag), 0) != sizeof(p.tag))
        return failed(err, "random numbers");
    if (make && dt_file_make_dirs(path))
        return failed(err, path);
    p.fd = dt_store_open(path);
    if (p.fd < 0)
        return failed(err, path);
    dt_result_t rc = dt_guard_take(p.fd, path, "dt-ckpt", 0, &p.guard, err);
    if (rc == DT_SUCCESS)
        *place = p;
    else
        close(p.fd);
    return rc;
}

dt_result_t place_look(struct place *place, const char *path,
                       struct dt_error *err)
{
    *place = (struct place){.path = path, .fd = dt_store_open(path)};
    return place->fd < 0 ? failed(err, path) : DT_SUCCESS;
}

void place_close(struct place *place)
{
    dt_guard_release(place->guard);
    close(place->fd);
}

dt_result_t fresh_open(struct fresh *fresh, struct place *place, int64_t step,
                       bool force, struct dt_error *err)
{
    struct fresh f = {.place = place, .step = step};
    struct stat st;
    dt_store_name(f.name, step);
    dt_store_partial_name(f.partial, step, place->tag);
    if (!force && fstatat(place->fd, f.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s/%s is there already; --force replaces it",
                            place->path, f.name);
    dt_store_sweep(place->fd, ""); /* no job is at it: what is hidden is old */
    if (mkdirat(place->fd, f.partial, 0777))
        return failed(err, place->path);
    f.fd = openat(place->fd, f.partial,
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f.fd < 0) {
        dt_result_t rc = failed(err, f.partial);
        dt_store_remove(place->fd, f.partial, NULL);
        return rc;
    }
    *fresh = f;
    return DT_SUCCESS;
}

dt_result_t fresh_file(const struct fresh *fresh, const char *name, int *fd,
                       struct dt_error *err)
{
    *fd = openat(fresh->fd, name,
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return *fd < 0 ? failed(err, name) : DT_SUCCESS;
}

dt_result_t fresh_file_close(int fd, const char *name, dt_result_t rc,
                             struct dt_error *err)
{
    if (rc == DT_SUCCESS && dt_file_sync(fd))
        rc = failed(err, name);
    if (close(fd) && rc == DT_SUCCESS)
        rc = failed(err, name);
    return rc;
}

dt_result_t fresh_close(struct fresh *fresh, const char *text, size_t len,
                        dt_result_t rc, struct dt_error *err)
{
    struct place *place = fresh->place;
    if (rc == DT_SUCCESS)
        rc = interrupt_check(err);
    if (rc == DT_SUCCESS)
        rc = dt_manifest_put(fresh->fd, text, len, err);
    if (rc == DT_SUCCESS && !dt_guard_held(place->guard))
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
