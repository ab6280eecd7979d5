/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* process-monitor.c - is a process stopped? The time is given, not passed.
 */
#include "daemon/process_monitor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

/* Rounds of 100 ms from *now on, count of them; how often rank 0 was named. */
static int rounds(struct dt_monitor *monitor, int64_t *now, int count,
                  int64_t apart)
{
    int named = 0;
    int64_t next;
    for (int i = 0; i < count; i++, *now += apart)
        while (dt_monitor_progress(monitor, *now, &next) >= 0)
            named++;
    return named;
}

static void test_state(void)
{
    ok(dt_monitor_state("12 (a) T 1 2") == 'T', "a state is found");
    ok(dt_monitor_state("12 (a) T (b) R 1") == 'R',
       "behind a name with brackets and a T");
    ok(!dt_monitor_state("") && !dt_monitor_state("12 (a)"), "or is not there");
}

static void test_stop(void)
{
    struct dt_monitor *monitor;
    int64_t now = 1000;
    int status;
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    ok(dt_monitor_open(&monitor, 2, 1000, NULL) == DT_SUCCESS,
       "open for 2 ranks");
    dt_monitor_started(monitor, 0, pid);
    ok(rounds(monitor, &now, 30, 125) == 0,
       "a sleeping process is not stopped");
    kill(pid, SIGSTOP);
    waitpid(pid, &status, WUNTRACED);
    ok(rounds(monitor, &now, 5, 125) == 0,
       "one that has just stopped is within the limit");
    ok(rounds(monitor, &now, 1, 60000) == 0 &&
           rounds(monitor, &now, 1, 125) == 0,
       "time in which this process was stopped does not count");
    ok(rounds(monitor, &now, 10, 125) == 1, "after the limit it is returned");
    ok(rounds(monitor, &now, 10, 125) == 0, "once");
    dt_monitor_signal(monitor, 0, SIGKILL);
    waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "and can be killed");
    dt_monitor_started(monitor, 1, pid);
    dt_monitor_signal_all(monitor, SIGKILL);
    ok(rounds(monitor, &now, 2, 125) == 0,
       "one that has ended is not returned");
    dt_monitor_close(monitor);
    dt_monitor_close(NULL);
}

int main(void)
{
    test_state();
    test_stop();
    return tap_done();
}
