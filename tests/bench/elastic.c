/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* elastic.c - a training that loses a rank: `elastic FILE`. The rank that the
 * launcher started as 1 writes the time into FILE and kills itself, once. The
 * state is 8 MB, the gradient 4 MB. Rank 0 prints the milliseconds from the
 * kill to the end of the first training step after it. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "clock.h"

enum { WEIGHTS = 1000000, STEPS = 30, LOST = 10 };

static struct {
    const char *file;
    int64_t step;
    float weights[WEIGHTS], momentum[WEIGHTS];
} t;

static void kill_once(void)
{
    const char *number = getenv("PMIX_RANK");
    int fd = number && !strcmp(number, "1") && t.step == LOST
                 ? open(t.file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)
                 : -1;
    if (fd < 0)
        return;
    double at = now();
    if (write(fd, &at, sizeof(at)) == sizeof(at))
        raise(SIGKILL);
}

static void print_time(double end)
{
    double at = 0;
    FILE *file = fopen(t.file, "re");
    if (file && fread(&at, sizeof(at), 1, file) == 1 && dt_rank() == 0)
        printf("%.3f\n", 1e3 * (end - at));
    if (file)
        fclose(file);
}

static dt_result_t train(dt_state_t state, void *arg)
{
    static float grad[WEIGHTS];
    const int64_t first = t.step;
    dt_result_t rc = DT_SUCCESS;
    (void)arg;
    while (rc == DT_SUCCESS && t.step < STEPS) {
        kill_once();
        for (int i = 0; i < WEIGHTS; i++)
            grad[i] = 1e-6f * t.weights[i] + 1;
        rc = dt_allreduce(grad, grad, WEIGHTS, DT_DTYPE_F32, DT_OP_AVG,
                          dt_comm_world(), DT_STREAM_NONE);
        for (int i = 0; rc == DT_SUCCESS && i < WEIGHTS; i++) {
            t.momentum[i] = 0.9f * t.momentum[i] + grad[i];
            t.weights[i] -= 1e-3f * t.momentum[i];
        }
        if (rc != DT_SUCCESS)
            return rc;
        if (t.step++ == first && first > 0)
            print_time(now());
        rc = dt_state_commit(state);
    }
    return rc;
}

int main(int argc, char **argv)
{
    dt_state_t state;
    if (argc != 2) {
        fputs("usage: elastic FILE\n", stderr);
        return 64;
    }
    t.file = argv[1];
    need(dt_init() == DT_SUCCESS, "dt_init");
    need(dt_state_create(&state) == DT_SUCCESS &&
             dt_state_register(state, "step", &t.step, sizeof(t.step)) ==
                 DT_SUCCESS &&
             dt_state_register(state, "weights", t.weights,
                               sizeof(t.weights)) == DT_SUCCESS &&
             dt_state_register(state, "momentum", t.momentum,
                               sizeof(t.momentum)) == DT_SUCCESS,
         "state");
    need(dt_elastic_run(train, state, NULL) == DT_SUCCESS, "training");
    dt_state_destroy(state);
    return dt_finalize() != DT_SUCCESS;
}
