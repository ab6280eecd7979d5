/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* value.c - values of options that are no names of types. */
#include "value.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

enum { MAX_NUMBER = 1000000000, MAX_NODES = 255, MAX_SIGNAL = 64 };

static bool take_number(const char **at, uint64_t *number)
{
    return dt_number_scan(at, 10, MAX_NUMBER, number);
}

static bool take_word(const char **at, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

bool dt_value_directory(const char *text, struct dt_option *option)
{
    (void)option;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return false;
    /* room for srun's working directory is checked there */
    return strlen(text) < DT_OPTION_TEXT;
}

/* With days the first number after them is hours; without, the last of two or
 * three is seconds, and one alone is minutes. */
bool dt_value_time(const char *text, struct dt_option *option)
{
    uint64_t days = 0, part[3] = {0};
    const char *at = text;
    size_t n = 0;
    (void)option;
    if (!take_number(&at, &part[n++]))
        return false;
    if (*at && strchr("smhd", *at) && !at[1])
        return part[0] && part[0] <= 366 * 86400;
    bool has_days = take_word(&at, "-");
    if (has_days) {
        days = part[0];
        n = 0;
        if (!take_number(&at, &part[n++]))
            return false;
    }
    while (n < 3 && take_word(&at, ":"))
        if (!take_number(&at, &part[n++]))
            return false;
    if (!has_days && n < 3) { /* no hours */
        part[2] = part[1];
        part[1] = part[0];
        part[0] = 0;
    }
    uint64_t seconds = 86400 * days + 3600 * part[0] + 60 * part[1] + part[2];
    return !*at && seconds && seconds <= 366 * 86400;
}

bool dt_value_redundancy(const char *text, struct dt_option *option)
{
    uint64_t k, m;
    (void)option;
    if (take_word(&text, "xor:"))
        return take_number(&text, &k) && !*text && k >= 2 && k <= MAX_NODES;
    return take_word(&text, "rs:") && take_number(&text, &k) &&
           take_word(&text, "+") && take_number(&text, &m) && !*text && k &&
           m && k + m <= MAX_NODES;
}

bool dt_value_keep(const char *text, struct dt_option *option)
{
    uint64_t n, k;
    (void)option;
    if (!take_number(&text, &n) || !n)
        return false;
    if (!*text)
        return true;
    return take_word(&text, ",every:") && take_number(&text, &k) && k && !*text;
}

/* As srun's --signal, in any case. */
static int find_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},
                 {"ABRT", SIGABRT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
                 {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CONT", SIGCONT},
                 {"TSTP", SIGTSTP}, {"URG", SIGURG},   {"WINCH", SIGWINCH},
                 {"XCPU", SIGXCPU}, {"IO", SIGIO},     {"PWR", SIGPWR}};
    if (!strncasecmp(name, "SIG", 3))
        name += 3;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcasecmp(name, known[i].name))
            return known[i].number;
    return 0;
}

bool dt_value_signal(const char *text, struct dt_option *option)
{
    uint64_t number = (uint64_t)find_signal(text);
    if (!number && (!take_number(&text, &number) || *text))
        return false;
    option->policy = (int)number;
    return number && number <= MAX_SIGNAL && number != SIGKILL &&
           number != SIGSTOP;
}

bool dt_value_requeue(const char *text, struct dt_option *option)
{
    static const char *const cause[DT_NCAPS] = {
        "", "preempt=", "nodefail=", "timeout=", "error="};
    uint64_t number, cap[DT_NCAPS] = {DT_CAP_DEFAULT};
    bool given[DT_NCAPS] = {false};
    do {
        size_t i = DT_NCAPS - 1; /* the empty word begins every text */
        while (i && !take_word(&text, cause[i]))
            i--;
        if (given[i] || !take_number(&text, &number))
            return false;
        given[i] = true;
        cap[i] = number;
    } while (take_word(&text, ","));
    for (size_t i = 0; i < DT_NCAPS; i++) {
        if (!given[i] && i != DT_CAP_MAX && i != DT_CAP_ERROR)
            cap[i] = cap[DT_CAP_MAX];
        option->cap[i] = (uint32_t)cap[i];
    }
    return !*text;
}
