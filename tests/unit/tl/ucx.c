/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.c - the UCX transport opens no socket that a stranger could reach,
 * believes no stranger that reaches it, and shares no memory. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "ranks.h"

/* ---- which transports UCX gets ---- */

/* What a process with the transport open has. */
enum { OPEN = 1, SOCKETS = 2, FAILED = 4, SEGMENTS = 8 };

static bool rdma_is_here; /* libdt is to think so */

/* In front of UCX's own, which libdt asks for the networks. */
__attribute__((visibility("default"))) void
ucp_context_print_info(const ucp_context_h context, FILE *stream)
{
    __typeof__(&ucp_context_print_info) own =
        dlsym(RTLD_NEXT, "ucp_context_print_info");
    own(context, stream);
    if (rdma_is_here)
        fputs("#      resource 9  :  md 9  dev 9  flags -- rc_verbs/none:1\n",
              stream);
}

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

/* Has UCX shared memory with others? */
static bool has_segments(void)
{
    char line[512];
    bool any = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps))
        any = any || strstr(line, "/ucx_shm_") || strstr(line, "/SYSV");
    if (maps)
        fclose(maps);
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
    int found = (tl ? OPEN : 0) | (has_sockets() ? SOCKETS : 0) |
                (has_segments() ? SEGMENTS : 0);
    dt_tl_ucx.close(tl);
    return found;
}

/* The same, in a program of its own, as UCX reads its settings at the start. */
static int open_with(const char *tls, const char *how)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (tls)
            setenv("UCX_TLS", tls, 1);
        else
            unsetenv("UCX_TLS");
        setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
        execl("/proc/self/exe", "ucx.t", how, NULL);
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
static void case_transports(struct rank *r)
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
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !r->me; i++) {
        int want = lists[i].named ? OPEN | SEGMENTS : 0;
        int found = open_with(lists[i].tls, "open");
        if (!lists[i].named && verbs)
            found &= ~OPEN;
        NEED(found == want, "UCX_TLS=%s: %d, not %d",
             lists[i].tls ? lists[i].tls : "(unset)", found, want);
    }
}

/* The list may be in a file of the site. */
static void case_file(struct rank *r)
{
    char dir[] = "/tmp/ucx-conf.XXXXXX", path[64];
    if (r->me)
        return;
    NEED(mkdtemp(dir), "mkdtemp");
    snprintf(path, sizeof(path), "%s/ucx.conf", dir);
    FILE *file = fopen(path, "w");
    if (file) {
        fputs("UCX_TLS=posix,self\n", file);
        fclose(file);
    }
    setenv("UCX_CONFIG_DIR", dir, 1);
    int found = open_with(NULL, "open");
    remove(path);
    remove(dir);
    NEED(found == (OPEN | SEGMENTS), "%d", found);
}

/* A process that is killed while it makes segments leaves them in /dev/shm. */
static void case_segments(struct rank *r)
{
    static const char *const lists[] = {NULL, "", "all", "^tcp", "^cma", "^sm"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !r->me; i++) {
        int found = open_with(lists[i], "open-rdma");
        NEED(found == OPEN, "UCX_TLS=%s: %d, not %d",
             lists[i] ? lists[i] : "(unset)", found, OPEN);
    }
}

/* ---- strangers ---- */

/* A program that reaches UCX on a rank, and knows no secret. */
struct stranger {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
};

/* Of the same name in lib/tl/ucx. */
struct control {
    uint32_t kind, from;
    uint64_t by, missing, proof;
};
enum { REVOKE = 2 };

static void finish(struct rank *r, struct stranger *stranger, void *request)
{
    NEED(!UCS_PTR_IS_ERR(request), "stranger: %s",
         ucs_status_string(UCS_PTR_STATUS(request)));
    if (!request)
        return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(stranger->worker);
        r->ops->progress(r->tl);
    }
    ucp_request_free(request);
}

static void come(struct rank *r, struct stranger *stranger, size_t rank)
{
    ucp_config_t *config;
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_TAG};
    ucp_worker_params_t single = {0};
    ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                          .address =
                              (const ucp_address_t *)r->board->addr[rank]};
    NEED(ucp_config_read(NULL, NULL, &config) == UCS_OK, "config");
    NEED(ucp_init(&params, config, &stranger->context) == UCS_OK, "context");
    ucp_config_release(config);
    NEED(ucp_worker_create(stranger->context, &single, &stranger->worker) ==
             UCS_OK,
         "worker");
    NEED(ucp_ep_create(stranger->worker, &to, &stranger->ep) == UCS_OK, "ep");
}

static void throw(struct rank * r, struct stranger *stranger, uint64_t tag,
                  const void *buf, size_t len)
{
    ucp_request_param_t param = {0};
    finish(r, stranger, ucp_tag_send_nbx(stranger->ep, buf, len, tag, &param));
}

static void go(struct rank *r, struct stranger *stranger)
{
    ucp_request_param_t param = {0};
    finish(r, stranger, ucp_ep_flush_nbx(stranger->ep, &param));
    finish(r, stranger, ucp_ep_close_nbx(stranger->ep, &param));
    ucp_worker_destroy(stranger->worker);
    ucp_cleanup(stranger->context);
}

/* In the name of rank 0, with tags that all can compute: a message that rank 1
 * waits for, and what makes its transport fail; then the latter with the tag
 * that rank 1 listens to, which only ranks know, but without their key. */
static void attack(struct rank *r)
{
    struct stranger stranger;
    const struct control control = {.kind = REVOKE, .missing = 1};
    static const char purpose[] = "dt-ucx control messages";
    uint64_t word =
        dt_secret_word(&r->board->secret[1], purpose, sizeof(purpose));
    come(r, &stranger, 1);
    throw(r, &stranger, 5, "X", 1);
    throw(r, &stranger, (((uint64_t)1 << 21) - 1) << DT_TAG_BITS, &control,
          offsetof(struct control, proof));
    throw(r, &stranger, word & ~((uint64_t)5 << 61), &control, sizeof(control));
    throw(r, &stranger, word & ~((uint64_t)5 << 61), &control,
          sizeof(control) - 1);
    go(r, &stranger);
}

/* Close, and check what that writes. */
static void leave_with(struct rank *r, const char *line)
{
    char text[400] = "";
    FILE *file = tmpfile();
    int err = dup(STDERR_FILENO);
    NEED(file && err >= 0, "no file");
    dup2(fileno(file), STDERR_FILENO);
    leave(r);
    dup2(err, STDERR_FILENO);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    NEED(strstr(text, line), "'%s' lacks '%s'", text, line);
    fclose(file);
    close(err);
}

static void case_stranger(struct rank *r)
{
    char out = 'r', in = 0;
    struct dt_tl_req req;
    join(r);
    greet_all(r);
    if (r->me == 1)
        irecv(r, 0, 5, &in, 1, &req);
    barrier(r);
    if (r->me == 0)
        attack(r);
    barrier(r);
    if (r->me == 0) {
        isend(r, 1, 5, &out, 1, &req);
        NEED_DONE(&req);
    } else if (r->me == 1) {
        NEED_DONE(&req);
        NEED(in == 'r', "rank 1 believed a stranger: %c", in);
    }
    barrier(r);
    NEED(r->ops->check(r->tl, &r->err) == DT_SUCCESS, "%s", r->err.text);
    if (r->me == 1)
        leave_with(r, "dt: rank 1 dropped 4 messages that no receive asked");
    else
        leave(r);
}

static const struct tl_case cases[] = {
    {"UCX is offered for RDMA or by name, without TCP", case_transports},
    {"so it is with a list in ucx.conf", case_file},
    {"with RDMA, UCX shares no memory unless it is named", case_segments},
    {"a stranger is not believed", case_stranger},
};

int main(int argc, char **argv)
{
    static const struct dt_tl_ops *const transports[] = {&dt_tl_ucx, NULL};
    rdma_is_here = argc > 1 && !strcmp(argv[1], "open-rdma");
    if (argc > 1 && !strncmp(argv[1], "open", 4))
        return open_once();
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
