/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* elastic.c - which ranks may be lost, and which are started again. */
#include "run/elastic.h"

#include <stdlib.h>

#include "base/exit.h"

dt_result_t dt_elastic_open(struct dt_elastic *elastic, size_t ranks,
                            size_t minimum, size_t respawns,
                            struct dt_error *err)
{
    *elastic = (struct dt_elastic){
        .ranks = ranks, .minimum = minimum, .respawns = respawns};
    elastic->since = calloc(ranks, sizeof(*elastic->since));
    return elastic->since ? DT_SUCCESS : dt_no_memory(err);
}

void dt_elastic_close(struct dt_elastic *elastic)
{
    free(elastic->since);
    *elastic = (struct dt_elastic){0};
}

bool dt_elastic_failed(struct dt_elastic *elastic, size_t rank, int code,
                       int64_t now)
{
    elastic->no_restart |= code == DT_EXIT_NO_RESTART;
    if (code != DT_EXIT_NO_RESTART && code != DT_EXIT_REQUEUE &&
        elastic->respawned < elastic->respawns) {
        elastic->respawned++;
        elastic->pending++;
        elastic->since[rank] = now;
        return true;
    }
    elastic->lost++;
    return false;
}

void dt_elastic_started(struct dt_elastic *elastic, size_t rank)
{
    elastic->pending--;
    elastic->since[rank] = 0;
}

void dt_elastic_lost(struct dt_elastic *elastic, size_t rank)
{
    dt_elastic_started(elastic, rank);
    elastic->lost++;
}

size_t dt_elastic_left(const struct dt_elastic *elastic)
{
    return elastic->ranks - elastic->lost;
}

bool dt_elastic_too_few(const struct dt_elastic *elastic)
{
    return dt_elastic_left(elastic) < elastic->minimum;
}

int dt_elastic_code(const struct dt_elastic *elastic)
{
    return elastic->no_restart ? DT_EXIT_NO_RESTART : DT_EXIT_REQUEUE;
}
