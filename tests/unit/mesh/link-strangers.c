/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link-strangers.c - those whom a link does not let in, and those whom it
 * should not have dialed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../descriptors.h"
#include "link-ends.h"
#include "../tap.h"

/* ---- strangers, who write bytes ---- */

struct peer {
    int fd;
    struct dt_link *link; /* the other end: node 2 */
};

static void come(struct peer *peer)
{
    int fds[2];
    struct dt_identity self = identity(2);
    make_pair(fds);
    peer->fd = fds[0];
    peer->link = open_link(fds[1], &self, DT_NODE_ANY);
}

static void leave(struct peer *peer)
{
    close(peer->fd);
    dt_link_close(peer->link);
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

/* Send this, and see the link break. */
static void send_bytes(const char *what, const void *data, size_t len,
                       dt_result_t result, const char *why)
{
    struct peer peer;
    come(&peer);
    put(peer.fd, data, len);
    dt_link_progress(peer.link, now);
    ok(broke(peer.link, result, why) && !dt_link_next(peer.link), "%s: %s",
       what, dt_link_why(peer.link));
    leave(&peer);
}

static void test_garbage(void)
{
    static const unsigned char huge[] = {255, 255, 255, 15, DT_WIRE_HELLO, 0};
    static const unsigned char too_long[] = {1, 16, 0, 0, DT_WIRE_HELLO, 0};
    struct peer peer;
    struct dt_frame *event = frame_of(DT_WIRE_NEWS, 10, 'n');
    struct dt_frame *hello = frame_of(DT_WIRE_HELLO, 60, 'h');

    send_bytes("garbage", "GET / HTTP/1.1\r\n\r\n", 18, DT_ERR_CORRUPT, "");
    send_bytes("a huge length", huge, sizeof(huge), DT_ERR_CORRUPT, "");
    send_bytes("more than 4 KiB", too_long, sizeof(too_long), DT_ERR_CORRUPT,
               "");
    send_bytes("an event before the handshake", event->bytes, event->len,
               DT_ERR_CORRUPT, "handshake");
    send_bytes("an empty HELLO", hello->bytes, hello->len, DT_ERR_CORRUPT,
               "no daemon");
    for (int half = 0; half < 2; half++) {
        int64_t begin = now;
        come(&peer);
        put(peer.fd, hello->bytes, half ? hello->len / 2 : 0);
        while (dt_link_state(peer.link) == DT_LINK_HANDSHAKE &&
               now < begin + 60000)
            now =
                dt_link_progress(peer.link, now) < INT64_MAX ? now + 500 : now;
        ok(broke(peer.link, DT_ERR_TIMED_OUT, "10 s") &&
               now == begin + DT_LINK_HANDSHAKE_MS,
           "%s: %s", half ? "half a frame" : "nothing", dt_link_why(peer.link));
        leave(&peer);
    }
    dt_frame_unref(event);
    dt_frame_unref(hello);
}

/* Somebody who is honest, but not who he should be. */
static void dial_as(const char *what, struct dt_identity self, uint32_t to,
                    dt_result_t result, const char *reason, const char *logged)
{
    struct dt_link *both[2];
    struct dt_identity other = identity(2);
    int fds[2];
    make_pair(fds);
    both[0] = open_link(fds[0], &self, to);
    both[1] = open_link(fds[1], &other, DT_NODE_ANY);
    turn(both, 5);
    ok(broke(both[0], result, reason) && broke(both[1], result, logged),
       "%s: %s", what, dt_link_why(both[1]));
    close_both(both);
}

static void test_strangers(void)
{
    const char *who = "another daemon than the one dialed";
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

/* ---- replays of another handshake ---- */

struct record {
    unsigned char hello[4096], proof[4096];
    size_t hello_len, proof_len;
};

/* Stand between two honest ends. If the proof is withheld, the acceptor does
 * not get it. */
static void listen_in(struct record *record, bool withheld)
{
    struct peer acceptor;
    struct dt_identity self = identity(1);
    unsigned char bytes[4096];
    int fds[2];
    come(&acceptor);
    make_pair(fds);
    struct dt_link *dialer = open_link(fds[1], &self, 2);
    dt_link_progress(dialer, now);
    record->hello_len = get(fds[0], record->hello, sizeof(record->hello));
    put(acceptor.fd, record->hello, record->hello_len);
    dt_link_progress(acceptor.link, now);
    put(fds[0], bytes, get(acceptor.fd, bytes, sizeof(bytes)));
    dt_link_progress(dialer, now);
    record->proof_len = get(fds[0], record->proof, sizeof(record->proof));
    if (!withheld) {
        put(acceptor.fd, record->proof, record->proof_len);
        dt_link_progress(acceptor.link, now);
        ok(is_open(acceptor.link), "a proof of the right node is accepted");
    }
    leave(&acceptor);
    close(fds[0]);
    dt_link_close(dialer);
}

static void test_replay(void)
{
    for (int withheld = 0; withheld < 2; withheld++) {
        struct record record;
        struct peer peer;
        unsigned char bytes[4096];
        listen_in(&record, withheld);
        come(&peer);
        put(peer.fd, record.hello, record.hello_len);
        dt_link_progress(peer.link, now);
        ok(get(peer.fd, bytes, sizeof(bytes)) > 0 &&
               bytes[4] == DT_WIRE_CHALLENGE,
           "an old HELLO is challenged");
        put(peer.fd, record.proof, record.proof_len);
        dt_link_progress(peer.link, now);
        ok(broke(peer.link, DT_ERR_INVALID_ARG,
                 withheld ? "something else" : "replayed"),
           "a %s proof: %s", withheld ? "stolen" : "replayed",
           dt_link_why(peer.link));
        leave(&peer);
    }
}

/* The acceptor's own credential is reflected. */
static void test_reflection(void)
{
    struct record record;
    struct peer peer;
    unsigned char bytes[4096];
    listen_in(&record, true);
    come(&peer);
    put(peer.fd, record.hello, record.hello_len);
    dt_link_progress(peer.link, now);
    size_t len = get(peer.fd, bytes, sizeof(bytes));
    struct dt_frame *proof = dt_frame_begin(DT_WIRE_PROOF);
    /* length, kind, nonce; then the blob */
    dt_frame_bytes(proof, bytes + 21, len > 21 ? len - 21 : 0);
    if (dt_frame_end(&proof, NULL) != DT_SUCCESS)
        abort();
    put(peer.fd, proof->bytes, proof->len);
    dt_link_progress(peer.link, now);
    ok(broke(peer.link, DT_ERR_INVALID_ARG, "something else"),
       "its own credential: %s", dt_link_why(peer.link));
    dt_frame_unref(proof);
    leave(&peer);
}

static void test_version(void)
{
    struct record record;
    struct peer peer;
    unsigned char bytes[4096] = {0};
    listen_in(&record, true);
    record.hello[13]++;
    come(&peer);
    put(peer.fd, record.hello, record.hello_len);
    dt_link_progress(peer.link, now);
    char ours[32], theirs[32];
    snprintf(ours, sizeof(ours), "version %d ", DT_WIRE_VERSION);
    snprintf(theirs, sizeof(theirs), "version %d:", DT_WIRE_VERSION + 1);
    ok(broke(peer.link, DT_ERR_VERSION, ours) &&
           strstr(dt_link_why(peer.link), theirs),
       "another version: %s", dt_link_why(peer.link));
    size_t len = get(peer.fd, bytes, sizeof(bytes) - 1);
    ok(len > 6 && bytes[4] == DT_WIRE_REFUSE && bytes[5] == 1 &&
           strcmp((char *)bytes + 6, dt_link_why(peer.link)) == 0,
       "gets the same reason");
    leave(&peer);
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
    dt_link_progress(link, now);
    ok(broke(link, DT_ERR_CORRUPT, "handshake"),
       "a WELCOME without a proof: %s", dt_link_why(link));
    close(fds[0]);
    dt_link_close(link);

    make_pair(fds);
    link = open_link(fds[1], &self, 2);
    put(fds[0], challenge->bytes, challenge->len);
    dt_link_progress(link, now);
    ok(broke(link, DT_ERR_CORRUPT, "credential"), "a false CHALLENGE: %s",
       dt_link_why(link));
    close(fds[0]);
    dt_link_close(link);

    make_pair(fds);
    link = open_link(fds[1], &self, 2);
    send_frame(link, DT_WIRE_NEWS, 4, 'k');
    close(fds[0]);
    dt_link_progress(link, now);
    ok(broke(link, DT_IN_PROGRESS, "closed the connection"),
       "one that closes: %s", dt_link_why(link));
    struct dt_link *both[2] = {link, NULL};
    struct dt_identity other = identity(2);
    make_pair(fds);
    ok(dt_link_retry(link, fds[0], now, &err) == DT_SUCCESS, "is redialed");
    both[1] = open_link(fds[1], &other, DT_NODE_ANY);
    turn(both, 5);
    ok(comes(both[1], 4, 'k'), "and gets what was queued");
    close_both(both);
    dt_frame_unref(welcome);
    dt_frame_unref(challenge);
}
int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    int before = descriptors_of(getpid());
    test_garbage();
    test_strangers();
    test_replay();
    test_reflection();
    test_version();
    test_acceptors();
    ok(descriptors_of(getpid()) == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
