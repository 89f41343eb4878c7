#include "study/whatif/whatif.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/cluster/cluster.h"
#include "sim/sim.h"
#include "sim/world/truth.h"
#include "sim/world/world.h"
#include "study/pool.h"
#include "study/scenario/resample.h"

#define YEAR_S (365 * 86400.0)
#define KWH_J 3.6e6

/* ---- who can run ---- */

/* Does 'types', "v100,a100", have the type? NULL has all. */
static bool allows(const struct truth *t, const char *types, int type)
{
    struct arena scratch;
    struct slice name;
    bool is_there = types == NULL;

    arena_init(&scratch);
    while (!is_there && slice_next(&types, ',', &name))
        is_there = truth_find_type(t, arena_strndup(&scratch, name.at, name.len)) == type;
    arena_release(&scratch);
    return is_there;
}

/* Is there room for the gang on GPUs of the cluster's type? */
static bool has_room(const struct trace_job *j, const struct cluster *cl, int type)
{
    const int n_each = j->n_nodes > 0 ? j->n_gpus / j->n_nodes : 0;
    int n_gpus = 0, n_nodes = 0;

    for (int i = 0; i < cl->n_nodes; i++) {
        int here = 0;

        for (int g = 0; g < cl->nodes[i].n_gpus; g++)
            here += cl->nodes[i].types[g] == type;
        n_gpus += here;
        n_nodes += here >= n_each;
    }
    return j->n_nodes > 0 ? n_nodes >= j->n_nodes : n_gpus >= j->n_gpus;
}

bool whatif_fits(const struct trace_job *j, const struct cluster *cl, const struct truth *t)
{
    const int workload = truth_find_workload(t, j->workload);

    for (int i = 0; i < cl->n_types && workload >= 0; i++) {
        const int type = truth_find_type(t, cl->types[i].name);

        if (type >= 0 && truth_speed(t, workload, type) > 0 && allows(t, j->types, type) &&
            has_room(j, cl, i))
            return true;
    }
    return false;
}

/* Those who cannot run are told of, and left out. */
static int find_cannot(struct arena *a, struct whatif *w, const struct whatif_world *world,
                       struct err *e)
{
    const struct trace *t = world->trace;

    w->n_jobs = t->n_jobs;
    for (int v = 0; v < w->n_variants; v++) {
        struct whatif_variant *is = &w->variants[v];

        is->n_cannot = 0;
        for (int i = t->n_jobs - 1; i >= 0; i--)
            if (!whatif_fits(&t->jobs[i], is->cluster, world->truth)) {
                is->n_cannot++;
                is->cannot = t->jobs[i].name;
            }
        if (is->n_cannot == t->n_jobs)
            return err_set(e, EINVAL, "%s: none of %d jobs could run on any GPU",
                           v == 0     ? "the site as it is"
                           : is->type ? arena_printf(a, "without %s", is->type)
                                      : "the site as it would be",
                           t->n_jobs);
    }
    return 0;
}

double whatif_period_s(const struct trace *t)
{
    const double last_s = t->n_jobs > 0 ? t->jobs[t->n_jobs - 1].at_s : 0;

    return t->n_jobs > 1 ? last_s * t->n_jobs / (t->n_jobs - 1) : last_s;
}

/* ---- one run ---- */

/* What a period costs in which such jobs come. Where nobody is left before its end, GPUs idle, and
 * sleep if there is time for that. What runs on after its end is in the next one's beginning, so
 * what GPUs draw empty meanwhile is counted once.
 */
static double period_j(const struct sim *s, const struct cluster *cl, double energy_j,
                       double period_s)
{
    const double after_s = cl->settings.sleep_after_s, rest_s = period_s - sim_now_s(s);
    int gpu = 0;

    for (int i = 0; i < cl->n_nodes; i++)
        for (int g = 0; g < cl->nodes[i].n_gpus; g++, gpu++) {
            const struct gpu_type *t = &cl->types[cl->nodes[i].types[g]];
            const bool is_asleep = world_gpu_now(sim_world(s), gpu).is_asleep;
            const double idle_s = is_asleep ? 0 : fmin(after_s, fmax(rest_s, 0));
            const double empty_w = after_s < period_s ? t->sleep_w : t->idle_w;

            energy_j += t->idle_w * idle_s + empty_w * (rest_s - idle_s);
        }
    return energy_j;
}

static int simulate(const struct whatif *w, const struct whatif_variant *v,
                    const struct whatif_world *world, uint64_t seed, struct study_result *out,
                    struct err *e)
{
    struct sim *s = NULL;
    struct sim_result r;
    int rc = sim_create(&(struct sim_options){ .cluster = v->cluster,
                                               .trace = world->trace,
                                               .truth = world->truth,
                                               .known = world->known,
                                               .policy = v->policy,
                                               .seed = seed },
                        &s, e);

    if (rc == 0)
        rc = sim_advance(s, INFINITY, e);
    if (rc == 0) {
        sim_result(s, &r);
        *out = (struct study_result){
            .energy_kwh = period_j(s, v->cluster, r.energy_j, w->period_s) / KWH_J,
            .promise_attainment = r.promise_attainment,
            .mean_jct_s = r.mean_jct_s,
            .p95_jct_s = r.p95_jct_s,
            .jobs = r.n_jobs,
            .finished = r.n_finished,
        };
    }
    sim_destroy(s);
    return rc;
}

/* A child of the pool is a fork, and has what its parent had when it was asked: the pool hands on a
 * key, and no more.
 */
static const struct whatif *asked;
static const int *drawn;    // (n_seeds, n_blocks) of 'asked'

static int run_one(struct arena *a, const struct study_run *k, const char *data,
                   struct study_result *out, struct err *e)
{
    const struct whatif_variant *v = &asked->variants[(int)k->load];
    const uint64_t seed = asked->first_seed + (uint64_t)k->seed;
    const int n_blocks = resample_n_blocks(asked->period_s);
    struct whatif_world world = { 0 };
    struct trace jobs;
    int n = 0;

    (void)data;
    int rc = asked->open(asked->self, a, seed, &world, e);
    if (rc < 0)
        return rc;
    resample_jobs(a, world.trace, asked->period_s, drawn + k->seed * n_blocks, n_blocks, &jobs);
    for (int i = 0; i < jobs.n_jobs; i++)
        if (whatif_fits(&jobs.jobs[i], v->cluster, world.truth))
            jobs.jobs[n++] = jobs.jobs[i];
    jobs.n_jobs = n;
    world.trace = &jobs;
    rc = simulate(asked, v, &world, seed, out, e);
    asked->close(asked->self);
    return rc;
}

/* ---- all of them ---- */

static void take_results(struct whatif *w, const struct results *b)
{
    const double years = w->period_s / YEAR_S;

    for (int i = 0; i < b->n_rows; i++) {
        const struct study_result *r = &b->rows[i].result;
        struct whatif_variant *v = &w->variants[i / w->n_seeds];
        double *to = v->of_seed[i % w->n_seeds];

        to[WHATIF_KWH] = r->energy_kwh / years;
        to[WHATIF_PROMISES] = r->promise_attainment;
        to[WHATIF_MEAN_JCT] = r->mean_jct_s;
        to[WHATIF_P95_JCT] = r->p95_jct_s;
        v->n_unfinished += (double)(r->jobs - r->finished);
    }
    for (int v = 0; v < w->n_variants; v++)
        w->variants[v].n_unfinished /= w->n_seeds;
}

static struct study_run *make_keys(struct arena *a, const struct whatif *w)
{
    struct scenario *site = ARENA_NEW(a, struct scenario);
    struct study_run *keys =
        ARENA_ARRAY(a, struct study_run, (size_t)w->n_variants * (size_t)w->n_seeds);

    *site = (struct scenario){ .name = "whatif", .n_jobs = w->n_jobs };
    for (int v = 0; v < w->n_variants; v++)
        for (int i = 0; i < w->n_seeds; i++)
            keys[v * w->n_seeds + i] = (struct study_run){ .scenario = site,
                                                           .load = v,
                                                           .policy = w->variants[v].policy,
                                                           .seed = i,
                                                           .without = "" };
    return keys;
}

static int run_in(struct arena *a, struct whatif *w, const char *dir, struct err *e)
{
    const int n = w->n_variants * w->n_seeds;
    const struct study_run *keys = make_keys(a, w);
    const struct pool_options how = { .run = run_one, .is_quiet = !isatty(STDERR_FILENO) };
    struct results b = { .dir = dir, .version = "whatif", .build = "whatif" };
    struct pool_report report;
    int rc = results_lock(&b, e);

    if (rc < 0)
        return rc;
    rc = pool_run(a, &b, keys, n, &how, &report, e);
    results_unlock(&b);
    if (rc == -EINTR)
        return err_set(e, EINTR, "interrupted");
    if (rc == 0 && b.n_rows < n)
        rc = err_set(e, EINVAL, "%d of %d runs failed, first %s", n - b.n_rows, n,
                     report.first_failure != NULL ? report.first_failure : "one without a word");
    if (rc == 0)
        take_results(w, &b);
    return rc;
}

/* Files of the directory, and it; what the runs' files are in goes first. */
static void remove_directory(struct arena *a, const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *entry;

    while (d != NULL && (entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlink(arena_printf(a, "%s/%s", path, entry->d_name));
    if (d != NULL)
        closedir(d);
    (void)rmdir(path);
}

int whatif_run(struct arena *a, struct whatif *w, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_printf(a, "%s/gogh-whatif-XXXXXX", tmp != NULL ? tmp : "/tmp");
    struct whatif_world world = { 0 };
    int rc = w->open(w->self, a, w->first_seed, &world, e);

    if (rc < 0)
        return rc;
    rc = find_cannot(a, w, &world, e);
    w->close(w->self);
    if (rc < 0)
        return rc;
    for (int v = 0; v < w->n_variants; v++)
        w->variants[v].of_seed = arena_array(a, (size_t)w->n_seeds, sizeof *w->variants[v].of_seed);
    asked = w;
    drawn = resample_draw(a, w->first_seed, w->n_seeds, resample_n_blocks(w->period_s));
    if (mkdtemp(dir) == NULL)
        return err_set(e, errno, "%s: %s", dir, strerror(errno));
    rc = run_in(a, w, dir, e);
    remove_directory(a, arena_printf(a, "%s/runs", dir));
    remove_directory(a, dir);
    return rc;
}

/* ---- what came of it ---- */

static struct spread within(struct spread s, enum whatif_figure f)
{
    return spread_within(s, 0, f == WHATIF_PROMISES ? 1 : (double)INFINITY);
}

struct spread whatif_spread(const struct whatif *w, const struct whatif_variant *v,
                            enum whatif_figure f)
{
    struct arena scratch;

    arena_init(&scratch);
    double *of = ARENA_ARRAY(&scratch, double, (size_t)w->n_seeds);
    for (int i = 0; i < w->n_seeds; i++)
        of[i] = v->of_seed[i][f];
    struct spread s = within(spread_of(of, w->n_seeds), f);
    arena_release(&scratch);
    return s;
}

struct spread whatif_difference(const struct whatif *w, const struct whatif_variant *v,
                                enum whatif_figure f)
{
    struct arena scratch;

    arena_init(&scratch);
    double *of = ARENA_ARRAY(&scratch, double, (size_t)w->n_seeds);
    for (int i = 0; i < w->n_seeds; i++)
        of[i] = v->of_seed[i][f] - w->variants[0].of_seed[i][f];
    struct spread s = spread_of(of, w->n_seeds);
    arena_release(&scratch);
    return s;
}

double whatif_cost_kwh(const struct whatif *w, const struct whatif_variant *v)
{
    const double jobs_year = w->n_jobs * YEAR_S / w->period_s;

    return whatif_difference(w, v, WHATIF_KWH).mean +
           whatif_difference(w, v, WHATIF_MEAN_JCT).mean * jobs_year * w->delay_w / KWH_J;
}

/* 0: nobody minds; else who does. */
static int harm(const struct whatif *w, const struct whatif_variant *v)
{
    const struct whatif_variant *site = &w->variants[0];
    const double more = whatif_difference(w, v, WHATIF_PROMISES).mean;

    if (v->n_cannot > site->n_cannot || v->n_unfinished > site->n_unfinished)
        return 2;
    return more < -WHATIF_PROMISES_LOST ? 1 : 0;
}

static bool is_before(const struct whatif *w, const struct whatif_variant *a,
                      const struct whatif_variant *b)
{
    const int one = harm(w, a), other = harm(w, b);
    const double cost = whatif_cost_kwh(w, a), other_cost = whatif_cost_kwh(w, b);

    return one != other ? one < other : cost < other_cost || (isnan(other_cost) && !isnan(cost));
}

void whatif_sort(struct whatif *w)
{
    /* A dozen types: one after the other finds its place. */
    for (int i = 2; i < w->n_variants; i++)
        for (int k = i; k > 1 && is_before(w, &w->variants[k], &w->variants[k - 1]); k--) {
            const struct whatif_variant first = w->variants[k];

            w->variants[k] = w->variants[k - 1];
            w->variants[k - 1] = first;
        }
}
