/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kv.c - lines of Key=Value, as Slurm's configuration has them. */
#include "topo/model/kv.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "topo/model/model.h"

dt_result_t dt_kv_bad(const struct dt_kv_lines *w, const char *key,
                      const char *value, const char *expected)
{
    return dt_error_set(w->err, DT_ERR_CORRUPT,
                        "line %zu: %s=%.80s: expected %s", w->number, key,
                        value, expected);
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Copy one Key=Value behind *used; quotes may hold blanks. */
static dt_result_t take_pair(struct dt_kv_lines *w, const char **at,
                             const char *end, size_t *used)
{
    if (w->n == DT_KV_MAX)
        return dt_error_set(w->err, DT_ERR_CORRUPT,
                            "line %zu: more than %d pairs", w->number,
                            DT_KV_MAX);
    struct dt_kv *pair = &w->pair[w->n++];
    size_t n = 0;
    while (*at < end && **at != '=' && !blank(**at) &&
           n + 1 < sizeof(pair->key))
        pair->key[n++] = *(*at)++;
    pair->key[n] = '\0';
    if (*at == end || **at != '=' || !n)
        return dt_error_set(w->err, DT_ERR_CORRUPT,
                            "line %zu: \"%.15s\": expected Key=Value",
                            w->number, pair->key);
    (*at)++;
    bool quoted = *at < end && **at == '"';
    if (quoted)
        (*at)++;
    pair->value = w->text + *used;
    while (*at < end && (quoted ? **at != '"' : !blank(**at))) {
        unsigned char c = (unsigned char)*(*at)++;
        if (*used + 1 >= DT_KV_TEXT || c < ' ' || c == 0x7f)
            return dt_error_set(w->err, DT_ERR_CORRUPT,
                                "line %zu: %s= is too long or has a control "
                                "character",
                                w->number, pair->key);
        w->text[(*used)++] = (char)c;
    }
    if (quoted && (*at == end || *(*at)++ != '"'))
        return dt_error_set(w->err, DT_ERR_CORRUPT,
                            "line %zu: %s= lacks its closing quote", w->number,
                            pair->key);
    if (*used == DT_KV_TEXT)
        return dt_error_set(w->err, DT_ERR_CORRUPT, "line %zu: too long",
                            w->number);
    w->text[(*used)++] = '\0';
    return DT_SUCCESS;
}

dt_result_t dt_kv_next(struct dt_kv_lines *w, bool *more)
{
    for (*more = false; !*more && w->at < w->end;) {
        const char *at = w->at, *nl = memchr(at, '\n', (size_t)(w->end - at));
        const char *end = nl ? nl : w->end;
        size_t used = 0;
        w->at = nl ? nl + 1 : end;
        w->number++;
        w->n = 0;
        for (;;) {
            while (at < end && blank(*at))
                at++;
            if (at == end || *at == '#')
                break;
            dt_result_t rc = take_pair(w, &at, end, &used);
            if (rc != DT_SUCCESS)
                return rc;
        }
        *more = w->n > 0;
    }
    return DT_SUCCESS;
}

/* ---- values ---- */

dt_result_t dt_kv_number(const struct dt_kv_lines *w, const struct dt_kv *pair,
                         uint64_t max, uint64_t *value)
{
    const char *at = pair->value;
    if (!dt_number_scan(&at, 10, max, value) || *at) {
        char expected[64];
        snprintf(expected, sizeof(expected), "a number up to %llu",
                 (unsigned long long)max);
        return dt_kv_bad(w, pair->key, pair->value, expected);
    }
    return DT_SUCCESS;
}

dt_result_t dt_kv_small(const struct dt_kv_lines *w, const struct dt_kv *pair,
                        int max, int16_t *field)
{
    uint64_t value;
    dt_result_t rc = dt_kv_number(w, pair, (uint64_t)max, &value);
    if (rc == DT_SUCCESS)
        *field = (int16_t)value;
    return rc;
}

dt_result_t dt_kv_bytes(const struct dt_kv_lines *w, const struct dt_kv *pair,
                        uint64_t *field)
{
    static const char units[] = "KMGT";
    char digits[24];
    size_t n = strlen(pair->value);
    unsigned shift = 0;
    const char *unit = n ? strchr(units, pair->value[n - 1]) : NULL;
    if (unit) {
        n--;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (n >= sizeof(digits))
        return dt_kv_bad(w, pair->key, pair->value, "bytes, as in 512G");
    memcpy(digits, pair->value, n);
    digits[n] = '\0';
    struct dt_kv plain = {.value = digits};
    memcpy(plain.key, pair->key, sizeof(plain.key));
    uint64_t value;
    dt_result_t rc =
        dt_kv_number(w, &plain, DT_TOPO_MAX_MEMORY >> shift, &value);
    if (rc == DT_SUCCESS)
        *field = value << shift;
    return rc;
}

dt_result_t dt_kv_yes(const struct dt_kv_lines *w, const struct dt_kv *pair,
                      bool *field)
{
    if (strcmp(pair->value, "yes") != 0 && strcmp(pair->value, "no") != 0)
        return dt_kv_bad(w, pair->key, pair->value, "yes or no");
    *field = pair->value[0] == 'y';
    return DT_SUCCESS;
}

dt_result_t dt_kv_one_of(const struct dt_kv_lines *w, const struct dt_kv *pair,
                         const char *const *names, int *index)
{
    for (*index = 0; names[*index]; (*index)++)
        if (!strcmp(pair->value, names[*index]))
            return DT_SUCCESS;
    char expected[128];
    size_t used = 0;
    for (size_t i = 0; names[i] && used < sizeof(expected); i++)
        used += (size_t)snprintf(expected + used, sizeof(expected) - used,
                                 "%s%s", i ? ", " : "", names[i]);
    return dt_kv_bad(w, pair->key, pair->value, expected);
}

dt_result_t dt_kv_cpu_list(const struct dt_kv_lines *w,
                           const struct dt_kv *pair, dt_cpuset_t *set)
{
    if (!*pair->value || dt_cpuset_parse(pair->value, set, NULL) != DT_SUCCESS)
        return dt_kv_bad(w, pair->key, pair->value,
                         "a list of CPUs, as in 0-3,8");
    return DT_SUCCESS;
}
