#include "refine/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "estimate/p1/p1.h"
#include "nn/gp.h"
#include "nn/weights.h"
#include "refine/p2.h"
#include "store/store.h"
#include "unit/refine/small_catalog.h"
#include "unit/support.h"

static struct catalog c;
static struct arena a;
static struct examples x;
static struct model *m;

/* Trained once, for all: it takes a while. */
static void set_up(void)
{
    struct p1_options o = { .seed = 1, .n_nets = 1 };
    struct err e = { 0 };

    nn_init();
    arena_init(&a);
    catalog_init(&c);
    small_names(&c);
    small_measurements(&c, SMALL_FAMILIES, 1);
    examples_take(&a, &c, EXAMPLES_PAIRS_MAX, 1, &x);
    ck_assert_msg(model_train(&x, NULL, &o, "a test", &m, &e) == 0, "%s", e.text);
}

static void tear_down(void)
{
    model_destroy(m);
    catalog_release(&c);
    arena_release(&a);
}

FIXTURE_ONCE(set_up, tear_down)

static void encode(const struct model *of, struct buf *out)
{
    struct err e = { 0 };

    buf_init(out, WEIGHTS_BYTES_MAX);
    ck_assert_msg(model_encode(of, out, &e) == 0, "%s", e.text);
}

/* The same bytes, so the same model. */
static void assert_same(const struct model *one, const struct model *other)
{
    struct buf b, d;

    encode(one, &b);
    encode(other, &d);
    ck_assert_uint_eq(b.len, d.len);
    ck_assert_mem_eq(b.data, d.data, b.len);
    buf_release(&b);
    buf_release(&d);
}

TEST(it_knows_what_it_learned_from)
{
    ck_assert_str_eq(m->about, "a test");
    ck_assert_int_eq(m->n_workloads, SMALL_FAMILIES * SMALL_BATCHES);
    ck_assert_int_eq(m->n_families, SMALL_FAMILIES);
    ck_assert_int_eq(m->n_alone, SMALL_FAMILIES * SMALL_BATCHES * SMALL_TYPES);
    ck_assert_int_eq(m->n_alone, m->n_watts);
    ck_assert_int_eq(m->n_pairs, x.n_pairs);
    ck_assert_int_gt((int)strlen(m->blas), 0);
    ck_assert(isnan(m->comparison.champion) && !m->comparison.is_won);
}

TEST(what_is_decoded_says_the_same)
{
    struct buf b;
    struct model *again;
    struct err e = { 0 };

    m->comparison = (struct comparison){ 0.3, 0.25, true };
    m->n_measurements = 5000000000;    // more than an int holds
    encode(m, &b);
    ck_assert_msg(model_decode(b.data, b.len, &again, &e) == 0, "%s", e.text);
    assert_same(m, again);
    ck_assert_int_eq(again->n_pairs, m->n_pairs);
    ck_assert_int_eq(again->n_families, m->n_families);
    ck_assert(again->comparison.champion == 0.3 && again->comparison.challenger == 0.25 &&
              again->comparison.is_won);
    ck_assert(again->n_measurements == m->n_measurements);
    ck_assert_double_eq(model_error(again), model_error(m));
    model_destroy(again);
    buf_release(&b);
}

TEST(training_again_gives_the_same_bytes_and_another_seed_others)
{
    struct p1_options o = { .seed = 1, .n_nets = 1 };
    struct model *again;
    struct buf b, d;

    ck_assert_int_eq(model_train(&x, NULL, &o, "a test", &again, NULL), 0);
    assert_same(m, again);
    model_destroy(again);
    o.seed = 2;
    ck_assert_int_eq(model_train(&x, NULL, &o, "a test", &again, NULL), 0);
    encode(m, &b);
    encode(again, &d);
    ck_assert(b.len != d.len || memcmp(b.data, d.data, b.len) != 0);
    buf_release(&b);
    buf_release(&d);
    model_destroy(again);
}

static const struct {
    const char *name;
    bool is_cut;
    size_t at;    // this byte of the file is changed, or the first to be missing
} damages[] = {
    { "nothing at all", true, 0 },
    { "half of it", true, 2000 },
    { "another magic", false, 0 },
    { "one byte of a number", false, 3000 },
};

EACH(damaged_bytes_are_refused, damages)
{
    struct buf b;
    struct model *again = m;
    struct err e = { 0 };

    encode(m, &b);
    b.data[damages[_i].at] ^= 1;
    ck_assert_msg(model_decode(b.data, damages[_i].is_cut ? damages[_i].at : b.len, &again, &e) ==
                      -EINVAL,
                  "%s", damages[_i].name);
    ck_assert_ptr_null(again);
    ck_assert_int_gt((int)strlen(e.text), 0);
    buf_release(&b);
}

TEST(weights_of_something_else_are_refused)
{
    struct weights w;
    struct buf b;
    struct model *again = m;
    struct err e = { 0 };

    weights_init(&w, &a);
    weights_put_text(&w, "about", "a poem");
    buf_init(&b, WEIGHTS_BYTES_MAX);
    ck_assert_int_eq(weights_encode(&w, &b, NULL), 0);
    ck_assert_int_eq(model_decode(b.data, b.len, &again, &e), -EINVAL);
    ck_assert_ptr_null(again);
    ck_assert_ptr_nonnull(strstr(e.text, "train anew"));
    buf_release(&b);
}

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
    assert_same(m, again);
    model_destroy(again);
    store_close(s);
}

TEST(a_file_is_read_as_it_was_written_and_blamed_by_its_path)
{
    char *dir = scratch_make();
    const char *path = arena_printf(&a, "%s/m.weights", dir);
    struct model *again;
    struct err e = { 0 };

    ck_assert_int_eq(model_write(m, path, NULL), 0);
    ck_assert_int_eq(model_read(path, &again, NULL), 0);
    assert_same(m, again);
    model_destroy(again);
    ck_assert_int_eq(model_read("/dev/null", &again, &e), -EINVAL);
    ck_assert_ptr_eq(strstr(e.text, "/dev/null"), e.text);
    scratch_remove(dir);
}

/* What it was trained on must be told better than by chance: the families' hidden factors are
 * 0.2 apart, and noise is 3 %.
 */
TEST(errors_are_those_of_what_was_held_out)
{
    struct p1_score s = p1_score_of(m->p1, P1_ENSEMBLE);

    ck_assert_double_eq_tol(model_error(m), (s.alone[REGIME_KIN] + s.pair[REGIME_KIN]) / 2, 1e-12);
    ck_assert(model_error(m) > 0 && model_error(m) < 0.3);
}

/* Of each family one workload: nobody has kin. */
TEST(where_nobody_has_kin_the_error_is_that_about_strangers)
{
    struct p1_options o = { .seed = 1, .n_nets = 1 };
    bool is_held[SMALL_FAMILIES * SMALL_BATCHES];
    struct holdout v = { .is_held = is_held };
    struct model *lonely;

    for (int w = 0; w < SMALL_FAMILIES * SMALL_BATCHES; w++)
        is_held[w] = w % SMALL_BATCHES > 0;
    ck_assert_int_eq(model_train(&x, &v, &o, "a test", &lonely, NULL), 0);
    struct p1_score s = p1_score_of(lonely->p1, P1_ENSEMBLE);
    ck_assert(isnan(s.alone[REGIME_KIN]));
    ck_assert(model_error(lonely) > 0);
    model_destroy(lonely);
}

/* The old one does not know the last family; the new one is asked as if it knew the others. */
TEST(a_comparison_is_about_those_whom_the_champion_does_not_know)
{
    struct p1_options o = { .seed = 1, .n_nets = 1 };
    bool is_held[SMALL_FAMILIES * SMALL_BATCHES] = { 0 };
    struct holdout v = { .is_held = is_held };
    struct model *old;

    for (int w = 0; w < SMALL_BATCHES; w++)
        is_held[(SMALL_FAMILIES - 1) * SMALL_BATCHES + w] = true;
    ck_assert_int_eq(model_train(&x, &v, &o, "a test", &old, NULL), 0);
    struct comparison d = model_compare(old, m, &x), same = model_compare(m, m, &x),
                      first = model_compare(NULL, m, &x);
    ck_assert(d.champion > d.challenger && d.challenger > 0 && d.is_won);
    ck_assert(isnan(same.champion) && same.is_won);
    ck_assert(isnan(first.champion) && first.is_won);
    ck_assert_double_eq(first.challenger, model_error(m));
    model_destroy(old);
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
