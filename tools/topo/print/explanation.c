/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* explanation.c - why a placement is as it is: what each task got, and what the
 * alternatives would have cost. */
#include <stdlib.h>
#include <string.h>

#include "print.h"

enum {
    SHOWN = 3,         /* alternatives for a task */
    MOST_SETS = 20000, /* sets to look at; beyond it only single exchanges */
    TEXT = 256,
};

/* Sets of GPUs that are as good as each other: the first one, and how many. */
struct rank {
    dt_place_score_t score;
    size_t count;
    uint8_t gpu[DT_TOPO_MAX_GPUS];
};

struct search {
    const struct plan *plan;
    const dt_place_task_t *task;
    dt_place_score_t chosen;
    size_t equal, better;
    struct rank worse[SHOWN]; /* best first */
    size_t nworse;
};

/* ---- texts ---- */

static char *score_text(char text[TEXT], const dt_topo_t *topo,
                        const dt_place_score_t *score)
{
    char links[64], numas[64];
    count_text(links, score->links, link_text(topo));
    count_text(numas, score->numas, "CPU group");
    snprintf(text, TEXT, "%s, PCI distance %u, %s", links, score->pci, numas);
    return text;
}

static void add_cost(char text[TEXT], const char *fmt, unsigned n)
{
    size_t len = strlen(text);
    if (len && len < TEXT)
        len += (size_t)snprintf(text + len, TEXT - len, ", ");
    if (len < TEXT)
        snprintf(text + len, TEXT - len, fmt, n);
}

/* What other would lose, or gain, against chosen. */
static char *cost_text(char text[TEXT], const dt_topo_t *topo,
                       const dt_place_score_t *chosen,
                       const dt_place_score_t *other)
{
    char fmt[64];
    text[0] = '\0';
    if (other->links != chosen->links) {
        bool fewer = other->links < chosen->links;
        unsigned n =
            fewer ? chosen->links - other->links : other->links - chosen->links;
        snprintf(fmt, sizeof(fmt), "%%u %s%s %s", link_text(topo),
                 n == 1 ? "" : "s", fewer ? "fewer" : "more");
        add_cost(text, fmt, n);
    }
    if (other->pci > chosen->pci)
        add_cost(text, "longer PCI paths (+%u)", other->pci - chosen->pci);
    if (other->pci < chosen->pci)
        add_cost(text, "shorter PCI paths (-%u)", chosen->pci - other->pci);
    if (other->numas != chosen->numas)
        add_cost(text, other->numas == 1 ? "%u CPU group" : "%u CPU groups",
                 other->numas);
    return text;
}

/* ---- alternatives ---- */

static bool same_set(const dt_place_task_t *task, const uint8_t *gpu)
{
    for (uint32_t i = 0; i < task->nown; i++)
        if (!memchr(gpu, task->own[i], task->nown))
            return false;
    return true;
}

static void keep_worse(struct search *search, const dt_place_score_t *score,
                       const uint8_t *gpu)
{
    size_t at = 0;
    while (at < search->nworse) {
        int order = dt_place_compare(&search->worse[at].score, score);
        if (order == 0) {
            search->worse[at].count++;
            return;
        }
        if (order < 0)
            break;
        at++;
    }
    if (at == SHOWN)
        return;
    if (search->nworse < SHOWN)
        search->nworse++;
    memmove(&search->worse[at + 1], &search->worse[at],
            (search->nworse - 1 - at) * sizeof(search->worse[0]));
    search->worse[at] = (struct rank){.score = *score, .count = 1};
    memcpy(search->worse[at].gpu, gpu, search->task->nown);
}

static void consider(struct search *search, const uint8_t *gpu)
{
    if (same_set(search->task, gpu))
        return;
    dt_place_score_t score =
        dt_place_score(search->plan->request.topo, gpu, search->task->nown);
    int order = dt_place_compare(&score, &search->chosen);
    if (order > 0)
        search->better++;
    else if (order == 0)
        search->equal++;
    else
        keep_worse(search, &score, gpu);
}

/* k of n, but no more than MOST_SETS + 1 */
static size_t choose(size_t n, size_t k)
{
    size_t sets = 1;
    for (size_t i = 1; i <= k; i++) {
        sets = sets * (n - k + i) / i;
        if (sets > MOST_SETS)
            return MOST_SETS + 1;
    }
    return sets;
}

static void all_sets(struct search *search)
{
    const dt_place_request_t *request = &search->plan->request;
    size_t n = request->ngpus, k = search->task->nown, place[DT_TOPO_MAX_GPUS];
    uint8_t gpu[DT_TOPO_MAX_GPUS];
    for (size_t i = 0; i < k; i++)
        place[i] = i;
    for (;;) {
        for (size_t i = 0; i < k; i++)
            gpu[i] = request->gpu[place[i]];
        consider(search, gpu);
        size_t i = k;
        while (i > 0 && place[i - 1] == n - k + i - 1)
            i--;
        if (!i)
            return;
        place[i - 1]++;
        for (; i < k; i++)
            place[i] = place[i - 1] + 1;
    }
}

static void exchanges(struct search *search)
{
    const dt_place_request_t *request = &search->plan->request;
    const dt_place_task_t *task = search->task;
    uint8_t gpu[DT_TOPO_MAX_GPUS];
    for (uint32_t out = 0; out < task->nown; out++)
        for (uint32_t in = 0; in < request->ngpus; in++) {
            if (memchr(task->own, request->gpu[in], task->nown))
                continue;
            memcpy(gpu, task->own, task->nown);
            gpu[out] = request->gpu[in];
            consider(search, gpu);
        }
}

static void print_worse(FILE *out, const struct search *search)
{
    const dt_topo_t *topo = search->plan->request.topo;
    char list[TEXT], cost[TEXT];
    for (size_t i = 0; i < search->nworse; i++) {
        const struct rank *rank = &search->worse[i];
        fprintf(out, "    %s",
                index_list(list, sizeof(list), rank->gpu, search->task->nown));
        if (rank->count > 1)
            fprintf(out, " (and %zu like it)", rank->count - 1);
        fprintf(out, ": %s\n",
                cost_text(cost, topo, &search->chosen, &rank->score));
    }
}

static void print_gpus(FILE *out, const struct plan *plan,
                       const dt_place_task_t *task)
{
    const dt_topo_t *topo = plan->request.topo;
    struct search search = {.plan = plan, .task = task};
    char text[TEXT];
    bool free_choice = plan->request.policy != DT_PLACE_MAP &&
                       plan->request.policy != DT_PLACE_MASK;
    if (!free_choice)
        fputs("  GPUs as the list says", out);
    else if (task->nown == 1)
        fputs("  one GPU: in order, no links to weigh", out);
    else if (task->nown == plan->request.ngpus)
        fputs("  all granted GPUs: nothing to choose", out);
    search.chosen = dt_place_score(topo, task->own, task->nown);
    if (task->nown > 1)
        fprintf(out, "%s%s",
                free_choice && task->nown < plan->request.ngpus ? "  " : "; ",
                score_text(text, topo, &search.chosen));
    fputc('\n', out);
    if (task->nown < 2 || task->nown == plan->request.ngpus)
        return;
    if (choose(plan->request.ngpus, task->nown) <= MOST_SETS)
        all_sets(&search);
    else
        exchanges(&search);
    if (search.better)
        fprintf(out, "    %s would be better for this task alone%s\n",
                count_text(text, search.better, "other set"),
                free_choice ? ", at the expense of the other tasks" : "");
    if (search.equal)
        fprintf(out, "    %s %s as good\n",
                count_text(text, search.equal, "other set"),
                search.equal == 1 ? "is" : "are");
    print_worse(out, &search);
}

/* ---- CPUs and NICs ---- */

static void print_cpus(FILE *out, const struct plan *plan,
                       const dt_place_task_t *task)
{
    const dt_topo_t *topo = plan->request.topo;
    char list[TEXT], count[64], numas[TEXT];
    dt_cpuset_t near = {{0}}, shared;
    size_t sharing = 0, n = dt_cpuset_count(&task->cpus);
    if (!n) {
        fputs("  CPUs: left as they are\n", out);
        return;
    }
    for (uint32_t i = 0; i < task->nown; i++)
        dt_cpuset_or(&near, &near, &topo->gpu[task->own[i]].cpus);
    for (uint32_t i = 0; i < plan->request.ntasks; i++)
        for (uint32_t k = 0; k < plan->task[i].nown; k++) {
            dt_cpuset_and(&shared, &near,
                          &topo->gpu[plan->task[i].own[k]].cpus);
            if (dt_cpuset_count(&shared)) {
                sharing++;
                break;
            }
        }
    fprintf(out, "  CPUs %s: %s", dt_cpuset_print(&task->cpus, list, TEXT),
            count_text(count, n, "CPU"));
    if (task->notes & DT_PLACE_NOTE_FAR_CPUS)
        fputs(", of which none is near its GPUs", out);
    else if (!dt_cpuset_count(&near))
        fputs("; which are near its GPUs is not known", out);
    else
        fprintf(out, ", of the %zu near its GPUs", dt_cpuset_count(&near));
    if (*task_numas(numas, sizeof(numas), topo, task))
        fprintf(out, " (NUMA %s)", numas);
    if (sharing > 1)
        fprintf(out, ", cut between %zu tasks", sharing);
    fputc('\n', out);
}

/* "; as near: mlx5_1, mlx5_2" */
static void print_ties(FILE *out, const dt_topo_t *topo, uint32_t gpu,
                       uint8_t chosen)
{
    uint8_t near[DT_TOPO_MAX_NICS];
    size_t n = dt_topo_nearest_nics(topo, gpu, near, NULL);
    const char *before = "; as near: ";
    if (!memchr(near, chosen, n)) {
        fprintf(out, n ? "; nearer: %s" : "", topo->nic[near[0]].name);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (near[i] != chosen) {
            fprintf(out, "%s%s", before, topo->nic[near[i]].name);
            before = ", ";
        }
}

static void print_nics(FILE *out, const struct plan *plan,
                       const dt_place_task_t *task)
{
    const dt_topo_t *topo = plan->request.topo;
    for (uint32_t k = 0; k < task->nown; k++) {
        uint8_t nic = task->gpu_nic[k];
        if (nic == UINT8_MAX) {
            fprintf(out, "  GPU %u: no NIC%s\n", task->own[k],
                    plan->request.nics == DT_PLACE_NICS_NONE
                        ? ", as asked for"
                        : " that carries RDMA and is up");
            continue;
        }
        dt_path_t path = dt_topo_path(topo, task->own[k], topo->ngpus + nic);
        fprintf(out, "  GPU %u: NIC %s over %s", task->own[k],
                topo->nic[nic].name, dt_path_name(path));
        print_ties(out, topo, task->own[k], nic);
        fputc('\n', out);
    }
}

void print_explanation(FILE *out, const struct plan *plan)
{
    char list[TEXT];
    for (uint32_t i = 0; i < plan->request.ntasks; i++) {
        const dt_place_task_t *task = &plan->task[i];
        fprintf(out, "task %u: GPU%s %s\n", i, task->nown == 1 ? "" : "s",
                index_list(list, sizeof(list), task->own, task->nown));
        print_gpus(out, plan, task);
        print_nics(out, plan, task);
        print_cpus(out, plan, task);
    }
}
