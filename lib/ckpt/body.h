/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* body.h - the files and tensors of a manifest, or of a rank's part of one, as
 * JSON without white space and with sorted keys. */
#ifndef DT_CKPT_BODY_H
#define DT_CKPT_BODY_H

#include <jansson.h>
#include <stdio.h>

#include "ckpt/build.h"

/* The values of "files" and of "tensors". */
void dt_body_print_files(FILE *out, const struct dt_manifest *manifest);
void dt_body_print_tensors(FILE *out, const struct dt_manifest *manifest);

/* The string with its quotes; what is not printable ASCII becomes "?". */
void dt_body_print_string(FILE *out, const char *text);

/* The other way. rank: whose part it is; -1: all ranks'. INVALID_ARG says what
 * is wrong, NO_MEMORY. */
dt_result_t dt_body_parse(struct dt_build *build, json_t *files,
                          json_t *tensors, int rank, struct dt_error *err);

/* Pieces of it, for the older versions. */
bool dt_body_parse_string(char *to, size_t room, json_t *json);
bool dt_body_parse_tensor(struct dt_tensor *tensor, const char *name,
                          json_t *dtype, json_t *shape);

#endif
