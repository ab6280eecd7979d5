/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* item.c - one operation on one tensor. */
#include "grad/item.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "exec/exec.h"

static const char *const kinds[] = {
    [DT_GRAD_ALLREDUCE] = "allreduce",
    [DT_GRAD_ALLGATHER] = "allgather",
    [DT_GRAD_BROADCAST] = "broadcast",
    [DT_GRAD_ALLTOALL] = "alltoall",
    [DT_GRAD_BARRIER] = "barrier",
    [DT_GRAD_REDUCESCATTER] = "reducescatter",
};

const char *dt_item_kind(uint8_t kind)
{
    return kind < sizeof(kinds) / sizeof(*kinds) ? kinds[kind] : "operation";
}

size_t dt_item_row(const struct dt_item_type *type)
{
    size_t count = 1;
    for (int d = 1; d < type->ndim; d++)
        count *= (size_t)type->shape[d];
    return count;
}

size_t dt_item_count(const struct dt_item_type *type)
{
    return type->ndim ? (size_t)type->shape[0] * dt_item_row(type) : 1;
}

int64_t dt_item_share(int64_t rows, int r, int n)
{
    return rows / n + (r < rows % n);
}

size_t dt_item_in_bytes(const struct dt_item *item,
                        const struct dt_grad_set *set)
{
    const struct dt_item_type *type = &item->type;
    if (type->kind == DT_GRAD_BARRIER ||
        (type->kind == DT_GRAD_BROADCAST && set->me != type->root))
        return 0;
    return dt_item_count(type) * type->element;
}

size_t dt_item_out_bytes(const struct dt_item *item,
                         const struct dt_grad_set *set)
{
    const struct dt_item_type *type = &item->type;
    switch (type->kind) {
    case DT_GRAD_ALLREDUCE:
    case DT_GRAD_BROADCAST:
        return dt_item_count(type) * type->element;
    case DT_GRAD_REDUCESCATTER:
        return (size_t)dt_item_share(type->shape[0], set->me, set->n) *
               dt_item_row(type) * type->element;
    default: /* none, or to be taken */
        return 0;
    }
}

bool dt_item_is_quantized(const struct dt_item_type *type)
{
    return type->wire == DT_DTYPE_I8 && type->dtype != DT_DTYPE_I8;
}

dt_op_t dt_item_wire_op(const struct dt_item_type *type)
{
    if (type->op == DT_OP_AVG && (dt_item_is_quantized(type) ||
                                  dt_dtype_size((dt_dtype_t)type->wire) > 2))
        return DT_OP_SUM;
    return (dt_op_t)type->op;
}

/* ---- what the caller gives ---- */

static bool reduces(int kind)
{
    return kind == DT_GRAD_ALLREDUCE || kind == DT_GRAD_REDUCESCATTER;
}

static dt_result_t check_type(const struct dt_grad_op *op, struct dt_error *err)
{
    if (!reduces(op->kind) && op->element_bytes > 0) {
        if (op->element_bytes > UINT32_MAX)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "an element of %zu bytes: at most 4 GiB",
                                op->element_bytes);
        return DT_SUCCESS;
    }
    if (op->element_bytes > 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s of elements of %zu bytes without a type: "
                            "they can be moved, but not added",
                            kinds[op->kind], op->element_bytes);
    if (dt_dtype_size(op->dtype) == 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%d is no element type (dt_dtype_t)", op->dtype);
    return DT_SUCCESS;
}

static dt_result_t check_wire(const struct dt_grad_op *op, struct dt_error *err)
{
    if (op->wire == op->dtype)
        return DT_SUCCESS;
    if (op->kind == DT_GRAD_ALLREDUCE &&
        (op->wire == DT_DTYPE_F16 || op->wire == DT_DTYPE_BF16) &&
        (op->dtype == DT_DTYPE_F32 || op->dtype == DT_DTYPE_F64) &&
        op->op != DT_GRAD_ADASUM)
        return DT_SUCCESS;
    const char *wire = dt_name_dtype(op->wire);
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "%s of %s as %s: only an allreduce of f32 or f64 goes "
                        "as another type, f16 or bf16",
                        kinds[op->kind], dt_name_dtype(op->dtype),
                        wire ? wire : "no type");
}

static dt_result_t check_op(const struct dt_grad_op *op, int n,
                            struct dt_error *err)
{
    if (op->op == DT_GRAD_ADASUM && (n & (n - 1)) != 0)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "Adasum among %d ranks: it needs a power of two",
                            n);
    if (op->op == DT_GRAD_ADASUM) {
        if (op->kind == DT_GRAD_ALLREDUCE && dt_exec_is_float(op->dtype) &&
            dt_dtype_size(op->dtype) > 1)
            return DT_SUCCESS;
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "%s of %s by Adasum: it is for allreduces of f16, "
                            "bf16, f32 and f64",
                            kinds[op->kind], dt_name_dtype(op->dtype));
    }
    if (!dt_exec_supports(op->dtype, (dt_op_t)op->op))
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%d is no reduction op",
                            op->op);
    bool sum = op->op == DT_OP_SUM || op->op == DT_OP_AVG;
    if (op->kind == DT_GRAD_REDUCESCATTER && !sum)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "reducescatter by %s: sum or avg are possible",
                            dt_name_op((dt_op_t)op->op));
    if (!sum && (op->prescale != 1.0 || op->postscale != 1.0))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "factors with %s: they are for sum and avg",
                            dt_name_op((dt_op_t)op->op));
    return DT_SUCCESS;
}

static dt_result_t check_shape(const struct dt_grad_op *op, size_t element,
                               struct dt_error *err)
{
    bool rows = op->kind == DT_GRAD_ALLGATHER || op->kind == DT_GRAD_ALLTOALL ||
                op->kind == DT_GRAD_REDUCESCATTER;
    if (op->ndim < 0 || op->ndim > DT_GRAD_DIMS || (op->ndim && !op->shape))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s of %d dimensions: 0 to %d are possible",
                            kinds[op->kind], op->ndim, DT_GRAD_DIMS);
    if (rows && op->ndim == 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s of a scalar: it needs a first dimension",
                            kinds[op->kind]);
    size_t bytes = element;
    for (int d = 0; d < op->ndim; d++) {
        if (op->shape[d] < 0)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "dimension %d of %s is %" PRId64, d,
                                kinds[op->kind], op->shape[d]);
        size_t size = op->shape[d] ? (size_t)op->shape[d] : 1;
        if (bytes > (size_t)INT64_MAX / size)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%s of more bytes than there are",
                                kinds[op->kind]);
        bytes *= size;
    }
    return DT_SUCCESS;
}

static dt_result_t check_splits(const struct dt_grad_op *op, int n,
                                struct dt_error *err)
{
    int64_t sum = 0;
    if (!op->splits) {
        if (op->shape[0] % n == 0)
            return DT_SUCCESS;
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "alltoall of %" PRId64 " rows among %d ranks "
                            "without splits: these do not divide",
                            op->shape[0], n);
    }
    for (int r = 0; r < n; r++) {
        if (op->splits[r] < 0 || op->splits[r] > op->shape[0] - sum)
            return dt_error_set(
                err, DT_ERR_INVALID_ARG,
                "alltoall: split %d is %" PRId64 ", where %" PRId64
                " of %" PRId64 " rows are left",
                r, op->splits[r], op->shape[0] - sum, op->shape[0]);
        sum += op->splits[r];
    }
    if (sum == op->shape[0])
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "alltoall: the splits are %" PRId64
                        " rows in all, the tensor has %" PRId64,
                        sum, op->shape[0]);
}

static dt_result_t check(const struct dt_grad_op *op, int n,
                         struct dt_error *err)
{
    if ((unsigned)op->kind >= sizeof(kinds) / sizeof(*kinds))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%d is no kind of operation", op->kind);
    if (op->kind == DT_GRAD_BARRIER)
        return DT_SUCCESS;
    dt_result_t rc = check_type(op, err);
    size_t element =
        op->element_bytes ? op->element_bytes : dt_dtype_size(op->dtype);
    if (rc == DT_SUCCESS)
        rc = check_shape(op, element, err);
    if (rc == DT_SUCCESS && reduces(op->kind))
        rc = check_op(op, n, err);
    if (rc == DT_SUCCESS && reduces(op->kind))
        rc = check_wire(op, err);
    if (rc == DT_SUCCESS && op->kind == DT_GRAD_ALLTOALL)
        rc = check_splits(op, n, err);
    if (rc == DT_SUCCESS && op->kind == DT_GRAD_BROADCAST &&
        (op->root < 0 || op->root >= n))
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "broadcast of root %d in a set of %d ranks", op->root,
                          n);
    return rc;
}

static void set_type(struct dt_item_type *type, const struct dt_grad_op *op)
{
    bool sum = reduces(op->kind);
    bool typed = sum || op->element_bytes == 0;
    *type = (struct dt_item_type){
        .kind = (uint8_t)op->kind,
        .dtype = typed ? (uint8_t)op->dtype : UINT8_MAX,
        .wire = sum ? (uint8_t)op->wire : 0,
        .op = sum ? (uint8_t)op->op : 0,
        .root = op->kind == DT_GRAD_BROADCAST ? op->root : 0,
        .ndim = op->ndim,
        .element =
            (uint32_t)(typed ? dt_dtype_size(op->dtype) : op->element_bytes),
        .prescale = sum ? op->prescale : 1.0,
        .postscale = sum ? op->postscale : 1.0,
    };
    if (op->ndim)
        memcpy(type->shape, op->shape, (size_t)op->ndim * sizeof(*op->shape));
}

dt_result_t dt_item_init(struct dt_item *item, const struct dt_grad_op *op,
                         int n, struct dt_error *err)
{
    *item = (struct dt_item){.in = op->in, .out = op->out, .device = -1};
    dt_result_t rc = check(op, n, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (op->kind == DT_GRAD_BARRIER) {
        item->type = (struct dt_item_type){.kind = DT_GRAD_BARRIER};
        return DT_SUCCESS;
    }
    set_type(&item->type, op);
    if (op->kind != DT_GRAD_ALLTOALL)
        return DT_SUCCESS;
    item->splits = malloc((size_t)n * sizeof(*item->splits));
    if (!item->splits)
        return dt_no_memory(err);
    for (int r = 0; r < n; r++)
        item->splits[r] = op->splits ? op->splits[r] : op->shape[0] / n;
    return DT_SUCCESS;
}

dt_result_t dt_item_check_buffers(const struct dt_item *item, int me,
                                  struct dt_error *err)
{
    const struct dt_item_type *type = &item->type;
    if (type->kind == DT_GRAD_BARRIER || dt_item_count(type) == 0)
        return DT_SUCCESS;
    bool reads = type->kind != DT_GRAD_BROADCAST || me == type->root;
    bool writes =
        type->kind != DT_GRAD_ALLGATHER && type->kind != DT_GRAD_ALLTOALL;
    if (item->out && !writes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: out is not NULL: its output is to be had by "
                            "dt_grad_take",
                            kinds[type->kind]);
    if ((item->in || !reads) && (item->out || !writes))
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG, "%s: %s is NULL",
                        kinds[type->kind], item->in || !reads ? "out" : "in");
}

void dt_item_fini(struct dt_item *item)
{
    free(item->splits);
    free(item->result);
    free(item->received);
    item->splits = item->received = NULL;
    item->result = NULL;
}

/* ---- what two ranks mean ---- */

static void print_type(char text[DT_ITEM_TEXT], const struct dt_item_type *type)
{
    const char *name = dt_name_dtype((dt_dtype_t)type->dtype);
    if (name)
        snprintf(text, DT_ITEM_TEXT, "type %s", name);
    else
        snprintf(text, DT_ITEM_TEXT, "elements of %" PRIu32 " bytes",
                 type->element);
}

static void print_op(char text[DT_ITEM_TEXT], const struct dt_item_type *type)
{
    snprintf(text, DT_ITEM_TEXT, "op %s",
             type->op == DT_GRAD_ADASUM ? "adasum"
                                        : dt_name_op((dt_op_t)type->op));
}

static void print_shape(char text[DT_ITEM_TEXT],
                        const struct dt_item_type *type)
{
    int at = snprintf(text, DT_ITEM_TEXT, "shape [");
    for (int d = 0; d < type->ndim && at < DT_ITEM_TEXT - 30; d++)
        at += snprintf(text + at, (size_t)(DT_ITEM_TEXT - at), "%s%" PRId64,
                       d ? ", " : "", type->shape[d]);
    snprintf(text + at, (size_t)(DT_ITEM_TEXT - at), "]");
}

static void print_place(char text[DT_ITEM_TEXT],
                        const struct dt_item_type *type)
{
    snprintf(text, DT_ITEM_TEXT, "a tensor %s",
             type->place == DT_PLACE_GPU ? "on a GPU"
                                         : "in the memory of the host");
}

static void print_factors(char text[DT_ITEM_TEXT],
                          const struct dt_item_type *type)
{
    snprintf(text, DT_ITEM_TEXT, "factors %g and %g", type->prescale,
             type->postscale);
}

static bool same_shape(const struct dt_item_type *a,
                       const struct dt_item_type *b)
{
    int from =
        a->kind == DT_GRAD_ALLGATHER || a->kind == DT_GRAD_ALLTOALL ? 1 : 0;
    if (a->ndim != b->ndim)
        return false;
    for (int d = from; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d])
            return false;
    return true;
}

bool dt_item_agrees(const struct dt_item_type *a, const struct dt_item_type *b,
                    char a_has[DT_ITEM_TEXT], char b_has[DT_ITEM_TEXT])
{
    if (a->kind != b->kind) {
        snprintf(a_has, DT_ITEM_TEXT, "%s", dt_item_kind(a->kind));
        snprintf(b_has, DT_ITEM_TEXT, "%s", dt_item_kind(b->kind));
    } else if (a->dtype != b->dtype || a->element != b->element) {
        print_type(a_has, a);
        print_type(b_has, b);
    } else if (!same_shape(a, b)) {
        print_shape(a_has, a);
        print_shape(b_has, b);
    } else if (a->place != b->place && a->place != DT_PLACE_ANY &&
               b->place != DT_PLACE_ANY) {
        print_place(a_has, a);
        print_place(b_has, b);
    } else if (a->op != b->op) {
        print_op(a_has, a);
        print_op(b_has, b);
    } else if (a->root != b->root) {
        snprintf(a_has, DT_ITEM_TEXT, "root %" PRId32, a->root);
        snprintf(b_has, DT_ITEM_TEXT, "root %" PRId32, b->root);
    } else if (a->prescale != b->prescale || a->postscale != b->postscale) {
        print_factors(a_has, a);
        print_factors(b_has, b);
    } else if (a->wire != b->wire) {
        snprintf(a_has, DT_ITEM_TEXT, "%s on the wire",
                 dt_name_dtype((dt_dtype_t)a->wire));
        snprintf(b_has, DT_ITEM_TEXT, "%s on the wire",
                 dt_name_dtype((dt_dtype_t)b->wire));
    } else {
        return true;
    }
    return false;
}
