/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* read_ahead.c - a thread that reads from disk the blocks that will be needed
 * next.
 *
 * The blocks of the list follow each other in their file. As many as fit into a
 * window are read at once, with O_DIRECT and into huge pages: this takes hardly
 * any processor time and keeps the disk busy. If it fails, the blocks are read
 * one by one by dt_reader_read, so that one place only reports what is wrong
 * with a file. */
#include "ckpt/load/read_ahead.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/drain.h"

#define ALIGN      ((size_t)4096) /* of memory and of offsets, for O_DIRECT */
#define HUGE       ((size_t)2 << 20)
#define WINDOWS    3
#define WINDOW     ((size_t)16 << 20)
#define LIST_MIN   ((size_t)8 << 20) /* bytes that are worth a thread */
#define DIRECT_MIN ((size_t)1 << 20) /* bytes that are worth O_DIRECT */
#define SAMPLES    8

struct block {
    int file;
    size_t offset, len;
    char *data; /* once it has been read */
};

/* Blocks up to end-1 are in it; those from good on could not be read. */
struct window {
    char *at;
    size_t end, good;
    dt_result_t rc;
    struct dt_error err;
};

struct dt_read_ahead {
    struct dt_reader reader;
    size_t count, room, bytes;
    struct block *block;

    char *memory, *map; /* map: unaligned, for munmap */
    struct window window[WINDOWS];
    struct dt_drain *thread;
    pthread_mutex_t lock; /* of the next three */
    pthread_cond_t moved;
    size_t filled, freed; /* windows, since the start */
    bool over;

    size_t next, bound; /* the block to take; the end of the window in use */
};

static size_t align_down(size_t at)
{
    return at / ALIGN * ALIGN;
}

static size_t align_up(size_t at)
{
    return align_down(at + ALIGN - 1);
}

/* ---- the list ---- */

dt_result_t dt_read_ahead_open(struct dt_read_ahead **ahead,
                               const struct dt_source *source,
                               struct dt_error *err)
{
    struct dt_read_ahead *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_no_memory(err);
    new->reader = (struct dt_reader){.source = source, .fd = -1};
    pthread_mutex_init(&new->lock, NULL);
    pthread_cond_init(&new->moved, NULL);
    *ahead = new;
    return DT_SUCCESS;
}

dt_result_t dt_read_ahead_add(struct dt_read_ahead *a, int file, size_t offset,
                              size_t len, struct dt_error *err)
{
    if (a->count == a->room) {
        size_t room = a->room ? 2 * a->room : 256;
        void *more = realloc(a->block, room * sizeof(*a->block));
        if (!more)
            return dt_no_memory(err);
        a->block = more;
        a->room = room;
    }
    a->block[a->count++] = (struct block){file, offset, len, NULL};
    a->bytes += len;
    return DT_SUCCESS;
}

/* ---- the thread ---- */

static size_t block_end(const struct block *block)
{
    return block->offset + block->len;
}

/* The number of blocks from first on that can be read at once into room bytes:
 * those that follow each other in one file. *size is the bytes they take. */
static size_t run_of(const struct dt_read_ahead *a, size_t first, size_t room,
                     size_t *size)
{
    const struct block *block = &a->block[first];
    size_t n = 0, begin = align_down(block->offset);
    while (first + n < a->count) {
        if (n > 0 &&
            (block[n].file != block->file ||
             block[n].offset < block_end(&block[n - 1]) ||
             align_down(block[n].offset) > align_up(block_end(&block[n - 1]))))
            break;
        size_t end = align_up(block_end(&block[n])) - begin;
        if (end > room)
            break;
        *size = end;
        n++;
    }
    return n;
}

static bool set_direct(int fd, bool direct)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 &&
           fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) ==
               0;
}

/* Read the bytes begin .. end-1 of a file of size bytes; begin is aligned. The
 * last bytes of a file may have to be read without O_DIRECT. */
static bool read_direct(int fd, char *to, size_t begin, size_t end, size_t size)
{
    size_t stop = align_up(end) <= size ? align_up(end) : align_down(size);
    if (!set_direct(fd, true))
        return false;
    ssize_t n = dt_file_read(fd, to, stop - begin, (off_t)begin);
    if (!set_direct(fd, false) || n != (ssize_t)(stop - begin))
        return false;
    return end <= stop || dt_file_read(fd, to + (stop - begin), end - stop,
                                       (off_t)stop) == (ssize_t)(end - stop);
}

/* Read n blocks to the memory at to, laid out as in the file. Returns how many
 * could be read. */
static size_t read_run(struct dt_read_ahead *a, size_t first, size_t n,
                       char *to, struct window *w)
{
    struct block *block = &a->block[first];
    size_t begin = align_down(block->offset), end = block_end(&block[n - 1]);
    size_t size = a->reader.source->manifest.file[block->file].size;
    bool whole = end - begin >= DIRECT_MIN &&
                 dt_reader_read(&a->reader, block->file, begin, 0, to,
                                &w->err) == DT_SUCCESS &&
                 read_direct(a->reader.fd, to, begin, end, size);
    for (size_t i = 0; i < n; i++) {
        char *data = to + (block[i].offset - begin);
        if (!whole)
            w->rc = dt_reader_read(&a->reader, block[i].file, block[i].offset,
                                   block[i].len, data, &w->err);
        if (w->rc != DT_SUCCESS)
            return i;
        block[i].data = data;
    }
    return n;
}

static void fill(struct dt_read_ahead *a, size_t first, struct window *w)
{
    size_t used = 0, size = 0;
    w->end = first;
    w->rc = DT_SUCCESS;
    while (w->end < a->count && w->rc == DT_SUCCESS) {
        size_t n = run_of(a, w->end, WINDOW - used, &size);
        if (n == 0)
            break;
        w->good = w->end + read_run(a, w->end, n, w->at + used, w);
        w->end += n;
        used += size;
    }
}

/* Wait for a free window. NULL: no more are needed. */
static struct window *next_window(struct dt_read_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->filled - a->freed == WINDOWS && !a->over)
        pthread_cond_wait(&a->moved, &a->lock);
    struct window *w = a->over ? NULL : &a->window[a->filled % WINDOWS];
    pthread_mutex_unlock(&a->lock);
    return w;
}

static void read_all(void *arg)
{
    struct dt_read_ahead *a = arg;
    struct window *w;
    for (size_t first = 0; first < a->count && (w = next_window(a));) {
        fill(a, first, w);
        first = w->rc == DT_SUCCESS ? w->end : a->count;
        pthread_mutex_lock(&a->lock);
        a->filled++;
        pthread_cond_broadcast(&a->moved);
        pthread_mutex_unlock(&a->lock);
    }
}

/* ---- starting ---- */

/* Is the page at offset in the page cache? */
static bool is_cached(int fd, size_t offset)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there = 0;
    void *at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd,
                    (off_t)(offset / page * page));
    if (at == MAP_FAILED)
        return true;
    bool known = mincore(at, page, &there) == 0;
    munmap(at, page);
    return !known || there & 1;
}

/* Are most of the blocks on disk only, and can they be read with O_DIRECT? */
static bool is_worth_it(struct dt_read_ahead *a)
{
    size_t cached = 0, tried = 0;
    if (a->bytes < LIST_MIN)
        return false;
    for (size_t i = 0; i < SAMPLES; i++, tried++) {
        const struct block *block = &a->block[a->count * i / SAMPLES];
        size_t middle = block->offset + block->len / 2;
        char none;
        if (dt_reader_read(&a->reader, block->file, middle, 0, &none, NULL) !=
                DT_SUCCESS ||
            !set_direct(a->reader.fd, true) || !set_direct(a->reader.fd, false))
            return false;
        cached += is_cached(a->reader.fd, middle);
    }
    return 2 * cached < tried;
}

static bool map_windows(struct dt_read_ahead *a)
{
    size_t size = WINDOWS * WINDOW + HUGE;
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    a->map = map;
    a->memory = a->map + (HUGE - (uintptr_t)map % HUGE);
    madvise(a->memory, WINDOWS * WINDOW, MADV_HUGEPAGE);
    for (size_t i = 0; i < WINDOWS; i++)
        a->window[i].at = a->memory + i * WINDOW;
    return true;
}

bool dt_read_ahead_start(struct dt_read_ahead *a)
{
    if (!is_worth_it(a) || !map_windows(a) ||
        dt_drain_start(&a->thread, NULL) != DT_SUCCESS)
        return false;
    dt_drain_run(a->thread, read_all, a);
    return true;
}

/* ---- taking ---- */

/* Free the window in use, and wait for the next one. */
static void next_filled(struct dt_read_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (a->bound > 0) {
        a->freed++;
        pthread_cond_broadcast(&a->moved);
    }
    while (a->filled == a->freed)
        pthread_cond_wait(&a->moved, &a->lock);
    a->bound = a->window[a->freed % WINDOWS].end;
    pthread_mutex_unlock(&a->lock);
}

dt_result_t dt_read_ahead_take(struct dt_read_ahead *a, char **data,
                               struct dt_error *err)
{
    if (a->next == a->count || !a->thread)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "more is taken than was added");
    if (a->next == a->bound)
        next_filled(a);
    const struct window *w = &a->window[a->freed % WINDOWS];
    if (a->next == w->good && w->rc != DT_SUCCESS)
        return dt_error_set(err, w->rc, "%s", w->err.text);
    *data = a->block[a->next++].data;
    return DT_SUCCESS;
}

void dt_read_ahead_close(struct dt_read_ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->over = true;
    pthread_cond_broadcast(&a->moved);
    pthread_mutex_unlock(&a->lock);
    dt_drain_stop(a->thread);
    dt_reader_close(&a->reader);
    if (a->map)
        munmap(a->map, WINDOWS * WINDOW + HUGE);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
    free(a->block);
    free(a);
}
