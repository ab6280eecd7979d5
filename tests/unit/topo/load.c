/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.c - a topology from a file of any format. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"
#include "topo/sources.h"

#define NCCL   "<system><cpu numaid=\"0\" affinity=\"f\"/></system>"
#define MATRIX "  GPU0 CPU Affinity\nGPU0 X 0-3\n"
#define GRES   "nodename=n1 name=gpu File=/dev/nvidia0\n"
#define TEXT   "# by hand\n\n DtTopology=1 Source=\"a tale\"\n"

static void test_recognised(void)
{
    static const struct {
        const char *what, *text, *source;
    } good[] = {
        {"NCCL XML", NCCL, "NCCL XML"},
        {"XML with all that may stand before it",
         "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- <topology> -->\n"
         "<!DOCTYPE system SYSTEM \"x.dtd\">\n" NCCL,
         "NCCL XML"},
        {"a matrix", MATRIX, "nvidia-smi topo -m"},
        {"a matrix in a page of text",
         "Name=gpu is for Slurm\n\n\t\033[4mGPU0\tCPU Affinity\033[0m\nGPU0\t "
         "X \t0-3\n",
         "nvidia-smi topo -m"},
        {"gres.conf", "AutoDetect=off\n" GRES, "gres.conf"},
        {"our own format, with its source", TEXT, "a tale"},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct dt_error err = {{0}};
        dt_topo_t *topo = NULL;
        dt_result_t rc =
            dt_topo_read(good[i].text, strlen(good[i].text), &topo, &err);
        if (!ok(rc == DT_SUCCESS && strcmp(topo->source, good[i].source) == 0,
                "recognises %s", good[i].what))
            diag("%s", rc == DT_SUCCESS ? topo->source : err.text);
        dt_topo_destroy(topo);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *what, *text;
        dt_result_t rc;
        const char *says;
    } bad[] = {
        {"nothing", "", DT_ERR_CORRUPT, "not a topology file: expected"},
        {"prose", "GPU0: fine\n# Name=gpu\nMyName=gpu\n", DT_ERR_CORRUPT,
         "not a topology file"},
        {"other XML", "<html/>", DT_ERR_UNSUPPORTED, "XML of <html>"},
        {"XML that is none", "<system", DT_ERR_CORRUPT, "line 1: not"},
        {"entities",
         "<!DOCTYPE system [<!ENTITY a \"a\">]><system>&a;</system>",
         DT_ERR_CORRUPT, "DOCTYPE"},
        {"our own format, not first", "x\nDtTopology=1\n", DT_ERR_CORRUPT,
         "not a topology file"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct dt_error err = {{0}};
        dt_topo_t *topo = NULL;
        dt_result_t rc =
            dt_topo_read(bad[i].text, strlen(bad[i].text), &topo, &err);
        if (!ok(rc == bad[i].rc && !topo && strstr(err.text, bad[i].says),
                "refuses %s", bad[i].what))
            diag("%d: %s", rc, err.text);
    }
}

static bool write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* In two pieces, and not at once. */
static bool write_slowly(const char *path, const char *text)
{
    size_t half = strlen(text) / 2;
    FILE *file = fopen(path, "w");
    usleep(50000);
    return file && fwrite(text, 1, half, file) == half && !fflush(file) &&
           !usleep(50000) && fputs(text + half, file) >= 0 && !fclose(file);
}

/* In the current directory, a new one. */
static void test_files(void)
{
    struct dt_error err = {{0}};
    dt_topo_t *topo = NULL;
    char here[128];
    ok(write_file("odd\"name", NCCL) && getcwd(here, sizeof(here)) &&
           dt_topo_load("./odd\"name", &topo, &err) == DT_SUCCESS,
       "a file is loaded");
    ok(topo && strcmp(topo->source, "NCCL XML odd name") == 0,
       "its source is its format and name");
    ok(topo && strncmp(topo->nccl_file, here, strlen(here)) == 0 &&
           strcmp(topo->nccl_file + strlen(here), "/odd\"name") == 0,
       "NCCL can find it from anywhere");
    dt_topo_destroy(topo);

    ok(write_file("matrix", MATRIX) && dup2(open("matrix", O_RDONLY), 0) == 0 &&
           dt_topo_load("-", &topo, &err) == DT_SUCCESS && !*topo->nccl_file &&
           strcmp(topo->source, "nvidia-smi topo -m from standard input") == 0,
       "standard input is read");
    dt_topo_destroy(topo);

    topo = NULL;
    ok(dt_topo_load("absent", &topo, &err) == DT_ERR_NOT_FOUND &&
           strstr(err.text, "absent: cannot open"),
       "a file that is not there");
    ok(dt_topo_load(".", &topo, &err) == DT_ERR_IO &&
           strstr(err.text, "expected a file or a pipe"),
       "a directory");
    ok(dt_topo_load("/dev/zero", &topo, &err) == DT_ERR_IO &&
           strstr(err.text, "expected a file or a pipe") && !topo,
       "a device without an end");
    pid_t writer = mkfifo("fifo", 0600) ? -1 : fork();
    if (writer == 0)
        _exit(write_slowly("fifo", MATRIX) ? 0 : 1);
    ok(writer > 0 && dt_topo_load("fifo", &topo, &err) == DT_SUCCESS &&
           waitpid(writer, NULL, 0) == writer,
       "a pipe by name, with a slow writer");
    dt_topo_destroy(topo);
    topo = NULL;
    ok(write_file("prose", "hello\n") &&
           dt_topo_load("prose", &topo, &err) == DT_ERR_CORRUPT &&
           strncmp(err.text, "prose: not", 10) == 0,
       "an error names the file");
    ok(write_file("large", "") &&
           truncate("large", DT_TOPO_MAX_FILE + 1) == 0 &&
           dt_topo_load("large", &topo, &err) == DT_ERR_CORRUPT &&
           strstr(err.text, "more than 16 MiB") && !topo,
       "a file too large");
    static const char *const made[] = {"odd\"name", "matrix", "fifo", "prose",
                                       "large"};
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        unlink(made[i]);
}

int main(void)
{
    test_recognised();
    test_refused();
    char dir[] = "/tmp/dt-load-XXXXXX";
    if (ok(mkdtemp(dir) && chdir(dir) == 0, "a directory for files"))
        test_files();
    rmdir(dir);
    return tap_done();
}
