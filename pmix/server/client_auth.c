/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client_auth.c - how ranks authenticate to the PMIx server. */
#include "server/client_auth.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/peer_check.h"

/* The only address at which PMIx connects to munge. */
#define MUNGE_SOCKET "/run/munge/munge.socket.2"

/* A component is a part of the library, or a file in a folder beside it. */
static bool has_file(const char *name)
{
    char path[PATH_MAX], real[PATH_MAX];
    Dl_info library;
    void *symbol = dlsym(RTLD_DEFAULT, "PMIx_server_init");
    if (!symbol || !dladdr(symbol, &library) ||
        !realpath(library.dli_fname, real))
        return false;
    *strrchr(real, '/') = '\0';
    int len = snprintf(path, sizeof(path), "%s/pmix/%s.so", real, name);
    return len < (int)sizeof(path) && access(path, R_OK) == 0;
}

bool dt_client_auth_has_munge(void)
{
    return dlsym(RTLD_DEFAULT, "pmix_mca_psec_munge_component") ||
           has_file("pmix_mca_psec_munge") || has_file("mca_psec_munge");
}

static bool munge_answers(void)
{
    struct sockaddr_un addr = {AF_UNIX, MUNGE_SOCKET};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool answers = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
    close(fd);
    return answers;
}

dt_result_t dt_client_auth_choose(const char *auth, const char **psec,
                                  struct dt_error *err)
{
    bool wanted = auth && strcmp(auth, "munge") == 0;
    if (auth && !wanted && strcmp(auth, "native") != 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "authentication by %s: expected munge or native",
                            auth);
    bool can = dt_client_auth_has_munge();
    if (wanted && !can && !dt_peer_check_works())
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "this PMIx library has no munge, and this kernel "
                            "does not tell whose a connection is (inet_diag): "
                            "any user could connect as a rank. Use a PMIx "
                            "with munge, or auth=native to allow it");
    bool answers = can && (wanted || !auth) && munge_answers();
    if (wanted && can && !answers)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "munge does not answer at " MUNGE_SOCKET
                            ": is munged running on this node?");
    *psec = answers ? "munge" : "native";
    return DT_SUCCESS;
}
