/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt-make.c - a checkpoint as a job of four ranks on two nodes writes it,
 * for tests of dt-ckpt:
 *
 *   ckpt-make DIR STEP [SEED [NODES SCHEME]]
 *
 *   grid    F32 [6, 8]: each rank a quarter, 3 rows of 4 columns
 *   big     F64 [3, 300000]: ranks 1 and 3, halves of the columns
 *   table   I64 [5]: replicated
 *   state   F16 [3]: each rank's own
 *   rng     a blob of rank + 1 bytes
 *
 * With a SCHEME of redundancy, DIR/0, DIR/1 ... are what the nodes have.
 *
 * ckpt-make seal MANIFEST gives a manifest that was edited its checksum again.
 *
 * Element i of a tensor as a whole is i + SEED, of a rank's own rank + that. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"

enum { RANKS = 4, TENSORS = 5 };

static int seed, nodes = 2;

/* One rank's part of one tensor. */
struct piece {
    struct dt_tensor whole, part;
    enum dt_manifest_kind kind;
    bool replicated;
    int64_t at[2];
    unsigned char *data;
    uint64_t sum[8];
};

static void need(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void set_element(struct piece *p, size_t i, double value)
{
    int64_t integer = (int64_t)value;
    float single = (float)value;
    uint16_t half = (uint16_t)(0x3c00 + integer); /* about 1 */
    switch (p->whole.dtype) {
    case DT_DTYPE_F32:
        memcpy(p->data + 4 * i, &single, 4);
        break;
    case DT_DTYPE_F64:
        memcpy(p->data + 8 * i, &value, 8);
        break;
    case DT_DTYPE_I64:
        memcpy(p->data + 8 * i, &integer, 8);
        break;
    case DT_DTYPE_F16:
        memcpy(p->data + 2 * i, &half, 2);
        break;
    default:
        p->data[i] = (unsigned char)integer;
    }
}

/* rank's part: rows and columns from at, extent of them. */
static void make(struct piece *p, int rank, const char *name, dt_dtype_t dtype,
                 enum dt_manifest_kind kind, int ndim, const int64_t *shape,
                 const int64_t *at, const int64_t *extent)
{
    need(dt_tensor_init(&p->whole, name, dtype, ndim, shape, NULL) ==
                 DT_SUCCESS &&
             dt_tensor_init(&p->part, name, dtype, ndim, extent, NULL) ==
                 DT_SUCCESS,
         name);
    p->kind = kind;
    p->data = calloc(1, p->part.bytes + 1);
    need(p->data, name);
    int64_t columns = ndim > 1 ? shape[1] : shape[0];
    int64_t wide = ndim > 1 ? extent[1] : extent[0];
    for (int i = 0; i < ndim; i++)
        p->at[i] = at[i];
    for (size_t i = 0; i < p->part.bytes / dt_dtype_size(dtype); i++) {
        int64_t row = ndim > 1 ? (int64_t)i / wide + at[0] : 0;
        int64_t column = (int64_t)i % wide + at[ndim - 1];
        int64_t value = row * columns + column + seed;
        set_element(
            p, i, (double)(kind == DT_MANIFEST_GLOBAL ? value : value + rank));
    }
}

/* What the rank writes; returns how many. */
static size_t make_all(struct piece *p, int rank)
{
    const int64_t none[2] = {0, 0};
    const int64_t grid[] = {6, 8}, quarter[] = {3, 4};
    const int64_t grid_at[] = {rank / 2 * 3, rank % 2 * 4};
    const int64_t big[] = {3, 300000}, half[] = {3, 150000};
    const int64_t big_at[] = {0, rank / 2 * 150000};
    const int64_t five[] = {5}, three[] = {3}, bytes[] = {rank + 1};
    size_t n = 0;
    make(&p[n++], rank, "grid", DT_DTYPE_F32, DT_MANIFEST_GLOBAL, 2, grid,
         grid_at, quarter);
    if (rank % 2)
        make(&p[n++], rank, "big", DT_DTYPE_F64, DT_MANIFEST_GLOBAL, 2, big,
             big_at, half);
    if (rank == 0) {
        make(&p[n], rank, "table", DT_DTYPE_I64, DT_MANIFEST_GLOBAL, 1, five,
             none, five);
        p[n++].replicated = true;
    }
    make(&p[n++], rank, "state", DT_DTYPE_F16, DT_MANIFEST_OWN, 1, three, none,
         three);
    make(&p[n++], rank, "rng", DT_DTYPE_U8, DT_MANIFEST_BLOB, 1, bytes, none,
         bytes);
    return n;
}

static void write_file(int dirfd, const char *name, struct piece *p, size_t n,
                       size_t *offset, struct dt_manifest_file *file)
{
    const struct dt_tensor *part[TENSORS];
    char *header;
    for (size_t i = 0; i < n; i++)
        part[i] = &p[i].part;
    need(dt_safetensors_layout(n, part, offset, &header, &file->header,
                               &file->size, NULL) == DT_SUCCESS,
         name);
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    need(fd >= 0 && dt_file_write(fd, header, file->header) == 0, name);
    for (size_t i = 0; i < n; i++) {
        need(pwrite(fd, p[i].data, p[i].part.bytes, (off_t)offset[i]) ==
                 (ssize_t)p[i].part.bytes,
             name);
        for (size_t b = 0; b * DT_MANIFEST_BLOCK < p[i].part.bytes; b++) {
            size_t rest = p[i].part.bytes - b * DT_MANIFEST_BLOCK;
            p[i].sum[b] = dt_checksum(
                p[i].data + b * DT_MANIFEST_BLOCK,
                rest < DT_MANIFEST_BLOCK ? rest : DT_MANIFEST_BLOCK);
        }
    }
    close(fd);
    file->checksum = dt_checksum(header, file->header);
    free(header);
}

static char *write_rank(int dirfd, int rank, size_t *len)
{
    struct piece p[TENSORS] = {0};
    struct dt_manifest_file file = {0};
    struct dt_error err = {""};
    size_t n = make_all(p, rank), offset[TENSORS];
    struct dt_part *part = dt_part_create(rank, rank * nodes / RANKS);
    char *text = NULL;
    int index;
    snprintf(file.name, sizeof(file.name), "rank-%05d-of-%05d.safetensors",
             rank, RANKS);
    write_file(dirfd, file.name, p, n, offset, &file);
    dt_result_t rc = dt_part_add_file(part, &file, &index, &err);
    for (size_t i = 0; i < n && rc == DT_SUCCESS; i++) {
        struct dt_manifest_slice slice = {.file = index,
                                          .rank = rank,
                                          .offset = offset[i],
                                          .bytes = p[i].part.bytes,
                                          .at = p[i].at,
                                          .extent = p[i].part.shape,
                                          .sum = p[i].sum};
        rc = dt_part_add_slice(part, &p[i].whole, p[i].kind, p[i].replicated,
                               &slice, &err);
        free(p[i].data);
    }
    if (rc == DT_SUCCESS)
        rc = dt_part_print(part, &text, len, &err);
    need(rc == DT_SUCCESS, err.text);
    dt_part_destroy(part);
    return text;
}

/* ---- the nodes' own directories ---- */

/* len bytes of a node's files, laid end to end. */
static void read_span(int dirfd, const struct dt_manifest *m,
                      const struct dt_span *span, size_t at, size_t len,
                      unsigned char *to)
{
    size_t begin = at, end = at + len, size;
    struct dt_span_run run;
    memset(to, 0, len);
    while (dt_span_next(span, &at, end, &run)) {
        int fd = dt_file_open(dirfd, m->file[run.file].name, &size);
        need(fd >= 0 && dt_file_read(fd, to + (at - run.len - begin), run.len,
                                     (off_t)run.offset) == (ssize_t)run.len,
             "span");
        close(fd);
    }
}

/* Block at .. at + len of piece `piece` of a stripe, data or parity. */
static void make_piece(int dirfd, const struct dt_manifest *m,
                       const struct dt_parity *parity,
                       const struct dt_span *span, int stripe, int piece,
                       size_t at, size_t len, unsigned char *to)
{
    const struct dt_erasure_layout *g = &parity->layout;
    unsigned char *data[RANKS], *made[RANKS];
    for (int i = 0; i < g->k; i++) {
        int member = dt_erasure_member(g, stripe, i), none;
        int segment = dt_erasure_data_block(g, member, stripe, &none);
        data[i] = malloc(len);
        read_span(dirfd, m, &span[member],
                  (size_t)segment * parity->length + at, len, data[i]);
    }
    for (int i = 0; i < g->m; i++)
        made[i] = malloc(len);
    need(dt_erasure_encode(g->k, g->m, len, (const unsigned char *const *)data,
                           made, NULL) == DT_SUCCESS,
         "encode");
    memcpy(to, made[piece - g->k], len);
    for (int i = 0; i < g->k; i++)
        free(data[i]);
    for (int i = 0; i < g->m; i++)
        free(made[i]);
}

/* The parity that a node keeps, into the file fd. */
static void write_parity(int fd, int dirfd, const struct dt_manifest *m,
                         const struct dt_parity *parity,
                         const struct dt_span *span)
{
    const struct dt_erasure_layout *g = &parity->layout;
    size_t blocks = dt_parity_chunks(parity);
    uint64_t *sum = calloc((size_t)g->m * blocks, sizeof(*sum));
    unsigned char *block = malloc(parity->chunk);
    for (int stripe = 0; stripe < g->size; stripe++) {
        int p, piece = dt_erasure_block(g, parity->node, stripe);
        if (dt_erasure_data_block(g, parity->node, stripe, &p) >= 0)
            continue;
        for (size_t b = 0; b < blocks; b++) {
            size_t at = b * parity->chunk, left = parity->length - at;
            size_t len = left < parity->chunk ? left : parity->chunk;
            make_piece(dirfd, m, parity, span, stripe, piece, at, len, block);
            sum[(size_t)p * blocks + b] = dt_checksum(block, len);
            need(dt_parity_write(fd, parity, p, at, block, len, NULL) ==
                     DT_SUCCESS,
                 "parity");
        }
    }
    need(dt_parity_finish(fd, parity, sum, NULL) == DT_SUCCESS, "parity");
    free(block);
    free(sum);
}

/* Hard links to what the node wrote, its parity, and the manifest. */
static void make_node(int dirfd, int rootfd, const struct dt_manifest *m,
                      const struct dt_erasure_layout *group,
                      const struct dt_span *span, int node)
{
    char name[DT_STORE_NAME + 32], text[DT_PARITY_NAME];
    struct dt_parity parity;
    size_t longest = 0;
    for (int i = 0; i < group->size; i++)
        longest = span[i].bytes > longest ? span[i].bytes : longest;
    dt_parity_init(&parity, m->tag, m->num_nodes, node, group, longest);
    snprintf(name, sizeof(name), "%d", node);
    mkdirat(rootfd, name, 0777);
    snprintf(name, sizeof(name), "%d/step-%012" PRId64, node, m->step);
    need(mkdirat(rootfd, name, 0777) == 0, name);
    int fd = openat(rootfd, name, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < span[node].count; i++) {
        const char *file = m->file[span[node].part[i].file].name;
        need(linkat(dirfd, file, fd, file, 0) == 0, file);
    }
    need(linkat(dirfd, DT_MANIFEST_NAME, fd, DT_MANIFEST_NAME, 0) == 0, name);
    dt_parity_name(text, m->num_nodes, node);
    int out = openat(fd, text, O_RDWR | O_CREAT | O_EXCL, 0666);
    write_parity(out, dirfd, m, &parity, span);
    close(out);
    close(fd);
}

static void make_nodes(int rootfd, const struct dt_manifest *m)
{
    struct dt_erasure scheme;
    struct dt_erasure_layout group;
    struct dt_span span[RANKS];
    char name[DT_STORE_NAME];
    dt_store_name(name, m->step);
    int dirfd = openat(rootfd, name, O_RDONLY | O_DIRECTORY);
    need(dt_erasure_parse(m->redundancy, "", &scheme, NULL) == DT_SUCCESS &&
             dt_erasure_layout(&scheme, nodes, 0, &group, NULL) == DT_SUCCESS &&
             group.size == nodes,
         "one group");
    for (int n = 0; n < nodes; n++)
        need(dt_span_init(&span[n], m, n, NULL) == DT_SUCCESS, "span");
    for (int n = 0; n < nodes; n++)
        make_node(dirfd, rootfd, m, &group, span, n);
    for (int n = 0; n < nodes; n++)
        dt_span_clear(&span[n]);
    close(dirfd);
}

/* {"checksum":"0123456789abcdef", and the rest, whose sum that is with a brace
 * before it. */
static int seal(const char *path)
{
    char text[65536], sum[DT_CHECKSUM_TEXT];
    const size_t at = strlen("{\"checksum\":\""), rest = at + 16 + 2;
    int fd = open(path, O_RDWR);
    ssize_t len = fd < 0 ? -1 : dt_file_read(fd, text, sizeof(text), 0);
    need(len > (ssize_t)rest && len < (ssize_t)sizeof(text), path);
    dt_checksum_print(dt_checksum_pair("{", 1, text + rest, (size_t)len - rest),
                      sum);
    need(pwrite(fd, sum, 16, (off_t)at) == 16, path);
    return close(fd);
}

int main(int argc, char **argv)
{
    char *text[RANKS], *out, partial[DT_STORE_NAME];
    size_t len[RANKS], out_len;
    struct dt_error err = {""};
    if (argc < 3)
        return 64;
    if (strcmp(argv[1], "seal") == 0)
        return seal(argv[2]);
    seed = argc > 3 ? atoi(argv[3]) : 0;
    nodes = argc > 5 ? atoi(argv[4]) : 2;
    struct dt_manifest m = {.step = atoll(argv[2]),
                            .run_id = "4711",
                            .created = "2026-01-31T23:59:59Z",
                            .version = DT_MANIFEST_VERSION,
                            .world_size = RANKS,
                            .num_nodes = nodes,
                            .copy_s = 0.25,
                            .write_s = 1.5};
    snprintf(m.redundancy, sizeof(m.redundancy), "%s",
             argc > 5 ? argv[5] : "none");
    mkdir(argv[1], 0777);
    int dirfd = dt_store_open(argv[1]);
    dt_store_partial_name(partial, m.step, 1);
    need(dirfd >= 0 && mkdirat(dirfd, partial, 0777) == 0, argv[1]);
    int fd = openat(dirfd, partial, O_RDONLY | O_DIRECTORY);
    for (int r = 0; r < RANKS; r++)
        text[r] = write_rank(fd, r, &len[r]);
    dt_result_t rc =
        dt_manifest_join(&m, RANKS, (const char *const *)text, len, &err);
    need(rc == DT_SUCCESS, err.text);
    need(dt_manifest_print(&m, &out, &out_len, NULL) == DT_SUCCESS &&
             dt_manifest_put(fd, out, out_len, NULL) == DT_SUCCESS &&
             dt_store_publish(dirfd, partial, m.step, 1, NULL) == DT_SUCCESS,
         "manifest");
    if (argc > 5)
        make_nodes(dirfd, &m);
    for (int r = 0; r < RANKS; r++)
        free(text[r]);
    free(out);
    dt_manifest_clear(&m);
    close(fd);
    close(dirfd);
    return 0;
}
