/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.c - the notice files and the requeue record of a job. */
#include "jobfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/file.h"
#include "base/number.h"

#define DIRECTORY "/dev/shm"
enum { RECORD_MAX = 65536, NOTICE_SIZE = 4096 };

static void take_line(const char *line, struct record *record)
{
    int64_t code;
    if (!strncmp(line, "option ", 7))
        record->option =
            decide_parse_caps(line + 7, &record->caps) || record->option;
    else if (!strcmp(line, "begin"))
        record->asked = record->refused = false;
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

void jobfile_take_record(const char *path, struct record *record)
{
    char line[REASON + 64];
    memset(record, 0, sizeof(*record));
    int fd = dt_file_open_own(AT_FDCWD, path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while (fgets(line, sizeof(line), file) && ftell(file) < RECORD_MAX) {
        line[strcspn(line, "\n")] = '\0';
        take_line(line, record);
    }
    fclose(file);
    unlink(path);
}

/* The reason is written first: a task that sees the first byte reads on. */
static bool write_notice(int fd, const char *reason)
{
    char text[REASON] = "";
    struct stat st;
    snprintf(text, sizeof(text), "%s", reason);
    return fstat(fd, &st) == 0 && st.st_size == NOTICE_SIZE &&
           pwrite(fd, text, sizeof(text), 1) == sizeof(text) &&
           pwrite(fd, "\1", 1, 0) == 1;
}

size_t jobfile_notify(const char *job, const char *node, const char *reason)
{
    char prefix[160], part[300];
    size_t notified = 0;
    DIR *dir = opendir(DIRECTORY);
    if (!dir)
        return 0;
    snprintf(prefix, sizeof(prefix), "dt-notice.%s.", job);
    snprintf(part, sizeof(part), ".%s.", node);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            !strstr(entry->d_name + strlen(prefix), part))
            continue;
        int fd = dt_file_open_own(dirfd(dir), entry->d_name, O_RDWR);
        if (fd < 0)
            continue;
        notified += write_notice(fd, reason);
        close(fd);
    }
    closedir(dir);
    return notified;
}

bool jobfile_record_hand(const char *job, const char *node, bool hold,
                         const char *reason)
{
    char path[512], line[REASON + 16];
    int length =
        snprintf(path, sizeof(path), DIRECTORY "/dt-requeue.%s.%s", job, node);
    if (length < 0 || (size_t)length >= sizeof(path))
        return false;
    int fd = dt_file_open_own(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0)
        return false;
    length = snprintf(line, sizeof(line), "hand %d %s\n", hold, reason);
    bool done = length > 0 && (size_t)length < sizeof(line) &&
                write(fd, line, (size_t)length) == length;
    close(fd);
    return done;
}
