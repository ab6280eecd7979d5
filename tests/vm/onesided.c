/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* onesided.c - a long message arrives though its receiver stands still; for
 * real RDMA only (`onesided ucx`). */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "../unit/tl/ranks.h"

/* Seconds for a send that is not held up, on emulated processors of a busy
 * host. */
#define PATIENCE 40

static bool stopped(int pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d %*s %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'T';
}

static void receive_stopped(struct rank *r, char *buf, size_t len)
{
    struct dt_tl_req q, word;
    char ready = 1;
    irecv(r, 0, 1, buf, len, &q);
    isend(r, 0, 2, &ready, 1, &word); /* it comes after where to put it */
    NEED_DONE(&word);
    barrier(r);
    raise(SIGSTOP);
    NEED_DONE(&q);
    NEED(filled(buf, len, 0, 1), "contents");
}

static void send_to_stopped(struct rank *r, char *buf, size_t len)
{
    struct dt_tl_req s, word;
    char ready;
    int pid = r->board->pid[1];
    fill(buf, len, 0, 1);
    irecv(r, 1, 2, &ready, 1, &word);
    NEED_DONE(&word);
    barrier(r);
    while (!stopped(pid))
        sched_yield();
    isend(r, 1, 1, buf, len, &s);
    time_t end = time(NULL) + PATIENCE;
    while (s.status == DT_IN_PROGRESS && time(NULL) < end)
        r->ops->progress(r->tl);
    bool arrived = s.status == DT_SUCCESS;
    kill(pid, SIGCONT);
    NEED_DONE(&s);
    NEED(arrived, "the send waited for a receiver that stood still");
}

static void transfer(struct rank *r, bool registered)
{
    size_t len = 8 * MIB;
    char *buf = memory(r, len);
    void *handle;
    join(r);
    greet_all(r);
    if (registered)
        NEED(r->ops->mem_register(r->tl, buf, len, &handle, &r->err) ==
                 DT_SUCCESS,
             "%s", r->err.text);
    if (r->me == 0)
        send_to_stopped(r, buf, len);
    else if (r->me == 1)
        receive_stopped(r, buf, len);
    else
        barrier(r);
    barrier(r);
    leave(r);
    free(buf);
}

static void case_onesided(struct rank *r)
{
    transfer(r, false);
}

static void case_registered(struct rank *r)
{
    transfer(r, true);
}

static const struct tl_case cases[] = {
    {"a stopped receiver gets its message", case_onesided},
    {"it gets it in registered memory", case_registered},
};

int main(int argc, char **argv)
{
    (void)argc;
    static const struct dt_tl_ops *const transports[] = {&dt_tl_ucx, NULL};
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
