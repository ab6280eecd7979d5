/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* words.h - text for people. */
#ifndef DT_TOOLS_CKPT_WORDS_H
#define DT_TOOLS_CKPT_WORDS_H

#include <jansson.h>

#include "base/error.h"

/* "dt-ckpt: ..." as a line of its own on stderr. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "out of memory". */
dt_result_t no_memory(struct dt_error *err);

/* "PATH: why errno says so"; IO or NO_SPACE. */
dt_result_t failed(struct dt_error *err, const char *path);

/* "PATH: " before the text that is in err; rc is returned. */
dt_result_t inside(struct dt_error *err, const char *path, dt_result_t rc);

/* "1.50 GiB". Returns text. */
#define SIZE_TEXT 16
const char *size_text(char text[SIZE_TEXT], uint64_t bytes);

/* "[3, 0]". Returns text. */
#define INDEX_TEXT 700
const char *index_text(char text[INDEX_TEXT], int ndim, const int64_t *index);

/* Print root, which is freed; NULL is a failure to make it. */
dt_result_t print_json(json_t *root, struct dt_error *err);

#endif
