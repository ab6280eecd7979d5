/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link.c - one connection between two daemons: greeting, frames, time, the end,
 * and those who are not let in. */
#include "mesh/link.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "munged.h"
#include "tap.h"

#define HEART 30000

static struct munged munged;
static int64_t now; /* all time there is */

static struct dt_identity identity(uint32_t node)
{
    return (struct dt_identity){.job = 17,
                                .step = 0,
                                .node = node,
                                .nodes = 4,
                                .pmix = "4.2.2",
                                .munge = munged.socket,
                                .heartbeat = HEART};
}

static void make_pair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
        abort();
}

static struct dt_link *open_link(int fd, const struct dt_identity *self,
                                 uint32_t to)
{
    struct dt_link *link;
    if (dt_link_open(&link, fd, self, to, now, NULL) != DT_SUCCESS)
        abort();
    return link;
}

/* A dialer, node 1, and an acceptor, node 2, not yet turned. */
static void open_both(struct dt_link *both[2])
{
    int fds[2];
    struct dt_identity from = identity(1), to = identity(2);
    make_pair(fds);
    both[0] = open_link(fds[0], &from, 2);
    both[1] = open_link(fds[1], &to, DT_NODE_ANY);
}

static void turn(struct dt_link *both[2], int times)
{
    for (int i = 0; i < times; i++)
        for (int j = 0; j < 2; j++)
            dt_link_turn(both[j], now);
}

static void close_both(struct dt_link *both[2])
{
    dt_link_close(both[0]);
    dt_link_close(both[1]);
}

static struct dt_frame *frame_of(enum dt_wire_kind kind, size_t len, char fill)
{
    struct dt_frame *frame = dt_frame_begin(kind);
    char *bytes = malloc(len + 1);
    memset(bytes, fill, len);
    dt_frame_bytes(frame, bytes, len);
    free(bytes);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    return frame;
}

static void send_frame(struct dt_link *link, enum dt_wire_kind kind, size_t len,
                       char fill)
{
    struct dt_frame *frame = frame_of(kind, len, fill);
    dt_link_send(link, frame);
    dt_frame_unref(frame);
}

/* Does the next frame hold this? */
static bool comes(struct dt_link *link, size_t len, char fill)
{
    struct dt_frame *frame = dt_link_next(link);
    bool good = frame && frame->len == len + 5 &&
                (len == 0 || (frame->bytes[5] == (unsigned char)fill &&
                              frame->bytes[len + 4] == (unsigned char)fill));
    dt_frame_unref(frame);
    return good;
}

static bool is_open(const struct dt_link *link)
{
    return dt_link_state(link) == DT_LINK_OPEN;
}

static bool broke(const struct dt_link *link, dt_result_t result,
                  const char *text)
{
    if (dt_link_state(link) == DT_LINK_BROKEN &&
        dt_link_result(link) == result && strstr(dt_link_why(link), text))
        return true;
    diag("state %d result %d: %s", dt_link_state(link), dt_link_result(link),
         dt_link_why(link));
    return false;
}

/* ---- as it should be ---- */

static void test_open(void)
{
    struct dt_link *both[2];
    open_both(both);
    send_frame(both[0], DT_WIRE_NEWS, 3, 'a');
    ok(dt_link_peer(both[1]) == DT_NODE_ANY && !dt_link_next(both[1]) &&
           !dt_link_flushed(both[0]),
       "nobody is believed at first");
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
       "a large frame does not go at once");
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
    int64_t due = dt_link_turn(both[0], now);
    ok(due > now && due <= now + HEART / 3,
       "a link wants to be turned in time");
    for (int i = 0; i < 100; i++) {
        now += HEART / 3;
        turn(both, 2);
    }
    ok(is_open(both[0]) && is_open(both[1]) && !dt_link_next(both[0]),
       "two that have nothing to say hear each other's heart");
    now += 1000 * HEART;
    turn(both, 2);
    ok(is_open(both[0]) && is_open(both[1]),
       "time in which both stood still does not count");
    for (int i = 0; i < 3; i++) {
        ok(is_open(both[0]), "silent for %d s", i * HEART / 3000);
        now += HEART / 3;
        dt_link_turn(both[0], now);
    }
    ok(broke(both[0], DT_ERR_TIMED_OUT, "30 s"), "a frozen one is lost: %s",
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
    dt_link_turn(both[1], now);
    ok(broke(both[1], DT_ERR_PROC_FAILED, "connection broke"), "cut: %s",
       dt_link_why(both[1]));
    ok(comes(both[1], 2, 'x'), "what came before is there");
    dt_link_close(both[1]);

    open_both(both);
    turn(both, 5);
    send_frame(both[1], DT_WIRE_BYE, 0, 0);
    dt_link_turn(both[0], now);
    ok(is_open(both[0]) && comes(both[0], 0, 0), "BYE is seen");
    dt_link_close(both[1]);
    dt_link_turn(both[0], now);
    ok(broke(both[0], DT_SUCCESS, "left"), "and then it has left");
    dt_link_close(both[0]);

    open_both(both);
    turn(both, 5);
    dt_link_refuse(both[0], "no \x1b[31mway\n");
    dt_link_turn(both[1], now);
    ok(broke(both[1], DT_ERR_INVALID_ARG, "no ?[31mway?"),
       "a refusal is told, fit to print: %s", dt_link_why(both[1]));
    close_both(both);
}

/* ---- strangers, who write bytes ---- */

struct stranger {
    int fd;
    struct dt_link *link; /* the other end: node 2 */
};

static void come(struct stranger *stranger)
{
    int fds[2];
    struct dt_identity self = identity(2);
    make_pair(fds);
    stranger->fd = fds[0];
    stranger->link = open_link(fds[1], &self, DT_NODE_ANY);
}

static void leave(struct stranger *stranger)
{
    close(stranger->fd);
    dt_link_close(stranger->link);
}

static void put(int fd, const void *data, size_t len)
{
    if (write(fd, data, len) != (ssize_t)len)
        abort();
}

/* What is there now. */
static size_t get(int fd, void *data, size_t room)
{
    ssize_t n = read(fd, data, room);
    return n > 0 ? (size_t)n : 0;
}

/* Say this, and see the link break. */
static void say(const char *what, const void *data, size_t len,
                dt_result_t result, const char *why)
{
    struct stranger stranger;
    come(&stranger);
    put(stranger.fd, data, len);
    dt_link_turn(stranger.link, now);
    ok(broke(stranger.link, result, why) && !dt_link_next(stranger.link),
       "%s: %s", what, dt_link_why(stranger.link));
    leave(&stranger);
}

static void test_garbage(void)
{
    static const unsigned char huge[] = {255, 255, 255, 15, DT_WIRE_HELLO, 0};
    static const unsigned char too_long[] = {1, 16, 0, 0, DT_WIRE_HELLO, 0};
    struct stranger stranger;
    struct dt_frame *news = frame_of(DT_WIRE_NEWS, 10, 'n');
    struct dt_frame *hello = frame_of(DT_WIRE_HELLO, 60, 'h');

    say("garbage", "GET / HTTP/1.1\r\n\r\n", 18, DT_ERR_CORRUPT, "");
    say("a huge length", huge, sizeof(huge), DT_ERR_CORRUPT, "");
    say("more than 4 KiB", too_long, sizeof(too_long), DT_ERR_CORRUPT, "");
    say("news before a proof", news->bytes, news->len, DT_ERR_CORRUPT, "greet");
    say("an empty HELLO", hello->bytes, hello->len, DT_ERR_CORRUPT, "speak");
    for (int half = 0; half < 2; half++) {
        int64_t begin = now;
        come(&stranger);
        put(stranger.fd, hello->bytes, half ? hello->len / 2 : 0);
        while (dt_link_state(stranger.link) == DT_LINK_GREETING &&
               now < begin + 60000)
            now =
                dt_link_turn(stranger.link, now) < INT64_MAX ? now + 500 : now;
        ok(broke(stranger.link, DT_ERR_TIMED_OUT, "10 s") &&
               now == begin + DT_LINK_HANDSHAKE_MS,
           "%s: %s", half ? "half a frame" : "nothing",
           dt_link_why(stranger.link));
        leave(&stranger);
    }
    dt_frame_unref(news);
    dt_frame_unref(hello);
}

/* Somebody who is honest, but not who he should be. */
static void dial_as(const char *what, struct dt_identity self, uint32_t to,
                    dt_result_t result, const char *told, const char *logged)
{
    struct dt_link *both[2];
    struct dt_identity other = identity(2);
    int fds[2];
    make_pair(fds);
    both[0] = open_link(fds[0], &self, to);
    both[1] = open_link(fds[1], &other, DT_NODE_ANY);
    turn(both, 5);
    ok(broke(both[0], result, told) && broke(both[1], result, logged), "%s: %s",
       what, dt_link_why(both[1]));
    close_both(both);
}

static void test_strangers(void)
{
    const char *who = "not the daemon you look for";
    struct dt_identity self = identity(1);
    self.job = 18;
    dial_as("another job", self, 2, DT_ERR_INVALID_ARG, who, "job 18 step 0");
    self = identity(1);
    self.step = 5;
    dial_as("another step", self, 2, DT_ERR_INVALID_ARG, who, "step 5");
    self = identity(1);
    self.nodes = 9;
    dial_as("a step of another size", self, 2, DT_ERR_INVALID_ARG, who, "9");
    dial_as("another node", identity(1), 3, DT_ERR_INVALID_ARG, who, "node 3");
    dial_as("a node that is not of the step", identity(4), 2,
            DT_ERR_INVALID_ARG, who, "node 4");
    dial_as("the node itself", identity(2), 2, DT_ERR_INVALID_ARG, who,
            "node 2");
    self = identity(1);
    self.pmix = "5.0.1";
    dial_as("another PMIx", self, 2, DT_ERR_VERSION, "PMIx 4.2.2",
            "PMIx 5.0.1");
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

/* ---- what was said in another handshake ---- */

struct record {
    unsigned char hello[4096], proof[4096];
    size_t hello_len, proof_len;
};

/* Stand between two honest ends. If the proof is withheld, the acceptor does
 * not get it. */
static void listen_in(struct record *record, bool withheld)
{
    struct stranger acceptor;
    struct dt_identity self = identity(1);
    unsigned char bytes[4096];
    int fds[2];
    come(&acceptor);
    make_pair(fds);
    struct dt_link *dialer = open_link(fds[1], &self, 2);
    dt_link_turn(dialer, now);
    record->hello_len = get(fds[0], record->hello, sizeof(record->hello));
    put(acceptor.fd, record->hello, record->hello_len);
    dt_link_turn(acceptor.link, now);
    put(fds[0], bytes, get(acceptor.fd, bytes, sizeof(bytes)));
    dt_link_turn(dialer, now);
    record->proof_len = get(fds[0], record->proof, sizeof(record->proof));
    if (!withheld) {
        put(acceptor.fd, record->proof, record->proof_len);
        dt_link_turn(acceptor.link, now);
        ok(is_open(acceptor.link), "an honest proof is believed");
    }
    leave(&acceptor);
    close(fds[0]);
    dt_link_close(dialer);
}

static void test_replay(void)
{
    for (int withheld = 0; withheld < 2; withheld++) {
        struct record record;
        struct stranger stranger;
        unsigned char bytes[4096];
        listen_in(&record, withheld);
        come(&stranger);
        put(stranger.fd, record.hello, record.hello_len);
        dt_link_turn(stranger.link, now);
        ok(get(stranger.fd, bytes, sizeof(bytes)) > 0 &&
               bytes[4] == DT_WIRE_CHALLENGE,
           "an old HELLO is challenged");
        put(stranger.fd, record.proof, record.proof_len);
        dt_link_turn(stranger.link, now);
        ok(broke(stranger.link, DT_ERR_INVALID_ARG,
                 withheld ? "something else" : "replayed"),
           "a %s proof: %s", withheld ? "stolen" : "replayed",
           dt_link_why(stranger.link));
        leave(&stranger);
    }
}

/* The acceptor's own credential comes back. */
static void test_reflection(void)
{
    struct record record;
    struct stranger stranger;
    unsigned char bytes[4096];
    listen_in(&record, true);
    come(&stranger);
    put(stranger.fd, record.hello, record.hello_len);
    dt_link_turn(stranger.link, now);
    size_t len = get(stranger.fd, bytes, sizeof(bytes));
    struct dt_frame *proof = dt_frame_begin(DT_WIRE_PROOF);
    /* length, kind, nonce; then the blob */
    dt_frame_bytes(proof, bytes + 21, len > 21 ? len - 21 : 0);
    if (dt_frame_end(&proof, NULL) != DT_SUCCESS)
        abort();
    put(stranger.fd, proof->bytes, proof->len);
    dt_link_turn(stranger.link, now);
    ok(broke(stranger.link, DT_ERR_INVALID_ARG, "something else"),
       "its own credential: %s", dt_link_why(stranger.link));
    dt_frame_unref(proof);
    leave(&stranger);
}

static void test_version(void)
{
    struct record record;
    struct stranger stranger;
    unsigned char bytes[4096] = {0};
    listen_in(&record, true);
    record.hello[13]++;
    come(&stranger);
    put(stranger.fd, record.hello, record.hello_len);
    dt_link_turn(stranger.link, now);
    ok(broke(stranger.link, DT_ERR_VERSION, "version 1 ") &&
           strstr(dt_link_why(stranger.link), "version 2:"),
       "another version: %s", dt_link_why(stranger.link));
    size_t len = get(stranger.fd, bytes, sizeof(bytes) - 1);
    ok(len > 6 && bytes[4] == DT_WIRE_REFUSE && bytes[5] == 1 &&
           strcmp((char *)bytes + 6, dt_link_why(stranger.link)) == 0,
       "is told the same");
    leave(&stranger);
}

/* One that we dial, and is not a daemon, or none of ours. */
static void test_acceptors(void)
{
    struct dt_identity self = identity(1);
    struct dt_frame *welcome = frame_of(DT_WIRE_WELCOME, 0, 0);
    struct dt_frame *challenge = frame_of(DT_WIRE_CHALLENGE, 50, 'c');
    struct dt_error err;
    int fds[2];

    make_pair(fds);
    struct dt_link *link = open_link(fds[1], &self, 2);
    put(fds[0], welcome->bytes, welcome->len);
    dt_link_turn(link, now);
    ok(broke(link, DT_ERR_CORRUPT, "greet"), "a WELCOME without a proof: %s",
       dt_link_why(link));
    close(fds[0]);
    dt_link_close(link);

    make_pair(fds);
    link = open_link(fds[1], &self, 2);
    put(fds[0], challenge->bytes, challenge->len);
    dt_link_turn(link, now);
    ok(broke(link, DT_ERR_CORRUPT, "credential"), "a false CHALLENGE: %s",
       dt_link_why(link));
    close(fds[0]);
    dt_link_close(link);

    make_pair(fds);
    link = open_link(fds[1], &self, 2);
    send_frame(link, DT_WIRE_NEWS, 4, 'k');
    close(fds[0]);
    dt_link_turn(link, now);
    ok(broke(link, DT_IN_PROGRESS, "hung up"), "one that hangs up: %s",
       dt_link_why(link));
    struct dt_link *both[2] = {link, NULL};
    struct dt_identity other = identity(2);
    make_pair(fds);
    ok(dt_link_retry(link, fds[0], now, &err) == DT_SUCCESS, "is dialed again");
    both[1] = open_link(fds[1], &other, DT_NODE_ANY);
    turn(both, 5);
    ok(comes(both[1], 4, 'k'), "and gets what waited");
    close_both(both);
    dt_frame_unref(welcome);
    dt_frame_unref(challenge);
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
    ok(is_open(both[0]), "a slow reader is waited for");
    for (int i = 0; i < 4; i++)
        dt_link_send(both[0], frame);
    ok(broke(both[0], DT_ERR_TIMED_OUT, "does not read"),
       "but not without an end: %s", dt_link_why(both[0]));
    close_both(both);
    dt_frame_unref(frame);
}

int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    int before = descriptors();
    test_open();
    test_time();
    test_end();
    test_garbage();
    test_strangers();
    test_munge_down();
    test_replay();
    test_reflection();
    test_version();
    test_acceptors();
    test_unread();
    ok(descriptors() == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
