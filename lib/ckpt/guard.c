/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* guard.c - one job at a time saves into a directory.
 *
 * .lock is one record of text. Locks are of the open file, not of the process,
 * so that closing another descriptor of it does not lose them:
 *
 *   byte 0       the door: held while the record is read and written
 *   byte 1 + g   held by the owner as long as it has generation g */
#include "ckpt/guard.h"

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

#define DOOR       0
#define RECORD     1024 /* bytes of .lock; what is not text is newlines */
#define TRIES      100
#define TRY_MS     10
#define GENERATION 1000000000 /* at most */

struct owner {
    uint64_t generation, pid, restart;
    char job[64], run[160], host[128];
    char where[128]; /* the boot of the kernel and the pid namespace */
};

struct dt_guard {
    int fd, dirfd; /* of .lock and of its directory */
    bool locked;   /* false: the file system has no locks */
    pid_t pid;
    char record[RECORD + 1];
};

/* ---- the record ---- */

/* Text with nothing in it that could break a line. */
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
    if (*boot && *space) /* else no process is known to be gone */
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

/* Anything at all may be in the file: then nothing is known of the owner. */
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

/* On a full disk the lock does without: an empty record is that of an unknown
 * owner in generation 0, which nobody takes over. */
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

static int enter(int fd)
{
    const struct timespec pause = {.tv_nsec = TRY_MS * 1000000L};
    int rc = set_lock(fd, F_WRLCK, DOOR);
    for (int i = 0; rc && is_taken(errno) && i < TRIES; i++) {
        nanosleep(&pause, NULL);
        rc = set_lock(fd, F_WRLCK, DOOR);
    }
    return rc;
}

static void leave(int fd)
{
    set_lock(fd, F_UNLCK, DOOR);
}

/* Is fd what is called .lock now? */
static bool is_current(int dirfd, int fd)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 &&
           fstatat(dirfd, DT_GUARD_NAME, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
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
                            "everybody may write there: make one of your own "
                            "in it and name that",
                            dir, (unsigned)st.st_uid);
    return DT_SUCCESS;
}

/* .lock, open, and not somebody's trap. */
static dt_result_t open_lock(int dirfd, const char *dir, int *lock,
                             struct dt_error *err)
{
    int fd =
        openat(dirfd, DT_GUARD_NAME,
               O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
        goto trap;
    if (fd < 0)
        return dt_error_set(err, dt_file_result(errno),
                            "cannot write in the checkpoint directory %s: "
                            "%s: %s",
                            dir, DT_GUARD_NAME, strerror(errno));
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink < 2) {
        *lock = fd;
        return DT_SUCCESS;
    }
    close(fd);
trap:
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s/%s is not a file that slurm-dt made: see who put "
                        "it there, and remove it",
                        dir, DT_GUARD_NAME);
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
                        dir, who, where, pid, dir, DT_GUARD_NAME);
}

/* May me begin the next generation, though something holds owner's lock? */
static bool is_gone(const struct owner *owner, const struct owner *me)
{
    if (*me->job && strcmp(owner->job, me->job) == 0 &&
        strcmp(owner->run, me->run) == 0 && owner->restart < me->restart)
        return true;
    return *me->where && strcmp(owner->where, me->where) == 0 &&
           owner->pid > 0 && owner->pid <= INT32_MAX &&
           kill((pid_t)owner->pid, 0) && errno == ESRCH;
}

/* Behind the door: the generation becomes me's. */
static dt_result_t take_generation(struct dt_guard *guard, const char *dir,
                                   struct owner *me, struct dt_error *err)
{
    struct owner owner;
    if (read_record(guard->fd, guard->record))
        goto failed;
    parse_record(guard->record, &owner);
    me->generation = owner.generation;
    int rc = set_lock(guard->fd, F_WRLCK, 1 + me->generation);
    if (rc && is_taken(errno) && is_gone(&owner, me))
        rc = set_lock(guard->fd, F_WRLCK, 1 + ++me->generation);
    if (rc && is_taken(errno))
        return busy(dir, &owner, err);
    print_record(guard->record, me);
    if (rc == 0 && write_record(guard->fd, guard->record, me->generation) == 0)
        return DT_SUCCESS;
failed:
    return dt_error_set(err, dt_file_result(errno), "%s/%s: %s", dir,
                        DT_GUARD_NAME, strerror(errno));
}

static void say_no_locks(const char *dir)
{
    fprintf(stderr,
            "dt: the file system of %s has no locks (%s): nothing keeps "
            "another job from saving there, too\n",
            dir, strerror(errno));
}

/* One try. *again: .lock was removed while we were at it. */
static dt_result_t try_to_take(struct dt_guard *guard, const char *dir,
                               struct owner *me, bool *again,
                               struct dt_error *err)
{
    *again = false;
    dt_result_t rc = open_lock(guard->dirfd, dir, &guard->fd, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (enter(guard->fd) == 0) {
        *again = !is_current(guard->dirfd, guard->fd);
        if (!*again)
            rc = take_generation(guard, dir, me, err);
        guard->locked = !*again && rc == DT_SUCCESS;
        leave(guard->fd);
    } else if (is_taken(errno)) {
        rc = busy(dir, &(struct owner){0}, err);
    } else if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) {
        say_no_locks(dir);
    } else {
        rc = dt_error_set(err, DT_ERR_IO, "%s/%s: %s", dir, DT_GUARD_NAME,
                          strerror(errno));
    }
    if (!guard->locked) {
        close(guard->fd);
        guard->fd = -1;
    }
    return rc;
}

dt_result_t dt_guard_take(int dirfd, const char *dir, const char *run_id,
                          int restart, struct dt_guard **guard,
                          struct dt_error *err)
{
    struct owner me;
    bool again = true;
    dt_result_t rc = check_directory(dirfd, dir, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_guard *g = calloc(1, sizeof(*g));
    if (!g)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    g->fd = -1;
    g->pid = getpid();
    g->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
    if (g->dirfd < 0) {
        rc = dt_error_set(err, DT_ERR_IO, "checkpoint directory %s: %s", dir,
                          strerror(errno));
        goto release;
    }
    describe_self(&me, run_id, restart);
    for (int i = 0; again && i < TRIES; i++)
        rc = try_to_take(g, dir, &me, &again, err);
    if (again)
        rc = busy(dir, &(struct owner){0}, err);
    if (rc != DT_SUCCESS)
        goto release;
    *guard = g;
    return DT_SUCCESS;
release:
    dt_guard_release(g);
    return rc;
}

bool dt_guard_held(const struct dt_guard *guard)
{
    char record[RECORD + 1];
    if (!guard->locked)
        return true;
    return is_current(guard->dirfd, guard->fd) &&
           read_record(guard->fd, record) == 0 &&
           (*record == '\0' || strcmp(record, guard->record) == 0);
}

void dt_guard_release(struct dt_guard *guard)
{
    if (!guard)
        return;
    if (guard->locked && guard->pid == getpid()) {
        bool inside = enter(guard->fd) == 0;
        if (inside && dt_guard_held(guard))
            unlinkat(guard->dirfd, DT_GUARD_NAME, 0);
        /* of a forked child, too: it shares the open file */
        set_lock(guard->fd, F_UNLCK,
                 1 + find_number(guard->record, "generation"));
        if (inside)
            leave(guard->fd);
    }
    if (guard->fd >= 0)
        close(guard->fd);
    if (guard->dirfd >= 0)
        close(guard->dirfd);
    free(guard);
}

/* ---- a directory of one's own ---- */

static dt_result_t no_directory(const char *what, const char *name,
                                struct dt_error *err)
{
    int why = errno;
    return dt_error_set(
        err, why == ENOENT ? DT_ERR_NOT_FOUND : dt_file_result(why),
        "cannot %s the directory %s: %s", what, name, strerror(why));
}

dt_result_t dt_guard_private(int dirfd, const char *name, int *fd,
                             struct dt_error *err)
{
    struct stat st;
    if (mkdirat(dirfd, name, 0700) && errno != EEXIST)
        return no_directory("make", name, err);
    int dir =
        openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno != ELOOP && errno != ENOTDIR && errno != EACCES)
        return no_directory("open", name, err);
    if (dir >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
        (st.st_mode & 077) == 0) {
        *fd = dir;
        return DT_SUCCESS;
    }
    if (dir >= 0)
        close(dir);
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s is not a directory of this user's alone (mode "
                        "0700): see who put it there, and remove it",
                        name);
}
