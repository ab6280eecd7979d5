/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc-xml.h - topologies as hwloc writes them, put together from pieces. */
#ifndef HWLOC_XML_H
#define HWLOC_XML_H

#include <stdlib.h>
#include <string.h>

#include "topo/sources.h"

/* Sets of hwloc with one member. */
#define BIT_0   "0x1"
#define BIT_1   "0x2"
#define BIT_2   "0x4"
#define BIT_3   "0x8"
#define BIT_4   "0x10"
#define BIT_5   "0x20"
#define BIT_6   "0x40"
#define BIT_7   "0x80"
#define BIT_8   "0x100"
#define BIT_254 "0x40000000,,,,,,,0x0"
#define BIT_255 "0x80000000,,,,,,,0x0"

#define SETS(cpuset)      "cpuset='" cpuset "' complete_cpuset='" cpuset "'"
#define NODESETS(nodeset) "nodeset='" nodeset "' complete_nodeset='" nodeset "'"
#define NO_NODES          ""
#define SOME_NODES        NODESETS("0xc0000000,,,,,,,0x0000010f")

#define V1(nodes, inside)                                                      \
    "<?xml version='1.0' encoding='UTF-8'?>\n"                                 \
    "<!DOCTYPE topology SYSTEM 'hwloc.dtd'>\n"                                 \
    "<topology>\n<object type='Machine' " SETS(                                \
        "0xff") " " nodes ">\n" inside "</object>\n</topology>\n"
#define V2(inside, after) V2_ALLOWED("0xff", inside, after)
#define V2_ALLOWED(cpuset, inside, after)                                      \
    "<?xml version='1.0' encoding='UTF-8'?>\n"                                 \
    "<!DOCTYPE topology SYSTEM 'hwloc2.dtd'>\n"                                \
    "<topology version='2.0'>\n<object type='Machine' " SETS(                  \
        "0xff") " allowed_cpuset='" cpuset "' " SOME_NODES ">\n" inside        \
                "</object>\n" after "</topology>\n"
#define OBJECT(type, attributes, inside)                                       \
    "<object type='" type "' " attributes ">\n" inside "</object>\n"
#define INFO(name, value) "<info name='" name "' value='" value "'/>"
#define SOCKET(cpuset, nodeset, inside)                                        \
    OBJECT("Package", SETS(cpuset) " " NODESETS(nodeset), inside)
#define CPU(n) OBJECT("PU", "os_index='" #n "' " SETS(BIT_##n), "")
#define CORE(n, cpuset, inside)                                                \
    OBJECT("Core", "os_index='" n "' " SETS(cpuset), inside)
#define MEMORY(n, cpuset, attributes, inside)                                  \
    OBJECT("NUMANode",                                                         \
           "os_index='" #n                                                     \
           "' " SETS(cpuset) " " NODESETS(BIT_##n) " " attributes,             \
           inside)
#define NUMA(n, cpuset, inside) MEMORY(n, cpuset, "local_memory='1024'", inside)
#define HOST(bus, inside)                                                      \
    OBJECT("Bridge", "bridge_type='0-1' bridge_pci='0000:[" bus "]'", inside)
#define BRIDGE(bus, inside)                                                    \
    OBJECT("Bridge",                                                           \
           "bridge_type='1-1' bridge_pci='0000:[01-02]' "                      \
           "pci_busid='0000:" bus "' pci_type='0604 [10b5:8725] "              \
           "[10b5:8725] ca'",                                                  \
           inside)
#define PCI(bus, class, id, gp, inside)                                        \
    OBJECT("PCIDev",                                                           \
           "gp_index='" gp "' pci_busid='0000:" bus                            \
           "' pci_type='" class " [" id "] [0000:0000] a1'",                   \
           inside)
#define NVIDIA(bus, gp, inside) PCI(bus, "0302", "10de:2330", gp, inside)
#define AMD(bus, class, inside) PCI(bus, class, "1002:74a1", "0", inside)
#define OSDEV(kind, name, inside)                                              \
    OBJECT("OSDev", "osdev_type='" kind "' name='" name "'", inside)
#define NET(name)                    OSDEV("2", name, "")
#define VERBS(name, inside)          OSDEV("3", name, inside)
#define PORT(state, lid)             INFO("Port1State", state) INFO("Port1LID", lid)
#define MELLANOX(bus, class, inside) PCI(bus, class, "15b3:1021", "0", inside)
#define CPUS                         CORE("0", "0x1", CPU(0))
#define ONE_NODE                     NUMA(0, "0x1", "") CPUS

#define TWO_PACKAGES                                                           \
    V2(SOCKET("0x33", BIT_0,                                                   \
              NUMA(0, "0x33", "") CORE("7", "0x11", CPU(0) CPU(4)) CORE(       \
                  "9", "0x22", CPU(1) CPU(5)) HOST("00-05", FIRST_DEVICES))    \
           SOCKET("0xcc", BIT_8,                                               \
                  NUMA(8, "0xcc", "") CORE("7", "0x44", CPU(2) CPU(6))         \
                      CORE("9", "0x88", CPU(3) CPU(7))                         \
                          HOST("80-82", OTHER_DEVICES)),                       \
       "")
#define FIRST_DEVICES                                                          \
    BRIDGE("00:01.0",                                                          \
           BRIDGE("01:00.0", BRIDGE("02:00.0", H100) BRIDGE("02:01.0", IB)))   \
    BRIDGE("00:02.0", PCI("05:00.0", "0300", "1a03:2000", "60", NET("eth9")))
#define H100                                                                   \
    NVIDIA("03:00.0", "50",                                                    \
           INFO("PCIDevice", "GH100")                                          \
               OSDEV("1", "nvml0",                                             \
                     INFO("GPUModel", "H100 &quot;SXM&quot;")                  \
                         INFO("NVIDIAUUID", "GPU-1"))                          \
                   OSDEV("5", "cuda0", INFO("CUDAGlobalMemorySize", "1024")))
#define IB                                                                     \
    MELLANOX("04:00.0", "0207",                                                \
             NET("ib0") VERBS("mlx5_0", PORT("4", "0x12"))                     \
                 VERBS("mlx5_9", ""))
#define OTHER_DEVICES                                                          \
    BRIDGE("80:01.0", MELLANOX("81:00.0", "0200",                              \
                               NET("eth0") VERBS("mlx5_1", PORT("1", "0x0")))  \
                          MELLANOX("81:00.1", "0207", VERBS("mlx5_2", "")))    \
    PCI("82:00.0", "0200", "8086:1533", "61", NET("eno1"))

#define FOUR_GPUS                                                              \
    ONE_NODE HOST("00-05",                                                     \
                  NVIDIA("01:00.0", "11",                                      \
                         OSDEV("1", "x", "")) NVIDIA("02:00.0", "12", "")      \
                      NVIDIA("03:00.0", "13", "") NVIDIA("04:00.0", "14", "")  \
                          PCI("05:00.0", "0680", "10de:1af1", "21", "")        \
                              PCI("06:00.0", "0680", "10de:1af1", "22", ""))

/* hwloc's own reader knows no other quotes. */
static inline char *double_quotes(const char *xml)
{
    char *copy = strdup(xml);
    for (char *at = copy; at && *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return copy;
}

/* NULL: refused. */
static inline dt_topo_t *read_xml(const char *xml, struct dt_error *err)
{
    dt_topo_t *topo = NULL;
    char *text = double_quotes(xml);
    err->text[0] = '\0';
    if (!text || dt_topo_read_hwloc(text, strlen(text), &topo, err))
        topo = NULL;
    free(text);
    return topo;
}

#endif
