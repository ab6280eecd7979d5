/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* train.c - a training of which every step sums the numbers of its samples. */
#include "train.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"

enum { SAMPLES = 960, BATCH = 4, WEIGHTS = 50000 };

static struct {
    int argc;
    char **argv; /* the losses */
    const char *dir;
    /* what is committed */
    int64_t position, step, sum;
    float weights[WEIGHTS];
} t;

/* ---- losses ---- */

static long started_as(void)
{
    const char *rank = getenv("PMIX_RANK");
    return rank ? strtol(rank, NULL, 10) : 0;
}

/* Is it the time of this loss, and is it the first time? */
static bool is_time(const char *loss, const char *phase, int64_t step)
{
    char name[32], path[512];
    long rank;
    int64_t when;
    if (sscanf(loss, "%31[a-z].%ld.%" SCNd64, name, &rank, &when) != 3 ||
        strcmp(name, phase) != 0 || rank != started_as() ||
        (step >= 0 && step < when))
        return false;
    snprintf(path, sizeof(path), "%s/%s", t.dir, loss);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

static bool lost(const char *phase)
{
    for (int i = 0; i < t.argc; i++)
        if (is_time(t.argv[i], phase, t.step))
            return true;
    return false;
}

static void *kill_later(void *arg)
{
    const int64_t us = (int64_t)(intptr_t)arg;
    const struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
    raise(SIGKILL);
    return NULL;
}

static void lose_later(const char *phase)
{
    pthread_t thread;
    for (int i = 0; i < t.argc; i++)
        if (is_time(t.argv[i], phase, -1))
            pthread_create(&thread, NULL, kill_later,
                           (void *)(intptr_t)strtol(strrchr(t.argv[i], '.') + 1,
                                                    NULL, 10));
}

/* ---- the training ---- */

/* What a sample adds: any hash. */
static int64_t value(int64_t sample)
{
    return (int64_t)((uint64_t)(sample + 1) * 0x9e3779b97f4a7c15u >> 20);
}

/* The samples of this rank in a step of all ranks. */
static int64_t add_share(int64_t total)
{
    int64_t sum = 0;
    for (int64_t i = dt_rank(); i < total; i += dt_size())
        sum += value(t.position + i);
    return sum;
}

static dt_result_t step(dt_state_t state)
{
    static float gradient[WEIGHTS];
    int64_t left = SAMPLES - t.position, total = (int64_t)BATCH * dt_size();
    if (total > left)
        total = left;
    int64_t sum = add_share(total);
    t.step = t.position / BATCH;
    dt_request_t request;
    if (lost("before"))
        raise(SIGKILL);
    if (lost("exit"))
        _exit(3);
    dt_result_t rc =
        dt_allreduce(&sum, &sum, 1, DT_DTYPE_I64, DT_OP_SUM, WORLD);
    for (int i = 0; i < WEIGHTS; i++)
        gradient[i] = (float)(sum % 97 + i) / (float)dt_size();
    if (rc == DT_SUCCESS)
        rc = dt_iallreduce(gradient, gradient, WEIGHTS, DT_DTYPE_F32, DT_OP_SUM,
                           WORLD, &request);
    if (rc != DT_SUCCESS)
        return rc;
    if (lost("during"))
        raise(SIGKILL);
    rc = dt_wait(&request);
    if (rc != DT_SUCCESS)
        return rc;
    if (lost("between"))
        raise(SIGKILL);
    for (int i = 0; i < WEIGHTS; i++)
        t.weights[i] += 1e-3f * gradient[i];
    t.sum += sum;
    t.position += total;
    rc = dt_state_commit(state);
    if (rc == DT_SUCCESS && lost("after"))
        raise(SIGKILL);
    return rc;
}

static dt_result_t train(dt_state_t state, void *arg)
{
    dt_result_t rc = DT_SUCCESS;
    (void)arg;
    while (rc == DT_SUCCESS && t.position < SAMPLES)
        rc = step(state);
    if (rc == DT_ERR_PROC_FAILED)
        lose_later("again");
    return rc;
}

static dt_state_t make_state(void)
{
    dt_state_t state = NULL;
    expect(dt_state_create(&state) == DT_SUCCESS &&
               dt_state_register(state, "position", &t.position,
                                 sizeof(t.position)) == DT_SUCCESS &&
               dt_state_register(state, "sum", &t.sum, sizeof(t.sum)) ==
                   DT_SUCCESS &&
               dt_state_register(state, "weights", t.weights,
                                 sizeof(t.weights)) == DT_SUCCESS,
           "state");
    return state;
}

static uint64_t digest(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const unsigned char *bytes = (const unsigned char *)t.weights;
    for (size_t i = 0; i < sizeof(t.weights); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

void mode_train(int argc, char **argv)
{
    int64_t all = 0;
    t.argc = argc - 1;
    t.argv = argv + 1;
    t.dir = argv[0];
    dt_state_t state = make_state();
    dt_result_t rc = dt_elastic_run(train, state, NULL);
    for (int64_t i = 0; i < SAMPLES; i++)
        all += value(i);
    if (rc == DT_SUCCESS) {
        expect(t.sum == all, "sum %" PRId64 ", not %" PRId64, t.sum, all);
        printf("trained on %d ranks: %016" PRIx64 "\n", dt_size(), digest());
    } else {
        printf("ended: %s: %s\n", dt_strerror(rc), dt_last_error());
    }
    dt_state_destroy(state);
    if (rc == DT_SUCCESS)
        expect(dt_finalize() == DT_SUCCESS, "finalize");
    else
        dt_finalize();
}
