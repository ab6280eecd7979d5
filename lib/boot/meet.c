/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.c - a meeting, as a query to the PMIx server. */
#include "boot/meet.h"

#include <pmix.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cursor.h"
#include "base/meet.h"

#define LATE 10 /* seconds that a server may take longer than it was told */

/* ---- reading the answer ---- */

static dt_result_t damaged(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_BOOTSTRAP,
                        "the PMIx server answered a meeting with what is none: "
                        "install the same slurm-dt on all nodes");
}

static bool read_members(struct dt_cursor *in, uint32_t rank, size_t most,
                         struct dt_meeting *meeting)
{
    bool asker = false;
    for (size_t i = 0; i < meeting->size; i++) {
        struct dt_member *m = &meeting->members[i];
        m->rank = (uint32_t)dt_cursor_uint(in, 4);
        m->incarnation = (uint32_t)dt_cursor_uint(in, 4);
        m->card.len = dt_cursor_uint(in, 4);
        m->card.data = dt_cursor_bytes(in, m->card.len);
        if (in->failed || m->rank >= most ||
            (i && m->rank <= meeting->members[i - 1].rank))
            return false;
        asker |= m->rank == rank;
    }
    return asker && in->at == in->end;
}

dt_result_t dt_meeting_read(const void *bytes, size_t len, uint32_t rank,
                            size_t most, struct dt_meeting *meeting,
                            struct dt_error *err)
{
    struct dt_meeting read = {.bytes = malloc(len ? len : 1)};
    if (!read.bytes)
        return dt_no_memory(err);
    memcpy(read.bytes, bytes, len);
    struct dt_cursor in = dt_cursor(read.bytes, len);
    read.epoch = dt_cursor_uint(&in, 8);
    read.size = dt_cursor_uint(&in, 4);
    bool good = !in.failed && read.size && read.size <= most;
    if (good)
        read.members = calloc(read.size, sizeof(*read.members));
    if (good && !read.members) {
        dt_meeting_free(&read);
        return dt_no_memory(err);
    }
    if (!good || !read_members(&in, rank, most, &read)) {
        dt_meeting_free(&read);
        return damaged(err);
    }
    *meeting = read;
    return DT_SUCCESS;
}

void dt_meeting_free(struct dt_meeting *meeting)
{
    free(meeting->members);
    free(meeting->bytes);
    *meeting = (struct dt_meeting){0};
}

/* ---- the query ---- */

/* A query under way. Whoever uses it last, the caller or PMIx, frees it. */
struct query {
    _Atomic enum { RUNNING, COMPLETE, ABANDONED } state;
    pmix_query_t query;
    pmix_status_t status;
    void *answer; /* of DT_MEET_KEY, or NULL */
    size_t len;
    struct dt_error why;
};

static void query_destroy(struct query *self)
{
    PMIX_QUERY_DESTRUCT(&self->query);
    free(self->answer);
    free(self);
}

static struct query *query_create(uint32_t rank, const void *card, size_t len,
                                  long timeout)
{
    struct query *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    const bool fresh = true;
    const uint32_t seconds = (uint32_t)timeout;
    pmix_byte_object_t bytes = {.bytes = (char *)card, /* copied */
                                .size = len};
    pmix_status_t rc;
    PMIX_QUERY_CONSTRUCT(&self->query);
    PMIX_ARGV_APPEND(rc, self->query.keys, DT_MEET_KEY);
    PMIX_QUERY_QUALIFIERS_CREATE(&self->query, 4);
    if (rc != PMIX_SUCCESS || !self->query.qualifiers) {
        query_destroy(self);
        return NULL;
    }
    pmix_info_t *q = self->query.qualifiers;
    PMIX_INFO_LOAD(&q[0], PMIX_QUERY_REFRESH_CACHE, &fresh, PMIX_BOOL);
    PMIX_INFO_LOAD(&q[1], DT_MEET_RANK, &rank, PMIX_UINT32);
    PMIX_INFO_LOAD(&q[2], DT_MEET_CARD, &bytes, PMIX_BYTE_OBJECT);
    PMIX_INFO_LOAD(&q[3], DT_MEET_TIMEOUT, &seconds, PMIX_UINT32);
    return self;
}

static void take_info(struct query *self, const pmix_info_t *info)
{
    const pmix_value_t *value = &info->value;
    if (PMIX_CHECK_KEY(info, DT_MEET_KEY) && value->type == PMIX_BYTE_OBJECT) {
        free(self->answer);
        self->len = value->data.bo.size;
        self->answer = malloc(self->len ? self->len : 1);
        if (self->answer && self->len)
            memcpy(self->answer, value->data.bo.bytes, self->len);
    } else if (PMIX_CHECK_KEY(info, DT_MEET_WHY) &&
               value->type == PMIX_STRING && value->data.string) {
        dt_error_set(&self->why, DT_ERR_BOOTSTRAP, "%s", value->data.string);
    } else if (PMIX_CHECK_KEY(info, DT_MEET_STATUS) &&
               value->type == PMIX_INT32) {
        self->status = value->data.int32;
    }
}

/* In PMIx's progress thread. */
static void answered(pmix_status_t status, pmix_info_t *info, size_t ninfo,
                     void *arg, pmix_release_cbfunc_t release, void *cbdata)
{
    struct query *self = arg;
    self->status = status;
    for (size_t i = 0; i < ninfo; i++)
        take_info(self, &info[i]);
    if (release)
        release(cbdata);
    if (atomic_exchange(&self->state, COMPLETE) == ABANDONED)
        query_destroy(self);
}

/* True: it is complete, and the caller's. */
static bool await(struct query *self, long timeout, const atomic_bool *gone)
{
    const struct timespec pause = {.tv_nsec = 200000};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const time_t end = now.tv_sec + timeout + LATE;
    while (atomic_load(&self->state) == RUNNING && now.tv_sec < end &&
           !atomic_load(gone)) {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return atomic_exchange(&self->state, ABANDONED) == COMPLETE;
}

static dt_result_t failed(pmix_status_t status, const struct dt_error *why,
                          struct dt_error *err)
{
    if (!why->text[0])
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "the PMIx server of this step holds no meetings of "
                            "ranks (%s): an elastic job needs that of dt-run, "
                            "or of srun --dt-elastic with --dt-pmix=server",
                            PMIx_Error_string(status));
    return dt_error_set(err,
                        status == PMIX_ERR_TIMEOUT        ? DT_ERR_TIMED_OUT
                        : status == PMIX_ERR_PROC_ABORTED ? DT_ERR_PROC_FAILED
                        : status == PMIX_ERR_NOMEM        ? DT_ERR_NO_MEMORY
                                                          : DT_ERR_BOOTSTRAP,
                        "%s", why->text);
}

dt_result_t dt_meet(uint32_t rank, const void *card, size_t len, long timeout,
                    size_t most, const atomic_bool *gone,
                    struct dt_meeting *meeting, struct dt_error *err)
{
    struct query *self = query_create(rank, card, len, timeout);
    if (!self)
        return dt_no_memory(err);
    pmix_status_t rc = PMIx_Query_info_nb(&self->query, 1, answered, self);
    if (rc != PMIX_SUCCESS) {
        query_destroy(self);
        return failed(rc, &(struct dt_error){""}, err);
    }
    const bool complete = await(self, timeout, gone);
    if (!complete && atomic_load(gone))
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "the PMIx server of this node is gone");
    if (!complete)
        return dt_error_set(err, DT_ERR_TIMED_OUT,
                            "the PMIx server of this node did not answer "
                            "within %ld s",
                            timeout + LATE);
    dt_result_t result =
        self->status == PMIX_SUCCESS && self->answer
            ? dt_meeting_read(self->answer, self->len, rank, most, meeting, err)
            : failed(self->status, &self->why, err);
    query_destroy(self);
    return result;
}
