/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* restore.c - reading what a rank needs of a checkpoint.
 *
 * A slice is walked run by run; both its blocks and the program's memory come
 * in rising order. A block that belongs whole into one place in host memory is
 * read directly there, any other into scratch memory, from which the runs are
 * copied. Files of this node are read block by block and hashed while a piece
 * is in the processor's cache; a rank that is alone on its node reads much of
 * them ahead, from the list of a first walk. Files of other nodes come in
 * rounds: blocks and copies are collected until a round is full. */
#include "ckpt/load/restore.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/load/read_ahead.h"

#define BLOCK       ((size_t)DT_MANIFEST_BLOCK)
#define ROUND_BYTES (16 * BLOCK)
#define ROUND_READS 256
#define ROUND_RUNS  65536
#define PIECE       ((size_t)256 << 10) /* stays in the core's cache */

struct run {
    const char *from;
    char *to;
    size_t len;
    bool host; /* to is host memory */
};

struct restore {
    const struct dt_source *source;
    struct dt_copy *copy;
    struct dt_reader reader;
    struct dt_read_ahead *ahead; /* reads local files, or NULL */
    struct dt_error *err;
    dt_result_t rc;
    bool counting; /* count rounds and list what is to be read ahead; read
                      nothing */
    bool broken;   /* dt_fetch failed, on all ranks */
    size_t rounds; /* so far */

    const struct dt_want *want; /* the slice being walked */
    bool host;                  /* it goes to host memory */
    size_t block;               /* the block the last run was in, or SIZE_MAX */
    char *at;                   /* where that block is or will be */
    bool direct,
        pending; /* at is the program's memory; it comes with this round */

    char *local;                     /* scratch for one block */
    char *remote;                    /* and for a round */
    size_t bytes, used, reads, runs; /* of the round; used: of remote */
    struct dt_read read[ROUND_READS];
    struct {
        const struct dt_want *want;
        size_t block;
    } what[ROUND_READS];
    struct run *run;
};

static bool fail(struct restore *g, dt_result_t rc)
{
    g->rc = rc;
    return false;
}

static bool no_memory(struct restore *g)
{
    return fail(g, dt_no_memory(g->err));
}

static bool is_local(const struct dt_source *source, int file)
{
    return source->shared || source->holder[file] == dt_rank();
}

static size_t block_len(const struct dt_want *want, size_t block)
{
    size_t left = want->slice->bytes - block * BLOCK;
    return left < BLOCK ? left : BLOCK;
}

/* ---- a block ---- */

static bool verify(struct restore *g, const struct dt_want *want, size_t block,
                   uint64_t sum)
{
    if (!want->slice->sum || sum == want->slice->sum[block])
        return true;
    return fail(
        g, dt_error_set(g->err, DT_ERR_CORRUPT, "%s: checksum differs in %s",
                        g->source->manifest.file[want->slice->file].name,
                        want->tensor->tensor.name));
}

/* Everything that is written to the program's memory goes through here, except
 * blocks that are read directly into it. */
static bool put(struct restore *g, void *to, const void *from, size_t len,
                bool host)
{
    if (host) {
        memcpy(to, from, len);
        return true;
    }
    dt_result_t rc = dt_copy_begin(g->copy, to, from, len, g->err);
    return rc == DT_SUCCESS || fail(g, rc);
}

static bool settle(struct restore *g)
{
    dt_result_t rc = dt_copy_finish(g->copy, g->err);
    return rc == DT_SUCCESS || fail(g, rc);
}

/* End a round. The block of the last run stays where it is until the next
 * block, since more runs may be in it. */
static bool flush(struct restore *g)
{
    size_t reads = g->reads, runs = g->runs;
    g->reads = g->runs = g->bytes = g->used = 0;
    g->pending = false;
    if (!settle(g)) /* what was copied since the last round */
        return false;
    g->rounds++;
    if (g->counting)
        return true;
    dt_result_t rc = dt_fetch(g->source, g->read, reads, g->err);
    if (rc != DT_SUCCESS) {
        g->broken = true;
        return fail(g, rc);
    }
    for (size_t i = 0; i < reads; i++)
        if (!verify(g, g->what[i].want, g->what[i].block,
                    dt_checksum(g->read[i].to, g->read[i].len)))
            return false;
    for (size_t i = 0; i < runs; i++)
        if (!put(g, g->run[i].to, g->run[i].from, g->run[i].len,
                 g->run[i].host))
            return false;
    return true;
}

static bool open_remote(struct restore *g, char *direct)
{
    size_t len = block_len(g->want, g->block);
    if (!g->remote) {
        g->remote = malloc(ROUND_BYTES);
        g->run = malloc(ROUND_RUNS * sizeof(*g->run));
        if (!g->remote || !g->run)
            return no_memory(g);
    }
    g->at = direct ? direct : g->remote + g->used;
    g->used += direct ? 0 : len;
    g->bytes += len;
    g->read[g->reads] =
        (struct dt_read){.file = g->want->slice->file,
                         .offset = g->want->slice->offset + g->block * BLOCK,
                         .len = len,
                         .to = g->at};
    g->what[g->reads].want = g->want;
    g->what[g->reads++].block = g->block;
    g->pending = true;
    return true;
}

/* Read the block, and hash each piece while it is in the processor's cache. */
static bool read_local(struct restore *g, size_t len, char *direct,
                       struct dt_checksum_parts *sum)
{
    const struct dt_manifest_slice *slice = g->want->slice;
    if (!direct && !g->local && !(g->local = malloc(BLOCK)))
        return no_memory(g);
    g->at = direct ? direct : g->local;
    for (size_t done = 0; done < len; done += PIECE) {
        size_t n = len - done < PIECE ? len - done : PIECE;
        dt_result_t rc = dt_reader_read(&g->reader, slice->file,
                                        slice->offset + g->block * BLOCK + done,
                                        n, g->at + done, g->err);
        if (rc != DT_SUCCESS)
            return fail(g, rc);
        dt_checksum_add(sum, g->at + done, n);
    }
    return true;
}

/* The same for a block that was read ahead. */
static bool take_local(struct restore *g, size_t len, char *direct,
                       struct dt_checksum_parts *sum)
{
    char *data;
    dt_result_t rc = dt_read_ahead_take(g->ahead, &data, g->err);
    if (rc != DT_SUCCESS)
        return fail(g, rc);
    for (size_t done = 0; done < len; done += PIECE) {
        size_t n = len - done < PIECE ? len - done : PIECE;
        dt_checksum_add(sum, data + done, n);
        if (direct)
            memcpy(direct + done, data + done, n);
    }
    g->at = direct ? direct : data;
    return true;
}

static bool open_local(struct restore *g, char *direct)
{
    size_t len = block_len(g->want, g->block);
    /* copies may still read the memory into which this block goes */
    if ((!direct || g->ahead) && !settle(g))
        return false;
    struct dt_checksum_parts sum;
    dt_checksum_begin(&sum);
    if (g->ahead ? !take_local(g, len, direct, &sum)
                 : !read_local(g, len, direct, &sum))
        return false;
    return verify(g, g->want, g->block, dt_checksum_end(&sum));
}

static bool plan_local(struct restore *g)
{
    const struct dt_manifest_slice *slice = g->want->slice;
    dt_result_t rc = dt_read_ahead_add(g->ahead, slice->file,
                                       slice->offset + g->block * BLOCK,
                                       block_len(g->want, g->block), g->err);
    return rc == DT_SUCCESS || fail(g, rc);
}

/* Begin the next block; if direct is not NULL, it is read into that memory. */
static bool open_block(struct restore *g, size_t block, char *direct)
{
    size_t len = block_len(g->want, block);
    bool local = is_local(g->source, g->want->slice->file);
    if (!local && (g->reads == ROUND_READS || g->bytes + len > ROUND_BYTES) &&
        !flush(g))
        return false;
    g->block = block;
    g->direct = direct;
    g->pending = false;
    if (!local)
        return open_remote(g, direct);
    return g->counting ? plan_local(g) : open_local(g, direct);
}

/* ---- a slice ---- */

static bool add_run(struct restore *g, char *to, size_t inner, size_t len)
{
    if (!g->pending)
        return g->counting || put(g, to, g->at + inner, len, g->host);
    if (g->runs == ROUND_RUNS)
        return flush(g) &&
               (g->counting || put(g, to, g->at + inner, len, g->host));
    if (!g->counting)
        g->run[g->runs] = (struct run){g->at + inner, to, len, g->host};
    g->runs++;
    return true;
}

static bool walk_run(size_t from, size_t to, size_t n, void *arg)
{
    struct restore *g = arg;
    size_t width = dt_dtype_size(g->want->tensor->tensor.dtype);
    size_t at = from * width, end = at + n * width;
    char *out = (char *)g->want->to + to * width;
    while (at < end) {
        size_t block = at / BLOCK, inner = at % BLOCK;
        size_t len = block_len(g->want, block) - inner;
        if (len > end - at)
            len = end - at;
        if (block != g->block) {
            bool whole = g->host && len == block_len(g->want, block);
            if (!open_block(g, block, whole ? out : NULL))
                return false;
        }
        if (!g->direct && !add_run(g, out, inner, len))
            return false;
        at += len;
        out += len;
    }
    return true;
}

/* In version 1 a file has one checksum. */
static bool verify_file(struct restore *g, int file)
{
    const struct dt_manifest_file *want = &g->source->manifest.file[file];
    struct dt_error why = {0};
    uint64_t sum = 0;
    char none;
    dt_result_t rc = dt_reader_read(&g->reader, file, 0, 0, &none, g->err);
    if (rc != DT_SUCCESS)
        return fail(g, rc);
    rc = dt_checksum_file(g->reader.fd, want->size, &sum, &why);
    if (rc == DT_SUCCESS && sum != want->checksum)
        rc = dt_error_set(&why, DT_ERR_CORRUPT, "checksum differs");
    if (rc == DT_ERR_IO)
        rc = DT_ERR_CORRUPT; /* unreadable contents are damage */
    return rc == DT_SUCCESS ||
           fail(g, dt_error_set(g->err, rc, "%s: %s", want->name, why.text));
}

static bool walk(struct restore *g, const struct dt_match *match)
{
    int file = -1;
    for (size_t i = 0; i < match->count; i++) {
        g->want = &match->want[i];
        g->block = SIZE_MAX;
        g->pending = false;
        const struct dt_manifest_slice *slice = g->want->slice;
        struct dt_slice from = {g->want->box.ndim, slice->at, slice->extent};
        if (g->counting && !g->ahead && is_local(g->source, slice->file))
            continue;
        g->host =
            dt_copy_is_host(g->copy, g->want->to,
                            dt_slice_count(&g->want->box) *
                                dt_dtype_size(g->want->tensor->tensor.dtype));
        if (!slice->sum && slice->file != file && !g->counting &&
            !verify_file(g, slice->file))
            return false;
        file = slice->file;
        if (!dt_slice_runs(&from, &g->want->box, walk_run, g))
            return false;
    }
    return g->reads == 0 || flush(g);
}

/* ---- the headers ---- */

/* One rank verifies each header: one that holds the file, and each rank as many
 * as the others. */
static bool is_my_header(const struct dt_source *source, size_t file)
{
    if (source->shared)
        return file % (size_t)dt_size() == (size_t)dt_rank();
    return source->holder[file] == dt_rank();
}

static bool verify_header(struct restore *g, int file)
{
    const struct dt_manifest_file *want = &g->source->manifest.file[file];
    char *header = want->header <= DT_SAFETENSORS_HEADER_MAX + 8
                       ? malloc(want->header + 1)
                       : NULL;
    if (!header)
        return no_memory(g);
    dt_result_t rc =
        dt_reader_read(&g->reader, file, 0, want->header, header, g->err);
    if (rc == DT_SUCCESS && dt_checksum(header, want->header) != want->checksum)
        rc = dt_error_set(g->err, DT_ERR_CORRUPT,
                          "%s: checksum differs in the header", want->name);
    free(header);
    return rc == DT_SUCCESS || fail(g, rc);
}

static bool verify_headers(struct restore *g)
{
    const struct dt_manifest *manifest = &g->source->manifest;
    for (size_t f = 0; f < manifest->nfiles && manifest->version > 1; f++)
        if (is_my_header(g->source, f) && !verify_header(g, (int)f))
            return false;
    return true;
}

/* ---- all together ---- */

static struct restore *create(const struct dt_source *source)
{
    struct restore *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->source = source;
    g->reader = (struct dt_reader){.source = source, .fd = -1};
    return g;
}

static void destroy(struct restore *g)
{
    dt_copy_finish(g->copy,
                   NULL); /* copies may still read what is freed below */
    dt_read_ahead_close(g->ahead);
    dt_reader_close(&g->reader);
    free(g->run);
    free(g->remote);
    free(g->local);
    free(g);
}

dt_result_t dt_restore_rounds(const struct dt_source *source,
                              const struct dt_match *match,
                              struct dt_copy *copy, size_t *rounds,
                              struct dt_error *err)
{
    struct restore *g = create(source);
    if (!g)
        return dt_no_memory(err);
    g->counting = true;
    g->copy = copy;
    g->err = err;
    walk(g, match);
    dt_result_t rc = g->rc;
    *rounds = g->rounds;
    destroy(g);
    return rc;
}

/* Begin to read ahead. Where there are several ranks on a node their reading
 * and hashing overlap anyway, and what two of them want is read from the disk
 * once, as the page cache keeps it for the other. */
static void begin_reading_ahead(struct restore *g, const struct dt_match *match)
{
    struct restore *plan = dt_local_size() == 1 ? create(g->source) : NULL;
    if (!plan)
        return;
    plan->counting = true;
    plan->copy = g->copy;
    if (dt_read_ahead_open(&plan->ahead, g->source, NULL) == DT_SUCCESS &&
        walk(plan, match) && dt_read_ahead_start(plan->ahead)) {
        g->ahead = plan->ahead;
        plan->ahead = NULL;
    }
    destroy(plan);
}

dt_result_t dt_restore(const struct dt_source *source,
                       const struct dt_match *match, struct dt_copy *copy,
                       size_t rounds, struct dt_error *err)
{
    struct restore *g = create(source);
    dt_result_t rc = DT_ERR_NO_MEMORY;
    size_t done = 0;
    bool broken = false;
    if (g) {
        g->copy = copy;
        g->err = err;
        begin_reading_ahead(g, match);
        if (walk(g, match) && settle(g))
            verify_headers(g);
        rc = g->rc;
        done = g->rounds;
        broken = g->broken;
        destroy(g);
    } else {
        dt_error_set(err, rc, "out of memory");
    }
    while (done++ < rounds && !broken) {
        struct dt_error why = {0};
        dt_result_t other = dt_fetch(source, NULL, 0, &why);
        broken = other != DT_SUCCESS;
        if (broken && rc == DT_SUCCESS)
            rc = dt_error_set(err, other, "%s", why.text);
    }
    return rc;
}
