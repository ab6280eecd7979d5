/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sizes.c - an allreduce of each size, and what waiting in one costs */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"
#include "payload.h"

struct buffers {
    void *in, *out;
    size_t count;
};

static void dirty(struct bench *b, void *arg)
{
    struct buffers *buf = arg;
    if (buf->out != buf->in)
        memset(buf->out, 0xff, buf->count * element_size(b->o.type));
    payload_fill(buf->in, buf->count, b->o.type, b->meeting.rank, ++b->turn);
}

static void run(struct bench *b, void *arg)
{
    struct buffers *buf = arg;
    bench_check(
        b, b->contender->allreduce(buf->in, buf->out, buf->count, b->o.type));
}

static size_t wrong(struct bench *b, void *arg)
{
    struct buffers *buf = arg;
    return payload_wrong(buf->out, buf->count, b->o.type, b->meeting.size,
                         b->turn);
}

static size_t room_for_all(const struct options *o)
{
    size_t room = 0;
    for (size_t i = 0; i < o->nsizes; i++)
        if (o->sizes[i] + o->offsets[i] > room)
            room = o->sizes[i] + o->offsets[i];
    return room;
}

void bench_sizes(struct bench *b)
{
    size_t room = room_for_all(&b->o), width = element_size(b->o.type);
    char *in = bench_alloc(b, room);
    char *out = b->contender->in_place ? in : bench_alloc(b, room);
    for (size_t i = 0; i < b->o.nsizes; i++) {
        struct buffers buf = {in + b->o.offsets[i], out + b->o.offsets[i],
                              b->o.sizes[i] / width};
        struct work work = {.dirty = dirty,
                            .run = run,
                            .wrong = wrong,
                            .arg = &buf,
                            .bytes = buf.count * width,
                            .count = buf.count,
                            .name = "allreduce"};
        bench_measure(b, &work);
    }
}

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* Rank 0 is late; the others' share of their time that they took a core. */
void bench_idle(struct bench *b)
{
    struct board *board = b->meeting.board;
    struct buffers buf = {bench_alloc(b, 4096), NULL, 1};
    buf.out = b->contender->in_place ? buf.in : bench_alloc(b, 4096);
    for (int turn = 0; turn < 2; turn++) {
        dirty(b, &buf);
        uint64_t begin = meeting_wait(&b->meeting);
        double busy = cpu_seconds();
        const struct timespec late = {b->o.late_ms / 1000,
                                      (long)(b->o.late_ms % 1000) * 1000000};
        if (b->meeting.rank == 0)
            nanosleep(&late, NULL);
        run(b, &buf);
        busy = (cpu_seconds() - busy) * 1e6 * board->ticks_per_us;
        board->rank[b->meeting.rank].busy = busy / (double)(ticks() - begin);
        meeting_wait(&b->meeting);
    }
    double most = 0;
    for (int r = 1; r < b->meeting.size; r++)
        if (board->rank[r].busy > most)
            most = board->rank[r].busy;
    if (b->meeting.rank == 0)
        printf("idle 4 1 1 %.4g %.4g %.4g %.4g 0 0\n", most, most, most, most);
}
