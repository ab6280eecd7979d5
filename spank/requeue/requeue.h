/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requeue.h - --dt-requeue, --dt-ckpt and the notice, in slurmstepd and in its
 * tasks. Nothing here fails: a job that cannot be requeued runs all the same.
 */
#ifndef DT_SPANK_REQUEUE_H
#define DT_SPANK_REQUEUE_H

#include "spank_dt.h"

/* Is any of --dt-ckpt and its kin, or --dt-requeue, given? */
bool dt_ckpt_wanted(const struct spank_dt *dt);

/* srun, before the tasks: DT_CKPT and DT_CKPT_FLUSH as absolute paths,
 * DT_JOB_END; and in a batch script, a note for its end. Ends srun with 255
 * where a path is too long. */
void dt_ckpt_local(spank_t spank, const struct spank_dt *dt);

/* slurmstepd, as the user: the notice of the step; what is noted about it. */
void dt_requeue_user_init(spank_t spank, struct spank_dt *dt);

/* slurmstepd: a task's process is there, and has run nothing of the user's. Who
 * signals the tasks is started with the first of them. */
void dt_requeue_task_post_fork(spank_t spank, struct spank_dt *dt);

/* A task's own process. false: Slurm did not take its variables. */
bool dt_ckpt_task_init(spank_t spank, const struct spank_dt *dt);

/* The batch script's own process, before it runs; ends it with 93 if it has
 * been requeued too often. */
void dt_requeue_batch_init(spank_t spank, const struct spank_dt *dt);

/* slurmstepd. Of a batch script: blocks until the job is requeued if it is to
 * be, or slurmctld could not be reached for minutes. */
void dt_requeue_task_exit(spank_t spank, struct spank_dt *dt);
void dt_requeue_exit(struct spank_dt *dt);

#endif
