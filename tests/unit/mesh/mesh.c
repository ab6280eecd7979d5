/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh.c - collectives, events and requests among nodes, case by case. */
#include <stdlib.h>
#include <string.h>

#include "fake-net.h"
#include "../tap.h"

static struct net net;
static struct wait wait[NET_NODES], more[NET_NODES], ask[4];
static const uint32_t all[NET_RANKS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18,
    19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37};

/* All living nodes but one start a fence of the first n ranks. */
static void fences(struct wait *w, size_t n, uint32_t round, size_t but)
{
    for (size_t i = 0; i < net.nodes; i++)
        if (net.node[i].mesh && i != but && net.map->entry[i].nranks > 0 &&
            net.map->entry[i].ranks[0] < n)
            net_fence(&net, &w[i], i, 0, all, n, round, 0);
}

/* On how many nodes is it done with this? */
static size_t count(const struct wait *w, dt_result_t rc)
{
    size_t n = 0;
    for (size_t i = 0; i < net.nodes; i++)
        n += w[i].done == 1 && w[i].rc == rc;
    return n;
}

static void fresh_by(size_t nodes, size_t ranks, uint64_t seed)
{
    memset(wait, 0, sizeof(wait));
    memset(more, 0, sizeof(more));
    memset(ask, 0, sizeof(ask));
    net_open(&net, nodes, ranks, true, seed);
    net_settle(&net);
}

static void fresh(size_t nodes, size_t ranks)
{
    fresh_by(nodes, ranks, 1);
}

/* Nothing was wrong on the way, and all agree in the end. */
static void finish(const char *name)
{
    net_settle(&net);
    net_agree(&net);
    ok(net.wrong[0] == '\0', "%s: nothing was wrong", name);
    if (net.wrong[0])
        diag("%s", net.wrong);
    net_close(&net);
}

static void test_alone(void)
{
    struct dt_mesh *mesh = NULL;
    struct dt_mesh_host host = {0};
    struct dt_error err = {""};
    fresh(1, 2);
    ok(dt_mesh_create(&mesh, net.map, 1, &host, 0, &err) ==
               DT_ERR_INVALID_ARG &&
           !mesh,
       "no mesh for a node beyond the map: %s", err.text);
    dt_mesh_destroy(NULL);
    fences(wait, 2, 0, net.nodes);
    ok(count(wait, DT_SUCCESS) == 1, "a fence of one node is done at once");
    net_tell(&net, 0);
    ok(net.node[0].events[0] == 1, "it gets its own event");
    net_ask(&net, &ask[0], 0, 0, 0);
    ok(!ask[0].done && net_answer(&net) && ask[0].done == 1 &&
           ask[0].rc == DT_SUCCESS,
       "it answers its own request");
    net_end_rank(&net, 1, 3);
    fences(more, 2, 0, net.nodes);
    ok(count(more, DT_ERR_PROC_FAILED) == 1,
       "a fence with an ended rank fails at once");
    ok(dt_mesh_rank(net.node[0].mesh, 1)->code == 3, "its code is known");
    finish("one node");
}

static void test_wrong_ranks(void)
{
    static const uint32_t falling[] = {1, 0}, other[] = {1};
    fresh(2, 2);
    net_fence(&net, &wait[0], 0, 0, falling, 2, 0, 0);
    net_fence(&net, &wait[1], 0, 0, other, 1, 0, 0);
    ok(count(wait, DT_ERR_INVALID_ARG) == 2,
       "ranks in falling order, or of other nodes alone, are refused");
    finish("wrong ranks");
}

static void test_fence(void)
{
    fresh(30, 38);
    fences(wait, 38, 0, 13);
    net_settle(&net);
    ok(count(wait, DT_SUCCESS) == 0, "a fence waits for the last node");
    fences(more, 38, 1, 13);
    net_settle(&net);
    net_fence(&net, &wait[13], 13, 0, all, 38, 0, 0);
    net_settle(&net);
    ok(count(wait, DT_SUCCESS) == 30, "then it is done on all 30");
    ok(count(more, DT_SUCCESS) == 0, "another of the same ranks still waits");
    net_fence(&net, &more[13], 13, 0, all, 38, 1, 0);
    net_settle(&net);
    ok(count(more, DT_SUCCESS) == 30, "and is done after its own last");
    memset(wait, 0, sizeof(wait));
    fences(wait, 5, 0, net.nodes);
    net_settle(&net);
    ok(count(wait, DT_SUCCESS) == 5, "a fence of 5 ranks of 5 nodes");
    finish("fences");
}

static void test_lost(const char *name, const size_t *lost, size_t n)
{
    size_t root = 0, gone = 0;
    fresh(30, 30);
    fences(wait, 30, 0, 28);
    net_settle(&net);
    for (size_t i = 0; i < n; i++)
        net_kill(&net, lost[i]);
    for (size_t i = 0; i < n; i++)
        gone += wait[lost[i]].done == 1;
    net_settle(&net);
    while (!net.node[root].mesh)
        root++;
    ok(gone == n, "%s: its operations fail when it is destroyed", name);
    ok(count(wait, DT_ERR_PROC_FAILED) == 29, "%s: the pending fence fails",
       name);
    ok(dt_mesh_root(net.node[28].mesh) == root, "%s: the root is %zu", name,
       root);
    net_tell(&net, 28);
    net_tell(&net, root);
    static uint32_t ranks[NET_RANKS];
    size_t nranks = 0, good = 0;
    for (uint32_t r = 0; r < 30; r++)
        if (net.node[r].mesh)
            ranks[nranks++] = r;
    for (size_t i = 0; i < nranks; i++)
        net_fence(&net, &more[i], ranks[i], 1, ranks, nranks, 0, 0);
    net_settle(&net);
    for (size_t i = 0; i < nranks; i++)
        good += more[i].done == 1 && more[i].rc == DT_SUCCESS;
    ok(good == 30 - n, "%s: the others' fence works", name);
    finish(name);
}

static void test_others_go_on(void)
{
    fresh(30, 30);
    fences(wait, 8, 0, 3);
    net_kill(&net, 20);
    net_kill(&net, 9);
    net_settle(&net);
    net_fence(&net, &wait[3], 3, 0, all, 8, 0, 0);
    net_settle(&net);
    ok(count(wait, DT_SUCCESS) == 8,
       "a fence goes on when others' nodes are lost");
    finish("bystanders");
}

static void test_replaced(void)
{
    fresh(12, 24);
    fences(wait, 24, 0, 7);
    net_settle(&net);
    net_end_rank(&net, 5, 137);
    net_settle(&net);
    ok(count(wait, DT_ERR_PROC_FAILED) == 11, "a pending fence fails on all");
    fences(wait, 24, 0, net.nodes);
    ok(count(wait, DT_ERR_PROC_FAILED) == 12, "a new one fails at once");
    dt_mesh_rank_joined(net.node[5].mesh, 5);
    net_fence(&net, &more[5], 5, 0, all, 24, 0, 0);
    net_settle(&net);
    ok(dt_mesh_rank(net.node[11].mesh, 5)->incarnation == 1,
       "its replacement is known");
    fences(more, 24, 0, 5);
    net_settle(&net);
    ok(count(more, DT_SUCCESS) == 12, "with it a fence works");
    size_t good = 0;
    for (uint32_t life = 2; life < 52; life++) {
        memset(wait, 0, sizeof(wait));
        net_end_rank(&net, 5, 1);
        dt_mesh_rank_joined(net.node[5].mesh, 5);
        net_settle(&net);
        fences(wait, 24, 0, net.nodes);
        net_settle(&net);
        good += count(wait, DT_SUCCESS) == 12;
    }
    ok(good == 50, "%zu of 50 times", good);
    finish("a replaced rank");
}

static void test_left(void)
{
    size_t lost = 0;
    fresh(20, 20);
    net_tell(&net, 1);
    net_leave(&net, 1);
    net_settle(&net);
    net_leave(&net, 0);
    net_settle(&net);
    for (size_t i = 2; i < 20; i++)
        lost += net.node[i].lost[0] + net.node[i].lost[1] +
                (net.node[i].last[1].how != DT_END_EXIT) +
                (net.node[i].last[1].finalized != true) +
                (dt_mesh_root(net.node[i].mesh) != 2);
    ok(lost == 0, "nodes that leave are not lost, and their ranks ended well");
    net_ask(&net, &ask[0], 5, 1, 0);
    ok(ask[0].done && ask[0].rc == DT_ERR_PROC_FAILED,
       "a request to a node that has left fails");
    finish("leaving");
}

/* The network decides whether the event or BYE arrives first. */
static void test_known_leaves(void)
{
    size_t wrong = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        fresh_by(20, 20, seed);
        for (size_t i = 0; i < 20; i++)
            net_ask(&net, &more[i], i, 17, 0);
        net_settle(&net);
        net_leave(&net, 17);
        net_settle(&net);
        net_agree(&net);
        for (size_t i = 0; i < 20; i++)
            wrong += i != 17 && net.node[i].last[17].how != DT_END_EXIT;
        wrong += net.wrong[0] != '\0';
        net_close(&net);
    }
    ok(wrong == 0,
       "events of its ranks come before the one that the node has left");
}

static void test_together(const char *name, void (*end)(struct net *, size_t))
{
    size_t wrong = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        fresh_by(20, 20, seed);
        net_ask(&net, &ask[0], 0, 9, 0);
        net_settle(&net);
        end(&net, 1);
        end(&net, 9);
        end(&net, 17);
        net_settle(&net);
        net_agree(&net);
        wrong += net.wrong[0] != '\0';
        net_close(&net);
    }
    ok(wrong == 0, "all are notified when parent and child %s together", name);
}

/* A node that dies before it has sent anything has no link to anybody. */
static void test_never_joined(void)
{
    net_open(&net, 12, 12, true, 1);
    net_forget(&net, 10);
    net_settle(&net);
    ok(dt_mesh_node_lives(net.node[1].mesh, 10), "no node is missed at first");
    net_time(&net, DT_MESH_JOIN_MS - 1);
    net_settle(&net);
    ok(dt_mesh_node_lives(net.node[1].mesh, 10), "nor before it is late");
    net_time(&net, 1);
    finish("a node that never joined is found lost in time");
}

static void test_time(void)
{
    fresh(12, 12);
    fences(wait, 12, 0, 4);
    net_settle(&net);
    memset(&wait[4], 0, sizeof(wait[4]));
    net_fence(&net, &more[2], 2, 1, all, 12, 0, 100);
    net_fence(&net, &more[10], 10, 1, all, 12, 0, 0);
    ok(dt_mesh_progress(net.node[2].mesh, 0) == 100,
       "it returns when it is due");
    net_time(&net, 99);
    ok(!more[2].done, "not before its time");
    net_time(&net, 1);
    ok(more[2].done && more[2].rc == DT_ERR_TIMED_OUT, "in time");
    net_settle(&net);
    ok(more[10].rc == DT_ERR_TIMED_OUT, "and for those that wait for it");
    for (size_t i = 0; i < 12; i++)
        if (i != 2 && i != 10)
            net_fence(&net, &more[i], i, 1, all, 12, 0, 0);
    net_settle(&net);
    ok(count(more, DT_ERR_TIMED_OUT) == 12, "and for those that start late");
    memset(more, 0, sizeof(more));
    for (size_t i = 0; i < 12; i++)
        net_fence(&net, &more[i], i, 1, all, 12, 1, 50);
    net_settle(&net);
    ok(count(more, DT_SUCCESS) == 12, "the next one works");
    net_time(&net, DT_MESH_JOIN_MS);
    net_fence(&net, &wait[4], 4, 0, all, 12, 0, 0);
    net_settle(&net);
    ok(count(wait, DT_SUCCESS) == 12, "one without a limit waits");
    ok(dt_mesh_progress(net.node[2].mesh, net.now) == INT64_MAX,
       "then nothing is due");
    net_ask(&net, &ask[0], 3, 7, 20);
    while (net_deliver(&net))
        ;
    net_time(&net, 0);
    net_time(&net, 20);
    ok(ask[0].done == 1 && ask[0].rc == DT_ERR_TIMED_OUT,
       "a request times out, too");
    finish("time limits");
}

static void too_long(void *arg, dt_result_t rc, int32_t status,
                     const void *data, size_t len)
{
    (void)status;
    (void)data;
    (void)len;
    ((struct wait *)arg)->rc = rc;
}

static void test_ask(void)
{
    fresh(12, 12);
    net_ask(&net, &ask[0], 3, 7, 0);
    net_ask(&net, &ask[1], 11, 7, 0);
    net_ask(&net, &ask[2], 7, 7, 0);
    net_settle(&net);
    ok(ask[0].rc == DT_SUCCESS && ask[1].rc == DT_SUCCESS &&
           ask[2].rc == DT_SUCCESS && ask[0].done && ask[1].done && ask[2].done,
       "three requests, three replies");
    net_ask(&net, &ask[0], 3, 7, 0);
    net_ask(&net, &ask[1], 5, 7, 0);
    while (net_deliver(&net))
        ;
    net_kill(&net, 3);
    net_settle(&net);
    ok(ask[0].rc == DT_ERR_PROC_FAILED && ask[1].rc == DT_SUCCESS,
       "one whose sender died gets no reply");
    net_ask(&net, &ask[0], 5, 7, 0);
    while (net_deliver(&net))
        ;
    net_kill(&net, 7);
    net_settle(&net);
    ok(ask[0].done == 1 && ask[0].rc == DT_ERR_PROC_FAILED,
       "one whose receiver died fails");
    net_ask(&net, &ask[0], 5, 7, 0);
    net_ask(&net, &ask[1], 5, 12, 0);
    ok(ask[0].rc == DT_ERR_PROC_FAILED && ask[1].rc == DT_ERR_INVALID_ARG,
       "one to a lost node fails at once, one to no node, too");
    dt_mesh_ask(net.node[5].mesh, 6, 1, "why", 3, 0, too_long, &ask[2]);
    while (net_deliver(&net))
        ;
    struct ticket *t = net.tickets;
    dt_mesh_answer(net.node[6].mesh, t->ticket, 0, "", DT_WIRE_MAX);
    net_settle(&net);
    ok(ask[2].rc == DT_ERR_NO_MEMORY, "one whose reply is too long fails");
    finish("questions");
}

static void test_cut(void)
{
    fresh(12, 12);
    fences(wait, 12, 0, 9);
    net_settle(&net);
    net_cut(&net, 0, 9);
    net_cut(&net, 1, 9);
    net_settle(&net);
    ok(!net.node[9].mesh, "a node that the others declared lost is notified");
    ok(count(wait, DT_ERR_PROC_FAILED) >= 11, "its fences fail");
    finish("a broken link");
    size_t wrong = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        fresh_by(12, 12, seed);
        net_cut(&net, 0, 1);
        net_settle(&net);
        net_agree(&net);
        wrong += net.wrong[0] != '\0';
        net_close(&net);
    }
    ok(wrong == 0, "when two declare each other lost the others agree");
}

static void never(void *arg, dt_result_t rc, const void *data, size_t len)
{
    (void)data;
    (void)len;
    ((size_t *)arg)[rc == DT_ERR_NO_MEMORY]++;
}

static size_t links;

/* Each fence's end begins the next. */
static void chain(void *arg, dt_result_t rc, const void *data, size_t len)
{
    struct dt_collective what = {
        .what = 1, .name = "chain", .ranks = all, .nranks = 1};
    (void)arg;
    if (rc == DT_SUCCESS && len == 4 && ++links < 200000)
        dt_mesh_collect(net.node[0].mesh, &what, data, 4, 0, chain, NULL);
}

static void test_chain(void)
{
    fresh(1, 1);
    links = 0;
    chain(NULL, DT_SUCCESS, "part", 4);
    ok(links == 200000, "%zu fences, each begun by the one before", links);
    finish("a chain");
}

static void test_bounds(void)
{
    size_t done[2] = {0, 0};
    struct dt_error err = {""};
    static unsigned char big[DT_MESH_BROADCAST_MAX + 1];
    fresh(2, 2);
    for (unsigned i = 0; i < 65537; i++) {
        struct dt_collective what = {
            .what = i, .name = "many", .ranks = all, .nranks = 2};
        dt_mesh_collect(net.node[0].mesh, &what, "", 0, 0, never, done);
    }
    net_fence(&net, &wait[1], 1, 0, all, 2, 0, 0);
    net_settle(&net);
    ok(count(wait, DT_ERR_NO_MEMORY) == 1,
       "another node's fence for which there is no memory fails");
    ok(done[0] == 0 && done[1] == 1, "65,536 fences are pending, not one more");
    ok(dt_mesh_broadcast(net.node[0].mesh, big, sizeof(big), &err) ==
           DT_ERR_INVALID_ARG,
       "too long a broadcast: %s", err.text);
    net_end_rank(&net, 1, 0);
    net_settle(&net);
    ok(done[0] == 65536, "all fail when a rank ends");
    finish("bounds");
}

int main(void)
{
    static const size_t root[] = {0}, inner[] = {2}, leaf[] = {29};
    static const size_t many[] = {0, 1, 3, 9, 27};
    test_alone();
    test_wrong_ranks();
    test_fence();
    test_lost("the root is lost", root, 1);
    test_lost("an inner node is lost", inner, 1);
    test_lost("a leaf is lost", leaf, 1);
    test_lost("five are lost", many, 5);
    test_others_go_on();
    test_replaced();
    test_left();
    test_known_leaves();
    test_together("leave", net_leave);
    test_together("are lost", net_kill);
    test_never_joined();
    test_time();
    test_ask();
    test_cut();
    test_chain();
    test_bounds();
    return tap_done();
}
