/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* checkpoint.c - checkpoints: slurm_dt._dt.Checkpoint, and the notice to leave.
 *
 * One thread at a time uses a Checkpoint; a second one gets an exception. The
 * calls that wait release the GIL, and those that have collectives of the world
 * hold its lock meanwhile: saves have a communicator of their own. */
#include <errno.h>

#include "ext.h"

struct checkpoint {
    PyObject_HEAD PyObject *module; /* so that the state stays */
    dt_ckpt_t ckpt;                 /* NULL once it is closed */
    bool busy;                      /* a call has released the GIL */
    PyObject *keep;                 /* a list of what has the tensors' memory */
};

/* A call that waits: what it is given, and its result. */
struct call {
    dt_ckpt_t ckpt;
    int64_t step;
    bool answer;
    char text[sizeof(((struct dt_error *)0)->text)];
};

/* ---- errors ---- */

static int number_of(dt_result_t rc)
{
    switch ((int)rc) {
    case DT_ERR_NO_SPACE:
        return ENOSPC;
    case DT_ERR_BUSY:
        return EBUSY;
    case DT_ERR_CORRUPT:
        return EBADMSG;
    case DT_ERR_IO:
        return EIO;
    default:
        return 0;
    }
}

static PyObject *raise_error(struct state *state, dt_result_t rc,
                             const char *text)
{
    if (number_of(rc)) {
        PyObject *pair = Py_BuildValue("is", number_of(rc), text);
        if (pair)
            PyErr_SetObject(PyExc_OSError, pair);
        Py_XDECREF(pair);
        return NULL;
    }
    PyObject *type = rc == DT_ERR_MISMATCH ? state->mismatch
                     : rc == DT_ERR_INVALID_ARG || rc == DT_ERR_VERSION
                         ? PyExc_ValueError
                     : rc == DT_ERR_UNSUPPORTED ? PyExc_NotImplementedError
                     : rc == DT_ERR_NO_MEMORY   ? PyExc_MemoryError
                                                : state->internal_error;
    PyErr_SetString(type, text);
    return NULL;
}

static struct state *state_of(const struct checkpoint *self)
{
    return PyModule_GetState(self->module);
}

static bool is_usable(const struct checkpoint *self)
{
    if (!self->ckpt)
        PyErr_SetString(PyExc_ValueError, "the checkpoint is closed");
    else if (self->busy)
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread is using the checkpoint: one at a "
                        "time");
    return self->ckpt && !self->busy;
}

/* ---- opening and closing ---- */

PyObject *dt_py_checkpoint(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    const char *dir;
    int keep;
    if (!PyArg_ParseTuple(args, "zi:checkpoint", &dir, &keep))
        return NULL;
    allocfunc alloc =
        (allocfunc)PyType_GetSlot(state->checkpoint_type, Py_tp_alloc);
    struct checkpoint *self =
        (struct checkpoint *)alloc(state->checkpoint_type, 0);
    if (!self)
        return NULL;
    Py_INCREF(module);
    self->module = module;
    self->keep = PyList_New(0);
    if (!self->keep) {
        Py_DECREF(self);
        return NULL;
    }
    char text[sizeof(((struct call *)0)->text)] = "";
    dt_result_t rc;
    Py_BEGIN_ALLOW_THREADS
    dt_py_lock_world();
    rc = dt_ckpt_open(dir, keep, &self->ckpt);
    if (rc != DT_SUCCESS)
        snprintf(text, sizeof(text), "%s", dt_last_error());
    dt_py_unlock_world();
    Py_END_ALLOW_THREADS
    if (rc == DT_SUCCESS) {
        state->checkpoints++;
        return (PyObject *)self;
    }
    Py_DECREF(self);
    return raise_error(state, rc, text);
}

static PyObject *checkpoint_close(PyObject *object, PyObject *none)
{
    struct checkpoint *self = (struct checkpoint *)object;
    (void)none;
    if (!self->ckpt)
        Py_RETURN_NONE;
    if (!is_usable(self))
        return NULL;
    dt_ckpt_t ckpt = self->ckpt;
    self->ckpt = NULL;
    state_of(self)->checkpoints--;
    Py_BEGIN_ALLOW_THREADS
    dt_ckpt_close(ckpt);
    Py_END_ALLOW_THREADS
    if (PyList_SetSlice(self->keep, 0, PyList_Size(self->keep), NULL) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Forget it without waiting for others, as before the end of a program that has
 * failed. */
static PyObject *checkpoint_abandon(PyObject *object, PyObject *none)
{
    struct checkpoint *self = (struct checkpoint *)object;
    (void)none;
    state_of(self)->checkpoints -= self->ckpt != NULL;
    self->ckpt = NULL;
    Py_RETURN_NONE;
}

/* ---- tensors and blobs ---- */

/* A tensor as add() is given it. */
struct tensor {
    const char *name;
    unsigned long long address;
    int dtype, ndim;
    int64_t shape[DT_PY_DIMS], offset[DT_PY_DIMS], extent[DT_PY_DIMS];
};

static bool parse_box(struct tensor *t, PyObject *shape, PyObject *offset,
                      PyObject *extent)
{
    t->ndim = dt_py_integers(shape, t->shape, DT_PY_DIMS, "shape");
    if (t->ndim < 0 || offset == Py_None)
        return t->ndim >= 0;
    int n = dt_py_integers(offset, t->offset, DT_PY_DIMS, "offset");
    int m = n < 0 ? n : dt_py_integers(extent, t->extent, DT_PY_DIMS, "extent");
    if (m >= 0 && (n != t->ndim || m != t->ndim))
        PyErr_Format(PyExc_ValueError,
                     "tensor %s: %d dimensions, but an offset of %d and an "
                     "extent of %d",
                     t->name, t->ndim, n, m);
    return !PyErr_Occurred();
}

/* add(name, address, dtype, shape, offset or None, extent, keep) */
static PyObject *checkpoint_add(PyObject *object, PyObject *args)
{
    struct checkpoint *self = (struct checkpoint *)object;
    struct tensor t = {0};
    PyObject *shape, *offset, *extent, *keep;
    if (!is_usable(self) ||
        !PyArg_ParseTuple(args, "sKiOOOO:add", &t.name, &t.address, &t.dtype,
                          &shape, &offset, &extent, &keep) ||
        !parse_box(&t, shape, offset, extent) ||
        PyList_Append(self->keep, keep) < 0)
        return NULL;
    void *data = (void *)(uintptr_t)t.address;
    dt_result_t rc =
        offset == Py_None
            ? dt_ckpt_add_tensor(self->ckpt, t.name, data, (dt_dtype_t)t.dtype,
                                 t.ndim, t.shape, DT_CKPT_REPLICATED)
            : dt_ckpt_add_slice(self->ckpt, t.name, data, (dt_dtype_t)t.dtype,
                                t.ndim, t.shape, t.offset, t.extent);
    if (rc != DT_SUCCESS)
        return raise_error(state_of(self), rc, dt_last_error());
    Py_RETURN_NONE;
}

/* set_blob(name, bytes, replicated) */
static PyObject *checkpoint_set_blob(PyObject *object, PyObject *args)
{
    struct checkpoint *self = (struct checkpoint *)object;
    const char *name, *data;
    Py_ssize_t bytes;
    int replicated;
    if (!is_usable(self) || !PyArg_ParseTuple(args, "sy#p:set_blob", &name,
                                              &data, &bytes, &replicated))
        return NULL;
    dt_result_t rc = dt_ckpt_set_blob(self->ckpt, name, data, (size_t)bytes,
                                      replicated ? DT_CKPT_REPLICATED : 0);
    if (rc != DT_SUCCESS)
        return raise_error(state_of(self), rc, dt_last_error());
    Py_RETURN_NONE;
}

/* get_blob(name): bytes, or None if there are none */
static PyObject *checkpoint_get_blob(PyObject *object, PyObject *args)
{
    struct checkpoint *self = (struct checkpoint *)object;
    const char *name;
    size_t bytes = 0;
    if (!is_usable(self) || !PyArg_ParseTuple(args, "s:get_blob", &name))
        return NULL;
    dt_result_t rc = dt_ckpt_get_blob(self->ckpt, name, NULL, &bytes);
    if (rc == DT_ERR_NOT_FOUND)
        Py_RETURN_NONE;
    PyObject *blob = NULL;
    if (rc == DT_SUCCESS)
        blob = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (blob)
        rc = dt_ckpt_get_blob(self->ckpt, name, PyBytes_AsString(blob), &bytes);
    if (rc == DT_SUCCESS)
        return blob;
    Py_XDECREF(blob);
    return raise_error(state_of(self), rc, dt_last_error());
}

/* ---- calls that wait ---- */

static dt_result_t do_save(struct call *call)
{
    return dt_ckpt_save(call->ckpt, call->step);
}

static dt_result_t do_save_async(struct call *call)
{
    return dt_ckpt_save_async(call->ckpt, call->step);
}

static dt_result_t do_wait(struct call *call)
{
    return dt_ckpt_wait(call->ckpt);
}

static dt_result_t do_latest(struct call *call)
{
    return dt_ckpt_latest(call->ckpt, &call->step);
}

static dt_result_t do_load(struct call *call)
{
    return dt_ckpt_load(call->ckpt, &call->step);
}

static dt_result_t do_need(struct call *call)
{
    call->answer = dt_ckpt_need(call->ckpt, call->step);
    return DT_SUCCESS;
}

/* Call it without the GIL. False with an exception if it failed; NOT_FOUND
 * makes call->step -1. */
static bool run(struct checkpoint *self, struct call *call,
                dt_result_t (*function)(struct call *))
{
    const bool world =
        function == do_load || function == do_latest || function == do_need;
    dt_result_t rc;
    if (!is_usable(self))
        return false;
    call->ckpt = self->ckpt;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    if (world)
        dt_py_lock_world();
    rc = function(call);
    if (rc != DT_SUCCESS)
        snprintf(call->text, sizeof(call->text), "%s", dt_last_error());
    if (world)
        dt_py_unlock_world();
    Py_END_ALLOW_THREADS
    self->busy = false;
    if (rc == DT_ERR_NOT_FOUND)
        call->step = -1;
    else if (rc != DT_SUCCESS)
        raise_error(state_of(self), rc, call->text);
    return !PyErr_Occurred();
}

static PyObject *with_step(PyObject *self, PyObject *step,
                           dt_result_t (*function)(struct call *))
{
    struct call call = {.step = PyLong_AsLongLong(step)};
    if (PyErr_Occurred() || !run((struct checkpoint *)self, &call, function))
        return NULL;
    if (function == do_need)
        return PyBool_FromLong(call.answer);
    Py_RETURN_NONE;
}

static PyObject *ask_step(PyObject *self,
                          dt_result_t (*function)(struct call *))
{
    struct call call = {0};
    if (!run((struct checkpoint *)self, &call, function))
        return NULL;
    if (call.step < 0)
        Py_RETURN_NONE;
    return PyLong_FromLongLong(call.step);
}

static PyObject *checkpoint_save(PyObject *self, PyObject *step)
{
    return with_step(self, step, do_save);
}

static PyObject *checkpoint_save_async(PyObject *self, PyObject *step)
{
    return with_step(self, step, do_save_async);
}

static PyObject *checkpoint_need(PyObject *self, PyObject *step)
{
    return with_step(self, step, do_need);
}

static PyObject *checkpoint_wait(PyObject *self, PyObject *none)
{
    struct call call = {0};
    (void)none;
    if (!run((struct checkpoint *)self, &call, do_wait))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *checkpoint_latest(PyObject *self, PyObject *none)
{
    (void)none;
    return ask_step(self, do_latest);
}

static PyObject *checkpoint_load(PyObject *self, PyObject *none)
{
    (void)none;
    return ask_step(self, do_load);
}

/* ---- the notice to leave ---- */

PyObject *dt_py_should_exit(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyBool_FromLong(dt_should_exit());
}

PyObject *dt_py_time_left(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyFloat_FromDouble(dt_time_left());
}

PyObject *dt_py_run(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return Py_BuildValue("si", dt_run_id(), dt_restart_count());
}

/* ---- the type ---- */

/* One that nobody has any more: its tensors may be gone, so it is closed. */
static void checkpoint_dealloc(PyObject *object)
{
    struct checkpoint *self = (struct checkpoint *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    if (self->ckpt)
        state_of(self)->checkpoints--;
    if (self->ckpt && dt_comm_world()) {
        Py_BEGIN_ALLOW_THREADS
        dt_ckpt_close(self->ckpt);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(self->keep);
    Py_XDECREF(self->module);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"add", checkpoint_add, METH_VARARGS,
     "add(name, address, dtype, shape, offset or None, extent, keep)"},
    {"set_blob", checkpoint_set_blob, METH_VARARGS,
     "set_blob(name, bytes, replicated)"},
    {"get_blob", checkpoint_get_blob, METH_VARARGS,
     "get_blob(name): bytes or None"},
    {"save", checkpoint_save, METH_O, "save(step)"},
    {"save_async", checkpoint_save_async, METH_O, "save_async(step)"},
    {"wait", checkpoint_wait, METH_NOARGS, "until it is on disk"},
    {"need", checkpoint_need, METH_O, "need(step): whether it is time"},
    {"latest", checkpoint_latest, METH_NOARGS, "the newest step or None"},
    {"load", checkpoint_load, METH_NOARGS, "its step, or None"},
    {"close", checkpoint_close, METH_NOARGS, "wait, then close"},
    {"abandon", checkpoint_abandon, METH_NOARGS, "forget it"},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, checkpoint_dealloc},
    {Py_tp_methods, methods},
    {0},
};

PyType_Spec dt_py_checkpoint_spec = {
    .name = "slurm_dt._dt.Checkpoint",
    .basicsize = sizeof(struct checkpoint),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
