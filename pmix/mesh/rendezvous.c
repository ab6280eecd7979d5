/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.c - going where the daemons of a step meet. */
#include "mesh/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "mesh/address.h"
#include "mesh/net.h"

/* the ports that jobs stand for: below those the kernel gives out */
#define PORT_LOW  20000
#define PORT_SPAN 12000

#define CONNECT_MS   2000 /* for one address at most */
#define PAUSE_MS     50   /* after the first round, more after each */
#define PAUSE_MAX_MS 500

/* ---- ports ---- */

uint16_t dt_rendezvous_port(uint32_t job, uint32_t step, size_t i)
{
    uint64_t key = (uint64_t)job << 32 | step;
    /* any function that scatters neighbours will do, but never another one:
     * all daemons of a step must agree */
    key = (key ^ key >> 31) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    key ^= key >> 32;
    return (uint16_t)(PORT_LOW + (key + i * (PORT_SPAN / DT_RENDEZVOUS_PORTS)) %
                                     PORT_SPAN);
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
                        "cannot listen on any of the %d ports, %u to %u, where "
                        "the nodes of this step could meet: %s",
                        DT_RENDEZVOUS_PORTS, dt_rendezvous_port(job, step, 0),
                        dt_rendezvous_port(job, step, DT_RENDEZVOUS_PORTS - 1),
                        strerror(errnum));
}

/* ---- waiting ---- */

/* What to wait for at a descriptor that only tells that the step is over. */
#define HANGUP POLLRDHUP

/* poll until a point in time; false once fds[0], of HANGUP, hung up. */
static bool poll_alive(struct pollfd *fds, nfds_t count, int64_t until)
{
    int64_t ms = until - dt_pmix_now();
    int n = poll(fds, count, ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms);
    if (n < 0) /* interrupted: whoever waits looks and comes again */
        for (nfds_t i = 0; i < count; i++)
            fds[i].revents = 0;
    return fds[0].revents == 0;
}

/* Until the link has moved, alive has hung up, or until, in ms. */
static bool wait_link(const struct dt_link *link, int alive, int64_t until)
{
    struct pollfd fds[2] = {
        {.fd = alive, .events = HANGUP},
        {.fd = link ? dt_link_fd(link) : -1,
         .events = link ? dt_link_events(link) : 0},
    };
    return poll_alive(fds, 2, until);
}

static dt_result_t is_over(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "the step was over before its nodes had met");
}

/* ---- dialing ---- */

struct search {
    const struct dt_rendezvous_address *place;
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
        dt_link_open(&link, fd, search->self, DT_NODE_RENDEZVOUS, now, &err);
    if (rc != DT_SUCCESS) {
        search->last = err;
        return rc;
    }
    for (;;) {
        int64_t due = dt_link_progress(link, now);
        socklen_t len = sizeof(to);
        if (!connected && getpeername(fd, (struct sockaddr *)&to, &len) == 0) {
            connected = true;
            until = now + search->patience;
        }
        if (dt_link_state(link) != DT_LINK_HANDSHAKE)
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
    /* the place may have called the meeting off at once: dt_rendezvous_register
     * says it
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
    const struct dt_rendezvous_address *place = search->place;
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
    for (size_t i = 0; !place->port && i < DT_RENDEZVOUS_PORTS; i++) {
        uint16_t port =
            dt_rendezvous_port(search->self->job, search->self->step, i);
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

dt_result_t dt_rendezvous_dial(const struct dt_rendezvous_address *place,
                               const struct dt_identity *self, int alive,
                               int64_t deadline, struct dt_link **link,
                               struct sockaddr_storage *local,
                               struct dt_error *err)
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

dt_result_t dt_rendezvous_register(struct dt_link *link,
                                   const struct dt_map_entry *mine, int alive,
                                   int64_t deadline, struct dt_map **map,
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

void dt_rendezvous_leave(struct dt_link *link, int alive, int64_t deadline)
{
    if (say(link, DT_WIRE_BYE, NULL, NULL) == DT_SUCCESS)
        (void)converse(link, alive, deadline, 0, NULL, NULL);
}

/* ---- serving ---- */

#define STRANGERS 64  /* beside one for each node */
#define DEAF_MS   100 /* until we try to accept again */

struct guest {
    struct dt_link *link;
    int64_t due;
    bool told;    /* its entry is here */
    bool left;    /* it has the map */
    bool outside; /* it reached us from another machine, at this address: */
    uint8_t reached[16];
};

/* what poll watches before the guests */
enum { ALIVE, LISTENER, GUESTS };

struct place {
    int listener, alive;
    bool deaf; /* no descriptor is left to accept with */
    struct dt_identity self;
    size_t ranks;
    int64_t now, deadline;
    struct guest *guests;
    struct pollfd *fds; /* GUESTS + room */
    size_t count, room;
    struct dt_map_entry *entries; /* [nodes], where come says so; made's once
                                   * there is one */
    struct dt_map *made;
    bool *come;
    size_t missing;
    bool outside; /* some guest was outside and reached us at this address: */
    uint8_t reached[16];
    struct dt_frame *map; /* once all have come */
};

/* ---- guests ---- */

static void see_off(struct place *place, size_t i)
{
    dt_link_close(place->guests[i].link);
    place->guests[i] = place->guests[--place->count];
}

static void say_bye(struct dt_link *link)
{
    struct dt_frame *bye = dt_frame_begin(DT_WIRE_BYE);
    if (dt_frame_end(&bye, NULL) == DT_SUCCESS)
        dt_link_send(link, bye);
    dt_frame_unref(bye);
}

/* Without descriptors one who has told what he had to can go. False: nobody. */
static bool make_room(struct place *place)
{
    for (size_t i = 0; i < place->count; i++)
        if (place->guests[i].told && dt_link_peer(place->guests[i].link) != 0) {
            say_bye(place->guests[i].link);
            see_off(place, i);
            return true;
        }
    return false;
}

static void welcome(struct place *place, int fd)
{
    struct sockaddr_storage here;
    socklen_t len = sizeof(here);
    struct guest guest = {.due = place->now};
    if (place->count == place->room) { /* he will come again */
        close(fd);
        return;
    }
    if (getsockname(fd, (struct sockaddr *)&here, &len) == 0)
        guest.outside =
            dt_address_get((struct sockaddr *)&here, guest.reached, NULL) &&
            !dt_address_loopback(guest.reached);
    if (dt_link_open(&guest.link, fd, &place->self, DT_NODE_ANY, place->now,
                     NULL) == DT_SUCCESS)
        place->guests[place->count++] = guest;
}

static void accept_some(struct place *place)
{
    for (size_t i = 0; i < STRANGERS && !place->deaf; i++) {
        int fd =
            accept4(place->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            welcome(place, fd);
        else if (errno == EMFILE || errno == ENFILE)
            place->deaf = !make_room(place);
        else if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

static dt_result_t take_entry(struct place *place, struct guest *guest,
                              const struct dt_frame *frame,
                              struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    struct dt_map_entry entry;
    uint32_t node = dt_link_peer(guest->link);
    dt_result_t rc = dt_map_entry_unpack(&body, place->ranks, &entry, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (entry.node != node)
        rc = dt_error_set(err, DT_ERR_MISMATCH,
                          "the daemon of node %u speaks for node %u (%s)", node,
                          entry.node, entry.name);
    else if (place->come[node])
        rc = dt_error_set(err, DT_ERR_MISMATCH,
                          "node %u has come twice, as %s and as %s", node,
                          place->entries[node].name, entry.name);
    if (rc != DT_SUCCESS) {
        dt_map_entry_free(&entry);
        return rc;
    }
    place->entries[node] = entry;
    place->come[node] = guest->told = true;
    place->missing--;
    if (guest->outside && !place->outside) {
        place->outside = true;
        memcpy(place->reached, guest->reached, 16);
    }
    return DT_SUCCESS;
}

/* Returns an error that ends the meeting. */
static dt_result_t listen_to(struct place *place, struct guest *guest,
                             struct dt_error *err)
{
    struct dt_frame *frame;
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && (frame = dt_link_next(guest->link))) {
        if (dt_frame_kind(frame) == DT_WIRE_ENTRY)
            rc = take_entry(place, guest, frame, err);
        else if (dt_frame_kind(frame) == DT_WIRE_BYE && place->map)
            guest->left = true;
        dt_frame_unref(frame);
    }
    if (rc == DT_SUCCESS && guest->told && !guest->left &&
        dt_link_state(guest->link) == DT_LINK_BROKEN)
        rc = dt_error_set(err, DT_ERR_PROC_FAILED,
                          "the daemon of node %s was lost: %s",
                          place->entries[dt_link_peer(guest->link)].name,
                          dt_link_why(guest->link));
    return rc;
}

static bool all_have_left(const struct place *place)
{
    for (size_t i = 0; i < place->count; i++)
        if (place->guests[i].told && !place->guests[i].left)
            return false;
    return place->map;
}

/* ---- the map ---- */

/* The first node may be where this place is: then it came over an address that
 * leads nowhere from other machines. */
static void mend_loopback(struct place *place)
{
    for (size_t i = 0; place->outside && i < place->self.nodes; i++)
        if (dt_address_loopback(place->entries[i].ip))
            memcpy(place->entries[i].ip, place->reached, 16);
}

static dt_result_t hand_out_map(struct place *place, struct dt_error *err)
{
    mend_loopback(place);
    dt_result_t rc = dt_map_create(&place->made, place->entries,
                                   place->self.nodes, place->ranks, err);
    if (rc == DT_SUCCESS)
        rc = dt_map_pack(place->made, &place->map, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < place->count; i++)
        if (place->guests[i].told && dt_link_peer(place->guests[i].link) == 0) {
            dt_link_send(place->guests[i].link, place->map);
            place->guests[i].due = place->now;
        }
    return DT_SUCCESS;
}

/* ---- serving ---- */

static dt_result_t too_late(const struct place *place, struct dt_error *err)
{
    char nodes[128] = "";
    size_t len = 0, named = 0;
    if (place->missing == 0)
        return dt_error_set(err, DT_ERR_TIMED_OUT,
                            "not all nodes had the map in time");
    for (uint32_t i = 0; i < place->self.nodes && named < 8; i++)
        if (!place->come[i])
            len += (size_t)snprintf(nodes + len, sizeof(nodes) - len, "%s%u",
                                    named++ ? ", " : "", i);
    return dt_error_set(err, DT_ERR_TIMED_OUT,
                        "%zu of %u nodes did not come to the meeting in time: "
                        "of this step, counted from 0, %s%s",
                        place->missing, place->self.nodes, nodes,
                        place->missing > named ? " and more" : "");
}

/* Wait, and note who moved. False: the step is over. */
static bool wait_guests(struct place *place)
{
    int64_t until = place->deadline;
    place->fds[ALIVE] = (struct pollfd){.fd = place->alive, .events = HANGUP};
    place->fds[LISTENER] = (struct pollfd){
        .fd = place->deaf ? -1 : place->listener, .events = POLLIN};
    if (place->deaf && until > place->now + DEAF_MS)
        until = place->now + DEAF_MS;
    place->deaf = false;
    for (size_t i = 0; i < place->count; i++) {
        const struct guest *guest = &place->guests[i];
        place->fds[GUESTS + i] =
            (struct pollfd){.fd = dt_link_fd(guest->link),
                            .events = dt_link_events(guest->link)};
        if (guest->due < until)
            until = guest->due;
    }
    return poll_alive(place->fds, GUESTS + place->count, until);
}

/* Backwards, as those who leave are replaced by the last. */
static dt_result_t turn_guests(struct place *place, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = place->count; rc == DT_SUCCESS && i-- > 0;) {
        struct guest *guest = &place->guests[i];
        if (!place->fds[GUESTS + i].revents && guest->due > place->now)
            continue;
        guest->due = dt_link_progress(guest->link, place->now);
        rc = listen_to(place, guest, err);
        if (dt_link_state(guest->link) == DT_LINK_BROKEN)
            see_off(place, i);
    }
    return rc;
}

static dt_result_t serve(struct place *place, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && !all_have_left(place)) {
        if (!wait_guests(place))
            return dt_error_set(err, DT_ERR_SYSTEM,
                                "the step was over before its nodes had met");
        place->now = dt_pmix_now();
        rc = turn_guests(place, err);
        if (rc == DT_SUCCESS && place->missing == 0 && !place->map)
            rc = hand_out_map(place, err);
        if (place->fds[LISTENER].revents)
            accept_some(place);
        if (rc == DT_SUCCESS && !all_have_left(place) &&
            place->now >= place->deadline)
            rc = too_late(place, err);
    }
    return rc;
}

static void dismiss(struct place *place)
{
    while (place->count > 0) {
        say_bye(place->guests[place->count - 1].link);
        see_off(place, place->count - 1);
    }
}

/* Tell a guest why there is no meeting, once we know who it is. It is short and
 * goes at once. */
static void turn_away(struct place *place, size_t i, const char *why)
{
    struct dt_link *link = place->guests[i].link;
    if (dt_link_state(link) == DT_LINK_HANDSHAKE)
        return;
    uint32_t node = dt_link_peer(link);
    if (node != DT_NODE_ANY && !place->come[node]) {
        place->come[node] = true;
        place->missing--;
    }
    dt_link_refuse(link, why);
    see_off(place, i);
}

/* All who have come, and those who come yet: they would wait for nothing. */
static void call_off(struct place *place, const char *why)
{
    for (;;) {
        for (size_t i = place->count; i-- > 0;) {
            place->guests[i].due =
                dt_link_progress(place->guests[i].link, place->now);
            turn_away(place, i, why);
        }
        if (place->missing == 0 || place->now >= place->deadline ||
            !wait_guests(place))
            break;
        place->now = dt_pmix_now();
        if (place->fds[LISTENER].revents)
            accept_some(place);
    }
    while (place->count > 0)
        see_off(place, place->count - 1);
}

static dt_result_t prepare(struct place *place, struct dt_error *err)
{
    size_t nodes = place->self.nodes;
    int flags = fcntl(place->listener, F_GETFL);
    place->missing = nodes;
    place->room = nodes + STRANGERS;
    place->guests = calloc(place->room, sizeof(struct guest));
    place->fds = calloc(GUESTS + place->room, sizeof(struct pollfd));
    place->entries = calloc(nodes, sizeof(struct dt_map_entry));
    place->come = calloc(nodes, sizeof(bool));
    if (!place->guests || !place->fds || !place->entries || !place->come)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a meeting of %zu nodes", nodes);
    if (flags < 0 || fcntl(place->listener, F_SETFL, flags | O_NONBLOCK) < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "no socket to meet at: %s",
                            strerror(errno));
    return DT_SUCCESS;
}

static void unprepare(struct place *place)
{
    bool ours = !place->made && place->entries && place->come;
    for (size_t i = 0; ours && i < place->self.nodes; i++)
        if (place->come[i])
            dt_map_entry_free(&place->entries[i]);
    if (!place->made)
        free(place->entries);
    dt_map_destroy(place->made);
    dt_frame_unref(place->map);
    free(place->come);
    free(place->fds);
    free(place->guests);
}

dt_result_t dt_rendezvous_serve(int listener, const struct dt_identity *self,
                                size_t ranks, int alive, int64_t deadline,
                                struct dt_error *err)
{
    struct dt_error why = {""};
    struct place place = {.listener = listener,
                          .alive = alive,
                          .self = *self,
                          .ranks = ranks,
                          .now = dt_pmix_now(),
                          .deadline = deadline};
    place.self.node = DT_NODE_RENDEZVOUS;
    dt_result_t rc = prepare(&place, &why);
    if (rc == DT_SUCCESS) {
        rc = serve(&place, &why);
        if (rc == DT_SUCCESS)
            dismiss(&place);
        else
            call_off(&place, why.text);
    }
    unprepare(&place);
    return rc == DT_SUCCESS ? rc : dt_error_set(err, rc, "%s", why.text);
}
