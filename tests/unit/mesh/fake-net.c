/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-net.c - a network of meshes in one process. */
#include "fake-net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t net_random(struct net *net, size_t below)
{
    net->random = net->random * 6364136223846793005U + 1442695040888963407U;
    return (size_t)(net->random >> 33) % below;
}

void net_wrong(struct net *net, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!net->wrong[0])
        vsnprintf(net->wrong, sizeof(net->wrong), fmt, ap);
    va_end(ap);
}

/* ---- packets ---- */

static void push(struct net *net, size_t from, size_t to,
                 struct dt_frame *frame)
{
    struct packet *packet = malloc(sizeof(*packet));
    if (!packet)
        abort();
    *packet = (struct packet){.frame = frame ? dt_frame_ref(frame) : NULL};
    if (!net->first[from][to]) {
        net->last[from][to] = &net->first[from][to];
        net->busy[net->nbusy].from = (uint16_t)from;
        net->busy[net->nbusy++].to = (uint16_t)to;
    }
    *net->last[from][to] = packet;
    net->last[from][to] = &packet->next;
}

/* Forget all but the first keep. */
static void drop(struct net *net, size_t from, size_t to, size_t keep)
{
    struct packet **at = &net->first[from][to];
    if (!*at)
        return;
    for (; *at && keep > 0; keep--)
        at = &(*at)->next;
    for (struct packet *packet = *at, *next; packet; packet = next) {
        next = packet->next;
        dt_frame_unref(packet->frame);
        free(packet);
    }
    *at = NULL;
    net->last[from][to] = at;
    for (size_t i = 0; !net->first[from][to] && i < net->nbusy; i++)
        if (net->busy[i].from == from && net->busy[i].to == to)
            net->busy[i--] = net->busy[--net->nbusy];
}

/* The end of the link, as the one end sees it: after what is under way. */
static void hang_up(struct net *net, size_t from, size_t to)
{
    if (!net->link[to][from] || net->cut[to][from])
        return;
    net->cut[to][from] = true;
    push(net, from, to, NULL);
}

bool net_deliver(struct net *net)
{
    struct dt_error err;
    if (net->nbusy == 0)
        return false;
    size_t i = net_random(net, net->nbusy);
    size_t from = net->busy[i].from, to = net->busy[i].to;
    struct packet *packet = net->first[from][to];
    struct node *node = &net->node[to];
    net->first[from][to] = packet->next;
    if (!packet->next)
        net->busy[i] = net->busy[--net->nbusy];
    net->delivered++;
    if (!node->mesh)
        ;
    else if (packet->frame) {
        if (dt_mesh_receive(node->mesh, from, packet->frame, &err) !=
            DT_SUCCESS)
            net_wrong(net, "%s", err.text);
    } else if (net->node[from].left)
        dt_mesh_node_left(node->mesh, from);
    else
        dt_mesh_node_lost(node->mesh, from, "it is\tgone");
    dt_frame_unref(packet->frame);
    free(packet);
    if (node->mesh && net_random(net, 2))
        dt_mesh_progress(node->mesh, net->now);
    if (node->mesh && node->out)
        net_kill(net, to);
    return true;
}

void net_settle(struct net *net)
{
    size_t n = 0;
    do {
        while (net_deliver(net))
            if (++n > 1000000) {
                net_wrong(net, "there is no end to it");
                return;
            }
        for (size_t i = 0; i < net->nodes; i++)
            if (net->node[i].mesh)
                dt_mesh_progress(net->node[i].mesh, net->now);
    } while (net->nbusy > 0 || net_answer(net));
}

void net_time(struct net *net, int64_t ms)
{
    net->now += ms;
    for (size_t i = 0; i < net->nodes; i++)
        if (net->node[i].mesh)
            dt_mesh_progress(net->node[i].mesh, net->now);
}

/* ---- what a mesh reports ---- */

static void host_send(void *arg, size_t to, struct dt_frame *frame)
{
    struct node *node = arg;
    struct net *net = node->net;
    size_t from = node->number;
    if (!net->cut[from][to])
        net->link[from][to] = net->link[to][from] = true;
    if (net->node[to].mesh && !net->cut[from][to] && !net->cut[to][from])
        push(net, from, to, frame);
    else
        hang_up(net, to, from); /* no node is there */
}

static void host_ended(void *arg, size_t rank, const struct dt_mesh_rank *state)
{
    struct node *node = arg;
    if (!state->ended || state->incarnation != node->lives[rank] ||
        node->deaths[rank] != state->incarnation)
        net_wrong(node->net, "rank %zu ended in life %u, node %zu has %u of %u",
                  rank, (unsigned)state->incarnation, node->number,
                  (unsigned)node->deaths[rank], (unsigned)node->lives[rank]);
    node->deaths[rank] = state->incarnation + 1;
    node->last[rank] = *state;
    if (node->net->hooks.rank)
        node->net->hooks.rank(node->net->hooks.arg, node->number, rank);
}

static void host_joined(void *arg, size_t rank, uint32_t incarnation)
{
    struct node *node = arg;
    if (incarnation != node->lives[rank] + 1 ||
        node->deaths[rank] != incarnation)
        net_wrong(node->net, "rank %zu joined in life %u, node %zu had %u",
                  rank, (unsigned)incarnation, node->number,
                  (unsigned)node->lives[rank]);
    node->lives[rank] = incarnation;
    if (node->net->hooks.rank)
        node->net->hooks.rank(node->net->hooks.arg, node->number, rank);
}

static void host_broadcast(void *arg, size_t from, const void *data, size_t len)
{
    struct node *node = arg;
    const struct net_hooks *hooks = &node->net->hooks;
    uint32_t number = 0;
    if (hooks->broadcast) {
        hooks->broadcast(hooks->arg, node->number, data, len);
        return;
    }
    if (len == sizeof(number))
        memcpy(&number, data, len);
    if (number != node->events[from] + 1)
        net_wrong(node->net, "node %zu sent event %u, node %zu had %u", from,
                  (unsigned)number, node->number, (unsigned)node->events[from]);
    node->events[from] = number;
}

static void host_node_lost(void *arg, size_t lost, const char *why)
{
    struct node *node = arg;
    if (node->lost[lost]++ || lost == node->number)
        net_wrong(node->net, "node %zu lost twice", lost);
    if (strcmp(why, "it is gone") != 0 && strcmp(why, "it is\tgone") != 0)
        net_wrong(node->net, "lost because '%s'", why);
    if (node->net->hooks.node_lost)
        node->net->hooks.node_lost(node->net->hooks.arg, node->number, lost);
}

static void host_declared_lost(void *arg, const char *why)
{
    struct node *node = arg;
    (void)why;
    if (node->out)
        net_wrong(node->net, "node %zu declared lost twice", node->number);
    node->out = true;
}

static void host_asked(void *arg, size_t from, uint64_t number, uint32_t what,
                       const void *data, size_t len)
{
    struct node *node = arg;
    const struct net_hooks *hooks = &node->net->hooks;
    if (hooks->asked) {
        hooks->asked(hooks->arg, node->number, from, number, data, len);
        return;
    }
    struct ticket *ticket = malloc(sizeof(*ticket));
    if (!ticket)
        abort();
    if (len != 3 || memcmp(data, "why", 3) != 0)
        net_wrong(node->net, "a question arrived as another");
    *ticket = (struct ticket){.next = node->net->tickets,
                              .node = node->number,
                              .from = from,
                              .ticket = number,
                              .what = what};
    node->net->tickets = ticket;
}

/* ---- life and death ---- */

static struct dt_map *make_map(size_t nodes, size_t ranks, bool cyclic)
{
    struct dt_map_entry *entry = calloc(nodes, sizeof(*entry));
    struct dt_map *map;
    struct dt_error err;
    for (size_t i = 0; entry && i < nodes; i++) {
        entry[i].node = (uint32_t)i;
        entry[i].ranks = calloc(ranks, sizeof(uint32_t));
        snprintf(entry[i].name, sizeof(entry[i].name), "n%zu", i);
        for (size_t r = 0; entry[i].ranks && r < ranks; r++)
            if ((cyclic ? r % nodes : r * nodes / ranks) == i)
                entry[i].ranks[entry[i].nranks++] = (uint32_t)r;
    }
    if (!entry || dt_map_create(&map, entry, nodes, ranks, &err) != DT_SUCCESS)
        abort();
    return map;
}

void net_open(struct net *net, size_t nodes, size_t ranks, bool cyclic,
              uint64_t seed)
{
    struct dt_error err;
    memset(net, 0, sizeof(*net));
    net->nodes = nodes;
    net->ranks = ranks;
    net->random = seed;
    net->map = make_map(nodes, ranks, cyclic);
    for (size_t i = 0; i < nodes; i++) {
        struct node *node = &net->node[i];
        struct dt_mesh_host host = {.arg = node,
                                    .send = host_send,
                                    .ended = host_ended,
                                    .joined = host_joined,
                                    .broadcast = host_broadcast,
                                    .node_lost = host_node_lost,
                                    .declared_lost = host_declared_lost,
                                    .asked = host_asked};
        node->net = net;
        node->number = i;
        /* the parents, of lower number, are there to be joined */
        if (dt_mesh_create(&node->mesh, net->map, i, &host, 0, &err) !=
            DT_SUCCESS)
            net_wrong(net, "%s", err.text);
    }
}

static void remove_node(struct net *net, size_t number)
{
    struct node *node = &net->node[number];
    for (size_t i = 0; i < net->nodes; i++) {
        drop(net, i, number, 0);
        if (i != number)
            hang_up(net, number, i);
    }
    dt_mesh_destroy(node->mesh);
    node->mesh = NULL;
}

void net_kill(struct net *net, size_t number)
{
    for (size_t i = 0; i < net->nodes; i++)
        if (net->first[number][i] && !net->cut[i][number])
            drop(net, number, i, net_random(net, 8));
    remove_node(net, number);
}

void net_forget(struct net *net, size_t number)
{
    for (size_t i = 0; i < net->nodes; i++) {
        drop(net, i, number, 0);
        drop(net, number, i, 0);
        net->link[i][number] = net->link[number][i] = false;
    }
    remove_node(net, number);
}

void net_leave(struct net *net, size_t number)
{
    for (size_t i = 0; i < net->map->entry[number].nranks; i++)
        net_end_rank(net, net->map->entry[number].ranks[i], 0);
    net->node[number].left = true;
    remove_node(net, number);
}

void net_cut(struct net *net, size_t a, size_t b)
{
    net->cuts = true;
    net->link[a][b] = net->link[b][a] = true;
    hang_up(net, a, b);
    hang_up(net, b, a);
}

void net_close(struct net *net)
{
    for (size_t i = 0; i < net->nodes; i++) {
        dt_mesh_destroy(net->node[i].mesh);
        net->node[i].mesh = NULL;
        for (size_t k = 0; k < net->nodes; k++)
            drop(net, i, k, 0);
    }
    for (struct ticket *t = net->tickets, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    dt_map_destroy(net->map);
}

/* ---- what nodes do ---- */

void net_tell(struct net *net, size_t node)
{
    uint32_t number = net->node[node].events[node] + 1;
    struct dt_error err;
    if (dt_mesh_broadcast(net->node[node].mesh, &number, sizeof(number),
                          &err) != DT_SUCCESS)
        net_wrong(net, "%s", err.text);
}

void net_end_rank(struct net *net, size_t rank, int code)
{
    struct dt_mesh *mesh = net->node[net->map->node_of[rank]].mesh;
    struct dt_mesh_rank state = *dt_mesh_rank(mesh, rank);
    state.how = DT_END_EXIT;
    state.code = code;
    state.finalized = code == 0;
    dt_mesh_rank_ended(mesh, rank, &state);
}

static int32_t answer_to(uint32_t what)
{
    return (int32_t)what * -3;
}

bool net_answer(struct net *net)
{
    struct ticket *t = net->tickets;
    if (!t)
        return false;
    net->tickets = t->next;
    if (net->node[t->node].mesh) {
        char text[32];
        int len = snprintf(text, sizeof(text), "because %u", (unsigned)t->what);
        dt_mesh_answer(net->node[t->node].mesh, t->ticket, answer_to(t->what),
                       text, (size_t)len);
    }
    free(t);
    return true;
}

static void ask_done(void *arg, dt_result_t rc, int32_t status,
                     const void *data, size_t len)
{
    struct wait *wait = arg;
    char text[32];
    int n = snprintf(text, sizeof(text), "because %u", (unsigned)wait->round);
    wait->rc = rc;
    if (wait->done++)
        net_wrong(wait->net, "a question was answered twice");
    if (rc == DT_SUCCESS && (status != answer_to(wait->round) ||
                             len != (size_t)n || memcmp(data, text, len) != 0))
        net_wrong(wait->net, "a question got the answer to another");
}

void net_ask(struct net *net, struct wait *wait, size_t from, size_t to,
             int64_t timeout)
{
    *wait = (struct wait){.net = net,
                          .node = from,
                          .peer = to,
                          .round = (uint32_t)net_random(net, 1000)};
    dt_mesh_ask(net->node[from].mesh, to, wait->round, "why", 3, timeout,
                ask_done, wait);
}

/* ---- in the end ---- */

static void agree_on_nodes(struct net *net, const struct node *node)
{
    size_t root = 0;
    while (!net->node[root].mesh)
        root++;
    if (dt_mesh_root(node->mesh) != root)
        net_wrong(net, "node %zu has root %zu, it is %zu", node->number,
                  dt_mesh_root(node->mesh), root);
    for (size_t i = 0; i < net->nodes; i++) {
        bool lives = net->node[i].mesh != NULL;
        if (dt_mesh_node_lives(node->mesh, i) != lives)
            net_wrong(net, "node %zu has node %zu %s", node->number, i,
                      lives ? "lost" : "living");
        /* a node may be lost to some while it leaves */
        if (node->lost[i] > !lives ||
            (node->lost[i] != !net->node[i].left && !lives && !net->cuts))
            net_wrong(net, "node %zu lost node %zu %u times", node->number, i,
                      node->lost[i]);
        if (node->events[i] != net->node[lives ? i : root].events[i])
            net_wrong(net, "node %zu has %u events of node %zu, which sent %u",
                      node->number, (unsigned)node->events[i], i,
                      (unsigned)net->node[lives ? i : root].events[i]);
    }
}

static void agree_on_ranks(struct net *net, const struct node *node)
{
    for (size_t r = 0; r < net->ranks; r++) {
        const struct node *home = &net->node[net->map->node_of[r]];
        const struct dt_mesh_rank *state = dt_mesh_rank(node->mesh, r);
        const struct dt_mesh_rank *real =
            home->mesh ? dt_mesh_rank(home->mesh, r) : state;
        if (state->ended != real->ended ||
            state->incarnation != real->incarnation ||
            state->code != real->code || state->how != real->how ||
            state->finalized != real->finalized ||
            (!home->mesh && !state->ended))
            net_wrong(net, "node %zu does not know how rank %zu is",
                      node->number, r);
        if (node->lives[r] != state->incarnation ||
            node->deaths[r] != state->incarnation + state->ended)
            net_wrong(net, "node %zu was not notified how rank %zu is",
                      node->number, r);
    }
}

void net_agree(struct net *net)
{
    for (size_t i = 0; i < net->nodes; i++)
        if (net->node[i].mesh) {
            agree_on_nodes(net, &net->node[i]);
            agree_on_ranks(net, &net->node[i]);
        }
}
