/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc_xml.c - the objects of an hwloc XML file. */
#include "topo/hwloc_xml.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/xml.h"

#define MAX_OBJECTS 65536 /* 4096 CPUs with their caches are 30,000 */

struct reader {
    struct dt_hwloc_tree *tree;
    int open; /* innermost open object, -1 none */
};

/* ---- numbers ---- */

/* A number at the start of text; false if there is none. */
static bool number(const char *text, int base, uint64_t *value)
{
    if (!text || !isalnum((unsigned char)*text))
        return false;
    char *end;
    errno = 0;
    unsigned long long got = strtoull(text, &end, base);
    if (end == text || errno)
        return false;
    *value = got;
    return true;
}

static uint32_t number32(const char *text, int base, uint32_t unknown)
{
    uint64_t value;
    return number(text, base, &value) && value < UINT32_MAX ? (uint32_t)value
                                                            : unknown;
}

/* Has a set of hwloc ("0x0000ffff,,0x0") a member? */
static bool any_bit(const char *set)
{
    for (; set && *set; set++) {
        if (set[0] == '0' && set[1] == 'x')
            set++;
        else if (isxdigit((unsigned char)*set) && *set != '0')
            return true;
    }
    return false;
}

/* ---- objects ---- */

static enum dt_hwloc_type type_of(const char *name)
{
    static const struct {
        const char *name;
        enum dt_hwloc_type type;
    } table[] = {
        {"Machine", DT_HWLOC_MACHINE}, {"System", DT_HWLOC_MACHINE},
        {"Package", DT_HWLOC_PACKAGE}, {"Socket", DT_HWLOC_PACKAGE},
        {"NUMANode", DT_HWLOC_NUMA},   {"Core", DT_HWLOC_CORE},
        {"PU", DT_HWLOC_PU},           {"Bridge", DT_HWLOC_BRIDGE},
        {"PCIDev", DT_HWLOC_PCI},      {"OSDev", DT_HWLOC_OSDEV},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (strcmp(name, table[i].name) == 0)
            return table[i].type;
    return DT_HWLOC_OTHER;
}

static struct dt_hwloc_object *append(struct dt_hwloc_tree *tree)
{
    if (tree->n == tree->room) {
        size_t room = tree->room ? 2 * tree->room : 256;
        void *grown = realloc(tree->object, room * sizeof(*tree->object));
        if (!grown)
            return NULL;
        tree->object = grown;
        tree->room = room;
    }
    struct dt_hwloc_object *object = &tree->object[tree->n++];
    *object = (struct dt_hwloc_object){.parent = -1, .osdev = -1, .index = -1};
    return object;
}

/* "0302 [10de:2330] [10de:16c1] a1" */
static void read_pci_type(struct dt_hwloc_object *object, const char *text)
{
    object->pci_class = number32(text, 16, 0);
    const char *ids = text ? strchr(text, '[') : NULL;
    if (!ids)
        return;
    object->pci_vendor = number32(ids + 1, 16, 0);
    ids = strchr(ids, ':');
    object->pci_device = number32(ids ? ids + 1 : NULL, 16, 0);
}

static void read_bridge(struct dt_hwloc_object *object,
                        const struct dt_xml_element *element)
{
    const char *type = dt_xml_attribute(element, "bridge_type");
    const char *span = dt_xml_attribute(element, "bridge_pci");
    object->host = type && type[0] == '0';
    if (!object->host || !span)
        return;
    /* "0000:[80-9c]" is the host bridge of bus 0000:80 */
    const char *bus = strchr(span, '[');
    snprintf(object->bus, sizeof(object->bus), "%04x:%02x",
             number32(span, 16, 0),
             number32(bus ? bus + 1 : NULL, 16, 0) & 0xff);
}

static dt_result_t read_object(struct reader *reader,
                               const struct dt_xml_element *element,
                               struct dt_error *err)
{
    const char *type = dt_xml_attribute(element, "type");
    if (!type)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: an object without a type",
                            element->line);
    if (reader->tree->n == MAX_OBJECTS)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "line %zu: more than %d objects in one node",
                            element->line, MAX_OBJECTS);
    struct dt_hwloc_object *object = append(reader->tree);
    if (!object)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    object->type = type_of(type);
    object->parent = reader->open;
    object->line = element->line;
    object->os_index =
        number32(dt_xml_attribute(element, "os_index"), 10, UINT32_MAX);
    number(dt_xml_attribute(element, "gp_index"), 10, &object->gp_index);
    number(dt_xml_attribute(element, "local_memory"), 10, &object->memory);
    object->has_cpus = any_bit(dt_xml_attribute(element, "cpuset"));
    const char *online = dt_xml_attribute(element, "online_cpuset");
    object->offline = online && !any_bit(online);
    object->osdev =
        (int)number32(dt_xml_attribute(element, "osdev_type"), 10, 99);
    dt_topo_text(object->name, sizeof(object->name),
                 dt_xml_attribute(element, "name"));
    dt_topo_text(object->subtype, sizeof(object->subtype),
                 dt_xml_attribute(element, "subtype"));
    dt_topo_bus(dt_xml_attribute(element, "pci_busid"), object->bus);
    read_pci_type(object, dt_xml_attribute(element, "pci_type"));
    if (object->type == DT_HWLOC_BRIDGE)
        read_bridge(object, element);
    reader->open = (int)reader->tree->n - 1;
    return DT_SUCCESS;
}

/* ---- infos ---- */

/* "Port1State" is "4: ACTIVE" to the kernel; the first active port counts,
 * else the first. */
static void read_port(struct dt_hwloc_object *object, const char *name,
                      const char *value)
{
    char *end;
    unsigned long port = strtoul(name + strlen("Port"), &end, 10);
    if (port == 0 || port > 255)
        return;
    if (strcmp(end, "State") == 0) {
        uint32_t state = number32(value, 10, 0);
        if (object->port && (object->port_state == 4 || state != 4))
            return;
        object->port = (uint32_t)port;
        object->port_state = state;
        object->port_lid = 0;
    } else if (strcmp(end, "LID") == 0 && object->port == port)
        object->port_lid = number32(value, 16, 0);
}

static void read_info(struct dt_hwloc_object *object, const char *name,
                      const char *value)
{
    uint64_t kib;
    if (strcmp(name, "GPUModel") == 0 || strcmp(name, "PCIDevice") == 0)
        dt_topo_text(object->model, sizeof(object->model), value);
    else if (strcmp(name, "NVIDIAUUID") == 0 || strcmp(name, "AMDUUID") == 0)
        dt_topo_text(object->uuid, sizeof(object->uuid), value);
    else if (strcmp(name, "PCIBusID") == 0)
        dt_topo_bus(value, object->bus);
    else if ((strcmp(name, "CUDAGlobalMemorySize") == 0 ||
              strcmp(name, "RSMIVRAMSize") == 0) &&
             number(value, 10, &kib) && kib <= UINT64_MAX / 1024)
        object->memory = kib * 1024;
    else if (strncmp(name, "Port", strlen("Port")) == 0)
        read_port(object, name, value);
}

/* ---- the file ---- */

static dt_result_t read_root(const struct dt_xml_element *element,
                             struct dt_error *err)
{
    if (strcmp(element->name, "topology") != 0)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: <%s> where hwloc XML has <topology>",
                            element->line, element->name);
    const char *version = dt_xml_attribute(element, "version");
    if (version && strncmp(version, "1.", 2) != 0 &&
        strncmp(version, "2.", 2) != 0)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "hwloc XML version %.20s, expected 1 or 2: write "
                            "it with an lstopo of hwloc 2",
                            version);
    return DT_SUCCESS;
}

static dt_result_t on_start(void *arg, const struct dt_xml_element *element,
                            struct dt_error *err)
{
    struct reader *reader = arg;
    if (element->depth == 0)
        return read_root(element, err);
    if (strcmp(element->name, "object") == 0)
        return read_object(reader, element, err);
    if (strcmp(element->name, "info") == 0 && reader->open >= 0) {
        const char *name = dt_xml_attribute(element, "name");
        const char *value = dt_xml_attribute(element, "value");
        if (name && value)
            read_info(&reader->tree->object[reader->open], name, value);
    }
    return DT_SUCCESS;
}

static void on_end(void *arg, const char *name, size_t depth)
{
    struct reader *reader = arg;
    (void)depth;
    if (strcmp(name, "object") == 0)
        reader->open = reader->tree->object[reader->open].parent;
}

dt_result_t dt_hwloc_parse(const char *data, size_t len,
                           struct dt_hwloc_tree *tree, struct dt_error *err)
{
    *tree = (struct dt_hwloc_tree){0};
    struct reader reader = {.tree = tree, .open = -1};
    struct dt_xml_handler handler = {.start = on_start, .end = on_end};
    return dt_xml_walk(data, len, &handler, &reader, err);
}

void dt_hwloc_free(struct dt_hwloc_tree *tree)
{
    free(tree->object);
    *tree = (struct dt_hwloc_tree){0};
}

bool dt_hwloc_within(const struct dt_hwloc_tree *tree, int i, int above)
{
    return i < (int)tree->n && (i == above || tree->object[i].parent >= above);
}

int dt_hwloc_above(const struct dt_hwloc_tree *tree, int i,
                   enum dt_hwloc_type type)
{
    while (i >= 0 && tree->object[i].type != type)
        i = tree->object[i].parent;
    return i;
}

void dt_hwloc_cpus(const struct dt_hwloc_tree *tree, int i, dt_cpuset_t *cpus)
{
    *cpus = (dt_cpuset_t){0};
    for (int c = i; dt_hwloc_within(tree, c, i); c++) {
        const struct dt_hwloc_object *pu = &tree->object[c];
        if (pu->type == DT_HWLOC_PU && !pu->offline)
            dt_cpuset_add(cpus, pu->os_index);
    }
}
