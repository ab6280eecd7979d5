/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt_topo.h - one node: its CPUs, GPUs and NICs, how near they are to each
 * other, and which task of a job should get which of them.
 *
 * A topology is read with dt_topo_load() or dt_topo_discover(), looked at
 * through the fields below, and freed with dt_topo_destroy(). dt_place()
 * decides; it is pure and may be called by any number of threads at once. The
 * library is libdt_topo; it needs neither GPUs nor their drivers. */
#ifndef DT_TOPO_H
#define DT_TOPO_H

#include "dt.h"

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define DT_TOPO_MAX_CPUS     4096
#define DT_TOPO_MAX_PACKAGES 64
#define DT_TOPO_MAX_NUMAS    128
#define DT_TOPO_MAX_SWITCHES 256
#define DT_TOPO_MAX_GPUS     64
#define DT_TOPO_MAX_NICS     64
#define DT_TOPO_MAX_DEVICES  (DT_TOPO_MAX_GPUS + DT_TOPO_MAX_NICS)

/* What traffic between two devices goes through, nearest first; the words of
 * `nvidia-smi topo -m`. */
typedef enum dt_path {
    DT_PATH_NVL = 0,  /* NVLink or XGMI; a device to itself */
    DT_PATH_PIX = 1,  /* one PCIe switch */
    DT_PATH_PXB = 2,  /* several PCIe switches, no host bridge */
    DT_PATH_PHB = 3,  /* the PCIe host bridge */
    DT_PATH_NODE = 4, /* several host bridges of one NUMA node */
    DT_PATH_SYS = 5,  /* the link between NUMA nodes */
    DT_PATH_UNKNOWN = 6,
} dt_path_t;

/* A set of logical CPUs by the numbers of the operating system. */
typedef struct dt_cpuset {
    uint64_t word[DT_TOPO_MAX_CPUS / 64];
} dt_cpuset_t;

typedef struct dt_topo_cpu {
    bool present; /* and online */
    /* siblings (SMT) share a core; cores of a node are numbered from 0 in the
     * order of their lowest CPU */
    uint16_t core;
    int16_t numa, package; /* index into numa[], package number; -1 unknown */
} dt_topo_cpu_t;

typedef struct dt_topo_numa {
    uint32_t id;     /* of the operating system */
    int16_t package; /* -1 unknown */
    int16_t gpu;     /* whose memory it is: index into gpu[]; -1 main memory */
    uint64_t memory; /* bytes, 0 unknown */
    dt_cpuset_t cpus;
} dt_topo_numa_t;

/* A PCIe switch or host bridge that devices hang under, for drawing. */
typedef struct dt_topo_switch {
    char name[32];  /* bus id where it has one; unique in its node */
    int16_t parent; /* index into switches[]; -1: a host bridge */
    int16_t numa;   /* index into numa[], -1 unknown */
} dt_topo_switch_t;

typedef enum dt_vendor {
    DT_VENDOR_UNKNOWN,
    DT_VENDOR_NVIDIA,
    DT_VENDOR_AMD,
    DT_VENDOR_INTEL,
} dt_vendor_t;

/* What one task may own: a GPU, or a partition of one (MIG, CPX). Ordered by
 * bus id, then partition. Texts are "" when unknown. */
/* A device's own PCIe link: "5x16" is PCIe 5.0 with 16 lanes. 0: unknown. */
typedef struct dt_topo_pcie {
    uint8_t generation, lanes;
} dt_topo_pcie_t;

typedef struct dt_topo_gpu {
    char bus[24];  /* "0000:0f:00.0", lower case */
    char name[64]; /* the product: "NVIDIA H100 80GB HBM3" */
    char uuid[96]; /* "GPU-...", "MIG-..." */
    char file[64]; /* device file: "/dev/nvidia0" */
    dt_vendor_t vendor;
    int16_t part;         /* partition of its PCI function; -1: a whole GPU */
    int16_t minor_number; /* of the device file; -1 unknown */
    int16_t numa;         /* nearest with CPUs; index into numa[]; -1 unknown */
    int16_t memory_numa;  /* its memory as a NUMA node; index; -1 none */
    int16_t package;      /* -1 unknown */
    int16_t under;        /* index into switches[]; -1 unknown */
    dt_topo_pcie_t pcie;
    bool nvswitch;    /* its links go to switches */
    bool lost;        /* present but not usable: fallen off the bus */
    uint64_t memory;  /* bytes, 0 unknown */
    dt_cpuset_t cpus; /* nearest CPUs; empty: unknown, any */
} dt_topo_gpu_t;

typedef enum dt_nic_type {
    DT_NIC_UNKNOWN,
    DT_NIC_IB,
    DT_NIC_ROCE,
    DT_NIC_EFA,
    DT_NIC_SLINGSHOT,
    DT_NIC_ETHERNET, /* no RDMA */
} dt_nic_type_t;

typedef enum dt_link_state {
    DT_LINK_UNKNOWN,
    DT_LINK_UP,
    DT_LINK_DOWN,
} dt_link_state_t;

/* A PCI function with a network device, one port of interest. */
typedef struct dt_topo_nic {
    char name[32];   /* as UCX and NCCL call it: "mlx5_0"; else interface; else
                        bus id */
    char names[128]; /* all its names, "mlx5_0/ib0" */
    char net[32];    /* network interface: "ib0", "hsn0" */
    char bus[24];
    dt_nic_type_t type;
    dt_link_state_t state;
    int16_t port;                 /* of the verbs device, from 1; 0 unknown */
    int16_t numa, package, under; /* as for a GPU */
    uint32_t gbps;                /* gigabits per second, 0 unknown */
    dt_topo_pcie_t pcie;
} dt_topo_nic_t;

/* About 220 KiB. Made by dt_topo_create(), so that fields can be added. */
typedef struct dt_topo {
    char source[128];    /* what it was read from, for people */
    char missing[256];   /* what could not be asked, and why; "" if nothing */
    char nccl_file[256]; /* the NCCL topology file it came from, else "" */
    uint32_t npackages, nnumas, ncpus, nswitches, ngpus, nnics;
    dt_topo_cpu_t cpu[DT_TOPO_MAX_CPUS]; /* [ncpus], by number */
    dt_topo_numa_t numa[DT_TOPO_MAX_NUMAS];
    dt_topo_switch_t switches[DT_TOPO_MAX_SWITCHES];
    dt_topo_gpu_t gpu[DT_TOPO_MAX_GPUS];
    dt_topo_nic_t nic[DT_TOPO_MAX_NICS];
    /* PIX .. UNKNOWN, symmetric; device i is GPU i, device ngpus+j is NIC j.
     * Between devices joined by NVLink too: the way over PCIe. */
    uint8_t pci[DT_TOPO_MAX_DEVICES][DT_TOPO_MAX_DEVICES];
    /* NVLinks or XGMI links between two GPUs, directly or over switches */
    uint16_t links[DT_TOPO_MAX_GPUS][DT_TOPO_MAX_GPUS];
} dt_topo_t;

/* ---- CPU sets ---- */

static inline bool dt_cpuset_has(const dt_cpuset_t *set, size_t cpu)
{
    return cpu < DT_TOPO_MAX_CPUS && (set->word[cpu / 64] >> cpu % 64 & 1);
}

static inline void dt_cpuset_add(dt_cpuset_t *set, size_t cpu)
{
    if (cpu < DT_TOPO_MAX_CPUS)
        set->word[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

static inline void dt_cpuset_remove(dt_cpuset_t *set, size_t cpu)
{
    if (cpu < DT_TOPO_MAX_CPUS)
        set->word[cpu / 64] &= ~((uint64_t)1 << cpu % 64);
}

size_t dt_cpuset_count(const dt_cpuset_t *set);
bool dt_cpuset_equal(const dt_cpuset_t *a, const dt_cpuset_t *b);
/* into may be a or b */
void dt_cpuset_and(dt_cpuset_t *into, const dt_cpuset_t *a,
                   const dt_cpuset_t *b);
void dt_cpuset_or(dt_cpuset_t *into, const dt_cpuset_t *a,
                  const dt_cpuset_t *b);
/* Parse "0-3,8"; "" is empty. INVALID_ARG: malformed or beyond MAX_CPUS. */
dt_result_t dt_cpuset_parse(const char *text, dt_cpuset_t *set,
                            struct dt_error *err);
/* Print as "0-3,8" into size bytes, cut if need be; returns text. */
char *dt_cpuset_print(const dt_cpuset_t *set, char *text, size_t size);

/* ---- topologies ---- */

/* An empty one, with no path known; NULL without memory. */
dt_topo_t *dt_topo_create(void);
void dt_topo_destroy(dt_topo_t *topo); /* takes NULL */

/* Read a topology file, recognised by its content: hwloc XML, NCCL or RCCL
 * topology XML, `nvidia-smi topo -m`, Slurm's gres.conf, or our own format
 * (doc/topology.md). path "-" is standard input. Blocks on input only: at most
 * 60 s for each piece of it. The caller owns *topo. NOT_FOUND, IO, CORRUPT,
 * NO_MEMORY. */
dt_result_t dt_topo_load(const char *path, dt_topo_t **topo,
                         struct dt_error *err);

/* Read this node: hwloc, then, with drivers, what NVML says; where that fails,
 * topo->missing tells. Drivers can hang or crash in this call; whoever must
 * not, runs `dt-topo --cached` and loads what it prints. */
dt_result_t dt_topo_discover(bool drivers, dt_topo_t **topo,
                             struct dt_error *err);

/* Our own text format; free() it. NULL without memory. */
char *dt_topo_print(const dt_topo_t *topo);

/* The best way between two devices, NVLink included. */
dt_path_t dt_topo_path(const dt_topo_t *topo, size_t a, size_t b);
/* "NVL" "PIX" ... "?" */
const char *dt_path_name(dt_path_t path);

/* The NICs nearest to a GPU that carry RDMA and are not down: all of the best
 * path class, where SYS inside the package beats SYS, but those known to have
 * at most a quarter of the fastest one's speed; in order. Returns how many, and
 * their class in *path unless NULL (UNKNOWN if there is none). */
size_t dt_topo_nearest_nics(const dt_topo_t *topo, size_t gpu,
                            uint8_t nic[DT_TOPO_MAX_NICS], dt_path_t *path);

/* ---- placement ---- */

typedef enum dt_place_policy {
    DT_PLACE_AUTO,   /* sees all GPUs, those of local rank i at index i */
    DT_PLACE_ROTATE, /* sees all GPUs, its own first */
    DT_PLACE_SINGLE, /* sees its own only */
    DT_PLACE_COUNT,  /* sees its own only, count of them */
    DT_PLACE_MAP,    /* sees its own only, which the list names */
    DT_PLACE_MASK,   /* the same, a mask per task */
} dt_place_policy_t;

typedef enum dt_place_nics {
    DT_PLACE_NICS_CLOSEST, /* best class of its GPUs, ties spread over tasks */
    DT_PLACE_NICS_RAIL,    /* GPU i takes NIC i*nics/gpus, in order */
    DT_PLACE_NICS_MAP,     /* task i takes NIC nic_map[i % nmap] */
    DT_PLACE_NICS_NONE,
} dt_place_nics_t;

typedef enum dt_place_cpus {
    DT_PLACE_CPUS_GPU, /* cores nearest to its GPUs */
    DT_PLACE_CPUS_NONE,
} dt_place_cpus_t;

#define DT_PLACE_MAX_TASKS 1024
#define DT_PLACE_MAX_MAP   64

/* What Slurm granted on one node, and what the user wants. */
typedef struct dt_place_request {
    const dt_topo_t *topo;
    uint32_t ntasks;
    /* granted GPUs as indices of topo->gpu, each once, any order */
    uint32_t ngpus;
    uint8_t gpu[DT_TOPO_MAX_GPUS];
    dt_cpuset_t cpus; /* granted CPUs; empty: all of the node */
    dt_place_policy_t policy;
    uint32_t count; /* for COUNT, at least 1 */
    /* for MAP and MASK, used round robin over tasks: places among the granted
     * GPUs in order of their index in topo->gpu, or masks of such places */
    uint32_t nmap;
    uint64_t map[DT_PLACE_MAX_MAP];
    dt_place_nics_t nics;
    uint32_t nnic_map;
    uint8_t nic_map[DT_PLACE_MAX_MAP]; /* indices of topo->nic */
    dt_place_cpus_t cpu_bind;
    /* A task gets at least so many granted cores, if there are as many, even if
     * other tasks have them, too: 2 where a task runs a coordinator beside its
     * work, which else can wait for each other for ever. 0: as they fall. */
    uint32_t min_cores;
} dt_place_request_t;

/* Things a user should be told, once per job. */
typedef enum dt_place_note {
    DT_PLACE_NOTE_UNKNOWN = 1 << 0,     /* no topology: split by order */
    DT_PLACE_NOTE_SHARED = 1 << 1,      /* more tasks than GPUs */
    DT_PLACE_NOTE_FEW_CPUS = 1 << 2,    /* tasks share CPUs */
    DT_PLACE_NOTE_FAR_CPUS = 1 << 3,    /* has no CPU near its GPUs */
    DT_PLACE_NOTE_SPLIT = 1 << 4,       /* a task's GPUs span NUMA nodes */
    DT_PLACE_NOTE_NO_PEER = 1 << 5,     /* hides GPUs it could reach directly */
    DT_PLACE_NOTE_LOST = 1 << 6,        /* a granted GPU is lost */
    DT_PLACE_NOTE_MIG = 1 << 7,         /* has one MIG instance of several */
    DT_PLACE_NOTE_LENT = 1 << 8,        /* shares cores, for min_cores */
    DT_PLACE_NOTE_ANY_CPUS = 1 << 9,    /* its GPUs can be at any package */
    DT_PLACE_NOTE_SHARED_MIG = 1 << 10, /* SHARED, and some are MIG instances */
} dt_place_note_t;

/* One task. GPUs, NICs and NUMA nodes are indices of the topology. */
typedef struct dt_place_task {
    uint32_t nown, nvisible, nnics;
    uint8_t own[DT_TOPO_MAX_GPUS];
    uint8_t visible[DT_TOPO_MAX_GPUS];
    uint8_t nic[DT_TOPO_MAX_NICS];     /* of all its GPUs, nearest first */
    uint8_t gpu_nic[DT_TOPO_MAX_GPUS]; /* of own[i]; UINT8_MAX: none */
    dt_cpuset_t cpus; /* empty: leave as it is; else within the grant */
    uint64_t numas[DT_TOPO_MAX_NUMAS / 64]; /* main memory to prefer, a mask */
    uint32_t notes;                         /* DT_PLACE_NOTE_* */
} dt_place_task_t;

/* How good a set of GPUs is; compared in this order. */
typedef struct dt_place_score {
    uint32_t links; /* NVLinks inside the set, more is better */
    uint32_t pci;   /* sum of the PCI classes of its pairs, less is better */
    uint32_t numas; /* different localities, fewer is better */
} dt_place_score_t;

/* Place all tasks of a node into task[request->ntasks]. The same request gives
 * the same answer everywhere and in whatever order the GPUs are listed: tasks
 * agree without talking. Every granted GPU is owned; none by two tasks unless
 * there are more tasks than GPUs, or MAP or MASK say so. Own GPUs: the
 * partition of the granted ones with the most NVLinks inside the parts, then
 * the shortest PCI paths, then the fewest NUMA nodes; ties go to fewer pairs
 * across packages, then to the first in order of GPUs. Larger shares first.
 * With more tasks than GPUs task i owns GPU i*ngpus/ntasks. A task whose first
 * GPU is a MIG instance has and sees that alone, as CUDA opens no other; other
 * tasks see no instance. CPUs: the cores near the GPUs, whole, cut contiguously
 * between the tasks that share them, by how many of these GPUs each owns. It
 * permutes what was granted and never adds. INVALID_ARG with a line that says
 * what to do: no GPU granted, more asked for than granted, a map that names
 * what is not there. */
dt_result_t dt_place(const dt_place_request_t *request, dt_place_task_t *task,
                     struct dt_error *err);

/* The score of a set of n GPUs, indices of topo->gpu. */
dt_place_score_t dt_place_score(const dt_topo_t *topo, const uint8_t *gpu,
                                size_t n);
/* <0 if a is worse than b, 0 if they are as good, >0 if better. */
int dt_place_compare(const dt_place_score_t *a, const dt_place_score_t *b);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
