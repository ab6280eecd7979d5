/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* json_output.h - JSON for other programs, which a terminal may get to see. */
#ifndef DT_TOOLS_COMMON_JSON_OUTPUT_H
#define DT_TOOLS_COMMON_JSON_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Write root and a newline to out, all in printable ASCII: any other character
 * of a string is \uNNNN, as U+009B and DEL control terminals. root may be NULL:
 * false. False also if out or the memory failed. */
bool json_output(FILE *out, const json_t *root);

#endif
