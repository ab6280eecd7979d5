/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* npy_name.c - the name of a tensor as that of a file. */
#include "files/npy_name.h"

#include <stdio.h>
#include <string.h>

#define SUFFIX ".npy"

dt_result_t npy_name_of(const char *tensor, char file[NAME_MAX + 1],
                        struct dt_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t at = 0;
    for (const char *c = tensor; *c; c++) {
        bool stays = strchr(plain, *c) && (c > tensor || *c != '.');
        if (at + (stays ? 1 : 3) + strlen(SUFFIX) > NAME_MAX)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "tensor %s: its name is too long for a file",
                                tensor);
        if (stays)
            file[at++] = *c;
        else
            at += (size_t)sprintf(file + at, "%%%02X", (unsigned char)*c);
    }
    strcpy(file + at, SUFFIX);
    return DT_SUCCESS;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool npy_name_parse(const char *path, char *tensor, size_t room)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t len = strlen(base), at = 0;
    if (len > strlen(SUFFIX) &&
        strcmp(base + len - strlen(SUFFIX), SUFFIX) == 0)
        len -= strlen(SUFFIX);
    for (size_t i = 0; i < len; i++) {
        if (at + 1 >= room)
            return false;
        char c = base[i];
        if (c == '%' && i + 2 < len && digit(base[i + 1]) >= 0 &&
            digit(base[i + 2]) >= 0) {
            c = (char)(digit(base[i + 1]) * 16 + digit(base[i + 2]));
            i += 2;
        }
        tensor[at++] = c;
    }
    tensor[at] = '\0';
    return true;
}
