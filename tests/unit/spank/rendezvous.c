/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.c - what srun and slurmstepd print and pass on about the
 * rendezvous of the PMIx servers, and what a server prints to the ranks. */
#include "server/rendezvous.h"

#include <string.h>

#include "server/daemon.h"
#include "../tap.h"

static void is_first(const char *list, const char *wanted)
{
    char name[64];
    dt_rendezvous_first_node(list, name, sizeof(name));
    if (!ok(!strcmp(name, wanted), "the first of \"%s\" is \"%s\"", list,
            wanted))
        diag("got \"%s\"", name);
}

static bool names_mpi(const char *text, size_t size, size_t program)
{
    FILE *command_line = fmemopen((char *)text, size, "r");
    bool named = command_line && dt_rendezvous_names_mpi(command_line, program);
    if (command_line)
        fclose(command_line);
    return named;
}

int main(void)
{
    is_first("n0", "n0");
    is_first("n[0-3]", "n0");
    is_first("n[008,12-13],login", "n008");
    is_first("gpu-node[3,5]-ib,x", "gpu-node3-ib");
    is_first("rack[1-2]node[08-12]", "rack1node08");
    is_first("a-b,n[1-2]", "a-b");
    is_first("", "");
    is_first("n[", "n");
    char name[4];
    dt_rendezvous_first_node("node[12-14]", name, sizeof(name));
    ok(!strcmp(name, "nod"), "cut where there is no room");

    ok(dt_rendezvous_is_host("n0") && dt_rendezvous_is_host("10.0.0.1") &&
           dt_rendezvous_is_host("fe80::1%eth0"),
       "hosts and addresses");
    ok(!dt_rendezvous_is_host("") &&
           !dt_rendezvous_is_host("n0\nauth native") &&
           !dt_rendezvous_is_host("n0 1") && !dt_rendezvous_is_host("n0,n1") &&
           !dt_rendezvous_is_host("n\x1b[0m"),
       "what could be another word or line is no host");

    static const char plain[] = "srun\0-n2\0./a.out";
    static const char joined[] = "srun\0--mpi=pmix\0./a.out";
    static const char apart[] = "srun\0--mpi\0pmix\0./a.out\0-x";
    static const char other[] = "srun\0--mpix=1\0a--mpi=pmix\0./a.out";
    static const char theirs[] = "srun\0-n2\0./a.out\0--mpi\0x";
    ok(!names_mpi(plain, sizeof(plain), 1), "no --mpi");
    ok(names_mpi(joined, sizeof(joined), 1), "--mpi=pmix");
    ok(names_mpi(apart, sizeof(apart), 2), "--mpi pmix");
    ok(!names_mpi(other, sizeof(other), 1), "nothing that looks like it");
    ok(!names_mpi(theirs, sizeof(theirs), 3), "nor the program's");

    const char *at = "A=1\nbroken\nLONG=0123456789\nB=x=y\nC=", *value;
    char room[12];
    ok(dt_daemon_variable(&at, room, sizeof(room), &value) &&
           !strcmp(room, "A") && !strcmp(value, "1"),
       "a variable of the ranks");
    ok(dt_daemon_variable(&at, room, sizeof(room), &value) &&
           !strcmp(room, "B") && !strcmp(value, "x=y"),
       "the next that is one and fits");
    ok(dt_daemon_variable(&at, room, sizeof(room), &value) &&
           !strcmp(room, "C") && !*value &&
           !dt_daemon_variable(&at, room, sizeof(room), &value),
       "the last");
    return tap_done();
}
