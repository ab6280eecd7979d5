/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* words.c - lines of Key=Value, as Slurm's configuration has them. */
#include "topo/words.h"

#include <stdio.h>
#include <string.h>

#include "topo/model.h"

dt_result_t dt_word_bad(const struct dt_words *w, const char *key,
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
static dt_result_t take_word(struct dt_words *w, const char **at,
                             const char *end, size_t *used)
{
    if (w->n == DT_WORDS_MAX)
        return dt_error_set(w->err, DT_ERR_CORRUPT,
                            "line %zu: more than %d words", w->number,
                            DT_WORDS_MAX);
    struct dt_word *word = &w->word[w->n++];
    size_t n = 0;
    while (*at < end && **at != '=' && !blank(**at) &&
           n + 1 < sizeof(word->key))
        word->key[n++] = *(*at)++;
    word->key[n] = '\0';
    if (*at == end || **at != '=' || !n)
        return dt_error_set(w->err, DT_ERR_CORRUPT,
                            "line %zu: \"%.15s\": expected Key=Value",
                            w->number, word->key);
    (*at)++;
    bool quoted = *at < end && **at == '"';
    if (quoted)
        (*at)++;
    word->value = w->text + *used;
    while (*at < end && (quoted ? **at != '"' : !blank(**at))) {
        unsigned char c = (unsigned char)*(*at)++;
        if (*used + 1 >= DT_WORDS_TEXT || c < ' ' || c == 0x7f)
            return dt_error_set(w->err, DT_ERR_CORRUPT,
                                "line %zu: %s= is too long or has a control "
                                "character",
                                w->number, word->key);
        w->text[(*used)++] = (char)c;
    }
    if (quoted && (*at == end || *(*at)++ != '"'))
        return dt_error_set(w->err, DT_ERR_CORRUPT,
                            "line %zu: %s= lacks its closing quote", w->number,
                            word->key);
    if (*used == DT_WORDS_TEXT)
        return dt_error_set(w->err, DT_ERR_CORRUPT, "line %zu: too long",
                            w->number);
    w->text[(*used)++] = '\0';
    return DT_SUCCESS;
}

dt_result_t dt_words_next(struct dt_words *w, bool *more)
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
            dt_result_t rc = take_word(w, &at, end, &used);
            if (rc != DT_SUCCESS)
                return rc;
        }
        *more = w->n > 0;
    }
    return DT_SUCCESS;
}

/* ---- values ---- */

dt_result_t dt_word_number(const struct dt_words *w, const struct dt_word *word,
                           uint64_t max, uint64_t *value)
{
    const char *at = word->value;
    for (*value = 0; *at >= '0' && *at <= '9'; at++) {
        if (*value > max)
            break;
        *value = *value * 10 + (uint64_t)(*at - '0');
    }
    if (*at || at == word->value || *value > max) {
        char expected[64];
        snprintf(expected, sizeof(expected), "a number up to %llu",
                 (unsigned long long)max);
        return dt_word_bad(w, word->key, word->value, expected);
    }
    return DT_SUCCESS;
}

dt_result_t dt_word_small(const struct dt_words *w, const struct dt_word *word,
                          int max, int16_t *field)
{
    uint64_t value;
    dt_result_t rc = dt_word_number(w, word, (uint64_t)max, &value);
    if (rc == DT_SUCCESS)
        *field = (int16_t)value;
    return rc;
}

dt_result_t dt_word_bytes(const struct dt_words *w, const struct dt_word *word,
                          uint64_t *field)
{
    static const char units[] = "KMGT";
    char digits[24];
    size_t n = strlen(word->value);
    unsigned shift = 0;
    const char *unit = n ? strchr(units, word->value[n - 1]) : NULL;
    if (unit) {
        n--;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (n >= sizeof(digits))
        return dt_word_bad(w, word->key, word->value, "bytes, as in 512G");
    memcpy(digits, word->value, n);
    digits[n] = '\0';
    struct dt_word plain = {.value = digits};
    memcpy(plain.key, word->key, sizeof(plain.key));
    uint64_t value;
    dt_result_t rc =
        dt_word_number(w, &plain, DT_TOPO_MAX_MEMORY >> shift, &value);
    if (rc == DT_SUCCESS)
        *field = value << shift;
    return rc;
}

dt_result_t dt_word_yes(const struct dt_words *w, const struct dt_word *word,
                        bool *field)
{
    if (strcmp(word->value, "yes") != 0 && strcmp(word->value, "no") != 0)
        return dt_word_bad(w, word->key, word->value, "yes or no");
    *field = word->value[0] == 'y';
    return DT_SUCCESS;
}

dt_result_t dt_word_one_of(const struct dt_words *w, const struct dt_word *word,
                           const char *const *names, int *index)
{
    for (*index = 0; names[*index]; (*index)++)
        if (!strcmp(word->value, names[*index]))
            return DT_SUCCESS;
    char expected[128];
    size_t used = 0;
    for (size_t i = 0; names[i] && used < sizeof(expected); i++)
        used += (size_t)snprintf(expected + used, sizeof(expected) - used,
                                 "%s%s", i ? ", " : "", names[i]);
    return dt_word_bad(w, word->key, word->value, expected);
}

dt_result_t dt_word_cpu_list(const struct dt_words *w,
                             const struct dt_word *word, dt_cpuset_t *set)
{
    if (!*word->value || dt_cpuset_parse(word->value, set, NULL) != DT_SUCCESS)
        return dt_word_bad(w, word->key, word->value,
                           "a list of CPUs, as in 0-3,8");
    return DT_SUCCESS;
}
