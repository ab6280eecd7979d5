/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stranger.h - the count of connections that did not prove to be of this job,
 * by address, and what is said of them: a line at the first of an address, the
 * tenth, the hundredth and so on, and no more than a few dozen in all. */
#ifndef DT_TL_TCP_STRANGER_H
#define DT_TL_TCP_STRANGER_H

#include <stddef.h>
#include <stdint.h>

/* Addresses that are told apart; one more count is for all others. */
#define DT_STRANGERS 15

struct dt_strangers {
    struct {
        uint8_t ip[16];
        unsigned long refused;
    } from[DT_STRANGERS + 1];
};

/* One more from this address; prints the line, if one is due, to stderr. why:
 * what it did, "sent no proof". */
void dt_stranger_refused(struct dt_strangers *strangers, size_t rank,
                         const uint8_t ip[16], const char *why);

#endif
