/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* share.c - memory of GPUs that processes share by descriptors,
 * and descriptor passing; on the mock driver. */
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "gpu/coll/fdpass.h"
#include "child.h"

#define MIB ((size_t)1 << 20)

static int descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    NEED(dir, "%m");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static bool all_zero(const char *p, size_t n)
{
    return !*p && !memcmp(p, p + 1, n - 1);
}

/* ---- memory ---- */

/* It is zeroed, where it should be, and goes without a trace. */
static void case_alloc(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle;
    struct dt_gpu_place place;
    void *ptr;
    int before = descriptors();
    SUCCEEDS(gpu->ops->share_alloc(gpu, 1, DT_GPU_SHARE_FD, 3 * MIB, &ptr,
                                   &handle, &err));
    NEED(handle.sharing == DT_GPU_SHARE_FD && handle.size == 4 * MIB, "handle");
    NEED(handle.fd >= 0, "descriptor %d", handle.fd);
    NEED(fcntl(handle.fd, F_GETFD) & FD_CLOEXEC, "close on exec");
    NEED(all_zero(ptr, 4 * MIB), "zeroed");
    SUCCEEDS(gpu->ops->locate(gpu, ptr, 4 * MIB, &place, &err));
    NEED(place.kind == DT_GPU_MEMORY && place.device == 1, "device 1");
    gpu->ops->release(gpu, ptr);
    NEED(CU(dt_mock_vmm_left)() == 3, "nobody else's to release");
    SUCCEEDS(gpu->ops->share_free(gpu, ptr, &err));
    FAILS(gpu->ops->share_free(gpu, ptr, &err), DT_ERR_INVALID_ARG, "ours");
    NEED(CU(dt_mock_vmm_left)() == 0, "%d", CU(dt_mock_vmm_left)());
    close(handle.fd);
    NEED(descriptors() == before, "descriptors");
    FAILS(gpu->ops->share_alloc(gpu, 0, DT_GPU_SHARE_FD, (size_t)1 << 40, &ptr,
                                &handle, &err),
          DT_ERR_NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY (2)");
    dt_gpu_unload(gpu);
}

/* What is on the device's streams is over before the memory goes. */
static void case_free_waits(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle;
    dt_stream_t stream;
    void *from, *to;
    SUCCEEDS(gpu->ops->stream_create(gpu, 0, &stream, &err));
    SUCCEEDS(gpu->ops->share_alloc(gpu, 0, DT_GPU_SHARE_FD, MIB, &from, &handle,
                                   &err));
    close(handle.fd);
    SUCCEEDS(gpu->ops->share_alloc(gpu, 0, DT_GPU_SHARE_FD, MIB, &to, &handle,
                                   &err));
    close(handle.fd);
    const struct dt_gpu_copy copy = {
        .dst = to, .src = from, .len = MIB, .rows = 1};
    SUCCEEDS(gpu->ops->copy(gpu, 0, &copy, stream, &err));
    SUCCEEDS(gpu->ops->share_free(gpu, from, &err));
    SUCCEEDS(gpu->ops->share_free(gpu, to, &err));
    dt_gpu_unload(gpu);
}

/* The function that DT_MOCK_FAIL names is refused, and nothing is left. */
static void refused(dt_result_t code, const char *words)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle;
    void *ptr = &handle;
    int before = descriptors();
    FAILS(gpu->ops->share_alloc(gpu, 0, DT_GPU_SHARE_FD, MIB, &ptr, &handle,
                                &err),
          code, words);
    NEED(ptr == &handle, "untouched");
    NEED(CU(dt_mock_vmm_left)() == 0, "%d", CU(dt_mock_vmm_left)());
    NEED(descriptors() == before, "descriptors");
    dt_gpu_unload(gpu);
}

static void case_refused(void)
{
    refused(DT_ERR_UNSUPPORTED,
            "by file descriptor: CUDA_ERROR_NOT_SUPPORTED (801)");
}

static void case_no_memory(void)
{
    refused(DT_ERR_NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY (2)");
}

/* The module works without the functions, but for these handles. */
static void case_old_driver(void)
{
    struct dt_gpu *gpu = NULL;
    struct dt_gpu_handle handle;
    void *ptr;
    NEED(preload("tests/mock/no-vmm/.libs/libcuda.so.1") && preload(MODULE),
         "%s", dlerror());
    SUCCEEDS(dt_gpu_load(&gpu, &err));
    FAILS(gpu->ops->share_alloc(gpu, 0, DT_GPU_SHARE_FD, MIB, &ptr, &handle,
                                &err),
          DT_ERR_UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED (801)");
    SUCCEEDS(gpu->ops->share_alloc(gpu, 0, DT_GPU_SHARE_IPC, MIB, &ptr, &handle,
                                   &err));
    NEED(handle.fd == -1 && handle.size == 2 * MIB, "handle");
    handle.sharing = DT_GPU_SHARE_FD;
    FAILS(gpu->ops->import(gpu, 0, &handle, &ptr, &err), DT_ERR_UNSUPPORTED,
          "by file descriptor: CUDA_ERROR_NOT_SUPPORTED (801)");
    dt_gpu_unload(gpu);
}

/* ---- between processes ---- */

/* The parent shows memory; the child, which the fork began before any driver
 * was started, imports it. They talk over this. */
static int talk;

static bool fork_pair(void)
{
    int ends[2];
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "%m");
    pid_t pid = fork();
    talk = ends[pid != 0];
    close(ends[pid == 0]);
    alarm(300);
    return pid != 0;
}

static void say(const void *what, size_t len)
{
    NEED(write(talk, what, len) == (ssize_t)len, "say: %m");
}

static void hear(void *what, size_t len)
{
    NEED(read(talk, what, len) == (ssize_t)len, "the other is gone");
}

static void show(enum dt_gpu_sharing sharing, const char *wanted)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle;
    struct dt_fdpass_address name;
    int status = -1;
    char word[8];
    void *ptr;
    SUCCEEDS(
        gpu->ops->share_alloc(gpu, 0, sharing, 3 * MIB, &ptr, &handle, &err));
    say(&handle, sizeof(handle));
    hear(&name, sizeof(name));
    if (sharing == DT_GPU_SHARE_FD) {
        SUCCEEDS(dt_fdpass_send(&name, 3, handle.fd, &err));
        close(handle.fd);
    }
    say(word, 1);
    hear(word, sizeof(word));
    NEED(memcmp((char *)ptr + 3 * MIB - 8, wanted, 8) == 0, "what is written");
    /* the other still has it: it stays until that one lets go, too */
    SUCCEEDS(gpu->ops->share_free(gpu, ptr, &err));
    say(word, 1);
    NEED(wait(&status) > 0 && status == 0, "the importer");
    NEED(CU(dt_mock_vmm_left)() == 0, "%d", CU(dt_mock_vmm_left)());
    dt_gpu_unload(gpu);
}

/* Its handle, with the descriptor that came through the listener. */
static struct dt_gpu_handle get_handle(void)
{
    struct dt_gpu_handle handle;
    struct dt_fdpass_address name;
    int listener, fds[5];
    char word;
    SUCCEEDS(dt_fdpass_open(&listener, &name, &err));
    hear(&handle, sizeof(handle));
    say(&name, sizeof(name));
    hear(&word, 1);
    dt_fdpass_receive(listener, fds, 5);
    close(listener);
    for (int i = 0; i < 5; i++)
        NEED(i == 3 ? (fds[i] >= 0) == (handle.sharing == DT_GPU_SHARE_FD)
                    : fds[i] == -1,
             "%d from %d", fds[i], i);
    handle.fd = fds[3];
    return handle;
}

static void import_it(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle = get_handle();
    void *ptr = NULL, *host, *none = &none;
    char word[8] = "";
    int before = descriptors();
    SUCCEEDS(gpu->ops->import(gpu, 0, &handle, &ptr, &err));
    NEED(all_zero(ptr, 3 * MIB), "zeroed");
    SUCCEEDS(gpu->ops->host_alloc(gpu, 0, 8, &host, &err));
    memcpy(host, "imported", 8);
    const struct dt_gpu_copy copy = {
        .dst = (char *)ptr + 3 * MIB - 8, .src = host, .len = 8, .rows = 1};
    SUCCEEDS(gpu->ops->copy(gpu, 0, &copy, NULL, &err));
    SUCCEEDS(gpu->ops->finish(gpu, 0, NULL, &err));
    int left = CU(dt_mock_vmm_left)();
    FAILS(gpu->ops->import(gpu, 1, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "another process's GPU memory into device 1");
    NEED(none == &none && CU(dt_mock_vmm_left)() == left, "nothing is left");
    say(word, sizeof(word));
    hear(word, 1);
    NEED(memcmp((char *)ptr + 3 * MIB - 8, "imported", 8) == 0, "still there");
    FAILS(gpu->ops->share_free(gpu, ptr, &err), DT_ERR_INVALID_ARG, "ours");
    gpu->ops->release(gpu, ptr);
    gpu->ops->release(gpu, ptr);
    NEED(CU(dt_mock_vmm_left)() == 0, "released");
    /* wrong handles */
    handle.size += 2 * MIB;
    FAILS(gpu->ops->import(gpu, 0, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "(1)");
    if (handle.fd >= 0)
        close(handle.fd);
    handle.size -= 2 * MIB;
    FAILS(gpu->ops->import(gpu, 0, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "(1)");
    handle.sharing = DT_GPU_SHARINGS;
    FAILS(gpu->ops->import(gpu, 0, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "not known here");
    NEED(CU(dt_mock_vmm_left)() == 0, "nothing is left");
    NEED(descriptors() == before - (handle.fd >= 0), "descriptors");
    dt_gpu_unload(gpu);
}

static void share(enum dt_gpu_sharing sharing)
{
    if (fork_pair())
        show(sharing, "imported");
    else
        import_it();
    close(talk);
}

static void case_share_fd(void)
{
    share(DT_GPU_SHARE_FD);
}

/* The second mapping, the importer's, is refused at each of its steps. */
static void import_nothing(void)
{
    struct dt_gpu *gpu = open_mock();
    struct dt_gpu_handle handle = get_handle(), own;
    void *mine, *none = &none;
    char word[8] = {0};
    SUCCEEDS(
        gpu->ops->share_alloc(gpu, 0, DT_GPU_SHARE_FD, MIB, &mine, &own, &err));
    int left = CU(dt_mock_vmm_left)(), before = descriptors();
    FAILS(gpu->ops->import(gpu, 0, &handle, &none, &err), DT_ERR_UNSUPPORTED,
          "by file descriptor: CUDA_ERROR_NOT_SUPPORTED (801)");
    NEED(none == &none && CU(dt_mock_vmm_left)() == left, "nothing is left");
    NEED(descriptors() == before, "descriptors");
    close(handle.fd);
    close(own.fd);
    say(word, sizeof(word));
    hear(word, 1);
    dt_gpu_unload(gpu);
}

static void case_import_refused(void)
{
    if (fork_pair())
        show(DT_GPU_SHARE_FD, "\0\0\0\0\0\0\0");
    else
        import_nothing();
    close(talk);
}

/* ---- the listener ---- */

/* A connection to a listener, as anyone may make. */
static int knock(const struct dt_fdpass_address *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int len = 1 + sprintf(at.sun_path + 1, "dt-gpu-");
    for (size_t i = 0; i < sizeof(name->bytes); i++)
        len += sprintf(at.sun_path + len, "%02x", name->bytes[i]);
    int made = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    NEED(connect(made, (void *)&at,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                             (size_t)len)) == 0,
         "%m");
    return made;
}

/* A message of len bytes with n descriptors. */
static void send_odd(int to, uint32_t from, size_t len, int n)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control = {.bytes = {0}};
    char bytes[8] = "";
    int fds[4] = {0, 0, 0, 0};
    struct iovec part = {bytes, len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memcpy(bytes, &from, sizeof(from));
    if (n) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, (size_t)n * sizeof(int));
    }
    NEED(sendmsg(to, &message, 0) == (ssize_t)len, "%m");
    close(to);
}

static void case_fdpass(void)
{
    struct dt_fdpass_address name, other;
    int listener, second, fds[3], ends[2];
    char word[2] = "";
    NEED(pipe(ends) == 0, "%m");
    int before = descriptors();
    SUCCEEDS(dt_fdpass_open(&listener, &name, &err));
    SUCCEEDS(dt_fdpass_open(&second, &other, &err));
    NEED(memcmp(&name, &other, sizeof(name)) != 0, "names");
    close(second);
    FAILS(dt_fdpass_send(&other, 0, 0, &err), DT_ERR_UNSUPPORTED,
          "another network namespace: Connection refused");
    dt_fdpass_receive(listener, fds, 3);
    NEED(fds[0] == -1 && fds[1] == -1 && fds[2] == -1, "nothing came");
    /* strangers of this user */
    int silent = knock(&name);
    close(knock(&name));
    send_odd(knock(&name), 0, 4, 0);
    send_odd(knock(&name), 0, 4, 2);
    send_odd(knock(&name), 0, 3, 1);
    send_odd(knock(&name), 3, 4, 1);
    send_odd(knock(&name), UINT32_MAX, 4, 1);
    SUCCEEDS(dt_fdpass_send(&name, 1, ends[1], &err));
    SUCCEEDS(dt_fdpass_send(&name, 1, 0, &err));
    SUCCEEDS(dt_fdpass_send(&name, 3, 0, &err));
    dt_fdpass_receive(listener, fds, 3);
    NEED(fds[0] == -1 && fds[1] >= 0 && fds[2] == -1, "%d %d %d", fds[0],
         fds[1], fds[2]);
    close(ends[1]);
    NEED(write(fds[1], "!", 1) == 1 && read(ends[0], word, 2) == 1 &&
             *word == '!',
         "the first one");
    NEED(fcntl(fds[1], F_GETFD) & FD_CLOEXEC, "close on exec");
    /* one that nobody takes goes with the listener */
    SUCCEEDS(dt_fdpass_send(&name, 2, fds[1], &err));
    close(fds[1]);
    close(silent);
    close(listener);
    NEED(read(ends[0], word, 2) == 0, "its last copy is closed");
    NEED(descriptors() == before - 1, "descriptors");
}

/* Another user, at either side. */
static void case_fdpass_users(void)
{
    struct dt_fdpass_address name;
    int listener, fds[1], status = -1;
    SUCCEEDS(dt_fdpass_open(&listener, &name, &err));
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        NEED(setuid(65534) == 0, "%m");
        FAILS(dt_fdpass_send(&name, 0, 0, &err), DT_ERR_UNSUPPORTED,
              "another user's");
        send_odd(knock(&name), 0, 4, 1);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    NEED(status == 0, "the other user");
    dt_fdpass_receive(listener, fds, 1);
    NEED(fds[0] == -1, "not let through");
    close(listener);
}

int main(void)
{
    static const char *const alloc[] = {
        "cuDeviceGetAttribute=801",
        "cuMemGetAllocationGranularity=801",
        "cuMemCreate=801",
        "cuMemAddressReserve=801",
        "cuMemMap=801",
        "cuMemSetAccess=801",
        "cuMemsetD8Async=801",
        "cuMemExportToShareableHandle=801",
    };
    static const char *const import[] = {
        "cuMemImportFromShareableHandle=801", "cuMemAddressReserve=801@2",
        "cuMemMap=801@2", "cuMemSetAccess=801@2"};
    char name[96], variables[96];
    setenv("DT_GPUS", "0", 1);
    run_case("memory given out", case_alloc, "");
    run_case("free waits for streams", case_free_waits,
             "DT_MOCK_DELAY=cuMemcpyAsync=100000");
    for (size_t i = 0; i < sizeof(alloc) / sizeof(alloc[0]); i++) {
        snprintf(name, sizeof(name), "nothing is left: %s", alloc[i]);
        snprintf(variables, sizeof(variables), "DT_MOCK_FAIL=%s", alloc[i]);
        run_case(name, case_refused, variables);
    }
    run_case("a device without", case_refused, "DT_MOCK_VMM=");
    run_case("a device without descriptors", case_refused, "DT_MOCK_VMM=none");
    run_case("no memory", case_no_memory, "DT_MOCK_FAIL=cuMemCreate=2");
    run_case("no addresses", case_no_memory,
             "DT_MOCK_FAIL=cuMemAddressReserve=2");
    run_case("a driver without", case_old_driver, "");
    run_case("shared by descriptor", case_share_fd, "DT_MOCK_NO_PEER=all");
    for (size_t i = 0; i < sizeof(import) / sizeof(import[0]); i++) {
        snprintf(name, sizeof(name), "nothing is imported: %s", import[i]);
        snprintf(variables, sizeof(variables), "DT_MOCK_FAIL=%s", import[i]);
        run_case(name, case_import_refused, variables);
    }
    run_case("descriptor passing", case_fdpass, "");
    if (geteuid() == 0)
        run_case("descriptor passing and another user", case_fdpass_users, "");
    return tap_done();
}
