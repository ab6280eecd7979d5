/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* text.c - our own format, read: lines of Key=Value; doc/topology.md. */
#include <stdlib.h>
#include <string.h>

#include "topo/text.h"

static dt_result_t bus_id(const struct dt_text *r, const struct dt_word *word,
                          char bus[24])
{
    if (!dt_topo_bus(word->value, bus))
        return dt_word_bad(&r->words, word->key, word->value,
                           "a PCI bus id, as in 0000:0f:00.0");
    return DT_SUCCESS;
}

static dt_result_t numa_node(const struct dt_text *r,
                             const struct dt_word *word, int16_t *field)
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

static dt_result_t bridge(const struct dt_text *r, const struct dt_word *word,
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

static dt_result_t text(const struct dt_text *r, const struct dt_word *word,
                        char *field, size_t size)
{
    if (strlen(word->value) >= size)
        return dt_word_bad(&r->words, word->key, word->value, "a shorter text");
    dt_topo_text(field, size, word->value);
    return DT_SUCCESS;
}

dt_result_t dt_text_unknown(const struct dt_text *r, const struct dt_word *word)
{
    return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                        "line %zu: a line that begins with %s= has no %s=",
                        r->words.number, r->words.word[0].key, word->key);
}

static dt_result_t keep(const struct dt_text *r, const struct dt_word *word,
                        char **field)
{
    free(*field);
    *field = strdup(word->value);
    return *field ? DT_SUCCESS
                  : dt_error_set(r->words.err, DT_ERR_NO_MEMORY, "no memory");
}

/* ---- devices ---- */

static dt_result_t read_switch(struct dt_text *r)
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
        if (DT_WORD_IS(word, "Under"))
            rc = bridge(r, word, &added->parent);
        else if (DT_WORD_IS(word, "Numa"))
            rc = numa_node(r, word, &added->numa);
        else
            rc = dt_text_unknown(r, word);
    }
    return rc == DT_SUCCESS ? text(r, first, added->name, sizeof(added->name))
                            : rc;
}

static dt_result_t gpu_word(struct dt_text *r, const struct dt_word *word,
                            dt_topo_gpu_t *gpu, struct dt_text_pending *pending)
{
    static const char *const vendors[] = {"unknown", "nvidia", "amd", "intel",
                                          NULL};
    int index;
    if (DT_WORD_IS(word, "Bus"))
        return bus_id(r, word, gpu->bus);
    if (DT_WORD_IS(word, "Name"))
        return text(r, word, gpu->name, sizeof(gpu->name));
    if (DT_WORD_IS(word, "Uuid"))
        return text(r, word, gpu->uuid, sizeof(gpu->uuid));
    if (DT_WORD_IS(word, "File"))
        return text(r, word, gpu->file, sizeof(gpu->file));
    if (DT_WORD_IS(word, "Vendor")) {
        dt_result_t rc = dt_word_one_of(&r->words, word, vendors, &index);
        if (rc == DT_SUCCESS)
            gpu->vendor = (dt_vendor_t)index;
        return rc;
    }
    if (DT_WORD_IS(word, "Part"))
        return dt_word_small(&r->words, word, INT16_MAX, &gpu->part);
    if (DT_WORD_IS(word, "Minor"))
        return dt_word_small(&r->words, word, INT16_MAX, &gpu->minor_number);
    if (DT_WORD_IS(word, "Numa"))
        return numa_node(r, word, &gpu->numa);
    if (DT_WORD_IS(word, "MemoryNuma"))
        return numa_node(r, word, &gpu->memory_numa);
    if (DT_WORD_IS(word, "Package"))
        return dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                             &gpu->package);
    if (DT_WORD_IS(word, "Under"))
        return bridge(r, word, &gpu->under);
    if (DT_WORD_IS(word, "NvSwitch"))
        return dt_word_yes(&r->words, word, &gpu->nvswitch);
    if (DT_WORD_IS(word, "Lost"))
        return dt_word_yes(&r->words, word, &gpu->lost);
    if (DT_WORD_IS(word, "Memory"))
        return dt_word_bytes(&r->words, word, &gpu->memory);
    if (DT_WORD_IS(word, "Cpus"))
        return dt_word_cpu_list(&r->words, word, &gpu->cpus);
    if (DT_WORD_IS(word, "Links"))
        return keep(r, word, &pending->links);
    if (DT_WORD_IS(word, "Paths"))
        return keep(r, word, &pending->paths);
    return dt_text_unknown(r, word);
}

static dt_result_t read_gpu(struct dt_text *r)
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
    struct dt_text_pending *pending = &r->gpu[index];
    pending->line = r->words.number;
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++)
        rc = gpu_word(r, &r->words.word[i], gpu, pending);
    return rc;
}

static dt_result_t nic_word(struct dt_text *r, const struct dt_word *word,
                            dt_topo_nic_t *nic, struct dt_text_pending *pending)
{
    static const char *const types[] = {"unknown",   "ib",       "roce", "efa",
                                        "slingshot", "ethernet", NULL};
    static const char *const states[] = {"unknown", "up", "down", NULL};
    dt_result_t rc;
    int index;
    uint64_t value;
    if (DT_WORD_IS(word, "Names"))
        return text(r, word, nic->names, sizeof(nic->names));
    if (DT_WORD_IS(word, "Net"))
        return text(r, word, nic->net, sizeof(nic->net));
    if (DT_WORD_IS(word, "Bus"))
        return bus_id(r, word, nic->bus);
    if (DT_WORD_IS(word, "Type")) {
        rc = dt_word_one_of(&r->words, word, types, &index);
        if (rc == DT_SUCCESS)
            nic->type = (dt_nic_type_t)index;
        return rc;
    }
    if (DT_WORD_IS(word, "State")) {
        rc = dt_word_one_of(&r->words, word, states, &index);
        if (rc == DT_SUCCESS)
            nic->state = (dt_link_state_t)index;
        return rc;
    }
    if (DT_WORD_IS(word, "Port"))
        return dt_word_small(&r->words, word, 255, &nic->port);
    if (DT_WORD_IS(word, "Gbps")) {
        rc = dt_word_number(&r->words, word, 1000000, &value);
        if (rc == DT_SUCCESS)
            nic->gbps = (uint32_t)value;
        return rc;
    }
    if (DT_WORD_IS(word, "Numa"))
        return numa_node(r, word, &nic->numa);
    if (DT_WORD_IS(word, "Package"))
        return dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                             &nic->package);
    if (DT_WORD_IS(word, "Under"))
        return bridge(r, word, &nic->under);
    if (DT_WORD_IS(word, "Paths"))
        return keep(r, word, &pending->paths);
    return dt_text_unknown(r, word);
}

static dt_result_t read_nic(struct dt_text *r)
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

static dt_result_t link_row(struct dt_text *r, uint32_t row,
                            const struct dt_text_pending *pending)
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

static dt_result_t path_row(struct dt_text *r, uint32_t row,
                            const struct dt_text_pending *pending)
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

static dt_result_t read_rows(struct dt_text *r)
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

static dt_result_t read_header(struct dt_text *r)
{
    const struct dt_words *line = &r->words;
    if (strcmp(line->word[0].value, "1") != 0)
        return dt_word_bad(&r->words, "DtTopology", line->word[0].value,
                           "version 1, the only one this slurm-dt knows");
    for (size_t i = 1; i < line->n; i++) {
        const struct dt_word *word = &line->word[i];
        dt_result_t rc;
        if (DT_WORD_IS(word, "Source"))
            rc = text(r, word, r->topo->source, sizeof(r->topo->source));
        else if (DT_WORD_IS(word, "Missing"))
            rc = text(r, word, r->topo->missing, sizeof(r->topo->missing));
        else if (DT_WORD_IS(word, "NcclFile"))
            rc = text(r, word, r->topo->nccl_file, sizeof(r->topo->nccl_file));
        else
            rc = dt_text_unknown(r, word);
        if (rc != DT_SUCCESS)
            return rc;
    }
    r->headed = true;
    return DT_SUCCESS;
}

static dt_result_t read_line(struct dt_text *r)
{
    static const struct {
        const char *key;
        dt_result_t (*read)(struct dt_text *r);
    } kinds[] = {{"Numa", dt_text_numa},  {"Cpus", dt_text_cpus},
                 {"Switch", read_switch}, {"Gpu", read_gpu},
                 {"Nic", read_nic},       {"DtTopology", read_header}};
    const struct dt_word *first = &r->words.word[0];
    if (!r->headed && !DT_WORD_IS(first, "DtTopology"))
        return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                            "line %zu: expected DtTopology=1 first",
                            r->words.number);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (DT_WORD_IS(first, kinds[i].key))
            return kinds[i].read(r);
    return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                        "line %zu: a line begins with %s=: expected Numa, "
                        "Cpus, Switch, Gpu or Nic",
                        r->words.number, first->key);
}

dt_result_t dt_topo_read_text(const char *data, size_t len, dt_topo_t **topo,
                              struct dt_error *err)
{
    struct dt_text *r = calloc(1, sizeof(*r));
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
