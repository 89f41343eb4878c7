/* The most throughput of all jobs together, after Gavel (Narayanan et al., OSDI 2020): a linear
 * program says how many GPUs of each type should run what, alone or two together; its optimum is
 * rounded to whole placements.  There, placements are leases of a round of six minutes. Here a job
 * is not moved or stopped before it has had one; newcomers do not wait for the next round but
 * start as soon as there is room. Where the program agrees with what is, or nearly so, nobody
 * moves. Its priorities, what a job was allotted over what it received, become a weight that grows
 * with waiting: a solver keeps no accounts between two decisions.
 */
#include <math.h>

#include "base/arena.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/board.h"
#include "optimize/policy/gavel_inner.h"
#include "optimize/policy/place.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"

/* When its jobs have waited this long in the mean, the throughput of a kind counts twice. */
#define WAITED_S 3600.0

/* Kinds of jobs in the program; jobs of further ones stay where they are, or take what is left. */
#define KINDS_MAX 96

/* ---- kinds ---- */

static bool is_same_kind(const struct gavel_kind *k, const struct snap_job *j)
{
    return k->allowed_types == j->spec->allowed_types && k->is_exclusive == j->spec->is_exclusive &&
           (k->rate > 0) == (job_serves(j->spec) > 0);
}

/* The kind of a job, found or made; -1: there are enough. 'first' and 'next' chain the kinds of a
 * workload, off by one.
 */
static int kind_for(struct gavel *g, const struct snap_job *j, int *first, int *next)
{
    struct gavel_program *p = &g->program;

    for (int k = first[j->workload]; k > 0; k = next[k - 1])
        if (is_same_kind(&p->kinds[k - 1], j))
            return k - 1;
    if (p->n_kinds == KINDS_MAX)
        return -1;
    p->kinds[p->n_kinds] = (struct gavel_kind){ .workload = j->workload,
                                                .allowed_types = j->spec->allowed_types,
                                                .is_exclusive = j->spec->is_exclusive };
    next[p->n_kinds] = first[j->workload];
    first[j->workload] = ++p->n_kinds;
    return p->n_kinds - 1;
}

/* Sums first, means at the end. */
static void find_kinds(struct gavel *g)
{
    const struct snapshot *s = g->snapshot;
    struct gavel_program *p = &g->program;
    int *first = ARENA_ARRAY(g->arena, int, (size_t)g->est->n_workloads);
    int *next = ARENA_ARRAY(g->arena, int, KINDS_MAX);

    p->kinds = ARENA_ARRAY(g->arena, struct gavel_kind, KINDS_MAX);
    g->kind_of = ARENA_ARRAY(g->arena, int, (size_t)s->n_jobs);
    for (int i = 0; i < s->n_jobs; i++) {
        const struct snap_job *j = &s->jobs[i];
        bool is_in = j->is_running ? !g->is_out[j->gpus[0]] : j->spec->n_gpus == 1;
        int k = is_in ? kind_for(g, j, first, next) : -1;
        g->kind_of[i] = k;
        if (k < 0)
            continue;
        p->kinds[k].n_jobs++;
        p->kinds[k].rate += job_serves(j->spec);
        p->kinds[k].weight += j->waited_s / WAITED_S;
    }
    for (int k = 0; k < p->n_kinds; k++) {
        p->kinds[k].rate /= p->kinds[k].n_jobs;
        p->kinds[k].weight = 1 + p->kinds[k].weight / p->kinds[k].n_jobs;
    }
}

/* ---- gangs ---- */

/* The type where the gang is fastest among those with room now ('gpus' not NULL: these), or with
 * GPUs enough at all; -1: none.
 */
static int gang_type(const struct gavel *g, const struct board *b, int job, int *gpus)
{
    const struct snap_job *j = &b->snapshot->jobs[job];
    int n = j->spec->n_gpus, best = -1;
    double most = 0;

    for (int type = 0; type < b->n_types; type++) {
        if (board_seats(b, j->spec, type) < n || g->is_saved[type] ||
            !place_suits(b, job, type, g->options->alone_unfit_max) ||
            (gpus && !place_gang(b, job, type, n, gpus)))
            continue;
        double speed = estimate_gang_speed(b->est, j->workload, type, n,
                                           board_is_far(b, j->spec, type, n), NULL);
        if (speed > most) {
            most = speed;
            best = type;
        }
    }
    if (gpus && best >= 0)
        place_gang(b, job, best, n, gpus);
    return best;
}

void gavel_seat_gangs(const struct gavel *g, struct board *b)
{
    const struct snapshot *s = g->snapshot;

    for (int type = 0; type < b->n_types; type++)
        g->is_saved[type] = false;
    for (int j = s->n_running; j < s->n_jobs; j++) {
        int n = s->jobs[j].spec->n_gpus;
        if (n == 1)
            continue;
        int *gpus = ARENA_ARRAY(g->arena, int, (size_t)n);
        if (gang_type(g, b, j, gpus) >= 0) {
            board_put(b, j, gpus, n);
            continue;
        }
        int type = gang_type(g, b, j, NULL);
        if (type >= 0)
            g->is_saved[type] = true;
    }
}

/* ---- the program ---- */

/* GPUs whose residents the program cannot speak of stay as they are. */
static bool is_beyond(const struct gavel *g, int gpu)
{
    const struct snap_gpu *sg = &g->snapshot->gpus[gpu];

    for (int i = 0; i < sg->n_jobs; i++)
        if (g->snapshot->jobs[sg->jobs[i]].n_held > 1)
            return true;
    return !sg->may_start || sg->n_jobs > 2;
}

/* Residents of a kind too many keep their GPUs to themselves, too. */
static void leave_out_strangers(struct gavel *g)
{
    for (int j = 0; j < g->snapshot->n_running; j++) {
        int gpu = g->snapshot->jobs[j].gpus[0];
        const struct snap_gpu *sg = &g->snapshot->gpus[gpu];
        if (g->kind_of[j] >= 0 || g->is_out[gpu])
            continue;
        g->is_out[gpu] = true;
        for (int i = 0; i < sg->n_jobs; i++)
            if (g->kind_of[sg->jobs[i]] >= 0) {
                g->program.kinds[g->kind_of[sg->jobs[i]]].n_jobs--;
                g->kind_of[sg->jobs[i]] = -1;
            }
    }
}

/* Whole numbers: what is whole already, then the larger parts first. */
static void round_targets(struct gavel *g)
{
    const struct gavel_program *p = &g->program;
    int *gpus = ARENA_ARRAY(g->arena, int, (size_t)p->n_types);
    int *jobs = ARENA_ARRAY(g->arena, int, (size_t)p->n_kinds);

    g->targets = ARENA_ARRAY(g->arena, int, (size_t)p->n_columns);
    for (int type = 0; type < p->n_types; type++)
        gpus[type] = p->n_gpus[type];
    for (int k = 0; k < p->n_kinds; k++)
        jobs[k] = p->kinds[k].n_jobs;
    for (int i = 0; i < p->n_columns; i++) {
        const struct gavel_column *c = &p->columns[i];
        g->targets[i] = (int)floor(c->n + 1e-6);
        gpus[c->type] -= g->targets[i];
        jobs[c->a] -= g->targets[i];
        if (c->b >= 0)
            jobs[c->b] -= g->targets[i];
    }
    for (;;) {
        int best = -1;
        for (int i = 0; i < p->n_columns; i++) {
            const struct gavel_column *c = &p->columns[i];
            double part = c->n - g->targets[i];
            bool is_room =
                gpus[c->type] > 0 && jobs[c->a] > (c->a == c->b) && (c->b < 0 || jobs[c->b] > 0);
            if (is_room && part > 1e-6 &&
                (best < 0 || part > p->columns[best].n - g->targets[best]))
                best = i;
        }
        if (best < 0)
            return;
        const struct gavel_column *c = &p->columns[best];
        g->targets[best]++;
        gpus[c->type]--;
        jobs[c->a]--;
        if (c->b >= 0)
            jobs[c->b]--;
    }
}

static void make_program(struct gavel *g)
{
    const struct snapshot *s = g->snapshot;
    struct gavel_program *p = &g->program;
    struct board b;

    *p = (struct gavel_program){ .arena = g->arena,
                                 .est = g->est,
                                 .options = g->options,
                                 .may_share = g->options->may_share && s->theta > 1,
                                 .n_types = g->est->n_types };
    p->n_gpus = ARENA_ARRAY(g->arena, int, (size_t)p->n_types);
    g->is_saved = ARENA_ARRAY(g->arena, bool, (size_t)p->n_types);
    g->is_out = ARENA_ARRAY(g->arena, bool, (size_t)s->n_gpus);
    for (int i = 0; i < s->n_gpus; i++)
        g->is_out[i] = is_beyond(g, i);
    find_kinds(g);
    leave_out_strangers(g);
    board_init(&b, g->arena, s, g->est);
    gavel_seat_gangs(g, &b);
    for (int i = 0; i < s->n_gpus; i++) {
        bool is_gangs = b.gpus[i].n_jobs > 0 && s->gpus[i].n_jobs == 0;
        bool is_saved = b.gpus[i].n_jobs == 0 && g->is_saved[s->gpus[i].type];
        g->is_out[i] |= is_gangs || is_saved;
        p->n_gpus[s->gpus[i].type] += !g->is_out[i];
    }
    gavel_program_solve(p);
    round_targets(g);
}

/* ---- the plan ---- */

/* Newcomers that a power cap has no watts for leave again, the last first. */
static void obey_cap(struct draft *d, double present_w)
{
    const struct gavel *g = d->gavel;
    double cap_w = g->options->power_cap_w;

    for (int j = g->snapshot->n_jobs - 1; cap_w > 0 && j >= g->snapshot->n_running; j--) {
        if (place_drawn_w(&d->board) <= fmax(cap_w, present_w))
            return;
        if (d->board.jobs[j].n_gpus == 0)
            continue;
        board_take(&d->board, j);
        d->board.jobs[j].reason = WAIT_POWER;
    }
}

/* Newcomers of a kind too many: the fastest of what is left. */
static void seat_strangers(struct draft *d)
{
    const struct gavel *g = d->gavel;
    struct board *b = &d->board;

    for (int j = g->snapshot->n_running; j < g->snapshot->n_jobs; j++) {
        const struct snap_job *sj = &g->snapshot->jobs[j];
        int *mine = ARENA_NEW(g->arena, int);
        double most = 0;
        if (g->kind_of[j] >= 0 || sj->spec->n_gpus > 1)
            continue;
        for (int type = 0; type < b->n_types; type++) {
            double speed = estimate_speed(b->est, sj->workload, type, NULL, 0, NULL);
            if (b->n_free[type] && !g->is_saved[type] && speed > most &&
                place_suits(b, j, type, g->options->alone_unfit_max)) {
                most = speed;
                *mine = board_free(b, type);
            }
        }
        if (most > 0)
            board_put(b, j, mine, 1);
    }
}

/* Who came back to where it was has its power limit again, and so has its company. */
static void keep_limits(struct draft *d)
{
    const struct gavel *g = d->gavel;
    struct board *b = &d->board;

    for (int j = 0; j < g->snapshot->n_running; j++) {
        const struct snap_job *sj = &g->snapshot->jobs[j];
        if (g->kind_of[j] < 0 || b->jobs[j].n_gpus == 0 || b->jobs[j].gpus[0] != sj->gpus[0])
            continue;
        const struct board_gpu *bg = &b->gpus[sj->gpus[0]];
        for (int i = 0; i < bg->n_jobs; i++)
            b->jobs[bg->jobs[i]].limit_w = sj->limit_w;
    }
}

static void give_reasons(struct draft *d)
{
    const struct gavel *g = d->gavel;

    for (int j = 0; j < g->snapshot->n_jobs; j++) {
        struct plan_job *pj = &d->board.jobs[j];
        if (pj->n_gpus > 0 || pj->reason == WAIT_POWER)
            continue;
        pj->reason = j < g->snapshot->n_running
                         ? WAIT_TURN
                         : place_reason(&d->board, j, g->options->alone_unfit_max);
    }
}

/* The draft that does most, moves paid for. Under a power cap nobody moves. */
static struct draft *best_draft(const struct gavel *g)
{
    bool may_move = g->options->may_move && g->options->power_cap_w <= 0;
    struct draft *best = ARENA_NEW(g->arena, struct draft);

    gavel_draft(g, GAVEL_STAY, best);
    for (enum gavel_moves moves = GAVEL_PRICED; may_move && moves <= GAVEL_ALL; moves++) {
        struct draft *d = ARENA_NEW(g->arena, struct draft);
        if (gavel_draft(g, moves, d) && d->value > best->value)
            best = d;
    }
    return best;
}

static int solve(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct plan *out,
                 enum verdict *verdict, struct err *e)
{
    struct gavel g = { .arena = a, .snapshot = s, .est = est, .options = o };
    struct board now;

    (void)e;
    make_program(&g);
    struct draft *best = best_draft(&g);
    seat_strangers(best);
    keep_limits(best);
    if (o->power_cap_w > 0) {
        board_init(&now, a, s, est);
        obey_cap(best, place_drawn_w(&now));
    }
    give_reasons(best);
    place_limits(&best->board, o);
    board_plan(&best->board, self->name, out);
    *verdict = VERDICT_FEASIBLE;
    return 0;
}

const struct solver solver_gavel = { .name = "gavel", .plan = solve };
