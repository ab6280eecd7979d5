/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* env.h - the variables of slurm-dt, the interface between plugin, launcher and
 * library. doc/environment.md describes them for users. */
#ifndef DT_BASE_ENV_H
#define DT_BASE_ENV_H

#include "base/error.h"

/* plugin -> library, set in each task of a `--dt-gpus` step */
#define DT_ENV_VERSION     "DT_ENV_VERSION" /* of this interface */
#define DT_ENV_VERSION_NOW 1
#define DT_ENV_GPUS        "DT_GPUS"   /* the task's own GPUs: "2,3" */
#define DT_ENV_NICS        "DT_NICS"   /* the task's NICs: "mlx5_0,mlx5_1" */
#define DT_ENV_RUN_ID      "DT_RUN_ID" /* the same after each requeue */

/* plugin -> library, from --dt-ckpt and the other options about checkpoints; a
 * user may set them, too */
#define DT_ENV_CKPT            "DT_CKPT"            /* directory */
#define DT_ENV_CKPT_FLUSH      "DT_CKPT_FLUSH"      /* shared directory */
#define DT_ENV_CKPT_INTERVAL   "DT_CKPT_INTERVAL"   /* "auto" or a time */
#define DT_ENV_CKPT_REDUNDANCY "DT_CKPT_REDUNDANCY" /* "rs:4+2" */
#define DT_ENV_CKPT_KEEP       "DT_CKPT_KEEP"       /* "3" or "3,every:1000" */
#define DT_ENV_CKPT_RATE       "DT_CKPT_RATE"       /* MB/s per node, user's */

/* plugin -> library: the notice file of the step on this node; and when the
 * job's time ends, seconds since 1970 */
#define DT_ENV_NOTICE  "DT_NOTICE"
#define DT_ENV_JOB_END "DT_JOB_END"

/* plugin in srun -> plugin in slurmstepd, which removes it: the user's
 * CUDA_VISIBLE_DEVICES, which Slurm replaces in the tasks */
#define DT_ENV_USER_VISIBLE "DT_USER_VISIBLE_DEVICES"

/* plugin in srun -> plugin in slurmstepd, which removes it: the port of the
 * rendezvous of the step's PMIx servers, or DT_ENV_PMIX_SLURMS: the ranks use
 * the server of srun's --mpi. Slurm passes names with SLURM_ to the nodes also
 * with --export=NONE. */
#define DT_ENV_PMIX_MEET   "SLURM_DT_PMIX_MEET"
#define DT_ENV_PMIX_SLURMS "slurm"

/* plugin -> plugin in a step inside of this one: the variables of a framework
 * that it has set, with commas */
#define DT_ENV_RENDEZVOUS "DT_RENDEZVOUS"

/* plugin in srun -> plugin in slurmstepd, which removes it: RAY_AUTH_TOKEN */
#define DT_ENV_RAY_TOKEN "SLURM_DT_RAY_TOKEN"

/* launcher -> library, from dt-run --elastic and srun --dt-elastic: how many
 * ranks must be left for the job to go on when others are lost */
#define DT_ENV_ELASTIC "DT_ELASTIC"

/* PMIx server -> supervisor: its socket, pmix/daemon/control_socket.h */
#define DT_ENV_PMIX_CONTROL "DT_PMIX_CONTROL"

/* user -> plugin: seconds after which a silent node, or a stopped process,
 * counts as lost */
#define DT_ENV_HEARTBEAT         "DT_HEARTBEAT"
#define DT_ENV_HEARTBEAT_DEFAULT 30
#define DT_ENV_HEARTBEAT_MAX     3600

/* user -> library */
#define DT_ENV_TIMEOUT         "DT_TIMEOUT" /* seconds without any progress */
#define DT_ENV_TIMEOUT_DEFAULT 600
#define DT_ENV_TIMEOUT_MAX     604800
#define DT_ENV_CHECK           "DT_CHECK"    /* 1: ranks compare their calls */
#define DT_ENV_PROGRESS        "DT_PROGRESS" /* what progresses requests */
#define DT_ENV_PROGRESS_THREAD "thread"
#define DT_ENV_TUNE            "DT_TUNE" /* a file of parameters, coll/tune.h */
#define DT_ENV_GPU_WAY         "DT_GPU_WAY"    /* the way of GPU memory */
#define DT_ENV_GPU_DIRECT      "DT_GPU_DIRECT" /* 0, 1: GPUDirect RDMA */

/* Read a whole decimal number in [min, max] from variable name into *value;
 * fallback when it is unset or empty. INVALID_ARG otherwise. */
dt_result_t dt_env_long(const char *name, long fallback, long min, long max,
                        long *value, struct dt_error *err);

/* VERSION if a plugin of another version of this interface has set up this
 * task, else SUCCESS. */
dt_result_t dt_env_check_version(struct dt_error *err);

#endif
