/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nodes-damage.c - checkpoints on the disks of the nodes, with damaged
 * files, cut short, and with ranks that are lost meanwhile. */
#include "../support/disk-job.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "../support/job.h"
#include "ckpt/format/format.h"
#include "../../tap.h"

/* Its path, with a copy of its own that may be changed. */
static const char *own_file(const struct disk_job *job, int disk,
                            const char *name)
{
    static char path[700];
    char dir[300], copy[710], command[1600];
    disk_job_path(dir, job, job->set, disk);
    snprintf(path, sizeof(path), "%s/step-%012d/%s", dir, STEP, name);
    snprintf(copy, sizeof(copy), "%s.copy", path);
    int from = open(path, O_RDONLY), to = open(copy, O_WRONLY | O_CREAT, 0666);
    ssize_t n;
    while ((n = read(from, command, sizeof(command))) > 0)
        if (dt_file_write(to, command, (size_t)n))
            abort();
    close(from);
    close(to);
    if (rename(copy, path))
        abort();
    return path;
}

static void flip(const char *path, long at)
{
    unsigned char c;
    int fd = open(path, O_RDWR);
    if (at < 0)
        at += (long)lseek(fd, 0, SEEK_END);
    if (pread(fd, &c, 1, at) != 1)
        abort();
    c ^= 4;
    if (pwrite(fd, &c, 1, at) != 1)
        abort();
    close(fd);
}

#define RANK(r) "rank-0000" #r "-of-00005.safetensors"
#define PARITY  "parity-00001-of-00005.bin"

static int load_checked(struct disk_job *job)
{
    job->check = true;
    int rc = disk_job_load(job, 5, 5);
    job->check = false;
    return rc;
}

static void test_damaged_data(struct disk_job *job)
{
    disk_job_copy(job, 0);
    flip(own_file(job, 1, RANK(1)), 20000);
    ok(load_checked(job) == DT_SUCCESS,
       "a flipped bit is mended when asked for");
    disk_job_copy(job, 1);
    flip(own_file(job, 1, RANK(1)), 20000);
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS,
       "and found when a lost node needs it");
    disk_job_copy(job, 1);
    flip(own_file(job, 1, RANK(1)), 3);
    flip(own_file(job, 4, RANK(4)), -1);
    ok(disk_job_load(job, 5, 5) == DT_ERR_CORRUPT, "too many are refused: %s",
       job->err[0].text);
    disk_job_copy(job, 0);
    if (truncate(own_file(job, 2, RANK(2)), 41000))
        abort();
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS, "one that is short");
    disk_job_copy(job, 0);
    if (truncate(own_file(job, 2, RANK(2)), 100) ||
        unlink(own_file(job, 3, RANK(3))))
        abort();
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS,
       "one that is shorter still, and one that is missing");
    disk_job_copy(job, 0);
    const char *path = own_file(job, 2, RANK(2));
    if (unlink(path) || symlink("/etc/passwd", path))
        abort();
    path = own_file(job, 3, ".rebuild-" RANK(3));
    if (unlink(path) || symlink("/tmp/planted", path))
        abort();
    if (unlink(own_file(job, 3, RANK(3))))
        abort();
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS && access("/tmp/planted", F_OK),
       "a link is not followed");
}

/* Parity that is written after a load is of the right files, or is not there.
 */
static void test_parity_of_damaged(struct disk_job *job)
{
    char parity[700];
    job->whole = true;
    disk_job_copy(job, 0);
    strcpy(parity, own_file(job, 1, PARITY));
    flip(own_file(job, 3, RANK(3)), -1);
    unlink(parity);
    disk_job_load(job, 5, 5);
    ok(job->restored[0] == DT_ERR_CORRUPT && job->restored[4] == DT_ERR_CORRUPT,
       "no parity of damaged files: %s", job->err[0].text);
    disk_job_copy(job, 0);
    strcpy(parity, own_file(job, 1, PARITY));
    own_file(job, 3, RANK(4)); /* empty, and of another node */
    unlink(parity);
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS &&
           job->restored[0] == DT_ERR_UNSUPPORTED,
       "nor of those of two nodes: %s", job->err[0].text);
    disk_job_copy(job, 0);
    strcpy(parity, own_file(job, 1, PARITY));
    flip(parity, 3);
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS &&
           job->restored[0] == DT_SUCCESS && job->restored[1] == DT_SUCCESS,
       "damaged parity is written again");
    disk_job_copy(job, 0);
    job->whole = false;
}

/* Two nodes are lost, so that every piece of parity is needed. */
static bool refuses(struct disk_job *job, long at, int grow)
{
    disk_job_copy(job, 1u << 0 | 1u << 2);
    const char *path = own_file(job, 1, PARITY);
    struct stat st;
    if (stat(path, &st))
        abort();
    if (grow && truncate(path, st.st_size + grow))
        abort();
    if (!grow)
        flip(path, at);
    int rc = disk_job_load(job, 5, 5);
    if (rc != DT_ERR_CORRUPT)
        diag("byte %ld, %d more: %d", at, grow, rc);
    return rc == DT_ERR_CORRUPT;
}

static void test_damaged_parity(struct disk_job *job)
{
    bool good = true;
    for (long at = 0; at < 72 && good; at += 3)
        good = refuses(job, at, 0);
    ok(good, "parity whose header is damaged is not used: %s",
       job->err[0].text);
    ok(refuses(job, 100, 0) && refuses(job, DT_PARITY_HEADER, 0) &&
           refuses(job, DT_PARITY_HEADER + 9000, 0) && refuses(job, -1, 0) &&
           refuses(job, -9, 0),
       "nor if a piece or a sum is");
    ok(refuses(job, 0, 1) && refuses(job, 0, -1) && refuses(job, 0, -12000),
       "nor if it is longer or shorter");
    disk_job_copy(job, 1);
    flip(own_file(job, 1, PARITY), DT_PARITY_HEADER);
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS, "the other pieces do");
}

static void test_damaged_manifest(struct disk_job *job)
{
    disk_job_copy(job, 1);
    flip(own_file(job, 1, DT_MANIFEST_NAME), 200);
    flip(own_file(job, 2, DT_MANIFEST_NAME), 300);
    ok(disk_job_load(job, 5, 5) == DT_SUCCESS && job->known[0] == 3,
       "another node has the manifest");
    disk_job_copy(job, 0);
    for (int n = 0; n < 5; n++)
        flip(own_file(job, n, DT_MANIFEST_NAME), 200);
    ok(disk_job_load(job, 5, 5) == DT_ERR_CORRUPT && job->known[0] == 1,
       "no node has the manifest: %s", job->err[0].text);
}

static void test_damage(void)
{
    struct disk_job job;
    if (!ok(disk_job_save(&job, "rs:3+2", 5, 1, 41000, 99), "5 nodes save"))
        return;
    test_damaged_data(&job);
    test_parity_of_damaged(&job);
    test_damaged_parity(&job);
    test_damaged_manifest(&job);
    disk_job_drop(&job);
}

/* A tensor with two blocks. */
static void test_second_block(void)
{
    struct disk_job job;
    bool good = disk_job_save(&job, "partner", 2, 1, 5000000, 0);
    disk_job_copy(&job, 0);
    flip(own_file(&job, 1, "rank-00001-of-00002.safetensors"), 4500000);
    job.check = true;
    ok(good && disk_job_load(&job, 2, 2) == DT_SUCCESS,
       "a flipped bit in the second block is found and mended");
    disk_job_drop(&job);
}

/* ---- a save that was cut short ---- */

static void test_cut_short(void)
{
    struct disk_job job;
    disk_job_save(&job, "rs:2+1", 4, 2, 30000, 9);
    job.partial = 1;
    disk_job_save_again(&job, disk_job_save_rank);
    disk_job_copy(&job, 0);
    ok(disk_job_load(&job, 8, 4) == DT_SUCCESS && job.known[0] == 1,
       "one manifest is enough");
    disk_job_copy(&job, 4);
    ok(disk_job_load(&job, 8, 4) == DT_SUCCESS, "also if a node is lost");
    job.partial = 0;
    disk_job_save_again(&job, disk_job_save_rank);
    disk_job_copy(&job, 0);
    ok(disk_job_load(&job, 8, 4) == DT_ERR_NOT_FOUND, "but one it takes");
    job.fails = 5;
    disk_job_save_again(&job, disk_job_save_rank);
    bool all = true;
    for (int r = 0; r < job.size; r++)
        all = all && job.rc[r] == DT_ERR_NO_SPACE &&
              strcmp(job.err[r].text, "rank 5 is full") == 0;
    ok(all, "an error on one rank is returned on all ranks");
    disk_job_drop(&job);
    ok(!disk_job_save(&job, "rs:4+3", 3, 1, 30000, 9) &&
           job.rc[2] == DT_ERR_INVALID_ARG,
       "too few nodes: %s", job.err[2].text);
    disk_job_drop(&job);
}

/* Rank 1's n-th collective returns an error, and the rank gives up. */
static int deaf_call;

static void deaf_save(void *arg)
{
    if (dt_rank() == 1)
        fake_world_deaf_at(deaf_call);
    disk_job_save_rank(arg);
}

static void deaf_load(void *arg)
{
    if (dt_rank() == 1)
        fake_world_deaf_at(deaf_call);
    disk_job_load_rank(arg);
}

static void test_deaf(void)
{
    struct disk_job job;
    bool told = true, right = true;
    int calls = 0;
    disk_job_save(&job, "rs:2+1", 3, 1, 30000, 9);
    do {
        disk_job_copy(&job, 4);
        fake_world_run_nodes(3, 3, deaf_load, &job);
        calls += job.rc[1] == DT_ERR_PROC_FAILED;
        for (int r = 0; r < 3; r++)
            right = right && job.right[r] == (job.rc[r] == DT_SUCCESS);
        told = told && (job.rc[0] == DT_ERR_PROC_FAILED || job.right[0]);
    } while (deaf_call++ < calls);
    ok(told && right && calls > 10,
       "a rank is lost in one of the %d collectives of loading", calls);
    for (deaf_call = 0; deaf_call < 4; deaf_call++) {
        disk_job_save_again(&job, deaf_save);
        told = told && job.rc[1] == DT_ERR_PROC_FAILED &&
               (deaf_call == 3 || job.rc[0] == DT_ERR_PROC_FAILED);
    }
    ok(told, "or of saving");
    disk_job_drop(&job);
}

/* A rank is lost while it waits for the number lost_wait of its messages. */
static int lost_wait, lost_rank;

static void lost_load(void *arg)
{
    if (dt_rank() == lost_rank)
        fake_world_lost_at(lost_wait);
    disk_job_load_rank(arg);
}

static void test_lost(void)
{
    struct disk_job job;
    bool right = true;
    int lost = 0, failed;
    disk_job_save(&job, "rs:2+1", 3, 1, 300000, 9);
    for (lost_rank = 0; lost_rank < 3; lost_rank++)
        for (lost_wait = 0, failed = 1; failed && right; lost_wait++) {
            disk_job_copy(&job, 2);
            fake_world_run_nodes(3, 3, lost_load, &job);
            failed = job.rc[lost_rank] == DT_ERR_PROC_FAILED;
            lost += failed;
            for (int r = 0; r < 3; r++)
                right = right && (job.rc[r] == DT_SUCCESS
                                      ? job.right[r]
                                      : job.rc[r] == DT_ERR_PROC_FAILED);
            right = right && disk_job_load(&job, 3, 3) == DT_SUCCESS;
        }
    ok(right && lost > 20,
       "a rank is lost in one of %d waits; the next job starts over", lost);
    disk_job_drop(&job);
}

int main(void)
{
    test_damage();
    test_second_block();
    test_cut_short();
    test_deaf();
    test_lost();
    return tap_done();
}
