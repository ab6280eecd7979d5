/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.c - what a checkpoint costs, beside what the machine allows:
 *
 *   ckpt [DIR [MiB]]   in DIR (.), of so many MiB (1024)
 *
 * One rank:
 *
 * stall:   dt_ckpt_save_async against memcpy of the same tensors into shared
 *          memory whose pages are there; and, after the rounds, against
 *          torch.save to /dev/shm where there is one
 * drain:   from then until it is on disk, against O_DIRECT writes and fsync of
 *          as many bytes in the same directory, from huge pages and in large
 *          pieces, which is the fastest that one thread can do
 * removal: from then until the one before is gone, against unlink of as much
 * restore: dt_ckpt_load, checksums and all, against O_DIRECT reads of as many
 *          bytes into huge pages and in large pieces
 * read:    read() into the tensors, by way of the page cache, against the same
 *
 * Several ranks, each on a node of its own (dt-fork -n 6 -N 6 ckpt), which
 * share one disk and the MiB (384):
 *
 * parity:  from when the program may go on until data and parity of rs:4+2 are
 *          on the nodes' disks, against O_DIRECT writes and fsync of as many
 *          bytes, data and half as much, by all ranks at once
 * load:    dt_ckpt_load when all nodes are there, against O_DIRECT reads of as
 *          many bytes by all ranks at once
 * lost:    the same after the last node has lost its disk
 *
 * One after the other in each round, paired; the medians are printed, and the
 * median of the ratios. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job.h"

enum { TENSORS = 64, WARM = 3 };
#define CHUNK ((size_t)128 << 20)
#define HUGE  ((size_t)2 << 20)

struct bench {
    char *dir, *plain;
    size_t bytes; /* of one tensor */
    char *tensor[TENSORS];
    char *shared;  /* as much as all of them, its pages there */
    char *aligned; /* the same and half as much, private */
    int fd;        /* of plain */
    dt_ckpt_t ckpt;
};

enum {
    COPY,
    STALL,
    DIRECT,
    DRAIN,
    UNLINK,
    REMOVAL,
    FETCH,
    READ,
    LOAD,
    LOST,
    KINDS
};

static char *map(size_t size, int flags)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    need(at != MAP_FAILED, "mmap");
    return at;
}

/* In huge pages, where there are any. */
static char *map_huge(size_t size)
{
    char *at = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(at != MAP_FAILED, "mmap");
    at += HUGE - (uintptr_t)at % HUGE;
    madvise(at, size, MADV_HUGEPAGE);
    memset(at, 1, size);
    return at;
}

static dt_ckpt_t open_tensors(const struct bench *b)
{
    return open_all(b->dir, b->tensor, TENSORS, b->bytes);
}

/* A training step: everything changes. */
static void change(struct bench *b, int round)
{
    for (int i = 0; i < TENSORS; i++)
        for (size_t at = 0; at < b->bytes; at += 64)
            b->tensor[i][at] = (char)(round + 1);
}

static double time_copy(struct bench *b)
{
    double begun = now();
    for (int i = 0; i < TENSORS; i++)
        memcpy(b->shared + (size_t)i * b->bytes, b->tensor[i], b->bytes);
    return now() - begun;
}

static double time_unlink(const struct bench *b)
{
    double begun = now();
    unlink(b->plain);
    return now() - begun;
}

static double time_direct(struct bench *b, size_t total)
{
    double begun = now();
    int fd = open(b->plain, O_WRONLY | O_CREAT | O_DIRECT, 0600);
    if (fd < 0 && errno == EINVAL)
        fd = open(b->plain, O_WRONLY | O_CREAT, 0600);
    need(fd >= 0, b->plain);
    for (size_t at = 0; at < total; at += CHUNK) {
        size_t n = total - at < CHUNK ? total - at : CHUNK;
        need(write(fd, b->aligned + at, n) == (ssize_t)n, "write");
    }
    need(fsync(fd) == 0 && close(fd) == 0, "fsync");
    return now() - begun;
}

/* Have it read from the disk, as after a restart. */
static void forget(const char *path)
{
    int fd = open(path, O_RDONLY);
    need(fd >= 0, path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* Into huge pages, around the page cache where there is a way. */
static double time_fetch(struct bench *b)
{
    size_t total = TENSORS * b->bytes;
    forget(b->plain);
    double begun = now();
    int fd = open(b->plain, O_RDONLY | O_DIRECT);
    if (fd < 0 && errno == EINVAL)
        fd = open(b->plain, O_RDONLY);
    need(fd >= 0, b->plain);
    for (size_t at = 0; at < total; at += CHUNK) {
        size_t n = total - at < CHUNK ? total - at : CHUNK;
        need(pread(fd, b->aligned + at, n, (off_t)at) == (ssize_t)n, "read");
    }
    close(fd);
    return now() - begun;
}

static double time_read(struct bench *b)
{
    forget(b->plain);
    double begun = now();
    int fd = open(b->plain, O_RDONLY);
    need(fd >= 0, b->plain);
    for (int i = 0; i < TENSORS; i++)
        need(read(fd, b->tensor[i], b->bytes) == (ssize_t)b->bytes, "read");
    close(fd);
    return now() - begun;
}

/* Call fn for each thing in a directory, if it is there; how many those were.
 */
static int each(const char *dir, void (*fn)(const char *path))
{
    int count = 0;
    struct dirent *entry;
    DIR *stream = opendir(dir);
    while (stream && (entry = readdir(stream))) {
        char path[4096];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            !strcmp(entry->d_name, ".lock"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        if (fn)
            fn(path);
        count++;
    }
    if (stream)
        closedir(stream);
    return count;
}

static char *step_dir(const struct bench *b, int64_t step)
{
    char *path = NULL;
    need(asprintf(&path, "%s/step-%012lld", b->dir, (long long)step) > 0,
         "asprintf");
    return path;
}

static double load(const struct bench *b, int64_t step)
{
    char *path = step_dir(b, step);
    each(path, forget);
    free(path);
    dt_ckpt_t ckpt = open_tensors(b);
    double took = time_load(ckpt, step);
    dt_ckpt_close(ckpt);
    return took;
}

/* Until there is nothing but the newest. */
static double time_removal(const struct bench *b)
{
    double begun = now();
    while (each(b->dir, NULL) > 1)
        usleep(500);
    return now() - begun;
}

/* Freeing is over, and a copy has been made, before either writes. */
static void measure(struct bench *b, int round, double *took)
{
    took[UNLINK] = time_unlink(b);
    change(b, round);
    double begun = now();
    need(dt_ckpt_save_async(b->ckpt, round) == DT_SUCCESS, "save_async");
    took[STALL] = now() - begun;
    begun = now();
    need(dt_ckpt_wait(b->ckpt) == DT_SUCCESS, "wait");
    took[DRAIN] = now() - begun;
    took[REMOVAL] = time_removal(b);
    change(b, round);
    took[COPY] = time_copy(b);
    took[DIRECT] = time_direct(b, TENSORS * b->bytes);
}

static void print(const char *what, double gib, double took[KINDS][ROUNDS],
                  int ours, int limit, bool speed)
{
    double ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        ratio[i] = speed ? took[limit][i] / took[ours][i]
                         : took[ours][i] / took[limit][i];
    double a = median(took[ours]), b = median(took[limit]);
    printf("%-8s %8.1f ms %6.2f GiB/s   limit %8.1f ms %6.2f GiB/s   %s %.3f\n",
           what, 1e3 * a, gib / a, 1e3 * b, gib / b,
           speed ? "of the limit" : "x the limit", median(ratio));
}

/* PyTorch's time for the same, by the script beside this program's source. */
static void print_torch(size_t mib, const double *stall)
{
    char command[512], line[64] = "";
    snprintf(command, sizeof(command), "%s/torch-save.py %zu %d 2>/dev/null",
             BENCH_DIR, mib, TENSORS);
    FILE *script = popen(command, "r");
    bool said = script && fgets(line, sizeof(line), script);
    if (script)
        pclose(script);
    double ms = said ? strtod(line, NULL) : 0;
    if (ms > 0)
        printf("%-8s %8.1f ms, torch.save to /dev/shm %.1f ms   %.1f times as "
               "long\n",
               "stall", 1e3 * median(stall), ms, ms / 1e3 / median(stall));
    else
        printf("%-8s torch.save: none here\n", "stall");
}

static void run_alone(struct bench *b, size_t mib)
{
    double took[KINDS][ROUNDS], once[KINDS];
    b->ckpt = open_tensors(b);
    for (int i = -WARM; i < ROUNDS; i++) {
        measure(b, WARM + i, once);
        for (int k = 0; k < FETCH && i >= 0; k++)
            took[k][i] = once[k];
    }
    dt_ckpt_close(b->ckpt);
    for (int i = 0; i < ROUNDS; i++) {
        took[FETCH][i] = time_fetch(b);
        took[READ][i] = time_read(b);
        took[LOAD][i] = load(b, WARM + ROUNDS - 1);
    }
    double gib = (double)(TENSORS * b->bytes) / (1 << 30);
    printf("checkpoint of %zu MiB in %d tensors, one rank\n", mib, TENSORS);
    print("stall", gib, took, STALL, COPY, false);
    print_torch(mib, took[STALL]);
    print("drain", gib, took, DRAIN, DIRECT, true);
    print("removal", gib, took, REMOVAL, UNLINK, false);
    print("restore", gib, took, LOAD, FETCH, true);
    print("read", gib, took, READ, FETCH, true);
}

/* ---- several nodes ---- */

/* How long it was until the manifest was made, which says so. */
static double written_after(const struct bench *b, int64_t step)
{
    static const char key[] = "\"write_us\":";
    char *dir = step_dir(b, step), path[4096], text[65536];
    snprintf(path, sizeof(path), "%s/manifest.json", dir);
    free(dir);
    FILE *file = fopen(path, "r");
    need(file != NULL, path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(text, key);
    need(at != NULL, path);
    return strtod(at + sizeof(key) - 1, NULL) / 1e6;
}

static void measure_nodes(struct bench *b, int round, double *took)
{
    size_t total = TENSORS * b->bytes;
    change(b, round);
    dt_ckpt_t ckpt = open_tensors(b);
    meet();
    save_all(ckpt, round);
    took[DRAIN] = written_after(b, round);
    dt_ckpt_close(ckpt);
    time_unlink(b);
    meet();
    double begun = now();
    time_direct(b, total + total / 2);
    meet();
    took[DIRECT] = now() - begun;
    took[LOAD] = load(b, round);
    meet();
    begun = now();
    time_fetch(b);
    meet();
    took[FETCH] = now() - begun;
    if (dt_rank() == dt_size() - 1)
        clear(b->dir);
    took[LOST] = load(b, round);
}

static void run_nodes(struct bench *b, size_t mib)
{
    double took[KINDS][ROUNDS], once[KINDS];
    for (int i = -1; i < ROUNDS; i++) {
        measure_nodes(b, 1 + i, once);
        for (int k = 0; k < KINDS && i >= 0; k++)
            took[k][i] = once[k];
    }
    double gib = (double)((size_t)dt_size() * TENSORS * b->bytes) / (1 << 30);
    if (dt_rank() != 0)
        return;
    printf("checkpoint of %zu MiB, %d nodes on one disk, rs:4+2\n", mib,
           dt_num_nodes());
    print("parity", gib, took, DRAIN, DIRECT, true);
    print("load", gib, took, LOAD, FETCH, true);
    print("lost", gib, took, LOST, FETCH, true);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    const char *top = argc > 1 ? argv[1] : ".";
    char flush[4096];
    setenv("DT_RUN_ID", "bench-ckpt", 0);
    need(dt_init() == DT_SUCCESS, "dt_init");
    bool alone = dt_size() == 1;
    size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : alone ? 1024 : 384;
    b.bytes = (mib << 20) / TENSORS / (size_t)dt_size() / 4 * 4;
    need(b.bytes > 0, "so few MiB");
    need(asprintf(&b.dir, "%s/bench-ckpt.%d", top, (int)getpid()) > 0 &&
             asprintf(&b.plain, "%s.plain", b.dir) > 0,
         "asprintf");
    for (int i = 0; i < TENSORS; i++)
        b.tensor[i] = map(b.bytes, MAP_PRIVATE);
    b.shared = map(TENSORS * b.bytes, MAP_SHARED);
    b.aligned = map_huge(TENSORS * b.bytes / 2 * 3);
    snprintf(flush, sizeof(flush), "%s/bench-ckpt.flush", top);
    if (!alone) {
        setenv("DT_CKPT_FLUSH", flush, 1);
        setenv("DT_CKPT_REDUNDANCY", "rs:4+2", 1);
        run_nodes(&b, mib);
    } else {
        run_alone(&b, mib);
    }
    meet();
    clear(b.dir);
    rmdir(b.dir);
    if (!alone && dt_rank() == 0) {
        clear(flush);
        rmdir(flush);
    }
    unlink(b.plain);
    return dt_finalize() == DT_SUCCESS ? 0 : 1;
}
