/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* frames.c - a libFuzzer target: a stream between two daemons, in pieces of a
 * size that the first byte selects, and whatever frames come out of it read as
 * entries and maps. fuzz.t builds it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/map.h"

/* Ranks at most: more take time and show nothing new. */
#define LIMIT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* A failure has one line. */
static void check_line(const struct dt_error *err)
{
    check(*err->text && !strchr(err->text, '\n'));
}

/* An entry that was read is written as the bytes that it was read from. */
static void read_entry(const struct dt_frame *frame)
{
    struct dt_cursor body = dt_frame_body(frame);
    const unsigned char *from = body.at;
    struct dt_map_entry entry;
    struct dt_error err = {{0}};
    if (dt_map_entry_unpack(&body, LIMIT, &entry, &err) != DT_SUCCESS) {
        check_line(&err);
        return;
    }
    struct dt_frame *again = dt_frame_begin(DT_WIRE_ENTRY);
    dt_map_entry_pack(again, &entry);
    check(dt_frame_end(&again, &err) == DT_SUCCESS);
    check(again->len - 5 == (size_t)(body.at - from) &&
          memcmp(again->bytes + 5, from, again->len - 5) == 0);
    dt_frame_unref(again);
    dt_map_entry_free(&entry);
}

/* A map that was read has each rank where it says, and is written as one that
 * is read as the same. */
static void read_map(const struct dt_frame *frame)
{
    struct dt_cursor body = dt_frame_body(frame);
    struct dt_map *map = NULL, *again = NULL;
    struct dt_frame *written = NULL;
    struct dt_error err = {{0}};
    dt_cursor_uint(&body, 4);
    if (dt_cursor_uint(&body, 4) > LIMIT)
        return;
    if (dt_map_unpack(frame, &map, &err) != DT_SUCCESS) {
        check(!map);
        check_line(&err);
        return;
    }
    for (size_t i = 0; i < map->nodes; i++)
        for (size_t k = 0; k < map->entry[i].nranks; k++)
            check(map->node_of[map->entry[i].ranks[k]] == i);
    check(dt_map_pack(map, &written, &err) == DT_SUCCESS &&
          written->len == frame->len);
    check(dt_map_unpack(written, &again, &err) == DT_SUCCESS &&
          again->ranks == map->ranks &&
          memcmp(again->node_of, map->node_of,
                 map->ranks * sizeof(*map->node_of)) == 0);
    dt_frame_unref(written);
    dt_map_destroy(again);
    dt_map_destroy(map);
}

/* Take a piece of the stream, in memory of its own, for ASan to watch the end.
 * *done counts the bytes of the frames that came out. */
static bool take(struct dt_inlet *inlet, const uint8_t *stream, size_t *done,
                 const uint8_t *piece, size_t len)
{
    uint8_t *copy = malloc(len);
    struct dt_error err = {{0}};
    bool good = true;
    check(copy != NULL);
    memcpy(copy, piece, len);
    for (size_t at = 0, used; at < len && good; at += used) {
        struct dt_frame *frame = NULL;
        good = dt_inlet_take(inlet, copy + at, len - at, DT_WIRE_MAX, &used,
                             &frame, &err) == DT_SUCCESS;
        if (!good) {
            check_line(&err);
            break;
        }
        check(used > 0 && used <= len - at && (frame || used == len - at));
        if (!frame)
            continue;
        check(memcmp(frame->bytes, stream + *done, frame->len) == 0);
        *done += frame->len;
        read_entry(frame);
        if (dt_frame_kind(frame) == DT_WIRE_MAP)
            read_map(frame);
        dt_frame_unref(frame);
    }
    free(copy);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_inlet inlet = {0};
    if (size == 0)
        return 0;
    const uint8_t *stream = data + 1;
    size_t piece = data[0] < 255 ? data[0] + 1u : size;
    size_t len = size - 1, done = 0;
    for (size_t at = 0; at < len; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        if (!take(&inlet, stream, &done, stream + at, n))
            break;
        size_t held = inlet.partial ? inlet.partial->len : inlet.head_len;
        check(done + held == at + n); /* nothing is lost */
    }
    dt_inlet_free(&inlet);
    return 0;
}
