/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* machines.c - tests: every machine of tests/topologies gets the placement that
 * its file expects, in lines that begin with `#= `; also read back, listed in
 * another order, renamed, granted in another order, granted by half, and in
 * the formats of others. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources.h"

#define MAX_TASKS 64

/* ---- what a placement looks like, as text ---- */

static const char *or_none(const char *text)
{
    return *text ? text : "-";
}

static void print_notes(FILE *to, uint32_t notes)
{
    static const char *const words[] = {
        "unknown", "shared", "few-cpus", "far-cpus", "split",
        "no-peer", "lost",   "mig",      "lent",     "any-cpus"};
    const char *before = " notes=";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (notes & (1U << i)) {
            fprintf(to, "%s%s", before, words[i]);
            before = ",";
        }
}

static void print_nics(FILE *to, const dt_topo_t *names, const uint8_t *nic,
                       size_t n)
{
    fputs(n ? " nics=" : " nics=-", to);
    for (size_t i = 0; i < n; i++)
        fprintf(to, "%s%s", i ? "," : "", names->nic[nic[i]].name);
}

/* NUMA nodes by the system's numbers, ascending */
static void print_memory(FILE *to, const dt_topo_t *topo,
                         const dt_place_task_t *task)
{
    uint64_t next = 0;
    fputs(" mem=", to);
    for (bool first = true;; first = false) {
        uint64_t id = UINT64_MAX;
        for (uint32_t i = 0; i < topo->nnumas; i++)
            if ((task->numas[i / 64] >> i % 64 & 1) &&
                topo->numa[i].id >= next && topo->numa[i].id < id)
                id = topo->numa[i].id;
        if (id == UINT64_MAX) {
            fputs(first ? "-" : "", to);
            return;
        }
        fprintf(to, "%s%u", first ? "" : ",", (unsigned)id);
        next = id + 1;
    }
}

static void print_task(FILE *to, const dt_topo_t *topo, const dt_topo_t *names,
                       const dt_place_task_t *task)
{
    char cpus[4096];
    fputs(" gpus=", to);
    for (uint32_t i = 0; i < task->nown; i++)
        fprintf(to, "%s%d", i ? "," : "", task->own[i]);
    fprintf(to, " cpus=%s",
            or_none(dt_cpuset_print(&task->cpus, cpus, sizeof(cpus))));
    print_memory(to, topo, task);
    print_nics(to, names, task->nic, task->nnics);
    print_notes(to, task->notes);
}

/* The answer for ntasks, a line per task. NICs are called as in names. */
static void print_placement(FILE *to, const dt_place_request_t *request,
                            const dt_topo_t *names)
{
    static dt_place_task_t task[MAX_TASKS];
    struct dt_error err = {0};
    if (dt_place(request, task, &err) != DT_SUCCESS) {
        fprintf(to, "tasks=%u error\n", request->ntasks);
        return;
    }
    for (uint32_t i = 0; i < request->ntasks; i++) {
        fprintf(to, "tasks=%u task=%u", request->ntasks, i);
        print_task(to, request->topo, names, &task[i]);
        fputc('\n', to);
    }
}

/* ---- a machine and what it expects ---- */

struct machine {
    char file[512], name[256];
    dt_topo_t *topo;
    char *expected; /* the lines after "#= " */
    size_t ncounts; /* of tasks */
    uint32_t ntasks[16];
};

static char *slurp(const char *path)
{
    static char text[1 << 20];
    FILE *from = fopen(path, "r");
    size_t n = from ? fread(text, 1, sizeof(text) - 1, from) : 0;
    text[n] = '\0';
    if (from)
        fclose(from);
    return text;
}

/* Numbers of tasks that are asked for, in order. */
static void note_count(struct machine *m, const char *line)
{
    uint32_t n = 0;
    if (!strncmp(line, "tasks=", 6))
        n = (uint32_t)strtoul(line + 6, NULL, 10);
    if (n == 0 || n > MAX_TASKS || m->ncounts == 16 ||
        (m->ncounts && m->ntasks[m->ncounts - 1] == n))
        return;
    m->ntasks[m->ncounts++] = n;
}

static void read_expected(struct machine *m)
{
    size_t size;
    FILE *to = open_memstream(&m->expected, &size);
    for (char *line = slurp(m->file); line;) {
        char *end = strchr(line, '\n');
        if (!strncmp(line, "#= ", 3) && end) {
            fwrite(line + 3, 1, (size_t)(end + 1 - (line + 3)), to);
            note_count(m, line + 3);
        }
        line = end ? end + 1 : NULL;
    }
    fclose(to);
}

static dt_place_request_t all_of(const dt_topo_t *topo, uint32_t ntasks)
{
    dt_place_request_t request = {
        .topo = topo, .ntasks = ntasks, .ngpus = topo->ngpus};
    for (uint32_t i = 0; i < topo->ngpus; i++)
        request.gpu[i] = (uint8_t)i;
    return request;
}

/* Everything that topo answers, in the form of the expectation. */
static char *answers(const struct machine *m, const dt_topo_t *topo,
                     const dt_topo_t *names)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        uint8_t nic[DT_TOPO_MAX_NICS];
        dt_path_t path;
        size_t n = dt_topo_nearest_nics(topo, i, nic, &path);
        fprintf(to, "gpu=%u", i);
        print_nics(to, names, nic, n);
        fprintf(to, " path=%s\n", dt_path_name(path));
    }
    for (size_t i = 0; i < m->ncounts; i++) {
        dt_place_request_t request = all_of(topo, m->ntasks[i]);
        print_placement(to, &request, names);
    }
    fclose(to);
    return text;
}

/* Show the lines in which two texts differ. */
static void show_difference(const char *got, const char *want)
{
    while (*got || *want) {
        size_t g = strcspn(got, "\n"), w = strcspn(want, "\n");
        if (g != w || memcmp(got, want, g) != 0)
            diag("got    %.*s\n# wanted %.*s", (int)g, got, (int)w, want);
        got += g + (got[g] == '\n');
        want += w + (want[w] == '\n');
    }
}

static void answers_as_expected(const struct machine *m, const dt_topo_t *topo,
                                const dt_topo_t *names, const char *how)
{
    char *got = topo ? answers(m, topo, names) : strdup("not read\n");
    if (!ok(!strcmp(got, m->expected), "%s: %s", m->name, how))
        show_difference(got, m->expected);
    free(got);
}

/* ---- the same machine in another format ---- */

/* As a helper that discovered topo prints it, and a task reads it. */
static void answers_when_read_back(const struct machine *m,
                                   const dt_topo_t *topo, const char *how)
{
    struct dt_error err = {0};
    dt_topo_t *again = NULL;
    char *text = dt_topo_print(topo);
    if (text && dt_topo_read_text(text, strlen(text), &again, &err))
        diag("%s", err.text);
    answers_as_expected(m, again, m->topo, how);
    dt_topo_destroy(again);
    free(text);
}

/* A permutation of n: every stride-th one, beginning with first. */
static void shuffle(uint8_t *order, uint32_t n, uint32_t first)
{
    uint32_t stride = 3;
    while (n > 1 && n % stride == 0)
        stride += 2;
    for (uint32_t i = 0; i < n; i++)
        order[i] = (uint8_t)((first + i * stride) % n);
}

/* The devices of from in another order, as a source might list them. */
static void relist(dt_topo_t *to, const dt_topo_t *from)
{
    uint8_t order[DT_TOPO_MAX_DEVICES];
    uint32_t ngpus = from->ngpus, n = ngpus + from->nnics;
    shuffle(order, ngpus, 1);
    shuffle(order + ngpus, from->nnics, 1);
    for (uint32_t i = 0; i < from->nnics; i++) {
        to->nic[i] = from->nic[order[ngpus + i]];
        order[ngpus + i] = (uint8_t)(order[ngpus + i] + ngpus);
    }
    for (uint32_t i = 0; i < ngpus; i++)
        to->gpu[i] = from->gpu[order[i]];
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            to->pci[a][b] = from->pci[order[a]][order[b]];
            if (a < ngpus && b < ngpus)
                to->links[a][b] = from->links[order[a]][order[b]];
        }
    for (uint32_t i = 0; i < from->nnumas; i++)
        for (uint32_t a = 0; a < ngpus; a++)
            if (from->numa[i].gpu == order[a])
                to->numa[i].gpu = (int16_t)a;
}

/* New bus ids in the old order, and new names in the reverse order. */
static void rename_devices(dt_topo_t *topo)
{
    char last[24] = "";
    uint32_t function = 0;
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        dt_topo_gpu_t *gpu = &topo->gpu[i];
        function += strcmp(last, gpu->bus) != 0; /* not for a partition */
        strcpy(last, gpu->bus);
        snprintf(gpu->bus, sizeof(gpu->bus), "%04x:%02x:1f.7", function / 3,
                 function % 3);
        snprintf(gpu->name, sizeof(gpu->name), "Model %u", 99 - i);
        snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%04u", 9999 - i);
    }
    for (uint32_t i = 0; i < topo->nnics; i++) {
        dt_topo_nic_t *nic = &topo->nic[i];
        snprintf(nic->bus, sizeof(nic->bus), "%04x:01:%02x.0", i / 7, i % 7);
        snprintf(nic->name, sizeof(nic->name), "hca%u", 99 - i);
        snprintf(nic->names, sizeof(nic->names), "hca%u/net%u", 99 - i, i);
    }
}

static void told_differently(const struct machine *m)
{
    static dt_topo_t listed, renamed;
    answers_when_read_back(m, m->topo, "printed and read back");
    listed = *m->topo;
    relist(&listed, m->topo);
    answers_when_read_back(m, &listed, "listed in another order");
    renamed = *m->topo;
    rename_devices(&renamed);
    listed = renamed;
    relist(&listed, &renamed);
    memset(listed.pci, DT_PATH_UNKNOWN, sizeof(listed.pci));
    answers_when_read_back(m, &listed, "renamed, too, and without paths");
}

/* ---- other grants ---- */

static void any_order_of_grant(const struct machine *m)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    const char *want = strstr(m->expected, "tasks=");
    for (size_t i = 0; i < m->ncounts; i++) {
        dt_place_request_t request = all_of(m->topo, m->ntasks[i]);
        shuffle(request.gpu, request.ngpus, 1 + (uint32_t)i);
        print_placement(to, &request, m->topo);
    }
    fclose(to);
    if (!ok(want && !strcmp(text, want), "%s: granted in another order",
            m->name))
        show_difference(text, want ? want : "");
    free(text);
}

static bool is_granted(const dt_place_request_t *request, uint8_t gpu)
{
    return memchr(request->gpu, gpu, request->ngpus) != NULL;
}

/* Each granted GPU is some task's, unless it is said that MIG instances are
 * not, and nothing else is; no CPU but the granted, and some for each task, not
 * shared unless it is said. */
static bool keeps_to_grant(const dt_place_request_t *request,
                           const dt_place_task_t *task)
{
    uint64_t owned = 0;
    uint32_t notes = 0;
    dt_cpuset_t used = {0}, both;
    for (uint32_t t = 0; t < request->ntasks; t++) {
        for (uint32_t i = 0; i < task[t].nown; i++) {
            if (!is_granted(request, task[t].own[i]))
                return false;
            owned |= (uint64_t)1 << task[t].own[i];
        }
        for (uint32_t i = 0; i < task[t].nvisible; i++)
            if (!is_granted(request, task[t].visible[i]))
                return false;
        dt_cpuset_and(&both, &task[t].cpus, &request->cpus);
        if (!dt_cpuset_equal(&both, &task[t].cpus) ||
            !dt_cpuset_count(&task[t].cpus) || !task[t].nown)
            return false;
        dt_cpuset_and(&both, &task[t].cpus, &used);
        if (dt_cpuset_count(&both) && !(task[t].notes & DT_PLACE_NOTE_FEW_CPUS))
            return false;
        dt_cpuset_or(&used, &used, &task[t].cpus);
        notes |= task[t].notes;
    }
    return notes & DT_PLACE_NOTE_MIG ||
           (uint32_t)__builtin_popcountll(owned) == request->ngpus;
}

/* Every second GPU, every second core, or the CPUs of one package only. */
static dt_place_request_t half_of(const dt_topo_t *topo, uint32_t ntasks,
                                  int package)
{
    dt_place_request_t request = {.topo = topo, .ntasks = ntasks};
    for (uint32_t i = 0; i < topo->ngpus; i += 2)
        request.gpu[request.ngpus++] = (uint8_t)i;
    for (uint32_t c = 0; c < topo->ncpus; c++)
        if (topo->cpu[c].present &&
            (package < 0 ? topo->cpu[c].core % 2 == 0
                         : topo->cpu[c].package == package))
            dt_cpuset_add(&request.cpus, c);
    return request;
}

static void half_a_grant(const struct machine *m)
{
    static dt_place_task_t task[MAX_TASKS];
    struct dt_error err = {0};
    bool kept = true;
    for (int package = -1; package < (int)m->topo->npackages; package++)
        for (size_t i = 0; i < m->ncounts; i++) {
            dt_place_request_t request =
                half_of(m->topo, m->ntasks[i], package);
            if (!dt_cpuset_count(&request.cpus))
                continue; /* packages are numbered 0 and 8, say */
            bool here = dt_place(&request, task, &err) == DT_SUCCESS &&
                        keeps_to_grant(&request, task);
            if (!here)
                diag("%s: %u tasks, package %d: %s", m->name, m->ntasks[i],
                     package, err.text);
            kept = kept && here;
        }
    ok(kept, "%s: half the GPUs and half the CPUs, and no more", m->name);
}

/* ---- all of them ---- */

static void test_machine(const struct machine *m)
{
    ok(m->ncounts > 0, "%s: expects something", m->name);
    answers_as_expected(m, m->topo, m->topo, "as expected");
    told_differently(m);
    any_order_of_grant(m);
    if (m->topo->ngpus)
        half_a_grant(m);
}

/* NAME.topo, which has the expectation for NAME.*.xml and NAME.*.txt. */
static struct machine load_machine(const char *file)
{
    struct machine m = {0};
    struct dt_error err = {0};
    snprintf(m.file, sizeof(m.file), "%s/%s", TOPOLOGIES, file);
    snprintf(m.name, sizeof(m.name), "%.*s", (int)strcspn(file, "."), file);
    if (dt_topo_load(m.file, &m.topo, &err) != DT_SUCCESS)
        diag("%s: %s", file, err.text);
    read_expected(&m);
    return m;
}

static void free_machine(struct machine *m)
{
    dt_topo_destroy(m->topo);
    free(m->expected);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), e = strlen(end);
    return n > e && !strcmp(text + n - e, end);
}

static void test_foreign(const char *file)
{
    char path[512], native[300];
    struct dt_error err = {0};
    dt_topo_t *topo = NULL;
    snprintf(native, sizeof(native), "%.*s.topo", (int)strcspn(file, "."),
             file);
    struct machine m = load_machine(native);
    snprintf(path, sizeof(path), "%s/%s", TOPOLOGIES, file);
    if (dt_topo_load(path, &topo, &err) != DT_SUCCESS)
        diag("%s: %s", file, err.text);
    if (ok(m.topo != NULL, "%s: is like %s", file, native))
        answers_as_expected(&m, topo, topo, file);
    dt_topo_destroy(topo);
    free_machine(&m);
}

int main(void)
{
    struct dirent **entry;
    int n = scandir(TOPOLOGIES, &entry, NULL, alphasort), nmachines = 0;
    for (int i = 0; i < n; i++) {
        const char *file = entry[i]->d_name;
        if (ends_with(file, ".topo")) {
            struct machine m = load_machine(file);
            nmachines++;
            if (ok(m.topo != NULL, "%s: is read", m.name))
                test_machine(&m);
            free_machine(&m);
        } else if (ends_with(file, ".xml") || ends_with(file, ".txt")) {
            test_foreign(file);
        }
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    ok(nmachines >= 16, "%d machines", nmachines);
    return tap_done();
}
