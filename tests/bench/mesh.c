/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh.c - the messages among a step's daemons, counted: a fence of all
 * ranks, and the event of a rank's end, among the meshes of up to 4096 nodes in
 * this process; beyond, the arithmetic of the same tree. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mesh/mesh.h"

enum { CARD = 200 }; /* bytes that a rank has to say */

struct node {
    struct net *net;
    struct dt_mesh *mesh;
    size_t sent, received; /* messages, since the last count */
    size_t bytes;          /* received */
    unsigned hop, most;    /* of the message at work; of all received */
    bool done;
};

struct packet {
    size_t from, to;
    unsigned hop;
    struct dt_frame *frame;
};

/* First come, first served. */
struct net {
    struct dt_map *map;
    struct node *node;
    struct packet *packet;
    size_t first, n, room;
};

static void *must(void *memory)
{
    if (!memory) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return memory;
}

/* ---- the network ---- */

static void host_send(void *arg, size_t to, struct dt_frame *frame)
{
    struct node *node = arg;
    struct net *net = node->net;
    if (net->n == net->room) {
        net->room = net->room ? 2 * net->room : 1024;
        net->packet =
            must(realloc(net->packet, net->room * sizeof(*net->packet)));
    }
    net->packet[net->n++] = (struct packet){(size_t)(node - net->node), to,
                                            node->hop + 1, dt_frame_ref(frame)};
    node->sent++;
}

static void host_ended(void *arg, size_t rank, const struct dt_mesh_rank *state)
{
    (void)rank;
    (void)state;
    ((struct node *)arg)->done = true;
}

/* Until nothing is under way. */
static void deliver(struct net *net)
{
    struct dt_error err;
    for (; net->first < net->n; net->first++) {
        struct packet packet = net->packet[net->first];
        struct node *node = &net->node[packet.to];
        node->received++;
        node->bytes += packet.frame->len;
        /* what it sends next has waited for the longest way so far */
        if (packet.hop > node->hop)
            node->hop = packet.hop;
        if (node->hop > node->most)
            node->most = node->hop;
        if (dt_mesh_receive(node->mesh, packet.from, packet.frame, &err) !=
            DT_SUCCESS) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        dt_frame_unref(packet.frame);
    }
    net->first = net->n = 0;
}

static struct dt_map *make_map(size_t nodes, size_t each)
{
    struct dt_map_entry *entry = must(calloc(nodes, sizeof(*entry)));
    struct dt_map *map;
    struct dt_error err;
    for (size_t i = 0; i < nodes; i++) {
        entry[i].node = (uint32_t)i;
        snprintf(entry[i].name, sizeof(entry[i].name), "n%zu", i);
        entry[i].ranks = must(calloc(each, sizeof(uint32_t)));
        entry[i].nranks = each;
        for (size_t r = 0; r < each; r++)
            entry[i].ranks[r] = (uint32_t)(i * each + r);
    }
    if (dt_map_create(&map, entry, nodes, nodes * each, &err) != DT_SUCCESS) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return map;
}

/* ---- the counts ---- */

struct count {
    size_t max, sum;   /* messages sent and received, of a node */
    size_t root_bytes; /* received by the root */
    unsigned depth;    /* messages one after the other, to the last node */
};

static struct count count(struct net *net)
{
    struct count c = {.root_bytes = net->node[0].bytes};
    for (size_t i = 0; i < net->map->nodes; i++) {
        struct node *node = &net->node[i];
        size_t n = node->sent + node->received;
        c.sum += n;
        c.max = n > c.max ? n : c.max;
        c.depth = node->most > c.depth ? node->most : c.depth;
        if (!node->done) {
            fprintf(stderr, "node %zu has not finished\n", i);
            exit(1);
        }
        node->sent = node->received = node->bytes = 0;
        node->hop = node->most = 0;
        node->done = false;
    }
    return c;
}

static void print(size_t nodes, size_t each, size_t card,
                  const struct count *fence, const struct count *event,
                  double memory, double ms, const char *how)
{
    size_t theirs = (nodes - 1) * each * card; /* what the root lacked */
    printf("%7zu %5zu %4zu | %5zu %6.2f %5u %8.1f | %5zu %6.2f %5u | ", nodes,
           each, card, fence->max, (double)fence->sum / (double)nodes,
           fence->depth, (double)(fence->root_bytes - theirs) / (double)nodes,
           event->max, (double)event->sum / (double)nodes, event->depth);
    if (memory > 0)
        printf("%8.1f %6.0f", memory / 1024, ms);
    else
        printf("%8s %6s", "-", "-");
    printf("  %s\n", how);
    fflush(stdout);
}

/* ---- the arithmetic ---- */

/* Bytes of a part of a fence of all that are not data: the frame's head, the
 * key's length, kind, lives, name and one range, then number, status, nodes. */
enum { HEAD = 5 + 4 + 4 + 8 + 4 + 4 + 8 + 4 + 4 + 4 };

static unsigned level(size_t node)
{
    unsigned n = 0;
    for (; node > 0; node = dt_tree_parent(node))
        n++;
    return n;
}

static size_t neighbours(size_t nodes, size_t node)
{
    size_t first = dt_tree_child(node, 0);
    size_t children = first < nodes ? nodes - first : 0;
    return (children < DT_MESH_WIDTH ? children : DT_MESH_WIDTH) + (node > 0);
}

/* A fence is a message up and one down each edge of the tree; an event of the
 * last node is one message along each edge. */
static void compute(size_t nodes, size_t each, size_t card, struct count *fence,
                    struct count *event)
{
    struct count fenced = {0}, told = {0};
    for (size_t i = 0; i < nodes; i++) {
        size_t n = neighbours(nodes, i);
        fenced.max = 2 * n > fenced.max ? 2 * n : fenced.max;
        told.max = n > told.max ? n : told.max;
    }
    fenced.sum = 4 * (nodes - 1);
    told.sum = 2 * (nodes - 1);
    fenced.depth = 2 * level(nodes - 1);
    /* the farthest from the last node is under the root's other children */
    size_t far = nodes - 1;
    while (far > DT_MESH_WIDTH)
        far = dt_tree_parent(far);
    size_t other = far > 1 ? 1 : 2;
    told.depth = level(nodes - 1);
    unsigned down = 0;
    for (size_t i = other; i < nodes; i = dt_tree_child(i, 0))
        down++;
    told.depth += down;
    fenced.root_bytes = (nodes - 1) * each * card + neighbours(nodes, 0) * HEAD;
    *fence = fenced;
    *event = told;
}

static bool same(const struct count *a, const struct count *b)
{
    return a->max == b->max && a->sum == b->sum && a->depth == b->depth &&
           a->root_bytes == b->root_bytes;
}

/* ---- the meshes ---- */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void fence_done(void *arg, dt_result_t rc, const void *data, size_t len)
{
    (void)data;
    (void)len;
    ((struct node *)arg)->done = rc == DT_SUCCESS;
}

static void fence(struct net *net, size_t each, size_t card)
{
    size_t nranks = net->map->ranks;
    uint32_t *ranks = must(calloc(nranks, sizeof(*ranks)));
    char *cards = must(calloc(each, card));
    for (size_t r = 0; r < nranks; r++)
        ranks[r] = (uint32_t)r;
    struct dt_collective what = {
        .what = 1, .name = "", .ranks = ranks, .nranks = nranks};
    for (size_t i = 0; i < net->map->nodes; i++)
        dt_mesh_collect(net->node[i].mesh, &what, cards, each * card, 0,
                        fence_done, &net->node[i]);
    deliver(net);
    free(ranks);
    free(cards);
}

static void simulate(size_t nodes, size_t each, size_t card)
{
    struct net net = {.map = make_map(nodes, each)};
    struct dt_error err;
    net.node = must(calloc(nodes, sizeof(*net.node)));
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (size_t i = 0; i < nodes; i++) {
        struct dt_mesh_host host = {
            .arg = &net.node[i], .send = host_send, .ended = host_ended};
        net.node[i].net = &net;
        if (dt_mesh_create(&net.node[i].mesh, net.map, i, &host, 0, &err) !=
            DT_SUCCESS) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
    }
    deliver(&net);
    for (size_t i = 0; i < nodes; i++) {
        net.node[i].sent = net.node[i].received = net.node[i].bytes = 0;
        net.node[i].hop = net.node[i].most = 0;
    }
    free(net.packet);
    net.packet = NULL;
    net.room = 0;
    double memory =
        (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) /
        (double)nodes;
    double start = now_ms();
    fence(&net, each, card);
    double ms = now_ms() - start;
    struct count fenced = count(&net);
    struct dt_mesh_rank state = {.how = DT_END_EXIT, .code = 137};
    dt_mesh_rank_ended(net.node[nodes - 1].mesh, (nodes - 1) * each, &state);
    deliver(&net);
    struct count told = count(&net);
    struct count should_fence, should_tell;
    compute(nodes, each, card, &should_fence, &should_tell);
    should_tell.root_bytes = told.root_bytes;
    print(nodes, each, card, &fenced, &told, memory, ms,
          same(&fenced, &should_fence) && same(&told, &should_tell)
              ? "run"
              : "run, NOT as computed");
    for (size_t i = 0; i < nodes; i++)
        dt_mesh_destroy(net.node[i].mesh);
    dt_map_destroy(net.map);
    free(net.node);
    free(net.packet);
}

int main(void)
{
    static const size_t run[] = {2, 8, 64, 512, 4096};
    static const size_t more[] = {10000, 32768, 100000};
    printf("A tree of width %d. Messages: sent and received by one daemon.\n"
           "Beyond: bytes that the root receives beyond the ranks' own, per "
           "node.\nHops: messages one after the other until the last node has "
           "it.\n\n"
           "   step            | fence                       | a rank's end"
           "       | mesh    fence\n"
           "  nodes ranks card |   max   mean  hops   beyond |   max   mean  "
           "hops |   KiB     ms\n",
           DT_MESH_WIDTH);
    for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++)
        simulate(run[i], 8, CARD);
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        struct count fenced, told;
        compute(more[i], 8, CARD, &fenced, &told);
        print(more[i], 8, CARD, &fenced, &told, 0, 0, "computed");
    }
    printf("\nranks: per node; card: bytes of each rank. run: counted, and as "
           "computed. The time\nis that of all daemons on one core.\n");
    return 0;
}
