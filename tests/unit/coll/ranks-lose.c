/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks-lose.c - a rank is lost inside a collective, of an algorithm that
 * is forced; the others are told, in bounded time:
 *
 *   coll-ranks-lose list RANKS NODES             what there is to try
 *   coll-ranks-lose kill|stop CALL ALGORITHM SEED   a rank, under dt-fork
 *
 * The seed says who is lost, when, and with which sizes. A rank exits with 0 if
 * it saw what it should; the first that does says what it was in. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/algorithm/algorithm.h"
#include "coll/engine/comm.h"
#include "dt.h"

#define MOST  200000 /* elements of a block */
#define RANKS 16

/* What libdt does without a plan, in a node; and where there is no choice. */
#define SHORT   "short"
#define CHUNKS  "chunks"
#define MESSAGE "message"

enum form { EVEN, UNEVEN, ONE }; /* ONE: of one element */

static const struct call {
    const char *name;
    enum dt_coll coll;
    enum form form;
} calls[] = {
    {"allreduce", DT_COLL_ALLREDUCE, EVEN},
    {"barrier", DT_COLL_ALLREDUCE, ONE},
    {"reduce", DT_COLL_REDUCE, EVEN},
    {"bcast", DT_COLL_BCAST, EVEN},
    {"allgather", DT_COLL_ALLGATHER, EVEN},
    {"allgatherv", DT_COLL_ALLGATHER, UNEVEN},
    {"split", DT_COLL_ALLGATHER, EVEN},
    {"reduce_scatter", DT_COLL_REDUCE_SCATTER, EVEN},
    {"reduce_scatterv", DT_COLL_REDUCE_SCATTER, UNEVEN},
    {"alltoall", DT_COLL_ALLTOALL, EVEN},
    {"alltoallv", DT_COLL_ALLTOALL, UNEVEN},
    {"gather", DT_COLL_GATHER, EVEN},
    {"scatter", DT_COLL_SCATTER, EVEN},
    {"sendrecv", DT_COLL_SEND, EVEN},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static const size_t sizes[] = {1, 200, 5000, 20000, MOST};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ---- who serves ---- */

/* Does an algorithm of libdt's tables? */
static bool plan_serves(const struct call *call,
                        const struct dt_algorithm *algorithm,
                        const struct dt_layout *layout, size_t count)
{
    size_t counts[RANKS], at[RANKS];
    for (size_t i = 0; i < layout->size; i++) {
        counts[i] = count;
        at[i] = i * count;
    }
    struct dt_shape shape = {.coll = call->coll,
                             .dtype = DT_DTYPE_I32,
                             .op = DT_OP_SUM,
                             .count = count,
                             .prescale = 1,
                             .postscale = 1};
    if (call->form == UNEVEN) {
        shape.sendcounts = shape.recvcounts = counts;
        shape.senddispls = shape.recvdispls = at;
    }
    const struct dt_plan plan = {.layout = layout,
                                 .shape = &shape,
                                 .tune = &dt_tune_default,
                                 .algorithm = algorithm};
    return isfinite(algorithm->cost(&plan));
}

static bool serves(const struct call *call, const char *name,
                   const struct dt_layout *layout, size_t count)
{
    const struct dt_algorithm *table = dt_algorithms(call->coll);
    bool local = call->coll == DT_COLL_ALLREDUCE && layout->nnodes == 1;
    if (call->form == ONE && count != 1)
        return false;
    if (!strcmp(name, SHORT))
        return local && count <= 200;
    if (!strcmp(name, CHUNKS))
        return local && count >= 5000;
    if (!strcmp(name, MESSAGE))
        return !table;
    for (; table && table->name; table++)
        if (!strcmp(name, table->name))
            return plan_serves(call, table, layout, count);
    return false;
}

static void list_one(const struct call *call, const char *name,
                     const struct dt_layout *layout)
{
    for (size_t i = 0; i < SIZES; i++)
        if (serves(call, name, layout, sizes[i])) {
            printf("%s %s\n", call->name, name);
            return;
        }
}

/* As dt-fork places them. */
static int list(size_t ranks, size_t nodes)
{
    static const char *const others[] = {SHORT, CHUNKS, MESSAGE};
    struct dt_layout layout;
    struct dt_error err;
    size_t node_of[RANKS];
    if (ranks > RANKS || !nodes || nodes > ranks)
        return 64;
    for (size_t r = 0; r < ranks; r++)
        node_of[r] = r * nodes / ranks;
    if (dt_layout_init(&layout, 0, ranks, node_of, &err) != DT_SUCCESS)
        return 71;
    layout.piece_max = ranks > nodes ? 65536 : 0;
    for (size_t c = 0; c < CALLS; c++) {
        const struct dt_algorithm *table = dt_algorithms(calls[c].coll);
        for (; table && table->name; table++)
            list_one(&calls[c], table->name, &layout);
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            list_one(&calls[c], others[i], &layout);
    }
    dt_layout_fini(&layout);
    return 0;
}

/* ---- in libdt's place: one algorithm is forced ---- */

static const struct call *aim;
static const char *forced, *met = MESSAGE;

void __real_dt_algorithm_build(const struct dt_plan *plan);
void __wrap_dt_algorithm_build(const struct dt_plan *plan);
bool __real_dt_local_serves(const struct dt_board *board,
                            const struct dt_shape *shape);
bool __wrap_dt_local_serves(const struct dt_board *board,
                            const struct dt_shape *shape);
void __real_dt_local_begin(struct dt_local *local, struct dt_board *board,
                           const struct dt_shape *shape, const void *sendbuf,
                           void *recvbuf, uint64_t round, bool note);
void __wrap_dt_local_begin(struct dt_local *local, struct dt_board *board,
                           const struct dt_shape *shape, const void *sendbuf,
                           void *recvbuf, uint64_t round, bool note);

void __wrap_dt_algorithm_build(const struct dt_plan *plan)
{
    struct dt_plan mine = *plan;
    if (plan->shape->coll == aim->coll) {
        mine.forced = forced;
        met = dt_algorithm_name(&mine);
    }
    __real_dt_algorithm_build(&mine);
}

bool __wrap_dt_local_serves(const struct dt_board *board,
                            const struct dt_shape *shape)
{
    return (!strcmp(forced, SHORT) || !strcmp(forced, CHUNKS)) &&
           __real_dt_local_serves(board, shape);
}

void __wrap_dt_local_begin(struct dt_local *local, struct dt_board *board,
                           const struct dt_shape *shape, const void *sendbuf,
                           void *recvbuf, uint64_t round, bool note)
{
    __real_dt_local_begin(local, board, shape, sendbuf, recvbuf, round, note);
    met = local->chunks ? CHUNKS : SHORT;
}

/* ---- what is called ---- */

static struct {
    int32_t *in, *out;
    size_t even[RANKS], at[RANKS];
    size_t count;
    int root;
} with;

static dt_result_t split(dt_comm_t comm)
{
    dt_comm_t made;
    dt_result_t rc = dt_comm_split(comm, 0, 0, &made);
    return rc == DT_SUCCESS ? dt_comm_destroy(made) : rc;
}

/* To the next rank, from the one before. */
static dt_result_t pass_on(dt_comm_t comm)
{
    int rank = dt_comm_rank(comm), size = dt_comm_size(comm);
    dt_group_start();
    dt_result_t rc = dt_send(with.in, with.count, DT_DTYPE_I32,
                             (rank + 1) % size, comm, DT_STREAM_NONE);
    if (rc == DT_SUCCESS)
        rc = dt_recv(with.out, with.count, DT_DTYPE_I32,
                     (rank + size - 1) % size, comm, DT_STREAM_NONE);
    dt_result_t ended = dt_group_end();
    return rc == DT_SUCCESS ? ended : rc;
}

static dt_result_t uneven(dt_comm_t comm)
{
    const dt_dtype_t type = DT_DTYPE_I32;
    dt_stream_t none = DT_STREAM_NONE;
    switch (aim->coll) {
    case DT_COLL_ALLGATHER:
        return dt_allgatherv(with.in, with.out, with.even, with.at, type, comm,
                             none);
    case DT_COLL_REDUCE_SCATTER:
        return dt_reduce_scatterv(with.in, with.out, with.even, type, DT_OP_SUM,
                                  comm, none);
    default:
        return dt_alltoallv(with.in, with.even, with.at, with.out, with.even,
                            with.at, type, comm, none);
    }
}

static dt_result_t even(dt_comm_t comm)
{
    const dt_dtype_t type = DT_DTYPE_I32;
    const dt_op_t op = DT_OP_SUM;
    dt_stream_t none = DT_STREAM_NONE;
    const void *in = with.in;
    void *out = with.out;
    size_t n = with.count;
    switch (aim->coll) {
    case DT_COLL_ALLREDUCE:
        return dt_allreduce(in, out, n, type, op, comm, none);
    case DT_COLL_REDUCE:
        return dt_reduce(in, out, n, type, op, with.root, comm, none);
    case DT_COLL_BCAST:
        return dt_bcast(out, n, type, with.root, comm, none);
    case DT_COLL_ALLGATHER:
        return dt_allgather(in, out, n, type, comm, none);
    case DT_COLL_REDUCE_SCATTER:
        return dt_reduce_scatter(in, out, n, type, op, comm, none);
    case DT_COLL_ALLTOALL:
        return dt_alltoall(in, out, n, type, comm, none);
    case DT_COLL_GATHER:
        return dt_gather(in, out, n, type, with.root, comm, none);
    case DT_COLL_SCATTER:
        return dt_scatter(in, out, n, type, with.root, comm, none);
    default:
        return pass_on(comm);
    }
}

static dt_result_t once(dt_comm_t comm)
{
    if (!strcmp(aim->name, "split"))
        return split(comm);
    if (aim->form == ONE)
        return dt_barrier(comm, DT_STREAM_NONE);
    return aim->form == UNEVEN ? uneven(comm) : even(comm);
}

/* ---- one rank ---- */

static int wrong;

static void expect(bool cond, const char *what, dt_result_t rc)
{
    if (cond)
        return;
    wrong = 1;
    fprintf(stderr, "rank %d: %s: %s, %s\n", dt_rank(), what, dt_strerror(rc),
            dt_last_error());
}

static uint64_t draw(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

/* How this rank ends: when so many calls have returned, and a while later. */
static int fate;
static atomic_long calls_done;
static long calls_before;
static struct timespec later;

static void *reaper(void *arg)
{
    while (calls_done < calls_before)
        sched_yield();
    nanosleep(&later, NULL);
    kill(getpid(), fate);
    return arg;
}

/* What is called, the same on all ranks; false: the algorithm does not
 * serve here. */
static bool choose(dt_comm_t comm, uint64_t *state)
{
    size_t size = (size_t)dt_comm_size(comm), first = draw(state, SIZES), k = 0;
    do
        with.count = sizes[(first + k) % SIZES];
    while (!serves(aim, forced, &comm->layout, with.count) && ++k < SIZES);
    if (k == SIZES || size > RANKS)
        return false;
    for (size_t r = 0; r < size; r++) {
        with.even[r] = with.count;
        with.at[r] = r * with.count;
    }
    size_t bytes = with.count * size * sizeof(*with.in);
    if (draw(state, 2)) {
        void *in = NULL, *out = NULL;
        if (dt_mem_alloc(bytes, &in) || dt_mem_alloc(bytes, &out))
            return false;
        with.in = in;
        with.out = out;
    } else {
        with.in = calloc(1, bytes);
        with.out = calloc(1, bytes);
    }
    return with.in && with.out;
}

/* From the start, while connections are made, or in the midst. True: it is this
 * rank's. */
static bool draw_fate(uint64_t *state)
{
    pthread_t thread;
    bool me = draw(state, (uint64_t)dt_size()) == (uint64_t)dt_rank();
    bool early = draw(state, 2);
    calls_before = early ? 0 : 1 + (long)draw(state, 50);
    later.tv_nsec = (long)draw(state, early ? 17000000 : 2000000);
    if (me && pthread_create(&thread, NULL, reaper, NULL))
        expect(false, "no thread", DT_ERR_SYSTEM);
    return me;
}

static void lose(uint64_t seed)
{
    dt_comm_t comm = dt_comm_world();
    uint64_t state = seed;
    dt_result_t rc = DT_SUCCESS;
    draw(&state, 2);
    if (!choose(comm, &state)) {
        expect(false, "does not serve here", DT_ERR_INVALID_ARG);
        return;
    }
    bool doomed = draw_fate(&state);
    /* by turns, or a root that is stopped is no hindrance for those who only
     * send, until the network is full */
    for (; rc == DT_SUCCESS; calls_done++) {
        with.root = (int)(calls_done % dt_comm_size(comm));
        rc = once(comm);
    }
    /* on a busy machine their patience may end before this rank is stopped */
    for (; doomed && fate == SIGSTOP; pause())
        calls_done = calls_before;
    expect(rc == DT_ERR_PROC_FAILED ||
               (rc == DT_ERR_TIMED_OUT && fate == SIGSTOP),
           "the call", rc);
    expect(dt_last_error()[0], "no words", rc);
    expect(once(comm) == rc, "not for ever", rc);
    expect(!strcmp(met, forced), met, rc);
}

static const struct call *find(const char *name)
{
    for (size_t c = 0; c < CALLS; c++)
        if (!strcmp(calls[c].name, name))
            return &calls[c];
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "list"))
        return list(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
    aim = argc == 5 ? find(argv[2]) : NULL;
    if (!aim) {
        fprintf(stderr, "usage: coll-ranks-lose list RANKS NODES\n"
                        "       coll-ranks-lose kill|stop CALL ALGORITHM "
                        "SEED\n");
        return 64;
    }
    fate = strcmp(argv[1], "kill") ? SIGSTOP : SIGKILL;
    forced = argv[3];
    dt_result_t rc = dt_init();
    expect(rc == DT_SUCCESS, "dt_init", rc);
    if (rc != DT_SUCCESS)
        return 2;
    lose(strtoull(argv[4], NULL, 10));
    rc = dt_finalize();
    expect(rc == DT_SUCCESS, "finalize after", rc);
    if (!wrong)
        printf("met %s %s, %zu elements\n", aim->name, met, with.count);
    return wrong;
}
