/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nics.c - which GPU, and so which task, uses which NICs. */
#include "topo/model/nics.h"

#include <string.h>

/* How near a NIC is: its path class, SYS divided by packages. */
enum { OTHER_PACKAGE = DT_PATH_SYS + 1, NOT_KNOWN };

/* The NICs of one GPU, the preferred one first. */
struct choice {
    size_t n;
    uint8_t nic[DT_TOPO_MAX_NICS];
    dt_path_t path;
};

static bool carries_rdma(const dt_topo_nic_t *nic)
{
    return nic->type != DT_NIC_ETHERNET;
}

static int distance(const dt_topo_t *topo, size_t gpu, size_t nic)
{
    int path = topo->pci[gpu][topo->ngpus + nic];
    if (path >= DT_PATH_UNKNOWN)
        return NOT_KNOWN;
    int package = topo->gpu[gpu].package;
    if (path == DT_PATH_SYS &&
        (package < 0 || package != topo->nic[nic].package))
        return OTHER_PACKAGE;
    return path;
}

/* Drop NICs with at most a quarter of the speed of the fastest: they are for
 * management or storage. */
static size_t drop_slow(const dt_topo_t *topo, uint8_t *nic, size_t n)
{
    uint32_t fastest = 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (topo->nic[nic[i]].gbps > fastest)
            fastest = topo->nic[nic[i]].gbps;
    for (size_t i = 0; i < n; i++) {
        uint32_t gbps = topo->nic[nic[i]].gbps;
        if (!gbps || gbps > fastest / 4)
            nic[kept++] = nic[i];
    }
    return kept;
}

size_t dt_topo_nearest_nics(const dt_topo_t *topo, size_t gpu,
                            uint8_t nic[DT_TOPO_MAX_NICS], dt_path_t *path)
{
    int best = NOT_KNOWN;
    size_t n = 0;
    for (size_t i = 0; gpu < topo->ngpus && i < topo->nnics; i++) {
        if (!carries_rdma(&topo->nic[i]) || topo->nic[i].state == DT_LINK_DOWN)
            continue;
        int d = distance(topo, gpu, i);
        if (d == NOT_KNOWN || d > best)
            continue;
        if (d < best)
            n = 0;
        best = d;
        nic[n++] = (uint8_t)i;
    }
    if (path)
        *path = best == NOT_KNOWN       ? DT_PATH_UNKNOWN
                : best == OTHER_PACKAGE ? DT_PATH_SYS
                                        : (dt_path_t)best;
    return drop_slow(topo, nic, n);
}

/* ---- per GPU ---- */

/* The nearest of one GPU, all of the same class. */
struct nearest {
    size_t n;
    uint8_t nic[DT_TOPO_MAX_NICS];
    dt_path_t path;
};

static bool shares(const struct nearest *a, const struct nearest *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (memchr(b->nic, a->nic[i], b->n))
            return true;
    return false;
}

/* A GPU whose nearest NIC is down would take those of other GPUs: leave a NIC
 * to the GPUs that are nearer to it, if another one is as near. */
static void leave_to_nearer(const struct nearest *all, size_t n,
                            const struct nearest *from, struct nearest *left)
{
    *left = (struct nearest){.path = from->path};
    for (size_t i = 0; i < from->n; i++) {
        bool taken = false;
        for (size_t h = 0; h < n; h++)
            taken = taken || (all[h].path < from->path &&
                              memchr(all[h].nic, from->nic[i], all[h].n));
        if (!taken)
            left->nic[left->n++] = from->nic[i];
    }
    if (!left->n)
        *left = *from;
}

static void choose_closest(const dt_topo_t *topo, struct choice *choice)
{
    struct nearest all[DT_TOPO_MAX_GPUS], tied[DT_TOPO_MAX_GPUS];
    size_t n = topo->ngpus;
    for (size_t g = 0; g < n; g++)
        all[g].n = dt_topo_nearest_nics(topo, g, all[g].nic, &all[g].path);
    for (size_t g = 0; g < n; g++)
        leave_to_nearer(all, n, &all[g], &tied[g]);
    for (size_t g = 0; g < n; g++) {
        size_t rank = 0, k = 0, sharers = 0, m = tied[g].n;
        for (size_t h = 0; h < n; h++) {
            sharers += shares(&tied[g], &tied[h]);
            if (tied[h].n != m || memcmp(tied[h].nic, tied[g].nic, m) != 0)
                continue;
            rank += h < g;
            k++;
        }
        choice[g].path = tied[g].path;
        choice[g].n = m && m < sharers ? 1 : m ? m / sharers : 0;
        for (size_t i = 0; i < choice[g].n; i++)
            choice[g].nic[i] = tied[g].nic[(rank + i * k) % m];
    }
}

static void choose_rail(const dt_topo_t *topo, struct choice *choice)
{
    uint8_t rail[DT_TOPO_MAX_NICS];
    size_t m = 0;
    for (size_t i = 0; i < topo->nnics; i++)
        if (carries_rdma(&topo->nic[i]))
            rail[m++] = (uint8_t)i;
    for (size_t g = 0; g < topo->ngpus; g++) {
        size_t first = g * m / topo->ngpus;
        choice[g].n = 0;
        choice[g].path = DT_PATH_NVL; /* any: tasks keep the order of GPUs */
        for (size_t i = 0; i < m && !choice[g].n; i++) {
            uint8_t nic = rail[(first + i) % m];
            if (topo->nic[nic].state != DT_LINK_DOWN)
                choice[g].nic[choice[g].n++] = nic;
        }
    }
}

/* ---- per task ---- */

static void add_nic(dt_place_task_t *task, uint8_t nic)
{
    for (size_t i = 0; i < task->nnics; i++)
        if (task->nic[i] == nic)
            return;
    task->nic[task->nnics++] = nic;
}

/* The nearest first; of those the ones that its GPUs prefer. */
static void collect(const struct choice *choice, dt_place_task_t *task)
{
    size_t most = 0;
    for (size_t i = 0; i < task->nown; i++) {
        const struct choice *c = &choice[task->own[i]];
        task->gpu_nic[i] = c->n ? c->nic[0] : UINT8_MAX;
        most = c->n > most ? c->n : most;
    }
    for (int path = DT_PATH_NVL; path < DT_PATH_UNKNOWN; path++)
        for (size_t k = 0; k < most; k++)
            for (size_t i = 0; i < task->nown; i++) {
                const struct choice *c = &choice[task->own[i]];
                if ((int)c->path == path && k < c->n)
                    add_nic(task, c->nic[k]);
            }
}

void dt_nics_assign(const dt_place_request_t *request, dt_place_task_t *task)
{
    struct choice choice[DT_TOPO_MAX_GPUS];
    if (request->nics == DT_PLACE_NICS_CLOSEST)
        choose_closest(request->topo, choice);
    if (request->nics == DT_PLACE_NICS_RAIL)
        choose_rail(request->topo, choice);
    for (size_t t = 0; t < request->ntasks; t++) {
        dt_place_task_t *to = &task[t];
        switch (request->nics) {
        case DT_PLACE_NICS_CLOSEST:
        case DT_PLACE_NICS_RAIL:
            collect(choice, to);
            break;
        case DT_PLACE_NICS_MAP:
            add_nic(to, request->nic_map[t % request->nnic_map]);
            memset(to->gpu_nic, to->nic[0], to->nown);
            break;
        case DT_PLACE_NICS_NONE:
            memset(to->gpu_nic, UINT8_MAX, to->nown);
            break;
        }
    }
}
