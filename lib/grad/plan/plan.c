/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.c - the gradients of one model. */
#include "grad/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "grad/plan/bucket.h"
#include "grad/plan/gpu_bucket.h"
#include "grad/plan/gradient.h"
#include "grad/gpu/gpus.h"
#include "grad/item.h"
#include "grad/progress.h"
#include "grad/set.h"
#include "grad/work.h"

/* ---- making and freeing ---- */

/* What others share; with the drive lock, or when nobody else is there. */
static void give_back(struct dt_grad_plan *plan)
{
    dt_buckets_free(plan);
    dt_gpus_end_plan(plan->grad, plan);
}

static void destroy(struct dt_grad_plan *plan)
{
    for (int i = 0; i < plan->n; i++) {
        struct dt_gradient *g = plan->gradients[i];
        if (g->residual)
            plan->grad->stats.held_bytes -= g->count * sizeof(*g->residual);
        dt_gpus_unmark(plan->grad, &g->item);
        free(g->residual);
        free(g->work.name);
        free(g);
    }
    dt_work_destroy(plan->step);
    free(plan->gradients);
    free(plan->learned);
    free(plan);
}

/* Collective. */
static dt_result_t destroy_comms(struct dt_grad_plan *plan)
{
    dt_result_t rc = dt_comm_destroy(plan->comm);
    if (!plan->second)
        return rc;
    dt_result_t rc2 = dt_comm_destroy(plan->second);
    return rc != DT_SUCCESS ? rc : rc2;
}

static void delist(struct dt_grad_plan *plan)
{
    pthread_mutex_lock(&plan->grad->submit);
    struct dt_grad_plan **at = &plan->grad->plans;
    while (*at && *at != plan)
        at = &(*at)->next;
    if (*at)
        *at = plan->next;
    pthread_mutex_unlock(&plan->grad->submit);
}

dt_result_t dt_plan_begin(struct dt_grad_set *set, struct dt_entry *e,
                          struct dt_error *err)
{
    struct dt_grad *grad = set->grad;
    struct dt_grad_plan *plan = e->work->made;
    plan->number = ++set->plans;
    dt_result_t rc =
        dt_comm_create(grad->world, set->ranks, set->n, &plan->comm);
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    pthread_mutex_lock(&grad->submit);
    struct dt_grad_plan **at = &grad->plans;
    while (*at)
        at = &(*at)->next;
    *at = plan;
    pthread_mutex_unlock(&grad->submit);
    dt_work_end(e->work, DT_SUCCESS, NULL);
    return DT_SUCCESS;
}

dt_result_t dt_plan_end(struct dt_grad_set *set, struct dt_entry *e,
                        struct dt_error *err)
{
    (void)set;
    struct dt_grad_plan *plan = e->work->made;
    delist(plan);
    dt_result_t rc = destroy_comms(plan);
    give_back(plan);
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    dt_work_end(e->work, DT_SUCCESS, NULL);
    return DT_SUCCESS;
}

dt_result_t dt_plans_free(struct dt_grad *grad, const struct dt_grad_set *set,
                          bool together)
{
    dt_result_t rc = DT_SUCCESS;
    struct dt_grad_plan *next;
    for (struct dt_grad_plan *plan = grad->plans; plan; plan = next) {
        next = plan->next;
        if (set && plan->set != set)
            continue;
        delist(plan);
        dt_result_t rc2 = together ? destroy_comms(plan) : DT_SUCCESS;
        if (rc == DT_SUCCESS)
            rc = rc2;
        give_back(plan);
        destroy(plan);
    }
    return rc;
}

static dt_result_t create(struct dt_grad *grad, int id,
                          struct dt_grad_plan **out, struct dt_error *err)
{
    struct dt_grad_set *set;
    struct dt_grad_work *work;
    dt_result_t rc = dt_set_mine(grad, id, &set, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_grad_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return dt_no_memory(err);
    plan->grad = grad;
    plan->set = set;
    rc = dt_work_create(set, DT_WORK_PLAN_CREATE, "a new plan", &work, err);
    if (rc == DT_SUCCESS) {
        work->made = plan;
        rc = dt_work_finish(work, NULL, err);
    }
    if (rc != DT_SUCCESS) {
        delist(plan);
        destroy(plan);
        return rc;
    }
    *out = plan;
    return DT_SUCCESS;
}

dt_result_t dt_grad_plan_create(dt_grad_t grad, int set, dt_grad_plan_t *plan)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_SUCCESS)
        rc = create(grad, set, plan, &err);
    return dt_api_return(rc, &err);
}

static bool has_stopped(void *arg)
{
    struct dt_grad_plan *plan = arg;
    return atomic_load(&plan->state) == DT_PLAN_NEGOTIATES ||
           plan->grad->failure != DT_SUCCESS;
}

/* Have it given up, on all ranks, as all do this. */
static void stop(struct dt_grad_plan *plan)
{
    pthread_mutex_lock(&plan->grad->submit);
    atomic_store(&plan->leave, true);
    dt_grad_progress_call(plan->grad);
    pthread_mutex_unlock(&plan->grad->submit);
    dt_grad_progress_await(plan->grad, has_stopped, plan, -1);
}

void dt_plans_stop(struct dt_grad *grad)
{
    for (struct dt_grad_plan *plan = grad->plans; plan; plan = plan->next)
        stop(plan);
}

static dt_result_t end(struct dt_grad_plan *plan, struct dt_error *err)
{
    struct dt_grad_work *work;
    dt_result_t rc = DT_SUCCESS;
    if (atomic_load(&plan->open) > 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_grad_plan_destroy: gradients are under way: "
                            "call dt_grad_plan_step first");
    stop(plan);
    rc = dt_work_create(plan->set, DT_WORK_PLAN_DESTROY, "the end of a plan",
                        &work, err);
    if (rc != DT_SUCCESS)
        return rc;
    work->made = plan;
    work->plan = plan->number;
    rc = dt_work_finish(work, NULL, err);
    if (rc == DT_SUCCESS)
        destroy(plan);
    return rc;
}

dt_result_t dt_grad_plan_destroy(dt_grad_plan_t plan)
{
    struct dt_error err = {""};
    if (!plan)
        return DT_SUCCESS;
    dt_result_t rc = dt_grad_usable(plan->grad, &err);
    if (rc == DT_SUCCESS)
        rc = end(plan, &err);
    return dt_api_return(rc, &err);
}

/* ---- gradients ---- */

static struct dt_gradient *find(struct dt_grad_plan *plan, const char *name)
{
    struct dt_gradient *g = plan->names[dt_grad_hash(0, name)];
    while (g && strcmp(g->work.name, name) != 0)
        g = g->chain;
    return g;
}

static bool grow(struct dt_grad_plan *plan)
{
    if (plan->n < plan->room)
        return true;
    int room = plan->room ? 2 * plan->room : 64;
    void *more = realloc(plan->gradients, (size_t)room * sizeof(void *));
    if (!more)
        return false;
    plan->gradients = more;
    plan->room = room;
    return true;
}

static struct dt_gradient *new_gradient(struct dt_grad_plan *plan,
                                        const char *name)
{
    struct dt_gradient *g = calloc(1, sizeof(*g));
    char *copy = strdup(name);
    if (!g || !copy || !grow(plan)) {
        free(g);
        free(copy);
        return NULL;
    }
    g->plan = plan;
    g->bucket = -1;
    g->work.grad = plan->grad;
    g->work.set = plan->set;
    g->work.kind = DT_WORK_OPERATIONS;
    g->work.plan = plan->number;
    g->work.name = copy;
    g->work.n = 1;
    g->work.items = &g->item;
    g->work.on_end = dt_gradient_work_end;
    unsigned hash = dt_grad_hash(0, name);
    g->chain = plan->names[hash];
    plan->names[hash] = g;
    g->id = plan->n;
    plan->gradients[plan->n++] = g;
    return g;
}

/* Is it to go as I8? Among one rank nothing is sent, and so nothing is lost. */
static bool is_quantized(const struct dt_grad_op *op)
{
    return op->wire == DT_DTYPE_I8 &&
           (op->dtype == DT_DTYPE_F32 || op->dtype == DT_DTYPE_F64);
}

static dt_result_t init_item(struct dt_item *item, const struct dt_grad_op *op,
                             int n, struct dt_error *err)
{
    struct dt_grad_op plain = *op;
    if (is_quantized(op))
        plain.wire = op->dtype;
    dt_result_t rc = dt_item_init(item, &plain, n, err);
    if (rc == DT_SUCCESS && is_quantized(op) && n > 1)
        item->type.wire = DT_DTYPE_I8;
    return rc;
}

static dt_result_t check(const struct dt_grad_op *op, struct dt_error *err)
{
    size_t size = op ? dt_dtype_size(op->dtype) : 0;
    if (op && op->kind == DT_GRAD_ALLREDUCE && size >= 2 &&
        (op->op == DT_OP_SUM || op->op == DT_OP_AVG))
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "a gradient is an allreduce by sum or avg of elements "
                        "of two bytes or more");
}

/* Give the gradient the residual that it needs as this item: what it has, while
 * its elements stay as many. */
static dt_result_t set_residual(struct dt_gradient *g,
                                const struct dt_item *item, bool needed,
                                struct dt_error *err)
{
    size_t count = dt_item_count(&item->type);
    uint64_t *held = &g->plan->grad->stats.held_bytes;
    if (needed && g->residual && g->count == count)
        return DT_SUCCESS;
    float *residual = needed ? calloc(count + 1, sizeof(*residual)) : NULL;
    if (needed && !residual)
        return dt_no_memory(err);
    if (g->residual)
        *held -= g->count * sizeof(*residual);
    if (needed)
        *held += count * sizeof(*residual);
    free(g->residual);
    g->residual = residual;
    return DT_SUCCESS;
}

/* With the submit lock. */
static dt_result_t set_gradient(struct dt_grad_plan *plan, const char *name,
                                const struct dt_item *item, bool quantized,
                                int *id, struct dt_error *err)
{
    struct dt_gradient *g = find(plan, name);
    bool known = g != NULL;
    if (known && atomic_load(&g->state) != DT_GRADIENT_IDLE)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "gradient '%.200s' is under way: it cannot be "
                            "another now",
                            name);
    if (!known)
        g = new_gradient(plan, name);
    if (!g)
        return dt_no_memory(err);
    dt_result_t rc = set_residual(g, item, quantized, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_item next = *item;
    next.type.place = g->item.type.place; /* known when it is submitted */
    if (known && g->bucket >= 0 &&
        memcmp(&g->item.type, &next.type, sizeof(next.type)) != 0)
        atomic_store(&plan->leave, true);
    dt_gpus_unmark(plan->grad, &g->item);
    if (known)
        next.device = g->item.device;
    g->item = next;
    g->count = dt_item_count(&item->type);
    *id = g->id;
    return DT_SUCCESS;
}

dt_result_t dt_grad_plan_tensor(dt_grad_plan_t plan, const char *name,
                                const dt_grad_op_t *op, int *id)
{
    struct dt_error err = {""};
    struct dt_item item;
    dt_result_t rc = dt_grad_usable(plan ? plan->grad : NULL, &err);
    size_t len = name ? strlen(name) : 0;
    if (rc == DT_SUCCESS && (len < 1 || len > 1000 || !id))
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "a gradient's name of %zu bytes: 1 to 1000 are "
                          "possible",
                          len);
    if (rc == DT_SUCCESS)
        rc = check(op, &err);
    if (rc == DT_SUCCESS)
        rc = init_item(&item, op, plan->set->n, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    pthread_mutex_lock(&plan->grad->submit);
    rc = set_gradient(plan, name, &item, is_quantized(op), id, &err);
    pthread_mutex_unlock(&plan->grad->submit);
    return dt_api_return(rc, &err);
}

/* Where is it now? One that has moved is not what the plan has. */
static dt_result_t place(struct dt_grad_plan *plan, struct dt_gradient *g,
                         const void *in, void *out, dt_stream_t stream,
                         struct dt_error *err)
{
    struct dt_item item = g->item;
    item.in = in;
    item.out = out;
    dt_result_t rc = dt_gpus_place(plan->grad, &item, plan->set, stream, err);
    g->item.mark = item.mark;
    if (rc != DT_SUCCESS)
        return rc;
    if (g->bucket >= 0 && (item.type.place != g->item.type.place ||
                           item.device != g->item.device))
        atomic_store(&plan->leave, true);
    g->item = item;
    return DT_SUCCESS;
}

/* With the submit lock. */
static void submit(struct dt_grad_plan *plan, struct dt_gradient *g)
{
    bool stands = atomic_load(&plan->state) != DT_PLAN_NEGOTIATES;
    atomic_fetch_add(&plan->open, 1);
    if (!stands || g->bucket < 0) {
        dt_gradient_negotiate(g);
        if (stands)
            atomic_store(&plan->leave, true);
        return;
    }
    g->since = dt_grad_now();
    plan->submitted++;
    atomic_store(&g->state, DT_GRADIENT_PLANNED);
    if (atomic_fetch_sub(&plan->buckets[g->bucket].missing, 1) == 1)
        dt_grad_progress_call(plan->grad);
}

dt_result_t dt_grad_plan_submit(dt_grad_plan_t plan, int id, const void *in,
                                void *out)
{
    return dt_grad_plan_submit_on(plan, id, in, out, DT_STREAM_NONE);
}

dt_result_t dt_grad_plan_submit_on(dt_grad_plan_t plan, int id, const void *in,
                                   void *out, dt_stream_t stream)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(plan ? plan->grad : NULL, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    pthread_mutex_lock(&plan->grad->submit);
    if (id < 0 || id >= plan->n)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "there is no gradient %d in this plan of %d", id,
                          plan->n);
    else if (atomic_load(&plan->gradients[id]->state) != DT_GRADIENT_IDLE)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "gradient '%.200s' is under way already: it is "
                          "submitted once per step",
                          plan->gradients[id]->work.name);
    else if (plan->gradients[id]->count > 0 && (!in || !out))
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "gradient '%.200s': %s is NULL",
                          plan->gradients[id]->work.name, in ? "out" : "in");
    else if (plan->grad->failure != DT_SUCCESS)
        rc = dt_error_set(&err, plan->grad->failure, "%s",
                          plan->grad->failure_text.text);
    else
        rc = place(plan, plan->gradients[id], in, out, stream, &err);
    if (rc == DT_SUCCESS)
        submit(plan, plan->gradients[id]);
    pthread_mutex_unlock(&plan->grad->submit);
    return rc == DT_SUCCESS ? rc : dt_api_return(rc, &err);
}

static bool is_idle(void *arg)
{
    struct dt_gradient *g = arg;
    return atomic_load(&g->state) == DT_GRADIENT_IDLE;
}

dt_result_t dt_grad_plan_wait(dt_grad_plan_t plan, int id, double seconds)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(plan ? plan->grad : NULL, &err);
    if (rc == DT_SUCCESS && (id < 0 || id >= plan->n))
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "there is no gradient %d in this plan of %d", id,
                          plan->n);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    pthread_mutex_lock(&plan->grad->submit);
    struct dt_gradient *g = plan->gradients[id];
    /* the caller may not submit the rest before this returns */
    if (atomic_load(&g->state) == DT_GRADIENT_PLANNED &&
        atomic_load(&plan->state) == DT_PLAN_STANDS &&
        dt_buckets_lack(plan, g->bucket))
        atomic_store(&plan->leave, true);
    pthread_mutex_unlock(&plan->grad->submit);
    dt_grad_progress_await(plan->grad, is_idle, g, seconds);
    if (!is_idle(g))
        return DT_IN_PROGRESS;
    if (g->result != DT_SUCCESS)
        err = g->err;
    return dt_api_return(g->result, &err);
}

/* ---- residuals ---- */

/* With the submit lock. */
static dt_result_t check_residual(struct dt_grad_plan *plan, int id,
                                  const void *residual, size_t count,
                                  struct dt_error *err)
{
    if (id < 0 || id >= plan->n || !residual)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "residual of gradient %d of %d: its number and "
                            "memory are needed",
                            id, plan->n);
    const struct dt_gradient *g = plan->gradients[id];
    const char *name = g->work.name;
    if (!g->residual)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "gradient '%.200s' has no residual: it does not "
                            "go as i8",
                            name);
    if (count != g->count)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a residual of %zu elements: gradient '%.200s' "
                            "has %zu",
                            count, name, g->count);
    if (atomic_load(&g->state) != DT_GRADIENT_IDLE)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "gradient '%.200s' is under way: call "
                            "dt_grad_plan_step before its residual is used",
                            name);
    return DT_SUCCESS;
}

/* Copy it to `to`, or from `from`. */
static dt_result_t copy_residual(struct dt_grad_plan *plan, int id, float *to,
                                 const float *from, size_t count)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(plan ? plan->grad : NULL, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    pthread_mutex_lock(&plan->grad->submit);
    rc = check_residual(plan, id, to ? to : from, count, &err);
    if (rc == DT_SUCCESS && to)
        memcpy(to, plan->gradients[id]->residual, count * sizeof(*to));
    else if (rc == DT_SUCCESS && plan->set->n > 1)
        memcpy(plan->gradients[id]->residual, from, count * sizeof(*from));
    pthread_mutex_unlock(&plan->grad->submit);
    return dt_api_return(rc, &err);
}

dt_result_t dt_grad_plan_residual(dt_grad_plan_t plan, int id, float *residual,
                                  size_t count)
{
    return copy_residual(plan, id, residual, NULL, count);
}

dt_result_t dt_grad_plan_restore(dt_grad_plan_t plan, int id,
                                 const float *residual, size_t count)
{
    return copy_residual(plan, id, NULL, residual, count);
}

/* ---- what was learned, and giving it up ---- */

static struct dt_grad_plan *find_plan(struct dt_grad_set *set, uint32_t number)
{
    struct dt_grad_plan *plan = set->grad->plans;
    while (plan && (plan->set != set || plan->number != number))
        plan = plan->next;
    return plan;
}

dt_result_t dt_plan_learn(struct dt_grad_set *set, const struct dt_entry *e,
                          struct dt_error *err)
{
    struct dt_grad_plan *plan = find_plan(set, e->plan);
    if (!plan || !e->work)
        return DT_SUCCESS;
    if (plan->nlearned == plan->learned_room) {
        int room = plan->learned_room ? 2 * plan->learned_room : 64;
        void *more = realloc(plan->learned, (size_t)room * sizeof(void *));
        if (!more)
            return dt_no_memory(err);
        plan->learned = more;
        plan->learned_room = room;
    }
    dt_gradient_of(e->work)->heard = e->heard;
    plan->learned[plan->nlearned++] = dt_gradient_of(e->work);
    return DT_SUCCESS;
}

static int by_heard(const void *a, const void *b)
{
    uint64_t left = (*(struct dt_gradient *const *)a)->heard;
    uint64_t right = (*(struct dt_gradient *const *)b)->heard;
    return (left > right) - (left < right);
}

/* All ranks do this at the same point. */
static dt_result_t need_second(struct dt_grad_plan *plan, struct dt_error *err)
{
    const struct dt_grad_set *set = plan->set;
    bool needed = false;
    for (int i = 0; i < plan->nlearned; i++)
        needed = needed || dt_item_is_quantized(&plan->learned[i]->item.type);
    if (!needed || plan->second)
        return DT_SUCCESS;
    dt_result_t rc =
        dt_comm_create(plan->grad->world, set->ranks, set->n, &plan->second);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

static dt_result_t make(struct dt_grad_plan *plan, struct dt_error *err)
{
    dt_result_t rc = need_second(plan, err);
    if (rc != DT_SUCCESS)
        return rc;
    bool possible;
    rc = dt_gpu_bucket_try(plan, plan->learned, plan->nlearned, &possible, err);
    if (rc != DT_SUCCESS || !possible) /* else steps go on being negotiated */
        return rc;
    qsort(plan->learned, (size_t)plan->nlearned, sizeof(*plan->learned),
          by_heard);
    pthread_mutex_lock(&plan->grad->submit);
    rc = dt_buckets_make(plan, plan->learned, plan->nlearned, err);
    if (rc == DT_SUCCESS) {
        plan->submitted = 0;
        atomic_store(&plan->leave, false);
        atomic_store(&plan->state, DT_PLAN_STANDS);
    }
    pthread_mutex_unlock(&plan->grad->submit);
    return rc;
}

dt_result_t dt_plan_step_over(struct dt_grad_set *set, struct dt_entry *e,
                              struct dt_error *err)
{
    struct dt_grad_plan *plan = find_plan(set, e->plan);
    dt_result_t rc = DT_SUCCESS;
    dt_entries_end_step(set, e->plan);
    if (!plan)
        return DT_SUCCESS;
    if (!atomic_load(&plan->went) && set->njoined == 0 && plan->nlearned > 0)
        rc = make(plan, err);
    plan->nlearned = 0;
    if (rc == DT_SUCCESS && e->work)
        dt_work_end(e->work, DT_SUCCESS, NULL);
    return rc;
}

/* The plan was given up, and all that was under way is empty: what is in its
 * buckets is negotiated. */
static void give_up(struct dt_grad_plan *plan)
{
    pthread_mutex_lock(&plan->grad->submit);
    for (int b = 0; b < plan->nbuckets; b++)
        for (int i = 0; i < plan->buckets[b].n; i++) {
            struct dt_gradient *g = plan->buckets[b].gradients[i];
            if (atomic_load(&g->state) == DT_GRADIENT_PLANNED)
                dt_gradient_negotiate(g);
        }
    dt_buckets_free(plan);
    plan->submitted = 0;
    atomic_store(&plan->leave, false);
    atomic_store(&plan->state, DT_PLAN_NEGOTIATES);
    pthread_mutex_unlock(&plan->grad->submit);
}

dt_result_t dt_plan_progress(struct dt_grad_plan *plan, bool *moved,
                             struct dt_error *err)
{
    if (atomic_load(&plan->state) == DT_PLAN_NEGOTIATES)
        return DT_SUCCESS;
    dt_result_t rc = dt_buckets_progress(plan, moved, err);
    if (rc == DT_SUCCESS && atomic_load(&plan->state) == DT_PLAN_BREAKS &&
        plan->finished == plan->end)
        give_up(plan);
    return rc;
}

void dt_plan_fail(struct dt_grad_plan *plan, dt_result_t code,
                  const struct dt_error *err)
{
    for (int i = 0; i < plan->n; i++)
        if (atomic_load(&plan->gradients[i]->state) != DT_GRADIENT_IDLE)
            dt_gradient_end(plan->gradients[i], code, err);
}

/* ---- steps ---- */

/* Tell that this step is over here. With the submit lock. */
static void tell_step(struct dt_grad_plan *plan)
{
    struct dt_error err;
    dt_result_t rc =
        dt_work_create(plan->set, DT_WORK_STEP, "a step", &plan->step, &err);
    if (rc != DT_SUCCESS && plan->code == DT_SUCCESS) {
        plan->code = rc;
        plan->err = err;
    }
    if (rc != DT_SUCCESS)
        return;
    plan->step->plan = plan->number;
    dt_work_tell(plan->step);
}

/* With the submit lock. */
static bool step_is_over(struct dt_grad_plan *plan)
{
    bool all = atomic_load(&plan->open) == 0;
    if (plan->grad->failure != DT_SUCCESS)
        return atomic_load(&plan->grad->told);
    if (plan->step)
        return all && atomic_load(&plan->step->status) != DT_IN_PROGRESS;
    switch (atomic_load(&plan->state)) {
    case DT_PLAN_STANDS:
        return all && plan->submitted >= plan->nplanned;
    case DT_PLAN_NEGOTIATES:
        tell_step(plan);
        return plan->step == NULL;
    default:
        return false;
    }
}

static bool is_over(void *arg)
{
    struct dt_grad_plan *plan = arg;
    pthread_mutex_lock(&plan->grad->submit);
    bool over = step_is_over(plan);
    pthread_mutex_unlock(&plan->grad->submit);
    return over;
}

/* What ends the step: its first error. With the submit lock. */
static dt_result_t end_step(struct dt_grad_plan *plan, struct dt_error *err)
{
    struct dt_grad_work *step = plan->step;
    dt_result_t rc = plan->code;
    if (rc != DT_SUCCESS)
        *err = plan->err;
    else if (step)
        rc = dt_work_result(step, err);
    if (rc == DT_SUCCESS && plan->grad->failure != DT_SUCCESS) {
        rc = plan->grad->failure;
        *err = plan->grad->failure_text;
    }
    if (plan->grad->failure == DT_SUCCESS) {
        dt_work_destroy(step);
        plan->step = NULL;
    }
    plan->code = DT_SUCCESS;
    plan->submitted = 0;
    atomic_store(&plan->went, false);
    plan->grad->stats.steps++;
    return rc;
}

dt_result_t dt_grad_plan_step(dt_grad_plan_t plan, double seconds)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(plan ? plan->grad : NULL, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    struct dt_grad *grad = plan->grad;
    pthread_mutex_lock(&grad->submit);
    if (!plan->step && atomic_load(&plan->state) == DT_PLAN_STANDS &&
        plan->submitted < plan->nplanned)
        atomic_store(&plan->leave, true);
    dt_grad_progress_call(grad);
    pthread_mutex_unlock(&grad->submit);
    dt_grad_progress_await(grad, is_over, plan, seconds);
    if (!is_over(plan))
        return DT_IN_PROGRESS;
    pthread_mutex_lock(&grad->submit);
    rc = end_step(plan, &err);
    pthread_mutex_unlock(&grad->submit);
    return dt_api_return(rc, &err);
}
