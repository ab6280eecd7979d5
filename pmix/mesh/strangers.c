/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* strangers.c - connections that have not proved to be of this step. */
#include "mesh/strangers.h"

#include <stdio.h>
#include <string.h>

/* The place of a source; that of another, whose line is old enough to be
 * forgotten; or SOURCES. */
static size_t find_source(struct dt_strangers *strangers, const uint8_t ip[16],
                          int64_t now, bool *known)
{
    size_t i, old = DT_STRANGERS_SOURCES;
    for (i = 0; i < strangers->sources; i++) {
        *known = memcmp(strangers->source[i].ip, ip, 16) == 0;
        if (*known)
            return i;
        if (now - strangers->source[i].line_at >= DT_STRANGERS_LINE_MS)
            old = i;
    }
    *known = false;
    return i < DT_STRANGERS_SOURCES ? i : old;
}

const char *dt_strangers_refused(struct dt_strangers *strangers,
                                 const uint8_t ip[16], const char *why,
                                 int64_t now)
{
    char at[DT_ADDRESS_TEXT];
    bool known;
    size_t i = find_source(strangers, ip, now, &known);
    strangers->refused++;
    if (i == DT_STRANGERS_SOURCES)
        return NULL;
    size_t refused = known ? ++strangers->source[i].refused : 1;
    if (known && now - strangers->source[i].line_at < DT_STRANGERS_LINE_MS)
        return NULL;
    if (i == strangers->sources)
        strangers->sources++;
    memcpy(strangers->source[i].ip, ip, 16);
    strangers->source[i].refused = 0;
    strangers->source[i].line_at = now;
    strangers->reported += refused;
    dt_address_text(ip, at);
    if (refused == 1)
        snprintf(strangers->line, sizeof(strangers->line),
                 "a connection from %s was refused: %s", at, why);
    else
        snprintf(strangers->line, sizeof(strangers->line),
                 "%zu connections from %s were refused, the last one: %s",
                 refused, at, why);
    return strangers->line;
}

const char *dt_strangers_total(struct dt_strangers *strangers)
{
    if (strangers->refused == strangers->reported)
        return NULL;
    strangers->reported = strangers->refused;
    snprintf(strangers->line, sizeof(strangers->line),
             "%zu connections were refused in all: they did not prove to be "
             "of this step",
             strangers->refused);
    return strangers->line;
}

void dt_strangers_add(struct dt_strangers_count *count, const uint8_t ip[16],
                      const uint8_t of[16], int64_t since, const void *arg)
{
    if (count->all++ == 0 || since < count->since) {
        count->since = since;
        count->oldest = arg;
    }
    if (memcmp(ip, of, 16) != 0)
        return;
    if (count->of_source++ == 0 || since < count->since_of_source) {
        count->since_of_source = since;
        count->oldest_of_source = arg;
    }
}

bool dt_strangers_place(const struct dt_strangers_count *count, size_t places,
                        int64_t now, const void **close)
{
    *close = NULL;
    if (count->of_source >= DT_STRANGERS_OF_SOURCE) {
        *close = count->oldest_of_source;
        return now - count->since_of_source >= DT_STRANGERS_YIELD_MS;
    }
    if (count->all < places)
        return true;
    *close = count->oldest;
    return now - count->since >= DT_STRANGERS_YIELD_MS;
}
