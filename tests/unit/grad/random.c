/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* random.c - random programs, the same on all ranks but for the order of calls
 * and their moments; and all orders of three operations on three ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

enum { MOST_ITEMS = 8, PHASES = 5 };

static struct program {
    uint64_t seed, state; /* state: equal on all ranks */
    uint64_t mine;        /* of this rank */
    int phase;
    dt_grad_t grad;
    struct set sets[MOST_SETS];
    int nsets;
    struct model models[2];
    int nitems, drawn;
    struct item items[MOST_ITEMS];
    bool disputed[MOST_ITEMS];
} p;

static void pause_a_while(void)
{
    if (!draw(&p.mine, 6))
        usleep((useconds_t)draw(&p.mine, 400));
}

/* ---- operations and steps at the same time ---- */

static struct wish drawn_wish(void)
{
    static const int64_t rows[] = {0, 1, 2, 3, 7, 100, 5000};
    struct wish wish = wish_of((dt_grad_kind_t)draw(&p.state, 6), DT_DTYPE_F32,
                               rows[draw(&p.state, 7)]);
    wish.dtype = wish.wire = (dt_dtype_t)draw(&p.state, 8);
    if (wish.kind == DT_GRAD_ALLREDUCE)
        wish.op = (int)draw(&p.state, 5);
    wish.uneven = draw(&p.state, 2) && (wish.kind == DT_GRAD_ALLGATHER ||
                                        wish.kind == DT_GRAD_ALLTOALL);
    wish.in_place = draw(&p.state, 2);
    wish.salt = (unsigned)draw(&p.state, 1000);
    return wish;
}

/* One member gives another shape, and there is an error on all. */
static struct wish disputed_wish(const struct set *set)
{
    struct wish wish = wish_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 5);
    int odd = (int)draw(&p.state, (uint64_t)set->n);
    wish.shape[0] += set->me == odd;
    return wish;
}

static void draw_item(void)
{
    struct item *item = &p.items[p.nitems];
    const struct set *set = &p.sets[draw(&p.state, (uint64_t)p.nsets)];
    bool disputed = set->n > 1 && !draw(&p.state, 12);
    int n = disputed || draw(&p.state, 3) ? 1 : 2;
    *item = (struct item){0};
    snprintf(item->name, sizeof(item->name), "seed %llu phase %d op %d",
             (unsigned long long)p.seed, p.phase, p.drawn++);
    for (int i = 0; i < n; i++) {
        struct wish wish = disputed ? disputed_wish(set) : drawn_wish();
        wish.root = (int)draw(&p.state, (uint64_t)set->n);
        if (set->me >= 0)
            item_add(item, set, &wish);
    }
    p.disputed[p.nitems] = disputed;
    p.nitems += set->me >= 0;
}

/* Which gradients there are in this step: mostly all. */
static bool draw_step(struct model *model)
{
    bool steps = draw(&p.state, 3);
    bool whole = draw(&p.state, 4);
    for (int k = 0; k < model->n; k++) {
        uint64_t absent = draw(&p.state, 4);
        model->tensors[k].absent = !whole && !absent;
    }
    if (!draw(&p.state, 8)) {
        int k = (int)draw(&p.state, (uint64_t)model->n);
        model->tensors[k].count = 1 + (int64_t)draw(&p.state, 3000);
        if (model->set->me >= 0) {
            model_allocate(model, k);
            model_name(model, k);
        }
    }
    if (!steps || model->set->me < 0)
        return false;
    model_fill(model);
    return true;
}

static void start_one(int action, const bool steps[2])
{
    int m = action / 100 - 1, k = action % 100;
    pause_a_while();
    if (m < 0) {
        if (k < p.nitems)
            item_start(&p.items[k], p.grad);
    } else if (steps[m] && k < p.models[m].n && !p.models[m].tensors[k].absent)
        expect(model_submit(&p.models[m], k) == DT_SUCCESS,
               "seed %llu: submit %d", (unsigned long long)p.seed, k);
}

static void end_one(int which, const bool steps[2])
{
    int m = which - p.nitems;
    if (m < 0 && p.disputed[which]) {
        item_end(&p.items[which], DT_ERR_MISMATCH);
    } else if (m < 0) {
        item_verify(&p.items[which]);
    } else if (steps[m]) {
        dt_result_t rc = dt_grad_plan_step(p.models[m].plan, -1);
        expect(rc == DT_SUCCESS, "seed %llu phase %d: step of %s: %s",
               (unsigned long long)p.seed, p.phase, p.models[m].name,
               dt_strerror(rc));
        if (rc == DT_SUCCESS)
            model_verify(&p.models[m]);
    }
}

static void mix(void)
{
    enum { ACTIONS = 300 };
    int order[ACTIONS], n = 2 + (int)draw(&p.state, MOST_ITEMS - 1);
    bool steps[2];
    p.nitems = 0;
    for (int i = 0; i < n; i++)
        draw_item();
    for (int m = 0; m < 2; m++)
        steps[m] = draw_step(&p.models[m]);
    draw_order(&p.mine, order, ACTIONS);
    for (int i = 0; i < ACTIONS; i++)
        if (order[i] % 100 < MOST_TENSORS)
            start_one(order[i], steps);
    draw_order(&p.mine, order, p.nitems + 2);
    /* the steps of the plans come in the same order everywhere */
    for (int i = 0, m = 0; i < p.nitems + 2; i++)
        end_one(order[i] < p.nitems ? order[i] : p.nitems + m++, steps);
}

/* ---- ranks whose data ends ---- */

/* Rank r has so many allreduces; the number of those that have more is the
 * sum. */
static void joins(void)
{
    int has[MOST_RANKS], last = -1, mine;
    for (int r = 0; r < dt_size(); r++)
        has[r] = (int)draw(&p.state, 4);
    mine = has[dt_rank()];
    for (int i = 0; i < mine; i++) {
        int32_t x = 1, sum = 0, wanted = 0;
        char name[64];
        dt_grad_op_t op =
            op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &sum);
        for (int r = 0; r < dt_size(); r++)
            wanted += has[r] > i;
        snprintf(name, sizeof(name), "seed %llu data %d",
                 (unsigned long long)p.seed, i);
        pause_a_while();
        dt_result_t rc = run_op(p.grad, name, &op);
        expect(rc == DT_SUCCESS && sum == wanted, "%s: %s, sum %d of %d", name,
               dt_strerror(rc), (int)sum, (int)wanted);
    }
    dt_result_t rc = dt_grad_join(p.grad, -1, &last);
    expect(rc == DT_SUCCESS && last >= 0 && last < dt_size(),
           "seed %llu: join: %s, last %d", (unsigned long long)p.seed,
           dt_strerror(rc), last);
    expect_same((uint64_t)last * 2, "who joined last");
}

/* ---- sets that come and go ---- */

static void other_set(void)
{
    struct set set = {.me = -1};
    struct item item = {.name = "in another set"};
    const struct wish wish = wish_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F64, 50);
    for (int r = 0; r < dt_size(); r++)
        if (draw(&p.state, 2))
            set.ranks[set.n++] = r;
    if (!set.n)
        return;
    dt_result_t rc = dt_grad_set_add(p.grad, set.ranks, set.n, &set.id);
    expect(rc == DT_SUCCESS || rc == DT_ERR_INVALID_ARG,
           "seed %llu: add a set: %s", (unsigned long long)p.seed,
           dt_strerror(rc));
    expect_same((uint64_t)(int64_t)rc, "whether there was such a set");
    if (rc != DT_SUCCESS)
        return;
    set.me = dt_grad_set_rank(p.grad, set.id);
    if (set.me >= 0) {
        item_add(&item, &set, &wish);
        item_start(&item, p.grad);
        item_verify(&item);
    }
    expect(dt_grad_set_remove(p.grad, set.id) == DT_SUCCESS,
           "seed %llu: remove a set", (unsigned long long)p.seed);
}

/* ---- programs ---- */

/* Not counted are the sets' ranks alone: the draws are the same on all. */
static void make_models(void)
{
    static const char *const names[] = {"world", "part"};
    for (int m = 0; m < 2; m++) {
        const struct set *set = &p.sets[m ? p.nsets - 1 : 0];
        p.models[m] = (struct model){.set = set, .n = 6 + 3 * m};
        if (set->me >= 0)
            model_create(&p.models[m], names[m], p.grad, set, 6 + 3 * m, 0);
    }
}

static void run_program(uint64_t seed)
{
    p = (struct program){.seed = seed, .state = seed * 7919u + 1};
    p.mine = p.state * 31u + (uint64_t)dt_rank() + 1;
    p.grad = begin_engine();
    p.nsets = make_sets(p.grad, p.sets);
    make_models();
    for (p.phase = 0; p.phase < PHASES; p.phase++)
        switch (draw(&p.state, 8)) {
        case 0:
            joins();
            break;
        case 1:
            other_set();
            break;
        default:
            mix();
        }
    for (int m = 0; m < 2; m++)
        if (p.models[m].set->me >= 0)
            model_destroy(&p.models[m]);
    end_engine(p.grad);
}

/* random FIRST COUNT */
void mode_random(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[0], NULL, 10) : 1;
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (dt_rank() == 0) {
            printf("seed %llu\n", (unsigned long long)seed);
            fflush(stdout);
        }
        run_program(seed);
    }
}

/* ---- all orders ---- */

static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* Three operations in this rank's order of the 6^ranks, then as many gradients
 * of a plan. */
static void one_order(struct model *model, const struct set *world,
                      const int *order)
{
    static const char *const names[] = {"a", "b", "c"};
    struct item items[3];
    memset(items, 0, sizeof(items));
    for (int i = 0; i < 3; i++) {
        struct item *item = &items[order[i]];
        struct wish wish = wish_of(
            order[i] ? DT_GRAD_ALLREDUCE : DT_GRAD_ALLGATHER, DT_DTYPE_F32, 9);
        snprintf(item->name, sizeof(item->name), "%s", names[order[i]]);
        item_add(item, world, &wish);
        item_start(item, model->grad);
    }
    model_fill(model);
    for (int i = 0; i < 3; i++)
        expect(model_submit(model, order[i]) == DT_SUCCESS, "submit");
    for (int i = 0; i < 3; i++)
        item_verify(&items[order[2 - i]]);
    expect(dt_grad_plan_step(model->plan, -1) == DT_SUCCESS, "step");
    model_verify(model);
}

void mode_orders(int argc, char **argv)
{
    static struct model model;
    struct set sets[MOST_SETS];
    int all = 1, mine = 1;
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    make_sets(grad, sets);
    model_create(&model, "abc", grad, &sets[0], 3, 0);
    for (int r = 0; r < dt_size(); r++) {
        all *= 6;
        mine *= r < dt_rank() ? 6 : 1;
    }
    for (int i = 0; i < all; i++)
        one_order(&model, &sets[0], orders[i / mine % 6]);
    model_destroy(&model);
    end_engine(grad);
}
