/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link.c - a libFuzzer target: a link whose other end writes what it likes, in
 * pieces, before, in and after the handshake. The first byte selects the role;
 * each piece has its length in front. munge is a stub that believes one word.
 * fuzz.t builds it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/auth.h"
#include "mesh/link.h"

#define GOOD "MUNGE"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* What the stubs have seen; the target is one thread. */
static struct {
    size_t made, believed;
} munge;

dt_result_t dt_auth_make(const char *socket, const void *message, size_t len,
                         char **cred, struct dt_error *err)
{
    (void)socket;
    (void)err;
    check(message && len > 0);
    munge.made++;
    *cred = strdup(GOOD);
    check(*cred != NULL);
    return DT_SUCCESS;
}

dt_result_t dt_auth_check(const char *socket, const char *cred, size_t cred_len,
                          const void *message, size_t len, struct dt_error *err)
{
    (void)socket;
    check(message && len > 0);
    if (cred_len != strlen(GOOD) || memcmp(cred, GOOD, cred_len) != 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "not a credential");
    munge.believed++;
    return DT_SUCCESS;
}

/* Everything the link writes is frames, and none but those of the handshake
 * before it believes. */
static void read_all(int fd, struct dt_inlet *inlet, bool open)
{
    unsigned char chunk[4096];
    ssize_t n;
    while ((n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        for (size_t at = 0, used; at < (size_t)n; at += used) {
            struct dt_frame *frame;
            check(dt_inlet_take(inlet, chunk + at, (size_t)n - at, DT_WIRE_MAX,
                                &used, &frame, NULL) == DT_SUCCESS);
            check(open || !frame || dt_frame_kind(frame) <= DT_WIRE_REFUSE);
            dt_frame_unref(frame);
        }
}

/* What has come is well-formed; before the end of the handshake, nothing. */
static void take_frames(struct dt_link *link, bool open)
{
    struct dt_frame *frame;
    while ((frame = dt_link_next(link))) {
        check(open && frame->len >= 5 && dt_frame_kind(frame) > DT_WIRE_BEAT);
        dt_frame_unref(frame);
    }
}

/* One turn, and what must be so after it. *open: the link is, or was, OPEN,
 * maybe within a turn. */
static void turn(struct dt_link *link, int peer, struct dt_inlet *inlet,
                 bool *open, int64_t now)
{
    int64_t next = dt_link_progress(link, now);
    enum dt_link_state state = dt_link_state(link);
    check(state != DT_LINK_HANDSHAKE || !*open);
    if (munge.believed > 0 && state != DT_LINK_HANDSHAKE)
        *open = true;
    check(state != DT_LINK_OPEN || (munge.believed == 1 && munge.made == 1));
    check(next > now);
    const char *why = state == DT_LINK_BROKEN ? dt_link_why(link) : "-";
    check(*why && !strchr(why, '\n'));
    read_all(peer, inlet, *open);
    take_frames(link, *open);
}

static struct dt_link *open_link(int fd, bool dialer)
{
    static const struct dt_identity self = {.job = 17,
                                            .step = 1,
                                            .node = 2,
                                            .nodes = 4,
                                            .pmix = "4.2.2",
                                            .heartbeat = 30000};
    struct dt_link *link;
    check(dt_link_open(&link, fd, &self, dialer ? 0 : DT_NODE_ANY, 0, NULL) ==
          DT_SUCCESS);
    return link;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_inlet inlet = {0};
    bool open = false;
    int64_t now = 0;
    int fd[2];
    if (size == 0)
        return 0;
    memset(&munge, 0, sizeof(munge));
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
    struct dt_link *link = open_link(fd[0], data[0] & 1);
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_BYE);
    check(dt_frame_end(&frame, NULL) == DT_SUCCESS);
    dt_link_send(link, frame); /* waits until there is somebody to have it */
    dt_frame_unref(frame);
    for (size_t at = 1; at < size;) {
        size_t n = data[at++]; /* 0: time goes by */
        if (n > size - at)
            n = size - at;
        now += n ? 1 : 1000;
        if (n && send(fd[1], data + at, n, MSG_NOSIGNAL) < 0)
            break;
        at += n;
        turn(link, fd[1], &inlet, &open, now);
    }
    shutdown(fd[1], SHUT_WR);
    turn(link, fd[1], &inlet, &open, now + 1);
    check(dt_link_state(link) == DT_LINK_BROKEN);
    dt_link_close(link);
    read_all(fd[1], &inlet, open);
    dt_inlet_free(&inlet);
    close(fd[1]);
    return 0;
}
