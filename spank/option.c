/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* option.c - the options, in tables, and their values. */
#include "option.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "framework/names.h"

enum { MAX_NUMBER = 1000000000, MAX_NODES = 255, MAX_SIGNAL = 64 };

#define NAMES(UPPER, lower)                                                    \
    .variable = {"SLURM_" UPPER, "SBATCH_" UPPER, "SALLOC_" UPPER},            \
    .inherited = "SLURM_SPANK__SLURM_SPANK_OPTION_dt_" lower,                  \
    .job_control = "_SLURM_SPANK_OPTION_dt_" lower

const struct dt_option_name dt_option_name[DT_NOPTIONS] = {
    [DT_OPTION_GPUS] = {.option = "dt-gpus",
                        .arginfo = "[verbose,]<type>",
                        .usage = "give each task its own GPUs: auto (default), "
                                 "rotate, single, <n>, map:, mask:, none; "
                                 "help explains",
                        .has_arg = 2,
                        NAMES("DT_GPUS", "dt_gpus")},
    [DT_OPTION_NICS] = {.option = "dt-nics",
                        .arginfo = "<type>",
                        .usage = "with --dt-gpus, the NICs of each task: "
                                 "closest (default), rail, map:, none; "
                                 "help explains",
                        .has_arg = 1,
                        NAMES("DT_NICS", "dt_nics")},
    [DT_OPTION_CPU_BIND] = {.option = "dt-cpu-bind",
                            .arginfo = "<type>",
                            .usage = "with --dt-gpus, the CPUs of each task: "
                                     "gpu (default), none; help explains",
                            .has_arg = 1,
                            NAMES("DT_CPU_BIND", "dt_cpu_bind")},
    [DT_OPTION_PMIX] = {.option = "dt-pmix",
                        .arginfo = "<type>",
                        .usage = "the PMIx server of the ranks: server "
                                 "(default), auto, slurm, none; help explains",
                        .has_arg = 2,
                        NAMES("DT_PMIX", "dt_pmix")},
    [DT_OPTION_RENDEZVOUS] = {.option = "dt-rendezvous",
                              .arginfo = "[verbose,]<framework>",
                              .usage = "set the variables by which the ranks "
                                       "of a framework find each other: torch, "
                                       "jax ...; help lists them",
                              .has_arg = 1,
                              NAMES("DT_RENDEZVOUS", "dt_rendezvous")},
    [DT_OPTION_ELASTIC] = {.option = "dt-elastic",
                           .arginfo = "<min>",
                           .usage = "go on when ranks or nodes are lost, as "
                                    "long as <min> tasks are left; help "
                                    "explains",
                           .has_arg = 1,
                           NAMES("DT_ELASTIC", "dt_elastic")},
    [DT_OPTION_CKPT] = {.option = "dt-ckpt",
                        .arginfo = "<dir>",
                        .usage = "where checkpoints are; help explains",
                        .has_arg = 1,
                        NAMES("DT_CKPT", "dt_ckpt")},
    [DT_OPTION_CKPT_FLUSH] = {.option = "dt-ckpt-flush",
                              .arginfo = "<dir>",
                              .usage = "where checkpoints go on to, if "
                                       "--dt-ckpt is a disk of each node's "
                                       "own; help explains",
                              .has_arg = 1,
                              NAMES("DT_CKPT_FLUSH", "dt_ckpt_flush")},
    [DT_OPTION_CKPT_INTERVAL] = {.option = "dt-ckpt-interval",
                                 .arginfo = "<auto|time>",
                                 .usage = "time between checkpoints; help "
                                          "explains",
                                 .has_arg = 1,
                                 NAMES("DT_CKPT_INTERVAL", "dt_ckpt_interval")},
    [DT_OPTION_CKPT_REDUNDANCY] = {.option = "dt-ckpt-redundancy",
                                   .arginfo = "<type>",
                                   .usage = "what is kept on other nodes: none "
                                            "(default), partner, xor:<k>, "
                                            "rs:<k>+<m>; help explains",
                                   .has_arg = 1,
                                   NAMES("DT_CKPT_REDUNDANCY",
                                         "dt_ckpt_redundancy")},
    [DT_OPTION_CKPT_KEEP] = {.option = "dt-ckpt-keep",
                             .arginfo = "<n>[,every:<k>]",
                             .usage = "how many checkpoints are kept; help "
                                      "explains",
                             .has_arg = 1,
                             NAMES("DT_CKPT_KEEP", "dt_ckpt_keep")},
    [DT_OPTION_NOTICE_SIGNAL] = {.option = "dt-notice-signal",
                                 .arginfo = "<signal>",
                                 .usage = "the signal that tells each task's "
                                          "own process to leave: USR1 ...; "
                                          "help explains",
                                 .has_arg = 1,
                                 NAMES("DT_NOTICE_SIGNAL", "dt_notice_signal")},
    [DT_OPTION_REQUEUE] = {.option = "dt-requeue",
                           .arginfo = "<max>[,<cause>=<n>...]",
                           .usage = "put the job back into the queue when it "
                                    "had to leave; help explains",
                           .has_arg = 2,
                           NAMES("DT_REQUEUE", "dt_requeue")},
};

/* Puts one item at the end of the option's list; false: it is none. */
typedef bool parse_item_t(const char *item, size_t length,
                          struct dt_option *option);

static parse_item_t parse_place, parse_mask, parse_nic;

/* A value that is no name of a type and not empty; false: it is malformed. */
typedef bool parse_value_t(const char *text, struct dt_option *option);

static parse_value_t parse_frameworks, parse_minimum, parse_directory,
    parse_time, parse_redundancy, parse_keep, parse_signal, parse_requeue;

_Static_assert(DT_TOPO_MAX_GPUS == 64, "the text about map: says 63");

/* A type that takes a list is spelled <name>:<list>. The first of an option is
 * its default. */
struct type {
    const char *name;
    enum dt_option_type type;
    int policy;
    parse_item_t *parse_item; /* NULL: it takes no list */
    const char *items;        /* what was expected of them */
};

static const struct {
    struct type type[8]; /* ends with a NULL name */
    const char *expected, *help;
    parse_value_t *parse; /* of what is none of these; NULL: nothing is */
    const char *bare;     /* the option without a value; NULL: its first type */
} syntax[DT_NOPTIONS] = {
    [DT_OPTION_GPUS] =
        {{{"auto", DT_OPTION_SET, DT_PLACE_AUTO, NULL, NULL},
          {"rotate", DT_OPTION_SET, DT_PLACE_ROTATE, NULL, NULL},
          {"single", DT_OPTION_SET, DT_PLACE_SINGLE, NULL, NULL},
          {"map", DT_OPTION_SET, DT_PLACE_MAP, parse_place,
           "numbers of granted GPUs from 0 to 63, as in map:0,1,2,3"},
          {"mask", DT_OPTION_SET, DT_PLACE_MASK, parse_mask,
           "hexadecimal masks of granted GPUs, as in mask:0x3,0xc"},
          {"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "[verbose,]auto, rotate, single, <number>, map:<list>, mask:<list>, "
         "none or help",
         "--dt-gpus=[verbose,]<type> gives each task its own GPUs among those "
         "Slurm granted,\n"
         "with the CPUs, the memory and the NICs nearest to them:\n"
         "  auto         it sees all of the node, device index i is one of "
         "local rank i's\n"
         "               (default; as granted where the node has more tasks "
         "than GPUs)\n"
         "  rotate       it sees all of the node, its own first\n"
         "  single       it sees its own only\n"
         "  <n>          it sees its own only, n of them\n"
         "  map:<list>   local rank i sees GPU number list[i] only, counted "
         "from 0 among those\n"
         "               granted: map:0,1,2,3; a short list starts again\n"
         "  mask:<list>  the same with a set of GPUs each: mask:0x3,0xc\n"
         "  none         as if the option had not been given\n"
         "  help         this list\n"
         "verbose, prints a table of who got what.\n",
         NULL},
    [DT_OPTION_NICS] =
        {{{"closest", DT_OPTION_SET, DT_PLACE_NICS_CLOSEST, NULL, NULL},
          {"rail", DT_OPTION_SET, DT_PLACE_NICS_RAIL, NULL, NULL},
          {"map", DT_OPTION_SET, DT_PLACE_NICS_MAP, parse_nic,
           "names of NICs, as in map:mlx5_0,mlx5_1"},
          {"none", DT_OPTION_SET, DT_PLACE_NICS_NONE, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "closest, rail, map:<names>, none or help",
         "--dt-nics=<type>, with --dt-gpus, says which NICs a task uses:\n"
         "  closest      those nearest to its GPUs, spread over the tasks that "
         "share them\n"
         "               (default)\n"
         "  rail         GPU i takes NIC i, in order of their bus ids\n"
         "  map:<names>  local rank i takes the i-th: map:mlx5_0,mlx5_1; a "
         "short list\n"
         "               starts again\n"
         "  none         no variable about networks is set\n"
         "  help         this list\n",
         NULL},
    [DT_OPTION_CPU_BIND] =
        {{{"gpu", DT_OPTION_SET, DT_PLACE_CPUS_GPU, NULL, NULL},
          {"none", DT_OPTION_SET, DT_PLACE_CPUS_NONE, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "gpu, none or help",
         "--dt-cpu-bind=<type>, with --dt-gpus, says where a task runs:\n"
         "  gpu   on the granted cores nearest to its GPUs, unless srun has a "
         "--cpu-bind\n"
         "        (default)\n"
         "  none  where Slurm put it\n"
         "  help  this list\n",
         NULL},
    [DT_OPTION_PMIX] =
        {{{"auto", DT_OPTION_SET, DT_PMIX_AUTO, NULL, NULL},
          {"server", DT_OPTION_SET, DT_PMIX_SERVER, NULL, NULL},
          {"slurm", DT_OPTION_SET, DT_PMIX_SLURM, NULL, NULL},
          {"none", DT_OPTION_SET, DT_PMIX_NONE, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "auto, server, slurm, none or help",
         "--dt-pmix[=<type>] selects the PMIx server of the ranks; it needs no "
         "GPUs:\n"
         "  server  slurm-dt's own, whatever --mpi says (default)\n"
         "  auto    slurm-dt's own, unless srun has an --mpi (the type if only "
         "--dt-gpus\n"
         "          is given)\n"
         "  slurm   the one of Slurm's --mpi, or of the cluster's default\n"
         "  none    none: a rank that uses PMIx is alone\n"
         "  help    this list\n",
         NULL,
         "server"},
    [DT_OPTION_RENDEZVOUS] =
        {{{"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "[verbose,] and torch, lightning, accelerate, deepspeed, sagemaker, "
         "torchrun[,elastic], jax, tensorflow[,chief][,ps:<n>], horovod, ray, "
         "dask, mpi4py, c, some of them with commas, none or help",
         "--dt-rendezvous=[verbose,]<framework>[,...] sets in each task the "
         "variables by which\n"
         "the ranks of a framework find each other, with a port that is held "
         "for them:\n"
         "  torch, accelerate, deepspeed\n"
         "               MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, "
         "LOCAL_RANK, LOCAL_WORLD_SIZE\n"
         "  lightning    MASTER_ADDR, MASTER_PORT\n"
         "  sagemaker    those of torch, SM_HOSTS, SM_CURRENT_HOST, "
         "SM_NUM_GPUS, SM_MODEL_DIR\n"
         "  torchrun     PET_NNODES, PET_NPROC_PER_NODE, PET_NODE_RANK, "
         "PET_MASTER_ADDR,\n"
         "               PET_MASTER_PORT; one task per node; with ,elastic "
         "PET_RDZV_BACKEND,\n"
         "               PET_RDZV_ID, PET_RDZV_ENDPOINT for the last three\n"
         "  jax          JAX_COORDINATOR_ADDRESS\n"
         "  tensorflow   TF_CONFIG; with ,chief rank 0 is the chief, with "
         ",ps:<n> the last n\n"
         "               ranks are parameter servers\n"
         "  horovod      HOROVOD_RANK, HOROVOD_SIZE and others, and its store\n"
         "  ray          RAY_ADDRESS, RAY_AUTH_MODE, RAY_AUTH_TOKEN, and its "
         "head and workers\n"
         "  dask         DASK_SCHEDULER_ADDRESS, and its scheduler and "
         "workers\n"
         "  mpi4py, c    nothing: PMIx is there already\n"
         "  none         as if the option had not been given\n"
         "  help         this list\n"
         "What you have set yourself is kept. verbose, prints what was set.\n",
         parse_frameworks},
    [DT_OPTION_ELASTIC] =
        {{{"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "a whole number from 1 to the tasks of the step, none or help",
         "--dt-elastic=<min>, for programs with libdt (dt_elastic_run, "
         "hvd.elastic), keeps the\n"
         "step when ranks or nodes are lost, as long as <min> tasks are left: "
         "the others go on\n"
         "without them. It starts slurm-dt's PMIx server, as --dt-pmix does, "
         "and srun takes\n"
         "--kill-on-bad-exit=0, --no-kill and --wait=0. Give it to sbatch, "
         "which takes\n"
         "--no-kill then, for a job that survives the loss of a node.\n"
         "  <min>  from 1 to the tasks of the step\n"
         "  none   as if the option had not been given\n"
         "  help   this text\n",
         parse_minimum},
    [DT_OPTION_CKPT] = {{{"none", DT_OPTION_NONE, 0, NULL, NULL},
                         {"help", DT_OPTION_HELP, 0, NULL, NULL}},
                        "a directory, none or help",
                        "--dt-ckpt=<dir> says where checkpoints are: a "
                        "directory that all nodes see or,\n"
                        "with --dt-ckpt-flush, one of each node's own. A "
                        "relative one is below srun's\n"
                        "working directory.\n"
                        "  none  as if the option had not been given\n"
                        "  help  this text\n",
                        parse_directory},
    [DT_OPTION_CKPT_FLUSH] =
        {{{"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "a directory, none or help",
         "--dt-ckpt-flush=<dir>, with --dt-ckpt=<a disk of each node's own>, "
         "says where\n"
         "checkpoints go on to in the background: a directory that all nodes "
         "see.\n"
         "  none  as if the option had not been given\n"
         "  help  this text\n",
         parse_directory},
    [DT_OPTION_CKPT_INTERVAL] =
        {{{"auto", DT_OPTION_SET, 0, NULL, NULL},
          {"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "auto, a time such as 90s, 10m, 2h, 1d or as --time takes it "
         "(minutes, hours:minutes:seconds ...), none or help",
         "--dt-ckpt-interval=<auto|time> says how often a checkpoint is due:\n"
         "  auto    as its cost and the failures of the cluster suggest\n"
         "  <time>  90s, 10m, 2h, 1d, or as --time takes it: minutes, "
         "minutes:seconds,\n"
         "          hours:minutes:seconds, days-hours ...\n"
         "  none    as if the option had not been given\n"
         "  help    this list\n",
         parse_time},
    [DT_OPTION_CKPT_REDUNDANCY] =
        {{{"none", DT_OPTION_SET, 0, NULL, NULL},
          {"partner", DT_OPTION_SET, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "none, partner, xor:<k> with k from 2 to 255, rs:<k>+<m> with k + m "
         "up to 255, or help",
         "--dt-ckpt-redundancy=<type> says what brings checkpoints back that "
         "were on the\n"
         "own disk of a node that is lost:\n"
         "  none        nothing (default)\n"
         "  partner     a copy on another node\n"
         "  xor:<k>     parity over k nodes, one of which may be lost\n"
         "  rs:<k>+<m>  of k + m nodes, m may be lost\n"
         "  help        this list\n",
         parse_redundancy},
    [DT_OPTION_CKPT_KEEP] =
        {{{"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "<n>, <n>,every:<k>, none or help, with n and k from 1",
         "--dt-ckpt-keep=<n>[,every:<k>] keeps the last n checkpoints and "
         "those of the\n"
         "steps that k divides.\n"
         "  none  as if the option had not been given\n"
         "  help  this text\n",
         parse_keep},
    [DT_OPTION_NOTICE_SIGNAL] =
        {{{"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "a signal that a program can handle, as USR1 or a number from 1 to "
         "64 (not KILL, not STOP), none or help",
         "--dt-notice-signal=<signal>, for programs that know neither libdt "
         "nor the file\n"
         "$DT_NOTICE, sends a signal when the step is to leave: at a "
         "preemption, at\n"
         "dt-requeue, or a minute before the job's time is over. It goes to "
         "the processes\n"
         "that srun started as tasks, once, and not to their children.\n"
         "  USR1, SIGTERM, 12 ...  a signal by its name or its number\n"
         "  none                   as if the option had not been given\n"
         "  help                   this text\n",
         parse_signal},
    [DT_OPTION_REQUEUE] =
        {{{"none", DT_OPTION_NONE, 0, NULL, NULL},
          {"help", DT_OPTION_HELP, 0, NULL, NULL}},
         "[<max>][,preempt=<n>][,nodefail=<n>][,timeout=<n>][,error=<n>], none "
         "or help",
         "sbatch --dt-requeue[=<max>[,<cause>=<n>...]] puts the job back into "
         "the queue,\n"
         "at most <max> times (100), when it ends and\n"
         "  a task or the script ended with exit code 75: the program asked\n"
         "  preempt   it was preempted\n"
         "  nodefail  a node failed\n"
         "  timeout   its time was over\n"
         "  error     it failed in another way; 0 times unless <n> is given\n"
         "but not after success, after scancel, or after exit code 93.\n"
         "  none      as if the option had not been given\n"
         "  help      this list\n",
         parse_requeue,
         "100"},
};

/* ---- values that are no names of types ---- */

static bool take_number(const char **at, uint64_t *number)
{
    return dt_number_scan(at, 10, MAX_NUMBER, number);
}

static bool take_word(const char **at, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool parse_frameworks(const char *text, struct dt_option *option)
{
    struct dt_frameworks chosen;
    (void)option;
    return strlen(text) < DT_OPTION_TEXT && dt_frameworks_parse(text, &chosen);
}

static bool parse_minimum(const char *text, struct dt_option *option)
{
    uint64_t minimum;
    if (!take_number(&text, &minimum) || *text)
        return false;
    option->count = (uint32_t)minimum;
    return minimum > 0;
}

static bool parse_directory(const char *text, struct dt_option *option)
{
    (void)option;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return false;
    /* room for srun's working directory is checked there */
    return strlen(text) < DT_OPTION_TEXT;
}

/* With days the first number after them is hours; without, the last of two or
 * three is seconds, and one alone is minutes. */
static bool parse_time(const char *text, struct dt_option *option)
{
    uint64_t days = 0, part[3] = {0};
    const char *at = text;
    size_t n = 0;
    (void)option;
    if (!take_number(&at, &part[n++]))
        return false;
    if (*at && strchr("smhd", *at) && !at[1])
        return part[0] && part[0] <= 366 * 86400;
    bool has_days = take_word(&at, "-");
    if (has_days) {
        days = part[0];
        n = 0;
        if (!take_number(&at, &part[n++]))
            return false;
    }
    while (n < 3 && take_word(&at, ":"))
        if (!take_number(&at, &part[n++]))
            return false;
    if (!has_days && n < 3) { /* no hours */
        part[2] = part[1];
        part[1] = part[0];
        part[0] = 0;
    }
    uint64_t seconds = 86400 * days + 3600 * part[0] + 60 * part[1] + part[2];
    return !*at && seconds && seconds <= 366 * 86400;
}

static bool parse_redundancy(const char *text, struct dt_option *option)
{
    uint64_t k, m;
    (void)option;
    if (take_word(&text, "xor:"))
        return take_number(&text, &k) && !*text && k >= 2 && k <= MAX_NODES;
    return take_word(&text, "rs:") && take_number(&text, &k) &&
           take_word(&text, "+") && take_number(&text, &m) && !*text && k &&
           m && k + m <= MAX_NODES;
}

static bool parse_keep(const char *text, struct dt_option *option)
{
    uint64_t n, k;
    (void)option;
    if (!take_number(&text, &n) || !n)
        return false;
    if (!*text)
        return true;
    return take_word(&text, ",every:") && take_number(&text, &k) && k && !*text;
}

/* As srun's --signal, in any case. */
static int find_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},
                 {"ABRT", SIGABRT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
                 {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CONT", SIGCONT},
                 {"TSTP", SIGTSTP}, {"URG", SIGURG},   {"WINCH", SIGWINCH},
                 {"XCPU", SIGXCPU}, {"IO", SIGIO},     {"PWR", SIGPWR}};
    if (!strncasecmp(name, "SIG", 3))
        name += 3;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcasecmp(name, known[i].name))
            return known[i].number;
    return 0;
}

static bool parse_signal(const char *text, struct dt_option *option)
{
    uint64_t number = (uint64_t)find_signal(text);
    if (!number && (!take_number(&text, &number) || *text))
        return false;
    option->policy = (int)number;
    return number && number <= MAX_SIGNAL && number != SIGKILL &&
           number != SIGSTOP;
}

static bool parse_requeue(const char *text, struct dt_option *option)
{
    static const char *const cause[DT_NCAPS] = {
        "", "preempt=", "nodefail=", "timeout=", "error="};
    uint64_t number, cap[DT_NCAPS] = {DT_CAP_DEFAULT};
    bool given[DT_NCAPS] = {false};
    do {
        size_t i = DT_NCAPS - 1; /* the empty word begins every text */
        while (i && !take_word(&text, cause[i]))
            i--;
        if (given[i] || !take_number(&text, &number))
            return false;
        given[i] = true;
        cap[i] = number;
    } while (take_word(&text, ","));
    for (size_t i = 0; i < DT_NCAPS; i++) {
        if (!given[i] && i != DT_CAP_MAX && i != DT_CAP_ERROR)
            cap[i] = cap[DT_CAP_MAX];
        option->cap[i] = (uint32_t)cap[i];
    }
    return !*text;
}

/* ---- lists ---- */

/* All of an item that ends with a NUL or a comma. */
static bool parse_number(const char *text, size_t length, unsigned base,
                         uint64_t *number)
{
    const char *at = text;
    if (base == 16 && !strncasecmp(at, "0x", 2))
        at += 2;
    return dt_number_scan(&at, base, UINT64_MAX, number) && at == text + length;
}

/* Take the next of a list joined by commas: its begin and length. */
static bool next(const char **at, const char **item, size_t *length)
{
    if (!*at)
        return false;
    *item = *at;
    *length = strcspn(*at, ",");
    *at = (*item)[*length] ? *item + *length + 1 : NULL;
    return true;
}

static bool parse_place(const char *item, size_t length,
                        struct dt_option *option)
{
    uint64_t *place = &option->list[option->nlist];
    return parse_number(item, length, 10, place) && *place < DT_TOPO_MAX_GPUS;
}

static bool parse_mask(const char *item, size_t length,
                       struct dt_option *option)
{
    uint64_t *mask = &option->list[option->nlist];
    return parse_number(item, length, 16, mask) && *mask;
}

static bool parse_nic(const char *item, size_t length, struct dt_option *option)
{
    char *name = option->nic[option->nlist];
    if (!length || length >= sizeof(option->nic[0]))
        return false;
    memcpy(name, item, length);
    name[length] = '\0';
    return true;
}

static dt_result_t parse_list(const struct type *type, const char *list,
                              struct dt_option *option, struct dt_error *why)
{
    const char *item;
    size_t length;
    for (; next(&list, &item, &length); option->nlist++) {
        if (option->nlist == DT_PLACE_MAX_MAP)
            return dt_error_set(why, DT_ERR_INVALID_ARG, "a list of at most %d",
                                DT_PLACE_MAX_MAP);
        if (!type->parse_item(item, length, option))
            return dt_error_set(why, DT_ERR_INVALID_ARG, "%s", type->items);
    }
    return DT_SUCCESS;
}

/* ---- an option ---- */

/* The type of the option that text names, and its list unless it has none. */
static const struct type *find_type(enum dt_option_id id, const char *text,
                                    const char **list)
{
    size_t length = strcspn(text, ":");
    *list = text[length] ? text + length + 1 : NULL;
    for (const struct type *type = syntax[id].type; type->name; type++)
        if (!strncmp(text, type->name, length) && !type->name[length] &&
            !*list == !type->parse_item)
            return type;
    return NULL;
}

static dt_result_t parse_type(enum dt_option_id id, const char *text,
                              struct dt_option *option, struct dt_error *why)
{
    const char *list;
    int64_t count;
    const struct type *type = find_type(id, text, &list);
    if (type) {
        option->type = type->type;
        option->policy = type->policy;
        return parse_list(type, list, option, why);
    }
    if (syntax[id].parse && syntax[id].parse(text, option))
        return DT_SUCCESS;
    if (id != DT_OPTION_GPUS || !*text ||
        strspn(text, "0123456789") != strlen(text))
        return dt_error_set(why, DT_ERR_INVALID_ARG, "%s", syntax[id].expected);
    if (!dt_number_parse(text, 1, DT_TOPO_MAX_GPUS, &count))
        return dt_error_set(why, DT_ERR_INVALID_ARG, "1 to %d GPUs per task",
                            DT_TOPO_MAX_GPUS);
    option->policy = DT_PLACE_COUNT;
    option->count = (uint32_t)count;
    return DT_SUCCESS;
}

/* One line, whatever the user gave. */
static dt_result_t not_expected(const char *source, const char *text,
                                const char *expected, struct dt_error *err)
{
    char shown[65];
    snprintf(shown, sizeof(shown), "%s", text);
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = '?';
    return dt_error_set(err, DT_ERR_INVALID_ARG, "%s=%s: expected %s", source,
                        shown, expected);
}

dt_result_t dt_option_parse(enum dt_option_id id, const char *text,
                            const char *source, struct dt_option *option,
                            struct dt_error *err)
{
    static const char verbose[] = "verbose";
    struct dt_option parsed = {.type = DT_OPTION_SET};
    /* sbatch and salloc hand an option without a value on to the sruns of the
     * job as "" or "(null)", depending on the C library */
    if (!text || !*text || !strcmp(text, "(null)"))
        text = syntax[id].bare ? syntax[id].bare : syntax[id].type[0].name;
    const char *type = text;
    bool shows = id == DT_OPTION_GPUS || id == DT_OPTION_RENDEZVOUS;
    if (shows && !strncmp(text, verbose, sizeof(verbose) - 1)) {
        const char *rest = text + sizeof(verbose) - 1;
        if (!*rest || *rest == ',') {
            parsed.verbose = true;
            type = *rest ? rest + 1 : syntax[id].type[0].name;
        }
    }
    struct dt_error why;
    if (parse_type(id, type, &parsed, &why) != DT_SUCCESS)
        return not_expected(source, text, why.text, err);
    snprintf(parsed.value, sizeof(parsed.value), "%s", type);
    snprintf(parsed.text, sizeof(parsed.text), "%s", type);
    *option = parsed;
    return DT_SUCCESS;
}

const char *dt_option_help(enum dt_option_id id)
{
    return syntax[id].help;
}
