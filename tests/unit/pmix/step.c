/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* step.c - the configuration of a step that the plugin sends to dt-pmixd. */
#include "daemon/step.h"

#include <stdio.h>
#include <string.h>

#include "../tap.h"

static const char good[] =
    "version 1\njob 17\nstep 0\nnode 2\nnodes 4\nname n2\n"
    "local 9,4-5\nranks 12\nmeet 10.0.0.1,login 4711\n"
    "directory /tmp/dt-pmix.17.0-1\nheartbeat 30\n"
    "limit 60\nauth munge\ncommand ./a.out -x 1\n"
    "hold-own 1\nhold-shared 2\ntogether 1\nlisten 60\nelastic 3\nports "
    "12000-12003\n";

static dt_result_t read_text(const char *text, struct dt_step *step,
                             struct dt_error *err)
{
    err->text[0] = '\0';
    return dt_step_read(text, strlen(text), step, err);
}

static void test_good(void)
{
    struct dt_step step;
    struct dt_error err;
    dt_result_t rc = read_text(good, &step, &err);
    if (!ok(rc == DT_SUCCESS, "a step is read")) {
        diag("%s", err.text);
        return;
    }
    ok(step.job == 17 && step.step == 0 && step.node == 2 && step.nodes == 4 &&
           step.ranks == 12 && step.heartbeat == 30 && step.limit == 60,
       "its numbers");
    ok(step.nlocal == 3 && step.local[0] == 4 && step.local[1] == 5 &&
           step.local[2] == 9,
       "its ranks here, in rising order");
    ok(!strcmp(step.hosts, "10.0.0.1,login") && step.port == 4711 &&
           !strcmp(step.name, "n2") && !step.munge && !step.srun &&
           !strcmp(step.command, "./a.out -x 1"),
       "its strings");
    ok(step.hold_own == 1 && step.hold_shared == 2 && step.together &&
           step.listen == 60 && step.elastic == 3 &&
           !strcmp(step.ports, "12000-12003"),
       "its ports, and that its ranks end together");

    struct dt_step_event event;
    ok(dt_step_read_event(&step, "started 5 77", 12, &event, &err) ==
               DT_SUCCESS &&
           !event.ended && event.rank == 1 && event.number == 77,
       "a rank has started");
    ok(dt_step_read_event(&step, "ended 9 137", 11, &event, &err) ==
               DT_SUCCESS &&
           event.ended && event.rank == 2 && event.number == 137,
       "a rank has ended");
    const char *bad[] = {"",           "ended",
                         "ended 9",    "ended 8 1",
                         "ended 9 1x", "started -1 1",
                         "paused 9 1", "ended 99999999999999999999 1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok(dt_step_read_event(&step, bad[i], strlen(bad[i]), &event, &err) ==
               DT_ERR_INVALID_ARG,
           "\"%s\" is no event", bad[i]);
    dt_step_free(&step);
}

/* The good text with one line replaced. */
static void refuses(const char *key, const char *line, dt_result_t wanted)
{
    char text[1024] = "";
    struct dt_step step;
    struct dt_error err;
    for (const char *at = good; *at;) {
        size_t length = strcspn(at, "\n") + 1;
        if (strncmp(at, key, strlen(key)) || at[strlen(key)] != ' ')
            strncat(text, at, length);
        else
            strcat(text, line);
        at += length;
    }
    dt_result_t rc = read_text(text, &step, &err);
    if (!ok(rc == wanted && *err.text, "refused: %s %.*s", key,
            (int)strcspn(line, "\n"), line))
        diag("%d %s", rc, err.text);
    if (rc == DT_SUCCESS)
        dt_step_free(&step);
}

/* Any line of the good text, once more at its end. */
static void test_twice(void)
{
    char text[1024];
    for (const char *at = good; *at;) {
        struct dt_step step;
        struct dt_error err;
        int length = (int)strcspn(at, "\n") + 1;
        snprintf(text, sizeof(text), "%s%.*s", good, length, at);
        dt_result_t rc = read_text(text, &step, &err);
        ok(rc == DT_ERR_INVALID_ARG, "refused: twice %.*s", length - 1, at);
        if (rc == DT_SUCCESS)
            dt_step_free(&step);
        at += length;
    }
}

/* What follows a NUL is not read, and may be anything. */
static void test_nul(void)
{
    struct dt_step step;
    struct dt_error err;
    dt_result_t rc = dt_step_read(good, sizeof(good), &step, &err);
    ok(rc == DT_ERR_INVALID_ARG, "refused: a NUL");
    if (rc == DT_SUCCESS)
        dt_step_free(&step);
}

int main(void)
{
    test_good();
    const char *keys[] = {"version", "nodes",     "name",      "local", "ranks",
                          "meet",    "directory", "heartbeat", "limit", "auth"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        refuses(keys[i], "", i ? DT_ERR_INVALID_ARG : DT_ERR_VERSION);
    refuses("version", "version 2\n", DT_ERR_VERSION);
    refuses("node", "node 4\n", DT_ERR_INVALID_ARG);
    refuses("nodes", "nodes 0\n", DT_ERR_INVALID_ARG);
    refuses("nodes", "nodes 4x\n", DT_ERR_INVALID_ARG);
    refuses("nodes", "nodes 99999999999\n", DT_ERR_INVALID_ARG);
    refuses("local", "local 4-\n", DT_ERR_INVALID_ARG);
    refuses("local", "local 5-4\n", DT_ERR_INVALID_ARG);
    refuses("local", "local 4,4\n", DT_ERR_INVALID_ARG);
    refuses("local", "local 12\n", DT_ERR_INVALID_ARG);
    refuses("local", "local 0-4000000000\n", DT_ERR_INVALID_ARG);
    refuses("local", "local 1,\n", DT_ERR_INVALID_ARG);
    refuses("meet", "meet 4711\n", DT_ERR_INVALID_ARG);
    refuses("meet", "meet host 65536\n", DT_ERR_INVALID_ARG);
    refuses("elastic", "elastic 0\n", DT_ERR_INVALID_ARG);
    refuses("elastic", "elastic 13\n", DT_ERR_INVALID_ARG);
    refuses("auth", "auth \n", DT_ERR_INVALID_ARG);
    refuses("command", "colour red\n", DT_ERR_INVALID_ARG);
    refuses("command", "nothing\n", DT_ERR_INVALID_ARG);
    refuses("command", "command a\tb\n", DT_ERR_INVALID_ARG);
    refuses("command", "command \033[2J\n", DT_ERR_INVALID_ARG);
    refuses("meet", "meet a 1\nauth munge 4711\n", DT_ERR_INVALID_ARG);
    refuses("meet", "meet a b 4711\n", DT_ERR_INVALID_ARG);
    refuses("meet", "meet a;b 4711\n", DT_ERR_INVALID_ARG);
    refuses("command", "srun a b\n", DT_ERR_INVALID_ARG);
    test_twice();
    test_nul();
    return tap_done();
}
