/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet_place.c - the place where the daemons of a step meet. */
#include "mesh/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "mesh/address.h"
#include "mesh/meet_wait.h"

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
    place->fds[ALIVE] =
        (struct pollfd){.fd = place->alive, .events = DT_MEET_ALIVE};
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
    return dt_meet_poll(place->fds, GUESTS + place->count, until);
}

/* Backwards, as those who leave are replaced by the last. */
static dt_result_t turn_guests(struct place *place, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = place->count; rc == DT_SUCCESS && i-- > 0;) {
        struct guest *guest = &place->guests[i];
        if (!place->fds[GUESTS + i].revents && guest->due > place->now)
            continue;
        guest->due = dt_link_turn(guest->link, place->now);
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
    if (dt_link_state(link) == DT_LINK_GREETING)
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
                dt_link_turn(place->guests[i].link, place->now);
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

dt_result_t dt_meet_serve(int listener, const struct dt_identity *self,
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
    place.self.node = DT_NODE_MEETING;
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
