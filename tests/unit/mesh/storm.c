/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* storm.c - many nodes that fence, ask, broadcast, die, leave and are replaced
 * in a random order: whoever survives agrees in the end. */
#include <stdlib.h>
#include <string.h>

#include "fake-net.h"
#include "../tap.h"

enum { GROUPS = 5, WAITS = 4096 };

struct storm {
    struct net net;
    uint32_t ranks[GROUPS][NET_RANKS];
    size_t nranks[GROUPS];
    struct {
        uint64_t lives;
        uint32_t round;
    } at[NET_NODES][GROUPS]; /* what the node starts next */
    struct wait fence[WAITS], ask[WAITS];
    size_t fences, asks, good;
};

/* What a run may do, in parts of a thousand. */
struct weather {
    const char *name;
    unsigned kill, leave, cut, end, back;
};

static void make_groups(struct storm *storm)
{
    struct net *net = &storm->net;
    for (size_t g = 0; g < GROUPS; g++)
        for (uint32_t r = 0; r < net->ranks; r++)
            if (g == 0 || net_random(net, GROUPS) >= g)
                storm->ranks[g][storm->nranks[g]++] = r;
}

static bool takes_part(const struct storm *storm, size_t node, size_t g)
{
    for (size_t i = 0; i < storm->nranks[g]; i++)
        if (storm->net.map->node_of[storm->ranks[g][i]] == node)
            return true;
    return false;
}

static bool has_ended(struct storm *storm, size_t node, size_t g)
{
    for (size_t i = 0; i < storm->nranks[g]; i++)
        if (dt_mesh_rank(storm->net.node[node].mesh, storm->ranks[g][i])->ended)
            return true;
    return false;
}

/* The round that node would start: from 0 in each sum of lives. */
static uint32_t next_round(struct storm *storm, size_t node, size_t g)
{
    uint64_t lives =
        net_lives(&storm->net, node, storm->ranks[g], storm->nranks[g]);
    if (storm->at[node][g].lives != lives) {
        storm->at[node][g].lives = lives;
        storm->at[node][g].round = 0;
    }
    return storm->at[node][g].round;
}

static void fence(struct storm *storm, size_t node, size_t g)
{
    if (storm->fences == WAITS || !takes_part(storm, node, g))
        return;
    uint32_t round = next_round(storm, node, g);
    bool ended = has_ended(storm, node, g);
    struct wait *wait = &storm->fence[storm->fences++];
    storm->at[node][g].round += !ended;
    net_fence(&storm->net, wait, node, (unsigned)g, storm->ranks[g],
              storm->nranks[g], round, 0);
    if (ended && (!wait->done || wait->rc != DT_ERR_PROC_FAILED))
        net_wrong(&storm->net, "a fence with an ended rank goes on");
}

static size_t living(struct storm *storm)
{
    size_t n = 0;
    for (size_t i = 0; i < storm->net.nodes; i++)
        n += storm->net.node[i].mesh != NULL;
    return n;
}

static void rank_event(struct storm *storm, size_t node,
                       const struct weather *weather)
{
    struct net *net = &storm->net;
    const struct dt_map_entry *entry = &net->map->entry[node];
    if (entry->nranks == 0)
        return;
    size_t rank = entry->ranks[net_random(net, entry->nranks)];
    if (dt_mesh_rank(net->node[node].mesh, rank)->ended) {
        if (net_random(net, 1000) < weather->back)
            dt_mesh_rank_joined(net->node[node].mesh, rank);
    } else if (net_random(net, 1000) < weather->end)
        net_end_rank(net, rank, 1 + (int)net_random(net, 200));
}

static void act(struct storm *storm, const struct weather *weather)
{
    struct net *net = &storm->net;
    size_t node = net_random(net, net->nodes);
    size_t other = net_random(net, net->nodes);
    if (!net->node[node].mesh)
        return;
    switch (net_random(net, 8)) {
    case 0:
    case 1:
    case 2:
        fence(storm, node, net_random(net, GROUPS));
        break;
    case 3:
        net_tell(net, node);
        break;
    case 4:
        if (storm->asks < WAITS)
            net_ask(net, &storm->ask[storm->asks++], node, other, 0);
        break;
    case 5:
        net_answer(net);
        break;
    case 6:
        rank_event(storm, node, weather);
        break;
    default:
        if (living(storm) < 3)
            break;
        if (net_random(net, 1000) < weather->kill)
            net_kill(net, node);
        else if (net_random(net, 1000) < weather->leave)
            net_leave(net, node);
        else if (other != node && net->node[other].mesh &&
                 living(storm) > 8 && /* a last pair would never connect */
                 net_random(net, 1000) < weather->cut)
            net_cut(net, node, other);
    }
}

/* Nodes that are behind start what the others have started. */
static void catch_up(struct storm *storm)
{
    for (size_t g = 0; g < GROUPS; g++) {
        uint32_t most = 0;
        for (size_t i = 0; i < storm->net.nodes; i++)
            if (storm->net.node[i].mesh && takes_part(storm, i, g) &&
                next_round(storm, i, g) > most)
                most = next_round(storm, i, g);
        for (size_t i = 0; i < storm->net.nodes; i++)
            while (storm->net.node[i].mesh && takes_part(storm, i, g) &&
                   !has_ended(storm, i, g) && next_round(storm, i, g) < most &&
                   storm->fences < WAITS)
                fence(storm, i, g);
    }
}

static void nothing_waits(struct storm *storm, bool all)
{
    for (size_t i = 0; i < storm->fences; i++) {
        struct wait *w = &storm->fence[i];
        bool dead = false;
        if (!w->done && storm->net.node[w->node].mesh)
            dead = has_ended(storm, w->node, w->group);
        if (!w->done && (all || dead))
            net_wrong(&storm->net, "node %zu still waits in fence %u of %u",
                      w->node, (unsigned)w->round, w->group);
    }
    for (size_t i = 0; i < storm->asks; i++)
        if (!storm->ask[i].done)
            net_wrong(&storm->net, "node %zu still waits for node %zu",
                      storm->ask[i].node, storm->ask[i].peer);
}

/* All that can be is alive again: fences of those work. */
static void afterwards(struct storm *storm)
{
    struct net *net = &storm->net;
    static struct wait wait[NET_NODES];
    static uint32_t ranks[NET_RANKS];
    size_t n = 0;
    for (uint32_t r = 0; r < net->ranks; r++) {
        struct dt_mesh *home = net->node[net->map->node_of[r]].mesh;
        if (home && dt_mesh_rank(home, r)->ended)
            dt_mesh_rank_joined(home, r);
        if (home)
            ranks[n++] = r;
    }
    net_settle(net);
    for (size_t i = 0; i < net->nodes && n > 0; i++)
        if (net->node[i].mesh && net->map->entry[i].nranks > 0)
            net_fence(net, &wait[i], i, GROUPS, ranks, n, 0, 0);
    net_settle(net);
    for (size_t i = 0; i < net->nodes && n > 0; i++)
        if (net->node[i].mesh && net->map->entry[i].nranks > 0 &&
            (!wait[i].done || wait[i].rc != DT_SUCCESS))
            net_wrong(net, "node %zu: the last fence: %d", i,
                      wait[i].done ? (int)wait[i].rc : DT_IN_PROGRESS);
}

static void run(struct storm *storm, const struct weather *weather,
                uint64_t seed)
{
    memset(storm, 0, sizeof(*storm));
    struct net *net = &storm->net;
    size_t nodes = 2 + seed * 7 % (NET_NODES - 1);
    net_open(net, nodes, nodes + seed * 5 % (3 * nodes), seed & 1, seed);
    make_groups(storm);
    for (size_t i = 0; i < 600; i++) {
        for (size_t k = net_random(net, 12); k > 0; k--)
            net_deliver(net);
        act(storm, weather);
    }
    net_settle(net);
    nothing_waits(storm, false);
    net_agree(net);
    catch_up(storm);
    net_settle(net);
    nothing_waits(storm, true);
    for (size_t i = 0; i < storm->fences; i++)
        storm->good += storm->fence[i].rc == DT_SUCCESS;
    afterwards(storm);
    net_agree(net);
    net_close(net);
}

static void season(const struct weather *weather, uint64_t runs)
{
    struct storm *storm = malloc(sizeof(*storm));
    size_t fences = 0, good = 0, packets = 0, wrong = 0;
    for (uint64_t seed = 1; storm && seed <= runs; seed++) {
        run(storm, weather, seed);
        fences += storm->fences;
        good += storm->good;
        packets += storm->net.delivered;
        if (storm->net.wrong[0]) {
            wrong++;
            diag("seed %u: %s", (unsigned)seed, storm->net.wrong);
        }
    }
    free(storm);
    ok(storm && wrong == 0, "%u runs %s", (unsigned)runs, weather->name);
    diag("%zu packets; %zu of %zu fences had a result", packets, good, fences);
}

int main(void)
{
    season(&(struct weather){.name = "in calm"}, 40);
    season(&(struct weather){.name = "where ranks end", .end = 10}, 40);
    season(
        &(struct weather){.name = "with replacements", .end = 30, .back = 900},
        120);
    season(&(struct weather){.name = "where nodes leave", .leave = 20}, 120);
    season(&(struct weather){.name = "where nodes are lost", .kill = 20}, 200);
    season(&(struct weather){.name = "where many are", .kill = 200}, 60);
    season(&(struct weather){.name = "where all of it happens",
                             .kill = 20,
                             .leave = 20,
                             .end = 20,
                             .back = 600},
           200);
    season(&(struct weather){.name = "where links break, too",
                             .kill = 10,
                             .leave = 10,
                             .cut = 40,
                             .end = 20,
                             .back = 600},
           100);
    return tap_done();
}
