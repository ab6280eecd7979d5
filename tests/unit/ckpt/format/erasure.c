/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* erasure.c - schemes, layout and code: what is lost comes back. */
#include "ckpt/format/erasure.h"

#include <stdlib.h>
#include <string.h>

#include "../../tap.h"

#define PIECES 24
#define LEN    193

static unsigned char truth[PIECES][LEN];

static unsigned random_next(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}

static bool encode(int k, int m)
{
    const unsigned char *data[PIECES];
    unsigned char *parity[PIECES];
    for (int i = 0; i < k; i++) {
        for (int b = 0; b < LEN; b++)
            truth[i][b] = (unsigned char)random_next();
        data[i] = truth[i];
    }
    for (int i = 0; i < m; i++)
        parity[i] = truth[k + i];
    return dt_erasure_encode(k, m, LEN, data, parity, NULL) == DT_SUCCESS;
}

static bool comes_back(int k, int m, const int *lost, int n)
{
    int have[PIECES], found = 0, next = 0;
    for (int i = 0; i < k + m && found < k; i++) {
        if (next < n && lost[next] == i)
            next++;
        else
            have[found++] = i;
    }
    for (int i = 0; i < n; i++) {
        unsigned char row[PIECES], sum[LEN] = {0};
        if (dt_erasure_row(k, m, have, lost[i], row, NULL) != DT_SUCCESS)
            return false;
        for (int j = 0; j < k; j++)
            dt_erasure_add(sum, row[j], truth[have[j]], LEN);
        if (memcmp(sum, truth[lost[i]], LEN) != 0)
            return false;
    }
    return true;
}

/* Every way to lose up to m of k + m. */
static bool every_subset(int k, int m)
{
    for (unsigned set = 0; set < 1u << (k + m); set++) {
        int lost[PIECES], n = 0;
        for (int i = 0; i < k + m; i++)
            if (set & 1u << i)
                lost[n++] = i;
        if (n <= m && !comes_back(k, m, lost, n)) {
            diag("%d + %d, lost %#x", k, m, set);
            return false;
        }
    }
    return true;
}

static void test_code(void)
{
    bool all = true;
    for (int k = 1; k <= 8; k++)
        for (int m = 1; m <= 3; m++)
            all = all && encode(k, m) && every_subset(k, m);
    ok(all, "every loss of up to m pieces, k 1 to 8, m 1 to 3, comes back");
    for (int i = 0; i < 3000 && all; i++) {
        int k = (int)(random_next() % 20) + 1, m = (int)(random_next() % 4) + 1;
        int lost[PIECES], n = 0, left = (int)(random_next() % (unsigned)m) + 1;
        for (int p = 0; p < k + m; p++)
            if ((int)(random_next() % (unsigned)(k + m - p)) < left - n)
                lost[n++] = p;
        all = encode(k, m) && comes_back(k, m, lost, n);
    }
    ok(all, "random ones up to 20 + 4");
}

static void test_plain(void)
{
    encode(1, 2);
    ok(memcmp(truth[0], truth[1], LEN) == 0, "parity of one is a copy");
    encode(5, 3);
    bool sums = true;
    for (int b = 0; b < LEN; b++)
        sums = sums && (truth[0][b] ^ truth[1][b] ^ truth[2][b] ^ truth[3][b] ^
                        truth[4][b]) == truth[5][b];
    ok(sums, "the first piece of parity is the XOR of the data");
}

/* Not a byte beside them. */
static void test_lengths(void)
{
    unsigned char piece[300], sum[302], want[302];
    bool right = true;
    for (size_t len = 0; len <= 300 && right; len++)
        for (int by = 0; by < 256 && right; by += 51) {
            for (size_t i = 0; i < sizeof(sum); i++)
                want[i] = sum[i] = (unsigned char)random_next();
            for (size_t i = 0; i < len; i++)
                piece[i] = (unsigned char)random_next();
            /* by * piece + (by + 1) * piece is piece */
            dt_erasure_add(sum + 1, (unsigned char)by, piece, len);
            dt_erasure_add(sum + 1, (unsigned char)(by ^ 1), piece, len);
            for (size_t i = 0; i < len; i++)
                want[i + 1] ^= piece[i];
            right = memcmp(sum, want, sizeof(sum)) == 0;
        }
    ok(right, "any length is added, and nothing beside it");
}

static void test_refusal(void)
{
    unsigned char row[PIECES];
    const int have[] = {0, 1, 2, 3};
    struct dt_error err = {""};
    ok(dt_erasure_row(200, 56, have, 5, row, &err) == DT_ERR_INVALID_ARG &&
           dt_erasure_encode(0, 1, LEN, NULL, NULL, NULL) == DT_ERR_INVALID_ARG,
       "no such code: %s", err.text);
}

static void test_parse(void)
{
    static const struct {
        const char *text;
        int k, m;
    } good[] = {{"none", 0, 0},         {"partner", 1, 1},
                {"xor:2", 1, 1},        {"xor:4", 3, 1},
                {"xor:255", 254, 1},    {"rs:4+2", 4, 2},
                {"rs:1+1", 1, 1},       {"rs:8+3", 8, 3},
                {"rs:200+55", 200, 55}, {"rs:1+254", 1, 254}};
    static const char *const bad[] = {"",
                                      "xor",
                                      "xor:",
                                      "xor:1",
                                      "xor:256",
                                      "xor:4 ",
                                      "rs:4",
                                      "rs:4+",
                                      "rs:+2",
                                      "rs:0+1",
                                      "rs:1+0",
                                      "rs:201+55",
                                      "rs:-4+2",
                                      "rs:4+2x",
                                      "rs:4++2",
                                      "RS:4+2",
                                      "partner:2",
                                      "none ",
                                      "rs: 4+2",
                                      "xor:+4",
                                      "rs:4096+2",
                                      "xor:99999999999",
                                      "rs:00000000000000000000000000000004+2"};
    struct dt_erasure r;
    struct dt_error err = {""};
    bool all = true;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        all = all &&
              dt_erasure_parse(good[i].text, "-", &r, NULL) == DT_SUCCESS &&
              r.k == good[i].k && r.m == good[i].m &&
              strcmp(r.text, good[i].text) == 0;
    ok(all, "schemes are understood");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        all = all && dt_erasure_parse(bad[i], "--dt-ckpt-redundancy", &r,
                                      &err) == DT_ERR_INVALID_ARG;
    ok(all && strstr(err.text, "--dt-ckpt-redundancy=rs:0000"),
       "others are refused: %s", err.text);
}

/* Groups cover the nodes in order, none is smaller than asked for. */
static bool groups_fit(const struct dt_erasure *r, int nodes)
{
    struct dt_erasure_layout g = {0};
    int least = nodes < r->k + r->m ? nodes : r->k + r->m;
    for (int node = 0; node < nodes; node++) {
        int end = g.first + g.size;
        if (dt_erasure_layout(r, nodes, node, &g, NULL) != DT_SUCCESS ||
            node < g.first || node >= g.first + g.size ||
            (node == g.first && node != end) || g.m != r->m ||
            g.k != g.size - g.m || g.size < least || g.size > 255 ||
            g.first + g.size > nodes)
            return false;
    }
    return g.first + g.size == nodes;
}

static void test_groups(void)
{
    static const char *const scheme[] = {"partner", "xor:4", "rs:4+2",
                                         "rs:2+1"};
    struct dt_erasure r;
    struct dt_erasure_layout g = {-1, -1, -1, -1};
    struct dt_error err;
    bool all = true;
    for (size_t i = 0; i < 4; i++) {
        dt_erasure_parse(scheme[i], "-", &r, NULL);
        for (int n = r.m + 1; n < 40 && all; n++)
            all = groups_fit(&r, n);
    }
    ok(all, "nodes fall into groups of the size asked for, or larger");
    ok(dt_erasure_parse("xor:200", "-", &r, NULL) == DT_SUCCESS &&
           dt_erasure_layout(&r, 399, 398, &g, NULL) == DT_SUCCESS &&
           g.first == 200 && g.size == 199,
       "but no larger than the code allows");
    dt_erasure_parse("rs:4+2", "-", &r, NULL);
    ok(dt_erasure_layout(&r, 2, 0, &g, &err) == DT_ERR_INVALID_ARG,
       "too few nodes: %s", err.text);
}

/* In each stripe every piece is had by one member, each member has m pieces of
 * parity and each of its segments in one stripe. */
static bool layout_fits(const struct dt_erasure_layout *g)
{
    for (int member = 0; member < g->size; member++) {
        int kept = 0;
        for (int stripe = 0; stripe < g->size; stripe++) {
            int parity = -1;
            int seg = dt_erasure_data_block(g, member, stripe, &parity);
            int piece = dt_erasure_block(g, member, stripe);
            kept += seg < 0;
            if (dt_erasure_member(g, stripe, piece) != member)
                return false;
            if (seg < 0 ? piece != g->k + parity ||
                              member != (stripe + parity) % g->size
                        : seg >= g->k || piece >= g->k ||
                              dt_erasure_stripe(g, member, seg) != stripe)
                return false;
            for (int other = 0; other < member; other++)
                if (dt_erasure_block(g, other, stripe) == piece)
                    return false;
        }
        if (kept != g->m)
            return false;
    }
    return true;
}

static void test_layout(void)
{
    bool all = true;
    for (int k = 1; k <= 12; k++)
        for (int m = 1; m <= 4; m++)
            all = all && layout_fits(&(struct dt_erasure_layout){
                             .size = k + m, .k = k, .m = m});
    ok(all, "each member has one piece of each stripe, m of them parity");
}

int main(void)
{
    test_code();
    test_plain();
    test_lengths();
    test_refusal();
    test_parse();
    test_groups();
    test_layout();
    return tap_done();
}
