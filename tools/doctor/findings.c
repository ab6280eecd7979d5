/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* findings.c - what was found, what could not be looked at, and their texts. */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more in an array of n. */
static void *grow(void *array, size_t n, size_t size)
{
    return n % 16 ? array : realloc(array, (n + 16) * size);
}

char *keep(struct doctor *doctor, char *memory)
{
    char **texts =
        memory ? grow(doctor->texts, doctor->n_texts, sizeof(*texts)) : NULL;
    if (!texts) {
        free(memory);
        return NULL;
    }
    doctor->texts = texts;
    return texts[doctor->n_texts++] = memory;
}

static const char *format(struct doctor *doctor, const char *fmt, va_list args)
{
    char *made = NULL;
    if (vasprintf(&made, fmt, args) < 0)
        made = NULL;
    made = keep(doctor, made);
    return made ? made : "(out of memory)";
}

const char *text(struct doctor *doctor, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *made = format(doctor, fmt, args);
    va_end(args);
    return made;
}

void found(struct doctor *doctor, const char *seen, const char *means,
           const char *mend)
{
    struct finding *findings =
        grow(doctor->findings, doctor->n_findings, sizeof(*findings));
    if (!findings)
        return;
    doctor->findings = findings;
    findings[doctor->n_findings++] =
        (struct finding){doctor->rule, seen, means, mend};
}

void unseen(struct doctor *doctor, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *made = format(doctor, fmt, args);
    va_end(args);
    for (size_t i = 0; i < doctor->n_unseen; i++)
        if (!strcmp(doctor->unseen[i], made))
            return;
    const char **all = grow(doctor->unseen, doctor->n_unseen, sizeof(*all));
    if (!all)
        return;
    doctor->unseen = all;
    all[doctor->n_unseen++] = made;
}

void doctor_free(struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->n_texts; i++)
        free(doctor->texts[i]);
    free(doctor->texts);
    free(doctor->findings);
    free(doctor->unseen);
}
