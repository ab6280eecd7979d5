/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.c - a small PMIx program, for dt-run.t:
 *
 *   pmix-client MODE
 *
 * Each mode tries one thing on all ranks and prints on standard error what was
 * wrong; the exit code is 1 then. */
#include "client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

pmix_proc_t self, everybody;
uint32_t size;
static int wrong;

void check(int rc, int wanted, const char *what, int line)
{
    if (rc == wanted)
        return;
    wrong = 1;
    fprintf(stderr, "rank %u, line %d: %s: %d (%s), wanted %d\n", self.rank,
            line, what, rc, PMIx_Error_string(rc), wanted);
}

pmix_proc_t proc_of(pmix_rank_t rank)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    return proc;
}

void put(const char *key, uint32_t number)
{
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, &number, PMIX_UINT32);
    OK(PMIx_Put(PMIX_GLOBAL, key, &value));
    OK(PMIx_Commit());
}

int get(pmix_rank_t rank, const char *key, uint32_t *number)
{
    pmix_proc_t proc = proc_of(rank);
    pmix_value_t *value = NULL;
    int rc = PMIx_Get(&proc, key, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        return rc;
    *number = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return rc;
}

int fence(const pmix_proc_t *procs, size_t count, bool data)
{
    pmix_info_t info[2];
    int seconds = LONG_S;
    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &data, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    return PMIx_Fence(procs, count, info, 2);
}

int fence_all(void)
{
    return fence(&everybody, 1, false);
}

void wait_for(atomic_int *counter, int count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < LONG_S * 1000 && atomic_load(counter) < count; i++)
        nanosleep(&pause, NULL);
    TRUE(atomic_load(counter) >= count);
}

int job_key(const pmix_proc_t *proc, const char *key, pmix_value_t *copy)
{
    pmix_value_t *value = NULL;
    int rc = PMIx_Get(proc, key, NULL, 0, &value);
    if (rc == PMIX_SUCCESS) {
        *copy = *value;
        if (value->type == PMIX_STRING)
            copy->data.string = strdup(value->data.string);
        PMIX_VALUE_RELEASE(value);
    }
    return rc;
}

/* Is it on our node? */
bool is_near(pmix_rank_t rank)
{
    pmix_value_t peers;
    bool near = false;
    if (job_key(&everybody, PMIX_LOCAL_PEERS, &peers) != PMIX_SUCCESS)
        return false;
    for (char *at = peers.data.string; *at; at += *at == ',')
        near |= strtoul(at, &at, 10) == rank;
    free(peers.data.string);
    return near;
}

/* --- modes --------------------------------------------------------------- */

static void hello(void)
{
    printf("rank %u of %u\n", self.rank, size);
}

static void modex(void)
{
    uint32_t number = 0;
    put("number", 100 + self.rank);
    OK(fence(&everybody, 1, true));
    for (pmix_rank_t r = 0; r < size; r++) {
        OK(get(r, "number", &number));
        TRUE(number == 100 + r);
    }
    put("second", 200 + self.rank);
    OK(fence(NULL, 0, true));
    OK(get((self.rank + 1) % size, "second", &number));
    TRUE(number == 200 + (self.rank + 1) % size);
}

static void direct(void)
{
    uint32_t number = 0;
    put("number", self.rank);
    OK(fence_all());
    for (pmix_rank_t r = 0; r < size; r++) {
        OK(get(r, "number", &number));
        TRUE(number == r);
    }
}

static void subset(void)
{
    pmix_proc_t pair[2] = {proc_of(0), proc_of(1)};
    uint32_t number = 0;
    put("number", self.rank);
    if (self.rank < 2) {
        OK(fence(pair, 2, true));
        OK(get(1 - self.rank, "number", &number));
        TRUE(number == 1 - self.rank);
    }
    OK(fence_all());
}

static atomic_int completed, completed_wrong;

static void fenced(pmix_status_t status, void *arg)
{
    (void)arg;
    atomic_fetch_add(&completed_wrong, status != PMIX_SUCCESS);
    atomic_fetch_add(&completed, 1);
}

/* Rank 0 is in a fence with each of the others at the same time. */
static void concurrent(void)
{
    pmix_proc_t pairs[64][2];
    for (pmix_rank_t r = 1; r < size && r < 64; r++) {
        pairs[r][0] = proc_of(0);
        pairs[r][1] = proc_of(r);
        if (self.rank == 0)
            OK(PMIx_Fence_nb(pairs[r], 2, NULL, 0, fenced, NULL));
        else if (self.rank == r)
            OK(fence(pairs[r], 2, false));
    }
    if (self.rank == 0)
        wait_for(&completed, (int)size - 1);
    TRUE(atomic_load(&completed_wrong) == 0);
    OK(fence_all());
}

static void keys(void)
{
    const char *const numbers[] = {PMIX_JOB_SIZE, PMIX_UNIV_SIZE,
                                   PMIX_MAX_PROCS, PMIX_LOCAL_SIZE,
                                   PMIX_NODE_SIZE};
    const char *const strings[] = {PMIX_JOBID, PMIX_TMPDIR,   PMIX_NSDIR,
                                   PMIX_WDIR,  PMIX_APP_ARGV, PMIX_NODE_LIST};
    const char *const ranks[] = {PMIX_GLOBAL_RANK, PMIX_APP_RANK};
    const char *const halves[] = {PMIX_LOCAL_RANK, PMIX_NODE_RANK};
    const char *const mine[] = {PMIX_PROCDIR, PMIX_HOSTNAME};
    pmix_value_t value;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        OK(job_key(&everybody, numbers[i], &value));
        TRUE(value.type == PMIX_UINT32 && value.data.uint32 == size);
    }
    for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++) {
        OK(job_key(&everybody, strings[i], &value));
        TRUE(value.type == PMIX_STRING && *value.data.string);
        free(value.data.string);
    }
    OK(job_key(&everybody, PMIX_NUM_NODES, &value));
    TRUE(value.data.uint32 == 1);
    OK(job_key(&everybody, PMIX_LOCALLDR, &value));
    TRUE(value.type == PMIX_PROC_RANK && value.data.rank == 0);
    OK(job_key(&everybody, PMIX_LOCAL_PEERS, &value));
    TRUE(strncmp(value.data.string, size > 1 ? "0,1" : "0", 3) == 0);
    free(value.data.string);
    for (pmix_rank_t r = 0; r < size; r++) {
        pmix_proc_t proc = proc_of(r);
        for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
            OK(job_key(&proc, ranks[i], &value));
            TRUE(value.type == PMIX_PROC_RANK && value.data.rank == r);
        }
        for (size_t i = 0; i < sizeof(halves) / sizeof(*halves); i++) {
            OK(job_key(&proc, halves[i], &value));
            TRUE(value.type == PMIX_UINT16 && value.data.uint16 == r);
        }
        OK(job_key(&proc, PMIX_APPNUM, &value));
        TRUE(value.data.uint32 == 0);
        OK(job_key(&proc, PMIX_NODEID, &value));
        TRUE(value.data.uint32 == 0);
    }
    for (size_t i = 0; i < sizeof(mine) / sizeof(*mine); i++) {
        OK(job_key(&self, mine[i], &value));
        if (strcmp(mine[i], PMIX_PROCDIR) == 0)
            TRUE(access(value.data.string, W_OK) == 0);
        free(value.data.string);
    }
}

/* --- the rest ------------------------------------------------------------ */

static void group(void)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    bool yes = true;
    pmix_proc_t all[64];
    for (pmix_rank_t r = 0; r < size; r++)
        all[r] = proc_of(r);
    size_t ids[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "second" : "first";
        PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
        OK(PMIx_Group_construct(name, all, size, &info, 1, &results,
                                &nresults));
        for (size_t n = 0; n < nresults; n++)
            if (strcmp(results[n].key, PMIX_GROUP_CONTEXT_ID) == 0)
                ids[i] = results[n].value.data.size;
        PMIX_INFO_FREE(results, nresults);
        OK(PMIx_Group_destruct(name, NULL, 0));
    }
    TRUE(ids[0] > 0 && ids[1] > ids[0]);
    put("context", (uint32_t)ids[0]);
    OK(fence(&everybody, 1, true));
    uint32_t number = 0;
    OK(get((self.rank + 1) % size, "context", &number));
    TRUE(number == ids[0]);
}

static void together(void)
{
    pmix_proc_t all[64];
    for (pmix_rank_t r = 0; r < size; r++)
        all[r] = proc_of(r);
    OK(PMIx_Connect(all, size, NULL, 0));
    OK(PMIx_Disconnect(all, size, NULL, 0));
}

static void others(void)
{
    pmix_app_t app;
    pmix_nspace_t nspace;
    pmix_query_t query;
    pmix_info_t *info = NULL;
    size_t ninfo = 0;
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("true");
    app.maxprocs = 1;
    IS(PMIx_Spawn(NULL, 0, &app, 1, nspace), PMIX_ERR_NOT_SUPPORTED);
    PMIX_APP_DESTRUCT(&app);
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(ninfo, query.keys, PMIX_QUERY_NAMESPACES);
    ninfo = 0;
    OK(PMIx_Query_info(&query, 1, &info, &ninfo));
    TRUE(ninfo == 1 && strcmp(info[0].value.data.string, self.nspace) == 0);
    PMIX_INFO_FREE(info, ninfo);
    PMIX_QUERY_DESTRUCT(&query);
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(ninfo, query.keys, PMIX_QUERY_QUEUE_LIST);
    IS(PMIx_Query_info(&query, 1, &info, &ninfo), PMIX_ERR_NOT_SUPPORTED);
    PMIX_QUERY_DESTRUCT(&query);
}

static void abort_job(void)
{
    OK(fence_all());
    if (self.rank == 2)
        PMIx_Abort(7, "enough is enough", NULL, 0);
    pause();
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {{"hello", hello},           {"modex", modex},
             {"direct", direct},         {"subset", subset},
             {"concurrent", concurrent}, {"keys", keys},
             {"board", board},           {"die", die},
             {"die-fence", die_fence},   {"leave", leave},
             {"finish", finish},         {"notify", notify},
             {"group", group},           {"together", together},
             {"others", others},         {"abort", abort_job},
             {"values", values},         {"local", local},
             {"events", events},         {"die-board", die_board},
             {"die-root", die_root},     {"rejoin", rejoin},
             {"heartbeat", heartbeat},   {"table", table},
             {"refusals", refusals},     {"cleanup", cleanup},
             {"terminate", terminate},   {"die-two", die_two},
             {"never", absent},          {"early", absent},
             {"connecting", absent},     {"orphan", orphan},
             {"meet", meet_all},         {"meet-die", meet_die},
             {"meet-dying", meet_dying}, {"meet-late", meet_late},
             {"meet-few", meet_few},     {"meet-finish", meet_finish}};

/* --- the end inside PMIx_Init --------------------------------------------- */

static bool dies_connecting;

/* Until the rank is gone the server, which is its parent, stands still. */
static void die_now(pid_t server)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    pid_t rank = getpid();
    if (fork() == 0) {
        close_range(0, ~0U, 0);
        while (getppid() == rank)
            nanosleep(&pause, NULL);
        kill(server, SIGCONT);
        _exit(0);
    }
    raise(SIGKILL);
}

/* For PMIx's library in this process: it sends who it is, by TCP, and then
 * waits for the answers of the server. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *data,
                                                    size_t len, int flags)
{
    struct sockaddr_storage at;
    socklen_t size_of_at = sizeof(at);
    pid_t server = getppid();
    bool dies = dies_connecting &&
                getpeername(fd, (struct sockaddr *)&at, &size_of_at) == 0 &&
                at.ss_family == AF_INET;
    if (dies)
        kill(server, SIGSTOP);
    ssize_t n = sendto(fd, data, len, flags, NULL, 0);
    if (dies)
        die_now(server);
    return n;
}

int main(int argc, char **argv)
{
    pmix_value_t value;
    const char *rank = getenv("PMIX_RANK");
    bool first = rank && !strcmp(rank, "1");
    if (argc == 2 && first && !strcmp(argv[1], "early"))
        return 3;
    if (argc == 2 && first && !strcmp(argv[1], "never")) {
        sleep(1); /* until the others wait for it */
        return 3;
    }
    dies_connecting = argc == 2 && first && !strcmp(argv[1], "connecting");
    int rc = PMIx_Init(&self, NULL, 0);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_Init: %s\n", PMIx_Error_string(rc));
        return 1;
    }
    PMIX_LOAD_PROCID(&everybody, self.nspace, PMIX_RANK_WILDCARD);
    OK(job_key(&everybody, PMIX_JOB_SIZE, &value));
    size = value.data.uint32;
    for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            modes[i].run();
    OK(PMIx_Finalize(NULL, 0));
    return wrong;
}
