/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.c - what a checkpoint costs, beside what the machine allows:
 *
 *   ckpt [DIR [MiB]]   in DIR (.), of so many MiB (1024)
 *
 * stall:   dt_ckpt_save_async against memcpy of the same tensors into shared
 *          memory whose pages are there; and, after the rounds, against
 *          torch.save to /dev/shm where there is one
 * drain:   from then until it is on disk, against O_DIRECT writes and fsync of
 *          as many bytes in the same directory
 * restore: dt_ckpt_load, checksums and all, against reading as many bytes
 *
 * One after the other in each round, paired; the medians are printed, and the
 * median of the ratios. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dt.h"

enum { TENSORS = 64, WARM = 3, ROUNDS = 7 };
#define CHUNK ((size_t)8 << 20)

struct bench {
    char *dir, *plain;
    size_t bytes; /* of one tensor */
    char *tensor[TENSORS];
    char *shared;  /* as much as all of them, its pages there */
    char *aligned; /* the same, private */
    int fd;        /* of plain */
    dt_ckpt_t ckpt;
};

enum { COPY, STALL, DIRECT, DRAIN, READ, LOAD, KINDS };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "tests/bench/ckpt: %s: %s\n", what,
                *dt_last_error() ? dt_last_error() : strerror(errno));
        exit(1);
    }
}

static char *map(size_t size, int flags)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    need(at != MAP_FAILED, "mmap");
    return at;
}

static dt_ckpt_t open_all(struct bench *b)
{
    dt_ckpt_t ckpt = NULL;
    int64_t shape[] = {(int64_t)b->bytes / 4};
    need(dt_ckpt_open(b->dir, 1, &ckpt) == DT_SUCCESS, "open");
    for (int i = 0; i < TENSORS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "t%d", i);
        need(dt_ckpt_add_tensor(ckpt, name, b->tensor[i], DT_DTYPE_F32, 1,
                                shape, 0) == DT_SUCCESS,
             "add");
    }
    return ckpt;
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

static double time_direct(struct bench *b)
{
    size_t total = TENSORS * b->bytes;
    unlink(b->plain);
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

static double time_load(struct bench *b, int64_t step)
{
    char path[4096];
    int64_t found = 0;
    snprintf(path, sizeof(path),
             "%s/step-%012lld/rank-00000-of-00001.safetensors", b->dir,
             (long long)step);
    forget(path);
    dt_ckpt_t ckpt = open_all(b);
    double begun = now();
    need(dt_ckpt_load(ckpt, &found) == DT_SUCCESS && found == step, "load");
    double took = now() - begun;
    dt_ckpt_close(ckpt);
    return took;
}

static void measure(struct bench *b, int round, double *took)
{
    change(b, round);
    took[COPY] = time_copy(b);
    double begun = now();
    need(dt_ckpt_save_async(b->ckpt, round) == DT_SUCCESS, "save_async");
    took[STALL] = now() - begun;
    begun = now();
    need(dt_ckpt_wait(b->ckpt) == DT_SUCCESS, "wait");
    took[DRAIN] = now() - begun;
    took[DIRECT] = time_direct(b);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *value)
{
    double sorted[ROUNDS];
    memcpy(sorted, value, sizeof(sorted));
    qsort(sorted, ROUNDS, sizeof(*sorted), rising);
    return sorted[ROUNDS / 2];
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

int main(int argc, char **argv)
{
    struct bench b = {0};
    double took[KINDS][ROUNDS], once[KINDS];
    size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 1024;
    setenv("DT_RUN_ID", "bench-ckpt", 0);
    b.bytes = (mib << 20) / TENSORS;
    need(mib >= TENSORS && dt_init() == DT_SUCCESS, "dt_init");
    need(asprintf(&b.dir, "%s/bench-ckpt.%d", argc > 1 ? argv[1] : ".",
                  (int)getpid()) > 0 &&
             asprintf(&b.plain, "%s.plain", b.dir) > 0,
         "asprintf");
    for (int i = 0; i < TENSORS; i++)
        b.tensor[i] = map(b.bytes, MAP_PRIVATE);
    b.shared = map(TENSORS * b.bytes, MAP_SHARED);
    b.aligned = map(TENSORS * b.bytes, MAP_PRIVATE);
    b.ckpt = open_all(&b);
    for (int i = -WARM; i < ROUNDS; i++) {
        measure(&b, WARM + i, once);
        for (int k = 0; k < READ && i >= 0; k++)
            took[k][i] = once[k];
    }
    dt_ckpt_close(b.ckpt);
    for (int i = 0; i < ROUNDS; i++) {
        took[READ][i] = time_read(&b);
        took[LOAD][i] = time_load(&b, WARM + ROUNDS - 1);
    }
    double gib = (double)(TENSORS * b.bytes) / (1 << 30);
    printf("checkpoint of %zu MiB in %d tensors, one rank\n", mib, TENSORS);
    print("stall", gib, took, STALL, COPY, false);
    print_torch(mib, took[STALL]);
    print("drain", gib, took, DRAIN, DIRECT, true);
    print("restore", gib, took, LOAD, READ, true);
    char *command = NULL;
    if (asprintf(&command, "%s/step-%012d/", b.dir, WARM + ROUNDS - 1) > 0) {
        static const char *const names[] = {
            "manifest.json", "rank-00000-of-00001.safetensors", ""};
        for (int i = 0; i < 3; i++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s%s", command, names[i]);
            remove(path);
        }
    }
    rmdir(b.dir);
    unlink(b.plain);
    return dt_finalize() == DT_SUCCESS ? 0 : 1;
}
