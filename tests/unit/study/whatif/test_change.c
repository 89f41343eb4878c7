#include "study/whatif/change.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "catalog/cluster/cluster.h"
#include "unit/suite.h"
#include "unit/support.h"
#include "unit/texts.h"

static const char site[] = "node a k80:2 v100:1\nnode b k80:2\nnode c v100:4\nset noise 0.1\n";

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

/* "-k80 +8xl40s" as changes; in the order of the words. */
static int parse(const char *text, struct fleet_change *out, struct err *e)
{
    struct slice word;
    int n = 0, rc = 0;

    while (rc == 0 && slice_next(&text, ' ', &word)) {
        const char *rest = arena_strndup(&arena, word.at + 1, word.len - 1);

        rc = *word.at == '+' ? change_parse_added(&arena, rest, &out[n++], e)
                             : change_parse_removed(&arena, rest, &out[n++], e);
    }
    return rc < 0 ? rc : n;
}

/* The site after the changes: "a k80 v100, c v100; k80 v100: 2". */
static const char *digest(const char *text)
{
    struct fleet_change changes[8];
    struct cluster before, after;
    struct err e = { 0 };
    struct buf b;

    buf_init(&b, 65536);
    ck_assert_int_eq(cluster_parse(&arena, "t", site, strlen(site), &before, &e), 0);
    int n = parse(text, changes, &e);
    if (n < 0 || change_apply(&arena, &before, changes, n, &after, &e) < 0)
        return arena_printf(&arena, "! %s", e.text);
    for (int i = 0; i < after.n_nodes; i++) {
        buf_printf(&b, "%s%s", i > 0 ? ", " : "", after.nodes[i].name);
        for (int g = 0; g < after.nodes[i].n_gpus; g++)
            buf_printf(&b, " %s", after.types[after.nodes[i].types[g]].name);
    }
    buf_printf(&b, "; %d types, %d GPUs", after.n_types, after.n_gpus);
    ck_assert_double_eq(after.settings.noise, 0.1);
    ck_assert_int_eq(before.n_gpus, 9);
    ck_assert_int_eq(change_count(&before, 0), 4);
    return text_taken(&arena, &b);
}

static const struct text_row cases[] = {
    { "nothing changes", "", "a k80 k80 v100, b k80 k80, c v100 v100 v100 v100; 2 types, 9 GPUs" },
    { "a type goes, and nodes that had nothing else", "-k80",
      "a v100, c v100 v100 v100 v100; 1 types, 5 GPUs" },
    { "some of a type go from the last nodes", "-k80:3",
      "a k80 v100, c v100 v100 v100 v100; 2 types, 6 GPUs" },
    { "a name is as people write it", "-K80:4", "a v100, c v100 v100 v100 v100; 1 types, 5 GPUs" },
    { "new ones come on nodes like the largest", "-k80 -v100:1 +6xl40s",
      "a v100, c v100 v100 v100, added-1 l40s l40s l40s l40s, added-2 l40s l40s; 2 types, 10 GPUs" },
    { "or of the size that is said", "-k80 +3xl40s@2",
      "a v100, c v100 v100 v100 v100, added-1 l40s l40s, added-2 l40s; 2 types, 8 GPUs" },
    { "more of the same", "-k80 +1xv100",
      "a v100, c v100 v100 v100 v100, added-1 v100; 1 types, 6 GPUs" },
    { "all go and others come", "-k80 -v100 +1xt4", "added-1 t4; 1 types, 1 GPUs" },
    { "nothing is left", "-k80 -v100", "! no GPU would be left: keep some, or add some" },
    { "a type that is not there", "-t4",
      "! no GPU of type 't4' to remove; there are k80 (4), v100 (5)" },
    { "a type that is gone by then", "-k80 -k80",
      "! no GPU of type 'k80' to remove; there are v100 (5)" },
    { "more than there are", "-k80:5", "! 5 GPUs of type k80 cannot be removed: there are 4" },
    { "a type that nobody knows", "+1xnosuch",
      "! GPU type 'nosuch' is neither the site's nor built in ('gogh catalog gpus')" },
    { "no count to remove", "-k80:", "! --remove k80:: want TYPE or TYPE:COUNT, as k80 or k80:4" },
    { "none of a type", "-k80:0", "! --remove k80:0: want TYPE or TYPE:COUNT, as k80 or k80:4" },
    { "no type to remove", "-:4", "! --remove :4: want TYPE or TYPE:COUNT, as k80 or k80:4" },
    { "no count to add", "+l40s",
      "! --add l40s: want COUNTxTYPE, as 8xl40s, or with the size of its nodes, up to 64 GPUs: "
      "8xl40s@4" },
    { "no type to add", "+8x",
      "! --add 8x: want COUNTxTYPE, as 8xl40s, or with the size of its nodes, up to 64 GPUs: "
      "8xl40s@4" },
    { "nodes of no size", "+8xl40s@0",
      "! --add 8xl40s@0: want COUNTxTYPE, as 8xl40s, or with the size of its nodes, up to 64 GPUs: "
      "8xl40s@4" },
};

EACH(gpus_go_and_come, cases)
{
    text_row_check(&cases[_i], digest(cases[_i].given));
}

static const struct {
    const char *text;
    double want_w;    // -1: refused
} watts[] = {
    { "20kW", 20000 }, { "500W", 500 }, { "500", 500 }, { "1.5e3W", 1500 }, { "0", 0 },
    { "0W", 0 },       { "20 kW", -1 }, { "20MW", -1 }, { "20kw", -1 },     { "", -1 },
    { "kW", -1 },      { "-5W", -1 },   { "-1", -1 },   { "1e300kW", -1 },
};

EACH(watts_have_units, watts)
{
    struct err e = { 0 };
    double got = 0;
    int rc = change_parse_watts(watts[_i].text, &got, &e);

    ck_assert_msg((rc == 0) == (watts[_i].want_w >= 0), "'%s'", watts[_i].text);
    if (rc == 0)
        ck_assert_double_eq(got, watts[_i].want_w);
    else
        ck_assert_ptr_nonnull(strstr(e.text, "want watts, as 20kW"));
}

TEST(as_many_as_may_come_have_names_that_nobody_has)
{
    static const char text[] = "node added-7 k80:1\nnode added-x k80:1\nnode added-2 k80:1\n";
    const struct fleet_change many = {
        .is_added = true, .count = 100000, .type = "l40s", .node_size = 1
    };
    struct cluster before, after;

    ck_assert_int_eq(cluster_parse(&arena, "t", text, strlen(text), &before, NULL), 0);
    ck_assert_int_eq(change_apply(&arena, &before, &many, 1, &after, NULL), 0);
    ck_assert_int_eq(after.n_nodes, 100003);
    ck_assert_str_eq(after.nodes[3].name, "added-8");
    ck_assert_str_eq(after.nodes[100002].name, "added-100007");
}

TEST(all_types_of_several_are_there_once)
{
    static const char other[] = "node x v100:1 t4:2\n";
    struct cluster one, two, all;
    const struct cluster *const both[] = { &one, &two };

    ck_assert_int_eq(cluster_parse(&arena, "t", site, strlen(site), &one, NULL), 0);
    ck_assert_int_eq(cluster_parse(&arena, "t", other, strlen(other), &two, NULL), 0);
    change_unite(&arena, both, 2, &all);
    ck_assert_int_eq(all.n_types, 3);
    ck_assert_str_eq(all.types[0].name, "k80");
    ck_assert_str_eq(all.types[2].name, "t4");
    ck_assert_int_eq(one.n_types, 2);
}
