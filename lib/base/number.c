/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* number.c - numbers in text. */
#include "base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 36 for anything else, which is no digit of any base */
static unsigned digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 36;
}

bool dt_number_scan(const char **at, unsigned base, uint64_t max,
                    uint64_t *value)
{
    const char *c = *at;
    uint64_t sum = 0;
    for (; digit(*c) < base; c++) {
        unsigned d = digit(*c);
        if (d > max || sum > (max - d) / base)
            return false;
        sum = sum * base + d;
    }
    if (c == *at)
        return false;
    *at = c;
    *value = sum;
    return true;
}

bool dt_number_parse(const char *text, int64_t min, int64_t max, int64_t *value)
{
    uint64_t size;
    bool negative = text && *text == '-' && min < 0;
    const char *at = negative ? text + 1 : text;
    if (!text || !dt_number_scan(&at, 10, INT64_MAX, &size) || *at)
        return false;
    int64_t number = negative ? -(int64_t)size : (int64_t)size;
    if (number < min || number > max)
        return false;
    *value = number;
    return true;
}

dt_result_t dt_number_read(const char *what, const char *text, int64_t min,
                           int64_t max, int64_t *value, struct dt_error *err)
{
    if (!dt_number_parse(text, min, max, value))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s%.80s: expected a whole number from %" PRId64
                            " to %" PRId64,
                            what, text ? text : "", min, max);
    return DT_SUCCESS;
}

dt_result_t dt_number_read_size(const char *what, const char *text,
                                uint64_t min, uint64_t max, uint64_t *bytes,
                                struct dt_error *err)
{
    static const char suffixes[] = "KMGTkmgt";
    const char *at = text ? text : "", *suffix;
    uint64_t number;
    unsigned shift = 0;
    bool good = dt_number_scan(&at, 10, UINT64_MAX, &number);
    if (good && *at && (suffix = strchr(suffixes, *at)) != NULL) {
        shift = 10 * ((unsigned)(suffix - suffixes) % 4 + 1);
        at++;
    }
    if (!good || *at || number > max >> shift || number << shift < min)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s%.80s: expected bytes from %" PRIu64
                            " to %" PRIu64 ", such as 4096, 64K, 16M or 1G",
                            what, text ? text : "", min, max);
    *bytes = number << shift;
    return DT_SUCCESS;
}

/* strtod() takes more than decimal numbers: blanks, "inf", "0x1p3". */
static bool parse_real(const char *text, double *value)
{
    char *end;
    if (!text || !*text || strspn(text, "0123456789.eE+-") != strlen(text) ||
        *text == '+')
        return false;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    int saved = errno;
    *value = strtod_l(text, &end, c);
    errno = saved;
    freelocale(c);
    return !*end && isfinite(*value);
}

dt_result_t dt_number_read_real(const char *what, const char *text, double min,
                                double max, double *value, struct dt_error *err)
{
    double number;
    if (!parse_real(text, &number) || number < min || number > max)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s%.80s: expected a number from %g to %g", what,
                            text ? text : "", min, max);
    *value = number;
    return DT_SUCCESS;
}
