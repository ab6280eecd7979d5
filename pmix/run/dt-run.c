/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt-run.c - start the ranks of a job on this machine, with a PMIx server. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/env.h"
#include "base/exit.h"
#include "base/number.h"
#include "mesh/clock.h"
#include "server/environ.h"
#include "run/bind.h"
#include "run/cleanup.h"
#include "run/elastic.h"
#include "run/label.h"
#include "run/ranks.h"
#include "server/server.h"
#include "server/proxy_client.h"

#define EXIT_OWN 70 /* dt-run itself failed */
/* internal */
#define PROXY_CLIENT  "--proxy-client"
#define EXIT_TIME     124
#define EXIT_CANNOT   126
#define EXIT_MISSING  127
#define RANKS_MAX     4096
#define SECONDS_MAX   31536000 /* a year */
#define GRACE_MS      5000
#define CLOSE_SECONDS 30
#define RESPAWNS_MAX  1000000
#define RESPAWN_MS    30000 /* until a rank that has ended can be replaced */
#define RETRY_MS      50

struct options {
    size_t ranks;
    int64_t seconds; /* 0: no limit */
    int64_t minimum; /* 0: the job is not elastic */
    int64_t respawns;
    bool label, no_kill, bind, verbose;
    char **argv;
};

struct run {
    struct options options;
    struct dt_bind bind;
    struct dt_cleanup cleanup;
    struct dt_map *map;
    struct dt_pmix *pmix;
    struct dt_ranks ranks;
    struct dt_labels labels;
    struct dt_elastic elastic;
    struct pollfd *polls;
    int signals; /* a signalfd */
    int code;    /* the exit code so far */
    int64_t deadline, term_at, kill_at;
    bool stopping;  /* the ranks are being ended */
    bool by_signal; /* by a signal to this process */
};

static void complain(const char *text)
{
    fprintf(stderr, "dt-run: %s\n", text);
}

/* --- options ------------------------------------------------------------- */

static const char usage_text[] =
    "usage: dt-run [-n RANKS] [-l] [-t SECONDS] [--bind core|none] [-v]\n"
    "              [--no-kill | --elastic MIN [--respawn N]] [--]\n"
    "              PROGRAM [ARGS]\n"
    "  -n, --ranks RANKS      how many to start (default: one per CPU)\n"
    "      --bind core|none   give each rank cores of its own (default: core)\n"
    "  -v, --verbose          print which CPUs each rank has\n"
    "  -l, --label            write the rank in front of each line of output\n"
    "  -t, --timeout SECONDS  end the job when it takes longer\n"
    "      --no-kill          let the others go on when a rank fails\n"
    "      --elastic MIN      the same, as long as MIN ranks are left\n"
    "      --respawn N        start ranks that fail again, N times in all\n"
    "  -h, --help             print this\n"
    "  -V, --version          print the version\n";

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"label", no_argument, NULL, 'l'},
    {"timeout", required_argument, NULL, 't'},
    {"no-kill", no_argument, NULL, 'k'},
    {"elastic", required_argument, NULL, 'e'},
    {"respawn", required_argument, NULL, 'r'},
    {"bind", required_argument, NULL, 'b'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0}};

/* Do the options fit together? */
static dt_result_t check(const struct options *options, struct dt_error *err)
{
    if (options->minimum > (int64_t)options->ranks)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--elastic %lld: expected 1 to %zu, the number of "
                            "ranks",
                            (long long)options->minimum, options->ranks);
    if (options->respawns >= 0 && !options->minimum)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--respawn needs --elastic MIN: how many ranks "
                            "must be left when no more are started again");
    return DT_SUCCESS;
}

/* Returns -1 to go on, or the exit code. */
static int parse(struct options *options, size_t cpus, int argc, char **argv)
{
    int64_t ranks;
    struct dt_error err;
    *options = (struct options){.ranks = cpus, .respawns = -1, .bind = true};
    for (int opt; (opt = getopt_long(argc, argv, "+n:lt:vhV", long_options,
                                     NULL)) != -1;) {
        switch (opt) {
        case 'n':
            if (dt_number_read("-n ", optarg, 1, RANKS_MAX, &ranks, &err) !=
                DT_SUCCESS)
                goto bad_number;
            options->ranks = (size_t)ranks;
            break;
        case 't':
            if (dt_number_read("-t ", optarg, 1, SECONDS_MAX, &options->seconds,
                               &err) != DT_SUCCESS)
                goto bad_number;
            break;
        case 'e':
            if (dt_number_read("--elastic ", optarg, 1, RANKS_MAX,
                               &options->minimum, &err) != DT_SUCCESS)
                goto bad_number;
            break;
        case 'r':
            if (dt_number_read("--respawn ", optarg, 0, RESPAWNS_MAX,
                               &options->respawns, &err) != DT_SUCCESS)
                goto bad_number;
            break;
        case 'l':
            options->label = true;
            break;
        case 'k':
            options->no_kill = true;
            break;
        case 'b':
            options->bind = strcmp(optarg, "none") != 0;
            if (options->bind && strcmp(optarg, "core") != 0) {
                fprintf(stderr, "dt-run: --bind %.64s: expected core or none\n",
                        optarg);
                return DT_EXIT_USAGE;
            }
            break;
        case 'v':
            options->verbose = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return 0;
        case 'V':
            puts("dt-run (slurm-dt) " PACKAGE_VERSION);
            return 0;
        default:
            fputs(usage_text, stderr);
            return DT_EXIT_USAGE;
        }
    }
    options->argv = argv + optind;
    if (check(options, &err) != DT_SUCCESS)
        goto bad_number;
    if (*options->argv)
        return -1;
    complain("no program to run");
    fputs(usage_text, stderr);
    return DT_EXIT_USAGE;

bad_number:
    complain(err.text);
    return DT_EXIT_USAGE;
}

/* --- ending the ranks ---------------------------------------------------- */

/* End the ranks: by sig unless they have it already, later by SIGKILL. */
static void stop(struct run *run, int sig, bool send)
{
    int64_t now = dt_pmix_now();
    if (send)
        dt_ranks_signal(&run->ranks, sig);
    run->stopping = true;
    if (sig == SIGINT) {
        run->term_at = now + GRACE_MS;
        run->kill_at = now + 2 * GRACE_MS;
    } else {
        run->term_at = DT_NEVER;
        run->kill_at = now + GRACE_MS;
    }
}

static void check_time(struct run *run)
{
    int64_t now = dt_pmix_now();
    if (now >= run->deadline) {
        fprintf(stderr, "dt-run: not done after %lld s, ending all ranks\n",
                (long long)run->options.seconds);
        run->deadline = DT_NEVER;
        run->code = EXIT_TIME;
        stop(run, SIGTERM, true);
        run->by_signal = false;
    }
    if (now >= run->term_at) {
        dt_ranks_signal(&run->ranks, SIGTERM);
        run->term_at = DT_NEVER;
    }
    if (now >= run->kill_at) {
        dt_ranks_signal(&run->ranks, SIGKILL);
        run->kill_at = DT_NEVER;
    }
}

/* "dt-run: rank 1: exit code 3", and more. */
static void print_end(size_t rank, int code, const char *more)
{
    if (code > 128)
        fprintf(stderr, "dt-run: rank %zu: killed by signal %d (%s)%s\n", rank,
                code - 128, strsignal(code - 128), more);
    else
        fprintf(stderr, "dt-run: rank %zu: exit code %d%s\n", rank, code, more);
}

/* A rank is lost to an elastic job. */
static void check_left(struct run *run, size_t rank)
{
    const struct dt_elastic *elastic = &run->elastic;
    size_t left = dt_elastic_left(elastic);
    dt_pmix_not_replaced(run->pmix, rank);
    if (!dt_elastic_too_few(elastic))
        return;
    fprintf(stderr,
            "dt-run: %zu rank%s left, fewer than the minimum of %zu "
            "(--elastic): ending the job\n",
            left, left == 1 ? " is" : "s are", elastic->minimum);
    run->code = dt_elastic_code(elastic);
    stop(run, SIGTERM, true);
}

static void note_loss(struct run *run, size_t rank, int code)
{
    struct dt_elastic *elastic = &run->elastic;
    char more[80] = "";
    bool again = dt_elastic_failed(elastic, rank, code, dt_pmix_now());
    if (again)
        snprintf(more, sizeof(more), ", started again (%zu of %zu)",
                 elastic->respawned, elastic->respawns);
    print_end(rank, code, more);
    if (!again)
        check_left(run, rank);
}

static void note_end(struct run *run, size_t rank, int code)
{
    bool elastic = run->elastic.minimum > 0;
    dt_pmix_ended(run->pmix, rank, code);
    if (elastic && !code)
        dt_pmix_not_replaced(run->pmix, rank);
    /* the exit code of a rank that dt-run killed is not that of the job, unless
     * the user ended it */
    if (!code || (run->stopping && !run->by_signal))
        return;
    if (elastic && !run->by_signal) {
        note_loss(run, rank, code);
        return;
    }
    if (code > run->code)
        run->code = code;
    if (run->by_signal)
        return;
    print_end(rank, code, "");
    if (!run->options.no_kill)
        stop(run, SIGTERM, true);
}

static void on_abort(void *arg, size_t rank, int code, const char *text)
{
    struct run *run = arg;
    fprintf(stderr, "dt-run: rank %zu aborted the job with code %d%s%s\n", rank,
            code, *text ? ": " : "", text);
    if (run->stopping)
        return;
    run->code = code >= 1 && code <= 255 ? code : 1;
    stop(run, SIGTERM, true);
}

static void on_signal(struct run *run, const struct signalfd_siginfo *info)
{
    int sig = (int)info->ssi_signo;
    if (sig == SIGCHLD)
        return;
    if (sig == SIGUSR1 || sig == SIGUSR2) {
        dt_ranks_signal(&run->ranks, sig);
        return;
    }
    if (run->stopping) {
        dt_ranks_signal(&run->ranks, SIGKILL);
        return;
    }
    run->by_signal = true;
    /* the terminal sends it to the ranks as well */
    stop(run, sig == SIGINT ? SIGINT : SIGTERM,
         sig != SIGINT || info->ssi_code != SI_KERNEL);
}

/* --- running ------------------------------------------------------------- */

/* "dt-run: rank 1: CPUs 4 5 6 7" */
static void print_cpus(const struct run *run, size_t rank, const cpu_set_t *set)
{
    fprintf(stderr, "dt-run: rank %zu:", rank);
    bool any = !CPU_COUNT(set) || (size_t)CPU_COUNT(set) == run->bind.cpus;
    fputs(any ? " any CPU" : " CPUs", stderr);
    for (int cpu = 0; cpu < CPU_SETSIZE && !any; cpu++)
        if (CPU_ISSET(cpu, set))
            fprintf(stderr, " %d", cpu);
    fputc('\n', stderr);
}

static dt_result_t start_rank(struct run *run, size_t rank,
                              struct dt_error *err)
{
    struct dt_rank_start start = {
        .argv = run->options.argv, .out = -1, .err = -1};
    int fds[2] = {-1, -1};
    dt_result_t rc = dt_environ_copy(&start.env, err);
    if (rc == DT_SUCCESS)
        rc = dt_pmix_environ(run->pmix, rank, &start.env, err);
    if (rc == DT_SUCCESS && run->options.label)
        rc = dt_labels_add(&run->labels, rank, fds, err);
    if (run->options.bind)
        dt_bind_share(&run->bind, rank, run->options.ranks, &start.cpus);
    if (run->options.verbose)
        print_cpus(run, rank, &start.cpus);
    start.out = fds[0];
    start.err = fds[1];
    if (rc == DT_SUCCESS)
        rc = dt_ranks_start(&run->ranks, rank, &start, err);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    dt_environ_free(start.env);
    return rc;
}

static void start_all(struct run *run)
{
    struct dt_error err;
    dt_result_t rc = DT_SUCCESS;
    for (size_t r = 0; r < run->options.ranks && rc == DT_SUCCESS; r++)
        rc = start_rank(run, r, &err);
    if (rc == DT_SUCCESS)
        return;
    complain(err.text);
    run->code = rc == DT_ERR_NOT_FOUND ? EXIT_MISSING
                : rc == DT_ERR_IO      ? EXIT_CANNOT
                                       : EXIT_OWN;
    run->stopping = true;
    dt_ranks_signal(&run->ranks, SIGKILL);
}

/* Start a rank again when PMIx has removed the old process. */
static void start_again(struct run *run, size_t rank)
{
    struct dt_error err;
    bool late = dt_pmix_now() - run->elastic.since[rank] > RESPAWN_MS;
    dt_result_t rc = dt_pmix_replace(run->pmix, rank, &err);
    if (rc == DT_IN_PROGRESS && !late)
        return;
    if (rc == DT_SUCCESS)
        rc = start_rank(run, rank, &err);
    if (rc == DT_SUCCESS) {
        dt_elastic_started(&run->elastic, rank);
        return;
    }
    fprintf(stderr, "dt-run: rank %zu cannot be started again: %s\n", rank,
            err.text);
    dt_elastic_lost(&run->elastic, rank);
    check_left(run, rank);
}

static void start_pending(struct run *run)
{
    const struct dt_elastic *elastic = &run->elastic;
    for (size_t r = 0; r < elastic->ranks; r++)
        if (elastic->pending > 0 && elastic->since[r] && !run->stopping)
            start_again(run, r);
}

/* Are there processes, now or in a moment? */
static bool goes_on(const struct run *run)
{
    return run->ranks.running > 0 ||
           (run->elastic.pending > 0 && !run->stopping);
}

/* How long to sleep, in ms. */
static int sleep_time(const struct run *run)
{
    const int64_t ends[] = {run->deadline, run->term_at, run->kill_at};
    int64_t now = dt_pmix_now(), left = dt_pmix_sleep(run->pmix);
    if (run->elastic.pending > 0 && left > RETRY_MS)
        left = RETRY_MS;
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (ends[i] - now < left)
            left = ends[i] - now;
    return left < 0 ? 0 : (int)left;
}

static void progress(struct run *run)
{
    struct dt_error err;
    struct signalfd_siginfo info;
    size_t rank;
    int code;
    run->polls[0] = (struct pollfd){run->signals, POLLIN, 0};
    run->polls[1] = (struct pollfd){dt_pmix_fd(run->pmix), POLLIN, 0};
    dt_labels_poll(&run->labels, run->polls + 2);
    poll(run->polls, 2 + run->labels.count, sleep_time(run));
    while (read(run->signals, &info, sizeof(info)) == sizeof(info))
        on_signal(run, &info);
    if (dt_pmix_dispatch(run->pmix, &err) != DT_SUCCESS && !run->stopping) {
        complain(err.text);
        run->code = EXIT_OWN;
        stop(run, SIGKILL, true);
    }
    dt_labels_print(&run->labels);
    while (dt_ranks_reap(&run->ranks, &rank, &code))
        note_end(run, rank, code);
    start_pending(run);
    check_time(run);
}

/* --- setting up ---------------------------------------------------------- */

static dt_result_t watch_signals(struct run *run, sigset_t *before,
                                 struct dt_error *err)
{
    const int all[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        sigaddset(&set, all[i]);
    sigprocmask(SIG_BLOCK, &set, before);
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signals < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "signalfd: %s",
                            strerror(errno));
    return DT_SUCCESS;
}

/* A process that does not know the name cannot connect: 128 random bits. */
static dt_result_t make_name(char *name, size_t size, struct dt_error *err)
{
    unsigned char random[16];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return dt_error_set(err, DT_ERR_SYSTEM, "getrandom: %s",
                            strerror(errno));
    int len = snprintf(name, size, "dt-run.%ld.", (long)getpid());
    for (size_t i = 0; i < sizeof(random); i++)
        len += snprintf(name + len, size - (size_t)len, "%02x", random[i]);
    return DT_SUCCESS;
}

/* All ranks are on this node. */
static dt_result_t make_map(struct run *run, struct dt_error *err)
{
    size_t count = run->options.ranks;
    struct dt_map_entry *node = calloc(1, sizeof(*node));
    uint32_t *ranks = calloc(count, sizeof(*ranks));
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (!node || !ranks) {
        dt_error_set(err, rc, "no memory to start");
        goto free_node;
    }
    for (size_t r = 0; r < count; r++)
        ranks[r] = (uint32_t)r;
    node->ranks = ranks;
    node->nranks = count;
    gethostname(node->name, sizeof(node->name) - 1);
    rc = dt_map_create(&run->map, node, 1, count, err);
    if (rc == DT_SUCCESS)
        return DT_SUCCESS;
free_node:
    free(ranks);
    free(node);
    return rc;
}

static dt_result_t open_server(struct run *run, const char *name,
                               struct dt_error *err)
{
    char jobid[32], *command = NULL;
    size_t len;
    dt_result_t rc = make_map(run, err);
    if (rc != DT_SUCCESS)
        return rc;
    FILE *out = open_memstream(&command, &len);
    for (char **arg = run->options.argv; out && *arg; arg++)
        fprintf(out, "%s%s", arg == run->options.argv ? "" : " ", *arg);
    if (!out || fclose(out)) {
        free(command);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    }
    snprintf(jobid, sizeof(jobid), "dt-run.%ld", (long)getpid());
    static char *const proxy_client[] = {(char *)"/proc/self/exe",
                                         (char *)PROXY_CLIENT, NULL};
    const struct dt_pmix_config config = {
        .nspace = name,
        .jobid = jobid,
        .directory = run->cleanup.directory,
        .command = command,
        .map = run->map,
        .oversubscribed = run->options.ranks > run->bind.cpus,
        .elastic_min = run->elastic.minimum,
        .respawns = run->elastic.respawns,
        .launcher = {.arg = run, .abort = on_abort},
        .proxy_client = proxy_client,
    };
    rc = dt_pmix_open(&run->pmix, &config, err);
    free(command);
    return rc;
}

/* An elastic job's ranks get the minimum in their environment. */
static dt_result_t set_up_elastic(struct run *run, struct dt_error *err)
{
    const struct options *options = &run->options;
    char minimum[24];
    snprintf(minimum, sizeof(minimum), "%lld", (long long)options->minimum);
    if (options->minimum ? setenv(DT_ENV_ELASTIC, minimum, 1)
                         : unsetenv(DT_ENV_ELASTIC))
        return dt_no_memory(err);
    return dt_elastic_open(
        &run->elastic, options->ranks, (size_t)options->minimum,
        options->respawns > 0 ? (size_t)options->respawns : 0, err);
}

static dt_result_t set_up(struct run *run, struct dt_error *err)
{
    const struct options *options = &run->options;
    char name[128], mark[160];
    sigset_t before;
    run->term_at = run->kill_at = run->deadline = DT_NEVER;
    dt_result_t rc = make_name(name, sizeof(name), err);
    if (rc == DT_SUCCESS)
        rc = set_up_elastic(run, err);
    if (rc == DT_SUCCESS)
        rc = watch_signals(run, &before, err);
    if (rc == DT_SUCCESS)
        rc = dt_ranks_open(&run->ranks, options->ranks, &before, err);
    if (rc == DT_SUCCESS && options->label)
        rc = dt_labels_open(&run->labels, options->ranks, err);
    run->polls = calloc(2 + 2 * options->ranks, sizeof(*run->polls));
    if (rc == DT_SUCCESS && !run->polls)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    if (rc != DT_SUCCESS)
        return rc;
    snprintf(mark, sizeof(mark), "PMIX_NAMESPACE=%s", name);
    rc = dt_cleanup_open(&run->cleanup, mark, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = open_server(run, name, err);
    if (rc != DT_SUCCESS)
        dt_cleanup_close(&run->cleanup);
    return rc;
}

int main(int argc, char **argv)
{
    struct run run = {.signals = -1};
    struct dt_error err;
    if (argc == 2 && !strcmp(argv[1], PROXY_CLIENT))
        dt_pmix_proxy_client_run();
    dt_bind_open(&run.bind);
    int code = parse(&run.options, run.bind.cpus, argc, argv);
    if (code >= 0)
        return code;
    if (set_up(&run, &err) != DT_SUCCESS) {
        complain(err.text);
        run.code = EXIT_OWN;
        goto free_rest;
    }
    if (run.options.seconds)
        run.deadline = dt_pmix_now() + run.options.seconds * 1000;
    start_all(&run);
    while (goes_on(&run))
        progress(&run);
    dt_labels_close(&run.labels);
    /* PMIx's last call may block for ever, see watchdog.h; the clean-up process
     * works without us */
    alarm(CLOSE_SECONDS);
    dt_pmix_close(run.pmix);
    alarm(0);
    dt_cleanup_close(&run.cleanup);
free_rest:
    if (run.signals >= 0)
        close(run.signals);
    free(run.polls);
    dt_labels_close(&run.labels);
    dt_ranks_close(&run.ranks);
    dt_elastic_close(&run.elastic);
    dt_map_destroy(run.map);
    return run.code;
}
