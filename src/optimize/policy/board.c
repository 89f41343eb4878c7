#include "optimize/policy/board.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/limits.h"

/* Jobs that may share this GPU. */
static int board_theta(const struct board *b, int gpu)
{
    const struct snapshot *s = b->snapshot;

    return gpu_type_theta(&s->catalog->types[s->gpus[gpu].type], s->theta);
}

/* ---- lists ---- */

/* Nobody there insists on being alone or holds several GPUs. */
static bool may_join(const struct board *b, const struct board_gpu *g)
{
    for (int i = 0; i < g->n_jobs; i++)
        if (b->snapshot->jobs[g->jobs[i]].spec->is_exclusive || b->jobs[g->jobs[i]].n_gpus > 1)
            return false;
    return true;
}

static int list_of(const struct board *b, int gpu)
{
    const struct board_gpu *g = &b->gpus[gpu];
    const struct snap_gpu *s = &b->snapshot->gpus[gpu];

    if (!b->lists || !s->may_start || g->n_jobs >= board_theta(b, gpu))
        return -1;
    if (g->n_jobs == 0)
        return s->type;
    if (!may_join(b, g))
        return -1;
    int newest = b->snapshot->jobs[g->jobs[g->n_jobs - 1]].workload;
    return b->n_types + s->type * b->n_workloads + newest;
}

static void list_leave(struct board *b, int gpu)
{
    struct board_gpu *g = &b->gpus[gpu];

    if (g->list < 0)
        return;
    if (g->list < b->n_types) {
        b->n_free[g->list]--;
        if (g->next < 0)
            b->tails[g->list] = g->prev;
    }
    if (g->prev < 0)
        b->lists[g->list] = g->next;
    else
        b->gpus[g->prev].next = g->next;
    if (g->next >= 0)
        b->gpus[g->next].prev = g->prev;
    g->list = -1;
}

/* At the end of its list of free ones. */
static void list_append(struct board *b, int gpu)
{
    struct board_gpu *g = &b->gpus[gpu];

    g->next = -1;
    g->prev = b->tails[g->list];
    if (g->prev >= 0)
        b->gpus[g->prev].next = gpu;
    else
        b->lists[g->list] = gpu;
    b->tails[g->list] = gpu;
}

static void list_join(struct board *b, int gpu)
{
    struct board_gpu *g = &b->gpus[gpu];

    g->list = list_of(b, gpu);
    if (g->list < 0)
        return;
    if (g->list < b->n_types) {
        b->n_free[g->list]++;
        if (b->snapshot->gpus[gpu].wake_s > 0) {
            list_append(b, gpu);
            return;
        }
        if (b->lists[g->list] < 0)
            b->tails[g->list] = gpu;
    }
    g->prev = -1;
    g->next = b->lists[g->list];
    if (g->next >= 0)
        b->gpus[g->next].prev = gpu;
    b->lists[g->list] = gpu;
}

int board_free(const struct board *b, int type)
{
    return b->lists[type];
}

int board_half(const struct board *b, int type, int workload)
{
    return b->lists[b->n_types + type * b->n_workloads + workload];
}

/* ---- making ---- */

static void start_empty(struct board *b, struct arena *a, const struct snapshot *s,
                        const struct estimator *est)
{
    *b = (struct board){ .arena = a,
                         .snapshot = s,
                         .est = est,
                         .n_types = est->n_types,
                         .n_workloads = est->n_workloads };
    b->gpus = ARENA_ARRAY(a, struct board_gpu, (size_t)s->n_gpus);
    b->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)s->n_jobs);
}

static void seat(struct board *b, int job, const int *gpus, int n)
{
    for (int i = 0; i < n; i++) {
        struct board_gpu *g = &b->gpus[gpus[i]];
        assert(g->n_jobs < THETA_MAX);
        g->jobs[g->n_jobs++] = job;
    }
    b->jobs[job].gpus = gpus;
    b->jobs[job].n_gpus = n;
}

/* How many GPUs of each type there are, whoever is on them. */
static void count_types(struct board *b)
{
    const struct snapshot *s = b->snapshot;
    int *here = ARENA_ARRAY(b->arena, int, (size_t)b->n_types);

    b->n_all = ARENA_ARRAY(b->arena, int, (size_t)b->n_types);
    b->n_node = ARENA_ARRAY(b->arena, int, (size_t)b->n_types);
    for (int g = 0; g < s->n_gpus; g++) {
        int type = s->gpus[g].type;
        if (g > 0 && s->gpus[g].node != s->gpus[g - 1].node)    // a node's GPUs stand together
            memset(here, 0, (size_t)b->n_types * sizeof *here);
        b->n_all[type]++;
        if (++here[type] > b->n_node[type])
            b->n_node[type] = here[type];
    }
}

void board_init(struct board *b, struct arena *a, const struct snapshot *s,
                const struct estimator *est)
{
    start_empty(b, a, s, est);
    count_types(b);
    for (int j = 0; j < s->n_running; j++) {
        seat(b, j, s->jobs[j].gpus, s->jobs[j].n_held);
        b->jobs[j].limit_w = s->jobs[j].limit_w;
    }
    int n_lists = b->n_types * (1 + b->n_workloads);
    b->n_free = ARENA_ARRAY(a, int, (size_t)b->n_types);
    b->no_node = ARENA_ARRAY(a, int, (size_t)b->n_types);
    for (int type = 0; type < b->n_types; type++)
        b->no_node[type] = INT_MAX;
    b->tails = ARENA_ARRAY(a, int, (size_t)b->n_types);
    for (int type = 0; type < b->n_types; type++)
        b->tails[type] = -1;
    b->lists = ARENA_ARRAY(a, int, (size_t)n_lists);
    for (int i = 0; i < n_lists; i++)
        b->lists[i] = -1;
    for (int g = s->n_gpus - 1; g >= 0; g--)    // backwards: the lowest index ends up first
        if (!(s->gpus[g].wake_s > 0))
            list_join(b, g);
    for (int g = 0; g < s->n_gpus; g++)
        if (s->gpus[g].wake_s > 0)
            list_join(b, g);
}

void board_lay(struct board *b, struct arena *a, const struct snapshot *s,
               const struct estimator *est, const struct plan *p)
{
    start_empty(b, a, s, est);
    for (int j = 0; j < p->n_jobs; j++) {
        seat(b, j, p->jobs[j].gpus, p->jobs[j].n_gpus);
        b->jobs[j].limit_w = p->jobs[j].limit_w;
    }
}

void board_put(struct board *b, int job, const int *gpus, int n)
{
    const struct board_gpu *first = &b->gpus[gpus[0]];
    int limit_w = first->n_jobs ? b->jobs[first->jobs[0]].limit_w : 0;

    for (int i = 0; i < n; i++)
        list_leave(b, gpus[i]);
    seat(b, job, gpus, n);
    b->jobs[job].reason = WAIT_NOT;
    b->jobs[job].limit_w = limit_w;
    for (int i = 0; i < n; i++)
        list_join(b, gpus[i]);
}

void board_take(struct board *b, int job)
{
    struct plan_job *pj = &b->jobs[job];

    for (int i = 0; i < pj->n_gpus; i++) {
        struct board_gpu *g = &b->gpus[pj->gpus[i]];
        int k = 0;
        list_leave(b, pj->gpus[i]);
        b->no_node[b->snapshot->gpus[pj->gpus[i]].type] = INT_MAX;
        while (g->jobs[k] != job)
            k++;
        for (g->n_jobs--; k < g->n_jobs; k++)
            g->jobs[k] = g->jobs[k + 1];
        list_join(b, pj->gpus[i]);
    }
    pj->n_gpus = 0;
    pj->gpus = NULL;
}

/* ---- questions ---- */

static int workload_of(const struct board *b, int job)
{
    return b->snapshot->jobs[job].workload;
}

/* Who is on a GPU, 'extra' added and 'except' left out (-1: nobody): their workloads and, where
 * wanted, the rates asked of those that serve.
 */
static int combination(const struct board *b, int gpu, int extra, int except, int *workloads,
                       double *rates)
{
    const struct board_gpu *g = &b->gpus[gpu];
    int n = 0;

    for (int i = 0; i < g->n_jobs + (extra >= 0); i++) {
        int job = i < g->n_jobs ? g->jobs[i] : extra;
        if (job == except)
            continue;
        if (rates)
            rates[n] = job_serves(b->snapshot->jobs[job].spec);
        workloads[n++] = workload_of(b, job);
    }
    return n;
}

int board_seats(const struct board *b, const struct job_spec *spec, int type)
{
    const struct snapshot *s = b->snapshot;
    int n = 0, here = 0;

    if (spec->n_nodes < 2)
        return spec->n_nodes == 1 ? b->n_node[type] : b->n_all[type];
    for (int g = 0; g < s->n_gpus; g++) {
        if (g > 0 && s->gpus[g].node != s->gpus[g - 1].node)
            here = 0;
        here += s->gpus[g].type == type;
        if (s->gpus[g].type == type && here == spec->n_gpus / spec->n_nodes)
            n += here;
    }
    return n;
}

bool board_is_spread(const struct board *b, const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (b->snapshot->gpus[gpus[i]].node != b->snapshot->gpus[gpus[0]].node)
            return true;
    return false;
}

struct limited board_limited(const struct board *b, int gpu, int extra)
{
    const struct board_gpu *g = &b->gpus[gpu];
    int workloads[THETA_MAX + 1], limit_w = g->n_jobs ? b->jobs[g->jobs[0]].limit_w : 0;
    double rates[THETA_MAX + 1];
    int n = combination(b, gpu, extra, -1, workloads, rates);

    return estimate_limited(b->est, b->snapshot->gpus[gpu].type, workloads, rates, n, limit_w);
}

/* A gang goes at the pace of its most disturbed member. */
static double gang_speed(const struct board *b, int job, double *low)
{
    const struct plan_job *pj = &b->jobs[job];
    int type = b->snapshot->gpus[pj->gpus[0]].type, w = workload_of(b, job);
    double alone = estimate_speed(b->est, w, type, NULL, 0, NULL);
    double worst = 1, speed;

    for (int i = 0; i < pj->n_gpus; i++) {
        int others[THETA_MAX + 1];
        int n = combination(b, pj->gpus[i], -1, job, others, NULL);
        double share = n ? estimate_speed(b->est, w, type, others, n, NULL) / alone : 1;
        worst = share < worst ? share : worst;
    }
    struct limited pace = board_limited(b, pj->gpus[0], -1);
    speed = estimate_gang_speed(b->est, w, type, pj->n_gpus,
                                board_is_spread(b, pj->gpus, pj->n_gpus), low);
    if (low)
        *low *= worst * pace.low;
    return speed * worst * pace.speed;
}

double board_speed_with(const struct board *b, int job, int extra, double *low)
{
    const struct plan_job *pj = &b->jobs[job];
    int others[THETA_MAX + 1];

    if (pj->n_gpus > 1)
        return gang_speed(b, job, low);
    int n = combination(b, pj->gpus[0], extra, job, others, NULL);
    struct limited pace = board_limited(b, pj->gpus[0], extra);
    double speed = estimate_speed(b->est, workload_of(b, job), b->snapshot->gpus[pj->gpus[0]].type,
                                  others, n, low);
    if (low)
        *low *= pace.low;
    return speed * pace.speed;
}

double board_speed(const struct board *b, int job, double *low)
{
    return board_speed_with(b, job, -1, low);
}

double board_watts_with(const struct board *b, int gpu, int extra)
{
    return board_limited(b, gpu, extra).watts;
}

double board_watts(const struct board *b, int gpu)
{
    return board_watts_with(b, gpu, -1);
}

double board_drawn_w(const struct board *b, int gpu)
{
    double idle_w = b->snapshot->catalog->types[b->snapshot->gpus[gpu].type].idle_w;

    return b->gpus[gpu].n_jobs ? board_watts(b, gpu) : idle_w > 0 ? idle_w : 0;
}

bool board_fits(const struct board *b, int gpu, int extra, double unfit_max)
{
    int workloads[THETA_MAX + 1];
    int n = combination(b, gpu, extra, -1, workloads, NULL);

    return (n == 1 || n <= board_theta(b, gpu)) &&
           estimate_unfit(b->est, b->snapshot->gpus[gpu].type, workloads, n) <= unfit_max;
}

void board_plan(const struct board *b, const char *made_by, struct plan *out)
{
    *out = (struct plan){ .made_by = made_by, .n_jobs = b->snapshot->n_jobs, .jobs = b->jobs };
}
