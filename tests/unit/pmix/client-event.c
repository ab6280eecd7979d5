/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client-event.c - modes of pmix-client: ranks that end, and events. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

atomic_int received;
_Atomic pmix_rank_t heard_of;
atomic_int heard_code, heard_life = -1;

static void on_event(size_t handler, pmix_status_t status,
                     const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *arg)
{
    (void)handler, (void)status, (void)results, (void)nresults;
    if (atomic_load(&received) == 0)
        atomic_store(&heard_of, source->rank);
    for (size_t i = 0; i < ninfo; i++)
        if (strcmp(info[i].key, PMIX_EXIT_CODE) == 0)
            atomic_store(&heard_code, info[i].value.data.integer);
        else if (strcmp(info[i].key, PMIX_REINCARNATION) == 0)
            atomic_store(&heard_life, (int)info[i].value.data.uint32);
    atomic_fetch_add(&received, 1);
    cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

void listen_to(pmix_status_t code)
{
    TRUE(PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL) >=
         0);
}

/* Rank 1 is killed; no rank waits for it in vain. */
void die(void)
{
    uint32_t number;
    listen_to(PMIX_ERR_PROC_ABORTED);
    put("number", self.rank);
    OK(fence_all());
    if (self.rank == 1)
        raise(SIGKILL);
    wait_for(&received, 1);
    TRUE(atomic_load(&heard_of) == 1);
    TRUE(atomic_load(&heard_code) == 128 + SIGKILL);
    TRUE(atomic_load(&heard_life) == 0);
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
    pmix_proc_t three[3] = {proc_of(0), proc_of(1), proc_of(2)};
    if (self.rank == 0 || self.rank == 2)
        IS(fence(three, 3, true), PMIX_ERR_PROC_ABORTED);
    TRUE(get(1, "never put", &number) != PMIX_SUCCESS);
    pmix_proc_t living[64];
    size_t count = 0;
    for (pmix_rank_t r = 0; r < size && r < 64; r++)
        if (r != 1)
            living[count++] = proc_of(r);
    put("second", self.rank);
    OK(fence(living, count, true));
    OK(get(0, "second", &number));
    printf("rank %u goes on\n", self.rank);
}

/* Rank 1 is killed while all others wait for it. */
void die_fence(void)
{
    OK(fence_all());
    if (self.rank == 1) {
        sleep(1);
        raise(SIGKILL);
    }
    TRUE(fence_all() != PMIX_SUCCESS);
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
}

/* Kill a rank whose server, its parent, is stopped and does not reap it. */
static void kill_rank(uint32_t pid)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    char path[64], state = 0;
    kill((pid_t)pid, SIGKILL);
    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    while (state != 'Z') {
        FILE *stat = fopen(path, "r");
        TRUE(stat && fscanf(stat, "%*d %*s %c", &state) == 1);
        if (!stat)
            return;
        fclose(stat);
        nanosleep(&pause, NULL);
    }
}

/* Ranks 1 and 2 are killed while the server does not look. */
void die_two(void)
{
    pmix_proc_t two[2] = {proc_of(0), proc_of(2)};
    uint32_t pids[2] = {0, 0};
    listen_to(PMIX_ERR_PROC_ABORTED);
    put("pid", (uint32_t)getpid());
    OK(fence(&everybody, 1, true));
    if (self.rank == 0) {
        OK(get(1, "pid", &pids[0]));
        OK(get(2, "pid", &pids[1]));
        kill(getppid(), SIGSTOP);
        kill_rank(pids[0]);
        kill_rank(pids[1]);
        kill(getppid(), SIGCONT);
    } else if (self.rank < 3) {
        pause();
    }
    wait_for(&received, 1);
    if (self.rank == 0)
        IS(fence(two, 2, false), PMIX_ERR_PROC_ABORTED);
    wait_for(&received, 2);
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
}

/* Rank 1, here only its process, ends before PMIx knows it. */
void absent(void)
{
    TRUE(fence_all() != PMIX_SUCCESS);
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
}

/* Rank 1 is killed, but a child of it keeps the connection open. */
void orphan(void)
{
    OK(fence_all());
    if (self.rank == 1) {
        const struct timespec pause = {.tv_nsec = 10000000};
        pid_t server = getppid();
        if (fork() == 0) {
            while (kill(server, 0) == 0)
                nanosleep(&pause, NULL);
            _exit(0);
        }
        raise(SIGKILL);
    }
    TRUE(fence_all() != PMIX_SUCCESS);
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
}

/* Rank 1 leaves as if all was well, without PMIx_Finalize. */
void leave(void)
{
    listen_to(PMIX_ERR_PROC_TERM_WO_SYNC);
    OK(fence_all());
    if (self.rank == 1)
        _exit(0);
    wait_for(&received, 1);
    TRUE(atomic_load(&heard_of) == 1);
}

/* Rank 1 ends well. */
void finish(void)
{
    listen_to(PMIX_EVENT_PROC_TERMINATED);
    OK(fence_all());
    if (self.rank == 1) {
        OK(PMIx_Finalize(NULL, 0));
        _exit(0);
    }
    wait_for(&received, 1);
    TRUE(atomic_load(&heard_of) == 1);
    IS(fence_all(), PMIX_ERR_PROC_ABORTED);
}

/* A rank notifies the others of its own event. */
void notify(void)
{
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7;
    listen_to(code);
    OK(fence_all());
    if (self.rank == 0)
        OK(PMIx_Notify_event(code, &self, PMIX_RANGE_NAMESPACE, NULL, 0, NULL,
                             NULL));
    wait_for(&received, 1);
    TRUE(atomic_load(&heard_of) == 0);
    OK(fence_all());
}

/* The ranges of an event, and how often it is received by rank 0, which tells
 * it, by rank 1, and by the others. */
static const struct {
    pmix_data_range_t range;
    int received[3];
} ranges[] = {{PMIX_RANGE_PROC_LOCAL, {1, 0, 0}},
              {PMIX_RANGE_LOCAL, {1, 1, 1}},
              {PMIX_RANGE_NAMESPACE, {1, 1, 1}},
              {PMIX_RANGE_SESSION, {1, 1, 1}},
              {PMIX_RANGE_GLOBAL, {1, 1, 1}},
              {PMIX_RANGE_CUSTOM, {1, 1, 0}},
              {PMIX_RANGE_RM, {1, 0, 0}},
              /* the last: when it has come so have the others */
              {PMIX_RANGE_GLOBAL, {1, 1, 1}}};
#define RANGES     (sizeof(ranges) / sizeof(*ranges))
#define RANGE_CODE (PMIX_EXTERNAL_ERR_BASE - 100)

static atomic_int heard_ranges[RANGES];

static void on_ranged(size_t handler, pmix_status_t status,
                      const pmix_proc_t *source, pmix_info_t info[],
                      size_t ninfo, pmix_info_t results[], size_t nresults,
                      pmix_event_notification_cbfunc_fn_t cbfunc, void *arg)
{
    (void)handler, (void)source, (void)info, (void)ninfo;
    (void)results, (void)nresults;
    size_t i = (size_t)(RANGE_CODE - status);
    if (i < RANGES)
        atomic_fetch_add(&heard_ranges[i], 1);
    cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static void tell_ranges(void)
{
    pmix_proc_t targets[2] = {proc_of(1), proc_of(0)};
    pmix_data_array_t array = {PMIX_PROC, 2, targets};
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_EVENT_CUSTOM_RANGE, &array, PMIX_DATA_ARRAY);
    for (size_t i = 0; i < RANGES; i++) {
        bool custom = ranges[i].range == PMIX_RANGE_CUSTOM;
        OK(PMIx_Notify_event(RANGE_CODE - (int)i, &self, ranges[i].range,
                             custom ? &info : NULL, custom, NULL, NULL));
    }
    PMIX_INFO_DESTRUCT(&info);
}

/* Each event is delivered to those in its range, once. */
void events(void)
{
    pmix_status_t codes[RANGES];
    for (size_t i = 0; i < RANGES; i++)
        codes[i] = RANGE_CODE - (int)i;
    TRUE(PMIx_Register_event_handler(codes, RANGES, NULL, 0, on_ranged, NULL,
                                     NULL) >= 0);
    OK(fence_all());
    if (self.rank == 0)
        tell_ranges();
    wait_for(&heard_ranges[RANGES - 1], 1);
    OK(fence_all());
    for (size_t i = 0; i < RANGES; i++) {
        int count = atomic_load(&heard_ranges[i]);
        int wanted = ranges[i].received[self.rank < 2 ? self.rank : 2];
        if (ranges[i].range == PMIX_RANGE_LOCAL && !is_near(0))
            wanted = 0;
        if (count != wanted)
            fprintf(stderr, "rank %u: event %zu of range %s: %d times\n",
                    self.rank, i, PMIx_Data_range_string(ranges[i].range),
                    count);
        TRUE(count == wanted);
    }
}

#define PROC_JOINED (PMIX_EXTERNAL_ERR_BASE - 1)

static atomic_int joined, joined_life = -1;
static _Atomic pmix_rank_t joined_rank;

static void on_joined(size_t handler, pmix_status_t status,
                      const pmix_proc_t *source, pmix_info_t info[],
                      size_t ninfo, pmix_info_t results[], size_t nresults,
                      pmix_event_notification_cbfunc_fn_t cbfunc, void *arg)
{
    (void)handler, (void)status, (void)source, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++)
        if (strcmp(info[i].key, PMIX_REINCARNATION) == 0)
            atomic_store(&joined_life, (int)info[i].value.data.uint32);
        else if (strcmp(info[i].key, PMIX_EVENT_AFFECTED_PROC) == 0)
            atomic_store(&joined_rank, info[i].value.data.proc->rank);
    atomic_fetch_add(&joined, 1);
    cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

/* Rank 1 is killed, and replaced. */
void rejoin(void)
{
    pmix_status_t code = PROC_JOINED;
    uint32_t number = 0;
    if (self.rank == 1 && lookup("died", "", 0) != PMIX_SUCCESS) {
        OK(publish("died", "", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
        OK(publish("life", "", PMIX_RANGE_SESSION, PMIX_PERSIST_PROC));
        OK(fence_all());
        raise(SIGKILL);
    } else if (self.rank != 1) {
        listen_to(PMIX_ERR_PROC_ABORTED);
        TRUE(PMIx_Register_event_handler(&code, 1, NULL, 0, on_joined, NULL,
                                         NULL) >= 0);
        OK(fence_all());
        wait_for(&received, 1);
        TRUE(atomic_load(&heard_of) == 1 && atomic_load(&heard_life) == 0);
        wait_for(&joined, 1);
        TRUE(atomic_load(&joined_rank) == 1 && atomic_load(&joined_life) == 1);
    } else {
        OK(publish("life", "second", PMIX_RANGE_SESSION, PMIX_PERSIST_PROC));
    }
    put("again", 300 + self.rank);
    OK(fence(&everybody, 1, true));
    for (pmix_rank_t r = 0; r < size; r++) {
        OK(get(r, "again", &number));
        TRUE(number == 300 + r);
    }
    OK(lookup("life", "second", 0));
    OK(fence_all());
}

/* Rank 1 promises to beat, and does not. */
void heartbeat(void)
{
    uint32_t seconds = 1;
    pmix_info_t what, how;
    listen_to(PMIX_MONITOR_HEARTBEAT_ALERT);
    OK(fence_all());
    if (self.rank == 1) {
        PMIX_INFO_LOAD(&what, PMIX_MONITOR_HEARTBEAT, NULL, PMIX_BOOL);
        PMIX_INFO_LOAD(&how, PMIX_MONITOR_HEARTBEAT_TIME, &seconds,
                       PMIX_UINT32);
        OK(PMIx_Process_monitor(&what, PMIX_MONITOR_HEARTBEAT_ALERT, &how, 1,
                                NULL, NULL));
    } else {
        wait_for(&received, 1);
        TRUE(atomic_load(&heard_of) == 1);
    }
    OK(fence_all());
    TRUE(atomic_load(&received) == (self.rank != 1));
}
