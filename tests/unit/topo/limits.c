/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* limits.c - what fills a buffer of a reader to its end is read, and one more
 * is refused. */
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources.h"

#define TEXT "DtTopology=1\n"
#define XML(inside)                                                            \
    "<system><cpu numaid='0' affinity='f'>" inside "</cpu></system>"

typedef dt_result_t reader_t(const char *data, size_t len, dt_topo_t **topo,
                             struct dt_error *err);

/* In text, @ stands for so many pieces, in which # is the number of each, or
 * for the limit as a number, if there is no piece; ~ for as many others. */
struct limit {
    const char *what, *text, *piece, *other;
    size_t limit;
    const char *says; /* of one more */
};

static const struct limit texts[] = {
    {"a source", "DtTopology=1 Source=@\n", "a", "", 127, "a shorter text"},
    {"what is missing", "DtTopology=1 Missing=@\n", "a", "", 255, "a shorter"},
    {"NCCL's file", "DtTopology=1 NcclFile=@\n", "a", "", 255, "a shorter"},
    {"the name of a switch", TEXT "Switch=@\n", "a", "", 31, "a shorter text"},
    {"the name of a GPU", TEXT "Gpu=0 Name=@\n", "a", "", 63, "a shorter text"},
    {"a UUID", TEXT "Gpu=0 Uuid=@\n", "a", "", 95, "a shorter text"},
    {"a device file", TEXT "Gpu=0 File=@\n", "a", "", 63, "a shorter text"},
    {"the name of a NIC", TEXT "Nic=@\n", "a", "", 31, "a shorter text"},
    {"names of a NIC", TEXT "Nic=a Names=@\n", "a", "", 127, "a shorter text"},
    {"an interface", TEXT "Nic=a Net=@\n", "a", "", 31, "a shorter text"},
    {"pairs of a line", TEXT "Gpu=0@\n", " Minor=0", "", 23,
     "more than 24 pairs"},
    {"odd bytes of values", TEXT "Cpus=0@\n", ",0", "", 32767, "too long"},
    {"even bytes of values", TEXT "Cpus=00@\n", ",0", "", 32766, "too long"},
    {"NUMA nodes", TEXT "@", "Numa=#\n", "", 128, "more than 128 NUMA nodes"},
    {"switches", TEXT "@", "Switch=s#\n", "", 256, "more than 256 PCIe"},
    {"GPUs", TEXT "@", "Gpu=#\n", "", 64, "a number up to 63"},
    {"NICs", TEXT "@", "Nic=n#\n", "", 64, "more than 64 NICs"},
    {"digits of bytes", TEXT "Gpu=0 Memory=@1K\n", "0", "", 22, "bytes, as in"},
    {"digits of links", TEXT "Gpu=0 Links=-1,@1\nGpu=1\n", "0", "", 14,
     "a number per GPU"},
    {"digits of a core", TEXT "Cpus=1 Cores=@1\n", "0", "", 4, "CPUs of this"},
    {"the highest CPU", TEXT "Cpus=@\n", NULL, "", 4095, "a list of CPUs"},
    {"threads of a core", TEXT "Cpus=0-4095 ThreadsPerCore=@\n", NULL, "", 64,
     "a number up to 64"},
    {"the highest package", TEXT "Numa=0 Package=@\n", NULL, "", 63,
     "a number up to 63"},
    {"the highest NUMA node", TEXT "Numa=@\n", NULL, "", UINT32_MAX,
     "a number up to 4294967295"},
    {"links", TEXT "Gpu=0 Links=-1,@\nGpu=1\n", NULL, "", 65535,
     "a number per GPU"},
    {"the highest part", TEXT "Gpu=0 Part=@\n", NULL, "", 32767,
     "a number up to 32767"},
    {"the highest port", TEXT "Nic=a Port=@\n", NULL, "", 255,
     "a number up to 255"},
    {"the highest speed", TEXT "Nic=a Gbps=@\n", NULL, "", 1000000,
     "a number up to 1000000"},
};

static const struct limit gres[] = {
    {"a device file", "Name=gpu File=/@\n", "a", "", 62, "device files of"},
    {"numbered device files", "Name=gpu File=/dev/@[0-3]\n", "a", "", 57,
     "device files of"},
    {"device files", "Name=gpu File=/dev/a@\n", ",/dev/b#", "", 63,
     "at most 64 device files"},
    {"GPUs", "@", "Name=gpu\n", "", 64, "more than 64 GPUs"},
    {"a count of GPUs", "Name=gpu Count=@\n", NULL, "", 64, "up to 64"},
    {"lists of links", "Name=gpu Links=-1@\nName=gpu Count=63\n", ",0", "", 63,
     "a number for each GPU"},
    {"links", "Name=gpu Links=-1,@\nName=gpu\n", NULL, "", 65535,
     "a number for each GPU"},
};

static const struct limit matrices[] = {
    {"NICs", "GPU0@\nGPU0 X~\n", " NIC#", " PIX", 64, "more than 64 NICs"},
    {"the highest GPU", "GPU@\nGPU@ X\n", NULL, "", 9999, "no matrix"},
    {"links", "GPU0 GPU1\nGPU0 X NV@\nGPU1 NV@ X\n", NULL, "", 1000,
     "no such path as NV1001"},
};

static const struct limit xmls[] = {
    {"elements inside each other", "<system>@~</system>", "<a>", "</a>", 63,
     "nested more than 64 deep"},
    {"NUMA nodes", "<system>@</system>", "<cpu numaid='#'/>", "", 128,
     "more than 128 NUMA nodes"},
    {"GPUs", XML("@"), "<pci class='0x030200'/>", "", 64, "more than 64 GPUs"},
    {"NICs", XML("@"), "<pci class='0x020000' busid='0:#:0.0'/>", "", 64,
     "more than 64 NICs"},
    {"PCI functions", XML("@"), "<pci class='0x010000'/>", "", 2176,
     "more than 2176 PCI functions"},
    {"links of all GPUs",
     XML("<pci class='0x030200'><gpu dev='0'>@</gpu></pci>"),
     "<nvlink target='x'/>", "", 4608, "more than 4608 NVLinks"},
    {"links of one GPU",
     XML("<pci class='0x030200'><gpu dev='0'><nvlink target='x' count='@'/>"
         "</gpu></pci>"),
     NULL, "", 65535, "a number of links"},
    {"words of a mask", "<system><cpu numaid='0' affinity='1@'/></system>",
     ",0", "", 127, "words of 32 bits"},
    {"digits of a word", "<system><cpu numaid='0' affinity='@'/></system>", "f",
     "", 8, "words of 32 bits"},
};

static void repeat(FILE *out, const char *piece, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (const char *at = piece; *at; at++)
            if (*at == '#')
                fprintf(out, "%zu", i);
            else
                fputc(*at, out);
}

static char *write_out(const struct limit *limit, size_t n, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    if (!out)
        abort();
    for (const char *at = limit->text; *at; at++)
        if (*at == '@' && limit->piece)
            repeat(out, limit->piece, n);
        else if (*at == '@')
            fprintf(out, "%zu", n);
        else if (*at == '~')
            repeat(out, limit->other, n);
        else
            fputc(*at, out);
    if (fclose(out))
        abort();
    return text;
}

static dt_result_t read_in(const struct limit *limit, size_t n, reader_t *read,
                           struct dt_error *err)
{
    size_t len = 0;
    dt_topo_t *topo = NULL;
    char *text = write_out(limit, n, &len);
    err->text[0] = '\0';
    dt_result_t rc = read(text, len, &topo, err);
    dt_topo_destroy(topo);
    free(text);
    return rc;
}

static void check(const char *format, const struct limit *limit, size_t n,
                  reader_t *read)
{
    for (size_t i = 0; i < n; i++) {
        struct dt_error err;
        dt_result_t rc = read_in(&limit[i], limit[i].limit, read, &err);
        if (!ok(rc == DT_SUCCESS, "%s: %s: %zu", format, limit[i].what,
                limit[i].limit))
            diag("%s", err.text);
        rc = read_in(&limit[i], limit[i].limit + 1, read, &err);
        if (!ok(rc != DT_SUCCESS && strstr(err.text, limit[i].says),
                "%s: %s: no more", format, limit[i].what))
            diag("%d: %s", rc, err.text);
    }
}

/* The names of two ports, as far as both fit. */
static void check_names(size_t first, size_t second, bool both)
{
    char text[512], a[128], b[128], want[256];
    dt_topo_t *topo = NULL;
    snprintf(a, sizeof(a), "%0*d", (int)first, 0);
    snprintf(b, sizeof(b), "%0*d", (int)second, 0);
    snprintf(want, sizeof(want), both ? "%s/%s" : "%s", a, b);
    int len = snprintf(text, sizeof(text),
                       XML("<pci><nic><net name='%s'/><net name='%s'/></nic>"
                           "</pci>"),
                       a, b);
    ok(dt_topo_read_nccl(text, (size_t)len, &topo, NULL) == DT_SUCCESS &&
           !strcmp(topo->nic[0].names, want),
       "NCCL: names of %zu and %zu bytes: %s", first, second,
       both ? "both" : "the first");
    dt_topo_destroy(topo);
}

int main(void)
{
#define ALL(table) table, sizeof(table) / sizeof(table[0])
    check("text", ALL(texts), dt_topo_read_text);
    check("gres.conf", ALL(gres), dt_topo_read_gres);
    check("matrix", ALL(matrices), dt_topo_read_matrix);
    check("NCCL", ALL(xmls), dt_topo_read_nccl);
    check_names(63, 63, true);
    check_names(64, 63, false);
    check_names(127, 1, false);
    return tap_done();
}
