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
#include "munged.h"
#include "../tap.h"

#define NODES 6
#define JOB   ((uint32_t)getpid()) /* its ports are nobody else's */
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

/* ---- threads: the place, and those who come ---- */

struct place {
    pthread_t thread;
    int listener, alive;
    int life; /* closed, it ends the place; -1: none */
    uint16_t port;
    const char *pmix; /* NULL: as all */
    int64_t ms;
    dt_result_t rc;
    struct dt_error err;
};

static void *run_place(void *arg)
{
    struct place *place = arg;
    struct dt_identity self = identity(DT_NODE_RENDEZVOUS);
    if (place->pmix)
        self.pmix = place->pmix;
    place->rc =
        dt_rendezvous_serve(place->listener, &self, 2 * NODES, place->alive,
                            dt_pmix_now() + place->ms, &place->err);
    return NULL;
}

static void open_place(struct place *place, int alive, int64_t ms)
{
    *place = (struct place){.alive = alive, .life = -1, .ms = ms};
    place->listener = listener(&place->port);
    pthread_create(&place->thread, NULL, run_place, place);
}

/* One that goes on until it is closed. */
static void open_lasting_place(struct place *place)
{
    int pipes[2];
    if (pipe(pipes) < 0)
        abort();
    open_place(place, pipes[0], LONG);
    place->life = pipes[1];
}

static void close_place(struct place *place)
{
    if (place->life >= 0) {
        close(place->life);
        pthread_join(place->thread, NULL);
        close(place->alive);
    } else {
        pthread_join(place->thread, NULL);
    }
    close(place->listener);
}

struct guest {
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
    struct guest *guest = arg;
    struct dt_rendezvous_address place = {guest->hosts, guest->port};
    int64_t deadline = dt_pmix_now() + guest->ms;
    guest->rc = dt_rendezvous_dial(&place, &guest->self, guest->alive, deadline,
                                   &guest->link, &guest->local, &guest->err);
    if (guest->rc == DT_SUCCESS)
        guest->rc =
            dt_rendezvous_register(guest->link, &guest->entry, guest->alive,
                                   deadline, &guest->map, &guest->err);
    return NULL;
}

static void make_guest(struct guest *guest, uint32_t node, uint16_t port)
{
    *guest = (struct guest){.hosts = "127.0.0.1",
                            .port = port,
                            .self = identity(node),
                            .alive = -1,
                            .ms = LONG};
    guest->entry.node = node;
    guest->entry.nranks = 2;
    guest->entry.ranks = malloc(2 * sizeof(uint32_t));
    guest->entry.ranks[0] = node;
    guest->entry.ranks[1] = node + NODES;
    guest->entry.port = (uint16_t)(1000 + node);
    guest->entry.ip[10] = guest->entry.ip[11] = 0xff;
    guest->entry.ip[12] = 10;
    guest->entry.ip[15] = (uint8_t)node;
    snprintf(guest->entry.name, sizeof(guest->entry.name), "n%u", node);
}

static void send_guest(struct guest *guest)
{
    pthread_create(&guest->thread, NULL, run_guest, guest);
}

/* Until the other end has said how it ended. */
static const char *hear(struct guest *guest)
{
    for (;;) {
        struct dt_frame *frame;
        struct pollfd fd = {dt_link_fd(guest->link), POLLIN, 0};
        dt_link_progress(guest->link, dt_pmix_now());
        while ((frame = dt_link_next(guest->link)))
            dt_frame_unref(frame);
        if (dt_link_state(guest->link) == DT_LINK_BROKEN)
            return dt_link_why(guest->link);
        poll(&fd, 1, 100);
    }
}

static void leave(struct guest *guest)
{
    if (guest->rc == DT_SUCCESS)
        dt_rendezvous_leave(guest->link, -1, dt_pmix_now() + LONG);
}

static void free_guest(struct guest *guest)
{
    dt_link_close(guest->link);
    dt_map_destroy(guest->map);
    dt_map_entry_free(&guest->entry);
}

/* ---- tests ---- */

static void test_meeting(void)
{
    struct place place;
    struct guest guests[NODES];
    open_place(&place, -1, LONG);
    for (uint32_t i = 0; i < NODES; i++) {
        make_guest(&guests[i], i, place.port);
        send_guest(&guests[i]);
    }
    bool told = true, good = true;
    for (uint32_t i = 0; i < NODES; i++) {
        pthread_join(guests[i].thread, NULL);
        told =
            told && guests[i].rc == DT_SUCCESS && (i == 0) == !!guests[i].map;
    }
    for (uint32_t i = 0; i < NODES; i++)
        leave(&guests[i]);
    close_place(&place);
    ok(told, "all tell their entry, the first gets the map");
    ok(place.rc == DT_SUCCESS, "the place is done: %s", place.err.text);
    const struct dt_map *map = guests[0].map;
    for (uint32_t i = 0; map && i < NODES; i++)
        good = good && map->entry[i].port == 1000 + i &&
               map->entry[i].ip[15] == i && map->node_of[i + NODES] == i;
    ok(map && map->nodes == NODES && map->ranks == 2 * NODES && good,
       "the map says what all have told");
    ok(((struct sockaddr_in *)&guests[1].local)->sin_addr.s_addr ==
           htonl(INADDR_LOOPBACK),
       "a guest knows the address it came from");
    ok(strcmp(hear(&guests[1]), "it has left") == 0,
       "the others hear that it went well");
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&guests[i]);
}

/* Some guests tell their entries. */
static void come(struct guest *guests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        send_guest(&guests[i]);
    for (size_t i = 0; i < count; i++)
        pthread_join(guests[i].thread, NULL);
}

/* And leave; what the place says in the end. */
static dt_result_t meet(struct guest *guests, size_t count, struct place *place)
{
    come(guests, count);
    for (size_t i = 0; i < count; i++)
        leave(&guests[i]);
    close_place(place);
    return place->rc;
}

/* The first node is where the place is, and came over the loopback device; the
 * others over another address. */
static void test_loopback(void)
{
    struct place place = {.alive = -1, .life = -1, .ms = LONG};
    struct guest guests[NODES];
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
    if (dt_rendezvous_listen(JOB, 1, &place.listener, NULL) != DT_SUCCESS)
        abort();
    struct sockaddr_storage here;
    socklen_t len = sizeof(here);
    getsockname(place.listener, (struct sockaddr *)&here, &len);
    dt_address_get((struct sockaddr *)&here, ip, &place.port);
    pthread_create(&place.thread, NULL, run_place, &place);
    for (uint32_t i = 0; i < NODES; i++) {
        make_guest(&guests[i], i, place.port);
        guests[i].hosts = i ? host : "127.0.0.1";
    }
    guests[0].entry.ip[12] = 127;
    meet(guests, NODES, &place);
    char text[DT_ADDRESS_TEXT] = "";
    if (guests[0].map)
        dt_address_text(guests[0].map->entry[0].ip, text);
    ok(guests[0].map && strcmp(text, host) == 0,
       "the first node, come over the loopback device, is at %s for others",
       text);
    ok(guests[0].map && guests[0].map->entry[1].ip[12] == 10,
       "the others are where they said");
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&guests[i]);
}

static void test_errors(void)
{
    struct place place;
    struct guest guests[3];

    open_lasting_place(&place);
    make_guest(&guests[0], 3, place.port);
    make_guest(&guests[1], 3, place.port);
    come(guests, 2);
    size_t heard = 0;
    for (int i = 0; i < 2; i++) {
        heard += guests[i].link && strstr(hear(&guests[i]), "come twice");
        free_guest(&guests[i]);
    }
    close_place(&place);
    ok(place.rc == DT_ERR_MISMATCH, "a node that comes twice is refused: %s",
       place.err.text);
    ok(heard == 2, "both hear it");

    open_lasting_place(&place);
    make_guest(&guests[0], 3, place.port);
    guests[0].entry.node = 4;
    come(guests, 1);
    hear(&guests[0]);
    close_place(&place);
    ok(place.rc == DT_ERR_MISMATCH,
       "a node that speaks for another is refused: %s", place.err.text);
    free_guest(&guests[0]);

    open_place(&place, -1, 10000);
    make_guest(&guests[0], 0, place.port);
    make_guest(&guests[1], 4, place.port);
    ok(meet(guests, 2, &place) == DT_ERR_TIMED_OUT &&
           strstr(place.err.text, "4 of 6") &&
           strstr(place.err.text, " 1, 2, 3, 5"),
       "those who do not come are named: %s", place.err.text);
    ok(guests[0].rc == DT_ERR_BOOTSTRAP && strstr(guests[0].err.text, "4 of 6"),
       "the first node hears it: %s", guests[0].err.text);
    free_guest(&guests[0]);
    free_guest(&guests[1]);
}

/* One is killed after it has told its entry, before all are there. */
static void test_loss(void)
{
    struct place place;
    struct guest guests[3];
    open_lasting_place(&place);
    for (uint32_t i = 0; i < 3; i++)
        make_guest(&guests[i], i + 2, place.port);
    come(guests, 2);
    dt_link_close(guests[0].link);
    guests[0].link = NULL;
    const char *why = hear(&guests[1]);
    ok(strstr(why, "node n2 was lost"), "the others hear of a loss: %s", why);
    come(&guests[2], 1);
    why = guests[2].rc == DT_SUCCESS ? hear(&guests[2]) : guests[2].err.text;
    ok(strstr(why, "node n2 was lost"), "who comes late hears it, too: %s",
       why);
    close_place(&place);
    ok(place.rc == DT_ERR_PROC_FAILED, "and the meeting has failed: %s",
       place.err.text);
    for (int i = 0; i < 3; i++)
        free_guest(&guests[i]);
}

/* One is killed when it has the map, or might: the first of all, or later. */
static void test_late_loss(void)
{
    struct place place;
    struct guest guests[NODES];
    open_lasting_place(&place);
    for (uint32_t i = 0; i < NODES; i++)
        make_guest(&guests[i], i, place.port);
    come(guests, NODES);
    leave(&guests[0]);
    leave(&guests[1]);
    dt_link_close(guests[2].link);
    guests[2].link = NULL;
    const char *why = hear(&guests[3]);
    ok(strstr(why, "node n2 was lost"),
       "who has no map yet hears of a loss: %s", why);
    close_place(&place);
    for (int i = 0; i < NODES; i++)
        free_guest(&guests[i]);
}

static void test_search(void)
{
    struct guest guest;
    uint16_t port;
    int fd = listener(&port), pipes[2];
    close(fd);

    make_guest(&guest, 1, port);
    guest.ms = 0;
    run_guest(&guest);
    ok(guest.rc == DT_ERR_TIMED_OUT && strstr(guest.err.text, "refused"),
       "nobody there: %s", guest.err.text);
    guest.hosts = "no-such-host.invalid";
    run_guest(&guest);
    ok(guest.rc == DT_ERR_TIMED_OUT && strstr(guest.err.text, "no-such-host"),
       "a name that is none: %s", guest.err.text);

    if (pipe(pipes) < 0)
        abort();
    close(pipes[1]);
    guest.alive = pipes[0];
    guest.hosts = "127.0.0.1";
    guest.ms = LONG;
    run_guest(&guest);
    ok(guest.rc == DT_ERR_SYSTEM && strstr(guest.err.text, "over"),
       "the end of the step ends the search: %s", guest.err.text);
    struct dt_identity self = identity(DT_NODE_RENDEZVOUS);
    struct dt_error err;
    fd = listener(&port);
    ok(dt_rendezvous_serve(fd, &self, 8, pipes[0], dt_pmix_now() + LONG,
                           &err) == DT_ERR_SYSTEM &&
           strstr(err.text, "over"),
       "and the place: %s", err.text);
    close(fd);
    close(pipes[0]);
    free_guest(&guest);
}

static void test_version(void)
{
    struct place place;
    struct guest guest;
    int pipes[2];
    if (pipe(pipes) < 0)
        abort();
    open_place(&place, pipes[0], LONG);
    make_guest(&guest, 1, place.port);
    guest.self.pmix = "5.0.1";
    run_guest(&guest);
    close(pipes[1]);
    close_place(&place);
    close(pipes[0]);
    ok(guest.rc == DT_ERR_VERSION && strstr(guest.err.text, "PMIx 5.0.1") &&
           strstr(guest.err.text, "PMIx 4.2.2"),
       "another version ends it at once: %s", guest.err.text);
    free_guest(&guest);
}

/* The place is at one of the ports of job and step; at an earlier one somebody
 * else listens. */
static void test_ports(void)
{
    struct place place = {.alive = -1, .life = -1, .ms = LONG};
    struct place other = {.pmix = "1.0", .life = -1, .ms = LONG};
    struct guest guests[NODES];
    struct dt_error err = {""};
    int taken, pipes[2];
    bool distinct = true;
    for (size_t i = 0; i < DT_RENDEZVOUS_PORTS; i++)
        for (size_t j = 0; j < i; j++)
            distinct = distinct && dt_rendezvous_port(JOB, 0, i) !=
                                       dt_rendezvous_port(JOB, 0, j);
    ok(distinct &&
           dt_rendezvous_port(JOB, 0, 3) == dt_rendezvous_port(JOB, 0, 3),
       "a step stands for so many ports");

    ok(dt_rendezvous_listen(JOB, 0, &taken, &err) == DT_SUCCESS &&
           dt_rendezvous_listen(JOB, 0, &other.listener, &err) == DT_SUCCESS &&
           dt_rendezvous_listen(JOB, 0, &place.listener, &err) == DT_SUCCESS,
       "the next port is taken where one is not free: %s", err.text);
    if (pipe(pipes) < 0)
        abort();
    other.alive = pipes[0];
    pthread_create(&other.thread, NULL, run_place, &other);
    pthread_create(&place.thread, NULL, run_place, &place);
    for (uint32_t i = 0; i < NODES; i++)
        make_guest(&guests[i], i, 0);
    guests[2].hosts = "no-such-host.invalid,127.0.0.1";
    ok(meet(guests, NODES, &place) == DT_SUCCESS,
       "the place is found behind one that is mute and one of another "
       "version: %s",
       place.err.text);
    for (uint32_t i = 0; i < NODES; i++)
        free_guest(&guests[i]);
    close(pipes[1]);
    close_place(&other);
    close(pipes[0]);
    close(taken);
}

int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    int before = descriptors();
    test_meeting();
    test_loopback();
    test_errors();
    test_loss();
    test_late_loss();
    test_search();
    test_version();
    test_ports();
    ok(descriptors() == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
