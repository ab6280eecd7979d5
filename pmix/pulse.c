/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pulse.c - do the processes of this node's ranks stand still? */
#include "pulse.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOOKS = 8, SOONEST_MS = 100 };

struct process {
    pid_t pid;     /* 0: none */
    int fd;        /* a pidfd: it stays that process */
    int64_t still; /* ms for which it has been seen stopped */
    bool told;
};

struct dt_pulse {
    struct process *process;
    size_t count, at; /* at: the next to look at in this round */
    int64_t limit, interval;
    int64_t due, last, step; /* the rounds: next, last, time between them */
};

dt_result_t dt_pulse_open(struct dt_pulse **pulse, size_t count, int64_t limit,
                          struct dt_error *err)
{
    struct dt_pulse *made = calloc(1, sizeof(*made));
    struct process *process = calloc(count, sizeof(*process));
    if (!made || !process) {
        free(made);
        free(process);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    }
    *made = (struct dt_pulse){.process = process,
                              .count = count,
                              .at = count,
                              .limit = limit,
                              .interval = limit / LOOKS,
                              .last = -1};
    if (made->interval < SOONEST_MS)
        made->interval = SOONEST_MS;
    *pulse = made;
    return DT_SUCCESS;
}

void dt_pulse_close(struct dt_pulse *pulse)
{
    if (!pulse)
        return;
    for (size_t i = 0; i < pulse->count; i++)
        dt_pulse_ended(pulse, i);
    free(pulse->process);
    free(pulse);
}

void dt_pulse_started(struct dt_pulse *pulse, size_t index, pid_t pid)
{
    dt_pulse_ended(pulse, index);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0)
        pulse->process[index] = (struct process){.pid = pid, .fd = fd};
}

void dt_pulse_ended(struct dt_pulse *pulse, size_t index)
{
    struct process *process = &pulse->process[index];
    if (process->pid)
        close(process->fd);
    process->pid = 0;
}

void dt_pulse_signal(struct dt_pulse *pulse, size_t index, int sig)
{
    const struct process *process = &pulse->process[index];
    if (process->pid)
        syscall(SYS_pidfd_send_signal, process->fd, sig, NULL, 0);
}

void dt_pulse_signal_all(struct dt_pulse *pulse, int sig)
{
    for (size_t i = 0; i < pulse->count; i++)
        dt_pulse_signal(pulse, i, sig);
}

/* Its name, in brackets, may hold any byte. */
char dt_pulse_state(const char *stat)
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
    /* looked up by its number: is it still the same process? */
    return dt_pulse_state(text) == 'T' &&
           syscall(SYS_pidfd_send_signal, process->fd, 0, NULL, 0) == 0;
}

static void begin_round(struct dt_pulse *pulse, int64_t now)
{
    int64_t passed = pulse->last < 0 ? 0 : now - pulse->last;
    pulse->step = passed < 2 * pulse->interval ? passed : pulse->interval;
    pulse->last = now;
    pulse->due = now + pulse->interval;
    pulse->at = 0;
}

long dt_pulse_turn(struct dt_pulse *pulse, int64_t now, int64_t *next)
{
    if (pulse->at == pulse->count && now >= pulse->due)
        begin_round(pulse, now);
    *next = pulse->due;
    while (pulse->at < pulse->count) {
        size_t i = pulse->at++;
        struct process *process = &pulse->process[i];
        process->still =
            is_stopped(process)
                ? process->still + (process->still ? pulse->step : 1)
                : 0;
        if (process->still < pulse->limit || process->told)
            continue;
        process->told = true;
        return (long)i;
    }
    return -1;
}
