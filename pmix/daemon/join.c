/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* join.c - how a step's PMIx server finds those of the other nodes. */
#include "daemon/join.h"

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

#include "base/env.h"
#include "daemon/background.h"
#include "mesh/clock.h"
#include "mesh/address.h"

/* The rendezvous at the first node gives up before those that register at it.
 */
#define EARLIER_MS 2000

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
                                   uint32_t heartbeat)
{
    const struct dt_step *step = join->step;
    return (struct dt_identity){.job = step->job,
                                .step = step->step,
                                .node = step->node,
                                .nodes = step->nodes,
                                .pmix = join->pmix,
                                .munge = step->munge,
                                .heartbeat = (int64_t)heartbeat * 1000};
}

static dt_result_t make_entry(const struct dt_join *join,
                              struct dt_map_entry *entry, struct dt_error *err)
{
    const struct dt_step *step = join->step;
    *entry = (struct dt_map_entry){.node = step->node, .nranks = step->nlocal};
    memcpy(entry->name, step->name, strlen(step->name));
    entry->ranks = calloc(step->nlocal, sizeof(*entry->ranks));
    if (!entry->ranks)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    memcpy(entry->ranks, step->local, step->nlocal * sizeof(*entry->ranks));
    if (!join->held || !join->held->n)
        return DT_SUCCESS;
    entry->held = calloc(join->held->n, sizeof(*entry->held));
    if (!entry->held) {
        dt_map_entry_free(entry);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    }
    entry->nheld = join->held->n;
    memcpy(entry->held, join->held->port, entry->nheld * sizeof(*entry->held));
    return DT_SUCCESS;
}

/* ---- one node ---- */

static dt_result_t map_alone(struct dt_join *join, const struct dt_step *step,
                             struct dt_error *err)
{
    struct dt_map_entry *entry = malloc(sizeof(*entry));
    if (!entry)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc = make_entry(join, entry, err);
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

/* ---- the rendezvous at the first node ---- */

/* The address of this node by which others reach it: the one that the kernel
 * would use to reach host. Sends nothing. */
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
static dt_result_t open_rendezvous(const struct dt_identity *self, size_t ranks,
                                   int64_t deadline, struct dt_error *err)
{
    struct dt_identity rendezvous = *self;
    int listener, alive[2];
    dt_result_t rc =
        dt_rendezvous_listen(self->job, self->step, &listener, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (pipe2(alive, O_CLOEXEC) != 0) {
        close(listener);
        return dt_error_set(err, DT_ERR_SYSTEM, "pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(alive[1]);
        close(STDIN_FILENO); /* or the plugin would not see the daemon end */
        rendezvous.node = DT_NODE_RENDEZVOUS;
        rc = dt_rendezvous_serve(listener, &rendezvous, ranks, alive[0],
                                 deadline, dt_background_log, err);
        _exit(rc == DT_SUCCESS ? 0 : 1);
    }
    close(listener);
    close(alive[0]);
    if (pid > 0)
        return DT_SUCCESS;
    close(alive[1]);
    return dt_error_set(err, DT_ERR_SYSTEM, "fork: %s", strerror(errno));
}

/* ---- the net, until the server is open ---- */

static void fail(struct dt_join *join, dt_result_t rc, const char *why)
{
    if (join->rc == DT_SUCCESS)
        join->rc = dt_error_set(&join->why, rc, "%s", why);
}

/* The sizes index all arrays, and the plugin has sent our ranks, too. */
static bool is_of_step(const struct dt_map *map, const struct dt_step *step)
{
    if (map->nodes != step->nodes || map->ranks != step->ranks)
        return false;
    const struct dt_map_entry *mine = &map->entry[step->node];
    return mine->nranks == step->nlocal &&
           !memcmp(mine->ranks, step->local,
                   step->nlocal * sizeof(*step->local));
}

static dt_result_t take_map(struct dt_join *join, struct dt_map *map,
                            struct dt_error *err)
{
    if (!is_of_step(map, join->step)) {
        dt_map_destroy(map);
        return dt_error_set(err, DT_ERR_MISMATCH, "the map is of another step");
    }
    join->map = map;
    dt_net_set_map(join->net, map);
    return DT_SUCCESS;
}

static void send_to_children(const struct dt_join *join, struct dt_frame *map)
{
    for (size_t k = 0; k < DT_MESH_WIDTH; k++)
        dt_net_send(join->net, dt_tree_child(join->step->node, k), map);
}

static void on_map(struct dt_join *join, struct dt_frame *frame)
{
    struct dt_map *map;
    struct dt_error why;
    dt_result_t rc = dt_map_unpack(frame, &map, &why);
    if (rc == DT_SUCCESS)
        rc = take_map(join, map, &why);
    if (rc == DT_SUCCESS)
        send_to_children(join, frame);
    else
        fail(join, rc, why.text);
}

/* Ownership of what pending holds is transferred. */
static void keep(struct dt_join *join, struct dt_join_pending pending)
{
    struct dt_join_pending *more =
        realloc(join->pending, (join->npending + 1) * sizeof(*more));
    if (more)
        join->pending = more;
    if (more && (pending.frame || pending.why)) {
        join->pending[join->npending++] = pending;
        return;
    }
    fail(join, DT_ERR_NO_MEMORY, "no memory");
    dt_frame_unref(pending.frame);
    free(pending.why);
}

/* The map, if join has none, and frames from before the server was open. */
static void on_received(void *arg, size_t node, const struct dt_frame *frame)
{
    struct dt_join *join = arg;
    struct dt_frame *mine =
        (struct dt_frame *)frame; /* only its count changes */
    if (join->host.received) {
        join->host.received(join->host.arg, node, frame);
        return;
    }
    if (!join->map && dt_frame_kind(frame) == DT_WIRE_MAP &&
        node == dt_tree_parent(join->step->node)) {
        on_map(join, mine);
        return;
    }
    size_t bytes = frame->len + sizeof(*frame) + sizeof(*join->pending);
    if (bytes > DT_WIRE_MAX - join->pending_bytes) {
        dt_net_drop(join->net, node,
                    "it sent too much before this node was ready");
        return;
    }
    join->pending_bytes += bytes;
    keep(join, (struct dt_join_pending){.node = (uint32_t)node,
                                        .frame = dt_frame_ref(mine)});
}

static void on_gone(void *arg, size_t node, bool left, const char *why)
{
    struct dt_join *join = arg;
    if (join->host.gone) {
        join->host.gone(join->host.arg, node, left, why);
        return;
    }
    if (!join->map && node == dt_tree_parent(join->step->node))
        fail(join, DT_ERR_PROC_FAILED,
             "the parent node was lost before it sent the map");
    else
        keep(join, (struct dt_join_pending){.node = (uint32_t)node,
                                            .left = left,
                                            .why = strdup(why)});
}

static void on_refused(void *arg, const char *line)
{
    struct dt_join *join = arg;
    if (join->host.refused)
        join->host.refused(join->host.arg, line);
    else
        dt_background_log(line);
}

/* Does the descriptor read end of file? */
static bool has_ended(int alive)
{
    char byte;
    return recv(alive, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The rendezvous reports its failure by this link. */
static bool has_failed(struct dt_link *link)
{
    struct dt_frame *frame;
    while ((frame = dt_link_next(link)))
        dt_frame_unref(frame);
    return dt_link_state(link) == DT_LINK_BROKEN &&
           dt_link_result(link) != DT_SUCCESS;
}

static dt_result_t wait_net(struct dt_join *join, const struct dt_link *link,
                            int alive, int64_t until, struct dt_error *err)
{
    bool broken = dt_link_state(link) == DT_LINK_BROKEN;
    struct pollfd fds[] = {
        {alive, POLLIN, 0},
        {dt_net_fd(join->net), POLLIN, 0},
        {broken ? -1 : dt_link_fd(link), dt_link_events(link), 0}};
    int64_t now = dt_pmix_now();
    poll(fds, 3, until < now ? 0 : (int)(until - now));
    return has_ended(alive)
               ? dt_error_set(err, DT_ERR_SYSTEM, "the step has ended")
               : DT_SUCCESS;
}

/* Until the map is here, and on its way to the children. */
static dt_result_t await_map(struct dt_join *join, struct dt_link *link,
                             int alive, int64_t deadline, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS) {
        int64_t now = dt_pmix_now();
        int64_t net_due = dt_net_progress(join->net, now);
        int64_t link_due = dt_link_progress(link, now);
        int64_t due = net_due < link_due ? net_due : link_due;
        if (join->rc != DT_SUCCESS)
            return dt_error_set(err, join->rc, "%s", join->why.text);
        if (has_failed(link))
            return dt_error_set(err, DT_ERR_BOOTSTRAP,
                                "the rendezvous of this step failed: %s",
                                dt_link_why(link));
        if (join->map && dt_net_flushed(join->net))
            return DT_SUCCESS;
        if (now >= deadline)
            return dt_error_set(
                err, DT_ERR_TIMED_OUT,
                "the map of the step was not received, or not sent "
                "on, in time");
        rc = wait_net(join, link, alive, due < deadline ? due : deadline, err);
    }
    return rc;
}

static dt_result_t send_map(struct dt_join *join, struct dt_map *map,
                            struct dt_error *err)
{
    struct dt_frame *frame;
    dt_result_t rc = take_map(join, map, err);
    if (rc == DT_SUCCESS)
        rc = dt_map_pack(map, &frame, err);
    if (rc != DT_SUCCESS)
        return rc;
    send_to_children(join, frame);
    dt_frame_unref(frame);
    return DT_SUCCESS;
}

/* ---- several nodes ---- */

static dt_result_t
register_node(struct dt_join *join, const struct dt_step *step,
              struct dt_link *link, const struct sockaddr_storage *local,
              int alive, int64_t deadline, struct dt_error *err)
{
    const struct dt_identity self = identity(join, step->heartbeat);
    const struct dt_net_host host = {join, on_received, on_gone, on_refused};
    struct sockaddr_storage at;
    struct dt_map_entry mine;
    struct dt_map *map;
    uint8_t ip[16];
    if (!dt_address_get((const struct sockaddr *)local, ip, NULL))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "no IP address for the rendezvous");
    socklen_t length = dt_address_put(ip, 0, &at);
    dt_result_t rc = dt_net_open(&join->net, (struct sockaddr *)&at, length,
                                 &self, &host, err);
    if (rc == DT_SUCCESS)
        rc = make_entry(join, &mine, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_net_address(join->net, mine.ip, &mine.port);
    rc = dt_rendezvous_register(link, &mine, alive, deadline, &map, err);
    dt_map_entry_free(&mine);
    if (rc != DT_SUCCESS)
        return rc;
    if (map)
        rc = send_map(join, map, err);
    if (rc == DT_SUCCESS)
        rc = await_map(join, link, alive, deadline, err);
    if (rc == DT_SUCCESS)
        dt_rendezvous_leave(link, alive, deadline);
    return rc;
}

static dt_result_t join_several(struct dt_join *join,
                                const struct dt_step *step, int alive,
                                struct dt_error *err)
{
    /* srun's rendezvous knows the default only */
    const struct dt_identity self = identity(join, DT_ENV_HEARTBEAT_DEFAULT);
    const int64_t deadline = dt_pmix_now() + (int64_t)step->limit * 1000;
    struct dt_rendezvous_address address = {step->hosts, step->port};
    struct sockaddr_storage local;
    struct dt_link *link;
    char own[DT_ADDRESS_TEXT];
    dt_result_t rc = DT_SUCCESS;
    if (!step->port && !step->node) {
        rc = open_rendezvous(&self, step->ranks, deadline - EARLIER_MS, err);
        if (own_address(step->srun, own))
            address.hosts = own;
    }
    if (rc == DT_SUCCESS)
        rc = dt_rendezvous_dial(&address, &self, alive, deadline, &link, &local,
                                err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = register_node(join, step, link, &local, alive, deadline, err);
    dt_link_close(link);
    return rc;
}

dt_result_t dt_join_open(struct dt_join *join, const struct dt_step *step,
                         const struct dt_held_ports *held, int alive,
                         struct dt_error *err)
{
    *join = (struct dt_join){.step = step, .held = held};
    dt_join_pmix_version(join->pmix);
    dt_result_t rc = step->nodes == 1 ? map_alone(join, step, err)
                                      : join_several(join, step, alive, err);
    if (rc == DT_SUCCESS && join->rc != DT_SUCCESS)
        rc = dt_error_set(err, join->rc, "%s", join->why.text);
    return rc;
}

static void forget(struct dt_join *join)
{
    for (size_t i = 0; i < join->npending; i++) {
        dt_frame_unref(join->pending[i].frame);
        free(join->pending[i].why);
    }
    free(join->pending);
    join->pending = NULL;
    join->npending = 0;
}

void dt_join_done(struct dt_join *join, const struct dt_net_host *host)
{
    join->host = *host;
    for (size_t i = 0; i < join->npending; i++) {
        const struct dt_join_pending *pending = &join->pending[i];
        if (pending->frame)
            host->received(host->arg, pending->node, pending->frame);
        else
            host->gone(host->arg, pending->node, pending->left, pending->why);
    }
    forget(join);
}

void dt_join_close(struct dt_join *join, int64_t ms)
{
    dt_net_close(join->net, ms);
    dt_map_destroy(join->map);
    forget(join);
    *join = (struct dt_join){.map = NULL};
}
