/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest-part.c - what the ranks wrote, put together as one manifest. */
#include "ckpt/format/manifest_json.h"

#include <stdlib.h>
#include <string.h>

#include "../../tap.h"

static const uint64_t sums[2] = {0xdd, 0xde};

/* A part of rank with one file of bytes of data behind a header of 8. */
static struct dt_part *make_part(int rank, size_t bytes)
{
    struct dt_manifest_file file = {.header = 8, .size = 8 + bytes};
    struct dt_part *part = dt_part_create(rank, rank / 2);
    int index = -1;
    snprintf(file.name, sizeof(file.name), "rank-%05d-of-00003.safetensors",
             rank);
    if (!part || dt_part_add_file(part, &file, &index, NULL) || index != 0)
        abort();
    return part;
}

static dt_result_t add(struct dt_part *part, const char *name,
                       enum dt_manifest_kind kind, bool replicated, size_t rows,
                       size_t at, size_t extent, struct dt_error *err)
{
    struct dt_tensor tensor;
    if (dt_tensor_init(&tensor, name, DT_DTYPE_U8, 1,
                       (int64_t[]){(int64_t)rows}, NULL) != DT_SUCCESS)
        abort();
    struct dt_manifest_slice slice = {.offset = 8,
                                      .bytes = extent,
                                      .at = (int64_t[]){(int64_t)at},
                                      .extent = (int64_t[]){(int64_t)extent},
                                      .sum = sums};
    return dt_part_add_slice(part, &tensor, kind, replicated, &slice, err);
}

static dt_result_t join(struct dt_manifest *m, struct dt_part *const *part,
                        int n, struct dt_error *err)
{
    char *text[3] = {0};
    size_t len[3] = {0};
    for (int r = 0; r < n; r++)
        if (dt_part_print(part[r], &text[r], &len[r], NULL) != DT_SUCCESS)
            abort();
    dt_result_t rc =
        dt_manifest_join(m, n, (const char *const *)text, len, err);
    for (int r = 0; r < n; r++) {
        free(text[r]);
        dt_part_destroy(part[r]);
    }
    return rc;
}

static void test_join(void)
{
    struct dt_manifest m = {.step = 7, .world_size = 3, .num_nodes = 2};
    struct dt_manifest again = {0};
    struct dt_error err = {0};
    struct dt_part *part[3];
    char *text = NULL;
    size_t len = 0;
    for (int r = 0; r < 3; r++) {
        part[r] = make_part(r, 100);
        /* the last rank is the first in the tensor */
        if (add(part[r], "w", DT_MANIFEST_GLOBAL, false, 30,
                (size_t)(2 - r) * 10, 10, NULL) ||
            add(part[r], "own", DT_MANIFEST_OWN, false, 3, 0, 3, NULL) ||
            add(part[r], "blob", DT_MANIFEST_BLOB, false, (size_t)r, 0,
                (size_t)r, NULL) ||
            (r == 1 &&
             add(part[r], "a \"b\\", DT_MANIFEST_GLOBAL, true, 5, 0, 5, NULL)))
            abort();
    }
    ok(join(&m, part, 3, &err) == DT_SUCCESS && m.step == 7, "joins parts%s%s",
       err.text[0] ? ": " : "", err.text);
    const struct dt_manifest_tensor *w = dt_manifest_find(&m, "w");
    const struct dt_manifest_tensor *blob = dt_manifest_find(&m, "blob");
    const struct dt_manifest_tensor *odd = dt_manifest_find(&m, "a \"b\\");
    ok(m.nfiles == 3 && m.file[2].rank == 2 && m.file[2].node == 1 &&
           m.count == 4 && w && w->nslices == 3 && w->slice[0].rank == 0 &&
           w->slice[0].at[0] == 20 && w->slice[2].file == 2 && blob &&
           blob->slice[2].bytes == 2 && odd && odd->replicated &&
           odd->slice[0].rank == 1 && odd->slice[0].file == 1,
       "in order of rank");
    ok(dt_manifest_print(&m, &text, &len, NULL) == DT_SUCCESS &&
           dt_manifest_parse(&again, text, len, &err) == DT_SUCCESS &&
           again.step == 7 && again.count == 4 && again.version == 2 &&
           dt_manifest_find(&again, "a \"b\\"),
       "what is printed of it parses%s%s", err.text[0] ? ": " : "", err.text);
    free(text);
    dt_manifest_clear(&again);
    dt_manifest_clear(&m);
}

/* What one rank does otherwise than the others. */
static const struct {
    const char *what, *says;
    const char *name;
    enum dt_manifest_kind kind;
    bool replicated;
    size_t rows, at, extent;
} quarrels[] = {
    {"an overlap", "tensor w: rank 2's part overlaps rank 0's", "w",
     DT_MANIFEST_GLOBAL, false, 30, 9, 10},
    {"the same part twice", "tensor w: rank 2's part overlaps rank 0's", "w",
     DT_MANIFEST_GLOBAL, false, 30, 0, 10},
    {"a gap", "tensor w: the parts of all ranks leave a gap: 29 of 30 bytes",
     "w", DT_MANIFEST_GLOBAL, false, 30, 20, 9},
    {"no part", "leave a gap: 20 of 30", "w", DT_MANIFEST_GLOBAL, false, 30, 20,
     0},
    {"another shape", "tensor w is U8 [30] on rank 0 and U8 [31] on rank 2",
     "w", DT_MANIFEST_GLOBAL, false, 31, 20, 11},
    {"another kind",
     "tensor w is spread over the ranks on rank 0 and each rank's own on rank "
     "2",
     "w", DT_MANIFEST_OWN, false, 30, 0, 30},
    {"a replicated one",
     "tensor w is spread over the ranks on rank 0 and replicated on rank 2",
     "w", DT_MANIFEST_GLOBAL, true, 30, 0, 30},
    {"a tensor more", "tensor x is each rank's own and there for 1 of 3 ranks",
     "x", DT_MANIFEST_OWN, false, 1, 0, 1},
};

static void test_quarrels(void)
{
    for (size_t i = 0; i < sizeof(quarrels) / sizeof(*quarrels); i++) {
        struct dt_manifest m = {0};
        struct dt_error err = {0};
        struct dt_part *part[3];
        for (int r = 0; r < 3; r++) {
            part[r] = make_part(r, 100);
            bool odd = r == 2;
            if (odd && add(part[r], quarrels[i].name, quarrels[i].kind,
                           quarrels[i].replicated, quarrels[i].rows,
                           quarrels[i].at, quarrels[i].extent, NULL))
                abort();
            if ((!odd || strcmp(quarrels[i].name, "w") != 0) &&
                add(part[r], "w", DT_MANIFEST_GLOBAL, false, 30, (size_t)r * 10,
                    10, NULL))
                abort();
        }
        ok(join(&m, part, 3, &err) == DT_ERR_INVALID_ARG &&
               strstr(err.text, quarrels[i].says),
           "%s: %s", quarrels[i].what, err.text);
        dt_manifest_clear(&m);
    }
}

static void test_part(void)
{
    struct dt_part *part = make_part(0, 10);
    struct dt_error err = {0};
    struct dt_manifest m = {0};
    ok(add(part, "w", DT_MANIFEST_GLOBAL, false, 30, 20, 11, &err) ==
           DT_ERR_INVALID_ARG,
       "a part outside of its tensor: %s", err.text);
    ok(add(part, "w", DT_MANIFEST_GLOBAL, false, 30, 20, 10, &err) ==
               DT_SUCCESS &&
           add(part, "v", DT_MANIFEST_GLOBAL, false, 30, 0, 11, &err) ==
               DT_ERR_INVALID_ARG,
       "a part outside of its file: %s", err.text);
    ok(dt_part_add_file(part, &(struct dt_manifest_file){.name = "../x"},
                        &(int){0}, &err) == DT_ERR_INVALID_ARG,
       "a file elsewhere: %s", err.text);
    dt_part_destroy(part);
    dt_part_destroy(NULL);
    static const char *const torn[] = {"", "{", "[]", "{\"files\":[]}",
                                       "{\"files\":{},\"tensors\":{}}"};
    int bad = 0;
    for (size_t i = 0; i < sizeof(torn) / sizeof(*torn); i++)
        bad += dt_manifest_join(&m, 1, &torn[i], &(size_t){strlen(torn[i])},
                                &err) != DT_ERR_INVALID_ARG;
    ok(bad == 0, "a torn part: %s", err.text);
}

/* As many as a large job has: without quadratic loops a moment. */
static void test_many(void)
{
    enum { RANKS = 1024, TENSORS = 100 };
    char **text = calloc(RANKS, sizeof(*text)), *all = NULL;
    size_t *len = calloc(RANKS, sizeof(*len)), all_len = 0;
    struct dt_manifest m = {.step = 1, .world_size = RANKS, .num_nodes = 512};
    struct dt_manifest again = {0};
    for (int r = 0; r < RANKS; r++) {
        struct dt_part *part = make_part(r, 10);
        for (int i = 0; i < TENSORS; i++) {
            char name[32];
            snprintf(name, sizeof(name), "layer.%d", (i * 37) % TENSORS);
            if (add(part, name, DT_MANIFEST_GLOBAL, false, 10 * RANKS,
                    (size_t)r * 10, 10, NULL))
                abort();
        }
        if (dt_part_print(part, &text[r], &len[r], NULL))
            abort();
        dt_part_destroy(part);
    }
    ok(dt_manifest_join(&m, RANKS, (const char *const *)text, len, NULL) ==
               DT_SUCCESS &&
           m.count == TENSORS && m.tensor[99].nslices == RANKS &&
           m.tensor[99].slice[1023].rank == 1023,
       "1024 ranks with 100 tensors each");
    bool printed = dt_manifest_print(&m, &all, &all_len, NULL) == DT_SUCCESS;
    ok(printed && dt_manifest_parse(&again, all, all_len, NULL) == DT_SUCCESS &&
           again.tensor[5].slice[1000].at[0] == 10000,
       "printed and parsed, %zu bytes", all_len);
    for (int r = 0; r < RANKS; r++)
        free(text[r]);
    free(text);
    free(len);
    free(all);
    dt_manifest_clear(&m);
    dt_manifest_clear(&again);
}

int main(void)
{
    test_join();
    test_quarrels();
    test_part();
    test_many();
    return tap_done();
}
