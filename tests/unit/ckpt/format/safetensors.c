/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* safetensors.c - one file of tensors, as it is written and as it is read. */
#include "ckpt/format/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../tap.h"

/* The golden sample: what version 1 writes for these four tensors. */
static const char golden_header[] =
    "{\"__metadata__\":{\"format\":\"slurm-dt\",\"version\":\"1\"},"
    "\"d\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
    "\"a b\":{\"dtype\":\"I32\",\"shape\":[2,1],\"data_offsets\":[8,16]},"
    "\"empty\":{\"dtype\":\"U8\",\"shape\":[0,3],\"data_offsets\":[16,16]},"
    "\"c\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[16,19]}}    ";
static const unsigned char golden_data[] = {0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 1, 0,
                                            0, 0, 2, 0, 0, 0, 0xff, 5,    6};

static int memory_file(const void *data, size_t len)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        abort();
    return fd;
}

static void test_layout(void)
{
    struct dt_tensor t[6];
    dt_tensor_init(&t[0], "a b", DT_DTYPE_I32, 2, (int64_t[]){2, 1}, NULL);
    dt_tensor_init(&t[1], "empty", DT_DTYPE_U8, 2, (int64_t[]){0, 3}, NULL);
    dt_tensor_init(&t[2], "c", DT_DTYPE_I8, 1, (int64_t[]){3}, NULL);
    dt_tensor_init(&t[3], "d", DT_DTYPE_F64, 0, NULL, NULL);
    dt_tensor_init(&t[4], "e", DT_DTYPE_F8E4M3, 1, (int64_t[]){2}, NULL);
    dt_tensor_init(&t[5], "f", DT_DTYPE_F8E5M2, 1, (int64_t[]){1}, NULL);
    const struct dt_tensor *tensor[] = {&t[0], &t[1], &t[2],
                                        &t[3], &t[4], &t[5]};
    size_t offset[6] = {0}, size = 0, header_len = 0;
    size_t len = strlen(golden_header), begin = 8 + len;
    char *header = NULL;
    ok(dt_safetensors_layout(4, tensor, offset, &header, &header_len, &size,
                             NULL) == DT_SUCCESS,
       "lays out four tensors");
    ok(header_len == begin && len % 8 == 0,
       "the header ends at a multiple of 8");
    ok((unsigned char)header[0] == len % 256 &&
           (unsigned char)header[1] == len / 256 &&
           memcmp(header + 2, "\0\0\0\0\0\0", 6) == 0,
       "its length is the first 8 bytes, little-endian");
    ok(memcmp(header + 8, golden_header, len) == 0, "the header is the golden");
    ok(offset[3] == begin && offset[0] == begin + 8 &&
           offset[1] == begin + 16 && offset[2] == begin + 16 &&
           size == begin + sizeof(golden_data),
       "larger types first, without gaps");
    free(header);
    ok(dt_safetensors_layout(0, NULL, NULL, &header, &header_len, &size,
                             NULL) == DT_SUCCESS &&
           size == header_len && size % 8 == 0,
       "a file of no tensor");
    free(header);
    struct dt_safetensors st = {0};
    ok(dt_safetensors_layout(6, tensor, offset, &header, &header_len, &size,
                             NULL) == DT_SUCCESS &&
           strstr(header + 8, "\"F8_E4M3\"") &&
           strstr(header + 8, "\"F8_E5M2\"") &&
           dt_safetensors_parse(&st, header + 8, header_len - 8, size, NULL) ==
               DT_SUCCESS &&
           dt_safetensors_find(&st, "f")->tensor.dtype == DT_DTYPE_F8E5M2,
       "types of 8 bits have safetensors' names");
    for (int i = 0; i < 6; i++)
        ok(dt_safetensors_find(&st, t[i].name)->offset == offset[i],
           "%s is where the reader finds it", t[i].name);
    dt_safetensors_clear(&st);
    free(header);
}

static void test_read(void)
{
    size_t len = strlen(golden_header), size = 8 + len + sizeof(golden_data);
    char *file = calloc(1, size);
    file[0] = (char)(len % 256);
    file[1] = (char)(len / 256);
    memcpy(file + 8, golden_header, len);
    memcpy(file + 8 + len, golden_data, sizeof(golden_data));
    struct dt_safetensors st = {0};
    int fd = memory_file(file, size);
    ok(dt_safetensors_read(&st, fd, size, NULL) == DT_SUCCESS && st.count == 4,
       "reads the golden sample");
    const struct dt_safetensors_entry *entry = dt_safetensors_find(&st, "c");
    ok(entry && entry->offset == 8 + len + 16 && entry->tensor.bytes == 3 &&
           entry->tensor.ndim == 1 && entry->tensor.shape[0] == 3 &&
           entry->tensor.dtype == DT_DTYPE_I8,
       "finds a tensor and its place");
    entry = dt_safetensors_find(&st, "d");
    ok(entry && entry->tensor.ndim == 0 && entry->tensor.bytes == 8,
       "a scalar has no dimensions");
    ok(!dt_safetensors_find(&st, "__metadata__"), "metadata is no tensor");
    dt_safetensors_clear(&st);
    int bad = 0;
    for (size_t n = 0; n < size; n++) {
        int cut = memory_file(file, n);
        if (dt_safetensors_read(&st, cut, n, NULL) != DT_ERR_CORRUPT)
            bad++;
        /* a file that shrinks while it is read */
        dt_result_t rc = dt_safetensors_read(&st, cut, size, NULL);
        if (rc == DT_SUCCESS) /* the header is there */
            dt_safetensors_clear(&st);
        else if (rc != DT_ERR_CORRUPT)
            bad++;
        close(cut);
    }
    ok(bad == 0, "every truncation is found");
    close(fd);
    free(file);
}

/* Headers that lie, each in a file with 16 bytes of data. */
static void test_bad(void)
{
#define T "{\"t\":{\"dtype\":"
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"t\":1}",
        T "\"F32\",\"shape\":[4]}}",
        T "\"F32\",\"shape\":[4],\"data_offsets\":[0]}}",
        T "\"F32\",\"shape\":[4],\"data_offsets\":[0,16,16]}}",
        T "\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}}",
        T "\"F32\",\"shape\":[4],\"data_offsets\":[-8,8]}}",
        T "\"F32\",\"shape\":[4],\"data_offsets\":[0.0,16]}}",
        T "\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}",
        T "\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}",
        T "\"F32\",\"shape\":[3],\"data_offsets\":[4,16]}}",
        T "\"F32\",\"shape\":[3],\"data_offsets\":[0,16]}}",
        T "\"F32\",\"shape\":4,\"data_offsets\":[0,16]}}",
        T "\"F32\",\"shape\":[\"4\"],\"data_offsets\":[0,16]}}",
        T "\"F32\",\"shape\":[-4],\"data_offsets\":[0,16]}}",
        T "\"X32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
        T "4,\"shape\":[4],\"data_offsets\":[0,16]}}",
        T "\"F64\",\"shape\":[4611686018427387904,4,0],"
          "\"data_offsets\":[0,0]}}",
        T "\"U8\",\"shape\":[9223372036854775807,2],"
          "\"data_offsets\":[0,16]}}",
        T "\"U8\",\"shape\":[99999999999999999999],"
          "\"data_offsets\":[0,16]}}",
        T "\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
          "1,1,1,1,1,1,1,1,1,16],\"data_offsets\":[0,16]}}",
        T "\"U8\",\"shape\":[16],\"data_offsets\":[0,16]},"
          "\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        T "\"U8\",\"shape\":[16],\"data_offsets\":[0,16]},"
          "\"u\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
        "{\"\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}}",
        "{\"\\u0007\":{\"dtype\":\"U8\",\"shape\":[16],"
        "\"data_offsets\":[0,16]}}",
        "{\"\\u0000\":{\"dtype\":\"U8\",\"shape\":[16],"
        "\"data_offsets\":[0,16]}}",
    };
    struct dt_safetensors st = {0};
    struct dt_error err;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        size_t len = strlen(bad[i]);
        err.text[0] = '\0';
        ok(dt_safetensors_parse(&st, bad[i], len, 8 + len + 16, &err) ==
                   DT_ERR_CORRUPT &&
               err.text[0],
           "refuses %.60s: %s", bad[i], err.text);
    }
    static const char good[] =
        T "\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},\"z\":{\"dtype\":"
          "\"F32\",\"shape\":[0],\"data_offsets\":[16,16]},\"y\":{\"dtype\":"
          "\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}";
    ok(dt_safetensors_parse(&st, good, strlen(good), 8 + strlen(good) + 16,
                            NULL) == DT_SUCCESS,
       "takes the one that does not lie, empty tensors at either end");
    dt_safetensors_clear(&st);
    ok(dt_safetensors_parse(&st, good, strlen(good), 7, NULL) ==
               DT_ERR_CORRUPT &&
           dt_safetensors_parse(&st, good, strlen(good), strlen(good) + 7,
                                NULL) == DT_ERR_CORRUPT,
       "a header longer than the file");

    static const unsigned char huge[16] = {0xff, 0xff, 0xff, 0xff,
                                           0xff, 0xff, 0xff, 0xff};
    int fd = memory_file(huge, sizeof(huge));
    ok(dt_safetensors_read(&st, fd, sizeof(huge), NULL) == DT_ERR_CORRUPT,
       "a header of 2^64 - 1 bytes");
    close(fd);

    char *nested = malloc(100000);
    memset(nested, '[', 100000);
    ok(dt_safetensors_parse(&st, nested, 100000, 200000, NULL) ==
           DT_ERR_CORRUPT,
       "100000 open brackets");
    free(nested);
}

/* Mutations of a good header never crash, and what is taken fits. */
static void test_fuzz(void)
{
    size_t len = strlen(golden_header), space = sizeof(golden_data);
    char *text = malloc(len + 1);
    uint64_t seed = 1;
    int taken = 0, wrong = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(text, golden_header, len);
        size_t n = len;
        for (int k = 0; k < 1 + round % 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            static const char bytes[] = "0123456789-,:[]{}\"eE.+ \\u\xff";
            text[(seed >> 33) % len] = bytes[(seed >> 20) % sizeof(bytes)];
        }
        if (round % 5 == 0)
            n = (seed >> 40) % len;
        /* an exact allocation, so that a sanitizer sees an overrun */
        char *exact = malloc(n + !n);
        memcpy(exact, text, n);
        struct dt_safetensors st = {0};
        size_t size = 8 + n + space;
        dt_result_t rc = dt_safetensors_parse(&st, exact, n, size, NULL);
        free(exact);
        if (rc == DT_SUCCESS) {
            taken++;
            for (size_t i = 0; i < st.count; i++)
                wrong += st.entry[i].offset > size ||
                         st.entry[i].tensor.bytes > size - st.entry[i].offset;
            dt_safetensors_clear(&st);
        } else {
            wrong += rc != DT_ERR_CORRUPT;
        }
    }
    ok(wrong == 0 && taken > 0, "20000 mutations, %d of them taken", taken);
    free(text);
}

static void test_tensor(void)
{
    struct dt_tensor t;
    char long_name[202] = {0}, text[16];
    memset(long_name, 'x', 201);
    ok(dt_tensor_init(&t, long_name, DT_DTYPE_U8, 0, NULL, NULL) ==
           DT_ERR_INVALID_ARG,
       "a name of 201 characters is refused");
    ok(dt_tensor_init(&t, long_name + 1, DT_DTYPE_U8, 0, NULL, NULL) ==
               DT_SUCCESS &&
           t.bytes == 1,
       "one of 200 is taken");
    ok(dt_tensor_init(&t, "__metadata__", DT_DTYPE_U8, 0, NULL, NULL) ==
               DT_ERR_INVALID_ARG &&
           dt_tensor_init(&t, "", DT_DTYPE_U8, 0, NULL, NULL) ==
               DT_ERR_INVALID_ARG &&
           dt_tensor_init(&t, NULL, DT_DTYPE_U8, 0, NULL, NULL) ==
               DT_ERR_INVALID_ARG &&
           dt_tensor_init(&t, "a\nb", DT_DTYPE_U8, 0, NULL, NULL) ==
               DT_ERR_INVALID_ARG,
       "reserved, empty and unprintable names are refused");
    ok(dt_tensor_init(&t, "t", (dt_dtype_t)99, 0, NULL, NULL) ==
               DT_ERR_INVALID_ARG &&
           dt_tensor_init(&t, "t", (dt_dtype_t)-1, 0, NULL, NULL) ==
               DT_ERR_INVALID_ARG &&
           dt_tensor_init(&t, "t", DT_DTYPE_U8, 33, (int64_t[33]){0}, NULL) ==
               DT_ERR_INVALID_ARG &&
           dt_tensor_init(&t, "t", DT_DTYPE_U8, -1, NULL, NULL) ==
               DT_ERR_INVALID_ARG &&
           dt_tensor_init(&t, "t", DT_DTYPE_U8, 1, NULL, NULL) ==
               DT_ERR_INVALID_ARG,
       "no such type, too many dimensions, no shape");
    ok(dt_tensor_init(&t, "t", DT_DTYPE_F64, 2,
                      (int64_t[]){INT64_MAX, INT64_MAX},
                      NULL) == DT_ERR_INVALID_ARG,
       "a size that overflows");
    dt_tensor_init(&t, "t", DT_DTYPE_BF16, 2, (int64_t[]){2, 3}, NULL);
    ok(strcmp(dt_tensor_type(&t, text, sizeof(text)), "BF16 [2, 3]") == 0,
       "a type in words");
    ok(strcmp(dt_tensor_type(&t, text, 7), "BF16 [") == 0 &&
           strcmp(dt_tensor_type(&t, text, 9), "BF16 [2,") == 0,
       "in less room");
}

/* As many dimensions as there may be: in memory, and in a header. */
static void test_most_dimensions(void)
{
    static const char header[] =
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1,16],\"data_offsets\":[0,16]}}";
    int64_t shape[32];
    struct dt_tensor t;
    struct dt_safetensors st = {0};
    char text[100];
    for (int i = 0; i < 32; i++)
        shape[i] = 1;
    ok(dt_tensor_init(&t, "t", DT_DTYPE_U8, 32, shape, NULL) == DT_SUCCESS &&
           t.ndim == 32 && t.shape[31] == 1,
       "32 dimensions");
    dt_tensor_type(&t, text, sizeof(text));
    ok(strlen(text) == 99 && text[0] == 'U' && text[strlen(text) - 1] == ']',
       "in words: %s", text);
    ok(dt_safetensors_parse(&st, header, strlen(header),
                            8 + strlen(header) + 16, NULL) == DT_SUCCESS &&
           st.count == 1 && st.entry[0].tensor.ndim == 32 &&
           st.entry[0].tensor.shape[31] == 16,
       "in a header");
    dt_safetensors_clear(&st);
}

int main(void)
{
    test_tensor();
    test_most_dimensions();
    test_layout();
    test_read();
    test_bad();
    test_fuzz();
    return tap_done();
}
