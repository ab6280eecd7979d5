/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.c - names of the files of a job, and who finds them. */
#include "base/jobfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/userdir.h"

#define SHM "/dev/shm"

static void add_label(char *prefix, const char *label)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t at = strlen(prefix);
    for (; label && *label && at + 2 < DT_JOBFILE_NAME; label++)
        prefix[at++] = strchr(plain, *label) ? *label : '_';
    snprintf(prefix + at, DT_JOBFILE_NAME - at, ".");
}

void dt_jobfile_prefix(char prefix[DT_JOBFILE_NAME], const char *kind,
                       const char *job, const char *node, const char *cluster)
{
    const char *const label[] = {kind, job, node, cluster};
    *prefix = '\0';
    for (size_t i = 0; i < sizeof(label) / sizeof(label[0]); i++)
        add_label(prefix, label[i]);
}

DIR *dt_jobfile_folder(uid_t uid, char path[DT_JOBFILE_PATH])
{
    int fd = dt_userdir_open(DT_USERDIR_RUN, uid);
    if (path && fd >= 0)
        snprintf(path, DT_JOBFILE_PATH, DT_USERDIR_RUN "/%u", (unsigned)uid);
    else if (path)
        snprintf(path, DT_JOBFILE_PATH, SHM);
    if (fd < 0)
        fd = open(SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !folder)
        close(fd);
    return folder;
}

int dt_jobfile_next(DIR *folder, const char *prefix, int flags,
                    const char **name)
{
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        int fd = dt_file_open_own(dirfd(folder), entry->d_name, flags);
        *name = entry->d_name;
        if (fd >= 0)
            return fd;
    }
    return -1;
}

bool dt_jobfile_exists(uid_t uid, const char *prefix)
{
    struct stat st;
    bool found = false;
    DIR *folder = dt_jobfile_folder(uid, NULL);
    for (struct dirent *entry;
         folder && !found && (entry = readdir(folder)) != NULL;)
        found = strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
                fstatat(dirfd(folder), entry->d_name, &st,
                        AT_SYMLINK_NOFOLLOW) == 0 &&
                st.st_uid == uid;
    if (folder)
        closedir(folder);
    return found;
}

/* -1 with errno. */
static int make(DIR *folder, const char *prefix, char name[DT_JOBFILE_NAME])
{
    unsigned long long chance;
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
        return -1;
    if (snprintf(name, DT_JOBFILE_NAME, "%s%016llx", prefix, chance) >=
        DT_JOBFILE_NAME) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return dt_file_open_own(dirfd(folder), name,
                            O_RDWR | O_APPEND | O_CREAT | O_EXCL);
}

dt_result_t dt_jobfile_make_notice(const char *prefix, unsigned step,
                                   char path[DT_JOBFILE_PATH],
                                   struct dt_error *err)
{
    char name[DT_JOBFILE_NAME] = "", begin[DT_JOBFILE_NAME], number[16];
    DIR *folder = dt_jobfile_folder(geteuid(), path);
    snprintf(begin, sizeof(begin), "%s", prefix);
    snprintf(number, sizeof(number), "%u", step);
    add_label(begin, number);
    int fd = folder ? make(folder, begin, name) : -1;
    bool good = fd >= 0 && ftruncate(fd, DT_JOBFILE_SIZE) == 0;
    int why = errno;
    if (fd >= 0 && !good)
        unlinkat(dirfd(folder), name, 0);
    if (fd >= 0)
        close(fd);
    if (folder)
        closedir(folder);
    size_t length = strlen(path);
    good = good && snprintf(path + length, DT_JOBFILE_PATH - length, "/%s",
                            name) < (int)(DT_JOBFILE_PATH - length);
    return good ? DT_SUCCESS
                : dt_error_set(err, DT_ERR_SYSTEM, "%.200s: %s", path,
                               strerror(why));
}

int dt_jobfile_open_record(const char *prefix, bool create)
{
    char made[DT_JOBFILE_NAME];
    const char *name;
    DIR *folder = dt_jobfile_folder(geteuid(), NULL);
    if (!folder)
        return -1;
    int fd = dt_jobfile_next(folder, prefix, O_WRONLY | O_APPEND, &name);
    if (fd < 0 && create)
        fd = make(folder, prefix, made);
    int why = errno;
    closedir(folder);
    errno = why;
    return fd;
}
