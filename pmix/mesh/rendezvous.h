/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.h - how the daemons of a step find each other: a socket at which
 * each registers its entry of the map, and from which the first node gets the
 * map. The others get the map from their parents in the tree.
 *
 * srun opens the socket and publishes its address to the nodes. Where that does
 * not reach them, the daemon of the first node opens it, on the first free one
 * of the ports that follow from job and step, and the others try these, many at
 * a time. No port is trusted: links prove job, step and node. */
#ifndef DT_MESH_RENDEZVOUS_H
#define DT_MESH_RENDEZVOUS_H

#include <poll.h>
#include <sys/socket.h>

#include "mesh/link.h"
#include "mesh/map.h"

/* Deadlines are points in time of CLOCK_MONOTONIC, in ms. alive is a descriptor
 * that is never read: once it has hung up (the other end of a pipe or a socket
 * is closed) the step is over and the functions return SYSTEM. -1: none. */

/* Poll until a point in time; false once fds[0], alive with the events
 * DT_RENDEZVOUS_OVER, has hung up. For both sides. */
#define DT_RENDEZVOUS_OVER POLLRDHUP
bool dt_rendezvous_poll(struct pollfd *fds, nfds_t count, int64_t until);

/* ---- serving ---- */

/* Serve at this listening socket until all nodes have registered and left with
 * the map, or alive hangs up, or deadline. Blocks. The socket stays the
 * caller's, and does not block from now on. It needs a descriptor for each
 * node. Set the deadline a little before that of the nodes, which so get the
 * reason. TIMED_OUT names the nodes that did not register; MISMATCH: two claim
 * the same; PROC_FAILED: one was lost after it had registered. ranks: of the
 * step. log gets lines about refused connections, as struct dt_net_host's
 * refused does; NULL: nobody. Such an error is sent to all nodes that are
 * connected, and to those that connect until deadline. */
typedef void dt_rendezvous_log_t(const char *line);
dt_result_t dt_rendezvous_serve(int listener, const struct dt_identity *self,
                                size_t ranks, int alive, int64_t deadline,
                                dt_rendezvous_log_t *log, struct dt_error *err);

/* The i-th port of a job and step, i < DT_RENDEZVOUS_PORTS. */
#define DT_RENDEZVOUS_PORTS 512
uint16_t dt_rendezvous_port(uint32_t job, uint32_t step, size_t i);

/* A listening socket on the first of these ports that is free, at any address
 * of this machine. SYSTEM: all are taken. */
dt_result_t dt_rendezvous_listen(uint32_t job, uint32_t step, int *listener,
                                 struct dt_error *err);

/* ---- registering ---- */

/* One port, or all those of job and step if it is 0. */
struct dt_rendezvous_address {
    const char *hosts; /* names or addresses, with commas */
    uint16_t port;
};

/* Find the rendezvous and connect to it, with retries until deadline; link is
 * OPEN then, or BROKEN already. Blocks, and while names are looked up until the
 * system's resolver gives up, whatever the deadline. *local is our address of
 * that connection, without its port. TIMED_OUT, with the last reason; VERSION:
 * refused for it, at the one port given (at one of many it may be the
 * rendezvous of another job); SYSTEM. */
dt_result_t dt_rendezvous_dial(const struct dt_rendezvous_address *address,
                               const struct dt_identity *self, int alive,
                               int64_t deadline, struct dt_link **link,
                               struct sockaddr_storage *local,
                               struct dt_error *err);

/* Register our entry; on the first node then wait for the map, else *map stays
 * NULL: it comes as a frame of kind MAP from our parent. Until it does, keep
 * the link and call dt_link_progress: it breaks, with the reason, if the
 * rendezvous fails. Blocks as before. BOOTSTRAP: refused, or the connection
 * broke. */
dt_result_t dt_rendezvous_register(struct dt_link *link,
                                   const struct dt_map_entry *mine, int alive,
                                   int64_t deadline, struct dt_map **map,
                                   struct dt_error *err);

/* Report that we have the map and have sent it to our children. Blocks as
 * before. If that does not arrive, the map is still good. */
void dt_rendezvous_leave(struct dt_link *link, int alive, int64_t deadline);

#endif
