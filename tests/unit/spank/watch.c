/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.c - the notice and the signal of --dt-notice-signal, from the plugin's
 * end to the leaders. Each leader and the child that it has say by one byte
 * what comes. */
#include "requeue/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/jobfile.h"

#include "../descriptors.h"
#include "../tap.h"

enum { LONG_MS = 120000, QUIET_MS = 400 /* several looks of a watch */ };
enum { COUNTED = 40 }; /* a signal that comes as often as it is sent */

static char program[PATH_MAX];
static char notice[64];
static int said[2]; /* a pipe */

struct leader {
    pid_t pid;
    int life; /* a byte there ends it, another one its child */
};

/* ---- leaders ---- */

static volatile sig_atomic_t is_child;

static void on_signal(int number)
{
    const char *letter = number == SIGTERM ? "Tt" : "Uu";
    if (write(said[1], letter + is_child, 1) != 1)
        _exit(1);
}

static void lead(const int life[2])
{
    char byte;
    signal(SIGUSR1, on_signal);
    signal(COUNTED, on_signal);
    signal(SIGTERM, on_signal);
    is_child = fork() == 0;
    close(life[1]);
    if (write(said[1], "+", 1) != 1)
        _exit(1);
    while (read(life[0], &byte, 1) < 0)
        ;
    _exit(0);
}

/* Is this what the processes report, up to so many letters, or until they
 * report nothing more? */
static bool says(const char *wanted)
{
    char got[64] = "";
    size_t n = 0, all = strlen(wanted);
    struct pollfd waits = {said[0], POLLIN, 0};
    while (n + 1 < sizeof(got) &&
           poll(&waits, 1, n < all ? LONG_MS : QUIET_MS) == 1)
        if (read(said[0], got + n, 1) == 1)
            n++;
    if (strcmp(got, wanted) == 0)
        return true;
    diag("said \"%s\", wanted \"%s\"", got, wanted);
    return false;
}

static struct leader start_leader(void)
{
    int life[2];
    struct leader leader = {-1, -1};
    if (pipe2(life, O_CLOEXEC) != 0 || (leader.pid = fork()) < 0)
        abort();
    if (leader.pid == 0)
        lead(life);
    close(life[0]);
    leader.life = life[1];
    return leader;
}

static void end_leader(const struct leader *leader)
{
    if (write(leader->life, "..", 2) != 2)
        diag("a leader does not end: %s", strerror(errno));
    close(leader->life);
    waitpid(leader->pid, NULL, 0);
}

/* ---- watches ---- */

/* As the plugin does. */
static void make_notice(void)
{
    snprintf(notice, sizeof(notice), "/tmp/dt-watch.%d", (int)getpid());
    unlink(notice);
    int fd = open(notice, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, DT_JOBFILE_SIZE) != 0)
        diag("no notice file: %s", strerror(errno));
    close(fd);
}

/* The reason that the notice file has within the time; "": none. */
static const char *reason(void)
{
    static char text[256];
    for (int ms = 0; ms < LONG_MS; ms++) {
        int fd = open(notice, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n > 0 && text[0])
            return text + 1;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return "";
}

static bool removed(void)
{
    for (int ms = 0; ms < LONG_MS; ms++) {
        if (access(notice, F_OK) != 0)
            return true;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

static void give_notice(const char *byte)
{
    int fd = open(notice, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, byte, 1, 0) != 1)
        diag("no notice: %s", strerror(errno));
    close(fd);
}

static struct dt_watch start_watch(int number)
{
    struct dt_watch watch = {.fd = 0};
    struct dt_error err = {""};
    char text[16], file[96];
    char *const argv[] = {program, (char *)"_watch", text, NULL};
    char *const env[] = {file, NULL};
    const struct dt_helper how = {.argv = argv,
                                  .env = env,
                                  .holds = true,
                                  .user = {getuid(), getgid(), NULL, 0}};
    snprintf(text, sizeof(text), "%d", number);
    make_notice();
    snprintf(file, sizeof(file), "DT_NOTICE=%s", notice);
    ok(dt_watch_start(&watch, &how, getpid(), &err) == DT_SUCCESS &&
           watch.fd > 0,
       "signal %d: it starts%s", number, err.text);
    return watch;
}

/* The signals of a line of its status: of those below 64, bit n - 1. */
static unsigned long long signals(pid_t pid, const char *which)
{
    char path[64], line[256];
    unsigned long long set = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, which, strlen(which)))
            set = strtoull(line + strlen(which), NULL, 16);
    if (file)
        fclose(file);
    return set;
}

/* Until it has blocked the signals. */
static void await_ready(const struct dt_watch *watch)
{
    const unsigned long long last = 1ULL << (SIGRTMAX - 1);
    for (int ms = 0; ms < LONG_MS; ms++) {
        if (signals(watch->pid, "SigBlk:") & last)
            return;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    diag("it is not ready");
}

static bool runs(const struct dt_watch *watch)
{
    return kill(watch->pid, 0) == 0;
}

static void end_watch(struct dt_watch *watch)
{
    bool ran = runs(watch);
    dt_watch_end(watch);
    ok(ran && !runs(watch) && !watch->fd,
       "it ends when the step does, not before");
}

/* ---- cases ---- */

static void by_file(void)
{
    struct dt_watch watch = start_watch(COUNTED);
    const struct leader one = start_leader(), two = start_leader();
    ok(says("++++"), "two leaders, each with a child");
    ok(dt_watch_add(&watch, one.pid, NULL) == DT_SUCCESS &&
           dt_watch_add(&watch, one.pid, NULL) == DT_SUCCESS &&
           dt_watch_add(&watch, two.pid, NULL) == DT_SUCCESS,
       "they are handed over, one of them twice");
    await_ready(&watch);
    kill(watch.pid, SIGUSR1);
    kill(watch.pid, SIGINT);
    ok(says(""), "no signal before the notice");
    give_notice("\1");
    ok(says("UU"), "the notice: each leader is signalled once, no child is");
    give_notice("\1");
    kill(watch.pid, SIGTERM);
    ok(says(""), "and not again");
    dt_watch_ended(&watch, one.pid);
    dt_watch_ended(&watch, one.pid);
    ok(runs(&watch), "it stays as long as there is a leader");
    dt_watch_ended(&watch, two.pid);
    ok(!runs(&watch) && !watch.fd, "and ends with the last");
    end_leader(&one);
    end_leader(&two);
}

static void by_slurm(bool early)
{
    struct dt_watch watch = start_watch(SIGUSR1);
    const struct leader one = start_leader(), gone = start_leader();
    ok(says("++++"), "two leaders");
    dt_watch_add(&watch, one.pid, NULL);
    dt_watch_add(&watch, gone.pid, NULL);
    end_leader(&gone);
    if (!early)
        await_ready(&watch);
    kill(watch.pid, SIGTERM);
    ok(says("U"), "Slurm's SIGTERM%s: the remaining leader is signalled",
       early ? ", before it is ready" : "");
    ok(!strcmp(reason(), "Slurm sent SIGTERM"), "and the notice is written");
    end_watch(&watch);
    end_leader(&one);
}

static void by_the_same(void)
{
    struct dt_watch watch = start_watch(SIGTERM);
    const struct leader one = start_leader();
    ok(says("++"), "a leader");
    dt_watch_add(&watch, one.pid, NULL);
    await_ready(&watch);
    kill(watch.pid, SIGTERM);
    ok(says(""), "SIGTERM is chosen: Slurm's is not sent a second time");
    end_watch(&watch);
    end_leader(&one);
    watch = start_watch(SIGTERM);
    const struct leader two = start_leader();
    ok(says("++"), "a leader");
    dt_watch_add(&watch, two.pid, NULL);
    await_ready(&watch);
    give_notice("\1");
    ok(says("T"), "but any other notice brings it");
    end_watch(&watch);
    end_leader(&two);
}

static void without_signal(void)
{
    struct dt_watch watch = start_watch(0);
    const struct leader one = start_leader();
    ok(says("++"), "a leader");
    dt_watch_add(&watch, one.pid, NULL);
    await_ready(&watch);
    kill(watch.pid, SIGTERM);
    ok(!strcmp(reason(), "Slurm sent SIGTERM"),
       "without a signal to send, the notice is written");
    ok(says(""), "and no leader is signalled");
    end_leader(&one);
    dt_watch_ended(&watch, one.pid);
    ok(access(notice, F_OK) != 0, "the file is removed with the last leader");

    watch = start_watch(0);
    const struct leader two = start_leader();
    ok(says("++"), "a leader");
    dt_watch_add(&watch, two.pid, NULL);
    await_ready(&watch);
    close(watch.fd);
    ok(says("") && access(notice, F_OK) == 0,
       "slurmstepd is killed: the file stays as long as the leader");
    end_leader(&two);
    ok(removed(), "and no longer");
    waitpid(watch.pid, NULL, 0);
}

/* Without those that it has for moments. */
static int lasting_descriptors(pid_t pid)
{
    int least = descriptors_of(pid);
    for (int ms = 0; ms < 100; ms++) {
        int count = descriptors_of(pid);
        least = count < least ? count : least;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return least;
}

static void of_descriptors(void)
{
    int own = descriptors_of(getpid());
    struct dt_watch watch = start_watch(COUNTED);
    struct leader leader[4];
    bool exact = true;
    await_ready(&watch);
    give_notice("\1"); /* then it opens the file no more */
    int with_one = 0;
    for (int i = 0; i < 4; i++) {
        leader[i] = start_leader();
        exact = says("++") && exact;
        dt_watch_add(&watch, leader[i].pid, NULL);
        exact = says("U") && exact; /* the watcher has come to it */
        if (i == 0)
            with_one = lasting_descriptors(watch.pid);
    }
    int more = lasting_descriptors(watch.pid) - with_one;
    ok(exact && more == 3, "it has one descriptor for each leader: %d more",
       more);
    for (int i = 0; i < 4; i++) {
        dt_watch_ended(&watch, leader[i].pid);
        end_leader(&leader[i]);
    }
    ok(!runs(&watch) && descriptors_of(getpid()) == own,
       "and slurmstepd has none more");
}

/* The job may get the notice just as its script ends: not even the first
 * moments of the program that is to requeue it may end by that. */
static void ended(void)
{
    char *const argv[] = {program,
                          (char *)"_ended",
                          (char *)"1",
                          (char *)"0",
                          (char *)"0",
                          (char *)"-",
                          (char *)"/nonexistent",
                          (char *)"0",
                          (char *)"0",
                          NULL};
    const struct dt_helper how = {
        .argv = argv, .holds = true, .user = {getuid(), getgid(), NULL, 0}};
    int status = -1, good = 0;
    pid_t pid;
    for (int i = 0; i < 20; i++) {
        if (dt_helper_start(&how, &pid, NULL) != DT_SUCCESS)
            break;
        nanosleep(&(struct timespec){0, i * 200000L}, NULL);
        kill(pid, SIGTERM);
        kill(pid, SIGHUP);
        good += dt_helper_await(pid, LONG_MS, &status) && status == 0;
    }
    if (!ok(good == 20, "Slurm's signals do not end what requeues a job"))
        diag("%d of 20, the last status %d", good, status);
}

static void none(void)
{
    struct dt_watch watch = {.fd = 0};
    struct dt_error err = {""};
    char *const argv[] = {(char *)"/nonexistent", NULL};
    const struct dt_helper how = {.argv = argv};
    ok(dt_watch_start(&watch, &how, getpid(), &err) == DT_ERR_NOT_FOUND &&
           !watch.fd && strstr(err.text, "/nonexistent"),
       "a missing program is reported");
    ok(dt_watch_add(&watch, getpid(), NULL) == DT_SUCCESS,
       "none runs: nothing");
    dt_watch_end(&watch);
}

int main(void)
{
    char self[PATH_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return skip_all("no /proc");
    snprintf(program, sizeof(program), "%.4000s/../../../tools/dt-requeue",
             dirname(self));
    if (pipe2(said, O_CLOEXEC) != 0)
        return skip_all("no pipe");
    by_file();
    by_slurm(false);
    by_slurm(true);
    by_the_same();
    without_signal();
    of_descriptors();
    ended();
    none();
    unlink(notice);
    return tap_done();
}
