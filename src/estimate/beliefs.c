#include "estimate/beliefs.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "estimate/blend.h"
#include "estimate/model/model.h"
#include "estimate/network/network.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"

const char *const estimator_names[ESTIMATORS + 1] = { "gogh", "hierarchical", "network",
                                                      "mean", "roofline",     NULL };

int estimator_by_name(const char *name, enum estimator_kind *out, struct err *e)
{
    *out = ESTIMATOR_GOGH;
    for (int i = 0; i < ESTIMATORS && name; i++)
        if (strcmp(name, estimator_names[i]) == 0) {
            *out = (enum estimator_kind)i;
            return 0;
        }
    return name ? err_set(e, EINVAL,
                          "no estimator '%s': want gogh, hierarchical, network, mean or roofline",
                          name)
                : 0;
}

void beliefs_init(struct beliefs *b, const struct catalog *c)
{
    *b = (struct beliefs){ .catalog = c };
    for (int i = 0; i < LEARNED; i++)
        b->noise[i] = heap_array(POSTERIOR_MOST, sizeof *b->noise[i]);
    beliefs_use(b, NULL, ESTIMATOR_GOGH);
}

static void forget(struct beliefs *b)
{
    for (int i = 0; i < LEARNED; i++) {
        posterior_destroy(b->posterior[i]);
        b->posterior[i] = NULL;
    }
    network_site_destroy(b->reader);
    b->reader = NULL;
}

void beliefs_release(struct beliefs *b)
{
    forget(b);
    network_destroy(b->network);
    site_release(&b->site);
    for (int i = 0; i < LEARNED; i++)
        free(b->noise[i]);
    free(b->is_taken);
    free(b->own);
}

/* Only what a type has in common is believed: everything else is each cell's own. */
static void keep_means(struct hyper *h)
{
    double own[2] = { exp(h->at[ALONE_CELL]), exp(h->at[BESIDE_CELL]) };

    for (int i = 0; i < VARIANCES; i++) {
        if (i == ALONE_SITE || i == ALONE_TYPE || i == BESIDE_SITE || i == BESIDE_TYPE ||
            i == ALONE_CELL || i == BESIDE_CELL || i == ALONE_SCALE || i == BESIDE_SCALE)
            continue;
        own[i >= BESIDE_SITE] += i == ALONE_BATCH_SCALE ? 0 : exp(h->at[i]);
        h->at[i] = -20;
    }
    h->at[ALONE_CELL] = log(own[0]);
    h->at[BESIDE_CELL] = log(own[1]);
    for (int i = 1; i <= ALONE_X; i++)
        h->at[ALONE_MEAN + i] = 0;
    for (int i = 1; i <= BESIDE_X; i++)
        h->at[BESIDE_MEAN + i] = 0;
}

/* A build without a network does without. */
static void use_network(struct beliefs *b)
{
    struct err e;

    network_destroy(b->network);
    b->network = NULL;
    if (b->kind > ESTIMATOR_NETWORK || b->kind == ESTIMATOR_HIERARCHICAL)
        return;
    if (network_pretrained(&b->network, &e) < 0) {
        log_warn("%s: estimates are the hierarchical model's", e.text);
        b->kind = ESTIMATOR_HIERARCHICAL;
    }
}

void beliefs_use(struct beliefs *b, const struct model *m, enum estimator_kind kind)
{
    struct model *untaught = m ? NULL : model_untaught();

    m = m ? m : untaught;
    b->kind = kind;
    forget(b);
    use_network(b);
    for (int i = 0; i < LEARNED; i++) {
        b->hyper[i] = m->hyper[i];
        b->scale[i] = m->scale[i];
        if (kind == ESTIMATOR_MEAN)
            keep_means(&b->hyper[i]);
    }
    model_destroy(untaught);
}

/* ---- getting to know ---- */

static void meet(struct beliefs *b)
{
    const struct catalog *c = b->catalog;

    if (c->n_types != b->site.n_types || c->descriptions != b->descriptions) {
        forget(b);
        site_release(&b->site);
        site_init(&b->site, c->types, c->n_types);
        b->descriptions = c->descriptions;
    }
    while (b->site.n_workloads < c->n_workloads)
        site_add(&b->site, &c->workloads[b->site.n_workloads], c->types);
}

/* What to take off a cell's ln speed as it was recorded, for what limits are believed to take now.
 */
static double undone_of(const struct beliefs *b, const struct bends *bends, const struct cell *cell)
{
    const struct cell_key *k = &cell->key;

    if (k->neighbour >= 0 || cell->ln_pace == 0)
        return 0;
    double loss = bends_of(bends, b->catalog, k->workload, k->gpu_type).loss;
    return cell->ln_undone + loss * cell->ln_pace;
}

/* What a cell says now, of speeds or of watts; false: nothing. */
static bool read_cell(const struct beliefs *b, const struct bends *bends, enum learned what,
                      const struct cell *cell, struct reading *out)
{
    if (!cell_key_is_plain(&cell->key) || b->kind == ESTIMATOR_ROOFLINE ||
        !site_read(&b->site, cell, what == LEARN_WATTS, out))
        return false;
    if (what == LEARN_SPEEDS)
        out->value -= (float)undone_of(b, bends, cell);
    return true;
}

/* ---- taking in ---- */

/* The logarithm of what was measured of a cell, and its noise; 0: nothing was. */
struct own_reading {
    double value[LEARNED], noise[LEARNED];
};

static void read_own(const struct beliefs *b, const struct bends *bends, const struct cell *cell,
                     struct own_reading *out)
{
    *out = (struct own_reading){ 0 };
    if (!cell_key_is_plain(&cell->key))
        return;
    if (cell->n_speed > 0) {
        out->value[LEARN_SPEEDS] = cell->ln_speed - undone_of(b, bends, cell);
        out->noise[LEARN_SPEEDS] = hypot(sqrt(cell_variance(cell)), READING_NOISE);
    }
    if (cell->n_watts > 0) {
        out->value[LEARN_WATTS] = cell->ln_watts;
        out->noise[LEARN_WATTS] = CATALOG_NOISE / sqrt(cell->n_watts);
    }
}

/* NULL: nothing had been measured there. */
static const struct own_reading *own_of(const struct beliefs *b, enum learned what, int type,
                                        int workload, int neighbour)
{
    struct cell_key key = {
        .workload = workload, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1
    };
    const struct cell *cell = catalog_cell(b->catalog, key);
    long i = cell ? cell - b->catalog->cells : b->n_cells;

    return i < b->n_cells && b->own[i].noise[what] > 0 ? &b->own[i] : NULL;
}

static void look_at_cells(struct beliefs *b, const struct bends *bends)
{
    for (; b->cap_cells < b->catalog->n_cells; b->cap_cells *= 2)
        b->cap_cells = b->cap_cells ? b->cap_cells : 64;
    RESIZE(b->is_taken, b->cap_cells);
    RESIZE(b->own, b->cap_cells);
    for (; b->n_cells < b->catalog->n_cells; b->n_cells++)
        b->is_taken[b->n_cells] = 0;
    for (int i = 0; i < b->n_cells; i++)
        read_own(b, bends, &b->catalog->cells[i], &b->own[i]);
}

/* All that the cells say, those alone first. Returns how many. */
static int read_all(struct beliefs *b, const struct bends *bends, enum learned what,
                    struct arena *a, struct reading **out)
{
    const struct catalog *c = b->catalog;
    int n = 0;

    *out = ARENA_ARRAY(a, struct reading, (size_t)c->n_cells + 1);
    for (int beside = 0; beside < 2; beside++)
        for (int i = 0; i < c->n_cells; i++) {
            if ((c->cells[i].key.neighbour >= 0) == beside &&
                read_cell(b, bends, what, &c->cells[i], &(*out)[n])) {
                b->is_taken[i] |= (unsigned char)(1U << what);
                n++;
            }
        }
    return n;
}

/* A posterior of all that was read. Numbers that no covariance can take are no reason to stop: what
 * is believed without them is.
 */
static void make_anew(struct beliefs *b, const struct bends *bends, enum learned what)
{
    struct reading *list;
    struct arena a;
    struct err e;

    arena_init(&a);
    int n = read_all(b, bends, what, &a, &list);
    posterior_destroy(b->posterior[what]);
    int rc = posterior_create(&b->site, &b->hyper[what], b->scale[what], list, n,
                              &b->posterior[what], &e);
    if (rc < 0) {
        log_warn("%s: estimates do without them", e.text);
        rc = posterior_create(&b->site, &b->hyper[what], b->scale[what], NULL, 0,
                              &b->posterior[what], &e);
    }
    assert(rc == 0);    // of no readings at all
    for (int i = 0; i < n; i++) {
        int at = posterior_find(b->posterior[what], list[i].type, list[i].job, list[i].neighbour);
        if (at >= 0)
            b->noise[what][at] = list[i].noise;
    }
    arena_release(&a);
}

/* A mean that moved by less than this, in ln, is the same. Readings that are this much surer than
 * they were taken in as are taken in anew when there are more than a few: until then that counts in
 * their own cells (with_own).
 */
#define SAME 1e-4
#define SURER 2.0F
enum { SURER_MOST = 16 };

/* One is enough that is less sure now, as what contradicts itself would mislead about others; or
 * that was vaguer than measurements are, for it hardly counted.
 */
#define VAGUE ((float)(2 * CATALOG_NOISE))

static bool is_mistaken(float noise_then, float noise)
{
    return noise > SURER * noise_then || (noise_then > VAGUE && noise_then > SURER * noise);
}

/* True: there is no more room, or what was taken in is out of date. */
static bool take_in(struct beliefs *b, const struct bends *bends, enum learned what)
{
    struct posterior *p = b->posterior[what];
    unsigned char bit = (unsigned char)(1U << what);
    struct reading r;
    struct err e;
    int n_surer = 0;

    for (int i = 0; i < b->catalog->n_cells; i++) {
        if (!read_cell(b, bends, what, &b->catalog->cells[i], &r))
            continue;
        int at = posterior_find(p, r.type, r.job, r.neighbour), rc = 0;
        if (at >= 0 && is_mistaken(b->noise[what][at], r.noise))
            return true;
        if (at >= 0 && fabs(posterior_value(p, at) - (double)r.value) > SAME)
            posterior_set(p, at, (double)r.value);
        n_surer += at >= 0 && r.noise * SURER < b->noise[what][at];
        if (at >= 0 || (b->is_taken[i] & bit))
            continue;
        b->is_taken[i] |= bit;
        at = posterior_n(p);
        rc = posterior_add(p, &r, &e);
        if (rc == -ENOSPC)
            return true;
        if (rc == 0)
            b->noise[what][at] = r.noise;
    }
    return n_surer > SURER_MOST + posterior_n(p) / 8;
}

/* Of a packed job its slowdown, where its speed alone is known: as the network has learned it. */
static void read_slowdown(const struct beliefs *b, struct reading *r)
{
    const struct own_reading *alone = own_of(b, LEARN_SPEEDS, r->type, r->job, -1);

    if (r->of != READ_PACKED || !alone)
        return;
    double reference = (double)site_on(&b->site, r->job, r->type)->ln_reference;
    double slowdown = (double)r->value + reference - alone->value[LEARN_SPEEDS];
    r->of = READ_SLOWDOWN;
    r->value = (float)fmin(fmax(slowdown, log(SLOWDOWN_LEAST)), log(SLOWDOWN_MOST));
    r->noise = hypotf(r->noise, (float)alone->noise[LEARN_SPEEDS]);
}

/* All that it knows of a site passes through the network when that is told more, and all workloads
 * are asked about anew: so it is told when there is this part more, and what lies between reaches
 * its cells by the model.
 */
#define NEWS 8

static void tell_network(struct beliefs *b, const struct bends *bends, bool is_old)
{
    struct reading *list;
    struct arena a;
    bool is_news = is_old || b->kind == ESTIMATOR_NETWORK ||
                   posterior_n(b->posterior[LEARN_SPEEDS]) > b->n_read + b->n_read / NEWS;

    if (!b->network || !is_news)
        return;
    arena_init(&a);
    int n = read_all(b, bends, LEARN_SPEEDS, &a, &list);
    b->n_read = posterior_n(b->posterior[LEARN_SPEEDS]);
    b->n_beside = 0;
    for (int i = 0; i < n; i++) {
        read_slowdown(b, &list[i]);
        b->n_beside += list[i].of != READ_ALONE;
    }
    if (!b->reader)
        b->reader = network_site_create(b->network, &b->site);
    if (b->kind == ESTIMATOR_NETWORK || blend_share(b->n_beside, SHARING_UNKNOWN) > 0)
        network_read(b->reader, -1, list, n);
    arena_release(&a);
}

/* Is what the posterior has of a speed alone vaguer than what was measured of it? It had no room,
 * or the reading was too far from what can be (site.h).
 */
static bool is_vague(const struct beliefs *b, const struct own_reading *own, int type, int workload)
{
    int at = posterior_find(b->posterior[LEARN_SPEEDS], type, workload, -1);

    return at < 0 || (double)b->noise[LEARN_SPEEDS][at] > 1.5 * own->noise[LEARN_SPEEDS];
}

static void count_vague(struct beliefs *b)
{
    b->n_vague = 0;
    for (int i = 0; i < b->n_cells; i++) {
        const struct cell_key *k = &b->catalog->cells[i].key;
        b->n_vague += b->own[i].noise[LEARN_SPEEDS] > 0 && k->neighbour < 0 &&
                      is_vague(b, &b->own[i], k->gpu_type, k->workload);
    }
}

bool beliefs_meet(struct beliefs *b, const struct bends *bends)
{
    meet(b);
    if (b->posterior[LEARN_SPEEDS])
        return false;
    look_at_cells(b, bends);
    for (enum learned what = 0; what < LEARNED; what++)
        make_anew(b, bends, what);
    count_vague(b);
    tell_network(b, bends, true);
    b->is_passing = true;
    return true;
}

bool beliefs_refresh(struct beliefs *b, const struct bends *bends)
{
    const struct catalog *c = b->catalog;

    meet(b);
    bool is_old = !b->posterior[LEARN_SPEEDS] || b->is_passing || b->n_drifts != c->n_drifts;
    if (!is_old && b->n_measurements == c->n_measurements)
        return false;
    b->is_passing = false;
    b->n_measurements = c->n_measurements;
    b->n_drifts = c->n_drifts;
    look_at_cells(b, bends);
    for (enum learned what = 0; what < LEARNED; what++)
        if (is_old || take_in(b, bends, what))
            make_anew(b, bends, what);
    count_vague(b);
    tell_network(b, bends, is_old);
    return true;
}

/* ---- asking ---- */

bool beliefs_has_read(const struct beliefs *b, int type, int workload, int neighbour)
{
    return own_of(b, LEARN_SPEEDS, type, workload, neighbour) != NULL;
}

/* With what was measured of the very cell that the posterior does not know: all, where it had no
 * room, or what made it surer since. The network has never learned to be asked about what it read:
 * what it says there is as good as of another cell.
 */
static struct cell_belief with_own(const struct beliefs *b, enum learned what, int type,
                                   int workload, int neighbour, struct cell_belief is)
{
    const struct own_reading *own = own_of(b, what, type, workload, neighbour);

    if (!own)
        return is;
    int at = what == LEARN_SPEEDS && b->kind == ESTIMATOR_NETWORK
                 ? -1
                 : posterior_find(b->posterior[what], type, workload, neighbour);
    double taken = at < 0 ? (double)INFINITY : (double)b->noise[what][at];
    double more = 1 / (own->noise[what] * own->noise[what]) - 1 / (taken * taken);
    double trust = more > 0 ? is.sd * is.sd / (is.sd * is.sd + 1 / more) : 0;
    return (struct cell_belief){ is.mean + trust * (own->value[what] - is.mean),
                                 sqrt(1 - trust) * is.sd };
}

static struct cell_belief ask_network(struct beliefs *b, enum reading_of of, int type, int workload,
                                      int neighbour)
{
    float mean, sd;

    network_ask(b->reader, of, type, workload, neighbour, &mean, &sd);
    return (struct cell_belief){ (double)mean, fmax((double)sd, READING_NOISE) };
}

/* Beside a neighbour, with the network's share; what was measured of the very cell needs none. */
static struct cell_belief ask_both(struct beliefs *b, int type, int workload, int neighbour)
{
    struct posterior *p = b->posterior[LEARN_SPEEDS];
    double share = b->network ? blend_share(b->n_beside, b->site.sharing[type]) : 0;
    struct cell_belief packed, model;

    if (share == 0 || posterior_find(p, type, workload, neighbour) >= 0)
        return posterior_ask(p, READ_PACKED, type, workload, neighbour);
    posterior_ask_pair(p, type, workload, neighbour, &packed, &model);
    struct cell_belief network = ask_network(b, READ_SLOWDOWN, type, workload, neighbour);
    return blend_packed(packed, model, blend_slowdown(model, network, share));
}

static struct cell_belief ask_learned(struct beliefs *b, int type, int workload, int neighbour)
{
    if (b->kind == ESTIMATOR_NETWORK)
        return ask_network(b, neighbour < 0 ? READ_ALONE : READ_PACKED, type, workload, neighbour);
    if (neighbour < 0)
        return posterior_ask(b->posterior[LEARN_SPEEDS], READ_ALONE, type, workload, neighbour);
    return ask_both(b, type, workload, neighbour);
}

static struct cell_belief ask_speed(struct beliefs *b, int type, int workload, int neighbour)
{
    const struct catalog *c = b->catalog;
    struct roofline on, by;
    struct prior prior;

    if (b->kind != ESTIMATOR_ROOFLINE) {
        struct cell_belief is = ask_learned(b, type, workload, neighbour);
        is.mean += (double)site_on(&b->site, workload, type)->ln_reference;
        return is;
    }
    roofline(&c->workloads[workload], &c->types[type], &on);
    if (neighbour >= 0)
        roofline(&c->workloads[neighbour], &c->types[type], &by);
    prior_of(&on, neighbour < 0 ? NULL : &by, c->types[type].mem_bytes, &prior);
    return (struct cell_belief){ prior.ln_speed, prior.sd };
}

/* By how much what was measured of the workload alone moves what is believed of that, where the
 * posterior does not know: beside others it is as much faster, or slower.
 */
static double shift_of(struct beliefs *b, int type, int workload)
{
    const struct own_reading *own =
        b->n_vague > 0 ? own_of(b, LEARN_SPEEDS, type, workload, -1) : NULL;

    if (!own || b->kind == ESTIMATOR_NETWORK || !is_vague(b, own, type, workload))
        return 0;
    struct cell_belief is = ask_speed(b, type, workload, -1);
    return with_own(b, LEARN_SPEEDS, type, workload, -1, is).mean - is.mean;
}

struct cell_belief beliefs_speed(struct beliefs *b, int type, int workload, int neighbour)
{
    struct cell_belief is = ask_speed(b, type, workload, neighbour);

    if (neighbour >= 0)
        is.mean += shift_of(b, type, workload);
    return with_own(b, LEARN_SPEEDS, type, workload, neighbour, is);
}

struct cell_belief beliefs_watts(struct beliefs *b, int type, int workload)
{
    struct cell_belief is = { 0, ROOFLINE_WATTS_SD };

    if (b->kind != ESTIMATOR_ROOFLINE)
        is = posterior_ask(b->posterior[LEARN_WATTS], READ_ALONE, type, workload, -1);
    is.mean += (double)site_on(&b->site, workload, type)->ln_watts;
    return with_own(b, LEARN_WATTS, type, workload, -1, is);
}
