/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.c - the functions of UCX that ucx.h is about, in front of UCX's own. */
#include "ucx.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

#include "mock.h"

#define OWN(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define SHOWN     __attribute__((visibility("default")))

static atomic_int messages, managed, wrong, flying;

int mock_ucx_messages(void)
{
    return messages;
}

int mock_ucx_managed(void)
{
    return managed;
}

int mock_ucx_wrong(void)
{
    return wrong;
}

static void complain(const char *what)
{
    if (wrong++ < 5)
        fprintf(stderr, "UCX of the mock: %s\n", what);
}

static bool on(void)
{
    const char *value = getenv("DT_MOCK_UCX");
    return value && *value == '1';
}

static void need_context(void)
{
    struct dt_cu_context *context = NULL;
    if (cuCtxGetCurrent(&context) || !context)
        complain("messages in memory of a GPU, and no context is current");
}

/* ---- the memory of a message ---- */

static ucs_memory_type_t type_of(const void *buf)
{
    unsigned type = 0, moves = 0;
    int names[] = {DT_CU_MEMORY_TYPE, DT_CU_IS_MANAGED};
    void *values[] = {&type, &moves};
    if (cuPointerGetAttributes(2, names, values, (dt_cu_ptr)(uintptr_t)buf))
        return UCS_MEMORY_TYPE_HOST;
    if (moves)
        return UCS_MEMORY_TYPE_CUDA_MANAGED;
    return type == DT_CU_MEMORY_DEVICE ? UCS_MEMORY_TYPE_CUDA
                                       : UCS_MEMORY_TYPE_HOST;
}

/* Is it one of those? */
static bool look(const void *buf, const ucp_request_param_t *param)
{
    bool told = param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    ucs_memory_type_t type = told ? param->memory_type : UCS_MEMORY_TYPE_HOST;
    if (type == UCS_MEMORY_TYPE_HOST && type_of(buf) == UCS_MEMORY_TYPE_CUDA)
        complain("it is not told that a message is on a GPU");
    if (type == UCS_MEMORY_TYPE_HOST)
        return false;
    if (type != type_of(buf))
        complain("it is told that a message is where it is not");
    need_context();
    messages++;
    managed += type == UCS_MEMORY_TYPE_CUDA_MANAGED;
    return true;
}

/* ---- until it is over ---- */

struct watch {
    ucp_request_param_t param; /* as it was given */
};

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    struct watch *watch = arg;
    flying--;
    watch->param.cb.send(request, status, watch->param.user_data);
    free(watch);
}

static void on_received(void *request, ucs_status_t status,
                        const ucp_tag_recv_info_t *info, void *arg)
{
    struct watch *watch = arg;
    flying--;
    watch->param.cb.recv(request, status, info, watch->param.user_data);
    free(watch);
}

static struct watch *begin(const ucp_request_param_t *param,
                           ucp_request_param_t *own)
{
    struct watch *watch = malloc(sizeof(*watch));
    if (!watch)
        abort();
    watch->param = *param;
    *own = *param;
    own->op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    own->user_data = watch;
    flying++;
    return watch;
}

static ucs_status_ptr_t begun(struct watch *watch, ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request))
        return request;
    flying--;
    free(watch);
    return request;
}

/* ---- UCX ---- */

SHOWN ucs_status_t ucp_context_query(ucp_context_h context,
                                     ucp_context_attr_t *attr)
{
    ucs_status_t status = OWN(ucp_context_query)(context, attr);
    if (on() && attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES)
        attr->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA) |
                              UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED);
    return status;
}

SHOWN ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buf,
                                        size_t count, ucp_tag_t tag,
                                        const ucp_request_param_t *param)
{
    ucp_request_param_t own;
    if (!on() || !look(buf, param))
        return OWN(ucp_tag_send_nbx)(ep, buf, count, tag, param);
    struct watch *watch = begin(param, &own);
    own.cb.send = on_sent;
    return begun(watch, OWN(ucp_tag_send_nbx)(ep, buf, count, tag, &own));
}

SHOWN ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buf,
                                        size_t count, ucp_tag_t tag,
                                        ucp_tag_t mask,
                                        const ucp_request_param_t *param)
{
    ucp_request_param_t own;
    if (!on() || !look(buf, param))
        return OWN(ucp_tag_recv_nbx)(worker, buf, count, tag, mask, param);
    struct watch *watch = begin(param, &own);
    own.cb.recv = on_received;
    return begun(watch,
                 OWN(ucp_tag_recv_nbx)(worker, buf, count, tag, mask, &own));
}

SHOWN unsigned ucp_worker_progress(ucp_worker_h worker)
{
    static __typeof__(&ucp_worker_progress) own;
    if (!own)
        own = OWN(ucp_worker_progress);
    if (flying)
        need_context();
    return own(worker);
}
