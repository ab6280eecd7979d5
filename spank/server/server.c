/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.c - the configuration of dt-pmixd (base/step.h), and the variables
 * that it gives to the tasks. */
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/number.h"
#include "base/step.h"
#include "framework/framework.h"
#include "environment.h"
#include "server/rendezvous.h"

enum { COMMAND_MAX = 4096 }; /* bytes of it that PMIx passes to ranks */

struct step {
    uint32_t job, step, node, nodes, ranks, local;
};

/* Slurm's items describe one component, this variable the whole step. */
static bool heterogeneous(spank_t spank)
{
    char text[16];
    int64_t all;
    uint32_t ranks;
    return spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &ranks) ==
               ESPANK_SUCCESS &&
           dt_variable_get(spank, "SLURM_STEP_NUM_TASKS", text, sizeof(text)) &&
           dt_number_parse(text, 0, UINT32_MAX, &all) && all != ranks;
}

bool dt_server_wanted(spank_t spank, const struct spank_dt *dt)
{
    char meet[16];
    switch (dt_pmix_whose(dt)) {
    case DT_PMIX_SERVER:
        return true;
    case DT_PMIX_AUTO:
        return !heterogeneous(spank) &&
               (!dt_variable_get(spank, DT_ENV_PMIX_MEET, meet, sizeof(meet)) ||
                strcmp(meet, DT_ENV_PMIX_SLURMS) != 0);
    default:
        return false;
    }
}

static dt_result_t identify(spank_t spank, struct step *step,
                            struct dt_error *err)
{
    if (spank_get_item(spank, S_JOB_ID, &step->job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &step->step) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NODEID, &step->node) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NNODES, &step->nodes) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &step->ranks) !=
            ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &step->local) !=
            ESPANK_SUCCESS)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm does not report the number of this step");
    if (heterogeneous(spank))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "--dt-pmix=server does not know heterogeneous "
                            "steps yet: use --dt-pmix=slurm and --mpi=pmix");
    return DT_SUCCESS;
}

/* Its text for a line: no control characters. */
static void print_command(spank_t spank, FILE *out)
{
    char **argv = NULL;
    int argc = 0, room = COMMAND_MAX;
    if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS ||
        argc < 1)
        return;
    fputs("command", out);
    for (int i = 0; i < argc && room > 0; i++, room--) {
        fputc(' ', out);
        for (const char *c = argv[i]; *c && room > 0; c++, room--)
            fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
    }
    fputc('\n', out);
}

static void print_local(spank_t spank, const struct step *step, FILE *out)
{
    const char *comma = "local ";
    /* never ask for local itself: slurmstepd would crash */
    for (uint32_t i = 0; i < step->local; i++) {
        uint32_t rank;
        if (spank_get_item(spank, S_JOB_LOCAL_TO_GLOBAL_ID, i, &rank) ==
            ESPANK_SUCCESS)
            fprintf(out, "%s%u", comma, (unsigned)rank);
        comma = ",";
    }
    fputc('\n', out);
}

/* The rendezvous: at srun, whose address this node knows; or at the first node,
 * where --export keeps srun's variables back. */
static void print_rendezvous(spank_t spank, const struct step *step, FILE *out)
{
    char host[256], first[256], text[16], nodes[16384];
    int64_t port;
    bool called =
        dt_variable_get(spank, "SLURM_SRUN_COMM_HOST", host, sizeof(host)) &&
        dt_rendezvous_is_host(host);
    if (step->nodes < 2)
        return;
    if (called &&
        dt_variable_get(spank, DT_ENV_PMIX_MEET, text, sizeof(text)) &&
        dt_number_parse(text, 1, UINT16_MAX, &port)) {
        fprintf(out, "meet %s %u\n", host, (unsigned)port);
        return;
    }
    if (called)
        fprintf(out, "srun %s\n", host);
    /* a list longer than this is cut, but its first name is whole */
    nodes[0] = '\0';
    spank_getenv(spank, "SLURM_STEP_NODELIST", nodes, sizeof(nodes));
    nodes[sizeof(nodes) - 1] = '\0';
    dt_rendezvous_first_node(nodes, first, sizeof(first));
    /* srun's own address is added: the node's name may not resolve */
    fprintf(out, "meet %s%s%s 0\n",
            dt_rendezvous_is_host(first) ? first : "localhost",
            called ? "," : "", called ? host : "");
}

static dt_result_t heartbeat(spank_t spank, int64_t *seconds,
                             struct dt_error *err)
{
    char text[16] = "";
    spank_getenv(spank, DT_ENV_HEARTBEAT, text, sizeof(text));
    *seconds = DT_ENV_HEARTBEAT_DEFAULT;
    return *text ? dt_number_read(DT_ENV_HEARTBEAT "=", text, 1,
                                  DT_ENV_HEARTBEAT_MAX, seconds, err)
                 : DT_SUCCESS;
}

static dt_result_t print(spank_t spank, const struct spank_dt *dt,
                         const struct step *step, FILE *out,
                         struct dt_error *err)
{
    const char *name = getenv("SLURMD_NODENAME"); /* slurmd's, not the job's */
    int64_t seconds;
    dt_result_t rc = heartbeat(spank, &seconds, err);
    if (rc != DT_SUCCESS)
        return rc;
    fprintf(out,
            "version %d\njob %u\nstep %u\nnode %u\nnodes %u\nname %s\n"
            "ranks %u\ndirectory %s\nheartbeat %u\nlimit %d\nauth %s\n",
            DT_STEP_VERSION, (unsigned)step->job, (unsigned)step->step,
            (unsigned)step->node, (unsigned)step->nodes,
            name ? name : "localhost", (unsigned)step->ranks,
            dt->daemon.directory, (unsigned)seconds, DT_STEP_LIMIT,
            dt->auth ? dt->auth : "munge");
    if (dt->munge)
        fprintf(out, "munge %s\n", dt->munge);
    if (dt->option[DT_OPTION_ELASTIC].type == DT_OPTION_SET)
        fprintf(out, "elastic %u\n",
                (unsigned)dt->option[DT_OPTION_ELASTIC].count);
    print_local(spank, step, out);
    print_rendezvous(spank, step, out);
    print_command(spank, out);
    dt_framework_configure(spank, dt, out);
    return DT_SUCCESS;
}

dt_result_t dt_server_start(spank_t spank, struct spank_dt *dt,
                            const struct dt_helper_user *user,
                            struct dt_error *err)
{
    struct step step;
    char *text = NULL;
    size_t size;
    dt_result_t rc = identify(spank, &step, err);
    dt->daemon.user = *user;
    if (rc == DT_SUCCESS)
        rc = dt_daemon_name(&dt->daemon, step.job, step.step, err);
    if (rc != DT_SUCCESS)
        return rc;
    FILE *out = open_memstream(&text, &size);
    if (out)
        rc = print(spank, dt, &step, out, err);
    if (!out || fclose(out) != 0)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    else if (rc == DT_SUCCESS && size >= DT_STEP_PACKET)
        rc = dt_error_set(err, DT_ERR_UNSUPPORTED,
                          "more ranks on this node than fit into the "
                          "configuration of dt-pmixd");
    if (rc == DT_SUCCESS) {
        dt->daemon.program = dt->pmixd ? dt->pmixd : DT_PMIXD_PROGRAM;
        dt->daemon.running = step.local;
        rc =
            dt_daemon_start(&dt->daemon, text, (DT_STEP_LIMIT + 5) * 1000, err);
    }
    free(text);
    return rc;
}

/* ---- the tasks' variables ---- */

/* The name of a PMIx variable that another server has set: Slurm's, or the one
 * of a step around this one. */
static bool find_foreign(spank_t spank, char *name, size_t size)
{
    static const char pmix[] = "PMIX_", users[] = "PMIX_MCA_";
    char **env;
    if (spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS || !env)
        return false;
    for (; *env; env++) {
        size_t length = strcspn(*env, "=");
        if (strncmp(*env, pmix, sizeof(pmix) - 1) != 0 ||
            !strncmp(*env, users, sizeof(users) - 1) || length >= size)
            continue;
        memcpy(name, *env, length);
        name[length] = '\0';
        return true;
    }
    return false;
}

bool dt_server_set_variables(spank_t spank, const struct spank_dt *dt,
                             uint32_t task_rank)
{
    char room[4096], rank[16];
    const char *value, *at = dt->daemon.env;
    spank_unsetenv(spank, DT_ENV_PMIX_MEET);
    if (!at && dt->option[DT_OPTION_PMIX].policy != DT_PMIX_NONE)
        return true;
    while (find_foreign(spank, room, sizeof(room)))
        if (spank_unsetenv(spank, room) != ESPANK_SUCCESS)
            return false;
    if (!at)
        return true;
    while (dt_daemon_variable(&at, room, sizeof(room), &value))
        if (!strncmp(room, "PMIX_MCA_", 9)
                ? !dt_variable_offer(spank, room, value)
                : !dt_variable_set(spank, room, value))
            return false;
    snprintf(rank, sizeof(rank), "%u", (unsigned)task_rank);
    return dt_variable_set(spank, "PMIX_RANK", rank);
}
