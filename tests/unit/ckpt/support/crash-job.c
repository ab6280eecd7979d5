/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* crash-job.c - the training that is cut short. */
#include "crash-job.h"

#include <ftw.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "job.h"
#include "ckpt/format/format.h"
#include "ckpt/save/memory.h"
#include "disk-model.h"
#include "../../tap.h"

/* What is saved: one step twice. */
static int64_t step_of(int version)
{
    static const int64_t step[] = {0, 10, 20, 20};
    return version > CRASH_VERSIONS ? 50 : step[version];
}

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
    unsigned char blob[3 * CRASH_VERSIONS + 30], wanted[sizeof(blob)];
    size_t len = sizeof(blob);
    if (m->version < 1 || m->version > CRASH_VERSIONS + 1)
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

static char *base, dir[CRASH_NODES][PATH_MAX], flush[PATH_MAX], run_id[32];
static struct crash_run *run; /* memory shared with children */
static struct {
    int count;
    uint64_t sum[1 << 17];
} seen; /* what was asked, a hash table; 0 is free */

struct crash_run *crash_setup(void)
{
    ckpt_temp_in_memory(); /* what is synced is only looked at */
    /* Large room from the kernel each time, as in a program that loads once:
     * again from the heap, a calloc of it clears it all. */
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    snprintf(run_id, sizeof(run_id), "crash-%d", (int)getpid());
    fake_world_run_id(run_id);
    run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED)
        abort();
    return run;
}

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
    unsigned char blob[3 * CRASH_VERSIONS + 30];
    (void)arg;
    bool good = open_it(&ckpt, &m);
    for (int v = run->first; v <= run->last && good; v++) {
        fill(&m, v);
        dt_ckpt_set_blob(ckpt, "rng", blob, fill_blob(blob, v), 0);
        if (dt_rank() == 0) {
            run->begun_at[v] = disk_now();
            run->begun = v;
        }
        dt_result_t rc = save(ckpt, step_of(v));
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

void crash_save(void)
{
    go(save_rank, 1, CRASH_VERSIONS);
}

void crash_begin(const struct crash_plan *plan)
{
    base = ckpt_temp_dir();
    for (int n = 0; n < plan->nodes; n++) {
        snprintf(dir[n], sizeof(dir[n]), "%s/node%d", base, n);
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
    if (seen.count > 0)
        memset(&seen, 0, sizeof(seen));
}

void crash_record(void)
{
    const char *root[CRASH_NODES + 1];
    int n = run->plan->nodes;
    for (int i = 0; i < n; i++)
        root[i] = dir[i];
    root[n] = flush;
    disk_begin(root, run->plan->redundancy ? n + 1 : n);
}

void crash_forget_memory(void)
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

void crash_end(void)
{
    crash_forget_memory();
    ckpt_remove_tree(base);
}

/* ---- what is found ---- */

static bool all_got_the_same(void)
{
    for (int r = 1; r < run->plan->size; r++)
        if (run->got[r] != run->got[0])
            return false;
    return true;
}

bool crash_loads(int from, int to, int *version)
{
    ckpt_stderr_begin();
    go(load_rank, 0, 0);
    const char *said = ckpt_stderr_end();
    *version = (int)run->got[0];
    bool good = *version >= from && *version <= to && all_got_the_same() &&
                (!*said || run->plan->nodes > 1); /* not all have committed */
    if (good && *version > 0)
        good = run->step == step_of(*version);
    if (!good)
        diag("loads %d (step %lld), %d .. %d: %s %s", *version,
             (long long)run->step, from, to, run->text, said);
    return good;
}

bool crash_refuses(int from, int to)
{
    ckpt_stderr_begin();
    go(load_rank, 0, 0);
    ckpt_stderr_end();
    bool listed = run->rc == DT_ERR_CORRUPT && strstr(run->text, "missing: ");
    bool none = run->rc == DT_ERR_NOT_FOUND && from == 0;
    bool whole = run->rc == DT_SUCCESS && run->got[0] >= from &&
                 run->got[0] <= to && all_got_the_same();
    if (!listed && !none && !whole)
        diag("too much is lost: %d, result %d: %s", (int)run->got[0], run->rc,
             run->text);
    return listed || none || whole;
}

/* Names that only a save under way has. */
static bool is_clean(void)
{
    bool clean = !run->plan->redundancy || !strchr(ckpt_list(flush), '.');
    for (int n = 0; n < run->plan->nodes && clean; n++)
        clean = !strchr(ckpt_list(dir[n]), '.');
    return clean;
}

bool crash_goes_on(void)
{
    int version;
    ckpt_stderr_begin();
    go(save_rank, CRASH_VERSIONS + 1, CRASH_VERSIONS + 1);
    const char *said = ckpt_stderr_end();
    if (run->rc != DT_SUCCESS || *said || !is_clean()) {
        diag("next save: result %d, %s %s; left: %s", run->rc, run->text, said,
             ckpt_list(dir[0]));
        return false;
    }
    return crash_loads(CRASH_VERSIONS + 1, CRASH_VERSIONS + 1, &version);
}

int crash_unfinished(void)
{
    int count = 0;
    for (int n = 0; n < run->plan->nodes; n++)
        count += strstr(ckpt_list(dir[n]), ".partial-") != NULL;
    return count;
}

/* ---- disks ---- */

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st, (void)type;
    return ftw->level > 0 ? remove(path) : 0;
}

void crash_lose(unsigned nodes)
{
    nftw(flush, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    for (int n = 0; n < run->plan->nodes; n++)
        if (nodes >> n & 1)
            nftw(dir[n], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool crash_has_turn(const struct crash_plan *plan, int at)
{
    const char *text = getenv("DT_TEST_TURN");
    uint64_t turn = 0, turns = 1;
    if (!text || plan->nodes < 3)
        return true;
    if (!dt_number_scan(&text, 10, 99, &turn) || *text++ != '/' ||
        !dt_number_scan(&text, 10, 99, &turns) || *text || turn >= turns) {
        puts("Bail out! DT_TEST_TURN: expected a turn and how many there are, "
             "as 1/3");
        exit(1);
    }
    return (uint64_t)at % turns == turn;
}

unsigned crash_choose(int count, int i)
{
    unsigned all = 1u << run->plan->nodes;
    for (unsigned nodes = 1;; nodes = nodes % (all - 1) + 1)
        if (__builtin_popcount(nodes) == count && i-- == 0)
            return nodes;
}

/* disk_begin's number of the shared directory follows those of the nodes. */
static unsigned roots(unsigned lost)
{
    unsigned nodes = lost & (CRASH_SHARED - 1);
    return lost & CRASH_SHARED ? nodes | 1u << run->plan->nodes : nodes;
}

void crash_restore(int at, int state, unsigned lost)
{
    disk_restore(at, state, roots(lost));
    crash_forget_memory();
}

bool crash_is_new(int at, int state, unsigned lost, int from, int to, bool last)
{
    const size_t room = sizeof(seen.sum) / sizeof(seen.sum[0]);
    const uint64_t key[] = {disk_sum(at, state, roots(lost)), (uint64_t)from,
                            (uint64_t)to, last};
    const uint64_t sum = dt_checksum(key, sizeof(key));
    size_t i = sum % room;
    while (seen.sum[i] && seen.sum[i] != sum)
        i = (i + 1) % room;
    if (seen.sum[i] == sum)
        return false;
    if (++seen.count > (int)room / 2)
        abort();
    seen.sum[i] = sum;
    return true;
}

int crash_count_new(void)
{
    return seen.count;
}
