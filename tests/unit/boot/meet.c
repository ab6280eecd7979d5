/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.c - the answer to a meeting: a golden sample, and damaged bytes. */
#include <stdlib.h>
#include <string.h>

#include "boot/meet.h"
#include "../tap.h"

/* Epoch 5 of ranks 1 and 6, the second a replacement. Never edit. */
static const unsigned char golden[] = {
    5,   0,   0,   0, 0, 0, 0, 0, 2, 0, 0, 0,       /* epoch, members */
    1,   0,   0,   0, 0, 0, 0, 0, 3, 0, 0, 0,       /* rank 1 */
    'a', 'b', 'c',                                  /* its card */
    6,   0,   0,   0, 2, 0, 0, 0, 1, 0, 0, 0, 'z'}; /* rank 6 */

enum { MOST = 8, FIRST = 12, SECOND = 27 };

static bool refused(const unsigned char *bytes, size_t len, uint32_t rank)
{
    struct dt_meeting meeting = {.epoch = 99};
    struct dt_error err = {""};
    return dt_meeting_read(bytes, len, rank, MOST, &meeting, &err) ==
               DT_ERR_BOOTSTRAP &&
           err.text[0] && meeting.epoch == 99;
}

static void read_golden(void)
{
    struct dt_meeting meeting;
    struct dt_error err = {""};
    ok(dt_meeting_read(golden, sizeof(golden), 6, MOST, &meeting, &err) ==
           DT_SUCCESS,
       "the golden sample is read");
    ok(meeting.epoch == 5 && meeting.size == 2, "epoch and size");
    ok(meeting.members[0].rank == 1 && meeting.members[0].incarnation == 0 &&
           meeting.members[0].card.len == 3 &&
           !memcmp(meeting.members[0].card.data, "abc", 3),
       "the first member");
    ok(meeting.members[1].rank == 6 && meeting.members[1].incarnation == 2 &&
           meeting.members[1].card.len == 1 &&
           !memcmp(meeting.members[1].card.data, "z", 1),
       "the second");
    dt_meeting_free(&meeting);
    ok(!meeting.members && !meeting.bytes, "freed");
}

static void read_damaged(void)
{
    unsigned char bad[sizeof(golden) + 1] = {0};
    size_t wrong = 0;
    for (size_t len = 0; len < sizeof(golden); len++)
        wrong += !refused(golden, len, 1);
    ok(!wrong, "cut off anywhere");
    memcpy(bad, golden, sizeof(golden));
    ok(refused(bad, sizeof(bad), 1), "a byte more");
    ok(refused(golden, sizeof(golden), 2), "without the rank that asks");
    bad[8] = 0;
    ok(refused(bad, FIRST, 1), "no members");
    bad[8] = MOST + 1;
    ok(refused(bad, sizeof(golden), 1), "more than there are ranks");
    bad[8] = 2;
    bad[SECOND] = MOST;
    ok(refused(bad, sizeof(golden), 1), "a rank that is none");
    bad[SECOND] = 1;
    ok(refused(bad, sizeof(golden), 1), "a rank twice");
    bad[SECOND] = 6;
    memset(bad + FIRST + 8, 0xff, 4);
    ok(refused(bad, sizeof(golden), 1), "a card beyond the end");
}

int main(void)
{
    read_golden();
    read_damaged();
    return tap_done();
}
