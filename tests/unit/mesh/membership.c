/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* membership.c - ranks of many nodes ask which of them go on, while ranks and
 * nodes end, are replaced and time out in a random order. The invariants of
 * membership.h are checked at each answer.
 *
 * DT_MEMBERSHIP_RUNS: how many runs in place of 3000, DT_MEMBERSHIP_SEED: only
 * this one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-net.h"
#include "membership/membership.h"
#include "mesh/table.h"
#include "../tap.h"

enum { KIND = 77, WHAT = 5, STEPS = 400 };

/* What a run may do, in parts of a thousand. */
struct weather {
    const char *name;
    unsigned kill, leave, cut, end, back, late, timeout;
    bool root; /* it is lost when it has just decided, then its children */
    bool replaces;
};

/* A process. */
struct client {
    uint32_t incarnation;
    bool runs, asks;
    bool wants;     /* to ask: at the start, and when a member has ended */
    bool gives_up;  /* its request has failed: it ends */
    bool orphan;    /* likewise, as its node is lost */
    bool resolved;  /* it has ended, and will not be replaced */
    uint64_t epoch; /* of its last answer */
    unsigned asked, answered;
};

struct sim {
    struct net net;
    struct dt_membership *membership[NET_NODES];
    struct client client[NET_RANKS];
    /* of the last answer on each node */
    struct {
        uint64_t epoch;
        size_t count;
        uint32_t member[NET_RANKS]; /* its incarnation + 1 */
        uint64_t hash;
    } last[NET_NODES];
    /* of each epoch: what living nodes have had */
    uint64_t hash[NET_NODES][STEPS];
    size_t minimum;
    bool replaces;
    unsigned decided; /* kill so many of the root and its children */
    size_t answers, timeouts, refused, decisions;
};

static struct sim *sim; /* of this run, for the upcalls */

static struct client *client_of(size_t rank)
{
    return &sim->client[rank];
}

static bool node_runs(size_t node)
{
    return sim->net.node[node].mesh && !sim->net.node[node].out;
}

static bool rank_runs(size_t rank)
{
    return sim->client[rank].runs && node_runs(sim->net.map->node_of[rank]);
}

/* ---- answers ---- */

static void check_hash(size_t node, uint64_t epoch, uint64_t hash)
{
    if (epoch >= STEPS) {
        net_wrong(&sim->net, "epoch %" PRIu64 " is too high", epoch);
        return;
    }
    for (size_t i = 0; i < sim->net.nodes; i++)
        if (node_runs(i) && sim->hash[i][epoch] && sim->hash[i][epoch] != hash)
            net_wrong(&sim->net,
                      "nodes %zu and %zu differ about epoch %" PRIu64, node, i,
                      epoch);
    sim->hash[node][epoch] = hash;
}

static size_t make_card(char card[64], size_t rank, uint32_t incarnation,
                        unsigned number)
{
    return (size_t)snprintf(card, 64, "card %u of rank %zu/%u", number, rank,
                            (unsigned)incarnation);
}

static void take_result(size_t rank, const void *data, size_t len)
{
    struct dt_cursor in = dt_cursor(data, len);
    struct client *client = client_of(rank);
    size_t node = sim->net.map->node_of[rank];
    uint64_t epoch = dt_cursor_uint(&in, 8);
    size_t count = dt_cursor_uint(&in, 4);
    bool there = false;
    if (epoch <= client->epoch)
        net_wrong(&sim->net, "rank %zu: epoch %" PRIu64 " after %" PRIu64, rank,
                  epoch, client->epoch);
    check_hash(node, epoch, dt_table_hash(data, len) | 1);
    client->epoch = epoch;
    sim->last[node].epoch = epoch;
    sim->last[node].count = count;
    memset(sim->last[node].member, 0, sizeof(sim->last[node].member));
    if (count < sim->minimum)
        net_wrong(&sim->net, "%zu members, fewer than %zu", count,
                  sim->minimum);
    for (size_t i = 0, least = 0; i < count; i++) {
        size_t member = dt_cursor_uint(&in, 4);
        uint32_t incarnation = (uint32_t)dt_cursor_uint(&in, 4);
        const void *card = NULL;
        size_t card_len = 0;
        char own[64];
        if (!dt_cursor_blob(&in, &card, &card_len) || member < least ||
            member >= sim->net.ranks) {
            net_wrong(&sim->net, "a malformed result");
            return;
        }
        least = member + 1;
        sim->last[node].member[member] = incarnation + 1;
        if (member != rank)
            continue;
        there = incarnation == client->incarnation &&
                card_len == make_card(own, rank, incarnation, client->asked) &&
                memcmp(card, own, card_len) == 0;
        /* one that has ended already makes it ask once more */
    }
    if (in.failed || in.at != in.end || !there)
        net_wrong(&sim->net, "rank %zu is no member of its own epoch", rank);
}

static void look_at_members(size_t rank)
{
    size_t node = sim->net.map->node_of[rank];
    const struct client *client = client_of(rank);
    if (!rank_runs(rank) || client->asks || client->epoch == 0 ||
        sim->last[node].epoch != client->epoch)
        return;
    for (size_t r = 0; r < sim->net.ranks; r++) {
        const struct dt_mesh_rank *state =
            dt_mesh_rank(sim->net.node[node].mesh, r);
        uint32_t member = sim->last[node].member[r];
        if (member > 0 && (state->incarnation >= member ||
                           (state->incarnation + 1 == member && state->ended)))
            client_of(rank)->wants = true;
    }
}

struct call {
    size_t rank;
    uint32_t incarnation;
};

static void done(void *arg, dt_result_t rc, const void *data, size_t len)
{
    struct call *call = arg;
    struct client *client = client_of(call->rank);
    size_t rank = call->rank;
    bool current = call->incarnation == client->incarnation && client->runs;
    free(call);
    if (!current) {
        if (rc == DT_SUCCESS)
            net_wrong(&sim->net, "a rank that has ended is answered");
        return;
    }
    client->answered++;
    if (!client->asks || client->answered != client->asked)
        net_wrong(&sim->net, "rank %zu: %u answers to %u requests", rank,
                  client->answered, client->asked);
    client->asks = false;
    if (!node_runs(sim->net.map->node_of[rank]))
        return;
    static const char lost[] = "this node was declared lost by the others";
    if (rc == DT_ERR_PROC_FAILED && len == sizeof(lost) - 1 &&
        memcmp(data, lost, len) == 0) {
        client->orphan = true;
    } else if (rc == DT_SUCCESS) {
        sim->answers++;
        take_result(rank, data, len);
        look_at_members(rank);
    } else if (rc == DT_ERR_TIMED_OUT || rc == DT_ERR_PROC_FAILED) {
        const char *text = rc == DT_ERR_TIMED_OUT ? "did not come within"
                                                  : "fewer than the minimum";
        sim->timeouts += rc == DT_ERR_TIMED_OUT;
        sim->refused += rc == DT_ERR_PROC_FAILED;
        if (!memmem(data, len, text, strlen(text)))
            net_wrong(&sim->net, "rank %zu: %d: %.*s", rank, (int)rc, (int)len,
                      (const char *)data);
        client->gives_up = true;
    } else {
        net_wrong(&sim->net, "rank %zu: %d: %.*s", rank, (int)rc, (int)len,
                  (const char *)data);
    }
}

static void ask(size_t rank, int64_t timeout)
{
    struct client *client = client_of(rank);
    struct call *call = malloc(sizeof(*call));
    char card[64];
    if (!call)
        abort();
    *call = (struct call){rank, client->incarnation};
    client->wants = false;
    client->asks = true;
    client->asked++;
    size_t len = make_card(card, rank, client->incarnation, client->asked);
    dt_membership_ask(sim->membership[sim->net.map->node_of[rank]], rank, card,
                      len, timeout, done, call);
}

/* ---- upcalls of the mesh ---- */

static size_t root_of_all(void)
{
    size_t n = 0;
    while (n + 1 < sim->net.nodes && !node_runs(n))
        n++;
    return n;
}

static void on_rank(void *arg, size_t node, size_t rank)
{
    (void)arg;
    dt_membership_rank(sim->membership[node], rank);
    for (size_t i = 0; i < sim->net.map->entry[node].nranks; i++)
        look_at_members(sim->net.map->entry[node].ranks[i]);
}

static void on_node_lost(void *arg, size_t node, size_t lost)
{
    (void)arg, (void)lost;
    dt_membership_node_lost(sim->membership[node]);
}

static void on_broadcast(void *arg, size_t node, const void *data, size_t len)
{
    (void)arg;
    const unsigned char *bytes = data;
    if (len > 1 && bytes[1] == 1 && node == root_of_all() && !sim->decided)
        sim->decided = 2;
    if (len == 0 || bytes[0] != KIND)
        net_wrong(&sim->net, "a broadcast of another kind");
    else
        dt_membership_received(sim->membership[node], bytes + 1, len - 1);
}

static void on_asked(void *arg, size_t node, size_t from, uint64_t ticket,
                     const void *data, size_t len)
{
    (void)arg;
    dt_membership_asked(sim->membership[node], from, ticket, data, len);
}

/* ---- what happens ---- */

/* Nodes that are dead: so are their processes. */
static void bury(void)
{
    for (size_t n = 0; n < sim->net.nodes; n++) {
        if (node_runs(n) || !sim->membership[n])
            continue;
        for (size_t i = 0; i < sim->net.map->entry[n].nranks; i++)
            client_of(sim->net.map->entry[n].ranks[i])->runs = false;
        if (sim->net.node[n].mesh)
            net_kill(&sim->net, n);
        dt_membership_destroy(sim->membership[n]);
        sim->membership[n] = NULL;
    }
    for (size_t r = 0; r < sim->net.ranks; r++)
        if (rank_runs(r) && client_of(r)->orphan)
            net_wrong(&sim->net, "the node of rank %zu is not lost", r);
}

static bool progress(size_t node)
{
    if (!node_runs(node))
        return false;
    bool again = dt_membership_progress(sim->membership[node], sim->net.now) <=
                 sim->net.now;
    bury();
    return again;
}

static void end_rank(size_t rank, int code)
{
    struct client *client = client_of(rank);
    client->runs = client->asks = client->wants = client->gives_up = false;
    net_end_rank(&sim->net, rank, code);
}

static void replace(size_t rank)
{
    struct client *client = client_of(rank);
    *client = (struct client){
        .incarnation = client->incarnation + 1, .runs = true, .wants = true};
    dt_mesh_rank_joined(sim->net.node[sim->net.map->node_of[rank]].mesh, rank);
}

/* The launcher has given up. */
static void resolve(size_t rank)
{
    struct client *client = client_of(rank);
    if (!client->resolved && sim->replaces)
        dt_membership_gone(sim->membership[sim->net.map->node_of[rank]], rank);
    client->resolved = true;
}

static bool is_replaceable(size_t rank)
{
    const struct client *client = client_of(rank);
    return node_runs(sim->net.map->node_of[rank]) && !client->runs &&
           !client->resolved;
}

static int64_t some_time(const struct weather *weather)
{
    if (net_random(&sim->net, 1000) >= weather->timeout)
        return 0;
    return 1000 * (1 + (int64_t)net_random(&sim->net, 20));
}

static void rank_event(const struct weather *weather)
{
    struct net *net = &sim->net;
    size_t rank = net_random(net, net->ranks);
    struct client *client = client_of(rank);
    if (is_replaceable(rank)) {
        if (net_random(net, 1000) < weather->back)
            replace(rank);
        else if (net_random(net, 10) == 0)
            resolve(rank);
    } else if (!rank_runs(rank)) {
        return;
    } else if (client->gives_up || net_random(net, 1000) < weather->end) {
        end_rank(rank, client->gives_up ? 1 : (int)net_random(net, 3) * 7);
    } else if (client->wants && net_random(net, 1000) >= weather->late) {
        ask(rank, some_time(weather));
    }
}

static size_t nodes_left(void)
{
    size_t n = 0;
    for (size_t i = 0; i < sim->net.nodes; i++)
        n += node_runs(i);
    return n;
}

static bool has_process(size_t node)
{
    bool any = false;
    for (size_t i = 0; i < sim->net.map->entry[node].nranks; i++)
        any |= client_of(sim->net.map->entry[node].ranks[i])->runs;
    return any;
}

static void leave(size_t node)
{
    const struct dt_map_entry *entry = &sim->net.map->entry[node];
    /* a server ends when its ranks have, and none is to be replaced */
    for (size_t i = 0; i < entry->nranks; i++)
        resolve(entry->ranks[i]);
    net_leave(&sim->net, node);
}

static void node_event(const struct weather *weather)
{
    struct net *net = &sim->net;
    size_t node = net_random(net, net->nodes);
    size_t other = net_random(net, net->nodes);
    if (!node_runs(node) || nodes_left() < 2)
        return;
    if (net_random(net, 1000) < weather->kill)
        net_kill(net, node);
    else if (!has_process(node) && net_random(net, 1000) < weather->leave)
        leave(node);
    else if (other != node && node_runs(other) && nodes_left() > 8 &&
             net_random(net, 1000) < weather->cut)
        net_cut(net, node, other); /* a last pair would never connect */
    bury();
}

/* The root has just decided. It is lost, or a child of it. */
static void lose_root(void)
{
    struct net *net = &sim->net;
    size_t root = root_of_all();
    size_t node = root + net_random(net, 9);
    if (sim->decided == 2)
        node = root;
    if (node >= net->nodes || !node_runs(node) || nodes_left() < 6 ||
        net_random(net, 4) == 0)
        return;
    net_kill(net, node);
    bury();
    sim->decided--;
}

static void act(const struct weather *weather)
{
    struct net *net = &sim->net;
    if (weather->root && sim->decided)
        lose_root();
    for (size_t k = net_random(net, 12); k > 0; k--) {
        net_deliver(net);
        bury();
    }
    for (size_t k = net_random(net, 8); k > 0; k--)
        rank_event(weather);
    if (net_random(net, 4) == 0)
        node_event(weather);
    if (net_random(net, 8) == 0) {
        net_time(net, (int64_t)net_random(net, 3000));
        bury();
    }
    for (size_t k = net_random(net, net->nodes + 1); k > 0; k--)
        progress(net_random(net, net->nodes)); /* the others are slow */
}

/* All that is under way arrives, and all that want to ask do. */
static void settle(void)
{
    struct net *net = &sim->net;
    bool again = true;
    for (size_t turns = 0; again; turns++) {
        again = false;
        while (net_deliver(net)) {
            bury();
            if (net->delivered > 10000000 || turns > 100000) {
                net_wrong(net, "there is no end to it");
                return;
            }
        }
        for (size_t n = 0; n < net->nodes; n++) {
            if (node_runs(n))
                dt_mesh_progress(net->node[n].mesh, net->now);
            bury();
            again |= progress(n);
        }
        for (size_t r = 0; r < net->ranks; r++) {
            if (rank_runs(r) && client_of(r)->gives_up) {
                end_rank(r, 1);
                again = true;
            } else if (rank_runs(r) && client_of(r)->wants) {
                ask(r, 0);
                again = true;
            }
        }
        again |= net->nbusy > 0;
    }
}

/* ---- in the end ---- */

static size_t count_running(void)
{
    size_t n = 0;
    for (size_t r = 0; r < sim->net.ranks; r++)
        n += rank_runs(r);
    return n;
}

static uint64_t highest_epoch(void)
{
    uint64_t epoch = 0;
    for (size_t r = 0; r < sim->net.ranks; r++)
        if (rank_runs(r) && client_of(r)->epoch > epoch)
            epoch = client_of(r)->epoch;
    return epoch;
}

/* Ranks that follow the rule, to ask when they start and when a member has
 * ended, do not wait for each other. Only a replacement may, until the others
 * ask. */
static void nobody_waits(void)
{
    uint64_t epoch = highest_epoch();
    for (size_t r = 0; r < sim->net.ranks; r++) {
        const struct client *client = client_of(r);
        bool newcomer = client->incarnation > 0 && client->epoch < epoch;
        if (rank_runs(r) && client->asks && (sim->replaces || !newcomer))
            net_wrong(&sim->net,
                      "rank %zu/%u, of epoch %" PRIu64 " of %" PRIu64
                      ", waits in vain",
                      r, (unsigned)client->incarnation, client->epoch, epoch);
    }
}

static void all_go_on(size_t runs)
{
    uint64_t epoch = highest_epoch();
    for (size_t r = 0; r < sim->net.ranks; r++) {
        const struct client *client = client_of(r);
        size_t node = sim->net.map->node_of[r];
        if (!rank_runs(r))
            continue;
        if (client->asks || client->epoch != epoch)
            net_wrong(&sim->net, "rank %zu has epoch %" PRIu64 ", not %" PRIu64,
                      r, client->epoch, epoch);
        for (size_t i = 0; i < sim->net.ranks; i++) {
            uint32_t wanted = rank_runs(i) ? client_of(i)->incarnation + 1 : 0;
            if (sim->last[node].member[i] != wanted)
                net_wrong(&sim->net, "rank %zu is %s member in the end", i,
                          wanted ? "no" : "a");
        }
        if (sim->last[node].count != runs)
            net_wrong(&sim->net, "%zu members in the end, not %zu",
                      sim->last[node].count, runs);
    }
}

static void finish(void)
{
    for (size_t r = 0; r < sim->net.ranks; r++)
        if (is_replaceable(r) && sim->replaces && net_random(&sim->net, 2))
            replace(r);
        else if (is_replaceable(r) && sim->replaces)
            resolve(r);
    settle();
    nobody_waits();
    for (size_t r = 0; r < sim->net.ranks; r++)
        if (rank_runs(r) && !client_of(r)->asks)
            client_of(r)->wants = true;
    size_t runs = count_running();
    settle();
    if (runs >= sim->minimum)
        all_go_on(runs);
    else if (count_running() > 0)
        net_wrong(&sim->net, "%zu ranks were not refused", count_running());
    net_agree(&sim->net);
    sim->decisions = highest_epoch();
}

static void open_all(size_t nodes, size_t ranks, bool replaces, uint64_t seed)
{
    struct net *net = &sim->net;
    memset(sim, 0, sizeof(*sim));
    net_open(net, nodes, ranks, seed & 1, seed);
    net->hooks = (struct net_hooks){.rank = on_rank,
                                    .node_lost = on_node_lost,
                                    .broadcast = on_broadcast,
                                    .asked = on_asked};
    sim->replaces = replaces;
    sim->minimum = 1 + net_random(net, ranks < 6 ? 2 : ranks / 3);
    const struct dt_membership_config config = {sim->minimum, sim->replaces,
                                                WHAT, KIND};
    for (size_t n = 0; n < nodes; n++)
        if (dt_membership_create(&sim->membership[n], net->node[n].mesh,
                                 net->map, n, &config, NULL) != DT_SUCCESS)
            abort();
    for (size_t r = 0; r < ranks; r++)
        sim->client[r] = (struct client){.runs = true, .wants = true};
}

static void close_all(void)
{
    for (size_t n = 0; n < sim->net.nodes; n++)
        if (sim->net.node[n].mesh)
            net_kill(&sim->net, n);
    bury();
    net_close(&sim->net);
}

static void run(const struct weather *weather, uint64_t seed)
{
    size_t nodes = 1 + seed * 7 % (seed % 16 == 0 ? NET_NODES : 12);
    if (weather->root) /* the root has grandchildren */
        nodes = 12 + seed * 7 % (NET_NODES - 12);
    open_all(nodes, nodes + seed * 5 % (3 * nodes), weather->replaces, seed);
    size_t steps = 20 + net_random(&sim->net, STEPS - 20);
    for (size_t i = 0; i < steps && !sim->net.wrong[0]; i++)
        act(weather);
    settle();
    if (!sim->net.wrong[0])
        finish();
    close_all();
}

static void season(const struct weather *weather, uint64_t first, uint64_t runs)
{
    size_t answers = 0, timeouts = 0, refused = 0, wrong = 0, decisions = 0;
    for (uint64_t seed = first; seed < first + runs && wrong < 5; seed++) {
        run(weather, seed);
        answers += sim->answers;
        timeouts += sim->timeouts;
        refused += sim->refused;
        decisions += sim->decisions;
        if (sim->net.wrong[0]) {
            wrong++;
            diag("DT_MEMBERSHIP_SEED=%" PRIu64 ", %s: %s", seed, weather->name,
                 sim->net.wrong);
        }
    }
    ok(wrong == 0, "%" PRIu64 " runs %s", runs, weather->name);
    diag("%zu epochs, %zu answers, %zu timed out, %zu were refused", decisions,
         answers, timeouts, refused);
}

/* ---- decisions of a former root that come late, which is rare ---- */

/* Three nodes with a rank each; ranks 1 and 2 have asked. The first node, the
 * root, is lost, and node 1 is the root of the other two. What they send each
 * other has not arrived. */
static void lose_first_root(void)
{
    open_all(3, 3, false, 2);
    sim->minimum = 1;
    for (size_t rank = 1; rank < 3; rank++)
        ask(rank, 0);
    for (size_t node = 1; node < 3; node++)
        progress(node);
    net_forget(&sim->net, 0);
    bury();
    for (size_t node = 1; node < 3; node++) {
        dt_mesh_node_lost(sim->net.node[node].mesh, 0, "it is gone");
        progress(node);
    }
}

/* A decision with the requests of these ranks, as of that term. */
static void inject_decision(size_t node, uint32_t term, uint64_t epoch,
                            size_t first, size_t last)
{
    struct dt_frame *members = dt_frame_begin(DT_WIRE_NEWS);
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(members, 4, last - first + 1);
    for (size_t rank = first; rank <= last; rank++) {
        char card[64];
        size_t len = make_card(card, rank, 0, 1);
        dt_frame_uint(members, 4, rank);
        dt_frame_uint(members, 4, 0); /* incarnation */
        dt_frame_uint(members, 8, 1); /* the first request of its node */
        dt_frame_blob(members, card, len);
    }
    if (dt_frame_end(&members, NULL) != DT_SUCCESS)
        abort();
    struct dt_cursor body = dt_frame_body(members);
    dt_frame_uint(frame, 1, 1); /* DECISION */
    dt_frame_uint(frame, 4, term);
    dt_frame_uint(frame, 8, epoch);
    dt_frame_uint(frame, 4, (size_t)(body.end - body.at));
    dt_frame_uint(frame, 4, 0);
    dt_frame_bytes(frame, body.at, (size_t)(body.end - body.at));
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    body = dt_frame_body(frame);
    dt_membership_received(sim->membership[node], body.at,
                           (size_t)(body.end - body.at));
    dt_frame_unref(members);
    dt_frame_unref(frame);
}

static void inject_holds(size_t node, uint32_t term, uint64_t epoch,
                         uint32_t decided_in)
{
    unsigned char body[17] = {2}; /* HOLDS */
    dt_wire_put(body + 1, 4, term);
    dt_wire_put(body + 5, 8, epoch);
    dt_wire_put(body + 13, 4, decided_in);
    dt_membership_received(sim->membership[node], body, sizeof(body));
}

static bool has_epoch(size_t rank, uint64_t epoch, size_t count)
{
    size_t node = sim->net.map->node_of[rank];
    return !client_of(rank)->asks && client_of(rank)->epoch == epoch &&
           sim->last[node].count == count;
}

static void test_late_decisions(void)
{
    lose_first_root();
    inject_decision(2, 0, 1, 1, 2);
    ok(client_of(2)->asks, "a decision of a former root does not count");
    inject_holds(2, 1, 1, 0);
    ok(has_epoch(2, 1, 2), "until the new one says that it holds");
    close_all();

    lose_first_root();
    inject_holds(2, 1, 1, 0);
    ok(client_of(2)->asks, "that a decision holds may come before it");
    inject_decision(2, 0, 1, 1, 2);
    ok(has_epoch(2, 1, 2), "and then the decision counts");
    close_all();

    lose_first_root();
    inject_decision(2, 0, 1, 1, 2);
    inject_holds(2, 1, 0, 0);
    ok(client_of(2)->asks, "where it does not hold it never counts");
    inject_decision(2, 0, 1, 1, 2);
    ok(client_of(2)->asks, "  nor when it comes later");
    inject_decision(2, 1, 1, 2, 2);
    ok(has_epoch(2, 1, 1), "but the epoch that the new root decides");
    inject_decision(2, 0, 1, 1, 2);
    inject_decision(2, 0, 2, 1, 2);
    ok(has_epoch(2, 1, 1), "  and nothing of the former one after it");
    close_all();

    lose_first_root();
    unsigned char epoch[17] = {2, 1, 0,
                               0, 0, 1}; /* term 1, epoch 1 of term 0 */
    dt_membership_asked(sim->membership[1], 2, (uint64_t)2 << 40 | 200, epoch,
                        sizeof(epoch));
    progress(1);
    progress(1);
    ok(client_of(1)->asks, "a new root waits for the epoch that another has");
    inject_decision(1, 0, 1, 1, 2);
    ok(client_of(1)->asks, "  and when that has come");
    progress(1);
    ok(has_epoch(1, 1, 2), "  that is what holds");
    close_all();
}

int main(void)
{
    static const struct weather all[] = {
        {.name = "in calm"},
        {.name = "where ranks end", .end = 8},
        {.name = "where ranks end and come late", .end = 8, .late = 900},
        {.name = "where a supervisor replaces ranks", .end = 15, .back = 300},
        {.name = "where the launcher does",
         .end = 15,
         .back = 600,
         .replaces = true},
        {.name = "where requests time out",
         .end = 5,
         .back = 600,
         .late = 900,
         .timeout = 500},
        {.name = "where nodes are lost", .end = 3, .kill = 100},
        {.name = "where the root is lost", .end = 3, .root = true},
        {.name = "where the root is lost, and ranks are replaced",
         .end = 5,
         .back = 500,
         .root = true},
        {.name = "where the launcher replaces, and nodes are lost",
         .end = 10,
         .back = 600,
         .kill = 60,
         .replaces = true},
        {.name = "where nodes leave", .end = 20, .back = 100, .leave = 500},
        {.name = "where all of it happens",
         .end = 10,
         .back = 500,
         .kill = 40,
         .leave = 400,
         .cut = 40,
         .late = 300,
         .timeout = 200},
        {.name = "where all of it happens, and the launcher replaces",
         .end = 10,
         .back = 500,
         .kill = 40,
         .leave = 400,
         .cut = 40,
         .late = 300,
         .timeout = 200,
         .replaces = true},
    };
    const size_t seasons = sizeof(all) / sizeof(*all);
    const char *runs = getenv("DT_MEMBERSHIP_RUNS");
    const char *seed = getenv("DT_MEMBERSHIP_SEED");
    uint64_t each = (runs ? strtoull(runs, NULL, 10) : 3000) / seasons + 1;
    sim = malloc(sizeof(*sim));
    if (!sim)
        return 1;
    test_late_decisions();
    for (size_t i = 0; i < seasons; i++)
        if (seed)
            season(&all[i], strtoull(seed, NULL, 10), 1);
        else
            season(&all[i], 1 + i * each, each);
    free(sim);
    return tap_done();
}
