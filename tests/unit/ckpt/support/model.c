/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* model.c - the tensors of checkpoints that a test makes itself. */
#include "model.h"

#include <string.h>

#include "ckpt/format/format.h"

const struct model_tensor model[MODEL_COUNT] = {
    {"a/cube", DT_MANIFEST_GLOBAL, false, false, DT_DTYPE_F32, 3, {7, 5, 9}},
    {"big", DT_MANIFEST_GLOBAL, false, false, DT_DTYPE_BF16, 2, {1201, 2003}},
    {"bytes", DT_MANIFEST_GLOBAL, false, false, DT_DTYPE_U8, 1, {4194305}},
    {"common", DT_MANIFEST_GLOBAL, true, false, DT_DTYPE_F64, 1, {31}},
    {"nothing", DT_MANIFEST_GLOBAL, false, false, DT_DTYPE_I32, 2, {3, 0}},
    {"one", DT_MANIFEST_GLOBAL, false, false, DT_DTYPE_I64, 0, {0}},
    {"own", DT_MANIFEST_OWN, false, false, DT_DTYPE_F16, 2, {3, 11}},
    {"wide", DT_MANIFEST_GLOBAL, false, true, DT_DTYPE_U8, 2, {400000, 9}},
};

bool model_has(const struct state *state, size_t i)
{
    return !state->empty && (!model[i].wide || state->wide) &&
           (model[i].kind != DT_MANIFEST_OWN || state->own);
}

/* ---- values ---- */

struct filling {
    unsigned salt;
    size_t width;
    unsigned char *part;
    bool compare, differs;
};

/* Bytes of the whole tensor's elements from..: to those of the part. */
static bool fill_run(size_t from, size_t to, size_t n, void *arg)
{
    struct filling *f = arg;
    for (size_t i = 0; i < n * f->width; i++) {
        size_t k = from * f->width + i;
        unsigned char value =
            (unsigned char)(f->salt + k * 13 + k / 251 + (k >> 16));
        if (f->compare)
            f->differs |= f->part[to * f->width + i] != value;
        else
            f->part[to * f->width + i] = value;
    }
    return true;
}

bool model_fill(const struct dt_tensor *type, const int64_t *at,
                const int64_t *extent, unsigned salt, void *data, bool compare)
{
    static const int64_t zeros[DT_TENSOR_DIMS_MAX];
    struct filling filling = {.salt = salt + (unsigned)type->name[0] * 5,
                              .width = dt_dtype_size(type->dtype),
                              .part = data,
                              .compare = compare};
    dt_slice_runs(&(struct dt_slice){type->ndim, zeros, type->shape},
                  &(struct dt_slice){type->ndim, at, extent}, fill_run,
                  &filling);
    return !filling.differs;
}

unsigned model_salt(const struct state *state, enum dt_manifest_kind kind,
                    bool replicated, int rank)
{
    bool own = kind != DT_MANIFEST_GLOBAL && !replicated;
    return state->salt * 17 + (own ? (unsigned)rank * 31 + 1 : 0);
}

/* ---- cutting ---- */

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Cut the tensor into boxes for the ranks first .. last: in two, again and
 * again. */
static void cut(uint64_t *seed, int ndim, const int64_t *at,
                const int64_t *extent, int first, int last, int64_t box[][2][3])
{
    int64_t a[3], b[3];
    if (first == last) {
        for (int d = 0; d < ndim; d++) {
            box[first][0][d] = at[d];
            box[first][1][d] = extent[d];
        }
        return;
    }
    memcpy(a, at, sizeof(a));
    memcpy(b, extent, sizeof(b));
    int middle = first + (int)(next(seed) % (uint64_t)(last - first));
    int d = ndim ? (int)(next(seed) % (uint64_t)ndim) : 0;
    int64_t here = ndim ? (int64_t)(next(seed) % (uint64_t)(extent[d] + 1)) : 0;
    b[d] = here;
    cut(seed, ndim, a, b, first, middle, box);
    a[d] = at[d] + here;
    b[d] = extent[d] - here;
    cut(seed, ndim, a, b, middle + 1, last, box);
}

void model_box(const struct state *state, size_t i, int size, int rank,
               int64_t *at, int64_t *extent)
{
    int64_t box[MODEL_RANKS][2][3] = {0};
    static const int64_t zeros[3];
    uint64_t seed = (uint64_t)state->seed * 1000 + i * 10 + (uint64_t)size;
    memcpy(extent, model[i].shape, sizeof(model[i].shape));
    memset(at, 0, 3 * sizeof(*at));
    if (model[i].replicated || model[i].kind == DT_MANIFEST_OWN ||
        model[i].ndim == 0)
        return;
    if (model[i].wide) { /* columns: very many runs */
        at[1] = rank * 9 / size;
        extent[1] = (rank + 1) * 9 / size - at[1];
        return;
    }
    cut(&seed, model[i].ndim, zeros, model[i].shape, 0, size - 1, box);
    memcpy(at, box[rank][0], 3 * sizeof(*at));
    memcpy(extent, box[rank][1], 3 * sizeof(*extent));
}
