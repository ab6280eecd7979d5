/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* model.c - a topology from pieces: order, cores, localities, paths. */
#include "topo/model/model.h"

#include <string.h>

#include "../tap.h"

static void bus_ids(void)
{
    static const struct {
        const char *text, *bus;
    } cases[] = {{"0000:0f:00.0", "0000:0f:00.0"},
                 {"00000000:0F:00.0", "0000:0f:00.0"},
                 {"0f:00.0", "0000:0f:00.0"},
                 {"0:f:0.1", "0000:0f:00.1"},
                 {"0000:0f:1f", "0000:0f:1f.0"},
                 {"10000:01:00.0", "10000:01:00.0"},
                 {"0000:0f:20.0", ""},
                 {"0000:0f:00.8", ""},
                 {"0000:100:00.0", ""},
                 {"", ""},
                 {"0f", ""},
                 {"0000:0f:00.0 ", ""},
                 {"000000000:0f:00.0", ""}};
    char bus[24];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ok(dt_topo_bus(cases[i].text, bus) == (*cases[i].bus != '\0') &&
               !strcmp(bus, cases[i].bus),
           "bus id \"%s\" is \"%s\"", cases[i].text, bus);
    ok(!dt_topo_bus(NULL, bus), "no text is no bus id");
}

static void texts(void)
{
    char field[6];
    dt_topo_text(field, sizeof(field),
                 "a\n\"\x7f"
                 "bc");
    ok(!strcmp(field, "a   b"), "a text is cut, and nothing in it can break a "
                                "line or a quote");
    dt_topo_text(field, sizeof(field), NULL);
    ok(!*field, "no text is empty");
}

static dt_topo_t *two_numas(const char *first, const char *second)
{
    dt_topo_t *topo = dt_topo_create();
    const char *cpus[] = {first, second};
    for (uint32_t i = 0; i < 2; i++) {
        dt_topo_numa_t *numa = dt_topo_add_numa(topo, NULL);
        numa->id = i * 8;
        numa->package = (int16_t)i;
        dt_cpuset_parse(cpus[i], &numa->cpus, NULL);
    }
    return topo;
}

static void order(void)
{
    static const char *const buses[] = {"0000:90:00.0", "10000:01:00.0", "",
                                        "0000:0f:00.0"};
    dt_topo_t *topo = two_numas("0-3", "4-7");
    for (int16_t i = 0; i < 4; i++) {
        dt_topo_gpu_t *gpu = dt_topo_add_gpu(topo, NULL);
        dt_topo_bus(buses[i], gpu->bus);
        gpu->minor_number = i;
    }
    topo->gpu[0].numa = 1;
    topo->numa[1].gpu = 0;
    dt_topo_add_nic(topo, NULL);
    topo->links[0][1] = 7;
    topo->links[1][0] = 6;
    topo->pci[0][3] = DT_PATH_PIX;
    topo->pci[3][0] = DT_PATH_PXB;
    topo->pci[4][0] = DT_PATH_PHB;
    ok(dt_topo_normalize(topo, NULL) == DT_SUCCESS, "finish");
    ok(topo->gpu[0].minor_number == 3 && topo->gpu[1].minor_number == 0 &&
           topo->gpu[2].minor_number == 1 && topo->gpu[3].minor_number == 2,
       "GPUs come in order of bus id, a longer domain later, none last");
    ok(topo->links[1][2] == 6 && topo->links[2][1] == 6 && !topo->links[0][1],
       "links move with them, the fewer of two directions count");
    ok(topo->pci[0][1] == DT_PATH_PXB && topo->pci[1][0] == DT_PATH_PXB &&
           topo->pci[1][4] == DT_PATH_PHB && topo->pci[4][1] == DT_PATH_PHB,
       "paths move with them, the worse of two directions counts");
    ok(topo->numa[1].gpu == 1 && topo->gpu[1].memory_numa == 1,
       "a NUMA node of a GPU's memory still knows its GPU");
    dt_topo_destroy(topo);
}

static void cores(void)
{
    dt_topo_t *topo = two_numas("0-3,8-11", "4-7,12");
    dt_topo_normalize(topo, NULL);
    ok(topo->ncpus == 13 && topo->cpu[0].core == topo->cpu[8].core &&
           topo->cpu[3].core == topo->cpu[11].core &&
           topo->cpu[0].core != topo->cpu[1].core,
       "equal ranges are siblings");
    ok(topo->cpu[4].core == topo->cpu[12].core && topo->cpu[4].core == 4 &&
           topo->cpu[7].core == 7,
       "at the same distance in a node where CPUs are missing, and cores are "
       "numbered in order");
    ok(topo->cpu[0].package == 0 && topo->cpu[12].package == 1 &&
           topo->cpu[12].numa == 1 && topo->npackages == 2,
       "CPUs know their package and NUMA node");
    dt_topo_destroy(topo);

    topo = two_numas("0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15");
    dt_topo_normalize(topo, NULL);
    ok(topo->cpu[0].core == topo->cpu[8].core &&
           topo->cpu[7].core == topo->cpu[15].core &&
           topo->cpu[0].core != topo->cpu[2].core &&
           topo->cpu[2].core != topo->cpu[4].core,
       "where sockets are numbered in turn, siblings are half the node apart");
    dt_topo_destroy(topo);

    topo = two_numas("0,2,4", "1,3,5");
    dt_topo_normalize(topo, NULL);
    ok(topo->cpu[4].core == 4 && topo->cpu[5].core == 5,
       "unless that is another socket");
    dt_topo_destroy(topo);

    topo = two_numas("0-3,8-11,16-19", "4-7,12-15,20-23");
    dt_topo_normalize(topo, NULL);
    ok(topo->cpu[8].core == 8 && topo->cpu[23].core == 23,
       "three equal ranges are not three threads of each core");
    dt_topo_destroy(topo);

    topo = two_numas("0-3", "4-7");
    for (uint16_t c = 0; c < 8; c++)
        topo->cpu[c].core = c / 2;
    dt_topo_normalize(topo, NULL);
    ok(topo->cpu[6].core == 3 && topo->cpu[7].core == 3,
       "cores that the source knows stay");
    dt_topo_destroy(topo);
}

static void localities(void)
{
    dt_topo_t *topo = two_numas("0-3", "4-7");
    dt_topo_switch_t *host = dt_topo_add_switch(topo, NULL);
    host->numa = 1;
    dt_topo_switch_t *leaf = dt_topo_add_switch(topo, NULL);
    leaf->parent = 0;
    dt_topo_switch_t *twin = dt_topo_add_switch(topo, NULL);
    twin->parent = 0;
    dt_topo_switch_t *deep = dt_topo_add_switch(topo, NULL);
    deep->parent = 1;
    static const int16_t under[] = {1, 1, 2, 3, -1, 0};
    for (size_t i = 0; i < 6; i++) {
        dt_topo_gpu_t *gpu = dt_topo_add_gpu(topo, NULL);
        gpu->under = under[i];
    }
    topo->gpu[3].vendor = DT_VENDOR_NVIDIA;
    topo->gpu[3].minor_number = 7;
    dt_cpuset_parse("0-1", &topo->gpu[4].cpus, NULL);
    dt_topo_nic_t *nic = dt_topo_add_nic(topo, NULL);
    nic->numa = 0;
    strcpy(nic->name, "mlx5_0");
    dt_topo_add_nic(topo, NULL);
    dt_topo_normalize(topo, NULL);
    ok(topo->gpu[0].numa == 1 && topo->gpu[3].numa == 1 &&
           topo->gpu[3].package == 1 &&
           dt_cpuset_equal(&topo->gpu[0].cpus, &topo->numa[1].cpus),
       "a GPU is where its host bridge is");
    ok(!strcmp(topo->gpu[3].file, "/dev/nvidia7") && !*topo->gpu[0].file,
       "an NVIDIA GPU's minor number names its device file");
    ok(topo->gpu[4].numa == 0 && dt_cpuset_count(&topo->gpu[4].cpus) == 2,
       "a GPU is in the NUMA node of its CPUs, and keeps these");
    ok(topo->pci[0][1] == DT_PATH_PIX, "same switch: PIX");
    ok(topo->pci[0][3] == DT_PATH_PXB, "a switch under it: PXB");
    ok(topo->pci[0][2] == DT_PATH_PHB, "another one of the host bridge: PHB");
    ok(topo->pci[5][0] == DT_PATH_PHB, "the host bridge itself: PHB");
    ok(topo->pci[0][4] == DT_PATH_SYS, "another NUMA node: SYS");
    ok(topo->pci[4][6] == DT_PATH_NODE, "a NIC of the same NUMA node: NODE");
    ok(!strcmp(topo->nic[0].names, "mlx5_0") ||
           !strcmp(topo->nic[1].names, "mlx5_0"),
       "a NIC's name is one of its names");
    ok(topo->pci[4][7] == DT_PATH_UNKNOWN, "a NIC somewhere: unknown");
    dt_topo_destroy(topo);
}

static void wrong(void)
{
    struct dt_error err = {""};
    dt_topo_t *topo = two_numas("0", "1");
    dt_topo_add_gpu(topo, NULL)->numa = 2;
    ok(dt_topo_normalize(topo, &err) == DT_ERR_CORRUPT && *err.text,
       "a NUMA node that is not there: %s", err.text);
    topo->gpu[0].numa = 0;
    dt_topo_add_switch(topo, NULL)->parent = 0;
    ok(dt_topo_normalize(topo, &err) == DT_ERR_CORRUPT, "a cycle: %s",
       err.text);
    dt_topo_destroy(topo);

    topo = dt_topo_create();
    for (int i = 0; i < DT_TOPO_MAX_GPUS; i++)
        dt_topo_add_gpu(topo, NULL);
    ok(!dt_topo_add_gpu(topo, &err), "a GPU too many: %s", err.text);
    dt_topo_destroy(topo);
    topo = dt_topo_create();
    ok(dt_topo_normalize(topo, NULL) == DT_SUCCESS && !topo->ncpus,
       "nothing at all is a topology, too");
    dt_topo_destroy(topo);
    dt_topo_destroy(NULL);
}

int main(void)
{
    bus_ids();
    texts();
    order();
    cores();
    localities();
    wrong();
    return tap_done();
}
