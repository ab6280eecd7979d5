/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.h - a file that all ranks map, whatever library they measure and
 * whatever node they pretend to be on: where they wait for each other outside
 * of what is measured, and leave their times. One machine, so one clock. */
#ifndef BOARD_H
#define BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BOARD_RANKS = 64, BOARD_SAMPLES = 2048 };

struct board_rank {
    char host[64];
    uint64_t tx[2]; /* bytes that its interface sent, before and after */
    uint64_t wrong; /* elements */
    double busy;    /* of the processor, while it waited; 0 to 1 and more */
    uint64_t begin[BOARD_SAMPLES], end[BOARD_SAMPLES]; /* ticks */
};

struct board {
    _Atomic uint32_t arrived, round, failed;
    uint64_t start; /* when all begin, in ticks */
    double ticks_per_us;
    uint32_t samples, batch; /* what rank 0 decided */
    struct board_rank rank[BOARD_RANKS];
};

/* This process' view. */
struct meeting {
    struct board *board;
    int rank, size;
    bool crowded; /* more ranks than cores: waits sleep, none spins */
};

uint64_t ticks(void);

/* Map the file, which is empty at first. Ends the process on error. */
void meeting_open(struct meeting *m, const char *path, int rank, int size,
                  bool crowded);

/* Wait for all ranks, one minute at most. If not crowded, all return at the
 * same tick, which is the result; else the result is now. */
uint64_t meeting_wait(struct meeting *m);

/* Let all others end with this code, too, when they next wait. */
void meeting_fail(struct meeting *m, int code);

#endif
