/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc.c - a topology of this node, from hwloc. */
#include <errno.h>
#include <hwloc.h>
#include <string.h>

#include "topo/hwloc_xml.h"

/* Say what is wanted of hwloc, and ask it. */
static int load(hwloc_topology_t hwloc)
{
    /* they start drivers or X clients, which can take seconds or hang; NVML is
     * asked by us */
    static const char *const unwanted[] = {"gl", "opencl", "cuda", "nvml",
                                           "levelzero"};
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(*unwanted); i++)
        /* fails for a component that this hwloc has not */
        (void)hwloc_topology_set_components(
            hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
    /* the whole node, not what a cgroup leaves of it */
    if (hwloc_topology_set_flags(hwloc,
                                 HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) ||
        hwloc_topology_set_io_types_filter(hwloc,
                                           HWLOC_TYPE_FILTER_KEEP_IMPORTANT))
        return -1;
    return hwloc_topology_load(hwloc);
}

/* By way of XML, so that there is one way to read what hwloc says. */
static dt_result_t convert(hwloc_topology_t hwloc, dt_topo_t **topo,
                           struct dt_error *err)
{
    char *xml;
    int len;
    if (!hwloc_topology_is_thissystem(hwloc))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "hwloc describes another machine than this node: "
                            "unset HWLOC_XMLFILE, HWLOC_SYNTHETIC and "
                            "HWLOC_FSROOT");
    if (hwloc_topology_export_xmlbuffer(hwloc, &xml, &len, 0))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "hwloc cannot describe this node: %s",
                            strerror(errno));
    dt_result_t rc = dt_topo_read_hwloc(xml, strlen(xml), topo, err);
    hwloc_free_xmlbuffer(hwloc, xml);
    return rc;
}

dt_result_t dt_topo_read_live(dt_topo_t **topo, struct dt_error *err)
{
    hwloc_topology_t hwloc;
    dt_topo_t *made = NULL;
    if (hwloc_topology_init(&hwloc))
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc =
        load(hwloc)
            ? dt_error_set(err, DT_ERR_SYSTEM,
                           "hwloc cannot read this node: %s", strerror(errno))
            : convert(hwloc, &made, err);
    hwloc_topology_destroy(hwloc);
    if (rc != DT_SUCCESS)
        return rc;
    dt_hwloc_ask_ports(made, "/sys/class/infiniband");
    dt_topo_text(made->source, sizeof(made->source), "hwloc");
    *topo = made;
    return DT_SUCCESS;
}
