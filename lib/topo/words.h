/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* words.h - lines of Key=Value, as Slurm's configuration has them: `#` begins
 * a comment, a value with blanks stands in double quotes. Pure; trusts
 * nothing: each failure is CORRUPT with the number of the line. */
#ifndef DT_TOPO_WORDS_H
#define DT_TOPO_WORDS_H

#include "base/error.h"
#include "dt_topo.h"

#define DT_WORDS_MAX  24    /* on a line */
#define DT_WORDS_TEXT 65536 /* bytes of the values of a line */

struct dt_word {
    char key[16];
    const char *value; /* until the next line is read */
};

/* Set at, end and err, the rest to 0; then read line by line. */
struct dt_words {
    const char *at, *end; /* what is left */
    struct dt_error *err;
    size_t number; /* of the line, from 1 */
    size_t n;
    struct dt_word word[DT_WORDS_MAX];
    char text[DT_WORDS_TEXT];
};

/* The next line that has words; *more is false when there is none. */
dt_result_t dt_words_next(struct dt_words *w, bool *more);

/* "line 3: Key=value: expected ..." and CORRUPT. */
dt_result_t dt_word_bad(const struct dt_words *w, const char *key,
                        const char *value, const char *expected);

/* The value of a word as a decimal number up to max, as one up to INT16_MAX,
 * as bytes ("512G"), as yes or no, as one of names (ends with NULL), as a list
 * of CPUs that is not empty. */
dt_result_t dt_word_number(const struct dt_words *w, const struct dt_word *word,
                           uint64_t max, uint64_t *value);
dt_result_t dt_word_small(const struct dt_words *w, const struct dt_word *word,
                          int max, int16_t *value);
dt_result_t dt_word_bytes(const struct dt_words *w, const struct dt_word *word,
                          uint64_t *value);
dt_result_t dt_word_yes(const struct dt_words *w, const struct dt_word *word,
                        bool *value);
dt_result_t dt_word_one_of(const struct dt_words *w, const struct dt_word *word,
                           const char *const *names, int *index);
dt_result_t dt_word_cpu_list(const struct dt_words *w,
                             const struct dt_word *word, dt_cpuset_t *set);

#endif
