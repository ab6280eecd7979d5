/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cpuset.c - sets of logical CPUs. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "dt_topo.h"

enum { NWORDS = DT_TOPO_MAX_CPUS / 64 };

size_t dt_cpuset_count(const dt_cpuset_t *set)
{
    size_t n = 0;
    for (size_t i = 0; i < NWORDS; i++)
        n += (size_t)__builtin_popcountll(set->word[i]);
    return n;
}

bool dt_cpuset_equal(const dt_cpuset_t *a, const dt_cpuset_t *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

void dt_cpuset_and(dt_cpuset_t *into, const dt_cpuset_t *a,
                   const dt_cpuset_t *b)
{
    for (size_t i = 0; i < NWORDS; i++)
        into->word[i] = a->word[i] & b->word[i];
}

void dt_cpuset_or(dt_cpuset_t *into, const dt_cpuset_t *a, const dt_cpuset_t *b)
{
    for (size_t i = 0; i < NWORDS; i++)
        into->word[i] = a->word[i] | b->word[i];
}

/* A number below MAX_CPUS; NULL if there is none. */
static const char *number(const char *at, size_t *value)
{
    const char *start = at;
    for (*value = 0; *at >= '0' && *at <= '9'; at++) {
        *value = *value * 10 + (size_t)(*at - '0');
        if (*value >= DT_TOPO_MAX_CPUS)
            return NULL;
    }
    return at > start ? at : NULL;
}

dt_result_t dt_cpuset_parse(const char *text, dt_cpuset_t *set,
                            struct dt_error *err)
{
    dt_cpuset_t parsed = {{0}};
    for (const char *at = text; *at;) {
        size_t first, last;
        at = number(at, &first);
        last = first;
        if (at && *at == '-')
            at = number(at + 1, &last);
        if (!at || last < first || (*at && (*at != ',' || !at[1])))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "\"%.64s\" is no list of CPUs: expected "
                                "numbers below %d, as in 0-3,8",
                                text, DT_TOPO_MAX_CPUS);
        for (size_t cpu = first; cpu <= last; cpu++)
            dt_cpuset_add(&parsed, cpu);
        if (*at)
            at++;
    }
    *set = parsed;
    return DT_SUCCESS;
}

char *dt_cpuset_print(const dt_cpuset_t *set, char *text, size_t size)
{
    size_t used = 0;
    if (size)
        *text = '\0';
    for (size_t cpu = 0; cpu < DT_TOPO_MAX_CPUS; cpu++) {
        if (!dt_cpuset_has(set, cpu))
            continue;
        size_t last = cpu;
        while (dt_cpuset_has(set, last + 1))
            last++;
        char range[32];
        int n =
            snprintf(range, sizeof(range), last > cpu ? "%s%zu-%zu" : "%s%zu",
                     used ? "," : "", cpu, last);
        if (used + (size_t)n >= size)
            break; /* whole ranges only: half a number would be another one */
        memcpy(text + used, range, (size_t)n + 1);
        used += (size_t)n;
        cpu = last;
    }
    return text;
}
