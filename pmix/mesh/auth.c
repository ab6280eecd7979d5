/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* auth.c - proofs of the user of a process, by munge. */
#include "mesh/auth.h"

#include <munge.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TTL 60 /* seconds that a credential is good for */

static dt_result_t no_munge(munge_ctx_t ctx, munge_err_t code,
                            const char *socket, struct dt_error *err)
{
    const char *detail = ctx ? munge_ctx_strerror(ctx) : NULL;
    if (code == EMUNGE_NO_MEMORY)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for munge");
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "munge does not answer at %s: is munged running on "
                        "this node? (%s)",
                        socket ? socket : "its default socket",
                        detail ? detail : munge_strerror(code));
}

static munge_ctx_t context(const char *socket)
{
    munge_ctx_t ctx = munge_ctx_create();
    if (ctx && (!socket ||
                munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket) == EMUNGE_SUCCESS))
        return ctx;
    munge_ctx_destroy(ctx);
    return NULL;
}

dt_result_t dt_auth_make(const char *socket, const void *message, size_t len,
                         char **cred, struct dt_error *err)
{
    munge_ctx_t ctx = context(socket);
    munge_err_t code = EMUNGE_NO_MEMORY;
    if (ctx)
        code = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, geteuid());
    if (code == EMUNGE_SUCCESS)
        code = munge_ctx_set(ctx, MUNGE_OPT_TTL, TTL);
    if (code == EMUNGE_SUCCESS)
        code = munge_encode(cred, ctx, message, (int)len);
    dt_result_t rc =
        code == EMUNGE_SUCCESS ? DT_SUCCESS : no_munge(ctx, code, socket, err);
    munge_ctx_destroy(ctx);
    return rc;
}

/* What munge found wrong with a credential. */
static dt_result_t judge(munge_ctx_t ctx, munge_err_t code, const char *socket,
                         struct dt_error *err)
{
    switch (code) {
    case EMUNGE_SUCCESS:
        return DT_SUCCESS;
    case EMUNGE_NO_MEMORY:
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
        return no_munge(ctx, code, socket, err);
    case EMUNGE_CRED_REPLAYED:
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "a munge credential was replayed: it had been used before");
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a munge credential is %s: the clocks of the two "
                            "nodes differ by more than munge allows: check "
                            "ntp or chrony on both",
                            code == EMUNGE_CRED_EXPIRED ? "expired"
                                                        : "from the future");
    case EMUNGE_CRED_UNAUTHORIZED:
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a munge credential is not for this user");
    default:
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a munge credential is not valid (%s): if it "
                            "comes from one of the nodes, they need the same "
                            "munge.key",
                            munge_strerror(code));
    }
}

dt_result_t dt_auth_check(const char *socket, const char *cred, size_t cred_len,
                          const void *message, size_t len, struct dt_error *err)
{
    munge_ctx_t ctx = context(socket);
    char *text = strndup(cred, cred_len);
    void *found = NULL;
    int found_len = 0;
    uid_t uid = (uid_t)-1;
    munge_err_t code = EMUNGE_NO_MEMORY;

    if (ctx && text)
        code = munge_decode(text, ctx, &found, &found_len, &uid, NULL);
    dt_result_t rc = judge(ctx, code, socket, err);
    if (rc == DT_SUCCESS && uid != geteuid())
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "a munge credential was made by another user (uid "
                          "%u)",
                          (unsigned)uid);
    else if (rc == DT_SUCCESS && (found_len < 0 || (size_t)found_len != len ||
                                  (len && memcmp(found, message, len) != 0)))
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "a munge credential was made for something else");
    free(found);
    free(text);
    munge_ctx_destroy(ctx);
    return rc;
}
