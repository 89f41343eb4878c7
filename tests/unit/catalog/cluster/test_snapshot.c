/* The frozen view: who is in it, who is beside whom, and that it stays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit/support.h"
#include "unit/suite.h"

static const char small[] = "type v100\ntype k80\n"
                            "workload w\nworkload x\n"
                            "node n1 v100 k80 v100\nnode n2 k80\n";

TEST(running_first_then_the_queue_in_order)
{
    struct world w;

    world_init(&w, small);
    world_add(&w, "at 10\njob a w\njob b x steps=50 deadline=60\njob c w prio=1\njob d w\n"
                  "job e w\nhold e\nat 20\nstart d 0\nat 35\n");
    world_look(&w);
    const struct snapshot *s = &w.snapshot;
    ck_assert_int_eq(s->n_jobs, 4);
    ck_assert_int_eq(s->n_running, 1);
    static const char *const want[] = { "d", "c", "a", "b" };
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(s->jobs[i].spec->name, want[i]);
    ck_assert_double_eq(s->jobs[0].ran_s, 15);
    ck_assert_double_eq(s->jobs[0].waited_s, 0);
    ck_assert_double_eq(s->jobs[3].waited_s, 25);
    ck_assert_double_eq(s->jobs[3].ran_s, 0);
    ck_assert_double_eq(s->jobs[3].need, 2);
    ck_assert_double_eq(s->jobs[3].remaining, 50);
    ck_assert_int_eq(s->jobs[3].workload, world_workload(&w, "x"));
    ck_assert_int_eq(s->jobs[3].id, world_job(&w, "b"));
    ck_assert_int_eq(s->n_behind, 0);
    world_release(&w);
}

TEST(gpus_know_their_residents_and_residents_their_gpus)
{
    struct world w;

    world_init(&w, small);
    world_add(&w, "job a w gpus=2\njob b x\njob c x\nstart b 2\nstart a 0,2\ndrain n1\n");
    world_look(&w);
    const struct snapshot *s = &w.snapshot;
    ck_assert_int_eq(s->n_gpus, 4);
    for (int g = 0; g < 4; g++) {
        static const int want_n[] = { 1, 0, 2, 0 };
        ck_assert_int_eq(s->gpus[g].n_jobs, want_n[g]);
        ck_assert_int_eq(s->gpus[g].may_start, g == 3);
        ck_assert_int_eq(s->gpus[g].type, g % 2);
        ck_assert_int_eq(s->gpus[g].node, g / 3);
        for (int i = 0; i < s->gpus[g].n_jobs; i++) {
            const struct snapshot_job *j = &s->jobs[s->gpus[g].jobs[i]];
            bool is_there = false;
            for (int k = 0; k < j->n_held; k++)
                is_there |= j->gpus[k] == g;
            ck_assert(is_there && j->is_running);
        }
    }
    ck_assert_int_ne(s->gpus[2].jobs[0], s->gpus[2].jobs[1]);
    world_release(&w);
}

TEST(nothing_that_happens_later_shows)
{
    struct world w;
    struct plan before, after;

    world_init(&w, small);
    world_add(&w, "job a w gpus=2 min=1\njob b x\njob c x\nstart b 2\nstart a 0,2\n");
    world_look(&w);
    struct snapshot frozen = w.snapshot;
    struct snapshot_gpu gpus[4];
    struct snapshot_job jobs[3];
    memcpy(gpus, frozen.gpus, sizeof gpus);
    memcpy(jobs, frozen.jobs, sizeof jobs);
    world_solve(&w, "greedy", &before);
    world_add(&w, "at 100\nstart a 1,3\nstop b\nfinish a\njob d w\njob e w\nstart c 0\n"
                  "node n3 v100\ndown n1\n");
    for (int i = 0; i < 500; i++) {
        struct job_spec spec = spec_of("", 0);
        char name[16];
        snprintf(name, sizeof name, "j%d", i);
        spec.name = name;
        world_apply(&w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
    }
    ck_assert_mem_eq(gpus, frozen.gpus, sizeof gpus);
    ck_assert_mem_eq(jobs, frozen.jobs, sizeof jobs);
    ck_assert_int_eq(frozen.jobs[0].gpus[0], jobs[0].gpus[0]);
    ck_assert_int_eq(frozen.nodes[0].state, NODE_UP);
    ck_assert_int_eq(frozen.n_nodes, 2);
    ck_assert_double_eq(frozen.jobs[0].spec->min_throughput, 1);
    world_solve(&w, "greedy", &after);
    for (int j = 0; j < 3; j++) {
        ck_assert_int_eq(before.jobs[j].n_gpus, after.jobs[j].n_gpus);
        ck_assert_double_eq(before.jobs[j].speed, after.jobs[j].speed);
    }
    world_release(&w);
}

TEST(an_endless_queue_is_cut_and_the_rest_counted)
{
    struct world w;
    char name[16];

    world_init(&w, small);
    for (int i = 0; i < SNAPSHOT_WAITING_MAX + 77; i++) {
        snprintf(name, sizeof name, "j%d", i);
        struct job_spec spec = spec_of(name, 0);
        spec.priority = i == SNAPSHOT_WAITING_MAX + 70;
        world_apply(&w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
    }
    world_add(&w, "start j0 0\n");
    world_look(&w);
    ck_assert_int_eq(w.snapshot.n_jobs, 1 + SNAPSHOT_WAITING_MAX);
    ck_assert_int_eq(w.snapshot.n_behind, 76);
    ck_assert_str_eq(w.snapshot.jobs[1].spec->name, "j1094");    // the one of high priority
    ck_assert_str_eq(w.snapshot.jobs[2].spec->name, "j1");
    world_release(&w);
}

TEST(parked_jobs_make_room_for_those_behind_them)
{
    enum { N = 3 * SNAPSHOT_WAITING_MAX };
    static bool is_parked[N / 2];
    struct world w;

    world_init(&w, small);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "j%d", i);
        struct job_spec spec = spec_of(name, 0);
        world_apply(&w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
    }
    for (int i = 0; i < N / 2; i++)
        is_parked[i] = i % 3 != 0;
    arena_reset(&w.arena);
    snapshot_take(&w.arena, &w.ledger.state, &w.catalog, 0, 2,
                  (struct snapshot_marks){ .is_parked = is_parked, .n_parked = N / 2 },
                  &w.snapshot);
    ck_assert_int_eq(w.snapshot.n_jobs, SNAPSHOT_WAITING_MAX);
    ck_assert_int_eq(w.snapshot.n_behind, N - SNAPSHOT_WAITING_MAX);
    for (int j = 0, id = -1; j < w.snapshot.n_jobs; j++) {
        for (id++; id < N / 2 && is_parked[id];)
            id++;
        ck_assert_int_eq(w.snapshot.jobs[j].id, id);
    }
    world_release(&w);
}

TEST(what_sleeps_is_told_by_gpu_and_without_that_all_are_awake)
{
    static const double wake_s[] = { 60, 0, -1, (double)NAN, 0, 0, 0, 0 };
    struct world w;

    world_init(&w, small);
    ck_assert_int_le(w.snapshot.n_gpus, 8);
    for (int with = 0; with < 2; with++) {
        arena_reset(&w.arena);
        snapshot_take(&w.arena, &w.ledger.state, &w.catalog, 0, 2,
                      (struct snapshot_marks){ .wake_s = with ? wake_s : NULL }, &w.snapshot);
        for (int g = 0; g < w.snapshot.n_gpus; g++)
            ck_assert_double_eq(w.snapshot.gpus[g].wake_s, with && g == 0 ? 60 : 0);
    }
    world_release(&w);
}

TEST(an_empty_world_has_an_empty_snapshot)
{
    struct world w;

    world_init(&w, "");
    ck_assert_int_eq(w.snapshot.n_jobs, 0);
    ck_assert_int_eq(w.snapshot.n_gpus, 0);
    world_release(&w);
}
