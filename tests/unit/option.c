/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* option.c - the pure parts of the plugin: the value of --dt-gpus, lists of
 * devices, the widths of the table. */
#include "devices.h"
#include "option.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static void parses(const char *text, const char *as, bool verbose)
{
    struct dt_option option = {.type = DT_OPTION_HELP};
    struct dt_error err = {""};
    char got[64] = "";
    if (dt_option_parse(text, "--dt-gpus", &option, &err) == DT_SUCCESS)
        dt_option_print(&option, got, sizeof(got));
    if (!ok(!strcmp(got, as) && option.verbose == verbose, "%s is %s%s",
            text ? text : "no value", as, verbose ? ", verbose" : ""))
        diag("got \"%s\" verbose %d, \"%s\"", got, option.verbose, err.text);
}

static void refuses(const char *text, const char *why)
{
    struct dt_option option = {.type = DT_OPTION_HELP, .count = 17};
    struct dt_error err = {""};
    dt_result_t rc = dt_option_parse(text, "SLURM_DT_GPUS", &option, &err);
    if (!ok(rc == DT_ERR_INVALID_ARG && strstr(err.text, why) &&
                !strncmp(err.text, "SLURM_DT_GPUS=", 14) &&
                !strpbrk(err.text, "\n") && option.type == DT_OPTION_HELP &&
                option.count == 17,
            "\"%.20s\" is refused: %s", text, why))
        diag("result %d, \"%s\"", rc, err.text);
}

static void test_option(void)
{
    parses(NULL, "--dt-gpus=auto", false);
    parses("", "--dt-gpus=auto", false);
    parses("(null)", "--dt-gpus=auto", false);
    parses("auto", "--dt-gpus=auto", false);
    parses("rotate", "--dt-gpus=rotate", false);
    parses("single", "--dt-gpus=single", false);
    parses("none", "--dt-gpus=none", false);
    parses("help", "--dt-gpus=help", false);
    parses("1", "--dt-gpus=1", false);
    parses("64", "--dt-gpus=64", false);
    parses("verbose", "--dt-gpus=auto", true);
    parses("verbose,auto", "--dt-gpus=auto", true);
    parses("verbose,rotate", "--dt-gpus=rotate", true);
    parses("verbose,2", "--dt-gpus=2", true);

    refuses("foo", "expected " DT_OPTION_EXPECTED);
    refuses("Auto", "expected [verbose,]auto");
    refuses("auto,verbose", "expected [verbose,]auto");
    refuses("autox", "expected [verbose,]auto");
    refuses("verbosex", "expected [verbose,]auto");
    refuses("verbose,", "expected [verbose,]auto");
    refuses("verbose,verbose", "expected [verbose,]auto");
    refuses(",auto", "expected [verbose,]auto");
    refuses(" auto", "expected [verbose,]auto");
    refuses("-1", "expected [verbose,]auto");
    refuses("+1", "expected [verbose,]auto");
    refuses("1 ", "expected [verbose,]auto");
    refuses("1.5", "expected [verbose,]auto");
    refuses("0x4", "expected [verbose,]auto");
    refuses("0", "expected 1 to 64 GPUs per task");
    refuses("65", "expected 1 to 64 GPUs per task");
    refuses("99999999999999999999999999", "expected 1 to 64 GPUs per task");
    refuses("18446744073709551617", "expected 1 to 64 GPUs per task");
    char endless[4096];
    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    refuses(endless, "xxx: expected [verbose,]auto");
}

static void splits(const char *list, size_t n)
{
    struct dt_devices devices;
    struct dt_error err = {""};
    char text[DT_DEVICES_TEXT] = "?";
    size_t index[DT_PLACE_MAX_GPUS];
    for (size_t i = 0; i < DT_PLACE_MAX_GPUS; i++)
        index[i] = i;
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
    char *fits = long_list(DT_PLACE_MAX_GPUS, 127);
    splits(fits, DT_PLACE_MAX_GPUS);
    free(fits);

    will_not_split(",", "empty name");
    will_not_split("0,", "empty name");
    will_not_split(",0", "empty name");
    will_not_split("0,,1", "empty name");
    char *many = long_list(DT_PLACE_MAX_GPUS + 1, 1);
    will_not_split(many, "more than 64 names");
    free(many);
    char *large = long_list(DT_PLACE_MAX_GPUS, 128);
    will_not_split(large, "longer than");
    free(large);

    struct dt_devices devices;
    char text[DT_DEVICES_TEXT];
    dt_devices_split("a,bb,ccc,d", &devices, NULL);
    dt_devices_join(&devices, (size_t[]){3, 1, 0}, 3, text);
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
    struct dt_table_row row = {3, 1, "n1", "2,3", "2,3,0,1"};
    dt_table_print_row(&table, &row, out);
    fclose(out);
    ok(!strcmp(text, "dt: rank  node  local  gpus             sees\n"
                     "dt:    3  n1        1  2,3              2,3,0,1\n"),
       "header and row are aligned");
    free(text);
}

int main(void)
{
    test_option();
    test_devices();
    test_table();
    return tap_done();
}
