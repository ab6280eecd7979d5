/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernel.c - what the kernel knows of GPUs and NICs, read from files of /proc
 * and /sys, which start no driver. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "topo/sources/kernel.h"

/* What follows "key:" and blanks on its line; "" if it is not there. */
static void find_line(const char *text, const char *key, char *value,
                      size_t size)
{
    size_t length = strlen(key);
    *value = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || line[length] != ':')
            continue;
        line += length + 1;
        line += strspn(line, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
        return;
    }
}

/* The driver's file about one GPU: "Device Minor: 	 0" and so on. */
static void ask_nvidia(dt_topo_gpu_t *gpu, const char *folder)
{
    char path[512], text[4096], value[128];
    size_t size; /* unused: 0 for files of /proc */
    snprintf(path, sizeof(path), "%s/%s/information", folder, gpu->bus);
    int fd = dt_file_open(AT_FDCWD, path, &size);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    find_line(text, "Device Minor", value, sizeof(value));
    int64_t number;
    if (dt_number_parse(value, 0, 1023, &number)) {
        gpu->minor_number = (int16_t)number;
        snprintf(gpu->file, sizeof(gpu->file), "/dev/nvidia%d", (int)number);
    }
    find_line(text, "GPU UUID", value, sizeof(value));
    if (!*gpu->uuid && !strncmp(value, "GPU-", 4) && !strchr(value, '?'))
        dt_topo_text(gpu->uuid, sizeof(gpu->uuid), value);
    find_line(text, "Model", value, sizeof(value));
    if (*value)
        dt_topo_text(gpu->name, sizeof(gpu->name), value);
}

/* The GPU's only render node; partitions have their own elsewhere. */
static void ask_drm(dt_topo_gpu_t *gpu, const char *folder)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s/drm", folder, gpu->bus);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (!strncmp(entry->d_name, "renderD", 7))
            snprintf(gpu->file, sizeof(gpu->file), "/dev/dri/%.40s",
                     entry->d_name);
    if (dir)
        closedir(dir);
}

void dt_kernel_devices(dt_topo_t *topo, const char *nvidia, const char *pci)
{
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        dt_topo_gpu_t *gpu = &topo->gpu[i];
        if (!*gpu->bus || *gpu->file || gpu->part >= 0)
            continue;
        if (gpu->vendor == DT_VENDOR_NVIDIA)
            ask_nvidia(gpu, nvidia);
        else
            ask_drm(gpu, pci);
    }
}

/* A file of /sys with one line; false if it cannot be read. */
static bool read_short(const char *path, char text[64])
{
    size_t size; /* unused: a page for files of /sys */
    int fd = dt_file_open(AT_FDCWD, path, &size);
    if (fd < 0)
        return false;
    ssize_t got = dt_file_read(fd, text, 63, 0);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* ---- PCIe links ---- */

static void ask_link(const char *folder, const char *bus, dt_topo_pcie_t *link)
{
    char path[512], own[64], above[64], width[64];
    dt_topo_pcie_t upper;
    if (!*bus)
        return;
    snprintf(path, sizeof(path), "%s/%s/max_link_speed", folder, bus);
    if (!read_short(path, own))
        return;
    snprintf(path, sizeof(path), "%s/%s/current_link_width", folder, bus);
    if (!read_short(path, width))
        return;
    dt_topo_pcie(link, own, width);
    /* the link of the kernel leads into the tree, where the port is above */
    snprintf(path, sizeof(path), "%s/%s/../max_link_speed", folder, bus);
    if (!read_short(path, above))
        return;
    dt_topo_pcie(&upper, above, width);
    if (upper.generation && upper.generation < link->generation)
        *link = upper;
}

void dt_kernel_pcie(dt_topo_t *topo, const char *pci)
{
    for (uint32_t i = 0; i < topo->ngpus; i++)
        ask_link(pci, topo->gpu[i].bus, &topo->gpu[i].pcie);
    for (uint32_t i = 0; i < topo->nnics; i++)
        ask_link(pci, topo->nic[i].bus, &topo->nic[i].pcie);
}

/* ---- ports of NICs ---- */

/* One line of a port's folder; false if it cannot be read. */
static bool read_line(const char *folder, const dt_topo_nic_t *nic,
                      const char *what, char text[64])
{
    char path[512];
    int n = snprintf(path, sizeof(path), "%s/%s/ports/%d/%s", folder, nic->name,
                     nic->port > 0 ? nic->port : 1, what);
    return n > 0 && (size_t)n < sizeof(path) && !strchr(nic->name, '/') &&
           read_short(path, text);
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

void dt_kernel_ports(dt_topo_t *topo, const char *folder)
{
    for (uint32_t i = 0; i < topo->nnics; i++)
        ask_port(&topo->nic[i], folder);
}
