/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* printable.c - foreign text: what stays, what is escaped, and the bounds. */
#include "base/printable.h"

#include <stdlib.h>
#include <string.h>

#include "../tap.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {" plain ~ C:\\dir 100%n", " plain ~ C:\\dir 100%n"},
    {"two\nlines\r\n", "two\\x0alines\\x0d\\x0a"},
    {"\ttab\a\b\x7f", "\\x09tab\\x07\\x08\\x7f"},
    {"\x1b[31mred\x1b]0;title\a", "\\x1b[31mred\\x1b]0;title\\x07"},
    /* valid UTF-8, of two to four bytes */
    {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82",
     "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82"},
    {"\xc2\xa0", "\xc2\xa0"},
    /* C1, as UTF-8 and as a single byte: CSI */
    {"\xc2\x9b"
     "2J",
     "\\xc2\\x9b2J"},
    {"\x9b"
     "2J",
     "\\x9b2J"},
    {"\xc2\x85", "\\xc2\\x85"},
    /* line separator, right-to-left override, byte order mark, tag */
    {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},
    {"\xe2\x80\xae", "\\xe2\\x80\\xae"},
    {"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},
    {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"},
    /* cut short, overlong, a surrogate, too large, no lead byte */
    {"\xc3", "\\xc3"},
    {"\xe2\x82", "\\xe2\\x82"},
    {"\xf0\x9f\x99", "\\xf0\\x9f\\x99"},
    {"\xe2\x82\n", "\\xe2\\x82\\x0a"},
    {"\xe2\xc3\xa4", "\\xe2\xc3\xa4"},
    {"\xc0\x8a", "\\xc0\\x8a"},
    {"\xe0\x80\x8a", "\\xe0\\x80\\x8a"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
    {"\xff\xfe\xf8\x80", "\\xff\\xfe\\xf8\\x80"},
};

static void test_cases(void)
{
    char out[64];
    int wrong = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t length = dt_printable(out, sizeof(out), cases[i].text);
        if (strcmp(out, cases[i].shown) != 0 || length != strlen(out)) {
            diag("case %zu: %s, %zu", i, out, length);
            wrong++;
        }
    }
    ok(wrong == 0, "text stays, and what controls a terminal is escaped");
}

/* In memory of just that size, so that ASan sees a write behind it. */
static bool fits(const char *text, size_t size, size_t whole)
{
    char full[64], *out = malloc(size ? size : 1);
    if (!out)
        return false;
    dt_printable(full, sizeof(full), text);
    *out = 'u';
    bool good = dt_printable(out, size, text) == whole;
    if (size == 0)
        good = good && *out == 'u';
    else
        good =
            good && strlen(out) < size && strncmp(out, full, strlen(out)) == 0;
    free(out);
    return good;
}

static void test_bounds(void)
{
    static const char text[] = "a\n\xe2\x82\xac"
                               "b";
    char out[16];
    int wrong = 0;
    for (size_t size = 0; size < 16; size++)
        wrong += !fits(text, size, 9);
    ok(wrong == 0, "every size: terminated, and the whole length returned");
    ok(dt_printable(NULL, 0, text) == 9, "no room at all: only the length");
    dt_printable(out, 5, text);
    ok(strcmp(out, "a") == 0, "no escape is cut in two");
    dt_printable(out, 8, text);
    ok(strcmp(out, "a\\x0a") == 0,
       "no character is cut in two, and nothing follows a gap");
}

static void test_every_byte(void)
{
    int wrong = 0;
    for (int byte = 1; byte < 256; byte++) {
        char out[8], text[2] = {(char)byte, '\0'};
        size_t length = dt_printable(out, sizeof(out), text);
        bool stays = byte >= 0x20 && byte < 0x7f;
        wrong += length != (stays ? 1U : 4U) || (stays && *out != byte);
        for (const char *c = out; *c; c++)
            wrong += *c < 0x20 || *c == 0x7f;
    }
    ok(wrong == 0, "alone, only printable ASCII stays as it is");
}

int main(void)
{
    test_cases();
    test_bounds();
    test_every_byte();
    return tap_done();
}
