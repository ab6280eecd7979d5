/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gres.c - a topology from Slurm's gres.conf: its lines of Name=gpu. Those of
 * the first NodeName= count, and those without one. Cores= are numbers that
 * Slurm gives to cores, not the operating system's: each becomes a CPU with a
 * core of its own, which is right where a core has one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/sources.h"
#include "topo/model/kv.h"

struct reader {
    const char *at, *end; /* what is left */
    size_t number;        /* of the last line, from 1 */
    char *joined;         /* a line and those that continue it */
    struct dt_kv_lines lines;
    dt_topo_t *topo;
    char *node; /* the first NodeName=, NULL until it is seen */
    /* Links= of each GPU; self[i] is where GPU i stands in these lists */
    struct {
        size_t n;
        size_t self;
        uint16_t count[DT_TOPO_MAX_GPUS];
    } links[DT_TOPO_MAX_GPUS];
};

/* The pairs of one line; their values belong to the line. */
struct entry {
    const struct dt_kv *name, *node, *type, *file, *files, *count, *cores,
        *links;
};

/* ---- lines ---- */

/* A comment is not continued. Sets *end to where the text of the line ends. */
static bool is_continued(const char *at, const char **end)
{
    const char *last = *end;
    while (last > at && strchr(" \t\r", last[-1]))
        last--;
    if (last == at || last[-1] != '\\' || memchr(at, '#', (size_t)(last - at)))
        return false;
    *end = last - 1;
    return true;
}

/* The next line with pairs, in r->lines; *more is false at the end. */
static dt_result_t next_line(struct reader *r, bool *more)
{
    for (*more = false; r->at < r->end && !*more;) {
        size_t len = 0, first = r->number + 1;
        bool continued;
        do {
            size_t left = (size_t)(r->end - r->at);
            const char *nl = memchr(r->at, '\n', left);
            const char *end = nl ? nl : r->end;
            continued = is_continued(r->at, &end);
            memcpy(r->joined + len, r->at, (size_t)(end - r->at));
            len += (size_t)(end - r->at);
            if (continued)
                r->joined[len++] = ' ';
            r->at = nl ? nl + 1 : r->end;
            r->number++;
        } while (continued && r->at < r->end);
        r->lines.at = r->joined;
        r->lines.end = r->joined + len;
        r->lines.number = first - 1;
        dt_result_t rc = dt_kv_next(&r->lines, more);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return DT_SUCCESS;
}

static void read_entry(const struct dt_kv_lines *line, struct entry *entry)
{
    *entry = (struct entry){0};
    const struct {
        const char *key;
        const struct dt_kv **pair;
    } keys[] = {
        {"Name", &entry->name},   {"NodeName", &entry->node},
        {"Type", &entry->type},   {"File", &entry->file},
        {"Files", &entry->file},  {"MultipleFiles", &entry->files},
        {"Count", &entry->count}, {"Cores", &entry->cores},
        {"CPUs", &entry->cores},  {"Links", &entry->links},
    };
    for (size_t i = 0; i < line->n; i++)
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            if (strcasecmp(line->pair[i].key, keys[k].key) == 0)
                *keys[k].pair = &line->pair[i];
}

/* ---- device files ---- */

struct files {
    size_t n;
    char name[DT_TOPO_MAX_GPUS][sizeof(((dt_topo_gpu_t *)NULL)->file)];
};

static dt_result_t bad_file(const struct reader *r, const struct dt_kv *pair)
{
    return dt_kv_bad(&r->lines, pair->key, pair->value,
                     "at most 64 device files of less than 64 characters, "
                     "as in /dev/nvidia[0-3,5]");
}

/* before, a number of at least width digits unless that is negative, after */
static bool add_file(struct files *files, const char *before, size_t nbefore,
                     int width, unsigned number, const char *after,
                     size_t nafter)
{
    if (files->n == DT_TOPO_MAX_GPUS)
        return false;
    char digits[16] = "", *name = files->name[files->n];
    if (width >= 0)
        snprintf(digits, sizeof(digits), "%0*u", width, number);
    size_t ndigits = strlen(digits);
    if (nbefore + ndigits + nafter >= sizeof(files->name[0]))
        return false;
    memcpy(name, before, nbefore);
    memcpy(name + nbefore, digits, ndigits);
    memcpy(name + nbefore + ndigits, after, nafter);
    name[nbefore + ndigits + nafter] = '\0';
    files->n++;
    return true;
}

/* Up to nine digits; NULL if there is none. */
static const char *decimal(const char *at, unsigned *value)
{
    size_t n = strspn(at, "0123456789");
    *value = n && n <= 9 ? (unsigned)strtoul(at, NULL, 10) : 0;
    return n && n <= 9 ? at + n : NULL;
}

/* The files of one item of the list, at ... end. */
static bool expand(struct files *files, const char *at, const char *end)
{
    const char *open = memchr(at, '[', (size_t)(end - at));
    if (!open)
        return end > at &&
               add_file(files, at, (size_t)(end - at), -1, 0, "", 0);
    const char *close = memchr(open, ']', (size_t)(end - open));
    if (!close || memchr(close, '[', (size_t)(end - close)))
        return false;
    for (const char *in = open; in < close;) {
        unsigned first, last;
        const char *start = in + 1;
        in = decimal(start, &first);
        int width = in && *start == '0' ? (int)(in - start) : 0;
        last = first;
        if (in && *in == '-')
            in = decimal(in + 1, &last);
        if (!in || (*in != ',' && in != close) || last < first)
            return false;
        for (unsigned i = first; i <= last; i++)
            if (!add_file(files, at, (size_t)(open - at), width, i, close + 1,
                          (size_t)(end - close - 1)))
                return false;
    }
    return true;
}

static dt_result_t list_files(const struct reader *r, const struct dt_kv *pair,
                              struct files *files)
{
    files->n = 0;
    for (const char *at = pair->value;; at++) {
        const char *start = at;
        bool inside = false;
        for (; *at && (inside || *at != ','); at++)
            inside = *at == '[' || (inside && *at != ']');
        if (!expand(files, start, at))
            return bad_file(r, pair);
        if (!*at)
            return DT_SUCCESS;
    }
}

/* ---- one line ---- */

static dt_result_t read_links(struct reader *r, const struct dt_kv *pair,
                              size_t gpu)
{
    static const char expected[] =
        "a number for each GPU of the node, -1 for the one itself, as in "
        "-1,4,4,4";
    bool self = false;
    for (const char *at = pair->value;; at++) {
        size_t n = r->links[gpu].n;
        if (n == DT_TOPO_MAX_GPUS)
            return dt_kv_bad(&r->lines, pair->key, pair->value, expected);
        unsigned count = 0;
        if (strncmp(at, "-1", 2) == 0 && !self) {
            r->links[gpu].self = n;
            self = true;
            at += 2;
        } else {
            at = decimal(at, &count);
        }
        if (!at || count > UINT16_MAX || (*at && *at != ','))
            return dt_kv_bad(&r->lines, pair->key, pair->value, expected);
        r->links[gpu].count[n] = (uint16_t)count;
        r->links[gpu].n = n + 1;
        if (!*at)
            break;
    }
    return self ? DT_SUCCESS
                : dt_kv_bad(&r->lines, pair->key, pair->value, expected);
}

static dt_result_t add_gpu(struct reader *r, const struct entry *entry,
                           const char *file)
{
    dt_topo_gpu_t *gpu = dt_topo_add_gpu(r->topo, r->lines.err);
    if (!gpu)
        return DT_ERR_UNSUPPORTED;
    dt_topo_text(gpu->name, sizeof(gpu->name),
                 entry->type ? entry->type->value : "");
    dt_topo_text(gpu->file, sizeof(gpu->file), file);
    static const char nvidia[] = "/dev/nvidia";
    size_t len = sizeof(nvidia) - 1;
    if (strncmp(file, nvidia, len) == 0) {
        unsigned number;
        const char *end = decimal(file + len, &number);
        gpu->vendor = DT_VENDOR_NVIDIA;
        if (end && !*end && number <= INT16_MAX)
            gpu->minor_number = (int16_t)number;
    }
    if (entry->cores) {
        dt_result_t rc = dt_kv_cpu_list(&r->lines, entry->cores, &gpu->cpus);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return entry->links ? read_links(r, entry->links, r->topo->ngpus - 1)
                        : DT_SUCCESS;
}

/* The number of GPUs that the line describes, and their files, "" if it names
 * none. */
static dt_result_t count_gpus(const struct reader *r, const struct entry *entry,
                              struct files *files, uint64_t *n)
{
    uint64_t count = 1;
    dt_result_t rc = DT_SUCCESS;
    memset(files, 0, sizeof(*files));
    if (entry->count)
        rc = dt_kv_number(&r->lines, entry->count, DT_TOPO_MAX_GPUS, &count);
    if (rc != DT_SUCCESS)
        return rc;
    if (entry->file || entry->files) {
        const struct dt_kv *pair = entry->file ? entry->file : entry->files;
        rc = list_files(r, pair, files);
        if (rc != DT_SUCCESS)
            return rc;
        /* all files of one GPU, the last one its own: a MIG instance */
        if (!entry->file) {
            memmove(files->name[0], files->name[files->n - 1],
                    sizeof(files->name[0]));
            files->n = 1;
        }
        if (entry->count && count != files->n)
            return dt_kv_bad(&r->lines, entry->count->key, entry->count->value,
                             "as many as there are device files");
        count = files->n;
    }
    if (entry->links && count > 1)
        return dt_kv_bad(&r->lines, entry->links->key, entry->links->value,
                         "one line for each GPU that has links");
    *n = count;
    return DT_SUCCESS;
}

static dt_result_t read_line(struct reader *r)
{
    struct entry entry;
    read_entry(&r->lines, &entry);
    if (!entry.name || strcasecmp(entry.name->value, "gpu") != 0)
        return DT_SUCCESS;
    if (entry.node && !r->node) {
        r->node = strdup(entry.node->value);
        if (!r->node)
            return dt_error_set(r->lines.err, DT_ERR_NO_MEMORY,
                                "out of memory");
    }
    if (entry.node && strcmp(entry.node->value, r->node) != 0)
        return DT_SUCCESS;
    struct files files;
    uint64_t n = 0;
    dt_result_t rc = count_gpus(r, &entry, &files, &n);
    for (size_t i = 0; rc == DT_SUCCESS && i < n; i++)
        rc = add_gpu(r, &entry, files.name[i]);
    return rc;
}

/* ---- the file ---- */

/* Slurm orders GPUs by the place of -1 in their lists, not by line. */
static dt_result_t join_links(struct reader *r)
{
    uint32_t n = r->topo->ngpus;
    for (size_t i = 0; i < n; i++) {
        if (r->links[i].n > n)
            return dt_error_set(r->lines.err, DT_ERR_CORRUPT,
                                "Links= of GPU %zu counts %zu GPUs, %u are "
                                "listed: expected one line for each",
                                i, r->links[i].n, n);
        for (size_t k = 0; k < n && r->links[i].n; k++) {
            if (k == i || !r->links[k].n)
                continue;
            size_t other = r->links[k].self;
            if (other == r->links[i].self)
                return dt_error_set(r->lines.err, DT_ERR_CORRUPT,
                                    "Links= of GPUs %zu and %zu have -1 in "
                                    "the same place: each has its own",
                                    k < i ? k : i, k < i ? i : k);
            if (other < r->links[i].n)
                r->topo->links[i][k] = r->links[i].count[other];
        }
    }
    return DT_SUCCESS;
}

static dt_result_t read_all(struct reader *r)
{
    bool more = true;
    while (more) {
        dt_result_t rc = next_line(r, &more);
        if (rc == DT_SUCCESS && more)
            rc = read_line(r);
        if (rc != DT_SUCCESS)
            return rc;
    }
    if (!r->topo->ngpus)
        return dt_error_set(r->lines.err, DT_ERR_CORRUPT,
                            "names no gpu: expected lines such as Name=gpu "
                            "File=/dev/nvidia[0-3]");
    dt_result_t rc = join_links(r);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < DT_TOPO_MAX_CPUS; i++)
        r->topo->cpu[i].core = (uint16_t)i;
    return dt_topo_normalize(r->topo, r->lines.err);
}

dt_result_t dt_topo_read_gres(const char *data, size_t len, dt_topo_t **topo,
                              struct dt_error *err)
{
    dt_result_t rc = DT_ERR_NO_MEMORY;
    dt_topo_t *made = dt_topo_create();
    struct reader *r = calloc(1, sizeof(*r));
    char *joined = malloc(len + 1);
    if (!made || !r || !joined) {
        dt_error_set(err, rc, "out of memory");
        goto free_all;
    }
    r->at = data;
    r->end = data + len;
    r->joined = joined;
    r->topo = made;
    r->lines.err = err;
    rc = read_all(r);
    free(r->node);
    if (rc == DT_SUCCESS) {
        *topo = made;
        made = NULL;
    }
free_all:
    free(joined);
    free(r);
    dt_topo_destroy(made);
    return rc;
}
