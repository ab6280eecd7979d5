/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kv.h - lines of Key=Value, as Slurm's configuration has them: `#` begins
 * a comment, a value with blanks stands in double quotes. Pure; trusts
 * nothing: each failure is CORRUPT with the number of the line. */
#ifndef DT_TOPO_KV_H
#define DT_TOPO_KV_H

#include "base/error.h"
#include "dt_topo.h"

#define DT_KV_MAX  24    /* on a line */
#define DT_KV_TEXT 65536 /* bytes of the values of a line */

struct dt_kv {
    char key[16];
    const char *value; /* until the next line is read */
};

/* Set at, end and err, the rest to 0; then read line by line. */
struct dt_kv_lines {
    const char *at, *end; /* what is left */
    struct dt_error *err;
    size_t number; /* of the line, from 1 */
    size_t n;
    struct dt_kv pair[DT_KV_MAX];
    char text[DT_KV_TEXT];
};

/* The next line that has pairs; *more is false when there is none. */
dt_result_t dt_kv_next(struct dt_kv_lines *w, bool *more);

/* "line 3: Key=value: expected ..." and CORRUPT. */
dt_result_t dt_kv_bad(const struct dt_kv_lines *w, const char *key,
                      const char *value, const char *expected);

/* The value of a pair as a decimal number up to max, as one up to INT16_MAX,
 * as bytes ("512G"), as yes or no, as one of names (ends with NULL), as a list
 * of CPUs that is not empty. */
dt_result_t dt_kv_number(const struct dt_kv_lines *w, const struct dt_kv *pair,
                         uint64_t max, uint64_t *value);
dt_result_t dt_kv_small(const struct dt_kv_lines *w, const struct dt_kv *pair,
                        int max, int16_t *value);
dt_result_t dt_kv_bytes(const struct dt_kv_lines *w, const struct dt_kv *pair,
                        uint64_t *value);
dt_result_t dt_kv_yes(const struct dt_kv_lines *w, const struct dt_kv *pair,
                      bool *value);
dt_result_t dt_kv_one_of(const struct dt_kv_lines *w, const struct dt_kv *pair,
                         const char *const *names, int *index);
dt_result_t dt_kv_cpu_list(const struct dt_kv_lines *w,
                           const struct dt_kv *pair, dt_cpuset_t *set);

#endif
