/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cores.c - the granted CPUs divided between tasks by where their GPUs are. */
#include "topo/model/cores.h"

#include <string.h>

enum { MAX_CPUS = DT_TOPO_MAX_CPUS, NWORDS = DT_TOPO_MAX_CPUS / 64 };

struct cores {
    const dt_topo_t *topo;
    dt_cpuset_t granted;
    uint16_t core[MAX_CPUS]; /* of a CPU, by order of the lowest CPU */
    size_t nlocalities;
    dt_cpuset_t locality[DT_TOPO_MAX_GPUS];
    size_t ntasks;
    dt_place_task_t *task;
    uint64_t near[DT_PLACE_MAX_TASKS]; /* localities of a task */
    uint8_t weight[DT_PLACE_MAX_TASKS][DT_TOPO_MAX_GPUS]; /* its GPUs in each */
    uint16_t have[DT_PLACE_MAX_TASKS]; /* cores of a task, so far */
};

/* The lowest member that is at least cpu; MAX_CPUS if there is none. */
static size_t next_cpu(const dt_cpuset_t *set, size_t cpu)
{
    for (size_t w = cpu / 64; w < NWORDS; w++) {
        uint64_t bits = set->word[w];
        if (w == cpu / 64)
            bits &= ~(uint64_t)0 << cpu % 64;
        if (bits)
            return w * 64 + (size_t)__builtin_ctzll(bits);
    }
    return MAX_CPUS;
}

static bool is_empty(const dt_cpuset_t *set)
{
    return next_cpu(set, 0) == MAX_CPUS;
}

static void subtract(dt_cpuset_t *from, const dt_cpuset_t *set)
{
    for (size_t w = 0; w < NWORDS; w++)
        from->word[w] &= ~set->word[w];
}

/* ---- granted CPUs ---- */

/* Without a topology, or with that of another machine, Slurm's grant decides.
 */
static void set_granted(struct cores *c, const dt_cpuset_t *asked)
{
    bool any = is_empty(asked);
    for (size_t cpu = 0; cpu < c->topo->ncpus; cpu++)
        if (c->topo->cpu[cpu].present && (any || dt_cpuset_has(asked, cpu)))
            dt_cpuset_add(&c->granted, cpu);
    if (is_empty(&c->granted))
        c->granted = *asked;
}

/* A CPU whose core is not known counts as a core of its own. */
static void number_cores(struct cores *c)
{
    uint16_t number[MAX_CPUS], n = 0;
    memset(number, 0xff, sizeof(number));
    for (size_t cpu = 0; cpu < MAX_CPUS; cpu++) {
        size_t id = c->topo->cpu[cpu].core;
        bool known = cpu < c->topo->ncpus && id < MAX_CPUS;
        if (known && number[id] != UINT16_MAX) {
            c->core[cpu] = number[id];
            continue;
        }
        if (known)
            number[id] = n;
        c->core[cpu] = n++;
    }
}

/* ---- localities ---- */

/* The granted CPUs near a GPU, which are those of its package if no nearer ones
 * are known. False if there is none, and set is the next best: its package,
 * else all. */
static bool near_gpu(const struct cores *c, size_t gpu, dt_cpuset_t *set)
{
    const dt_topo_gpu_t *g = &c->topo->gpu[gpu];
    bool known = !is_empty(&g->cpus);
    *set = c->granted;
    if (!known && g->package < 0)
        return true;
    dt_cpuset_and(set, &c->granted, &g->cpus);
    if (!is_empty(set))
        return true;
    for (size_t cpu = 0; cpu < c->topo->ncpus; cpu++)
        if (g->package >= 0 && c->topo->cpu[cpu].package == g->package &&
            dt_cpuset_has(&c->granted, cpu))
            dt_cpuset_add(set, cpu);
    if (!is_empty(set))
        return !known;
    *set = c->granted;
    return false;
}

static size_t find_locality(struct cores *c, const dt_cpuset_t *set)
{
    size_t l = 0;
    while (l < c->nlocalities && !dt_cpuset_equal(&c->locality[l], set))
        l++;
    if (l == c->nlocalities)
        c->locality[c->nlocalities++] = *set;
    return l;
}

static void locate_tasks(struct cores *c)
{
    uint8_t locality[DT_TOPO_MAX_GPUS];
    bool near[DT_TOPO_MAX_GPUS], seen[DT_TOPO_MAX_GPUS] = {false};
    for (size_t t = 0; t < c->ntasks; t++) {
        bool any = false;
        for (size_t i = 0; i < c->task[t].nown; i++) {
            size_t gpu = c->task[t].own[i];
            if (!seen[gpu]) {
                dt_cpuset_t set;
                near[gpu] = near_gpu(c, gpu, &set);
                locality[gpu] = (uint8_t)find_locality(c, &set);
                seen[gpu] = true;
            }
            c->near[t] |= (uint64_t)1 << locality[gpu];
            c->weight[t][locality[gpu]]++;
            any = any || near[gpu];
        }
        if (!any)
            c->task[t].notes |= DT_PLACE_NOTE_FAR_CPUS;
    }
}

/* ---- dividing a locality ---- */

/* Part of the granted CPUs, and the tasks that may use it. */
struct atom {
    dt_cpuset_t cpus;
    size_t ncores;
    uint16_t rank[MAX_CPUS]; /* of a core among those of cpus */
    size_t nsharers;
    uint16_t sharer[DT_PLACE_MAX_TASKS];
};

/* Fill the rest of a part whose cpus are set. */
static void fill_atom(const struct cores *c, uint64_t localities,
                      struct atom *atom)
{
    bool has[MAX_CPUS] = {false};
    size_t last = 0;
    for (size_t cpu = next_cpu(&atom->cpus, 0); cpu < MAX_CPUS;
         cpu = next_cpu(&atom->cpus, cpu + 1)) {
        size_t core = c->core[cpu];
        has[core] = true;
        last = core > last ? core : last;
    }
    atom->ncores = 0;
    for (size_t core = 0; core <= last; core++)
        if (has[core])
            atom->rank[core] = (uint16_t)atom->ncores++;
    atom->nsharers = 0;
    for (size_t t = 0; t < c->ntasks; t++)
        if (c->near[t] & localities)
            atom->sharer[atom->nsharers++] = (uint16_t)t;
}

/* The j-th sharer gets the cores of rank from[j] to from[j + 1] - 1. */
static void hand_out(struct cores *c, const struct atom *atom,
                     const uint16_t *from)
{
    uint16_t owner[MAX_CPUS];
    for (size_t j = 0; j < atom->nsharers; j++) {
        for (size_t r = from[j]; r < from[j + 1]; r++)
            owner[r] = atom->sharer[j];
        c->have[atom->sharer[j]] += (uint16_t)(from[j + 1] - from[j]);
    }
    for (size_t cpu = next_cpu(&atom->cpus, 0); cpu < MAX_CPUS;
         cpu = next_cpu(&atom->cpus, cpu + 1)) {
        size_t rank = atom->rank[c->core[cpu]];
        dt_cpuset_add(&c->task[owner[rank]].cpus, cpu);
    }
}

/* Give the j-th sharer one core, even if another task has it, too. */
static void lend(struct cores *c, const struct atom *atom, size_t j)
{
    dt_place_task_t *task = &c->task[atom->sharer[j]];
    size_t rank = j * atom->ncores / atom->nsharers;
    for (size_t cpu = next_cpu(&atom->cpus, 0); cpu < MAX_CPUS;
         cpu = next_cpu(&atom->cpus, cpu + 1))
        if (atom->rank[c->core[cpu]] == rank)
            dt_cpuset_add(&task->cpus, cpu);
    c->have[atom->sharer[j]]++;
    task->notes |= DT_PLACE_NOTE_FEW_CPUS;
}

/* In proportion to their GPUs here; where that leaves a sharer without any
 * core, each gets one first. */
static void cut_by_gpus(struct cores *c, const struct atom *atom, size_t here)
{
    uint16_t from[DT_PLACE_MAX_TASKS + 1];
    size_t sum[DT_PLACE_MAX_TASKS + 1], n = atom->nsharers, first = 0;
    if (atom->ncores < n) {
        for (size_t j = 0; j < n; j++)
            lend(c, atom, j);
        return;
    }
    sum[0] = 0;
    for (size_t j = 0; j < n; j++)
        sum[j + 1] = sum[j] + c->weight[atom->sharer[j]][here];
    for (size_t j = 0; j < n; j++)
        if (sum[j] * atom->ncores / sum[n] ==
            sum[j + 1] * atom->ncores / sum[n])
            first = 1;
    for (size_t j = 0; j <= n; j++)
        from[j] = (uint16_t)(first * j +
                             sum[j] * (atom->ncores - first * n) / sum[n]);
    hand_out(c, atom, from);
}

/* One core after the other to the task that has the fewest; then in order, so
 * that each task's are contiguous. */
static void cut_by_need(struct cores *c, const struct atom *atom)
{
    uint16_t gets[DT_PLACE_MAX_TASKS] = {0}, from[DT_PLACE_MAX_TASKS + 1];
    for (size_t r = 0; r < atom->ncores; r++) {
        size_t poorest = 0;
        for (size_t j = 1; j < atom->nsharers; j++)
            if (gets[j] + c->have[atom->sharer[j]] <
                gets[poorest] + c->have[atom->sharer[poorest]])
                poorest = j;
        gets[poorest]++;
    }
    from[0] = 0;
    for (size_t j = 0; j < atom->nsharers; j++)
        from[j + 1] = (uint16_t)(from[j] + gets[j]);
    hand_out(c, atom, from);
}

/* The CPUs that are in the same localities as cpu. */
static uint64_t atom_of(const struct cores *c, size_t cpu, dt_cpuset_t *set)
{
    uint64_t localities = 0;
    *set = c->granted;
    for (size_t l = 0; l < c->nlocalities; l++)
        if (dt_cpuset_has(&c->locality[l], cpu)) {
            localities |= (uint64_t)1 << l;
            dt_cpuset_and(set, set, &c->locality[l]);
        } else {
            subtract(set, &c->locality[l]);
        }
    return localities;
}

/* With fewer cores than tasks, add granted ones that are near no task's GPUs,
 * of the same package first: a far core is better than half a near one. */
static void borrow(struct cores *c, dt_cpuset_t *spare, uint64_t localities,
                   struct atom *atom)
{
    size_t near = next_cpu(&atom->cpus, 0), missing = 0;
    if (atom->ncores < atom->nsharers)
        missing = atom->nsharers - atom->ncores;
    for (int pass = 0; pass < 2; pass++)
        for (size_t cpu = next_cpu(spare, 0); missing && cpu < MAX_CPUS;
             cpu = next_cpu(spare, cpu + 1)) {
            if (!pass &&
                c->topo->cpu[cpu].package != c->topo->cpu[near].package)
                continue;
            for (size_t twin = cpu; twin < MAX_CPUS;
                 twin = next_cpu(spare, twin + 1))
                if (c->core[twin] == c->core[cpu]) {
                    dt_cpuset_add(&atom->cpus, twin);
                    dt_cpuset_remove(spare, twin);
                }
            missing--;
        }
    fill_atom(c, localities, atom);
}

/* Tasks of few localities first: a task of several gets cores elsewhere. */
static void cut(struct cores *c)
{
    struct atom atom;
    dt_cpuset_t spare = c->granted;
    dt_cpuset_t todo = {{0}};
    for (size_t l = 0; l < c->nlocalities; l++)
        dt_cpuset_or(&todo, &todo, &c->locality[l]);
    subtract(&spare, &todo);
    for (int many = 1; !is_empty(&todo); many++) {
        dt_cpuset_t rest = todo;
        for (size_t cpu; (cpu = next_cpu(&rest, 0)) < MAX_CPUS;
             subtract(&rest, &atom.cpus)) {
            uint64_t localities = atom_of(c, cpu, &atom.cpus);
            if (__builtin_popcountll(localities) != many)
                continue;
            subtract(&todo, &atom.cpus);
            fill_atom(c, localities, &atom);
            size_t first = (size_t)__builtin_ctzll(localities);
            if (many == 1 && dt_cpuset_equal(&atom.cpus, &c->locality[first])) {
                borrow(c, &spare, localities, &atom);
                cut_by_gpus(c, &atom, first);
            } else {
                cut_by_need(c, &atom);
            }
        }
    }
}

/* Where localities overlap, a task can be left without CPUs. */
static void lend_to_the_poor(struct cores *c)
{
    struct atom atom;
    for (size_t t = 0; t < c->ntasks; t++) {
        if (c->have[t])
            continue;
        size_t l = (size_t)__builtin_ctzll(c->near[t]), j = 0;
        atom.cpus = c->locality[l];
        fill_atom(c, (uint64_t)1 << l, &atom);
        while (atom.sharer[j] != t)
            j++;
        lend(c, &atom, j);
    }
}

/* Add cores of the set to a task, from behind its own on, until it has enough.
 */
static void add_cores(struct cores *c, size_t t, const dt_cpuset_t *from,
                      size_t enough)
{
    dt_cpuset_t *own = &c->task[t].cpus, more;
    size_t start = next_cpu(own, 0);
    for (int turn = 0; turn < 2; turn++)
        for (size_t cpu = next_cpu(from, turn ? 0 : start);
             cpu < MAX_CPUS && c->have[t] < enough;
             cpu = next_cpu(from, cpu + 1)) {
            if (dt_cpuset_has(own, cpu))
                continue;
            more = (dt_cpuset_t){{0}};
            for (size_t twin = 0; twin < MAX_CPUS;
                 twin = next_cpu(&c->granted, twin + 1))
                if (dt_cpuset_has(&c->granted, twin) &&
                    c->core[twin] == c->core[cpu])
                    dt_cpuset_add(&more, twin);
            dt_cpuset_or(own, own, &more);
            c->have[t]++;
            c->task[t].notes |= DT_PLACE_NOTE_LENT;
        }
}

/* Near cores first. */
static void lend_up_to(struct cores *c, size_t enough)
{
    for (size_t t = 0; t < c->ntasks; t++) {
        for (size_t l = 0; l < c->nlocalities; l++)
            if (c->near[t] >> l & 1)
                add_cores(c, t, &c->locality[l], enough);
        add_cores(c, t, &c->granted, enough);
    }
}

/* A task that got added cores may have no near one. */
static void note_far(struct cores *c, size_t t)
{
    dt_cpuset_t near = {{0}};
    for (size_t l = 0; l < c->nlocalities; l++)
        if (c->near[t] >> l & 1)
            dt_cpuset_or(&near, &near, &c->locality[l]);
    dt_cpuset_and(&near, &near, &c->task[t].cpus);
    if (is_empty(&near))
        c->task[t].notes |= DT_PLACE_NOTE_FAR_CPUS;
}

/* NUMA nodes that are GPU memory are never preferred for host memory. */
static void find_numas(const dt_topo_t *topo, dt_place_task_t *task)
{
    for (size_t n = 0; n < topo->nnumas; n++) {
        dt_cpuset_t both;
        dt_cpuset_and(&both, &topo->numa[n].cpus, &task->cpus);
        if (topo->numa[n].gpu < 0 && !is_empty(&both))
            task->numas[n / 64] |= (uint64_t)1 << n % 64;
    }
}

void dt_cores_assign(const dt_place_request_t *request, dt_place_task_t *task)
{
    struct cores c = {
        .topo = request->topo, .ntasks = request->ntasks, .task = task};
    set_granted(&c, &request->cpus);
    if (is_empty(&c.granted))
        return;
    number_cores(&c);
    locate_tasks(&c);
    cut(&c);
    lend_to_the_poor(&c);
    lend_up_to(&c, request->min_cores);
    for (size_t t = 0; t < c.ntasks; t++) {
        note_far(&c, t);
        find_numas(c.topo, &task[t]);
    }
}
