/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.h - the PMIx query by which ranks agree who of them goes on, as both
 * sides of it have it: libdt and the PMIx servers of the step. */
#ifndef DT_BASE_MEET_H
#define DT_BASE_MEET_H

/* The key that is queried, with PMIX_QUERY_REFRESH_CACHE, and that of the
 * result, a PMIX_BYTE_OBJECT, little endian:
 *
 *   epoch u64 | count u32 | members, rising
 *   member: rank u32 | incarnation u32 | card, its length u32 and its bytes
 *
 * epoch: 1 the first time, one more each time. The rank that asks is one of the
 * members. A member may have ended since. */
#define DT_MEET_KEY "dt.meet"

/* The qualifiers of the query. */
#define DT_MEET_RANK    "dt.rank"    /* PMIX_UINT32: who asks */
#define DT_MEET_CARD    "dt.card"    /* PMIX_BYTE_OBJECT: for the others */
#define DT_MEET_TIMEOUT "dt.timeout" /* PMIX_UINT32: seconds; 0: none */

/* Instead of a result: what failed. PMIx's client has no attributes of a query
 * with an error, so that the query itself returns PMIX_SUCCESS then. */
#define DT_MEET_STATUS "dt.status" /* PMIX_INT32: the pmix_status_t */
#define DT_MEET_WHY    "dt.why"    /* PMIX_STRING: one line */

#endif
