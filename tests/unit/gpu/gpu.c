/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.c - the module for GPUs on the mock driver: loading, devices, memory,
 * and what processes share. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "child.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* ---- loading ---- */

static void case_no_sign(void)
{
    struct dt_gpu *gpu = (struct dt_gpu *)&err;
    SUCCEEDS(dt_gpu_load(&gpu, &err));
    NEED(!gpu, "no GPU");
    dt_gpu_unload(NULL);
}

static void case_no_driver(void)
{
    struct dt_gpu *gpu = NULL;
    if (dlopen("libcuda.so.1", RTLD_LAZY)) {
        diag("this machine has one");
        return;
    }
    NEED(preload(MODULE), "%s", dlerror());
    FAILS(dt_gpu_load(&gpu, &err), DT_ERR_UNSUPPORTED, "no driver");
    NEED(!gpu, "nothing");
}

static void case_no_module(void)
{
    struct dt_gpu *gpu = NULL;
    FAILS(dt_gpu_load(&gpu, &err), DT_ERR_UNSUPPORTED, "not libdt_cuda.so");
}

static void case_other_module(void)
{
    struct dt_gpu *gpu = NULL;
    NEED(preload("tests/mock/old/.libs/libdt_cuda.so"), "%s", dlerror());
    FAILS(dt_gpu_load(&gpu, &err), DT_ERR_UNSUPPORTED, "another version");
}

static void case_old_driver(void)
{
    struct dt_gpu *gpu = NULL;
    NEED(preload(MOCK) && preload(MODULE), "%s", dlerror());
    FAILS(dt_gpu_load(&gpu, &err), DT_ERR_UNSUPPORTED, "of CUDA 11.4, 11.7 or");
}

static void case_lacking_driver(void)
{
    struct dt_gpu *gpu = NULL;
    NEED(preload("tests/mock/old/.libs/libcuda.so.1"), "%s", dlerror());
    NEED(preload(MODULE), "%s", dlerror());
    FAILS(dt_gpu_load(&gpu, &err), DT_ERR_UNSUPPORTED, "has no cuGetErrorName");
}

static void case_stub(void)
{
    struct dt_gpu *gpu = NULL;
    NEED(preload(MOCK) && preload(MODULE), "%s", dlerror());
    FAILS(dt_gpu_load(&gpu, &err), DT_ERR_UNSUPPORTED, "stub");
}

static void case_no_device(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_place place;
    int count = -7;
    FAILS(gpu->ops->devices(gpu, &count, &err), DT_ERR_UNSUPPORTED,
          "CUDA_ERROR_NO_DEVICE (100)");
    NEED(count == -7, "untouched");
    SUCCEEDS(gpu->ops->locate(gpu, &place, 1, &place, &err));
    NEED(place.kind == DT_GPU_HOST, "the host's");
    dt_gpu_unload(gpu);
}

/* A driver that cannot start is its own fault, not the caller's. */
static void case_no_start(void)
{
    struct dt_gpu *gpu = open_mock();
    int count;
    FAILS(gpu->ops->devices(gpu, &count, &err), DT_ERR_SYSTEM, "(101)");
    dt_gpu_unload(gpu);
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[64 * KIB];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0700);
    ssize_t n;
    NEED(in >= 0 && out >= 0, "%s: %m", to);
    while ((n = read(in, bytes, sizeof(bytes))) > 0)
        NEED(write(out, bytes, (size_t)n) == n, "%s: %m", to);
    close(in);
    close(out);
}

static int run_beside(const char *program, const char *as)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, as, "beside", (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

/* This program elsewhere, with a module of another version in slurm-dt/. */
static void case_beside(void)
{
    char self[PATH_MAX] = "", folder[] = "/tmp/gpu-XXXXXX", path[64];
    char module[PATH_MAX + 64], program[40], sub[40];
    NEED(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0, "%m");
    NEED(mkdtemp(folder), "%m");
    snprintf(program, sizeof(program), "%s/gpu.t", folder);
    snprintf(sub, sizeof(sub), "%s/slurm-dt", folder);
    snprintf(path, sizeof(path), "%s/libdt_cuda.so", sub);
    copy_file(self, program);
    *strrchr(self, '/') = '\0';
    snprintf(module, sizeof(module), "%s/../../mock/old/.libs/libdt_cuda.so",
             self);
    bool made = mkdir(sub, 0700) == 0 && symlink(module, path) == 0;
    int absolute = run_beside(program, program);
    int relative = run_beside(program, "gpu.t");
    unlink(path);
    rmdir(sub);
    unlink(program);
    rmdir(folder);
    NEED(made && absolute == 0 && relative == 0, "%d %d", absolute, relative);
}

/* ---- devices ---- */

static void case_lazy(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_place place;
    SUCCEEDS(gpu->ops->locate(gpu, &place, 1, &place, &err));
    NEED(place.kind == DT_GPU_HOST && place.device == -1, "the host's");
    NEED(CU(dt_mock_calls)("cuInit") == 0, "not started");
    NEED(CU(dt_mock_calls)("cuFlyToTheMoon") == -1, "unknown");
    dt_gpu_unload(gpu);
}

static void case_devices(void)
{
    struct dt_gpu *gpu = open_mock();
    char bus[24];
    int count = 0;
    SUCCEEDS(gpu->ops->devices(gpu, &count, &err));
    NEED(count == 3, "%d", count);
    SUCCEEDS(gpu->ops->bus(gpu, 1, bus, &err));
    NEED(strcmp(bus, "0000:1b:00.0") == 0, "%s", bus);
    FAILS(gpu->ops->bus(gpu, 3, bus, &err), DT_ERR_INVALID_ARG, "0 to 2");
    FAILS(gpu->ops->bus(gpu, -1, bus, &err), DT_ERR_INVALID_ARG, "device -1");
    SUCCEEDS(gpu->ops->reaches(gpu, 1, "0000:1b:00.0", &err));
    FAILS(gpu->ops->reaches(gpu, 0, "0000:1b:00.0", &err), DT_ERR_UNSUPPORTED,
          "GPU 0000:1a:00.0 cannot read GPU 0000:1b:00.0: no peer-to-peer");
    SUCCEEDS(gpu->ops->reaches(gpu, 0, "0000:1c:00.0", &err));
    FAILS(gpu->ops->reaches(gpu, 0, "0000:1d:00.0", &err), DT_ERR_UNSUPPORTED,
          "not visible here");
    FAILS(gpu->ops->reaches(gpu, 5, "0000:1c:00.0", &err), DT_ERR_INVALID_ARG,
          "5");
    NEED(CU(dt_mock_calls)("cuInit") == 1, "started once");
    dt_gpu_unload(gpu);
}

/* ---- where memory is ---- */

/* A user's context, current in this thread. */
static void use_device(int device)
{
    struct dt_cu_context *context;
    USER(cuInit, 0);
    USER(cuDevicePrimaryCtxRetain, &context, device);
    USER(cuCtxSetCurrent, context);
}

static struct dt_gpu_place locate(struct dt_gpu *gpu, const void *ptr,
                                  size_t len)
{
    struct dt_gpu_place place;
    SUCCEEDS(gpu->ops->locate(gpu, ptr, len, &place, &err));
    return place;
}

static char *alloc(size_t size)
{
    dt_cu_ptr ptr;
    USER(cuMemAlloc_v2, &ptr, size);
    return (char *)(uintptr_t)ptr;
}

static void case_locate(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_place place, again;
    void *host;
    dt_cu_ptr managed;
    use_device(1);
    char *p = alloc(1000), *other = alloc(10), *own = malloc(8 * KIB);
    place = locate(gpu, p + 10, 990);
    NEED(place.kind == DT_GPU_MEMORY && place.device == 1 && place.base == p &&
             place.size == 1000 && place.id,
         "%d %d %zu", place.kind, place.device, place.size);
    NEED(locate(gpu, p, 1).id == place.id, "the same");
    NEED(locate(gpu, other, 1).id != place.id, "another");
    FAILS(gpu->ops->locate(gpu, p + 10, 991, &place, &err), DT_ERR_INVALID_ARG,
          "leave their GPU allocation, 1000 bytes");
    FAILS(gpu->ops->locate(gpu, p, SIZE_MAX, &place, &err), DT_ERR_INVALID_ARG,
          "leave");
    USER(cuMemFree_v2, (dt_cu_ptr)(uintptr_t)p);
    NEED(locate(gpu, p, 1).kind == DT_GPU_HOST, "freed");
    again = locate(gpu, alloc(1000), 1);
    NEED(again.id != place.id, "a new id");
    USER(cuMemAllocManaged, &managed, 100, 1);
    place = locate(gpu, (void *)(uintptr_t)managed, 100);
    NEED(place.kind == DT_GPU_MANAGED && place.device == 1, "managed");
    USER(cuMemHostAlloc, &host, 100, 0);
    place = locate(gpu, host, 100);
    NEED(place.kind == DT_GPU_PINNED && place.device == -1 && !place.base,
         "pinned");
    USER(cuMemHostRegister_v2, own, 4 * KIB, 0);
    NEED(locate(gpu, own, 4 * KIB).kind == DT_GPU_PINNED, "registered");
    NEED(locate(gpu, own, 8 * KIB).kind == DT_GPU_HOST, "half of it");
    USER(cuMemHostUnregister, own);
    NEED(locate(gpu, own, 1).kind == DT_GPU_HOST, "no more");
    NEED(locate(gpu, NULL, 1).kind == DT_GPU_HOST, "NULL");
    free(own);
    dt_gpu_unload(gpu);
}

/* As PyTorch's expandable segments. */
static void case_mappings(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_place place;
    use_device(0);
    char *p = (char *)(uintptr_t)CU(dt_mock_mappings)(0, 3, 2 * MIB);
    place = locate(gpu, p + MIB, 4 * MIB);
    NEED(place.kind == DT_GPU_MEMORY && place.base == p &&
             place.size == 6 * MIB,
         "%zu", place.size);
    FAILS(gpu->ops->locate(gpu, p + MIB, 6 * MIB, &place, &err),
          DT_ERR_INVALID_ARG, "leave");
    dt_gpu_unload(gpu);
}

static void case_locate_late(void)
{
    struct dt_gpu *gpu = open_mock();
    use_device(0);
    NEED(locate(gpu, alloc(9), 9).kind == DT_GPU_HOST, "a process that ends");
    dt_gpu_unload(gpu);
}

static void case_fork(void)
{
    struct dt_gpu *gpu = open_mock();
    int status = -1;
    void *ptr;
    use_device(0);
    char *p = alloc(10);
    NEED(locate(gpu, p, 1).kind == DT_GPU_MEMORY, "the parent");
    pid_t pid = fork();
    if (pid == 0) {
        NEED(locate(gpu, p, 1).kind == DT_GPU_HOST, "the child");
        FAILS(gpu->ops->host_alloc(gpu, 0, 10, &ptr, &err), DT_ERR_SYSTEM,
              "fork");
        dt_gpu_unload(gpu);
        exit(0);
    }
    waitpid(pid, &status, 0);
    NEED(status == 0, "the child");
    dt_gpu_unload(gpu);
}

/* ---- memory that is given out ---- */

static bool all_zero(const char *p, size_t n)
{
    return n == 0 || (!*p && !memcmp(p, p + 1, n - 1));
}

static void case_alloc(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle;
    void *host, *shared, *none = &none;
    SUCCEEDS(gpu->ops->host_alloc(gpu, 1, 5000, &host, &err));
    NEED(all_zero(host, 5000), "zeroed");
    NEED(locate(gpu, host, 5000).kind == DT_GPU_PINNED, "pinned");
    SUCCEEDS(gpu->ops->share_alloc(gpu, 1, 5000, &shared, &handle, &err));
    NEED(all_zero(shared, 5000), "zeroed");
    NEED(locate(gpu, shared, 5000).device == 1, "device 1");
    NEED(locate(gpu, shared, 1).size == 2 * MIB, "with nobody else's");
    FAILS(gpu->ops->share_free(gpu, host, &err), DT_ERR_INVALID_ARG, "ours");
    SUCCEEDS(gpu->ops->share_free(gpu, shared, &err));
    SUCCEEDS(gpu->ops->share_free(gpu, NULL, &err));
    FAILS(gpu->ops->share_free(gpu, shared, &err), DT_ERR_INVALID_ARG, "ours");
    gpu->ops->host_free(gpu, host);
    gpu->ops->host_free(gpu, host);
    gpu->ops->host_free(gpu, NULL);
    NEED(CU(dt_mock_calls)("cuMemFreeHost") == 1, "once");
    FAILS(gpu->ops->host_alloc(gpu, 2, 10, &none, &err), DT_ERR_INVALID_ARG,
          "device 2");
    FAILS(gpu->ops->share_alloc(gpu, 0, SIZE_MAX, &none, &handle, &err),
          DT_ERR_INVALID_ARG, "share");
    FAILS(gpu->ops->share_alloc(gpu, 0, (size_t)1 << 40, &none, &handle, &err),
          DT_ERR_NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY (2)");
    NEED(none == &none, "untouched");
    dt_gpu_unload(gpu);
}

/* What is not given back goes with close, and the contexts. */
static void case_close(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle;
    dt_stream_t stream;
    void *ptr;
    int (*calls)(const char *) = CU(dt_mock_calls);
    for (int device = 0; device < 2; device++) {
        SUCCEEDS(gpu->ops->share_alloc(gpu, device, 9, &ptr, &handle, &err));
        SUCCEEDS(gpu->ops->host_alloc(gpu, device, 9, &ptr, &err));
        SUCCEEDS(gpu->ops->stream_create(gpu, device, &stream, &err));
        SUCCEEDS(gpu->ops->order(gpu, device, NULL, stream, &err));
    }
    dt_gpu_unload(gpu);
    NEED(calls("cuDevicePrimaryCtxRetain") == 2, "two");
    NEED(calls("cuDevicePrimaryCtxRelease_v2") == 2, "released");
    NEED(calls("cuMemFree_v2") == 2 && calls("cuMemFreeHost") == 2, "memory");
    NEED(calls("cuStreamDestroy_v2") == 4, "streams, and those that zero");
    NEED(calls("cuEventDestroy_v2") == calls("cuEventCreate"), "events");
    NEED(calls("cuCtxPopCurrent_v2") == calls("cuCtxPushCurrent_v2"), "popped");
}

/* An allocation that fails half way leaves nothing behind. */
static void case_half(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle;
    void *ptr = &handle;
    FAILS(gpu->ops->share_alloc(gpu, 0, 9, &ptr, &handle, &err),
          DT_ERR_UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED (801)");
    NEED(ptr == &handle, "untouched");
    NEED(CU(dt_mock_calls)("cuMemFree_v2") == 1, "freed");
    dt_gpu_unload(gpu);
}

/* ---- between processes ---- */

/* Two processes and what they say to each other; the driver is started in
 * each, after the fork. */
static int talk;
static bool exporter;

static void fork_pair(void)
{
    int ends[2];
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "%m");
    pid_t pid = fork();
    exporter = pid != 0;
    talk = ends[exporter];
    close(ends[!exporter]);
    alarm(300);
}

static void say(const void *what, size_t len)
{
    NEED(write(talk, what, len) == (ssize_t)len, "say: %m");
}

static void hear(void *what, size_t len)
{
    NEED(read(talk, what, len) == (ssize_t)len, "the other is gone");
}

static void export_to_other(struct dt_gpu *gpu)
{
    struct dt_gpu_handle handle;
    void *ptr, *none;
    char word[8];
    int status = -1;
    SUCCEEDS(gpu->ops->share_alloc(gpu, 0, 3 * MIB, &ptr, &handle, &err));
    FAILS(gpu->ops->import(gpu, 0, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "another process's");
    say(&handle, sizeof(handle));
    hear(word, sizeof(word));
    NEED(memcmp((char *)ptr + 3 * MIB - 8, "imported", 8) == 0, "is written");
    SUCCEEDS(gpu->ops->share_free(gpu, ptr, &err));
    say(word, sizeof(word));
    wait(&status);
    NEED(status == 0, "the importer");
}

static void import_from_other(struct dt_gpu *gpu)
{
    struct dt_gpu_handle handle;
    struct dt_gpu_place place;
    void *ptr = NULL, *host, *none = &none;
    char word[8] = "";
    hear(&handle, sizeof(handle));
    SUCCEEDS(gpu->ops->import(gpu, 0, &handle, &ptr, &err));
    NEED(all_zero(ptr, MIB), "zeroed");
    place = locate(gpu, ptr, 3 * MIB);
    NEED(place.kind == DT_GPU_MEMORY && place.device == 0, "a device's");
    SUCCEEDS(gpu->ops->host_alloc(gpu, 0, 8, &host, &err));
    memcpy(host, "imported", 8);
    const struct dt_gpu_copy copy = {
        .dst = (char *)ptr + 3 * MIB - 8, .src = host, .len = 8, .rows = 1};
    SUCCEEDS(gpu->ops->copy(gpu, 0, &copy, NULL, &err));
    SUCCEEDS(gpu->ops->finish(gpu, 0, NULL, &err));
    FAILS(gpu->ops->import(gpu, 1, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "PEER_ACCESS_UNSUPPORTED (217)");
    gpu->ops->release(gpu, ptr);
    gpu->ops->release(gpu, ptr);
    NEED(locate(gpu, ptr, 1).kind == DT_GPU_HOST, "released");
    say(word, sizeof(word));
    hear(word, sizeof(word));
    FAILS(gpu->ops->import(gpu, 0, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "another process's");
    memset(&handle, 0xff, sizeof(handle));
    FAILS(gpu->ops->import(gpu, 0, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "another process's");
    NEED(none == &none, "untouched");
}

static void case_share(void)
{
    fork_pair();
    struct dt_gpu *gpu = open_mock();
    if (exporter)
        export_to_other(gpu);
    else
        import_from_other(gpu);
    dt_gpu_unload(gpu);
    close(talk);
}

int main(int argc, char **argv)
{
    (void)argv;
    unsetenv("DT_GPUS");
    if (argc > 1) { /* see case_beside */
        setenv("DT_GPUS", "0", 1);
        struct dt_gpu *gpu = NULL;
        FAILS(dt_gpu_load(&gpu, &err), DT_ERR_UNSUPPORTED, "another version");
        return 0;
    }
    if (access("/dev/nvidiactl", F_OK))
        run_case("no sign of a GPU", case_no_sign, "");
    run_case("no driver", case_no_driver, "DT_GPUS=0,1");
    run_case("no module", case_no_module, "DT_GPUS=0");
    run_case("a module of another version", case_other_module, "DT_GPUS=0");
    run_case("the module beside", case_beside, "");
    run_case("too old a driver", case_old_driver, "DT_MOCK_VERSION=11040");
    run_case("a driver that lacks functions", case_lacking_driver, "");
    run_case("the toolkit's stub", case_stub,
             "DT_MOCK_FAIL=cuInit=34,cuDriverGetVersion=34,cuGetErrorName=34");
    run_case("no device", case_no_device, "DT_MOCK_GPUS=0");
    run_case("a driver that does not start", case_no_start,
             "DT_MOCK_FAIL=cuInit=101");
    run_case("the driver is not started early", case_lazy, "");
    run_case("devices", case_devices, "DT_MOCK_GPUS=3 DT_MOCK_NO_PEER=0-1");
    run_case("where memory is", case_locate, "");
    run_case("memory mapped piece by piece", case_mappings, "");
    run_case("where memory is, in a process that ends", case_locate_late,
             "DT_MOCK_FAIL=cuPointerGetAttributes=4");
    run_case("a fork after the start", case_fork, "");
    run_case("memory given out", case_alloc, "");
    run_case("close gives back", case_close, "");
    run_case("an allocation fails half way", case_half,
             "DT_MOCK_FAIL=cuIpcGetMemHandle=801");
    run_case("memory shared by processes", case_share, "DT_MOCK_NO_PEER=all");
    return tap_done();
}
