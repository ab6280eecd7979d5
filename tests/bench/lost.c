/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* lost.c - how long a load takes after a node is lost, beside what its bytes
 * take on the link:
 *
 *   lost IFACE [MiB]   one rank on each node, which has so many MiB (64) and
 *                      is connected by IFACE; srun --dt-ckpt, --dt-ckpt-flush
 *                      and --dt-ckpt-redundancy say the rest
 *
 * link: dt_send of one node's MiB from the first node to the last one
 * all:  dt_ckpt_load while all nodes have their files
 * lost: the same when the last node has lost its disk and its memory, as a new
 *       one in its place; beside 1.2 times what the link takes for one node's
 *       bytes, without which that node cannot do, and 50 ms; and beside the
 *       same for the bytes that the interface with the most of them has counted
 *       in one direction
 *
 * One after the other in each round, paired; the medians are printed, and the
 * median of the ratios. */
#include <unistd.h>

#include "job.h"

enum { TENSORS = 16 };

enum { LINK, ALL, LOST, COUNTED, KINDS };

struct bench {
    const char *iface, *dir;
    size_t bytes; /* of one node */
    char *data;   /* all tensors */
    char *tensor[TENSORS];
    bool new; /* this is the node that is lost */
};

/* ---- what is to be saved ---- */

static dt_ckpt_t open_data(const struct bench *b)
{
    return open_all(NULL, b->tensor, TENSORS, b->bytes / TENSORS);
}

/* Each node's own, and another one at each step. */
static char content(int64_t step, size_t at)
{
    return (char)((uint64_t)step * 17 + (uint64_t)dt_rank() * 5 + at / 4096);
}

static void fill(const struct bench *b, int64_t step)
{
    for (size_t at = 0; at < b->bytes; at += 4096)
        memset(b->data + at, content(step, at), 4096);
}

static bool holds(const struct bench *b, int64_t step)
{
    for (size_t at = 0; at < b->bytes; at += 64)
        if (b->data[at] != content(step, at))
            return false;
    return true;
}

static void save(const struct bench *b, int64_t step)
{
    fill(b, step);
    dt_ckpt_t ckpt = open_data(b);
    save_all(ckpt, step);
    dt_ckpt_close(ckpt);
}

/* ---- what is timed ---- */

static double load(const struct bench *b, int64_t step)
{
    memset(b->data, 0, b->bytes);
    dt_ckpt_t ckpt = open_data(b);
    double took = time_load(ckpt, step);
    need(holds(b, step), "what was loaded is wrong");
    dt_ckpt_close(ckpt);
    return took;
}

static double time_link(const struct bench *b)
{
    int last = dt_size() - 1;
    dt_result_t rc = DT_SUCCESS;
    meet();
    double begun = now();
    if (dt_rank() == 0)
        rc = dt_send(b->data, b->bytes, DT_DTYPE_U8, last, dt_comm_world(),
                     DT_STREAM_NONE);
    else if (dt_rank() == last)
        rc = dt_recv(b->data, b->bytes, DT_DTYPE_U8, 0, dt_comm_world(),
                     DT_STREAM_NONE);
    need(rc == DT_SUCCESS, "send");
    meet();
    return now() - begun;
}

/* Bytes that have come, or gone, on the interface. */
static double count(const struct bench *b, const char *way)
{
    char path[256];
    double bytes = 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s_bytes",
             b->iface, way);
    FILE *file = fopen(path, "r");
    need(file && fscanf(file, "%lf", &bytes) == 1, path);
    fclose(file);
    return bytes;
}

/* ---- the node that is lost ---- */

static void lose(const struct bench *b)
{
    char memory[160];
    const char *id = dt_run_id();
    snprintf(memory, sizeof(memory), "/dev/shm/slurm-dt-%u/%s",
             (unsigned)geteuid(), *id ? id : "none");
    if (b->new) {
        clear(b->dir);
        clear(memory);
    }
}

/* ---- all of it ---- */

static double largest(double mine)
{
    double all = 0;
    need(dt_allreduce(&mine, &all, 1, DT_DTYPE_F64, DT_OP_MAX, dt_comm_world(),
                      DT_STREAM_NONE) == DT_SUCCESS,
         "allreduce");
    return all;
}

static void measure(const struct bench *b, int64_t step, double *took)
{
    save(b, step);
    took[LINK] = time_link(b);
    took[ALL] = load(b, step);
    lose(b);
    double in = count(b, "rx"), out = count(b, "tx");
    took[LOST] = load(b, step);
    in = count(b, "rx") - in;
    out = count(b, "tx") - out;
    took[COUNTED] = largest(in > out ? in : out);
    need(took[COUNTED] >= (double)b->bytes, "it came some other way");
}

static void print(const struct bench *b, double took[KINDS][ROUNDS])
{
    const char *scheme = getenv("DT_CKPT_REDUNDANCY");
    double mib = (double)b->bytes / (1 << 20);
    double goal[2][ROUNDS], ratio[2][ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double times = took[COUNTED][i] / (double)b->bytes;
        goal[0][i] = 1.2 * took[LINK][i] + 0.05;
        goal[1][i] = 1.2 * times * took[LINK][i] + 0.05;
        for (int k = 0; k < 2; k++)
            ratio[k][i] = took[LOST][i] / goal[k][i];
    }
    printf("%s, %d nodes of %.0f MiB, the last one lost\n",
           scheme ? scheme : "none", dt_num_nodes(), mib);
    printf("link     %8.1f ms %8.1f MiB/s\n", 1e3 * median(took[LINK]),
           mib / median(took[LINK]));
    printf("all      %8.1f ms\n", 1e3 * median(took[ALL]));
    printf("lost     %8.1f ms, %6.1f MiB needed:  goal %8.1f ms   "
           "x the goal %.3f\n",
           1e3 * median(took[LOST]), mib, 1e3 * median(goal[0]),
           median(ratio[0]));
    printf("                      %6.1f MiB counted: goal %8.1f ms   "
           "x the goal %.3f\n",
           median(took[COUNTED]) / (1 << 20), 1e3 * median(goal[1]),
           median(ratio[1]));
}

int main(int argc, char **argv)
{
    struct bench b = {.iface = argc > 1 ? argv[1] : "",
                      .dir = getenv("DT_CKPT")};
    double took[KINDS][ROUNDS], once[KINDS];
    if (argc < 2 || !b.dir) {
        fprintf(stderr, "usage: srun --dt-ckpt=... lost IFACE [MiB]\n");
        return 64;
    }
    need(dt_init() == DT_SUCCESS, "dt_init");
    need(dt_size() > 1 && dt_size() == dt_num_nodes(), "one rank on each node");
    b.bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 64) << 20;
    b.data = malloc(b.bytes);
    need(b.bytes > 0 && b.data, "memory");
    for (size_t i = 0; i < TENSORS; i++)
        b.tensor[i] = b.data + i * (b.bytes / TENSORS);
    b.new = dt_rank() == dt_size() - 1;
    for (int i = -1; i < ROUNDS; i++) {
        measure(&b, i + 2, once);
        for (int k = 0; k < KINDS && i >= 0; k++)
            took[k][i] = once[k];
    }
    if (dt_rank() == 0)
        print(&b, took);
    meet();
    clear(b.dir);
    free(b.data);
    return dt_finalize() == DT_SUCCESS ? 0 : 1;
}
