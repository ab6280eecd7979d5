/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nvml_link.c - load NVML and find its functions. */
#include "topo/nvml_link.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define NREQUIRED 4

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct dt_nvml, init)},
    {"nvmlDeviceGetCount_v2", offsetof(struct dt_nvml, count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct dt_nvml, by_index)},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct dt_nvml, pci)},
    {"nvmlShutdown", offsetof(struct dt_nvml, shutdown)},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct dt_nvml, by_bus)},
    {"nvmlDeviceGetName", offsetof(struct dt_nvml, name)},
    {"nvmlDeviceGetUUID", offsetof(struct dt_nvml, uuid)},
    {"nvmlDeviceGetMinorNumber", offsetof(struct dt_nvml, minor_number)},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct dt_nvml, memory)},
    {"nvmlDeviceGetNumaNodeId", offsetof(struct dt_nvml, memory_numa)},
    {"nvmlDeviceGetCpuAffinity", offsetof(struct dt_nvml, cpus)},
    {"nvmlDeviceGetTopologyCommonAncestor", offsetof(struct dt_nvml, ancestor)},
    {"nvmlDeviceGetP2PStatus", offsetof(struct dt_nvml, p2p)},
    {"nvmlDeviceGetNvLinkState", offsetof(struct dt_nvml, link_state)},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct dt_nvml, link_pci)},
    {"nvmlDeviceGetNvLinkRemoteDeviceType",
     offsetof(struct dt_nvml, link_remote)},
    {"nvmlDeviceGetGpuFabricInfoV", offsetof(struct dt_nvml, fabric)},
    {"nvmlDeviceGetMigMode", offsetof(struct dt_nvml, mig_mode)},
    {"nvmlDeviceGetMaxMigDeviceCount", offsetof(struct dt_nvml, mig_count)},
    {"nvmlDeviceGetMigDeviceHandleByIndex",
     offsetof(struct dt_nvml, mig_by_index)},
};
#define NSYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

static const char *what(int code)
{
    switch (code) {
    case DT_NVML_NO_PERMISSION:
        return "no permission for the driver's device files (4): ask the "
               "administrator";
    case DT_NVML_NO_DRIVER:
        return "the driver is not loaded (9): load it";
    case DT_NVML_MISMATCH:
        return "driver/library version mismatch (18): reboot or reload the "
               "driver";
    default:
        return NULL;
    }
}

static dt_result_t start(struct dt_nvml *nvml, struct dt_error *err)
{
    int code = nvml->init();
    if (!code)
        return DT_SUCCESS;
    if (what(code))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "NVML: %s; GPUs are known by PCI only", what(code));
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "NVML: it does not start, error %d: see what "
                        "nvidia-smi says; GPUs are known by PCI only",
                        code);
}

dt_result_t dt_nvml_open(struct dt_nvml *nvml, struct dt_error *err)
{
    memset(nvml, 0, sizeof(*nvml));
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return dt_error_set(err, DT_ERR_NOT_FOUND,
                            "no NVML on this node: libnvidia-ml.so.1, a part "
                            "of the NVIDIA driver, cannot be loaded");

    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < NSYMBOLS; i++) {
        void *symbol = dlsym(nvml->library, symbols[i].name);
        /* ISO C has no cast from an object's to a function's address */
        memcpy((char *)nvml + symbols[i].offset, &symbol, sizeof(symbol));
        if (symbol || i >= NREQUIRED)
            continue;
        rc = dt_error_set(err, DT_ERR_SYSTEM,
                          "NVML: libnvidia-ml.so.1 has no %s: install a newer "
                          "driver; GPUs are known by PCI only",
                          symbols[i].name);
        goto close_library;
    }
    rc = start(nvml, err);
    if (!rc)
        return DT_SUCCESS;
close_library:
    dlclose(nvml->library);
    return rc;
}

void dt_nvml_close(struct dt_nvml *nvml)
{
    if (nvml->shutdown)
        nvml->shutdown();
    dlclose(nvml->library);
}
