/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.c - tuning parameters: what is written is read; what is bad is refused
 * with its line; and they decide which algorithm is taken. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/algorithm.h"
#include "tap.h"

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
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        good();
    choices();
    unlink(path);
    return tap_done();
}
