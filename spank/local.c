/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.c - the plugin in srun. */
#include "spank_dt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/number.h"
#include "base/step.h"
#include "placement/grant.h"
#include "placement/table.h"
#include "requeue/requeue.h"
#include "server/rendezvous.h"

void dt_local_init(struct spank_dt *dt)
{
    dt_client_init(dt, DT_CLIENT_SRUN);
    /* in a step, the srun of that has set it for its tasks */
    dt->mpi_is_users = getenv("SLURM_MPI_TYPE") && !getenv("SLURM_STEP_ID");
    dt->in_batch = getenv("SLURM_JOB_ID") && getenv("SLURMD_NODENAME") &&
                   !getenv("SLURM_STEP_ID");
}

void dt_local_init_post_opt(struct spank_dt *dt)
{
    dt_client_done(dt);
    for (int id = 0; id < DT_NOPTIONS; id++)
        if (dt->typed[id] && dt_option_needs_gpus(id) &&
            !dt->given[DT_OPTION_GPUS]) {
            slurm_error("dt: --%s says nothing without --dt-gpus: add "
                        "--dt-gpus, or leave it out",
                        dt_option_name[id].option);
            /* srun does not heed the failure of an optional plugin here, and
             * nothing is allocated yet */
            _exit(255);
        }
}

/* Slurm replaces the user's CUDA_VISIBLE_DEVICES on the way to the tasks, so
 * it travels under another name. */
static void carry_visible(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && *visible && !getenv(DT_ENV_VERSION) &&
        !dt_grant_is_slurms(visible, getenv("SLURM_STEP_GPUS"),
                            getenv("SLURM_JOB_GPUS")))
        setenv(DT_ENV_USER_VISIBLE, visible, 1);
    else
        unsetenv(DT_ENV_USER_VISIBLE);
}

/* Has the user chosen what ranks meet by? By now Slurm has put into the
 * variable what is to be, be it the cluster's default. */
static bool names_mpi(spank_t spank, const struct spank_dt *dt)
{
    const char *type = getenv("SLURM_MPI_TYPE");
    char **argv;
    int argc;
    if (!type || !strcmp(type, "none"))
        return false;
    if (dt->mpi_is_users)
        return true;
    FILE *command_line = fopen("/proc/self/cmdline", "re");
    bool named =
        command_line &&
        spank_get_item(spank, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS &&
        dt_rendezvous_names_mpi(command_line, (size_t)argc);
    if (command_line)
        fclose(command_line);
    return named;
}

static bool is_heterogeneous(const char *size)
{
    int64_t components;
    return dt_number_parse(getenv(size), 2, UINT32_MAX, &components);
}

/* Where the PMIx servers of several nodes meet. Without it, the first node
 * opens the place. */
static void open_meeting(spank_t spank, const struct spank_dt *dt)
{
    struct dt_rendezvous meeting = {
        .program = dt->pmixd ? dt->pmixd : DT_PMIXD_PROGRAM,
        .munge = dt->munge,
        .limit = DT_STEP_LIMIT,
    };
    struct dt_error why;
    char text[16];
    uint16_t port;
    /* SLURM_NNODES may be the allocation's */
    if (spank_get_item(spank, S_JOB_NNODES, &meeting.nodes) != ESPANK_SUCCESS ||
        meeting.nodes < 2 ||
        spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &meeting.ranks) !=
            ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_ID, &meeting.job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &meeting.step) != ESPANK_SUCCESS)
        return;
    if (dt_rendezvous_open(&meeting, &port, &why) != DT_SUCCESS) {
        slurm_debug("dt: %s", why.text);
        return;
    }
    snprintf(text, sizeof(text), "%u", (unsigned)port);
    setenv(DT_ENV_PMIX_MEET, text, 1);
}

static void choose_server(spank_t spank, const struct spank_dt *dt)
{
    int whose = dt->option[DT_OPTION_PMIX].policy;
    unsetenv(DT_ENV_PMIX_MEET);
    if (is_heterogeneous("SLURM_HET_SIZE") ||
        is_heterogeneous("SLURM_PACK_SIZE"))
        return; /* it has one srun, but no common server */
    if (whose == DT_PMIX_SERVER ||
        (whose == DT_PMIX_AUTO && !names_mpi(spank, dt)))
        open_meeting(spank, dt);
    else if (whose == DT_PMIX_AUTO)
        setenv(DT_ENV_PMIX_MEET, DT_ENV_PMIX_SLURMS, 1);
}

/* The header comes from here, before any task starts, so that it is printed
 * once and first. */
void dt_local_user_init(spank_t spank, const struct spank_dt *dt)
{
    const struct dt_option *gpus = &dt->option[DT_OPTION_GPUS];
    if (!dt_is_task_step(spank))
        return;
    dt_ckpt_local(spank, dt);
    if (dt_wants_pmix(dt))
        choose_server(spank, dt);
    if (gpus->type != DT_OPTION_SET)
        return;
    carry_visible();
    if (!gpus->verbose)
        return;
    struct dt_table table = dt_table_widths(environ);
    dt_table_print_header(&table, stderr);
}
