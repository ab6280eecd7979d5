/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.c - a topology from a file of any format, recognised by its content. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/sources/input.h"
#include "topo/sources/xml.h"

/* ---- which format ---- */

struct format {
    const char *name;
    dt_result_t (*read)(const char *data, size_t len, dt_topo_t **topo,
                        struct dt_error *err);
};

static const struct format format_text = {"dt-topo", dt_topo_read_text};
static const struct format format_hwloc = {"hwloc XML", dt_topo_read_hwloc};
static const struct format format_nccl = {"NCCL XML", dt_topo_read_nccl};
static const struct format format_matrix = {"nvidia-smi topo -m",
                                            dt_topo_read_matrix};
static const struct format format_gres = {"gres.conf", dt_topo_read_gres};

/* The first character after blanks and the escape sequences of terminals. */
static const char *skip_blanks(const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at == '\033') {
            while (at < end && *at != '\n' && *at != 'm')
                at++;
            if (at == end || *at == '\n')
                return at;
        } else if (*at != ' ' && *at != '\t' && *at != '\r') {
            break;
        }
    }
    return at;
}

static bool begins(const char *at, const char *end, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(end - at) >= len && memcmp(at, word, len) == 0;
}

/* Does a line at ... end say Name=gpu, before any comment? */
static bool names_gpu(const char *at, const char *end)
{
    static const char wanted[] = "name=gpu";
    size_t len = sizeof(wanted) - 1;
    bool first = true; /* letter of a word */
    for (; (size_t)(end - at) >= len && *at != '#'; at++) {
        if (first && strncasecmp(at, wanted, len) == 0)
            return true;
        first = *at == ' ' || *at == '\t';
    }
    return false;
}

/* NULL: none. */
static const struct format *find_text_format(const char *at, const char *end)
{
    const struct format *found = NULL;
    bool first = true; /* line that is no comment */
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        const char *stop = nl ? nl : end, *word = skip_blanks(at, stop);
        if (first && begins(word, stop, "DtTopology="))
            return &format_text;
        first = first && (word == stop || *word == '#');
        if (begins(word, stop, "GPU0") &&
            (word + 4 == stop || strchr(" \t\r\033", word[4])))
            return &format_matrix;
        if (!found && names_gpu(word, stop))
            found = &format_gres;
        at = nl ? nl + 1 : end;
    }
    return found;
}

static dt_result_t on_root(void *arg, const struct dt_xml_element *element,
                           struct dt_error *err)
{
    const struct format **found = arg;
    if (strcmp(element->name, "topology") == 0)
        *found = &format_hwloc;
    else if (strcmp(element->name, "system") == 0)
        *found = &format_nccl;
    /* any result but SUCCESS stops the walk */
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "XML of <%.64s>: expected the <topology> of hwloc or "
                        "the <system> of NCCL and RCCL",
                        element->name);
}

static dt_result_t find_format(const char *data, size_t len,
                               const struct format **found,
                               struct dt_error *err)
{
    const char *end = data + len, *at = data;
    while (at < end &&
           (*at == '\n' || *at == '\r' || *at == ' ' || *at == '\t'))
        at++;
    *found = NULL;
    if (at < end && *at == '<') {
        static const struct dt_xml_handler handler = {on_root, NULL};
        struct dt_error why = {{0}};
        dt_result_t rc = dt_xml_walk(data, len, &handler, found, &why);
        return *found ? DT_SUCCESS : dt_error_set(err, rc, "%s", why.text);
    }
    *found = find_text_format(at, end);
    if (*found)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "not a topology file: expected hwloc XML, NCCL XML, "
                        "nvidia-smi topo -m, gres.conf or dt-topo's own");
}

static dt_result_t read_any(const char *data, size_t len,
                            const struct format **format, dt_topo_t **topo,
                            struct dt_error *err)
{
    if (begins(data, data + len, "\xef\xbb\xbf")) { /* a byte order mark */
        data += 3;
        len -= 3;
    }
    dt_result_t rc = find_format(data, len, format, err);
    return rc == DT_SUCCESS ? (*format)->read(data, len, topo, err) : rc;
}

dt_result_t dt_topo_read(const char *data, size_t len, dt_topo_t **topo,
                         struct dt_error *err)
{
    const struct format *format;
    dt_topo_t *made = NULL;
    dt_result_t rc = read_any(data, len, &format, &made, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (format != &format_text) {
        char source[sizeof(made->source)];
        snprintf(source, sizeof(source), "%s%s", format->name, made->source);
        dt_topo_text(made->source, sizeof(made->source), source);
    }
    *topo = made;
    return DT_SUCCESS;
}

/* ---- files ---- */

/* NCCL reads the same file, perhaps in another working directory. */
static void note_nccl_file(const char *path, dt_topo_t *topo)
{
    char *absolute = realpath(path, NULL);
    if (absolute && strlen(absolute) < sizeof(topo->nccl_file))
        strcpy(topo->nccl_file, absolute);
    free(absolute);
}

static void note_source(const char *path, const struct format *format,
                        dt_topo_t *topo)
{
    if (format == &format_text) /* it names its source itself */
        return;
    char source[sizeof(topo->source)];
    const char *slash = strrchr(path, '/');
    const char *file = strcmp(path, "-") == 0 ? "from standard input"
                       : slash                ? slash + 1
                                              : path;
    snprintf(source, sizeof(source), "%s %s%s", format->name, file,
             topo->source + strlen(format->name)); /* the reader's remark */
    dt_topo_text(topo->source, sizeof(topo->source), source);
    if (format == &format_nccl && strcmp(path, "-") != 0)
        note_nccl_file(path, topo);
}

dt_result_t dt_topo_load(const char *path, dt_topo_t **topo,
                         struct dt_error *err)
{
    char *data = NULL;
    size_t len = 0;
    dt_topo_t *made = NULL;
    const struct format *format;
    struct dt_error why = {{0}};
    dt_result_t rc = dt_input_load(path, &data, &len, &why);
    if (rc == DT_SUCCESS)
        rc = read_any(data, len, &format, &made, &why);
    free(data);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, "%s: %s",
                            strcmp(path, "-") == 0 ? "standard input" : path,
                            why.text);
    note_source(path, format, made);
    *topo = made;
    return DT_SUCCESS;
}
