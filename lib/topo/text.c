/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* text.c - our own format, read: lines of Key=Value; doc/topology.md. */
#include <stdlib.h>
#include <string.h>

#include "topo/sources.h"
#include "topo/words.h"

/* Links= and Paths= wait until all devices are known. */
struct pending {
    size_t line;
    char *links, *paths; /* NULL: not given */
};

struct reader {
    struct dt_words words;
    bool headed; /* DtTopology= was seen */
    dt_topo_t *topo;
    struct pending gpu[DT_TOPO_MAX_GPUS], nic[DT_TOPO_MAX_NICS];
};

static dt_result_t bus_id(const struct reader *r, const struct dt_word *word,
                          char bus[24])
{
    if (!dt_topo_bus(word->value, bus))
        return dt_word_bad(&r->words, word->key, word->value,
                           "a PCI bus id, as in 0000:0f:00.0");
    return DT_SUCCESS;
}

static dt_result_t numa_node(const struct reader *r, const struct dt_word *word,
                             int16_t *field)
{
    uint64_t id;
    dt_result_t rc = dt_word_number(&r->words, word, UINT32_MAX, &id);
    if (rc != DT_SUCCESS)
        return rc;
    *field = (int16_t)dt_topo_find_numa(r->topo, (uint32_t)id);
    return *field < 0 ? dt_word_bad(&r->words, word->key, word->value,
                                    "a NUMA node named in a line before")
                      : DT_SUCCESS;
}

static dt_result_t bridge(const struct reader *r, const struct dt_word *word,
                          int16_t *field)
{
    for (uint32_t i = 0; i < r->topo->nswitches; i++)
        if (!strcmp(r->topo->switches[i].name, word->value)) {
            *field = (int16_t)i;
            return DT_SUCCESS;
        }
    return dt_word_bad(&r->words, word->key, word->value,
                       "a switch named in a line before");
}

static dt_result_t text(const struct reader *r, const struct dt_word *word,
                        char *field, size_t size)
{
    if (strlen(word->value) >= size)
        return dt_word_bad(&r->words, word->key, word->value, "a shorter text");
    dt_topo_text(field, size, word->value);
    return DT_SUCCESS;
}

static dt_result_t unknown_key(const struct reader *r,
                               const struct dt_word *word)
{
    return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                        "line %zu: a line that begins with %s= has no %s=",
                        r->words.number, r->words.word[0].key, word->key);
}

static dt_result_t keep(const struct reader *r, const struct dt_word *word,
                        char **field)
{
    free(*field);
    *field = strdup(word->value);
    return *field ? DT_SUCCESS
                  : dt_error_set(r->words.err, DT_ERR_NO_MEMORY, "no memory");
}

#define IS(word, name) (!strcmp((word)->key, name))

/* ---- CPUs ---- */

/* Which CPUs share a core. */
struct cores {
    int16_t threads; /* per core, 0: not said */
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
            return dt_word_bad(
                &r->words, "Cores", list,
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
        return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                            "line %zu: %zu CPUs are not a multiple of "
                            "ThreadsPerCore=%zu",
                            r->words.number, n, threads);
    for (size_t i = 0; i < n; i++)
        r->topo->cpu[number[i]].core = cores->adjacent
                                           ? number[i - i % threads]
                                           : number[i % (n / threads)];
    return DT_SUCCESS;
}

/* true if the word is about cores, with its result in *rc */
static bool core_word(const struct reader *r, const struct dt_word *word,
                      struct cores *cores, dt_result_t *rc)
{
    static const char *const siblings[] = {"split", "adjacent", NULL};
    int index;
    if (IS(word, "ThreadsPerCore")) {
        *rc = dt_word_small(&r->words, word, 64, &cores->threads);
    } else if (IS(word, "Siblings")) {
        *rc = dt_word_one_of(&r->words, word, siblings, &index);
        cores->adjacent = *rc == DT_SUCCESS && index == 1;
    } else if (IS(word, "Cores")) {
        cores->list = word->value;
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
        dt_word_number(&r->words, &r->words.word[0], UINT32_MAX, &id);
    if (rc != DT_SUCCESS)
        return rc;
    if (dt_topo_find_numa(r->topo, (uint32_t)id) >= 0)
        return dt_word_bad(&r->words, "Numa", r->words.word[0].value,
                           "each node once");
    dt_topo_numa_t *numa = dt_topo_add_numa(r->topo, r->words.err);
    if (!numa)
        return DT_ERR_UNSUPPORTED;
    numa->id = (uint32_t)id;
    struct cores cores = {0};
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++) {
        const struct dt_word *word = &r->words.word[i];
        if (core_word(r, word, &cores, &rc))
            continue;
        if (IS(word, "Package"))
            rc = dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                               &numa->package);
        else if (IS(word, "Cpus"))
            rc = dt_word_cpu_list(&r->words, word, &numa->cpus);
        else if (IS(word, "Memory"))
            rc = dt_word_bytes(&r->words, word, &numa->memory);
        else if (IS(word, "Gpu"))
            rc = dt_word_small(&r->words, word, DT_TOPO_MAX_GPUS - 1,
                               &numa->gpu);
        else
            rc = unknown_key(r, word);
    }
    return rc == DT_SUCCESS ? set_cores(r, &cores, &numa->cpus) : rc;
}

/* CPUs of no known NUMA node */
static dt_result_t read_cpus(struct reader *r)
{
    dt_cpuset_t cpus;
    struct cores cores = {0};
    int16_t package = -1;
    dt_result_t rc = dt_word_cpu_list(&r->words, &r->words.word[0], &cpus);
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++) {
        const struct dt_word *word = &r->words.word[i];
        if (core_word(r, word, &cores, &rc))
            continue;
        if (IS(word, "Package"))
            rc = dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                               &package);
        else
            rc = unknown_key(r, word);
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
    const struct dt_word *first = &r->words.word[0];
    for (uint32_t i = 0; i < r->topo->nswitches; i++)
        if (!strcmp(r->topo->switches[i].name, first->value))
            return dt_word_bad(&r->words, "Switch", first->value,
                               "each name once");
    dt_topo_switch_t *added = dt_topo_add_switch(r->topo, r->words.err);
    if (!added)
        return DT_ERR_UNSUPPORTED;
    /* named last: it cannot hang under itself */
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++) {
        const struct dt_word *word = &r->words.word[i];
        if (IS(word, "Under"))
            rc = bridge(r, word, &added->parent);
        else if (IS(word, "Numa"))
            rc = numa_node(r, word, &added->numa);
        else
            rc = unknown_key(r, word);
    }
    return rc == DT_SUCCESS ? text(r, first, added->name, sizeof(added->name))
                            : rc;
}

static dt_result_t gpu_word(struct reader *r, const struct dt_word *word,
                            dt_topo_gpu_t *gpu, struct pending *pending)
{
    static const char *const vendors[] = {"unknown", "nvidia", "amd", "intel",
                                          NULL};
    int index;
    if (IS(word, "Bus"))
        return bus_id(r, word, gpu->bus);
    if (IS(word, "Name"))
        return text(r, word, gpu->name, sizeof(gpu->name));
    if (IS(word, "Uuid"))
        return text(r, word, gpu->uuid, sizeof(gpu->uuid));
    if (IS(word, "File"))
        return text(r, word, gpu->file, sizeof(gpu->file));
    if (IS(word, "Vendor")) {
        dt_result_t rc = dt_word_one_of(&r->words, word, vendors, &index);
        if (rc == DT_SUCCESS)
            gpu->vendor = (dt_vendor_t)index;
        return rc;
    }
    if (IS(word, "Part"))
        return dt_word_small(&r->words, word, INT16_MAX, &gpu->part);
    if (IS(word, "Minor"))
        return dt_word_small(&r->words, word, INT16_MAX, &gpu->minor_number);
    if (IS(word, "Numa"))
        return numa_node(r, word, &gpu->numa);
    if (IS(word, "MemoryNuma"))
        return numa_node(r, word, &gpu->memory_numa);
    if (IS(word, "Package"))
        return dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                             &gpu->package);
    if (IS(word, "Under"))
        return bridge(r, word, &gpu->under);
    if (IS(word, "NvSwitch"))
        return dt_word_yes(&r->words, word, &gpu->nvswitch);
    if (IS(word, "Lost"))
        return dt_word_yes(&r->words, word, &gpu->lost);
    if (IS(word, "Memory"))
        return dt_word_bytes(&r->words, word, &gpu->memory);
    if (IS(word, "Cpus"))
        return dt_word_cpu_list(&r->words, word, &gpu->cpus);
    if (IS(word, "Links"))
        return keep(r, word, &pending->links);
    if (IS(word, "Paths"))
        return keep(r, word, &pending->paths);
    return unknown_key(r, word);
}

static dt_result_t read_gpu(struct reader *r)
{
    uint64_t index;
    dt_result_t rc = dt_word_number(&r->words, &r->words.word[0],
                                    DT_TOPO_MAX_GPUS - 1, &index);
    if (rc != DT_SUCCESS)
        return rc;
    if (index != r->topo->ngpus)
        return dt_word_bad(&r->words, "Gpu", r->words.word[0].value,
                           "the GPUs numbered from 0, in order of their lines");
    dt_topo_gpu_t *gpu = dt_topo_add_gpu(r->topo, r->words.err);
    if (!gpu)
        return DT_ERR_UNSUPPORTED;
    struct pending *pending = &r->gpu[index];
    pending->line = r->words.number;
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++)
        rc = gpu_word(r, &r->words.word[i], gpu, pending);
    return rc;
}

static dt_result_t nic_word(struct reader *r, const struct dt_word *word,
                            dt_topo_nic_t *nic, struct pending *pending)
{
    static const char *const types[] = {"unknown",   "ib",       "roce", "efa",
                                        "slingshot", "ethernet", NULL};
    static const char *const states[] = {"unknown", "up", "down", NULL};
    dt_result_t rc;
    int index;
    uint64_t value;
    if (IS(word, "Names"))
        return text(r, word, nic->names, sizeof(nic->names));
    if (IS(word, "Net"))
        return text(r, word, nic->net, sizeof(nic->net));
    if (IS(word, "Bus"))
        return bus_id(r, word, nic->bus);
    if (IS(word, "Type")) {
        rc = dt_word_one_of(&r->words, word, types, &index);
        if (rc == DT_SUCCESS)
            nic->type = (dt_nic_type_t)index;
        return rc;
    }
    if (IS(word, "State")) {
        rc = dt_word_one_of(&r->words, word, states, &index);
        if (rc == DT_SUCCESS)
            nic->state = (dt_link_state_t)index;
        return rc;
    }
    if (IS(word, "Port"))
        return dt_word_small(&r->words, word, 255, &nic->port);
    if (IS(word, "Gbps")) {
        rc = dt_word_number(&r->words, word, 1000000, &value);
        if (rc == DT_SUCCESS)
            nic->gbps = (uint32_t)value;
        return rc;
    }
    if (IS(word, "Numa"))
        return numa_node(r, word, &nic->numa);
    if (IS(word, "Package"))
        return dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                             &nic->package);
    if (IS(word, "Under"))
        return bridge(r, word, &nic->under);
    if (IS(word, "Paths"))
        return keep(r, word, &pending->paths);
    return unknown_key(r, word);
}

static dt_result_t read_nic(struct reader *r)
{
    uint32_t index = r->topo->nnics;
    dt_topo_nic_t *nic = dt_topo_add_nic(r->topo, r->words.err);
    if (!nic)
        return DT_ERR_UNSUPPORTED;
    dt_result_t rc = text(r, &r->words.word[0], nic->name, sizeof(nic->name));
    if (rc == DT_SUCCESS && !*nic->name)
        rc = dt_word_bad(&r->words, "Nic", "", "its name");
    r->nic[index].line = r->words.number;
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++)
        rc = nic_word(r, &r->words.word[i], nic, &r->nic[index]);
    return rc;
}

/* ---- the matrices ---- */

/* Take the next of a comma-separated list into word; false at its end. */
static bool next_item(const char **at, char word[16])
{
    size_t n = strcspn(*at, ",");
    if (!**at || n > 15)
        return false;
    memcpy(word, *at, n);
    word[n] = '\0';
    *at += n + ((*at)[n] == ',');
    return true;
}

static dt_result_t link_row(struct reader *r, uint32_t row,
                            const struct pending *pending)
{
    const char *at = pending->links;
    char word[16];
    for (uint32_t i = 0; i < r->topo->ngpus; i++) {
        struct dt_word item = {.key = "Links", .value = word};
        uint64_t value = 0;
        if (!next_item(&at, word))
            *word = '\0'; /* no number */
        bool self = !strcmp(word, "-1");
        r->words.number = pending->line;
        if (!self &&
            dt_word_number(&r->words, &item, UINT16_MAX, &value) != DT_SUCCESS)
            return dt_word_bad(&r->words, "Links", pending->links,
                               "a number per GPU, -1 for itself");
        r->topo->links[row][i] = (uint16_t)value;
    }
    return *at ? dt_word_bad(&r->words, "Links", pending->links,
                             "one number per GPU")
               : DT_SUCCESS;
}

static dt_result_t path_row(struct reader *r, uint32_t row,
                            const struct pending *pending)
{
    const char *at = pending->paths;
    char word[16];
    r->words.number = pending->line;
    for (uint32_t i = 0; i < r->topo->ngpus + r->topo->nnics; i++) {
        if (!next_item(&at, word))
            *word = '\0';
        int path = DT_PATH_PIX;
        while (path <= DT_PATH_SYS &&
               strcmp(word, dt_path_name((dt_path_t)path)) != 0)
            path++;
        if (path > DT_PATH_SYS && strcmp(word, "?") != 0 &&
            strcmp(word, "X") != 0)
            return dt_word_bad(
                &r->words, "Paths", pending->paths,
                "PIX, PXB, PHB, NODE, SYS, ? or X for each GPU, then "
                "each NIC");
        r->topo->pci[row][i] =
            path > DT_PATH_SYS ? (uint8_t)DT_PATH_UNKNOWN : (uint8_t)path;
    }
    return *at ? dt_word_bad(&r->words, "Paths", pending->paths,
                             "one word per device")
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

/* ---- the whole ---- */

static dt_result_t read_header(struct reader *r)
{
    const struct dt_words *line = &r->words;
    if (strcmp(line->word[0].value, "1") != 0)
        return dt_word_bad(&r->words, "DtTopology", line->word[0].value,
                           "version 1, the only one this slurm-dt knows");
    for (size_t i = 1; i < line->n; i++) {
        const struct dt_word *word = &line->word[i];
        dt_result_t rc;
        if (IS(word, "Source"))
            rc = text(r, word, r->topo->source, sizeof(r->topo->source));
        else if (IS(word, "Missing"))
            rc = text(r, word, r->topo->missing, sizeof(r->topo->missing));
        else if (IS(word, "NcclFile"))
            rc = text(r, word, r->topo->nccl_file, sizeof(r->topo->nccl_file));
        else
            rc = unknown_key(r, word);
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
    const struct dt_word *first = &r->words.word[0];
    if (!r->headed && !IS(first, "DtTopology"))
        return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                            "line %zu: expected DtTopology=1 first",
                            r->words.number);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (IS(first, kinds[i].key))
            return kinds[i].read(r);
    return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                        "line %zu: a line begins with %s=: expected Numa, "
                        "Cpus, Switch, Gpu or Nic",
                        r->words.number, first->key);
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
        r->words.at = data;
        r->words.end = data + len;
        r->topo = made;
        r->words.err = err;
    }
    while (more && rc == DT_SUCCESS) {
        rc = dt_words_next(&r->words, &more);
        if (rc == DT_SUCCESS && more)
            rc = read_line(r);
    }
    if (rc == DT_SUCCESS && !r->headed)
        rc = dt_error_set(err, DT_ERR_CORRUPT, "empty: expected DtTopology=1");
    if (rc == DT_SUCCESS)
        rc = read_rows(r);
    if (rc == DT_SUCCESS)
        rc = dt_topo_finish(made, err);
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
