/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* news.h - what the mesh of all nodes' servers tells this one. */
#ifndef DT_PMIX_NEWS_H
#define DT_PMIX_NEWS_H

#include "mesh/mesh.h"

struct dt_pmix;

/* The host of the mesh. */
struct dt_mesh_host dt_pmix_news_host(struct dt_pmix *pmix);

/* Tell the ranks of this node that a rank, of any node, has ended. */
void dt_pmix_news_end(struct dt_pmix *pmix, size_t rank);

#endif
