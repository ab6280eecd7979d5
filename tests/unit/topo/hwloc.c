/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc.c - topologies from hwloc's XML, and from this machine */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hwloc-xml.h"
#include "topo/sources/kernel.h"
#include "../tap.h"

/* A topology that is there even if reading failed. */
static dt_topo_t *expect(const char *xml, const char *what)
{
    struct dt_error err;
    dt_topo_t *topo = read_xml(xml, &err);
    ok(topo != NULL, "%s is read%s%s", what, topo ? "" : ": ",
       topo ? "" : err.text);
    return topo ? topo : dt_topo_create();
}

static bool cpus_are(const dt_cpuset_t *set, const char *want)
{
    char text[256];
    return strcmp(dt_cpuset_print(set, text, sizeof(text)), want) == 0;
}

/* ---- what is read ---- */

static void version_2(void)
{
    dt_topo_t *topo = expect(TWO_PACKAGES, "version 2");
    ok(topo->npackages == 2 && topo->ncpus == 8 && topo->nnumas == 2,
       "packages, CPUs, NUMA nodes");
    ok(topo->numa[1].id == 8 && topo->numa[1].package == 1 &&
           topo->numa[1].memory == 1024 &&
           cpus_are(&topo->numa[1].cpus, "2-3,6-7"),
       "a NUMA node has the CPUs next to it");
    ok(topo->cpu[1].core == 1 && topo->cpu[5].core == 1 &&
           topo->cpu[6].core == 2 && topo->cpu[6].package == 1,
       "siblings share a core, cores are numbered per node");

    const dt_topo_gpu_t *gpu = &topo->gpu[0];
    ok(topo->ngpus == 1 && strcmp(gpu->bus, "0000:03:00.0") == 0,
       "the display of a BMC is no GPU");
    ok(strcmp(gpu->name, "H100  SXM ") == 0 && strcmp(gpu->uuid, "GPU-1") == 0,
       "its name is the driver's, without quotes");
    ok(gpu->vendor == DT_VENDOR_NVIDIA && gpu->memory == 1 << 20 &&
           gpu->numa == 0 && gpu->package == 0 && gpu->part == -1 &&
           cpus_are(&gpu->cpus, "0-1,4-5"),
       "its vendor, memory and place");

    ok(topo->nnics == 3, "Ethernet without RDMA is left out");
    ok(strcmp(topo->nic[0].name, "mlx5_0") == 0 &&
           strcmp(topo->nic[0].names, "mlx5_0/mlx5_9/ib0") == 0 &&
           strcmp(topo->nic[0].net, "ib0") == 0,
       "two verbs names: %s", topo->nic[0].names);
    ok(topo->nic[0].type == DT_NIC_IB && topo->nic[0].state == DT_LINK_UP &&
           topo->nic[0].port == 1,
       "InfiniBand, up");
    ok(topo->nic[1].type == DT_NIC_ROCE && topo->nic[1].state == DT_LINK_DOWN &&
           topo->nic[1].numa == 1,
       "RoCE, down");
    ok(topo->nic[2].type == DT_NIC_IB && topo->nic[2].state == DT_LINK_DOWN &&
           topo->nic[2].port == 0,
       "without a port: down");
    ok(topo->pci[0][1] == DT_PATH_PIX && topo->pci[0][2] == DT_PATH_SYS &&
           topo->pci[2][3] == DT_PATH_PIX,
       "paths");
    ok(topo->nswitches == 4 && strcmp(topo->switches[0].name, "0000:00") == 0 &&
           strcmp(topo->switches[1].name, "0000:01:00.0") == 0 &&
           gpu->under == 1 && topo->switches[1].numa == 0,
       "switches");
    dt_topo_destroy(topo);
}

/* Version 1 has CPUs and devices below NUMA nodes; POWER9 has the memory of
 * GPUs as nodes from 255 downward. */
static void version_1(void)
{
    dt_topo_t *topo = expect(
        V1(SOME_NODES,
           NUMA(0, "0x3",
                OBJECT("Socket", "os_index='0' " SETS("0x3"),
                       CORE("0", "0x3", CPU(0) CPU(1))
                           HOST("00-04", NVIDIA("03:00.0", "20", "")
                                             NVIDIA("04:00.0", "21", ""))))
               NUMA(254, "0x0", "") NUMA(255, "0x0", "")),
        "version 1");
    ok(topo->ngpus == 2 && topo->pci[0][1] == DT_PATH_PHB &&
           topo->gpu[1].numa == 0 && cpus_are(&topo->numa[0].cpus, "0-1"),
       "devices below a NUMA node");
    ok(topo->numa[1].gpu == 1 && topo->numa[2].gpu == 0 &&
           topo->gpu[0].memory_numa == 2 && topo->numa[0].gpu == -1,
       "NUMA nodes without CPUs are the GPUs'");
    dt_topo_destroy(topo);
}

static void gpu_memory(void)
{
    dt_topo_t *topo = expect(
        V2(SOCKET("0x1", "0x5",
                  NUMA(0, "0x1", "")
                      MEMORY(2, "0x1", "subtype='GPUMemory'",
                             INFO("PCIBusID", "00000000:04:00.0"))
                          CPUS HOST("03-04", NVIDIA("03:00.0", "20", "")
                                                 NVIDIA("04:00.0", "21", "")))
               SOCKET("0x2", "0xa",
                      NUMA(1, "0x2", "")
                          MEMORY(3, "0x2", "subtype='GPUMemory'", "") CPU(1)
                              HOST("83-83", NVIDIA("83:00.0", "22", ""))),
           ""),
        "a machine with GPU memory");
    ok(topo->numa[1].gpu == 1 && cpus_are(&topo->numa[1].cpus, ""),
       "the GPU whose memory it is, by its bus id");
    ok(topo->numa[3].gpu == 2 && topo->numa[3].package == 1,
       "and by its package");
    ok(topo->cpu[0].numa == 0 && topo->gpu[1].numa == 0 &&
           topo->numa[0].gpu == -1 && topo->numa[2].gpu == -1,
       "main memory stays main memory");
    dt_topo_destroy(topo);
    topo = expect(V2(NUMA(0, "0x1", "") NUMA(1, "0x0", "") CPUS, ""),
                  "memory without CPUs, and no GPUs");
    ok(topo->numa[1].gpu == -1, "belongs to no GPU");
    dt_topo_destroy(topo);
}

/* What is printed is read by dt_topo_read_text(), so it has to be valid. */
static void broken_memory(void)
{
    dt_topo_t *topo = expect(
        V2(MEMORY(0, "0x1", "local_memory='18446744073709551615'", "")
               CPUS HOST("03-03", NVIDIA("03:00.0", "20",
                                         OSDEV("5", "cuda0",
                                               INFO("CUDAGlobalMemorySize",
                                                    "18014398509481983")))),
           ""),
        "a machine with 16 EiB of memory");
    ok(topo->numa[0].memory == 0 && topo->gpu[0].memory == 0,
       "has an unknown amount");
    dt_topo_destroy(topo);
}

static void which_gpus(void)
{
    dt_topo_t *topo = expect(
        V2(ONE_NODE HOST(
               "00-09",
               PCI("00:02.0", "0380", "8086:4680", "31", "") PCI(
                   "01:00.0", "0300", "8086:56a0", "32",
                   "") PCI("02:00.0", "0380", "8086:0bd5", "33",
                           "") PCI("03:00.0", "0300", "102b:0536", "34", "")
                   PCI("04:00.0", "0680", "10de:22a3", "35",
                       "") PCI("05:00.0", "0300", "10de:2684", "36", "")
                       AMD("06:00.0", "0300", OSDEV("1", "renderD128", "")) AMD(
                           "07:00.0", "0300",
                           OSDEV("1", "rsmi0", INFO("AMDUUID", "ab")))
                           AMD("08:00.0", "1200",
                               OSDEV("1", "rsmi1", INFO("AMDUUID", "00")))
                               OBJECT(
                                   "Bridge",
                                   "bridge_type='1-1' pci_busid='0000:00:03.0' "
                                   "pci_type='0604 [1002:14a1] [1002:14a1] 00'",
                                   AMD("09:00.0", "0300", ""))),
           ""),
        "a box of cards");
    static const char *const want[] = {"0000:02:00.0", "0000:05:00.0",
                                       "0000:07:00.0", "0000:08:00.0",
                                       "0000:09:00.0"};
    bool good = topo->ngpus == 5;
    for (int i = 0; good && i < 5; i++)
        good = strcmp(topo->gpu[i].bus, want[i]) == 0;
    ok(good, "what computes: neither displays nor switches");
    ok(strcmp(topo->gpu[2].uuid, "GPU-00000000000000ab") == 0 &&
           *topo->gpu[3].uuid == '\0',
       "UUIDs of AMD");
    dt_topo_destroy(topo);
}

static void partitions(void)
{
    dt_topo_t *topo = expect(
        V2(ONE_NODE HOST("00-02",
                         AMD("01:00.0", "1200",
                             OSDEV("1", "rsmi10", INFO("AMDUUID", "a"))
                                 OSDEV("1", "rsmi2", INFO("AMDUUID", "2"))
                                     OSDEV("1", "rsmi9", INFO("AMDUUID", "9")))
                             AMD("02:00.0", "1200", OSDEV("1", "rsmi11", ""))),
           ""),
        "a partitioned GPU");
    bool good = topo->ngpus == 4;
    for (int i = 0; good && i < 3; i++)
        good = strcmp(topo->gpu[i].bus, "0000:01:00.0") == 0 &&
               topo->gpu[i].part == i;
    ok(good && topo->gpu[3].part == -1, "one GPU per partition");
    ok(strstr(topo->gpu[0].uuid, "2") && strstr(topo->gpu[1].uuid, "9") &&
           strstr(topo->gpu[2].uuid, "a"),
       "in order of their numbers");
    dt_topo_destroy(topo);
}

static void other_nics(void)
{
    dt_topo_t *topo = expect(
        V2(ONE_NODE HOST(
               "00-02",
               PCI("01:00.0", "0200", "17db:0501", "37",
                   NET("hsn0")) PCI("02:00.0", "0200", "1d0f:efa2", "38",
                                    VERBS("rdmap2s0", PORT("4", "0x0")))
                   MELLANOX("03:00.0", "0207",
                            VERBS("mlx4_0", INFO("Port1State",
                                                 "1") INFO("Port1LID", "0x0")
                                                INFO("Port2State", "4")
                                                    INFO("Port2LID", "0x3")))),
           ""),
        "Slingshot, EFA and two ports");
    ok(topo->nic[0].type == DT_NIC_SLINGSHOT &&
           topo->nic[0].state == DT_LINK_UNKNOWN &&
           strcmp(topo->nic[0].name, "hsn0") == 0,
       "Slingshot, by its interface");
    ok(topo->nic[1].type == DT_NIC_EFA && topo->nic[1].state == DT_LINK_UP &&
           strcmp(topo->nic[1].name, "rdmap2s0") == 0,
       "EFA");
    ok(topo->nic[2].port == 2 && topo->nic[2].state == DT_LINK_UP,
       "the port that is up");
    dt_topo_destroy(topo);
}

static void no_numa(void)
{
    dt_topo_t *topo =
        expect(V1(NO_NODES, CPUS CORE("1", "0x2", CPU(1))
                                HOST("00-01", NVIDIA("01:00.0", "20", ""))),
               "a virtual machine without NUMA nodes");
    ok(topo->nnumas == 1 && cpus_are(&topo->numa[0].cpus, "0-1") &&
           topo->npackages == 1 && topo->ncpus == 2 &&
           topo->cpu[1].package == 0 && topo->cpu[1].core == 1,
       "has its CPUs in one node and in package 0");
    dt_topo_destroy(topo);
    topo = expect(V2(SOCKET("0x1", "0x1", NUMA(0, "0x1", "") CPU(0))
                         SOCKET("0x2", "0x2", NUMA(1, "0x2", "") CPU(1))
                             HOST("00-01", NVIDIA("01:00.0", "20", "")),
                     ""),
                  "a GPU below the machine");
    ok(topo->gpu[0].numa == -1 && topo->gpu[0].package == -1 &&
           cpus_are(&topo->gpu[0].cpus, ""),
       "has no known locality");
    dt_topo_destroy(topo);
}

#define TWO_SOCKETS(allowed, first, second)                                    \
    V2_ALLOWED(allowed,                                                        \
               SOCKET("0x3", BIT_0,                                            \
                      NUMA(0, "0x3", "") CORE("0", "0x1", CPU(0))              \
                          CORE("1", "0x2", CPU(1)) HOST("00-01", first))       \
                   SOCKET("0xc", BIT_1,                                        \
                          NUMA(1, "0xc", "") CORE("2", "0x4", CPU(2))          \
                              CORE("3", "0x8", CPU(3)) HOST("80-82", second)), \
               "")

/* Is a task for each of two GPUs on these CPUs, and knows that they are far? */
static bool is_placed(const dt_topo_t *topo, const char *first,
                      const char *second, uint32_t far)
{
    dt_place_request_t request = {
        .topo = topo, .ntasks = 2, .ngpus = 2, .gpu = {0, 1}};
    dt_place_task_t task[2];
    return dt_place(&request, task, NULL) == DT_SUCCESS &&
           cpus_are(&task[0].cpus, first) && cpus_are(&task[1].cpus, second) &&
           (task[0].notes & DT_PLACE_NOTE_FAR_CPUS) == 0 &&
           (task[1].notes & DT_PLACE_NOTE_FAR_CPUS) == far;
}

/* lstopo --disallowed shows CPUs that a cgroup forbids, too. */
static void allowed(void)
{
    dt_topo_t *topo = expect(TWO_SOCKETS("0x6", NVIDIA("01:00.0", "20", ""),
                                         NVIDIA("81:00.0", "21", "")),
                             "a machine with forbidden CPUs");
    ok(!topo->cpu[0].present && topo->cpu[1].present && topo->ncpus == 3 &&
           cpus_are(&topo->numa[1].cpus, "2") &&
           cpus_are(&topo->gpu[1].cpus, "2"),
       "does not have them");
    ok(is_placed(topo, "1", "2", 0), "and no task runs there");
    dt_topo_destroy(topo);
    topo = expect(TWO_SOCKETS("0x3", NVIDIA("01:00.0", "20", ""),
                              NVIDIA("81:00.0", "21", "")),
                  "a machine whose second package is forbidden");
    ok(topo->gpu[1].package == 1 &&
           is_placed(topo, "0", "1", DT_PLACE_NOTE_FAR_CPUS),
       "and a task there is told that its CPUs are far");
    dt_topo_destroy(topo);
}

/* lstopo --restrict leaves out CPUs, or NUMA nodes. */
static void restricted(void)
{
    dt_topo_t *topo =
        expect(V2(SOCKET("0x3", BIT_0,
                         NUMA(0, "0x3", "") CORE("0", "0x1", CPU(0))
                             CORE("1", "0x2", CPU(1))
                                 HOST("00-01", NVIDIA("01:00.0", "20", "")))
                      SOCKET("0x0", BIT_1,
                             NUMA(1, "0x0", "")
                                 HOST("80-81", NVIDIA("81:00.0", "21", ""))),
                  ""),
               "a machine without the CPUs of its second package");
    ok(topo->gpu[1].package == 1 &&
           is_placed(topo, "0", "1", DT_PLACE_NOTE_FAR_CPUS),
       "and a task there is told that its CPUs are far");
    dt_topo_destroy(topo);

    topo = expect(
        V2(SOCKET("0x3", BIT_0,
                  NUMA(0, "0x3", "") CORE("0", "0x1", CPU(0))
                      CORE("1", "0x2", CPU(1))
                          HOST("00-01", NVIDIA("01:00.0", "20", "")))
               SOCKET("0xc", "0x0",
                      CORE("2", "0x4", CPU(2)) CORE("3", "0x8", CPU(3))
                          HOST("80-81", NVIDIA("81:00.0", "21", "")) HOST(
                              "90-91",
                              MELLANOX("91:00.0", "0207",
                                       VERBS("mlx5_2", PORT("4", "0x12"))))),
           ""),
        "a machine without its second NUMA node");
    uint8_t nic[DT_TOPO_MAX_NICS];
    ok(topo->nnumas == 1 && is_placed(topo, "0-1", "2-3", 0),
       "has the CPUs of its second package near the GPUs there");
    ok(topo->pci[1][2] == DT_PATH_SYS &&
           dt_topo_nearest_nics(topo, 1, nic, NULL) == 1,
       "and the NIC");
    dt_topo_destroy(topo);
}

static void links(void)
{
    dt_topo_t *topo = expect(
        V2(FOUR_GPUS,
           "<distances2 type='NUMANode' nbobjs='1' kind='5' name='NUMALatency' "
           "indexing='os'><indexes length='1'>0</indexes>"
           "<u64values length='2'>10</u64values></distances2>\n"
           "<distances2 type='PCIDev' nbobjs='3' kind='9' "
           "name='NVLinkBandwidth' indexing='gp'>"
           "<indexes length='6'>11 13 </indexes>\n"
           "<indexes length='2'>14</indexes>"
           "<u64values length='38'>1000000 150000 1 150000 1000000 50000 "
           "</u64values><u64values length='15'>1 50000 1000000</u64values>"
           "</distances2>\n"
           "<distances2 type='PCIDev' nbobjs='2' kind='9' "
           "name='XGMIBandwidth' indexing='gp'>"
           "<indexes length='5'>11 12</indexes>"
           "<u64values length='17'>0 100000 100000 0</u64values>"
           "</distances2>\n"),
        "a matrix of links");
    ok(topo->links[0][2] == 6 && topo->links[2][0] == 6, "six NVLinks");
    ok(topo->links[2][3] == 2 && topo->links[0][3] == 1, "two, and a slow one");
    ok(topo->links[0][1] == 2 && topo->links[1][2] == 0, "XGMI, and none");
    ok(topo->links[0][0] == 0 && !topo->gpu[0].nvswitch,
       "not to itself, not over switches");
    dt_topo_destroy(topo);

    topo = expect(
        V2(FOUR_GPUS,
           "<distances2hetero nbobjs='5' kind='25' name='NVLinkBandwidth'>"
           "<indexes length='50'>PCIDev:11 PCIDev:12 PCIDev:21 PCIDev:13 "
           "PCIDev:22 </indexes><u64values length='83'>"
           "0 0 50000 0 100000 "
           "0 0 50000 0 50000 "
           "50000 50000 0 0 0 "
           "0 0 0 0 0 "
           "100000 50000 0 0 0</u64values></distances2hetero>\n"),
        "a matrix with NVSwitches");
    ok(topo->links[0][1] == 4 && topo->links[1][0] == 4,
       "both have four links into them: %d", topo->links[0][1]);
    ok(topo->gpu[0].nvswitch && !topo->gpu[2].nvswitch &&
           topo->links[0][2] == 0,
       "and one has none");
    dt_topo_destroy(topo);
}

/* ---- ports ---- */

static void write_file(const char *folder, const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof(full), "%s/%s", folder, path);
    for (char *at = full + strlen(folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        if (mkdir(full, 0700) && errno != EEXIST)
            abort();
        *at = '/';
    }
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    close(fd);
}

static int forget(const char *path, const struct stat *st, int flag,
                  struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void ports(void)
{
    char folder[] = "/tmp/dt-hwloc-XXXXXX";
    if (!mkdtemp(folder))
        abort();
    write_file(folder, "mlx5_0/ports/1/state", "1: DOWN\n");
    write_file(folder, "mlx5_1/ports/1/state", "4: ACTIVE\n");
    write_file(folder, "mlx5_1/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    write_file(folder, "mlx5_1/ports/1/link_layer", "InfiniBand\n");
    dt_topo_t *topo = expect(TWO_PACKAGES, "a machine with ports");
    dt_kernel_ports(topo, folder);
    ok(topo->nic[0].state == DT_LINK_DOWN && topo->nic[0].gbps == 0 &&
           topo->nic[0].type == DT_NIC_IB,
       "the kernel says that it is down now");
    ok(topo->nic[1].state == DT_LINK_UP && topo->nic[1].gbps == 400 &&
           topo->nic[1].type == DT_NIC_IB && topo->nic[1].port == 1,
       "and that another is up, and what it is");
    ok(topo->nic[2].state == DT_LINK_DOWN && topo->nic[2].port == 0,
       "and nothing of a third");
    dt_topo_destroy(topo);
    nftw(folder, forget, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- this machine, and recorded ones ---- */

/* In a child, whose leaks in plugins of hwloc nobody counts. */
static void live(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct dt_error err;
        dt_topo_t *topo = NULL;
        if (dt_topo_read_live(&topo, &err) != DT_SUCCESS) {
            diag("%s", err.text);
            fflush(stdout);
            _exit(1);
        }
        bool good = topo->ncpus >= 1 && topo->npackages >= 1;
        for (uint32_t c = 0; c < topo->ncpus; c++)
            good &= !topo->cpu[c].present || topo->cpu[c].core < topo->ncpus;
        _exit(good ? 0 : 2);
    }
    int status = -1;
    ok(waitpid(pid, &status, 0) == pid && status == 0, "this machine has CPUs");
    setenv("HWLOC_SYNTHETIC", "core:1 pu:1", 1);
    pid = fork();
    if (pid == 0) {
        struct dt_error err;
        dt_topo_t *topo = NULL;
        _exit(dt_topo_read_live(&topo, &err) != DT_ERR_UNSUPPORTED);
    }
    unsetenv("HWLOC_SYNTHETIC");
    ok(waitpid(pid, &status, 0) == pid && status == 0,
       "a synthetic hwloc topology is not taken for this machine");
}

static int recorded(const char *path, const struct stat *st, int flag,
                    struct FTW *ftw)
{
    (void)ftw;
    int fd = flag == FTW_F && st->st_size < DT_TOPO_MAX_FILE
                 ? open(path, O_RDONLY)
                 : -1;
    char *data = fd < 0 ? NULL : calloc(1, (size_t)st->st_size + 1);
    if (data && read(fd, data, (size_t)st->st_size) == st->st_size &&
        strstr(data, "<topology")) {
        struct dt_error err;
        dt_topo_t *topo = read_xml(data, &err);
        ok(topo && topo->ncpus > 1, "%s%s%s", path, topo ? "" : ": ",
           topo ? "" : err.text);
        dt_topo_destroy(topo);
    }
    free(data);
    if (fd >= 0)
        close(fd);
    return 0;
}

/* hwloc has two readers of XML, of which it may lack the second. */
static void files(const char *libxml)
{
    diag("HWLOC_LIBXML_IMPORT=%s", libxml);
    setenv("HWLOC_LIBXML_IMPORT", libxml, 1);
    version_2();
    version_1();
    gpu_memory();
    broken_memory();
    which_gpus();
    partitions();
    other_nics();
    no_numa();
    allowed();
    restricted();
    links();
    unsetenv("HWLOC_LIBXML_IMPORT");
}

int main(void)
{
    files("0");
    files("1");
    ports();
    live();
    const char *folder = getenv("DT_TOPOLOGIES");
    if (!folder || nftw(folder, recorded, 8, FTW_PHYS) < 0)
        ok(true, "recorded machines # SKIP DT_TOPOLOGIES names no folder");
    return tap_done();
}
