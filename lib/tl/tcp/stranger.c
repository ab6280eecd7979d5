/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stranger.c - counting strangers, and naming their addresses. */
#include "tl/tcp/stranger.h"

#include <stdio.h>
#include <string.h>

#include "tl/tcp/address.h"

static bool power_of_ten(unsigned long n)
{
    while (n % 10 == 0)
        n /= 10;
    return n == 1;
}

void dt_stranger_refused(struct dt_strangers *strangers, size_t rank,
                         const uint8_t ip[16], const char *why)
{
    char text[DT_TCP_TEXT] = "other addresses";
    size_t i = 0;
    while (i < DT_STRANGERS && strangers->from[i].refused &&
           memcmp(strangers->from[i].ip, ip, 16))
        i++;
    memcpy(strangers->from[i].ip, ip, 16);
    if (i < DT_STRANGERS)
        dt_tcp_ip_text(ip, text);
    unsigned long refused = ++strangers->from[i].refused;
    if (power_of_ten(refused))
        fprintf(stderr,
                "dt: rank %zu has refused %lu connection%s from %s, the last "
                "of which %s: not of this job\n",
                rank, refused, refused == 1 ? "" : "s", text, why);
}
