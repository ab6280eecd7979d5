/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* option.c - the value of --dt-gpus: [verbose,]<type>. */
#include "option.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum dt_option_type type;
    enum dt_place_policy policy;
} types[] = {
    {"auto", DT_OPTION_GPUS, DT_PLACE_AUTO},
    {"rotate", DT_OPTION_GPUS, DT_PLACE_ROTATE},
    {"single", DT_OPTION_GPUS, DT_PLACE_SINGLE},
    {"none", DT_OPTION_NONE, DT_PLACE_AUTO},
    {"help", DT_OPTION_HELP, DT_PLACE_AUTO},
};
enum { NTYPES = sizeof(types) / sizeof(types[0]) };

static bool parse_type(const char *text, struct dt_option *option)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (!strcmp(text, types[i].name)) {
            option->type = types[i].type;
            option->policy = types[i].policy;
            return true;
        }
    return false;
}

/* Digits only, no sign, no blank. Too large a number saturates. */
static bool parse_count(const char *text, size_t *count)
{
    *count = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (*count <= DT_PLACE_MAX_GPUS)
            *count = *count * 10 + (size_t)(*text - '0');
    }
    return true;
}

dt_result_t dt_option_parse(const char *text, const char *source,
                            struct dt_option *option, struct dt_error *err)
{
    static const char verbose[] = "verbose";
    struct dt_option parsed = {.type = DT_OPTION_GPUS};
    /* sbatch and salloc hand an option without a value on to the sruns of the
     * job as "" or "(null)", depending on the C library */
    if (!text || !*text || !strcmp(text, "(null)"))
        text = "auto";
    const char *type = text;
    if (!strncmp(text, verbose, sizeof(verbose) - 1)) {
        const char *rest = text + sizeof(verbose) - 1;
        if (!*rest || *rest == ',') {
            parsed.verbose = true;
            type = *rest ? rest + 1 : "auto";
        }
    }
    if (!parse_type(type, &parsed)) {
        if (!parse_count(type, &parsed.count))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%s=%.64s: expected " DT_OPTION_EXPECTED,
                                source, text);
        if (!parsed.count || parsed.count > DT_PLACE_MAX_GPUS)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%s=%.64s: expected 1 to %d GPUs per task",
                                source, text, DT_PLACE_MAX_GPUS);
        parsed.policy = DT_PLACE_COUNT;
    }
    *option = parsed;
    return DT_SUCCESS;
}

void dt_option_print(const struct dt_option *option, char *text, size_t size)
{
    if (option->type == DT_OPTION_GPUS && option->policy == DT_PLACE_COUNT) {
        snprintf(text, size, "--dt-gpus=%zu", option->count);
        return;
    }
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i].type == option->type &&
            types[i].policy == option->policy) {
            snprintf(text, size, "--dt-gpus=%s", types[i].name);
            return;
        }
    snprintf(text, size, "--dt-gpus");
}

const char *dt_option_help(void)
{
    return "--dt-gpus=[verbose,]<type> gives each task its own GPUs among "
           "those Slurm granted:\n"
           "  auto    it sees all of the node, device index i is one of local "
           "rank i's\n"
           "          (default; as granted where the node has more tasks than "
           "GPUs)\n"
           "  rotate  it sees all of the node, its own first\n"
           "  single  it sees its own only\n"
           "  <n>     it sees its own only, n of them\n"
           "  none    as if the option had not been given\n"
           "  help    this list\n"
           "verbose, prints a table of who got what.\n";
}
