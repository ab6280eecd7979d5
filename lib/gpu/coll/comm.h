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

/* Bytes of a slot. Each direction has its own slots. */
#define DT_GPU_SLOT     ((size_t)4 << 20)
#define DT_GPU_SLOT_P2P ((size_t)2 << 20)

/* Bytes of a row in a chunk of a direct work, which needs no slot. Each
 * complete chunk shows that the ranks make progress. */
#define DT_GPU_DIRECT_ROW ((size_t)16 << 20)

/* Tags of this module's messages, next to that of dt_send and dt_recv. */
#define DT_GPU_TAG_P2P      (DT_TAG_P2P - 1)
#define DT_GPU_TAG_ALL      (DT_TAG_P2P - 2) /* collectives */
#define DT_GPU_TAG_SHUTDOWN (DT_TAG_P2P - 3)

/* The user's buffer at one end of a work, as rows. A chunk has the same columns
 * of each row. */
struct dt_gpu_side {
    char *buf;
    size_t rows;  /* 0: this rank copies nothing here */
    size_t pitch; /* even forms: bytes from row to row */
    /* uneven forms: elements of each row; owned by the work */
    size_t *counts, *displs;
    enum dt_tl_memory memory; /* direct works only */
};

struct dt_gpu_work {
    struct dt_request base;   /* comm, shape, on_device, status */
    struct dt_gpu_work *next; /* in the list that has the work */
    struct dt_gpu_lane *lane; /* NULL: an exchange, of the node or of NCCL */
    bool by_nccl;
    dt_stream_t stream;
    bool held;              /* a holder will release it */
    uint32_t ticket;        /* number of its last chunk, or of the exchange */
    uint32_t first, chunks; /* number of its first chunk; number of chunks */
    size_t columns;         /* elements of a row in a chunk */
    struct dt_gpu_side out, in;
    size_t *scratch; /* counts and displacements of a chunk */
    bool direct;
    uint32_t half; /* chunks before those of a bcast's second half, or 0 */
};

struct dt_gpu_works {
    struct dt_gpu_work *first, **last;
};

/* A chunk in transfer between the ranks: a host collective, or messages. */
struct dt_gpu_chunk {
    struct dt_request *request; /* the host collective, or NULL */
    struct dt_tl_req
        *messages; /* the messages, where there is no host collective */
    size_t nmessages;
    bool direct; /* the messages are in GPU memory */
};

struct dt_gpu_lane {
    struct dt_gpu_lane *next;
    struct dt_gpu_comm *gpu;
    enum dt_coll kind; /* SEND, RECV; ALLREDUCE: all collectives */
    size_t peer;
    bool direct; /* all works of this lane are direct */
    dt_stream_t out, in;
    void *page; /* the memory of the flags, in separate cache lines */
    uint32_t *ready, *done, *free; /* as above */
    char *slots[2];                /* out, in; NULL: unused direction */
    size_t slot;
    uint32_t queued, started, finished; /* highest chunk number of each state */
    struct dt_gpu_works works;
    struct dt_gpu_work *starting; /* the work of chunk started + 1 */
    struct dt_gpu_chunk chunks[DT_GPU_SLOTS];
};

/* The device of a world. */
struct dt_gpu_device {
    struct dt_device base;     /* first */
    struct dt_gpu_comm *comms; /* protected by the lock of the world */
};

struct dt_gpu_comm {
    struct dt_gpu_comm *next; /* in the list of the device */
    struct dt_comm *comm;
    struct dt_gpu *gpu;
    int device;
    bool connected;       /* twin, nccl and node are set */
    struct dt_comm *twin; /* for host collectives; NULL where size is 1 */
    struct dt_gpu_nccl *nccl;
    struct dt_gpu_node *node;
    char reason[512]; /* why node is NULL */
    bool direct;      /* works without arithmetic are direct, on all ranks */
    size_t flying;    /* direct chunks in transfer */
    struct dt_tune_rule
        rules[DT_TUNE_COLLS];  /* the way by collective and size */
    bool missed[DT_TUNE_WAYS]; /* rank 0 has reported why this way is missing */
    struct dt_gpu_lane *lanes;
    struct dt_gpu_works exchanges; /* of the node and of NCCL, under way */
    struct dt_gpu_works ended;     /* complete, but held */
    uint64_t steps;                /* of the twin, at the last check */
    bool captured;                 /* some exchange was captured into a graph */
    bool failed;                   /* all waits of the GPU were released */
    /* Shutdown messages: a message that each peer sends when it leaves. The
     * receives tell the transports that this rank waits for the peer, also
     * while only GPUs wait. */
    struct dt_tl_req *shutdown; /* size receives, size sends */
    char *shutdown_byte;
    bool expecting;
    struct timespec since; /* start of the time without progress */
    /* liveness.c puts a signal on this stream now and then, to check that the
     * GPU works. */
    dt_stream_t probe;
    uint32_t *flag;
    struct timespec asked;
    bool asking; /* a thread checks, without the lock */
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

/* Has the flag reached this number? Numbers wrap. */
static inline bool dt_gpu_reached(const uint32_t *flag, uint32_t number)
{
    return (int32_t)(__atomic_load_n(flag, __ATOMIC_ACQUIRE) - number) >= 0;
}

/* Elements of a row of count elements that are in the chunk of `columns`
 * columns that starts at column `first`. */
static inline size_t dt_gpu_clip(size_t count, size_t first, size_t columns)
{
    if (count <= first)
        return 0;
    return count - first < columns ? count - first : columns;
}

/* ---- join.c ---- */

/* Get the state of comm for this device, created at the first call. Local.
 * Starts the progress thread. Errors: INVALID_ARG (comm already uses another
 * device), NO_MEMORY, SYSTEM. */
dt_result_t dt_gpu_join(struct dt_comm *comm, int device,
                        struct dt_gpu_comm **gpu, struct dt_error *err);

/* Set up all that collectives need. Collective, blocks. */
dt_result_t dt_gpu_connect(struct dt_gpu_comm *gpu, struct dt_error *err);

/* Get the lane for a collective, or for messages with peer. Local. */
dt_result_t dt_gpu_lane(struct dt_gpu_comm *gpu, enum dt_coll coll, size_t peer,
                        struct dt_gpu_lane **lane, struct dt_error *err);

/* ---- ways.c ---- */

/* Open the ways nccl and node (ipc), as the user of rank 0 or the tuning
 * parameters ask for them, and as far as they are available. twin must be set.
 * Collective, blocks. Errors, on all ranks: those of the collectives,
 * NO_MEMORY, INVALID_ARG (DT_GPU_WAY), UNSUPPORTED (the way is not available,
 * and DT_GPU_WAY is strict). */
dt_result_t dt_gpu_open_ways(struct dt_gpu_comm *gpu, struct dt_comm *twin,
                             struct dt_error *err);

/* The way of this call. It is the same on all ranks. */
enum dt_gpu_route { DT_GPU_STAGED, DT_GPU_BY_NODE, DT_GPU_BY_NCCL };
enum dt_gpu_route dt_gpu_route_of(const struct dt_gpu_comm *gpu,
                                  const struct dt_call *call);

/* Agree on the result of a local step: every rank gets an error if any rank has
 * one. Collective, blocks. */
dt_result_t dt_gpu_agree(struct dt_comm *twin, dt_result_t mine,
                         const struct dt_error *why, struct dt_error *err);

/* ---- work.c ---- */

void dt_gpu_works_init(struct dt_gpu_works *works);
void dt_gpu_works_add(struct dt_gpu_works *works, struct dt_gpu_work *work);
void dt_gpu_works_take(struct dt_gpu_works *works, struct dt_gpu_work *work);

/* Create a work for this call, held, with copies of the arrays of counts. */
dt_result_t dt_gpu_work_create(const struct dt_call *call,
                               struct dt_gpu_work **work, struct dt_error *err);
void dt_gpu_work_free(struct dt_gpu_work *work);

/* The work is complete: take it out of its list, and free it unless it is held.
 * Call with the lock. */
void dt_gpu_work_retire(struct dt_gpu_works *works, struct dt_gpu_work *work,
                        dt_result_t status);

/* The holder releases the work. Call with the lock. */
void dt_gpu_work_release(struct dt_gpu_work *work);

/* ---- direct.c ---- */

/* Are messages with this peer direct, as its end agrees? Could they be with all
 * peers? Local. */
bool dt_gpu_direct_to(const struct dt_gpu_comm *gpu, size_t peer);
bool dt_gpu_direct_all(const struct dt_gpu_comm *gpu);

/* Is a work of this shape direct? The answer is equal on all ranks that take
 * part. */
bool dt_gpu_direct_serves(const struct dt_gpu_lane *lane,
                          const struct dt_shape *shape);

/* Make the work a direct one, and get its number of chunks. Errors: of the
 * driver. */
dt_result_t dt_gpu_direct_open(const struct dt_gpu_comm *gpu,
                               struct dt_gpu_work *work, uint32_t *chunks,
                               struct dt_error *err);

/* Put the work that precedes this chunk on the out stream. */
dt_result_t dt_gpu_direct_out(const struct dt_gpu_lane *lane,
                              const struct dt_gpu_work *work, uint32_t number,
                              struct dt_error *err);

/* Start the messages of this chunk. Call with the lock. */
dt_result_t dt_gpu_direct_start(struct dt_gpu_lane *lane,
                                const struct dt_gpu_work *work, uint32_t number,
                                struct dt_error *err);

/* ---- stage.c, solo.c: put a work on streams ---- */

dt_result_t dt_gpu_stage(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                         const struct dt_call *call, struct dt_error *err);
dt_result_t dt_gpu_solo(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                        const struct dt_call *call, struct dt_error *err);

/* ---- chunk.c: the host's part; with the lock ---- */

/* One message of a chunk. */
struct dt_gpu_message {
    bool send;
    size_t peer;
    uint64_t slot; /* the slot of its tag */
    char *buf;
    size_t len; /* 0: no message is started */
    enum dt_tl_memory memory;
};
void dt_gpu_message_start(struct dt_gpu_lane *lane, struct dt_gpu_chunk *chunk,
                          const struct dt_gpu_message *message);

/* Start the chunk of this number of the work. */
dt_result_t dt_gpu_chunk_start(struct dt_gpu_lane *lane,
                               struct dt_gpu_work *work, uint32_t number,
                               struct dt_error *err);

/* The state of the chunk: DT_IN_PROGRESS, or its result. */
dt_result_t dt_gpu_chunk_test(struct dt_gpu_lane *lane, uint32_t number,
                              struct dt_error *err);

/* ---- shutdown.c: with the lock ---- */

/* open allocates the messages. expect posts a receive from each peer; send
 * sends to each peer; done is true when all messages have arrived. send, done
 * and close do nothing where nothing was opened or expected. */
dt_result_t dt_gpu_shutdown_open(struct dt_gpu_comm *gpu, struct dt_error *err);
void dt_gpu_shutdown_expect(struct dt_gpu_comm *gpu);
void dt_gpu_shutdown_send(struct dt_gpu_comm *gpu);
bool dt_gpu_shutdown_done(const struct dt_gpu_comm *gpu);
void dt_gpu_shutdown_close(struct dt_gpu_comm *gpu);

/* ---- liveness.c ---- */

/* Create the probe stream and its flag, where they do not exist. Local. */
dt_result_t dt_gpu_liveness_open(struct dt_gpu_comm *gpu, struct dt_error *err);
void dt_gpu_liveness_close(struct dt_gpu_comm *gpu);

/* Check that the GPUs and NCCL work, while any work is under way. Fails the
 * world if one does not. Call with the lock, which may be released and taken
 * again meanwhile. */
void dt_gpu_check_alive(struct dt_world *world);

/* ---- drive.c ---- */

/* Append a work of so many chunks to a lane, or to the exchanges: from now on
 * it is under way. Takes the lock. Error: the failure of the world; then all
 * works of the communicator have been released by dt_gpu_let_go. */
dt_result_t dt_gpu_append(struct dt_gpu_lane *lane, struct dt_gpu_work *work,
                          uint32_t chunks, struct dt_error *err);
dt_result_t dt_gpu_append_exchange(struct dt_gpu_work *work,
                                   struct dt_error *err);

/* The work was captured into a graph: the host treats it as complete, since it
 * does not see the replays. Takes the lock. */
void dt_gpu_skip(struct dt_gpu_work *work);

/* dt_gpu_works_on: is any work of this communicator under way? dt_gpu_let_go:
 * release every wait of the GPU, so that all works end with the error `why`.
 * Call with the lock. */
bool dt_gpu_works_on(const struct dt_gpu_comm *gpu);
void dt_gpu_let_go(struct dt_gpu_comm *gpu, dt_result_t why);

/* ---- host.c ---- */

/* Call libdt through this table from now on. It must stay valid. */
struct dt_gpu_host;
void dt_gpu_set_host(const struct dt_gpu_host *functions);

#endif
