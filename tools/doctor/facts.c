/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* facts.c - what rules look at: files below a root, and commands with a limit.
 */
#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { MOST = 4 << 20 }; /* bytes of a file */

const char *fact_file(struct doctor *doctor, const char *path, size_t *size)
{
    size_t stated, room = 65536, used = 0;
    char *all = NULL;
    int fd = dt_file_open_any(
        AT_FDCWD, text(doctor, "%s%s", doctor->root, path), &stated);
    if (fd < 0)
        return NULL;
    for (;;) { /* the files of /proc and /sys do not state their size */
        char *more = realloc(all, room + 1);
        ssize_t n =
            more ? dt_file_read(fd, more + used, room - used, (off_t)used) : -1;
        all = more ? more : all;
        if (n < 0) {
            free(all);
            close(fd);
            return NULL;
        }
        used += (size_t)n;
        if (used < room || room >= MOST)
            break;
        room *= 2;
    }
    close(fd);
    all[used] = '\0';
    if (size)
        *size = used;
    return keep(doctor, all);
}

const char *fact_line(struct doctor *doctor, const char *fmt, ...)
{
    char path[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    const char *all = fact_file(doctor, path, NULL);
    return all ? text(doctor, "%.*s", (int)strcspn(all, "\n"), all) : "";
}

bool fact_exists(struct doctor *doctor, const char *path)
{
    return access(text(doctor, "%s%s", doctor->root, path), F_OK) == 0;
}

const char *fact_link(struct doctor *doctor, const char *path)
{
    char target[4096];
    ssize_t n = readlink(text(doctor, "%s%s", doctor->root, path), target,
                         sizeof(target));
    return n > 0 ? text(doctor, "%.*s", (int)n, target) : "";
}

/* The root is a name, whatever characters it has. */
static const char *pattern_below(struct doctor *doctor, const char *pattern)
{
    char plain[8192];
    size_t n = 0;
    for (const char *at = doctor->root; *at && n < sizeof(plain) - 2; at++) {
        if (strchr("*?[\\", *at))
            plain[n++] = '\\';
        plain[n++] = *at;
    }
    plain[n] = '\0';
    return text(doctor, "%s%s", plain, pattern);
}

const char *const *fact_glob(struct doctor *doctor, const char *pattern)
{
    static const char *const none[] = {NULL};
    glob_t matches;
    if (glob(pattern_below(doctor, pattern), 0, NULL, &matches) != 0)
        return none;
    const char **paths = calloc(matches.gl_pathc + 1, sizeof(*paths));
    for (size_t i = 0; paths && i < matches.gl_pathc; i++)
        paths[i] =
            text(doctor, "%s", matches.gl_pathv[i] + strlen(doctor->root));
    globfree(&matches);
    paths = (const char **)(void *)keep(doctor, (char *)paths);
    return paths ? paths : none;
}

static void run(struct doctor *doctor, const char *const argv[], bool both,
                struct answer *answer)
{
    char why[WHY];
    char *output = malloc(OUTPUT);
    answer->rc = -1;
    answer->out = "out of memory";
    if (!output)
        return;
    answer->rc =
        slurm_run(argv, deadline_in(COMMAND_SECONDS), both, output, why);
    answer->late = answer->rc < 0 && strstr(why, "in time");
    answer->out = text(doctor, "%s", answer->rc < 0 ? why : output);
    free(output);
}

/* The arguments with blanks between them. */
static const char *join(struct doctor *doctor, const char *const argv[])
{
    const char *line = argv[0];
    for (size_t i = 1; argv[i]; i++)
        line = text(doctor, "%s %s", line, argv[i]);
    return line;
}

int fact_run(struct doctor *doctor, const char *const argv[], bool both,
             const char **out, bool *late)
{
    const char *command = join(doctor, argv);
    struct answer *answer = doctor->answers;
    while (answer && strcmp(answer->command, command) != 0)
        answer = answer->next;
    if (!answer) {
        answer = (void *)keep(doctor, calloc(1, sizeof(*answer)));
        if (!answer) {
            *late = false;
            *out = "out of memory";
            return -1;
        }
        run(doctor, argv, both, answer);
        answer->command = command;
        answer->next = doctor->answers;
        doctor->answers = answer;
    }
    *out = answer->out;
    *late = answer->late;
    return answer->rc;
}

const char *fact_last_line(struct doctor *doctor, const char *out)
{
    size_t end = strlen(out);
    while (end && strchr(" \n", out[end - 1]))
        end--;
    size_t begin = end;
    while (begin && out[begin - 1] != '\n')
        begin--;
    const char *line = text(doctor, "%.*s", (int)(end - begin), out + begin);
    const char *error = strstr(line, "error: ");
    return error ? error + strlen("error: ") : line;
}

static void ask(struct doctor *doctor)
{
    static const char *const argv[] = {"scontrol", "show", "config", NULL};
    const char *out;
    bool late;
    doctor->asked = true;
    int rc = fact_run(doctor, argv, true, &out, &late);
    if (rc == 0)
        doctor->config = out;
    else if (rc < 0 && !late)
        unseen(doctor, "Slurm's configuration: %s", out);
    else if (strstr(out, "configuration source"))
        unseen(doctor, "Slurm's configuration: this machine has no slurm.conf");
    else
        doctor->silent = fact_last_line(doctor, out);
    if (doctor->silent)
        unseen(doctor, "Slurm's configuration: slurmctld does not give it");
}

const char *fact_setting(struct doctor *doctor, const char *key)
{
    if (!doctor->asked)
        ask(doctor);
    if (!doctor->config)
        return NULL;
    const char *line = text(doctor, "\n%s ", key);
    const char *at = strstr(doctor->config, line);
    if (!at)
        return NULL;
    at++;
    size_t length = strcspn(at, "\n");
    const char *value = memchr(at, '=', length);
    if (!value)
        return NULL;
    value++;
    value += strspn(value, " ");
    if (!strncmp(value, "(null)", 6))
        return NULL;
    return text(doctor, "%.*s", (int)(at + length - value), value);
}

const char *fact_value(struct doctor *doctor, const char *record,
                       const char *key)
{
    size_t length = strlen(key);
    for (const char *at = record; (at = strstr(at, key)) != NULL; at++)
        if ((at == record || at[-1] == ' ' || at[-1] == '\n') &&
            at[length] == '=') {
            at += length + 1;
            return text(doctor, "%.*s", (int)strcspn(at, " \n"), at);
        }
    return "";
}

const char *fact_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
