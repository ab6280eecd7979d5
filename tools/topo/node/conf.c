/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* conf.c - dt.conf, which names the topology files of nodes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node.h"

enum { MAX_CONF = 1 << 20, LINE = 8192 };

struct line {
    const char *path;
    size_t number;
    char *nodes, *topology; /* NULL: not given */
    struct dt_error *err;
};

static dt_result_t bad(const struct line *line, const char *what,
                       const char *word)
{
    return dt_error_set(line->err, DT_ERR_INVALID_ARG,
                        "%s line %zu: %s \"%s\": expected NodeName=<nodes> "
                        "Topology=<file>, or Topology=<file> for all",
                        line->path, line->number, what, word);
}

/* The next word of *at, cut out in place; NULL at the end. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " \t\r");
    if (!*word)
        return NULL;
    *at = word + strcspn(word, " \t\r");
    if (**at)
        *(*at)++ = '\0';
    return word;
}

static dt_result_t parse_line(struct line *line, char *text)
{
    char *word;
    text[strcspn(text, "#")] = '\0';
    while ((word = next_word(&text))) {
        char *value = strchr(word, '=');
        if (!value || !value[1])
            return bad(line, "no value in", word);
        *value++ = '\0';
        char **field = !strcasecmp(word, "NodeName")   ? &line->nodes
                       : !strcasecmp(word, "Topology") ? &line->topology
                                                       : NULL;
        if (!field)
            return bad(line, "unknown key", word);
        if (*field)
            return bad(line, "twice the key", word);
        *field = value;
    }
    if (line->nodes && !line->topology)
        return bad(line, "no Topology for", line->nodes);
    return DT_SUCCESS;
}

struct wanted {
    const char *node;
    bool found;
};

static bool is_node(void *arg, const char *name)
{
    struct wanted *wanted = arg;
    wanted->found = !strcmp(name, wanted->node);
    return !wanted->found;
}

/* Into file, from the folder of path unless it is absolute. */
static dt_result_t resolve(const struct line *line, char *file, size_t size)
{
    const char *slash = strrchr(line->path, '/');
    size_t folder = slash ? (size_t)(slash - line->path) + 1 : 0;
    if (line->topology[0] == '/')
        folder = 0;
    int n =
        snprintf(file, size, "%.*s%s", (int)folder, line->path, line->topology);
    return n < 0 || (size_t)n >= size ? bad(line, "too long", line->topology)
                                      : DT_SUCCESS;
}

/* 0: not for node, 1: for all nodes, 2: for node */
static dt_result_t rate(const struct line *line, const char *node, int *rating)
{
    struct wanted wanted = {node, false};
    struct dt_error why;
    *rating = line->topology ? 1 : 0;
    if (!line->nodes)
        return DT_SUCCESS;
    if (hosts_expand(line->nodes, is_node, &wanted, &why) != DT_SUCCESS)
        return dt_error_set(line->err, DT_ERR_INVALID_ARG,
                            "%s line %zu: NodeName=%.400s", line->path,
                            line->number, why.text);
    *rating = wanted.found ? 2 : 0;
    return DT_SUCCESS;
}

dt_result_t conf_find(const char *text, const char *path, const char *node,
                      char *file, size_t size, struct dt_error *err)
{
    char copy[LINE], found[4096] = "";
    int best = 0;
    for (size_t number = 1; *text; number++) {
        size_t len = strcspn(text, "\n");
        struct line line = {.path = path, .number = number, .err = err};
        int rating;
        if (len >= sizeof(copy))
            return bad(&line, "too long a line,", "");
        memcpy(copy, text, len);
        copy[len] = '\0';
        dt_result_t rc = parse_line(&line, copy);
        if (rc == DT_SUCCESS)
            rc = rate(&line, node, &rating);
        if (rc == DT_SUCCESS && rating > best) { /* the first of equal ones */
            best = rating;
            rc = resolve(&line, found, sizeof(found));
        }
        if (rc != DT_SUCCESS)
            return rc;
        text += len + (text[len] == '\n');
    }
    if (strlen(found) >= size)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%s: too long a path",
                            path);
    strcpy(file, found);
    return DT_SUCCESS;
}

dt_result_t conf_read(const char *path, const char *node, char *file,
                      size_t size, struct dt_error *err)
{
    FILE *in = fopen(path, "re");
    if (!in)
        return dt_error_set(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO,
                            "%s: %s", path, strerror(errno));
    dt_result_t rc = DT_SUCCESS;
    char *text = malloc(MAX_CONF + 1);
    size_t len = text ? fread(text, 1, MAX_CONF + 1, in) : 0;
    if (!text)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    else if (ferror(in))
        rc = dt_error_set(err, DT_ERR_IO, "%s: it cannot be read", path);
    else if (len > MAX_CONF || memchr(text, '\0', len))
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "%s: expected text of at most %d bytes", path,
                          MAX_CONF);
    fclose(in);
    if (rc == DT_SUCCESS) {
        text[len] = '\0';
        rc = conf_find(text, path, node, file, size, err);
    }
    free(text);
    return rc;
}
