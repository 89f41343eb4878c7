#include "refine/refine.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/prior/limits.h"
#include "estimate/prior/prior.h"
#include "refine/p2.h"

/* Measured cells of one workload that correct the others: the lonely ones, then the newest.
 * Beyond this the cube of the factorisation costs more than an old cell tells; a measured
 * cell that is left out corrects only itself.
 */
#define OBSERVED_MAX 48

/* A newcomer's effect on its first neighbours corrects what is believed of its effect on all
 * others, from P1's beliefs on; after so many it is no newcomer, and the next P1 knows it.
 */
#define COLUMN_SEEN_MAX 12

/* What a workload does to others, over what P1 believed: a column of all rows. Rows correct their
 * own beliefs first and then add it, so that a column that changes changes one cell of a row.
 */
struct workload_column {
    bool is_stale;
    int n;            // workloads it speaks of; 0: nothing
    float *shift;     // (n_types, n) of ln r of each beside it
    float *narrow;    // (n_types, n) what it multiplies the sd of each one's speed there by, <= 1
};

/* What has changed since a workload was last settled. */
struct workload_news {
    bool is_stale;    // its estimates are to be made anew
    struct workload_column column;
};

/* The speeds of one workload alone on one type, under all limits: ln speed over the law's ln factor
 * is a line, and its slope is how much more than the law a limit takes. Sums, each weighted by
 * 1/noise^2.
 */
struct bend_seen {
    double weight, x, xx, y, xy;
};

void refiner_init(struct refiner *r, struct catalog *c, const struct estimator *e)
{
    *r = (struct refiner){ .catalog = c, .estimator = e };
    arena_init(&r->arena);
}

static void forget_columns(struct refiner *r)
{
    for (int w = 0; w < r->n_news; w++) {
        struct workload_column *c = &r->news[w].column;
        free(c->shift);
        free(c->narrow);
        *c = (struct workload_column){ .is_stale = true };
    }
}

void refiner_release(struct refiner *r)
{
    arena_release(&r->arena);
    forget_columns(r);
    free(r->news);
    free(r->bends);
}

void refine_use(struct refiner *r, const struct p2 *p2)
{
    r->p2 = p2;
    r->n_met = 0;    // everybody is met again, and corrected
    forget_columns(r);
}

/* Borrowed until the next call. */
static struct workload_news *news_of(struct refiner *r, int workload)
{
    if (workload >= r->n_news) {
        int n = workload + 64;
        RESIZE(r->news, n);
        for (; r->n_news < n; r->n_news++)
            r->news[r->n_news] = (struct workload_news){ .column = { .is_stale = true } };
    }
    return &r->news[workload];
}

static bool has_news(const struct refiner *r, int workload)
{
    return workload < r->n_news && r->news[workload].is_stale;
}

/* ---- taking in ---- */

/* Has the cell, as it is since its last change, twice as many measurements as when it was last
 * looked at? A change is a new first one.
 */
static bool has_doubled(const struct cell *c)
{
    int n = c->n_speed - c->n_past;

    return (n & (n - 1)) == 0 || n == 3;
}

/* True: it is farther from what was believed than chance explains, or there was no belief. */
static bool note_surprise(struct refiner *r, const struct measurement *m)
{
    const struct cell_key *k = &m->key;

    if (!cell_key_is_plain(k) || isnan(m->throughput) || k->workload >= r->estimator->n_workloads ||
        k->neighbour >= r->estimator->n_workloads)
        return true;
    const struct cell_estimate *believed =
        estimate_cell(r->estimator, k->workload, k->gpu_type, k->neighbour);
    double noise = isnan(m->noise) ? CATALOG_NOISE : m->noise, sd = (double)believed->sd;
    double mean = log((double)believed->speed) + sd * sd / 2;
    double surprise = log(m->throughput) - mean;
    r->n_measurements++;
    r->sum_abs_error += fabs(m->throughput / (double)believed->speed - 1);
    r->n_covered += fabs(surprise) <= 1.645 * hypot(noise, (double)believed->sd);
    return fabs(surprise) > 3 * hypot(noise, sd);
}

static void mark_column(struct refiner *r, int neighbour)
{
    if (neighbour >= 0)
        news_of(r, neighbour)->column.is_stale = true;
}

/* What a neighbour does is seen in the workload's speed beside it, by its speed alone. */
static void mark_columns(struct refiner *r, const struct cell_key *k)
{
    const struct catalog *c = r->catalog;

    mark_column(r, k->neighbour);
    for (int i = c->first_cell[k->workload]; i >= 0 && k->neighbour < 0; i = c->next_cell[i])
        mark_column(r, c->cells[i].key.neighbour);
}

/* ---- what limits do ---- */

/* Room for what was seen of a workload; what is known is forgotten when a type is new. */
static struct bend_seen *bend_of(struct refiner *r, int workload, int type)
{
    int n_types = r->catalog->n_types;

    if (n_types != r->n_bend_types) {
        r->n_bends = 0;
        r->n_bend_types = n_types;
    }
    if (workload >= r->n_bends) {
        size_t was = (size_t)r->n_bends * (size_t)n_types, n = ((size_t)workload + 64);
        RESIZE(r->bends, n * (size_t)n_types);
        memset(r->bends + was, 0, (n * (size_t)n_types - was) * sizeof *r->bends);
        r->n_bends = (int)n;
    }
    return &r->bends[workload * n_types + type];
}

static void note_bend(struct refiner *r, const struct measurement *seen, double ln_pace)
{
    const struct cell_key *k = &seen->key;

    if (k->neighbour >= 0 || k->n_gpus != 1 || !seen->fits || !(seen->throughput > 0))
        return;
    struct bend_seen *b = bend_of(r, k->workload, k->gpu_type);
    double noise = hypot(isnan(seen->noise) ? CATALOG_NOISE : seen->noise, REFINE_NOISE);
    double weight = 1 / (noise * noise), y = log(seen->throughput);
    b->weight += weight;
    b->x += weight * ln_pace;
    b->xx += weight * ln_pace * ln_pace;
    b->y += weight * y;
    b->xy += weight * ln_pace * y;
}

/* The slope less 1, and its weight (0: speeds under one limit only, which say nothing). */
static double slope_of(const struct bend_seen *b, double *weight)
{
    double spread = b->weight > 0 ? b->xx - b->x * b->x / b->weight : 0;

    *weight = spread > 1e-6 ? spread : 0;    // below are rounding errors
    return *weight > 0 ? (b->xy - b->x * b->y / b->weight) / spread - 1 : 0;
}

/* How a family differs from the law on a type, without 'except': mean and variance. Of the variance
 * of LIMITS_LOSS_SD a family has this much in common.
 */
#define FAMILY_SHARE 0.64

static double family_bend(const struct refiner *r, int except, int type, double *var)
{
    const double all = LIMITS_LOSS_SD * LIMITS_LOSS_SD, own = (1 - FAMILY_SHARE) * all;
    const struct workload *w = r->catalog->workloads;
    double sum = 0, trust = 1 / (FAMILY_SHARE * all);

    for (int i = 0; i < r->n_bends && i < r->catalog->n_workloads; i++) {
        double weight;
        double slope = slope_of(&r->bends[i * r->n_bend_types + type], &weight);
        if (i == except || weight == 0 || !w[i].family || !w[except].family ||
            strcmp(w[i].family, w[except].family) != 0)
            continue;
        sum += slope / (1 / weight + own);
        trust += 1 / (1 / weight + own);
    }
    *var = 1 / trust;
    return sum / trust;
}

/* What a limit is believed to take from a workload, in parts of what the law says. */
static struct limit_bend loss_of(const struct refiner *r, int workload, int type)
{
    const struct bend_seen nothing = { 0 }, *b = &nothing;
    double var, weight;

    if (type >= r->n_bend_types)
        return limit_law;
    if (workload < r->n_bends)
        b = &r->bends[workload * r->n_bend_types + type];
    double mean = family_bend(r, workload, type, &var), own = slope_of(b, &weight);
    var += (1 - FAMILY_SHARE) * LIMITS_LOSS_SD * LIMITS_LOSS_SD;
    mean += var * weight / (var * weight + 1) * (own - mean);
    return (struct limit_bend){ .loss = fmin(fmax(1 + mean, 1.0 / 3), 3),
                                .draw = 1,
                                .loss_sd = sqrt(var / (var * weight + 1)),
                                .at = b->weight > 0 ? b->x / b->weight : 0 };
}

/* Would what was just seen move a speed under a limit by this much, in ln? */
#define BEND_NEWS 0.02

static bool has_bent(const struct refiner *r, const struct measurement *m)
{
    const struct estimator *est = r->estimator;
    const struct cell_key *k = &m->key;

    if (m->ln_pace == 0 || k->neighbour >= 0 || k->n_gpus != 1 || k->workload >= est->n_workloads)
        return false;
    double was = est->bend[k->workload * est->n_types + k->gpu_type].loss;
    return fabs((loss_of(r, k->workload, k->gpu_type).loss - was) * m->ln_pace) > BEND_NEWS;
}

/* Under a deep limit everybody draws the limit. Watts tell what would be drawn without it only
 * where that would show: a tenth more in a fortieth.
 */
#define TELLING 0.25

static bool watts_tell(const struct gpu_type *g, int limit_w, double w0, struct limit_bend b)
{
    double more = limits_bent(g, limit_w, 1.1 * w0, b).watts / limits_bent(g, limit_w, w0, b).watts;

    return w0 < g->cap_w && log(more) > TELLING * log(1.1);
}

/* What was seen under a power limit, as it would have been without: by its own watts where they
 * tell, and otherwise by those that are believed. The law's error comes on top of the noise.
 */
static struct measurement unlimited(const struct refiner *r, const struct measurement *seen)
{
    const struct estimator *est = r->estimator;
    struct measurement m = *seen;
    int both[] = { m.key.workload, m.key.neighbour }, n = m.key.neighbour < 0 ? 1 : 2;
    bool is_known = both[0] < est->n_workloads && both[n - 1] < est->n_workloads;

    if (m.key.limit_w <= 0 || !m.fits || isnan(m.throughput) || (isnan(m.watts) && !is_known))
        return m;
    const struct gpu_type *type = &r->catalog->types[m.key.gpu_type];
    struct limit_bend bend = limit_law;
    if (is_known && n == 1)
        bend = est->bend[both[0] * est->n_types + m.key.gpu_type];
    double w0 = isnan(m.watts) ? (double)NAN : limits_undo_bent(type, m.key.limit_w, m.watts, bend);
    if (is_known && !(w0 > 0 && watts_tell(type, m.key.limit_w, w0, bend))) {
        w0 = estimate_watts(est, m.key.gpu_type, both, NULL, n);
        m.watts = NAN;
    }
    double pace = limits_bent(type, m.key.limit_w, w0, bend).speed;
    if (n == 2)
        pace = estimate_limited(est, m.key.gpu_type, both, NULL, n, m.key.limit_w).speed;
    m.ln_pace = log(limits_apply(type, m.key.limit_w, w0).speed);
    m.ln_undone = -log(pace);
    m.throughput /= pace;
    m.watts = isnan(m.watts) ? m.watts : w0;
    m.noise = hypot(isnan(m.noise) ? CATALOG_NOISE : m.noise, LIMITS_ERROR * (1 - pace));
    m.key.limit_w = 0;
    return m;
}

int refine_take(struct refiner *r, const struct measurement *seen, struct err *e)
{
    struct measurement plain = unlimited(r, seen);
    const struct measurement *m = &plain;
    bool news = note_surprise(r, m);
    int rc = catalog_begin(r->catalog, e);

    note_bend(r, seen, m->ln_pace);
    if (rc == 0)
        rc = catalog_end(r->catalog, catalog_record(r->catalog, m, 0, e), e);
    news = news || has_bent(r, m) || (rc == 0 && has_doubled(catalog_cell(r->catalog, m->key)));
    if (rc == 0 && news)
        news_of(r, m->key.workload)->is_stale = true;
    if (rc == 0 && news)
        mark_columns(r, &m->key);
    return rc;
}

/* ---- correcting ---- */

static bool tells_more(const struct cell *a, const struct cell *b)
{
    bool is_alone = a->key.neighbour < 0;

    return is_alone != (b->key.neighbour < 0) ? is_alone : a->last_s > b->last_s;
}

/* Put a cell among the 'n' of at most 'max' that tell most, in that order; returns how many there
 * are then.
 */
static int keep_telling(const struct cell **list, int n, int max, const struct cell *cell)
{
    if (n == max && !tells_more(cell, list[n - 1]))
        return n;
    int at = n < max ? n++ : n - 1;
    for (; at > 0 && tells_more(cell, list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = cell;
    return n;
}

static bool has_watts(const struct cell *c)
{
    return c->key.neighbour < 0 && c->n_watts > 0;
}

/* The cell on one GPU, if its speed was measured; else NULL. */
static const struct cell *plain_cell(const struct refiner *r, int workload, int type, int neighbour)
{
    struct cell_key key = {
        .workload = workload, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1
    };
    const struct cell *cell = catalog_cell(r->catalog, key);

    return cell && cell->n_speed ? cell : NULL;
}

/* Was 'workload' measured beside 'neighbour', on any type? */
static bool has_met(const struct refiner *r, int workload, int neighbour)
{
    for (int g = 0; g < r->estimator->n_types; g++)
        if (plain_cell(r, workload, g, neighbour))
            return true;
    return false;
}

/* The cells measured so far; the OBSERVED_MAX that tell most, in that order. */
static int observed_cells(const struct refiner *r, int workload, const struct cell **out)
{
    const struct catalog *c = r->catalog;
    int n = 0;

    for (int i = c->first_cell[workload]; i >= 0; i = c->next_cell[i]) {
        const struct cell *cell = &c->cells[i];
        if (cell_key_is_plain(&cell->key) && (cell->n_speed || has_watts(cell)))
            n = keep_telling(out, n, OBSERVED_MAX, cell);
    }
    return n;
}

/* What is believed of one workload beside the neighbours from .. to-1. Others that were measured
 * beside it stand in front of them: they are evidence.
 */
struct workload_row {
    int workload, from, to;
    int n_before;             // neighbours that are evidence only
    struct p2_estimates b;    // without partners
    const struct cell *cells[OBSERVED_MAX];
    int n_cells;
    bool has_watts;    // any was measured
};

/* Where a neighbour stands in the row; -1: nowhere, or alone. */
static int position(const struct workload_row *row, int neighbour)
{
    if (neighbour >= row->from && neighbour < row->to)
        return row->n_before + neighbour - row->from;
    for (int j = 0; j < row->n_before; j++)
        if (row->b.neighbour[j] == neighbour)
            return j;
    return -1;
}

static void line_up(struct refiner *r, struct workload_row *row)
{
    int before[OBSERVED_MAX] = { 0 }, n = 0;

    for (int i = 0; i < row->n_cells; i++) {
        int neighbour = row->cells[i]->key.neighbour, j = 0;
        while (j < n && before[j] != neighbour)
            j++;
        if (neighbour >= 0 && (neighbour < row->from || neighbour >= row->to) && j == n)
            before[n++] = neighbour;
    }
    row->n_before = n;
    p2_estimates_make(&r->arena, r->estimator->n_types, n + row->to - row->from, false, &row->b);
    for (int j = 0; j < row->b.n_neighbours; j++)
        row->b.neighbour[j] = j < n ? before[j] : row->from + j - n;
}

static void believe_roofline(const struct refiner *r, int workload, struct p2_estimates *b)
{
    const struct estimator *e = r->estimator;

    for (int g = 0; g < b->n_types; g++) {
        struct prior alone, beside;
        double watts_sd;
        estimate_prior(e, workload, g, -1, 0, &alone);
        b->alone[g] = (float)alone.ln_speed;
        b->alone_sd[g] = (float)alone.alone_sd;
        b->watts[g] = (float)estimate_prior_watts(e, workload, g, &watts_sd);
        b->watts_sd[g] = (float)watts_sd;
        for (int j = 0; j < b->n_neighbours; j++) {
            int at = g * b->n_neighbours + j;
            estimate_prior(e, workload, g, b->neighbour[j], b->neighbour[j] + 1, &beside);
            b->own[at] = (float)(beside.ln_speed - alone.ln_speed);
            b->own_sd[at] = (float)beside.beside_sd;
            b->pair_sd[at] = (float)beside.sd;
        }
    }
}

/* What the cell says without limits, with what is known of them today. */
static double unlimited_speed(const struct refiner *r, const struct cell *c)
{
    if (c->key.neighbour >= 0 || c->ln_pace == 0)
        return c->ln_speed;
    return c->ln_speed - c->ln_undone -
           loss_of(r, c->key.workload, c->key.gpu_type).loss * c->ln_pace;
}

static void look(const struct refiner *r, struct workload_row *row, struct p2_observation *seen)
{
    for (int i = 0; i < row->n_cells; i++) {
        const struct cell *c = row->cells[i];
        seen[i] = (struct p2_observation){
            .type = c->key.gpu_type,
            .neighbour = position(row, c->key.neighbour),
            .ln_speed = c->n_speed ? unlimited_speed(r, c) : (double)NAN,
            .ln_speed_var = c->n_speed ? cell_variance(c) : 0,
            .ln_r_partner = (double)NAN,
            .ln_watts = has_watts(c) ? c->ln_watts : (double)NAN,
        };
        row->has_watts = row->has_watts || has_watts(c);
    }
}

/* Measured cells beside neighbours that were too many to take part correct themselves. */
static void correct_left_out(const struct refiner *r, struct workload_row *row)
{
    const struct catalog *c = r->catalog;
    struct p2_estimates *b = &row->b;

    for (int i = c->first_cell[row->workload]; i >= 0; i = c->next_cell[i]) {
        const struct cell *cell = &c->cells[i];
        int at = position(row, cell->key.neighbour), is_left_out = 1;
        for (int k = 0; k < row->n_cells; k++)
            is_left_out &= row->cells[k] != cell;
        if (!is_left_out || at < 0 || !cell_key_is_plain(&cell->key) || !cell->n_speed)
            continue;
        at += cell->key.gpu_type * b->n_neighbours;
        double var = (double)b->pair_sd[at] * (double)b->pair_sd[at];
        double trust = var / (var + cell_variance(cell) + REFINE_NOISE * REFINE_NOISE);
        double mean = (double)(b->alone[cell->key.gpu_type] + b->own[at]);
        b->own[at] += (float)(trust * (cell->ln_speed - mean));
        b->pair_sd[at] = (float)sqrt(var * (1 - trust));
    }
}

/* Add what columns say of this row; not where the very pair was measured: that is in the row's own
 * evidence already.
 */
static void add_columns(const struct refiner *r, struct workload_row *row)
{
    struct p2_estimates *b = &row->b;

    for (int j = 0; j < b->n_neighbours; j++) {
        int neighbour = b->neighbour[j];
        const struct workload_column *c = neighbour < r->n_news ? &r->news[neighbour].column : NULL;
        if (!c || row->workload >= c->n || has_met(r, row->workload, neighbour))
            continue;
        for (int g = 0; g < b->n_types; g++) {
            int at = g * b->n_neighbours + j, from = g * c->n + row->workload;
            b->own[at] = fminf(b->own[at] + c->shift[from], 0);
            b->pair_sd[at] *= c->narrow[from];
        }
    }
}

static int correct_row(struct refiner *r, int workload, int from, int to, struct workload_row *out,
                       struct err *e)
{
    struct p2_observation seen[OBSERVED_MAX];

    *out = (struct workload_row){ .workload = workload, .from = from, .to = to };
    out->n_cells = observed_cells(r, workload, out->cells);
    line_up(r, out);
    if (r->estimator->context)
        p2_estimates_from_p1(r->estimator->context, workload, &out->b);
    else
        believe_roofline(r, workload, &out->b);
    look(r, out, seen);
    struct p2_sightings sightings = { out->n_cells, seen };
    int rc = p2_refine(&r->arena, r->p2, P2_CHAMPION, &sightings, &out->b, e);
    if (rc == 0 && out->n_cells == OBSERVED_MAX)
        correct_left_out(r, out);
    if (rc == 0)
        add_columns(r, out);
    return rc;
}

/* ---- leaving it in the catalog ---- */

static struct stored_estimate estimate_alone(const struct refiner *r,
                                             const struct workload_row *row, int type)
{
    const struct p2_estimates *b = &row->b;
    struct limit_bend bend = loss_of(r, row->workload, type);

    return (struct stored_estimate){ .is_set = true,
                                     .ln_speed = b->alone[type],
                                     .ln_speed_sd = b->alone_sd[type],
                                     .ln_watts = row->has_watts ? b->watts[type] : NAN,
                                     .ln_watts_sd = row->has_watts ? b->watts_sd[type] : NAN,
                                     .ln_loss = (float)log(bend.loss),
                                     .loss_sd = (float)bend.loss_sd,
                                     .loss_at = (float)bend.at };
}

static struct stored_estimate estimate_beside(const struct workload_row *row, int type,
                                              int neighbour)
{
    const struct p2_estimates *b = &row->b;
    int at = type * b->n_neighbours + position(row, neighbour);

    return (struct stored_estimate){ .is_set = true,
                                     .ln_speed = b->alone[type] + b->own[at],
                                     .ln_speed_sd = b->pair_sd[at],
                                     .ln_watts = NAN,
                                     .ln_watts_sd = NAN };
}

/* The workload's cells beside neighbours from .. to-1, which have just appeared, or of which
 * something was learned: what is known of the workload reaches them too. If it 'has_changed'
 * itself, also those alone, and the whole row counts as another.
 */
static int correct(struct refiner *r, int workload, int from, int to, bool has_changed,
                   struct err *e)
{
    struct workload_row row;
    int rc = correct_row(r, workload, from, to, &row, e);

    for (int type = 0; type < r->estimator->n_types && rc == 0; type++) {
        struct stored_estimate est;
        if (has_changed) {
            est = estimate_alone(r, &row, type);
            catalog_put_estimate(r->catalog, workload, type, -1, &est);
        }
        for (int n = from; n < to; n++) {
            est = estimate_beside(&row, type, n);
            catalog_add_estimate(r->catalog, workload, type, n, &est);
        }
    }
    arena_reset(&r->arena);
    return rc;
}

/* A workload that has just appeared is a possible neighbour of all others. Those that come
 * with measurements of their own are corrected whole, and so are all when a description
 * changed that priors are made from, when a type is new, and when a whole type or workload
 * drifted, so that old measurements count for less.
 */
static int meet_newcomers(struct refiner *r, struct err *e)
{
    bool is_same = r->descriptions == r->estimator->descriptions &&
                   r->n_types == r->estimator->n_types && r->n_drifts == r->catalog->n_drifts;
    int from = is_same ? r->n_met : 0, rc = 0;

    if (!is_same)
        forget_columns(r);
    r->descriptions = r->estimator->descriptions;
    r->n_types = r->estimator->n_types;
    r->n_drifts = r->catalog->n_drifts;
    r->n_met = r->estimator->n_workloads;
    for (int w = 0; w < r->n_met && from < r->n_met && rc == 0; w++) {
        if (r->catalog->first_cell[w] < 0)
            continue;
        if (w >= from)
            news_of(r, w)->is_stale = true;
        else
            rc = correct(r, w, from, r->n_met, false, e);
    }
    for (int w = from; from > 0 && w < r->estimator->n_filled; w++)    // somebody has looked there
        catalog_touch_column(r->catalog, w);
    return rc;
}

/* ---- columns ---- */

/* What was seen of others beside a workload, the newest first; only where the speed alone is known
 * too. Returns how many, at most COLUMN_SEEN_MAX.
 */
static int look_at_column(const struct refiner *r, int workload, struct p2_observation *seen)
{
    const struct cell *cells[COLUMN_SEEN_MAX];
    int n = 0;

    for (int other = 0; other < r->estimator->n_workloads; other++)
        for (int g = 0; g < r->estimator->n_types && r->catalog->first_cell[other] >= 0; g++) {
            const struct cell *beside = plain_cell(r, other, g, workload);
            if (beside && plain_cell(r, other, g, -1))
                n = keep_telling(cells, n, COLUMN_SEEN_MAX, beside);
        }
    for (int i = 0; i < n; i++) {
        const struct cell_key *k = &cells[i]->key;
        const struct cell *alone = plain_cell(r, k->workload, k->gpu_type, -1);
        seen[i] = (struct p2_observation){
            .type = k->gpu_type,
            .neighbour = k->workload,
            .ln_speed = (double)NAN,
            .ln_r_partner = cells[i]->ln_speed - alone->ln_speed,
            .ln_r_partner_var = cell_variance(cells[i]) + cell_variance(alone),
            .ln_watts = (double)NAN,
        };
    }
    return n;
}

/* By how much an sd shrinks that is of two parts, where the second was 'before' and is 'after'. */
static float narrowed(const struct p1_context *s, int workload, int type, float before, float after)
{
    struct p1_alone alone = p1_alone(s, workload, type);
    float z = alone.ln_speed_sd, cross = 2 * (float)p1_cross(s, alone.regime) * z;
    float was = z * z + before * before + cross * before,
          is = z * z + after * after + cross * after;

    return was > 0 ? sqrtf(fminf(fmaxf(is / was, 0.01F), 1)) : 1;
}

/* A workload's effect on all, from what was seen of it; of n 0 where nothing was, or P1 knows it
 * already.
 */
static int learn_column(struct refiner *r, int workload, struct workload_column *out, struct err *e)
{
    const struct p1_context *context = r->estimator->context;
    int n_types = r->estimator->n_types, n = r->estimator->n_workloads;
    size_t size = (size_t)n_types * (size_t)n;
    struct p2_observation seen[COLUMN_SEEN_MAX];
    struct p2_estimates b, believed;

    *out = (struct workload_column){ 0 };
    if (p1_knows(context, workload))
        return 0;
    struct p2_sightings of = { look_at_column(r, workload, seen), seen };
    if (of.n == 0)
        return 0;
    p2_estimates_make(&r->arena, n_types, n, true, &b);
    p2_estimates_from_p1(context, workload, &b);
    p2_estimates_copy(&r->arena, &b, &believed);
    int rc = p2_refine(&r->arena, r->p2, P2_CHAMPION, &of, &b, e);
    if (rc < 0)
        return rc;
    out->n = n;
    RESIZE(out->shift, size);
    RESIZE(out->narrow, size);
    for (int i = 0; i < n_types * n; i++) {
        out->shift[i] = b.partner[i] - believed.partner[i];
        out->narrow[i] = narrowed(context, i % n, i / n, believed.partner_sd[i], b.partner_sd[i]);
    }
    return 0;
}

/* A column before and after: what it says of 'row' on 'type'. */
static float shift_of(const struct workload_column *c, int row, int type)
{
    return row < c->n ? c->shift[type * c->n + row] : 0;
}

static float narrow_of(const struct workload_column *c, int row, int type)
{
    return row < c->n ? c->narrow[type * c->n + row] : 1;
}

/* What the row believes beside 'workload', with the column's old say replaced by its new one, as
 * correcting it anew would give. False: the old one was cut off at no slowdown, so that what the
 * row itself believes is lost.
 */
static bool move_cells(struct refiner *r, int row, int workload, const struct workload_column *was,
                       const struct workload_column *is)
{
    for (int g = 0; g < r->estimator->n_types; g++) {
        const struct stored_estimate *alone = catalog_estimate(r->catalog, row, g, -1);
        const struct stored_estimate *beside = catalog_estimate(r->catalog, row, g, workload);
        if (!alone || !beside)
            return false;
        struct stored_estimate est = *beside;
        float ln_r = est.ln_speed - alone->ln_speed, old = shift_of(was, row, g);
        if (old > 0 && ln_r >= 0)
            return false;
        est.ln_speed = alone->ln_speed + fminf(ln_r - old + shift_of(is, row, g), 0);
        est.ln_speed_sd *= narrow_of(is, row, g) / narrow_of(was, row, g);
        catalog_add_estimate(r->catalog, row, g, workload, &est);
    }
    return true;
}

/* Bring what others believe of a workload that is new beside them up to date. Rows that have news
 * of their own are corrected whole soon after; those that have met it know better.
 */
static int settle_column(struct refiner *r, int workload, struct err *e)
{
    struct workload_column was = news_of(r, workload)->column, is;

    r->news[workload].column.is_stale = false;
    int rc = learn_column(r, workload, &is, e);
    arena_reset(&r->arena);
    if (is.n == 0)
        return rc;
    r->news[workload].column = is;
    for (int row = 0; row < r->estimator->n_workloads && rc == 0; row++)
        if (r->catalog->first_cell[row] >= 0 && !has_news(r, row) && !has_met(r, row, workload) &&
            !move_cells(r, row, workload, &was, &is))
            rc = correct(r, row, workload, workload + 1, false, e);
    catalog_touch_column(r->catalog, workload);
    free(was.shift);
    free(was.narrow);
    return rc;
}

static int settle_columns(struct refiner *r, struct err *e)
{
    int n = r->estimator->n_workloads, rc = 0;

    if (!r->estimator->context)
        return 0;
    for (int w = 0; w < n && rc == 0; w++)
        if (news_of(r, w)->column.is_stale)
            rc = settle_column(r, w, e);
    return rc;
}

int refine_settle(struct refiner *r, struct err *e)
{
    if (r->is_frozen)
        return 0;
    int rc = meet_newcomers(r, e), n_settled = 0;

    if (rc == 0)
        rc = settle_columns(r, e);
    for (int w = 0; w < r->n_news; w++) {
        if (!r->news[w].is_stale)
            continue;
        assert(w < r->estimator->n_workloads);    // measured, so it was estimated
        r->news[w].is_stale = false;
        n_settled++;
        if (rc == 0)
            rc = correct(r, w, 0, r->estimator->n_workloads, true, e);
    }
    return rc < 0 ? rc : n_settled;
}
