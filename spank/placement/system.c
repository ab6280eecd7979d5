/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* system.c - devices, CPUs, memory and interfaces of this process. */
#include "placement/system.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* of <numaif.h>, a header of libnuma */
enum { POLICY_PREFERRED = 1, POLICY_PREFERRED_MANY = 5 };

/* The kernel asks the device cgroup here, as it would for open(), which on a
 * GPU takes long and wakes its driver. */
uint64_t dt_system_opens(const dt_topo_t *topo)
{
    uint64_t opens = 0;
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        const char *file = topo->gpu[i].file;
        if (*file && faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) != 0 &&
            (errno == EPERM || errno == EACCES))
            continue;
        opens |= (uint64_t)1 << i;
    }
    return opens;
}

bool dt_system_readable(const char *file)
{
    return *file && faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) == 0;
}

/* ---- CPUs ---- */

/* dt_cpuset_t is laid out as the kernel's own masks are. */
void dt_system_cpus(dt_cpuset_t *cpus)
{
    memset(cpus, 0, sizeof(*cpus));
    if (sched_getaffinity(0, sizeof(cpus->word), (cpu_set_t *)cpus->word) != 0)
        memset(cpus, 0, sizeof(*cpus));
}

dt_result_t dt_system_bind(const dt_cpuset_t *cpus, struct dt_error *err)
{
    if (sched_setaffinity(0, sizeof(cpus->word),
                          (const cpu_set_t *)cpus->word) != 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s", strerror(errno));
    return DT_SUCCESS;
}

/* ---- memory ---- */

/* The NUMA nodes that this process may have memory of. */
static bool allowed_nodes(dt_cpuset_t *nodes)
{
    static const char key[] = "Mems_allowed_list:\t";
    char line[4096];
    bool found = false;
    FILE *file = fopen("/proc/self/status", "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, sizeof(key) - 1) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        found =
            dt_cpuset_parse(line + sizeof(key) - 1, nodes, NULL) == DT_SUCCESS;
    }
    fclose(file);
    return found;
}

static bool has_numa(const uint64_t *numas, uint32_t i)
{
    return numas[i / 64] >> i % 64 & 1;
}

dt_result_t dt_system_prefer(const dt_topo_t *topo, const uint64_t *numas,
                             struct dt_error *err)
{
    dt_cpuset_t allowed, mask = {{0}};
    uint32_t first = 0;
    bool any = false;
    if (!allowed_nodes(&allowed))
        return dt_error_set(err, DT_ERR_SYSTEM, "no NUMA nodes are known");
    for (uint32_t i = 0; i < topo->nnumas; i++) {
        uint32_t id = topo->numa[i].id;
        if (!has_numa(numas, i) || !dt_cpuset_has(&allowed, id))
            continue;
        first = any ? first : id;
        any = true;
        dt_cpuset_add(&mask, id);
    }
    if (!any)
        return dt_error_set(err, DT_ERR_NOT_FOUND,
                            "none of the nearest NUMA nodes is here");
    /* the kernel takes no longer mask than it has nodes, unless the rest is 0:
     * 1024 is its largest number of nodes */
    enum { MAX_NODE = 1024 };
    if (syscall(SYS_set_mempolicy, POLICY_PREFERRED_MANY, mask.word,
                MAX_NODE + 1) == 0)
        return DT_SUCCESS;
    /* before Linux 5.15: one node only */
    memset(&mask, 0, sizeof(mask));
    dt_cpuset_add(&mask, first);
    if ((errno != ENOSYS && errno != EINVAL) ||
        syscall(SYS_set_mempolicy, POLICY_PREFERRED, mask.word, MAX_NODE + 1) !=
            0)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s", strerror(errno));
    return DT_SUCCESS;
}

/* ---- interfaces ---- */

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *x = (const void *)a, *y = (const void *)b;
        return x->sin_addr.s_addr == y->sin_addr.s_addr;
    }
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *x = (const void *)a, *y = (const void *)b;
        return !memcmp(&x->sin6_addr, &y->sin6_addr, sizeof(x->sin6_addr));
    }
    return false;
}

/* The local address of a route to that host. */
static bool own_address(const struct addrinfo *to, struct sockaddr_storage *own)
{
    socklen_t length = sizeof(*own);
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool known = connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                 getsockname(fd, (struct sockaddr *)own, &length) == 0;
    close(fd);
    return known;
}

bool dt_system_interface(const char *address, char name[IF_NAMESIZE])
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_DGRAM};
    struct addrinfo *to;
    struct ifaddrs *all;
    struct sockaddr_storage own;
    bool found = false;
    if (getaddrinfo(address, "9", &hints, &to) != 0)
        return false;
    if (own_address(to, &own) && getifaddrs(&all) == 0) {
        for (struct ifaddrs *i = all; i && !found; i = i->ifa_next)
            if (!(i->ifa_flags & IFF_LOOPBACK) &&
                same_address(i->ifa_addr, (struct sockaddr *)&own)) {
                snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
                found = true;
            }
        freeifaddrs(all);
    }
    freeaddrinfo(to);
    return found;
}
