/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* secret.c - secrets, keys and proofs, by libsodium. */
#include "tl/secret.h"

#include <sodium.h>
#include <string.h>

_Static_assert(DT_SECRET_BYTES == crypto_generichash_KEYBYTES &&
                   DT_SECRET_BYTES == crypto_generichash_BYTES &&
                   DT_SECRET_BYTES >= crypto_shorthash_KEYBYTES &&
                   sizeof(uint64_t) == crypto_shorthash_BYTES,
               "the sizes of libsodium's keys");

dt_result_t dt_secret_draw(struct dt_secret *secret, struct dt_error *err)
{
    if (sodium_init() < 0)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "libsodium cannot start: does getrandom() work?");
    randombytes_buf(secret->bytes, sizeof(secret->bytes));
    return DT_SUCCESS;
}

void dt_secret_pair(const struct dt_secret *lower,
                    const struct dt_secret *higher, const char *purpose,
                    struct dt_secret *key)
{
    struct dt_secret half;
    dt_secret_prove(lower, purpose, strlen(purpose), &half);
    dt_secret_prove(higher, half.bytes, sizeof(half.bytes), key);
    dt_secret_forget(&half);
}

void dt_secret_prove(const struct dt_secret *key, const void *bytes, size_t len,
                     struct dt_secret *proof)
{
    crypto_generichash(proof->bytes, sizeof(proof->bytes), bytes, len,
                       key->bytes, sizeof(key->bytes));
}

bool dt_secret_equal(const struct dt_secret *a, const struct dt_secret *b)
{
    return !sodium_memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

uint64_t dt_secret_word(const struct dt_secret *key, const void *bytes,
                        size_t len)
{
    uint64_t word;
    crypto_shorthash((unsigned char *)&word, bytes, len, key->bytes);
    return word;
}

void dt_secret_forget(struct dt_secret *secret)
{
    sodium_memzero(secret->bytes, sizeof(secret->bytes));
}
