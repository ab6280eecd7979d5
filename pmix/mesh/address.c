/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* address.c - an IP address and a port. */
#include "mesh/address.h"

#include <arpa/inet.h>
#include <string.h>

/* the prefix of an IPv4 address */
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_v4(const uint8_t ip[16])
{
    return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

bool dt_address_get(const struct sockaddr *from, uint8_t ip[16], uint16_t *port)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    in_port_t at;
    if (from->sa_family == AF_INET) {
        memcpy(&v4, from, sizeof(v4));
        memcpy(ip, mapped, sizeof(mapped));
        memcpy(ip + sizeof(mapped), &v4.sin_addr, 4);
        at = v4.sin_port;
    } else if (from->sa_family == AF_INET6) {
        memcpy(&v6, from, sizeof(v6));
        memcpy(ip, &v6.sin6_addr, 16);
        at = v6.sin6_port;
    } else {
        return false;
    }
    if (port)
        *port = ntohs(at);
    return true;
}

socklen_t dt_address_put(const uint8_t ip[16], uint16_t port,
                         struct sockaddr_storage *to)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(port)};
    memset(to, 0, sizeof(*to));
    if (is_v4(ip)) {
        memcpy(&v4.sin_addr, ip + sizeof(mapped), 4);
        memcpy(to, &v4, sizeof(v4));
        return sizeof(v4);
    }
    memcpy(&v6.sin6_addr, ip, 16);
    memcpy(to, &v6, sizeof(v6));
    return sizeof(v6);
}

bool dt_address_loopback(const uint8_t ip[16])
{
    static const uint8_t one[16] = {[15] = 1};
    return is_v4(ip) ? ip[12] == 127 : memcmp(ip, one, 16) == 0;
}

void dt_address_text(const uint8_t ip[16], char text[DT_ADDRESS_TEXT])
{
    const char *made = is_v4(ip)
                           ? inet_ntop(AF_INET, ip + 12, text, DT_ADDRESS_TEXT)
                           : inet_ntop(AF_INET6, ip, text, DT_ADDRESS_TEXT);
    if (!made)
        text[0] = '\0';
}
