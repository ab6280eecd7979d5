/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.h - asking the PMIx server for a meeting: which ranks go on, and their
 * cards. The servers of the step decide it, so that all members get the same
 * answer, whoever dies meanwhile. base/meet.h has the query. */
#ifndef DT_BOOT_MEET_H
#define DT_BOOT_MEET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"

struct dt_member {
    uint32_t rank;        /* the launcher's number */
    uint32_t incarnation; /* 0: the first process of that number */
    struct dt_blob card;  /* in the bytes of the meeting */
};

struct dt_meeting {
    uint64_t epoch;
    size_t size;
    struct dt_member *members; /* in rising order of their numbers */
    void *bytes;
};

/* Meet the other ranks that live, of a job of most. Blocks, at most timeout
 * seconds and some, and until another thread sets *gone: there is no server any
 * more. Errors: TIMED_OUT, with the ranks that did not come;
 * PROC_FAILED: too few live; BOOTSTRAP: the server does not hold meetings;
 * NO_MEMORY. */
dt_result_t dt_meet(uint32_t rank, const void *card, size_t len, long timeout,
                    size_t most, const atomic_bool *gone,
                    struct dt_meeting *meeting, struct dt_error *err);

/* Read an answer of len bytes (copied) of a server to this rank, one of a job
 * of most. BOOTSTRAP: it is damaged; NO_MEMORY. */
dt_result_t dt_meeting_read(const void *bytes, size_t len, uint32_t rank,
                            size_t most, struct dt_meeting *meeting,
                            struct dt_error *err);

void dt_meeting_free(struct dt_meeting *meeting);

#endif
