/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* conn.c - one connection of a net, from dialing or accepting to its end. */
#include "mesh/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A busy daemon hangs up on us: dial again, for longer than it takes until
 * silent strangers have been thrown out. */
#define TRIES        40
#define TRY_MS       50  /* before the second try; more each time */
#define TRY_LIMIT_MS 500 /* before any */

void dt_conn_rewatch(struct dt_net *net, struct dt_conn *conn)
{
    /* POLLIN and POLLOUT are EPOLLIN and EPOLLOUT */
    uint32_t events = (uint32_t)dt_link_events(conn->link);
    if (events == conn->events || conn->waits)
        return;
    if (dt_net_watch(net, EPOLL_CTL_MOD, dt_link_fd(conn->link), events,
                     conn) == 0)
        conn->events = events;
}

void dt_conn_close(struct dt_net *net, struct dt_conn *conn)
{
    if (conn->node == DT_CONN_STRANGER)
        net->strangers--;
    else if (net->peers[conn->node].out == conn)
        net->peers[conn->node].out = NULL;
    *conn->link_to_us = conn->next;
    if (conn->next)
        conn->next->link_to_us = conn->link_to_us;
    dt_link_close(conn->link);
    free(conn);
}

struct dt_conn *dt_conn_open(struct dt_net *net, int fd, uint32_t node)
{
    struct dt_conn *conn = calloc(1, sizeof(*conn));
    uint32_t to = node == DT_CONN_STRANGER ? DT_NODE_ANY : node;
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
    if (dt_net_watch(net, EPOLL_CTL_ADD, fd, conn->events, conn) < 0) {
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
    dt_net_wake(net);
    return conn;
}

static void cannot_dial(struct dt_net *net, uint32_t node, int errnum)
{
    char why[128];
    snprintf(why, sizeof(why), "cannot connect to it: %s", strerror(errnum));
    dt_net_doom(net, node, false, why);
}

struct dt_conn *dt_conn_dial(struct dt_net *net, uint32_t node)
{
    const struct dt_map_entry *entry = &net->map->entry[node];
    int fd = dt_net_dial(entry->ip, entry->port);
    struct dt_conn *conn = fd < 0 ? NULL : dt_conn_open(net, fd, node);
    if (!conn) {
        cannot_dial(net, node, errno);
        return NULL;
    }
    memcpy(conn->ip, entry->ip, 16);
    conn->tries = 1;
    return conn;
}

static void dial_again(struct dt_net *net, struct dt_conn *conn)
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
        dt_net_doom(net, conn->node, false, dt_link_why(conn->link));
        return;
    }
    conn->events = (uint32_t)dt_link_events(conn->link);
    if (dt_net_watch(net, EPOLL_CTL_ADD, fd, conn->events, conn) < 0)
        cannot_dial(net, conn->node, errno);
}

/* A stranger has proved who he is. */
static void adopt(struct dt_net *net, struct dt_conn *conn)
{
    uint32_t node = dt_link_peer(conn->link);
    if (net->peers[node].doomed) {
        dt_link_refuse(conn->link,
                       "this node has been given up: no way leads back");
        return;
    }
    net->strangers--;
    conn->node = node;
}

static void deliver(struct dt_net *net, struct dt_conn *conn)
{
    struct dt_net_peer *peer = &net->peers[conn->node];
    struct dt_frame *frame;
    while (!peer->doomed && (frame = dt_link_next(conn->link))) {
        if (dt_frame_kind(frame) == DT_WIRE_BYE) {
            conn->bye = peer->bye = true;
            if (dt_net_has_left(net, conn->node))
                dt_net_doom(net, conn->node, true, "it has left");
        } else {
            net->host.received(net->host.arg, conn->node, frame);
        }
        dt_frame_unref(frame);
    }
}

/* Its link is broken. */
static void bury(struct dt_net *net, struct dt_conn *conn)
{
    const char *why = dt_link_why(conn->link);
    dt_result_t result = dt_link_result(conn->link);
    if (conn->node == DT_CONN_STRANGER) {
        dt_net_say_refused(net, conn->ip, why);
        dt_conn_close(net, conn);
        return;
    }
    if (result == DT_IN_PROGRESS && conn->tries < TRIES &&
        !net->peers[conn->node].bye) {
        int pause = TRY_MS * conn->tries;
        dt_net_watch(net, EPOLL_CTL_DEL, dt_link_fd(conn->link), 0, NULL);
        conn->waits = true;
        conn->due = net->now + (pause < TRY_LIMIT_MS ? pause : TRY_LIMIT_MS);
        dt_net_note_due(net, conn->due);
        return;
    }
    /* A node that leaves need not have taken our call. */
    bool greeting = dt_link_peer(conn->link) == DT_NODE_ANY;
    if (result != DT_SUCCESS && !(greeting && net->peers[conn->node].bye))
        dt_net_doom(net, conn->node, false, why);
    dt_conn_close(net, conn);
}

void dt_conn_turn(struct dt_net *net, struct dt_conn *conn)
{
    if (conn->waits) {
        if (net->now < conn->due)
            return;
        dial_again(net, conn);
    }
    conn->due = dt_link_turn(conn->link, net->now);
    if (conn->node == DT_CONN_STRANGER &&
        dt_link_peer(conn->link) != DT_NODE_ANY)
        adopt(net, conn);
    if (conn->node != DT_CONN_STRANGER)
        deliver(net, conn);
    if (dt_link_state(conn->link) == DT_LINK_BROKEN) {
        bury(net, conn);
        return;
    }
    dt_conn_rewatch(net, conn);
    dt_net_note_due(net, conn->due);
}
