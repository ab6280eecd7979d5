/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* held-ports.c - ports are held for programs that set SO_REUSEADDR, and for
 * nobody else. */
#include "daemon/held_ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../tap.h"

static uint32_t two[] = {0, 1}, later[] = {2, 3};

static struct dt_step step_of(uint32_t *local, uint32_t own, uint32_t shared)
{
    return (struct dt_step){.nodes = 2,
                            .ranks = 4,
                            .local = local,
                            .nlocal = 2,
                            .hold_own = own,
                            .hold_shared = shared};
}

/* A listener at the port, as a program opens it. -1 with errno. */
static int listen_at(uint16_t port, int reuse)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void test_held(void)
{
    struct dt_held_ports held;
    struct dt_step step = step_of(two, 1, 1);
    struct dt_error err = {""};
    ok(dt_held_ports_open(&held, &step, &err) == DT_SUCCESS && held.n == 3 &&
           held.port[0] && held.port[0] != held.port[1] &&
           held.port[1] != held.port[2],
       "one for each rank of the node, one that all share");
    ok(listen_at(held.port[0], 0) < 0 && errno == EADDRINUSE,
       "a program without SO_REUSEADDR does not get one");
    int fd = listen_at(held.port[0], 1);
    ok(fd >= 0, "a program with it does");
    ok(listen_at(held.port[0], 1) < 0, "only one program");
    close(fd);
    uint16_t port = held.port[0];
    dt_held_ports_close(&held);
    dt_held_ports_close(&held);
    fd = listen_at(port, 0);
    ok(fd >= 0, "it is free when the step is over");
    close(fd);

    step = step_of(later, 0, 1);
    ok(dt_held_ports_open(&held, &step, &err) == DT_SUCCESS && !held.n,
       "a node without rank 0 holds no shared one");
    dt_held_ports_close(&held);
}

/* A program may listen at one for a short time only. */
static void test_used(void)
{
    struct dt_held_ports held;
    struct dt_step step = step_of(two, 1, 2);
    struct dt_error err = {""};
    ok(dt_held_ports_open(&held, &step, &err) == DT_SUCCESS && held.n == 4,
       "one for each rank, two that all share");
    int own = listen_at(held.port[0], 1);
    ok(dt_held_ports_unused(&held) == held.port[2],
       "nobody listens at the shared ones");
    int first = listen_at(held.port[2], 1);
    ok(dt_held_ports_unused(&held) == held.port[3],
       "somebody listens at the first");
    close(first);
    int second = listen_at(held.port[3], 1);
    ok(dt_held_ports_unused(&held) == 0,
       "one listens at the second, and one did at the first");
    close(second);
    close(own);
    dt_held_ports_close(&held);
}

/* Ports that Slurm has reserved; the first is taken. */
static void test_reserved(void)
{
    struct dt_held_ports held;
    struct dt_step step = step_of(two, 0, 2);
    struct dt_error err = {""};
    struct sockaddr_in at;
    socklen_t size = sizeof(at);
    char ports[64];
    int fd = listen_at(0, 0);
    getsockname(fd, (struct sockaddr *)&at, &size);
    unsigned taken = ntohs(at.sin_port);
    step.ports = ports;
    step.hold_shared = 1;
    snprintf(ports, sizeof(ports), "%u", taken);
    ok(dt_held_ports_open(&held, &step, &err) == DT_ERR_SYSTEM &&
           strstr(err.text, "0 are free here and --dt-rendezvous needs 1"),
       "none of the reserved ports is free: %s", err.text);
    dt_held_ports_close(&held);
    close(fd);
    ok(dt_held_ports_open(&held, &step, &err) == DT_SUCCESS && held.n == 1 &&
           held.port[0] == taken,
       "a reserved port is held");
    struct dt_held_ports other;
    ok(dt_held_ports_open(&other, &step, &err) == DT_ERR_SYSTEM,
       "by one daemon of the machine only");
    dt_held_ports_close(&other);
    dt_held_ports_close(&held);
    const char *const bad[] = {"x", "0", "1-", "99999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        step.ports = bad[i];
        ok(dt_held_ports_open(&held, &step, &err) == DT_ERR_SYSTEM,
           "\"%s\" has no port", bad[i]);
        dt_held_ports_close(&held);
    }
}

/* ---- those of all nodes ---- */

static struct dt_map *map_of(uint32_t *second, size_t nheld)
{
    struct dt_map_entry *entries = calloc(2, sizeof(*entries));
    struct dt_map *map = NULL;
    uint32_t *ranks[] = {two, second};
    for (uint32_t i = 0; i < 2; i++) {
        entries[i] = (struct dt_map_entry){
            .node = i, .nranks = 2, .nheld = i ? nheld : 3};
        snprintf(entries[i].name, sizeof(entries[i].name), "n%u", i);
        memcpy(entries[i].ip, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0", 15);
        entries[i].ip[15] = (uint8_t)(i + 1);
        entries[i].ranks = malloc(2 * sizeof(uint32_t));
        memcpy(entries[i].ranks, ranks[i], 2 * sizeof(uint32_t));
        entries[i].held = malloc(3 * sizeof(uint16_t));
        for (size_t k = 0; k < 3; k++)
            entries[i].held[k] = (uint16_t)(100 * (i + 1) + k);
    }
    dt_map_create(&map, entries, 2, 4, NULL);
    return map;
}

static void test_print(void)
{
    struct dt_step step = step_of(two, 1, 1);
    struct dt_error err = {""};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct dt_map *map = map_of(later, 2);
    dt_result_t rc = dt_held_ports_print(&step, map, out, &err);
    fclose(out);
    ok(rc == DT_SUCCESS &&
           !strcmp(text, "held-own 10.0.0.1:100,10.0.0.1:101,10.0.0.2:200,"
                         "10.0.0.2:201\nheld-shared 10.0.0.1:102\n"),
       "the ports of all nodes: %s", text);
    free(text);
    dt_map_destroy(map);

    map = map_of(later, 1);
    out = open_memstream(&text, &size);
    ok(dt_held_ports_print(&step, map, out, &err) == DT_ERR_MISMATCH &&
           strstr(err.text, "node n1 holds 1 ports, expected 2"),
       "a node that holds too few: %s", err.text);
    fclose(out);
    free(text);
    dt_map_destroy(map);
}

int main(void)
{
    test_held();
    test_used();
    test_reserved();
    test_print();
    return tap_done();
}
