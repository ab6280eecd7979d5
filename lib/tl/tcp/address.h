/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* address.h - where a rank can be reached by TCP: the addresses of its node,
 * and the port of its listener. */
#ifndef DT_TL_TCP_ADDRESS_H
#define DT_TL_TCP_ADDRESS_H

#include <netinet/in.h>

#include "base/error.h"

/* One address, as it is on a card; doc/wire.md. */
struct dt_tcp_address {
    uint8_t ip[16];  /* an IPv4 address as ::ffff:a.b.c.d */
    uint32_t mbit;   /* speed of the interface, 0: not known */
    uint16_t port;   /* in the order of the host */
    uint8_t prefix;  /* bits of the subnet, of 128 */
    uint8_t padding; /* 0 */
};

#define DT_TCP_ADDRESSES 8 /* of one rank, at most */

struct dt_tcp_addresses {
    size_t n;
    struct dt_tcp_address at[DT_TCP_ADDRESSES];
};

/* The addresses of this node's interfaces that are up, without loopback unless
 * there is nothing else; only those of the interfaces that UCX_NET_DEVICES
 * names, if it names any. SYSTEM: there is none, or none of these. */
dt_result_t dt_tcp_addresses_own(uint16_t port, struct dt_tcp_addresses *own,
                                 struct dt_error *err);

/* Sort the addresses of a peer: first those in a subnet of own, faster ones
 * before slower ones, and last those that this node has, too (a bridge that has
 * the same address on each node). */
void dt_tcp_addresses_sort(struct dt_tcp_addresses *peer,
                           const struct dt_tcp_addresses *own);

/* For connect(); returns the length. */
socklen_t dt_tcp_address_socket(const struct dt_tcp_address *address,
                                struct sockaddr_storage *to);

/* As text, without the port. */
#define DT_TCP_TEXT INET6_ADDRSTRLEN
void dt_tcp_ip_text(const uint8_t ip[16], char text[DT_TCP_TEXT]);

/* The address in from, IPv4 as ::ffff:a.b.c.d. */
void dt_tcp_ip_of(const struct sockaddr_storage *from, uint8_t ip[16]);

#endif
