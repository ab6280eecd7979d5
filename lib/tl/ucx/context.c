/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* context.c - starting UCX with the settings that the transport needs.
 *
 * A setting that the user has made by a variable of UCX stays as it is. The
 * others depend on the networks that UCX finds on this node, so a first context
 * is opened only to list these. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl/ucx/ucx.h"

static void init_slot(void *request)
{
    ((struct dt_ucx_slot *)request)->orphan = false;
}

static dt_result_t explain(ucs_status_t status, const char *what,
                           struct dt_error *err)
{
    return dt_error_set(
        err, status == UCS_ERR_NO_MEMORY ? DT_ERR_NO_MEMORY : DT_ERR_SYSTEM,
        "UCX cannot %s: %s; see UCX_TLS and UCX_NET_DEVICES", what,
        ucs_status_string(status));
}

static dt_result_t make_context(struct dt_ucx *ucx, const ucp_config_t *config,
                                struct dt_error *err)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
                      UCP_PARAM_FIELD_REQUEST_INIT |
                      UCP_PARAM_FIELD_TAG_SENDER_MASK |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_TAG | (ucx->rdma ? UCP_FEATURE_RMA : 0),
        .request_size = sizeof(struct dt_ucx_slot),
        .request_init = init_slot,
        .tag_sender_mask = DT_UCX_RANK_MASK,
        .estimated_num_eps = ucx->size};
    ucs_status_t status = ucp_init(&params, config, &ucx->context);
    if (status == UCS_OK)
        return DT_SUCCESS;
    ucx->context = NULL;
    return explain(status, "start", err);
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

static void set(ucp_config_t *config, const char *name, const char *value)
{
    char variable[64];
    snprintf(variable, sizeof(variable), "UCX_%s", name);
    if (!getenv(variable))
        ucp_config_modify(config, name, value);
}

static bool since(unsigned major, unsigned minor)
{
    unsigned have_major, have_minor, release;
    ucp_get_version(&have_major, &have_minor, &release);
    return have_major > major || (have_major == major && have_minor >= minor);
}

/* A setting of the TCP transport; older UCX takes it without its prefix. */
static void set_tcp(ucp_config_t *config, const char *name, const char *value)
{
    char variable[64];
    const char *whole = variable + strlen("UCX_");
    snprintf(variable, sizeof(variable), "UCX_TCP_%s", name);
    if (!getenv(variable))
        ucp_config_modify(config, since(1, 17) ? whole : name, value);
}

/* UCX 1.13 has assertions that abort a survivor when a peer dies
 * - and the kernel returns events of other connections in the same batch: take
 *   them one by one;
 * - while this rank connects to it: connect in progress, not in ucp_ep_create;
 * - while a message about the connection itself is queued: send none before the
 *   connection is made (see also connection.c);
 * - while it receives an eager zero-copy message: use none. */
static void avoid_tcp_aborts(ucp_config_t *config)
{
    set_tcp(config, "MAX_POLL", "1");
    set_tcp(config, "CONN_NB", "y");
    if (since(1, 13))
        set(config, "RESOLVE_REMOTE_EP_ID", "n");
    set(config, "ZCOPY_THRESH", "inf");
}

/* Longer segments need fewer headers and system calls; with UCX's 8 KiB half of
 * the bandwidth is lost. */
static void speed_tcp(ucp_config_t *config)
{
    set_tcp(config, "TX_SEG_SIZE", "64k");
    set_tcp(config, "RX_SEG_SIZE", "64k");
}

static void tune(struct dt_ucx *ucx, ucp_config_t *config, const char *found)
{
    ucx->rdma = strstr(found, " rc_") || strstr(found, " dc_");
    ucx->tl.slow = !ucx->rdma && strstr(found, " tcp/");
    if (ucx->tl.slow) {
        avoid_tcp_aborts(config);
        speed_tcp(config);
    }
}

/* Over TCP, UCX would copy GPU memory through the host in small pieces. */
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
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
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
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS |
                                            UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
                              .address_flags =
                                  UCP_WORKER_ADDRESS_FLAG_NET_ONLY};
    status = ucp_worker_query(ucx->worker, &attr);
    if (status != UCS_OK)
        return explain(status, "report its address", err);
    ucx->addr = attr.address;
    return make_card(ucx, attr.address_length, err);
}

dt_result_t dt_ucx_start(struct dt_ucx *ucx, long gpu_memory,
                         struct dt_error *err)
{
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return explain(status, "read its configuration", err);
    dt_result_t result = make_context(ucx, config, err);
    if (result == DT_SUCCESS) {
        char *found = networks(ucx->context);
        tune(ucx, config, found ? found : "");
        free(found);
        ucp_cleanup(ucx->context);
        result = make_context(ucx, config, err);
    }
    ucp_config_release(config);
    if (result != DT_SUCCESS)
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
