/* Who was where, from looks at a state. */
#include <string.h>

#include "catalog/cluster/job.h"
#include "study/run.h"
#include "study/occupancy.h"
#include "unit/suite.h"
#include "unit/support.h"

static const char begin[] = "type v100\n"
                            "workload w params=1e6 batch=8\n"
                            "node n v100 v100\n"
                            "job a w steps=100\n"
                            "job b w steps=100\n";

/* What happens before the look at 60, 120, ... ; intervals as "GPU job from to". */
static const struct {
    const char *name, *looks[4], *want;
} cases[] = {
    { "nobody is anywhere", { "", "" }, "" },
    { "one stays to the end", { "", "start a 0\n", "" }, "0 0 120-200 " },
    { "one goes", { "start a 0\n", "", "finish a\n" }, "0 0 60-180 " },
    { "one moves", { "start a 0\n", "start a 1\n" }, "0 0 60-120 1 0 120-200 " },
    { "two share, one goes", { "start a 0\nstart b 0\n", "finish a\n" }, "0 0 60-120 0 1 60-200 " },
    { "one is back", { "start a 0\n", "stop a\n", "start a 0\n" }, "0 0 60-120 0 0 180-200 " },
    { "sorted by GPU, then time", { "start a 1\n", "start b 0\n", "" }, "0 1 120-200 1 0 60-200 " },
};

EACH(looks_become_stays, cases)
{
    struct study_result r = { 0 };
    struct world w;
    struct occupancy s;
    const char *got = "";

    world_init(&w, begin);
    s = (struct occupancy){ .arena = &w.arena };
    for (int i = 0; i < 4 && cases[_i].looks[i] != NULL; i++) {
        world_add(&w, cases[_i].looks[i]);
        occupancy_update(&s, &w.ledger.state, 60 * (i + 1));
    }
    occupancy_end(&s, 200, &r);
    for (int i = 0; i < r.n_intervals; i++)
        got = arena_printf(&w.arena, "%s%d %d %g-%g ", got, r.intervals[i].gpu, r.intervals[i].job,
                           r.intervals[i].from_s, r.intervals[i].to_s);
    ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s: %s", cases[_i].name, got);
    world_release(&w);
}

TEST(another_power_limit_is_another_stay)
{
    struct study_result r = { 0 };
    struct world w;
    struct occupancy s;

    world_init(&w, begin);
    s = (struct occupancy){ .arena = &w.arena };
    world_add(&w, "start a 0\n");
    occupancy_update(&s, &w.ledger.state, 60);
    w.ledger.state.jobs[0]->limit_w = 150;
    occupancy_update(&s, &w.ledger.state, 120);
    occupancy_end(&s, 200, &r);
    ck_assert_int_eq(r.n_intervals, 2);
    ck_assert(r.intervals[0].limit_w == 0 && r.intervals[0].to_s == 120);
    ck_assert(r.intervals[1].limit_w == 150 && r.intervals[1].from_s == 120);
    world_release(&w);
}
