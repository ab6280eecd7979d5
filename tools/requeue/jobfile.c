/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.c - read the requeue record, write the notice. */
#include "jobfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/file.h"
#include "base/jobfile.h"
#include "base/number.h"

enum { RECORD_MAX = 65536 };

static void take_line(const char *line, struct record *record)
{
    int64_t code;
    if (!strncmp(line, "option ", 7))
        record->option =
            decide_parse_caps(line + 7, &record->caps) || record->option;
    else if (!strcmp(line, "begin"))
        record->asked = record->refused = record->terminated = false;
    else if (!strcmp(line, "terminated"))
        record->terminated = true;
    else if (dt_number_parse(line, 0, 255, &code)) {
        record->asked = record->asked || code == DT_EXIT_REQUEUE;
        record->refused = record->refused || code == DT_EXIT_NO_RESTART;
    } else if (!strncmp(line, "hand ", 5)) {
        record->by_hand = true;
        record->hold = line[5] == '1';
        if (line[5] && line[6])
            snprintf(record->reason, sizeof(record->reason), "%.255s",
                     line + 7);
    }
}

static void read_record(int fd, struct record *record)
{
    char line[REASON + 64];
    FILE *file = fdopen(fd, "r");
    if (!file) {
        close(fd);
        return;
    }
    while (fgets(line, sizeof(line), file) && ftell(file) < RECORD_MAX) {
        line[strcspn(line, "\n")] = '\0';
        take_line(line, record);
    }
    fclose(file);
}

void jobfile_take_record(const char *prefix, struct record *record)
{
    const char *name;
    bool asked = false, refused = false;
    DIR *folder = dt_jobfile_folder(geteuid(), NULL);
    memset(record, 0, sizeof(*record));
    for (int fd; folder && (fd = dt_jobfile_next(folder, prefix, O_RDONLY,
                                                 &name)) >= 0;) {
        read_record(fd, record);
        asked = asked || record->asked;
        refused = refused || record->refused;
        unlinkat(dirfd(folder), name, 0);
    }
    record->asked = asked;
    record->refused = refused;
    if (folder)
        closedir(folder);
}

/* The reason is written first: a task that sees the first byte reads on. */
static bool write_notice(int fd, const char *reason)
{
    char text[REASON] = "";
    struct stat st;
    snprintf(text, sizeof(text), "%s", reason);
    return fstat(fd, &st) == 0 && st.st_size == DT_JOBFILE_SIZE &&
           pwrite(fd, text, sizeof(text), 1) == sizeof(text) &&
           pwrite(fd, "\1", 1, 0) == 1;
}

bool jobfile_write_notice(const char *path, const char *reason)
{
    char first;
    int fd = dt_file_open_own(AT_FDCWD, path, O_RDWR);
    bool wrote = fd >= 0 && pread(fd, &first, 1, 0) == 1 && !first &&
                 write_notice(fd, reason);
    if (fd >= 0)
        close(fd);
    return wrote;
}

size_t jobfile_notify(const char *job, const char *node, const char *cluster,
                      const char *reason)
{
    char prefix[DT_JOBFILE_NAME];
    const char *name;
    size_t notified = 0;
    DIR *folder = dt_jobfile_folder(geteuid(), NULL);
    dt_jobfile_prefix(prefix, DT_JOBFILE_NOTICE, job, node, cluster);
    for (int fd; folder &&
                 (fd = dt_jobfile_next(folder, prefix, O_RDWR, &name)) >= 0;) {
        notified += write_notice(fd, reason);
        close(fd);
    }
    if (folder)
        closedir(folder);
    return notified;
}

bool jobfile_record_hand(const char *job, const char *node, const char *cluster,
                         bool hold, const char *reason)
{
    char prefix[DT_JOBFILE_NAME], line[REASON + 16];
    dt_jobfile_prefix(prefix, DT_JOBFILE_RECORD, job, node, cluster);
    int fd = dt_jobfile_open_record(prefix, true);
    if (fd < 0)
        return false;
    int length = snprintf(line, sizeof(line), "hand %d %s\n", hold, reason);
    bool done = length > 0 && (size_t)length < sizeof(line) &&
                write(fd, line, (size_t)length) == length;
    close(fd);
    return done;
}
