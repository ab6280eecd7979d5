/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link.c - one connection between two daemons of a step. */
#include "mesh/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mesh/handshake.h"

#define CHUNK  65536 /* bytes of one read */
#define CHUNKS 16    /* reads of one call at most: other links wait */

/* What may wait to be written: a peer that sends but does not read counts as
 * lost. */
#define MOST_WAITING (4 * DT_WIRE_MAX)

/* Between two calls no more time than this counts against the other end: the
 * rest is time in which this process was stopped. */
#define HANDSHAKE_INTERVAL_MS 1000

/* Frames, first in, first out. */
struct frames {
    struct dt_frame **at;
    size_t first, count, room; /* room is a power of two */
    size_t bytes;
};

struct dt_link {
    int fd;
    enum dt_link_state state;
    struct dt_handshake handshake;
    struct dt_inlet inlet;
    struct frames handshakes, out, in; /* the handshake's go before out */
    size_t written;                    /* bytes written of the first frame */
    bool bye;                          /* BYE has come */
    int64_t now;                       /* at the last call of progress */
    int64_t
        waited;   /* ms without a byte; in the handshake, ms since its begin */
    int64_t sent; /* when something was last written */
    dt_result_t result;
    struct dt_error why;
};

/* ---- queues ---- */

static bool push(struct frames *queue, struct dt_frame *frame)
{
    if (queue->count == queue->room) {
        size_t room = queue->room ? 2 * queue->room : 8;
        struct dt_frame **at = malloc(room * sizeof(struct dt_frame *));
        if (!at)
            return false;
        for (size_t i = 0; i < queue->count; i++)
            at[i] = queue->at[(queue->first + i) & (queue->room - 1)];
        free(queue->at);
        queue->at = at;
        queue->first = 0;
        queue->room = room;
    }
    queue->at[(queue->first + queue->count++) & (queue->room - 1)] = frame;
    queue->bytes += frame->len;
    return true;
}

static struct dt_frame *pop(struct frames *queue)
{
    if (queue->count == 0)
        return NULL;
    struct dt_frame *frame = queue->at[queue->first];
    queue->first = (queue->first + 1) & (queue->room - 1);
    queue->count--;
    queue->bytes -= frame->len;
    return frame;
}

static void clear(struct frames *queue)
{
    struct dt_frame *frame;
    while ((frame = pop(queue)))
        dt_frame_unref(frame);
    free(queue->at);
    *queue = (struct frames){0};
}

/* ---- the end ---- */

__attribute__((format(printf, 3, 4))) static void
end(struct dt_link *link, dt_result_t result, const char *fmt, ...)
{
    va_list ap;
    if (link->state == DT_LINK_BROKEN)
        return;
    link->state = DT_LINK_BROKEN;
    link->result = result;
    va_start(ap, fmt);
    vsnprintf(link->why.text, sizeof(link->why.text), fmt, ap);
    va_end(ap);
}

/* The connection has ended. */
static void cut(struct dt_link *link, int errnum)
{
    const struct dt_handshake *handshake = &link->handshake;
    if (link->bye)
        end(link, DT_SUCCESS, "it has left");
    else if (link->state == DT_LINK_OPEN)
        end(link, DT_ERR_PROC_FAILED, "its connection broke%s%s",
            errnum ? ": " : "", errnum ? strerror(errnum) : "");
    else if (handshake->dialer &&
             (errnum == 0 || errnum == ECONNRESET || errnum == EPIPE))
        end(link, DT_IN_PROGRESS, "it closed the connection without a message");
    else if (handshake->dialer && errnum)
        end(link, DT_ERR_PROC_FAILED, "cannot connect to it: %s",
            strerror(errnum));
    else
        end(link, DT_ERR_PROC_FAILED,
            "it closed the connection before the handshake was "
            "complete");
}

/* ---- writing ---- */

static struct frames *to_write(struct dt_link *link)
{
    if (link->handshakes.count > 0)
        return &link->handshakes;
    return link->state == DT_LINK_HANDSHAKE ? NULL : &link->out;
}

/* Write what can be written; returns errno if the connection has ended. */
static int flush(struct dt_link *link)
{
    struct frames *queue;
    while ((queue = to_write(link)) && queue->count > 0) {
        struct dt_frame *frame = queue->at[queue->first];
        bool more = link->handshakes.count + link->out.count > 1 &&
                    link->state != DT_LINK_HANDSHAKE;
        ssize_t n = send(link->fd, frame->bytes + link->written,
                         frame->len - link->written,
                         MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
        link->sent = link->now;
        link->written += (size_t)n;
        if (link->written < frame->len)
            continue;
        link->written = 0;
        dt_frame_unref(pop(queue));
    }
    return 0;
}

/* The reference is transferred. */
static void queue_frame(struct dt_link *link, struct frames *queue,
                        struct dt_frame *frame)
{
    if (frame && push(queue, frame))
        return;
    dt_frame_unref(frame);
    end(link, DT_ERR_NO_MEMORY, "no memory for what is sent to it");
}

void dt_link_send(struct dt_link *link, struct dt_frame *frame)
{
    if (link->state == DT_LINK_BROKEN)
        return;
    queue_frame(link, &link->out, dt_frame_ref(frame));
    /* If the connection has ended, progress reads what came before. */
    if (link->state == DT_LINK_OPEN)
        flush(link);
    if (link->out.bytes > MOST_WAITING)
        end(link, DT_ERR_TIMED_OUT,
            "it does not read what is sent to it: %zu MiB wait",
            link->out.bytes >> 20);
}

bool dt_link_flushed(const struct dt_link *link)
{
    return link->handshakes.count == 0 && link->out.count == 0;
}

/* Send the last frame and end. The reference is transferred; it may be NULL. */
static void refuse(struct dt_link *link, struct dt_frame *refusal,
                   dt_result_t result, const char *why)
{
    if (link->state == DT_LINK_BROKEN) {
        dt_frame_unref(refusal);
        return;
    }
    if (refusal) {
        queue_frame(
            link, link->state == DT_LINK_OPEN ? &link->out : &link->handshakes,
            refusal);
        flush(link);
    }
    end(link, result, "%s", why);
}

void dt_link_refuse(struct dt_link *link, const char *why)
{
    refuse(link, dt_handshake_refusal(false, why), DT_ERR_INVALID_ARG, why);
}

static void send_heartbeat(struct dt_link *link)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_BEAT);
    if (dt_frame_end(&frame, NULL) == DT_SUCCESS)
        queue_frame(link, &link->out, frame);
    link->sent = link->now;
}

/* ---- reading ---- */

/* The acceptor's address, as this end has it. */
static void find_acceptor(struct dt_link *link)
{
    struct dt_handshake *handshake = &link->handshake;
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at);
    uint8_t ip[16];
    uint16_t port;
    char text[DT_ADDRESS_TEXT];
    int rc = handshake->dialer
                 ? getpeername(link->fd, (struct sockaddr *)&at, &len)
                 : getsockname(link->fd, (struct sockaddr *)&at, &len);
    handshake->acceptor[0] = '\0';
    if (rc != 0 || !dt_address_get((struct sockaddr *)&at, ip, &port))
        return;
    dt_address_text(ip, text);
    snprintf(handshake->acceptor, sizeof(handshake->acceptor), "%s %u", text,
             port);
}

static void handshake_take(struct dt_link *link, const struct dt_frame *frame)
{
    struct dt_frame *reply;
    struct dt_error err = {""};
    find_acceptor(link);
    dt_result_t rc = dt_handshake_take(&link->handshake, frame, &reply, &err);
    if (rc != DT_SUCCESS) {
        refuse(link, reply, rc, err.text);
        return;
    }
    if (reply)
        queue_frame(link, &link->handshakes, reply);
    if (link->handshake.done && link->state == DT_LINK_HANDSHAKE) {
        link->state = DT_LINK_OPEN;
        link->waited = 0;
        link->sent = link->now;
    }
}

/* The reference is transferred. */
static void take(struct dt_link *link, struct dt_frame *frame)
{
    enum dt_wire_kind kind = dt_frame_kind(frame);
    struct dt_error err = {""};
    if (kind == DT_WIRE_REFUSE) {
        dt_result_t rc = dt_handshake_refused(frame, &err);
        end(link, rc, "%s", err.text);
    } else if (link->state == DT_LINK_HANDSHAKE) {
        handshake_take(link, frame);
    } else if (kind < DT_WIRE_REFUSE) {
        end(link, DT_ERR_CORRUPT, "it began a second handshake");
    } else if (kind != DT_WIRE_BEAT) {
        link->bye = link->bye || kind == DT_WIRE_BYE;
        if (push(&link->in, frame))
            return;
        end(link, DT_ERR_NO_MEMORY, "no memory for what it sends");
    }
    dt_frame_unref(frame);
}

static void cut_into_frames(struct dt_link *link, const unsigned char *data,
                            size_t len)
{
    struct dt_error err = {""};
    while (len > 0 && link->state != DT_LINK_BROKEN) {
        struct dt_frame *frame = NULL;
        size_t used = 0, max = link->state == DT_LINK_OPEN ? DT_WIRE_MAX
                                                           : DT_HANDSHAKE_MAX;
        dt_result_t rc =
            dt_inlet_take(&link->inlet, data, len, max, &used, &frame, &err);
        if (rc != DT_SUCCESS) {
            end(link, rc, "it sent a malformed message: %s", err.text);
            return;
        }
        data += used;
        len -= used;
        if (frame)
            take(link, frame);
    }
}

/* Returns whether there may be more to read. */
static bool receive(struct dt_link *link)
{
    unsigned char chunk[CHUNK];
    for (int i = 0; i < CHUNKS && link->state != DT_LINK_BROKEN; i++) {
        ssize_t n = recv(link->fd, chunk, sizeof(chunk), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return false;
        if (n <= 0) {
            cut(link, n < 0 ? errno : 0);
            return false;
        }
        if (link->state == DT_LINK_OPEN)
            link->waited = 0;
        cut_into_frames(link, chunk, (size_t)n);
    }
    return link->state != DT_LINK_BROKEN;
}

struct dt_frame *dt_link_next(struct dt_link *link)
{
    return pop(&link->in);
}

/* ---- time ---- */

static int64_t limit_of(const struct dt_link *link)
{
    return link->state == DT_LINK_OPEN ? link->handshake.self.heartbeat
                                       : DT_LINK_HANDSHAKE_MS;
}

/* Heartbeats come three times per limit: two may be late. */
static int64_t interval_of(const struct dt_link *link)
{
    if (link->state == DT_LINK_HANDSHAKE)
        return HANDSHAKE_INTERVAL_MS;
    int64_t third = link->handshake.self.heartbeat / 3;
    return third > 0 ? third : 1;
}

static void count_time(struct dt_link *link, int64_t now)
{
    int64_t gap = now - link->now, interval = interval_of(link);
    link->waited += gap < 0 ? 0 : gap < interval ? gap : interval;
    link->now = now;
}

static int64_t due(const struct dt_link *link)
{
    int64_t interval = interval_of(link), left = limit_of(link) - link->waited;
    int64_t at = link->now + (left < interval ? left : interval);
    if (link->state == DT_LINK_OPEN && dt_link_flushed(link) &&
        link->sent + interval < at)
        at = link->sent + interval;
    return at;
}

int64_t dt_link_progress(struct dt_link *link, int64_t now)
{
    if (link->state == DT_LINK_BROKEN)
        return INT64_MAX;
    count_time(link, now);
    receive(link);
    if (link->state == DT_LINK_OPEN && dt_link_flushed(link) &&
        now - link->sent >= interval_of(link))
        send_heartbeat(link);
    int errnum = link->state == DT_LINK_BROKEN ? 0 : flush(link);
    if (errnum) {
        while (receive(link)) /* what it sent before the end */
            ;
        cut(link, errnum);
    }
    if (link->state != DT_LINK_BROKEN && link->waited >= limit_of(link)) {
        if (link->state == DT_LINK_OPEN)
            end(link, DT_ERR_TIMED_OUT,
                "nothing was received from it for %lld s",
                (long long)(limit_of(link) / 1000));
        else
            end(link, DT_ERR_TIMED_OUT,
                "its handshake was not complete within %d s",
                DT_LINK_HANDSHAKE_MS / 1000);
    }
    return link->state == DT_LINK_BROKEN ? INT64_MAX : due(link);
}

/* ---- begin and end ---- */

static dt_result_t begin(struct dt_link *link, int fd,
                         const struct dt_identity *self, uint32_t to,
                         int64_t now, struct dt_error *err)
{
    struct dt_frame *hello;
    int on = 1;
    link->fd = fd;
    link->state = DT_LINK_HANDSHAKE;
    link->now = link->sent = now;
    link->waited = 0;
    /* it only helps, and only TCP sockets have it */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    dt_result_t rc =
        dt_handshake_begin(&link->handshake, self, to, &hello, err);
    if (rc == DT_SUCCESS && hello)
        queue_frame(link, &link->handshakes, hello);
    return rc;
}

dt_result_t dt_link_open(struct dt_link **link, int fd,
                         const struct dt_identity *self, uint32_t to,
                         int64_t now, struct dt_error *err)
{
    struct dt_link *made = calloc(1, sizeof(*made));
    if (!made) {
        close(fd);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a link");
    }
    dt_result_t rc = begin(made, fd, self, to, now, err);
    if (rc != DT_SUCCESS) {
        dt_link_close(made);
        return rc;
    }
    *link = made;
    return DT_SUCCESS;
}

/* With unread data the kernel would reset the connection and drop what it has
 * not sent yet: a REFUSE, or a BYE. */
static void close_socket(int fd)
{
    unsigned char chunk[4096];
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 16 && recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT) > 0;
         i++)
        ;
    close(fd);
}

dt_result_t dt_link_retry(struct dt_link *link, int fd, int64_t now,
                          struct dt_error *err)
{
    const struct dt_identity self = link->handshake.self;
    close(link->fd);
    clear(&link->handshakes);
    dt_inlet_free(&link->inlet);
    link->inlet = (struct dt_inlet){0};
    link->written = 0;
    dt_result_t rc = begin(link, fd, &self, link->handshake.peer, now, err);
    if (rc != DT_SUCCESS)
        end(link, rc, "cannot dial it once more");
    return rc;
}

void dt_link_close(struct dt_link *link)
{
    if (!link)
        return;
    close_socket(link->fd);
    clear(&link->handshakes);
    clear(&link->out);
    clear(&link->in);
    dt_inlet_free(&link->inlet);
    free(link);
}

int dt_link_fd(const struct dt_link *link)
{
    return link->fd;
}

short dt_link_events(const struct dt_link *link)
{
    bool more = link->handshakes.count > 0 ||
                (link->state == DT_LINK_OPEN && link->out.count > 0);
    if (link->state == DT_LINK_BROKEN)
        return 0;
    return (short)(POLLIN | (more ? POLLOUT : 0));
}

enum dt_link_state dt_link_state(const struct dt_link *link)
{
    return link->state;
}

uint32_t dt_link_peer(const struct dt_link *link)
{
    return link->handshake.done ? link->handshake.peer : DT_NODE_ANY;
}

const char *dt_link_why(const struct dt_link *link)
{
    return link->why.text;
}

dt_result_t dt_link_result(const struct dt_link *link)
{
    return link->result;
}
