/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* check.c - an allgather of what each rank calls, and the comparison.
 *
 * Every rank compares all with rank 0, so all come to the same verdict. */
#include "coll/api/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"

/* What a rank calls, as it goes over the wire; what a call has not is 0. */
struct record {
    uint32_t version;
    uint16_t kind;
    uint16_t on_device;
    int32_t dtype, op;
    int64_t root;
    uint64_t count;    /* per block; uneven forms: in all */
    uint64_t expected; /* alltoallv: elements to be received in all */
    uint64_t counts;   /* a hash of an array of counts and displacements;
                        * alltoallv: of what it sends less what it expects,
                        * which adds up to 0 over all ranks */
    double prescale, postscale;
};
#define CHECK_VERSION 3
_Static_assert(sizeof(struct record) == 64, "no padding, equal on all ranks");

static uint64_t hash(uint64_t seed, const size_t *values, size_t n)
{
    for (size_t i = 0; values && i < n; i++)
        seed = (seed ^ values[i]) * 0x9e3779b97f4a7c15u + (seed >> 29);
    return seed;
}

static uint64_t sum(const size_t *values, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += values[i];
    return total;
}

/* So many elements from one rank to another, as a number that no other such
 * fact is likely to have. */
static uint64_t fact(size_t from, size_t to, size_t count)
{
    return count ? hash(hash(1, &from, 1), (const size_t[]){to, count}, 2) : 0;
}

static void fill_counts(struct record *record, const struct dt_call *call)
{
    const struct dt_shape *shape = &call->shape;
    size_t n = call->comm->size;
    record->count = shape->count;
    if (call->kind == DT_CALL_ALLTOALLV) {
        record->count = sum(shape->sendcounts, n);
        record->expected = sum(shape->recvcounts, n);
        for (size_t r = 0, me = call->comm->rank; r < n; r++)
            record->counts += fact(me, r, shape->sendcounts[r]) -
                              fact(r, me, shape->recvcounts[r]);
    } else if (call->kind == DT_CALL_ALLGATHERV) {
        record->count = sum(shape->sendcounts, n);
        record->counts =
            hash(hash(0, shape->sendcounts, n), shape->recvdispls, n);
    } else if (call->kind == DT_CALL_REDUCE_SCATTERV) {
        record->count = sum(shape->recvcounts, n);
        record->counts = hash(0, shape->recvcounts, n);
    }
}

static void fill(struct record *record, const struct dt_call *call)
{
    const struct dt_shape *shape = &call->shape;
    memset(record, 0, sizeof(*record));
    record->version = CHECK_VERSION;
    record->kind = (uint16_t)call->kind;
    record->on_device = call->on_device;
    if (dt_call_has_type(call->kind)) {
        record->dtype = shape->dtype;
        fill_counts(record, call);
    }
    if (call->kind == DT_CALL_CREATE)
        record->counts = hash(0, shape->sendcounts, call->comm->size);
    if (dt_call_has_op(call->kind))
        record->op = shape->op;
    if (dt_call_has_root(call->kind))
        record->root = call->root;
    if (call->kind == DT_CALL_ALLREDUCE_SCALED) {
        record->prescale = shape->prescale;
        record->postscale = shape->postscale;
    }
}

/* Do they go together? What alltoallv sends differs between the ranks. */
static bool equal(const struct record *a, const struct record *b)
{
    if (a->kind == DT_CALL_ALLTOALLV && b->kind == DT_CALL_ALLTOALLV)
        return a->version == b->version && a->dtype == b->dtype &&
               a->on_device == b->on_device;
    return !memcmp(a, b, sizeof(*a));
}

/* "dt_reduce of 10 f32, sum, to root 2" */
static void describe(const struct record *record, char *text, size_t room)
{
    enum dt_call_kind kind = (enum dt_call_kind)record->kind;
    const char *dtype = dt_name_dtype((dt_dtype_t)record->dtype);
    const char *op = dt_name_op((dt_op_t)record->op);
    char type[64] = "", reduction[32] = "", scale[64] = "", root[48] = "";
    char counts[48] = "";
    if (dt_call_has_type(kind) && kind == DT_CALL_ALLTOALLV)
        snprintf(type, sizeof(type), " of %s", dtype ? dtype : "?");
    else if (dt_call_has_type(kind))
        snprintf(type, sizeof(type), " of %llu %s",
                 (unsigned long long)record->count, dtype ? dtype : "?");
    if (dt_call_has_op(kind))
        snprintf(reduction, sizeof(reduction), ", %s", op ? op : "?");
    if (kind == DT_CALL_ALLREDUCE_SCALED)
        snprintf(scale, sizeof(scale), ", scaled by %g and %g",
                 record->prescale, record->postscale);
    if (dt_call_has_root(kind))
        snprintf(root, sizeof(root), "%s %s root %lld", *reduction ? "," : "",
                 kind == DT_CALL_REDUCE || kind == DT_CALL_GATHER ? "to"
                                                                  : "from",
                 (long long)record->root);
    if (record->counts && kind != DT_CALL_ALLTOALLV)
        snprintf(counts, sizeof(counts), " (%s #%04x)",
                 kind == DT_CALL_CREATE ? "ranks" : "counts",
                 (unsigned)(record->counts >> 48));
    snprintf(text, room, "%s%s%s%s%s%s", dt_call_name(kind), type, counts,
             reduction, scale, root);
}

/* Where its buffers are, if that is another place than the other's. */
static const char *memory(const struct record *record,
                          const struct record *other)
{
    if (record->on_device == other->on_device)
        return "";
    return record->on_device ? ", in device memory," : ", in host memory,";
}

static dt_result_t compare(const struct record *all, size_t n,
                           struct dt_error *err)
{
    uint64_t sent = 0, expected = 0, left = 0;
    char theirs[224], first[224];
    for (size_t r = 0; r < n; r++) {
        if (all[r].version != CHECK_VERSION)
            return dt_error_set(err, DT_ERR_VERSION,
                                "DT_CHECK: rank %zu runs another version of "
                                "libdt: install the same slurm-dt on all nodes",
                                r);
        sent += all[r].count;
        expected += all[r].expected;
        left += all[r].counts;
        if (equal(&all[r], &all[0]))
            continue;
        describe(&all[r], theirs, sizeof(theirs));
        describe(&all[0], first, sizeof(first));
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "DT_CHECK: rank %zu calls %s%s where rank 0 calls "
                            "%s%s",
                            r, theirs, memory(&all[r], &all[0]), first,
                            memory(&all[0], &all[r]));
    }
    if (all[0].kind == DT_CALL_ALLTOALLV && sent != expected)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "DT_CHECK: dt_alltoallv: the ranks send %llu "
                            "elements in all, but expect %llu",
                            (unsigned long long)sent,
                            (unsigned long long)expected);
    if (all[0].kind == DT_CALL_ALLTOALLV && left)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "DT_CHECK: dt_alltoallv: some rank sends another "
                            "number of elements than its receiver expects, "
                            "though all send %llu: compare sendcounts[to] "
                            "with recvcounts[from]",
                            (unsigned long long)sent);
    return DT_SUCCESS;
}

dt_result_t dt_check(const struct dt_call *call, struct dt_error *err)
{
    if (call->kind == DT_CALL_SEND || call->kind == DT_CALL_RECV)
        return DT_SUCCESS;
    struct dt_comm *comm = call->comm;
    struct record mine, *all = calloc(comm->size, sizeof(*all));
    if (!all)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory to compare %zu ranks", comm->size);
    fill(&mine, call);
    const struct dt_shape shape = {.coll = DT_COLL_ALLGATHER,
                                   .dtype = DT_DTYPE_U8,
                                   .count = sizeof(mine),
                                   .prescale = 1,
                                   .postscale = 1};
    dt_result_t rc = dt_comm_run(comm, &shape, &mine, all, err);
    if (rc == DT_SUCCESS)
        rc = compare(all, comm->size, err);
    free(all);
    return rc;
}
