/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* card.c - cards: round trip, a golden sample, and damaged bytes. */
#include <stdlib.h>
#include <string.h>

#include "boot/card.h"
#include "../tap.h"

/* Version 4 for node "n7", with a secret, a 3-byte, a 5-byte and a 1-byte
 * address and 2 bytes of parameters. Never edit. */
static const unsigned char
    golden[] = {'d',       't',       '-',       'c',        'a',
                'r',       'd',       0,         4,          0,
                0,         0,         1,         0,          0,
                0,         'n',       '7',       [80] = 's', [111] = 't',
                [112] = 3, [116] = 5, [120] = 1, [124] = 2,  [128] = 'a',
                'b',       'c',       'v',       'w',        'x',
                'y',       'z',       'k',       'p',        'q'};

static dt_result_t unpack(const void *data, size_t len, struct dt_card *card,
                          struct dt_error *err)
{
    struct dt_blob bytes = {data, len};
    return dt_card_unpack(&bytes, 3, card, err);
}

static void round_trip(void)
{
    struct dt_error err = {""};
    struct dt_card card = {.node = "n7",
                           .tag_layout = 1,
                           .secret = {[0] = 's', [31] = 't'},
                           .tl = {{"abc", 3}, {"vwxyz", 5}, {"k", 1}},
                           .tune = {"pq", 2}},
                   back = {0};
    struct dt_blob bytes;
    ok(dt_card_pack(&card, &bytes, &err) == DT_SUCCESS, "a card is packed");
    ok(bytes.len == sizeof(golden) && !memcmp(bytes.data, golden, bytes.len),
       "as the golden sample");
    ok(unpack(golden, sizeof(golden), &back, &err) == DT_SUCCESS &&
           !strcmp(back.node, "n7") && back.tag_layout == 1 &&
           back.tl[0].len == 3 && back.tl[1].len == 5 && back.tl[2].len == 1 &&
           !memcmp(back.secret, card.secret, sizeof(card.secret)) &&
           back.tune.len == 2 && !memcmp(back.tune.data, "pq", 2) &&
           !memcmp(back.tl[1].data, "vwxyz", 5),
       "the golden sample is read");
    free((void *)bytes.data);
}

static void refused(void)
{
    struct dt_error err = {""};
    struct dt_card card = {.node = "untouched"};
    unsigned char bad[sizeof(golden)];
    memcpy(bad, golden, sizeof(bad));
    bad[8] = 2;
    ok(unpack(bad, sizeof(bad), &card, &err) == DT_ERR_VERSION &&
           strstr(err.text, "rank 3"),
       "another version is refused by name: %s", err.text);
    ok(unpack("hello", 5, &card, &err) == DT_ERR_BOOTSTRAP,
       "another program is refused: %s", err.text);
    ok(unpack(NULL, 0, &card, &err) == DT_ERR_BOOTSTRAP, "so is nothing");
    ok(!strcmp(card.node, "untouched"), "and the output is left alone");
    size_t taken = 0;
    for (size_t len = 0; len < sizeof(golden); len++) {
        unsigned char *cut = malloc(len + 1); /* so that ASan sees the end */
        memcpy(cut, golden, len);
        taken += unpack(cut, len, &card, &err) == DT_SUCCESS;
        free(cut);
    }
    ok(taken == 0, "a card cut short anywhere is refused");
}

/* Flip bytes at random: whatever is accepted must lie inside the card. */
static void fuzz(void)
{
    unsigned long outside = 0;
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        unsigned char *bad = malloc(sizeof(golden));
        memcpy(bad, golden, sizeof(golden));
        for (int flips = round % 4 + 1; flips; flips--) {
            seed = seed * 1664525u + 1013904223u;
            bad[(seed >> 8) % sizeof(golden)] = (unsigned char)(seed >> 24);
        }
        struct dt_card card;
        if (unpack(bad, sizeof(golden), &card, NULL) == DT_SUCCESS)
            for (size_t i = 0; i < DT_CARD_TLS; i++)
                outside +=
                    card.tl[i].len &&
                    ((const unsigned char *)card.tl[i].data < bad ||
                     (const unsigned char *)card.tl[i].data + card.tl[i].len >
                         bad + sizeof(golden));
        free(bad);
    }
    ok(outside == 0, "damaged cards are refused or read within bounds");
}

int main(void)
{
    round_trip();
    refused();
    fuzz();
    return tap_done();
}
