/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* child.c - read a topology in a child process. It answers with our own text
 * format, or with '!', the result's number and the error's text; the parent
 * trusts neither. */
#include "topo/sources/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "topo/sources/input.h"

#define SECONDS 10

static void write_all(int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno != EINTR)
            return;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
}

/* A crash must not show: neither by a handler's report nor by a core file. */
static void silence(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
        signal(fatal[i], SIG_DFL);
    prctl(PR_SET_DUMPABLE, 0);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
}

/* The answer that is in text. */
static dt_result_t take_answer(const char *text, size_t len, dt_topo_t **topo,
                               struct dt_error *err)
{
    uint64_t number;
    if (len == 0)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "it is damaged: the library that reads it crashed");
    if (*text++ != '!')
        return dt_topo_read_text(text - 1, len, topo, err);
    if (!dt_number_scan(&text, 10, INT8_MAX, &number) || *text != ' ' ||
        number == 0)
        return dt_error_set(err, DT_ERR_CORRUPT, "it is damaged");
    return dt_error_set(err, (dt_result_t) - (int)number, "%s", text + 1);
}

dt_result_t dt_child_read(dt_result_t (*read)(const char *data, size_t len,
                                              dt_topo_t **topo,
                                              struct dt_error *err),
                          const char *data, size_t len, dt_topo_t **topo,
                          struct dt_error *err)
{
    int end[2];
    if (pipe2(end, O_CLOEXEC))
        return dt_error_set(err, DT_ERR_SYSTEM, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        struct dt_error why = {""};
        dt_topo_t *made = NULL;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        silence();
        dt_result_t rc = read(data, len, &made, &why);
        char *text = rc == DT_SUCCESS ? dt_topo_print(made) : NULL;
        char failure[sizeof(why.text) + 16];
        snprintf(failure, sizeof(failure), "!%d %s",
                 rc == DT_SUCCESS ? -DT_ERR_NO_MEMORY : -rc,
                 rc == DT_SUCCESS ? "no memory" : why.text);
        write_all(end[1], text ? text : failure);
        _exit(0);
    }
    int failed = errno;
    close(end[1]);
    char *text = NULL;
    dt_result_t rc = pid < 0 ? dt_error_set(err, DT_ERR_SYSTEM,
                                            "no process: %s", strerror(failed))
                             : dt_input_read(end[0], SECONDS, &text, &len, err);
    close(end[0]);
    if (pid > 0) { /* it has answered, or never will */
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (rc == DT_SUCCESS)
        rc = take_answer(text, len, topo, err);
    free(text);
    return rc;
}
