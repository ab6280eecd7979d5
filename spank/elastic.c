/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* elastic.c - --dt-elastic: keeps Slurm from ending the step, and gives the
 * tasks the minimum. */
#include "elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "environment.h"
#include "log.h"

/* Options of Slurm, as it reads them from variables. */
static const struct keeper {
    const char *variable[DT_NCLIENTS]; /* NULL: this client has none */
    const char *value;
    const char *option; /* of srun, with a letter */
    char letter;
    const char *kept; /* a value of that option with which a step goes on */
    const char *bare; /* the option without a value; NULL: it has always one */
    const char *ends; /* what the others mean to an elastic step */
} keepers[DT_ELASTIC_KEEPERS] = {
    {{"SLURM_KILL_BAD_EXIT", NULL, NULL},
     "0",
     "--kill-on-bad-exit",
     'K',
     "0",
     "1",
     "the first rank that is lost ends the step"},
    {{"SLURM_NO_KILL", "SBATCH_NO_KILL", "SALLOC_NO_KILL"},
     "set",
     "--no-kill",
     'k',
     "set",
     "set",
     "the first node that is lost ends the step"},
    {{"SLURM_WAIT", NULL, NULL},
     "0",
     "--wait",
     'W',
     "0",
     NULL,
     "so many seconds after the first rank has ended, the step ends"},
};

static bool is_given(const struct spank_dt *dt)
{
    return dt->option[DT_OPTION_ELASTIC].type == DT_OPTION_SET;
}

/* ---- before Slurm reads its variables ---- */

static bool names_minimum(const char *value)
{
    return value && *value && strcmp(value, "none") != 0;
}

static void set_keepers(struct spank_dt *dt, enum dt_client client)
{
    for (size_t i = 0; i < DT_ELASTIC_KEEPERS; i++) {
        const char *name = keepers[i].variable[client];
        if (name && !dt->keeper[i] && !getenv(name) &&
            setenv(name, keepers[i].value, 1) == 0)
            dt->keeper[i] = name;
    }
}

void dt_elastic_init(struct spank_dt *dt, enum dt_client client)
{
    const struct dt_option_name *name = &dt_option_name[DT_OPTION_ELASTIC];
    enum dt_typed typed = dt_client_typed(DT_OPTION_ELASTIC);
    if (typed == DT_TYPED_VALUE ||
        (typed == DT_TYPED_NOT && (names_minimum(getenv(name->inherited)) ||
                                   names_minimum(getenv(name->job_control)))))
        set_keepers(dt, client);
}

void dt_elastic_option(struct spank_dt *dt)
{
    if (dt->is_sbatch && is_given(dt))
        set_keepers(dt, DT_CLIENT_SBATCH);
}

void dt_elastic_done(struct spank_dt *dt)
{
    for (size_t i = 0; i < DT_ELASTIC_KEEPERS; i++)
        if (dt->keeper[i])
            unsetenv(dt->keeper[i]);
}

/* ---- srun ---- */

void dt_elastic_check_server(const struct spank_dt *dt)
{
    const struct dt_option *pmix = &dt->option[DT_OPTION_PMIX];
    if (!is_given(dt) || pmix->type != DT_OPTION_SET ||
        (pmix->policy != DT_PMIX_SLURM && pmix->policy != DT_PMIX_NONE))
        return;
    slurm_error("dt: --dt-elastic needs slurm-dt's PMIx server: leave "
                "--dt-pmix=%s out, or add --dt-elastic=none",
                pmix->value);
    _exit(255); /* as dt_local_init_post_opt does */
}

/* The value that a word of the command line gives to the option, or NULL; next
 * is the word after it. */
static const char *value_of(const struct keeper *keeper, const char *word,
                            const char *next)
{
    size_t length = strlen(keeper->option);
    if (word[0] == '-' && word[1] == keeper->letter)
        return word[2] ? word + 2 : keeper->bare ? keeper->bare : next;
    if (strncmp(word, keeper->option, length) != 0)
        return NULL;
    if (word[length] == '=')
        return word + length + 1;
    return word[length] ? NULL : keeper->bare ? keeper->bare : next;
}

/* The user's value: of the command line, the last one, else of the variable. */
static const char *users_value(const struct spank_dt *dt, size_t i, char **argv,
                               size_t argc)
{
    const char *name = keepers[i].variable[DT_CLIENT_SRUN];
    const char *value = dt->keeper[i] ? NULL : getenv(name);
    for (size_t at = 1; at < argc; at++) {
        const char *typed = value_of(&keepers[i], argv[at], argv[at + 1]);
        value = typed ? typed : value;
    }
    return value;
}

static void compare(const struct spank_dt *dt, char **argv, size_t argc)
{
    for (size_t i = 0; i < DT_ELASTIC_KEEPERS; i++) {
        const char *value = users_value(dt, i, argv, argc);
        if (!value && !dt->keeper[i])
            dt_log_note("--dt-elastic=%s without %s=%s: it was not seen in "
                        "time; write each option of srun as a word of its own",
                        dt->option[DT_OPTION_ELASTIC].value, keepers[i].option,
                        keepers[i].value);
        else if (value && *value && strcmp(value, keepers[i].kept) != 0)
            dt_log_note("--dt-elastic=%s with %s=%s: %s",
                        dt->option[DT_OPTION_ELASTIC].value, keepers[i].option,
                        value, keepers[i].ends);
    }
}

void dt_elastic_local(spank_t spank, const struct spank_dt *dt)
{
    char **program, **argv;
    int argc;
    size_t words;
    if (!is_given(dt))
        return;
    slurm_verbose("dt: --dt-elastic=%s: srun takes --kill-on-bad-exit=0, "
                  "--no-kill and --wait=0 where you have set nothing else%s",
                  dt->option[DT_OPTION_ELASTIC].value,
                  dt->in_batch && dt->typed[DT_OPTION_ELASTIC]
                      ? "; the job itself survives the loss of a node if "
                        "sbatch had --dt-elastic or --no-kill, too"
                      : "");
    if (spank_get_item(spank, S_JOB_ARGV, &argc, &program) != ESPANK_SUCCESS)
        return;
    argv = dt_client_words(&words);
    if (argv && words >= (size_t)argc)
        compare(dt, argv, words - (size_t)argc);
    dt_client_free_words(argv);
}

/* ---- slurmstepd and its tasks ---- */

/* srun knows the number of tasks only when it has an allocation and has made
 * the step; it would leave both behind if it ended there. */
dt_result_t dt_elastic_check(spank_t spank, const struct spank_dt *dt,
                             struct dt_error *err)
{
    const struct dt_option *option = &dt->option[DT_OPTION_ELASTIC];
    uint32_t tasks, node;
    if (!is_given(dt) ||
        spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) !=
            ESPANK_SUCCESS ||
        option->count <= tasks)
        return DT_SUCCESS;
    if (spank_get_item(spank, S_JOB_NODEID, &node) == ESPANK_SUCCESS && node)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%s", "");
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "--dt-elastic=%s: expected at most the %u task%s of "
                        "this step, or none",
                        option->value, (unsigned)tasks, tasks == 1 ? "" : "s");
}

bool dt_elastic_task_init(spank_t spank, const struct spank_dt *dt)
{
    char minimum[16];
    if (!is_given(dt) || !dt->daemon.env) {
        spank_unsetenv(spank, DT_ENV_ELASTIC);
        return true;
    }
    snprintf(minimum, sizeof(minimum), "%u",
             (unsigned)dt->option[DT_OPTION_ELASTIC].count);
    return dt_variable_set(spank, DT_ENV_ELASTIC, minimum);
}
