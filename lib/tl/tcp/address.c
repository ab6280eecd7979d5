/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* address.c - the addresses of this node, and the best ones of a peer. */
#include "tl/tcp/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static bool is_ipv4(const uint8_t ip[16])
{
    return !memcmp(ip, ipv4_prefix, sizeof(ipv4_prefix));
}

void dt_tcp_ip_of(const struct sockaddr_storage *from, uint8_t ip[16])
{
    if (from->ss_family == AF_INET) {
        memcpy(ip, ipv4_prefix, sizeof(ipv4_prefix));
        memcpy(ip + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
    } else {
        memcpy(ip, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
    }
}

void dt_tcp_ip_text(const uint8_t ip[16], char text[DT_TCP_TEXT])
{
    bool ipv4 = is_ipv4(ip);
    *text = 0;
    inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? ip + 12 : ip, text,
              DT_TCP_TEXT);
}

socklen_t dt_tcp_address_socket(const struct dt_tcp_address *address,
                                struct sockaddr_storage *to)
{
    *to = (struct sockaddr_storage){0};
    if (is_ipv4(address->ip)) {
        struct sockaddr_in *in = (struct sockaddr_in *)to;
        in->sin_family = AF_INET;
        in->sin_port = htons(address->port);
        memcpy(&in->sin_addr, address->ip + 12, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)to;
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(address->port);
    memcpy(&in->sin6_addr, address->ip, 16);
    return sizeof(*in);
}

/* ---- this node ---- */

/* Is the interface in this list of names, "eth0,mlx5_0:1"? */
static bool named(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        size_t item = strcspn(at, ",");
        if (item == len && !memcmp(at, name, len))
            return true;
        at += item;
    }
    return false;
}

/* UCX_NET_DEVICES, if it names interfaces; those of verbs have a port, as
 * "mlx5_0:1", and say nothing of TCP. */
static const char *interface_names(void)
{
    const char *names = getenv("UCX_NET_DEVICES");
    if (!names || !strcmp(names, "all"))
        return NULL;
    for (const char *at = names; *at; at += *at == ',') {
        size_t item = strcspn(at, ",");
        if (item && !memchr(at, ':', item))
            return names;
        at += item;
    }
    return NULL;
}

static uint32_t speed_of(const char *interface)
{
    char path[64];
    long mbit = 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", interface);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%9ld", &mbit) != 1 || mbit < 0)
        mbit = 0;
    fclose(file);
    return (uint32_t)mbit;
}

static unsigned ones(const uint8_t *bytes, size_t n)
{
    unsigned bits = 0;
    for (size_t i = 0; i < n; i++)
        bits += (unsigned)__builtin_popcount(bytes[i]);
    return bits;
}

/* False: it is no address that other nodes could use. */
static bool read_address(const struct ifaddrs *from,
                         struct dt_tcp_address *address)
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    if (!from->ifa_addr || !from->ifa_netmask || (from->ifa_flags & up) != up)
        return false;
    struct sockaddr_storage ip = {0}, mask = {0};
    if (from->ifa_addr->sa_family == AF_INET) {
        memcpy(&ip, from->ifa_addr, sizeof(struct sockaddr_in));
        memcpy(&mask, from->ifa_netmask, sizeof(struct sockaddr_in));
        address->prefix =
            (uint8_t)(96 + ones((const uint8_t *)&((struct sockaddr_in *)&mask)
                                    ->sin_addr,
                                4));
    } else if (from->ifa_addr->sa_family == AF_INET6) {
        memcpy(&ip, from->ifa_addr, sizeof(struct sockaddr_in6));
        memcpy(&mask, from->ifa_netmask, sizeof(struct sockaddr_in6));
        const struct in6_addr *in6 = &((struct sockaddr_in6 *)&ip)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(in6))
            return false;
        address->prefix = (uint8_t)ones(
            ((struct sockaddr_in6 *)&mask)->sin6_addr.s6_addr, 16);
    } else {
        return false;
    }
    dt_tcp_ip_of(&ip, address->ip);
    address->mbit = speed_of(from->ifa_name);
    return true;
}

/* Those of loopback, or all others. */
static void collect(const struct ifaddrs *all, const char *names, bool loopback,
                    uint16_t port, struct dt_tcp_addresses *own)
{
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        struct dt_tcp_address address = {.port = port};
        if (own->n == DT_TCP_ADDRESSES ||
            !(at->ifa_flags & IFF_LOOPBACK) == loopback ||
            (names && !named(names, at->ifa_name)) ||
            !read_address(at, &address))
            continue;
        own->at[own->n++] = address;
    }
}

dt_result_t dt_tcp_addresses_own(uint16_t port, struct dt_tcp_addresses *own,
                                 struct dt_error *err)
{
    const char *names = interface_names();
    struct ifaddrs *all;
    if (getifaddrs(&all))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "cannot list the network interfaces: %s",
                            strerror(errno));
    *own = (struct dt_tcp_addresses){0};
    collect(all, names, false, port, own);
    if (!own->n)
        collect(all, names, true, port, own);
    freeifaddrs(all);
    if (own->n)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_SYSTEM,
                        names ? "UCX_NET_DEVICES=%s names no network interface "
                                "of this node that is up (ip address lists "
                                "them)"
                              : "this node has no network interface that is up",
                        names);
}

/* ---- a peer ---- */

static bool same_subnet(const struct dt_tcp_address *a,
                        const struct dt_tcp_address *b)
{
    unsigned bits = a->prefix < b->prefix ? a->prefix : b->prefix;
    if (bits > 128 || memcmp(a->ip, b->ip, bits / 8))
        return false;
    return bits % 8 == 0 ||
           (a->ip[bits / 8] ^ b->ip[bits / 8]) >> (8 - bits % 8) == 0;
}

static unsigned nearness(const struct dt_tcp_address *address,
                         const struct dt_tcp_addresses *own)
{
    unsigned best = 1;
    for (size_t i = 0; i < own->n; i++) {
        if (!memcmp(own->at[i].ip, address->ip, sizeof(address->ip)))
            return 0;
        if (same_subnet(&own->at[i], address))
            best = 2;
    }
    return best;
}

void dt_tcp_addresses_sort(struct dt_tcp_addresses *peer,
                           const struct dt_tcp_addresses *own)
{
    for (size_t i = 1; i < peer->n; i++)
        for (size_t k = i; k > 0; k--) {
            struct dt_tcp_address *a = &peer->at[k - 1], *b = &peer->at[k];
            unsigned near_a = nearness(a, own), near_b = nearness(b, own);
            if (near_a > near_b || (near_a == near_b && a->mbit >= b->mbit))
                break;
            struct dt_tcp_address other = *a;
            *a = *b;
            *b = other;
        }
}
