/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* checksum.c - XXH3-64, by which a checkpoint notices damage. */
#include "ckpt/format/checksum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL /* Debian's shared library is four times slower */
#include <xxhash.h>

#include "base/file.h"
#include "ckpt/format/failure.h"

#define CHUNK (1 << 20)

uint64_t dt_checksum(const void *data, size_t len)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return dt_checksum_avx2(data, len);
#endif
    return XXH3_64bits(data, len);
}

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct dt_checksum_parts),
               "room for the state, which is the same for all processors");

void dt_checksum_begin(struct dt_checksum_parts *parts)
{
    XXH3_64bits_reset((XXH3_state_t *)parts->state);
}

void dt_checksum_add(struct dt_checksum_parts *parts, const void *data,
                     size_t len)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        dt_checksum_add_avx2(parts, data, len);
        return;
    }
#endif
    XXH3_64bits_update((XXH3_state_t *)parts->state, data, len);
}

uint64_t dt_checksum_end(const struct dt_checksum_parts *parts)
{
    return XXH3_64bits_digest((const XXH3_state_t *)parts->state);
}

uint64_t dt_checksum_pair(const void *a, size_t a_len, const void *b,
                          size_t b_len)
{
    XXH3_state_t hash;
    XXH3_64bits_reset(&hash);
    XXH3_64bits_update(&hash, a, a_len);
    XXH3_64bits_update(&hash, b, b_len);
    return XXH3_64bits_digest(&hash);
}

dt_result_t dt_checksum_file(int fd, size_t size, uint64_t *checksum,
                             struct dt_error *err)
{
    char *buf = malloc(CHUNK);
    if (!buf)
        return dt_no_memory(err);
    dt_result_t rc = DT_SUCCESS;
    XXH3_state_t hash;
    XXH3_64bits_reset(&hash);
    for (size_t done = 0; done < size && rc == DT_SUCCESS;) {
        size_t want = size - done < CHUNK ? size - done : CHUNK;
        ssize_t n = dt_file_read(fd, buf, want, (off_t)done);
        if (n < 0)
            rc = dt_error_set(err, DT_ERR_IO, "%s", strerror(errno));
        else if ((size_t)n < want)
            rc = dt_error_set(err, DT_ERR_CORRUPT, "truncated");
        else
            XXH3_64bits_update(&hash, buf, want);
        done += want;
    }
    if (rc == DT_SUCCESS)
        *checksum = XXH3_64bits_digest(&hash);
    free(buf);
    return rc;
}

void dt_checksum_print(uint64_t checksum, char text[DT_CHECKSUM_TEXT])
{
    snprintf(text, DT_CHECKSUM_TEXT, "%016" PRIx64, checksum);
}

bool dt_checksum_parse(const char *text, uint64_t *checksum)
{
    uint64_t value = 0;
    for (int i = 0; i < DT_CHECKSUM_TEXT - 1; i++) {
        unsigned digit;
        if (text[i] >= '0' && text[i] <= '9')
            digit = (unsigned)(text[i] - '0');
        else if (text[i] >= 'a' && text[i] <= 'f')
            digit = (unsigned)(text[i] - 'a' + 10);
        else
            return false;
        value = value << 4 | digit;
    }
    if (text[DT_CHECKSUM_TEXT - 1])
        return false;
    *checksum = value;
    return true;
}
