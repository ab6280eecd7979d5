/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* label.c - the ranks' output line by line, each with its rank in front. */
#include "run/label.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* A longer line is cut into several. */
#define LINE_MAX_BYTES 65536
#define PREFIX_MAX     24

dt_result_t dt_labels_open(struct dt_labels *labels, size_t ranks,
                           struct dt_error *err)
{
    *labels = (struct dt_labels){.ranks = ranks};
    labels->all = calloc(2 * ranks, sizeof(*labels->all));
    if (!labels->all)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory to label the output");
    return DT_SUCCESS;
}

void dt_labels_poll(const struct dt_labels *labels, struct pollfd *entries)
{
    for (size_t i = 0; i < labels->count; i++)
        entries[i] = (struct pollfd){labels->all[i].from, POLLIN, 0};
}

/* Write one line, of len bytes at text, in one call. */
static void print_line(const struct dt_label *label, const char *text,
                       size_t len)
{
    char line[PREFIX_MAX + LINE_MAX_BYTES + 1];
    int prefix = snprintf(line, PREFIX_MAX, "%zu: ", label->rank);
    memcpy(line + prefix, text, len);
    line[(size_t)prefix + len] = '\n';
    /* if the reader is gone, the ranks go on, as without labels */
    if (dt_file_write(label->to, line, (size_t)prefix + len + 1))
        return;
}

/* Print the complete lines of what is there, and keep the rest. */
static void print_lines(struct dt_label *label)
{
    char *at = label->text, *end = label->text + label->len, *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
        print_line(label, at, (size_t)(newline - at));
        at = newline + 1;
    }
    label->len = (size_t)(end - at);
    if (label->len == LINE_MAX_BYTES) {
        print_line(label, at, label->len);
        label->len = 0;
    }
    memmove(label->text, at, label->len);
}

/* Print what at most times reads return: a rank that writes without end must
 * not keep the others waiting. */
static void print(struct dt_label *label, int times)
{
    while (label->from >= 0 && times-- > 0) {
        ssize_t got = read(label->from, label->text + label->len,
                           LINE_MAX_BYTES - label->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            close(label->from);
            label->from = -1;
            return;
        }
        label->len += (size_t)got;
        print_lines(label);
    }
}

/* Print what is left of it, and free. */
static void finish(struct dt_label *label)
{
    print(label, 64);
    if (label->len)
        print_line(label, label->text, label->len);
    if (label->from >= 0)
        close(label->from);
    free(label->text);
}

/* That of the process which the rank had before; NULL if there is none. */
static struct dt_label *find_old(struct dt_labels *labels, size_t rank, int to)
{
    for (size_t i = 0; i < labels->count; i++)
        if (labels->all[i].rank == rank && labels->all[i].to == to)
            return &labels->all[i];
    return NULL;
}

static dt_result_t add(struct dt_labels *labels, size_t rank, int to, int *fd,
                       struct dt_error *err)
{
    int fds[2];
    struct dt_label *label = find_old(labels, rank, to);
    bool is_new = !label;
    if (is_new)
        label = &labels->all[labels->count];
    else
        finish(label); /* a child of the old process may keep it open */
    *label = (struct dt_label){.rank = rank, .to = to, .from = -1};
    label->text = malloc(PREFIX_MAX + LINE_MAX_BYTES + 1);
    if (!label->text)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory to label the output");
    if (pipe2(fds, O_CLOEXEC)) {
        free(label->text);
        label->text = NULL;
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "pipe: %s: more ranks than 'ulimit -n' allows "
                            "with -l",
                            strerror(errno));
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    label->from = fds[0];
    label->len = 0;
    labels->count += is_new;
    *fd = fds[1];
    return DT_SUCCESS;
}

dt_result_t dt_labels_add(struct dt_labels *labels, size_t rank, int fds[2],
                          struct dt_error *err)
{
    dt_result_t rc = add(labels, rank, STDOUT_FILENO, &fds[0], err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = add(labels, rank, STDERR_FILENO, &fds[1], err);
    if (rc != DT_SUCCESS)
        close(fds[0]);
    return rc;
}

void dt_labels_print(struct dt_labels *labels)
{
    for (size_t i = 0; i < labels->count; i++)
        print(&labels->all[i], 1);
}

void dt_labels_close(struct dt_labels *labels)
{
    for (size_t i = 0; i < labels->count; i++)
        finish(&labels->all[i]);
    free(labels->all);
    *labels = (struct dt_labels){0};
}
