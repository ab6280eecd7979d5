/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* libcuda.c - the mock driver: calls, devices, contexts, and modules. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mock.h"
#include "kernels.h"

pthread_mutex_t mock_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t mock_changed = PTHREAD_COND_INITIALIZER;

static const char *const names[] = {
#define NAME(name, params) #name,
    MOCK_FUNCTIONS(NAME)
#undef NAME
};

static struct {
    pthread_once_t once;
    int devices, version;
    pid_t started;
    struct {
        int fail, from;
        unsigned delay;
        atomic_int calls;
    } call[MOCK_CALLS];
    struct dt_cu_context primary[MOCK_DEVICES];
} mock = {.once = PTHREAD_ONCE_INIT};

static _Thread_local struct {
    struct dt_cu_context *context[16];
    size_t depth;
    int capture_mode;
} thread;

/* ---- what the environment says ---- */

static int call_of(const char *name, size_t len)
{
    for (int i = 0; i < MOCK_CALLS; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return i;
    return -1;
}

/* A typo in a test would make it pass. */
static void complain(const char *variable, const char *value)
{
    fprintf(stderr, "mock: cannot understand %s=%s\n", variable, value);
    abort();
}

static void read_calls(const char *variable, bool fail)
{
    const char *value = getenv(variable);
    for (const char *p = value; p && *p; p += *p == ',') {
        size_t len = strcspn(p, "=");
        int call = call_of(p, len);
        char *end = NULL;
        if (call < 0 || p[len] != '=')
            complain(variable, value);
        long number = strtol(p + len + 1, &end, 10), from = 1;
        if (fail && *end == '@')
            from = strtol(end + 1, &end, 10);
        if (end == p + len + 1 || (*end && *end != ','))
            complain(variable, value);
        if (fail) {
            mock.call[call].fail = (int)number;
            mock.call[call].from = (int)from;
        } else {
            mock.call[call].delay = (unsigned)number;
        }
        p = end;
    }
}

static void read_environment(void)
{
    const char *devices = getenv("DT_MOCK_GPUS");
    const char *version = getenv("DT_MOCK_VERSION");
    mock.devices = devices ? atoi(devices) : 2;
    mock.version = version ? atoi(version) : 13000;
    if (mock.devices < 0 || mock.devices > MOCK_DEVICES)
        complain("DT_MOCK_GPUS", devices);
    read_calls("DT_MOCK_FAIL", true);
    read_calls("DT_MOCK_DELAY", false);
    for (int i = 0; i < MOCK_DEVICES; i++)
        mock.primary[i].device = i;
}

bool mock_reaches(int device, int peer)
{
    const char *pairs = getenv("DT_MOCK_NO_PEER");
    int a, b, n;
    if (device == peer || !pairs)
        return true;
    if (strcmp(pairs, "all") == 0)
        return false;
    for (; sscanf(pairs, "%d-%d%n", &a, &b, &n) == 2; pairs += n + 1) {
        if ((a == device && b == peer) || (a == peer && b == device))
            return false;
        if (!pairs[n])
            break;
    }
    return true;
}

/* ---- calls ---- */

unsigned mock_delay(enum mock_call call)
{
    return mock.call[call].delay;
}

int mock_begin(enum mock_call call, bool queued)
{
    pthread_once(&mock.once, read_environment);
    int number = ++mock.call[call].calls;
    if (mock.call[call].delay && !queued)
        usleep(mock.call[call].delay);
    if (mock.call[call].fail && number >= mock.call[call].from)
        return mock.call[call].fail;
    if (call == CALL_cuInit || call == CALL_cuDriverGetVersion ||
        call == CALL_cuGetErrorName)
        return DT_CU_OK;
    return mock.started == getpid() ? DT_CU_OK : DT_CU_NOT_INITIALIZED;
}

int dt_mock_calls(const char *name)
{
    int call = call_of(name, strlen(name));
    return call < 0 ? -1 : mock.call[call].calls;
}

void dt_mock_fail(const char *name, int code)
{
    int call = call_of(name, strlen(name));
    if (call < 0)
        complain("dt_mock_fail", name);
    mock.call[call].from = 0;
    mock.call[call].fail = code;
}

/* ---- the driver ---- */

int cuInit(unsigned flags)
{
    BEGIN(cuInit);
    if (flags)
        return DT_CU_INVALID_VALUE;
    if (!mock.devices)
        return DT_CU_NO_DEVICE;
    if (mock.started && mock.started != getpid())
        return DT_CU_NOT_INITIALIZED;
    mock.started = getpid();
    return DT_CU_OK;
}

int cuDriverGetVersion(int *version)
{
    BEGIN(cuDriverGetVersion);
    *version = mock.version;
    return DT_CU_OK;
}

int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } table[] = {
        {DT_CU_OK, "CUDA_SUCCESS"},
        {DT_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {DT_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {DT_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
        {DT_CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
        {DT_CU_STUB, "CUDA_ERROR_STUB_LIBRARY"},
        {DT_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {DT_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {DT_CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
        {DT_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {DT_CU_NO_PEER, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
        {DT_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {DT_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
        {999, "CUDA_ERROR_UNKNOWN"},
    };
    BEGIN(cuGetErrorName);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].code == code) {
            *name = table[i].name;
            return DT_CU_OK;
        }
    return DT_CU_INVALID_VALUE;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    BEGIN(cuThreadExchangeStreamCaptureMode);
    int old = thread.capture_mode;
    thread.capture_mode = *mode;
    *mode = old;
    return DT_CU_OK;
}

/* ---- devices ---- */

int mock_devices(void)
{
    return mock.devices;
}

static bool is_device(int device)
{
    return device >= 0 && device < mock.devices;
}

int cuDeviceGetCount(int *count)
{
    BEGIN(cuDeviceGetCount);
    *count = mock.devices;
    return DT_CU_OK;
}

int cuDeviceGetPCIBusId(char *bus, int len, int device)
{
    BEGIN(cuDeviceGetPCIBusId);
    if (!is_device(device))
        return DT_CU_INVALID_DEVICE;
    snprintf(bus, (size_t)len, "0000:%02X:00.0", 0x1a + device);
    return DT_CU_OK;
}

int cuDeviceCanAccessPeer(int *yes, int device, int peer)
{
    BEGIN(cuDeviceCanAccessPeer);
    if (!is_device(device) || !is_device(peer))
        return DT_CU_INVALID_DEVICE;
    *yes = device != peer && mock_reaches(device, peer);
    return DT_CU_OK;
}

/* ---- contexts ---- */

struct dt_cu_context *mock_context(void)
{
    return thread.depth ? thread.context[thread.depth - 1] : NULL;
}

struct dt_cu_context *mock_primary(int device)
{
    return &mock.primary[device];
}

static bool is_context(const struct dt_cu_context *context)
{
    for (int i = 0; i < mock.devices; i++)
        if (context == &mock.primary[i] && context->uses > 0)
            return true;
    return false;
}

int cuDevicePrimaryCtxRetain(struct dt_cu_context **ctx, int device)
{
    BEGIN(cuDevicePrimaryCtxRetain);
    if (!is_device(device))
        return DT_CU_INVALID_DEVICE;
    pthread_mutex_lock(&mock_lock);
    mock.primary[device].uses++;
    pthread_mutex_unlock(&mock_lock);
    *ctx = &mock.primary[device];
    return DT_CU_OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    BEGIN(cuDevicePrimaryCtxRelease_v2);
    if (!is_device(device) || !mock.primary[device].uses)
        return DT_CU_INVALID_CONTEXT;
    pthread_mutex_lock(&mock_lock);
    mock.primary[device].uses--;
    pthread_mutex_unlock(&mock_lock);
    return DT_CU_OK;
}

int cuCtxPushCurrent_v2(struct dt_cu_context *ctx)
{
    BEGIN(cuCtxPushCurrent_v2);
    if (!is_context(ctx) ||
        thread.depth == sizeof(thread.context) / sizeof(thread.context[0]))
        return DT_CU_INVALID_CONTEXT;
    thread.context[thread.depth++] = ctx;
    return DT_CU_OK;
}

int cuCtxPopCurrent_v2(struct dt_cu_context **ctx)
{
    BEGIN(cuCtxPopCurrent_v2);
    if (!thread.depth)
        return DT_CU_INVALID_CONTEXT;
    *ctx = thread.context[--thread.depth];
    return DT_CU_OK;
}

int cuCtxSetCurrent(struct dt_cu_context *ctx)
{
    BEGIN(cuCtxSetCurrent);
    if (ctx && !is_context(ctx))
        return DT_CU_INVALID_CONTEXT;
    if (thread.depth)
        thread.depth--;
    if (ctx)
        thread.context[thread.depth++] = ctx;
    return DT_CU_OK;
}

int cuCtxGetCurrent(struct dt_cu_context **ctx)
{
    BEGIN(cuCtxGetCurrent);
    *ctx = mock_context();
    return DT_CU_OK;
}

int cuCtxGetDevice(int *device)
{
    BEGIN(cuCtxGetDevice);
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    *device = mock_context()->device;
    return DT_CU_OK;
}

int cuCtxSynchronize(void)
{
    BEGIN(cuCtxSynchronize);
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    mock_drain(mock_context()->device);
    return DT_CU_OK;
}

int cuCtxGetStreamPriorityRange(int *lowest, int *highest)
{
    BEGIN(cuCtxGetStreamPriorityRange);
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    *lowest = 0;
    *highest = -5;
    return DT_CU_OK;
}

/* ---- modules: any image has the kernels of kernels.h ---- */

int cuModuleLoadData(struct dt_cu_module **module, const void *image)
{
    BEGIN(cuModuleLoadData);
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    if (!image)
        return DT_CU_INVALID_VALUE;
    *module = (struct dt_cu_module *)mock_context();
    return DT_CU_OK;
}

int cuModuleUnload(struct dt_cu_module *module)
{
    BEGIN(cuModuleUnload);
    return is_context((struct dt_cu_context *)module) ? DT_CU_OK
                                                      : DT_CU_INVALID_HANDLE;
}

int cuModuleGetFunction(struct dt_cu_function **function,
                        struct dt_cu_module *module, const char *name)
{
    BEGIN(cuModuleGetFunction);
    const struct dt_mock_kernel *kernel = dt_mock_kernel(name);
    if (!is_context((struct dt_cu_context *)module))
        return DT_CU_INVALID_HANDLE;
    if (!kernel)
        return DT_CU_NOT_FOUND;
    *function = (struct dt_cu_function *)(uintptr_t)kernel;
    return DT_CU_OK;
}
