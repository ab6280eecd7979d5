/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.h - the ranks and nodes of a job, and its registration with PMIx's
 * server. PMIx calls a job a namespace. */
#ifndef DT_PMIX_JOB_H
#define DT_PMIX_JOB_H

#include <pmix_common.h>
#include <stdint.h>

#include "server/config.h"

struct dt_pmix_job {
    char nspace[PMIX_MAX_NSLEN + 1];
    char *jobid, *directory, *command;
    const struct dt_map *map;
    const struct dt_map_entry *local; /* this node's, of the map */
    size_t size;                      /* ranks */
    size_t self;                      /* this node's number */
    bool oversubscribed;
};

/* Free with dt_pmix_job_free, also after an error. */
dt_result_t dt_pmix_job_init(struct dt_pmix_job *job,
                             const struct dt_pmix_config *config,
                             struct dt_error *err);

/* Register the job and its ranks on this node with PMIx's server. */
dt_result_t dt_pmix_job_register(const struct dt_pmix_job *job,
                                 struct dt_error *err);

/* As dt_pmix_environ. */
dt_result_t dt_pmix_job_environ(const struct dt_pmix_job *job, size_t rank,
                                char ***env, struct dt_error *err);

void dt_pmix_job_free(struct dt_pmix_job *job);

/* The rank that proc names; false if it is none of this job. */
bool dt_pmix_job_rank(const struct dt_pmix_job *job, const pmix_proc_t *proc,
                      size_t *rank);

/* The same, for a rank of this node only. */
bool dt_pmix_job_local(const struct dt_pmix_job *job, const pmix_proc_t *proc,
                       size_t *rank);

#endif
