/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* restore.h - reading what a rank wants of a checkpoint, no block twice and
 * none unverified. */
#ifndef DT_CKPT_RESTORE_H
#define DT_CKPT_RESTORE_H

#include "ckpt/copy.h"
#include "ckpt/fetch.h"
#include "ckpt/match.h"

/* How many rounds of dt_fetch this takes: only what is on other nodes needs
 * some. Reads nothing. Only NO_MEMORY. */
dt_result_t dt_restore_rounds(const struct dt_source *source,
                              const struct dt_match *match,
                              struct dt_copy *copy, size_t *rounds,
                              struct dt_error *err);

/* Read and verify all that match wants, and this rank's share of the headers
 * of the files. Takes part in that many rounds, whatever happens: as many as
 * the rank that needs most. Memory beyond what is read into: 120 MiB, and a
 * header. Errors, whose text is a reason with the file's name: CORRUPT, IO,
 * NO_MEMORY, those of dt_fetch. */
dt_result_t dt_restore(const struct dt_source *source,
                       const struct dt_match *match, struct dt_copy *copy,
                       size_t rounds, struct dt_error *err);

#endif
