/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.c - the handle of a checkpoint directory, and the public functions. */
#include "ckpt/ckpt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/api.h"
#include "base/file.h"
#include "base/notice.h"
#include "ckpt/checksum.h"
#include "ckpt/store.h"

/* ---- opening ----
 *
 * Rank 0 makes the directory and in it a hidden one, as a save would; the
 * others must then see that. So what would only fail at the first save, hours
 * later, fails here: a directory that cannot be written, or that is another
 * one on each node. */

struct invitation {
    int64_t code;
    uint64_t tag;
    struct dt_error err;
};

static void probe_name(char name[DT_STORE_NAME], uint64_t tag)
{
    dt_store_partial_name(name, 0, tag);
}

static dt_result_t make_probe(const char *dir, uint64_t tag,
                              struct dt_error *err)
{
    char name[DT_STORE_NAME];
    probe_name(name, tag);
    int dirfd = dt_file_make_dirs(dir) ? -1 : dt_store_open(dir);
    if (dirfd < 0)
        return dt_error_set(err, DT_ERR_IO,
                            "cannot open or create the checkpoint directory "
                            "%s: %s",
                            dir, strerror(errno));
    dt_result_t rc = DT_SUCCESS;
    if (mkdirat(dirfd, name, 0777))
        rc = dt_error_set(err, dt_file_result(errno),
                          "cannot write in the checkpoint directory %s: %s",
                          dir, strerror(errno));
    close(dirfd);
    return rc;
}

static dt_result_t see_probe(const char *dir, uint64_t tag, int rank,
                             struct dt_error *err)
{
    char name[DT_STORE_NAME];
    struct stat st;
    probe_name(name, tag);
    int dirfd = dt_store_open(dir);
    if (dirfd >= 0 && fstatat(dirfd, name, &st, 0) == 0) {
        close(dirfd);
        return DT_SUCCESS;
    }
    int why = errno;
    if (dirfd >= 0)
        close(dirfd);
    return dt_error_set(err, DT_ERR_IO,
                        "rank %d does not find what rank 0 wrote in the "
                        "checkpoint directory %s (%s): it must be on a file "
                        "system that all nodes share",
                        rank, dir, strerror(why));
}

static void remove_probe(const char *dir, uint64_t tag)
{
    char name[DT_STORE_NAME];
    probe_name(name, tag);
    int dirfd = dt_store_open(dir);
    if (dirfd < 0)
        return;
    dt_store_remove(dirfd, name, NULL);
    close(dirfd);
}

static dt_result_t meet(struct dt_ckpt *ckpt, struct dt_error *err)
{
    struct invitation inv = {0};
    if (ckpt->rank == 0) {
        if (getrandom(&inv.tag, sizeof(inv.tag), 0) != sizeof(inv.tag))
            inv.code = dt_error_set(&inv.err, DT_ERR_SYSTEM, "getrandom: %s",
                                    strerror(errno));
        else
            inv.code = make_probe(ckpt->dir, inv.tag, &inv.err);
    }
    dt_result_t rc = dt_vote_announce(&inv, sizeof(inv), err);
    if (rc != DT_SUCCESS)
        return rc;
    if (inv.code != DT_SUCCESS)
        return dt_error_set(err, (dt_result_t)inv.code, "%s", inv.err.text);

    ckpt->tag = inv.tag;
    struct dt_vote mine = {0};
    int who;
    mine.code = see_probe(ckpt->dir, inv.tag, ckpt->rank, &mine.err);
    rc = dt_vote_gather(&mine, ckpt->votes, err);
    if (rc == DT_SUCCESS)
        rc = dt_vote_result(ckpt->votes, ckpt->size, &who, err);
    if (ckpt->rank == 0)
        remove_probe(ckpt->dir, inv.tag);
    return rc;
}

static dt_result_t open_ckpt(const char *dir, int keep, dt_ckpt_t *ckpt,
                             struct dt_error *err)
{
    if (!dir || !*dir || keep < 0 || !ckpt)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_open: expected a directory, a number of "
                            "checkpoints to keep from 0, and where to put the "
                            "handle");
    if (!dt_comm_world())
        return DT_ERR_NOT_INITIALIZED;
    struct dt_ckpt *c = calloc(1, sizeof(*c));
    if (!c)
        return DT_ERR_NO_MEMORY;
    c->keep = keep;
    c->rank = dt_rank();
    c->size = dt_size();
    c->dir = strdup(dir);
    c->votes = calloc((size_t)c->size, sizeof(*c->votes));
    dt_result_t rc = c->dir && c->votes ? meet(c, err) : DT_ERR_NO_MEMORY;
    if (rc != DT_SUCCESS) {
        dt_ckpt_close(c);
        return rc;
    }
    dt_notice_arm();
    *ckpt = c;
    return DT_SUCCESS;
}

dt_result_t dt_ckpt_open(const char *dir, int keep, dt_ckpt_t *ckpt)
{
    struct dt_error err = {0};
    return dt_api_return(open_ckpt(dir, keep, ckpt, &err), &err);
}

void dt_ckpt_close(dt_ckpt_t ckpt)
{
    if (!ckpt)
        return;
    free(ckpt->dir);
    free(ckpt->tensor);
    free(ckpt->votes);
    free(ckpt);
}

/* ---- tensors ---- */

static dt_result_t grow(struct dt_ckpt *ckpt)
{
    if (ckpt->count < ckpt->room)
        return DT_SUCCESS;
    size_t room = ckpt->room ? 2 * ckpt->room : 32;
    void *more = realloc(ckpt->tensor, room * sizeof(*ckpt->tensor));
    if (!more)
        return DT_ERR_NO_MEMORY;
    ckpt->tensor = more;
    ckpt->room = room;
    return DT_SUCCESS;
}

static dt_result_t add_tensor(struct dt_ckpt *ckpt, const char *name,
                              void *data, dt_dtype_t dtype, int ndim,
                              const int64_t *shape, unsigned flags,
                              struct dt_error *err)
{
    struct dt_ckpt_tensor new = {.data = data,
                                 .replicated = flags & DT_CKPT_REPLICATED};
    if (!ckpt)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_add_tensor: no handle");
    if (flags & ~(unsigned)DT_CKPT_REPLICATED)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_add_tensor: unknown flags %#x", flags);
    dt_result_t rc = dt_tensor_init(&new.type, name, dtype, ndim, shape, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!data && new.type.bytes > 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "tensor %s has no data",
                            name);
    for (size_t i = 0; i < ckpt->count; i++)
        if (strcmp(ckpt->tensor[i].type.name, name) == 0)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "there is a tensor %s already", name);
    rc = grow(ckpt);
    if (rc == DT_SUCCESS)
        ckpt->tensor[ckpt->count++] = new;
    return rc;
}

dt_result_t dt_ckpt_add_tensor(dt_ckpt_t ckpt, const char *name, void *data,
                               dt_dtype_t dtype, int ndim, const int64_t *shape,
                               unsigned flags)
{
    struct dt_error err = {0};
    return dt_api_return(
        add_tensor(ckpt, name, data, dtype, ndim, shape, flags, &err), &err);
}

uint64_t dt_ckpt_fingerprint(const struct dt_ckpt *ckpt)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ckpt->count; i++) {
        const struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        /* dt_tensor_init cleared what is beyond the name and the shape */
        uint64_t part[3] = {sum, dt_checksum(&t->type, sizeof(t->type)),
                            t->replicated};
        sum = dt_checksum(part, sizeof(part));
    }
    return sum;
}

/* ---- saving and loading ---- */

dt_result_t dt_ckpt_save(dt_ckpt_t ckpt, int64_t step)
{
    struct dt_error err = {0};
    dt_result_t rc;
    if (!ckpt || step < 0)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_ckpt_save: expected a handle and a step from 0");
    else if (!dt_comm_world())
        rc = DT_ERR_NOT_INITIALIZED;
    else
        rc = dt_ckpt_do_save(ckpt, step, &err);
    return dt_api_return(rc, &err);
}

dt_result_t dt_ckpt_load(dt_ckpt_t ckpt, int64_t *step)
{
    struct dt_error err = {0};
    dt_result_t rc;
    if (!ckpt || !step)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_ckpt_load: expected a handle and where to put "
                          "the step");
    else if (!dt_comm_world())
        rc = DT_ERR_NOT_INITIALIZED;
    else
        rc = dt_ckpt_do_load(ckpt, step, &err);
    return dt_api_return(rc, &err);
}
