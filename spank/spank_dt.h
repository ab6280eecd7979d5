/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* spank_dt.h - what the plugin knows, and its part in each of Slurm's
 * contexts. plugin.c owns the one struct spank_dt and hands it round. */
#ifndef DT_SPANK_DT_H
#define DT_SPANK_DT_H

#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

#include "option.h"

struct spank_dt {
    bool loaded, local_user_done, task_done; /* hooks that ran */

    bool given;              /* the option, even as none */
    struct dt_option option; /* DT_OPTION_NONE until it is given */
    struct dt_error bad_option;
    struct dt_error bad_argument; /* in plugstack.conf */
    const char *input;            /* the variable that stands for the option */
    size_t step_gpus; /* of this node, before Slurm binds any to a task */
};

/* client.c: srun, sbatch and salloc alike */

/* If variable holds a value, let Slurm take it for the option's. In
 * slurm_spank_init, which is before Slurm looks. */
void dt_client_init(struct spank_dt *dt, const char *variable);
/* The option callback: 0, or -1 after one line on stderr. Ends the process
 * after --dt-gpus=help. */
int dt_client_option(struct spank_dt *dt, const char *text);
/* Undo dt_client_init, once Slurm has looked. */
void dt_client_done(struct spank_dt *dt);

/* local.c: srun */
void dt_local_init(struct spank_dt *dt);
void dt_local_user_init(spank_t spank, const struct spank_dt *dt);

/* allocator.c: sbatch, salloc */
void dt_allocator_init(struct spank_dt *dt);
void dt_allocator_init_post_opt(spank_t spank, struct spank_dt *dt);

/* remote.c: slurmstepd, as the user, and its tasks. Nothing here fails before
 * dt_remote_task_init: only there does an error end the task, and with it the
 * step, and not the node. */
void dt_remote_option(struct spank_dt *dt, const char *text);
void dt_remote_user_init(spank_t spank, struct spank_dt *dt);
/* Returns, or ends the task after one line on its stderr. */
void dt_remote_task_init(spank_t spank, const struct spank_dt *dt);

/* true for a step that runs tasks of the user: not the batch script, not
 * salloc's shell, not Slurm's own. */
bool dt_is_task_step(spank_t spank);

#endif
