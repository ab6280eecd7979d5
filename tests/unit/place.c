/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.c - which task gets which GPUs. */
#include "topo/place.h"

#include <stdint.h>
#include <string.h>

#include "tap.h"

static void join(const size_t *list, size_t n, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%zu",
                                 i ? "," : "", list[i]);
}

static void is_placed(enum dt_place_policy policy, size_t count, size_t ngpus,
                      size_t ntasks, size_t task, const char *own,
                      const char *visible)
{
    struct dt_place_request request = {policy, count, ngpus, ntasks};
    struct dt_place_task placed;
    struct dt_error err = {""};
    char got_own[256] = "", got_visible[256] = "";
    if (dt_place(&request, task, &placed, &err) == DT_SUCCESS) {
        join(placed.own, placed.nown, got_own, sizeof(got_own));
        join(placed.visible, placed.nvisible, got_visible, sizeof(got_visible));
    }
    if (!ok(!strcmp(got_own, own) && !strcmp(got_visible, visible),
            "policy %d, %zu GPUs, task %zu of %zu: own %s, visible %s", policy,
            ngpus, task, ntasks, own, visible))
        diag("own %s, visible %s, error \"%s\"", got_own, got_visible,
             err.text);
}

static void is_refused(enum dt_place_policy policy, size_t count, size_t ngpus,
                       size_t ntasks, size_t task, const char *why)
{
    struct dt_place_request request = {policy, count, ngpus, ntasks};
    struct dt_place_task placed, untouched;
    struct dt_error err = {""};
    memset(&placed, 0x5a, sizeof(placed));
    untouched = placed;
    dt_result_t rc = dt_place(&request, task, &placed, &err);
    if (!ok(rc == DT_ERR_INVALID_ARG && strstr(err.text, why) &&
                !memcmp(&placed, &untouched, sizeof(placed)),
            "refused: %s", why))
        diag("result %d, error \"%s\"", rc, err.text);
}

/* What holds for every policy and every size. */
static bool is_sound(enum dt_place_policy policy, size_t ngpus, size_t ntasks)
{
    struct dt_place_request request = {policy, ngpus / ntasks, ngpus, ntasks};
    size_t owners[DT_PLACE_MAX_GPUS] = {0};
    bool all = policy == DT_PLACE_AUTO || policy == DT_PLACE_ROTATE;
    for (size_t task = 0; task < ntasks; task++) {
        struct dt_place_task placed;
        if (dt_place(&request, task, &placed, NULL) != DT_SUCCESS)
            return false;
        bool seen[DT_PLACE_MAX_GPUS] = {false};
        for (size_t i = 0; i < placed.nvisible; i++) {
            if (placed.visible[i] >= ngpus || seen[placed.visible[i]])
                return false;
            seen[placed.visible[i]] = true;
        }
        for (size_t i = 0; i < placed.nown; i++) {
            if (placed.own[i] >= ngpus || !seen[placed.own[i]])
                return false;
            owners[placed.own[i]]++;
        }
        if (!placed.nown || placed.nvisible != (all ? ngpus : placed.nown))
            return false;
        /* index i is one of local rank i's; or the own ones come first */
        if (policy == DT_PLACE_AUTO && ntasks <= ngpus &&
            placed.visible[task] != placed.own[0])
            return false;
        if (policy != DT_PLACE_AUTO &&
            memcmp(placed.visible, placed.own,
                   placed.nown * sizeof(placed.own[0])) != 0)
            return false;
    }
    for (size_t gpu = 0; gpu < ngpus; gpu++) {
        size_t least = policy == DT_PLACE_COUNT ? 0 : 1;
        size_t most = ntasks > ngpus ? ntasks / ngpus + 1 : 1;
        if (owners[gpu] < least || owners[gpu] > most)
            return false;
    }
    return true;
}

int main(void)
{
    is_placed(DT_PLACE_AUTO, 0, 4, 2, 0, "0,1", "0,2,1,3");
    is_placed(DT_PLACE_AUTO, 0, 4, 2, 1, "2,3", "0,2,1,3");
    is_placed(DT_PLACE_AUTO, 0, 5, 2, 0, "0,1,2", "0,3,1,4,2");
    is_placed(DT_PLACE_AUTO, 0, 5, 2, 1, "3,4", "0,3,1,4,2");
    is_placed(DT_PLACE_AUTO, 0, 8, 8, 5, "5", "0,1,2,3,4,5,6,7");
    is_placed(DT_PLACE_AUTO, 0, 4, 1, 0, "0,1,2,3", "0,1,2,3");
    is_placed(DT_PLACE_ROTATE, 0, 4, 2, 0, "0,1", "0,1,2,3");
    is_placed(DT_PLACE_ROTATE, 0, 4, 2, 1, "2,3", "2,3,0,1");
    is_placed(DT_PLACE_ROTATE, 0, 7, 3, 1, "3,4", "3,4,5,6,0,1,2");
    is_placed(DT_PLACE_SINGLE, 0, 4, 2, 1, "2,3", "2,3");
    is_placed(DT_PLACE_COUNT, 1, 4, 2, 1, "1", "1");
    is_placed(DT_PLACE_COUNT, 2, 4, 2, 1, "2,3", "2,3");

    diag("more tasks than GPUs share them evenly");
    is_placed(DT_PLACE_AUTO, 0, 2, 5, 0, "0", "0,1");
    is_placed(DT_PLACE_AUTO, 0, 2, 5, 2, "0", "0,1");
    is_placed(DT_PLACE_ROTATE, 0, 2, 5, 3, "1", "1,0");
    is_placed(DT_PLACE_SINGLE, 0, 2, 5, 4, "1", "1");

    bool sound = true;
    for (size_t ngpus = 1; ngpus <= DT_PLACE_MAX_GPUS; ngpus++)
        for (size_t ntasks = 1; ntasks <= 70; ntasks++)
            for (int policy = DT_PLACE_AUTO; policy <= DT_PLACE_COUNT; policy++)
                if ((policy != DT_PLACE_COUNT || ntasks <= ngpus) &&
                    !is_sound((enum dt_place_policy)policy, ngpus, ntasks)) {
                    diag("policy %d, %zu GPUs, %zu tasks", policy, ngpus,
                         ntasks);
                    sound = false;
                }
    ok(sound, "1 to 64 GPUs, 1 to 70 tasks: every GPU owned, none twice");

    is_refused(DT_PLACE_AUTO, 0, 0, 1, 0, "granted no GPU");
    is_refused(DT_PLACE_COUNT, 1, 0, 1, 0, "granted no GPU");
    is_refused(DT_PLACE_AUTO, 0, 65, 1, 0, "65 GPUs are more than the 64");
    is_refused(DT_PLACE_COUNT, 3, 4, 2, 0, "2 tasks need 6 GPUs");
    is_refused(DT_PLACE_COUNT, 5, 4, 1, 0, "1 task needs 5 GPUs");
    is_refused(DT_PLACE_COUNT, 0, 4, 1, 0, "expected 1 to 64");
    is_refused(DT_PLACE_COUNT, SIZE_MAX, 4, 2, 0, "expected 1 to 64");
    is_refused(DT_PLACE_AUTO, 0, 4, 2, 2, "no task 2 of 2");
    is_refused(DT_PLACE_AUTO, 0, 4, 0, 0, "no task 0 of 0");
    is_refused(DT_PLACE_COUNT, 64, 4, SIZE_MAX, 0, "no task 0 of");
    return tap_done();
}
