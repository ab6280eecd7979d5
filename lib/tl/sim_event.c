/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim_event.c - chance, and what will happen in virtual time. */
#include "tl/sim_event.h"

#include <stdlib.h>

/* ---- chance ---- */

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t next_random(struct dt_sim *sim)
{
    uint64_t z = sim->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t dt_sim_random(struct dt_sim *sim, uint64_t n)
{
    return n ? next_random(sim) % n : 0;
}

static double chance(struct dt_sim *sim)
{
    return (double)(next_random(sim) >> 11) * 0x1p-53;
}

double dt_sim_delay(struct dt_sim *sim, size_t from, size_t to, size_t len)
{
    const struct dt_sim_config *c = &sim->config;
    bool near = sim->node_of[from] == sim->node_of[to];
    double delay = near ? c->node_latency + (double)len * c->node_byte
                        : c->net_latency + (double)len * c->net_byte;
    delay *= 1 + c->jitter * chance(sim);
    return !near && chance(sim) < c->lost ? delay + c->again : delay;
}

/* ---- events: a binary heap ---- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

void dt_sim_later(struct dt_sim *sim, double delay, struct sim_event event)
{
    if (sim->nheap == sim->room) {
        size_t room = sim->room ? sim->room * 2 : 256;
        struct sim_event *heap =
            reallocarray(sim->heap, room, sizeof(*sim->heap));
        if (!heap) {
            sim->out_of_memory = true;
            return;
        }
        sim->heap = heap;
        sim->room = room;
    }
    event.time = sim->now + delay;
    event.order = sim->born++;
    size_t at = sim->nheap++;
    for (; at && before(&event, &sim->heap[(at - 1) / 2]); at = (at - 1) / 2)
        sim->heap[at] = sim->heap[(at - 1) / 2];
    sim->heap[at] = event;
}

struct sim_event dt_sim_pop(struct dt_sim *sim)
{
    struct sim_event first = sim->heap[0], last = sim->heap[--sim->nheap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < sim->nheap &&
            before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (child >= sim->nheap || before(&last, &sim->heap[child]))
            break;
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    return first;
}
