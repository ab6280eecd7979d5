/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* controller.c - rules: do slurmctld and munge answer? */
#include <string.h>
#include <strings.h>

#include "facts.h"

void look_controller(struct doctor *doctor)
{
    fact_setting(doctor, "AuthType");
    if (!doctor->silent)
        return;
    found(doctor, text(doctor, "scontrol show config: %s", doctor->silent),
          "no job starts or is requeued, and the rules that need Slurm's "
          "configuration could not look",
          "on the machine of slurmctld: systemctl restart slurmctld; if it "
          "fails: journalctl -u slurmctld");
}

/* Without slurmctld, what this machine's slurm.conf has. NULL: nothing. */
static const char *auth_setting(struct doctor *doctor, const char *key)
{
    const char *value = fact_setting(doctor, key);
    if (value || !doctor->silent)
        return value;
    const char *path = fact_variable("SLURM_CONF");
    const char *at =
        fact_file(doctor, path ? path : "/etc/slurm/slurm.conf", NULL);
    for (; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        at += strspn(at, " \t");
        size_t length = strlen(key);
        if (!strncasecmp(at, key, length) && at[length] == '=')
            return text(doctor, "%.*s", (int)strcspn(at + length + 1, " \t\n"),
                        at + length + 1);
    }
    return NULL;
}

/* "socket=/run/munge.sock" of AuthInfo; NULL: munge's default. */
static const char *munge_socket(struct doctor *doctor)
{
    const char *info = auth_setting(doctor, "AuthInfo");
    const char *at = info ? strstr(info, "socket=") : NULL;
    if (!at)
        return NULL;
    at += strlen("socket=");
    return text(doctor, "%.*s", (int)strcspn(at, ","), at);
}

void look_munge(struct doctor *doctor)
{
    const char *argv[] = {"munge", "--no-input", NULL, NULL, NULL};
    const char *out, *type = auth_setting(doctor, "AuthType");
    bool late;
    if (type ? strcmp(type, "auth/munge") != 0 : !doctor->silent)
        return; /* it is not used, or there is no Slurm */
    const char *socket = munge_socket(doctor);
    if (socket) {
        argv[2] = "--socket";
        argv[3] = socket;
    }
    int rc = fact_run(doctor, argv, true, &out, &late);
    if (rc == 0)
        return;
    if (rc < 0 && !late) {
        unseen(doctor, "munge: %s", out);
        return;
    }
    found(doctor,
          text(doctor, "munge --no-input: %s", fact_last_line(doctor, out)),
          "Slurm's commands fail with 'Invalid authentication credential' or "
          "wait, and slurmd of this machine is not heard",
          "systemctl restart munge; if it fails: journalctl -u munge");
}
