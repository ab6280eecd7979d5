/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* faulty-calls.c - the system calls that change a file system, counted. */
#include "faulty-calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "disk-model.h"

static struct {
    pthread_mutex_t lock; /* of the calls and of what is recorded of them */
    bool on;
    struct faults faults;
    int count, chops;
} state = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

void faults_begin(const struct faults *faults)
{
    state.faults = *faults;
    state.count = 0;
    state.on = true;
}

int faults_end(void)
{
    state.on = false;
    return state.count;
}

/* Is this call to fail? If not, it is to be followed by done(). */
static bool fails(unsigned kind)
{
    pthread_mutex_lock(&state.lock);
    if (!state.on || !(kind & state.faults.kinds))
        return false;
    int number = ++state.count, at = state.faults.at;
    bool hit =
        at > 0 && (number == at || (state.faults.persist && number > at));
    if (hit && state.faults.meanwhile) {
        state.on = false;
        state.faults.meanwhile(state.faults.arg);
        state.on = true;
        hit = false;
    }
    if (hit && state.faults.error == 0)
        kill(getpid(), SIGKILL);
    if (!hit)
        return false;
    pthread_mutex_unlock(&state.lock);
    errno = state.faults.error;
    return true;
}

static void done(void)
{
    int saved = errno;
    pthread_mutex_unlock(&state.lock);
    errno = saved;
}

/* How much of a read or write is done; 0 for EINTR. */
static size_t chop(size_t len)
{
    if (!state.on || !state.faults.tiny || len == 0)
        return len;
    if (__atomic_fetch_add(&state.chops, 1, __ATOMIC_RELAXED) % 2) {
        errno = EINTR;
        return 0;
    }
    return len < 7 ? len : 7;
}

static bool is_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* ---- names ---- */

int __real_mkdir(const char *name, mode_t mode);
int __wrap_mkdir(const char *name, mode_t mode);
int __real_mkdirat(int dirfd, const char *name, mode_t mode);
int __wrap_mkdirat(int dirfd, const char *name, mode_t mode);
int __real_open(const char *name, int flags, ...);
int __wrap_open(const char *name, int flags, ...);
int __real_openat(int dirfd, const char *name, int flags, ...);
int __wrap_openat(int dirfd, const char *name, int flags, ...);
int __real_linkat(int from, const char *a, int to, const char *b, int flags);
int __wrap_linkat(int from, const char *a, int to, const char *b, int flags);
int __real_renameat(int from, const char *a, int to, const char *b);
int __wrap_renameat(int from, const char *a, int to, const char *b);
int __real_renameat2(int from, const char *a, int to, const char *b,
                     unsigned flags);
int __wrap_renameat2(int from, const char *a, int to, const char *b,
                     unsigned flags);
int __real_unlinkat(int dirfd, const char *name, int flags);
int __wrap_unlinkat(int dirfd, const char *name, int flags);

int __wrap_mkdirat(int dirfd, const char *name, mode_t mode)
{
    if (fails(FAULTS_NAME))
        return -1;
    int rc = __real_mkdirat(dirfd, name, mode);
    if (rc == 0)
        disk_made(dirfd, name);
    done();
    return rc;
}

int __wrap_mkdir(const char *name, mode_t mode)
{
    return __wrap_mkdirat(AT_FDCWD, name, mode);
}

static int create(int dirfd, const char *name, int flags, mode_t mode)
{
    if (fails(FAULTS_NAME))
        return -1;
    int fd = __real_openat(dirfd, name, flags, mode);
    if (fd >= 0)
        disk_made(dirfd, name);
    if (fd >= 0 && flags & O_TRUNC)
        disk_written(fd);
    done();
    return fd;
}

int __wrap_openat(int dirfd, const char *name, int flags, ...)
{
    if (!(flags & (O_CREAT | O_TRUNC)))
        return __real_openat(dirfd, name, flags);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return create(dirfd, name, flags, mode);
}

int __wrap_open(const char *name, int flags, ...)
{
    if (!(flags & (O_CREAT | O_TRUNC)))
        return __real_open(name, flags);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return create(AT_FDCWD, name, flags, mode);
}

int __wrap_linkat(int from, const char *a, int to, const char *b, int flags)
{
    if (state.on && state.faults.no_link) {
        errno = EPERM;
        return -1;
    }
    if (fails(FAULTS_NAME))
        return -1;
    int rc = __real_linkat(from, a, to, b, flags);
    if (rc == 0)
        disk_made(to, b);
    done();
    return rc;
}

int __wrap_renameat2(int from, const char *a, int to, const char *b,
                     unsigned flags)
{
    if (state.on && state.faults.no_exchange && flags) {
        errno = EINVAL;
        return -1;
    }
    if (fails(FAULTS_NAME))
        return -1;
    int rc = __real_renameat2(from, a, to, b, flags);
    if (rc == 0)
        disk_renamed(from, a, to, b, flags & RENAME_EXCHANGE);
    done();
    return rc;
}

int __wrap_renameat(int from, const char *a, int to, const char *b)
{
    return __wrap_renameat2(from, a, to, b, 0);
}

int __wrap_unlinkat(int dirfd, const char *name, int flags)
{
    if (fails(FAULTS_NAME))
        return -1;
    int rc = __real_unlinkat(dirfd, name, flags);
    if (rc == 0)
        disk_removed(dirfd, name);
    done();
    return rc;
}

/* ---- data ---- */

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __real_pwrite(int fd, const void *buf, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t at);
ssize_t __real_writev(int fd, const struct iovec *v, int n);
ssize_t __wrap_writev(int fd, const struct iovec *v, int n);
ssize_t __real_pwritev(int fd, const struct iovec *v, int n, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *v, int n, off_t at);
ssize_t __real_copy_file_range(int in, off_t *from, int out, off_t *to,
                               size_t len, unsigned flags);
ssize_t __wrap_copy_file_range(int in, off_t *from, int out, off_t *to,
                               size_t len, unsigned flags);
int __real_ftruncate(int fd, off_t len);
int __wrap_ftruncate(int fd, off_t len);
int __real_fallocate(int fd, int mode, off_t at, off_t len);
int __wrap_fallocate(int fd, int mode, off_t at, off_t len);
int __real_posix_fallocate(int fd, off_t at, off_t len);
int __wrap_posix_fallocate(int fd, off_t at, off_t len);
ssize_t __real_pread(int fd, void *buf, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset);

/* Chopped ones are not counted: how many there are depends on that. */
static bool write_fails(void)
{
    if (!state.faults.tiny)
        return fails(FAULTS_WRITE);
    pthread_mutex_lock(&state.lock);
    return false;
}

static ssize_t written(int fd, ssize_t rc)
{
    if (rc > 0)
        disk_written(fd);
    done();
    return rc;
}

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
    if (!state.on || !is_file(fd))
        return __real_write(fd, buf, len);
    size_t n = chop(len);
    if ((n == 0 && len > 0) || write_fails())
        return -1;
    return written(fd, __real_write(fd, buf, n));
}

ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t at)
{
    if (!state.on)
        return __real_pwrite(fd, buf, len, at);
    size_t n = chop(len);
    if ((n == 0 && len > 0) || write_fails())
        return -1;
    return written(fd, __real_pwrite(fd, buf, n, at));
}

ssize_t __wrap_writev(int fd, const struct iovec *v, int n)
{
    if (!state.on || !is_file(fd))
        return __real_writev(fd, v, n);
    if (state.faults.tiny && n > 0)
        return __wrap_write(fd, v[0].iov_base, v[0].iov_len);
    if (write_fails())
        return -1;
    return written(fd, __real_writev(fd, v, n));
}

ssize_t __wrap_pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    if (!state.on)
        return __real_pwritev(fd, v, n, at);
    if (state.faults.tiny && n > 0)
        return __wrap_pwrite(fd, v[0].iov_base, v[0].iov_len, at);
    if (write_fails())
        return -1;
    return written(fd, __real_pwritev(fd, v, n, at));
}

ssize_t __wrap_copy_file_range(int in, off_t *from, int out, off_t *to,
                               size_t len, unsigned flags)
{
    size_t n = chop(len);
    if ((n == 0 && len > 0) || write_fails())
        return -1;
    return written(out, __real_copy_file_range(in, from, out, to, n, flags));
}

int __wrap_ftruncate(int fd, off_t len)
{
    if (fails(FAULTS_WRITE))
        return -1;
    int rc = __real_ftruncate(fd, len);
    if (rc == 0)
        disk_written(fd);
    done();
    return rc;
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t len)
{
    if (fails(FAULTS_WRITE))
        return -1;
    int rc = __real_fallocate(fd, mode, at, len);
    if (rc == 0)
        disk_written(fd);
    done();
    return rc;
}

int __wrap_posix_fallocate(int fd, off_t at, off_t len)
{
    if (fails(FAULTS_WRITE))
        return errno;
    int rc = __real_posix_fallocate(fd, at, len);
    if (rc == 0)
        disk_written(fd);
    done();
    return rc;
}

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset)
{
    size_t n = chop(len);
    if (n == 0 && len > 0)
        return -1;
    return __real_pread(fd, buf, n, offset);
}

/* ---- syncing ---- */

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fsync(int fd)
{
    if (fails(FAULTS_SYNC))
        return -1;
    int rc = __real_fsync(fd);
    if (rc == 0)
        disk_synced(fd);
    done();
    return rc;
}

int __wrap_fdatasync(int fd)
{
    if (fails(FAULTS_SYNC))
        return -1;
    int rc = __real_fdatasync(fd);
    if (rc == 0)
        disk_synced(fd);
    done();
    return rc;
}
