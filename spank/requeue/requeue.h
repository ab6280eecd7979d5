/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requeue.h - --dt-requeue, --dt-ckpt and related options, and the notice, in
 * srun, slurmstepd and its tasks. Failures are reported as notes: a job that
 * cannot be requeued runs all the same. */
#ifndef DT_SPANK_REQUEUE_H
#define DT_SPANK_REQUEUE_H

#include "spank_dt.h"

/* Is an option about checkpoints, --dt-notice-signal or --dt-requeue given? */
bool dt_ckpt_wanted(const struct spank_dt *dt);

/* srun, before the tasks: set DT_CKPT and DT_CKPT_FLUSH to absolute paths, and
 * DT_JOB_END; in a batch script, add the step to the requeue record. Ends srun
 * with 255 if a path is too long. */
void dt_ckpt_local(spank_t spank, const struct spank_dt *dt);

/* slurmstepd, as the user: make the notice file, open the requeue record. */
void dt_requeue_user_init(spank_t spank, struct spank_dt *dt);

/* slurmstepd: a task's process exists, and has not run the user's program. With
 * the first one, the process of watch.h is started. */
void dt_requeue_task_post_fork(spank_t spank, struct spank_dt *dt);

/* A task's own process. false: Slurm refused a variable. */
bool dt_ckpt_task_init(spank_t spank, const struct spank_dt *dt);

/* The batch script's own process, before the script runs; ends it with
 * DT_EXIT_NO_RESTART if the job has been requeued too often. */
void dt_requeue_batch_init(spank_t spank, const struct spank_dt *dt);

/* slurmstepd. For a batch script: blocks until the job is requeued, if it is to
 * be, or slurmctld did not answer for five minutes. */
void dt_requeue_task_exit(spank_t spank, struct spank_dt *dt);
void dt_requeue_exit(struct spank_dt *dt);

#endif
