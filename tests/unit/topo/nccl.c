/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.c - a topology from the XML of NCCL or RCCL. */
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources.h"

static dt_topo_t *read_xml(const char *xml)
{
    struct dt_error err = {{0}};
    dt_topo_t *topo = NULL;
    if (dt_topo_read_nccl(xml, strlen(xml), &topo, &err) != DT_SUCCESS)
        diag("%s", err.text);
    return topo;
}

static void test_switched(void)
{
    /* GPUs in another order than their bus ids, one more switch above one
     * of them, two ports of a NIC, one NIC on the other socket */
    dt_topo_t *topo = read_xml(
        "<?xml version=\"1.0\"?>\n<!-- by hand -->\n"
        "<system version=\"1\">\n"
        "<cpu numaid=\"4\" affinity=\"1,00000003\" arch=\"x86_64\">\n"
        " <pci busid=\"0000:20:00.0\" class=\"0x060400\">\n"
        "  <pci busid=\"0000:2A:00.0\" class=\"0x030200\" vendor=\"0x10de\""
        " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
        "   <gpu dev=\"1\" sm=\"90\" rank=\"1\"/></pci>\n"
        "  <pci busid=\"0000:21:00.0\" class=\"0x060400\">\n"
        "   <pci busid=\"0000:22:00.0\" class=\"0x060400\">\n"
        "    <pci busid=\"0000:29:00.0\" class=\"0x030200\">\n"
        "     <gpu dev=\"0\" sm=\"90\" rank=\"0\"/></pci></pci></pci>\n"
        "  <pci busid=\"0000:23:00.0\" class=\"0x020700\""
        " link_speed=\"2.5 GT/s\" link_width=\"4\"><nic>\n"
        "   <net name=\"mlx5_0\" speed=\"400000\" port=\"1\"/>\n"
        "   <net name=\"mlx5_1\" speed=\"400000\" port=\"2\"/></nic></pci>\n"
        " </pci></cpu>\n"
        "<cpu numaid=\"2\" affinity=\"c\">\n"
        " <pci busid=\"0000:80:00.0\" class=\"0x020000\" vendor=\"0x1d0f\""
        " device=\"0xefa1\"/>\n"
        "</cpu></system>\n");
    if (!ok(topo && topo->ngpus == 2 && topo->nnics == 2 && topo->nnumas == 2,
            "GPUs, NICs and NUMA nodes are found"))
        return dt_topo_destroy(topo);
    const dt_topo_gpu_t *gpu = topo->gpu;
    char cpus[64];
    ok(strcmp(gpu[0].bus, "0000:29:00.0") == 0 &&
           strcmp(gpu[1].bus, "0000:2a:00.0") == 0,
       "GPUs are in order of bus id");
    ok(gpu[0].vendor == DT_VENDOR_NVIDIA && gpu[1].vendor == DT_VENDOR_NVIDIA,
       "a vendor by its number or by sm");
    ok(gpu[1].pcie.generation == 5 && gpu[1].pcie.lanes == 16 &&
           !gpu[0].pcie.generation && topo->nic[0].pcie.generation == 1 &&
           topo->nic[0].pcie.lanes == 4 && !topo->nic[1].pcie.lanes,
       "PCIe links, where the file has them");
    ok(topo->numa[gpu[0].numa].id == 4 &&
           strcmp(dt_cpuset_print(&gpu[0].cpus, cpus, sizeof(cpus)),
                  "0-1,32") == 0,
       "a mask's first word is the highest");
    const dt_topo_nic_t *nic = topo->nic;
    ok(strcmp(nic[0].name, "mlx5_0") == 0 &&
           strcmp(nic[0].names, "mlx5_0/mlx5_1") == 0 && nic[0].gbps == 400 &&
           nic[0].port == 1 && nic[0].type == DT_NIC_IB,
       "a NIC has the names of its ports, and the speed of the first");
    ok(strcmp(nic[1].name, "0000:80:00.0") == 0 && nic[1].type == DT_NIC_EFA &&
           topo->numa[nic[1].numa].id == 2,
       "a NIC without a name is known by its bus id");
    ok(topo->pci[1][2] == DT_PATH_PIX && topo->pci[0][1] == DT_PATH_PXB &&
           topo->pci[0][2] == DT_PATH_PXB && topo->pci[0][3] == DT_PATH_SYS,
       "paths over one switch, over several, to the other socket");
    dt_topo_destroy(topo);
}

/* Two switches below one: what is under each of them is nearer. */
static void test_nested(void)
{
    dt_topo_t *topo = read_xml(
        "<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\">\n"
        " <pci busid=\"0000:10:00.0\" class=\"0x060400\">\n"
        "  <pci busid=\"0000:11:00.0\" class=\"0x060400\">\n"
        "   <pci busid=\"0000:12:00.0\" class=\"0x030200\"><gpu dev=\"0\""
        " sm=\"90\"/></pci>\n"
        "   <pci busid=\"0000:13:00.0\" class=\"0x020700\"><nic>"
        "<net name=\"mlx5_0\"/></nic></pci></pci>\n"
        "  <pci busid=\"0000:21:00.0\" class=\"0x060400\">\n"
        "   <pci busid=\"0000:22:00.0\" class=\"0x030200\"><gpu dev=\"1\""
        " sm=\"90\"/></pci>\n"
        "   <pci busid=\"0000:23:00.0\" class=\"0x020700\"><nic>"
        "<net name=\"mlx5_1\"/></nic></pci></pci>\n"
        " </pci></cpu></system>\n");
    ok(topo && topo->pci[0][2] == DT_PATH_PIX &&
           topo->pci[1][3] == DT_PATH_PIX && topo->pci[0][3] == DT_PATH_PXB &&
           topo->pci[1][2] == DT_PATH_PXB && topo->pci[0][1] == DT_PATH_PXB,
       "between two switches below one is PXB");
    dt_topo_destroy(topo);
}

static void test_bare(void)
{
    dt_topo_t *topo = read_xml(
        "<system><cpu numaid=\"-1\" affinity=\"f\">"
        "<pci busid=\"0001:00:00.0\" class=\"0x030200\"/>"
        "<pci busid=\"0002:00:00.0\" class=\"0x0380\"/>"
        "<pci busid=\"0003:00:00.0\" class=\"0x120000\" vendor=\"0x1002\"/>"
        "<pci busid=\"0004:00:00.0\" class=\"0x030000\" vendor=\"0x1a03\"/>"
        "<pci busid=\"0005:00:00.0\" class=\"0x010802\"/>"
        "<pci busid=\"odd\" class=\"0x030200\"/>"
        "<pci class=\"0x060400\"><pci busid=\"0006:00:00.0\" "
        "class=\"0x020700\"/></pci>"
        "<pci class=\"0x060400\"><pci class=\"0x020000\"/></pci>"
        "<nic><net name=\"eth0\" speed=\"-1\" port=\"0\"/>"
        "<net name=\"eth1\"/></nic></cpu></system>");
    if (!ok(topo && topo->ngpus == 4 && topo->nnics == 3,
            "devices without other attributes are identified by class"))
        return dt_topo_destroy(topo);
    ok(topo->gpu[2].vendor == DT_VENDOR_AMD && !*topo->gpu[3].bus &&
           topo->gpu[0].vendor == DT_VENDOR_UNKNOWN,
       "a BMC's display adapter is no GPU, one without a bus id is");
    ok(topo->nnumas == 0 && topo->gpu[0].numa < 0 &&
           dt_cpuset_count(&topo->gpu[0].cpus) == 4 && topo->ncpus == 4,
       "without NUMA nodes a GPU still has CPUs");
    const dt_topo_nic_t *nic = topo->nic;
    ok(nic[0].type == DT_NIC_IB && strcmp(nic[1].name, "eth0") == 0 &&
           nic[1].type == DT_NIC_UNKNOWN && !nic[1].gbps && !nic[1].port &&
           strcmp(nic[2].name, "eth1") == 0,
       "a net without a PCI function is a NIC of its own");
    dt_topo_destroy(topo);
}

/* clang-format off */
#define CPU(inside) "<system><cpu numaid=\"0\">" inside "</cpu></system>"
#define PCI(bus, inside)                                                       \
    "<pci busid=\"" bus "\" class=\"0x030200\">" inside "</pci>"
#define GPU(inside) "<gpu sm=\"90\">" inside "</gpu>"
#define NVLINK(to, count, class)                                               \
    "<nvlink target=\"" to "\" count=\"" count "\" tclass=\"" class "\"/>"
#define XGMI(to) "<xgmi target=\"" to "\" count=\"1\" tclass=\"0x120000\"/>"
#define TO_GPU       "0x030200"
#define TO_SWITCH    "0x068000"
#define TO_POWER_CPU "0x068001"

static const char nvlinks[] = CPU(
    PCI("01:00.0", GPU(NVLINK("00000000:02:00.0", "2", TO_GPU)
                       NVLINK("0000:0a:00.0", "4", TO_SWITCH)
                       NVLINK("fffffff:ffff:ff", "3", TO_SWITCH)
                       NVLINK("0000:09:00.0", "8", TO_GPU)
                       NVLINK("0000:0c:00.0", "6", TO_POWER_CPU)))
    PCI("02:00.0", GPU(NVLINK("0000:01:00.0", "2", TO_GPU)
                       NVLINK("0000:0c:00.0", "6", TO_POWER_CPU)))
    PCI("03:00.0", GPU(NVLINK("0000:0a:00.0", "5", TO_SWITCH)
                       NVLINK("fffffff:ffff:ff", "1", TO_SWITCH)
                       NVLINK("0000:09:00.0", "8", TO_GPU)))
    PCI("04:00.0", GPU(NVLINK("0000:0a:00.0", "7", TO_SWITCH))));

static const char xgmi[] = CPU(
    PCI("01:00.0", GPU(XGMI("02:00.0"))
                   GPU(XGMI("02:00.0")))
    PCI("02:00.0", GPU(XGMI("01:00.0")))
    PCI("03:00.0", "<gpu sm=\"304\" gcn=\"gfx942\"/>"));

static const char merged[] =
    "<system>"
    "<cpu host_hash=\"0x1\" numaid=\"0\">" PCI("01:00.0", GPU("")) "</cpu>"
    "<cpu host_hash=\"0x2\" numaid=\"0\">" PCI("01:00.0", GPU("")) "</cpu>"
    "<cpu host_hash=\"0x1\" numaid=\"1\">" PCI("02:00.0", GPU("")) "</cpu>"
    "</system>";

static const struct {
    const char *what, *xml, *says;
} bad[] = {
    {"nothing", "", "not well-formed"},
    {"a file cut in half", "<system>\n<cpu numaid=\"0\">\n", "line 3: not"},
    {"another root", "<topology/>", "<topology> is not"},
    {"no numaid", "<system>\n<cpu/></system>", "line 2: <cpu numaid="},
    {"an odd numaid", "<system><cpu numaid=\"zero\"/></system>", "\"zero\""},
    {"a value of two lines", "<system><cpu numaid=\"0&#10;1\"/></system>",
     "\"0 1\""},
    {"a NUMA node twice",
     "<system><cpu numaid=\"0\"/><cpu numaid=\"0\"/></system>", "only once"},
    {"no mask", "<system><cpu numaid=\"0\" affinity=\"0-3\"/></system>",
     "affinity=\"0-3\""},
    {"a mask of long words",
     "<system><cpu numaid=\"0\" affinity=\"123456789\"/></system>", "32 bits"},
    {"a GPU outside of a function", CPU(GPU("")), "outside of a <pci>"},
    {"a bus id twice",
     CPU("\n" PCI("01:00.0", GPU("")) "\n" PCI("01:00.0", GPU(""))),
     "line 3: bus id 0000:01:00.0"},
    {"no count of links",
     CPU(PCI("01:00.0", GPU(NVLINK("02:00.0", "many", TO_GPU)))),
     "count=\"many\""},
    {"a link to nowhere", CPU(PCI("01:00.0", GPU("<nvlink/>"))), "target="},
    {"a net without a name", CPU("<nic><net/></nic>"), "name="},
    {"entities",
     "<!DOCTYPE system [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n"
     "<system>&b;</system>", "line 1: a DOCTYPE"},
};
/* clang-format on */

static void test_nvlinks(void)
{
    dt_topo_t *topo = read_xml(nvlinks);
    if (!ok(topo && topo->ngpus == 4, "GPUs with NVLinks are read"))
        return dt_topo_destroy(topo);
    ok(topo->links[0][1] == 2 && topo->links[1][0] == 2, "direct links");
    ok(topo->links[0][2] == 4 + 1 && topo->links[2][0] == 4 + 1 &&
           topo->links[2][3] == 5 && topo->links[0][3] == 4,
       "over switches the fewer count, of each switch");
    ok(topo->gpu[0].nvswitch && !topo->gpu[1].nvswitch && topo->gpu[2].nvswitch,
       "who is on a switch");
    ok(topo->links[1][2] == 0 && topo->links[1][3] == 0,
       "a POWER CPU or a GPU that is not listed has no links");
    dt_topo_destroy(topo);
}

static void test_xgmi(void)
{
    dt_topo_t *topo = read_xml(xgmi);
    if (!ok(topo && topo->ngpus == 4, "GPUs with XGMI links are read"))
        return dt_topo_destroy(topo);
    ok(topo->links[0][2] == 1 && topo->links[2][1] == 1 && !topo->links[0][1],
       "links to each part of a GPU");
    ok(topo->gpu[0].part == 0 && topo->gpu[1].part == 1 &&
           topo->gpu[2].part == -1,
       "the parts have numbers");
    ok(topo->gpu[0].vendor == DT_VENDOR_AMD &&
           topo->gpu[3].vendor == DT_VENDOR_AMD,
       "XGMI or gcn is AMD's");
    dt_topo_destroy(topo);
}

static void test_merged(void)
{
    dt_topo_t *topo = read_xml(merged);
    ok(topo && topo->ngpus == 2 && topo->nnumas == 2,
       "of a file of several nodes, the first counts");
    dt_topo_destroy(topo);
}

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct dt_error err = {{0}};
        dt_topo_t *topo = NULL;
        dt_result_t rc =
            dt_topo_read_nccl(bad[i].xml, strlen(bad[i].xml), &topo, &err);
        if (!ok(rc != DT_SUCCESS && !topo && strstr(err.text, bad[i].says),
                "refuses %s", bad[i].what))
            diag("%d: %s", rc, err.text);
    }
}

static void test_limits(void)
{
    struct dt_error err = {{0}};
    dt_topo_t *topo = NULL;
    char deep[8192] = "<system><cpu numaid=\"0\">", many[8192], *at = deep;
    for (int i = 0; i < DT_TOPO_MAX_DEPTH; i++)
        strcat(deep, "<pci>");
    dt_result_t rc = dt_topo_read_nccl(at, strlen(at), &topo, &err);
    ok(rc == DT_ERR_CORRUPT && strstr(err.text, "nested more than"),
       "refuses elements without end");
    size_t used = (size_t)sprintf(many, "<system><cpu numaid=\"0\">");
    for (int i = 0; i <= DT_TOPO_MAX_GPUS; i++)
        used += (size_t)sprintf(many + used, "<pci class=\"0x030200\"/>");
    sprintf(many + used, "</cpu></system>");
    rc = dt_topo_read_nccl(many, strlen(many), &topo, &err);
    ok(rc == DT_ERR_UNSUPPORTED && !topo, "refuses more GPUs than we know");
    static const char dtd[] =
        "<!DOCTYPE system SYSTEM \"/nowhere/a.dtd\"><system/>";
    ok(dt_topo_read_nccl(dtd, strlen(dtd), &topo, &err) == DT_SUCCESS &&
           topo->ngpus == 0,
       "a DTD is not fetched; a node without GPUs is a node");
    dt_topo_destroy(topo);
}

int main(void)
{
    test_switched();
    test_nested();
    test_bare();
    test_nvlinks();
    test_xgmi();
    test_merged();
    test_bad();
    test_limits();
    return tap_done();
}
