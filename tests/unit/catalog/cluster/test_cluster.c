/* Cluster files: what people write, and what they get wrong. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/ledger.h"
#include "store/store.h"
#include "unit/suite.h"
#include "unit/texts.h"

/* "node=type,type ..." for each node, or the error. */
static const char *digest(struct arena *a, const char *text)
{
    struct err e = { 0 };
    struct cluster c;
    struct buf b;

    buf_init(&b, 65536);
    if (cluster_parse(a, "c", text, strlen(text), &c, &e) < 0) {
        buf_printf(&b, "! %s", e.text);
    } else {
        int n = 0;

        for (int i = 0; i < c.n_nodes; i++) {
            buf_printf(&b, "%s=", c.nodes[i].name);
            for (int g = 0; g < c.nodes[i].n_gpus; g++, n++)
                buf_printf(&b, "%s%s", g > 0 ? "," : "", c.types[c.nodes[i].types[g]].name);
            buf_puts(&b, " ");
        }
        ck_assert_int_eq(n, c.n_gpus);
    }
    return text_taken(a, &b);
}

static const struct text_row cases[] = {
    { "a node has GPUs of one type", "node a v100:2\n", "a=v100,v100 " },
    { "or of several", "node a v100:1 k80:1\n", "a=v100,k80 " },
    { "a range makes many nodes", "node a-[9-11] k80:1\n", "a-9=k80 a-10=k80 a-11=k80 " },
    { "the range's first number gives the width", "node n[08-10]x k80:1\n",
      "n08x=k80 n09x=k80 n10x=k80 " },
    { "two names of one type are one type", "node a v100:1\nnode b v100-16:1 V100:1\n",
      "a=v100 b=v100,v100 " },
    { "a described type may come after the node", "node a mine:1\ngputype mine like=v100 cap=200\n",
      "a=mine " },
    { "a described type keeps its own name", "gputype V100 cap=200\nnode a v100:1\n", "a=V100 " },
    { "quotes keep blanks", "node \"big box\" \"rtx 3090:1\"\n", "big box=rtx 3090 " },
    { "a sign is no part of a range", "node a-[1-+3] k80:1\n",
      "! c:1: 'a-[1-+3]': want one range of numbers like name-[1-3]" },
    { "nothing in it", "# empty\n", "! c: no node: add lines like 'node n-[1-3] v100:4'" },
    { "an unknown line", "nodes a v100:1\n",
      "! c:1: a line begins with node, gputype, workload, set or #" },
    { "an unknown type suggests gputype", "node a vx9:1\n",
      "! c:1: GPU type 'vx9' is not built in: describe it with a line 'gputype vx9 like=OTHER "
      "key=value ...'" },
    { "a node without GPUs", "node a\n",
      "! c:1: node 'a' has no GPUs: add TYPE:COUNT, e.g. v100:4" },
    { "a count of zero", "node a v100:0\n",
      "! c:1: 'v100:0': want a count from 1; a cluster has at most 100000 GPUs" },
    { "a count below zero", "node a v100:-1\n",
      "! c:1: 'v100:-1': want a count from 1; a cluster has at most 100000 GPUs" },
    { "a count that is none", "node a v100:x\n",
      "! c:1: 'v100:x': want a count from 1; a cluster has at most 100000 GPUs" },
    { "too many GPUs on a node", "node a v100:100001\n",
      "! c:1: 'v100:100001': want a count from 1; a cluster has at most 100000 GPUs" },
    { "too many GPUs by a range", "node a-[1-9] v100:20000\n",
      "! c:1: more than 100000 GPUs: check counts and ranges" },
    { "no count", "node a v100\n", "! c:1: 'v100' is not TYPE:COUNT, e.g. v100:4" },
    { "a node twice", "node a v100:1\nnode a v100:1\n",
      "! c:2: node 'a' is there twice: give each its own name" },
    { "a range that overlaps a node", "node a-2 v100:1\nnode a-[1-3] v100:1\n",
      "! c:2: node 'a-2' is there twice: give each its own name" },
    { "a range that runs backwards", "node a-[3-1] v100:1\n",
      "! c:1: 'a-[3-1]': want one range of numbers like name-[1-3]" },
    { "a range without an end", "node a-[3- v100:1\n",
      "! c:1: 'a-[3-': want one range of numbers like name-[1-3]" },
    { "a type twice", "gputype v100 cap=200\ngputype v100-16 cap=250\nnode a v100:1\n",
      "! c:2: GPU type 'v100-16' is described twice (as 'v100'): keep one line" },
    { "like something unknown", "gputype x like=y\nnode a x:1\n",
      "! c:1: like=y: no such GPU type is built in or described above" },
    { "like in the wrong place", "gputype x cap=100 like=v100\nnode a x:1\n",
      "! c:1: write like=NAME once, right behind the name" },
    { "an unknown setting", "node a v100:1\nset sleep 3\n",
      "! c:2: no setting 'sleep'; there are sleep_after_s, wake_s, move_s, restart_s, settle_s, "
      "report_s, noise, watts_noise, delay_w, price_w, promise_w, probe_share, power_cap_w, "
      "decide_s, theta, power_limits, power_model" },
    { "a setting by name that is none of them", "node a v100:1\nset power_model 1\n",
      "! c:2: power_model wants additive or saturating" },
    { "a setting out of range", "node a v100:1\nset theta 9\n",
      "! c:2: theta wants a whole number from 1 to 4" },
    { "a setting that is not whole", "node a v100:1\nset theta 1.5\n",
      "! c:2: theta wants a whole number from 1 to 4" },
    { "a setting twice", "node a v100:1\nset theta 1\nset theta 2\n",
      "! c:3: theta is set twice: keep one line" },
    { "a setting without a value", "node a v100:1\nset theta\n",
      "! c:2: want 'set KEY VALUE', e.g. 'set sleep_after_s 60'" },
    { "a workload twice", "node a v100:1\nworkload w params=1e6\nworkload w params=1e6\n",
      "! c:3: workload 'w' is described twice: keep one line" },
};

EACH(reading, cases)
{
    struct arena a;
    const char *got;

    arena_init(&a);
    got = digest(&a, cases[_i].given);
    text_row_check(&cases[_i], got);
    arena_release(&a);
}

TEST(settings_have_defaults_and_can_be_set)
{
    static const char text[] = "node a v100:1\nset sleep_after_s 90\nset theta 3\nset noise 0\n"
                               "set power_model saturating\n";
    struct cluster c;
    struct arena a;
    struct err e;

    arena_init(&a);
    ck_assert_int_eq(cluster_parse(&a, "c", text, strlen(text), &c, &e), 0);
    ck_assert(c.settings.sleep_after_s == 90 && c.settings.theta == 3 && c.settings.noise == 0);
    ck_assert(c.settings.wake_s == 5 && c.settings.move_s == 60 && c.settings.restart_s == 0 &&
              c.settings.settle_s == 300 && c.settings.report_s == 300 && c.settings.price_w == 0 &&
              c.settings.delay_w == -1 && c.settings.promise_w == 1000 &&
              c.settings.probe_share == 0.02 && c.settings.power_cap_w == 0 &&
              c.settings.decide_s == 0 && c.settings.power_limits == 0);
    ck_assert_int_eq(c.settings.power_model, POWER_SATURATING);
    ck_assert_int_eq(cluster_parse(&a, "c", "node a v100:1\n", 14, &c, &e), 0);
    ck_assert_str_eq(power_model_name((enum power_model)c.settings.power_model), "additive");
    arena_release(&a);
}

TEST(a_setting_may_be_left_to_a_rule_and_a_retired_one_is_told)
{
    static const char text[] = "node a v100:1\nset delay_w auto\nset confidence_z 2\n";
    struct cluster_setting set;
    struct cluster c;
    struct arena a;
    struct err e;
    int n = 0;

    arena_init(&a);
    ck_assert_int_eq(cluster_parse(&a, "c", text, strlen(text), &c, &e), 0);
    ck_assert_double_eq(c.settings.delay_w, -1);
    for (int i = 0; cluster_setting(&c.settings, i, &set); i++)
        if (strcmp(set.key, "delay_w") == 0)
            n += strcmp(set.word, "auto") == 0;
    ck_assert_int_eq(n, 1);
    ck_assert_ptr_nonnull(strstr(c.notice, "c:3: confidence_z does nothing any more"));
    arena_release(&a);
}

TEST(figures_are_overridden_and_the_rest_kept)
{
    static const char text[] = "gputype v100 cap=300\ngputype fast like=v100 idle=20\n"
                               "gputype v100-whole like=v100 share_max=1\n"
                               "node a v100:1 fast:1 v100-whole:1\n"
                               "workload \"net (batch size 8)\" like=resnet50 params=9e6\n";
    const struct gpu_type *v100 = gpu_type_builtin("v100");
    struct cluster c;
    struct arena a;
    struct err e;

    arena_init(&a);
    ck_assert_int_eq(cluster_parse(&a, "c", text, strlen(text), &c, &e), 0);
    ck_assert(c.types[0].cap_w == 300 && c.types[0].mem_bytes == v100->mem_bytes);
    ck_assert(c.types[1].cap_w == 300 && c.types[1].idle_w == 20);
    ck_assert(c.types[0].share_max == 0 && c.types[1].share_max == 0);
    ck_assert(c.types[2].share_max == 1 && c.types[2].cap_w == 300);
    ck_assert_int_eq(c.n_workloads, 1);
    ck_assert(c.workloads[0].params == 9e6 && c.workloads[0].batch == 8 &&
              c.workloads[0].flop_per_sample > 0);
    arena_release(&a);
}

TEST(installing_makes_types_nodes_and_gpus)
{
    static const char text[] = "node a-[1-2] v100:2 k80:1\n";
    struct catalog catalog;
    struct ledger ledger;
    struct cluster c;
    struct arena a;
    struct err e;

    arena_init(&a);
    catalog_init(&catalog);
    ck_assert_int_eq(ledger_open(&ledger, &catalog, NULL, &e), 0);
    ck_assert_int_eq(cluster_parse(&a, "c", text, strlen(text), &c, &e), 0);
    ck_assert_int_eq(cluster_install(&c, &catalog, &ledger, 5, &e), 0);
    ck_assert_int_eq(catalog.n_types, 2);
    ck_assert_int_eq(ledger.state.n_nodes, 2);
    ck_assert_int_eq(ledger.state.n_gpus, 6);
    ck_assert_int_eq(ledger.state.gpus[5].type, catalog_find_type(&catalog, "k80"));
    ck_assert_int_eq(state_find_gpu(&ledger.state, "a-2", 0), 3);
    ledger_close(&ledger);
    catalog_release(&catalog);
    arena_release(&a);
}

/* What the store knows of 'v100' and 'net' after a cluster file was installed over it. */
TEST(written_lines_replace_what_the_store_knows_and_used_types_only_fill)
{
    static const char text[] = "node a v100:1 k80:1\n"
                               "gputype v100 idle=200 share_max=1\n"
                               "workload net params=9e6\n";
    struct gpu_type k80 = { .name = "k80", .idle_w = 77 }, v100 = *gpu_type_builtin("v100");
    struct catalog catalog, again;
    struct ledger ledger;
    struct cluster c;
    struct store *s;
    struct workload w;
    struct arena a;
    struct err e = { 0 };
    int i;

    arena_init(&a);
    catalog_init(&catalog);
    catalog_init(&again);
    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &s, &e), 0);
    ck_assert_int_eq(catalog_load(&catalog, s, &e), 0);
    ck_assert_int_eq(ledger_open(&ledger, &catalog, s, &e), 0);
    v100.name = "v100";
    workload_init(&w, "net");
    w.is_inference = true;
    w.params = 1;
    w.conv = 1;
    ck_assert_int_eq(catalog_begin(&catalog, &e), 0);
    catalog_add_type(&catalog, &v100, &i, &e);
    catalog_add_type(&catalog, &k80, &i, &e);
    ck_assert_int_eq(catalog_end(&catalog, catalog_add_workload(&catalog, &w, &i, &e), &e), 0);

    ck_assert_int_eq(cluster_parse(&a, "c", text, strlen(text), &c, &e), 0);
    ck_assert_msg(cluster_install(&c, &catalog, &ledger, 5, &e) == 0, "%s", e.text);
    ck_assert_int_eq(catalog_load(&again, s, &e), 0);
    for (const struct catalog *x = &catalog; x != NULL; x = x == &catalog ? &again : NULL) {
        ck_assert_double_eq(x->types[0].idle_w, 200);
        ck_assert_double_eq(x->types[1].idle_w, 77);
        ck_assert(x->types[0].share_max == 1 && x->types[1].share_max == 0);
        ck_assert(x->types[1].cap_w > 0);
        ck_assert(x->workloads[0].params == 9e6 && x->workloads[0].conv == 1);
        ck_assert(x->workloads[0].is_inference);
    }
    ledger_close(&ledger);
    catalog_release(&again);
    catalog_release(&catalog);
    store_close(s);
    arena_release(&a);
}

TEST(a_file_describes_no_more_types_than_a_catalog_takes)
{
    struct arena a;
    struct buf b;

    arena_init(&a);
    buf_init(&b, 1 << 20);
    for (int i = 0; i <= CATALOG_TYPES_MAX; i++)
        buf_printf(&b, "gputype t%d like=v100\n", i);
    buf_puts(&b, "node a t1:1\n");
    ck_assert_str_eq(digest(&a, buf_text(&b)),
                     "! c:256: more than 255 GPU types: keep those that nodes have");
    buf_release(&b);
    arena_release(&a);
}

TEST(what_is_written_reads_as_the_same_cluster)
{
    static const char text[] =
        "node b-[1-2] v100:2 \"my gpu:1\"\nnode \"big box\" k80:1 v100:1 k80:1\n"
        "gputype \"my gpu\" like=a100 cap=321 sharing=mps share_max=1\n"
        "set delay_w 65\nset theta 3\nset power_model saturating\n";
    struct buf once, twice;
    struct cluster c, again;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    buf_init(&once, 65536);
    buf_init(&twice, 65536);
    ck_assert_int_eq(cluster_parse(&a, "c", text, strlen(text), &c, &e), 0);
    ck_assert_int_eq(cluster_write(&c, &once), 0);
    ck_assert_msg(cluster_parse(&a, "w", buf_text(&once), once.len, &again, &e) == 0, "%s", e.text);
    ck_assert_int_eq(cluster_write(&again, &twice), 0);
    ck_assert_str_eq(buf_text(&once), buf_text(&twice));
    ck_assert_str_eq(digest(&a, text), digest(&a, buf_text(&once)));
    ck_assert_double_eq(again.settings.delay_w, 65);
    ck_assert_int_eq(again.settings.power_model, POWER_SATURATING);
    for (int i = 0; i < c.n_types; i++) {
        ck_assert_double_eq_tol(again.types[i].mem_bytes, c.types[i].mem_bytes, 1);
        ck_assert_double_eq(again.types[i].cap_w, c.types[i].cap_w);
        ck_assert_int_eq(again.types[i].capability, c.types[i].capability);
        ck_assert_int_eq((int)again.types[i].sharing, (int)c.types[i].sharing);
    }
    buf_release(&once);
    buf_release(&twice);
    arena_release(&a);
}

TEST(a_setting_is_set_by_its_key_within_its_range)
{
    struct cluster_settings s;
    struct err e = { 0 };

    cluster_defaults(&s);
    ck_assert_int_eq(cluster_set(&s, "delay_w", 30, &e), 0);
    ck_assert_double_eq(s.delay_w, 30);
    ck_assert_int_eq(cluster_set(&s, "theta", 3, &e), 0);
    ck_assert_int_eq(s.theta, 3);
    ck_assert_int_eq(cluster_set(&s, "delay_w", -1, &e), -EINVAL);
    ck_assert_str_eq(e.text, "delay_w -1: want 0 to 1e+06");
    ck_assert_int_eq(cluster_set(&s, "theta", 2.5, &e), -EINVAL);
    ck_assert_int_eq(cluster_set(&s, "nosuch", 1, &e), -EINVAL);
    ck_assert_str_eq(e.text, "no setting 'nosuch'");
    ck_assert_double_eq(s.delay_w, 30);
}
