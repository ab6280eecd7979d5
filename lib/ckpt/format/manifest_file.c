/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest_file.c - the file manifest.json of a checkpoint. */
#include "ckpt/format/manifest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/checksum.h"
#include "ckpt/format/failure.h"
#include "ckpt/format/manifest_json.h"
#include "ckpt/format/safetensors.h"

/* ---- writing ---- */

dt_result_t dt_manifest_put(int dirfd, const char *text, size_t len,
                            struct dt_error *err)
{
    int fd = openat(dirfd, DT_MANIFEST_TMP,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return dt_failed(err, DT_MANIFEST_TMP);
    dt_result_t rc = DT_SUCCESS;
    if (dt_file_write(fd, text, len) || dt_file_sync(fd))
        rc = dt_failed(err, DT_MANIFEST_TMP);
    if (close(fd) && rc == DT_SUCCESS)
        rc = dt_failed(err, DT_MANIFEST_TMP);
    if (rc == DT_SUCCESS &&
        (renameat(dirfd, DT_MANIFEST_TMP, dirfd, DT_MANIFEST_NAME) ||
         dt_file_sync(dirfd)))
        rc = dt_failed(err, DT_MANIFEST_NAME);
    return rc;
}

/* ---- reading ---- */

dt_result_t dt_manifest_unopened(const char *name, struct dt_error *err)
{
    switch (errno) {
    case ENOENT:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: is missing", name);
    case ENOTDIR:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: is not a directory",
                            name);
    case EINVAL:
    case ELOOP:
    case ENXIO:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: is not a file", name);
    case EIO:
    case ESTALE:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: %s", name,
                            strerror(errno));
    default:
        return dt_failed(err, name);
    }
}

dt_result_t dt_manifest_open_file(const struct dt_manifest *manifest, int f,
                                  int dirfd, int *fd, struct dt_error *err)
{
    const struct dt_manifest_file *want = &manifest->file[f];
    size_t size;
    int in = dt_file_open(dirfd, want->name, &size);
    if (in < 0)
        return dt_manifest_unopened(want->name, err);
    if (size != want->size) {
        close(in);
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "%s: %zu bytes long, expected %zu", want->name,
                            size, want->size);
    }
    *fd = in;
    return DT_SUCCESS;
}

dt_result_t dt_manifest_text(int dirfd, char **text, size_t *len,
                             struct dt_error *err)
{
    size_t size;
    int fd = dt_file_open(dirfd, DT_MANIFEST_NAME, &size);
    if (fd < 0)
        return dt_manifest_unopened(DT_MANIFEST_NAME, err);
    dt_result_t rc = DT_SUCCESS;
    char *found = size <= DT_MANIFEST_MAX ? malloc(size + 8) : NULL;
    ssize_t n = found ? dt_file_read(fd, found, size, 0) : 0;
    if (size > DT_MANIFEST_MAX)
        rc = dt_error_set(err, DT_ERR_CORRUPT, DT_MANIFEST_NAME ": too large");
    else if (!found)
        rc = dt_no_memory(err);
    else if (n < 0)
        rc = dt_error_set(err, DT_ERR_CORRUPT, DT_MANIFEST_NAME ": %s",
                          strerror(errno));
    close(fd);
    if (rc != DT_SUCCESS) {
        free(found);
        return rc;
    }
    *text = found;
    *len = (size_t)n;
    return DT_SUCCESS;
}

/* Set the offsets of the slices in file f from its header. */
static dt_result_t place(struct dt_manifest *manifest, int f,
                         const struct dt_safetensors *st, struct dt_error *err)
{
    struct dt_manifest_file *file = &manifest->file[f];
    file->header = st->count > 0 ? st->entry[0].offset : file->size;
    for (size_t i = 0; i < manifest->count; i++) {
        struct dt_manifest_tensor *t = &manifest->tensor[i];
        /* of one file only, or slice r in file r */
        struct dt_manifest_slice *slice =
            &t->slice[t->kind == DT_MANIFEST_OWN ? f : 0];
        if (slice->file != f)
            continue;
        const struct dt_safetensors_entry *entry =
            dt_safetensors_find(st, t->tensor.name);
        if (!entry || !dt_tensor_same_type(&entry->tensor, &t->tensor))
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "does not hold %s as the manifest says",
                                t->tensor.name);
        slice->offset = entry->offset;
    }
    return DT_SUCCESS;
}

static dt_result_t locate_file(struct dt_manifest *manifest, int dirfd, int f,
                               struct dt_error *err)
{
    const struct dt_manifest_file *want = &manifest->file[f];
    struct dt_safetensors st = {0};
    struct dt_error why = {0};
    int fd;
    dt_result_t rc = dt_manifest_open_file(manifest, f, dirfd, &fd, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = dt_safetensors_read(&st, fd, want->size, &why);
    if (rc == DT_SUCCESS)
        rc = place(manifest, f, &st, &why);
    dt_safetensors_clear(&st);
    close(fd);
    if (rc == DT_ERR_IO)
        rc = DT_ERR_CORRUPT; /* unreadable contents are damage */
    return rc == DT_SUCCESS
               ? rc
               : dt_error_set(err, rc, "%s: %s", want->name, why.text);
}

dt_result_t dt_manifest_locate(struct dt_manifest *manifest, int dirfd,
                               struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    if (manifest->version > 1)
        return rc;
    for (int f = 0; f < (int)manifest->nfiles && rc == DT_SUCCESS; f++)
        rc = locate_file(manifest, dirfd, f, err);
    return rc;
}

dt_result_t dt_manifest_read(struct dt_manifest *manifest, int dirfd,
                             uint64_t *identity, struct dt_error *err)
{
    char *text;
    size_t len;
    struct dt_manifest found = {0};
    dt_result_t rc = dt_manifest_text(dirfd, &text, &len, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = dt_manifest_parse(&found, text, len, err);
    if (rc == DT_SUCCESS)
        rc = dt_manifest_locate(&found, dirfd, err);
    if (rc == DT_SUCCESS) {
        *manifest = found;
        *identity = dt_checksum(text, len);
    } else {
        dt_manifest_clear(&found);
    }
    free(text);
    return rc;
}
