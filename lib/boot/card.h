/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* card.h - the card of a rank, which dt_init exchanges: its node, its
 * secret and the addresses of its transports. doc/wire.md has the format. */
#ifndef DT_BOOT_CARD_H
#define DT_BOOT_CARD_H

#include "boot/boot.h"

#define DT_CARD_TLS     3 /* transports on a card */
#define DT_CARD_VERSION 4
#define DT_CARD_SECRET  32

struct dt_card {
    char node[64];
    uint32_t tag_layout; /* must be equal on all ranks */
    unsigned char secret[DT_CARD_SECRET];
    struct dt_blob tl[DT_CARD_TLS]; /* data NULL: not offered */
    struct dt_blob tune; /* tuning parameters; those of rank 0 count */
};

/* Write card as bytes, to be freed by the caller. Error NO_MEMORY. */
dt_result_t dt_card_pack(const struct dt_card *card, struct dt_blob *bytes,
                         struct dt_error *err);

/* Read the bytes of another rank; card->tl points into them. Errors: VERSION
 * if they are of another version, BOOTSTRAP if they are damaged. */
dt_result_t dt_card_unpack(const struct dt_blob *bytes, size_t rank,
                           struct dt_card *card, struct dt_error *err);

#endif
