/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.c - a libFuzzer target: what a checkpoint's directory may hold. The
 * first byte selects whether the others are a manifest, with its seal broken or
 * made good, a rank's part of one, or a file of tensors. fuzz.t builds it. */
#include <stdlib.h>
#include <string.h>

#include "ckpt/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_slices(const struct dt_manifest *m)
{
    for (size_t i = 0; i < m->count; i++)
        for (size_t k = 0; k < m->tensor[i].nslices; k++) {
            const struct dt_manifest_tensor *t = &m->tensor[i];
            const struct dt_manifest_slice *slice = &t->slice[k];
            check(slice->file >= 0 && (size_t)slice->file < m->nfiles);
            for (int d = 0; d < t->tensor.ndim; d++)
                check(slice->at[d] >= 0 && slice->extent[d] >= 0 &&
                      slice->at[d] <= t->tensor.shape[d] - slice->extent[d]);
            if (m->version == 1)
                continue;
            const struct dt_manifest_file *file = &m->file[slice->file];
            check(slice->offset >= file->header &&
                  slice->offset <= file->size &&
                  slice->bytes <= file->size - slice->offset);
            check(dt_manifest_find(m, t->tensor.name) == t);
        }
}

/* What is taken prints as something that is taken, and the same. */
static void check_again(const struct dt_manifest *m)
{
    struct dt_manifest again = {0};
    char *text, *twice;
    size_t len, twice_len;
    check(dt_manifest_print(m, &text, &len, NULL) == DT_SUCCESS);
    check(dt_manifest_parse(&again, text, len, NULL) == DT_SUCCESS);
    check(dt_manifest_print(&again, &twice, &twice_len, NULL) == DT_SUCCESS);
    check(len == twice_len && memcmp(text, twice, len) == 0);
    free(text);
    free(twice);
    dt_manifest_clear(&again);
}

static void parse(const char *text, size_t len)
{
    struct dt_manifest m = {0};
    struct dt_error err = {0};
    dt_result_t rc = dt_manifest_parse(&m, text, len, &err);
    check(rc == DT_SUCCESS || (err.text[0] && !strchr(err.text, '\n')));
    check(rc == DT_SUCCESS || rc == DT_ERR_CORRUPT || rc == DT_ERR_VERSION);
    check_slices(&m);
    if (rc == DT_SUCCESS && m.version == 2)
        check_again(&m);
    dt_manifest_clear(&m);
}

/* A text behind whose first brace the right checksum is put. */
static void parse_sealed(const char *text, size_t len)
{
    static const char seal[] = "{\"checksum\":\"0123456789abcdef\",";
    char sum[DT_CHECKSUM_TEXT], *sealed = malloc(sizeof(seal) + len);
    check(sealed);
    dt_checksum_print(dt_checksum_pair("{", 1, text, len), sum);
    memcpy(sealed, seal, sizeof(seal) - 1);
    memcpy(sealed + strlen("{\"checksum\":\""), sum, sizeof(sum) - 1);
    memcpy(sealed + sizeof(seal) - 1, text, len);
    parse(sealed, sizeof(seal) - 1 + len);
    free(sealed);
}

static void join(const char *text, size_t len)
{
    struct dt_manifest m = {.version = 2, .world_size = 1, .num_nodes = 1};
    if (dt_manifest_join(&m, 1, &text, &len, NULL) == DT_SUCCESS)
        check_slices(&m);
    dt_manifest_clear(&m);
}

static void read_header(const char *text, size_t len)
{
    struct dt_safetensors st = {0};
    size_t size = 8 + len + 64;
    if (dt_safetensors_parse(&st, text, len, size, NULL) == DT_SUCCESS)
        for (size_t i = 0; i < st.count; i++)
            check(st.entry[i].offset <= size &&
                  st.entry[i].tensor.bytes <= size - st.entry[i].offset);
    dt_safetensors_clear(&st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const take[])(const char *, size_t) = {parse, parse_sealed,
                                                         join, read_header};
    if (size > 0)
        take[data[0] % 4]((const char *)data + 1, size - 1);
    return 0;
}
