/* Other people's traces, well and badly formed. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "sim/trace/generate.h"
#include "sim/trace/import.h"
#include "unit/sim/small_truth.h"
#include "unit/suite.h"
#include "unit/texts.h"

enum kind { GAVEL, GAVEL_DRAWN, PHILLY, ALIBABA, NODES };

#define PODS                                                                            \
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time," \
    "deletion_time,scheduled_time\n"

static int import(struct arena *a, enum kind kind, struct trace_import *in, struct trace *t,
                  struct err *e)
{
    if (kind == PHILLY)
        return trace_import_philly(a, in, t, e);
    if (kind == ALIBABA)
        return trace_import_alibaba(a, in, t, e);
    return trace_import_gavel(a, in, t, e);
}

/* Each job as "name@at workload steps|rate*duration gpus flags;", or the error. */
static const char *digest(struct arena *a, enum kind kind, const char *text)
{
    struct small_truth small;
    struct trace_draw draw;
    struct trace_import in = { .name = "f", .text = text, .len = strlen(text) };
    struct trace t = { 0 };
    struct err e = { 0 };
    struct buf b;
    int rc;

    small_truth_init(&small);
    buf_init(&b, 65536);
    ck_assert_int_eq(trace_draw_init(&draw, a, &small.truth, NULL, "slow", 1, &e), 0);
    in.draw = kind == GAVEL ? NULL : &draw;
    if (kind == NODES)
        rc = cluster_import_alibaba(a, "f", text, strlen(text), &b, &e);
    else
        rc = import(a, kind, &in, &t, &e);
    if (rc < 0) {
        buf_clear(&b);
        buf_printf(&b, "! %s", e.text);
    }
    for (int i = 0; rc == 0 && i < t.n_jobs; i++) {
        const struct trace_job *j = &t.jobs[i];

        buf_printf(&b, "%s@%g", j->name, j->at_s);
        if (kind == GAVEL)
            buf_printf(&b, " %s %g", j->workload, j->steps);
        else if (j->is_inference)
            buf_printf(&b, " for %g", j->duration_s);
        if (j->n_gpus != 1)
            buf_printf(&b, " x%d", j->n_gpus);
        if (j->types != NULL)
            buf_printf(&b, " on %s", j->types);
        buf_printf(&b, "%s%s;", j->is_exclusive ? " alone" : "",
                   j->min_throughput > 0 ? " promised" : "");
    }
    small_truth_release(&small);
    return text_taken(a, &b);
}

static const struct {
    const char *name;
    enum kind kind;
    const char *given, *want;
} cases[] = {
    { "Gavel's seven columns", GAVEL, "LM (batch size 5)\tcd x\t-n\t1\t900\t6.0\t2\n",
      "g000001@0 LM (batch size 5) 900 x2;" },
    { "Gavel's ten columns", GAVEL,
      "A3C\tpython3\tdir\t-n\t1\t50\t4\t1\t-1.000000\t12\r\nA3C\tp\td\t-n\t1\t60\t1\t1\t-1\t2\n",
      "g000002@0 A3C 60;g000001@10 A3C 50 x4;" },
    { "promises where the truth knows the workload", GAVEL_DRAWN,
      "big\tx\t-n\t1\t900\t0\t1\nother\tx\t-n\t1\t900\t1\t1\n", "g000001@0 promised;g000002@1;" },
    { "a wrong number of columns", GAVEL, "\nLM\t1\n",
      "! f:2: 2 tab-separated columns: want 7 (msr) or 10 (physical_cluster)" },
    { "a bad number of steps", GAVEL, "LM\tx\t-n\t1\tmany\t6.0\t2\n",
      "! f:1: total_steps 'many': want a number from 1 to 1e+14" },
    { "no workload", GAVEL, "\tx\t-n\t1\t9\t6.0\t2\n",
      "! f:1: the first column is no workload name" },
    { "an empty file", GAVEL, "", "! f: no job in it: is this the right file?" },
    { "Philly's rows, by arrival; those of no duration are left out", PHILLY,
      "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 00:01:40,66.0,2,132,a\n"
      "2017-10-08 23:59:59,10.0,1,10.0,b\n2017-10-09 00:01:40,0,1,0,c\n\n",
      "p000003@0 promised;p000002@101 x2 promised;" },
    { "leap days count", PHILLY,
      "timestamp,duration,num_gpus,gpu_time,cluster\n2016-02-28 00:00:00,1,1,1,a\n"
      "2016-03-01 00:00:00,1,1,1,a\n",
      "p000002@0 promised;p000003@172800 promised;" },
    { "a bad timestamp", PHILLY,
      "timestamp,duration,num_gpus,gpu_time,cluster\n2017-13-09 00:01:40,66.0,2,132,a\n",
      "! f:2: timestamp '2017-13-09 00:01:40': want YYYY-MM-DD HH:MM:SS" },
    { "half a GPU", PHILLY,
      "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 00:01:40,66.0,0.5,132,a\n",
      "! f:2: want a whole number of GPUs from 1 to 4096" },
    { "pods: servers, best effort, shares, constraints; none without a GPU", ALIBABA,
      PODS "s,1,1,1,460,,LS,Running,10,110,20\nb,1,1,1,1000,P100|V100M16|P100,BE,Running,5,9,\n"
           "c,1,1,0,0,,LS,Running,1,9,1\nd,1,1,2,1000,G3,Guaranteed,Running,20,30,20\n",
      "b@0 on p100,v100-16 alone promised;s@5 for 90;d@15 for 10 x2 on g3 alone;" },
    { "a model nobody knows", ALIBABA, PODS "s,1,1,1,460,X9,LS,Running,10,110,20\n",
      "! f:2: GPU model 'X9' is not one of P100, T4, V100M16, V100M32, A10, G2, G3" },
    { "a quality of service nobody knows", ALIBABA, PODS "s,1,1,1,460,,XX,Running,10,110,20\n",
      "! f:2: qos 'XX' is not LS, BE, Burstable or Guaranteed" },
    { "more than a whole GPU", ALIBABA, PODS "s,1,1,1,1460,,LS,Running,10,110,20\n",
      "! f:2: gpu_milli 1460: want 1 to 1000 thousandths of a GPU" },
    { "a pod twice", ALIBABA,
      PODS "s,1,1,1,460,,LS,Running,10,110,20\ns,1,1,1,460,,LS,Running,10,110,20\n",
      "! f: pod 's' is there twice: keep one row" },
    { "nodes without any GPU", NODES, "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,P100\n",
      "! f: no node with a GPU in it" },
    { "a node of an unknown model", NODES, "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,2,X\n",
      "! f:2: want a printable sn and a model of P100, T4, V100M16, V100M32, A10, G2, G3" },
};

EACH(importing, cases)
{
    struct arena a;
    const char *got;

    arena_init(&a);
    got = digest(&a, cases[_i].kind, cases[_i].given);
    ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s: got %s", cases[_i].name, got);
    arena_release(&a);
}

TEST(a_duration_becomes_as_many_steps_as_the_reference_does)
{
    static const char text[] = "timestamp,duration,num_gpus,gpu_time,cluster\n"
                               "2017-10-09 00:00:00,1000,1,1000,a\n";
    struct trace_import in = { .name = "f", .text = text, .len = strlen(text) };
    struct small_truth small;
    struct trace_draw draw;
    struct trace t;
    struct arena a;
    struct err e;

    arena_init(&a);
    small_truth_init(&small);
    ck_assert_int_eq(trace_draw_init(&draw, &a, &small.truth, NULL, "slow", 1, &e), 0);
    in.draw = &draw;
    ck_assert_int_eq(trace_import_philly(&a, &in, &t, &e), 0);
    ck_assert(t.jobs[0].steps == (strcmp(t.jobs[0].workload, "big") == 0 ? 10000 : 4000));
    small_truth_release(&small);
    arena_release(&a);
}

TEST(a_gang_that_is_too_large_is_cut_down_and_keeps_its_length)
{
    static const char text[] = "timestamp,duration,num_gpus,gpu_time,cluster\n"
                               "2017-10-09 07:01:55,1000,64,64000,x\n";
    struct trace_import in = {
        .name = "f",
        .text = text,
        .len = sizeof text - 1,
        .gang_max = 2,
    };
    struct small_truth small;
    struct trace_draw draw;
    struct trace t;
    struct arena a;
    struct err e;
    int w;

    arena_init(&a);
    small_truth_init(&small);
    ck_assert_int_eq(trace_draw_init(&draw, &a, &small.truth, NULL, "slow", 1, &e), 0);
    in.draw = &draw;
    ck_assert_int_eq(trace_import_philly(&a, &in, &t, &e), 0);
    ck_assert_int_eq(t.jobs[0].n_gpus, 2);
    ck_assert_int_eq(t.jobs[0].max_gpus, 2);
    w = truth_find_workload(&small.truth, t.jobs[0].workload);
    ck_assert_double_eq(t.jobs[0].steps,
                        round(1000 * truth_gang_speed(&small.truth, w, SLOW, 2, 0)));
    small_truth_release(&small);
    arena_release(&a);
}

static const struct {
    const char *name, *rows;
    int n_jobs;
    double rate;
    const char *want;
} requests[] = {
    { "times from when replicas are there, and lengths",
      "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:05.4799600,0,0\n"
      "2023-11-16 18:18:03.9799600,7,70\n",
      0, 0.05, "120.000000 4808 10\n121.500000 1 1\n180.000000 7 70\n" },
    { "only the first",
      "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:13,3,4\n2023-11-17 18:18:03,5,6\n", 2, 0.2,
      "120.000000 1 2\n130.000000 3 4\n" },
    { "a day that is none", "2023-11-16 18:17:03,1,2\n2023-11-36 18:17:13,3,4\n", 0, 0,
      "! f:3: write TIMESTAMP as YYYY-MM-DD HH:MM:SS.SSS" },
    { "out of order", "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:02,3,4\n", 0, 0,
      "! f:3: sort the rows by TIMESTAMP" },
    { "tokens below 0", "2023-11-16 18:17:03,1,-2\n2023-11-16 18:17:02,3,4\n", 0, 0,
      "! f:2: tokens are counts below 100 million" },
};

EACH(requests_of_azure_become_a_service, requests)
{
    struct trace_service s = { .name = "azure", .load_s = 60 };
    struct trace_import in = { .name = "f", .n_jobs = requests[_i].n_jobs };
    struct arena a;
    struct buf b;
    struct err e;

    arena_init(&a);
    buf_init(&b, 65536);
    in.text = arena_printf(&a, "TIMESTAMP,ContextTokens,GeneratedTokens\n%s", requests[_i].rows);
    in.len = strlen(in.text);
    if (trace_import_azure(&a, &in, &s, &b, &e) < 0) {
        buf_clear(&b);
        buf_printf(&b, "! %s", e.text);
    } else {
        ck_assert_double_eq_tol(s.rate, requests[_i].rate, 1e-12);
    }
    ck_assert_msg(strcmp(buf_text(&b), requests[_i].want) == 0, "%s: got %s", requests[_i].name,
                  buf_text(&b));
    buf_release(&b);
    arena_release(&a);
}

TEST(nodes_become_a_cluster_file)
{
    struct arena a;
    const char *got;

    arena_init(&a);
    got = digest(&a, NODES, "sn,cpu_milli,memory_mib,gpu,model\nn-1,1,1,2,V100M32\nn-2,1,1,8,G2\n");
    ck_assert_ptr_nonnull(strstr(got, "\nnode n-1 v100-32:2\nnode n-2 g2:8\n"));
    ck_assert_ptr_nonnull(strstr(got, "\ngputype g2 like="));
    arena_release(&a);
}
