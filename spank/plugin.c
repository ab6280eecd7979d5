/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plugin.c - what Slurm sees: the hooks, which hand each call on to the file
 * of its context. They always succeed: a job that did not ask for --dt-gpus
 * never feels the plugin, and a failing hook may drain a node. */
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(default)
#include <slurm/spank.h>

SPANK_PLUGIN(dt, 1)
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
int slurm_spank_init_failure_mode = ESPANK_JOB_FAILURE; /* never the node */
#endif
#pragma GCC visibility pop

#include "spank_dt.h"

/* The only state of the plugin: Slurm's option callback passes no pointer. */
static struct spank_dt dt = {.option = {.type = DT_OPTION_NONE}};

/* plugstack.conf may name the plugin twice. Slurm then calls each hook once per
 * line, on this same state; what is not to be done twice asks here. */
static bool again(bool *done)
{
    bool before = *done;
    *done = true;
    return before;
}

static int on_option(int val, const char *text, int remote)
{
    (void)val;
    if (!remote)
        return dt_client_option(&dt, text);
    dt_remote_option(&dt, text);
    return 0;
}

static void register_option(spank_t spank)
{
    struct spank_option option = {
        .name = (char *)"dt-gpus",
        .arginfo = (char *)"[verbose,]<type>",
        .usage = (char *)"give each task its own GPUs: auto (default), "
                         "rotate, single, <n>, none; help explains",
        .has_arg = 2, /* optional */
        .cb = on_option,
    };
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
        slurm_error("dt: Slurm did not take the option --dt-gpus");
}

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
    enum spank_context context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR &&
        context != S_CTX_REMOTE)
        return 0;
    if (argc > 0)
        dt_error_set(&dt.bad_argument, DT_ERR_INVALID_ARG,
                     "plugstack.conf: unknown argument \"%.64s\" of "
                     "spank_dt.so: expected none, ask the administrator to "
                     "remove it",
                     argv[0]);
    if (again(&dt.loaded))
        return 0;
    register_option(spank);
    if (context == S_CTX_LOCAL)
        dt_local_init(&dt);
    if (context == S_CTX_ALLOCATOR)
        dt_allocator_init(&dt);
    return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_LOCAL)
        dt_client_done(&dt);
    if (spank_context() == S_CTX_ALLOCATOR)
        dt_allocator_init_post_opt(spank, &dt);
    return 0;
}

int slurm_spank_local_user_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (!again(&dt.local_user_done))
        dt_local_user_init(spank, &dt);
    return 0;
}

int slurm_spank_user_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
        dt_remote_user_init(spank, &dt);
    return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE && !again(&dt.task_done))
        dt_remote_task_init(spank, &dt);
    return 0;
}
