/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* parity.c - the parity file that a node keeps for its redundancy set. */
#include "ckpt/format/parity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/file.h"
#include "ckpt/format/checksum.h"
#include "ckpt/format/failure.h"

#define MAGIC      "DTPARITY"
#define LAYOUT     1
#define PAGE       ((size_t)4096)
#define CHUNK_MAX  ((size_t)1 << 20)
#define ROUND_MAX  ((size_t)32 << 20) /* one chunk of each block of a stripe */
#define FIELDS     72                 /* bytes of the header in use */
#define FIELDS_SUM (FIELDS - 8) /* what the last field is the checksum of */

void dt_parity_init(struct dt_parity *parity, uint64_t tag, int num_nodes,
                    int node, const struct dt_erasure_layout *layout,
                    size_t longest)
{
    size_t length = (longest + (size_t)layout->k - 1) / (size_t)layout->k;
    size_t chunk = ROUND_MAX / (size_t)layout->size;
    *parity = (struct dt_parity){
        .tag = tag,
        .num_nodes = num_nodes,
        .node = node,
        .layout = *layout,
        .length = (length + PAGE - 1) / PAGE * PAGE,
        .chunk = chunk < CHUNK_MAX ? chunk / PAGE * PAGE : CHUNK_MAX,
    };
}

void dt_parity_name(char name[DT_PARITY_NAME], int num_nodes, int node)
{
    snprintf(name, DT_PARITY_NAME, "parity-%05d-of-%05d.bin", node, num_nodes);
}

size_t dt_parity_chunks(const struct dt_parity *parity)
{
    return (parity->length + parity->chunk - 1) / parity->chunk;
}

off_t dt_parity_at(const struct dt_parity *parity, int block, size_t offset)
{
    return (off_t)(DT_PARITY_HEADER + (size_t)block * parity->length + offset);
}

static size_t sum_bytes(const struct dt_parity *parity)
{
    return (size_t)parity->layout.m * dt_parity_chunks(parity) *
           sizeof(uint64_t);
}

/* ---- writing ---- */

static dt_result_t failed(const struct dt_parity *parity, struct dt_error *err)
{
    int why = errno;
    char name[DT_PARITY_NAME];
    dt_parity_name(name, parity->num_nodes, parity->node);
    return dt_error_set(err, dt_file_result(why), "%s: %s", name,
                        strerror(why));
}

static int write_at(int fd, const void *data, size_t len, off_t at)
{
    for (size_t done = 0; done < len;) {
        ssize_t n =
            pwrite(fd, (const char *)data + done, len - done, at + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return -1;
        }
        done += (size_t)n;
    }
    return 0;
}

dt_result_t dt_parity_write(int fd, const struct dt_parity *parity, int block,
                            size_t offset, const void *data, size_t len,
                            struct dt_error *err)
{
    off_t at = dt_parity_at(parity, block, offset);
    if (write_at(fd, data, len, at))
        return failed(parity, err);
    /* The disk begins to write now; only the sync at the end is a promise. */
    sync_file_range(fd, at, (off_t)len, SYNC_FILE_RANGE_WRITE);
    return DT_SUCCESS;
}

static unsigned char *put(unsigned char *to, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++, value >>= 8)
        *to++ = (unsigned char)value;
    return to;
}

static void pack(unsigned char header[DT_PARITY_HEADER],
                 const struct dt_parity *parity, uint64_t sums)
{
    memset(header, 0, DT_PARITY_HEADER);
    memcpy(header, MAGIC, 8);
    unsigned char *at = put(header + 8, LAYOUT, 4);
    at = put(at, (uint64_t)parity->num_nodes, 4);
    at = put(at, (uint64_t)parity->node, 4);
    at = put(at, (uint64_t)parity->layout.first, 4);
    at = put(at, (uint64_t)parity->layout.k, 4);
    at = put(at, (uint64_t)parity->layout.m, 4);
    at = put(at, parity->tag, 8);
    at = put(at, parity->length, 8);
    at = put(at, parity->chunk, 8);
    at = put(at, sums, 8);
    put(at, dt_checksum(header, FIELDS_SUM), 8);
}

dt_result_t dt_parity_finish(int fd, const struct dt_parity *parity,
                             const uint64_t *sum, struct dt_error *err)
{
    unsigned char header[DT_PARITY_HEADER];
    size_t n = sum_bytes(parity) / sizeof(*sum);
    unsigned char *table = malloc(n * sizeof(*sum) + 1);
    if (!table)
        return dt_no_memory(err);
    for (size_t i = 0; i < n; i++)
        put(table + 8 * i, sum[i], 8);
    pack(header, parity, dt_checksum(table, 8 * n));
    dt_result_t rc = DT_SUCCESS;
    if (write_at(fd, table, 8 * n, dt_parity_at(parity, parity->layout.m, 0)) ||
        write_at(fd, header, sizeof(header), 0) || dt_file_sync(fd))
        rc = failed(parity, err);
    free(table);
    return rc;
}

/* ---- reading ---- */

static bool whole_read(int fd, void *to, size_t len, off_t at)
{
    return dt_file_read(fd, to, len, at) == (ssize_t)len;
}

/* Do all parity blocks have their checksums? */
static bool blocks_intact(int fd, const struct dt_parity *parity,
                          const unsigned char *table, unsigned char *chunk)
{
    struct dt_cursor sums = dt_cursor(table, sum_bytes(parity));
    for (int p = 0; p < parity->layout.m; p++)
        for (size_t at = 0; at < parity->length; at += parity->chunk) {
            size_t left = parity->length - at;
            size_t len = left < parity->chunk ? left : parity->chunk;
            if (!whole_read(fd, chunk, len, dt_parity_at(parity, p, at)) ||
                dt_checksum(chunk, len) != dt_cursor_uint(&sums, 8))
                return false;
        }
    return true;
}

/* Is it the header of the parity that is wanted? The size of its chunks, which
 * other versions may choose otherwise, is taken from it. */
static bool header_fits(const unsigned char *header, struct dt_parity *parity,
                        uint64_t *sums)
{
    unsigned char want[DT_PARITY_HEADER];
    struct dt_cursor at = dt_cursor(header + 48, 16);
    uint64_t chunk = dt_cursor_uint(&at, 8);
    *sums = dt_cursor_uint(&at, 8);
    parity->chunk = (size_t)chunk;
    pack(want, parity, *sums);
    return chunk > 0 && chunk <= CHUNK_MAX && chunk % PAGE == 0 &&
           memcmp(header, want, sizeof(want)) == 0;
}

static bool intact(int fd, size_t size, struct dt_parity *parity, bool check)
{
    unsigned char header[DT_PARITY_HEADER];
    uint64_t sums;
    if (!whole_read(fd, header, sizeof(header), 0) ||
        !header_fits(header, parity, &sums))
        return false;
    size_t len = sum_bytes(parity);
    off_t at = dt_parity_at(parity, parity->layout.m, 0);
    if (size != (size_t)at + len)
        return false;
    unsigned char *table = malloc(len + CHUNK_MAX);
    bool good = table && whole_read(fd, table, len, at) &&
                dt_checksum(table, len) == sums &&
                (!check || blocks_intact(fd, parity, table, table + len));
    free(table);
    return good;
}

int dt_parity_open(int dirfd, const struct dt_parity *want, bool check)
{
    struct dt_parity parity = *want;
    char name[DT_PARITY_NAME];
    size_t size;
    dt_parity_name(name, want->num_nodes, want->node);
    int fd = dt_file_open(dirfd, name, &size);
    if (fd < 0 || intact(fd, size, &parity, check))
        return fd;
    close(fd);
    return -1;
}
