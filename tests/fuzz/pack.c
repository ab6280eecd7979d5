/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pack.c - a libFuzzer target: PMIx's types as bytes, and the requests to
 * the store of what ranks publish. The first byte selects what the others are.
 * fuzz.t builds it. */
#include <stdlib.h>
#include <string.h>

#include "mesh/mesh.h"
#include "operations/operations.h"
#include "operations/pack.h"
#include "operations/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* ---- the mesh, as far as the store sees it ---- */

struct dt_mesh {
    size_t answers;
};

void dt_mesh_answer(struct dt_mesh *mesh, uint64_t ticket, int32_t status,
                    const void *data, size_t len)
{
    (void)ticket, (void)status;
    mesh->answers++;
    check(data || !len);
}

/* ---- what is read ---- */

static struct dt_frame *pack(const struct dt_pmix_infos *infos)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    dt_pack_infos(frame, infos->all, infos->count);
    check(dt_frame_end(&frame, NULL) == DT_SUCCESS);
    return frame;
}

/* What was read is written as bytes that are read as the same. */
static void read_infos(const uint8_t *data, size_t size)
{
    struct dt_cursor from = dt_cursor(data, size);
    struct dt_pmix_infos infos, again;
    if (!dt_unpack_infos(&from, &infos)) {
        check(from.failed);
        return;
    }
    struct dt_frame *first = pack(&infos);
    struct dt_cursor body = dt_frame_body(first);
    check(dt_unpack_infos(&body, &again) && body.at == body.end);
    struct dt_frame *second = pack(&again);
    check(first->len == second->len &&
          memcmp(first->bytes, second->bytes, first->len) == 0);
    dt_frame_unref(first);
    dt_frame_unref(second);
    dt_pmix_info_free(&infos);
    dt_pmix_info_free(&again);
}

/* Requests, each with its length before it, of two nodes: all are answered or
 * wait. */
static void ask(const uint8_t *data, size_t size)
{
    struct dt_mesh mesh = {0};
    struct dt_pmix_store store = {0};
    struct dt_cursor from = dt_cursor(data, size);
    const void *request;
    size_t len = 0, asked = 0;
    while (from.at != from.end) {
        uint32_t what = (uint32_t)dt_cursor_uint(&from, 1) % 4 + DT_ASK_PUBLISH;
        size_t node = dt_cursor_uint(&from, 1) % 2;
        if (!dt_cursor_blob(&from, &request, &len))
            break;
        dt_pmix_store_asked(&store, &mesh, node, ++asked, what, request, len);
        if (asked % 4 == 0)
            dt_pmix_store_forget(&store, asked % 8, 0);
        dt_pmix_store_expire(&store, &mesh);
    }
    size_t waiting = asked - mesh.answers;
    check(mesh.answers <= asked && !waiting == !store.waiting);
    dt_pmix_store_free(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2)
        ask(data + 1, size - 1);
    else if (size > 0)
        read_infos(data + 1, size - 1);
    return 0;
}
