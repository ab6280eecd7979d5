/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* connection.c - connections between the ranks of the TCP transport.
 *
 *   dialer                                 acceptor
 *              <-- CHALLENGE  nonce
 *     PROOF  from, to, nonce, proof -->
 *              <-- WELCOME  status, proof
 *
 * A proof is a keyed hash of who connects to whom and of both nonces, by the
 * key that only these two ranks can make, and says whose it is: it can be
 * neither made, nor sent back, nor used again. Nothing is read from a
 * connection but bytes of this length and form before, and nothing else is sent
 * on it.
 *
 * Any rank may dial. If two dial each other at the same time, the connection of
 * the lower rank is kept, and the higher one learns so by the status CROSSED.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tl/tcp/tcp.h"

/* Connections without a proof, in all and of one address: beyond these the
 * oldest is closed, if it had its time for a proof, and others wait in the
 * kernel until then. A rank of this job that this hits dials again. */
#define GUESTS        128
#define GUESTS_OF_ONE 16
#define GUEST_TIME    50 /* milliseconds */

/* Milliseconds: for a proof; until another address is tried, and until the last
 * one is given up; between two attempts. */
#define PROOF_TIME  30000
#define SWITCH_TIME 3000
#define DIAL_TIME   30000
#define PAUSE       20
#define CROSS_TIME  5000
#define TRIES       1000

static const char magic[8] = "dt-tcp-1";

int64_t dt_tcp_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- proofs ---- */

/* What is proved: purpose "dialer", "acceptor", or "frames" for the key of the
 * frames that rank from sends. */
static void prove(const struct dt_tcp_peer *peer, const char *purpose,
                  size_t from, uint64_t status,
                  const struct dt_tcp_handshake *handshake,
                  struct dt_secret *proof)
{
    struct {
        char purpose[16];
        uint64_t from, status; /* from has the low, to the high half */
        unsigned char dialer[DT_TCP_NONCE], acceptor[DT_TCP_NONCE];
    } text = {.status = status};
    size_t me = peer->tcp->rank, other = dt_tcp_rank_of(peer);
    strncpy(text.purpose, purpose, sizeof(text.purpose) - 1);
    text.from =
        htole64((uint64_t)from | (uint64_t)(from == me ? other : me) << 32);
    memcpy(text.dialer, handshake->proof.nonce, DT_TCP_NONCE);
    memcpy(text.acceptor, handshake->challenge.nonce, DT_TCP_NONCE);
    dt_secret_prove(&peer->key, &text, sizeof(text), proof);
}

static void draw_nonce(unsigned char nonce[DT_TCP_NONCE])
{
    struct dt_secret drawn;
    dt_secret_draw(&drawn, NULL); /* it could when the transport was opened */
    memcpy(nonce, drawn.bytes, DT_TCP_NONCE);
}

_Static_assert(sizeof(struct dt_secret) == DT_TCP_NONCE, "a nonce is drawn");

/* Read a message of this length, as far as it is here. 1: it is complete; 0:
 * there is more to come; -1: the connection has ended. */
static int read_exactly(int fd, void *message, size_t size, size_t *got)
{
    while (*got < size) {
        ssize_t n = recv(fd, (char *)message + *got, size - *got, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n <= 0)
            return -1;
        *got += (size_t)n;
    }
    *got = 0;
    return 1;
}

/* The first bytes of a connection: there is room for them. */
static bool write_all(int fd, const void *message, size_t size)
{
    return send(fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)size;
}

/* ---- sockets ---- */

static bool poll_for(struct dt_tcp *tcp, struct dt_tcp_socket *socket,
                     uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = socket};
    return !epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, socket->fd, &event);
}

static void close_socket(struct dt_tcp_socket *socket)
{
    if (socket->fd >= 0)
        close(socket->fd);
    socket->fd = -1;
}

/* Small frames are sent at once; a host that has vanished is noticed after 25 s
 * of silence. */
static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 10},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                   {IPPROTO_TCP, TCP_KEEPCNT, 3}};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof(options[i].value));
}

dt_result_t dt_tcp_listen(struct dt_tcp *tcp, uint16_t *port,
                          struct dt_error *err)
{
    const int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, off = 0;
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    struct sockaddr *any = (struct sockaddr *)&any6;
    socklen_t len = sizeof(any6);
    int fd = socket(AF_INET6, flags, 0);
    if (fd >= 0)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (fd < 0 || bind(fd, any, len)) { /* a node without IPv6 */
        if (fd >= 0)
            close(fd);
        any = (struct sockaddr *)&any4;
        len = sizeof(any4);
        fd = socket(AF_INET, flags, 0);
        if (fd >= 0 && bind(fd, any, len))
            goto failed;
    }
    if (fd < 0 || listen(fd, SOMAXCONN) || getsockname(fd, any, &len))
        goto failed;
    *port = ntohs(any->sa_family == AF_INET6
                      ? ((struct sockaddr_in6 *)any)->sin6_port
                      : ((struct sockaddr_in *)any)->sin_port);
    tcp->listener = (struct dt_tcp_socket){DT_TCP_LISTENER, fd};
    if (poll_for(tcp, &tcp->listener, EPOLLIN))
        return DT_SUCCESS;

failed:
    dt_error_set(err, DT_ERR_SYSTEM, "cannot listen for other ranks: %s",
                 strerror(errno));
    if (fd >= 0)
        close(fd);
    tcp->listener.fd = -1;
    return DT_ERR_SYSTEM;
}

/* ---- an open connection ---- */

/* The handshake is over: the peer has this connection from now on. */
static void open_connection(struct dt_tcp_peer *peer, int fd,
                            const struct dt_tcp_handshake *handshake)
{
    size_t me = peer->tcp->rank, other = dt_tcp_rank_of(peer);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    prove(peer, "frames", me, 0, handshake, &peer->out.key);
    prove(peer, "frames", other, 0, handshake, &peer->in.key);
    peer->socket.fd = fd;
    peer->state = DT_TCP_OPEN;
    peer->watched = EPOLLIN;
    if (epoll_ctl(peer->tcp->epoll, EPOLL_CTL_MOD, fd, &event))
        dt_tcp_gone(peer);
    else
        dt_tcp_flush(peer);
}

/* ---- accepting ---- */

static void end_guest(struct dt_tcp *tcp, struct dt_tcp_guest *guest)
{
    if (guest->over)
        return;
    guest->over = true;
    tcp->nguests--;
    close_socket(&guest->socket);
}

static void refuse(struct dt_tcp *tcp, struct dt_tcp_guest *guest,
                   const char *why)
{
    if (guest->over)
        return;
    dt_stranger_refused(&tcp->strangers, tcp->rank, guest->ip, why);
    end_guest(tcp, guest);
}

/* Had it its time for a proof? */
static bool slow(const struct dt_tcp_guest *guest)
{
    return dt_tcp_now() - (guest->until - PROOF_TIME) >= GUEST_TIME;
}

/* Is there room for one more, or can there be? */
static bool make_room(struct dt_tcp *tcp)
{
    struct dt_tcp_guest *oldest = tcp->guests;
    if (tcp->nguests < GUESTS)
        return true;
    while (oldest && oldest->over)
        oldest = oldest->next;
    if (!oldest || !slow(oldest))
        return false;
    refuse(tcp, oldest, "was one of too many");
    return true;
}

/* Close the oldest of this address, if it has too many. */
static void limit_address(struct dt_tcp *tcp, const uint8_t ip[16])
{
    struct dt_tcp_guest *oldest = NULL;
    size_t same = 0;
    for (struct dt_tcp_guest *guest = tcp->guests; guest; guest = guest->next)
        if (!guest->over && !memcmp(guest->ip, ip, sizeof(guest->ip))) {
            oldest = oldest ? oldest : guest;
            same++;
        }
    if (same >= GUESTS_OF_ONE && slow(oldest))
        refuse(tcp, oldest, "was one of too many");
}

/* False: it is closed again, as there is no memory. */
static bool welcome_guest(struct dt_tcp *tcp, int fd, const uint8_t ip[16])
{
    struct dt_tcp_guest *guest = calloc(1, sizeof(*guest)), **last;
    limit_address(tcp, ip);
    if (!guest)
        return false;
    guest->socket = (struct dt_tcp_socket){DT_TCP_GUEST, fd};
    memcpy(guest->ip, ip, sizeof(guest->ip));
    guest->until = dt_tcp_now() + PROOF_TIME;
    memcpy(guest->handshake.challenge.magic, magic, sizeof(magic));
    draw_nonce(guest->handshake.challenge.nonce);
    set_options(fd);
    if (!poll_for(tcp, &guest->socket, EPOLLIN) ||
        !write_all(fd, &guest->handshake.challenge,
                   sizeof(guest->handshake.challenge))) {
        free(guest);
        return false;
    }
    for (last = &tcp->guests; *last; last = &(*last)->next)
        continue;
    *last = guest;
    tcp->nguests++;
    return true;
}

void dt_tcp_accept(struct dt_tcp *tcp)
{
    while (make_room(tcp)) {
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        uint8_t ip[16];
        int fd = accept4(tcp->listener.fd, (struct sockaddr *)&from, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE) && tcp->nguests) {
            for (struct dt_tcp_guest *g = tcp->guests; g; g = g->next)
                refuse(tcp, g, "took the last free descriptors");
            continue;
        }
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return;
        dt_tcp_ip_of(&from, ip);
        if (!welcome_guest(tcp, fd, ip))
            close(fd);
    }
}

/* The peer that this proof is from; NULL: a stranger. */
static struct dt_tcp_peer *author(struct dt_tcp *tcp,
                                  const struct dt_tcp_handshake *handshake)
{
    const struct dt_tcp_proof *given = &handshake->proof;
    size_t from = le32toh(given->from);
    struct dt_secret expected;
    if (memcmp(given->magic, magic, sizeof(magic)) ||
        le32toh(given->to) != tcp->rank || from >= tcp->size || !tcp->peers ||
        !tcp->peers[from].to.n)
        return NULL;
    struct dt_tcp_peer *peer = &tcp->peers[from];
    prove(peer, "dialer", from, 0, handshake, &expected);
    return dt_secret_equal(&expected, &given->proof) ? peer : NULL;
}

static void take_proof(struct dt_tcp *tcp, struct dt_tcp_guest *guest)
{
    struct dt_tcp_handshake *handshake = &guest->handshake;
    struct dt_tcp_peer *peer = author(tcp, handshake);
    if (!peer) {
        refuse(tcp, guest, "gave a wrong proof");
        return;
    }
    bool ours =
        peer->state == DT_TCP_OPEN || peer->state == DT_TCP_GONE ||
        (peer->state == DT_TCP_DIALING && tcp->rank < dt_tcp_rank_of(peer));
    uint64_t status = htole64(ours ? DT_TCP_CROSSED : DT_TCP_WELCOME);
    handshake->welcome.status = status;
    prove(peer, "acceptor", tcp->rank, status, handshake,
          &handshake->welcome.proof);
    bool sent = write_all(guest->socket.fd, &handshake->welcome,
                          sizeof(handshake->welcome));
    if (sent && !ours) {
        if (peer->state == DT_TCP_DIALING)
            close_socket(&peer->socket);
        open_connection(peer, guest->socket.fd, handshake);
        guest->socket.fd = -1; /* it is the peer's now */
    }
    end_guest(tcp, guest);
}

void dt_tcp_guest_ready(struct dt_tcp *tcp, struct dt_tcp_guest *guest)
{
    struct dt_tcp_handshake *handshake = &guest->handshake;
    if (guest->over)
        return;
    int state = read_exactly(guest->socket.fd, &handshake->proof,
                             sizeof(handshake->proof), &handshake->got);
    if (state < 0 && !handshake->got)
        end_guest(tcp, guest); /* a rank that dialed in vain does that, too */
    else if (state < 0)
        refuse(tcp, guest, "ended in its proof");
    else if (state > 0)
        take_proof(tcp, guest);
}

void dt_tcp_stop_listening(struct dt_tcp *tcp)
{
    close_socket(&tcp->listener);
    for (struct dt_tcp_guest *guest; (guest = tcp->guests);) {
        tcp->guests = guest->next;
        close_socket(&guest->socket);
        free(guest);
    }
    tcp->nguests = 0;
}

/* ---- dialing ---- */

static void list(struct dt_tcp_peer *peer)
{
    if (peer->listed)
        return;
    peer->listed = true;
    peer->next = peer->tcp->connecting;
    peer->tcp->connecting = peer;
}

static void pause_dialing(struct dt_tcp_peer *peer, int64_t ms)
{
    close_socket(&peer->socket);
    peer->state = DT_TCP_PAUSING;
    peer->until = dt_tcp_now() + ms;
}

static void dial(struct dt_tcp_peer *peer);

/* It cannot be reached at this address, for this reason: try the next one. */
static void dial_failed(struct dt_tcp_peer *peer, const char *why)
{
    struct dt_tcp *tcp = peer->tcp;
    size_t rank = dt_tcp_rank_of(peer);
    char at[DT_TCP_TEXT];
    dt_tcp_ip_text(peer->to.at[peer->address].ip, at);
    close_socket(&peer->socket);
    if (++peer->address < peer->to.n) {
        dial(peer);
        return;
    }
    if (dt_tcp_needs(peer))
        dt_tcp_doom(tcp, tcp->rank, rank + 1,
                    "rank %zu is gone, or cannot be reached (%s: %s)", rank, at,
                    why);
    dt_tcp_gone(peer);
}

/* The connection ended in the handshake: the peer had too many, or is ending.
 */
static void dial_again(struct dt_tcp_peer *peer)
{
    peer->address = 0;
    if (++peer->tries < TRIES)
        pause_dialing(peer, PAUSE);
    else
        dial_failed(peer, "it closes every connection");
}

static void dial(struct dt_tcp_peer *peer)
{
    struct dt_tcp *tcp = peer->tcp;
    struct sockaddr_storage to;
    socklen_t len = dt_tcp_address_socket(&peer->to.at[peer->address], &to);
    bool last = peer->address + 1 == peer->to.n;
    peer->state = DT_TCP_DIALING;
    peer->until = dt_tcp_now() + (last ? DIAL_TIME : SWITCH_TIME);
    peer->handshake = (struct dt_tcp_handshake){0};
    list(peer);
    int fd =
        socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    peer->socket.fd = fd;
    if (fd >= 0)
        set_options(fd);
    if (fd < 0 ||
        (connect(fd, (struct sockaddr *)&to, len) && errno != EINPROGRESS) ||
        !poll_for(tcp, &peer->socket, EPOLLIN | EPOLLOUT))
        dial_failed(peer, strerror(errno));
}

void dt_tcp_connect(struct dt_tcp_peer *peer)
{
    if (peer->state != DT_TCP_IDLE)
        return;
    peer->address = 0;
    dial(peer);
}

/* Is it connected? Then what was waited for is the challenge. */
static bool connected(struct dt_tcp_peer *peer)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    struct sockaddr_storage to;
    socklen_t len = sizeof(to);
    int error = 0;
    socklen_t size = sizeof(error);
    if (peer->handshake.connected)
        return true;
    getsockopt(peer->socket.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        dial_failed(peer, strerror(error));
        return false;
    }
    if (getpeername(peer->socket.fd, (struct sockaddr *)&to, &len))
        return false; /* not yet */
    peer->handshake.connected = true;
    epoll_ctl(peer->tcp->epoll, EPOLL_CTL_MOD, peer->socket.fd, &event);
    return true;
}

/* The challenge has come: answer it. */
static void send_proof(struct dt_tcp_peer *peer)
{
    struct dt_tcp_handshake *handshake = &peer->handshake;
    struct dt_tcp_proof *proof = &handshake->proof;
    size_t me = peer->tcp->rank;
    if (memcmp(handshake->challenge.magic, magic, sizeof(magic))) {
        dial_failed(peer, "another program answers there");
        return;
    }
    memcpy(proof->magic, magic, sizeof(magic));
    proof->from = htole32((uint32_t)me);
    proof->to = htole32((uint32_t)dt_tcp_rank_of(peer));
    draw_nonce(proof->nonce);
    prove(peer, "dialer", me, 0, handshake, &proof->proof);
    handshake->proved = true;
    if (!write_all(peer->socket.fd, proof, sizeof(*proof)))
        dial_again(peer);
}

static void take_welcome(struct dt_tcp_peer *peer)
{
    struct dt_tcp_handshake *handshake = &peer->handshake;
    const struct dt_tcp_welcome *welcome = &handshake->welcome;
    struct dt_secret expected;
    prove(peer, "acceptor", dt_tcp_rank_of(peer), welcome->status, handshake,
          &expected);
    if (!dt_secret_equal(&expected, &welcome->proof))
        dial_failed(peer, "another program answers there");
    else if (le64toh(welcome->status) == DT_TCP_CROSSED)
        pause_dialing(peer, CROSS_TIME);
    else
        open_connection(peer, peer->socket.fd, handshake);
}

void dt_tcp_dial_ready(struct dt_tcp_peer *peer)
{
    struct dt_tcp_handshake *handshake = &peer->handshake;
    if (peer->state != DT_TCP_DIALING || !connected(peer))
        return;
    int fd = peer->socket.fd, state;
    if (!handshake->proved) {
        state = read_exactly(fd, &handshake->challenge,
                             sizeof(handshake->challenge), &handshake->got);
        if (state > 0)
            send_proof(peer);
    } else {
        state = read_exactly(fd, &handshake->welcome,
                             sizeof(handshake->welcome), &handshake->got);
        if (state > 0)
            take_welcome(peer);
    }
    if (state < 0)
        dial_again(peer);
}

/* ---- the clock ---- */

static void tick_guests(struct dt_tcp *tcp, int64_t now)
{
    struct dt_tcp_guest **at = &tcp->guests;
    while (*at) {
        struct dt_tcp_guest *guest = *at;
        if (!guest->over && now >= guest->until)
            refuse(tcp, guest, "sent no proof");
        if (guest->over) {
            *at = guest->next;
            free(guest);
        } else {
            at = &guest->next;
        }
    }
}

static void tick_peer(struct dt_tcp_peer *peer, int64_t now)
{
    if (peer->state == DT_TCP_DIALING && !peer->handshake.connected &&
        now >= peer->until)
        dial_failed(peer, strerror(ETIMEDOUT));
    else if (peer->state == DT_TCP_PAUSING && now >= peer->until)
        dial(peer);
}

void dt_tcp_tick(struct dt_tcp *tcp)
{
    if (!tcp->guests && !tcp->connecting)
        return;
    int64_t now = dt_tcp_now();
    tick_guests(tcp, now);
    struct dt_tcp_peer *peer = tcp->connecting, *next;
    tcp->connecting = NULL;
    for (; peer; peer = next) {
        next = peer->next;
        peer->listed = false;
        tick_peer(peer, now);
        if (peer->state == DT_TCP_DIALING || peer->state == DT_TCP_PAUSING)
            list(peer);
    }
}
