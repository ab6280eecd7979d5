/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_elastic.c - data-parallel training that goes on when ranks are lost:
 *
 *     srun -N2 --ntasks-per-node=2 --dt-gpus --dt-elastic=2 \
 *         PREFIX/libexec/slurm-dt/examples/fashion_elastic
 *     dt-run -n 4 --elastic 2 --respawn 3 .../fashion_elastic
 *
 * A commit after each step keeps weights, momentum and position in the memory
 * of every rank. When a rank is lost the others go on from the last commit, and
 * divide the samples that are left among themselves and the replacements, so
 * that each sample of an epoch counts once. Between dt_init and dt_elastic_run
 * there is no collective, as a replacement begins there, too.
 *
 * usage: fashion_elastic [EPOCHS [BATCH]] */
#include "fashion_data.h"
#include "fashion_net.h"
#include "fashion_sampler.h"
#include "fashion_weights.h"

#include <cblas.h>
#include <dt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LEARNING_RATE 0.01F
#define MOMENTUM      0.9F
#define HIDDEN        64
#define SEED          1

struct training {
    int64_t epochs;
    size_t batch; /* samples per rank and step */
    struct dataset set;
    struct net net;
    struct sampler sampler;
    float *momentum; /* [nparams] */
    float *grad;     /* [nparams] */
    float *inputs;   /* [batch][FASHION_PIXELS] */
    uint8_t *labels; /* [batch] */

    /* where the training is, committed with weights and momentum */
    struct {
        int64_t epoch, position, step;
        int64_t samples; /* that have counted so far */
    } at;
};

/* ---- one step ---- */

static void gather(struct training *t, size_t slot, size_t sample)
{
    const uint8_t *pixels = t->set.images + sample * FASHION_PIXELS;
    float *to = t->inputs + slot * FASHION_PIXELS;
    for (size_t i = 0; i < FASHION_PIXELS; i++)
        to[i] = ((float)pixels[i] / 255 - 0.2860F) / 0.3530F;
    t->labels[slot] = t->set.labels[sample];
}

static void descend(struct training *t, size_t total)
{
    for (size_t i = 0; i < t->net.nparams; i++) {
        t->momentum[i] = MOMENTUM * t->momentum[i] + t->grad[i] / (float)total;
        t->net.params[i] -= LEARNING_RATE * t->momentum[i];
    }
}

static dt_result_t step(struct training *t)
{
    struct share share =
        sampler_next(&t->sampler, t->batch, dt_rank(), dt_size());
    for (size_t i = 0; i < share.count; i++)
        gather(t, i, share.ids[i]);
    net_gradient(&t->net, t->inputs, t->labels, share.count, t->grad);
    dt_result_t rc =
        dt_allreduce(t->grad, t->grad, t->net.nparams, DT_DTYPE_F32, DT_OP_SUM,
                     dt_comm_world(), DT_STREAM_NONE);
    if (rc != DT_SUCCESS)
        return rc;
    descend(t, share.total);
    t->at.samples += (int64_t)share.total;
    t->at.position = (int64_t)t->sampler.position;
    t->at.step++;
    return DT_SUCCESS;
}

/* ---- the training, from wherever it is ---- */

static void next_epoch(struct training *t)
{
    t->at.epoch++;
    t->at.position = 0;
    if (dt_rank() == 0) {
        printf("epoch %lld of %lld, on %d ranks\n", (long long)t->at.epoch,
               (long long)t->epochs, dt_size());
        fflush(stdout);
    }
    sampler_seek(&t->sampler, t->at.epoch, 0);
}

/* Called again after each loss, by survivors and replacements. */
static dt_result_t train(dt_state_t state, void *arg)
{
    struct training *t = arg;
    dt_result_t rc = DT_SUCCESS;
    sampler_seek(&t->sampler, t->at.epoch, (size_t)t->at.position);
    while (rc == DT_SUCCESS && t->at.epoch < t->epochs) {
        rc = step(t);
        if (rc == DT_SUCCESS && t->sampler.position == t->sampler.nsamples)
            next_epoch(t);
        if (rc == DT_SUCCESS)
            rc = dt_state_commit(state);
    }
    return rc;
}

static dt_result_t make_state(struct training *t, dt_state_t *state)
{
    const size_t bytes = t->net.nparams * sizeof(float);
    dt_result_t rc = dt_state_create(state);
    if (rc == DT_SUCCESS)
        rc = dt_state_register(*state, "weights", t->net.params, bytes);
    if (rc == DT_SUCCESS)
        rc = dt_state_register(*state, "momentum", t->momentum, bytes);
    if (rc == DT_SUCCESS)
        rc = dt_state_register(*state, "at", &t->at, sizeof t->at);
    return rc;
}

static int run(struct training *t)
{
    dt_state_t state = NULL;
    dt_result_t rc = make_state(t, &state);
    if (rc == DT_SUCCESS)
        rc = dt_elastic_run(train, state, t);
    if (rc == DT_SUCCESS && dt_rank() == 0)
        printf("weights %016llx after %lld steps, %lld samples, on %d ranks\n",
               (unsigned long long)weights_digest(&t->net),
               (long long)t->at.step, (long long)t->at.samples, dt_size());
    else if (rc != DT_SUCCESS)
        fprintf(stderr, "fashion_elastic: %s: %s\n", dt_strerror(rc),
                dt_last_error());
    dt_state_destroy(state);
    if (rc == DT_ERR_PROC_FAILED) /* too few are left: try again with all */
        return DT_EXIT_REQUEUE;
    return rc == DT_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- start and end ---- */

static int prepare(struct training *t)
{
    char why[4608];
    if (dataset_load(&t->set, FASHION_DIR, "train", why, sizeof why)) {
        fprintf(stderr, "fashion_elastic: %s\n", why);
        return -1;
    }
    if (net_create(&t->net, FASHION_PIXELS, HIDDEN, FASHION_CLASSES, t->batch,
                   SEED) ||
        sampler_create(&t->sampler, t->set.count, SEED))
        return -1;
    t->momentum = calloc(t->net.nparams, sizeof(float));
    t->grad = calloc(t->net.nparams, sizeof(float));
    t->inputs = calloc(t->batch * FASHION_PIXELS, sizeof(float));
    t->labels = calloc(t->batch, 1);
    return t->momentum && t->grad && t->inputs && t->labels ? 0 : -1;
}

static void destroy(struct training *t)
{
    sampler_destroy(&t->sampler);
    net_destroy(&t->net);
    dataset_destroy(&t->set);
    free(t->momentum);
    free(t->grad);
    free(t->inputs);
    free(t->labels);
}

/* A whole number of at least 1, or 0. */
static int64_t number(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    return *text && !*end && n > 0 && n <= 1000000 ? n : 0;
}

int main(int argc, char **argv)
{
    struct training t = {.epochs = argc > 1 ? number(argv[1]) : 3,
                         .batch = (size_t)(argc > 2 ? number(argv[2]) : 64)};
    if (argc > 3 || !t.epochs || !t.batch) {
        fputs("usage: fashion_elastic [EPOCHS [BATCH]]\n", stderr);
        return 64;
    }
    openblas_set_num_threads(1); /* the same bits each time */
    if (dt_init() != DT_SUCCESS) {
        fprintf(stderr, "fashion_elastic: dt_init: %s\n", dt_last_error());
        return EXIT_FAILURE;
    }
    int status = prepare(&t) ? EXIT_FAILURE : run(&t);
    destroy(&t);
    if (!status && dt_finalize() != DT_SUCCESS) {
        fprintf(stderr, "fashion_elastic: dt_finalize: %s\n", dt_last_error());
        status = EXIT_FAILURE;
    }
    return status;
}
