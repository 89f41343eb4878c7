/* Problem files: there and back, defaults, and refusals that name the place. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_file.h"
#include "optimize/files/problem_make.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"
#include "unit/support.h"

/* ---- there and back ---- */

static void same_cells(const struct problem *p, const struct problem *q)
{
    size_t n = (size_t)p->n_types * (size_t)p->n_kinds;

    ck_assert_int_eq(p->n_types, q->n_types);
    ck_assert_int_eq(p->n_kinds, q->n_kinds);
    ck_assert_mem_eq(p->watts, q->watts, n * sizeof(float));
    ck_assert_mem_eq(p->speed, q->speed, n * (size_t)(p->n_kinds + 1) * sizeof(float));
    ck_assert_mem_eq(p->held, q->held, n * (size_t)(p->n_kinds + 1) * sizeof(float));
    for (int k = 0; k < p->n_kinds; k++) {
        ck_assert_str_eq(p->kinds[k].name, q->kinds[k].name);
        ck_assert(p->kinds[k].mem_gib == q->kinds[k].mem_gib);
        ck_assert(p->kinds[k].value_j == q->kinds[k].value_j);
        ck_assert(p->kinds[k].rate == q->kinds[k].rate);
    }
}

static void same_types(const struct problem *p, const struct problem *q)
{
    for (int t = 0; t < p->n_types; t++) {
        const struct problem_type *a = &p->types[t], *b = &q->types[t];
        ck_assert_str_eq(a->name, b->name);
        ck_assert(a->sleep_w == b->sleep_w && a->idle_w == b->idle_w && a->cap_w == b->cap_w);
        ck_assert(a->mem_gib == b->mem_gib && a->n_limits == b->n_limits);
        for (int l = 1; l < a->n_limits; l++) {
            size_t bytes = (size_t)a->limits[l].n_points * sizeof(double);
            ck_assert_int_eq(a->limits[l].limit_w, b->limits[l].limit_w);
            ck_assert_int_eq(a->limits[l].n_points, b->limits[l].n_points);
            ck_assert_mem_eq(a->limits[l].speed, b->limits[l].speed, bytes);
            ck_assert_mem_eq(a->limits[l].watts, b->limits[l].watts, bytes);
        }
    }
}

static void same_engine(const struct problem *p, const struct engine_job *a,
                        const struct engine_job *b)
{
    ck_assert(a->cpus == b->cpus && a->mem_mib == b->mem_mib && a->device == b->device);
    for (int n = 0; n < p->n_nodes; n++)
        ck_assert_int_eq(a->barred ? a->barred[n] : 0, b->barred ? b->barred[n] : 0);
}

static void same_jobs(const struct problem *p, const struct problem *q)
{
    ck_assert_int_eq(p->n_jobs, q->n_jobs);
    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *a = &p->jobs[i], *b = &q->jobs[i];
        ck_assert(!a->name == !b->name);
        if (a->name == NULL)
            continue;
        ck_assert_str_eq(a->name, b->name);
        ck_assert(a->kind == b->kind && a->form == b->form);
        ck_assert(a->n_min == b->n_min && a->n_max == b->n_max);
        ck_assert(a->need == b->need && a->short_w == b->short_w);
        ck_assert(a->wait_w == b->wait_w && a->move_w == b->move_w);
        ck_assert(a->allowed_types == b->allowed_types && a->is_exclusive == b->is_exclusive);
        ck_assert(a->n_nodes == b->n_nodes && a->is_fixed == b->is_fixed);
        ck_assert(a->wake_rate == b->wake_rate && a->late_w == b->late_w);
        same_engine(p, &a->engine, &b->engine);
        ck_assert(a->n_present == b->n_present && a->present_limit == b->present_limit);
        for (int g = 0; g < a->n_present; g++)
            ck_assert_int_eq(a->present[g], b->present[g]);
    }
}

static void same_frame(const struct problem *p, const struct problem *q)
{
    ck_assert(p->theta == q->theta && p->z == q->z && p->price_w == q->price_w);
    ck_assert(p->power_cap_w == q->power_cap_w && p->watts_margin == q->watts_margin);
    ck_assert_int_eq(p->n_racks, q->n_racks);
    ck_assert(!p->rack_cap_w == !q->rack_cap_w);
    for (int r = 0; r < p->n_racks && p->rack_cap_w; r++)
        ck_assert(p->rack_cap_w[r] == q->rack_cap_w[r]);
    for (int m = 1; m <= GANG_MAX; m++)
        ck_assert(p->gang_near[m] == q->gang_near[m] && p->gang_far[m] == q->gang_far[m]);
    ck_assert_int_eq(p->n_gpus, q->n_gpus);
    for (int g = 0; g < p->n_gpus; g++) {
        const struct problem_gpu *a = &p->gpus[g], *b = &q->gpus[g];
        ck_assert(a->type == b->type && a->node == b->node && a->rack == b->rack);
        ck_assert(a->may_start == b->may_start && a->wake_s == b->wake_s);
        ck_assert(a->device == b->device);
    }
    ck_assert(!p->nodes == !q->nodes);
    for (int n = 0; n < p->n_nodes && p->nodes; n++)
        ck_assert(p->nodes[n].cpus == q->nodes[n].cpus &&
                  p->nodes[n].mem_mib == q->nodes[n].mem_mib);
}

static void there_and_back(struct arena *a, const struct problem *p)
{
    struct err e = { 0 };
    struct problem q;
    struct buf b;

    buf_init(&b, PROBLEM_BYTES_MAX);
    ck_assert_msg(problem_write(p, &b, &e) == 0, "%s", e.text);
    ck_assert_msg(problem_parse(a, "f", b.data, b.len, &q, &e) == 0, "%s", e.text);
    same_frame(p, &q);
    same_types(p, &q);
    same_cells(p, &q);
    same_jobs(p, &q);
    buf_release(&b);
}

TIMES(what_is_made_written_and_read_is_the_same, 8)
{
    struct make_options o = make_defaults;
    struct problem p;
    struct arena a;

    arena_init(&a);
    o.seed = (uint64_t)_i;
    o.joules = _i % 3 != 0;
    o.theta = 1 + _i % THETA_MAX;
    o.n_types = 1 + _i;
    o.n_jobs = 14 * _i;
    o.n_gpus = 10 * _i;
    problem_make(&a, &o, &p);
    there_and_back(&a, &p);
    arena_release(&a);
}

TEST(gangs_over_nodes_and_gpus_that_sleep_are_kept)
{
    struct make_options o = make_defaults;
    struct problem p;
    struct arena a;

    arena_init(&a);
    o.n_jobs = 20;
    o.n_gpus = 40;
    problem_make(&a, &o, &p);
    for (int g = 0; g < p.n_gpus; g++)
        p.gpus[g].wake_s = p.gpus[g].node % 3 ? p.gpus[g].node + 1. / 3 : 0;
    for (int j = 0; j < p.n_jobs; j++) {
        struct problem_job *job = &p.jobs[j];
        job->wake_rate = j / 3.;
        job->late_w = j / 7.;
        if (job->form != FORM_GANG || job->n_present > 0)
            continue;
        job->n_nodes = 2 + j % 2;
        job->n_min = job->n_max = 2 * job->n_nodes;
    }
    there_and_back(&a, &p);
    arena_release(&a);
}

TIMES(what_an_engine_cannot_do_is_kept, 20)
{
    struct make_options o = make_defaults;
    struct problem p;
    struct arena a;

    arena_init(&a);
    o.n_jobs = 30;
    o.n_gpus = 40;
    problem_make(&a, &o, &p);
    tiny_rules(&a, (uint64_t)_i, &p);
    there_and_back(&a, &p);
    arena_release(&a);
}

/* Numbers as estimates have them: all digits, and nothing in common. */
static void roughen(struct problem *p)
{
    long n = (long)p->n_types * p->n_kinds * (p->n_kinds + 1);

    p->z = 1.6448536269514722;
    for (long i = 0; i < n; i++) {
        p->speed[i] *= 1 + 0.0001234567F * (float)(i % 97);
        p->held[i] = p->speed[i] * (0.9F - 0.001234567F * (float)(i % 89));
    }
    p->held[0] = 0;
    for (int k = 0; k < p->n_kinds; k++)
        p->kinds[k].value_j *= 1 + 1e-9;
    p->kinds[0].value_j = 0;
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j].need *= 1.000000012345;
    p->jobs[3].name = NULL;
    p->jobs[3].n_present = 0;
    p->jobs[4].name = "with \"quotes\" and \\";
    p->rack_cap_w = NULL;
}

TEST(numbers_with_all_their_digits_survive)
{
    struct make_options o = make_defaults;
    struct problem p;
    struct arena a;

    arena_init(&a);
    problem_make(&a, &o, &p);
    roughen(&p);
    there_and_back(&a, &p);
    arena_release(&a);
}

TEST(what_a_file_cannot_say_is_refused)
{
    struct make_options o = make_defaults;
    struct err e = { 0 };
    struct problem p;
    struct arena a;
    struct buf b;

    arena_init(&a);
    buf_init(&b, PROBLEM_BYTES_MAX);
    problem_make(&a, &o, &p);
    p.z = 0;
    ck_assert_int_eq(problem_write(&p, &b, &e), -EINVAL);
    ck_assert_msg(strstr(e.text, "at z = 0") != NULL, "%s", e.text);
    buf_release(&b);
    problem_make(&a, &o, &p);
    buf_init(&b, 5000);
    ck_assert_int_eq(problem_write(&p, &b, &e), -ENOSPC);
    buf_release(&b);
    arena_release(&a);
}

/* ---- a file by hand ---- */

static const char by_hand[] =
    "{\"types\": [{\"name\": \"v100\", \"cap_w\": 300, \"mem_gib\": 16, \"count\": 9,\n"
    "  \"speed\": [10, 4], \"watts\": \"200 250\", \"slowdown\": [0.8, \"0.5 .25\"], "
    "\"sd\": 0.5}],\n"
    " \"kinds\": [{\"name\": \"a\"}, {\"name\": \"b\", \"mem_gib\": 9}],\n"
    " \"jobs\": [{\"name\": \"x\", \"kind\": \"a\"}, "
    "{\"name\": \"y\", \"kind\": 1, \"n_min\": 2}]}";

TEST(what_is_left_out_has_a_default)
{
    struct err e = { 0 };
    struct problem p;
    struct arena a;

    arena_init(&a);
    ck_assert_msg(problem_parse(&a, "f", by_hand, strlen(by_hand), &p, &e) == 0, "%s", e.text);
    ck_assert(p.theta == 2 && p.z == 1 && p.watts_margin == 1 && p.power_cap_w == 0);
    ck_assert(p.n_gpus == 9 && p.gpus[7].node == 0 && p.gpus[8].node == 1 && p.n_racks == 1);
    ck_assert(p.speed[0] == 10 && p.speed[1] == 8 && p.speed[2] == 8);
    ck_assert(p.speed[3] == 4 && p.speed[4] == 2 && p.speed[5] == 1);
    ck_assert(p.held[0] == (float)(10 * exp(-0.5)) && p.held[5] == (float)exp(-0.5));
    ck_assert(p.kinds[0].value_j == 20 && p.kinds[1].value_j == 62.5);
    ck_assert(p.jobs[0].n_min == 1 && p.jobs[0].n_max == 1 && p.jobs[1].n_max == 2);
    ck_assert(p.jobs[0].wait_w == 1000 && p.jobs[0].need == 0 && p.jobs[0].form == FORM_GANG);
    ck_assert(p.gang_near[2] == 2 && p.gang_far[3] == 3);
    arena_release(&a);
}

/* 100 W and 4 steps/s alone: a step takes 25 J, and 30 where the job's second costs 20 W. */
TEST(a_job_s_time_may_have_a_price)
{
    static const char text[] =
        "{\"kinds\": [{\"name\": \"k\"}, {\"name\": \"v\", \"value_j\": 7}],"
        " \"types\": [{\"name\": \"t\", \"cap_w\": 200, \"mem_gib\": 8, \"speed\": [4, 2],"
        " \"watts\": [100, 90], \"slowdown\": 0.5}], \"gpus\": [{\"type\": \"t\"}], \"jobs\": ["
        " {\"name\": \"a\", \"kind\": \"k\"}, {\"name\": \"b\", \"kind\": \"k\", \"time_w\": 20},"
        " {\"name\": \"c\", \"kind\": \"v\", \"time_w\": 20}, {\"name\": \"d\", \"kind\": \"k\", \"time_w\": 20},"
        " {\"name\": \"e\", \"kind\": \"k\", \"time_w\": 0}]}";
    struct err e = { 0 };
    struct problem p;
    struct arena a;

    arena_init(&a);
    ck_assert_msg(problem_parse(&a, "f", text, strlen(text), &p, &e) == 0, "%s", e.text);
    ck_assert_int_eq(p.n_kinds, 4);
    ck_assert(p.jobs[0].kind == 0 && p.jobs[4].kind == 0 && p.jobs[1].kind == p.jobs[3].kind);
    ck_assert_double_eq(p.kinds[0].value_j, 25);
    ck_assert_double_eq(p.kinds[p.jobs[1].kind].value_j, 30);
    ck_assert_double_eq(p.kinds[p.jobs[2].kind].value_j, 7);    // the file says so
    ck_assert_double_eq((double)p.speed[problem_cell(&p, 0, p.jobs[2].kind, p.jobs[1].kind)], 1);
    there_and_back(&a, &p);
    arena_release(&a);
}

TEST(a_file_that_is_not_there_is_named)
{
    char *dir = scratch_make(), path[200];
    struct err e = { 0 };
    struct problem p;
    struct arena a;

    arena_init(&a);
    snprintf(path, sizeof path, "%s/p.json", dir);
    ck_assert_int_eq(problem_read(&a, path, &p, &e), -ENOENT);
    ck_assert(strstr(e.text, "p.json") != NULL);
    ck_assert_int_eq(file_write(path, by_hand, strlen(by_hand), &e), 0);
    ck_assert_msg(problem_read(&a, path, &p, &e) == 0, "%s", e.text);
    ck_assert_int_eq(p.n_gpus, 9);
    scratch_remove(dir);
    arena_release(&a);
}

/* ---- refusals ---- */

/* Pieces of a file, of which each case changes one. */
struct pieces {
    const char *top, *type, *kind, *gpu, *job;
};

static const struct pieces sound = {
    "\"theta\": 2",
    "\"name\": \"v\", \"cap_w\": 300, \"idle_w\": 30, \"mem_gib\": 16, "
    "\"speed\": [10], \"watts\": [200]",
    "\"name\": \"a\"",
    "\"type\": \"v\", \"count\": 4",
    "\"name\": \"x\", \"kind\": \"a\"",
};

#define TYPE "\"name\": \"v\", \"cap_w\": 300, \"idle_w\": 30, \"mem_gib\": 16, "
#define CELLS "\"speed\": [10], \"watts\": [200]"
#define JOB "\"name\": \"x\", \"kind\": \"a\", "

static const struct {
    const char *claim;
    struct pieces p;
    const char *says;
} refusals[] = {
    { "a number too large", { .top = "\"price_w\": 1e999" }, "f:1: no JSON" },
    { "a number that is none", { .top = "\"price_w\": NaN" }, "f:1: no JSON" },
    { "a key twice", { .top = "\"theta\": 1, \"theta\": 2" }, "f:1: no JSON" },
    { "a text for a number",
      { .top = "\"price_w\": \"5\"" },
      "f: price_w: want a number, not \"5\"" },
    { "null for a number", { .top = "\"z\": null" }, "f: z: want a number, not null" },
    { "a key nobody knows", { .top = "\"colour\": 1" }, "f: colour: no such key; leave it out" },
    { "a key that was meant otherwise", { .top = "\"thetta\": 1" }, "did you mean 'theta'?" },
    { "another version",
      { .top = "\"version\": 2" },
      "f: version: want a whole number from 1 to 1" },
    { "a theta out of range",
      { .top = "\"theta\": 9" },
      "f: theta: want a whole number from 1 to 4" },
    { "an objective nobody knows", { .top = "\"objective\": \"money\"" }, "f: objective: want" },
    { "a negative cap", { .top = "\"power_cap_w\": -1" }, "f: power_cap_w is -1" },
    { "racks that are no list", { .top = "\"racks\": 5" }, "f: racks: want a list, not 5" },
    { "a rack's cap that is a text", { .top = "\"racks\": [\"x\"]" }, "f: racks: number 0" },
    { "a gang's factors that are no list",
      { .top = "\"gang_near\": {}" },
      "f: gang_near: want a list" },
    { "a type without a name", { .type = "\"cap_w\": 300" }, "f: types[0]: has no \"name\"" },
    { "a name of blanks", { .kind = "\"name\": \" \"" }, "f: kinds[0].name: a name has 1 to 200" },
    { "a type without a cap",
      { .type = "\"name\": \"v\", \"mem_gib\": 1" },
      "f: types[0]: has no \"cap_w\"" },
    { "a type without speeds",
      { .type = TYPE "\"watts\": [1]" },
      "f: types[0].speed: want 1 numbers, as a list" },
    { "too many speeds",
      { .type = TYPE "\"speed\": [1, 2], \"watts\": [1]" },
      "f: types[0].speed: want 1 numbers, not 2" },
    { "a speed that is null",
      { .type = TYPE "\"speed\": [null], \"watts\": [1]" },
      "f: types[0].speed: number 0 of the list is null" },
    { "a text that holds no numbers",
      { .type = TYPE "\"speed\": \"fast\", \"watts\": [1]" },
      "f: types[0].speed: want numbers between blanks, not 'fast'" },
    { "infinity in a text",
      { .type = TYPE "\"speed\": \"inf\", \"watts\": [1]" },
      "f: types[0].speed: want numbers between blanks" },
    { "a number too large in a text",
      { .type = TYPE "\"speed\": \"1e999\", \"watts\": [1]" },
      "f: types[0].speed: want numbers between blanks" },
    { "a number too large for a cell",
      { .type = TYPE "\"speed\": [1e99], \"watts\": [1]" },
      "f: types[0].speed[0] is inf" },
    { "a negative speed",
      { .type = TYPE "\"speed\": [-1], \"watts\": [1]" },
      "f: types[0].speed[0] is -1" },
    { "a negative deviation", { .type = TYPE CELLS ", \"sd\": -0.1" }, "f: types[0].sd: -0.1" },
    { "a deviation that is a flag",
      { .type = TYPE CELLS ", \"sd\": true" },
      "f: types[0].sd: want" },
    { "slowdowns of too many kinds",
      { .type = TYPE CELLS ", \"slowdown\": [1, 1]" },
      "f: types[0].slowdown: want a number, or a list of 1" },
    { "a slowdown row of too many",
      { .type = TYPE CELLS ", \"slowdown\": [\"1 1\"]" },
      "f: types[0].slowdown[0]: want 1 numbers, not 2" },
    { "a slowdown row that is null",
      { .type = TYPE CELLS ", \"slowdown\": [null]" },
      "f: types[0].slowdown[0]: want 1 numbers" },
    { "a negative slowdown",
      { .type = TYPE CELLS ", \"slowdown\": -1" },
      "f: types[0].slowdown[0][0]" },
    { "a negative deviation of a pair",
      { .type = TYPE CELLS ", \"shared_sd\": [-1]" },
      "f: types[0].shared_sd: -1" },
    { "too many limits",
      { .type = TYPE CELLS ", \"limits\": [{},{},{},{},{},{},{},{}]" },
      "f: types[0].limits: 8 are too many; at most 7" },
    { "a limit without points",
      { .type = TYPE CELLS ", \"limits\": [{\"limit_w\": 100}]" },
      "f: types[0].limits[0]: want limit_w" },
    { "a limit with fewer speeds than watts",
      { .type = TYPE CELLS ", \"limits\": [{\"limit_w\": 9, \"speed\": [1], \"watts\": [9, 9]}]" },
      "f: types[0].limits[0].speed: want 2 numbers, not 1" },
    { "a limit that speeds up",
      { .type =
            TYPE CELLS ", \"limits\": [{\"limit_w\": 9, \"speed\": [1, 2], \"watts\": [9, 9]}]" },
      "f: types[0].limits[0].speed[1] is 2" },
    { "a kind that is a list", { .kind = "\"mem_gib\": []" }, "f: kinds[0]: has no \"name\"" },
    { "memory that is a list",
      { .kind = "\"name\": \"a\", \"mem_gib\": []" },
      "f: kinds[0].mem_gib: want a number, not a list" },
    { "a name that is a number",
      { .kind = "\"name\": 5" },
      "f: kinds[0].name: want a text, not 5" },
    { "more GPUs in all than there may be",
      { .gpu = "\"type\": 0, \"count\": 1500000}, {\"type\": 0, \"count\": 1500000" },
      "f: gpus[1].count: more than 2000000 GPUs in all" },
    { "GPUs of no type", { .gpu = "\"count\": 4" }, "f: gpus[0]: has no \"type\"" },
    { "GPUs of an unknown type",
      { .gpu = "\"type\": \"w\"" },
      "f: gpus[0].type: nothing is called" },
    { "GPUs of a type that is too far", { .gpu = "\"type\": 1" }, "f: gpus[0].type: want a name" },
    { "more GPUs than there may be",
      { .gpu = "\"type\": 0, \"count\": 2000001" },
      "f: gpus[0].count: want a whole number" },
    { "a drained GPU that is none",
      { .gpu = "\"type\": 0, \"count\": 2, \"drained\": [2]" },
      "f: gpus[0].drained: 2 is none of the group's 2 GPUs" },
    { "drained by a number",
      { .gpu = "\"type\": 0, \"drained\": 1" },
      "f: gpus[0].drained: want true" },
    { "a job without a kind", { .job = "\"name\": \"x\"" }, "f: jobs[0]: has no \"kind\"" },
    { "a job of an unknown kind",
      { .job = "\"name\": \"x\", \"kind\": \"q\"" },
      "f: jobs[0].kind: nothing is called \"q\"" },
    { "a rule nobody knows",
      { .job = JOB "\"barred\": {\"whim\": [0]}" },
      "f: jobs[0].barred: 'whim': want a rule's name" },
    { "bars that are a list", { .job = JOB "\"barred\": [0]" }, "f: jobs[0].barred: want lists" },
    { "a node that is not there",
      { .job = JOB "\"barred\": {\"feature\": [1]}" },
      "f: jobs[0].barred: 1 is none of the 1 nodes" },
    { "less than no CPUs", { .job = JOB "\"cpus\": -1" }, "f: jobs[0].cpus: want a whole number" },
    { "half a CPU", { .top = "\"nodes\": [{\"cpus\": 0.5}]" }, "f: nodes[0].cpus: want a whole" },
    { "a form nobody knows", { .job = JOB "\"form\": \"blob\"" }, "f: jobs[0].form: want" },
    { "a promise that is a text",
      { .job = JOB "\"need\": \"fast\"" },
      "f: jobs[0].need: want a number" },
    { "a promise that is negative", { .job = JOB "\"need\": -2" }, "f: jobs[0].need is -2" },
    { "half a GPU", { .job = JOB "\"n_min\": 0.5" }, "f: jobs[0].n_min: want a whole number" },
    { "a flag that is a number",
      { .job = JOB "\"fixed\": 1" },
      "f: jobs[0].fixed: want true or false" },
    { "no types allowed", { .job = JOB "\"types\": []" }, "f: jobs[0].types: an empty list" },
    { "an unknown type allowed", { .job = JOB "\"types\": [\"w\"]" }, "f: jobs[0].types: nothing" },
    { "a present GPU that is none",
      { .job = JOB "\"present\": [4]" },
      "f: jobs[0].present: 4 is none of the 4 GPUs" },
    { "a present GPU twice",
      { .job = JOB "\"n_max\": 2, \"present\": [1, 1]" },
      "f: jobs[0].present: list each GPU once" },
    { "a limit without a place",
      { .job = JOB "\"limit_w\": 100" },
      "f: jobs[0].limit_w: only with" },
    { "a limit that the GPU has not",
      { .job = JOB "\"limit_w\": 100, \"present\": [1]" },
      "f: jobs[0].limit_w: its GPUs have no limit of 100 W" },
    { "a job that stays and is nowhere", { .job = JOB "\"fixed\": true" }, "f: jobs[0].fixed" },
    { "a job twice",
      { .job = JOB "\"need\": 1}, {\"name\": \"x\", \"kind\": 0" },
      "f: jobs[1].name: 'x' is there twice" },
    { "a kind twice",
      { .kind = "\"name\": \"a\"}, {\"name\": \"a\"" },
      "f: kinds[1].name: 'a' is there twice" },
    { "a job that is a number",
      { .job = JOB "\"need\": 1}, 5, {\"name\": \"y\", \"kind\": 0" },
      "f: jobs[1]: want an object, not 5" },
};

static const char *either(const char *own, const char *common)
{
    return own != NULL ? own : common;
}

static int parse_pieces(struct arena *a, const struct pieces *c, struct problem *out, struct err *e)
{
    const char *text = arena_printf(
        a, "{%s, \"types\": [{%s}], \"kinds\": [{%s}], \"gpus\": [{%s}], \"jobs\": [{%s}]}",
        either(c->top, sound.top), either(c->type, sound.type), either(c->kind, sound.kind),
        either(c->gpu, sound.gpu), either(c->job, sound.job));

    return problem_parse(a, "f", text, strlen(text), out, e);
}

EACH(a_bad_file_is_refused_with_its_place, refusals)
{
    struct err e = { 0 };
    struct problem p;
    struct arena a;

    arena_init(&a);
    ck_assert_msg(parse_pieces(&a, &sound, &p, &e) == 0, "%s", e.text);
    int rc = parse_pieces(&a, &refusals[_i].p, &p, &e);
    ck_assert_msg(rc == -EINVAL, "%s: %d", refusals[_i].claim, rc);
    ck_assert_msg(strncmp(e.text, "f:", 2) == 0 && strstr(e.text, refusals[_i].says), "%s: %s",
                  refusals[_i].claim, e.text);
    arena_release(&a);
}

/* 'n' numbers, or objects named by their numbers, between two texts. */
static void put_many(struct buf *b, const char *before, int n, bool is_named, const char *after)
{
    ck_assert_int_eq(buf_puts(b, before), 0);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(
            buf_printf(b, is_named ? "%s{\"name\": \"%d\"}" : "%s%d", i > 0 ? ", " : "", i), 0);
    ck_assert_int_eq(buf_puts(b, after), 0);
}

TEST(lists_have_an_end)
{
    static const struct {
        const char *before;
        int n;
        bool is_named;
        const char *after, *says;
    } lists[] = {
        { "{\"types\": [", 65, true, "]}", "f: types: 65 are too many; at most 64" },
        { "{\"gang_near\": [", 65, false, "]}", "f: gang_near: 65 are too many; at most 64" },
        { "{\"types\": [0, 0, 0, 0, 0, 0, 0, 0], \"kinds\": [", 8200, true, "]}",
          "f: kinds: 8200 kinds on 8 types are too many" },
        { "{\"types\": [{\"name\": \"v\", \"cap_w\": 1, \"mem_gib\": 1, \"speed\": [1], "
          "\"watts\": [1], \"count\": 99}], \"kinds\": [{\"name\": \"a\"}], "
          "\"jobs\": [{\"name\": \"x\", \"kind\": 0, \"present\": [",
          65, false, "]}]}", "f: jobs[0].present: 65 are too many; at most 64" },
    };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct err e = { 0 };
        struct problem p;
        struct arena a;
        struct buf b;

        arena_init(&a);
        buf_init(&b, 1 << 20);
        put_many(&b, lists[i].before, lists[i].n, lists[i].is_named, lists[i].after);
        ck_assert_int_eq(problem_parse(&a, "f", b.data, b.len, &p, &e), -EINVAL);
        ck_assert_msg(strstr(e.text, lists[i].says), "%s", e.text);
        buf_release(&b);
        arena_release(&a);
    }
}

TEST(bytes_that_are_no_object_are_refused)
{
    static const char *const texts[] = { "", "[]", "{", "null", "5", "\xff", "{} {}" };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct err e = { 0 };
        struct problem p;
        struct arena a;

        arena_init(&a);
        ck_assert_int_eq(problem_parse(&a, "f", texts[i], strlen(texts[i]), &p, &e), -EINVAL);
        ck_assert(e.text[0] != '\0');
        arena_release(&a);
    }
}
