/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tl.c - every transport moves messages as tl.h says. */
#include <unistd.h>

#include "ranks.h"

static void case_sizes(struct rank *r)
{
    static const size_t sizes[] = {
        1,       2,       15,          16,       17,          47,
        48,      49,      63,          64,       65,          1000,
        4095,    4096,    4097,        8175,     8176,        8177,
        8192,    16383,   16384,       16385,    65535,       65536,
        65537,   MIB / 4, MIB / 4 + 1, MIB - 17, MIB - 16,    MIB - 15,
        MIB - 1, MIB,     MIB + 1,     MIB + 63, 2 * MIB - 1, 4 * MIB + 3};
    join(r);
    char *out = memory(r, 5 * MIB), *in = memory(r, 5 * MIB);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t len = sizes[i];
        struct dt_tl_req s, q;
        fill(out, len, r->me, i);
        memset(in, 0, len + 1);
        irecv(r, before(r), i, in, len, &q);
        isend(r, after(r), i, out, len, &s);
        NEED_DONE(&q);
        NEED_DONE(&s);
        NEED(filled(in, len, before(r), i), "%zu bytes differ", len);
        NEED(!in[len], "more than %zu bytes", len);
    }
    free(out);
    free(in);
    barrier(r);
    leave(r);
}

/* All is sent before any is received, and received in another order. */
static void case_unexpected(struct rank *r)
{
    enum { N = 40 };
    static const size_t sizes[N] = {1, 100, 5000, 70000, 3 * MIB};
    struct dt_tl_req s[N], q[N];
    char *out[N], *in[N];
    join(r);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < N; i++) {
            size_t len = sizes[i] ? sizes[i] : 10 + i * 300;
            out[i] = memory(r, len);
            in[i] = memory(r, len);
            fill(out[i], len, r->me, i);
            isend(r, after(r), i, out[i], len, &s[i]);
        }
        barrier(r);
        for (size_t k = 0; k < N; k++) {
            size_t i = (k * 7 + 3) % N;
            size_t len = sizes[i] ? sizes[i] : 10 + i * 300;
            irecv(r, before(r), i, in[i], len, &q[i]);
            if (k % 3 == 0)
                NEED_DONE(&q[i]);
        }
        for (size_t i = 0; i < N; i++) {
            size_t len = sizes[i] ? sizes[i] : 10 + i * 300;
            NEED_DONE(&q[i]);
            NEED_DONE(&s[i]);
            NEED(filled(in[i], len, before(r), i), "message %zu", i);
            free(out[i]);
            free(in[i]);
        }
    }
    barrier(r);
    leave(r);
}

static void case_same_tag(struct rank *r)
{
    enum { N = 200 };
    struct dt_tl_req s[N], q[N];
    uint32_t out[N], in[N];
    join(r);
    for (uint32_t i = 0; i < N; i++) {
        out[i] = i;
        isend(r, after(r), 5, &out[i], sizeof(out[i]), &s[i]);
        if (i == N / 2)
            barrier(r);
        if (i % 2)
            irecv(r, before(r), 5, &in[i / 2], sizeof(in[0]), &q[i / 2]);
    }
    for (uint32_t i = N / 2; i < N; i++)
        irecv(r, before(r), 5, &in[i], sizeof(in[i]), &q[i]);
    for (uint32_t i = 0; i < N; i++) {
        NEED_DONE(&q[i]);
        NEED_DONE(&s[i]);
        NEED(in[i] == i, "the %uth message is number %u", i, in[i]);
    }
    barrier(r);
    leave(r);
}

/* A long unexpected message is in front of one that is waited for. */
static void case_overtake(struct rank *r)
{
    join(r);
    size_t len = 6 * MIB + 5;
    char *out = memory(r, len), *in = memory(r, len), small = 'x', got = 0;
    struct dt_tl_req s1, s2, q1, q2;
    fill(out, len, r->me, 1);
    isend(r, after(r), 1, out, len, &s1);
    isend(r, after(r), 2, &small, 1, &s2);
    irecv(r, before(r), 2, &got, 1, &q2);
    NEED_DONE(&q2);
    NEED(got == 'x', "the small one");
    irecv(r, before(r), 1, in, len, &q1);
    NEED_DONE(&q1);
    NEED_DONE(&s1);
    NEED_DONE(&s2);
    NEED(filled(in, len, before(r), 1), "the long one");
    free(out);
    free(in);
    barrier(r);
    leave(r);
}

/* The receive is posted when half of its message has been put aside. */
static void case_half_early(struct rank *r)
{
    join(r);
    size_t len = 3 * MIB + 5;
    char *out = memory(r, len), *in = memory(r, len), never, dummy = 0;
    fill(out, len, r->me, 1);
    struct dt_tl_req s1, s2, q1, q2;
    irecv(r, before(r), 2, &never, 1, &q2); /* makes us look */
    isend(r, after(r), 1, out, len, &s1);
    for (int i = 0; i < 5; i++)
        r->ops->progress(r->tl);
    irecv(r, before(r), 1, in, len, &q1);
    isend(r, after(r), 2, &dummy, 1, &s2);
    NEED_DONE(&q1);
    NEED_DONE(&q2);
    NEED_DONE(&s1);
    NEED_DONE(&s2);
    NEED(filled(in, len, before(r), 1), "contents");
    free(out);
    free(in);
    barrier(r);
    leave(r);
}

static void case_all_to_all(struct rank *r)
{
    enum { N = 30 };
    struct dt_tl_req s[MAX_RANKS][N], q[MAX_RANKS][N];
    char *out[MAX_RANKS][N], *in[MAX_RANKS][N];
    join(r);
    for (size_t i = 0; i < N; i++)
        for (size_t p = 0; p < r->size; p++) {
            size_t len = 1 + i * i * 53;
            if (p == r->me)
                continue;
            out[p][i] = memory(r, len);
            in[p][i] = memory(r, len);
            fill(out[p][i], len, r->me, i);
            if (i % 2)
                irecv(r, p, i, in[p][i], len, &q[p][i]);
            isend(r, p, i, out[p][i], len, &s[p][i]);
            if (i % 2 == 0)
                irecv(r, p, i, in[p][i], len, &q[p][i]);
        }
    for (size_t p = r->size; p-- > 0;)
        for (size_t i = 0; i < N && p != r->me; i++) {
            NEED_DONE(&s[p][i]);
            NEED_DONE(&q[p][i]);
            NEED(filled(in[p][i], 1 + i * i * 53, p, i), "%zu of %zu", i, p);
            free(out[p][i]);
            free(in[p][i]);
        }
    barrier(r);
    leave(r);
}

static void case_both_directions(struct rank *r)
{
    join(r);
    size_t len = 8 * MIB + 1;
    struct dt_tl_req s[MAX_RANKS], q[MAX_RANKS];
    char *out = memory(r, len), *in[MAX_RANKS];
    fill(out, len, r->me, 9);
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me)
            isend(r, p, 9, out, len, &s[p]);
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me) {
            in[p] = memory(r, len);
            irecv(r, p, 9, in[p], len, &q[p]);
        }
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me) {
            NEED_DONE(&q[p]);
            NEED(filled(in[p], len, p, 9), "contents of %zu", p);
            free(in[p]);
        }
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me)
            NEED_DONE(&s[p]);
    free(out);
    barrier(r);
    leave(r);
}

static void case_notice(struct rank *r)
{
    const uint64_t top = ((uint64_t)1 << DT_TAG_BITS) - 1;
    join(r);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t sent = (top - 3) | (i & 1 ? DT_TAG_NOTICE : 0);
        uint64_t wanted = (top - 3) | (i & 2 ? DT_TAG_NOTICE : 0);
        unsigned out = i, in = 99;
        struct dt_tl_req s, q;
        if (i & 4)
            irecv(r, before(r), wanted, &in, sizeof(in), &q);
        isend(r, after(r), sent, &out, sizeof(out), &s);
        barrier(r);
        if (!(i & 4))
            irecv(r, before(r), wanted, &in, sizeof(in), &q);
        NEED_DONE(&q);
        NEED_DONE(&s);
        NEED(in == i && q.tag == sent, "message %u, tag %#llx for %#llx", in,
             (unsigned long long)q.tag, (unsigned long long)sent);
    }
    /* put aside while another is waited for */
    unsigned out[3] = {0, 1, 2}, in[3];
    uint64_t tags[3] = {5 | DT_TAG_NOTICE, 5, 6};
    struct dt_tl_req s[3], q[3];
    for (unsigned i = 0; i < 3; i++)
        isend(r, after(r), tags[i], &out[i], sizeof(out[i]), &s[i]);
    irecv(r, before(r), 6, &in[2], sizeof(in[2]), &q[2]);
    NEED_DONE(&q[2]);
    irecv(r, before(r), 5, &in[0], sizeof(in[0]), &q[0]);
    irecv(r, before(r), 5 | DT_TAG_NOTICE, &in[1], sizeof(in[1]), &q[1]);
    for (unsigned i = 0; i < 3; i++) {
        NEED_DONE(&q[i]);
        NEED_DONE(&s[i]);
        NEED(in[i] == i && q[i].tag == tags[i], "message %u for %u", in[i], i);
    }
    barrier(r);
    leave(r);
}

/* The last messages of a barrier are under way while others close already. */
static void case_close_order(struct rank *r)
{
    join(r);
    char out = 1, in[MAX_RANKS];
    struct dt_tl_req s[MAX_RANKS], q[MAX_RANKS];
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me) {
            isend(r, p, 3, &out, 1, &s[p]);
            irecv(r, p, 3, &in[p], 1, &q[p]);
        }
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me) {
            NEED_DONE(&s[p]);
            NEED_DONE(&q[p]);
        }
    usleep((useconds_t)(r->me * 30000));
    leave(r);
}

/* Messages that are never received, short and long, are no error. */
static void case_close_unwanted(struct rank *r)
{
    join(r);
    greet_all(r);
    size_t len = 3 * MIB;
    char *out = memory(r, len);
    struct dt_tl_req s1, s2;
    memset(out, 1, len);
    isend(r, after(r), 1, out, 100, &s1);
    isend(r, after(r), 1, out, len, &s2);
    for (int i = 0; i < 100; i++)
        r->ops->progress(r->tl);
    barrier(r);
    leave(r);
    free(out);
}

static void case_close_unused(struct rank *r)
{
    join(r);
    barrier(r);
    leave(r);
    r->ops->close(NULL);
}

static const struct tl_case cases[] = {
    {"messages of many sizes", case_sizes},
    {"messages before their receive", case_unexpected},
    {"messages of one tag in order", case_same_tag},
    {"a message overtakes an unwanted long one", case_overtake},
    {"a receive posted in mid-message", case_half_early},
    {"many outstanding, all to all", case_all_to_all},
    {"long messages in both directions", case_both_directions},
    {"the notice bit", case_notice},
    {"close right after the last message", case_close_order},
    {"close with unwanted messages", case_close_unwanted},
    {"close without a message", case_close_unused},
};

int main(int argc, char **argv)
{
    (void)argc;
    static const struct dt_tl_ops *const transports[] = {&dt_tl_shm, &dt_tl_tcp,
                                                         &dt_tl_ucx, NULL};
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
