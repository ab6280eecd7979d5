/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - dt-requeue: requeue a job. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "common/streams.h"
#include "jobfile.h"
#include "requeue.h"
#include "slurm.h"

const char program[] = "dt-requeue";

static void print_help(void)
{
    puts("Usage: dt-requeue [OPTION...] [JOB]\n"
         "\n"
         "Requeue a job: notify it, so that it saves its state and leaves; "
         "Slurm\n"
         "runs it again. JOB is a number, or 123_4 for an element of "
         "an\n"
         "array; inside a job, its own if there is none.\n"
         "\n"
         "  --now          at once, without notifying the job\n"
         "  --hold         and hold it there: scontrol release lets it go\n"
         "  --reason WHY   a text for the job and its log\n"
         "  --help         this text\n"
         "  --version      the version");
}

static int misuse(const char *what, const char *which)
{
    note(stderr, "%s%s; see dt-requeue --help", what, which);
    return DT_EXIT_USAGE;
}

/* The job this runs in; NULL: none. */
static const char *own_job(char text[64])
{
    const char *array = getenv("SLURM_ARRAY_JOB_ID");
    const char *element = getenv("SLURM_ARRAY_TASK_ID");
    if (!array || !element)
        return getenv("SLURM_JOB_ID");
    snprintf(text, 64, "%s_%s", array, element);
    return text;
}

/* The commands of the plugin. */
static const struct {
    const char *name;
    int args;
    int (*run)(char *const argv[]);
    bool signals; /* it handles those that Slurm sends */
} commands[] = {{"_started", 3, requeue_started, false},
                {"_ended", 7, requeue_ended, false},
                {"_notify", 4, requeue_notify, false},
                {"_watch", 1, requeue_watch, true},
                {"_end", 1, requeue_end, false}};

/* Slurm sends SIGTERM to all processes of the job, and this one has to finish.
 * The plugin has blocked the signals until here. */
static void ignore_signals(void)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_UNBLOCK, &held, NULL);
}

static int parse(int argc, char *argv[], struct by_hand *hand)
{
    static const struct option options[] = {
        {"now", no_argument, NULL, 'n'},
        {"hold", no_argument, NULL, 'H'},
        {"reason", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;)
        switch (c) {
        case 'n':
            hand->now = true;
            break;
        case 'H':
            hand->hold = true;
            break;
        case 'r':
            hand->reason = optarg;
            break;
        case 'h':
            print_help();
            exit(0);
        case 'V':
            puts("dt-requeue " PACKAGE_VERSION);
            exit(0);
        case ':':
            return misuse("a value is missing: ", argv[optind - 1]);
        default:
            return misuse("unknown option: ", argv[optind - 1]);
        }
    return 0;
}

int main(int argc, char *argv[])
{
    struct by_hand hand = {.job = NULL};
    char own[64];
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]);
         i++)
        if (!strcmp(argv[1], commands[i].name) &&
            argc == 2 + commands[i].args) {
            if (!commands[i].signals)
                ignore_signals();
            return commands[i].run(argv + 2);
        }
    int rc = parse(argc, argv, &hand);
    if (rc)
        return rc;
    if (argc - optind > 1)
        return misuse("one job, not more: ", argv[optind + 1]);
    hand.job = optind < argc ? argv[optind] : own_job(own);
    if (!hand.job)
        return misuse("which job? There is none around this", "");
    if (!slurm_is_job(hand.job))
        return misuse("a job is a number, or 123_4 for an element of an "
                      "array, not ",
                      hand.job);
    if (hand.reason &&
        (strlen(hand.reason) >= REASON - 16 || strpbrk(hand.reason, "\n\r")))
        return misuse("--reason: one line, of at most 200 bytes", "");
    if (hand.now && hand.reason)
        return misuse("--now does not notify the job: leave --reason out", "");
    return requeue_by_hand(&hand);
}
