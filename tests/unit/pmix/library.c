/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* library.c - whether PMIx's thread is idle, as an ordinary user's process sees
 * it that leaves no core file. */
#include "server/library.h"

#include <pmix_server.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"

/* ---- the library: a thread that sleeps in epoll_wait, and what it calls ----
 */

enum { LONG = 60000 /* ms */ };

struct request {
    pmix_op_cbfunc_t fn;
    void *arg;
};

static int requests[2], calls[2];
static unsigned rounds;

void PMIx_server_deregister_client(const pmix_proc_t *proc, pmix_op_cbfunc_t fn,
                                   void *arg)
{
    const struct request request = {fn, arg};
    (void)proc;
    rounds++;
    if (write(requests[1], &request, sizeof(request)) != sizeof(request))
        abort();
}

static void *run_library(void *arg)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    struct request request;
    epoll_ctl(epoll, EPOLL_CTL_ADD, requests[0], &event);
    while (epoll_wait(epoll, &event, 1, -1) == 1 &&
           read(requests[0], &request, sizeof(request)) == sizeof(request) &&
           request.fn)
        request.fn(PMIX_SUCCESS, request.arg);
    close(epoll);
    return arg;
}

pmix_status_t dt_pmix_post(struct dt_pmix_call *call)
{
    if (write(calls[1], &call, sizeof(call)) != sizeof(call))
        abort();
    return PMIX_SUCCESS;
}

/* ---- */

static bool finished;

static void finish(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    (void)pmix, (void)call;
    finished = true;
}

/* How many rounds it takes until a call has run; the thread has time to fall
 * asleep after each. */
static unsigned rounds_of_call(void)
{
    struct dt_pmix_delayed delayed = {.call.run = finish};
    finished = false;
    rounds = 0;
    dt_pmix_after_losses(&delayed);
    while (!finished) {
        struct dt_pmix_call *call;
        struct pollfd fd = {calls[0], POLLIN, 0};
        if (poll(&fd, 1, LONG) != 1 ||
            read(calls[0], &call, sizeof(call)) != sizeof(call))
            abort();
        usleep(1000);
        call->run(NULL, call);
    }
    return rounds;
}

int main(void)
{
    struct stat st;
    const struct request end = {NULL, NULL};
    unsigned least = 1000;
    pthread_t thread;
    if (pipe(requests) < 0 || pipe(calls) < 0 ||
        (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)))
        return skip_all("no pipes");
    prctl(PR_SET_DUMPABLE, 0);
    pthread_create(&thread, NULL, run_library, NULL);
    for (int i = 0; i < 100 && least > 1; i++) {
        unsigned now = rounds_of_call();
        least = now < least ? now : least;
    }
    ok(least == 1, "a sleeping thread is seen to sleep at once");
    ok(prctl(PR_GET_DUMPABLE) == 0 && stat("/proc/self/mem", &st) == 0 &&
           st.st_uid == 0,
       "and the process leaves no core file still");
    if (write(requests[1], &end, sizeof(end)) == sizeof(end))
        pthread_join(thread, NULL);
    return tap_done();
}
