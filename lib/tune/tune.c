/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.c - read and write the file of tuning parameters. */
#include "tune/tune.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/names.h"

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
    .gpu[0 ... DT_TUNE_SCOPES - 1][0 ... DT_TUNE_COLLS - 1] =
        {.brief = DT_TUNE_UNSET, .lengthy = DT_TUNE_UNSET},
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
    {"task", "s, any operation of a schedule", offsetof(struct dt_tune, task)},
};
#define NPARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

/* The rules of GPU memory are named gpu_node_allreduce and so on. */
static const char *const ways[DT_TUNE_WAYS] = {[DT_TUNE_IPC] = "ipc",
                                               [DT_TUNE_NCCL] = "nccl",
                                               [DT_TUNE_STAGED] = "staged"};
static const char *const scopes[DT_TUNE_SCOPES] = {
    [DT_TUNE_NODE] = "node", [DT_TUNE_NET] = "net"};
#define NRULES ((size_t)DT_TUNE_SCOPES * DT_TUNE_COLLS)

/* What is read, and where the reader is, for error messages. */
struct reader {
    const char *path;
    size_t line;
    struct dt_tune tune;
    bool seen[NPARAMETERS + NRULES]; /* the parameters, then the rules */
    struct dt_error *err;
};

/* Numbers are written with a decimal point in every locale of the program. The
 * caller gives the result to neutral_end. */
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

/* Make text from a file safe to print: it may come from a stranger. */
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
        strcat(known, parameters[i].name);
        strcat(known, ", ");
    }
    return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                        "%s:%zu: unknown parameter '%s': expected one of "
                        "%sor gpu_node_ or gpu_net_ and a collective, e.g. "
                        "gpu_node_allreduce; dt-bench --tune writes this file",
                        reader->path, reader->line, printable(name), known);
}

static dt_result_t set_number(struct reader *reader, size_t i, char *text)
{
    const char *name = parameters[i].name;
    double value;
    if (dt_number_read_real("", text, 1e-18, 1e6, &value, NULL) != DT_SUCCESS)
        return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                            "%s:%zu: %s is '%s': expected seconds between "
                            "1e-18 and 1e6, e.g. 2.5e-7",
                            reader->path, reader->line, name, printable(text));
    *field(&reader->tune, i) = value;
    return DT_SUCCESS;
}

/* ---- rules ---- */

bool dt_tune_way(const char *name, enum dt_tune_way *way)
{
    for (size_t i = 0; i < DT_TUNE_WAYS; i++)
        if (!strcmp(name, ways[i])) {
            *way = (enum dt_tune_way)i;
            return true;
        }
    return false;
}

const char *dt_tune_way_name(enum dt_tune_way way)
{
    return ways[way];
}

static struct dt_tune_rule *rule(struct dt_tune *tune, size_t i)
{
    return &tune->gpu[i / DT_TUNE_COLLS][i % DT_TUNE_COLLS];
}

static void rule_name(size_t i, char name[32])
{
    snprintf(name, 32, "gpu_%s_%s", scopes[i / DT_TUNE_COLLS],
             dt_name_coll((enum dt_coll)(i % DT_TUNE_COLLS)));
}

/* The next word of *text; "" after the last one. */
static char *word(char **text)
{
    static const char space[] = " \t\v\f\r";
    char *start = *text + strspn(*text, space);
    char *end = start + strcspn(start, space);
    *text = *end ? end + 1 : end;
    *end = 0;
    return start;
}

/* WAY, or WAY SIZE WAY */
static bool read_rule(char *text, struct dt_tune_rule *out)
{
    enum dt_tune_way brief, lengthy;
    uint64_t upto = 0;
    if (!dt_tune_way(word(&text), &brief))
        return false;
    lengthy = brief;
    const char *size = word(&text);
    if (*size && (dt_number_read_size("", size, 0, UINT64_MAX, &upto, NULL) !=
                      DT_SUCCESS ||
                  !dt_tune_way(word(&text), &lengthy)))
        return false;
    *out = (struct dt_tune_rule){upto, (int32_t)brief, (int32_t)lengthy};
    return !*word(&text);
}

static dt_result_t set_rule(struct reader *reader, size_t i, const char *name,
                            char *text)
{
    char words[LINE_CHARS + 1];
    struct dt_tune_rule read;
    snprintf(words, sizeof(words), "%s", text);
    if (!read_rule(words, &read))
        return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                            "%s:%zu: %s is '%s': expected " DT_TUNE_WAY_WORDS
                            ", or 'ipc 1M nccl': up to 1 MiB ipc, above nccl",
                            reader->path, reader->line, name, printable(text));
    *rule(&reader->tune, i) = read;
    return DT_SUCCESS;
}

/* The index of a name in seen; its size when the name is unknown. */
static size_t find(const char *name)
{
    size_t i;
    for (i = 0; i < NPARAMETERS; i++)
        if (!strcmp(name, parameters[i].name))
            return i;
    for (; i < NPARAMETERS + NRULES; i++) {
        char known[32];
        rule_name(i - NPARAMETERS, known);
        if (!strcmp(name, known))
            break;
    }
    return i;
}

static dt_result_t set(struct reader *reader, char *name, char *text)
{
    const size_t i = find(name);
    if (i == NPARAMETERS + NRULES)
        return bad_name(reader, name);
    if (reader->seen[i])
        return dt_error_set(reader->err, DT_ERR_INVALID_ARG,
                            "%s:%zu: %s is given twice: keep one line",
                            reader->path, reader->line, name);
    reader->seen[i] = true;
    return i < NPARAMETERS ? set_number(reader, i, text)
                           : set_rule(reader, i - NPARAMETERS, name, text);
}

/* ---- the file ---- */

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

/* text is the content of the file, terminated by 0. */
static dt_result_t read_text(struct reader *reader, char *text, size_t len)
{
    if (memchr(text, 0, len))
        return dt_error_set(
            reader->err, DT_ERR_INVALID_ARG,
            "%s: not a text file: expected lines 'name = value'", reader->path);
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
    rc = read_text(&reader, text, (size_t)got);
    if (rc == DT_SUCCESS)
        *tune = reader.tune;

close:
    free(text);
    close(fd);
    return rc;
}

static bool write_rule(FILE *file, size_t i, const struct dt_tune_rule *r)
{
    char name[32];
    rule_name(i, name);
    if (r->brief == DT_TUNE_UNSET)
        return true;
    if (r->brief == r->lengthy)
        return fprintf(file, "%s = %s\n", name, ways[r->lengthy]) >= 0;
    return fprintf(file, "%s = %s %" PRIu64 " %s\n", name, ways[r->brief],
                   r->upto, ways[r->lengthy]) >= 0;
}

void dt_tune_clear(struct dt_tune *tune)
{
    *tune = (struct dt_tune){0};
    for (size_t i = 0; i < NRULES; i++)
        *rule(tune, i) = (struct dt_tune_rule){0, DT_TUNE_UNSET, DT_TUNE_UNSET};
}

dt_result_t dt_tune_write(FILE *file, const struct dt_tune *tune,
                          struct dt_error *err)
{
    struct dt_tune copy = *tune;
    bool failed = false;
    locale_t old, c = neutral(&old);
    for (size_t i = 0; i < NPARAMETERS; i++)
        if (*field(&copy, i) > 0)
            failed |= fprintf(file, "%s = %.6g # %s\n", parameters[i].name,
                              *field(&copy, i), parameters[i].comment) < 0;
    neutral_end(c, old);
    for (size_t i = 0; i < NRULES; i++)
        failed |= !write_rule(file, i, rule(&copy, i));
    if (fflush(file) || failed)
        return dt_error_set(err, DT_ERR_IO,
                            "cannot write the tuning parameters: %s",
                            strerror(errno));
    return DT_SUCCESS;
}
