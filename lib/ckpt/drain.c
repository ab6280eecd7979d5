/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* drain.c - a thread in the background, and writing a file that will not be
 * read soon. */
#include "ckpt/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/format/format.h"
#include "ckpt/need.h"

#define ALIGN 4096        /* of memory and of offsets, for O_DIRECT */
#define CHUNK (8 << 20)   /* written at once, by way of a copy or at a pace */
#define RUN   (128 << 20) /* otherwise: the disk is idle between two writes */
#define SMALL (1 << 20)   /* not worth the trouble */
#define PAUSE 0.05 /* seconds between two checks whether a thread waits */

/* ---- the thread ---- */

struct dt_drain {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    void (*fn)(void *arg); /* NULL: nothing is under way */
    void *arg;
    int waiting;
    bool over;
};

static void *drain_main(void *arg)
{
    struct dt_drain *drain = arg;
    pthread_mutex_lock(&drain->lock);
    for (;;) {
        while (!drain->fn && !drain->over)
            pthread_cond_wait(&drain->moved, &drain->lock);
        if (!drain->fn)
            break;
        pthread_mutex_unlock(&drain->lock);
        drain->fn(drain->arg);
        pthread_mutex_lock(&drain->lock);
        drain->fn = NULL;
        pthread_cond_broadcast(&drain->moved);
    }
    pthread_mutex_unlock(&drain->lock);
    return NULL;
}

dt_result_t dt_drain_start(struct dt_drain **drain, struct dt_error *err)
{
    sigset_t all, old;
    struct dt_drain *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_no_memory(err);
    pthread_mutex_init(&new->lock, NULL);
    pthread_cond_init(&new->moved, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&new->thread, NULL, drain_main, new);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        free(new);
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "cannot start a thread to write checkpoints: %s",
                            strerror(rc));
    }
    *drain = new;
    return DT_SUCCESS;
}

void dt_drain_run(struct dt_drain *drain, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&drain->lock);
    drain->fn = fn;
    drain->arg = arg;
    pthread_cond_broadcast(&drain->moved);
    pthread_mutex_unlock(&drain->lock);
}

void dt_drain_wait(struct dt_drain *drain)
{
    pthread_mutex_lock(&drain->lock);
    drain->waiting++;
    pthread_cond_broadcast(&drain->moved); /* a writer that keeps its pace */
    while (drain->fn)
        pthread_cond_wait(&drain->moved, &drain->lock);
    drain->waiting--;
    pthread_mutex_unlock(&drain->lock);
}

void dt_drain_stop(struct dt_drain *drain)
{
    if (!drain)
        return;
    dt_drain_wait(drain);
    pthread_mutex_lock(&drain->lock);
    drain->over = true;
    pthread_cond_broadcast(&drain->moved);
    pthread_mutex_unlock(&drain->lock);
    pthread_join(drain->thread, NULL);
    pthread_cond_destroy(&drain->moved);
    pthread_mutex_destroy(&drain->lock);
    free(drain);
}

bool dt_drain_awaited(struct dt_drain *drain)
{
    pthread_mutex_lock(&drain->lock);
    bool awaited = drain->waiting > 0;
    pthread_mutex_unlock(&drain->lock);
    return awaited;
}

/* ---- the writer ---- */

struct writer {
    int fd;
    bool direct;
    size_t done;
    double rate, begun;
    struct dt_drain *drain;
};

/* Wait until what was written is no more than the rate allows. */
static void keep_pace(const struct writer *w)
{
    while (w->rate > 0 && w->drain && !dt_drain_awaited(w->drain)) {
        double early = (double)w->done / w->rate - (dt_need_now() - w->begun);
        if (early <= 0)
            return;
        double pause = early < PAUSE ? early : PAUSE;
        nanosleep(&(struct timespec){0, (long)(pause * 1e9)}, NULL);
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
            set_direct(w, false); /* not on this file system */
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

/* Copy the next len bytes of the pieces into buf. *at is the offset in the
 * first piece. */
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

/* Write chunk by chunk: from the program's memory where that is aligned, else
 * through buf. What is no multiple of ALIGN remains for the end. */
static int put_all(struct writer *w, const struct dt_piece *piece, size_t total,
                   char *buf)
{
    size_t at = 0;
    while (w->done < total) {
        size_t n = least(total - w->done, CHUNK), here = piece->len - at;
        const char *data = (const char *)piece->data + at;
        bool aligned = here >= n && (uintptr_t)data % ALIGN == 0;
        if (aligned && w->rate <= 0)
            n = least(here, RUN);
        if (n > ALIGN)
            n -= n % ALIGN;
        if (aligned) {
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
    struct writer w = {
        .fd = fd, .rate = rate, .begun = dt_need_now(), .drain = drain};
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
