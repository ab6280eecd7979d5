/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* common.c - random numbers, process sets and short calls for the ranks that
 * test dt_grad.h. */
#include <stdio.h>
#include <stdlib.h>

#include "grad.h"

uint64_t draw(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

void draw_order(uint64_t *state, int *order, int n)
{
    for (int i = 0; i < n; i++) {
        int k = (int)draw(state, (uint64_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

uint64_t digest(uint64_t sofar, const void *buf, size_t len)
{
    const unsigned char *bytes = buf;
    for (size_t i = 0; i < len; i++)
        sofar = (sofar ^ bytes[i]) * 1099511628211u;
    return sofar;
}

void meet(void)
{
    expect(dt_barrier(WORLD) == DT_SUCCESS, "barrier of the world");
}

void expect_same(uint64_t number, const char *what)
{
    int64_t least = (int64_t)(number >> 1), most = least;
    expect(dt_allreduce(&least, &least, 1, DT_DTYPE_I64, DT_OP_MIN, WORLD) ==
                   DT_SUCCESS &&
               dt_allreduce(&most, &most, 1, DT_DTYPE_I64, DT_OP_MAX, WORLD) ==
                   DT_SUCCESS,
           "allreduce of the world");
    expect(least == most, "%s differs between the ranks", what);
}

/* ---- the engine ---- */

dt_grad_t begin_engine(void)
{
    dt_grad_t grad = NULL;
    dt_result_t rc = dt_grad_open(NULL, &grad);
    if (rc == DT_SUCCESS)
        return grad;
    fprintf(stderr, "rank %d: dt_grad_open: %s: %s\n", dt_rank(),
            dt_strerror(rc), dt_last_error());
    exit(2);
}

void end_engine(dt_grad_t grad)
{
    expect(dt_grad_close(grad) == DT_SUCCESS, "dt_grad_close");
}

static void add_set(dt_grad_t grad, struct set *set)
{
    set->me = -1;
    for (int i = 0; i < set->n; i++)
        if (set->ranks[i] == dt_rank())
            set->me = i;
    expect(dt_grad_set_add(grad, set->ranks, set->n, &set->id) == DT_SUCCESS,
           "a set of %d ranks", set->n);
    expect(dt_grad_set_rank(grad, set->id) == set->me,
           "this rank's number in set %d is %d", set->id, set->me);
    expect(dt_grad_set_size(grad, set->id) == set->n, "set %d has %d ranks",
           set->id, set->n);
}

int make_sets(dt_grad_t grad, struct set sets[MOST_SETS])
{
    int size = dt_size(), n = 1;
    sets[0] = (struct set){.id = DT_GRAD_WORLD, .n = size, .me = dt_rank()};
    for (int r = 0; r < size; r++)
        sets[0].ranks[r] = r;
    if (size == 1)
        return n;
    for (int odd = 0; odd < 2; odd++, n++) {
        sets[n] = (struct set){0};
        for (int r = odd; r < size; r += 2)
            sets[n].ranks[sets[n].n++] = r;
        add_set(grad, &sets[n]);
    }
    if (size == 2)
        return n;
    sets[n] = (struct set){.n = 2, .ranks = {size - 2, size - 1}};
    add_set(grad, &sets[n++]);
    return n;
}

struct ended finish(dt_grad_work_t work)
{
    struct ended ended = {.rc = dt_grad_wait(work, -1)};
    if (ended.rc != DT_SUCCESS)
        snprintf(ended.text, sizeof(ended.text), "%s", dt_last_error());
    dt_grad_free(work);
    return ended;
}

dt_result_t run_op(dt_grad_t grad, const char *name, const dt_grad_op_t *op)
{
    dt_grad_work_t work = NULL;
    dt_result_t rc = dt_grad_start(grad, name, op, 1, &work);
    return rc == DT_SUCCESS ? finish(work).rc : rc;
}

void expect_alive(dt_grad_t grad, const char *name)
{
    int32_t in = dt_rank() + 1, out = 0, size = dt_size();
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &in, &out);
    dt_result_t rc = run_op(grad, name, &op);
    expect(rc == DT_SUCCESS && out == size * (size + 1) / 2,
           "%s: the engine goes on: %s, sum %d", name ? name : "no name",
           dt_strerror(rc), (int)out);
}
