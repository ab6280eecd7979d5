/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* address.h - an IP address and a port; IPv4 as ::ffff:a.b.c.d. */
#ifndef DT_MESH_ADDRESS_H
#define DT_MESH_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Of either family; false for any other. port may be NULL. */
bool dt_address_get(const struct sockaddr *from, uint8_t ip[16],
                    uint16_t *port);

/* The reverse; *to is IPv4 where the address is. Returns its length. */
socklen_t dt_address_put(const uint8_t ip[16], uint16_t port,
                         struct sockaddr_storage *to);

bool dt_address_loopback(const uint8_t ip[16]);

/* As text: "10.0.0.1". */
#define DT_ADDRESS_TEXT INET6_ADDRSTRLEN
void dt_address_text(const uint8_t ip[16], char text[DT_ADDRESS_TEXT]);

#endif
