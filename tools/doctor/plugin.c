/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plugin.c - rules: does Slurm load the plugin spank_dt.so? */
#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "library.h"
#include "facts.h"

enum { INCLUDES = 8 }; /* deep */

#define PLUGIN "spank_dt.so"

/* One line of plugstack.conf that loads a plugin. */
struct entry {
    const char *conf, *path; /* the path is absolute */
    bool required;
};

typedef void each_entry(struct doctor *doctor, const struct entry *entry,
                        void *data);

/* Cut the next word off *at; "" at the end of the line. */
static const char *next_word(struct doctor *doctor, const char **at)
{
    *at += strspn(*at, " \t");
    size_t length = strcspn(*at, " \t\r");
    const char *word = text(doctor, "%.*s", (int)length, *at);
    *at += length;
    return word;
}

/* Slurm looks for a relative name in its PluginDir. */
static const char *whole_path(struct doctor *doctor, const char *name)
{
    const char *folders = fact_setting(doctor, "PluginDir");
    while (*name != '/' && folders && *folders) {
        size_t length = strcspn(folders, ":");
        const char *path = text(doctor, "%.*s/%s", (int)length, folders, name);
        if (fact_exists(doctor, path))
            return path;
        folders += length + (folders[length] == ':');
    }
    return name;
}

static bool read_stack(struct doctor *doctor, const char *path, int deep,
                       each_entry *each, void *data);

static void read_line(struct doctor *doctor, const char *conf, const char *line,
                      int deep, each_entry *each, void *data)
{
    const char *what = next_word(doctor, &line);
    const char *name = next_word(doctor, &line);
    bool required = !strcmp(what, "required");
    if (!strcmp(what, "include") && *name && deep < INCLUDES) {
        if (*name != '/') {
            const char *slash = strrchr(conf, '/');
            name = text(doctor, "%.*s/%s", (int)(slash ? slash - conf : 0),
                        conf, name);
        }
        const char *const *more = fact_glob(doctor, name);
        for (; *more; more++)
            read_stack(doctor, *more, deep + 1, each, data);
    } else if ((required || !strcmp(what, "optional")) && *name) {
        const struct entry entry = {conf, whole_path(doctor, name), required};
        each(doctor, &entry, data);
    }
}

/* False, with errno: the file cannot be read. */
static bool read_stack(struct doctor *doctor, const char *path, int deep,
                       each_entry *each, void *data)
{
    const char *at = fact_file(doctor, path, NULL);
    if (!at)
        return false;
    while (*at) {
        size_t length = strcspn(at, "\n");
        read_line(doctor, path,
                  text(doctor, "%.*s", (int)strcspn(at, "#\n"), at), deep, each,
                  data);
        at += length + (at[length] == '\n');
    }
    return true;
}

/* Where it is unset, Slurm reads the one beside slurm.conf. NULL: no Slurm. */
static const char *stack_path(struct doctor *doctor)
{
    const char *path = fact_setting(doctor, "PlugStackConfig");
    const char *conf = fact_setting(doctor, "SLURM_CONF");
    const char *slash = conf ? strrchr(conf, '/') : NULL;
    return path || !slash
               ? path
               : text(doctor, "%.*s/plugstack.conf", (int)(slash - conf), conf);
}

/* False: no Slurm, or its file exists and cannot be read. */
static bool each_plugin(struct doctor *doctor, each_entry *each, void *data,
                        const char **conf)
{
    *conf = stack_path(doctor);
    if (!*conf)
        return false;
    if (read_stack(doctor, *conf, 0, each, data) || errno == ENOENT)
        return true;
    unseen(doctor, "%s: %s", *conf, strerror(errno));
    return false;
}

static bool is_ours(const struct entry *entry)
{
    const char *slash = strrchr(entry->path, '/');
    return !strcmp(slash ? slash + 1 : entry->path, PLUGIN);
}

static void note_ours(struct doctor *doctor, const struct entry *entry,
                      void *data)
{
    (void)doctor;
    *(bool *)data |= is_ours(entry);
}

void look_plugin_missing(struct doctor *doctor)
{
    bool ours = false;
    const char *conf;
    if (!each_plugin(doctor, note_ours, &ours, &conf) || ours)
        return;
    found(doctor,
          fact_exists(doctor, conf)
              ? text(doctor, "%s has no line for " PLUGIN, conf)
              : text(doctor, "%s does not exist", conf),
          "srun, sbatch and salloc do not know --dt-gpus and the other "
          "options of slurm-dt",
          text(doctor,
               "echo 'optional " DOCTOR_PLUGIN "' >> %s  (on all "
               "machines)",
               conf));
}

static void check_file(struct doctor *doctor, const struct entry *entry,
                       void *data)
{
    (void)data;
    if (fact_exists(doctor, entry->path))
        return;
    found(doctor,
          text(doctor, "%s: %s %s: %s", entry->conf,
               entry->required ? "required" : "optional", entry->path,
               strerror(errno)),
          entry->required
              ? "srun and slurmd refuse to start a step"
              : "Slurm leaves the plugin out without an error, and its options "
                "do not exist",
          is_ours(entry)
              ? text(doctor,
                     "make install on this machine, or in %s the path of the "
                     "plugin: optional " DOCTOR_PLUGIN,
                     entry->conf)
              : text(doctor, "install that plugin, or remove its line from %s",
                     entry->conf));
}

void look_plugin_file(struct doctor *doctor)
{
    const char *conf;
    each_plugin(doctor, check_file, NULL, &conf);
}

/* ---- of which release of Slurm ---- */

/* "slurm-wlm 22.05.8", "slurm 24.11.0-0rc1" */
static bool read_release(const char *out, uint32_t *release)
{
    uint64_t major, minor;
    const char *at = out + strcspn(out, " ");
    at += *at == ' ';
    if (!dt_number_scan(&at, 10, 255, &major) || *at++ != '.' ||
        !dt_number_scan(&at, 10, 255, &minor))
        return false;
    *release = (uint32_t)(major << 8 | minor);
    return true;
}

static void check_release(struct doctor *doctor, const struct entry *entry,
                          void *data)
{
    const uint32_t *slurm = data;
    uint32_t version;
    size_t size;
    if (!is_ours(entry) || !fact_exists(doctor, entry->path))
        return;
    const char *library = fact_file(doctor, entry->path, &size);
    if (!library ||
        !library_number(library, size, "plugin_version", &version)) {
        unseen(doctor, "for which Slurm %s was built", entry->path);
        return;
    }
    uint32_t release = version >> 8; /* Slurm compares no more of a plugin */
    if (release == *slurm)
        return;
    found(doctor,
          text(doctor, "%s was built for Slurm %u.%02u, srun is of %u.%02u",
               entry->path, release >> 8, release & 255, *slurm >> 8,
               *slurm & 255),
          entry->required ? "Slurm refuses the plugin, and every step fails"
                          : "Slurm leaves the plugin out, and its options do "
                            "not exist",
          text(doctor,
               "in the sources of slurm-dt, with the headers of Slurm "
               "%u.%02u: ./bootstrap build, then make -C build install",
               *slurm >> 8, *slurm & 255));
}

void look_plugin_version(struct doctor *doctor)
{
    static const char *const argv[] = {"srun", "--version", NULL};
    const char *out, *conf;
    uint32_t release;
    bool late;
    if (!stack_path(doctor))
        return;
    if (fact_run(doctor, argv, false, &out, &late) != 0 ||
        !read_release(out, &release)) {
        unseen(doctor, "Slurm's release: srun --version does not print it");
        return;
    }
    each_plugin(doctor, check_release, &release, &conf);
}
