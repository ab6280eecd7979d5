/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nodes.c - checkpoints on the disks of the nodes: whatever nodes are
 * lost, what comes back is bit for bit what was saved, or is refused. */
#include "../support/disk-job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/job.h"
#include "../../tap.h"

/* The most nodes that a group has lost, beyond what it can bear: 0 is fine. */
static int beyond(const struct disk_job *job, unsigned lost)
{
    struct dt_erasure_layout g;
    int worst = 0;
    for (int n = 0; n < job->nodes; n++) {
        if (job->scheme.m == 0 && lost & 1u << n)
            worst = 1;
        if (job->scheme.m == 0)
            continue;
        dt_erasure_layout(&job->scheme, job->nodes, n, &g, NULL);
        int gone = __builtin_popcount(lost >> g.first & ((1u << g.size) - 1));
        if (gone - g.m > worst)
            worst = gone - g.m;
    }
    return worst;
}

static int expected(const struct disk_job *job, unsigned lost)
{
    if (lost == (1u << job->nodes) - 1)
        return DT_ERR_NOT_FOUND;
    return beyond(job, lost) ? DT_ERR_CORRUPT : DT_SUCCESS;
}

/* ---- every loss ---- */

static void test_matrix(const char *scheme, int nodes, int per_node)
{
    struct disk_job job;
    bool good = disk_job_save(&job, scheme, nodes, per_node,
                              41000 / (size_t)per_node, 99);
    int back = 0, refused = 0;
    struct dt_error said = {"nothing was refused"};
    for (unsigned lost = 0; lost < 1u << nodes && good; lost++) {
        disk_job_copy(&job, lost);
        int rc = disk_job_load(&job, job.size, nodes);
        good = rc == expected(&job, lost);
        if (!good)
            diag("lost %#x: %d %s", lost, rc, job.err[0].text);
        back += rc == DT_SUCCESS;
        refused += rc == DT_ERR_CORRUPT;
        if (rc == DT_ERR_CORRUPT)
            said = job.err[0];
    }
    ok(good, "%s, %d nodes of %d ranks: %d losses mended, %d refused", scheme,
       nodes, per_node, back, refused);
    diag("%s", said.text);
    disk_job_drop(&job);
}

static void test_every_loss(void)
{
    static const char *const scheme[] = {"partner", "xor:4", "rs:2+1", "rs:3+2",
                                         "rs:4+3"};
    static const int nodes[] = {2, 3, 5, 8};
    test_matrix("none", 3, 2);
    for (size_t s = 0; s < sizeof(scheme) / sizeof(*scheme); s++)
        for (size_t n = 0; n < sizeof(nodes) / sizeof(*nodes); n++) {
            struct dt_erasure r;
            dt_erasure_parse(scheme[s], "-", &r, NULL);
            if (r.m < nodes[n])
                test_matrix(scheme[s], nodes[n], nodes[n] == 8 ? 1 : 2);
        }
    test_matrix("rs:3+2", 8, 2);
}

/* Nodes with much, little, and nothing but a header. */
static void test_uneven(void)
{
    struct disk_job job;
    bool good = disk_job_save(&job, "rs:3+2", 5, 1, 0, 70000);
    for (unsigned lost = 0; lost < 1u << 5 && good; lost++) {
        disk_job_copy(&job, lost);
        int rc = disk_job_load(&job, 5, 5);
        good = rc == expected(&job, lost) ||
               (rc == DT_SUCCESS && beyond(&job, lost) > 0);
    }
    ok(good, "nodes of different size: bit for bit, or refused");
    disk_job_drop(&job);
    good = disk_job_save(&job, "rs:2+1", 3, 3, 3000000, 999);
    disk_job_copy(&job, 2);
    ok(good && disk_job_load(&job, 9, 3) == DT_SUCCESS, "more than one block");
    disk_job_drop(&job);
}

static int load_on(struct disk_job *job, unsigned lost, int size, int nodes,
                   const char *disks)
{
    disk_job_copy(job, lost);
    for (int n = 0; n < nodes; n++)
        job->disk[n] = disks[n] - '0';
    return disk_job_load(job, size, nodes);
}

static void test_other_jobs(void)
{
    struct disk_job job;
    ok(disk_job_save(&job, "rs:4+2", 6, 2, 30000, 50),
       "12 ranks on 6 nodes save");
    ok(load_on(&job, 0, 12, 6, "531420") == DT_SUCCESS, "in another order");
    ok(load_on(&job, 0, 6, 6, "012345") == DT_SUCCESS, "half of the ranks");
    ok(load_on(&job, 0x12, 16, 8, "01234567") == DT_SUCCESS,
       "more nodes, two of the old ones lost");
    ok(load_on(&job, 0, 8, 4, "5230") == DT_SUCCESS, "two nodes fewer");
    ok(load_on(&job, 0, 6, 3, "523") == DT_ERR_CORRUPT, "three fewer: %s",
       job.err[0].text);
    disk_job_drop(&job);
    ok(disk_job_save(&job, "partner", 2, 2, 30000, 50) &&
           load_on(&job, 0, 1, 1, "1") == DT_SUCCESS,
       "one rank on the node of a partner");
    disk_job_drop(&job);
}

/* The lost file is made where it is wanted, beside a manifest, and there it is
 * when it is wanted again. */
static void test_place(void)
{
    static const char name[] = "rank-00001-of-00005.safetensors";
    struct disk_job job;
    char dir[300], path[700];
    bool good = disk_job_save(&job, "rs:3+2", 5, 1, 300000, 999);
    disk_job_copy(&job, 1u << 1 | 1u << 3);
    ok(good && disk_job_load(&job, 5, 5) == DT_SUCCESS, "two nodes are lost");
    disk_job_path(dir, &job, job.set, 1);
    snprintf(path, sizeof(path), "%s/%s", dir, ckpt_list(dir));
    path[strlen(path) - 1] = '\0'; /* one name, and a space after it */
    ok(strcmp(ckpt_list(path),
              "manifest.json rank-00001-of-00005.safetensors ") == 0,
       "the first one's node has its file and a manifest: %s", ckpt_list(path));
    for (int n = 0; n < 5; n += 2) {
        disk_job_path(dir, &job, job.set, n);
        snprintf(path, sizeof(path), "%s/step-%012d/%s", dir, STEP, name);
        good = good && access(path, F_OK) != 0;
    }
    ok(good, "no other node has it");
    disk_job_path(dir, &job, job.set, 0);
    ckpt_remove_tree(strdup(dir));
    disk_job_path(dir, &job, job.set, 2);
    ckpt_remove_tree(strdup(dir));
    /* parity of one node is left, and four nodes' files are needed of it and
     * of the three others */
    ok(disk_job_load(&job, 5, 5) == DT_ERR_CORRUPT, "two more are too many: %s",
       job.err[0].text);
    disk_job_drop(&job);
}

/* More files than are made at a time, by as many ranks and by few. */
static void test_many(void)
{
    struct disk_job job;
    bool good = disk_job_save(&job, "rs:2+1", 3, 10, 9000, 4999);
    disk_job_copy(&job, 1u << 1);
    ok(good && disk_job_load(&job, 30, 3) == DT_SUCCESS,
       "ten files of a node are lost");
    disk_job_copy(&job, 1u << 1);
    ok(good && disk_job_load(&job, 3, 3) == DT_SUCCESS, "one rank has ten");
    ok(good && load_on(&job, 1u << 1, 4, 2, "20") == DT_SUCCESS,
       "a node fewer makes what the third one had");
    disk_job_drop(&job);
    good = disk_job_save(&job, "rs:3+2", 5, 4, 1000, 9);
    ok(good && load_on(&job, 1u << 1 | 1u << 4, 7, 5, "01234") == DT_SUCCESS,
       "four ranks per node, of two lost ones, for seven ranks");
    disk_job_drop(&job);
    good = disk_job_save(&job, "xor:4", 4, 2, 700001, 77777);
    ok(good && load_on(&job, 1u << 2, 8, 4, "3210") == DT_SUCCESS,
       "chains with two of one node, on other nodes");
    disk_job_drop(&job);
}

static void test_again(void)
{
    struct disk_job job;
    char dir[300];
    ok(disk_job_save(&job, "rs:3+2", 5, 2, 30000, 0),
       "10 ranks on 5 nodes save");
    disk_job_copy(&job, 1u << 1);
    ok(disk_job_load(&job, 10, 5) == DT_SUCCESS &&
           disk_job_load(&job, 10, 5) == DT_SUCCESS,
       "a node is lost, its files are rebuilt, and there are");
    disk_job_path(dir, &job, job.set, 3);
    ckpt_remove_tree(strdup(dir));
    ok(disk_job_load(&job, 10, 5) == DT_SUCCESS,
       "another is lost, and its directory not even made");
    disk_job_path(dir, &job, job.set, 0);
    ckpt_remove_tree(strdup(dir));
    int rc = disk_job_load(&job, 10, 5);
    ok(rc == DT_SUCCESS || rc == DT_ERR_CORRUPT, "a third: %s",
       rc ? job.err[0].text : "the rebuilt files help");
    disk_job_drop(&job);
}

/* ---- lost again and again ---- */

static bool lose(const struct disk_job *job, int disk)
{
    char dir[300];
    disk_job_path(dir, job, job->set, disk);
    ckpt_remove_tree(strdup(dir));
    return mkdir(dir, 0777) == 0;
}

static bool is_whole(struct disk_job *job, int nodes)
{
    job->whole = true;
    bool good = disk_job_load(job, job->size, nodes) == DT_SUCCESS;
    for (int r = 0; r < job->size && good; r++)
        good = job->restored[r] == DT_SUCCESS;
    if (!good)
        diag("%s", job->err[0].text);
    return good;
}

/* Is this node's parity what the save wrote, bit for bit? */
static bool has_parity(const struct disk_job *job, int disk, int node)
{
    char name[64], path[700], saved[300], now[300];
    static char want[1 << 20], got[sizeof(want)];
    disk_job_path(saved, job, "saved", node);
    disk_job_path(now, job, job->set, disk);
    dt_parity_name(name, job->nodes, node);
    snprintf(path, sizeof(path), "%s/step-%012d/%s", saved, STEP, name);
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(want, 1, sizeof(want), file) : 0;
    if (file)
        fclose(file);
    snprintf(path, sizeof(path), "%s/%s", now, ckpt_list(now));
    *strchrnul(path, ' ') = '\0'; /* one directory, hidden or not */
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", name);
    file = fopen(path, "r");
    size_t m = file ? fread(got, 1, sizeof(got), file) : 0;
    if (file)
        fclose(file);
    return n > 0 && n == m && memcmp(want, got, n) == 0;
}

/* Two at a time, all of them in turn, and none is ever too many. */
static void test_turns(void)
{
    struct disk_job job;
    bool good = disk_job_save(&job, "rs:4+2", 6, 2, 30000, 999);
    disk_job_copy(&job, 0);
    for (int turn = 0; turn < 6 && good; turn++) {
        int a = turn % 6, b = (turn * 2 + 1) % 6;
        good = lose(&job, a) && lose(&job, b) && is_whole(&job, 6) &&
               has_parity(&job, a, a) && has_parity(&job, b, b);
        if (!good)
            diag("turn %d: nodes %d and %d", turn, a, b);
    }
    ok(good, "rs:4+2 loses two nodes, and two others, and so on: a load writes "
             "the parity that was lost, too");
    disk_job_drop(&job);
}

/* A new node is the last one in the job, whichever was lost. */
static void test_replaced(void)
{
    struct disk_job job;
    bool good = disk_job_save(&job, "xor:4", 4, 2, 30000, 999);
    disk_job_copy(&job, 0);
    static const int first[] = {0, 2, 3, 4}, second[] = {2, 3, 4, 5};
    good = good && lose(&job, 1) && lose(&job, 4);
    memcpy(job.disk, first, sizeof(first));
    good = good && is_whole(&job, 4) && has_parity(&job, 4, 1);
    ok(good, "the node in place of a lost one gets its files and its parity");
    good = good && lose(&job, 0) && lose(&job, 5);
    memcpy(job.disk, second, sizeof(second));
    ok(good && is_whole(&job, 4) && has_parity(&job, 5, 0),
       "so that another one may be lost");
    disk_job_drop(&job);
}

/* Nothing but parity, and only in one of two sets. */
static void test_parity_only(void)
{
    struct disk_job job;
    char dir[300], path[700];
    struct stat before, after;
    bool good = disk_job_save(&job, "xor:3", 6, 1, 30000, 999);
    disk_job_copy(&job, 0);
    disk_job_path(dir, &job, job.set, 5);
    snprintf(path, sizeof(path), "%s/step-%012d/parity-00005-of-00006.bin", dir,
             STEP);
    good = good && stat(path, &before) == 0;
    disk_job_path(dir, &job, job.set, 1);
    snprintf(path, sizeof(path), "%s/step-%012d/parity-00001-of-00006.bin", dir,
             STEP);
    ok(good && unlink(path) == 0 && is_whole(&job, 6) && has_parity(&job, 1, 1),
       "parity alone is written again");
    disk_job_path(dir, &job, job.set, 5);
    snprintf(path, sizeof(path), "%s/step-%012d/parity-00005-of-00006.bin", dir,
             STEP);
    ok(good && stat(path, &after) == 0 && before.st_ino == after.st_ino,
       "and what is there stays");
    disk_job_drop(&job);
}

static void test_too_few(void)
{
    struct disk_job job;
    bool good = disk_job_save(&job, "partner", 2, 1, 30000, 0);
    disk_job_copy(&job, 0);
    job.whole = true;
    ok(good && disk_job_load(&job, 2, 1) == DT_SUCCESS &&
           job.restored[0] == DT_ERR_UNSUPPORTED,
       "one node has the files of two, and says so: %s", job.err[0].text);
    disk_job_drop(&job);
}

int main(void)
{
    ckpt_temp_in_memory(); /* many small files */
    test_every_loss();
    test_uneven();
    test_other_jobs();
    test_place();
    test_many();
    test_again();
    test_turns();
    test_replaced();
    test_parity_only();
    test_too_few();
    return tap_done();
}
