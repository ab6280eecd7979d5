/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* event.c - the events of a simulation, in the order of their time. */
#include "sim/event.h"

#include <stdlib.h>

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

bool sim_events_push(struct sim_events *events, struct sim_event event)
{
    if (events->count == events->room) {
        size_t room = events->room ? events->room * 2 : 256;
        struct sim_event *heap =
            reallocarray(events->heap, room, sizeof(*events->heap));
        if (!heap)
            return false;
        events->heap = heap;
        events->room = room;
    }
    event.order = events->pushed++;
    size_t at = events->count++;
    for (; at && before(&event, &events->heap[(at - 1) / 2]); at = (at - 1) / 2)
        events->heap[at] = events->heap[(at - 1) / 2];
    events->heap[at] = event;
    return true;
}

struct sim_event sim_events_pop(struct sim_events *events)
{
    struct sim_event *heap = events->heap;
    struct sim_event first = heap[0], last = heap[--events->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < events->count && before(&heap[child + 1], &heap[child]))
            child++;
        if (child >= events->count || before(&last, &heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}
