/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* import.c - dt-ckpt import: a checkpoint of files that others wrote. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "files/compose.h"
#include "files/npy.h"
#include "files/npy_name.h"
#include "text/options.h"

/* What has been read so far. */
struct import {
    size_t count, room;
    struct item *item;
    struct dt_tensor *whole; /* [count] once all are there */
};

static dt_result_t add(struct import *import, const char *path,
                       const struct dt_tensor *tensor, size_t offset,
                       struct dt_error *err)
{
    if (import->count == import->room) {
        size_t room = import->room ? 2 * import->room : 64;
        void *more = realloc(import->item, room * sizeof(*import->item));
        if (!more)
            return dt_no_memory(err);
        import->item = more;
        import->room = room;
    }
    import->item[import->count++] = (struct item){
        .tensor = *tensor,
        .origin = {.path = path, .offset = offset, .bytes = tensor->bytes},
        .kind = DT_MANIFEST_GLOBAL,
        .replicated = true};
    return DT_SUCCESS;
}

static dt_result_t add_npy(struct import *import, int fd, size_t size,
                           const char *path, struct dt_error *err)
{
    char name[DT_TENSOR_NAME_MAX + 1];
    struct dt_tensor tensor;
    size_t offset;
    if (!npy_name_parse(path, name, sizeof(name)))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "its name is too long for a tensor");
    dt_result_t rc = npy_read(fd, size, name, &tensor, &offset, err);
    return rc == DT_SUCCESS ? add(import, path, &tensor, offset, err) : rc;
}

static dt_result_t add_safetensors(struct import *import, int fd, size_t size,
                                   const char *path, struct dt_error *err)
{
    struct dt_safetensors st;
    dt_result_t rc = dt_safetensors_read(&st, fd, size, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < st.count && rc == DT_SUCCESS; i++)
        rc = add(import, path, &st.entry[i].tensor, st.entry[i].offset, err);
    dt_safetensors_clear(&st);
    return rc;
}

static dt_result_t add_file(struct import *import, const char *path,
                            struct dt_error *err)
{
    size_t size;
    int fd = dt_file_open_any(AT_FDCWD, path, &size);
    if (fd < 0)
        return errno == EINVAL
                   ? dt_error_set(err, DT_ERR_INVALID_ARG,
                                  "%s: expected a regular file", path)
                   : dt_failed(err, path);
    dt_result_t rc = npy_is(fd) ? add_npy(import, fd, size, path, err)
                                : add_safetensors(import, fd, size, path, err);
    close(fd);
    return rc == DT_SUCCESS ? rc : dt_failed_in(err, path, rc);
}

static void describe(struct dt_manifest *head, int64_t step)
{
    struct tm tm;
    time_t now = time(NULL);
    *head = (struct dt_manifest){.step = step,
                                 .run_id = "import",
                                 .redundancy = "none",
                                 .world_size = 1,
                                 .num_nodes = 1};
    if (gmtime_r(&now, &tm))
        strftime(head->created, sizeof(head->created), "%Y-%m-%dT%H:%M:%SZ",
                 &tm);
}

dt_result_t command_import(const struct options *options, int *status,
                           struct dt_error *err)
{
    struct import import = {0};
    struct dt_manifest head;
    dt_result_t rc = DT_SUCCESS;
    int last = options->nargs - 1;
    (void)status;
    for (int i = 0; i < last && rc == DT_SUCCESS; i++)
        rc = add_file(&import, options->arg[i], err);
    if (rc == DT_SUCCESS &&
        !(import.whole = calloc(import.count + 1, sizeof(*import.whole))))
        rc = dt_no_memory(err);
    for (size_t i = 0; i < import.count && rc == DT_SUCCESS; i++) {
        import.whole[i] = import.item[i].tensor;
        import.item[i].whole = &import.whole[i];
    }
    if (rc == DT_SUCCESS) {
        struct rank_items ranks = {import.count, import.item};
        describe(&head, options->step);
        rc = compose(options->arg[last], &head, &ranks, options->force, err);
    }
    free(import.whole);
    items_free(import.item, import.count);
    return rc;
}
