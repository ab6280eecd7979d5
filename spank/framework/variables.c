/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* variables.c - what each framework reads. */
#include "framework/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The variables of one task, as they are put; after one failure all fail. */
struct output {
    dt_framework_put_t *put;
    void *arg;
    bool failed;
};

static void text(struct output *out, const char *name, const char *value)
{
    out->failed = out->failed || !out->put(out->arg, name, value);
}

static void number(struct output *out, const char *name, size_t value)
{
    char digits[32];
    snprintf(digits, sizeof(digits), "%zu", value);
    text(out, name, digits);
}

/* ---- ports ---- */

/* The i-th of a list joined by commas; NULL: there are fewer. */
static const char *find_item(const char *list, size_t i, size_t *length)
{
    for (; list; list = strchr(list, ','), list += list != NULL, i--)
        if (!i) {
            *length = strcspn(list, ",");
            return list;
        }
    return NULL;
}

struct endpoint {
    char both[80], host[64], port[8]; /* "10.0.0.1:4711" and its parts */
};

static bool find_endpoint(const char *list, size_t i, struct endpoint *found)
{
    size_t length = 0;
    const char *item = find_item(list, i, &length);
    if (!item || length >= sizeof(found->both))
        return false;
    memcpy(found->both, item, length);
    found->both[length] = '\0';
    const char *colon = strrchr(found->both, ':');
    if (!colon || colon == found->both)
        return false;
    bool six = found->both[0] == '[';
    int size = (int)(colon - found->both) - (six ? 2 : 0);
    snprintf(found->host, sizeof(found->host), "%.*s", size, found->both + six);
    snprintf(found->port, sizeof(found->port), "%.7s", colon + 1);
    return true;
}

static bool find_shared(const struct dt_frameworks *chosen,
                        const struct dt_framework_task *task,
                        enum dt_framework_port port, struct endpoint *found)
{
    size_t i = 0;
    for (int before = 0; before < (int)port; before++)
        i += dt_frameworks_use(chosen, (enum dt_framework_port)before);
    return find_endpoint(task->shared, i, found);
}

/* ---- PyTorch and what stands on it ---- */

/* Lightning reads the rank and the number of ranks from Slurm. */
static bool wants_ranks(const struct dt_frameworks *chosen)
{
    return chosen->chosen[DT_FRAMEWORK_TORCH] ||
           chosen->chosen[DT_FRAMEWORK_ACCELERATE] ||
           chosen->chosen[DT_FRAMEWORK_DEEPSPEED] ||
           chosen->chosen[DT_FRAMEWORK_SAGEMAKER];
}

static bool put_torch(const struct dt_frameworks *chosen,
                      const struct dt_framework_task *task, struct output *out)
{
    struct endpoint at;
    if (!dt_frameworks_use(chosen, DT_PORT_TORCH))
        return true;
    if (!find_shared(chosen, task, DT_PORT_TORCH, &at))
        return false;
    text(out, "MASTER_ADDR", at.host);
    text(out, "MASTER_PORT", at.port);
    if (!wants_ranks(chosen))
        return true;
    number(out, "RANK", task->rank);
    number(out, "WORLD_SIZE", task->ranks);
    number(out, "LOCAL_RANK", task->local_rank);
    number(out, "LOCAL_WORLD_SIZE", task->local_ranks);
    return true;
}

/* A list in JSON: names of nodes have nothing to escape. */
static char *json_list(const char *names)
{
    char *made = NULL;
    size_t size;
    FILE *out = open_memstream(&made, &size);
    if (!out)
        return NULL;
    fputs("[\"", out);
    for (const char *c = names; *c; c++)
        fputs(*c == ',' ? "\",\"" : (const char[]){*c, '\0'}, out);
    fputs("\"]", out);
    return fclose(out) == 0 ? made : NULL;
}

static void put_sagemaker(const struct dt_frameworks *chosen,
                          const struct dt_framework_task *task,
                          struct output *out)
{
    if (!chosen->chosen[DT_FRAMEWORK_SAGEMAKER])
        return;
    char *hosts = json_list(task->hosts);
    if (hosts)
        text(out, "SM_HOSTS", hosts);
    else
        out->failed = true;
    free(hosts);
    text(out, "SM_CURRENT_HOST", task->host);
    number(out, "SM_NUM_GPUS", task->gpus);
    text(out, "SM_MODEL_DIR", task->directory);
}

/* The nodes find each other by a store, may leave, and are numbered anew. */
static void put_elastic(const struct dt_framework_task *task,
                        const struct endpoint *at, struct output *out)
{
    char id[32];
    snprintf(id, sizeof(id), "%u.%u", (unsigned)task->job,
             (unsigned)task->step);
    text(out, "PET_RDZV_BACKEND", "c10d");
    text(out, "PET_RDZV_ID", id);
    text(out, "PET_RDZV_ENDPOINT", at->both);
}

/* torchrun starts one rank by default, which is right where no GPUs are. */
static bool put_torchrun(const struct dt_frameworks *chosen,
                         const struct dt_framework_task *task,
                         struct output *out)
{
    struct endpoint at;
    if (!chosen->chosen[DT_FRAMEWORK_TORCHRUN])
        return true;
    if (!find_shared(chosen, task, DT_PORT_TORCHRUN, &at))
        return false;
    number(out, "PET_NNODES", task->nodes);
    number(out, "PET_NPROC_PER_NODE", task->gpus ? task->gpus : 1);
    if (chosen->elastic) {
        put_elastic(task, &at, out);
        return true;
    }
    number(out, "PET_NODE_RANK", task->node);
    text(out, "PET_MASTER_ADDR", at.host);
    text(out, "PET_MASTER_PORT", at.port);
    return true;
}

/* ---- JAX, TensorFlow ---- */

static bool put_jax(const struct dt_frameworks *chosen,
                    const struct dt_framework_task *task, struct output *out)
{
    struct endpoint at;
    if (!chosen->chosen[DT_FRAMEWORK_JAX])
        return true;
    if (!find_shared(chosen, task, DT_PORT_JAX, &at))
        return false;
    text(out, "JAX_COORDINATOR_ADDRESS", at.both);
    return true;
}

/* The ranks of a role are consecutive. */
struct role {
    const char *name;
    uint32_t first, n;
};

static bool print_role(const struct role *role, const char *own, FILE *out)
{
    struct endpoint at;
    fprintf(out, "\"%s\":[", role->name);
    for (uint32_t i = 0; i < role->n; i++) {
        if (!find_endpoint(own, i ? 1 : role->first, &at))
            return false;
        size_t length;
        own = find_item(own, i ? 1 : role->first, &length);
        fprintf(out, "%s\"%s\"", i ? "," : "", at.both);
    }
    fputc(']', out);
    return true;
}

static bool print_tensorflow(const struct dt_frameworks *chosen,
                             const struct dt_framework_task *task, FILE *out)
{
    const uint32_t chief = chosen->chief, workers = task->ranks - chosen->ps;
    const struct role roles[] = {{"chief", 0, chief},
                                 {"worker", chief, workers - chief},
                                 {"ps", workers, chosen->ps}};
    const struct role *mine = roles;
    const char *comma = "";
    fputs("{\"cluster\":{", out);
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
        if (!roles[i].n)
            continue;
        if (task->rank >= roles[i].first)
            mine = &roles[i];
        fputs(comma, out);
        if (!print_role(&roles[i], task->own, out))
            return false;
        comma = ",";
    }
    fprintf(out, "},\"task\":{\"type\":\"%s\",\"index\":%u}}", mine->name,
            (unsigned)(task->rank - mine->first));
    return true;
}

static bool put_tensorflow(const struct dt_frameworks *chosen,
                           const struct dt_framework_task *task,
                           struct output *out)
{
    char *made = NULL;
    size_t size;
    if (!chosen->chosen[DT_FRAMEWORK_TENSORFLOW])
        return true;
    FILE *stream = open_memstream(&made, &size);
    bool complete = !stream || print_tensorflow(chosen, task, stream);
    if (!stream || fclose(stream) != 0)
        out->failed = true;
    else if (complete)
        text(out, "TF_CONFIG", made);
    free(made);
    return complete;
}

/* ---- those with services ---- */

/* What horovodrun sets: its own MPI is not used. */
static bool put_horovod(const struct dt_frameworks *chosen,
                        const struct dt_framework_task *task,
                        struct output *out)
{
    struct endpoint at;
    if (!chosen->chosen[DT_FRAMEWORK_HOROVOD])
        return true;
    if (!find_shared(chosen, task, DT_PORT_HOROVOD, &at))
        return false;
    text(out, "HOROVOD_CONTROLLER", "gloo");
    text(out, "HOROVOD_CPU_OPERATIONS", "gloo");
    text(out, "HOROVOD_GLOO_RENDEZVOUS_ADDR", at.host);
    text(out, "HOROVOD_GLOO_RENDEZVOUS_PORT", at.port);
    text(out, "HOROVOD_GLOO_IFACE", task->interface);
    text(out, "HOROVOD_HOSTNAME", task->host);
    number(out, "HOROVOD_RANK", task->rank);
    number(out, "HOROVOD_SIZE", task->ranks);
    number(out, "HOROVOD_LOCAL_RANK", task->local_rank);
    number(out, "HOROVOD_LOCAL_SIZE", task->local_ranks);
    number(out, "HOROVOD_CROSS_RANK", task->node);
    number(out, "HOROVOD_CROSS_SIZE", task->nodes);
    return true;
}

static bool put_ray(const struct dt_frameworks *chosen,
                    const struct dt_framework_task *task, struct output *out)
{
    struct endpoint at;
    if (!chosen->chosen[DT_FRAMEWORK_RAY])
        return true;
    if (!find_shared(chosen, task, DT_PORT_RAY, &at))
        return false;
    text(out, "RAY_ADDRESS", at.both);
    text(out, "RAY_AUTH_MODE", "token");
    text(out, "RAY_AUTH_TOKEN", task->token);
    return true;
}

static bool put_dask(const struct dt_frameworks *chosen,
                     const struct dt_framework_task *task, struct output *out)
{
    struct endpoint at;
    char address[sizeof(at.both) + 8];
    if (!chosen->chosen[DT_FRAMEWORK_DASK])
        return true;
    if (!find_shared(chosen, task, DT_PORT_DASK, &at))
        return false;
    snprintf(address, sizeof(address), "tcp://%s", at.both);
    text(out, "DASK_SCHEDULER_ADDRESS", address);
    return true;
}

bool dt_framework_address(const struct dt_frameworks *chosen,
                          const struct dt_framework_task *task,
                          enum dt_framework_port port, char *at, size_t size)
{
    struct endpoint found;
    return find_shared(chosen, task, port, &found) &&
           (size_t)snprintf(at, size, "%s", found.both) < size;
}

/* ---- all ---- */

static dt_result_t check(const struct dt_frameworks *chosen,
                         const struct dt_framework_task *task,
                         struct dt_error *err)
{
    if (chosen->chosen[DT_FRAMEWORK_TORCHRUN] && task->ranks > task->nodes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--dt-rendezvous=torchrun: %u tasks on %u nodes, "
                            "but torchrun starts the ranks of a node itself: "
                            "use --ntasks-per-node=1, or --dt-rendezvous=torch "
                            "without torchrun",
                            (unsigned)task->ranks, (unsigned)task->nodes);
    if (chosen->ps + chosen->chief >= task->ranks && chosen->ps)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--dt-rendezvous=tensorflow: ps:%u%s leaves none "
                            "of the %u tasks for a worker: use more tasks, or "
                            "a smaller ps:",
                            (unsigned)chosen->ps, chosen->chief ? ",chief" : "",
                            (unsigned)task->ranks);
    if (chosen->chosen[DT_FRAMEWORK_HOROVOD] &&
        (uint64_t)task->local_ranks * task->nodes != task->ranks)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--dt-rendezvous=horovod: %u tasks on %u nodes, %u "
                            "of them on %s, but each needs the same number: "
                            "use --ntasks-per-node",
                            (unsigned)task->ranks, (unsigned)task->nodes,
                            (unsigned)task->local_ranks, task->host);
    if (chosen->chosen[DT_FRAMEWORK_RAY] && !task->token)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "--dt-rendezvous=ray: srun has passed no token: "
                            "install the same slurm-dt where srun runs");
    return DT_SUCCESS;
}

dt_result_t dt_framework_variables(const struct dt_frameworks *chosen,
                                   const struct dt_framework_task *task,
                                   dt_framework_put_t *put, void *arg,
                                   struct dt_error *err)
{
    struct output out = {put, arg, false};
    dt_result_t rc = check(chosen, task, err);
    if (rc != DT_SUCCESS)
        return rc;
    bool complete =
        put_torch(chosen, task, &out) && put_torchrun(chosen, task, &out) &&
        put_jax(chosen, task, &out) && put_tensorflow(chosen, task, &out) &&
        put_horovod(chosen, task, &out) && put_ray(chosen, task, &out) &&
        put_dask(chosen, task, &out);
    put_sagemaker(chosen, task, &out);
    if (!complete)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "--dt-rendezvous: dt-pmixd has not sent all ports: "
                            "install the same slurm-dt on all nodes");
    return out.failed ? dt_error_set(err, DT_ERR_NO_MEMORY,
                                     "no memory for the variables of "
                                     "--dt-rendezvous")
                      : DT_SUCCESS;
}
