/* What was taken in as it came is what is believed of all of it at once. */
#include <math.h>

#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/beliefs.h"
#include "estimate/prior/roofline.h"
#include "nn/gp.h"
#include "unit/suite.h"

enum { TYPES_MOST = 5, WORKLOADS_MOST = 40 };

static struct catalog c;
static struct bends bends;
static struct beliefs beliefs;
static struct rng chance;

static void set_up(void)
{
    nn_init();
    catalog_init(&c);
    beliefs_init(&beliefs, &c);
    beliefs_use(&beliefs, NULL, ESTIMATOR_HIERARCHICAL);
}

static void tear_down(void)
{
    beliefs_release(&beliefs);
    catalog_release(&c);
    bends_release(&bends);
}

FIXTURE(set_up, tear_down)

static void add_type(void)
{
    static const char *const names[TYPES_MOST] = { "v100", "k80", "a100", "p100", "t4" };
    int index;

    if (c.n_types < TYPES_MOST)
        ck_assert_int_eq(catalog_add_type(&c, gpu_type_builtin(names[c.n_types]), &index, NULL), 0);
}

static void add_workload(void)
{
    static const char *const families[] = { "one", "two", "three", NULL };
    struct workload w;
    char name[16];
    int index;

    snprintf(name, sizeof name, "w%d", c.n_workloads);
    workload_init(&w, name);
    w.family = families[rng_below(&chance, 4)];
    w.batch = 16;
    w.flop_per_sample = exp(rng_between(&chance, log(1e9), log(1e11)));
    w.bytes_per_sample = 1e7;
    if (rng_below(&chance, 2))
        w.params = 1e7;
    ck_assert_int_eq(catalog_add_workload(&c, &w, &index, NULL), 0);
}

/* Somebody writes down what was not known of a workload, or something else. */
static void describe(int w)
{
    struct workload more = c.workloads[w];
    int index;

    more.params = rng_between(&chance, 1e6, 1e8);
    more.gpu_activity = rng_uniform(&chance);
    ck_assert_int_eq(catalog_set_workload(&c, &more, &index, NULL), 0);
}

static void begin(uint64_t seed, int n_types, int n_workloads)
{
    rng_init(&chance, seed, "beliefs");
    while (c.n_types < n_types)
        add_type();
    while (c.n_workloads < n_workloads)
        add_workload();
}

/* ln steps/s as they are, whatever anybody writes down, with effects that no feature tells of. */
static double truth(int type, int w, int neighbour)
{
    static double step_s[WORKLOADS_MOST][TYPES_MOST];
    struct roofline on;

    if (step_s[w][type] == 0) {
        roofline(&c.workloads[w], &c.types[type], &on);
        step_s[w][type] = on.step_s;
    }
    double alone = 0.3 * sin(w) + 0.2 * sin(3 * w + type) - log(step_s[w][type]);
    return neighbour < 0 ? alone : alone - 0.4 - 0.3 * sin(neighbour) * sin(w + 1);
}

static void record(int type, int w, int neighbour, double ln_speed, double ln_watts, double noise)
{
    struct measurement m = {
        .key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 },
        .fits = true,
        .throughput = exp(ln_speed),
        .watts = exp(ln_watts),
        .noise = noise,
    };

    ck_assert_int_eq(catalog_record(&c, &m, 0, NULL), 0);
}

static int any(int n)
{
    return (int)rng_below(&chance, (uint64_t)n);
}

/* ---- against one that is made anew ---- */

struct gap {
    double mean, sd;    // largest of all cells: of the mean in its sds, and of ln sd
};

static void widen(struct gap *g, struct cell_belief is, struct cell_belief want)
{
    ck_assert_msg(isfinite(is.mean) && is.sd > 0 && isfinite(is.sd), "%g +- %g", is.mean, is.sd);
    g->mean = fmax(g->mean, fabs(is.mean - want.mean) / fmax(is.sd, want.sd));
    g->sd = fmax(g->sd, fabs(log(is.sd / want.sd)));
}

/* How far it is from what a new one believes of the same catalog. */
static struct gap gap_to_new(void)
{
    struct beliefs fresh;
    struct gap g = { 0, 0 };

    beliefs_init(&fresh, &c);
    beliefs_use(&fresh, NULL, beliefs.kind);
    beliefs_refresh(&fresh, &bends);
    for (int i = 0; i < c.n_types * c.n_workloads; i++) {
        int type = i % c.n_types, w = i / c.n_types;
        widen(&g, beliefs_watts(&beliefs, type, w), beliefs_watts(&fresh, type, w));
        for (int n = -1; n < c.n_workloads; n++)
            widen(&g, beliefs_speed(&beliefs, type, w, n), beliefs_speed(&fresh, type, w, n));
    }
    beliefs_release(&fresh);
    return g;
}

/* A catalog that grows, and how it is measured. */
struct life {
    double noise;      // as stated
    double scatter;    // as it is
    double step;       // every third workload becomes so much faster, in ln, halfway
    bool has_watts;    // measured each time, and not once
};

static void random_measurement(const struct life *l, bool is_late)
{
    int type = any(c.n_types), w = any(c.n_workloads), n = any(3) ? any(c.n_workloads) : -1;
    struct cell_key key = { .workload = w, .gpu_type = type, .neighbour = -1, .n_gpus = 1 };
    double off = l->scatter * rng_normal(&chance);
    bool is_dark = n >= 0 || (!l->has_watts && catalog_cell(&c, key));
    double ln_watts = is_dark ? (double)NAN : 5 + 0.2 * sin(w + type) + off;

    record(type, w, n, truth(type, w, n) + off + (is_late && w % 3 == 0 ? l->step : 0), ln_watts,
           l->noise);
}

static void random_change(const struct life *l, bool is_late)
{
    int what = any(60);

    if (what < 2 && c.n_workloads < 20)
        add_workload();
    else if (what == 2 && any(4) == 0)
        add_type();
    else if (what == 3)
        describe(any(c.n_workloads));
    else
        random_measurement(l, is_late);
}

static void live(const struct life *l, uint64_t seed, struct gap within)
{
    begin(seed, 2, 5);
    for (int i = 0; i < 90; i++) {
        for (int k = any(10); k > 0; k--)
            random_change(l, i >= 45);
        beliefs_refresh(&beliefs, &bends);
        if (i % 6 != 5)
            continue;
        struct gap g = gap_to_new();
        ck_assert_msg(g.mean <= within.mean && g.sd <= within.sd,
                      "after %d: %d cells of %d workloads on %d types: %g sds, ln sd by %g", i,
                      c.n_cells, c.n_workloads, c.n_types, g.mean, g.sd);
    }
}

/* No reading is believed better than READING_NOISE, so these are all as sure as they ever will be:
 * what is left is rounding, and means that moved too little to be taken in.
 */
TIMES(what_was_taken_in_is_what_is_believed_of_all_at_once, 6)
{
    live(&(struct life){ .noise = 1e-4, .scatter = 1e-3 }, (uint64_t)_i,
         (struct gap){ 0.02, 0.02 });
}

/* Measurements repeat and contradict each other. A reading is taken for at most twice as sure as it
 * is, and of a few for less sure: by then it is a mean of many, at most 0.054 / 0.02 times. So no
 * sd is off by more than that, and a mean, which lies between what is read and what is expected, by
 * about as much as either is believed to be.
 */
TIMES(old_certainty_of_readings_does_no_harm, 6)
{
    const struct life unsteady[] = { { NAN, 0.05, 0, true }, { NAN, 0.05, log(1.5), true } };

    live(&unsteady[_i % 2], 10 + (uint64_t)_i, (struct gap){ 1.5, log(2.7) });
}

TEST(a_pair_that_was_measured_before_its_job_alone_is_read_anew)
{
    begin(1, 2, 3);
    record(0, 0, 1, log(4), NAN, 0.01);
    beliefs_refresh(&beliefs, &bends);
    record(0, 0, -1, log(10), NAN, 0.01);
    beliefs_refresh(&beliefs, &bends);
    ck_assert_double_eq_tol(beliefs_speed(&beliefs, 0, 0, 1).mean, log(4), 0.05);
    ck_assert_double_eq_tol(beliefs_speed(&beliefs, 0, 0, -1).mean, log(10), 0.05);
    struct gap g = gap_to_new();
    ck_assert_msg(g.mean < 1e-4 && g.sd < 1e-4, "%g %g", g.mean, g.sd);
}

TEST(measurements_that_contradict_each_other_give_no_confident_mean)
{
    begin(1, 2, 3);
    record(0, 0, -1, log(3), NAN, NAN);
    beliefs_refresh(&beliefs, &bends);
    double sure = beliefs_speed(&beliefs, 0, 0, -1).sd;
    record(0, 0, -1, log(3000), NAN, NAN);
    beliefs_refresh(&beliefs, &bends);
    ck_assert_double_gt(beliefs_speed(&beliefs, 0, 0, -1).sd, 5 * sure);
}

TEST(a_vague_measurement_does_not_stand_in_the_way_of_a_sure_one)
{
    begin(1, 2, 3);
    record(0, 0, -1, truth(0, 0, -1) + 1.5, NAN, 1);
    beliefs_refresh(&beliefs, &bends);
    record(0, 0, -1, truth(0, 0, -1) + 1.5, NAN, 0.02);
    beliefs_refresh(&beliefs, &bends);
    ck_assert_double_eq_tol(beliefs_speed(&beliefs, 0, 0, -1).mean, truth(0, 0, -1) + 1.5, 0.05);
}

/* As many as are taken in anew for it. */
TEST(readings_that_became_surer_are_believed_to_be)
{
    enum { WORKLOADS = 20 };

    begin(6, 2, WORKLOADS);
    for (int i = 0; i < 20 * 2 * WORKLOADS; i++) {
        int type = i % 2, w = i / 2 % WORKLOADS;
        record(type, w, -1, truth(type, w, -1), 5, NAN);
        if (i % (2 * WORKLOADS) == 2 * WORKLOADS - 1)
            beliefs_refresh(&beliefs, &bends);
    }
    struct gap g = gap_to_new();
    ck_assert_msg(g.sd < log(2) + 0.01, "ln sd by %g", g.sd);
}

/* Several cells of a type change for good: what was measured there before is less sure. */
TEST(after_a_drift_of_a_type_others_there_are_less_sure)
{
    begin(2, 2, 5);
    for (int type = 0; type < 2; type++)
        record(type, 4, -1, truth(type, 4, -1), NAN, 0.1);
    for (int i = 0; i < 48; i++) {
        for (int w = 0; w < 3; w++)
            record(0, w, -1, truth(0, w, -1) + (i < 30 ? 0 : 0.4), NAN, 0.03);
        beliefs_refresh(&beliefs, &bends);
    }
    ck_assert_uint_gt(c.n_drifts, 0);
    ck_assert_double_gt(beliefs_speed(&beliefs, 0, 4, -1).sd,
                        1.2 * beliefs_speed(&beliefs, 1, 4, -1).sd);
    ck_assert_double_eq_tol(beliefs_speed(&beliefs, 0, 0, -1).mean, truth(0, 0, -1) + 0.4, 0.05);
}

static struct cell_belief slowdown(void)
{
    struct cell_belief alone = beliefs_speed(&beliefs, 0, 0, -1), pair;

    pair = beliefs_speed(&beliefs, 0, 0, 1);
    return (struct cell_belief){ pair.mean - alone.mean, pair.sd };
}

/* Before anything was measured, as the law of each says; and from the next refresh on. */
TEST(slowdowns_are_believed_as_types_are_shared)
{
    begin(5, 2, 3);
    beliefs_use(&beliefs, NULL, ESTIMATOR_HIERARCHICAL);
    for (int w = 0; w < 2; w++) {
        struct workload more = c.workloads[w];
        int index;
        more.gpu_activity = w ? 0.5 : 0.8;
        ck_assert_int_eq(catalog_set_workload(&c, &more, &index, NULL), 0);
    }
    beliefs_refresh(&beliefs, &bends);
    struct cell_belief unknown = slowdown(), is[SHARINGS];
    for (enum sharing s = SHARING_EXCLUSIVE; s < SHARINGS; s++) {
        struct gpu_type t = c.types[0];
        int index;
        t.sharing = s;
        ck_assert_int_eq(catalog_add_type(&c, &t, &index, NULL), 0);
        beliefs_refresh(&beliefs, &bends);
        is[s] = slowdown();
    }
    ck_assert(is[SHARING_MPS].mean == unknown.mean && is[SHARING_MPS].sd == unknown.sd);
    ck_assert_double_eq_tol(is[SHARING_TIMESLICE].mean, -log(1 + 0.8 * 0.5), 1e-6);
    ck_assert_double_eq_tol(is[SHARING_MIG].mean, 0, 1e-6);
    ck_assert_double_lt(is[SHARING_MIG].sd, is[SHARING_TIMESLICE].sd);
    record(0, 2, 1, truth(0, 2, -1), 5, 0.01);    // in slices, says nothing of the other type
    record(0, 2, -1, truth(0, 2, -1), 5, 0.01);
    double before = beliefs_speed(&beliefs, 1, 0, 1).mean - beliefs_speed(&beliefs, 1, 0, -1).mean;
    beliefs_refresh(&beliefs, &bends);
    double after = beliefs_speed(&beliefs, 1, 0, 1).mean - beliefs_speed(&beliefs, 1, 0, -1).mean;
    ck_assert_double_eq_tol(before, after, 1e-6);
}

TEST(nothing_new_is_no_news)
{
    begin(3, 2, 3);
    ck_assert(beliefs_refresh(&beliefs, &bends));
    ck_assert(!beliefs_refresh(&beliefs, &bends));
    record(0, 0, -1, 1, 5, NAN);
    ck_assert(beliefs_refresh(&beliefs, &bends));
    ck_assert(!beliefs_meet(&beliefs, &bends));    // a newcomer changes nobody else's answers
    add_workload();
    ck_assert(!beliefs_meet(&beliefs, &bends));
    describe(0);
    ck_assert(beliefs_meet(&beliefs, &bends));
    ck_assert(beliefs_refresh(&beliefs, &bends));
}

/* ---- too many, and absurd ---- */

/* Every cell is believed 'within' so much of its measurement, and the mean of them all. */
static void assert_near(double within, double mean_within)
{
    double sum = 0;

    for (int i = 0; i < c.n_cells; i++) {
        const struct cell *cell = &c.cells[i];
        const struct cell_key *k = &cell->key;
        double is = beliefs_speed(&beliefs, k->gpu_type, k->workload, k->neighbour).mean;
        ck_assert(beliefs_has_read(&beliefs, k->gpu_type, k->workload, k->neighbour));
        ck_assert_msg(fabs(is - cell->ln_speed) < within, "cell %d of %d: %g, measured %g", i,
                      c.n_cells, is, cell->ln_speed);
        sum += fabs(is - cell->ln_speed);
    }
    ck_assert_msg(sum < mean_within * c.n_cells, "%g", sum / c.n_cells);
}

/* Every cell of 33 on two types: at first as many as there is room for, then all. Those without
 * room are believed by their own. (What two workloads do to each other and to nobody else is not
 * expected, so one such measurement is believed in part.)
 */
TEST(more_readings_than_there_is_room_for_are_all_believed)
{
    enum { WORKLOADS = 33, FIRST = 1200, MANY = 2 * WORKLOADS * (1 + WORKLOADS) };

    begin(4, 2, WORKLOADS);
    for (int i = 0; i < MANY; i++) {
        int type = i % 2, w = i / 2 % WORKLOADS, n = i / 2 / WORKLOADS - 1;
        record(type, w, n, truth(type, w, n) + 0.02 * rng_normal(&chance), NAN, 0.02);
        if (i == 900 || i == FIRST)    // some with room to spare, which then is filled
            beliefs_refresh(&beliefs, &bends);
    }
    ck_assert_int_gt(c.n_cells, POSTERIOR_MOST);
    beliefs_refresh(&beliefs, &bends);
    ck_assert_int_le(posterior_n(beliefs.posterior[LEARN_SPEEDS]), POSTERIOR_MOST);
    assert_near(0.25, 0.04);
}

static const double extremes[] = { 1e-6, 1e9 };

/* Two in a row, so that some contradict each other beyond measure. */
TIMES(numbers_absurdly_apart_give_finite_answers, 8)
{
    begin((uint64_t)_i, 3, 6);
    beliefs_use(&beliefs, NULL, (enum estimator_kind)(_i % ESTIMATOR_MEAN));
    for (int i = 0; i < 60; i++) {
        int w = any(6), type = any(3), n = any(2) ? any(6) : -1;
        double noise = any(2) ? 1e-9 : 10;
        record(type, w, n, log(extremes[any(2)]), n < 0 ? log(extremes[any(2)]) : (double)NAN,
               noise);
        if (i % 2)
            beliefs_refresh(&beliefs, &bends);
    }
    gap_to_new();    // which asserts that all are finite
}

static const enum estimator_kind kinds[] = { ESTIMATOR_GOGH, ESTIMATOR_HIERARCHICAL,
                                             ESTIMATOR_NETWORK, ESTIMATOR_MEAN,
                                             ESTIMATOR_ROOFLINE };

EACH(whoever_is_believed_a_measured_cell_is_as_it_was_measured, kinds)
{
    begin(5, 3, 6);
    beliefs_use(&beliefs, NULL, kinds[_i]);
    for (int i = 0; i < 3 * 6 * 7; i++) {
        int type = i % 3, w = i / 3 % 6, n = i / 18 - 1;
        record(type, w, n, truth(type, w, n), 5, 0.01);
    }
    beliefs_refresh(&beliefs, &bends);
    assert_near(0.25, 0.08);
}

/* Recorded when limits were believed to take what the law says; since then twice that was seen. */
EACH(what_was_measured_under_a_limit_counts_as_bends_have_it_now, kinds)
{
    const double ln_pace = -0.4, seen = log(5);
    struct measurement m = {
        .key = { .neighbour = -1, .n_gpus = 1 },
        .fits = true,
        .throughput = exp(seen - ln_pace),
        .watts = NAN,
        .noise = 0.02,
        .ln_pace = ln_pace,
        .ln_undone = -ln_pace,
    };

    begin(7, 2, 3);
    beliefs_use(&beliefs, NULL, kinds[_i]);
    ck_assert_int_eq(catalog_record(&c, &m, 0, NULL), 0);
    beliefs_refresh(&beliefs, &bends);
    ck_assert_double_eq_tol(beliefs_speed(&beliefs, 0, 0, -1).mean, seen - ln_pace, 0.1);
    struct measurement more = m;
    for (int i = 0; i < 400; i++) {
        more.ln_pace = i % 2 ? 0 : ln_pace;
        more.seen = (struct limit_reading){ .ln_speed = 1 + 2 * more.ln_pace, .noise = 0.02 };
        more.throughput = NAN;
        more.watts = 100;
        ck_assert_int_eq(catalog_record(&c, &more, 0, NULL), 0);
    }
    bends_meet(&bends, &c);
    ck_assert_int_eq(catalog_record(&c, &m, 0, NULL), 0);
    beliefs_refresh(&beliefs, &bends);
    ck_assert_double_eq_tol(beliefs_speed(&beliefs, 0, 0, -1).mean, seen - 2 * ln_pace, 0.1);
}

/* More than it reads at once, of workloads that come one after the other, with questions between. */
TEST(the_network_answers_by_what_was_there_at_the_last_refresh_alone)
{
    struct beliefs fresh;
    int n_asked = 0;

    begin(11, 3, 4);
    beliefs_use(&beliefs, NULL, ESTIMATOR_NETWORK);
    for (int i = 0; i < 400; i++) {
        int type = any(3), w = any(c.n_workloads), n = any(3) ? any(c.n_workloads) : -1;
        record(type, w, n, truth(type, w, n), n < 0 ? 5 : (double)NAN, 0.03);
        if (i % 50 == 7) {
            add_workload();
            beliefs_meet(&beliefs, &bends);
            beliefs_speed(&beliefs, type, c.n_workloads - 1, w);
            beliefs_refresh(&beliefs, &bends);
        }
    }
    beliefs_refresh(&beliefs, &bends);
    beliefs_init(&fresh, &c);
    beliefs_use(&fresh, NULL, ESTIMATOR_NETWORK);
    beliefs_refresh(&fresh, &bends);
    record(1, 2, -1, 9, 5, 0.01);    // since then
    for (int i = 0; i < c.n_types * c.n_workloads; i++)
        for (int n = -1; n < c.n_workloads; n++, n_asked++) {
            struct cell_belief a = beliefs_speed(&beliefs, i % c.n_types, i / c.n_types, n);
            struct cell_belief b = beliefs_speed(&fresh, i % c.n_types, i / c.n_types, n);
            ck_assert(isfinite(a.mean) && a.sd > 0 && a.mean == b.mean && a.sd == b.sd);
        }
    ck_assert_int_gt(n_asked, 400);
    beliefs_release(&fresh);
}

TEST(what_the_network_says_of_speeds_is_its_own_and_watts_are_the_models)
{
    struct beliefs other;

    begin(12, 3, 6);
    beliefs_use(&beliefs, NULL, ESTIMATOR_NETWORK);
    for (int w = 0; w < 5; w++)
        record(0, w, -1, truth(0, w, -1), 5, 0.03);
    beliefs_refresh(&beliefs, &bends);
    beliefs_init(&other, &c);
    beliefs_refresh(&other, &bends);
    ck_assert(beliefs_watts(&beliefs, 1, 5).mean == beliefs_watts(&other, 1, 5).mean);
    ck_assert(fabs(beliefs_speed(&beliefs, 1, 5, -1).mean - beliefs_speed(&other, 1, 5, -1).mean) >
              1e-3);
    beliefs_release(&other);
}

/* As beliefs, of another kind. */
static double believed_by(enum estimator_kind kind, int type, int workload, int neighbour)
{
    struct beliefs other;

    beliefs_init(&other, &c);
    beliefs_use(&other, NULL, kind);
    beliefs_refresh(&other, &bends);
    double mean = beliefs_speed(&other, type, workload, neighbour).mean;
    beliefs_release(&other);
    return mean;
}

/* Alone, and where the very cell was measured, the model speaks. */
TEST(the_network_has_a_say_in_slowdowns_that_nobody_measured)
{
    begin(13, 3, 6);
    beliefs_use(&beliefs, NULL, ESTIMATOR_GOGH);
    for (int w = 0; w < 5; w++) {
        record(0, w, -1, truth(0, w, -1), 5, 0.03);
        record(0, w, (w + 1) % 5, truth(0, w, (w + 1) % 5), NAN, 0.03);
    }
    beliefs_refresh(&beliefs, &bends);
    ck_assert_int_eq(beliefs.n_beside, 5);
    ck_assert(beliefs_speed(&beliefs, 1, 5, -1).mean ==
              believed_by(ESTIMATOR_HIERARCHICAL, 1, 5, -1));
    ck_assert(beliefs_speed(&beliefs, 0, 2, 3).mean ==
              believed_by(ESTIMATOR_HIERARCHICAL, 0, 2, 3));
    ck_assert(fabs(beliefs_speed(&beliefs, 1, 5, 2).mean -
                   believed_by(ESTIMATOR_HIERARCHICAL, 1, 5, 2)) > 1e-3);
}

TEST(estimators_have_names)
{
    enum estimator_kind kind;

    for (int i = 0; i < ESTIMATORS; i++) {
        ck_assert_int_eq(estimator_by_name(estimator_names[i], &kind, NULL), 0);
        ck_assert_int_eq(kind, i);
    }
    ck_assert_int_eq(estimator_by_name(NULL, &kind, NULL), 0);
    ck_assert_int_eq(kind, ESTIMATOR_GOGH);
    ck_assert_int_lt(estimator_by_name("oracle", &kind, NULL), 0);
}
