/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc_ports.c - what the kernel says of the ports of NICs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "topo/hwloc_xml.h"

/* One line of a port's folder; false if it cannot be read. */
static bool read_line(const char *folder, const dt_topo_nic_t *nic,
                      const char *what, char text[64])
{
    char path[512];
    int n = snprintf(path, sizeof(path), "%s/%s/ports/%d/%s", folder, nic->name,
                     nic->port > 0 ? nic->port : 1, what);
    if (n < 0 || (size_t)n >= sizeof(path) || strchr(nic->name, '/'))
        return false;
    size_t size; /* of a page, whatever is in it */
    int fd = dt_file_open(AT_FDCWD, path, &size);
    if (fd < 0)
        return false;
    ssize_t got = dt_file_read(fd, text, 63, 0);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static void ask_port(dt_topo_nic_t *nic, const char *folder)
{
    char text[64];
    if (read_line(folder, nic, "state", text)) { /* "4: ACTIVE" */
        nic->state = strtoul(text, NULL, 10) == 4 ? DT_LINK_UP : DT_LINK_DOWN;
        nic->port = nic->port > 0 ? nic->port : 1;
    }
    if (read_line(folder, nic, "rate", text)) { /* "400 Gb/sec (4X NDR)" */
        unsigned long gbps = strtoul(text, NULL, 10);
        nic->gbps = gbps < 1000000 ? (uint32_t)gbps : 0;
    }
    if (nic->type == DT_NIC_EFA || nic->type == DT_NIC_SLINGSHOT ||
        !read_line(folder, nic, "link_layer", text))
        return;
    if (strncmp(text, "InfiniBand", strlen("InfiniBand")) == 0)
        nic->type = DT_NIC_IB;
    else if (strncmp(text, "Ethernet", strlen("Ethernet")) == 0)
        nic->type = DT_NIC_ROCE;
}

void dt_hwloc_ask_ports(dt_topo_t *topo, const char *folder)
{
    for (uint32_t i = 0; i < topo->nnics; i++)
        ask_port(&topo->nic[i], folder);
}
