/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plugin.c - the hooks that Slurm calls; each calls the file of its context.
 * They always return success: a failing hook may drain a node, also under a job
 * that has none of our options. */
#include <stdint.h>
#include <string.h>
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
static struct spank_dt dt;

/* Has the hook run before? plugstack.conf may name the plugin twice; Slurm then
 * calls each hook once per line, on this same state. */
static bool ran(bool *done)
{
    bool before = *done;
    *done = true;
    return before;
}

/* val is the id that register_options() gave to Slurm */
static int on_option(int val, const char *text, int remote)
{
    enum dt_option_id id = (enum dt_option_id)val;
    if (!remote)
        return dt_client_option(&dt, id, text);
    dt_remote_option(&dt, id, text);
    return 0;
}

static void register_options(spank_t spank)
{
    for (int id = 0; id < DT_NOPTIONS; id++) {
        const struct dt_option_name *name = &dt_option_name[id];
        struct spank_option option = {
            .name = (char *)name->option,
            .arginfo = (char *)name->arginfo,
            .usage = (char *)name->usage,
            .has_arg = name->has_arg,
            .val = id,
            .cb = on_option,
        };
        if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
            slurm_error("dt: Slurm did not take the option --%s", name->option);
    }
}

/* An argument of the plugin in plugstack.conf. Slurm keeps argv. */
static void read_argument(const char *text)
{
    const struct {
        const char *name, **value;
        char first; /* of the value; 0: any */
    } known[] = {{"helper=", &dt.helper, '/'},
                 {"conf=", &dt.conf, '/'},
                 {"pmixd=", &dt.pmixd, '/'},
                 {"munge=", &dt.munge, '/'},
                 {"auth=", &dt.auth, '\0'}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].name);
        const char *value = text + length;
        if (strncmp(text, known[i].name, length) != 0 ||
            (known[i].first
                 ? *value != known[i].first
                 : strcmp(value, "munge") && strcmp(value, "native")))
            continue;
        *known[i].value = value;
        return;
    }
    dt_error_set(&dt.bad_argument, DT_ERR_INVALID_ARG,
                 "plugstack.conf: unknown argument \"%.64s\" of spank_dt.so: "
                 "expected helper=/PATH, conf=/PATH, pmixd=/PATH, "
                 "auth=munge|native or munge=/SOCKET, ask the administrator "
                 "to mend it",
                 text);
}

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
    enum spank_context context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR &&
        context != S_CTX_REMOTE)
        return 0;
    for (int i = 0; i < argc; i++)
        read_argument(argv[i]);
    dt.lines++;
    if (ran(&dt.loaded))
        return 0;
    register_options(spank);
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
        dt_local_init_post_opt(&dt);
    if (spank_context() == S_CTX_ALLOCATOR)
        dt_allocator_init_post_opt(spank, &dt);
    if (spank_context() == S_CTX_REMOTE && !ran(&dt.discover_done))
        dt_remote_init_post_opt(spank, &dt);
    return 0;
}

int slurm_spank_local_user_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (!ran(&dt.local_user_done))
        dt_local_user_init(spank, &dt);
    return 0;
}

int slurm_spank_user_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE && !ran(&dt.user_done))
        dt_remote_user_init(spank, &dt);
    return 0;
}

int slurm_spank_task_post_fork(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
        dt_remote_task_post_fork(spank, &dt);
    return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE && !ran(&dt.task_done))
        dt_remote_task_init(spank, &dt);
    return 0;
}

int slurm_spank_task_exit(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
        dt_remote_task_exit(spank, &dt);
    return 0;
}

int slurm_spank_exit(spank_t spank, int argc, char *argv[])
{
    (void)spank;
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
        dt_remote_exit(&dt);
    return 0;
}
