/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* elastic.h - which ranks may be lost, and which are started again. */
#ifndef DT_PMIX_ELASTIC_H
#define DT_PMIX_ELASTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_elastic {
    size_t ranks, minimum; /* minimum 0: none may be lost */
    size_t respawns;       /* how often a rank may be started again, in all */
    size_t respawned, lost;
    bool no_restart; /* a rank ended with DT_EXIT_NO_RESTART */
    size_t pending;  /* ranks that are to be started again */
    int64_t *since;  /* [ranks] ms, when it ended; 0: it is not one of these */
};

dt_result_t dt_elastic_open(struct dt_elastic *elastic, size_t ranks,
                            size_t minimum, size_t respawns,
                            struct dt_error *err);
void dt_elastic_close(struct dt_elastic *elastic);

/* A rank has failed, with this exit code or 128 + the signal: is it to be
 * started again? Else it is lost. */
bool dt_elastic_failed(struct dt_elastic *elastic, size_t rank, int code,
                       int64_t now);

/* It has been started again; or it cannot be, and is lost. */
void dt_elastic_started(struct dt_elastic *elastic, size_t rank);
void dt_elastic_lost(struct dt_elastic *elastic, size_t rank);

/* Ranks that are not lost, and whether they are too few. */
size_t dt_elastic_left(const struct dt_elastic *elastic);
bool dt_elastic_too_few(const struct dt_elastic *elastic);

/* The exit code of a job that ends as too few are left. */
int dt_elastic_code(const struct dt_elastic *elastic);

#endif
