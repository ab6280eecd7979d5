/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* erasure.h - the erasure code that protects the data of nodes: schemes, the
 * layout of a redundancy set, and the arithmetic. Pure.
 *
 * Nodes form redundancy sets of k + m members. A node's data is padded to the
 * longest of its set and cut into k data blocks. Stripe s of a set (0 <= s <
 * k + m) has its m parity blocks on the members s, s+1 .. s+m-1 (modulo the
 * size of the set), and one data block of each of the others. So a node stores
 * m parity blocks, each a k-th of its data in size, and any m nodes of a set
 * may be lost. partner is k = m = 1, its parity a copy; xor:g is k = g - 1, m
 * = 1. */
#ifndef DT_CKPT_FORMAT_ERASURE_H
#define DT_CKPT_FORMAT_ERASURE_H

#include "base/error.h"

/* A scheme. */
struct dt_erasure {
    int k, m; /* m 0: none */
    char text[32];
};

/* Parse "none", "partner", "xor:4" (nodes in a set, from 2) or "rs:4+2" (k from
 * 1, m from 1, k + m up to 255). INVALID_ARG names source
 * ("--dt-ckpt-redundancy") and says what was expected. */
dt_result_t dt_erasure_parse(const char *text, const char *source,
                             struct dt_erasure *r, struct dt_error *err);

/* The members of one redundancy set, and its code. */
struct dt_erasure_layout {
    int first, size; /* nodes first .. first + size - 1 */
    int k, m;
};

/* The set of node, when num_nodes nodes form sets by the scheme r, whose m is
 * not 0. Nodes that are left over make sets larger, which then have a larger k,
 * but never larger than the 255 nodes of the code. With fewer nodes than k + m,
 * k is smaller. INVALID_ARG if a set would have fewer than m + 1 nodes. */
dt_result_t dt_erasure_layout(const struct dt_erasure *r, int num_nodes,
                              int node, struct dt_erasure_layout *layout,
                              struct dt_error *err);

/* The number (0 .. k-1) of the data block that the member has in the stripe. -1
 * if it has a parity block there: *parity is the number of that (0 .. m-1). */
int dt_erasure_data_block(const struct dt_erasure_layout *layout, int member,
                          int stripe, int *parity);

/* The number of the member's block in the stripe: 0 .. k-1 are data blocks,
 * k .. k+m-1 parity blocks. */
int dt_erasure_block(const struct dt_erasure_layout *layout, int member,
                     int stripe);

/* The member that has the block of that number. */
int dt_erasure_member(const struct dt_erasure_layout *layout, int stripe,
                      int block);

/* The stripe that has the member's data block. */
int dt_erasure_stripe(const struct dt_erasure_layout *layout, int member,
                      int data_block);

/* Compute parity[m] from data[k], each of len bytes. Errors: INVALID_ARG,
 * NO_MEMORY. */
dt_result_t dt_erasure_encode(int k, int m, size_t len,
                              const unsigned char *const *data,
                              unsigned char *const *parity,
                              struct dt_error *err);

/* Compute the factors for one block from k others: the wanted block is the sum
 * of row[i] * block have[i]. have lists k blocks in rising order, without the
 * wanted one. Errors: INVALID_ARG, NO_MEMORY. */
dt_result_t dt_erasure_row(int k, int m, const int *have, int wanted,
                           unsigned char *row, struct dt_error *err);

/* Add factor * block to sum, len bytes each. */
void dt_erasure_add(unsigned char *sum, unsigned char factor,
                    const unsigned char *block, size_t len);

#endif
