/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_data.c - a dataset is whole, or one line says what is wrong. */
#include "fashion_data.h"
#include "../tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char dir[] = "/tmp/dt-idx.XXXXXX";

static const char *path_of(const char *what)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/t10k-%s-ubyte.gz", dir, what);
    return path;
}

/* A file of header words and then size bytes, each the value fill. */
static void write_idx(const char *what, const uint32_t *header, size_t words,
                      size_t size, uint8_t fill)
{
    gzFile file = gzopen(path_of(what), "wb1");
    uint8_t *bytes = malloc(size + 1);
    if (!file || !bytes)
        abort();
    for (size_t i = 0; i < words; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            gzputc(file, (int)(header[i] >> shift & 255));
    memset(bytes, fill, size + 1);
    gzwrite(file, bytes, (unsigned)size);
    gzclose(file);
    free(bytes);
}

static void write_good(void)
{
    write_idx("images-idx3", (uint32_t[]){0x803, 5, 28, 28}, 4, 5 * 784, 7);
    write_idx("labels-idx1", (uint32_t[]){0x801, 5}, 2, 5, 9);
}

static void refuses(const char *name, const char *want)
{
    struct dataset set = {.count = 77};
    char why[4608] = "";
    int rc = dataset_load(&set, dir, "t10k", why, sizeof why);
    if (!ok(rc && set.count == 77 && strstr(why, want) && strstr(why, dir) &&
                strstr(why, "--data") && !strchr(why, '\n'),
            "%s", name))
        diag("got \"%s\", wanted \"%s\"", why, want);
    if (!rc)
        dataset_destroy(&set);
    write_good();
}

/* Cut bytes off the end, 0: all of them. */
/* Cut bytes off the end, 0: all. */
static void cut(const char *what, int off_end)
{
    struct stat st;
    if (stat(path_of(what), &st) ||
        truncate(path_of(what), off_end ? st.st_size - off_end : 0))
        abort();
}

static void flip(const char *what, long at)
{
    FILE *file = fopen(path_of(what), "r+");
    if (!file || fseek(file, at, at < 0 ? SEEK_END : SEEK_SET))
        abort();
    int c = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(c ^ 0x10, file);
    fclose(file);
}

static void test_bad_files(void)
{
    unlink(path_of("images-idx3"));
    refuses("a missing file", "No such file");
    unlink(path_of("labels-idx1"));
    refuses("missing labels", "No such file");
    cut("images-idx3", 0);
    refuses("an empty file", "ends too early");
    cut("images-idx3", 8); /* the whole checksum of gzip */
    refuses("a truncated file", "ends too early");
    cut("images-idx3", 20);
    refuses("a more truncated file", "ends too early");
    flip("images-idx3", -6);
    refuses("a wrong checksum", "damaged");
    write_idx("images-idx3", (uint32_t[]){0x803, 6, 28, 28}, 4, 5 * 784, 7);
    refuses("fewer images than the header says", "ends too early");
    write_idx("images-idx3", (uint32_t[]){0x803, 4, 28, 28}, 4, 5 * 784, 7);
    refuses("more images than the header says", "more bytes");
    write_idx("images-idx3", (uint32_t[]){0x801, 5}, 2, 5, 9);
    refuses("labels in the place of images", "0x00000801, expected 0x00000803");
    write_idx("images-idx3", (uint32_t[]){0x803, 5, 28, 32}, 4, 5 * 896, 7);
    refuses("images of another size", "28 x 32");
    write_idx("images-idx3", (uint32_t[]){0x803, 0xffffffff, 28, 28}, 4, 9, 7);
    refuses("a number of samples beyond belief", "4294967295 samples");
    write_idx("images-idx3", (uint32_t[]){0x803, 0, 28, 28}, 4, 0, 7);
    refuses("no samples", "0 samples");
    write_idx("labels-idx1", (uint32_t[]){0x801, 4}, 2, 4, 9);
    refuses("fewer labels than images", "4 labels for 5 images");
    write_idx("labels-idx1", (uint32_t[]){0x801, 5}, 2, 5, 10);
    refuses("a label out of range", "label 0 is 10");
}

int main(void)
{
    struct dataset set;
    char why[4608] = "";
    if (!mkdtemp(dir))
        abort();
    write_good();
    int rc = dataset_load(&set, dir, "t10k", why, sizeof why);
    if (ok(rc == 0 && set.count == 5, "five samples are read")) {
        ok(set.images[0] == 7 && set.images[5 * 784 - 1] == 7 &&
               set.labels[4] == 9,
           "as they were written");
        dataset_destroy(&set);
    }
    test_bad_files();
    unlink(path_of("images-idx3"));
    unlink(path_of("labels-idx1"));
    rmdir(dir);
    return tap_done();
}
