/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* limits.c - what this machine could do:
 *
 *   limits FILE node SIZE ...    two processes on two cores:
 *     "flag 4 US"                a flag written by one, seen by the other
 *     "memcpy SIZE US"           both copy SIZE bytes at once
 *     "shared SIZE US"           two flags, and each adds one half of what both
 *                                have just written, for both: an allreduce
 *                                where each reads and writes the other's memory
 *     "private SIZE US"          the same and a memcpy of SIZE bytes, half of
 * it in and half out; or piece by piece through slots that stay in the caches,
 * if that is less limits FILE link IFACE BYTES  one process on each node,
 * started by srun: "link BYTES US"            all send to the next and receive
 * at once
 *
 * FILE is the empty file of board.h. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"

enum { REPEATS = 15, PINGS = 2000, PIECE = 16384, SLOTS = 16 };

struct flags {
    _Alignas(128) _Atomic uint32_t flag[2][32];
};

/* of each process: its buffers, and the slots through which the other gets
 * what it sends and what it has added */
struct pair {
    struct meeting meeting;
    float *in[2], *out[2], *sent[2], *sum[2];
    struct flags *flags;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *map(size_t bytes)
{
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (mem == MAP_FAILED)
        die("limits: mmap");
    return mem;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* the median of the longer of the two */
static double measure(struct pair *p, void (*work)(struct pair *, size_t),
                      size_t size)
{
    struct meeting *m = &p->meeting;
    struct board_rank *mine = &m->board->rank[m->rank], *all = m->board->rank;
    double us[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        memset(p->in[m->rank], i, size);
        memset(p->out[m->rank], i, size);
        mine->begin[i] = meeting_wait(m);
        work(p, size);
        mine->end[i] = ticks();
        meeting_wait(m);
        uint64_t end =
            all[0].end[i] > all[1].end[i] ? all[0].end[i] : all[1].end[i];
        us[i] = (double)(end - mine->begin[i]) / m->board->ticks_per_us;
    }
    qsort(us, REPEATS, sizeof(*us), by_value);
    return us[REPEATS / 2];
}

static void ping(struct pair *p, size_t size)
{
    int me = p->meeting.rank;
    (void)size;
    uint32_t base = atomic_load(&p->flags->flag[me][0]);
    for (uint32_t i = 1; i <= PINGS; i++) {
        if (me == 0)
            atomic_store(&p->flags->flag[0][0], base + i);
        while (atomic_load(&p->flags->flag[!me][0]) != base + i)
            ;
        if (me == 1)
            atomic_store(&p->flags->flag[1][0], base + i);
    }
}

static void copy(struct pair *p, size_t size)
{
    memcpy(p->out[p->meeting.rank], p->in[p->meeting.rank], size);
}

__attribute__((optimize("O3"))) static void
add(float *restrict x, float *restrict y, const float *restrict a,
    const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = y[i] = a[i] + b[i];
}

static void add_shared(struct pair *p, size_t size)
{
    size_t half = size / sizeof(float) / 2;
    size_t at = p->meeting.rank == 0 ? 0 : half;
    add(p->out[0] + at, p->out[1] + at, p->in[0] + at, p->in[1] + at, half);
}

/* No rank waits for another, so the sums are undefined: only the work counts.
 */
static void add_private(struct pair *p, size_t size)
{
    int me = p->meeting.rank;
    size_t half = size / sizeof(float) / 2;
    float *in = p->in[me], *out = p->out[me];
    const float *theirs = in + (me == 0 ? half : 0);
    const float *mine = in + (me == 0 ? 0 : half);
    for (size_t done = 0; done < half; done += PIECE) {
        size_t n = half - done < PIECE ? half - done : PIECE;
        size_t slot = done % (SLOTS * PIECE);
        memcpy(p->sent[me] + slot, theirs + done, n * sizeof(float));
        add(out + (mine - in) + done, p->sum[me] + slot, mine + done,
            p->sent[!me] + slot, n);
        memcpy(out + (theirs - in) + done, p->sum[!me] + slot,
               n * sizeof(float));
    }
}

/* Both processes see all pages before anything is timed. */
static void touch(struct pair *p, size_t size)
{
    for (int turn = 0; turn < 2; turn++) {
        meeting_wait(&p->meeting);
        for (int i = 0; turn == p->meeting.rank && i < 2; i++) {
            memset(p->in[i], 0, size);
            memset(p->out[i], 0, size);
            memset(p->sent[i], 0, SLOTS * PIECE * sizeof(float));
            memset(p->sum[i], 0, SLOTS * PIECE * sizeof(float));
        }
    }
}

static void measure_node(struct pair *p, char **sizes)
{
    double flag = measure(p, ping, 4) / PINGS / 2;
    bool speaks = p->meeting.rank == 0;
    if (speaks)
        printf("flag 4 %.4g\n", flag);
    for (; *sizes; sizes++) {
        size_t size = strtoull(*sizes, NULL, 10);
        double whole = measure(p, copy, size);
        double shared = measure(p, add_shared, size) + 2 * flag;
        double private = measure(p, add_private, size) + 2 * flag;
        if (private > shared + whole)
        private = shared + whole;
        if (speaks)
            printf("memcpy %zu %.4g\nshared %zu %.4g\nprivate %zu %.4g\n", size,
                   whole, size, shared, size, private);
    }
}

static int node(const char *file, char **sizes)
{
    struct pair p;
    size_t largest = 4096;
    for (char **s = sizes; *s; s++)
        if (strtoull(*s, NULL, 10) > largest)
            largest = strtoull(*s, NULL, 10);
    for (int i = 0; i < 2; i++) {
        p.in[i] = map(largest);
        p.out[i] = map(largest);
        p.sent[i] = map(SLOTS * PIECE * sizeof(float));
        p.sum[i] = map(SLOTS * PIECE * sizeof(float));
    }
    p.flags = map(sizeof(*p.flags));
    pid_t child = fork();
    if (child < 0)
        die("limits: fork");
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(child == 0, &core);
    if (sched_setaffinity(0, sizeof(core), &core))
        die("limits: two cores are needed");
    meeting_open(&p.meeting, file, child == 0, 2, false);
    touch(&p, largest);
    measure_node(&p, sizes);
    fflush(stdout);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}

static int listen_on(const char *iface, char *name, size_t len)
{
    struct ifaddrs *list, *it;
    struct sockaddr_in at = {0};
    socklen_t size = sizeof(at);
    if (getifaddrs(&list))
        die("limits: getifaddrs");
    for (it = list; it; it = it->ifa_next)
        if (it->ifa_addr && it->ifa_addr->sa_family == AF_INET &&
            !strcmp(it->ifa_name, iface))
            memcpy(&at, it->ifa_addr, sizeof(at));
    freeifaddrs(list);
    at.sin_port = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
        listen(fd, 1) || getsockname(fd, (struct sockaddr *)&at, &size))
        die(iface);
    snprintf(name, len, "%s %d", inet_ntoa(at.sin_addr), ntohs(at.sin_port));
    return fd;
}

static int connect_to(const char *name)
{
    char address[32];
    int port, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET};
    if (sscanf(name, "%31s %6d", address, &port) != 2)
        exit(1);
    to.sin_port = htons((uint16_t)port);
    if (fd < 0 || inet_aton(address, &to.sin_addr) == 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)))
        die(name);
    return fd;
}

static void stream(int fd, ssize_t (*move)(int, void *, size_t), size_t bytes)
{
    static char piece[1 << 18];
    while (bytes > 0) {
        size_t n = bytes < sizeof(piece) ? bytes : sizeof(piece);
        ssize_t done = move(fd, piece, n);
        if (done <= 0)
            die("limits: stream");
        bytes -= (size_t)done;
    }
}

static ssize_t put(int fd, void *data, size_t n)
{
    return write(fd, data, n);
}

static double exchange(struct meeting *m, int to, int from, size_t bytes)
{
    struct board_rank *rank = m->board->rank;
    uint64_t end = 0;
    meeting_wait(m);
    uint64_t begin = ticks();
    pid_t child = fork();
    if (child == 0) {
        stream(to, put, bytes);
        _exit(0);
    }
    stream(from, read, bytes);
    rank[m->rank].end[0] = ticks();
    waitpid(child, NULL, 0);
    meeting_wait(m);
    for (int r = 0; r < m->size; r++)
        end = rank[r].end[0] > end ? rank[r].end[0] : end;
    return (double)(end - begin) / m->board->ticks_per_us;
}

static int link_rate(const char *file, const char *iface, size_t bytes)
{
    const char *me = getenv("SLURM_PROCID"), *all = getenv("SLURM_NTASKS");
    struct meeting m;
    double us[5];
    if (!me || !all)
        return 64;
    meeting_open(&m, file, atoi(me), atoi(all), true);
    struct board_rank *rank = m.board->rank;
    int listener = listen_on(iface, rank[m.rank].host, sizeof(rank->host));
    meeting_wait(&m);
    int to = connect_to(rank[(m.rank + 1) % m.size].host);
    int from = accept(listener, NULL, NULL);
    exchange(&m, to, from, bytes / 8);
    for (int i = 0; i < 3; i++)
        us[i] = exchange(&m, to, from, bytes);
    qsort(us, 3, sizeof(*us), by_value);
    if (m.rank == 0)
        printf("link %zu %.6g\n", bytes, us[1]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3 && !strcmp(argv[2], "node"))
        return node(argv[1], argv + 3);
    if (argc == 5 && !strcmp(argv[2], "link"))
        return link_rate(argv[1], argv[3], strtoull(argv[4], NULL, 10));
    fprintf(stderr, "usage: limits FILE node SIZE ... | link IFACE BYTES\n");
    return 64;
}
