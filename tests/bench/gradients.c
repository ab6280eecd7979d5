/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gradients.c - what the steps of a training cost that has its gradients
 * averaged, without the training:
 *
 *   dt-run -n 2 gradients [MODEL]      resnet20, small204 or mlp6; all
 *
 * packed:    one dt_allreduce of all gradients, which lie in one buffer: no
 *            copies, no names, and it begins when the last one is there
 * plan:      dt_grad_plan_submit of each, last layer first, and
 *            dt_grad_plan_step
 * operation: dt_grad_start of each, which is negotiated in each step
 * blocking:  dt_allreduce of each
 *
 * In turn in each round, in an order that changes; all gradients are written
 * before each step. Printed are medians over the rounds: the wall time of the
 * slowest rank in the fastest step of a round, the CPU time of the mean rank
 * with all its threads, and their ratios to packed, of the same round; and for
 * plan what one submit takes, of the fastest step. */
#include "job.h"

#include <math.h>

#include "dt_grad.h"

enum { MOST_TENSORS = 256, STEPS = 10 };

struct model {
    const char *name;
    int n;
    size_t count[MOST_TENSORS], floats;
};

static void add(struct model *model, size_t count, int times)
{
    for (; times > 0; times--) {
        model->count[model->n++] = count;
        model->floats += count;
    }
}

/* ResNet-20 of He et al. 2016, with projections where the width changes. */
static void fill_resnet20(struct model *model)
{
    add(model, 3 * 16 * 9, 1);
    add(model, 16, 2);
    for (size_t width = 16; width <= 64; width *= 2)
        for (int block = 0; block < 3; block++) {
            size_t from = block || width == 16 ? width : width / 2;
            add(model, from * width * 9, 1);
            add(model, width, 2);
            add(model, width * width * 9, 1);
            add(model, width, 2);
            add(model, from * width, from != width);
        }
    add(model, 640, 1);
    add(model, 10, 1);
}

static void fill_small204(struct model *model)
{
    for (int layer = 0; layer < 102; layer++) {
        add(model, 54 * 108, 1);
        add(model, 54, 1);
    }
}

static void fill_mlp6(struct model *model)
{
    static const size_t widths[] = {1024, 1024, 2048, 512};
    for (int layer = 0; layer < 3; layer++) {
        add(model, widths[layer] * widths[layer + 1], 1);
        add(model, widths[layer + 1], 1);
    }
}

/* ---- contenders ---- */

enum { PACKED, PLAN, OPERATION, BLOCKING, WAYS };
static const char *const ways[WAYS] = {"packed", "plan", "operation",
                                       "blocking"};

struct job {
    struct model model;
    float *all, *at[MOST_TENSORS];
    dt_grad_t grad;
    dt_grad_plan_t plan;
    int id[MOST_TENSORS];
    double submit; /* the least seconds of one */
};

static dt_grad_op_t op_of(struct job *job, int k, int64_t *shape)
{
    *shape = (int64_t)job->model.count[k];
    return (dt_grad_op_t){.kind = DT_GRAD_ALLREDUCE,
                          .dtype = DT_DTYPE_F32,
                          .wire = DT_DTYPE_F32,
                          .op = DT_OP_SUM,
                          .ndim = 1,
                          .shape = shape,
                          .prescale = 1,
                          .postscale = 1,
                          .in = job->at[k],
                          .out = job->at[k]};
}

static void set_up(struct job *job)
{
    size_t at = 0;
    job->all = malloc(job->model.floats * sizeof(float));
    need(job->all, "memory");
    need(dt_grad_open(NULL, &job->grad) == DT_SUCCESS &&
             dt_grad_plan_create(job->grad, DT_GRAD_WORLD, &job->plan) ==
                 DT_SUCCESS,
         "the engine");
    for (int k = 0; k < job->model.n; k++) {
        char name[32];
        int64_t shape;
        job->at[k] = job->all + at;
        at += job->model.count[k];
        dt_grad_op_t op = op_of(job, k, &shape);
        snprintf(name, sizeof(name), "layer.%d", k);
        need(dt_grad_plan_tensor(job->plan, name, &op, &job->id[k]) ==
                 DT_SUCCESS,
             "a tensor");
    }
    job->submit = INFINITY;
}

static void tear_down(struct job *job)
{
    need(dt_grad_plan_destroy(job->plan) == DT_SUCCESS &&
             dt_grad_close(job->grad) == DT_SUCCESS,
         "close");
    free(job->all);
}

static void step_packed(struct job *job)
{
    need(dt_allreduce(job->all, job->all, job->model.floats, DT_DTYPE_F32,
                      DT_OP_SUM, dt_comm_world(), DT_STREAM_NONE) == DT_SUCCESS,
         "allreduce");
}

static void step_plan(struct job *job)
{
    double begun = now();
    for (int k = job->model.n - 1; k >= 0; k--)
        need(dt_grad_plan_submit(job->plan, job->id[k], job->at[k],
                                 job->at[k]) == DT_SUCCESS,
             "submit");
    double each = (now() - begun) / job->model.n;
    if (each < job->submit)
        job->submit = each;
    need(dt_grad_plan_step(job->plan, -1) == DT_SUCCESS, "step");
}

static void step_operation(struct job *job)
{
    dt_grad_work_t work[MOST_TENSORS];
    for (int k = job->model.n - 1; k >= 0; k--) {
        int64_t shape;
        char name[32];
        dt_grad_op_t op = op_of(job, k, &shape);
        snprintf(name, sizeof(name), "layer.%d", k);
        need(dt_grad_start(job->grad, name, &op, 1, &work[k]) == DT_SUCCESS,
             "start");
    }
    for (int k = job->model.n - 1; k >= 0; k--) {
        need(dt_grad_wait(work[k], -1) == DT_SUCCESS, "wait");
        dt_grad_free(work[k]);
    }
}

static void step_blocking(struct job *job)
{
    for (int k = job->model.n - 1; k >= 0; k--)
        need(dt_allreduce(job->at[k], job->at[k], job->model.count[k],
                          DT_DTYPE_F32, DT_OP_SUM, dt_comm_world(),
                          DT_STREAM_NONE) == DT_SUCCESS,
             "allreduce");
}

/* ---- rounds ---- */

struct cost {
    double wall, cpu;
};

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double over_ranks(double value, dt_op_t op)
{
    need(dt_allreduce(&value, &value, 1, DT_DTYPE_F64, op, dt_comm_world(),
                      DT_STREAM_NONE) == DT_SUCCESS,
         "allreduce");
    return value;
}

static struct cost run_steps(struct job *job, int way)
{
    static void (*const steps[WAYS])(struct job *) = {
        step_packed, step_plan, step_operation, step_blocking};
    struct cost cost = {INFINITY, 0};
    for (int i = 0; i < STEPS; i++) {
        for (size_t k = 0; k < job->model.floats; k++)
            job->all[k] = (float)(k & 15) + (float)dt_rank();
        meet();
        double wall = now(), cpu = cpu_seconds();
        steps[way](job);
        wall = now() - wall;
        cpu = cpu_seconds() - cpu;
        cost.wall = fmin(cost.wall, over_ranks(wall, DT_OP_MAX));
        cost.cpu += over_ranks(cpu, DT_OP_AVG) / STEPS;
    }
    double sum = over_ranks(dt_rank(), DT_OP_SUM) + 3 * dt_size();
    need(job->all[3] == (float)sum, "the right sum");
    return cost;
}

static void print_way(const struct job *job, int way,
                      struct cost cost[WAYS][ROUNDS])
{
    double wall[ROUNDS], cpu[ROUNDS], slower[ROUNDS], dearer[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        wall[i] = cost[way][i].wall;
        cpu[i] = cost[way][i].cpu;
        slower[i] = wall[i] / cost[PACKED][i].wall;
        dearer[i] = cpu[i] / cost[PACKED][i].cpu;
    }
    printf("%-9s %7d %9.2f  %-9s %9.1f %9.1f %7.2f %7.2f", job->model.name,
           job->model.n, (double)job->model.floats / 1e6, ways[way],
           1e6 * median(wall), 1e6 * median(cpu), median(slower),
           median(dearer));
    if (way == PLAN)
        printf(" %7.0f", 1e9 * job->submit);
    putchar('\n');
}

static void measure(const char *name, void (*fill)(struct model *))
{
    static struct job job;
    static struct cost cost[WAYS][ROUNDS];
    job = (struct job){.model = {.name = name}};
    fill(&job.model);
    set_up(&job);
    for (int way = 0; way < WAYS; way++)
        run_steps(&job, way);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WAYS; i++) {
            int way = (i + round) % WAYS;
            cost[way][round] = run_steps(&job, way);
        }
    for (int way = 0; dt_rank() == 0 && way < WAYS; way++)
        print_way(&job, way, cost);
    fflush(stdout);
    tear_down(&job);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fill)(struct model *);
    } models[] = {{"resnet20", fill_resnet20},
                  {"small204", fill_small204},
                  {"mlp6", fill_mlp6}};
    need(dt_init() == DT_SUCCESS, "dt_init");
    if (dt_rank() == 0)
        printf("%-9s %7s %9s  %-9s %9s %9s %7s %7s %7s\n", "model", "tensors",
               "10^6", "way", "wall, us", "CPU, us", "ratio", "ratio",
               "ns each");
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (argc < 2 || !strcmp(argv[1], models[i].name))
            measure(models[i].name, models[i].fill);
    need(dt_finalize() == DT_SUCCESS, "dt_finalize");
    return 0;
}
