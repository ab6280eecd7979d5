/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.h - what the parts of the program pmix-client share. */
#ifndef PMIX_CLIENT_H
#define PMIX_CLIENT_H

#include <pmix.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern pmix_proc_t self, everybody; /* everybody: the wildcard */
extern uint32_t size;               /* of the job */

/* So many seconds nothing here takes, however busy the machine. */
#define LONG_S 120

/* Complain if it is not so, and fail in the end. */
#define OK(call)         check((call), PMIX_SUCCESS, #call, __LINE__)
#define IS(call, wanted) check((call), (wanted), #call, __LINE__)
#define TRUE(cond)       check((cond) ? 0 : 1, 0, #cond, __LINE__)
void check(int rc, int wanted, const char *what, int line);

pmix_proc_t proc_of(pmix_rank_t rank);
bool is_near(pmix_rank_t rank); /* on our node? */
void put(const char *key, uint32_t number);
int get(pmix_rank_t rank, const char *key, uint32_t *number);
/* A string is from malloc. */
int job_key(const pmix_proc_t *proc, const char *key, pmix_value_t *copy);
int fence(const pmix_proc_t *procs, size_t count, bool data);
int fence_all(void);
void wait_for(atomic_int *counter, int count); /* but not for ever */

/* pmix-client-board.c; lookup waits if seconds > 0 */
int publish(const char *key, const char *text, pmix_data_range_t range,
            pmix_persistence_t persistence);
int lookup(const char *key, const char *wanted, int seconds);

/* pmix-client-event.c: events received since listen_to */
extern atomic_int received;          /* how often */
extern _Atomic pmix_rank_t heard_of; /* the first rank */
extern atomic_int heard_code, heard_life;
void listen_to(pmix_status_t code);

/* Modes. */
void values(void), local(void), board(void), die_board(void), die_root(void);
void die(void), die_fence(void), leave(void), finish(void), notify(void);
void events(void), rejoin(void), heartbeat(void), die_two(void);
void absent(void), orphan(void);
void meet_all(void), meet_die(void), meet_dying(void), meet_late(void);
void meet_few(void), meet_finish(void);
void table(void), refusals(void), cleanup(void), terminate(void);

#endif
