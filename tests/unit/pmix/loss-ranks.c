/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* loss-ranks.c - what one rank of dt-run-loss.t does: `loss-ranks MODE`. Ranks
 * that survive print how their wait ended, and exit 0 if it was as it should
 * be. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dt.h"

static int wrong;

static void expect(bool cond, const char *what)
{
    if (cond)
        return;
    wrong = 1;
    fprintf(stderr, "rank %d: not so: %s (%s)\n", dt_rank(), what,
            dt_last_error());
}

static dt_result_t allreduce(void)
{
    int32_t x = 1;
    return dt_allreduce(&x, &x, 1, DT_DTYPE_I32, DT_OP_SUM, dt_comm_world(),
                        DT_STREAM_NONE);
}

static void report(dt_result_t rc)
{
    printf("rank %d: %s: %s\n", dt_rank(), dt_strerror(rc), dt_last_error());
    fflush(stdout);
    expect(rc == DT_ERR_PROC_FAILED, "process failed");
    expect(allreduce() == rc, "for ever");
}

/* Rank 2 goes before there was any message. */
static void die(void)
{
    if (dt_rank() == 2)
        raise(SIGKILL);
    report(allreduce());
}

static void leave(void)
{
    if (dt_rank() == 2)
        exit(0);
    report(allreduce());
}

/* Rank 0 waits for rank 1, which is well, but comes only when rank 0 has given
 * up: only the launcher can notify rank 0. */
static void wait_in_vain(void)
{
    const char *name = getenv("DT_LOSS_PIPE");
    FILE *pipe = name ? fopen(name, dt_rank() ? "r" : "w") : NULL;
    dt_result_t rc = DT_SUCCESS;
    int32_t x = 0;
    expect(pipe, "DT_LOSS_PIPE is a pipe");
    if (!pipe)
        return;
    if (dt_rank() == 0)
        rc = dt_bcast(&x, 1, DT_DTYPE_I32, 1, dt_comm_world(), DT_STREAM_NONE);
    else
        expect(fgetc(pipe) == EOF, "rank 0 has given up");
    fclose(pipe);
    report(dt_rank() ? allreduce() : rc);
}

static void elsewhere(void)
{
    if (dt_rank() == 2)
        raise(SIGKILL);
    wait_in_vain();
}

/* The server hangs up on rank 0, as if it had died. */
static void server(void)
{
    if (dt_rank() == 0)
        for (int fd = 3; fd < 1024; fd++)
            shutdown(fd, SHUT_RDWR);
    wait_in_vain();
}

/* dt_test reports it. */
static void test(void)
{
    dt_request_t request = NULL;
    if (dt_rank() == 2)
        raise(SIGKILL);
    dt_result_t rc = dt_ibarrier(dt_comm_world(), DT_STREAM_NONE, &request);
    while (rc == DT_SUCCESS && (rc = dt_test(&request)) == DT_IN_PROGRESS)
        rc = DT_SUCCESS;
    report(rc);
}

/* All is well, whatever the exit code says. */
static void requeue(void)
{
    expect(allreduce() == DT_SUCCESS, "allreduce");
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {{"die", die},   {"leave", leave},   {"elsewhere", elsewhere},
             {"test", test}, {"server", server}, {"requeue", requeue}};

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    const char *rank = getenv("PMIX_RANK");
    if (!strcmp(mode, "never") && rank && !strcmp(rank, "2"))
        return 3; /* before it has met anybody */
    if (dt_init() != DT_SUCCESS) {
        printf("dt_init: %s\n", dt_last_error());
        return 2;
    }
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        if (!strcmp(mode, modes[i].name))
            modes[i].run();
    expect(dt_finalize() == DT_SUCCESS, "finalize");
    return wrong ? 1 : strcmp(mode, "requeue") ? 0 : DT_EXIT_REQUEUE;
}
