/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.c - the ranks and nodes of a job. */
#include "server/job.h"

#include <inttypes.h>
#include <limits.h>
#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/info.h"

/* A rank's number on its node is 16 bits wide in PMIx. */
#define LOCAL_MAX UINT16_MAX

dt_result_t dt_pmix_job_init(struct dt_pmix_job *job,
                             const struct dt_pmix_config *config,
                             struct dt_error *err)
{
    const struct dt_map *map = config->map;
    *job = (struct dt_pmix_job){.map = map,
                                .size = map->ranks,
                                .self = config->node,
                                .oversubscribed = config->oversubscribed};
    if (config->node >= map->nodes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "node %zu: expected one of %zu", config->node,
                            map->nodes);
    job->local = &map->entry[config->node];
    for (size_t n = 0; n < map->nodes; n++)
        if (map->entry[n].nranks > LOCAL_MAX)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%zu ranks on node %s: expected %d at most",
                                map->entry[n].nranks, map->entry[n].name,
                                LOCAL_MAX);
    if (strlen(config->nspace) > PMIX_MAX_NSLEN)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the job's name is longer than %d bytes",
                            PMIX_MAX_NSLEN);
    strcpy(job->nspace, config->nspace);
    job->jobid = strdup(config->jobid);
    job->directory = strdup(config->directory);
    job->command = strdup(config->command);
    if (!job->jobid || !job->directory || !job->command)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ranks",
                            job->size);
    return DT_SUCCESS;
}

void dt_pmix_job_free(struct dt_pmix_job *job)
{
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

bool dt_pmix_job_local(const struct dt_pmix_job *job, const pmix_proc_t *proc,
                       size_t *rank)
{
    return dt_pmix_job_rank(job, proc, rank) &&
           job->map->node_of[*rank] == job->self;
}

/* --- lists of ranks and nodes as text ------------------------------------ */

static void print_ranks(const struct dt_map_entry *node, FILE *out)
{
    for (size_t i = 0; i < node->nranks; i++)
        fprintf(out, "%s%" PRIu32, i ? "," : "", node->ranks[i]);
}

enum list {
    HOSTS, /* "n0,n1" */
    RANKS, /* "0,1;2,3" */
};

/* The list of count nodes; NULL: no memory. */
static char *print_list(const struct dt_map_entry *nodes, size_t count,
                        enum list list)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    for (size_t n = 0; n < count; n++) {
        if (n)
            fputc(list == HOSTS ? ',' : ';', out);
        if (list == HOSTS)
            fputs(nodes[n].name, out);
        else
            print_ranks(&nodes[n], out);
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

/* From these two, nodes by name and ranks by node, PMIx derives the host, the
 * node and the local rank of each rank. */
static void add_maps(const struct dt_pmix_job *job, struct dt_pmix_infos *to)
{
    const struct dt_map *map = job->map;
    char *hosts = print_list(map->entry, map->nodes, HOSTS);
    char *ranks = print_list(map->entry, map->nodes, RANKS);
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
    dt_pmix_info_add_uint32(to, PMIX_NUM_NODES, job->map->nodes);
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

/* Clients look up the size and the ranks of their own node in the job's
 * attributes, too, without naming a node. */
static void add_node(const struct dt_pmix_job *job, size_t node,
                     struct dt_pmix_infos *to)
{
    const struct dt_map_entry *entry = &job->map->entry[node];
    char *peers = print_list(entry, 1, RANKS);
    struct dt_pmix_infos array = {0};
    struct dt_pmix_infos *both[] = {&array, node == job->self ? to : NULL};
    add_string(&array, PMIX_HOSTNAME, entry->name);
    dt_pmix_info_add_uint32(&array, PMIX_NODEID, node);
    for (size_t i = 0; i < 2; i++) {
        if (!both[i])
            continue;
        dt_pmix_info_add_uint32(both[i], PMIX_LOCAL_SIZE, entry->nranks);
        dt_pmix_info_add_uint32(both[i], PMIX_NODE_SIZE, entry->nranks);
        add_string(both[i], PMIX_LOCAL_PEERS, peers);
        if (entry->nranks)
            add_rank(both[i], PMIX_LOCALLDR, entry->ranks[0]);
    }
    dt_pmix_info_add_array(to, PMIX_NODE_INFO_ARRAY, &array);
    free(peers);
}

/* --- registration -------------------------------------------------------- */

static bool good(pmix_status_t rc)
{
    return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED;
}

/* What PMIx cannot derive from the maps, for ranks of this node only: storing
 * it for all ranks would take much memory in a large job. PMIX_REINCARNATION is
 * not among them, as PMIx 4.2 would return the first value for ever. */
static pmix_status_t store_rank(const pmix_proc_t *proc, const char *dir)
{
    const uint32_t app = 0;
    const struct {
        const char *key;
        const void *data;
        pmix_data_type_t type;
    } all[] = {
        {PMIX_GLOBAL_RANK, &proc->rank, PMIX_PROC_RANK},
        {PMIX_APP_RANK, &proc->rank, PMIX_PROC_RANK},
        {PMIX_APPNUM, &app, PMIX_UINT32},
        {PMIX_PROCDIR, dir, PMIX_STRING},
    };
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all) && good(rc); i++) {
        pmix_value_t value;
        PMIX_VALUE_LOAD(&value, all[i].data, all[i].type);
        rc = PMIx_Store_internal(proc, all[i].key, &value);
        PMIX_VALUE_DESTRUCT(&value);
    }
    return rc;
}

static dt_result_t register_rank(const struct dt_pmix_job *job, size_t rank,
                                 struct dt_error *err)
{
    char dir[PATH_MAX];
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)rank);
    snprintf(dir, sizeof(dir), "%s/job/%zu", job->directory, rank);
    if (mkdir(dir, 0700))
        return dt_error_set(err, DT_ERR_IO, "mkdir %s: %m", dir);
    pmix_status_t rc = store_rank(&proc, dir);
    if (good(rc))
        rc = PMIx_server_register_client(&proc, getuid(), getgid(), NULL, NULL,
                                         NULL);
    if (!good(rc))
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not take rank %zu: %s", rank,
                            PMIx_Error_string(rc));
    return DT_SUCCESS;
}

dt_result_t dt_pmix_job_register(const struct dt_pmix_job *job,
                                 struct dt_error *err)
{
    struct dt_pmix_infos infos = {0};
    add_job(job, &infos);
    for (size_t n = 0; n < job->map->nodes; n++)
        add_node(job, n, &infos);
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (!infos.failed)
        rc = PMIx_server_register_nspace(job->nspace, (int)job->local->nranks,
                                         infos.all, infos.count, NULL, NULL);
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
    for (size_t i = 0; i < job->local->nranks && result == DT_SUCCESS; i++)
        result = register_rank(job, job->local->ranks[i], err);
    return result;
}

dt_result_t dt_pmix_job_environ(const struct dt_pmix_job *job, size_t rank,
                                char ***env, struct dt_error *err)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)rank);
    pmix_status_t rc = PMIx_server_setup_fork(&proc, env);
    if (rc != PMIX_SUCCESS)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not prepare rank %zu: %s", rank,
                            PMIx_Error_string(rc));
    return DT_SUCCESS;
}
