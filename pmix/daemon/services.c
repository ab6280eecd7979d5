/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* services.c - what a framework runs beside the ranks of a node. */
#include "daemon/services.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/exit.h"
#include "base/step.h"
#include "daemon/background.h"
#include "mesh/clock.h"

enum { MOST = 16, GRACE_MS = 500, KILL_MS = 1500, OPEN_AT_ONCE = 16 };
enum { TEXT = 512, PATH = 256 };

extern char **environ;

struct process {
    const char *name, *part;
    pid_t pid; /* 0: it has ended */
    bool probe;
};

struct services {
    const char *directory, *python, *nodes, *ranks, *local, *scripts;
    bool head, verbose, ready;
    struct process process[MOST];
    size_t n, waiting; /* waiting: probes that run */
    mode_t mask;
    char temporary[PATH];
};

/* ---- one process ---- */

static void print_log_path(const struct services *services,
                           const struct process *process, char path[PATH])
{
    snprintf(path, PATH, "%s/%s-%s.log", services->directory, process->name,
             process->part);
}

/* In the child. What it prints is the user's only if it is asked for: these
 * services print much. */
static void run(const struct services *services, const struct process *process,
                const char *address)
{
    char path[PATH], script[PATH];
    sigset_t none;
    print_log_path(services, process, path);
    int in = open("/dev/null", O_RDONLY);
    int out = services->verbose
                  ? STDERR_FILENO
                  : open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    snprintf(script, sizeof(script), "%s/%s", services->scripts, process->name);
    char *const argv[] = {(char *)services->python, script,
                          (char *)process->part,    (char *)address,
                          (char *)services->nodes,  (char *)services->ranks,
                          (char *)services->local,  NULL};
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(DT_EXIT_USAGE);
    for (int sig = 1; sig <= SIGRTMAX; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(services->mask);
    setpgid(0, 0);
    execvp(argv[0], argv);
    fprintf(stderr, "%s cannot be run: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static bool start(struct services *services, const char *name, const char *part,
                  const char *address)
{
    if (services->n == MOST)
        return false;
    struct process *process = &services->process[services->n];
    *process = (struct process){
        .name = name, .part = part, .probe = !strcmp(part, "ready")};
    process->pid = fork();
    if (process->pid == 0)
        run(services, process, address);
    services->n += process->pid > 0;
    services->waiting += process->probe;
    return process->pid > 0;
}

/* ---- what is reported ---- */

/* The last line that it has printed, as far as it fits. */
static void read_last_line(const struct services *services,
                           const struct process *process, char line[TEXT])
{
    char path[PATH], text[TEXT / 2];
    struct stat st;
    *line = '\0';
    print_log_path(services, process, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    off_t at = fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(text)
                   ? st.st_size - (off_t)sizeof(text) + 1
                   : 0;
    ssize_t n = pread(fd, text, sizeof(text) - 1, at);
    close(fd);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    text[n > 0 ? n : 0] = '\0';
    const char *last = strrchr(text, '\n');
    snprintf(line, TEXT, ": %s", last ? last + 1 : text);
}

/* The tasks look for it. */
static void write_state(const struct services *services, const char *text)
{
    char path[PATH], made[PATH + 8];
    snprintf(path, sizeof(path), "%s/" DT_STEP_SERVICES, services->directory);
    snprintf(made, sizeof(made), "%s.new", path);
    FILE *out = fopen(made, "we");
    if (!out)
        return;
    fputs(text, out);
    if (fclose(out) == 0)
        rename(made, path);
}

static void fail(const struct services *services, const char *why)
{
    char text[TEXT + 8];
    snprintf(text, sizeof(text), "failed %s", why);
    send(STDIN_FILENO, text, strlen(text), MSG_NOSIGNAL);
    if (!services->ready)
        write_state(services, "failed");
}

static void fail_process(const struct services *services,
                         const struct process *process, int status)
{
    const char *node = getenv("SLURMD_NODENAME");
    char line[TEXT], why[2 * TEXT], end[32];
    const char *part = process->probe                  ? "probe"
                       : strcmp(process->part, "head") ? "service"
                                                       : "head";
    read_last_line(services, process, line);
    if (WIFSIGNALED(status))
        snprintf(end, sizeof(end), "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(end, sizeof(end), "ended with code %d", WEXITSTATUS(status));
    snprintf(why, sizeof(why), "--dt-rendezvous=%s: its %s on node %s %s%s",
             process->name, part, node ? node : "localhost", end, line);
    why[TEXT - 1] = '\0';
    fail(services, why);
}

/* ---- their course ---- */

/* false: a service has failed. */
static bool reap(struct services *services)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < services->n; i++) {
            struct process *process = &services->process[i];
            if (process->pid != pid)
                continue; /* one that a service has left behind */
            process->pid = 0;
            if (status) {
                fail_process(services, process, status);
                return false;
            }
            services->waiting -= process->probe;
        }
    if (!services->waiting && !services->ready) {
        services->ready = true;
        write_state(services, "ready");
    }
    return true;
}

/* Until the daemon ends, or a service fails. */
static void watch(struct services *services, int signals, long limit)
{
    int64_t end = dt_pmix_now() + limit * 1000;
    char why[TEXT];
    while (reap(services)) {
        struct pollfd polls[] = {{STDIN_FILENO, POLLIN, 0},
                                 {signals, POLLIN, 0}};
        struct signalfd_siginfo info;
        int64_t left = end - dt_pmix_now();
        if (!services->ready && left <= 0) {
            snprintf(why, sizeof(why),
                     "--dt-rendezvous: the services on node %s were not ready "
                     "within %ld s: see verbose, or set " DT_ENV_TIMEOUT,
                     getenv("SLURMD_NODENAME"), limit);
            fail(services, why);
            return;
        }
        poll(polls, 2, services->ready ? -1 : (int)left);
        if (polls[0].revents)
            return;
        if (polls[1].revents &&
            read(signals, &info, sizeof(info)) != sizeof(info))
            continue;
    }
}

/* ---- their end ---- */

/* As a subreaper, this process gets the orphans of what it kills. */
static void kill_children(void)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *at = text, *after;
    for (long pid; (pid = strtol(at, &after, 10)) > 0; at = after)
        kill((pid_t)pid, SIGKILL);
}

/* true: no child is left. */
static bool await_children(int64_t until, bool kills)
{
    while (dt_pmix_now() < until) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return true;
        if (pid > 0)
            continue;
        if (kills)
            kill_children();
        poll(NULL, 0, 5);
    }
    return false;
}

static void end_all(const struct services *services)
{
    for (size_t i = 0; i < services->n; i++)
        if (services->process[i].pid)
            kill(-services->process[i].pid,
                 services->process[i].probe ? SIGKILL : SIGTERM);
    if (!await_children(dt_pmix_now() + GRACE_MS, false))
        await_children(dt_pmix_now() + KILL_MS, true);
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *where)
{
    (void)st, (void)type, (void)where;
    remove(path);
    return 0;
}

/* ---- setting up ---- */

/* The task may be bound to its cores; the services have all of the step. A
 * cpuset keeps them there. */
static void use_all_cpus(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof(all));
    sched_setaffinity(0, sizeof(all), &all);
}

/* They are no ranks. */
static void forget_pmix(void)
{
    static const char pmix[] = "PMIX_";
    char name[256];
    for (char **env = environ; *env;) {
        size_t length = strcspn(*env, "=");
        if (strncmp(*env, pmix, sizeof(pmix) - 1) != 0 ||
            length >= sizeof(name)) {
            env++;
            continue;
        }
        memcpy(name, *env, length);
        name[length] = '\0';
        unsetenv(name);
    }
}

static int open_signals(void)
{
    sigset_t child;
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A service may write much there, so it is not on the file system of /run. */
static bool make_temporary(struct services *services)
{
    const char *top = getenv("TMPDIR");
    int length = snprintf(services->temporary, sizeof(services->temporary),
                          "%s/dt-services.XXXXXX", top && *top ? top : "/tmp");
    return length < PATH && mkdtemp(services->temporary) &&
           setenv("TMPDIR", services->temporary, 1) == 0;
}

static void start_all(struct services *services, int n, char **names)
{
    bool started = true;
    for (int i = 0; started && i + 1 < n; i += 2) {
        const char *name = names[i], *address = names[i + 1];
        started = (!services->head || start(services, name, "head", address)) &&
                  start(services, name, "node", address) &&
                  start(services, name, "ready", address);
    }
    if (!started)
        fail(services, "--dt-rendezvous: too many services, or no process");
}

int dt_services_run(int argc, char **argv)
{
    enum { FIXED = 9 };
    struct dt_error why;
    long limit;
    int type = 0;
    socklen_t size = sizeof(type);
    if (argc < FIXED + 2 ||
        getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
        type != SOCK_SEQPACKET) {
        fputs("dt-pmixd: --services: only the Slurm plugin starts this\n",
              stderr);
        return DT_EXIT_USAGE;
    }
    struct services services = {.directory = argv[0],
                                .head = !strcmp(argv[2], "head"),
                                .verbose = !strcmp(argv[3], "verbose"),
                                .nodes = argv[4],
                                .ranks = argv[5],
                                .local = argv[6],
                                .scripts = argv[7],
                                .python = argv[8],
                                .mask = umask(077)};
    if (dt_env_long(DT_ENV_TIMEOUT, DT_ENV_TIMEOUT_DEFAULT, 1,
                    DT_ENV_TIMEOUT_MAX, &limit, &why) != DT_SUCCESS)
        limit = DT_ENV_TIMEOUT_DEFAULT;
    if (!dt_background())
        return 1;
    int signals = open_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    use_all_cpus();
    forget_pmix();
    if (signals < 0 || chdir(argv[1]) != 0 || !make_temporary(&services))
        fail(&services, "--dt-rendezvous: no temporary directory for its "
                        "services can be made: set TMPDIR");
    else {
        start_all(&services, argc - FIXED, argv + FIXED);
        watch(&services, signals, limit);
        end_all(&services);
        nftw(services.temporary, remove_entry, OPEN_AT_ONCE,
             FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    }
    return 0;
}
