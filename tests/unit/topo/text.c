/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* text.c - our own topology format: read, refused, written and read again. */
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources.h"

static const char sample[] =
    "# a machine\n"
    "\n"
    "DtTopology=1 Source=\"two halves\" NcclFile=/etc/nccl.xml\r\n"
    "Numa=0 Package=0 Cpus=0-3,8-11 ThreadsPerCore=2 Memory=512G # near\n"
    "Numa=8 Package=1 Cpus=4-7 ThreadsPerCore=2 Siblings=adjacent\n"
    "Numa=9 Gpu=1 Memory=80G\n"
    "Cpus=12-15 Package=1 Cores=12+14,13+15\n"
    "Switch=\"host bridge\" Numa=0\n"
    "Switch=0000:10:00.0 Under=\"host bridge\"\n"
    "Gpu=0 Bus=0000:11:00.0 Vendor=nvidia Name=\"a # GPU\" Uuid=GPU-1 Minor=0 "
    "File=/dev/nvidia0 Under=0000:10:00.0 NvSwitch=yes Links=-1,4 Memory=80G\n"
    "Gpu=1 Bus=0000:91:00.0 Vendor=amd Part=3 Pcie=5x16 Numa=8 Lost=yes "
    "Cpus=4-5 "
    "Links=4,-1\n"
    "Nic=mlx5_0 Net=ib0 Names=mlx5_0/ib0 Bus=12:00.0 Type=ib State=up Port=1 "
    "Gbps=400 Pcie=4x8 Under=0000:10:00.0\n"
    "Nic=eth0 Type=ethernet State=down Numa=8 Paths=SYS,NODE,SYS,X\n";

static dt_topo_t *read_sample(const char *text, struct dt_error *err)
{
    dt_topo_t *topo = NULL;
    err->text[0] = '\0';
    return dt_topo_read_text(text, strlen(text), &topo, err) == DT_SUCCESS
               ? topo
               : NULL;
}

static void what_is_read(const dt_topo_t *topo)
{
    const dt_topo_gpu_t *gpu = topo->gpu;
    const dt_topo_nic_t *nic = topo->nic;
    char cpus[64];
    ok(!strcmp(topo->source, "two halves") &&
           !strcmp(topo->nccl_file, "/etc/nccl.xml"),
       "the header");
    ok(topo->nnumas == 3 && topo->numa[1].id == 8 && topo->npackages == 2 &&
           topo->numa[0].memory == 512ull << 30,
       "NUMA nodes");
    ok(topo->ncpus == 16 && topo->cpu[0].core == topo->cpu[8].core &&
           topo->cpu[4].core == topo->cpu[5].core &&
           topo->cpu[4].core != topo->cpu[6].core &&
           topo->cpu[12].core == topo->cpu[14].core &&
           topo->cpu[12].core != topo->cpu[13].core && topo->cpu[12].numa < 0 &&
           topo->cpu[12].package == 1,
       "cores: split, adjacent and one by one");
    ok(topo->ngpus == 2 && gpu[0].vendor == DT_VENDOR_NVIDIA &&
           !strcmp(gpu[0].name, "a # GPU") && gpu[0].nvswitch &&
           gpu[0].memory == 80ull << 30 && gpu[0].numa == 0 &&
           gpu[1].part == 3 && gpu[1].lost && gpu[1].memory_numa == 2 &&
           !strcmp(dt_cpuset_print(&gpu[1].cpus, cpus, 64), "4-5"),
       "GPUs");
    ok(topo->links[0][1] == 4 && topo->pci[0][1] == DT_PATH_SYS, "links");
    ok(topo->nnics == 2 && nic[0].type == DT_NIC_IB && nic[0].gbps == 400 &&
           nic[0].state == DT_LINK_UP && !strcmp(nic[0].bus, "0000:12:00.0") &&
           topo->pci[0][2] == DT_PATH_PIX && nic[1].state == DT_LINK_DOWN &&
           topo->pci[1][3] == DT_PATH_NODE,
       "NICs");
    ok(!gpu[0].pcie.generation && gpu[1].pcie.generation == 5 &&
           gpu[1].pcie.lanes == 16 && nic[0].pcie.generation == 4 &&
           nic[0].pcie.lanes == 8,
       "PCIe links");
}

static void refused(const char *text, const char *says)
{
    struct dt_error err;
    dt_topo_t *topo = read_sample(text, &err);
    if (!ok(!topo && strstr(err.text, says), "refused: %s", err.text))
        diag("expected \"%s\" after %s", says, text);
    dt_topo_destroy(topo);
}

#define HEAD "DtTopology=1\n"

static void what_is_refused(void)
{
    refused("", "expected DtTopology=1");
    refused("# only this\n", "expected DtTopology=1");
    refused("Numa=0\n", "DtTopology=1 first");
    refused("DtTopology=2\n", "version 1");
    refused(HEAD "Nuna=0\n", "line 2: a line begins with Nuna=");
    refused(HEAD "Numa\n", "expected Key=Value");
    refused(HEAD "Numa=0 =1\n", "expected Key=Value");
    refused(HEAD "Numa=\n", "a number up to");
    refused(HEAD "Numa=-1\n", "a number up to");
    refused(HEAD "Numa=4294967296\n", "a number up to");
    refused(HEAD "Numa=99999999999999999999999\n", "a number up to");
    refused(HEAD "Numa=0\nNuma=0\n", "line 3");
    refused(HEAD "Numa=0 Cpus=1-\n", "a list of CPUs");
    refused(HEAD "Numa=0 Cpus=0-2 ThreadsPerCore=2\n", "not a multiple");
    refused(HEAD "Numa=0 Cpus=0-2 Cores=0+3\n", "CPUs of this line");
    refused(HEAD "Numa=0 Cpus=0-2 Cores=0+\n", "CPUs of this line");
    refused(HEAD "Numa=0 Memory=1X\n", "a number");
    refused(HEAD "Numa=0 Memory=999999999999T\n", "a number");
    refused(HEAD "Numa=0 Siblings=odd\n", "split, adjacent");
    refused(HEAD "Numa=0 Gpu=1\n", "NUMA node 0");
    refused(HEAD "Numa=0 Bus=0\n", "has no Bus=");
    refused(HEAD "Switch=a Under=a\n", "a switch named in a line before");
    refused(HEAD "Switch=a\nSwitch=a\n", "each name once");
    refused(HEAD "Gpu=1\n", "numbered from 0");
    refused(HEAD "Gpu=0 Bus=zz\n", "a PCI bus id");
    refused(HEAD "Gpu=0 Numa=3\n", "a NUMA node named in a line before");
    refused(HEAD "Gpu=0 Lost=maybe\n", "yes or no");
    refused(HEAD "Gpu=0 Name=\"a\n", "closing quote");
    refused(HEAD "Gpu=0 Name=\"a\tb\"\n", "control character");
    refused(HEAD "Gpu=0 Links=-1,2\n", "one number per GPU");
    refused(HEAD "Gpu=0\nGpu=1 Links=-1\n", "line 3");
    refused(HEAD "Gpu=0 Paths=PIX,PIX\n", "one class per device");
    refused(HEAD "Gpu=0 Paths=NVL\n", "PIX, PXB");
    refused(HEAD "Gpu=0 Pcie=16\n", "as 5x16");
    refused(HEAD "Gpu=0 Pcie=0x16\n", "as 5x16");
    refused(HEAD "Gpu=0 Pcie=5x33\n", "as 5x16");
    refused(HEAD "Nic=a Pcie=5x16x\n", "as 5x16");
    refused(HEAD "Nic= Type=ib\n", "its name");
    refused(HEAD "Nic=a Port=256\n", "a number up to 255");
    refused(HEAD "Nic=0123456789012345678901234567890123\n", "shorter");
}

/* Texts too long for a fixed buffer of the reader. */
static void limits(void)
{
    char *text = malloc(80000);
    memcpy(text, HEAD "Gpu=0 Name=", 24);
    memset(text + 24, 'a', 70000);
    memcpy(text + 70024, "\n", 2);
    refused(text, "too long");
    /* the values fill the line's buffer to its last byte, one is left over */
    memset(text + 24, 'a', 65536 - 3);
    strcpy(text + 24 + 65536 - 3, " Uuid= File= Lost=\n");
    refused(text, "line 2");
    strcpy(text, HEAD "Gpu=0");
    for (int i = 0; i < 30; i++)
        strcat(text, " Minor=0");
    refused(text, "more than 24 pairs");
    strcpy(text, HEAD);
    for (int i = 0; i <= DT_TOPO_MAX_GPUS; i++)
        sprintf(text + strlen(text), "Gpu=%d\n", i);
    refused(text, "a number up to 63");
    free(text);
}

static void written(const dt_topo_t *topo)
{
    struct dt_error err;
    char *first = dt_topo_print(topo);
    dt_topo_t *again = first ? read_sample(first, &err) : NULL;
    char *second = again ? dt_topo_print(again) : NULL;
    if (!ok(second && !strcmp(first, second), "printed, read, printed: same"))
        diag("%s\n%s\n%s", err.text, first ? first : "", second ? second : "");
    ok(again && !memcmp(topo->pci, again->pci, sizeof(topo->pci)) &&
           !memcmp(topo->links, again->links, sizeof(topo->links)) &&
           !memcmp(topo->cpu, again->cpu, sizeof(topo->cpu)),
       "paths, links and CPUs came through");
    dt_topo_destroy(again);
    free(first);
    free(second);
}

/* Whatever byte is lost or wrong, there is an answer. */
static void damaged(void)
{
    char *text = malloc(sizeof(sample));
    struct dt_error err;
    size_t n = 0;
    for (size_t i = 0; i + 1 < sizeof(sample); i++) {
        memcpy(text, sample, sizeof(sample));
        text[i] = i % 2 ? '=' : '\1';
        dt_topo_destroy(read_sample(text, &err));
        text[i] = '\0';
        dt_topo_destroy(read_sample(text, &err));
        n++;
    }
    ok(n == sizeof(sample) - 1, "damaged or cut anywhere, it is survived");
    free(text);
}

int main(void)
{
    struct dt_error err;
    dt_topo_t *topo = read_sample(sample, &err);
    if (!ok(topo, "the sample is read"))
        diag("%s", err.text);
    if (!topo)
        return tap_done();
    what_is_read(topo);
    written(topo);
    dt_topo_destroy(topo);
    what_is_refused();
    limits();
    damaged();
    return tap_done();
}
