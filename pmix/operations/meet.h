/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.h - the query by which a rank learns who goes on (base/meet.h). */
#ifndef DT_PMIX_MEET_H
#define DT_PMIX_MEET_H

#include <pmix_common.h>
#include <stdbool.h>

#include "server/info.h"

struct dt_pmix;

/* Is it a query of DT_MEET_KEY, and of nothing else? */
bool dt_pmix_is_meet(const pmix_query_t *queries, size_t nqueries);

/* Answer it: to gets the attributes of the answer, and then done is called,
 * once, maybe before return. ended: the rank has ended since, and nothing can
 * be sent to it. query has to stay valid until return, to until done. */
void dt_pmix_meet(struct dt_pmix *pmix, const pmix_query_t *query,
                  struct dt_pmix_infos *to, void (*done)(void *arg, bool ended),
                  void *arg);

#endif
