/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* export.c - dt-ckpt export: a checkpoint for other programs, as one
 * safetensors file or as .npy files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "files/npy.h"
#include "files/npy_name.h"
#include "files/outfile.h"
#include "files/rank_name.h"
#include "files/shard_file.h"
#include "text/options.h"
#include "text/terminal.h"

/* ---- what there is ---- */

static dt_result_t make_item(struct item *item, struct checkpoint *c,
                             const struct dt_manifest_tensor *t, int rank,
                             struct dt_error *err)
{
    char name[RANK_NAME_MAX];
    struct dt_tensor type = t->tensor;
    item->origin = origin_of(c, t, rank);
    rank_name_print(name, t, rank);
    if (t->kind == DT_MANIFEST_BLOB) {
        const struct dt_manifest_slice *own = own_slice(t, item->origin.rank);
        type.dtype = DT_DTYPE_U8;
        type.ndim = 1;
        type.shape[0] = own ? (int64_t)own->bytes : 0;
    }
    return dt_tensor_init(&item->tensor, name, type.dtype, type.ndim,
                          type.shape, err);
}

static dt_result_t make_items(struct checkpoint *c, struct item **items,
                              size_t *count, struct dt_error *err)
{
    const struct dt_manifest *m = &c->manifest;
    size_t n = 0, used = 0;
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < m->count; i++)
        n += m->tensor[i].kind == DT_MANIFEST_GLOBAL ? 1 : m->tensor[i].nslices;
    struct item *item = calloc(n + 1, sizeof(*item));
    if (!item)
        return dt_no_memory(err);
    for (size_t i = 0; i < m->count && rc == DT_SUCCESS; i++) {
        const struct dt_manifest_tensor *t = &m->tensor[i];
        bool one = t->kind == DT_MANIFEST_GLOBAL || t->replicated;
        for (size_t s = 0; s < (one ? 1 : t->nslices) && rc == DT_SUCCESS; s++)
            rc =
                make_item(&item[used++], c, t, one ? 0 : t->slice[s].rank, err);
    }
    if (rc != DT_SUCCESS) {
        items_free(item, used);
        return rc;
    }
    *items = item;
    *count = used;
    return DT_SUCCESS;
}

/* ---- one file ---- */

static dt_result_t export_file(struct item *item, size_t n, const char *path,
                               bool force, struct dt_error *err)
{
    struct outfile out;
    struct dt_manifest_file file;
    dt_result_t rc = outfile_open(&out, AT_FDCWD, path, force, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = shard_file_write(out.fd, path, item, n, &file, err);
    return outfile_close(&out, rc, err);
}

/* ---- a folder of them ---- */

static dt_result_t export_array(const struct item *item, int dirfd, bool force,
                                struct dt_error *err)
{
    char name[NAME_MAX + 1];
    struct outfile out;
    dt_result_t rc = npy_name_of(item->tensor.name, name, err);
    if (rc == DT_SUCCESS)
        rc = outfile_open(&out, dirfd, name, force, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = npy_write(out.fd, name, &item->tensor, &item->origin, err);
    return outfile_close(&out, rc, err);
}

static dt_result_t export_arrays(const struct item *item, size_t n, int dirfd,
                                 bool force, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    size_t wide = 0;
    for (size_t i = 0; i < n && rc == DT_SUCCESS; i++) {
        rc = export_array(&item[i], dirfd, force, err);
        wide += npy_widens(item[i].tensor.dtype);
    }
    if (rc == DT_SUCCESS && wide > 0)
        note(stderr, "NumPy has no BF16 and no F8: %zu tensors are F32 instead",
             wide);
    return rc;
}

/* Into a directory that is there: file by file. */
static dt_result_t export_into(const struct item *item, size_t n, int fd,
                               const char *path, bool force,
                               struct dt_error *err)
{
    if (!force)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s is there already; --force replaces the files "
                            "of the same names in it",
                            path);
    return export_arrays(item, n, fd, true, err);
}

/* Into a new one, which gets its name when it is complete. */
static dt_result_t export_new(const struct item *item, size_t n,
                              const char *path, struct dt_error *err)
{
    char *tmp;
    if (asprintf(&tmp, "%s.tmp-%ld", path, (long)getpid()) < 0)
        return dt_no_memory(err);
    dt_result_t rc = mkdir(tmp, 0777) ? dt_failed(err, path) : DT_SUCCESS;
    int fd = rc == DT_SUCCESS ? dt_store_open(tmp) : -1;
    if (rc == DT_SUCCESS && fd < 0)
        rc = dt_failed(err, path);
    if (fd >= 0) {
        rc = export_arrays(item, n, fd, false, err);
        if (rc == DT_SUCCESS &&
            renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_NOREPLACE) &&
            (errno == EEXIST || rename(tmp, path)))
            rc = dt_failed(err, path);
        close(fd);
        if (rc != DT_SUCCESS)
            dt_store_remove(AT_FDCWD, tmp, NULL);
    }
    free(tmp);
    return rc;
}

static dt_result_t export_numpy(const struct item *item, size_t n,
                                const char *path, bool force,
                                struct dt_error *err)
{
    char plain[PATH_MAX]; /* without a slash at its end */
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= sizeof(plain))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--numpy: too long a "
                            "path");
    memcpy(plain, path, len);
    plain[len] = '\0';
    int fd = dt_store_open(plain);
    if (fd < 0 && errno != ENOENT)
        return dt_failed(err, plain);
    if (fd < 0)
        return export_new(item, n, plain, err);
    dt_result_t rc = export_into(item, n, fd, plain, force, err);
    close(fd);
    return rc;
}

dt_result_t command_export(const struct options *options, int *status,
                           struct dt_error *err)
{
    struct checkpoint c;
    struct item *item = NULL;
    size_t n = 0;
    (void)status;
    dt_result_t rc = checkpoint_open(&c, options->arg[0], err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = make_items(&c, &item, &n, err);
    if (rc == DT_SUCCESS) {
        bar_start("export", c.bytes);
        rc = options->numpy
                 ? export_numpy(item, n, options->numpy, options->force, err)
                 : export_file(item, n, options->arg[1], options->force, err);
        progress_end();
        items_free(item, n);
    }
    checkpoint_close(&c);
    return rc;
}
