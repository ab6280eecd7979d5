/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cache.c - the topology of this node, kept while it is the same machine.
 *
 * The file is our text format after one comment line, the key: the boot, the
 * PCI devices, the version of this program, and a checksum of what follows. A
 * user's own file holds for one cgroup only, as it may hide devices. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "node.h"

#define DEVICES "/sys/bus/pci/devices"
#define SYSTEM  "/run/slurm-dt"
#define NAME    "topology"

enum { KEY = 256, MAX_CACHE = 16 << 20 };

/* A directory that may have the cache: the system's, or our own. */
struct place {
    char path[512];
    bool own;
};

/* ---- the key ---- */

static const uint64_t fnv_start = 0xcbf29ce484222325U;

static uint64_t fnv(uint64_t hash, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3U;
    return hash;
}

/* The beginning of a small file, "" if it cannot be read. */
static void slurp(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : dt_file_read(fd, text, size - 1, 0);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
}

/* Its first line. */
static void slurp_line(const char *path, char *text, size_t size)
{
    slurp(path, text, size);
    text[strcspn(text, "\n")] = '\0';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static uint64_t hash_devices(void)
{
    struct dirent **entry;
    uint64_t hash = fnv_start;
    int n = scandir(DEVICES, &entry, NULL, by_name);
    for (int i = 0; i < n; i++) {
        static const char *const files[] = {"class", "vendor"};
        const char *name = entry[i]->d_name;
        char path[512], text[64];
        hash = fnv(hash, name, strlen(name) + 1);
        for (size_t k = 0; k < 2 && name[0] != '.'; k++) {
            snprintf(path, sizeof(path), DEVICES "/%s/%s", name, files[k]);
            slurp_line(path, text, sizeof(text));
            hash = fnv(hash, text, strlen(text) + 1);
        }
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return hash;
}

/* The key as far as it does not depend on the text; false if the machine
 * cannot be told from another. */
static bool make_key(char key[KEY], const struct place *place, uint64_t devices)
{
    char boot[64], cgroup[4096] = "";
    slurp_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    if (place->own)
        slurp("/proc/self/cgroup", cgroup, sizeof(cgroup));
    snprintf(key, KEY,
             "# dt-topo cache " PACKAGE_VERSION
             " boot=%s devices=%016llx cgroup=%016llx text=",
             boot, (unsigned long long)devices,
             (unsigned long long)fnv(fnv_start, cgroup, strlen(cgroup)));
    return *boot;
}

/* ---- places ---- */

static size_t find_places(const char *directory, struct place place[2])
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (directory) {
        place[0].own = true;
        return (size_t)snprintf(place[0].path, sizeof(place[0].path), "%s",
                                directory) < sizeof(place[0].path);
    }
    snprintf(place[0].path, sizeof(place[0].path), SYSTEM);
    place[0].own = false;
    place[1].own = true;
    return 1 + ((size_t)snprintf(place[1].path, sizeof(place[1].path),
                                 "%s/slurm-dt-%u",
                                 base && *base == '/' ? base : "/tmp",
                                 (unsigned)geteuid()) < sizeof(place[1].path));
}

static bool safe(const struct place *place, const struct stat *stat)
{
    return place->own ? stat->st_uid == geteuid() && !(stat->st_mode & 077)
                      : stat->st_uid == 0 && !(stat->st_mode & 022);
}

/* The directory, open, or -1 if it is not there or others can write it. */
static int open_place(FILE *notes, const struct place *place, bool make)
{
    struct stat stat;
    if (make && (place->own || geteuid() == 0))
        mkdir(place->path, place->own ? 0700 : 0755);
    int dir =
        open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) {
        if (!make && errno != ENOENT && errno != EACCES)
            note(notes, "cache not used: %s: expected a directory",
                 place->path);
        return -1;
    }
    if (fstat(dir, &stat) || !safe(place, &stat)) {
        if (!make)
            note(notes,
                 "cache not used: %s: expected a directory that only %s write",
                 place->path, place->own ? "you can read and" : "root can");
        close(dir);
        return -1;
    }
    return dir;
}

/* ---- reading ---- */

/* All bytes of fd; free() them. NULL: it cannot be read. */
static char *read_all(int fd, size_t size)
{
    char *text = size <= MAX_CACHE ? calloc(1, size + 1) : NULL;
    if (text)
        dt_file_read(fd, text, size, 0); /* what is cut off is not intact */
    return text;
}

static bool intact(const char *text, const char *key)
{
    size_t len = strlen(key);
    char *end;
    if (strncmp(text, key, len))
        return false;
    unsigned long long sum = strtoull(text + len, &end, 16);
    return *end == '\n' && fnv(fnv_start, end + 1, strlen(end + 1)) == sum;
}

static bool read_place(int dir, const struct place *place, const char *key,
                       dt_topo_t **topo)
{
    struct stat stat;
    struct dt_error ignored;
    bool got = false;
    int fd = openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && safe(place, &stat)) {
        char *text = read_all(fd, (size_t)stat.st_size);
        got = text && intact(text, key) &&
              load_fd(fd, topo, &ignored) == DT_SUCCESS;
        free(text);
    }
    close(fd);
    return got;
}

/* ---- writing ---- */

static bool write_place(int dir, const struct place *place, const char *key,
                        const char *text)
{
    char name[64];
    snprintf(name, sizeof(name), NAME ".%ld", (long)getpid());
    unlinkat(dir, name, 0);
    int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
               place->own ? 0600 : 0644);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    fprintf(out, "%s%016llx\n%s", key,
            (unsigned long long)fnv(fnv_start, text, strlen(text)), text);
    bool written = !ferror(out);
    if (!fclose(out) && written && !renameat(dir, name, dir, NAME))
        return true;
    unlinkat(dir, name, 0);
    return false;
}

/* Did the GPU driver show every GPU? The devices of a cgroup can hide some,
 * which others see. */
static bool shows_all(const dt_topo_t *topo)
{
    bool asked = strstr(topo->source, "NVML") != NULL;
    for (uint32_t i = 0; i < topo->ngpus && asked; i++)
        if (topo->gpu[i].vendor == DT_VENDOR_NVIDIA && !topo->gpu[i].lost &&
            !*topo->gpu[i].uuid)
            return false;
    return true;
}

/* That the cache cannot be written is no error: the next call asks anew. */
static void store(FILE *notes, const struct place *place, size_t nplaces,
                  uint64_t devices, const dt_topo_t *topo)
{
    char *text = dt_topo_print(topo);
    bool stored = !text;
    for (size_t i = 0; i < nplaces && !stored; i++) {
        char key[KEY];
        if (!place[i].own && (geteuid() != 0 || !shows_all(topo)))
            continue;
        int dir = open_place(notes, &place[i], true);
        if (dir < 0)
            continue;
        stored = make_key(key, &place[i], devices) &&
                 write_place(dir, &place[i], key, text);
        close(dir);
    }
    free(text);
}

dt_result_t cache_get(FILE *notes, const char *directory, bool refresh,
                      dt_topo_t **topo, struct dt_error *err)
{
    struct place place[2];
    size_t nplaces = find_places(directory, place);
    uint64_t devices = hash_devices();
    bool got = false, whole;
    for (size_t i = 0; i < nplaces && !got; i++) {
        char key[KEY];
        int dir = open_place(notes, &place[i], false);
        if (dir < 0)
            continue;
        got = !refresh && make_key(key, &place[i], devices) &&
              read_place(dir, &place[i], key, topo);
        close(dir);
    }
    if (got)
        return DT_SUCCESS;
    dt_result_t rc = probe(notes, topo, &whole, err);
    if (rc == DT_SUCCESS && whole)
        store(notes, place, nplaces, devices, *topo);
    return rc;
}
