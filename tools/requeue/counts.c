/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* counts.c - the word of the job's Comment. */
#include "counts.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

static const char word[] = "dt-requeue:";
enum { MAX_COUNT = 1000000 };

static const char *const cause_name[NCAUSES] = {
    "asked", "preempt", "nodefail", "timeout", "error", "hand"};

const char *const cause_text[NCAUSES] = {
    "the program asked for it", "it was preempted", "a node failed",
    "its time was over",        "it failed",        "it was requested",
};

/* Where the word begins in comment, or its end. */
static const char *find(const char *comment)
{
    const char *at = comment;
    while ((at = strstr(at, word)) != NULL) {
        if (at == comment || at[-1] == ' ')
            return at;
        at++;
    }
    return comment + strlen(comment);
}

static unsigned read_count(const char *text)
{
    uint64_t n = 0;
    if (!dt_number_scan(&text, 10, MAX_COUNT, &n) && *text >= '0' &&
        *text <= '9')
        n = MAX_COUNT;
    return (unsigned)n;
}

/* n3*2 */
static void read_bad(struct counts *counts, const char *text, size_t length)
{
    const char *star = memchr(text, '*', length);
    if (!star || star == text || star - text >= NODE_NAME ||
        counts->nbad == MAX_BAD)
        return;
    size_t name = (size_t)(star - text);
    memcpy(counts->bad[counts->nbad].node, text, name);
    counts->bad[counts->nbad].node[name] = '\0';
    counts->bad[counts->nbad++].n = read_count(star + 1);
}

/* One of a=b, up to the comma; a node list is the last, and has commas. */
static size_t read_item(struct counts *counts, const char *at, size_t length)
{
    size_t item = strcspn(at, ", ");
    if (!strncmp(at, "on=", 3)) {
        if (length - 3 < sizeof(counts->on)) {
            memcpy(counts->on, at + 3, length - 3);
            counts->on[length - 3] = '\0';
        }
        return length;
    }
    if (!strncmp(at, "bad=", 4))
        read_bad(counts, at + 4, item > 4 ? item - 4 : 0);
    for (int i = 0; i < NCAUSES; i++) {
        size_t name = strlen(cause_name[i]);
        if (name < item && at[name] == '=' && !strncmp(at, cause_name[i], name))
            counts->n[i] = read_count(at + name + 1);
    }
    return item < length ? item + 1 : length;
}

void counts_read(const char *comment, struct counts *counts)
{
    const char *at = find(comment);
    memset(counts, 0, sizeof(*counts));
    if (!*at)
        return;
    at += sizeof(word) - 1;
    for (size_t length = strcspn(at, " "); length;) {
        size_t taken = read_item(counts, at, length);
        at += taken;
        length -= taken;
    }
}

void counts_write(const struct counts *counts, const char *comment,
                  char text[COMMENT])
{
    const char *begin = find(comment);
    const char *rest = begin + strcspn(begin, " ");
    size_t head = (size_t)(begin - comment), at = 0;
    char own[NODE_LIST + MAX_BAD * (NODE_NAME + 20) + 256];
    const char *comma = "";
    while (head && comment[head - 1] == ' ')
        head--;
    rest += strspn(rest, " ");
    at = (size_t)snprintf(own, sizeof(own), "%s", word);
    for (int i = 0; i < NCAUSES; i++)
        if (counts->n[i]) {
            at += (size_t)snprintf(own + at, sizeof(own) - at, "%s%s=%u", comma,
                                   cause_name[i], counts->n[i]);
            comma = ",";
        }
    for (size_t i = 0; i < counts->nbad; i++) {
        at += (size_t)snprintf(own + at, sizeof(own) - at, "%sbad=%s*%u", comma,
                               counts->bad[i].node, counts->bad[i].n);
        comma = ",";
    }
    if (*counts->on)
        at += (size_t)snprintf(own + at, sizeof(own) - at, "%son=%s", comma,
                               counts->on);
    if (at == sizeof(word) - 1)
        own[0] = '\0'; /* nothing to say */
    snprintf(text, COMMENT, "%.*s%s%.1000s%s%s",
             (int)(head < 1000 ? head : 1000), comment,
             head && (*rest || *own) ? " " : "", rest, *rest && *own ? " " : "",
             own);
}

unsigned counts_all(const struct counts *counts)
{
    unsigned all = 0;
    for (int i = 0; i < NCAUSES; i++)
        all += counts->n[i];
    return all;
}

void counts_failed(struct counts *counts, const char *node)
{
    for (size_t i = 0; i < counts->nbad; i++)
        if (!strcmp(counts->bad[i].node, node)) {
            counts->bad[i].n++;
            return;
        }
    if (counts->nbad == MAX_BAD || strlen(node) >= NODE_NAME)
        return;
    snprintf(counts->bad[counts->nbad].node, NODE_NAME, "%s", node);
    counts->bad[counts->nbad++].n = 1;
}

void counts_bad_nodes(const struct counts *counts, char *list, size_t size)
{
    size_t at = 0;
    *list = '\0';
    for (size_t i = 0; i < counts->nbad; i++)
        if (counts->bad[i].n >= 2 &&
            at + strlen(counts->bad[i].node) + 2 < size)
            at += (size_t)snprintf(list + at, size - at, "%s%s", at ? "," : "",
                                   counts->bad[i].node);
}
