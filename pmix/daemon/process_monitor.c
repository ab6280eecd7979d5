/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* process_monitor.c - which processes of this node's ranks are stopped? */
#include "daemon/process_monitor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHECKS = 8, SOONEST_MS = 100 };

struct process {
    pid_t pid;       /* 0: none */
    int fd;          /* a pidfd: it stays that process */
    int64_t stopped; /* ms for which it has been seen stopped */
    bool reported;
};

struct dt_monitor {
    struct process *process;
    size_t count, at; /* at: the next to look at in this round */
    int64_t limit, interval;
    int64_t due, last, step; /* the rounds: next, last, time between them */
};

dt_result_t dt_monitor_open(struct dt_monitor **monitor, size_t count,
                            int64_t limit, struct dt_error *err)
{
    struct dt_monitor *made = calloc(1, sizeof(*made));
    struct process *process = calloc(count, sizeof(*process));
    if (!made || !process) {
        free(made);
        free(process);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    }
    *made = (struct dt_monitor){.process = process,
                                .count = count,
                                .at = count,
                                .limit = limit,
                                .interval = limit / CHECKS,
                                .last = -1};
    if (made->interval < SOONEST_MS)
        made->interval = SOONEST_MS;
    *monitor = made;
    return DT_SUCCESS;
}

void dt_monitor_close(struct dt_monitor *monitor)
{
    if (!monitor)
        return;
    for (size_t i = 0; i < monitor->count; i++)
        dt_monitor_ended(monitor, i);
    free(monitor->process);
    free(monitor);
}

void dt_monitor_started(struct dt_monitor *monitor, size_t index, pid_t pid)
{
    dt_monitor_ended(monitor, index);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0)
        monitor->process[index] = (struct process){.pid = pid, .fd = fd};
}

void dt_monitor_ended(struct dt_monitor *monitor, size_t index)
{
    struct process *process = &monitor->process[index];
    if (process->pid)
        close(process->fd);
    process->pid = 0;
}

void dt_monitor_signal(struct dt_monitor *monitor, size_t index, int sig)
{
    const struct process *process = &monitor->process[index];
    if (process->pid)
        syscall(SYS_pidfd_send_signal, process->fd, sig, NULL, 0);
}

void dt_monitor_signal_all(struct dt_monitor *monitor, int sig)
{
    for (size_t i = 0; i < monitor->count; i++)
        dt_monitor_signal(monitor, i, sig);
}

/* Its name, in brackets, may hold any byte. */
char dt_monitor_state(const char *stat)
{
    const char *name_end = strrchr(stat, ')');
    return name_end && name_end[1] == ' ' ? name_end[2] : '\0';
}

static bool is_stopped(const struct process *process)
{
    char path[32], text[512];
    if (!process->pid)
        return false;
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)process->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* looked up by its number: is it stopped the same process? */
    return dt_monitor_state(text) == 'T' &&
           syscall(SYS_pidfd_send_signal, process->fd, 0, NULL, 0) == 0;
}

static void begin_round(struct dt_monitor *monitor, int64_t now)
{
    int64_t passed = monitor->last < 0 ? 0 : now - monitor->last;
    monitor->step = passed < 2 * monitor->interval ? passed : monitor->interval;
    monitor->last = now;
    monitor->due = now + monitor->interval;
    monitor->at = 0;
}

long dt_monitor_progress(struct dt_monitor *monitor, int64_t now, int64_t *next)
{
    if (monitor->at == monitor->count && now >= monitor->due)
        begin_round(monitor, now);
    *next = monitor->due;
    while (monitor->at < monitor->count) {
        size_t i = monitor->at++;
        struct process *process = &monitor->process[i];
        process->stopped =
            is_stopped(process)
                ? process->stopped + (process->stopped ? monitor->step : 1)
                : 0;
        if (process->stopped < monitor->limit || process->reported)
            continue;
        process->reported = true;
        return (long)i;
    }
    return -1;
}
