/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.c - the daemons of a step find each other. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "mesh/address.h"
#include "mesh/rendezvous.h"
#include "../descriptors.h"
#include "munged.h"
#include "../tap.h"

#define NODES 6
#define JOB   ((uint32_t)getpid()) /* no other test has its ports */
#define LONG  120000               /* ms: nothing here takes so long */

static struct munged munged;

static struct dt_identity identity(uint32_t node)
{
    return (struct dt_identity){.job = JOB,
                                .step = 0,
                                .node = node,
                                .nodes = NODES,
                                .pmix = "4.2.2",
                                .munge = munged.socket,
                                .heartbeat = 30000};
}

static int listener(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 ||
        listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

/* ---- threads: the rendezvous, and those who come ---- */

static size_t logged;
static char last_line[640];

static void log_line(const char *line)
{
    logged++;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

struct rendezvous {
    pthread_t thread;
    int listener, alive;
    int life; /* closed, it ends the rendezvous; -1: none */
    uint16_t port;
    const char *pmix; /* NULL: as all */
    uint32_t step;
    int64_t ms;
    dt_result_t rc;
    struct dt_error err;
};

static void *run_place(void *arg)
{
    struct rendezvous *rendezvous = arg;
    struct dt_identity self = identity(DT_NODE_RENDEZVOUS);
    if (rendezvous->pmix)
        self.pmix = rendezvous->pmix;
    self.step = rendezvous->step;
    rendezvous->rc = dt_rendezvous_serve(
        rendezvous->listener, &self, 2 * NODES, rendezvous->alive,
        dt_pmix_now() + rendezvous->ms, log_line, &rendezvous->err);
    return NULL;
}

static void open_place(struct rendezvous *rendezvous, int alive, int64_t ms)
{
    *rendezvous = (struct rendezvous){.alive = alive, .life = -1, .ms = ms};
    rendezvous->listener = listener(&rendezvous->port);
    pthread_create(&rendezvous->thread, NULL, run_place, rendezvous);
}

/* One that goes on until it is closed. */
static void open_lasting_place(struct rendezvous *rendezvous)
{
    int pipes[2];
    if (pipe(pipes) < 0)
        abort();
    open_place(rendezvous, pipes[0], LONG);
    rendezvous->life = pipes[1];
}

static void close_place(struct rendezvous *rendezvous)
{
    if (rendezvous->life >= 0) {
        close(rendezvous->life);
        pthread_join(rendezvous->thread, NULL);
        close(rendezvous->alive);
    } else {
        pthread_join(rendezvous->thread, NULL);
    }
    close(rendezvous->listener);
}

struct client {
    pthread_t thread;
    const char *hosts;
    uint16_t port;
    struct dt_identity self;
    struct dt_map_entry entry;
    struct dt_link *link;
    struct dt_map *map;
    struct sockaddr_storage local;
    int alive;
    int64_t ms;
    dt_result_t rc;
    struct dt_error err;
};

static void *run_guest(void *arg)
{
    struct client *client = arg;
    struct dt_rendezvous_address rendezvous = {client->hosts, client->port};
    int64_t deadline = dt_pmix_now() + client->ms;
    client->rc =
        dt_rendezvous_dial(&rendezvous, &client->self, client->alive, deadline,
                           &client->link, &client->local, &client->err);
    if (client->rc == DT_SUCCESS)
        client->rc =
            dt_rendezvous_register(client->link, &client->entry, client->alive,
                                   deadline, &client->map, &client->err);
    return NULL;
}

static void make_guest(struct client *client, uint32_t node, uint16_t port)
{
    *client = (struct client){.hosts = "127.0.0.1",
                              .port = port,
                              .self = identity(node),
                              .alive = -1,
                              .ms = LONG};
    client->entry.node = node;
    client->entry.nranks = 2;
    client->entry.ranks = malloc(2 * sizeof(uint32_t));
    client->entry.ranks[0] = node;
    client->entry.ranks[1] = node + NODES;
    client->entry.port = (uint16_t)(1000 + node);
    client->entry.ip[10] = client->entry.ip[11] = 0xff;
    client->entry.ip[12] = 10;
    client->entry.ip[15] = (uint8_t)node;
    snprintf(client->entry.name, sizeof(client->entry.name), "n%u", node);
}

static void send_guest(struct client *client)
{
    pthread_create(&client->thread, NULL, run_guest, client);
}

/* Until the other end has reported how it ended. */
static const char *reason_of(struct client *client)
{
    for (;;) {
        struct dt_frame *frame;
        struct pollfd fd = {dt_link_fd(client->link), POLLIN, 0};
        dt_link_progress(client->link, dt_pmix_now());
        while ((frame = dt_link_next(client->link)))
            dt_frame_unref(frame);
        if (dt_link_state(client->link) == DT_LINK_BROKEN)
            return dt_link_why(client->link);
        poll(&fd, 1, 100);
    }
}

static void leave(struct client *client)
{
    if (client->rc == DT_SUCCESS)
        dt_rendezvous_leave(client->link, -1, dt_pmix_now() + LONG);
}

static void free_guest(struct client *client)
{
    dt_link_close(client->link);
    dt_map_destroy(client->map);
    dt_map_entry_free(&client->entry);
}

/* ---- tests ---- */

static void test_rendezvous_opens(void)
{
    struct rendezvous rendezvous;
    struct client clients[NODES];
    open_place(&rendezvous, -1, LONG);
    for (uint32_t i = 0; i < NODES; i++) {
        make_guest(&clients[i], i, rendezvous.port);
        send_guest(&clients[i]);
    }
    bool registered = true, good = true;
    for (uint32_t i = 0; i < NODES; i++) {
        pthread_join(clients[i].thread, NULL);
        registered = registered && clients[i].rc == DT_SUCCESS &&
                     (i == 0) == !!clients[i].map;
    }
    for (uint32_t i = 0; i < NODES; i++)
        leave(&clients[i]);
    close_place(&rendezvous);
    ok(registered, "all register their entry, the first gets the map");
    ok(rendezvous.rc == DT_SUCCESS, "the rendezvous is complete: %s",
       rendezvous.err.text);
    const struct dt_map *map = clients[0].map;
    for (uint32_t i = 0; map && i < NODES; i++)
        good = good && map->entry[i].port == 1000 + i &&
               map->entry[i].ip[15] == i && map->node_of[i + NODES] == i;
    ok(map && map->nodes == NODES && map->ranks == 2 * NODES && good,
       "the map has what all have registered");
    ok(((struct sockaddr_in *)&clients[1].local)->sin_addr.s_addr ==
           htonl(INADDR_LOOPBACK),
       "a client knows its local address");
    ok(strcmp(reason_of(&clients[1]), "it has left") == 0,
       "the others get the success");
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&clients[i]);
}

/* Some clients send their entries. */
static void come(struct client *clients, size_t count)
{
    for (size_t i = 0; i < count; i++)
        send_guest(&clients[i]);
    for (size_t i = 0; i < count; i++)
        pthread_join(clients[i].thread, NULL);
}

/* And leave; returns the result of the rendezvous. */
static dt_result_t join_all(struct client *clients, size_t count,
                            struct rendezvous *rendezvous)
{
    come(clients, count);
    for (size_t i = 0; i < count; i++)
        leave(&clients[i]);
    close_place(rendezvous);
    return rendezvous->rc;
}

/* The first node is where the rendezvous is, and came over the loopback device;
 * the others over another address. */
static void test_loopback(void)
{
    struct rendezvous rendezvous = {.alive = -1, .life = -1, .ms = LONG};
    struct client clients[NODES];
    struct ifaddrs *all, *at;
    char host[DT_ADDRESS_TEXT] = "";
    uint8_t ip[16];
    if (getifaddrs(&all) < 0)
        abort();
    for (at = all; at; at = at->ifa_next)
        if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET &&
            dt_address_get(at->ifa_addr, ip, NULL) && !dt_address_loopback(ip))
            dt_address_text(ip, host);
    freeifaddrs(all);
    if (!host[0]) {
        ok(true, "the first node's address # SKIP no network");
        return;
    }
    if (dt_rendezvous_listen(JOB, 1, &rendezvous.listener, NULL) != DT_SUCCESS)
        abort();
    struct sockaddr_storage here;
    socklen_t len = sizeof(here);
    getsockname(rendezvous.listener, (struct sockaddr *)&here, &len);
    dt_address_get((struct sockaddr *)&here, ip, &rendezvous.port);
    pthread_create(&rendezvous.thread, NULL, run_place, &rendezvous);
    for (uint32_t i = 0; i < NODES; i++) {
        make_guest(&clients[i], i, rendezvous.port);
        clients[i].hosts = i ? host : "127.0.0.1";
    }
    clients[0].entry.ip[12] = 127;
    join_all(clients, NODES, &rendezvous);
    char text[DT_ADDRESS_TEXT] = "";
    if (clients[0].map)
        dt_address_text(clients[0].map->entry[0].ip, text);
    ok(clients[0].map && strcmp(text, host) == 0,
       "the first node, connected by the loopback device, is at %s for others",
       text);
    ok(clients[0].map && clients[0].map->entry[1].ip[12] == 10,
       "the others have the addresses that they registered");
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&clients[i]);
}

static void test_errors(void)
{
    struct rendezvous rendezvous;
    struct client clients[3];

    open_lasting_place(&rendezvous);
    make_guest(&clients[0], 3, rendezvous.port);
    make_guest(&clients[1], 3, rendezvous.port);
    come(clients, 2);
    size_t refused = 0;
    for (int i = 0; i < 2; i++) {
        refused += clients[i].link &&
                   strstr(reason_of(&clients[i]), "registered twice");
        free_guest(&clients[i]);
    }
    close_place(&rendezvous);
    ok(rendezvous.rc == DT_ERR_MISMATCH,
       "a node that registers twice is refused: %s", rendezvous.err.text);
    ok(refused == 2, "both get the reason");

    open_lasting_place(&rendezvous);
    make_guest(&clients[0], 3, rendezvous.port);
    clients[0].entry.node = 4;
    come(clients, 1);
    reason_of(&clients[0]);
    close_place(&rendezvous);
    ok(rendezvous.rc == DT_ERR_MISMATCH,
       "a node that registers another is refused: %s", rendezvous.err.text);
    free_guest(&clients[0]);

    open_place(&rendezvous, -1, 10000);
    make_guest(&clients[0], 0, rendezvous.port);
    make_guest(&clients[1], 4, rendezvous.port);
    ok(join_all(clients, 2, &rendezvous) == DT_ERR_TIMED_OUT &&
           strstr(rendezvous.err.text, "4 of 6") &&
           strstr(rendezvous.err.text, " 1, 2, 3, 5"),
       "nodes that do not register are named: %s", rendezvous.err.text);
    ok(clients[0].rc == DT_ERR_BOOTSTRAP &&
           strstr(clients[0].err.text, "4 of 6"),
       "the first node gets the reason: %s", clients[0].err.text);
    free_guest(&clients[0]);
    free_guest(&clients[1]);
}

/* One is killed after it has registered, before all have. */
static void test_loss(void)
{
    struct rendezvous rendezvous;
    struct client clients[3];
    open_lasting_place(&rendezvous);
    for (uint32_t i = 0; i < 3; i++)
        make_guest(&clients[i], i + 2, rendezvous.port);
    come(clients, 2);
    dt_link_close(clients[0].link);
    clients[0].link = NULL;
    const char *why = reason_of(&clients[1]);
    ok(strstr(why, "node n2 was lost"), "the others get the loss: %s", why);
    come(&clients[2], 1);
    why = clients[2].rc == DT_SUCCESS ? reason_of(&clients[2])
                                      : clients[2].err.text;
    ok(strstr(why, "node n2 was lost"), "a late one gets it, too: %s", why);
    close_place(&rendezvous);
    ok(rendezvous.rc == DT_ERR_PROC_FAILED, "and the rendezvous has failed: %s",
       rendezvous.err.text);
    for (int i = 0; i < 3; i++)
        free_guest(&clients[i]);
}

/* One is killed when it has the map, or might: the first of all, or later. */
static void test_late_loss(void)
{
    struct rendezvous rendezvous;
    struct client clients[NODES];
    open_lasting_place(&rendezvous);
    for (uint32_t i = 0; i < NODES; i++)
        make_guest(&clients[i], i, rendezvous.port);
    come(clients, NODES);
    leave(&clients[0]);
    leave(&clients[1]);
    dt_link_close(clients[2].link);
    clients[2].link = NULL;
    const char *why = reason_of(&clients[3]);
    ok(strstr(why, "node n2 was lost"),
       "a node without the map gets the loss: %s", why);
    close_place(&rendezvous);
    for (int i = 0; i < NODES; i++)
        free_guest(&clients[i]);
}

static void test_search(void)
{
    struct client client;
    uint16_t port;
    int fd = listener(&port), pipes[2];
    close(fd);

    make_guest(&client, 1, port);
    client.ms = 0;
    run_guest(&client);
    ok(client.rc == DT_ERR_TIMED_OUT && strstr(client.err.text, "refused"),
       "no listener: %s", client.err.text);
    client.hosts = "no-such-host.invalid";
    run_guest(&client);
    ok(client.rc == DT_ERR_TIMED_OUT && strstr(client.err.text, "no-such-host"),
       "an unknown name: %s", client.err.text);

    if (pipe(pipes) < 0)
        abort();
    close(pipes[1]);
    client.alive = pipes[0];
    client.hosts = "127.0.0.1";
    client.ms = LONG;
    run_guest(&client);
    ok(client.rc == DT_ERR_SYSTEM && strstr(client.err.text, "ended"),
       "the end of the step ends the search: %s", client.err.text);
    struct dt_identity self = identity(DT_NODE_RENDEZVOUS);
    struct dt_error err;
    fd = listener(&port);
    ok(dt_rendezvous_serve(fd, &self, 8, pipes[0], dt_pmix_now() + LONG, NULL,
                           &err) == DT_ERR_SYSTEM &&
           strstr(err.text, "ended"),
       "and the rendezvous: %s", err.text);
    close(fd);
    close(pipes[0]);
    free_guest(&client);
}

static void test_version(void)
{
    struct rendezvous rendezvous;
    struct client client;
    int pipes[2];
    if (pipe(pipes) < 0)
        abort();
    open_place(&rendezvous, pipes[0], LONG);
    make_guest(&client, 1, rendezvous.port);
    client.self.pmix = "5.0.1";
    run_guest(&client);
    close(pipes[1]);
    close_place(&rendezvous);
    close(pipes[0]);
    ok(client.rc == DT_ERR_VERSION && strstr(client.err.text, "PMIx 5.0.1") &&
           strstr(client.err.text, "PMIx 4.2.2"),
       "another version ends it at once: %s", client.err.text);
    free_guest(&client);
}

/* The rendezvous is at one of the ports of job and step; at an earlier one
 * somebody else listens. */
static void test_ports(void)
{
    struct rendezvous rendezvous = {.alive = -1, .life = -1, .ms = LONG};
    struct rendezvous other = {.pmix = "1.0", .life = -1, .ms = LONG};
    struct client clients[NODES];
    struct dt_error err = {""};
    int taken, pipes[2];
    bool distinct = true;
    for (size_t i = 0; i < DT_RENDEZVOUS_PORTS; i++)
        for (size_t j = 0; j < i; j++)
            distinct = distinct && dt_rendezvous_port(JOB, 0, i) !=
                                       dt_rendezvous_port(JOB, 0, j);
    ok(distinct &&
           dt_rendezvous_port(JOB, 0, 3) == dt_rendezvous_port(JOB, 0, 3),
       "a step has so many ports");

    ok(dt_rendezvous_listen(JOB, 0, &taken, &err) == DT_SUCCESS &&
           dt_rendezvous_listen(JOB, 0, &other.listener, &err) == DT_SUCCESS &&
           dt_rendezvous_listen(JOB, 0, &rendezvous.listener, &err) ==
               DT_SUCCESS,
       "the next port is used where one is not free: %s", err.text);
    if (pipe(pipes) < 0)
        abort();
    other.alive = pipes[0];
    pthread_create(&other.thread, NULL, run_place, &other);
    pthread_create(&rendezvous.thread, NULL, run_place, &rendezvous);
    for (uint32_t i = 0; i < NODES; i++)
        make_guest(&clients[i], i, 0);
    clients[2].hosts = "no-such-host.invalid,127.0.0.1";
    ok(join_all(clients, NODES, &rendezvous) == DT_SUCCESS,
       "the rendezvous is found after a port that does not reply and one of "
       "another version: %s",
       rendezvous.err.text);
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&clients[i]);
    close(pipes[1]);
    close_place(&other);
    close(pipes[0]);
    close(taken);
}

/* Strangers have taken so many ports, and let those who connect wait. */
static void test_squatters(uint32_t step, size_t taken)
{
    struct rendezvous rendezvous = {
        .alive = -1, .life = -1, .ms = LONG / 4, .step = step};
    struct client clients[NODES];
    struct dt_error err = {""};
    int *squatter = calloc(taken, sizeof(*squatter));
    for (size_t i = 0; i < taken; i++)
        if (dt_rendezvous_listen(JOB, step, &squatter[i], &err) != DT_SUCCESS)
            abort();
    if (dt_rendezvous_listen(JOB, step, &rendezvous.listener, &err) !=
        DT_SUCCESS)
        abort();
    pthread_create(&rendezvous.thread, NULL, run_place, &rendezvous);
    for (uint32_t i = 0; i < NODES; i++) {
        make_guest(&clients[i], i, 0);
        clients[i].self.step = step;
        clients[i].ms = LONG / 4;
    }
    ok(join_all(clients, NODES, &rendezvous) == DT_SUCCESS,
       "the rendezvous is found after %zu ports that do not reply: %s", taken,
       clients[1].err.text);
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&clients[i]);
    for (size_t i = 0; i < taken; i++)
        close(squatter[i]);
    free(squatter);
}

/* Strangers at the address of the nodes hold all places that it may have, and
 * come again and again. */
static int connect_to(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
        abort();
    return fd;
}

static void test_strangers(size_t count)
{
    static int fds[300];
    struct rendezvous rendezvous;
    struct client clients[NODES];
    logged = 0;
    open_place(&rendezvous, -1, LONG);
    for (size_t i = 0; i < count; i++)
        fds[i] = connect_to(rendezvous.port);
    for (uint32_t i = 0; i < NODES; i++) {
        make_guest(&clients[i], i, rendezvous.port);
        clients[i].ms = LONG / 4;
    }
    ok(join_all(clients, NODES, &rendezvous) == DT_SUCCESS,
       "%zu strangers at the nodes' own address keep nobody out: %s", count,
       clients[1].err.text);
    ok(logged == 2 && strstr(last_line, "connections were refused in all"),
       "they make two lines, the last one: %s", last_line);
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&clients[i]);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    int before = descriptors_of(getpid());
    test_rendezvous_opens();
    test_loopback();
    test_errors();
    test_loss();
    test_late_loss();
    test_search();
    test_version();
    test_ports();
    test_squatters(7, 16);
    /* the sockets of all nodes fit into the 1024 of a login */
    test_squatters(8, 120);
    test_strangers(40);
    test_strangers(300);
    ok(descriptors_of(getpid()) == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
