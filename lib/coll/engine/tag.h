/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tag.h - what collectives put into the tag of a message, below the bits that
 * tl.h reserves.
 *
 *   bits  0..19  slot: the k-th message between two ranks of a collective;
 *                all ones for dt_send and dt_recv, whose sequence number is 0
 *   bits 20..31  sequence number of the collective on its communicator
 *   bits 32..39  id of the communicator
 *
 * The ranks compare DT_TAG_LAYOUT in dt_init. */
#ifndef DT_COLL_ENGINE_TAG_H
#define DT_COLL_ENGINE_TAG_H

#include <stdint.h>

#define DT_TAG_LAYOUT     3
#define DT_TAG_SLOT_BITS  20
#define DT_TAG_SEQ_BITS   12
#define DT_TAG_COMM_SHIFT (DT_TAG_SLOT_BITS + DT_TAG_SEQ_BITS)
#define DT_TAG_P2P        (((uint64_t)1 << DT_TAG_SLOT_BITS) - 1)

#endif
