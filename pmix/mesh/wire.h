/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* wire.h - the messages between the daemons of a step, as bytes: drawn in
 * doc/pmix-wire.md. Numbers are little-endian; a reader trusts no length.
 *
 *   frame  = length u32 (of what follows) | kind u8 | body
 *
 * Pure: no I/O, no clock. */
#ifndef DT_MESH_WIRE_H
#define DT_MESH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"

/* Of the wire and of the handshake: daemons of different versions refuse each
 * other. Raise it with every change of a message. */
#define DT_WIRE_VERSION 3

/* No frame is longer. Memory is allocated for bytes that have come, never for a
 * length that is claimed. */
#define DT_WIRE_MAX ((size_t)256 << 20)

enum dt_wire_kind {
    /* the handshake, link.h */
    DT_WIRE_HELLO = 1,
    DT_WIRE_CHALLENGE,
    DT_WIRE_PROOF,
    DT_WIRE_WELCOME,
    DT_WIRE_REFUSE, /* text: why; the last frame of a link */
    /* any link */
    DT_WIRE_BEAT, /* empty: the heartbeat */
    DT_WIRE_BYE,  /* empty: this node has ended normally */
    /* the rendezvous, rendezvous.h */
    DT_WIRE_ENTRY,
    DT_WIRE_MAP,
    /* the mesh, mesh.h */
    DT_WIRE_JOIN, /* empty: from a child to its parent; events follow */
    DT_WIRE_NEWS,
    DT_WIRE_COLLECT,
    DT_WIRE_RESULT,
    DT_WIRE_ASK,
    DT_WIRE_ANSWER,
};

/* Write a number of width bytes. */
static inline void dt_wire_put(unsigned char *to, size_t width, uint64_t value)
{
    for (size_t i = 0; i < width; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* One frame, shared by all that send or keep it. */
struct dt_frame {
    size_t refs;
    size_t len, room;     /* bytes used, and allocated */
    bool failed;          /* no memory, or longer than DT_WIRE_MAX */
    unsigned char *bytes; /* with the length in front */
};

/* Begin a frame; NULL without memory. The writers below append to its body,
 * take NULL, and record a failure in the frame, so that one check at the end
 * (dt_frame_end) is enough. */
struct dt_frame *dt_frame_begin(enum dt_wire_kind kind);
void dt_frame_uint(struct dt_frame *frame, size_t width, uint64_t value);
void dt_frame_bytes(struct dt_frame *frame, const void *data, size_t len);
/* u32 length and bytes */
void dt_frame_blob(struct dt_frame *frame, const void *data, size_t len);
/* Write the length; NO_MEMORY frees the frame if anything has failed. */
dt_result_t dt_frame_end(struct dt_frame **frame, struct dt_error *err);

struct dt_frame *dt_frame_ref(struct dt_frame *frame);
void dt_frame_unref(struct dt_frame *frame); /* frame may be NULL */

static inline enum dt_wire_kind dt_frame_kind(const struct dt_frame *frame)
{
    return frame->bytes[4];
}

/* The body of a complete frame. */
static inline struct dt_cursor dt_frame_body(const struct dt_frame *frame)
{
    return dt_cursor(frame->bytes + 5, frame->len - 5);
}

/* u32 length and bytes, in place; false once failed. */
bool dt_cursor_blob(struct dt_cursor *cursor, const void **data, size_t *len);

/* Frames read from a stream of bytes. Begin with all zero. */
struct dt_inlet {
    struct dt_frame *partial;
    unsigned char head[5]; /* length and kind, until they are complete */
    size_t head_len;
};

/* Take from the len bytes at data what completes one frame at most: *used is
 * their number, *frame is the frame (the caller's) or NULL. CORRUPT: length is
 * 0 or more than max, or the kind is unknown; NO_MEMORY. */
dt_result_t dt_inlet_take(struct dt_inlet *inlet, const void *data, size_t len,
                          size_t max, size_t *used, struct dt_frame **frame,
                          struct dt_error *err);
void dt_inlet_free(struct dt_inlet *inlet);

#endif
