/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* module.c - slurm_dt._dt: the world, the engine and its process sets */
#include "ext.h"

#define SLICE 0.1 /* seconds */

/* ---- errors and waits ---- */

PyObject *dt_py_wait_error(struct state *state, dt_result_t rc)
{
    PyErr_SetString(rc == DT_ERR_NO_MEMORY ? PyExc_MemoryError
                                           : state->internal_error,
                    dt_last_error());
    return NULL;
}

PyObject *dt_py_call_error(struct state *state, dt_result_t rc)
{
    if (rc != DT_ERR_INVALID_ARG && rc != DT_ERR_UNSUPPORTED)
        return dt_py_wait_error(state, rc);
    PyErr_SetString(rc == DT_ERR_INVALID_ARG ? PyExc_ValueError
                                             : PyExc_NotImplementedError,
                    dt_last_error());
    return NULL;
}

dt_grad_t dt_py_engine(struct state *state)
{
    if (!state->grad)
        PyErr_SetString(PyExc_ValueError,
                        "slurm_dt is not initialized: call init() first");
    return state->grad;
}

bool dt_py_wait(struct state *state,
                dt_result_t (*wait)(void *arg, double seconds), void *arg,
                dt_result_t *rc)
{
    dt_py_reap(state, false);
    for (;;) {
        state->waiting++;
        Py_BEGIN_ALLOW_THREADS
        *rc = wait(arg, SLICE);
        Py_END_ALLOW_THREADS
        state->waiting--;
        if (*rc != DT_IN_PROGRESS)
            return true;
        if (PyErr_CheckSignals() < 0)
            return false;
    }
}

int dt_py_integers(PyObject *sequence, int64_t *numbers, int max,
                   const char *what)
{
    Py_ssize_t n = PySequence_Size(sequence);
    if (n < 0)
        return -1;
    if (n > max) {
        PyErr_Format(PyExc_ValueError, "%s: %zd are too many, at most %d", what,
                     n, max);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        numbers[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return (int)n;
}

/* ---- the world ---- */

static PyObject *world_init(PyObject *module, PyObject *none)
{
    (void)none;
    dt_result_t rc;
    Py_BEGIN_ALLOW_THREADS
    rc = dt_init();
    Py_END_ALLOW_THREADS
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(PyModule_GetState(module), rc);
    Py_RETURN_NONE;
}

static PyObject *world_finalize(PyObject *module, PyObject *none)
{
    (void)none;
    dt_result_t rc;
    Py_BEGIN_ALLOW_THREADS
    rc = dt_finalize();
    Py_END_ALLOW_THREADS
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(PyModule_GetState(module), rc);
    Py_RETURN_NONE;
}

/* RuntimeError: this world cannot be left yet. */
static bool have_no_comms(const struct state *state)
{
    if (state->comms > 0)
        PyErr_Format(PyExc_RuntimeError,
                     "%d communicators of torch.distributed are left: call "
                     "destroy_process_group() first",
                     state->comms);
    return state->comms == 0;
}

static PyObject *world_reinit(PyObject *module, PyObject *none)
{
    (void)none;
    struct state *state = PyModule_GetState(module);
    dt_result_t rc;
    if (!have_no_comms(state))
        return NULL;
    if (state->checkpoints > 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a checkpoint directory is open: close() it first");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    dt_py_leave_world();
    rc = dt_reinit();
    Py_END_ALLOW_THREADS
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(state, rc);
    Py_RETURN_NONE;
}

static PyObject *world_revoke(PyObject *module, PyObject *none)
{
    (void)none;
    if (!have_no_comms(PyModule_GetState(module)))
        return NULL;
    dt_comm_t world = dt_comm_world();
    dt_result_t rc = world ? dt_comm_revoke(world) : DT_SUCCESS;
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(PyModule_GetState(module), rc);
    Py_RETURN_NONE;
}

static PyObject *world_place(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return Py_BuildValue("iiiiii", dt_rank(), dt_size(), dt_local_rank(),
                         dt_local_size(), dt_node_rank(), dt_num_nodes());
}

/* ---- the engine ---- */

static PyObject *engine_open(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    Py_ssize_t bucket, first;
    dt_grad_options_t options = {0};
    if (!PyArg_ParseTuple(args, "nndd", &bucket, &first, &options.stall_seconds,
                          &options.stall_fatal))
        return NULL;
    options.bucket_bytes = (size_t)bucket;
    options.first_bucket_bytes = (size_t)first;
    if (state->grad) {
        PyErr_SetString(PyExc_ValueError, "the engine is open already");
        return NULL;
    }
    dt_grad_t grad = NULL;
    dt_result_t rc;
    Py_BEGIN_ALLOW_THREADS
    rc = dt_grad_open(&options, &grad);
    Py_END_ALLOW_THREADS
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(state, rc);
    state->grad = grad;
    state->generation++;
    Py_RETURN_NONE;
}

static PyObject *engine_close(PyObject *module, PyObject *none)
{
    (void)none;
    struct state *state = PyModule_GetState(module);
    if (state->waiting > 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "shutdown: another thread waits for an operation; let "
                        "it end first");
        return NULL;
    }
    dt_grad_t grad = state->grad;
    dt_result_t rc;
    state->grad = NULL; /* what is used after this finds it closed */
    Py_BEGIN_ALLOW_THREADS
    rc = dt_grad_close(grad);
    Py_END_ALLOW_THREADS
    dt_py_reap(state, true);
    if (PySet_Clear(state->names) < 0 ||
        PyList_SetSlice(state->lost, 0, PyList_Size(state->lost), NULL) < 0)
        return NULL;
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(state, rc);
    Py_RETURN_NONE;
}

struct join {
    dt_grad_t grad;
    int last;
};

static dt_result_t wait_join(void *arg, double seconds)
{
    struct join *join = arg;
    return dt_grad_join(join->grad, seconds, &join->last);
}

static PyObject *engine_join(PyObject *module, PyObject *none)
{
    (void)none;
    struct state *state = PyModule_GetState(module);
    struct join join = {.grad = dt_py_engine(state)};
    dt_result_t rc;
    if (!join.grad || !dt_py_wait(state, wait_join, &join, &rc))
        return NULL;
    if (rc != DT_SUCCESS)
        return dt_py_wait_error(state, rc);
    return PyLong_FromLong(join.last);
}

static PyObject *engine_timeline(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    const char *path;
    if (!dt_py_engine(state) || !PyArg_ParseTuple(args, "z", &path))
        return NULL;
    dt_result_t rc = dt_grad_timeline(state->grad, path);
    if (rc == DT_ERR_IO) {
        PyErr_SetString(PyExc_OSError, dt_last_error());
        return NULL;
    }
    if (rc != DT_SUCCESS)
        return dt_py_call_error(state, rc);
    Py_RETURN_NONE;
}

static PyObject *engine_stats(PyObject *module, PyObject *none)
{
    (void)none;
    struct state *state = PyModule_GetState(module);
    dt_grad_stats_t s;
    if (!dt_py_engine(state))
        return NULL;
    dt_result_t rc = dt_grad_stats(state->grad, &s);
    if (rc != DT_SUCCESS)
        return dt_py_call_error(state, rc);
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsdsdsK}", "operations", s.operations, "gradients",
        s.gradients, "bytes", s.bytes, "wire_bytes", s.wire_bytes, "rounds",
        s.rounds, "collectives", s.collectives, "buckets", s.buckets, "breaks",
        s.breaks, "steps", s.steps, "wait_seconds", s.wait_seconds,
        "busy_seconds", s.busy_seconds, "held_bytes", s.held_bytes);
}

/* ---- process sets ---- */

static PyObject *set_add(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *sequence;
    if (!dt_py_engine(state) || !PyArg_ParseTuple(args, "O", &sequence))
        return NULL;
    Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0)
        return NULL;
    int set = -1, n = -1;
    int64_t *wide = PyMem_Malloc(((size_t)size + 1) * sizeof(*wide));
    int *ranks = PyMem_Malloc(((size_t)size + 1) * sizeof(*ranks));
    dt_result_t rc = DT_SUCCESS;
    if (!wide || !ranks)
        PyErr_NoMemory();
    else
        n = dt_py_integers(sequence, wide, (int)size, "ranks");
    for (int i = 0; i < n; i++)
        ranks[i] = wide[i] == (int)wide[i] ? (int)wide[i] : -1;
    if (n >= 0) {
        state->waiting++;
        Py_BEGIN_ALLOW_THREADS
        rc = dt_grad_set_add(state->grad, ranks, n, &set);
        Py_END_ALLOW_THREADS
        state->waiting--;
    }
    PyMem_Free(wide);
    PyMem_Free(ranks);
    if (n < 0)
        return NULL;
    if (rc != DT_SUCCESS)
        return dt_py_call_error(state, rc);
    return PyLong_FromLong(set);
}

static PyObject *set_remove(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    int set;
    if (!dt_py_engine(state) || !PyArg_ParseTuple(args, "i", &set))
        return NULL;
    dt_result_t rc;
    state->waiting++;
    Py_BEGIN_ALLOW_THREADS
    rc = dt_grad_set_remove(state->grad, set);
    Py_END_ALLOW_THREADS
    state->waiting--;
    if (rc != DT_SUCCESS)
        return dt_py_call_error(state, rc);
    Py_RETURN_NONE;
}

/* (this rank's number in the set or -1, its size) */
static PyObject *set_place(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    int set;
    if (!dt_py_engine(state) || !PyArg_ParseTuple(args, "i", &set))
        return NULL;
    int size = dt_grad_set_size(state->grad, set);
    if (size < 0)
        return dt_py_call_error(state, size);
    return Py_BuildValue("ii", dt_grad_set_rank(state->grad, set), size);
}

/* A list of the numbers that a function of dt_grad.h gives. */
static PyObject *numbers(struct state *state, int set,
                         dt_result_t (*ask)(dt_grad_t, int, int *, int *))
{
    int n = 0;
    dt_result_t rc = ask(state->grad, set, NULL, &n);
    if (rc != DT_SUCCESS && n <= 0)
        return dt_py_call_error(state, rc);
    int *list = PyMem_Malloc(((size_t)n + 1) * sizeof(*list));
    if (!list)
        return PyErr_NoMemory();
    rc = ask(state->grad, set, list, &n);
    PyObject *result = NULL;
    if (rc != DT_SUCCESS)
        dt_py_call_error(state, rc);
    else
        result = PyList_New(n);
    for (int i = 0; result && i < n; i++)
        if (PyList_SetItem(result, i, PyLong_FromLong(list[i])) < 0)
            Py_CLEAR(result);
    PyMem_Free(list);
    return result;
}

static dt_result_t ask_sets(dt_grad_t grad, int set, int *list, int *n)
{
    (void)set;
    return dt_grad_sets(grad, list, n);
}

static PyObject *set_list(PyObject *module, PyObject *none)
{
    (void)none;
    struct state *state = PyModule_GetState(module);
    return dt_py_engine(state) ? numbers(state, 0, ask_sets) : NULL;
}

static PyObject *set_ranks(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    int set;
    if (!dt_py_engine(state) || !PyArg_ParseTuple(args, "i", &set))
        return NULL;
    return numbers(state, set, dt_grad_set_ranks);
}

/* ---- the module ---- */

static PyMethodDef functions[] = {
    {"init", world_init, METH_NOARGS, "dt_init()"},
    {"finalize", world_finalize, METH_NOARGS, "dt_finalize()"},
    {"reinit", world_reinit, METH_NOARGS,
     "dt_reinit(): the world of those that live"},
    {"revoke", world_revoke, METH_NOARGS,
     "dt_comm_revoke(), before reinit(): what is under way fails on all ranks"},
    {"place", world_place, METH_NOARGS,
     "rank, size, local rank, local size, node, nodes"},
    {"open", engine_open, METH_VARARGS,
     "open(bucket_bytes, first_bucket_bytes, stall_seconds, stall_fatal)"},
    {"close", engine_close, METH_NOARGS, "dt_grad_close()"},
    {"join", engine_join, METH_NOARGS, "the rank that was the last to join"},
    {"timeline", engine_timeline, METH_VARARGS, "timeline(path or None)"},
    {"stats", engine_stats, METH_NOARGS, "what the engine did, a dict"},
    {"set_add", set_add, METH_VARARGS, "set_add(ranks): the new set's number"},
    {"set_remove", set_remove, METH_VARARGS, "set_remove(set)"},
    {"set_place", set_place, METH_VARARGS, "set_place(set): rank, size"},
    {"set_list", set_list, METH_NOARGS, "the numbers of the sets"},
    {"set_ranks", set_ranks, METH_VARARGS, "set_ranks(set): a list"},
    {"start", dt_py_start, METH_VARARGS,
     "start(kind, name, op, set, root, prescale, postscale, tensors, keep[, "
     "stream]): Work"},
    {"gradients", dt_py_gradients, METH_VARARGS,
     "gradients(set, passes, strided, stream_of): Gradients"},
    {"comm", dt_py_comm, METH_O, "comm(ranks, or None for the world): Comm"},
    {"poll", dt_py_poll, METH_VARARGS,
     "poll(requests, known, seconds): until one is over or more have started"},
    {"started", dt_py_started, METH_NOARGS, "how many requests there were"},
    {"checkpoint", dt_py_checkpoint, METH_VARARGS,
     "checkpoint(dir or None, keep): Checkpoint"},
    {"should_exit", dt_py_should_exit, METH_NOARGS, "dt_should_exit()"},
    {"time_left", dt_py_time_left, METH_NOARGS, "dt_time_left()"},
    {"run", dt_py_run, METH_NOARGS, "dt_run_id(), dt_restart_count()"},
    {NULL},
};

static int intern(PyObject **name, const char *text)
{
    *name = PyUnicode_InternFromString(text);
    return *name ? 0 : -1;
}

static int add_type(PyObject *module, PyTypeObject **type, PyType_Spec *spec,
                    const char *name)
{
    PyObject *made = PyType_FromSpec(spec);
    *type = (PyTypeObject *)made;
    if (!made)
        return -1;
    Py_INCREF(made);
    return PyModule_AddObject(module, name, made);
}

static int fill(PyObject *module)
{
    struct state *state = PyModule_GetState(module);
    state->lost = PyList_New(0);
    state->names = PySet_New(NULL);
    state->internal_error = PyErr_NewExceptionWithDoc(
        "slurm_dt.HorovodInternalError",
        "A collective failed, on all of its ranks: they disagree about it, or "
        "a rank has ended.",
        PyExc_RuntimeError, NULL);
    state->mismatch = PyErr_NewExceptionWithDoc(
        "slurm_dt.ckpt.Mismatch",
        "A checkpoint is intact, but not of this program: its tensors have "
        "other names, types or shapes.",
        PyExc_ValueError, NULL);
    if (!state->lost || !state->names || !state->internal_error ||
        !state->mismatch || intern(&state->grad_name, "grad") < 0 ||
        intern(&state->layout_name, "layout") < 0 ||
        intern(&state->dtype_name, "dtype") < 0 ||
        intern(&state->contiguous_name, "is_contiguous") < 0 ||
        intern(&state->numel_name, "numel") < 0 ||
        intern(&state->address_name, "data_ptr") < 0 ||
        intern(&state->needs_name, "requires_grad") < 0 ||
        intern(&state->device_name, "get_device") < 0 ||
        add_type(module, &state->work_type, &dt_py_work_spec, "Work") < 0 ||
        add_type(module, &state->gradients_type, &dt_py_gradients_spec,
                 "Gradients") < 0 ||
        add_type(module, &state->gradient_type, &dt_py_gradient_spec,
                 "Gradient") < 0 ||
        add_type(module, &state->comm_type, &dt_py_comm_spec, "Comm") < 0 ||
        add_type(module, &state->request_type, &dt_py_request_spec, "Request") <
            0 ||
        add_type(module, &state->checkpoint_type, &dt_py_checkpoint_spec,
                 "Checkpoint") < 0)
        return -1;
    Py_INCREF(state->mismatch);
    if (PyModule_AddObject(module, "Mismatch", state->mismatch) < 0)
        return -1;
    Py_INCREF(state->internal_error);
    return PyModule_AddObject(module, "HorovodInternalError",
                              state->internal_error);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "slurm_dt._dt",
    .m_doc = "libdt's collectives and checkpoints (dt.h), and its gradient "
             "engine (dt_grad.h), for the modules beside it",
    .m_size = sizeof(struct state),
    .m_methods = functions,
};

/* Of one phase: the state lives as long as the process, as libdt's world does.
 */
PyMODINIT_FUNC PyInit__dt(void);

PyMODINIT_FUNC PyInit__dt(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && fill(module) < 0)
        Py_CLEAR(module);
    return module;
}
