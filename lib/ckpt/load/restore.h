/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* restore.h - reading what a rank needs of a checkpoint, each block once and
 * none unverified. */
#ifndef DT_CKPT_LOAD_RESTORE_H
#define DT_CKPT_LOAD_RESTORE_H

#include "ckpt/copy.h"
#include "ckpt/load/fetch.h"
#include "ckpt/load/match.h"

/* The number of rounds of dt_fetch that dt_restore needs: only remote files
 * need any. Reads nothing. The only error is NO_MEMORY. */
dt_result_t dt_restore_rounds(const struct dt_source *source,
                              const struct dt_match *match,
                              struct dt_copy *copy, size_t *rounds,
                              struct dt_error *err);

/* Read and verify everything in match, and this rank's share of the headers of
 * the files. It takes part in exactly `rounds` rounds, whatever happens: those
 * of the rank that needs most. Memory beyond what is read into: 120 MiB, and a
 * header. Errors, whose text is a reason with the file's name: CORRUPT, IO,
 * NO_MEMORY, those of dt_fetch. */
dt_result_t dt_restore(const struct dt_source *source,
                       const struct dt_match *match, struct dt_copy *copy,
                       size_t rounds, struct dt_error *err);

#endif
