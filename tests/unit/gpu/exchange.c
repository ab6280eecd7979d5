/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exchange.c - ranks that are threads exchange, each with a board of its
 * own: every way, in any order, without a word to each other but the boards'.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "gpu/cuda/exchange.h"
#include "host.h"

enum { RANKS = 8, PAD = 16 };

/* One exchange, the same on all ranks. */
struct job {
    struct dt_gpu_exchange x; /* but for what is a rank's own */
    bool in_place;
    uint64_t seed; /* of the contents */
};

struct world {
    size_t size, slot;
    void *board[DT_GPU_PEERS];
    uint32_t abort;
    size_t jobs; /* to run */
    uint64_t seed;
    bool missing, post; /* the last rank never comes; all is posted */
    int started;
};

struct rank {
    struct world *world;
    size_t rank;
    size_t wrong;
    uint32_t done;
    pthread_t thread;
};

static char *room(size_t len)
{
    char *at = aligned_alloc(64, (len + 63) / 64 * 64 + 64);
    if (!at)
        abort();
    return at;
}

static struct world world_of(size_t size, size_t slot)
{
    struct world w = {.size = size, .slot = slot};
    for (size_t i = 0; i < size; i++) {
        w.board[i] = room(dt_gpu_board_size(slot));
        memset(w.board[i], 0, dt_gpu_board_size(slot));
    }
    return w;
}

/* All have been in so many rounds, the last 2^31 of them without a SPREAD, and
 * in their mail is nothing but letters of one. */
static void grow_old(struct world *w, uint32_t rounds, uint32_t letters)
{
    for (size_t i = 0; i < w->size; i++) {
        struct line *line = w->board[i];
        for (size_t b = 0; b < DT_GPU_BLOCKS; b++) {
            for (size_t k = 0; k < DT_GPU_PEERS; k++) {
                line[b].shown[k] = rounds;
                line[b].reduced[k] = rounds - (1u << 31) - 77;
            }
            line[b].round = line[b].posted = rounds;
        }
        uint64_t *word = letter_of(w->board[i], 0, 0, 0);
        for (size_t k = 0; k < DT_GPU_MAIL / sizeof(*word); k++)
            word[k] = (uint64_t)letters << 32 | 0x5555;
    }
}

static void run_world(struct world *w, struct rank *ranks,
                      void *(*body)(void *), uint32_t stop)
{
    size_t n = w->size - w->missing;
    for (size_t i = 0; i < n; i++) {
        ranks[i] = (struct rank){.world = w, .rank = i};
        pthread_create(&ranks[i].thread, NULL, body, &ranks[i]);
    }
    while (stop && __atomic_load_n(&w->started, __ATOMIC_ACQUIRE) < (int)n)
        sched_yield();
    __atomic_store_n(&w->abort, stop, __ATOMIC_RELEASE);
    for (size_t i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
}

static void end_world(struct world *w)
{
    for (size_t i = 0; i < w->size; i++)
        free(w->board[i]);
}

/* ---- what is right ---- */

/* What a rank has to send, all rows of it. */
static void contents(char *to, const struct job *job, size_t rank)
{
    uint64_t seed = job->seed * 64 + rank;
    fill_special(to, job->x.count * job->x.send_rows, job->x.dtype, &seed);
}

static bool reads(const struct job *job, size_t rank)
{
    return job->x.from >> rank & 1;
}

/* What recv is to hold, behind what it holds now. */
static void expect(char *recv, const struct job *job, const char *const *sent,
                   size_t rank)
{
    const struct dt_gpu_exchange *x = &job->x;
    size_t len = x->count * dt_dtype_size(x->dtype), n = 0;
    size_t row = x->send_rows > 1 ? rank * len : 0;
    const void *in[DT_GPU_PEERS];
    for (size_t i = 0; i < x->size; i++) {
        if (!reads(job, i))
            continue;
        in[n++] = sent[i] + row;
        if (x->way == DT_GPU_PLACE)
            memcpy(recv + i * x->recv_pitch, sent[i] + row, len);
    }
    if (x->way == DT_GPU_PLACE || !n)
        return;
    dt_exec_reduce_n(recv, in, n, x->count, x->dtype, x->op, x->scale);
    if (x->op == DT_OP_AVG)
        dt_exec_divide(recv, x->count, x->dtype, x->size);
}

/* ---- random jobs ---- */

static size_t some_count(uint64_t *seed, size_t slot, size_t size)
{
    switch (below(seed, 4)) {
    case 0:
        return below(seed, 4);
    case 1:
        return below(seed, 300);
    case 2: /* a block or two */
        return below(seed, 20000 / size);
    default: /* several slots */
        return below(seed, 5 * slot / size);
    }
}

static size_t some_short_count(uint64_t *seed, size_t elem)
{
    const size_t most = DT_GPU_POST_MAX / elem, some[] = {4, 300, most};
    return below(seed, 4) ? below(seed, some[below(seed, 3)]) : most;
}

static struct job some_job(const struct world *w, uint64_t *seed)
{
    struct job job = {.seed = draw(seed), .in_place = below(seed, 3) == 0};
    struct dt_gpu_exchange *x = &job.x;
    x->way = (enum dt_gpu_way)below(seed, 3);
    x->dtype = (dt_dtype_t)below(seed, 10);
    x->op = (dt_op_t)below(seed, 5);
    x->size = w->size;
    x->slot = w->slot;
    size_t elem = dt_dtype_size(x->dtype);
    x->post = x->way != DT_GPU_SPREAD && below(seed, 2);
    x->count = x->post ? some_short_count(seed, elem)
                       : some_count(seed, w->slot, elem * w->size);
    x->send_rows = x->way != DT_GPU_SPREAD && below(seed, 2) ? x->size : 1;
    x->send_pitch = x->recv_pitch = x->count * elem;
    x->from = (1u << x->size) - 1;
    if (below(seed, 3) == 0) { /* some show nothing */
        x->from &= (uint32_t)draw(seed);
        job.in_place = false;
    }
    bool scales = x->op == DT_OP_SUM || x->op == DT_OP_AVG;
    x->scale =
        scales && dt_exec_is_float(x->dtype) && below(seed, 2) ? 1 / 3.0 : 1.0;
    return job;
}

/* A rank's own part of a job: where its rows are. */
struct mine {
    char *buffer[2], *send, *recv, *want, *sent[RANKS];
    size_t send_len, recv_len, recv_off;
};

static struct mine lay_out(const struct job *job, size_t rank, uint64_t *seed)
{
    const struct dt_gpu_exchange *x = &job->x;
    size_t elem = dt_dtype_size(x->dtype), len = x->count * elem;
    struct mine m = {.send_len = x->send_rows * len};
    m.recv_len = x->way == DT_GPU_PLACE ? x->size * len : len;
    size_t all =
        (m.send_len > m.recv_len ? m.send_len : m.recv_len) + 2 * PAD * elem;
    m.buffer[0] = room(all);
    m.buffer[1] = room(all);
    m.want = room(all);
    m.send = m.buffer[0] + below(seed, PAD) * elem;
    m.recv_off = below(seed, PAD) * elem;
    m.recv = m.buffer[1] + m.recv_off;
    memset(m.buffer[1], 0x77, all);
    if (job->in_place && m.send_len < m.recv_len) {
        m.send = m.recv + rank * len;
    } else if (job->in_place) {
        m.recv = m.send + (m.send_len > m.recv_len ? rank * len : 0);
        m.recv_off = (size_t)(m.recv - m.buffer[0]);
    }
    for (size_t i = 0; i < x->size; i++) {
        m.sent[i] = room(m.send_len + 16);
        contents(m.sent[i], job, i);
    }
    memcpy(m.send, m.sent[rank], m.send_len);
    memcpy(m.want, m.recv - m.recv_off, all);
    expect(m.want + m.recv_off, job, (const char *const *)m.sent, rank);
    m.recv_len = all;
    return m;
}

static void clear(struct mine *m, size_t size)
{
    free(m->buffer[0]);
    free(m->buffer[1]);
    free(m->want);
    for (size_t i = 0; i < size; i++)
        free(m->sent[i]);
}

static void own_part(struct dt_gpu_exchange *x, struct rank *r)
{
    struct world *w = r->world;
    x->rank = r->rank;
    x->size = w->size;
    x->slot = w->slot;
    memcpy(x->board, w->board, sizeof(x->board));
    x->abort = &w->abort;
    x->done = &r->done;
}

static void *run_jobs(void *arg)
{
    struct rank *r = arg;
    uint64_t seed = r->world->seed, own = r->rank + 99;
    for (size_t i = 0; i < r->world->jobs; i++) {
        struct job job = some_job(r->world, &seed);
        bool gets = below(&own, 5) > 0 || job.in_place;
        struct mine m = lay_out(&job, r->rank, &own);
        own_part(&job.x, r);
        job.x.send = reads(&job, r->rank) ? m.send : NULL;
        job.x.recv = gets ? m.recv : NULL;
        job.x.done_value = (uint32_t)i + 1;
        struct dt_error err = {""};
        if (dt_cuda_exchange(NULL, 0, &job.x, NULL, &err) != DT_SUCCESS)
            printf("# %s\n", err.text);
        bool right = !gets || !memcmp(m.recv - m.recv_off, m.want, m.recv_len);
        if (!right || r->done != i + 1) {
            printf("# rank %zu of %zu, job %zu: way %d, type %d, op %d, %zu "
                   "elements, %zu rows, from 0x%x%s%s\n",
                   r->rank, job.x.size, i, job.x.way, job.x.dtype, job.x.op,
                   job.x.count, job.x.send_rows, job.x.from,
                   job.in_place ? ", in place" : "",
                   job.x.post ? ", posted" : "");
            r->wrong++;
        }
        clear(&m, job.x.size);
    }
    return NULL;
}

static size_t wrong_jobs(struct world *w, size_t jobs)
{
    struct rank ranks[RANKS];
    size_t wrong = 0;
    w->jobs = jobs;
    w->seed = w->size * 1000 + w->slot;
    run_world(w, ranks, run_jobs, 0);
    end_world(w);
    for (size_t i = 0; i < w->size; i++)
        wrong += ranks[i].wrong;
    return wrong;
}

static void check_jobs(size_t size, size_t slot, size_t jobs)
{
    struct world w = world_of(size, slot);
    ok(!wrong_jobs(&w, jobs),
       "%zu exchanges of %zu ranks with slots of %zu bytes", jobs, size, slot);
}

/* ---- counts that come to their end ---- */

static void check_wrap(void)
{
    struct world w = world_of(3, DT_GPU_SLOT_MIN);
    grow_old(&w, UINT32_MAX - 10, 3u << 30);
    ok(!wrong_jobs(&w, 60), "the round after 2^32 - 1 is 0");
}

static void *post_bytes(void *arg)
{
    struct rank *r = arg;
    struct dt_gpu_exchange x = {
        .way = DT_GPU_PLACE,
        .post = true,
        .send = &r->world->seed,
        .recv = (char[RANKS]){0},
        .count = 1,
        .send_rows = 1,
        .recv_pitch = 1,
        .from = (1u << r->world->size) - 1,
        .dtype = DT_DTYPE_U8,
    };
    own_part(&x, r);
    for (size_t i = 0; i < r->world->jobs; i++)
        dt_cuda_exchange(NULL, 0, &x, NULL, NULL);
    return NULL;
}

/* What a count that comes round could take for its own. */
static size_t old_words(const struct world *w, uint32_t round)
{
    size_t n = 0;
    for (size_t i = 0; i < w->size; i++)
        for (uint32_t from = 0; from < w->size; from++)
            for (size_t k = 0; k < WORDS; k++)
                n += letter_of(w->board[i], 0, from, 0)[k] >> 32 == round ||
                     letter_of(w->board[i], 0, from, 1)[k] >> 32 == round;
    return n;
}

static void check_old_letters(void)
{
    struct rank ranks[RANKS];
    struct world w = world_of(3, DT_GPU_SLOT_MIN);
    w.jobs = 2;
    grow_old(&w, (1u << 30) - 1, 77);
    run_world(&w, ranks, post_bytes, 0);
    ok(!old_words(&w, 77), "two rounds of 2^30 write all words of a letter");
    end_world(&w);
}

/* ---- the same launch again and again, as a graph does it ---- */

static void *run_again(void *arg)
{
    struct rank *r = arg;
    struct world *w = r->world;
    enum { COUNT = 2000 };
    float send[COUNT], recv[COUNT];
    const struct line *line = w->board[r->rank];
    struct dt_gpu_exchange x = {
        .way = (enum dt_gpu_way)w->seed,
        .post = w->post,
        .send = send,
        .recv = recv,
        .count = COUNT,
        .send_rows = 1,
        .from = (1u << w->size) - 1,
        .dtype = DT_DTYPE_F32,
        .op = DT_OP_SUM,
        .scale = 1.0,
        .done_value = 1,
    };
    own_part(&x, r);
    memset(send, 0, sizeof(send));
    dt_cuda_exchange(NULL, 0, &x, NULL, NULL);
    const struct launch graph = last;
    for (size_t i = 0; i < w->jobs; i++) {
        for (size_t k = 0; k < COUNT; k++)
            send[k] = (float)(i * (r->rank + 1) + k);
        r->done = 0;
        run_launch(&graph);
        float all = (float)(w->size * (w->size + 1) / 2);
        for (size_t k = 0; k < COUNT; k++)
            r->wrong += recv[k] != (float)i * all + (float)(k * w->size);
        r->wrong += r->done != 1;
    }
    r->wrong += (line->posted == w->jobs + 1) != w->post;
    r->wrong += (line->round == 0) != w->post;
    return NULL;
}

static void check_again(enum dt_gpu_way way, bool post, const char *name)
{
    struct rank ranks[RANKS];
    struct world w = world_of(3, 32 << 10);
    w.jobs = 1000;
    w.seed = way;
    w.post = post;
    run_world(&w, ranks, run_again, 0);
    end_world(&w);
    ok(!ranks[0].wrong && !ranks[1].wrong && !ranks[2].wrong,
       "a launch of %s, run 1000 times, is right each time", name);
}

/* ---- giving up ---- */

static void *run_alone(void *arg)
{
    struct rank *r = arg;
    struct job job = {.seed = 1};
    job.x = (struct dt_gpu_exchange){
        .way = (enum dt_gpu_way)r->world->seed,
        .post = r->world->post,
        .count = 2000,
        .send_rows = 1,
        .from = (1u << r->world->size) - 1,
        .send_pitch = 8000,
        .recv_pitch = 8000,
        .dtype = DT_DTYPE_F32,
        .scale = 1.0,
        .done_value = 7,
    };
    uint64_t seed = 1;
    own_part(&job.x, r);
    struct mine m = lay_out(&job, r->rank, &seed);
    job.x.send = m.send;
    job.x.recv = m.recv;
    __atomic_add_fetch(&r->world->started, 1, __ATOMIC_ACQ_REL);
    dt_cuda_exchange(NULL, 0, &job.x, NULL, NULL);
    clear(&m, job.x.size);
    return NULL;
}

static void check_abort(enum dt_gpu_way way, bool post, const char *name)
{
    struct rank ranks[RANKS];
    struct world w = world_of(3, 16 << 10);
    w.missing = true;
    w.seed = way;
    w.post = post;
    run_world(&w, ranks, run_alone, 1);
    end_world(&w);
    ok(ranks[0].done == 7 && ranks[1].done == 7,
       "%s: who is told to give up does, and says so", name);
}

/* ---- what cannot be ---- */

static bool refused(struct dt_gpu_exchange x, struct dt_error *err)
{
    return dt_cuda_exchange(NULL, 0, &x, NULL, err) == DT_ERR_INVALID_ARG;
}

static void check_refusals(void)
{
    struct world w = world_of(1, DT_GPU_SLOT_MIN);
    struct rank r = {.world = &w};
    struct dt_error err = {""};
    char send[4] = {0}, recv[4];
    struct dt_gpu_exchange x = {
        .send = send, .recv = recv, .count = 4, .send_rows = 1, .from = 1};
    own_part(&x, &r);
    struct dt_gpu_exchange y = x;
    ok(!refused(y, &err), "one rank may exchange with itself");
    y.slot = DT_GPU_SLOT_MIN - 16;
    ok(refused(y, &err), "a small slot is refused: %s", err.text);
    y = x, y.size = DT_GPU_PEERS + 1;
    ok(refused(y, &err), "17 ranks are refused: %s", err.text);
    y = x, y.send_rows = 2;
    ok(refused(y, &err), "two rows of one rank are refused: %s", err.text);
    y = x, y.send = NULL;
    ok(refused(y, &err), "nothing to show is refused: %s", err.text);
    y = x, y.from = 2;
    ok(refused(y, &err), "to read a rank that is none is: %s", err.text);
    y = x, y.board[0] = NULL;
    ok(refused(y, &err), "so is a missing board: %s", err.text);
    y = x, y.post = true, y.count = DT_GPU_POST_MAX + 1;
    ok(refused(y, &err), "so is a long row that is posted: %s", err.text);
    end_world(&w);
}

int main(void)
{
    alarm(1200); /* else a rank that waits does so for ever */
    for (size_t size = 1; size <= RANKS; size++) {
        check_jobs(size, DT_GPU_SLOT_MIN, 60);
        check_jobs(size, 256 << 10, 30);
    }
    check_wrap();
    check_old_letters();
    check_again(DT_GPU_REDUCE, false, "REDUCE");
    check_again(DT_GPU_SPREAD, false, "SPREAD");
    check_again(DT_GPU_REDUCE, true, "a posted REDUCE");
    check_abort(DT_GPU_PLACE, false, "PLACE");
    check_abort(DT_GPU_REDUCE, false, "REDUCE");
    check_abort(DT_GPU_SPREAD, false, "SPREAD");
    check_abort(DT_GPU_PLACE, true, "a posted PLACE");
    check_abort(DT_GPU_REDUCE, true, "a posted REDUCE");
    check_refusals();
    return tap_done();
}
