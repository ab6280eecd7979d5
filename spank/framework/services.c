/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* services.c - what a framework runs beside the tasks of a node. */
#include "framework/services.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/number.h"
#include "base/step.h"
#include "environment.h"
#include "server/daemon.h"

enum { START_MS = 10000, LOOK_MS = 10, MARGIN_MS = 10000, PATH = 256 };
enum { FIXED = 11, MOST = FIXED + 2 * DT_NPORTS + 1 };

/* ---- which ---- */

static bool is_in(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *item = list; *item; item += *item == ',') {
        size_t size = strcspn(item, ",");
        if (size == length && !strncmp(item, name, length))
            return true;
        item += size;
    }
    return false;
}

struct wanted {
    const char *name[DT_NPORTS];
    char address[DT_NPORTS][96];
    size_t n;
};

static void find_wanted(spank_t spank, const struct dt_frameworks *chosen,
                        const struct dt_framework_task *task,
                        struct wanted *wanted)
{
    char names[1024];
    const char *variable;
    if (!dt_variable_get(spank, DT_ENV_RENDEZVOUS, names, sizeof(names)))
        return;
    for (int i = DT_PORT_SERVICES; i < DT_NPORTS; i++) {
        enum dt_framework_port port = (enum dt_framework_port)i;
        const char *name = dt_frameworks_service(port, &variable);
        if (!dt_frameworks_use(chosen, port) || !is_in(names, variable) ||
            !dt_framework_address(chosen, task, port,
                                  wanted->address[wanted->n],
                                  sizeof(*wanted->address)))
            continue;
        wanted->name[wanted->n++] = name;
    }
}

/* ---- starting them ---- */

/* The program's own Python has its packages. */
static const char *find_python(spank_t spank)
{
    char **argv = NULL;
    int argc = 0;
    if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS ||
        argc < 1)
        return "python3";
    const char *slash = strrchr(argv[0], '/');
    return strncmp(slash ? slash + 1 : argv[0], "python", 6) ? "python3"
                                                             : argv[0];
}

/* Run dt-pmixd --services with this end of a socket to the daemon; it puts
 * itself into the background. */
static dt_result_t run(spank_t spank, const struct spank_dt *dt,
                       const struct dt_framework_task *task,
                       const struct wanted *wanted, int socket,
                       struct dt_error *err)
{
    const char *program = dt->daemon.program, *slash = strrchr(program, '/');
    char scripts[PATH], nodes[16], ranks[16], local[16], **env = NULL;
    snprintf(scripts, sizeof(scripts), "%.*s/services",
             slash ? (int)(slash - program) : 0, program);
    snprintf(nodes, sizeof(nodes), "%u", (unsigned)task->nodes);
    snprintf(ranks, sizeof(ranks), "%u", (unsigned)task->ranks);
    snprintf(local, sizeof(local), "%u", (unsigned)task->local_ranks);
    bool verbose = dt->option[DT_OPTION_RENDEZVOUS].verbose;
    const char *argv[MOST] = {program,
                              "--services",
                              dt->daemon.directory,
                              task->directory,
                              task->node ? "node" : "head",
                              verbose ? "verbose" : "quiet",
                              nodes,
                              ranks,
                              local,
                              scripts,
                              find_python(spank)};
    for (size_t i = 0; i < wanted->n; i++) {
        argv[FIXED + 2 * i] = wanted->name[i];
        argv[FIXED + 2 * i + 1] = wanted->address[i];
    }
    if (spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS || !env)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm does not report the task's variables");
    int output = verbose ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    const struct dt_helper helper = {.argv = (char *const *)argv,
                                     .fd = {socket, -1, output},
                                     .env = env,
                                     .user = dt->daemon.user};
    pid_t pid;
    int status = 0;
    dt_result_t rc = dt_helper_start(&helper, &pid, err);
    if (output >= 0)
        close(output);
    if (rc == DT_SUCCESS &&
        (!dt_helper_await(pid, START_MS, &status) || status > 0))
        rc = dt_error_set(err, DT_ERR_SYSTEM, "%s --services cannot be run",
                          program);
    return rc;
}

static dt_result_t start(spank_t spank, const struct spank_dt *dt,
                         const struct dt_framework_task *task,
                         const struct wanted *wanted, struct dt_error *err)
{
    int ends[2];
    if (!dt_helper_socket(ends))
        return dt_error_set(err, DT_ERR_SYSTEM, "no socket: %s",
                            strerror(errno));
    dt_result_t rc = dt_daemon_pass_services(&dt->daemon, ends[0], err);
    close(ends[0]);
    if (rc == DT_SUCCESS)
        rc = run(spank, dt, task, wanted, ends[1], err);
    close(ends[1]);
    return rc;
}

/* ---- waiting for them ---- */

static long find_limit(spank_t spank)
{
    char text[16];
    int64_t seconds;
    return dt_variable_get(spank, DT_ENV_TIMEOUT, text, sizeof(text)) &&
                   dt_number_parse(text, 1, DT_ENV_TIMEOUT_MAX, &seconds)
               ? (long)seconds
               : DT_ENV_TIMEOUT_DEFAULT;
}

/* What dt-pmixd --services has written; false: nothing yet. */
static bool read_state(const struct spank_dt *dt, char *text, size_t size)
{
    char path[PATH];
    snprintf(path, sizeof(path), "%s/" DT_STEP_SERVICES, dt->daemon.directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static dt_result_t await(spank_t spank, const struct spank_dt *dt,
                         struct dt_error *err)
{
    char text[16];
    long long end = dt_helper_end((int)find_limit(spank) * 1000 + MARGIN_MS);
    while (!read_state(dt, text, sizeof(text))) {
        if (!dt_helper_ms_left(end))
            return dt_error_set(err, DT_ERR_TIMED_OUT,
                                "--dt-rendezvous: its services do not answer");
        poll(NULL, 0, LOOK_MS);
    }
    if (!strcmp(text, "ready"))
        return DT_SUCCESS;
    poll(NULL, 0, MARGIN_MS); /* until dt-pmixd, which says why, ends it */
    err->text[0] = '\0';
    return DT_ERR_PROC_FAILED;
}

dt_result_t dt_services_task_init(spank_t spank, const struct spank_dt *dt,
                                  const struct dt_frameworks *chosen,
                                  const struct dt_framework_task *task,
                                  struct dt_error *err)
{
    struct wanted wanted = {.n = 0};
    dt_result_t rc = DT_SUCCESS;
    find_wanted(spank, chosen, task, &wanted);
    if (!wanted.n)
        return DT_SUCCESS;
    if (task->local_rank == 0)
        rc = start(spank, dt, task, &wanted, err);
    return rc == DT_SUCCESS ? await(spank, dt, err) : rc;
}
