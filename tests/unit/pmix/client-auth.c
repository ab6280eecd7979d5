/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client-auth.c - how ranks authenticate, with a PMIx library that has munge
 * and without. This program is not linked with it: what it does not load it
 * has not. */
#include "server/client_auth.h"

#include <dlfcn.h>
#include <string.h>

#include "../tap.h"

static void test_without(void)
{
    const char *psec = "";
    struct dt_error err = {.text = ""};
    ok(!dt_client_auth_has_munge(), "a library without munge");
    ok(dt_client_auth_choose("munge", &psec, &err) == DT_SUCCESS &&
           strcmp(psec, "native") == 0,
       "then munge is native: %s", err.text);
    ok(dt_client_auth_choose(NULL, &psec, &err) == DT_SUCCESS &&
           strcmp(psec, "native") == 0,
       "and so is what is best");
    ok(dt_client_auth_choose("kerberos", &psec, &err) == DT_ERR_INVALID_ARG &&
           strstr(err.text, "expected munge or native"),
       "another word: %s", err.text);
}

static void test_with(void)
{
    const char *psec = "";
    struct dt_error err = {.text = ""};
    void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!library || !dt_client_auth_has_munge()) {
        ok(true, "a library with munge # SKIP there is none");
        return;
    }
    dt_result_t rc = dt_client_auth_choose("munge", &psec, &err);
    ok(rc == DT_SUCCESS ? !strcmp(psec, "munge")
                        : strstr(err.text, "munge does not answer") != NULL,
       "a library with munge: %s%s", psec, err.text);
    ok(dt_client_auth_choose("native", &psec, &err) == DT_SUCCESS &&
           strcmp(psec, "native") == 0,
       "native is native");
}

int main(void)
{
    test_without();
    test_with();
    return tap_done();
}
