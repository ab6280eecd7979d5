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
#include "elastic.h"
#include "framework/framework.h"
#include "placement/grant.h"
#include "placement/table.h"
#include "requeue/requeue.h"
#include "server/rendezvous.h"

void dt_local_init(struct spank_dt *dt)
{
    dt_client_init(dt, DT_CLIENT_SRUN);
    dt_elastic_init(dt, DT_CLIENT_SRUN);
    /* inside a step, the srun of that step has set it for its tasks */
    dt->mpi_is_users = getenv("SLURM_MPI_TYPE") && !getenv("SLURM_STEP_ID");
    dt->in_batch = getenv("SLURM_JOB_ID") && getenv("SLURMD_NODENAME") &&
                   !getenv("SLURM_STEP_ID");
}

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : !a && !b;
}

/* A part of a heterogeneous step has been read. Slurm passes one value of an
 * option to all parts, so that tasks would be bound otherwise than was typed.
 */
static void end_part(struct spank_dt *dt)
{
    if (dt->parts++ % dt->lines)
        return; /* the hook of another line, after the same options */
    for (int id = 0; id < DT_NOPTIONS; id++) {
        char *text = dt->part[id];
        dt->part[id] = NULL;
        if (dt->parts == 1) {
            dt->first_part[id] = text;
            continue;
        }
        if ((id == DT_OPTION_GPUS || dt_option_needs_gpus(id)) &&
            !same(text, dt->first_part[id])) {
            slurm_error("dt: --%s differs between the parts of this step, and "
                        "Slurm has one value for all of them: give it in each "
                        "part, with the same value, or start two steps",
                        dt_option_name[id].option);
            _exit(255); /* as below */
        }
        free(text);
    }
}

void dt_local_init_post_opt(struct spank_dt *dt)
{
    end_part(dt);
    dt_client_done(dt);
    dt_elastic_done(dt);
    dt_elastic_check_server(dt);
    for (int id = 0; id < DT_NOPTIONS; id++)
        if (dt->typed[id] && dt_option_needs_gpus(id) &&
            !dt->given[DT_OPTION_GPUS]) {
            slurm_error("dt: --%s needs --dt-gpus: add that, or leave "
                        "this out",
                        dt_option_name[id].option);
            /* srun ignores the failure of an optional plugin here; nothing is
             * allocated yet */
            _exit(255);
        }
}

/* Slurm replaces the user's CUDA_VISIBLE_DEVICES in the tasks, so it is passed
 * under another name. */
static void pass_visible(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && *visible && !getenv(DT_ENV_VERSION) &&
        !dt_grant_is_slurms(visible, getenv("SLURM_STEP_GPUS"),
                            getenv("SLURM_JOB_GPUS")))
        setenv(DT_ENV_USER_VISIBLE, visible, 1);
    else
        unsetenv(DT_ENV_USER_VISIBLE);
}

/* Has the user chosen an --mpi? By now Slurm has set the variable in any case,
 * to the cluster's default if nothing else. */
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

/* The rendezvous of the PMIx servers of several nodes. If it cannot be opened
 * here, the server of the first node opens one. */
static void open_rendezvous(spank_t spank, const struct spank_dt *dt)
{
    struct dt_rendezvous rendezvous = {
        .program = dt->pmixd ? dt->pmixd : DT_PMIXD_PROGRAM,
        .munge = dt->munge,
        .limit = DT_STEP_LIMIT,
    };
    struct dt_error why;
    char text[16];
    uint16_t port;
    /* SLURM_NNODES may be the allocation's */
    if (spank_get_item(spank, S_JOB_NNODES, &rendezvous.nodes) !=
            ESPANK_SUCCESS ||
        rendezvous.nodes < 2 ||
        spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &rendezvous.ranks) !=
            ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_ID, &rendezvous.job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &rendezvous.step) != ESPANK_SUCCESS)
        return;
    if (dt_rendezvous_open(&rendezvous, &port, &why) != DT_SUCCESS) {
        slurm_debug("dt: %s", why.text);
        return;
    }
    snprintf(text, sizeof(text), "%u", (unsigned)port);
    setenv(DT_ENV_PMIX_MEET, text, 1);
}

static void choose_server(spank_t spank, const struct spank_dt *dt)
{
    enum dt_pmix_whose whose = dt_pmix_whose(dt);
    unsetenv(DT_ENV_PMIX_MEET);
    if (is_heterogeneous("SLURM_HET_SIZE") ||
        is_heterogeneous("SLURM_PACK_SIZE"))
        return; /* one srun, but no server that all components share */
    if (whose == DT_PMIX_SERVER ||
        (whose == DT_PMIX_AUTO && !names_mpi(spank, dt)))
        open_rendezvous(spank, dt);
    else if (whose == DT_PMIX_AUTO)
        setenv(DT_ENV_PMIX_MEET, DT_ENV_PMIX_SLURMS, 1);
}

/* srun prints the header of the table before any task starts, so that it is
 * printed once and first. */
void dt_local_user_init(spank_t spank, const struct spank_dt *dt)
{
    const struct dt_option *gpus = &dt->option[DT_OPTION_GPUS];
    if (!dt_is_task_step(spank))
        return;
    dt_ckpt_local(spank, dt);
    dt_framework_local(dt);
    dt_elastic_local(spank, dt);
    if (dt_wants_pmix(dt))
        choose_server(spank, dt);
    if (gpus->type != DT_OPTION_SET)
        return;
    pass_visible();
    if (!gpus->verbose)
        return;
    struct dt_table table = dt_table_widths(environ);
    dt_table_print_header(&table, stderr);
}
