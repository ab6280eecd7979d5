/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sched.c - building schedules. */
#include "coll/algorithm/sched.h"

#include <stdlib.h>
#include <string.h>

/* Room in the message tag; see comm.h. The last is for dt_send. */
#define MAX_SLOTS ((1u << 20) - 1)

void dt_sched_init(struct dt_sched *sched, size_t size)
{
    *sched = (struct dt_sched){.gate = DT_OPERATION_NONE};
    sched->sent = calloc(size, sizeof(*sched->sent));
    sched->received = calloc(size, sizeof(*sched->received));
    sched->failed = !sched->sent || !sched->received;
}

/* Make room for one more of elem bytes each. */
static void *grow(void *array, size_t used, size_t *room, size_t elem)
{
    if (used < *room)
        return array;
    size_t more = *room ? *room * 2 : 64;
    void *larger = reallocarray(array, more, elem);
    if (larger)
        *room = more;
    return larger;
}

static size_t add(struct dt_sched *sched, struct dt_operation operation)
{
    if (sched->failed)
        return DT_OPERATION_NONE;
    struct dt_operation *operations =
        grow(sched->operations, sched->noperations, &sched->operations_room,
             sizeof(*operations));
    if (!operations) {
        sched->failed = true;
        return DT_OPERATION_NONE;
    }
    sched->operations = operations;
    operation.edges = DT_OPERATION_NONE;
    operations[sched->noperations] = operation;
    size_t number = sched->noperations++;
    dt_sched_after(sched, number, sched->gate);
    return number;
}

static uint32_t next_slot(struct dt_sched *sched, uint32_t *count)
{
    if (*count >= MAX_SLOTS)
        sched->failed = true;
    return (*count)++;
}

size_t dt_sched_send(struct dt_sched *sched, size_t peer, struct dt_ref a,
                     size_t len)
{
    if (!len || sched->failed)
        return DT_OPERATION_NONE;
    uint32_t slot = next_slot(sched, &sched->sent[peer]);
    return add(sched, (struct dt_operation){.kind = DT_OPERATION_SEND,
                                            .a = a,
                                            .len = len,
                                            .peer = peer,
                                            .slot = slot,
                                            .message = sched->nmessages++});
}

size_t dt_sched_recv(struct dt_sched *sched, size_t peer, struct dt_ref dst,
                     size_t len)
{
    if (!len || sched->failed)
        return DT_OPERATION_NONE;
    uint32_t slot = next_slot(sched, &sched->received[peer]);
    return add(sched, (struct dt_operation){.kind = DT_OPERATION_RECV,
                                            .dst = dst,
                                            .len = len,
                                            .peer = peer,
                                            .slot = slot,
                                            .message = sched->nmessages++});
}

size_t dt_sched_reduce(struct dt_sched *sched, struct dt_ref dst,
                       struct dt_ref a, struct dt_ref b, size_t len)
{
    if (!len)
        return DT_OPERATION_NONE;
    return add(sched, (struct dt_operation){.kind = DT_OPERATION_REDUCE,
                                            .dst = dst,
                                            .a = a,
                                            .b = b,
                                            .len = len});
}

size_t dt_sched_copy(struct dt_sched *sched, struct dt_ref dst, struct dt_ref a,
                     size_t len)
{
    if (!len)
        return DT_OPERATION_NONE;
    return add(sched,
               (struct dt_operation){
                   .kind = DT_OPERATION_COPY, .dst = dst, .a = a, .len = len});
}

size_t dt_sched_scale(struct dt_sched *sched, struct dt_ref dst,
                      struct dt_ref a, size_t len, double factor)
{
    if (!len)
        return DT_OPERATION_NONE;
    return add(sched, (struct dt_operation){.kind = DT_OPERATION_SCALE,
                                            .dst = dst,
                                            .a = a,
                                            .len = len,
                                            .factor = factor});
}

size_t dt_sched_divide(struct dt_sched *sched, struct dt_ref dst, size_t len)
{
    if (!len)
        return DT_OPERATION_NONE;
    return add(sched, (struct dt_operation){
                          .kind = DT_OPERATION_DIVIDE, .dst = dst, .len = len});
}

uint32_t dt_sched_round(struct dt_sched *sched)
{
    if (sched->rounds == UINT32_MAX)
        sched->failed = true;
    return sched->failed ? 0 : sched->rounds++;
}

size_t dt_sched_post(struct dt_sched *sched, uint32_t round, struct dt_ref a,
                     size_t len, size_t hole, size_t hole_len)
{
    return add(sched, (struct dt_operation){.kind = DT_OPERATION_POST,
                                            .a = a,
                                            .len = len,
                                            .round = round,
                                            .offset = hole,
                                            .hole = hole_len});
}

size_t dt_sched_reduce_round(struct dt_sched *sched, uint32_t round,
                             struct dt_ref dst, struct dt_ref a, size_t offset,
                             size_t len, double factor)
{
    if (!len)
        return DT_OPERATION_NONE;
    return add(sched, (struct dt_operation){.kind = DT_OPERATION_REDUCE_ROUND,
                                            .dst = dst,
                                            .a = a,
                                            .len = len,
                                            .round = round,
                                            .offset = offset,
                                            .factor = factor});
}

size_t dt_sched_fetch(struct dt_sched *sched, uint32_t round, size_t index,
                      struct dt_ref dst, size_t offset, size_t len)
{
    return add(sched, (struct dt_operation){.kind = DT_OPERATION_FETCH,
                                            .dst = dst,
                                            .len = len,
                                            .peer = index,
                                            .round = round,
                                            .offset = offset});
}

size_t dt_sched_join(struct dt_sched *sched, size_t first)
{
    size_t join = add(sched, (struct dt_operation){.kind = DT_OPERATION_JOIN});
    for (size_t i = first; join != DT_OPERATION_NONE && i < join; i++)
        dt_sched_after(sched, join, i);
    return join;
}

void dt_sched_after(struct dt_sched *sched, size_t operation, size_t other)
{
    if (operation == DT_OPERATION_NONE || other == DT_OPERATION_NONE ||
        sched->failed)
        return;
    struct dt_edge *edges =
        grow(sched->edges, sched->nedges, &sched->edges_room, sizeof(*edges));
    if (!edges) {
        sched->failed = true;
        return;
    }
    sched->edges = edges;
    edges[sched->nedges] =
        (struct dt_edge){operation, sched->operations[other].edges};
    sched->operations[other].edges = sched->nedges++;
    sched->operations[operation].ndeps++;
}

dt_result_t dt_sched_finish(struct dt_sched *sched, struct dt_error *err)
{
    free(sched->sent);
    free(sched->received);
    sched->sent = sched->received = NULL;
    if (sched->failed)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory, or more messages than a tag can "
                            "count, to plan this collective");
    return DT_SUCCESS;
}

void dt_sched_fini(struct dt_sched *sched)
{
    free(sched->sent);
    free(sched->received);
    free(sched->operations);
    free(sched->edges);
    memset(sched, 0, sizeof(*sched));
}
