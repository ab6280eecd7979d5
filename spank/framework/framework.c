/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* framework.c - --dt-rendezvous in slurmstepd and in the tasks. */
#include "framework/framework.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "base/env.h"
#include "base/number.h"
#include "environment.h"
#include "framework/names.h"
#include "framework/services.h"
#include "framework/variables.h"
#include "placement/system.h"

enum { TOKEN_BYTES = 32 };

static bool is_chosen(const struct spank_dt *dt, struct dt_frameworks *chosen)
{
    const struct dt_option *option = &dt->option[DT_OPTION_RENDEZVOUS];
    return option->type == DT_OPTION_SET &&
           dt_frameworks_parse(option->text, chosen);
}

uint32_t dt_framework_min_cores(const struct spank_dt *dt)
{
    struct dt_frameworks chosen;
    return is_chosen(dt, &chosen) && chosen.ps ? 2 : 0;
}

void dt_framework_configure(spank_t spank, const struct spank_dt *dt, FILE *out)
{
    struct dt_frameworks chosen;
    char ports[256];
    int64_t limit;
    if (!is_chosen(dt, &chosen))
        return;
    bool own = dt_frameworks_own(&chosen);
    uint32_t shared = dt_frameworks_shared(&chosen);
    if (!own && !shared)
        return;
    fprintf(out, "hold-own %d\nhold-shared %u\ntogether %d\n", own,
            (unsigned)shared,
            dt->option[DT_OPTION_ELASTIC].type != DT_OPTION_SET);
    if (dt_variable_get(spank, DT_ENV_TIMEOUT, ports, sizeof(ports)) &&
        dt_number_parse(ports, 1, DT_ENV_TIMEOUT_MAX, &limit))
        fprintf(out, "listen %u\n", (unsigned)limit);
    if (dt_variable_get(spank, "SLURM_STEP_RESV_PORTS", ports, sizeof(ports)) &&
        strspn(ports, "0123456789,-") == strlen(ports))
        fprintf(out, "ports %s\n", ports);
}

bool dt_framework_serves(const struct spank_dt *dt)
{
    struct dt_frameworks chosen;
    bool serves = false;
    if (!is_chosen(dt, &chosen))
        return false;
    for (int port = DT_PORT_SERVICES; port < DT_NPORTS; port++)
        serves =
            serves || dt_frameworks_use(&chosen, (enum dt_framework_port)port);
    return serves;
}

/* Who has it may use the step's Ray. */
void dt_framework_local(const struct spank_dt *dt)
{
    struct dt_frameworks chosen;
    uint8_t chance[TOKEN_BYTES];
    char token[2 * TOKEN_BYTES + 1];
    unsetenv(DT_ENV_RAY_TOKEN);
    if (!is_chosen(dt, &chosen) || !chosen.chosen[DT_FRAMEWORK_RAY] ||
        getrandom(chance, sizeof(chance), 0) != sizeof(chance))
        return;
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        snprintf(token + 2 * i, 3, "%02x", chance[i]);
    setenv(DT_ENV_RAY_TOKEN, token, 1);
}

/* ---- a step around this one ---- */

void dt_framework_forget(spank_t spank)
{
    char names[1024], *rest = names;
    bool known =
        dt_variable_get(spank, DT_ENV_RENDEZVOUS, names, sizeof(names));
    for (char *name; known && (name = strsep(&rest, ","));)
        if (*name)
            spank_unsetenv(spank, name);
    spank_unsetenv(spank, DT_ENV_RENDEZVOUS);
}

/* ---- setting them ---- */

struct setting {
    spank_t spank;
    FILE *names, *kept, *shown; /* lists */
    bool refused;
};

static void add(FILE *list, const char *name)
{
    fprintf(list, "%s%s", ftell(list) > 0 ? "," : "", name);
}

static bool put(void *arg, const char *name, const char *value)
{
    struct setting *setting = arg;
    spank_err_t rc = spank_setenv(setting->spank, name, value, 0);
    if (rc == ESPANK_ENV_EXISTS) {
        add(setting->kept, name);
        return true;
    }
    if (rc != ESPANK_SUCCESS) {
        setting->refused = true;
        return false;
    }
    add(setting->names, name);
    fprintf(setting->shown, " %s=%s", name, value);
    return true;
}

/* The lists, when all is set. */
static dt_result_t finish(const struct setting *setting,
                          const struct spank_dt *dt,
                          const struct dt_framework_task *task,
                          const char *names, const char *kept,
                          const char *shown, struct dt_error *err)
{
    if (*kept && task->rank == 0)
        fprintf(stderr,
                "dt: note: --dt-rendezvous keeps what you have set: %s\n",
                kept);
    if (dt->option[DT_OPTION_RENDEZVOUS].verbose)
        fprintf(stderr, "dt: rank %u on %s:%s\n", (unsigned)task->rank,
                task->host, *shown ? shown : " nothing is set");
    return !*names || dt_variable_set(setting->spank, DT_ENV_RENDEZVOUS, names)
               ? DT_SUCCESS
               : dt_error_set(err, DT_ERR_SYSTEM,
                              "Slurm did not take the task's variables");
}

static dt_result_t set_all(spank_t spank, const struct spank_dt *dt,
                           const struct dt_frameworks *chosen,
                           const struct dt_framework_task *task,
                           struct dt_error *err)
{
    char *text[3] = {NULL, NULL, NULL};
    FILE *list[3];
    size_t size[3];
    bool written = true;
    for (int i = 0; i < 3; i++) {
        list[i] = open_memstream(&text[i], &size[i]);
        written = written && list[i];
    }
    struct setting setting = {spank, list[0], list[1], list[2], false};
    dt_result_t rc =
        written ? dt_framework_variables(chosen, task, put, &setting, err)
                : dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    if (setting.refused)
        rc = dt_error_set(err, DT_ERR_SYSTEM,
                          "Slurm did not take the task's variables");
    for (int i = 0; i < 3; i++)
        written = list[i] && fclose(list[i]) == 0 && written;
    if (rc == DT_SUCCESS && !written)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    if (rc == DT_SUCCESS)
        rc = finish(&setting, dt, task, text[0], text[1], text[2], err);
    for (int i = 0; i < 3; i++)
        free(text[i]);
    return rc;
}

/* ---- the task ---- */

/* A copy of what follows "<key> " in a line of the daemon's; NULL: no line. */
static char *find_line(const char *lines, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = lines; line && *line;) {
        size_t size = strcspn(line, "\n");
        if (size > length && !strncmp(line, key, length) && line[length] == ' ')
            return strndup(line + length + 1, size - length - 1);
        line += size + (line[size] == '\n');
    }
    return NULL;
}

static dt_result_t identify(spank_t spank, struct dt_framework_task *task,
                            struct dt_error *err)
{
    int local_rank;
    if (spank_get_item(spank, S_TASK_ID, &local_rank) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_ID, &task->job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &task->step) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_GLOBAL_ID, &task->rank) !=
            ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &task->ranks) !=
            ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &task->local_ranks) !=
            ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NODEID, &task->node) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NNODES, &task->nodes) != ESPANK_SUCCESS)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm does not report the number of this task");
    task->local_rank = (uint32_t)local_rank;
    return DT_SUCCESS;
}

/* The names of the step's nodes, with commas; NULL: no memory. */
static char *list_hosts(spank_t spank)
{
    char nodes[16384] = "", *made = NULL, *name;
    size_t size;
    spank_getenv(spank, "SLURM_STEP_NODELIST", nodes, sizeof(nodes));
    nodes[sizeof(nodes) - 1] = '\0';
    /* hostlist_t is this pointer up to Slurm 23.02, later what it points to */
    struct hostlist *list = slurm_hostlist_create(nodes);
    FILE *out = open_memstream(&made, &size);
    while (list && out && (name = slurm_hostlist_shift(list))) {
        add(out, name);
        free(name);
    }
    if (list)
        slurm_hostlist_destroy(list);
    return out && fclose(out) == 0 ? made : NULL;
}

/* What goes wrong later without a word of the framework's. */
static void print_notes(spank_t spank, const struct dt_frameworks *chosen,
                        const struct dt_framework_task *task)
{
    char name[16] = "";
    cpu_set_t cpus;
    if (task->rank != 0)
        return;
    if (chosen->chosen[DT_FRAMEWORK_LIGHTNING] &&
        dt_variable_get(spank, "SLURM_JOB_NAME", name, sizeof(name)) &&
        (!strcmp(name, "bash") || !strcmp(name, "interactive")))
        fprintf(stderr,
                "dt: note: Lightning ignores Slurm in a job named %s: use "
                "another --job-name\n",
                name);
    if (chosen->ps && sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
        CPU_COUNT(&cpus) < 2)
        fputs("dt: note: a parameter server of TensorFlow hangs in a task "
              "with one core: use --cpus-per-task=2 or more\n",
              stderr);
}

/* The interface of the route to the first node, on which that is the one that
 * has the address; "lo" where the step has one node. */
static void find_interface(const char *shared, char name[IF_NAMESIZE])
{
    char host[64] = "";
    size_t length = shared ? strcspn(shared, ",") : 0;
    const char *colon = shared ? memrchr(shared, ':', length) : NULL;
    bool six = shared && *shared == '[';
    if (colon)
        snprintf(host, sizeof(host), "%.*s",
                 (int)(colon - shared) - (six ? 2 : 0), shared + six);
    if (!colon || !dt_system_interface(host, name))
        snprintf(name, IF_NAMESIZE, "lo");
}

static dt_result_t start(spank_t spank, const struct spank_dt *dt,
                         const struct dt_frameworks *chosen,
                         struct dt_framework_task *task, struct dt_error *err)
{
    char directory[4096], token[2 * TOKEN_BYTES + 1], interface[IF_NAMESIZE];
    const char *host = getenv("SLURMD_NODENAME"); /* slurmd's, not the job's */
    char *own = find_line(dt->daemon.env, "held-own");
    char *shared = find_line(dt->daemon.env, "held-shared");
    char *hosts = list_hosts(spank);
    task->gpus = dt->step_gpus;
    task->host = host ? host : "localhost";
    task->hosts = hosts ? hosts : "";
    task->directory = getcwd(directory, sizeof(directory)) ? directory : ".";
    task->token = dt_variable_get(spank, DT_ENV_RAY_TOKEN, token, sizeof(token))
                      ? token
                      : NULL;
    spank_unsetenv(spank, DT_ENV_RAY_TOKEN);
    find_interface(shared, interface);
    task->interface = interface;
    task->own = own;
    task->shared = shared;
    dt_result_t rc = set_all(spank, dt, chosen, task, err);
    if (rc == DT_SUCCESS)
        rc = dt_services_task_init(spank, dt, chosen, task, err);
    free(own);
    free(shared);
    free(hosts);
    return rc;
}

dt_result_t dt_framework_task_init(spank_t spank, const struct spank_dt *dt,
                                   struct dt_error *err)
{
    struct dt_frameworks chosen;
    struct dt_framework_task task = {.rank = 0};
    if (!is_chosen(dt, &chosen))
        return DT_SUCCESS;
    dt_result_t rc = identify(spank, &task, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!dt->daemon.env &&
        (dt_frameworks_own(&chosen) || dt_frameworks_shared(&chosen)))
        return dt_error_set(
            err, DT_ERR_BOOTSTRAP,
            "--dt-rendezvous=%s needs slurm-dt's own PMIx server, which holds "
            "the ports: add --dt-pmix=server (one srun for all components of "
            "a heterogeneous job cannot have it)",
            dt->option[DT_OPTION_RENDEZVOUS].value);
    print_notes(spank, &chosen, &task);
    return start(spank, dt, &chosen, &task, err);
}
