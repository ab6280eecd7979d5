/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* loss.c - ranks that are killed, and ranks that never come: the others are
 * told who, and end by themselves. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "grad.h"
#include "memory.h"

/* How the others ended; the text belongs to the thread's last call. */
static void report(struct ended ended, int lost)
{
    char rank[32];
    snprintf(rank, sizeof(rank), "rank %d", lost);
    printf("rank %d: %s: %s\n", dt_rank(), dt_strerror(ended.rc), ended.text);
    fflush(stdout);
    expect(ended.rc == DT_ERR_PROC_FAILED, "process failed: %s",
           dt_strerror(ended.rc));
    expect(strstr(ended.text, rank), "names %s: %s", rank, ended.text);
}

static struct ended ended_of(dt_result_t rc)
{
    struct ended ended = {.rc = rc};
    if (rc < 0)
        snprintf(ended.text, sizeof(ended.text), "%s", dt_last_error());
    return ended;
}

/* From now on nothing works, and nothing hangs. */
static void expect_dead(dt_grad_t grad)
{
    int32_t x = 1;
    int n = 0;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
    dt_grad_plan_t plan = NULL;
    expect(run_op(grad, "later", &op) == DT_ERR_PROC_FAILED, "a later one");
    expect(dt_grad_join(grad, -1, &n) == DT_ERR_PROC_FAILED, "a later join");
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_ERR_PROC_FAILED,
           "a later plan");
    dt_grad_close(grad);
    expect(dt_finalize() == DT_SUCCESS, "finalize");
}

/* The doomed rank is killed by a thread of its own after so many
 * microseconds. */
static void *reaper(void *arg)
{
    const struct timespec *pause = arg;
    nanosleep(pause, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void doom(long us)
{
    static struct timespec pause;
    pthread_t thread;
    pause.tv_nsec = us * 1000;
    if (pthread_create(&thread, NULL, reaper, &pause))
        abort();
}

/* ---- phases ---- */

/* The others wait for what it has not started. */
static struct ended waiting(dt_grad_t grad, bool doomed, long us)
{
    int32_t x = 1;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
    dt_grad_work_t work = NULL;
    if (!doomed && dt_grad_start(grad, "waits", &op, 1, &work))
        return ended_of(DT_ERR_SYSTEM);
    meet();
    if (doomed)
        doom(us);
    for (; doomed; pause())
        ;
    return finish(work);
}

/* Small operations without end. */
static struct ended negotiation(dt_grad_t grad, bool doomed, long us)
{
    int32_t x = 1, out[8];
    struct ended ended = {DT_SUCCESS, ""};
    dt_grad_op_t op;
    dt_grad_work_t work[8];
    if (doomed)
        doom(us);
    for (;;) {
        for (int i = 0; i < 8; i++) {
            op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &out[i]);
            dt_result_t rc = dt_grad_start(grad, NULL, &op, 1, &work[i]);
            if (rc != DT_SUCCESS)
                return ended_of(rc);
        }
        for (int i = 0; i < 8; i++) {
            struct ended one = finish(work[i]);
            if (ended.rc == DT_SUCCESS)
                ended = one;
        }
        if (ended.rc != DT_SUCCESS)
            return ended;
    }
}

/* Steps of a plan without end. */
static struct ended bucket(dt_grad_t grad, bool doomed, long us)
{
    enum { TENSORS = 8, LENGTH = 200000 };
    static void *in[TENSORS]; /* they stay: another thread may use them */
    const int64_t shape[] = {LENGTH};
    dt_grad_plan_t plan = NULL;
    dt_result_t rc = dt_grad_plan_create(grad, 0, &plan);
    int id[TENSORS];
    char name[16];
    for (int k = 0; rc == DT_SUCCESS && k < TENSORS; k++) {
        dt_grad_op_t op =
            op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, NULL, NULL);
        in[k] = memory_get(LENGTH * sizeof(float));
        snprintf(name, sizeof(name), "t%d", k);
        rc = dt_grad_plan_tensor(plan, name, &op, &id[k]);
    }
    for (int step = 0; rc == DT_SUCCESS; step++) {
        if (step == 3 && doomed)
            doom(us);
        for (int k = 0; rc == DT_SUCCESS && k < TENSORS; k++)
            rc = dt_grad_plan_submit_on(plan, id[k], in[k], in[k],
                                        memory_stream());
        if (rc == DT_SUCCESS)
            rc = dt_grad_plan_step(plan, -1);
    }
    return ended_of(rc);
}

static struct ended joining(dt_grad_t grad, bool doomed, long us)
{
    int last;
    meet();
    if (doomed)
        doom(us);
    for (; doomed; pause())
        ;
    return ended_of(dt_grad_join(grad, -1, &last));
}

static struct ended adding(dt_grad_t grad, bool doomed, long us)
{
    const int ranks[] = {0};
    int set;
    meet();
    if (doomed)
        doom(us);
    for (; doomed; pause())
        ;
    return ended_of(dt_grad_set_add(grad, ranks, 1, &set));
}

/* A plan that waits for a gradient of the doomed rank. */
static struct ended planning(dt_grad_t grad, bool doomed, long us)
{
    float x = 1;
    int id;
    dt_grad_plan_t plan = NULL;
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 0, NULL, NULL, NULL);
    dt_result_t rc = dt_grad_plan_create(grad, 0, &plan);
    if (rc == DT_SUCCESS)
        rc = dt_grad_plan_tensor(plan, "t", &op, &id);
    for (int step = 0; rc == DT_SUCCESS && step < 4; step++) {
        if (step == 3)
            meet();
        if (step == 3 && doomed)
            doom(us);
        for (; step == 3 && doomed; pause())
            ;
        rc = dt_grad_plan_submit(plan, id, &x, &x);
        if (rc == DT_SUCCESS)
            rc = dt_grad_plan_step(plan, -1);
    }
    return ended_of(rc);
}

static const struct phase {
    const char *name;
    struct ended (*fn)(dt_grad_t grad, bool doomed, long us);
} phases[] = {
    {"waiting", waiting}, {"negotiation", negotiation},
    {"bucket", bucket},   {"join", joining},
    {"set", adding},      {"plan", planning},
};

static struct ended in_open(bool doomed, dt_grad_t *grad)
{
    if (doomed)
        raise(SIGKILL);
    return ended_of(dt_grad_open(NULL, grad));
}

/* The others close it, and may find that it has gone, or may not. */
static void in_close(bool doomed)
{
    dt_grad_t grad = begin_engine();
    expect_alive(grad, "alive");
    if (doomed)
        raise(SIGKILL);
    dt_result_t rc = dt_grad_close(grad);
    printf("rank %d: %s: close\n", dt_rank(), dt_strerror(rc));
    expect(rc == DT_ERR_PROC_FAILED, "close without it: %s", dt_strerror(rc));
    dt_finalize();
}

/* lose PHASE RANK MICROSECONDS */
void mode_lose(int argc, char **argv)
{
    const char *name = argc > 2 ? argv[0] : "";
    int lost = argc > 2 ? atoi(argv[1]) : 0;
    long us = argc > 2 ? atol(argv[2]) : 0;
    bool doomed = dt_rank() == lost;
    dt_grad_t grad = NULL;
    if (!strcmp(name, "close")) {
        in_close(doomed);
        return;
    }
    if (!strcmp(name, "open")) {
        report(in_open(doomed, &grad), lost);
        dt_grad_close(grad);
        expect(dt_finalize() == DT_SUCCESS, "finalize");
        return;
    }
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        if (!strcmp(phases[i].name, name)) {
            grad = begin_engine();
            expect_alive(grad, "alive");
            report(phases[i].fn(grad, doomed, us), lost);
            expect_dead(grad);
            return;
        }
    expect(false, "no phase %s", name);
}

/* ---- ranks that never come ---- */

/* Each waits for what the others never start. */
void mode_absent(int argc, char **argv)
{
    char name[32];
    int32_t x = 1;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
    dt_grad_work_t work = NULL;
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    snprintf(name, sizeof(name), "only %d", dt_rank());
    expect(dt_grad_start(grad, name, &op, 1, &work) == DT_SUCCESS, "start");
    struct ended ended = finish(work);
    printf("rank %d: %s: %s\n", dt_rank(), dt_strerror(ended.rc), ended.text);
    /* the first to give up may take the others along */
    expect(ended.rc == DT_ERR_TIMED_OUT || ended.rc == DT_ERR_PROC_FAILED,
           "timed out: %s", dt_strerror(ended.rc));
    expect(ended.rc != DT_ERR_TIMED_OUT || strstr(ended.text, name),
           "names it: %s", ended.text);
    dt_grad_close(grad);
    dt_finalize();
}

/* The engine says who waits for what, and ends it after a while. */
void mode_stall(int argc, char **argv)
{
    const dt_grad_options_t options = {.stall_seconds = 0.3,
                                       .stall_fatal = 1.5};
    dt_grad_t grad = NULL;
    int32_t x = 1;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
    dt_grad_work_t work = NULL;
    (void)argc, (void)argv;
    expect(dt_grad_open(&options, &grad) == DT_SUCCESS, "open");
    expect_alive(grad, "alive");
    expect(dt_grad_start(grad, dt_rank() ? "others" : "mine", &op, 1, &work) ==
               DT_SUCCESS,
           "start");
    struct ended ended = finish(work);
    printf("rank %d: %s: %s\n", dt_rank(), dt_strerror(ended.rc), ended.text);
    expect(ended.rc == DT_ERR_TIMED_OUT || ended.rc == DT_ERR_PROC_FAILED,
           "stalled for too long: %s", dt_strerror(ended.rc));
    dt_grad_close(grad);
    dt_finalize();
}
