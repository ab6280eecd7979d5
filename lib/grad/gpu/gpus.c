/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpus.c - memory of GPUs: places, events, streams and pinned memory. */
#include "grad/gpu/gpus.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/engine/engine.h"
#include "grad/item.h"

#define LINE      64            /* bytes of a signal, and before the data */
#define LEAST     256           /* bytes of data */
#define KEPT_MOST (64ul << 20)  /* bytes of pinned memory that nobody uses */
#define MOMENT    (100 * 1000L) /* nanoseconds between looks at a stream */

/* An event of a device, recorded for an item or free. */
struct dt_mark {
    int device;
    void *event;
    struct dt_mark *next; /* of the free ones */
    struct dt_mark *older;
};

struct stream {
    int device;
    enum dt_gpus_use use;
    const struct dt_grad_plan *plan;
    dt_stream_t stream;
    struct stream *next;
};

struct dt_gpus {
    struct dt_gpu *gpu;
    pthread_mutex_t lock; /* of the marks */
    struct dt_mark *free, *newest;
    struct stream *streams;
    struct dt_pinned *kept;
    size_t kept_bytes;
    bool stuck; /* a GPU may still use what is ours */
};

static const struct dt_gpu_ops *ops_of(const struct dt_grad *grad)
{
    return grad->gpus->gpu->ops;
}

/* ---- opening and closing ---- */

dt_result_t dt_gpus_open(struct dt_grad *grad, struct dt_error *err)
{
    const struct dt_device *device = grad->world->world->device;
    if (!device)
        return DT_SUCCESS;
    struct dt_gpus *gpus = calloc(1, sizeof(*gpus));
    if (!gpus)
        return dt_no_memory(err);
    gpus->gpu = device->gpu;
    pthread_mutex_init(&gpus->lock, NULL);
    grad->gpus = gpus;
    return DT_SUCCESS;
}

static void free_pinned(struct dt_grad *grad, struct dt_pinned *pinned)
{
    ops_of(grad)->host_free(grad->gpus->gpu, (void *)pinned->signal);
    free(pinned);
}

static void free_stream(struct dt_gpus *gpus, struct stream **at)
{
    struct stream *stream = *at;
    *at = stream->next;
    if (!gpus->stuck)
        gpus->gpu->ops->stream_destroy(gpus->gpu, stream->stream);
    free(stream);
}

/* What a GPU may still use stays until the process ends, or libdt closes its
 * device: to free it would wait for the GPU. */
void dt_gpus_close(struct dt_grad *grad)
{
    struct dt_gpus *gpus = grad->gpus;
    if (!gpus)
        return;
    while (gpus->streams)
        free_stream(gpus, &gpus->streams);
    while (gpus->kept && !gpus->stuck) {
        struct dt_pinned *pinned = gpus->kept;
        gpus->kept = pinned->next;
        free_pinned(grad, pinned);
    }
    while (gpus->newest) {
        struct dt_mark *mark = gpus->newest;
        gpus->newest = mark->older;
        gpus->gpu->ops->event_destroy(gpus->gpu, mark->device, mark->event);
        free(mark);
    }
    pthread_mutex_destroy(&gpus->lock);
    free(gpus);
    grad->gpus = NULL;
}

/* ---- marks ---- */

static struct dt_mark *find_mark(struct dt_gpus *gpus, int device)
{
    struct dt_mark **at = &gpus->free;
    pthread_mutex_lock(&gpus->lock);
    while (*at && (*at)->device != device)
        at = &(*at)->next;
    struct dt_mark *mark = *at;
    if (mark)
        *at = mark->next;
    pthread_mutex_unlock(&gpus->lock);
    return mark;
}

static dt_result_t make_mark(struct dt_gpus *gpus, int device,
                             struct dt_mark **out, struct dt_error *err)
{
    struct dt_mark *mark = calloc(1, sizeof(*mark));
    if (!mark)
        return dt_no_memory(err);
    mark->device = device;
    dt_result_t rc =
        gpus->gpu->ops->event_create(gpus->gpu, device, &mark->event, err);
    if (rc != DT_SUCCESS) {
        free(mark);
        return rc;
    }
    pthread_mutex_lock(&gpus->lock);
    mark->older = gpus->newest;
    gpus->newest = mark;
    pthread_mutex_unlock(&gpus->lock);
    *out = mark;
    return DT_SUCCESS;
}

void dt_gpus_unmark(struct dt_grad *grad, struct dt_item *item)
{
    struct dt_mark *mark = item->mark;
    if (!mark)
        return;
    item->mark = NULL;
    pthread_mutex_lock(&grad->gpus->lock);
    mark->next = grad->gpus->free;
    grad->gpus->free = mark;
    pthread_mutex_unlock(&grad->gpus->lock);
}

static dt_result_t mark(struct dt_grad *grad, struct dt_item *item,
                        dt_stream_t stream, struct dt_error *err)
{
    struct dt_gpus *gpus = grad->gpus;
    dt_result_t rc = DT_SUCCESS;
    dt_gpus_unmark(grad, item);
    item->mark = find_mark(gpus, item->device);
    if (!item->mark)
        rc = make_mark(gpus, item->device, &item->mark, err);
    if (rc == DT_SUCCESS)
        rc = gpus->gpu->ops->event_record(gpus->gpu, item->device,
                                          item->mark->event, stream, err);
    if (rc != DT_SUCCESS)
        dt_gpus_unmark(grad, item);
    return rc;
}

dt_result_t dt_gpus_follow(struct dt_grad *grad, struct dt_item *item,
                           dt_stream_t stream, struct dt_error *err)
{
    if (!item->mark) /* it was waited for already */
        return DT_SUCCESS;
    dt_result_t rc = ops_of(grad)->event_await(grad->gpus->gpu, item->device,
                                               item->mark->event, stream, err);
    dt_gpus_unmark(grad, item);
    return rc;
}

/* ---- places ---- */

/* The device of a buffer, -1 for memory of the host. */
static dt_result_t locate(struct dt_grad *grad, const void *ptr, size_t bytes,
                          int *device, struct dt_error *err)
{
    struct dt_gpu_place place;
    *device = -1;
    if (!grad->gpus || !ptr || bytes == 0)
        return DT_SUCCESS;
    dt_result_t rc =
        ops_of(grad)->locate(grad->gpus->gpu, ptr, bytes, &place, err);
    if (rc == DT_SUCCESS &&
        (place.kind == DT_GPU_MEMORY || place.kind == DT_GPU_MANAGED))
        *device = place.device;
    return rc;
}

static const char *name_place(int device, char text[32])
{
    if (device < 0)
        return "in the memory of the host";
    snprintf(text, 32, "on GPU %d", device);
    return text;
}

static dt_result_t no_gpu(struct dt_grad *grad, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "a tensor with a stream of a GPU, but libdt has %s: "
                        "pass a tensor in the memory of the host",
                        grad->world->world->no_device.text);
}

static dt_result_t check_buffers(const struct dt_item *item, int in, int out,
                                 dt_stream_t stream, struct dt_error *err)
{
    const char *kind = dt_item_kind(item->type.kind);
    char here[32], there[32];
    if (in != out)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: in is %s, but out %s: both are in one place",
                            kind, name_place(in, here), name_place(out, there));
    if (in < 0 && stream)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: there is a stream, but the buffers are in the "
                            "memory of the host, or were freed: pass memory of "
                            "a GPU, or DT_STREAM_NONE",
                            kind);
    if (in >= 0 && item->type.kind == DT_GRAD_ALLREDUCE &&
        ((uintptr_t)item->in | (uintptr_t)item->out) % item->type.element)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: a buffer is not aligned to its elements of "
                            "%u bytes",
                            kind, item->type.element);
    return DT_SUCCESS;
}

static dt_result_t place(struct dt_grad *grad, struct dt_item *item,
                         const struct dt_grad_set *set, dt_stream_t stream,
                         struct dt_error *err)
{
    const size_t in_bytes = dt_item_in_bytes(item, set);
    const size_t out_bytes = dt_item_out_bytes(item, set);
    int in, out;
    if (in_bytes == 0 && out_bytes == 0) {
        item->type.place = stream ? DT_PLACE_GPU : DT_PLACE_ANY;
        return DT_SUCCESS;
    }
    dt_result_t rc = locate(grad, item->in, in_bytes, &in, err);
    if (rc == DT_SUCCESS)
        rc = locate(grad, item->out, out_bytes, &out, err);
    if (rc == DT_SUCCESS)
        rc = check_buffers(item, in_bytes ? in : out, out_bytes ? out : in,
                           stream, err);
    if (rc != DT_SUCCESS)
        return rc;
    item->device = in_bytes ? in : out;
    if (item->device < 0)
        return DT_SUCCESS;
    item->type.place = DT_PLACE_GPU;
    return mark(grad, item, stream, err);
}

dt_result_t dt_gpus_place(struct dt_grad *grad, struct dt_item *item,
                          const struct dt_grad_set *set, dt_stream_t stream,
                          struct dt_error *err)
{
    struct dt_world *world = grad->world->world;
    item->device = -1;
    item->type.place = DT_PLACE_HOST;
    if (!grad->gpus)
        return stream ? no_gpu(grad, err) : DT_SUCCESS;
    dt_result_t rc = place(grad, item, set, stream, err);
    if (rc != DT_ERR_SYSTEM)
        return rc;
    dt_world_lock(world); /* a GPU that is broken stays so: tell the others */
    dt_world_fail(world, rc, err);
    dt_device_step(world);
    dt_world_unlock(world);
    return rc;
}

/* ---- streams ---- */

static dt_result_t make_stream(struct dt_gpus *gpus, const struct stream *like,
                               struct stream **out, struct dt_error *err)
{
    struct stream *stream = malloc(sizeof(*stream));
    if (!stream)
        return dt_no_memory(err);
    *stream = *like;
    dt_result_t rc = gpus->gpu->ops->stream_create(gpus->gpu, stream->device,
                                                   &stream->stream, err);
    if (rc != DT_SUCCESS) {
        free(stream);
        return rc;
    }
    stream->next = gpus->streams;
    gpus->streams = stream;
    *out = stream;
    return DT_SUCCESS;
}

dt_result_t dt_gpus_stream(struct dt_grad *grad, int device,
                           enum dt_gpus_use use,
                           const struct dt_grad_plan *plan, dt_stream_t *out,
                           struct dt_error *err)
{
    const struct stream wanted = {.device = device, .use = use, .plan = plan};
    struct stream *stream = grad->gpus->streams;
    dt_result_t rc = DT_SUCCESS;
    while (stream && (stream->device != device || stream->use != use ||
                      stream->plan != plan))
        stream = stream->next;
    if (!stream)
        rc = make_stream(grad->gpus, &wanted, &stream, err);
    if (rc == DT_SUCCESS)
        *out = stream->stream;
    return rc;
}

void dt_gpus_end_plan(struct dt_grad *grad, const struct dt_grad_plan *plan)
{
    struct stream **at = grad->gpus ? &grad->gpus->streams : NULL;
    while (at && *at)
        if ((*at)->plan == plan)
            free_stream(grad->gpus, at);
        else
            at = &(*at)->next;
}

dt_result_t dt_gpus_copy(struct dt_grad *grad, int device, void *dst,
                         const void *src, size_t bytes, dt_stream_t stream,
                         struct dt_error *err)
{
    const struct dt_gpu_copy copy = {
        .dst = dst, .src = src, .len = bytes, .rows = 1};
    return ops_of(grad)->copy(grad->gpus->gpu, device, &copy, stream, err);
}

dt_result_t dt_gpus_convert(struct dt_grad *grad, int device,
                            const struct dt_gpu_part *parts, size_t n,
                            dt_stream_t stream, struct dt_error *err)
{
    return ops_of(grad)->convert(grad->gpus->gpu, device, parts, n, stream,
                                 err);
}

/* ---- memory of the engine ---- */

dt_result_t dt_gpus_alloc(struct dt_grad *grad, int device, size_t bytes,
                          void **data, struct dt_error *err)
{
    return ops_of(grad)->share_alloc(grad->gpus->gpu, device, bytes, data, NULL,
                                     err);
}

void dt_gpus_free(struct dt_grad *grad, void *data)
{
    struct dt_error err;
    if (data && !grad->gpus->stuck)
        ops_of(grad)->share_free(grad->gpus->gpu, data, &err);
}

static dt_result_t make_pinned(struct dt_grad *grad, int device, size_t bytes,
                               struct dt_pinned **out, struct dt_error *err)
{
    size_t room = LEAST;
    void *memory;
    while (room < bytes)
        room *= 2;
    struct dt_pinned *pinned = calloc(1, sizeof(*pinned));
    if (!pinned)
        return dt_no_memory(err);
    dt_result_t rc = ops_of(grad)->host_alloc(grad->gpus->gpu, device,
                                              LINE + room, &memory, err);
    if (rc != DT_SUCCESS) {
        free(pinned);
        return rc;
    }
    *pinned = (struct dt_pinned){.device = device,
                                 .bytes = room,
                                 .signal = memory,
                                 .data = (unsigned char *)memory + LINE};
    *out = pinned;
    return DT_SUCCESS;
}

dt_result_t dt_pinned_get(struct dt_grad *grad, int device, size_t bytes,
                          struct dt_pinned **out, struct dt_error *err)
{
    struct dt_pinned **at = &grad->gpus->kept, **best = NULL;
    for (; *at; at = &(*at)->next)
        if ((*at)->device == device && (*at)->bytes >= bytes &&
            (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    if (!best || (*best)->bytes / 4 > bytes + LEAST)
        return make_pinned(grad, device, bytes, out, err);
    *out = *best;
    *best = (*best)->next;
    grad->gpus->kept_bytes -= (*out)->bytes;
    return DT_SUCCESS;
}

void dt_pinned_put(struct dt_grad *grad, struct dt_pinned *pinned)
{
    struct dt_gpus *gpus = grad->gpus;
    if (!pinned || gpus->stuck)
        return;
    if (gpus->kept_bytes + pinned->bytes > KEPT_MOST) {
        free_pinned(grad, pinned);
        return;
    }
    gpus->kept_bytes += pinned->bytes;
    pinned->next = gpus->kept;
    gpus->kept = pinned;
}

dt_result_t dt_pinned_signal(struct dt_grad *grad, struct dt_pinned *pinned,
                             dt_stream_t stream, struct dt_error *err)
{
    return ops_of(grad)->signal(grad->gpus->gpu, pinned->device, pinned->signal,
                                ++pinned->wanted, stream, err);
}

bool dt_pinned_is_signalled(const struct dt_pinned *pinned)
{
    uint32_t seen = __atomic_load_n(pinned->signal, __ATOMIC_ACQUIRE);
    return (int32_t)(seen - pinned->wanted) >= 0;
}

/* ---- waits ---- */

/* A GPU that reports an error does nothing any more. */
static bool is_idle(struct dt_gpus *gpus)
{
    struct dt_error err;
    for (struct stream *s = gpus->streams; s; s = s->next) {
        bool done = true;
        if (gpus->gpu->ops->query(gpus->gpu, s->device, s->stream, &done,
                                  &err) == DT_SUCCESS &&
            !done)
            return false;
    }
    return true;
}

void dt_gpus_drain(struct dt_grad *grad, double seconds)
{
    const struct timespec moment = {0, MOMENT};
    const double until = dt_grad_now() + seconds;
    if (!grad->gpus)
        return;
    while (!is_idle(grad->gpus)) {
        if (dt_grad_now() >= until) {
            grad->gpus->stuck = true;
            return;
        }
        nanosleep(&moment, NULL);
    }
}

dt_result_t dt_gpus_take(struct dt_grad *grad, void *dst, const void *src,
                         size_t bytes, dt_stream_t stream, struct dt_error *err)
{
    const struct dt_gpu_copy copy = {
        .dst = dst, .src = src, .len = bytes, .rows = 1};
    int device;
    if (!grad->gpus && stream)
        return no_gpu(grad, err);
    dt_result_t rc = locate(grad, dst, bytes, &device, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (device < 0) {
        memcpy(dst, src, bytes);
        return DT_SUCCESS;
    }
    struct dt_gpu *gpu = grad->gpus->gpu;
    rc = gpu->ops->copy(gpu, device, &copy, stream, err);
    return rc == DT_SUCCESS ? gpu->ops->finish(gpu, device, stream, err) : rc;
}
