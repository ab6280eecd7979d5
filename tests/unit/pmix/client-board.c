/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client-board.c - modes of pmix-client: publish, lookup, unpublish. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

int publish(const char *key, const char *text, pmix_data_range_t range,
            pmix_persistence_t persistence)
{
    pmix_info_t info[3];
    PMIX_INFO_LOAD(&info[0], key, text, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&info[2], PMIX_PERSISTENCE, &persistence, PMIX_PERSIST);
    int rc = PMIx_Publish(info, 3);
    PMIX_INFO_DESTRUCT(&info[0]);
    return rc;
}

int lookup(const char *key, const char *wanted, int seconds)
{
    pmix_pdata_t data;
    pmix_info_t info[2];
    int all = 0;
    PMIX_PDATA_CONSTRUCT(&data);
    strcpy(data.key, key);
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &all, PMIX_INT);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    int rc = PMIx_Lookup(&data, 1, info, seconds ? 2 : 0);
    if (rc == PMIX_SUCCESS)
        TRUE(data.value.type == PMIX_STRING &&
             strcmp(data.value.data.string, wanted) == 0);
    PMIX_PDATA_DESTRUCT(&data);
    return rc;
}

static int publish_value(const char *key, const void *data,
                         pmix_data_type_t type)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, key, data, type);
    int rc = PMIx_Publish(&info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

/* Values are more than strings. */
void values(void)
{
    char bytes[] = {'a', '\0', 'b'};
    const pmix_byte_object_t object = {bytes, sizeof(bytes)};
    pmix_proc_t procs[2] = {proc_of(0), everybody};
    const pmix_data_array_t array = {PMIX_PROC, 2, procs};
    pmix_pdata_t data[3];
    char *pointer = bytes;
    if (self.rank == 0) {
        OK(publish_value("bytes", &object, PMIX_BYTE_OBJECT));
        OK(publish_value("array", &array, PMIX_DATA_ARRAY));
        IS(publish_value("pointer", &pointer, PMIX_POINTER),
           PMIX_ERR_NOT_SUPPORTED);
    }
    OK(fence_all());
    for (int i = 0; i < 3; i++)
        PMIX_PDATA_CONSTRUCT(&data[i]);
    strcpy(data[0].key, "array");
    strcpy(data[1].key, "no such key");
    strcpy(data[2].key, "bytes");
    OK(PMIx_Lookup(data, 3, NULL, 0));
    const pmix_value_t *first = &data[0].value, *third = &data[2].value;
    TRUE(
        first->type == PMIX_DATA_ARRAY && first->data.darray->size == 2 &&
        PMIX_CHECK_PROCID((pmix_proc_t *)first->data.darray->array, &procs[0]));
    TRUE(data[1].value.type == PMIX_UNDEF);
    TRUE(third->type == PMIX_BYTE_OBJECT && third->data.bo.size == 3 &&
         memcmp(third->data.bo.bytes, bytes, 3) == 0 && data[2].proc.rank == 0);
    for (int i = 0; i < 3; i++)
        PMIX_PDATA_DESTRUCT(&data[i]);
}

/* On each node the rank of lowest number puts up something of its node's. */
void local(void)
{
    pmix_rank_t first = 0;
    char text[16];
    while (!is_near(first))
        first++;
    snprintf(text, sizeof(text), "of %u", first);
    if (self.rank == first)
        OK(publish("local", text, PMIX_RANGE_LOCAL, PMIX_PERSIST_SESSION));
    OK(fence_all());
    OK(lookup("local", text, 0));
    OK(fence_all());
}

void board(void)
{
    char key[] = "board", *two[] = {key, NULL};
    if (self.rank == 0) {
        OK(publish("early", "one", PMIX_RANGE_NAMESPACE, PMIX_PERSIST_APP));
        IS(publish("early", "two", PMIX_RANGE_NAMESPACE, PMIX_PERSIST_APP),
           PMIX_ERR_DUPLICATE_KEY);
        OK(publish("once", "first", PMIX_RANGE_SESSION,
                   PMIX_PERSIST_FIRST_READ));
        OK(publish("private", "mine", PMIX_RANGE_PROC_LOCAL,
                   PMIX_PERSIST_PROC));
        OK(lookup("private", "mine", 0));
        IS(lookup("never", "", 1), PMIX_ERR_TIMEOUT);
        IS(publish("custom", "x", PMIX_RANGE_CUSTOM, PMIX_PERSIST_APP),
           PMIX_ERR_NOT_SUPPORTED);
    }
    OK(fence_all());
    OK(lookup("early", "one", 0));
    if (self.rank == 1) {
        OK(lookup("once", "first", 0));
        IS(lookup("once", "first", 0), PMIX_ERR_NOT_FOUND);
        IS(lookup("private", "mine", 0), PMIX_ERR_NOT_FOUND);
        /* now that the others wait */
        OK(publish("board", "late", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION));
    }
    OK(lookup("board", "late", LONG_S));
    OK(fence_all());
    if (self.rank == 0)
        OK(PMIx_Unpublish(two, NULL, 0)); /* not its own: stays */
    OK(fence_all());
    OK(lookup("board", "late", 0));
    OK(fence_all());
    if (self.rank == 1)
        OK(PMIx_Unpublish(two, NULL, 0));
    OK(fence_all());
    IS(lookup("board", "late", 0), PMIX_ERR_NOT_FOUND);
    OK(fence_all()); /* the board goes with the first node */
}

static void never(pmix_status_t status, pmix_pdata_t data[], size_t ndata,
                  void *arg)
{
    (void)status, (void)data, (void)ndata, (void)arg;
}

/* Rank 1 is killed while it waits for a key. */
void die_board(void)
{
    char name[] = "late", *keys_[] = {name, NULL};
    int all = 0;
    pmix_info_t info;
    listen_to(PMIX_ERR_PROC_ABORTED);
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &all, PMIX_INT);
    if (self.rank == 1) {
        OK(publish("life", "mine", PMIX_RANGE_SESSION, PMIX_PERSIST_PROC));
        OK(publish("job", "all", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
        OK(PMIx_Lookup_nb(keys_, &info, 1, never, NULL));
        OK(lookup("life", "mine", 0)); /* so the other one has arrived */
    }
    OK(fence_all());
    if (self.rank == 1)
        raise(SIGKILL);
    wait_for(&received, 1);
    IS(lookup("life", "", 0), PMIX_ERR_NOT_FOUND);
    OK(lookup("job", "all", 0));
    if (self.rank == 0) {
        /* who is gone does not take it */
        OK(publish("late", "once", PMIX_RANGE_SESSION,
                   PMIX_PERSIST_FIRST_READ));
        OK(lookup("late", "once", 0));
    }
}

static atomic_int looked_up = 1;

static void looked(pmix_status_t status, pmix_pdata_t data[], size_t ndata,
                   void *arg)
{
    (void)data, (void)ndata;
    atomic_store(&looked_up, status);
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* The server of rank 0, who is alone on its node, is killed: what was on the
 * board is lost, and the next one is empty. For several nodes. */
void die_root(void)
{
    char name[] = "never", *keys_[] = {name, NULL}, ready[32];
    int all = 0;
    atomic_int done = 0;
    pmix_info_t info;
    pmix_proc_t living[64];
    listen_to(PMIX_ERR_PROC_ABORTED);
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &all, PMIX_INT);
    for (pmix_rank_t r = 1; r < size && r < 64; r++)
        living[r - 1] = proc_of(r);
    if (self.rank == 1)
        OK(publish("key", "before", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION));
    if (self.rank == 0) {
        for (pmix_rank_t r = 1; r < size; r++) {
            snprintf(ready, sizeof(ready), "ready %u", r);
            OK(lookup(ready, "", LONG_S));
        }
        kill(getppid(), SIGKILL);
        pause();
    }
    OK(PMIx_Lookup_nb(keys_, &info, 1, looked, &done));
    OK(lookup("key", "before", LONG_S)); /* so the other one has arrived */
    snprintf(ready, sizeof(ready), "ready %u", self.rank);
    /* the server may be gone before it answers */
    publish(ready, "", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION);
    wait_for(&received, 1);
    TRUE(atomic_load(&heard_of) == 0);
    wait_for(&done, 1);
    IS(atomic_load(&looked_up), PMIX_ERR_COMM_FAILURE);
    IS(lookup("key", "before", 0), PMIX_ERR_NOT_FOUND);
    OK(fence(living, size - 1, false));
    if (self.rank == size - 1)
        OK(publish("key", "after", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION));
    OK(lookup("key", "after", LONG_S));
    OK(fence(living, size - 1, false));
}
