/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* work.c - operations that were started by name: slurm_dt._dt.Work */
#include "ext.h"

#define ONE_TENSOR "iiiO!KKO:tensor" /* see parse_tensor */

struct work {
    PyObject_HEAD PyObject *module; /* so that the state stays */
    struct state *state;
    unsigned generation; /* of the engine that has the handle */
    dt_grad_work_t handle;
    int n;
    int members;    /* of the set */
    PyObject *key;  /* its name in state->names, until it was waited for */
    PyObject *keep; /* tensors that the engine borrows */
};

struct orphan {
    struct orphan *next;
    dt_grad_work_t handle;
    PyObject *key, *keep;
};

static void free_name(struct state *state, PyObject **key)
{
    if (*key && PySet_Discard(state->names, *key) < 0)
        PyErr_Clear();
    Py_CLEAR(*key);
}

void dt_py_reap(struct state *state, bool closed)
{
    struct orphan **at = &state->orphans;
    while (*at) {
        struct orphan *orphan = *at;
        if (!closed && dt_grad_test(orphan->handle) == DT_IN_PROGRESS) {
            at = &orphan->next;
            continue;
        }
        *at = orphan->next;
        if (!closed) /* else the engine has freed it */
            dt_grad_free(orphan->handle);
        free_name(state, &orphan->key);
        Py_XDECREF(orphan->keep);
        PyMem_Free(orphan);
    }
}

/* ---- starting ---- */

/* An operation and the memory that its pointers lead to. */
struct description {
    int64_t shape[DT_GRAD_DIMS];
    int64_t *splits;
};

/* (dtype, wire, element_bytes, shape, in, out, splits or None) */
static bool parse_tensor(PyObject *tuple, int members, dt_grad_op_t *op,
                         struct description *description)
{
    PyObject *shape, *splits;
    int dtype, wire, bytes;
    unsigned long long in, out;
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "a tensor is a tuple here");
        return false;
    }
    if (!PyArg_ParseTuple(tuple, ONE_TENSOR, &dtype, &wire, &bytes,
                          &PyTuple_Type, &shape, &in, &out, &splits))
        return false;
    op->dtype = (dt_dtype_t)dtype;
    op->wire = (dt_dtype_t)wire;
    op->element_bytes = (size_t)bytes;
    op->in = (const void *)(uintptr_t)in;
    op->out = (void *)(uintptr_t)out;
    op->shape = description->shape;
    op->ndim =
        dt_py_integers(shape, description->shape, DT_GRAD_DIMS, "dimensions");
    if (op->ndim < 0 || splits == Py_None)
        return op->ndim >= 0;
    description->splits =
        PyMem_Malloc((size_t)members * sizeof(*description->splits));
    if (!description->splits) {
        PyErr_NoMemory();
        return false;
    }
    op->splits = description->splits;
    int n = dt_py_integers(splits, description->splits, members, "splits");
    if (n >= 0 && n != members)
        PyErr_Format(PyExc_ValueError,
                     "splits: %d, but the process set has %d ranks: one for "
                     "each",
                     n, members);
    return n == members;
}

static struct work *create(PyObject *module, PyObject *keep, int n, int members)
{
    struct state *state = PyModule_GetState(module);
    allocfunc alloc = (allocfunc)PyType_GetSlot(state->work_type, Py_tp_alloc);
    struct work *work = (struct work *)alloc(state->work_type, 0);
    if (!work)
        return NULL;
    Py_INCREF(module);
    work->module = module;
    work->state = state;
    work->generation = state->generation;
    work->n = n;
    work->members = members;
    Py_INCREF(keep);
    work->keep = keep;
    return work;
}

/* Take the name, or ValueError if it is under way. */
static bool take_name(struct work *work, int set, const char *name)
{
    PyObject *key = PyUnicode_FromFormat("%d %s", set, name);
    int taken = key ? PySet_Contains(work->state->names, key) : -1;
    if (taken == 1)
        PyErr_Format(PyExc_ValueError,
                     "'%s' is under way on this rank already: wait for it, or "
                     "take another name",
                     name);
    if (taken != 0 || PySet_Add(work->state->names, key) < 0) {
        Py_XDECREF(key);
        return false;
    }
    work->key = key;
    return true;
}

/* Start what the operations describe; a Work, or NULL and an exception. */
static PyObject *start(PyObject *module, const char *name,
                       const dt_grad_op_t *ops, int n, int members,
                       dt_stream_t stream, PyObject *keep)
{
    struct state *state = PyModule_GetState(module);
    struct work *work = create(module, keep, n, members);
    if (!work)
        return NULL;
    if (!name || take_name(work, ops[0].set, name)) {
        dt_result_t rc =
            dt_grad_start_on(state->grad, name, ops, n, stream, &work->handle);
        if (rc == DT_SUCCESS)
            return (PyObject *)work;
        work->handle = NULL;
        free_name(state, &work->key);
        dt_py_call_error(state, rc);
    }
    Py_DECREF(work);
    return NULL;
}

PyObject *dt_py_start(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    dt_grad_op_t op = {0};
    PyObject *tensors, *keep;
    const char *name;
    unsigned long long stream = 0;
    int kind;
    if (!dt_py_engine(state) ||
        !PyArg_ParseTuple(args, "iziiiddO!O|K", &kind, &name, &op.op, &op.set,
                          &op.root, &op.prescale, &op.postscale, &PyTuple_Type,
                          &tensors, &keep, &stream))
        return NULL;
    op.kind = (dt_grad_kind_t)kind;
    const int members = dt_grad_set_size(state->grad, op.set);
    if (members < 0)
        return dt_py_call_error(state, members);
    const Py_ssize_t n = PyTuple_Size(tensors);
    dt_grad_op_t *ops = PyMem_Calloc((size_t)n + 1, sizeof(*ops));
    struct description *texts = PyMem_Calloc((size_t)n + 1, sizeof(*texts));
    PyObject *result = NULL;
    Py_ssize_t parsed = 0;
    if (!ops || !texts)
        PyErr_NoMemory();
    else
        for (; parsed < n; parsed++) {
            ops[parsed] = op;
            if (!parse_tensor(PyTuple_GetItem(tensors, parsed), members,
                              &ops[parsed], &texts[parsed]))
                break;
        }
    if (ops && texts && parsed == n)
        result = start(module, name, ops, (int)n, members,
                       (dt_stream_t)(uintptr_t)stream, keep);
    for (Py_ssize_t i = 0; texts && i < n; i++)
        PyMem_Free(texts[i].splits);
    PyMem_Free(ops);
    PyMem_Free(texts);
    return result;
}

/* ---- what it has ---- */

/* Whether the handle is one of the engine that is open; else an exception. */
static bool is_current(struct work *work)
{
    if (work->state->grad && work->state->generation == work->generation)
        return true;
    PyErr_SetString(work->state->internal_error,
                    "slurm_dt was shut down before the operation was complete");
    return false;
}

static PyObject *work_test(PyObject *self, PyObject *none)
{
    struct work *work = (struct work *)self;
    (void)none;
    /* what was shut down is over, and its wait says so */
    bool open =
        work->state->grad && work->state->generation == work->generation;
    return PyBool_FromLong(!open ||
                           dt_grad_test(work->handle) != DT_IN_PROGRESS);
}

static dt_result_t wait_slice(void *arg, double seconds)
{
    return dt_grad_wait(arg, seconds);
}

static PyObject *work_wait(PyObject *self, PyObject *none)
{
    struct work *work = (struct work *)self;
    dt_result_t rc;
    (void)none;
    if (!is_current(work) ||
        !dt_py_wait(work->state, wait_slice, work->handle, &rc))
        return NULL;
    free_name(work->state, &work->key);
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(work->state, rc);
    Py_RETURN_NONE;
}

static PyObject *tuple_of(const int64_t *numbers, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++)
        if (PyTuple_SetItem(tuple, i, PyLong_FromLongLong(numbers[i])) < 0)
            Py_CLEAR(tuple);
    return tuple;
}

/* output(i): the shape, and the rows from each rank of the set */
static PyObject *work_output(PyObject *self, PyObject *args)
{
    struct work *work = (struct work *)self;
    int64_t shape[DT_GRAD_DIMS];
    int i, ndim;
    if (!PyArg_ParseTuple(args, "i", &i) || !is_current(work))
        return NULL;
    int64_t *received =
        PyMem_Calloc((size_t)work->members + 1, sizeof(*received));
    if (!received)
        return PyErr_NoMemory();
    dt_result_t rc = dt_grad_output(work->handle, i, &ndim, shape, received);
    PyObject *result = NULL;
    if (rc != DT_SUCCESS)
        dt_py_wait_error(work->state, rc);
    else
        result = Py_BuildValue("NN", tuple_of(shape, ndim),
                               tuple_of(received, work->members));
    PyMem_Free(received);
    return result;
}

/* take(i, address, stream): copy output i there */
static PyObject *work_take(PyObject *self, PyObject *args)
{
    struct work *work = (struct work *)self;
    unsigned long long address, stream = 0;
    dt_result_t rc;
    int i;
    if (!PyArg_ParseTuple(args, "iK|K", &i, &address, &stream) ||
        !is_current(work))
        return NULL;
    work->state->waiting++;
    Py_BEGIN_ALLOW_THREADS
    rc = dt_grad_take_on(work->handle, i, (void *)(uintptr_t)address,
                         (dt_stream_t)(uintptr_t)stream);
    Py_END_ALLOW_THREADS
    work->state->waiting--;
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(work->state, rc);
    Py_RETURN_NONE;
}

/* Tensors and name stay until it is complete and another wait sees it. */
static void leave(struct work *work)
{
    if (!work->handle || !work->state->grad ||
        work->state->generation != work->generation)
        return;
    struct orphan *orphan = NULL;
    if (work->key || dt_grad_test(work->handle) == DT_IN_PROGRESS)
        orphan = PyMem_Malloc(sizeof(*orphan));
    if (!orphan) {
        dt_grad_free(work->handle);
        return;
    }
    *orphan = (struct orphan){work->state->orphans, work->handle, work->key,
                              work->keep};
    work->state->orphans = orphan;
    work->key = work->keep = NULL;
}

static void work_dealloc(PyObject *self)
{
    struct work *work = (struct work *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    if (work->module) {
        leave(work);
        Py_XDECREF(work->key);
        Py_XDECREF(work->keep);
        Py_DECREF(work->module);
    }
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"test", work_test, METH_NOARGS, "whether it is over"},
    {"wait", work_wait, METH_NOARGS, "until it is over"},
    {"output", work_output, METH_VARARGS, "output(i): shape, received"},
    {"take", work_take, METH_VARARGS,
     "take(i, address[, stream]): copy output i"},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, work_dealloc},
    {Py_tp_methods, methods},
    {0},
};

PyType_Spec dt_py_work_spec = {
    .name = "slurm_dt._dt.Work",
    .basicsize = sizeof(struct work),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
