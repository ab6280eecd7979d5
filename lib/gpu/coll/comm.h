/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comm.h - what a communicator has for its GPU, inside.
 *
 * Work goes through lanes: one for all collectives, and one for each peer that
 * is sent to, or received from, so that none of them holds up another. What is
 * in a lane is done in order, in chunks that are numbered 1, 2, 3 ... for ever:
 *
 *   out stream             our thread                      in stream
 *   wait: free >= k - 4
 *   copy to pinned slot
 *   ready = k              start chunk k on the host
 *                          done = k when it is over        wait: done >= k
 *                                                          copy from the slot
 *                                                          free = k
 *
 * So a chunk is over, and so is a work with its last one, when free says so.
 * Only done is written by the host. A work that is handed to the network where
 * it is (direct.c) has the same chunks without the copies. */
#ifndef DT_GPU_COLL_COMM_H
#define DT_GPU_COLL_COMM_H

#include <time.h>

#include "gpu/coll/coll.h"
#include "gpu/coll/nccl.h"
#include "gpu/coll/node.h"

#define DT_GPU_SLOTS 4

/* Bytes of a slot, one for each direction. */
#define DT_GPU_SLOT     ((size_t)4 << 20)
#define DT_GPU_SLOT_P2P ((size_t)2 << 20)

/* Bytes of a row in a chunk that needs no slot: each shows that all is well. */
#define DT_GPU_DIRECT_ROW ((size_t)16 << 20)

/* Tags of messages of our own, next to that of dt_send and dt_recv. */
#define DT_GPU_TAG_P2P      (DT_TAG_P2P - 1)
#define DT_GPU_TAG_ALL      (DT_TAG_P2P - 2) /* collectives */
#define DT_GPU_TAG_SHUTDOWN (DT_TAG_P2P - 3)

/* The user's buffer at one end of a work: rows, of which a chunk has the same
 * columns. */
struct dt_gpu_side {
    char *buf;
    size_t rows;  /* 0: nothing is copied here */
    size_t pitch; /* bytes from row to row of an even form */
    /* of an uneven one: elements; they are the work's */
    size_t *counts, *displs;
    enum dt_tl_memory memory; /* of a direct work */
};

struct dt_gpu_work {
    struct dt_request base;   /* comm, shape, on_device, status */
    struct dt_gpu_work *next; /* in the list where it is */
    struct dt_gpu_lane *lane; /* NULL: an exchange, of the node or NCCL's */
    bool by_nccl;
    dt_stream_t stream;
    bool held;              /* somebody else will free it */
    uint32_t ticket;        /* its last chunk; or of the exchange */
    uint32_t first, chunks; /* its first chunk; how many */
    size_t columns;         /* elements of a row in a chunk */
    struct dt_gpu_side out, in;
    size_t *scratch; /* counts of a chunk, and where they begin */
    bool direct;
    uint32_t half; /* its chunks before those of a bcast's second half, or 0 */
};

struct dt_gpu_works {
    struct dt_gpu_work *first, **last;
};

/* A chunk on its way between the ranks. */
struct dt_gpu_chunk {
    struct dt_request *request; /* either this */
    struct dt_tl_req *messages; /* or these */
    size_t nmessages;
    bool direct; /* they are in memory of the GPU */
};

struct dt_gpu_lane {
    struct dt_gpu_lane *next;
    struct dt_gpu_comm *gpu;
    enum dt_coll kind; /* SEND, RECV; ALLREDUCE stands for all others */
    size_t peer;
    bool direct; /* all works are, to this peer */
    dt_stream_t out, in;
    void *page;                    /* of the flags, which are far apart */
    uint32_t *ready, *done, *free; /* see above */
    char *slots[2];                /* out, in; NULL: not in this direction */
    size_t slot;
    uint32_t queued, started, finished; /* the highest of each */
    struct dt_gpu_works works;
    struct dt_gpu_work *starting; /* that of chunk started + 1 */
    struct dt_gpu_chunk chunks[DT_GPU_SLOTS];
};

/* The world's. */
struct dt_gpu_device {
    struct dt_device base; /* first */
    struct dt_gpu *gpu;
    struct dt_gpu_comm *comms; /* with the lock of the world */
};

struct dt_gpu_comm {
    struct dt_gpu_comm *next; /* of the device */
    struct dt_comm *comm;
    struct dt_gpu *gpu;
    int device;
    bool connected;       /* the following three are there */
    struct dt_comm *twin; /* for host collectives; NULL: size is 1 */
    struct dt_gpu_nccl *nccl;
    struct dt_gpu_node *node;
    char reason[512]; /* why node is NULL */
    bool direct;      /* what only moves goes so, on all ranks */
    size_t flying;    /* chunks that are direct, under way */
    struct dt_tune_rule rules[DT_TUNE_COLLS]; /* which of them calls go */
    bool missed[DT_TUNE_WAYS]; /* rank 0 has told why it goes on without */
    struct dt_gpu_lane *lanes;
    struct dt_gpu_works exchanges; /* of the node, and NCCL's, under way */
    struct dt_gpu_works ended;     /* held, complete */
    uint64_t steps;                /* of the twin, when last looked at */
    bool captured;                 /* some exchange is in a graph */
    bool failed;                   /* everything has been let go */
    /* A message of each peer that comes when it leaves: so the transports know
     * that somebody waits for it, also while only GPUs do. */
    struct dt_tl_req *shutdown; /* size receives, size sends */
    char *shutdown_byte;
    bool expecting;
    struct timespec since; /* nothing has moved that waits for peers */
    /* Something is put there now and then, to see whether the GPU lives. */
    dt_stream_t probe;
    uint32_t *flag;
    struct timespec asked;
    bool asking; /* somebody does it, without the lock */
};

static inline struct dt_gpu_device *
dt_gpu_device_of(const struct dt_world *world)
{
    return (struct dt_gpu_device *)world->device;
}

static inline struct dt_gpu_comm *dt_gpu_comm_of(const struct dt_comm *comm)
{
    return comm->device;
}

static inline struct dt_gpu_work *dt_gpu_work_of(struct dt_request *request)
{
    return (struct dt_gpu_work *)request;
}

/* Has the number in a flag come to this one? */
static inline bool dt_gpu_reached(const uint32_t *flag, uint32_t number)
{
    return (int32_t)(__atomic_load_n(flag, __ATOMIC_ACQUIRE) - number) >= 0;
}

/* Elements that the chunk from this column on has of a row of count. */
static inline size_t dt_gpu_clip(size_t count, size_t first, size_t columns)
{
    if (count <= first)
        return 0;
    return count - first < columns ? count - first : columns;
}

/* ---- join.c ---- */

/* The part of comm for this device; local. Starts the thread. Errors:
 * INVALID_ARG (it has another device), NO_MEMORY, SYSTEM. */
dt_result_t dt_gpu_join(struct dt_comm *comm, int device,
                        struct dt_gpu_comm **gpu, struct dt_error *err);

/* Everything that collectives need; collective, blocks. */
dt_result_t dt_gpu_connect(struct dt_gpu_comm *gpu, struct dt_error *err);

/* The lane for such a call; local. */
dt_result_t dt_gpu_lane(struct dt_gpu_comm *gpu, enum dt_coll coll, size_t peer,
                        struct dt_gpu_lane **lane, struct dt_error *err);

/* ---- ways.c ---- */

/* Open nccl and node, as the user of the first rank, or the
 * tuning parameters, want them, and as they are to be had; twin is there.
 * Collective, blocks. Errors, on all ranks: those of the collectives,
 * NO_MEMORY, INVALID_ARG (DT_GPU_WAY), UNSUPPORTED (not to be had, and that is
 * strict). */
dt_result_t dt_gpu_open_ways(struct dt_gpu_comm *gpu, struct dt_comm *twin,
                             struct dt_error *err);

/* Which of them this call goes; neither: through the host. The same on all
 * ranks. */
enum dt_gpu_route { DT_GPU_STAGED, DT_GPU_BY_NODE, DT_GPU_BY_NCCL };
enum dt_gpu_route dt_gpu_route_of(const struct dt_gpu_comm *gpu,
                                  const struct dt_call *call);

/* Could all ranks do it? Every rank fails if one does. Collective, blocks. */
dt_result_t dt_gpu_agree(struct dt_comm *twin, dt_result_t mine,
                         const struct dt_error *why, struct dt_error *err);

/* ---- work.c ---- */

void dt_gpu_works_init(struct dt_gpu_works *works);
void dt_gpu_works_add(struct dt_gpu_works *works, struct dt_gpu_work *work);
void dt_gpu_works_take(struct dt_gpu_works *works, struct dt_gpu_work *work);

/* A held work of this call, with what its counts point to copied. */
dt_result_t dt_gpu_work_create(const struct dt_call *call,
                               struct dt_gpu_work **work, struct dt_error *err);
void dt_gpu_work_free(struct dt_gpu_work *work);

/* It is over: out of its list, and freed unless it is held. With the lock. */
void dt_gpu_work_retire(struct dt_gpu_works *works, struct dt_gpu_work *work,
                        dt_result_t status);

/* Its holder lets it go. With the lock. */
void dt_gpu_work_release(struct dt_gpu_work *work);

/* ---- direct.c ---- */

/* Do messages with this peer go so, on which its end agrees; could they with
 * all of them? Local. */
bool dt_gpu_direct_to(const struct dt_gpu_comm *gpu, size_t peer);
bool dt_gpu_direct_all(const struct dt_gpu_comm *gpu);

/* Does this work go so? Equal on all ranks that it needs. */
bool dt_gpu_direct_serves(const struct dt_gpu_lane *lane,
                          const struct dt_shape *shape);

/* Make it one that does: how many chunks has it? Errors: of the driver. */
dt_result_t dt_gpu_direct_open(const struct dt_gpu_comm *gpu,
                               struct dt_gpu_work *work, uint32_t *chunks,
                               struct dt_error *err);

/* What is put on the out stream in front of the chunk. */
dt_result_t dt_gpu_direct_out(const struct dt_gpu_lane *lane,
                              const struct dt_gpu_work *work, uint32_t number,
                              struct dt_error *err);

/* The host's part; with the lock. */
dt_result_t dt_gpu_direct_start(struct dt_gpu_lane *lane,
                                const struct dt_gpu_work *work, uint32_t number,
                                struct dt_error *err);

/* ---- stage.c, solo.c: put a work on streams ---- */

dt_result_t dt_gpu_stage(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                         const struct dt_call *call, struct dt_error *err);
dt_result_t dt_gpu_solo(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                        const struct dt_call *call, struct dt_error *err);

/* ---- chunk.c: the host's part; with the lock ---- */

/* A message of a chunk. */
struct dt_gpu_message {
    bool send;
    size_t peer;
    uint64_t slot; /* of its tag */
    char *buf;
    size_t len; /* 0: there is none */
    enum dt_tl_memory memory;
};
void dt_gpu_message_start(struct dt_gpu_lane *lane, struct dt_gpu_chunk *chunk,
                          const struct dt_gpu_message *message);

/* Start a chunk of the work, by its number. */
dt_result_t dt_gpu_chunk_start(struct dt_gpu_lane *lane,
                               struct dt_gpu_work *work, uint32_t number,
                               struct dt_error *err);

/* Is it over? DT_IN_PROGRESS, or its result. */
dt_result_t dt_gpu_chunk_test(struct dt_gpu_lane *lane, uint32_t number,
                              struct dt_error *err);

/* ---- shutdown.c: with the lock ---- */

/* Make room for it. Then wait for the farewell of all peers; say it to them;
 * have all said it? Where it was not started nothing happens. */
dt_result_t dt_gpu_shutdown_open(struct dt_gpu_comm *gpu, struct dt_error *err);
void dt_gpu_shutdown_expect(struct dt_gpu_comm *gpu);
void dt_gpu_shutdown_send(struct dt_gpu_comm *gpu);
bool dt_gpu_shutdown_done(const struct dt_gpu_comm *gpu);
void dt_gpu_shutdown_close(struct dt_gpu_comm *gpu);

/* ---- liveness.c ---- */

/* What that takes, where it is not there yet; local. */
dt_result_t dt_gpu_liveness_open(struct dt_gpu_comm *gpu, struct dt_error *err);
void dt_gpu_liveness_close(struct dt_gpu_comm *gpu);

/* Do the GPUs and NCCL live, while something is under way? Fails the world if
 * one does not. With the lock, which may be given up meanwhile. */
void dt_gpu_check_alive(struct dt_world *world);

/* ---- drive.c ---- */

/* Put it into a lane, with so many chunks, or among the exchanges: from now on
 * it is under way. Takes the lock. Error: the failure of the world; then
 * everything of its communicator has been let go. */
dt_result_t dt_gpu_append(struct dt_gpu_lane *lane, struct dt_gpu_work *work,
                          uint32_t chunks, struct dt_error *err);
dt_result_t dt_gpu_append_exchange(struct dt_gpu_work *work,
                                   struct dt_error *err);

/* It is a part of a graph: over, as far as the host will ever know. Takes the
 * lock. */
void dt_gpu_skip(struct dt_gpu_work *work);

/* Is anything of it under way? Let go everything that a GPU waits for: all that
 * is under way ends so. With the lock. */
bool dt_gpu_works_on(const struct dt_gpu_comm *gpu);
void dt_gpu_let_go(struct dt_gpu_comm *gpu, dt_result_t why);

/* ---- host.c ---- */

/* Call libdt through this table from now on. It must stay valid. */
struct dt_gpu_host;
void dt_gpu_set_host(const struct dt_gpu_host *functions);

#endif
