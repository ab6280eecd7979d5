/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rules.c - the table of rules. */
#include "doctor.h"

/* In the order in which a reader wants them: what disturbs all jobs first. */
static const struct rule rules[] = {
    {"controller-silent", CLUSTER, look_controller},
    {"munge-silent", CLUSTER, look_munge},
    {"plugin-missing", CLUSTER, look_plugin_missing},
    {"plugin-file", CLUSTER, look_plugin_file},
    {"plugin-version", CLUSTER, look_plugin_version},
    {"requeue-off", CLUSTER, look_requeue},
    {"kill-wait-short", CLUSTER, look_kill_wait},
    {"preempt-no-grace", CLUSTER, look_grace},
    {"preempt-cancel", CLUSTER, look_cancel},
    {"slurmd-timeout-long", CLUSTER, look_slurmd_timeout},
    {"memlock-low", NODE, look_memlock},
    {"shm-small", NODE, look_shm},
    {"hostname-loopback", NODE, look_hostname},
    {"pcie-narrow", NODE, look_pcie},
    {"link-down", NODE, look_links},
    {"mig-several", USER, look_mig},
    {"nccl-contradiction", USER, look_nccl},
    {"ucx-contradiction", USER, look_ucx},
    {"device-unknown", USER, look_devices},
    {"checkpoint-full", USER, look_checkpoint_full},
    {"checkpoint-silent", USER, look_checkpoint_silent},
    {"job-held", JOB, look_held},
    {"job-requeue-off", JOB, look_job_requeue},
    {"job-gpus-per-task", JOB, look_gpus_per_task},
    {"script-trap-waits", JOB, look_trap},
    {"script-signal-untrapped", JOB, look_untrapped},
};

void rules_run(struct doctor *doctor, unsigned scopes)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].scope & scopes) {
            doctor->rule = rules[i].id;
            rules[i].look(doctor);
        }
}
