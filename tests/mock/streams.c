/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* streams.c - the mock driver's streams: a thread each, that does one thing
 * after the other; events; and what is captured into a graph. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams.h"

struct mock_stream {
    struct mock_stream *next;
    struct dt_cu_context *context;
    struct mock_op *first, **last; /* not begun */
    uint64_t put, done;
    bool ending;
    struct mock_graph *capture; /* what is put goes there, if there is one */
};

/* When all that was on a stream before it is done. */
struct mock_point {
    unsigned refs;
    bool reached;
};

struct dt_cu_event {
    struct dt_cu_event *next;
    struct dt_cu_context *context;
    struct mock_point *point; /* NULL: not recorded yet */
};

struct mock_graph {
    struct mock_op *first, **last;
};

static struct mock_stream *streams;
static struct dt_cu_event *events;

/* ---- what is on a stream ---- */

struct mock_op *mock_op(void (*run)(struct mock_op *op), enum mock_call call)
{
    struct mock_op *op = calloc(1, sizeof(*op));
    if (!op)
        abort();
    op->run = run;
    op->delay = mock_delay(call);
    return op;
}

static void free_op(struct mock_op *op)
{
    free(op->bytes);
    free(op);
}

static void put_on(struct mock_stream *stream, struct mock_op *op)
{
    op->next = NULL;
    if (stream->capture) {
        *stream->capture->last = op;
        stream->capture->last = &op->next;
        return;
    }
    *stream->last = op;
    stream->last = &op->next;
    stream->put++;
    pthread_cond_broadcast(&mock_changed);
}

static void *run_stream(void *arg)
{
    struct mock_stream *stream = arg;
    pthread_mutex_lock(&mock_lock);
    for (;;) {
        struct mock_op *op = stream->first;
        if (!op && stream->ending)
            break;
        if (!op) {
            pthread_cond_wait(&mock_changed, &mock_lock);
            continue;
        }
        stream->first = op->next;
        if (!op->next)
            stream->last = &stream->first;
        pthread_mutex_unlock(&mock_lock);
        if (op->delay)
            usleep(op->delay);
        op->run(op);
        free_op(op);
        pthread_mutex_lock(&mock_lock);
        stream->done++;
        pthread_cond_broadcast(&mock_changed);
    }
    struct mock_stream **link = &streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    pthread_mutex_unlock(&mock_lock);
    free(stream);
    return NULL;
}

/* Under the lock. */
static struct mock_stream *start_stream(struct dt_cu_context *context)
{
    struct mock_stream *stream = calloc(1, sizeof(*stream));
    pthread_t thread;
    if (!stream)
        abort();
    stream->context = context;
    stream->last = &stream->first;
    stream->next = streams;
    streams = stream;
    if (pthread_create(&thread, NULL, run_stream, stream))
        abort();
    pthread_detach(thread);
    return stream;
}

/* Under the lock; NULL: none such. */
static struct mock_stream *find(dt_stream_t handle)
{
    struct mock_stream *stream = streams;
    if ((uintptr_t)handle <= 2) { /* the default ones */
        struct dt_cu_context *context = mock_context();
        if (context && !context->stream)
            context->stream = start_stream(context);
        return context ? context->stream : NULL;
    }
    while (stream && (stream != handle || stream->ending))
        stream = stream->next;
    return stream;
}

static int missing(dt_stream_t handle)
{
    return (uintptr_t)handle <= 2 ? DT_CU_INVALID_CONTEXT
                                  : DT_CU_INVALID_HANDLE;
}

int mock_put(dt_stream_t handle, struct mock_op *op, bool own_context)
{
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    int code = stream ? DT_CU_OK : missing(handle);
    if (stream && own_context && stream->context != mock_context())
        code = DT_CU_INVALID_HANDLE;
    if (!code)
        put_on(stream, op);
    pthread_mutex_unlock(&mock_lock);
    if (code)
        free_op(op);
    return code;
}

/* ---- waiting for it ---- */

/* Under the lock: until what is on the stream now is done. */
static void wait_for(struct mock_stream *stream)
{
    for (uint64_t put = stream->put; stream->done < put;)
        pthread_cond_wait(&mock_changed, &mock_lock);
}

/* A stream may go while the lock is free, so begin again after each. */
void mock_drain(int device)
{
    pthread_mutex_lock(&mock_lock);
    for (struct mock_stream *s = streams; s;) {
        bool busy = s->context->device == device && s->done < s->put;
        if (busy)
            pthread_cond_wait(&mock_changed, &mock_lock);
        s = busy ? streams : s->next;
    }
    pthread_mutex_unlock(&mock_lock);
}

int mock_finish(dt_stream_t handle)
{
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    int code = stream ? DT_CU_OK : missing(handle);
    if (stream && stream->capture)
        code = DT_CU_CAPTURE_UNSUPPORTED;
    else if (stream)
        wait_for(stream);
    pthread_mutex_unlock(&mock_lock);
    return code;
}

int cuStreamSynchronize(dt_stream_t stream)
{
    BEGIN(cuStreamSynchronize);
    return mock_finish(stream);
}

int cuStreamQuery(dt_stream_t handle)
{
    BEGIN(cuStreamQuery);
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    int code = stream ? DT_CU_OK : missing(handle);
    if (stream && stream->done < stream->put)
        code = DT_CU_NOT_READY;
    pthread_mutex_unlock(&mock_lock);
    return code;
}

/* ---- streams ---- */

int cuStreamCreateWithPriority(dt_stream_t *stream, unsigned flags,
                               int priority)
{
    BEGIN(cuStreamCreateWithPriority);
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    if (flags > DT_CU_NON_BLOCKING || priority > 0)
        return DT_CU_INVALID_VALUE;
    pthread_mutex_lock(&mock_lock);
    *stream = start_stream(mock_context());
    pthread_mutex_unlock(&mock_lock);
    return DT_CU_OK;
}

int cuStreamCreate(dt_stream_t *stream, unsigned flags)
{
    BEGIN(cuStreamCreate);
    return cuStreamCreateWithPriority(stream, flags, 0);
}

/* What is on it is done all the same. */
int cuStreamDestroy_v2(dt_stream_t handle)
{
    BEGIN(cuStreamDestroy_v2);
    if ((uintptr_t)handle <= 2)
        return DT_CU_INVALID_HANDLE;
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    if (stream)
        stream->ending = true;
    pthread_cond_broadcast(&mock_changed);
    pthread_mutex_unlock(&mock_lock);
    return stream ? DT_CU_OK : DT_CU_INVALID_HANDLE;
}

int cuStreamGetCtx(dt_stream_t handle, struct dt_cu_context **ctx)
{
    BEGIN(cuStreamGetCtx);
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    if (stream)
        *ctx = stream->context;
    pthread_mutex_unlock(&mock_lock);
    return stream ? DT_CU_OK : missing(handle);
}

/* ---- events ---- */

static void unref(struct mock_point *point)
{
    if (point && !--point->refs)
        free(point);
}

static void reach(struct mock_op *op)
{
    pthread_mutex_lock(&mock_lock);
    op->point->reached = true;
    unref(op->point);
    pthread_cond_broadcast(&mock_changed);
    pthread_mutex_unlock(&mock_lock);
}

static void await(struct mock_op *op)
{
    pthread_mutex_lock(&mock_lock);
    while (!op->point->reached)
        pthread_cond_wait(&mock_changed, &mock_lock);
    unref(op->point);
    pthread_mutex_unlock(&mock_lock);
}

static bool is_event(const struct dt_cu_event *event)
{
    const struct dt_cu_event *known = events;
    while (known && known != event)
        known = known->next;
    return known;
}

int cuEventCreate(struct dt_cu_event **event, unsigned flags)
{
    BEGIN(cuEventCreate);
    (void)flags;
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    struct dt_cu_event *made = calloc(1, sizeof(*made));
    if (!made)
        return DT_CU_OUT_OF_MEMORY;
    made->context = mock_context();
    pthread_mutex_lock(&mock_lock);
    made->next = events;
    events = made;
    pthread_mutex_unlock(&mock_lock);
    *event = made;
    return DT_CU_OK;
}

int cuEventDestroy_v2(struct dt_cu_event *event)
{
    BEGIN(cuEventDestroy_v2);
    struct dt_cu_event **link = &events;
    pthread_mutex_lock(&mock_lock);
    while (*link && *link != event)
        link = &(*link)->next;
    if (*link) {
        *link = event->next;
        unref(event->point);
    }
    pthread_mutex_unlock(&mock_lock);
    free(event);
    return DT_CU_OK;
}

/* An op of this point, for a stream that must not be capturing. */
static int put_point(dt_stream_t handle, struct dt_cu_context *context,
                     struct mock_point *point, void (*run)(struct mock_op *op),
                     enum mock_call call)
{
    struct mock_stream *stream = find(handle);
    if (!stream)
        return missing(handle);
    if (context && stream->context != context)
        return DT_CU_INVALID_HANDLE;
    if (stream->capture)
        return DT_CU_CAPTURE_UNSUPPORTED;
    struct mock_op *op = mock_op(run, call);
    op->point = point;
    point->refs++;
    put_on(stream, op);
    return DT_CU_OK;
}

int cuEventRecord(struct dt_cu_event *event, dt_stream_t stream)
{
    BEGIN_QUEUED(cuEventRecord);
    struct mock_point *point = calloc(1, sizeof(*point));
    int code = DT_CU_INVALID_HANDLE;
    if (!point)
        abort();
    point->refs = 1;
    pthread_mutex_lock(&mock_lock);
    if (is_event(event))
        code =
            put_point(stream, event->context, point, reach, CALL_cuEventRecord);
    if (!code) {
        struct mock_point *old = event->point;
        event->point = point;
        point = old;
    }
    unref(point);
    pthread_mutex_unlock(&mock_lock);
    return code;
}

int cuStreamWaitEvent(dt_stream_t stream, struct dt_cu_event *event,
                      unsigned flags)
{
    BEGIN_QUEUED(cuStreamWaitEvent);
    int code = DT_CU_INVALID_HANDLE;
    (void)flags;
    pthread_mutex_lock(&mock_lock);
    if (is_event(event))
        code = event->point ? put_point(stream, NULL, event->point, await,
                                        CALL_cuStreamWaitEvent)
                            : DT_CU_OK;
    pthread_mutex_unlock(&mock_lock);
    return code;
}

/* ---- graphs ---- */

int cuStreamIsCapturing(dt_stream_t handle, int *status)
{
    BEGIN(cuStreamIsCapturing);
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    if (stream)
        *status = stream->capture != NULL;
    pthread_mutex_unlock(&mock_lock);
    return stream ? DT_CU_OK : missing(handle);
}

int cuStreamBeginCapture_v2(dt_stream_t handle, int mode)
{
    BEGIN(cuStreamBeginCapture_v2);
    (void)mode;
    struct mock_graph *graph = calloc(1, sizeof(*graph));
    if (!graph)
        return DT_CU_OUT_OF_MEMORY;
    graph->last = &graph->first;
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = (uintptr_t)handle <= 2 ? NULL : find(handle);
    bool good = stream && !stream->capture;
    if (good)
        stream->capture = graph;
    pthread_mutex_unlock(&mock_lock);
    if (!good)
        free(graph);
    return good ? DT_CU_OK : DT_CU_CAPTURE_UNSUPPORTED;
}

int cuStreamEndCapture(dt_stream_t handle, struct mock_graph **graph)
{
    BEGIN(cuStreamEndCapture);
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    bool good = stream && stream->capture;
    if (good) {
        *graph = stream->capture;
        stream->capture = NULL;
    }
    pthread_mutex_unlock(&mock_lock);
    return good ? DT_CU_OK : CU_CAPTURE_INVALID;
}

static struct mock_op *copy_op(const struct mock_op *op)
{
    struct mock_op *copy = malloc(sizeof(*copy));
    if (!copy)
        abort();
    *copy = *op;
    if (op->bytes) {
        copy->bytes = malloc(op->nbytes);
        if (!copy->bytes)
            abort();
        memcpy(copy->bytes, op->bytes, op->nbytes);
    }
    return copy;
}

int cuGraphInstantiateWithFlags(struct mock_graph **exec,
                                struct mock_graph *graph,
                                unsigned long long flags)
{
    BEGIN(cuGraphInstantiateWithFlags);
    (void)flags;
    struct mock_graph *made = calloc(1, sizeof(*made));
    if (!made)
        return DT_CU_OUT_OF_MEMORY;
    made->last = &made->first;
    for (const struct mock_op *op = graph->first; op; op = op->next) {
        struct mock_op *copy = copy_op(op);
        copy->next = NULL;
        *made->last = copy;
        made->last = &copy->next;
    }
    *exec = made;
    return DT_CU_OK;
}

int cuGraphLaunch(struct mock_graph *exec, dt_stream_t handle)
{
    BEGIN(cuGraphLaunch);
    pthread_mutex_lock(&mock_lock);
    struct mock_stream *stream = find(handle);
    for (const struct mock_op *op = exec->first; stream && op; op = op->next)
        put_on(stream, copy_op(op));
    pthread_mutex_unlock(&mock_lock);
    return stream ? DT_CU_OK : missing(handle);
}

int cuGraphDestroy(struct mock_graph *graph)
{
    BEGIN(cuGraphDestroy);
    struct mock_op *next;
    for (struct mock_op *op = graph->first; op; op = next) {
        next = op->next;
        free_op(op);
    }
    free(graph);
    return DT_CU_OK;
}

int cuGraphExecDestroy(struct mock_graph *exec)
{
    BEGIN(cuGraphExecDestroy);
    return cuGraphDestroy(exec);
}
