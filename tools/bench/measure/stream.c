/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stream.c - the bandwidth from one rank to another. */
#include "pairwise/pairwise.h"

enum { SHORTEST = 64 << 10, LONGEST = 256 << 20, ENOUGH_US = 20000 };

/* The sender announces the number of bytes; 0 ends the stream. */
static dt_result_t receive_all(const struct job *job, char *buf, int peer)
{
    for (;;) {
        int64_t left = 0;
        dt_result_t rc =
            dt_recv(&left, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
        if (rc != DT_SUCCESS || left <= 0)
            return rc;
        while (rc == DT_SUCCESS && left > 0) {
            size_t n = left < STREAM_BYTES ? (size_t)left : STREAM_BYTES;
            rc = dt_recv(buf, n, DT_DTYPE_U8, peer, job->comm, DT_STREAM_NONE);
            left -= (int64_t)n;
        }
        if (rc == DT_SUCCESS) /* acknowledge that all has arrived */
            rc = dt_send(&left, 1, DT_DTYPE_I64, peer, job->comm,
                         DT_STREAM_NONE);
        if (rc != DT_SUCCESS)
            return rc;
    }
}

static dt_result_t send_once(const struct job *job, const char *buf, int peer,
                             int64_t bytes, double *us)
{
    int64_t left = bytes;
    dt_result_t rc =
        dt_send(&bytes, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
    double start = now_us();
    while (rc == DT_SUCCESS && left > 0) {
        size_t n = left < STREAM_BYTES ? (size_t)left : STREAM_BYTES;
        rc = dt_send(buf, n, DT_DTYPE_U8, peer, job->comm, DT_STREAM_NONE);
        left -= (int64_t)n;
    }
    if (rc == DT_SUCCESS && bytes)
        rc = dt_recv(&left, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
    *us = now_us() - start;
    return rc;
}

/* Send more and more until it takes ENOUGH_US: a short burst may fit into the
 * buffers of a slow link. */
static dt_result_t send_all(const struct job *job, const char *buf, int peer,
                            double *gbs)
{
    int64_t bytes = SHORTEST;
    double us = 0, again = 0;
    dt_result_t rc = send_once(job, buf, peer, bytes, &us);
    while (rc == DT_SUCCESS && us < ENOUGH_US && bytes < LONGEST) {
        bytes *= us < ENOUGH_US / 8 ? 4 : 2;
        rc = send_once(job, buf, peer, bytes, &us);
    }
    if (rc == DT_SUCCESS && us < 4 * ENOUGH_US) {
        rc = send_once(job, buf, peer, bytes, &again);
        us = again < us ? again : us;
    }
    if (rc == DT_SUCCESS)
        rc = send_once(job, buf, peer, 0, &again);
    if (rc == DT_SUCCESS && us > 0)
        *gbs = (double)bytes / us / 1e3;
    return rc;
}

dt_result_t stream(const struct job *job, char *buf, int peer, bool sends,
                   double *gbs, struct dt_error *err)
{
    dt_result_t rc =
        sends ? send_all(job, buf, peer, gbs) : receive_all(job, buf, peer);
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}
