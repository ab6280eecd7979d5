/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* address.c - the addresses of a rank over TCP, and which of a peer's is tried
 * first. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tl/tcp/address.h"
#include "../tap.h"

static struct dt_tcp_address address(const char *ip, uint8_t prefix,
                                     uint32_t mbit)
{
    struct dt_tcp_address address = {.mbit = mbit, .port = 7, .prefix = prefix};
    if (strchr(ip, ':')) {
        inet_pton(AF_INET6, ip, address.ip);
    } else {
        memset(address.ip + 10, 0xff, 2);
        inet_pton(AF_INET, ip, address.ip + 12);
        address.prefix = (uint8_t)(prefix + 96);
    }
    return address;
}

static void order(const char *what, const struct dt_tcp_addresses *own,
                  struct dt_tcp_addresses peer, const char *expected)
{
    char got[256] = "", text[DT_TCP_TEXT];
    dt_tcp_addresses_sort(&peer, own);
    for (size_t i = 0; i < peer.n; i++) {
        dt_tcp_ip_text(peer.at[i].ip, text);
        strcat(strcat(got, i ? " " : ""), text);
    }
    ok(!strcmp(got, expected), "%s: %s", what, got);
}

static void sorted(void)
{
    struct dt_tcp_addresses own = {
        2, {address("10.1.0.5", 16, 1000), address("172.17.0.1", 16, 0)}};
    order("a bridge that each node has comes last", &own,
          (struct dt_tcp_addresses){
              2, {address("172.17.0.1", 16, 0), address("10.2.0.6", 16, 1000)}},
          "10.2.0.6 172.17.0.1");
    order("the same subnet comes first", &own,
          (struct dt_tcp_addresses){3,
                                    {address("192.168.0.6", 24, 100000),
                                     address("10.1.0.6", 16, 1000),
                                     address("fd00::6", 64, 0)}},
          "10.1.0.6 192.168.0.6 fd00::6");
    order("then the faster one", &own,
          (struct dt_tcp_addresses){3,
                                    {address("10.1.0.6", 16, 1000),
                                     address("10.1.0.7", 16, 0),
                                     address("10.1.0.8", 16, 25000)}},
          "10.1.0.8 10.1.0.6 10.1.0.7");
    order("a subnet ends within a byte", &own,
          (struct dt_tcp_addresses){
              2, {address("10.0.255.6", 15, 9), address("10.2.0.6", 15, 99)}},
          "10.0.255.6 10.2.0.6");
}

static void sockets(void)
{
    struct sockaddr_storage to;
    struct dt_tcp_address ipv4 = address("10.1.0.5", 16, 0);
    struct dt_tcp_address ipv6 = address("fd00::6", 64, 0);
    uint8_t ip[16];
    ok(dt_tcp_address_socket(&ipv4, &to) == sizeof(struct sockaddr_in) &&
           to.ss_family == AF_INET &&
           ((struct sockaddr_in *)&to)->sin_port == htons(7),
       "an IPv4 address for connect");
    dt_tcp_ip_of(&to, ip);
    ok(!memcmp(ip, ipv4.ip, 16), "and back");
    ok(dt_tcp_address_socket(&ipv6, &to) == sizeof(struct sockaddr_in6) &&
           to.ss_family == AF_INET6,
       "an IPv6 address for connect");
    dt_tcp_ip_of(&to, ip);
    ok(!memcmp(ip, ipv6.ip, 16), "and back");
}

static void own(void)
{
    struct dt_tcp_addresses own;
    struct dt_error err = {""};
    unsetenv("UCX_NET_DEVICES");
    ok(dt_tcp_addresses_own(9, &own, &err) == DT_SUCCESS && own.n > 0 &&
           own.at[0].port == 9 && own.at[0].prefix <= 128,
       "this node has an address");
    setenv("UCX_NET_DEVICES", "lo", 1);
    ok(dt_tcp_addresses_own(9, &own, &err) == DT_SUCCESS &&
           own.at[0].ip[15] == 1,
       "loopback, where it is named");
    setenv("UCX_NET_DEVICES", "mlx5_0:1,lox,", 1);
    ok(dt_tcp_addresses_own(9, &own, &err) == DT_ERR_SYSTEM &&
           strstr(err.text, "UCX_NET_DEVICES=mlx5_0:1,lox,"),
       "names of no interface: %s", err.text);
    setenv("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1", 1);
    ok(dt_tcp_addresses_own(9, &own, &err) == DT_SUCCESS,
       "names of verbs devices do not count");
    setenv("UCX_NET_DEVICES", "all", 1);
    ok(dt_tcp_addresses_own(9, &own, &err) == DT_SUCCESS, "all of them");
}

int main(void)
{
    sorted();
    sockets();
    own();
    return tap_done();
}
