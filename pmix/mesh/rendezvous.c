/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.c - where the daemons of a step find each other: its ports, and
 * the side that serves. */
#include "mesh/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "mesh/address.h"
#include "mesh/net.h"
#include "mesh/strangers.h"

/* the ports of jobs: below the kernel's ephemeral ones */
#define PORT_LOW  20000
#define PORT_SPAN 12000
#define STRIDE    7919 /* from port to port of a step: a prime */

/* ---- ports ---- */

uint16_t dt_rendezvous_port(uint32_t job, uint32_t step, size_t i)
{
    uint64_t key = (uint64_t)job << 32 | step;
    /* any hash will do, but it must never change: all daemons of a step must
     * agree */
    key = (key ^ key >> 31) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    key ^= key >> 32;
    return (uint16_t)(PORT_LOW + (key + i * STRIDE) % PORT_SPAN);
}

static int listen_on(int family, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(port)};
    const struct sockaddr *at =
        family == AF_INET6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t len = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
    int on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, at, len) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int errnum = errno;
    close(fd);
    errno = errnum;
    return -1;
}

dt_result_t dt_rendezvous_listen(uint32_t job, uint32_t step, int *listener,
                                 struct dt_error *err)
{
    int errnum = 0;
    for (size_t i = 0; i < DT_RENDEZVOUS_PORTS; i++) {
        uint16_t port = dt_rendezvous_port(job, step, i);
        int fd = listen_on(AF_INET6, port);
        if (fd < 0 && errno != EADDRINUSE)
            fd = listen_on(AF_INET, port); /* a kernel without IPv6 */
        if (fd >= 0) {
            *listener = fd;
            return DT_SUCCESS;
        }
        errnum = errno;
    }
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "cannot listen on any of the %d ports, from %u to %u, "
                        "of the rendezvous of this step: %s",
                        DT_RENDEZVOUS_PORTS, PORT_LOW, PORT_LOW + PORT_SPAN - 1,
                        strerror(errnum));
}

/* ---- waiting ---- */

bool dt_rendezvous_poll(struct pollfd *fds, nfds_t count, int64_t until)
{
    int64_t ms = until - dt_pmix_now();
    int n = poll(fds, count, ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms);
    if (n < 0) /* interrupted: the caller checks and polls once more */
        for (nfds_t i = 0; i < count; i++)
            fds[i].revents = 0;
    return fds[0].revents == 0;
}

/* ---- serving ---- */

/* Connections without a handshake, besides one for each node. */
#define UNAUTHENTICATED 64
#define DEAF_MS         100 /* before the next attempt to accept */

struct client {
    struct dt_link *link;
    int64_t due;
    bool registered; /* its entry is here */
    bool left;       /* it has the map */
    bool outside;    /* it connected from another host, to this address: */
    uint8_t reached[16];
    uint8_t ip[16]; /* its own */
    int64_t since;  /* it was accepted */
};

/* what poll watches before the clients */
enum { ALIVE, LISTENER, CLIENTS };

struct rendezvous {
    int listener, alive;
    bool deaf; /* no descriptor is left to accept with */
    struct dt_identity self;
    size_t ranks;
    int64_t now, deadline;
    struct client *clients;
    struct pollfd *fds; /* CLIENTS + room */
    size_t count, room;
    bool *come;                   /* [nodes]: the entry is here */
    struct dt_map_entry *entries; /* [nodes]; owned by made once that exists */
    struct dt_map *made;
    size_t missing;
    bool outside; /* some client is outside, and connected to: */
    uint8_t reached[16];
    struct dt_frame *map; /* once all have registered */
    dt_rendezvous_log_t *log;
    struct dt_strangers strangers;
};

/* ---- clients ---- */

static void log_refusal(struct rendezvous *rendezvous, const uint8_t ip[16],
                        const char *why)
{
    const char *line =
        dt_strangers_refused(&rendezvous->strangers, ip, why, rendezvous->now);
    if (line && rendezvous->log)
        rendezvous->log(line);
}

static void close_client(struct rendezvous *rendezvous, size_t i)
{
    dt_link_close(rendezvous->clients[i].link);
    rendezvous->clients[i] = rendezvous->clients[--rendezvous->count];
}

static void send_bye(struct dt_link *link)
{
    struct dt_frame *bye = dt_frame_begin(DT_WIRE_BYE);
    if (dt_frame_end(&bye, NULL) == DT_SUCCESS)
        dt_link_send(link, bye);
    dt_frame_unref(bye);
}

/* Without descriptors, close a client whose entry is here. False: there is
 * none. */
static bool make_room(struct rendezvous *rendezvous)
{
    for (size_t i = 0; i < rendezvous->count; i++)
        if (rendezvous->clients[i].registered &&
            dt_link_peer(rendezvous->clients[i].link) != 0) {
            send_bye(rendezvous->clients[i].link);
            close_client(rendezvous, i);
            return true;
        }
    return false;
}

/* A place for a connection from ip. Daemons redial when theirs is closed. */
static bool find_place(struct rendezvous *rendezvous, const uint8_t ip[16])
{
    struct dt_strangers_count count = {0};
    const void *close = NULL;
    for (size_t i = 0; i < rendezvous->count; i++)
        if (dt_link_peer(rendezvous->clients[i].link) == DT_NODE_ANY)
            dt_strangers_add(&count, ip, rendezvous->clients[i].ip,
                             rendezvous->clients[i].since,
                             &rendezvous->clients[i]);
    size_t proved = rendezvous->count - count.all;
    bool found = dt_strangers_place(&count, rendezvous->room - proved,
                                    rendezvous->now, &close);
    if (!found || close)
        log_refusal(rendezvous, ip,
                    "too many did not prove to be of this step");
    if (found && close)
        close_client(rendezvous,
                     (size_t)((struct client *)close - rendezvous->clients));
    return found;
}

static void add_client(struct rendezvous *rendezvous, int fd,
                       const struct sockaddr_storage *from)
{
    struct sockaddr_storage here;
    socklen_t len = sizeof(here);
    struct client client = {.due = rendezvous->now, .since = rendezvous->now};
    dt_address_get((const struct sockaddr *)from, client.ip, NULL);
    if (!find_place(rendezvous, client.ip)) {
        close(fd);
        return;
    }
    if (getsockname(fd, (struct sockaddr *)&here, &len) == 0)
        client.outside =
            dt_address_get((struct sockaddr *)&here, client.reached, NULL) &&
            !dt_address_loopback(client.reached);
    if (dt_link_open(&client.link, fd, &rendezvous->self, DT_NODE_ANY,
                     rendezvous->now, NULL) == DT_SUCCESS)
        rendezvous->clients[rendezvous->count++] = client;
}

static void accept_some(struct rendezvous *rendezvous)
{
    for (size_t i = 0; i < UNAUTHENTICATED && !rendezvous->deaf; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof(from);
        int fd = accept4(rendezvous->listener, (struct sockaddr *)&from, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            add_client(rendezvous, fd, &from);
        else if (errno == EMFILE || errno == ENFILE)
            rendezvous->deaf = !make_room(rendezvous);
        else if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

static dt_result_t take_entry(struct rendezvous *rendezvous,
                              struct client *client,
                              const struct dt_frame *frame,
                              struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    struct dt_map_entry entry;
    uint32_t node = dt_link_peer(client->link);
    dt_result_t rc = dt_map_entry_unpack(&body, rendezvous->ranks, &entry, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (entry.node != node)
        rc =
            dt_error_set(err, DT_ERR_MISMATCH,
                         "the daemon of node %u sent the entry of node %u (%s)",
                         node, entry.node, entry.name);
    else if (rendezvous->come[node])
        rc = dt_error_set(err, DT_ERR_MISMATCH,
                          "node %u has registered twice, as %s and as %s", node,
                          rendezvous->entries[node].name, entry.name);
    if (rc != DT_SUCCESS) {
        dt_map_entry_free(&entry);
        return rc;
    }
    rendezvous->entries[node] = entry;
    rendezvous->come[node] = client->registered = true;
    rendezvous->missing--;
    if (client->outside && !rendezvous->outside) {
        rendezvous->outside = true;
        memcpy(rendezvous->reached, client->reached, 16);
    }
    return DT_SUCCESS;
}

/* Returns an error that ends the rendezvous. */
static dt_result_t receive(struct rendezvous *rendezvous, struct client *client,
                           struct dt_error *err)
{
    struct dt_frame *frame;
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && (frame = dt_link_next(client->link))) {
        if (dt_frame_kind(frame) == DT_WIRE_ENTRY)
            rc = take_entry(rendezvous, client, frame, err);
        else if (dt_frame_kind(frame) == DT_WIRE_BYE && rendezvous->map)
            client->left = true;
        dt_frame_unref(frame);
    }
    if (rc == DT_SUCCESS && client->registered && !client->left &&
        dt_link_state(client->link) == DT_LINK_BROKEN)
        rc = dt_error_set(err, DT_ERR_PROC_FAILED,
                          "the daemon of node %s was lost: %s",
                          rendezvous->entries[dt_link_peer(client->link)].name,
                          dt_link_why(client->link));
    return rc;
}

static bool is_complete(const struct rendezvous *rendezvous)
{
    for (size_t i = 0; i < rendezvous->count; i++)
        if (rendezvous->clients[i].registered && !rendezvous->clients[i].left)
            return false;
    return rendezvous->map;
}

/* ---- the map ---- */

/* The first node may be on this host: then it connected by an address that
 * other hosts cannot reach. */
static void replace_loopback(struct rendezvous *rendezvous)
{
    for (size_t i = 0; rendezvous->outside && i < rendezvous->self.nodes; i++)
        if (dt_address_loopback(rendezvous->entries[i].ip))
            memcpy(rendezvous->entries[i].ip, rendezvous->reached, 16);
}

static dt_result_t send_map(struct rendezvous *rendezvous, struct dt_error *err)
{
    replace_loopback(rendezvous);
    dt_result_t rc =
        dt_map_create(&rendezvous->made, rendezvous->entries,
                      rendezvous->self.nodes, rendezvous->ranks, err);
    if (rc == DT_SUCCESS)
        rc = dt_map_pack(rendezvous->made, &rendezvous->map, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < rendezvous->count; i++)
        if (rendezvous->clients[i].registered &&
            dt_link_peer(rendezvous->clients[i].link) == 0) {
            dt_link_send(rendezvous->clients[i].link, rendezvous->map);
            rendezvous->clients[i].due = rendezvous->now;
        }
    return DT_SUCCESS;
}

/* ---- serving ---- */

static dt_result_t time_out(const struct rendezvous *rendezvous,
                            struct dt_error *err)
{
    char nodes[128] = "";
    size_t len = 0, named = 0;
    if (rendezvous->missing == 0)
        return dt_error_set(err, DT_ERR_TIMED_OUT,
                            "not all nodes had the map in time");
    for (uint32_t i = 0; i < rendezvous->self.nodes && named < 8; i++)
        if (!rendezvous->come[i])
            len += (size_t)snprintf(nodes + len, sizeof(nodes) - len, "%s%u",
                                    named++ ? ", " : "", i);
    return dt_error_set(err, DT_ERR_TIMED_OUT,
                        "%zu of %u nodes did not register in time: of this "
                        "step, counted from 0, %s%s",
                        rendezvous->missing, rendezvous->self.nodes, nodes,
                        rendezvous->missing > named ? " and more" : "");
}

/* Wait for one of the clients. False: the step is over. */
static bool wait_clients(struct rendezvous *rendezvous)
{
    int64_t until = rendezvous->deadline;
    rendezvous->fds[ALIVE] =
        (struct pollfd){.fd = rendezvous->alive, .events = DT_RENDEZVOUS_OVER};
    rendezvous->fds[LISTENER] = (struct pollfd){
        .fd = rendezvous->deaf ? -1 : rendezvous->listener, .events = POLLIN};
    if (rendezvous->deaf && until > rendezvous->now + DEAF_MS)
        until = rendezvous->now + DEAF_MS;
    rendezvous->deaf = false;
    for (size_t i = 0; i < rendezvous->count; i++) {
        const struct client *client = &rendezvous->clients[i];
        rendezvous->fds[CLIENTS + i] =
            (struct pollfd){.fd = dt_link_fd(client->link),
                            .events = dt_link_events(client->link)};
        if (client->due < until)
            until = client->due;
    }
    return dt_rendezvous_poll(rendezvous->fds, CLIENTS + rendezvous->count,
                              until);
}

/* Backwards, as a closed client is replaced by the last. */
static dt_result_t progress_clients(struct rendezvous *rendezvous,
                                    struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = rendezvous->count; rc == DT_SUCCESS && i-- > 0;) {
        struct client *client = &rendezvous->clients[i];
        if (!rendezvous->fds[CLIENTS + i].revents &&
            client->due > rendezvous->now)
            continue;
        client->due = dt_link_progress(client->link, rendezvous->now);
        rc = receive(rendezvous, client, err);
        if (dt_link_state(client->link) != DT_LINK_BROKEN)
            continue;
        if (dt_link_peer(client->link) == DT_NODE_ANY)
            log_refusal(rendezvous, client->ip, dt_link_why(client->link));
        close_client(rendezvous, i);
    }
    return rc;
}

static dt_result_t serve(struct rendezvous *rendezvous, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && !is_complete(rendezvous)) {
        if (!wait_clients(rendezvous))
            return dt_error_set(
                err, DT_ERR_SYSTEM,
                "the step ended before its rendezvous was complete");
        rendezvous->now = dt_pmix_now();
        rc = progress_clients(rendezvous, err);
        if (rc == DT_SUCCESS && rendezvous->missing == 0 && !rendezvous->map)
            rc = send_map(rendezvous, err);
        if (rendezvous->fds[LISTENER].revents)
            accept_some(rendezvous);
        if (rc == DT_SUCCESS && !is_complete(rendezvous) &&
            rendezvous->now >= rendezvous->deadline)
            rc = time_out(rendezvous, err);
    }
    return rc;
}

static void close_all(struct rendezvous *rendezvous)
{
    while (rendezvous->count > 0) {
        send_bye(rendezvous->clients[rendezvous->count - 1].link);
        close_client(rendezvous, rendezvous->count - 1);
    }
}

/* Send a client the reason of the failure, once its handshake has ended. It is
 * short and is written at once. */
static void refuse(struct rendezvous *rendezvous, size_t i, const char *why)
{
    struct dt_link *link = rendezvous->clients[i].link;
    if (dt_link_state(link) == DT_LINK_HANDSHAKE)
        return;
    uint32_t node = dt_link_peer(link);
    if (node != DT_NODE_ANY && !rendezvous->come[node]) {
        rendezvous->come[node] = true;
        rendezvous->missing--;
    }
    dt_link_refuse(link, why);
    close_client(rendezvous, i);
}

/* Refuse all clients, and those that connect until the deadline: they would
 * wait for nothing. */
static void refuse_all(struct rendezvous *rendezvous, const char *why)
{
    for (;;) {
        for (size_t i = rendezvous->count; i-- > 0;) {
            rendezvous->clients[i].due =
                dt_link_progress(rendezvous->clients[i].link, rendezvous->now);
            refuse(rendezvous, i, why);
        }
        if (rendezvous->missing == 0 ||
            rendezvous->now >= rendezvous->deadline ||
            !wait_clients(rendezvous))
            break;
        rendezvous->now = dt_pmix_now();
        if (rendezvous->fds[LISTENER].revents)
            accept_some(rendezvous);
    }
    while (rendezvous->count > 0)
        close_client(rendezvous, rendezvous->count - 1);
}

static dt_result_t prepare(struct rendezvous *rendezvous, struct dt_error *err)
{
    size_t nodes = rendezvous->self.nodes;
    int flags = fcntl(rendezvous->listener, F_GETFL);
    rendezvous->missing = nodes;
    rendezvous->room = nodes + UNAUTHENTICATED;
    rendezvous->clients = calloc(rendezvous->room, sizeof(struct client));
    rendezvous->fds = calloc(CLIENTS + rendezvous->room, sizeof(struct pollfd));
    rendezvous->entries = calloc(nodes, sizeof(struct dt_map_entry));
    rendezvous->come = calloc(nodes, sizeof(bool));
    if (!rendezvous->clients || !rendezvous->fds || !rendezvous->entries ||
        !rendezvous->come)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a rendezvous of %zu nodes", nodes);
    if (flags < 0 ||
        fcntl(rendezvous->listener, F_SETFL, flags | O_NONBLOCK) < 0)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "cannot create the socket of the rendezvous: %s",
                            strerror(errno));
    return DT_SUCCESS;
}

static void unprepare(struct rendezvous *rendezvous)
{
    bool ours = !rendezvous->made && rendezvous->entries && rendezvous->come;
    for (size_t i = 0; ours && i < rendezvous->self.nodes; i++)
        if (rendezvous->come[i])
            dt_map_entry_free(&rendezvous->entries[i]);
    if (!rendezvous->made)
        free(rendezvous->entries);
    dt_map_destroy(rendezvous->made);
    dt_frame_unref(rendezvous->map);
    free(rendezvous->come);
    free(rendezvous->fds);
    free(rendezvous->clients);
}

dt_result_t dt_rendezvous_serve(int listener, const struct dt_identity *self,
                                size_t ranks, int alive, int64_t deadline,
                                dt_rendezvous_log_t *log, struct dt_error *err)
{
    struct dt_error why = {""};
    struct rendezvous rendezvous = {.listener = listener,
                                    .alive = alive,
                                    .self = *self,
                                    .ranks = ranks,
                                    .now = dt_pmix_now(),
                                    .deadline = deadline,
                                    .log = log};
    rendezvous.self.node = DT_NODE_RENDEZVOUS;
    dt_result_t rc = prepare(&rendezvous, &why);
    if (rc == DT_SUCCESS) {
        rc = serve(&rendezvous, &why);
        if (rc == DT_SUCCESS)
            close_all(&rendezvous);
        else
            refuse_all(&rendezvous, why.text);
    }
    const char *line = dt_strangers_total(&rendezvous.strangers);
    if (line && log)
        log(line);
    unprepare(&rendezvous);
    return rc == DT_SUCCESS ? rc : dt_error_set(err, rc, "%s", why.text);
}
