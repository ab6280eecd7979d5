/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion.c - data-parallel training that survives preemption, from the
 * first line to the last:
 *
 *     srun -N2 --ntasks-per-node=2 --dt-gpus --dt-ckpt=ckpt \
 *         PREFIX/libexec/slurm-dt/examples/fashion
 *
 * Every rank has the whole network and its share of each batch. The gradients
 * are in one buffer, one allreduce sums them, and all ranks take the same step.
 * With --plan the gradient engine sums each as soon as it is computed.
 * The state of the training is weights, momentum, step, epoch and position; a
 * checkpoint keeps exactly that, and a requeued job continues with the next
 * sample, also on another number of ranks.
 *
 * The other files: fashion_data (the dataset), fashion_net (the network),
 * fashion_plan (the gradient engine), fashion_sampler (which rank takes which
 * sample), fashion_weights (the result), fashion_log, fashion_options. */
#include "fashion_data.h"
#include "fashion_log.h"
#include "fashion_net.h"
#include "fashion_options.h"
#include "fashion_plan.h"
#include "fashion_sampler.h"
#include "fashion_weights.h"

#include <cblas.h>
#include <dt.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* exit codes, beside 0, 1 and DT_EXIT_REQUEUE */
#define EXIT_USAGE   64
#define EXIT_NO_DATA 66

#define EVAL_BATCH 256

/* a node's name, in elements that an allgather takes */
#define NODE_WORDS 16
union node_name {
    char text[NODE_WORDS * sizeof(int32_t)];
    int32_t words[NODE_WORDS];
};

struct training {
    struct options opt;
    struct dataset train, test;
    struct net net;
    struct sampler sampler;
    struct plan plan;
    struct log log;
    dt_ckpt_t ckpt; /* NULL: no checkpoints are wanted */

    int64_t step;
    float *momentum;        /* [nparams] */
    float *grad;            /* [nparams + 1], the loss is the last one */
    float *inputs;          /* [net.max_batch][FASHION_PIXELS] */
    uint8_t *labels;        /* [net.max_batch] */
    union node_name *nodes; /* [world size] */
    double accuracy;        /* percent, of the last evaluation */

    /* what a checkpoint keeps beside the tensors */
    struct {
        int64_t epoch, position, seed;
    } saved;
    int64_t saved_step; /* the last one, or -1 */
};

static void complain(const char *call, dt_result_t rc)
{
    fprintf(stderr, "fashion: %s: %s: %s\n", call, dt_strerror(rc),
            dt_last_error());
}

/* A call of libdt failed, and so does this rank. An error of a checkpoint is
 * the same on all ranks, so only rank 0 prints it. Returns the exit code. */
static int failed(const char *call, dt_result_t rc)
{
    if (dt_rank() == 0 || rc <= DT_ERR_PROC_FAILED)
        fprintf(stderr, "fashion: rank %d: %s: %s: %s\n", dt_rank(), call,
                dt_strerror(rc), dt_last_error());
    return EXIT_FAILURE;
}

/* ---- start ---- */

/* Results repeat bit for bit only if OpenBLAS cuts the work in the same way
 * each time; and ranks that share a node should not all use all its cores. */
static void choose_blas_threads(void)
{
    if (!getenv("OPENBLAS_NUM_THREADS") && !getenv("OMP_NUM_THREADS"))
        openblas_set_num_threads(1);
}

/* Opens the file to append, so that its contents are kept. */
static bool writable(const char *path)
{
    FILE *file = fopen(path, "ae");
    return file && fclose(file) == 0;
}

/* Everything that can fail on one rank alone. Returns an exit code, with one
 * line in why if it is not 0. */
static int prepare(struct training *t, char *why, size_t size)
{
    const struct options *opt = &t->opt;
    size_t batch = opt->batch > EVAL_BATCH ? opt->batch : EVAL_BATCH;

    if (dataset_load(&t->train, opt->data, "train", why, size) ||
        dataset_load(&t->test, opt->data, "t10k", why, size))
        return EXIT_NO_DATA;
    if (log_open(&t->log, opt->metrics, dt_rank() == 0, opt->quiet,
                 dt_restart_count())) {
        snprintf(why, size, "%s: %s", opt->metrics, strerror(errno));
        return EXIT_FAILURE;
    }
    if (dt_rank() == 0 && opt->save_weights && !writable(opt->save_weights)) {
        snprintf(why, size, "%s: %s", opt->save_weights, strerror(errno));
        return EXIT_FAILURE;
    }
    snprintf(why, size, "not enough memory");
    if (net_create(&t->net, FASHION_PIXELS, opt->hidden, FASHION_CLASSES, batch,
                   opt->seed) ||
        sampler_create(&t->sampler, t->train.count, opt->seed))
        return EXIT_FAILURE;
    t->momentum = calloc(t->net.nparams, sizeof(float));
    t->grad = calloc(t->net.nparams + 1, sizeof(float));
    t->inputs = calloc(batch * FASHION_PIXELS, sizeof(float));
    t->labels = calloc(batch, 1);
    t->nodes = calloc((size_t)dt_size(), sizeof *t->nodes);
    if (!t->momentum || !t->grad || !t->inputs || !t->labels || !t->nodes)
        return EXIT_FAILURE;
    return 0;
}

/* All ranks continue, or all leave with the same exit code, because no rank
 * should wait for one that has no dataset. The lowest rank that failed prints
 * its reason. */
static int agree(int status, const char *why)
{
    int32_t first = status ? dt_rank() * 256 + status : INT32_MAX;
    dt_result_t rc = dt_allreduce(&first, &first, 1, DT_DTYPE_I32, DT_OP_MIN,
                                  dt_comm_world(), DT_STREAM_NONE);
    if (rc)
        return failed("dt_allreduce", rc);
    if (first == INT32_MAX)
        return 0;
    if (first / 256 == dt_rank())
        fprintf(stderr, "fashion: rank %d: %s\n", dt_rank(), why);
    return first % 256;
}

/* Log which rank runs on which node. */
static int log_ranks(struct training *t)
{
    union node_name mine = {0};
    const char *node = getenv("SLURMD_NODENAME");
    if (node)
        snprintf(mine.text, sizeof mine.text, "%s", node);
    else
        gethostname(mine.text, sizeof mine.text - 1);
    dt_result_t rc =
        dt_allgather(mine.words, t->nodes, NODE_WORDS, DT_DTYPE_I32,
                     dt_comm_world(), DT_STREAM_NONE);
    if (rc)
        return failed("dt_allgather", rc);
    int64_t epoch = t->sampler.epoch;
    log_event(&t->log, "start", epoch, t->step, dt_size(), "");
    for (int r = 0; r < dt_size(); r++)
        log_event(&t->log, "rank", epoch, t->step, r, t->nodes[r].text);
    return 0;
}

/* ---- checkpoints ---- */

static dt_result_t add_tensors(struct training *t, const char *prefix,
                               float *flat)
{
    struct net_tensor tensors[NET_TENSORS];
    dt_result_t rc = DT_SUCCESS;
    net_tensors(&t->net, flat, tensors);
    for (size_t i = 0; i < NET_TENSORS && !rc; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", prefix, tensors[i].name);
        rc = dt_ckpt_add_tensor(t->ckpt, name, tensors[i].data, DT_DTYPE_F32,
                                tensors[i].ndim, tensors[i].shape,
                                DT_CKPT_REPLICATED);
    }
    return rc;
}

static dt_result_t open_checkpoints(struct training *t)
{
    dt_result_t rc = dt_ckpt_open(t->opt.ckpt, -1, &t->ckpt);
    if (!rc)
        rc = add_tensors(t, "", t->net.params);
    if (!rc)
        rc = add_tensors(t, "momentum.", t->momentum);
    return rc;
}

/* Continue from the newest checkpoint. The training starts from the beginning
 * only if there is none at all. */
static int resume(struct training *t)
{
    size_t size = sizeof t->saved;
    t->saved_step = -1;
    if (!t->opt.ckpt && !getenv("DT_CKPT"))
        return 0;
    dt_result_t rc = open_checkpoints(t);
    if (rc)
        return failed("dt_ckpt_open", rc);
    rc = dt_ckpt_load(t->ckpt, &t->step);
    if (rc == DT_ERR_NOT_FOUND)
        return 0;
    if (!rc)
        rc = dt_ckpt_get_blob(t->ckpt, "sampler", &t->saved, &size);
    if (rc)
        return failed("dt_ckpt_load", rc);
    if (size != sizeof t->saved || t->saved.seed != (int64_t)t->opt.seed ||
        t->saved.epoch < 0 || t->saved.position < 0 ||
        t->saved.position > (int64_t)t->train.count) {
        if (dt_rank() == 0)
            fprintf(stderr,
                    "fashion: the checkpoint is of another training (seed "
                    "%lld); give --seed=%lld or another --ckpt\n",
                    (long long)t->saved.seed, (long long)t->saved.seed);
        return EXIT_FAILURE;
    }
    sampler_seek(&t->sampler, t->saved.epoch, (size_t)t->saved.position);
    t->saved_step = t->step;
    log_result(&t->log, "resumed at step %lld", (long long)t->step);
    return 0;
}

/* The last good checkpoint still exists, so a failed save does not end the
 * training. Returns an exit code. */
static int not_saved(struct training *t, dt_result_t rc)
{
    if (rc != DT_ERR_NO_SPACE && rc != DT_ERR_IO)
        return failed("dt_ckpt_save_async", rc);
    log_warn(&t->log, "a checkpoint before step %lld failed: %s: %s",
             (long long)t->step, dt_strerror(rc), dt_last_error());
    return 0;
}

/* Save the state of the training, which continues while libdt writes. Returns
 * an exit code. */
static int save(struct training *t)
{
    if (!t->ckpt || t->saved_step == t->step)
        return 0;
    t->saved.epoch = t->sampler.epoch;
    t->saved.position = (int64_t)t->sampler.position;
    t->saved.seed = (int64_t)t->opt.seed;
    dt_result_t rc = dt_ckpt_set_blob(t->ckpt, "sampler", &t->saved,
                                      sizeof t->saved, DT_CKPT_REPLICATED);
    if (!rc)
        rc = dt_ckpt_save_async(t->ckpt, t->step);
    if (rc)
        return not_saved(t, rc);
    t->saved_step = t->step;
    log_event(&t->log, "checkpoint", t->sampler.epoch, t->step, 0, "");
    return 0;
}

/* Wait until the checkpoint is on disk. Returns an exit code. */
static int save_done(struct training *t)
{
    dt_result_t rc = t->ckpt ? dt_ckpt_wait(t->ckpt) : DT_SUCCESS;
    if (!rc)
        return 0;
    t->saved_step = -1;
    return not_saved(t, rc);
}

/* ---- training ---- */

static void gather(struct training *t, const struct dataset *set, size_t slot,
                   size_t sample)
{
    const uint8_t *pixels = set->images + sample * FASHION_PIXELS;
    float *to = t->inputs + slot * FASHION_PIXELS;
    for (size_t i = 0; i < FASHION_PIXELS; i++) /* to mean 0, deviation 1 */
        to[i] = ((float)pixels[i] / 255 - 0.2860f) / 0.3530f;
    t->labels[slot] = set->labels[sample];
}

/* Linear scaling with a warm-up over the first epoch (Goyal et al. 2017),
 * then a cosine down to zero (Loshchilov, Hutter 2017). Counted in samples,
 * so the schedule does not depend on the number of ranks. */
static double learning_rate(const struct training *t)
{
    double n = (double)t->train.count;
    double epoch = (double)t->sampler.epoch + (double)t->sampler.position / n;
    double scale = 1 + (dt_size() - 1) * fmin(epoch, 1);
    return t->opt.lr * scale * (1 + cos(M_PI * epoch / (double)t->opt.epochs)) /
           2;
}

static void descend(struct training *t, double lr, size_t total)
{
    float rate = (float)lr, keep = (float)t->opt.momentum;
    float scale = 1 / (float)total;
    for (size_t i = 0; i < t->net.nparams; i++) {
        t->momentum[i] = keep * t->momentum[i] + scale * t->grad[i];
        t->net.params[i] -= rate * t->momentum[i];
    }
}

/* The sums over the ranks, in place. */
static int sum_gradients(struct training *t)
{
    if (t->plan.engine) {
        dt_result_t rc = plan_step(&t->plan);
        return rc ? failed("dt_grad_plan_step", rc) : 0;
    }
    dt_result_t rc =
        dt_allreduce(t->grad, t->grad, t->net.nparams + 1, DT_DTYPE_F32,
                     DT_OP_SUM, dt_comm_world(), DT_STREAM_NONE);
    return rc ? failed("dt_allreduce", rc) : 0;
}

/* One batch: the gradient of this rank's share, its sum, one step. */
static int train_step(struct training *t)
{
    double lr = learning_rate(t);
    struct share share =
        sampler_next(&t->sampler, t->opt.batch, dt_rank(), dt_size());
    for (size_t i = 0; i < share.count; i++)
        gather(t, &t->train, i, share.ids[i]);

    float *loss = &t->grad[t->net.nparams];
    *loss = net_gradient(&t->net, t->inputs, t->labels, share.count, t->grad);
    int status = sum_gradients(t);
    if (status)
        return status;
    if (!isfinite(*loss)) {
        if (dt_rank() == 0)
            fprintf(stderr,
                    "fashion: the loss is not finite at step %lld: give a "
                    "lower --lr\n",
                    (long long)t->step);
        return EXIT_FAILURE;
    }
    descend(t, lr, share.total);
    t->step++;
    log_step(&t->log, t->sampler.epoch, t->step, *loss, share.total);
    return 0;
}

/* Every rank tests its part of the test set. */
static int evaluate(struct training *t)
{
    size_t n = t->test.count, rank = (size_t)dt_rank();
    size_t size = (size_t)dt_size(), end = n * (rank + 1) / size;
    int64_t correct = 0;
    for (size_t at = n * rank / size; at < end;) {
        size_t count = 0;
        for (; count < EVAL_BATCH && at < end; count++)
            gather(t, &t->test, count, at++);
        correct += (int64_t)net_correct(&t->net, t->inputs, t->labels, count);
    }
    dt_result_t rc = dt_allreduce(&correct, &correct, 1, DT_DTYPE_I64,
                                  DT_OP_SUM, dt_comm_world(), DT_STREAM_NONE);
    if (rc)
        return failed("dt_allreduce", rc);
    t->accuracy = 100.0 * (double)correct / (double)n;
    return 0;
}

static int end_epoch(struct training *t)
{
    int status = evaluate(t);
    if (status)
        return status;
    int64_t epoch = t->sampler.epoch;
    log_event(&t->log, "accuracy", epoch, t->step, t->accuracy, "");
    log_progress(&t->log, "epoch %3lld  step %6lld  accuracy %.2f %%",
                 (long long)epoch + 1, (long long)t->step, t->accuracy);
    sampler_seek(&t->sampler, epoch + 1, 0);
    return 0;
}

/* The job was requested to leave: exit with the code that requeues it. */
static int leave(struct training *t)
{
    int status = save_done(t);
    if (status)
        return status;
    log_event(&t->log, "preempted", t->sampler.epoch, t->step, DT_EXIT_REQUEUE,
              "");
    log_result(&t->log, "preempted: %s at step %lld, exit %d",
               t->saved_step == t->step ? "checkpoint" : "not saved",
               (long long)t->step, DT_EXIT_REQUEUE);
    return DT_EXIT_REQUEUE;
}

/* Called after each step. */
static bool wants_checkpoint(struct training *t)
{
    if (!t->ckpt)
        return false;
    bool need = dt_ckpt_need(t->ckpt, t->step);
    if (t->opt.ckpt_every == 0)
        return need;
    return dt_should_exit() || t->step % t->opt.ckpt_every == 0;
}

static int train(struct training *t)
{
    while (t->sampler.epoch < t->opt.epochs) {
        int status = train_step(t);
        if (!status && t->sampler.position == t->sampler.nsamples)
            status = end_epoch(t);
        if (!status && t->sampler.epoch == t->opt.epochs)
            break;
        if (!status && wants_checkpoint(t))
            status = save(t);
        if (!status && dt_should_exit())
            status = leave(t);
        if (status)
            return status;
    }
    int status = save(t);
    return status ? status : save_done(t);
}

/* ---- the result ---- */

static int finish(struct training *t)
{
    int status = evaluate(t);
    if (status)
        return status;
    log_event(&t->log, "finished", t->sampler.epoch, t->step, t->accuracy, "");
    log_result(&t->log, "weights %016llx after %lld steps",
               (unsigned long long)weights_digest(&t->net), (long long)t->step);
    log_result(&t->log, "accuracy %.2f %%", t->accuracy);
    const char *path = t->opt.save_weights;
    if (dt_rank() == 0 && path && weights_write(&t->net, path)) {
        fprintf(stderr, "fashion: %s: %s\n", path, strerror(errno));
        status = EXIT_FAILURE;
    }
    return status;
}

/* The engine that sums the gradients, if one is wanted. */
static int open_plan(struct training *t)
{
    if (!t->opt.plan)
        return 0;
    dt_result_t rc = plan_open(&t->plan, &t->net, t->grad);
    return rc ? failed("dt_grad_open", rc) : 0;
}

static int run(struct training *t)
{
    char why[4608];
    choose_blas_threads();
    int status = agree(prepare(t, why, sizeof why), why);
    if (!status)
        status = resume(t);
    if (!status)
        status = log_ranks(t);
    if (!status)
        status = open_plan(t);
    if (!status)
        status = train(t);
    if (!status)
        status = finish(t);
    return status;
}

static void destroy(struct training *t)
{
    plan_close(&t->plan);
    dt_ckpt_close(t->ckpt);
    log_close(&t->log);
    sampler_destroy(&t->sampler);
    net_destroy(&t->net);
    dataset_destroy(&t->train);
    dataset_destroy(&t->test);
    free(t->momentum);
    free(t->grad);
    free(t->inputs);
    free(t->labels);
    free(t->nodes);
}

int main(int argc, char **argv)
{
    struct training t = {0};
    char why[4608];
    int status = 0;

    dt_should_exit(); /* from now on a SIGTERM is a notice, and not the end */
    dt_result_t rc = dt_init();
    if (rc) {
        complain("dt_init", rc);
        return EXIT_FAILURE;
    }
    if (options_parse(&t.opt, argc, argv, why, sizeof why)) {
        if (dt_rank() == 0)
            fprintf(stderr, "fashion: %s\n", why);
        status = EXIT_USAGE;
    } else if (t.opt.help) {
        if (dt_rank() == 0)
            options_help(stdout);
    } else {
        status = run(&t);
    }
    destroy(&t);
    rc = dt_finalize();
    if (rc && !status) {
        complain("dt_finalize", rc);
        status = EXIT_FAILURE;
    }
    return status;
}
