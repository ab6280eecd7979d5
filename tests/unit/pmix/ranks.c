/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - ranks of several nodes, for pmix-nodes.t:
 *
 *   pmix-ranks MODE [NUMBER]
 *
 * Each mode tries one thing and prints on standard error what was wrong; the
 * exit code is 1 then. */
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "operations/operations.h"
#include "../descriptors.h"

#define LONG_S 120 /* so many seconds nothing here takes */

static pmix_proc_t self, everybody;
static uint32_t size, life;
static int wrong;
static long number_given;

#define OK(call)         check((call), PMIX_SUCCESS, #call, __LINE__)
#define IS(call, wanted) check((call), (wanted), #call, __LINE__)
#define TRUE(cond)       check((cond) ? 0 : 1, 0, #cond, __LINE__)

static void check(int rc, int wanted, const char *what, int line)
{
    if (rc == wanted)
        return;
    wrong = 1;
    fprintf(stderr, "rank %u.%u, line %d: %s: %d (%s), wanted %d\n", self.rank,
            life, line, what, rc, PMIx_Error_string(rc), wanted);
}

static pmix_proc_t proc_of(pmix_rank_t rank)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    return proc;
}

static void put(const char *key, uint32_t number)
{
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, &number, PMIX_UINT32);
    OK(PMIx_Put(PMIX_GLOBAL, key, &value));
    OK(PMIx_Commit());
}

/* seconds: 0 for no limit. */
static int get(pmix_rank_t rank, const char *key, int seconds, uint32_t *number)
{
    pmix_proc_t proc = proc_of(rank);
    pmix_value_t *value = NULL;
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    int rc = PMIx_Get(&proc, key, &info, seconds > 0, &value);
    if (rc == PMIX_SUCCESS) {
        *number = value->data.uint32;
        PMIX_VALUE_RELEASE(value);
    }
    return rc;
}

static int fence(const pmix_proc_t *procs, size_t count, bool collect)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    return PMIx_Fence(procs, count, &info, 1);
}

static int fence_all(void)
{
    return fence(&everybody, 1, false);
}

/* --- events -------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t ended[64], joined[64]; /* how often, by their lives */
} received = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, {0}};

static void on_event(size_t handler, pmix_status_t status,
                     const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *arg)
{
    (void)handler, (void)results, (void)nresults;
    uint32_t which = 0;
    for (size_t i = 0; i < ninfo; i++)
        if (strcmp(info[i].key, PMIX_REINCARNATION) == 0)
            which = info[i].value.data.uint32;
    pthread_mutex_lock(&received.lock);
    if (source->rank < 64) {
        bool joined = status == DT_EVENT_PROC_JOINED;
        uint32_t *most = joined ? &received.joined[source->rank]
                                : &received.ended[source->rank];
        uint32_t count = joined ? which : which + 1;
        *most = count > *most ? count : *most;
    }
    pthread_cond_broadcast(&received.changed);
    pthread_mutex_unlock(&received.lock);
    cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static void listen_to_all(void)
{
    pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED, DT_EVENT_PROC_JOINED};
    TRUE(PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL) >=
         0);
}

static void wait_until(const uint32_t *counter, uint32_t count)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LONG_S;
    int rc = 0;
    pthread_mutex_lock(&received.lock);
    while (*counter < count && rc == 0)
        rc = pthread_cond_timedwait(&received.changed, &received.lock, &end);
    pthread_mutex_unlock(&received.lock);
    TRUE(rc == 0);
}

/* --- what is known of the job -------------------------------------------- */

static uint32_t number_of(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *value = NULL;
    pmix_status_t rc = PMIx_Get(proc, key, NULL, 0, &value);
    uint32_t number = UINT32_MAX;
    if (rc == PMIX_SUCCESS)
        PMIX_VALUE_GET_NUMBER(rc, value, number, uint32_t);
    check(rc, PMIX_SUCCESS, key, __LINE__);
    if (value)
        PMIX_VALUE_RELEASE(value);
    return number;
}

static void text_of(const pmix_proc_t *proc, const char *key, char *to,
                    size_t room)
{
    pmix_value_t *value = NULL;
    *to = '\0';
    OK(PMIx_Get(proc, key, NULL, 0, &value));
    if (value && value->type == PMIX_STRING)
        snprintf(to, room, "%s", value->data.string);
    if (value)
        PMIX_VALUE_RELEASE(value);
}

/* A line per rank, of what each rank knows of all. */
static void map(void)
{
    char peers[256], line[1024], host[256];
    text_of(&everybody, PMIX_LOCAL_PEERS, peers, sizeof(peers));
    int at = snprintf(line, sizeof(line),
                      "%u: %u of %u nodes, %u with %s, leader %u:", self.rank,
                      number_of(&self, PMIX_NODEID),
                      number_of(&everybody, PMIX_NUM_NODES),
                      number_of(&everybody, PMIX_LOCAL_SIZE), peers,
                      number_of(&everybody, PMIX_LOCALLDR));
    for (pmix_rank_t r = 0; r < size && r < 64; r++) {
        pmix_proc_t proc = proc_of(r);
        text_of(&proc, PMIX_HOSTNAME, host, sizeof(host));
        TRUE(number_of(&proc, PMIX_NODE_RANK) ==
             number_of(&proc, PMIX_LOCAL_RANK));
        at += snprintf(line + at, sizeof(line) - (size_t)at, " %s/%u", host,
                       number_of(&proc, PMIX_LOCAL_RANK));
    }
    printf("%s\n", line);
    TRUE(number_of(&everybody, PMIX_UNIV_SIZE) == size);
    TRUE(number_of(&self, PMIX_APPNUM) == 0);
    TRUE(number_of(&self, PMIX_GLOBAL_RANK) == self.rank);
    OK(fence_all());
}

/* --- data ---------------------------------------------------------------- */

static void direct(void)
{
    uint32_t number = 0;
    put("number", self.rank);
    OK(fence_all());
    for (pmix_rank_t r = 0; r < size; r++) {
        OK(get(r, "number", 0, &number));
        TRUE(number == r);
    }
    OK(fence_all());
    put("second", self.rank + 100);
    OK(fence_all());
    OK(get((self.rank + 1) % size, "second", 0, &number));
    TRUE(number == 100 + (self.rank + 1) % size);
    OK(fence_all());
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    pmix_status_t status;
    uint32_t number;
} got = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, 0};

static void on_value(pmix_status_t status, pmix_value_t *value, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&got.lock);
    got.done = true;
    got.status = status;
    if (status == PMIX_SUCCESS)
        got.number = value->data.uint32;
    pthread_cond_signal(&got.changed);
    pthread_mutex_unlock(&got.lock);
}

static void wait_value(pmix_status_t wanted)
{
    pthread_mutex_lock(&got.lock);
    while (!got.done)
        pthread_cond_wait(&got.changed, &got.lock);
    pthread_mutex_unlock(&got.lock);
    IS(got.status, wanted);
}

/* Rank 0 asks for what the last rank puts only after that. */
static void late(void)
{
    pmix_proc_t last = proc_of(size - 1);
    if (self.rank == 0)
        OK(PMIx_Get_nb(&last, "late", NULL, 0, on_value, NULL));
    OK(fence_all());
    if (self.rank == size - 1)
        put("late", 5);
    if (self.rank == 0) {
        wait_value(PMIX_SUCCESS);
        TRUE(got.number == 5);
    }
    OK(fence_all());
}

/* ... and what it never puts, since it dies. */
static void vanish(void)
{
    pmix_proc_t last = proc_of(size - 1);
    uint32_t number;
    if (self.rank == 0)
        OK(PMIx_Get_nb(&last, "late", NULL, 0, on_value, NULL));
    OK(fence_all());
    if (self.rank == size - 1)
        raise(SIGKILL);
    if (self.rank == 0) {
        wait_value(PMIX_ERR_NOT_FOUND);
        IS(get(size - 1, "late", 0, &number), PMIX_ERR_NOT_FOUND);
    }
}

/* ... or since it has better things to do. */
static void patience(void)
{
    uint32_t number;
    OK(fence_all());
    if (self.rank == 0)
        IS(get(size - 1, "never", 1, &number), PMIX_ERR_TIMEOUT);
    OK(fence_all());
}

/* The last rank does not come: it waits until rank 0 has given up. */
static void absent(void)
{
    pmix_info_t info;
    int seconds = 1;
    uint32_t number;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    if (self.rank != size - 1)
        IS(PMIx_Fence(&everybody, 1, &info, 1), PMIX_ERR_TIMEOUT);
    else
        OK(get(0, "given up", LONG_S, &number));
    if (self.rank == 0)
        put("given up", 1);
    if (self.rank == size - 1)
        put("seen", 1);
    else
        OK(get(size - 1, "seen", LONG_S, &number));
    /* no rank leaves before all have got their data */
    OK(PMIx_Connect(&everybody, 1, NULL, 0));
}

/* --- losses -------------------------------------------------------------- */

/* All ranks put something; those that are not the first of their node end, and
 * the others get it only then, for the first time. What was put for this node
 * alone goes with a rank that did not finalize. */
static void stay(bool finalize)
{
    pmix_status_t codes[] = {PMIX_EVENT_PROC_TERMINATED, PMIX_ERR_PROC_ABORTED};
    char home[256], host[256];
    pmix_proc_t living[64];
    size_t nliving = 0;
    uint32_t number = 0;
    pmix_value_t value;
    text_of(&self, PMIX_HOSTNAME, home, sizeof(home));
    TRUE(PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL) >=
         0);
    PMIX_VALUE_LOAD(&value, &self.rank, PMIX_UINT32);
    OK(PMIx_Put(PMIX_LOCAL, "local", &value));
    put("number", self.rank);
    OK(fence_all());
    if (number_of(&self, PMIX_LOCAL_RANK) > 0) {
        if (!finalize)
            raise(SIGKILL);
        return;
    }
    for (pmix_rank_t r = 0; r < size && r < 64; r++) {
        pmix_proc_t proc = proc_of(r);
        text_of(&proc, PMIX_HOSTNAME, host, sizeof(host));
        if (number_of(&proc, PMIX_LOCAL_RANK) > 0)
            wait_until(&received.ended[r], 1);
        else
            living[nliving++] = proc;
        OK(get(r, "number", LONG_S, &number));
        TRUE(number == r);
        if (!finalize || strcmp(host, home) != 0)
            continue;
        OK(get(r, "local", LONG_S, &number));
        TRUE(number == r);
    }
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
    OK(fence(living, nliving, false));
}

static void finished(void)
{
    stay(true);
}

static void killed(void)
{
    stay(false);
}

/* The node of the last rank dies, with all its ranks. */
static void node_dies(void)
{
    char home[256], dying[256], host[256];
    pmix_proc_t living[64], dead[64], last = proc_of(size - 1);
    size_t nliving = 0, ndead = 0;
    uint32_t number = 0;
    text_of(&self, PMIX_HOSTNAME, home, sizeof(home));
    text_of(&last, PMIX_HOSTNAME, dying, sizeof(dying));
    for (pmix_rank_t r = 0; r < size && r < 64; r++) {
        pmix_proc_t proc = proc_of(r);
        text_of(&proc, PMIX_HOSTNAME, host, sizeof(host));
        if (strcmp(host, dying) == 0)
            dead[ndead++] = proc;
        else
            living[nliving++] = proc;
    }
    listen_to_all();
    put("number", self.rank);
    OK(fence_all());
    if (self.rank == size - 1)
        kill(getppid(), SIGKILL);
    if (strcmp(home, dying) == 0)
        pause();
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
    for (size_t i = 0; i < ndead; i++)
        wait_until(&received.ended[dead[i].rank], 1);
    put("second", self.rank);
    OK(fence(living, nliving, true));
    for (size_t i = 0; i < nliving; i++)
        OK(get(living[i].rank, "second", 0, &number));
    IS(get(size - 1, "second", 0, &number), PMIX_ERR_NOT_FOUND);
    printf("rank %u goes on\n", self.rank);
}

/* The incarnation of this rank, as its server has it. */
static uint32_t ask_life(void)
{
    pmix_query_t query;
    pmix_info_t *info = NULL;
    size_t ninfo = 0;
    const bool yes = true;
    uint32_t number = UINT32_MAX;
    int rc;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(rc, query.keys, PMIX_REINCARNATION);
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 2);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_QUERY_REFRESH_CACHE, &yes,
                   PMIX_BOOL);
    PMIX_INFO_LOAD(&query.qualifiers[1], PMIX_RANK, &self.rank, PMIX_PROC_RANK);
    rc = PMIx_Query_info(&query, 1, &info, &ninfo);
    OK(rc);
    if (rc == PMIX_SUCCESS && ninfo == 1 && info->value.type == PMIX_UINT32)
        number = info->value.data.uint32;
    PMIX_INFO_FREE(info, ninfo);
    PMIX_QUERY_DESTRUCT(&query);
    return number;
}

/* Of this rank's server, its parent. */
static size_t count_descriptors(void)
{
    int count = descriptors_of(getppid());
    TRUE(count > 2);
    return (size_t)count;
}

/* The server closes some a moment after a rank has seen their end. */
static bool has_no_more_descriptors(size_t most)
{
    for (int ms = 0; ms < 10000; ms++) {
        if (count_descriptors() <= most)
            return true;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

/* Rank 1 dies and is replaced, number_given times, and all exchange new data
 * with it each time. Its node waits with that until rank 0 says that all have
 * seen that it was gone. The servers have no more descriptors at the end than
 * after the first time. */
static void replace(void)
{
    pmix_proc_t living[64];
    size_t nliving = 0, descriptors = 0;
    uint32_t number = 0, node = 0;
    char key[32];
    for (pmix_rank_t r = 0; r < size && r < 64; r++)
        if (r != 1)
            living[nliving++] = proc_of(r);
    listen_to_all();
    TRUE(ask_life() == life);
    for (uint32_t round = life; round <= number_given && !wrong; round++) {
        if (self.rank != 1)
            wait_until(&received.joined[1], round);
        put("node", (uint32_t)getppid());
        snprintf(key, sizeof(key), "%u.number", round);
        put(key, 1000 * round + self.rank);
        OK(fence(&everybody, 1, round % 2));
        for (pmix_rank_t r = 0; r < size; r++) {
            OK(get(r, key, LONG_S, &number));
            TRUE(number == 1000 * round + r);
        }
        OK(get(1, "node", LONG_S, &node));
        OK(fence_all());
        if (round == 1)
            descriptors = count_descriptors();
        else if (round == number_given && descriptors)
            TRUE(has_no_more_descriptors(descriptors));
        if (round == number_given)
            break;
        if (self.rank == 1)
            raise(SIGKILL);
        IS(fence_all(), PMIX_ERR_PROC_ABORTED);
        wait_until(&received.ended[1], round + 1);
        OK(fence(living, nliving, false));
        if (self.rank == 0)
            kill((pid_t)node, SIGUSR1);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"map", map},           {"direct", direct},     {"late", late},
    {"vanish", vanish},     {"patience", patience}, {"absent", absent},
    {"finished", finished}, {"killed", killed},     {"node-dies", node_dies},
    {"replace", replace}};

int main(int argc, char **argv)
{
    int rc = PMIx_Init(&self, NULL, 0);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_Init: %s\n", PMIx_Error_string(rc));
        return 1;
    }
    PMIX_LOAD_PROCID(&everybody, self.nspace, PMIX_RANK_WILDCARD);
    size = number_of(&everybody, PMIX_JOB_SIZE);
    life = getenv("NODES_INCARNATION")
               ? (uint32_t)atoi(getenv("NODES_INCARNATION"))
               : 0;
    number_given = argc > 2 ? atol(argv[2]) : 0;
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            modes[i].run();
    OK(PMIx_Finalize(NULL, 0));
    return wrong;
}
