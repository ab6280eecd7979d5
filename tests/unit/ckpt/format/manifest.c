/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.c - the manifest, printed and parsed. */
#include "ckpt/format/manifest_json.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/format/checksum.h"
#include "../../tap.h"

/* The golden samples, compact and in the order of their checksum: layout and
 * order of a manifest do not matter. */
#define GOLDEN_1A                                                              \
    "{\"created\":\"2026-01-31T23:59:59Z\",\"files\":["                        \
    "{\"name\":\"rank-00000-of-00002.safetensors\",\"size\":300,"              \
    "\"xxh3_64\":\"0123456789abcdef\"},"                                       \
    "{\"name\":\"rank-00001-of-00002.safetensors\",\"size\":0,"                \
    "\"xxh3_64\":\"ffffffffffffffff\"}],"                                      \
    "\"format\":\"slurm-dt checkpoint\",\"restart_count\":3,"                  \
    "\"run_id\":\"job 7\",\"step\":150,\"tensors\":{"                          \
    "\"m\":{\"dtype\":\"F32\",\"replicated\":false,\"shape\":[]},"             \
    "\"w\":{\"dtype\":\"BF16\",\"file\":\"rank-00001-of-00002.safetensors\""   \
    ",\"replicated\":true,\"shape\":[2,3]}},"
#define GOLDEN_1     GOLDEN_1A "\"version\":1,\"world_size\":2}"
#define GOLDEN_1_SUM "52ff8d96ef01d2fa"

#define GOLDEN_2A                                                              \
    "{\"copy_us\":1500,\"created\":\"2026-01-31T23:59:59Z\",\"files\":["       \
    "{\"header\":96,\"name\":\"a.safetensors\",\"node\":0,\"rank\":0,"         \
    "\"size\":300,\"xxh3_64\":\"0123456789abcdef\"},"                          \
    "{\"header\":8,\"name\":\"b.safetensors\",\"node\":1,\"rank\":1,"          \
    "\"size\":4194400,\"xxh3_64\":\"ffffffffffffffff\"}],"                     \
    "\"format\":\"slurm-dt checkpoint\",\"num_nodes\":2,"                      \
    "\"redundancy\":\"rs:4+2\",\"restart_count\":3,\"run_id\":\"job 7\","      \
    "\"step\":150,\"tag\":\"00000000000000fe\",\"tensors\":{"                  \
    "\"all\":{\"dtype\":\"F8_E4M3\",\"kind\":\"global\",\"replicated\":true,"  \
    "\"shape\":[3],\"slices\":[[0,96,\"00000000000000aa\"]]},"                 \
    "\"bytes\":{\"dtype\":\"U8\",\"kind\":\"blob\",\"replicated\":false,"      \
    "\"slices\":[[0,99,[0],[0],\"\"],[1,8,[0],[4194305],"                      \
    "\"00000000000000bb00000000000000bc\"]]},"                                 \
    "\"own\":{\"dtype\":\"F64\",\"kind\":\"own\",\"replicated\":false,"        \
    "\"shape\":[],\"slices\":[[0,100,\"00000000000000cc\"],"                   \
    "[1,4194313,\"00000000000000cd\"]]},"                                      \
    "\"w\":{\"dtype\":\"BF16\",\"kind\":\"global\",\"replicated\":false,"      \
    "\"shape\":[2,3],\"slices\":["                                             \
    "[0,200,[0,0],[2,1],\"00000000000000dd\"],"                                \
    "[1,4194321,[0,1],[2,2],\"00000000000000de\"]]}},"
#define GOLDEN_2     GOLDEN_2A "\"version\":2,\"world_size\":2,\"write_us\":7}"
#define GOLDEN_2_SUM "e8ef06c799bb8839"

/* body with its checksum put in front */
static char *seal(const char *body, const char *sum)
{
    char text[DT_CHECKSUM_TEXT], *sealed = NULL;
    dt_checksum_print(dt_checksum(body, strlen(body)), text);
    if (asprintf(&sealed, "{\"checksum\":\"%s\",%s", sum ? sum : text,
                 body + 1) < 0)
        abort();
    return sealed;
}

static dt_result_t parse(struct dt_manifest *m, const char *body,
                         struct dt_error *err)
{
    char *text = seal(body, NULL);
    dt_result_t rc = dt_manifest_parse(m, text, strlen(text), err);
    free(text);
    return rc;
}

static bool is_golden_1(const struct dt_manifest *m)
{
    const struct dt_manifest_tensor *own = dt_manifest_find(m, "m"),
                                    *shared = dt_manifest_find(m, "w");
    return m->version == 1 && m->step == 150 && m->restart_count == 3 &&
           m->world_size == 2 && m->nfiles == 2 &&
           strcmp(m->run_id, "job 7") == 0 &&
           strcmp(m->created, "2026-01-31T23:59:59Z") == 0 &&
           strcmp(m->file[0].name, "rank-00000-of-00002.safetensors") == 0 &&
           m->file[0].size == 300 &&
           m->file[0].checksum == 0x0123456789abcdef &&
           m->file[1].checksum == UINT64_MAX && m->count == 2 && own &&
           own->kind == DT_MANIFEST_OWN && own->nslices == 2 &&
           own->slice[1].file == 1 && own->slice[1].bytes == 4 &&
           !own->slice[0].sum && shared && shared->replicated &&
           shared->kind == DT_MANIFEST_GLOBAL && shared->nslices == 1 &&
           shared->slice[0].file == 1 && shared->slice[0].bytes == 12;
}

static bool is_golden_2(const struct dt_manifest *m)
{
    const struct dt_manifest_tensor *all = dt_manifest_find(m, "all"),
                                    *bytes = dt_manifest_find(m, "bytes"),
                                    *own = dt_manifest_find(m, "own"),
                                    *w = dt_manifest_find(m, "w");
    return m->version == 2 && m->step == 150 && m->restart_count == 3 &&
           m->tag == 0xfe && m->world_size == 2 && m->num_nodes == 2 &&
           m->nfiles == 2 && strcmp(m->redundancy, "rs:4+2") == 0 &&
           m->copy_s == 0.0015 && m->write_s == 7e-6 &&
           m->file[0].header == 96 && m->file[1].node == 1 &&
           m->file[1].rank == 1 && m->file[1].size == 4194400 &&
           m->count == 4 && all && all->replicated && all->nslices == 1 &&
           all->tensor.dtype == DT_DTYPE_F8E4M3 &&
           all->slice[0].extent[0] == 3 && all->slice[0].sum[0] == 0xaa &&
           bytes && bytes->kind == DT_MANIFEST_BLOB &&
           bytes->tensor.shape[0] == 4194305 && bytes->slice[0].bytes == 0 &&
           bytes->slice[1].bytes == 4194305 && bytes->slice[1].sum[1] == 0xbc &&
           own && own->kind == DT_MANIFEST_OWN && own->slice[1].rank == 1 &&
           own->slice[1].offset == 4194313 && w && !w->replicated &&
           w->kind == DT_MANIFEST_GLOBAL && w->nslices == 2 &&
           w->slice[1].rank == 1 && w->slice[1].at[1] == 1 &&
           w->slice[1].extent[1] == 2 && w->slice[1].bytes == 8 &&
           w->slice[1].sum[0] == 0xde && !dt_manifest_find(m, "v");
}

static void test_golden_1(void)
{
    struct dt_manifest m = {0};
    struct dt_error err = {0};
    char *text = seal(GOLDEN_1, GOLDEN_1_SUM);
    if (!ok(dt_manifest_parse(&m, text, strlen(text), &err) == DT_SUCCESS,
            "parses the golden sample of version 1"))
        diag("%s", err.text);
    ok(m.count == 2 && is_golden_1(&m), "finds in it what is there");
    dt_manifest_clear(&m);
    free(text);
}

static void test_golden_2(void)
{
    struct dt_manifest m = {0}, again = {0};
    struct dt_error err = {0};
    char *text = seal(GOLDEN_2, GOLDEN_2_SUM), *printed = NULL;
    size_t len = 0;
    if (!ok(dt_manifest_parse(&m, text, strlen(text), &err) == DT_SUCCESS,
            "parses the golden sample of version 2"))
        diag("%s", err.text);
    ok(m.count == 4 && is_golden_2(&m), "finds in it what is there");
    ok(dt_manifest_print(&m, &printed, &len, NULL) == DT_SUCCESS &&
           len == strlen(text) && strcmp(printed, text) == 0,
       "prints the same");
    ok(dt_manifest_parse(&again, printed, len, NULL) == DT_SUCCESS &&
           is_golden_2(&again),
       "parses what it printed");
    dt_manifest_clear(&again);
    int bad = 0;
    for (size_t n = 0; n < len; n++) {
        struct dt_manifest none = {0};
        bad += dt_manifest_parse(&none, printed, n, NULL) != DT_ERR_CORRUPT;
    }
    ok(bad == 0, "every truncation is found");
    for (size_t i = 0; i < 8 * len; i++) {
        struct dt_manifest none = {0};
        printed[i / 8] ^= (char)(1 << i % 8);
        if (dt_manifest_parse(&none, printed, len, NULL) == DT_SUCCESS) {
            diag("bit %zu, in \"%.20s\"", i, printed + i / 8);
            dt_manifest_clear(&none);
            bad++;
        }
        printed[i / 8] ^= (char)(1 << i % 8);
    }
    ok(bad == 0, "every flipped bit is found");
    dt_manifest_clear(&m);
    free(printed);
    free(text);
}

/* Laid out by another program, with the keys in any order. */
static void test_layout(void)
{
    static const char body[] =
        "{ \"version\" : 2," GOLDEN_2A "\n\"world_size\":2, \"write_us\":7,"
        "\"checksum\":\"" GOLDEN_2_SUM "\"}";
    struct dt_manifest m = {0};
    char text[sizeof(body)];
    char *brace = strstr(body, "{\"copy_us");
    snprintf(text, sizeof(text), "%.*s%s", (int)(brace - body), body,
             brace + 1);
    ok(dt_manifest_parse(&m, text, strlen(text), NULL) == DT_SUCCESS &&
           is_golden_2(&m),
       "the same with other white space and order");
    dt_manifest_clear(&m);
}

/* A golden sample with one thing put in place of another, well sealed. */
static const struct lie {
    const char *what, *from, *to;
} lies_1[] =
    {
        {"another format", "slurm-dt checkpoint", "slurm-dt"},
        {"version 0", "\"version\":1", "\"version\":0"},
        {"a version that is no number", "\"version\":1", "\"version\":\"1\""},
        {"a negative step", ":150", ":-1"},
        {"a fractional step", ":150", ":150.5"},
        {"no step", "\"step\"", "\"stop\""},
        {"world size 0", "\"world_size\":2", "\"world_size\":0"},
        {"world size 3", "\"world_size\":2", "\"world_size\":3"},
        {"world size 2^31", "\"world_size\":2", "\"world_size\":2147483648"},
        {"a run id that is no string", "\"job 7\"", "7"},
        {"a file elsewhere", "rank-00000-of-00002.safetensors", "../passwd"},
        {"an absolute file", "rank-00000-of-00002.safetensors", "/etc/passwd"},
        {"the file ..", "rank-00000-of-00002.safetensors", ".."},
        {"the file .", "rank-00000-of-00002.safetensors", "."},
        {"a file without a name", "rank-00000-of-00002.safetensors", ""},
        {"a file name of 66 characters", "rank-00000-of-00002.safetensors",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"two files of one name", "rank-00000-of-00002.safetensors",
         "rank-00001-of-00002.safetensors"},
        {"a negative size", ":300", ":-300"},
        {"a checksum in capitals", "0123456789abcdef", "0123456789ABCDEF"},
        {"a short checksum", "0123456789abcdef", "0123456789abcde"},
        {"a long checksum", "0123456789abcdef", "0123456789abcdef0"},
        {"an unknown type", "BF16", "BF17"},
        {"a negative dimension", "[2,3]", "[2,-3]"},
        {"a shape that overflows", "[2,3]", "[4294967296,4294967296]"},
        {"a shape that is no list", "[2,3]", "6"},
        {"a replicated tensor without a file", "\"replicated\":false",
         "\"replicated\":true"},
        {"a rank's own tensor with a file", "safetensors\",\"replicated\":true",
         "safetensors\",\"replicated\":false"},
        {"a tensor in a file that is not there", "\"file\":\"rank-00001",
         "\"file\":\"rank-00003"},
        {"a tensor of a reserved name", "\"m\"", "\"__metadata__\""},
        {"two tensors of one name", "\"w\"", "\"m\""},
},
  lies_2[] = {
      {"a negative step", ":150", ":-1"},
      {"world size 0", "\"world_size\":2", "\"world_size\":0"},
      {"world size 1", "\"world_size\":2", "\"world_size\":1"},
      {"world size 3", "\"world_size\":2", "\"world_size\":3"},
      {"no nodes", "\"num_nodes\":2", "\"num_nodes\":0"},
      {"one node", "\"num_nodes\":2", "\"num_nodes\":1"},
      {"2^32 nodes", "\"num_nodes\":2", "\"num_nodes\":4294967298"},
      {"a tag that is a number", "\"00000000000000fe\"", "254"},
      {"a negative time", "\"copy_us\":1500", "\"copy_us\":-1"},
      {"a redundancy of 40 characters", "rs:4+2",
       "rs:4+22222222222222222222222222222222222"},
      {"a file elsewhere", "a.safetensors", "../passwd"},
      {"two files of one name", "a.safetensors", "b.safetensors"},
      {"a file of rank 2", "\"rank\":1", "\"rank\":2"},
      {"a file of rank -1", "\"rank\":1", "\"rank\":-1"},
      {"a file of rank 2^32 + 1", "\"rank\":1", "\"rank\":4294967297"},
      {"a file on node 2", "\"node\":1", "\"node\":2"},
      {"a header longer than the file", "\"header\":96", "\"header\":301"},
      {"no header", "\"header\":96,", ""},
      {"a negative size", ":300", ":-300"},
      {"a huge size", ":300", ":9223372036854775808"},
      {"no files", "\"files\":[", "\"files\":[],\"fules\":["},
      {"files that are no list", "\"files\":[", "\"files\":1,\"fules\":["},
      {"an unknown type", "BF16", "BF17"},
      {"an unknown kind", "\"own\",", "\"mine\","},
      {"a kind that is a number", "\"own\",", "1,"},
      {"a replicated own", "\"own\",\"replicated\":false",
       "\"own\",\"replicated\":true"},
      {"a replicated tensor in two parts", "\"replicated\":false,\"shape\":[2",
       "\"replicated\":true,\"shape\":[2"},
      {"a replicated tensor that is nowhere", "[0,96,\"00000000000000aa\"]",
       ""},
      {"a blob of floats", "\"U8\"", "\"F32\""},
      {"a blob for one rank only", "[0,99,[0],[0],\"\"],", ""},
      {"a blob that does not begin at 0", "[0,99,[0],[0]", "[0,99,[1],[0]"},
      {"a blob without a length", "[0,99,[0],[0],\"\"]", "[0,99,\"\"]"},
      {"a blob of negative length", "[0,99,[0],[0]", "[0,99,[0],[-1]"},
      {"an own tensor of rank 0 only", ",[1,4194313,\"00000000000000cd\"]", ""},
      {"an own tensor twice of rank 0", "[1,4194313", "[0,4194313"},
      {"an own tensor twice of rank 0, inside its file", "[1,4194313",
       "[0,108"},
      {"parts that overlap", "[0,0],[2,1]", "[0,1],[2,1]"},
      {"parts with a gap",
       "[0,0],[2,1],\"00000000000000dd\"],[1,4194321,[0,1],"
       "[2,2]",
       "[0,0],[2,1],\"00000000000000dd\"],[1,4194321,[0,1],[2,1]"},
      {"a part that is not there", "[0,200,[0,0],[2,1],\"00000000000000dd\"],",
       ""},
      {"a part outside", "[0,1],[2,2]", "[0,2],[2,2]"},
      {"a part at a negative place", "[0,0],[2,1]", "[0,-1],[2,1]"},
      {"a part of negative extent", "[0,0],[2,1]", "[0,0],[-2,-1]"},
      {"a part whose end overflows", "[0,1],[2,2]",
       "[0,9223372036854775807],"
       "[2,2]"},
      {"a part whose size overflows", "[0,1],[2,2]",
       "[0,1],[4611686018427387904,4611686018427387904]"},
      {"a part of one dimension", "[0,0],[2,1]", "[0],[2]"},
      {"a part of three dimensions", "[0,0],[2,1]", "[0,0,0],[2,1,1]"},
      {"a part in no file", "[0,200,", "[2,200,"},
      {"a part in file -1", "[0,200,", "[-1,200,"},
      {"a part in file 2^32", "[0,200,", "[4294967296,200,"},
      {"a part in the header", "[0,200,", "[0,95,"},
      {"a part beyond the end", "[0,200,", "[0,297,"},
      {"a part at the end of the address space", "[0,200,",
       "[0,9223372036854775807,"},
      {"a part at a negative offset", "[0,200,", "[0,-200,"},
      {"a part that is no list", "[0,200,[0,0],[2,1],\"00000000000000dd\"]",
       "{\"file\":0}"},
      {"a part of four things", "[0,200,[0,0],[2,1],", "[0,200,[0,0],"},
      {"a part that is an empty list",
       "[0,200,[0,0],[2,1],\"00000000000000dd\"]", "[]"},
      {"no checksum", "\"00000000000000dd\"", "\"\""},
      {"two checksums for one block", "\"00000000000000dd\"",
       "\"00000000000000dd00000000000000dd\""},
      {"half a checksum", "\"00000000000000dd\"", "\"00000000\""},
      {"a checksum and a half", "\"00000000000000dd\"",
       "\"00000000000000dd00000000\""},
      {"one checksum for two blocks", "00000000000000bb00", "00"},
      {"a checksum in capitals", "00000000000000dd", "00000000000000DD"},
      {"a checksum with a NUL", "00000000000000dd", "0000000000000\\u0000dd"},
      {"a checksum that is a number", "\"00000000000000dd\"", "221"},
      {"a tensor without slices", "\"slices\":[[0,200", "\"slicer\":[[0,200"},
      {"a tensor without a shape", "\"shape\":[2,3],", ""},
      {"33 dimensions", "\"shape\":[2,3]",
       "\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
       "1,2,3]"},
      {"a shape that overflows", "\"shape\":[2,3]",
       "\"shape\":[4294967296,4294967296]"},
      {"a tensor of a reserved name", "\"w\"", "\"__metadata__\""},
      {"two tensors of one name", "\"w\"", "\"own\""},
};

static void test_lies(const char *golden, const struct lie *lies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(golden, lies[i].from);
        char *body = NULL;
        struct dt_manifest m = {0};
        struct dt_error err = {0};
        if (!at || asprintf(&body, "%.*s%s%s", (int)(at - golden), golden,
                            lies[i].to, at + strlen(lies[i].from)) < 0)
            abort();
        ok(parse(&m, body, &err) == DT_ERR_CORRUPT && err.text[0] &&
               !strchr(err.text, '\n'),
           "refuses %s: %s", lies[i].what, err.text);
        dt_manifest_clear(&m);
        free(body);
    }
}

/* Texts of exactly the length for which there is room, and one more. */
static const struct limit {
    const char *what, *from, *to; /* to is followed by the rest */
    size_t most;                  /* characters of to and the rest */
} limits[] = {
    {"a run id", "job 7", "", 127},
    {"a time", "2026-01-31T23:59:59Z", "", 31},
    {"a redundancy", "rs:4+2", "", 31},
    {"the name of a file", "a.safetensors", "", 63},
    {"the name of a tensor", "\"all\"", "\"", 201}, /* with one quote */
};

/* from becomes to, filled up to len characters. */
static bool parses_with(const struct limit *limit, size_t len)
{
    const char *at = strstr(GOLDEN_2, limit->from);
    const char *rest = at + strlen(limit->from);
    char fill[256] = {0}, *body = NULL;
    struct dt_manifest m = {0};
    memset(fill, 'x', len - strlen(limit->to));
    if (asprintf(&body, "%.*s%s%s%s%s", (int)(at - GOLDEN_2), GOLDEN_2,
                 limit->to, fill, *limit->to ? "\"" : "", rest) < 0)
        abort();
    dt_result_t rc = parse(&m, body, NULL);
    dt_manifest_clear(&m);
    free(body);
    return rc == DT_SUCCESS;
}

static void test_limits(void)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        ok(parses_with(&limits[i], limits[i].most) &&
               !parses_with(&limits[i], limits[i].most + 1),
           "%s: as long as there is room, and no longer", limits[i].what);
}

static void test_versions(void)
{
    struct dt_manifest m = {0};
    struct dt_error err = {0};
    ok(parse(&m, GOLDEN_2A "\"version\":3,\"world_size\":2,\"write_us\":7}",
             &err) == DT_ERR_VERSION &&
           strstr(err.text, "newer slurm-dt"),
       "a newer version: %s", err.text);
    ok(parse(&m, "{\"format\":\"slurm-dt checkpoint\",\"version\":4}", NULL) ==
           DT_ERR_VERSION,
       "a newer version need not look like ours");
    ok(parse(&m, GOLDEN_1A "\"version\":1,\"world_size\":2,\"xtra\":[{}]}",
             NULL) == DT_SUCCESS &&
           is_golden_1(&m),
       "an unknown key is passed over");
    dt_manifest_clear(&m);
}

static void test_fuzz(const char *golden)
{
    uint64_t seed = 7;
    int taken = 0, wrong = 0;
    size_t len = strlen(golden);
    char *body = malloc(len + 1);
    for (int round = 0; round < 20000; round++) {
        memcpy(body, golden, len + 1);
        for (int k = 0; k < 1 + round % 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            static const char bytes[] = "0123456789-,:[]{}\"eE.+ \\u";
            size_t at = 1 + (seed >> 33) % (len - 2);
            body[at] = bytes[(seed >> 20) % (sizeof(bytes) - 1)];
        }
        struct dt_manifest m = {0};
        dt_result_t rc = parse(&m, body, NULL);
        taken += rc == DT_SUCCESS;
        wrong +=
            rc != DT_SUCCESS && rc != DT_ERR_CORRUPT && rc != DT_ERR_VERSION;
        for (size_t i = 0; i < m.count; i++)
            for (size_t k = 0; k < m.tensor[i].nslices; k++)
                wrong += (size_t)m.tensor[i].slice[k].file >= m.nfiles;
        dt_manifest_clear(&m);
    }
    ok(wrong == 0 && taken > 0, "20000 mutations, %d of them taken", taken);
    free(body);
}

int main(void)
{
    test_golden_1();
    test_golden_2();
    test_layout();
    test_lies(GOLDEN_1, lies_1, sizeof(lies_1) / sizeof(*lies_1));
    test_lies(GOLDEN_2, lies_2, sizeof(lies_2) / sizeof(*lies_2));
    test_limits();
    test_versions();
    test_fuzz(GOLDEN_1);
    test_fuzz(GOLDEN_2);
    return tap_done();
}
