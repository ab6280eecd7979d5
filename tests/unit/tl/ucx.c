/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.c - the UCX transport opens no socket that a stranger could reach. */
#include <dirent.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"
#include "ranks.h"

/* ---- which transports UCX gets ---- */

/* What a process with the transport open has. */
enum { OPEN = 1, SOCKETS = 2, FAILED = 4 };

/* Does this process have a socket of the internet, listening or not? */
static bool has_sockets(void)
{
    bool any = false;
    for (int fd = 0; fd < 1024; fd++) {
        int domain;
        socklen_t len = sizeof(domain);
        if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len))
            any = any || domain == AF_INET || domain == AF_INET6;
    }
    return any;
}

static int open_once(void)
{
    struct dt_secret secret;
    struct dt_tl_config config = {.size = 2, .secret = &secret};
    struct dt_error err;
    struct dt_tl *tl;
    if (dt_secret_draw(&secret, &err) != DT_SUCCESS ||
        dt_tl_ucx.open(&config, &tl, &err) != DT_SUCCESS)
        return FAILED;
    int found = (tl ? OPEN : 0) | (has_sockets() ? SOCKETS : 0);
    dt_tl_ucx.close(tl);
    return found;
}

/* The same, in a program of its own, as UCX reads its settings at the start. */
static int open_with(const char *tls)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (tls)
            setenv("UCX_TLS", tls, 1);
        else
            unsetenv("UCX_TLS");
        execl("/proc/self/exe", "ucx.t", "open", NULL);
        _exit(FAILED);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return FAILED;
    return WEXITSTATUS(status);
}

static bool has_verbs(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    struct dirent *entry;
    bool any = false;
    while (dir && (entry = readdir(dir)))
        any = any || *entry->d_name != '.';
    if (dir)
        closedir(dir);
    return any;
}

/* With RDMA here, UCX is open or not; without it, only if it is named. */
static void check_transports(void)
{
    static const struct {
        const char *tls;
        bool named;
    } lists[] = {
        {NULL, false},
        {"", false},
        {"all", false},
        {"^posix", false},
        {"^tcp", false},
        {"^", false},
        {"tcp", false},
        {"tcp,self", false},
        {"posix,\\tcp,self", false},
        {"self,tcp:aux", false},
        {"posix,all,self", false},
        {"posix,cma,self", true},
        {"sm,self", true},
    };
    bool verbs = has_verbs();
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        int found = open_with(lists[i].tls);
        bool right = found == (lists[i].named ? OPEN : 0);
        if (!lists[i].named && verbs)
            right = !(found & ~OPEN);
        ok(right, "UCX_TLS=%s: %s", lists[i].tls ? lists[i].tls : "(unset)",
           lists[i].named ? "UCX, without a socket" : "no socket, no UCX");
        if (!right)
            diag("found %d", found);
    }
}

/* The list may be in a file of the site. */
static void check_file(void)
{
    char dir[] = "/tmp/ucx-conf.XXXXXX", path[64];
    if (!mkdtemp(dir)) {
        ok(false, "mkdtemp");
        return;
    }
    snprintf(path, sizeof(path), "%s/ucx.conf", dir);
    FILE *file = fopen(path, "w");
    if (file) {
        fputs("UCX_TLS=posix,self\n", file);
        fclose(file);
    }
    setenv("UCX_CONFIG_DIR", dir, 1);
    setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
    ok(open_with(NULL) == OPEN, "UCX_TLS in ucx.conf: UCX, without a socket");
    unsetenv("UCX_CONFIG_DIR");
    remove(path);
    remove(dir);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "open"))
        return open_once();
    check_transports();
    check_file();
    return tap_done();
}
