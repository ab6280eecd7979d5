/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nvml.h - the part of NVML's binary interface that is used here, found
 * at run time: neither its header nor its library is needed to build. Every
 * function returns 0 or an error number. */
#ifndef DT_TOPO_NVML_H
#define DT_TOPO_NVML_H

#include "base/error.h"

#define DT_NVML_MAX_LINKS 36

enum dt_nvml_error {
    DT_NVML_NO_PERMISSION = 4,
    DT_NVML_NOT_FOUND = 6,
    DT_NVML_POWER_CABLE = 8,
    DT_NVML_NO_DRIVER = 9,
    DT_NVML_IRQ = 11,
    DT_NVML_LOST = 15,
    DT_NVML_RESET_REQUIRED = 16,
    DT_NVML_MISMATCH = 18,
    DT_NVML_UNKNOWN = 999,
};

/* what is at the other end of an NVLink */
enum dt_nvml_remote {
    DT_NVML_REMOTE_GPU = 0,
    DT_NVML_REMOTE_NPU = 1, /* a POWER9 processor */
    DT_NVML_REMOTE_SWITCH = 2,
    DT_NVML_REMOTE_UNKNOWN = 255,
};

/* whether two GPUs may use a way to each other: 0 they may, up to
 * NOT_SUPPORTED why they may not */
enum dt_nvml_p2p {
    DT_NVML_P2P_OK = 0,
    DT_NVML_P2P_NOT_SUPPORTED = 5,
    DT_NVML_P2P_UNKNOWN = 6,
};
#define DT_NVML_P2P_NVLINK 2 /* the way asked about */

enum dt_nvml_ancestor {
    DT_NVML_INTERNAL = 0, /* two GPUs of one board */
    DT_NVML_SINGLE = 10,
    DT_NVML_MULTIPLE = 20,
    DT_NVML_HOSTBRIDGE = 30,
    DT_NVML_NODE = 40,
    DT_NVML_SYSTEM = 50,
};

struct dt_nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32]; /* "00000000:0F:00.0" */
};

struct dt_nvml_memory {
    unsigned long long total, free, used;
};

/* of the second version, which drivers without the third know too */
struct dt_nvml_fabric {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
    unsigned health;
};
#define DT_NVML_FABRIC_VERSION                                                 \
    ((unsigned)sizeof(struct dt_nvml_fabric) | 2U << 24)
#define DT_NVML_FABRIC_COMPLETED 3

_Static_assert(sizeof(struct dt_nvml_pci) == 68, "as NVML has it");
_Static_assert(sizeof(struct dt_nvml_memory) == 24, "as NVML has it");
_Static_assert(sizeof(struct dt_nvml_fabric) == 36, "as NVML has it");

/* A device is an opaque pointer. The first four functions are there; any of
 * the others is NULL where the library is older than it. */
struct dt_nvml {
    void *library;
    int (*init)(void);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, void **device);
    int (*pci)(void *device, struct dt_nvml_pci *pci);

    int (*shutdown)(void);
    int (*by_bus)(const char *bus, void **device);
    int (*name)(void *device, char *text, unsigned size);
    int (*uuid)(void *device, char *text, unsigned size);
    int (*minor_number)(void *device, unsigned *number);
    int (*memory)(void *device, struct dt_nvml_memory *memory);
    int (*memory_numa)(void *device, unsigned *id);
    int (*cpus)(void *device, unsigned nwords, unsigned long *mask);
    int (*ancestor)(void *a, void *b, unsigned *level);
    int (*p2p)(void *a, void *b, int way, unsigned *status);
    int (*link_state)(void *device, unsigned link, unsigned *active);
    int (*link_pci)(void *device, unsigned link, struct dt_nvml_pci *pci);
    int (*link_remote)(void *device, unsigned link, unsigned *type);
    int (*fabric)(void *device, struct dt_nvml_fabric *fabric);
    int (*mig_mode)(void *device, unsigned *current, unsigned *pending);
    int (*mig_count)(void *device, unsigned *n);
    int (*mig_by_index)(void *device, unsigned i, void **instance);
};

#endif
