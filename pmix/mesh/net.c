/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* net.c - the links of one daemon.
 *
 * This node sends to another over one link only, so that its frames stay in
 * order: the first accepted one, or one that it dials, whichever exists at the
 * first send. The other may send over another link: if two nodes dial each
 * other at the same time, each goes on with its own. A node has left when its
 * shutdown message (BYE) has come on all links, and is lost when a link ends
 * without one. */
#include "mesh/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "mesh/address.h"
#include "mesh/strangers.h"

#define EVENTS 64 /* of one call: the rest keep the descriptor readable */

#define DEAF_MS 100 /* before the next attempt to accept */
#define ACCEPTS 256 /* of one call */

/* A busy daemon closes new connections: redial, for longer than it takes until
 * it has closed those whose handshake does not end. */
#define TRIES        40
#define TRY_MS       50  /* before the second try; more each time */
#define TRY_LIMIT_MS 500 /* before any */

#define UNKNOWN_NODE UINT32_MAX

struct conn {
    struct conn *next, **link_to_us;
    struct dt_link *link;
    uint32_t
        node;  /* UNKNOWN_NODE until the handshake of an accepted one ends */
    int tries; /* how often dialed; 0 if accepted */
    bool bye, waits;    /* bye: BYE has come; waits: until due, for a redial */
    uint32_t events;    /* that epoll watches */
    int64_t due, since; /* since: it was accepted */
    uint8_t ip[16];     /* of the other end */
};

/* Another node. */
struct peer {
    struct conn *out; /* what we send over */
    bool bye;         /* BYE has come, on one link at least */
    bool gone, left;  /* it is lost, or has left */
    struct peer *next_gone;
    char *why;
};

struct dt_net {
    int epoll, wake, listener;
    struct dt_identity self;
    struct dt_net_host host;
    const struct dt_map *map;
    uint8_t ip[16];
    uint16_t port;
    bool deaf; /* no descriptor is free: accept at listen_at */
    int64_t listen_at;
    struct conn *conns;
    struct peer *peers; /* [self.nodes] */
    struct peer *gone, **last_gone;
    int64_t now, due;
    struct dt_strangers strangers;
};

static void wake_up(struct dt_net *net)
{
    uint64_t one = 1;
    /* fails only if it is readable already */
    (void)!write(net->wake, &one, sizeof(one));
}

static int watch(struct dt_net *net, int op, int fd, uint32_t events, void *ptr)
{
    struct epoll_event event = {.events = events, .data.ptr = ptr};
    return epoll_ctl(net->epoll, op, fd, &event);
}

static void note_due(struct dt_net *net, int64_t at)
{
    if (at < net->due)
        net->due = at;
}

/* ---- nodes ---- */

static void give_up(struct dt_net *net, uint32_t node, bool left,
                    const char *why)
{
    struct peer *peer = &net->peers[node];
    if (peer->gone)
        return;
    peer->gone = true;
    peer->left = left;
    peer->why = strdup(why);
    peer->next_gone = NULL;
    *net->last_gone = peer;
    net->last_gone = &peer->next_gone;
    wake_up(net);
}

void dt_net_drop(struct dt_net *net, size_t node, const char *why)
{
    if (node < net->self.nodes)
        give_up(net, (uint32_t)node, false, why);
}

static bool has_left(const struct dt_net *net, uint32_t node)
{
    for (const struct conn *conn = net->conns; conn; conn = conn->next)
        if (conn->node == node && !conn->bye &&
            dt_link_state(conn->link) == DT_LINK_OPEN)
            return false;
    return true;
}

static void log_refusal(struct dt_net *net, const uint8_t ip[16],
                        const char *why)
{
    const char *line = dt_strangers_refused(&net->strangers, ip, why, net->now);
    if (line)
        net->host.refused(net->host.arg, line);
}

/* ---- one connection, from dialing or accepting to its end ---- */

int dt_net_dial(const uint8_t ip[16], uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t len = dt_address_put(ip, port, &to);
    int fd =
        socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, len) == 0 || errno == EINPROGRESS)
        return fd;
    int errnum = errno;
    close(fd);
    errno = errnum;
    return -1;
}

static void conn_rewatch(struct dt_net *net, struct conn *conn)
{
    /* POLLIN and POLLOUT are EPOLLIN and EPOLLOUT */
    uint32_t events = (uint32_t)dt_link_events(conn->link);
    if (events == conn->events || conn->waits)
        return;
    if (watch(net, EPOLL_CTL_MOD, dt_link_fd(conn->link), events, conn) == 0)
        conn->events = events;
}

static void conn_close(struct dt_net *net, struct conn *conn)
{
    if (conn->node != UNKNOWN_NODE && net->peers[conn->node].out == conn)
        net->peers[conn->node].out = NULL;
    *conn->link_to_us = conn->next;
    if (conn->next)
        conn->next->link_to_us = conn->link_to_us;
    dt_link_close(conn->link);
    free(conn);
}

static struct conn *conn_open(struct dt_net *net, int fd, uint32_t node)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    uint32_t to = node == UNKNOWN_NODE ? DT_NODE_ANY : node;
    if (!conn) {
        close(fd);
        errno = ENOMEM;
        return NULL;
    }
    if (dt_link_open(&conn->link, fd, &net->self, to, net->now, NULL) !=
        DT_SUCCESS) {
        free(conn);
        errno = ENOMEM;
        return NULL;
    }
    conn->node = node;
    conn->events = (uint32_t)dt_link_events(conn->link);
    if (watch(net, EPOLL_CTL_ADD, fd, conn->events, conn) < 0) {
        dt_link_close(conn->link);
        free(conn);
        return NULL;
    }
    conn->next = net->conns;
    conn->link_to_us = &net->conns;
    if (conn->next)
        conn->next->link_to_us = &conn->next;
    net->conns = conn;
    conn->due = net->due = net->now;
    wake_up(net);
    return conn;
}

static void cannot_dial(struct dt_net *net, uint32_t node, int errnum)
{
    char why[128];
    snprintf(why, sizeof(why), "cannot connect to it: %s", strerror(errnum));
    give_up(net, node, false, why);
}

static struct conn *conn_dial(struct dt_net *net, uint32_t node)
{
    const struct dt_map_entry *entry = &net->map->entry[node];
    int fd = dt_net_dial(entry->ip, entry->port);
    struct conn *conn = fd < 0 ? NULL : conn_open(net, fd, node);
    if (!conn) {
        cannot_dial(net, node, errno);
        return NULL;
    }
    memcpy(conn->ip, entry->ip, 16);
    conn->tries = 1;
    return conn;
}

static void redial(struct dt_net *net, struct conn *conn)
{
    const struct dt_map_entry *entry = &net->map->entry[conn->node];
    int fd = dt_net_dial(entry->ip, entry->port);
    conn->waits = false;
    conn->tries++;
    if (fd < 0) {
        cannot_dial(net, conn->node, errno);
        return;
    }
    if (dt_link_retry(conn->link, fd, net->now, NULL) != DT_SUCCESS) {
        give_up(net, conn->node, false, dt_link_why(conn->link));
        return;
    }
    conn->events = (uint32_t)dt_link_events(conn->link);
    if (watch(net, EPOLL_CTL_ADD, fd, conn->events, conn) < 0)
        cannot_dial(net, conn->node, errno);
}

/* The handshake of an accepted connection has ended. */
static void on_handshake(struct dt_net *net, struct conn *conn)
{
    uint32_t node = dt_link_peer(conn->link);
    if (net->peers[node].gone) {
        dt_link_refuse(conn->link, "this node has been declared lost");
        return;
    }
    conn->node = node;
}

static void deliver(struct dt_net *net, struct conn *conn)
{
    struct peer *peer = &net->peers[conn->node];
    struct dt_frame *frame;
    while (!peer->gone && (frame = dt_link_next(conn->link))) {
        if (dt_frame_kind(frame) == DT_WIRE_BYE) {
            conn->bye = peer->bye = true;
            if (has_left(net, conn->node))
                give_up(net, conn->node, true, "it has left");
        } else {
            net->host.received(net->host.arg, conn->node, frame);
        }
        dt_frame_unref(frame);
    }
}

/* Its link is broken. */
static void on_broken(struct dt_net *net, struct conn *conn)
{
    const char *why = dt_link_why(conn->link);
    dt_result_t result = dt_link_result(conn->link);
    if (conn->node == UNKNOWN_NODE) {
        log_refusal(net, conn->ip, why);
        conn_close(net, conn);
        return;
    }
    if (result == DT_IN_PROGRESS && conn->tries < TRIES &&
        !net->peers[conn->node].bye) {
        int pause = TRY_MS * conn->tries;
        watch(net, EPOLL_CTL_DEL, dt_link_fd(conn->link), 0, NULL);
        conn->waits = true;
        conn->due = net->now + (pause < TRY_LIMIT_MS ? pause : TRY_LIMIT_MS);
        note_due(net, conn->due);
        return;
    }
    /* A node that leaves may not accept connections any more. */
    bool handshake = dt_link_peer(conn->link) == DT_NODE_ANY;
    if (result != DT_SUCCESS && !(handshake && net->peers[conn->node].bye))
        give_up(net, conn->node, false, why);
    conn_close(net, conn);
}

static void conn_progress(struct dt_net *net, struct conn *conn)
{
    if (conn->waits) {
        if (net->now < conn->due)
            return;
        redial(net, conn);
    }
    conn->due = dt_link_progress(conn->link, net->now);
    if (conn->node == UNKNOWN_NODE && dt_link_peer(conn->link) != DT_NODE_ANY)
        on_handshake(net, conn);
    if (conn->node != UNKNOWN_NODE)
        deliver(net, conn);
    if (dt_link_state(conn->link) == DT_LINK_BROKEN) {
        on_broken(net, conn);
        return;
    }
    conn_rewatch(net, conn);
    note_due(net, conn->due);
}

/* ---- sending ---- */

/* An accepted link to send over, if there is one. */
static struct conn *find_conn(struct dt_net *net, uint32_t node)
{
    for (struct conn *conn = net->conns; conn; conn = conn->next)
        if (conn->node == node && dt_link_state(conn->link) == DT_LINK_OPEN)
            return conn;
    return NULL;
}

void dt_net_send(struct dt_net *net, size_t node, struct dt_frame *frame)
{
    if (node >= net->self.nodes || node == net->self.node ||
        net->peers[node].gone)
        return;
    struct peer *peer = &net->peers[node];
    if (!peer->out)
        peer->out = find_conn(net, (uint32_t)node);
    if (!peer->out && net->map)
        peer->out = conn_dial(net, (uint32_t)node);
    if (!peer->out)
        return;
    dt_link_send(peer->out->link, frame);
    conn_rewatch(net, peer->out);
}

bool dt_net_flushed(const struct dt_net *net)
{
    for (const struct conn *conn = net->conns; conn; conn = conn->next)
        if (conn->node != UNKNOWN_NODE && !dt_link_flushed(conn->link))
            return false;
    return true;
}

/* ---- turning ---- */

/* A place for a connection from ip. Daemons redial when theirs is closed. */
static bool find_place(struct dt_net *net, const uint8_t ip[16])
{
    struct dt_strangers_count count = {0};
    const void *close = NULL;
    for (const struct conn *conn = net->conns; conn; conn = conn->next)
        if (conn->node == UNKNOWN_NODE)
            dt_strangers_add(&count, ip, conn->ip, conn->since, conn);
    bool found =
        dt_strangers_place(&count, DT_NET_UNAUTHENTICATED, net->now, &close);
    if (!found || close)
        log_refusal(net, ip, "too many did not prove to be of this step");
    if (found && close)
        conn_close(net, (struct conn *)close);
    return found;
}

static void accept_some(struct dt_net *net)
{
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof(from);
        int fd = accept4(net->listener, (struct sockaddr *)&from, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                       errno == ENOBUFS)) {
            net->deaf = watch(net, EPOLL_CTL_MOD, net->listener, 0,
                              &net->listener) == 0;
            net->listen_at = net->now + DEAF_MS;
            note_due(net, net->listen_at);
        }
        if (fd < 0)
            return;
        uint8_t ip[16] = {0};
        dt_address_get((struct sockaddr *)&from, ip, NULL);
        if (!find_place(net, ip)) {
            close(fd);
            continue;
        }
        struct conn *conn = conn_open(net, fd, UNKNOWN_NODE);
        if (!conn)
            continue;
        memcpy(conn->ip, ip, sizeof(ip));
        conn->since = net->now;
    }
}

static void progress_due(struct dt_net *net)
{
    struct conn *next;
    net->due = INT64_MAX;
    if (net->deaf && net->listen_at <= net->now)
        net->deaf = watch(net, EPOLL_CTL_MOD, net->listener, EPOLLIN,
                          &net->listener) < 0;
    if (net->deaf)
        note_due(net, net->listen_at);
    for (struct conn *conn = net->conns; conn; conn = next) {
        next = conn->next;
        if (conn->due <= net->now)
            conn_progress(net, conn);
        else
            note_due(net, conn->due);
    }
}

/* Report the nodes that are lost or have left. */
static void report_gone(struct dt_net *net)
{
    struct peer *peer;
    struct conn *next;
    while ((peer = net->gone)) {
        uint32_t node = (uint32_t)(peer - net->peers);
        char *why = peer->why;
        net->gone = peer->next_gone;
        if (!net->gone)
            net->last_gone = &net->gone;
        for (struct conn *conn = net->conns; conn; conn = next) {
            next = conn->next;
            if (conn->node != node)
                continue;
            if (!peer->left)
                dt_link_refuse(conn->link, why ? why : "");
            conn_close(net, conn);
        }
        net->host.gone(net->host.arg, node, peer->left, why ? why : "");
        peer->why = NULL;
        free(why);
    }
}

int64_t dt_net_progress(struct dt_net *net, int64_t now)
{
    struct epoll_event events[EVENTS];
    bool accepts = false;
    net->now = now;
    int n = epoll_wait(net->epoll, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        uint64_t count;
        if (events[i].data.ptr == &net->listener)
            accepts = true;
        else if (events[i].data.ptr == &net->wake)
            (void)!read(net->wake, &count, sizeof(count));
        else
            conn_progress(net, events[i].data.ptr);
    }
    if (accepts) /* it may close others, which have had their event */
        accept_some(net);
    if (net->due <= now)
        progress_due(net);
    report_gone(net);
    return net->due;
}

/* ---- begin and end ---- */

static int listen_at(const struct sockaddr *at, socklen_t len)
{
    int fd =
        socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, at, len) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int errnum = errno;
    close(fd);
    errno = errnum;
    return -1;
}

static int make(struct dt_net *net, const struct sockaddr *at, socklen_t len)
{
    struct sockaddr_storage here;
    socklen_t here_len = sizeof(here);
    net->peers = calloc(net->self.nodes, sizeof(struct peer));
    if (!net->peers || (net->listener = listen_at(at, len)) < 0 ||
        getsockname(net->listener, (struct sockaddr *)&here, &here_len) < 0)
        return -1;
    dt_address_get((struct sockaddr *)&here, net->ip, &net->port);
    net->epoll = epoll_create1(EPOLL_CLOEXEC);
    net->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (net->epoll < 0 || net->wake < 0 ||
        watch(net, EPOLL_CTL_ADD, net->listener, EPOLLIN, &net->listener) < 0 ||
        watch(net, EPOLL_CTL_ADD, net->wake, EPOLLIN, &net->wake) < 0)
        return -1;
    return 0;
}

dt_result_t dt_net_open(struct dt_net **net, const struct sockaddr *at,
                        socklen_t at_len, const struct dt_identity *self,
                        const struct dt_net_host *host, struct dt_error *err)
{
    struct dt_net *made = calloc(1, sizeof(*made));
    if (!made)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for the network");
    made->epoll = made->wake = made->listener = -1;
    made->self = *self;
    made->host = *host;
    made->last_gone = &made->gone;
    made->due = INT64_MAX;
    if (make(made, at, at_len) < 0) {
        dt_error_set(err, DT_ERR_SYSTEM,
                     "cannot listen for the daemons of other nodes: %s",
                     strerror(errno));
        dt_net_close(made, 0);
        return DT_ERR_SYSTEM;
    }
    *net = made;
    return DT_SUCCESS;
}

void dt_net_address(const struct dt_net *net, uint8_t ip[16], uint16_t *port)
{
    memcpy(ip, net->ip, 16);
    *port = net->port;
}

void dt_net_set_map(struct dt_net *net, const struct dt_map *map)
{
    net->map = map;
}

int dt_net_fd(const struct dt_net *net)
{
    return net->epoll;
}

/* Queue BYE on links to nodes, close the other connections. */
static void send_shutdown(struct dt_net *net)
{
    struct conn *next;
    struct dt_frame *bye = dt_frame_begin(DT_WIRE_BYE);
    dt_result_t rc = dt_frame_end(&bye, NULL);
    for (struct conn *conn = net->conns; conn; conn = next) {
        next = conn->next;
        if (rc != DT_SUCCESS || conn->node == UNKNOWN_NODE || conn->waits) {
            conn_close(net, conn);
            continue;
        }
        dt_link_send(conn->link, bye);
        conn_rewatch(net, conn);
    }
    if (rc == DT_SUCCESS)
        dt_frame_unref(bye);
}

/* The other end closes, too, when it has read all: what is closed earlier may
 * lose data. */
static void shut_down(struct dt_net *net, int64_t now)
{
    struct conn *next;
    for (struct conn *conn = net->conns; conn; conn = next) {
        struct dt_frame *frame;
        next = conn->next;
        dt_link_progress(conn->link, now);
        while ((frame = dt_link_next(conn->link)))
            dt_frame_unref(frame);
        if (dt_link_state(conn->link) == DT_LINK_BROKEN) {
            conn_close(net, conn);
            continue;
        }
        if (dt_link_state(conn->link) == DT_LINK_OPEN &&
            dt_link_flushed(conn->link))
            shutdown(dt_link_fd(conn->link), SHUT_WR);
        conn_rewatch(net, conn);
    }
}

void dt_net_close(struct dt_net *net, int64_t ms)
{
    struct epoll_event event;
    if (!net)
        return;
    const char *line = dt_strangers_total(&net->strangers);
    if (line)
        net->host.refused(net->host.arg, line);
    if (net->listener >= 0)
        close(net->listener);
    if (net->wake >= 0)
        close(net->wake);
    send_shutdown(net);
    int64_t now = dt_pmix_now(), end = now + ms;
    for (shut_down(net, now); net->conns && now < end; shut_down(net, now)) {
        epoll_wait(net->epoll, &event, 1, (int)(end - now));
        now = dt_pmix_now();
    }
    while (net->conns)
        conn_close(net, net->conns);
    for (size_t i = 0; net->peers && i < net->self.nodes; i++)
        free(net->peers[i].why);
    free(net->peers);
    if (net->epoll >= 0)
        close(net->epoll);
    free(net);
}
