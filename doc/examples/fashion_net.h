/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_net.h - a perceptron with one hidden layer on OpenBLAS: ReLU,
 * softmax, cross entropy, all in f32.
 *
 * Parameters lie in one flat array, and so do gradients in the same layout:
 * one array is one allreduce. */
#ifndef FASHION_NET_H
#define FASHION_NET_H

#include <stddef.h>
#include <stdint.h>

struct net {
    size_t ninputs, nhidden, nclasses, max_batch;
    size_t nparams;
    float *params;  /* w1[nhidden][ninputs] b1 w2[nclasses][nhidden] b2 */
    float *hidden;  /* work: [max_batch][nhidden] */
    float *dhidden; /* work: its gradient */
    float *logits;  /* work: [max_batch][nclasses] */

    /* Unless NULL: called by net_gradient when the gradient of this tensor is
     * complete, while others are not. */
    void (*computed)(void *arg, size_t tensor);
    void *computed_arg;
};

/* He's initialisation (He, Zhang, Ren, Sun 2015) from seed; parameters do
 * not depend on anything else. Returns 0, or -1 without memory. */
int net_create(struct net *net, size_t ninputs, size_t nhidden, size_t nclasses,
               size_t max_batch, uint64_t seed);
void net_destroy(struct net *net);

/* One of the four tensors of a flat array in the layout of params. */
struct net_tensor {
    const char *name;
    float *data;
    int ndim;
    int64_t shape[2];
};
#define NET_TENSORS 4

/* Where the tensors of flat[nparams] lie. */
void net_tensors(const struct net *net, float *flat,
                 struct net_tensor tensors[NET_TENSORS]);

/* The gradient of the summed loss over count samples (at most max_batch),
 * inputs[count][ninputs], written to grad[nparams]. Returns that loss. */
float net_gradient(struct net *net, const float *inputs, const uint8_t *labels,
                   size_t count, float *grad);

/* How many of count samples the net classifies correctly. */
size_t net_correct(struct net *net, const float *inputs, const uint8_t *labels,
                   size_t count);

#endif
