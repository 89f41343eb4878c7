#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/import/descriptors.h"
#include "catalog/import/draft.h"
#include "store/store.h"
#include "unit/catalog/import/drafts.h"
#include "unit/suite.h"

FIXTURE(set_up, tear_down)

static int read_text(const char *text, struct err *e)
{
    struct draft_text in = { "m.csv", text, strlen(text) };

    return csv_read(&d, &in, NULL, e);
}

/* ---- rows ---- */

TEST(two_columns_and_a_value_are_enough)
{
    ck_assert_int_eq(read_text("gpu,workload,throughput\nv100,A,2\n", NULL), 0);
    ck_assert_int_eq(d.n_rows, 1);
    ck_assert_double_eq(d.rows[0].throughput, 2);
    ck_assert(isnan(d.rows[0].watts) && isnan(d.rows[0].noise) && d.rows[0].fits);
    ck_assert_int_eq(d.rows[0].key.n_gpus, 1);
    ck_assert_int_eq(d.rows[0].key.neighbour, -1);
    ck_assert_double_eq(d.rows[0].time_s, 0);
}

TEST(every_column_has_its_place)
{
    const struct measurement *m;

    ck_assert_int_eq(
        read_text("# ours\nworkload,batch,gpu,neighbour,n_gpus,spread,limit_w,throughput,"
                  "watts,fits,time,duration_s,noise\n"
                  "A,8,v100,\"B, the other\",4,1,150,2.5,130,1,1700000000.5,60,0.02\n"
                  "A (batch size 8),8,v100,,,,,,,0,,,\n",
                  NULL),
        0);
    m = &d.rows[0];
    ck_assert_str_eq(d.workloads[m->key.workload].name, "A (batch size 8)");
    ck_assert_str_eq(d.workloads[m->key.neighbour].name, "B, the other");
    ck_assert(m->key.n_gpus == 4 && m->key.is_spread && m->key.limit_w == 150);
    ck_assert(m->watts == 130 && m->time_s == 1700000000.5 && m->duration_s == 60);
    ck_assert(m->noise == 0.02);
    ck_assert(!d.rows[1].fits && d.rows[1].key.workload == m->key.workload);
}

#define A50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
    const char *name, *given, *want;
} refusals[] = {
    { "an empty file", "", "m.csv" },
    { "only a header", "workload,gpu,throughput\n", "not one measurement" },
    { "no workload column", "gpu,throughput\nv100,1\n", "workload" },
    { "no gpu column", "workload,throughput\nA,1\n", "gpu" },
    { "an unknown column", "workload,gpu,speed\nA,v100,1\n", "unknown column 'speed'; known are" },
    { "too few fields", "workload,gpu,throughput\nA,v100\n", "m.csv:2" },
    { "an open quote", "workload,gpu,throughput\n\"A,v100,1\n", "m.csv:2" },
    { "no workload", "workload,gpu,throughput\n,v100,1\n", "m.csv:2: workload" },
    { "no gpu", "workload,gpu,throughput\nA,,1\n", "m.csv:2: gpu" },
    { "a word for a speed", "workload,gpu,throughput\nA,v100,fast\n", "m.csv:2" },
    { "nan", "workload,gpu,throughput\nA,v100,nan\n", "m.csv:2" },
    { "a negative speed", "workload,gpu,throughput\nA,v100,-1\n", "wrong unit?" },
    { "a huge speed", "workload,gpu,throughput\nA,v100,1e10\n", "wrong unit?" },
    { "a speed of zero", "workload,gpu,throughput\nA,v100,0\n", "fits 0" },
    { "no value at all", "workload,gpu,throughput\nA,v100,\n", "needs a throughput" },
    { "milliwatts", "workload,gpu,watts\nA,v100,130000\n", "wrong unit?" },
    { "a speed where it does not fit", "workload,gpu,throughput,fits\nA,v100,1,0\n", "fits" },
    { "fits of two", "workload,gpu,fits\nA,v100,2\n", "0 to 1" },
    { "half a GPU", "workload,gpu,n_gpus,throughput\nA,v100,0.5,1\n", "n_gpus" },
    { "a batch that the name denies", "workload,gpu,batch,watts\nA (batch size 4),v100,8,1\n",
      "batch: differs" },
    { "one GPU spread", "workload,gpu,spread,throughput\nA,v100,1,1\n", "cannot be spread" },
    { "no noise at all", "workload,gpu,throughput,noise\nA,v100,1,0\n", "too good" },
    { "hardly any noise", "workload,gpu,throughput,noise\nA,v100,1,0.05\nA,v100,1,1e-9\n",
      "m.csv:3: noise: below 0.0001 is too good" },
    { "another file altogether", "time,job\n1,2\n",
      "no column 'workload': each row needs a workload and a gpu; is this the right file?" },
    { "a name over 200 bytes with its batch",
      "workload,gpu,throughput,batch\n" A50 A50 A50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      ",v100,1,16\n",
      "m.csv:2: workload: over 200 bytes with its batch size" },
    { "a limit in fractions", "workload,gpu,throughput,limit_w\nA,v100,1,99.5\n", "whole" },
    { "the fourth line", "workload,gpu,throughput\n# note\nA,v100,1\nA,v100,x\n", "m.csv:4" },
};

EACH(malformed_rows_are_refused_with_line_and_column, refusals)
{
    struct err e = { 0 };

    ck_assert_msg(read_text(refusals[_i].given, &e) == -EINVAL, "%s", refusals[_i].name);
    ck_assert_msg(strstr(e.text, refusals[_i].want) != NULL && strstr(e.text, "m.csv") == e.text,
                  "%s: %s", refusals[_i].name, e.text);
}

/* ---- descriptors ---- */

static int describe(const char *text, struct descriptors *out, struct err *e)
{
    return descriptors_read(&d.arena, "d.csv", text, strlen(text), out, e);
}

TEST(a_family_describes_all_its_batch_sizes)
{
    struct descriptors des;
    struct workload w;
    bool is_described;

    ck_assert_int_eq(describe("# note\nfamily,task,params,conv\nA,vision,5e6,1\n", &des, NULL), 0);
    is_described = descriptors_apply(&d.arena, &des, "A (batch size 16)", &w);
    ck_assert(is_described && w.batch == 16 && w.params == 5e6 && w.conv == 1);
    ck_assert_str_eq(w.name, "A (batch size 16)");
    ck_assert_str_eq(w.family, "A");
    ck_assert(isnan(w.gemm) && w.dataset == NULL);
    is_described = descriptors_apply(&d.arena, &des, "B (batch size 2)", &w);
    ck_assert(!is_described && w.batch == 2 && isnan(w.params));
    ck_assert_str_eq(w.family, "B");
    descriptors_release(&des);
}

TEST(a_name_column_describes_workloads_one_by_one)
{
    struct descriptors des;
    struct workload w;

    ck_assert_int_eq(describe("name,batch,inference,family,params\nX y,32,1,F,7\n"
                              "Z (batch size 4),,,,9\n",
                              &des, NULL),
                     0);
    descriptors_apply(&d.arena, &des, "X y", &w);
    ck_assert(w.batch == 32 && w.is_inference && w.params == 7);
    ck_assert_str_eq(w.name, "X y");
    ck_assert_str_eq(w.family, "F");
    descriptors_apply(&d.arena, &des, "Z (batch size 4)", &w);
    ck_assert(w.batch == 4 && w.params == 9 && !w.is_inference);
    ck_assert_str_eq(w.family, "Z");
    descriptors_release(&des);
}

TEST(without_descriptors_the_built_in_models_are_asked)
{
    struct workload w;
    bool is_described;

    is_described = descriptors_apply(&d.arena, NULL, "ResNet-50 (batch size 8)", &w);
    ck_assert(is_described && w.batch == 8 && w.params > 1e7);
    ck_assert_str_eq(w.family, "ResNet-50");
    is_described = descriptors_apply(&d.arena, NULL, "nobody's model", &w);
    ck_assert(!is_described && isnan(w.batch) && isnan(w.params));
}

static const struct {
    const char *name, *given, *want;
} bad_descriptors[] = {
    { "an empty file", "", "d.csv" },
    { "an unknown feature", "family,speed\nA,1\n", "d.csv:1: no such" },
    { "no family", "task\nx\n", "family" },
    { "a batch for a family", "family,batch\nA,1\n", "'name' column" },
    { "a family twice", "family\nA\nA\n", "d.csv:3: 'A' is described twice" },
    { "a word for a number", "family,params\nA,many\n", "d.csv:2" },
    { "a share above one", "family,conv\nA,2\n", "d.csv:2" },
    { "an empty key", "family,conv\n,1\n", "d.csv:2" },
    { "a batch that the name denies", "name,batch\nA (batch size 4),5\n", "disagree" },
};

EACH(malformed_descriptors_are_refused, bad_descriptors)
{
    struct descriptors des;
    struct err e = { 0 };

    ck_assert_msg(describe(bad_descriptors[_i].given, &des, &e) == -EINVAL, "%s",
                  bad_descriptors[_i].name);
    ck_assert_msg(strstr(e.text, bad_descriptors[_i].want) != NULL, "%s: %s",
                  bad_descriptors[_i].name, e.text);
    descriptors_release(&des);
}

/* ---- whole imports ---- */

static void import_text(struct store *s, const char *path, const char *text,
                        struct import_report *report)
{
    struct catalog c;
    struct draft in;
    struct err e = { 0 };

    ck_assert_int_eq(file_write(path, text, strlen(text), &e), 0);
    catalog_init(&c);
    draft_init(&in);
    ck_assert_int_eq(catalog_load(&c, s, &e), 0);
    ck_assert_msg(import_csv_read(&in, path, NULL, NULL, &e) == 0, "%s", e.text);
    ck_assert_msg(draft_commit(&in, &c, 5, NULL, report, &e) == 0, "%s", e.text);
    draft_release(&in);
    catalog_release(&c);
}

TEST(export_and_import_give_the_same_bytes_and_twice_is_once)
{
    static const char given[] =
        "workload,gpu,neighbour,n_gpus,spread,limit_w,throughput,watts,fits,time,duration_s,"
        "noise\n"
        "A (batch size 8),v100,,1,0,,2.5,130,1,1700000000.25,60,0.02\n"
        "\"B, c\",k80,A (batch size 8),1,0,,0.30000000000000004,,1,,,\n"
        "A (batch size 8),k80,\"B, c\",1,0,,,,0,,,\n"
        "A (batch size 8),v100,,4,1,150,9,,1,,,\n";
    const char *tmp = getenv("TMPDIR");
    char path[256];
    struct import_report report;
    struct store *s;
    struct buf out;

    snprintf(path, sizeof(path), "%s/gogh-csv-XXXXXX", tmp != NULL ? tmp : "/tmp");
    ck_assert_int_ge(close(mkstemp(path)), 0);
    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &s, NULL), 0);
    import_text(s, path, given, &report);
    ck_assert(!report.is_known && report.n_measurements == 4 && report.n_unfit == 1);
    import_text(s, path, given, &report);
    ck_assert(report.is_known && report.n_measurements == 0);
    buf_init(&out, 10000);
    ck_assert_int_eq(catalog_export(s, &out, NULL), 0);
    ck_assert_str_eq(buf_text(&out), given);
    buf_release(&out);
    store_close(s);
    unlink(path);
}

/* What a catalog would refuse is found before a store is opened. */
TEST(a_draft_that_no_catalog_takes_is_refused_with_the_name_of_its_file)
{
    struct err e = { 0 };
    char name[16];

    draft_begin_part(&d, "csv", "m.csv");
    for (int i = 0; i < CATALOG_SETTINGS_MAX; i++) {
        struct measurement *m = draft_add(&d, draft_workload(&d, "A"), draft_type(&d, "v100"), -1);
        m->key.limit_w = i + 1;
        m->throughput = 1;
    }
    ck_assert_int_eq(draft_check(&d, &e), -EOVERFLOW);
    ck_assert_msg(strstr(e.text, "m.csv: more than 4096 different") == e.text, "%s", e.text);
    for (int i = 0; i < CATALOG_TYPES_MAX; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        draft_type(&d, name);
    }
    ck_assert_int_eq(draft_check(&d, &e), -EOVERFLOW);
    ck_assert_msg(strstr(e.text, "m.csv: 't254' is one GPU type too many") == e.text, "%s", e.text);
}

TEST(descriptors_survive_export_and_import)
{
    struct store *s;
    struct catalog c;
    struct workload w;
    struct descriptors des;
    struct buf out;
    int i;

    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &s, NULL), 0);
    catalog_init(&c);
    ck_assert_int_eq(catalog_load(&c, s, NULL), 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    workload_init(&w, "X, y");
    w.batch = 3;
    w.family = "F";
    w.params = 1.0 / 3;
    ck_assert_int_eq(catalog_add_workload(&c, &w, &i, NULL), 0);
    buf_init(&out, 10000);
    ck_assert_int_eq(catalog_export_workloads(s, &out, NULL), 0);
    ck_assert_int_eq(describe(buf_text(&out), &des, NULL), 0);
    descriptors_apply(&d.arena, &des, "X, y", &w);
    ck_assert(w.batch == 3 && w.params == 1.0 / 3 && isnan(w.conv));
    descriptors_release(&des);
    buf_release(&out);
    catalog_release(&c);
    store_close(s);
}
