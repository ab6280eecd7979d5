/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory-lock.c - one job at a time in a directory: who is refused, and who
 * may take over from whom. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "directory-lock.h"

enum { LIMIT = 300 }; /* seconds, for all of this */

/* ---- a file system without locks ---- */

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);

static int lock_error; /* what F_OFD_SETLK answers */

int __wrap_fcntl(int fd, int command, ...)
{
    va_list ap;
    va_start(ap, command);
    void *arg = va_arg(ap, void *); /* an int is as good */
    va_end(ap);
    if (command == F_OFD_SETLK && lock_error) {
        errno = lock_error;
        return -1;
    }
    return __real_fcntl(fd, command, arg);
}

int __wrap_fcntl64(int fd, int command, ...)
{
    va_list ap;
    va_start(ap, command);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    return __wrap_fcntl(fd, command, arg);
}

/* ---- the record ---- */

/* In the record, what follows key is now value. */
static void alter(const char *key, const char *value)
{
    char new[4096];
    const char *old = contents(), *at = strstr(old, key);
    if (!at)
        abort();
    at += strlen(key);
    snprintf(new, sizeof(new), "%.*s%s%s", (int)(at - old), old, value,
             strchr(at, '\n'));
    put(".lock", new, strlen(new));
}

/* ---- processes ---- */

static pid_t heir; /* who lives on until the end of the case */

/* A process that takes it and holds it until it is killed; with an heir, a
 * child of it holds the open file, too, until the end. */
static pid_t hold(bool with_heir)
{
    int ready[2];
    pid_t said = 0;
    if (pipe(ready))
        abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (take() != DT_SUCCESS)
            _exit(1);
        if (with_heir && fork())
            pause();
        said = getpid();
        if (write(ready[1], &said, sizeof(said)) != sizeof(said))
            _exit(1);
        alarm(LIMIT);
        pause();
    }
    close(ready[1]);
    if (pid < 0 || read(ready[0], &said, sizeof(said)) != sizeof(said))
        abort();
    close(ready[0]);
    heir = with_heir ? said : 0;
    return pid;
}

static void kill_it(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void end_heir(void)
{
    kill(heir, SIGKILL);
    end();
}

/* ---- one at a time ---- */

static void test_one(void)
{
    begin();
    ok(take() == DT_SUCCESS && dt_directory_lock_held(guard), "take");
    char want[64];
    snprintf(want, sizeof(want), "pid %d\n", getpid());
    ok(strstr(contents(), want) && strstr(contents(), "job 4711\n") &&
           strstr(contents(), "run run\n"),
       ".lock names the owner");
    struct dt_directory_lock *first = guard;
    ok(take() == DT_ERR_BUSY && !guard, "once more: %s", err.text);
    snprintf(want, sizeof(want), "(process %d)", getpid());
    ok(strstr(err.text, "in use by job 4711 on ") && strstr(err.text, want) &&
           strstr(err.text, dir),
       "the error names the owner");
    ok(child_takes("4712", "run", 0) == DT_ERR_BUSY, "nor another process");
    ok(child_takes("4712", "run", 1) == DT_ERR_BUSY,
       "nor another job after a restart");
    ok(child_takes("4711", "other", 1) == DT_ERR_BUSY,
       "nor another run in the same job");
    ok(dt_directory_lock_held(first), "it is held all the time");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dt_directory_lock_release(first);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    ok(dt_directory_lock_held(first) && child_takes("1", "r", 0) == DT_ERR_BUSY,
       "a forked child cannot release the lock");
    dt_directory_lock_release(first);
    ok(*contents() == '\0' && child_takes("4712", "x", 0) == DT_SUCCESS,
       "once released, the lock is free");
    end();
}

static void test_gone(void)
{
    begin();
    pid_t pid = hold(false);
    ok(take() == DT_ERR_BUSY, "another process has it");
    kill_it(pid);
    ok(take() == DT_SUCCESS, "the lock is free once its owner is killed");
    dt_directory_lock_release(guard);

    pid = hold(true);
    kill_it(pid);
    ok(take() == DT_SUCCESS && strstr(contents(), "generation 1\n"),
       "killed, with a child that lives on: taken over");
    struct dt_directory_lock *second = guard;
    ok(child_takes("1", "r", 0) == DT_ERR_BUSY &&
           dt_directory_lock_held(second),
       "by one only");
    dt_directory_lock_release(second);
    ok(take() == DT_SUCCESS, "and given back");
    dt_directory_lock_release(guard);
    end_heir();
}

/* The owner is on a node that cannot be reached. */
static void test_elsewhere(void)
{
    begin();
    pid_t pid = hold(true);
    kill_it(pid);
    alter("where ", "another boot");
    alter("host ", "n9");
    ok(take() == DT_ERR_BUSY && strstr(err.text, "on n9"),
       "a lock of another node counts: %s", err.text);
    ok(take_as("4712", "run", 1) == DT_ERR_BUSY, "also after a restart, of "
                                                 "another job");
    ok(take_as("4711", "run", 1) == DT_SUCCESS,
       "the same job takes it over after a restart");
    dt_directory_lock_release(guard);
    ok(take() == DT_SUCCESS, "and gives it back");

    struct dt_directory_lock *lost = guard;
    ok(take_as("4711", "run", 1) == DT_SUCCESS &&
           !dt_directory_lock_held(lost) && dt_directory_lock_held(guard),
       "an owner whose job was restarted elsewhere loses the lock");
    dt_directory_lock_release(lost);
    ok(dt_directory_lock_held(guard), "and its release changes nothing");
    unlinkat(dirfd, ".lock", 0);
    ok(!dt_directory_lock_held(guard),
       "removing .lock takes it away from anyone");
    lost = guard;
    ok(take_as("1", "r", 0) == DT_SUCCESS && dt_directory_lock_held(guard),
       "then it is free");
    dt_directory_lock_release(lost);
    ok(dt_directory_lock_held(guard), "the former owner cannot release it");
    dt_directory_lock_release(guard);
    end_heir();
}

/* ---- a crowd ---- */

#define CROWD 6

struct crowd {
    int inside, worst, taken, wrong;
};

static void jostle(struct crowd *crowd, unsigned seed)
{
    for (int i = 0, tries = 0; i < 40 && tries < 100000; tries++) {
        dt_result_t rc = take();
        if (rc != DT_SUCCESS) {
            if (rc != DT_ERR_BUSY)
                __atomic_add_fetch(&crowd->wrong, 1, __ATOMIC_SEQ_CST);
            sched_yield();
            continue;
        }
        i++;
        if (__atomic_add_fetch(&crowd->inside, 1, __ATOMIC_SEQ_CST) > 1)
            __atomic_add_fetch(&crowd->worst, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&crowd->taken, 1, __ATOMIC_SEQ_CST);
        seed = seed * 1103515245 + 12345;
        if (seed >> 16 & 1)
            sched_yield();
        if (!dt_directory_lock_held(guard))
            __atomic_add_fetch(&crowd->wrong, 1, __ATOMIC_SEQ_CST);
        bool leave_heir = (seed >> 17) % 16 == 0;
        if (leave_heir && fork() == 0) {
            alarm(LIMIT);
            pause();
        }
        __atomic_sub_fetch(&crowd->inside, 1, __ATOMIC_SEQ_CST);
        if (leave_heir)
            _exit(0); /* as if killed */
        dt_directory_lock_release(guard);
    }
}

static void test_crowd(void)
{
    begin();
    struct crowd *crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t group = 0;
    for (int i = 0; i < CROWD * 4; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, group);
            jostle(crowd, (unsigned)i);
            _exit(0);
        }
        setpgid(pid, group);
        group = group ? group : pid;
        if (i >= CROWD) /* as many again when one has ended */
            waitpid(-1, NULL, 0);
    }
    for (int left = CROWD; left > 0; left--)
        waitpid(-1, NULL, 0);
    ok(crowd->worst == 0 && crowd->wrong == 0 && crowd->taken > CROWD * 4,
       "a crowd, some of which die and leave heirs: %d in it at once",
       crowd->worst ? crowd->worst + 1 : 1);
    diag("taken %d times, %d wrong", crowd->taken, crowd->wrong);
    kill(-group, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    munmap(crowd, sizeof(*crowd));
    end();
}

/* ---- what the system cannot ---- */

static void test_no_locks(void)
{
    begin();
    int said = memfd_create("stderr", 0), was = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(said, STDERR_FILENO);
    lock_error = ENOLCK;
    dt_result_t rc = take();
    struct dt_directory_lock *first = guard;
    dt_result_t again = take();
    lock_error = 0;
    dup2(was, STDERR_FILENO);
    char text[512] = "";
    (void)!pread(said, text, sizeof(text) - 1, 0);
    ok(rc == DT_SUCCESS && again == DT_SUCCESS && dt_directory_lock_held(first),
       "no locks: goes on");
    ok(strstr(text, "has no locks"), "and says so: %s",
       strtok(text, "\n") ? text : "");
    dt_directory_lock_release(first);
    dt_directory_lock_release(guard);
    lock_error = EIO;
    ok(take() == DT_ERR_IO, "a lock that fails: %s", err.text);
    lock_error = 0;
    close(said);
    close(was);
    end();
}

/* A disk without room for the record: locked all the same. */
static void test_full(void)
{
    begin();
    fflush(stdout);
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){10, RLIM_INFINITY});
        bool good = take() == DT_SUCCESS && dt_directory_lock_held(guard) &&
                    *contents() == '\0';
        struct dt_directory_lock *first = guard;
        good = good && take() == DT_ERR_BUSY &&
               strstr(err.text, "in use by another job: ");
        dt_directory_lock_release(first);
        _exit(!good);
    }
    waitpid(pid, &status, 0);
    ok(status == 0, "a full disk");
    end();
}

int main(void)
{
    alarm(LIMIT);
    test_one();
    test_gone();
    test_elsewhere();
    test_crowd();
    test_no_locks();
    test_full();
    return tap_done();
}
