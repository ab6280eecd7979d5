/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.c - what a large step takes of the PMIx server of one node, and of its
 * ranks, which are real; the other nodes are on the map only.
 *   server NODES LOCAL EACH DIRECTORY   ranks of this and of each other node
 * prints NODES EACH LOCAL | ms until it serves, MB then | ms until all LOCAL
 * are connected, MB then, MB at most. A rank is this program without
 * arguments. */
#include <pmix.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "server/environ.h"
#include "server/server.h"

enum { LIMIT_S = 60 };

static void check(const char *what, bool good, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "server: %s: %s\n", what, why);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Of /proc/self/status, "VmHWM:" for the peak or "VmRSS:" for now. */
static double memory_mb(const char *field)
{
    char line[128];
    double kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    check("/proc/self/status", status, "cannot be read");
    while (fgets(line, sizeof(line), status))
        if (!strncmp(line, field, strlen(field)))
            kib = strtod(line + strlen(field), NULL);
    fclose(status);
    return kib * 1024 / 1e6;
}

/* ---- a rank: connects to the server, reports it, waits for the others ---- */

static int be_rank(void)
{
    char byte;
    pmix_status_t rc = PMIx_Init(NULL, NULL, 0);
    check("PMIx_Init", rc == PMIX_SUCCESS, PMIx_Error_string(rc));
    if (write(STDOUT_FILENO, "", 1) != 1 || read(STDIN_FILENO, &byte, 1) != 0)
        return 1;
    PMIx_Finalize(NULL, 0);
    return 0;
}

static void start_rank(struct dt_pmix *pmix, size_t rank, const int in[2],
                       const int out[2])
{
    static const char *const argv[] = {"server", NULL};
    struct dt_error err = {""};
    char **env;
    check("environment", dt_environ_copy(&env, &err) == DT_SUCCESS, err.text);
    check("environment", dt_pmix_environ(pmix, rank, &env, &err) == DT_SUCCESS,
          err.text);
    pid_t pid = fork();
    check("fork", pid >= 0, "failed");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execve("/proc/self/exe", (char *const *)argv, env);
        _exit(127);
    }
    dt_environ_free(env);
}

/* ---- the server ---- */

static void on_abort(void *arg, size_t rank, int code, const char *text)
{
    (void)arg, (void)rank, (void)code;
    check("abort", false, text);
}

static void on_send(void *arg, size_t node, struct dt_frame *frame)
{
    (void)arg, (void)node, (void)frame;
}

static struct dt_map *make_map(size_t nodes, size_t local, size_t each)
{
    struct dt_map_entry *entry = calloc(nodes, sizeof(*entry));
    struct dt_error err = {""};
    struct dt_map *map;
    uint32_t next = 0;
    check("map", entry, "no memory");
    for (size_t i = 0; i < nodes; i++) {
        size_t n = i ? each : local;
        entry[i].node = (uint32_t)i;
        snprintf(entry[i].name, sizeof(entry[i].name), "node%05zu", i);
        entry[i].ranks = calloc(n, sizeof(uint32_t));
        check("map", entry[i].ranks, "no memory");
        entry[i].nranks = n;
        for (size_t r = 0; r < n; r++)
            entry[i].ranks[r] = next++;
    }
    check("map", dt_map_create(&map, entry, nodes, next, &err) == DT_SUCCESS,
          err.text);
    return map;
}

/* Serve until all ranks have written their byte. */
static void await_ranks(struct dt_pmix *pmix, size_t count, int from)
{
    struct pollfd polls[] = {{dt_pmix_fd(pmix), POLLIN, 0}, {from, POLLIN, 0}};
    struct dt_error err = {""};
    char bytes[256];
    double end = now_ms() + LIMIT_S * 1e3;
    while (count > 0) {
        check("ranks", now_ms() < end, "not all have come");
        poll(polls, 2, dt_pmix_sleep(pmix));
        check("dispatch", dt_pmix_dispatch(pmix, &err) == DT_SUCCESS, err.text);
        ssize_t n = polls[1].revents ? read(from, bytes, sizeof(bytes)) : 0;
        count -= n > 0 ? (size_t)n : 0;
    }
}

int main(int argc, char **argv)
{
    int in[2], out[2];
    struct dt_error err = {""};
    struct dt_pmix *pmix;
    if (argc == 1)
        return be_rank();
    check("arguments", argc == 5, "NODES LOCAL EACH DIRECTORY");
    size_t local = strtoul(argv[2], NULL, 10);
    struct dt_map *map =
        make_map(strtoul(argv[1], NULL, 10), local, strtoul(argv[3], NULL, 10));
    const struct dt_pmix_config config = {
        .nspace = "bench",
        .jobid = "bench",
        .directory = argv[4],
        .command = "bench",
        .map = map,
        .auth = "native",
        .launcher = {.abort = on_abort, .send = on_send},
    };
    check("pipe", pipe(in) == 0 && pipe(out) == 0, "failed");
    /* as dt-pmixd does */
    setenv("HWLOC_SYNTHETIC", "pu:1", 1);
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    double begin = now_ms();
    check("open", dt_pmix_open(&pmix, &config, &err) == DT_SUCCESS, err.text);
    double opened = now_ms() - begin, alone = memory_mb("VmRSS:");
    for (size_t r = 0; r < local; r++)
        start_rank(pmix, r, in, out);
    await_ranks(pmix, local, out[0]);
    printf("%5zu %5s %5zu | %7.0f %7.1f | %9.0f %7.1f %7.1f\n", map->nodes,
           argv[3], local, opened, alone, now_ms() - begin, memory_mb("VmRSS:"),
           memory_mb("VmHWM:"));
    /* the ranks end with us */
    return 0;
}
