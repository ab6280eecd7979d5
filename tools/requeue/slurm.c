/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* slurm.c - run Slurm's commands and parse their output. */
#include "slurm.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"

enum { LONGEST_PAUSE_MS = 5000, FIRST_PAUSE_MS = 200, START_GAP = 2 };
enum { MIXED_PAUSE_MS = 1600 };
enum { KILL_LIMIT = 2 }; /* seconds */

deadline_t deadline_in(int seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + seconds;
}

static int ms_left(deadline_t deadline)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long left = (deadline - now.tv_sec) * 1000LL - now.tv_nsec / 1000000;
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

bool slurm_is_job(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (!digits || digits > 10 || (*rest && *rest != '_'))
        return false;
    if (!*rest)
        return true;
    size_t element = strspn(rest + 1, "0123456789");
    return element && element <= 10 && !rest[1 + element];
}

/* ---- one command ---- */

static pid_t start(const char *const argv[], bool both, int *out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(both ? ends[1] : null, STDERR_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(ends[1]);
    if (pid < 0)
        close(ends[0]);
    *out = ends[0];
    return pid;
}

/* Read until end of file; false: the deadline passed. */
static bool read_all(int fd, deadline_t deadline, char out[OUTPUT])
{
    char rest[4096];
    size_t size = 0;
    for (;;) {
        struct pollfd ready = {fd, POLLIN, 0};
        if (poll(&ready, 1, ms_left(deadline)) <= 0)
            return false;
        bool room = size < OUTPUT - 1;
        ssize_t n = read(fd, room ? out + size : rest,
                         room ? OUTPUT - 1 - size : sizeof(rest));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return true;
        size += room ? (size_t)n : 0;
        out[size] = '\0';
    }
}

/* Its end; false: the deadline passed. */
static bool reap(pid_t pid, deadline_t deadline, int *status)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (pid_t got; (got = waitpid(pid, status, WNOHANG)) != pid;) {
        if (got < 0 && errno != EINTR)
            return true; /* whoever started this does not want to know */
        if (!ms_left(deadline))
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

int slurm_run(const char *const argv[], deadline_t deadline, bool both,
              char out[OUTPUT], char why[WHY])
{
    int fd = -1, status = -1;
    out[0] = why[0] = '\0';
    pid_t pid = start(argv, both, &fd);
    if (pid < 0) {
        snprintf(why, WHY, "%s: %s", argv[0], strerror(errno));
        return -1;
    }
    bool ended = read_all(fd, deadline, out) && reap(pid, deadline, &status);
    close(fd);
    if (!ended) {
        kill(pid, SIGKILL);
        reap(pid, deadline_in(KILL_LIMIT), &status); /* or it hangs in a disk */
    }
    if (!ended)
        snprintf(why, WHY, "%s did not answer in time", argv[0]);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        snprintf(why, WHY, "%s cannot be run: is it in PATH?", argv[0]);
    else if (WIFEXITED(status))
        return WEXITSTATUS(status);
    else
        snprintf(why, WHY, "%s was killed", argv[0]);
    return -1;
}

/* ---- one command until slurmctld answers ---- */

/* Is it an answer of slurmctld? Else it was not reached. */
static bool is_final(const char *out)
{
    static const char *const lost[] = {"contact slurm controller",
                                       "timed out",
                                       "connect",
                                       "Connection",
                                       "Zero Bytes",
                                       "backup",
                                       "standby",
                                       "Transport",
                                       "Try again",
                                       "try again",
                                       "Communication",
                                       "controller is",
                                       "not responding",
                                       "Rate limit exceeded"};
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
        if (strstr(out, lost[i]))
            return false;
    return true;
}

/* The last line, from behind "error: ". */
static void last_error(const char *out, char why[WHY])
{
    size_t length = strlen(out);
    while (length && isspace((unsigned char)out[length - 1]))
        length--;
    size_t begin = length;
    while (begin && out[begin - 1] != '\n')
        begin--;
    const char *line = out + begin;
    const char *error = strstr(line, "error: ");
    if (error && error < out + length)
        line = error + strlen("error: ");
    snprintf(why, WHY, "%.*s", (int)(out + length - line), line);
}

static bool run_until_answered(const char *const argv[], deadline_t deadline,
                               char out[OUTPUT], char why[WHY])
{
    for (int pause = FIRST_PAUSE_MS;; pause *= 2) {
        int rc = slurm_run(argv, deadline, true, out, why);
        if (rc == 0)
            return true;
        if (rc > 0)
            last_error(out, why);
        if (rc < 0 || is_final(out))
            return false;
        if (pause > LONGEST_PAUSE_MS)
            pause = LONGEST_PAUSE_MS;
        if (ms_left(deadline) <= pause)
            return false;
        poll(NULL, 0, pause);
    }
}

/* ---- a job ---- */

/* What squeue prints of a job: each field has a width, whatever is in it, so
 * that no text of a user's is taken for another field. The only such text is
 * the comment. */
enum field {
    RAW,
    ARRAY,
    ELEMENT,
    STATE,
    REASON,
    PARTITION,
    NNODES,
    NODES,
    BATCH_HOST,
    RESTARTS,
    REQUEUE,
    BATCH,
    UID,
    OWNER,
    START,
    PREEMPT,
    OF_COMMENT,
    NFIELDS
};
static const struct {
    const char *name;
    int width;
} field[NFIELDS] = {
    [RAW] = {"JobID", 20},
    [ARRAY] = {"ArrayJobID", 20},
    [ELEMENT] = {"ArrayTaskID", 20},
    [STATE] = {"State", 30},
    [REASON] = {"Reason", 60},
    [PARTITION] = {"Partition", 250},
    [NNODES] = {"NumNodes", 12},
    [NODES] = {"NodeList", 4000},
    [BATCH_HOST] = {"BatchHost", 250},
    [RESTARTS] = {"RestartCnt", 12},
    [REQUEUE] = {"Requeue", 12},
    [BATCH] = {"BatchFlag", 12},
    [UID] = {"UserID", 12},
    [OWNER] = {"UserName", 250},
    [START] = {"StartTime", 20},
    [PREEMPT] = {"PreemptTime", 20},
    [OF_COMMENT] = {"Comment", 4000},
};

static size_t width_of_record(void)
{
    size_t width = 1; /* the end of the line */
    for (int i = 0; i < NFIELDS; i++)
        width += (size_t)field[i].width;
    return width;
}

/* Without the blanks behind it. */
static void get_field(const char *record, enum field which, char *value,
                      size_t size)
{
    for (int i = 0; i < (int)which; i++)
        record += field[i].width;
    int length = field[which].width;
    while (length && record[length - 1] == ' ')
        length--;
    snprintf(value, size, "%.*s", length, record);
}

static uint64_t get_number(const char *record, enum field which)
{
    char value[32];
    const char *at = value;
    uint64_t number = 0;
    get_field(record, which, value, sizeof(value));
    dt_number_scan(&at, 10, UINT32_MAX, &number); /* "N/A" is 0 */
    return number;
}

/* Slurm shows one state, and these instead of RUNNING: while a signal is under
 * way, as at the start of a grace time, after one that stops the steps, and
 * where a script ends just as the job is suspended. */
static bool is_running(const char *state)
{
    static const char *const running[] = {"RUNNING", "SIGNALING", "STOPPED",
                                          "SUSPENDED"};
    for (size_t i = 0; i < sizeof(running) / sizeof(running[0]); i++)
        if (!strcmp(state, running[i]))
            return true;
    return false;
}

static void read_job(const char *record, struct job *job)
{
    char array[24], element[24];
    memset(job, 0, sizeof(*job));
    get_field(record, RAW, job->raw, sizeof(job->raw));
    get_field(record, ARRAY, array, sizeof(array));
    get_field(record, ELEMENT, element, sizeof(element));
    snprintf(job->id, sizeof(job->id), "%s", job->raw);
    if (isdigit((unsigned char)*element) || *element == '[')
        snprintf(job->id, sizeof(job->id), "%s_%s", array, element);
    get_field(record, STATE, job->state, sizeof(job->state));
    get_field(record, REASON, job->why, sizeof(job->why));
    get_field(record, PARTITION, job->partition, sizeof(job->partition));
    get_field(record, NNODES, job->nnodes, sizeof(job->nnodes));
    get_field(record, NODES, job->nodes, sizeof(job->nodes));
    get_field(record, BATCH_HOST, job->batch_host, sizeof(job->batch_host));
    get_field(record, OWNER, job->owner, sizeof(job->owner));
    get_field(record, OF_COMMENT, job->comment, sizeof(job->comment));
    if (!strcmp(job->comment, "(null)")) /* it has none */
        job->comment[0] = '\0';
    job->uid = (unsigned)get_number(record, UID);
    job->restarts = (unsigned)get_number(record, RESTARTS);
    job->running = is_running(job->state);
    job->requeue = get_number(record, REQUEUE) == 1;
    job->batch = (unsigned)get_number(record, BATCH);
    uint64_t preempted = get_number(record, PREEMPT);
    /* this run, not an older one */
    job->preempting = preempted && preempted >= get_number(record, START);
}

/* The user's variables choose jobs and the format of times for squeue. */
static void clear_variables(void)
{
    for (char **at = environ; *at;) {
        char name[64];
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, "SQUEUE_", 7) != 0 || length >= sizeof(name)) {
            at++;
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)length, *at);
        unsetenv(name);
        at = environ;
    }
    setenv("SLURM_TIME_FORMAT", "%s", 1);
}

/* Nothing but records; the last one may be cut. */
static bool are_records(const char *out)
{
    size_t length = strlen(out), width = width_of_record();
    return length >= width && out[width - 1] == '\n' &&
           (length % width == 0 || length == OUTPUT - 1);
}

bool slurm_job(const char *id, deadline_t deadline, struct job *job,
               char why[WHY])
{
    char format[512];
    const char *const argv[] = {"squeue", "--noheader", "--all", "--states",
                                "all",    "--jobs",     id,      "--Format",
                                format,   NULL};
    size_t at = 0;
    char *out = malloc(OUTPUT);
    for (int i = 0; i < NFIELDS; i++)
        at += (size_t)snprintf(format + at, sizeof(format) - at, "%s%s:%d",
                               i ? "," : "", field[i].name, field[i].width);
    clear_variables();
    if (!out)
        snprintf(why, WHY, "no memory");
    bool done = out && run_until_answered(argv, deadline, out, why);
    /* as with a warning before it */
    if (done && !are_records(out))
        done = slurm_run(argv, deadline, false, out, why) == 0;
    if (done && !are_records(out)) {
        snprintf(why, WHY, "squeue does not show job %s", id);
        done = false;
    }
    if (done) {
        read_job(out, job);
        job->several = strlen(out) > width_of_record();
    }
    free(out);
    return done;
}

bool slurm_excluded(const char *id, deadline_t deadline, char *list,
                    size_t size)
{
    const char *const argv[] = {"squeue", "--noheader", "--all", "--jobs",
                                id,       "--format",   "%x",    NULL};
    char why[WHY];
    char *out = malloc(OUTPUT);
    clear_variables();
    bool done = out && slurm_run(argv, deadline, false, out, why) == 0 &&
                strcspn(out, "\n") < size;
    if (done)
        snprintf(list, size, "%.*s", (int)strcspn(out, "\n"), out);
    free(out);
    return done;
}

bool slurm_update(const char *id, const char *const item[], deadline_t deadline,
                  char why[WHY])
{
    char job[80];
    const char *argv[8] = {"scontrol", "update", job};
    char *out = malloc(OUTPUT);
    snprintf(job, sizeof(job), "JobId=%s", id);
    for (size_t i = 0; i < 4 && item[i]; i++)
        argv[3 + i] = item[i];
    bool done = out && run_until_answered(argv, deadline, out, why);
    free(out);
    return done;
}

void slurm_start(unsigned delay, char item[START_ITEM])
{
    snprintf(item, START_ITEM, "StartTime=now+%u",
             delay < START_GAP ? START_GAP : delay);
}

bool slurm_requeue(const char *verb, const char *id, deadline_t deadline,
                   char why[WHY])
{
    const char *const argv[] = {"scontrol", verb, id, NULL};
    char *out = malloc(OUTPUT);
    bool done = out && run_until_answered(argv, deadline, out, why);
    if (!done && out && strstr(out, "is pending"))
        done = true;
    free(out);
    return done;
}

/* Of a line "node state reason", behind the node. */
static bool is_down(const char *state)
{
    size_t length = strcspn(state, " \n");
    return !strncmp(state, "down", 4) || (length && state[length - 1] == '*');
}

/* sinfo shows a node as mixed while it believes that some of its CPUs are
 * allocated, for a moment also where it has just gone down; it has a reason
 * then. So has a node that works, where an administrator has noted something.
 */
static bool has_mixed(const char *out)
{
    for (const char *at = out; *at; at += strcspn(at, "\n")) {
        at += *at == '\n';
        const char *state = at + strcspn(at, " \n");
        if (!strncmp(state, " mix ", 5) && strncmp(state, " mix none\n", 10))
            return true;
    }
    return false;
}

/* The lines of sinfo, when no node may be about to be shown as down. */
static bool list_nodes(const char *const argv[], deadline_t deadline,
                       char out[OUTPUT])
{
    char why[WHY];
    for (int pause = FIRST_PAUSE_MS;; pause *= 2) {
        if (!run_until_answered(argv, deadline, out, why))
            return false;
        if (!has_mixed(out) || pause > MIXED_PAUSE_MS ||
            ms_left(deadline) <= pause)
            return true;
        poll(NULL, 0, pause);
    }
}

void slurm_down(const char *list, deadline_t deadline,
                void (*each)(const char *node, void *data), void *data)
{
    const char *const argv[] = {"sinfo", "-h", "-N",       "-n",
                                list,    "-o", "%N %t %E", NULL};
    char last[256] = "";
    char *out = malloc(OUTPUT);
    char *at = out && list_nodes(argv, deadline, out) ? out : NULL;
    while (at && *at) { /* a line per node and partition */
        char node[256];
        size_t length = strcspn(at, "\n"), name = strcspn(at, " \n");
        bool down = name < length && is_down(at + name + 1);
        snprintf(node, sizeof(node), "%.*s", (int)name, at);
        if (down && strcmp(node, last) != 0)
            each(node, data);
        snprintf(last, sizeof(last), "%s", node);
        at += length + (at[length] == '\n');
    }
    free(out);
}

/* The value of key in the output of scontrol. */
static bool get(const char *text, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);
    for (const char *at = text; (at = strstr(at, key)) != NULL; at++) {
        if ((at != text && at[-1] != ' ' && at[-1] != '\n') ||
            at[length] != '=')
            continue;
        at += length + 1;
        snprintf(value, size, "%.*s", (int)strcspn(at, " \n"), at);
        return true;
    }
    *value = '\0';
    return false;
}

bool slurm_preempts(const char *partition, deadline_t deadline)
{
    const char *const argv[] = {"scontrol", "show", "partition", partition,
                                NULL};
    char mode[32] = "", why[WHY];
    char *out = malloc(OUTPUT);
    if (out && run_until_answered(argv, deadline, out, why))
        get(out, "PreemptMode", mode, sizeof(mode));
    free(out);
    return strstr(mode, "REQUEUE") != NULL;
}

/* A line of scontrol show config. */
static bool get_setting(const char *key, deadline_t deadline, char *value,
                        size_t size, char why[WHY])
{
    const char *const argv[] = {"scontrol", "show", "config", NULL};
    char line[64];
    char *out = malloc(OUTPUT);
    bool done = out && run_until_answered(argv, deadline, out, why);
    snprintf(line, sizeof(line), "\n%s ", key);
    const char *at = done ? strstr(out, line) : NULL;
    at = at ? strstr(at, "= ") : NULL;
    if (at)
        snprintf(value, size, "%.*s", (int)strcspn(at + 2, " \n"), at + 2);
    else if (done)
        snprintf(why, WHY, "scontrol show config has no line %s", key);
    free(out);
    return at != NULL;
}

bool slurm_grace_requeues(const struct job *job, deadline_t deadline)
{
    char value[64], why[WHY];
    int64_t most;
    return get_setting("PreemptType", deadline, value, sizeof(value), why) &&
           !strcmp(value, "preempt/partition_prio") &&
           get_setting("MaxBatchRequeue", deadline, value, sizeof(value),
                       why) &&
           dt_number_parse(value, 0, UINT32_MAX, &most) && job->batch < most &&
           slurm_preempts(job->partition, deadline);
}

bool slurm_requeues(deadline_t deadline)
{
    char value[16], why[WHY];
    return get_setting("JobRequeue", deadline, value, sizeof(value), why) &&
           *value == '1';
}

bool slurm_cluster(deadline_t deadline, char name[64], char why[WHY])
{
    return get_setting("ClusterName", deadline, name, 64, why);
}

long long slurm_end(const char *id, deadline_t deadline)
{
    const char *const argv[] = {"squeue", "-h", "-j", id, "-o", "%e", NULL};
    char why[WHY];
    int64_t end = 0;
    char *out = malloc(OUTPUT);
    clear_variables();
    if (out && slurm_run(argv, deadline, false, out, why) == 0) {
        out[strcspn(out, "\n")] = '\0';
        dt_number_parse(out, 0, INT64_MAX, &end); /* "N/A" is 0 */
    }
    free(out);
    return end;
}
