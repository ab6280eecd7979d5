/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* models.c - the parameters of well-known models, one count on each line, in
 * the order in which backpropagation ends with them: the last layer first.
 *
 *   models resnet50 | vgg16 | bert-large | gpt2
 *
 * Shapes: He et al. 2015, "Deep Residual Learning"; Simonyan and Zisserman
 * 2014, "Very Deep Convolutional Networks"; Devlin et al. 2018, "BERT";
 * Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 1024 };

struct model {
    size_t counts[TENSORS], n, sum;
};

static void add(struct model *m, size_t count)
{
    if (m->n == TENSORS)
        abort();
    m->counts[m->n++] = count;
    m->sum += count;
}

static void linear(struct model *m, size_t in, size_t out)
{
    add(m, in * out);
    add(m, out);
}

/* weight and bias of a batch or layer norm */
static void norm(struct model *m, size_t width)
{
    add(m, width);
    add(m, width);
}

/* a convolution without a bias, and its batch norm */
static void convolution(struct model *m, size_t in, size_t out, size_t kernel)
{
    add(m, in * out * kernel * kernel);
    norm(m, out);
}

static void resnet50(struct model *m)
{
    static const size_t blocks[] = {3, 4, 6, 3};
    size_t in = 64;
    convolution(m, 3, 64, 7);
    for (size_t stage = 0; stage < 4; stage++) {
        size_t width = (size_t)64 << stage, out = 4 * width;
        for (size_t block = 0; block < blocks[stage]; block++) {
            convolution(m, in, width, 1);
            convolution(m, width, width, 3);
            convolution(m, width, out, 1);
            if (block == 0)
                convolution(m, in, out, 1);
            in = out;
        }
    }
    linear(m, in, 1000);
}

static void vgg16(struct model *m)
{
    static const size_t widths[] = {64,  64,  128, 128, 256, 256, 256,
                                    512, 512, 512, 512, 512, 512};
    size_t in = 3;
    for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
        linear(m, in * 9, widths[i]);
        in = widths[i];
    }
    linear(m, 512 * 7 * 7, 4096);
    linear(m, 4096, 4096);
    linear(m, 4096, 1000);
}

/* the encoder with its pooler */
static void bert_large(struct model *m)
{
    enum { WIDTH = 1024, LAYERS = 24, WORDS = 30522, POSITIONS = 512 };
    add(m, (size_t)WORDS * WIDTH);
    add(m, (size_t)POSITIONS * WIDTH);
    add(m, (size_t)2 * WIDTH);
    norm(m, WIDTH);
    for (size_t i = 0; i < LAYERS; i++) {
        for (size_t k = 0; k < 4; k++) /* query, key, value, output */
            linear(m, WIDTH, WIDTH);
        norm(m, WIDTH);
        linear(m, WIDTH, (size_t)4 * WIDTH);
        linear(m, (size_t)4 * WIDTH, WIDTH);
        norm(m, WIDTH);
    }
    linear(m, WIDTH, WIDTH);
}

static void gpt2(struct model *m)
{
    enum { WIDTH = 768, LAYERS = 12, WORDS = 50257, POSITIONS = 1024 };
    add(m, (size_t)WORDS * WIDTH);
    add(m, (size_t)POSITIONS * WIDTH);
    for (size_t i = 0; i < LAYERS; i++) {
        norm(m, WIDTH);
        linear(m, WIDTH, (size_t)3 * WIDTH);
        linear(m, WIDTH, WIDTH);
        norm(m, WIDTH);
        linear(m, WIDTH, (size_t)4 * WIDTH);
        linear(m, (size_t)4 * WIDTH, WIDTH);
    }
    norm(m, WIDTH);
}

/* tensors and parameters as their authors' code counts them */
static const struct {
    const char *name;
    void (*build)(struct model *m);
    size_t n, sum;
} models[] = {
    {"resnet50", resnet50, 161, 25557032},
    {"vgg16", vgg16, 32, 138357544},
    {"bert-large", bert_large, 391, 335141888},
    {"gpt2", gpt2, 148, 124439808},
};

int main(int argc, char **argv)
{
    static struct model m;
    size_t i = 0, known = sizeof(models) / sizeof(*models);
    while (i < known && (argc != 2 || strcmp(argv[1], models[i].name) != 0))
        i++;
    if (i == known) {
        fprintf(stderr, "usage: models resnet50|vgg16|bert-large|gpt2\n");
        return 64;
    }
    models[i].build(&m);
    if (m.n != models[i].n || m.sum != models[i].sum) {
        fprintf(stderr, "models: %s: %zu tensors, %zu parameters\n", argv[1],
                m.n, m.sum);
        return 1;
    }
    while (m.n > 0)
        printf("%zu\n", m.counts[--m.n]);
    return 0;
}
