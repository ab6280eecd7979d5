/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.c - loading: on any number of ranks, cut in any way, from the
 * nearest tier that has it, from here and from other nodes, and from the golden
 * samples of all versions. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/job.h"
#include "../support/state.h"
#include "ckpt/copy.h"
#include "ckpt/load/load.h"
#include "ckpt/load/restore.h"
#include "ckpt/tensors.h"
#include "../../tap.h"

/* ---- any number of ranks, any slices ---- */

static void test_any_size(void)
{
    int wrong = 0, rounds = 0;
    for (int from = 1; from <= 6; from++)
        for (int to = 1; to <= 6; to++, rounds++) {
            char *dir = ckpt_temp_dir();
            struct state state = {
                .dir = {NULL, dir}, .seed = rounds, .own = from == to};
            state_write(dir, &state, from, 40);
            int rc = state_load(&state, to);
            if (rc != DT_SUCCESS || !state.right || state.step != 40) {
                diag("%d to %d ranks: %d %s%s", from, to, rc, state.text,
                     state.right ? "" : ", wrong values");
                wrong++;
            }
            ckpt_remove_tree(dir);
        }
    ok(wrong == 0, "%d times: 1 to 6 ranks to 1 to 6, sliced at random",
       rounds);
}

static void test_own(void)
{
    char *dir = ckpt_temp_dir();
    struct state state = {.dir = {NULL, dir}, .own = true};
    state_write(dir, &state, 3, 1);
    ok(state_load(&state, 3) == DT_SUCCESS && state.right,
       "the ranks' own, on as many");
    ok(state_load(&state, 2) == DT_ERR_MISMATCH && state.untouched &&
           strstr(state.text, "was saved by 3 ranks; it loads on as many, this "
                              "job has 2"),
       "on less: %s", state.text);
    ckpt_remove_tree(dir);
}

static void test_blobs(void)
{
    char *dir = ckpt_temp_dir();
    struct state state = {.dir = {NULL, dir}};
    state_write(dir, &state, 3, 1);
    ok(state_load(&state, 5) == DT_SUCCESS && state.right,
       "blobs come by themselves, each rank its own");
    ok(state.no_blob == 2, "but two of five ranks have none of three");
    ok(state.shared_blob == 5, "and the common one comes to all");
    ckpt_remove_tree(dir);
}

/* ---- tiers ---- */

static int load_quietly(struct state *state, int size, const char **said)
{
    ckpt_stderr_begin();
    int rc = state_load(state, size);
    *said = ckpt_stderr_end();
    return rc;
}

static void test_tiers(void)
{
    char *memory = ckpt_temp_dir(), *disk = ckpt_temp_dir();
    struct state state = {.dir = {memory, disk}, .own = true};
    const char *said = NULL;
    int64_t latest = -1;
    int rc;
    ok(state_load(&state, 2) == DT_ERR_NOT_FOUND && state.untouched &&
           state_latest(&state, 2, &latest) == DT_ERR_NOT_FOUND,
       "none yet: %s", state.text);
    state_write(disk, &state, 2, 20);
    state.salt = 1;
    state_write(memory, &state, 2, 20);
    state.salt = 2;
    state_write(memory, &state, 2, 10);
    state.salt = 1;
    ok(state_load(&state, 2) == DT_SUCCESS && state.step == 20 && state.right,
       "of equal steps that in memory");
    state_flip(memory, 20, 1, -1);
    state.salt = 0;
    rc = load_quietly(&state, 2, &said);
    ok(rc == DT_SUCCESS && state.step == 20 && state.right &&
           strstr(said, "step-000000000020 in /"),
       "if that is damaged, that on the disk: %.*s", (int)strcspn(said, "\n"),
       said);
    state_flip(disk, 20, 0, -1);
    state.salt = 2;
    ok(load_quietly(&state, 2, &said) == DT_SUCCESS && state.step == 10 &&
           state.right,
       "then the older one in memory");
    state_flip(memory, 10, 0, -1);
    ok(load_quietly(&state, 2, &said) == DT_ERR_CORRUPT &&
           strstr(state.text, "3 damaged; the newest, step-000000000020"),
       "then none: %s", state.text);
    ok(state_latest(&state, 2, &latest) == DT_SUCCESS && latest == 20,
       "the newest there is");
    ckpt_remove_tree(memory);
    ckpt_remove_tree(disk);
}

/* ---- damage: what is read is verified, what is not needed is not read ---- */

static void test_flips(void)
{
    char *dir = ckpt_temp_dir();
    struct state state = {.dir = {NULL, dir}, .own = true};
    const char *said;
    int wrong = 0, flips = 0;
    state_write(dir, &state, 2, 1);
    for (int file = 0; file < 2; file++)
        for (long at = 0, size = state_size(dir, 1, file); at < size;
             at += 40009, flips++) {
            state_flip(dir, 1, file, at);
            int rc = load_quietly(&state, 2, &said);
            if (rc != DT_ERR_CORRUPT || !strstr(said, "checksum differs")) {
                diag("file %d byte %ld: %d %s", file, at, rc, said);
                wrong++;
            }
            state_flip(dir, 1, file, at);
        }
    ok(wrong == 0 && flips > 200, "%d flips, each found", flips);
    ok(state_load(&state, 2) == DT_SUCCESS && state.right, "and all undone");
    ckpt_remove_tree(dir);
}

/* ---- from other nodes ---- */

struct far {
    struct state *state;
    dt_result_t rc[FAKE_WORLD_MAX];
    bool right[FAKE_WORLD_MAX];
    size_t rounds[FAKE_WORLD_MAX];
    char text[FAKE_WORLD_MAX][256];
};

/* Each file is only at one rank, which is none of those that want most. */
static void far_rank(void *arg)
{
    struct far *far = arg;
    int rank = dt_rank(), size = dt_size();
    struct dt_ckpt *ckpt = state_open(far->state);
    struct dt_source source = {.fd = state_dirfd(far->state->dir[1], 1)};
    struct dt_match match = {0};
    struct dt_copy *copy = NULL;
    struct dt_error err = {0};
    size_t rounds = 0;
    dt_result_t rc =
        dt_manifest_read(&source.manifest, source.fd, &source.identity, &err);
    source.holder = calloc(source.manifest.nfiles + 1, sizeof(int));
    for (size_t f = 0; f < source.manifest.nfiles; f++)
        source.holder[f] = (int)(f + 1) % size;
    if (rc == DT_SUCCESS)
        rc = dt_match(&match, ckpt, &source.manifest, &err);
    if (rc != DT_SUCCESS || dt_copy_open(&copy, &err) != DT_SUCCESS ||
        dt_restore_rounds(&source, &match, copy, &rounds, &err) != DT_SUCCESS)
        abort();
    far->rounds[rank] = rounds;
    /* the test knows that no rank needs more than so many */
    far->rc[rank] = dt_restore(&source, &match, copy, 40, &err);
    far->right[rank] = state_holds(far->state, ckpt);
    memcpy(far->text[rank], err.text, sizeof(far->text[rank]) - 1);
    dt_copy_close(copy);
    dt_match_clear(&match);
    dt_source_close(&source);
    state_close(ckpt);
}

/* One rank wrote all, so that "big" has a second block. */
static void test_second_block(void)
{
    static struct far far;
    char *dir = ckpt_temp_dir();
    struct state state = {.dir = {NULL, dir}};
    const char *said;
    int corrupt = 0;
    far.state = &state;
    state_write(dir, &state, 1, 1);
    state_flip(dir, 1, 0, state_size(dir, 1, 0) - 4194305 - 99);
    int rc = load_quietly(&state, 2, &said);
    ok(rc == DT_ERR_CORRUPT && strstr(said, "checksum differs in big"),
       "damage in the second block of a slice is found: %s", said);
    fake_world_run(3, far_rank, &far);
    for (int r = 0; r < 3; r++)
        corrupt += far.rc[r] == DT_ERR_CORRUPT;
    ok(corrupt > 0, "also in a file of another rank: %s", far.text[0]);
    ckpt_remove_tree(dir);
}

static void test_far(void)
{
    static struct far far;
    char *dir = ckpt_temp_dir();
    struct state state = {.dir = {NULL, dir}, .own = true, .wide = true};
    size_t most = 0;
    int right = 0, corrupt = 0;
    far.state = &state;
    state_write(dir, &state, 3, 1);
    fake_world_run(3, far_rank, &far);
    for (int r = 0; r < 3; r++) {
        right += far.rc[r] == DT_SUCCESS && far.right[r];
        most = far.rounds[r] > most ? far.rounds[r] : most;
    }
    ok(right == 3, "from files of other ranks: %s", far.text[0]);
    ok(most > 1 && most < 40, "in up to %zu rounds", most);
    state_flip(dir, 1, 2, 100000);
    fake_world_run(3, far_rank, &far);
    for (int r = 0; r < 3; r++)
        corrupt += far.rc[r] == DT_ERR_CORRUPT;
    ok(corrupt > 0, "damage there is found by %d ranks: %s", corrupt,
       far.text[0]);
    ckpt_remove_tree(dir);
}

/* ---- the golden samples ---- */

struct golden {
    const char *dir;
    bool whole[FAKE_WORLD_MAX], parts[FAKE_WORLD_MAX], own[FAKE_WORLD_MAX];
    bool blob[FAKE_WORLD_MAX];
};

static bool pattern(const void *data, size_t n, int salt)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        if (at[i] != (unsigned char)(salt + (int)i * 7))
            return false;
    return true;
}

static void add(struct dt_ckpt *ckpt, const char *name, dt_dtype_t dtype,
                int ndim, const int64_t *shape, bool replicated, void *data)
{
    if (state_add(ckpt, name, replicated ? DT_MANIFEST_GLOBAL : DT_MANIFEST_OWN,
                  replicated, dtype, ndim, shape, NULL, NULL, data))
        abort();
}

/* What both samples hold. w, which was replicated in version 1 and in parts in
 * version 2, is loaded both ways. Version 2 has a blob, too. */
static void golden_rank(void *arg)
{
    struct golden *golden = arg;
    struct state state = {.dir = {NULL, (char *)golden->dir}, .empty = true};
    int r = dt_rank();
    unsigned char w[96], part[16], b[14], own[13], scalar[8], step[8];
    int64_t found = 0;
    memset(part, 0, sizeof(part));
    for (int parts = 0; parts < 2; parts++) {
        struct dt_ckpt *ckpt = state_open(&state);
        struct dt_error err = {0};
        memset(w, 0, sizeof(w));
        if (parts && /* column r and the next, of 6 */
            state_add(ckpt, "w", DT_MANIFEST_GLOBAL, false, DT_DTYPE_F32, 2,
                      (int64_t[]){4, 6}, (int64_t[]){0, r}, (int64_t[]){2, 2},
                      part))
            abort();
        if (!parts)
            add(ckpt, "w", DT_DTYPE_F32, 2, (int64_t[]){4, 6}, true, w);
        add(ckpt, "b i.as\"", DT_DTYPE_BF16, 1, (int64_t[]){7}, true, b);
        add(ckpt, "none", DT_DTYPE_F16, 2, (int64_t[]){0, 3}, true, NULL);
        add(ckpt, "step", DT_DTYPE_I64, 0, NULL, true, step);
        add(ckpt, "rng", DT_DTYPE_U8, 1, (int64_t[]){13}, false, own);
        add(ckpt, "scalar", DT_DTYPE_F64, 0, NULL, false, scalar);
        struct dt_source loaded = {.fd = -1};
        dt_result_t rc = dt_load(ckpt, &found, &loaded, &err);
        dt_source_close(&loaded);
        if (rc == DT_SUCCESS && found == 12 && !parts) {
            golden->whole[r] = pattern(w, 96, 13) && pattern(b, 14, 14) &&
                               pattern(step, 8, 17);
            golden->own[r] = pattern(own, 13, 100 * (r + 1) + 12) &&
                             pattern(scalar, 8, 30 * (r + 1) + 12);
        } else if (rc == DT_SUCCESS && found == 12) {
            golden->parts[r] = pattern(part, 8, 13 + 7 * 4 * r) &&
                               pattern(part + 8, 8, 13 + 7 * 4 * (6 + r));
        } else {
            diag("%s", err.text);
        }
        struct dt_ckpt_tensor *blob = dt_tensors_find(ckpt, "sampler");
        if (blob) {
            golden->blob[r] = blob->bytes == (size_t)r + 3 &&
                              pattern(blob->data, blob->bytes, 60 + r);
            free(blob->data);
        }
        state_close(ckpt);
    }
}

static void test_golden(int version)
{
    struct golden golden = {0};
    char *dir = NULL;
    if (asprintf(&dir, "%s/ckpt-v%d", SAMPLES, version) < 0)
        abort();
    golden.dir = dir;
    fake_world_run(2, golden_rank, &golden);
    ok(golden.whole[0] && golden.whole[1], "version %d, bit for bit", version);
    ok(golden.own[0] && golden.own[1], "and what each rank had");
    ok(golden.parts[0] && golden.parts[1], "and as parts");
    if (version > 1)
        ok(golden.blob[0] && golden.blob[1], "and the blobs");
    free(dir);
}

int main(void)
{
    alarm(1200);
    test_golden(1);
    test_golden(2);
    test_any_size();
    test_own();
    test_blobs();
    test_tiers();
    test_flips();
    test_far();
    test_second_block();
    return tap_done();
}
