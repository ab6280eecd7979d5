/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_api.h - the functions of NCCL that the module uses, declared as in
 * NCCL's ABI, and the library that has them. No header of NVIDIA's is
 * needed. */
#ifndef DT_GPU_COLL_NCCL_API_H
#define DT_GPU_COLL_NCCL_API_H

#include "base/error.h"

#define DT_NCCL_LIBRARY "libnccl.so.2"

/* The oldest supported version, 2.14, the first with non-blocking
 * communicators. */
#define DT_NCCL_VERSION 21400

/* Result codes. All others are used for their text only. */
enum {
    DT_NCCL_OK = 0,
    DT_NCCL_REMOTE = 6,
    DT_NCCL_IN_PROGRESS = 7,
};

enum dt_nccl_type {
    DT_NCCL_I8 = 0,
    DT_NCCL_U8 = 1,
    DT_NCCL_I32 = 2,
    DT_NCCL_I64 = 4,
    DT_NCCL_F16 = 6,
    DT_NCCL_F32 = 7,
    DT_NCCL_F64 = 8,
    DT_NCCL_BF16 = 9,
};

enum dt_nccl_op {
    DT_NCCL_SUM = 0,
    DT_NCCL_PROD = 1,
    DT_NCCL_MAX = 2,
    DT_NCCL_MIN = 3,
    DT_NCCL_AVG = 4,
};

struct dt_nccl_comm;

struct dt_nccl_id {
    char bytes[128];
};

/* The ncclConfig_t of 2.14. Later versions recognize it by size and version. */
struct dt_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
};
#define DT_NCCL_MAGIC 0xcafebeefu

/* X(return type, symbol, parameters) */
#define DT_NCCL_FUNCTIONS(X)                                                   \
    X(int, ncclGetVersion, (int *version))                                     \
    X(int, ncclGetUniqueId, (struct dt_nccl_id * id))                          \
    X(int, ncclCommInitRankConfig,                                             \
      (struct dt_nccl_comm * *comm, int size, struct dt_nccl_id id, int rank,  \
       struct dt_nccl_config *config))                                         \
    X(int, ncclCommFinalize, (struct dt_nccl_comm * comm))                     \
    X(int, ncclCommDestroy, (struct dt_nccl_comm * comm))                      \
    X(int, ncclCommAbort, (struct dt_nccl_comm * comm))                        \
    X(int, ncclCommGetAsyncError, (struct dt_nccl_comm * comm, int *code))     \
    X(const char *, ncclGetErrorString, (int code))                            \
    X(const char *, ncclGetLastError, (struct dt_nccl_comm * comm))            \
    X(int, ncclAllReduce,                                                      \
      (const void *send, void *recv, size_t count, enum dt_nccl_type type,     \
       enum dt_nccl_op op, struct dt_nccl_comm *comm, dt_stream_t stream))     \
    X(int, ncclReduce,                                                         \
      (const void *send, void *recv, size_t count, enum dt_nccl_type type,     \
       enum dt_nccl_op op, int root, struct dt_nccl_comm *comm,                \
       dt_stream_t stream))                                                    \
    X(int, ncclReduceScatter,                                                  \
      (const void *send, void *recv, size_t count, enum dt_nccl_type type,     \
       enum dt_nccl_op op, struct dt_nccl_comm *comm, dt_stream_t stream))     \
    X(int, ncclBroadcast,                                                      \
      (const void *send, void *recv, size_t count, enum dt_nccl_type type,     \
       int root, struct dt_nccl_comm *comm, dt_stream_t stream))               \
    X(int, ncclAllGather,                                                      \
      (const void *send, void *recv, size_t count, enum dt_nccl_type type,     \
       struct dt_nccl_comm *comm, dt_stream_t stream))                         \
    X(int, ncclSend,                                                           \
      (const void *buf, size_t count, enum dt_nccl_type type, int peer,        \
       struct dt_nccl_comm *comm, dt_stream_t stream))                         \
    X(int, ncclRecv,                                                           \
      (void *buf, size_t count, enum dt_nccl_type type, int peer,              \
       struct dt_nccl_comm *comm, dt_stream_t stream))                         \
    X(int, ncclGroupStart, (void))                                             \
    X(int, ncclGroupEnd, (void))

struct dt_nccl_api {
    int version;
#define DT_NCCL_MEMBER(type, name, params) type(*name) params;
    DT_NCCL_FUNCTIONS(DT_NCCL_MEMBER)
#undef DT_NCCL_MEMBER
};

/* Load the library, which the program may have loaded already, and which stays
 * loaded, and find its functions. UNSUPPORTED, with the reason: there is no
 * NCCL, or it is too old. */
dt_result_t dt_nccl_find(struct dt_nccl_api *api, struct dt_error *err);

/* Convert a code of NCCL to a result, with an error text that names it. doing
 * says what failed: "begin". SUCCESS for DT_NCCL_OK. comm is NULL, or the
 * communicator whose last error is added to the text. */
dt_result_t dt_nccl_error(const struct dt_nccl_api *api,
                          struct dt_nccl_comm *comm, int code,
                          const char *doing, struct dt_error *err);

#endif
