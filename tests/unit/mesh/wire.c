/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* wire.c - frames: written, cut out of a stream in pieces of any size, refused
 * when they lie, and shared. */
#include <stdlib.h>
#include <string.h>

#include "mesh/wire.h"
#include "../tap.h"

static struct dt_frame *sample(enum dt_wire_kind kind, size_t len)
{
    struct dt_frame *frame = dt_frame_begin(kind);
    struct dt_error err;
    for (size_t i = 0; i < len; i++)
        dt_frame_uint(frame, 1, i * 7);
    return dt_frame_end(&frame, &err) == DT_SUCCESS ? frame : NULL;
}

static bool same(const struct dt_frame *a, const struct dt_frame *b)
{
    return a && b && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

static void written(void)
{
    static const unsigned char expected[] = {
        20,  0, 0, 0, DT_WIRE_ASK, 0xfe, 0x02, 0x01, 0xef, 0xbe, 0xad, 0xde,
        'x', 3, 0, 0, 0,           'a',  'b',  'c',  0,    0,    0,    0,
    };
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    struct dt_error err;
    dt_frame_uint(frame, 1, (uint64_t)-2);
    dt_frame_uint(frame, 2, 0x0102);
    dt_frame_uint(frame, 4, 0xdeadbeef);
    dt_frame_bytes(frame, "x", 1);
    dt_frame_blob(frame, "abc", 3);
    dt_frame_blob(frame, NULL, 0);
    ok(dt_frame_end(&frame, &err) == DT_SUCCESS, "a frame is written");
    ok(dt_frame_kind(frame) == DT_WIRE_ASK && frame->len == sizeof(expected) &&
           !memcmp(frame->bytes, expected, sizeof(expected)),
       "its bytes are as documented");

    struct dt_cursor body = dt_frame_body(frame);
    const void *abc = NULL, *none = NULL;
    size_t abc_len = 9, none_len = 9;
    ok(dt_cursor_uint(&body, 1) == 0xfe && dt_cursor_uint(&body, 2) == 0x102 &&
           dt_cursor_uint(&body, 4) == 0xdeadbeef &&
           *(const char *)dt_cursor_bytes(&body, 1) == 'x',
       "numbers and bytes are read back");
    ok(dt_cursor_blob(&body, &abc, &abc_len) && abc_len == 3 &&
           !memcmp(abc, "abc", 3) && dt_cursor_blob(&body, &none, &none_len) &&
           none && none_len == 0 && body.at == body.end && !body.failed,
       "blobs are read back, also an empty one");
    ok(!dt_cursor_blob(&body, &abc, &abc_len) && body.failed && abc_len == 3,
       "there is none after the end, and nothing is set");
    dt_frame_unref(frame);
}

static void cut_short(void)
{
    static const unsigned char bytes[] = {3, 0, 0, 0, 'a', 'b', 'c'};
    bool good = true;
    for (size_t n = 0; n < sizeof(bytes); n++) {
        unsigned char *part = malloc(n ? n : 1); /* ASan watches its end */
        const void *data = NULL;
        size_t len = 9;
        memcpy(part, bytes, n);
        struct dt_cursor cursor = dt_cursor(part, n);
        good = good && !dt_cursor_blob(&cursor, &data, &len) && !data &&
               len == 9 && cursor.failed;
        free(part);
    }
    ok(good, "a blob that is cut short, anywhere, is none");
    struct dt_cursor huge = dt_cursor("\xff\xff\xff\xff...", 7);
    const void *data = NULL;
    size_t len;
    ok(!dt_cursor_blob(&huge, &data, &len) && huge.failed,
       "a blob that claims 4 GiB is none");
}

static void too_long(void)
{
    struct dt_error err = {{0}};
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    char *data = calloc(1, DT_WIRE_MAX);
    dt_frame_bytes(frame, data, DT_WIRE_MAX - 1);
    dt_frame_bytes(NULL, data, 1);
    dt_frame_bytes(frame, NULL, 0);
    ok(frame && !frame->failed && dt_frame_end(&frame, &err) == DT_SUCCESS &&
           frame->len == DT_WIRE_MAX + 4,
       "the longest frame");
    dt_frame_bytes(frame, data, 1);
    ok(frame->failed && frame->len == DT_WIRE_MAX + 4, "and not a byte more");
    ok(dt_frame_end(&frame, &err) == DT_ERR_NO_MEMORY && !frame &&
           strstr(err.text, "256 MiB"),
       "the end reports it: %s", err.text);
    free(data);
    frame = NULL;
    dt_frame_uint(frame, 4, 1);
    dt_frame_blob(frame, "a", 1);
    ok(dt_frame_end(&frame, NULL) == DT_ERR_NO_MEMORY && !frame,
       "a frame that there was no memory for");
}

static void grown(void)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    size_t moves = 0;
    for (size_t i = 0; frame && i < 1000000; i++) {
        size_t room = frame->room;
        dt_frame_uint(frame, 1, i);
        moves += frame->room != room;
    }
    ok(frame && frame->len == 1000005 && moves < 30 &&
           frame->room < 2 * frame->len,
       "a million single bytes: the room grew %zu times", moves);
    dt_frame_unref(frame);
}

static void shared(void)
{
    struct dt_frame *frame = sample(DT_WIRE_NEWS, 3);
    ok(dt_frame_ref(frame) == frame && frame->refs == 2, "one more keeps it");
    dt_frame_unref(frame);
    ok(frame->refs == 1 && frame->len == 8, "it lives for the other");
    dt_frame_unref(frame);
    dt_frame_unref(NULL);
}

/* ---- the inlet ---- */

/* Do these frames come out of their bytes, given in pieces of this size? */
static bool cut(struct dt_frame **frames, size_t n, const unsigned char *bytes,
                size_t len, size_t piece)
{
    struct dt_inlet inlet = {0};
    size_t got = 0, at = 0;
    bool good = true;
    while (at < len && good) {
        size_t size = len - at < piece ? len - at : piece, used;
        unsigned char *part = malloc(size);
        struct dt_frame *frame;
        memcpy(part, bytes + at, size);
        good = dt_inlet_take(&inlet, part, size, DT_WIRE_MAX, &used, &frame,
                             NULL) == DT_SUCCESS &&
               used > 0 && used <= size && (frame || used == size);
        at += used;
        if (good && frame) {
            good = got < n && same(frame, frames[got++]);
            dt_frame_unref(frame);
        }
        free(part);
    }
    good = good && got == n && !inlet.partial && inlet.head_len == 0;
    dt_inlet_free(&inlet);
    return good;
}

static void streamed(void)
{
    struct dt_frame *frames[] = {
        sample(DT_WIRE_HELLO, 1),  sample(DT_WIRE_BEAT, 0),
        sample(DT_WIRE_MAP, 9999), sample(DT_WIRE_BYE, 0),
        sample(DT_WIRE_NEWS, 300), sample(DT_WIRE_ANSWER, 4091),
    };
    enum { N = sizeof(frames) / sizeof(*frames) };
    struct dt_frame *all = dt_frame_begin(DT_WIRE_NEWS); /* as a buffer */
    for (size_t i = 0; i < N; i++)
        dt_frame_bytes(all, frames[i]->bytes, frames[i]->len);
    static const size_t pieces[] = {1, 2, 3, 4, 5, 6, 7, 64, 4096, 100000};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
        ok(cut(frames, N, all->bytes + 5, all->len - 5, pieces[i]),
           "%d frames in pieces of %zu bytes", N, pieces[i]);
    dt_frame_unref(all);
    for (size_t i = 0; i < N; i++)
        dt_frame_unref(frames[i]);
}

/* The result of the inlet for these bytes. */
static dt_result_t verdict(const void *bytes, size_t len, size_t max,
                           struct dt_error *err)
{
    struct dt_inlet inlet = {0};
    struct dt_frame *frame = NULL;
    size_t used = 77;
    dt_result_t rc = dt_inlet_take(&inlet, bytes, len, max, &used, &frame, err);
    if (rc != DT_SUCCESS) {
        size_t more;
        if (used != 77 || frame ||
            dt_inlet_take(&inlet, "\1\0\0\0\6", 5, max, &more, &frame, NULL) !=
                rc)
            rc = DT_ERR_SYSTEM; /* an output was set, or it recovered */
    }
    dt_frame_unref(frame);
    dt_inlet_free(&inlet);
    return rc;
}

static void refused(void)
{
    struct dt_error err = {{0}};
    ok(verdict("\0\0\0\0", 4, 99, &err) == DT_ERR_CORRUPT, "no kind: %s",
       err.text);
    ok(verdict("\x64\0\0\0", 4, 99, &err) == DT_ERR_CORRUPT,
       "more than the most, before anything else comes: %s", err.text);
    ok(verdict("\x63\0\0\0", 4, 99, &err) == DT_SUCCESS, "just the most");
    ok(verdict("\xff\xff\xff\xff", 4, SIZE_MAX, &err) == DT_ERR_CORRUPT,
       "4 GiB: %s", err.text);
    ok(verdict("\1\0\0\x10", 4, SIZE_MAX, &err) == DT_ERR_CORRUPT,
       "256 MiB and a byte: %s", err.text);
    ok(verdict("\1\0\0\0\0", 5, 99, &err) == DT_ERR_CORRUPT, "kind 0: %s",
       err.text);
    const unsigned char beyond[] = {1, 0, 0, 0, DT_WIRE_ANSWER + 1};
    ok(verdict(beyond, 5, 99, &err) == DT_ERR_CORRUPT, "a kind too many: %s",
       err.text);
    ok(verdict("", 0, 99, &err) == DT_SUCCESS, "nothing is no error");
}

static void as_it_comes(void)
{
    struct dt_inlet inlet = {0};
    struct dt_frame *frame = NULL;
    unsigned char page[8192] = {0, 0, 0, 0x10, DT_WIRE_NEWS}; /* 256 MiB */
    size_t used = 0;
    ok(dt_inlet_take(&inlet, page, 5, DT_WIRE_MAX, &used, &frame, NULL) ==
               DT_SUCCESS &&
           used == 5 && !frame && inlet.partial && inlet.partial->room <= 4096,
       "a claim of 256 MiB gets a page");
    bool good = true;
    for (int i = 0; i < 1000 && good; i++)
        good = dt_inlet_take(&inlet, page, sizeof(page), DT_WIRE_MAX, &used,
                             &frame, NULL) == DT_SUCCESS &&
               !frame && inlet.partial->room <= 2 * inlet.partial->len;
    ok(good && inlet.partial->len == 5 + 8192000,
       "its memory stays within twice what has come");
    dt_inlet_free(&inlet);
    ok(!inlet.partial && inlet.head_len == 0, "the inlet is freed half way");
}

int main(void)
{
    written();
    cut_short();
    too_long();
    grown();
    shared();
    streamed();
    refused();
    as_it_comes();
    return tap_done();
}
