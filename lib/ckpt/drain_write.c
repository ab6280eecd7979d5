/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* drain_write.c - writing a file that nobody will read soon. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/drain.h"

#define ALIGN 4096        /* of memory and of offsets, for O_DIRECT */
#define CHUNK (8 << 20)   /* written at once, by way of a copy or at a pace */
#define RUN   (128 << 20) /* otherwise: the disk is idle between two writes */
#define SMALL (1 << 20)   /* not worth the trouble */
#define NAP   0.05        /* seconds: how long a hurry may go unseen */

struct writer {
    int fd;
    bool direct;
    size_t done;
    double rate, begun;
    struct dt_drain *drain;
};

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Wait until what was written is no more than the rate allows. */
static void keep_pace(const struct writer *w)
{
    while (w->rate > 0 && w->drain && !dt_drain_awaited(w->drain)) {
        double early = (double)w->done / w->rate - (now() - w->begun);
        if (early <= 0)
            return;
        double nap = early < NAP ? early : NAP;
        nanosleep(&(struct timespec){0, (long)(nap * 1e9)}, NULL);
    }
}

static void set_direct(struct writer *w, bool direct)
{
    int flags = fcntl(w->fd, F_GETFL);
    w->direct =
        direct && flags >= 0 && fcntl(w->fd, F_SETFL, flags | O_DIRECT) == 0;
    if (!direct && flags >= 0)
        fcntl(w->fd, F_SETFL, flags & ~O_DIRECT);
}

static int put(struct writer *w, const char *data, size_t len)
{
    if (w->direct && len % ALIGN)
        set_direct(w, false); /* the end of the file */
    while (len > 0) {
        ssize_t n = write(w->fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL && w->direct) {
            set_direct(w, false); /* it cannot after all */
            continue;
        }
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return -1;
        }
        data += n;
        len -= (size_t)n;
        w->done += (size_t)n;
    }
    keep_pace(w);
    return 0;
}

/* The next len bytes of the pieces into buf. *at is where in the first one. */
static void gather(const struct dt_piece **piece, size_t *at, char *buf,
                   size_t len)
{
    while (len > 0) {
        size_t n = (*piece)->len - *at;
        if (n == 0) {
            (*piece)++;
            *at = 0;
            continue;
        }
        n = n < len ? n : len;
        memcpy(buf, (const char *)(*piece)->data + *at, n);
        buf += n;
        len -= n;
        *at += n;
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Chunk by chunk: from where they lie if they lie right, else by way of buf.
 * What is no multiple of ALIGN is left for the end. */
static int put_all(struct writer *w, const struct dt_piece *piece, size_t total,
                   char *buf)
{
    size_t at = 0;
    while (w->done < total) {
        size_t n = least(total - w->done, CHUNK), here = piece->len - at;
        const char *data = (const char *)piece->data + at;
        bool lies = here >= n && (uintptr_t)data % ALIGN == 0;
        if (lies && w->rate <= 0)
            n = least(here, RUN);
        if (n > ALIGN)
            n -= n % ALIGN;
        if (lies) {
            at += n;
        } else {
            gather(&piece, &at, buf, n);
            data = buf;
        }
        if (put(w, data, n))
            return -1;
    }
    return 0;
}

int dt_drain_write(int fd, const struct dt_piece *piece, size_t n, double rate,
                   struct dt_drain *drain)
{
    struct writer w = {.fd = fd, .rate = rate, .begun = now(), .drain = drain};
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += piece[i].len;
    if (total == 0)
        return 0;
    char *buf = aligned_alloc(ALIGN, CHUNK);
    if (!buf) {
        errno = ENOMEM;
        return -1;
    }
    if (total >= SMALL)
        set_direct(&w, true);
    int rc = put_all(&w, piece, total, buf);
    int saved = errno;
    free(buf);
    errno = saved;
    return rc;
}
