/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bucket.c - gradients that go in one allreduce.
 *
 * When a flag arrives, ranks may have launched up to a window of buckets behind
 * it. Each rank launches all of this window, with zeros where it had not, and
 * throws the results away; so all have launched the same, without a word. */
#include "grad/plan/bucket.h"

#include <stdlib.h>
#include <string.h>

#include "grad/convert.h"
#include "grad/plan/gpu_bucket.h"
#include "grad/plan/gradient.h"
#include "grad/plan/quantized.h"
#include "grad/item.h"
#include "grad/timeline.h"

#define WINDOW 4 /* buckets under way at a time */

/* ---- cutting ---- */

static size_t size_of(const struct dt_bucket *bucket)
{
    return dt_dtype_size((dt_dtype_t)bucket->wire);
}

static bool holds(const struct dt_bucket *bucket, const struct dt_gradient *g)
{
    return bucket->device == g->item.device &&
           bucket->wire == g->item.type.wire &&
           bucket->op == (uint8_t)dt_item_wire_op(&g->item.type);
}

static bool add(struct dt_bucket *bucket, struct dt_gradient *g)
{
    if ((bucket->n & (bucket->n - 1)) == 0) {
        size_t room = bucket->n ? 2 * (size_t)bucket->n : 1;
        void *more =
            realloc(bucket->gradients, room * sizeof(*bucket->gradients));
        if (!more)
            return false;
        bucket->gradients = more;
    }
    bucket->gradients[bucket->n++] = g;
    g->offset = bucket->elements * size_of(bucket);
    bucket->elements += g->count;
    return true;
}

static int by_last(const void *a, const void *b)
{
    return ((const struct dt_bucket *)a)->last -
           ((const struct dt_bucket *)b)->last;
}

/* Order the buckets as they become full. */
static void order_buckets(struct dt_grad_plan *plan)
{
    qsort(plan->buckets, (size_t)plan->nbuckets, sizeof(*plan->buckets),
          by_last);
    for (int b = 0; b < plan->nbuckets; b++)
        for (int i = 0; i < plan->buckets[b].n; i++)
            plan->buckets[b].gradients[i]->bucket = b;
}

/* One bucket is open for each type. */
static bool cut(struct dt_grad_plan *plan, struct dt_gradient **order, int n)
{
    const struct dt_grad_options *o = &plan->grad->options;
    bool *full = calloc((size_t)n + 1, sizeof(*full));
    if (!full)
        return false;
    for (int i = 0; i < n; i++) {
        int b = plan->nbuckets - 1;
        while (b >= 0 && (full[b] || !holds(&plan->buckets[b], order[i])))
            b--;
        if (b < 0) {
            b = plan->nbuckets++;
            plan->buckets[b].device = order[i]->item.device;
            plan->buckets[b].wire = order[i]->item.type.wire;
            plan->buckets[b].op =
                (uint8_t)dt_item_wire_op(&order[i]->item.type);
        }
        struct dt_bucket *bucket = &plan->buckets[b];
        if (!add(bucket, order[i])) {
            free(full);
            return false;
        }
        bucket->last = i;
        full[b] = bucket->elements * size_of(bucket) >=
                  (b ? o->bucket_bytes : o->first_bucket_bytes);
    }
    free(full);
    order_buckets(plan);
    return true;
}

/* Bytes of the elements and the flag. */
static size_t data_bytes(const struct dt_bucket *bucket)
{
    return (bucket->elements + 1) * size_of(bucket);
}

static size_t held(const struct dt_bucket *bucket)
{
    if (bucket->quantized)
        return dt_quantized_held(bucket->quantized);
    return data_bytes(bucket);
}

static dt_result_t allocate(struct dt_bucket *bucket, struct dt_error *err)
{
    void *data = NULL;
    atomic_store(&bucket->missing, bucket->n);
    if (dt_item_is_quantized(&bucket->gradients[0]->item.type))
        return dt_quantized_make(bucket, err);
    if (bucket->device >= 0)
        return dt_gpu_bucket_make(bucket, data_bytes(bucket), err);
    bucket->shared = dt_mem_alloc(data_bytes(bucket), &data) == DT_SUCCESS;
    bucket->data = bucket->shared ? data : malloc(data_bytes(bucket));
    return bucket->data ? DT_SUCCESS : dt_no_memory(err);
}

dt_result_t dt_buckets_make(struct dt_grad_plan *plan,
                            struct dt_gradient **order, int n,
                            struct dt_error *err)
{
    dt_buckets_free(plan);
    plan->buckets = calloc((size_t)n, sizeof(*plan->buckets));
    if (!plan->buckets || !cut(plan, order, n))
        return dt_no_memory(err);
    for (int b = 0; b < plan->nbuckets; b++) {
        dt_result_t rc = allocate(&plan->buckets[b], err);
        if (rc != DT_SUCCESS)
            return rc;
        plan->grad->stats.held_bytes += held(&plan->buckets[b]);
        plan->buckets[b].counted = true;
    }
    plan->nplanned = n;
    plan->launched = plan->reduced = plan->finished = 0;
    return DT_SUCCESS;
}

void dt_buckets_free(struct dt_grad_plan *plan)
{
    for (int b = 0; b < plan->nbuckets; b++) {
        struct dt_bucket *bucket = &plan->buckets[b];
        for (int i = 0; i < bucket->n; i++)
            bucket->gradients[i]->bucket = -1;
        if (bucket->counted)
            plan->grad->stats.held_bytes -= held(bucket);
        dt_quantized_free(bucket->quantized);
        if (bucket->device >= 0)
            dt_gpu_bucket_free(plan->grad, bucket);
        else if (bucket->shared)
            dt_mem_free(bucket->data);
        else
            free(bucket->data);
        free(bucket->gradients);
    }
    free(plan->buckets);
    plan->buckets = NULL;
    plan->nbuckets = plan->nplanned = 0;
}

/* ---- launching ---- */

static unsigned char *flag_of(struct dt_bucket *bucket)
{
    return bucket->data + bucket->elements * size_of(bucket);
}

/* The flag of a rank that does not follow. */
static void put_one(unsigned char at[8], dt_dtype_t wire)
{
    const float one = 1.0F;
    if (wire == DT_DTYPE_I32)
        memcpy(at, &(int32_t){1}, sizeof(int32_t));
    else if (wire == DT_DTYPE_I64)
        memcpy(at, &(int64_t){1}, sizeof(int64_t));
    else if (wire == DT_DTYPE_F32)
        memcpy(at, &one, sizeof(one));
    else
        dt_convert_in(at, wire, &one, DT_DTYPE_F32, 1, 1.0);
}

static bool is_raised(struct dt_bucket *bucket)
{
    static const unsigned char zero[8];
    if (bucket->quantized)
        return dt_quantized_is_raised(bucket->quantized);
    return memcmp(bucket->device < 0 ? flag_of(bucket)
                                     : dt_gpu_bucket_flag(bucket),
                  zero, size_of(bucket)) != 0;
}

static void pack(struct dt_bucket *bucket, bool follow, const void *one)
{
    if (!follow) {
        memset(bucket->data, 0, data_bytes(bucket));
        memcpy(flag_of(bucket), one, size_of(bucket));
        return;
    }
    for (int i = 0; i < bucket->n; i++) {
        const struct dt_gradient *g = bucket->gradients[i];
        const struct dt_item_type *type = &g->item.type;
        dt_convert_in(bucket->data + g->offset, (dt_dtype_t)type->wire,
                      g->item.in, (dt_dtype_t)type->dtype, g->count,
                      type->prescale);
    }
    memset(flag_of(bucket), 0, size_of(bucket));
}

/* Write what is sent; that of a GPU is put on its stream. */
static dt_result_t send(struct dt_grad_plan *plan, struct dt_bucket *bucket,
                        bool follow, struct dt_error *err)
{
    unsigned char one[8] = {0};
    if (bucket->quantized) {
        dt_quantized_pack(bucket, follow);
        return DT_SUCCESS;
    }
    put_one(one, (dt_dtype_t)bucket->wire);
    if (bucket->device >= 0)
        return dt_gpu_bucket_launch(plan, bucket, follow, one, err);
    pack(bucket, follow, one);
    return DT_SUCCESS;
}

static dt_result_t start(struct dt_grad_plan *plan, struct dt_bucket *bucket,
                         struct dt_error *err)
{
    dt_result_t rc;
    if (bucket->device >= 0)
        return DT_SUCCESS; /* it is on the stream */
    if (bucket->quantized)
        rc = dt_quantized_scatter(bucket, plan->comm);
    else
        rc = dt_iallreduce(bucket->data, bucket->data, bucket->elements + 1,
                           (dt_dtype_t)bucket->wire, (dt_op_t)bucket->op,
                           plan->comm, DT_STREAM_NONE, &bucket->request);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

static dt_result_t launch(struct dt_grad_plan *plan, struct dt_bucket *bucket,
                          bool follow, struct dt_error *err)
{
    struct dt_grad *grad = plan->grad;
    bucket->since = dt_grad_now();
    dt_result_t rc = send(plan, bucket, follow, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (follow)
        dt_timeline_bucket(plan, bucket, "pack", bucket->since);
    grad->stats.busy_seconds += dt_grad_now() - bucket->since;
    grad->stats.collectives++;
    grad->stats.buckets++;
    grad->stats.wire_bytes += bucket->quantized
                                  ? dt_quantized_sent(bucket->quantized)
                                  : data_bytes(bucket);
    plan->launched++;
    bucket->since = dt_grad_now();
    return start(plan, bucket, err);
}

static uint64_t window(const struct dt_grad_plan *plan)
{
    return plan->nbuckets < WINDOW ? (uint64_t)plan->nbuckets : WINDOW;
}

static struct dt_bucket *bucket_of(struct dt_grad_plan *plan, uint64_t number)
{
    return &plan->buckets[number % (uint64_t)plan->nbuckets];
}

bool dt_buckets_lack(const struct dt_grad_plan *plan, int bucket)
{
    uint64_t n = (uint64_t)plan->nbuckets, finished, launched;
    bool lacks;
    do { /* until none was launched meanwhile: it may have been emptied */
        finished = atomic_load(&plan->finished);
        launched = atomic_load(&plan->launched);
        uint64_t last = finished + (n + (uint64_t)bucket - finished % n) % n;
        lacks = false;
        for (uint64_t b = launched; b <= last; b++)
            lacks = lacks || atomic_load(&plan->buckets[b % n].missing) > 0;
    } while (launched != atomic_load(&plan->launched));
    return lacks;
}

static dt_result_t launch_all(struct dt_grad_plan *plan, bool *moved,
                              struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && plan->launched - plan->finished < window(plan)) {
        struct dt_bucket *bucket = bucket_of(plan, plan->launched);
        bool breaks = atomic_load(&plan->state) == DT_PLAN_BREAKS;
        /* first: who changes a gradient says so before it submits the gradient
         */
        bool full = atomic_load(&bucket->missing) == 0;
        bool follow = !breaks && !atomic_load(&plan->leave);
        if (breaks && plan->launched == plan->end)
            break;
        if (follow && !full)
            break;
        rc = launch(plan, bucket, follow, err);
        *moved = true;
    }
    return rc;
}

/* Start the second collective of quantized buckets, in order. All ranks do so
 * for each bucket that was launched, also with a flag. */
static dt_result_t gather_all(struct dt_grad_plan *plan, bool *moved,
                              struct dt_error *err)
{
    for (; plan->reduced < plan->launched; plan->reduced++) {
        struct dt_bucket *bucket = bucket_of(plan, plan->reduced);
        if (!bucket->quantized)
            continue;
        dt_result_t rc = dt_test(&bucket->request);
        if (rc == DT_IN_PROGRESS)
            break;
        double start = dt_grad_now();
        if (rc == DT_SUCCESS)
            rc = dt_quantized_gather(bucket, plan->second);
        if (rc != DT_SUCCESS)
            return dt_grad_failed(rc, err);
        plan->grad->stats.busy_seconds += dt_grad_now() - start;
        *moved = true;
    }
    return DT_SUCCESS;
}

/* ---- completion ---- */

static void unpack_one(struct dt_grad_plan *plan, struct dt_bucket *bucket,
                       struct dt_gradient *g)
{
    const struct dt_item_type *type = &g->item.type;
    bool divide = type->op == DT_OP_AVG && bucket->op == DT_OP_SUM;
    dt_convert_out(g->item.out, (dt_dtype_t)type->dtype,
                   bucket->data + g->offset, (dt_dtype_t)type->wire, g->count,
                   type->postscale, divide ? (size_t)plan->set->n : 1);
}

static void unpack(struct dt_grad_plan *plan, struct dt_bucket *bucket)
{
    struct dt_grad *grad = plan->grad;
    double start = dt_grad_now();
    dt_timeline_bucket(plan, bucket, "allreduce", bucket->since);
    atomic_store(&bucket->missing, bucket->n);
    atomic_store(&plan->went, true);
    if (bucket->quantized)
        dt_quantized_unpack(bucket);
    for (int i = 0; i < bucket->n; i++) {
        struct dt_gradient *g = bucket->gradients[i];
        if (!bucket->quantized && bucket->device < 0)
            unpack_one(plan, bucket, g);
        grad->stats.gradients++;
        grad->stats.bytes += g->count * g->item.type.element;
        dt_gradient_end(g, DT_SUCCESS, NULL);
    }
    dt_timeline_bucket(plan, bucket, "unpack", start);
    grad->stats.busy_seconds += dt_grad_now() - start;
}

static dt_result_t test(struct dt_grad_plan *plan, struct dt_bucket *bucket,
                        struct dt_error *err)
{
    if (bucket->device >= 0)
        return dt_gpu_bucket_test(plan, bucket, err);
    dt_result_t rc = dt_test(&bucket->request);
    return rc < 0 ? dt_grad_failed(rc, err) : rc;
}

/* The oldest bucket has arrived; on a GPU, it is unpacked there first. */
static dt_result_t finish(struct dt_grad_plan *plan, struct dt_bucket *bucket,
                          struct dt_error *err)
{
    bool breaks = atomic_load(&plan->state) == DT_PLAN_BREAKS;
    bool used = !breaks && !is_raised(bucket);
    if (used && bucket->device >= 0 && !bucket->unpacks) {
        bucket->unpacks = true;
        return dt_gpu_bucket_unpack(plan, bucket, err);
    }
    bucket->unpacks = false;
    if (used) {
        unpack(plan, bucket);
        plan->finished++;
        return DT_SUCCESS;
    }
    if (!breaks) {
        plan->end = plan->finished + window(plan);
        plan->grad->stats.breaks++;
        atomic_store(&plan->state, DT_PLAN_BREAKS);
    }
    plan->finished++;
    return DT_SUCCESS;
}

dt_result_t dt_buckets_progress(struct dt_grad_plan *plan, bool *moved,
                                struct dt_error *err)
{
    for (;;) {
        dt_result_t rc = launch_all(plan, moved, err);
        if (rc == DT_SUCCESS)
            rc = gather_all(plan, moved, err);
        if (rc != DT_SUCCESS)
            return rc;
        if (plan->finished == plan->reduced)
            break;
        struct dt_bucket *bucket = bucket_of(plan, plan->finished);
        rc = test(plan, bucket, err);
        if (rc == DT_IN_PROGRESS)
            break;
        if (rc == DT_SUCCESS)
            rc = finish(plan, bucket, err);
        if (rc != DT_SUCCESS)
            return rc;
        *moved = true;
    }
    return DT_SUCCESS;
}
