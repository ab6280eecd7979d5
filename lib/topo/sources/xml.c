/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* xml.c - walking XML, by expat. */
#include "topo/sources/xml.h"

#include <expat.h>
#include <limits.h>
#include <string.h>

struct walk {
    XML_Parser parser;
    const struct dt_xml_handler *handler;
    void *arg;
    struct dt_error *err;
    dt_result_t rc; /* not SUCCESS: stopped */
    size_t depth;   /* elements that are open */
};

static size_t line_of(const struct walk *walk)
{
#if XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION < 9
    return XML_GetCurrentLineNumber(walk->parser);
#else /* which deprecates that one */
    return XML_GetCurrentLineNumber64(walk->parser);
#endif
}

/* expat may still call handlers after this: they look at rc. */
static void stop(struct walk *walk, dt_result_t rc)
{
    walk->rc = rc;
    XML_StopParser(walk->parser, XML_FALSE);
}

static void XMLCALL on_doctype(void *arg, const char *name, const char *system,
                               const char *public, int has_internal_subset)
{
    struct walk *walk = arg;
    (void)name, (void)system, (void)public;
    if (walk->rc != DT_SUCCESS || !has_internal_subset)
        return;
    stop(walk, dt_error_set(walk->err, DT_ERR_CORRUPT,
                            "line %zu: a DOCTYPE with declarations in it, "
                            "which no topology needs: remove the part in "
                            "[ ]",
                            line_of(walk)));
}

static void XMLCALL on_start(void *arg, const char *name,
                             const char **attributes)
{
    struct walk *walk = arg;
    if (walk->rc != DT_SUCCESS)
        return;
    struct dt_xml_element element = {
        .name = name,
        .attributes = (const char *const *)attributes,
        .depth = walk->depth++,
        .line = line_of(walk),
    };
    dt_result_t rc;
    if (walk->depth > DT_TOPO_MAX_DEPTH)
        rc = dt_error_set(walk->err, DT_ERR_CORRUPT,
                          "line %zu: elements nested more than %d deep",
                          element.line, DT_TOPO_MAX_DEPTH);
    else
        rc = walk->handler->start(walk->arg, &element, walk->err);
    if (rc != DT_SUCCESS)
        stop(walk, rc);
}

static void XMLCALL on_end(void *arg, const char *name)
{
    struct walk *walk = arg;
    if (walk->rc != DT_SUCCESS)
        return;
    walk->depth--;
    if (walk->handler->end)
        walk->handler->end(walk->arg, name, walk->depth);
}

static dt_result_t parse(struct walk *walk, const char *data, size_t len)
{
    if (XML_Parse(walk->parser, data, (int)len, XML_TRUE) == XML_STATUS_OK)
        return DT_SUCCESS;
    if (walk->rc != DT_SUCCESS)
        return walk->rc;
    enum XML_Error code = XML_GetErrorCode(walk->parser);
    if (code == XML_ERROR_NO_MEMORY)
        return dt_error_set(walk->err, DT_ERR_NO_MEMORY, "out of memory");
    return dt_error_set(walk->err, DT_ERR_CORRUPT,
                        "line %zu: not well-formed XML: %s", line_of(walk),
                        XML_ErrorString(code));
}

dt_result_t dt_xml_walk(const char *data, size_t len,
                        const struct dt_xml_handler *handler, void *arg,
                        struct dt_error *err)
{
    if (len > INT_MAX)
        return dt_error_set(err, DT_ERR_CORRUPT, "XML of more than 2 GiB");
    struct walk walk = {
        .parser = XML_ParserCreate(NULL),
        .handler = handler,
        .arg = arg,
        .err = err,
    };
    if (!walk.parser)
        return dt_no_memory(err);
    XML_SetUserData(walk.parser, &walk);
    XML_SetElementHandler(walk.parser, on_start, on_end);
    /* without an internal subset there are no entities to expand; expat does
     * not fetch external ones unless asked to */
    XML_SetStartDoctypeDeclHandler(walk.parser, on_doctype);
    dt_result_t rc = parse(&walk, data, len);
    XML_ParserFree(walk.parser);
    return rc;
}

const char *dt_xml_attribute(const struct dt_xml_element *element,
                             const char *name)
{
    for (const char *const *at = element->attributes; at[0]; at += 2) {
        if (strcmp(at[0], name) == 0)
            return at[1];
    }
    return NULL;
}
