/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.c - reading and writing measured parameters. */
#include "coll/tune.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define FILE_MAX   ((size_t)1 << 16)
#define LINE_CHARS 200

/* A node of two sockets, and a link of 100 Gbit/s with RDMA. */
const struct dt_tune dt_tune_default = {
    .node_latency = 2.5e-7,
    .node_byte = 1e-10,
    .fold_byte = 5e-11,
    .net_latency = 3e-6,
    .net_byte = 8e-11,
    .task = 1e-7,
};

static const struct {
    const char *name, *comment;
    size_t offset;
} parameters[] = {
    {"node_latency", "s, a flag from one core to another",
     offsetof(struct dt_tune, node_latency)},
    {"node_byte", "s/byte, copy through shared memory",
     offsetof(struct dt_tune, node_byte)},
    {"fold_byte", "s/byte, per input of a reduction",
     offsetof(struct dt_tune, fold_byte)},
    {"net_latency", "s, a short message between nodes",
     offsetof(struct dt_tune, net_latency)},
    {"net_byte", "s/byte, a long message on one rail",
     offsetof(struct dt_tune, net_byte)},
    {"task", "s, any step of a schedule", offsetof(struct dt_tune, task)},
};
#define NPARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

/* Where a reader is, for its errors. */
struct reader {
    const char *path;
    size_t line;
    struct dt_tune tune;
    bool seen[NPARAMETERS];
    struct dt_error *err;
};

/* Numbers are written with a point, whatever the program's language. The result
 * is for neutral_end. */
static locale_t neutral(locale_t *old)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *old = c ? uselocale(c) : (locale_t)0;
    return c;
}

static void neutral_end(locale_t c, locale_t old)
{
    if (c) {
        uselocale(old);
        freelocale(c);
    }
}

static double *field(struct dt_tune *tune, size_t i)
{
    return (double *)(void *)((char *)tune + parameters[i].offset);
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t len = strlen(text);
    while (len && isspace((unsigned char)text[len - 1]))
        text[--len] = 0;
    return text;
}

/* What of a hostile file may be shown. */
static const char *printable(char *text)
{
    for (char *c = text; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
    if (strlen(text) > 40)
        memcpy(text + 37, "...", 4);
    return text;
}

static dt_result_t bad_name(const struct reader *reader, char *name)
{
    char known[NPARAMETERS * 16] = "";
    for (size_t i = 0; i < NPARAMETERS; i++) {
        strcat(known, i ? ", " : "");
        strcat(known, parameters[i].name);
    }
    return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                        "%s:%zu: unknown parameter '%s': expected one of %s; "
                        "dt-bench --tune writes this file",
                        reader->path, reader->line, printable(name), known);
}

static dt_result_t set(struct reader *reader, char *name, char *text)
{
    size_t i = 0;
    while (i < NPARAMETERS && strcmp(name, parameters[i].name))
        i++;
    if (i == NPARAMETERS)
        return bad_name(reader, name);
    if (reader->seen[i])
        return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                            "%s:%zu: %s is given twice: keep one line",
                            reader->path, reader->line, name);
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < 1e-18 || value > 1e6)
        return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                            "%s:%zu: %s is '%s': expected seconds between "
                            "1e-18 and 1e6, e.g. 2.5e-7",
                            reader->path, reader->line, name, printable(text));
    reader->seen[i] = true;
    *field(&reader->tune, i) = value;
    return DT_SUCCESS;
}

static dt_result_t read_line(struct reader *reader, char *line)
{
    line[strcspn(line, "#")] = 0;
    line = trim(line);
    if (!*line)
        return DT_SUCCESS;
    char *value = strchr(line, '=');
    if (!value)
        return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                            "%s:%zu: '%s': expected 'name = value'",
                            reader->path, reader->line, printable(line));
    *value++ = 0;
    return set(reader, trim(line), trim(value));
}

/* text is of one file, with a 0 behind it. */
static dt_result_t read_text(struct reader *reader, char *text, size_t len)
{
    if (memchr(text, 0, len))
        return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                            "%s: is no text: expected lines 'name = value'",
                            reader->path);
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        reader->line++;
        if (strlen(line) > LINE_CHARS)
            return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                                "%s:%zu: is longer than %d characters",
                                reader->path, reader->line, LINE_CHARS);
        dt_result_t rc = read_line(reader, line);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return DT_SUCCESS;
}

dt_result_t dt_tune_read(const char *path, struct dt_tune *tune,
                         struct dt_error *err)
{
    struct reader reader = {.path = path, .tune = *tune, .err = err};
    dt_result_t rc = DT_SUCCESS;
    size_t size;
    char *text = NULL;
    int fd = dt_file_open(AT_FDCWD, path, &size);
    if (fd < 0)
        return dt_error_set(err, DT_ERR_IO,
                            "%s: %s: expected a file of tuning parameters",
                            path, strerror(errno));
    if (size > FILE_MAX) {
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "%s: has %zu bytes: expected a file of tuning "
                          "parameters, at most %zu",
                          path, size, FILE_MAX);
        goto close;
    }
    text = calloc(1, size + 1);
    ssize_t got = text ? dt_file_read(fd, text, size, 0) : -1;
    if (got < 0) {
        rc = dt_error_set(err, DT_ERR_IO, "%s: %s", path, strerror(errno));
        goto close;
    }
    locale_t old, c = neutral(&old);
    rc = read_text(&reader, text, (size_t)got);
    neutral_end(c, old);
    if (rc == DT_SUCCESS)
        *tune = reader.tune;

close:
    free(text);
    close(fd);
    return rc;
}

dt_result_t dt_tune_write(FILE *file, const struct dt_tune *tune,
                          struct dt_error *err)
{
    struct dt_tune copy = *tune;
    bool failed = fputs("# libdt: what this machine takes; DT_TUNE names this "
                        "file\n",
                        file) < 0;
    locale_t old, c = neutral(&old);
    for (size_t i = 0; i < NPARAMETERS; i++)
        failed |= fprintf(file, "%s = %.9g # %s\n", parameters[i].name,
                          *field(&copy, i), parameters[i].comment) < 0;
    neutral_end(c, old);
    if (fflush(file) || failed)
        return dt_error_set(err, DT_ERR_IO,
                            "cannot write the tuning parameters: %s",
                            strerror(errno));
    return DT_SUCCESS;
}
