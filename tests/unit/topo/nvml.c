/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nvml.c - what NVML adds to a topology, on machines that fake-nvml.c plays.
 * A library that is loaded already is the one that dlopen() finds under its
 * name: so the fake library is loaded by its path first. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources.h"

/* Two processors of four CPUs; GPUs at the buses given, one NIC that shares a
 * PCIe switch with the last GPU, and the others paths SYS. */
static dt_topo_t *node(size_t ngpus, const char *const *bus)
{
    dt_topo_t *topo = dt_topo_create();
    struct dt_error err;
    for (uint32_t i = 0; i < 2; i++) {
        dt_topo_numa_t *numa = dt_topo_add_numa(topo, &err);
        numa->id = i;
        numa->package = (int16_t)i;
        numa->cpus.word[0] = i ? 0xf0 : 0x0f;
    }
    for (size_t i = 0; i < ngpus; i++) {
        dt_topo_gpu_t *gpu = dt_topo_add_gpu(topo, &err);
        dt_topo_text(gpu->bus, sizeof(gpu->bus), bus[i]);
        dt_topo_text(gpu->name, sizeof(gpu->name), "by PCI");
        gpu->vendor = DT_VENDOR_NVIDIA;
        gpu->numa = 0;
    }
    dt_topo_nic_t *nic = dt_topo_add_nic(topo, &err);
    dt_topo_text(nic->name, sizeof(nic->name), "mlx5_0");
    dt_topo_text(nic->bus, sizeof(nic->bus), "0000:04:00.0");
    nic->numa = 0;
    for (size_t a = 0; a <= ngpus; a++)
        for (size_t b = 0; b <= ngpus; b++)
            topo->pci[a][b] =
                a + b + 1 == 2 * ngpus ? DT_PATH_PIX : DT_PATH_SYS;
    if (dt_topo_normalize(topo, &err) != DT_SUCCESS)
        diag("%s", err.text);
    return topo;
}

/* The machine's answer about topo, which it changes. */
static dt_result_t ask(const char *machine, dt_topo_t *topo,
                       struct dt_error *err)
{
    *err = (struct dt_error){.text = ""};
    setenv("DT_FAKE_NVML", machine, 1);
    dt_result_t rc = dt_topo_ask_nvml(topo, err);
    if (rc != DT_SUCCESS)
        diag("%s: %s", machine, err->text);
    return rc;
}

static bool is_same(const dt_topo_t *a, const dt_topo_t *b)
{
    char *text_a = dt_topo_print(a), *text_b = dt_topo_print(b);
    bool same = strcmp(text_a, text_b) == 0;
    free(text_a);
    free(text_b);
    return same;
}

static unsigned sum_links(const dt_topo_t *topo, size_t gpu)
{
    unsigned sum = 0;
    for (size_t i = 0; i < topo->ngpus; i++)
        sum += topo->links[gpu][i];
    return sum;
}

static void test_none(void)
{
    static const char *const bus[] = {"0000:06:00.0"};
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (real) {
        ok(true, "no library # SKIP this machine has one");
        return;
    }
    dt_topo_t *topo = node(1, bus), *before = node(1, bus);
    struct dt_error err;
    ok(ask("none", topo, &err) == DT_ERR_NOT_FOUND &&
           strstr(err.text, "libnvidia-ml.so.1") && is_same(topo, before),
       "no library: not found, nothing changed");
    dt_topo_destroy(topo);
    dt_topo_destroy(before);
}

static void test_switched(void)
{
    static const char *const bus[] = {
        "0000:1b:00.0", "0000:43:00.0", "0000:52:00.0", "0000:61:00.0",
        "0000:9d:00.0", "0000:c3:00.0", "0000:d1:00.0", "0000:df:00.0"};
    dt_topo_t *topo = node(8, bus);
    struct dt_error err;
    ok(ask("hgx-h100", topo, &err) == DT_SUCCESS && topo->ngpus == 8,
       "eight GPUs on switches");
    const dt_topo_gpu_t *gpu = &topo->gpu[5];
    ok(strcmp(gpu->name, "NVIDIA H100 80GB HBM3") == 0 &&
           strcmp(gpu->uuid, "GPU-00000005-0000-0000-0000-000000000000") == 0 &&
           strcmp(gpu->file, "/dev/nvidia5") == 0 && gpu->minor_number == 5 &&
           gpu->memory == 80ULL << 30 && gpu->part == -1 && !gpu->lost,
       "its name, UUID, device file, memory");
    bool all = true;
    for (size_t a = 0; a < 8; a++)
        for (size_t b = 0; b < 8; b++)
            all = all && topo->links[a][b] == (a == b             ? 0
                                               : a == 3 || b == 3 ? 17
                                                                  : 18);
    ok(all, "as many links as the GPU with fewer has");
    ok(gpu->nvswitch, "over switches");
    ok(topo->pci[0][1] == DT_PATH_SYS && topo->pci[7][8] == DT_PATH_PIX &&
           topo->pci[0][8] == DT_PATH_SYS && gpu->numa == 0,
       "PCIe paths and places stay what hwloc said");
    dt_topo_t *once = dt_topo_create();
    *once = *topo;
    ok(ask("hgx-h100", topo, &err) == DT_SUCCESS && is_same(once, topo),
       "the same when asked again");
    dt_topo_destroy(once);
    dt_topo_destroy(topo);
}

static void test_direct(void)
{
    static const char *const bus[] = {
        "0000:06:00.0", "0000:07:00.0", "0000:0a:00.0", "0000:0b:00.0",
        "0000:85:00.0", "0000:86:00.0", "0000:89:00.0", "0000:8a:00.0"};
    dt_topo_t *topo = node(8, bus);
    struct dt_error err;
    ok(ask("dgx-1v", topo, &err) == DT_SUCCESS && topo->links[0][1] == 1 &&
           topo->links[0][3] == 2 && topo->links[0][4] == 2 &&
           topo->links[0][5] == 0 && topo->links[7][3] == 1,
       "direct links, counted");
    bool all = true;
    for (size_t i = 0; i < 8; i++)
        all = all && sum_links(topo, i) == 6 && !topo->gpu[i].nvswitch;
    ok(all, "six links each, no switch");
    dt_topo_destroy(topo);
}

static void test_lost(void)
{
    static const char *const bus[] = {"0000:06:00.0", "0000:07:00.0",
                                      "0000:0a:00.0"};
    struct dt_error err;
    dt_topo_t *topo = node(3, bus);
    ok(ask("lost", topo, &err) == DT_SUCCESS && topo->ngpus == 3 &&
           !topo->gpu[0].lost && topo->gpu[1].lost && *topo->gpu[0].uuid &&
           strcmp(topo->gpu[1].name, "by PCI") == 0,
       "a lost GPU is marked, and kept");
    ok(!topo->gpu[2].lost, "one that NVML does not list is not");
    dt_topo_destroy(topo);

    topo = node(2, bus);
    ok(ask("lost-unknown", topo, &err) == DT_SUCCESS && topo->gpu[0].lost &&
           !topo->gpu[1].lost,
       "lost: its index gives an error, its bus id is not known");
    dt_topo_destroy(topo);

    topo = node(2, bus);
    ok(ask("lost-by-bus", topo, &err) == DT_SUCCESS && !topo->gpu[1].lost &&
           *topo->gpu[1].uuid,
       "a GPU without an index is found by its bus id");
    dt_topo_destroy(topo);

    topo = node(2, bus);
    ok(ask("hidden", topo, &err) == DT_SUCCESS && !topo->gpu[0].lost &&
           !*topo->gpu[0].uuid && *topo->gpu[1].uuid,
       "a GPU that a cgroup hides is left as it is");
    dt_topo_destroy(topo);
}

static void test_added(void)
{
    static const char *const other[] = {"0000:80:00.0"};
    struct dt_error err;
    dt_topo_t *topo = node(1, other);
    topo->gpu[0].vendor = DT_VENDOR_AMD;
    ok(ask("vm", topo, &err) == DT_SUCCESS && topo->ngpus == 3 &&
           strcmp(topo->gpu[0].bus, "0000:00:05.0") == 0 &&
           strcmp(topo->gpu[2].bus, "0000:80:00.0") == 0,
       "GPUs that PCI does not show are added, in order");
    ok(topo->gpu[0].vendor == DT_VENDOR_NVIDIA && topo->gpu[0].numa == 0 &&
           topo->gpu[0].package == 0 && topo->gpu[1].numa == -1 &&
           dt_cpuset_count(&topo->gpu[1].cpus) == 8,
       "with the CPUs NVML knows, of those that are there");
    ok(topo->pci[0][1] == DT_PATH_PIX && topo->pci[2][3] == DT_PATH_PIX &&
           topo->pci[0][3] == DT_PATH_NODE && topo->pci[0][2] == DT_PATH_NODE,
       "PCIe paths: theirs by NVML, the others moved along");
    ok(topo->links[0][1] == 4 && topo->gpu[0].nvswitch &&
           topo->links[0][2] == 0,
       "switches that a virtual machine does not see");
    dt_topo_destroy(topo);
}

static void test_veto(void)
{
    static const char *const bus[] = {"0000:06:00.0", "0000:07:00.0",
                                      "0000:0a:00.0"};
    struct dt_error err;
    dt_topo_t *topo = node(3, bus);
    topo->links[0][1] = topo->links[1][0] = 9;
    ok(ask("veto", topo, &err) == DT_SUCCESS && topo->links[0][1] == 0 &&
           topo->links[0][2] == 4 && topo->links[1][2] == 4,
       "no links where NVLink is not allowed between two GPUs");
    dt_topo_destroy(topo);
}

static void test_memory_numa(void)
{
    static const char *const bus[] = {"0009:01:00.0", "0019:01:00.0"};
    struct dt_error err;
    dt_topo_t *topo = node(2, bus);
    dt_topo_add_numa(topo, &err)->id = 2;
    ok(ask("grace", topo, &err) == DT_SUCCESS &&
           topo->gpu[0].memory_numa == 2 && topo->numa[2].gpu == 0,
       "a GPU's memory is a NUMA node");
    ok(topo->gpu[1].memory_numa == -1 && topo->numa[1].gpu == -1,
       "but not one with CPUs");
    dt_topo_destroy(topo);
}

static void test_mig(void)
{
    static const char *const bus[] = {"0000:06:00.0", "0000:07:00.0",
                                      "0000:0a:00.0", "0000:80:00.0"};
    struct dt_error err;
    dt_topo_t *topo = node(4, bus);
    topo->gpu[3].vendor = DT_VENDOR_AMD;
    dt_topo_add_numa(topo, &err)->id = 2;
    topo->numa[2].gpu = 3;
    topo->links[0][1] = topo->links[1][0] = 7;
    topo->pci[1][4] = topo->pci[4][1] = DT_PATH_PXB;
    ok(ask("mig", topo, &err) == DT_SUCCESS && topo->ngpus == 6,
       "three instances replace a GPU");
    bool all = true;
    for (int16_t i = 0; i < 3; i++) {
        const dt_topo_gpu_t *gpu = &topo->gpu[1 + i];
        all = all && gpu->part == i && gpu->numa == 0 &&
              strcmp(gpu->bus, "0000:07:00.0") == 0 &&
              strncmp(gpu->uuid, "MIG-00000001-", 13) == 0 &&
              gpu->memory == 10ULL << 30 && gpu->minor_number == 1 &&
              strstr(gpu->name, "MIG 1g.10gb");
    }
    ok(all && strcmp(topo->gpu[1].uuid, topo->gpu[2].uuid) != 0,
       "with their own UUIDs and memory, in its place");
    all = true;
    for (size_t i = 0; i < topo->ngpus; i++)
        all = all && sum_links(topo, i) == 0 && !topo->gpu[i].nvswitch;
    ok(all, "no links from or to instances");
    ok(topo->pci[1][2] == DT_PATH_PIX && topo->pci[1][6] == DT_PATH_PXB &&
           topo->pci[3][6] == DT_PATH_PXB && topo->pci[5][6] == DT_PATH_PIX &&
           topo->pci[0][6] == DT_PATH_SYS && topo->numa[2].gpu == 5,
       "paths and memory follow their devices");
    ok(topo->gpu[4].part == -1 && !topo->gpu[4].lost &&
           strcmp(topo->gpu[4].name,
                  "NVIDIA H100 80GB HBM3 (MIG, no instance)") == 0,
       "a GPU in MIG mode without an instance says so");
    ok(ask("mig", topo, &err) == DT_SUCCESS && topo->ngpus == 6 &&
           topo->gpu[3].part == 2 && topo->pci[5][6] == DT_PATH_PIX,
       "the same when asked again");
    dt_topo_destroy(topo);
}

static void test_absurd(void)
{
    static const char *const bus[] = {"0000:06:00.0", "0000:07:00.0"};
    struct dt_error err;
    dt_topo_t *topo = node(2, bus), *before = node(2, bus);
    ok(ask("absurd", topo, &err) == DT_SUCCESS && topo->ngpus == 2 &&
           topo->nnics == 1,
       "absurd values are survived");
    ok(topo->gpu[0].minor_number == -1 && topo->gpu[0].memory_numa == -1 &&
           topo->gpu[0].name[0] == ' ' && strlen(topo->gpu[0].name) == 63 &&
           sum_links(topo, 0) == 0,
       "and not believed");
    ok(ask("crowd", before, &err) == DT_ERR_UNSUPPORTED && before->ngpus == 2 &&
           !*before->gpu[0].uuid,
       "more MIG instances than there is room for: nothing changed");
    dt_topo_destroy(before);
    dt_topo_destroy(topo);
}

static void test_failure(void)
{
    static const struct {
        const char *machine, *says;
    } failures[] = {
        {"mismatch", "NVML: driver/library version mismatch (18): reboot or "
                     "reload the driver; GPUs are known by PCI only"},
        {"no-driver", "the driver is not loaded (9)"},
        {"odd", "error 77"},
    };
    static const char *const bus[] = {"0000:06:00.0"};
    dt_topo_t *topo = node(1, bus), *before = node(1, bus);
    struct dt_error err;
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
        ok(ask(failures[i].machine, topo, &err) == DT_ERR_SYSTEM &&
               strstr(err.text, failures[i].says) && is_same(topo, before),
           "%s: one line, nothing changed", failures[i].machine);
    dt_topo_destroy(topo);
    dt_topo_destroy(before);
}

/* Only the functions that must be there. */
static void test_old(void)
{
    static const char *const bus[] = {"0000:06:00.0", "0000:07:00.0"};
    struct dt_error err;
    dt_topo_t *topo = node(2, bus);
    topo->links[0][1] = topo->links[1][0] = 2;
    ok(ask("vm", topo, &err) == DT_SUCCESS && topo->ngpus == 4 &&
           topo->links[2][3] == 2 && topo->pci[3][4] == DT_PATH_PIX &&
           strcmp(topo->gpu[2].name, "by PCI") == 0 && !*topo->gpu[0].uuid,
       "a library with four functions adds GPUs and changes nothing else");
    dt_topo_destroy(topo);

    topo = node(2, bus);
    ok(ask("lost", topo, &err) == DT_SUCCESS && topo->gpu[1].lost &&
           !topo->gpu[0].lost,
       "and finds the lost GPU by its index");
    dt_topo_destroy(topo);
}

static void *load(const char *which)
{
    char path[4096];
    const char *build = getenv("DT_BUILD");
    snprintf(path, sizeof(path),
             "%s/tests/unit/topo/%s/.libs/libnvidia-ml.so.1",
             build ? build : ".", which);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        diag("%s", dlerror());
    return library;
}

int main(void)
{
    test_none();
    void *library = load("new");
    if (!ok(library != NULL, "a fake NVML library is loaded"))
        return tap_done();
    test_switched();
    test_direct();
    test_lost();
    test_added();
    test_veto();
    test_memory_numa();
    test_mig();
    test_absurd();
    test_failure();
    int *running = dlsym(library, "fake_nvml_running");
    ok(running && *running == 0, "every nvmlInit has its nvmlShutdown");
    dlclose(library);

    library = load("old");
    if (ok(library != NULL, "a library that can do little"))
        test_old();
    if (library)
        dlclose(library);
    return tap_done();
}
