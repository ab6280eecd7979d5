/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernel.h - what the kernel knows of GPUs and NICs, read from files of /proc
 * and /sys, which start no driver. */
#ifndef DT_TOPO_KERNEL_H
#define DT_TOPO_KERNEL_H

#include "topo/model/model.h"

/* Fill device files, minor numbers, names and UUIDs of whole GPUs: nvidia is
 * /proc/driver/nvidia/gpus, pci is /sys/bus/pci/devices. */
void dt_kernel_devices(dt_topo_t *topo, const char *nvidia, const char *pci);

/* Fill the PCIe links of GPUs and NICs; pci as above. The speed is the most
 * that both ends can, as an idle device lowers it; the width is what it has
 * now. */
void dt_kernel_pcie(dt_topo_t *topo, const char *pci);

/* Fill type, state and speed of the NICs from folder, which is
 * /sys/class/infiniband, where it has more. */
void dt_kernel_ports(dt_topo_t *topo, const char *folder);

#endif
