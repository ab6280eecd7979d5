/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* secret.h - how ranks know each other from strangers. Each rank draws a secret
 * and puts it on its card, which travels through the PMIx server and reaches
 * nobody but the ranks of this step. Two ranks make a key of both secrets, by
 * which each proves to the other that it has read the cards.
 *
 * Keyed hashes are libsodium's: BLAKE2b (RFC 7693) for proofs and keys, SipHash
 * (Aumasson and Bernstein, 2012) for 64 bits. */
#ifndef DT_TL_SECRET_H
#define DT_TL_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DT_SECRET_BYTES 32

struct dt_secret {
    unsigned char bytes[DT_SECRET_BYTES];
};

/* Draw a secret from the kernel. SYSTEM: libsodium cannot start. */
dt_result_t dt_secret_draw(struct dt_secret *secret, struct dt_error *err);

/* The key of two ranks for one purpose; both pass the secret of the rank with
 * the lower number first. */
void dt_secret_pair(const struct dt_secret *lower,
                    const struct dt_secret *higher, const char *purpose,
                    struct dt_secret *key);

/* A proof that the sender of these bytes has the key. */
void dt_secret_prove(const struct dt_secret *key, const void *bytes, size_t len,
                     struct dt_secret *proof);

/* Are they equal? Takes the same time for all. */
bool dt_secret_equal(const struct dt_secret *a, const struct dt_secret *b);

/* 64 bits for these bytes that nobody without the key can guess; a few
 * nanoseconds for short ones. */
uint64_t dt_secret_word(const struct dt_secret *key, const void *bytes,
                        size_t len);

/* Overwrite a secret that is not needed any more. */
void dt_secret_forget(struct dt_secret *secret);

#endif
