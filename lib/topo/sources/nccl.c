/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.c - a topology from the XML of NCCL or RCCL:
 *   system > cpu > pci ... > gpu > nvlink or xgmi
 *                          > nic > net
 * Other elements are not used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "topo/sources.h"
#include "topo/sources/link_list.h"
#include "topo/sources/pci_tree.h"
#include "topo/sources/xml.h"

enum {
    MAX_FUNCTIONS = DT_PCI_MAX_BRIDGES + DT_TOPO_MAX_DEVICES,
    VENDOR_NVIDIA = 0x10de,
    VENDOR_AMD = 0x1002,
    VENDOR_INTEL = 0x8086,
    VENDOR_AMAZON = 0x1d0f,
};

enum kind {
    KIND_OTHER,
    KIND_SYSTEM,
    KIND_CPU,
    KIND_PCI,
    KIND_GPU,
    KIND_NIC,
};

/* A <pci>. */
struct function {
    char bus[24]; /* "" if it has none */
    size_t line;
    uint32_t class, vendor, device;
    int parent; /* index, -1: it is right below its CPU */
    dt_topo_pcie_t pcie;
    int numa;     /* index into topo->numa, -1 unknown */
    int bridge;   /* index in the tree, -1: none */
    int gpu, nic; /* the first device in it; index, -1 none */
    bool has_functions;
};

struct reader {
    dt_topo_t *topo;
    struct dt_error *err;
    dt_result_t rc; /* of what was done at end tags */

    enum kind open[DT_TOPO_MAX_DEPTH]; /* the elements around the next */
    size_t skipped; /* depth of a <cpu> of another node; 0: none */
    char host[32];  /* the host_hash of the first <cpu> */
    int pci;        /* the innermost open function, -1 none */
    int numa;       /* of the open <cpu>: index, -1 unknown */
    dt_cpuset_t cpus;

    size_t nfunctions;
    struct function function[MAX_FUNCTIONS];
    struct dt_link_list links;
    /* the function that each GPU and NIC is, -1: none */
    int gpu_pci[DT_TOPO_MAX_GPUS], nic_pci[DT_TOPO_MAX_NICS];
    struct dt_pci_tree tree;
};

static dt_result_t bad(const struct reader *r,
                       const struct dt_xml_element *element, const char *key,
                       const char *expected)
{
    char value[64]; /* which &#10; may have given another line */
    dt_topo_text(value, sizeof(value), dt_xml_attribute(element, key));
    return dt_error_set(r->err, DT_ERR_CORRUPT,
                        "line %zu: <%.32s %s=\"%s\">: expected %s",
                        element->line, element->name, key, value, expected);
}

/* ---- numbers ---- */

/* A whole decimal number; false if it is none, or not there. */
static bool read_number(const struct dt_xml_element *element, const char *key,
                        long min, long max, long *value)
{
    const char *text = dt_xml_attribute(element, key);
    int64_t parsed;
    if (!dt_number_parse(text, min, max, &parsed))
        return false;
    *value = (long)parsed;
    return true;
}

/* Hexadecimal, 0 if it is not there; *digits is how many were written. */
static uint32_t read_hex(const struct dt_xml_element *element, const char *key,
                         size_t *digits)
{
    const char *text = dt_xml_attribute(element, key);
    if (text && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    *digits = text ? strspn(text, "0123456789abcdefABCDEF") : 0;
    return *digits ? (uint32_t)strtoul(text, NULL, 16) : 0;
}

/* Class and subclass: 0x0302 of "0x030200". */
static uint32_t read_class(const struct dt_xml_element *element,
                           const char *key)
{
    size_t digits;
    uint32_t class = read_hex(element, key, &digits);
    return digits > 4 ? class >> 8 : class;
}

/* Words of 32 bits, the highest first: "0003ff,f0003fff". false: not that. */
static bool read_mask(const char *text, dt_cpuset_t *cpus)
{
    size_t nwords = 1;
    for (const char *at = text; *at; at++)
        nwords += *at == ',';
    memset(cpus, 0, sizeof(*cpus));
    for (const char *at = text; nwords-- > 0; at++) {
        size_t digits = strspn(at, "0123456789abcdefABCDEF");
        if (!digits || digits > 8 || (at[digits] && at[digits] != ','))
            return false;
        uint64_t word = strtoul(at, NULL, 16);
        if (word && nwords >= DT_TOPO_MAX_CPUS / 32)
            return false;
        if (word)
            cpus->word[nwords / 2] |= word << (nwords % 2 ? 32 : 0);
        at += digits;
    }
    return true;
}

/* ---- elements ---- */

static dt_result_t start_cpu(struct reader *r,
                             const struct dt_xml_element *element)
{
    /* NCCL can merge the nodes that share NVLink into one file: they look
     * alike, and bus ids are unique in one node only */
    const char *host = dt_xml_attribute(element, "host_hash");
    if (!*r->host)
        snprintf(r->host, sizeof(r->host), "%s", host ? host : "-");
    else if (host && strncmp(host, r->host, sizeof(r->host) - 1) != 0) {
        r->skipped = element->depth;
        return DT_SUCCESS;
    }

    const char *mask = dt_xml_attribute(element, "affinity");
    if (!read_mask(mask && *mask ? mask : "0", &r->cpus))
        return bad(r, element, "affinity",
                   "hexadecimal words of 32 bits, as in 00000000,00ffffff");
    r->numa = -1;
    long id;
    if (!read_number(element, "numaid", -1, INT32_MAX, &id))
        return bad(r, element, "numaid", "the number of a NUMA node, or -1");
    if (id < 0)
        return DT_SUCCESS;
    if (dt_topo_find_numa(r->topo, (uint32_t)id) >= 0)
        return bad(r, element, "numaid", "each NUMA node only once");
    dt_topo_numa_t *numa = dt_topo_add_numa(r->topo, r->err);
    if (!numa)
        return DT_ERR_UNSUPPORTED;
    numa->id = (uint32_t)id;
    numa->cpus = r->cpus;
    r->numa = (int)r->topo->nnumas - 1;
    return DT_SUCCESS;
}

static dt_result_t start_pci(struct reader *r,
                             const struct dt_xml_element *element)
{
    if (r->nfunctions == MAX_FUNCTIONS)
        return dt_error_set(r->err, DT_ERR_CORRUPT,
                            "line %zu: more than %d PCI functions",
                            element->line, MAX_FUNCTIONS);
    size_t digits;
    struct function *f = &r->function[r->nfunctions];
    *f = (struct function){
        .line = element->line,
        .class = read_class(element, "class"),
        .vendor = read_hex(element, "vendor", &digits),
        .device = read_hex(element, "device", &digits),
        .parent = r->pci,
        .numa = r->numa,
        .bridge = -1,
        .gpu = -1,
        .nic = -1,
    };
    dt_topo_bus(dt_xml_attribute(element, "busid"), f->bus);
    dt_topo_pcie(&f->pcie, dt_xml_attribute(element, "link_speed"),
                 dt_xml_attribute(element, "link_width"));
    if (r->pci >= 0)
        r->function[r->pci].has_functions = true;
    r->pci = (int)r->nfunctions++;
    return DT_SUCCESS;
}

static dt_vendor_t vendor_of(const struct function *f)
{
    return f->vendor == VENDOR_NVIDIA  ? DT_VENDOR_NVIDIA
           : f->vendor == VENDOR_AMD   ? DT_VENDOR_AMD
           : f->vendor == VENDOR_INTEL ? DT_VENDOR_INTEL
                                       : DT_VENDOR_UNKNOWN;
}

/* A GPU that is, or is a part of, function pci. */
static dt_topo_gpu_t *add_gpu(struct reader *r, int pci)
{
    struct function *f = &r->function[pci];
    dt_topo_gpu_t *gpu = dt_topo_add_gpu(r->topo, r->err);
    if (!gpu)
        return NULL;
    int index = (int)r->topo->ngpus - 1;
    r->gpu_pci[index] = pci;
    memcpy(gpu->bus, f->bus, sizeof(gpu->bus));
    gpu->vendor = vendor_of(f);
    gpu->numa = (int16_t)f->numa;
    gpu->pcie = f->pcie;
    gpu->cpus = r->cpus;
    if (f->gpu < 0) {
        f->gpu = index;
    } else { /* parts of one function follow each other */
        r->topo->gpu[f->gpu].part = 0;
        gpu->part = (int16_t)(index - f->gpu);
    }
    return gpu;
}

static dt_result_t start_gpu(struct reader *r,
                             const struct dt_xml_element *element)
{
    dt_topo_gpu_t *gpu = add_gpu(r, r->pci);
    if (!gpu)
        return DT_ERR_UNSUPPORTED;
    if (gpu->vendor == DT_VENDOR_UNKNOWN) {
        if (dt_xml_attribute(element, "gcn"))
            gpu->vendor = DT_VENDOR_AMD;
        else if (dt_xml_attribute(element, "sm"))
            gpu->vendor = DT_VENDOR_NVIDIA;
    }
    return DT_SUCCESS;
}

static dt_result_t start_link(struct reader *r,
                              const struct dt_xml_element *element)
{
    const char *target = dt_xml_attribute(element, "target");
    if (!target)
        return bad(r, element, "target", "a bus id");
    long count = 1;
    if (dt_xml_attribute(element, "count") &&
        !read_number(element, "count", 0, UINT16_MAX, &count))
        return bad(r, element, "count", "a number of links");
    /* 0x068000 is an NVSwitch, 0x068001 a POWER CPU; and a GPU that the file
     * leaves out is no switch */
    const char *class = dt_xml_attribute(element, "tclass");
    bool to_switch = read_class(element, "tclass") == 0x0680 &&
                     strcmp(class, "0x068001") != 0;
    uint8_t gpu = (uint8_t)(r->topo->ngpus - 1);
    if (strcmp(element->name, "xgmi") == 0)
        r->topo->gpu[gpu].vendor = DT_VENDOR_AMD;
    if (!dt_link_add(&r->links, gpu, target, (uint16_t)count, to_switch))
        return dt_error_set(r->err, DT_ERR_CORRUPT,
                            "line %zu: more than %d NVLinks or XGMI links",
                            element->line, DT_LINK_MAX);
    return DT_SUCCESS;
}

static dt_nic_type_t type_by_name(const char *name)
{
    static const struct {
        const char *prefix;
        dt_nic_type_t type;
    } known[] = {
        {"mlx", DT_NIC_IB},       {"ib", DT_NIC_IB},
        {"hfi", DT_NIC_IB},       {"efa", DT_NIC_EFA},
        {"rdmap", DT_NIC_EFA},    {"roce", DT_NIC_ROCE},
        {"bnxt_re", DT_NIC_ROCE}, {"cxi", DT_NIC_SLINGSHOT},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strncmp(name, known[i].prefix, strlen(known[i].prefix)) == 0)
            return known[i].type;
    return DT_NIC_UNKNOWN; /* NCCL uses it, be it Ethernet */
}

static dt_result_t start_net(struct reader *r,
                             const struct dt_xml_element *element)
{
    const char *name = dt_xml_attribute(element, "name");
    char text[sizeof(((dt_topo_nic_t *)NULL)->names)];
    dt_topo_text(text, sizeof(text), name ? name : "");
    if (!*text)
        return bad(r, element, "name", "the name of a network device");

    struct function *f = r->pci < 0 ? NULL : &r->function[r->pci];
    if (f && f->nic >= 0) { /* another port */
        dt_topo_nic_t *nic = &r->topo->nic[f->nic];
        size_t used = strlen(nic->names), more = strlen(text) + 1;
        if (used + 1 + more <= sizeof(nic->names)) {
            nic->names[used] = '/';
            memcpy(nic->names + used + 1, text, more);
        }
        return DT_SUCCESS;
    }
    dt_topo_nic_t *nic = dt_topo_add_nic(r->topo, r->err);
    if (!nic)
        return DT_ERR_UNSUPPORTED;
    r->nic_pci[r->topo->nnics - 1] = r->pci;
    if (f) {
        f->nic = (int)r->topo->nnics - 1;
        memcpy(nic->bus, f->bus, sizeof(nic->bus));
        nic->pcie = f->pcie;
    }
    dt_topo_text(nic->name, sizeof(nic->name), text);
    dt_topo_text(nic->names, sizeof(nic->names), text);
    nic->type = type_by_name(text);
    nic->numa = (int16_t)r->numa;
    long value;
    if (read_number(element, "speed", 0, INT32_MAX, &value)) /* Mbit/s */
        nic->gbps = (uint32_t)(value / 1000);
    if (read_number(element, "port", 0, INT16_MAX, &value))
        nic->port = (int16_t)value;
    return DT_SUCCESS;
}

/* A function of which only the class is known, as in files that are written by
 * hand for virtual machines. The vendor tells a display adapter from a GPU. */
static dt_result_t add_bare(struct reader *r, int pci)
{
    struct function *f = &r->function[pci];
    uint32_t base = f->class >> 8;
    bool display =
        f->class == 0x0300 && f->vendor && vendor_of(f) == DT_VENDOR_UNKNOWN;
    if ((base == 0x03 && !display) || f->class == 0x1200)
        return add_gpu(r, pci) ? DT_SUCCESS : DT_ERR_UNSUPPORTED;
    if (base != 0x02 || !*f->bus) /* it would have no name */
        return DT_SUCCESS;
    dt_topo_nic_t *nic = dt_topo_add_nic(r->topo, r->err);
    if (!nic)
        return DT_ERR_UNSUPPORTED;
    f->nic = (int)r->topo->nnics - 1;
    r->nic_pci[f->nic] = pci;
    memcpy(nic->bus, f->bus, sizeof(nic->bus));
    dt_topo_text(nic->name, sizeof(nic->name), f->bus);
    dt_topo_text(nic->names, sizeof(nic->names), f->bus);
    nic->numa = (int16_t)f->numa;
    if (f->class == 0x0207)
        nic->type = DT_NIC_IB;
    else if (f->vendor == VENDOR_AMAZON && f->device >> 4 == 0xefa)
        nic->type = DT_NIC_EFA;
    return DT_SUCCESS;
}

/* ---- the walk ---- */

static dt_result_t misplaced(const struct reader *r,
                             const struct dt_xml_element *element,
                             const char *expected)
{
    return dt_error_set(r->err, DT_ERR_CORRUPT,
                        "line %zu: <%.32s> outside of %s", element->line,
                        element->name, expected);
}

static dt_result_t on_start(void *arg, const struct dt_xml_element *element,
                            struct dt_error *err)
{
    struct reader *r = arg;
    const char *name = element->name;
    if (element->depth == 0) {
        r->open[0] = KIND_SYSTEM;
        if (strcmp(name, "system") == 0)
            return DT_SUCCESS;
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "<%.64s> is not the <system> of NCCL or RCCL",
                            name);
    }
    enum kind parent = r->open[element->depth - 1];
    enum kind *kind = &r->open[element->depth];
    *kind = KIND_OTHER;
    if (r->skipped || parent == KIND_OTHER)
        return DT_SUCCESS;
    if (strcmp(name, "cpu") == 0) {
        *kind = KIND_CPU;
        return parent == KIND_SYSTEM ? start_cpu(r, element)
                                     : misplaced(r, element, "<system>");
    }
    if (strcmp(name, "pci") == 0) {
        *kind = KIND_PCI;
        return parent == KIND_CPU || parent == KIND_PCI
                   ? start_pci(r, element)
                   : misplaced(r, element, "a <cpu> or <pci>");
    }
    if (strcmp(name, "gpu") == 0) {
        *kind = KIND_GPU;
        return parent == KIND_PCI ? start_gpu(r, element)
                                  : misplaced(r, element, "a <pci>");
    }
    if (strcmp(name, "nvlink") == 0 || strcmp(name, "xgmi") == 0)
        return parent == KIND_GPU ? start_link(r, element)
                                  : misplaced(r, element, "a <gpu>");
    if (strcmp(name, "nic") == 0)
        *kind = KIND_NIC;
    if (strcmp(name, "net") == 0)
        return parent == KIND_NIC || parent == KIND_PCI
                   ? start_net(r, element)
                   : misplaced(r, element, "a <nic>");
    return DT_SUCCESS;
}

static void on_end(void *arg, const char *name, size_t depth)
{
    struct reader *r = arg;
    (void)name;
    if (r->skipped == depth)
        r->skipped = 0;
    if (r->skipped)
        return;
    if (r->open[depth] == KIND_CPU) {
        r->numa = -1;
        memset(&r->cpus, 0, sizeof(r->cpus));
    } else if (r->open[depth] == KIND_PCI) {
        const struct function *f = &r->function[r->pci];
        if (!f->has_functions && f->gpu < 0 && f->nic < 0 &&
            r->rc == DT_SUCCESS)
            r->rc = add_bare(r, r->pci);
        r->pci = f->parent;
    }
}

/* ---- after the last element ---- */

static dt_result_t check_bus(const struct reader *r, size_t at, bool *unique)
{
    const struct function *f = &r->function[at];
    *unique = *f->bus != '\0';
    for (size_t i = 0; i < at && *unique; i++) {
        const struct function *other = &r->function[i];
        if (strcmp(f->bus, other->bus) != 0)
            continue;
        if (f->gpu >= 0 || f->nic >= 0 || other->gpu >= 0 || other->nic >= 0)
            return dt_error_set(r->err, DT_ERR_CORRUPT,
                                "line %zu: bus id %s, which the <pci> of line "
                                "%zu has too: each device needs its own",
                                f->line, f->bus, other->line);
        *unique = false;
    }
    return DT_SUCCESS;
}

/* Some switches are invented by NCCL and have no bus id. */
static dt_result_t grow_tree(struct reader *r)
{
    for (size_t i = 0; i < r->nfunctions; i++) {
        struct function *f = &r->function[i];
        bool unique;
        dt_result_t rc = check_bus(r, i, &unique);
        if (rc != DT_SUCCESS)
            return rc;
        if (!f->has_functions)
            continue;
        char name[32];
        if (unique)
            snprintf(name, sizeof(name), "%s", f->bus);
        else
            snprintf(name, sizeof(name), "pci%zu", i);
        int above = f->parent < 0 ? -1 : r->function[f->parent].bridge;
        f->bridge = dt_pci_add(&r->tree, name, above, false, f->numa, r->err);
        if (f->bridge < 0)
            return DT_ERR_UNSUPPORTED;
    }
    return DT_SUCCESS;
}

static int bridge_above(const struct reader *r, int pci)
{
    int parent = pci < 0 ? -1 : r->function[pci].parent;
    return parent < 0 ? -1 : r->function[parent].bridge;
}

static dt_result_t hang(struct reader *r)
{
    dt_result_t rc = grow_tree(r);
    if (rc != DT_SUCCESS)
        return rc;
    int bridge[DT_TOPO_MAX_DEVICES];
    size_t n = 0;
    for (uint32_t i = 0; i < r->topo->ngpus; i++)
        bridge[n++] = bridge_above(r, r->gpu_pci[i]);
    for (uint32_t i = 0; i < r->topo->nnics; i++)
        bridge[n++] = bridge_above(r, r->nic_pci[i]);
    return dt_pci_apply(&r->tree, bridge, r->topo, r->err);
}

static dt_result_t read_all(struct reader *r, const char *data, size_t len)
{
    static const struct dt_xml_handler handler = {on_start, on_end};
    dt_result_t rc = dt_xml_walk(data, len, &handler, r, r->err);
    if (rc == DT_SUCCESS)
        rc = r->rc;
    if (rc == DT_SUCCESS)
        rc = hang(r);
    if (rc != DT_SUCCESS)
        return rc;
    dt_link_apply(&r->links, r->topo);
    return dt_topo_normalize(r->topo, r->err);
}

dt_result_t dt_topo_read_nccl(const char *data, size_t len, dt_topo_t **topo,
                              struct dt_error *err)
{
    dt_result_t rc = DT_ERR_NO_MEMORY;
    dt_topo_t *made = dt_topo_create();
    struct reader *r = calloc(1, sizeof(*r));
    if (!made || !r) {
        dt_error_set(err, rc, "out of memory");
        goto free_both;
    }
    r->topo = made;
    r->err = err;
    r->pci = r->numa = -1;
    r->tree.whole = true;
    rc = read_all(r, data, len);
    if (rc == DT_SUCCESS) {
        *topo = made;
        made = NULL;
    }
free_both:
    free(r);
    dt_topo_destroy(made);
    return rc;
}
