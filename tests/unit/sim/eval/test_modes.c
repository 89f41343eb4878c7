/* Being told how a site shares: better before anything was read, no worse after, and as sure as it
 * is right. On sites that nobody looked at when laws and constants were chosen.
 */
#include <math.h>

#include "base/err.h"
#include "estimate/model/model.h"
#include "nn/gp.h"
#include "sim/eval/modes.h"
#include "unit/suite.h"

static struct model *model;
static struct err e;

static void set_up(void)
{
    nn_init();
    ck_assert_msg(model_pretrained(&model, &e) == 0, "%s", e.text);
}

static void tear_down(void)
{
    model_destroy(model);
}

FIXTURE(set_up, tear_down)

static struct modes_result eval(enum sharing is, enum sharing told, int n_known, int n_sites)
{
    const struct modes_options o = { is, told, n_known, n_sites, 2026 };
    struct modes_result out;
    const int what = LEARN_SPEEDS;

    ck_assert_msg(modes_eval(&model->hyper[what], model->scale[what], &o, &out, &e) == 0, "%s",
                  e.text);
    return out;
}

/* Errors over those of who was not told, at most; what intervals of 90 % cover. */
static const struct {
    const char *name;
    enum sharing mode;
    int n_known;
    double worse_most, coverage_least;
} wanted[] = {
    { "turns, before anything was read", SHARING_TIMESLICE, 0, 0.92, 0.85 },
    { "turns, with a few pairs known", SHARING_TIMESLICE, 5, 0.98, 0.85 },
    { "turns, with many: no worse", SHARING_TIMESLICE, 40, 1.02, 0.85 },
    { "slices, before anything was read", SHARING_MIG, 0, 0.15, 0.9 },
    { "slices, with a few pairs known", SHARING_MIG, 5, 0.4, 0.9 },
    { "slices, with many pairs known", SHARING_MIG, 40, 0.8, 0.9 },
};

EACH(who_is_told_how_a_site_shares_foresees_better, wanted)
{
    enum sharing mode = wanted[_i].mode;
    struct modes_result r = eval(mode, mode, wanted[_i].n_known, suite_size(150, 600));

    ck_assert_msg(r.told.error <= wanted[_i].worse_most * r.untold.error, "%s: %.3f, not told %.3f",
                  wanted[_i].name, r.told.error, r.untold.error);
    ck_assert_msg(r.told.coverage >= wanted[_i].coverage_least, "%s: covers %.3f", wanted[_i].name,
                  r.told.coverage);
}

/* What campaigns taught is of MPS, and stands for what nobody knows. */
TEST(mps_is_what_is_believed_of_the_unknown)
{
    struct modes_result r = eval(SHARING_MPS, SHARING_MPS, 5, 20);

    ck_assert(r.told.error == r.untold.error && r.told.coverage == r.untold.coverage);
    r = eval(SHARING_TIMESLICE, SHARING_EXCLUSIVE, 0, 20);
    ck_assert(r.told.error == r.untold.error && r.told.coverage == r.untold.coverage);
}

/* A site that was told wrong is found out by its readings. */
TEST(readings_outweigh_what_was_told_wrong)
{
    struct modes_result r = eval(SHARING_TIMESLICE, SHARING_MIG, 40, 60);

    ck_assert_msg(r.told.error < 1.1 * r.untold.error, "%.3f, not told %.3f", r.told.error,
                  r.untold.error);
}
