/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* wire.c - frames: written, shared, and read from a stream of bytes. */
#include <stdlib.h>
#include <string.h>

#include "mesh/wire.h"

enum {
    LENGTH = 4,
    HEAD = 5,
    ROOM = 64,                        /* of a frame that is begun */
    STORE = 4096,                     /* of one of which the head has come */
    MOST = LENGTH + (int)DT_WIRE_MAX, /* the length does not count itself */
};

/* A frame with the head alone, and room for some more. */
static struct dt_frame *frame_new(const unsigned char head[HEAD], size_t room)
{
    struct dt_frame *frame = malloc(sizeof(*frame));
    if (!frame)
        return NULL;
    *frame = (struct dt_frame){.refs = 1, .len = HEAD, .room = room};
    frame->bytes = malloc(room);
    if (!frame->bytes) {
        free(frame);
        return NULL;
    }
    memcpy(frame->bytes, head, HEAD);
    return frame;
}

/* Room for more bytes, in all at most `most`. */
static bool frame_grow(struct dt_frame *frame, size_t more, size_t most)
{
    if (more <= frame->room - frame->len)
        return true;
    if (more > most - frame->len)
        return false;
    size_t room = frame->room < most / 2 ? 2 * frame->room : most;
    if (room < frame->len + more)
        room = frame->len + more;
    unsigned char *bytes = realloc(frame->bytes, room);
    if (!bytes)
        return false;
    frame->bytes = bytes;
    frame->room = room;
    return true;
}

struct dt_frame *dt_frame_begin(enum dt_wire_kind kind)
{
    const unsigned char head[HEAD] = {[LENGTH] = (unsigned char)kind};
    return frame_new(head, ROOM);
}

void dt_frame_bytes(struct dt_frame *frame, const void *data, size_t len)
{
    if (!frame || frame->failed || len == 0)
        return;
    if (!frame_grow(frame, len, MOST)) {
        frame->failed = true;
        return;
    }
    memcpy(frame->bytes + frame->len, data, len);
    frame->len += len;
}

void dt_frame_uint(struct dt_frame *frame, size_t width, uint64_t value)
{
    unsigned char bytes[sizeof(value)];
    dt_wire_put(bytes, width, value);
    dt_frame_bytes(frame, bytes, width);
}

void dt_frame_blob(struct dt_frame *frame, const void *data, size_t len)
{
    dt_frame_uint(frame, 4, len); /* if it is too long, the next line fails */
    dt_frame_bytes(frame, data, len);
}

dt_result_t dt_frame_end(struct dt_frame **frame, struct dt_error *err)
{
    if (!*frame || (*frame)->failed) {
        dt_frame_unref(*frame);
        *frame = NULL;
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a message, or it has more than "
                            "%zu MiB",
                            DT_WIRE_MAX >> 20);
    }
    dt_wire_put((*frame)->bytes, LENGTH, (*frame)->len - LENGTH);
    return DT_SUCCESS;
}

struct dt_frame *dt_frame_ref(struct dt_frame *frame)
{
    frame->refs++;
    return frame;
}

void dt_frame_unref(struct dt_frame *frame)
{
    if (!frame || --frame->refs > 0)
        return;
    free(frame->bytes);
    free(frame);
}

bool dt_cursor_blob(struct dt_cursor *cursor, const void **data, size_t *len)
{
    size_t n = dt_cursor_uint(cursor, 4);
    const void *bytes = dt_cursor_bytes(cursor, n);
    if (!bytes)
        return false;
    *data = bytes;
    *len = n;
    return true;
}

/* The length in the head, once its four bytes are there. */
static size_t head_length(const struct dt_inlet *inlet)
{
    struct dt_cursor cursor = dt_cursor(inlet->head, LENGTH);
    return dt_cursor_uint(&cursor, LENGTH);
}

/* Check what has been received of the head. The length is checked before the
 * kind has been received. */
static dt_result_t head_check(const struct dt_inlet *inlet, size_t max,
                              struct dt_error *err)
{
    if (inlet->head_len < LENGTH)
        return DT_SUCCESS;
    size_t length = head_length(inlet);
    if (length == 0 || length > max || length > DT_WIRE_MAX)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a message claims to have %zu bytes, expected "
                            "1 to %zu",
                            length, max < DT_WIRE_MAX ? max : DT_WIRE_MAX);
    if (inlet->head_len == HEAD && (inlet->head[LENGTH] < DT_WIRE_HELLO ||
                                    inlet->head[LENGTH] > DT_WIRE_ANSWER))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a message of kind %d, expected %d to %d",
                            inlet->head[LENGTH], DT_WIRE_HELLO, DT_WIRE_ANSWER);
    return DT_SUCCESS;
}

/* Complete the head; *used counts what it took. A bad head stays bad. */
static dt_result_t take_head(struct dt_inlet *inlet, const unsigned char *data,
                             size_t len, size_t max, size_t *used,
                             struct dt_error *err)
{
    dt_result_t rc;
    while ((rc = head_check(inlet, max, err)) == DT_SUCCESS && *used < len &&
           inlet->head_len < HEAD)
        inlet->head[inlet->head_len++] = data[(*used)++];
    return rc;
}

dt_result_t dt_inlet_take(struct dt_inlet *inlet, const void *data, size_t len,
                          size_t max, size_t *used, struct dt_frame **frame,
                          struct dt_error *err)
{
    size_t taken = 0;
    dt_result_t rc = take_head(inlet, data, len, max, &taken, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (inlet->head_len < HEAD) {
        *used = taken;
        *frame = NULL;
        return DT_SUCCESS;
    }
    size_t total = LENGTH + head_length(inlet);
    if (!inlet->partial)
        inlet->partial = frame_new(inlet->head, total < STORE ? total : STORE);
    size_t more = inlet->partial ? total - inlet->partial->len : 0;
    if (more > len - taken)
        more = len - taken;
    if (!inlet->partial || !frame_grow(inlet->partial, more, total))
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a message of %zu bytes", total);
    dt_frame_bytes(inlet->partial, (const char *)data + taken, more);
    *used = taken + more;
    *frame = NULL;
    if (inlet->partial->len == total) {
        *frame = inlet->partial;
        *inlet = (struct dt_inlet){0};
    }
    return DT_SUCCESS;
}

void dt_inlet_free(struct dt_inlet *inlet)
{
    dt_frame_unref(inlet->partial);
    *inlet = (struct dt_inlet){0};
}
