/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-world.c - a job whose ranks are threads of the test. */
#include "fake-world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/api.h"
#include "fake-world-place.h"
#include "../../descriptors.h"

struct message {
    int from, to;
    size_t bytes;
    struct message *next;
    char data[];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int size, nodes;
    bool broken;
    struct place place;
    struct dt_comm comm[FAKE_WORLD_MAX];
    struct place *places; /* what was split off */
    struct dt_comm *comms;
    char id[FAKE_WORLD_MAX][128];
    void (*fn)(void *);
    void *arg;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .moved = PTHREAD_COND_INITIALIZER};

static struct {
    atomic_int calls, die_at, deaf_at, waits, lost_at;
} counter[FAKE_WORLD_MAX];

static const char *run_id;
static atomic_bool leaving;
static _Atomic double left = -1;
static _Thread_local int my_rank = DT_ERR_NOT_INITIALIZED;

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
    if (counter[my_rank].deaf_at >= 0)
        break_world();
    return NULL;
}

static int node_of(int rank)
{
    return (int)((long)rank * world.nodes / world.size);
}

static void begin(int size, int nodes)
{
    char own[64];
    snprintf(own, sizeof(own), "run \"7\" \xff\n%d", (int)getpid());
    world.size = size;
    world.nodes = nodes;
    world.broken = false;
    world.place = (struct place){.size = size};
    for (int r = 0; r < size; r++) {
        world.comm[r] =
            (struct dt_comm){.place = &world.place, .rank = r, .world = r};
        counter[r].calls = counter[r].waits = 0;
        counter[r].die_at = counter[r].deaf_at = counter[r].lost_at = -1;
        int n = snprintf(world.id[r], sizeof(world.id[r]), "%s",
                         run_id ? run_id : own);
        if (nodes > 1)
            snprintf(world.id[r] + n, sizeof(world.id[r]) - (size_t)n,
                     "-node%d", node_of(r));
    }
}

static void drop_messages(struct place *place)
{
    while (place->messages) {
        struct message *next = place->messages->next;
        free(place->messages);
        place->messages = next;
    }
}

static void end(void)
{
    drop_messages(&world.place);
    while (world.places) {
        struct place *next = world.places->next;
        drop_messages(world.places);
        free(world.places);
        world.places = next;
    }
    while (world.comms) {
        struct dt_comm *next = world.comms->next;
        free(world.comms);
        world.comms = next;
    }
}

void fake_world_run_nodes(int size, int nodes, void (*fn)(void *arg), void *arg)
{
    pthread_t thread[FAKE_WORLD_MAX];
    int before = descriptors_of(getpid());
    begin(size, nodes);
    world.fn = fn;
    world.arg = arg;
    for (int r = 0; r < size; r++)
        if (pthread_create(&thread[r], NULL, rank_main, (void *)(intptr_t)r))
            abort();
    for (int r = 0; r < size; r++)
        pthread_join(thread[r], NULL);
    int more = descriptors_of(getpid()) - before;
    if (more != 0 && !world.broken) { /* a rank that dies closes nothing */
        fprintf(stderr, "%d more descriptors are open than before\n", more);
        abort();
    }
    end();
}

void fake_world_run(int size, void (*fn)(void *arg), void *arg)
{
    fake_world_run_nodes(size, 1, fn, arg);
}

_Noreturn void fake_world_die(void)
{
    break_world();
    pthread_exit(NULL);
}

int fake_world_calls(void)
{
    return counter[my_rank].calls;
}

void fake_world_die_at(int call)
{
    counter[my_rank].die_at = call;
}

void fake_world_deaf_at(int call)
{
    counter[my_rank].deaf_at = call;
}

void fake_world_lost_at(int wait)
{
    counter[my_rank].lost_at = wait;
}

void fake_world_run_id(const char *id)
{
    run_id = id;
}

void fake_world_leave(bool leave, double seconds)
{
    leaving = leave;
    left = seconds;
}

/* ---- barriers ---- */

/* All ranks arrive; false if one never will. */
static bool meet(struct dt_comm *comm)
{
    struct place *place = comm->place;
    pthread_mutex_lock(&world.lock);
    int generation = place->generation;
    if (++place->arrived == place->size) {
        place->arrived = 0;
        place->generation++;
        pthread_cond_broadcast(&world.moved);
    }
    while (generation == place->generation && !world.broken)
        pthread_cond_wait(&world.moved, &world.lock);
    bool met = generation != place->generation;
    pthread_mutex_unlock(&world.lock);
    return met;
}

dt_result_t place_gone(void)
{
    static const struct dt_error why = {"a rank is gone"};
    return dt_api_return(DT_ERR_PROC_FAILED, &why);
}

bool place_post(struct dt_comm *comm, const void *buf, bool *deaf)
{
    int call = counter[comm->world].calls++;
    *deaf = call == counter[comm->world].deaf_at;
    if (call == counter[comm->world].die_at) {
        if (my_rank >= 0)
            fake_world_die();
        break_world();
        return false;
    }
    comm->place->post[comm->rank] = buf;
    return meet(comm);
}

dt_result_t place_leave(struct dt_comm *comm, bool deaf)
{
    return meet(comm) && !deaf ? DT_SUCCESS : place_gone();
}

/* ---- messages ----
 *
 * A send leaves a copy and returns; in a group a receive waits for its end. */

struct receive {
    void *buf;
    size_t bytes;
    int peer;
    struct dt_comm *comm;
};

static _Thread_local int depth, receives;
static _Thread_local struct receive receive[4 * FAKE_WORLD_MAX];

dt_result_t dt_send(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    size_t bytes = count * dt_dtype_size(dtype);
    struct message *new = malloc(sizeof(*new) + bytes);
    if (!new)
        abort();
    *new = (struct message){comm->rank, peer, bytes, NULL};
    if (bytes > 0)
        memcpy(new->data, buf, bytes);
    pthread_mutex_lock(&world.lock);
    struct message **at = &comm->place->messages;
    while (*at)
        at = &(*at)->next;
    *at = new;
    pthread_cond_broadcast(&world.moved);
    pthread_mutex_unlock(&world.lock);
    return DT_SUCCESS;
}

/* The first message of that way, taken out, or NULL. */
static struct message *take(struct place *place, int from, int to)
{
    for (struct message **at = &place->messages; *at; at = &(*at)->next)
        if ((*at)->from == from && (*at)->to == to) {
            struct message *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

static dt_result_t await(const struct receive *r)
{
    struct message *found;
    pthread_mutex_lock(&world.lock);
    while (!(found = take(r->comm->place, r->peer, r->comm->rank)) &&
           !world.broken)
        pthread_cond_wait(&world.moved, &world.lock);
    pthread_mutex_unlock(&world.lock);
    if (!found)
        return place_gone();
    if (found->bytes != r->bytes)
        abort(); /* the caller's mistake */
    if (r->bytes > 0)
        memcpy(r->buf, found->data, r->bytes);
    free(found);
    return DT_SUCCESS;
}

dt_result_t dt_recv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    const struct receive mine = {buf, count * dt_dtype_size(dtype), peer, comm};
    if (depth == 0)
        return await(&mine);
    if (receives == 4 * FAKE_WORLD_MAX)
        abort();
    receive[receives++] = mine;
    return DT_SUCCESS;
}

dt_result_t dt_isend(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    *request = NULL; /* complete */
    return dt_send(buf, count, dtype, peer, comm, stream);
}

dt_result_t dt_irecv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    (void)stream;
    struct receive *new = malloc(sizeof(*new));
    if (!new)
        abort();
    *new = (struct receive){buf, count * dt_dtype_size(dtype), peer, comm};
    *request = (dt_request_t) new;
    return DT_SUCCESS;
}

dt_result_t dt_wait(dt_request_t *request)
{
    struct receive *mine = (struct receive *)*request;
    bool lost = my_rank >= 0 && counter[my_rank].lost_at >= 0 &&
                counter[my_rank].waits++ >= counter[my_rank].lost_at;
    if (lost)
        break_world();
    dt_result_t rc = lost ? place_gone() : mine ? await(mine) : DT_SUCCESS;
    free(mine);
    *request = NULL;
    return rc;
}

dt_result_t dt_group_start(void)
{
    depth++;
    return DT_SUCCESS;
}

dt_result_t dt_group_end(void)
{
    dt_result_t rc = DT_SUCCESS;
    if (--depth > 0)
        return rc;
    for (int i = 0; i < receives; i++) {
        dt_result_t end = await(&receive[i]);
        rc = rc == DT_SUCCESS ? end : rc;
    }
    receives = 0;
    return rc;
}

/* ---- communicators ---- */

struct split {
    int color, key, rank;
    struct place *place; /* of the color, made by its first rank */
};

/* Is a before b among those of one color? */
static bool before(const struct split *a, const struct split *b)
{
    return a->color == b->color &&
           (a->key < b->key || (a->key == b->key && a->rank < b->rank));
}

static int rank_in_color(struct dt_comm *comm, const struct split *mine,
                         int *size, const struct split **first)
{
    int rank = 0;
    *size = 0;
    *first = mine;
    for (int r = 0; r < comm->place->size; r++) {
        const struct split *theirs = comm->place->post[r];
        *size += theirs->color == mine->color;
        rank += before(theirs, mine);
        if (before(theirs, *first))
            *first = theirs;
    }
    return rank;
}

dt_result_t dt_comm_split(dt_comm_t comm, int color, int key,
                          dt_comm_t *newcomm)
{
    struct split mine = {.color = color, .key = key, .rank = comm->rank};
    const struct split *first;
    bool deaf;
    int size;
    if (!place_post(comm, &mine, &deaf))
        return place_gone();
    int rank = rank_in_color(comm, &mine, &size, &first);
    struct dt_comm *new = calloc(1, sizeof(*new));
    struct place *place = rank == 0 ? calloc(1, sizeof(*place)) : NULL;
    if (!new || (rank == 0 && !place))
        abort();
    pthread_mutex_lock(&world.lock);
    *new = (struct dt_comm){.rank = rank, .world = comm->world};
    new->next = world.comms;
    world.comms = new;
    if (place) {
        place->size = size;
        place->next = world.places;
        world.places = mine.place = place;
    }
    pthread_mutex_unlock(&world.lock);
    if (!meet(comm))
        return place_gone();
    new->place = first->place;
    *newcomm = color < 0 ? NULL : new;
    return place_leave(comm, deaf);
}

dt_result_t dt_comm_destroy(dt_comm_t comm)
{
    return comm ? dt_barrier(comm, DT_STREAM_NONE) : DT_SUCCESS;
}

dt_comm_t dt_comm_world(void)
{
    return my_rank < 0 ? NULL : &world.comm[my_rank];
}

int dt_comm_rank(dt_comm_t comm)
{
    return comm ? comm->rank : DT_ERR_NOT_INITIALIZED;
}

int dt_comm_size(dt_comm_t comm)
{
    return comm ? comm->place->size : DT_ERR_NOT_INITIALIZED;
}

/* ---- who am I ---- */

int dt_rank(void)
{
    return my_rank;
}

int dt_size(void)
{
    return my_rank < 0 ? DT_ERR_NOT_INITIALIZED : world.size;
}

int dt_node_rank(void)
{
    return my_rank < 0 ? DT_ERR_NOT_INITIALIZED : node_of(my_rank);
}

int dt_num_nodes(void)
{
    return my_rank < 0 ? DT_ERR_NOT_INITIALIZED : world.nodes;
}

int dt_local_rank(void)
{
    int rank = 0;
    for (int r = 0; r < my_rank; r++)
        rank += node_of(r) == node_of(my_rank);
    return my_rank < 0 ? DT_ERR_NOT_INITIALIZED : rank;
}

int dt_local_size(void)
{
    int size = 0;
    for (int r = 0; r < world.size; r++)
        size += node_of(r) == node_of(my_rank);
    return my_rank < 0 ? DT_ERR_NOT_INITIALIZED : size;
}

int dt_restart_count(void)
{
    return 2;
}

const char *dt_run_id(void)
{
    return my_rank < 0 ? "none" : world.id[my_rank];
}

bool dt_should_exit(void)
{
    return leaving;
}

double dt_time_left(void)
{
    return left;
}
