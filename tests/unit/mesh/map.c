/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* map.c - the map of a step: checked, written and read, and refused when it is
 * cut short, lies, or claims something twice. */
#include <stdlib.h>
#include <string.h>

#include "mesh/map.h"
#include "../tap.h"

#define LIMIT 1000

/* An entry of a node with these ranks, which end with -1. */
static struct dt_map_entry entry_of(uint32_t node, const int *ranks)
{
    struct dt_map_entry entry = {.node = node, .port = 0x1234};
    snprintf(entry.name, sizeof(entry.name), "n%u", node);
    memcpy(entry.ip, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01", 16);
    while (ranks[entry.nranks] >= 0)
        entry.nranks++;
    entry.ranks = malloc((entry.nranks + 1) * sizeof(*entry.ranks));
    for (size_t i = 0; i < entry.nranks; i++)
        entry.ranks[i] = (uint32_t)ranks[i];
    /* as many ports as ranks */
    entry.nheld = entry.nranks;
    entry.held = malloc((entry.nheld + 1) * sizeof(*entry.held));
    for (size_t i = 0; i < entry.nheld; i++)
        entry.held[i] = (uint16_t)(40000 + i);
    return entry;
}
#define RANKS(...) ((const int[]){__VA_ARGS__, -1})

static struct dt_map_entry *entries_of(size_t n, const struct dt_map_entry *of)
{
    struct dt_map_entry *entries = malloc(n * sizeof(*entries));
    memcpy(entries, of, n * sizeof(*entries));
    return entries;
}
#define ENTRIES(...)                                                           \
    entries_of(sizeof((struct dt_map_entry[]){__VA_ARGS__}) /                  \
                   sizeof(struct dt_map_entry),                                \
               (struct dt_map_entry[]){__VA_ARGS__})

static bool same_entry(const struct dt_map_entry *a,
                       const struct dt_map_entry *b)
{
    return a->node == b->node && a->port == b->port &&
           !strcmp(a->name, b->name) && !memcmp(a->ip, b->ip, 16) &&
           a->nranks == b->nranks &&
           !memcmp(a->ranks, b->ranks, a->nranks * sizeof(*a->ranks)) &&
           a->nheld == b->nheld &&
           (!a->nheld ||
            !memcmp(a->held, b->held, a->nheld * sizeof(*a->held)));
}

/* ---- entries ---- */

static struct dt_frame *packed(const struct dt_map_entry *entry)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ENTRY);
    dt_map_entry_pack(frame, entry);
    return dt_frame_end(&frame, NULL) == DT_SUCCESS ? frame : NULL;
}

/* Read an entry from memory of just its size. */
static dt_result_t read_entry(const void *bytes, size_t len, size_t limit,
                              struct dt_map_entry *entry, struct dt_error *err)
{
    unsigned char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    struct dt_cursor body = dt_cursor(copy, len);
    dt_result_t rc = dt_map_entry_unpack(&body, limit, entry, err);
    if (rc == DT_SUCCESS && body.at != body.end)
        rc = DT_ERR_SYSTEM;
    free(copy);
    return rc;
}

static void drawn(void)
{
    static const unsigned char expected[] = {
        58,   0,    0,    0,    DT_WIRE_ENTRY,
        2,    0,    0,    0,    0x34,
        0x12, /* node */
        0,    0,    0,    0,    0,
        0,    0,    0,    0,    0, /* ip */
        255,  255,  10,   0,    0,
        1, /* ip */
        2,    'n',  '2',  2,    0,
        0,    0, /* name */
        4,    0,    0,    0,    3,
        0,    0,    0, /* 4-6 */
        9,    0,    0,    0,    1,
        0,    0,    0,       /* 9 */
        4,    0,    0,    0, /* ports */
        0x40, 0x9c, 0x41, 0x9c, 0x42,
        0x9c, 0x43, 0x9c,
    };
    struct dt_map_entry entry = entry_of(2, RANKS(4, 5, 6, 9));
    struct dt_frame *frame = packed(&entry);
    ok(frame && frame->len == sizeof(expected) &&
           !memcmp(frame->bytes, expected, sizeof(expected)),
       "the bytes of an entry are those of the drawing");
    dt_frame_unref(frame);
    dt_map_entry_free(&entry);
    ok(!entry.ranks && !entry.nranks, "an entry is freed");
}

static void round_trip(struct dt_map_entry entry, const char *what)
{
    struct dt_frame *frame = packed(&entry);
    struct dt_map_entry again;
    bool good = frame && read_entry(frame->bytes + 5, frame->len - 5, LIMIT,
                                    &again, NULL) == DT_SUCCESS;
    ok(good && same_entry(&entry, &again), "%s comes back", what);
    if (good)
        dt_map_entry_free(&again);
    dt_frame_unref(frame);
    dt_map_entry_free(&entry);
}

static void round_trips(void)
{
    round_trip(entry_of(0, RANKS(0)), "an entry of one rank");
    round_trip(entry_of(7, RANKS(-1)), "one of none");
    round_trip(entry_of(UINT32_MAX, RANKS(0, 2, 4, 6, 999)),
               "one of ranks dealt in turn, up to the limit");
    struct dt_map_entry entry = entry_of(1, RANKS(1, 2, 3));
    memset(entry.name, 'n', 255);
    entry.name[255] = '\0';
    round_trip(entry, "the longest name");
    entry = entry_of(0, RANKS(-1));
    free(entry.ranks);
    entry.ranks = malloc(LIMIT * sizeof(*entry.ranks));
    for (entry.nranks = 0; entry.nranks < LIMIT; entry.nranks++)
        entry.ranks[entry.nranks] = (uint32_t)entry.nranks;
    struct dt_frame *frame = packed(&entry);
    ok(frame && frame->len == 5 + 4 + 2 + 16 + 1 + 2 + 4 + 8 + 4,
       "%d ranks in a row are one range", LIMIT);
    dt_frame_unref(frame);
    round_trip(entry, "an entry of all");
}

static void entry_cut_short(void)
{
    struct dt_map_entry entry = entry_of(2, RANKS(4, 5, 9)), got;
    struct dt_frame *frame = packed(&entry);
    struct dt_error err;
    bool good = true;
    for (size_t n = 0; n < frame->len - 5; n++)
        good = good && read_entry(frame->bytes + 5, n, LIMIT, &got, &err) ==
                           DT_ERR_CORRUPT;
    ok(good, "an entry that is cut short, anywhere, is none");
    dt_frame_unref(frame);
    dt_map_entry_free(&entry);
}

/* What is said to an entry with this name and these ranges (first, count). */
static dt_result_t entry_verdict(const char *name, size_t name_len,
                                 const uint32_t *ranges, size_t n,
                                 struct dt_error *err)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ENTRY);
    struct dt_map_entry got;
    dt_frame_uint(frame, 4, 2);
    dt_frame_uint(frame, 2, 4711);
    dt_frame_bytes(frame, "0123456789abcdef", 16);
    dt_frame_uint(frame, 1, name_len);
    dt_frame_bytes(frame, name, name_len);
    dt_frame_uint(frame, 4, n);
    for (size_t i = 0; i < 2 * n; i++)
        dt_frame_uint(frame, 4, ranges[i]);
    dt_frame_uint(frame, 4, 0);
    err->text[0] = '\0';
    dt_result_t rc =
        read_entry(frame->bytes + 5, frame->len - 5, LIMIT, &got, err);
    if (rc == DT_SUCCESS)
        dt_map_entry_free(&got);
    dt_frame_unref(frame);
    return rc;
}

static void entry_refused(void)
{
    static const struct {
        const char *what;
        uint32_t ranges[4];
    } rows[] = {
        {"a range of none", {5, 0, 9, 1}},
        {"ranges that overlap", {5, 3, 7, 1}},
        {"ranges that fall", {5, 3, 1, 1}},
        {"ranges that are one", {5, 3, 8, 1}},
        {"the same range twice", {5, 3, 5, 3}},
        {"a rank beyond the limit", {5, 3, 998, 3}},
        {"4 billion ranks", {5, 3, 9, UINT32_MAX}},
        {"a range round the corner", {UINT32_MAX, 2, 9, 1}},
        {"a first rank beyond all", {UINT32_MAX, UINT32_MAX, 9, 1}},
    };
    struct dt_error err;
    const uint32_t fine[] = {5, 3, 9, 991};
    ok(entry_verdict("n2", 2, fine, 2, &err) == DT_SUCCESS,
       "ranges up to the limit are fine");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        ok(entry_verdict("n2", 2, rows[i].ranges, 2, &err) == DT_ERR_CORRUPT,
           "%s: %s", rows[i].what, err.text);
    ok(entry_verdict("", 0, fine, 2, &err) == DT_ERR_CORRUPT, "no name: %s",
       err.text);
    ok(entry_verdict("a\0b", 3, fine, 2, &err) == DT_ERR_CORRUPT &&
           entry_verdict("a\nb", 3, fine, 2, &err) == DT_ERR_CORRUPT &&
           entry_verdict("a\x1b[1m", 5, fine, 2, &err) == DT_ERR_CORRUPT &&
           entry_verdict("\x7f", 1, fine, 2, &err) == DT_ERR_CORRUPT &&
           entry_verdict("\xff", 1, fine, 2, &err) == DT_ERR_CORRUPT,
       "a name that would spoil a line: %s", err.text);
}

static void many_ranges_claimed(void)
{
    static const unsigned char body[] =
        "\2\0\0\0\1\0abcdefghijklmnop\2n2\xff\xff\xff\xff\0\0\0\0\1\0\0\0";
    struct dt_map_entry got;
    ok(read_entry(body, sizeof(body) - 1, LIMIT, &got, NULL) == DT_ERR_CORRUPT,
       "4 billion ranges in 8 bytes are none");
}

/* ---- maps ---- */

static void made(void)
{
    struct dt_map_entry *entries =
        ENTRIES(entry_of(2, RANKS(4)), entry_of(0, RANKS(0, 3)),
                entry_of(3, RANKS(-1)), entry_of(1, RANKS(1, 2, 5)));
    static const uint32_t node_of[] = {0, 1, 1, 0, 2, 1};
    struct dt_map *map = NULL, *again = NULL;
    struct dt_frame *frame = NULL;
    ok(dt_map_create(&map, entries, 4, 6, NULL) == DT_SUCCESS &&
           map->nodes == 4 && map->ranks == 6 &&
           !memcmp(map->node_of, node_of, sizeof(node_of)),
       "a map of entries in any order");
    bool sorted = true;
    for (uint32_t i = 0; i < 4; i++)
        sorted = sorted && map->entry[i].node == i;
    ok(sorted && map->entry[1].nranks == 3, "each entry is at its node");
    bool good = dt_map_pack(map, &frame, NULL) == DT_SUCCESS &&
                dt_frame_kind(frame) == DT_WIRE_MAP &&
                dt_map_unpack(frame, &again, NULL) == DT_SUCCESS;
    for (size_t i = 0; good && i < 4; i++)
        good = same_entry(&map->entry[i], &again->entry[i]);
    ok(good && again->nodes == 4 && again->ranks == 6 &&
           !memcmp(again->node_of, node_of, sizeof(node_of)),
       "the map comes back");
    dt_frame_unref(frame);
    dt_map_destroy(map);
    dt_map_destroy(again);
    dt_map_destroy(NULL);
}

/* What is said to a map of these entries, which are freed. */
static dt_result_t map_verdict(struct dt_map_entry *entries, size_t nodes,
                               size_t ranks, struct dt_error *err)
{
    struct dt_map *map = NULL;
    dt_result_t rc = dt_map_create(&map, entries, nodes, ranks, err);
    if (rc == DT_SUCCESS) {
        dt_map_destroy(map);
        return rc;
    }
    for (size_t i = 0; i < nodes; i++)
        dt_map_entry_free(&entries[i]);
    free(entries);
    return map ? DT_ERR_SYSTEM : rc;
}

static void claimed(const char *text, struct dt_map_entry first,
                    struct dt_map_entry second)
{
    struct dt_error err = {{0}};
    ok(map_verdict(ENTRIES(first, second), 2, 4, &err) == DT_ERR_MISMATCH &&
           !strcmp(err.text, text),
       "%s", err.text);
}

static void mismatched(void)
{
    claimed("rank 3 is claimed by n1 and n0", entry_of(1, RANKS(2, 3)),
            entry_of(0, RANKS(0, 1, 3)));
    claimed("rank 2 is claimed by n1 and n1", entry_of(1, RANKS(2, 2, 3)),
            entry_of(0, RANKS(0, 1)));
    claimed("rank 1 is on no node, expected each of 4 on one",
            entry_of(0, RANKS(0)), entry_of(1, RANKS(2, 3)));
    claimed("n1 claims rank 4, expected less than 4", entry_of(0, RANKS(0, 1)),
            entry_of(1, RANKS(2, 3, 4)));
    claimed("n2 claims to be node 2, expected less than 2",
            entry_of(0, RANKS(0, 1)), entry_of(2, RANKS(2, 3)));
    struct dt_map_entry other = entry_of(1, RANKS(2, 3));
    strcpy(other.name, "m1");
    claimed("node 1 is claimed by n1 and m1", entry_of(1, RANKS(0, 1)), other);
}

static void limits(void)
{
    struct dt_error err;
    struct dt_map_entry entry = entry_of(0, RANKS(0));
    struct dt_map *map = NULL;
    ok(dt_map_create(&map, &entry, 0, 1, &err) == DT_ERR_MISMATCH &&
           dt_map_create(&map, &entry, DT_MAP_MAX_NODES + 1, 1, &err) ==
               DT_ERR_MISMATCH &&
           dt_map_create(&map, &entry, 1, 0, &err) == DT_ERR_MISMATCH &&
           dt_map_create(&map, &entry, 1, (size_t)DT_MAP_MAX_RANKS + 1, &err) ==
               DT_ERR_MISMATCH &&
           !map,
       "too few or too many: %s", err.text);
    dt_map_entry_free(&entry);
}

static struct dt_frame *map_frame(uint32_t nodes, uint32_t ranks,
                                  const struct dt_map_entry *entries, size_t n)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_MAP);
    dt_frame_uint(frame, 4, nodes);
    dt_frame_uint(frame, 4, ranks);
    for (size_t i = 0; i < n; i++)
        dt_map_entry_pack(frame, &entries[i]);
    return dt_frame_end(&frame, NULL) == DT_SUCCESS ? frame : NULL;
}

static void map_refused(const char *what, dt_result_t rc,
                        struct dt_frame *frame)
{
    struct dt_error err = {{0}};
    struct dt_map *map = NULL;
    ok(dt_map_unpack(frame, &map, &err) == rc && !map, "%s: %s", what,
       err.text);
    dt_frame_unref(frame);
}

static void maps_refused(void)
{
    struct dt_map_entry two[] = {entry_of(0, RANKS(0, 1, 2, 3)),
                                 entry_of(1, RANKS(4, 5, 6, 7))};
    struct dt_frame *frame;
    map_refused("no node", DT_ERR_CORRUPT, map_frame(0, 8, two, 2));
    map_refused("a node more", DT_ERR_CORRUPT, map_frame(3, 8, two, 2));
    map_refused("a node less", DT_ERR_CORRUPT, map_frame(1, 8, two, 2));
    map_refused("no rank", DT_ERR_CORRUPT, map_frame(2, 0, two, 2));
    map_refused("a rank more", DT_ERR_MISMATCH, map_frame(2, 9, two, 2));
    map_refused("a rank less", DT_ERR_CORRUPT, map_frame(2, 7, two, 2));
    map_refused("4 billion nodes", DT_ERR_CORRUPT,
                map_frame(UINT32_MAX, 8, two, 2));
    map_refused("4 billion ranks", DT_ERR_CORRUPT,
                map_frame(2, UINT32_MAX, two, 2));
    frame = map_frame(2, 8, two, 2);
    frame->bytes[4] = DT_WIRE_NEWS;
    map_refused("another kind", DT_ERR_CORRUPT, frame);
    dt_map_entry_free(&two[1]);
    two[1] = entry_of(1, RANKS(1, 2, 3, 4, 5, 6, 7));
    frame = map_frame(2, 8, two, 2);
    struct dt_error err = {{0}};
    struct dt_map *map = NULL;
    ok(dt_map_unpack(frame, &map, &err) == DT_ERR_MISMATCH && !map &&
           !strcmp(err.text, "the nodes claim more than the 8 ranks there are"),
       "claims beyond all ranks are not even counted: %s", err.text);
    dt_frame_unref(frame);
    for (int i = 0; i < 2; i++)
        dt_map_entry_free(&two[i]);
}

static void map_cut_short(void)
{
    struct dt_map_entry two[] = {entry_of(0, RANKS(0, 2)),
                                 entry_of(1, RANKS(1, 3))};
    struct dt_frame *frame = map_frame(2, 4, two, 2);
    bool good = true;
    for (size_t n = 5; n < frame->len; n++) {
        struct dt_frame part = {.refs = 1, .len = n, .room = n};
        struct dt_map *map = NULL;
        part.bytes = malloc(n);
        memcpy(part.bytes, frame->bytes, n);
        good = good && dt_map_unpack(&part, &map, NULL) == DT_ERR_CORRUPT;
        free(part.bytes);
    }
    ok(good, "a map that is cut short, anywhere, is none");
    dt_frame_unref(frame);
    for (int i = 0; i < 2; i++)
        dt_map_entry_free(&two[i]);
}

static void tree(void)
{
    bool good = true;
    for (size_t i = 0; i < 1000; i++)
        for (size_t k = 0; k < DT_MESH_WIDTH; k++)
            good = good && dt_tree_parent(dt_tree_child(i, k)) == i;
    ok(good && dt_tree_child(0, 0) == 1 && dt_tree_parent(1) == 0,
       "the parent of each child of the tree is its parent");
}

int main(void)
{
    drawn();
    round_trips();
    entry_cut_short();
    entry_refused();
    many_ranges_claimed();
    made();
    mismatched();
    limits();
    maps_refused();
    map_cut_short();
    tree();
    return tap_done();
}
