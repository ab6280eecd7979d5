/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hosts.c - Slurm's way of writing many node names, "hgx[01-16,20],login". */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

enum { DIGITS = 9 };

struct expansion {
    const char *list; /* for messages */
    bool (*each)(void *arg, const char *name);
    void *arg;
    struct dt_error *err;
    size_t names;
    bool stopped;
};

static dt_result_t malformed(const struct expansion *e)
{
    return dt_error_set(
        e->err, DT_ERR_INVALID_ARG,
        "\"%s\": expected node names, as in hgx[01-16,20],login", e->list);
}

/* One to nine digits. */
static const char *digits(const char *at, unsigned long *value, int *width)
{
    for (*value = 0, *width = 0; isdigit((unsigned char)*at); at++, ++*width)
        if (*width < DIGITS)
            *value = *value * 10 + (unsigned long)(*at - '0');
    return *width && *width <= DIGITS ? at : NULL;
}

static dt_result_t expand(struct expansion *e, const char *name, size_t len,
                          const char *rest, const char *end);

/* Put each number of "01-16,20]" between name and what follows. */
static dt_result_t expand_bracket(struct expansion *e, const char *name,
                                  size_t len, const char *at, const char *end)
{
    const char *close = memchr(at, ']', (size_t)(end - at));
    char longer[HOST_NAME];
    if (!close || close == at)
        return malformed(e);
    while (at < close) {
        unsigned long from, to;
        int width, ignored;
        at = digits(at, &from, &width);
        to = from;
        if (at && *at == '-')
            at = digits(at + 1, &to, &ignored);
        if (!at || to < from || (at != close && *at++ != ','))
            return malformed(e);
        for (unsigned long i = from; i <= to && !e->stopped; i++) {
            int n = snprintf(longer, sizeof(longer), "%.*s%0*lu", (int)len,
                             name, width, i);
            if (n < 0 || (size_t)n >= sizeof(longer))
                return malformed(e);
            dt_result_t rc = expand(e, longer, (size_t)n, close + 1, end);
            if (rc != DT_SUCCESS)
                return rc;
        }
    }
    return DT_SUCCESS;
}

/* name is complete up to here; rest .. end is still to be expanded. */
static dt_result_t expand(struct expansion *e, const char *name, size_t len,
                          const char *rest, const char *end)
{
    char longer[HOST_NAME];
    size_t plain = 0;
    while (rest + plain < end && rest[plain] != '[')
        plain++;
    if (memchr(rest, ']', plain) || len + plain >= sizeof(longer))
        return malformed(e);
    memcpy(longer, name, len);
    memcpy(longer + len, rest, plain);
    longer[len += plain] = '\0';
    if (rest + plain < end)
        return expand_bracket(e, longer, len, rest + plain + 1, end);
    if (!len)
        return malformed(e);
    if (++e->names > HOST_MAX)
        return dt_error_set(e->err, DT_ERR_INVALID_ARG,
                            "\"%s\": more than %d nodes", e->list, HOST_MAX);
    e->stopped = !e->each(e->arg, longer);
    return DT_SUCCESS;
}

dt_result_t hosts_expand(const char *list,
                         bool (*each)(void *arg, const char *name), void *arg,
                         struct dt_error *err)
{
    struct expansion e = {.list = list, .each = each, .arg = arg, .err = err};
    if (strpbrk(list, " \t/"))
        return malformed(&e);
    for (const char *at = list; !e.stopped;) {
        const char *end = at;
        for (bool inside = false; *end && (inside || *end != ','); end++)
            inside = *end == '[' || (inside && *end != ']');
        dt_result_t rc = expand(&e, "", 0, at, end);
        if (rc != DT_SUCCESS)
            return rc;
        if (!*end)
            break;
        at = end + 1;
    }
    return DT_SUCCESS;
}

/* ---- printing ---- */

/* Where the number at the end of name begins. */
static size_t stem(const char *name)
{
    size_t len = strlen(name), at = len;
    while (at > 0 && len - at < DIGITS && isdigit((unsigned char)name[at - 1]))
        at--;
    return at;
}

static bool same_stem(const char *a, const char *b)
{
    size_t len = stem(a);
    return a[len] && b[len] && len == stem(b) && !strncmp(a, b, len);
}

/* Is b's number the one after a's, with the same number of digits? */
static bool follows(const char *a, const char *b)
{
    return strlen(a) == strlen(b) &&
           strtoul(b + stem(b), NULL, 10) == strtoul(a + stem(a), NULL, 10) + 1;
}

void hosts_print(FILE *out, const char *const *name, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t last = i + 1;
        while (last < n && same_stem(name[i], name[last]))
            last++;
        fputs(i ? "," : "", out);
        if (last == i + 1) {
            fputs(name[i++], out);
            continue;
        }
        fprintf(out, "%.*s[", (int)stem(name[i]), name[i]);
        for (const char *comma = ""; i < last; comma = ",") {
            size_t to = i;
            while (to + 1 < last && follows(name[to], name[to + 1]))
                to++;
            fprintf(out, "%s%s", comma, name[i] + stem(name[i]));
            if (to > i)
                fprintf(out, "-%s", name[to] + stem(name[to]));
            i = to + 1;
        }
        fputc(']', out);
    }
}
