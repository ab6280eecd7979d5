/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* again.h - a rank that comes back: PMIx has to forget the old process, count
 * the new one, and expect it, in this order, each in its own thread.
 *
 * From then on a fence that a rank of this node begins and that names the one
 * to come waits for it in PMIx, until it comes or its process has ended; those
 * of other nodes fail until it is there. So replace a rank when the survivors
 * have noticed, and do start the process. */
#ifndef DT_PMIX_AGAIN_H
#define DT_PMIX_AGAIN_H

struct dt_pmix;

/* Tell PMIx how many ranks of this node there are. */
void dt_pmix_again_count(struct dt_pmix *pmix);

/* A rank of this node was lost, so that PMIx counts one less: where a count of
 * ours was on its way it was wrong. */
void dt_pmix_again_recount(struct dt_pmix *pmix);

#endif
