/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* grant.c - what Slurm granted, found in the topology: GPUs by their names,
 * CPUs by masks and core numbers; NICs by their names. */
#include "placement/grant.h"
#include "placement/nics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/model/model.h"

/* n GPUs; a test fills in what it needs to be known of them */
static dt_topo_t *make_gpus(size_t n)
{
    dt_topo_t *topo = dt_topo_create();
    for (size_t i = 0; topo && i < n; i++)
        dt_topo_add_gpu(topo, NULL);
    if (!topo || topo->ngpus != n)
        abort();
    return topo;
}

static void finds(const char *name, const dt_topo_t *topo, const char *list,
                  uint64_t opens, const char *wanted)
{
    struct dt_devices granted;
    struct dt_error err = {""};
    uint8_t gpu[DT_TOPO_MAX_GPUS];
    char got[256] = "none";
    if (dt_devices_split(list, &granted, NULL) != DT_SUCCESS)
        abort();
    if (dt_grant_gpus(topo, &granted, opens, gpu, &err) == DT_SUCCESS) {
        got[0] = '\0';
        for (size_t k = 0; k < granted.n; k++)
            sprintf(got + strlen(got), "%s%u", k ? "," : "", gpu[k]);
    }
    if (!ok(!strcmp(got, wanted), "%s: %s is %s", name, list, wanted))
        diag("got %s, %s", got, err.text);
}

static void test_gpus(void)
{
    const uint64_t all = UINT64_MAX;
    dt_topo_t *topo = make_gpus(4);
    finds("nothing known", topo, "2,0", all, "2,0");
    finds("nothing known", topo, "4", all, "none");
    finds("nothing known", topo, "0,0", all, "none");
    finds("more than there are", topo, "0,1,2,3,4", all, "none");
    finds("two of four open", topo, "0,1", 0xc, "2,3");
    finds("two of four open", topo, "1,0", 0xa, "3,1");
    finds("two of four open, by their own numbers", topo, "1,3", 0xa, "1,3");
    finds("three of four open", topo, "0,1", 0xe, "none");
    finds("three of four open", topo, "2,1", 0xe, "2,1");
    finds("all are open", topo, "0,1,2,3", all, "0,1,2,3");

    for (uint32_t i = 0; i < 4; i++) {
        sprintf(topo->gpu[i].uuid, "GPU-%u", i);
        topo->gpu[i].minor_number = (int16_t)(3 - i);
    }
    finds("minor numbers", topo, "0,2", all, "3,1");
    finds("minor numbers, but a cgroup", topo, "0,1", 0x5, "0,2");
    finds("UUIDs", topo, "GPU-2,GPU-0", all, "2,0");
    finds("UUIDs, and a cgroup", topo, "GPU-2,GPU-0", 0x5, "2,0");
    finds("an unknown UUID", topo, "GPU-2,GPU-9", all, "none");
    finds("a UUID that cannot be opened", topo, "GPU-1", 0x5, "none");

    for (uint32_t i = 0; i < 4; i++) {
        topo->gpu[i].minor_number = -1;
        sprintf(topo->gpu[i].file, "/dev/nvidia%u", i + 4);
    }
    finds("device files", topo, "7,4", all, "3,0");
    finds("device files", topo, "0", all, "none");
    for (uint32_t i = 0; i < 4; i++)
        sprintf(topo->gpu[i].file, "/dev/dri/renderD%u", i + 128);
    finds("render nodes", topo, "1,0", all, "1,0");
    /* two partitions of one GPU */
    for (uint32_t i = 0; i < 4; i++) {
        topo->gpu[i].minor_number = (int16_t)(i / 2);
        sprintf(topo->gpu[i].uuid, "MIG-%u", i);
    }
    finds("partitions by number", topo, "0", all, "none");
    finds("partitions by UUID", topo, "MIG-3,MIG-1", all, "3,1");
    dt_topo_destroy(topo);
}

static void chooses(const char *granted, const char *wanted, const char *index)
{
    struct dt_devices a, b;
    uint8_t place[DT_TOPO_MAX_GPUS];
    char got[64] = "none";
    dt_devices_split(granted, &a, NULL);
    dt_devices_split(wanted, &b, NULL);
    if (dt_grant_find(&a, &b, place)) {
        got[0] = '\0';
        for (size_t k = 0; k < b.n; k++)
            sprintf(got + strlen(got), "%s%u", k ? "," : "", place[k]);
    }
    if (!ok(!strcmp(got, index), "%s of %s are at %s", wanted, granted, index))
        diag("got %s", got);
}

static void test_user(void)
{
    chooses("4,5,6", "6,4", "2,0");
    chooses("4,5,6", "0", "none");
    chooses("4,5,6", "5,5", "none");
    chooses("GPU-a,GPU-b", "GPU-b", "1");
    chooses("10", "1", "none");

    ok(!dt_grant_is_slurms("3,1", NULL, NULL), "outside a job it is a wish");
    ok(dt_grant_is_slurms("4,5", NULL, "4,5"), "in a batch script it is not");
    ok(dt_grant_is_slurms("4,5", "4,5", "4,5,6"), "nor in a step");
    ok(dt_grant_is_slurms("0,1", NULL, "4,5"), "nor where a cgroup renumbers");
    ok(dt_grant_is_slurms("MIG-a,MIG-b", NULL, "0,1"), "nor by UUID");
    ok(!dt_grant_is_slurms("5,4", NULL, "4,5"), "another order is a wish");
    ok(!dt_grant_is_slurms("1,0", NULL, "4,5"), "also a renumbered one");
    ok(!dt_grant_is_slurms("0", NULL, "4,5"), "and fewer");
    ok(!dt_grant_is_slurms("MIG-a", NULL, "0,1"), "and fewer by UUID");
}

/* Two packages of cores of two threads, the CPUs dealt out to the packages in
 * turn: 0 2 4 6 / 1 3 5 7; siblings are 0+4, 2+6, 1+5, 3+7. */
static dt_topo_t *make_cpus(void)
{
    dt_topo_t *topo = dt_topo_create();
    if (!topo)
        abort();
    for (int n = 0; n < 2; n++) {
        dt_topo_numa_t *numa = dt_topo_add_numa(topo, NULL);
        if (!numa)
            abort();
        numa->id = (uint32_t)n;
        numa->package = (int16_t)n;
        for (size_t cpu = (size_t)n; cpu < 8; cpu += 2) {
            dt_cpuset_add(&numa->cpus, cpu);
            topo->cpu[cpu].present = true;
            topo->cpu[cpu].core = (uint16_t)(cpu % 4);
        }
    }
    if (dt_topo_normalize(topo, NULL) != DT_SUCCESS)
        abort();
    return topo;
}

static void grants(const dt_topo_t *topo, const char *current, const char *type,
                   const char *list, const char *cores, const char *wanted)
{
    struct dt_grant_cpus known = {
        .bind_type = type, .bind_list = list, .cores = cores};
    dt_cpuset_t cpus;
    char text[256];
    if (dt_cpuset_parse(current, &known.current, NULL) != DT_SUCCESS)
        abort();
    dt_grant_cpus(topo, &known, &cpus);
    dt_cpuset_print(&cpus, text, sizeof(text));
    if (!ok(!strcmp(text, wanted), "on %s, bound to %s, cores %s: %s", current,
            list ? list : "nothing", cores ? cores : "unknown", wanted))
        diag("got %s", text);
}

static void test_cpus(void)
{
    static const char mask[] = "mask_cpu:";
    dt_topo_t *topo = make_cpus();
    grants(topo, "0-7", NULL, NULL, NULL, "0-7");
    grants(topo, "1", mask, "0x1,0x2,0xC0", "0", "0-1,6-7");
    grants(topo, "1", mask, "0x00000000000000000000000000000002", "0", "1");
    grants(topo, "100", mask, "0x10000000000000000000000000", NULL, "100");
    grants(topo, "4", mask, "0x1,0x2", "0", "4");    /* another's masks */
    grants(topo, "0-7", mask, "0x1,zz", "0", "0,4"); /* no masks */
    grants(topo, "0-7", mask, "", "0", "0,4");
    grants(topo, "0-7", "cores", "0x1", "0", "0,4");
    /* Slurm's cores are 0+4, 2+6, then 1+5, 3+7 */
    grants(topo, "0-7", NULL, NULL, "0-1", "0,2,4,6");
    grants(topo, "0-7", NULL, NULL, "2", "1,5");
    grants(topo, "0-7", NULL, NULL, "1,3", "2-3,6-7");
    grants(topo, "0-7", NULL, NULL, "0-3", "0-7");
    grants(topo, "0-7", NULL, NULL, "3-4", "0-7"); /* of another machine */
    grants(topo, "0-7", NULL, NULL, "x", "0-7");
    grants(topo, "0-7", NULL, NULL, "", "0-7");
    grants(topo, "0-5", NULL, NULL, "2", "0-5"); /* a cgroup knows better */
    dt_topo_destroy(topo);
    topo = make_gpus(1);
    grants(topo, "0-7", NULL, NULL, "0-1", "0-7"); /* no CPU is known */
    dt_topo_destroy(topo);
}

static void test_nics(void)
{
    static const struct {
        const char *name, *net, *bus, *names;
        dt_nic_type_t type;
        int16_t port;
    } nics[] = {
        {"mlx5_0", "ib0", "0000:0f:00.0", "mlx5_0/ib0", DT_NIC_IB, 2},
        {"mlx5_1", "eth1", "0000:1f:00.0", "mlx5_1/eth1/ens1", DT_NIC_ROCE, 0},
        {"hsn0", "hsn0", "", "hsn0/cxi0", DT_NIC_SLINGSHOT, 0},
        {"rdmap16s27", "", "", "rdmap16s27", DT_NIC_EFA, 1},
        {"bnxt_re0", "", "", "bnxt_re0", DT_NIC_UNKNOWN, 0},
        {"what", "", "", "what", DT_NIC_UNKNOWN, 0},
        {"ib5", "ib5", "", "ib5", DT_NIC_IB, 1},
    };
    enum { N = sizeof(nics) / sizeof(nics[0]) };
    uint8_t all[N];
    char text[DT_NICS_TEXT];
    dt_topo_t *topo = dt_topo_create();
    for (uint8_t i = 0; topo && i < N; i++) {
        dt_topo_nic_t *nic = dt_topo_add_nic(topo, NULL);
        if (!nic)
            abort();
        dt_topo_text(nic->name, sizeof(nic->name), nics[i].name);
        dt_topo_text(nic->net, sizeof(nic->net), nics[i].net);
        dt_topo_text(nic->bus, sizeof(nic->bus), nics[i].bus);
        dt_topo_text(nic->names, sizeof(nic->names), nics[i].names);
        nic->type = nics[i].type;
        nic->port = nics[i].port;
        all[i] = i;
    }
    if (!topo)
        abort();
    ok(dt_nics_find(topo, "mlx5_1") == 1 && dt_nics_find(topo, "ib0") == 0 &&
           dt_nics_find(topo, "0000:1f:00.0") == 1 &&
           dt_nics_find(topo, "cxi0") == 2 && dt_nics_find(topo, "ens1") == 1,
       "a NIC is found by any of its names");
    ok(dt_nics_find(topo, "mlx5") == -1 && dt_nics_find(topo, "") == -1 &&
           dt_nics_find(topo, "mlx5_0/ib0") == -1,
       "and by no other");
    dt_nics_names(topo, all, 3, text);
    ok(!strcmp(text, "mlx5_0,mlx5_1,hsn0"), "names are joined");
    dt_nics_names(topo, all, 0, text);
    ok(!strcmp(text, ""), "of none, nothing is");
    dt_nics_verbs(topo, all, N, text);
    if (!ok(!strcmp(text, "mlx5_0:2,mlx5_1:1,bnxt_re0:1"),
            "UCX and NCCL know those with a verbs device, by port"))
        diag("got %s", text);
    dt_topo_destroy(topo);
}

int main(void)
{
    test_gpus();
    test_user();
    test_cpus();
    test_nics();
    return tap_done();
}
