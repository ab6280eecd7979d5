/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* failure.c - every transport fails as tl.h says. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ranks.h"

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

/* It dies while its message is half way here; where a receiver was faster it
 * has all of it, and waits for the next one. */
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
    if (await(r, &trap.req) == DT_SUCCESS) {
        NEED(trap.buf[0] == 1 && !memcmp(trap.buf, trap.buf + 1, len - 1),
             "contents");
        munmap(trap.buf, trap.len);
        set_trap(r, &trap, victim(r), 2, len);
    }
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
static void case_killed_event(struct rank *r)
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

/* A stopped peer does not keep the others from revoking. */
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

/* Long messages to and from all ranks, under way. */
struct storm {
    size_t len;
    char *out;
    struct dt_tl_req sends[MAX_RANKS];
    struct trap traps[MAX_RANKS];
};

static void begin_storm(struct rank *r, struct storm *storm, int rounds)
{
    storm->len = 16 * MIB;
    storm->out = memory(r, storm->len);
    memset(storm->out, 1, storm->len);
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me) {
            isend(r, p, 1, storm->out, storm->len, &storm->sends[p]);
            set_trap(r, &storm->traps[p], p, 1, storm->len);
        }
    for (int i = 0; i < rounds; i++)
        r->ops->progress(r->tl);
}

static void end_storm(struct rank *r, struct storm *storm)
{
    struct trap never;
    set_trap(r, &never, after(r), 3, MIB);
    /* whom a rank blames depends on what it hears of first */
    spring_trap(r, &never, "rank");
    for (size_t p = 0; p < r->size; p++)
        if (p != r->me) {
            NEED(storm->sends[p].status != DT_IN_PROGRESS, "send to %zu", p);
            NEED(storm->traps[p].req.status != DT_IN_PROGRESS, "from %zu", p);
            NEED(!mprotect(storm->traps[p].buf, storm->len, PROT_NONE),
                 "mprotect");
        }
    for (int i = 0; i < 300; i++)
        r->ops->progress(r->tl);
    free(storm->out);
    leave(r);
}

static void case_revoke_amid(struct rank *r)
{
    struct storm storm;
    join(r);
    greet_all(r);
    begin_storm(r, &storm, 20);
    if (r->me == 0)
        r->ops->revoke(r->tl);
    end_storm(r, &storm);
}

/* All connections to one break at once, each in mid-message. */
static void case_killed_amid(struct rank *r)
{
    struct storm storm;
    join(r);
    greet_all(r);
    begin_storm(r, &storm, 20);
    if (r->me == victim(r))
        die(r);
    end_storm(r, &storm);
}

/* It dies when the first messages look for their way. */
static void killed_at_once(struct rank *r, int rounds)
{
    struct storm storm;
    join(r);
    begin_storm(r, &storm, rounds);
    if (r->me == victim(r))
        die(r);
    end_storm(r, &storm);
}

static void case_killed_first(struct rank *r)
{
    killed_at_once(r, 0);
}

static void case_killed_soon(struct rank *r)
{
    killed_at_once(r, 7);
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

/* ... where one of them is what a transport sends first for the other */
static void case_long_for_short(struct rank *r)
{
    length_case(r, 3 * MIB, 8, false);
}

static void case_short_for_long(struct rank *r)
{
    length_case(r, 8, 3 * MIB, true);
}

static const struct tl_case cases[] = {
    {"a peer is killed, receive pending", case_killed_receiving, true},
    {"a peer is killed in a message", case_killed_in_message, true},
    {"a peer is killed, send pending", case_killed_sending, true},
    {"a peer is killed before connect", case_killed_before_connect, true, true},
    {"a death reaches those who wait for others", case_killed_event, true},
    {"a peer leaves after sending", case_exit_after_sending},
    {"revoke", case_revoke},
    {"revoke by one that never connected", case_revoke_stranger},
    {"revoke beside a stopped peer", case_revoke_stopped, false, true},
    {"revoke amid long messages", case_revoke_amid},
    {"a peer is killed amid long messages", case_killed_amid, true},
    {"a peer is killed by the first message", case_killed_first, true, true,
     true},
    {"a peer is killed soon after it", case_killed_soon, true, true, true},
    {"longer than its receive", case_too_long},
    {"longer than its receive, early", case_too_long_early},
    {"shorter than its receive", case_too_short},
    {"longer than its receive, both long", case_too_long_large},
    {"shorter than its receive, both long", case_too_short_large},
    {"long, for a short receive", case_long_for_short},
    {"short, for a long receive", case_short_for_long},
};

int main(int argc, char **argv)
{
    (void)argc;
    static const struct dt_tl_ops *const transports[] = {&dt_tl_shm, &dt_tl_tcp,
                                                         &dt_tl_ucx, NULL};
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
