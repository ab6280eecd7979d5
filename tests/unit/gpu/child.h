/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* child.h - cases on the mock driver, each in a process of its own: a
 * driver is started once, and reads its environment then. */
#ifndef GPU_CHILD_H
#define GPU_CHILD_H

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "mock.h"
#include "../tap.h"

/* In a child: explain, and end it. */
#define NEED(cond, ...)                                                        \
    do {                                                                       \
        if (!(cond)) {                                                         \
            diag("line %d: %s", __LINE__, #cond);                              \
            diag(__VA_ARGS__);                                                 \
            fflush(stdout);                                                    \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static struct dt_error err;
#define SUCCEEDS(call) NEED((call) == DT_SUCCESS, "%s", err.text)
/* The result, and what its line has. */
#define FAILS(call, code, part)                                                \
    do {                                                                       \
        dt_result_t fails_rc = (call);                                         \
        NEED(fails_rc == (code) && strstr(err.text, part), "%d: %s", fails_rc, \
             err.text);                                                        \
    } while (0)

/* path is below the build folder: of this test it is tests/unit/gpu. */
static void *preload(const char *path)
{
    char self[PATH_MAX] = "", full[2 * PATH_MAX];
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return NULL;
    *strrchr(self, '/') = '\0';
    snprintf(full, sizeof(full), "%s/../../../%s", self, path);
    return dlopen(full, RTLD_NOW | RTLD_LOCAL);
}

#define MOCK   "tests/mock/.libs/libcuda.so.1"
#define MODULE "lib/.libs/libdt_cuda.so"

/* What a user's program calls. */
static void *driver;
#define CU(name) ((__typeof__(&(name)))dlsym(driver, #name))
/* A call of it that succeeds. */
#define USER(name, ...) NEED(CU(name)(__VA_ARGS__) == 0, "the user's driver")

/* Load both; the mock is then what the loader finds. */
__attribute__((unused)) static struct dt_gpu *open_mock(void)
{
    struct dt_gpu *gpu = NULL;
    driver = preload(MOCK);
    NEED(driver && preload(MODULE), "%s", dlerror());
    SUCCEEDS(dt_gpu_load(&gpu, &err));
    NEED(gpu, "there is a driver");
    return gpu;
}

/* variables: "NAME=value" separated by blanks. */
__attribute__((unused)) static void
run_case(const char *name, void (*run)(void), const char *variables)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char copy[256], *rest = copy;
        snprintf(copy, sizeof(copy), "%s", variables);
        for (char *v; (v = strsep(&rest, " ")) && *v;) {
            char *equal = strchr(v, '=');
            *equal = '\0';
            setenv(v, equal + 1, 1);
        }
        alarm(300);
        run();
        exit(0); /* with a look for leaks */
    }
    waitpid(pid, &status, 0);
    ok(status == 0, "%s", name);
}

#endif
