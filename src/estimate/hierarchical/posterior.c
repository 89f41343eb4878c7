#include "estimate/hierarchical/posterior.h"

#include <cblas.h>
#include <errno.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "estimate/hierarchical/inner.h"

/* ---- readings ---- */

static double *row_of(const struct posterior *p, int i)
{
    return p->factor + (size_t)i * POSTERIOR_MOST;
}

static void solve(const struct posterior *p, double *x)
{
    if (p->n > 0)
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, p->n, p->factor,
                    POSTERIOR_MOST, x, 1);
}

/* Variance that a reading has beside those before it: less is rounding. */
#define LEFT_LEAST 1e-12

static int factorise(struct posterior *p, const double *noise, struct err *e)
{
    double slope[VARIANCES];

    for (int i = 0; i < p->n; i++) {
        double *row = row_of(p, i);
        for (int j = 0; j <= i; j++)
            row[j] = effects_covariance(&p->v, &p->at[i], &p->at[j], slope);
        row[i] += noise[i] * noise[i];
    }
    int rc = p->n ? LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', p->n, p->factor, POSTERIOR_MOST) : 0;
    for (int i = 0; i < p->n && rc == 0; i++)
        rc = !(row_of(p, i)[i] * row_of(p, i)[i] > LEFT_LEAST);
    return rc == 0 ? 0 : err_set(e, EDOM, "the covariance of %d readings is none", p->n);
}

static uint64_t cell_key_of(int type, int job, int neighbour)
{
    return ((uint64_t)type << 48) | ((uint64_t)job << 24) | (uint64_t)(neighbour + 1);
}

int posterior_find(const struct posterior *p, int type, int job, int neighbour)
{
    int i = map_u64_get(&p->read_by_key, cell_key_of(type, job, neighbour));

    return i >= 0 && i < p->n && p->at[i].neighbour == neighbour && p->at[i].job == job &&
                   p->at[i].type == type
               ? i
               : -1;
}

/* In the same map: no type has such a number. */
static uint64_t speed_key_of(int job)
{
    return UINT64_MAX - (uint64_t)job;
}

/* Was a speed of the workload read, alone or packed? */
static bool is_known(const struct posterior *p, int job)
{
    int i = map_u64_get(&p->read_by_key, speed_key_of(job));

    return i >= 0 && i < p->n && p->at[i].job == job && p->at[i].of != READ_SLOWDOWN;
}

static void note_reading(struct posterior *p, int i)
{
    const struct effects *e = &p->at[i];

    if (e->of != READ_SLOWDOWN && !is_known(p, e->job))
        map_u64_set(&p->read_by_key, speed_key_of(e->job), i);
    if (posterior_find(p, e->type, e->job, e->neighbour) < 0)
        map_u64_set(&p->read_by_key, cell_key_of(e->type, e->job, e->neighbour), i);
}

/* Room that posterior_add has when one was just made. */
enum { SPARE = 256 };

/* The i-th of 'n' that are taken of 'all' of a kind: the newest, which stand last, and of the
 * others some, evenly.
 */
static int taken(int i, int n, int all)
{
    int n_old = n - n / 2;

    if (i >= n_old || n_old < 1)
        return all - n + i;
    return (int)((long)i * (all - n / 2) / n_old);
}

/* Of those beside a neighbour this part of the room is theirs, however many are alone. */
enum { BESIDE_ROOM = (POSTERIOR_MOST - SPARE) / 4 };

static void take_readings(struct posterior *p, const struct reading *list, int all, double *noise)
{
    int n_alone = 0, room = POSTERIOR_MOST - SPARE;

    while (n_alone < all && list[n_alone].of == READ_ALONE)
        n_alone++;
    int n_beside = all - n_alone, kept = n_beside < BESIDE_ROOM ? n_beside : BESIDE_ROOM;
    int alone = n_alone < room - kept ? n_alone : room - kept;
    int beside = n_beside < room - alone ? n_beside : room - alone;
    for (p->n = 0; p->n < alone + beside;) {
        int i = p->n++;
        const struct reading *r = &list[i < alone ? taken(i, alone, n_alone)
                                                  : n_alone + taken(i - alone, beside, n_beside)];
        p->at[i] = effects_of(p->site, r);
        p->left[i] = (double)r->value - effects_mean(&p->h, &p->at[i]);
        noise[i] = (double)r->noise;
        note_reading(p, i);
    }
}

/* s = L^-1 left, and all sums with it. */
static void renew(struct posterior *p)
{
    memcpy(p->s, p->left, (size_t)p->n * sizeof *p->s);
    solve(p, p->s);
    columns_renew(p);
    p->is_stale = false;
}

int posterior_create(const struct site *site, const struct hyper *h, struct hyper_scale scale,
                     const struct reading *list, int n, struct posterior **out, struct err *e)
{
    struct posterior *p = heap_array(1, sizeof *p);
    double noise[POSTERIOR_MOST];

    *p = (struct posterior){ .site = site, .h = *h, .scale = scale, .v = hyper_variances(h) };
    p->at = heap_array(POSTERIOR_MOST, sizeof *p->at);
    p->factor = heap_array((size_t)POSTERIOR_MOST * POSTERIOR_MOST, sizeof *p->factor);
    p->left = heap_array(POSTERIOR_MOST, sizeof *p->left);
    p->s = heap_array(POSTERIOR_MOST, sizeof *p->s);
    p->scratch = heap_array(POSTERIOR_MOST, sizeof *p->scratch);
    for (int t = 0; t < site->n_types; t++)
        p->has_law[effects_law(site->sharing[t])] = true;
    take_readings(p, list, n, noise);
    int rc = factorise(p, noise, e);
    *out = rc == 0 ? p : NULL;
    if (rc < 0) {
        posterior_destroy(p);
        return rc;
    }
    p->n_made = p->n;
    renew(p);
    columns_add(p, 0);
    return 0;
}

void posterior_destroy(struct posterior *p)
{
    if (!p)
        return;
    columns_release(p);
    map_u64_release(&p->read_by_key);
    free(p->at);
    free(p->factor);
    free(p->left);
    free(p->s);
    free(p->scratch);
    free(p);
}

int posterior_n(const struct posterior *p)
{
    return p->n;
}

int posterior_add(struct posterior *p, const struct reading *r, struct err *e)
{
    double slope[VARIANCES];

    if (p->n == POSTERIOR_MOST)
        return err_set(e, ENOSPC, "%d readings are known already", p->n);
    if (p->is_stale)
        renew(p);
    struct effects *at = &p->at[p->n];
    double *row = row_of(p, p->n), noise = (double)r->noise;
    *at = effects_of(p->site, r);
    for (int i = 0; i < p->n; i++)
        row[i] = effects_covariance(&p->v, at, &p->at[i], slope);
    solve(p, row);
    double left =
        effects_covariance(&p->v, at, at, slope) + noise * noise - cblas_ddot(p->n, row, 1, row, 1);
    if (!(left > LEFT_LEAST))
        return err_set(e, EDOM, "a reading that follows from %d others", p->n);
    row[p->n] = sqrt(left);
    p->left[p->n] = (double)r->value - effects_mean(&p->h, at);
    p->s[p->n] = (p->left[p->n] - cblas_ddot(p->n, row, 1, p->s, 1)) / row[p->n];
    p->n++;
    note_reading(p, p->n - 1);
    columns_add(p, p->n - 1);
    return 0;
}

void posterior_set(struct posterior *p, int i, double value)
{
    p->left[i] = value - effects_mean(&p->h, &p->at[i]);
    p->is_stale = true;
}

double posterior_value(const struct posterior *p, int i)
{
    return p->left[i] + effects_mean(&p->h, &p->at[i]);
}

void posterior_truncate(struct posterior *p, int n)
{
    if (n >= p->n)
        return;
    columns_cut(p, n);
    p->n = n;
    p->n_made = p->n_made < n ? p->n_made : n;
    columns_add(p, n);
}

/* ---- asking ---- */

/* A cell as a sum of columns, each times its weight. */
struct cell_sum {
    const struct column *of[3 + CROSSED];
    double weight[3 + CROSSED];
    int n;
    double x[BESIDE_X];      // the pair's features
    double joint[JOINTS];    // weights of their columns
    bool is_pair;
    enum beside_law law;
    double mean, prior;    // before anything was read
};

static void sum_add(struct cell_sum *q, const struct column *of, double weight)
{
    q->of[q->n] = of;
    q->weight[q->n++] = weight;
}

/* s'v and v'v; 'v' (POSTERIOR_MOST) is left without the joint features' columns. */
static void sum_up(const struct posterior *p, const struct cell_sum *q, float *v, double *s,
                   double *self)
{
    const double *x = q->joint;

    *s = *self = 0;
    memset(v, 0, (size_t)p->n * sizeof *v);
    for (int i = 0; i < q->n; i++) {
        const struct column *c = q->of[i];
        *s += q->weight[i] * c->s;
        cblas_saxpy(p->n, (float)q->weight[i], c->v, 1, v, 1);
        for (int l = 0; l < JOINTS && q->is_pair; l++)
            *self += 2 * x[l] * q->weight[i] * c->joint[l];
    }
    *self += (double)cblas_sdot(p->n, v, 1, v, 1);
    for (int l = 0; l < JOINTS && q->is_pair; l++) {
        *s += x[l] * p->joint[q->law][l].s;
        for (int m = 0; m < JOINTS; m++)
            *self += x[l] * x[m] * p->joint_joint[q->law][l][m];
    }
}

static void add_pair(struct posterior *p, int type, int job, int neighbour, struct cell_sum *q)
{
    const struct site_on *on = site_on(p->site, job, type), *by = site_on(p->site, neighbour, type);
    const struct effects pair = { .type = type,
                                  .family = p->site->family[job],
                                  .by_family = p->site->family[neighbour],
                                  .batch = effects_batch(on),
                                  .by_batch = effects_batch(by),
                                  .law = effects_law(p->site->sharing[type]) };
    struct crossed both[CROSSED];

    q->is_pair = true;
    q->law = pair.law;
    sum_add(q, column_of(p, PART_JOB, type, job), 1);
    sum_add(q, column_of(p, PART_BY, type, neighbour), 1);
    effects_beside(on, by, q->x);
    for (int l = 0; l < JOINTS; l++)
        q->joint[l] = effects_law_sd[q->law] * q->x[BESIDE_JOINT + l];
    effects_crossed(&pair, both);
    for (int i = 0; i < CROSSED; i++) {
        const struct column *c = column_crossed(p, &both[i]);
        if (c)
            sum_add(q, c, both[i].weight);
    }
    q->mean += effects_beside_mean(&p->h, q->law, q->x);
    q->prior += effects_beside_variance(&p->v, q->law, q->x);
}

/* A cell that was read itself: the whole of its covariance at once. */
static void ask_whole(const struct posterior *p, const struct effects *q, double *s, double *self)
{
    double slope[VARIANCES];

    for (int i = 0; i < p->n; i++)
        p->scratch[i] = effects_covariance(&p->v, q, &p->at[i], slope);
    solve(p, p->scratch);
    *s = cblas_ddot(p->n, p->scratch, 1, p->s, 1);
    *self = cblas_ddot(p->n, p->scratch, 1, p->scratch, 1);
}

static double scale_of(const struct posterior *p, enum reading_of of, int job)
{
    double alone = is_known(p, job) ? p->scale.known : p->scale.alone;

    switch (of) {
    case READ_ALONE:
        return alone;
    case READ_SLOWDOWN:
        return p->scale.beside;
    default:
        return fmax(alone, p->scale.beside);
    }
}

static struct cell_belief belief_of(const struct posterior *p, enum reading_of of, int job,
                                    double mean, double variance)
{
    return (struct cell_belief){ mean, scale_of(p, of, job) * sqrt(fmax(variance, 1e-6)) };
}

struct cell_belief posterior_ask(struct posterior *p, enum reading_of of, int type, int job,
                                 int neighbour)
{
    struct cell_sum q = { .n = 0 };
    float v[POSTERIOR_MOST];
    double s, self;

    columns_make_room(p);
    if (p->is_stale)
        renew(p);
    if (of != READ_SLOWDOWN) {
        const struct column *alone = column_of(p, PART_ALONE, type, job);
        sum_add(&q, alone, 1);
        q.mean += alone->mean;
        q.prior += alone->prior;
    }
    if (of != READ_ALONE)
        add_pair(p, type, job, neighbour, &q);
    if (of != READ_ALONE && posterior_find(p, type, job, neighbour) >= 0) {
        const struct reading r = { of, type, job, neighbour, 0, 0 };
        struct effects whole = effects_of(p->site, &r);
        ask_whole(p, &whole, &s, &self);
    } else {
        sum_up(p, &q, v, &s, &self);
    }
    return belief_of(p, of, job, q.mean + s, q.prior - self);
}

void posterior_ask_pair(struct posterior *p, int type, int job, int neighbour,
                        struct cell_belief *packed, struct cell_belief *slowdown)
{
    struct cell_sum q = { .n = 0 };
    float v[POSTERIOR_MOST];
    double s, self;

    if (posterior_find(p, type, job, neighbour) >= 0) {
        *packed = posterior_ask(p, READ_PACKED, type, job, neighbour);
        *slowdown = posterior_ask(p, READ_SLOWDOWN, type, job, neighbour);
        return;
    }
    columns_make_room(p);
    if (p->is_stale)
        renew(p);
    const struct column *alone = column_of(p, PART_ALONE, type, job);
    add_pair(p, type, job, neighbour, &q);
    sum_up(p, &q, v, &s, &self);
    double both = (double)cblas_sdot(p->n, alone->v, 1, v, 1);
    for (int l = 0; l < JOINTS; l++)
        both += q.joint[l] * alone->joint[l];
    *slowdown = belief_of(p, READ_SLOWDOWN, job, q.mean + s, q.prior - self);
    *packed = belief_of(p, READ_PACKED, job, q.mean + s + alone->mean + alone->s,
                        q.prior - self + alone->prior - alone->self - 2 * both);
}
