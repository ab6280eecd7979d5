/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pmix-step.c - a PMIx program for pmix.t, to be run by srun:
 *
 *   pmix-step meet             each rank gets a number from each other rank
 *   pmix-step lose HOW RANK..  these ranks are lost: with kill or stop they
 *                              send themselves the signal, with wait the test
 *                              does; the others get an event of each and
 *                              continue
 *   pmix-step replace RANK     this rank is killed, and replaced
 *
 * Errors are printed on standard error, and the exit code is 1 then. */
#include <errno.h>
#include <pmix.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 64, LIMIT_MS = 240000 };

static pmix_proc_t self;
static uint32_t size;
static _Atomic bool heard[MAX_RANKS];

static void fail(const char *what, int rc)
{
    fprintf(stderr, "rank %u: %s: %s\n", self.rank, what,
            rc ? PMIx_Error_string(rc) : "wrong");
    _exit(1);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source,
                     pmix_info_t *info, size_t ninfo, pmix_info_t *results,
                     size_t nresults, pmix_event_notification_cbfunc_fn_t done,
                     void *arg)
{
    (void)id, (void)results, (void)nresults, (void)status;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC))
            source = info[i].value.data.proc;
    if (source->rank < MAX_RANKS)
        atomic_store(&heard[source->rank], true);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static void init(void)
{
    pmix_proc_t job;
    pmix_value_t *value;
    int rc = PMIx_Init(&self, NULL, 0);
    if (rc != PMIX_SUCCESS)
        fail("PMIx_Init", rc);
    PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        fail("PMIX_JOB_SIZE", rc);
    size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    if (size > MAX_RANKS)
        fail("too many ranks", 0);
    pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED,
                             PMIX_ERR_PROC_ABORTED_BY_SIG,
                             PMIX_ERR_PROC_TERM_WO_SYNC};
    PMIx_Register_event_handler(codes, 3, NULL, 0, on_event, NULL, NULL);
}

static void put(uint32_t number)
{
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, &number, PMIX_UINT32);
    PMIx_Put(PMIX_GLOBAL, "number", &value);
    PMIx_Commit();
}

static void check(uint32_t rank, uint32_t wanted)
{
    pmix_proc_t proc;
    pmix_value_t *value;
    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    int rc = PMIx_Get(&proc, "number", NULL, 0, &value);
    if (rc != PMIX_SUCCESS || value->data.uint32 != wanted)
        fail("the number of another", rc);
    PMIX_VALUE_RELEASE(value);
}

/* Of all that have not been lost. */
static int fence(const bool *lost)
{
    pmix_proc_t procs[MAX_RANKS];
    pmix_info_t collect;
    size_t n = 0;
    for (uint32_t r = 0; r < size; r++)
        if (!lost || !lost[r]) {
            PMIX_LOAD_PROCID(&procs[n], self.nspace, r);
            n++;
        }
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, NULL, PMIX_BOOL);
    return PMIx_Fence(procs, n, &collect, 1);
}

static void meet(void)
{
    init();
    put(self.rank * 3 + 1);
    int rc = fence(NULL);
    if (rc != PMIX_SUCCESS)
        fail("fence", rc);
    for (uint32_t r = 0; r < size; r++)
        check(r, r * 3 + 1);
    printf("%u of %u on %s\n", self.rank, size, getenv("SLURMD_NODENAME"));
    PMIx_Finalize(NULL, 0);
}

static void await(uint32_t rank)
{
    for (int ms = 0; !atomic_load(&heard[rank]); ms += 10) {
        if (ms > LIMIT_MS)
            fail("no word of a lost rank", 0);
        pause_ms(10);
    }
}

/* From 4.2.3 to 6.1 PMIx gives the error of a fence to one rank of each node
 * only, and success to the others: _mdxcbfunc in pmix_server.c overwrites it.
 */
static bool all_get_errors(void)
{
    return PMIX_NUMERIC_VERSION < 0x00040203 ||
           PMIX_NUMERIC_VERSION >= 0x00070000;
}

static void lose(const char *how, char **ranks)
{
    bool lost[MAX_RANKS] = {false};
    init();
    for (; *ranks; ranks++)
        lost[atoi(*ranks) % MAX_RANKS] = true;
    int rc = fence(NULL);
    if (rc != PMIX_SUCCESS)
        fail("first fence", rc);
    if (lost[self.rank]) {
        printf("rank %u waits as %ld\n", self.rank, (long)getpid());
        fflush(stdout);
        if (*how != 'w')
            raise(*how == 'k' ? SIGKILL : SIGSTOP);
        pause_ms(LIMIT_MS);
        fail("still here", 0);
    }
    for (uint32_t r = 0; r < size; r++)
        if (lost[r])
            await(r);
    if (fence(NULL) == PMIX_SUCCESS && all_get_errors())
        fail("a fence with the lost", 0);
    rc = fence(lost);
    if (rc != PMIX_SUCCESS)
        fail("fence of the others", rc);
    printf("rank %u goes on\n", self.rank);
    PMIx_Finalize(NULL, 0);
}

/* Ask the server for the place of a rank that has died. */
static void ask(const char *rank)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char text[256];
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", getenv("DT_PMIX_CONTROL"));
    snprintf(text, sizeof(text), "replace %s 137", rank);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        send(fd, text, strlen(text), 0) < 0) {
        fprintf(stderr, "%s: %s\n", at.sun_path, strerror(errno));
        _exit(1);
    }
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    if (strcmp(text, "ok") != 0) {
        fprintf(stderr, "replace: %s\n", text);
        _exit(1);
    }
}

static void rejoin(uint32_t number)
{
    int rc = PMIX_SUCCESS;
    for (int i = 0; i < LIMIT_MS / 50; i++) {
        if (i)
            pause_ms(50);
        if ((rc = fence(NULL)) == PMIX_SUCCESS)
            break;
    }
    if (rc != PMIX_SUCCESS)
        fail("fence with the replacement", rc);
    check(number, 1000);
    printf("rank %u of %u, with the new one\n", self.rank, size);
    PMIx_Finalize(NULL, 0);
}

static void replace(const char *text)
{
    uint32_t rank = (uint32_t)atoi(text);
    int life = 0, status = 0;
    if ((uint32_t)atoi(getenv("PMIX_RANK")) == rank)
        for (; life < 2; life++) {
            if (life)
                ask(text);
            if (fork() == 0)
                break;
            if (wait(&status) > 0 && life == 1)
                exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
    init();
    put(life ? 1000 : 1);
    if (!life && fence(NULL) != PMIX_SUCCESS)
        fail("first fence", 0);
    if (self.rank == rank && !life)
        raise(SIGKILL);
    if (self.rank != rank)
        await(rank);
    rejoin(rank);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && !strcmp(argv[1], "meet"))
        meet();
    else if (argc > 3 && !strcmp(argv[1], "lose"))
        lose(argv[2], argv + 3);
    else if (argc == 3 && !strcmp(argv[1], "replace"))
        replace(argv[2]);
    else
        return 64;
    return 0;
}
