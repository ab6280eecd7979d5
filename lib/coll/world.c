/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* world.c - from nothing to connected ranks, with one allgather. */
#include "coll/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "coll/comm.h"

/* In the order of their places on a card. */
enum { TL_SHM, TL_UCX };
static const struct dt_tl_ops *const kinds[DT_CARD_TLS] = {
    [TL_SHM] = &dt_tl_shm,
    [TL_UCX] = &dt_tl_ucx,
};

static dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "no memory for a job of this size");
}

static dt_result_t open_transports(struct dt_world *world, struct dt_error *err)
{
    const struct dt_tl_config config = {world->rank, world->size};
    dt_result_t rc = DT_SUCCESS;
    if (world->size > 1)
        rc = kinds[TL_SHM]->open(&config, &world->tl[TL_SHM], err);
    if (rc == DT_SUCCESS && world->size > 1 && world->boot->nnodes != 1)
        rc = kinds[TL_UCX]->open(&config, &world->tl[TL_UCX], err);
    return rc;
}

/* Give my card, get everybody's. */
static dt_result_t exchange(struct dt_world *world, struct dt_card *cards,
                            struct dt_error *err)
{
    struct dt_card mine = {.tag_layout = DT_TAG_LAYOUT};
    memcpy(mine.node, world->boot->node, sizeof(mine.node));
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        if (world->tl[i])
            kinds[i]->address(world->tl[i], &mine.tl[i].data, &mine.tl[i].len);
    struct dt_blob bytes;
    dt_result_t rc = dt_card_pack(&mine, &bytes, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_blob *all = calloc(world->size, sizeof(*all));
    if (all)
        rc = world->boot->ops->allgather(world->boot, bytes.data, bytes.len,
                                         all, world->timeout, err);
    else
        rc = no_memory(err);
    for (size_t r = 0; rc == DT_SUCCESS && r < world->size; r++) {
        rc = dt_card_unpack(&all[r], r, &cards[r], err);
        if (rc == DT_SUCCESS && cards[r].tag_layout != DT_TAG_LAYOUT)
            rc = dt_error_set(err, DT_ERR_VERSION,
                              "rank %zu runs another version of libdt: "
                              "install the same slurm-dt on all nodes",
                              r);
    }
    free(all);
    free((void *)bytes.data);
    return rc;
}

/* Number the nodes by their lowest rank. */
static dt_result_t find_nodes(struct dt_world *world,
                              const struct dt_card *cards, struct dt_error *err)
{
    size_t *first = calloc(world->size, sizeof(*first));
    world->node_of = calloc(world->size, sizeof(*world->node_of));
    if (!first || !world->node_of) {
        free(first);
        return no_memory(err);
    }
    for (size_t r = 0; r < world->size; r++) {
        size_t n = r && !strcmp(cards[r].node, cards[r - 1].node)
                       ? world->node_of[r - 1]
                       : 0;
        while (n < world->nnodes && strcmp(cards[r].node, cards[first[n]].node))
            n++;
        if (n == world->nnodes)
            first[world->nnodes++] = r;
        world->node_of[r] = n;
    }
    free(first);
    world->node = world->node_of[world->rank];
    return DT_SUCCESS;
}

static bool group_alloc(struct dt_group *group, size_t room)
{
    *group = (struct dt_group){.index = DT_NOT_A_MEMBER};
    group->ranks = calloc(room ? room : 1, sizeof(*group->ranks));
    return group->ranks;
}

static void group_add(struct dt_group *group, size_t rank, size_t self)
{
    if (rank == self)
        group->index = group->size;
    group->ranks[group->size++] = rank;
}

/* NODE of every node, then NODE_LEADERS and RAIL, which pick from them. */
static dt_result_t find_groups(struct dt_world *world, struct dt_error *err)
{
    world->nodes = calloc(world->nnodes, sizeof(*world->nodes));
    if (!world->nodes || !group_alloc(&world->leaders, world->nnodes) ||
        !group_alloc(&world->rail, world->nnodes))
        return no_memory(err);
    for (size_t r = 0; r < world->size; r++)
        world->nodes[world->node_of[r]].size++;
    world->nrails = world->size;
    for (size_t n = 0; n < world->nnodes; n++) {
        size_t size = world->nodes[n].size;
        if (!group_alloc(&world->nodes[n], size))
            return no_memory(err);
        if (size < world->nrails)
            world->nrails = size;
    }
    for (size_t r = 0; r < world->size; r++)
        group_add(&world->nodes[world->node_of[r]], r, world->rank);
    size_t local = world->nodes[world->node].index;
    for (size_t n = 0; n < world->nnodes; n++) {
        group_add(&world->leaders, world->nodes[n].ranks[0], world->rank);
        if (local < world->nrails)
            group_add(&world->rail, world->nodes[n].ranks[local], world->rank);
    }
    return DT_SUCCESS;
}

/* Each transport learns the ranks that it serves: shm those of my node, ucx
 * the others. One that serves nobody is closed again. */
static dt_result_t connect_transports(struct dt_world *world,
                                      const struct dt_card *cards,
                                      struct dt_error *err)
{
    struct dt_tl_peer *peers = calloc(world->size, sizeof(*peers));
    if (!peers)
        return no_memory(err);
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; rc == DT_SUCCESS && i < DT_CARD_TLS; i++) {
        size_t served = 0;
        for (size_t r = 0; r < world->size; r++) {
            bool same = world->node_of[r] == world->node;
            bool mine = r != world->rank && same == (i == TL_SHM);
            peers[r] = (struct dt_tl_peer){0};
            if (mine && cards[r].tl[i].data)
                peers[r] = (struct dt_tl_peer){cards[r].tl[i].data,
                                               cards[r].tl[i].len};
            served += mine;
        }
        if (served && !world->tl[i]) {
            rc = dt_error_set(err, DT_ERR_BOOTSTRAP,
                              "PMIx told of one node, but there are %zu",
                              world->nnodes);
        } else if (served) {
            rc = kinds[i]->connect(world->tl[i], peers, err);
        } else {
            kinds[i]->close(world->tl[i]);
            world->tl[i] = NULL;
        }
    }
    free(peers);
    return rc;
}

static dt_result_t meet(struct dt_world *world, struct dt_error *err)
{
    struct dt_card *cards = calloc(world->size, sizeof(*cards));
    if (!cards)
        return no_memory(err);
    dt_result_t rc = exchange(world, cards, err);
    if (rc == DT_SUCCESS)
        rc = find_nodes(world, cards, err);
    if (rc == DT_SUCCESS)
        rc = find_groups(world, err);
    if (rc == DT_SUCCESS)
        rc = connect_transports(world, cards, err);
    free(cards);
    return rc;
}

dt_result_t dt_world_open(struct dt_world **out, struct dt_error *err)
{
    struct dt_world *world = calloc(1, sizeof(*world));
    if (!world)
        return no_memory(err);
    dt_result_t rc = dt_env_check_version(err);
    if (rc == DT_SUCCESS)
        rc = dt_env_long(DT_ENV_TIMEOUT, DT_ENV_TIMEOUT_DEFAULT, 1,
                         DT_ENV_TIMEOUT_MAX, &world->timeout, err);
    if (rc == DT_SUCCESS)
        rc = dt_boot_open(&world->boot, err);
    if (rc == DT_SUCCESS) {
        world->rank = world->boot->rank;
        world->size = world->boot->size;
        rc = open_transports(world, err);
    }
    if (rc == DT_SUCCESS)
        rc = meet(world, err);
    if (rc != DT_SUCCESS) {
        dt_world_close(world);
        return rc;
    }
    *out = world;
    return DT_SUCCESS;
}

void dt_world_close(struct dt_world *world)
{
    if (!world)
        return;
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        kinds[i]->close(world->tl[i]);
    if (world->over)
        world->boot->ops->farewell(world->boot, world->timeout);
    if (world->boot)
        world->boot->ops->close(world->boot);
    for (size_t n = 0; world->nodes && n < world->nnodes; n++)
        free(world->nodes[n].ranks);
    free(world->nodes);
    free(world->leaders.ranks);
    free(world->rail.ranks);
    free(world->node_of);
    free(world);
}

struct dt_tl *dt_world_route(const struct dt_world *world, size_t peer)
{
    return world->tl[world->node_of[peer] == world->node ? TL_SHM : TL_UCX];
}

dt_result_t dt_world_fail(struct dt_world *world, dt_result_t why,
                          const struct dt_error *err)
{
    if (world->failure != DT_SUCCESS)
        return world->failure;
    world->failure = why;
    if (err)
        world->failure_text = *err;
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        if (world->tl[i])
            kinds[i]->revoke(world->tl[i]);
    return why;
}

void dt_world_listen(struct dt_world *world, int patience)
{
    struct dt_error err;
    if (world->failure != DT_SUCCESS)
        return;
    dt_result_t rc = world->boot->ops->news(world->boot, patience, &err);
    if (rc != DT_SUCCESS)
        dt_world_fail(world, rc, &err);
}
