/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* collective.c - communicators and requests: slurm_dt._dt.Comm and Request.
 *
 * Any thread may start, test and wait. libdt wants one thread at a time on a
 * communicator, so each has a lock, which is never waited for with the GIL, and
 * never held over more than one call that does not block; checkpoints hold the
 * world's longer. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "ext.h"

#define SLICE       0.1    /* seconds, between which signals are delivered */
#define YIELDS      200    /* tests before the first sleep */
#define SLEEP_LEAST 20000L /* nanoseconds */
#define SLEEP_MOST  500000L

struct comm {
    PyObject_HEAD PyObject *module; /* so that the state stays */
    dt_comm_t comm;                 /* NULL once it is destroyed */
    pthread_mutex_t own;
    pthread_mutex_t *lock; /* own, or the world's */
    unsigned world;        /* in which it was made */
    int rank, size;
};

struct request {
    PyObject_HEAD struct comm *comm;
    dt_request_t request; /* comm's lock protects this and the next two */
    dt_result_t result;
    char text[sizeof(((struct dt_error *)0)->text)];
    atomic_bool done; /* nothing above changes any more */
    PyObject *keep;   /* what has the memory */
};

enum kind {
    ALLREDUCE,
    REDUCE,
    BCAST,
    ALLGATHER,
    REDUCE_SCATTER,
    ALLTOALL,
    GATHER,
    SCATTER,
    BARRIER,
    SEND,
    RECV,
    KINDS,
};

/* What start() was called with. */
struct call {
    int kind, dtype, op, root;
    unsigned long long in, out, count;
    size_t *counts; /* NULL: even. Else of size: to send, where from; if it is
                     * an alltoall, to receive, where to */
};

/* How many requests this process has started: who waits for some looks whether
 * there are others. */
static _Atomic unsigned long long started;

/* Of the world's communicator, which several objects may stand for, and which
 * checkpoints use, too. */
static pthread_mutex_t world_lock = PTHREAD_MUTEX_INITIALIZER;

/* How many worlds this process has left by dt_reinit, which frees all requests
 * and communicators: what is of an earlier world is not given to libdt any
 * more. Who looks at the number, and then calls libdt, holds this for reading.
 */
static pthread_rwlock_t leaving = PTHREAD_RWLOCK_INITIALIZER;
static unsigned world;

void dt_py_leave_world(void)
{
    pthread_rwlock_wrlock(&leaving);
    world++;
    pthread_rwlock_unlock(&leaving);
}

static const char LEFT[] = "this rank has left that world by reset()";

void dt_py_lock_world(void)
{
    pthread_mutex_lock(&world_lock);
}

void dt_py_unlock_world(void)
{
    pthread_mutex_unlock(&world_lock);
}

/* ---- errors ---- */

static PyObject *raise_error(struct state *state, dt_result_t rc,
                             const char *text)
{
    PyObject *type = rc == DT_ERR_INVALID_ARG   ? PyExc_ValueError
                     : rc == DT_ERR_UNSUPPORTED ? PyExc_NotImplementedError
                     : rc == DT_ERR_NO_MEMORY   ? PyExc_MemoryError
                                                : state->internal_error;
    PyErr_SetString(type, text);
    return NULL;
}

static struct state *state_of(const struct comm *comm)
{
    return PyModule_GetState(comm->module);
}

/* ---- communicators ---- */

static dt_result_t create(const int *ranks, int n, dt_comm_t *comm)
{
    if (n >= 0)
        return dt_comm_create(dt_comm_world(), ranks, n, comm);
    *comm = dt_comm_world();
    return *comm ? DT_SUCCESS : DT_ERR_NOT_INITIALIZED;
}

/* The ranks of a sequence into *ranks, which is to be freed; -1: an exception
 */
static int parse_ranks(PyObject *sequence, int **ranks)
{
    Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0)
        return -1;
    int64_t *wide = PyMem_Malloc(((size_t)size + 1) * sizeof(*wide));
    int n = -1;
    *ranks = PyMem_Malloc(((size_t)size + 1) * sizeof(**ranks));
    if (!wide || !*ranks)
        PyErr_NoMemory();
    else
        n = dt_py_integers(sequence, wide, (int)size, "ranks");
    for (int i = 0; i < n; i++)
        (*ranks)[i] = wide[i] == (int)wide[i] ? (int)wide[i] : -1;
    PyMem_Free(wide);
    return n;
}

static PyObject *wrap(PyObject *module, dt_comm_t comm)
{
    struct state *state = PyModule_GetState(module);
    allocfunc alloc = (allocfunc)PyType_GetSlot(state->comm_type, Py_tp_alloc);
    struct comm *self = (struct comm *)alloc(state->comm_type, 0);
    if (!self)
        return NULL;
    Py_INCREF(module);
    self->module = module;
    self->comm = comm;
    self->world = world;
    state->comms++;
    pthread_mutex_init(&self->own, NULL);
    self->lock = comm == dt_comm_world() ? &world_lock : &self->own;
    self->rank = dt_comm_rank(comm);
    self->size = dt_comm_size(comm);
    return (PyObject *)self;
}

PyObject *dt_py_comm(PyObject *module, PyObject *sequence)
{
    int *ranks = NULL, n = -1;
    if (sequence != Py_None)
        n = parse_ranks(sequence, &ranks);
    dt_comm_t comm = NULL;
    dt_result_t rc = DT_SUCCESS;
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS
        rc = create(ranks, n, &comm);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(ranks);
    if (PyErr_Occurred())
        return NULL;
    if (rc == DT_ERR_NOT_INITIALIZED && !comm)
        return raise_error(PyModule_GetState(module), rc,
                           "slurm_dt is not initialized: call init() first");
    if (rc != DT_SUCCESS)
        return raise_error(PyModule_GetState(module), rc, dt_last_error());
    if (!comm) {
        PyErr_SetString(PyExc_ValueError,
                        "this rank is not among those of the communicator");
        return NULL;
    }
    return wrap(module, comm);
}

/* Free it, which is collective; the world's only ends its use here. After the
 * loss of a rank, of which other calls have told, it waits for nobody. */
static PyObject *comm_destroy(PyObject *object, PyObject *none)
{
    struct comm *self = (struct comm *)object;
    dt_result_t rc = DT_SUCCESS;
    (void)none;
    state_of(self)->comms -= self->comm != NULL;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(self->lock);
    if (self->comm && self->lock != &world_lock)
        rc = dt_comm_destroy(self->comm);
    self->comm = NULL;
    pthread_mutex_unlock(self->lock);
    Py_END_ALLOW_THREADS
    if (rc != DT_SUCCESS && rc != DT_ERR_PROC_FAILED)
        return raise_error(state_of(self), rc, dt_last_error());
    Py_RETURN_NONE;
}

/* End its use here alone: libdt keeps it until the world is left. */
static PyObject *comm_abandon(PyObject *object, PyObject *none)
{
    struct comm *self = (struct comm *)object;
    (void)none;
    state_of(self)->comms -= self->comm != NULL;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(self->lock);
    self->comm = NULL;
    pthread_mutex_unlock(self->lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *comm_place(PyObject *object, PyObject *none)
{
    struct comm *self = (struct comm *)object;
    (void)none;
    return Py_BuildValue("ii", self->rank, self->size);
}

/* ---- starting ---- */

static dt_result_t begin_uneven(const struct comm *comm,
                                const struct call *call, const void *in,
                                void *out, dt_request_t *request)
{
    const size_t n = (size_t)comm->size;
    const size_t *counts = call->counts;
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    if (call->kind == REDUCE_SCATTER)
        return dt_ireduce_scatterv(in, out, counts, dtype, (dt_op_t)call->op,
                                   comm->comm, DT_STREAM_NONE, request);
    if (call->kind == ALLGATHER)
        return dt_iallgatherv(in, out, counts, counts + n, dtype, comm->comm,
                              DT_STREAM_NONE, request);
    return dt_ialltoallv(in, counts, counts + n, out, counts + 2 * n,
                         counts + 3 * n, dtype, comm->comm, DT_STREAM_NONE,
                         request);
}

/* comm's lock is held. */
static dt_result_t begin(const struct comm *comm, const struct call *call,
                         dt_request_t *request)
{
    const void *in = (const void *)(uintptr_t)call->in;
    void *out = (void *)(uintptr_t)call->out;
    const size_t n = (size_t)call->count;
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    dt_op_t op = (dt_op_t)call->op;
    dt_comm_t c = comm->comm;
    const int root = call->root;
    dt_stream_t none = DT_STREAM_NONE;
    if (call->counts)
        return begin_uneven(comm, call, in, out, request);
    switch ((enum kind)call->kind) {
    case ALLREDUCE:
        return dt_iallreduce(in, out, n, dtype, op, c, none, request);
    case REDUCE:
        return dt_ireduce(in, out, n, dtype, op, root, c, none, request);
    case BCAST:
        return dt_ibcast(out, n, dtype, root, c, none, request);
    case ALLGATHER:
        return dt_iallgather(in, out, n, dtype, c, none, request);
    case REDUCE_SCATTER:
        return dt_ireduce_scatter(in, out, n, dtype, op, c, none, request);
    case ALLTOALL:
        return dt_ialltoall(in, out, n, dtype, c, none, request);
    case GATHER:
        return dt_igather(in, out, n, dtype, root, c, none, request);
    case SCATTER:
        return dt_iscatter(in, out, n, dtype, root, c, none, request);
    case BARRIER:
        return dt_ibarrier(c, none, request);
    case SEND:
        return dt_isend(in, n, dtype, root, c, none, request);
    case RECV:
    case KINDS:
        break;
    }
    return dt_irecv(out, n, dtype, root, c, none, request);
}

/* The call's counts, each list followed by where its parts begin. */
static bool parse_counts(const struct comm *comm, PyObject *tuple,
                         struct call *call)
{
    const Py_ssize_t n = comm->size, lists = PyTuple_Size(tuple);
    const bool uneven = call->kind == ALLGATHER ||
                        call->kind == REDUCE_SCATTER || call->kind == ALLTOALL;
    if (!uneven || lists != 1 + (call->kind == ALLTOALL)) {
        PyErr_SetString(PyExc_TypeError, "start: such a call has no counts");
        return false;
    }
    int64_t *wide = PyMem_Malloc((size_t)n * sizeof(*wide));
    call->counts = PyMem_Calloc((size_t)(2 * n * lists), sizeof(size_t));
    if (!wide || !call->counts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; wide && call->counts && i < lists; i++) {
        size_t *counts = call->counts + 2 * n * i, at = 0;
        int got =
            dt_py_integers(PyTuple_GetItem(tuple, i), wide, (int)n, "counts");
        if (got >= 0 && got != n)
            PyErr_Format(PyExc_ValueError,
                         "counts: %d, but the group has %zd ranks", got, n);
        if (PyErr_Occurred())
            break;
        for (Py_ssize_t r = 0; r < n; r++) {
            counts[r] = (size_t)wide[r];
            counts[n + r] = at;
            at += counts[r];
        }
    }
    PyMem_Free(wide);
    return !PyErr_Occurred();
}

static PyObject *start(struct comm *comm, const struct call *call,
                       PyObject *keep)
{
    struct state *state = state_of(comm);
    allocfunc alloc =
        (allocfunc)PyType_GetSlot(state->request_type, Py_tp_alloc);
    struct request *self = (struct request *)alloc(state->request_type, 0);
    if (!self)
        return NULL;
    dt_result_t rc = DT_ERR_NOT_INITIALIZED;
    char text[sizeof(self->text)] = "the process group is destroyed";
    Py_INCREF(comm);
    self->comm = comm;
    Py_INCREF(keep);
    self->keep = keep;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(comm->lock);
    if (comm->comm) {
        rc = begin(comm, call, &self->request);
        if (rc != DT_SUCCESS)
            snprintf(text, sizeof(text), "%s", dt_last_error());
    }
    pthread_mutex_unlock(comm->lock);
    Py_END_ALLOW_THREADS
    if (rc != DT_SUCCESS) {
        Py_DECREF(self);
        return raise_error(state, rc, text);
    }
    atomic_fetch_add(&started, 1);
    return (PyObject *)self;
}

/* start(kind, in, out, count, dtype, op, root, counts, keep) */
static PyObject *comm_start(PyObject *object, PyObject *args)
{
    struct comm *self = (struct comm *)object;
    struct call call = {0};
    PyObject *counts, *keep;
    if (!PyArg_ParseTuple(args, "iKKKiiiOO:start", &call.kind, &call.in,
                          &call.out, &call.count, &call.dtype, &call.op,
                          &call.root, &counts, &keep))
        return NULL;
    if (call.kind < 0 || call.kind >= KINDS) {
        PyErr_SetString(PyExc_ValueError, "start: no such collective");
        return NULL;
    }
    PyObject *result = NULL;
    if (counts == Py_None || parse_counts(self, counts, &call))
        result = start(self, &call, keep);
    PyMem_Free(call.counts);
    return result;
}

/* ---- requests ---- */

/* Is it over? Without the GIL. */
static bool test(struct request *self)
{
    if (atomic_load(&self->done))
        return true;
    pthread_rwlock_rdlock(&leaving);
    pthread_mutex_lock(self->comm->lock);
    if (!atomic_load(&self->done)) {
        const bool left = self->comm->world != world;
        self->result = left ? DT_ERR_PROC_FAILED : dt_test(&self->request);
        if (self->result != DT_SUCCESS && self->result != DT_IN_PROGRESS)
            snprintf(self->text, sizeof(self->text), "%s",
                     left ? LEFT : dt_last_error());
        atomic_store(&self->done, self->result != DT_IN_PROGRESS);
    }
    pthread_mutex_unlock(self->comm->lock);
    pthread_rwlock_unlock(&leaving);
    return atomic_load(&self->done);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Wait until one of them is over, or more than `known` have been started, or
 * the time is. Without the GIL. True: one is over. */
static bool wait_any(struct request **requests, size_t n,
                     unsigned long long known, double until)
{
    long pause = SLEEP_LEAST;
    for (unsigned round = 0;; round++) {
        bool any = false;
        for (size_t i = 0; i < n; i++)
            any |= test(requests[i]);
        if (any || atomic_load(&started) > known)
            return any;
        if (round < YIELDS) {
            sched_yield();
            continue;
        }
        if (now() >= until)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        pause = pause * 2 < SLEEP_MOST ? pause * 2 : SLEEP_MOST;
    }
}

static PyObject *request_test(PyObject *object, PyObject *none)
{
    bool done;
    (void)none;
    Py_BEGIN_ALLOW_THREADS
    done = test((struct request *)object);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(done);
}

/* wait(seconds): whether it was over by then; an exception if it failed */
static PyObject *request_wait(PyObject *object, PyObject *args)
{
    struct request *self = (struct request *)object;
    double seconds;
    if (!PyArg_ParseTuple(args, "d:wait", &seconds))
        return NULL;
    const double end = now() + seconds;
    for (bool done = false; !done;) {
        double slice = now() + SLICE;
        Py_BEGIN_ALLOW_THREADS
        done = wait_any(&self, 1, ~0ull, slice < end ? slice : end);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0)
            return NULL;
        if (!done && now() >= end)
            Py_RETURN_FALSE;
    }
    if (self->result != DT_SUCCESS)
        return raise_error(state_of(self->comm), self->result, self->text);
    Py_RETURN_TRUE;
}

/* poll(requests, known, seconds): until one of the list is over, or others than
 * `known` have been started */
PyObject *dt_py_poll(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *list;
    unsigned long long known;
    double seconds;
    if (!PyArg_ParseTuple(args, "O!Kd:poll", &PyList_Type, &list, &known,
                          &seconds))
        return NULL;
    const Py_ssize_t n = PyList_Size(list);
    struct request **requests =
        PyMem_Malloc(((size_t)n + 1) * sizeof(*requests));
    if (!requests)
        return PyErr_NoMemory();
    Py_ssize_t good = 0;
    for (; good < n; good++) {
        PyObject *item = PyList_GetItem(list, good);
        if (!PyObject_TypeCheck(item, state->request_type))
            break;
        Py_INCREF(item); /* the list may change meanwhile */
        requests[good] = (struct request *)item;
    }
    if (good < n) {
        PyErr_SetString(PyExc_TypeError, "poll: a list of requests");
    } else {
        Py_BEGIN_ALLOW_THREADS
        wait_any(requests, (size_t)n, known, now() + seconds);
        Py_END_ALLOW_THREADS
    }
    for (Py_ssize_t i = 0; i < good; i++)
        Py_DECREF(requests[i]);
    PyMem_Free(requests);
    if (good < n)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *dt_py_started(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyLong_FromUnsignedLongLong(atomic_load(&started));
}

/* ---- types ---- */

static void comm_dealloc(PyObject *object)
{
    struct comm *self = (struct comm *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    pthread_mutex_destroy(&self->own);
    if (self->module && self->comm)
        state_of(self)->comms--;
    Py_XDECREF(self->module);
    release(object);
    Py_DECREF(type);
}

/* Who drops a request that is not over has lost its memory: the modules above
 * keep each until it is. */
static void request_dealloc(PyObject *object)
{
    struct request *self = (struct request *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(self->keep);
    Py_XDECREF((PyObject *)self->comm);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef comm_methods[] = {
    {"start", comm_start, METH_VARARGS,
     "start(kind, in, out, count, dtype, op, root, counts, keep): Request"},
    {"place", comm_place, METH_NOARGS, "rank, size"},
    {"destroy", comm_destroy, METH_NOARGS, "dt_comm_destroy(), collective"},
    {"abandon", comm_abandon, METH_NOARGS, "it cannot be used any more here"},
    {NULL},
};

static PyType_Slot comm_slots[] = {
    {Py_tp_dealloc, comm_dealloc},
    {Py_tp_methods, comm_methods},
    {0},
};

PyType_Spec dt_py_comm_spec = {
    .name = "slurm_dt._dt.Comm",
    .basicsize = sizeof(struct comm),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = comm_slots,
};

static PyMethodDef request_methods[] = {
    {"test", request_test, METH_NOARGS, "whether it is over"},
    {"wait", request_wait, METH_VARARGS, "wait(seconds): whether it is over"},
    {NULL},
};

static PyType_Slot request_slots[] = {
    {Py_tp_dealloc, request_dealloc},
    {Py_tp_methods, request_methods},
    {0},
};

PyType_Spec dt_py_request_spec = {
    .name = "slurm_dt._dt.Request",
    .basicsize = sizeof(struct request),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = request_slots,
};
