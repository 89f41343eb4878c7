#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "unit/catalog/import/drafts.h"
#include "unit/suite.h"

#define HEAD "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"

FIXTURE(set_up, tear_down)

static int read_text(const char *gpu, const char *text, struct err *e)
{
    struct draft_text in = { "z.csv", text, strlen(text) };

    return zeus_read(&d, gpu, &in, e);
}

TEST(an_epoch_becomes_steps_per_second)
{
    const struct workload *w;

    ck_assert_int_eq(read_text("v100", HEAD "imagenet,resnet50,256,adadelta,250,5005,220\n", NULL),
                     0);
    /* 1,281,167 / 256 = 5004.6, so an epoch has 5005 steps */
    ck_assert_double_eq_tol(d.rows[0].throughput, 1, 1e-12);
    ck_assert_double_eq(d.rows[0].watts, 220);
    ck_assert_double_eq(d.rows[0].duration_s, 5005);
    w = &d.workloads[0];
    ck_assert_str_eq(w->name, "resnet50/imagenet/adadelta (batch size 256)");
    ck_assert_str_eq(w->family, "resnet50");
    ck_assert_str_eq(w->dataset, "imagenet");
    ck_assert_double_eq(w->batch, 256);
    ck_assert(w->params > 1e7);    // ResNet-50 is built in
}

static const struct {
    const char *name, *network, *dataset, *want;
} descriptors[] = {
    { "BERT on tweets is not BERT on SQuAD", "bert_base_uncased", "sentiment140",
      "bert-base-sentiment" },
    { "BERT on SQuAD", "bert_base_uncased", "squad", "bert-base" },
    { "a network that is trained on one dataset only", "resnet50", "imagenet", "resnet50" },
};

EACH(the_dataset_has_a_say_in_the_descriptor, descriptors)
{
    struct workload want;
    const char *text = arena_printf(&d.arena, "%s%s,%s,32,adamw,250,100,200\n", HEAD,
                                    descriptors[_i].dataset, descriptors[_i].network);

    ck_assert_int_eq(workload_builtin(&d.arena, descriptors[_i].want, 32, &want, NULL), 0);
    ck_assert_int_eq(read_text("v100", text, NULL), 0);
    ck_assert_msg(d.workloads[0].flop_per_sample == want.flop_per_sample &&
                      d.workloads[0].bytes_per_sample == want.bytes_per_sample,
                  "%s", descriptors[_i].name);
    ck_assert_str_eq(d.workloads[0].dataset, descriptors[_i].dataset);
}

/* 'limits' of rows in, limits of cells out; 0 is the default. */
static const struct {
    const char *name, *gpu;
    int limits[3], want[3];
} limits[] = {
    { "the type's own limit is the default", "v100", { 100, 250, 150 }, { 100, 0, 150 } },
    { "also when the file goes above it", "v100", { 100, 250, 300 }, { 100, 0, 300 } },
    { "else the largest of the file", "v100", { 100, 200, 150 }, { 100, 0, 150 } },
    { "and for a type nobody knows", "zz9", { 100, 250, 300 }, { 100, 250, 0 } },
};

EACH(one_limit_counts_as_none, limits)
{
    char *text = arena_strdup(&d.arena, HEAD);

    for (int i = 0; i < 3; i++)
        text = arena_printf(&d.arena, "%scifar100,net,%d,adam,%d,10,100\n", text, 8,
                            limits[_i].limits[i]);
    ck_assert_int_eq(read_text(limits[_i].gpu, text, NULL), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(d.rows[i].key.limit_w == limits[_i].want[i], "%s", limits[_i].name);
    ck_assert_int_eq(d.n_workloads, 1);
}

static const struct {
    const char *name, *given, *want;
} refusals[] = {
    { "an empty file", "", "z.csv" },
    { "only a header", HEAD, "not one measurement" },
    { "a missing column", "dataset,network\nx,y\n", "batch_size" },
    { "an unknown dataset", HEAD "mnist,net,8,adam,250,10,100\n", "z.csv:2: how many samples" },
    { "no network", HEAD "cifar100,,8,adam,250,10,100\n", "z.csv:2: network" },
    { "a batch of zero", HEAD "cifar100,net,0,adam,250,10,100\n", "z.csv:2: batch_size" },
    { "a fraction of a batch", HEAD "cifar100,net,8.5,adam,250,10,100\n", "whole" },
    { "milliwatts", HEAD "cifar100,net,8,adam,250000,10,100\n", "power_limit: 250000 is not" },
    { "no time", HEAD "cifar100,net,8,adam,250,0,100\n", "time_per_epoch" },
    { "no power", HEAD "cifar100,net,8,adam,250,10,\n", "z.csv:2" },
    { "too few fields", HEAD "cifar100,net\n", "z.csv:2" },
};

EACH(malformed_rows_are_refused_with_their_line, refusals)
{
    struct err e = { 0 };

    ck_assert_msg(read_text("v100", refusals[_i].given, &e) == -EINVAL, "%s", refusals[_i].name);
    ck_assert_msg(strstr(e.text, refusals[_i].want) != NULL && strstr(e.text, "z.csv") == e.text,
                  "%s: %s", refusals[_i].name, e.text);
}
