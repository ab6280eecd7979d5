/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* net.c - the links of daemons, over TCP on this machine. */
#include "mesh/net.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mesh/clock.h"
#include "../descriptors.h"
#include "munged.h"
#include "../tap.h"

#define NODES  4
#define HEART  30000
#define LONG   120000 /* ms: nothing here takes so long */
#define FRAMES 300

static struct munged munged;
static int64_t now = 1000; /* all time there is, but for waiting */

struct node {
    struct dt_net *net;
    uint32_t self;
    size_t received, wrong;   /* frames; out of order */
    uint32_t next[NODES];     /* what is to come from each */
    size_t gone[NODES], left; /* how often */
    char why[NODES][512];
    size_t refused;
    char line[640];
    bool drop; /* whoever sends something */
};

static struct node nodes[NODES];
static struct dt_map map;

static void received(void *arg, size_t from, const struct dt_frame *frame)
{
    struct node *node = arg;
    struct dt_cursor body = dt_frame_body(frame);
    node->received++;
    if (dt_cursor_uint(&body, 4) != node->next[from]++)
        node->wrong++;
    for (int i = 0; node->drop && i < 2; i++)
        dt_net_drop(node->net, from, "it broke a rule");
}

static void gone(void *arg, size_t from, bool left, const char *why)
{
    struct node *node = arg;
    node->gone[from]++;
    node->left += left;
    snprintf(node->why[from], sizeof(node->why[from]), "%s", why);
}

static void refused(void *arg, const char *line)
{
    struct node *node = arg;
    node->refused++;
    snprintf(node->line, sizeof(node->line), "%s", line);
}

static void open_node(uint32_t i)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct dt_identity self = {.job = 17,
                               .node = i,
                               .nodes = NODES,
                               .pmix = "4.2.2",
                               .munge = munged.socket,
                               .heartbeat = HEART};
    struct dt_net_host host = {&nodes[i], received, gone, refused};
    struct dt_error err;
    nodes[i] = (struct node){.self = i};
    if (dt_net_open(&nodes[i].net, (struct sockaddr *)&at, sizeof(at), &self,
                    &host, &err) != DT_SUCCESS)
        abort();
    dt_net_address(nodes[i].net, map.entry[i].ip, &map.entry[i].port);
    dt_net_set_map(nodes[i].net, &map);
}

static void open_nodes(void)
{
    for (uint32_t i = 0; i < NODES; i++)
        open_node(i);
}

static void close_node(struct node *node)
{
    dt_net_close(node->net, 0);
    node->net = NULL;
}

static void close_nodes(void)
{
    for (size_t i = 0; i < NODES; i++)
        close_node(&nodes[i]);
}

/* Let them work until this is so, or for so long that it never will be. The
 * clock stands still. */
static bool until(bool (*done)(void))
{
    int64_t end = dt_pmix_now() + LONG;
    while (!done()) {
        struct pollfd fds[NODES];
        for (size_t i = 0; i < NODES; i++) {
            fds[i] = (struct pollfd){-1, POLLIN, 0};
            if (nodes[i].net) {
                dt_net_progress(nodes[i].net, now);
                fds[i].fd = dt_net_fd(nodes[i].net);
            }
        }
        if (dt_pmix_now() > end)
            return false;
        poll(fds, NODES, 10);
    }
    return true;
}

static void send_number(size_t from, size_t to, uint32_t number)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(frame, 4, number);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    dt_net_send(nodes[from].net, to, frame);
    dt_frame_unref(frame);
}

/* ---- as it should be ---- */

static bool all_came(void)
{
    for (size_t i = 0; i < NODES; i++)
        if (nodes[i].received < (NODES - 1) * FRAMES)
            return false;
    return true;
}

static bool idle(void)
{
    struct pollfd fds[NODES];
    for (size_t i = 0; i < NODES; i++)
        fds[i] = (struct pollfd){nodes[i].net ? dt_net_fd(nodes[i].net) : -1,
                                 POLLIN, 0};
    /* a busy kernel delivers a little later */
    return poll(fds, NODES, 2) == 0;
}

static bool first_left(void)
{
    return nodes[1].gone[0] && nodes[2].gone[0] && nodes[3].gone[0];
}

static size_t times_gone(const struct node *node)
{
    size_t sum = 0;
    for (size_t i = 0; i < NODES; i++)
        sum += node->gone[i];
    return sum;
}

static void test_all(void)
{
    open_nodes();
    for (uint32_t k = 0; k < FRAMES; k++)
        for (size_t i = 0; i < NODES; i++)
            for (size_t j = 0; j < NODES; j++)
                if (i != j)
                    send_number(i, j, k);
    ok(until(all_came), "all to all, dialed from both ends at once");
    size_t wrong = 0, lost = 0;
    for (size_t i = 0; i < NODES; i++) {
        wrong += nodes[i].wrong;
        lost += times_gone(&nodes[i]);
    }
    ok(wrong == 0 && lost == 0, "in order, and no node is gone");
    ok(until(idle) && dt_net_progress(nodes[0].net, now) > now,
       "then nothing is due");

    close_node(&nodes[0]);
    ok(until(first_left) && nodes[1].left == 1 && nodes[2].left == 1 &&
           nodes[3].left == 1,
       "one that is closed has left: %s", nodes[1].why[0]);
    send_number(1, 0, 0);
    until(idle);
    ok(times_gone(&nodes[1]) == 1 && times_gone(&nodes[2]) == 1,
       "which is reported once");
    close_nodes();
}

/* ---- as it should not be ---- */

static bool one_is_gone(void)
{
    return nodes[1].gone[0];
}

static bool both_are_gone(void)
{
    return nodes[0].gone[1] && nodes[1].gone[0];
}

static bool zero_received(void)
{
    return nodes[0].received > 0;
}

static bool zero_lost(void)
{
    return nodes[0].gone[3];
}

static bool one_received(void)
{
    return nodes[1].received > 0;
}

static void test_gone(void)
{
    open_nodes();
    close_node(&nodes[0]);
    send_number(1, 0, 0);
    ok(until(one_is_gone) && nodes[1].left == 0 &&
           strstr(nodes[1].why[0], "refused"),
       "one that cannot be dialed: %s", nodes[1].why[0]);
    close_nodes();

    open_nodes();
    nodes[1].drop = true;
    send_number(0, 1, 0);
    send_number(0, 1, 1);
    ok(until(both_are_gone) && nodes[1].received == 1 &&
           nodes[1].gone[0] == 1 &&
           strcmp(nodes[0].why[1], "it broke a rule") == 0,
       "a dropped one gets the reason, and nothing more comes from it: %s",
       nodes[0].why[1]);
    close_nodes();
}

/* A daemon in a process of its own: greets node 0, and goes on until it is
 * gone for that. Exit code 3: with these words. */
static pid_t fork_daemon(const char *words)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (size_t i = 0; i < NODES; i++)
        nodes[i].net = NULL; /* the parent's */
    open_node(3);
    send_number(3, 0, 0);
    for (int i = 0; i < LONG / 10 && !nodes[3].gone[0]; i++) {
        struct pollfd fd = {dt_net_fd(nodes[3].net), POLLIN, 0};
        dt_net_progress(nodes[3].net, now);
        poll(&fd, 1, 10);
    }
    _exit(strstr(nodes[3].why[0], words) ? 3 : 4);
}

static void test_killed(void)
{
    int status = 0;
    open_nodes();
    close_node(&nodes[3]);
    pid_t pid = fork_daemon("");
    ok(until(zero_received), "a daemon of another process is received");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ok(until(zero_lost) && nodes[0].left == 0, "and lost when it is killed: %s",
       nodes[0].why[3]);

    pid = fork_daemon("declared lost");
    int64_t end = dt_pmix_now() + LONG;
    while (waitpid(pid, &status, WNOHANG) == 0 && dt_pmix_now() < end)
        until(idle);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 3 &&
           nodes[0].received == 1 && nodes[0].gone[3] == 1,
       "a lost node is refused");
    close_nodes();
}

static void test_frozen(void)
{
    struct dt_net *frozen;
    open_nodes();
    send_number(0, 1, 0);
    until(one_received);
    frozen = nodes[1].net;
    nodes[1].net = NULL; /* never turned again */
    for (int i = 0; i < 3; i++) {
        dt_net_progress(nodes[0].net, now);
        ok(!nodes[0].gone[1], "silent for %d s", i * HEART / 3000);
        now += HEART / 3;
    }
    dt_net_progress(nodes[0].net, now);
    ok(nodes[0].gone[1] == 1 && nodes[0].left == 0, "a frozen one is lost: %s",
       nodes[0].why[1]);
    dt_net_close(frozen, 0);
    close_nodes();
}

/* ---- strangers ---- */

static int connect_to(uint32_t node)
{
    int fd = dt_net_dial(map.entry[node].ip, map.entry[node].port);
    struct pollfd poll_fd = {fd, POLLOUT, 0};
    if (fd < 0 || poll(&poll_fd, 1, LONG) != 1)
        abort();
    return fd;
}

static void test_strangers(void)
{
    enum { UNAUTHENTICATED = 200 };
    static int fds[UNAUTHENTICATED];
    open_nodes();
    for (size_t i = 0; i < UNAUTHENTICATED; i++) {
        fds[i] = connect_to(0);
        dt_net_progress(nodes[0].net, now);
    }
    until(idle);
    int64_t begin = now;
    send_number(1, 0, 0);
    while (!nodes[0].received && now < begin + 60000) {
        until(idle);
        now += 100;
        for (size_t i = 0; i < NODES; i++)
            dt_net_progress(nodes[i].net, now);
    }
    ok(nodes[0].received == 1 && now <= begin + DT_LINK_HANDSHAKE_MS / 5,
       "%d unauthenticated connections delay a node for %lld ms",
       UNAUTHENTICATED, (long long)(now - begin));
    ok(times_gone(&nodes[0]) == 0 && times_gone(&nodes[1]) == 0,
       "no node is lost by that");
    ok(nodes[0].refused >= 1 && nodes[0].refused <= 10,
       "the log has %zu lines about them: %s", nodes[0].refused, nodes[0].line);
    for (size_t i = 0; i < UNAUTHENTICATED; i++)
        close(fds[i]);
    close_nodes();
}

/* Those of another address, which the clock gives no time to yield. */
static void test_source(void)
{
    enum { STRANGERS = 100 };
    static int fds[STRANGERS];
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)},
                       to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    open_nodes();
    to.sin_port = htons(map.entry[0].port);
    for (size_t i = 0; i < STRANGERS; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(fds[i], (struct sockaddr *)&from, sizeof(from)) != 0 ||
            connect(fds[i], (struct sockaddr *)&to, sizeof(to)) != 0)
            abort();
        dt_net_progress(nodes[0].net, now);
    }
    until(idle);
    send_number(1, 0, 0);
    for (int i = 0; i < 300 && !nodes[0].received; i++)
        until(idle);
    ok(nodes[0].received == 1 && nodes[0].refused == 1 &&
           strstr(nodes[0].line, "from 127.0.0.2 "),
       "those of one address leave places to others: %s", nodes[0].line);
    for (size_t i = 0; i < STRANGERS; i++)
        close(fds[i]);
    struct dt_net *net = nodes[0].net;
    nodes[0].net = NULL;
    dt_net_close(net, 0);
    ok(nodes[0].refused == 2 &&
           strstr(nodes[0].line, "connections were refused in all"),
       "and are counted: %s", nodes[0].line);
    close_nodes();
}

/* A process between two daemons, which passes all bytes on. */
static pid_t fork_relay(int listener, uint32_t to)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    alarm(2 * LONG / 1000);
    int fds[2] = {accept(listener, NULL, NULL), -1};
    fds[1] = connect_to(to);
    for (;;) {
        char bytes[4096];
        struct pollfd polls[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
        poll(polls, 2, -1);
        for (int i = 0; i < 2; i++) {
            if (!polls[i].revents)
                continue;
            ssize_t n = read(fds[i], bytes, sizeof(bytes));
            if (n <= 0 || send(fds[!i], bytes, (size_t)n, MSG_NOSIGNAL) != n)
                _exit(0);
        }
    }
}

static void test_relay(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &len))
        abort();
    open_nodes();
    pid_t pid = fork_relay(listener, 0);
    map.entry[0].port = ntohs(at.sin_port);
    send_number(1, 0, 0);
    ok(until(one_is_gone) && nodes[0].received == 0,
       "a process in between cannot forward the proofs: %s", nodes[1].why[0]);
    close(listener);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close_nodes();
}

static void test_close(void)
{
    open_nodes();
    struct dt_net *net = nodes[0].net;
    for (uint32_t k = 0; k < FRAMES; k++)
        send_number(0, 1, k);
    /* in another process, as closing waits for the other end */
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dt_net_close(net, LONG);
        _exit(0);
    }
    nodes[0].net = NULL; /* the child's */
    until(one_is_gone);
    waitpid(pid, NULL, 0);
    dt_net_close(net, 0);
    ok(nodes[1].received == FRAMES && nodes[1].wrong == 0 && nodes[1].left == 1,
       "closing sends what is queued");
    close_nodes();
}

int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    struct dt_map_entry entries[NODES] = {0};
    map = (struct dt_map){.nodes = NODES, .ranks = NODES, .entry = entries};
    int before = descriptors_of(getpid());
    test_all();
    test_gone();
    test_killed();
    test_frozen();
    test_strangers();
    test_source();
    test_relay();
    test_close();
    ok(descriptors_of(getpid()) == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
