/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* checksum.h - XXH3-64, by which a checkpoint notices damage. It protects
 * against faults, not against forgery. */
#ifndef DT_CKPT_FORMAT_CHECKSUM_H
#define DT_CKPT_FORMAT_CHECKSUM_H

#include "base/error.h"

/* The checksum of len bytes. */
uint64_t dt_checksum(const void *data, size_t len);

/* dt_checksum, for processors that have AVX2. */
uint64_t dt_checksum_avx2(const void *data, size_t len);

/* The checksum of data that comes in parts: begin, add each part, end. */
struct dt_checksum_parts {
    _Alignas(64) unsigned char state[576];
};
void dt_checksum_begin(struct dt_checksum_parts *parts);
void dt_checksum_add(struct dt_checksum_parts *parts, const void *data,
                     size_t len);
uint64_t dt_checksum_end(const struct dt_checksum_parts *parts);

/* dt_checksum_add, for processors that have AVX2. */
void dt_checksum_add_avx2(struct dt_checksum_parts *parts, const void *data,
                          size_t len);

/* The checksum of a followed by b. */
uint64_t dt_checksum_pair(const void *a, size_t a_len, const void *b,
                          size_t b_len);

/* The checksum of the first size bytes of the file fd. The text of an error is
 * a reason without a file name. Errors: CORRUPT if there are fewer bytes, IO,
 * NO_MEMORY. */
dt_result_t dt_checksum_file(int fd, size_t size, uint64_t *checksum,
                             struct dt_error *err);

/* The text in a manifest: 16 lower-case hexadecimal digits, and a NUL. */
#define DT_CHECKSUM_TEXT 17
void dt_checksum_print(uint64_t checksum, char text[DT_CHECKSUM_TEXT]);
bool dt_checksum_parse(const char *text, uint64_t *checksum);

#endif
