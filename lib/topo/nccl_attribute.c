/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_attribute.c - numbers in the XML of NCCL and RCCL. */
#include "topo/nccl_attribute.h"

#include <stdlib.h>
#include <string.h>

bool dt_nccl_number(const struct dt_xml_element *element, const char *key,
                    long min, long max, long *value)
{
    const char *text = dt_xml_attribute(element, key);
    char *end = NULL;
    long parsed = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || parsed < min || parsed > max)
        return false;
    *value = parsed;
    return true;
}

uint32_t dt_nccl_hex(const struct dt_xml_element *element, const char *key,
                     size_t *digits)
{
    const char *text = dt_xml_attribute(element, key);
    if (text && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    *digits = text ? strspn(text, "0123456789abcdefABCDEF") : 0;
    return *digits ? (uint32_t)strtoul(text, NULL, 16) : 0;
}

uint32_t dt_nccl_class(const struct dt_xml_element *element, const char *key)
{
    size_t digits;
    uint32_t class = dt_nccl_hex(element, key, &digits);
    return digits > 4 ? class >> 8 : class;
}

bool dt_nccl_mask(const char *text, dt_cpuset_t *cpus)
{
    size_t nwords = 1;
    for (const char *at = text; *at; at++)
        nwords += *at == ',';
    memset(cpus, 0, sizeof(*cpus));
    for (const char *at = text; nwords-- > 0; at++) {
        size_t digits = strspn(at, "0123456789abcdefABCDEF");
        if (!digits || digits > 8 || (at[digits] && at[digits] != ','))
            return false;
        uint64_t word = strtoul(at, NULL, 16);
        if (word && nwords >= DT_TOPO_MAX_CPUS / 32)
            return false;
        if (word)
            cpus->word[nwords / 2] |= word << (nwords % 2 ? 32 : 0);
        at += digits;
    }
    return true;
}
