/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-world.c - a job whose ranks are threads of the test. */
#include "fake-world.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/api.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int size, arrived, generation;
    bool broken;
    const void *post[FAKE_WORLD_MAX];
    void (*fn)(void *);
    void *arg;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .moved = PTHREAD_COND_INITIALIZER};

static _Thread_local int my_rank = DT_ERR_NOT_INITIALIZED;
static _Thread_local int calls, die_at = -1, deaf_at = -1;

static void break_world(void)
{
    pthread_mutex_lock(&world.lock);
    world.broken = true;
    pthread_cond_broadcast(&world.moved);
    pthread_mutex_unlock(&world.lock);
}

static void *rank_main(void *rank)
{
    my_rank = (int)(intptr_t)rank;
    world.fn(world.arg);
    if (deaf_at >= 0)
        break_world();
    return NULL;
}

void fake_world_run(int size, void (*fn)(void *arg), void *arg)
{
    pthread_t thread[FAKE_WORLD_MAX];
    world.size = size;
    world.arrived = 0;
    world.broken = false;
    world.fn = fn;
    world.arg = arg;
    for (int r = 0; r < size; r++)
        if (pthread_create(&thread[r], NULL, rank_main, (void *)(intptr_t)r))
            abort();
    for (int r = 0; r < size; r++)
        pthread_join(thread[r], NULL);
}

_Noreturn void fake_world_die(void)
{
    break_world();
    pthread_exit(NULL);
}

int fake_world_calls(void)
{
    return calls;
}

void fake_world_die_at(int call)
{
    die_at = call;
}

void fake_world_deaf_at(int call)
{
    deaf_at = call;
}

/* All ranks arrive; false if one never will. */
static bool meet(void)
{
    pthread_mutex_lock(&world.lock);
    int generation = world.generation;
    if (++world.arrived == world.size) {
        world.arrived = 0;
        world.generation++;
        pthread_cond_broadcast(&world.moved);
    }
    while (generation == world.generation && !world.broken)
        pthread_cond_wait(&world.moved, &world.lock);
    bool met = generation != world.generation;
    pthread_mutex_unlock(&world.lock);
    return met;
}

static bool post(const void *buf)
{
    if (calls++ == die_at)
        fake_world_die();
    world.post[my_rank] = buf;
    return meet();
}

static dt_result_t outcome(bool met)
{
    static const struct dt_error gone = {"a rank is gone"};
    met = met && calls - 1 != deaf_at;
    return met ? DT_SUCCESS : dt_api_return(DT_ERR_PROC_FAILED, &gone);
}

dt_result_t dt_allgather(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    (void)comm, (void)stream;
    size_t bytes = count * dt_dtype_size(dtype);
    if (!post(sendbuf))
        return outcome(false);
    for (int r = 0; r < world.size; r++)
        memcpy((char *)recvbuf + (size_t)r * bytes, world.post[r], bytes);
    return outcome(meet());
}

dt_result_t dt_bcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                     dt_comm_t comm, dt_stream_t stream)
{
    (void)comm, (void)stream;
    if (!post(buf))
        return outcome(false);
    if (my_rank != root)
        memcpy(buf, world.post[root], count * dt_dtype_size(dtype));
    return outcome(meet());
}

dt_comm_t dt_comm_world(void)
{
    return my_rank < 0 ? NULL : (dt_comm_t)(void *)&world;
}

int dt_rank(void)
{
    return my_rank;
}

int dt_size(void)
{
    return my_rank < 0 ? DT_ERR_NOT_INITIALIZED : world.size;
}

int dt_restart_count(void)
{
    return 2;
}

const char *dt_run_id(void)
{
    return "run \"7\" \xff\n";
}
