/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* xml.h - walking XML that somebody else wrote. Never more memory than the
 * file needs: no entities are declared, no depth beyond DT_TOPO_MAX_DEPTH. */
#ifndef DT_TOPO_XML_H
#define DT_TOPO_XML_H

#include "topo/sources.h"

struct dt_xml_element {
    const char *name;
    const char *const *attributes; /* name, value, ..., NULL */
    size_t depth;                  /* 0 for the outermost */
    size_t line;
};

/* Called for each start and end tag, in order. start: anything but SUCCESS
 * stops the walk with it. end may be NULL. */
struct dt_xml_handler {
    dt_result_t (*start)(void *arg, const struct dt_xml_element *element,
                         struct dt_error *err);
    void (*end)(void *arg, const char *name, size_t depth);
};

/* CORRUPT, with the line: not well-formed, too deep, entities declared in it
 * (a DOCTYPE that only names a DTD is fine, and not fetched). */
dt_result_t dt_xml_walk(const char *data, size_t len,
                        const struct dt_xml_handler *handler, void *arg,
                        struct dt_error *err);

/* The value of an attribute, NULL if it is not there. */
const char *dt_xml_attribute(const struct dt_xml_element *element,
                             const char *name);

#endif
