/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.c - the manifest, printed and parsed. */
#include "ckpt/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/checksum.h"
#include "tap.h"

/* The golden sample of version 1, compact and in the order of its checksum:
 * layout and order of a manifest do not matter. */
#define GOLDEN_A                                                               \
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
#define GOLDEN_B   "\"version\":1,\"world_size\":2}"
#define GOLDEN_SUM "52ff8d96ef01d2fa"

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

static bool is_golden(const struct dt_manifest *m)
{
    return m->step == 150 && m->restart_count == 3 && m->world_size == 2 &&
           strcmp(m->run_id, "job 7") == 0 &&
           strcmp(m->created, "2026-01-31T23:59:59Z") == 0 &&
           strcmp(m->file[0].name, "rank-00000-of-00002.safetensors") == 0 &&
           m->file[0].size == 300 &&
           m->file[0].checksum == 0x0123456789abcdef &&
           m->file[1].checksum == UINT64_MAX && m->count == 2 &&
           strcmp(m->tensor[0].tensor.name, "m") == 0 &&
           m->tensor[0].file == DT_MANIFEST_PER_RANK &&
           m->tensor[0].tensor.bytes == 4 &&
           strcmp(m->tensor[1].tensor.name, "w") == 0 &&
           m->tensor[1].file == 1 && m->tensor[1].tensor.bytes == 12;
}

static void test_golden(void)
{
    struct dt_manifest m = {0}, again = {0};
    struct dt_error err = {0};
    char *text = seal(GOLDEN_A GOLDEN_B, GOLDEN_SUM), *printed = NULL;
    size_t len = 0;
    if (!ok(dt_manifest_parse(&m, text, strlen(text), &err) == DT_SUCCESS,
            "parses the golden sample"))
        diag("%s", err.text);
    ok(m.count == 2 && is_golden(&m), "finds in it what is there");
    ok(dt_manifest_print(&m, &printed, &len, NULL) == DT_SUCCESS &&
           len == strlen(printed) && strstr(printed, GOLDEN_SUM),
       "prints it, with the same checksum");
    ok(dt_manifest_parse(&again, printed, len, NULL) == DT_SUCCESS &&
           is_golden(&again),
       "parses what it printed");
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
    dt_manifest_clear(&again);
    free(printed);
    free(text);
}

/* The golden sample with one thing put in place of another, well sealed. */
static const struct {
    const char *what, *from, *to;
} lies[] = {
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
};

static void test_lies(void)
{
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        const char *golden = GOLDEN_A GOLDEN_B;
        const char *at = strstr(golden, lies[i].from);
        char *body = NULL;
        struct dt_manifest m = {0};
        struct dt_error err = {0};
        if (!at || asprintf(&body, "%.*s%s%s", (int)(at - golden), golden,
                            lies[i].to, at + strlen(lies[i].from)) < 0)
            abort();
        ok(parse(&m, body, &err) == DT_ERR_CORRUPT && err.text[0],
           "refuses %s: %s", lies[i].what, err.text);
        free(body);
    }
    struct dt_manifest m = {0};
    struct dt_error err = {0};
    ok(parse(&m, GOLDEN_A "\"version\":2,\"world_size\":2}", &err) ==
               DT_ERR_VERSION &&
           strstr(err.text, "newer slurm-dt"),
       "a newer version: %s", err.text);
    ok(parse(&m, "{\"format\":\"slurm-dt checkpoint\",\"version\":3}", NULL) ==
           DT_ERR_VERSION,
       "a newer version need not look like ours");
    ok(parse(&m, GOLDEN_A "\"version\":1,\"world_size\":2,\"xtra\":[{}]}",
             NULL) == DT_SUCCESS,
       "an unknown key is passed over");
    dt_manifest_clear(&m);
}

static void test_fuzz(void)
{
    uint64_t seed = 7;
    int taken = 0, wrong = 0;
    const char *golden = GOLDEN_A GOLDEN_B;
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
            wrong += m.tensor[i].file >= m.world_size;
        dt_manifest_clear(&m);
    }
    ok(wrong == 0 && taken > 0, "20000 mutations, %d of them taken", taken);
    free(body);
}

int main(void)
{
    test_golden();
    test_lies();
    test_fuzz();
    return tap_done();
}
