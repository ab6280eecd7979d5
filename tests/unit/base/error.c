/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* error.c - error texts at the edge of libdt: one line, printable. */
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tap.h"
#include "base/api.h"

#define EVIL  "a\x1b]2;t\a\nb\x7f\xc2\x9b\x9b\xc3\xa9"
#define SHOWN "a\\x1b]2;t\\x07\\x0ab\\x7f\\xc2\\x9b\\x9b\xc3\xa9"

static void last_error(void)
{
    struct dt_error err;
    dt_error_set(&err, DT_ERR_IO, "%s", EVIL);
    ok(dt_api_return(DT_ERR_IO, &err) == DT_ERR_IO &&
           strcmp(dt_last_error(), SHOWN) == 0,
       "dt_last_error is printable: %s", dt_last_error());
    memset(err.text, '\x1b', sizeof(err.text) - 1);
    err.text[sizeof(err.text) - 1] = '\0';
    dt_api_return(DT_ERR_IO, &err);
    ok(strlen(dt_last_error()) / 4 == (sizeof(err.text) - 1) / 4,
       "and cut to its room");
    dt_api_return(DT_ERR_IO, NULL);
    ok(strcmp(dt_last_error(), dt_strerror(DT_ERR_IO)) == 0, "without a text");
}

/* What dt_report prints about text. */
static const char *report(const char *text)
{
    static char got[8192];
    int saved = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    size_t len = 0;
    if (file && saved >= 0) {
        dup2(fileno(file), STDERR_FILENO);
        dt_report("%s is odd", text);
        fflush(stderr);
        dup2(saved, STDERR_FILENO);
        rewind(file);
        len = fread(got, 1, sizeof(got) - 1, file);
        fclose(file);
        close(saved);
    }
    got[len] = '\0';
    return got;
}

static void reports(void)
{
    char longer[5000];
    ok(strcmp(report(EVIL), "dt: " SHOWN " is odd\n") == 0,
       "a report is one printable line");
    memset(longer, '\x1b', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    const char *got = report(longer);
    ok(strlen(got) == strlen("dt: \n") + 4 * 1023 &&
           got[strlen(got) - 1] == '\n',
       "also of what is too long: %zu bytes", strlen(got));
}

int main(void)
{
    last_error();
    reports();
    return tap_done();
}
