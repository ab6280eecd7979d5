/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request.c - the requests of this node's ranks. */
#include "membership/membership_state.h"

#include <stdarg.h>
#include <inttypes.h>
#include <stdio.h>

void dt_request_finish(struct request *request, dt_result_t rc,
                       const void *data, size_t len)
{
    request->done(request->arg, rc, data, len);
    free(request);
}

struct request *dt_request_unlink(struct request **at)
{
    struct request *request = *at;
    *at = request->next;
    return request;
}

void dt_request_fail(struct request **at, dt_result_t rc, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dt_request_finish(dt_request_unlink(at), rc, text, strlen(text));
}

struct request **dt_request_find(struct dt_membership *m, uint64_t number)
{
    struct request **at = &m->requests;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

void dt_membership_ask(struct dt_membership *m, size_t rank, const void *card,
                       size_t len, int64_t timeout,
                       void (*done)(void *arg, dt_result_t rc, const void *data,
                                    size_t len),
                       void *arg)
{
    const struct dt_mesh_rank *state = dt_mesh_rank(m->mesh, rank);
    struct request *one = calloc(1, sizeof(*one) + len), **at = &m->requests;
    static const char no_memory[] = "no memory";
    if (!one) {
        done(arg, DT_ERR_NO_MEMORY, no_memory, sizeof(no_memory) - 1);
        return;
    }
    *one = (struct request){.rank = (uint32_t)rank,
                            .incarnation = state->incarnation,
                            .number = ++m->numbers,
                            .timeout = timeout,
                            .done = done,
                            .arg = arg,
                            .len = len};
    if (len)
        memcpy(one->card, card, len);
    while (*at && (*at)->rank != rank)
        at = &(*at)->next;
    bool twice = *at;
    while (*at)
        at = &(*at)->next;
    *at = one;
    if (twice)
        dt_request_fail(at, DT_ERR_INVALID_ARG, "rank %zu asks already", rank);
    else if (len > DT_MEMBERSHIP_CARD_MAX)
        dt_request_fail(
            at, DT_ERR_INVALID_ARG,
            "the card of rank %zu has %zu bytes, expected at most %zu", rank,
            len, DT_MEMBERSHIP_CARD_MAX);
    else if (state->ended)
        dt_request_fail(at, DT_ERR_PROC_FAILED, "rank %zu has ended", rank);
}

struct sent {
    struct dt_membership *m;
    uint64_t number;
    size_t root;
};

static void answered(void *arg, dt_result_t rc, int32_t status,
                     const void *data, size_t len)
{
    struct sent *sent = arg;
    struct dt_membership *m = sent->m;
    size_t root = sent->root;
    struct request **at = dt_request_find(m, sent->number);
    int n = len < 900 ? (int)len : 900;
    free(sent);
    if (!*at || !(*at)->sent || root != m->term)
        return;
    if (rc == DT_SUCCESS && status == DT_SUCCESS)
        return; /* the decision answers it */
    if (rc == DT_ERR_PROC_FAILED && !dt_mesh_node_lives(m->mesh, root))
        return; /* there will be another root */
    if (rc == DT_ERR_PROC_FAILED)
        dt_request_fail(at, rc, "this node was declared lost by the others");
    else if (rc != DT_SUCCESS)
        dt_request_fail(at, DT_ERR_NO_MEMORY, "no memory");
    else if (status == DT_ERR_TIMED_OUT)
        dt_request_fail(at, status, "%.*s within %" PRId64 " s", n,
                        (const char *)data, (*at)->timeout / 1000);
    else
        dt_request_fail(at, status, "%.*s", n, (const char *)data);
}

void dt_request_send(struct dt_membership *m, struct request *request)
{
    struct sent *sent = malloc(sizeof(*sent));
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    if (request->end == 0)
        request->end = m->now + request->timeout;
    int64_t left = request->end > m->now ? request->end - m->now : 1;
    dt_frame_uint(frame, 1, REQUEST);
    dt_frame_uint(frame, 4, request->rank);
    dt_frame_uint(frame, 4, request->incarnation);
    dt_frame_uint(frame, 8, request->number);
    dt_frame_uint(frame, 8, request->timeout ? (uint64_t)left : 0);
    dt_frame_bytes(frame, request->card, request->len);
    request->sent = true;
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS || !sent) {
        free(sent);
        dt_request_fail(dt_request_find(m, request->number), DT_ERR_NO_MEMORY,
                        "no memory");
    } else {
        struct dt_cursor body = dt_frame_body(frame);
        *sent = (struct sent){m, request->number, m->term};
        dt_mesh_ask(m->mesh, m->term, m->config.what, body.at,
                    (size_t)(body.end - body.at), 0, answered, sent);
    }
    dt_frame_unref(frame);
}

struct request *dt_request_first_unsent(const struct dt_membership *m)
{
    struct request *request = m->requests;
    while (request && request->sent)
        request = request->next;
    return request;
}
