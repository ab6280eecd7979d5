/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt-pmixd.c - the PMIx server of a Slurm step on one node. The plugin starts
 * it and reports the ranks to it; it sends the plugin their environment, as
 * base/step.h describes. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/exit.h"
#include "base/step.h"
#include "daemon/background.h"
#include "mesh/clock.h"
#include "daemon/control_socket.h"
#include "server/environ.h"
#include "daemon/directory.h"
#include "daemon/held_ports.h"
#include "daemon/join.h"
#include "daemon/other_pmi.h"
#include "daemon/serve_rendezvous.h"
#include "daemon/process_monitor.h"
#include "daemon/services.h"
#include "server/server.h"
#include "server/proxy_client.h"

#define PLUGIN        STDIN_FILENO
#define GRACE_MS      2000
#define SHUTDOWN_MS   2000
#define CLOSE_SECONDS 10
#define SERVICES_MS   2500
#define LISTEN_LOOKS  16 /* at the held ports, in the time that they have */
#define SOON_MS       20
#define WARN_MS       1000
#define LOOK_MS       200 /* and then each time after ten times as long */
#define LOOK_LAST_MS  20000

struct daemon {
    struct dt_step step;
    struct dt_held_ports held;
    struct dt_join join;
    struct dt_pmix *pmix;
    struct dt_control *control;
    struct dt_monitor *monitor;
    bool *ended; /* [step.nlocal] */
    size_t running;
    bool *lost;                  /* [step.nodes] */
    char *warning;               /* of a lost node, to be sent at warn_at */
    pid_t first;                 /* process of the first rank of this node */
    int64_t look_at, look_after; /* for other_pmi.h */
    int64_t listen_at, listen_until; /* for a program at each held port */
    int64_t net_due, monitor_due, kill_at, warn_at;
    int services; /* a socket to them; -1: none */
    bool services_failed;
    bool control_waits, over, ending;
};

/* ---- to the plugin ---- */

static void send_plugin(const char *text, size_t size)
{
    send(PLUGIN, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void report(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void report(const char *fmt, ...)
{
    char text[512] = "say ";
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + 4, sizeof(text) - 4, fmt, args);
    va_end(args);
    send_plugin(text, strlen(text));
}

/* ---- events ---- */

/* Send the ranks of this node a signal that ends them, and later SIGKILL. */
static void end_ranks(struct daemon *daemon, int sig)
{
    dt_monitor_signal_all(daemon->monitor, sig);
    /* a stopped process gets the signal when it continues */
    dt_monitor_signal_all(daemon->monitor, SIGCONT);
    if (!daemon->ending)
        daemon->kill_at = dt_pmix_now() + GRACE_MS;
    daemon->ending = true;
}

static bool is_here(const struct daemon *daemon, size_t rank, size_t *index)
{
    for (size_t i = 0; i < daemon->step.nlocal; i++)
        if (daemon->step.local[i] == rank) {
            *index = i;
            return true;
        }
    return false;
}

static void on_abort(void *arg, size_t rank, int code, const char *text)
{
    struct daemon *daemon = arg;
    size_t index;
    if (is_here(daemon, rank, &index))
        report("rank %zu aborted the step with code %d%s%.300s", rank, code,
               *text ? ": " : "", text);
    end_ranks(daemon, SIGTERM);
}

/* In a step that ends together, a rank of any node that has failed ends those
 * of this one, which would wait for it. One that wants to be requeued has not
 * failed: the others still save. */
static void on_rank_ended(void *arg, size_t rank, int code)
{
    struct daemon *daemon = arg;
    size_t index;
    if (!daemon->step.together || !code || code == DT_EXIT_REQUEUE ||
        daemon->ending)
        return;
    if (is_here(daemon, rank, &index))
        report(code > 128 ? "rank %zu on node %s was killed by signal %d: the "
                            "step is ended"
                          : "rank %zu on node %s ended with code %d: the step "
                            "is ended",
               rank, daemon->step.name, code > 128 ? code - 128 : code);
    end_ranks(daemon, SIGTERM);
}

static void on_send(void *arg, size_t node, struct dt_frame *frame)
{
    struct daemon *daemon = arg;
    if (!daemon->join.net)
        return;
    dt_net_send(daemon->join.net, node, frame);
    daemon->net_due = 0;
}

/* All nodes are notified; the first one that lives warns the user. At the end
 * of a step a node may seem lost that only ended before the others: so wait. */
static void on_node_lost(void *arg, size_t node, const char *why)
{
    struct daemon *daemon = arg;
    if (node == daemon->step.node) {
        report("node %s: the other nodes have declared it lost: %.300s",
               daemon->step.name, why);
        end_ranks(daemon, SIGKILL);
        return;
    }
    if (node >= daemon->step.nodes)
        return;
    daemon->lost[node] = true;
    size_t first = 0;
    while (first < daemon->step.node && daemon->lost[first])
        first++;
    if (first != daemon->step.node || daemon->warning)
        return;
    if (asprintf(&daemon->warning, "node %s is lost: %.300s",
                 daemon->join.map->entry[node].name, why) < 0)
        daemon->warning = NULL;
    else
        daemon->warn_at = dt_pmix_now() + WARN_MS;
}

static void send_warning(struct daemon *daemon)
{
    report("%s", daemon->warning);
    free(daemon->warning);
    daemon->warning = NULL;
    daemon->warn_at = DT_NEVER;
}

static void on_received(void *arg, size_t node, const struct dt_frame *frame)
{
    struct daemon *daemon = arg;
    struct dt_error why;
    if (dt_pmix_received(daemon->pmix, node, frame, &why) != DT_SUCCESS)
        dt_net_drop(daemon->join.net, node, why.text);
}

static void on_gone(void *arg, size_t node, bool left, const char *why)
{
    struct daemon *daemon = arg;
    if (left)
        daemon->lost[node] = true;
    dt_pmix_gone(daemon->pmix, node, left, why);
}

/* A refused connection concerns the administrator, not the user. */
static void on_refused(void *arg, const char *line)
{
    (void)arg;
    dt_background_log(line);
}

static dt_result_t on_replace(void *arg, size_t rank, int code,
                              struct dt_error *err)
{
    struct daemon *daemon = arg;
    size_t index;
    if (!is_here(daemon, rank, &index))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %zu is not one of node %s", rank,
                            daemon->step.name);
    if (code >= 0)
        dt_pmix_ended(daemon->pmix, rank, code);
    return dt_pmix_replace(daemon->pmix, rank, err);
}

/* ---- progress ---- */

static void on_ended(struct daemon *daemon, size_t index, int code)
{
    dt_monitor_ended(daemon->monitor, index);
    if (daemon->ended[index])
        return;
    daemon->ended[index] = true;
    daemon->running--;
    dt_pmix_ended(daemon->pmix, daemon->step.local[index], code);
}

/* A rank may start when the others are being ended already. For what program
 * it is, the first one speaks for all. */
static void on_started(struct daemon *daemon, size_t index, pid_t pid)
{
    dt_monitor_started(daemon->monitor, index, pid);
    if (daemon->ending)
        daemon->kill_at = dt_pmix_now();
    if (daemon->step.listen && daemon->listen_until == DT_NEVER) {
        daemon->listen_at = dt_pmix_now();
        daemon->listen_until =
            daemon->listen_at + (int64_t)daemon->step.listen * 1000;
    }
    if (index != 0 || daemon->step.node != 0 || daemon->step.ranks < 2)
        return;
    daemon->first = pid;
    daemon->look_after = LOOK_MS;
    daemon->look_at = dt_pmix_now() + LOOK_MS;
}

static void look_for_other_pmi(struct daemon *daemon, int64_t now)
{
    char library[64];
    daemon->look_after *= 10;
    daemon->look_at =
        daemon->look_after > LOOK_LAST_MS ? DT_NEVER : now + daemon->look_after;
    if (daemon->ended[0] ||
        !dt_other_pmi(daemon->first, library, sizeof(library)))
        return;
    daemon->look_at = DT_NEVER;
    report("this program uses %s, which needs PMI-1 or PMI-2 and finds PMIx: "
           "each of its ranks runs alone. Start it by srun --mpi=pmi2 "
           "--dt-pmix=none, or use a PMIx program",
           library);
}

/* The others would wait for the rank that is to listen, each for as long as its
 * framework does. */
static void look_for_listeners(struct daemon *daemon, int64_t now)
{
    uint16_t port = dt_held_ports_unused(&daemon->held);
    daemon->listen_at = DT_NEVER;
    if (!port || daemon->ending)
        return;
    if (now < daemon->listen_until) {
        daemon->listen_at =
            now + (int64_t)daemon->step.listen * 1000 / LISTEN_LOOKS;
        return;
    }
    report("--dt-rendezvous: no program listens at port %u of node %s, where "
           "rank 0 is, within %u s (" DT_ENV_TIMEOUT "): the step is ended",
           (unsigned)port, daemon->step.name, (unsigned)daemon->step.listen);
    end_ranks(daemon, SIGTERM);
}

/* recv, and the descriptor that came with it, or -1. */
static ssize_t receive(char *text, size_t size, int *fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {text, size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(PLUGIN, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *fd = -1;
    if (header && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(*fd)))
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    return n;
}

/* One that no packet is meant to bring is closed. */
static void keep_services(struct daemon *daemon, int fd, bool services)
{
    if (fd >= 0 && services && daemon->services < 0)
        daemon->services = fd;
    else if (fd >= 0)
        close(fd);
}

static void receive_plugin(struct daemon *daemon)
{
    static const char services[] = "services";
    char text[256];
    struct dt_step_event event;
    struct dt_error why;
    for (;;) {
        int fd;
        ssize_t n = receive(text, sizeof(text), &fd);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            daemon->over = true;
            return;
        }
        bool serves = n == sizeof(services) - 1 &&
                      !memcmp(text, services, sizeof(services) - 1);
        keep_services(daemon, fd, serves);
        if (serves)
            continue;
        if (dt_step_read_event(&daemon->step, text, (size_t)n, &event, &why) !=
            DT_SUCCESS)
            report("node %s: %s", daemon->step.name, why.text);
        else if (event.ended)
            on_ended(daemon, event.rank, event.number);
        else
            on_started(daemon, event.rank, event.number);
    }
}

/* Without them the ranks cannot work. */
static void receive_services(struct daemon *daemon)
{
    static const char failed[] = "failed ";
    char text[1024];
    if (daemon->services < 0 || daemon->services_failed)
        return;
    ssize_t n = recv(daemon->services, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    text[n > 0 ? n : 0] = '\0';
    if (n <= 0)
        report("--dt-rendezvous: its services on node %s were killed: the step "
               "is ended",
               daemon->step.name);
    else if (!strncmp(text, failed, sizeof(failed) - 1))
        report("%.400s", text + sizeof(failed) - 1);
    daemon->services_failed = true;
    end_ranks(daemon, SIGTERM);
}

/* They end when this end of the socket is shut. */
static void end_services(const struct daemon *daemon)
{
    struct pollfd ended = {daemon->services, POLLIN, 0};
    int64_t until = dt_pmix_now() + SERVICES_MS;
    char text[1024];
    if (daemon->services < 0)
        return;
    shutdown(daemon->services, SHUT_WR);
    for (int64_t left; (left = until - dt_pmix_now()) > 0;)
        if (poll(&ended, 1, (int)left) == 1 &&
            recv(daemon->services, text, sizeof(text), 0) <= 0)
            break;
    close(daemon->services);
}

/* What serves other nodes, too, ends with the last rank of all. */
static bool is_needed(const struct daemon *daemon)
{
    return daemon->running ||
           (daemon->services >= 0 && !daemon->services_failed &&
            !dt_pmix_all_ended(daemon->pmix));
}

static void check_processes(struct daemon *daemon, int64_t now)
{
    for (long i; (i = dt_monitor_progress(daemon->monitor, now,
                                          &daemon->monitor_due)) >= 0;) {
        size_t rank = daemon->step.local[i];
        report("rank %zu on node %s was stopped for %u s (" DT_ENV_HEARTBEAT
               "): it is killed",
               rank, daemon->step.name, (unsigned)daemon->step.heartbeat);
        dt_pmix_stopped(daemon->pmix, rank);
        dt_monitor_signal(daemon->monitor, (size_t)i, SIGKILL);
    }
}

static int sleep_time(const struct daemon *daemon)
{
    const int64_t dues[] = {daemon->net_due, daemon->monitor_due,
                            daemon->kill_at, daemon->warn_at,
                            daemon->look_at, daemon->listen_at};
    int64_t now = dt_pmix_now(), left = dt_pmix_sleep(daemon->pmix);
    for (size_t i = 0; i < sizeof(dues) / sizeof(*dues); i++)
        if (dues[i] - now < left)
            left = dues[i] - now;
    if (daemon->control_waits && left > SOON_MS)
        left = SOON_MS;
    return left < 0 ? 0 : (int)left;
}

static void progress(struct daemon *daemon)
{
    struct pollfd polls[4 + DT_CONTROL_POLLS] = {
        {PLUGIN, POLLIN, 0},
        {dt_pmix_fd(daemon->pmix), POLLIN, 0},
        {daemon->join.net ? dt_net_fd(daemon->join.net) : -1, POLLIN, 0},
        {daemon->services_failed ? -1 : daemon->services, POLLIN, 0}};
    struct dt_error err;
    dt_control_poll(daemon->control, polls + 4);
    poll(polls, sizeof(polls) / sizeof(*polls), sleep_time(daemon));
    int64_t now = dt_pmix_now();
    receive_plugin(daemon);
    receive_services(daemon);
    if (daemon->join.net)
        daemon->net_due = dt_net_progress(daemon->join.net, now);
    check_processes(daemon, now);
    if (dt_pmix_dispatch(daemon->pmix, &err) != DT_SUCCESS && !daemon->ending) {
        report("node %s: %s", daemon->step.name, err.text);
        end_ranks(daemon, SIGKILL);
    }
    daemon->control_waits = dt_control_progress(daemon->control);
    if (now >= daemon->warn_at)
        send_warning(daemon);
    if (now >= daemon->look_at)
        look_for_other_pmi(daemon, now);
    if (now >= daemon->listen_at)
        look_for_listeners(daemon, now);
    if (now >= daemon->kill_at) {
        dt_monitor_signal_all(daemon->monitor, SIGKILL);
        daemon->kill_at = DT_NEVER;
    }
}

/* ---- setting up ---- */

/* PMIx's library would have hwloc discover the whole machine, which is of no
 * use here, as clients do so themselves. That takes three quarters of its
 * start, and hwloc's plugins connect to X servers and OpenCL for it. The ranks
 * are not our children, so they do not inherit these variables. */
static dt_result_t skip_topology(struct dt_error *err)
{
    if (setenv("HWLOC_SYNTHETIC", "pu:1", 1) != 0 ||
        setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1) != 0)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "setenv: %s",
                            strerror(errno));
    return DT_SUCCESS;
}

static bool oversubscribed(const struct dt_step *step)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 &&
           (size_t)CPU_COUNT(&set) < step->nlocal;
}

static dt_result_t open_server(struct daemon *daemon, struct dt_error *err)
{
    const struct dt_step *step = &daemon->step;
    char name[64], jobid[32];
    snprintf(name, sizeof(name), "slurm-dt.%u.%u", (unsigned)step->job,
             (unsigned)step->step);
    snprintf(jobid, sizeof(jobid), "%u.%u", (unsigned)step->job,
             (unsigned)step->step);
    static char *const proxy_client[] = {(char *)"/proc/self/exe",
                                         (char *)"--proxy-client", NULL};
    const struct dt_pmix_config config = {
        .nspace = name,
        .jobid = jobid,
        .directory = step->directory,
        .command = step->command ? step->command : "",
        .map = daemon->join.map,
        .node = step->node,
        .oversubscribed = oversubscribed(step),
        .auth = step->auth,
        .elastic_min = step->elastic,
        .launcher = {.arg = daemon,
                     .abort = on_abort,
                     .ended = on_rank_ended,
                     .send = step->nodes > 1 ? on_send : NULL,
                     .node_lost = on_node_lost},
        .proxy_client = proxy_client,
    };
    const struct dt_net_host host = {daemon, on_received, on_gone, on_refused};
    if (!strcmp(step->auth, "munge") && !dt_pmix_has_munge())
        dt_background_log("this PMIx library has no munge (psec/munge): that "
                          "a rank is of the step's user is told by the "
                          "kernel alone");
    dt_result_t rc = dt_pmix_open(&daemon->pmix, &config, err);
    if (rc == DT_SUCCESS)
        dt_join_done(&daemon->join, &host);
    return rc;
}

static dt_result_t prepare(struct daemon *daemon, struct dt_error *err)
{
    const struct dt_step *step = &daemon->step;
    daemon->kill_at = daemon->warn_at = daemon->look_at = DT_NEVER;
    daemon->listen_at = daemon->listen_until = DT_NEVER;
    daemon->net_due = step->nodes > 1 ? 0 : DT_NEVER;
    daemon->running = step->nlocal;
    daemon->ended = calloc(step->nlocal, sizeof(*daemon->ended));
    daemon->lost = calloc(step->nodes, sizeof(*daemon->lost));
    if (!daemon->ended || !daemon->lost)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    return dt_monitor_open(&daemon->monitor, step->nlocal,
                           (int64_t)step->heartbeat * 1000, err);
}

/* The variables that all its ranks share; the plugin adds each one's rank. */
static dt_result_t send_ready(struct daemon *daemon, struct dt_error *err)
{
    static const char rank[] = "PMIX_RANK=";
    char **env = calloc(1, sizeof(*env)), *text = NULL;
    size_t size = 0;
    if (!env)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc =
        dt_pmix_environ(daemon->pmix, daemon->step.local[0], &env, err);
    FILE *out = rc == DT_SUCCESS ? open_memstream(&text, &size) : NULL;
    if (out) {
        fputs("ready\n", out);
        for (char **e = env; *e; e++)
            if (strncmp(*e, rank, sizeof(rank) - 1) != 0 && !strchr(*e, '\n'))
                fprintf(out, "%s\n", *e);
        fprintf(out, DT_ENV_PMIX_CONTROL "=%s\n",
                dt_control_path(daemon->control));
        rc = dt_held_ports_print(&daemon->step, daemon->join.map, out, err);
    }
    dt_environ_free(env);
    bool written = out && fclose(out) == 0;
    if (rc == DT_SUCCESS && !written)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY,
                          "no memory for the ranks' environment");
    if (rc == DT_SUCCESS && size >= DT_STEP_PACKET)
        rc = dt_error_set(err, DT_ERR_UNSUPPORTED,
                          "the ports of more ranks than fit into one packet: "
                          "--dt-rendezvous=tensorflow is for about 3000 tasks");
    if (rc == DT_SUCCESS)
        send_plugin(text, size);
    free(text);
    return rc;
}

static dt_result_t set_up(struct daemon *daemon, struct dt_error *err)
{
    const struct dt_step *step = &daemon->step;
    dt_result_t rc = prepare(daemon, err);
    if (rc == DT_SUCCESS)
        rc = skip_topology(err);
    if (rc == DT_SUCCESS)
        rc = dt_held_ports_open(&daemon->held, step, err);
    if (rc == DT_SUCCESS)
        rc = dt_join_open(&daemon->join, step, &daemon->held, PLUGIN, err);
    if (rc == DT_SUCCESS)
        rc = dt_control_open(&daemon->control, step->directory, on_replace,
                             daemon, err);
    if (rc == DT_SUCCESS)
        rc = open_server(daemon, err);
    if (rc == DT_SUCCESS)
        rc = send_ready(daemon, err);
    return rc;
}

/* The other nodes are notified before PMIx's library is closed, which may take
 * for ever: see watchdog.h. */
static void tear_down(struct daemon *daemon)
{
    struct dt_net *net = daemon->join.net;
    struct dt_error why;
    if (daemon->pmix)
        dt_pmix_dispatch(daemon->pmix, &why);
    daemon->join.net = NULL;
    dt_net_close(net, SHUTDOWN_MS);
    end_services(daemon);
    dt_control_close(daemon->control);
    signal(SIGALRM, SIG_DFL);
    alarm(CLOSE_SECONDS);
    dt_pmix_close(daemon->pmix);
    alarm(0);
    dt_join_close(&daemon->join, 0);
    dt_monitor_close(daemon->monitor);
    dt_held_ports_close(&daemon->held);
    free(daemon->ended);
    free(daemon->lost);
    free(daemon->warning);
}

static dt_result_t read_step(struct dt_step *step, struct dt_error *err)
{
    char *text = malloc(DT_STEP_PACKET);
    if (!text)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    ssize_t n = recv(PLUGIN, text, DT_STEP_PACKET, 0);
    dt_result_t rc = n > 0 ? dt_step_read(text, (size_t)n, step, err)
                           : dt_error_set(err, DT_ERR_INVALID_ARG,
                                          "the plugin sent nothing");
    free(text);
    return rc;
}

static int serve(void)
{
    struct daemon daemon = {.services = -1};
    struct dt_error err;
    char text[sizeof(err.text) + 16];
    dt_result_t rc = read_step(&daemon.step, &err);
    if (rc == DT_SUCCESS)
        rc = dt_directory_make(daemon.step.directory, &err);
    if (rc == DT_SUCCESS) {
        rc = set_up(&daemon, &err);
        while (rc == DT_SUCCESS && !daemon.over && is_needed(&daemon))
            progress(&daemon);
        tear_down(&daemon);
        dt_directory_remove(daemon.step.directory, NULL);
    }
    if (rc == DT_SUCCESS)
        snprintf(text, sizeof(text), "bye");
    else
        snprintf(text, sizeof(text), "failed %s", err.text);
    send_plugin(text, strlen(text));
    dt_step_free(&daemon.step);
    return rc == DT_SUCCESS ? 0 : 1;
}

/* ---- other options ---- */

static int clean(const char *directory)
{
    struct dt_error err;
    if (dt_directory_remove(directory, &err) == DT_SUCCESS)
        return 0;
    fprintf(stderr, "dt-pmixd: %s\n", err.text);
    return 1;
}

static const char usage_text[] =
    "usage: dt-pmixd               serve a step, for the Slurm plugin\n"
    "       dt-pmixd --meet ...    serve the rendezvous of a step, for srun\n"
    "       dt-pmixd --services ...  serve a framework, for the Slurm plugin\n"
    "       dt-pmixd --clean DIR   remove the files of a killed server\n"
    "       dt-pmixd --help | --version\n";

static int usage(const char *why)
{
    fprintf(stderr, "dt-pmixd: %s; see dt-pmixd --help\n", why);
    return DT_EXIT_USAGE;
}

static int serve_plugin(void)
{
    int type;
    socklen_t size = sizeof(type);
    if (getsockopt(PLUGIN, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
        type != SOCK_SEQPACKET)
        return usage("only the Slurm plugin starts this");
    return dt_background() ? serve() : 1;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return serve_plugin();
    if (!strcmp(argv[1], "--proxy-client") && argc == 2)
        dt_pmix_proxy_client_run();
    if (!strcmp(argv[1], "--meet"))
        return dt_serve_rendezvous(argc - 2, argv + 2);
    if (!strcmp(argv[1], "--services"))
        return dt_services_run(argc - 2, argv + 2);
    if (!strcmp(argv[1], "--clean") && argc == 3)
        return clean(argv[2]);
    if (!strcmp(argv[1], "--help") && argc == 2) {
        fputs(usage_text, stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version") && argc == 2) {
        puts("dt-pmixd (slurm-dt) " PACKAGE_VERSION);
        return 0;
    }
    return usage("unknown arguments");
}
