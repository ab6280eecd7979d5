/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* faulty-calls.c - the system calls that change a file system, counted. */
#include "faulty-calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define DIRTY_MAX 64

/* A rename that is not on disk yet. */
struct renamed {
    int dirfd; /* a duplicate */
    char from[128], to[128];
    bool exchange;
};

static struct {
    pthread_mutex_t lock;
    bool on;
    struct faults faults;
    int count, chops;
    int dirty[DIRTY_MAX], dirty_count; /* duplicates of descriptors */
    struct renamed renamed[DIRTY_MAX];
    int renamed_count;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

int __real_mkdirat(int dirfd, const char *name, mode_t mode);
int __real_openat(int dirfd, const char *name, int flags, ...);
ssize_t __real_write(int fd, const void *buf, size_t len);
int __real_fsync(int fd);
int __real_renameat(int from, const char *a, int to, const char *b);
int __real_renameat2(int from, const char *a, int to, const char *b,
                     unsigned flags);
int __real_unlinkat(int dirfd, const char *name, int flags);
ssize_t __real_pread(int fd, void *buf, size_t len, off_t offset);

int __wrap_mkdirat(int dirfd, const char *name, mode_t mode);
int __wrap_openat(int dirfd, const char *name, int flags, ...);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
int __wrap_fsync(int fd);
int __wrap_renameat(int from, const char *a, int to, const char *b);
int __wrap_renameat2(int from, const char *a, int to, const char *b,
                     unsigned flags);
int __wrap_unlinkat(int dirfd, const char *name, int flags);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset);

void faults_begin(const struct faults *faults)
{
    state.faults = *faults;
    state.count = 0;
    state.on = true;
}

int faults_end(void)
{
    state.on = false;
    while (state.dirty_count > 0)
        close(state.dirty[--state.dirty_count]);
    while (state.renamed_count > 0)
        close(state.renamed[--state.renamed_count].dirfd);
    return state.count;
}

_Noreturn void faults_cut_power(int exit_code)
{
    while (state.renamed_count > 0) {
        const struct renamed *r = &state.renamed[--state.renamed_count];
        __real_renameat2(r->dirfd, r->to, r->dirfd, r->from,
                         r->exchange ? RENAME_EXCHANGE : 0);
    }
    for (int i = 0; i < state.dirty_count; i++)
        if (ftruncate(state.dirty[i], 0))
            abort();
    _exit(exit_code);
}

/* Is this call to fail? */
static bool fails(void)
{
    if (!state.on)
        return false;
    pthread_mutex_lock(&state.lock);
    int number = ++state.count, at = state.faults.at;
    bool hit =
        at > 0 && (number == at || (state.faults.persist && number > at));
    if (hit && state.faults.error == 0)
        faults_cut_power(FAULTS_POWER_CUT);
    pthread_mutex_unlock(&state.lock);
    if (hit)
        errno = state.faults.error;
    return hit;
}

/* How much of a read or write is done; 0 for EINTR. */
static size_t chop(size_t len)
{
    if (!state.on || !state.faults.tiny)
        return len;
    return __atomic_fetch_add(&state.chops, 1, __ATOMIC_RELAXED) % 2 ? 0
           : len < 7                                                 ? len
                                                                     : 7;
}

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
           x.st_dev == y.st_dev;
}

static void mark(int fd, bool dirty)
{
    if (!state.on)
        return;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < state.dirty_count; i++)
        if (same_file(state.dirty[i], fd)) {
            close(state.dirty[i]);
            state.dirty[i] = state.dirty[--state.dirty_count];
            break;
        }
    if (dirty && state.dirty_count == DIRTY_MAX)
        abort();
    if (dirty)
        state.dirty[state.dirty_count++] = dup(fd);
    pthread_mutex_unlock(&state.lock);
}

static void note_rename(int dirfd, const char *from, const char *to,
                        bool exchange)
{
    if (!state.on)
        return;
    pthread_mutex_lock(&state.lock);
    if (state.renamed_count == DIRTY_MAX)
        abort();
    struct renamed *r = &state.renamed[state.renamed_count++];
    r->dirfd = dup(dirfd);
    r->exchange = exchange;
    snprintf(r->from, sizeof(r->from), "%s", from);
    snprintf(r->to, sizeof(r->to), "%s", to);
    pthread_mutex_unlock(&state.lock);
}

/* The directory fd was synced: its renames are safe. */
static void forget_renames(int fd)
{
    if (!state.on)
        return;
    pthread_mutex_lock(&state.lock);
    int left = 0;
    for (int i = 0; i < state.renamed_count; i++)
        if (same_file(state.renamed[i].dirfd, fd))
            close(state.renamed[i].dirfd);
        else
            state.renamed[left++] = state.renamed[i];
    state.renamed_count = left;
    pthread_mutex_unlock(&state.lock);
}

int __wrap_mkdirat(int dirfd, const char *name, mode_t mode)
{
    return fails() ? -1 : __real_mkdirat(dirfd, name, mode);
}

int __wrap_openat(int dirfd, const char *name, int flags, ...)
{
    if (!(flags & O_CREAT))
        return __real_openat(dirfd, name, flags);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return fails() ? -1 : __real_openat(dirfd, name, flags, mode);
}

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
    struct stat st;
    if (!state.on || fstat(fd, &st) || !S_ISREG(st.st_mode))
        return __real_write(fd, buf, len);
    size_t n = chop(len);
    if (n == 0 && len > 0) {
        errno = EINTR;
        return -1;
    }
    if (!state.faults.tiny && fails())
        return -1;
    mark(fd, true);
    return __real_write(fd, buf, n);
}

int __wrap_fsync(int fd)
{
    if (fails())
        return -1;
    mark(fd, false);
    forget_renames(fd);
    return __real_fsync(fd);
}

int __wrap_renameat(int from, const char *a, int to, const char *b)
{
    if (fails() || __real_renameat(from, a, to, b))
        return -1;
    note_rename(from, a, b, false);
    return 0;
}

int __wrap_renameat2(int from, const char *a, int to, const char *b,
                     unsigned flags)
{
    if (state.on && state.faults.no_exchange) {
        errno = EINVAL;
        return -1;
    }
    if (fails() || __real_renameat2(from, a, to, b, flags))
        return -1;
    note_rename(from, a, b, flags & RENAME_EXCHANGE);
    return 0;
}

int __wrap_unlinkat(int dirfd, const char *name, int flags)
{
    return fails() ? -1 : __real_unlinkat(dirfd, name, flags);
}

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset)
{
    size_t n = chop(len);
    if (n == 0 && len > 0) {
        errno = EINTR;
        return -1;
    }
    return __real_pread(fd, buf, n, offset);
}
