/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* spank_dt.h - what the plugin knows, and its part in each of Slurm's
 * contexts. plugin.c owns the one struct spank_dt and hands it round. */
#ifndef DT_SPANK_DT_H
#define DT_SPANK_DT_H

#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

#include "server/daemon.h"
#include "requeue/jobfile.h"
#include "option.h"
#include "requeue/watch.h"

struct spank_dt {
    /* hooks that ran */
    bool loaded, local_user_done, discover_done, user_done, task_done;

    bool given[DT_NOPTIONS]; /* even as none */
    bool typed[DT_NOPTIONS]; /* on the command line, not inherited */
    struct dt_option option[DT_NOPTIONS]; /* all 0 until it is given */
    struct dt_error bad_option[DT_NOPTIONS];
    const char *input[DT_NOPTIONS]; /* the variable that stands for it */

    /* of plugstack.conf */
    const char *helper, *conf, *pmixd, *auth, *munge; /* NULL: not named */
    struct dt_error bad_argument;

    bool mpi_is_users; /* srun: the user named it in the environment */
    bool in_batch;     /* srun: it was called by a batch script */
    bool is_sbatch;
    bool appends; /* sbatch: the log is appended to because we said so */

    /* of this node, in slurmstepd */
    size_t step_gpus;              /* before Slurm binds any to a task */
    bool binds_cpus, binds_memory; /* the user has told Slurm where */
    char *topology;                /* what the helper printed; NULL: */
    size_t topology_size;
    struct dt_error remark;  /* of the helper about it, or why there is none */
    struct dt_daemon daemon; /* the PMIx server */
    struct dt_error no_server;    /* why there is none; "" if none is wanted */
    char notice[DT_JOBFILE_PATH]; /* the file that DT_NOTICE names; "": none */
    struct dt_watch watch;        /* who signals the tasks' leaders */
    int note;                     /* open, about the step's end; 0: none */
};

/* Do the options ask for GPUs of each task's own, or for a PMIx server? The
 * type of that may still be "none". */
static inline bool dt_wants_gpus(const struct spank_dt *dt)
{
    return dt->option[DT_OPTION_GPUS].type == DT_OPTION_SET;
}
static inline bool dt_wants_pmix(const struct spank_dt *dt)
{
    return dt_wants_gpus(dt) ||
           dt->option[DT_OPTION_PMIX].type == DT_OPTION_SET;
}

/* client.c: srun, sbatch and salloc alike */

/* Where an input variable holds a value, let Slurm take it for the option's.
 * In slurm_spank_init, which is before Slurm looks. */
void dt_client_init(struct spank_dt *dt, enum dt_client client);
/* The option callback: 0, or -1 after one line on stderr. Ends the process
 * after the value help. */
int dt_client_option(struct spank_dt *dt, enum dt_option_id id,
                     const char *text);
/* Undo dt_client_init, once Slurm has looked. */
void dt_client_done(struct spank_dt *dt);

/* local.c: srun */
void dt_local_init(struct spank_dt *dt);
/* Ends srun with 255, after one line, where options contradict. */
void dt_local_init_post_opt(struct spank_dt *dt);
void dt_local_user_init(spank_t spank, const struct spank_dt *dt);

/* allocator.c: sbatch, salloc */
void dt_allocator_init(struct spank_dt *dt);
/* after each option */
void dt_allocator_option(struct spank_dt *dt);
void dt_allocator_init_post_opt(spank_t spank, struct spank_dt *dt);

/* remote.c: slurmstepd, and its tasks as the user. Nothing here fails before
 * dt_remote_task_init: only there does an error end the task, and with it the
 * step, and not the node. */
void dt_remote_option(struct spank_dt *dt, enum dt_option_id id,
                      const char *text);
/* Blocks until the helper has ended or its time is over. */
void dt_remote_init_post_opt(spank_t spank, struct spank_dt *dt);
/* Blocks until the PMIx servers of all nodes have met, or their time is over.
 */
void dt_remote_user_init(spank_t spank, struct spank_dt *dt);
void dt_remote_task_post_fork(spank_t spank, struct spank_dt *dt);
/* Returns, or ends the task after one line on its stderr. */
void dt_remote_task_init(spank_t spank, const struct spank_dt *dt);
/* These two block for a few seconds at most, where the server hangs. */
void dt_remote_task_exit(spank_t spank, struct spank_dt *dt);
void dt_remote_exit(struct spank_dt *dt);

/* The job's user, as which our programs run. */
bool dt_remote_user(spank_t spank, struct dt_helper_user *user);

/* true for a step that runs tasks of the user: not the batch script, not
 * salloc's shell, not Slurm's own. */
bool dt_is_task_step(spank_t spank);

#endif
