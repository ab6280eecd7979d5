/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* held_ports.c - ports that the programs of the ranks will listen at. */
#include "daemon/held_ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/number.h"
#include "mesh/address.h"

/* ---- one port ---- */

/* Bind a port of all addresses; 0 is any. -1 with errno. SO_REUSEADDR comes
 * after bind, which so refuses a port that anybody has: another daemon on this
 * machine may hold it, too. */
static int hold(uint16_t port)
{
    const int yes = 1, no = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    const struct sockaddr *at = (const struct sockaddr *)&six;
    socklen_t size = sizeof(six);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) { /* a kernel without IPv6 */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        at = (const struct sockaddr *)&four;
        size = sizeof(four);
    } else if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0)
        at = NULL;
    if (fd < 0)
        return -1;
    if (at && bind(fd, at, size) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool keep(struct dt_held_ports *held, int fd)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof(at);
    uint8_t ip[16];
    uint16_t port;
    if (fd < 0)
        return false;
    if (getsockname(fd, (struct sockaddr *)&at, &size) != 0 ||
        !dt_address_get((struct sockaddr *)&at, ip, &port)) {
        close(fd);
        return false;
    }
    held->fd[held->n] = fd;
    held->port[held->n++] = port;
    return true;
}

/* ---- what the step wants ---- */

static bool has_first(const struct dt_map_entry *entry)
{
    return entry->nranks && entry->ranks[0] == 0;
}

static size_t wanted(const struct dt_step *step,
                     const struct dt_map_entry *entry)
{
    return (step->hold_own ? entry->nranks : 0) +
           (has_first(entry) ? step->hold_shared : 0);
}

/* The next range of "12000-12003,12010"; false at the end, or where it is none.
 */
static bool next_range(const char **at, uint64_t *first, uint64_t *last)
{
    if (!dt_number_scan(at, 10, UINT16_MAX, first))
        return false;
    *last = *first;
    if (**at == '-') {
        ++*at;
        if (!dt_number_scan(at, 10, UINT16_MAX, last))
            return false;
    }
    if (**at == ',')
        ++*at;
    return true;
}

static dt_result_t hold_of(struct dt_held_ports *held, size_t n,
                           const char *ports, struct dt_error *err)
{
    uint64_t first, last;
    for (const char *at = ports; held->n < n && next_range(&at, &first, &last);)
        for (; held->n < n && first <= last; first++)
            keep(held, first ? hold((uint16_t)first) : -1);
    if (held->n == n)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "of the ports %.64s that Slurm has reserved for this "
                        "step, %zu are free here and --dt-rendezvous needs "
                        "%zu: srun --resv-ports=<n> reserves more",
                        ports, held->n, n);
}

dt_result_t dt_held_ports_open(struct dt_held_ports *held,
                               const struct dt_step *step, struct dt_error *err)
{
    const struct dt_map_entry mine = {.ranks = step->local,
                                      .nranks = step->nlocal};
    size_t n = wanted(step, &mine);
    *held = (struct dt_held_ports){
        .nshared = has_first(&mine) ? step->hold_shared : 0};
    if (!n)
        return DT_SUCCESS;
    held->fd = calloc(n, sizeof(*held->fd));
    held->port = calloc(n, sizeof(*held->port));
    if (!held->fd || !held->port)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ports",
                            n);
    if (step->ports)
        return hold_of(held, n, step->ports, err);
    while (held->n < n)
        if (!keep(held, hold(0)))
            return dt_error_set(err, DT_ERR_SYSTEM,
                                "no port is free for --dt-rendezvous: %s",
                                strerror(errno));
    return DT_SUCCESS;
}

void dt_held_ports_close(struct dt_held_ports *held)
{
    for (size_t i = 0; i < held->n; i++)
        close(held->fd[i]);
    free(held->fd);
    free(held->port);
    *held = (struct dt_held_ports){.n = 0};
}

/* ---- who listens ---- */

/* The port of a listener, of a line such as
 *   0: 0100007F:1F90 00000000:0000 0A ...
 * or 0. */
static uint16_t listener_port(const char *line)
{
    static const char listens[] = "0A";
    uint64_t port;
    const char *at = strchr(line, ':');
    at = at ? strchr(at + 1, ':') : NULL;
    if (!at++ || !dt_number_scan(&at, 16, UINT16_MAX, &port) || *at++ != ' ')
        return 0;
    at += strcspn(at, " ");
    return !strncmp(at + (*at == ' '), listens, sizeof(listens) - 1)
               ? (uint16_t)port
               : 0;
}

static void mark_used(struct dt_held_ports *held, uint16_t port)
{
    for (size_t i = 0; i < held->nshared; i++)
        if (held->port[held->n - held->nshared + i] == port)
            held->used |= 1u << i;
}

uint16_t dt_held_ports_unused(struct dt_held_ports *held)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    char line[512];
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        FILE *table = fopen(tables[i], "re");
        while (table && fgets(line, sizeof(line), table))
            mark_used(held, listener_port(line));
        if (table)
            fclose(table);
    }
    for (size_t i = 0; i < held->nshared; i++)
        if (!(held->used & 1u << i))
            return held->port[held->n - held->nshared + i];
    return 0;
}

/* ---- those of all nodes ---- */

/* The node of a step of one has no address in the map. */
static void print_port(const struct dt_map *map,
                       const struct dt_map_entry *entry, size_t i, FILE *out)
{
    char text[DT_ADDRESS_TEXT] = "127.0.0.1";
    if (map->nodes > 1)
        dt_address_text(entry->ip, text);
    fprintf(out, strchr(text, ':') ? "[%s]:%u" : "%s:%u", text,
            (unsigned)entry->held[i]);
}

static size_t index_of(const struct dt_map_entry *entry, size_t rank)
{
    size_t i = 0;
    while (i + 1 < entry->nranks && entry->ranks[i] != rank)
        i++;
    return i;
}

dt_result_t dt_held_ports_print(const struct dt_step *step,
                                const struct dt_map *map, FILE *out,
                                struct dt_error *err)
{
    for (size_t node = 0; node < map->nodes; node++)
        if (map->entry[node].nheld != wanted(step, &map->entry[node]))
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "node %s holds %zu ports, expected %zu: the "
                                "nodes have different versions of slurm-dt?",
                                map->entry[node].name, map->entry[node].nheld,
                                wanted(step, &map->entry[node]));
    for (size_t rank = 0; step->hold_own && rank < map->ranks; rank++) {
        const struct dt_map_entry *entry = &map->entry[map->node_of[rank]];
        fputs(rank ? "," : "held-own ", out);
        print_port(map, entry, index_of(entry, rank), out);
    }
    if (step->hold_own)
        fputc('\n', out);
    const struct dt_map_entry *first = &map->entry[map->node_of[0]];
    for (size_t i = 0; i < step->hold_shared; i++) {
        fputs(i ? "," : "held-shared ", out);
        print_port(map, first, first->nheld - step->hold_shared + i, out);
    }
    if (step->hold_shared)
        fputc('\n', out);
    return DT_SUCCESS;
}
