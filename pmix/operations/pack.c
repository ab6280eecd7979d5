/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pack.c - PMIx's types as bytes for the servers of other nodes, and back. */
#include "operations/pack.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* Values may hold arrays of attributes, which have values: up to this depth. */
#define DEPTH_MAX 16

/* The length that stands for a string that is NULL. */
#define NO_STRING UINT32_MAX

/* The directives of an attribute that are sent: not those on memory. */
#define DIRECTIVES (PMIX_INFO_REQD | PMIX_INFO_QUALIFIER)

enum form {
    BOOL,
    NUMBER,
    TIME,
    STRING,
    BYTES,
    PROC,
    PINFO,
    ENVAR,
    VALUE,
    INFO
};

/* The size of each type in memory, and the least bytes that it is packed into.
 */
static const struct type {
    pmix_data_type_t type;
    enum form form;
    size_t size, least;
} types[] = {
    {PMIX_BOOL, BOOL, sizeof(bool), 1},
    {PMIX_BYTE, NUMBER, 1, 1},
    {PMIX_STRING, STRING, sizeof(char *), 4},
    {PMIX_SIZE, NUMBER, sizeof(size_t), sizeof(size_t)},
    {PMIX_PID, NUMBER, sizeof(pid_t), sizeof(pid_t)},
    {PMIX_INT, NUMBER, sizeof(int), sizeof(int)},
    {PMIX_INT8, NUMBER, 1, 1},
    {PMIX_INT16, NUMBER, 2, 2},
    {PMIX_INT32, NUMBER, 4, 4},
    {PMIX_INT64, NUMBER, 8, 8},
    {PMIX_UINT, NUMBER, sizeof(unsigned), sizeof(unsigned)},
    {PMIX_UINT8, NUMBER, 1, 1},
    {PMIX_UINT16, NUMBER, 2, 2},
    {PMIX_UINT32, NUMBER, 4, 4},
    {PMIX_UINT64, NUMBER, 8, 8},
    {PMIX_FLOAT, NUMBER, sizeof(float), sizeof(float)},
    {PMIX_DOUBLE, NUMBER, sizeof(double), sizeof(double)},
    {PMIX_TIMEVAL, TIME, sizeof(struct timeval), 16},
    {PMIX_TIME, NUMBER, sizeof(time_t), sizeof(time_t)},
    {PMIX_STATUS, NUMBER, sizeof(pmix_status_t), sizeof(pmix_status_t)},
    {PMIX_VALUE, VALUE, sizeof(pmix_value_t), 2},
    {PMIX_PROC, PROC, sizeof(pmix_proc_t), 8},
    {PMIX_INFO, INFO, sizeof(pmix_info_t), 10},
    {PMIX_BYTE_OBJECT, BYTES, sizeof(pmix_byte_object_t), 4},
    {PMIX_PERSIST, NUMBER, 1, 1},
    {PMIX_SCOPE, NUMBER, 1, 1},
    {PMIX_DATA_RANGE, NUMBER, 1, 1},
    {PMIX_PROC_STATE, NUMBER, 1, 1},
    {PMIX_PROC_INFO, PINFO, sizeof(pmix_proc_info_t), 25},
    {PMIX_PROC_RANK, NUMBER, 4, 4},
    {PMIX_COMPRESSED_STRING, BYTES, sizeof(pmix_byte_object_t), 4},
    {PMIX_ALLOC_DIRECTIVE, NUMBER, 1, 1},
    {PMIX_ENVAR, ENVAR, sizeof(pmix_envar_t), 9},
    {PMIX_JOB_STATE, NUMBER, 1, 1},
    {PMIX_LINK_STATE, NUMBER, 1, 1},
    {PMIX_DEVTYPE, NUMBER, 8, 8},
    {PMIX_LOCTYPE, NUMBER, 2, 2},
    {PMIX_COMPRESSED_BYTE_OBJECT, BYTES, sizeof(pmix_byte_object_t), 4},
};

static const struct type *find_type(pmix_data_type_t type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}

static size_t left(const struct dt_cursor *from)
{
    return from->failed ? 0 : (size_t)(from->end - from->at);
}

static bool fail(struct dt_cursor *from)
{
    from->failed = true;
    return false;
}

/* --- numbers and strings ------------------------------------------------- */

static void pack_number(struct dt_frame *to, const void *at, size_t width)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (width) {
    case sizeof(one):
        memcpy(&one, at, width);
        dt_frame_uint(to, width, one);
        break;
    case sizeof(two):
        memcpy(&two, at, width);
        dt_frame_uint(to, width, two);
        break;
    case sizeof(four):
        memcpy(&four, at, width);
        dt_frame_uint(to, width, four);
        break;
    default:
        memcpy(&eight, at, sizeof(eight));
        dt_frame_uint(to, sizeof(eight), eight);
    }
}

static bool unpack_number(struct dt_cursor *from, void *at, size_t width)
{
    const uint64_t eight = dt_cursor_uint(from, width);
    const uint32_t four = (uint32_t)eight;
    const uint16_t two = (uint16_t)eight;
    const uint8_t one = (uint8_t)eight;
    const void *value = width == sizeof(one)    ? (const void *)&one
                        : width == sizeof(two)  ? (const void *)&two
                        : width == sizeof(four) ? (const void *)&four
                                                : (const void *)&eight;
    memcpy(at, value, width);
    return !from->failed;
}

static void pack_time(struct dt_frame *to, const struct timeval *time)
{
    dt_frame_uint(to, 8, (uint64_t)time->tv_sec);
    dt_frame_uint(to, 8, (uint64_t)time->tv_usec);
}

static bool unpack_time(struct dt_cursor *from, struct timeval *time)
{
    time->tv_sec = (time_t)dt_cursor_uint(from, 8);
    time->tv_usec = (suseconds_t)dt_cursor_uint(from, 8);
    return !from->failed;
}

static void pack_string(struct dt_frame *to, const char *text)
{
    if (text)
        dt_frame_blob(to, text, strlen(text));
    else
        dt_frame_uint(to, 4, NO_STRING);
}

static bool unpack_string(struct dt_cursor *from, char **text)
{
    size_t len = dt_cursor_uint(from, 4);
    if (len == NO_STRING)
        return true;
    const void *bytes = dt_cursor_bytes(from, len);
    if (!bytes || memchr(bytes, '\0', len))
        return fail(from);
    *text = strndup(bytes, len);
    return *text || fail(from);
}

static bool unpack_bytes(struct dt_cursor *from, pmix_byte_object_t *bytes)
{
    const void *data;
    size_t len;
    if (!dt_cursor_blob(from, &data, &len))
        return false;
    if (len == 0)
        return true;
    bytes->bytes = malloc(len);
    if (!bytes->bytes)
        return fail(from);
    memcpy(bytes->bytes, data, len);
    bytes->size = len;
    return true;
}

/* --- structures ---------------------------------------------------------- */

void dt_pack_proc(struct dt_frame *to, const pmix_proc_t *proc)
{
    dt_frame_blob(to, proc->nspace, strnlen(proc->nspace, PMIX_MAX_NSLEN));
    dt_frame_uint(to, 4, proc->rank);
}

bool dt_unpack_proc(struct dt_cursor *from, pmix_proc_t *proc)
{
    const void *name;
    size_t len;
    if (!dt_cursor_blob(from, &name, &len))
        return false;
    if (len > PMIX_MAX_NSLEN || memchr(name, '\0', len))
        return fail(from);
    memset(proc->nspace, 0, sizeof(proc->nspace));
    memcpy(proc->nspace, name, len);
    proc->rank = (pmix_rank_t)dt_cursor_uint(from, 4);
    return !from->failed;
}

bool dt_unpack_key(struct dt_cursor *from, const char **key, size_t *len)
{
    const void *bytes;
    if (!dt_cursor_blob(from, &bytes, len))
        return false;
    if (*len > PMIX_MAX_KEYLEN || memchr(bytes, '\0', *len))
        return fail(from);
    *key = bytes;
    return true;
}

static void pack_pinfo(struct dt_frame *to, const pmix_proc_info_t *info)
{
    dt_pack_proc(to, &info->proc);
    pack_string(to, info->hostname);
    pack_string(to, info->executable_name);
    pack_number(to, &info->pid, sizeof(info->pid));
    pack_number(to, &info->exit_code, sizeof(info->exit_code));
    dt_frame_uint(to, 1, info->state);
}

static bool unpack_pinfo(struct dt_cursor *from, pmix_proc_info_t *info)
{
    return dt_unpack_proc(from, &info->proc) &&
           unpack_string(from, &info->hostname) &&
           unpack_string(from, &info->executable_name) &&
           unpack_number(from, &info->pid, sizeof(info->pid)) &&
           unpack_number(from, &info->exit_code, sizeof(info->exit_code)) &&
           unpack_number(from, &info->state, sizeof(info->state));
}

static void pack_envar(struct dt_frame *to, const pmix_envar_t *envar)
{
    pack_string(to, envar->envar);
    pack_string(to, envar->value);
    pack_number(to, &envar->separator, 1);
}

static bool unpack_envar(struct dt_cursor *from, pmix_envar_t *envar)
{
    return unpack_string(from, &envar->envar) &&
           unpack_string(from, &envar->value) &&
           unpack_number(from, &envar->separator, 1);
}

static pmix_status_t pack_info(struct dt_frame *to, const pmix_info_t *info)
{
    dt_frame_blob(to, info->key, strnlen(info->key, PMIX_MAX_KEYLEN));
    dt_frame_uint(to, 4, info->flags & DIRECTIVES);
    return dt_pack_value(to, &info->value);
}

static bool read_value(struct dt_cursor *from, pmix_value_t *value, int depth);

static bool unpack_info(struct dt_cursor *from, pmix_info_t *info, int depth)
{
    const char *key;
    size_t len;
    if (!dt_unpack_key(from, &key, &len))
        return false;
    memcpy(info->key, key, len);
    info->flags = dt_cursor_uint(from, 4) & DIRECTIVES;
    return read_value(from, &info->value, depth);
}

/* --- one value of a type, in memory -------------------------------------- */

static pmix_status_t pack_one(struct dt_frame *to, const struct type *type,
                              const void *at)
{
    const pmix_byte_object_t *bytes = at;
    switch (type->form) {
    case BOOL:
        dt_frame_uint(to, 1, *(const bool *)at);
        break;
    case NUMBER:
        pack_number(to, at, type->size);
        break;
    case TIME:
        pack_time(to, at);
        break;
    case STRING:
        pack_string(to, *(char *const *)at);
        break;
    case BYTES:
        dt_frame_blob(to, bytes->bytes, bytes->bytes ? bytes->size : 0);
        break;
    case PROC:
        dt_pack_proc(to, at);
        break;
    case PINFO:
        pack_pinfo(to, at);
        break;
    case ENVAR:
        pack_envar(to, at);
        break;
    case VALUE:
        return dt_pack_value(to, at);
    case INFO:
        return pack_info(to, at);
    }
    return PMIX_SUCCESS;
}

/* at: zeroed. What is there after a failure can be freed. */
static bool unpack_one(struct dt_cursor *from, const struct type *type,
                       void *at, int depth)
{
    switch (type->form) {
    case BOOL:
        *(bool *)at = dt_cursor_uint(from, 1) != 0;
        return !from->failed;
    case NUMBER:
        return unpack_number(from, at, type->size);
    case TIME:
        return unpack_time(from, at);
    case STRING:
        return unpack_string(from, at);
    case BYTES:
        return unpack_bytes(from, at);
    case PROC:
        return dt_unpack_proc(from, at);
    case PINFO:
        return unpack_pinfo(from, at);
    case ENVAR:
        return unpack_envar(from, at);
    case VALUE:
        return read_value(from, at, depth + 1);
    case INFO:
        return unpack_info(from, at, depth + 1);
    }
    return fail(from);
}

/* --- values -------------------------------------------------------------- */

static pmix_status_t pack_array(struct dt_frame *to,
                                const pmix_data_array_t *array)
{
    size_t count = array && array->array ? array->size : 0;
    const struct type *type = count ? find_type(array->type) : NULL;
    if (count && (!type || count > UINT32_MAX))
        return PMIX_ERR_NOT_SUPPORTED;
    dt_frame_uint(to, 2, array ? array->type : PMIX_UNDEF);
    dt_frame_uint(to, 4, count);
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; i < count && rc == PMIX_SUCCESS; i++)
        rc = pack_one(to, type, (const char *)array->array + i * type->size);
    return rc;
}

static bool unpack_array(struct dt_cursor *from, pmix_data_array_t *array,
                         int depth)
{
    const struct type *type =
        find_type((pmix_data_type_t)dt_cursor_uint(from, 2));
    size_t count = dt_cursor_uint(from, 4);
    if (from->failed)
        return false;
    array->type = type ? type->type : PMIX_UNDEF;
    if (count == 0)
        return true;
    if (!type || depth >= DEPTH_MAX || count > left(from) / type->least)
        return fail(from);
    array->array = calloc(count, type->size);
    if (!array->array)
        return fail(from);
    array->size = count;
    for (size_t i = 0; i < count; i++)
        if (!unpack_one(from, type, (char *)array->array + i * type->size,
                        depth))
            return false;
    return true;
}

/* The value's data, or where it points to. */
static const void *data_of(const pmix_value_t *value, const struct type *type)
{
    return type->form == PROC    ? (const void *)value->data.proc
           : type->form == PINFO ? (const void *)value->data.pinfo
                                 : (const void *)&value->data;
}

/* Can a value be of this type, not only an array's elements? */
static bool is_single(const struct type *type)
{
    return type && type->form != VALUE && type->form != INFO;
}

pmix_status_t dt_pack_value(struct dt_frame *to, const pmix_value_t *value)
{
    const struct type *type = find_type(value->type);
    dt_frame_uint(to, 2, value->type);
    if (value->type == PMIX_UNDEF)
        return PMIX_SUCCESS;
    if (value->type == PMIX_DATA_ARRAY)
        return pack_array(to, value->data.darray);
    if (!is_single(type) || !data_of(value, type))
        return PMIX_ERR_NOT_SUPPORTED;
    return pack_one(to, type, data_of(value, type));
}

/* value: zeroed. */
static bool read_value(struct dt_cursor *from, pmix_value_t *value, int depth)
{
    pmix_data_type_t name = (pmix_data_type_t)dt_cursor_uint(from, 2);
    const struct type *type = find_type(name);
    if (from->failed || name == PMIX_UNDEF)
        return !from->failed;
    if (name == PMIX_DATA_ARRAY) {
        value->data.darray = calloc(1, sizeof(*value->data.darray));
        value->type = name;
        return value->data.darray
                   ? unpack_array(from, value->data.darray, depth)
                   : fail(from);
    }
    if (!is_single(type))
        return fail(from);
    if (type->form == PROC || type->form == PINFO) {
        value->data.ptr = calloc(1, type->size);
        if (!value->data.ptr)
            return fail(from);
    }
    value->type = name;
    return unpack_one(from, type, (void *)data_of(value, type), depth);
}

bool dt_unpack_value(struct dt_cursor *from, pmix_value_t *value)
{
    memset(value, 0, sizeof(*value));
    if (read_value(from, value, 0))
        return true;
    PMIX_VALUE_DESTRUCT(value);
    return false;
}

/* --- lists --------------------------------------------------------------- */

void dt_pack_infos(struct dt_frame *to, const pmix_info_t *infos, size_t count)
{
    uint32_t packed = 0;
    if (!to)
        return;
    size_t head = to->len;
    dt_frame_uint(to, 4, 0);
    for (size_t i = 0; i < count && !to->failed; i++) {
        size_t before = to->len;
        if (pack_info(to, &infos[i]) == PMIX_SUCCESS)
            packed++;
        else
            to->len = before;
    }
    if (!to->failed)
        dt_wire_put(to->bytes + head, 4, packed);
}

bool dt_unpack_infos(struct dt_cursor *from, struct dt_pmix_infos *infos)
{
    struct dt_pmix_infos read = {0};
    size_t count = dt_cursor_uint(from, 4);
    if (from->failed || count > left(from) / find_type(PMIX_INFO)->least)
        return fail(from);
    read.all = count ? calloc(count, sizeof(*read.all)) : NULL;
    if (count && !read.all)
        return fail(from);
    read.count = read.room = count;
    for (size_t i = 0; i < count; i++)
        if (!unpack_info(from, &read.all[i], 0)) {
            dt_pmix_info_free(&read);
            return false;
        }
    *infos = read;
    return true;
}
