/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tree.c - who is whose parent. */
#include "coll/algorithm/tree.h"

#include <stdbool.h>

static struct dt_tree binomial(size_t n, size_t me)
{
    struct dt_tree tree = {.parent = me ? me & (me - 1) : 0};
    size_t bit = 1;
    while (bit < n && !(me & bit))
        bit *= 2;
    for (bit /= 2; bit > 0; bit /= 2)
        if (me + bit < n)
            tree.children[tree.nchildren++] = me + bit;
    return tree;
}

static struct dt_tree chain(size_t n, size_t me)
{
    struct dt_tree tree = {.parent = me ? me - 1 : 0};
    if (me + 1 < n)
        tree.children[tree.nchildren++] = me + 1;
    return tree;
}

/* The binary search tree of 1 .. m, where the numbers that are divisible by
 * higher powers of two are higher up; 0 is above all. Odd ones are leaves. */
static size_t search_parent(size_t m, size_t x)
{
    size_t bit = x & -x, right = x - bit, left = right | 2 * bit;
    return left <= m ? left : right;
}

static struct dt_tree search(size_t m, size_t x)
{
    struct dt_tree tree = {.parent = x ? search_parent(m, x) : 0};
    size_t reach = x ? x & -x : 1;
    while (!x && reach <= m)
        reach *= 2;
    if (x && reach > 1)
        tree.children[tree.nchildren++] = x - reach / 2;
    for (size_t bit = reach / 2; bit > 0; bit /= 2)
        if (x + bit <= m && search_parent(m, x + bit) == x) {
            tree.children[tree.nchildren++] = x + bit;
            break;
        }
    return tree;
}

/* In the second tree the places below the root are seen in a mirror when
 * their number m is even, else turned by one: odd becomes even. */
static size_t turn(size_t m, size_t x, bool back)
{
    if (!x)
        return 0;
    if (m % 2 == 0)
        return m + 1 - x;
    return back ? x % m + 1 : (x + m - 2) % m + 1;
}

static struct dt_tree second(size_t m, size_t me)
{
    struct dt_tree tree = search(m, turn(m, me, false));
    tree.parent = turn(m, tree.parent, true);
    for (size_t i = 0; i < tree.nchildren; i++)
        tree.children[i] = turn(m, tree.children[i], true);
    return tree;
}

struct dt_tree dt_tree(enum dt_tree_kind kind, size_t n, size_t place)
{
    switch (kind) {
    case DT_TREE_CHAIN:
        return chain(n, place);
    case DT_TREE_FIRST:
        return search(n - 1, place);
    case DT_TREE_SECOND:
        return second(n - 1, place);
    case DT_TREE_BINOMIAL:
        break;
    }
    return binomial(n, place);
}
