/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* card.c - packing and reading cards.
 *
 *   offset  bytes
 *        0      8  "dt-card" and NUL
 *        8      4  version of the card
 *       12      4  version of the tag layout
 *       16     64  node name, NUL-padded
 *       80     32  secret
 *      112     4n  length of each transport's address, 0: none
 *  112 + 4n      4  length of the parameters, 0: none
 *  116 + 4n        the addresses and the parameters, one behind the other
 */
#include "boot/card.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

static const char magic[8] = "dt-card";
#define HEAD                                                                   \
    (sizeof(magic) + 4 + 4 + 64 + DT_CARD_SECRET + 4 * (DT_CARD_TLS + 1))

static unsigned char *put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

static unsigned char *put_blob(unsigned char *at, const struct dt_blob *blob)
{
    if (blob->len)
        memcpy(at, blob->data, blob->len);
    return at + blob->len;
}

dt_result_t dt_card_pack(const struct dt_card *card, struct dt_blob *bytes,
                         struct dt_error *err)
{
    size_t len = HEAD + card->tune.len;
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        len += card->tl[i].len;
    unsigned char *out = calloc(1, len), *at = out;
    if (!out)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a card");
    memcpy(at, magic, sizeof(magic));
    at = put_u32(at + sizeof(magic), DT_CARD_VERSION);
    at = put_u32(at, card->tag_layout);
    memcpy(at, card->node, strnlen(card->node, sizeof(card->node) - 1));
    at += sizeof(card->node);
    memcpy(at, card->secret, sizeof(card->secret));
    at += sizeof(card->secret);
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        at = put_u32(at, (uint32_t)card->tl[i].len);
    at = put_u32(at, (uint32_t)card->tune.len);
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        at = put_blob(at, &card->tl[i]);
    put_blob(at, &card->tune);
    *bytes = (struct dt_blob){out, len};
    return DT_SUCCESS;
}

dt_result_t dt_card_unpack(const struct dt_blob *bytes, size_t rank,
                           struct dt_card *card, struct dt_error *err)
{
    struct dt_cursor in = dt_cursor(bytes->data, bytes->len);
    const char *head = dt_cursor_bytes(&in, sizeof(magic));
    if (!head || memcmp(head, magic, sizeof(magic)))
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "rank %zu did not send a card of libdt: check "
                            "that all ranks run the same program",
                            rank);
    uint64_t version = dt_cursor_uint(&in, 4);
    if (!in.failed && version != DT_CARD_VERSION)
        return dt_error_set(err, DT_ERR_VERSION,
                            "rank %zu runs a libdt that sends cards of "
                            "version %u, this one reads %d: install the same "
                            "slurm-dt on all nodes",
                            rank, (unsigned)version, DT_CARD_VERSION);
    struct dt_card read = {.tag_layout = (uint32_t)dt_cursor_uint(&in, 4)};
    const char *node = dt_cursor_bytes(&in, sizeof(read.node));
    if (node)
        memcpy(read.node, node, sizeof(read.node) - 1);
    const void *secret = dt_cursor_bytes(&in, sizeof(read.secret));
    if (secret)
        memcpy(read.secret, secret, sizeof(read.secret));
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        read.tl[i].len = dt_cursor_uint(&in, 4);
    read.tune.len = dt_cursor_uint(&in, 4);
    for (size_t i = 0; i < DT_CARD_TLS; i++) {
        const void *addr = dt_cursor_bytes(&in, read.tl[i].len);
        read.tl[i].data = read.tl[i].len ? addr : NULL;
    }
    read.tune.data = dt_cursor_bytes(&in, read.tune.len);
    if (in.failed || in.at != in.end || !read.node[0])
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "the card of rank %zu is damaged", rank);
    *card = read;
    return DT_SUCCESS;
}
