/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* value.h - values of options that are no names of types. Pure. */
#ifndef DT_SPANK_VALUE_H
#define DT_SPANK_VALUE_H

#include "option.h"

/* false: text, which is not empty, is no such value. */
typedef bool dt_value_parse_t(const char *text, struct dt_option *option);

/* A path that fits into option->text, without control characters. */
dt_value_parse_t dt_value_directory;
/* Slurm's forms of a time, or 90s, 10m, 2h, 1d; not 0. */
dt_value_parse_t dt_value_time;
/* xor:<k>, rs:<k>+<m> */
dt_value_parse_t dt_value_redundancy;
/* <n>[,every:<k>] */
dt_value_parse_t dt_value_keep;
/* The name of a signal, with or without SIG, or its number: option->policy. */
dt_value_parse_t dt_value_signal;
/* [<max>][,<cause>=<n>...]: option->cap[]. */
dt_value_parse_t dt_value_requeue;

#endif
