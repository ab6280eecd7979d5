/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* encode.c - writing parity.
 *
 * All stripes of a group are made at once, block by block. Of stripe s member s
 * gets the data of the k others, makes the m pieces of parity, keeps the first
 * and sends the rest to the members after it. The blocks are dealt out to the
 * local ranks: the first rank of each node together, the second together, and
 * so on, for as many as the smallest node has. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/checksum.h"
#include "ckpt/far.h"
#include "ckpt/nodes.h"
#include "ckpt/parity.h"
#include "ckpt/protect.h"
#include "ckpt/span.h"

struct encode {
    struct dt_ckpt *ckpt;
    struct dt_redundancy_group group;
    struct dt_parity parity;
    int member; /* this node in the group */
    int lane, lanes;
    int *peer;               /* [group.size]: the rank of my lane there */
    struct dt_source source; /* the files of this node */
    struct dt_span span;
    struct dt_reader reader;
    int fd; /* the file of parity, or -1 */
    unsigned char *memory,
        **data;       /* blocks: k mine, k theirs, m made, m kept */
    uint64_t *sum;    /* [m][blocks] */
    dt_result_t code; /* what went wrong here */
    struct dt_error why;
};

static void note(struct encode *e, dt_result_t code, const char *what)
{
    if (e->code == DT_SUCCESS)
        e->code = dt_error_set(&e->why, code, "%s: %s", what, strerror(errno));
}

static void no_memory(struct encode *e)
{
    errno = ENOMEM;
    note(e, DT_ERR_NO_MEMORY, "parity");
}

/* ---- what is here ---- */

static bool is_data(const char *name)
{
    static const char end[] = ".safetensors";
    size_t len = strlen(name);
    return strncmp(name, "rank-", 5) == 0 && len > strlen(end) &&
           strcmp(name + len - strlen(end), end) == 0 &&
           len < sizeof(((struct dt_manifest_file *)NULL)->name);
}

static bool add_file(struct encode *e, const char *name)
{
    struct dt_manifest *m = &e->source.manifest;
    struct stat st;
    if (fstatat(e->source.fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return false;
    void *more = realloc(m->file, (m->nfiles + 1) * sizeof(*m->file));
    if (!more)
        return false;
    m->file = more;
    m->file[m->nfiles] = (struct dt_manifest_file){.size = (size_t)st.st_size};
    strcpy(m->file[m->nfiles++].name, name);
    return true;
}

/* The files of all ranks of this node, as the manifest will name them. */
static void list_files(struct encode *e)
{
    int fd = openat(e->source.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    if (!stream) {
        note(e, DT_ERR_IO, "the directory");
        if (fd >= 0)
            close(fd);
        return;
    }
    while (e->code == DT_SUCCESS && (errno = 0, entry = readdir(stream)))
        if (is_data(entry->d_name) && !add_file(e, entry->d_name))
            note(e, dt_file_result(errno), entry->d_name);
    if (errno)
        note(e, DT_ERR_IO, "the directory");
    closedir(stream);
    if (e->code == DT_SUCCESS)
        e->code = dt_span_init(&e->span, &e->source.manifest, 0, &e->why);
}

static void open_parity(struct encode *e, int flags)
{
    char name[DT_PARITY_NAME];
    dt_parity_name(name, e->ckpt->num_nodes, e->ckpt->node);
    if (e->code != DT_SUCCESS)
        return;
    e->fd = openat(e->source.fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags,
                   0666);
    if (e->fd < 0)
        note(e, dt_file_result(errno), name);
}

/* ---- all together ---- */

/* Whose code is not SUCCESS, everybody gets it. votes[] keep the bytes. */
static dt_result_t agree(struct encode *e, struct dt_vote *votes,
                         struct dt_error *err)
{
    struct dt_vote mine = {
        .code = e->code, .bytes = e->span.bytes, .err = e->why};
    int who;
    dt_result_t rc = dt_vote_gather(e->ckpt->comm, &mine, votes, err);
    return rc == DT_SUCCESS ? dt_vote_result(votes, e->ckpt->size, &who, err)
                            : rc;
}

/* The rank of my lane on each node of the group, and the longest node. */
static size_t find_peers(struct encode *e, const struct dt_vote *votes)
{
    size_t longest = 0;
    for (int i = 0; i < e->group.size; i++) {
        int node = e->group.first + i, n = dt_node_ranks(e->ckpt, node);
        e->peer[i] = dt_node_rank_at(e->ckpt, node, e->lane);
        size_t bytes = votes[dt_node_rank_at(e->ckpt, node, 0)].bytes;
        longest = bytes > longest ? bytes : longest;
        if (i == 0 || n < e->lanes)
            e->lanes = n;
    }
    return longest;
}

static void allocate(struct encode *e)
{
    size_t k = (size_t)e->group.k, m = (size_t)e->group.m;
    size_t n = 2 * (k + m), block = e->parity.block;
    if (e->parity.segment < block)
        block = e->parity.segment;
    e->sum = calloc(2 * m * dt_parity_blocks(&e->parity) + 1, sizeof(*e->sum));
    e->data = calloc(n, sizeof(*e->data));
    e->memory = calloc(n, block + 1);
    if (!e->sum || !e->data || !e->memory) {
        no_memory(e);
        return;
    }
    for (size_t i = 0; i < n; i++)
        e->data[i] = e->memory + i * block;
}

/* ---- one block of every stripe ---- */

/* My bytes from .. from + len - 1, with zeros behind the last file. */
static void read_mine(struct encode *e, unsigned char *to, size_t from,
                      size_t len)
{
    size_t at = from;
    struct dt_read run;
    while (e->code == DT_SUCCESS &&
           dt_span_next(&e->span, &at, from + len, &run))
        e->code = dt_reader_read(&e->reader, run.file, run.offset, run.len,
                                 to + (at - from - run.len), &e->why);
    memset(to + (at - from), 0, len - (at - from));
}

static dt_result_t give(struct encode *e, const void *data, size_t len,
                        int member)
{
    return dt_send(data, len, DT_DTYPE_U8, e->peer[member % e->group.size],
                   e->ckpt->comm, DT_STREAM_NONE);
}

static dt_result_t take(struct encode *e, void *data, size_t len, int member)
{
    return dt_recv(data, len, DT_DTYPE_U8, e->peer[member % e->group.size],
                   e->ckpt->comm, DT_STREAM_NONE);
}

/* My data to who makes parity of it, that of the others to me. */
static dt_result_t exchange_data(struct encode *e, size_t at, size_t len,
                                 struct dt_error *err)
{
    int k = e->group.k, m = e->group.m;
    for (int j = 0; j < k; j++)
        read_mine(e, e->data[j], (size_t)j * e->parity.segment + at, len);
    dt_result_t rc = dt_group_start();
    for (int j = 0; j < k && rc == DT_SUCCESS; j++)
        rc = give(e, e->data[j], len,
                  dt_redundancy_stripe(&e->group, e->member, j));
    for (int i = 0; i < k && rc == DT_SUCCESS; i++)
        rc = take(e, e->data[k + i], len, e->member + m + i);
    dt_result_t end = dt_group_end();
    return dt_vote_outcome(rc == DT_SUCCESS ? end : rc, err);
}

/* What I made to who keeps it, what I keep to me. */
static dt_result_t exchange_parity(struct encode *e, size_t len,
                                   struct dt_error *err)
{
    int k = e->group.k, m = e->group.m;
    unsigned char **made = e->data + 2 * k, **kept = made + m;
    if (m == 1)
        return DT_SUCCESS;
    dt_result_t rc = dt_group_start();
    for (int p = 1; p < m && rc == DT_SUCCESS; p++)
        rc = give(e, made[p], len, e->member + p);
    for (int p = 1; p < m && rc == DT_SUCCESS; p++)
        rc = take(e, kept[p], len, e->member - p + e->group.size);
    dt_result_t end = dt_group_end();
    return dt_vote_outcome(rc == DT_SUCCESS ? end : rc, err);
}

static void write_parity(struct encode *e, size_t at, size_t len)
{
    unsigned char **made = e->data + 2 * e->group.k;
    unsigned char **kept = made + e->group.m;
    for (int p = 0; p < e->group.m && e->code == DT_SUCCESS; p++) {
        unsigned char *piece = p == 0 ? made[0] : kept[p];
        e->sum[(size_t)p * dt_parity_blocks(&e->parity) +
               at / e->parity.block] = dt_checksum(piece, len);
        e->code =
            dt_parity_write(e->fd, &e->parity, p, at, piece, len, &e->why);
    }
}

/* Only what the communication comes to: what goes wrong here is noted, the
 * others get their bytes. */
static dt_result_t encode_blocks(struct encode *e, struct dt_error *err)
{
    size_t step = (size_t)e->lanes * e->parity.block;
    size_t segment = e->parity.segment;
    dt_result_t rc = DT_SUCCESS;
    for (size_t at = (size_t)e->lane * e->parity.block;
         at < segment && rc == DT_SUCCESS; at += step) {
        size_t left = segment - at;
        size_t len = left < e->parity.block ? left : e->parity.block;
        rc = exchange_data(e, at, len, err);
        if (rc == DT_SUCCESS && e->code == DT_SUCCESS)
            e->code = dt_redundancy_encode(
                e->group.k, e->group.m, len,
                (const unsigned char *const *)e->data + e->group.k,
                e->data + 2 * e->group.k, &e->why);
        if (rc == DT_SUCCESS)
            rc = exchange_parity(e, len, err);
        write_parity(e, at, len);
    }
    return rc;
}

/* The sums of all lanes to the first, which completes the file. */
static dt_result_t finish(struct encode *e, struct dt_error *err)
{
    size_t n = (size_t)e->group.m * dt_parity_blocks(&e->parity);
    dt_comm_t comm = e->ckpt->comm;
    if (e->lane > 0)
        return dt_vote_outcome(
            dt_send(e->sum, n, DT_DTYPE_I64,
                    dt_node_rank_at(e->ckpt, e->ckpt->node, 0), comm,
                    DT_STREAM_NONE),
            err);
    uint64_t *more = e->sum + n;
    dt_result_t rc = DT_SUCCESS;
    for (int lane = 1; lane < e->lanes && rc == DT_SUCCESS; lane++) {
        int peer = dt_node_rank_at(e->ckpt, e->ckpt->node, lane);
        rc = dt_vote_outcome(
            dt_recv(more, n, DT_DTYPE_I64, peer, comm, DT_STREAM_NONE), err);
        for (size_t i = 0; rc == DT_SUCCESS && i < n; i++)
            e->sum[i] |= more[i]; /* of another's blocks it has zeros */
    }
    if (rc == DT_SUCCESS && e->code == DT_SUCCESS)
        e->code = dt_parity_finish(e->fd, &e->parity, e->sum, &e->why);
    return rc;
}

/* From when every rank's files are there. */
static dt_result_t encode(struct encode *e, struct dt_vote *votes,
                          struct dt_error *err)
{
    list_files(e);
    if (e->lane == 0)
        open_parity(e, O_CREAT | O_EXCL);
    dt_result_t rc = agree(e, votes, err);
    if (rc != DT_SUCCESS)
        return rc;
    size_t longest = find_peers(e, votes);
    dt_parity_init(&e->parity, e->ckpt->tag, e->ckpt->num_nodes, e->ckpt->node,
                   &e->group, longest);
    if (e->lane < e->lanes) {
        allocate(e);
        if (e->lane > 0)
            open_parity(e, 0);
    }
    rc = agree(e, votes, err);
    if (rc == DT_SUCCESS && e->lane < e->lanes) {
        rc = encode_blocks(e, err);
        if (rc == DT_SUCCESS)
            rc = finish(e, err);
    }
    return rc == DT_SUCCESS && e->code != DT_SUCCESS
               ? dt_error_set(err, e->code, "%s", e->why.text)
               : rc;
}

dt_result_t dt_protect(struct dt_ckpt *ckpt, int dirfd, dt_result_t code,
                       struct dt_error *err)
{
    if (ckpt->redundancy.m == 0)
        return code;
    struct encode e = {
        .ckpt = ckpt, .fd = -1, .source = {.fd = dirfd}, .code = code};
    if (code != DT_SUCCESS)
        e.why = *err;
    e.reader = (struct dt_reader){.source = &e.source, .fd = -1};
    dt_result_t rc = dt_redundancy_group(&ckpt->redundancy, ckpt->num_nodes,
                                         ckpt->node, &e.group, err);
    if (rc != DT_SUCCESS)
        return rc;
    e.member = ckpt->node - e.group.first;
    e.lane = dt_node_lane(ckpt);
    e.peer = calloc((size_t)e.group.size, sizeof(*e.peer));
    if (!e.peer)
        no_memory(&e);
    rc = agree(&e, ckpt->votes, err);
    if (rc == DT_SUCCESS)
        rc = encode(&e, ckpt->votes, err);
    if (e.fd >= 0)
        close(e.fd);
    dt_reader_close(&e.reader);
    dt_span_clear(&e.span);
    free(e.source.manifest.file);
    free(e.peer);
    free(e.sum);
    free(e.data);
    free(e.memory);
    return rc;
}
