/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* discover.c - the helper program is run, and ended, as promised; scripts
 * stand for it. */
#include "placement/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

enum { GROUP = 65532 }; /* nobody's is 65534 */

static char script[64] = "/tmp/dt-discover.XXXXXX";

static void write_script(const char *body)
{
    unlink(script);
    FILE *file = fopen(script, "we");
    if (!file || fprintf(file, "#!/bin/sh\n%s\n", body) < 0 || fclose(file) ||
        chmod(script, 0755))
        abort();
}

static dt_result_t run(const char *conf, int limit_ms, char **text,
                       size_t *size, struct dt_error *err)
{
    struct dt_discover how = {.program = script,
                              .node = "n7",
                              .conf = conf,
                              .limit_ms = limit_ms,
                              .user = {.uid = 65534, .gid = GROUP}};
    *text = NULL;
    return dt_discover(&how, text, size, err);
}

static void prints(const char *name, const char *body, const char *wanted)
{
    char *text;
    size_t size = 0;
    struct dt_error err = {""};
    write_script(body);
    dt_result_t rc = run(NULL, 30000, &text, &size, &err);
    if (!ok(rc == DT_SUCCESS && size == strlen(wanted) && !strcmp(text, wanted),
            "%s", name))
        diag("result %d, \"%s\", text \"%s\"", rc, err.text,
             text ? text : "none");
    free(text);
}

static void fails(const char *name, const char *body, int limit_ms,
                  dt_result_t wanted, const char *why)
{
    char *text;
    size_t size = 17;
    struct dt_error err = {""};
    write_script(body);
    dt_result_t rc = run(NULL, limit_ms, &text, &size, &err);
    if (!ok(rc == wanted && strstr(err.text, why) && !strchr(err.text, '\n') &&
                !text && size == 17,
            "%s: %s", name, why))
        diag("result %d, \"%s\"", rc, err.text);
}

static void test_output(void)
{
    prints("its arguments", "echo \"$*\"", "--cached --node n7\n");
    prints("its standard error is not its answer", "echo x; echo y >&2", "x\n");
    prints("nothing of our environment", "echo \"$DT_SECRET$HOME$LC_ALL\"",
           "/C\n");
    prints(
        "no input, no other descriptor",
        "cat; for i in 3 4 5 6 7 8 9; do\n"
        "  [ ! -e /proc/$$/fd/$i ] || readlink /proc/$$/fd/$i; done; echo end",
        "end\n");
    /* but for 32 and 33, which are the C library's own */
    prints("no signal blocked or ignored",
           "while read -r key value; do case $key in SigBlk: | SigIgn:)\n"
           "  echo $((0x$value & ~0x180000000)) ;; esac; done </proc/$$/status",
           "0\n0\n");
    prints("more than a pipe holds, and all of it",
           "i=0; while [ $i -lt 3000 ]; do i=$((i + 1));\n"
           "  echo 0123456789012345678901234567890123456789; done | wc -c",
           "123000\n");
    prints("it may close its output before it ends",
           "echo x; exec >&- 2>&-; sleep 0.1", "x\n");

    char *text;
    size_t size;
    struct dt_error remark = {"?"};
    write_script("echo x; echo one >&2; echo two >&2");
    ok(run(NULL, 30000, &text, &size, &remark) == DT_SUCCESS &&
           !strcmp(remark.text, "one"),
       "but what it remarks is handed on");
    free(text);
    write_script("echo \"$*\"");
    ok(run("/a b", 30000, &text, &size, NULL) == DT_SUCCESS &&
           !strcmp(text, "--cached --node n7 --conf /a b\n"),
       "a configuration is handed on");
    free(text);
    write_script("head -c 1048576 /dev/zero");
    ok(run(NULL, 30000, &text, &size, NULL) == DT_SUCCESS &&
           size == DT_DISCOVER_MAX_TEXT && text[size] == '\0',
       "1 MiB is taken");
    free(text);
    write_script("id -u; id -g; id -G; grep CapEff /proc/self/status");
    if (getuid() == 0)
        ok(run(NULL, 30000, &text, &size, NULL) == DT_SUCCESS &&
               !strcmp(text, "65534\n65534\n65534 65532\n"
                             "CapEff:\t0000000000000000\n"),
           "root's rights are gone, and the group that the user could trace "
           "it by");
    else
        ok(run(NULL, 30000, &text, &size, NULL) == DT_SUCCESS &&
               (uid_t)atoi(text) == getuid(),
           "it runs as we do");
    free(text);
}

/* A child that lives on, and closed the pipes, is ended, too. */
static void test_left_behind(void)
{
    char *text;
    size_t size;
    write_script("sleep 1000 </dev/null >/dev/null 2>&1 & echo $!");
    dt_result_t rc = run(NULL, 30000, &text, &size, NULL);
    pid_t pid = rc == DT_SUCCESS ? atoi(text) : 0;
    bool gone = false;
    for (int i = 0; pid > 1 && i < 60000 && !gone; i++) {
        char name[64], state[64] = "";
        snprintf(name, sizeof(name), "/proc/%d/stat", pid);
        FILE *file = fopen(name, "re");
        /* killed at once, it may wait for its new parent as a zombie */
        gone =
            !file || fscanf(file, "%*d %*s %63s", state) != 1 || *state == 'Z';
        if (file)
            fclose(file);
        usleep(1000);
    }
    ok(gone, "a remaining child is ended");
    free(text);
}

static void test_failures(void)
{
    fails("status", "echo one >&2; echo two >&2; exit 3", 30000, DT_ERR_SYSTEM,
          "ended with status 3: one");
    fails("signal", "echo x; kill -SEGV $$", 30000, DT_ERR_SYSTEM,
          "ended by signal 11");
    fails("nothing", "exit 0", 30000, DT_ERR_SYSTEM, "printed nothing");
    fails("too much", "yes", 30000, DT_ERR_SYSTEM, "more than 1048576 bytes");
    fails("much complaint", "yes | head -c 1000000 >&2; exit 1", 30000,
          DT_ERR_SYSTEM, "ended with status 1: y");
    fails("a hang", "sleep 1000 & echo x; sleep 1000", 200, DT_ERR_TIMED_OUT,
          "did not end within 0 s");
    fails("a hang without output", "exec >&- 2>&-; sleep 1000", 200,
          DT_ERR_TIMED_OUT, "did not end within 0 s");
    fails("a hang that signals do not end", "trap '' TERM INT HUP; sleep 1000",
          200, DT_ERR_TIMED_OUT, "did not end within 0 s");
    test_left_behind();
    ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD,
       "all of them have been waited for");

    char *text;
    size_t size;
    struct dt_error err = {""};
    write_script("echo x");
    chmod(script, 0644);
    ok(run(NULL, 30000, &text, &size, &err) == DT_ERR_NOT_FOUND &&
           strstr(err.text, "Permission denied"),
       "a program that may not be run is not found");
    unlink(script);
    ok(run(NULL, 30000, &text, &size, &err) == DT_ERR_NOT_FOUND &&
           strstr(err.text, "No such file"),
       "nor one that is not there");
}

/* slurmstepd waits for any child and may get this one before us. */
static void test_reaped(void)
{
    signal(SIGCHLD, SIG_IGN); /* the kernel waits */
    prints("the kernel has already reaped it", "echo x", "x\n");
    fails("also when it hangs", "sleep 1000", 200, DT_ERR_TIMED_OUT,
          "did not end");
    signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
    int fd = mkstemp(script);
    if (fd < 0)
        return skip_all("no file in /tmp can be made");
    close(fd);
    if (open("/dev/null", O_RDONLY) < 0) /* one to be inherited */
        return 1;
    setenv("DT_SECRET", "x", 1);
    test_output();
    test_failures();
    test_reaped();
    unlink(script);
    return tap_done();
}
