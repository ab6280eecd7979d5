/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pack.c - tests of PMIx's types as bytes: there and back, and damaged. */
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "operations/pack.h"
#include "../tap.h"

/* Attributes that are numbers; they do not fit a narrower type. */
#define NUMBERS 18

static void add_numbers(struct dt_pmix_infos *to)
{
    const bool yes = true;
    const uint8_t byte = 0xfe;
    const int8_t i8 = -2;
    const uint16_t u16 = 0xfedc;
    const int16_t i16 = -300;
    const uint32_t u32 = 0xfedcba98;
    const int32_t i32 = -70000;
    const uint64_t u64 = 0xfedcba9876543210;
    const int64_t i64 = -5000000000;
    const float f = 1.5f;
    const double d = -2.25;
    const size_t size = 5000000000;
    const pid_t pid = 4711;
    const time_t now = 1700000000;
    const struct timeval tv = {1700000000, 999999};
    const pmix_status_t status = PMIX_ERR_TIMEOUT;
    const pmix_rank_t rank = PMIX_RANK_WILDCARD;
    const pmix_data_range_t range = PMIX_RANGE_SESSION;
    dt_pmix_info_add(to, "bool", &yes, PMIX_BOOL);
    dt_pmix_info_add(to, "byte", &byte, PMIX_BYTE);
    dt_pmix_info_add(to, "int8", &i8, PMIX_INT8);
    dt_pmix_info_add(to, "uint16", &u16, PMIX_UINT16);
    dt_pmix_info_add(to, "int16", &i16, PMIX_INT16);
    dt_pmix_info_add(to, "uint32", &u32, PMIX_UINT32);
    dt_pmix_info_add(to, "int", &i32, PMIX_INT);
    dt_pmix_info_add(to, "uint64", &u64, PMIX_UINT64);
    dt_pmix_info_add(to, "int64", &i64, PMIX_INT64);
    dt_pmix_info_add(to, "float", &f, PMIX_FLOAT);
    dt_pmix_info_add(to, "double", &d, PMIX_DOUBLE);
    dt_pmix_info_add(to, "size", &size, PMIX_SIZE);
    dt_pmix_info_add(to, "pid", &pid, PMIX_PID);
    dt_pmix_info_add(to, "time", &now, PMIX_TIME);
    dt_pmix_info_add(to, "timeval", &tv, PMIX_TIMEVAL);
    dt_pmix_info_add(to, "status", &status, PMIX_STATUS);
    dt_pmix_info_add(to, "rank", &rank, PMIX_PROC_RANK);
    dt_pmix_info_add(to, "range", &range, PMIX_DATA_RANGE);
}

static void add_others(struct dt_pmix_infos *to)
{
    char bytes[] = {'a', '\0', 'b'};
    pmix_byte_object_t object = {bytes, sizeof(bytes)};
    pmix_envar_t envar = {(char *)"PATH", (char *)"/bin", ':'};
    pmix_proc_info_t pinfo = {.hostname = (char *)"n1",
                              .pid = 17,
                              .exit_code = -1,
                              .state = PMIX_PROC_STATE_RUNNING};
    pmix_proc_t procs[2];
    char *strings[] = {(char *)"one", (char *)""};
    pmix_data_array_t array = {PMIX_PROC, 2, procs};
    struct dt_pmix_infos inner = {0};
    PMIX_LOAD_PROCID(&procs[0], "job", 3);
    PMIX_LOAD_PROCID(&procs[1], "job", PMIX_RANK_WILDCARD);
    pinfo.proc = procs[0];
    dt_pmix_info_add(to, "string", "text", PMIX_STRING);
    dt_pmix_info_add(to, "bytes", &object, PMIX_BYTE_OBJECT);
    dt_pmix_info_add(to, "envar", &envar, PMIX_ENVAR);
    dt_pmix_info_add(to, "proc", &procs[0], PMIX_PROC);
    dt_pmix_info_add(to, "pinfo", &pinfo, PMIX_PROC_INFO);
    dt_pmix_info_add(to, "procs", &array, PMIX_DATA_ARRAY);
    array = (pmix_data_array_t){PMIX_STRING, 2, strings};
    dt_pmix_info_add(to, "strings", &array, PMIX_DATA_ARRAY);
    add_numbers(&inner);
    dt_pmix_info_add_array(to, "inner", &inner);
}

static struct dt_frame *pack(const struct dt_pmix_infos *infos)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    dt_pack_infos(frame, infos->all, infos->count);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    return frame;
}

static bool is_same(const struct dt_pmix_infos *a,
                    const struct dt_pmix_infos *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const pmix_value_t *x = &a->all[i].value, *y = &b->all[i].value;
        bool same = x->type == y->type;
        if (same && i < NUMBERS)
            same = memcmp(&x->data, &y->data, sizeof(struct timeval)) == 0;
        if (same && x->type == PMIX_DATA_ARRAY)
            same = x->data.darray->size == y->data.darray->size &&
                   x->data.darray->type == y->data.darray->type;
        if (!same || strcmp(a->all[i].key, b->all[i].key) != 0)
            return false;
    }
    return a->count == b->count;
}

static bool frames_are_same(const struct dt_frame *a, const struct dt_frame *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static void test_round(const struct dt_pmix_infos *all)
{
    struct dt_pmix_infos back = {0};
    struct dt_frame *frame = pack(all), *again;
    struct dt_cursor body = dt_frame_body(frame);
    ok(dt_unpack_infos(&body, &back) && body.at == body.end,
       "each type is read again, to the last byte");
    ok(is_same(all, &back), "the attributes are the same");
    again = pack(&back);
    ok(frames_are_same(frame, again), "and so are their bytes");
    const pmix_value_t *value =
        dt_pmix_info_find(back.all, back.count, "pinfo");
    ok(value && value->data.pinfo->proc.rank == 3 &&
           strcmp(value->data.pinfo->hostname, "n1") == 0 &&
           !value->data.pinfo->executable_name &&
           value->data.pinfo->exit_code == -1,
       "a process, with a string that is none");
    value = dt_pmix_info_find(back.all, back.count, "strings");
    char **strings = value ? value->data.darray->array : NULL;
    ok(strings && strcmp(strings[0], "one") == 0 && !*strings[1],
       "an array of strings");
    value = dt_pmix_info_find(back.all, back.count, "inner");
    pmix_info_t *inner = value ? value->data.darray->array : NULL;
    ok(inner && dt_pmix_info_number(inner, NUMBERS, "int64", 0) == -5000000000,
       "attributes inside an attribute");
    dt_frame_unref(again);
    dt_frame_unref(frame);
    dt_pmix_info_free(&back);
}

/* Read any bytes; what was read can be freed. */
static bool read_any(const unsigned char *bytes, size_t len)
{
    /* of its own, so that a sanitizer sees one byte too many */
    unsigned char *copy = malloc(len + !len);
    if (!copy)
        abort();
    memcpy(copy, bytes, len);
    struct dt_cursor from = dt_cursor(copy, len);
    struct dt_pmix_infos infos = {0};
    bool good = dt_unpack_infos(&from, &infos);
    if (good)
        dt_pmix_info_free(&infos);
    free(copy);
    return good;
}

static void test_damage(const struct dt_pmix_infos *all)
{
    struct dt_frame *frame = pack(all);
    struct dt_cursor body = dt_frame_body(frame);
    size_t len = (size_t)(body.end - body.at), bad = 0;
    for (size_t n = 0; n < len; n++)
        bad += read_any(body.at, n);
    ok(bad == 0, "cut at any of %zu bytes it is refused", len);
    unsigned char *bytes = malloc(len);
    uint32_t random = 1;
    for (int i = 0; bytes && i < 20000; i++) {
        memcpy(bytes, body.at, len);
        for (int n = 0; n < 1 + i % 4; n++) {
            random = random * 1664525 + 1013904223;
            bytes[(random >> 8) % len] = (unsigned char)(random >> 24);
        }
        read_any(bytes, len);
    }
    ok(bytes, "damage of any kind is survived");
    free(bytes);
    dt_frame_unref(frame);
}

/* An attribute with an array that claims so many of this type. */
static bool read_claim(pmix_data_type_t type, uint64_t count)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    dt_frame_uint(frame, 4, 1);
    dt_frame_blob(frame, "key", 3);
    dt_frame_uint(frame, 4, 0);
    dt_frame_uint(frame, 2, PMIX_DATA_ARRAY);
    dt_frame_uint(frame, 2, type);
    dt_frame_uint(frame, 4, count);
    dt_frame_uint(frame, 8, 0);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    struct dt_cursor body = dt_frame_body(frame);
    bool good = read_any(body.at, (size_t)(body.end - body.at));
    dt_frame_unref(frame);
    return good;
}

static void test_claims(void)
{
    ok(read_claim(PMIX_UINT8, 8), "an array of what is there");
    ok(!read_claim(PMIX_UINT8, 9), "an array of more than there is");
    ok(!read_claim(PMIX_UINT64, UINT32_MAX), "an array of 2^32 numbers");
    ok(!read_claim(PMIX_INFO, UINT32_MAX), "an array of 2^32 attributes");
    ok(!read_claim(PMIX_POINTER, 1), "an array of pointers");
    ok(!read_claim(PMIX_APP, 1), "an array of what does not travel");
    ok(!read_claim(1000, 1), "an array of no type");
}

/* A key of these bytes, with the reader of keys and as an attribute's. */
static bool read_key(const void *key, size_t len)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    const char *read;
    size_t read_len;
    dt_frame_uint(frame, 4, 1);
    dt_frame_blob(frame, key, len);
    dt_frame_uint(frame, 4, 0);
    dt_frame_uint(frame, 2, PMIX_UNDEF);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    struct dt_cursor body = dt_frame_body(frame), from = body;
    bool good = read_any(body.at, (size_t)(body.end - body.at));
    dt_cursor_uint(&from, 4);
    bool alone = dt_unpack_key(&from, &read, &read_len);
    dt_frame_unref(frame);
    return good && alone && read_len == len;
}

/* A process whose namespace is these bytes. */
static bool read_proc(const void *name, size_t len)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    pmix_proc_t proc;
    dt_frame_blob(frame, name, len);
    dt_frame_uint(frame, 4, 1);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    struct dt_cursor body = dt_frame_body(frame);
    bool good = dt_unpack_proc(&body, &proc);
    dt_frame_unref(frame);
    return good;
}

static void test_names(void)
{
    char name[PMIX_MAX_KEYLEN + 2];
    memset(name, 'k', sizeof(name));
    ok(read_key(name, PMIX_MAX_KEYLEN), "a key as long as may be");
    ok(!read_key(name, PMIX_MAX_KEYLEN + 1), "a key one byte longer");
    ok(!read_key("a\0b", 3), "a key with a NUL");
    ok(!read_key("ab", 3), "a key that ends with a NUL");
    ok(read_proc(name, PMIX_MAX_NSLEN), "a namespace as long as may be");
    ok(!read_proc(name, PMIX_MAX_NSLEN + 1), "a namespace one byte longer");
    ok(!read_proc("a\0b", 3), "a namespace with a NUL");
}

static void test_depth(void)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    dt_frame_uint(frame, 4, 1);
    for (int i = 0; i < 100000; i++) {
        dt_frame_blob(frame, "", 0);
        dt_frame_uint(frame, 4, 0);
        dt_frame_uint(frame, 2, PMIX_DATA_ARRAY);
        dt_frame_uint(frame, 2, PMIX_INFO);
        dt_frame_uint(frame, 4, 1);
    }
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    struct dt_cursor body = dt_frame_body(frame);
    ok(!read_any(body.at, (size_t)(body.end - body.at)),
       "attributes in attributes 100000 deep");
    dt_frame_unref(frame);
}

static void test_left_out(void)
{
    struct dt_pmix_infos infos = {0}, back = {0};
    pmix_info_t all[3];
    for (int i = 0; i < 3; i++)
        PMIX_INFO_CONSTRUCT(&all[i]);
    PMIX_INFO_LOAD(&all[0], "one", "1", PMIX_STRING);
    PMIX_LOAD_KEY(all[1].key, "pointer");
    all[1].value.type = PMIX_POINTER;
    all[1].value.data.ptr = all;
    PMIX_INFO_LOAD(&all[2], "three", "3", PMIX_STRING);
    all[2].flags = PMIX_INFO_REQD | PMIX_INFO_PERSISTENT;
    infos = (struct dt_pmix_infos){.all = all, .count = 3};
    struct dt_frame *frame = pack(&infos);
    struct dt_cursor body = dt_frame_body(frame);
    ok(dt_unpack_infos(&body, &back) && back.count == 2 &&
           strcmp(back.all[1].key, "three") == 0,
       "an attribute that does not travel is left out");
    ok(back.count == 2 && back.all[1].flags == PMIX_INFO_REQD,
       "directives about memory are kept");
    ok(dt_pack_value(frame, &all[1].value) == PMIX_ERR_NOT_SUPPORTED,
       "a pointer is refused");
    dt_pmix_info_free(&back);
    dt_frame_unref(frame);
    PMIX_INFO_DESTRUCT(&all[0]);
    free(all[2].value.data.string);
}

int main(void)
{
    struct dt_pmix_infos all = {0};
    add_numbers(&all);
    add_others(&all);
    test_round(&all);
    test_damage(&all);
    test_claims();
    test_names();
    test_depth();
    test_left_out();
    dt_pmix_info_free(&all);
    return tap_done();
}
