/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requeue.c - dt-requeue: what decides, what it counts, the requeue record. */
#include "counts.h"
#include "decide.h"
#include "jobfile.h"
#include "slurm.h"

#include "base/jobfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"

#define EXITED(code) ((code) << 8)
enum { KILLED = 15, NOT = -1 };

/* ---- the decision ---- */

static void decides(const char *name, struct end end, int wanted)
{
    enum cause cause = NCAUSES;
    bool again = decide_cause(&end, &cause);
    if (!ok(wanted == NOT ? !again : again && (int)cause == wanted, "%s", name))
        diag("got %d, cause %d", again, (int)cause);
}

static void test_decide(void)
{
    static const struct {
        const char *name;
        enum job_state state;
        bool preempting;
        int never, asked, well, badly;
    } row[] = {
        {"running", STATE_RUNNING, false, NOT, CAUSE_ASKED, NOT, CAUSE_ERROR},
        {"preempted", STATE_RUNNING, true, NOT, CAUSE_PREEMPT, NOT,
         CAUSE_PREEMPT},
        {"timed out", STATE_TIMEOUT, false, NOT, CAUSE_TIMEOUT, NOT,
         CAUSE_TIMEOUT},
        {"node failed", STATE_NODE_FAIL, false, NOT, CAUSE_NODEFAIL, NOT,
         CAUSE_NODEFAIL},
        {"cancelled", STATE_CANCELLED, false, NOT, NOT, NOT, NOT},
        {"cancelled in grace", STATE_CANCELLED, true, NOT, NOT, NOT, NOT},
    };
    char name[64];
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const int status[] = {EXITED(93), EXITED(75), 0, EXITED(1), KILLED};
        const int wanted[] = {row[i].never, row[i].asked, row[i].well,
                              row[i].badly, row[i].badly};
        for (size_t j = 0; j < 5; j++) {
            struct end end = {.state = row[i].state,
                              .preempting = row[i].preempting,
                              .status = status[j],
                              .option = true};
            snprintf(name, sizeof(name), "%s, status %d", row[i].name,
                     status[j]);
            decides(name, end, wanted[j]);
            end.option = false;
            snprintf(name, sizeof(name), "%s, status %d, not wanted",
                     row[i].name, status[j]);
            decides(name, end, NOT);
        }
    }
    struct end end = {.asked = true, .option = true};
    decides("a step asked, the script ended well", end, CAUSE_ASKED);
    end.refused = true;
    decides("a step refused", end, NOT);
    end = (struct end){.by_hand = true, .status = 0};
    decides("notified by dt-requeue", end, CAUSE_HAND);
    end.state = STATE_CANCELLED;
    decides("notified by dt-requeue, and cancelled", end, NOT);
}

static void test_caps(void)
{
    const struct caps caps = {3, {3, 2, 3, 3, 1, 3}};
    struct counts counts = {.on = ""};
    unsigned cap = 0;
    ok(decide_allows(&caps, &counts, 0, CAUSE_PREEMPT, &cap), "the first");
    counts.n[CAUSE_PREEMPT] = 2;
    ok(!decide_allows(&caps, &counts, 2, CAUSE_PREEMPT, &cap) && cap == 2,
       "as often as one cause allows");
    ok(decide_allows(&caps, &counts, 2, CAUSE_TIMEOUT, &cap), "another cause");
    counts.n[CAUSE_ASKED] = 1;
    ok(!decide_allows(&caps, &counts, 3, CAUSE_TIMEOUT, &cap) && cap == 3,
       "as often as all allow");
    ok(decide_allows(&caps, &counts, 3, CAUSE_HAND, &cap), "by hand always");
    counts = (struct counts){.on = ""};
    ok(!decide_allows(&caps, &counts, 3, CAUSE_TIMEOUT, &cap),
       "where the counts are lost, Slurm's own counts");
    counts.n[CAUSE_HAND] = 3;
    ok(decide_allows(&caps, &counts, 3, CAUSE_TIMEOUT, &cap),
       "what was done by hand is free");
}

static void test_delay(void)
{
    struct counts counts = {.on = ""};
    static const unsigned wanted[] = {0, 0, 10, 20, 40, 80, 160, 320, 600, 600};
    bool right = true;
    for (unsigned i = 0; i < 10; i++) {
        counts.n[CAUSE_ERROR] = i;
        right = right && decide_delay(&counts, CAUSE_ERROR) == wanted[i] &&
                decide_delay(&counts, CAUSE_PREEMPT) == 0;
    }
    ok(right, "errors wait longer each time, others do not");
}

/* ---- the counts ---- */

static void survives(const char *comment, const char *wanted)
{
    struct counts counts, again;
    char text[COMMENT];
    counts_read(comment, &counts);
    counts_write(&counts, comment, text);
    counts_read(text, &again);
    if (!ok(!strcmp(text, wanted) && !memcmp(&counts, &again, sizeof(counts)),
            "comment \"%.40s\"", comment))
        diag("got \"%s\"", text);
}

static void test_counts(void)
{
    survives("", "");
    survives("mine", "mine");
    survives("my own text", "my own text");
    survives("a dt-requeue:", "a");
    survives("dt-requeue:asked=2,hand=1", "dt-requeue:asked=2,hand=1");
    survives("a dt-requeue:preempt=1,on=n[0-1,3],x b c",
             "a b c dt-requeue:preempt=1,on=n[0-1,3],x");
    survives("not-dt-requeue:asked=2", "not-dt-requeue:asked=2");
    survives("dt-requeue:bad=n3*2,bad=n4*1,on=n0",
             "dt-requeue:bad=n3*2,bad=n4*1,on=n0");
    survives("dt-requeue:,,x,asked,asked=,=3,bad=,bad=*,bad=*2,nodefail=1",
             "dt-requeue:nodefail=1");

    struct counts counts;
    char list[64];
    counts_read("dt-requeue:asked=2,error=1,bad=n3*1", &counts);
    counts_failed(&counts, "n3");
    counts_failed(&counts, "n4");
    counts_bad_nodes(&counts, list, sizeof(list));
    ok(counts_all(&counts) == 3 && !strcmp(list, "n3"),
       "a node that failed twice is known");
    counts_failed(&counts, "n4");
    counts_bad_nodes(&counts, list, sizeof(list));
    ok(!strcmp(list, "n3,n4"), "two of them");
    for (int i = 0; i < 100; i++) {
        char node[16];
        snprintf(node, sizeof(node), "x%d", i);
        counts_failed(&counts, node);
    }
    ok(counts.nbad == MAX_BAD, "and no more than there is room for");

    char endless[8192], text[COMMENT];
    memset(endless, 'x', sizeof(endless));
    endless[sizeof(endless) - 1] = '\0';
    counts_write(&counts, endless, text);
    ok(strstr(text, " dt-requeue:asked=2") != NULL, "a long comment is cut");
    memcpy(endless, "dt-requeue:asked=1,on=", 22);
    counts_read(endless, &counts);
    ok(counts.n[CAUSE_ASKED] == 1 && !*counts.on,
       "a list of nodes that is too long is none");
}

/* ---- the requeue record ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static void test_record(void)
{
    char folder[DT_JOBFILE_PATH], prefix[DT_JOBFILE_NAME], number[16];
    char path[1200], other[1200];
    struct record record;
    DIR *opened = dt_jobfile_folder(geteuid(), folder);
    if (!opened)
        abort();
    closedir(opened);
    snprintf(number, sizeof(number), "test-%d", (int)getpid());
    dt_jobfile_prefix(prefix, DT_JOBFILE_RECORD, number, "n0", "c");
    snprintf(path, sizeof(path), "%s/%s1", folder, prefix);
    snprintf(other, sizeof(other), "%s/%s2", folder, prefix);
    write_file(path, "option 1,2,3,4,5\nbegin\n75\nnonsense\n");
    jobfile_take_record(prefix, &record);
    ok(record.option && record.caps.cause[CAUSE_ERROR] == 5 && record.asked &&
           !record.refused && access(path, F_OK) != 0,
       "a step asks, and its record is removed");
    write_file(path, "begin\n75\n93\nbegin\nhand 1 at noon\noption 1,2,3\n");
    jobfile_take_record(prefix, &record);
    ok(!record.option && !record.asked && !record.refused && record.by_hand &&
           record.hold && !strcmp(record.reason, "at noon"),
       "the last step counts; the request of dt-requeue");
    write_file(path, "begin\nterminated\n");
    jobfile_take_record(prefix, &record);
    ok(record.terminated && !record.asked, "SIGTERM ended a task");
    write_file(path, "begin\nterminated\nbegin\n");
    jobfile_take_record(prefix, &record);
    ok(!record.terminated, "of the last step");
    write_file(path, "begin\n75\n");
    write_file(other, "begin\n93\n");
    jobfile_take_record(prefix, &record);
    ok(record.asked && record.refused && access(path, F_OK) != 0 &&
           access(other, F_OK) != 0,
       "two records are read both, and removed");
    dt_jobfile_prefix(prefix, DT_JOBFILE_RECORD, number, "n0", "d");
    write_file(other, "75\n");
    snprintf(path, sizeof(path), "%s/%s1", folder, prefix);
    if (symlink(other, path) != 0)
        abort();
    jobfile_take_record(prefix, &record);
    ok(!record.asked, "a link is not followed, another cluster's is not read");
    unlink(path);
    if (link(other, path) != 0)
        abort();
    jobfile_take_record(prefix, &record);
    ok(!record.asked, "a file with another name is not read");
    unlink(path);
    if (mkfifo(path, 0600) != 0)
        abort();
    jobfile_take_record(prefix, &record);
    ok(!record.asked, "nor a pipe");
    unlink(path);
    unlink(other);
    struct caps cap;
    ok(decide_parse_caps("1,2,3,4,5", &cap) &&
           !decide_parse_caps("1,2,3,4", &cap) &&
           !decide_parse_caps("1,2,3,4,5x", &cap) &&
           !decide_parse_caps("-", &cap),
       "caps");
}

/* ---- the start ---- */

static void test_start(void)
{
    char soon[START_ITEM], later[START_ITEM];
    slurm_start(0, soon);
    slurm_start(30, later);
    ok(!strcmp(soon, "StartTime=now+2"), "not in the second of the end");
    ok(!strcmp(later, "StartTime=now+30"), "after the delay");
}

/* ---- a command of Slurm ---- */

/* The command, and what is printed of it or why there is none. */
static void runs(const char *name, const char *script, int wanted,
                 const char *says)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    static char out[OUTPUT];
    char why[WHY];
    int rc = slurm_run(argv, deadline_in(2), false, out, why);
    if (!ok(rc == wanted && strstr(rc < 0 ? why : out, says), "%s", name))
        diag("got %d: %s%s", rc, out, why);
}

static void test_commands(void)
{
    alarm(60);
    runs("a command and its status", "echo said; exit 3", 3, "said");
    runs("a command that prints nothing is not waited for", "exec sleep 600",
         -1, "sh did not answer in time");
    runs("nor one that closes its output and goes on",
         "echo said; exec sleep 600 >&- 2>&-", -1, "did not answer in time");
    runs("a command that is killed", "kill -KILL $$", -1, "sh was killed");
    alarm(0);
}

int main(void)
{
    test_commands();
    test_decide();
    test_caps();
    test_delay();
    test_counts();
    test_record();
    test_start();
    return tap_done();
}
