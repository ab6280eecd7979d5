/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link-ends.h - the two ends of a link, in one process, in pretended time. */
#ifndef LINK_ENDS_H
#define LINK_ENDS_H

#include "mesh/link.h"
#include "munged.h"

#define HEART 30000

extern struct munged munged; /* which the test starts */
extern int64_t now;          /* all time there is */

/* Of the daemon of a node of a step of four. */
struct dt_identity identity(uint32_t node);

void make_pair(int fds[2]);
struct dt_link *open_link(int fd, const struct dt_identity *self, uint32_t to);

/* A dialer, node 1, and an acceptor, node 2, not yet turned. */
void open_both(struct dt_link *both[2]);
void turn(struct dt_link *both[2], int times);
void close_both(struct dt_link *both[2]);

/* A frame of len times fill; it is sent. */
struct dt_frame *frame_of(enum dt_wire_kind kind, size_t len, char fill);
void send_frame(struct dt_link *link, enum dt_wire_kind kind, size_t len,
                char fill);

/* Does the next frame hold this? */
bool comes(struct dt_link *link, size_t len, char fill);

bool is_open(const struct dt_link *link);

/* Is it broken with this result, and text in the reason? */
bool broke(const struct dt_link *link, dt_result_t result, const char *text);

#endif
