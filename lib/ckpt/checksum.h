/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* checksum.h - XXH3-64, how a checkpoint notices damage. It guards against
 * faults, not against forgery. */
#ifndef DT_CKPT_CHECKSUM_H
#define DT_CKPT_CHECKSUM_H

#include "base/error.h"

uint64_t dt_checksum(const void *data, size_t len);

/* The same, where the processor has AVX2. */
uint64_t dt_checksum_avx2(const void *data, size_t len);

/* Of what comes part by part: begin, add the parts, end. */
struct dt_checksum_parts {
    _Alignas(64) unsigned char state[576];
};
void dt_checksum_begin(struct dt_checksum_parts *parts);
void dt_checksum_add(struct dt_checksum_parts *parts, const void *data,
                     size_t len);
uint64_t dt_checksum_end(const struct dt_checksum_parts *parts);

/* dt_checksum_add, where the processor has AVX2. */
void dt_checksum_add_avx2(struct dt_checksum_parts *parts, const void *data,
                          size_t len);

/* Of a followed by b. */
uint64_t dt_checksum_pair(const void *a, size_t a_len, const void *b,
                          size_t b_len);

/* Of the first size bytes of the file fd. The text of an error is a reason
 * without a file name. Errors: CORRUPT if there are fewer, IO, NO_MEMORY. */
dt_result_t dt_checksum_file(int fd, size_t size, uint64_t *checksum,
                             struct dt_error *err);

/* As in a manifest: 16 lower-case hexadecimal digits and a NUL. */
#define DT_CHECKSUM_TEXT 17
void dt_checksum_print(uint64_t checksum, char text[DT_CHECKSUM_TEXT]);
bool dt_checksum_parse(const char *text, uint64_t *checksum);

#endif
