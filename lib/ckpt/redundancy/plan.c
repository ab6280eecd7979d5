/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.c - which rank rebuilds which lost file. */
#include "ckpt/redundancy/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/nodes.h"

#define QUEUES    8                   /* of a redundancy set */
#define CHUNK_MAX ((size_t)256 << 10) /* stays in the core's cache */
#define CHUNK_MIN ((size_t)64 << 10)  /* less is mostly waiting */
#define PAGE      ((size_t)4096)

struct planning {
    struct dt_plan *plan;
    struct dt_ckpt *ckpt;
    const struct dt_source *source;
    bool check;
    int *place;  /* [nodes of the save] the node of this job that has what it
                  * wrote, or is to get it; -1: none */
    bool *taken; /* [nodes of this job] it is the place of one */
};

static bool has_lost(const struct dt_source *source, int first, int size)
{
    const struct dt_manifest *m = &source->manifest;
    for (size_t f = 0; f < m->nfiles; f++)
        if (source->holder[f] < 0 && m->file[f].node >= first &&
            m->file[f].node < first + size)
            return true;
    return false;
}

/* ---- refusing ---- */

/* "3, 5, 7 ..." */
struct list {
    char text[160];
    bool full;
};

static void append(struct list *list, const char *text)
{
    size_t len = strlen(list->text), room = sizeof(list->text) - len;
    bool fits = strlen(text) + sizeof(",  ...") <= room;
    if (!list->full)
        snprintf(list->text + len, room, "%s%s",
                 !fits ? " "
                 : len ? ", "
                       : "",
                 fits ? text : "...");
    list->full = list->full || !fits;
}

static dt_result_t refuse(const struct planning *p,
                          const struct dt_redundancy_set *set,
                          struct dt_error *err)
{
    const struct dt_manifest *m = &p->source->manifest;
    struct list nodes = {.text = ""}, files = {.text = ""};
    char how[120] = "there is no redundancy", number[16];
    for (int n = 0; n < m->num_nodes; n++) {
        snprintf(number, sizeof(number), "%d", n);
        if (has_lost(p->source, n, 1))
            append(&nodes, number);
    }
    for (size_t f = 0; f < m->nfiles; f++)
        if (p->source->holder[f] < 0)
            append(&files, m->file[f].name);
    if (set)
        snprintf(how, sizeof(how),
                 "%s rebuilds no more than %d of the nodes %d to %d",
                 p->plan->scheme.text, set->layout.m, set->layout.first,
                 set->layout.first + set->layout.size - 1);
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "files of these nodes of the save are lost: %s; %s; "
                        "missing: %s",
                        nodes.text, how, files.text);
}

/* ---- sets ---- */

static dt_result_t find_sets(struct planning *p, struct dt_error *err)
{
    struct dt_plan *plan = p->plan;
    int n = p->source->manifest.num_nodes;
    struct dt_erasure_layout layout;
    plan->set = calloc((size_t)n, sizeof(*plan->set));
    plan->fd = calloc((size_t)n, sizeof(*plan->fd));
    if (!plan->set || !plan->fd)
        return dt_no_memory(err);
    for (int node = 0; node < n; node++)
        plan->fd[node] = -1;
    for (int node = 0; node < n; node = layout.first + layout.size) {
        dt_result_t rc =
            dt_erasure_layout(&plan->scheme, n, node, &layout, err);
        if (rc != DT_SUCCESS)
            return DT_ERR_CORRUPT;
        if (!has_lost(p->source, layout.first, layout.size))
            continue;
        rc =
            dt_redundancy_set_init(&plan->set[plan->sets], &p->source->manifest,
                                   p->source->holder, &plan->scheme, node, err);
        if (rc != DT_SUCCESS)
            return rc;
        plan->sets++;
    }
    return DT_SUCCESS;
}

/* Open the parity files of this node; each of its ranks tries some of them. */
static void open_parity(const struct planning *p, int32_t *have)
{
    int ranks = dt_nodes_ranks(p->ckpt, p->ckpt->node);
    int rail = dt_nodes_rail(p->ckpt);
    for (int t = 0; t < p->plan->sets; t++) {
        struct dt_parity want = p->plan->set[t].parity;
        for (int i = 0; i < want.layout.size; i++) {
            want.node = want.layout.first + i;
            if (p->source->fd >= 0 && want.node % ranks == rail)
                p->plan->fd[want.node] =
                    dt_parity_open(p->source->fd, &want, p->check);
            have[want.node] = p->plan->fd[want.node] >= 0 ? p->ckpt->rank : -1;
        }
    }
}

/* Set parity_holder of all sets, after a vote on code. */
static dt_result_t find_parity(struct planning *p, dt_result_t code,
                               const struct dt_error *why, struct dt_error *err)
{
    struct dt_plan *plan = p->plan;
    size_t n = (size_t)p->source->manifest.num_nodes;
    struct dt_vote mine = {.code = code, .err = *why};
    int32_t *have = calloc(2 * n, sizeof(*have));
    if (!have && code == DT_SUCCESS)
        mine.code = dt_no_memory(&mine.err);
    dt_result_t rc = dt_vote_agree(dt_comm_world(), &mine, p->ckpt->votes,
                                   p->ckpt->size, err);
    if (rc != DT_SUCCESS)
        goto free_have;
    open_parity(p, have);
    rc =
        dt_vote_outcome(dt_allreduce(have, have + n, n, DT_DTYPE_I32, DT_OP_MAX,
                                     dt_comm_world(), DT_STREAM_NONE),
                        err);
    for (int t = 0; t < plan->sets && rc == DT_SUCCESS; t++)
        for (int i = 0; i < plan->set[t].layout.size; i++)
            plan->set[t].parity_holder[i] =
                have[n + (size_t)(plan->set[t].layout.first + i)];
free_have:
    free(have);
    return rc;
}

/* ---- places ----
 *
 * What one node of the save wrote goes to one node of this job, which has
 * nothing else of the checkpoint: with two of them a node that is lost next
 * would be two. */

static void find_places(struct planning *p)
{
    const struct dt_manifest *m = &p->source->manifest;
    const struct dt_plan *plan = p->plan;
    const int *node_of = p->ckpt->node_of;
    for (int n = 0; n < m->num_nodes; n++)
        p->place[n] = -1;
    for (size_t f = 0; f < m->nfiles; f++)
        if (p->source->holder[f] >= 0)
            p->place[m->file[f].node] = node_of[p->source->holder[f]];
    for (int t = 0; t < plan->sets; t++)
        for (int i = 0; i < plan->set[t].layout.size; i++) {
            int *place = &p->place[plan->set[t].layout.first + i];
            if (*place < 0 && plan->set[t].parity_holder[i] >= 0)
                *place = node_of[plan->set[t].parity_holder[i]];
        }
    for (int n = 0; n < m->num_nodes; n++)
        if (p->place[n] >= 0)
            p->taken[p->place[n]] = true;
}

/* Give those that are lost the nodes that have nothing, if there are any: their
 * own number first. */
static void choose_places(struct planning *p)
{
    int nodes = p->ckpt->num_nodes, num_nodes = p->source->manifest.num_nodes;
    bool *taken = p->taken;
    find_places(p);
    for (int n = 0; n < num_nodes && n < nodes; n++)
        if (p->place[n] < 0 && !taken[n]) {
            p->place[n] = n;
            taken[n] = true;
        }
    for (int n = 0, next = 0; n < num_nodes; n++) {
        while (next < nodes && taken[next])
            next++;
        if (p->place[n] < 0 && next < nodes)
            p->place[n] = next++;
    }
}

/* The rank that will most likely load the file, if that is on its place: the
 * one that wrote it, or the one at the same fraction of another number of
 * ranks. */
static int choose_worker(const struct planning *p, int file)
{
    const struct dt_manifest *m = &p->source->manifest;
    int64_t rank = m->file[file].rank;
    int worker = (int)(rank * p->ckpt->size / m->world_size);
    int place = p->place[m->file[file].node];
    if (place < 0 || p->ckpt->node_of[worker] == place)
        return worker;
    return dt_nodes_rank_at(p->ckpt, place,
                            file % dt_nodes_ranks(p->ckpt, place));
}

/* ---- items ---- */

static bool is_possible(const struct dt_plan *plan,
                        const struct dt_rebuild_item *item)
{
    struct dt_cut cut;
    for (size_t at = item->from; at < item->end; at += cut.len)
        if (!dt_redundancy_set_cut(&plan->set[item->set], item->member, at,
                                   item->end, SIZE_MAX, &cut))
            return false;
    return true;
}

static dt_result_t add_items(struct planning *p, int t, struct dt_error *err)
{
    struct dt_plan *plan = p->plan;
    const struct dt_redundancy_set *set = &plan->set[t];
    int number = 0;
    for (int i = 0; i < set->layout.size; i++)
        for (size_t j = 0; j < set->span[i].count; j++) {
            const struct dt_span_part *part = &set->span[i].part[j];
            if (p->source->holder[part->file] >= 0)
                continue;
            struct dt_rebuild_item item = {
                .set = t,
                .member = i,
                .file = part->file,
                .from = part->start,
                .end = part->start + part->size,
                .worker = choose_worker(p, part->file),
                .queue = plan->queues + number++ % QUEUES,
                .fd = -1};
            if (!is_possible(plan, &item))
                return refuse(p, set, err);
            plan->item[plan->items++] = item;
        }
    plan->queues += number < QUEUES ? number : QUEUES;
    return DT_SUCCESS;
}

/* Small beside a file, so that all ranks of a chain work most of the time. */
static void choose_chunk(struct dt_plan *plan)
{
    size_t longest = 0, k = 1;
    for (int j = 0; j < plan->items; j++) {
        const struct dt_rebuild_item *item = &plan->item[j];
        size_t pieces = (size_t)plan->set[item->set].layout.k;
        size_t len = item->end - item->from;
        longest = len > longest ? len : longest;
        k = pieces > k ? pieces : k;
    }
    size_t chunk = longest / (16 * k) / PAGE * PAGE;
    chunk = chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
    plan->chunk = chunk > CHUNK_MIN ? chunk : CHUNK_MIN;
}

dt_result_t dt_plan_make(struct dt_plan *plan, struct dt_ckpt *ckpt,
                         const struct dt_source *source, bool check,
                         struct dt_error *err)
{
    struct planning p = {
        .plan = plan, .ckpt = ckpt, .source = source, .check = check};
    struct dt_error why = {0};
    *plan = (struct dt_plan){0};
    dt_result_t rc = dt_erasure_parse(source->manifest.redundancy,
                                      "\"redundancy\"", &plan->scheme, err);
    if (rc != DT_SUCCESS)
        return DT_ERR_CORRUPT; /* on all ranks */
    if (plan->scheme.m == 0)
        return refuse(&p, NULL, err);
    rc = find_sets(&p, &why);
    plan->item = calloc(source->manifest.nfiles + 1, sizeof(*plan->item));
    if (rc == DT_SUCCESS && !plan->item)
        rc = dt_no_memory(&why);
    p.place = calloc((size_t)source->manifest.num_nodes, sizeof(*p.place));
    p.taken = calloc((size_t)ckpt->num_nodes, sizeof(*p.taken));
    if (rc == DT_SUCCESS && (!p.place || !p.taken))
        rc = dt_no_memory(&why);
    rc = find_parity(&p, rc, &why, err);
    if (rc == DT_SUCCESS)
        choose_places(&p);
    for (int t = 0; t < plan->sets && rc == DT_SUCCESS; t++)
        rc = add_items(&p, t, err);
    choose_chunk(plan);
    free(p.place);
    free(p.taken);
    return rc;
}

void dt_plan_clear(struct dt_plan *plan, const struct dt_source *source)
{
    for (int t = 0; t < plan->sets; t++)
        dt_redundancy_set_clear(&plan->set[t]);
    for (int n = 0; plan->fd && n < source->manifest.num_nodes; n++)
        if (plan->fd[n] >= 0)
            close(plan->fd[n]);
    for (int i = 0; i < plan->items; i++) {
        dt_verify_destroy(plan->item[i].verify);
        if (plan->item[i].fd >= 0)
            close(plan->item[i].fd);
    }
    free(plan->item);
    free(plan->fd);
    free(plan->set);
    *plan = (struct dt_plan){0};
}
