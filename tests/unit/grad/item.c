/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* item.c - operations of dt_grad.h on numbers whose sums are exact, and what
 * must come out of them, computed the slow way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grad.h"
#include "memory.h"

#define EDGE  64 /* bytes before and behind the output that nobody touches */
#define GUARD 0xa5

static void *allocate(size_t len)
{
    void *buf = calloc(1, len ? len : 1);
    if (!buf)
        abort();
    return buf;
}

/* ---- shapes ---- */

static size_t element_size(const struct wish *wish)
{
    return wish->element_bytes ? wish->element_bytes
                               : dt_dtype_size(wish->dtype);
}

/* Elements of a row: of all dimensions but the first. */
static size_t row_of(const struct wish *wish)
{
    size_t row = 1;
    for (int d = 1; d < wish->ndim; d++)
        row *= (size_t)wish->shape[d];
    return row;
}

/* Rows that member `from` of an alltoall has for member `to`. */
static int64_t split_of(const struct wish *wish, int from, int to)
{
    if (!wish->uneven)
        return wish->shape[0];
    return (int64_t)(wish->salt + 2 * (unsigned)from + 3 * (unsigned)to) % 4;
}

/* The first dimension of the input of a member. */
static int64_t rows_of(const struct wish *wish, int size, int member)
{
    int64_t rows = 0;
    if (wish->kind == DT_GRAD_ALLGATHER && wish->uneven)
        return (int64_t)(wish->salt + 3 * (unsigned)member) % 4;
    if (wish->kind != DT_GRAD_ALLTOALL)
        return wish->ndim ? wish->shape[0] : 1;
    for (int to = 0; to < size; to++)
        rows += split_of(wish, member, to);
    return rows;
}

/* The share of a member in the rows of a reducescatter. */
static int64_t share_of(int64_t rows, int size, int member)
{
    return rows / size + (member < rows % size);
}

static size_t input_bytes(const struct part *part, int member)
{
    return (size_t)rows_of(&part->wish, part->set->n, member) *
           row_of(&part->wish) * element_size(&part->wish);
}

static int64_t rows_out(const struct part *part)
{
    const struct wish *wish = &part->wish;
    int n = part->set->n, me = part->set->me;
    int64_t rows = 0;
    switch (wish->kind) {
    case DT_GRAD_ALLGATHER:
        for (int m = 0; m < n; m++)
            rows += rows_of(wish, n, m);
        return rows;
    case DT_GRAD_ALLTOALL:
        for (int m = 0; m < n; m++)
            rows += split_of(wish, m, me);
        return rows;
    case DT_GRAD_REDUCESCATTER:
        return share_of(wish->shape[0], n, me);
    default:
        return rows_of(wish, n, me);
    }
}

/* ---- contents ---- */

static bool is_reduced(const struct wish *wish)
{
    return wish->kind == DT_GRAD_ALLREDUCE ||
           wish->kind == DT_GRAD_REDUCESCATTER;
}

static bool is_integer(dt_dtype_t dtype)
{
    return dtype == DT_DTYPE_I8 || dtype == DT_DTYPE_U8 ||
           dtype == DT_DTYPE_I32 || dtype == DT_DTYPE_I64;
}

/* Element i that a member of a reduction gives. What goes over the network in
 * fewer bits is exact in these. */
static double value_given(const struct wish *wish, int member, size_t i)
{
    return value_of(wish->wire, (dt_op_t)wish->op, member, i + wish->salt % 97);
}

static double scaled(const struct wish *wish, double value, double factor)
{
    return is_integer(wish->dtype) ? trunc(value * factor) : value * factor;
}

static double divided(const struct wish *wish, double sum, int size)
{
    if (is_integer(wish->dtype))
        return trunc(sum / size);
    return wish->dtype == DT_DTYPE_F64 ? sum / size : (float)sum / (float)size;
}

static double value_wanted(const struct part *part, size_t i)
{
    const struct wish *wish = &part->wish;
    double value = 0;
    for (int m = 0; m < part->set->n; m++) {
        double given = scaled(wish, value_given(wish, m, i), wish->prescale);
        if (m == 0)
            value = given;
        else if (wish->op == DT_OP_MIN)
            value = fmin(value, given);
        else if (wish->op == DT_OP_MAX)
            value = fmax(value, given);
        else if (wish->op == DT_OP_PROD)
            value *= given;
        else
            value += given;
    }
    if (wish->op == DT_OP_AVG)
        value = divided(wish, value, part->set->n);
    return scaled(wish, value, wish->postscale);
}

static void input_fill(const struct part *part, int member, char *buf)
{
    const struct wish *wish = &part->wish;
    size_t len = input_bytes(part, member);
    if (!is_reduced(wish)) {
        value_fill(buf, len, wish->salt * MOST_RANKS + (unsigned)member);
        return;
    }
    for (size_t i = 0; i < len / element_size(wish); i++)
        value_put(buf, i, wish->dtype, value_given(wish, member, i));
}

/* Append some rows of what a member gives; returns the end. */
static char *append(char *at, const struct part *part, int member,
                    int64_t first, int64_t rows)
{
    size_t row = row_of(&part->wish) * element_size(&part->wish);
    char *all = allocate(input_bytes(part, member));
    input_fill(part, member, all);
    memcpy(at, all + (size_t)first * row, (size_t)rows * row);
    free(all);
    return at + (size_t)rows * row;
}

static void fill_wanted(const struct part *part, char *at)
{
    const struct wish *wish = &part->wish;
    int n = part->set->n, me = part->set->me;
    size_t first = 0;
    switch (wish->kind) {
    case DT_GRAD_ALLGATHER:
        for (int m = 0; m < n; m++)
            at = append(at, part, m, 0, rows_of(wish, n, m));
        break;
    case DT_GRAD_BROADCAST:
        append(at, part, wish->root, 0, rows_of(wish, n, wish->root));
        break;
    case DT_GRAD_ALLTOALL:
        for (int m = 0; m < n; m++) {
            int64_t before = 0;
            for (int to = 0; to < me; to++)
                before += split_of(wish, m, to);
            at = append(at, part, m, before, split_of(wish, m, me));
        }
        break;
    case DT_GRAD_REDUCESCATTER:
        for (int m = 0; m < me; m++)
            first += (size_t)share_of(wish->shape[0], n, m) * row_of(wish);
        /* fall through */
    case DT_GRAD_ALLREDUCE:
        for (size_t i = 0; i < part->out_bytes / element_size(wish); i++)
            value_put(at, i, wish->dtype, value_wanted(part, first + i));
        break;
    case DT_GRAD_BARRIER:
        break;
    }
}

/* ---- one operation ---- */

struct wish wish_of(dt_grad_kind_t kind, dt_dtype_t dtype, int64_t rows)
{
    return (struct wish){.kind = kind,
                         .dtype = dtype,
                         .wire = dtype,
                         .op = DT_OP_SUM,
                         .ndim = kind == DT_GRAD_BARRIER ? 0 : 1,
                         .shape = {rows},
                         .prescale = 1,
                         .postscale = 1};
}

dt_grad_op_t op_of(dt_grad_kind_t kind, dt_dtype_t dtype, int ndim,
                   const int64_t *shape, const void *in, void *out)
{
    return (dt_grad_op_t){.kind = kind,
                          .dtype = dtype,
                          .wire = dtype,
                          .op = DT_OP_SUM,
                          .ndim = ndim,
                          .shape = shape,
                          .prescale = 1,
                          .postscale = 1,
                          .in = in,
                          .out = out};
}

static bool is_taken(const struct wish *wish)
{
    return wish->kind == DT_GRAD_ALLGATHER || wish->kind == DT_GRAD_ALLTOALL;
}

static void place(struct part *part)
{
    const struct wish *wish = &part->wish;
    size_t len = part->out_bytes;
    if (wish->in_place && part->in_bytes > len)
        len = part->in_bytes;
    part->in = memory_get(part->in_bytes);
    input_fill(part, part->set->me, part->in);
    part->room = memory_get(len + 2 * EDGE);
    memset(part->room, GUARD, len + 2 * EDGE);
    if (wish->in_place && !is_taken(wish)) {
        if (wish->kind != DT_GRAD_BROADCAST || wish->root == part->set->me)
            memcpy(part->room + EDGE, part->in, part->in_bytes);
        part->op.in = part->room + EDGE;
    } else if (wish->kind != DT_GRAD_BROADCAST || wish->root == part->set->me)
        part->op.in = part->in;
    part->op.out = is_taken(wish) ? NULL : part->room + EDGE;
}

void item_add(struct item *item, const struct set *set, const struct wish *wish)
{
    struct part *part = &item->parts[item->n++];
    *part = (struct part){.wish = *wish, .set = set};
    memcpy(part->shape, wish->shape, sizeof(part->shape));
    if (wish->ndim)
        part->shape[0] = rows_of(wish, set->n, set->me);
    for (int to = 0; to < set->n; to++)
        part->splits[to] = split_of(wish, set->me, to);
    part->op =
        op_of(wish->kind, wish->dtype, wish->ndim, part->shape, NULL, NULL);
    part->op.wire = wish->wire;
    part->op.element_bytes = wish->element_bytes;
    part->op.op = wish->op;
    part->op.set = set->id;
    part->op.root = wish->root;
    part->op.prescale = wish->prescale;
    part->op.postscale = wish->postscale;
    if (wish->kind == DT_GRAD_ALLTOALL && wish->uneven)
        part->op.splits = part->splits;
    if (wish->kind == DT_GRAD_BARRIER)
        return;
    part->in_bytes = input_bytes(part, set->me);
    part->out_bytes =
        (size_t)rows_out(part) * row_of(wish) * element_size(wish);
    place(part);
}

static void check(const struct item *item, int i, bool cond, const char *what)
{
    const struct wish *w = &item->parts[i].wish;
    const struct set *set = item->parts[i].set;
    expect(cond,
           "%s: %s: operation %d of %d: kind %d dtype %d wire %d bytes %zu op "
           "%d root %d ndim %d rows %lld%s%s factors %g %g set %d of %d",
           item->name[0] ? item->name : "no name", what, i, item->n,
           (int)w->kind, (int)w->dtype, (int)w->wire, w->element_bytes, w->op,
           w->root, w->ndim, (long long)w->shape[0], w->uneven ? " uneven" : "",
           w->in_place ? " in place" : "", w->prescale, w->postscale, set->id,
           set->n);
}

static void verify_shape(const struct item *item, int i)
{
    const struct part *part = &item->parts[i];
    const struct wish *wish = &part->wish;
    int64_t shape[DT_GRAD_DIMS], received[MOST_RANKS];
    int ndim = -1;
    bool right = true;
    dt_result_t rc = dt_grad_output(item->work, i, &ndim, shape, received);
    check(item, i, rc == DT_SUCCESS, "dt_grad_output fails");
    check(item, i, ndim == wish->ndim, "number of dimensions");
    if (rc != DT_SUCCESS || ndim != wish->ndim)
        return;
    for (int d = 0; d < ndim; d++)
        right &= shape[d] == (d ? wish->shape[d] : rows_out(part));
    check(item, i, right, "shape of the output");
    if (wish->kind != DT_GRAD_ALLTOALL)
        return;
    for (int m = 0; m < part->set->n; m++)
        right &= received[m] == split_of(wish, m, part->set->me);
    check(item, i, right, "rows received");
}

static void verify_part(const struct item *item, int i)
{
    const struct part *part = &item->parts[i];
    size_t len = part->out_bytes, in = part->in_bytes;
    const char *out = part->room + EDGE;
    bool clean = true;
    if (part->wish.kind == DT_GRAD_BARRIER)
        return;
    verify_shape(item, i);
    if (is_taken(&part->wish))
        check(item, i,
              dt_grad_take_on(item->work, i, part->room + EDGE,
                              memory_stream()) == DT_SUCCESS,
              "dt_grad_take fails");
    char *wanted = allocate(len > in ? len : in);
    fill_wanted(part, wanted);
    check(item, i, !memcmp(out, wanted, len), "wrong contents");
    size_t end = part->wish.in_place && in > len ? in : len;
    for (size_t k = 1; k <= EDGE; k++)
        clean &= (unsigned char)out[-(ptrdiff_t)k] == GUARD &&
                 (unsigned char)out[end + k - 1] == GUARD;
    check(item, i, clean, "writes beside the output");
    input_fill(part, part->set->me, wanted);
    check(item, i, !memcmp(part->in, wanted, in), "changes the input");
    free(wanted);
}

/* A barrier alone has no memory, and so no stream. */
static dt_stream_t stream_of(const struct item *item)
{
    return item->n == 1 && item->parts[0].wish.kind == DT_GRAD_BARRIER
               ? DT_STREAM_NONE
               : memory_stream();
}

dt_result_t item_start(struct item *item, dt_grad_t grad)
{
    dt_grad_op_t ops[MOST_PARTS];
    for (int i = 0; i < item->n; i++)
        ops[i] = item->parts[i].op;
    dt_result_t rc =
        dt_grad_start_on(grad, item->name[0] ? item->name : NULL, ops, item->n,
                         stream_of(item), &item->work);
    check(item, 0, rc == DT_SUCCESS, "dt_grad_start fails");
    /* shapes and splits were copied, says the header */
    for (int i = 0; i < item->n; i++) {
        memset(item->parts[i].shape, 0x5a, sizeof(item->parts[i].shape));
        memset(item->parts[i].splits, 0x5a, sizeof(item->parts[i].splits));
    }
    return rc;
}

static void clear(struct item *item)
{
    for (int i = 0; i < item->n; i++) {
        memory_put(item->parts[i].in);
        memory_put(item->parts[i].room);
    }
    dt_grad_free(item->work);
    *item = (struct item){0};
}

dt_result_t item_end(struct item *item, dt_result_t wanted)
{
    dt_result_t rc = dt_grad_wait(item->work, -1);
    if (rc != wanted) {
        char what[80];
        snprintf(what, sizeof(what), "%s instead of %s", dt_strerror(rc),
                 dt_strerror(wanted));
        check(item, 0, false, what);
    }
    clear(item);
    return rc;
}

void item_verify(struct item *item)
{
    dt_result_t rc =
        item->work ? dt_grad_wait(item->work, -1) : DT_ERR_INVALID_ARG;
    check(item, 0, rc == DT_SUCCESS, "fails");
    for (int i = 0; rc == DT_SUCCESS && i < item->n; i++)
        verify_part(item, i);
    clear(item);
}
