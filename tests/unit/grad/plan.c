/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.c - steps of a plan: in any order of submission, steps that are not as
 * those before, several plans, several threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

static struct set world_of(void)
{
    struct set set = {.id = DT_GRAD_WORLD, .n = dt_size(), .me = dt_rank()};
    for (int r = 0; r < set.n; r++)
        set.ranks[r] = r;
    return set;
}

/* The first rank's first step decides the plan; so it alone is the same in
 * each run. */
static uint64_t order_of(int argc, char **argv)
{
    uint64_t seed = argc > 0 ? strtoull(argv[0], NULL, 10) : 1;
    return 1000 * seed + (uint64_t)dt_rank();
}

/* ---- steps that are alike ---- */

static void expect_planned(const dt_grad_stats_t *before,
                           const dt_grad_stats_t *after, unsigned steps,
                           const struct model *model)
{
    expect(after->rounds == before->rounds, "%llu rounds of negotiation",
           (unsigned long long)(after->rounds - before->rounds));
    expect(after->steps - before->steps == steps, "%llu steps",
           (unsigned long long)(after->steps - before->steps));
    expect(after->buckets > before->buckets &&
               after->buckets - before->buckets ==
                   after->collectives - before->collectives,
           "nothing but buckets");
    expect(after->buckets - before->buckets < steps * (unsigned)model->n,
           "fewer buckets than gradients: %llu",
           (unsigned long long)(after->buckets - before->buckets));
    expect(after->gradients - before->gradients == steps * (unsigned)model->n,
           "%llu gradients",
           (unsigned long long)(after->gradients - before->gradients));
    expect(after->breaks == before->breaks, "the plan was not given up");
    uint64_t wire = after->wire_bytes - before->wire_bytes;
    uint64_t most = steps * model_wire_bytes(model) +
                    8 * (after->buckets - before->buckets);
    expect(wire >= steps * model_wire_bytes(model) && wire <= most,
           "%llu bytes go over the wire, at most %llu",
           (unsigned long long)wire, (unsigned long long)most);
    expect(after->bytes - before->bytes == steps * model_bytes(model),
           "%llu bytes of %llu",
           (unsigned long long)(after->bytes - before->bytes),
           (unsigned long long)(steps * model_bytes(model)));
}

/* Sums that are not exact, so that their bits depend on the order of
 * additions. */
static uint64_t inexact_steps(struct model *model)
{
    uint64_t number = 14695981039346656037u;
    int order[MOST_TENSORS];
    for (int step = 0; step < 6; step++) {
        draw_order(&model->order, order, model->n);
        model_fill(model);
        for (int k = 0; k < model->n; k++)
            if (model->tensors[k].dtype == DT_DTYPE_F32)
                for (int64_t i = 0; i < model->tensors[k].count; i++)
                    ((float *)(void *)model->tensors[k].in)[i] =
                        1.f / (float)(i % 91 + 3 * dt_rank() + step + 1);
        for (int i = 0; i < model->n; i++)
            expect(model_submit(model, order[i]) == DT_SUCCESS, "submit");
        expect(dt_grad_plan_step(model->plan, -1) == DT_SUCCESS, "step");
        for (int k = 0; k < model->n; k++)
            number = digest(number, model->tensors[k].out,
                            (size_t)model->tensors[k].count *
                                dt_dtype_size(model->tensors[k].dtype));
    }
    expect_same(number, "the bits");
    return number;
}

void mode_plan(int argc, char **argv)
{
    static struct model model;
    struct set world = world_of();
    dt_grad_options_t options = {.bucket_bytes = 65536,
                                 .first_bucket_bytes = 8192};
    dt_grad_t grad = NULL;
    expect(dt_grad_open(&options, &grad) == DT_SUCCESS, "open");
    model_create(&model, "model", grad, &world, 40, 1);
    model.order = (uint64_t)dt_rank();
    model_step(&model);
    model.order = order_of(argc, argv);
    model_step(&model);
    dt_grad_stats_t before = stats_of(grad);
    for (int i = 0; i < 5; i++)
        model_step(&model);
    dt_grad_stats_t after = stats_of(grad);
    expect_planned(&before, &after, 5, &model);
    expect((double)after.held_bytes <= 1.1 * (double)model_bytes(&model),
           "%llu bytes are held for %zu", (unsigned long long)after.held_bytes,
           model_bytes(&model));
    uint64_t number = inexact_steps(&model);
    if (dt_rank() == 0)
        printf("digest %016llx\n", (unsigned long long)number);
    model_destroy(&model);
    expect(stats_of(grad).held_bytes == 0, "nothing is held at the end");
    end_engine(grad);
}

/* ---- steps that are not ---- */

/* It takes a step or two until there is a plan again. */
static void settle(struct model *model, const char *after)
{
    for (int i = 0; i < 2; i++)
        model_step(model);
    dt_grad_stats_t before = stats_of(model->grad);
    for (int i = 0; i < 2; i++)
        model_step(model);
    dt_grad_stats_t then = stats_of(model->grad);
    expect(then.rounds == before.rounds, "%s: a plan again", after);
}

static void change_shape(struct model *model, int k, int64_t count)
{
    model->tensors[k].count = count;
    model_allocate(model, k);
    model_name(model, k);
}

/* One more, which was there from the start but not used. */
static void new_tensor(struct model *model)
{
    int k = model->n - 1;
    model->tensors[k].absent = true;
    model_step(model);
    settle(model, "all but one");
    model->tensors[k].absent = false;
    model_step(model);
    settle(model, "a new tensor");
}

static void left_out(struct model *model)
{
    for (int k = 0; k < model->n; k += 5) {
        model->tensors[k].absent = true;
        model_step(model);
        model->tensors[k].absent = false;
        model_step(model);
    }
    settle(model, "some were left out");
    for (int k = 0; k < model->n; k++)
        model->tensors[k].absent = true;
    model_step(model);
    for (int k = 0; k < model->n; k++)
        model->tensors[k].absent = false;
    settle(model, "a step of nothing");
}

/* The last rank has no data for two steps. */
static void join_amid(struct model *model)
{
    int last = -1, size = dt_size();
    if (size == 1)
        return;
    meet();
    if (dt_rank() == size - 1) {
        model->step += 2;
    } else {
        model->joined = 1;
        model_step(model);
        model_step(model);
        model->joined = 0;
    }
    dt_result_t rc = dt_grad_join(model->grad, -1, &last);
    expect(rc == DT_SUCCESS && last >= 0 && last < size, "join: %s",
           dt_strerror(rc));
    settle(model, "a join");
}

static void set_amid(struct model *model)
{
    const int ranks[] = {0};
    int set = -1;
    if (dt_size() == 1)
        return;
    model_step(model);
    expect(dt_grad_set_add(model->grad, ranks, 1, &set) == DT_SUCCESS,
           "add a set");
    model_step(model);
    if (dt_rank() == 0) {
        int32_t x = 7;
        dt_grad_op_t op =
            op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
        op.set = set;
        expect(run_op(model->grad, "in it", &op) == DT_SUCCESS && x == 7,
               "a sum in it");
    }
    model_step(model);
    expect(dt_grad_set_remove(model->grad, set) == DT_SUCCESS, "remove it");
    settle(model, "a set");
}

/* On one rank alone a gradient is of another shape, or there is none: an error
 * for all, and the next step is right. */
static void disagree(struct model *model)
{
    struct tensor *tensor = &model->tensors[2];
    int64_t count = tensor->count;
    bool odd = dt_rank() == dt_size() - 1;
    if (dt_size() == 1)
        return;
    if (odd) {
        tensor->count = count - 1;
        model_name(model, 2);
    }
    model_fill(model);
    for (int k = 0; k < model->n; k++)
        expect(model_submit(model, k) == DT_SUCCESS, "submit %d", k);
    dt_result_t rc = dt_grad_plan_step(model->plan, -1);
    expect(rc == DT_ERR_MISMATCH, "another shape on one rank: %s",
           dt_strerror(rc));
    expect(strstr(dt_last_error(), ".2.weight"), "names it: %s",
           dt_last_error());
    tensor->count = count;
    if (odd)
        model_name(model, 2);
    settle(model, "a mismatch");
}

/* One rank submits less than the others: these are told what is missing, and
 * the next step is right. */
static void submit_less(struct model *model)
{
    bool odd = dt_rank() == dt_size() - 1;
    if (dt_size() == 1)
        return;
    model_fill(model);
    for (int k = 0; k < model->n; k++)
        if (k != 3 || !odd)
            expect(model_submit(model, k) == DT_SUCCESS, "submit %d", k);
    dt_result_t rc = dt_grad_plan_step(model->plan, -1);
    expect(odd ||
               (rc == DT_ERR_MISMATCH && strstr(dt_last_error(), ".3.weight")),
           "one rank submits less: %s, %s", dt_strerror(rc), dt_last_error());
    settle(model, "one rank submitted less");
}

/* Who waits for each gradient before the next is submitted gets it, though its
 * bucket is never full. */
static void one_by_one(struct model *model)
{
    for (int step = 0; step < 2; step++) {
        model_fill(model);
        for (int k = 0; k < model->n; k++)
            expect(model_submit(model, k) == DT_SUCCESS &&
                       dt_grad_plan_wait(model->plan, k, -1) == DT_SUCCESS,
                   "wait for %d alone", k);
        expect(dt_grad_plan_step(model->plan, -1) == DT_SUCCESS, "step");
        model_verify(model);
    }
    settle(model, "one by one");
}

static void operations_between(struct model *model)
{
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "between %d", i);
        model_step(model);
        expect_alive(model->grad, name);
        expect_alive(model->grad, NULL);
    }
    settle(model, "operations between");
}

/* Wait for a gradient that has all of its bucket, but not of that before. */
static void last_alone(dt_grad_t grad)
{
    static float x[2][500];
    const int64_t shape[] = {500};
    const dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, NULL, NULL);
    dt_grad_plan_t plan = NULL;
    int ids[2];
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS, "plan");
    expect(dt_grad_plan_tensor(plan, "a", &op, &ids[0]) == DT_SUCCESS, "a");
    expect(dt_grad_plan_tensor(plan, "b", &op, &ids[1]) == DT_SUCCESS, "b");
    for (int step = 0; step < 9; step++) {
        int first = step % 4 == 3; /* in some steps, the last one first */
        for (int i = 0; i < 2; i++) {
            int k = i ^ first;
            x[k][499] = 3;
            expect(dt_grad_plan_submit(plan, ids[k], x[k], x[k]) == DT_SUCCESS,
                   "submit %d", k);
            expect(!first || dt_grad_plan_wait(plan, ids[k], -1) == DT_SUCCESS,
                   "wait for %d alone", k);
        }
        expect(dt_grad_plan_step(plan, -1) == DT_SUCCESS, "step");
        expect(x[0][499] == 3.F * (float)dt_size() &&
                   x[1][499] == 3.F * (float)dt_size(),
               "the sums");
    }
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
}

void mode_breaks(int argc, char **argv)
{
    static struct model model;
    struct set world = world_of();
    dt_grad_options_t options = {.bucket_bytes = 30000,
                                 .first_bucket_bytes = 1000};
    dt_grad_t grad = NULL;
    expect(dt_grad_open(&options, &grad) == DT_SUCCESS, "open");
    model_create(&model, "m", grad, &world, 21, order_of(argc, argv));
    new_tensor(&model);
    change_shape(&model, 4, 777);
    model_step(&model);
    settle(&model, "a changed shape");
    left_out(&model);
    set_amid(&model);
    join_amid(&model);
    operations_between(&model);
    disagree(&model);
    submit_less(&model);
    one_by_one(&model);
    last_alone(grad);
    expect(stats_of(grad).breaks > 0, "plans were given up");
    model_destroy(&model);
    end_engine(grad);
}

/* ---- several plans ---- */

/* All gradients of all of them in one order. */
static void interleave(struct model *models, int n, uint64_t *order)
{
    int at[3 * MOST_TENSORS], most = 0;
    for (int m = 0; m < n; m++) {
        most = models[m].n > most ? models[m].n : most;
        if (models[m].set->me >= 0)
            model_fill(&models[m]);
    }
    draw_order(order, at, most * n);
    for (int i = 0; i < most * n; i++) {
        struct model *model = &models[at[i] % n];
        int k = at[i] / n;
        if (model->set->me >= 0 && k < model->n)
            expect(model_submit(model, k) == DT_SUCCESS, "submit %d of %s", k,
                   model->name);
    }
    expect(dt_grad_plan_wait(models[0].plan, 0, -1) == DT_SUCCESS,
           "wait for one of %s", models[0].name);
    for (int i = 0; i < n; i++) {
        struct model *model = &models[i];
        if (model->set->me < 0)
            continue;
        expect(dt_grad_plan_step(model->plan, -1) == DT_SUCCESS, "step of %s",
               model->name);
        model_verify(model);
    }
}

void mode_plans(int argc, char **argv)
{
    static struct model models[3];
    static const char *const names[] = {"first", "second", "third"};
    struct set sets[MOST_SETS];
    uint64_t order = order_of(argc, argv);
    dt_grad_t grad = begin_engine();
    int nsets = make_sets(grad, sets);
    for (int m = 0; m < 3; m++) {
        const struct set *set = &sets[m < 2 ? 0 : nsets - 1];
        models[m].set = set;
        if (set->me >= 0)
            model_create(&models[m], names[m], grad, set, 12 + m, 0);
    }
    for (int step = 0; step < 12; step++)
        interleave(models, 3, &order);
    for (int m = 0; m < 3; m++)
        if (models[m].set->me >= 0 && (m < 2 || nsets == 1))
            model_destroy(&models[m]);
    /* the third goes with its set */
    if (nsets > 1)
        expect(dt_grad_set_remove(grad, sets[nsets - 1].id) == DT_SUCCESS,
               "remove a set with its plan");
    expect_alive(grad, "after the plans");
    end_engine(grad);
}

/* ---- several threads ---- */

struct share {
    struct model *model;
    int first;
};

static void *submit_share(void *arg)
{
    const struct share *share = arg;
    for (int k = share->first; k < share->model->n; k += 2)
        expect(model_submit(share->model, k) == DT_SUCCESS, "submit %d", k);
    return NULL;
}

static void *other_operations(void *arg)
{
    for (int i = 0; i < 20; i++)
        expect_alive(arg, "beside");
    return NULL;
}

void mode_plan_threads(int argc, char **argv)
{
    static struct model model;
    struct set world = world_of();
    dt_grad_t grad = begin_engine();
    pthread_t threads[3];
    (void)argc, (void)argv;
    model_create(&model, "shared", grad, &world, 30, 1);
    expect(!pthread_create(&threads[2], NULL, other_operations, grad),
           "thread");
    for (int step = 0; step < 12; step++) {
        struct share shares[2] = {{&model, 0}, {&model, 1}};
        model_fill(&model);
        for (int i = 0; i < 2; i++)
            expect(!pthread_create(&threads[i], NULL, submit_share, &shares[i]),
                   "thread");
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        expect(dt_grad_plan_step(model.plan, -1) == DT_SUCCESS, "step");
        model_verify(&model);
    }
    pthread_join(threads[2], NULL);
    model_destroy(&model);
    end_engine(grad);
}

/* ---- calls that are wrong ---- */

static void refuse(dt_grad_plan_t plan, const dt_grad_op_t *op,
                   const char *name, const char *what)
{
    int id = -9;
    dt_result_t rc = dt_grad_plan_tensor(plan, name, op, &id);
    expect(rc == DT_ERR_INVALID_ARG || rc == DT_ERR_UNSUPPORTED, "%s: %s", what,
           dt_strerror(rc));
    expect(id == -9, "%s: no number", what);
}

static void wrong_tensors(dt_grad_plan_t plan)
{
    static const dt_dtype_t types[] = {DT_DTYPE_I8, DT_DTYPE_U8,
                                       DT_DTYPE_F8E4M3, DT_DTYPE_F8E5M2};
    char name[1002];
    const int64_t shape[] = {3}, minus[] = {-3};
    const dt_grad_op_t fine =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, NULL, NULL);
    dt_grad_op_t op = fine;
    memset(name, 'n', 1001);
    name[1001] = '\0';
    refuse(plan, &fine, name, "a name of 1001 bytes");
    refuse(plan, &fine, "", "a name of no bytes");
    refuse(plan, &fine, NULL, "name NULL");
    refuse(plan, NULL, "null", "op NULL");
    for (int i = 0; i < 4; i++) {
        op.dtype = op.wire = types[i];
        refuse(plan, &op, "type", "a type of 8 bits");
    }
    op = fine;
    op.kind = DT_GRAD_BROADCAST;
    refuse(plan, &op, "kind", "a broadcast");
    op = fine;
    op.op = DT_OP_MAX;
    refuse(plan, &op, "op", "a maximum");
    op = fine;
    op.ndim = 17;
    refuse(plan, &op, "ndim", "17 dimensions");
    op = fine;
    op.shape = minus;
    refuse(plan, &op, "shape", "-3 elements");
}

/* The others wait outside until this rank has looked. */
static void wrong_calls(dt_grad_plan_t plan, const dt_grad_op_t *op, int id,
                        float *x)
{
    int again = -1;
    expect(dt_grad_plan_submit(plan, -1, x, x) == DT_ERR_INVALID_ARG,
           "gradient -1");
    expect(dt_grad_plan_submit(plan, 99, x, x) == DT_ERR_INVALID_ARG,
           "gradient 99");
    expect(dt_grad_plan_submit(plan, id, NULL, x) == DT_ERR_INVALID_ARG,
           "in NULL");
    expect(dt_grad_plan_submit(plan, id, x, NULL) == DT_ERR_INVALID_ARG,
           "out NULL");
    expect(dt_grad_plan_wait(plan, 99, 0) == DT_ERR_INVALID_ARG, "wait 99");
    expect(dt_grad_plan_wait(plan, id, 0) == DT_SUCCESS,
           "wait for what was not submitted");
    expect(dt_grad_plan_submit(plan, id, x, x) == DT_SUCCESS, "submit");
    if (dt_size() == 1) /* nobody is waited for: it may be over already */
        return;
    expect(dt_grad_plan_submit(plan, id, x, x) == DT_ERR_INVALID_ARG,
           "submit twice");
    expect(dt_grad_plan_tensor(plan, "one", op, &again) == DT_ERR_INVALID_ARG,
           "change it under way");
    expect(dt_grad_plan_wait(plan, id, 0.02) == DT_IN_PROGRESS,
           "wait for the others");
    expect(dt_grad_plan_step(plan, 0) == DT_IN_PROGRESS, "step, 0 seconds");
    expect(dt_grad_plan_step(plan, 0.02) == DT_IN_PROGRESS, "step, 20 ms");
}

void mode_plan_local(int argc, char **argv)
{
    float x[3] = {1, 2, 3};
    const int64_t shape[] = {3};
    const dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, NULL, NULL);
    dt_grad_plan_t plan = NULL, none = NULL;
    int id = -1;
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    expect(dt_grad_plan_create(grad, 4711, &none) == DT_ERR_INVALID_ARG,
           "a plan of no set");
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS, "plan");
    expect(dt_grad_plan_tensor(plan, "one", &op, &id) == DT_SUCCESS && id == 0,
           "number 0");
    for (int step = 0; step < 6; step++) {
        bool me = dt_rank() == step % dt_size();
        for (int i = 0; i < 3; i++)
            x[i] = (float)(i + 1);
        if (me) {
            wrong_tensors(plan);
            wrong_calls(plan, &op, id, x);
        }
        meet();
        if (!me)
            expect(dt_grad_plan_submit(plan, id, x, x) == DT_SUCCESS, "submit");
        expect(step % 2 || dt_grad_plan_wait(plan, id, -1) == DT_SUCCESS,
               "wait");
        expect(dt_grad_plan_step(plan, -1) == DT_SUCCESS, "step");
        expect(x[2] == 3.f * (float)dt_size(), "the sum");
        meet();
    }
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
    end_engine(grad);
}
