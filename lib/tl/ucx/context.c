/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* context.c - starting UCX, and with which of its transports. Its TCP listens
 * to everybody, and writes where a stranger asks it to, so UCX never gets that
 * one; a node without RDMA is served by another transport of libdt. Its shared
 * memory it gets only by name: ranks of one node do not need UCX, and a process
 * that is killed at the wrong moment leaves its segments in /dev/shm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl/ucx/ucx.h"

static void init_slot(void *request)
{
    ((struct dt_ucx_slot *)request)->orphan = false;
}

static dt_result_t no_memory(struct dt_error *err)
{
    return dt_no_memory(err);
}

static dt_result_t explain(ucs_status_t status, const char *what,
                           struct dt_error *err)
{
    return dt_error_set(
        err, status == UCS_ERR_NO_MEMORY ? DT_ERR_NO_MEMORY : DT_ERR_SYSTEM,
        "UCX cannot %s: %s; see UCX_TLS and UCX_NET_DEVICES", what,
        ucs_status_string(status));
}

/* ---- the transports of UCX ---- */

/* Does this entry of a list stand for the transport? "\tcp" and "tcp:aux" stand
 * for tcp, too. */
static bool stands_for(const char *entry, const char *name)
{
    entry += *entry == '\\';
    size_t len = strcspn(entry, ",:");
    return len == strlen(name) && !strncmp(entry, name, len);
}

static bool lists(const char *list, const char *name)
{
    while (*list && !stands_for(list, name)) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return *list;
}

/* The list for UCX in place of the one that is wanted, to be freed; empty: only
 * TCP is wanted. NULL: no memory. */
static char *choose_transports(const char *wanted)
{
    static const char left_out[] = "tcp,sm";
    char *list = malloc(strlen(wanted) + sizeof(left_out) + 1), *end = list;
    if (!list)
        return NULL;
    *list = 0;
    if (!wanted[*wanted == '^'] || lists(wanted, "all"))
        sprintf(list, "^%s", left_out);
    else if (*wanted == '^')
        sprintf(list, "%s,%s", wanted, left_out);
    else
        for (size_t len; *wanted; wanted += len + (wanted[len] == ',')) {
            len = strcspn(wanted, ",");
            if (!stands_for(wanted, "tcp"))
                end += sprintf(end, "%s%.*s", end > list ? "," : "", (int)len,
                               wanted);
        }
    return list;
}

/* UCX_TLS as the user, or else a ucx.conf, has set it; to be freed. NULL: no
 * memory. */
static char *wanted_transports(const ucp_config_t *config)
{
    static const char name[] = "\nUCX_TLS=";
    if (getenv("UCX_TLS"))
        return strdup(getenv("UCX_TLS"));
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    fputc('\n', out);
    ucp_config_print(config, out, NULL, UCS_CONFIG_PRINT_CONFIG);
    fclose(out);
    const char *at = text ? strstr(text, name) : NULL;
    at = at ? at + strlen(name) : "";
    char *wanted = strndup(at, strcspn(at, "\n"));
    free(text);
    return wanted;
}

/* The networks that this context can use, as UCX prints them; to be freed.
 * NULL: no memory. */
static char *networks(ucp_context_h context)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    ucp_context_print_info(context, out);
    fclose(out);
    return text;
}

/* ---- context and worker ---- */

/* Make a context, if there is RDMA or the user has named what to use. */
static dt_result_t make_context(struct dt_ucx *ucx, const ucp_config_t *config,
                                bool named, struct dt_error *err)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES |
                                         UCP_PARAM_FIELD_REQUEST_SIZE |
                                         UCP_PARAM_FIELD_REQUEST_INIT |
                                         UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA,
                           .request_size = sizeof(struct dt_ucx_slot),
                           .request_init = init_slot,
                           .estimated_num_eps = ucx->size};
    ucs_status_t status = ucp_init(&params, config, &ucx->context);
    if (status != UCS_OK) {
        ucx->context = NULL;
        return status == UCS_ERR_NO_DEVICE && !named
                   ? DT_SUCCESS
                   : explain(status, "start", err);
    }
    char *found = networks(ucx->context);
    if (!found)
        return no_memory(err);
    ucx->rdma = strstr(found, " rc_") || strstr(found, " dc_");
    bool use = (ucx->rdma || named) && !strstr(found, " tcp/");
    free(found);
    if (!use) {
        ucp_cleanup(ucx->context);
        ucx->context = NULL;
    }
    return DT_SUCCESS;
}

/* Without RDMA, UCX would copy GPU memory through the host in small pieces. */
static bool takes_gpu(const struct dt_ucx *ucx, long gpu_memory)
{
    const uint64_t cuda =
        UCS_BIT(UCS_MEMORY_TYPE_CUDA) | UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED);
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    if (!gpu_memory || (gpu_memory < 0 && !ucx->rdma))
        return false;
    return ucp_context_query(ucx->context, &attr) == UCS_OK &&
           (attr.memory_types & cuda) == cuda;
}

static dt_result_t make_card(struct dt_ucx *ucx, size_t len,
                             struct dt_error *err)
{
    ucx->card = malloc(len + 1);
    if (!ucx->card)
        return no_memory(err);
    memcpy(ucx->card, ucx->addr, len);
    ucx->card[len] = ucx->gpu;
    ucx->card_len = len + 1;
    return DT_SUCCESS;
}

static dt_result_t make_worker(struct dt_ucx *ucx, struct dt_error *err)
{
    ucp_worker_params_t params = {.field_mask =
                                      UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status =
        ucp_worker_create(ucx->context, &params, &ucx->worker);
    if (status != UCS_OK) {
        ucx->worker = NULL;
        return explain(status, "make a worker", err);
    }
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS};
    if (ucx->rdma) { /* no rank of this node needs it */
        attr.field_mask |= UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
        attr.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
    }
    status = ucp_worker_query(ucx->worker, &attr);
    if (status != UCS_OK)
        return explain(status, "report its address", err);
    ucx->addr = attr.address;
    return make_card(ucx, attr.address_length, err);
}

static dt_result_t configure(struct dt_ucx *ucx, ucp_config_t *config,
                             struct dt_error *err)
{
    char *wanted = wanted_transports(config);
    char *list = wanted ? choose_transports(wanted) : NULL;
    dt_result_t result = list ? DT_SUCCESS : no_memory(err);
    if (list && *list) {
        bool named = *list != '^' && !lists(wanted, "tcp");
        ucp_config_modify(config, "TLS", list);
        result = make_context(ucx, config, named, err);
    }
    free(wanted);
    free(list);
    return result;
}

dt_result_t dt_ucx_start(struct dt_ucx *ucx, long gpu_memory,
                         struct dt_error *err)
{
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return explain(status, "read its configuration", err);
    dt_result_t result = configure(ucx, config, err);
    ucp_config_release(config);
    if (result != DT_SUCCESS || !ucx->context)
        return result;
    ucx->gpu = takes_gpu(ucx, gpu_memory);
    return make_worker(ucx, err);
}

void dt_ucx_stop(struct dt_ucx *ucx)
{
    if (ucx->addr)
        ucp_worker_release_address(ucx->worker, ucx->addr);
    if (ucx->worker)
        ucp_worker_destroy(ucx->worker);
    if (ucx->context)
        ucp_cleanup(ucx->context);
}
