/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* parity.c - parity that is computed in the background, from the memory of
 * the nodes and while the data is written: after the loss of any node, what is
 * loaded is bit for bit what was saved. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/job.h"
#include "ckpt/save/memory.h"
#include "../../tap.h"

#define SIZE   6
#define NODES  3
#define RUN_ID "ckpt-parity"

static char base[64], dir[NODES][80], flush[80];

static struct {
    size_t bytes; /* of each rank's tensor that changes */
    int saves;
    dt_result_t rc[SIZE];
    bool right[SIZE];
    char text[SIZE][256];
} run;

/* One tensor changes with each save, the other, twice as large, does not. */
struct model {
    unsigned char *moving, *frozen;
};

static unsigned char value(int version, size_t i)
{
    return (unsigned char)(i * 7 + i / 4096 * 13 + (size_t)version * 31 +
                           (size_t)dt_rank() * 101);
}

static void fill(unsigned char *tensor, size_t bytes, int version)
{
    for (size_t i = 0; i < bytes; i++)
        tensor[i] = value(version, i);
}

static bool is_filled(const unsigned char *tensor, size_t bytes, int version)
{
    for (size_t i = 0; i < bytes; i++)
        if (tensor[i] != value(version, i))
            return false;
    return true;
}

static dt_result_t open_it(dt_ckpt_t *ckpt, struct model *m)
{
    int64_t shape = (int64_t)run.bytes, twice = 2 * shape;
    m->moving = calloc(3, run.bytes);
    m->frozen = m->moving + run.bytes;
    dt_result_t rc = dt_ckpt_open(dir[dt_rank() * NODES / SIZE], 1, ckpt);
    if (rc == DT_SUCCESS)
        rc = dt_ckpt_add_tensor(*ckpt, "moving", m->moving, DT_DTYPE_U8, 1,
                                &shape, 0);
    if (rc == DT_SUCCESS)
        rc = dt_ckpt_add_tensor(*ckpt, "frozen", m->frozen, DT_DTYPE_U8, 1,
                                &twice, 0);
    return rc;
}

static void end(dt_ckpt_t ckpt, struct model *m, dt_result_t rc)
{
    int rank = dt_rank();
    run.rc[rank] = rc;
    if (rc != DT_SUCCESS)
        snprintf(run.text[rank], sizeof(run.text[rank]), "%s", dt_last_error());
    dt_ckpt_close(ckpt);
    free(m->moving);
}

static void save_rank(void *arg)
{
    struct model m;
    dt_ckpt_t ckpt = NULL;
    (void)arg;
    dt_result_t rc = open_it(&ckpt, &m);
    fill(m.frozen, 2 * run.bytes, 0);
    for (int v = 1; v <= run.saves && rc == DT_SUCCESS; v++) {
        fill(m.moving, run.bytes, v);
        rc = dt_ckpt_save_async(ckpt, v);
        if (rc == DT_SUCCESS)
            rc = dt_ckpt_wait(ckpt);
    }
    end(ckpt, &m, rc);
}

static void load_rank(void *arg)
{
    struct model m;
    dt_ckpt_t ckpt = NULL;
    int64_t step = 0;
    (void)arg;
    dt_result_t rc = open_it(&ckpt, &m);
    if (rc == DT_SUCCESS)
        rc = dt_ckpt_load(ckpt, &step);
    run.right[dt_rank()] = rc == DT_SUCCESS && step == run.saves &&
                           is_filled(m.moving, run.bytes, run.saves) &&
                           is_filled(m.frozen, 2 * run.bytes, 0);
    end(ckpt, &m, rc);
}

static bool all_fine(const char *what)
{
    for (int r = 0; r < SIZE; r++)
        if (run.rc[r] != DT_SUCCESS) {
            diag("%s, rank %d: %s", what, r, run.text[r]);
            return false;
        }
    return true;
}

/* Nothing is left but what is on the disks of the nodes. */
static void forget_the_rest(void)
{
    ckpt_remove_tree(strdup(flush));
    mkdir(flush, 0777);
    for (int n = 0; n < NODES; n++) {
        char id[64];
        snprintf(id, sizeof(id), RUN_ID "-node%d", n);
        char *path = dt_memory_path(id, dir[n]);
        if (path)
            dt_memory_remove(path);
        free(path);
    }
}

static bool survives(int lost)
{
    mkdir(base, 0777);
    mkdir(flush, 0777);
    for (int n = 0; n < NODES; n++)
        mkdir(dir[n], 0777);
    fake_world_run_nodes(SIZE, NODES, save_rank, NULL);
    bool good = all_fine("save");
    forget_the_rest();
    ckpt_remove_tree(strdup(dir[lost]));
    mkdir(dir[lost], 0777);
    if (good)
        fake_world_run_nodes(SIZE, NODES, load_rank, NULL);
    good = good && all_fine("load");
    for (int r = 0; r < SIZE; r++)
        good = good && run.right[r];
    forget_the_rest();
    ckpt_remove_tree(strdup(base));
    return good;
}

static void test_losses(const char *what, size_t bytes, int saves)
{
    bool good = true;
    run.bytes = bytes;
    run.saves = saves;
    for (int n = 0; n < NODES && good; n++)
        good = survives(n);
    ok(good, "%s: whichever node is lost, it is made good", what);
}

int main(void)
{
    char *temp = ckpt_temp_dir();
    snprintf(base, sizeof(base), "%s", temp);
    snprintf(flush, sizeof(flush), "%s/flush", base);
    for (int n = 0; n < NODES; n++)
        snprintf(dir[n], sizeof(dir[n]), "%s/node%d", base, n);
    free(temp);
    fake_world_run_id(RUN_ID);
    setenv("DT_CKPT_FLUSH", flush, 1);
    setenv("DT_CKPT_REDUNDANCY", "rs:2+1", 1);
    test_losses("small files", 5000, 1);
    test_losses("half of it linked from the one before", 5000, 2);
    test_losses("large files, under way to the disk", (size_t)6 << 20, 1);
    test_losses("large files, half linked", (size_t)6 << 20, 2);
    return tap_done();
}
