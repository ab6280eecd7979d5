/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stream.c - the bytes of a tensor in row-major order, piece by piece. */
#include "files/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"
#include "text/interrupt.h"
#include "text/terminal.h"

const struct dt_manifest_slice *
own_slice(const struct dt_manifest_tensor *tensor, int rank)
{
    if ((size_t)rank < tensor->nslices && tensor->slice[rank].rank == rank)
        return &tensor->slice[rank]; /* as it mostly is */
    for (size_t i = 0; i < tensor->nslices; i++)
        if (tensor->slice[i].rank == rank || tensor->replicated)
            return &tensor->slice[i];
    return NULL;
}

struct origin origin_of(struct checkpoint *c,
                        const struct dt_manifest_tensor *tensor, int rank)
{
    const struct dt_tensor *t = &tensor->tensor;
    return (struct origin){.checkpoint = c,
                           .tensor = tensor,
                           .rank = rank,
                           .n = t->ndim > 0 ? t->shape[0] : 1};
}

/* How much there is of a tensor, and where it begins. */
static void measure_tensor(struct stream *s)
{
    const struct origin *o = &s->origin;
    const struct dt_tensor *t = &o->tensor->tensor;
    s->size = dt_dtype_size(t->dtype);
    s->total = s->size * (size_t)o->n;
    for (int i = 1; i < t->ndim; i++)
        s->total *= (size_t)t->shape[i];
    if (t->ndim > 0)
        s->next[0] = o->at;
    if (o->tensor->kind != DT_MANIFEST_GLOBAL) {
        s->own = own_slice(o->tensor, o->rank);
        s->total = s->own ? s->own->bytes : 0;
    }
}

dt_result_t stream_open(struct stream *stream, const struct origin *origin,
                        struct dt_error *err)
{
    struct stream s = {
        .origin = *origin, .total = origin->bytes, .size = 1, .fd = -1};
    size_t size;
    if (origin->tensor)
        measure_tensor(&s);
    else if ((s.fd = dt_file_open_any(AT_FDCWD, origin->path, &size)) < 0)
        return dt_failed(err, origin->path);
    s.piece = malloc(STREAM_PIECE);
    s.raw = malloc(STREAM_PIECE);
    if (!s.piece || !s.raw) {
        stream_close(&s);
        return dt_no_memory(err);
    }
    *stream = s;
    return DT_SUCCESS;
}

void stream_close(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->piece);
    free(stream->raw);
    *stream = (struct stream){.fd = -1};
}

/* ---- one after the other ---- */

static dt_result_t next_of_file(struct stream *s, size_t len,
                                struct dt_error *err)
{
    const struct origin *o = &s->origin;
    ssize_t n =
        dt_file_read(s->fd, s->piece, len, (off_t)(o->offset + s->done));
    if (n < 0)
        return dt_failed(err, o->path);
    return (size_t)n == len
               ? DT_SUCCESS
               : dt_error_set(err, DT_ERR_CORRUPT,
                              "%s: truncated while it was read", o->path);
}

/* ---- put together ---- */

/* The next window of a tensor: a box whose elements follow each other, at most
 * a piece of them. Sets s->next to the element after it. */
static void next_window(struct stream *s, int64_t *at, int64_t *extent)
{
    const struct dt_tensor *t = &s->origin.tensor->tensor;
    size_t inner = s->size;
    int d = t->ndim - 1; /* along which the window stretches */
    for (int i = 0; i < t->ndim; i++)
        at[i] = s->next[i];
    for (; d > 0 && inner * (size_t)t->shape[d] <= STREAM_PIECE; d--) {
        extent[d] = t->shape[d];
        inner *= (size_t)t->shape[d];
    }
    if (d < 0)
        return;
    int64_t end = d == 0 ? s->origin.at + s->origin.n : t->shape[d];
    int64_t most = (int64_t)(STREAM_PIECE / inner);
    extent[d] = end - at[d] < most ? end - at[d] : most;
    for (int i = 0; i < d; i++)
        extent[i] = 1;
    s->next[d] += extent[d];
    for (int i = d; i > 0 && s->next[i] == t->shape[i]; i--) {
        s->next[i] = 0;
        s->next[i - 1]++;
    }
}

struct copy {
    struct stream *stream;
    size_t low, high; /* elements of the slice */
};

static bool measure(size_t from, size_t to, size_t n, void *arg)
{
    struct copy *copy = arg;
    (void)to;
    copy->low = from < copy->low ? from : copy->low;
    copy->high = from + n > copy->high ? from + n : copy->high;
    return true;
}

static bool place(size_t from, size_t to, size_t n, void *arg)
{
    const struct copy *copy = arg;
    struct stream *s = copy->stream;
    memcpy(s->piece + to * s->size, s->raw + (from - copy->low) * s->size,
           n * s->size);
    return true;
}

/* What the window has in common with a slice is one run of the slice, as the
 * window has whole rows. */
static dt_result_t fill_from(struct stream *s, const struct dt_slice *window,
                             const struct dt_manifest_slice *slice,
                             struct dt_error *err)
{
    struct dt_slice part = {window->ndim, slice->at, slice->extent};
    struct copy copy = {s, SIZE_MAX, 0};
    dt_slice_runs(&part, window, measure, &copy);
    if (copy.high == 0)
        return DT_SUCCESS;
    if ((copy.high - copy.low) * s->size > STREAM_PIECE)
        return dt_error_set(err, DT_ERR_CORRUPT, "tensor %s: impossible slices",
                            s->origin.tensor->tensor.name);
    dt_result_t rc =
        checkpoint_read(s->origin.checkpoint, slice, copy.low * s->size,
                        copy.high * s->size, s->raw, err);
    if (rc == DT_SUCCESS)
        dt_slice_runs(&part, window, place, &copy);
    return rc;
}

static dt_result_t next_of_slices(struct stream *s, size_t *len,
                                  struct dt_error *err)
{
    const struct dt_manifest_tensor *t = s->origin.tensor;
    int64_t at[DT_TENSOR_DIMS_MAX], extent[DT_TENSOR_DIMS_MAX];
    dt_result_t rc = DT_SUCCESS;
    next_window(s, at, extent);
    struct dt_slice window = {t->tensor.ndim, at, extent};
    *len = dt_slice_count(&window) * s->size;
    for (size_t i = 0; i < t->nslices && rc == DT_SUCCESS; i++)
        if (t->slice[i].bytes > 0)
            rc = fill_from(s, &window, &t->slice[i], err);
    return rc;
}

dt_result_t stream_next(struct stream *stream, const void **data, size_t *len,
                        struct dt_error *err)
{
    size_t rest = stream->total - stream->done;
    size_t n = rest < STREAM_PIECE ? rest : STREAM_PIECE;
    dt_result_t rc = interrupt_check(err);
    if (rc != DT_SUCCESS)
        return rc;
    if (rest > 0) {
        if (!stream->origin.tensor)
            rc = next_of_file(stream, n, err);
        else if (stream->own)
            rc = checkpoint_read(stream->origin.checkpoint, stream->own,
                                 stream->done, stream->done + n, stream->piece,
                                 err);
        else
            rc = next_of_slices(stream, &n, err);
    }
    if (rc != DT_SUCCESS)
        return rc;
    stream->done += n;
    bar_add(n);
    *data = stream->piece;
    *len = n;
    return DT_SUCCESS;
}
