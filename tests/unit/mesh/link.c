/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link.c - one connection between two daemons: handshake, frames, time, the
 * end.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "../descriptors.h"
#include "link-ends.h"
#include "../tap.h"

static void test_open(void)
{
    struct dt_link *both[2];
    open_both(both);
    send_frame(both[0], DT_WIRE_NEWS, 3, 'a');
    ok(dt_link_peer(both[1]) == DT_NODE_ANY && !dt_link_next(both[1]) &&
           !dt_link_flushed(both[0]),
       "no peer is known at first");
    turn(both, 5);
    ok(is_open(both[0]) && is_open(both[1]), "both ends open: %s%s",
       dt_link_why(both[0]), dt_link_why(both[1]));
    ok(dt_link_peer(both[0]) == 2 && dt_link_peer(both[1]) == 1,
       "and know each other");
    ok(comes(both[1], 3, 'a') && dt_link_flushed(both[0]),
       "what was sent before has come");

    size_t big = 3 << 20;
    send_frame(both[1], DT_WIRE_RESULT, big, 'b');
    send_frame(both[1], DT_WIRE_ASK, 0, 0);
    send_frame(both[1], DT_WIRE_ASK, 70000, 'c');
    ok(!dt_link_flushed(both[1]) && (dt_link_events(both[1]) & POLLOUT),
       "a large frame is not written at once");
    turn(both, 100);
    ok(comes(both[0], big, 'b') && comes(both[0], 0, 0) &&
           comes(both[0], 70000, 'c') && !dt_link_next(both[0]) &&
           dt_link_flushed(both[1]) && dt_link_events(both[1]) == POLLIN,
       "all come whole and in order");
    close_both(both);
}

static void test_time(void)
{
    struct dt_link *both[2];
    open_both(both);
    turn(both, 5);
    int64_t due = dt_link_progress(both[0], now);
    ok(due > now && due <= now + HEART / 3, "a link has a time to be due");
    for (int i = 0; i < 100; i++) {
        now += HEART / 3;
        turn(both, 2);
    }
    ok(is_open(both[0]) && is_open(both[1]) && !dt_link_next(both[0]),
       "two links that send nothing exchange heartbeats");
    now += 1000 * HEART;
    turn(both, 2);
    ok(is_open(both[0]) && is_open(both[1]),
       "time in which both were stopped does not count");
    for (int i = 0; i < 3; i++) {
        ok(is_open(both[0]), "silent for %d s", i * HEART / 3000);
        now += HEART / 3;
        dt_link_progress(both[0], now);
    }
    ok(broke(both[0], DT_ERR_TIMED_OUT, "30 s"), "a silent one is lost: %s",
       dt_link_why(both[0]));
    close_both(both);
}

static void test_end(void)
{
    struct dt_link *both[2];
    open_both(both);
    turn(both, 5);
    send_frame(both[0], DT_WIRE_NEWS, 2, 'x');
    dt_link_close(both[0]);
    dt_link_progress(both[1], now);
    ok(broke(both[1], DT_ERR_PROC_FAILED, "connection broke"), "cut: %s",
       dt_link_why(both[1]));
    ok(comes(both[1], 2, 'x'), "what came before is there");
    dt_link_close(both[1]);

    open_both(both);
    turn(both, 5);
    send_frame(both[1], DT_WIRE_BYE, 0, 0);
    dt_link_progress(both[0], now);
    ok(is_open(both[0]) && comes(both[0], 0, 0), "BYE is received");
    dt_link_close(both[1]);
    dt_link_progress(both[0], now);
    ok(broke(both[0], DT_SUCCESS, "left"), "and then it has left");
    dt_link_close(both[0]);

    open_both(both);
    turn(both, 5);
    dt_link_refuse(both[0], "no \x1b[31mway\n");
    dt_link_progress(both[1], now);
    ok(broke(both[1], DT_ERR_INVALID_ARG, "no ?[31mway?"),
       "a refusal is printable: %s", dt_link_why(both[1]));
    close_both(both);
}

static void test_munge_down(void)
{
    for (int i = 0; i < 2; i++) {
        struct dt_identity ids[2] = {identity(1), identity(2)};
        struct dt_link *both[2];
        int fds[2];
        make_pair(fds);
        ids[i].munge = "/nowhere/munge";
        both[0] = open_link(fds[0], &ids[0], 2);
        both[1] = open_link(fds[1], &ids[1], DT_NODE_ANY);
        turn(both, 5);
        ok(broke(both[i], DT_ERR_SYSTEM, "/nowhere/munge") &&
               broke(both[!i], DT_ERR_INVALID_ARG, "on the other node"),
           "no munge at the %s: %s", i ? "acceptor" : "dialer",
           dt_link_why(both[i]));
        close_both(both);
    }
}

/* An acceptor that closes a connection in the middle of the handshake, to give
 * its place to another. */
static void test_closed(void)
{
    struct dt_link *both[2];
    struct dt_identity id = identity(2);
    int fds[2];
    open_both(both);
    dt_link_progress(both[0], now);
    dt_link_progress(both[1], now);
    dt_link_progress(both[0], now); /* its PROOF is on the way */
    dt_link_close(both[1]);
    dt_link_progress(both[0], now);
    ok(broke(both[0], DT_IN_PROGRESS, "without a message"),
       "closed in the middle of the handshake: %s", dt_link_why(both[0]));
    make_pair(fds);
    both[1] = open_link(fds[1], &id, DT_NODE_ANY);
    ok(dt_link_retry(both[0], fds[0], now, NULL) == DT_SUCCESS,
       "it is dialed once more");
    turn(both, 5);
    ok(is_open(both[0]) && is_open(both[1]), "and opens then");
    close_both(both);
}

/* A peer that sends, but reads nothing. */
static void test_unread(void)
{
    struct dt_link *both[2];
    struct dt_frame *frame = frame_of(DT_WIRE_NEWS, 64 << 20, 'u');
    open_both(both);
    turn(both, 5);
    for (int i = 0; i < 15; i++)
        dt_link_send(both[0], frame);
    ok(is_open(both[0]), "a slow reader is tolerated");
    for (int i = 0; i < 4; i++)
        dt_link_send(both[0], frame);
    ok(broke(both[0], DT_ERR_TIMED_OUT, "does not read"),
       "but not for ever: %s", dt_link_why(both[0]));
    close_both(both);
    dt_frame_unref(frame);
}

int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    int before = descriptors_of(getpid());
    test_open();
    test_time();
    test_end();
    test_munge_down();
    test_closed();
    test_unread();
    ok(descriptors_of(getpid()) == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
