/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requests.c - a libFuzzer target: what a rank tells of the operations that it
 * has started, in a round of negotiation. fuzz.t builds it. */
#include <stdlib.h>
#include <string.h>

#include "grad/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_cursor cursor = dt_cursor(data, size);
    struct dt_message message;
    while (dt_message_read(&cursor, &message)) {
        check(strlen(message.name) < sizeof(message.name));
        check(message.kind <= DT_WORK_STEP && message.n <= UINT16_MAX);
        for (int i = 0; i < message.n; i++) {
            struct dt_item_type type;
            int64_t *splits;
            uint32_t count;
            if (!dt_message_read_item(&cursor, &type, &splits, &count))
                break;
            check(type.ndim >= 0 && type.ndim <= DT_GRAD_DIMS);
            check((splits != NULL) == (count > 0));
            check(count <= size / 8);
            free(splits);
        }
    }
    return 0;
}
