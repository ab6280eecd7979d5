/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - dt-doctor: why a job is slow, hung or bound wrong, and what to do.
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "common/streams.h"
#include "doctor.h"
#include "facts.h"

const char program[] = "dt-doctor";

enum { FOUND = 1, FAILED = 2 };   /* exit status */
enum { LIMIT = 120, ROOT = 256 }; /* seconds; an option */

struct request {
    const char *job, *root;
    bool node, json;
};

static void print_help(void)
{
    puts("Usage: dt-doctor [--node | -j JOB] [--json] [--root DIR]\n"
         "\n"
         "Say why a job is slow, hung or bound wrong, and how to mend it: look "
         "at\n"
         "Slurm's configuration, this machine and the variables of this "
         "process.\n"
         "\n"
         "  -j, --job JOB  look at this job: 123, or 123_4 for an element of "
         "an array\n"
         "  --node         for administrators: without the variables\n"
         "  --json         for programs\n"
         "  --root DIR     look at the files below DIR, copied from another "
         "machine\n"
         "  --help         this text\n"
         "  --version      the version\n"
         "\n"
         "Exit status: 0 nothing was found, 1 something, 2 failed, 64 wrong "
         "usage.");
}

static int misuse(const char *what, const char *which)
{
    note(stderr, "%s%s; see dt-doctor --help", what, which);
    return DT_EXIT_USAGE;
}

static int parse(int argc, char *argv[], struct request *request)
{
    static const struct option options[] = {
        {"job", required_argument, NULL, 'j'},
        {"node", no_argument, NULL, 'n'},
        {"json", no_argument, NULL, 'J'},
        {"root", required_argument, NULL, ROOT},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, ":j:", options, NULL)) != -1;)
        switch (c) {
        case 'j':
            request->job = optarg;
            break;
        case 'n':
            request->node = true;
            break;
        case 'J':
            request->json = true;
            break;
        case ROOT:
            request->root = optarg;
            break;
        case 'h':
            print_help();
            exit(0);
        case 'V':
            puts("dt-doctor " PACKAGE_VERSION);
            exit(0);
        case ':':
            return misuse("a value is missing: ", argv[optind - 1]);
        default:
            return misuse("unknown option: ", argv[optind - 1]);
        }
    if (optind < argc)
        return misuse("no argument is expected: ", argv[optind]);
    if (request->job && !slurm_is_job(request->job))
        return misuse("a job is a number, or 123_4 for an element of an "
                      "array, not ",
                      request->job);
    if (request->job && request->node)
        return misuse("either -j or --node", "");
    return 0;
}

/* Without the job there is nothing to look at. */
static bool job_is_known(const char *id)
{
    char why[WHY];
    struct job *job = malloc(sizeof(*job));
    bool known = job && slurm_job(id, deadline_in(COMMAND_SECONDS), job, why);
    if (job && !known)
        note(stderr, "job %s: %s", id, why);
    free(job);
    return known;
}

int main(int argc, char *argv[])
{
    struct request request = {.root = ""};
    streams_fill();
    int rc = parse(argc, argv, &request);
    if (rc)
        return rc;
    /* whatever hangs, as the /etc of a dead server, this ends it */
    signal(SIGALRM, SIG_DFL);
    alarm(LIMIT);
    if (request.job && !job_is_known(request.job))
        return FAILED;
    struct doctor doctor = {.root = request.root, .job = request.job};
    rules_run(&doctor, request.job    ? JOB
                       : request.node ? CLUSTER | NODE
                                      : CLUSTER | NODE | USER);
    if (request.json)
        rc = output_json(&doctor) ? 0 : FAILED;
    else
        output_text(&doctor);
    if (!streams_flush())
        rc = FAILED;
    if (rc == 0 && doctor.n_findings)
        rc = FOUND;
    doctor_free(&doctor);
    return rc;
}
