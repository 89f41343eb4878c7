/* Explanations and plans as JSON: names instead of indices, null for what there is not. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/snapshot.h"
#include "optimize/explain/explain.h"
#include "optimize/model/lower.h"
#include "optimize/model/problem.h"

/* A value that must not be lost: out of memory stops the process. */
static void put(json_t *o, const char *key, json_t *value)
{
    int rc = json_object_set_new(o, key, value);

    assert(rc == 0);
}

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* Names may come from anywhere; what is no UTF-8 is null. */
static json_t *text(const char *s)
{
    json_t *t = s ? json_string(s) : NULL;

    return t ? t : json_null();
}

/* "box/0" */
static json_t *gpu_name(const struct snapshot *s, int gpu)
{
    if (gpu < 0)
        return json_null();
    const struct node *n = &s->nodes[s->gpus[gpu].node];
    json_t *t = json_sprintf("%s/%d", n->name, gpu - n->first_gpu);
    return t ? t : json_null();
}

static json_t *gpu_names(const struct snapshot *s, const int *gpus, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, gpu_name(s, gpus[i]));
    return list;
}

static json_t *type_name(const struct snapshot *s, int type)
{
    return text(s->catalog->types[type].name);
}

static json_t *job_name(const struct snapshot *s, int job)
{
    return job < 0 ? json_null() : text(s->jobs[job].spec->name);
}

static json_t *job_id(const struct snapshot *s, int job)
{
    return job < 0 ? json_null() : json_integer(s->jobs[job].id);
}

static json_t *reason_of(const struct plan_job *pj)
{
    return pj->n_gpus ? json_null() : json_string(wait_reason_name(pj->reason));
}

/* ---- an explanation ---- */

static json_t *cost_json(const struct candidate_cost *w)
{
    json_t *o = json_object();

    put(o, "draw_w", number(w->draw_w));
    put(o, "price_w", number(w->price_w));
    put(o, "work_w", number(w->work_w));
    put(o, "short_w", number(w->short_w));
    put(o, "neighbour_w", number(w->neighbour_w));
    put(o, "move_w", number(w->move_w));
    put(o, "wake_w", number(w->wake_w));
    return o;
}

static json_t *candidate_json(const struct candidate *c, const struct lowered *asked)
{
    const struct snapshot *s = asked->snapshot;
    json_t *o = json_object();
    bool is_shared = c->neighbour >= 0, is_known = isfinite(c->cost.cost_w);

    put(o, "type", text(asked->problem.types[c->type].name));
    put(o, "n_gpus", json_integer(c->n_gpus));
    put(o, "gpu", gpu_name(s, c->gpu));
    put(o, "beside", job_name(s, c->neighbour));
    put(o, "beside_id", job_id(s, c->neighbour));
    put(o, "places", json_integer(c->n_places));
    put(o, "limit_w", json_integer(c->limit_w));
    put(o, "speed", number(c->speed));
    put(o, "low", number(c->low));
    put(o, "high", number(c->high));
    put(o, "watts", number(c->watts));
    put(o, "added_w", is_known ? number(c->cost.draw_w) : json_null());
    put(o, "joules", number(c->joules));
    put(o, "cost_w", number(c->cost.cost_w));
    put(o, "parts", is_known ? cost_json(&c->cost) : json_null());
    if (is_known && (c->cost.hope_w < 0 || c->cost.hope_w > 0)) {
        put(o, "counted_on", number(c->counted));
        put(o, "hope_w", number(c->cost.hope_w));
    }
    put(o, "margin", number(c->margin));
    if (c->wake_s > 0)
        put(o, "wake_s", number(c->wake_s));
    put(o, "neighbour_speed", number(c->neighbour_speed));
    put(o, "neighbour_keeps", is_shared ? json_boolean(c->neighbour_keeps) : json_null());
    put(o, "verdict",
        c->verdict == CANDIDATE_ENGINE ? json_sprintf("engine: %s", engine_rule_name(c->rule))
                                       : json_string(candidate_verdict_name(c->verdict)));
    return o;
}

/* How far its plan may be from the best one. */
static void put_gap(json_t *o, const struct plan *p)
{
    struct plan_gap gap = plan_gap(p);

    put(o, "gap_w", number(gap.watts));
    put(o, "gap_ratio", number(gap.ratio));
    put(o, "gap_varying_ratio", number(gap.varying_ratio));
}

json_t *explain_json(const struct explanation *x, const struct lowered *asked, const struct plan *p)
{
    const struct snapshot *s = asked->snapshot;
    const struct plan_job *pj = &p->jobs[x->job];
    json_t *o = json_object(), *list = json_array();

    for (int i = 0; i < x->n_candidates; i++)
        json_array_append_new(list, candidate_json(&x->candidates[i], asked));
    put(o, "job", job_id(s, x->job));
    put(o, "name", job_name(s, x->job));
    put(o, "time_s", number(s->now_s));
    put(o, "made_by", text(p->made_by));
    put_gap(o, p);
    put(o, "state", json_string(pj->n_gpus ? "running" : "waiting"));
    put(o, "gpus", gpu_names(s, pj->gpus, pj->n_gpus));
    put(o, "reason", reason_of(pj));
    put(o, "wait_w", number(x->wait_w));
    put(o, "may_start_s", number(x->may_start_s));
    put(o, "waits_for", job_name(s, x->waits_for));
    put(o, "waits_for_id", job_id(s, x->waits_for));
    put(o, "need", number(s->jobs[x->job].need));
    put(o, "z", number(asked->problem.z));
    put(o, "candidates", list);
    put(o, "left_out", json_integer(x->n_left_out));
    return o;
}

/* ---- a plan ---- */

static const char *deed(const struct snap_job *j, const struct plan_job *pj)
{
    if (!pj->n_gpus)
        return j->is_running ? "stop" : "wait";
    if (!j->is_running)
        return "start";
    if (!plan_job_stays(pj, j))
        return "move";
    return pj->limit_w == j->limit_w ? "stay" : "limit";
}

static json_t *plan_job_json(const struct plan *p, const struct snapshot *s, int job)
{
    const struct plan_job *pj = &p->jobs[job];
    const struct snap_job *j = &s->jobs[job];
    json_t *o = json_object();
    bool is_placed = pj->n_gpus > 0;

    put(o, "id", job_id(s, job));
    put(o, "name", job_name(s, job));
    put(o, "does", json_string(deed(j, pj)));
    put(o, "gpus", gpu_names(s, pj->gpus, pj->n_gpus));
    put(o, "from", gpu_names(s, j->gpus, j->n_held));
    put(o, "type", is_placed ? type_name(s, s->gpus[pj->gpus[0]].type) : json_null());
    put(o, "limit_w", json_integer(is_placed ? pj->limit_w : 0));
    put(o, "speed", is_placed ? number(pj->speed) : json_null());
    put(o, "low", is_placed ? number(pj->low) : json_null());
    put(o, "need", number(j->need));
    put(o, "short", json_boolean(pj->is_short));
    put(o, "reason", reason_of(pj));
    return o;
}

json_t *plan_json(const struct plan *p, const struct lowered *asked)
{
    const struct snapshot *s = asked->snapshot;
    json_t *o = json_object(), *jobs = json_array();

    for (int j = 0; j < p->n_jobs; j++)
        json_array_append_new(jobs, plan_job_json(p, s, j));
    put(o, "time_s", number(s->now_s));
    put(o, "made_by", text(p->made_by));
    put(o, "watts", number(p->watts));
    put_gap(o, p);
    put(o, "placed", json_integer(p->n_placed));
    put(o, "waiting", json_integer(p->n_waiting));
    put(o, "behind", json_integer(s->n_behind));
    put(o, "short", json_integer(p->n_short));
    put(o, "z", number(asked->problem.z));
    put(o, "jobs", jobs);
    return o;
}
