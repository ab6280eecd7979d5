/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.c - who brings back what. */
#include "ckpt/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/nodes.h"
#include "ckpt/verify.h"

#define LANES     8                   /* of a team */
#define CHUNK_MAX ((size_t)256 << 10) /* stays in the core's cache */
#define CHUNK_MIN ((size_t)64 << 10)  /* less is mostly waiting */
#define PAGE      ((size_t)4096)

struct planning {
    struct dt_plan *plan;
    struct dt_ckpt *ckpt;
    const struct dt_source *source;
    bool check;
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
struct words {
    char text[160];
    bool full;
};

static void add_word(struct words *words, const char *word)
{
    size_t len = strlen(words->text), room = sizeof(words->text) - len;
    bool fits = strlen(word) + sizeof(",  ...") <= room;
    if (!words->full)
        snprintf(words->text + len, room, "%s%s",
                 !fits ? " "
                 : len ? ", "
                       : "",
                 fits ? word : "...");
    words->full = words->full || !fits;
}

static dt_result_t refuse(const struct planning *p, const struct dt_team *team,
                          struct dt_error *err)
{
    const struct dt_manifest *m = &p->source->manifest;
    struct words nodes = {.text = ""}, files = {.text = ""};
    char how[120] = "there is no redundancy", number[16];
    for (int n = 0; n < m->num_nodes; n++) {
        snprintf(number, sizeof(number), "%d", n);
        if (has_lost(p->source, n, 1))
            add_word(&nodes, number);
    }
    for (size_t f = 0; f < m->nfiles; f++)
        if (p->source->holder[f] < 0)
            add_word(&files, m->file[f].name);
    if (team)
        snprintf(how, sizeof(how),
                 "%s brings back no more than %d of the nodes %d to %d",
                 p->plan->scheme.text, team->group.m, team->group.first,
                 team->group.first + team->group.size - 1);
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "files of these nodes of the save are lost: %s; %s; "
                        "missing: %s",
                        nodes.text, how, files.text);
}

/* ---- teams ---- */

static dt_result_t find_teams(struct planning *p, struct dt_error *err)
{
    struct dt_plan *plan = p->plan;
    int n = p->source->manifest.num_nodes;
    struct dt_redundancy_group group;
    plan->team = calloc((size_t)n, sizeof(*plan->team));
    plan->fd = calloc((size_t)n, sizeof(*plan->fd));
    if (!plan->team || !plan->fd)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    for (int node = 0; node < n; node++)
        plan->fd[node] = -1;
    for (int node = 0; node < n; node = group.first + group.size) {
        dt_result_t rc =
            dt_redundancy_group(&plan->scheme, n, node, &group, err);
        if (rc != DT_SUCCESS)
            return DT_ERR_CORRUPT;
        if (!has_lost(p->source, group.first, group.size))
            continue;
        rc = dt_team_init(&plan->team[plan->teams], p->source, &plan->scheme,
                          node, err);
        if (rc != DT_SUCCESS)
            return rc;
        plan->teams++;
    }
    return DT_SUCCESS;
}

/* The parity that is here; the ranks of a node look after some each. */
static void open_parity(const struct planning *p, int32_t *have)
{
    int lanes = dt_node_ranks(p->ckpt, p->ckpt->node);
    int lane = dt_node_lane(p->ckpt);
    for (int t = 0; t < p->plan->teams; t++) {
        struct dt_parity want = p->plan->team[t].parity;
        for (int i = 0; i < want.group.size; i++) {
            want.node = want.group.first + i;
            if (p->source->fd >= 0 && want.node % lanes == lane)
                p->plan->fd[want.node] =
                    dt_parity_open(p->source->fd, &want, p->check);
            have[want.node] = p->plan->fd[want.node] >= 0 ? p->ckpt->rank : -1;
        }
    }
}

static dt_result_t find_keepers(struct planning *p, dt_result_t code,
                                const struct dt_error *why,
                                struct dt_error *err)
{
    struct dt_plan *plan = p->plan;
    size_t n = (size_t)p->source->manifest.num_nodes;
    struct dt_error mine = *why;
    int32_t *have = calloc(2 * n, sizeof(*have));
    if (!have && code == DT_SUCCESS)
        code = dt_error_set(&mine, DT_ERR_NO_MEMORY, "out of memory");
    dt_result_t rc = dt_node_agree(p->ckpt, code, 0, &mine, err);
    if (rc != DT_SUCCESS)
        goto free_have;
    open_parity(p, have);
    rc =
        dt_vote_outcome(dt_allreduce(have, have + n, n, DT_DTYPE_I32, DT_OP_MAX,
                                     dt_comm_world(), DT_STREAM_NONE),
                        err);
    for (int t = 0; t < plan->teams && rc == DT_SUCCESS; t++)
        for (int i = 0; i < plan->team[t].group.size; i++)
            plan->team[t].keeper[i] =
                have[n + (size_t)(plan->team[t].group.first + i)];
free_have:
    free(have);
    return rc;
}

/* ---- jobs ---- */

static bool can_be_done(const struct dt_plan *plan, const struct dt_job *job)
{
    struct dt_cut cut;
    for (size_t at = job->from; at < job->end; at += cut.len)
        if (!dt_team_cut(&plan->team[job->team], job->member, at, job->end,
                         SIZE_MAX, &cut))
            return false;
    return true;
}

/* The rank that most likely wants it: who wrote it, or, of as many ranks as
 * there are now, who is in that place. */
static int choose_worker(const struct planning *p, int file)
{
    const struct dt_manifest *m = &p->source->manifest;
    int64_t rank = m->file[file].rank;
    return (int)(rank * p->ckpt->size / m->world_size);
}

static dt_result_t add_jobs(struct planning *p, int t, struct dt_error *err)
{
    struct dt_plan *plan = p->plan;
    const struct dt_team *team = &plan->team[t];
    int number = 0;
    for (int i = 0; i < team->group.size; i++)
        for (size_t j = 0; j < team->span[i].count; j++) {
            const struct dt_span_part *part = &team->span[i].part[j];
            if (p->source->holder[part->file] >= 0)
                continue;
            struct dt_job job = {.team = t,
                                 .member = i,
                                 .file = part->file,
                                 .from = part->start,
                                 .end = part->start + part->size,
                                 .worker = choose_worker(p, part->file),
                                 .lane = plan->lanes + number++ % LANES,
                                 .fd = -1};
            if (!can_be_done(plan, &job))
                return refuse(p, team, err);
            plan->job[plan->jobs++] = job;
        }
    plan->lanes += number < LANES ? number : LANES;
    return DT_SUCCESS;
}

/* Small beside a file, so that the ranks of a chain work most of the time. */
static void choose_chunk(struct dt_plan *plan)
{
    size_t longest = 0, k = 1;
    for (int j = 0; j < plan->jobs; j++) {
        const struct dt_job *job = &plan->job[j];
        size_t pieces = (size_t)plan->team[job->team].group.k;
        size_t len = job->end - job->from;
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
    dt_result_t rc = dt_redundancy_parse(source->manifest.redundancy,
                                         "\"redundancy\"", &plan->scheme, err);
    if (rc != DT_SUCCESS)
        return DT_ERR_CORRUPT; /* on all ranks */
    if (plan->scheme.m == 0)
        return refuse(&p, NULL, err);
    rc = find_teams(&p, &why);
    plan->job = calloc(source->manifest.nfiles + 1, sizeof(*plan->job));
    if (rc == DT_SUCCESS && !plan->job)
        rc = dt_error_set(&why, DT_ERR_NO_MEMORY, "out of memory");
    rc = find_keepers(&p, rc, &why, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (int t = 0; t < plan->teams && rc == DT_SUCCESS; t++)
        rc = add_jobs(&p, t, err);
    choose_chunk(plan);
    return rc;
}

void dt_plan_clear(struct dt_plan *plan, const struct dt_source *source)
{
    for (int t = 0; t < plan->teams; t++)
        dt_team_clear(&plan->team[t]);
    for (int n = 0; plan->fd && n < source->manifest.num_nodes; n++)
        if (plan->fd[n] >= 0)
            close(plan->fd[n]);
    for (int i = 0; i < plan->jobs; i++) {
        dt_verify_destroy(plan->job[i].verify);
        if (plan->job[i].fd >= 0)
            close(plan->job[i].fd);
    }
    free(plan->job);
    free(plan->fd);
    free(plan->team);
    *plan = (struct dt_plan){0};
}
