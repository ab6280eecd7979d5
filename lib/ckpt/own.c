/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* own.c - what the ranks of this node write in the save under way. */
#include "ckpt/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define END ".safetensors"

static dt_result_t failed(const char *what, struct dt_error *err)
{
    int why = errno;
    return dt_error_set(err, dt_file_result(why), "%s: %s", what,
                        strerror(why));
}

/* ---- what there is ---- */

static bool is_data(const char *name)
{
    size_t len = strlen(name);
    return strncmp(name, "rank-", 5) == 0 && len > strlen(END) &&
           strcmp(name + len - strlen(END), END) == 0 &&
           len < sizeof(((struct dt_manifest_file *)NULL)->name);
}

static int add_file(struct dt_own *own, const char *name)
{
    struct dt_manifest *m = &own->disk.manifest;
    struct stat st;
    if (fstatat(own->disk.fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return -1;
    void *more = realloc(m->file, (m->nfiles + 1) * sizeof(*m->file));
    if (!more)
        return -1;
    m->file = more;
    m->file[m->nfiles] = (struct dt_manifest_file){.size = (size_t)st.st_size};
    strcpy(m->file[m->nfiles++].name, name);
    return 0;
}

static dt_result_t list_files(struct dt_own *own, struct dt_error *err)
{
    int fd = openat(own->disk.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    dt_result_t rc = DT_SUCCESS;
    if (!stream) {
        rc = failed("the directory", err);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == DT_SUCCESS && (errno = 0, entry = readdir(stream)))
        if (is_data(entry->d_name) && add_file(own, entry->d_name))
            rc = failed(entry->d_name, err);
    if (rc == DT_SUCCESS && errno)
        rc = failed("the directory", err);
    closedir(stream);
    return rc;
}

/* Is it all that its rank wrote? What has not changed is in older files, which
 * have the rank's name and their step. */
static bool is_whole(const struct dt_manifest *m, const char *name)
{
    size_t stem = strcspn(name, ".");
    if (strcmp(name + stem, END) != 0)
        return false;
    for (size_t f = 0; f < m->nfiles; f++)
        if (strcmp(m->file[f].name, name) != 0 &&
            strncmp(m->file[f].name, name, stem) == 0 &&
            m->file[f].name[stem] == '.')
            return false;
    return true;
}

static dt_result_t map_file(struct dt_own *own, int memoryfd, size_t f,
                            struct dt_error *err)
{
    struct dt_manifest_file *file = &own->disk.manifest.file[f];
    int fd = dt_file_open(memoryfd, file->name, &file->size);
    if (fd < 0)
        return failed(file->name, err);
    void *map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, fd, 0);
    dt_result_t rc = map == MAP_FAILED ? failed(file->name, err) : DT_SUCCESS;
    if (rc == DT_SUCCESS)
        own->map[f] = map;
    close(fd);
    return rc;
}

/* ---- all of it ---- */

dt_result_t dt_own_open(struct dt_own *own, int dirfd, int memoryfd,
                        struct dt_error *err)
{
    const struct dt_manifest *m = &own->disk.manifest;
    *own = (struct dt_own){.disk.fd = dirfd};
    own->reader = (struct dt_reader){.source = &own->disk, .fd = -1};
    dt_result_t rc = list_files(own, err);
    if (rc != DT_SUCCESS)
        return rc;
    own->map = calloc(m->nfiles + 1, sizeof(*own->map));
    if (!own->map)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++)
        if (memoryfd >= 0 && is_whole(m, m->file[f].name))
            rc = map_file(own, memoryfd, f, err);
    return rc == DT_SUCCESS ? dt_span_init(&own->span, m, 0, err) : rc;
}

static const char *in_memory(const struct dt_own *own,
                             const struct dt_read *run)
{
    const char *map = own->map[run->file];
    return map ? map + run->offset : NULL;
}

dt_result_t dt_own_read(struct dt_own *own, unsigned char *to, size_t from,
                        size_t len, struct dt_error *err)
{
    size_t at = from;
    struct dt_read run;
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS &&
           dt_span_next(&own->span, &at, from + len, &run)) {
        const char *here = in_memory(own, &run);
        unsigned char *part = to + (at - from - run.len);
        if (here)
            memcpy(part, here, run.len);
        else
            rc = dt_reader_read(&own->reader, run.file, run.offset, run.len,
                                part, err);
    }
    memset(to + (at - from), 0, len - (at - from));
    return rc;
}

const void *dt_own_look(const struct dt_own *own, size_t from, size_t len)
{
    size_t at = from;
    struct dt_read run;
    return dt_span_next(&own->span, &at, from + len, &run) && run.len == len
               ? in_memory(own, &run)
               : NULL;
}

void dt_own_close(struct dt_own *own)
{
    if (!own->reader.source)
        return;
    dt_reader_close(&own->reader);
    for (size_t f = 0; own->map && f < own->disk.manifest.nfiles; f++)
        if (own->map[f])
            munmap(own->map[f], own->disk.manifest.file[f].size);
    dt_span_clear(&own->span);
    free(own->disk.manifest.file);
    free(own->map);
    *own = (struct dt_own){0};
}
