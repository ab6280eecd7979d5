/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* step.c - reads what the plugin sends about the step. */
#include "daemon/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/step.h"
#include "mesh/map.h"

static bool read_number(const char *text, uint32_t min, uint32_t max,
                        uint32_t *number)
{
    int64_t value;
    if (!dt_number_parse(text, min, max, &value))
        return false;
    *number = (uint32_t)value;
    return true;
}

/* Names or addresses, with commas. The user's environment has one of them. */
static bool are_hosts(const char *text)
{
    return text[strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_:%,")] == '\0';
}

/* "4-5,9" into room for max numbers; their count, 0 if that is no such list. */
static size_t read_ranks(const char *text, size_t max, uint32_t *ranks)
{
    size_t n = 0;
    for (;; text++) {
        uint64_t first, last;
        if (!dt_number_scan(&text, 10, UINT32_MAX - 1, &first))
            return 0;
        last = first;
        if (*text == '-' &&
            (text++, !dt_number_scan(&text, 10, UINT32_MAX - 1, &last)))
            return 0;
        if (last < first || last - first >= max - n)
            return 0;
        for (; first <= last; first++)
            ranks[n++] = (uint32_t)first;
        if (!*text)
            return n;
        if (*text != ',' || n == max)
            return 0;
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool read_local(const char *text, struct dt_step *step)
{
    if (!step->ranks || step->local)
        return false;
    step->local = calloc(step->ranks, sizeof(*step->local));
    if (!step->local)
        return false;
    step->nlocal = read_ranks(text, step->ranks, step->local);
    if (!step->nlocal)
        return false;
    qsort(step->local, step->nlocal, sizeof(*step->local), compare);
    for (size_t i = 0; i < step->nlocal; i++)
        if (step->local[i] >= step->ranks ||
            (i && step->local[i] == step->local[i - 1]))
            return false;
    return true;
}

static bool read_meet(char *text, struct dt_step *step)
{
    char *blank = strrchr(text, ' ');
    uint32_t port;
    if (!blank || blank == text || !read_number(blank + 1, 0, 65535, &port))
        return false;
    *blank = '\0';
    step->hosts = text;
    step->port = (uint16_t)port;
    return are_hosts(text);
}

/* May it be given now? Each key once. */
static bool is_first(unsigned *seen, unsigned bit)
{
    bool first = !(*seen & 1u << bit);
    *seen |= 1u << bit;
    return first;
}

/* The bits of seen: of the numbers, of the texts, of meet. */
static bool read_value(struct dt_step *step, const char *key, char *value,
                       unsigned *seen)
{
    const struct {
        const char *key;
        uint32_t *number, min, max;
    } numbers[] = {{"job", &step->job, 0, UINT32_MAX - 1},
                   {"step", &step->step, 0, UINT32_MAX - 1},
                   {"node", &step->node, 0, DT_MAP_MAX_NODES - 1},
                   {"nodes", &step->nodes, 1, DT_MAP_MAX_NODES},
                   {"ranks", &step->ranks, 1, DT_MAP_MAX_RANKS},
                   {"heartbeat", &step->heartbeat, 1, 86400},
                   {"limit", &step->limit, 1, 86400},
                   {"hold-own", &step->hold_own, 0, 1},
                   {"hold-shared", &step->hold_shared, 0, 16},
                   {"listen", &step->listen, 0, 604800},
                   {"together", &step->together, 0, 1},
                   {"elastic", &step->elastic, 1, DT_MAP_MAX_RANKS}};
    const struct {
        const char *key, **text;
    } texts[] = {{"name", &step->name},           {"srun", &step->srun},
                 {"directory", &step->directory}, {"auth", &step->auth},
                 {"munge", &step->munge},         {"command", &step->command},
                 {"ports", &step->ports}};
    unsigned bit = 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++, bit++)
        if (!strcmp(key, numbers[i].key))
            return is_first(seen, bit) &&
                   read_number(value, numbers[i].min, numbers[i].max,
                               numbers[i].number);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++, bit++)
        if (!strcmp(key, texts[i].key)) {
            *texts[i].text = value;
            return is_first(seen, bit) && *value != '\0';
        }
    return !strcmp(key, "meet") && is_first(seen, bit) &&
           read_meet(value, step);
}

/* Control characters are in no value, so that one cannot add lines. */
static bool is_printable(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\n')
            return false;
    return true;
}

/* ranks is needed to read local, and may come after it */
static dt_result_t read_lines(struct dt_step *step, struct dt_error *err)
{
    const char *local = NULL, *version = NULL;
    unsigned seen = 0;
    for (char *line = step->text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        char *value = strchr(line, ' ');
        if (value)
            *value++ = '\0';
        if (value && !local && !strcmp(line, "local"))
            local = value;
        else if (value && !version && !strcmp(line, "version"))
            version = value;
        else if (!value || !read_value(step, line, value, &seen))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "the plugin sent \"%.32s %.64s\", or that "
                                "twice: dt-pmixd and spank_dt.so are of "
                                "different versions?",
                                line, value ? value : "");
    }
    uint32_t number;
    if (!version ||
        !read_number(version, DT_STEP_VERSION, DT_STEP_VERSION, &number))
        return dt_error_set(err, DT_ERR_VERSION,
                            "spank_dt.so speaks version %.16s, dt-pmixd %d: "
                            "install the same slurm-dt on all nodes",
                            version ? version : "none", DT_STEP_VERSION);
    if (!local || !read_local(local, step))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the plugin names no ranks of this node, or not "
                            "those of the step: %.64s",
                            local ? local : "none");
    return DT_SUCCESS;
}

static dt_result_t check(const struct dt_step *step, struct dt_error *err)
{
    const char *missing =
        !step->nodes                           ? "nodes"
        : step->node >= step->nodes            ? "node"
        : !step->name                          ? "name"
        : !step->directory                     ? "directory"
        : !step->heartbeat                     ? "heartbeat"
        : !step->limit                         ? "limit"
        : !step->auth                          ? "auth"
        : step->elastic > step->ranks          ? "elastic"
        : step->nodes > 1 && !step->hosts      ? "meet"
        : step->srun && !are_hosts(step->srun) ? "srun"
        : strlen(step->name) >= sizeof(((struct dt_map_entry *)0)->name)
            ? "name"
            : NULL;
    if (missing)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the plugin sent no %s, or a wrong one", missing);
    return DT_SUCCESS;
}

dt_result_t dt_step_read(const char *text, size_t size, struct dt_step *step,
                         struct dt_error *err)
{
    *step = (struct dt_step){.text = NULL};
    if (!is_printable(text, size))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the plugin sent a control character");
    step->text = strndup(text, size);
    if (!step->text)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc = read_lines(step, err);
    if (rc == DT_SUCCESS)
        rc = check(step, err);
    if (rc != DT_SUCCESS)
        dt_step_free(step);
    return rc;
}

void dt_step_free(struct dt_step *step)
{
    free(step->local);
    free(step->text);
    *step = (struct dt_step){.text = NULL};
}

dt_result_t dt_step_read_event(const struct dt_step *step, const char *text,
                               size_t size, struct dt_step_event *event,
                               struct dt_error *err)
{
    char line[64];
    uint64_t rank, number;
    if (size >= sizeof(line))
        size = sizeof(line) - 1;
    memcpy(line, text, size);
    line[size] = '\0';
    bool ended = !strncmp(line, "ended ", 6);
    const char *at = line + (ended ? 6 : 8);
    if ((!ended && strncmp(line, "started ", 8) != 0) ||
        !dt_number_scan(&at, 10, UINT32_MAX - 1, &rank) || *at++ != ' ' ||
        !dt_number_scan(&at, 10, INT32_MAX, &number) || *at)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the plugin sent \"%s\", which is no event", line);
    const uint32_t key = (uint32_t)rank;
    const uint32_t *found =
        bsearch(&key, step->local, step->nlocal, sizeof(*step->local), compare);
    if (!found)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the plugin sent \"%s\", whose rank is not here",
                            line);
    *event = (struct dt_step_event){ended, (uint32_t)(found - step->local),
                                    (int)number};
    return DT_SUCCESS;
}
