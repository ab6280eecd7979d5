/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* spank_dt.h - the state of the plugin, and its hooks in each of Slurm's
 * contexts: local (srun), allocator (sbatch, salloc), remote (slurmstepd).
 * plugin.c owns the one struct spank_dt. */
#ifndef DT_SPANK_DT_H
#define DT_SPANK_DT_H

#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

#include "base/jobfile.h"
#include "server/daemon.h"
#include "option.h"
#include "requeue/watch.h"

enum { DT_ELASTIC_KEEPERS = 3 }; /* variables of Slurm: elastic.h */

struct spank_dt {
    /* hooks that have run */
    bool loaded, local_user_done, discover_done, user_done, task_done;

    bool given[DT_NOPTIONS]; /* even as none */
    bool typed[DT_NOPTIONS]; /* on the command line, not inherited */
    struct dt_option option[DT_NOPTIONS]; /* all 0 until it is given */
    struct dt_error bad_option[DT_NOPTIONS];
    const char *input[DT_NOPTIONS]; /* the variable that stands for it */

    /* What was typed in the first part of a heterogeneous step, and in the one
     * that srun reads now. NULL: not the option; "": without a value. */
    char *first_part[DT_NOPTIONS], *part[DT_NOPTIONS];
    unsigned lines, parts; /* of plugstack.conf; ends of parts, once per line */

    /* the plugin's arguments in plugstack.conf */
    const char *helper, *conf, *pmixd, *auth, *munge; /* NULL: not named */
    struct dt_error bad_argument;

    bool mpi_is_users; /* srun: the user has set SLURM_MPI_TYPE */
    bool in_batch;     /* srun: a batch script calls it */
    bool is_sbatch;
    bool appends; /* sbatch: the plugin has set open_mode */
    const char *keeper[DT_ELASTIC_KEEPERS]; /* that the plugin has set */

    /* of this node, in slurmstepd */
    size_t step_gpus;              /* before Slurm binds any to a task */
    bool binds_cpus, binds_memory; /* by an option of the user's for srun */
    char *topology;                /* the output of dt-topo; NULL: none */
    size_t topology_size;
    struct dt_error remark;    /* of dt-topo about it, or why there is none */
    struct dt_daemon daemon;   /* the PMIx server */
    struct dt_error no_server; /* why there is none; "" if none is wanted */
    char notice[DT_JOBFILE_PATH]; /* the file that DT_NOTICE names; "": none */
    struct dt_watch watch;        /* signals the leaders of the tasks */
    int record; /* the requeue record of the job, open; 0: none */
};

/* Is --dt-gpus given; does the step have a type of PMIx server, be it "none"?
 */
static inline bool dt_wants_gpus(const struct spank_dt *dt)
{
    return dt->option[DT_OPTION_GPUS].type == DT_OPTION_SET;
}
static inline bool dt_wants_pmix(const struct spank_dt *dt)
{
    return dt_wants_gpus(dt) ||
           dt->option[DT_OPTION_RENDEZVOUS].type == DT_OPTION_SET ||
           dt->option[DT_OPTION_ELASTIC].type == DT_OPTION_SET ||
           dt->option[DT_OPTION_PMIX].type == DT_OPTION_SET;
}

/* Whose PMIx server it is. An elastic step has ours. */
static inline enum dt_pmix_whose dt_pmix_whose(const struct spank_dt *dt)
{
    enum dt_pmix_whose whose =
        (enum dt_pmix_whose)dt->option[DT_OPTION_PMIX].policy;
    return whose == DT_PMIX_AUTO &&
                   dt->option[DT_OPTION_ELASTIC].type == DT_OPTION_SET
               ? DT_PMIX_SERVER
               : whose;
}

/* client.c: srun, sbatch and salloc alike */

/* Put the values of input variables where Slurm looks for inherited options. To
 * be called in slurm_spank_init, which is before Slurm looks. */
void dt_client_init(struct spank_dt *dt, enum dt_client client);
/* The option callback: 0, or -1 after one line on stderr. Ends the process
 * after the value help. */
int dt_client_option(struct spank_dt *dt, enum dt_option_id id,
                     const char *text);
/* Undo dt_client_init, after Slurm has read the options. */
void dt_client_done(struct spank_dt *dt);

/* The words of the command line of this process, and a NULL; NULL: it cannot be
 * read. */
char **dt_client_words(size_t *n);
void dt_client_free_words(char **words);
/* What the command line says of an option, the last time. Before Slurm reads
 * it, nothing tells where the program begins: an argument of the program with
 * the same name may look alike. */
enum dt_typed {
    DT_TYPED_NOT,
    DT_TYPED_NONE, /* --dt-x=none */
    DT_TYPED_VALUE,
};
enum dt_typed dt_client_typed(enum dt_option_id id);

/* local.c: srun */
void dt_local_init(struct spank_dt *dt);
/* Ends srun with 255, after one line, if an option needs --dt-gpus. */
void dt_local_init_post_opt(struct spank_dt *dt);
void dt_local_user_init(spank_t spank, const struct spank_dt *dt);

/* allocator.c: sbatch, salloc */
void dt_allocator_init(struct spank_dt *dt);
/* after each option */
void dt_allocator_option(struct spank_dt *dt);
void dt_allocator_init_post_opt(spank_t spank, struct spank_dt *dt);

/* remote.c: slurmstepd, and its tasks as the user. Errors are kept until
 * dt_remote_task_init: only there does an error end the task, and with it the
 * step, without an effect on the node. */
void dt_remote_option(struct spank_dt *dt, enum dt_option_id id,
                      const char *text);
/* Blocks until dt-topo has ended, DT_DISCOVER_LIMIT_MS at most. */
void dt_remote_init_post_opt(spank_t spank, struct spank_dt *dt);
/* Blocks until the PMIx servers of all nodes are connected, DT_STEP_LIMIT
 * seconds at most. */
void dt_remote_user_init(spank_t spank, struct spank_dt *dt);
void dt_remote_task_post_fork(spank_t spank, struct spank_dt *dt);
/* Returns, or ends the task after one line on its standard error. */
void dt_remote_task_init(spank_t spank, const struct spank_dt *dt);
/* These two block a few seconds at most, where dt-pmixd hangs. */
void dt_remote_task_exit(spank_t spank, struct spank_dt *dt);
void dt_remote_exit(struct spank_dt *dt);

/* The job's user, as whom our programs run. false: Slurm does not report it. */
bool dt_remote_user(spank_t spank, struct dt_helper_user *user);

/* true for a step that runs tasks of the user: not the batch script, not
 * salloc's shell, not Slurm's own. */
bool dt_is_task_step(spank_t spank);

#endif
