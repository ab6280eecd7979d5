/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tl-failure.c - every transport fails as tl.h says. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tl-ranks.h"

static void name_of_victim(const struct rank *r, char *text, size_t size)
{
    snprintf(text, size, "rank %zu is gone", victim(r));
}

static void case_killed_receiving(struct rank *r)
{
    char reason[64];
    struct trap trap;
    name_of_victim(r, reason, sizeof(reason));
    join(r);
    greet_all(r);
    if (r->me == victim(r))
        die(r);
    set_trap(r, &trap, victim(r), 1, MIB);
    spring_trap(r, &trap, reason);
    leave(r);
    munmap(trap.buf, trap.len);
}

/* It dies while its message is half way here. */
static void case_killed_in_message(struct rank *r)
{
    char reason[64];
    size_t len = 32 * MIB;
    struct trap trap;
    name_of_victim(r, reason, sizeof(reason));
    join(r);
    greet_all(r);
    if (r->me == victim(r)) {
        struct dt_tl_req s[MAX_RANKS];
        char *out = memory(r, len);
        memset(out, 1, len);
        for (size_t p = 0; p + 1 < r->size; p++)
            isend(r, p, 1, out, len, &s[p]);
        for (int i = 0; i < 6; i++)
            r->ops->progress(r->tl);
        die(r);
    }
    set_trap(r, &trap, victim(r), 1, len);
    spring_trap(r, &trap, reason);
    leave(r);
    munmap(trap.buf, trap.len);
}

static void case_killed_sending(struct rank *r)
{
    char reason[64];
    struct dt_tl_req s;
    size_t len = 16 * MIB;
    name_of_victim(r, reason, sizeof(reason));
    join(r);
    greet_all(r);
    char *out = memory(r, len);
    memset(out, 1, len);
    if (r->me != victim(r))
        isend(r, victim(r), 1, out, len, &s);
    barrier(r);
    if (r->me == victim(r))
        die(r);
    need_failed(r, &s, reason);
    free(out);
    leave(r);
}

static void case_killed_before_connect(struct rank *r)
{
    char reason[64];
    struct trap trap;
    name_of_victim(r, reason, sizeof(reason));
    open_tl(r);
    barrier(r);
    if (r->me == victim(r))
        die(r);
    await_death(r, victim(r));
    NEED(try_connect(r) == DT_SUCCESS, "connect: %s", r->err.text);
    set_trap(r, &trap, victim(r), 1, MIB);
    spring_trap(r, &trap, reason);
    leave(r);
    munmap(trap.buf, trap.len);
}

/* Those who wait for others than the dead one learn of it, too. */
static void case_killed_news(struct rank *r)
{
    char reason[64];
    struct trap trap;
    name_of_victim(r, reason, sizeof(reason));
    join(r);
    greet_all(r);
    if (r->me == victim(r))
        die(r);
    set_trap(r, &trap, r->me == 0 ? victim(r) : 0, 1, MIB);
    spring_trap(r, &trap, r->me == 0 ? reason : "gone");
    leave(r);
    munmap(trap.buf, trap.len);
}

/* One that leaves after its work has done nothing wrong. */
static void case_exit_after_sending(struct rank *r)
{
    char out[5000], in[5000], byte;
    struct dt_tl_req s, q;
    join(r);
    greet_all(r);
    if (r->me == victim(r)) {
        for (size_t p = 0; p + 1 < r->size; p++) {
            fill(out, 5000, r->me, 1);
            isend(r, p, 1, out, 5000, &s);
            NEED_DONE(&s);
            isend(r, p, 2, out, 1, &s);
            NEED_DONE(&s);
        }
        resign(r);
        _exit(0);
    }
    if (r->me % 2 == 0)
        await_death(r, victim(r));
    irecv(r, victim(r), 2, &byte, 1, &q);
    if (r->me % 2 == 0)
        NEED(r->ops->check(r->tl, &r->err) == DT_SUCCESS, "%s", r->err.text);
    NEED_DONE(&q);
    if (r->me % 2)
        await_death(r, victim(r));
    irecv(r, victim(r), 1, in, 5000, &q);
    NEED_DONE(&q);
    NEED(filled(in, 5000, victim(r), 1), "contents");
    barrier(r);
    leave(r);
}

static void case_revoke(struct rank *r)
{
    struct trap trap;
    join(r);
    greet_all(r);
    if (r->me == 0) {
        r->ops->revoke(r->tl);
        set_trap(r, &trap, 1, 1, MIB);
        spring_trap(r, &trap, "rank 0 has given up");
        r->ops->revoke(r->tl);
    } else {
        set_trap(r, &trap, after(r), 1, MIB);
        spring_trap(r, &trap, "has given up");
    }
    leave(r);
    munmap(trap.buf, trap.len);
}

/* Who revokes knows nothing of those who wait for it. */
static void case_revoke_stranger(struct rank *r)
{
    struct trap trap;
    join(r);
    if (r->me != 0)
        set_trap(r, &trap, 0, 1, MIB);
    for (int i = 0; i < 200; i++) {
        r->ops->progress(r->tl);
        usleep(500);
    }
    barrier(r);
    if (r->me == 0) {
        r->ops->revoke(r->tl);
        barrier(r);
    } else {
        spring_trap(r, &trap, "has given up");
        munmap(trap.buf, trap.len);
        barrier(r);
    }
    leave(r);
}

/* A peer that stands still keeps nobody from giving up. */
static void case_revoke_stopped(struct rank *r)
{
    size_t len = 16 * MIB;
    struct dt_tl_req s;
    struct trap trap;
    join(r);
    greet_all(r);
    if (r->me == victim(r)) {
        set_trap(r, &trap, 0, 1, MIB);
        spring_trap(r, &trap, "rank 0");
    } else {
        char *out = memory(r, len);
        memset(out, 1, len);
        if (r->me == 0) {
            NEED(!kill(r->board->pid[victim(r)], SIGSTOP), "kill");
            set_trap(r, &trap, victim(r), 2, MIB);
            isend(r, victim(r), 2, out, len, &s);
            for (int i = 0; i < 100; i++)
                r->ops->progress(r->tl);
            r->ops->revoke(r->tl);
            NEED(s.status == DT_ERR_PROC_FAILED, "the send");
            spring_trap(r, &trap, "rank 0 has given up");
        } else {
            set_trap(r, &trap, 0, 2, MIB);
            spring_trap(r, &trap, "rank 0");
        }
        free(out);
    }
    leave(r);
    munmap(trap.buf, trap.len);
    if (r->me == 0)
        kill(r->board->pid[victim(r)], SIGCONT);
}

static void length_case(struct rank *r, size_t sent, size_t wanted, bool early)
{
    struct dt_tl_req s, q;
    join(r);
    greet_all(r);
    char *out = memory(r, sent), *in = memory(r, wanted + 1);
    memset(out, 1, sent);
    memset(in, 7, wanted + 1);
    if (r->me == 0) {
        isend(r, 1, 1, out, sent, &s);
        barrier(r);
        irecv(r, 1, 2, in, wanted, &q);
        need_failed(r, &q, "rank");
    } else if (r->me == 1) {
        if (early)
            barrier(r);
        irecv(r, 0, 1, in, wanted, &q);
        if (!early)
            barrier(r);
        need_failed(r, &q, "disagree");
        NEED(in[wanted] == 7, "wrote beyond the buffer");
    } else {
        barrier(r);
        irecv(r, 0, 2, in, wanted, &q);
        need_failed(r, &q, "rank");
    }
    free(out);
    free(in);
    leave(r);
}

static void case_too_long(struct rank *r)
{
    length_case(r, 100, 99, false);
}

static void case_too_long_early(struct rank *r)
{
    length_case(r, 100, 99, true);
}

static void case_too_short(struct rank *r)
{
    length_case(r, 100, 101, false);
}

static void case_too_long_large(struct rank *r)
{
    length_case(r, 3 * MIB, MIB, false);
}

static void case_too_short_large(struct rank *r)
{
    length_case(r, MIB, 3 * MIB, true);
}

static const struct tl_case cases[] = {
    {"a peer is killed, receive pending", case_killed_receiving, true},
    {"a peer is killed in a message", case_killed_in_message, true},
    {"a peer is killed, send pending", case_killed_sending, true},
    {"a peer is killed before connect", case_killed_before_connect, true, true},
    {"a death reaches those who wait for others", case_killed_news, true},
    {"a peer leaves after sending", case_exit_after_sending},
    {"revoke", case_revoke},
    {"revoke by one that never connected", case_revoke_stranger},
    {"revoke beside a stopped peer", case_revoke_stopped},
    {"longer than its receive", case_too_long},
    {"longer than its receive, early", case_too_long_early},
    {"shorter than its receive", case_too_short},
    {"longer than its receive, both long", case_too_long_large},
    {"shorter than its receive, both long", case_too_short_large},
};

int main(int argc, char **argv)
{
    (void)argc;
    static const struct dt_tl_ops *const transports[] = {&dt_tl_shm, &dt_tl_ucx,
                                                         NULL};
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
