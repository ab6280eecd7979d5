/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* streams.h - the standard streams of a command line tool. */
#ifndef DT_TOOLS_COMMON_STREAMS_H
#define DT_TOOLS_COMMON_STREAMS_H

#include <stdbool.h>
#include <stdio.h>

/* The name of the tool, which its main.c defines. */
extern const char program[];

/* Print one line to out, after removing the progress line. What is not
 * printable in it is escaped, as dt_printable() does: it may quote the files of
 * others. At most 8191 bytes before that. */
void print_line(FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, "PROGRAM: ...". A line on stderr comes after what stdout holds. */
void note(FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Open /dev/null for each standard stream that is closed, so that no file of
 * the tool gets its descriptor; reading and writing them still fail. */
void streams_fill(void);

/* Flush stdout. Returns false, with a note, if anything written to it was lost.
 */
bool streams_flush(void);

#endif
