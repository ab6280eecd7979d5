/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* other-pmi.c - does a process use PMI-1 or PMI-2? Here it maps files that are
 * called as the libraries are. With an argument this is that process: it maps
 * the files that follow, says so, and waits. */
#include "daemon/other_pmi.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

static char directory[] = "/tmp/other-pmi.XXXXXX";
static char name[64];

static int map(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int fd = open(argv[i], O_CREAT | O_RDWR, 0600);
        if (fd < 0 || ftruncate(fd, 1) < 0 ||
            mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
            return 1;
        unlink(argv[i]);
    }
    if (write(STDOUT_FILENO, "", 1) != 1)
        return 1;
    pause();
    return 0;
}

/* What is found in a process that maps two such files. */
static bool finds(const char *one, const char *two, const char *variable)
{
    char paths[2][128], byte;
    int ends[2];
    snprintf(paths[0], sizeof(paths[0]), "%s/%s", directory, one);
    snprintf(paths[1], sizeof(paths[1]), "%s/%s", directory, two);
    if (pipe(ends) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        char *env[] = {(char *)variable, NULL};
        char *argv[] = {(char *)"x", paths[0], paths[1], NULL};
        execve("/proc/self/exe", argv, env);
        _exit(127);
    }
    close(ends[1]);
    bool came = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    strcpy(name, "none");
    bool found = came && dt_other_pmi(pid, name, sizeof(name));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (!came)
        diag("%s and %s are not mapped", one, two);
    return found;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return map(argc, argv);
    if (!mkdtemp(directory))
        return skip_all("no /tmp");
    ok(finds("libc.so.6", "libmpich.so.12.1.8", "A=1") &&
           strcmp(name, "libmpich.so.12.1.8") == 0,
       "MPICH: %s", name);
    ok(finds("libpmi2.so.0", "libc.so.6", "PMI_RANKS=1"), "PMI-2: %s", name);
    ok(finds("libmpi.so.12", "libc.so.6", "A=1"), "MPICH's own name: %s", name);
    ok(!finds("libmpich.so.12", "libpmix.so.2", "A=1"), "with PMIx, too");
    ok(!finds("libmpi.so.40", "libpmixture.so", "A=1"), "Open MPI");
    ok(!finds("libmpich.so.12", "libc.so.6", "PMI_FD=7"),
       "with a server of its own");
    ok(!dt_other_pmi(0, name, sizeof(name)), "no such process");
    rmdir(directory);
    return tap_done();
}
