/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cluster.c - compare the topologies of many nodes, asked through srun. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../print/print.h"
#include "node.h"

/* ---- frames ---- */

/* srun mixes the lines of nodes, and cuts those that are long. */
enum { PIECE = 400 };

void frame_print(FILE *out, const char *node, char mark, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        bool part = len > PIECE;
        if (part)
            len = PIECE;
        fprintf(out, FRAME_START "%s%c%.*s\n", node,
                part && mark == FRAME_TEXT ? FRAME_PART : mark, (int)len, text);
        text += len;
        if (!part && *text)
            text++;
    }
}

void frame_end(FILE *out, const char *node)
{
    fprintf(out, FRAME_START "%s%c\n", node, FRAME_END);
}

enum { MAX_ANSWER = 16 << 20, SINFO_SECONDS = 10 };

struct node {
    char *name;
    char state[32]; /* Slurm's name for it, "" unknown */
    bool away;      /* Slurm would start nothing there */
    char *text;     /* its answer so far; NULL: none */
    size_t len;
    bool ended;   /* its answer is complete */
    bool broken;  /* a part of the answer was not kept */
    size_t group; /* [0, ngroups) once known */
    bool grouped;
};

/* Nodes that are alike; one of them is kept. */
struct group {
    dt_topo_t *topo;
    const struct node *first;
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
    return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
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

/* ---- answers ---- */

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
    char *more = node->len + len + 2 <= MAX_ANSWER && !node->broken
                     ? realloc(node->text, node->len + len + 2)
                     : NULL;
    node->broken = !more;
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
static void take_line(void *arg, char *line)
{
    struct cluster *cluster = arg;
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

/* ---- srun ---- */

/* srun and sinfo take these as options, above all inside a job. */
static void clean_environment(void)
{
    static const char *const unwanted[] = {
        "SLURM_LABELIO",         "SLURM_UNBUFFEREDIO",   "SLURM_NTASKS",
        "SLURM_NPROCS",          "SLURM_NNODES",         "SLURM_JOB_NUM_NODES",
        "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NODELIST",
        "SLURM_DISTRIBUTION",    "SLURM_STDOUTMODE",     "SINFO_PARTITION"};
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
        unsetenv(unwanted[i]);
}

/* ---- which nodes can answer ---- */

static void take_state(void *arg, char *line)
{
    struct cluster *cluster = arg;
    char *state = strchr(line, ' ');
    if (!state)
        return;
    *state++ = '\0';
    struct node *node = find_node(cluster, line);
    if (node)
        snprintf(node->state, sizeof(node->state), "%.*s",
                 (int)strcspn(state, " "), state);
}

/* With one such node srun would wait for it before it starts a task on any. A
 * mark after the state: it does not respond, or is being powered or rebooted.
 */
static bool is_away(const char *state, bool in_job)
{
    static const char *const always[] = {"down",  "drained", "fail",  "unknown",
                                         "inval", "future",  "power", "reboot"};
    bool away = strpbrk(state, "*~!#%@^") ||
                (!in_job && (!strncmp(state, "alloc", 5) ||
                             !strncmp(state, "draining", 8)));
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        away = away || !strncmp(state, always[i], strlen(always[i]));
    return away;
}

/* Without an answer of sinfo all nodes are asked. */
static void ask_states(struct cluster *cluster)
{
    const char *argv[] = {"sinfo",
                          "--all",
                          "--noheader",
                          "--Node",
                          "--format=%N %T",
                          "--nodes",
                          cluster->request->nodes,
                          NULL};
    struct dt_error ignored;
    bool late, any = false;
    command_run(&(struct command){.argv = argv,
                                  .timeout = SINFO_SECONDS,
                                  .quiet = true,
                                  .take = take_state,
                                  .arg = cluster},
                &late, &ignored);
    for (size_t i = 0; i < cluster->nnodes; i++)
        any = any || *cluster->node[i].state;
    for (size_t i = 0; any && i < cluster->nnodes; i++) {
        struct node *node = &cluster->node[i];
        if (!*node->state)
            strcpy(node->state, "unknown to Slurm");
        node->away = is_away(node->state, getenv("SLURM_JOB_ID") != NULL);
    }
}

/* ---- srun ---- */

/* The names of all that are not away, as Slurm writes them; free() it. */
static char *list_present(const struct cluster *cluster, size_t *n)
{
    static const char option[] = "--nodelist=";
    const char **name = calloc(cluster->nnodes + 1, sizeof(*name));
    char *text = NULL;
    size_t size;
    FILE *out = name ? open_memstream(&text, &size) : NULL;
    *n = 0;
    for (size_t i = 0; name && i < cluster->nnodes; i++)
        if (!cluster->node[i].away)
            name[(*n)++] = cluster->node[i].name;
    if (out) {
        fputs(option, out);
        hosts_print(out, name, *n);
        fclose(out);
    }
    free(name);
    return text;
}

static dt_result_t run_srun(struct cluster *cluster, const char *nodelist,
                            size_t n)
{
    const struct cluster_request *request = cluster->request;
    char nodes[32], ntasks[32], minutes[32], self[4096];
    const char *argv[24];
    size_t argc = 0;
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0)
        return dt_error_set(cluster->err, DT_ERR_SYSTEM, "-w: no /proc");
    self[len] = '\0';
    snprintf(nodes, sizeof(nodes), "--nodes=%zu", n);
    snprintf(ntasks, sizeof(ntasks), "--ntasks=%zu", n);
    snprintf(minutes, sizeof(minutes), "--time=%u", request->timeout / 60 + 1);
    argv[argc++] = "srun";
    argv[argc++] = nodelist;
    argv[argc++] = nodes;
    argv[argc++] = ntasks;
    argv[argc++] = "--ntasks-per-node=1";
    argv[argc++] = "--overcommit";
    argv[argc++] = minutes;
    argv[argc++] = "--job-name=dt-topo";
    argv[argc++] = "--mpi=none";
    argv[argc++] = "--input=none";
    argv[argc++] = "--no-kill";
    argv[argc++] = "--kill-on-bad-exit=0";
    if (getenv("SLURM_JOB_ID"))
        argv[argc++] = "--overlap";
    argv[argc++] = self;
    argv[argc++] = "--cached";
    argv[argc++] = "--framed";
    if (request->refresh)
        argv[argc++] = "--refresh";
    if (request->conf) {
        argv[argc++] = "--conf";
        argv[argc++] = request->conf;
    }
    argv[argc] = NULL;
    return command_run(&(struct command){.argv = argv,
                                         .timeout = request->timeout,
                                         .take = take_line,
                                         .arg = cluster},
                       &cluster->late, cluster->err);
}

static dt_result_t ask(struct cluster *cluster)
{
    size_t n;
    dt_result_t rc = DT_SUCCESS;
    clean_environment();
    ask_states(cluster);
    char *nodelist = list_present(cluster, &n);
    if (!nodelist)
        rc = no_memory(cluster->err);
    else if (n)
        rc = run_srun(cluster, nodelist, n);
    free(nodelist);
    return rc;
}

/* ---- groups of equal nodes ---- */

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
    if (topo)
        make_printable(topo);
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
        more[cluster->ngroups++] = (struct group){.topo = topo, .first = node};
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
        dt_topo_t *topo =
            node->ended && node->text && !node->broken ? parse(node) : NULL;
        if (!topo)
            continue;
        dt_result_t rc = put_in_group(cluster, node, topo);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return DT_SUCCESS;
}

/* Both of one group, or silent for the same reason. */
static bool is_like(const struct node *a, const struct node *b)
{
    if (a->grouped || b->grouped)
        return a->grouped && b->grouped && a->group == b->group;
    return a->away == b->away && (!a->away || !strcmp(a->state, b->state));
}

/* "n[0-2] (3 nodes): ": all that are like one. */
static void print_names(FILE *out, const struct cluster *cluster,
                        const struct node *one)
{
    size_t n = 0;
    char count[64];
    const char **name = calloc(cluster->nnodes, sizeof(*name));
    for (size_t i = 0; i < cluster->nnodes; i++) {
        if (!is_like(&cluster->node[i], one))
            continue;
        if (name)
            name[n] = cluster->node[i].name;
        n++;
    }
    if (name)
        hosts_print(out, name, n);
    free(name);
    fprintf(out, " (%s): ", count_text(count, n, "node"));
}

static void report_groups(FILE *out, const struct cluster *cluster)
{
    size_t most = 0;
    char summary[256];
    for (size_t i = 1; i < cluster->ngroups; i++)
        if (cluster->group[i].nodes > cluster->group[most].nodes)
            most = i;
    for (size_t k = 0; k < cluster->ngroups; k++) {
        size_t i = k == 0 ? most : k <= most ? k - 1 : k; /* most first */
        const struct group *group = &cluster->group[i];
        print_names(out, cluster, group->first);
        fprintf(out, "%s\n", summary_text(summary, group->topo));
        if (i == most)
            continue;
        fprintf(out, "  %s from %s:\n",
                group->nodes == 1 ? "differs" : "differ",
                cluster->group[most].first->name);
        print_diff(out, "    ", cluster->group[most].topo, group->topo);
    }
}

static void report_silent(FILE *out, const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->nnodes; i++) {
        const struct node *node = &cluster->node[i];
        bool told = node->grouped;
        for (size_t k = 0; k < i && !told; k++)
            told = is_like(&cluster->node[k], node);
        if (told)
            continue;
        print_names(out, cluster, node);
        if (node->away)
            fprintf(out, "not asked: %s\n", node->state);
        else if (cluster->late)
            fprintf(out, "no answer within %u s\n", cluster->request->timeout);
        else
            fputs("no answer\n", out);
    }
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
        report_groups(out, &cluster);
        report_silent(out, &cluster);
        *same =
            cluster.ngroups == 1 && cluster.group[0].nodes == cluster.nnodes;
    }
    forget(&cluster);
    return rc;
}
