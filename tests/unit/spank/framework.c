/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* framework.c - the names of --dt-rendezvous, and the variables of each. */
#include "framework/names.h"
#include "framework/variables.h"

#include <string.h>

#include "../tap.h"

static void test_names(void)
{
    static const char *const good[] = {"torch",
                                       "lightning",
                                       "accelerate",
                                       "deepspeed",
                                       "sagemaker",
                                       "torchrun",
                                       "jax",
                                       "tensorflow",
                                       "mpi4py",
                                       "c",
                                       "torch,jax",
                                       "tensorflow,chief,ps:2",
                                       "jax,tensorflow,ps:1",
                                       "torchrun,elastic",
                                       "horovod",
                                       "ray,dask"};
    static const char *const bad[] = {"",
                                      ",",
                                      "torc",
                                      "torchx",
                                      "Torch",
                                      "auto",
                                      "spark",
                                      "elastic",
                                      "torch,elastic",
                                      "torchrun,elastic,elastic",
                                      "torch,",
                                      ",torch",
                                      "torch,,jax",
                                      "torch,torch",
                                      "ps:1",
                                      "torch,ps:1",
                                      "chief",
                                      "tensorflow,ps:",
                                      "tensorflow,ps:0",
                                      "tensorflow,ps:1x",
                                      "tensorflow,ps:1,ps:2",
                                      "tensorflow,chief,chief",
                                      "torch jax",
                                      "tensorflow,ps:-1"};
    struct dt_frameworks chosen;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        ok(dt_frameworks_parse(good[i], &chosen), "%s is known", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        chosen = (struct dt_frameworks){.ps = 17};
        ok(!dt_frameworks_parse(bad[i], &chosen) && chosen.ps == 17,
           "\"%s\" is not", bad[i]);
    }
}

static void ports(const char *text, uint32_t shared, bool own)
{
    struct dt_frameworks chosen;
    ok(dt_frameworks_parse(text, &chosen) &&
           dt_frameworks_shared(&chosen) == shared &&
           dt_frameworks_own(&chosen) == own,
       "%s: %u shared ports, %s of each rank", text, (unsigned)shared,
       own ? "one" : "none");
}

static void test_ports(void)
{
    ports("torch", 1, false);
    ports("torch,lightning,deepspeed", 1, false);
    ports("torch,torchrun,jax", 3, false);
    ports("tensorflow", 0, true);
    ports("jax,tensorflow", 1, true);
    ports("mpi4py,c", 0, false);
    ports("dask,ray,horovod,torch", 4, false);
}

/* ---- variables ---- */

struct text {
    char all[1024];
    size_t most; /* then there is no memory; 0: never */
};

static bool put(void *arg, const char *name, const char *value)
{
    struct text *text = arg;
    size_t length = strlen(text->all);
    if (text->most && length >= text->most)
        return false;
    snprintf(text->all + length, sizeof(text->all) - length, "%s=%s ", name,
             value);
    return true;
}

/* rank 2 of 4, the first on the second of two nodes */
static const struct dt_framework_task task = {
    .rank = 2,
    .ranks = 4,
    .job = 17,
    .step = 3,
    .token = "secret",
    .interface = "eth0",
    .local_ranks = 2,
    .node = 1,
    .nodes = 2,
    .gpus = 8,
    .host = "n1",
    .hosts = "n0,n1",
    .directory = "/home/u",
    .own = "10.0.0.1:1,10.0.0.1:2,10.0.0.2:3,10.0.0.2:4",
    .shared = "10.0.0.1:4711,10.0.0.1:4712,10.0.0.1:4713"};

static void sets_in(const char *names, const struct dt_framework_task *of,
                    const char *wanted)
{
    struct dt_frameworks chosen;
    struct dt_error err = {""};
    struct text got = {.all = ""};
    dt_frameworks_parse(names, &chosen);
    dt_result_t rc = dt_framework_variables(&chosen, of, put, &got, &err);
    if (!ok(rc == DT_SUCCESS && !strcmp(got.all, wanted), "%s: %s", names,
            wanted))
        diag("result %d %s, got %s", rc, err.text, got.all);
}

static void sets(const char *names, const char *wanted)
{
    sets_in(names, &task, wanted);
}

#define MASTER "MASTER_ADDR=10.0.0.1 MASTER_PORT=4711 "
#define RANKS  "RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 "

static void test_variables(void)
{
    struct dt_framework_task other = task;
    sets("torch", MASTER RANKS);
    sets("accelerate", MASTER RANKS);
    sets("deepspeed", MASTER RANKS);
    sets("lightning", MASTER);
    sets("sagemaker",
         MASTER RANKS "SM_HOSTS=[\"n0\",\"n1\"] SM_CURRENT_HOST=n1 "
                      "SM_NUM_GPUS=8 SM_MODEL_DIR=/home/u ");
    sets("jax", "JAX_COORDINATOR_ADDRESS=10.0.0.1:4711 ");
    sets("jax,torch", MASTER RANKS "JAX_COORDINATOR_ADDRESS=10.0.0.1:4712 ");
    sets("mpi4py,c", "");
    sets("tensorflow",
         "TF_CONFIG={\"cluster\":{\"worker\":[\"10.0.0.1:1\",\"10.0.0.1:2\","
         "\"10.0.0.2:3\",\"10.0.0.2:4\"]},"
         "\"task\":{\"type\":\"worker\",\"index\":2}} ");
    sets("tensorflow,chief,ps:1",
         "TF_CONFIG={\"cluster\":{\"chief\":[\"10.0.0.1:1\"],"
         "\"worker\":[\"10.0.0.1:2\",\"10.0.0.2:3\"],"
         "\"ps\":[\"10.0.0.2:4\"]},"
         "\"task\":{\"type\":\"worker\",\"index\":1}} ");
    other.rank = 3;
    sets_in("tensorflow,ps:2", &other,
            "TF_CONFIG={\"cluster\":{"
            "\"worker\":[\"10.0.0.1:1\",\"10.0.0.1:2\"],"
            "\"ps\":[\"10.0.0.2:3\",\"10.0.0.2:4\"]},"
            "\"task\":{\"type\":\"ps\",\"index\":1}} ");
    other = task;
    other.shared = "[fd00::1]:80";
    sets_in("torch", &other, "MASTER_ADDR=fd00::1 MASTER_PORT=80 " RANKS);
    sets_in("jax", &other, "JAX_COORDINATOR_ADDRESS=[fd00::1]:80 ");
    other = task;
    other.rank = other.local_ranks = 1;
    other.ranks = 2;
    sets_in("torchrun", &other,
            "PET_NNODES=2 PET_NPROC_PER_NODE=8 PET_NODE_RANK=1 "
            "PET_MASTER_ADDR=10.0.0.1 PET_MASTER_PORT=4711 ");
    other.gpus = 0;
    sets_in("torchrun", &other,
            "PET_NNODES=2 PET_NPROC_PER_NODE=1 PET_NODE_RANK=1 "
            "PET_MASTER_ADDR=10.0.0.1 PET_MASTER_PORT=4711 ");
}

static void test_services(void)
{
    struct dt_framework_task other = task;
    struct dt_frameworks chosen;
    const char *variable;
    char at[64];
    sets("dask", "DASK_SCHEDULER_ADDRESS=tcp://10.0.0.1:4711 ");
    sets("ray", "RAY_ADDRESS=10.0.0.1:4711 RAY_AUTH_MODE=token "
                "RAY_AUTH_TOKEN=secret ");
    sets("horovod",
         "HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo "
         "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1 "
         "HOROVOD_GLOO_RENDEZVOUS_PORT=4711 HOROVOD_GLOO_IFACE=eth0 "
         "HOROVOD_HOSTNAME=n1 HOROVOD_RANK=2 HOROVOD_SIZE=4 "
         "HOROVOD_LOCAL_RANK=0 HOROVOD_LOCAL_SIZE=2 HOROVOD_CROSS_RANK=1 "
         "HOROVOD_CROSS_SIZE=2 ");
    other.rank = other.local_ranks = 1;
    other.ranks = 2;
    sets_in("torchrun,elastic", &other,
            "PET_NNODES=2 PET_NPROC_PER_NODE=8 PET_RDZV_BACKEND=c10d "
            "PET_RDZV_ID=17.3 PET_RDZV_ENDPOINT=10.0.0.1:4711 ");
    dt_frameworks_parse("torch,dask", &chosen);
    ok(dt_framework_address(&chosen, &task, DT_PORT_DASK, at, sizeof(at)) &&
           !strcmp(at, "10.0.0.1:4712"),
       "the address of a service");
    ok(!dt_framework_address(&chosen, &task, DT_PORT_DASK, at, 13),
       "it does not fit");
    ok(!strcmp(dt_frameworks_service(DT_PORT_DASK, &variable), "dask") &&
           !strcmp(variable, "DASK_SCHEDULER_ADDRESS"),
       "the name of a service and its variable");
}

static void fails(const char *names, const struct dt_framework_task *of,
                  size_t most, dt_result_t wanted, const char *why)
{
    struct dt_frameworks chosen;
    struct dt_error err = {""};
    struct text got = {.all = "", .most = most};
    dt_frameworks_parse(names, &chosen);
    dt_result_t rc = dt_framework_variables(&chosen, of, put, &got, &err);
    if (!ok(rc == wanted && strstr(err.text, why), "%s fails: %s", names, why))
        diag("result %d, \"%s\"", rc, err.text);
}

static void test_failures(void)
{
    struct dt_framework_task other = task;
    fails("torchrun", &task, 0, DT_ERR_INVALID_ARG,
          "4 tasks on 2 nodes, but torchrun starts the ranks of a node itself: "
          "use --ntasks-per-node=1");
    fails("tensorflow,ps:4", &task, 0, DT_ERR_INVALID_ARG,
          "ps:4 leaves none of the 4 tasks for a worker");
    fails("tensorflow,chief,ps:3", &task, 0, DT_ERR_INVALID_ARG,
          "ps:3,chief leaves none of the 4 tasks");
    fails("torch", &task, 1, DT_ERR_NO_MEMORY, "no memory");
    other.local_ranks = 3;
    fails("horovod", &other, 0, DT_ERR_INVALID_ARG,
          "4 tasks on 2 nodes, 3 of them on n1, but each needs the same");
    other = task;
    other.token = NULL;
    fails("ray", &other, 0, DT_ERR_MISMATCH, "srun has passed no token");
    other.shared = NULL;
    fails("torch", &other, 0, DT_ERR_MISMATCH, "has not sent all ports");
    other.shared = "10.0.0.1:1";
    fails("torch,jax", &other, 0, DT_ERR_MISMATCH, "has not sent all ports");
    other.own = "10.0.0.1:1,10.0.0.1:2,10.0.0.2:3";
    fails("tensorflow", &other, 0, DT_ERR_MISMATCH, "has not sent all ports");
}

int main(void)
{
    test_names();
    test_ports();
    test_variables();
    test_services();
    test_failures();
    return tap_done();
}
