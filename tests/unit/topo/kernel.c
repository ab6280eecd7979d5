/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernel.c - the device files of GPUs, from folders as the kernel has them. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"
#include "topo/sources/kernel.h"

static char top[] = "/tmp/dt-kernel.XXXXXX";

static void make(const char *folder, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", top, folder);
    for (char *at = path + sizeof(top); *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0755);
            *at = '/';
        }
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/%s/%s", top, folder, file);
    FILE *out = fopen(path, "w");
    if (out) {
        fputs(text, out);
        fclose(out);
    }
}

static int erase(const char *path, const struct stat *stat, int type,
                 struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

static dt_topo_t *machine(void)
{
    static const struct {
        const char *bus;
        dt_vendor_t vendor;
        int16_t part;
    } gpus[] = {{"0000:01:00.0", DT_VENDOR_NVIDIA, -1},
                {"0000:02:00.0", DT_VENDOR_NVIDIA, -1},
                {"0000:03:00.0", DT_VENDOR_AMD, -1},
                {"0000:04:00.0", DT_VENDOR_AMD, 0},
                {"0000:05:00.0", DT_VENDOR_NVIDIA, -1},
                {"0000:06:00.0", DT_VENDOR_NVIDIA, -1}};
    dt_topo_t *topo = dt_topo_create();
    for (size_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
        dt_topo_gpu_t *gpu = dt_topo_add_gpu(topo, NULL);
        strcpy(gpu->bus, gpus[i].bus);
        gpu->vendor = gpus[i].vendor;
        gpu->part = gpus[i].part;
    }
    return topo;
}

int main(void)
{
    char nvidia[64], pci[64];
    if (!mkdtemp(top))
        return skip_all("no folder in /tmp");
    snprintf(nvidia, sizeof(nvidia), "%s/nvidia", top);
    snprintf(pci, sizeof(pci), "%s/pci", top);
    make("nvidia/0000:01:00.0", "information",
         "Model: \t\t NVIDIA H100\nIRQ:   \t\t 17\n"
         "GPU UUID: \t GPU-12-34\nDevice Minor: \t 3\nGPU Excluded:\t No\n");
    make("nvidia/0000:02:00.0", "information",
         "GPU UUID: \t GPU-?\nDevice Minor: \t 99999\n");
    make("nvidia/0000:05:00.0", "information", "Device Minor: \t none\n");
    make("pci/0000:03:00.0/drm", "card1", "");
    make("pci/0000:03:00.0/drm", "renderD129", "");
    make("pci/0000:04:00.0/drm", "renderD130", "");
    make("pci/bridge/0000:01:00.0", "max_link_speed", "32.0 GT/s PCIe\n");
    make("pci/bridge/0000:01:00.0", "current_link_width", "16\n");
    make("pci/bridge", "max_link_speed", "16.0 GT/s PCIe\n");
    make("pci/0000:02:00.0", "max_link_speed", "8.0 GT/s PCIe\n");
    make("pci/0000:02:00.0", "current_link_width", "8\n");
    make("pci/0000:03:00.0", "max_link_speed", "Unknown\n");
    make("pci/0000:03:00.0", "current_link_width", "16\n");
    make("pci/0000:05:00.0", "max_link_speed", "2.5 GT/s PCIe\n");
    make("pci/0000:05:00.0", "current_link_width", "255\n");
    char link[96];
    snprintf(link, sizeof(link), "%s/0000:01:00.0", pci);
    if (symlink("bridge/0000:01:00.0", link) != 0)
        return skip_all("no links in /tmp");

    dt_topo_t *topo = machine();
    const dt_topo_gpu_t *gpu = topo->gpu;
    dt_kernel_devices(topo, nvidia, pci);
    ok(gpu[0].minor_number == 3 && !strcmp(gpu[0].file, "/dev/nvidia3"),
       "the number is the driver's, not the place on the bus");
    ok(!strcmp(gpu[0].name, "NVIDIA H100") && !strcmp(gpu[0].uuid, "GPU-12-34"),
       "name and UUID");
    ok(gpu[1].minor_number < 0 && !*gpu[1].file && !*gpu[1].uuid,
       "absurd values are none");
    ok(gpu[4].minor_number < 0 && !*gpu[4].file, "nor is a word a number");
    ok(!strcmp(gpu[2].file, "/dev/dri/renderD129"), "a render node");
    ok(!*gpu[3].file, "a partition has no file of its own here");
    ok(!*gpu[5].file, "a GPU that the driver does not show stays unknown");
    dt_kernel_pcie(topo, pci);
    ok(gpu[0].pcie.generation == 4 && gpu[0].pcie.lanes == 16,
       "a link is as fast as the slower one of its ends");
    ok(gpu[1].pcie.generation == 3 && gpu[1].pcie.lanes == 8,
       "with the lanes that it has now");
    ok(!gpu[2].pcie.generation && !gpu[4].pcie.generation &&
           !gpu[4].pcie.lanes && !gpu[5].pcie.generation,
       "a link that the kernel does not know is unknown");
    dt_topo_destroy(topo);
    nftw(top, erase, 8, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
