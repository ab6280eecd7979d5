/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node-ranks.c - cases that a few ranks of one node run. */
#include "node-ranks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

#define TIME 300 /* seconds for one case */

void node_complain(struct node_rank *r, int line, const char *fmt, ...)
{
    char *text = r->node->complaint[r->me];
    int n = snprintf(text, 400, "rank %zu, line %d: ", r->me, line);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, 400 - (size_t)n, fmt, ap);
    va_end(ap);
    if (r->node->threads) {
        printf("Bail out! %s\n", text);
        fflush(stdout);
    }
    _exit(1);
}

void node_barrier(struct node_rank *r)
{
    size_t wanted = ++r->node->entered[r->me];
    for (size_t i = 0; i < r->size; i++)
        while (r->node->entered[i] < wanted)
            sched_yield();
}

void node_die(struct node_rank *r)
{
    r->node->entered[r->me] = SIZE_MAX;
    raise(SIGKILL);
    abort();
}

uint64_t node_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

void node_wait(struct node_rank *r, unsigned *turn)
{
    if (++*turn % 64 == 0)
        NEED(r->tl->ops->check(r->tl, &r->err) == DT_SUCCESS, "%s",
             r->err.text);
    sched_yield();
}

struct dt_board *node_board(struct node_rank *r, uint32_t id, uint64_t serial)
{
    size_t ranks[NODE_RANKS];
    for (size_t i = 0; i < r->size; i++)
        ranks[i] = i;
    const struct dt_board_config config = {.id = id,
                                           .serial = serial,
                                           .ranks = ranks,
                                           .size = r->size,
                                           .index = r->me};
    struct dt_board *board;
    NEED(r->tl->boards->open(r->tl, &config, &board, &r->err) == DT_SUCCESS,
         "board: %s", r->err.text);
    return board;
}

static void join(struct node_rank *r)
{
    const struct dt_tl_config config = {.size = r->size};
    const void *addr;
    size_t len;
    NEED(dt_tl_shm.open(&config, &r->tl, &r->err) == DT_SUCCESS, "open: %s",
         r->err.text);
    dt_tl_shm.address(r->tl, &addr, &len);
    memcpy(r->node->addr[r->me], addr, len);
    r->node->pid[r->me] = getpid();
    node_barrier(r);
    struct dt_tl_peer peers[NODE_RANKS] = {0};
    for (size_t i = 0; i < r->size; i++)
        if (i != r->me)
            peers[i] = (struct dt_tl_peer){r->node->addr[i], len};
    const struct dt_tl_world world = {r->me, r->size, peers};
    NEED(dt_tl_shm.connect(r->tl, &world, &r->err) == DT_SUCCESS, "connect: %s",
         r->err.text);
    r->board = node_board(r, 0, 1);
    node_barrier(r); /* so that no victim dies before all have connected */
}

struct start {
    struct node_rank rank;
    const struct node_case *the;
    pthread_t thread;
};

static void *run_rank(void *arg)
{
    struct start *start = arg;
    struct node_rank *r = &start->rank;
    join(r);
    start->the->run(r);
    r->board->ops->close(r->board);
    dt_tl_shm.close(r->tl);
    return NULL;
}

static bool run_threads(struct start *starts, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (pthread_create(&starts[i].thread, NULL, run_rank, &starts[i]))
            return false;
    for (size_t i = 0; i < size; i++)
        pthread_join(starts[i].thread, NULL);
    return true;
}

static bool run_processes(const struct node_case *the, struct start *starts,
                          size_t size)
{
    pid_t pids[NODE_RANKS];
    bool good = true;
    fflush(stdout); /* or each child has a copy to print */
    for (size_t i = 0; i < size; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            alarm(TIME);
            run_rank(&starts[i]);
            exit(0); /* not _exit: a leak checker has its say */
        }
    }
    /* a rank that complains takes the others with it */
    for (size_t left = size; left; left--) {
        int st;
        pid_t pid = wait(&st);
        for (size_t i = 0; i < size; i++) {
            if (pids[i] != pid)
                continue;
            pids[i] = -1;
            bool fine = the->kills && i == size - 1
                            ? WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL
                            : WIFEXITED(st) && WEXITSTATUS(st) == 0;
            if (!fine && good)
                diag("rank %zu: status %#x", i, (unsigned)st);
            for (size_t k = 0; k < size && !fine && good; k++)
                if (pids[k] > 0)
                    kill(pids[k], SIGKILL);
            good = good && fine;
        }
    }
    return good;
}

static void run_case(const struct node_case *the, size_t size, bool threads)
{
    static struct start starts[NODE_RANKS];
    struct node *node = mmap(NULL, sizeof(*node), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (node == MAP_FAILED) {
        ok(false, "set up: %s", strerror(errno));
        return;
    }
    node->threads = threads;
    for (size_t i = 0; i < size; i++)
        starts[i] = (struct start){
            .rank = {.node = node, .me = i, .size = size, .arg = the->arg},
            .the = the};
    bool good =
        threads ? run_threads(starts, size) : run_processes(the, starts, size);
    ok(good, "%zu ranks: %s", size, the->name);
    for (size_t i = 0; i < size && !good; i++)
        if (*node->complaint[i])
            diag("%s", node->complaint[i]);
    munmap(node, sizeof(*node));
}

int node_run(const struct node_case *cases, size_t ncases, int argc,
             char **argv)
{
    bool threads = argc > 1 && !strcmp(argv[1], "threads");
    const char *part = argc > 2 ? argv[2] : "";
    for (size_t c = 0; c < ncases; c++)
        for (size_t s = 0; s < 4; s++)
            if (cases[c].sizes[s] && strstr(cases[c].name, part) &&
                !(threads && cases[c].kills))
                run_case(&cases[c], cases[c].sizes[s], threads);
    return tap_done();
}
