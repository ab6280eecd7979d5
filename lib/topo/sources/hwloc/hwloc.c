/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc.c - a topology of this node, or from an XML file, by hwloc. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/number.h"
#include "topo/sources/child.h"
#include "topo/sources/hwloc/convert.h"
#include "topo/sources/kernel.h"
#include "topo/sources/xml.h"

#define MAX_OBJECTS 65536 /* 4096 CPUs with their caches are 30,000 */
#define MAX_MATRIX  1024  /* objects; hwloc multiplies it in 32 bits */

/* ---- what both have in common ---- */

/* A topology that is not loaded yet. */
static dt_result_t prepare(enum hwloc_type_filter_e io, hwloc_topology_t *hwloc,
                           struct dt_error *err)
{
    if (hwloc_topology_init(hwloc))
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    /* the whole node, not what a cgroup leaves of it */
    if (hwloc_topology_set_flags(*hwloc,
                                 HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
        hwloc_topology_set_io_types_filter(*hwloc, io) == 0)
        return DT_SUCCESS;
    hwloc_topology_destroy(*hwloc);
    return dt_error_set(err, DT_ERR_SYSTEM, "hwloc: %s", strerror(errno));
}

static dt_result_t convert(hwloc_topology_t hwloc, const char *source,
                           dt_topo_t **topo, struct dt_error *err)
{
    dt_topo_t *made = dt_topo_create();
    if (!made)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_topo_text(made->source, sizeof(made->source), source);
    dt_result_t rc = dt_hwloc_convert(hwloc, made, err);
    if (rc == DT_SUCCESS)
        *topo = made;
    else
        dt_topo_destroy(made);
    return rc;
}

/* ---- this node ---- */

/* These start drivers or X clients, which can take seconds or hang; we ask NVML
 * ourselves. */
static void exclude_components(hwloc_topology_t hwloc)
{
    static const char *const unwanted[] = {"gl", "opencl", "cuda", "nvml",
                                           "levelzero"};
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(*unwanted); i++)
        /* fails for a component that this hwloc does not have */
        (void)hwloc_topology_set_components(
            hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
}

dt_result_t dt_topo_read_live(dt_topo_t **topo, struct dt_error *err)
{
    hwloc_topology_t hwloc;
    dt_topo_t *made = NULL;
    dt_result_t rc = prepare(HWLOC_TYPE_FILTER_KEEP_IMPORTANT, &hwloc, err);
    if (rc != DT_SUCCESS)
        return rc;
    exclude_components(hwloc);
    if (hwloc_topology_load(hwloc))
        rc = dt_error_set(err, DT_ERR_SYSTEM, "hwloc cannot read this node: %s",
                          strerror(errno));
    else if (!hwloc_topology_is_thissystem(hwloc))
        rc = dt_error_set(err, DT_ERR_UNSUPPORTED,
                          "hwloc describes another machine than this node: "
                          "unset HWLOC_XMLFILE, HWLOC_SYNTHETIC and "
                          "HWLOC_FSROOT");
    else
        rc = convert(hwloc, "hwloc", &made, err);
    hwloc_topology_destroy(hwloc);
    if (rc != DT_SUCCESS)
        return rc;
    dt_kernel_ports(made, "/sys/class/infiniband");
    *topo = made;
    return DT_SUCCESS;
}

/* ---- a file ---- */

static dt_result_t check_root(const struct dt_xml_element *element,
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

/* The value of an attribute is a number up to max, or it is not there. */
static bool is_below(const struct dt_xml_element *element, const char *name,
                     int64_t max)
{
    const char *text = dt_xml_attribute(element, name);
    int64_t value;
    return !text || dt_number_parse(text, 0, max, &value);
}

/* What hwloc would take without looking, and need all memory or more for. */
static dt_result_t check_element(void *arg,
                                 const struct dt_xml_element *element,
                                 struct dt_error *err)
{
    size_t *objects = arg;
    if (element->depth == 0)
        return check_root(element, err);
    if (!is_below(element, "nbobjs", MAX_MATRIX))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: a matrix of %.20s objects, expected at "
                            "most %d",
                            element->line, dt_xml_attribute(element, "nbobjs"),
                            MAX_MATRIX);
    if (strcmp(element->name, "object") != 0)
        return DT_SUCCESS;
    const char *type = dt_xml_attribute(element, "type");
    if (!type)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: an object without a type",
                            element->line);
    if (strcmp(type, "PU") == 0 &&
        !is_below(element, "os_index", DT_TOPO_MAX_CPUS - 1))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "line %zu: a CPU without a number below %d",
                            element->line, DT_TOPO_MAX_CPUS);
    if (++*objects > MAX_OBJECTS)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "line %zu: more than %d objects in one node",
                            element->line, MAX_OBJECTS);
    return DT_SUCCESS;
}

/* In a child: hwloc trusts what it reads, and a damaged file can crash it. */
static dt_result_t load_file(const char *data, size_t len, dt_topo_t **topo,
                             struct dt_error *err)
{
    hwloc_topology_t hwloc;
    /* a link can end at any PCI device */
    dt_result_t rc = prepare(HWLOC_TYPE_FILTER_KEEP_ALL, &hwloc, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (hwloc_topology_set_xmlbuffer(hwloc, data, (int)len + 1) ||
        hwloc_topology_load(hwloc))
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          "hwloc finds no valid topology in it: write it anew "
                          "with lstopo");
    else
        rc = convert(hwloc, "hwloc XML", topo, err);
    hwloc_topology_destroy(hwloc);
    return rc;
}

dt_result_t dt_topo_read_hwloc(const char *data, size_t len, dt_topo_t **topo,
                               struct dt_error *err)
{
    static const struct dt_xml_handler handler = {.start = check_element};
    size_t objects = 0;
    dt_result_t rc = dt_xml_walk(data, len, &handler, &objects, err);
    return rc == DT_SUCCESS ? dt_child_read(load_file, data, len, topo, err)
                            : rc;
}
