/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.h - the PMIx query by which ranks agree who of them goes on, as both
 * sides of it have it: libdt and the PMIx servers of the step. */
#ifndef DT_BASE_MEET_H
#define DT_BASE_MEET_H

/* The key that is queried, and that of the result, a PMIX_BYTE_OBJECT. */
#define DT_MEET_KEY "dt.meet"

/* The qualifiers of the query. */
#define DT_MEET_RANK    "dt.rank"    /* PMIX_UINT32: who asks */
#define DT_MEET_CARD    "dt.card"    /* PMIX_BYTE_OBJECT: for the others */
#define DT_MEET_TIMEOUT "dt.timeout" /* PMIX_UINT32: seconds */

/* With an error: why, PMIX_STRING, one line. */
#define DT_MEET_WHY "dt.why"

#endif
