/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link-ends.c - the two ends of a link, in one process, in pretended time. */
#include "link-ends.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../tap.h"

struct munged munged;
int64_t now;

struct dt_identity identity(uint32_t node)
{
    return (struct dt_identity){.job = 17,
                                .step = 0,
                                .node = node,
                                .nodes = 4,
                                .pmix = "4.2.2",
                                .munge = munged.socket,
                                .heartbeat = HEART};
}

void make_pair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
        abort();
}

struct dt_link *open_link(int fd, const struct dt_identity *self, uint32_t to)
{
    struct dt_link *link;
    if (dt_link_open(&link, fd, self, to, now, NULL) != DT_SUCCESS)
        abort();
    return link;
}

void open_both(struct dt_link *both[2])
{
    int fds[2];
    struct dt_identity from = identity(1), to = identity(2);
    make_pair(fds);
    both[0] = open_link(fds[0], &from, 2);
    both[1] = open_link(fds[1], &to, DT_NODE_ANY);
}

void turn(struct dt_link *both[2], int times)
{
    for (int i = 0; i < times; i++)
        for (int j = 0; j < 2; j++)
            dt_link_progress(both[j], now);
}

void close_both(struct dt_link *both[2])
{
    dt_link_close(both[0]);
    dt_link_close(both[1]);
}

struct dt_frame *frame_of(enum dt_wire_kind kind, size_t len, char fill)
{
    struct dt_frame *frame = dt_frame_begin(kind);
    char *bytes = malloc(len + 1);
    memset(bytes, fill, len);
    dt_frame_bytes(frame, bytes, len);
    free(bytes);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    return frame;
}

void send_frame(struct dt_link *link, enum dt_wire_kind kind, size_t len,
                char fill)
{
    struct dt_frame *frame = frame_of(kind, len, fill);
    dt_link_send(link, frame);
    dt_frame_unref(frame);
}

bool comes(struct dt_link *link, size_t len, char fill)
{
    struct dt_frame *frame = dt_link_next(link);
    bool good = frame && frame->len == len + 5 &&
                (len == 0 || (frame->bytes[5] == (unsigned char)fill &&
                              frame->bytes[len + 4] == (unsigned char)fill));
    dt_frame_unref(frame);
    return good;
}

bool is_open(const struct dt_link *link)
{
    return dt_link_state(link) == DT_LINK_OPEN;
}

bool broke(const struct dt_link *link, dt_result_t result, const char *text)
{
    if (dt_link_state(link) == DT_LINK_BROKEN &&
        dt_link_result(link) == result && strstr(dt_link_why(link), text))
        return true;
    diag("state %d result %d: %s", dt_link_state(link), dt_link_result(link),
         dt_link_why(link));
    return false;
}
