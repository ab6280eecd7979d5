/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cluster.c - ask many nodes through srun, and find the odd ones. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "topo.h"

extern char **environ;

enum { MAX_ANSWER = 16 << 20, LINE = 4096 };

struct node {
    char *name;
    char *text; /* what it said so far; NULL: nothing */
    size_t len;
    bool ended;   /* it said all */
    size_t group; /* [0, ngroups) once known */
    bool grouped;
};

/* Nodes that are alike; one of them is kept. */
struct group {
    dt_topo_t *topo;
    const char *first;
    size_t nodes;
};

struct cluster {
    const struct cluster_request *request;
    struct node *node; /* sorted by name */
    size_t nnodes;
    struct group *group;
    size_t ngroups;
    bool late; /* the time was up before srun ended */
    struct dt_error *err;
};

static dt_result_t no_memory(struct dt_error *err)
{
    return fail(err, DT_ERR_NO_MEMORY, "no memory");
}

/* ---- the nodes ---- */

static bool add_node(void *arg, const char *name)
{
    struct cluster *cluster = arg;
    struct node *more =
        realloc(cluster->node, (cluster->nnodes + 1) * sizeof(*more));
    if (!more)
        return false;
    cluster->node = more;
    more[cluster->nnodes] = (struct node){.name = strdup(name)};
    return more[cluster->nnodes++].name != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct node *)a)->name,
                      ((const struct node *)b)->name);
}

static dt_result_t name_nodes(struct cluster *cluster)
{
    size_t kept = 0;
    dt_result_t rc =
        hosts_expand(cluster->request->nodes, add_node, cluster, cluster->err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < cluster->nnodes; i++)
        if (!cluster->node[i].name)
            return no_memory(cluster->err);
    qsort(cluster->node, cluster->nnodes, sizeof(struct node), by_name);
    for (size_t i = 0; i < cluster->nnodes; i++)
        if (kept && !by_name(&cluster->node[i], &cluster->node[kept - 1]))
            free(cluster->node[i].name);
        else
            cluster->node[kept++] = cluster->node[i];
    cluster->nnodes = kept;
    return DT_SUCCESS;
}

static void forget(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->nnodes; i++) {
        free(cluster->node[i].name);
        free(cluster->node[i].text);
    }
    for (size_t i = 0; i < cluster->ngroups; i++)
        dt_topo_destroy(cluster->group[i].topo);
    free(cluster->node);
    free(cluster->group);
}

/* ---- what they say ---- */

static struct node *find_node(struct cluster *cluster, const char *name)
{
    struct node key = {.name = (char *)(uintptr_t)name};
    return cluster->nnodes ? bsearch(&key, cluster->node, cluster->nnodes,
                                     sizeof(key), by_name)
                           : NULL;
}

static void take_text(struct node *node, const char *text, bool line_ends)
{
    size_t len = strlen(text);
    if (node->len + len + 2 > MAX_ANSWER)
        return; /* it will not parse */
    char *more = realloc(node->text, node->len + len + 2);
    if (!more)
        return;
    node->text = more;
    memcpy(more + node->len, text, len);
    node->len += len;
    if (line_ends)
        more[node->len++] = '\n';
    more[node->len] = '\0';
}

static void print_note(const struct node *node, const char *text)
{
    static const char us[] = "dt-topo: ";
    bool ours = !strncmp(text, us, sizeof(us) - 1);
    note(stderr, "%s: %s", node->name, text + (ours ? sizeof(us) - 1 : 0));
}

/* One line of srun's output. */
static void take_line(struct cluster *cluster, char *line)
{
    size_t start = strlen(FRAME_START);
    char *at = !strncmp(line, FRAME_START, start)
                   ? strpbrk(line + start, "|!>#")
                   : NULL;
    char mark = at ? *at : '\0';
    if (at)
        *at = '\0';
    struct node *node = at ? find_node(cluster, line + start) : NULL;
    if (!node) {
        if (*line)
            note(stderr, "from srun: %s", line);
        return;
    }
    if (mark == FRAME_END)
        node->ended = true;
    else if (mark == FRAME_NOTE)
        print_note(node, at + 1);
    else
        take_text(node, at + 1, mark == FRAME_TEXT);
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Take lines until the pipe is closed or the time is up; true if closed. */
static bool listen_to(struct cluster *cluster, int pipe)
{
    char line[LINE];
    size_t len = 0;
    long long end = now_ms() + cluster->request->timeout * 1000LL;
    for (;;) {
        struct pollfd entry = {.fd = pipe, .events = POLLIN};
        long long left = end - now_ms();
        int ready = left > 0 ? poll(&entry, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t n = read(pipe, line + len, sizeof(line) - 1 - len);
        if (n <= 0)
            return true;
        len += (size_t)n;
        line[len] = '\0';
        char *at = line, *newline;
        while ((newline = strchr(at, '\n'))) {
            *newline = '\0';
            take_line(cluster, at);
            at = newline + 1;
        }
        len -= (size_t)(at - line);
        if (len == sizeof(line) - 1)
            len = 0; /* no line of ours */
        memmove(line, at, len);
    }
}

/* ---- srun ---- */

/* Inside a job srun takes these for what is asked of it. */
static void clean_environment(void)
{
    static const char *const unwanted[] = {
        "SLURM_LABELIO",         "SLURM_UNBUFFEREDIO",   "SLURM_NTASKS",
        "SLURM_NPROCS",          "SLURM_NNODES",         "SLURM_JOB_NUM_NODES",
        "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NODELIST",
        "SLURM_DISTRIBUTION",    "SLURM_STDOUTMODE"};
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
        unsetenv(unwanted[i]);
}

static dt_result_t start_srun(const struct cluster *cluster, int out,
                              pid_t *pid)
{
    const struct cluster_request *request = cluster->request;
    char nodelist[8192], nodes[32], ntasks[32], minutes[32], self[4096];
    const char *argv[24];
    size_t n = 0;
    posix_spawn_file_actions_t actions;
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0 || (size_t)snprintf(nodelist, sizeof(nodelist), "--nodelist=%s",
                                    request->nodes) >= sizeof(nodelist))
        return fail(cluster->err, DT_ERR_SYSTEM,
                    "-w: too long a list, or no /proc");
    self[len] = '\0';
    snprintf(nodes, sizeof(nodes), "--nodes=%zu", cluster->nnodes);
    snprintf(ntasks, sizeof(ntasks), "--ntasks=%zu", cluster->nnodes);
    snprintf(minutes, sizeof(minutes), "--time=%u", request->timeout / 60 + 1);
    argv[n++] = "srun";
    argv[n++] = nodelist;
    argv[n++] = nodes;
    argv[n++] = ntasks;
    argv[n++] = "--ntasks-per-node=1";
    argv[n++] = "--overcommit";
    argv[n++] = minutes;
    argv[n++] = "--job-name=dt-topo";
    argv[n++] = "--mpi=none";
    argv[n++] = "--input=none";
    argv[n++] = "--kill-on-bad-exit=0";
    if (getenv("SLURM_JOB_ID"))
        argv[n++] = "--overlap";
    argv[n++] = self;
    argv[n++] = "--cached";
    argv[n++] = "--framed";
    if (request->refresh)
        argv[n++] = "--refresh";
    if (request->conf) {
        argv[n++] = "--conf";
        argv[n++] = request->conf;
    }
    argv[n] = NULL;
    clean_environment();
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int rc = posix_spawnp(pid, "srun", &actions, NULL,
                          (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc ? fail(cluster->err, DT_ERR_SYSTEM, "srun: %s", strerror(rc))
              : DT_SUCCESS;
}

/* SIGTERM lets srun cancel what it started. */
static void end_srun(pid_t pid, bool closed)
{
    long long patience = now_ms() + (closed ? 5000 : 0);
    int step = 0;
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (now_ms() >= patience) {
            kill(pid, step++ ? SIGKILL : SIGTERM);
            patience = now_ms() + 3000;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static dt_result_t ask(struct cluster *cluster)
{
    int pipes[2];
    pid_t pid;
    if (pipe2(pipes, O_CLOEXEC))
        return fail(cluster->err, DT_ERR_SYSTEM, "no pipe: %s",
                    strerror(errno));
    dt_result_t rc = start_srun(cluster, pipes[1], &pid);
    close(pipes[1]);
    if (rc == DT_SUCCESS) {
        cluster->late = !listen_to(cluster, pipes[0]);
        end_srun(pid, !cluster->late);
    }
    close(pipes[0]);
    return rc;
}

/* ---- who is like whom ---- */

static dt_topo_t *parse(const struct node *node)
{
    struct dt_error err;
    dt_topo_t *topo = NULL;
    int fd = memfd_create("node", MFD_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (write(fd, node->text, node->len) != (ssize_t)node->len)
        note(stderr, "%s: no memory for its answer", node->name);
    else if (load_fd(fd, &topo, &err) != DT_SUCCESS)
        note(stderr, "%s: %s", node->name, err.text);
    close(fd);
    return topo;
}

static dt_result_t put_in_group(struct cluster *cluster, struct node *node,
                                dt_topo_t *topo)
{
    size_t i = 0;
    while (i < cluster->ngroups &&
           print_diff(NULL, "", cluster->group[i].topo, topo))
        i++;
    if (i < cluster->ngroups) {
        dt_topo_destroy(topo);
    } else {
        struct group *more = realloc(cluster->group, (i + 1) * sizeof(*more));
        if (!more) {
            dt_topo_destroy(topo);
            return no_memory(cluster->err);
        }
        cluster->group = more;
        make_printable(topo);
        more[cluster->ngroups++] =
            (struct group){.topo = topo, .first = node->name};
    }
    node->grouped = true;
    node->group = i;
    cluster->group[i].nodes++;
    return DT_SUCCESS;
}

static dt_result_t group_nodes(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->nnodes; i++) {
        struct node *node = &cluster->node[i];
        dt_topo_t *topo = node->ended && node->text ? parse(node) : NULL;
        if (!topo)
            continue;
        dt_result_t rc = put_in_group(cluster, node, topo);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return DT_SUCCESS;
}

/* Print those of a group, or (SIZE_MAX) of none; how many. */
static size_t print_names(FILE *out, const struct cluster *cluster,
                          size_t group)
{
    size_t n = 0;
    const char **name = calloc(cluster->nnodes + 1, sizeof(*name));
    for (size_t i = 0; i < cluster->nnodes; i++) {
        const struct node *node = &cluster->node[i];
        if (node->grouped ? node->group == group : group == SIZE_MAX) {
            if (name)
                name[n] = node->name;
            n++;
        }
    }
    if (name)
        hosts_print(out, name, n);
    free(name);
    return n;
}

static void report(FILE *out, const struct cluster *cluster)
{
    size_t most = 0, silent = cluster->nnodes;
    char summary[256], count[64];
    for (size_t i = 0; i < cluster->ngroups; i++) {
        silent -= cluster->group[i].nodes;
        if (cluster->group[i].nodes > cluster->group[most].nodes)
            most = i;
    }
    for (size_t k = 0; k < cluster->ngroups; k++) {
        size_t i = k == 0 ? most : k <= most ? k - 1 : k; /* most first */
        const struct group *group = &cluster->group[i];
        print_names(out, cluster, i);
        fprintf(out, " (%s): %s\n", count_text(count, group->nodes, "node"),
                summary_text(summary, group->topo));
        if (i == most)
            continue;
        fprintf(out, "  %s from %s:\n",
                group->nodes == 1 ? "differs" : "differ",
                cluster->group[most].first);
        print_diff(out, "    ", cluster->group[most].topo, group->topo);
    }
    if (!silent)
        return;
    print_names(out, cluster, SIZE_MAX);
    fprintf(out, " (%s): no answer", count_text(count, silent, "node"));
    if (cluster->late)
        fprintf(out, " within %u s", cluster->request->timeout);
    fputc('\n', out);
}

dt_result_t cluster_compare(FILE *out, const struct cluster_request *request,
                            bool *same, struct dt_error *err)
{
    struct cluster cluster = {.request = request, .err = err};
    dt_result_t rc = name_nodes(&cluster);
    if (rc == DT_SUCCESS)
        rc = ask(&cluster);
    if (rc == DT_SUCCESS)
        rc = group_nodes(&cluster);
    if (rc == DT_SUCCESS) {
        report(out, &cluster);
        *same =
            cluster.ngroups == 1 && cluster.group[0].nodes == cluster.nnodes;
    }
    forget(&cluster);
    return rc;
}
