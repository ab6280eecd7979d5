/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* handshake.c - the handshake of a link.
 *
 *   HELLO      magic 8 | version u32 | pmix blob | job u32 | step u32 |
 *              from u32 | to u32 | nodes u32 | nonce 16
 *   CHALLENGE  nonce 16 | credential blob
 *   PROOF      credential blob
 *   WELCOME    empty
 *
 * Magic and version are the same in every version, as is REFUSE. */
#include "mesh/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "mesh/auth.h"

#define MAGIC     "slurm-dt"
#define MAGIC_LEN 8
#define PMIX_LEN  31

/* The only reason that an unauthenticated peer gets. */
#define NOT_HERE "this is another daemon than the one dialed"

/* ---- refusing ---- */

struct dt_frame *dt_handshake_refusal(bool version, const char *why)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_REFUSE);
    dt_frame_uint(frame, 1, version);
    dt_frame_bytes(frame, why, strlen(why));
    return dt_frame_end(&frame, NULL) == DT_SUCCESS ? frame : NULL;
}

/* Text of an unauthenticated peer, as characters that are safe in a log. */
static void printable(char *to, size_t room, const unsigned char *from,
                      size_t len)
{
    size_t i;
    for (i = 0; i < len && i < room - 1; i++)
        to[i] = (char)(from[i] >= ' ' && from[i] <= '~' ? from[i] : '?');
    to[i] = '\0';
}

dt_result_t dt_handshake_refused(const struct dt_frame *refusal,
                                 struct dt_error *err)
{
    char text[400];
    struct dt_cursor body = dt_frame_body(refusal);
    bool version = dt_cursor_uint(&body, 1) == 1;
    printable(text, sizeof(text), body.at, (size_t)(body.end - body.at));
    return dt_error_set(err, version ? DT_ERR_VERSION : DT_ERR_INVALID_ARG,
                        "%s", text[0] ? text : "it refused without a reason");
}

/* End the handshake. reason is the reason for the peer; NULL: that of err,
 * unless it concerns this node only. */
static dt_result_t refuse(dt_result_t rc, const char *reason,
                          struct dt_frame **reply, const struct dt_error *err)
{
    if (!reason && rc == DT_ERR_SYSTEM)
        reason = "munge does not answer on the other node: is munged running "
                 "there?";
    *reply =
        dt_handshake_refusal(rc == DT_ERR_VERSION, reason ? reason : err->text);
    return rc;
}

/* ---- credentials ---- */

static void hex(char *to, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

/* The message of a credential; returns its length. Both ends compute it from
 * what they know themselves. */
static size_t message(const struct dt_handshake *handshake, bool by_dialer,
                      char *text, size_t room)
{
    const struct dt_identity *self = &handshake->self;
    uint32_t from = handshake->dialer ? self->node : handshake->peer;
    uint32_t to = handshake->dialer ? handshake->peer : self->node;
    char dialer[2 * DT_HANDSHAKE_NONCE + 1],
        acceptor[2 * DT_HANDSHAKE_NONCE + 1];

    hex(dialer, handshake->dialer_nonce, DT_HANDSHAKE_NONCE);
    hex(acceptor, handshake->acceptor_nonce, DT_HANDSHAKE_NONCE);
    return (size_t)snprintf(text, room,
                            MAGIC " link: I am the %s; version %u, PMIx %s, "
                                  "job %u, step %u, from %u, to %u at %s, of "
                                  "%u nodes, nonces %s %s",
                            by_dialer ? "dialer" : "acceptor",
                            (unsigned)DT_WIRE_VERSION, self->pmix, self->job,
                            self->step, from, to, handshake->acceptor,
                            self->nodes, dialer, acceptor);
}

#define MESSAGE_ROOM 384

static dt_result_t prove(const struct dt_handshake *handshake,
                         struct dt_frame *frame, struct dt_error *err)
{
    char text[MESSAGE_ROOM], *cred;
    size_t len = message(handshake, handshake->dialer, text, sizeof(text));
    dt_result_t rc = dt_auth_make(handshake->self.munge, text, len, &cred, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_frame_blob(frame, cred, strlen(cred));
    free(cred);
    return DT_SUCCESS;
}

static dt_result_t believe(const struct dt_handshake *handshake,
                           struct dt_cursor *body, struct dt_error *err)
{
    const void *cred;
    char text[MESSAGE_ROOM];
    size_t cred_len;
    size_t len = message(handshake, !handshake->dialer, text, sizeof(text));
    if (!dt_cursor_blob(body, &cred, &cred_len) || body->at != body->end)
        return dt_error_set(err, DT_ERR_CORRUPT, "it sent no credential");
    return dt_auth_check(handshake->self.munge, cred, cred_len, text, len, err);
}

/* Append a credential to a frame for the other end. */
static dt_result_t end_proof(const struct dt_handshake *handshake,
                             struct dt_frame *frame, struct dt_frame **reply,
                             struct dt_error *err)
{
    dt_result_t rc = prove(handshake, frame, err);
    if (rc != DT_SUCCESS) {
        dt_frame_unref(frame);
        return refuse(rc, NULL, reply, err);
    }
    rc = dt_frame_end(&frame, err);
    if (rc == DT_SUCCESS)
        *reply = frame;
    return rc;
}

/* ---- the frames, in their order ---- */

static dt_result_t make_nonce(unsigned char *nonce, struct dt_error *err)
{
    if (getrandom(nonce, DT_HANDSHAKE_NONCE, 0) == DT_HANDSHAKE_NONCE)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_SYSTEM, "no random numbers: %s",
                        strerror(errno));
}

dt_result_t dt_handshake_begin(struct dt_handshake *handshake,
                               const struct dt_identity *self, uint32_t to,
                               struct dt_frame **hello, struct dt_error *err)
{
    *handshake = (struct dt_handshake){.self = *self,
                                       .dialer = to != DT_NODE_ANY,
                                       .peer = to,
                                       .expects = DT_WIRE_HELLO};
    *hello = NULL;
    if (strlen(self->pmix) > PMIX_LEN)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "PMIx's version is too long: %s", self->pmix);
    if (!handshake->dialer)
        return DT_SUCCESS;
    handshake->expects = DT_WIRE_CHALLENGE;
    dt_result_t rc = make_nonce(handshake->dialer_nonce, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_HELLO);
    dt_frame_bytes(frame, MAGIC, MAGIC_LEN);
    dt_frame_uint(frame, 4, DT_WIRE_VERSION);
    dt_frame_blob(frame, self->pmix, strlen(self->pmix));
    dt_frame_uint(frame, 4, self->job);
    dt_frame_uint(frame, 4, self->step);
    dt_frame_uint(frame, 4, self->node);
    dt_frame_uint(frame, 4, to);
    dt_frame_uint(frame, 4, self->nodes);
    dt_frame_bytes(frame, handshake->dialer_nonce, DT_HANDSHAKE_NONCE);
    rc = dt_frame_end(&frame, err);
    if (rc == DT_SUCCESS)
        *hello = frame;
    return rc;
}

/* Are the versions equal? Only then the rest of HELLO may be read. */
static dt_result_t compare_versions(const struct dt_identity *self,
                                    struct dt_cursor *body,
                                    struct dt_error *err)
{
    const void *magic = dt_cursor_bytes(body, MAGIC_LEN), *pmix;
    uint32_t version = (uint32_t)dt_cursor_uint(body, 4);
    size_t len;
    if (body->failed || memcmp(magic, MAGIC, MAGIC_LEN) != 0)
        return dt_error_set(err, DT_ERR_CORRUPT, "it is no daemon of slurm-dt");
    if (version != DT_WIRE_VERSION)
        return dt_error_set(err, DT_ERR_VERSION,
                            "one daemon speaks version %u of slurm-dt's "
                            "messages, the other version %u: install the same "
                            "slurm-dt on all nodes",
                            (unsigned)DT_WIRE_VERSION, version);
    if (!dt_cursor_blob(body, &pmix, &len) || len > PMIX_LEN)
        return dt_error_set(err, DT_ERR_CORRUPT, "its HELLO is malformed");
    if (len != strlen(self->pmix) || memcmp(pmix, self->pmix, len) != 0) {
        char theirs[PMIX_LEN + 1];
        printable(theirs, sizeof(theirs), pmix, len);
        return dt_error_set(err, DT_ERR_VERSION,
                            "one daemon works with PMIx %s, the other with "
                            "PMIx %s: install the same PMIx and slurm-dt on "
                            "all nodes",
                            self->pmix, theirs);
    }
    return DT_SUCCESS;
}

static dt_result_t challenge(struct dt_handshake *handshake,
                             struct dt_frame **reply, struct dt_error *err)
{
    dt_result_t rc = make_nonce(handshake->acceptor_nonce, err);
    if (rc != DT_SUCCESS)
        return refuse(rc, NULL, reply, err);
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_CHALLENGE);
    dt_frame_bytes(frame, handshake->acceptor_nonce, DT_HANDSHAKE_NONCE);
    return end_proof(handshake, frame, reply, err);
}

static dt_result_t take_hello(struct dt_handshake *handshake,
                              struct dt_cursor *body, struct dt_frame **reply,
                              struct dt_error *err)
{
    const struct dt_identity *self = &handshake->self;
    dt_result_t rc = compare_versions(self, body, err);
    if (rc == DT_ERR_VERSION)
        return refuse(rc, NULL, reply, err);
    if (rc != DT_SUCCESS)
        return rc;
    uint32_t job = (uint32_t)dt_cursor_uint(body, 4);
    uint32_t step = (uint32_t)dt_cursor_uint(body, 4);
    uint32_t from = (uint32_t)dt_cursor_uint(body, 4);
    uint32_t to = (uint32_t)dt_cursor_uint(body, 4);
    uint32_t nodes = (uint32_t)dt_cursor_uint(body, 4);
    const void *nonce = dt_cursor_bytes(body, DT_HANDSHAKE_NONCE);
    if (body->failed || body->at != body->end)
        return dt_error_set(err, DT_ERR_CORRUPT, "its HELLO is malformed");
    if (job != self->job || step != self->step || to != self->node ||
        nodes != self->nodes || from >= nodes || from == to) {
        dt_error_set(err, DT_ERR_INVALID_ARG,
                     "it dialed another daemon: it claims to be node %u "
                     "of the %u of job %u step %u, and dials node %u",
                     from, nodes, job, step, to);
        return refuse(DT_ERR_INVALID_ARG, NOT_HERE, reply, err);
    }
    handshake->peer = from;
    memcpy(handshake->dialer_nonce, nonce, DT_HANDSHAKE_NONCE);
    handshake->expects = DT_WIRE_PROOF;
    return challenge(handshake, reply, err);
}

static dt_result_t take_challenge(struct dt_handshake *handshake,
                                  struct dt_cursor *body,
                                  struct dt_frame **reply, struct dt_error *err)
{
    const void *nonce = dt_cursor_bytes(body, DT_HANDSHAKE_NONCE);
    if (!nonce)
        return dt_error_set(err, DT_ERR_CORRUPT, "its CHALLENGE is malformed");
    memcpy(handshake->acceptor_nonce, nonce, DT_HANDSHAKE_NONCE);
    dt_result_t rc = believe(handshake, body, err);
    if (rc != DT_SUCCESS)
        return refuse(rc, NULL, reply, err);
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_PROOF);
    rc = end_proof(handshake, frame, reply, err);
    if (rc == DT_SUCCESS)
        handshake->expects = DT_WIRE_WELCOME;
    return rc;
}

static dt_result_t take_proof(struct dt_handshake *handshake,
                              struct dt_cursor *body, struct dt_frame **reply,
                              struct dt_error *err)
{
    dt_result_t rc = believe(handshake, body, err);
    if (rc != DT_SUCCESS)
        return refuse(rc, NULL, reply, err);
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_WELCOME);
    rc = dt_frame_end(&frame, err);
    if (rc == DT_SUCCESS)
        *reply = frame;
    handshake->done = rc == DT_SUCCESS;
    return rc;
}

dt_result_t dt_handshake_take(struct dt_handshake *handshake,
                              const struct dt_frame *frame,
                              struct dt_frame **reply, struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    *reply = NULL;
    if (dt_frame_kind(frame) != handshake->expects)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "its handshake is not that of slurm-dt");
    switch (handshake->expects) {
    case DT_WIRE_HELLO:
        return take_hello(handshake, &body, reply, err);
    case DT_WIRE_CHALLENGE:
        return take_challenge(handshake, &body, reply, err);
    case DT_WIRE_PROOF:
        return take_proof(handshake, &body, reply, err);
    default:
        if (body.at != body.end)
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "its WELCOME is malformed");
        handshake->done = true;
        return DT_SUCCESS;
    }
}
