/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* peer_check.c - accept(), for PMIx's library in this process: connections of
 * this user only. PMIx's clients connect by TCP to a port of the loopback,
 * where every user of the node can connect; one whose credential PMIx 4.2
 * rejects leaves it in a state in which it deadlocks when the real rank
 * connects. So other users' connections are closed before PMIx sees them. The
 * kernel knows which user owns the socket at the other end. */
#include "server/peer_check.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One end of a connection on this machine. */
struct end {
    struct sockaddr_storage here, there;
};

static void put_address(const struct sockaddr_storage *from, __be32 *address,
                        __be16 *port)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
    if (from->ss_family == AF_INET6) {
        memcpy(address, &in6->sin6_addr, sizeof(in6->sin6_addr));
        *port = in6->sin6_port;
    } else {
        memcpy(address, &in->sin_addr, sizeof(in->sin_addr));
        *port = in->sin_port;
    }
}

static bool ask(int fd, const struct end *end)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } query = {
        .head = {.nlmsg_len = sizeof(query),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = (__u8)end->here.ss_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0U,
                 .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
    };
    put_address(&end->here, query.body.id.idiag_src,
                &query.body.id.idiag_sport);
    put_address(&end->there, query.body.id.idiag_dst,
                &query.body.id.idiag_dport);
    return send(fd, &query, sizeof(query), 0) == (ssize_t)sizeof(query);
}

/* Which user owns the socket at this end? False: the kernel has no such. */
static bool find_owner(const struct end *end, uid_t *owner)
{
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } reply;
    bool found = false;
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return false;
    /* the kernel has answered before send returns */
    ssize_t n =
        ask(fd, end) ? recv(fd, &reply, sizeof(reply), MSG_DONTWAIT) : 0;
    if (n >= (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg)) &&
        reply.head.nlmsg_type == SOCK_DIAG_BY_FAMILY) {
        const struct inet_diag_msg *msg = NLMSG_DATA(&reply.head);
        *owner = msg->idiag_uid;
        found = true;
    }
    close(fd);
    return found;
}

/* With a kernel that does not know our own end either, PMIx's check alone has
 * to do. The other end of a closed connection has no owner. */
static bool is_own_user(int fd)
{
    struct end ours, theirs;
    socklen_t here = sizeof(ours.here), there = sizeof(ours.there);
    uid_t owner;
    memset(&ours, 0, sizeof(ours));
    if (getsockname(fd, (struct sockaddr *)&ours.here, &here) != 0 ||
        (ours.here.ss_family != AF_INET && ours.here.ss_family != AF_INET6))
        return true;
    if (getpeername(fd, (struct sockaddr *)&ours.there, &there) != 0)
        return false;
    theirs = (struct end){ours.there, ours.here};
    if (find_owner(&theirs, &owner))
        return owner == geteuid();
    return !find_owner(&ours, &owner);
}

bool dt_peer_check_works(void)
{
    struct end end;
    struct sockaddr_in *at = (struct sockaddr_in *)&end.here;
    socklen_t len = sizeof(end.here);
    uid_t owner;
    memset(&end, 0, sizeof(end));
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    end.there.ss_family = AF_INET; /* a listener has no other end */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool works = fd >= 0 && bind(fd, (struct sockaddr *)at, sizeof(*at)) == 0 &&
                 listen(fd, 1) == 0 &&
                 getsockname(fd, (struct sockaddr *)at, &len) == 0 &&
                 find_owner(&end, &owner) && owner == geteuid();
    if (fd >= 0)
        close(fd);
    return works;
}

__attribute__((visibility("default"))) int
accept(int listener, struct sockaddr *restrict from, socklen_t *restrict len)
{
    for (;;) {
        socklen_t room = len ? *len : 0;
        int fd = (int)syscall(SYS_accept4, listener, from, len, 0);
        if (fd < 0 || is_own_user(fd))
            return fd;
        close(fd);
        if (len)
            *len = room;
    }
}
