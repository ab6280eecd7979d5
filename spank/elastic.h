/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* elastic.h - --dt-elastic: a step, and its job, that go on when ranks or nodes
 * are lost. */
#ifndef DT_SPANK_ELASTIC_H
#define DT_SPANK_ELASTIC_H

#include "spank_dt.h"

/* In slurm_spank_init of srun, sbatch or salloc, which is before they read
 * their variables: if the option is given, set those by which Slurm keeps the
 * step and the job. What the user has set is kept. */
void dt_elastic_init(struct spank_dt *dt, enum dt_client client);

/* sbatch, after each option: it reads its variables between the lines #SBATCH
 * and the command line. */
void dt_elastic_option(struct spank_dt *dt);

/* Once the options have been read, unset these variables, so that nothing that
 * this process starts inherits them. */
void dt_elastic_done(struct spank_dt *dt);

/* srun, at the end of its options: the PMIx server must be ours. Ends srun with
 * 255, after one line, where another one is asked for. */
void dt_elastic_check_server(const struct spank_dt *dt);

/* srun, before the tasks: notes where the user's options end the step with a
 * rank or a node. */
void dt_elastic_local(spank_t spank, const struct spank_dt *dt);

/* slurmstepd and its tasks. INVALID_ARG: the step has fewer tasks than the
 * minimum; the text is empty but on the first node, so that it is printed once.
 */
dt_result_t dt_elastic_check(spank_t spank, const struct spank_dt *dt,
                             struct dt_error *err);

/* A task: set DT_ELASTIC, or remove that of a step around this one. false:
 * Slurm refused. */
bool dt_elastic_task_init(spank_t spank, const struct spank_dt *dt);

#endif
