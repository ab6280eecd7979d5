/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interval.c - when it is time for a checkpoint: the arithmetic. */
#include "ckpt/interval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY       86400.0
#define NODE_MTBF (264 * DAY)
#define LONGEST   (3650 * DAY)

/* ---- parsing ---- */

/* The whole numbers of text into value[room], and what stood between them into
 * between; how many, 0 if it is anything else. */
static int numbers(const char *text, double *value, char *between, int room)
{
    int n = 0;
    while (n < room && *text >= '0' && *text <= '9') {
        char *end;
        value[n] = (double)strtoull(text, &end, 10);
        between[n++] = *end;
        if (!*end)
            return n;
        text = end + 1;
        if (!*text)
            return n; /* a unit */
    }
    return 0;
}

/* Seconds, negative if it is no time. */
static double parse_time(const char *text)
{
    static const char units[] = "smhd";
    static const double unit[] = {1, 60, 3600, DAY};
    static const double clock[] = {DAY, 3600, 60, 1};
    double value[4], sum = 0;
    char between[5] = "";
    int n = numbers(text, value, between, 4);
    const char *found = between[0] ? strchr(units, between[0]) : NULL;
    if (n == 1 && found)
        return value[0] * unit[found - units];
    int first = strcmp(between, "") == 0      ? 2
                : strcmp(between, ":") == 0   ? 2
                : strcmp(between, "::") == 0  ? 1
                : strcmp(between, "-") == 0   ? 0
                : strcmp(between, "-:") == 0  ? 0
                : strcmp(between, "-::") == 0 ? 0
                                              : -1;
    if (n == 0 || first < 0 || (size_t)n != strlen(between) + 1)
        return -1;
    for (int i = 0; i < n; i++)
        sum += value[i] * clock[first + i];
    return sum;
}

dt_result_t dt_interval_parse(const char *text, const char *source,
                              double *seconds, struct dt_error *err)
{
    if (strcmp(text, "auto") == 0) {
        *seconds = DT_INTERVAL_AUTO;
        return DT_SUCCESS;
    }
    double value = parse_time(text);
    if (!(value > 0 && value <= LONGEST))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s=%s: expected auto or a time, as 10m, 90s or "
                            "01:30:00",
                            source, text);
    *seconds = value;
    return DT_SUCCESS;
}

/* ---- arithmetic ---- */

double dt_interval_mtbf(int restarts, int num_nodes)
{
    return NODE_MTBF / (num_nodes > 0 ? num_nodes : 1) /
           (1.0 + (restarts > 0 ? restarts : 0));
}

double dt_interval_young(double cost, double mtbf)
{
    return fmax(sqrt(2 * cost * mtbf), cost);
}

/* A number of steps, from min up. */
static int64_t whole(double steps, int64_t min)
{
    if (!(steps < 9e18))
        return INT64_MAX;
    return steps < (double)min ? min : (int64_t)steps;
}

int64_t dt_interval_steps(double interval, const struct dt_pace *pace,
                          double worked)
{
    if (interval < 0 || pace->step_s <= 0)
        return INT64_MAX;
    return whole((interval - worked) / pace->step_s, 1);
}

int64_t dt_interval_last(const struct dt_pace *pace, double save_s)
{
    if (pace->left_s < 0 || pace->step_s <= 0)
        return INT64_MAX;
    double margin = 2 * save_s + fmin(60, pace->left_s / 10);
    return whole((pace->left_s - margin) / pace->step_s - 1, 0);
}
