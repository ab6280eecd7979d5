/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node.c - rules: what of this machine makes communication fail or slow. */
#include <net/if.h>
#include <string.h>

#include "base/number.h"
#include "facts.h"

#define RDMA "/sys/class/infiniband/"
#define GIB  (1ULL << 30)

/* ---- memory ---- */

void look_memlock(struct doctor *doctor)
{
    static const char name[] = "Max locked memory";
    if (!*fact_glob(doctor, RDMA "*"))
        return; /* nothing registers memory */
    const char *limits = fact_file(doctor, "/proc/self/limits", NULL);
    const char *at = limits ? strstr(limits, name) : NULL;
    uint64_t bytes;
    if (!at) {
        unseen(doctor, "the limit of locked memory: /proc/self/limits");
        return;
    }
    at += strlen(name);
    at += strspn(at, " ");
    if (!dt_number_scan(&at, 10, UINT64_MAX, &bytes) || bytes >= GIB)
        return; /* "unlimited", or enough */
    found(doctor,
          text(doctor, "ulimit -l: %llu KiB, on a machine with RDMA",
               (unsigned long long)bytes / 1024),
          "RDMA cannot register the buffers of a job: UCX and NCCL fail, or "
          "fall back to TCP",
          "systemctl edit slurmd: [Service] LimitMEMLOCK=infinity; and in "
          "slurm.conf: PropagateResourceLimitsExcept=MEMLOCK");
}

/* The size= of a tmpfs in KiB, as the kernel prints it; 0: it has none. */
static uint64_t tmpfs_kib(const char *options)
{
    uint64_t kib;
    const char *at = strstr(options, "size=");
    if (!at)
        return 0;
    at += strlen("size=");
    return dt_number_scan(&at, 10, UINT64_MAX, &kib) ? kib : 0;
}

void look_shm(struct doctor *doctor)
{
    static const char place[] = " /dev/shm tmpfs ";
    const char *mounts = fact_file(doctor, "/proc/self/mounts", NULL);
    if (!mounts) {
        unseen(doctor, "the size of /dev/shm: /proc/self/mounts");
        return;
    }
    const char *line = NULL; /* the last one counts */
    for (const char *at = mounts; (at = strstr(at, place)) != NULL; at++)
        line = at;
    if (!line) {
        found(doctor, "/dev/shm is no tmpfs",
              "shared memory between the ranks of this node fails, or goes to "
              "a disk",
              "mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs /dev/shm; in a "
              "container: --ipc=host");
        return;
    }
    line += strlen(place);
    uint64_t kib =
        tmpfs_kib(text(doctor, "%.*s", (int)strcspn(line, "\n"), line));
    if (!kib || kib >= GIB / 1024)
        return;
    found(doctor,
          text(doctor, "/dev/shm has %llu MiB", (unsigned long long)kib / 1024),
          "shared memory of NCCL, of PyTorch's data loaders and of libdt does "
          "not fit: they fail, also by SIGBUS",
          "mount -o remount,size=50% /dev/shm; in a container: --ipc=host or "
          "--shm-size=16g");
}

/* ---- the name ---- */

void look_hostname(struct doctor *doctor)
{
    const char *name = fact_line(doctor, "/proc/sys/kernel/hostname"), *out;
    const char *argv[] = {"getent", "ahosts", name, NULL};
    bool late;
    if (!*name || !strcmp(name, "localhost"))
        return;
    int rc = fact_run(doctor, argv, false, &out, &late);
    if (rc < 0 && !late) {
        unseen(doctor, "the address of %s: %s", name, out);
        return;
    }
    size_t length = strcspn(out, " \n");
    if (rc == 0 && strncmp(out, "127.", 4) != 0 && strncmp(out, "::1 ", 4) != 0)
        return;
    found(doctor,
          rc == 0
              ? text(doctor, "getent ahosts %s: %.*s", name, (int)length, out)
              : text(doctor, "getent ahosts %s: %s", name,
                     late ? out : "no address"),
          "frameworks that publish the address of their host name (Gloo, "
          "torchrun, Ray, Spark) cannot be reached from other nodes",
          text(doctor,
               "in /etc/hosts: ADDRESS %s, with the address of ip -brief "
               "address, and no other line with that name; for Gloo alone: "
               "export GLOO_SOCKET_IFNAME=INTERFACE",
               name));
}

/* ---- PCI ---- */

/* A GPU, an accelerator, or a NIC with RDMA; not a BMC's display adapter. */
static bool counts(struct doctor *doctor, const char *device)
{
    const char *class = fact_line(doctor, "%s/class", device);
    const char *vendor = fact_line(doctor, "%s/vendor", device);
    if (!strncmp(class, "0x0302", 6) || !strncmp(class, "0x1200", 6))
        return true;
    if (!strncmp(class, "0x0300", 6) || !strncmp(class, "0x0380", 6))
        return !strcmp(vendor, "0x10de") || !strcmp(vendor, "0x1002");
    return (!strncmp(class, "0x0207", 6) || !strncmp(class, "0x0200", 6)) &&
           *fact_glob(doctor, text(doctor, "%s/infiniband/*", device));
}

/* 0: it has no link, as a virtual function. */
static int64_t width(struct doctor *doctor, const char *device,
                     const char *which)
{
    int64_t lanes;
    return dt_number_parse(fact_line(doctor, "%s/%s", device, which), 1, 32,
                           &lanes)
               ? lanes
               : 0;
}

void look_pcie(struct doctor *doctor)
{
    const char *const *device = fact_glob(doctor, "/sys/bus/pci/devices/*");
    for (; *device; device++) {
        if (!counts(doctor, *device))
            continue;
        int64_t now = width(doctor, *device, "current_link_width");
        int64_t most = width(doctor, *device, "max_link_width");
        const char *bus = strrchr(*device, '/') + 1;
        if (!now || now >= most)
            continue;
        found(doctor,
              text(doctor, "%s/current_link_width: %lld of %lld lanes", *device,
                   (long long)now, (long long)most),
              "the device moves data at a fraction of its speed, and the "
              "slowest device sets the pace of the job",
              text(doctor,
                   "look while a job runs: lspci -s %s -vv | grep LnkSta; if "
                   "it is narrow then, too: reseat the card, or use a slot of "
                   "%lld lanes",
                   bus, (long long)most));
    }
}

/* ---- links ---- */

static bool has_link(struct doctor *doctor, const char *device)
{
    const char *const *port =
        fact_glob(doctor, text(doctor, "%s/ports/*", device));
    bool active = !*port; /* a device without ports is of another kind */
    for (; *port; port++)
        active |=
            strstr(fact_line(doctor, "%s/state", *port), "ACTIVE") != NULL;
    return active;
}

/* Is it for communication? Of Ethernet, if its interface was set up: servers
 * have ports that nobody uses. */
static bool is_used(struct doctor *doctor, const char *device)
{
    const char *const *flags =
        fact_glob(doctor, text(doctor, "%s/device/net/*/flags", device));
    const char *layer = fact_line(doctor, "%s/ports/1/link_layer", device);
    if (strcmp(layer, "Ethernet") != 0)
        return true;
    for (; *flags; flags++) {
        const char *line = fact_line(doctor, "%s", *flags);
        const char *at = line + strspn(line, "0x");
        uint64_t bits;
        if (dt_number_scan(&at, 16, UINT32_MAX, &bits) && bits & IFF_UP)
            return true;
    }
    return false;
}

/* Are both functions of one card? The second one often has no cable. */
static bool same_card(struct doctor *doctor, const char *a, const char *b)
{
    const char *link_a = fact_link(doctor, text(doctor, "%s/device", a));
    const char *link_b = fact_link(doctor, text(doctor, "%s/device", b));
    const char *bus_a = strrchr(link_a, '/'), *bus_b = strrchr(link_b, '/');
    size_t length = bus_a ? strcspn(bus_a, ".") : 0;
    return bus_a && bus_b && strcspn(bus_b, ".") == length &&
           !strncmp(bus_a, bus_b, length);
}

void look_links(struct doctor *doctor)
{
    const char *const *devices = fact_glob(doctor, RDMA "*");
    for (size_t i = 0; devices[i]; i++) {
        bool well = has_link(doctor, devices[i]);
        for (size_t j = 0; devices[j] && !well; j++)
            well = same_card(doctor, devices[i], devices[j]) &&
                   has_link(doctor, devices[j]);
        if (well || !is_used(doctor, devices[i]))
            continue;
        const char *state = fact_line(doctor, "%s/ports/1/state", devices[i]);
        bool starting = strstr(state, "INIT") != NULL;
        found(doctor, text(doctor, "%s/ports/1/state: %s", devices[i], state),
              "NCCL and UCX use the other devices, or TCP: slower, or the "
              "nodes do not reach each other",
              starting
                  ? "the cable is well, but no subnet manager answers: on the "
                    "switch, or on one machine: systemctl start opensm"
                  : text(doctor,
                         "ibstat %s; check its cable and the port of the "
                         "switch",
                         strrchr(devices[i], '/') + 1));
    }
}
