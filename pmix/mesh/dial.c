/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dial.c - where the daemons of a step find each other: the side that dials,
 * and registers. */
#include "mesh/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/address.h"
#include "mesh/clock.h"
#include "mesh/net.h"

/* Ports that are dialed at once, more after each pause: strangers may have
 * taken the first. */
#define WIDTH    16
#define WIDEN_MS 250
#define DIALED   384 /* at the same time: each needs a descriptor */

#define PAUSE_MS     50 /* before a port is dialed once more, twice that then */
#define PAUSE_MAX_MS 500
#define LATE_MS      1000 /* the same for those behind the first WIDTH */
#define LATE_MAX_MS  4000
#define RESOLVE_MS   500 /* before a name is looked up once more, then twice */

/* ---- waiting ---- */

/* Until the link has moved, alive has hung up, or until, in ms. */
static bool wait_link(const struct dt_link *link, int alive, int64_t until)
{
    struct pollfd fds[2] = {
        {.fd = alive, .events = DT_RENDEZVOUS_OVER},
        {.fd = link ? dt_link_fd(link) : -1,
         .events = link ? dt_link_events(link) : 0},
    };
    return dt_rendezvous_poll(fds, 2, until);
}

static dt_result_t is_over(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "the step ended before its rendezvous was complete");
}

/* ---- dialing ---- */

/* Strangers may listen at the ports of a step, and keep who connects waiting.
 * So many ports are dialed at the same time, and none waits for another; the
 * rendezvous is where the handshake succeeds. */

/* An address of one of the hosts. */
struct place {
    uint8_t ip[16];
    char host[256];
};

/* One port of one place. */
struct target {
    struct dt_link *link; /* NULL: dial it at this time */
    int64_t at, pause;    /* pause: before the next */
};

enum { PLACES = 8 };

struct search {
    const struct dt_rendezvous_address *address;
    const struct dt_identity *self;
    int alive;
    int64_t deadline, now;
    struct place place[PLACES];
    size_t places, ports; /* ports of each */
    bool unresolved;      /* some host: */
    int64_t resolve_at, resolve_pause;
    struct target *target; /* [ports * PLACES]: port by port */
    struct pollfd *fds;    /* [1 + DIALED] */
    size_t width, dialed;  /* ports that are dialed; links */
    int64_t widen_at;
    struct dt_link *link; /* the rendezvous */
    struct dt_error last; /* the last failure */
    bool answered;        /* last is of a host that replied */
};

static uint16_t port_of(const struct search *search, size_t i)
{
    return search->address->port
               ? search->address->port
               : dt_rendezvous_port(search->self->job, search->self->step, i);
}

/* The failure of a host that replied is kept rather than that of one that did
 * not: it is nearer to the cause. */
static void note_failure(struct search *search, bool answered, size_t i,
                         const char *why)
{
    if (search->answered && !answered)
        return;
    search->answered = answered;
    dt_error_set(&search->last, DT_ERR_SYSTEM, "%s port %u: %s",
                 search->place[i % search->places].host,
                 port_of(search, i / search->places), why);
}

static void hang_up(struct search *search, struct target *target)
{
    dt_link_close(target->link);
    target->link = NULL;
    search->dialed--;
}

static void hang_up_all(struct search *search)
{
    for (size_t i = 0; i < search->ports * search->places; i++)
        if (search->target[i].link)
            hang_up(search, &search->target[i]);
}

static void add_places(struct search *search, const char *host)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses;
    int code = getaddrinfo(host, NULL, &hints, &addresses);
    if (code) {
        search->unresolved = true;
        if (!search->answered)
            dt_error_set(&search->last, DT_ERR_SYSTEM, "%s: %s", host,
                         gai_strerror(code));
        return;
    }
    for (const struct addrinfo *at = addresses; at; at = at->ai_next) {
        struct place *place = &search->place[search->places];
        if (search->places < PLACES &&
            dt_address_get(at->ai_addr, place->ip, NULL)) {
            snprintf(place->host, sizeof(place->host), "%s", host);
            search->places++;
        }
    }
    freeaddrinfo(addresses);
}

/* Dial all places from the first port on. */
static void begin(struct search *search)
{
    search->width = search->ports < WIDTH ? search->ports : WIDTH;
    search->widen_at = search->now + WIDEN_MS;
    for (size_t i = 0; i < search->ports * search->places; i++)
        search->target[i] = (struct target){
            .at = search->now,
            .pause = i / search->places < WIDTH ? PAUSE_MS : LATE_MS};
}

/* Look up all hosts, once more if one had no address. What has been dialed
 * stays, unless there is a new address. */
static void resolve(struct search *search)
{
    const char *at = search->address->hosts;
    struct place places[PLACES];
    size_t before = search->places;
    memcpy(places, search->place, sizeof(places));
    search->places = 0;
    search->unresolved = false;
    while (*at) {
        char host[256];
        size_t len = strcspn(at, ",");
        if (len > 0 && len < sizeof(host)) {
            memcpy(host, at, len);
            host[len] = '\0';
            add_places(search, host);
        }
        at += len + (at[len] == ',');
    }
    search->now = dt_pmix_now();
    search->resolve_at = search->now + search->resolve_pause;
    search->resolve_pause *= 2;
    if (search->places == before) {
        memcpy(search->place, places, sizeof(places));
        return;
    }
    size_t found = search->places;
    search->places = before;
    hang_up_all(search);
    search->places = found;
    begin(search);
}

/* It was no rendezvous of this step. */
static void try_later(struct search *search, size_t i)
{
    struct target *target = &search->target[i];
    int64_t most = i / search->places < WIDTH ? PAUSE_MAX_MS : LATE_MAX_MS;
    target->at = search->now + target->pause;
    target->pause = 2 * target->pause < most ? 2 * target->pause : most;
}

static void dial(struct search *search, size_t i)
{
    int fd = dt_net_dial(search->place[i % search->places].ip,
                         port_of(search, i / search->places));
    struct dt_error err;
    if (fd < 0)
        note_failure(search, false, i, strerror(errno));
    else if (dt_link_open(&search->target[i].link, fd, search->self,
                          DT_NODE_RENDEZVOUS, search->now, &err) != DT_SUCCESS)
        note_failure(search, false, i, err.text);
    else
        search->dialed++;
    if (!search->target[i].link)
        try_later(search, i);
}

/* SUCCESS: search->link; IN_PROGRESS: no rendezvous there, or not yet; VERSION.
 * *due: the time of the next call. */
static dt_result_t try_target(struct search *search, size_t i, int64_t *due)
{
    struct target *target = &search->target[i];
    if (!target->link && search->now >= target->at && search->dialed < DIALED)
        dial(search, i);
    int64_t at =
        target->link ? dt_link_progress(target->link, search->now) : target->at;
    if (at < *due)
        *due = at;
    if (!target->link || dt_link_state(target->link) == DT_LINK_HANDSHAKE)
        return DT_IN_PROGRESS;
    /* if the rendezvous has failed already, dt_rendezvous_register reports it
     */
    if (dt_link_peer(target->link) != DT_NODE_ANY) {
        search->link = target->link;
        target->link = NULL;
        search->dialed--;
        return DT_SUCCESS;
    }
    dt_result_t rc = dt_link_result(target->link);
    note_failure(search, rc != DT_ERR_PROC_FAILED, i,
                 dt_link_why(target->link));
    hang_up(search, target);
    try_later(search, i);
    if (target->at < *due)
        *due = target->at;
    /* at one of many ports it may be of another job */
    return rc == DT_ERR_VERSION && search->address->port ? rc : DT_IN_PROGRESS;
}

/* Until one of those dialed has moved, or due. */
static dt_result_t wait_targets(struct search *search, int64_t due,
                                struct dt_error *err)
{
    nfds_t n = 1;
    search->fds[0] =
        (struct pollfd){.fd = search->alive, .events = DT_RENDEZVOUS_OVER};
    for (size_t i = 0; i < search->width * search->places; i++)
        if (search->target[i].link)
            search->fds[n++] = (struct pollfd){
                .fd = dt_link_fd(search->target[i].link),
                .events = dt_link_events(search->target[i].link)};
    return dt_rendezvous_poll(search->fds, n, due) ? DT_IN_PROGRESS
                                                   : is_over(err);
}

static dt_result_t time_over(struct search *search, struct dt_error *err)
{
    for (size_t i = 0; i < search->width * search->places; i++)
        if (search->target[i].link)
            note_failure(search, false, i, "no reply came");
    return dt_error_set(
        err, DT_ERR_TIMED_OUT, "found no rendezvous of this step: %s",
        search->last.text[0] ? search->last.text : "no host is given");
}

static dt_result_t find(struct search *search, struct dt_error *err)
{
    for (dt_result_t rc = DT_IN_PROGRESS; rc == DT_IN_PROGRESS;) {
        int64_t due = search->deadline;
        search->now = dt_pmix_now();
        if (search->unresolved && search->now >= search->resolve_at)
            resolve(search);
        if (search->now >= search->widen_at && search->width < search->ports) {
            search->width = 2 * search->width;
            search->widen_at = search->now + WIDEN_MS;
        }
        for (size_t i = 0; i < search->width * search->places; i++) {
            rc = try_target(search, i, &due);
            if (rc == DT_ERR_VERSION)
                return dt_error_set(err, rc, "%s", search->last.text);
            if (rc == DT_SUCCESS)
                return rc;
        }
        if (search->now >= search->deadline)
            return time_over(search, err);
        if (search->width < search->ports && search->widen_at < due)
            due = search->widen_at;
        if (search->unresolved && search->resolve_at < due)
            due = search->resolve_at;
        rc = wait_targets(search, due, err);
        if (rc != DT_IN_PROGRESS)
            return rc;
    }
    return DT_ERR_SYSTEM;
}

static void local_address(int fd, struct sockaddr_storage *local)
{
    socklen_t len = sizeof(*local);
    uint8_t ip[16] = {0};
    memset(local, 0, sizeof(*local));
    getsockname(fd, (struct sockaddr *)local, &len);
    dt_address_get((struct sockaddr *)local, ip, NULL);
    dt_address_put(ip, 0, local);
}

dt_result_t dt_rendezvous_dial(const struct dt_rendezvous_address *address,
                               const struct dt_identity *self, int alive,
                               int64_t deadline, struct dt_link **link,
                               struct sockaddr_storage *local,
                               struct dt_error *err)
{
    struct search search = {.address = address,
                            .self = self,
                            .alive = alive,
                            .deadline = deadline,
                            .ports = address->port ? 1 : DT_RENDEZVOUS_PORTS,
                            .resolve_pause = RESOLVE_MS};
    search.target = calloc(search.ports * PLACES, sizeof(*search.target));
    search.fds = calloc(1 + DIALED, sizeof(*search.fds));
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (search.target && search.fds) {
        resolve(&search);
        rc = find(&search, err);
        hang_up_all(&search);
    } else {
        dt_error_set(err, rc, "no memory");
    }
    free(search.target);
    free(search.fds);
    if (rc != DT_SUCCESS)
        return rc;
    local_address(dt_link_fd(search.link), local);
    *link = search.link;
    return DT_SUCCESS;
}

/* ---- registering ---- */

/* Let the link progress until all is written and, if kind is not 0, a frame of
 * that kind is here. */
static dt_result_t exchange(struct dt_link *link, int alive, int64_t deadline,
                            enum dt_wire_kind kind, struct dt_frame **frame,
                            struct dt_error *err)
{
    for (;;) {
        int64_t now = dt_pmix_now(), due = dt_link_progress(link, now);
        struct dt_frame *next;
        while (kind && (next = dt_link_next(link))) {
            if (dt_frame_kind(next) == kind) {
                *frame = next;
                return DT_SUCCESS;
            }
            dt_frame_unref(next);
        }
        bool broken = dt_link_state(link) == DT_LINK_BROKEN;
        /* the rendezvous may be complete, and close, as soon as it has our
         * frame */
        if (!kind && broken && dt_link_result(link) == DT_SUCCESS)
            return DT_SUCCESS;
        if (broken)
            return dt_error_set(err, DT_ERR_BOOTSTRAP,
                                "the rendezvous of this step failed: %s",
                                dt_link_why(link));
        if (!kind && dt_link_flushed(link))
            return DT_SUCCESS;
        if (now >= deadline)
            return dt_error_set(err, DT_ERR_TIMED_OUT,
                                "the rendezvous of this step timed out");
        if (!wait_link(link, alive, due < deadline ? due : deadline))
            return is_over(err);
    }
}

static dt_result_t send_frame(struct dt_link *link, enum dt_wire_kind kind,
                              const struct dt_map_entry *entry,
                              struct dt_error *err)
{
    struct dt_frame *frame = dt_frame_begin(kind);
    if (entry)
        dt_map_entry_pack(frame, entry);
    dt_result_t rc = dt_frame_end(&frame, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_link_send(link, frame);
    dt_frame_unref(frame);
    return DT_SUCCESS;
}

dt_result_t dt_rendezvous_register(struct dt_link *link,
                                   const struct dt_map_entry *mine, int alive,
                                   int64_t deadline, struct dt_map **map,
                                   struct dt_error *err)
{
    bool first = mine->node == 0;
    struct dt_frame *frame = NULL;

    *map = NULL;
    dt_result_t rc = send_frame(link, DT_WIRE_ENTRY, mine, err);
    if (rc == DT_SUCCESS)
        rc = exchange(link, alive, deadline, first ? DT_WIRE_MAP : 0, &frame,
                      err);
    if (rc != DT_SUCCESS || !first)
        return rc;
    rc = dt_map_unpack(frame, map, err);
    dt_frame_unref(frame);
    return rc;
}

void dt_rendezvous_leave(struct dt_link *link, int alive, int64_t deadline)
{
    if (send_frame(link, DT_WIRE_BYE, NULL, NULL) == DT_SUCCESS)
        (void)exchange(link, alive, deadline, 0, NULL, NULL);
}
