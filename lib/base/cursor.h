/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cursor.h - bounded reads from bytes of a file or a message, little-endian. A
 * failure is kept, so that a parser checks once at its end. */
#ifndef DT_BASE_CURSOR_H
#define DT_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_cursor {
    const unsigned char *at, *end;
    bool failed; /* a read went beyond the end */
};

static inline struct dt_cursor dt_cursor(const void *data, size_t len)
{
    return (struct dt_cursor){data, (const unsigned char *)data + len, false};
}

/* The next len bytes in place, or NULL once failed. */
static inline const void *dt_cursor_bytes(struct dt_cursor *cursor, size_t len)
{
    if (cursor->failed || len > (size_t)(cursor->end - cursor->at)) {
        cursor->failed = true;
        return NULL;
    }
    cursor->at += len;
    return cursor->at - len;
}

/* The next number of width bytes, 1 to 8; 0 once failed. */
static inline uint64_t dt_cursor_uint(struct dt_cursor *cursor, size_t width)
{
    const unsigned char *bytes = dt_cursor_bytes(cursor, width);
    uint64_t value = 0;
    for (size_t i = width; bytes && i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}

#endif
