/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stranger.c - connections to the TCP transport that do not prove to be of a
 * rank of the job: they change nothing, and are closed. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks.h"
#include "tl/tcp/tcp.h"

/* ---- what a stranger can do ---- */

/* Connect to rank 0, as /proc/net/tcp tells everybody where it listens. */
static int dial(struct rank *r)
{
    struct dt_tcp_address to;
    struct sockaddr_storage at;
    memcpy(&to, r->board->addr[0], sizeof(to));
    socklen_t len = dt_tcp_address_socket(&to, &at);
    int fd = socket(at.ss_family, SOCK_STREAM, 0);
    NEED(fd >= 0 && !connect(fd, (struct sockaddr *)&at, len), "connect: %s",
         strerror(errno));
    return fd;
}

static void say(struct rank *r, int fd, const void *bytes, size_t len)
{
    ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
    NEED(n == (ssize_t)len || errno == EPIPE || errno == ECONNRESET, "send: %s",
         strerror(errno));
}

/* Read so many bytes; fewer: the other side closed the connection. */
static size_t hear(struct rank *r, int fd, void *bytes, size_t len)
{
    size_t got = 0;
    while (got < len) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (!poll(&one, 1, 1)) {
            r->ops->progress(r->tl); /* it is a rank, too */
            continue;
        }
        ssize_t n = recv(fd, (char *)bytes + got, len - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

/* Rank 0 has sent a challenge, and closes without a word more. */
static void need_refused(struct rank *r, int fd, const char *what)
{
    char more;
    NEED(!hear(r, fd, &more, 1), "%s is answered", what);
    close(fd);
}

static struct dt_tcp_challenge challenge(struct rank *r, int fd)
{
    struct dt_tcp_challenge challenge;
    NEED(hear(r, fd, &challenge, sizeof(challenge)) == sizeof(challenge),
         "no challenge");
    NEED(!memcmp(challenge.magic, "dt-tcp-1", 8), "another magic");
    return challenge;
}

/* The proof of this purpose that rank from is to give to rank to, as
 * doc/wire.md has it, with the secrets that no stranger has. */
static struct dt_secret prove(struct rank *r, const char *purpose, size_t from,
                              size_t to, const unsigned char *dialer,
                              const unsigned char *acceptor)
{
    unsigned char text[96] = {0};
    uint64_t ranks = htole64(from | (uint64_t)to << 32);
    size_t low = from < to ? from : to, high = from < to ? to : from;
    struct dt_secret key, proof;
    dt_secret_pair(&r->board->secret[low], &r->board->secret[high], "dt-tcp",
                   &key);
    strcpy((char *)text, purpose);
    memcpy(text + 16, &ranks, 8);
    memcpy(text + 32, dialer, 32);
    memcpy(text + 64, acceptor, 32);
    dt_secret_prove(&key, text, sizeof(text), &proof);
    return proof;
}

static struct dt_tcp_proof greeting(size_t from, size_t to)
{
    struct dt_tcp_proof proof = {.from = htole32((uint32_t)from),
                                 .to = htole32((uint32_t)to)};
    memcpy(proof.magic, "dt-tcp-1", 8);
    return proof;
}

static void send_garbage(struct rank *r)
{
    unsigned char bytes[4096];
    fill((char *)bytes, sizeof(bytes), r->me, 3);
    int fd = dial(r);
    say(r, fd, bytes, sizeof(bytes));
    char more[64];
    hear(r, fd, more, sizeof(more)); /* the challenge, or a reset */
    close(fd);
}

static void guess(struct rank *r)
{
    for (size_t from = 0; from <= r->size; from++) {
        int fd = dial(r);
        struct dt_tcp_proof proof = greeting(from, 0);
        challenge(r, fd);
        memset(proof.proof.bytes, 7, sizeof(proof.proof.bytes));
        say(r, fd, &proof, sizeof(proof));
        need_refused(r, fd, "a guessed proof");
    }
}

/* Send back what rank 0 said itself. */
static void reflect(struct rank *r)
{
    int fd = dial(r);
    struct dt_tcp_challenge said = challenge(r, fd);
    struct dt_tcp_proof proof = greeting(1, 0);
    memcpy(proof.nonce, said.nonce, sizeof(proof.nonce));
    memcpy(proof.proof.bytes, said.nonce, sizeof(said.nonce));
    say(r, fd, &proof, sizeof(proof));
    need_refused(r, fd, "a reflection");
}

/* Proofs that are right, but for another connection, another rank, or another
 * purpose. */
static void replay(struct rank *r)
{
    const size_t from = 1;
    for (int kind = 0; kind < 4; kind++) {
        int recorded = dial(r), fd = dial(r);
        struct dt_tcp_challenge old = challenge(r, recorded);
        struct dt_tcp_challenge new = challenge(r, fd);
        struct dt_tcp_proof proof = greeting(from, kind == 2 ? 1 : 0);
        memset(proof.nonce, 5, sizeof(proof.nonce));
        proof.proof =
            kind == 0   ? prove(r, "dialer", from, 0, proof.nonce, old.nonce)
            : kind == 1 ? prove(r, "acceptor", from, 0, proof.nonce, new.nonce)
            : kind == 2 ? prove(r, "dialer", from, 0, proof.nonce, new.nonce)
                        : prove(r, "dialer", 0, from, proof.nonce, new.nonce);
        say(r, fd, &proof, sizeof(proof));
        need_refused(r, fd, "a proof for something else");
        close(recorded);
    }
}

/* Take all places of this address, and keep them. */
static void crowd(struct rank *r, int *fds, size_t n)
{
    struct dt_tcp_proof half = greeting(1, 0);
    for (size_t i = 0; i < n; i++) {
        fds[i] = dial(r);
        say(r, fds[i], &half, i % 2 * 20);
        r->ops->progress(r->tl);
    }
}

/* ---- the cases ---- */

/* Each rank sends to each, and gets what was sent. */
static void exchange(struct rank *r, uint64_t tag)
{
    char *out = memory(r, MIB), *in = memory(r, MIB);
    for (size_t len = 100; len <= MIB; len *= 100) {
        struct dt_tl_req s, q;
        fill(out, len, r->me, tag);
        irecv(r, before(r), tag, in, len, &q);
        isend(r, after(r), tag, out, len, &s);
        NEED_DONE(&q);
        NEED_DONE(&s);
        NEED(filled(in, len, before(r), tag), "contents");
    }
    free(out);
    free(in);
}

/* before: does the stranger come before the first message? */
static void visit(struct rank *r, void (*attack)(struct rank *r), bool early)
{
    join(r);
    if (!early)
        greet_all(r);
    if (r->me == victim(r))
        attack(r);
    barrier(r);
    exchange(r, 1);
    greet_all(r);
    NEED(r->ops->check(r->tl, &r->err) == DT_SUCCESS, "%s", r->err.text);
    leave(r);
}

static void case_garbage(struct rank *r)
{
    visit(r, send_garbage, false);
}

static void case_guess(struct rank *r)
{
    visit(r, guess, true);
}

static void case_reflect(struct rank *r)
{
    visit(r, reflect, true);
}

static void case_replay(struct rank *r)
{
    visit(r, replay, true);
}

static void case_crowd(struct rank *r)
{
    enum { N = 300 };
    int fds[N];
    join(r);
    if (r->me == victim(r))
        crowd(r, fds, N);
    barrier(r);
    exchange(r, 1); /* ranks connect while the places are taken */
    greet_all(r);
    if (r->me == victim(r)) {
        challenge(r, fds[0]);
        need_refused(r, fds[0], "the first of too many");
        for (int i = 1; i < N; i++)
            close(fds[i]);
    }
    barrier(r);
    leave(r);
}

/* The proof that these tests make is the right one: a connection with it is
 * welcomed. The rank whose it is has not connected. */
static void case_member(struct rank *r)
{
    join(r);
    if (r->me == victim(r)) {
        int fd = dial(r);
        struct dt_tcp_challenge said = challenge(r, fd);
        struct dt_tcp_proof proof = greeting(r->me, 0);
        struct dt_tcp_welcome welcome;
        memset(proof.nonce, 5, sizeof(proof.nonce));
        proof.proof = prove(r, "dialer", r->me, 0, proof.nonce, said.nonce);
        say(r, fd, &proof, sizeof(proof));
        NEED(hear(r, fd, &welcome, sizeof(welcome)) == sizeof(welcome),
             "no welcome");
        struct dt_secret expected =
            prove(r, "acceptor", 0, r->me, proof.nonce, said.nonce);
        NEED(!welcome.status && dt_secret_equal(&expected, &welcome.proof),
             "another welcome");
        /* a frame without the right word ends the connection, and no more */
        struct dt_tcp_header header = {.word = 1, .total = 8, .len = 8};
        say(r, fd, &header, sizeof(header));
        need_refused(r, fd, "a forged frame");
    }
    barrier(r);
    leave(r);
}

static const struct tl_case cases[] = {
    {"garbage", case_garbage, false, true},
    {"guessed proofs", case_guess, false, true},
    {"a reflected challenge", case_reflect, false, true},
    {"proofs of another connection", case_replay, false, true},
    {"300 connections without a proof", case_crowd, false, true},
    {"the right proof, and a forged frame", case_member, false, true},
};

int main(int argc, char **argv)
{
    (void)argc;
    static const struct dt_tl_ops *const transports[] = {&dt_tl_tcp, NULL};
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
