/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node-ranks.c - what one rank of gpu-node.t does:
 *
 *   gpu-node-ranks [-r RANK NAME=VALUE] [-s] MODE
 *
 * under dt-fork, with the mock driver. -r sets a variable on that rank only, -s
 * gives each rank a GPU of its own. Exits 0 if this rank saw what it should. */
#include "node-ranks.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "gpu/coll/node.h"
#include "gpu/cuda/exchange.h"
#include "../descriptors.h"

static int wrong;

void expect(bool cond, const char *fmt, ...)
{
    char text[768];
    va_list ap;
    if (cond || wrong++ >= 5)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "rank %d: %s\n", dt_rank(), text);
}

void move(struct bench *b, void *dst, const void *src, size_t len)
{
    struct dt_error err = {""};
    const struct dt_gpu_copy copy = {
        .dst = dst, .src = src, .len = len, .rows = 1};
    const struct dt_gpu_ops *ops = b->gpu->ops;
    expect(ops->copy(b->gpu, b->device, &copy, b->stream, &err) == DT_SUCCESS &&
               ops->finish(b->gpu, b->device, b->stream, &err) == DT_SUCCESS,
           "copy: %s", err.text);
}

static const struct dt_shape one_number = {.coll = DT_COLL_ALLREDUCE,
                                           .dtype = DT_DTYPE_I32,
                                           .count = 1,
                                           .prescale = 1,
                                           .postscale = 1};

/* ---- modes ---- */

/* Is there a node, and how, or why not? */
static void mode_open(struct bench *b)
{
    printf("%s\n", b->node ? "open" : b->reason);
}

static void mode_each(struct bench *b)
{
    each(b);
}

static void mode_large(struct bench *b)
{
    large(b);
}

/* Every second call is short enough to be posted. */
#define MANY DT_GPU_NODE_POST /* numbers: four times what can be */
typedef uint32_t numbers_t[MANY];

static bool start(struct bench *b, size_t i, dt_stream_t stream)
{
    struct dt_error err = {""};
    struct dt_shape shape = one_number;
    uint32_t ticket;
    void *at = b->area[0] + i * sizeof(numbers_t);
    shape.count = i % 2 ? 1 : MANY;
    bool ok = dt_gpu_node_start(b->node, &shape, at, at, stream, &ticket,
                                &err) == DT_SUCCESS;
    expect(ok, "start %zu: %s", i, err.text);
    expect(!ok || ticket == dt_gpu_node_last(b->node), "ticket of %zu", i);
    return ok;
}

/* Many, on streams that take turns, with nobody waiting in between. */
static void mode_streams(struct bench *b)
{
    enum { N = 60 };
    const struct dt_gpu_ops *ops = b->gpu->ops;
    const uint32_t n = (uint32_t)b->comm->size, r = (uint32_t)b->comm->rank;
    numbers_t *numbers = malloc(N * sizeof(*numbers));
    struct dt_error err = {""};
    dt_stream_t streams[3] = {b->stream, NULL, NULL};
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < MANY; k++)
            numbers[i][k] = i + 1000 * r + k;
    move(b, b->area[0], numbers, N * sizeof(*numbers));
    for (size_t i = 1; i < 3; i++)
        expect(ops->stream_create(b->gpu, b->device, &streams[i], &err) ==
                   DT_SUCCESS,
               "stream: %s", err.text);
    for (size_t i = 0; i < N; i++)
        start(b, i, streams[i / 2 % 3]);
    for (size_t i = 0; i < 3; i++)
        ops->finish(b->gpu, b->device, streams[i], &err);
    expect(dt_gpu_node_done(b->node, dt_gpu_node_last(b->node)), "not done");
    move(b, numbers, b->area[0], N * sizeof(*numbers));
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < (i % 2 ? 1 : MANY); k++)
            expect(numbers[i][k] == n * (i + k) + 1000 * n * (n - 1) / 2,
                   "call %u, number %u", i, k);
    for (size_t i = 1; i < 3; i++)
        ops->stream_destroy(b->gpu, streams[i]);
    free(numbers);
    const struct line *line = b->node->board[b->comm->rank];
    expect(line->posted == (DT_GPU_NODE_ROUNDS + N) / 2, "%u were posted",
           line->posted);
}

/* Nobody is through before all have come. */
static void mode_barrier(struct bench *b)
{
    struct dt_error err = {""};
    uint32_t ticket;
    const bool late = b->comm->rank == 0;
    if (late)
        dt_comm_run(b->comm, &one_number, &(int32_t){1}, &(int32_t){0}, &err);
    bool ok = dt_gpu_node_start(b->node, &one_number, NULL, NULL, b->stream,
                                &ticket, &err) == DT_SUCCESS;
    expect(ok, "barrier: %s", err.text);
    if (!late) {
        usleep(20000);
        expect(!dt_gpu_node_done(b->node, ticket), "rank 0 has not come");
        dt_comm_run(b->comm, &one_number, &(int32_t){1}, &(int32_t){0}, &err);
    }
    b->gpu->ops->finish(b->gpu, b->device, b->stream, &err);
    expect(dt_gpu_node_done(b->node, ticket), "not done");
}

/* The driver's own functions, as programs use them. */
typedef int begin_fn(dt_stream_t stream, int mode);
typedef int end_fn(dt_stream_t stream, void **graph);
typedef int instantiate_fn(void **exec, void *graph, unsigned long long flags);
typedef int launch_fn(void *exec, dt_stream_t stream);
typedef int destroy_fn(void *graph);

struct graphs {
    begin_fn *begin;
    end_fn *end;
    instantiate_fn *instantiate;
    launch_fn *launch;
    destroy_fn *destroy, *destroy_exec;
};

static struct graphs find_graphs(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return (struct graphs){
        (begin_fn *)dlsym(cuda, "cuStreamBeginCapture_v2"),
        (end_fn *)dlsym(cuda, "cuStreamEndCapture"),
        (instantiate_fn *)dlsym(cuda, "cuGraphInstantiateWithFlags"),
        (launch_fn *)dlsym(cuda, "cuGraphLaunch"),
        (destroy_fn *)dlsym(cuda, "cuGraphDestroy"),
        (destroy_fn *)dlsym(cuda, "cuGraphExecDestroy"),
    };
}

/* This call recorded once, run twice, with the other one between. */
static void replay(struct bench *b, const struct graphs *graphs,
                   dt_stream_t stream, size_t i)
{
    const uint32_t n = (uint32_t)b->comm->size;
    uint32_t number = (uint32_t)b->comm->rank + 1;
    struct dt_error err;
    void *graph = NULL, *exec = NULL;
    char *at = b->area[0] + i * sizeof(numbers_t);
    move(b, at, &number, sizeof(number));
    start(b, 1 - i, stream);
    expect(graphs->begin(stream, 2) == 0, "begin");
    start(b, i, stream);
    expect(graphs->end(stream, &graph) == 0 &&
               graphs->instantiate(&exec, graph, 0) == 0,
           "end");
    for (int k = 0; k < 2; k++) {
        start(b, 1 - i, stream);
        expect(graphs->launch(exec, stream) == 0, "launch");
    }
    b->gpu->ops->finish(b->gpu, b->device, stream, &err);
    expect(dt_gpu_node_done(b->node, dt_gpu_node_last(b->node)), "not done");
    move(b, &number, at, sizeof(number));
    expect(number == n * n * (n + 1) / 2, "replayed: %u", number);
    graphs->destroy_exec(exec);
    graphs->destroy(graph);
}

/* While another one is under way elsewhere, nothing is recorded. */
static void refuse(struct bench *b, const struct graphs *graphs,
                   dt_stream_t stream)
{
    struct dt_error err = {""};
    uint32_t ticket;
    void *graph = NULL;
    if (b->comm->rank != 0) {
        start(b, 1, b->stream);
        expect(graphs->begin(stream, 2) == 0, "begin");
        dt_result_t rc = dt_gpu_node_start(b->node, &one_number, b->area[0],
                                           b->area[0], stream, &ticket, &err);
        expect(rc == DT_ERR_INVALID_ARG && strstr(err.text, "complete it"),
               "captured: %d %s", (int)rc, err.text);
        graphs->end(stream, &graph);
        graphs->destroy(graph);
    }
    dt_barrier(b->comm, DT_STREAM_NONE);
    if (b->comm->rank == 0)
        start(b, 1, b->stream);
    b->gpu->ops->finish(b->gpu, b->device, b->stream, &err);
}

static void mode_captured(struct bench *b)
{
    const struct graphs graphs = find_graphs();
    struct dt_error err;
    dt_stream_t stream;
    expect(b->gpu->ops->stream_create(b->gpu, b->device, &stream, &err) ==
               DT_SUCCESS,
           "stream");
    replay(b, &graphs, stream, 0);
    replay(b, &graphs, stream, 1);
    refuse(b, &graphs, stream);
    b->gpu->ops->stream_destroy(b->gpu, stream);
}

/* The last rank dies while the others are in an exchange with it. */
static void mode_kill(struct bench *b)
{
    struct dt_error err = {""};
    if (b->comm->rank == b->comm->size - 1)
        raise(SIGKILL);
    start(b, 0, b->stream);
    start(b, 1, b->stream);
    dt_result_t rc =
        dt_comm_run(b->comm, &one_number, &(int32_t){1}, &(int32_t){0}, &err);
    expect(rc == DT_ERR_PROC_FAILED, "host: %d", (int)rc);
    expect(!dt_gpu_node_done(b->node, dt_gpu_node_last(b->node)),
           "done without the last rank");
    dt_gpu_node_abort(b->node);
    rc = b->gpu->ops->finish(b->gpu, b->device, b->stream, &err);
    expect(rc == DT_SUCCESS, "after the abort: %s", err.text);
    expect(dt_gpu_node_done(b->node, dt_gpu_node_last(b->node)),
           "not over after the abort");
    start(b, 1, b->stream);
    expect(b->gpu->ops->finish(b->gpu, b->device, b->stream, &err) ==
               DT_SUCCESS,
           "started after the abort: %s", err.text);
}

/* ---- a rank ---- */

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    bool breaks; /* nobody can be waited for afterwards */
} modes[] = {
    {"open", mode_open, false},       {"each", mode_each, false},
    {"large", mode_large, false},     {"streams", mode_streams, false},
    {"barrier", mode_barrier, false}, {"captured", mode_captured, false},
    {"kill", mode_kill, true},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* All that a mode needs; without a node, only "open" goes on. */
static bool prepare(struct bench *b, bool own)
{
    struct dt_error err = {"no sign of a GPU"};
    int count = 0;
    b->comm = dt_comm_world();
    dt_result_t rc = dt_gpu_load(&b->gpu, &err);
    if (rc == DT_SUCCESS && b->gpu)
        rc = b->gpu->ops->devices(b->gpu, &count, &err);
    dt_barrier(b->comm, DT_STREAM_NONE); /* which may open something */
    b->descriptors = descriptors_of(getpid());
    if (rc == DT_SUCCESS && b->gpu) {
        b->device = own ? (int)b->comm->rank % count : 0;
        rc = dt_gpu_node_open(b->comm, b->gpu, b->device, &b->node, b->reason,
                              &err);
    }
    expect(rc == DT_SUCCESS && b->gpu, "no GPU, or no node: %s", err.text);
    if (rc != DT_SUCCESS || !b->node)
        return rc == DT_SUCCESS && b->gpu;
    expect(b->node->shares == (b->comm->size > (size_t)(own ? count : 1)),
           "do ranks share a GPU?");
    const struct dt_gpu_ops *ops = b->gpu->ops;
    struct dt_gpu_handle handle;
    rc = ops->stream_create(b->gpu, b->device, &b->stream, &err);
    for (size_t i = 0; rc == DT_SUCCESS && i < 2; i++) {
        void *area = NULL;
        rc =
            ops->share_alloc(b->gpu, b->device, GPU_ROOM, &area, &handle, &err);
        b->area[i] = area;
    }
    expect(rc == DT_SUCCESS, "memory: %s", err.text);
    return rc == DT_SUCCESS;
}

static void clean_up(struct bench *b, bool together)
{
    struct dt_error err = {""};
    dt_gpu_node_leave(b->node);
    if (together)
        expect(dt_barrier(b->comm, DT_STREAM_NONE) == DT_SUCCESS, "barrier");
    dt_gpu_node_close(b->node);
    for (size_t i = 0; i < 2 && b->area[i]; i++)
        expect(b->gpu->ops->share_free(b->gpu, b->area[i], &err) == DT_SUCCESS,
               "free: %s", err.text);
    if (b->stream)
        b->gpu->ops->stream_destroy(b->gpu, b->stream);
    /* connections between nodes are made when they are needed */
    expect(!together || b->comm->layout.nnodes > 1 ||
               descriptors_of(getpid()) == b->descriptors,
           "%d descriptors, %d before", descriptors_of(getpid()),
           b->descriptors);
    dt_gpu_unload(b->gpu);
}

static int run(const char *mode, bool own)
{
    struct bench b = {0};
    size_t m = 0;
    while (m < MODES && strcmp(modes[m].name, mode) != 0)
        m++;
    if (m == MODES)
        return 64;
    bool ready = prepare(&b, own);
    if (ready && !b.node && strcmp(mode, "open") != 0)
        expect(false, "no node: %s", b.reason);
    else if (ready)
        modes[m].run(&b);
    clean_up(&b, ready && !modes[m].breaks);
    dt_result_t rc = dt_finalize();
    expect(rc == DT_SUCCESS || modes[m].breaks, "finalize");
    return wrong != 0;
}

/* dt_init reads the driver's variables, so this comes before: "-r RANK A=B"
 * sets A for one rank. */
int main(int argc, char **argv)
{
    const char *fork = getenv("DT_FORK"); /* it begins with the rank */
    int rank = fork ? atoi(fork) : 0;
    bool own = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++)
        if (!strcmp(argv[i], "-s")) {
            own = true;
        } else if (i + 2 < argc) {
            if (atoi(argv[i + 1]) == rank)
                putenv(argv[i + 2]);
            i += 2;
        }
    if (i >= argc)
        return 64;
    if (dt_init() != DT_SUCCESS) {
        fprintf(stderr, "dt_init: %s\n", dt_last_error());
        return 2;
    }
    return run(argv[i], own);
}
