/* Plan files: there and back, and refusals that name the place. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/files/plan_file.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_file.h"
#include "unit/suite.h"

/* Four GPUs of a type that does 10 steps/s alone and 6 beside another, with one limit at which
 * it does 8 and 4.8. 's' may be spread over two.
 */
static const char problem_text[] =
    "{\"types\": [{\"name\": \"v\", \"sleep_w\": 10, \"idle_w\": 30, \"cap_w\": 300, "
    "\"mem_gib\": 16, \"count\": 4, \"speed\": [10], \"watts\": [200], \"slowdown\": 0.6, "
    "\"limits\": [{\"limit_w\": 150, \"speed\": [0.8, 0.8], \"watts\": [30, 150]}]}],\n"
    " \"kinds\": [{\"name\": \"a\"}], \"gang_near\": [1, 1.5],\n"
    " \"jobs\": [{\"name\": \"x\", \"kind\": 0, \"need\": 8}, {\"name\": \"y\", \"kind\": 0},\n"
    "  null, {\"name\": \"s\", \"kind\": 0, \"form\": \"spread\", \"n_max\": 2},\n"
    "  {\"name\": \"g\", \"kind\": 0, \"n_min\": 2, \"move_w\": 7, \"present\": [0, 1]}]}";

static void open_problem(struct arena *a, struct problem *p)
{
    struct err e = { 0 };

    arena_init(a);
    ck_assert_msg(problem_parse(a, "p", problem_text, strlen(problem_text), p, &e) == 0, "%s",
                  e.text);
}

static const char good[] =
    "{\"made_by\": \"hand\", \"objective\": 5, \"bound\": 4, \"jobs\": [\n"
    "  {\"job\": \"s\", \"gpus\": [3, 0], \"limit_w\": [0, 150]},\n"
    "  {\"job\": \"x\", \"gpus\": [0], \"limit_w\": 150, \"speed\": 99, \"shortfall\": 0},\n"
    "  {\"job\": \"y\", \"waits\": \"capacity\"}, {\"job\": \"g\", \"gpus\": [1, 2]}]}";

TEST(a_plan_is_read_and_priced)
{
    struct plan_claims c;
    struct err e = { 0 };
    struct problem p;
    struct plan x;
    struct arena a;

    open_problem(&a, &p);
    ck_assert_msg(plan_parse(&a, &p, "f", good, strlen(good), &x, &c, &e) == 0, "%s", e.text);
    ck_assert_str_eq(c.made_by, "hand");
    ck_assert(c.objective_w == 5 && c.bound_w == 4 && c.status == NULL);
    ck_assert(x.jobs[3].n_gpus == 2 && x.jobs[3].gpus[0] == 0 && x.jobs[3].gpus[1] == 3);
    ck_assert(x.limit[0] == 1 && x.limit[3] == 0);
    ck_assert(fabs(x.jobs[0].low - 4.8) < 1e-9 && fabs(x.jobs[3].low - 14.8) < 1e-9);
    ck_assert(fabs(x.jobs[0].short_w - 400) < 1e-3 && x.jobs[1].reason == WAIT_CAPACITY);
    ck_assert(x.n_placed == 3 && x.n_waiting == 1 && x.n_moves == 1 && x.n_short == 1);
    ck_assert_msg(plan_check(&a, &p, &x, &e) == 0, "%s", e.text);
    arena_release(&a);
}

TEST(what_is_written_is_read_as_the_same)
{
    struct plan_claims c, d;
    struct err e = { 0 };
    struct problem p;
    struct plan x, y;
    struct arena a;
    struct buf one, two;

    open_problem(&a, &p);
    buf_init(&one, 1 << 20);
    buf_init(&two, 1 << 20);
    ck_assert_int_eq(plan_parse(&a, &p, "f", good, strlen(good), &x, &c, &e), 0);
    c.status = "feasible";
    ck_assert_int_eq(plan_write(&p, &x, &c, &one, &e), 0);
    ck_assert_msg(plan_parse(&a, &p, "g", one.data, one.len, &y, &d, &e) == 0, "%s", e.text);
    ck_assert(d.objective_w == x.cost_w + problem_base_w(&p) && d.bound_w == 4 &&
              y.cost_w == x.cost_w);
    ck_assert_str_eq(d.status, "feasible");
    ck_assert_mem_eq(x.limit, y.limit, 4);
    ck_assert_int_eq(plan_write(&p, &y, &d, &two, &e), 0);
    ck_assert_str_eq(buf_text(&one), buf_text(&two));
    ck_assert(strstr(buf_text(&one), "\"shortfall\": 0.") != NULL);
    buf_release(&two);
    buf_init(&two, 100);
    ck_assert_int_eq(plan_write(&p, &y, &d, &two, &e), -ENOSPC);
    buf_release(&one);
    buf_release(&two);
    arena_release(&a);
}

#define REST                                                                                 \
    "{\"job\": \"y\", \"waits\": \"capacity\"}, {\"job\": \"s\", \"waits\": \"capacity\"}, " \
    "{\"job\": \"g\", \"waits\": \"capacity\"}"

static const struct {
    const char *claim, *jobs, *says;
} refusals[] = {
    { "a job is missing", REST, "f: jobs: 'x' is missing" },
    { "a job that there is not", REST ", {\"job\": \"z\"}",
      "f: jobs[3].job: the problem has no job" },
    { "a job twice", REST ", {\"job\": \"y\"}", "f: jobs[3].job: 'y' is there twice" },
    { "neither place nor reason", REST ", {\"job\": \"x\"}",
      "f: jobs[3]: want \"gpus\": [...], or" },
    { "a reason nobody knows", REST ", {\"job\": \"x\", \"waits\": \"mood\"}", "f: jobs[3]: want" },
    { "placed is no reason to wait", REST ", {\"job\": \"x\", \"waits\": \"placed\"}",
      "f: jobs[3]: want" },
    { "a GPU that is none", REST ", {\"job\": \"x\", \"gpus\": [4]}",
      "f: jobs[3].gpus: 4 is none" },
    { "more GPUs than the job may have", REST ", {\"job\": \"x\", \"gpus\": [1, 2]}",
      "f: jobs[3].gpus: 2 GPUs, and the job may have 1" },
    { "a GPU twice", "{\"job\": \"s\", \"gpus\": [1, 1]}",
      "f: jobs[0].gpus: GPU 1 is there twice" },
    { "a limit that the GPU has not", REST ", {\"job\": \"x\", \"gpus\": [1], \"limit_w\": 99}",
      "f: jobs[3].limit_w: GPU 1 has no limit of 99 W" },
    { "a limit that is a text", REST ", {\"job\": \"x\", \"gpus\": [1], \"limit_w\": \"150\"}",
      "f: jobs[3].limit_w: GPU 1 has no limit" },
    { "limits for other GPUs", REST ", {\"job\": \"x\", \"gpus\": [1], \"limit_w\": [150, 0]}",
      "f: jobs[3].limit_w: want one number, or one for each GPU" },
    { "two settings of one GPU",
      "{\"job\": \"y\", \"gpus\": [1]}, {\"job\": \"x\", \"gpus\": [1], \"limit_w\": 150}",
      "f: jobs[1].limit_w: 'y' says otherwise of GPU 1" },
    { "more than theta",
      "{\"job\": \"y\", \"gpus\": [1]}, {\"job\": \"x\", \"gpus\": [1]}, "
      "{\"job\": \"s\", \"gpus\": [1]}",
      "f: jobs[2].gpus: GPU 1 has more than 2 jobs" },
    { "a key nobody knows", REST ", {\"job\": \"x\", \"gpu\": [1]}", "did you mean 'gpus'?" },
    { "a job without a name", "{\"gpus\": [1]}", "f: jobs[0]: has no \"job\"" },
};

EACH(a_bad_plan_is_refused_with_its_place, refusals)
{
    struct plan_claims c;
    struct err e = { 0 };
    struct problem p;
    struct plan x;
    struct arena a;

    open_problem(&a, &p);
    const char *text = arena_printf(&a, "{\"jobs\": [%s]}", refusals[_i].jobs);
    ck_assert_msg(plan_parse(&a, &p, "f", text, strlen(text), &x, &c, &e) == -EINVAL, "%s",
                  refusals[_i].claim);
    ck_assert_msg(strstr(e.text, refusals[_i].says), "%s: %s", refusals[_i].claim, e.text);
    arena_release(&a);
}
