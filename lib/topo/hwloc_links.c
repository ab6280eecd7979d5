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

/* Numbers that are read from text. */
struct list {
    uint64_t *into; /* [room] */
    size_t n, room;
    uint64_t number; /* what was read of the next one */
    bool in_number;
};

struct matrix {
    size_t line, n; /* of n objects */
    uint64_t per_link;
    struct list objects; /* [n], by gp_index */
    struct list values;  /* [n*n] */
};

struct reader {
    const struct dt_hwloc_tree *tree;
    dt_topo_t *topo;
    bool seen[sizeof(kinds) / sizeof(*kinds)];
    struct matrix matrix; /* n is 0 outside of one */
    struct list *list;    /* of the matrix, whose text is read; or NULL */
};

static void close_matrix(struct matrix *matrix)
{
    free(matrix->objects.into);
    free(matrix->values.into);
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
        .objects = {.into = calloc(n, sizeof(uint64_t)), .room = n},
        .values = {.into = calloc(n * n, sizeof(uint64_t)), .room = n * n},
    };
    if (!reader->matrix.objects.into || !reader->matrix.values.into)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    return DT_SUCCESS;
}

static void end_number(struct list *list)
{
    if (list->in_number && list->n < list->room)
        list->into[list->n++] = list->number;
    list->in_number = false;
    list->number = 0;
}

/* Numbers, each perhaps behind "OSDev:". */
static void on_text(void *arg, const char *part, size_t len)
{
    struct list *list = ((struct reader *)arg)->list;
    for (size_t i = 0; list && i < len; i++) {
        unsigned digit = (unsigned)part[i] - '0';
        if (digit > 9) {
            end_number(list);
            if (!isalpha((unsigned char)part[i]) &&
                !strchr(": \t\r\n", part[i]))
                list->n = list->room = 0; /* no list of numbers */
            continue;
        }
        bool fits = list->number <= (UINT64_MAX - digit) / 10;
        list->number = fits ? list->number * 10 + digit : UINT64_MAX;
        list->in_number = true;
    }
}

static void on_end(void *arg, const char *name, size_t depth)
{
    struct reader *reader = arg;
    (void)name;
    if (depth != 2 || !reader->list)
        return;
    end_number(reader->list);
    reader->list = NULL;
}

static dt_result_t on_start(void *arg, const struct dt_xml_element *element,
                            struct dt_error *err)
{
    struct reader *reader = arg;
    struct matrix *matrix = &reader->matrix;
    if (element->depth == 1 && strncmp(element->name, "distances2", 10) == 0)
        return open_matrix(reader, element, err);
    if (element->depth != 2 || matrix->n == 0)
        return DT_SUCCESS;
    if (strcmp(element->name, "indexes") == 0)
        reader->list = &matrix->objects;
    else if (strcmp(element->name, "u64values") == 0)
        reader->list = &matrix->values;
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
    if (matrix->objects.n < n || matrix->values.n < n * n)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: a matrix of %zu objects with %zu of "
                            "them and %zu of %zu values",
                            matrix->line, n, matrix->objects.n,
                            matrix->values.n, n * n);
    int gpu[MAX_OBJECTS];
    uint16_t into[DT_TOPO_MAX_GPUS] = {0};
    for (size_t i = 0; i < n; i++)
        gpu[i] = gpu_of(reader->tree, matrix->objects.into[i]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            uint64_t speed = matrix->values.into[i * n + j];
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
    static const struct dt_xml_handler handler = {on_any, on_end, on_text};
    struct reader reader = {.tree = tree, .topo = topo};
    dt_result_t rc = dt_xml_walk(data, len, &handler, &reader, err);
    if (rc == DT_SUCCESS && reader.matrix.n > 0)
        rc = apply(&reader, err);
    close_matrix(&reader.matrix);
    return rc;
}
