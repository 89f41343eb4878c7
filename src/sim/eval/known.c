#include "sim/eval/known.h"

#include <math.h>

#include "base/arena.h"
#include "estimate/blend.h"
#include "estimate/network/network.h"

void known_init(struct known *k, struct arena *a, const struct site *s, const struct network *n,
                int room)
{
    known_release(k);
    k->site = s;
    k->network = n ? network_site_create(n, s) : NULL;
    for (int what = 0; what < LEARNED; what++)
        k->of[what].list = ARENA_ARRAY(a, struct reading, (size_t)room);
}

void known_release(struct known *k)
{
    for (int what = 0; what < LEARNED; what++)
        posterior_destroy(k->of[what].posterior);
    network_site_destroy(k->network);
    *k = (struct known){ 0 };
}

void known_show(struct known *k, int what, const struct reading *r)
{
    struct known_readings *of = &k->of[what];

    of->list[of->n++] = *r;
}

static int settle(const struct site *s, struct known_readings *of, const struct hyper *around,
                  uint64_t seed, struct err *e)
{
    const struct campaign_readings own = { s, of->list, of->n };
    struct hyper_scale scale = { 1, 1, 1, NAN };
    struct hyper h;
    int rc = hyper_refit(around, &own, seed, &h, e);

    if (rc == 0 && of->n > 0)
        rc = hyper_calibrate(&h, &own, -1, &scale, e);
    if (rc == 0)
        rc = posterior_create(s, &h, scale, of->list, of->n, &of->posterior, e);
    if (rc == 0)
        of->n_settled = posterior_n(of->posterior);
    of->n_site = of->n;
    return rc;
}

int known_settle(struct known *k, struct arena *a, const struct hyper *around, uint64_t seed,
                 struct err *e)
{
    int rc = 0;

    for (int what = 0; what < LEARNED && rc == 0; what++) {
        struct known_readings *of = &k->of[what];
        rival_choose(a, k->site, of->list, of->n, of->ridge);
        rc = settle(k->site, of, &around[what], seed, e);
    }
    return rc;
}

int known_add(struct known *k, int what, const struct reading *r, struct err *e)
{
    known_show(k, what, r);
    return posterior_add(k->of[what].posterior, r, e);
}

void known_forget(struct known *k)
{
    for (int what = 0; what < LEARNED; what++) {
        k->of[what].n = k->of[what].n_site;
        posterior_truncate(k->of[what].posterior, k->of[what].n_settled);
    }
}

/* ---- what each method believes ---- */

void known_fit_rivals(struct known *k, struct arena *a)
{
    for (int what = 0; what < LEARNED; what++) {
        struct known_readings *of = &k->of[what];
        rival_fit(a, RIVAL_MEAN, k->site, NULL, of->list, of->n, &of->mean);
        rival_fit(a, RIVAL_RIDGE, k->site, of->ridge, of->list, of->n, &of->by_ridge);
    }
}

void known_read(struct known *k)
{
    const struct known_readings *of = &k->of[LEARN_SPEEDS];

    k->n_beside = 0;
    for (int i = 0; i < of->n; i++)
        k->n_beside += of->list[i].of != READ_ALONE;
    network_read(k->network, -1, of->list, of->n);
}

/* Of a type's numbers, as site.h has them. */
enum { PEAK = 0, BANDWIDTH = 2 };

/* ln of a type's peak, or bandwidth, over another's. */
static double ln_ratio(const struct site *s, int figure, int type, int over)
{
    return (double)s->gpu[type][figure] - (double)s->gpu[over][figure];
}

static double distance(const struct site *s, int a, int b)
{
    return hypot(ln_ratio(s, PEAK, a, b), ln_ratio(s, BANDWIDTH, a, b));
}

/* The same cell on the nearest type where it was read; of equals the first. */
static const struct reading *nearest(const struct known *k, int what, const struct reading *cell)
{
    const struct known_readings *of = &k->of[what];
    const struct reading *best = NULL;

    for (int i = 0; i < of->n; i++) {
        const struct reading *r = &of->list[i];
        if (r->of == cell->of && r->job == cell->job && r->neighbour == cell->neighbour &&
            r->type != cell->type &&
            (!best ||
             distance(k->site, r->type, cell->type) < distance(k->site, best->type, cell->type)))
            best = r;
    }
    return best;
}

/* Speeds go with the square root of peak times bandwidth, slowdowns are the same everywhere. */
static double ask_nearest(const struct known *k, int what, const struct reading *cell)
{
    const struct site *s = k->site;
    const struct reading *on = what == LEARN_SPEEDS ? nearest(k, what, cell) : NULL;

    if (!on || on->of != READ_ALONE)
        return on ? (double)on->value : (double)NAN;
    double there = (double)on->value + (double)site_on(s, on->job, on->type)->ln_reference;
    double shift =
        (ln_ratio(s, PEAK, cell->type, on->type) + ln_ratio(s, BANDWIDTH, cell->type, on->type)) /
        2;
    return there + shift - (double)site_on(s, cell->job, cell->type)->ln_reference;
}

/* Of methods that have no standard deviation. */
static double ask_plain(const struct known *k, enum eval_method m, int what,
                        const struct reading *cell)
{
    const struct known_readings *of = &k->of[what];

    switch (m) {
    case EVAL_ROOFLINE:
        return cell->of == READ_ALONE ? 0 : (double)NAN;
    case EVAL_NONE:
        return cell->of == READ_SLOWDOWN ? 0 : (double)NAN;
    case EVAL_MEAN:
        return rival_ask(&of->mean, cell->of, cell->type, cell->job, cell->neighbour);
    case EVAL_RIDGE:
        return rival_ask(&of->by_ridge, cell->of, cell->type, cell->job, cell->neighbour);
    case EVAL_NEAREST:
        return ask_nearest(k, what, cell);
    default:
        return NAN;
    }
}

static struct cell_belief ask_network(const struct known *k, const struct reading *cell)
{
    float mean, sd;

    network_ask(k->network, cell->of, cell->type, cell->job, cell->neighbour, &mean, &sd);
    return (struct cell_belief){ (double)mean, fmax((double)sd, READING_NOISE) };
}

static struct cell_belief ask_model(const struct known *k, int what, enum reading_of of,
                                    const struct reading *cell)
{
    return posterior_ask(k->of[what].posterior, of, cell->type, cell->job, cell->neighbour);
}

static struct cell_belief ask_both(const struct known *k, const struct reading *cell)
{
    double share = blend_share(k->n_beside, k->site->sharing[cell->type]);
    struct reading slowdown = *cell;

    slowdown.of = READ_SLOWDOWN;
    struct cell_belief model = ask_model(k, LEARN_SPEEDS, READ_SLOWDOWN, cell);
    struct cell_belief both = blend_slowdown(model, ask_network(k, &slowdown), share);
    return cell->of == READ_SLOWDOWN
               ? both
               : blend_packed(ask_model(k, LEARN_SPEEDS, READ_PACKED, cell), model, both);
}

struct cell_belief known_ask(const struct known *k, enum eval_method m, int what,
                             const struct reading *cell)
{
    switch (m) {
    case EVAL_GOGH:
        if (cell->of != READ_ALONE && what == LEARN_SPEEDS)
            return ask_both(k, cell);
        // fall through
    case EVAL_HIERARCHICAL:
        return ask_model(k, what, cell->of, cell);
    case EVAL_NETWORK:
        return what == LEARN_SPEEDS ? ask_network(k, cell)
                                    : known_ask(k, EVAL_HIERARCHICAL, what, cell);
    default:
        return (struct cell_belief){ ask_plain(k, m, what, cell), NAN };
    }
}
