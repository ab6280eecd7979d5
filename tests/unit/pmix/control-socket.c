/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* control-socket.c - the directory of a step's PMIx server, and the control
 * socket in it. */
#include "daemon/control_socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/step.h"
#include "daemon/directory.h"
#include "../tap.h"

static int asked, last_code;

/* Rank 1 may be replaced at the third call. */
static dt_result_t replace(void *arg, size_t rank, int code,
                           struct dt_error *err)
{
    (void)arg;
    asked++;
    if (code >= 0)
        last_code = code;
    if (rank != 1)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "not rank %zu", rank);
    return asked < 3 ? DT_IN_PROGRESS : DT_SUCCESS;
}

static int call_in(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
        perror(path);
    return fd;
}

static void answers(struct dt_control *control, int fd, const char *question,
                    const char *wanted)
{
    char text[256] = "";
    asked = 0;
    send(fd, question, strlen(question), MSG_NOSIGNAL);
    for (int i = 0; i < 8; i++)
        dt_control_progress(control);
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = '\0';
    if (!ok(!strcmp(text, wanted), "\"%s\" is answered", question))
        diag("by \"%s\"", text);
}

static void test_control(const char *directory)
{
    static const char expected[] = "error expected: replace RANK CODE";
    struct dt_control *control;
    if (!ok(dt_control_open(&control, directory, replace, NULL, NULL) ==
                DT_SUCCESS,
            "a control socket is opened"))
        return;
    int fd = call_in(dt_control_path(control));
    ok(!dt_control_progress(control), "no request waits");
    answers(control, fd, "replace 1 137", "ok");
    ok(asked == 3 && last_code == 137, "after three calls, with its code");
    answers(control, fd, "replace 2 0", "error not rank 2");
    answers(control, fd, "replace 1", expected);
    answers(control, fd, "replace 1 256", expected);
    answers(control, fd, "replace -1 0", expected);
    answers(control, fd, "replace 99999999999999999999 1", expected);
    answers(control, fd, "hello", expected);
    close(fd);
    dt_control_progress(control);
    for (int i = 0; i < 3 * DT_CONTROL_POLLS; i++) {
        fd = call_in(dt_control_path(control));
        dt_control_progress(control);
        close(fd);
        dt_control_progress(control);
    }
    fd = call_in(dt_control_path(control));
    answers(control, fd, "replace 1 0", "ok");
    close(fd);
    dt_control_close(control);
    dt_control_close(NULL);
}

/* A process of another user, which may reach the socket. */
static void test_other_user(const char *directory)
{
    struct dt_control *control;
    if (geteuid() != 0 || dt_control_open(&control, directory, replace, NULL,
                                          NULL) != DT_SUCCESS) {
        ok(true, "another user # SKIP needs root");
        return;
    }
    chmod(directory, 0755);
    chmod(dt_control_path(control), 0777);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char text[64];
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        int fd = call_in(dt_control_path(control));
        send(fd, "replace 1 0", 11, MSG_NOSIGNAL);
        _exit(recv(fd, text, sizeof(text), 0) > 0);
    }
    int status = 0;
    asked = 0;
    for (int i = 0; i < 3000 && waitpid(pid, &status, WNOHANG) == 0; i++) {
        dt_control_progress(control);
        usleep(10000);
    }
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0 && asked == 0,
       "another user gets no answer");
    chmod(directory, 0700);
    dt_control_close(control);
}

/* What is not ours is left alone, also where this process could remove it. */
static void test_other_directory(const char *path)
{
    struct stat st;
    if (geteuid() != 0) {
        ok(true, "another user's directory # SKIP needs root");
        return;
    }
    mkdir(path, 0700);
    ok(chown(path, 65534, 65534) == 0 &&
           dt_directory_remove(path, NULL) == DT_ERR_INVALID_ARG &&
           stat(path, &st) == 0,
       "another user's directory is left alone");
    rmdir(path);
}

int main(void)
{
    char path[64], inside[96], away[] = "/tmp/dt-away-XXXXXX", long_path[120],
                               file[32];
    struct stat st;
    if (!mkdtemp(away))
        return skip_all("no directory in /tmp");
    snprintf(file, sizeof(file), "%s/file", away);
    FILE *made = fopen(file, "w");
    if (made)
        fclose(made);
    /* of no other run either: what one that was killed has left is there */
    snprintf(path, sizeof(path), "/tmp/" DT_STEP_DIRECTORY "test-%s",
             strrchr(away, '-') + 1);
    ok(dt_directory_make(path, NULL) == DT_SUCCESS && stat(path, &st) == 0 &&
           (st.st_mode & 07777) == 0700,
       "a private directory is made");
    ok(dt_directory_make(path, NULL) == DT_ERR_SYSTEM, "but not twice");
    snprintf(long_path, sizeof(long_path), "/tmp/" DT_STEP_DIRECTORY "%0100d",
             1);
    ok(dt_directory_make(long_path, NULL) == DT_ERR_SYSTEM,
       "nor one too long for sockets");
    test_control(path);
    test_other_user(path);

    snprintf(inside, sizeof(inside), "%s/a", path);
    mkdir(inside, 0700);
    snprintf(inside, sizeof(inside), "%s/a/link", path);
    ok(symlink(away, inside) == 0, "with a directory and a link in it");
    ok(dt_directory_remove(path, NULL) == DT_SUCCESS && lstat(path, &st) != 0,
       "it is removed");
    ok(stat(file, &st) == 0, "and not what the link leads to");
    ok(dt_directory_remove(path, NULL) == DT_SUCCESS, "it may be gone already");
    ok(dt_directory_remove(away, NULL) == DT_ERR_INVALID_ARG,
       "another directory is left alone");
    ok(dt_directory_remove("/tmp/" DT_STEP_DIRECTORY "/../etc", NULL) ==
           DT_ERR_INVALID_ARG,
       "however it is written");
    ok(symlink(away, path) == 0 &&
           dt_directory_remove(path, NULL) == DT_ERR_INVALID_ARG &&
           stat(file, &st) == 0,
       "and so is a link");
    ok(dt_directory_make(path, NULL) == DT_ERR_SYSTEM && stat(file, &st) == 0,
       "which is no directory to be made either");
    unlink(path);
    ok(symlink("/tmp/dt-nowhere", path) == 0 &&
           dt_directory_make(path, NULL) == DT_ERR_SYSTEM,
       "nor is one to nowhere");
    unlink(path);
    test_other_directory(path);
    unlink(file);
    rmdir(away);
    return tap_done();
}
