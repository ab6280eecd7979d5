/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* text.c - our own format, read: lines of Key=Value; doc/topology.md. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "topo/model/kv.h"
#include "topo/model/model.h"

#define DT_KV_IS(pair, name) (!strcmp((pair)->key, name))

/* Links= and Paths= wait until all devices are known. */
struct rows {
    size_t line;
    char *links, *paths; /* NULL: not given */
};

/* A file that is being read. */
struct reader {
    struct dt_kv_lines lines;
    bool headed; /* DtTopology= was seen */
    dt_topo_t *topo;
    struct rows gpu[DT_TOPO_MAX_GPUS], nic[DT_TOPO_MAX_NICS];
};

static dt_result_t bus_id(const struct reader *r, const struct dt_kv *pair,
                          char bus[24])
{
    if (!dt_topo_bus(pair->value, bus))
        return dt_kv_bad(&r->lines, pair->key, pair->value,
                         "a PCI bus id, as in 0000:0f:00.0");
    return DT_SUCCESS;
}

static dt_result_t numa_node(const struct reader *r, const struct dt_kv *pair,
                             int16_t *field)
{
    uint64_t id;
    dt_result_t rc = dt_kv_number(&r->lines, pair, UINT32_MAX, &id);
    if (rc != DT_SUCCESS)
        return rc;
    *field = (int16_t)dt_topo_find_numa(r->topo, (uint32_t)id);
    return *field < 0 ? dt_kv_bad(&r->lines, pair->key, pair->value,
                                  "a NUMA node named in a line before")
                      : DT_SUCCESS;
}

static dt_result_t bridge(const struct reader *r, const struct dt_kv *pair,
                          int16_t *field)
{
    for (uint32_t i = 0; i < r->topo->nswitches; i++)
        if (!strcmp(r->topo->switches[i].name, pair->value)) {
            *field = (int16_t)i;
            return DT_SUCCESS;
        }
    return dt_kv_bad(&r->lines, pair->key, pair->value,
                     "a switch named in a line before");
}

static dt_result_t text(const struct reader *r, const struct dt_kv *pair,
                        char *field, size_t size)
{
    if (strlen(pair->value) >= size)
        return dt_kv_bad(&r->lines, pair->key, pair->value, "a shorter text");
    dt_topo_text(field, size, pair->value);
    return DT_SUCCESS;
}

static dt_result_t unknown(const struct reader *r, const struct dt_kv *pair)
{
    return dt_error_set(r->lines.err, DT_ERR_CORRUPT,
                        "line %zu: a line that begins with %s= has no %s=",
                        r->lines.number, r->lines.pair[0].key, pair->key);
}

static dt_result_t keep(const struct reader *r, const struct dt_kv *pair,
                        char **field)
{
    free(*field);
    *field = strdup(pair->value);
    return *field ? DT_SUCCESS
                  : dt_error_set(r->lines.err, DT_ERR_NO_MEMORY, "no memory");
}

/* ---- CPUs ---- */

/* Which CPUs share a core. */
struct cores {
    int16_t threads; /* per core, 0: not given */
    bool adjacent;
    const char *list; /* "0+4,1+5" */
};

/* The CPUs of one core are joined by '+'. */
static dt_result_t list_cores(const struct reader *r, const char *list,
                              const dt_cpuset_t *cpus)
{
    size_t cpu = 0, digits = 0;
    uint16_t core = DT_TOPO_NO_CORE;
    for (const char *at = list;; at++) {
        if (*at >= '0' && *at <= '9' && digits < 5) {
            cpu = cpu * 10 + (size_t)(*at - '0');
            digits++;
            continue;
        }
        if (!digits || !dt_cpuset_has(cpus, cpu) ||
            (*at && *at != ',' && *at != '+'))
            return dt_kv_bad(&r->lines, "Cores", list,
                             "CPUs of this line, as in 0+4,1+5 for two cores");
        core = core == DT_TOPO_NO_CORE ? (uint16_t)cpu : core;
        r->topo->cpu[cpu].core = core;
        if (*at != '+')
            core = DT_TOPO_NO_CORE;
        cpu = digits = 0;
        if (!*at)
            return DT_SUCCESS;
    }
}

static dt_result_t set_cores(const struct reader *r, const struct cores *cores,
                             const dt_cpuset_t *cpus)
{
    uint16_t number[DT_TOPO_MAX_CPUS];
    size_t n = 0, threads = (size_t)cores->threads;
    for (uint16_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
        if (dt_cpuset_has(cpus, c))
            number[n++] = c;
    for (size_t i = 0; i < n; i++)
        r->topo->cpu[number[i]].present = true;
    if (cores->list)
        return list_cores(r, cores->list, cpus);
    if (!threads)
        return DT_SUCCESS;
    if (n % threads != 0)
        return dt_error_set(r->lines.err, DT_ERR_CORRUPT,
                            "line %zu: %zu CPUs are not a multiple of "
                            "ThreadsPerCore=%zu",
                            r->lines.number, n, threads);
    for (size_t i = 0; i < n; i++)
        r->topo->cpu[number[i]].core = cores->adjacent
                                           ? number[i - i % threads]
                                           : number[i % (n / threads)];
    return DT_SUCCESS;
}

/* Returns whether the pair is about cores, with its result in *rc. */
static bool core_pair(const struct reader *r, const struct dt_kv *pair,
                      struct cores *cores, dt_result_t *rc)
{
    static const char *const siblings[] = {"split", "adjacent", NULL};
    int index;
    if (DT_KV_IS(pair, "ThreadsPerCore")) {
        *rc = dt_kv_small(&r->lines, pair, 64, &cores->threads);
    } else if (DT_KV_IS(pair, "Siblings")) {
        *rc = dt_kv_one_of(&r->lines, pair, siblings, &index);
        cores->adjacent = *rc == DT_SUCCESS && index == 1;
    } else if (DT_KV_IS(pair, "Cores")) {
        cores->list = pair->value;
        *rc = DT_SUCCESS;
    } else {
        return false;
    }
    return true;
}

static dt_result_t read_numa(struct reader *r)
{
    uint64_t id;
    dt_result_t rc =
        dt_kv_number(&r->lines, &r->lines.pair[0], UINT32_MAX, &id);
    if (rc != DT_SUCCESS)
        return rc;
    if (dt_topo_find_numa(r->topo, (uint32_t)id) >= 0)
        return dt_kv_bad(&r->lines, "Numa", r->lines.pair[0].value,
                         "each node once");
    dt_topo_numa_t *numa = dt_topo_add_numa(r->topo, r->lines.err);
    if (!numa)
        return DT_ERR_UNSUPPORTED;
    numa->id = (uint32_t)id;
    struct cores cores = {0};
    for (size_t i = 1; i < r->lines.n && rc == DT_SUCCESS; i++) {
        const struct dt_kv *pair = &r->lines.pair[i];
        if (core_pair(r, pair, &cores, &rc))
            continue;
        if (DT_KV_IS(pair, "Package"))
            rc = dt_kv_small(&r->lines, pair, DT_TOPO_MAX_PACKAGES - 1,
                             &numa->package);
        else if (DT_KV_IS(pair, "Cpus"))
            rc = dt_kv_cpu_list(&r->lines, pair, &numa->cpus);
        else if (DT_KV_IS(pair, "Memory"))
            rc = dt_kv_bytes(&r->lines, pair, &numa->memory);
        else if (DT_KV_IS(pair, "Gpu"))
            rc = dt_kv_small(&r->lines, pair, DT_TOPO_MAX_GPUS - 1, &numa->gpu);
        else
            rc = unknown(r, pair);
    }
    return rc == DT_SUCCESS ? set_cores(r, &cores, &numa->cpus) : rc;
}

static dt_result_t read_cpus(struct reader *r)
{
    dt_cpuset_t cpus;
    struct cores cores = {0};
    int16_t package = -1;
    dt_result_t rc = dt_kv_cpu_list(&r->lines, &r->lines.pair[0], &cpus);
    for (size_t i = 1; i < r->lines.n && rc == DT_SUCCESS; i++) {
        const struct dt_kv *pair = &r->lines.pair[i];
        if (core_pair(r, pair, &cores, &rc))
            continue;
        if (DT_KV_IS(pair, "Package"))
            rc = dt_kv_small(&r->lines, pair, DT_TOPO_MAX_PACKAGES - 1,
                             &package);
        else
            rc = unknown(r, pair);
    }
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
        if (dt_cpuset_has(&cpus, c))
            r->topo->cpu[c].package = package;
    return set_cores(r, &cores, &cpus);
}

/* ---- devices ---- */

static dt_result_t read_switch(struct reader *r)
{
    const struct dt_kv *first = &r->lines.pair[0];
    for (uint32_t i = 0; i < r->topo->nswitches; i++)
        if (!strcmp(r->topo->switches[i].name, first->value))
            return dt_kv_bad(&r->lines, "Switch", first->value,
                             "each name once");
    dt_topo_switch_t *added = dt_topo_add_switch(r->topo, r->lines.err);
    if (!added)
        return DT_ERR_UNSUPPORTED;
    /* the name is set last, so that Under= cannot name the switch itself */
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 1; i < r->lines.n && rc == DT_SUCCESS; i++) {
        const struct dt_kv *pair = &r->lines.pair[i];
        if (DT_KV_IS(pair, "Under"))
            rc = bridge(r, pair, &added->parent);
        else if (DT_KV_IS(pair, "Numa"))
            rc = numa_node(r, pair, &added->numa);
        else
            rc = unknown(r, pair);
    }
    return rc == DT_SUCCESS ? text(r, first, added->name, sizeof(added->name))
                            : rc;
}

/* "5x16" */
static dt_result_t pcie(const struct reader *r, const struct dt_kv *pair,
                        dt_topo_pcie_t *link)
{
    const char *at = pair->value;
    uint64_t generation, lanes;
    if (!dt_number_scan(&at, 10, UINT8_MAX, &generation) || !generation ||
        *at++ != 'x' || !dt_number_scan(&at, 10, 32, &lanes) || !lanes || *at)
        return dt_kv_bad(&r->lines, "Pcie", pair->value,
                         "a generation and its lanes, as 5x16");
    *link = (dt_topo_pcie_t){(uint8_t)generation, (uint8_t)lanes};
    return DT_SUCCESS;
}

static dt_result_t gpu_pair(struct reader *r, const struct dt_kv *pair,
                            dt_topo_gpu_t *gpu, struct rows *pending)
{
    static const char *const vendors[] = {"unknown", "nvidia", "amd", "intel",
                                          NULL};
    int index;
    if (DT_KV_IS(pair, "Bus"))
        return bus_id(r, pair, gpu->bus);
    if (DT_KV_IS(pair, "Name"))
        return text(r, pair, gpu->name, sizeof(gpu->name));
    if (DT_KV_IS(pair, "Uuid"))
        return text(r, pair, gpu->uuid, sizeof(gpu->uuid));
    if (DT_KV_IS(pair, "File"))
        return text(r, pair, gpu->file, sizeof(gpu->file));
    if (DT_KV_IS(pair, "Vendor")) {
        dt_result_t rc = dt_kv_one_of(&r->lines, pair, vendors, &index);
        if (rc == DT_SUCCESS)
            gpu->vendor = (dt_vendor_t)index;
        return rc;
    }
    if (DT_KV_IS(pair, "Part"))
        return dt_kv_small(&r->lines, pair, INT16_MAX, &gpu->part);
    if (DT_KV_IS(pair, "Minor"))
        return dt_kv_small(&r->lines, pair, INT16_MAX, &gpu->minor_number);
    if (DT_KV_IS(pair, "Pcie"))
        return pcie(r, pair, &gpu->pcie);
    if (DT_KV_IS(pair, "Numa"))
        return numa_node(r, pair, &gpu->numa);
    if (DT_KV_IS(pair, "MemoryNuma"))
        return numa_node(r, pair, &gpu->memory_numa);
    if (DT_KV_IS(pair, "Package"))
        return dt_kv_small(&r->lines, pair, DT_TOPO_MAX_PACKAGES - 1,
                           &gpu->package);
    if (DT_KV_IS(pair, "Under"))
        return bridge(r, pair, &gpu->under);
    if (DT_KV_IS(pair, "NvSwitch"))
        return dt_kv_yes(&r->lines, pair, &gpu->nvswitch);
    if (DT_KV_IS(pair, "Lost"))
        return dt_kv_yes(&r->lines, pair, &gpu->lost);
    if (DT_KV_IS(pair, "Memory"))
        return dt_kv_bytes(&r->lines, pair, &gpu->memory);
    if (DT_KV_IS(pair, "Cpus"))
        return dt_kv_cpu_list(&r->lines, pair, &gpu->cpus);
    if (DT_KV_IS(pair, "Links"))
        return keep(r, pair, &pending->links);
    if (DT_KV_IS(pair, "Paths"))
        return keep(r, pair, &pending->paths);
    return unknown(r, pair);
}

static dt_result_t read_gpu(struct reader *r)
{
    uint64_t index;
    dt_result_t rc = dt_kv_number(&r->lines, &r->lines.pair[0],
                                  DT_TOPO_MAX_GPUS - 1, &index);
    if (rc != DT_SUCCESS)
        return rc;
    if (index != r->topo->ngpus)
        return dt_kv_bad(&r->lines, "Gpu", r->lines.pair[0].value,
                         "the GPUs numbered from 0, in order of their lines");
    dt_topo_gpu_t *gpu = dt_topo_add_gpu(r->topo, r->lines.err);
    if (!gpu)
        return DT_ERR_UNSUPPORTED;
    struct rows *pending = &r->gpu[index];
    pending->line = r->lines.number;
    for (size_t i = 1; i < r->lines.n && rc == DT_SUCCESS; i++)
        rc = gpu_pair(r, &r->lines.pair[i], gpu, pending);
    return rc;
}

static dt_result_t nic_pair(struct reader *r, const struct dt_kv *pair,
                            dt_topo_nic_t *nic, struct rows *pending)
{
    static const char *const types[] = {"unknown",   "ib",       "roce", "efa",
                                        "slingshot", "ethernet", NULL};
    static const char *const states[] = {"unknown", "up", "down", NULL};
    dt_result_t rc;
    int index;
    uint64_t value;
    if (DT_KV_IS(pair, "Names"))
        return text(r, pair, nic->names, sizeof(nic->names));
    if (DT_KV_IS(pair, "Net"))
        return text(r, pair, nic->net, sizeof(nic->net));
    if (DT_KV_IS(pair, "Bus"))
        return bus_id(r, pair, nic->bus);
    if (DT_KV_IS(pair, "Type")) {
        rc = dt_kv_one_of(&r->lines, pair, types, &index);
        if (rc == DT_SUCCESS)
            nic->type = (dt_nic_type_t)index;
        return rc;
    }
    if (DT_KV_IS(pair, "State")) {
        rc = dt_kv_one_of(&r->lines, pair, states, &index);
        if (rc == DT_SUCCESS)
            nic->state = (dt_link_state_t)index;
        return rc;
    }
    if (DT_KV_IS(pair, "Port"))
        return dt_kv_small(&r->lines, pair, 255, &nic->port);
    if (DT_KV_IS(pair, "Gbps")) {
        rc = dt_kv_number(&r->lines, pair, 1000000, &value);
        if (rc == DT_SUCCESS)
            nic->gbps = (uint32_t)value;
        return rc;
    }
    if (DT_KV_IS(pair, "Pcie"))
        return pcie(r, pair, &nic->pcie);
    if (DT_KV_IS(pair, "Numa"))
        return numa_node(r, pair, &nic->numa);
    if (DT_KV_IS(pair, "Package"))
        return dt_kv_small(&r->lines, pair, DT_TOPO_MAX_PACKAGES - 1,
                           &nic->package);
    if (DT_KV_IS(pair, "Under"))
        return bridge(r, pair, &nic->under);
    if (DT_KV_IS(pair, "Paths"))
        return keep(r, pair, &pending->paths);
    return unknown(r, pair);
}

static dt_result_t read_nic(struct reader *r)
{
    uint32_t index = r->topo->nnics;
    dt_topo_nic_t *nic = dt_topo_add_nic(r->topo, r->lines.err);
    if (!nic)
        return DT_ERR_UNSUPPORTED;
    dt_result_t rc = text(r, &r->lines.pair[0], nic->name, sizeof(nic->name));
    if (rc == DT_SUCCESS && !*nic->name)
        rc = dt_kv_bad(&r->lines, "Nic", "", "its name");
    r->nic[index].line = r->lines.number;
    for (size_t i = 1; i < r->lines.n && rc == DT_SUCCESS; i++)
        rc = nic_pair(r, &r->lines.pair[i], nic, &r->nic[index]);
    return rc;
}

/* ---- the matrices ---- */

/* Take the next of a comma-separated list into item; false at its end. */
static bool next_item(const char **at, char item[16])
{
    size_t n = strcspn(*at, ",");
    if (!**at || n > 15)
        return false;
    memcpy(item, *at, n);
    item[n] = '\0';
    *at += n + ((*at)[n] == ',');
    return true;
}

static dt_result_t link_row(struct reader *r, uint32_t row,
                            const struct rows *pending)
{
    const char *at = pending->links;
    char item[16];
    for (uint32_t i = 0; i < r->topo->ngpus; i++) {
        struct dt_kv number = {.key = "Links", .value = item};
        uint64_t value = 0;
        if (!next_item(&at, item))
            *item = '\0'; /* no number */
        bool self = !strcmp(item, "-1");
        r->lines.number = pending->line;
        if (!self &&
            dt_kv_number(&r->lines, &number, UINT16_MAX, &value) != DT_SUCCESS)
            return dt_kv_bad(&r->lines, "Links", pending->links,
                             "a number per GPU, -1 for itself");
        r->topo->links[row][i] = (uint16_t)value;
    }
    return *at ? dt_kv_bad(&r->lines, "Links", pending->links,
                           "one number per GPU")
               : DT_SUCCESS;
}

static dt_result_t path_row(struct reader *r, uint32_t row,
                            const struct rows *pending)
{
    const char *at = pending->paths;
    char item[16];
    r->lines.number = pending->line;
    for (uint32_t i = 0; i < r->topo->ngpus + r->topo->nnics; i++) {
        if (!next_item(&at, item))
            *item = '\0';
        int path = DT_PATH_PIX;
        while (path <= DT_PATH_SYS &&
               strcmp(item, dt_path_name((dt_path_t)path)) != 0)
            path++;
        if (path > DT_PATH_SYS && strcmp(item, "?") != 0 &&
            strcmp(item, "X") != 0)
            return dt_kv_bad(
                &r->lines, "Paths", pending->paths,
                "PIX, PXB, PHB, NODE, SYS, ? or X for each GPU, then "
                "each NIC");
        r->topo->pci[row][i] =
            path > DT_PATH_SYS ? (uint8_t)DT_PATH_UNKNOWN : (uint8_t)path;
    }
    return *at ? dt_kv_bad(&r->lines, "Paths", pending->paths,
                           "one class per device")
               : DT_SUCCESS;
}

static dt_result_t read_rows(struct reader *r)
{
    dt_result_t rc = DT_SUCCESS;
    for (uint32_t i = 0; i < r->topo->ngpus && rc == DT_SUCCESS; i++) {
        if (r->gpu[i].links)
            rc = link_row(r, i, &r->gpu[i]);
        if (rc == DT_SUCCESS && r->gpu[i].paths)
            rc = path_row(r, i, &r->gpu[i]);
    }
    for (uint32_t i = 0; i < r->topo->nnics && rc == DT_SUCCESS; i++)
        if (r->nic[i].paths)
            rc = path_row(r, r->topo->ngpus + i, &r->nic[i]);
    return rc;
}

/* ---- the file ---- */

static dt_result_t read_header(struct reader *r)
{
    const struct dt_kv_lines *line = &r->lines;
    if (strcmp(line->pair[0].value, "1") != 0)
        return dt_kv_bad(&r->lines, "DtTopology", line->pair[0].value,
                         "version 1, the only one this slurm-dt knows");
    for (size_t i = 1; i < line->n; i++) {
        const struct dt_kv *pair = &line->pair[i];
        dt_result_t rc;
        if (DT_KV_IS(pair, "Source"))
            rc = text(r, pair, r->topo->source, sizeof(r->topo->source));
        else if (DT_KV_IS(pair, "Missing"))
            rc = text(r, pair, r->topo->missing, sizeof(r->topo->missing));
        else if (DT_KV_IS(pair, "NcclFile"))
            rc = text(r, pair, r->topo->nccl_file, sizeof(r->topo->nccl_file));
        else
            rc = unknown(r, pair);
        if (rc != DT_SUCCESS)
            return rc;
    }
    r->headed = true;
    return DT_SUCCESS;
}

static dt_result_t read_line(struct reader *r)
{
    static const struct {
        const char *key;
        dt_result_t (*read)(struct reader *r);
    } kinds[] = {{"Numa", read_numa},     {"Cpus", read_cpus},
                 {"Switch", read_switch}, {"Gpu", read_gpu},
                 {"Nic", read_nic},       {"DtTopology", read_header}};
    const struct dt_kv *first = &r->lines.pair[0];
    if (!r->headed && !DT_KV_IS(first, "DtTopology"))
        return dt_error_set(r->lines.err, DT_ERR_CORRUPT,
                            "line %zu: expected DtTopology=1 first",
                            r->lines.number);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (DT_KV_IS(first, kinds[i].key))
            return kinds[i].read(r);
    return dt_error_set(r->lines.err, DT_ERR_CORRUPT,
                        "line %zu: a line begins with %s=: expected Numa, "
                        "Cpus, Switch, Gpu or Nic",
                        r->lines.number, first->key);
}

dt_result_t dt_topo_read_text(const char *data, size_t len, dt_topo_t **topo,
                              struct dt_error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    dt_topo_t *made = dt_topo_create();
    dt_result_t rc = r && made
                         ? DT_SUCCESS
                         : dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    bool more = rc == DT_SUCCESS;
    if (more) {
        r->lines.at = data;
        r->lines.end = data + len;
        r->topo = made;
        r->lines.err = err;
    }
    while (more && rc == DT_SUCCESS) {
        rc = dt_kv_next(&r->lines, &more);
        if (rc == DT_SUCCESS && more)
            rc = read_line(r);
    }
    if (rc == DT_SUCCESS && !r->headed)
        rc = dt_error_set(err, DT_ERR_CORRUPT, "empty: expected DtTopology=1");
    if (rc == DT_SUCCESS)
        rc = read_rows(r);
    if (rc == DT_SUCCESS)
        rc = dt_topo_normalize(made, err);
    for (size_t i = 0; r && i < DT_TOPO_MAX_GPUS; i++) {
        free(r->gpu[i].links);
        free(r->gpu[i].paths);
    }
    for (size_t i = 0; r && i < DT_TOPO_MAX_NICS; i++)
        free(r->nic[i].paths);
    free(r);
    if (rc != DT_SUCCESS) {
        dt_topo_destroy(made);
        return rc;
    }
    *topo = made;
    return DT_SUCCESS;
}
