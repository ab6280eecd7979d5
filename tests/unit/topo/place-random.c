/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place-random.c - what holds for every placement, on machines made at random
 * from a fixed seed; and for few GPUs that no other one is better. */
#include <stdlib.h>
#include <string.h>

#include "topo/model/model.h"

#include "../tap.h"

enum { MACHINES = 10000, MAX_TASKS = DT_TOPO_MAX_GPUS };

static uint64_t state = 0x9e3779b97f4a7c15;

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) % n);
}

/* ---- machines and requests ---- */

static void add_cpus(dt_topo_t *topo)
{
    size_t nnumas = 1 + below(4), ncores = 1 + below(6), smt = 1 + below(2);
    bool adjacent = below(2);
    for (size_t i = 0; i < nnumas; i++) {
        dt_topo_numa_t *numa = dt_topo_add_numa(topo, NULL);
        numa->id = (uint32_t)i;
        numa->package = (int16_t)(i * 2 / nnumas);
        for (size_t c = i * ncores; c < (i + 1) * ncores; c++)
            for (size_t s = 0; s < smt; s++) {
                size_t cpu = adjacent ? c * smt + s : c + s * nnumas * ncores;
                dt_cpuset_add(&numa->cpus, cpu);
                topo->cpu[cpu].core = (uint16_t)c;
            }
    }
}

static void add_devices(dt_topo_t *topo, uint32_t ngpus)
{
    uint32_t nnumas = topo->nnumas, nnics = below(7);
    bool knows = below(5), packages = below(2);
    for (uint32_t i = 0; i < ngpus; i++) {
        dt_topo_gpu_t *gpu = dt_topo_add_gpu(topo, NULL);
        gpu->numa = knows && nnumas && below(8) ? (int16_t)below(nnumas) : -1;
        gpu->lost = !below(12);
        if (!packages)
            gpu->package = 0;
    }
    for (uint32_t i = 0; i < nnics; i++) {
        dt_topo_nic_t *nic = dt_topo_add_nic(topo, NULL);
        nic->numa = knows && nnumas ? (int16_t)below(nnumas) : -1;
        nic->type = (dt_nic_type_t)below(DT_NIC_ETHERNET + 1);
        nic->state = (dt_link_state_t)below(DT_LINK_DOWN + 1);
    }
}

/* None, anything, or cliques whose members are anywhere. */
static void add_links(dt_topo_t *topo)
{
    uint32_t kind = below(4), clique[DT_TOPO_MAX_GPUS];
    for (uint32_t i = 0; i < topo->ngpus; i++)
        clique[i] = below(1 + topo->ngpus / 2);
    for (uint32_t a = 0; a < topo->ngpus; a++)
        for (uint32_t b = 0; b < a; b++)
            topo->links[a][b] = topo->links[b][a] =
                (uint16_t)(kind == 0   ? 0
                           : kind == 1 ? below(3)
                           : kind == 2 ? 4u * (clique[a] == clique[b])
                                       : 18);
}

/* Anything, or from where the devices are, with a few switches. */
static void add_paths(dt_topo_t *topo)
{
    uint32_t n = topo->ngpus + topo->nnics, kind = below(3);
    uint32_t under[DT_TOPO_MAX_DEVICES];
    for (uint32_t i = 0; i < n; i++)
        under[i] = below(1 + n);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < a; b++)
            if (kind == 0)
                topo->pci[a][b] = topo->pci[b][a] =
                    (uint8_t)(DT_PATH_PIX + below(DT_PATH_UNKNOWN));
            else if (kind == 1 && under[a] / 2 == under[b] / 2)
                topo->pci[a][b] = topo->pci[b][a] = DT_PATH_PIX;
}

static dt_topo_t *make(uint32_t ngpus)
{
    dt_topo_t *topo = dt_topo_create();
    if (!topo)
        abort();
    if (below(10))
        add_cpus(topo);
    add_devices(topo, ngpus);
    add_links(topo);
    add_paths(topo);
    if (dt_topo_normalize(topo, NULL) != DT_SUCCESS)
        abort();
    return topo;
}

static void shuffle(uint8_t *list, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = below(i);
        uint8_t x = list[i - 1];
        list[i - 1] = list[j];
        list[j] = x;
    }
}

static void grant_cpus(const dt_topo_t *topo, dt_place_request_t *request)
{
    uint32_t one_in = 1 + below(4), away = 1 + below(6);
    bool taken[DT_TOPO_MAX_CPUS];
    for (size_t core = 0; core < DT_TOPO_MAX_CPUS; core++)
        taken[core] = core < topo->ncpus && !below(one_in);
    for (size_t cpu = 0; cpu < topo->ncpus; cpu++)
        if (topo->cpu[cpu].numa != (int)away && taken[topo->cpu[cpu].core])
            dt_cpuset_add(&request->cpus, cpu);
    if (!topo->ncpus)
        request->cpus.word[0] = 0xff0f;
}

static void demand(const dt_topo_t *topo, dt_place_request_t *request)
{
    *request = (dt_place_request_t){.topo = topo};
    for (uint32_t i = 0; i < topo->ngpus; i++)
        request->gpu[i] = (uint8_t)i;
    shuffle(request->gpu, topo->ngpus);
    request->ngpus = below(3) ? topo->ngpus : 1 + below(topo->ngpus);
    request->ntasks = below(4) ? 1 + below(request->ngpus) : 1 + below(24);
    grant_cpus(topo, request);
    request->policy = (dt_place_policy_t)below(DT_PLACE_COUNT + 1);
    if (request->policy == DT_PLACE_COUNT && request->ntasks > request->ngpus)
        request->policy = DT_PLACE_AUTO;
    if (request->policy == DT_PLACE_COUNT)
        request->count = 1 + below(request->ngpus / request->ntasks);
    request->nics = (dt_place_nics_t)below(2);
}

/* ---- what always holds ---- */

static bool is_in(const uint8_t *list, size_t n, uint8_t x)
{
    return memchr(list, x, n) != NULL;
}

static bool is_set(const uint8_t *list, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (is_in(list, i, list[i]))
            return false;
    return true;
}

static const char *wrong_gpus(const dt_place_request_t *r,
                              const dt_place_task_t *task)
{
    size_t owners[DT_TOPO_MAX_GPUS] = {0}, n = 0;
    bool shared = r->ntasks > r->ngpus;
    bool sees_all = r->policy == DT_PLACE_AUTO || r->policy == DT_PLACE_ROTATE;
    for (size_t t = 0; t < r->ntasks; t++) {
        const dt_place_task_t *at = &task[t];
        if (!at->nown || (r->policy == DT_PLACE_COUNT && at->nown != r->count))
            return "a wrong number of GPUs";
        if (t && at->nown > task[t - 1].nown)
            return "a larger share after a smaller one";
        if (!shared && task[0].nown > at->nown + 1)
            return "uneven shares";
        for (size_t i = 0; i < at->nown; i++, n++) {
            if (!is_in(r->gpu, r->ngpus, at->own[i]) ||
                !is_in(at->visible, at->nvisible, at->own[i]))
                return "a GPU that was not granted, or hidden from its owner";
            if (owners[at->own[i]]++ && !shared)
                return "a GPU with two owners";
        }
        for (size_t i = 0; i < at->nvisible; i++)
            if (!is_in(r->gpu, r->ngpus, at->visible[i]))
                return "a visible GPU that was not granted";
        if (!is_set(at->visible, at->nvisible) ||
            at->nvisible != (sees_all ? r->ngpus : at->nown))
            return "a wrong view";
        if (r->policy == DT_PLACE_AUTO && !shared &&
            at->visible[t] != at->own[0])
            return "index i is not of local rank i";
    }
    for (size_t i = 0; i < r->ngpus; i++)
        if (!owners[r->gpu[i]] && r->policy != DT_PLACE_COUNT)
            return "a GPU without an owner";
    return NULL;
}

static const char *wrong_cpus(const dt_place_request_t *r,
                              const dt_place_task_t *task)
{
    static const dt_cpuset_t empty;
    bool any = dt_cpuset_equal(&r->cpus, &empty);
    for (size_t t = 0; t < r->ntasks; t++) {
        if (dt_cpuset_equal(&task[t].cpus, &empty))
            return "an empty mask";
        for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++) {
            if (!dt_cpuset_has(&task[t].cpus, c))
                continue;
            if (!any && !dt_cpuset_has(&r->cpus, c))
                return "a CPU that was not granted";
            if (r->topo->ncpus && !r->topo->cpu[c].present)
                return "a CPU that is not there";
        }
        for (size_t u = 0; u < t; u++)
            for (size_t c = 0; c < r->topo->ncpus; c++)
                for (size_t d = 0; d < r->topo->ncpus; d++)
                    if (r->topo->cpu[c].core == r->topo->cpu[d].core &&
                        dt_cpuset_has(&task[t].cpus, c) &&
                        dt_cpuset_has(&task[u].cpus, d) &&
                        !((task[t].notes | task[u].notes) &
                          DT_PLACE_NOTE_FEW_CPUS))
                        return "a core of two tasks, and no note";
        for (size_t n = 0; n < r->topo->nnumas; n++) {
            dt_cpuset_t both;
            dt_cpuset_and(&both, &task[t].cpus, &r->topo->numa[n].cpus);
            if ((task[t].numas[n / 64] >> n % 64 & 1) !=
                !dt_cpuset_equal(&both, &empty))
                return "memory that is not next to the CPUs";
        }
    }
    return NULL;
}

static const char *wrong_nics(const dt_place_request_t *r,
                              const dt_place_task_t *task)
{
    for (size_t t = 0; t < r->ntasks; t++) {
        const dt_place_task_t *at = &task[t];
        if (!is_set(at->nic, at->nnics))
            return "a NIC twice";
        for (size_t i = 0; i < at->nnics; i++) {
            const dt_topo_nic_t *nic = &r->topo->nic[at->nic[i]];
            if (at->nic[i] >= r->topo->nnics || nic->type == DT_NIC_ETHERNET ||
                nic->state == DT_LINK_DOWN)
                return "a NIC that is of no use";
        }
        for (size_t i = 0; i < at->nown; i++) {
            uint8_t near[DT_TOPO_MAX_NICS], nic = at->gpu_nic[i];
            size_t n = dt_topo_nearest_nics(r->topo, at->own[i], near, NULL);
            if (nic != UINT8_MAX && !is_in(at->nic, at->nnics, nic))
                return "a GPU's NIC that its task has not";
            if (r->nics == DT_PLACE_NICS_CLOSEST &&
                (n ? !is_in(near, n, nic) : nic != UINT8_MAX))
                return "a GPU's NIC that is not the nearest";
        }
    }
    return NULL;
}

/* ---- the best partition, by looking at all ---- */

struct value {
    int64_t part[4]; /* more is better, in this order */
};

struct every {
    const dt_topo_t *topo;
    const uint8_t *gpu; /* ascending */
    size_t n, ngroups;
    uint8_t size[DT_TOPO_MAX_GPUS], have[DT_TOPO_MAX_GPUS];
    uint8_t member[DT_TOPO_MAX_GPUS][DT_TOPO_MAX_GPUS];
    struct value best;
    uint8_t answer[DT_TOPO_MAX_GPUS][DT_TOPO_MAX_GPUS];
    bool any;
};

static struct value measure(const struct every *e)
{
    struct value v = {{0}};
    for (size_t g = 0; g < e->ngroups; g++) {
        const uint8_t *set = e->member[g];
        dt_place_score_t score = dt_place_score(e->topo, set, e->size[g]);
        v.part[0] += score.links;
        v.part[1] -= score.pci;
        v.part[2] -= score.numas;
        for (size_t i = 0; i < e->size[g]; i++)
            for (size_t j = 0; j < i; j++) {
                int a = e->topo->gpu[set[i]].package;
                int b = e->topo->gpu[set[j]].package;
                v.part[3] -= e->topo->pci[set[i]][set[j]] >= DT_PATH_SYS &&
                             (a != b || a < 0);
            }
    }
    return v;
}

/* Of equal ones the first in order of groups. */
static int compare(const struct every *e, const struct value *v)
{
    for (size_t i = 0; i < 4; i++)
        if (v->part[i] != e->best.part[i])
            return v->part[i] > e->best.part[i] ? 1 : -1;
    for (size_t g = 0; g < e->ngroups; g++) {
        int order = memcmp(e->member[g], e->answer[g], e->size[g]);
        if (order)
            return order < 0 ? 1 : -1;
    }
    return 0;
}

/* Every way to put GPU i and those after it into groups; of groups of one size
 * the next empty one only. */
static void try_all(struct every *e, size_t i, size_t spare)
{
    if (i == e->n) {
        struct value v = measure(e);
        if (!e->any || compare(e, &v) > 0) {
            e->best = v;
            e->any = true;
            memcpy(e->answer, e->member, sizeof(e->answer));
        }
        return;
    }
    if (spare)
        try_all(e, i + 1, spare - 1);
    for (size_t g = 0; g < e->ngroups; g++) {
        if (e->have[g] == e->size[g])
            continue;
        bool empty = !e->have[g];
        e->member[g][e->have[g]++] = e->gpu[i];
        try_all(e, i + 1, spare);
        e->have[g]--;
        while (empty && g + 1 < e->ngroups && e->size[g + 1] == e->size[g])
            g++;
    }
}

static int by_number(const void *a, const void *b)
{
    return *(const uint8_t *)a - *(const uint8_t *)b;
}

static const char *not_best(const dt_place_request_t *r,
                            const dt_place_task_t *task)
{
    static struct every e;
    uint8_t gpu[DT_TOPO_MAX_GPUS];
    size_t spare = r->ngpus;
    if (r->ntasks > r->ngpus)
        return NULL;
    memcpy(gpu, r->gpu, r->ngpus);
    qsort(gpu, r->ngpus, 1, by_number);
    e = (struct every){.topo = r->topo, .gpu = gpu, .ngroups = r->ntasks};
    for (size_t t = 0; t < r->ntasks; t++) {
        e.size[t] = (uint8_t)task[t].nown;
        spare -= task[t].nown;
    }
    e.n = r->ngpus;
    for (size_t i = e.n; i-- > 0 && spare;)
        if (r->topo->gpu[gpu[i]].lost) {
            memmove(&gpu[i], &gpu[i + 1], e.n - i - 1);
            e.n--;
            spare--;
        }
    try_all(&e, 0, spare);
    for (size_t t = 0; t < r->ntasks; t++)
        if (memcmp(e.answer[t], task[t].own, task[t].nown) != 0)
            return "not the best partition";
    return NULL;
}

static const char *changes(const dt_place_request_t *r,
                           const dt_place_task_t *task)
{
    static dt_place_task_t again[MAX_TASKS];
    dt_place_request_t other = *r;
    shuffle(other.gpu, other.ngpus);
    memset(again, 0x5a, sizeof(again));
    if (dt_place(&other, again, NULL) != DT_SUCCESS ||
        memcmp(again, task, r->ntasks * sizeof(*task)) != 0)
        return "another answer for another order of GPUs";
    return NULL;
}

typedef const char *check_t(const dt_place_request_t *,
                            const dt_place_task_t *);

/* The first thing that is wrong with a placement, or NULL. */
static const char *wrong(const dt_place_request_t *r)
{
    static check_t *const checks[] = {wrong_gpus, wrong_cpus, wrong_nics,
                                      not_best, changes};
    static dt_place_task_t task[MAX_TASKS];
    struct dt_error err = {""};
    if (dt_place(r, task, &err) != DT_SUCCESS) {
        diag("%s", err.text);
        return "refused";
    }
    size_t n = sizeof(checks) / sizeof(checks[0]);
    for (size_t i = 0; i < n; i++) {
        if (r->topo->ngpus > 10 && checks[i] == not_best)
            continue;
        const char *what = checks[i](r, task);
        if (what)
            return what;
    }
    return NULL;
}

static void test_machines(size_t nmachines, uint32_t least, uint32_t most)
{
    size_t bad = 0;
    for (size_t i = 0; i < nmachines; i++) {
        dt_topo_t *topo = make(least + below(most - least + 1));
        dt_place_request_t request;
        demand(topo, &request);
        const char *what = wrong(&request);
        if (what && bad++ < 8)
            diag("machine %zu: %u of %u GPUs, %u tasks, policy %d: %s", i,
                 request.ngpus, topo->ngpus, request.ntasks, request.policy,
                 what);
        dt_topo_destroy(topo);
    }
    ok(bad == 0, "%zu machines of %u to %u GPUs", nmachines, least, most);
}

int main(void)
{
    test_machines(MACHINES, 1, 8);
    test_machines(MACHINES / 40, 9, 10);
    test_machines(MACHINES / 40, 11, 24);
    test_machines(MACHINES / 400, 25, DT_TOPO_MAX_GPUS);
    return tap_done();
}
