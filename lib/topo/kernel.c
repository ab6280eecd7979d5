/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernel.c - the device files of GPUs, as drivers show them without being
 * woken. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "topo/sources.h"

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

/* The driver's page about one GPU: "Device Minor: 	 0" and so on. */
static void ask_nvidia(dt_topo_gpu_t *gpu, const char *folder)
{
    char path[512], text[4096], value[128];
    size_t size; /* the kernel says 0 */
    snprintf(path, sizeof(path), "%s/%s/information", folder, gpu->bus);
    int fd = dt_file_open(AT_FDCWD, path, &size);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    find_line(text, "Device Minor", value, sizeof(value));
    char *end;
    unsigned long number = strtoul(value, &end, 10);
    if (end > value && !*end && number < 1024) {
        gpu->minor_number = (int16_t)number;
        snprintf(gpu->file, sizeof(gpu->file), "/dev/nvidia%lu", number);
    }
    find_line(text, "GPU UUID", value, sizeof(value));
    if (!*gpu->uuid && !strncmp(value, "GPU-", 4) && !strchr(value, '?'))
        dt_topo_text(gpu->uuid, sizeof(gpu->uuid), value);
    find_line(text, "Model", value, sizeof(value));
    if (*value)
        dt_topo_text(gpu->name, sizeof(gpu->name), value);
}

/* Its render node, the only one: partitions have others elsewhere. */
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

void dt_topo_ask_kernel(dt_topo_t *topo, const char *nvidia, const char *pci)
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
