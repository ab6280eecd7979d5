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
#include "files/rank_name.h"
#include "text/options.h"

/* What has been read so far. */
struct import {
    size_t count, room;
    struct item *item;
    struct dt_tensor
        *whole; /* [count] once all are there: under its own name */
    int ranks;
    struct rank_items *part; /* [ranks] what each writes */
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

/* ---- whose they are ---- */

/* A tensor with the name of a blob, but not the type of one, is none. */
static bool parse_name(const struct dt_tensor *tensor, size_t *len,
                       enum dt_manifest_kind *kind, int *rank)
{
    return rank_name_parse(tensor->name, len, kind, rank) &&
           (*kind == DT_MANIFEST_OWN ||
            (tensor->dtype == DT_DTYPE_U8 && tensor->ndim == 1));
}

/* The rank that writes item i. */
static int rank_of(const struct import *import, size_t i)
{
    enum dt_manifest_kind kind;
    size_t len;
    int rank;
    return parse_name(&import->item[i].tensor, &len, &kind, &rank) && rank > 0
               ? rank
               : 0;
}

static int by_name(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return strcmp(x->whole->name, y->whole->name);
}

/* Under the name without its end: global, or a rank's. */
static void set_whole(struct import *import, size_t i)
{
    struct item *item = &import->item[i];
    struct dt_tensor *whole = &import->whole[i];
    enum dt_manifest_kind kind;
    size_t len;
    int rank;
    *whole = item->tensor;
    item->whole = whole;
    if (!parse_name(&item->tensor, &len, &kind, &rank))
        return;
    memset(whole->name + len, 0, sizeof(whole->name) - len);
    item->kind = kind;
    item->replicated = rank < 0;
}

/* Has the next rank a tensor of the same name and type, or a blob? If that is
 * true of each, each rank has one. */
static dt_result_t check_own(const struct import *import, int rank,
                             const struct item *item, struct dt_error *err)
{
    int next = (rank + 1) % import->ranks;
    const struct rank_items *part = &import->part[next];
    const struct item *other =
        part->n > 0 ? bsearch(item, part->item, part->n, sizeof(*item), by_name)
                    : NULL;
    const struct dt_tensor *type = item->whole;
    const char *what = item->kind == DT_MANIFEST_BLOB ? "blob" : "rank";
    if (!other || other->kind != item->kind)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "there is %s.%s-%d, but no %s.%s-%d: expected one "
                            "of each of %d ranks",
                            type->name, what, rank, type->name, what, next,
                            import->ranks);
    if (item->kind == DT_MANIFEST_BLOB)
        return DT_SUCCESS;
    if (other->whole->dtype != type->dtype ||
        other->whole->ndim != type->ndim ||
        memcmp(other->whole->shape, type->shape, sizeof(type->shape)) != 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s.rank-%d and %s.rank-%d: expected the same type "
                            "and shape",
                            type->name, rank, type->name, next);
    return DT_SUCCESS;
}

static dt_result_t check_ranks(const struct import *import,
                               struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (int r = 0; r < import->ranks; r++)
        if (import->part[r].n > 0)
            qsort(import->part[r].item, import->part[r].n,
                  sizeof(*import->part[r].item), by_name);
    for (int r = 0; r < import->ranks; r++)
        for (size_t i = 0; i < import->part[r].n && rc == DT_SUCCESS; i++)
            if (import->part[r].item[i].kind != DT_MANIFEST_GLOBAL &&
                !import->part[r].item[i].replicated)
                rc = check_own(import, r, &import->part[r].item[i], err);
    return rc;
}

/* Give the ranks what is theirs; what all have is rank 0's. */
static dt_result_t divide(struct import *import, struct dt_error *err)
{
    import->ranks = 1;
    for (size_t i = 0; i < import->count; i++)
        if (rank_of(import, i) >= import->ranks)
            import->ranks = rank_of(import, i) + 1;
    import->whole = calloc(import->count + 1, sizeof(*import->whole));
    import->part = calloc((size_t)import->ranks, sizeof(*import->part));
    if (!import->whole || !import->part)
        return dt_no_memory(err);
    for (size_t i = 0; i < import->count; i++) {
        struct rank_items *part = &import->part[rank_of(import, i)];
        set_whole(import, i);
        void *more = realloc(part->item, (part->n + 1) * sizeof(*part->item));
        if (!more)
            return dt_no_memory(err);
        part->item = more;
        part->item[part->n] = import->item[i];
        strcpy(part->item[part->n++].tensor.name, import->whole[i].name);
    }
    return check_ranks(import, err);
}

static void import_free(struct import *import)
{
    for (int r = 0; r < import->ranks && import->part; r++)
        items_free(import->part[r].item, import->part[r].n);
    free(import->part);
    free(import->whole);
    free(import->item);
}

/* ---- all together ---- */

static void describe(struct dt_manifest *head, int64_t step, int ranks)
{
    struct tm tm;
    time_t now = time(NULL);
    *head = (struct dt_manifest){.step = step,
                                 .run_id = "import",
                                 .redundancy = "none",
                                 .world_size = ranks,
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
    if (rc == DT_SUCCESS)
        rc = divide(&import, err);
    if (rc == DT_SUCCESS) {
        describe(&head, options->step, import.ranks);
        rc = compose(options->arg[last], &head, import.part, options->force,
                     err);
    }
    import_free(&import);
    return rc;
}
