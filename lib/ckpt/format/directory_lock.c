/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory_lock.c - one job at a time saves into a directory.
 *
 * .lock is one record of text. Locks are of the open file, not of the process,
 * so that closing another descriptor of it does not lose them:
 *
 *   byte 0       held while the record is read and written
 *   byte 1 + g   held by the owner as long as it has generation g */
#include "ckpt/format/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/failure.h"

#define RECORD_BYTE 0
#define RECORD      1024 /* bytes of .lock; what is not text is newlines */
#define TRIES       100
#define TRY_MS      10
#define GENERATION  1000000000 /* at most */

struct owner {
    uint64_t generation, pid, restart;
    char job[64], run[160], host[128];
    char where[128]; /* the boot of the kernel and the pid namespace */
};

struct dt_directory_lock {
    int fd, dirfd; /* of .lock and of its directory */
    bool locked;   /* false: the file system has no locks */
    pid_t pid;
    char record[RECORD + 1];
};

/* ---- the record ---- */

/* Copy text, with "?" for whatever could break a line of the record. */
static void copy_text(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from ? from : "");
    for (char *c = to; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void describe_self(struct owner *me, const char *run_id, int restart)
{
    char boot[64] = "", space[64] = "";
    memset(me, 0, sizeof(*me));
    me->pid = (uint64_t)getpid();
    me->restart = restart > 0 ? (uint64_t)restart : 0;
    copy_text(me->job, sizeof(me->job), getenv("SLURM_JOB_ID"));
    copy_text(me->run, sizeof(me->run), run_id);
    if (gethostname(me->host, sizeof(me->host) - 1))
        me->host[0] = '\0';
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : dt_file_read(fd, boot, sizeof(boot) - 1, 0);
    if (fd >= 0)
        close(fd);
    boot[n > 0 ? strcspn(boot, "\n") : 0] = '\0';
    n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    space[n > 0 ? n : 0] = '\0';
    if (*boot && *space) /* else no process can be known to have ended */
        snprintf(me->where, sizeof(me->where), "%s %s", boot, space);
}

static void print_record(char record[RECORD + 1], const struct owner *owner)
{
    memset(record, '\n', RECORD);
    int n = snprintf(record, RECORD,
                     "slurm-dt lock 1\ngeneration %" PRIu64 "\njob %s\n"
                     "run %s\nrestart %" PRIu64 "\nhost %s\npid %" PRIu64
                     "\nwhere %s\n",
                     owner->generation, owner->job, owner->run, owner->restart,
                     owner->host, owner->pid, owner->where);
    record[n] = '\n';
    record[RECORD] = '\0';
}

/* The text after key on a line of its own. */
static void find_text(const char *record, const char *key, char *to,
                      size_t room)
{
    size_t len = strlen(key);
    to[0] = '\0';
    for (const char *line = record; *line; line += *line == '\n') {
        size_t end = strcspn(line, "\n");
        if (end > len && strncmp(line, key, len) == 0 && line[len] == ' ') {
            snprintf(to, room, "%.*s", (int)(end - len - 1), line + len + 1);
            return;
        }
        line += end;
    }
}

static uint64_t find_number(const char *record, const char *key)
{
    char text[32];
    find_text(record, key, text, sizeof(text));
    return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

/* The file may hold anything: then nothing is known about the owner. */
static void parse_record(const char *record, struct owner *owner)
{
    memset(owner, 0, sizeof(*owner));
    if (strncmp(record, "slurm-dt lock ", strlen("slurm-dt lock ")) != 0)
        return;
    owner->generation = find_number(record, "generation");
    if (owner->generation >= GENERATION)
        owner->generation = 0;
    owner->pid = find_number(record, "pid");
    owner->restart = find_number(record, "restart");
    find_text(record, "job", owner->job, sizeof(owner->job));
    find_text(record, "run", owner->run, sizeof(owner->run));
    find_text(record, "host", owner->host, sizeof(owner->host));
    find_text(record, "where", owner->where, sizeof(owner->where));
}

static int read_record(int fd, char record[RECORD + 1])
{
    ssize_t n = dt_file_read(fd, record, RECORD, 0);
    record[n > 0 ? n : 0] = '\0';
    return n < 0 ? -1 : 0;
}

/* On a full disk the lock works without its record: an empty one belongs to an
 * unknown owner in generation 0, which no other process takes over. */
static int write_record(int fd, const char *record, uint64_t generation)
{
    if (lseek(fd, 0, SEEK_SET) == 0 && dt_file_write(fd, record, RECORD) == 0)
        return 0;
    int saved = errno;
    if (generation == 0 && dt_file_result(saved) == DT_ERR_NO_SPACE &&
        ftruncate(fd, 0) == 0)
        return 0;
    errno = saved;
    return -1;
}

/* ---- locks ---- */

static int set_lock(int fd, int type, uint64_t byte)
{
    struct flock lock = {.l_type = (short)type,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)byte,
                         .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

static bool is_taken(int why)
{
    return why == EAGAIN || why == EACCES;
}

static int lock_record(int fd)
{
    const struct timespec pause = {.tv_nsec = TRY_MS * 1000000L};
    int rc = set_lock(fd, F_WRLCK, RECORD_BYTE);
    for (int i = 0; rc && is_taken(errno) && i < TRIES; i++) {
        nanosleep(&pause, NULL);
        rc = set_lock(fd, F_WRLCK, RECORD_BYTE);
    }
    return rc;
}

static void unlock_record(int fd)
{
    set_lock(fd, F_UNLCK, RECORD_BYTE);
}

/* Is fd what is called .lock now? */
static bool is_current(int dirfd, int fd)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 &&
           fstatat(dirfd, DT_DIRECTORY_LOCK_NAME, &b, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* ---- taking it ---- */

static dt_result_t check_directory(int dirfd, const char *dir,
                                   struct dt_error *err)
{
    struct stat st;
    if (fstat(dirfd, &st))
        return dt_error_set(err, DT_ERR_IO, "checkpoint directory %s: %s", dir,
                            strerror(errno));
    if (st.st_uid != geteuid() && st.st_mode & S_IWOTH)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "checkpoint directory %s belongs to user %u and "
                            "all users may write there: make a directory of "
                            "your own in it and name that",
                            dir, (unsigned)st.st_uid);
    return DT_SUCCESS;
}

/* Open .lock, unless another user has planted something there. */
static dt_result_t open_lock(int dirfd, const char *dir, int *lock,
                             struct dt_error *err)
{
    int fd =
        openat(dirfd, DT_DIRECTORY_LOCK_NAME,
               O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
        goto planted;
    if (fd < 0)
        return dt_error_set(err, dt_file_result(errno),
                            "cannot write in the checkpoint directory %s: "
                            "%s: %s",
                            dir, DT_DIRECTORY_LOCK_NAME, strerror(errno));
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink < 2) {
        *lock = fd;
        return DT_SUCCESS;
    }
    close(fd);
planted:
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s/%s was not created by slurm-dt: check where it "
                        "comes from, and remove it",
                        dir, DT_DIRECTORY_LOCK_NAME);
}

static dt_result_t busy(const char *dir, const struct owner *owner,
                        struct dt_error *err)
{
    char who[256] = "another job", where[160] = "", pid[48] = "";
    if (*owner->job)
        snprintf(who, sizeof(who), "job %s", owner->job);
    if (*owner->host)
        snprintf(where, sizeof(where), " on %s", owner->host);
    if (owner->pid)
        snprintf(pid, sizeof(pid), " (process %" PRIu64 ")", owner->pid);
    return dt_error_set(err, DT_ERR_BUSY,
                        "checkpoint directory %s is in use by %s%s%s: give "
                        "each job a directory of its own, or wait; if that job "
                        "is gone, remove %s/%s",
                        dir, who, where, pid, dir, DT_DIRECTORY_LOCK_NAME);
}

/* Is the owner gone, though something still holds its lock? */
static bool is_gone(const struct owner *owner, const struct owner *me)
{
    if (*me->job && strcmp(owner->job, me->job) == 0 &&
        strcmp(owner->run, me->run) == 0 && owner->restart < me->restart)
        return true;
    return *me->where && strcmp(owner->where, me->where) == 0 &&
           owner->pid > 0 && owner->pid <= INT32_MAX &&
           kill((pid_t)owner->pid, 0) && errno == ESRCH;
}

/* With the record locked: take the current generation, or begin the next one.
 */
static dt_result_t take_generation(struct dt_directory_lock *lock,
                                   const char *dir, struct owner *me,
                                   struct dt_error *err)
{
    struct owner owner;
    if (read_record(lock->fd, lock->record))
        goto failed;
    parse_record(lock->record, &owner);
    me->generation = owner.generation;
    int rc = set_lock(lock->fd, F_WRLCK, 1 + me->generation);
    if (rc && is_taken(errno) && is_gone(&owner, me))
        rc = set_lock(lock->fd, F_WRLCK, 1 + ++me->generation);
    if (rc && is_taken(errno))
        return busy(dir, &owner, err);
    print_record(lock->record, me);
    if (rc == 0 && write_record(lock->fd, lock->record, me->generation) == 0)
        return DT_SUCCESS;
failed:
    return dt_error_set(err, dt_file_result(errno), "%s/%s: %s", dir,
                        DT_DIRECTORY_LOCK_NAME, strerror(errno));
}

static void warn_no_locks(const char *dir)
{
    dt_report("the file system of %s has no locks (%s): nothing keeps "
              "another job from saving there, too",
              dir, strerror(errno));
}

/* One try. *retry: .lock was removed meanwhile. */
static dt_result_t try_to_take(struct dt_directory_lock *lock, const char *dir,
                               struct owner *me, bool *retry,
                               struct dt_error *err)
{
    *retry = false;
    dt_result_t rc = open_lock(lock->dirfd, dir, &lock->fd, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (lock_record(lock->fd) == 0) {
        *retry = !is_current(lock->dirfd, lock->fd);
        if (!*retry)
            rc = take_generation(lock, dir, me, err);
        lock->locked = !*retry && rc == DT_SUCCESS;
        unlock_record(lock->fd);
    } else if (is_taken(errno)) {
        rc = busy(dir, &(struct owner){0}, err);
    } else if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) {
        warn_no_locks(dir);
    } else {
        rc = dt_error_set(err, DT_ERR_IO, "%s/%s: %s", dir,
                          DT_DIRECTORY_LOCK_NAME, strerror(errno));
    }
    if (!lock->locked) {
        close(lock->fd);
        lock->fd = -1;
    }
    return rc;
}

dt_result_t dt_directory_lock_take(int dirfd, const char *dir,
                                   const char *run_id, int restart,
                                   struct dt_directory_lock **lock,
                                   struct dt_error *err)
{
    struct owner me;
    bool retry = true;
    dt_result_t rc = check_directory(dirfd, dir, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_directory_lock *g = calloc(1, sizeof(*g));
    if (!g)
        return dt_no_memory(err);
    g->fd = -1;
    g->pid = getpid();
    g->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
    if (g->dirfd < 0) {
        rc = dt_error_set(err, DT_ERR_IO, "checkpoint directory %s: %s", dir,
                          strerror(errno));
        goto release;
    }
    describe_self(&me, run_id, restart);
    for (int i = 0; retry && i < TRIES; i++)
        rc = try_to_take(g, dir, &me, &retry, err);
    if (retry)
        rc = busy(dir, &(struct owner){0}, err);
    if (rc != DT_SUCCESS)
        goto release;
    *lock = g;
    return DT_SUCCESS;
release:
    dt_directory_lock_release(g);
    return rc;
}

bool dt_directory_lock_held(const struct dt_directory_lock *lock)
{
    char record[RECORD + 1];
    if (!lock->locked)
        return true;
    return is_current(lock->dirfd, lock->fd) &&
           read_record(lock->fd, record) == 0 &&
           (*record == '\0' || strcmp(record, lock->record) == 0);
}

void dt_directory_lock_release(struct dt_directory_lock *lock)
{
    if (!lock)
        return;
    if (lock->locked && lock->pid == getpid()) {
        bool inside = lock_record(lock->fd) == 0;
        if (inside && dt_directory_lock_held(lock))
            unlinkat(lock->dirfd, DT_DIRECTORY_LOCK_NAME, 0);
        /* A forked child shares the open file, and loses the lock, too. */
        set_lock(lock->fd, F_UNLCK,
                 1 + find_number(lock->record, "generation"));
        if (inside)
            unlock_record(lock->fd);
    }
    if (lock->fd >= 0)
        close(lock->fd);
    if (lock->dirfd >= 0)
        close(lock->dirfd);
    free(lock);
}
