/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nodes.c - a step on several pretended nodes of this machine, for
 * pmix-nodes.t:
 *
 *   pmix-nodes [-c] [-e MIN] [-r RESTARTS] NODES RANKS PROGRAM [ARGUMENT...]
 *
 * Each node is a process with a PMIx server and its share of the RANKS, in
 * blocks, or in turns with -c. The servers are joined by pairs of sockets, so
 * only the rendezvous is missing. With -r each node starts a rank that a
 * signal ended again, so many times, when the node is sent a SIGUSR1;
 * NODES_INCARNATION is a rank's incarnation. With -e at least MIN ranks go on,
 * and it does that at once. The exit code is the highest of
 * all nodes, whose is the highest of their ranks'; a node that was killed has
 * 137. What the servers leave is in a directory in TMPDIR. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
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

#include "server/environ.h"
#include "run/ranks.h"
#include "server/server.h"
#include "server/proxy_client.h"

#define NODES_MAX 16
#define LIMIT_S   300

struct step {
    size_t nodes, ranks;
    bool cyclic;
    size_t elastic_min;
    long restarts;
    char **argv;
};

/* --- one node ------------------------------------------------------------ */

struct out {
    struct out *next;
    struct dt_frame *frame;
};

struct peer {
    int fd; /* -1: gone, or this node itself */
    struct dt_inlet inlet;
    struct out *first, **last;
    size_t sent; /* of the first */
    bool bye;
};

struct node {
    const struct step *step;
    size_t self;
    struct dt_map *map;
    struct dt_pmix *pmix;
    struct dt_ranks ranks;
    struct peer peers[NODES_MAX];
    bool *replace;     /* ranks to be replaced */
    bool go;           /* they may be */
    int *incarnations; /* how often each has been started */
    long restarts;
    int signals, code;
    bool aborted; /* code is what the rank that did it wants */
};

static void die(const struct node *node, const char *text)
{
    fprintf(stderr, "node %zu: %s\n", node->self, text);
    exit(70);
}

static void queue_frame(void *arg, size_t to, struct dt_frame *frame)
{
    struct node *node = arg;
    struct peer *peer = &node->peers[to];
    struct out *out = malloc(sizeof(*out));
    if (peer->fd < 0 || !out) {
        free(out);
        return;
    }
    *out = (struct out){NULL, dt_frame_ref(frame)};
    *peer->last = out;
    peer->last = &out->next;
}

static void drop_out(struct peer *peer)
{
    struct out *out = peer->first;
    peer->first = out->next;
    if (!peer->first)
        peer->last = &peer->first;
    peer->sent = 0;
    dt_frame_unref(out->frame);
    free(out);
}

static void close_peer(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    while (peer->first)
        drop_out(peer);
    dt_inlet_free(&peer->inlet);
}

static void lose(struct node *node, size_t from, const char *why)
{
    struct peer *peer = &node->peers[from];
    if (peer->fd < 0)
        return;
    close_peer(peer);
    dt_pmix_gone(node->pmix, from, peer->bye, why);
}

static void write_out(struct node *node, size_t to)
{
    struct peer *peer = &node->peers[to];
    while (peer->first) {
        const struct dt_frame *frame = peer->first->frame;
        ssize_t n = send(peer->fd, frame->bytes + peer->sent,
                         frame->len - peer->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            lose(node, to, strerror(errno));
        if (n < 0)
            return;
        peer->sent += (size_t)n;
        if (peer->sent == frame->len)
            drop_out(peer);
    }
}

static void take_frame(struct node *node, size_t from, struct dt_frame *frame)
{
    struct dt_error err;
    if (dt_frame_kind(frame) == DT_WIRE_BYE)
        node->peers[from].bye = true;
    else if (dt_pmix_received(node->pmix, from, frame, &err) != DT_SUCCESS)
        die(node, err.text);
    dt_frame_unref(frame);
}

static void read_in(struct node *node, size_t from)
{
    struct peer *peer = &node->peers[from];
    char buffer[65536];
    ssize_t n = recv(peer->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        lose(node, from, n ? strerror(errno) : "its connection broke");
        return;
    }
    for (size_t at = 0; at < (size_t)n;) {
        struct dt_error err;
        struct dt_frame *frame = NULL;
        size_t used = 0;
        if (dt_inlet_take(&peer->inlet, buffer + at, (size_t)n - at,
                          DT_WIRE_MAX, &used, &frame, &err) != DT_SUCCESS)
            die(node, err.text);
        at += used;
        if (frame)
            take_frame(node, from, frame);
    }
}

static void on_abort(void *arg, size_t rank, int code, const char *text)
{
    struct node *node = arg;
    fprintf(stderr, "node %zu: rank %zu aborts with code %d: %s\n", node->self,
            rank, code, text);
    node->code = code;
    node->aborted = true;
    dt_ranks_signal(&node->ranks, SIGKILL);
}

static void on_node_lost(void *arg, size_t lost, const char *why)
{
    const struct node *node = arg;
    if (lost == node->self)
        die(node, why);
}

static void start_rank(struct node *node, size_t rank)
{
    struct dt_error err;
    struct dt_rank_start start = {node->step->argv, NULL, -1, -1};
    char life[16];
    snprintf(life, sizeof(life), "%d", node->incarnations[rank]++);
    setenv("NODES_INCARNATION", life, 1);
    if (dt_environ_copy(&start.env, &err) != DT_SUCCESS ||
        dt_pmix_environ(node->pmix, rank, &start.env, &err) != DT_SUCCESS ||
        dt_ranks_start(&node->ranks, rank, &start, &err) != DT_SUCCESS)
        die(node, err.text);
    dt_environ_free(start.env);
}

static void note_end(struct node *node, size_t rank, int code)
{
    dt_pmix_ended(node->pmix, rank, code);
    if (node->aborted)
        return;
    if (code > 128 && node->restarts > 0) {
        node->restarts--;
        node->replace[rank] = true;
        return;
    }
    dt_pmix_not_replaced(node->pmix, rank);
    node->code = code > node->code ? code : node->code;
}

/* Are there ranks to be replaced, now or later? */
static bool start_again(struct node *node)
{
    bool any = false;
    node->go |= node->step->elastic_min > 0;
    for (size_t r = 0; r < node->step->ranks; r++) {
        struct dt_error err;
        if (!node->replace[r])
            continue;
        any = true;
        if (!node->go)
            continue;
        dt_result_t rc = dt_pmix_replace(node->pmix, r, &err);
        if (rc == DT_IN_PROGRESS)
            continue;
        if (rc != DT_SUCCESS)
            die(node, err.text);
        node->replace[r] = node->go = false;
        start_rank(node, r);
    }
    return any;
}

static void turn(struct node *node)
{
    struct pollfd polls[2 + NODES_MAX] = {{node->signals, POLLIN, 0},
                                          {dt_pmix_fd(node->pmix), POLLIN, 0}};
    struct signalfd_siginfo info;
    struct dt_error err;
    size_t rank;
    int code;
    for (size_t n = 0; n < node->step->nodes; n++)
        polls[2 + n] = (struct pollfd){
            node->peers[n].fd,
            (short)(POLLIN | (node->peers[n].first ? POLLOUT : 0)), 0};
    poll(polls, 2 + node->step->nodes, dt_pmix_sleep(node->pmix));
    while (read(node->signals, &info, sizeof(info)) == sizeof(info))
        node->go |= info.ssi_signo == SIGUSR1;
    for (size_t n = 0; n < node->step->nodes; n++)
        if (polls[2 + n].revents & (POLLIN | POLLHUP | POLLERR))
            read_in(node, n);
    if (dt_pmix_dispatch(node->pmix, &err) != DT_SUCCESS)
        die(node, err.text);
    while (dt_ranks_reap(&node->ranks, &rank, &code))
        note_end(node, rank, code);
    for (size_t n = 0; n < node->step->nodes; n++)
        if (node->peers[n].fd >= 0)
            write_out(node, n);
}

/* Send the shutdown message, and wait until all nodes have read everything. */
static void leave(struct node *node)
{
    struct dt_error err;
    struct dt_frame *bye = dt_frame_begin(DT_WIRE_BYE);
    if (dt_frame_end(&bye, &err) != DT_SUCCESS)
        die(node, err.text);
    for (size_t n = 0; n < node->step->nodes; n++) {
        struct peer *peer = &node->peers[n];
        queue_frame(node, n, bye);
        while (peer->fd >= 0 && peer->first) {
            struct pollfd poll_one = {peer->fd, POLLOUT, 0};
            poll(&poll_one, 1, 1000);
            write_out(node, n);
        }
    }
    dt_frame_unref(bye);
    dt_pmix_close(node->pmix);
    for (size_t n = 0; n < node->step->nodes; n++)
        close_peer(&node->peers[n]);
}

static size_t home_of(const struct step *step, size_t rank)
{
    return step->cyclic ? rank % step->nodes : rank * step->nodes / step->ranks;
}

static void make_map(struct node *node)
{
    const struct step *step = node->step;
    struct dt_map_entry *all = calloc(step->nodes, sizeof(*all));
    struct dt_error err;
    for (size_t n = 0; n < step->nodes; n++) {
        all[n].node = (uint32_t)n;
        all[n].ranks = calloc(step->ranks, sizeof(uint32_t));
        snprintf(all[n].name, sizeof(all[n].name), "pretended%zu", n);
        for (size_t r = 0; r < step->ranks; r++)
            if (home_of(step, r) == n)
                all[n].ranks[all[n].nranks++] = (uint32_t)r;
    }
    if (dt_map_create(&node->map, all, step->nodes, step->ranks, &err) !=
        DT_SUCCESS)
        die(node, err.text);
}

static void open_node(struct node *node, const char *parent)
{
    char directory[PATH_MAX], nspace[64];
    struct dt_error err;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &before);
    node->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    node->replace = calloc(node->step->ranks, sizeof(*node->replace));
    node->incarnations = calloc(node->step->ranks, sizeof(*node->incarnations));
    make_map(node);
    if (dt_ranks_open(&node->ranks, node->step->ranks, &before, &err) !=
        DT_SUCCESS)
        die(node, err.text);
    snprintf(directory, sizeof(directory), "%s/%zu", parent, node->self);
    mkdir(directory, 0700);
    snprintf(nspace, sizeof(nspace), "pretended.%ld", (long)getppid());
    static char *const proxy_client[] = {(char *)"/proc/self/exe",
                                         (char *)"--proxy-client", NULL};
    const struct dt_pmix_config config = {
        .nspace = nspace,
        .jobid = "pretended",
        .directory = directory,
        .command = node->step->argv[0],
        .map = node->map,
        .node = node->self,
        .auth = "native",
        .elastic_min = node->step->elastic_min,
        .respawns = node->step->elastic_min ? (size_t)node->restarts : 0,
        .launcher = {node, on_abort, queue_frame, on_node_lost},
        .proxy_client = proxy_client,
    };
    if (dt_pmix_open(&node->pmix, &config, &err) != DT_SUCCESS)
        die(node, err.text);
}

static int run_node(const struct step *step, size_t self, const int *fds,
                    const char *parent)
{
    struct node node = {.step = step, .self = self, .restarts = step->restarts};
    for (size_t n = 0; n < step->nodes; n++) {
        node.peers[n] = (struct peer){.fd = fds[n]};
        node.peers[n].last = &node.peers[n].first;
    }
    open_node(&node, parent);
    for (size_t r = 0; r < step->ranks; r++)
        if (home_of(step, r) == self)
            start_rank(&node, r);
    while (node.ranks.running || start_again(&node)) {
        start_again(&node);
        turn(&node);
    }
    leave(&node);
    dt_ranks_close(&node.ranks);
    dt_map_destroy(node.map);
    close(node.signals);
    free(node.replace);
    free(node.incarnations);
    return node.code;
}

/* --- all of them --------------------------------------------------------- */

/* PMIx must not be forked, so each node begins as a new program: as
 * "pmix-nodes --node SELF DIRECTORY FD..." and what this one was given. */
static int read_node(int argc, char **argv, struct step *step)
{
    int fds[NODES_MAX];
    size_t self = strtoul(argv[2], NULL, 10);
    const char *parent = argv[3];
    (void)argc;
    for (size_t n = 0; n < NODES_MAX; n++) {
        fds[n] = atoi(argv[4 + n]);
        if (fds[n] >= 0)
            fcntl(fds[n], F_SETFD, FD_CLOEXEC);
    }
    return run_node(step, self, fds, parent);
}

static void exec_node(int pairs[][NODES_MAX], size_t self,
                      const char *directory, int argc, char **argv)
{
    char numbers[NODES_MAX][24], number[24];
    char **args = calloc((size_t)argc + NODES_MAX + 4, sizeof(*args));
    size_t count = 0;
    snprintf(number, sizeof(number), "%zu", self);
    args[count++] = argv[0];
    args[count++] = (char *)"--node";
    args[count++] = number;
    args[count++] = (char *)directory;
    for (size_t n = 0; n < NODES_MAX; n++) {
        snprintf(numbers[n], sizeof(numbers[n]), "%d", pairs[self][n]);
        args[count++] = numbers[n];
        if (pairs[self][n] >= 0)
            fcntl(pairs[self][n], F_SETFD, 0);
    }
    for (int i = 1; i < argc; i++)
        args[count++] = argv[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv("/proc/self/exe", args);
    _exit(127);
}

static void connect_all(int pairs[][NODES_MAX], size_t nodes)
{
    for (size_t a = 0; a < NODES_MAX; a++)
        for (size_t b = 0; b < NODES_MAX; b++)
            pairs[a][b] = -1;
    for (size_t a = 0; a < nodes; a++)
        for (size_t b = 0; b < a; b++) {
            int two[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two))
                exit(70);
            pairs[a][b] = two[0];
            pairs[b][a] = two[1];
        }
}

static int wait_all(const pid_t *pids, size_t nodes)
{
    int highest = 0;
    for (size_t n = 0; n < nodes; n++) {
        int status = 0;
        waitpid(pids[n], &status, 0);
        int code =
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        highest = code > highest ? code : highest;
    }
    return highest;
}

static int run_all(const struct step *step, int argc, char **argv)
{
    int pairs[NODES_MAX][NODES_MAX];
    pid_t pids[NODES_MAX];
    char directory[PATH_MAX];
    snprintf(directory, sizeof(directory), "%s/nodes.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(directory))
        return 70;
    connect_all(pairs, step->nodes);
    for (size_t n = 0; n < step->nodes; n++) {
        pids[n] = fork();
        if (pids[n] == 0)
            exec_node(pairs, n, directory, argc, argv);
    }
    for (size_t a = 0; a < step->nodes; a++)
        for (size_t b = 0; b < step->nodes; b++)
            if (pairs[a][b] >= 0)
                close(pairs[a][b]);
    /* ends the nodes and their ranks as well: each dies with its parent */
    alarm(LIMIT_S);
    return wait_all(pids, step->nodes);
}

int main(int argc, char **argv)
{
    struct step step = {0};
    bool is_node = argc > 4 + NODES_MAX && strcmp(argv[1], "--node") == 0;
    int at = is_node ? 4 + NODES_MAX : 1;
    if (argc == 2 && strcmp(argv[1], "--proxy-client") == 0)
        dt_pmix_proxy_client_run();
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-c") == 0)
            step.cyclic = true;
        else if (strcmp(argv[at], "-r") == 0 && at + 1 < argc)
            step.restarts = atol(argv[++at]);
        else if (strcmp(argv[at], "-e") == 0 && at + 1 < argc)
            step.elastic_min = strtoul(argv[++at], NULL, 10);
    }
    if (at + 3 > argc)
        return 64;
    step.nodes = strtoul(argv[at], NULL, 10);
    step.ranks = strtoul(argv[at + 1], NULL, 10);
    step.argv = argv + at + 2;
    if (step.nodes < 1 || step.nodes > NODES_MAX || step.ranks < step.nodes)
        return 64;
    return is_node ? read_node(argc, argv, &step) : run_all(&step, argc, argv);
}
