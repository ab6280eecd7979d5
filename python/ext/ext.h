/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ext.h - what the parts of slurm_dt._dt share: the module's state, errors, and
 * waits that a signal can end.
 *
 * The extension has CPython's limited API and no headers of torch, so that one
 * file serves each Python from 3.9 on with each torch: tensors come as their
 * addresses, and are kept alive by references. All functions are called with
 * the GIL held; only waits release it, and nothing here runs in a thread of
 * ours. */
#ifndef DT_PYTHON_EXT_H
#define DT_PYTHON_EXT_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include "dt_grad.h"

struct orphan; /* work.c */

struct state {
    dt_grad_t grad;      /* NULL while the engine is not open */
    unsigned generation; /* how often it has been opened */
    int waiting;         /* calls that have released the GIL */
    int comms;           /* communicators that can be used */
    int checkpoints;     /* that are open */
    PyObject *internal_error, *mismatch;
    PyTypeObject *work_type, *gradients_type, *gradient_type, *comm_type,
        *request_type, *checkpoint_type;
    PyObject *names; /* that are under way: a set of "SET NAME" */
    /* work that nobody has any more, which may not be complete */
    struct orphan *orphans;
    PyObject *lost; /* tensors of such gradients: a list, until the close */
    /* names of attributes, torch.strided, and what gives the current stream of
     * a GPU by its number; NULL where torch has no CUDA */
    PyObject *grad_name, *layout_name, *dtype_name, *contiguous_name,
        *numel_name, *address_name, *needs_name, *device_name, *strided,
        *stream_of;
};

/* Set the exception for a result, with dt_last_error's text; NULL. Of a call
 * that fails on this rank alone, INVALID_ARG is a ValueError and UNSUPPORTED a
 * NotImplementedError; of what fails on all ranks, and of the rest,
 * HorovodInternalError. */
PyObject *dt_py_call_error(struct state *state, dt_result_t rc);
PyObject *dt_py_wait_error(struct state *state, dt_result_t rc);

/* The engine, or NULL and ValueError where it is not open. */
dt_grad_t dt_py_engine(struct state *state);

/* Wait for an operation without the GIL, in slices of 100 ms, between which
 * signals are delivered, so that Ctrl-C ends it. wait returns DT_IN_PROGRESS
 * when its slice is over; the engine ends what takes longer than DT_TIMEOUT.
 * True when it is over, with its result in *rc; false with an exception, and it
 * goes on. */
bool dt_py_wait(struct state *state,
                dt_result_t (*wait)(void *arg, double seconds), void *arg,
                dt_result_t *rc);

/* Read a sequence of at most max integers; their number, or -1 and an
 * exception. */
int dt_py_integers(PyObject *sequence, int64_t *numbers, int max,
                   const char *what);

/* ---- work.c ---- */

extern PyType_Spec dt_py_work_spec;
PyObject *dt_py_start(PyObject *module, PyObject *args);
/* Free the orphans that are complete; or all, when the engine is closed. Every
 * wait does so, and nothing else: so it does not depend on time whether a name
 * is free again. */
void dt_py_reap(struct state *state, bool closed);

/* ---- gradients.c ---- */

extern PyType_Spec dt_py_gradients_spec, dt_py_gradient_spec;
PyObject *dt_py_gradients(PyObject *module, PyObject *args);

/* ---- collective.c ---- */

extern PyType_Spec dt_py_comm_spec, dt_py_request_spec;
PyObject *dt_py_comm(PyObject *module, PyObject *sequence);
PyObject *dt_py_poll(PyObject *module, PyObject *args);
PyObject *dt_py_started(PyObject *module, PyObject *none);
/* The lock of the world's communicator, not to be waited for with the GIL. */
void dt_py_lock_world(void);
void dt_py_unlock_world(void);
/* dt_reinit comes next: requests that are not over fail from now on. Without
 * the GIL. */
void dt_py_leave_world(void);

/* ---- checkpoint.c ---- */

#define DT_PY_DIMS 32 /* of a tensor in a checkpoint */

extern PyType_Spec dt_py_checkpoint_spec;
PyObject *dt_py_checkpoint(PyObject *module, PyObject *args);
PyObject *dt_py_should_exit(PyObject *module, PyObject *none);
PyObject *dt_py_time_left(PyObject *module, PyObject *none);
PyObject *dt_py_run(PyObject *module, PyObject *none);

#endif
