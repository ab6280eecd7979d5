/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.c - tuning parameters: what is written is read; what is bad is refused
 * with its line; and they decide which algorithm is taken. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/algorithm/algorithm.h"
#include "../tap.h"

static char path[] = "/tmp/dt-tune-XXXXXX";

static dt_result_t read_bytes(const char *text, size_t len,
                              struct dt_tune *tune, struct dt_error *err)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(text, 1, len, file) != len || fclose(file))
        abort();
    err->text[0] = 0;
    return dt_tune_read(path, tune, err);
}

static void good(void)
{
    struct dt_tune tune = dt_tune_default, same = dt_tune_default;
    struct dt_error err;
    const char *text = "# a comment\n\n  net_byte=8e-9 # slow\r\n"
                       "gpu_node_allreduce = ipc 1M nccl\n"
                       "gpu_net_scatter = nccl\n"
                       "net_latency =\t5e-5";
    ok(read_bytes(text, strlen(text), &tune, &err) == DT_SUCCESS &&
           tune.net_byte == 8e-9 && tune.net_latency == 5e-5,
       "values are read: %s", err.text);
    ok(tune.task == dt_tune_default.task, "what is missing stays");
    FILE *file = fopen(path, "w");
    bool written = file && dt_tune_write(file, &tune, &err) == DT_SUCCESS;
    if (file)
        fclose(file);
    ok(written && dt_tune_read(path, &same, &err) == DT_SUCCESS &&
           !memcmp(&same, &tune, sizeof(tune)),
       "what is written is read back");
    ok(read_bytes("", 0, &tune, &err) == DT_SUCCESS, "a file may be empty");
    file = fopen("/dev/full", "w");
    ok(!file || (dt_tune_write(file, &tune, &err) == DT_ERR_IO && *err.text),
       "a full disk: %s", err.text);
    if (file)
        fclose(file);
}

static void bad(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"task = 1e-7\nspeed = 1\n", ":2: unknown parameter 'speed'"},
        {"task = nan", ":1: task is 'nan'"},
        {"task = inf", "expected seconds"},
        {"task = 0", "expected seconds"},
        {"task = -1", "expected seconds"},
        {"task = 1e-400", "expected seconds"},
        {"task = 1e400", "expected seconds"},
        {"task = 1e-7 s", "expected seconds"},
        {"task =", "task is ''"},
        {"task = 1,5", "task is '1,5'"},
        {"= 1", "unknown parameter ''"},
        {"task", "expected 'name = value'"},
        {"\n\n\033[31m=1", ":3: unknown parameter '?[31m'"},
        {"task = 1e-7\ntask = 1e-7\n", ":2: task is given twice"},
        {"gpu_node_bcast = ipc\ngpu_net_bcast = ipc\ngpu_node_bcast = nccl",
         ":3: gpu_node_bcast is given twice"},
        {"gpu_rack_bcast = ipc", ":1: unknown parameter 'gpu_rack_bcast'"},
        {"gpu_node_send = ipc", "or gpu_node_ or gpu_net_ and a collective"},
    };
    struct dt_error err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dt_tune tune = dt_tune_default;
        dt_result_t rc =
            read_bytes(cases[i].text, strlen(cases[i].text), &tune, &err);
        ok(rc == DT_ERR_INVALID_ARG && strstr(err.text, cases[i].says) &&
               !memcmp(&tune, &dt_tune_default, sizeof(tune)),
           "refused: %s", err.text);
    }
    struct dt_tune tune = dt_tune_default;
    char *long_text = calloc(1, 70000);
    memset(long_text, 'x', 69999);
    ok(read_bytes(long_text, 300, &tune, &err) == DT_ERR_INVALID_ARG,
       "refused: %s", err.text);
    ok(read_bytes(long_text, 69999, &tune, &err) == DT_ERR_INVALID_ARG,
       "refused: %s", err.text);
    ok(read_bytes("task\0=1", 7, &tune, &err) == DT_ERR_INVALID_ARG,
       "refused: %s", err.text);
    free(long_text);
    ok(dt_tune_read("/nonexistent/tune", &tune, &err) == DT_ERR_IO,
       "no file: %s", err.text);
    ok(dt_tune_read("/tmp", &tune, &err) == DT_ERR_IO, "a folder: %s",
       err.text);
}

static struct dt_tune_rule read_rule(const char *value, struct dt_error *err)
{
    char text[200];
    struct dt_tune tune = dt_tune_default;
    snprintf(text, sizeof(text), "gpu_net_alltoall = %s # so\n", value);
    if (read_bytes(text, strlen(text), &tune, err) != DT_SUCCESS)
        return (struct dt_tune_rule){0, -1, -1};
    return tune.gpu[DT_TUNE_NET][DT_COLL_ALLTOALL];
}

static void rules(void)
{
    static const struct {
        const char *value;
        struct dt_tune_rule rule;
    } cases[] = {
        {"ipc", {0, DT_TUNE_IPC, DT_TUNE_IPC}},
        {"staged", {0, DT_TUNE_STAGED, DT_TUNE_STAGED}},
        {"ipc 4096 nccl", {4096, DT_TUNE_IPC, DT_TUNE_NCCL}},
        {"nccl\t 64K  staged", {65536, DT_TUNE_NCCL, DT_TUNE_STAGED}},
        {"ipc 0 nccl", {0, DT_TUNE_IPC, DT_TUNE_NCCL}},
        {"ipc 3M nccl", {3 << 20, DT_TUNE_IPC, DT_TUNE_NCCL}},
        {"ipc 1T nccl", {UINT64_C(1) << 40, DT_TUNE_IPC, DT_TUNE_NCCL}},
        {"ipc 17179869183G nccl",
         {UINT64_C(17179869183) << 30, DT_TUNE_IPC, DT_TUNE_NCCL}},
        {"ipc 18446744073709551615 nccl",
         {UINT64_MAX, DT_TUNE_IPC, DT_TUNE_NCCL}},
    };
    static const char *const wrong[] = {
        "",
        "best",
        "IPC",
        "ipc nccl",
        "ipc 4096",
        "ipc 4096 best",
        "ipc 4096 nccl 8192 ipc",
        "ipc -1 nccl",
        "ipc 0x10 nccl",
        "ipc 1P nccl",
        "ipc 1Kx nccl",
        "ipc 1.5M nccl",
        "4096 nccl",
        "ipc 17179869184G nccl",
        "ipc 18446744073709551616 nccl",
        "ipc = nccl",
    };
    struct dt_error err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dt_tune_rule rule = read_rule(cases[i].value, &err);
        ok(rule.upto == cases[i].rule.upto &&
               rule.brief == cases[i].rule.brief &&
               rule.lengthy == cases[i].rule.lengthy,
           "a rule: '%s' %s", cases[i].value, err.text);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct dt_tune_rule rule = read_rule(wrong[i], &err);
        ok(rule.brief < 0 && strstr(err.text, ":1: gpu_net_alltoall is '") &&
               strstr(err.text, "expected ipc, nccl or staged, or "),
           "no rule: %s", err.text);
    }
}

/* The name of what is taken for count F32 on nodes * per ranks. */
static const char *taken(enum dt_coll coll, size_t nodes, size_t per,
                         size_t count)
{
    size_t node_of[4096];
    struct dt_layout layout;
    for (size_t r = 0; r < nodes * per; r++)
        node_of[r] = r / per;
    if (dt_layout_init(&layout, 0, nodes * per, node_of, NULL))
        abort();
    layout.piece_max = per > 1 ? 128 << 10 : 0;
    const struct dt_shape shape = {.coll = coll,
                                   .dtype = DT_DTYPE_F32,
                                   .count = count,
                                   .prescale = 1,
                                   .postscale = 1};
    const struct dt_plan plan = {
        .layout = &layout, .shape = &shape, .tune = &dt_tune_default};
    const char *name = dt_algorithm_name(&plan);
    dt_layout_fini(&layout);
    return name;
}

static void choices(void)
{
    static const struct {
        enum dt_coll coll;
        size_t nodes, per, count;
        const char *name;
    } cases[] = {
        {DT_COLL_ALLREDUCE, 1, 8, 1, "flat"},
        {DT_COLL_ALLREDUCE, 1, 8, 1 << 20, "shards"},
        {DT_COLL_ALLREDUCE, 4, 2, 1, "doubling"},
        {DT_COLL_ALLREDUCE, 64, 8, 16, "doubling"},
        {DT_COLL_ALLREDUCE, 4, 2, 16 << 20, "halving"},
        {DT_COLL_ALLREDUCE, 6, 2, 16 << 20, "ring"},
        {DT_COLL_ALLREDUCE, 3, 1, 16 << 20, "ring"},
        {DT_COLL_ALLREDUCE, 48, 8, 1 << 28, "ring"},
        {DT_COLL_ALLREDUCE, 500, 8, 1 << 20, "trees"},
        {DT_COLL_BCAST, 16, 4, 1, "binomial"},
        {DT_COLL_BCAST, 64, 4, 1 << 24, "trees"},
        {DT_COLL_BCAST, 3, 4, 1 << 24, "chain"},
        {DT_COLL_REDUCE, 16, 4, 1, "binomial"},
        {DT_COLL_REDUCE, 64, 4, 1 << 24, "trees"},
        {DT_COLL_ALLGATHER, 16, 4, 1, "bruck"},
        {DT_COLL_ALLGATHER, 16, 4, 1 << 18, "ring"},
        {DT_COLL_ALLTOALL, 16, 4, 1, "nodes"},
        {DT_COLL_ALLTOALL, 16, 4, 1 << 16, "pairwise"},
        {DT_COLL_GATHER, 16, 4, 1, "tree"},
        {DT_COLL_GATHER, 16, 4, 1 << 20, "direct"},
        {DT_COLL_SCATTER, 16, 4, 1, "tree"},
        {DT_COLL_SCATTER, 16, 4, 1 << 20, "direct"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *name =
            taken(cases[i].coll, cases[i].nodes, cases[i].per, cases[i].count);
        ok(!strcmp(name, cases[i].name),
           "collective %d of %zu elements on %zu x %zu: %s (expected %s)",
           (int)cases[i].coll, cases[i].count, cases[i].nodes, cases[i].per,
           name, cases[i].name);
    }
}

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    good();
    bad();
    rules();
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        good();
    choices();
    unlink(path);
    return tap_done();
}
