/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* join.c - how a step's PMIx server finds those of the other nodes. */
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pmix.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "mesh/address.h"

/* "OpenPMIx 4.2.2 (...)" is 4.2.2. */
void dt_join_pmix_version(char text[DT_JOIN_VERSION_MAX])
{
    const char *from = PMIx_Get_version();
    from += strcspn(from, "0123456789");
    size_t length = strcspn(from, " ,");
    if (length >= DT_JOIN_VERSION_MAX)
        length = DT_JOIN_VERSION_MAX - 1;
    memcpy(text, from, length);
    text[length] = '\0';
}

static struct dt_identity identity(const struct dt_join *join,
                                   const struct dt_step *step)
{
    return (struct dt_identity){.job = step->job,
                                .step = step->step,
                                .node = step->node,
                                .nodes = step->nodes,
                                .pmix = join->pmix,
                                .munge = step->munge,
                                .heartbeat = (int64_t)step->heartbeat * 1000};
}

static dt_result_t make_entry(const struct dt_step *step,
                              struct dt_map_entry *entry, struct dt_error *err)
{
    *entry = (struct dt_map_entry){.node = step->node, .nranks = step->nlocal};
    memcpy(entry->name, step->name, strlen(step->name));
    entry->ranks = calloc(step->nlocal, sizeof(*entry->ranks));
    if (!entry->ranks)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    memcpy(entry->ranks, step->local, step->nlocal * sizeof(*entry->ranks));
    return DT_SUCCESS;
}

/* ---- one node ---- */

static dt_result_t map_alone(struct dt_join *join, const struct dt_step *step,
                             struct dt_error *err)
{
    struct dt_map_entry *entry = malloc(sizeof(*entry));
    if (!entry)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc = make_entry(step, entry, err);
    if (rc != DT_SUCCESS) {
        free(entry);
        return rc;
    }
    rc = dt_map_create(&join->map, entry, 1, step->ranks, err);
    if (rc != DT_SUCCESS) {
        dt_map_entry_free(entry);
        free(entry);
    }
    return rc;
}

/* ---- the first node as the place ---- */

/* Our address among those by which others reach us: the one we would call that
 * host by. Sends nothing. */
static bool own_address(const char *host, char text[DT_ADDRESS_TEXT])
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    struct sockaddr_storage at;
    socklen_t length = sizeof(at);
    uint8_t ip[16];
    bool known = false;
    if (!host || getaddrinfo(host, "9", &hints, &found) != 0)
        return false;
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &length) == 0 &&
        dt_address_get((struct sockaddr *)&at, ip, NULL)) {
        dt_address_text(ip, text);
        known = true;
    }
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return known;
}

/* Serve in a process of its own, which ends with this one. */
static dt_result_t open_place(const struct dt_identity *self, size_t ranks,
                              int64_t deadline, struct dt_error *err)
{
    struct dt_identity place = *self;
    int listener, life[2];
    dt_result_t rc = dt_meet_listen(self->job, self->step, &listener, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (pipe2(life, O_CLOEXEC) != 0) {
        close(listener);
        return dt_error_set(err, DT_ERR_SYSTEM, "pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(life[1]);
        close(STDIN_FILENO); /* or the plugin would not see the daemon's end */
        place.node = DT_NODE_MEETING;
        rc = dt_meet_serve(listener, &place, ranks, life[0], deadline, err);
        _exit(rc == DT_SUCCESS ? 0 : 1);
    }
    close(listener);
    close(life[0]);
    if (pid > 0)
        return DT_SUCCESS;
    close(life[1]);
    return dt_error_set(err, DT_ERR_SYSTEM, "fork: %s", strerror(errno));
}

/* ---- the net, until the server is there ---- */

/* The map, if join has none, and what came too early for the server. */
static void on_received(void *arg, size_t node, const struct dt_frame *frame)
{
    struct dt_join *join = arg;
    struct dt_map *map;
    if (join->host.received) {
        join->host.received(join->host.arg, node, frame);
        return;
    }
    struct dt_frame *mine = dt_frame_ref((struct dt_frame *)frame);
    if (!join->map && dt_frame_kind(frame) == DT_WIRE_MAP &&
        node == dt_tree_parent(join->self)) {
        struct dt_error why;
        if (dt_map_unpack(frame, &map, &why) != DT_SUCCESS) {
            dt_net_drop(join->net, node, why.text);
            dt_frame_unref(mine);
            return;
        }
        join->map = map;
        dt_net_set_map(join->net, map);
        for (size_t k = 0; k < DT_MESH_WIDTH; k++)
            if (dt_tree_child(join->self, k) < join->nodes)
                dt_net_send(join->net, dt_tree_child(join->self, k), mine);
        dt_frame_unref(mine);
        return;
    }
    size_t n = join->nearly + 1;
    struct dt_frame **early = realloc(join->early, n * sizeof(*early));
    if (early)
        join->early = early;
    uint32_t *from = realloc(join->early_from, n * sizeof(*from));
    if (from)
        join->early_from = from;
    join->failed = join->failed || !early || !from;
    if (join->failed) {
        dt_frame_unref(mine);
        return;
    }
    join->early[join->nearly] = mine;
    join->early_from[join->nearly++] = (uint32_t)node;
}

static void on_gone(void *arg, size_t node, bool left, const char *why)
{
    struct dt_join *join = arg;
    if (join->host.gone)
        join->host.gone(join->host.arg, node, left, why);
}

static void on_refused(void *arg, const char *line)
{
    struct dt_join *join = arg;
    if (join->host.refused)
        join->host.refused(join->host.arg, line);
}

/* Does the descriptor read end of file? */
static bool has_ended(int alive)
{
    char byte;
    return recv(alive, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static dt_result_t await_map(struct dt_join *join, int alive, int64_t deadline,
                             struct dt_error *err)
{
    while (!join->map) {
        int64_t now = dt_pmix_now();
        int64_t due = dt_net_turn(join->net, now);
        if (join->map)
            break;
        if (now >= deadline)
            return dt_error_set(err, DT_ERR_TIMED_OUT,
                                "no word from the first node about where the "
                                "others are");
        if (has_ended(alive))
            return dt_error_set(err, DT_ERR_SYSTEM, "the step has ended");
        struct pollfd fds[] = {{alive, POLLIN, 0},
                               {dt_net_fd(join->net), POLLIN, 0}};
        due = due < deadline ? due : deadline;
        poll(fds, 2, due < now ? 0 : (int)(due - now));
    }
    return DT_SUCCESS;
}

static dt_result_t hand_on(struct dt_join *join, struct dt_error *err)
{
    struct dt_frame *frame;
    dt_result_t rc = dt_map_pack(join->map, &frame, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t k = 0; k < DT_MESH_WIDTH; k++)
        if (dt_tree_child(0, k) < join->nodes)
            dt_net_send(join->net, dt_tree_child(0, k), frame);
    dt_frame_unref(frame);
    dt_net_turn(join->net, dt_pmix_now());
    return DT_SUCCESS;
}

/* ---- several nodes ---- */

static dt_result_t meet(struct dt_join *join, const struct dt_step *step,
                        struct dt_link *link,
                        const struct sockaddr_storage *local, int alive,
                        int64_t deadline, struct dt_error *err)
{
    const struct dt_identity self = identity(join, step);
    const struct dt_net_host host = {join, on_received, on_gone, on_refused};
    struct sockaddr_storage at;
    struct dt_map_entry mine;
    uint8_t ip[16];
    if (!dt_address_get((const struct sockaddr *)local, ip, NULL))
        return dt_error_set(err, DT_ERR_SYSTEM, "no IP address to meet at");
    socklen_t length = dt_address_put(ip, 0, &at);
    dt_result_t rc = dt_net_open(&join->net, (struct sockaddr *)&at, length,
                                 &self, &host, err);
    if (rc == DT_SUCCESS)
        rc = make_entry(step, &mine, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_net_address(join->net, mine.ip, &mine.port);
    rc = dt_meet_tell(link, &mine, alive, deadline, &join->map, err);
    dt_map_entry_free(&mine);
    if (rc != DT_SUCCESS)
        return rc;
    if (!join->map)
        return await_map(join, alive, deadline, err);
    dt_net_set_map(join->net, join->map);
    return hand_on(join, err);
}

static dt_result_t join_several(struct dt_join *join,
                                const struct dt_step *step, int alive,
                                struct dt_error *err)
{
    const struct dt_identity self = identity(join, step);
    const int64_t deadline = dt_pmix_now() + (int64_t)step->limit * 1000;
    struct dt_meet_place place = {step->hosts, step->port};
    struct sockaddr_storage local;
    struct dt_link *link;
    char own[DT_ADDRESS_TEXT];
    dt_result_t rc = DT_SUCCESS;
    if (!step->port && !step->node) {
        rc = open_place(&self, step->ranks, deadline, err);
        if (own_address(step->srun, own))
            place.hosts = own;
    }
    if (rc == DT_SUCCESS)
        rc = dt_meet_dial(&place, &self, alive, deadline, &link, &local, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = meet(join, step, link, &local, alive, deadline, err);
    dt_link_close(link);
    return rc;
}

dt_result_t dt_join_open(struct dt_join *join, const struct dt_step *step,
                         int alive, struct dt_error *err)
{
    *join = (struct dt_join){.self = step->node, .nodes = step->nodes};
    dt_join_pmix_version(join->pmix);
    dt_result_t rc = step->nodes == 1 ? map_alone(join, step, err)
                                      : join_several(join, step, alive, err);
    if (rc == DT_SUCCESS && join->failed)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    if (rc == DT_SUCCESS &&
        (join->map->nodes != step->nodes || join->map->ranks != step->ranks))
        rc = dt_error_set(err, DT_ERR_MISMATCH, "the map is of another step");
    return rc;
}

void dt_join_done(struct dt_join *join, const struct dt_net_host *host)
{
    join->host = *host;
    for (size_t i = 0; i < join->nearly; i++) {
        host->received(host->arg, join->early_from[i], join->early[i]);
        dt_frame_unref(join->early[i]);
    }
    free(join->early);
    free(join->early_from);
    join->early = NULL;
    join->early_from = NULL;
    join->nearly = 0;
}

void dt_join_close(struct dt_join *join, int64_t ms)
{
    dt_net_close(join->net, ms);
    dt_map_destroy(join->map);
    for (size_t i = 0; i < join->nearly; i++)
        dt_frame_unref(join->early[i]);
    free(join->early);
    free(join->early_from);
    *join = (struct dt_join){.map = NULL};
}
