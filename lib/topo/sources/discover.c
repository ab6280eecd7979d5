/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* discover.c - this node: hwloc, and NVML where it is installed. */
#include "topo/sources.h"
#include "topo/sources/kernel.h"

dt_result_t dt_topo_discover(bool drivers, dt_topo_t **topo,
                             struct dt_error *err)
{
    dt_topo_t *made = NULL;
    struct dt_error why = {""};
    dt_result_t rc = dt_topo_read_live(&made, err);
    if (rc != DT_SUCCESS)
        return rc;
    const char *source = "hwloc";
    dt_kernel_devices(made, "/proc/driver/nvidia/gpus", "/sys/bus/pci/devices");
    dt_kernel_pcie(made, "/sys/bus/pci/devices");
    rc = drivers ? dt_topo_ask_nvml(made, &why) : DT_ERR_NOT_FOUND;
    if (rc == DT_SUCCESS)
        source = "hwloc, NVML";
    else if (rc != DT_ERR_NOT_FOUND) /* what hwloc knows is still right */
        dt_topo_text(made->missing, sizeof(made->missing), why.text);
    dt_topo_text(made->source, sizeof(made->source), source);
    *topo = made;
    return DT_SUCCESS;
}
