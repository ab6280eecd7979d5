/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* net.c - the links of one daemon.
 *
 * We send to a node over one link only, so that it gets our frames in order:
 * the first it has made, or ours, whichever is there when we first send. It may
 * be sending over another: if two nodes dial each other at once, each goes on
 * with its own. A node has left when it has said BYE on all, and is lost when
 * one ends without. */
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
#include "mesh/conn.h"

#define EVENTS 64 /* of one turn: the rest keep the descriptor readable */

#define DEAF_MS 100 /* until we try to accept again */
#define ACCEPTS 256 /* of one turn */

/* Lines about strangers: so many in so long. */
#define LINES    4
#define LINES_MS 60000

void dt_net_wake(struct dt_net *net)
{
    uint64_t one = 1;
    /* fails only if it is readable already */
    (void)!write(net->wake, &one, sizeof(one));
}

int dt_net_watch(struct dt_net *net, int op, int fd, uint32_t events, void *ptr)
{
    struct epoll_event event = {.events = events, .data.ptr = ptr};
    return epoll_ctl(net->epoll, op, fd, &event);
}

void dt_net_note_due(struct dt_net *net, int64_t at)
{
    if (at < net->due)
        net->due = at;
}

/* ---- nodes ---- */

void dt_net_doom(struct dt_net *net, uint32_t node, bool left, const char *why)
{
    struct dt_net_peer *peer = &net->peers[node];
    if (peer->doomed)
        return;
    peer->doomed = true;
    peer->left = left;
    peer->why = strdup(why);
    peer->next_doomed = NULL;
    *net->last_doomed = peer;
    net->last_doomed = &peer->next_doomed;
    dt_net_wake(net);
}

void dt_net_drop(struct dt_net *net, size_t node, const char *why)
{
    if (node < net->self.nodes)
        dt_net_doom(net, (uint32_t)node, false, why);
}

bool dt_net_has_left(const struct dt_net *net, uint32_t node)
{
    for (const struct dt_conn *conn = net->conns; conn; conn = conn->next)
        if (conn->node == node && !conn->bye &&
            dt_link_state(conn->link) == DT_LINK_OPEN)
            return false;
    return true;
}

void dt_net_say_refused(struct dt_net *net, const uint8_t ip[16],
                        const char *why)
{
    char at[DT_ADDRESS_TEXT], line[640];
    if (net->now - net->lines_since >= LINES_MS) {
        net->lines_since = net->now;
        net->lines = 0;
    }
    if (net->lines++ >= LINES)
        return;
    dt_address_text(ip, at);
    snprintf(line, sizeof(line), "a connection from %s was refused: %s", at,
             why);
    net->host.refused(net->host.arg, line);
}

/* ---- sending ---- */

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

/* An accepted link that we may send over, if there is one. */
static struct dt_conn *find_conn(struct dt_net *net, uint32_t node)
{
    for (struct dt_conn *conn = net->conns; conn; conn = conn->next)
        if (conn->node == node && dt_link_state(conn->link) == DT_LINK_OPEN)
            return conn;
    return NULL;
}

void dt_net_send(struct dt_net *net, size_t node, struct dt_frame *frame)
{
    if (node >= net->self.nodes || node == net->self.node ||
        net->peers[node].doomed)
        return;
    struct dt_net_peer *peer = &net->peers[node];
    if (!peer->out)
        peer->out = find_conn(net, (uint32_t)node);
    if (!peer->out && net->map)
        peer->out = dt_conn_dial(net, (uint32_t)node);
    if (!peer->out)
        return;
    dt_link_send(peer->out->link, frame);
    dt_conn_rewatch(net, peer->out);
}

bool dt_net_flushed(const struct dt_net *net)
{
    for (const struct dt_conn *conn = net->conns; conn; conn = conn->next)
        if (conn->node != DT_CONN_STRANGER && !dt_link_flushed(conn->link))
            return false;
    return true;
}

/* ---- turning ---- */

/* While there are too many strangers new ones are sent away: an honest one
 * comes again. */
static void accept_some(struct dt_net *net)
{
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof(from);
        int fd = accept4(net->listener, (struct sockaddr *)&from, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                       errno == ENOBUFS)) {
            net->deaf = dt_net_watch(net, EPOLL_CTL_MOD, net->listener, 0,
                                     &net->listener) == 0;
            net->listen_at = net->now + DEAF_MS;
            dt_net_note_due(net, net->listen_at);
        }
        if (fd < 0)
            return;
        if (net->strangers >= DT_NET_STRANGERS) {
            close(fd);
            continue;
        }
        struct dt_conn *conn = dt_conn_open(net, fd, DT_CONN_STRANGER);
        if (!conn)
            continue;
        net->strangers++;
        dt_address_get((struct sockaddr *)&from, conn->ip, NULL);
    }
}

static void turn_due(struct dt_net *net)
{
    struct dt_conn *next;
    net->due = INT64_MAX;
    if (net->deaf && net->listen_at <= net->now)
        net->deaf = dt_net_watch(net, EPOLL_CTL_MOD, net->listener, EPOLLIN,
                                 &net->listener) < 0;
    if (net->deaf)
        dt_net_note_due(net, net->listen_at);
    for (struct dt_conn *conn = net->conns; conn; conn = next) {
        next = conn->next;
        if (conn->due <= net->now)
            dt_conn_turn(net, conn);
        else
            dt_net_note_due(net, conn->due);
    }
}

/* Tell of the nodes that are lost or have left. */
static void bid_farewell(struct dt_net *net)
{
    struct dt_net_peer *peer;
    struct dt_conn *next;
    while ((peer = net->doomed)) {
        uint32_t node = (uint32_t)(peer - net->peers);
        char *why = peer->why;
        net->doomed = peer->next_doomed;
        if (!net->doomed)
            net->last_doomed = &net->doomed;
        for (struct dt_conn *conn = net->conns; conn; conn = next) {
            next = conn->next;
            if (conn->node != node)
                continue;
            if (!peer->left)
                dt_link_refuse(conn->link, why ? why : "");
            dt_conn_close(net, conn);
        }
        net->host.gone(net->host.arg, node, peer->left, why ? why : "");
        peer->why = NULL;
        free(why);
    }
}

int64_t dt_net_turn(struct dt_net *net, int64_t now)
{
    struct epoll_event events[EVENTS];
    net->now = now;
    int n = epoll_wait(net->epoll, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        uint64_t count;
        if (events[i].data.ptr == &net->listener)
            accept_some(net);
        else if (events[i].data.ptr == &net->wake)
            (void)!read(net->wake, &count, sizeof(count));
        else
            dt_conn_turn(net, events[i].data.ptr);
    }
    if (net->due <= now)
        turn_due(net);
    bid_farewell(net);
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
    net->peers = calloc(net->self.nodes, sizeof(struct dt_net_peer));
    if (!net->peers || (net->listener = listen_at(at, len)) < 0 ||
        getsockname(net->listener, (struct sockaddr *)&here, &here_len) < 0)
        return -1;
    dt_address_get((struct sockaddr *)&here, net->ip, &net->port);
    net->epoll = epoll_create1(EPOLL_CLOEXEC);
    net->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (net->epoll < 0 || net->wake < 0 ||
        dt_net_watch(net, EPOLL_CTL_ADD, net->listener, EPOLLIN,
                     &net->listener) < 0 ||
        dt_net_watch(net, EPOLL_CTL_ADD, net->wake, EPOLLIN, &net->wake) < 0)
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
    made->last_doomed = &made->doomed;
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

/* Queue BYE where it makes sense, hang up elsewhere. */
static void say_bye(struct dt_net *net)
{
    struct dt_conn *next;
    struct dt_frame *bye = dt_frame_begin(DT_WIRE_BYE);
    dt_result_t rc = dt_frame_end(&bye, NULL);
    for (struct dt_conn *conn = net->conns; conn; conn = next) {
        next = conn->next;
        if (rc != DT_SUCCESS || conn->node == DT_CONN_STRANGER || conn->waits) {
            dt_conn_close(net, conn);
            continue;
        }
        dt_link_send(conn->link, bye);
        dt_conn_rewatch(net, conn);
    }
    if (rc == DT_SUCCESS)
        dt_frame_unref(bye);
}

/* The other end hangs up, too, when it has read all: what we close earlier may
 * be lost to it. */
static void part(struct dt_net *net, int64_t now)
{
    struct dt_conn *next;
    for (struct dt_conn *conn = net->conns; conn; conn = next) {
        struct dt_frame *frame;
        next = conn->next;
        dt_link_turn(conn->link, now);
        while ((frame = dt_link_next(conn->link)))
            dt_frame_unref(frame);
        if (dt_link_state(conn->link) == DT_LINK_BROKEN) {
            dt_conn_close(net, conn);
            continue;
        }
        if (dt_link_state(conn->link) == DT_LINK_OPEN &&
            dt_link_flushed(conn->link))
            shutdown(dt_link_fd(conn->link), SHUT_WR);
        dt_conn_rewatch(net, conn);
    }
}

void dt_net_close(struct dt_net *net, int64_t ms)
{
    struct epoll_event event;
    if (!net)
        return;
    if (net->listener >= 0)
        close(net->listener);
    if (net->wake >= 0)
        close(net->wake);
    say_bye(net);
    int64_t now = dt_pmix_now(), end = now + ms;
    for (part(net, now); net->conns && now < end; part(net, now)) {
        epoll_wait(net->epoll, &event, 1, (int)(end - now));
        now = dt_pmix_now();
    }
    while (net->conns)
        dt_conn_close(net, net->conns);
    for (size_t i = 0; net->peers && i < net->self.nodes; i++)
        free(net->peers[i].why);
    free(net->peers);
    if (net->epoll >= 0)
        close(net->epoll);
    free(net);
}
