/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* auth.c - proofs by munge: what is believed, and what is not. */
#include "mesh/auth.h"

#include <munge.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../descriptors.h"
#include "munged.h"
#include "../tap.h"

static struct munged munged;
static struct dt_error err;

static dt_result_t check(const char *cred, const char *message)
{
    err.text[0] = '\0';
    return dt_auth_check(munged.socket, cred, strlen(cred), message,
                         strlen(message), &err);
}

static char *make(const char *message)
{
    char *cred = NULL;
    if (dt_auth_make(munged.socket, message, strlen(message), &cred, &err) !=
        DT_SUCCESS)
        diag("%s", err.text);
    return cred;
}

/* A credential with some option, or of another user. */
static char *make_other(munge_opt_t option, int value)
{
    char *cred = NULL;
    munge_ctx_t ctx = munge_ctx_create();
    munge_ctx_set(ctx, MUNGE_OPT_SOCKET, munged.socket);
    munge_ctx_set(ctx, option, value);
    munge_encode(&cred, ctx, "hello", 5);
    munge_ctx_destroy(ctx);
    return cred;
}

static void test_believed(void)
{
    char *cred = make("hello");
    ok(cred && check(cred, "hello") == DT_SUCCESS, "a credential of our own");
    ok(cred && check(cred, "hello") == DT_ERR_INVALID_ARG &&
           strstr(err.text, "replayed"),
       "but only once: %s", err.text);
    free(cred);
}

static void test_not_believed(void)
{
    static const char *const other[] = {"hello!", "hell", "hallo", ""};
    for (size_t i = 0; i < 4; i++) {
        char *cred = make("hello");
        ok(cred && check(cred, other[i]) == DT_ERR_INVALID_ARG &&
               strstr(err.text, "something else"),
           "not for '%s': %s", other[i], err.text);
        free(cred);
    }
    ok(check("MUNGE:nonsense:", "hello") == DT_ERR_INVALID_ARG, "nonsense: %s",
       err.text);
    ok(dt_auth_check(munged.socket, "", 0, "x", 1, &err) == DT_ERR_INVALID_ARG,
       "nothing: %s", err.text);
}

/* Of credentials that were made at once and are good for a second, each is
 * tried once: those that are tried later are too old. */
static void test_old(void)
{
    enum { COUNT = 100, PAUSE_US = 100000 };
    char *cred[COUNT];
    bool old = false;
    for (size_t i = 0; i < COUNT; i++)
        cred[i] = make_other(MUNGE_OPT_TTL, 1);
    for (size_t i = 0; i < COUNT && !old; i++) {
        usleep(PAUSE_US);
        old = cred[i] && check(cred[i], "hello") == DT_ERR_INVALID_ARG &&
              strstr(err.text, "clocks");
    }
    ok(old, "an old one: %s", err.text);
    for (size_t i = 0; i < COUNT; i++)
        free(cred[i]);
}

/* From a process of user 65534, readable for this user; or made by dt_auth_make
 * there, which makes it readable for that user only. */
static char *foreign_credential(bool ours)
{
    static char cred[4096];
    int pipes[2];
    if (pipe(pipes) < 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0) {
        char *made = NULL;
        if (setgid(65534) == 0 && setuid(65534) == 0)
            made =
                ours ? make("hello") : make_other(MUNGE_OPT_UID_RESTRICTION, 0);
        _exit(!made || write(pipes[1], made, strlen(made)) < 0);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], cred, sizeof(cred) - 1);
    close(pipes[0]);
    waitpid(pid, NULL, 0);
    if (n <= 0)
        return NULL;
    cred[n] = '\0';
    return cred;
}

static void test_foreign(void)
{
    if (geteuid() != 0) {
        ok(true, "another user # SKIP needs root");
        return;
    }
    char *cred = foreign_credential(false);
    ok(cred && check(cred, "hello") == DT_ERR_INVALID_ARG &&
           strstr(err.text, "uid 65534"),
       "another user: %s", err.text);
    cred = foreign_credential(true);
    ok(cred && check(cred, "hello") == DT_ERR_INVALID_ARG &&
           strstr(err.text, "not for this user"),
       "for another user: %s", err.text);
}

static void test_down(void)
{
    char *cred = NULL;
    ok(dt_auth_make("/nowhere/munge", "x", 1, &cred, &err) == DT_ERR_SYSTEM &&
           strstr(err.text, "/nowhere/munge") &&
           strstr(err.text, "munged running") && !cred,
       "munge is down: %s", err.text);
    ok(dt_auth_check("/nowhere/munge", "x", 1, "x", 1, &err) == DT_ERR_SYSTEM,
       "so that nothing can be checked: %s", err.text);
}

int main(void)
{
    if (!munged_start(&munged))
        return skip_all("no munged");
    int before = descriptors_of(getpid());
    test_believed();
    test_not_believed();
    test_old();
    test_foreign();
    test_down();
    ok(descriptors_of(getpid()) == before, "no descriptor is left");
    munged_stop(&munged);
    return tap_done();
}
