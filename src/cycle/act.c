/* From a plan to orders, as things are by now. */
#include "cycle/inner.h"

#include <errno.h>

#include "act/act.h"
#include "base/err.h"
#include "base/log.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "optimize/model/lower.h"
#include "optimize/model/plan.h"
#include "optimize/search/assignment.h"
#include "optimize/search/search.h"

/* ---- has anything changed since it was looked at? ---- */

/* Would an order be given about somebody who is to be left alone? */
static bool touches_untouchable(const struct cycle *c, const struct snapshot *s,
                                const struct plan *p)
{
    for (int j = 0; j < s->n_jobs; j++)
        if (act_changes(&s->jobs[j], &p->jobs[j]) && cycle_leaves_alone(c, s->jobs[j].id))
            return true;
    return false;
}

/* Do jobs have watts or nodes in common? */
static bool have_common(const struct cycle *c, const struct snapshot *s)
{
    return c->options.power_cap_w > 0 || (s->engine && s->engine->nodes);
}

/* GPUs (by number) that somebody leaves or comes to, or whose limit changes: what happens on others
 * is nothing to the plan's orders. NULL: all are, for jobs have something in common.
 */
static const bool *concerned_gpus(const struct cycle *c, struct arena *a, const struct snapshot *s,
                                  const struct plan *p)
{
    bool *is_concerned = ARENA_ARRAY(a, bool, (size_t)s->n_gpus);

    if (have_common(c, s))
        return NULL;
    for (int j = 0; j < s->n_jobs; j++) {
        if (!act_changes(&s->jobs[j], &p->jobs[j]))
            continue;
        for (int i = 0; i < s->jobs[j].n_held; i++)
            is_concerned[s->jobs[j].gpus[i]] = true;
        for (int i = 0; i < p->jobs[j].n_gpus; i++)
            is_concerned[p->jobs[j].gpus[i]] = true;
    }
    return is_concerned;
}

static bool is_concerned_job(const struct snapshot_job *j, const struct plan_job *pj,
                             const bool *is_concerned)
{
    for (int i = 0; i < j->n_held && is_concerned; i++)
        if (is_concerned[j->gpus[i]])
            return true;
    return !is_concerned || act_changes(j, pj);
}

/* Are the GPUs that the plan has orders for as they were, and the jobs there, and may those be
 * touched that it changes?
 */
static bool still_holds(const struct cycle *c, struct arena *a, const struct snapshot *s,
                        const struct plan *p)
{
    const struct state *now = &c->ledger->state;
    const bool *is_busy = cycle_busy_gpus(c, a);
    const bool *is_concerned = concerned_gpus(c, a, s, p);

    if (now->n_gpus != s->n_gpus || s->settings != c->settings)
        return false;
    for (int g = 0; g < s->n_gpus; g++) {
        bool may_start = now->nodes[now->gpus[g].node].state == NODE_UP && !is_busy[g];
        if ((!is_concerned || is_concerned[g]) &&
            (now->gpus[g].n_jobs != s->gpus[g].n_jobs || may_start != s->gpus[g].may_start))
            return false;
    }
    for (int j = 0; j < s->n_jobs; j++)
        if (is_concerned_job(&s->jobs[j], &p->jobs[j], is_concerned) &&
            !snapshot_is_so(&s->jobs[j], now))
            return false;
    return engine_rules_same(s->engine, cycle_rules(c, a, s), s->n_nodes, s->n_gpus, s->n_jobs) &&
           !touches_untouchable(c, s, p);
}

/* ---- a plan for what is now ---- */

/* What the plan wants of each job that is there now; who changed is to stay as it is. */
static struct plan_job *wanted_now(const struct cycle *c, struct arena *a,
                                   const struct snapshot *then, const struct plan *p,
                                   const struct snapshot *now, bool *is_left)
{
    const struct state *s = &c->ledger->state;
    int *at = ARENA_ARRAY(a, int, (size_t)s->n_jobs);    // by id: 1 + its number then
    struct plan_job *wanted = ARENA_ARRAY(a, struct plan_job, (size_t)now->n_jobs);

    for (int j = 0; j < then->n_jobs; j++)
        at[then->jobs[j].id] = j + 1;
    for (int j = 0; j < now->n_jobs; j++) {
        const struct snapshot_job *here = &now->jobs[j];
        int was = at[here->id] - 1;
        wanted[j] = (struct plan_job){ .n_gpus = here->n_held,
                                       .gpus = here->gpus,
                                       .limit_w = here->limit_w };
        is_left[j] = cycle_leaves_alone(c, here->id);
        if (was >= 0 && snapshot_is_so(&then->jobs[was], s) && !is_left[j])
            wanted[j] = p->jobs[was];
    }
    return wanted;
}

/* Look again, and make of the plan what is allowed now. */
static int renew(struct cycle *c, const struct snapshot *then, const struct plan *p,
                 struct snapshot *now, struct plan *out, struct err *e)
{
    struct arena *a = &c->arena;
    struct lowered asked;
    int rc = cycle_look(c, a, now, e);

    if (rc == 0)
        rc = lower_problem(a, now, &c->estimator, &c->options, &asked, e);
    if (rc < 0)
        return rc;
    bool *is_left = ARENA_ARRAY(a, bool, (size_t)now->n_jobs);
    plan_repair(a, &asked.problem, wanted_now(c, a, then, p, now, is_left), is_left, out);
    out->made_by = p->made_by;
    if (touches_untouchable(c, now, out))
        return err_set(e, EAGAIN, "a power limit would change under an order that is under way");
    return plan_check(a, &asked.problem, out, e);
}

static int n_changes(const struct snapshot *s, const struct plan *p)
{
    int n = 0;

    for (int j = 0; j < s->n_jobs; j++)
        n += act_changes(&s->jobs[j], &p->jobs[j]);
    return n;
}

/* Several orders about jobs that have watts or nodes in common: the present allocation, by which
 * they go one by one. NULL: there are none such.
 */
static struct assignment *common_assignment(struct cycle *c, const struct snapshot *s,
                                            const struct plan *p)
{
    struct lowered *asked = ARENA_NEW(&c->arena, struct lowered);    // the assignment borrows it
    struct err e = { 0 };

    if (!have_common(c, s) || n_changes(s, p) < 2)
        return NULL;
    if (lower_problem(&c->arena, s, &c->estimator, &c->options, asked, &e) < 0)
        return NULL;    // then there would be no plan
    struct assignment *d = assignment_create(&asked->problem);
    assignment_lay_present(d);
    return d;
}

static void commit(struct cycle *c, const struct snapshot *s, const struct plan *p,
                   struct act_report *out)
{
    bool *is_impossible = ARENA_ARRAY(&c->arena, bool, (size_t)s->n_jobs);
    struct assignment *assignment = common_assignment(c, s, p);

    act_commit(&c->executor, s, p, assignment, is_impossible, out);
    assignment_destroy(assignment);
    for (int j = 0; j < s->n_jobs; j++)
        if (is_impossible[j])
            cycle_note_refusal(c, s->jobs[j].id, p->jobs[j].gpus, p->jobs[j].n_gpus);
}

/* What is saved of the budget, and what it was overdrawn by, is forgotten in about so long. */
#define PROBE_MEMORY_S 86400.0

/* What the plan in force has cost until now, and whether the budget leaves something for the next.
 */
static void count_probes(struct cycle *c, double now_s, const struct plan *p)
{
    struct probe_budget *b = &c->probe;

    if (!(b->share > 0))
        return;
    double lasted_s = fmax(now_s - b->since_s, 0), fades = exp(-lasted_s / PROBE_MEMORY_S);
    b->spent_j = b->spent_j * fades + b->hope_w * lasted_s;
    b->all_j = b->all_j * fades + b->watts * lasted_s;
    b->hope_w = p->hope_w;
    b->watts = p->watts;
    b->since_s = now_s;
    c->options.may_probe = b->spent_j <= b->share * b->all_j;
}

void cycle_act(struct cycle *c, const struct snapshot *s, const struct plan *p,
               struct act_report *out)
{
    struct snapshot now = *s;
    struct plan renewed = *p;
    struct err e = { 0 };
    int rc = still_holds(c, &c->arena, s, p) ? 0 : renew(c, s, p, &now, &renewed, &e);

    *out = (struct act_report){ 0 };
    cycle_note_reasons(c, s, p);
    if (rc == 0) {
        count_probes(c, s->now_s, &renewed);
        commit(c, &now, &renewed, out);
        if (services_act(c, &now, &renewed, &e) < 0)
            log_warn("replicas stay as they are: %s", e.text);
    } else
        log_warn("nothing is ordered this time: %s", e.text);
    c->n_moves += out->n_moved;
    log_debug("t %.0f s: %d placed, %d waiting, %d short; started %d, moved %d, stopped %d, "
              "refused %d",
              s->now_s, p->n_placed, p->n_waiting, p->n_short, out->n_started, out->n_moved,
              out->n_stopped, out->n_refused);
}
