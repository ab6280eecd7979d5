/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gres.c - a topology from Slurm's gres.conf. */
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources.h"

static dt_topo_t *read_gres(const char *text)
{
    struct dt_error err = {{0}};
    dt_topo_t *topo = NULL;
    if (dt_topo_read_gres(text, strlen(text), &topo, &err) != DT_SUCCESS)
        diag("%s", err.text);
    return topo;
}

static bool has_cpus(const dt_topo_gpu_t *gpu, const char *wanted)
{
    char text[256];
    return strcmp(dt_cpuset_print(&gpu->cpus, text, sizeof(text)), wanted) == 0;
}

static void test_files(void)
{
    dt_topo_t *topo =
        read_gres("# GPUs of the node\n"
                  "AutoDetect=nvml\n"
                  "Name=gpu Type=h100 File=/dev/nvidia[0-1,3] \\  \n"
                  "  Cores=0-3,8-11   # near the first socket\n"
                  "NAME=GPU type=\"h100\" FILE=/dev/nvidia4,/dev/nvidia[08-09] "
                  "COUNT=3 CPUs=4-7 Flags=nvidia_gpu_env\n"
                  "Name=bandwidth Count=20G\n"
                  "Name=mps Count=400\n");
    if (!ok(topo && topo->ngpus == 6, "lines of GPUs are read, others not"))
        return dt_topo_destroy(topo);
    const dt_topo_gpu_t *gpu = topo->gpu;
    ok(strcmp(gpu[1].file, "/dev/nvidia1") == 0 &&
           strcmp(gpu[2].file, "/dev/nvidia3") == 0 &&
           strcmp(gpu[3].file, "/dev/nvidia4") == 0 &&
           strcmp(gpu[5].file, "/dev/nvidia09") == 0,
       "lists of device files, with zeros in front");
    ok(strcmp(gpu[0].name, "h100") == 0 && gpu[2].minor_number == 3 &&
           gpu[0].vendor == DT_VENDOR_NVIDIA,
       "type, minor number and vendor");
    ok(has_cpus(&gpu[0], "0-3,8-11") && has_cpus(&gpu[3], "4-7"),
       "CPUs, from a continued line too");
    ok(topo->cpu[0].core != topo->cpu[8].core && topo->ncpus == 12,
       "each is a core");
    ok(topo->pci[0][1] == DT_PATH_NODE && topo->pci[0][3] == DT_PATH_SYS,
       "GPUs with the same CPUs are near");
    dt_topo_destroy(topo);
}

static void test_links(void)
{
    dt_topo_t *topo = read_gres("Name=gpu File=/dev/nvidia0 Links=-1,4,0\n"
                                "Name=gpu File=/dev/nvidia2 Links=0,2,-1\n"
                                "Name=gpu File=/dev/nvidia1 Links=4,-1,2\n");
    ok(topo && topo->links[0][2] == 4 && topo->links[2][0] == 4 &&
           topo->links[1][2] == 2 && topo->links[0][1] == 0,
       "Links= are ordered by their -1");
    dt_topo_destroy(topo);
}

static void test_nodes(void)
{
    dt_topo_t *topo = read_gres(
        "NodeName=login Name=tmpdisk Count=1\n"
        "Name=gpu Count=1\n"
        "NodeName=a[1-4] Name=gpu Type=x Count=2 Flags=CountOnly\n"
        "NodeName=b1 Name=gpu Type=y File=/dev/nvidia[0-7]\n"
        "NodeName=a[1-4] Name=gpu Type=z "
        "MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap[20-21]\n");
    if (!ok(topo && topo->ngpus == 4, "the lines of the first nodes count"))
        return dt_topo_destroy(topo);
    ok(!*topo->gpu[0].file && strcmp(topo->gpu[2].name, "x") == 0 &&
           topo->gpu[0].vendor == DT_VENDOR_UNKNOWN,
       "a count without files");
    ok(strcmp(topo->gpu[3].file, "/dev/nvidia-caps/nvidia-cap21") == 0 &&
           topo->gpu[3].minor_number == -1,
       "a MIG instance is known by the last of its files");
    dt_topo_destroy(topo);
}

static void test_bad(void)
{
    static const struct {
        const char *what, *text, *says;
    } bad[] = {
        {"nothing", "", "names no gpu"},
        {"a file without GPUs", "AutoDetect=nvml\nName=mps Count=1\n",
         "names no gpu"},
        {"a count that is not the files'",
         "\nName=gpu File=/dev/nvidia[0-3] Count=8\n", "line 2: Count=8"},
        {"a count that is none", "Name=gpu Count=lots\n", "Count=lots"},
        {"an open bracket", "Name=gpu File=/dev/nvidia[0-3\n", "File=/dev/"},
        {"an empty bracket", "Name=gpu File=/dev/nvidia[]\n", "File=/dev/"},
        {"a range backwards", "Name=gpu File=/dev/nvidia[3-0]\n", "File=/dev/"},
        {"a range without end", "Name=gpu File=/dev/nvidia[0-99999]\n",
         "File=/dev/"},
        {"two brackets", "Name=gpu File=/dev/n[0-1]v[0-1]\n", "File=/dev/"},
        {"no file", "Name=gpu File=/dev/nvidia0,\n", "File=/dev/"},
        {"a long file",
         "Name=gpu File=/dev/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaa[0-3]\n",
         "File=/dev/"},
        {"too many files", "Name=gpu File=/dev/nvidia[0-63,64]\n", "File="},
        {"odd cores", "Name=gpu Cores=0:3\n", "Cores=0:3"},
        {"odd links", "Name=gpu Links=-1,x\n", "Links=-1,x"},
        {"links without -1", "Name=gpu Links=4\n", "-1 for the one itself"},
        {"links with two -1", "Name=gpu Links=-1,-1\n", "-1 for the one"},
        {"links to GPUs that are not listed", "Name=gpu Links=-1,4\n",
         "counts 2 GPUs, 1 are listed"},
        {"links of two GPUs at once",
         "Name=gpu File=/dev/nvidia[0-1] Links=-1,4\n", "one line for each"},
        {"links with -1 in one place",
         "Name=gpu Links=-1,4\nName=gpu Links=-1,4\n", "in the same place"},
        {"words without a key", "Name=gpu \\\nnonsense\n", "nonsense"},
        {"a quote without end", "Name=gpu Type=\"x\n", "closing quote"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct dt_error err = {{0}};
        dt_topo_t *topo = NULL;
        dt_result_t rc =
            dt_topo_read_gres(bad[i].text, strlen(bad[i].text), &topo, &err);
        if (!ok(rc == DT_ERR_CORRUPT && !topo && strstr(err.text, bad[i].says),
                "refuses %s", bad[i].what))
            diag("%d: %s", rc, err.text);
    }
}

int main(void)
{
    test_files();
    test_links();
    test_nodes();
    test_bad();
    return tap_done();
}
