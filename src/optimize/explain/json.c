/* Explanations and plans as JSON: names instead of indices, null for what there is not. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/text/json.h"
#include "catalog/catalog.h"
#include "catalog/cluster/snapshot.h"
#include "optimize/explain/explain.h"
#include "optimize/model/lower.h"
#include "optimize/model/problem.h"

/* A value that must not be lost: out of memory stops the process. */
static json_t *made(json_t *value)
{
    assert(value);
    return value;
}

static void put(json_t *o, const char *key, json_t *value)
{
    int rc = json_object_set_new(o, key, value);

    assert(rc == 0);
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
    return made(json_pack(
        "{so so so so so so so}", "draw_w", json_number_or_null(w->draw_w), "price_w",
        json_number_or_null(w->price_w), "work_w", json_number_or_null(w->work_w), "short_w",
        json_number_or_null(w->short_w), "neighbour_w", json_number_or_null(w->neighbour_w),
        "move_w", json_number_or_null(w->move_w), "wake_w", json_number_or_null(w->wake_w)));
}

static json_t *candidate_json(const struct candidate *c, const struct lowered *asked)
{
    const struct snapshot *s = asked->snapshot;
    bool is_shared = c->neighbour >= 0, is_known = isfinite(c->cost.cost_w);
    json_t *o =
        json_pack("{so si so so so si si so so so so so so so so}", "type",
                  text(asked->problem.types[c->type].name), "n_gpus", c->n_gpus, "gpu",
                  gpu_name(s, c->gpu), "beside", job_name(s, c->neighbour), "beside_id",
                  job_id(s, c->neighbour), "places", c->n_places, "limit_w", c->limit_w, "speed",
                  json_number_or_null(c->speed), "low", json_number_or_null(c->low), "high",
                  json_number_or_null(c->high), "watts", json_number_or_null(c->watts), "added_w",
                  is_known ? json_number_or_null(c->cost.draw_w) : json_null(), "joules",
                  json_number_or_null(c->joules), "cost_w", json_number_or_null(c->cost.cost_w),
                  "parts", is_known ? cost_json(&c->cost) : json_null());

    if (is_known && (c->cost.hope_w < 0 || c->cost.hope_w > 0)) {
        put(o, "counted_on", json_number_or_null(c->counted));
        put(o, "hope_w", json_number_or_null(c->cost.hope_w));
    }
    put(o, "margin", json_number_or_null(c->margin));
    if (isfinite(c->margin))
        put(o, "kept", json_number_or_null(c->kept));
    if (c->wake_s > 0)
        put(o, "wake_s", json_number_or_null(c->wake_s));
    put(o, "neighbour_speed", json_number_or_null(c->neighbour_speed));
    put(o, "neighbour_keeps", is_shared ? json_boolean(c->neighbour_keeps) : json_null());
    put(o, "verdict",
        c->verdict == CANDIDATE_ENGINE ? json_sprintf("engine: %s", engine_rule_name(c->rule))
                                       : json_string(candidate_verdict_name(c->verdict)));
    return o;
}

json_t *explain_json(const struct explanation *x, const struct lowered *asked, const struct plan *p)
{
    const struct snapshot *s = asked->snapshot;
    const struct plan_job *pj = &p->jobs[x->job];
    struct plan_gap gap = plan_gap(p);
    json_t *list = json_array();

    for (int i = 0; i < x->n_candidates; i++)
        json_array_append_new(list, candidate_json(&x->candidates[i], asked));
    return made(json_pack(
        "{so so so so so so so ss so so so so so so so so so si}", "job", job_id(s, x->job), "name",
        job_name(s, x->job), "time_s", json_number_or_null(s->now_s), "made_by", text(p->made_by),
        "gap_w", json_number_or_null(gap.watts), "gap_ratio", json_number_or_null(gap.ratio),
        "gap_varying_ratio", json_number_or_null(gap.varying_ratio), "state",
        pj->n_gpus ? "running" : "waiting", "gpus", gpu_names(s, pj->gpus, pj->n_gpus), "reason",
        reason_of(pj), "wait_w", json_number_or_null(x->wait_w), "may_start_s",
        json_number_or_null(x->may_start_s), "waits_for", job_name(s, x->waits_for), "waits_for_id",
        job_id(s, x->waits_for), "need", json_number_or_null(s->jobs[x->job].need), "z",
        json_number_or_null(asked->problem.z), "candidates", list, "left_out", x->n_left_out));
}

/* ---- a plan ---- */

static const char *action(const struct snapshot_job *j, const struct plan_job *pj)
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
    const struct snapshot_job *j = &s->jobs[job];
    bool is_placed = pj->n_gpus > 0;

    return made(json_pack(
        "{so so ss so so so si so so so sb so so}", "id", job_id(s, job), "name", job_name(s, job),
        "does", action(j, pj), "gpus", gpu_names(s, pj->gpus, pj->n_gpus), "from",
        gpu_names(s, j->gpus, j->n_held), "type",
        is_placed ? text(s->catalog->types[s->gpus[pj->gpus[0]].type].name) : json_null(),
        "limit_w", is_placed ? pj->limit_w : 0, "speed",
        is_placed ? json_number_or_null(pj->speed) : json_null(), "low",
        is_placed ? json_number_or_null(pj->low) : json_null(), "need",
        json_number_or_null(j->need), "short", pj->is_short, "kept",
        is_placed && j->need > 0 ? json_number_or_null(pj->kept) : json_null(), "reason",
        reason_of(pj)));
}

json_t *plan_json(const struct plan *p, const struct lowered *asked)
{
    const struct snapshot *s = asked->snapshot;
    struct plan_gap gap = plan_gap(p);
    json_t *jobs = json_array();

    for (int j = 0; j < p->n_jobs; j++)
        json_array_append_new(jobs, plan_job_json(p, s, j));
    return made(json_pack("{so so so so so so si si si si so so}", "time_s",
                          json_number_or_null(s->now_s), "made_by", text(p->made_by), "watts",
                          json_number_or_null(p->watts), "gap_w", json_number_or_null(gap.watts),
                          "gap_ratio", json_number_or_null(gap.ratio), "gap_varying_ratio",
                          json_number_or_null(gap.varying_ratio), "placed", p->n_placed, "waiting",
                          p->n_waiting, "behind", s->n_behind, "short", p->n_short, "z",
                          json_number_or_null(asked->problem.z), "jobs", jobs));
}
