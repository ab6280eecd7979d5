/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* symbolic.c - every algorithm on every kind of layout, proved on symbols: it
 * ends, in any order of events, and each contribution is in the result once.
 * DT_TEST_LONG=1 tries all of them, else a part is drawn, always the same. */
#include <stdlib.h>
#include <string.h>

#include "coll/algorithm/cut.h"
#include "base/names.h"
#include "symbol.h"
#include "../tap.h"
#include "tl/board.h"

/* Everything is small: a piece is 64 elements, and all that is derived from
 * the speed of a machine is so, too, so that a few hundred elements are cut in
 * all the ways that millions are. */
static const struct dt_tune tiny = {
    .node_latency = 1e-6,
    .node_byte = 1e-7,
    .fold_byte = 1e-7,
    .net_latency = 1e-6,
    .net_byte = 1e-7,
    .task = 1e-7,
};
#define PIECE 256 /* bytes */
#define RANKS 64

static const size_t counts[] = {1, 0, 37, 64, 500, 1777, 6000};
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

/* Nodes and the ranks of each. */
enum shape { EVEN, CYCLIC, UNEVEN, LONELY, SHAPES };

struct tally {
    size_t run, failed, skipped, operations;
};

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void place(size_t *node_of, size_t size, size_t nodes, enum shape shape)
{
    size_t per = (size + nodes - 1) / nodes;
    for (size_t r = 0; r < size; r++) {
        node_of[r] = r / per;
        if (shape == CYCLIC)
            node_of[r] = r % nodes;
        else if (shape == UNEVEN)
            node_of[r] = r * r / (size * 2) % nodes;
        else if (shape == LONELY)
            node_of[r] = r < nodes ? nodes - r : 0;
    }
}

static bool one(const struct symbol_case *c, struct tally *tally)
{
    struct symbol_report report;
    bool fine = symbol_run(c, &report);
    tally->skipped += !report.serves;
    tally->run += report.serves;
    tally->failed += !fine;
    if (report.operations > tally->operations)
        tally->operations = report.operations;
    if (!fine && tally->failed <= 3) {
        diag("%s: %zu ranks, count %zu, root %zu, place %d, order %d, seed "
             "%llu: %s",
             report.name, c->size, c->shape.count, c->shape.root, (int)c->place,
             (int)c->order, (unsigned long long)c->seed, report.why);
        char text[RANKS * 4 + 1] = "";
        for (size_t r = 0; r < c->size; r++)
            snprintf(text + strlen(text), 5, "%zu ", c->node_of[r] % 100);
        diag("nodes %s", text);
    }
    return fine;
}

static const size_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8, 9,
                               12, 16, 17, 24, 31, 32, 48, 64};
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

/* One case, drawn by state. */
static void draw_case(struct symbol_case *c, size_t *node_of, uint64_t *state)
{
    c->size =
        draw(state) % 2 ? sizes[draw(state) % NSIZES] : draw(state) % RANKS + 1;
    size_t nodes = draw(state) % c->size + 1;
    if (draw(state) % 2)
        for (nodes = 1; nodes < c->size && draw(state) % 4; nodes *= 2)
            ;
    place(node_of, c->size, nodes < c->size ? nodes : c->size,
          draw(state) % SHAPES);
    c->node_of = node_of;
    c->shape.count = counts[draw(state) % NCOUNTS];
    if (c->shape.coll == DT_COLL_ALLGATHER ||
        c->shape.coll == DT_COLL_REDUCE_SCATTER ||
        c->shape.coll == DT_COLL_ALLTOALL || c->shape.coll == DT_COLL_GATHER ||
        c->shape.coll == DT_COLL_SCATTER)
        c->shape.count = counts[draw(state) % 5] / (1 + c->size / 16);
    c->shape.root = draw(state) % c->size;
    c->shape.op = draw(state) % 3 ? DT_OP_SUM : DT_OP_AVG;
    c->place = draw(state) % SYMBOL_PLACES;
    c->order = draw(state) % SYMBOL_ORDERS;
    c->seed = draw(state);
}

/* Blocks of their own lengths, one for each rank; those of allgather are not
 * in order and have gaps. */
static void make_uneven(struct symbol_case *c, size_t *some, uint64_t *state)
{
    size_t *displs = some + RANKS, next = 0;
    if (c->shape.coll == DT_COLL_ALLTOALL) {
        for (size_t i = 0; i < c->size * c->size; i++)
            some[i] = draw(state) % 3 ? draw(state) % 50 : 0;
        c->matrix = some;
        return;
    }
    if (c->shape.coll != DT_COLL_ALLGATHER &&
        c->shape.coll != DT_COLL_REDUCE_SCATTER)
        return;
    for (size_t r = 0; r < c->size; r++)
        some[r] = draw(state) % 3 ? draw(state) % 200 : 0;
    for (size_t r = c->size; r-- > 0; next += some[r] + r % 2)
        displs[r] = next;
    if (c->shape.coll == DT_COLL_REDUCE_SCATTER) {
        c->shape.recvcounts = some;
    } else {
        c->shape.sendcounts = some;
        c->shape.recvdispls = displs;
    }
}

static void try(enum dt_coll coll, size_t cases)
{
    const struct dt_algorithm *table = dt_algorithms(coll);
    for (; table->name; table++) {
        struct tally tally = {0, 0, 0, 0};
        uint64_t state = 1;
        for (size_t i = 0; i < cases; i++) {
            size_t node_of[RANKS];
            struct symbol_case c = {.piece_max = PIECE,
                                    .shape = {.coll = coll,
                                              .dtype = DT_DTYPE_F32,
                                              .prescale = 1,
                                              .postscale = 1},
                                    .tune = tiny,
                                    .forced = table->name};
            draw_case(&c, node_of, &state);
            if (coll == DT_COLL_ALLREDUCE && draw(&state) % 4 == 0) {
                c.shape.prescale = 0.5;
                c.shape.postscale = 4;
            }
            size_t some[RANKS * RANKS];
            if (draw(&state) % 2)
                make_uneven(&c, some, &state);
            one(&c, &tally);
        }
        ok(tally.run && !tally.failed,
           "%s, %s: %zu cases (%zu not served), at most %zu operations",
           dt_name_coll(coll), table->name, tally.run, tally.skipped,
           tally.operations);
    }
}

/* Long allreduces send no more than they must: 2 (n - 1) / n of the vector per
 * node. */
static void wire(void)
{
    static const char *const names[] = {"ring", "halving"};
    for (size_t i = 0; i < 2; i++)
        for (size_t nodes = 2; nodes <= 8; nodes += 1 + i * (nodes - 1))
            for (size_t per = 1; per <= 4; per *= 2) {
                size_t node_of[RANKS];
                struct symbol_case c = {.size = nodes * per,
                                        .node_of = node_of,
                                        .piece_max = 4096,
                                        .shape = {.dtype = DT_DTYPE_F32,
                                                  .count = 60000,
                                                  .prescale = 1,
                                                  .postscale = 1},
                                        .tune = tiny,
                                        .forced = names[i]};
                struct symbol_report report;
                place(node_of, c.size, nodes, EVEN);
                bool fine = symbol_run(&c, &report);
                double least = 2.0 * (double)(nodes - 1) / (double)nodes *
                               (double)c.shape.count * 4;
                ok(fine && (double)report.wire <= 1.01 * least,
                   "%s on %zu x %zu: %.4f of the fewest bytes%s", names[i],
                   nodes, per, (double)report.wire / least, report.why);
            }
}

/* The same bits in every run, whatever happens first. */
static void order(void)
{
    size_t node_of[RANKS], different = 0;
    uint64_t hash = 0;
    place(node_of, 12, 5, UNEVEN);
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct symbol_case c = {.size = 12,
                                .node_of = node_of,
                                .piece_max = PIECE,
                                .shape = {.dtype = DT_DTYPE_F32,
                                          .count = 1777,
                                          .prescale = 1,
                                          .postscale = 1},
                                .place = seed % SYMBOL_PLACES,
                                .order = seed % SYMBOL_ORDERS,
                                .tune = tiny,
                                .seed = seed};
        struct symbol_report report;
        bool fine = symbol_run(&c, &report);
        if (!seed)
            hash = report.hash;
        different += !fine || report.hash != hash;
    }
    ok(!different, "20 runs of one shape give the same bits");
}

/* What a schedule takes of 32 GiB, on nodes x per ranks: the most operations of
 * any collective. */
static size_t long_one(size_t nodes, size_t per)
{
    size_t node_of[RANKS], most = 0;
    struct dt_error err;
    struct dt_layout layout;
    place(node_of, nodes * per, nodes, EVEN);
    if (dt_layout_init(&layout, 0, nodes * per, node_of, &err) != DT_SUCCESS)
        return SIZE_MAX;
    layout.piece_max = per > 1 ? dt_board_piece_max(per) : 0;
    for (enum dt_coll coll = 0; coll < DT_COLL_SEND; coll++) {
        struct dt_shape shape = {.coll = coll,
                                 .dtype = DT_DTYPE_F32,
                                 .count = (size_t)8 << 30,
                                 .prescale = 1,
                                 .postscale = 1};
        struct dt_sched sched;
        const struct dt_plan plan = {.sched = &sched,
                                     .layout = &layout,
                                     .shape = &shape,
                                     .tune = &dt_tune_default};
        if (coll >= DT_COLL_ALLGATHER) /* of all blocks */
            shape.count /= nodes * per;
        shape.count = dt_algorithm_segment(&plan);
        dt_sched_init(&sched, nodes * per);
        dt_algorithm_build(&plan);
        if (dt_sched_finish(&sched, &err) != DT_SUCCESS)
            most = SIZE_MAX;
        if (sched.noperations > most)
            most = sched.noperations;
        dt_sched_fini(&sched);
    }
    dt_layout_fini(&layout);
    return most;
}

static void long_ones(void)
{
    static const size_t shapes[][2] = {{1, 8}, {1, 64}, {2, 1},
                                       {4, 1}, {64, 1}, {2, 32},
                                       {4, 2}, {4, 4},  {8, 8}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        size_t operations = long_one(shapes[i][0], shapes[i][1]);
        ok(operations <= 100000,
           "32 GiB on %zu x %zu: %zu operations at a time", shapes[i][0],
           shapes[i][1], operations);
    }
}

int main(void)
{
    size_t cases = getenv("DT_TEST_LONG") ? 3000 : 200;
    for (int coll = DT_COLL_ALLREDUCE; coll <= DT_COLL_SCATTER; coll++)
        try((enum dt_coll)coll, cases);
    wire();
    order();
    long_ones();
    return tap_done();
}
