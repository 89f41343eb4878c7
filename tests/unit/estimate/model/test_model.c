/* Training, what the new one is compared by, and bytes. */
#include "estimate/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text/buf.h"
#include "nn/gp.h"
#include "nn/weights.h"
#include "store/store.h"
#include "unit/refine/small_catalog.h"
#include "unit/support.h"

enum { WORKLOADS = SMALL_FAMILIES * SMALL_BATCHES };

static struct catalog c;
static struct examples x;
static struct model *m;

static struct model *train(const struct examples *of, const struct model *champion, uint64_t seed)
{
    struct model *out;
    struct err e = { 0 };

    ck_assert_msg(model_train(of, champion, seed, "a test", &out, &e) == 0, "%s", e.text);
    return out;
}

/* Trained once, for all: it takes a while. */
static void set_up(void)
{
    nn_init();
    catalog_init(&c);
    small_names(&c);
    small_measurements(&c, SMALL_FAMILIES, 1);
    examples_take(&c, &x);
    m = train(&x, NULL, 1);
}

static void tear_down(void)
{
    model_destroy(m);
    examples_release(&x);
    catalog_release(&c);
}

FIXTURE_ONCE(set_up, tear_down)

static void encode(const struct model *of, struct buf *out)
{
    struct err e = { 0 };

    buf_init(out, WEIGHTS_BYTES_MAX);
    ck_assert_msg(model_encode(of, out, &e) == 0, "%s", e.text);
}

/* The same bytes, so the same model. */
static bool is_same(const struct model *one, const struct model *other)
{
    struct buf b, d;

    encode(one, &b);
    encode(other, &d);
    bool is_equal = b.len == d.len && memcmp(b.data, d.data, b.len) == 0;
    buf_release(&b);
    buf_release(&d);
    return is_equal;
}

static struct model *copy_of(const struct model *of)
{
    struct buf b;
    struct model *out;
    struct err e = { 0 };

    encode(of, &b);
    ck_assert_msg(model_decode(b.data, b.len, &out, &e) == 0, "%s", e.text);
    buf_release(&b);
    return out;
}

/* ---- what it is ---- */

TEST(it_knows_what_it_learned_from)
{
    ck_assert_str_eq(m->about, "a test");
    ck_assert_int_eq(m->n_workloads, WORKLOADS);
    ck_assert_int_eq(m->n_families, SMALL_FAMILIES);
    ck_assert_int_eq(m->n_alone, WORKLOADS * SMALL_TYPES);
    ck_assert_int_eq(m->n_watts, m->n_alone);
    ck_assert_int_eq(m->n_alone + m->n_pairs, c.n_cells);
    ck_assert_int_eq(m->n_campaigns, 1);
    ck_assert_int_eq(m->n_measurements, c.n_measurements);
    ck_assert_int_gt((int)strlen(m->blas), 0);
    ck_assert(isnan(m->comparison.champion) && isnan(m->comparison.challenger));
    ck_assert(m->comparison.is_won);
}

/* About families that it had not seen: their hidden factors are 0.2 apart, what their slowdowns
 * have in common is known from the others, and noise is 3 %.
 */
TEST(its_error_is_that_about_families_it_had_not_seen)
{
    ck_assert_msg(model_error(m) > 0.03 && model_error(m) < 0.3, "%g", model_error(m));
}

TEST(every_number_of_it_is_one)
{
    for (int what = 0; what < LEARNED; what++) {
        for (int i = 0; i < HYPERS; i++)
            ck_assert(isfinite(m->hyper[what].at[i]) && isfinite(m->around[what].at[i]));
        ck_assert(m->scale[what].alone >= 1 && m->scale[what].beside >= 1);
        ck_assert(isfinite(m->scale[what].error));
        ck_assert(memcmp(&m->hyper[what], &m->around[what], sizeof m->hyper[what]) != 0);
    }
}

/* ---- contests ---- */

static const struct contest contests[] = {
    { "zeus", 10, { 0.4, 0.3 }, { NAN, NAN } },
    { CONTEST_ALL, 0, { 0.5, 0.6 }, { 0.2, 0.1 } },
};
enum { N_CONTESTS = sizeof contests / sizeof *contests };

static void assert_contests(const struct model *of)
{
    ck_assert_int_eq(of->n_contests, N_CONTESTS);
    for (int i = 0; i < N_CONTESTS; i++) {
        ck_assert_str_eq(of->contests[i].campaign, contests[i].campaign);
        ck_assert_int_eq(of->contests[i].n_cells, contests[i].n_cells);
        for (int who = 0; who < CONTESTANTS; who++) {
            double slowdown = contests[i].slowdown[who];
            ck_assert_double_eq(of->contests[i].alone[who], contests[i].alone[who]);
            ck_assert(of->contests[i].slowdown[who] == slowdown ||
                      (isnan(of->contests[i].slowdown[who]) && isnan(slowdown)));
        }
    }
}

TEST(who_foresaw_campaigns_better_is_kept_and_handed_on)
{
    struct model *champion = copy_of(m);

    ck_assert_int_eq(champion->n_contests, 0);
    champion->contests = contests;
    champion->n_contests = N_CONTESTS;
    struct model *copy = copy_of(champion), *next = train(&x, champion, 2);
    assert_contests(copy);
    assert_contests(next);
    ck_assert(is_same(copy, champion));
    model_destroy(next);
    model_destroy(copy);
    model_destroy(champion);
}

static const struct {
    const char *names;
    int rows, cols;
} damaged[] = {
    { "zeus\n", 2, 5 },    // a row that has no name
    { "zeus", 1, 5 },      // a name that does not end
    { "zeus\n", 1, 4 },
};

EACH(contests_about_nobody_are_refused, damaged)
{
    const double rows[10] = { -1 };
    struct arena a;
    struct weights w, of_model;
    struct buf b;
    struct err e = { 0 };
    struct model *out;

    arena_init(&a);
    encode(m, &b);
    ck_assert_int_eq(weights_decode(&a, b.data, b.len, &of_model, &e), 0);
    w = of_model;
    weights_put_text(&w, "contests", damaged[_i].names);
    weights_put_doubles(&w, "contests.errors", damaged[_i].rows, damaged[_i].cols, rows);
    ck_assert_int_eq(weights_encode(&w, &b, &e), 0);
    ck_assert_int_eq(model_decode(b.data, b.len, &out, &e), -EINVAL);
    ck_assert_ptr_null(out);
    buf_release(&b);
    arena_release(&a);
}

/* ---- the same again ---- */

/* As the site's, and all pairs: more than one step of a fit looks at. */
static void measure_campaign(struct catalog *of, const char *name, uint64_t seed)
{
    struct rng rng;
    int campaign;

    rng_init(&rng, seed, "campaign");
    ck_assert_int_eq(catalog_add_campaign(of, name, SHARING_UNKNOWN, &campaign, NULL), 0);
    for (int i = 0; i < SMALL_TYPES * WORKLOADS; i++) {
        int w = i / SMALL_TYPES, type = i % SMALL_TYPES;
        for (int by = -1; by < WORKLOADS; by++)
            small_measure_in(of, &rng, campaign, w, type, by);
    }
}

/* Of a site with so many campaigns besides its own. */
static void examples_with(int n_campaigns, struct examples *out)
{
    static const char *const names[] = { "one", "two", "three" };

    for (int i = 0; i < n_campaigns; i++)
        measure_campaign(&c, names[i], (uint64_t)i);
    examples_take(&c, out);
}

TEST(training_again_gives_the_same_bytes_and_another_seed_others)
{
    struct examples many;

    struct model *again = train(&x, NULL, 1);
    ck_assert(is_same(m, again));
    model_destroy(again);
    examples_with(MODEL_CAMPAIGNS_MIN, &many);
    struct model *first = train(&many, NULL, 1), *second = train(&many, NULL, 2);
    again = train(&many, NULL, 1);
    ck_assert(is_same(first, again) && !is_same(first, second));
    model_destroy(first);
    model_destroy(second);
    model_destroy(again);
    examples_release(&many);
}

static const struct {
    const char *name;
    int n_campaigns;
    bool is_fitted;
} arounds[] = {
    { "a site alone says nothing of others", 0, false },
    { "two campaigns are no measure of how campaigns differ", MODEL_CAMPAIGNS_MIN - 1, false },
    { "three are", MODEL_CAMPAIGNS_MIN, true },
};

EACH(what_campaigns_have_in_common_is_fitted_or_the_champions, arounds)
{
    struct examples of;
    struct model *champion = copy_of(m);

    champion->around[LEARN_SPEEDS].at[ALONE_TYPE] -= 0.25;
    champion->around[LEARN_WATTS].at[ALONE_FAMILY] += 0.5;
    examples_with(arounds[_i].n_campaigns, &of);
    struct model *got = train(&of, champion, 1);
    ck_assert_int_eq(got->n_campaigns, 1 + arounds[_i].n_campaigns);
    for (int what = 0; what < LEARNED; what++)
        ck_assert_msg((memcmp(&got->around[what], &champion->around[what],
                              sizeof got->around[what]) != 0) == arounds[_i].is_fitted,
                      "%s", arounds[_i].name);
    model_destroy(got);
    model_destroy(champion);
    examples_release(&of);
}

/* Where nothing was measured, nothing is learned. */
TEST(without_measurements_it_is_the_champion)
{
    struct catalog empty;
    struct examples none;

    catalog_init(&empty);
    small_names(&empty);
    examples_take(&empty, &none);
    struct model *got = train(&none, m, 1);
    for (int what = 0; what < LEARNED; what++)
        ck_assert_mem_eq(&got->hyper[what], &m->around[what], sizeof got->hyper[what]);
    ck_assert(got->n_alone == 0 && got->n_families == 0 && isnan(model_error(got)));
    ck_assert(isnan(got->comparison.champion) && got->comparison.is_won);
    model_destroy(got);
    examples_release(&none);
    catalog_release(&empty);
}

/* ---- the comparison ---- */

/* Hyper-parameters by which cells have nothing in common. */
static void spoil(struct hyper *h)
{
    for (int i = 0; i < VARIANCES; i++)
        h->at[i] = -10;
}

TEST(a_champion_that_lets_cells_have_nothing_in_common_loses)
{
    struct model *champion = copy_of(m);

    spoil(&champion->hyper[LEARN_SPEEDS]);
    struct model *got = train(&x, champion, 2);
    ck_assert_msg(got->comparison.is_won &&
                      got->comparison.challenger < got->comparison.champion - 0.02,
                  "%g against %g", got->comparison.challenger, got->comparison.champion);
    model_destroy(got);
    model_destroy(champion);
}

TEST(a_challenger_that_was_taught_the_same_does_about_as_well)
{
    struct model *got = train(&x, m, 2);
    struct comparison is = got->comparison;

    ck_assert_msg(fabs(is.challenger - is.champion) < 0.02, "%g against %g", is.challenger,
                  is.champion);
    ck_assert(is.champion > 0.03 && is.is_won == (is.challenger <= is.champion));
    model_destroy(got);
}

/* Its own readings move a challenger only so far from where it began. */
TEST(a_challenger_that_was_taught_nonsense_loses)
{
    struct model *champion = copy_of(m);

    spoil(&champion->around[LEARN_SPEEDS]);
    struct model *got = train(&x, champion, 2);
    ck_assert_msg(!got->comparison.is_won, "%g against %g", got->comparison.challenger,
                  got->comparison.champion);
    model_destroy(got);
    model_destroy(champion);
}

/* Families that were measured may all stand at even places. */
TEST(a_half_without_measured_families_does_not_count)
{
    struct catalog few;
    struct examples of;
    struct rng rng;

    rng_init(&rng, 1, "few");
    catalog_init(&few);
    small_names(&few);
    for (int i = 0; i < WORKLOADS * SMALL_TYPES; i++) {
        int w = i / SMALL_TYPES;
        if (w / SMALL_BATCHES % 2 == 0)
            for (int by = -1; by < SMALL_BATCHES; by++)
                small_measure(&few, &rng, w, i % SMALL_TYPES, by);
    }
    examples_take(&few, &of);
    struct model *champion = copy_of(m);
    spoil(&champion->around[LEARN_SPEEDS]);
    struct model *got = train(&of, champion, 1);
    ck_assert_msg(got->comparison.champion > 0 && got->comparison.challenger > 0, "%g against %g",
                  got->comparison.challenger, got->comparison.champion);
    model_destroy(got);
    model_destroy(champion);
    examples_release(&of);
    catalog_release(&few);
}

/* ---- bytes ---- */

TEST(what_is_decoded_says_the_same)
{
    m->comparison = (struct comparison){ 0.3, 0.25, true };
    m->n_measurements = 5000000000;    // more than an int holds
    struct model *again = copy_of(m);
    ck_assert(is_same(m, again));
    for (int what = 0; what < LEARNED; what++) {
        ck_assert_mem_eq(&again->hyper[what], &m->hyper[what], sizeof m->hyper[what]);
        ck_assert_mem_eq(&again->around[what], &m->around[what], sizeof m->around[what]);
        ck_assert_mem_eq(&again->scale[what], &m->scale[what], sizeof m->scale[what]);
    }
    ck_assert_str_eq(again->about, m->about);
    ck_assert_str_eq(again->blas, m->blas);
    ck_assert_int_eq(again->n_campaigns, m->n_campaigns);
    ck_assert_int_eq(again->n_alone, m->n_alone);
    ck_assert_int_eq(again->n_pairs, m->n_pairs);
    ck_assert_int_eq(again->n_watts, m->n_watts);
    ck_assert_int_eq(again->n_workloads, m->n_workloads);
    ck_assert_int_eq(again->n_families, m->n_families);
    ck_assert(again->comparison.champion == 0.3 && again->comparison.challenger == 0.25 &&
              again->comparison.is_won);
    ck_assert(again->n_measurements == m->n_measurements);
    ck_assert_double_eq(model_error(again), model_error(m));
    model_destroy(again);
}

TEST(what_is_not_known_is_not_known_after_decoding)
{
    struct model *untaught = model_untaught(), *again = copy_of(untaught);

    ck_assert(is_same(untaught, again));
    ck_assert(isnan(model_error(again)) && isnan(again->scale[LEARN_WATTS].error));
    ck_assert(isnan(again->comparison.champion) && isnan(again->comparison.challenger));
    ck_assert(!again->comparison.is_won && again->n_measurements == 0);
    model_destroy(untaught);
    model_destroy(again);
}

static const struct {
    const char *name;
    bool is_cut;
    size_t at;    // this byte of the file is changed, or the first to be missing
} damages[] = {
    { "nothing at all", true, 0 },
    { "half of it", true, 1500 },
    { "another magic", false, 0 },
    { "one byte of a number", false, 2000 },
};

EACH(damaged_bytes_are_refused, damages)
{
    struct buf b;
    struct model *again = m;
    struct err e = { 0 };

    encode(m, &b);
    ck_assert_uint_gt(b.len, 2500);
    b.data[damages[_i].at] ^= 1;
    ck_assert_msg(model_decode(b.data, damages[_i].is_cut ? damages[_i].at : b.len, &again, &e) ==
                      -EINVAL,
                  "%s", damages[_i].name);
    ck_assert_ptr_null(again);
    ck_assert_int_gt((int)strlen(e.text), 0);
    buf_release(&b);
}

/* Whole, and yet no covariance could take it. */
static const struct {
    const char *name;
    double hyper, scale;
    int n_alone;
} absurd[] = {
    { "a variance of e^41", 41, 1, 0 },
    { "one of e^-41", -41, 1, 0 },
    { "intervals that were made narrower", 0, 0.5, 0 },
    { "a thousand times wider, and more", 0, 1001, 0 },
    { "fewer readings than none", 0, 1, -1 },
};

EACH(numbers_that_make_no_sense_are_refused, absurd)
{
    struct buf b;
    struct model *again = m;
    struct err e = { 0 };

    m->around[LEARN_WATTS].at[BESIDE_CELL] = absurd[_i].hyper;
    m->scale[LEARN_SPEEDS].beside = absurd[_i].scale;
    m->n_alone = absurd[_i].n_alone;
    encode(m, &b);
    ck_assert_msg(model_decode(b.data, b.len, &again, &e) == -EINVAL, "%s", absurd[_i].name);
    ck_assert_ptr_null(again);
    ck_assert_int_gt((int)strlen(e.text), 0);
    buf_release(&b);
}

TEST(weights_of_something_else_are_refused)
{
    struct arena a;
    struct weights w;
    struct buf b;
    struct model *again = m;
    struct err e = { 0 };

    arena_init(&a);
    weights_init(&w, &a);
    weights_put_text(&w, "about", "a poem");
    buf_init(&b, WEIGHTS_BYTES_MAX);
    ck_assert_int_eq(weights_encode(&w, &b, NULL), 0);
    ck_assert_int_eq(model_decode(b.data, b.len, &again, &e), -EINVAL);
    ck_assert_ptr_null(again);
    ck_assert_ptr_nonnull(strstr(e.text, "train anew"));
    buf_release(&b);
    arena_release(&a);
}

/* ---- where it is kept ---- */

TEST(a_store_keeps_champion_and_challenger_apart)
{
    struct store *s;
    struct model *again;
    double time_s;

    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &s, NULL), 0);
    ck_assert_int_eq(model_fetch(s, MODEL_CHAMPION, &again, NULL), -ENOENT);
    ck_assert_ptr_null(again);
    ck_assert_int_eq(model_keep(m, s, MODEL_CHAMPION, 5, NULL), 0);
    ck_assert_int_eq(model_fetch(s, MODEL_CHALLENGER, &again, NULL), -ENOENT);
    ck_assert_int_eq(model_fetch(s, MODEL_CHAMPION, &again, NULL), 0);
    ck_assert_int_eq(store_model_time(s, MODEL_CHAMPION, &time_s, NULL), 0);
    ck_assert_double_eq(time_s, 5);
    ck_assert(is_same(m, again));
    model_destroy(again);
    store_close(s);
}

TEST(a_file_is_read_as_it_was_written_and_blamed_by_its_path)
{
    char *dir = scratch_make(), path[256];
    struct model *again;
    struct err e = { 0 };

    snprintf(path, sizeof path, "%s/m.weights", dir);
    ck_assert_int_eq(model_write(m, path, NULL), 0);
    ck_assert_int_eq(model_read(path, &again, NULL), 0);
    ck_assert(is_same(m, again));
    model_destroy(again);
    ck_assert_int_eq(model_read("/dev/null", &again, &e), -EINVAL);
    ck_assert_ptr_eq(strstr(e.text, "/dev/null"), e.text);
    scratch_remove(dir);
}

TEST(none_is_none_and_a_store_that_is_not_there_has_none)
{
    struct model *got = m;
    struct err e = { 0 };

    ck_assert_int_eq(model_open("none", NULL, &got, &e), 0);
    ck_assert_ptr_null(got);
    ck_assert_int_eq(model_open("site", NULL, &got, &e), -ENOENT);
    ck_assert_ptr_null(got);
}

TEST(the_pretrained_one_is_whole)
{
    struct model *shipped;
    struct err e = { 0 };
    int rc = model_pretrained(&shipped, &e);

    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_int_gt(shipped->n_families, 5);
    ck_assert_str_eq(shipped->blas, "Haswell");
    model_destroy(shipped);
}
