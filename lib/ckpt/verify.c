/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.c - is a file what the manifest says? */
#include "ckpt/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ckpt/checksum.h"

static dt_result_t unread(ssize_t n, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_CORRUPT, "%s",
                        n < 0 ? strerror(errno) : "truncated");
}

static dt_result_t check_slice(const struct dt_manifest_tensor *tensor,
                               const struct dt_manifest_slice *slice, int fd,
                               void *block, struct dt_error *err)
{
    for (size_t at = 0; at < slice->bytes; at += DT_MANIFEST_BLOCK) {
        size_t left = slice->bytes - at;
        size_t len = left < DT_MANIFEST_BLOCK ? left : DT_MANIFEST_BLOCK;
        ssize_t n = dt_file_read(fd, block, len, (off_t)(slice->offset + at));
        if (n != (ssize_t)len)
            return unread(n, err);
        if (dt_checksum(block, len) != slice->sum[at / DT_MANIFEST_BLOCK])
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "tensor %s: checksum differs",
                                tensor->tensor.name);
    }
    return DT_SUCCESS;
}

static dt_result_t check_header(const struct dt_manifest_file *file, int fd,
                                struct dt_error *err)
{
    uint64_t sum;
    size_t bytes = file->header > 0 ? file->header : file->size;
    dt_result_t rc = dt_checksum_file(fd, bytes, &sum, err);
    if (rc == DT_ERR_IO)
        rc = DT_ERR_CORRUPT;
    if (rc == DT_SUCCESS && sum != file->checksum)
        rc = dt_error_set(err, DT_ERR_CORRUPT, "checksum differs");
    return rc;
}

dt_result_t dt_verify_file(const struct dt_manifest *manifest, int file, int fd,
                           struct dt_error *err)
{
    dt_result_t rc = check_header(&manifest->file[file], fd, err);
    void *block = malloc(DT_MANIFEST_BLOCK);
    if (!block)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    for (size_t t = 0; t < manifest->count && rc == DT_SUCCESS; t++) {
        const struct dt_manifest_tensor *tensor = &manifest->tensor[t];
        for (size_t s = 0; s < tensor->nslices && rc == DT_SUCCESS; s++)
            if (tensor->slice[s].file == file && tensor->slice[s].sum)
                rc = check_slice(tensor, &tensor->slice[s], fd, block, err);
    }
    free(block);
    return rc;
}
