/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* option.h - the value of --dt-gpus. Pure. */
#ifndef DT_SPANK_OPTION_H
#define DT_SPANK_OPTION_H

#include "topo/place.h"

#define DT_OPTION_EXPECTED                                                     \
    "[verbose,]auto, rotate, single, <number>, none or help"

enum dt_option_type {
    DT_OPTION_NONE, /* as if it had not been given */
    DT_OPTION_HELP,
    DT_OPTION_GPUS,
};

struct dt_option {
    enum dt_option_type type;
    bool verbose;
    enum dt_place_policy policy; /* for DT_OPTION_GPUS */
    size_t count;                /* for DT_PLACE_COUNT */
};

/* Parse text as given; NULL is the option without a value, which is auto.
 * source names where it was given, for the message: "--dt-gpus" or a
 * variable. INVALID_ARG: malformed. */
dt_result_t dt_option_parse(const char *text, const char *source,
                            struct dt_option *option, struct dt_error *err);

/* What to type on the command line for this option, without verbose. */
void dt_option_print(const struct dt_option *option, char *text, size_t size);

/* The text of --dt-gpus=help, lines of it with newlines. */
const char *dt_option_help(void);

#endif
