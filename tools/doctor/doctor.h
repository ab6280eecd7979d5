/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* doctor.h - one run of dt-doctor: its facts, its findings, and its rules. */
#ifndef DT_DOCTOR_H
#define DT_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct finding {
    const char *id;
    const char *seen;  /* the evidence */
    const char *means; /* the consequence */
    const char *mend;  /* a command, or a line of a configuration */
};

/* What a command printed; see fact_run(). */
struct answer {
    struct answer *next;
    const char *command, *out;
    int rc;
    bool late;
};

struct doctor {
    const char *root; /* files are looked at below it; "": as they are */
    const char *job;  /* with -j */
    struct finding *findings;
    size_t n_findings;
    const char **unseen; /* what could not be looked at, and why */
    size_t n_unseen;
    const char *rule; /* the one that looks now */
    char **texts;     /* of the findings and facts; see text() */
    size_t n_texts;
    struct answer *answers;
    bool asked;         /* Slurm's configuration */
    const char *config; /* its answer */
    const char *silent; /* why slurmctld gave none, if it should have */
};

/* ---- findings.c ---- */

/* Formatted, and kept until doctor_free(). Never NULL. */
const char *text(struct doctor *doctor, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A finding of the rule that looks now. The texts must last. */
void found(struct doctor *doctor, const char *seen, const char *means,
           const char *mend);

/* Something could not be looked at; kept once. */
void unseen(struct doctor *doctor, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Keep memory of malloc() until doctor_free(). NULL if there is none. */
char *keep(struct doctor *doctor, char *memory);

void doctor_free(struct doctor *doctor);

/* ---- output.c ---- */

void output_text(const struct doctor *doctor);
bool output_json(const struct doctor *doctor); /* false: it was not written */

/* ---- rules.c ---- */

/* When a rule looks: with the options of each column of the manual. */
enum scope {
    CLUSTER = 1, /* Slurm's configuration: by default, and with --node */
    NODE = 2,    /* this machine: by default, and with --node */
    USER = 4,    /* the variables of this process: by default */
    JOB = 8,     /* with -j */
};

struct rule {
    const char *id;
    enum scope scope;
    void (*look)(struct doctor *doctor);
};

/* Let the rules of these scopes look. */
void rules_run(struct doctor *doctor, unsigned scopes);

/* controller.c */
void look_controller(struct doctor *doctor);
void look_munge(struct doctor *doctor);
/* plugin.c */
void look_plugin_missing(struct doctor *doctor);
void look_plugin_file(struct doctor *doctor);
void look_plugin_version(struct doctor *doctor);
/* settings.c */
void look_requeue(struct doctor *doctor);
void look_kill_wait(struct doctor *doctor);
void look_grace(struct doctor *doctor);
void look_cancel(struct doctor *doctor);
void look_slurmd_timeout(struct doctor *doctor);
/* node.c */
void look_memlock(struct doctor *doctor);
void look_shm(struct doctor *doctor);
void look_hostname(struct doctor *doctor);
void look_pcie(struct doctor *doctor);
void look_links(struct doctor *doctor);
/* variables.c */
void look_mig(struct doctor *doctor);
void look_nccl(struct doctor *doctor);
void look_ucx(struct doctor *doctor);
void look_devices(struct doctor *doctor);
/* directory.c */
void look_checkpoint_full(struct doctor *doctor);
void look_checkpoint_silent(struct doctor *doctor);
/* job.c */
void look_held(struct doctor *doctor);
void look_job_requeue(struct doctor *doctor);
void look_gpus_per_task(struct doctor *doctor);
/* script.c */
void look_trap(struct doctor *doctor);
void look_untrapped(struct doctor *doctor);

#endif
