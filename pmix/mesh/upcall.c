/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* upcall.c - what all parts of a mesh use: upcalls that do not nest, time
 * limits, and the sending of frames. */
#include "mesh/mesh_state.h"

void dt_mesh_enter(struct dt_mesh *mesh)
{
    mesh->busy++;
}

static void report_first(struct dt_mesh *mesh)
{
    struct dt_ending *ending = mesh->ended;
    mesh->ended = ending->next;
    if (!mesh->ended)
        mesh->ended_end = &mesh->ended;
    ending->report(ending);
}

void dt_mesh_leave(struct dt_mesh *mesh)
{
    while (mesh->busy == 1 && (mesh->ended || (mesh->no_memory && !mesh->out)))
        if (mesh->ended)
            report_first(mesh);
        else
            mesh->declare_lost(mesh,
                               "no memory for data that other nodes wait for");
    mesh->busy--;
}

void dt_mesh_no_memory(struct dt_mesh *mesh)
{
    mesh->no_memory = true;
}

void dt_mesh_end_later(struct dt_mesh *mesh, struct dt_ending *ending)
{
    ending->next = NULL;
    *mesh->ended_end = ending;
    mesh->ended_end = &ending->next;
}

void dt_limit_begin(struct dt_mesh *mesh, struct dt_limit *limit, int64_t ms)
{
    *limit = (struct dt_limit){.ms = ms};
    if (ms > 0)
        mesh->due = INT64_MIN;
}

bool dt_limit_over(struct dt_mesh *mesh, struct dt_limit *limit)
{
    if (limit->ms <= 0)
        return false;
    if (limit->end == 0)
        limit->end = limit->ms < INT64_MAX - mesh->now ? mesh->now + limit->ms
                                                       : INT64_MAX;
    if (limit->end <= mesh->now)
        return true;
    if (limit->end < mesh->due)
        mesh->due = limit->end;
    return false;
}

void dt_mesh_send(struct dt_mesh *mesh, size_t node, struct dt_frame *frame)
{
    if (!mesh->out && !mesh->members.unreachable[node])
        mesh->host.send(mesh->host.arg, node, frame);
}
