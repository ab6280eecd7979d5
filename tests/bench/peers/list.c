/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* list.c - a step: the gradients of a model, one after the other, in place; in
 * buckets, as PyTorch's DDP packs them; or all begun before any is awaited */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "payload.h"

enum { TENSORS = 1024, LINE = 64 };

struct list {
    size_t n, counts[TENSORS];
    char *data[TENSORS];
    char *bucket; /* NULL: none */
};

static void read_list(struct bench *b, struct list *list)
{
    char line[64];
    FILE *file = fopen(b->o.list, "re");
    while (file && list->n < TENSORS && fgets(line, sizeof(line), file))
        if ((list->counts[list->n] = strtoull(line, NULL, 10)) > 0)
            list->n++;
    if (!file || list->n == 0) {
        fprintf(stderr, "bench: %s: no counts in it\n", b->o.list);
        bench_check(b, -1);
    }
    fclose(file);
}

static size_t bytes_of(const struct bench *b, size_t count)
{
    return count * element_size(b->o.type);
}

static size_t padded(const struct bench *b, size_t count)
{
    return (bytes_of(b, count) + LINE - 1) / LINE * LINE;
}

static void dirty(struct bench *b, void *arg)
{
    struct list *list = arg;
    b->turn++;
    for (size_t i = 0; i < list->n; i++)
        payload_fill(list->data[i], list->counts[i], b->o.type, b->meeting.rank,
                     b->turn + (unsigned)i);
}

static size_t wrong(struct bench *b, void *arg)
{
    struct list *list = arg;
    size_t sum = 0;
    for (size_t i = 0; i < list->n; i++)
        sum += payload_wrong(list->data[i], list->counts[i], b->o.type,
                             b->meeting.size, b->turn + (unsigned)i);
    return sum;
}

static void one_by_one(struct bench *b, void *arg)
{
    struct list *list = arg;
    for (size_t i = 0; i < list->n; i++)
        bench_check(b, b->contender->allreduce(list->data[i], list->data[i],
                                               list->counts[i], b->o.type));
}

static void all_begun(struct bench *b, void *arg)
{
    struct list *list = arg;
    for (size_t i = 0; i < list->n; i++)
        bench_check(
            b, b->contender->begin(list->data[i], list->counts[i], b->o.type));
    bench_check(b, b->contender->finish());
}

/* the last tensor of the bucket that begins with first */
static size_t bucket_end(const struct bench *b, const struct list *list,
                         size_t first, size_t *count)
{
    size_t i = first;
    *count = 0;
    while (i < list->n && bytes_of(b, *count) < b->o.bucket)
        *count += list->counts[i++];
    return i;
}

static void in_buckets(struct bench *b, void *arg)
{
    struct list *list = arg;
    for (size_t first = 0, next, count; first < list->n; first = next) {
        char *at = list->bucket;
        next = bucket_end(b, list, first, &count);
        for (size_t i = first; i < next; i++) {
            memcpy(at, list->data[i], bytes_of(b, list->counts[i]));
            at += bytes_of(b, list->counts[i]);
        }
        bench_check(b, b->contender->allreduce(list->bucket, list->bucket,
                                               count, b->o.type));
        at = list->bucket;
        for (size_t i = first; i < next; i++) {
            memcpy(list->data[i], at, bytes_of(b, list->counts[i]));
            at += bytes_of(b, list->counts[i]);
        }
    }
}

static void allocate(struct bench *b, struct list *list, struct work *work)
{
    size_t room = 0, largest = 0, count;
    for (size_t i = 0; i < list->n; i++) {
        room += padded(b, list->counts[i]);
        work->bytes += bytes_of(b, list->counts[i]);
    }
    work->count = list->n;
    list->data[0] = bench_alloc(b, room);
    for (size_t i = 1; i < list->n; i++)
        list->data[i] = list->data[i - 1] + padded(b, list->counts[i - 1]);
    for (size_t first = 0; b->o.bucket && first < list->n;) {
        first = bucket_end(b, list, first, &count);
        largest = count > largest ? count : largest;
    }
    if (largest)
        list->bucket = bench_alloc(b, bytes_of(b, largest));
}

void bench_list(struct bench *b)
{
    struct list *list = calloc(1, sizeof(*list));
    struct work work = {
        .dirty = dirty, .run = one_by_one, .wrong = wrong, .arg = list};
    if (!list)
        bench_check(b, -1);
    read_list(b, list);
    work.name = "list";
    if (b->o.bucket)
        work.run = in_buckets;
    if (b->o.async) {
        work.run = all_begun;
        if (!b->contender->begin)
            bench_check(b, 1);
    }
    allocate(b, list, &work);
    bench_measure(b, &work);
    free(list);
}
