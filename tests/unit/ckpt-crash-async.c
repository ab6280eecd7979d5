/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt-crash-async.c - a training that saves again and again, with what has not
 * changed linked from the checkpoint before, into the memory of its nodes,
 * their disks and a shared directory: it is killed, the power goes, or a call
 * fails, at every single system call that changes something. What can be loaded
 * then is whole, is not older than the last save that had ended, and is not
 * newer than the last one that had begun. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt-job.h"
#include "ckpt/memory.h"
#include "disk-model.h"
#include "faulty-calls.h"
#include "tap.h"

static const struct plan {
    const char *what;
    int size, nodes;
    bool async, no_exchange, no_link;
    const char *redundancy; /* not NULL: directories of the nodes' own */
} plans[] = {
    {"in the foreground", 2, 1, false, false, false, NULL},
    {"behind the program", 2, 1, true, false, false, NULL},
    {"one rank, without exchange", 1, 1, true, true, false, NULL},
    {"without links", 2, 1, true, false, true, NULL},
    {"two nodes, flushed", 2, 2, true, false, false, "none"},
    {"two nodes, partner", 2, 2, true, false, false, "partner"},
};

/* What is saved: one step twice. */
static const int64_t step_of[] = {0, 10, 20, 20};
#define VERSIONS 3

#ifndef PLANS_FROM /* a program for some of them each, for the time it takes   \
                    */
#define PLANS_FROM 0
#define PLANS_TO   4
#endif

/* ---- the program ---- */

#define FROZEN 3000
#define MOVING 200
#define SLOW   40 /* per rank */

struct model {
    int64_t version;
    unsigned char frozen[FROZEN], own[FROZEN], moving[MOVING], slow[SLOW];
};

static unsigned char value(unsigned kind, int64_t version, unsigned i)
{
    return (unsigned char)(kind * 71 + (unsigned)version * 37 + i * 5);
}

static void fill(struct model *m, int64_t version)
{
    unsigned rank = (unsigned)dt_rank();
    m->version = version;
    for (unsigned i = 0; i < FROZEN; i++) {
        m->frozen[i] = value(1, 0, i);
        m->own[i] = value(10 + rank, 0, i);
    }
    for (unsigned i = 0; i < MOVING; i++)
        m->moving[i] = value(2, version, i);
    for (unsigned i = 0; i < SLOW; i++)
        m->slow[i] = value(3, version / 2, rank * SLOW + i);
}

static size_t fill_blob(unsigned char *blob, int64_t version)
{
    size_t len = (size_t)version * 3;
    for (size_t i = 0; i < len; i++)
        blob[i] = value(20 + (unsigned)dt_rank(), version, (unsigned)i);
    return len;
}

static bool add(dt_ckpt_t ckpt, struct model *m)
{
    const int64_t none = 0, frozen = FROZEN, moving = MOVING, slow = SLOW;
    const int64_t all = SLOW * dt_size(), at = SLOW * dt_rank();
    return dt_ckpt_add_tensor(ckpt, "version", &m->version, DT_DTYPE_I64, 0,
                              &none, 0) == DT_SUCCESS &&
           dt_ckpt_add_tensor(ckpt, "frozen", m->frozen, DT_DTYPE_U8, 1,
                              &frozen, DT_CKPT_REPLICATED) == DT_SUCCESS &&
           dt_ckpt_add_tensor(ckpt, "own", m->own, DT_DTYPE_U8, 1, &frozen,
                              0) == DT_SUCCESS &&
           dt_ckpt_add_tensor(ckpt, "moving", m->moving, DT_DTYPE_U8, 1,
                              &moving, DT_CKPT_REPLICATED) == DT_SUCCESS &&
           dt_ckpt_add_slice(ckpt, "slow", m->slow, DT_DTYPE_U8, 1, &all, &at,
                             &slow) == DT_SUCCESS;
}

/* The version in m, or -1 if not all of it is of one. */
static int64_t version_of(const struct model *m, dt_ckpt_t ckpt)
{
    struct model want;
    unsigned char blob[3 * VERSIONS + 30], wanted[sizeof(blob)];
    size_t len = sizeof(blob);
    if (m->version < 1 || m->version > VERSIONS + 1)
        return -1;
    memset(&want, 0, sizeof(want));
    fill(&want, m->version);
    if (memcmp(&want, m, sizeof(want)) != 0 ||
        dt_ckpt_get_blob(ckpt, "rng", blob, &len) != DT_SUCCESS ||
        len != fill_blob(wanted, m->version) || memcmp(blob, wanted, len) != 0)
        return -1;
    return m->version;
}

/* ---- a run ---- */

static char *base, dir[2][PATH_MAX], flush[PATH_MAX], run_id[32];

struct run {
    const struct plan *plan;
    int first, last; /* versions to save */
    /* what is known at each moment, also after the process is dead */
    volatile int begun, ended;
    int begun_at[VERSIONS + 2], ended_at[VERSIONS + 2]; /* events */
    dt_result_t rc; /* of loading, or of the last save */
    int64_t got[2]; /* version that was loaded, per rank */
    int64_t step;
    char text[256];
};

static struct run *run; /* memory shared with children */

static bool open_it(dt_ckpt_t *ckpt, struct model *m)
{
    int node = dt_rank() * run->plan->nodes / run->plan->size;
    memset(m, 0, sizeof(*m));
    run->rc = dt_ckpt_open(dir[node], 1, ckpt);
    if (run->rc == DT_SUCCESS && add(*ckpt, m))
        return true;
    if (dt_rank() == 0)
        snprintf(run->text, sizeof(run->text), "%s", dt_last_error());
    return false;
}

static dt_result_t save(dt_ckpt_t ckpt, int64_t step)
{
    if (!run->plan->async)
        return dt_ckpt_save(ckpt, step);
    dt_result_t rc = dt_ckpt_save_async(ckpt, step);
    return rc == DT_SUCCESS ? dt_ckpt_wait(ckpt) : rc;
}

static void save_rank(void *arg)
{
    dt_ckpt_t ckpt = NULL;
    struct model m;
    unsigned char blob[3 * VERSIONS + 30];
    (void)arg;
    bool good = open_it(&ckpt, &m);
    for (int v = run->first; v <= run->last && good; v++) {
        fill(&m, v);
        dt_ckpt_set_blob(ckpt, "rng", blob, fill_blob(blob, v), 0);
        if (dt_rank() == 0) {
            run->begun_at[v] = disk_now();
            run->begun = v;
        }
        dt_result_t rc = save(ckpt, v > VERSIONS ? 50 : step_of[v]);
        if (dt_rank() != 0)
            continue;
        run->rc = rc;
        if (rc == DT_SUCCESS)
            run->ended = v;
        else
            snprintf(run->text, sizeof(run->text), "%s", dt_last_error());
        run->ended_at[v] = rc == DT_SUCCESS ? disk_now() : 1 << 30;
    }
    dt_ckpt_close(ckpt);
}

static void load_rank(void *arg)
{
    dt_ckpt_t ckpt = NULL;
    struct model m;
    int64_t step = -1;
    (void)arg;
    run->got[dt_rank()] = -1;
    if (open_it(&ckpt, &m)) {
        dt_result_t rc = dt_ckpt_load(ckpt, &step);
        run->got[dt_rank()] = rc == DT_SUCCESS         ? version_of(&m, ckpt)
                              : rc == DT_ERR_NOT_FOUND ? 0
                                                       : -1;
        if (dt_rank() == 0) {
            run->rc = rc;
            run->step = step;
            snprintf(run->text, sizeof(run->text), "%s", dt_last_error());
        }
    }
    dt_ckpt_close(ckpt);
}

static void go(void (*fn)(void *), int first, int last)
{
    run->first = first;
    run->last = last;
    run->rc = DT_SUCCESS;
    *run->text = '\0';
    fake_world_run_nodes(run->plan->size, run->plan->nodes, fn, NULL);
}

static void begin(const struct plan *plan)
{
    base = ckpt_temp_dir();
    for (int n = 0; n < 2; n++) {
        snprintf(dir[n], sizeof(dir[n]), "%s/node%d", base,
                 plan->nodes > 1 ? n : 0);
        mkdir(dir[n], 0777);
    }
    snprintf(flush, sizeof(flush), "%s/flush", base);
    unsetenv("DT_CKPT_FLUSH");
    unsetenv("DT_CKPT_REDUNDANCY");
    if (plan->redundancy) {
        mkdir(flush, 0777);
        setenv("DT_CKPT_FLUSH", flush, 1);
        setenv("DT_CKPT_REDUNDANCY", plan->redundancy, 1);
    }
    memset(run, 0, sizeof(*run));
    run->plan = plan;
}

/* The nodes' memory is empty. */
static void forget_memory(void)
{
    for (int n = 0; n < run->plan->nodes; n++) {
        char id[64];
        snprintf(id, sizeof(id), run->plan->nodes > 1 ? "%s-node%d" : "%s",
                 run_id, n);
        char *path = dt_memory_path(id, dir[n]);
        if (path)
            dt_memory_remove(path);
        free(path);
    }
}

static void end(void)
{
    forget_memory();
    ckpt_remove_tree(base);
}

/* What loads is whole, and from..to. 0 is none. */
static bool loads(int from, int to, int *version)
{
    ckpt_stderr_begin();
    go(load_rank, 0, 0);
    const char *said = ckpt_stderr_end();
    *version = (int)run->got[0];
    bool good = run->got[0] >= from && run->got[0] <= to &&
                (run->plan->size == 1 || run->got[1] == run->got[0]) &&
                (!*said || run->plan->nodes > 1); /* not all have committed */
    if (good && *version > 0)
        good = run->step == (*version > VERSIONS ? 50 : step_of[*version]);
    if (!good)
        diag("loads %d (step %lld), %d .. %d: %s %s", *version,
             (long long)run->step, from, to, run->text, said);
    return good;
}

/* The next run saves and leaves nothing else behind. */
static bool goes_on(void)
{
    int version;
    ckpt_stderr_begin();
    go(save_rank, VERSIONS + 1, VERSIONS + 1);
    const char *said = ckpt_stderr_end();
    if (run->rc != DT_SUCCESS || *said || strchr(ckpt_list(dir[0]), '.') ||
        (run->plan->redundancy && strchr(ckpt_list(flush), '.'))) {
        diag("next save: result %d, %s %s; left: %s", run->rc, run->text, said,
             ckpt_list(dir[0]));
        return false;
    }
    return loads(VERSIONS + 1, VERSIONS + 1, &version);
}

static struct faults faults_of(const struct plan *plan)
{
    return (struct faults){.kinds = FAULTS_ANY,
                           .no_exchange = plan->no_exchange,
                           .no_link = plan->no_link};
}

/* ---- power cuts ---- */

static void test_power(const struct plan *plan)
{
    int states = 0, wrong = 0, version, newer = 0;
    struct faults faults = faults_of(plan);
    begin(plan);
    const char *const root[] = {dir[0], plan->redundancy ? dir[1] : NULL,
                                flush};
    disk_begin(root, plan->redundancy ? 3 : 1);
    ckpt_stderr_begin();
    faults_begin(&faults);
    go(save_rank, 1, VERSIONS);
    faults_end();
    int events = disk_end();
    ckpt_stderr_end(); /* without links there is no memory */
    bool good = run->rc == DT_SUCCESS;
    struct run was = *run;
    for (int at = 0, from = 0, to = 0; good && at <= events; at++) {
        while (to < VERSIONS && was.begun_at[to + 1] <= at)
            to++;
        while (from < VERSIONS && was.ended_at[from + 1] <= at)
            from++;
        int n = disk_states(at);
        for (int i = 0; i < n && wrong < 5; i++, states++) {
            disk_restore(at, i);
            forget_memory();
            if (!loads(from, to, &version) || (i == n - 1 && !goes_on())) {
                diag("%s", disk_describe(at, i));
                wrong++;
            }
            newer += version > from;
        }
    }
    ok(good && wrong == 0 && events > 50,
       "%s: the power goes before any of %d events: %d states (%d newer)",
       plan->what, events, states, newer);
    end();
}

/* ---- kill -9 ---- */

static bool kill_at(const struct plan *plan, int at, int *wrong, int *newer)
{
    int status, version = 0;
    struct faults faults = faults_of(plan);
    faults.at = at;
    begin(plan);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        ckpt_stderr_begin();
        faults_begin(&faults);
        go(save_rank, 1, VERSIONS);
        _exit(run->rc != DT_SUCCESS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    int from = run->ended, to = run->begun;
    if ((!killed && status != 0) || !loads(from, to, &version) || !goes_on()) {
        diag("killed before call %d: status %#x", at, status);
        (*wrong)++;
    }
    *newer += killed && version > from;
    end();
    return killed;
}

static void test_kill(const struct plan *plan)
{
    int at = 1, wrong = 0, newer = 0;
    while (wrong < 5 && kill_at(plan, at, &wrong, &newer))
        at++;
    ok(wrong == 0 && at > 50, "%s: killed before any of %d calls (%d newer)",
       plan->what, at - 1, newer);
}

/* ---- failing calls ---- */

static bool fail_at(const struct plan *plan, int at, int error, bool persist,
                    int *wrong)
{
    int version;
    struct faults faults = faults_of(plan);
    faults.at = at;
    faults.error = error;
    faults.persist = persist;
    begin(plan);
    ckpt_stderr_begin();
    faults_begin(&faults);
    go(save_rank, 1, VERSIONS);
    int calls = faults_end(), from = run->ended, to = run->begun;
    const char *said = ckpt_stderr_end();
    bool heard = from == VERSIONS || *run->text || *said;
    forget_memory(); /* what is not on disk does not count */
    if (!heard || !loads(from, to, &version) || !goes_on()) {
        diag("call %d fails: %s", at, said);
        (*wrong)++;
    }
    end();
    return calls >= at;
}

static void test_failures(const struct plan *plan, int error, bool persist)
{
    int at = 1, wrong = 0;
    while (wrong < 5 && fail_at(plan, at, error, persist, &wrong))
        at++;
    ok(wrong == 0 && at > 50, "%s: %s at any of %d calls%s", plan->what,
       strerror(error), at - 1, persist ? " and ever after" : "");
}

int main(void)
{
    alarm(1200);
    ckpt_temp_in_memory(); /* what is synced is only looked at */
    snprintf(run_id, sizeof(run_id), "crash-%d", (int)getpid());
    fake_world_run_id(run_id);
    run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED)
        abort();
    for (int i = PLANS_FROM; i < PLANS_TO; i++) {
        test_power(&plans[i]);
        test_kill(&plans[i]);
        test_failures(&plans[i], EIO, false);
        test_failures(&plans[i], ENOSPC, true);
    }
    return tap_done();
}
