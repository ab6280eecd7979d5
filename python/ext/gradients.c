/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gradients.c - the gradients of an optimizer: slurm_dt._dt.Gradients, a plan,
 * and Gradient, which autograd calls when one is there.
 *
 * The plan is made by the first step, which all ranks of the set take part in,
 * and again after a shutdown and init. Until it is there, a call is only noted.
 * The plan sends in the order in which this step submits, so that is the order
 * of the calls: the gradients that are there first go while the others are
 * still computed. */
#include "ext.h"

#include <string.h>

struct gradients {
    PyObject_HEAD PyObject *module; /* so that the state stays */
    struct state *state;
    PyObject *list;  /* of Gradient, whose number is its place */
    PyObject *noted; /* of Gradient: called in this step, without a plan */
    int set, passes;
    int pending;         /* gradients that were called since the last step */
    unsigned generation; /* of the engine that has the plan */
    dt_grad_plan_t plan; /* NULL until the first step */
};

struct gradient {
    PyObject_HEAD struct gradients *all; /* NULL when it was cleared */
    PyObject *param;                     /* whose gradient it is */
    PyObject *dtype;                     /* that the gradient has */
    PyObject *other;                     /* called for what is not simple */
    PyObject *held; /* the tensor that the engine borrows */
    char *name;
    dt_grad_op_t op;
    int64_t shape[DT_GRAD_DIMS];
    long long numel;
    bool planned;   /* else `other` does it all */
    bool submitted; /* to the plan, or `other` did it */
    int left;       /* passes until it is to be submitted */
    int id;         /* in the plan */
};

static bool has_plan(const struct gradients *all)
{
    return all->plan && all->state->grad &&
           all->generation == all->state->generation;
}

/* ---- one gradient ---- */

/* A method without arguments that gives a number. */
static bool call_number(PyObject *object, PyObject *name, long long *number)
{
    PyObject *value = PyObject_CallMethodObjArgs(object, name, NULL);
    if (!value)
        return false;
    *number = (long long)PyLong_AsUnsignedLongLong(value);
    Py_DECREF(value);
    return !PyErr_Occurred();
}

/* Whether an attribute is this object; whether a method says true; -1 for an
 * exception. */
static int attribute_is(PyObject *object, PyObject *name, PyObject *wanted)
{
    PyObject *value = PyObject_GetAttr(object, name);
    Py_XDECREF(value); /* dtypes and layouts live for ever */
    return value ? value == wanted : -1;
}

static int method_is_true(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_CallMethodObjArgs(object, name, NULL);
    int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth;
}

/* The current stream of a tensor's GPU, 1 (cudaStreamLegacy) for the default
 * one; DT_STREAM_NONE for a tensor of the host. */
static bool find_stream(const struct state *state, PyObject *tensor,
                        dt_stream_t *stream)
{
    *stream = DT_STREAM_NONE;
    if (!state->stream_of)
        return true;
    PyObject *device =
        PyObject_CallMethodObjArgs(tensor, state->device_name, NULL);
    long number = device ? PyLong_AsLong(device) : -1;
    PyObject *value = NULL;
    if (number >= 0)
        value = PyObject_CallFunctionObjArgs(state->stream_of, device, NULL);
    if (value)
        *stream = (dt_stream_t)(uintptr_t)PyLong_AsUnsignedLongLong(value);
    if (value && !*stream)
        *stream = (dt_stream_t)1;
    Py_XDECREF(value);
    Py_XDECREF(device);
    return !PyErr_Occurred();
}

/* Give a contiguous tensor of our type to the plan; it is kept alive. */
static bool submit_tensor(struct gradient *g, PyObject *tensor)
{
    struct gradients *all = g->all;
    long long address, numel;
    dt_stream_t stream;
    if (!call_number(tensor, all->state->numel_name, &numel) ||
        !call_number(tensor, all->state->address_name, &address) ||
        !find_stream(all->state, tensor, &stream))
        return false;
    if (numel != g->numel) {
        PyErr_Format(PyExc_ValueError,
                     "the gradient of '%s' has %lld elements, and had %lld "
                     "when the optimizer was made",
                     g->name, numel, g->numel);
        return false;
    }
    void *p = (void *)(uintptr_t)address;
    dt_result_t rc = dt_grad_plan_submit_on(all->plan, g->id, p, p, stream);
    if (rc != DT_SUCCESS) {
        dt_py_call_error(all->state, rc);
        return false;
    }
    Py_INCREF(tensor);
    Py_XDECREF(g->held);
    g->held = tensor;
    g->submitted = true;
    return true;
}

/* 1 if the gradient can go as it is: dense, contiguous, of the type that it
 * had; 0 if not; -1 for an exception. */
static int is_simple(struct gradient *g, PyObject *grad)
{
    const struct state *state = g->all->state;
    if (!g->planned || grad == Py_None)
        return 0;
    int simple = attribute_is(grad, state->layout_name, state->strided);
    if (simple == 1)
        simple = attribute_is(grad, state->dtype_name, g->dtype);
    if (simple == 1)
        simple = method_is_true(grad, state->contiguous_name);
    return simple;
}

static bool submit(struct gradient *g)
{
    PyObject *grad = PyObject_GetAttr(g->param, g->all->state->grad_name);
    if (!grad)
        return false;
    int simple = is_simple(g, grad);
    bool done = simple == 1 && submit_tensor(g, grad);
    Py_DECREF(grad);
    if (simple != 0)
        return done;
    PyObject *result =
        PyObject_CallFunctionObjArgs(g->other, (PyObject *)g, NULL);
    Py_XDECREF(result);
    if (result)
        g->submitted = true;
    return result;
}

/* ---- what autograd and `other` call ---- */

/* Called when the gradient was accumulated; the arguments depend on torch's
 * version, and are not needed. */
static PyObject *gradient_call(PyObject *self, PyObject *args, PyObject *names)
{
    struct gradient *g = (struct gradient *)self;
    (void)args;
    (void)names;
    if (!g->all)
        Py_RETURN_NONE;
    if (g->left <= 0 || g->submitted) {
        PyErr_Format(PyExc_AssertionError,
                     "the gradient of '%s' was computed more than "
                     "backward_passes_per_step times before step(): increase "
                     "backward_passes_per_step to accumulate gradients locally",
                     g->name);
        return NULL;
    }
    if (g->left == g->all->passes)
        g->all->pending++;
    if (--g->left > 0)
        Py_RETURN_NONE;
    if (has_plan(g->all) || !g->planned
            ? !submit(g)
            : PyList_Append(g->all->noted, self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *gradient_submit(PyObject *self, PyObject *tensor)
{
    struct gradient *g = (struct gradient *)self;
    if (!g->all)
        Py_RETURN_NONE;
    int contiguous = method_is_true(tensor, g->all->state->contiguous_name);
    if (contiguous < 0)
        return NULL;
    if (!contiguous || !g->planned || !has_plan(g->all)) {
        PyErr_SetString(PyExc_ValueError, contiguous
                                              ? "this gradient is not of a plan"
                                              : "the tensor is not contiguous");
        return NULL;
    }
    if (!submit_tensor(g, tensor))
        return NULL;
    Py_RETURN_NONE;
}

/* residual(address, restore): copy the residual to count F32, or from them */
static PyObject *gradient_residual(PyObject *self, PyObject *args)
{
    struct gradient *g = (struct gradient *)self;
    unsigned long long address;
    int restore;
    if (!PyArg_ParseTuple(args, "Kp", &address, &restore))
        return NULL;
    if (!g->all || !g->planned || !has_plan(g->all)) {
        PyErr_SetString(PyExc_ValueError, "this gradient is not of a plan");
        return NULL;
    }
    float *residual = (float *)(uintptr_t)address;
    dt_result_t rc = restore
                         ? dt_grad_plan_restore(g->all->plan, g->id, residual,
                                                (size_t)g->numel)
                         : dt_grad_plan_residual(g->all->plan, g->id, residual,
                                                 (size_t)g->numel);
    if (rc != DT_SUCCESS)
        return dt_py_call_error(g->all->state, rc);
    Py_RETURN_NONE;
}

static PyObject *gradient_param(PyObject *self, void *unused)
{
    struct gradient *g = (struct gradient *)self;
    (void)unused;
    Py_INCREF(g->param);
    return g->param;
}

static PyObject *gradient_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(((struct gradient *)self)->name);
}

static PyObject *gradient_planned(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct gradient *)self)->planned);
}

/* ---- all gradients ---- */

/* Register them in a new plan, in the order in which they were added. */
static bool register_all(struct gradients *all, dt_grad_plan_t plan)
{
    const Py_ssize_t n = PyList_Size(all->list);
    for (Py_ssize_t i = 0; i < n; i++) {
        struct gradient *g = (struct gradient *)PyList_GetItem(all->list, i);
        if (!g->planned)
            continue;
        dt_result_t rc = dt_grad_plan_tensor(plan, g->name, &g->op, &g->id);
        if (rc != DT_SUCCESS) {
            dt_py_call_error(all->state, rc);
            return false;
        }
    }
    return true;
}

static bool any_planned(const struct gradients *all)
{
    const Py_ssize_t n = PyList_Size(all->list);
    for (Py_ssize_t i = 0; i < n; i++)
        if (((struct gradient *)PyList_GetItem(all->list, i))->planned)
            return true;
    return false;
}

static void reset(struct gradients *all)
{
    const Py_ssize_t n = PyList_Size(all->list);
    for (Py_ssize_t i = 0; i < n; i++) {
        struct gradient *g = (struct gradient *)PyList_GetItem(all->list, i);
        Py_CLEAR(g->held);
        g->submitted = false;
        g->left = all->passes;
    }
    all->pending = 0;
}

static void end_step(struct gradients *all)
{
    reset(all);
    if (PyList_SetSlice(all->noted, 0, PyList_Size(all->noted), NULL) < 0)
        PyErr_Clear(); /* an order that is not the best */
}

static bool make_plan(struct gradients *all)
{
    dt_grad_t grad = dt_py_engine(all->state);
    dt_grad_plan_t plan = NULL;
    dt_result_t rc;
    if (!grad || has_plan(all) || !any_planned(all))
        return grad;
    if (all->plan)  /* what an engine that was closed had is lost */
        reset(all); /* but the order of the calls is not */
    all->plan = NULL;
    all->state->waiting++;
    Py_BEGIN_ALLOW_THREADS
    rc = dt_grad_plan_create(grad, all->set, &plan);
    Py_END_ALLOW_THREADS
    all->state->waiting--;
    if (rc != DT_SUCCESS) {
        dt_py_wait_error(all->state, rc);
        return false;
    }
    /* one that is not complete is freed by the close of the engine */
    if (!register_all(all, plan))
        return false;
    all->plan = plan;
    all->generation = all->state->generation;
    return true;
}

static dt_result_t wait_step(void *arg, double seconds)
{
    return dt_grad_plan_step(arg, seconds);
}

/* Submit those that are not: as they were called, and the rest from the last to
 * the first, which is the likely order of another backward. */
static bool submit_rest(struct gradients *all)
{
    for (Py_ssize_t i = 0; i < PyList_Size(all->noted); i++) {
        struct gradient *g = (struct gradient *)PyList_GetItem(all->noted, i);
        if (!g->submitted && !submit(g))
            return false;
    }
    for (Py_ssize_t i = PyList_Size(all->list); i-- > 0;) {
        struct gradient *g = (struct gradient *)PyList_GetItem(all->list, i);
        if (!g->submitted && !submit(g))
            return false;
    }
    return true;
}

/* step(): submit those that are not, and wait for all */
static PyObject *gradients_step(PyObject *self, PyObject *none)
{
    struct gradients *all = (struct gradients *)self;
    (void)none;
    if (!make_plan(all) || !submit_rest(all))
        return NULL;
    dt_result_t rc = DT_SUCCESS;
    if (has_plan(all) && !dt_py_wait(all->state, wait_step, all->plan, &rc))
        return NULL;
    end_step(all);
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(all->state, rc);
    Py_RETURN_NONE;
}

/* reset(): forget what was called, unless the engine has it */
static PyObject *gradients_reset(PyObject *self, PyObject *none)
{
    struct gradients *all = (struct gradients *)self;
    dt_result_t rc = DT_SUCCESS;
    (void)none;
    const Py_ssize_t n = PyList_Size(all->list);
    bool under_way = false;
    for (Py_ssize_t i = 0; i < n; i++)
        if (((struct gradient *)PyList_GetItem(all->list, i))->held)
            under_way = true;
    if (under_way && has_plan(all) &&
        !dt_py_wait(all->state, wait_step, all->plan, &rc))
        return NULL;
    end_step(all);
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(all->state, rc);
    Py_RETURN_NONE;
}

/* make_plan(): before the first step; all ranks of the set call it */
static PyObject *gradients_make_plan(PyObject *self, PyObject *none)
{
    (void)none;
    if (!make_plan((struct gradients *)self))
        return NULL;
    Py_RETURN_NONE;
}

/* has_plan(): whether there is one; the first step makes it, for all ranks */
static PyObject *gradients_has_plan(PyObject *self, PyObject *none)
{
    (void)none;
    return PyBool_FromLong(has_plan((struct gradients *)self));
}

/* release(): let go of the parameters; the plan stays until destroy() */
static PyObject *gradients_release(PyObject *self, PyObject *none)
{
    struct gradients *all = (struct gradients *)self;
    (void)none;
    if (PyList_SetSlice(all->noted, 0, PyList_Size(all->noted), NULL) < 0 ||
        PyList_SetSlice(all->list, 0, PyList_Size(all->list), NULL) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* is_free(): whether it was released, and nothing of it is under way */
static PyObject *gradients_is_free(PyObject *self, PyObject *none)
{
    struct gradients *all = (struct gradients *)self;
    (void)none;
    return PyBool_FromLong(PyList_Size(all->list) == 0 && all->pending == 0);
}

/* forget(): the engine has removed the plan, with its process set */
static PyObject *gradients_forget(PyObject *self, PyObject *none)
{
    (void)none;
    ((struct gradients *)self)->plan = NULL;
    Py_RETURN_NONE;
}

/* destroy(): remove the plan; all ranks of the set call it */
static PyObject *gradients_destroy(PyObject *self, PyObject *none)
{
    struct gradients *all = (struct gradients *)self;
    dt_grad_plan_t plan = has_plan(all) ? all->plan : NULL;
    dt_result_t rc;
    (void)none;
    all->plan = NULL;
    all->state->waiting++;
    Py_BEGIN_ALLOW_THREADS
    rc = dt_grad_plan_destroy(plan);
    Py_END_ALLOW_THREADS
    all->state->waiting--;
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(all->state, rc);
    Py_RETURN_NONE;
}

static PyObject *gradients_pending(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromLong(((struct gradients *)self)->pending);
}

static PyObject *gradients_set_passes(PyObject *self, PyObject *args)
{
    struct gradients *all = (struct gradients *)self;
    int passes;
    if (!PyArg_ParseTuple(args, "i", &passes))
        return NULL;
    if (passes < 1) {
        PyErr_SetString(PyExc_ValueError,
                        "backward_passes_per_step must be > 0");
        return NULL;
    }
    all->passes = passes;
    const Py_ssize_t n = PyList_Size(all->list);
    for (Py_ssize_t i = 0; i < n; i++)
        ((struct gradient *)PyList_GetItem(all->list, i))->left = passes;
    all->pending = 0;
    Py_RETURN_NONE;
}

static PyObject *alloc(PyTypeObject *type)
{
    allocfunc function = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return function(type, 0);
}

/* add(name, param, dtype, code, wire, op, shape, prescale, postscale, planned,
 * other): a Gradient */
static PyObject *gradients_add(PyObject *self, PyObject *args)
{
    struct gradients *all = (struct gradients *)self;
    dt_grad_op_t op = {.kind = DT_GRAD_ALLREDUCE, .set = all->set};
    PyObject *param, *dtype, *shape, *other;
    const char *name;
    int code, wire, planned;
    if (!PyArg_ParseTuple(args, "sOOiiiOddpO", &name, &param, &dtype, &code,
                          &wire, &op.op, &shape, &op.prescale, &op.postscale,
                          &planned, &other))
        return NULL;
    struct gradient *g = (struct gradient *)alloc(all->state->gradient_type);
    if (!g)
        return NULL;
    op.dtype = (dt_dtype_t)code;
    op.wire = (dt_dtype_t)wire;
    op.shape = g->shape;
    op.ndim = dt_py_integers(shape, g->shape, DT_GRAD_DIMS, "dimensions");
    g->numel = 1;
    for (int i = 0; i < op.ndim; i++)
        g->numel *= g->shape[i];
    g->op = op;
    g->planned = planned;
    g->left = all->passes;
    g->id = -1;
    Py_INCREF(all);
    g->all = all;
    Py_INCREF(param);
    g->param = param;
    Py_INCREF(dtype);
    g->dtype = dtype;
    Py_INCREF(other);
    g->other = other;
    g->name = PyMem_Malloc(strlen(name) + 1);
    if (g->name)
        strcpy(g->name, name);
    else
        PyErr_NoMemory();
    if (op.ndim >= 0 && g->name && PyList_Append(all->list, (PyObject *)g) == 0)
        return (PyObject *)g;
    Py_DECREF(g);
    return NULL;
}

PyObject *dt_py_gradients(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *strided, *stream_of;
    int set, passes;
    if (!PyArg_ParseTuple(args, "iiOO", &set, &passes, &strided, &stream_of))
        return NULL;
    struct gradients *all = (struct gradients *)alloc(state->gradients_type);
    if (!all)
        return NULL;
    Py_INCREF(module);
    all->module = module;
    all->state = state;
    all->set = set;
    all->passes = passes;
    all->list = PyList_New(0);
    all->noted = PyList_New(0);
    Py_INCREF(strided);
    Py_XDECREF(state->strided);
    state->strided = strided;
    Py_XDECREF(state->stream_of);
    state->stream_of = stream_of == Py_None ? NULL : stream_of;
    Py_XINCREF(state->stream_of);
    if (!all->list || !all->noted)
        Py_CLEAR(all);
    return (PyObject *)all;
}

/* ---- the types: they are in circles, by way of the optimizer ---- */

static int gradient_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct gradient *g = (struct gradient *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)g->all);
    Py_VISIT(g->param);
    Py_VISIT(g->other);
    Py_VISIT(g->held);
    return 0;
}

/* A tensor that the engine still has stays until the engine is closed. */
static int gradient_clear(PyObject *self)
{
    struct gradient *g = (struct gradient *)self;
    if (g->held && g->all && has_plan(g->all) &&
        PyList_Append(g->all->state->lost, g->held) < 0)
        PyErr_Clear();
    struct gradients *all = g->all;
    g->all = NULL;
    Py_XDECREF(all);
    Py_CLEAR(g->held);
    Py_CLEAR(g->param);
    Py_CLEAR(g->dtype);
    Py_CLEAR(g->other);
    return 0;
}

static void gradient_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(self);
    gradient_clear(self);
    PyMem_Free(((struct gradient *)self)->name);
    release(self);
    Py_DECREF(type);
}

static int gradients_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct gradients *)self)->list);
    Py_VISIT(((struct gradients *)self)->noted);
    return 0;
}

static int gradients_clear(PyObject *self)
{
    Py_CLEAR(((struct gradients *)self)->list);
    Py_CLEAR(((struct gradients *)self)->noted);
    return 0;
}

static void gradients_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(self);
    gradients_clear(self);
    Py_XDECREF(((struct gradients *)self)->module);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef gradient_methods[] = {
    {"submit", gradient_submit, METH_O,
     "submit(tensor) in place of param.grad"},
    {"residual", gradient_residual, METH_VARARGS,
     "residual(address, restore): read it, or write it"},
    {NULL},
};

static PyGetSetDef gradient_values[] = {
    {"param", gradient_param, NULL, "whose gradient it is", NULL},
    {"name", gradient_name, NULL, "its name in the plan", NULL},
    {"planned", gradient_planned, NULL, "whether the plan has it", NULL},
    {NULL},
};

static PyType_Slot gradient_slots[] = {
    {Py_tp_dealloc, gradient_dealloc},
    {Py_tp_traverse, gradient_traverse},
    {Py_tp_clear, gradient_clear},
    {Py_tp_call, gradient_call},
    {Py_tp_methods, gradient_methods},
    {Py_tp_getset, gradient_values},
    {0},
};

PyType_Spec dt_py_gradient_spec = {
    .name = "slurm_dt._dt.Gradient",
    .basicsize = sizeof(struct gradient),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = gradient_slots,
};

static PyMethodDef gradients_methods[] = {
    {"add", gradients_add, METH_VARARGS, "add one; its Gradient"},
    {"step", gradients_step, METH_NOARGS, "submit the rest, wait for all"},
    {"reset", gradients_reset, METH_NOARGS, "forget the calls of this step"},
    {"pending", gradients_pending, METH_NOARGS, "how many were called"},
    {"make_plan", gradients_make_plan, METH_NOARGS, "on all ranks"},
    {"has_plan", gradients_has_plan, METH_NOARGS, "whether there is a plan"},
    {"release", gradients_release, METH_NOARGS, "let go of the parameters"},
    {"is_free", gradients_is_free, METH_NOARGS, "released, nothing under way"},
    {"forget", gradients_forget, METH_NOARGS, "the engine removed the plan"},
    {"destroy", gradients_destroy, METH_NOARGS, "remove the plan; collective"},
    {"set_passes", gradients_set_passes, METH_VARARGS, "set_passes(n)"},
    {NULL},
};

static PyType_Slot gradients_slots[] = {
    {Py_tp_dealloc, gradients_dealloc},
    {Py_tp_traverse, gradients_traverse},
    {Py_tp_clear, gradients_clear},
    {Py_tp_methods, gradients_methods},
    {0},
};

PyType_Spec dt_py_gradients_spec = {
    .name = "slurm_dt._dt.Gradients",
    .basicsize = sizeof(struct gradients),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = gradients_slots,
};
