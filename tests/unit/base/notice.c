/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notice.c - the notice by signal, by file and by the clock; each case is a
 * process of its own, in which the clock goes as the case wants. */
#include "base/deadline.h"
#include "base/notice.h"
#include "../tap.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EPOCH  1800000000 /* when the test begins */
#define FAILED 100        /* in an exit code, beside the number of tests */

static double passed; /* seconds since then */
static char dir[] = "/tmp/dt-notice.XXXXXX", path[64], other[64];

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    double at = passed + (clock == CLOCK_REALTIME ? EPOCH : 1000);
    ts->tv_sec = (time_t)at;
    ts->tv_nsec = (long)((at - floor(at)) * 1e9);
    return 0;
}

/* Run test in a process of its own, as Slurm starts a task. */
static void in_child(const char *name, void (*test)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        tap.failed = 0;
        diag("%s", name);
        test();
        fflush(stdout);
        _exit(tap.run + (tap.failed ? FAILED : 0));
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) {
        ok(false, "%s: status %#x", name, status);
        return;
    }
    tap.run = WEXITSTATUS(status) % FAILED;
    tap.failed += WEXITSTATUS(status) >= FAILED;
}

static void put(const char *file, const char *bytes, size_t size)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd))
        diag("%s cannot be written", file);
}

static void job_end(const char *variable, long seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", EPOCH + seconds);
    setenv(variable, text, 1);
}

static bool about(double got, double wanted)
{
    if (fabs(got - wanted) < 0.001)
        return true;
    diag("got %g, wanted %g", got, wanted);
    return false;
}

/* ---- by signal ---- */

static void by_signal(void)
{
    ok(!dt_notice_seen(), "nothing is seen before it is armed");
    dt_notice_arm();
    dt_notice_arm();
    ok(!dt_notice_seen(), "nor when nothing has come");
    raise(SIGTERM);
    ok(dt_notice_seen(), "SIGTERM is seen");
    dt_notice_disarm();
    struct sigaction now;
    ok(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_DFL,
       "disarmed, it does what it did");
}

static volatile sig_atomic_t own_calls;

static void own(int signo)
{
    (void)signo;
    own_calls++;
}

static void own_handler(void)
{
    struct sigaction sa = {.sa_handler = own};
    sigaction(SIGTERM, &sa, NULL);
    setenv("DT_NOTICE", path, 1);
    put(path, "1", 1);
    dt_notice_arm();
    raise(SIGTERM);
    ok(own_calls == 1, "a program's own handler stays");
    ok(dt_notice_seen(), "the file is looked at all the same");
}

/* ---- by file ---- */

static void by_file(void)
{
    char page[4096] = {0};
    put(path, page, sizeof page);
    setenv("DT_NOTICE", path, 1);
    dt_notice_arm();
    ok(!dt_notice_seen(), "a file that begins with 0 says nothing");
    strcpy(page, "\1preempted");
    put(path, page, sizeof page);
    passed += 0.05;
    ok(!dt_notice_seen(), "it is not looked at each time");
    passed += 0.0625;
    ok(dt_notice_seen(), "but ten times a second; a first byte is heard");
    put(path, "", 0);
    passed++;
    ok(dt_notice_seen(), "what was said once stays said");
}

static void bad_file(void)
{
    setenv("DT_NOTICE", path, 1);
    unlink(path);
    dt_notice_arm();
    ok(!dt_notice_seen(), "a file that is not there says nothing");
    put(path, "", 0);
    passed++;
    ok(!dt_notice_seen(), "nor does an empty one");
    unlink(path);
    mkdir(path, 0700);
    passed++;
    ok(!dt_notice_seen(), "nor a directory");
    rmdir(path);
    if (mkfifo(path, 0600))
        diag("no FIFO");
    passed++;
    ok(!dt_notice_seen(),
       "nor a FIFO without a writer, and the call does not block");
    put(other, "yes\n", 4);
    rename(other, path);
    passed++;
    ok(dt_notice_seen(), "one that is renamed to its place is heard");
}

/* ---- by the clock ---- */

static void no_end(void)
{
    dt_notice_arm();
    dt_deadline_step();
    dt_deadline_reserve(1e9);
    ok(dt_deadline_left() < 0, "no end: a negative number");
    ok(!dt_deadline_near() && !dt_notice_seen(), "which is never near");
}

static void long_job(void)
{
    job_end("DT_JOB_END", 36000);
    job_end("SLURM_JOB_END_TIME", 100);
    dt_notice_arm();
    ok(about(dt_deadline_left(), 36000), "DT_JOB_END comes first");
    passed = 35939;
    ok(!dt_notice_seen(), "61 seconds are not near");
    dt_deadline_reserve(0.5);
    ok(!dt_deadline_near(), "nor with a checkpoint of half a second");
    dt_deadline_reserve(2);
    ok(dt_deadline_near(), "with one of 2 seconds they are");
    dt_deadline_reserve(-1);
    dt_deadline_reserve((double)NAN);
    ok(dt_deadline_near(), "a cost that is none changes nothing");
    ok(!dt_notice_seen(), "the clock is looked at with the file");
    passed += 0.125;
    ok(dt_notice_seen(), "ten times a second");
    passed = 36001;
    ok(about(dt_deadline_left(), 0), "after the end: 0");
    dt_deadline_reserve(INFINITY);
    ok(dt_deadline_near(), "no cost is too high");
}

static void short_job(void)
{
    job_end("SLURM_JOB_END_TIME", 100);
    setenv("DT_JOB_END", "soon", 1);
    ok(about(dt_deadline_left(), 100), "Slurm's own end, where ours is bad");
    passed = 89.9;
    ok(!dt_deadline_near(), "of 100 seconds, the last tenth is near");
    passed = 90;
    ok(dt_deadline_near(), "and no more");
}

static void steps(void)
{
    job_end("DT_JOB_END", 1000);
    for (int i = 0; i < 10; i++, passed += i % 2 ? 20 : 0)
        dt_deadline_step();
    passed = 919;
    ok(!dt_deadline_near(), "steps of 20 seconds, asked twice: 81 are left");
    passed = 920;
    ok(dt_deadline_near(), "80 are a step and the margin: near");
    for (int i = 0; i < 100; i++)
        dt_deadline_step();
    passed = 935;
    ok(!dt_deadline_near(), "when steps become shorter, so does the reserve");
}

static void over(void)
{
    job_end("DT_JOB_END", -5);
    dt_notice_arm();
    ok(about(dt_deadline_left(), 0) && dt_notice_seen(),
       "an end in the past is now");
}

static void beside_a_file(void)
{
    setenv("DT_NOTICE", path, 1);
    unlink(path);
    job_end("DT_JOB_END", 1000);
    dt_notice_arm();
    passed = 939;
    ok(!dt_notice_seen(), "a file that says nothing, and 61 seconds");
    passed = 940;
    ok(dt_notice_seen(), "the clock is heard where there is a file, too");
}

static void never(void)
{
    setenv("DT_JOB_END", "99999999999", 1);
    ok(dt_deadline_left() < 0, "an end in thousands of years is none");
    ok(!dt_deadline_near(), "and not near");
}

int main(void)
{
    if (!mkdtemp(dir))
        return skip_all("no directory in /tmp");
    snprintf(path, sizeof path, "%s/notice", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    unsetenv("DT_NOTICE");
    unsetenv("DT_JOB_END");
    unsetenv("SLURM_JOB_END_TIME");
    in_child("by signal", by_signal);
    in_child("with a handler of the program's", own_handler);
    in_child("by file", by_file);
    in_child("no such file", bad_file);
    in_child("a job without end", no_end);
    in_child("a long job", long_job);
    in_child("a short job", short_job);
    in_child("steps that take time", steps);
    in_child("a job that is over", over);
    in_child("the clock beside a file", beside_a_file);
    in_child("a job of a lifetime", never);
    unlink(path);
    rmdir(dir);
    return tap_done();
}
