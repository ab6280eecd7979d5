/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.c - the options as srun, sbatch and salloc read them. */
#include "spank_dt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elastic.h"

void dt_client_init(struct spank_dt *dt, enum dt_client client)
{
    for (int id = 0; id < DT_NOPTIONS; id++) {
        const struct dt_option_name *name = &dt_option_name[id];
        const char *value = getenv(name->variable[client]);
        if (value && *value && setenv(name->inherited, value, 1) == 0)
            dt->input[id] = name->variable[client];
    }
}

void dt_client_done(struct spank_dt *dt)
{
    for (int id = 0; id < DT_NOPTIONS; id++) {
        if (dt->input[id])
            unsetenv(dt_option_name[id].inherited);
        dt->input[id] = NULL;
    }
}

int dt_client_option(struct spank_dt *dt, enum dt_option_id id,
                     const char *text)
{
    const struct dt_option_name *name = &dt_option_name[id];
    /* An inherited value is the string of the variable itself. */
    bool inherited = text && text == getenv(name->inherited);
    char source[64];
    snprintf(source, sizeof(source), "--%s", name->option);
    struct dt_option option;
    struct dt_error err;
    if (dt_option_parse(id, text,
                        inherited && dt->input[id] ? dt->input[id] : source,
                        &option, &err) != DT_SUCCESS) {
        slurm_error("dt: %s", err.text);
        return -1;
    }
    if (option.type == DT_OPTION_HELP) {
        fputs(dt_option_help(id), stdout);
        fflush(stdout);
        /* As srun does for --mpi=list: a callback cannot end srun with 0.
         * Nothing is allocated yet. */
        _exit(0);
    }
    if (option.type != DT_OPTION_NONE && *dt->bad_argument.text) {
        slurm_error("dt: %s", dt->bad_argument.text);
        return -1;
    }
    dt->given[id] = true;
    dt->typed[id] = !inherited;
    if (!inherited) {
        free(dt->part[id]);
        dt->part[id] = strdup(text ? text : "");
    }
    dt->option[id] = option;
    dt_allocator_option(dt);
    dt_elastic_option(dt);
    return 0;
}

/* ---- the command line, before Slurm reads it ---- */

static bool append(char ***words, size_t n, const char *word)
{
    char **longer = realloc(*words, (n + 2) * sizeof(*longer));
    if (!longer)
        return false;
    *words = longer;
    longer[n] = strdup(word);
    longer[n + 1] = NULL;
    return longer[n];
}

char **dt_client_words(size_t *n)
{
    char **words = NULL, *word = NULL;
    size_t size = 0;
    bool whole = true;
    FILE *line = fopen("/proc/self/cmdline", "re");
    *n = 0;
    while (line && whole && getdelim(&word, &size, '\0', line) > 0) {
        whole = append(&words, *n, word);
        *n += whole;
    }
    free(word);
    if (line)
        fclose(line);
    if (whole)
        return words;
    dt_client_free_words(words);
    return NULL;
}

void dt_client_free_words(char **words)
{
    for (char **word = words; word && *word; word++)
        free(*word);
    free(words);
}

static enum dt_typed typed_as(const char *value)
{
    return value && !strcmp(value, "none") ? DT_TYPED_NONE : DT_TYPED_VALUE;
}

/* May the next word be the value of this one? As of --nodes and -N, but not of
 * --nodes=2, -N2 and 2. */
static bool may_need_value(const char *word)
{
    return word[0] == '-' && (word[1] == '-' ? !strchr(word, '=') : !word[2]);
}

static bool is_program(char **words, size_t i)
{
    return !strcmp(words[i], "--") ||
           (words[i][0] != '-' && (i == 1 || !may_need_value(words[i - 1])));
}

enum dt_typed dt_client_typed(enum dt_option_id id)
{
    const struct dt_option_name *name = &dt_option_name[id];
    size_t length = strlen(name->option), n;
    enum dt_typed typed = DT_TYPED_NOT;
    char **words = dt_client_words(&n);
    for (size_t i = 1; i < n && !is_program(words, i); i++) {
        const char *end = words[i] + 2 + length;
        if (strncmp(words[i], "--", 2) != 0 ||
            strncmp(words[i] + 2, name->option, length) != 0)
            continue;
        if (*end == '=')
            typed = typed_as(end + 1);
        else if (!*end)
            typed = typed_as(name->has_arg == 1 ? words[i + 1] : NULL);
    }
    dt_client_free_words(words);
    return typed;
}
