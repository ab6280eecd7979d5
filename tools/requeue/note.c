/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* note.c - files in a node's /dev/shm by which the parts of a job tell each
 * other. */
#include "note.h"

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
enum { NOTE_MAX = 65536, NOTICE_SIZE = 4096 };

bool note_caps(const char *text, unsigned cap[5])
{
    for (size_t i = 0; i < 5; i++) {
        uint64_t number;
        if ((i && *text++ != ',') ||
            !dt_number_scan(&text, 10, 999999999, &number))
            return false;
        cap[i] = (unsigned)number;
    }
    return !*text || *text == '\n';
}

static void take_line(const char *line, struct note *note)
{
    int64_t code;
    if (!strncmp(line, "option ", 7))
        note->option = note_caps(line + 7, note->cap) || note->option;
    else if (!strcmp(line, "begin"))
        note->asked = note->refused = false;
    else if (dt_number_parse(line, 0, 255, &code)) {
        note->asked = note->asked || code == DT_EXIT_REQUEUE;
        note->refused = note->refused || code == DT_EXIT_NO_RESTART;
    } else if (!strncmp(line, "hand ", 5)) {
        note->by_hand = true;
        note->hold = line[5] == '1';
        if (line[5] && line[6])
            snprintf(note->reason, sizeof(note->reason), "%.255s", line + 7);
    }
}

void note_take(const char *path, struct note *note)
{
    char line[REASON + 64];
    memset(note, 0, sizeof(*note));
    int fd = dt_file_open_own(AT_FDCWD, path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while (fgets(line, sizeof(line), file) && ftell(file) < NOTE_MAX) {
        line[strcspn(line, "\n")] = '\0';
        take_line(line, note);
    }
    fclose(file);
    unlink(path);
}

/* The reason first: who sees the byte reads it. */
static bool tell(int fd, const char *reason)
{
    char text[REASON] = "";
    struct stat st;
    snprintf(text, sizeof(text), "%s", reason);
    return fstat(fd, &st) == 0 && st.st_size == NOTICE_SIZE &&
           pwrite(fd, text, sizeof(text), 1) == sizeof(text) &&
           pwrite(fd, "\1", 1, 0) == 1;
}

size_t note_tell(const char *job, const char *node, const char *reason)
{
    char prefix[160], part[300];
    size_t told = 0;
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
        told += tell(fd, reason);
        close(fd);
    }
    closedir(dir);
    return told;
}

bool note_by_hand(const char *job, const char *node, bool hold,
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
