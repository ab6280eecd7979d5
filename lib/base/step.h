/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* step.h - the protocol between the plugin in slurmstepd and dt-pmixd, the PMIx
 * server of the step on that node. It runs over a socket pair (AF_UNIX,
 * SOCK_SEQPACKET), the daemon's standard input; each packet is text.
 *
 *   plugin -> daemon
 *     first, lines of "key value", in any order; unknown keys are an error:
 *       version 1
 *       job 17              Slurm's numbers
 *       step 0
 *       node 2              this node among those of the step
 *       nodes 4
 *       name n2             its name for Slurm
 *       ranks 8             of the step
 *       local 4-5,9         those on this node
 *       meet 10.0.0.1 4711  the rendezvous: hosts (with commas) and port; 0:
 *                           the first node opens it, at a port that job and
 *                           step determine
 *       srun 10.0.0.1       the address by whose route the first node finds
 *                           its own, if it opens it; absent: its name
 *       directory /run/...  to be made, private; parents exist
 *       heartbeat 30        seconds
 *       limit 60            seconds until all nodes must be connected
 *       auth munge          of clients; or native
 *       munge /run/...      munged's socket; absent: munge's own
 *       command ./a.out ... the program of the ranks
 *       hold-own 1          a port is held for each rank of the node; absent: 0
 *       hold-shared 2       ports that the node of rank 0 holds; absent: 0
 *       listen 60           seconds from the first start of a rank until a
 *                           program listens at each shared port; absent: 0,
 *                           for ever
 *       together 1          a rank that fails ends all others; absent: 0
 *       elastic 6           how many ranks must be left for the step to go on
 *                           when others are lost; absent: it is not elastic
 *       ports 12000-12003   the ports to take for these; absent: any
 *     then, a line each:
 *       started RANK PID    its process
 *       ended RANK CODE     its exit code, or 128 + the signal
 *       services            from a task, with a socket (SCM_RIGHTS) to
 *                           dt-pmixd --services, which pmix/daemon/services.h
 *                           describes: the daemon then serves until the ranks
 *                           of all nodes have ended
 *     end of file: the step is over, or slurmstepd has died
 *   daemon -> plugin
 *       ready               and lines NAME=VALUE for the environment of all
 *                           local ranks; each rank's PMIX_RANK is its number;
 *                           and without "=" the held ports of all nodes:
 *       held-own A:P,...    of each rank, in order; absent: none
 *       held-shared A:P,... at the node of rank 0; absent: none
 *       failed TEXT         one line; the daemon ends
 *       say TEXT            a line for the user, any time after ready
 *       bye                 its files are removed; the daemon ends
 *
 * The program forks into the background: the process that the plugin has
 * started ends at once, with 0, or with another code if there is no daemon. */
#ifndef DT_BASE_STEP_H
#define DT_BASE_STEP_H

#define DT_STEP_VERSION 1
#define DT_STEP_PACKET  65536 /* bytes of a packet, less than this */
#define DT_STEP_LIMIT   60    /* seconds, in slurmstepd and in srun */
/* The beginning of the name of a daemon's directory, which is in the user's own
 * of base/userdir.h, or in /tmp. */
#define DT_STEP_DIRECTORY "dt-pmix."
/* In that directory, whether the program may start: "ready" or "failed". */
#define DT_STEP_SERVICES "services"

#endif
