/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job_control.c - PMIx_Job_control: to end all ranks (PMIX_JOB_CTRL_TERMINATE
 * or _KILL; no targets, or the wildcard) is PMIx_Abort with 128 + the signal.
 * Anything else, and anything for some ranks only, is NOT_SUPPORTED. The
 * clean-up that ranks register PMIx does itself, but only where there is this
 * function. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "operations/abort.h"
#include "operations/operations.h"
#include "server/library.h"

struct control {
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
    pmix_status_t status;
};

static void reply(pmix_status_t status, void *arg)
{
    struct control *self = arg;
    (void)status;
    self->cbfunc(self->status, NULL, 0, self->cbdata, NULL, NULL);
    free(self);
}

static void aborted(pmix_status_t status, void *arg)
{
    struct control *self = arg;
    self->status = status;
    dt_pmix_in_library(reply, self);
}

/* All ranks of the requestor's job. */
static bool are_all(const pmix_proc_t *requestor, const pmix_proc_t targets[],
                    size_t ntargets)
{
    for (size_t i = 0; i < ntargets; i++)
        if (targets[i].rank == PMIX_RANK_WILDCARD &&
            strncmp(targets[i].nspace, requestor->nspace, PMIX_MAX_NSLEN) == 0)
            return true;
    return ntargets == 0;
}

/* PMIx has done it before it calls us. */
static bool is_cleanup(const char *key)
{
    const char *const all[] = {PMIX_REGISTER_CLEANUP, PMIX_REGISTER_CLEANUP_DIR,
                               PMIX_CLEANUP_RECURSIVE, PMIX_CLEANUP_IGNORE,
                               PMIX_CLEANUP_LEAVE_TOPDIR};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strncmp(key, all[i], PMIX_MAX_KEYLEN) == 0)
            return true;
    return !*key;
}

/* The signal that ends the ranks; 0 if something else is wanted. */
static int signal_of(const pmix_info_t *directives, size_t ndirs)
{
    int sig = 0;
    for (size_t i = 0; i < ndirs; i++) {
        const pmix_info_t *info = &directives[i];
        if (is_cleanup(info->key))
            continue;
        if (strncmp(info->key, PMIX_JOB_CTRL_KILL, PMIX_MAX_KEYLEN) == 0)
            sig = SIGKILL;
        else if (strncmp(info->key, PMIX_JOB_CTRL_TERMINATE, PMIX_MAX_KEYLEN) ==
                 0)
            sig = sig ? sig : SIGTERM;
        else
            return 0;
        if (info->value.type == PMIX_BOOL && !info->value.data.flag)
            return 0;
    }
    return sig;
}

static pmix_status_t job_control(const pmix_proc_t *requestor,
                                 const pmix_proc_t targets[], size_t ntargets,
                                 const pmix_info_t directives[], size_t ndirs,
                                 pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    int sig = signal_of(directives, ndirs);
    if (!sig || !are_all(requestor, targets, ntargets))
        return PMIX_ERR_NOT_SUPPORTED;
    struct control *self = malloc(sizeof(*self));
    if (!self)
        return PMIX_ERR_NOMEM;
    *self = (struct control){cbfunc, cbdata, PMIX_SUCCESS};
    pmix_status_t rc =
        dt_pmix_abort(requestor, NULL, 128 + sig,
                      sig == SIGKILL ? "PMIx_Job_control: kill"
                                     : "PMIx_Job_control: terminate",
                      NULL, 0, aborted, self);
    if (rc != PMIX_SUCCESS)
        free(self);
    return rc;
}

static void fill(pmix_server_module_t *module)
{
    module->job_control = job_control;
}

const struct dt_pmix_operation dt_pmix_op_job_control = {.fill = fill};
