/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* script.c - rules: a batch script that does not see the signals of Slurm. */
#include <ctype.h>
#include <string.h>

#include "facts.h"

/* What of a script the rules look at; 0: no such line. */
struct script {
    unsigned trap;       /* the first line that traps a signal */
    unsigned foreground; /* that runs a long program, and waits for it */
    unsigned signal;     /* #SBATCH --signal=B:... */
    bool waits;          /* a line says wait */
    bool replaced;       /* a line says exec: a program gets the signals */
    const char *program; /* of the line foreground */
    const char *name;    /* of the signal, with its time */
};

static bool is_word_part(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Is word in line, and no part of a longer one? */
static bool has_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = line; (at = strstr(at, word)) != NULL; at++)
        if ((at == line || !is_word_part(at[-1])) && !is_word_part(at[length]))
            return true;
    return false;
}

static const char *first_word(struct doctor *doctor, const char *line)
{
    return text(doctor, "%.*s", (int)strcspn(line, " \t;&|<>"), line);
}

/* trap 'save' USR1; but no trap '' USR1, nor one of EXIT alone. */
static bool traps(const char *line)
{
    static const char *const names[] = {
        "USR1",    "USR2",    "TERM",    "HUP",    "INT",
        "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGHUP", "SIGINT"};
    if (strncmp(line, "trap", 4) != 0 || !isblank((unsigned char)line[4]))
        return false;
    line += 4 + strspn(line + 4, " \t");
    if (!strncmp(line, "''", 2) || !strncmp(line, "\"\"", 2) ||
        (*line == '-' && isblank((unsigned char)line[1])))
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (has_word(line, names[i]))
            return true;
    return false;
}

static bool is_long_program(const char *word)
{
    static const char *const programs[] = {"srun",   "mpirun",   "mpiexec",
                                           "python", "torchrun", "python3"};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        if (!strcmp(word, programs[i]))
            return true;
    return false;
}

/* "exec PROGRAM", but not "exec 2>log". */
static bool replaces(const char *line)
{
    if (strncmp(line, "exec", 4) != 0 || !isblank((unsigned char)line[4]))
        return false;
    line += 4 + strspn(line + 4, " \t");
    return *line && !strchr("0123456789<>&{", *line);
}

/* "... &", but not "... && x". */
static bool in_background(const char *line)
{
    for (const char *at = line; (at = strchr(at, '&')) != NULL; at++) {
        if (at[1] == '&')
            at++;
        else if (at[1] != '>' && (at == line || !strchr(">|", at[-1])))
            return true;
    }
    return false;
}

/* --signal=B:USR1@60, or --signal B:USR1@60 */
static const char *signal_of(struct doctor *doctor, const char *line)
{
    const char *at = strstr(line, "--signal");
    if (!at || !strchr("= \t", at[8]) || !at[8])
        return NULL;
    at += 9;
    return strncmp(at, "B:", 2) && strncmp(at, "RB:", 3) &&
                   strncmp(at, "BR:", 3)
               ? NULL
               : first_word(doctor, strchr(at, ':') + 1);
}

static void read_line(struct doctor *doctor, struct script *script,
                      const char *line, unsigned number)
{
    if (!strncmp(line, "#SBATCH", 7) && !script->signal &&
        (script->name = signal_of(doctor, line)) != NULL)
        script->signal = number;
    line += strspn(line, " \t");
    if (*line == '#')
        return;
    const char *word = first_word(doctor, line);
    if (!script->trap && traps(line))
        script->trap = number;
    script->waits |= has_word(line, "wait");
    script->replaced |= replaces(line);
    if (!script->foreground && is_long_program(word) && !in_background(line)) {
        script->foreground = number;
        script->program = word;
    }
}

/* Does a shell run it? */
static bool is_shell(struct doctor *doctor, const char *all)
{
    const char *line = text(doctor, "%.*s", (int)strcspn(all, "\n"), all);
    return !strncmp(line, "#!", 2) &&
           (strstr(line, "/bash") || strstr(line, "/sh") ||
            strstr(line, "/dash") || has_word(line, "bash"));
}

/* False: it is no shell's, or Slurm does not show it, and unseen() has why. */
static bool read_script(struct doctor *doctor, struct script *script)
{
    const char *argv[] = {"scontrol",  "write", "batch_script",
                          doctor->job, "-",     NULL};
    const char *out;
    unsigned number = 0;
    bool late;
    *script = (struct script){0};
    int rc = fact_run(doctor, argv, true, &out, &late);
    if (rc != 0) {
        unseen(doctor, "the batch script of job %s: %s", doctor->job,
               fact_last_line(doctor, out));
        return false;
    }
    if (!is_shell(doctor, out))
        return false;
    while (*out) { /* a line that ends with a backslash goes on */
        size_t length = 0;
        unsigned first = ++number;
        for (;; length++, number++) {
            length += strcspn(out + length, "\n");
            if (!out[length] || !length || out[length - 1] != '\\')
                break;
        }
        read_line(doctor, script, text(doctor, "%.*s", (int)length, out),
                  first);
        out += length + (out[length] == '\n');
    }
    return true;
}

void look_trap(struct doctor *doctor)
{
    struct script script;
    if (!read_script(doctor, &script) || !script.trap || script.waits ||
        !script.foreground || script.replaced)
        return;
    found(doctor,
          text(doctor,
               "job %s: line %u of its script traps a signal, and line %u runs "
               "%s in the foreground",
               doctor->job, script.trap, script.foreground, script.program),
          "the shell runs the trap only when that program has ended: the "
          "signal has no effect",
          text(doctor,
               "#SBATCH --dt-requeue, and no trap; or: %s ... & pid=$!; while "
               "kill -0 $pid 2>/dev/null; do wait $pid; done",
               script.program));
}

void look_untrapped(struct doctor *doctor)
{
    struct script script;
    if (!read_script(doctor, &script) || !script.signal || script.trap ||
        script.replaced)
        return;
    found(doctor,
          text(doctor,
               "job %s: line %u of its script asks for --signal=B:%s, and no "
               "line traps it",
               doctor->job, script.signal, script.name),
          "the signal ends the batch script, and with it the job, before "
          "anything is saved",
          text(doctor,
               "#SBATCH --dt-requeue in place of --signal; or a trap of the "
               "signal, with the program in the background and wait"));
}
