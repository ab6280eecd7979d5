/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* matrix.c - a topology from the text of nvidia-smi topo -m. */
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources.h"

static dt_topo_t *read_matrix(const char *text)
{
    struct dt_error err = {{0}};
    dt_topo_t *topo = NULL;
    if (dt_topo_read_matrix(text, strlen(text), &topo, &err) != DT_SUCCESS)
        diag("%s", err.text);
    return topo;
}

static bool has_cpus(const dt_topo_gpu_t *gpu, const char *wanted)
{
    char text[256];
    return strcmp(dt_cpuset_print(&gpu->cpus, text, sizeof(text)), wanted) == 0;
}

/* Tabs, underlined headers, all columns, a legend, as drivers print today. */
static void test_today(void)
{
    dt_topo_t *topo = read_matrix(
        "\t\033[4mGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity"
        "\tGPU NUMA ID\033[0m\r\n"
        "GPU0\t X \tNV18\tSYS\tPXB\tSYS\t0-3,8-11\t0\t\tN/A\r\n"
        "GPU1\tNV18\t X \tSYS\tNODE\tSYS\t0-3,8-11\t0\t\tN/A\r\n"
        "GPU2\tSYS\tSYS\t X \tSYS\tPIX\t4-7,12-15\t1,3-5\t\t5\r\n"
        "NIC0\tPXB\tNODE\tSYS\t X \tSYS\t\t\t\t\r\n"
        "NIC1\tSYS\tSYS\tPIX\tSYS\t X \t\t\t\t\r\n"
        "\r\nLegend:\r\n\r\n  X    = Self\r\n"
        "  NV#  = Connection traversing a bonded set of # NVLinks\r\n\r\n"
        "NIC Legend:\r\n\r\n  NIC0: mlx5_2\r\n  NIC1: rocep7s0\001\r\n\r\n");
    if (!ok(topo && topo->ngpus == 3 && topo->nnics == 2,
            "GPUs and NICs are found"))
        return dt_topo_destroy(topo);
    ok(topo->links[0][1] == 18 && topo->links[0][2] == 0, "NVLinks");
    ok(topo->pci[0][1] == DT_PATH_NODE && topo->pci[0][2] == DT_PATH_SYS,
       "where NVLink hides the PCI path, it follows from the NUMA nodes");
    ok(topo->pci[0][3] == DT_PATH_PXB && topo->pci[4][2] == DT_PATH_PIX &&
           topo->pci[3][4] == DT_PATH_SYS,
       "paths to NICs and between them");
    ok(has_cpus(&topo->gpu[0], "0-3,8-11") &&
           topo->numa[topo->gpu[0].numa].id == 0 &&
           topo->numa[topo->gpu[2].numa].id == 1,
       "CPUs and the first NUMA node");
    ok(topo->gpu[0].memory_numa < 0 && topo->gpu[2].memory_numa >= 0 &&
           topo->numa[topo->gpu[2].memory_numa].id == 5,
       "the NUMA node of a GPU's memory");
    ok(strcmp(topo->nic[0].name, "mlx5_2") == 0 &&
           strcmp(topo->nic[1].names, "rocep7s0 ") == 0,
       "the legend names the NICs, without control characters");
    ok(topo->cpu[8].core == topo->cpu[0].core &&
           topo->cpu[8].core != topo->cpu[1].core,
       "two ranges of CPUs are two threads per core");
    dt_topo_destroy(topo);
}

/* Old: NICs under their names, between the GPUs and as rows, no NUMA column;
 * pasted with blanks for tabs, text before and after. */
static void test_old(void)
{
    dt_topo_t *topo =
        read_matrix("user@node:~$ nvidia-smi topo -m\n"
                    "        GPU0    mlx5_0  GPU1    CPU   Affinity\n"
                    "GPU0     X      PHB     SOC     0-3\n"
                    "mlx5_0  PHB      X      SOC\n"
                    "GPU1    SOC     SOC      X      4-7\n"
                    "```\nGPU7 is not here\n");
    if (!ok(topo && topo->ngpus == 2 && topo->nnics == 1,
            "devices in any order, with text around"))
        return dt_topo_destroy(topo);
    ok(topo->pci[0][1] == DT_PATH_SYS && topo->pci[0][2] == DT_PATH_PHB &&
           topo->pci[1][2] == DT_PATH_SYS,
       "SOC is the old word for SYS");
    ok(has_cpus(&topo->gpu[1], "4-7") && topo->gpu[1].numa < 0 &&
           topo->nnumas == 0,
       "CPUs without NUMA nodes");
    dt_topo_destroy(topo);
}

static void test_empty_cells(void)
{
    dt_topo_t *topo = read_matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU "
                                  "NUMA ID\nGPU0\t X \t\t\t\tN/A\n");
    ok(topo && topo->ngpus == 1 && topo->gpu[0].numa < 0 &&
           has_cpus(&topo->gpu[0], ""),
       "one GPU of which nothing is known");
    dt_topo_destroy(topo);
    topo = read_matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                       "GPU0\t X \t0-7\t\tN/A\n");
    ok(topo && topo->gpu[0].numa < 0 && has_cpus(&topo->gpu[0], "0-7"),
       "CPUs but no NUMA node");
    dt_topo_destroy(topo);
    topo = read_matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                       "GPU0\t X \t\t5\t\tN/A\n");
    ok(topo && topo->gpu[0].numa == 0 && topo->numa[0].id == 5 &&
           has_cpus(&topo->gpu[0], ""),
       "a NUMA node but no CPUs");
    dt_topo_destroy(topo);
    topo = read_matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                       "GPU0\t X \t0-7\t0-1\tN/A\n");
    ok(topo && topo->gpu[0].numa < 0 && has_cpus(&topo->gpu[0], "0-7"),
       "near to several NUMA nodes, it is not known which is nearest");
    dt_topo_destroy(topo);
    topo = read_matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\tWarp Factor\n"
                       "GPU0\t X \t0-7\t3\t9\n");
    ok(topo && topo->numa[topo->gpu[0].numa].id == 3,
       "a column that we do not know");
    dt_topo_destroy(topo);
    topo = read_matrix("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA "
                       "ID\nGPU0\t X \tN/A\t0-1\t0\t0\nGPU1\tN/A\t X "
                       "\t2-3\t1\t1\n");
    ok(topo && topo->gpu[0].memory_numa < 0 && topo->numa[0].gpu < 0,
       "a NUMA node with CPUs is not taken for a GPU's memory");
    dt_topo_destroy(topo);
}

#define HEAD "  GPU0 GPU1 mlx5_0 CPU Affinity\n"
#define ROW0 "GPU0 X PIX PXB 0-3\n"
#define ROW1 "GPU1 PIX X PXB 0-3\n"
#define ROW2 "mlx5_0 PXB PXB X\n"

static void test_bad(void)
{
    static const struct {
        const char *what, *text, *says;
    } bad[] = {
        {"nothing", "", "no matrix"},
        {"no header", ROW0 ROW1, "line 1: a row"},
        {"the header alone", HEAD, "row GPU0: it is missing"},
        {"a missing row", HEAD ROW0 ROW2, "line 3: row GPU1: it is missing"},
        {"a matrix without its end", HEAD ROW0 "GPU1 PIX X PXB 0-3",
         "row mlx5_0: it is"},
        {"a part of a row", HEAD ROW0 ROW1 "mlx5", "row mlx5_0: it is"},
        {"some NICs' rows", "GPU0 NIC0 NIC1\nGPU0 X PIX PIX\nNIC0 PIX X PXB\n",
         "row NIC1: it is"},
        {"a short row", HEAD ROW0 "GPU1 PIX X\n" ROW2,
         "row GPU1: it is too short"},
        {"a long row", HEAD ROW0 "GPU1 PIX X PXB 0-3 4\n" ROW2,
         "row GPU1: one cell too many, 4"},
        {"an asymmetric matrix", HEAD ROW0 ROW1 "mlx5_0 PXB SYS X\n",
         "row mlx5_0 says another path to GPU1"},
        {"asymmetric NVLinks", "GPU0 GPU1\nGPU0 X NV2\nGPU1 NV4 X\n",
         "row GPU1 says another"},
        {"another diagonal", HEAD "GPU0 PIX X PXB 0-3\n" ROW1 ROW2,
         "row GPU0: X belongs on the diagonal"},
        {"an unknown cell", HEAD "GPU0 X OK PXB 0-3\n" ROW1 ROW2,
         "row GPU0: no such path as OK"},
        {"NVLinks to a NIC", "GPU0 NIC0\nGPU0 X NV2\nNIC0 NV2 X\n",
         "no such path as NV2"},
        {"a column twice", "GPU0 GPU0\nGPU0 X PIX\nGPU0 PIX X\n",
         "two columns GPU0"},
        {"odd CPUs", HEAD "GPU0 X PIX PXB all\n" ROW1 ROW2,
         "row GPU0: no CPUs like all"},
        {"an odd NUMA node",
         "GPU0 CPU Affinity NUMA Affinity\nGPU0 X 0-3 near\n",
         "row GPU0: no NUMA node like near"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct dt_error err = {{0}};
        dt_topo_t *topo = NULL;
        dt_result_t rc =
            dt_topo_read_matrix(bad[i].text, strlen(bad[i].text), &topo, &err);
        if (!ok(rc == DT_ERR_CORRUPT && !topo && strstr(err.text, bad[i].says),
                "refuses %s", bad[i].what))
            diag("%d: %s", rc, err.text);
    }
    dt_topo_t *topo = read_matrix("\n" HEAD ROW0 ROW1 ROW2);
    ok(topo && topo->nnics == 1, "and takes what is whole");
    dt_topo_destroy(topo);
}

#define LONG "enp193s0f0np0_with_a_name_of_40_letters_x"

/* A name is cut to fit, in the header as in the row. */
static void test_long_name(void)
{
    dt_topo_t *topo =
        read_matrix("GPU0 " LONG "\nGPU0 X PHB\n" LONG " PHB X\n");
    ok(topo && topo->nnics == 1 && topo->pci[1][0] == DT_PATH_PHB &&
           strncmp(LONG, topo->nic[0].name, 20) == 0 &&
           !strstr(topo->source, "without"),
       "the row of a NIC with a long name");
    dt_topo_destroy(topo);
}

static void test_no_nic_rows(void)
{
    dt_topo_t *topo = read_matrix(HEAD ROW0 ROW1);
    ok(topo && topo->nnics == 1 &&
           dt_topo_path(topo, 0, topo->ngpus) == DT_PATH_PXB &&
           dt_topo_path(topo, topo->ngpus, 1) == DT_PATH_PXB &&
           strstr(topo->source, "without the rows of NICs"),
       "the rows of the GPUs are enough");
    dt_topo_destroy(topo);
    topo = read_matrix("GPU0 NIC0 NIC1\nGPU0 X PIX SYS\n\nLegend:\n\n"
                       "  NIC1: mlx5_7\n");
    ok(topo && topo->nnics == 2 && topo->pci[1][0] == DT_PATH_PIX &&
           topo->pci[2][0] == DT_PATH_SYS &&
           strcmp(topo->nic[1].name, "mlx5_7") == 0,
       "with a legend behind them");
    dt_topo_destroy(topo);
}

/* Wherever it is cut, it is whole or refused; it is whole behind the last GPU.
 */
static void test_cut(void)
{
    static const char text[] = HEAD ROW0 ROW1 ROW2;
    static const size_t whole = sizeof(HEAD ROW0 ROW1) - 1;
    size_t wrong = 0;
    for (size_t len = 0; len < sizeof(text) - sizeof(" X\n") + 1; len++) {
        char *cut = strndup(text, len);
        dt_topo_t *topo = NULL;
        if ((dt_topo_read_matrix(cut, len, &topo, NULL) == DT_SUCCESS) !=
            (len == whole))
            wrong++;
        dt_topo_destroy(topo);
        free(cut);
    }
    ok(wrong == 0, "a matrix cut anywhere is refused");
}

int main(void)
{
    test_today();
    test_old();
    test_empty_cells();
    test_bad();
    test_no_nic_rows();
    test_long_name();
    test_cut();
    return tap_done();
}
