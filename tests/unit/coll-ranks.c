/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* coll-ranks.c - what one rank of coll.t does: `coll-ranks MODE [ARG ...]`,
 * under dt-fork or srun. Exits 0 if this rank saw what it should; rank 0 of
 * mode "all" prints a digest of sums of random numbers, which must not change
 * from run to run. */
#include "coll-ranks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Atomic int wrong;

void expect(bool cond, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (cond || wrong++ >= 5)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "rank %d: %s: %s\n", dt_rank(), text, dt_last_error());
}

int expect_wrong(void)
{
    return wrong;
}

static const struct {
    const char *name;
    void (*fn)(int argc, char **argv);
    bool leaves; /* calls dt_finalize itself, if at all */
} modes[] = {
    {"all", mode_all, false},
    {"wrap", mode_wrap, false},
    {"requests", mode_requests, false},
    {"open", mode_open_end, false},
    {"notice", mode_notice, false},
    {"misuse", mode_misuse, false},
    {"check", mode_check, false},
    {"comms", mode_comms, false},
    {"exhaust", mode_exhaust, false},
    {"threads", mode_threads, false},
    {"groups", mode_groups, false},
    {"progress", mode_progress, false},
    {"die", mode_die, true},
    {"stop", mode_stop, true},
    {"amid", mode_amid, true},
    {"lose-open", mode_lose_open, true},
    {"lose-busy", mode_lose_busy, true},
    {"disagree", mode_disagree, true},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "all";
    size_t m = 0;
    while (m < MODES && strcmp(modes[m].name, mode) != 0)
        m++;
    if (m == MODES) {
        fprintf(stderr, "coll-ranks: no mode %s\n", mode);
        return 64;
    }
    if (modes[m].fn == mode_misuse)
        misuse_before_init();
    if (dt_init() != DT_SUCCESS) {
        fprintf(stderr, "dt_init: %s\n", dt_last_error());
        return 2;
    }
    modes[m].fn(argc - 2, argv + 2);
    if (modes[m].leaves)
        return wrong != 0;
    expect(dt_finalize() == DT_SUCCESS, "finalize");
    expect(dt_rank() == DT_ERR_NOT_INITIALIZED, "dt_rank after");
    return wrong != 0;
}
