/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory.c - rules: the directories of checkpoints. */
#include <string.h>

#include "base/number.h"
#include "facts.h"

enum { LEAST_KIB = 1 << 20 }; /* less is full */

/* The file system of path, or of its first parent that exists, by df: a process
 * that hangs in a dead file system is another one. Sets what df returned. */
static const char *ask_df(struct doctor *doctor, const char *path, int *rc,
                          bool *late)
{
    const char *out = "";
    for (int deep = 0; deep < 64; deep++) {
        const char *argv[] = {"df", "-k", "--output=avail", "--", path, NULL};
        *rc = fact_run(doctor, argv, true, &out, late);
        const char *slash = strrchr(path, '/');
        if (*rc <= 0 || !strstr(out, "No such file") || !slash ||
            !strcmp(path, "/"))
            break;
        path = slash == path ? "/"
                             : text(doctor, "%.*s", (int)(slash - path), path);
    }
    return out;
}

typedef void check_one(struct doctor *doctor, const char *name,
                       const char *path);

static void each_directory(struct doctor *doctor, check_one *check)
{
    static const char *const names[] = {"DT_CKPT", "DT_CKPT_FLUSH"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *path = fact_variable(names[i]);
        if (path)
            check(doctor, names[i], path);
    }
}

static void check_full(struct doctor *doctor, const char *name,
                       const char *path)
{
    int rc;
    bool late;
    uint64_t kib;
    const char *out = ask_df(doctor, path, &rc, &late);
    if (rc != 0) {
        if (!late)
            unseen(doctor, "%s: %s", name, fact_last_line(doctor, out));
        return;
    }
    const char *line = fact_last_line(doctor, out);
    line += strspn(line, " ");
    if (!dt_number_scan(&line, 10, UINT64_MAX, &kib) || kib >= LEAST_KIB)
        return;
    found(doctor,
          text(doctor, "%s=%s: its file system has %llu MiB free", name, path,
               (unsigned long long)kib / 1024),
          "the next checkpoint does not fit, and the job loses its work since "
          "the last one",
          "dt-ckpt prune --keep 2 DIRECTORY, or another directory: srun "
          "--dt-ckpt=DIRECTORY");
}

static void check_silent(struct doctor *doctor, const char *name,
                         const char *path)
{
    int rc;
    bool late;
    ask_df(doctor, path, &rc, &late);
    if (!late)
        return;
    found(doctor,
          text(doctor, "%s=%s: df did not answer in %d seconds", name, path,
               COMMAND_SECONDS),
          "its file system does not answer: whoever saves or loads a "
          "checkpoint there hangs, and cannot be ended",
          "another directory: srun --dt-ckpt=DIRECTORY; the administrator: "
          "dmesg | grep -i 'not responding'");
}

void look_checkpoint_full(struct doctor *doctor)
{
    each_directory(doctor, check_full);
}

void look_checkpoint_silent(struct doctor *doctor)
{
    each_directory(doctor, check_silent);
}
