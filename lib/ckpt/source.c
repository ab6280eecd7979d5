/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* source.c - a checkpoint that is open for reading. */
#include "ckpt/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static dt_result_t open_file(struct dt_reader *reader, int file,
                             struct dt_error *err)
{
    dt_reader_close(reader);
    reader->file = file;
    return dt_manifest_open_file(&reader->source->manifest, file,
                                 reader->source->fd, &reader->fd, err);
}

dt_result_t dt_reader_read(struct dt_reader *reader, int file, size_t offset,
                           size_t len, void *to, struct dt_error *err)
{
    const struct dt_manifest *manifest = &reader->source->manifest;
    if (file < 0 || (size_t)file >= manifest->nfiles ||
        offset > manifest->file[file].size ||
        len > manifest->file[file].size - offset)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "%zu bytes at %zu of file %d are not in the "
                            "checkpoint",
                            len, offset, file);
    if (reader->fd < 0 || reader->file != file) {
        dt_result_t rc = open_file(reader, file, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    ssize_t n = dt_file_read(reader->fd, to, len, (off_t)offset);
    if (n == (ssize_t)len)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_CORRUPT, "%s: %s",
                        manifest->file[file].name,
                        n < 0 ? strerror(errno) : "truncated");
}

void dt_reader_close(struct dt_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
}

void dt_source_close(struct dt_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    dt_manifest_clear(&source->manifest);
    free(source->holder);
    free(source->text);
    *source = (struct dt_source){.fd = -1};
}
