/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* each.c - one call of each collective and what must come out of it. */
#include "each.h"

#include <string.h>

#define EDGE  64 /* bytes before and behind a buffer that nobody touches */
#define GUARD 0xa5

static void check(const struct job *job, bool cond, const char *what)
{
    expect(cond,
           "%s: %s: count %zu dtype %d op %d root %d rank %d of %d%s%s memory "
           "%d shift %zu",
           job->name, what, job->count, job->dtype, job->op, job->root,
           job->rank, job->size, job->in_place ? " in place" : "",
           job->later ? " later" : "", (int)job->memory, job->shift);
}

static dt_result_t finish(dt_result_t rc, struct job *job)
{
    return rc == DT_SUCCESS ? dt_wait(&job->request) : rc;
}

/* The blocking form, or the i-form and dt_wait. */
#define CALL(job, name, ...)                                                   \
    each_done((job)->later ? finish(dt_i##name(__VA_ARGS__, (job)->comm,       \
                                               each_stream, &(job)->request),  \
                                    job)                                       \
                           : dt_##name(__VA_ARGS__, (job)->comm, each_stream))

static char *buffer(const struct job *job, int which, size_t len)
{
    char *at = arena[job->memory][which] + EDGE + job->shift;
    memset(at - EDGE, GUARD, EDGE);
    memset(at, 0x5a, len);
    memset(at + len, GUARD, EDGE);
    return at;
}

/* The result is as wanted, and nothing beside it was touched. */
static void verify(const struct job *job, dt_result_t rc, const char *got,
                   size_t len)
{
    bool clean = true;
    for (size_t i = 1; i <= EDGE; i++)
        clean &= (unsigned char)got[-(ptrdiff_t)i] == GUARD &&
                 (unsigned char)got[len + i - 1] == GUARD;
    check(job, rc == DT_SUCCESS, "fails");
    check(job, !memcmp(got, want_buf, len), "wrong");
    check(job, clean, "writes beside the buffer");
}

static void verify_send(const struct job *job, const char *send, size_t len)
{
    if (!job->in_place)
        check(job, !memcmp(send, copy_buf, len), "changes sendbuf");
}

/* The rest of n elements, of which the first period are there. */
static void repeat(char *buf, size_t n, size_t period, size_t elem)
{
    for (size_t done = period; done < n; done *= 2)
        memcpy(buf + done * elem, buf,
               (done < n - done ? done : n - done) * elem);
}

static void put_values(const struct job *job, char *buf, size_t n)
{
    size_t period = value_period(job->dtype, job->op);
    for (size_t i = 0; i < n && i < period; i++)
        value_put(buf, i, job->dtype,
                  value_of(job->dtype, job->op, job->rank, i));
    repeat(buf, n, period, job->elem);
    memcpy(copy_buf, buf, n * job->elem);
}

static void want_values(const struct job *job, size_t first, size_t n,
                        double post)
{
    size_t period = value_period(job->dtype, job->op);
    for (size_t i = 0; i < n && i < period; i++)
        value_put(
            want_buf, i, job->dtype,
            value_reduced(job->dtype, job->op, job->size, first + i, post));
    repeat(want_buf, n, period, job->elem);
}

/* ---- those that reduce ---- */

void allreduce(struct job *job)
{
    size_t len = job->count * job->elem;
    char *send = buffer(job, 0, len);
    char *recv = job->in_place ? send : buffer(job, 1, len);
    put_values(job, send, job->count);
    want_values(job, 0, job->count, 1);
    verify(job,
           CALL(job, allreduce, send, recv, job->count, job->dtype, job->op),
           recv, len);
    verify_send(job, send, len);
}

/* By powers of two, which are exact. */
void allreduce_scaled(struct job *job)
{
    size_t len = job->count * job->elem;
    char *send = buffer(job, 0, len);
    char *recv = job->in_place ? send : buffer(job, 1, len);
    put_values(job, send, job->count);
    want_values(job, 0, job->count, 0.5);
    verify(job,
           CALL(job, allreduce_scaled, send, recv, job->count, job->dtype,
                job->op, 2.0, 0.25),
           recv, len);
    verify_send(job, send, len);
}

void reduce(struct job *job)
{
    size_t len = job->count * job->elem;
    bool root = job->rank == job->root;
    char *send = buffer(job, 0, len), *recv = NULL;
    if (root)
        recv = job->in_place ? send : buffer(job, 1, len);
    put_values(job, send, job->count);
    if (root)
        want_values(job, 0, job->count, 1);
    dt_result_t rc = CALL(job, reduce, send, recv, job->count, job->dtype,
                          job->op, job->root);
    check(job, rc == DT_SUCCESS, "fails");
    if (root)
        verify(job, rc, recv, len);
    if (!root)
        check(job, !memcmp(send, copy_buf, len), "changes sendbuf");
}

void reduce_scatter(struct job *job)
{
    size_t len = job->count * job->elem, all = len * (size_t)job->size;
    size_t first = job->count * (size_t)job->rank;
    char *send = buffer(job, 0, all);
    char *recv = job->in_place ? send + first * job->elem : buffer(job, 1, len);
    put_values(job, send, job->count * (size_t)job->size);
    want_values(job, first, job->count, 1);
    dt_result_t rc =
        CALL(job, reduce_scatter, send, recv, job->count, job->dtype, job->op);
    check(job, rc == DT_SUCCESS, "fails");
    check(job, !memcmp(recv, want_buf, len), "wrong");
    verify_send(job, send, all);
}

/* Uneven: some have nothing. */
static size_t share(const struct job *job, int r)
{
    return job->count && r % 3 != 1 ? job->count + (size_t)r : 0;
}

void reduce_scatterv(struct job *job)
{
    size_t counts[64], first = 0, total = 0;
    for (int r = 0; r < job->size; r++) {
        if (r == job->rank)
            first = total;
        total += counts[r] = share(job, r);
    }
    size_t mine = counts[job->rank];
    char *send = buffer(job, 0, total * job->elem);
    char *recv = job->in_place ? send + first * job->elem
                               : buffer(job, 1, mine * job->elem);
    put_values(job, send, total);
    want_values(job, first, mine, 1);
    dt_result_t rc =
        CALL(job, reduce_scatterv, send, recv, counts, job->dtype, job->op);
    check(job, rc == DT_SUCCESS, "fails");
    check(job, !memcmp(recv, want_buf, mine * job->elem), "wrong");
    verify_send(job, send, total * job->elem);
}

/* ---- those that move ---- */

void bcast(struct job *job)
{
    size_t len = job->count * job->elem;
    char *buf = buffer(job, 0, len);
    if (job->rank == job->root)
        value_fill(buf, len, 7);
    value_fill(want_buf, len, 7);
    verify(job, CALL(job, bcast, buf, job->count, job->dtype, job->root), buf,
           len);
}

void allgather(struct job *job)
{
    size_t len = job->count * job->elem, n = (size_t)job->size;
    char *recv = buffer(job, 1, len * n);
    char *send =
        job->in_place ? recv + len * (size_t)job->rank : buffer(job, 0, len);
    value_fill(send, len, (unsigned)job->rank);
    memcpy(copy_buf, send, len);
    for (size_t r = 0; r < n; r++)
        value_fill(want_buf + r * len, len, (unsigned)r);
    verify(job, CALL(job, allgather, send, recv, job->count, job->dtype), recv,
           len * n);
    verify_send(job, send, len);
}

/* The blocks of the higher ranks first, with room between them. */
static size_t lay_out(int n, const size_t *counts, size_t *displs)
{
    size_t at = 1;
    for (int r = n - 1; r >= 0; r--) {
        displs[r] = at;
        at += counts[r] + 1;
    }
    return at;
}

void allgatherv(struct job *job)
{
    size_t counts[64], displs[64], e = job->elem;
    for (int r = 0; r < job->size; r++)
        counts[r] = share(job, r);
    size_t all = lay_out(job->size, counts, displs) * e;
    size_t len = counts[job->rank] * e;
    char *recv = buffer(job, 1, all);
    char *send =
        job->in_place ? recv + displs[job->rank] * e : buffer(job, 0, len);
    value_fill(send, len, (unsigned)job->rank);
    memcpy(copy_buf, send, len);
    memset(want_buf, 0x5a, all);
    for (int r = 0; r < job->size; r++)
        value_fill(want_buf + displs[r] * e, counts[r] * e, (unsigned)r);
    verify(job, CALL(job, allgatherv, send, recv, counts, displs, job->dtype),
           recv, all);
    verify_send(job, send, len);
}

void alltoall(struct job *job)
{
    size_t len = job->count * job->elem, n = (size_t)job->size;
    char *send = buffer(job, 0, len * n), *recv = buffer(job, 1, len * n);
    for (size_t r = 0; r < n; r++) {
        value_fill(send + r * len, len,
                   (unsigned)job->rank * 100 + (unsigned)r);
        value_fill(want_buf + r * len, len,
                   (unsigned)r * 100 + (unsigned)job->rank);
    }
    memcpy(copy_buf, send, len * n);
    job->in_place = false;
    verify(job, CALL(job, alltoall, send, recv, job->count, job->dtype), recv,
           len * n);
    verify_send(job, send, len * n);
}

static size_t between(const struct job *job, int from, int to)
{
    return (size_t)(from * 5 + to * 3 + 1) % (job->count + 1);
}

void alltoallv(struct job *job)
{
    size_t sc[64], sd[64], rc[64], rd[64], e = job->elem;
    for (int r = 0; r < job->size; r++) {
        sc[r] = between(job, job->rank, r);
        rc[r] = between(job, r, job->rank);
    }
    size_t sent = lay_out(job->size, sc, sd) * e;
    size_t received = lay_out(job->size, rc, rd) * e;
    char *send = buffer(job, 0, sent), *recv = buffer(job, 1, received);
    memset(want_buf, 0x5a, received);
    for (int r = 0; r < job->size; r++) {
        value_fill(send + sd[r] * e, sc[r] * e,
                   (unsigned)(job->rank * 100 + r));
        value_fill(want_buf + rd[r] * e, rc[r] * e,
                   (unsigned)(r * 100 + job->rank));
    }
    memcpy(copy_buf, send, sent);
    job->in_place = false;
    verify(job, CALL(job, alltoallv, send, sc, sd, recv, rc, rd, job->dtype),
           recv, received);
    verify_send(job, send, sent);
}

void gather(struct job *job)
{
    size_t len = job->count * job->elem, n = (size_t)job->size;
    bool root = job->rank == job->root;
    char *recv = root ? buffer(job, 1, len * n) : NULL;
    char *send = root && job->in_place ? recv + len * (size_t)job->rank
                                       : buffer(job, 0, len);
    value_fill(send, len, (unsigned)job->rank);
    for (size_t r = 0; root && r < n; r++)
        value_fill(want_buf + r * len, len, (unsigned)r);
    dt_result_t rc =
        CALL(job, gather, send, recv, job->count, job->dtype, job->root);
    check(job, rc == DT_SUCCESS, "fails");
    if (root)
        verify(job, rc, recv, len * n);
}

void scatter(struct job *job)
{
    size_t len = job->count * job->elem, n = (size_t)job->size;
    size_t at = len * (size_t)job->rank;
    bool root = job->rank == job->root;
    char *send = root ? buffer(job, 0, len * n) : NULL;
    char *recv = root && job->in_place ? send + at : buffer(job, 1, len);
    for (size_t r = 0; root && r < n; r++)
        value_fill(send + r * len, len, (unsigned)r);
    value_fill(want_buf, len, (unsigned)job->rank);
    dt_result_t rc =
        CALL(job, scatter, send, recv, job->count, job->dtype, job->root);
    check(job, rc == DT_SUCCESS, "fails");
    check(job, !memcmp(recv, want_buf, len), "wrong");
}

void barrier(struct job *job)
{
    dt_result_t rc =
        job->later
            ? finish(dt_ibarrier(job->comm, each_stream, &job->request), job)
            : dt_barrier(job->comm, each_stream);
    check(job, each_done(rc) == DT_SUCCESS, "fails");
}
