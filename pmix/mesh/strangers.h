/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* strangers.h - connections that have not proved to be of this step: how many a
 * source address may have, and what the log gets about those refused. Pure. */
#ifndef DT_MESH_STRANGERS_H
#define DT_MESH_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/address.h"

/* A listener holds so many of one source address at most. */
#define DT_STRANGERS_OF_SOURCE 16

/* Where there is no place for a new one, one that has not proved anything for
 * so long is closed for it, in ms. */
#define DT_STRANGERS_YIELD_MS 250

#define DT_STRANGERS_LINE_MS 60000 /* from line to line about one source */
#define DT_STRANGERS_SOURCES 16    /* that are remembered: lines in that time */

/* Of one listener; begin with all zero. */
struct dt_strangers {
    struct {
        uint8_t ip[16];
        size_t refused; /* since the line */
        int64_t line_at;
    } source[DT_STRANGERS_SOURCES];
    size_t sources;
    size_t refused, reported; /* in all; by lines */
    char line[640];
};

/* A connection was refused. Returns a line for the log, valid until the next
 * call, or NULL: there was one about this source within the last minute, or
 * there have been too many. now is in ms. */
const char *dt_strangers_refused(struct dt_strangers *strangers,
                                 const uint8_t ip[16], const char *why,
                                 int64_t now);

/* The last line, with the total; NULL if the lines have reported all. */
const char *dt_strangers_total(struct dt_strangers *strangers);

/* The connections of a listener that have not proved anything, one by one
 * (begin with all zero), to find a place for a new one from ip. */
struct dt_strangers_count {
    size_t all, of_source;
    const void *oldest, *oldest_of_source; /* arg */
    int64_t since, since_of_source;
};
void dt_strangers_add(struct dt_strangers_count *count, const uint8_t ip[16],
                      const uint8_t of[16], int64_t since, const void *arg);

/* Is there a place for the new one, where there are so many in all? Then *close
 * is the one to be closed for it, or NULL. */
bool dt_strangers_place(const struct dt_strangers_count *count, size_t places,
                        int64_t now, const void **close);

#endif
