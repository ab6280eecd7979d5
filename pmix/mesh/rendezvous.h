/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.h - how the daemons of a step find each other: one place where
 * each tells its entry of the map, and from which the first node gets the map.
 * The others get it from their parents in the tree.
 *
 * The place is opened by srun, which publishes its address to the nodes. Where
 * that does not arrive (srun --export=NONE) the daemon of the first node opens
 * it, on one of the ports that job and step stand for; the others try these
 * in turn. No port is trusted: links prove job, step and node. */
#ifndef DT_MESH_MEET_H
#define DT_MESH_MEET_H

#include <sys/socket.h>

#include "mesh/link.h"
#include "mesh/map.h"

/* Deadlines are points in time of CLOCK_MONOTONIC, in ms. alive is a descriptor
 * that is never read: once it has hung up (the other end of a pipe or a socket
 * is closed) the step is over and the functions return SYSTEM. -1: none. */

/* ---- the place ---- */

/* Serve at this listening socket until all have told their entries and left
 * with the map, or alive hangs up, or deadline. Blocks. The socket stays the
 * caller's, and does not block from now on. It needs a descriptor for each
 * node. Set the deadline a little before that of those who come: they hear the
 * reason. TIMED_OUT names the nodes that did not come; MISMATCH: two claim the
 * same; PROC_FAILED: one told its entry and was lost. ranks: of the step. All
 * who have come are told such an error, and until deadline all who come. */
dt_result_t dt_rendezvous_serve(int listener, const struct dt_identity *self,
                                size_t ranks, int alive, int64_t deadline,
                                struct dt_error *err);

/* The i-th port, i < DT_RENDEZVOUS_PORTS, that a job and step stand for. */
#define DT_RENDEZVOUS_PORTS 16
uint16_t dt_rendezvous_port(uint32_t job, uint32_t step, size_t i);

/* A listening socket on the first of these ports that is free, at any address
 * of this machine. SYSTEM: all are taken. */
dt_result_t dt_rendezvous_listen(uint32_t job, uint32_t step, int *listener,
                                 struct dt_error *err);

/* ---- those who come ---- */

/* Where to meet: one port, or all those of job and step when it is 0. */
struct dt_rendezvous_address {
    const char *hosts; /* names or addresses, with commas: tried in turn */
    uint16_t port;
};

/* Find the place and connect to it, trying again until deadline; link is OPEN
 * then, or BROKEN again. Blocks, and while names are looked up until the
 * system's resolver gives up, whatever the deadline. *local is our address of
 * that connection, without its port. TIMED_OUT, with the last reason; VERSION:
 * refused for it, at the one port given (who answers at one of many may be of
 * another job); SYSTEM. */
dt_result_t dt_rendezvous_dial(const struct dt_rendezvous_address *place,
                               const struct dt_identity *self, int alive,
                               int64_t deadline, struct dt_link **link,
                               struct sockaddr_storage *local,
                               struct dt_error *err);

/* Tell our entry; on the first node then wait for the map, else *map stays
 * NULL: it comes as a frame of kind MAP from our parent. Until it does, keep
 * the link and turn it: it breaks with the reason if the meeting fails. Blocks
 * as before. BOOTSTRAP: the place refused, or went away. */
dt_result_t dt_rendezvous_register(struct dt_link *link,
                                   const struct dt_map_entry *mine, int alive,
                                   int64_t deadline, struct dt_map **map,
                                   struct dt_error *err);

/* Tell that we have the map and have handed it on. Blocks as before. If that
 * does not arrive, the map is still good. */
void dt_rendezvous_leave(struct dt_link *link, int alive, int64_t deadline);

#endif
