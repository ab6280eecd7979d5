/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - cases of a transport's tests, each run by a few processes. */
#include "ranks.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

#define TRIES 4
#define TIME  300 /* seconds for one case */

/* ---- what a rank does ---- */

void complain(struct rank *r, int line, const char *fmt, ...)
{
    char *text = r->board->complaint[r->me];
    int n = snprintf(text, 400, "rank %zu, line %d: ", r->me, line);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, 400 - (size_t)n, fmt, ap);
    va_end(ap);
    _exit(1);
}

void barrier(struct rank *r)
{
    size_t wanted = ++r->board->entered[r->me];
    for (size_t i = 0; i < r->size; i++)
        while (r->board->entered[i] < wanted) {
            if (r->tl)
                r->ops->progress(r->tl);
            sched_yield();
        }
}

void resign(struct rank *r)
{
    r->board->entered[r->me] = SIZE_MAX;
}

void die(struct rank *r)
{
    resign(r);
    raise(SIGKILL);
    abort();
}

/* Unless the caller has named a network for UCX: between the processes of one
 * machine. There it watches a peer only if it is asked to. */
static void set_up_ucx(void)
{
    if (getenv("UCX_TLS"))
        return;
    setenv("UCX_TLS", "posix,cma,self", 1);
    setenv("UCX_POSIX_ERROR_HANDLING", "y", 1);
    setenv("UCX_KEEPALIVE_INTERVAL", "300ms", 1);
}

void open_tl(struct rank *r)
{
    struct dt_secret *secret = &r->board->secret[r->me];
    struct dt_tl_config config = {r->size, secret};
    if (r->ops == &dt_tl_ucx)
        set_up_ucx();
    NEED(dt_secret_draw(secret, &r->err) == DT_SUCCESS, "%s", r->err.text);
    NEED(r->ops->open(&config, &r->tl, &r->err) == DT_SUCCESS, "open: %s",
         r->err.text);
    const void *addr;
    size_t len;
    r->ops->address(r->tl, &addr, &len);
    NEED(len && len <= MAX_ADDR, "an address of %zu bytes", len);
    memcpy(r->board->addr[r->me], addr, len);
    r->board->addr_len[r->me] = len;
    r->board->pid[r->me] = getpid();
}

dt_result_t try_connect(struct rank *r)
{
    struct dt_tl_peer peers[MAX_RANKS] = {0};
    for (size_t i = 0; i < r->size; i++)
        if (i != r->me)
            peers[i] = (struct dt_tl_peer){
                r->board->addr[i], r->board->addr_len[i], &r->board->secret[i]};
    const struct dt_tl_world world = {r->me, r->size, peers};
    return r->ops->connect(r->tl, &world, &r->err);
}

void join(struct rank *r)
{
    open_tl(r);
    barrier(r);
    NEED(try_connect(r) == DT_SUCCESS, "connect: %s", r->err.text);
}

void leave(struct rank *r)
{
    r->ops->close(r->tl);
    r->tl = NULL;
}

void isend(struct rank *r, size_t peer, uint64_t tag, const void *buf,
           size_t len, struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){0};
    r->ops->isend(r->tl, peer, tag, buf, len, req);
}

void irecv(struct rank *r, size_t peer, uint64_t tag, void *buf, size_t len,
           struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){0};
    r->ops->irecv(r->tl, peer, tag, buf, len, req);
}

dt_result_t await(struct rank *r, struct dt_tl_req *req)
{
    for (unsigned turn = 1; req->status == DT_IN_PROGRESS; turn++) {
        if (!r->ops->progress(r->tl))
            sched_yield();
        if (turn % 64 == 0)
            r->ops->check(r->tl, &r->err);
    }
    return req->status;
}

size_t after(const struct rank *r)
{
    return (r->me + 1) % r->size;
}

size_t before(const struct rank *r)
{
    return (r->me + r->size - 1) % r->size;
}

void fill(char *buf, size_t len, size_t sender, uint64_t tag)
{
    uint64_t x = sender * 1000003 + tag * 7919 + len + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        buf[i] = (char)(x >> 56);
    }
}

bool filled(const char *buf, size_t len, size_t sender, uint64_t tag)
{
    uint64_t x = sender * 1000003 + tag * 7919 + len + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        if (buf[i] != (char)(x >> 56))
            return false;
    }
    return true;
}

char *memory(struct rank *r, size_t len)
{
    char *buf = malloc(len);
    NEED(buf, "no memory");
    return buf;
}

void greet_all(struct rank *r)
{
    struct dt_tl_req sends[MAX_RANKS], recvs[MAX_RANKS];
    char out = (char)r->me, in[MAX_RANKS];
    for (size_t i = 0; i < r->size; i++)
        if (i != r->me) {
            irecv(r, i, 77, &in[i], 1, &recvs[i]);
            isend(r, i, 77, &out, 1, &sends[i]);
        }
    for (size_t i = 0; i < r->size; i++)
        if (i != r->me) {
            NEED_DONE(&recvs[i]);
            NEED_DONE(&sends[i]);
            NEED(in[i] == (char)i, "greeting");
        }
    barrier(r);
}

size_t victim(const struct rank *r)
{
    return r->size - 1;
}

void await_death(struct rank *r, size_t rank)
{
    int pidfd = (int)syscall(SYS_pidfd_open, (int)r->board->pid[rank], 0);
    struct pollfd poll_one = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0) {
        NEED(errno == ESRCH, "pidfd_open: %s", strerror(errno));
        return;
    }
    while (poll(&poll_one, 1, 10) == 0)
        r->ops->progress(r->tl);
    close(pidfd);
}

void need_failed(struct rank *r, struct dt_tl_req *req, const char *reason)
{
    dt_result_t result = await(r, req);
    NEED(result == DT_ERR_PROC_FAILED, "%s instead", dt_strerror(result));
    result = r->ops->check(r->tl, &r->err);
    NEED(result == DT_ERR_PROC_FAILED, "check: %s", dt_strerror(result));
    NEED(strstr(r->err.text, reason), "'%s' lacks '%s'", r->err.text, reason);
    struct dt_tl_req more;
    char byte = 0;
    irecv(r, after(r), 1000, &byte, 1, &more);
    NEED(more.status == DT_ERR_PROC_FAILED, "a later receive");
    isend(r, after(r), 1000, &byte, 1, &more);
    NEED(more.status == DT_ERR_PROC_FAILED, "a later send");
}

void set_trap(struct rank *r, struct trap *trap, size_t peer, uint64_t tag,
              size_t len)
{
    trap->len = len;
    trap->buf = mmap(NULL, len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(trap->buf != MAP_FAILED, "mmap");
    irecv(r, peer, tag, trap->buf, len, &trap->req);
}

void spring_trap(struct rank *r, struct trap *trap, const char *reason)
{
    need_failed(r, &trap->req, reason);
    NEED(!mprotect(trap->buf, trap->len, PROT_NONE), "mprotect");
    for (int i = 0; i < 300; i++) {
        r->ops->progress(r->tl);
        r->ops->check(r->tl, &r->err);
        if (i % 10 == 0)
            usleep(100);
    }
}

/* ---- running them ---- */

static void run_rank(const struct dt_tl_ops *ops, const struct tl_case *the,
                     struct board *board, size_t me, size_t size, int log)
{
    struct rank r = {.ops = ops, .board = board, .me = me, .size = size};
    alarm(TIME);
    dup2(log, STDOUT_FILENO); /* where UCX logs */
    dup2(log, STDERR_FILENO);
    the->run(&r);
    exit(0); /* not _exit: a leak checker has its say */
}

static void show(FILE *log)
{
    char line[400];
    for (int n = 0; n < 40 && fgets(line, sizeof(line), log); n++) {
        line[strcspn(line, "\n")] = 0;
        diag("output: %s", line);
    }
}

/* UCX 1.13 can fail an assertion of its own when a peer dies while they
 * connect: that tells nothing of us. */
static bool ucx_gave_up(FILE *log)
{
    char line[400];
    bool found = false;
    rewind(log);
    while (!found && fgets(line, sizeof(line), log))
        found =
            *line == '[' && strstr(line, ".c:") && strstr(line, "Assertion");
    return found;
}

/* Did all end as they should? One that complains takes the others with it. */
static bool wait_for_all(const struct tl_case *the, size_t size, pid_t *pids,
                         int *status)
{
    bool good = true;
    for (size_t left = size; left;) {
        int st;
        pid_t pid = wait(&st);
        for (size_t i = 0; i < size; i++) {
            if (pids[i] != pid)
                continue;
            left--;
            pids[i] = -1;
            status[i] = st;
            bool fine = the->kills && i == size - 1
                            ? WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL
                            : WIFEXITED(st) && WEXITSTATUS(st) == 0;
            for (size_t k = 0; k < size && !fine && good; k++)
                if (pids[k] > 0)
                    kill(pids[k], SIGKILL);
            good = good && fine;
        }
    }
    return good;
}

/* False: it is to be run once more. */
static bool run_case(const struct dt_tl_ops *ops, const struct tl_case *the,
                     size_t size, bool last)
{
    FILE *log = tmpfile();
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!log || board == MAP_FAILED) {
        ok(false, "set up: %s", strerror(errno));
        return true;
    }
    fflush(stdout); /* or each child has a copy to print */
    pid_t pids[MAX_RANKS];
    int status[MAX_RANKS];
    for (size_t i = 0; i < size; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            run_rank(ops, the, board, i, size, fileno(log));
    }
    bool good = wait_for_all(the, size, pids, status);
    bool quiet = fseek(log, 0, SEEK_END) == 0 && ftell(log) == 0;
    bool again = !good && the->kills && !last && ucx_gave_up(log);
    if (again)
        goto unmap;
    ok(good && (quiet || the->loud), "%s, %zu ranks: %s", ops->name, size,
       the->name);
    for (size_t i = 0; i < size && !good; i++)
        diag("rank %zu: status %#x %s", i, (unsigned)status[i],
             board->complaint[i]);
    rewind(log);
    if (!good || !the->loud)
        show(log);
unmap:
    fclose(log);
    munmap(board, sizeof(*board));
    return !again;
}

static void run_some_times(const struct dt_tl_ops *ops,
                           const struct tl_case *the, size_t size)
{
    for (int try = 1; !run_case(ops, the, size, try == TRIES); try++)
        continue;
}

int run_cases(const struct tl_case *cases, size_t ncases,
              const struct dt_tl_ops *const *transports, char **argv)
{
    static const size_t sizes[] = {2, 3, MAX_RANKS};
    const char *only = argv[1];
    const char *part = only && argv[2] ? argv[2] : "";
    size_t most =
        only && argv[2] && argv[3] ? strtoul(argv[3], NULL, 10) : MAX_RANKS;
    for (; *transports; transports++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            for (size_t c = 0; c < ncases; c++)
                if (!(cases[c].early && *transports == &dt_tl_ucx) &&
                    (!only || !strcmp(only, (*transports)->name)) &&
                    strstr(cases[c].name, part) && sizes[s] <= most)
                    run_some_times(*transports, &cases[c], sizes[s]);
    return tap_done();
}
