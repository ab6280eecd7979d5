/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sums.c - a job for stranger.t that checks every element it receives:
 *
 *   sums DIRECTORY COUNT...   allreduces of so many numbers, in turns
 *
 * Rank 0 makes the file DIRECTORY/ready after the first steps. The ranks
 * continue until it finds the file DIRECTORY/end, and then LAST steps more,
 * with alltoalls, which need connections between ranks that have had none. A
 * page at ADDRESS belongs to each rank alone. The line that a rank prints at
 * its end depends on no clock. */
#include <dt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { READY = 20, LAST = 100, EACH = 1000, PAGE = 4096, LIMIT = 300 };
#define ADDRESS ((void *)0x200000000000)

static int rank, size, wrong;
static char path[4096];

static const char *in(const char *directory, const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static void must(dt_result_t rc, const char *what)
{
    if (!rc)
        return;
    fprintf(stderr, "sums: rank %d: %s: %s\n", rank, what, dt_last_error());
    exit(1);
}

static int64_t number(int from, size_t i, int64_t step)
{
    return (int64_t)i * (from + 1) + step;
}

static void compare(int64_t got, int64_t wanted, const char *what)
{
    if (got != wanted && wrong++ == 0)
        fprintf(stderr, "sums: rank %d: %s: %lld instead of %lld\n", rank, what,
                (long long)got, (long long)wanted);
}

static void sum(int64_t *mine, int64_t *all, size_t count, int64_t step)
{
    int64_t ranks = (int64_t)size * (size + 1) / 2;
    for (size_t i = 0; i < count; i++)
        mine[i] = number(rank, i, step);
    must(dt_allreduce(mine, all, count, DT_DTYPE_I64, DT_OP_SUM,
                      dt_comm_world(), DT_STREAM_NONE),
         "allreduce");
    for (size_t i = 0; i < count; i++)
        compare(all[i], (int64_t)i * ranks + step * size, "allreduce");
}

static void exchange(int64_t *mine, int64_t *all, int64_t step)
{
    for (size_t i = 0; i < (size_t)EACH * (size_t)size; i++)
        mine[i] = number(rank, i, step);
    must(dt_alltoall(mine, all, EACH, DT_DTYPE_I64, dt_comm_world(),
                     DT_STREAM_NONE),
         "alltoall");
    for (size_t i = 0; i < (size_t)EACH * (size_t)size; i++)
        compare(all[i],
                number((int)(i / EACH), (size_t)rank * EACH + i % EACH, step),
                "alltoall");
}

/* Has rank 0 found the file? All ranks get the same answer. */
static bool ends(const char *directory)
{
    int64_t mine = rank == 0 && access(in(directory, "end"), F_OK) == 0, all;
    must(dt_allreduce(&mine, &all, 1, DT_DTYPE_I64, DT_OP_SUM, dt_comm_world(),
                      DT_STREAM_NONE),
         "the last allreduce of a step");
    return all != 0;
}

static void *page(void)
{
    void *at = mmap(ADDRESS, PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == ADDRESS)
        return at;
    fprintf(stderr, "sums: no page at %p\n", ADDRESS);
    exit(1);
}

static void make(const char *name)
{
    FILE *file = fopen(name, "w");
    if (file)
        fclose(file);
}

/* The steps; the arguments are those of the program. */
static void run(int argc, char **argv, int64_t *mine, int64_t *all)
{
    int last = 0;
    for (int64_t step = 0; last < LAST; step++) {
        for (int i = 2; i < argc; i++)
            sum(mine, all, strtoul(argv[i], NULL, 10), step);
        if (last || ends(argv[1])) {
            exchange(mine, all, step);
            last++;
        }
        if (rank == 0 && step == READY)
            make(in(argv[1], "ready"));
    }
}

int main(int argc, char **argv)
{
    static char zeros[PAGE];
    alarm(LIMIT);
    must(dt_init(), "dt_init");
    rank = dt_rank(), size = dt_size();
    size_t most = (size_t)EACH * (size_t)size;
    for (int i = 2; i < argc; i++)
        most = strtoul(argv[i], NULL, 10) > most ? strtoul(argv[i], NULL, 10)
                                                 : most;
    int64_t *mine = calloc(most, sizeof(*mine));
    int64_t *all = calloc(most, sizeof(*all));
    if (argc < 3 || !mine || !all)
        return 2;
    const void *memory = page();
    run(argc, argv, mine, all);
    printf("rank %d: %d last steps, %d wrong numbers, memory %s\n", rank, LAST,
           wrong, memcmp(memory, zeros, PAGE) ? "overwritten" : "untouched");
    must(dt_finalize(), "dt_finalize");
    return wrong != 0;
}
