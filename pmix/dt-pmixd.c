/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt-pmixd.c - the PMIx server of a Slurm step on one node. The plugin starts
 * it, tells it of the ranks, and is told what to give them: base/step.h. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "base/env.h"
#include "base/step.h"
#include "background.h"
#include "mesh/clock.h"
#include "door.h"
#include "environ.h"
#include "folder.h"
#include "join.h"
#include "meeting.h"
#include "pulse.h"
#include "server.h"
#include "standin.h"

#define PLUGIN        STDIN_FILENO
#define GRACE_MS      2000
#define BYE_MS        2000
#define CLOSE_SECONDS 10
#define SOON_MS       20
#define WORDS_MS      1000

struct daemon {
    struct dt_step step;
    struct dt_join join;
    struct dt_pmix *pmix;
    struct dt_door *door;
    struct dt_pulse *pulse;
    bool *ended; /* [step.nlocal] */
    size_t running;
    bool *lost;       /* [step.nodes] */
    char *last_words; /* about a lost node, to be said at words_at */
    int64_t net_due, pulse_due, kill_at, words_at;
    bool door_waits, over, ending;
};

/* ---- what the plugin is told ---- */

static void tell(const char *text, size_t size)
{
    send(PLUGIN, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
    char text[512] = "say ";
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + 4, sizeof(text) - 4, fmt, args);
    va_end(args);
    tell(text, strlen(text));
}

/* ---- what happens ---- */

/* Ask the ranks of this node to end; insist later. */
static void end_ranks(struct daemon *daemon, int sig)
{
    dt_pulse_signal_all(daemon->pulse, sig);
    /* one that is stopped hears nothing else */
    dt_pulse_signal_all(daemon->pulse, SIGCONT);
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
        say("rank %zu aborted the step with code %d%s%.300s", rank, code,
            *text ? ": " : "", text);
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

/* All nodes hear of it; the first that is left says it. At the end of a step a
 * node may look lost that has just gone before the others: so not at once. */
static void on_node_lost(void *arg, size_t node, const char *why)
{
    struct daemon *daemon = arg;
    if (node == daemon->step.node) {
        say("node %s: the others go on without its ranks: %.300s",
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
    if (first != daemon->step.node || daemon->last_words)
        return;
    if (asprintf(&daemon->last_words, "node %s is lost: %.300s",
                 daemon->join.map->entry[node].name, why) < 0)
        daemon->last_words = NULL;
    else
        daemon->words_at = dt_pmix_now() + WORDS_MS;
}

static void say_last_words(struct daemon *daemon)
{
    say("%s", daemon->last_words);
    free(daemon->last_words);
    daemon->last_words = NULL;
    daemon->words_at = DT_NEVER;
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

/* Of somebody who tries doors the administrator wants to hear, not the user. */
static void on_refused(void *arg, const char *line)
{
    (void)arg;
    syslog(LOG_DAEMON | LOG_NOTICE, "%s", line);
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

/* ---- turning ---- */

static void on_ended(struct daemon *daemon, size_t index, int code)
{
    dt_pulse_ended(daemon->pulse, index);
    if (daemon->ended[index])
        return;
    daemon->ended[index] = true;
    daemon->running--;
    dt_pmix_ended(daemon->pmix, daemon->step.local[index], code);
}

static void hear_plugin(struct daemon *daemon)
{
    char text[256];
    struct dt_step_news news;
    struct dt_error why;
    for (;;) {
        ssize_t n = recv(PLUGIN, text, sizeof(text), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            daemon->over = true;
            return;
        }
        if (dt_step_read_news(&daemon->step, text, (size_t)n, &news, &why) !=
            DT_SUCCESS)
            say("node %s: %s", daemon->step.name, why.text);
        else if (news.ended)
            on_ended(daemon, news.rank, news.number);
        else
            dt_pulse_started(daemon->pulse, news.rank, news.number);
    }
}

static void feel_pulse(struct daemon *daemon, int64_t now)
{
    for (long i;
         (i = dt_pulse_turn(daemon->pulse, now, &daemon->pulse_due)) >= 0;) {
        size_t rank = daemon->step.local[i];
        say("rank %zu on node %s was stopped for %u s (" DT_ENV_HEARTBEAT
            "): it is killed",
            rank, daemon->step.name, (unsigned)daemon->step.heartbeat);
        dt_pmix_stopped(daemon->pmix, rank);
        dt_pulse_signal(daemon->pulse, (size_t)i, SIGKILL);
    }
}

static int sleep_time(const struct daemon *daemon)
{
    const int64_t dues[] = {daemon->net_due, daemon->pulse_due, daemon->kill_at,
                            daemon->words_at};
    int64_t now = dt_pmix_now(), left = dt_pmix_sleep(daemon->pmix);
    for (size_t i = 0; i < sizeof(dues) / sizeof(*dues); i++)
        if (dues[i] - now < left)
            left = dues[i] - now;
    if (daemon->door_waits && left > SOON_MS)
        left = SOON_MS;
    return left < 0 ? 0 : (int)left;
}

static void turn(struct daemon *daemon)
{
    struct pollfd polls[3 + DT_DOOR_POLLS] = {
        {PLUGIN, POLLIN, 0},
        {dt_pmix_fd(daemon->pmix), POLLIN, 0},
        {daemon->join.net ? dt_net_fd(daemon->join.net) : -1, POLLIN, 0}};
    struct dt_error err;
    dt_door_poll(daemon->door, polls + 3);
    poll(polls, sizeof(polls) / sizeof(*polls), sleep_time(daemon));
    int64_t now = dt_pmix_now();
    hear_plugin(daemon);
    if (daemon->join.net)
        daemon->net_due = dt_net_turn(daemon->join.net, now);
    feel_pulse(daemon, now);
    if (dt_pmix_dispatch(daemon->pmix, &err) != DT_SUCCESS && !daemon->ending) {
        say("node %s: %s", daemon->step.name, err.text);
        end_ranks(daemon, SIGKILL);
    }
    daemon->door_waits = dt_door_turn(daemon->door);
    if (now >= daemon->words_at)
        say_last_words(daemon);
    if (now >= daemon->kill_at) {
        dt_pulse_signal_all(daemon->pulse, SIGKILL);
        daemon->kill_at = DT_NEVER;
    }
}

/* ---- setting up ---- */

/* PMIx's library would have hwloc look at the whole machine and does nothing
 * with it here, as clients look for themselves. That takes three quarters of
 * its start, and hwloc's plugins call on X servers and OpenCL for it. The ranks
 * are not our children, so they see none of this. */
static dt_result_t spare_topology(struct dt_error *err)
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
    static char *const stand_in[] = {(char *)"/proc/self/exe",
                                     (char *)"--stand-in", NULL};
    const struct dt_pmix_config config = {
        .nspace = name,
        .jobid = jobid,
        .directory = step->directory,
        .command = step->command ? step->command : "",
        .map = daemon->join.map,
        .node = step->node,
        .oversubscribed = oversubscribed(step),
        .auth = step->auth,
        .launcher = {.arg = daemon,
                     .abort = on_abort,
                     .send = step->nodes > 1 ? on_send : NULL,
                     .node_lost = on_node_lost},
        .stand_in = stand_in,
    };
    const struct dt_net_host host = {daemon, on_received, on_gone, on_refused};
    dt_result_t rc = dt_pmix_open(&daemon->pmix, &config, err);
    if (rc == DT_SUCCESS)
        dt_join_done(&daemon->join, &host);
    return rc;
}

static dt_result_t prepare(struct daemon *daemon, struct dt_error *err)
{
    const struct dt_step *step = &daemon->step;
    daemon->kill_at = daemon->words_at = DT_NEVER;
    daemon->net_due = step->nodes > 1 ? 0 : DT_NEVER;
    daemon->running = step->nlocal;
    daemon->ended = calloc(step->nlocal, sizeof(*daemon->ended));
    daemon->lost = calloc(step->nodes, sizeof(*daemon->lost));
    if (!daemon->ended || !daemon->lost)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    return dt_pulse_open(&daemon->pulse, step->nlocal,
                         (int64_t)step->heartbeat * 1000, err);
}

/* All that its ranks share; the plugin knows which rank each is. */
static dt_result_t tell_ready(struct daemon *daemon, struct dt_error *err)
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
        fprintf(out, DT_ENV_PMIX_CONTROL "=%s\n", dt_door_path(daemon->door));
    }
    dt_environ_free(env);
    if (rc == DT_SUCCESS &&
        (!out || fclose(out) != 0 || size >= DT_STEP_PACKET))
        rc = dt_error_set(err, DT_ERR_NO_MEMORY,
                          "no memory for the ranks' environment");
    if (rc == DT_SUCCESS)
        tell(text, size);
    free(text);
    return rc;
}

static dt_result_t set_up(struct daemon *daemon, struct dt_error *err)
{
    const struct dt_step *step = &daemon->step;
    dt_result_t rc = prepare(daemon, err);
    if (rc == DT_SUCCESS)
        rc = spare_topology(err);
    if (rc == DT_SUCCESS)
        rc = dt_join_open(&daemon->join, step, PLUGIN, err);
    if (rc == DT_SUCCESS)
        rc = dt_door_open(&daemon->door, step->directory, on_replace, daemon,
                          err);
    if (rc == DT_SUCCESS)
        rc = open_server(daemon, err);
    if (rc == DT_SUCCESS)
        rc = tell_ready(daemon, err);
    return rc;
}

/* The others hear of it before PMIx's library is asked to end, which may take
 * for ever: see watchdog.h. */
static void tear_down(struct daemon *daemon)
{
    struct dt_net *net = daemon->join.net;
    struct dt_error why;
    if (daemon->pmix)
        dt_pmix_dispatch(daemon->pmix, &why);
    daemon->join.net = NULL;
    dt_net_close(net, BYE_MS);
    dt_door_close(daemon->door);
    signal(SIGALRM, SIG_DFL);
    alarm(CLOSE_SECONDS);
    dt_pmix_close(daemon->pmix);
    alarm(0);
    dt_join_close(&daemon->join, 0);
    dt_pulse_close(daemon->pulse);
    free(daemon->ended);
    free(daemon->lost);
    free(daemon->last_words);
}

static dt_result_t read_step(struct dt_step *step, struct dt_error *err)
{
    char *text = malloc(DT_STEP_PACKET);
    if (!text)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    ssize_t n = recv(PLUGIN, text, DT_STEP_PACKET, 0);
    dt_result_t rc = n > 0 ? dt_step_read(text, (size_t)n, step, err)
                           : dt_error_set(err, DT_ERR_INVALID_ARG,
                                          "the plugin says nothing");
    free(text);
    return rc;
}

static int serve(void)
{
    struct daemon daemon = {.over = false};
    struct dt_error err;
    char text[sizeof(err.text) + 16];
    dt_result_t rc = read_step(&daemon.step, &err);
    if (rc == DT_SUCCESS)
        rc = dt_folder_make(daemon.step.directory, &err);
    if (rc == DT_SUCCESS) {
        rc = set_up(&daemon, &err);
        while (rc == DT_SUCCESS && !daemon.over && daemon.running)
            turn(&daemon);
        tear_down(&daemon);
        dt_folder_remove(daemon.step.directory, NULL);
    }
    if (rc == DT_SUCCESS)
        snprintf(text, sizeof(text), "bye");
    else
        snprintf(text, sizeof(text), "failed %s", err.text);
    tell(text, strlen(text));
    dt_step_free(&daemon.step);
    return rc == DT_SUCCESS ? 0 : 1;
}

/* ---- the other things it does ---- */

static int clean(const char *directory)
{
    struct dt_error err;
    if (dt_folder_remove(directory, &err) == DT_SUCCESS)
        return 0;
    fprintf(stderr, "dt-pmixd: %s\n", err.text);
    return 1;
}

static const char usage_text[] =
    "usage: dt-pmixd               serve a step, for the Slurm plugin\n"
    "       dt-pmixd --meet ...    let the servers of a step meet, for srun\n"
    "       dt-pmixd --clean DIR   remove what a killed server has left\n"
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
        return usage("the Slurm plugin starts this, not people");
    return dt_background() ? serve() : 1;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return serve_plugin();
    if (!strcmp(argv[1], "--stand-in") && argc == 2)
        dt_pmix_stand_in();
    if (!strcmp(argv[1], "--meet"))
        return dt_meeting_run(argc - 2, argv + 2);
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
