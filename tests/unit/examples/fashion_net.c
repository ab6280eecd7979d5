/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_net.c - the gradient is that of the loss. */
#include "fashion_net.h"
#include "fashion_random.h"
#include "../tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 6, HIDDEN = 5, OUT = 4, BATCH = 7 };

static float inputs[BATCH * IN];
static uint8_t labels[BATCH];

static void create(struct net *net, uint64_t seed)
{
    if (net_create(net, IN, HIDDEN, OUT, BATCH, seed))
        abort();
    for (size_t i = 0; i < BATCH * IN; i++)
        inputs[i] = random_unit(9, 9, i);
    for (size_t i = 0; i < BATCH; i++)
        labels[i] = (uint8_t)random_below(9, 8, i, OUT);
}

/* against (f(x + h) - f(x - h)) / 2h, parameter by parameter */
static void test_gradient(void)
{
    const float h = 1e-2f;
    struct net net;
    create(&net, 3);
    float *grad = calloc(net.nparams, sizeof *grad);
    float *scratch = calloc(net.nparams, sizeof *scratch);
    if (!grad || !scratch)
        abort();
    net_gradient(&net, inputs, labels, BATCH, grad);
    double worst = 0;
    for (size_t i = 0; i < net.nparams; i++) {
        float keep = net.params[i];
        net.params[i] = keep + h;
        double up = net_gradient(&net, inputs, labels, BATCH, scratch);
        net.params[i] = keep - h;
        double down = net_gradient(&net, inputs, labels, BATCH, scratch);
        net.params[i] = keep;
        worst = fmax(worst, fabs((up - down) / (2 * h) - grad[i]));
    }
    ok(worst < 0.02, "%zu gradients are the slopes of the loss (%.1e)",
       net.nparams, worst);
    free(grad);
    free(scratch);
    net_destroy(&net);
}

static void test_shares(void)
{
    struct net net;
    create(&net, 3);
    size_t n = net.nparams;
    float *parts = calloc(3 * n, sizeof *parts), *b = parts + n, *all = b + n;
    if (!parts)
        abort();
    float loss = net_gradient(&net, inputs, labels, 3, parts);
    loss += net_gradient(&net, inputs + 3 * IN, labels + 3, BATCH - 3, b);
    float whole = net_gradient(&net, inputs, labels, BATCH, all);
    double worst = fabsf(loss - whole);
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabsf(parts[i] + b[i] - all[i]));
    ok(worst < 1e-4, "the gradients of two shares add up (%.1e)", worst);

    parts[0] = 1;
    ok(net_gradient(&net, inputs, labels, 0, parts) == 0 && parts[0] == 0 &&
           !memcmp(parts, parts + 1, (n - 1) * sizeof *parts),
       "no sample, no gradient");
    free(parts);
    net_destroy(&net);
}

static void test_init(void)
{
    struct net a, b;
    struct net_tensor t[NET_TENSORS];
    create(&a, 3);
    create(&b, 3);
    ok(!memcmp(a.params, b.params, a.nparams * sizeof *a.params),
       "the same seed, the same weights");
    net_destroy(&b);
    create(&b, 4);
    ok(memcmp(a.params, b.params, a.nparams * sizeof *a.params),
       "another seed, other weights");
    net_tensors(&a, a.params, t);
    size_t elements = 0;
    for (size_t i = 0; i < NET_TENSORS; i++) {
        elements +=
            (size_t)(t[i].shape[0] * (t[i].ndim > 1 ? t[i].shape[1] : 1));
        if (i + 1 < NET_TENSORS)
            ok(t[i + 1].data == a.params + elements, "%s follows %s",
               t[i + 1].name, t[i].name);
    }
    ok(elements == a.nparams, "the tensors are all of the parameters");
    net_destroy(&a);
    net_destroy(&b);
}

static void test_learning(void)
{
    struct net net;
    create(&net, 3);
    float *grad = calloc(net.nparams, sizeof *grad);
    if (!grad)
        abort();
    for (int step = 0; step < 2000; step++) {
        net_gradient(&net, inputs, labels, BATCH, grad);
        for (size_t i = 0; i < net.nparams; i++)
            net.params[i] -= 0.05f * grad[i];
    }
    ok(net_correct(&net, inputs, labels, BATCH) == BATCH,
       "it learns seven samples by heart");
    free(grad);
    net_destroy(&net);
}

int main(void)
{
    test_gradient();
    test_shares();
    test_init();
    test_learning();
    return tap_done();
}
