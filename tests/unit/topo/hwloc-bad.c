/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc-bad.c - files of hwloc that are refused, each with the reason. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "hwloc-xml.h"
#include "topo/sources/child.h"
#include "../tap.h"

static void refuse(const char *xml, const char *what, const char *text)
{
    struct dt_error err;
    dt_topo_t *topo = read_xml(xml, &err);
    ok(!topo && strstr(err.text, text) && !strchr(err.text, '\n'), "%s: %s",
       what, err.text);
    dt_topo_destroy(topo);
}

#define MATRIX(n, values)                                                      \
    "<distances2 type='PCIDev' nbobjs='" n "' kind='9' "                       \
    "name='NVLinkBandwidth' indexing='gp'><indexes length='5'>11 12</indexes>" \
    "<u64values length='5'>" values "</u64values></distances2>\n"
#define CPU_NUMBER(n) OBJECT("PU", "os_index='" n "' " SETS("0x1"), "")

static void bad_input(void)
{
    refuse("", "empty", "line 1");
    refuse("\n<topology><object", "cut", "line 2");
    refuse("<topology>\n<object type='PU'></topology>\n", "malformed",
           "line 2");
    refuse("<system version='1'/>", "another format", "<system>");
    refuse("<topology version='3.0'><object type='Machine'/></topology>",
           "the next version", "version 3.0, expected 1 or 2");
    refuse("<topology version='2.0'/>", "an empty topology",
           "no valid topology");
    refuse(V2(NUMA(0, "0x1", ""), ""), "no CPUs", "");
    refuse(V2("<object cpuset='0x1'/>", ""), "no type", "line 5");
    refuse(V2(CPU_NUMBER("4096"), ""), "a CPU too many", "4096");
    refuse(V2(CPU_NUMBER("-1"), ""), "a negative CPU", "4096");
    refuse(V2(NUMA(0, "0x1", "") NUMA(0, "0x1", "") CPUS, ""),
           "a NUMA node twice", "");
    refuse(V2(ONE_NODE NVIDIA("01:00.0", "20", "") NVIDIA("01:00.0", "21", ""),
              ""),
           "a GPU twice", "two PCI devices have the bus id 0000:01:00.0");
    refuse(V2(ONE_NODE BRIDGE("01:00.0", NVIDIA("02:00.0", "20", ""))
                  BRIDGE("01:00.0", NVIDIA("03:00.0", "21", "")),
              ""),
           "a bridge twice", "0000:01:00.0 is there twice");
    refuse(V2(FOUR_GPUS, MATRIX("2", "1 2 3")), "a matrix cut short",
           "no valid topology");
    refuse(V2(FOUR_GPUS, MATRIX("4294967295", "1 2 3")), "a huge matrix",
           "expected at most 1024");
    refuse(V2(FOUR_GPUS, MATRIX("65536", "1 2 3")),
           "a matrix with more values than 32 bits count",
           "expected at most 1024");
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
    char *xml = double_quotes(TWO_PACKAGES);
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
    free(xml);
    ok(refused == last, "cut anywhere it is refused: %zu of %zu", refused,
       last);
}

/* What hwloc does to some damaged files. */
static dt_result_t crash(const char *data, size_t len, dt_topo_t **topo,
                         struct dt_error *err)
{
    (void)data, (void)len, (void)topo, (void)err;
    raise(SIGSEGV);
    return DT_SUCCESS;
}

static dt_result_t no_memory(const char *data, size_t len, dt_topo_t **topo,
                             struct dt_error *err)
{
    (void)topo;
    return dt_error_set(err, DT_ERR_NO_MEMORY, "%.*s", (int)len, data);
}

static void child(void)
{
    dt_topo_t *topo = NULL;
    struct dt_error err = {""};
    dt_result_t rc = dt_child_read(crash, "", 0, &topo, &err);
    ok(rc == DT_ERR_CORRUPT && !topo && strstr(err.text, "crashed"),
       "a crash ends the child only: %s", err.text);
    rc = dt_child_read(no_memory, "so few!", 6, &topo, &err);
    ok(rc == DT_ERR_NO_MEMORY && strcmp(err.text, "so few") == 0,
       "an error in the child is the parent's");
}

int main(void)
{
    child();
    bad_input();
    deep();
    cut_anywhere();
    return tap_done();
}
