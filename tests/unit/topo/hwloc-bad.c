/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc-bad.c - files of hwloc that are refused, each with the reason. */
#include <stdlib.h>
#include <string.h>

#include "hwloc-xml.h"
#include "../tap.h"

static void refuse(const char *xml, const char *what, const char *text)
{
    struct dt_error err;
    dt_topo_t *topo = read_xml(xml, &err);
    ok(!topo && strstr(err.text, text) && !strchr(err.text, '\n'), "%s: %s",
       what, err.text);
    dt_topo_destroy(topo);
}

#define EMPTY_MATRIX                                                           \
    "<distances2 nbobjs='1' name='NVLinkBandwidth'><indexes>11</indexes>"      \
    "<u64values>0</u64values></distances2>\n"

static void bad_input(void)
{
    refuse("", "empty", "line 1");
    refuse("\n<topology><object", "cut", "line 2");
    refuse("<topology>\n<object type='PU'></topology>\n", "malformed",
           "line 2");
    refuse("<system version='1'/>", "another format", "<system>");
    refuse("<topology version='3.0'><object type='Machine'/></topology>",
           "the next version", "version 3.0, expected 1 or 2");
    refuse("<topology version='2.0'/>", "nothing in it", "without CPUs");
    refuse(V2("<object cpuset='0x1'/>", ""), "no type", "line 5");
    refuse(V2(CPUS CPUS, ""), "a CPU twice", "CPU 0 is there twice");
    refuse(V2(CPU("4096"), ""), "a CPU too many", "4096");
    refuse(V2(CPU("-1"), ""), "a negative CPU", "4096");
    refuse(V2(NUMA("1", "0x1", "") NUMA("1", "0x1", "") CPUS, ""),
           "a NUMA node twice", "NUMA node");
    refuse(V2(CPUS NVIDIA("01:00.0", "0", "") NVIDIA("01:00.0", "0", ""), ""),
           "a GPU twice", "bus id");
    refuse(V2(CPUS BRIDGE("01:00.0", NVIDIA("02:00.0", "0", ""))
                  BRIDGE("01:00.0", NVIDIA("03:00.0", "0", "")),
              ""),
           "a bridge twice", "0000:01:00.0 is there twice");
    refuse(V2(FOUR_GPUS, "<distances2 nbobjs='2' name='NVLinkBandwidth'>"
                         "<indexes>11 12</indexes><u64values>1 2 3</u64values>"
                         "</distances2>"),
           "a matrix cut short", "3 of 4 values");
    refuse(V2(FOUR_GPUS,
              "<distances2 nbobjs='2' name='NVLinkBandwidth'>"
              "<indexes>11 12</indexes><u64values>0 2.5 2.5</u64values>"
              "</distances2>"),
           "a matrix of fractions", " of 4 values");
    refuse(V2(FOUR_GPUS, "<distances2 nbobjs='4294967295' "
                         "name='NVLinkBandwidth'/>"),
           "a huge matrix", "expected 1 to");
    refuse(V2(FOUR_GPUS, EMPTY_MATRIX EMPTY_MATRIX), "a matrix twice",
           "NVLinkBandwidth is there twice");
    refuse("<!DOCTYPE topology [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;'>]>\n"
           "<topology>&b;</topology>",
           "a billion laughs", "line 1");
}

static void deep(void)
{
    enum { DEEP = 100000 };
    static const char open[] = "<object type='Group'>", end[] = "</object>";
    char *xml = malloc(DEEP * (sizeof(open) + sizeof(end)) + 64), *at = xml;
    if (!xml)
        abort();
    at += sprintf(at, "<topology>");
    for (int i = 0; i < DEEP; i++)
        at = stpcpy(at, open);
    for (int i = 0; i < DEEP; i++)
        at = stpcpy(at, end);
    strcpy(at, "</topology>");
    refuse(xml, "100000 deep", "deep");
    free(xml);
}

/* Every beginning of a file is refused, with a line. */
static void cut_anywhere(void)
{
    static const char xml[] = TWO_PACKAGES;
    size_t refused = 0, last = strlen(xml) - 1; /* a line break */
    for (size_t len = 0; len < last; len++) {
        char *cut = strndup(xml, len);
        dt_topo_t *topo = NULL;
        struct dt_error err = {""};
        refused +=
            dt_topo_read_hwloc(cut, len, &topo, &err) == DT_ERR_CORRUPT &&
            !topo && strstr(err.text, "line ");
        free(cut);
    }
    ok(refused == last, "cut anywhere it is refused: %zu of %zu", refused,
       last);
}

int main(void)
{
    bad_input();
    deep();
    cut_anywhere();
    return tap_done();
}
