/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_attribute.h - numbers in the XML of NCCL and RCCL. */
#ifndef DT_TOPO_NCCL_ATTRIBUTE_H
#define DT_TOPO_NCCL_ATTRIBUTE_H

#include "topo/xml.h"

/* A whole decimal number; false if it is none, or not there. */
bool dt_nccl_number(const struct dt_xml_element *element, const char *key,
                    long min, long max, long *value);

/* Hexadecimal, 0 if it is not there; *digits is how many were written. */
uint32_t dt_nccl_hex(const struct dt_xml_element *element, const char *key,
                     size_t *digits);

/* Class and subclass: 0x0302 of "0x030200". */
uint32_t dt_nccl_class(const struct dt_xml_element *element, const char *key);

/* Words of 32 bits, the highest first: "0003ff,f0003fff". false: not that. */
bool dt_nccl_mask(const char *text, dt_cpuset_t *cpus);

#endif
