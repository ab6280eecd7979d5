/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc_links.c - NVLink and XGMI from the distances of an hwloc XML file. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "topo/hwloc_xml.h"
#include "topo/xml.h"

#define MAX_OBJECTS 512 /* GPUs and switches in one matrix */

static const struct {
    const char *name;
    uint64_t per_link; /* MB/s of one link */
} kinds[] = {{"NVLinkBandwidth", 25000}, {"XGMIBandwidth", 50000}};

struct matrix {
    size_t line;
    size_t n, nobjects, nvalues; /* of n and n*n, how many were read */
    uint64_t per_link;
    uint64_t *object; /* [n], by gp_index */
    uint64_t *value;  /* [n*n] */
};

struct reader {
    const struct dt_hwloc_tree *tree;
    dt_topo_t *topo;
    const char *at, *end; /* the file, behind what was read */
    size_t line;          /* of at */
    bool seen[sizeof(kinds) / sizeof(*kinds)];
    struct matrix matrix; /* n is 0 outside of one */
};

static void close_matrix(struct matrix *matrix)
{
    free(matrix->object);
    free(matrix->value);
    *matrix = (struct matrix){0};
}

static dt_result_t open_matrix(struct reader *reader,
                               const struct dt_xml_element *element,
                               struct dt_error *err)
{
    const char *name = dt_xml_attribute(element, "name");
    const char *count = dt_xml_attribute(element, "nbobjs");
    const char *by = dt_xml_attribute(element, "indexing");
    size_t kind = 0;
    while (kind < sizeof(kinds) / sizeof(*kinds) &&
           (!name || strcmp(name, kinds[kind].name) != 0))
        kind++;
    if (kind == sizeof(kinds) / sizeof(*kinds) || (by && strcmp(by, "gp") != 0))
        return DT_SUCCESS;
    unsigned long n = count ? strtoul(count, NULL, 10) : 0;
    if (reader->seen[kind])
        return dt_error_set(err, DT_ERR_CORRUPT, "line %zu: %s is there twice",
                            element->line, name);
    if (n == 0 || n > MAX_OBJECTS)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: %s of %lu objects, expected 1 to %d",
                            element->line, name, n, MAX_OBJECTS);
    reader->seen[kind] = true;
    reader->matrix = (struct matrix){
        .line = element->line,
        .n = n,
        .per_link = kinds[kind].per_link,
        .object = calloc(n, sizeof(uint64_t)),
        .value = calloc(n * n, sizeof(uint64_t)),
    };
    if (!reader->matrix.object || !reader->matrix.value)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    return DT_SUCCESS;
}

/* The text behind the next such tag from a line on, which the walker does not
 * hand over. It ends with a tag. NULL if it is not found. */
static const char *text_of(struct reader *reader, size_t line, const char *tag)
{
    while (reader->line < line) {
        const char *next =
            memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
        if (!next)
            return NULL;
        reader->at = next + 1;
        reader->line++;
    }
    const char *found = memmem(reader->at, (size_t)(reader->end - reader->at),
                               tag, strlen(tag));
    if (!found) { /* not in this encoding */
        reader->at = reader->end;
        return NULL;
    }
    reader->at = found + strlen(tag); /* of the same line */
    const char *text =
        memchr(reader->at, '>', (size_t)(reader->end - reader->at));
    return text ? text + 1 : NULL;
}

/* Numbers, each perhaps behind "OSDev:", up to a tag or NUL. */
static void read_numbers(const char *text, uint64_t *into, size_t room,
                         size_t *n)
{
    while (*n < room) {
        while (isspace((unsigned char)*text) || *text == ':' ||
               isalpha((unsigned char)*text))
            text++;
        if (!isdigit((unsigned char)*text))
            return;
        char *end;
        into[(*n)++] = strtoull(text, &end, 10);
        text = end;
    }
}

static dt_result_t on_start(void *arg, const struct dt_xml_element *element,
                            struct dt_error *err)
{
    struct reader *reader = arg;
    struct matrix *matrix = &reader->matrix;
    if (element->depth == 1 && strncmp(element->name, "distances2", 10) == 0)
        return open_matrix(reader, element, err);
    bool indexes = strcmp(element->name, "indexes") == 0;
    if (element->depth != 2 || matrix->n == 0 ||
        (!indexes && strcmp(element->name, "u64values") != 0))
        return DT_SUCCESS;
    const char *text =
        text_of(reader, element->line, indexes ? "<indexes" : "<u64values");
    if (text && indexes)
        read_numbers(text, matrix->object, matrix->n, &matrix->nobjects);
    else if (text)
        read_numbers(text, matrix->value, matrix->n * matrix->n,
                     &matrix->nvalues);
    return DT_SUCCESS;
}

#define SWITCH (-2)

/* The GPU that a gp_index stands for, SWITCH, or -1. */
static int gpu_of(const struct dt_hwloc_tree *tree, uint64_t gp_index)
{
    for (size_t i = 0; i < tree->n; i++) {
        const struct dt_hwloc_object *object = &tree->object[i];
        if (object->gp_index != gp_index || object->type < DT_HWLOC_PCI)
            continue;
        if (object->index < 0 && object->type == DT_HWLOC_PCI)
            return SWITCH;
        return object->index;
    }
    return -1;
}

static void add_links(uint16_t *links, uint64_t more)
{
    *links = more > (uint64_t)(UINT16_MAX - *links) ? UINT16_MAX
                                                    : *links + (uint16_t)more;
}

/* The NVSwitches of a node are one fabric: what a GPU has into it, it has to
 * each other GPU there. */
static void join_by_switches(dt_topo_t *topo, const uint16_t *into)
{
    for (uint32_t a = 0; a < topo->ngpus; a++)
        for (uint32_t b = 0; b < topo->ngpus; b++)
            if (a != b && into[a] && into[b]) {
                topo->gpu[a].nvswitch = true;
                add_links(&topo->links[a][b],
                          into[a] < into[b] ? into[a] : into[b]);
            }
}

static dt_result_t apply(const struct reader *reader, struct dt_error *err)
{
    const struct matrix *matrix = &reader->matrix;
    dt_topo_t *topo = reader->topo;
    size_t n = matrix->n;
    if (matrix->nobjects < n || matrix->nvalues < n * n)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: a matrix of %zu objects with %zu of "
                            "them and %zu of %zu values",
                            matrix->line, n, matrix->nobjects, matrix->nvalues,
                            n * n);
    int gpu[MAX_OBJECTS];
    uint16_t into[DT_TOPO_MAX_GPUS] = {0};
    for (size_t i = 0; i < n; i++)
        gpu[i] = gpu_of(reader->tree, matrix->object[i]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            uint64_t speed = matrix->value[i * n + j];
            if (gpu[i] < 0 || gpu[j] == -1 || gpu[i] == gpu[j] || speed == 0)
                continue;
            uint64_t links = speed / matrix->per_link +
                             (speed % matrix->per_link >= matrix->per_link / 2);
            add_links(gpu[j] == SWITCH ? &into[gpu[i]]
                                       : &topo->links[gpu[i]][gpu[j]],
                      links ? links : 1);
        }
    join_by_switches(topo, into);
    return DT_SUCCESS;
}

/* A matrix ends where the next element of its depth begins. */
static dt_result_t on_any(void *arg, const struct dt_xml_element *element,
                          struct dt_error *err)
{
    struct reader *reader = arg;
    if (element->depth == 1 && reader->matrix.n > 0) {
        dt_result_t rc = apply(reader, err);
        close_matrix(&reader->matrix);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return on_start(arg, element, err);
}

dt_result_t dt_hwloc_links(const char *data, size_t len,
                           const struct dt_hwloc_tree *tree, dt_topo_t *topo,
                           struct dt_error *err)
{
    struct reader reader = {
        .tree = tree, .topo = topo, .at = data, .end = data + len, .line = 1};
    struct dt_xml_handler handler = {.start = on_any};
    dt_result_t rc = dt_xml_walk(data, len, &handler, &reader, err);
    if (rc == DT_SUCCESS && reader.matrix.n > 0)
        rc = apply(&reader, err);
    close_matrix(&reader.matrix);
    return rc;
}
