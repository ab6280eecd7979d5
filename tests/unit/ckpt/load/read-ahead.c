/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* read-ahead.c - reading ahead: the right bytes and no others, the same errors
 * as without, an end at any time; and that a load makes use of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/job.h"
#include "../support/state.h"
#include "ckpt/load/read_ahead.h"
#include "../../tap.h"

#define SIZE  ((size_t)60 << 20) /* more than all windows */
#define BLOCK ((size_t)DT_MANIFEST_BLOCK)

/* ---- pread, watched ---- */

static struct {
    int error;   /* reads fail so, or with 0 find the end of the file, ... */
    off_t at;    /* ... when they want this byte; -1: never */
    bool refuse; /* O_DIRECT is accepted, but does not work */
    size_t bytes, direct;
} watch = {.at = -1};

ssize_t __real_pread(int fd, void *buf, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset);

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset)
{
    bool direct = fcntl(fd, F_GETFL) & O_DIRECT;
    __atomic_fetch_add(&watch.bytes, len, __ATOMIC_RELAXED);
    __atomic_fetch_add(&watch.direct, direct, __ATOMIC_RELAXED);
    if (direct && watch.refuse) {
        errno = EINVAL;
        return -1;
    }
    if (watch.at >= offset && watch.at < offset + (off_t)len) {
        errno = watch.error;
        return watch.error ? -1 : 0;
    }
    return __real_pread(fd, buf, len, offset);
}

static void watch_begin(void)
{
    watch.at = -1;
    watch.refuse = false;
    watch.bytes = watch.direct = 0;
}

/* ---- files that are not in memory ---- */

static unsigned char byte_at(int file, size_t at)
{
    return (unsigned char)(at * 7 + (at >> 12) * 13 + (size_t)file);
}

static void forget(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDWR);
    if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
        abort();
    close(fd);
}

/* A source of two files, whose last bytes are no whole page. */
static void make_source(struct dt_source *source, const char *dir)
{
    char *text = malloc(SIZE);
    *source = (struct dt_source){.fd = open(dir, O_RDONLY | O_DIRECTORY)};
    source->manifest.nfiles = 2;
    source->manifest.file = calloc(2, sizeof(*source->manifest.file));
    for (int f = 0; f < 2; f++) {
        struct dt_manifest_file *file = &source->manifest.file[f];
        sprintf(file->name, "file-%d", f);
        file->size = f ? SIZE / 8 - 1001 : SIZE - 3;
        for (size_t i = 0; i < file->size; i++)
            text[i] = (char)byte_at(f, i);
        int fd = openat(source->fd, file->name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0 || write(fd, text, file->size) != (ssize_t)file->size)
            abort();
        close(fd);
        forget(source->fd, file->name);
    }
    free(text);
}

static void close_source(struct dt_source *source)
{
    close(source->fd);
    free(source->manifest.file);
}

/* Can the test have a file that is only on a disk, and read it from there? */
static bool has_disk(const struct dt_source *source)
{
    unsigned char there = 1;
    int fd = openat(source->fd, "file-0", O_RDONLY | O_DIRECT);
    if (fd < 0)
        return false;
    void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, SIZE / 2);
    bool known = at != MAP_FAILED && mincore(at, 4096, &there) == 0;
    munmap(at, 4096);
    close(fd);
    return known && !(there & 1);
}

/* ---- the reader alone ---- */

struct plan {
    size_t n, bytes;
    struct {
        int file;
        size_t offset, len;
    } block[200];
};

static void want(struct plan *plan, int file, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += BLOCK) {
        size_t len = to - at < BLOCK ? to - at : BLOCK;
        plan->block[plan->n].file = file;
        plan->block[plan->n].offset = at;
        plan->block[plan->n++].len = len;
        plan->bytes += len;
    }
}

/* Tensors end to end from an odd byte on, one left out, small ones far from
 * each other, another file to its end. */
static void make_plan(struct plan *plan, const struct dt_source *source)
{
    *plan = (struct plan){0};
    want(plan, 0, 1003, 9 * BLOCK + 17);
    want(plan, 0, 9 * BLOCK + 17, 9 * BLOCK + 40);
    want(plan, 0, 9 * BLOCK + 48, 10 * BLOCK);
    want(plan, 0, 12 * BLOCK - 5, 13 * BLOCK);
    for (size_t i = 0; i < 20; i++)
        want(plan, 0, 13 * BLOCK + i * 20000 + 3, 13 * BLOCK + i * 20000 + 99);
    want(plan, 0, 14 * BLOCK, source->manifest.file[0].size);
    want(plan, 1, 8, source->manifest.file[1].size);
}

static struct dt_read_ahead *begin(const struct dt_source *source,
                                   const struct plan *plan, bool *started)
{
    struct dt_read_ahead *ahead = NULL;
    if (dt_read_ahead_open(&ahead, source, NULL) != DT_SUCCESS)
        abort();
    for (size_t i = 0; i < plan->n; i++)
        if (dt_read_ahead_add(ahead, plan->block[i].file, plan->block[i].offset,
                              plan->block[i].len, NULL) != DT_SUCCESS)
            abort();
    *started = dt_read_ahead_start(ahead);
    return ahead;
}

/* Take all; *right of them came, and were. */
static dt_result_t take_all(struct dt_read_ahead *ahead,
                            const struct plan *plan, size_t *right,
                            struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    *right = 0;
    for (size_t i = 0; i < plan->n && rc == DT_SUCCESS; i++) {
        char *data;
        rc = dt_read_ahead_take(ahead, &data, err);
        bool same = rc == DT_SUCCESS;
        for (size_t k = 0; k < plan->block[i].len && same; k++)
            same = (unsigned char)data[k] ==
                   byte_at(plan->block[i].file, plan->block[i].offset + k);
        *right += same;
    }
    return rc;
}

static void test_bytes(const struct dt_source *source, const struct plan *plan)
{
    bool started;
    size_t right = 0;
    char *more;
    struct dt_error err = {0};
    forget(source->fd, "file-0");
    forget(source->fd, "file-1");
    watch_begin();
    struct dt_read_ahead *ahead = begin(source, plan, &started);
    dt_result_t rc = take_all(ahead, plan, &right, &err);
    ok(started && rc == DT_SUCCESS && right == plan->n,
       "%zu of %zu blocks as they are in the file", right, plan->n);
    ok(watch.direct > 4, "%zu reads around the page cache", watch.direct);
    ok(watch.bytes < plan->bytes + 20 * 8192, "of %zu bytes, %zu were wanted",
       watch.bytes, plan->bytes);
    ok(dt_read_ahead_take(ahead, &more, &err) == DT_ERR_INVALID_ARG,
       "and that is all: %s", err.text);
    dt_read_ahead_close(ahead);
}

static void test_refused(const struct dt_source *source,
                         const struct plan *plan)
{
    bool started;
    size_t right = 0;
    forget(source->fd, "file-0");
    watch_begin();
    watch.refuse = true;
    struct dt_read_ahead *ahead = begin(source, plan, &started);
    ok(started && take_all(ahead, plan, &right, NULL) == DT_SUCCESS &&
           right == plan->n && watch.direct > 0,
       "all come the plain way where the other does not work");
    dt_read_ahead_close(ahead);
}

/* The byte `at` of file 0 cannot be read. */
static void test_error(const struct dt_source *source, const struct plan *plan,
                       size_t at, int error, const char *says)
{
    bool started;
    size_t right = 0, before = 0;
    struct dt_error err = {0};
    while (plan->block[before].offset + plan->block[before].len <= at)
        before++;
    forget(source->fd, "file-0");
    watch_begin();
    watch.error = error;
    watch.at = (off_t)at;
    struct dt_read_ahead *ahead = begin(source, plan, &started);
    dt_result_t rc = take_all(ahead, plan, &right, &err);
    ok(started && rc == DT_ERR_CORRUPT && !strcmp(err.text, says),
       "byte %zu: %s", at, err.text);
    ok(right == before, "after %zu good blocks of %zu", right, before);
    dt_read_ahead_close(ahead);
    watch_begin();
}

/* The thread waits for a window, or reads. */
static void test_end(const struct dt_source *source, const struct plan *plan)
{
    bool started;
    int times = 0;
    for (size_t take = 0; take < 12; take++) {
        struct plan part = *plan;
        size_t right;
        forget(source->fd, "file-0");
        struct dt_read_ahead *ahead = begin(source, plan, &started);
        part.n = take;
        times += started && take_all(ahead, &part, &right, NULL) == DT_SUCCESS;
        dt_read_ahead_close(ahead);
    }
    ok(times == 12, "ended %d times before all was taken", times);
    dt_read_ahead_close(NULL);
}

static void test_declined(const struct dt_source *source)
{
    struct plan little = {0}, much = {0};
    bool started;
    want(&little, 1, 0, 5 << 20);
    dt_read_ahead_close(begin(source, &little, &started));
    ok(!started, "not for 5 MiB");
    want(&much, 0, 0, SIZE / 2);
    char *text = malloc(SIZE / 2);
    int fd = openat(source->fd, "file-0", O_RDONLY);
    if (read(fd, text, SIZE / 2) != (ssize_t)SIZE / 2)
        abort();
    close(fd);
    free(text);
    dt_read_ahead_close(begin(source, &much, &started));
    ok(!started, "nor for what is in memory");
}

/* ---- a load ---- */

static void forget_rank(const char *dir, int rank, int size)
{
    char name[64];
    int dirfd = state_dirfd(dir, 1);
    snprintf(name, sizeof(name), "rank-%05d-of-%05d.safetensors", rank, size);
    forget(dirfd, name);
    close(dirfd);
}

/* How it ends when a read of the last byte fails. */
static int load_broken(struct state *state, bool forgotten)
{
    long size = state_size(state->dir[1], 1, 0);
    if (forgotten)
        forget_rank(state->dir[1], 0, 1);
    watch_begin();
    watch.error = EIO;
    watch.at = size - 1;
    ckpt_stderr_begin();
    int rc = state_load(state, 1);
    ckpt_stderr_end();
    watch.at = -1;
    return rc;
}

static void test_load(void)
{
    char *dir = ckpt_temp_dir(), text[512];
    struct state state = {.dir = {NULL, dir}, .wide = true};
    state_write(dir, &state, 1, 1);
    forget_rank(dir, 0, 1);
    watch_begin();
    ok(state_load(&state, 1) == DT_SUCCESS && state.right && watch.direct > 0,
       "a rank that is alone on its node loads so");
    int rc = load_broken(&state, true);
    memcpy(text, state.text, sizeof(text));
    ok(rc == DT_ERR_CORRUPT && watch.direct > 0 &&
           load_broken(&state, false) == rc && !strcmp(text, state.text),
       "what cannot be read is named as without: %s", text);
    for (int part = 0; part < 8; part++) {
        long at = state_size(dir, 1, 0) * part / 8 + 100000;
        state_flip(dir, 1, 0, at);
        forget_rank(dir, 0, 1);
        ckpt_stderr_begin();
        rc = state_load(&state, 1);
        const char *said = ckpt_stderr_end();
        if (rc != DT_ERR_CORRUPT || !strstr(said, "checksum differs in"))
            break;
        state_flip(dir, 1, 0, at);
    }
    ok(rc == DT_ERR_CORRUPT, "damage is found: %s", state.text);
    watch_begin();
    forget_rank(dir, 0, 1);
    ok(state_load(&state, 2) == DT_SUCCESS && state.right && watch.direct == 0,
       "two ranks on a node share the page cache");
    ckpt_remove_tree(dir);
}

int main(void)
{
    struct dt_source source;
    struct plan plan;
    alarm(600);
    char *dir = ckpt_temp_dir();
    make_source(&source, dir);
    make_plan(&plan, &source);
    if (!has_disk(&source)) {
        ckpt_remove_tree(dir);
        return skip_all("no file system with O_DIRECT in TMPDIR");
    }
    test_bytes(&source, &plan);
    test_refused(&source, &plan);
    test_error(&source, &plan, 1003, EIO, "file-0: Input/output error");
    test_error(&source, &plan, 6 * BLOCK, EIO, "file-0: Input/output error");
    test_error(&source, &plan, SIZE - 4, 0, "file-0: truncated");
    test_end(&source, &plan);
    test_declined(&source);
    test_load();
    close_source(&source);
    ckpt_remove_tree(dir);
    return tap_done();
}
