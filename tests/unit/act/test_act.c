/* A plan becomes orders: the differences, in order, and no refusal holds up the rest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "act/act.h"
#include "act/executor.h"
#include "base/err.h"
#include "base/log.h"
#include "optimize/model/lower.h"
#include "optimize/search/assignment.h"
#include "unit/support.h"
#include "unit/suite.h"

/* An executor that writes down what it is told: "stop 1, start 0 on 2 3, ". */
struct notebook {
    char text[500];
    int refuses;    // job id whose orders are refused, -1: none
    int errnum;     // with this; 0: EBUSY
};

static int note(struct notebook *n, const char *what, int job, const struct placement *p,
                struct err *e)
{
    size_t at = strlen(n->text);

    if (job == n->refuses)
        return err_set(e, n->errnum ? n->errnum : EBUSY, "not now");
    at += (size_t)snprintf(n->text + at, sizeof n->text - at, "%s%s %d", at ? ", " : "", what, job);
    for (int i = 0; p && i < p->n_gpus; i++)
        at += (size_t)snprintf(n->text + at, sizeof n->text - at, "%s %d", i ? "" : " on",
                               p->gpus[i]);
    if (p && p->limit_w)
        snprintf(n->text + at, sizeof n->text - at, " at %d W", p->limit_w);
    return 0;
}

static int note_start(void *self, const struct placement *p, struct err *e)
{
    return note(self, "start", p->job, p, e);
}

static int note_stop(void *self, int job, struct err *e)
{
    return note(self, "stop", job, NULL, e);
}

static int note_move(void *self, const struct placement *p, struct err *e)
{
    return note(self, "move", p->job, p, e);
}

/* The world: jobs 0 on GPU 0, 1 on GPUs 1 and 2, 2 on GPU 3 run; 3 and 4 wait. Each job's
 * new place as "GPU GPU", "" for waiting, NULL for where it is.
 */
static const struct {
    const char *name;
    const char *place[5];
    int limit_w, refuses;
    const char *want;
    struct act_report report;
} cases[] = {
    { "a plan that changes nothing gives no orders",
      { "0", "1 2", "3", "", "" },
      0,
      -1,
      "",
      { 0 } },
    { "a gang in another order is the same gang", { "0", "2 1", "3", "", "" }, 0, -1, "", { 0 } },
    { "a waiting job with a place is started",
      { "0", "1 2", "3", "4", "" },
      0,
      -1,
      "start 3 on 4",
      { .n_started = 1 } },
    { "a running job without one is stopped",
      { "0", "", "3", "", "" },
      0,
      -1,
      "stop 1",
      { .n_stopped = 1 } },
    { "a running job elsewhere is moved",
      { "4", "1 2", "3", "", "" },
      0,
      -1,
      "move 0 on 4",
      { .n_moved = 1 } },
    { "one GPU more is a move",
      { "0", "1 2 4", "3", "", "" },
      0,
      -1,
      "move 1 on 1 2 4",
      { .n_moved = 1 } },
    { "one GPU other is a move",
      { "0", "1 4", "3", "", "" },
      0,
      -1,
      "move 1 on 1 4",
      { .n_moved = 1 } },
    { "another limit is a move to where it is, and counts as none",
      { "0", "1 2", "3", "", "" },
      150,
      -1,
      "move 0 on 0 at 150 W",
      { .n_limited = 1 } },
    { "stops come before moves and moves before starts",
      { "1", "", "4", "0", "2 3" },
      0,
      -1,
      "stop 1, move 0 on 1, move 2 on 4, start 3 on 0, start 4 on 2 3",
      { .n_started = 2, .n_moved = 2, .n_stopped = 1 } },
    { "a refused stop holds up those who would come there, and who would follow them",
      { "1", "", "4", "0", "2 3" },
      0,
      1,
      "move 2 on 4",
      { .n_moved = 1, .n_refused = 4 } },
    { "so does a refused move",
      { "1", "", "4", "0", "2 3" },
      0,
      0,
      "stop 1, move 2 on 4, start 4 on 2 3",
      { .n_started = 1, .n_moved = 1, .n_stopped = 1, .n_refused = 2 } },
    { "whose way is free moves first",
      { "3", "1 2", "4", "", "" },
      0,
      -1,
      "move 2 on 4, move 0 on 3",
      { .n_moved = 2 } },
    { "two may change places",
      { "3", "1 2", "0", "", "" },
      0,
      -1,
      "move 2 on 0, move 0 on 3",
      { .n_moved = 2 } },
    { "nobody is held up by a refused start",
      { "1", "", "4", "0", "2 3" },
      0,
      3,
      "stop 1, move 0 on 1, move 2 on 4, start 4 on 2 3",
      { .n_started = 1, .n_moved = 2, .n_stopped = 1, .n_refused = 1 } },
};

static void lay(struct world *w, const char *place, struct plan_job *out)
{
    int *gpus = ARENA_ARRAY(&w->arena, int, 8);

    *out = (struct plan_job){ .gpus = gpus, .reason = *place ? WAIT_NOT : WAIT_CAPACITY };
    for (; *place; place++)
        if (*place != ' ')
            gpus[out->n_gpus++] = *place - '0';
}

EACH(exactly_the_differences_become_orders, cases)
{
    struct world w;
    struct plan_job jobs[5];
    struct plan plan = { .n_jobs = 5, .jobs = jobs };
    struct notebook book = { .refuses = cases[_i].refuses };
    struct executor x = {
        .self = &book, .start = note_start, .stop = note_stop, .move = note_move
    };
    struct act_report got;
    bool is_impossible[5] = { false };

    log_set_level(LOG_ERROR);
    world_init(&w, "type v100\nworkload w\nnode n v100 v100 v100 v100 v100\n"
                   "job a w\njob b w gpus=2 max=3\njob c w\njob d w\njob e w gpus=2\n"
                   "start a 0\nstart b 1,2\nstart c 3\n");
    for (int j = 0; j < 5; j++)
        lay(&w, cases[_i].place[w.snapshot.jobs[j].id], &jobs[j]);
    jobs[0].limit_w = cases[_i].limit_w;
    act_commit(&x, &w.snapshot, &plan, NULL, is_impossible, &got);
    ck_assert_msg(strcmp(book.text, cases[_i].want) == 0, "%s: %s", cases[_i].name, book.text);
    ck_assert_mem_eq(&got, &cases[_i].report, sizeof got);
    for (int j = 0; j < 5; j++)
        ck_assert(!is_impossible[j]);    // it said that it was busy
    world_release(&w);
}

static const struct {
    const char *name;
    int errnum;
    bool want;
} refusals[] = {
    { "what is busy may be had later", EBUSY, false },
    { "so may what does not answer", EAGAIN, false },
    { "a disk that is full may be emptied", ENOSPC, false },
    { "a place that there is not will not be there", ENODEV, true },
    { "nor will an order that makes no sense", EINVAL, true },
    { "nor a limit that cannot be set", ENOTSUP, true },
};

EACH(a_place_that_cannot_be_had_is_told, refusals)
{
    struct world w;
    struct plan_job jobs[1];
    struct plan plan = { .n_jobs = 1, .jobs = jobs };
    struct notebook book = { .refuses = 0, .errnum = refusals[_i].errnum };
    struct executor x = { .self = &book, .start = note_start };
    struct act_report got;
    bool is_impossible[1] = { false };

    log_set_level(LOG_ERROR);
    world_init(&w, "type v100\nworkload w\nnode n v100\njob a w\n");
    lay(&w, "0", &jobs[0]);
    act_commit(&x, &w.snapshot, &plan, NULL, is_impossible, &got);
    ck_assert_int_eq(got.n_refused, 1);
    ck_assert_msg(is_impossible[0] == refusals[_i].want, "%s", refusals[_i].name);
    world_release(&w);
}

/* Where what jobs draw together is limited orders go one by one, each to what is allowed; of two who
 * change places none can be the first.
 */
TEST(two_may_change_places_under_a_cap)
{
    struct world w;
    struct plan_job jobs[2];
    struct plan plan = { .n_jobs = 2, .jobs = jobs };
    struct notebook book = { .refuses = -1 };
    struct executor x = { .self = &book, .move = note_move };
    struct act_report got;
    struct err e = { 0 };
    bool is_impossible[2] = { false };

    world_init(&w, "type v100\nworkload w\nnode n v100 v100\njob a w\njob b w\n"
                   "start a 0\nstart b 1\n");
    w.snapshot.theta = 1;
    w.options.settle_s = 0;
    w.options.may_move = true;
    w.options.power_cap_w = 100000;
    ck_assert_int_eq(lower_problem(&w.arena, &w.snapshot, &w.est, &w.options, &w.asked, &e), 0);
    struct assignment *allowed = assignment_create(&w.asked.problem);
    assignment_lay_present(allowed);
    lay(&w, "1", &jobs[0]);
    lay(&w, "0", &jobs[1]);
    act_commit(&x, &w.snapshot, &plan, allowed, is_impossible, &got);
    ck_assert_str_eq(book.text, "move 0 on 1, move 1 on 0");
    ck_assert_int_eq(got.n_moved, 2);
    ck_assert_int_eq(got.n_refused, 0);
    assignment_destroy(allowed);
    world_release(&w);
}
