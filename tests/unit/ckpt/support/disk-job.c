/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* disk-job.c - a job whose nodes have disks of their own. */
#include "disk-job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "job.h"
#include "ckpt/format/format.h"
#include "ckpt/load/fetch.h"
#include "ckpt/redundancy/redundancy.h"
#include "../../tap.h"

#define HEADER 16
#define TAG    0xfeedu

static unsigned char byte_at(int rank, size_t i)
{
    return (unsigned char)((i * 2654435761u >> 7) + (size_t)rank * 41 +
                           i / 253);
}

static unsigned char *contents(const struct disk_job *job, int rank)
{
    unsigned char *data = malloc(job->bytes[rank] + 1);
    for (size_t i = 0; data && i < job->bytes[rank]; i++)
        data[i] = byte_at(rank, i);
    if (!data)
        abort();
    return data;
}

void disk_job_path(char path[300], const struct disk_job *job, const char *set,
                   int disk)
{
    snprintf(path, 300, "%s/%s-%02d", job->base, set, disk);
}

static void begin(struct dt_ckpt *ckpt, const struct disk_job *job,
                  int *node_of, struct dt_vote *votes)
{
    *ckpt = (struct dt_ckpt){.redundancy = job->scheme,
                             .rank = dt_rank(),
                             .size = dt_size(),
                             .local_rank = dt_local_rank(),
                             .node = dt_node_rank(),
                             .num_nodes = dt_num_nodes(),
                             .node_of = node_of,
                             .comm = dt_comm_world(),
                             .tag = TAG,
                             .votes = votes};
    for (int r = 0; r < ckpt->size; r++)
        node_of[r] = r * ckpt->num_nodes / ckpt->size;
}

/* ---- saving ---- */

static void rank_file(const struct disk_job *job, int rank, int node,
                      struct dt_manifest_file *file)
{
    *file = (struct dt_manifest_file){
        .size = job->bytes[rank], .header = HEADER, .rank = rank, .node = node};
    snprintf(file->name, sizeof(file->name), "rank-%05d-of-%05d.safetensors",
             rank, job->size);
}

static void add_part(const struct disk_job *job, int rank, char **text,
                     size_t *len)
{
    int node = rank * job->nodes / job->size, index;
    struct dt_part *part = dt_part_create(rank, node);
    struct dt_manifest_file file;
    struct dt_tensor blob;
    unsigned char *data = contents(job, rank);
    uint64_t sum[8];
    int64_t shape = (int64_t)job->bytes[rank] - HEADER;
    rank_file(job, rank, node, &file);
    file.checksum = dt_checksum(data, HEADER);
    for (size_t at = 0; at < (size_t)shape; at += DT_MANIFEST_BLOCK)
        sum[at / DT_MANIFEST_BLOCK] = dt_checksum(
            data + HEADER + at, (size_t)shape - at < DT_MANIFEST_BLOCK
                                    ? (size_t)shape - at
                                    : DT_MANIFEST_BLOCK);
    struct dt_manifest_slice slice = {
        .rank = rank, .offset = HEADER, .bytes = (size_t)shape, .sum = sum};
    dt_tensor_init(&blob, "blob", DT_DTYPE_U8, 1, &shape, NULL);
    if (dt_part_add_file(part, &file, &index, NULL) != DT_SUCCESS)
        abort();
    slice.file = index;
    if (dt_part_add_slice(part, &blob, DT_MANIFEST_BLOB, false, &slice, NULL) !=
            DT_SUCCESS ||
        dt_part_print(part, text, len, NULL) != DT_SUCCESS)
        abort();
    dt_part_destroy(part);
    free(data);
}

static void make_manifest(struct disk_job *job)
{
    struct dt_manifest m = {.step = STEP,
                            .tag = TAG,
                            .world_size = job->size,
                            .num_nodes = job->nodes,
                            .run_id = "1",
                            .created = "2026-01-31T23:59:59Z"};
    char *text[RANKS_MAX];
    size_t len[RANKS_MAX];
    struct dt_error err = {""};
    strcpy(m.redundancy, job->scheme.text);
    for (int r = 0; r < job->size; r++)
        add_part(job, r, &text[r], &len[r]);
    if (dt_manifest_join(&m, job->size, (const char *const *)text, len, &err) !=
            DT_SUCCESS ||
        dt_manifest_print(&m, &job->manifest, &job->len, &err) != DT_SUCCESS) {
        diag("%s", err.text);
        abort();
    }
    dt_manifest_clear(&m);
    for (int r = 0; r < job->size; r++)
        free(text[r]);
}

static void write_rank(const struct disk_job *job, int rank, int fd)
{
    struct dt_manifest_file name;
    unsigned char *data = contents(job, rank);
    rank_file(job, rank, 0, &name);
    int file = openat(fd, name.name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || dt_file_write(file, data, job->bytes[rank]))
        abort();
    close(file);
    free(data);
}

void disk_job_save_rank(void *arg)
{
    struct disk_job *job = arg;
    struct dt_ckpt ckpt;
    struct dt_vote votes[RANKS_MAX];
    int node_of[RANKS_MAX];
    char dir[300], partial[DT_STORE_NAME];
    begin(&ckpt, job, node_of, votes);
    disk_job_path(dir, job, "saved", ckpt.node);
    dt_store_partial_name(partial, STEP, TAG);
    mkdir(dir, 0777);
    int dirfd = dt_store_open(dir);
    mkdirat(dirfd, partial, 0777);
    int fd = openat(dirfd, partial, O_RDONLY | O_DIRECTORY);
    write_rank(job, ckpt.rank, fd);
    struct dt_error *err = &job->err[ckpt.rank];
    dt_result_t rc = DT_SUCCESS;
    if (ckpt.rank == job->fails)
        rc = dt_error_set(err, DT_ERR_NO_SPACE, "rank %d is full", job->fails);
    rc = dt_protect(&ckpt, rc == DT_SUCCESS ? fd : -1, -1, rc, err);
    if (rc == DT_SUCCESS)
        rc = dt_barrier(ckpt.comm, DT_STREAM_NONE);
    if (rc == DT_SUCCESS && ckpt.local_rank == 0 && ckpt.node < job->partial) {
        rc = dt_manifest_put(fd, job->manifest, job->len, err);
        if (rc == DT_SUCCESS)
            rc = dt_store_publish(dirfd, partial, STEP, TAG, err);
    }
    job->rc[ckpt.rank] = rc;
    close(fd);
    close(dirfd);
}

bool disk_job_save(struct disk_job *job, const char *scheme, int nodes,
                   int per_node, size_t bytes, size_t uneven)
{
    *job = (struct disk_job){.base = ckpt_temp_dir(),
                             .nodes = nodes,
                             .size = nodes * per_node,
                             .fails = -1,
                             .partial = nodes};
    dt_erasure_parse(scheme, "-", &job->scheme, NULL);
    for (int r = 0; r < job->size; r++)
        job->bytes[r] = HEADER + bytes + (size_t)r * 7919 % (uneven + 1);
    make_manifest(job);
    fake_world_run_nodes(job->size, nodes, disk_job_save_rank, job);
    for (int r = 0; r < job->size; r++)
        if (job->rc[r] != DT_SUCCESS) {
            diag("rank %d: %s", r, job->err[r].text);
            return false;
        }
    return true;
}

void disk_job_drop(struct disk_job *job)
{
    free(job->manifest);
    ckpt_remove_tree(job->base);
}

/* ---- disks ---- */

static void link_all(const char *from, const char *to)
{
    char list[4096], a[700], b[700];
    mkdir(to, 0777);
    snprintf(list, sizeof(list), "%s", ckpt_list(from));
    char *rest = list, *name;
    while ((name = strsep(&rest, " ")) && *name) {
        struct stat st;
        snprintf(a, sizeof(a), "%s/%s", from, name);
        snprintf(b, sizeof(b), "%s/%s", to, name);
        if (stat(a, &st) == 0 && S_ISDIR(st.st_mode))
            link_all(a, b);
        else if (link(a, b))
            abort();
    }
}

/* A new set of disks with what was saved, but for the nodes in lost. */
void disk_job_copy(struct disk_job *job, unsigned lost)
{
    char from[300], to[300];
    job->set = "now";
    for (int n = 0; n < NODES_MAX; n++) {
        disk_job_path(to, job, job->set, n);
        if (access(to, F_OK) == 0)
            ckpt_remove_tree(strdup(to));
        disk_job_path(from, job, "saved", n);
        job->disk[n] = n;
        if (n < job->nodes && !(lost & 1u << n))
            link_all(from, to);
        else
            mkdir(to, 0777);
    }
}

/* ---- loading ---- */

static dt_result_t fetch_all(const struct disk_job *job,
                             const struct dt_source *source, bool *right,
                             struct dt_error *err)
{
    struct dt_read read[3 * RANKS_MAX];
    unsigned char *got[RANKS_MAX];
    size_t n = 0;
    bool good = true;
    for (int r = 0; r < job->size; r++) {
        int file = (dt_rank() + r) % job->size;
        size_t bytes = source->manifest.file[file].size, third = bytes / 3;
        good = good && bytes == job->bytes[file];
        got[file] = malloc(bytes + 1);
        read[n++] = (struct dt_read){file, 0, third, got[file]};
        read[n++] = (struct dt_read){file, third, 0, got[file] + third};
        read[n++] =
            (struct dt_read){file, third, bytes - third, got[file] + third};
    }
    dt_result_t rc = dt_fetch(source, read, n, err);
    good = good && rc == DT_SUCCESS;
    for (int r = 0; r < job->size; r++) {
        for (size_t i = 0; i < job->bytes[r] && good; i++)
            good = got[r][i] == byte_at(r, i);
        free(got[r]);
    }
    *right = good;
    return rc;
}

void disk_job_load_rank(void *arg)
{
    struct disk_job *job = arg;
    struct dt_ckpt ckpt;
    struct dt_vote votes[RANKS_MAX];
    int node_of[RANKS_MAX];
    struct dt_node_local *known = NULL;
    struct dt_source source = {.fd = -1};
    char dir[300];
    begin(&ckpt, job, node_of, votes);
    int r = ckpt.rank;
    disk_job_path(dir, job, job->set, job->disk[ckpt.node]);
    struct dt_tier tier = {.dir = dir};
    job->right[r] = false;
    job->known[r] = 0;
    job->rc[r] =
        dt_node_local_list(&ckpt, &tier, &known, &job->known[r], &job->err[r]);
    if (job->rc[r] == DT_SUCCESS && job->known[r] > 0)
        job->rc[r] = dt_node_local_open(&ckpt, &tier, &known[0], job->check,
                                        &source, &job->err[r]);
    else if (job->rc[r] == DT_SUCCESS)
        job->rc[r] = dt_error_set(&job->err[r], DT_ERR_NOT_FOUND, "nothing");
    if (job->rc[r] == DT_SUCCESS) {
        job->rc[r] = fetch_all(job, &source, &job->right[r], &job->err[r]);
        if (job->rc[r] == DT_SUCCESS && job->whole)
            job->restored[r] = dt_restore_parity(&ckpt, &source, &job->err[r]);
        dt_source_close(&source);
    }
    free(known);
}

/* The result if all ranks got it, and the right bytes with a success; else 1:
 * wrong. */
int disk_job_load(struct disk_job *job, int size, int nodes)
{
    for (int r = 0; r < size; r++)
        job->err[r].text[0] = '\0';
    fake_world_run_nodes(size, nodes, disk_job_load_rank, job);
    for (int r = 0; r < size; r++)
        if (job->rc[r] != job->rc[0] ||
            strcmp(job->err[r].text, job->err[0].text) ||
            job->known[r] != job->known[0] ||
            job->right[r] != (job->rc[0] == DT_SUCCESS)) {
            diag("rank %d: %d %s; rank 0: %d %s; known %zu %zu; right %d", r,
                 job->rc[r], job->err[r].text, job->rc[0], job->err[0].text,
                 job->known[r], job->known[0], job->right[r]);
            return 1;
        }
    return job->rc[0];
}

void disk_job_save_again(struct disk_job *job, void (*save)(void *))
{
    char dir[300];
    for (int n = 0; n < job->nodes; n++) {
        disk_job_path(dir, job, "saved", n);
        ckpt_remove_tree(strdup(dir));
    }
    for (int r = 0; r < job->size; r++)
        job->err[r].text[0] = '\0';
    fake_world_run_nodes(job->size, job->nodes, save, job);
}
