/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* measure.c - how long an operation takes, the longest over the ranks */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Bytes sent, if this rank is the first one of its node. */
static uint64_t sent(struct bench *b)
{
    struct meeting *m = &b->meeting;
    char path[128], text[32] = "0";
    if (!b->o.iface)
        return 0;
    for (int r = 0; r < m->rank; r++)
        if (!strcmp(m->board->rank[r].host, m->board->rank[m->rank].host))
            return 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/tx_bytes",
             b->o.iface);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(text, sizeof(text), file)) {
        fprintf(stderr, "bench: %s cannot be read\n", path);
        bench_check(b, -1);
    }
    fclose(file);
    return strtoull(text, NULL, 10);
}

enum { WARM = 2, FEWEST = 3 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(struct bench *b, const struct work *work)
{
    struct board *board = b->meeting.board;
    double us[BOARD_SAMPLES];
    uint32_t n = board->samples;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t begin = UINT64_MAX, end = 0;
        for (int r = 0; r < b->meeting.size; r++) {
            const struct board_rank *rank = &board->rank[r];
            begin = rank->begin[i] < begin ? rank->begin[i] : begin;
            end = rank->end[i] > end ? rank->end[i] : end;
        }
        us[i] = (double)(end - begin) / board->ticks_per_us / board->batch;
    }
    qsort(us, n, sizeof(*us), by_value);
    uint64_t wrong = 0, most = 0;
    for (int r = 0; r < b->meeting.size; r++) {
        const struct board_rank *rank = &board->rank[r];
        uint64_t tx = rank->tx[1] - rank->tx[0];
        wrong += rank->wrong;
        most = tx > most ? tx : most;
    }
    printf("%s %zu %zu %u %.4g %.4g %.4g %.4g %llu %.0f\n", work->name,
           work->bytes, work->count, n * board->batch, us[n / 2], us[0],
           us[n / 4], us[3 * n / 4], (unsigned long long)wrong,
           (double)most / (n * board->batch));
    fflush(stdout);
}

static void run_once(struct bench *b, const struct work *work)
{
    work->dirty(b, work->arg);
    work->run(b, work->arg);
}

/* How often? Rank 0 knows. Where ranks share a core one operation says little
 * if it is shorter than a turn of the scheduler: many then make one sample. */
static void plan(struct bench *b, const struct work *work)
{
    struct board *board = b->meeting.board;
    double us = 0;
    for (int warm = 0; warm < WARM; warm++) {
        meeting_wait(&b->meeting);
        uint64_t begin = ticks();
        run_once(b, work);
        us = (double)(ticks() - begin) / board->ticks_per_us;
        board->rank[b->meeting.rank].wrong += work->wrong(b, work->arg);
    }
    if (b->meeting.rank == 0) {
        double times = b->o.budget_ms * 1e3 / (us > 0.1 ? us : 0.1);
        board->batch = !b->meeting.crowded || us > 2e3 ? 1 : us > 2e2 ? 10 : 50;
        times /= board->batch;
        board->samples = times < FEWEST          ? FEWEST
                         : times > BOARD_SAMPLES ? BOARD_SAMPLES
                                                 : (uint32_t)times;
    }
    meeting_wait(&b->meeting);
}

void bench_measure(struct bench *b, const struct work *work)
{
    struct board *board = b->meeting.board;
    struct board_rank *mine = &board->rank[b->meeting.rank];
    mine->wrong = 0;
    plan(b, work);
    /* no page fault of the board's, later */
    memset(mine->begin, 1, board->samples * sizeof(*mine->begin));
    memset(mine->end, 1, board->samples * sizeof(*mine->end));
    meeting_wait(&b->meeting);
    mine->tx[0] = sent(b);
    for (uint32_t i = 0; i < board->samples; i++) {
        work->dirty(b, work->arg);
        mine->begin[i] = meeting_wait(&b->meeting);
        work->run(b, work->arg);
        for (uint32_t k = 1; k < board->batch; k++)
            run_once(b, work);
        mine->end[i] = ticks();
    }
    meeting_wait(&b->meeting);
    mine->tx[1] = sent(b);
    mine->wrong += work->wrong(b, work->arg);
    meeting_wait(&b->meeting);
    if (b->meeting.rank == 0)
        print(b, work);
    meeting_wait(&b->meeting);
}
