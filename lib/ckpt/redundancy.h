/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* redundancy.h - enough bytes on other nodes to bring back what a lost node
 * had. Pure: layout and code; protect.h moves the bytes.
 *
 * Nodes form groups of k + m. A node's data is padded to the longest of its
 * group and cut into k segments. Stripe s of a group (0 <= s < k + m) has its
 * m pieces of parity on the nodes s, s+1 .. s+m-1 of the group (modulo its
 * size), and one segment of each of the others. So a node keeps m pieces of
 * parity, a k-th of its data each, and any m nodes of a group may be lost.
 * partner is k = m = 1, its parity a copy; xor:g is k = g - 1, m = 1. */
#ifndef DT_CKPT_REDUNDANCY_H
#define DT_CKPT_REDUNDANCY_H

#include "base/error.h"

struct dt_redundancy {
    int k, m; /* m 0: none */
    char text[32];
};

/* "none", "partner", "xor:4" (nodes in a group, from 2), "rs:4+2" (k from 1, m
 * from 1, k + m up to 255). INVALID_ARG names source ("--dt-ckpt-redundancy")
 * and says what was expected. */
dt_result_t dt_redundancy_parse(const char *text, const char *source,
                                struct dt_redundancy *r, struct dt_error *err);

/* r->m is not 0. How num_nodes nodes fall into groups of k + m; what is left
 * over makes groups larger (they then have a larger k), but for more than the
 * 255 nodes that the code knows. With fewer nodes than k + m, k is smaller.
 * INVALID_ARG if a group has not m + 1 nodes. */
struct dt_redundancy_group {
    int first, size; /* nodes first .. first + size - 1 */
    int k, m;
};
dt_result_t dt_redundancy_group(const struct dt_redundancy *r, int num_nodes,
                                int node, struct dt_redundancy_group *group,
                                struct dt_error *err);

/* Which segment (0 .. k-1) of its data the member gives to the stripe, or -1
 * and which of the stripe's m pieces of parity it keeps in *parity. */
int dt_redundancy_segment(const struct dt_redundancy_group *group, int member,
                          int stripe, int *parity);

/* Which of the stripe's pieces the member has, as decode counts them. */
int dt_redundancy_piece(const struct dt_redundancy_group *group, int member,
                        int stripe);

/* The other way: the member that has it. */
int dt_redundancy_member(const struct dt_redundancy_group *group, int stripe,
                         int piece);

/* The stripe that the member's segment is in. */
int dt_redundancy_stripe(const struct dt_redundancy_group *group, int member,
                         int segment);

/* parity[m] from data[k], each of len bytes. */
dt_result_t dt_redundancy_encode(int k, int m, size_t len,
                                 const unsigned char *const *data,
                                 unsigned char *const *parity,
                                 struct dt_error *err);

/* A piece from k others. The pieces 0 .. k-1 are data, k .. k+m-1 parity; have
 * are k of them, rising, without the wanted one, which is the sum of row[i] *
 * piece have[i]. INVALID_ARG, NO_MEMORY. */
dt_result_t dt_redundancy_row(int k, int m, const int *have, int wanted,
                              unsigned char *row, struct dt_error *err);

/* Each byte of sum is added by * piece. */
void dt_redundancy_add(unsigned char *sum, unsigned char by,
                       const unsigned char *piece, size_t len);

#endif
