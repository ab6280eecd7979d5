/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.c - every transport keeps its word under load: odd addresses, many
 * messages at once, threads that take turns, memory that was registered. */
#include <pthread.h>
#include <sched.h>

#include "ranks.h"

/* Numbers that all ranks draw alike. */
static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* 1 to limit, short ones as likely as long ones. */
static size_t draw_len(uint64_t *seed, size_t limit)
{
    size_t len = draw(seed) % limit + 1;
    return len >> draw(seed) % 24 ? len >> draw(seed) % 24 | 1 : 1;
}

/* 1 byte to 8 MiB, from and to addresses that are aligned to nothing; what
 * lies around the receive stays as it is. */
static void case_unaligned(struct rank *r)
{
    enum { GAP = 80 };
    join(r);
    char *out = memory(r, 8 * MIB + GAP), *in = memory(r, 8 * MIB + 2 * GAP);
    uint64_t seed = 1;
    for (size_t i = 0, len = 1; len <= 8 * MIB; i++, len = len * 3 + i % 3) {
        char *from = out + draw(&seed) % GAP;
        char *to = in + 1 + draw(&seed) % GAP;
        struct dt_tl_req s, q;
        fill(from, len, r->me, i);
        to[-1] = to[len] = 'x';
        irecv(r, before(r), i, to, len, &q);
        isend(r, after(r), i, from, len, &s);
        NEED_DONE(&q);
        NEED_DONE(&s);
        NEED(filled(to, len, before(r), i), "%zu bytes differ", len);
        NEED(to[-1] == 'x' && to[len] == 'x', "%zu bytes and more", len);
    }
    free(out);
    free(in);
    barrier(r);
    leave(r);
}

/* Several hundred tags in flight with every peer, of all lengths, received in
 * another order than they were sent. */
static void case_many_tags(struct rank *r)
{
    enum { N = 300 };
    static struct dt_tl_req s[MAX_RANKS][N], q[MAX_RANKS][N];
    static char *in[MAX_RANKS][N], *out[N];
    static size_t len[N];
    uint64_t seed = 2;
    join(r);
    for (size_t i = 0; i < N; i++) {
        len[i] = draw_len(&seed, i % 50 ? 60000 : 2 * MIB);
        out[i] = memory(r, len[i]);
        fill(out[i], len[i], r->me, i);
    }
    for (size_t p = 0; p < r->size; p++)
        for (size_t i = 0; i < N && p != r->me; i++) {
            isend(r, p, i << 20 | i, out[i], len[i], &s[p][i]);
            size_t k = i * 7 % N;
            in[p][k] = memory(r, len[k]);
            irecv(r, p, k << 20 | k, in[p][k], len[k], &q[p][k]);
        }
    for (size_t p = 0; p < r->size; p++)
        for (size_t i = 0; i < N && p != r->me; i++) {
            NEED_DONE(&q[p][i]);
            NEED(filled(in[p][i], len[i], p, i), "message %zu of %zu", i, p);
            free(in[p][i]);
        }
    for (size_t p = 0; p < r->size; p++)
        for (size_t i = 0; i < N && p != r->me; i++)
            NEED_DONE(&s[p][i]);
    for (size_t i = 0; i < N; i++)
        free(out[i]);
    barrier(r);
    leave(r);
}

/* Messages of one tag, some short, some long, half of them sent before any is
 * wanted, match in the order of their sends. */
static void case_order(struct rank *r)
{
    enum { N = 60 };
    struct dt_tl_req s[N], q[N];
    char *out[N], *in[N];
    size_t len[N];
    uint64_t seed = 3;
    join(r);
    for (size_t i = 0; i < N; i++) {
        len[i] = draw_len(&seed, MIB);
        out[i] = memory(r, len[i]);
        in[i] = memory(r, len[i]);
        fill(out[i], len[i], r->me, i);
        if (i == N / 2)
            barrier(r);
        isend(r, after(r), 9, out[i], len[i], &s[i]);
        if (i >= N / 2)
            irecv(r, before(r), 9, in[i - N / 2], len[i - N / 2],
                  &q[i - N / 2]);
    }
    for (size_t i = N - N / 2; i < N; i++)
        irecv(r, before(r), 9, in[i], len[i], &q[i]);
    for (size_t i = 0; i < N; i++) {
        NEED_DONE(&q[i]);
        NEED(filled(in[i], len[i], before(r), i), "message %zu", i);
        free(in[i]);
    }
    for (size_t i = 0; i < N; i++) {
        NEED_DONE(&s[i]);
        free(out[i]);
    }
    barrier(r);
    leave(r);
}

/* The note bit comes with its own message, among many of the same tag. */
static void case_notices(struct rank *r)
{
    enum { N = 100 };
    struct dt_tl_req s[N], q[N];
    static char out[N][5000], in[N][5000];
    join(r);
    for (size_t i = 0; i < N; i++) {
        uint64_t note = i * i % 7 < 3 ? DT_TAG_NOTICE : 0;
        size_t len = i % 2 ? 5000 : 8;
        fill(out[i], len, r->me, i);
        if (i % 4 == 0)
            irecv(r, before(r), 1 | (i % 8 ? DT_TAG_NOTICE : 0), in[i / 4],
                  i / 4 % 2 ? 5000 : 8, &q[i / 4]);
        isend(r, after(r), 1 | note, out[i], len, &s[i]);
    }
    for (size_t i = N / 4; i < N; i++)
        irecv(r, before(r), 1, in[i], i % 2 ? 5000 : 8, &q[i]);
    for (size_t i = 0; i < N; i++) {
        uint64_t note = i * i % 7 < 3 ? DT_TAG_NOTICE : 0;
        NEED_DONE(&q[i]);
        NEED_DONE(&s[i]);
        NEED(q[i].tag == (1 | note), "message %zu: tag %#llx", i,
             (unsigned long long)q[i].tag);
        NEED(filled(in[i], i % 2 ? 5000 : 8, before(r), i), "message %zu", i);
    }
    barrier(r);
    leave(r);
}

/* ---- threads ---- */

struct turns {
    struct rank *r;
    pthread_mutex_t lock;
    bool over;
};

static void *progress_thread(void *arg)
{
    struct turns *turns = arg;
    for (bool over = false; !over; sched_yield()) {
        pthread_mutex_lock(&turns->lock);
        turns->r->ops->progress(turns->r->tl);
        over = turns->over;
        pthread_mutex_unlock(&turns->lock);
    }
    return NULL;
}

/* One thread starts messages, another completes them, under one lock. */
static void case_threads(struct rank *r)
{
    enum { N = 60 };
    struct turns turns = {.r = r, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct dt_tl_req s[N], q[N];
    pthread_t thread;
    size_t len = 300001;
    char *out = memory(r, len), *in = memory(r, len);
    join(r);
    fill(out, len, r->me, 1);
    NEED(!pthread_create(&thread, NULL, progress_thread, &turns), "thread");
    for (size_t i = 0; i < N; i++) {
        size_t n = i % 3 ? 1 + i * 50 : len;
        pthread_mutex_lock(&turns.lock);
        irecv(r, before(r), i, in, n, &q[i]);
        isend(r, after(r), i, out, n, &s[i]);
        pthread_mutex_unlock(&turns.lock);
        for (bool over = false; !over; sched_yield()) {
            pthread_mutex_lock(&turns.lock);
            over =
                q[i].status != DT_IN_PROGRESS && s[i].status != DT_IN_PROGRESS;
            pthread_mutex_unlock(&turns.lock);
        }
        NEED(q[i].status == DT_SUCCESS && s[i].status == DT_SUCCESS,
             "message %zu", i);
    }
    pthread_mutex_lock(&turns.lock);
    turns.over = true;
    pthread_mutex_unlock(&turns.lock);
    NEED(!pthread_join(thread, NULL), "join");
    free(out);
    free(in);
    barrier(r);
    leave(r);
}

/* ---- memory ---- */

/* shm has nothing to pin */
static void *pin(struct rank *r, char *buf, size_t size)
{
    void *handle = NULL;
    if (r->ops->mem_register)
        NEED(r->ops->mem_register(r->tl, buf, size, &handle, &r->err) ==
                 DT_SUCCESS,
             "%s", r->err.text);
    return handle;
}

static void case_registered(struct rank *r)
{
    join(r);
    size_t size = 4 * MIB, half = size / 2;
    char *buf = memory(r, size);
    struct dt_tl_req s[3], q[3];
    void *handle = pin(r, buf + 100, size - 200);
    /* within it, at its very edges, and half outside */
    const size_t from[] = {200, 100, 3}, to[] = {half, half + 100, half + 7};
    const size_t len[] = {half - 500, half - 200, half - 7};
    for (size_t i = 0; i < 3; i++) {
        fill(buf + from[i], len[i], r->me, i);
        irecv(r, before(r), i, buf + to[i], len[i], &q[i]);
        isend(r, after(r), i, buf + from[i], len[i], &s[i]);
        NEED_DONE(&q[i]);
        NEED_DONE(&s[i]);
        NEED(filled(buf + to[i], len[i], before(r), i), "message %zu", i);
    }
    if (handle)
        r->ops->mem_deregister(r->tl, handle);
    irecv(r, before(r), 5, buf + half, half, &q[0]);
    isend(r, after(r), 5, buf, half, &s[0]);
    NEED_DONE(&q[0]);
    NEED_DONE(&s[0]);
    pin(r, buf, size); /* close deregisters it */
    barrier(r);
    leave(r);
    free(buf);
}

/* ---- the end ---- */

/* Many messages that are never received, on all links, some of them long. */
static void case_close_full(struct rank *r)
{
    enum { N = 20 };
    static struct dt_tl_req s[MAX_RANKS][N];
    join(r);
    greet_all(r);
    char *out = memory(r, MIB);
    memset(out, 1, MIB);
    for (size_t p = 0; p < r->size; p++)
        for (size_t i = 0; i < N && p != r->me; i++)
            isend(r, p, 100 + i, out, i % 5 ? 1 + i * 100 : MIB, &s[p][i]);
    for (int i = 0; i < 200; i++)
        r->ops->progress(r->tl);
    barrier(r);
    leave(r);
    free(out);
}

static const struct tl_case cases[] = {
    {"1 byte to 8 MiB at odd addresses", case_unaligned},
    {"hundreds of tags, all to all", case_many_tags},
    {"one tag in order, short and long", case_order},
    {"notice bits stay with their message", case_notices},
    {"threads take turns", case_threads},
    {"registered memory", case_registered},
    {"close with many unwanted messages", case_close_full},
};

int main(int argc, char **argv)
{
    (void)argc;
    static const struct dt_tl_ops *const transports[] = {&dt_tl_shm, &dt_tl_tcp,
                                                         &dt_tl_ucx, NULL};
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
