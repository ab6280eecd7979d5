/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tree.h - trees over places 0 .. n-1, of which 0 is the root. */
#ifndef DT_COLL_ALGORITHM_TREE_H
#define DT_COLL_ALGORITHM_TREE_H

#include <stddef.h>

enum dt_tree_kind {
    DT_TREE_BINOMIAL, /* fewest steps */
    DT_TREE_CHAIN,    /* each has one child: the most in a pipeline */
    /* Two binary trees below the root; who has children in one has none in
     * the other, so half the data through each keeps all links busy: Sanders,
     * Speck and Traeff 2009, "Two-tree algorithms for full bandwidth
     * broadcast, reduction and scan". */
    DT_TREE_FIRST,
    DT_TREE_SECOND,
};

/* The neighbours of one place. */
struct dt_tree {
    size_t parent; /* of the root: itself */
    size_t nchildren;
    size_t children[64]; /* in the order in which they are served */
};

struct dt_tree dt_tree(enum dt_tree_kind kind, size_t n, size_t place);

#endif
