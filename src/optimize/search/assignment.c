#include "optimize/search/assignment_inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* Caps are this much higher than they are, so that sums in another order do not make a
 * difference: a tenth of what the judge grants.
 */
#define CAP_HAIR 1e-10

/* ---- watts and caps ---- */

static double draw_w(const struct assignment *d, int gpu)
{
    const struct assignment_gpu *g = &d->gpus[gpu];

    return g->n_jobs > 0 ? g->watts : d->problem->types[d->problem->gpus[gpu].type].idle_w;
}

/* Some watts more (or less) on each of these GPUs: do the caps allow it? */
static bool have_room(const struct assignment *d, const int *gpus, const double *more_w, int n)
{
    double all_w = 0;

    if (!d->has_caps || d->is_forcing)
        return true;
    for (int i = 0; i < n; i++) {
        double rack_w = 0;
        all_w += more_w[i];
        for (int k = 0; d->rack_room_w && k < n; k++)
            if (d->problem->gpus[gpus[k]].rack == d->problem->gpus[gpus[i]].rack)
                rack_w += more_w[k];
        if (rack_w > 0 && rack_w > d->rack_room_w[d->problem->gpus[gpus[i]].rack])
            return false;
    }
    return all_w <= 0 || all_w <= d->room_w;
}

static void draw_more(struct assignment *d, int gpu, double more_w)
{
    d->room_w -= more_w;
    if (!d->rack_room_w)
        return;
    int rack = d->problem->gpus[gpu].rack;
    journal_room(d, rack);
    d->rack_room_w[rack] -= more_w;
}

/* ---- nodes ---- */

void nodes_use(struct assignment *d, int gpu, int sign)
{
    for (int i = 0; d->node_room && i < d->gpus[gpu].n_jobs; i++)
        problem_use_node(d->problem, d->gpus[gpu].jobs[i], gpu, sign, d->node_room);
}

/* Has the node of the last of these GPUs room for all of them that are there? */
static bool node_has_room(const struct assignment *d, int job, const int *gpus, int n)
{
    int node = d->problem->gpus[gpus[n - 1]].node, n_here = 0;

    if (!d->node_room)
        return true;
    for (int i = 0; i < n; i++)
        n_here += d->problem->gpus[gpus[i]].node == node;
    return nodes_fit(d, d->node_room, node, job) >= n_here;
}

/* ---- combinations ---- */

/* What a job holds elsewhere than on this GPU. */
static struct held rest_held(const struct assignment *d, int job, int gpu)
{
    const struct assignment_job *j = &d->jobs[job];
    const struct assignment_gpu *g = &d->gpus[gpu];

    if (j->n_gpus == 0 || (j->n_gpus == 1 && d->job_gpus[j->first] == gpu))
        return j->away;
    for (int i = 0; i < g->n_jobs; i++)
        if (g->jobs[i] == job)
            return held_less(j->held, g->held[i]);
    return j->held;
}

bool assignment_gang_yield(const struct assignment *d, int job, int type, int limit, int m,
                           bool is_near, struct yield *out)
{
    int kind = d->problem->jobs[job].kind;

    if (!tables_yield(d, type, limit, &kind, 1, out))
        return false;
    problem_make_gang(d->problem, type, kind, m, is_near, out);
    return true;
}

/* 'n' jobs on each of 'm' GPUs; one job, if they are more than one. */
static bool combo_at(const struct assignment *d, const int *gpus, int m, const int *jobs,
                     const struct held *rest, int n, int limit, struct combo *out)
{
    int type = d->problem->gpus[gpus[0]].type, kinds[THETA_MAX] = { 0 };
    struct yield y;

    for (int i = 0; i < n; i++)
        kinds[i] = d->problem->jobs[jobs[i]].kind;
    if (m > 1 ? !assignment_gang_yield(d, jobs[0], type, limit, m,
                                       problem_stands(d->problem, gpus, m, 1), &y)
              : !tables_yield(d, type, limit, kinds, n, &y))
        return false;
    out->limit = limit;
    out->cost_w = m > 1 ? y.cost_w / m : y.cost_w;
    out->watts = m > 1 ? y.watts / m : y.watts;
    out->total_w = y.cost_w;
    for (int i = 0; i < n; i++) {
        out->held[i] = y.held[i];
        out->total_w +=
            problem_short_w(d->problem, &d->problem->jobs[jobs[i]], held_add(rest[i], y.held[i]));
    }
    return true;
}

/* Is a promise broken that holds now or, since a setting alone breaks it, in 'plain'? */
static bool breaks(const struct assignment *d, const int *jobs, const struct held *rest, int n,
                   const struct combo *plain, const struct combo *c)
{
    for (int i = 0; i < n; i++) {
        const struct assignment_job *j = &d->jobs[jobs[i]];
        double need = d->problem->jobs[jobs[i]].need;
        bool is_kept = (j->n_gpus > 0 && held_low(j->held) >= need) ||
                       held_low(held_add(rest[i], plain->held[i])) >= need;
        if (is_kept && held_low(held_add(rest[i], c->held[i])) < need)
            return true;
    }
    return false;
}

/* As combo_make; of 'm' GPUs with a gang, cost and watts of each, and what is held of all. */
static bool combo_on(const struct assignment *d, const int *gpus, int m, const int *jobs, int n,
                     int limit, struct combo *out)
{
    int first = limit < 0 ? 0 : limit;
    int last = limit < 0 ? d->problem->types[d->problem->gpus[gpus[0]].type].n_limits - 1 : limit;
    double was_w = draw_w(d, gpus[0]), more_w[GANG_MAX];
    struct held rest[THETA_MAX];
    struct combo plain;
    bool found = false;

    for (int i = 0; i < n; i++)
        rest[i] = rest_held(d, jobs[i], gpus[0]);
    if (d->is_keeping && !combo_at(d, gpus, m, jobs, rest, n, 0, &plain))
        return false;
    for (int l = first; l <= last; l++) {
        struct combo c;
        if (!combo_at(d, gpus, m, jobs, rest, n, l, &c))
            break;
        if (d->is_keeping && breaks(d, jobs, rest, n, &plain, &c))
            continue;
        for (int i = 0; i < m; i++)
            more_w[i] = c.watts - was_w;    // a gang's are alike
        if ((!found || c.total_w < out->total_w) && have_room(d, gpus, more_w, m)) {
            *out = c;
            found = true;
        }
    }
    return found;
}

bool combo_make(const struct assignment *d, int gpu, const int *jobs, int n, int limit,
                struct combo *out)
{
    return combo_on(d, &gpu, 1, jobs, n, limit, out);
}

double assignment_gpu_total(const struct assignment *d, int gpu)
{
    const struct assignment_gpu *g = &d->gpus[gpu];
    double w = g->cost_w;

    for (int i = 0; i < g->n_jobs; i++)
        w += d->jobs[g->jobs[i]].short_w;
    return w;
}

/* ---- a job's own part ---- */

static bool is_home(const struct assignment *d, int job)
{
    const struct assignment_job *j = &d->jobs[job];

    return !j->is_away && problem_is_at(&d->problem->jobs[job], d->job_gpus + j->first, j->n_gpus);
}

/* What a job holds and costs, after its GPUs or their combinations changed. */
static void job_refresh(struct assignment *d, int job, bool has_moved)
{
    const struct problem_job *p = &d->problem->jobs[job];
    struct assignment_job *j = &d->jobs[job];
    double was_w = j->short_w + j->fee_w;

    j->held = j->away;
    for (int i = 0; i < j->n_gpus; i++) {
        const struct assignment_gpu *g = &d->gpus[d->job_gpus[j->first + i]];
        int slot = 0;
        while (g->jobs[slot] != job)
            slot++;
        j->held = held_add(j->held, g->held[slot]);
        if (g->is_whole)
            break;
    }
    j->short_w = j->n_gpus ? problem_short_w(d->problem, p, j->held) : 0;
    if (has_moved) {
        j->fee_w = j->n_gpus ? 0 : p->wait_w;
        bool moves = (p->n_present > 0 || d->has_fees) && !is_home(d, job);
        if (moves && p->n_present > 0)
            j->fee_w += p->move_w;
        if (moves && d->has_fees)
            for (int i = 0; i < j->n_gpus; i++)
                j->fee_w += problem_come_w(d->problem, p, d->job_gpus[j->first + i]);
    }
    d->cost_w += j->short_w + j->fee_w - was_w;
}

/* Give a GPU its jobs and what they do there; job_gpus of newcomers are already written, job_gpus
 * of who left already cleared. 'cost_w' and 'watts' are this GPU's.
 */
static void gpu_become(struct assignment *d, int gpu, const int *jobs, int n, const struct combo *c,
                       bool is_whole)
{
    struct assignment_gpu *g = &d->gpus[gpu];
    double was_w = draw_w(d, gpu);

    lists_leave(d, gpu);
    nodes_use(d, gpu, 1);
    d->cost_w += (n ? c->cost_w : 0) - g->cost_w;
    g->n_jobs = (unsigned char)n;
    g->is_whole = is_whole;
    g->limit = n ? (unsigned char)c->limit : 0;
    g->cost_w = n ? c->cost_w : 0;
    g->watts = n ? c->watts : 0;
    for (int i = 0; i < n; i++) {
        g->jobs[i] = jobs[i];
        g->held[i] = c->held[i];
    }
    nodes_use(d, gpu, -1);
    if (d->has_caps)
        draw_more(d, gpu, draw_w(d, gpu) - was_w);
}

/* After gpu_become on all GPUs of a change. */
static void gpu_settle(struct assignment *d, int gpu, int except)
{
    struct assignment_gpu *g = &d->gpus[gpu];

    for (int i = 0; i < g->n_jobs; i++)
        if (g->jobs[i] != except) {
            journal_job(d, g->jobs[i]);
            job_refresh(d, g->jobs[i], false);
        }
    lists_join(d, gpu);
}

/* ---- may it be there? ---- */

static bool may_use(const struct assignment *d, int job, int gpu)
{
    const struct problem_job *j = &d->problem->jobs[job];
    const struct problem_gpu *g = &d->problem->gpus[gpu];

    return problem_allows(j, g->type) &&
           ((g->may_start && problem_bars(d->problem, j, gpu) == ENGINE_CAN) ||
            gpus_have(j->present, j->n_present, gpu));
}

bool assignment_may_join(const struct assignment *d, int job, int gpu)
{
    const struct assignment_gpu *g = &d->gpus[gpu];

    if (g->n_jobs >= d->problem->theta || g->is_whole || !may_use(d, job, gpu) ||
        !node_has_room(d, job, &gpu, 1))
        return false;
    if (g->n_jobs > 0 && d->problem->jobs[job].is_exclusive)
        return false;
    for (int i = 0; i < g->n_jobs; i++)
        if (g->jobs[i] == job || d->problem->jobs[g->jobs[i]].is_exclusive)
            return false;
    return true;
}

static bool are_distinct(const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (gpus[i] == gpus[k])
                return false;
    return true;
}

static bool gang_may_stand(const struct assignment *d, int job, const int *gpus, int n, int limit)
{
    int type = d->problem->gpus[gpus[0]].type;

    for (int i = 0; i < n; i++)
        if (d->gpus[gpus[i]].n_jobs > 0 || d->problem->gpus[gpus[i]].type != type ||
            !may_use(d, job, gpus[i]) || !node_has_room(d, job, gpus, i + 1))
            return false;
    if (!problem_devices_match(d->problem, gpus, n) &&
        !problem_is_at(&d->problem->jobs[job], gpus, n))
        return false;
    return limit < d->problem->types[type].n_limits &&
           problem_stands(d->problem, gpus, n, d->problem->jobs[job].n_nodes);
}

/* ---- putting ---- */

static void gang_put(struct assignment *d, int job, const int *gpus, int n, const struct combo *c)
{
    struct assignment_job *j = &d->jobs[job];

    assert(n <= j->room);
    journal_job(d, job);
    j->n_gpus = n;
    memcpy(d->job_gpus + j->first, gpus, (size_t)n * sizeof *gpus);
    for (int i = 0; i < n; i++) {
        journal_gpu(d, gpus[i]);
        gpu_become(d, gpus[i], &job, 1, c, true);
        lists_join(d, gpus[i]);
    }
    job_refresh(d, job, true);
}

static void part_put(struct assignment *d, int job, int gpu, const struct combo *c)
{
    int jobs[THETA_MAX];
    int n = assignment_with(d, gpu, job, jobs);

    journal_gpu(d, gpu);
    journal_job(d, job);
    d->job_gpus[d->jobs[job].first + d->jobs[job].n_gpus++] = gpu;
    gpu_become(d, gpu, jobs, n, c, false);
    job_refresh(d, job, true);
    gpu_settle(d, gpu, job);
}

/* Combinations for a job's parts on these GPUs; false: it may not be. */
static bool parts_make(struct assignment *d, int job, const int *gpus, int n, int limit,
                       struct combo *out)
{
    double more_w[GANG_MAX];
    struct held was = d->jobs[job].held;
    int n_was = d->jobs[job].n_gpus;
    bool may = true;

    for (int i = 0; may && i < n; i++) {
        int jobs[THETA_MAX];
        may = assignment_may_join(d, job, gpus[i]) && node_has_room(d, job, gpus, i + 1) &&
              limit < d->problem->types[d->problem->gpus[gpus[i]].type].n_limits &&
              combo_make(d, gpus[i], jobs, assignment_with(d, gpus[i], job, jobs), limit, &out[i]);
        if (!may)
            break;
        more_w[i] = out[i].watts - draw_w(d, gpus[i]);
        // the next part counts on it
        d->jobs[job].held = held_add(d->jobs[job].held, out[i].held[d->gpus[gpus[i]].n_jobs]);
        d->jobs[job].n_gpus = n > 1 ? 2 : 1;
    }
    d->jobs[job].held = was;
    d->jobs[job].n_gpus = n_was;
    return may && (n == 1 || have_room(d, gpus, more_w, n));
}

static bool is_gang(const struct assignment *d, int job, int n)
{
    return n > 1 && d->problem->jobs[job].form == FORM_GANG;
}

static bool has_form(const struct assignment *d, int job, const int *gpus, int n)
{
    const struct problem_job *j = &d->problem->jobs[job];

    return j->name && d->jobs[job].n_gpus == 0 && n >= 1 && n <= GANG_MAX && n >= j->n_min &&
           n <= j->n_max && n <= d->jobs[job].room && are_distinct(gpus, n);
}

/* May a waiting job be put there, and what would be on each GPU? A gang's first is for all. */
static bool put_make(struct assignment *d, int job, const int *gpus, int n, int limit,
                     struct combo *out)
{
    if (!has_form(d, job, gpus, n))
        return false;
    if (is_gang(d, job, n))
        return gang_may_stand(d, job, gpus, n, limit) && combo_on(d, gpus, n, &job, 1, limit, out);
    return parts_make(d, job, gpus, n, limit, out);
}

bool assignment_may(struct assignment *d, int job, const int *gpus, int n, int limit)
{
    struct combo c[GANG_MAX];

    return put_make(d, job, gpus, n, limit, c);
}

bool assignment_put(struct assignment *d, int job, const int *gpus, int n, int limit)
{
    struct combo c[GANG_MAX];

    if (!put_make(d, job, gpus, n, limit, c))
        return false;
    if (is_gang(d, job, n))
        gang_put(d, job, gpus, n, c);
    else
        for (int i = 0; i < n; i++)
            part_put(d, job, gpus[i], &c[i]);
    return true;
}

bool assignment_add_part(struct assignment *d, int job, int gpu)
{
    const struct problem_job *j = &d->problem->jobs[job];
    struct combo c;

    if (!j->name || j->is_fixed || d->jobs[job].n_gpus >= j->n_max ||
        (j->form == FORM_GANG && (d->jobs[job].n_gpus > 0 || j->n_min > 1)))
        return false;
    int jobs[THETA_MAX];
    if (!assignment_may_join(d, job, gpu) ||
        !combo_make(d, gpu, jobs, assignment_with(d, gpu, job, jobs), -1, &c))
        return false;
    part_put(d, job, gpu, &c);
    return true;
}

void assignment_force(struct assignment *d, int job, const int *gpus, int n, int limit)
{
    int jobs[THETA_MAX];
    struct combo c;
    bool may;

    d->is_forcing = true;
    if (is_gang(d, job, n)) {
        may = combo_on(d, gpus, n, &job, 1, limit, &c);
        assert(may);
        gang_put(d, job, gpus, n, &c);
        n = 0;
    }
    for (int i = 0; i < n; i++) {
        assert(d->gpus[gpus[i]].n_jobs < d->problem->theta);
        may = combo_make(d, gpus[i], jobs, assignment_with(d, gpus[i], job, jobs), limit, &c);
        assert(may);
        part_put(d, job, gpus[i], &c);
    }
    d->is_forcing = false;
}

/* ---- taking ---- */

/* What stays on a GPU when a job leaves it; more_w: of what it draws. When estimates have changed,
 * those who stay may be unable to run: by force the job leaves all the same, and they hold nothing
 * until they are taken away, too.
 */
static bool leave_make(const struct assignment *d, int job, int gpu, struct combo *out,
                       double *more_w)
{
    int jobs[THETA_MAX];
    int n = assignment_without(d, gpu, job, jobs);

    if (n == 0) {
        *more_w = d->problem->types[d->problem->gpus[gpu].type].idle_w - d->gpus[gpu].watts;
        return have_room(d, &gpu, more_w, 1);
    }
    if (!combo_make(d, gpu, jobs, n, -1, out)) {
        if (!d->is_forcing)
            return false;
        *out = (struct combo){ .limit = d->gpus[gpu].limit, .watts = d->gpus[gpu].watts };
    }
    *more_w = out->watts - d->gpus[gpu].watts;
    return true;
}

bool assignment_take(struct assignment *d, int job)
{
    struct assignment_job *j = &d->jobs[job];
    int gpus[GANG_MAX], jobs[THETA_MAX], n = j->n_gpus;
    struct combo c[GANG_MAX];
    double more_w[GANG_MAX];

    assert(n > 0 && !d->problem->jobs[job].is_fixed);
    memcpy(gpus, d->job_gpus + j->first, (size_t)n * sizeof *gpus);
    for (int i = 0; i < n; i++)
        if (!leave_make(d, job, gpus[i], &c[i], &more_w[i]))
            return false;
    if (n > 1 && !have_room(d, gpus, more_w, n))
        return false;
    bool is_whole = d->gpus[gpus[0]].is_whole;
    journal_job(d, job);
    j->n_gpus = 0;
    for (int k = 0; k < n; k++) {
        int i = is_whole ? k : n - 1 - k;    // parts from the last on
        journal_gpu(d, gpus[i]);
        gpu_become(d, gpus[i], jobs, assignment_without(d, gpus[i], job, jobs), &c[i], false);
        gpu_settle(d, gpus[i], -1);
    }
    job_refresh(d, job, true);
    return true;
}

void assignment_force_away(struct assignment *d, int job)
{
    d->is_forcing = true;
    bool done = assignment_take(d, job);
    d->is_forcing = false;
    assert(done);
}

/* ---- settings ---- */

static bool give_limit(struct assignment *d, int gpu, int limit)
{
    const struct assignment_gpu *g = &d->gpus[gpu];
    int jobs[THETA_MAX], was = g->limit, n = g->is_whole ? d->jobs[g->jobs[0]].n_gpus : 1;
    const int *gpus = g->is_whole ? assignment_gpus(d, g->jobs[0]) : &gpu;
    struct combo c;

    if (limit == was || g->n_jobs == 0)
        return limit == was;
    memcpy(jobs, g->jobs, sizeof jobs);
    if (!combo_on(d, gpus, n, jobs, g->n_jobs, limit, &c) || c.limit == was)
        return false;
    for (int i = 0; i < n; i++) {
        journal_gpu(d, gpus[i]);
        gpu_become(d, gpus[i], jobs, g->n_jobs, &c, g->is_whole);
    }
    for (int i = 0; i < n; i++)
        gpu_settle(d, gpus[i], -1);
    return true;
}

bool assignment_set_limit(struct assignment *d, int gpu, int limit)
{
    assert(limit >= 0);
    return limit < d->problem->types[d->problem->gpus[gpu].type].n_limits &&
           give_limit(d, gpu, limit);
}

void assignment_force_limit(struct assignment *d, int gpu, int limit)
{
    d->is_forcing = true;
    bool done = assignment_set_limit(d, gpu, limit);
    d->is_forcing = false;
    assert(done);
}

bool assignment_relimit(struct assignment *d, int gpu)
{
    return give_limit(d, gpu, -1);
}

/* ---- making ---- */

/* All wait, with room for the GPUs that they may get. */
static void jobs_make(struct assignment *d)
{
    d->jobs = ARENA_ARRAY(&d->arena, struct assignment_job, (size_t)d->problem->n_jobs);
    for (int i = 0; i < d->problem->n_jobs; i++) {
        const struct problem_job *p = &d->problem->jobs[i];
        struct assignment_job *j = &d->jobs[i];
        j->first = d->n_job_gpus;
        j->room = p->n_max > p->n_present ? p->n_max : p->n_present;
        j->fee_w = p->name ? p->wait_w + (p->n_present > 0 ? p->move_w : 0) : 0;
        d->n_job_gpus += j->room;
        d->cost_w += j->fee_w;
    }
    d->job_gpus = ARENA_ARRAY(&d->arena, int, (size_t)d->n_job_gpus);
}

/* What the caps leave above everybody asleep, but awake as far as caps are concerned. */
static void rooms_make(struct assignment *d)
{
    const struct problem *p = d->problem;
    bool has_racks = false;

    for (int r = 0; p->rack_cap_w && r < p->n_racks; r++)
        has_racks |= p->rack_cap_w[r] > 0;
    d->room_w = HUGE_VAL;
    d->has_caps = has_racks || p->power_cap_w > 0;
    if (has_racks)
        d->rack_room_w = ARENA_ARRAY(&d->arena, double, (size_t)p->n_racks);
    if (!d->has_caps)
        return;
    double idle_w = 0;
    for (int g = 0; g < p->n_gpus; g++) {
        idle_w += p->types[p->gpus[g].type].idle_w;
        if (has_racks)
            d->rack_room_w[p->gpus[g].rack] -= p->types[p->gpus[g].type].idle_w;
    }
    d->room_w = (p->power_cap_w > 0 ? p->power_cap_w / p->watts_margin : HUGE_VAL) - idle_w;
    for (int r = 0; has_racks && r < p->n_racks; r++)
        d->rack_room_w[r] += p->rack_cap_w[r] > 0 ? p->rack_cap_w[r] / p->watts_margin : HUGE_VAL;
}

static void lay(struct assignment *d, bool only_fixed)
{
    const struct problem *p = d->problem;

    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *pj = &p->jobs[j];
        if (pj->name && pj->n_present > 0 && d->jobs[j].n_gpus == 0 &&
            (pj->is_fixed || !only_fixed))
            assignment_force(d, j, pj->present, pj->n_present, pj->present_limit);
    }
}

/* Caps as they count: with a hair. The present allocation is always allowed: where it draws more
 * than a cap, that is the cap.
 */
static void rooms_widen(struct assignment *d)
{
    const struct problem *p = d->problem;
    struct assignment *now = assignment_create_with(p, d->tables);

    lay(now, false);
    d->room_w -= fmin(now->room_w, 0);
    d->room_w += CAP_HAIR * p->power_cap_w;
    for (int r = 0; d->rack_room_w && r < p->n_racks; r++) {
        d->rack_room_w[r] -= fmin(now->rack_room_w[r], 0);
        d->rack_room_w[r] += CAP_HAIR * p->rack_cap_w[r];
    }
    assignment_destroy(now);
}

static void count_types(struct assignment *d)
{
    d->n_of_type = ARENA_ARRAY(&d->arena, int, (size_t)d->problem->n_types);
    d->most_on_node = ARENA_ARRAY(&d->arena, int, (size_t)d->problem->n_types);
    for (int i = 0; i < d->lists->n_groups; i++) {
        int n = d->lists->groups[i].n, type = d->lists->groups[i].bucket % d->problem->n_types;
        d->n_of_type[type] += n;
        if (n > d->most_on_node[type])
            d->most_on_node[type] = n;
    }
}

struct assignment *assignment_create_with(const struct problem *p,
                                          const struct assignment_tables *tables)
{
    struct assignment *d = heap_array(1, sizeof *d);

    d->problem = p;
    d->tables = tables;
    d->gpus = ARENA_ARRAY(&d->arena, struct assignment_gpu, (size_t)p->n_gpus);
    d->has_fees = problem_has_fees(p);
    d->journal = ARENA_NEW(&d->arena, struct assignment_undo_log);
    jobs_make(d);
    rooms_make(d);
    d->node_room = problem_node_room(&d->arena, p);
    d->has_rules = problem_has_rules(p);
    d->lists = lists_create(&d->arena, p);
    count_types(d);
    for (int g = p->n_gpus; g-- > 0;)
        lists_join(d, g);
    return d;
}

static struct assignment *begin(struct assignment *d)
{
    if (d->has_caps)
        rooms_widen(d);
    lay(d, true);
    return d;
}

struct assignment *assignment_create(const struct problem *p)
{
    struct assignment *d = assignment_create_with(p, NULL);

    d->tables = tables_create(&d->arena, p);
    return begin(d);
}

struct assignment *assignment_like(const struct assignment *d)
{
    return begin(assignment_create_with(d->problem, d->tables));
}

void assignment_lay_present(struct assignment *d)
{
    lay(d, false);
}

void assignment_destroy(struct assignment *d)
{
    if (!d)
        return;
    free(d->journal->gpus);
    free(d->journal->jobs);
    free(d->journal->rooms);
    free(d->journal->job_gpus);
    arena_release(&d->arena);
    free(d);
}
