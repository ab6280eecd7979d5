/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.c - the ranks and nodes of a job. */
#include "job.h"

#include <limits.h>
#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "info.h"

/* A rank's number on its node is 16 bits wide in PMIx. */
#define RANKS_MAX UINT16_MAX

dt_result_t dt_pmix_job_init(struct dt_pmix_job *job,
                             const struct dt_pmix_config *config,
                             struct dt_error *err)
{
    *job = (struct dt_pmix_job){.size = config->ranks,
                                .nodes = 1,
                                .oversubscribed = config->oversubscribed};
    if (!config->ranks || config->ranks > RANKS_MAX)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu ranks: expected 1 to %d", config->ranks,
                            RANKS_MAX);
    if (strlen(config->nspace) > PMIX_MAX_NSLEN)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the job's name is longer than %d bytes",
                            PMIX_MAX_NSLEN);
    strcpy(job->nspace, config->nspace);
    job->jobid = strdup(config->jobid);
    job->directory = strdup(config->directory);
    job->command = strdup(config->command);
    job->node_of = calloc(job->size, sizeof(*job->node_of));
    job->hosts = calloc(job->nodes, sizeof(*job->hosts));
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof(host) - 1);
    if (job->hosts)
        job->hosts[0] = strdup(host);
    if (!job->jobid || !job->directory || !job->command || !job->node_of ||
        !job->hosts || !job->hosts[0])
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ranks",
                            job->size);
    return DT_SUCCESS;
}

void dt_pmix_job_free(struct dt_pmix_job *job)
{
    for (size_t n = 0; job->hosts && n < job->nodes; n++)
        free(job->hosts[n]);
    free(job->hosts);
    free(job->node_of);
    free(job->command);
    free(job->directory);
    free(job->jobid);
}

bool dt_pmix_job_rank(const struct dt_pmix_job *job, const pmix_proc_t *proc,
                      size_t *rank)
{
    if (strncmp(proc->nspace, job->nspace, PMIX_MAX_NSLEN) != 0 ||
        proc->rank >= job->size)
        return false;
    *rank = proc->rank;
    return true;
}

/* --- lists of ranks and nodes as text ------------------------------------ */

/* Append the ranks of one node, "0,1,5", to text; returns how many. */
static size_t print_ranks(const struct dt_pmix_job *job, size_t node, FILE *out)
{
    size_t count = 0;
    for (size_t r = 0; r < job->size; r++)
        if (job->node_of[r] == node)
            fprintf(out, "%s%zu", count++ ? "," : "", r);
    return count;
}

static char *ranks_of(const struct dt_pmix_job *job, size_t node, size_t *count)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    *count = print_ranks(job, node, out);
    return fclose(out) == 0 ? text : NULL;
}

static char *all_hosts(const struct dt_pmix_job *job)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    for (size_t n = 0; n < job->nodes; n++)
        fprintf(out, "%s%s", n ? "," : "", job->hosts[n]);
    return fclose(out) == 0 ? text : NULL;
}

static char *all_ranks(const struct dt_pmix_job *job)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    for (size_t n = 0; n < job->nodes; n++) {
        fprintf(out, "%s", n ? ";" : "");
        print_ranks(job, n, out);
    }
    return fclose(out) == 0 ? text : NULL;
}

/* --- the attributes ------------------------------------------------------ */

static void add_string(struct dt_pmix_infos *to, const char *key,
                       const char *text)
{
    if (text)
        dt_pmix_info_add(to, key, text, PMIX_STRING);
    else
        to->failed = true;
}

static void add_rank(struct dt_pmix_infos *to, const char *key, size_t rank)
{
    pmix_rank_t value = (pmix_rank_t)rank;
    dt_pmix_info_add(to, key, &value, PMIX_PROC_RANK);
}

/* In which order PMIx wants them: nodes by name, ranks by node. */
static void add_maps(const struct dt_pmix_job *job, struct dt_pmix_infos *to)
{
    char *hosts = all_hosts(job), *ranks = all_ranks(job);
    char *node_map = NULL, *proc_map = NULL;
    if (hosts && ranks && PMIx_generate_regex(hosts, &node_map) == PMIX_SUCCESS)
        dt_pmix_info_add(to, PMIX_NODE_MAP, node_map, PMIX_REGEX);
    else
        to->failed = true;
    if (node_map && PMIx_generate_ppn(ranks, &proc_map) == PMIX_SUCCESS)
        dt_pmix_info_add(to, PMIX_PROC_MAP, proc_map, PMIX_REGEX);
    else
        to->failed = true;
    add_string(to, PMIX_NODE_LIST, hosts);
    free(proc_map);
    free(node_map);
    free(ranks);
    free(hosts);
}

static void add_job(const struct dt_pmix_job *job, struct dt_pmix_infos *to)
{
    const bool yes = true;
    char nsdir[PATH_MAX], wdir[PATH_MAX];
    add_maps(job, to);
    add_string(to, PMIX_JOBID, job->jobid);
    dt_pmix_info_add_uint32(to, PMIX_JOB_SIZE, job->size);
    dt_pmix_info_add_uint32(to, PMIX_UNIV_SIZE, job->size);
    dt_pmix_info_add_uint32(to, PMIX_MAX_PROCS, job->size);
    dt_pmix_info_add_uint32(to, PMIX_JOB_NUM_APPS, 1);
    dt_pmix_info_add_uint32(to, PMIX_NUM_NODES, job->nodes);
    dt_pmix_info_add_uint32(to, PMIX_SESSION_ID, 0);
    add_rank(to, PMIX_NPROC_OFFSET, 0);
    add_string(to, PMIX_TMPDIR, job->directory);
    snprintf(nsdir, sizeof(nsdir), "%s/job", job->directory);
    add_string(to, PMIX_NSDIR, nsdir);
    dt_pmix_info_add(to, PMIX_TDIR_RMCLEAN, &yes, PMIX_BOOL);
    dt_pmix_info_add(to, PMIX_NODE_OVERSUBSCRIBED, &job->oversubscribed,
                     PMIX_BOOL);
    if (getcwd(wdir, sizeof(wdir)))
        add_string(to, PMIX_WDIR, wdir);
    add_string(to, PMIX_APP_ARGV, job->command);

    struct dt_pmix_infos app = {0};
    dt_pmix_info_add_uint32(&app, PMIX_APPNUM, 0);
    dt_pmix_info_add_uint32(&app, PMIX_APP_SIZE, job->size);
    add_rank(&app, PMIX_APPLDR, 0);
    dt_pmix_info_add_array(to, PMIX_APP_INFO_ARRAY, &app);
}

/* What is asked of the job and meant of the asker's node. */
static void add_node(const struct dt_pmix_job *job, size_t node,
                     struct dt_pmix_infos *to)
{
    size_t count = 0;
    char *peers = ranks_of(job, node, &count);
    struct dt_pmix_infos array = {0};
    struct dt_pmix_infos *both[] = {&array, node == job->self ? to : NULL};
    add_string(&array, PMIX_HOSTNAME, job->hosts[node]);
    dt_pmix_info_add_uint32(&array, PMIX_NODEID, node);
    for (size_t i = 0; i < 2; i++) {
        if (!both[i])
            continue;
        dt_pmix_info_add_uint32(both[i], PMIX_LOCAL_SIZE, count);
        dt_pmix_info_add_uint32(both[i], PMIX_NODE_SIZE, count);
        add_string(both[i], PMIX_LOCAL_PEERS, peers);
        if (peers)
            add_rank(both[i], PMIX_LOCALLDR, strtoul(peers, NULL, 10));
    }
    dt_pmix_info_add_array(to, PMIX_NODE_INFO_ARRAY, &array);
    free(peers);
}

/* on_node: how many ranks of lower number are on the same node. */
static void add_proc(const struct dt_pmix_job *job, size_t rank,
                     uint16_t on_node, struct dt_pmix_infos *to)
{
    const uint32_t first_life = 0;
    char procdir[PATH_MAX];
    struct dt_pmix_infos proc = {0};
    add_rank(&proc, PMIX_RANK, rank);
    add_rank(&proc, PMIX_GLOBAL_RANK, rank);
    add_rank(&proc, PMIX_APP_RANK, rank);
    dt_pmix_info_add_uint32(&proc, PMIX_APPNUM, 0);
    dt_pmix_info_add(&proc, PMIX_LOCAL_RANK, &on_node, PMIX_UINT16);
    dt_pmix_info_add(&proc, PMIX_NODE_RANK, &on_node, PMIX_UINT16);
    dt_pmix_info_add_uint32(&proc, PMIX_NODEID, job->node_of[rank]);
    add_string(&proc, PMIX_HOSTNAME, job->hosts[job->node_of[rank]]);
    dt_pmix_info_add(&proc, PMIX_REINCARNATION, &first_life, PMIX_UINT32);
    snprintf(procdir, sizeof(procdir), "%s/job/%zu", job->directory, rank);
    add_string(&proc, PMIX_PROCDIR, procdir);
    dt_pmix_info_add_array(to, PMIX_PROC_INFO_ARRAY, &proc);
}

static void add_procs(const struct dt_pmix_job *job, struct dt_pmix_infos *to)
{
    uint16_t *count = calloc(job->nodes, sizeof(*count));
    to->failed |= !count;
    for (size_t r = 0; count && r < job->size; r++)
        add_proc(job, r, count[job->node_of[r]]++, to);
    free(count);
}

/* --- registration -------------------------------------------------------- */

static bool good(pmix_status_t rc)
{
    return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED;
}

static dt_result_t register_rank(const struct dt_pmix_job *job, size_t rank,
                                 struct dt_error *err)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)rank);
    pmix_status_t rc = PMIx_server_register_client(&proc, getuid(), getgid(),
                                                   NULL, NULL, NULL);
    if (!good(rc))
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not take rank %zu: %s", rank,
                            PMIx_Error_string(rc));
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s/job/%zu", job->directory, rank);
    if (mkdir(dir, 0700))
        return dt_error_set(err, DT_ERR_IO, "mkdir %s: %m", dir);
    return DT_SUCCESS;
}

dt_result_t dt_pmix_job_register(const struct dt_pmix_job *job,
                                 struct dt_error *err)
{
    struct dt_pmix_infos infos = {0};
    add_job(job, &infos);
    size_t local = 0;
    for (size_t n = 0; n < job->nodes; n++)
        add_node(job, n, &infos);
    add_procs(job, &infos);
    for (size_t r = 0; r < job->size; r++)
        local += job->node_of[r] == job->self;
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (!infos.failed)
        rc = PMIx_server_register_nspace(job->nspace, (int)local, infos.all,
                                         infos.count, NULL, NULL);
    dt_pmix_info_free(&infos);
    if (!good(rc))
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not take the job: %s",
                            PMIx_Error_string(rc));
    char nsdir[PATH_MAX];
    snprintf(nsdir, sizeof(nsdir), "%s/job", job->directory);
    if (mkdir(nsdir, 0700))
        return dt_error_set(err, DT_ERR_IO, "mkdir %s: %m", nsdir);
    dt_result_t result = DT_SUCCESS;
    for (size_t r = 0; r < job->size && result == DT_SUCCESS; r++)
        if (job->node_of[r] == job->self)
            result = register_rank(job, r, err);
    return result;
}
