/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* variables.c - rules: variables of CUDA, NCCL, Gloo and UCX that contradict
 * each other, or this machine. */
#include <string.h>
#include <strings.h>

#include "facts.h"

/* The items of a list with commas: call each for every one. */
static void each_item(struct doctor *doctor, const char *list,
                      void (*each)(struct doctor *doctor, const char *item,
                                   void *data),
                      void *data)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length)
            each(doctor, text(doctor, "%.*s", (int)length, list), data);
        list += length + (list[length] == ',');
    }
}

/* ---- MIG ---- */

void look_mig(struct doctor *doctor)
{
    const char *list = fact_variable("CUDA_VISIBLE_DEVICES");
    unsigned instances = 0;
    for (const char *at = list; at && (at = strstr(at, "MIG-")) != NULL; at++)
        instances++;
    if (instances < 2)
        return;
    found(
        doctor,
        text(doctor, "CUDA_VISIBLE_DEVICES names %u MIG instances", instances),
        "CUDA opens one MIG instance per process, the first one: the others "
        "are idle, and ranks share the first",
        "srun --dt-gpus, which shows each task one instance; or in each task: "
        "export CUDA_VISIBLE_DEVICES=MIG-...");
}

/* ---- NCCL ---- */

/* a has this value ("": any) although b is set to another one than not_b. */
struct contradiction {
    const char *a, *value, *b, *not_b, *means;
};

static const struct contradiction contradictions[] = {
    {"NCCL_IB_DISABLE", "1", "NCCL_IB_HCA", NULL,
     "InfiniBand and RoCE are not used at all, whatever devices are named"},
    {"NCCL_IB_DISABLE", "1", "NCCL_IB_GID_INDEX", NULL,
     "InfiniBand and RoCE are not used at all, so the index has no effect"},
    {"NCCL_IB_DISABLE", "1", "NCCL_NET_GDR_LEVEL", NULL,
     "without InfiniBand there is no GPUDirect RDMA: data goes through the "
     "host, over TCP"},
    {"NCCL_NET", "Socket", "NCCL_IB_HCA", NULL,
     "data goes over TCP, whatever devices are named"},
    {"NCCL_NET", "Socket", "NCCL_NET_GDR_LEVEL", NULL,
     "over TCP there is no GPUDirect RDMA"},
    {"NCCL_P2P_DISABLE", "1", "NCCL_P2P_LEVEL", "LOC",
     "peer-to-peer is off, so the level has no effect: GPUs of a node "
     "exchange data through the host"},
    {"NCCL_P2P_DISABLE", "1", "NCCL_SHM_DISABLE", "0",
     "the GPUs of a node have neither peer-to-peer nor shared memory, and "
     "exchange data over the network"},
};

void look_nccl(struct doctor *doctor)
{
    size_t n = sizeof(contradictions) / sizeof(contradictions[0]);
    for (size_t i = 0; i < n; i++) {
        const struct contradiction *row = &contradictions[i];
        const char *a = fact_variable(row->a), *b = fact_variable(row->b);
        if (!a || strcasecmp(a, row->value) != 0 || !b ||
            (row->not_b && !strcmp(b, row->not_b)))
            continue;
        found(doctor, text(doctor, "%s=%s and %s=%s", row->a, a, row->b, b),
              row->means,
              text(doctor, "unset %s, or else unset %s", row->a, row->b));
    }
}

/* ---- UCX ---- */

struct kinds {
    unsigned tcp, rdma, other;  /* of the transports that UCX_TLS names */
    unsigned ports, interfaces; /* of the devices */
};

static void count_transport(struct doctor *doctor, const char *item, void *data)
{
    static const char *const rdma[] = {"rc", "ud", "dc", "ib"};
    static const char *const local[] = {
        "self",  "sm",   "shm",  "posix", "sysv",     "cma", "knem",
        "xpmem", "cuda", "rocm", "gdr",   "loopback", "mm"};
    struct kinds *kinds = data;
    (void)doctor;
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        if (!strncmp(item, local[i], strlen(local[i])))
            return; /* needs no device of the network */
    bool is_rdma = false;
    for (size_t i = 0; i < sizeof(rdma) / sizeof(rdma[0]); i++)
        is_rdma |= !strncmp(item, rdma[i], strlen(rdma[i]));
    if (!strcmp(item, "tcp"))
        kinds->tcp++;
    else if (is_rdma)
        kinds->rdma++;
    else
        kinds->other++;
}

/* mlx5_0:1, or eth0 */
static void count_device(struct doctor *doctor, const char *item, void *data)
{
    struct kinds *kinds = data;
    (void)doctor;
    if (!strcmp(item, "all"))
        kinds->ports++, kinds->interfaces++;
    else if (strchr(item, ':'))
        kinds->ports++;
    else
        kinds->interfaces++;
}

void look_ucx(struct doctor *doctor)
{
    const char *transports = fact_variable("UCX_TLS");
    const char *devices = fact_variable("UCX_NET_DEVICES");
    struct kinds kinds = {0};
    if (!transports || !devices || *transports == '^' || *devices == '^')
        return;
    each_item(doctor, transports, count_transport, &kinds);
    each_item(doctor, devices, count_device, &kinds);
    bool tcp_alone = kinds.tcp && !kinds.rdma && !kinds.other;
    bool rdma_alone = kinds.rdma && !kinds.tcp && !kinds.other;
    if (!(tcp_alone && !kinds.interfaces) && !(rdma_alone && !kinds.ports))
        return;
    found(
        doctor,
        text(doctor, "UCX_TLS=%s and UCX_NET_DEVICES=%s", transports, devices),
        tcp_alone ? "TCP uses network interfaces, and only ports of RDMA are "
                    "allowed: other nodes are unreachable for UCX"
                  : "RDMA uses ports such as mlx5_0:1, and only network "
                    "interfaces are allowed: other nodes are unreachable for "
                    "UCX",
        "unset UCX_TLS, or else unset UCX_NET_DEVICES; ucx_info -d lists the "
        "transports of each device");
}

/* ---- names of devices ---- */

/* A variable that names devices of the node on which a task runs. */
struct naming {
    const char *variable, *folder;
    bool prefix; /* its items are what the names begin with */
};

static void check_name(struct doctor *doctor, const char *item, void *data)
{
    const struct naming *naming = data;
    bool exact = !naming->prefix || *item == '=';
    const char *name =
        text(doctor, "%.*s", (int)strcspn(item, ":"), item + (*item == '='));
    /* a pattern of the shell is no name, and UCX may know what it means */
    if (!*name || strpbrk(name, "*?[/") || !strcmp(name, "all"))
        return;
    const char *folder =
        strcmp(naming->variable, "UCX_NET_DEVICES") == 0 && strchr(item, ':')
            ? "/sys/class/infiniband"
            : naming->folder;
    if (*fact_glob(doctor,
                   text(doctor, "%s/%s%s", folder, name, exact ? "" : "*")))
        return;
    found(doctor,
          text(doctor, "%s names %s, which %s does not have", naming->variable,
               name, folder),
          "the library fails, or uses none of its devices",
          text(doctor, "unset %s, or name one of: ls %s", naming->variable,
               folder));
}

void look_devices(struct doctor *doctor)
{
    static const struct naming namings[] = {
        {"NCCL_SOCKET_IFNAME", "/sys/class/net", true},
        {"GLOO_SOCKET_IFNAME", "/sys/class/net", false},
        {"NCCL_IB_HCA", "/sys/class/infiniband", true},
        {"UCX_NET_DEVICES", "/sys/class/net", false},
    };
    for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++) {
        struct naming naming = namings[i];
        const char *list = fact_variable(naming.variable);
        if (!list || *list == '^') /* all but these */
            continue;
        if (!fact_variable("SLURMD_NODENAME")) {
            unseen(doctor,
                   "%s: it names devices of the compute nodes; run dt-doctor "
                   "by srun",
                   naming.variable);
            continue;
        }
        if (!fact_exists(doctor, "/sys/class/net")) {
            unseen(doctor, "%s: there is no /sys/class/net", naming.variable);
            continue;
        }
        if (*list == '=' && naming.prefix) { /* for all of the list */
            naming.prefix = false;
            list++;
        }
        each_item(doctor, list, check_name, &naming);
    }
}
