/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* timeline.c - what happened when.
 *
 * The file is an array of events. Times are microseconds since the timeline
 * began, and a row (tid) is given to each name when it first occurs. Readers
 * accept an array without its end, so that what a killed program has left can
 * be read. */
#include "grad/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/api.h"
#include "base/printable.h"

struct row {
    char *name;
    int number;
    struct row *chain;
};

struct dt_timeline {
    FILE *file;
    char *path;
    double start;
    int nrows;
    bool lost; /* something could not be written */
    struct row *rows[DT_NAMES];
};

/* name as the inside of a JSON string. */
static void quote(char *text, size_t room, const char *name)
{
    char plain[512];
    size_t at = 0;
    dt_printable(plain, sizeof(plain), name);
    for (const char *c = plain; *c && at + 3 < room; c++) {
        if (*c == '"' || *c == '\\')
            text[at++] = '\\';
        text[at++] = *c;
    }
    text[at] = '\0';
}

static int new_row(struct dt_timeline *t, const char *name, unsigned hash)
{
    char text[600];
    struct row *row = calloc(1, sizeof(*row));
    char *copy = strdup(name);
    if (!row || !copy) {
        free(row);
        free(copy);
        return 0;
    }
    *row = (struct row){copy, ++t->nrows, t->rows[hash]};
    t->rows[hash] = row;
    quote(text, sizeof(text), name);
    if (fprintf(t->file,
                "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                "\"args\":{\"name\":\"%s\"}},\n",
                dt_rank(), row->number, text) < 0)
        t->lost = true;
    return row->number;
}

static int row_of(struct dt_timeline *t, const char *name)
{
    unsigned hash = dt_grad_hash(0, name);
    for (struct row *row = t->rows[hash]; row; row = row->chain)
        if (strcmp(row->name, name) == 0)
            return row->number;
    return new_row(t, name, hash);
}

void dt_timeline_add(struct dt_timeline *t, const char *name, const char *what,
                     double start, double end)
{
    if (!t)
        return;
    int row = row_of(t, name);
    if (start < t->start)
        start = t->start;
    if (fprintf(t->file,
                "{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
                "\"ts\":%.3f,\"dur\":%.3f},\n",
                what, dt_rank(), row, (start - t->start) * 1e6,
                end > start ? (end - start) * 1e6 : 0) < 0)
        t->lost = true;
}

void dt_timeline_bucket(struct dt_grad_plan *plan,
                        const struct dt_bucket *bucket, const char *what,
                        double start)
{
    struct dt_timeline *t = plan->grad->timeline;
    char name[64];
    if (!t)
        return;
    double end = dt_grad_now();
    snprintf(name, sizeof(name), "plan %u, bucket %d", plan->number,
             (int)(bucket - plan->buckets));
    dt_timeline_add(t, name, what, start, end);
    for (int i = 0; i < bucket->n; i++) {
        const struct dt_gradient *g = bucket->gradients[i];
        if (strcmp(what, "pack") == 0)
            dt_timeline_add(t, g->work.name, "wait", g->since, start);
        dt_timeline_add(t, g->work.name, what, start, end);
    }
}

static void destroy(struct dt_timeline *t)
{
    for (size_t i = 0; i < DT_NAMES; i++)
        while (t->rows[i]) {
            struct row *row = t->rows[i];
            t->rows[i] = row->chain;
            free(row->name);
            free(row);
        }
    free(t->path);
    free(t);
}

dt_result_t dt_timeline_close(struct dt_timeline *t, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    if (!t)
        return rc;
    bool lost = t->lost;
    errno = 0;
    if (fprintf(t->file,
                "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
                "\"args\":{\"name\":\"rank %d\"}}\n]\n",
                dt_rank(), dt_rank()) < 0)
        lost = true;
    if (fclose(t->file) != 0 || lost)
        rc = dt_error_set(err, DT_ERR_IO, "timeline %.300s is not complete: %s",
                          t->path, errno ? strerror(errno) : "a write failed");
    destroy(t);
    return rc;
}

static dt_result_t open_timeline(const char *path, struct dt_timeline **out,
                                 struct dt_error *err)
{
    struct dt_timeline *t = calloc(1, sizeof(*t));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    char *copy = strdup(path);
    if (!t || !file || !copy) {
        dt_error_set(err, DT_ERR_IO, "timeline %.300s: %s", path,
                     strerror(errno));
        if (file)
            fclose(file);
        else if (fd >= 0)
            close(fd);
        free(copy);
        free(t);
        return DT_ERR_IO;
    }
    t->file = file;
    t->path = copy;
    t->start = dt_grad_now();
    if (fputs("[\n", file) < 0)
        t->lost = true;
    *out = t;
    return DT_SUCCESS;
}

dt_result_t dt_grad_timeline(dt_grad_t grad, const char *path)
{
    struct dt_error err = {""};
    struct dt_timeline *new = NULL, *old = NULL;
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_SUCCESS && path && grad->timeline)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "there is a timeline already: end it first");
    if (rc == DT_SUCCESS && path)
        rc = open_timeline(path, &new, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    pthread_mutex_lock(&grad->drive);
    old = grad->timeline;
    grad->timeline = new;
    pthread_mutex_unlock(&grad->drive);
    return dt_api_return(dt_timeline_close(old, &err), &err);
}
