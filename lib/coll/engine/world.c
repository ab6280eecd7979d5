/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* world.c - connecting the ranks with one allgather of their cards. */
#include "coll/engine/world.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "coll/engine/cores.h"
#include "coll/engine/tag.h"
#include "coll/engine/device.h"

#define SPINS 2000

/* In the order of their places on a card. */
enum { TL_SHM, TL_UCX, TL_TCP };
static const struct dt_tl_ops *const kinds[DT_CARD_TLS] = {
    [TL_SHM] = &dt_tl_shm,
    [TL_UCX] = &dt_tl_ucx,
    [TL_TCP] = &dt_tl_tcp,
};

_Static_assert(sizeof(struct dt_secret) == DT_CARD_SECRET,
               "a card holds a secret");

static dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "no memory for a job of this size");
}

/* Other nodes are reached by UCX if all ranks have RDMA, and else by TCP; which
 * one is known only after the exchange. */
static dt_result_t open_transports(struct dt_world *world,
                                   const struct dt_secret *secret,
                                   struct dt_error *err)
{
    const struct dt_tl_config config = {world->boot->most, secret};
    dt_result_t rc = DT_SUCCESS;
    if (world->boot->most == 1)
        return rc;
    size_t used = world->boot->nnodes == 1 ? TL_SHM + 1 : DT_CARD_TLS;
    for (size_t i = 0; rc == DT_SUCCESS && i < used; i++)
        rc = kinds[i]->open(&config, &world->tl[i], err);
    return rc;
}

/* An allgather of cards, from which on rank and size are known. Which rank of
 * an elastic job is the first is not known before. */
static dt_result_t exchange(struct dt_world *world,
                            const struct dt_secret *secret,
                            struct dt_card *cards, struct dt_error *err)
{
    struct dt_boot *boot = world->boot;
    struct dt_card mine = {.tag_layout = DT_TAG_LAYOUT};
    memcpy(mine.secret, secret->bytes, sizeof(mine.secret));
    if (boot->elastic || boot->rank == 0)
        mine.tune = (struct dt_blob){&world->tune, sizeof(world->tune)};
    memcpy(mine.node, boot->node, sizeof(mine.node));
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        if (world->tl[i])
            kinds[i]->address(world->tl[i], &mine.tl[i].data, &mine.tl[i].len);
    struct dt_blob bytes;
    dt_result_t rc = dt_card_pack(&mine, &bytes, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_blob *all = calloc(boot->most, sizeof(*all));
    if (all)
        rc = boot->ops->allgather(boot, bytes.data, bytes.len, all,
                                  world->timeout, err);
    else
        rc = no_memory(err);
    world->rank = boot->rank;
    world->size = rc == DT_SUCCESS ? boot->size : 0;
    for (size_t r = 0; rc == DT_SUCCESS && r < world->size; r++) {
        rc = dt_card_unpack(&all[r], r, &cards[r], err);
        if (rc == DT_SUCCESS && cards[r].tag_layout != DT_TAG_LAYOUT)
            rc = dt_error_set(err, DT_ERR_VERSION,
                              "rank %zu runs another version of libdt: "
                              "install the same slurm-dt on all nodes",
                              r);
    }
    if (rc == DT_SUCCESS && cards[0].tune.len != sizeof(world->tune))
        rc = dt_error_set(err, DT_ERR_VERSION,
                          "rank 0 runs another version of libdt: install the "
                          "same slurm-dt on all nodes");
    if (rc == DT_SUCCESS)
        memcpy(&world->tune, cards[0].tune.data, sizeof(world->tune));
    free(all);
    free((void *)bytes.data);
    return rc;
}

/* Ranks whose cards name the same node are on one node. */
static dt_result_t find_nodes(struct dt_world *world,
                              const struct dt_card *cards, struct dt_error *err)
{
    size_t *first = calloc(world->size, sizeof(*first));
    size_t *node_of = calloc(world->size, sizeof(*node_of)), nnodes = 0;
    if (!first || !node_of) {
        free(first);
        free(node_of);
        return no_memory(err);
    }
    for (size_t r = 0; r < world->size; r++) {
        size_t n =
            r && !strcmp(cards[r].node, cards[r - 1].node) ? node_of[r - 1] : 0;
        while (n < nnodes && strcmp(cards[r].node, cards[first[n]].node))
            n++;
        if (n == nnodes)
            first[nnodes++] = r;
        node_of[r] = n;
    }
    dt_result_t rc =
        dt_layout_init(&world->layout, world->rank, world->size, node_of, err);
    free(first);
    free(node_of);
    return rc;
}

/* UCX if all ranks offer it. A rank that does not is named once, as the others
 * have RDMA that they cannot use. */
static size_t choose_far(const struct dt_world *world,
                         const struct dt_card *cards)
{
    size_t offers = 0, without = 0;
    for (size_t r = 0; r < world->size; r++)
        if (cards[r].tl[TL_UCX].data)
            offers++;
        else
            without = r;
    if (offers == world->size)
        return TL_UCX;
    if (offers && !world->rank)
        fprintf(stderr,
                "dt: rank %zu on node %s has no RDMA network: messages between "
                "nodes go over TCP\n",
                without, cards[without].node);
    return TL_TCP;
}

/* Each transport gets the addresses of the ranks that it serves: shm those of
 * this node, the chosen one the others. One that serves no rank is closed. */
static dt_result_t connect_transports(struct dt_world *world,
                                      const struct dt_card *cards,
                                      const struct dt_secret *secrets,
                                      struct dt_error *err)
{
    struct dt_tl_peer *peers = calloc(world->size, sizeof(*peers));
    if (!peers)
        return no_memory(err);
    dt_result_t rc = DT_SUCCESS;
    world->far = choose_far(world, cards);
    for (size_t i = 0; rc == DT_SUCCESS && i < DT_CARD_TLS; i++) {
        size_t served = 0;
        for (size_t r = 0; r < world->size; r++) {
            bool same = world->layout.node_of[r] == world->layout.node;
            bool mine = r != world->rank && i == (same ? TL_SHM : world->far);
            peers[r] = (struct dt_tl_peer){0};
            if (mine && cards[r].tl[i].data)
                peers[r] = (struct dt_tl_peer){cards[r].tl[i].data,
                                               cards[r].tl[i].len, &secrets[r]};
            served += mine;
        }
        const struct dt_tl_world known = {world->rank, world->size, peers};
        if (served && !world->tl[i]) {
            rc = dt_error_set(err, DT_ERR_BOOTSTRAP,
                              "PMIx reports one node, but the ranks are on %zu",
                              world->layout.nnodes);
        } else if (served) {
            rc = kinds[i]->connect(world->tl[i], &known, err);
        } else {
            kinds[i]->close(world->tl[i]);
            world->tl[i] = NULL;
        }
    }
    free(peers);
    return rc;
}

static dt_result_t connect_ranks(struct dt_world *world,
                                 const struct dt_secret *secret,
                                 struct dt_error *err)
{
    const size_t most = world->boot->most;
    struct dt_card *cards = calloc(most, sizeof(*cards));
    struct dt_secret *secrets = calloc(most, sizeof(*secrets));
    dt_result_t rc =
        cards && secrets ? exchange(world, secret, cards, err) : no_memory(err);
    for (size_t r = 0; rc == DT_SUCCESS && r < world->size; r++)
        memcpy(secrets[r].bytes, cards[r].secret, sizeof(secrets[r].bytes));
    if (rc == DT_SUCCESS)
        rc = find_nodes(world, cards, err);
    if (rc == DT_SUCCESS)
        rc = connect_transports(world, cards, secrets, err);
    free(cards);
    free(secrets);
    return rc;
}

/* The secret of this rank lives until the others have it. */
static dt_result_t connect_world(struct dt_world *world, struct dt_error *err)
{
    struct dt_secret secret;
    dt_result_t rc = dt_secret_draw(&secret, err);
    if (rc == DT_SUCCESS)
        rc = open_transports(world, &secret, err);
    if (rc == DT_SUCCESS)
        rc = connect_ranks(world, &secret, err);
    dt_secret_forget(&secret);
    return rc;
}

/* No spinning when the ranks of this node outnumber the cores. */
static unsigned spins(const struct dt_world *world)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t ranks = dt_layout_node(&world->layout)->size;
    return cores > 0 && ranks <= (size_t)cores ? SPINS : 0;
}

static dt_result_t read_settings(struct dt_world *world, struct dt_error *err)
{
    const char *tune = getenv(DT_ENV_TUNE);
    world->tune = dt_tune_default;
    dt_result_t rc = dt_env_check_version(err);
    if (rc == DT_SUCCESS)
        rc = dt_env_long(DT_ENV_TIMEOUT, DT_ENV_TIMEOUT_DEFAULT, 1,
                         DT_ENV_TIMEOUT_MAX, &world->timeout, err);
    if (rc == DT_SUCCESS && tune && *tune)
        rc = dt_tune_read(tune, &world->tune, err);
    return rc;
}

dt_result_t dt_world_open(struct dt_boot *boot, struct dt_world **out,
                          struct dt_error *err)
{
    struct dt_world *world = calloc(1, sizeof(*world));
    if (!world)
        return no_memory(err);
    world->boot = boot;
    pthread_mutex_init(&world->lock, NULL);
    pthread_mutex_init(&world->create, NULL);
    dt_result_t rc = read_settings(world, err);
    if (rc == DT_SUCCESS)
        rc = connect_world(world, err);
    if (rc != DT_SUCCESS) {
        dt_world_close(world);
        return rc;
    }
    world->spins = spins(world);
    const struct dt_tl *far = world->tl[world->far];
    bool slow = far && far->slow;
    world->far_spins = slow ? 0 : world->spins;
    dt_cores_report_shared(world);
    *out = world;
    return DT_SUCCESS;
}

void dt_world_close(struct dt_world *world)
{
    if (!world)
        return;
    /* messages of requests in progress end with the transports */
    for (size_t i = 0; i < DT_COMMS; i++)
        if (world->comms[i])
            world->comm_ops->detach(world->comms[i]);
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        kinds[i]->close(world->tl[i]);
    if (world->device)
        world->device->ops->close(world->device);
    for (size_t i = 0; i < DT_COMMS; i++)
        if (world->comms[i])
            world->comm_ops->close(world->comms[i]);
    dt_layout_fini(&world->layout);
    pthread_mutex_destroy(&world->create);
    pthread_mutex_destroy(&world->lock);
    free(world);
}

struct dt_tl *dt_world_route(const struct dt_world *world, size_t peer)
{
    const struct dt_layout *layout = &world->layout;
    return world
        ->tl[layout->node_of[peer] == layout->node ? TL_SHM : world->far];
}

struct dt_tl *dt_world_node_tl(const struct dt_world *world)
{
    return world->tl[TL_SHM];
}

struct dt_tl *dt_world_sleeper(const struct dt_world *world)
{
    return world->tl[world->far] ? NULL : world->tl[TL_SHM];
}

void dt_world_lock(struct dt_world *world)
{
    if (!pthread_mutex_trylock(&world->lock))
        return;
    world->waiting++;
    pthread_mutex_lock(&world->lock);
    world->waiting--;
}

void dt_world_unlock(struct dt_world *world)
{
    pthread_mutex_unlock(&world->lock);
}

void dt_world_let_in(struct dt_world *world)
{
    if (!world->waiting)
        return;
    dt_world_unlock(world);
    sched_yield();
    dt_world_lock(world);
}

bool dt_world_progress(struct dt_world *world)
{
    bool moved = false;
    int scope;
    bool entered = dt_device_enter(world, &scope);
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        if (world->tl[i])
            moved |= world->tl[i]->ops->progress(world->tl[i]);
    for (size_t i = 0; i < world->ncomms; i++)
        if (world->comms[i])
            moved |= world->comm_ops->progress(world->comms[i]);
    if (entered)
        world->device->ops->exit_context(world, scope);
    return moved;
}

dt_result_t dt_world_fail(struct dt_world *world, dt_result_t why,
                          const struct dt_error *err)
{
    if (world->failure != DT_SUCCESS)
        return world->failure;
    if (err)
        world->failure_text = *err;
    world->failure = why;
    int scope;
    bool entered = dt_device_enter(world, &scope);
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        if (world->tl[i])
            world->tl[i]->ops->revoke(world->tl[i]);
    if (entered)
        world->device->ops->exit_context(world, scope);
    return why;
}

void dt_world_listen(struct dt_world *world, int patience)
{
    struct dt_error err;
    if (world->failure != DT_SUCCESS || !world->boot->ops->check)
        return;
    dt_result_t rc = world->boot->ops->check(world->boot, patience, &err);
    if (rc != DT_SUCCESS)
        dt_world_fail(world, rc, &err);
}

void dt_world_check(struct dt_world *world)
{
    struct dt_error err = {""};
    int scope;
    bool entered = dt_device_enter(world, &scope);
    for (size_t i = 0; i < DT_CARD_TLS; i++) {
        struct dt_tl *tl = world->tl[i];
        dt_result_t rc = tl ? tl->ops->check(tl, &err) : DT_SUCCESS;
        if (rc == DT_SUCCESS)
            continue;
        dt_world_listen(world, DT_BOOT_EVENT_WAIT);
        dt_world_fail(world, rc, &err);
    }
    if (entered)
        world->device->ops->exit_context(world, scope);
}
