/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nvidia_smi.c - a topology from the text of nvidia-smi topo -m, with whatever
 * is around it. Cells are told apart by blanks, since people paste tabs as
 * spaces; so a row with empty cells in its last columns is read by what the
 * others look like, and, where it still has tabs, by these. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "topo/sources.h"

enum { MAX_WORDS = DT_TOPO_MAX_DEVICES + 16, MAX_NAME = 32 };

/* Columns after those of the devices. */
enum column {
    COLUMN_CPUS,
    COLUMN_NUMA,
    COLUMN_GPU_NUMA,
    MAX_COLUMNS,
};

struct word {
    const char *at; /* no NUL behind it */
    size_t len;
};

/* A line in words, without the escape sequences of terminals. */
struct line {
    size_t number, n;
    struct word word[MAX_WORDS];
};

struct reader {
    const char *at, *end;
    size_t number;
    struct line line;
    dt_topo_t *topo;
    struct dt_error *err;
    size_t ndevices, ncolumns;
    bool more_columns; /* some that we do not know */
    bool no_nic_rows;
    char name[DT_TOPO_MAX_DEVICES][MAX_NAME];
    int device[DT_TOPO_MAX_DEVICES]; /* index: of GPU, or ngpus + of NIC */
    enum column column[MAX_COLUMNS];
};

/* ---- words ---- */

static bool is(const struct word *word, const char *text)
{
    return word->len == strlen(text) && memcmp(word->at, text, word->len) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

/* Behind an escape sequence (ESC [ parameters letter) at at. */
static const char *skip_escape(const char *at, const char *end)
{
    at++;
    if (at == end || *at != '[')
        return at;
    do
        at++;
    while (at < end && (*at < '@' || *at > '~') && *at != '\n');
    return at < end && *at != '\n' ? at + 1 : at;
}

/* The next line, blank ones too; false at the end. Words beyond MAX_WORDS are
 * dropped: no line that we want has so many. */
static bool next_line(struct reader *r)
{
    struct line *line = &r->line;
    if (r->at == r->end)
        return false;
    line->number = ++r->number;
    line->n = 0;
    for (const char *at = r->at;;) {
        while (at < r->end && is_blank(*at))
            at++;
        if (at < r->end && *at == '\033') {
            at = skip_escape(at, r->end);
            continue;
        }
        if (at == r->end || *at == '\n') {
            r->at = at < r->end ? at + 1 : at;
            return true;
        }
        const char *start = at;
        while (at < r->end && !is_blank(*at) && *at != '\n' && *at != '\033')
            at++;
        if (line->n < MAX_WORDS)
            line->word[line->n++] = (struct word){start, (size_t)(at - start)};
    }
}

static void copy(const struct word *word, char *text, size_t size)
{
    size_t len = word->len < size ? word->len : size - 1;
    memcpy(text, word->at, len);
    text[len] = '\0';
    dt_topo_text(text, size, text);
}

/* A whole number up to max that the word begins with, up to one of stops. */
static bool number(const char *at, const char *end, uint32_t max, char stop,
                   uint32_t *value)
{
    uint64_t parsed;
    if (!dt_number_scan(&at, 10, max, &parsed) || at > end ||
        (at < end && *at != stop))
        return false;
    *value = (uint32_t)parsed;
    return true;
}

/* "GPU0" */
static bool is_gpu(const struct word *word)
{
    uint32_t unused;
    return word->len > 3 && memcmp(word->at, "GPU", 3) == 0 &&
           number(word->at + 3, word->at + word->len, 9999, '\0', &unused);
}

/* ---- cells ---- */

/* SOC is what SYS was called before 2017; N/A is unknown. */
static bool parse_path(const struct word *word, uint8_t *path)
{
    static const struct {
        const char *text;
        dt_path_t path;
    } known[] = {
        {"PIX", DT_PATH_PIX},     {"PXB", DT_PATH_PXB}, {"PHB", DT_PATH_PHB},
        {"NODE", DT_PATH_NODE},   {"SYS", DT_PATH_SYS}, {"SOC", DT_PATH_SYS},
        {"N/A", DT_PATH_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (is(word, known[i].text)) {
            *path = (uint8_t)known[i].path;
            return true;
        }
    return false;
}

/* "NV18" */
static bool parse_links(const struct word *word, uint32_t *links)
{
    return word->len > 2 && memcmp(word->at, "NV", 2) == 0 &&
           number(word->at + 2, word->at + word->len, 1000, '\0', links);
}

/* ---- the header ---- */

static dt_result_t add_device(struct reader *r, const struct word *word)
{
    char name[MAX_NAME];
    copy(word, name, sizeof(name));
    for (size_t i = 0; i < r->ndevices; i++)
        if (strcmp(r->name[i], name) == 0)
            return dt_error_set(r->err, DT_ERR_CORRUPT,
                                "line %zu: the header has two columns %s",
                                r->line.number, name);
    if (is_gpu(word)) {
        dt_topo_gpu_t *gpu = dt_topo_add_gpu(r->topo, r->err);
        if (!gpu)
            return DT_ERR_UNSUPPORTED;
        gpu->vendor = DT_VENDOR_NVIDIA;
    } else {
        dt_topo_nic_t *nic = dt_topo_add_nic(r->topo, r->err);
        if (!nic)
            return DT_ERR_UNSUPPORTED;
        dt_topo_text(nic->name, sizeof(nic->name), name);
        dt_topo_text(nic->names, sizeof(nic->names), name);
    }
    memcpy(r->name[r->ndevices++], name, sizeof(name));
    return DT_SUCCESS;
}

/* The columns after the devices, from word at on: each is two or three words,
 * with any blanks between them. */
static void read_columns(struct reader *r, size_t at)
{
    static const struct {
        size_t n;
        const char *word[3];
        enum column column;
    } known[] = {
        {2, {"CPU", "Affinity"}, COLUMN_CPUS},
        {2, {"NUMA", "Affinity"}, COLUMN_NUMA},
        {3, {"GPU", "NUMA", "ID"}, COLUMN_GPU_NUMA},
    };
    const struct line *line = &r->line;
    while (at < line->n && r->ncolumns < MAX_COLUMNS) {
        size_t k = 0, nknown = sizeof(known) / sizeof(known[0]), same = 0;
        for (; k < nknown; k++) {
            for (same = 0; same < known[k].n && at + same < line->n; same++)
                if (!is(&line->word[at + same], known[k].word[same]))
                    break;
            if (same == known[k].n)
                break;
        }
        if (k == nknown)
            break;
        r->column[r->ncolumns++] = known[k].column;
        at += same;
    }
    r->more_columns = at < line->n;
}

static dt_result_t read_header(struct reader *r)
{
    const struct line *line = &r->line;
    size_t i = 0;
    for (; i < line->n; i++) {
        const struct word *word = &line->word[i];
        if (is(word, "CPU") || is(word, "NUMA") || is(word, "GPU"))
            break;
        dt_result_t rc = add_device(r, word);
        if (rc != DT_SUCCESS)
            return rc;
    }
    read_columns(r, i);
    int gpu = 0, nic = (int)r->topo->ngpus;
    for (size_t k = 0; k < r->ndevices; k++) {
        struct word word = {r->name[k], strlen(r->name[k])};
        r->device[k] = is_gpu(&word) ? gpu++ : nic++;
    }
    return DT_SUCCESS;
}

/* The line whose first word is a GPU and whose second is no cell. */
static dt_result_t find_header(struct reader *r)
{
    while (next_line(r)) {
        const struct word *word = r->line.word;
        uint8_t path;
        uint32_t links;
        if (r->line.n == 0 || !is_gpu(&word[0]))
            continue;
        if (r->line.n == 1 ||
            (!is(&word[1], "X") && !parse_path(&word[1], &path) &&
             !parse_links(&word[1], &links)))
            return read_header(r);
        return dt_error_set(r->err, DT_ERR_CORRUPT,
                            "line %zu: a row of a matrix without the header "
                            "above it: expected all that nvidia-smi topo -m "
                            "prints",
                            r->line.number);
    }
    return dt_error_set(r->err, DT_ERR_CORRUPT,
                        "no matrix: expected what nvidia-smi topo -m prints");
}

/* ---- rows ---- */

static dt_result_t bad_row(const struct reader *r, size_t row, const char *what,
                           const struct word *word)
{
    char text[MAX_NAME] = "";
    if (word)
        copy(word, text, sizeof(text));
    return dt_error_set(r->err, DT_ERR_CORRUPT,
                        "line %zu: row %s: %s%s%s: expected the whole of what "
                        "nvidia-smi topo -m prints",
                        r->line.number, r->name[row], what, word ? " " : "",
                        text);
}

static dt_result_t read_cell(struct reader *r, size_t row, size_t column)
{
    const struct word *word = &r->line.word[column + 1];
    int a = r->device[row], b = r->device[column];
    if (is(word, "X") != (row == column))
        return bad_row(r, row, "X belongs on the diagonal, here is", word);
    uint8_t path = DT_PATH_UNKNOWN;
    uint32_t links = 0;
    if (row == column || parse_path(word, &path)) {
        r->topo->pci[a][b] = path;
        return DT_SUCCESS;
    }
    int ngpus = (int)r->topo->ngpus;
    if (a >= ngpus || b >= ngpus || !parse_links(word, &links))
        return bad_row(r, row, "no such path as", word);
    r->topo->links[a][b] = (uint16_t)links;
    return DT_SUCCESS;
}

static dt_result_t add_numa(struct reader *r, size_t row,
                            const struct word *word, int *index)
{
    const char *end = word->at + word->len;
    uint32_t id;
    *index = -1;
    /* in "0,2-17", as Grace has it, GPU memory follows; in "0-1" it is
     * ambiguous
     */
    if (number(word->at, end, INT32_MAX, '-', &id) &&
        memchr(word->at, '-', word->len))
        return DT_SUCCESS;
    if (!number(word->at, end, INT32_MAX, ',', &id))
        return bad_row(r, row, "no NUMA node like", word);
    *index = dt_topo_find_numa(r->topo, id);
    if (*index >= 0)
        return DT_SUCCESS;
    dt_topo_numa_t *numa = dt_topo_add_numa(r->topo, r->err);
    if (!numa)
        return DT_ERR_UNSUPPORTED;
    numa->id = id;
    *index = (int)r->topo->nnumas - 1;
    return DT_SUCCESS;
}

static dt_result_t read_cpus(struct reader *r, size_t row,
                             const struct word *word)
{
    char *text = strndup(word->at, word->len);
    if (!text)
        return dt_error_set(r->err, DT_ERR_NO_MEMORY, "out of memory");
    dt_result_t rc =
        dt_cpuset_parse(text, &r->topo->gpu[r->device[row]].cpus, NULL);
    free(text);
    return rc == DT_SUCCESS ? rc : bad_row(r, row, "no CPUs like", word);
}

static dt_result_t read_tail_cell(struct reader *r, size_t row,
                                  enum column column, const struct word *word)
{
    if (is(word, "N/A"))
        return DT_SUCCESS;
    if (column == COLUMN_CPUS)
        return read_cpus(r, row, word);
    int numa = -1;
    dt_result_t rc = add_numa(r, row, word, &numa);
    if (rc != DT_SUCCESS)
        return rc;
    dt_topo_gpu_t *gpu = &r->topo->gpu[r->device[row]];
    if (column == COLUMN_NUMA)
        gpu->numa = (int16_t)numa;
    else
        gpu->memory_numa = (int16_t)numa;
    return DT_SUCCESS;
}

/* Is the first cell behind the devices empty, as two tabs show? */
static bool first_is_empty(const struct reader *r)
{
    const struct word *last = r->line.word + r->ndevices;
    size_t tabs = 0;
    for (const char *at = last->at + last->len; at < last[1].at; at++)
        tabs += *at == '\t';
    return tabs > 1;
}

/* With fewer words than columns some cell is blank. Certain are a list of CPUs
 * in the first, and that only the first is blank. */
static dt_result_t read_tail(struct reader *r, size_t row)
{
    const struct word *word = r->line.word + r->ndevices + 1;
    size_t n = r->line.n - r->ndevices - 1, first = 0;
    if (n > r->ncolumns && !r->more_columns)
        return bad_row(r, row, "one cell too many,", &word[r->ncolumns]);
    if (r->device[row] >= (int)r->topo->ngpus)
        return DT_SUCCESS;
    if (n && n + 1 == r->ncolumns && first_is_empty(r)) {
        first = 1;
    } else if (n < r->ncolumns) {
        if (!n || r->column[0] != COLUMN_CPUS ||
            (!memchr(word->at, '-', word->len) &&
             !memchr(word->at, ',', word->len)))
            return DT_SUCCESS;
        n = 1;
    }
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < n && first + i < r->ncolumns && rc == DT_SUCCESS;
         i++)
        rc = read_tail_cell(r, row, r->column[first + i], &word[i]);
    return rc;
}

static bool is_nic(const struct reader *r, size_t row)
{
    return r->device[row] >= (int)r->topo->ngpus;
}

/* The rows of the GPUs tell all paths but those between NICs. */
static void mirror_nics(struct reader *r)
{
    uint32_t ngpus = r->topo->ngpus, n = ngpus + r->topo->nnics;
    r->no_nic_rows = true;
    for (uint32_t gpu = 0; gpu < ngpus; gpu++)
        for (uint32_t nic = ngpus; nic < n; nic++)
            r->topo->pci[nic][gpu] = r->topo->pci[gpu][nic];
}

/* Is the line the row of that device, whose name may have been cut? */
static bool is_row(const struct reader *r, size_t row)
{
    char name[MAX_NAME];
    copy(&r->line.word[0], name, sizeof(name));
    return strcmp(name, r->name[row]) == 0;
}

static bool begins_row(const struct reader *r)
{
    size_t i = 0;
    while (i < r->ndevices && !is_row(r, i))
        i++;
    return i < r->ndevices;
}

/* Are the rows of all NICs left out? The last row of a GPU is whole then, and
 * what follows is nothing, or a whole line that is no row. */
static bool lacks_nics(const struct reader *r, size_t row, bool more)
{
    for (size_t i = 0; i < r->ndevices; i++)
        if (is_nic(r, i) != (i >= row))
            return false;
    return r->at[-1] == '\n' && (!more || !begins_row(r));
}

static dt_result_t read_row(struct reader *r, size_t row)
{
    bool more;
    const char *before;
    do {
        before = r->at;
        more = next_line(r);
    } while (more && r->line.n == 0);
    if (lacks_nics(r, row, more)) {
        r->at = before; /* it may be of the legend */
        mirror_nics(r);
        return DT_SUCCESS;
    }
    if (!more || !is_row(r, row))
        return bad_row(r, row, "it is missing", NULL);
    if (r->line.n < r->ndevices + 1)
        return bad_row(r, row, "it is too short", NULL);
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < r->ndevices && rc == DT_SUCCESS; i++)
        rc = read_cell(r, row, i);
    return rc == DT_SUCCESS ? read_tail(r, row) : rc;
}

static dt_result_t check_symmetry(const struct reader *r)
{
    for (size_t i = 0; i < r->ndevices; i++)
        for (size_t k = 0; k < i; k++) {
            int a = r->device[i], b = r->device[k];
            bool same = r->topo->pci[a][b] == r->topo->pci[b][a];
            if (same && a < DT_TOPO_MAX_GPUS && b < DT_TOPO_MAX_GPUS)
                same = r->topo->links[a][b] == r->topo->links[b][a];
            if (!same)
                return dt_error_set(r->err, DT_ERR_CORRUPT,
                                    "row %s says another path to %s than row "
                                    "%s says back: the matrix is damaged",
                                    r->name[i], r->name[k], r->name[k]);
        }
    return DT_SUCCESS;
}

/* ---- the text ---- */

/* "NIC0: mlx5_0" behind the matrix. */
static void read_legend(struct reader *r)
{
    while (next_line(r)) {
        const struct word *word = r->line.word;
        for (size_t i = 0; r->line.n == 2 && i < r->ndevices; i++) {
            size_t len = strlen(r->name[i]);
            int nic = r->device[i] - (int)r->topo->ngpus;
            if (nic < 0 || word->len != len + 1 || word->at[len] != ':' ||
                memcmp(word->at, r->name[i], len) != 0)
                continue;
            dt_topo_nic_t *found = &r->topo->nic[nic];
            copy(&word[1], found->name, sizeof(found->name));
            copy(&word[1], found->names, sizeof(found->names));
        }
    }
}

/* The CPUs of a NUMA node are those near its GPUs; one with CPUs is no GPU's
 * memory, even if a row says so. */
static void fill_numas(dt_topo_t *topo)
{
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        const dt_topo_gpu_t *gpu = &topo->gpu[i];
        if (gpu->numa < 0)
            continue;
        dt_cpuset_t *cpus = &topo->numa[gpu->numa].cpus;
        dt_cpuset_or(cpus, cpus, &gpu->cpus);
    }
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        dt_topo_gpu_t *gpu = &topo->gpu[i];
        if (gpu->memory_numa >= 0 &&
            dt_cpuset_count(&topo->numa[gpu->memory_numa].cpus))
            gpu->memory_numa = -1;
    }
}

static dt_result_t read_all(struct reader *r)
{
    dt_result_t rc = find_header(r);
    for (size_t i = 0; i < r->ndevices && !r->no_nic_rows && rc == DT_SUCCESS;
         i++)
        rc = read_row(r, i);
    if (rc == DT_SUCCESS)
        rc = check_symmetry(r);
    if (rc != DT_SUCCESS)
        return rc;
    read_legend(r);
    fill_numas(r->topo);
    return dt_topo_normalize(r->topo, r->err);
}

dt_result_t dt_topo_read_matrix(const char *data, size_t len, dt_topo_t **topo,
                                struct dt_error *err)
{
    dt_result_t rc = DT_ERR_NO_MEMORY;
    dt_topo_t *made = dt_topo_create();
    struct reader *r = calloc(1, sizeof(*r));
    if (!made || !r) {
        dt_error_set(err, rc, "out of memory");
        goto free_both;
    }
    r->at = data;
    r->end = data + len;
    r->topo = made;
    r->err = err;
    rc = read_all(r);
    if (rc == DT_SUCCESS && r->no_nic_rows)
        strcpy(made->source, " (without the rows of NICs)");
    if (rc == DT_SUCCESS) {
        *topo = made;
        made = NULL;
    }
free_both:
    free(r);
    dt_topo_destroy(made);
    return rc;
}
