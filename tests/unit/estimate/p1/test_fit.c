/* The chance that jobs do not fit: memory first, then what was seen. */
#include <errno.h>
#include <stdlib.h>

#include "estimate/p1/fit.h"
#include "nn/weights.h"
#include "unit/estimate/p1/lab.h"
#include "unit/estimate/p1/spoil.h"

/* Two families whose descriptors ask for the same: half of the device each. */
static const char text[] = "type v100 memory=16\n"
                           "workload a1 family=A params=4e8 bytes_per_sample=1e6 batch=1\n"
                           "workload a2 family=A params=4.2e8 bytes_per_sample=1e6 batch=1\n"
                           "workload b1 family=B params=4e8 bytes_per_sample=1e6 batch=1\n"
                           "workload b2 family=B params=4.2e8 bytes_per_sample=1e6 batch=1\n"
                           "workload new family=B params=4e8 bytes_per_sample=1e6 batch=2\n"
                           "workload stranger family=C params=4e8 bytes_per_sample=1e6 batch=1\n";

static const bool none_held[16] = { false };
static const struct holdout everything = { none_held, NULL };

struct lab {
    struct world w;
    struct examples x;
    struct fit before, after;
};

/* Of A all pairs have run, of B none. */
static void lab_init(struct lab *l)
{
    static const char *const a[] = { "a1", "a2" };
    char line[64];

    world_init(&l->w, text);
    examples_take(&l->w.arena, &l->w.catalog, 100, 1, &l->x);
    fit_learn(&l->w.arena, &l->x, &everything, &l->before);
    for (int i = 0; i < 4; i++) {
        lab_record(&l->w, world_workload(&l->w, a[i / 2]), 0, world_workload(&l->w, a[i % 2]), 1,
                   NAN);
        snprintf(line, sizeof line, "unfit b%d v100 beside=b%d\n", i / 2 + 1, i % 2 + 1);
        world_add(&l->w, line);
    }
    examples_take(&l->w.arena, &l->w.catalog, 100, 1, &l->x);
    ck_assert_int_ge(l->x.n_fits, 8);
    fit_learn(&l->w.arena, &l->x, &everything, &l->after);
}

static double share(const struct lab *l, const struct fit *f, int workload)
{
    return fit_share(f, &l->x.who[workload], examples_at(&l->x, workload, 0));
}

static double shares_of(const struct lab *l, const struct fit *f, const struct fit_example *at)
{
    return share(l, f, at->workload) + (at->neighbour < 0 ? 0 : share(l, f, at->neighbour));
}

/* ---- nothing seen ---- */

TEST(before_anything_was_seen_memory_decides)
{
    struct lab l;
    double last = -1;

    lab_init(&l);
    for (double s = 0; s < 8; s += 0.05) {
        double chance = fit_unfit(&l.before, s);
        ck_assert_msg(chance >= 0 && chance <= 1 && chance > last, "%g: %g", s, chance);
        last = chance;
    }
    ck_assert_double_lt(fit_unfit(&l.before, 0.3), 0.05);
    ck_assert_double_gt(fit_unfit(&l.before, 3), 0.95);
    for (int w = 0; w < l.x.n_workloads; w++) {
        const struct features *on = examples_at(&l.x, w, 0);
        double overhead = l.before.overhead * exp(-(double)on->figure[2]);    // of 16 GB
        ck_assert_double_eq_tol(share(&l, &l.before, w), (double)on->mem_share + overhead, 1e-6);
    }
    world_release(&l.w);
}

/* ---- what was seen ---- */

TEST(a_family_whose_pairs_never_fit_takes_more)
{
    struct lab l;

    lab_init(&l);
    int a1 = world_workload(&l.w, "a1"), b1 = world_workload(&l.w, "b1");
    int newcomer = world_workload(&l.w, "new"), stranger = world_workload(&l.w, "stranger");
    ck_assert_double_gt(share(&l, &l.after, b1), 1.2 * share(&l, &l.after, a1));
    ck_assert_double_gt(share(&l, &l.after, newcomer), 1.2 * share(&l, &l.after, stranger));
    ck_assert_double_gt(fit_unfit(&l.after, 2 * share(&l, &l.after, b1)), 0.5);
    ck_assert_double_lt(fit_unfit(&l.after, 2 * share(&l, &l.after, a1)), 0.5);
    world_release(&l.w);
}

/* Less likely what was seen, and less likely beforehand: what fit_learn makes the least of. The
 * sds are those of fit.c; what was learned from nothing is what was believed.
 */
static double objective(const struct lab *l, const struct fit *f)
{
    double sum = 0, family[8] = { 0 };

    for (int i = 0; i < l->x.n_fits; i++) {
        double p = fit_unfit(f, shares_of(l, f, &l->x.fits[i]));
        sum -= log(l->x.fits[i].is_unfit ? p : 1 - p);
    }
    sum += pow(log(f->steepness / l->before.steepness) / 0.5, 2) / 2 +
           pow(f->doubtful / 0.5, 2) / 2 + pow(log(f->overhead / l->before.overhead) / 0.5, 2) / 2;
    for (int w = 0; w < f->n; w++) {
        family[l->x.family[w]] = f->factors[w].of_family;
        sum += pow(f->factors[w].of_workload / 0.2, 2) / 2;
    }
    for (int i = 0; i < l->x.n_families; i++)
        sum += family[i] * family[i] / 2;
    return sum;
}

static void nudge(const struct lab *l, struct fit *f, int what, double by)
{
    if (what == 0)
        f->steepness *= exp(by);
    else if (what == 1)
        f->doubtful += by;
    else if (what == 2)
        f->overhead *= exp(by);
    else if (what < 3 + l->x.n_families) {
        for (int w = 0; w < f->n; w++)
            f->factors[w].of_family += l->x.family[w] == what - 3 ? by : 0;
    } else
        f->factors[what - 3 - l->x.n_families].of_workload += by;
}

TEST(what_is_learned_is_the_most_likely)
{
    struct lab l;
    const double h = 1e-4;

    lab_init(&l);
    ck_assert_int_eq(l.after.n, l.x.n_workloads);
    ck_assert_double_lt(objective(&l, &l.after), objective(&l, &l.before) - 1);
    for (int what = 0; what < 3 + l.x.n_families + l.x.n_workloads; what++) {
        nudge(&l, &l.after, what, h);
        double up = objective(&l, &l.after);
        nudge(&l, &l.after, what, -2 * h);
        double slope = (up - objective(&l, &l.after)) / (2 * h);
        nudge(&l, &l.after, what, h);
        ck_assert_msg(fabs(slope) < 0.03, "number %d still slopes by %g", what, slope);
    }
    world_release(&l.w);
}

TEST(what_is_held_out_is_not_learned_from)
{
    struct lab l;
    struct fit f;
    bool held[16] = { false };
    struct holdout v = { held, NULL };

    lab_init(&l);
    int b1 = world_workload(&l.w, "b1");
    held[b1] = held[world_workload(&l.w, "b2")] = true;
    fit_learn(&l.w.arena, &l.x, &v, &f);
    for (int i = 0; i < l.x.n_fits; i++)
        if (!holdout_shows(&v, l.x.fits[i].workload, 0, l.x.fits[i].neighbour))
            l.x.fits[i].is_unfit = false;
    fit_learn(&l.w.arena, &l.x, &v, &l.after);
    ck_assert_double_eq(share(&l, &f, b1), share(&l, &l.after, b1));
    ck_assert_double_eq(f.steepness, l.after.steepness);
    world_release(&l.w);
}

/* ---- files ---- */

TEST(what_is_saved_answers_the_same)
{
    struct lab l;
    struct fit back;
    struct weights bag;
    struct err e = { 0 };

    lab_init(&l);
    weights_init(&bag, &l.w.arena);
    ck_assert_int_lt(fit_load(&l.w.arena, &bag, &back, &e), 0);
    fit_save(&l.after, &bag);
    ck_assert_int_eq(fit_load(&l.w.arena, &bag, &back, &e), 0);
    for (int w = 0; w < l.x.n_workloads; w++)
        ck_assert_double_eq(share(&l, &l.after, w), share(&l, &back, w));
    ck_assert_double_eq(fit_unfit(&l.after, 0.9), fit_unfit(&back, 0.9));
    world_release(&l.w);
}

static const struct spoiled_row spoiled[] = {
    { "a curve that falls", "fit.curve", 0, -1 },
    { "a curve that is flat", "fit.curve", 0, 0 },
    { "a curve beyond all memories", "fit.curve", 1, 1e9 },
    { "an overhead below nothing", "fit.curve", 2, -0.1 },
    { "an overhead beyond all memories", "fit.curve", 2, 1e4 },
    { "a factor beyond all memories", "fit.factors", 0, 1e3 },
};

EACH(a_spoiled_fit_is_refused, spoiled)
{
    struct lab l;
    struct fit back;
    struct weights bag;
    struct err e = { 0 };

    lab_init(&l);
    weights_init(&bag, &l.w.arena);
    fit_save(&l.after, &bag);
    spoil(&l.w.arena, &bag, &spoiled[_i]);
    ck_assert_msg(fit_load(&l.w.arena, &bag, &back, &e) == -EINVAL, "%s", spoiled[_i].name);
    world_release(&l.w);
}
