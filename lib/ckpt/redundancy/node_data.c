/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node_data.c - the files that the ranks of this node write in the current
 * save. */
#include "ckpt/redundancy/node_data.h"

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

/* ---- the files ---- */

static bool is_data(const char *name)
{
    size_t len = strlen(name);
    return strncmp(name, "rank-", 5) == 0 && len > strlen(END) &&
           strcmp(name + len - strlen(END), END) == 0 &&
           len < sizeof(((struct dt_manifest_file *)NULL)->name);
}

static int add_file(struct dt_node_data *data, const char *name)
{
    struct dt_manifest *m = &data->disk.manifest;
    struct stat st;
    if (fstatat(data->disk.fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return -1;
    void *more = realloc(m->file, (m->nfiles + 1) * sizeof(*m->file));
    if (!more)
        return -1;
    m->file = more;
    m->file[m->nfiles] = (struct dt_manifest_file){.size = (size_t)st.st_size};
    strcpy(m->file[m->nfiles++].name, name);
    return 0;
}

static dt_result_t list_files(struct dt_node_data *data, struct dt_error *err)
{
    int fd = openat(data->disk.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    dt_result_t rc = DT_SUCCESS;
    if (!stream) {
        rc = dt_failed(err, "the directory");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == DT_SUCCESS && (errno = 0, entry = readdir(stream)))
        if (is_data(entry->d_name) && add_file(data, entry->d_name))
            rc = dt_failed(err, entry->d_name);
    if (rc == DT_SUCCESS && errno)
        rc = dt_failed(err, "the directory");
    closedir(stream);
    return rc;
}

/* Does the file have everything of its rank? What has not changed is in older
 * files, whose names begin with the rank's and have their step. */
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

static dt_result_t map_file(struct dt_node_data *data, int memoryfd, size_t f,
                            struct dt_error *err)
{
    struct dt_manifest_file *file = &data->disk.manifest.file[f];
    int fd = dt_file_open(memoryfd, file->name, &file->size);
    if (fd < 0)
        return dt_failed(err, file->name);
    void *map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, fd, 0);
    dt_result_t rc =
        map == MAP_FAILED ? dt_failed(err, file->name) : DT_SUCCESS;
    if (rc == DT_SUCCESS)
        data->map[f] = map;
    close(fd);
    return rc;
}

/* ---- their bytes ---- */

dt_result_t dt_node_data_open(struct dt_node_data *data, int dirfd,
                              int memoryfd, struct dt_error *err)
{
    const struct dt_manifest *m = &data->disk.manifest;
    *data = (struct dt_node_data){.disk.fd = dirfd};
    data->reader = (struct dt_reader){.source = &data->disk, .fd = -1};
    dt_result_t rc = list_files(data, err);
    if (rc != DT_SUCCESS)
        return rc;
    data->map = calloc(m->nfiles + 1, sizeof(*data->map));
    if (!data->map)
        return dt_no_memory(err);
    for (size_t f = 0; f < m->nfiles && rc == DT_SUCCESS; f++)
        if (memoryfd >= 0 && is_whole(m, m->file[f].name))
            rc = map_file(data, memoryfd, f, err);
    return rc == DT_SUCCESS ? dt_span_init(&data->span, m, 0, err) : rc;
}

static const char *in_memory(const struct dt_node_data *data,
                             const struct dt_span_run *run)
{
    const char *map = data->map[run->file];
    return map ? map + run->offset : NULL;
}

dt_result_t dt_node_data_read(struct dt_node_data *data, unsigned char *to,
                              size_t from, size_t len, struct dt_error *err)
{
    size_t at = from;
    struct dt_span_run run;
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS &&
           dt_span_next(&data->span, &at, from + len, &run)) {
        const char *here = in_memory(data, &run);
        unsigned char *part = to + (at - from - run.len);
        if (here)
            memcpy(part, here, run.len);
        else
            rc = dt_reader_read(&data->reader, run.file, run.offset, run.len,
                                part, err);
    }
    memset(to + (at - from), 0, len - (at - from));
    return rc;
}

const void *dt_node_data_at(const struct dt_node_data *data, size_t from,
                            size_t len)
{
    size_t at = from;
    struct dt_span_run run;
    return dt_span_next(&data->span, &at, from + len, &run) && run.len == len
               ? in_memory(data, &run)
               : NULL;
}

void dt_node_data_close(struct dt_node_data *data)
{
    if (!data->reader.source)
        return;
    dt_reader_close(&data->reader);
    for (size_t f = 0; data->map && f < data->disk.manifest.nfiles; f++)
        if (data->map[f])
            munmap(data->map[f], data->disk.manifest.file[f].size);
    dt_span_clear(&data->span);
    free(data->disk.manifest.file);
    free(data->map);
    *data = (struct dt_node_data){0};
}
