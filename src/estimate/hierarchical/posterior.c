#include "estimate/hierarchical/posterior.h"

#include <cblas.h>
#include <errno.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/map.h"

/* With K = L L' the covariance of the readings, k_q that of the readings with a cell q, and
 * s = L^-1 (y - mean): the belief of q has mean m_q + s'v_q and variance k_qq - v_q'v_q, where
 * v_q = L^-1 k_q. k_q is a sum of parts, and so is v_q:
 *
 *   alone(type, job)                                             of its speed alone
 *   job(type, job) + by(type, neighbour)                         of its slowdown,
 *     + sum of joint features x_l times joint_l                  which four columns give,
 *     + crossed effects of family and family, family and neighbour, job and family,
 *                                                                where such were read,
 *     + cell(type, job, neighbour)                               where that very cell was
 */
enum part { PART_ALONE, PART_JOB, PART_BY, PARTS };
enum { JOINTS = BESIDE_X - BESIDE_JOINT };

/* L^-1 of one part of a covariance, in single precision, with its scalar products. */
struct column {
    int n;    // readings that it is worked out for
    float *v;
    double s, self, joint[JOINTS];    // s'v, v'v, v'joint_l
};

struct posterior {
    const struct site *site;
    struct hyper h;
    struct hyper_scale scale;
    struct variances v;
    int n;
    struct effects *at;    // (n)
    double *factor;        // (n, POSTERIOR_MOST) rows of L
    double *s;             // (n)
    double *scratch;       // (POSTERIOR_MOST)
    struct column joint[JOINTS];
    double joint_joint[JOINTS][JOINTS];
    struct column *columns[PARTS];    // (n_columns) by workload and type
    int n_columns;
    struct map_u64 crossed_by_key;
    struct column *crossed;    // (n_crossed)
    int n_crossed, cap_crossed;
};

/* ---- columns ---- */

/* The sum of those effects on a slowdown that are the job's or the neighbour's own. */
static double own_part(const double *slope, bool of_neighbour)
{
    static const int job[] = { BESIDE_SITE,          BESIDE_TYPE,   BESIDE_FAMILY,
                               BESIDE_WORKLOAD,      BESIDE_SMOOTH, BESIDE_TYPE_FAMILY,
                               BESIDE_TYPE_WORKLOAD, BESIDE_SLOPES, BESIDE_SLOPES + 1 };
    static const int by[] = { BESIDE_BY_FAMILY,      BESIDE_BY_WORKLOAD,      BESIDE_BY_SMOOTH,
                              BESIDE_TYPE_BY_FAMILY, BESIDE_TYPE_BY_WORKLOAD, BESIDE_SLOPES + 2,
                              BESIDE_SLOPES + 3 };
    int n = of_neighbour ? (int)(sizeof by / sizeof by[0]) : (int)(sizeof job / sizeof job[0]);
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += slope[of_neighbour ? by[i] : job[i]];
    return sum;
}

static double *row_of(const struct posterior *p, int i)
{
    return p->factor + (size_t)i * POSTERIOR_MOST;
}

/* Work out a column for readings that are new since it was: 'k' (n) is the covariance. */
static void column_extend(const struct posterior *p, struct column *c, const double *k)
{
    double *v = p->scratch;

    if (c->n == 0)
        c->v = heap_array(POSTERIOR_MOST, sizeof *c->v);
    for (int i = 0; i < c->n; i++)
        v[i] = (double)c->v[i];
    for (int i = c->n; i < p->n; i++) {
        const double *row = row_of(p, i);
        v[i] = (k[i] - cblas_ddot(i, row, 1, v, 1)) / row[i];
        c->v[i] = (float)v[i];
        c->s += p->s[i] * v[i];
        c->self += v[i] * v[i];
        for (int l = 0; l < JOINTS; l++)
            c->joint[l] += p->joint[l].n > i ? (double)p->joint[l].v[i] * v[i] : 0;
    }
    c->n = p->n;
}

/* Forget readings from the n-th on. */
static void column_cut(const struct posterior *p, struct column *c, int n)
{
    for (; c->n > n; c->n--) {
        double v = (double)c->v[c->n - 1];
        c->s -= p->s[c->n - 1] * v;
        c->self -= v * v;
        for (int l = 0; l < JOINTS; l++)
            c->joint[l] -= (double)p->joint[l].v[c->n - 1] * v;
    }
}

static double dot(const struct posterior *p, const struct column *a, const struct column *b)
{
    return (double)cblas_sdot(p->n, a->v, 1, b->v, 1);
}

/* A workload on a type beside itself: whose parts as job and as neighbour are everybody's. */
static struct effects beside_itself(const struct posterior *p, enum part part, int type, int job)
{
    const struct reading r = { .of = part == PART_ALONE ? READ_ALONE : READ_SLOWDOWN,
                               .type = type,
                               .job = job,
                               .neighbour = part == PART_ALONE ? -1 : job };

    return effects_of(p->site, &r);
}

/* Room for all workloads that the site has by now. */
static void make_columns(struct posterior *p)
{
    int had = p->n_columns, n = p->site->n_workloads * p->site->n_types;

    if (n <= had)
        return;
    p->n_columns = 2 * n;
    for (int i = 0; i < PARTS; i++) {
        RESIZE(p->columns[i], p->n_columns);
        memset(p->columns[i] + had, 0, (size_t)(p->n_columns - had) * sizeof *p->columns[i]);
    }
}

static const struct column *column_of(struct posterior *p, enum part part, int type, int workload)
{
    struct column *c = &p->columns[part][workload * p->site->n_types + type];

    if (c->n < p->n) {
        struct effects q = beside_itself(p, part, type, workload);
        double k[POSTERIOR_MOST], slope[VARIANCES];
        for (int i = c->n; i < p->n; i++) {
            k[i] = effects_covariance(&p->v, &q, &p->at[i], slope);
            if (part != PART_ALONE)
                k[i] = own_part(slope, part == PART_BY);
        }
        column_extend(p, c, k);
    }
    return c;
}

/* Effects of a pair on a type that are neither the job's nor the neighbour's own. */
enum { CROSSED = BESIDE_CELL - BESIDE_FAMILIES };

static uint64_t crossed_key(enum hyper_at effect, const struct effects *e)
{
    int job = effect == BESIDE_BY_KIN ? e->job : e->family;
    int by = effect == BESIDE_KIN ? e->neighbour : e->by_family;

    return ((uint64_t)(effect - BESIDE_FAMILIES) << 60) | ((uint64_t)e->type << 48) |
           ((uint64_t)job << 24) | (uint64_t)by;
}

/* The column of such an effect; NULL: nothing was read that shares it. */
static const struct column *crossed_of(struct posterior *p, enum hyper_at effect,
                                       const struct effects *q)
{
    uint64_t key = crossed_key(effect, q);
    int at = map_u64_get(&p->crossed_by_key, key);

    if (at < 0)
        return NULL;
    struct column *c = &p->crossed[at];
    if (c->n < p->n) {
        double k[POSTERIOR_MOST];
        for (int i = c->n; i < p->n; i++)
            k[i] = p->at[i].of != READ_ALONE && crossed_key(effect, &p->at[i]) == key
                       ? p->v.at[effect]
                       : 0;
        column_extend(p, c, k);
    }
    return c;
}

/* A reading beside a neighbour was added: its crossed effects have columns from now on. */
static void note_crossed(struct posterior *p, const struct effects *e)
{
    for (int i = 0; i < CROSSED && e->of != READ_ALONE; i++) {
        uint64_t key = crossed_key(BESIDE_FAMILIES + i, e);
        if (map_u64_get(&p->crossed_by_key, key) >= 0)
            continue;
        GROW(p->crossed, p->n_crossed, p->cap_crossed);
        p->crossed[p->n_crossed] = (struct column){ 0 };
        map_u64_set(&p->crossed_by_key, key, p->n_crossed++);
    }
}

static void extend_joint(struct posterior *p)
{
    double k[POSTERIOR_MOST];

    for (int l = 0; l < JOINTS; l++) {
        int at = BESIDE_JOINT + l;
        for (int i = p->joint[l].n; i < p->n; i++)
            k[i] =
                p->at[i].of == READ_ALONE ? 0 : p->v.at[BESIDE_SLOPES + at] * p->at[i].beside[at];
        column_extend(p, &p->joint[l], k);
    }
    for (int l = 0; l < JOINTS; l++)
        for (int m = 0; m < JOINTS; m++)
            p->joint_joint[l][m] = dot(p, &p->joint[l], &p->joint[m]);
}

/* ---- readings ---- */

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
    return rc == 0 ? 0 : err_set(e, EDOM, "the covariance of %d readings is none", p->n);
}

/* Room that posterior_add has when one was just made. */
enum { SPARE = 64 };

/* The i-th of 'n' that are taken of 'all': those alone, which stand first, then evenly. */
static int taken(int i, int n, int all, int n_alone)
{
    int room = n - n_alone;

    if (i < n_alone || n == all || room <= 0)
        return i;
    return n_alone + (int)((long)(i - n_alone) * (all - n_alone) / room);
}

static void take_readings(struct posterior *p, const struct reading *list, int all, double *noise)
{
    int n_alone = 0, n = all < POSTERIOR_MOST - SPARE ? all : POSTERIOR_MOST - SPARE;

    while (n_alone < all && list[n_alone].of == READ_ALONE)
        n_alone++;
    for (int i = 0; i < n; i++) {
        const struct reading *r = &list[taken(i, n, all, n_alone)];
        p->at[i] = effects_of(p->site, r);
        p->s[i] = (double)r->value - effects_mean(&p->h, &p->at[i]);
        noise[i] = (double)r->noise;
        note_crossed(p, &p->at[i]);
    }
    p->n = n;
}

int posterior_create(const struct site *site, const struct hyper *h, struct hyper_scale scale,
                     const struct reading *list, int n, struct posterior **out, struct err *e)
{
    struct posterior *p = heap_array(1, sizeof *p);
    double noise[POSTERIOR_MOST];

    *p = (struct posterior){ .site = site, .h = *h, .scale = scale, .v = hyper_variances(h) };
    p->at = heap_array(POSTERIOR_MOST, sizeof *p->at);
    p->factor = heap_array((size_t)POSTERIOR_MOST * POSTERIOR_MOST, sizeof *p->factor);
    p->s = heap_array(POSTERIOR_MOST, sizeof *p->s);
    p->scratch = heap_array(POSTERIOR_MOST, sizeof *p->scratch);
    take_readings(p, list, n, noise);
    int rc = factorise(p, noise, e);
    *out = rc == 0 ? p : NULL;
    if (rc < 0) {
        posterior_destroy(p);
        return rc;
    }
    if (p->n > 0)
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, p->n, p->factor,
                    POSTERIOR_MOST, p->s, 1);
    extend_joint(p);
    return 0;
}

static void release_columns(struct column *list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i].v);
}

void posterior_destroy(struct posterior *p)
{
    if (!p)
        return;
    release_columns(p->joint, JOINTS);
    release_columns(p->crossed, p->n_crossed);
    for (int i = 0; i < PARTS; i++) {
        release_columns(p->columns[i], p->n_columns);
        free(p->columns[i]);
    }
    map_u64_release(&p->crossed_by_key);
    free(p->crossed);
    free(p->at);
    free(p->factor);
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
    struct effects *at = &p->at[p->n];
    double *row = row_of(p, p->n), noise = (double)r->noise;
    *at = effects_of(p->site, r);
    for (int i = 0; i < p->n; i++)
        row[i] = effects_covariance(&p->v, at, &p->at[i], slope);
    if (p->n > 0)
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, p->n, p->factor,
                    POSTERIOR_MOST, row, 1);
    double left =
        effects_covariance(&p->v, at, at, slope) + noise * noise - cblas_ddot(p->n, row, 1, row, 1);
    if (!(left > 1e-12))
        return err_set(e, EDOM, "a reading that follows from %d others", p->n);
    row[p->n] = sqrt(left);
    p->s[p->n] = ((double)r->value - effects_mean(&p->h, at) - cblas_ddot(p->n, row, 1, p->s, 1)) /
                 row[p->n];
    p->n++;
    note_crossed(p, at);
    extend_joint(p);
    return 0;
}

void posterior_truncate(struct posterior *p, int n)
{
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < p->n_columns; k++)
            column_cut(p, &p->columns[i][k], n);
    for (int k = 0; k < p->n_crossed; k++)
        column_cut(p, &p->crossed[k], n);
    for (int l = 0; l < JOINTS; l++)
        column_cut(p, &p->joint[l], n);
    p->n = p->n < n ? p->n : n;
    extend_joint(p);
}

/* ---- asking ---- */

/* A sum of columns with weights, as far as its mean and its variance go. */
struct sum {
    const struct column *of[3 + CROSSED];
    int n;
    const double *x;    // (JOINTS) weights of the joint columns; NULL: none
};

static void sum_up(const struct posterior *p, const struct sum *q, double *s, double *self)
{
    *s = *self = 0;
    for (int i = 0; i < q->n; i++) {
        *s += q->of[i]->s;
        *self += q->of[i]->self;
        for (int k = 0; k < i; k++)
            *self += 2 * dot(p, q->of[i], q->of[k]);
        for (int l = 0; l < JOINTS && q->x; l++)
            *self += 2 * q->x[l] * q->of[i]->joint[l];
    }
    for (int l = 0; l < JOINTS && q->x; l++) {
        *s += q->x[l] * p->joint[l].s;
        for (int m = 0; m < JOINTS; m++)
            *self += q->x[l] * q->x[m] * p->joint_joint[l][m];
    }
}

/* A cell that was read itself: the whole of its covariance at once. */
static bool was_read(const struct posterior *p, const struct effects *q)
{
    for (int i = 0; i < p->n; i++)
        if (p->at[i].neighbour == q->neighbour && p->at[i].job == q->job &&
            p->at[i].type == q->type)
            return true;
    return false;
}

static void ask_whole(const struct posterior *p, const struct effects *q, double *s, double *self)
{
    double slope[VARIANCES];

    for (int i = 0; i < p->n; i++)
        p->scratch[i] = effects_covariance(&p->v, q, &p->at[i], slope);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, p->n, p->factor,
                POSTERIOR_MOST, p->scratch, 1);
    *s = cblas_ddot(p->n, p->scratch, 1, p->s, 1);
    *self = cblas_ddot(p->n, p->scratch, 1, p->scratch, 1);
}

struct cell_belief posterior_ask(struct posterior *p, enum reading_of of, int type, int job,
                                 int neighbour)
{
    const struct reading r = { of, type, job, of == READ_ALONE ? -1 : neighbour, 0, 0 };
    struct effects q = effects_of(p->site, &r);
    double slope[VARIANCES], s = 0, self = 0;
    struct sum sum = { .n = 0 };

    if (of != READ_ALONE && was_read(p, &q)) {
        ask_whole(p, &q, &s, &self);
    } else if (p->n > 0) {
        make_columns(p);
        if (of != READ_SLOWDOWN)
            sum.of[sum.n++] = column_of(p, PART_ALONE, type, job);
        if (of != READ_ALONE) {
            sum.of[sum.n++] = column_of(p, PART_JOB, type, job);
            sum.of[sum.n++] = column_of(p, PART_BY, type, neighbour);
            sum.x = q.beside + BESIDE_JOINT;
            for (int i = 0; i < CROSSED; i++) {
                const struct column *both = crossed_of(p, BESIDE_FAMILIES + i, &q);
                if (both)
                    sum.of[sum.n++] = both;
            }
        }
        sum_up(p, &sum, &s, &self);
    }
    double scale = of == READ_ALONE      ? p->scale.alone
                   : of == READ_SLOWDOWN ? p->scale.beside
                                         : fmax(p->scale.alone, p->scale.beside);
    double var = effects_covariance(&p->v, &q, &q, slope) - self;
    return (struct cell_belief){ effects_mean(&p->h, &q) + s, scale * sqrt(fmax(var, 1e-6)) };
}
