/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* join.c - a server that joins its step, among nodes that send wrong maps, or
 * die before it is open. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "daemon/join.h"
#include "../descriptors.h"
#include "../mesh/munged.h"
#include "../tap.h"

/* Node 1 has children: 9, and maybe more. */
enum { NODES = 12, SELF = 1, RANKS = NODES };

static struct munged munged;
static char pmix[DT_JOIN_VERSION_MAX];

static struct dt_identity identity(uint32_t node)
{
    return (struct dt_identity){.job = 17,
                                .node = node,
                                .nodes = NODES,
                                .pmix = pmix,
                                .munge = munged.socket,
                                .heartbeat = 30000};
}

/* ---- the server that joins, in a thread ---- */

struct joiner {
    pthread_t thread;
    struct dt_step step;
    struct dt_join join;
    int alive[2];
    dt_result_t rc;
    struct dt_error err;
};

static void *run_joiner(void *arg)
{
    struct joiner *joiner = arg;
    joiner->rc = dt_join_open(&joiner->join, &joiner->step, NULL,
                              joiner->alive[0], &joiner->err);
    return NULL;
}

static int listen_here(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 ||
        listen(fd, 16) < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

static void start(struct joiner *joiner, uint32_t *local, uint16_t port)
{
    *joiner = (struct joiner){.step = {.job = 17,
                                       .node = SELF,
                                       .nodes = NODES,
                                       .ranks = RANKS,
                                       .local = local,
                                       .nlocal = 1,
                                       .heartbeat = 30,
                                       .limit = 120,
                                       .port = port,
                                       .name = "n1",
                                       .hosts = "127.0.0.1",
                                       .munge = munged.socket}};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, joiner->alive) < 0)
        abort();
    pthread_create(&joiner->thread, NULL, run_joiner, joiner);
}

static void end(struct joiner *joiner)
{
    dt_join_close(&joiner->join, 0);
    close(joiner->alive[0]);
    close(joiner->alive[1]);
}

/* ---- the others, whom this program plays ---- */

static struct dt_link *open_link(int fd, uint32_t node, uint32_t to)
{
    const struct dt_identity self = identity(node);
    struct dt_link *link;
    if (dt_link_open(&link, fd, &self, to, dt_pmix_now(), NULL) != DT_SUCCESS)
        abort();
    return link;
}

static void turn(struct dt_link *link)
{
    struct pollfd fd = {dt_link_fd(link), dt_link_events(link), 0};
    poll(&fd, 1, 100);
    dt_link_progress(link, dt_pmix_now());
}

/* The rendezvous, with the node that has registered *entry. */
static struct dt_link *take_guest(int listener, struct dt_map_entry *entry)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    struct dt_link *link = open_link(fd, DT_NODE_RENDEZVOUS, DT_NODE_ANY);
    struct dt_frame *frame;
    while (!(frame = dt_link_next(link))) {
        if (dt_link_state(link) == DT_LINK_BROKEN)
            abort();
        turn(link);
    }
    struct dt_cursor body = dt_frame_body(frame);
    if (dt_map_entry_unpack(&body, RANKS, entry, NULL) != DT_SUCCESS)
        abort();
    dt_frame_unref(frame);
    return link;
}

static struct dt_link *dial(const struct dt_map_entry *to, uint32_t node)
{
    struct dt_link *link = open_link(dt_net_dial(to->ip, to->port), node, SELF);
    while (dt_link_state(link) == DT_LINK_HANDSHAKE)
        turn(link);
    return link;
}

/* A map of so many nodes with a rank each, but that node 0 has all others; the
 * joiner's entry is as it told it, if the map has one, but for its rank. */
static void send_map(struct dt_link *link, const struct dt_map_entry *joiner,
                     uint32_t nodes, uint32_t ranks, uint32_t rank)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_MAP);
    uint32_t *rest = malloc(ranks * sizeof(*rest));
    dt_frame_uint(frame, 4, nodes);
    dt_frame_uint(frame, 4, ranks);
    for (uint32_t i = 0; i < nodes; i++) {
        struct dt_map_entry entry = *joiner;
        entry.node = i;
        entry.ranks = rest;
        entry.nranks = 0;
        if (i == SELF)
            rest[entry.nranks++] = rank;
        for (uint32_t r = 0; i == 0 && r < ranks; r++)
            if (r != rank || nodes <= SELF)
                rest[entry.nranks++] = r;
        dt_map_entry_pack(frame, &entry);
    }
    free(rest);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    dt_link_send(link, frame);
    dt_frame_unref(frame);
    while (dt_link_state(link) == DT_LINK_OPEN && !dt_link_flushed(link))
        turn(link);
}

/* ---- tests ---- */

static void test_map(uint32_t nodes, uint32_t ranks, uint32_t rank,
                     const char *what)
{
    struct joiner joiner;
    struct dt_map_entry entry;
    uint32_t local = 5;
    uint16_t port;
    int listener = listen_here(&port);
    start(&joiner, &local, port);
    struct dt_link *rendezvous = take_guest(listener, &entry);
    struct dt_link *parent = dial(&entry, 0);
    send_map(parent, &entry, nodes, ranks, rank);
    pthread_join(joiner.thread, NULL);
    ok(joiner.rc == DT_ERR_MISMATCH && strstr(joiner.err.text, "another step"),
       "a map %s: %s", what, joiner.err.text);
    end(&joiner);
    dt_link_close(parent);
    dt_link_close(rendezvous);
    dt_map_entry_free(&entry);
    close(listener);
}

static bool lost[NODES];

static void on_received(void *arg, size_t node, const struct dt_frame *frame)
{
    (void)arg, (void)node, (void)frame;
}

static void on_gone(void *arg, size_t node, bool left, const char *why)
{
    (void)arg, (void)why;
    lost[node] = !left;
}

static void on_refused(void *arg, const char *line)
{
    (void)arg, (void)line;
}

/* Before the server is open. */
static void test_loss(void)
{
    const struct dt_net_host host = {NULL, on_received, on_gone, on_refused};
    struct joiner joiner;
    struct dt_map_entry entry;
    uint32_t local = 5;
    uint16_t port;
    int listener = listen_here(&port);
    start(&joiner, &local, port);
    struct dt_link *rendezvous = take_guest(listener, &entry);
    dt_link_close(dial(&entry, 7));
    struct dt_link *parent = dial(&entry, 0);
    send_map(parent, &entry, NODES, RANKS, 5);
    pthread_join(joiner.thread, NULL);
    ok(joiner.rc == DT_SUCCESS, "a good map: %s", joiner.err.text);
    if (joiner.rc == DT_SUCCESS)
        dt_join_done(&joiner.join, &host);
    ok(lost[7], "an loss before the server is open is reported then");
    end(&joiner);
    dt_link_close(parent);
    dt_link_close(rendezvous);
    dt_map_entry_free(&entry);
    close(listener);
}

/* The rendezvous fails. */
static void test_refusal(void)
{
    struct joiner joiner;
    struct dt_map_entry entry;
    uint32_t local = 5;
    uint16_t port;
    int listener = listen_here(&port);
    start(&joiner, &local, port);
    struct dt_link *rendezvous = take_guest(listener, &entry);
    dt_link_refuse(rendezvous, "node n7 is not there");
    dt_link_close(rendezvous);
    pthread_join(joiner.thread, NULL);
    ok(joiner.rc == DT_ERR_BOOTSTRAP && strstr(joiner.err.text, "node n7"),
       "no map, and why: %s", joiner.err.text);
    end(&joiner);
    dt_map_entry_free(&entry);
    close(listener);
}

int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    dt_join_pmix_version(pmix);
    int before = descriptors_of(getpid());
    test_map(2, RANKS, 5, "of too few nodes");
    test_map(1, RANKS, 5, "without this node");
    test_map(NODES, RANKS + 1, 5, "of too many ranks");
    test_map(NODES, RANKS, 6, "that has another rank here");
    test_loss();
    test_refusal();
    ok(descriptors_of(getpid()) == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
