/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* option.h - the options of srun, sbatch and salloc: what each is called and
 * what its value means. Pure. */
#ifndef DT_SPANK_OPTION_H
#define DT_SPANK_OPTION_H

#include "base/error.h"
#include "dt_topo.h"

enum dt_option_id {
    DT_OPTION_GPUS,
    DT_OPTION_NICS,
    DT_OPTION_CPU_BIND,
    DT_OPTION_PMIX,
    DT_OPTION_RENDEZVOUS,
    DT_OPTION_ELASTIC,
    DT_OPTION_CKPT,
    DT_OPTION_CKPT_FLUSH,
    DT_OPTION_CKPT_INTERVAL,
    DT_OPTION_CKPT_REDUNDANCY,
    DT_OPTION_CKPT_KEEP,
    DT_OPTION_NOTICE_SIGNAL,
    DT_OPTION_REQUEUE,
    DT_NOPTIONS,
};

/* --dt-requeue: how often at most, in all and by cause. */
enum dt_cap {
    DT_CAP_MAX,
    DT_CAP_PREEMPT,
    DT_CAP_NODEFAIL,
    DT_CAP_TIMEOUT,
    DT_CAP_ERROR,
    DT_NCAPS,
};
#define DT_CAP_DEFAULT 100

/* Whose PMIx server the ranks connect to; the first one with --dt-gpus alone.
 */
enum dt_pmix_whose {
    DT_PMIX_AUTO, /* ours, unless the user chose one by srun's --mpi */
    DT_PMIX_SERVER,
    DT_PMIX_SLURM,
    DT_PMIX_NONE,
};

enum dt_client {
    DT_CLIENT_SRUN,
    DT_CLIENT_SBATCH,
    DT_CLIENT_SALLOC,
    DT_NCLIENTS,
};

/* Has the option no effect without --dt-gpus? */
static inline bool dt_option_needs_gpus(enum dt_option_id id)
{
    return id == DT_OPTION_NICS || id == DT_OPTION_CPU_BIND;
}

enum { DT_OPTION_TEXT = 4096 }; /* bytes of a value, with its NUL */

/* An option as Slurm registers it, and the variables that stand for it. */
struct dt_option_name {
    const char *option; /* "dt-gpus" */
    const char *arginfo, *usage;
    int has_arg;                       /* 1: needs a value, 2: may have one */
    const char *variable[DT_NCLIENTS]; /* "SLURM_DT_GPUS" ... */
    /* Where Slurm looks for an option before it reads the command line, and
     * where sbatch and salloc leave theirs for the sruns of the job. */
    const char *inherited;
    const char *job_control; /* as spank_job_control_unsetenv() calls it */
};

extern const struct dt_option_name dt_option_name[DT_NOPTIONS];

enum dt_option_type {
    DT_OPTION_NONE, /* as if it had not been given */
    DT_OPTION_HELP,
    DT_OPTION_SET,
};

struct dt_option {
    enum dt_option_type type;
    bool verbose;   /* of --dt-gpus and --dt-rendezvous */
    char value[64]; /* as given, without verbose; cut */
    /* a dt_place_policy_t, dt_place_nics_t, dt_place_cpus_t, dt_pmix_whose, or
     * the number of a signal */
    int policy;
    uint32_t count; /* for DT_PLACE_COUNT; of --dt-elastic */
    uint32_t nlist;
    uint64_t list[DT_PLACE_MAX_MAP]; /* of map: and mask: of --dt-gpus */
    char nic[DT_PLACE_MAX_MAP][32];  /* of map: of --dt-nics */
    char text[DT_OPTION_TEXT];       /* of --dt-ckpt and others, uncut */
    uint32_t cap[DT_NCAPS];          /* of --dt-requeue */
};

/* Parse text as given; NULL is an option without a value, which means its
 * default, auto for --dt-gpus, server for --dt-pmix. source names where it was
 * given, for the message:
 * "--dt-gpus" or a variable. INVALID_ARG: malformed. */
dt_result_t dt_option_parse(enum dt_option_id id, const char *text,
                            const char *source, struct dt_option *option,
                            struct dt_error *err);

/* The text of --<option>=help, lines of it with newlines. */
const char *dt_option_help(enum dt_option_id id);

#endif
