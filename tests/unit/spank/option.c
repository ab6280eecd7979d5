/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* option.c - the values of the plugin's options, lists of devices, the
 * table. */
#include "placement/devices.h"
#include "option.h"
#include "placement/table.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"

/* as is the value without verbose, policy and list what it means */
static void parses(enum dt_option_id id, const char *text, const char *as,
                   enum dt_option_type type, int policy, const char *list)
{
    struct dt_option option = {.type = DT_OPTION_HELP};
    struct dt_error err = {""};
    char got[256] = "";
    dt_result_t rc = dt_option_parse(id, text, "--x", &option, &err);
    for (uint32_t i = 0; rc == DT_SUCCESS && i < option.nlist; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%llx%s",
                 i ? "," : "", (unsigned long long)option.list[i],
                 option.nic[i]);
    bool verbose = text && !strncmp(text, "verbose", 7);
    if (!ok(rc == DT_SUCCESS && !strcmp(option.value, as) &&
                option.type == type && option.policy == policy &&
                !strcmp(got, list) && option.verbose == verbose,
            "--%s=%s is %s%s", dt_option_name[id].option,
            text ? text : "no value", as, verbose ? ", verbose" : ""))
        diag("got \"%s\" type %d policy %d list %s, \"%s\"", option.value,
             option.type, option.policy, got, err.text);
}

static void gpus(const char *text, const char *as, enum dt_option_type type,
                 int policy)
{
    parses(DT_OPTION_GPUS, text, as, type, policy, "");
}

static void refuses(enum dt_option_id id, const char *text, const char *why)
{
    struct dt_option option = {.type = DT_OPTION_HELP, .count = 17};
    struct dt_error err = {""};
    dt_result_t rc = dt_option_parse(id, text, "SLURM_X", &option, &err);
    if (!ok(rc == DT_ERR_INVALID_ARG && strstr(err.text, why) &&
                !strncmp(err.text, "SLURM_X=", 8) && !strpbrk(err.text, "\n") &&
                option.type == DT_OPTION_HELP && option.count == 17,
            "--%s=%.20s is refused: %s", dt_option_name[id].option, text, why))
        diag("result %d, \"%s\"", rc, err.text);
}

static void test_gpus(void)
{
    gpus(NULL, "auto", DT_OPTION_SET, DT_PLACE_AUTO);
    gpus("", "auto", DT_OPTION_SET, DT_PLACE_AUTO);
    gpus("(null)", "auto", DT_OPTION_SET, DT_PLACE_AUTO);
    gpus("auto", "auto", DT_OPTION_SET, DT_PLACE_AUTO);
    gpus("rotate", "rotate", DT_OPTION_SET, DT_PLACE_ROTATE);
    gpus("single", "single", DT_OPTION_SET, DT_PLACE_SINGLE);
    gpus("none", "none", DT_OPTION_NONE, 0);
    gpus("help", "help", DT_OPTION_HELP, 0);
    gpus("1", "1", DT_OPTION_SET, DT_PLACE_COUNT);
    gpus("64", "64", DT_OPTION_SET, DT_PLACE_COUNT);
    gpus("verbose", "auto", DT_OPTION_SET, DT_PLACE_AUTO);
    gpus("verbose,auto", "auto", DT_OPTION_SET, DT_PLACE_AUTO);
    gpus("verbose,rotate", "rotate", DT_OPTION_SET, DT_PLACE_ROTATE);
    gpus("verbose,2", "2", DT_OPTION_SET, DT_PLACE_COUNT);

    static const char *const bad[] = {
        "foo",      "Auto",     "auto,verbose", "autox",
        "verbosex", "verbose,", "-1",           "verbose,verbose",
        ",auto",    " auto",    "+1",           "1 ",
        "1.5",      "0x4",      "auto:",        "map",
        "mask",     "maps:1",   "aut",          ":"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuses(DT_OPTION_GPUS, bad[i],
                "expected [verbose,]auto, rotate, single, <number>, "
                "map:<list>, mask:<list>, none or help");
    refuses(DT_OPTION_GPUS, "0", "expected 1 to 64 GPUs per task");
    refuses(DT_OPTION_GPUS, "65", "expected 1 to 64 GPUs per task");
    refuses(DT_OPTION_GPUS, "99999999999999999999999999",
            "expected 1 to 64 GPUs per task");
    refuses(DT_OPTION_GPUS, "18446744073709551617",
            "expected 1 to 64 GPUs per task");
    char endless[4096];
    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    refuses(DT_OPTION_GPUS, endless, "xxx: expected [verbose,]auto");
}

/* n times item, joined by commas, after head; to be freed */
static char *repeat(const char *head, const char *item, size_t n)
{
    char *text = malloc(strlen(head) + n * (strlen(item) + 1) + 1);
    if (!text)
        abort();
    char *at = stpcpy(text, head);
    for (size_t i = 0; i < n; i++)
        at = stpcpy(stpcpy(at, i ? "," : ""), item);
    return text;
}

static void test_lists(void)
{
    parses(DT_OPTION_GPUS, "map:0,1,63,1", "map:0,1,63,1", DT_OPTION_SET,
           DT_PLACE_MAP, "0,1,3f,1");
    parses(DT_OPTION_GPUS, "verbose,map:7", "map:7", DT_OPTION_SET,
           DT_PLACE_MAP, "7");
    parses(DT_OPTION_GPUS, "mask:0x3,C,0XffFFffFFffFFffFF",
           "mask:0x3,C,0XffFFffFFffFFffFF", DT_OPTION_SET, DT_PLACE_MASK,
           "3,c,ffffffffffffffff");
    static const char *const maps[] = {
        "map:",   "map:,",   "map:1,",   "map:,1",  "map:64",
        "map:-1", "map:0x1", "map:1 ,2", "map:1:2", "map:18446744073709551616"};
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
        refuses(DT_OPTION_GPUS, maps[i],
                "expected numbers of granted GPUs from 0 to 63, as in "
                "map:0,1,2,3");
    static const char *const masks[] = {
        "mask:",  "mask:0x", "mask:0",   "mask:1,",
        "mask:g", "mask:x3", "mask:1,,", "mask:1ffffffffffffffff"};
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
        refuses(DT_OPTION_GPUS, masks[i],
                "expected hexadecimal masks of granted GPUs, as in "
                "mask:0x3,0xc");

    char *fits = repeat("map:", "9", DT_PLACE_MAX_MAP);
    struct dt_option option;
    ok(dt_option_parse(DT_OPTION_GPUS, fits, "--x", &option, NULL) ==
               DT_SUCCESS &&
           option.nlist == DT_PLACE_MAX_MAP && option.list[63] == 9 &&
           strlen(option.value) == sizeof(option.value) - 1,
       "the longest list is taken, its text is cut");
    char *many = repeat("map:", "9", DT_PLACE_MAX_MAP + 1);
    char *many_nics = repeat("map:", "n", DT_PLACE_MAX_MAP + 1);
    refuses(DT_OPTION_GPUS, many, "expected a list of at most 64");
    refuses(DT_OPTION_NICS, many_nics, "expected a list of at most 64");
    free(fits);
    free(many);
    free(many_nics);
}

/* The values that are handed on as they are. */
static void takes(enum dt_option_id id, const char *text)
{
    struct dt_option option;
    struct dt_error err = {""};
    dt_result_t rc = dt_option_parse(id, text, "--x", &option, &err);
    if (!ok(rc == DT_SUCCESS && option.type == DT_OPTION_SET &&
                !strcmp(option.text, text),
            "--%s=%.40s is taken", dt_option_name[id].option, text))
        diag("result %d, \"%s\"", rc, err.text);
}

static void test_ckpt(void)
{
    static const char *const times[] = {"auto", "90s",    "10m",     "2h",
                                        "1d",   "1",      "0:30",    "1:00:00",
                                        "1-0",  "0-0:10", "2-3:4:5", "366-0"};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        takes(DT_OPTION_CKPT_INTERVAL, times[i]);
    static const char *const no_times[] = {
        "0",       "0:0",   "s",         "10x",
        "1:2:3:4", "1-",    "-1",        "1-2:",
        "10S",     "1.5h",  "1-2:3:4:5", ":",
        "0s",      "367-0", " 1",        "99999999999999999999"};
    for (size_t i = 0; i < sizeof(no_times) / sizeof(no_times[0]); i++)
        refuses(DT_OPTION_CKPT_INTERVAL, no_times[i], "expected auto, a time");
    static const char *const kinds[] = {
        "none", "partner", "xor:2", "xor:255", "rs:1+1", "rs:4+2", "rs:250+5"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        takes(DT_OPTION_CKPT_REDUNDANCY, kinds[i]);
    static const char *const no_kinds[] = {
        "xor",    "xor:",   "xor:1",    "xor:256", "rs:4", "rs:4+",    "rs:0+2",
        "rs:4+0", "rs:4-2", "rs:250+6", "xor:2x",  "raid", "partner:2"};
    for (size_t i = 0; i < sizeof(no_kinds) / sizeof(no_kinds[0]); i++)
        refuses(DT_OPTION_CKPT_REDUNDANCY, no_kinds[i],
                "expected none, partner, xor:<k>");
    takes(DT_OPTION_CKPT_KEEP, "1");
    takes(DT_OPTION_CKPT_KEEP, "3,every:1000");
    static const char *const no_keeps[] = {"0",         "3,",        "every:3",
                                           "3,every:0", "3,every:",  "3,4",
                                           "-1",        "3,every:1x"};
    for (size_t i = 0; i < sizeof(no_keeps) / sizeof(no_keeps[0]); i++)
        refuses(DT_OPTION_CKPT_KEEP, no_keeps[i], "expected <n>, <n>,every:");
    char path[DT_OPTION_TEXT + 1];
    memset(path, '/', sizeof(path));
    path[DT_OPTION_TEXT] = '\0';
    refuses(DT_OPTION_CKPT, path, "expected a directory");
    path[DT_OPTION_TEXT - 1] = '\0';
    takes(DT_OPTION_CKPT, path);
    takes(DT_OPTION_CKPT_FLUSH, "a dir/b,c:d");
    refuses(DT_OPTION_CKPT, "a\tb", "a?b: expected a directory");
    parses(DT_OPTION_CKPT, "none", "none", DT_OPTION_NONE, 0, "");
}

static void caps(const char *text, uint32_t max, uint32_t preempt,
                 uint32_t nodefail, uint32_t timeout, uint32_t error)
{
    const uint32_t wanted[DT_NCAPS] = {max, preempt, nodefail, timeout, error};
    struct dt_option option;
    struct dt_error err = {""};
    dt_result_t rc =
        dt_option_parse(DT_OPTION_REQUEUE, text, "--x", &option, &err);
    if (!ok(rc == DT_SUCCESS && option.type == DT_OPTION_SET &&
                !memcmp(option.cap, wanted, sizeof(wanted)),
            "--dt-requeue=%s", text ? text : "no value"))
        diag("result %d, \"%s\"", rc, err.text);
}

static void test_requeue(void)
{
    caps(NULL, 100, 100, 100, 100, 0);
    caps("", 100, 100, 100, 100, 0);
    caps("(null)", 100, 100, 100, 100, 0);
    caps("0", 0, 0, 0, 0, 0);
    caps("7", 7, 7, 7, 7, 0);
    caps("7,error=2", 7, 7, 7, 7, 2);
    caps("preempt=1,nodefail=2,timeout=3,error=4", 100, 1, 2, 3, 4);
    caps("error=4,9,preempt=20", 9, 20, 9, 9, 4);
    parses(DT_OPTION_REQUEUE, "none", "none", DT_OPTION_NONE, 0, "");
    parses(DT_OPTION_REQUEUE, "help", "help", DT_OPTION_HELP, 0, "");
    static const char *const bad[] = {
        "x",          "7,",       ",7",
        "7,8",        "error",    "error=",
        "error=x",    "error=-1", "error=1,error=2",
        "preempt =1", "7 ",       "7,none",
        "asked=2",    "max=3",    "99999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuses(DT_OPTION_REQUEUE, bad[i], "expected [<max>][,preempt=<n>]");
}

static void minimum_is(const char *text, uint32_t count)
{
    struct dt_option option;
    struct dt_error err = {""};
    dt_result_t rc =
        dt_option_parse(DT_OPTION_ELASTIC, text, "--x", &option, &err);
    if (!ok(rc == DT_SUCCESS && option.type == DT_OPTION_SET &&
                option.count == count,
            "--dt-elastic=%s", text))
        diag("result %d, \"%s\"", rc, err.text);
}

static void test_elastic(void)
{
    minimum_is("1", 1);
    minimum_is("12", 12);
    minimum_is("1000000000", 1000000000);
    parses(DT_OPTION_ELASTIC, "none", "none", DT_OPTION_NONE, 0, "");
    parses(DT_OPTION_ELASTIC, "help", "help", DT_OPTION_HELP, 0, "");
    static const char *const bad[] = {
        "0",   "-1", "+1",  "1.5",    "2x",         "2-4",
        " 2",  "2 ", "two", "none,2", "1000000001", "99999999999999999999",
        "0x2", ","};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuses(DT_OPTION_ELASTIC, bad[i],
                "expected a whole number from 1 to the tasks of the step, none "
                "or help");
}

static void signal_is(const char *text, int number)
{
    parses(DT_OPTION_NOTICE_SIGNAL, text, text, DT_OPTION_SET, number, "");
}

static void test_signal(void)
{
    signal_is("USR1", SIGUSR1);
    signal_is("SIGUSR1", SIGUSR1);
    signal_is("usr2", SIGUSR2);
    signal_is("sigTerm", SIGTERM);
    signal_is("HUP", SIGHUP);
    signal_is("10", 10);
    signal_is("64", 64);
    parses(DT_OPTION_NOTICE_SIGNAL, "none", "none", DT_OPTION_NONE, 0, "");
    parses(DT_OPTION_NOTICE_SIGNAL, "help", "help", DT_OPTION_HELP, 0, "");
    static const char *const bad[] = {
        "FOO",   "KILL", "SIGKILL", "STOP", "9",     "19",       "0",
        "65",    "-1",   "10x",     " 10",  "USR1 ", "USR",      "SIG",
        "USR1,", "B:10", "USR1@60", "+10",  "SIG10", "SIGSIGHUP"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuses(DT_OPTION_NOTICE_SIGNAL, bad[i],
                "expected a signal that a program can handle, as USR1 or");
}

static void test_others(void)
{
    parses(DT_OPTION_NICS, NULL, "closest", DT_OPTION_SET,
           DT_PLACE_NICS_CLOSEST, "");
    parses(DT_OPTION_NICS, "rail", "rail", DT_OPTION_SET, DT_PLACE_NICS_RAIL,
           "");
    parses(DT_OPTION_NICS, "none", "none", DT_OPTION_SET, DT_PLACE_NICS_NONE,
           "");
    parses(DT_OPTION_NICS, "help", "help", DT_OPTION_HELP, 0, "");
    parses(DT_OPTION_NICS, "map:mlx5_0,0000:0f:00.0", "map:mlx5_0,0000:0f:00.0",
           DT_OPTION_SET, DT_PLACE_NICS_MAP, "0mlx5_0,00000:0f:00.0");
    refuses(DT_OPTION_NICS, "verbose,rail",
            "expected closest, rail, map:<names>, none or help");
    refuses(DT_OPTION_NICS, "1", "expected closest,");
    refuses(DT_OPTION_NICS, "map:", "expected names of NICs, as in map:mlx5_0");
    refuses(DT_OPTION_NICS, "map:a,", "expected names of NICs");
    refuses(DT_OPTION_NICS, "map:0123456789012345678901234567890x",
            "expected names of NICs");

    parses(DT_OPTION_CPU_BIND, NULL, "gpu", DT_OPTION_SET, DT_PLACE_CPUS_GPU,
           "");
    parses(DT_OPTION_CPU_BIND, "none", "none", DT_OPTION_SET,
           DT_PLACE_CPUS_NONE, "");
    parses(DT_OPTION_PMIX, NULL, "server", DT_OPTION_SET, DT_PMIX_SERVER, "");
    parses(DT_OPTION_PMIX, "(null)", "server", DT_OPTION_SET, DT_PMIX_SERVER,
           "");
    parses(DT_OPTION_PMIX, "auto", "auto", DT_OPTION_SET, DT_PMIX_AUTO, "");
    parses(DT_OPTION_PMIX, "server", "server", DT_OPTION_SET, DT_PMIX_SERVER,
           "");
    parses(DT_OPTION_PMIX, "slurm", "slurm", DT_OPTION_SET, DT_PMIX_SLURM, "");
    parses(DT_OPTION_PMIX, "none", "none", DT_OPTION_SET, DT_PMIX_NONE, "");
    parses(DT_OPTION_PMIX, "help", "help", DT_OPTION_HELP, 0, "");
    refuses(DT_OPTION_PMIX, "ours",
            "expected auto, server, slurm, none or help");
    refuses(DT_OPTION_PMIX, "server:2",
            "expected auto, server, slurm, none or help");
    refuses(DT_OPTION_CPU_BIND, "cores", "expected gpu, none or help");

    for (int id = 0; id < DT_NOPTIONS; id++) {
        const struct dt_option_name *name = &dt_option_name[id];
        char variable[64];
        snprintf(variable, sizeof(variable), "SLURM_SPANK_%s",
                 name->job_control);
        ok(!strcmp(variable, name->inherited) && *dt_option_help(id),
           "--%s has the variables that Slurm makes of its name, and help",
           name->option);
    }
}

static void splits(const char *list, size_t n)
{
    struct dt_devices devices;
    struct dt_error err = {""};
    char text[DT_DEVICES_TEXT] = "?";
    uint8_t index[DT_TOPO_MAX_GPUS];
    for (size_t i = 0; i < DT_TOPO_MAX_GPUS; i++)
        index[i] = (uint8_t)i;
    dt_result_t rc = dt_devices_split(list, &devices, &err);
    if (rc == DT_SUCCESS)
        dt_devices_join(&devices, index, devices.n, text);
    if (!ok(rc == DT_SUCCESS && devices.n == n && (!n || !strcmp(text, list)),
            "\"%.40s\" is %zu devices", list ? list : "unset", n))
        diag("result %d, \"%s\"", rc, err.text);
}

static void will_not_split(const char *list, const char *why)
{
    struct dt_devices devices;
    struct dt_error err = {""};
    dt_result_t rc = dt_devices_split(list, &devices, &err);
    if (!ok(rc == DT_ERR_INVALID_ARG && strstr(err.text, why) && !devices.n,
            "\"%.40s\" is no list: %s", list, why))
        diag("result %d, \"%s\"", rc, err.text);
}

/* count names of length bytes each, to be freed */
static char *long_list(size_t count, size_t length)
{
    char *list = malloc(count * (length + 1));
    if (!list)
        abort();
    memset(list, 'G', count * (length + 1));
    for (size_t i = 1; i < count; i++)
        list[i * (length + 1) - 1] = ',';
    list[count * (length + 1) - 1] = '\0';
    return list;
}

static void test_devices(void)
{
    splits(NULL, 0);
    splits("", 0);
    splits("NoDevFiles", 0);
    splits("7", 1);
    splits("0,1,2,3", 4);
    splits("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,"
           "MIG-GPU-5a9f1c31-0c2b-3a12-8b51-7f2ef4c2c1aa/1/0",
           2);
    char *fits = long_list(DT_TOPO_MAX_GPUS, 127);
    splits(fits, DT_TOPO_MAX_GPUS);
    free(fits);

    will_not_split(",", "empty name");
    will_not_split("0,", "empty name");
    will_not_split(",0", "empty name");
    will_not_split("0,,1", "empty name");
    char *many = long_list(DT_TOPO_MAX_GPUS + 1, 1);
    will_not_split(many, "more than 64 names");
    free(many);
    char *large = long_list(DT_TOPO_MAX_GPUS, 128);
    will_not_split(large, "longer than");
    free(large);

    struct dt_devices devices;
    char text[DT_DEVICES_TEXT];
    dt_devices_split("a,bb,ccc,d", &devices, NULL);
    dt_devices_join(&devices, (uint8_t[]){3, 1, 0}, 3, text);
    ok(!strcmp(text, "d,bb,a"), "joined in another order");
    dt_devices_join(&devices, NULL, 0, text);
    ok(!strcmp(text, ""), "none joined is the empty list");
}

static void is_longest(const char *nodelist, size_t wanted)
{
    size_t got = dt_table_longest_node(nodelist);
    if (!ok(got == wanted, "the longest of \"%s\" has %zu bytes", nodelist,
            wanted))
        diag("got %zu", got);
}

static void test_table(void)
{
    is_longest("", 0);
    is_longest("n0", 2);
    is_longest("n[0-1]", 2);
    is_longest("n[0-10]", 3);
    is_longest("n[001-100]", 4);
    is_longest("n[9-10,100,7]", 4);
    is_longest("login,gpu-node[01-02],x", 10);
    is_longest("x,login", 5);
    is_longest("rack[1-2]node[08-12]-ib", 14);
    is_longest("r[1-3]n[1,10],a", 5);
    /* malformed: some number, and an end */
    is_longest("n[0-", 1);
    is_longest("n[[]", 2);
    is_longest("n]]", 3);
    is_longest("[", 0);
    is_longest(",,,", 0);

    char *env[] = {(char *)"A=1",
                   (char *)"SLURM_NODELIST=gpu-node[001-100]",
                   (char *)"SLURM_JOB_NODELIST_HET_GROUP_0=abc",
                   (char *)"SLURM_JOB_NODELIST_PACK_GROUP_1=cpu-node-[1-20]",
                   (char *)"SLURM_NTASKS=20000",
                   (char *)"SLURM_NTASKS_PER_NODE=7",
                   NULL};
    struct dt_table table = dt_table_widths(env);
    ok(table.node == 11, "the node column fits all components");
    ok(table.rank == 5, "the rank column fits the last rank");
    env[1] = NULL;
    table = dt_table_widths(env);
    ok(table.node == 4 && table.rank == 4, "no column is below its title");
    ok(!strcmp(dt_table_getenv(env, "A"), "1") && !dt_table_getenv(env, "AB"),
       "a variable is found by its whole name");

    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    dt_table_print_header(&table, out);
    struct dt_table_row row = {3,         1,     "n1", "2,3",
                               "2,3,0,1", "0-3", "0",  "mlx5_0"};
    dt_table_print_row(&table, &row, out);
    row.cpus = row.numas = row.nics = "";
    dt_table_print_row(&table, &row, out);
    row.cpus = "0-13,112-125,200,202,204,206,208,210,212,214";
    dt_table_print_row(&table, &row, out);
    fclose(out);
    const char *wanted =
        "dt: rank  node  local  gpus     sees             cpus            "
        "numa  nics\n"
        "dt:    3  n1        1  2,3      2,3,0,1          0-3             "
        "0     mlx5_0\n"
        "dt:    3  n1        1  2,3      2,3,0,1          -               "
        "-     -\n"
        "dt:    3  n1        1  2,3      2,3,0,1          "
        "0-13,112-125,200,202,204,206,208,210,212,...  -     -\n";
    if (!ok(!strcmp(text, wanted), "header and rows are aligned"))
        diag("got\n%s", text);
    free(text);
}

int main(void)
{
    test_gpus();
    test_lists();
    test_ckpt();
    test_requeue();
    test_elastic();
    test_signal();
    test_others();
    test_devices();
    test_table();
    return tap_done();
}
