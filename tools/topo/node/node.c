/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node.c - this node: its site file, else what is found on it. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../print/print.h"
#include "node.h"

#define DEVICES "/sys/bus/pci/devices"

enum { NAMED = 3 }; /* GPUs named in a note */

void node_name(const struct node_request *request, char name[HOST_NAME])
{
    const char *slurm = getenv("SLURMD_NODENAME");
    struct utsname system = {.nodename = ""};
    const char *told = request->name ? request->name : slurm;
    if (told && *told) {
        snprintf(name, HOST_NAME, "%s", told);
        return;
    }
    uname(&system);
    snprintf(name, HOST_NAME, "%s", system.nodename);
    name[strcspn(name, ".")] = '\0';
}

/* ---- does the site file match this machine? ---- */

static unsigned long read_number(const char *device, const char *file)
{
    char path[512], text[32] = "";
    snprintf(path, sizeof(path), DEVICES "/%s/%s", device, file);
    FILE *in = fopen(path, "re");
    if (in) {
        if (!fgets(text, sizeof(text), in))
            text[0] = '\0';
        fclose(in);
    }
    return strtoul(text, NULL, 16);
}

/* By PCI class and vendor: the display adapter of a BMC is no GPU. */
static bool is_gpu(const char *device)
{
    unsigned long class = read_number(device, "class") >> 8;
    switch (read_number(device, "vendor")) {
    case 0x10de:
        return class == 0x0300 || class == 0x0302;
    case 0x1002:
        return class == 0x0380 || class == 0x1200;
    case 0x8086:
        return class == 0x0380;
    default:
        return false;
    }
}

static bool named(const dt_topo_t *topo, const char *bus)
{
    for (uint32_t i = 0; i < topo->ngpus; i++)
        if (!strcmp(topo->gpu[i].bus, bus))
            return true;
    return false;
}

static void note_absent(FILE *notes, const char *file, const dt_topo_t *topo)
{
    size_t absent = 0, len = 0;
    char list[NAMED * 32] = "", path[512], count[64];
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        const char *bus = topo->gpu[i].bus;
        bool again = i > 0 && !strcmp(bus, topo->gpu[i - 1].bus);
        snprintf(path, sizeof(path), DEVICES "/%s", bus);
        if (!*bus || again || !access(path, F_OK))
            continue;
        if (++absent <= NAMED)
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
                                    absent > 1 ? ", " : "", bus);
    }
    if (absent)
        note(notes, "site file %s names %s that %s not there: %s%s", file,
             count_text(count, absent, "GPU"), absent == 1 ? "is" : "are", list,
             absent > NAMED ? ", ..." : "");
}

static void note_unnamed(FILE *notes, const char *file, const dt_topo_t *topo)
{
    size_t unnamed = 0;
    char first[64] = "", count[64];
    DIR *dir = opendir(DEVICES);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && is_gpu(entry->d_name) &&
            !named(topo, entry->d_name)) {
            unnamed++;
            if (!*first || strncmp(entry->d_name, first, sizeof(first)) < 0)
                snprintf(first, sizeof(first), "%.63s", entry->d_name);
        }
    if (dir)
        closedir(dir);
    if (unnamed)
        note(notes,
             "site file %s does not name %s of this node (%s%s): the site "
             "file won",
             file, count_text(count, unnamed, "GPU"), first,
             unnamed > 1 ? ", ..." : "");
}

/* ---- the topology ---- */

/* The site file's path in file, "" if there is none. */
static dt_result_t find_site_file(const struct node_request *request,
                                  char *file, size_t size, struct dt_error *err)
{
    char name[HOST_NAME];
    node_name(request, name);
    dt_result_t rc = conf_read(request->conf ? request->conf : DT_TOPO_CONF,
                               name, file, size, err);
    if (rc == DT_ERR_NOT_FOUND && !request->conf) {
        file[0] = '\0';
        return DT_SUCCESS;
    }
    return rc;
}

dt_result_t node_topology(const struct node_request *request, dt_topo_t **topo,
                          struct dt_error *err)
{
    char file[4096];
    bool whole;
    dt_result_t rc = find_site_file(request, file, sizeof(file), err);
    if (rc != DT_SUCCESS)
        return rc;
    if (*file) {
        rc = dt_topo_load(file, topo, err);
        if (rc == DT_SUCCESS) {
            note_absent(request->notes, file, *topo);
            note_unnamed(request->notes, file, *topo);
        }
        return rc;
    }
    if (request->cached)
        return cache_get(request->notes, request->cache, request->refresh, topo,
                         err);
    return probe(request->notes, topo, &whole, err);
}
