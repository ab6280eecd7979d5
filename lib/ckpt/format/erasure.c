/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* erasure.c - schemes, the layout of a redundancy set, and the
 * code: a systematic
 * Reed-Solomon code over GF(2^8) from a Cauchy matrix (J. Bloemer and others,
 * An XOR-Based Erasure-Resilient Coding Scheme, 1995). */
#include "ckpt/format/erasure.h"

#include <isa-l/erasure_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "ckpt/format/failure.h"

#define BLOCKS_MAX 255
#define CALL_MAX   ((size_t)1 << 30) /* isa-l counts bytes in an int */

/* ---- schemes ---- */

static bool parse(const char *text, int *k, int *m)
{
    uint64_t data = 0, parity = 0;
    bool good = true;
    if (strcmp(text, "partner") == 0) {
        data = parity = 1;
    } else if (strncmp(text, "xor:", 4) == 0) {
        text += 4;
        good =
            dt_number_scan(&text, 10, BLOCKS_MAX, &data) && !*text && data >= 2;
        data -= good;
        parity = 1;
    } else if (strcmp(text, "none") != 0) {
        good = strncmp(text, "rs:", 3) == 0;
        text += good ? 3 : 0;
        good = good && dt_number_scan(&text, 10, BLOCKS_MAX, &data) &&
               *text++ == '+' &&
               dt_number_scan(&text, 10, BLOCKS_MAX, &parity) && !*text &&
               data >= 1 && parity >= 1 && data + parity <= BLOCKS_MAX;
    }
    *k = (int)data;
    *m = (int)parity;
    return good;
}

dt_result_t dt_erasure_parse(const char *text, const char *source,
                             struct dt_erasure *r, struct dt_error *err)
{
    struct dt_erasure found = {0};
    if (strlen(text) >= sizeof(found.text) || !parse(text, &found.k, &found.m))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s=%.64s: expected none, partner, xor:N (N nodes "
                            "in a set, 2 to 255) or rs:K+M (M of each K + M "
                            "nodes may be lost, K + M up to 255), as rs:4+2",
                            source, text);
    strcpy(found.text, text);
    *r = found;
    return DT_SUCCESS;
}

/* ---- layout ---- */

dt_result_t dt_erasure_layout(const struct dt_erasure *r, int num_nodes,
                              int node, struct dt_erasure_layout *layout,
                              struct dt_error *err)
{
    int sets = num_nodes / (r->k + r->m);
    if (sets == 0)
        sets = 1;
    while (num_nodes / sets + (num_nodes % sets > 0) > BLOCKS_MAX)
        sets++; /* the code has no larger ones */
    int size = num_nodes / sets, larger = num_nodes % sets;
    if (size <= r->m)
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "redundancy %s needs at least %d nodes in a set, this "
            "job has %d nodes: take more, or a smaller scheme",
            r->text, r->m + 1, num_nodes);
    int inside = larger * (size + 1); /* nodes in the larger sets */
    if (node < inside) {
        size++;
        layout->first = node / size * size;
    } else {
        layout->first = inside + (node - inside) / size * size;
    }
    layout->size = size;
    layout->m = r->m;
    layout->k = size - r->m;
    return DT_SUCCESS;
}

int dt_erasure_block(const struct dt_erasure_layout *layout, int member,
                     int stripe)
{
    int after = (member - stripe + layout->size) % layout->size;
    return after < layout->m ? layout->k + after : after - layout->m;
}

int dt_erasure_member(const struct dt_erasure_layout *layout, int stripe,
                      int block)
{
    int after = block < layout->k ? block + layout->m : block - layout->k;
    return (stripe + after) % layout->size;
}

int dt_erasure_stripe(const struct dt_erasure_layout *layout, int member,
                      int data_block)
{
    return (member + 1 + data_block) % layout->size;
}

int dt_erasure_data_block(const struct dt_erasure_layout *layout, int member,
                          int stripe, int *parity)
{
    int block = dt_erasure_block(layout, member, stripe);
    if (block >= layout->k) {
        *parity = block - layout->k;
        return -1;
    }
    return (stripe - member - 1 + layout->size) % layout->size;
}

/* ---- code ---- */

/* The m rows that compute parity: a Cauchy matrix, each column divided by its
 * first element. So the first row is all ones, which is a plain XOR, and with
 * k = 1 a copy; every square part of the matrix can still be inverted. */
static void parity_rows(int k, int m, unsigned char *row)
{
    for (int p = 0; p < m; p++)
        for (int d = 0; d < k; d++)
            row[p * k + d] = gf_mul(gf_inv((unsigned char)((k + p) ^ d)),
                                    (unsigned char)(k ^ d));
}

/* out[n] = rows[n][k] * in[k], each of len bytes. */
static dt_result_t multiply(int k, int n, size_t len, unsigned char *rows,
                            const unsigned char *const *in,
                            unsigned char *const *out, struct dt_error *err)
{
    size_t room = 32 * (size_t)k * (size_t)n;
    unsigned char *tables = malloc(room);
    const unsigned char **from = malloc((size_t)k * sizeof(*from));
    unsigned char **to = malloc((size_t)n * sizeof(*to));
    dt_result_t rc = DT_SUCCESS;
    if (!tables || !from || !to) {
        rc = dt_no_memory(err);
        goto free_tables;
    }
    ec_init_tables(k, n, rows, tables);
    for (size_t at = 0; at < len; at += CALL_MAX) {
        size_t part = len - at < CALL_MAX ? len - at : CALL_MAX;
        for (int i = 0; i < k; i++)
            from[i] = in[i] + at;
        for (int i = 0; i < n; i++)
            to[i] = out[i] + at;
        ec_encode_data((int)part, k, n, tables, (unsigned char **)from, to);
    }
free_tables:
    free(to);
    free(from);
    free(tables);
    return rc;
}

static dt_result_t check(int k, int m, struct dt_error *err)
{
    if (k >= 1 && m >= 1 && k + m <= BLOCKS_MAX)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "there is no code of %d + %d blocks", k, m);
}

dt_result_t dt_erasure_encode(int k, int m, size_t len,
                              const unsigned char *const *data,
                              unsigned char *const *parity,
                              struct dt_error *err)
{
    dt_result_t rc = check(k, m, err);
    if (rc != DT_SUCCESS)
        return rc;
    unsigned char *rows = malloc((size_t)k * (size_t)m);
    if (!rows)
        return dt_no_memory(err);
    parity_rows(k, m, rows);
    rc = multiply(k, m, len, rows, data, parity, err);
    free(rows);
    return rc;
}

/* The code's row for the wanted block, times the inverse of the rows of the
 * blocks in have. room has 3 * 255^2 bytes. */
static bool recovery_row(int k, int m, const int *have, int wanted,
                         unsigned char *room, unsigned char *row)
{
    unsigned char *parity = room, *part = room + BLOCKS_MAX * BLOCKS_MAX;
    unsigned char *inverse = part + BLOCKS_MAX * BLOCKS_MAX;
    parity_rows(k, m, parity);
    for (int i = 0; i < k; i++)
        for (int d = 0; d < k; d++)
            part[i * k + d] =
                have[i] < k ? have[i] == d : parity[(have[i] - k) * k + d];
    if (gf_invert_matrix(part, inverse, k))
        return false;
    for (int d = 0; d < k; d++) {
        row[d] = wanted < k ? inverse[wanted * k + d] : 0;
        for (int j = 0; wanted >= k && j < k; j++)
            row[d] ^= gf_mul(parity[(wanted - k) * k + j], inverse[j * k + d]);
    }
    return true;
}

dt_result_t dt_erasure_row(int k, int m, const int *have, int wanted,
                           unsigned char *row, struct dt_error *err)
{
    dt_result_t rc = check(k, m, err);
    if (rc != DT_SUCCESS)
        return rc;
    unsigned char *room = malloc(3 * BLOCKS_MAX * BLOCKS_MAX);
    if (!room)
        return dt_no_memory(err);
    if (!recovery_row(k, m, have, wanted, room, row))
        rc = dt_error_set(err, DT_ERR_INVALID_ARG, "the code has no inverse");
    free(room);
    return rc;
}

void dt_erasure_add(unsigned char *sum, unsigned char factor,
                    const unsigned char *block, size_t len)
{
    unsigned char table[32];
    ec_init_tables(1, 1, &factor, table);
    for (size_t at = 0; at < len; at += CALL_MAX) {
        size_t part = len - at < CALL_MAX ? len - at : CALL_MAX;
        unsigned char *to = sum + at;
        ec_encode_data_update((int)part, 1, 1, 0, table,
                              (unsigned char *)block + at, &to);
    }
}
