/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.c - going where the daemons of a step meet. */
#include "mesh/meet.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "mesh/address.h"
#include "mesh/meet_wait.h"
#include "mesh/net.h"

/* the ports that jobs stand for: below those the kernel gives out */
#define PORT_LOW  20000
#define PORT_SPAN 12000

#define CONNECT_MS   2000 /* for one address at most */
#define PAUSE_MS     50   /* after the first round, more after each */
#define PAUSE_MAX_MS 500

/* ---- ports ---- */

uint16_t dt_meet_port(uint32_t job, uint32_t step, size_t i)
{
    uint64_t key = (uint64_t)job << 32 | step;
    /* any function that scatters neighbours will do, but never another one:
     * all daemons of a step must agree */
    key = (key ^ key >> 31) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    key ^= key >> 32;
    return (uint16_t)(PORT_LOW +
                      (key + i * (PORT_SPAN / DT_MEET_PORTS)) % PORT_SPAN);
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

dt_result_t dt_meet_listen(uint32_t job, uint32_t step, int *listener,
                           struct dt_error *err)
{
    int errnum = 0;
    for (size_t i = 0; i < DT_MEET_PORTS; i++) {
        uint16_t port = dt_meet_port(job, step, i);
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
                        "cannot listen on any of the %d ports, %u to %u, where "
                        "the nodes of this step could meet: %s",
                        DT_MEET_PORTS, dt_meet_port(job, step, 0),
                        dt_meet_port(job, step, DT_MEET_PORTS - 1),
                        strerror(errnum));
}

/* ---- waiting ---- */

/* Until the link has moved, alive has hung up, or until, in ms. */
static bool wait_link(const struct dt_link *link, int alive, int64_t until)
{
    struct pollfd fds[2] = {
        {.fd = alive, .events = DT_MEET_ALIVE},
        {.fd = link ? dt_link_fd(link) : -1,
         .events = link ? dt_link_events(link) : 0},
    };
    return dt_meet_poll(fds, 2, until);
}

static dt_result_t is_over(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "the step was over before its nodes had met");
}

/* ---- dialing ---- */

struct search {
    const struct dt_meet_place *place;
    const struct dt_identity *self;
    int alive;
    int64_t deadline;
    int64_t patience; /* with one that has answered */
    struct dt_link *link;
    struct dt_error last; /* why it has not worked so far */
    bool answered;        /* last is of one who answered */
};

/* What somebody said who answered tells more than that nobody is there. */
static void note(struct search *search, bool answered, const char *host,
                 uint16_t port, const char *why)
{
    if (search->answered && !answered)
        return;
    search->answered = answered;
    dt_error_set(&search->last, DT_ERR_SYSTEM, "%s port %u: %s", host, port,
                 why);
}

/* A connection that may become a link. */
static dt_result_t greet(struct search *search, int fd, const char *host,
                         uint16_t port)
{
    struct dt_link *link;
    int64_t now = dt_pmix_now(), until = now + CONNECT_MS;
    struct dt_error err;
    struct sockaddr_storage to;
    bool connected = false;
    dt_result_t rc =
        dt_link_open(&link, fd, search->self, DT_NODE_MEETING, now, &err);
    if (rc != DT_SUCCESS) {
        search->last = err;
        return rc;
    }
    for (;;) {
        int64_t due = dt_link_turn(link, now);
        socklen_t len = sizeof(to);
        if (!connected && getpeername(fd, (struct sockaddr *)&to, &len) == 0) {
            connected = true;
            until = now + search->patience;
        }
        if (dt_link_state(link) != DT_LINK_GREETING)
            break;
        if (until > search->deadline)
            until = search->deadline;
        if (now >= until) {
            dt_link_refuse(link, "no answer came");
            break;
        }
        if (!wait_link(link, search->alive, due < until ? due : until)) {
            dt_link_close(link);
            return DT_ERR_SYSTEM;
        }
        now = dt_pmix_now();
    }
    /* the place may have called the meeting off at once: dt_meet_tell says it
     */
    if (dt_link_peer(link) != DT_NODE_ANY) {
        search->link = link;
        return DT_SUCCESS;
    }
    rc = dt_link_result(link);
    note(search, rc != DT_ERR_PROC_FAILED, host, port, dt_link_why(link));
    dt_link_close(link);
    return rc == DT_ERR_VERSION ? rc : DT_IN_PROGRESS;
}

static dt_result_t dial_port(struct search *search, const char *host,
                             const struct addrinfo *addresses, uint16_t port)
{
    dt_result_t rc = DT_IN_PROGRESS;
    for (const struct addrinfo *at = addresses; at && rc == DT_IN_PROGRESS;
         at = at->ai_next) {
        uint8_t ip[16];
        if (!dt_address_get(at->ai_addr, ip, NULL))
            continue;
        int fd = dt_net_dial(ip, port);
        if (fd < 0)
            note(search, false, host, port, strerror(errno));
        else
            rc = greet(search, fd, host, port);
    }
    return rc;
}

/* SUCCESS: search->link; IN_PROGRESS: nobody there; else it is no use to go
 * on. */
static dt_result_t dial_host(struct search *search, const char *host)
{
    const struct dt_meet_place *place = search->place;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses;
    dt_result_t rc = DT_IN_PROGRESS;
    int code = getaddrinfo(host, NULL, &hints, &addresses);
    if (code) {
        dt_error_set(&search->last, DT_ERR_SYSTEM, "%s: %s", host,
                     gai_strerror(code));
        return rc;
    }
    if (place->port)
        rc = dial_port(search, host, addresses, place->port);
    for (size_t i = 0; !place->port && i < DT_MEET_PORTS; i++) {
        uint16_t port = dt_meet_port(search->self->job, search->self->step, i);
        rc = dial_port(search, host, addresses, port);
        if (rc == DT_ERR_VERSION) /* of another job, maybe */
            rc = DT_IN_PROGRESS;
        if (rc != DT_IN_PROGRESS || dt_pmix_now() >= search->deadline)
            break;
    }
    freeaddrinfo(addresses);
    return rc;
}

static dt_result_t dial_all(struct search *search)
{
    dt_result_t rc = DT_IN_PROGRESS;
    const char *at = search->place->hosts;
    while (*at && rc == DT_IN_PROGRESS) {
        char host[256];
        size_t len = strcspn(at, ",");
        if (len > 0 && len < sizeof(host)) {
            memcpy(host, at, len);
            host[len] = '\0';
            rc = dial_host(search, host);
        }
        at += len + (at[len] == ',');
        if (dt_pmix_now() >= search->deadline)
            break;
    }
    return rc;
}

static dt_result_t find(struct search *search, struct dt_error *err)
{
    int64_t pause = PAUSE_MS;
    for (;;) {
        dt_result_t rc = dial_all(search);
        int64_t now = dt_pmix_now();
        if (rc == DT_SUCCESS)
            return rc;
        if (rc == DT_ERR_SYSTEM)
            return is_over(err);
        if (rc != DT_IN_PROGRESS)
            return dt_error_set(err, rc, "%s", search->last.text);
        if (now >= search->deadline)
            return dt_error_set(
                err, DT_ERR_TIMED_OUT,
                "found no place to meet the other nodes of this step: %s",
                search->last.text[0] ? search->last.text : "no host is given");
        int64_t until = now + pause;
        if (!wait_link(NULL, search->alive,
                       until < search->deadline ? until : search->deadline))
            return is_over(err);
        pause = 2 * pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
        search->patience *= 2;
        if (search->patience > DT_LINK_HANDSHAKE_MS)
            search->patience = DT_LINK_HANDSHAKE_MS;
    }
}

static void our_address(int fd, struct sockaddr_storage *local)
{
    socklen_t len = sizeof(*local);
    uint8_t ip[16] = {0};
    memset(local, 0, sizeof(*local));
    getsockname(fd, (struct sockaddr *)local, &len);
    dt_address_get((struct sockaddr *)local, ip, NULL);
    dt_address_put(ip, 0, local);
}

dt_result_t dt_meet_dial(const struct dt_meet_place *place,
                         const struct dt_identity *self, int alive,
                         int64_t deadline, struct dt_link **link,
                         struct sockaddr_storage *local, struct dt_error *err)
{
    struct search search = {.place = place,
                            .self = self,
                            .alive = alive,
                            .deadline = deadline,
                            /* at one of many ports a mute one keeps us from
                             * the next */
                            .patience = place->port ? DT_LINK_HANDSHAKE_MS
                                                    : CONNECT_MS};
    dt_result_t rc = find(&search, err);
    if (rc != DT_SUCCESS)
        return rc;
    our_address(dt_link_fd(search.link), local);
    *link = search.link;
    return DT_SUCCESS;
}

/* ---- telling ---- */

/* Turn the link until all is written and, if kind is not 0, a frame of that
 * kind is here. */
static dt_result_t converse(struct dt_link *link, int alive, int64_t deadline,
                            enum dt_wire_kind kind, struct dt_frame **frame,
                            struct dt_error *err)
{
    for (;;) {
        int64_t now = dt_pmix_now(), due = dt_link_turn(link, now);
        struct dt_frame *next;
        while (kind && (next = dt_link_next(link))) {
            if (dt_frame_kind(next) == kind) {
                *frame = next;
                return DT_SUCCESS;
            }
            dt_frame_unref(next);
        }
        bool broken = dt_link_state(link) == DT_LINK_BROKEN;
        /* the place may be done, and close, as soon as it has what we say */
        if (!kind && broken && dt_link_result(link) == DT_SUCCESS)
            return DT_SUCCESS;
        if (broken)
            return dt_error_set(err, DT_ERR_BOOTSTRAP,
                                "the nodes of this step did not meet: %s",
                                dt_link_why(link));
        if (!kind && dt_link_flushed(link))
            return DT_SUCCESS;
        if (now >= deadline)
            return dt_error_set(err, DT_ERR_TIMED_OUT,
                                "the nodes of this step did not meet in time");
        if (!wait_link(link, alive, due < deadline ? due : deadline))
            return is_over(err);
    }
}

static dt_result_t say(struct dt_link *link, enum dt_wire_kind kind,
                       const struct dt_map_entry *entry, struct dt_error *err)
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

dt_result_t dt_meet_tell(struct dt_link *link, const struct dt_map_entry *mine,
                         int alive, int64_t deadline, struct dt_map **map,
                         struct dt_error *err)
{
    bool first = mine->node == 0;
    struct dt_frame *frame = NULL;

    *map = NULL;
    dt_result_t rc = say(link, DT_WIRE_ENTRY, mine, err);
    if (rc == DT_SUCCESS)
        rc = converse(link, alive, deadline, first ? DT_WIRE_MAP : 0, &frame,
                      err);
    if (rc != DT_SUCCESS || !first)
        return rc;
    rc = dt_map_unpack(frame, map, err);
    dt_frame_unref(frame);
    return rc;
}

void dt_meet_leave(struct dt_link *link, int alive, int64_t deadline)
{
    if (say(link, DT_WIRE_BYE, NULL, NULL) == DT_SUCCESS)
        (void)converse(link, alive, deadline, 0, NULL, NULL);
}
