/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* probe.c - discover this node in a child process, since a GPU driver can hang
 * or crash the process that calls it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "node.h"

/* A child that hangs in the kernel outlives us; it must hold no descriptor that
 * another process waits for. */
static void let_go(int keep_a, int keep_b)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        if (null >= 0)
            dup2(null, fd);
        else
            close(fd);
    for (int fd = 3; fd < 256; fd++)
        if (fd != keep_a && fd != keep_b)
            close(fd);
}

/* The child writes the topology, or its error, to the file out. */
static _Noreturn void discover(int out, int life, bool drivers)
{
    struct dt_error err = {""};
    dt_topo_t *topo = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    let_go(out, life);
    if (dt_topo_discover(drivers, &topo, &err) != DT_SUCCESS) {
        dt_file_write(out, err.text, strlen(err.text));
        _exit(1);
    }
    char *text = dt_topo_print(topo);
    _exit(text && !dt_file_write(out, text, strlen(text)) ? 0 : 2);
}

/* Wait until the other end of the pipe is closed. */
static bool wait_closed(int life, int seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long end =
        now.tv_sec * 1000LL + now.tv_nsec / 1000000 + seconds * 1000LL;
    for (;;) {
        struct pollfd entry = {.fd = life, .events = POLLIN};
        clock_gettime(CLOCK_MONOTONIC, &now);
        long long left = end - now.tv_sec * 1000LL - now.tv_nsec / 1000000;
        if (left <= 0)
            return false;
        int n = poll(&entry, 1, (int)left);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* Its status, or -1 if it did not end by itself. */
static int reap(pid_t pid, int life)
{
    int status;
    if (!wait_closed(life, PROBE_SECONDS)) {
        kill(pid, SIGKILL);
        if (!wait_closed(life, 1))
            return -1; /* it hangs in the kernel; init reaps it */
        waitpid(pid, &status, 0);
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

static dt_result_t load_answer(int file, int status, dt_topo_t **topo,
                               struct dt_error *err)
{
    char text[256] = "";
    if (status == 0)
        return load_fd(file, topo, err);
    if (status < 0)
        return dt_error_set(err, DT_ERR_TIMED_OUT, "it took longer than %d s",
                            PROBE_SECONDS);
    if (WIFSIGNALED(status))
        return dt_error_set(err, DT_ERR_SYSTEM, "it crashed with signal %d",
                            WTERMSIG(status));
    if (pread(file, text, sizeof(text) - 1, 0) < 0 || !*text)
        return dt_error_set(err, DT_ERR_SYSTEM, "it failed without a message");
    return dt_error_set(err, DT_ERR_SYSTEM, "%s", text);
}

static dt_result_t probe_once(bool drivers, dt_topo_t **topo,
                              struct dt_error *err)
{
    int life[2], status = -1;
    dt_result_t rc = DT_ERR_SYSTEM;
    int file = memfd_create("topology", MFD_CLOEXEC);
    if (file < 0)
        return dt_error_set(err, rc, "no memory file: %s", strerror(errno));
    if (pipe2(life, O_CLOEXEC)) {
        dt_error_set(err, rc, "no pipe: %s", strerror(errno));
        goto close_file;
    }
    pid_t pid = fork();
    if (pid == 0)
        discover(file, life[1], drivers);
    close(life[1]);
    if (pid < 0) {
        dt_error_set(err, rc, "no process: %s", strerror(errno));
    } else {
        status = reap(pid, life[0]);
        rc = load_answer(file, status, topo, err);
    }
    close(life[0]);
close_file:
    close(file);
    return rc;
}

dt_result_t probe(FILE *notes, dt_topo_t **topo, bool *whole,
                  struct dt_error *err)
{
    struct dt_error first;
    if (probe_once(true, topo, &first) == DT_SUCCESS) {
        *whole = !*(*topo)->missing;
        if (!*whole)
            note(notes, "%s: NVLinks are not known", (*topo)->missing);
        return DT_SUCCESS;
    }
    *whole = false;
    if (probe_once(false, topo, err) != DT_SUCCESS)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "this node cannot be discovered: %.400s",
                            first.text);
    note(notes,
         "asking the GPU driver failed (%s): GPUs are shown without it, and "
         "NVLinks are not known",
         first.text);
    return DT_SUCCESS;
}

dt_result_t load_fd(int fd, dt_topo_t **topo, struct dt_error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return dt_topo_load(path, topo, err);
}
