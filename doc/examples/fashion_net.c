/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_net.c - forward and backward of one hidden layer. Every matrix is
 * row-major, a row per sample or per unit. */
#include "fashion_net.h"

#include "fashion_random.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the four parameters lie in a flat array. */
struct layers {
    float *w1, *b1, *w2, *b2;
};

static struct layers layers(const struct net *net, float *flat)
{
    struct layers at = {.w1 = flat};
    at.b1 = at.w1 + net->nhidden * net->ninputs;
    at.w2 = at.b1 + net->nhidden;
    at.b2 = at.w2 + net->nclasses * net->nhidden;
    return at;
}

void net_tensors(const struct net *net, float *flat,
                 struct net_tensor tensors[NET_TENSORS])
{
    struct layers at = layers(net, flat);
    int64_t in = (int64_t)net->ninputs, hid = (int64_t)net->nhidden;
    int64_t out = (int64_t)net->nclasses;
    tensors[0] = (struct net_tensor){"hidden.weight", at.w1, 2, {hid, in}};
    tensors[1] = (struct net_tensor){"hidden.bias", at.b1, 1, {hid}};
    tensors[2] = (struct net_tensor){"output.weight", at.w2, 2, {out, hid}};
    tensors[3] = (struct net_tensor){"output.bias", at.b2, 1, {out}};
}

/* C[m][n] = A * B + beta * C, where A is [m][k], or [k][m] when transposed,
 * and B is [k][n], or [n][k] when transposed. */
static void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, size_t m, size_t n,
                 size_t k, const float *a, const float *b, float beta, float *c)
{
    blasint lda = (blasint)(ta == CblasTrans ? m : k);
    blasint ldb = (blasint)(tb == CblasTrans ? k : n);
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1, a,
                lda, b, ldb, beta, c, (blasint)n);
}

int net_create(struct net *net, size_t ninputs, size_t nhidden, size_t nclasses,
               size_t max_batch, uint64_t seed)
{
    struct net n = {.ninputs = ninputs,
                    .nhidden = nhidden,
                    .nclasses = nclasses,
                    .max_batch = max_batch};
    n.nparams = nhidden * (ninputs + 1) + nclasses * (nhidden + 1);
    n.params = calloc(n.nparams, sizeof(float));
    n.hidden = calloc(max_batch * nhidden, sizeof(float));
    n.dhidden = calloc(max_batch * nhidden, sizeof(float));
    n.logits = calloc(max_batch * nclasses, sizeof(float));
    if (!n.params || !n.hidden || !n.dhidden || !n.logits) {
        net_destroy(&n);
        return -1;
    }
    struct layers p = layers(&n, n.params);
    for (size_t i = 0; i < nhidden * ninputs; i++)
        p.w1[i] = random_unit(seed, 1, i) * sqrtf(6.0f / (float)ninputs);
    for (size_t i = 0; i < nclasses * nhidden; i++)
        p.w2[i] = random_unit(seed, 2, i) * sqrtf(6.0f / (float)nhidden);
    *net = n;
    return 0;
}

void net_destroy(struct net *net)
{
    free(net->params);
    free(net->hidden);
    free(net->dhidden);
    free(net->logits);
    *net = (struct net){0};
}

static void fill_rows(float *matrix, const float *row, size_t rows,
                      size_t width)
{
    for (size_t r = 0; r < rows; r++)
        memcpy(matrix + r * width, row, width * sizeof *row);
}

static void sum_rows(const float *matrix, size_t rows, size_t width, float *sum)
{
    memset(sum, 0, width * sizeof *sum);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < width; i++)
            sum[i] += matrix[r * width + i];
}

/* hidden = relu(inputs w1' + b1), logits = hidden w2' + b2 */
static void forward(struct net *net, const float *inputs, size_t count)
{
    struct layers p = layers(net, net->params);
    fill_rows(net->hidden, p.b1, count, net->nhidden);
    gemm(CblasNoTrans, CblasTrans, count, net->nhidden, net->ninputs, inputs,
         p.w1, 1, net->hidden);
    for (size_t i = 0; i < count * net->nhidden; i++)
        net->hidden[i] = net->hidden[i] > 0 ? net->hidden[i] : 0;
    fill_rows(net->logits, p.b2, count, net->nclasses);
    gemm(CblasNoTrans, CblasTrans, count, net->nclasses, net->nhidden,
         net->hidden, p.w2, 1, net->logits);
}

/* Turn one row of logits into the gradient of its cross entropy: softmax
 * minus one-hot. Returns the cross entropy. */
static float cross_entropy(float *logits, size_t nclasses, uint8_t label)
{
    float max = logits[0], sum = 0;
    for (size_t c = 1; c < nclasses; c++)
        max = fmaxf(max, logits[c]);
    float loss = max - logits[label];
    for (size_t c = 0; c < nclasses; c++)
        sum += logits[c] = expf(logits[c] - max);
    for (size_t c = 0; c < nclasses; c++)
        logits[c] /= sum;
    logits[label] -= 1;
    return loss + logf(sum);
}

static void computed(const struct net *net, size_t tensor)
{
    if (net->computed)
        net->computed(net->computed_arg, tensor);
}

float net_gradient(struct net *net, const float *inputs, const uint8_t *labels,
                   size_t count, float *grad)
{
    if (count == 0) {
        memset(grad, 0, net->nparams * sizeof *grad);
        for (size_t i = NET_TENSORS; i > 0; i--)
            computed(net, i - 1);
        return 0;
    }
    forward(net, inputs, count);
    float loss = 0, *dlogits = net->logits, *dhidden = net->dhidden;
    for (size_t s = 0; s < count; s++)
        loss += cross_entropy(dlogits + s * net->nclasses, net->nclasses,
                              labels[s]);

    struct layers p = layers(net, net->params), g = layers(net, grad);
    gemm(CblasTrans, CblasNoTrans, net->nclasses, net->nhidden, count, dlogits,
         net->hidden, 0, g.w2);
    computed(net, 2);
    sum_rows(dlogits, count, net->nclasses, g.b2);
    computed(net, 3);
    gemm(CblasNoTrans, CblasNoTrans, count, net->nhidden, net->nclasses,
         dlogits, p.w2, 0, dhidden);
    for (size_t i = 0; i < count * net->nhidden; i++)
        dhidden[i] = net->hidden[i] > 0 ? dhidden[i] : 0;
    gemm(CblasTrans, CblasNoTrans, net->nhidden, net->ninputs, count, dhidden,
         inputs, 0, g.w1);
    computed(net, 0);
    sum_rows(dhidden, count, net->nhidden, g.b1);
    computed(net, 1);
    return loss;
}

size_t net_correct(struct net *net, const float *inputs, const uint8_t *labels,
                   size_t count)
{
    size_t correct = 0;
    forward(net, inputs, count);
    for (size_t s = 0; s < count; s++) {
        const float *logits = net->logits + s * net->nclasses;
        size_t best = 0;
        for (size_t c = 1; c < net->nclasses; c++)
            if (logits[c] > logits[best])
                best = c;
        correct += best == labels[s];
    }
    return correct;
}
