/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.c - which task gets which GPUs, cores and NICs, on machines whose right
 * answer is known. */
#include <stdlib.h>
#include <string.h>

#include "place-machines.h"
#include "../tap.h"

static dt_place_task_t task[DT_PLACE_MAX_TASKS];
static struct dt_error err;

/* ---- requests and what they should give ---- */

static dt_place_request_t *ask(const dt_topo_t *topo, uint32_t ntasks)
{
    static dt_place_request_t request;
    request = (dt_place_request_t){
        .topo = topo, .ntasks = ntasks, .ngpus = topo->ngpus};
    for (uint32_t i = 0; i < topo->ngpus; i++)
        request.gpu[i] = (uint8_t)i;
    return &request;
}

static dt_place_request_t *ask_policy(const dt_topo_t *topo, uint32_t ntasks,
                                      dt_place_policy_t policy, uint32_t count)
{
    dt_place_request_t *request = ask(topo, ntasks);
    request->policy = policy;
    request->count = count;
    return request;
}

static dt_place_request_t *ask_map(const dt_topo_t *topo, uint32_t ntasks,
                                   dt_place_policy_t policy, uint32_t n,
                                   const uint64_t *map)
{
    dt_place_request_t *request = ask_policy(topo, ntasks, policy, 0);
    request->nmap = n;
    memcpy(request->map, map, n * sizeof(*map));
    return request;
}

static bool place(const dt_place_request_t *request)
{
    memset(task, 0x5a, sizeof(task));
    if (dt_place(request, task, &err) == DT_SUCCESS)
        return true;
    diag("%s", err.text);
    return false;
}

/* "0,1": numbers, UINT8_MAX as "-" */
static void add_list(char *text, size_t size, const uint8_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(text);
        if (list[i] == UINT8_MAX)
            snprintf(text + used, size - used, "%s-", i ? "," : "");
        else
            snprintf(text + used, size - used, "%s%u", i ? "," : "", list[i]);
    }
}

enum what { OWN, VISIBLE, CPUS, NICS, GPU_NICS };

/* The same of all tasks: "0,1 2,3". */
static const char *all(size_t ntasks, enum what what)
{
    static char text[8192];
    text[0] = '\0';
    for (size_t t = 0; t < ntasks; t++) {
        const dt_place_task_t *at = &task[t];
        strcat(text, t ? " " : "");
        size_t used = strlen(text);
        if (what == OWN)
            add_list(text, sizeof(text), at->own, at->nown);
        if (what == VISIBLE)
            add_list(text, sizeof(text), at->visible, at->nvisible);
        if (what == NICS)
            add_list(text, sizeof(text), at->nic, at->nnics);
        if (what == GPU_NICS)
            add_list(text, sizeof(text), at->gpu_nic, at->nown);
        if (what == CPUS)
            dt_cpuset_print(&at->cpus, text + used, sizeof(text) - used);
    }
    return text;
}

static void is_placed(const dt_place_request_t *request, enum what what,
                      const char *want, const char *name)
{
    const char *got = place(request) ? all(request->ntasks, what) : "an error";
    if (!ok(!strcmp(got, want), "%s: %s", name, want))
        diag("got %s", got);
}

static void is_noted(const dt_place_request_t *request, uint32_t want,
                     const char *name)
{
    uint32_t got = 0;
    if (place(request))
        for (size_t t = 0; t < request->ntasks; t++)
            got |= task[t].notes;
    if (!ok(got == want, "%s", name))
        diag("notes 0x%x, wanted 0x%x", got, want);
}

static void is_refused(const dt_place_request_t *request, const char *why)
{
    static dt_place_task_t untouched;
    memset(&task[0], 0x5a, sizeof(task[0]));
    memset(&untouched, 0x5a, sizeof(untouched));
    dt_result_t rc = dt_place(request, task, &err);
    if (!ok(rc == DT_ERR_INVALID_ARG && strstr(err.text, why) &&
                !memcmp(&task[0], &untouched, sizeof(untouched)),
            "refused: %s", why))
        diag("result %d, error \"%s\"", rc, err.text);
}

/* ---- the facts ---- */

static void test_sets(void)
{
    static const uint8_t in_order[] = {0, 1, 2,  3,  4,  5,  6,  7,
                                       8, 9, 10, 11, 12, 13, 14, 15};
    static const uint8_t mixed[] = {5, 9, 0,  12, 3, 14, 7,  10,
                                    1, 6, 15, 2,  8, 11, 13, 4};
    dt_topo_t *topo = hgx();
    is_placed(ask(topo, 1), OWN, "0,1,2,3,4,5,6,7", "HGX");
    is_placed(ask(topo, 2), OWN, "0,1,2,3 4,5,6,7", "HGX");
    is_placed(ask(topo, 3), OWN, "0,1,2 4,5,6 3,7", "HGX");
    is_placed(ask(topo, 4), OWN, "0,1 2,3 4,5 6,7", "HGX");
    is_placed(ask(topo, 8), OWN, "0 1 2 3 4 5 6 7", "HGX");
    dt_place_request_t *some = ask(topo, 2);
    some->ngpus = 5;
    memcpy(some->gpu, (uint8_t[]){7, 1, 6, 2, 5}, 5);
    is_placed(some, OWN, "5,6,7 1,2", "HGX, five GPUs in any order");
    dt_topo_destroy(topo);

    topo = dgx1();
    is_placed(ask(topo, 2), OWN, "0,1,2,3 4,5,6,7", "DGX-1");
    is_placed(ask(topo, 4), OWN, "0,3 1,2 4,7 5,6", "DGX-1");
    is_placed(ask_policy(topo, 1, DT_PLACE_COUNT, 2), OWN, "0,3",
              "DGX-1, the best pair");
    is_placed(ask_policy(topo, 2, DT_PLACE_COUNT, 3), OWN, "0,2,3 4,6,7",
              "DGX-1, the best threes");
    topo->gpu[0].lost = true;
    is_placed(ask_policy(topo, 1, DT_PLACE_COUNT, 2), OWN, "1,2",
              "DGX-1, a lost GPU is left over");
    is_noted(ask(topo, 2), DT_PLACE_NOTE_LOST,
             "or assigned, with a note for the user");
    dt_topo_destroy(topo);

    topo = pcie();
    is_placed(ask(topo, 2), OWN, "0,2 1,3", "PCIe");
    is_placed(ask(topo, 3), OWN, "0,2 1 3", "PCIe");
    dt_topo_destroy(topo);

    topo = dgx2(in_order);
    is_placed(ask(topo, 8), OWN, "0,1 2,3 4,5 6,7 8,9 10,11 12,13 14,15",
              "DGX-2");
    is_placed(ask(topo, 4), OWN, "0,1,2,3 4,5,6,7 8,9,10,11 12,13,14,15",
              "DGX-2");
    dt_topo_destroy(topo);
    topo = dgx2(mixed);
    is_placed(ask(topo, 8), OWN, "0,12 1,6 2,15 3,14 4,13 5,9 7,10 8,11",
              "DGX-2 in another order");
    is_placed(ask(topo, 4), OWN, "0,5,9,12 1,2,6,15 3,7,10,14 4,8,11,13",
              "DGX-2 in another order");
    is_placed(ask(topo, 2), OWN, "0,3,5,7,9,10,12,14 1,2,4,6,8,11,13,15",
              "DGX-2 in another order");
    dt_topo_destroy(topo);

    /* of pairs that all go over SYS, those inside a package are nearer */
    topo = machine(4, 4, 4);
    for (int16_t i = 0; i < 4; i++)
        topo->gpu[i].numa = (int16_t)(i % 2 * 2 + i / 2);
    is_placed(ask(finish(topo), 2), OWN, "0,2 1,3", "a NUMA node per GPU");
    dt_topo_destroy(topo);
}

static void test_views(void)
{
    dt_topo_t *topo = finish(machine(5, 1, 8));
    is_placed(ask(topo, 2), OWN, "0,1,2 3,4", "larger shares first");
    is_placed(ask(topo, 2), VISIBLE, "0,3,1,4,2 0,3,1,4,2",
              "auto sees all, in turns");
    is_placed(ask(topo, 7), OWN, "0 0 1 2 2 3 4", "more tasks than GPUs");
    is_placed(ask_policy(topo, 2, DT_PLACE_ROTATE, 0), VISIBLE,
              "0,1,2,3,4 3,4,0,1,2", "rotate sees its own first");
    is_placed(ask_policy(topo, 2, DT_PLACE_SINGLE, 0), VISIBLE, "0,1,2 3,4",
              "single sees its own only");
    is_placed(ask_policy(topo, 2, DT_PLACE_COUNT, 1), VISIBLE, "0 1",
              "count sees as many");
    is_placed(ask_map(topo, 3, DT_PLACE_MAP, 2, (uint64_t[]){4, 1}), VISIBLE,
              "4 1 4", "map in turns");
    is_placed(ask_map(topo, 2, DT_PLACE_MASK, 2, (uint64_t[]){0x12, 0x3}), OWN,
              "1,4 0,1", "mask, where GPUs may be shared");
    dt_place_request_t *some =
        ask_map(topo, 2, DT_PLACE_MAP, 2, (uint64_t[]){0, 1});
    some->ngpus = 2;
    memcpy(some->gpu, (uint8_t[]){4, 2}, 2);
    is_placed(some, OWN, "2 4", "map counts granted GPUs in order");
    dt_topo_destroy(topo);

    topo = finish(machine(2, 1, 8));
    is_placed(ask(topo, 5), OWN, "0 0 0 1 1", "five tasks on two GPUs");
    is_placed(ask(topo, 2), VISIBLE, "0,1 0,1", "auto");
    is_placed(ask(topo, 3), VISIBLE, "0,1 0,1 0,1", "auto, shared: in order");
    is_placed(ask_policy(topo, 3, DT_PLACE_ROTATE, 0), VISIBLE, "0,1 0,1 1,0",
              "rotate, shared");
    dt_topo_destroy(topo);

    topo = dgx1();
    is_placed(ask(topo, 4), VISIBLE,
              "0,1,4,5,3,2,7,6 0,1,4,5,3,2,7,6 0,1,4,5,3,2,7,6 "
              "0,1,4,5,3,2,7,6",
              "auto on DGX-1");
    is_placed(ask_policy(topo, 4, DT_PLACE_ROTATE, 0), VISIBLE,
              "0,3,4,5,6,7,1,2 1,2,3,4,5,6,7,0 4,7,0,1,2,3,5,6 "
              "5,6,7,0,1,2,3,4",
              "rotate on DGX-1");
    dt_topo_destroy(topo);
}

/* Two GPUs in two instances each, and one that is whole. */
static void test_instances(void)
{
    dt_topo_t *topo = machine(5, 1, 8);
    for (size_t i = 0; i < 4; i++) {
        topo->gpu[i].vendor = DT_VENDOR_NVIDIA;
        topo->gpu[i].part = (int16_t)(i % 2);
        memcpy(topo->gpu[i].bus, topo->gpu[i / 2 * 2].bus,
               sizeof(topo->gpu[i].bus));
    }
    topo->gpu[4].vendor = DT_VENDOR_NVIDIA;
    finish(topo);
    is_placed(ask(topo, 5), OWN, "0 1 2 3 4", "an instance per task");
    is_placed(ask(topo, 5), VISIBLE, "0 1 2 3 4", "alone in sight");
    ok(!(task[0].notes & (DT_PLACE_NOTE_MIG | DT_PLACE_NOTE_NO_PEER)),
       "of which nobody needs to be told");
    is_placed(ask(topo, 2), OWN, "0 3", "nor more with fewer tasks");
    is_noted(ask(topo, 2), DT_PLACE_NOTE_MIG, "and the user is told");
    is_placed(ask(topo, 10), VISIBLE, "0 0 1 1 2 2 3 3 4 4",
              "more tasks than instances share them");
    is_noted(ask(topo, 6), DT_PLACE_NOTE_SHARED | DT_PLACE_NOTE_SHARED_MIG,
             "and the user is told that these are instances");
    is_placed(ask_policy(topo, 5, DT_PLACE_ROTATE, 0), VISIBLE, "0 1 2 3 4",
              "rotate shows no other");
    is_placed(ask_map(topo, 2, DT_PLACE_MASK, 2, (uint64_t[]){0x18, 0x10}),
              VISIBLE, "3 4", "nor does a mask");
    dt_topo_destroy(topo);
}

static dt_place_request_t *ask_cpus(const dt_topo_t *topo, uint32_t ntasks,
                                    const char *cpus)
{
    dt_place_request_t *request = ask(topo, ntasks);
    if (dt_cpuset_parse(cpus, &request->cpus, &err) != DT_SUCCESS)
        diag("%s", err.text);
    return request;
}

static void test_cpus(void)
{
    dt_topo_t *topo = hgx();
    is_placed(ask(topo, 1), CPUS, "0-223", "HGX");
    is_placed(ask(topo, 4), CPUS,
              "0-27,112-139 28-55,140-167 56-83,168-195 84-111,196-223",
              "HGX, whole cores");
    is_placed(ask(topo, 3), CPUS,
              "0-41,112-153 56-97,168-209 "
              "42-55,98-111,154-167,210-223",
              "HGX, a task on both packages");
    is_placed(ask_cpus(topo, 2, "0-7,112-115,100"), CPUS, "0-7,112-115 100",
              "only what was granted");
    is_placed(ask_cpus(topo, 8, "0-1,112-113,60-62,172-174"), CPUS,
              "0,112 0,112 1,113 1,113 60,172 60,172 61,173 62,174",
              "fewer cores than tasks");
    is_noted(ask_cpus(topo, 8, "0-1,112-113,60-62"), DT_PLACE_NOTE_FEW_CPUS,
             "and the user is told");
    is_placed(ask_cpus(topo, 2, "0-3"), CPUS, "0-1 2-3", "the wrong package");
    is_noted(ask_cpus(topo, 2, "0-3"), DT_PLACE_NOTE_FAR_CPUS,
             "and the user is told");
    dt_place_request_t *few = ask_cpus(topo, 2, "0,56,112,168");
    few->ngpus = 2; /* both on package 0 */
    is_placed(few, CPUS, "0,112 56,168", "a far core, not half a near one");
    is_noted(few, DT_PLACE_NOTE_FAR_CPUS, "and the user is told");
    few = ask_cpus(topo, 3, "0,56");
    few->ngpus = 2;
    is_placed(few, CPUS, "0 0 56", "nor that for three tasks");
    few = ask_cpus(topo, 8, "0-7,112-119");
    few->min_cores = 2;
    is_placed(few, CPUS,
              "0-1,112-113 1-2,113-114 2-3,114-115 3-4,115-116 4-5,116-117 "
              "5-6,117-118 6-7,118-119 0,7,112,119",
              "two cores for each, of which neighbours have one, too");
    is_noted(few, DT_PLACE_NOTE_LENT | DT_PLACE_NOTE_FAR_CPUS,
             "and the user is told");
    few = ask_cpus(topo, 2, "0-7,112-119");
    few->min_cores = 2;
    is_placed(few, CPUS, "0-3,112-115 4-7,116-119", "who has two keeps them");
    few = ask_cpus(topo, 2, "5,117");
    few->min_cores = 2;
    is_placed(few, CPUS, "5,117 5,117", "where there is one, one");
    is_placed(ask_cpus(topo, 2, "300-303"), CPUS, "300-301 302-303",
              "CPUs that the topology does not have");
    dt_place_request_t *none = ask(topo, 2);
    none->cpu_bind = DT_PLACE_CPUS_NONE;
    is_placed(none, CPUS, " ", "CPUs left alone");
    ok(place(ask(topo, 2)) && task[0].numas[0] == 1 && task[1].numas[0] == 2,
       "memory next to the cores");
    dt_topo_destroy(topo);

    topo = machine(4, 4, 4);
    finish(topo);
    is_placed(ask_cpus(topo, 4, "0-3,8-11,12-15"), CPUS, "0-1 2-3 8-11 12-15",
              "another NUMA node of the package");
    dt_topo_destroy(topo);
}

/* Siblings with neighbouring numbers; a GPU whose memory is a NUMA node; one
 * that does not say where it is. */
static void test_odd_cpus(void)
{
    dt_topo_t *topo = machine(3, 2, 2);
    topo->gpu[0].numa = 0;
    topo->gpu[1].numa = 1;
    topo->gpu[2].numa = -1;
    for (size_t i = 0; i < 2; i++) {
        topo->numa[i].cpus = (dt_cpuset_t){{(uint64_t)0xff << 8 * i}};
        for (size_t c = 8 * i; c < 8 * i + 8; c++)
            topo->cpu[c].core = (uint16_t)(c / 2);
    }
    dt_topo_numa_t *memory = dt_topo_add_numa(topo, NULL);
    memory->id = 9;
    memory->gpu = 0;
    memory->cpus = topo->numa[0].cpus; /* as hwloc has it */
    finish(topo);
    is_placed(ask(topo, 3), CPUS, "0-3 8-13 4-7,14-15",
              "a GPU of nowhere takes of all, none is shared");
    is_placed(ask(topo, 1), CPUS, "0-15", "all of it");
    ok(place(ask(topo, 1)) && task[0].numas[0] == 3,
       "a GPU's memory is no place for the task's");
    is_placed(ask_cpus(topo, 3, "0-1,8-9"), CPUS, "0-1 8-9 0-1",
              "one core per NUMA node for three");
    dt_topo_destroy(topo);
}

static void test_nics(void)
{
    dt_topo_t *topo = hgx();
    is_placed(ask(topo, 4), NICS, "0,1 2,3 4,5 6,7", "HGX");
    topo->nic[2].state = DT_LINK_DOWN;
    is_placed(ask(topo, 4), GPU_NICS, "0,1 0,3 4,5 6,7",
              "HGX, a NIC down: one of the same package");
    dt_place_request_t *rail = ask(topo, 4);
    rail->nics = DT_PLACE_NICS_RAIL;
    is_placed(rail, GPU_NICS, "0,1 3,3 4,5 6,7", "rail, a NIC down");
    dt_place_request_t *map = ask(topo, 3);
    map->nics = DT_PLACE_NICS_MAP;
    map->nnic_map = 2;
    map->nic_map[0] = 5;
    is_placed(map, NICS, "5 0 5", "map in turns");
    dt_place_request_t *none = ask(topo, 2);
    none->nics = DT_PLACE_NICS_NONE;
    is_placed(none, GPU_NICS, "-,-,-,- -,-,-,-", "no NICs");
    map = ask(topo, 3);
    map->nics = DT_PLACE_NICS_MAP;
    is_refused(map, "expected 1 to 64");
    map->nnic_map = 1;
    map->nic_map[0] = 8;
    is_refused(map, "map:8 names NIC 8, but this node has 8");
    dt_topo_destroy(topo);

    topo = machine(4, 2, 4);
    add_nic(topo, 0, DT_NIC_ETHERNET);
    for (int i = 0; i < 6; i++)
        add_nic(topo, i / 3, DT_NIC_ROCE);
    finish(topo);
    is_placed(ask(topo, 4), NICS, "1 2 4 5", "ties are spread");
    is_placed(ask(topo, 1), NICS, "1,2,4,5", "over GPUs of one task too");
    rail = ask(topo, 4);
    rail->nics = DT_PLACE_NICS_RAIL;
    is_placed(rail, NICS, "1 2 4 5", "rail leaves Ethernet out");
    dt_place_request_t *one = ask(topo, 1);
    one->ngpus = 1;
    one->gpu[0] = 3;
    is_placed(one, NICS, "5", "a part of a node takes its part");
    dt_topo_destroy(topo);

    topo = machine(2, 2, 4);
    for (int i = 0; i < 4; i++)
        add_nic(topo, i / 2, DT_NIC_EFA);
    is_placed(ask(finish(topo), 2), NICS, "0,1 2,3", "several NICs per GPU");
    dt_topo_destroy(topo);
}

static void is_near(const dt_topo_t *topo, size_t gpu, const char *want,
                    dt_path_t want_path, const char *name)
{
    uint8_t nic[DT_TOPO_MAX_NICS];
    char text[256] = "";
    dt_path_t got = DT_PATH_NVL;
    add_list(text, sizeof(text), nic,
             dt_topo_nearest_nics(topo, gpu, nic, &got));
    if (!ok(!strcmp(text, want) && got == want_path, "%s: NICs %s, %s", name,
            want, dt_path_name(want_path)))
        diag("NICs %s, %s", text, dt_path_name(got));
}

static void test_nearest(void)
{
    dt_topo_t *topo = machine(2, 4, 2);
    topo->gpu[1].numa = 3;
    add_nic(topo, 3, DT_NIC_IB);
    add_nic(topo, 1, DT_NIC_IB);
    add_nic(topo, 1, DT_NIC_UNKNOWN);
    add_nic(topo, 0, DT_NIC_ETHERNET);
    finish(topo);
    is_near(topo, 0, "1,2", DT_PATH_SYS, "SYS inside the package first");
    is_near(topo, 1, "0", DT_PATH_NODE, "the NUMA node's");
    is_near(topo, 2, "", DT_PATH_UNKNOWN, "a GPU that is not there");
    topo->nic[1].state = topo->nic[2].state = DT_LINK_DOWN;
    is_near(topo, 0, "0", DT_PATH_SYS, "then another package's");
    path(topo, 0, 2, DT_PATH_UNKNOWN);
    is_near(topo, 0, "", DT_PATH_UNKNOWN, "nothing is known to be near");
    ok(dt_topo_path(topo, 0, 1) == DT_PATH_SYS &&
           dt_topo_path(topo, 1, 1) == DT_PATH_NVL &&
           dt_topo_path(topo, 1, 2) == DT_PATH_NODE &&
           dt_topo_path(topo, 0, 6) == DT_PATH_UNKNOWN,
       "paths");
    topo->links[0][1] = topo->links[1][0] = 1;
    ok(dt_topo_path(topo, 0, 1) == DT_PATH_NVL, "NVLink is the best of paths");
    ok(!strcmp(dt_path_name((dt_path_t)77), "?"), "a path without a name");
    dt_topo_destroy(topo);
}

static void test_notes(void)
{
    dt_topo_t *topo = finish(machine(4, 0, 0));
    is_placed(ask(topo, 2), OWN, "0,1 2,3", "no topology");
    is_placed(ask_cpus(topo, 4, "0-5"), CPUS, "0 1-2 3 4-5",
              "no topology, CPUs in order");
    is_placed(ask(topo, 2), CPUS, " ", "no topology, and no CPUs");
    is_noted(ask(topo, 2), DT_PLACE_NOTE_UNKNOWN, "no topology is noted");
    is_noted(ask(topo, 5), DT_PLACE_NOTE_UNKNOWN | DT_PLACE_NOTE_SHARED,
             "shared GPUs are noted");
    dt_topo_destroy(topo);

    topo = hgx();
    is_noted(ask(topo, 8), 0, "nothing to say");
    is_noted(ask(topo, 1), DT_PLACE_NOTE_SPLIT, "a task on both packages");
    is_noted(ask_policy(topo, 2, DT_PLACE_SINGLE, 0), DT_PLACE_NOTE_NO_PEER,
             "single hides peers");
    is_noted(ask_policy(topo, 2, DT_PLACE_ROTATE, 0), 0, "rotate does not");
    dt_topo_destroy(topo);
    topo = pcie();
    is_noted(ask_policy(topo, 2, DT_PLACE_SINGLE, 0), DT_PLACE_NOTE_NO_PEER,
             "peers over PCIe");
    dt_topo_destroy(topo);
    topo = finish(machine(2, 2, 4));
    is_noted(ask_policy(topo, 2, DT_PLACE_SINGLE, 0), 0,
             "GPUs of two NUMA nodes are no peers");
    dt_topo_destroy(topo);

    topo = machine(3, 2, 4);
    topo->gpu[2].numa = -1;
    finish(topo);
    is_noted(ask(topo, 3), DT_PLACE_NOTE_ANY_CPUS,
             "a GPU that can be at either package");
    dt_place_request_t *unbound = ask(topo, 3);
    unbound->cpu_bind = DT_PLACE_CPUS_NONE;
    is_noted(unbound, 0, "unless no CPUs are chosen for it");
    topo->gpu[2].package = 1;
    is_noted(ask(topo, 3), 0, "nor if its package is known");
    is_placed(ask(topo, 3), CPUS, "0-1,8-9 2-3,10-11 4-7,12-15",
              "whose CPUs it then has");
    is_noted(ask_cpus(topo, 3, "0-3,8-11"), DT_PLACE_NOTE_FAR_CPUS,
             "and without these, it is told so");
    dt_topo_destroy(topo);
    topo = machine(3, 1, 4);
    topo->gpu[2].numa = -1;
    finish(topo);
    is_noted(ask(topo, 3), 0, "one package is no choice");
    dt_topo_destroy(topo);
}

static void test_refusals(void)
{
    dt_topo_t *topo = finish(machine(4, 1, 4));
    dt_place_request_t *request = ask(topo, 1);
    request->ngpus = 0;
    is_refused(request, "granted no GPU to this step: ask for them with "
                        "--gpus-per-node=<n>");
    request->ngpus = 65;
    is_refused(request, "65 GPUs are more than the 64");
    request = ask(topo, 1);
    request->gpu[3] = 4;
    is_refused(request, "GPU 4 was granted, the topology has 4");
    request->gpu[3] = 0;
    is_refused(request, "GPU 0 was granted twice");
    is_refused(ask(topo, 0), "0 tasks on a node: expected 1 to 1024");
    is_refused(ask(topo, 1025), "1025 tasks on a node");
    is_refused(ask_policy(topo, 2, DT_PLACE_COUNT, 3),
               "2 tasks need 6 GPUs, Slurm granted 4");
    is_refused(ask_policy(topo, 1, DT_PLACE_COUNT, 5),
               "1 task needs 5 GPUs, Slurm granted 4");
    is_refused(ask_policy(topo, 5, DT_PLACE_COUNT, 1), "5 tasks need 5 GPUs");
    is_refused(ask_policy(topo, 1, DT_PLACE_COUNT, 0), "expected 1 to 64");
    is_refused(ask_policy(topo, 1024, DT_PLACE_COUNT, UINT32_MAX),
               "expected 1 to 64");
    is_refused(ask_map(topo, 1, DT_PLACE_MAP, 0, (uint64_t[]){0}),
               "a map of 0 entries");
    is_refused(ask_map(topo, 1, DT_PLACE_MAP, 2, (uint64_t[]){0, 9}),
               "map:9 names GPU 9, but Slurm granted 4 (0-3)");
    is_refused(ask_map(topo, 1, DT_PLACE_MAP, 1, (uint64_t[]){UINT64_MAX}),
               "but Slurm granted 4 (0-3)");
    is_refused(ask_map(topo, 1, DT_PLACE_MASK, 1, (uint64_t[]){0x11}),
               "mask:0x11 names GPU 4, but Slurm granted 4 (0-3)");
    is_refused(ask_map(topo, 1, DT_PLACE_MASK, 1, (uint64_t[]){0}),
               "mask:0x0 names no GPU");
    dt_topo_destroy(topo);
}

int main(void)
{
    test_sets();
    test_views();
    test_instances();
    test_cpus();
    test_odd_cpus();
    test_nics();
    test_nearest();
    test_notes();
    test_refusals();
    return tap_done();
}
