#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "estimate/hierarchical/inner.h"

/* ---- one column ---- */

/* What it has of the i-th reading, in its sums; 'sign' -1: no more. */
static void count_in(const struct posterior *p, struct column *c, int i, int sign)
{
    double v = (double)c->v[i], signed_v = sign * v;

    c->s += p->s[i] * signed_v;
    c->self += v * signed_v;
    const struct column *joint = p->joint[c->law];
    for (int l = 0; l < JOINTS; l++)
        c->joint[l] += joint[l].n > i ? (double)joint[l].v[i] * signed_v : 0;
}

/* Those of a workload from the first reading on, as far as the posterior was made with: always as
 * many at once, so that they are the same again. The factor passes the processor once for all.
 */
static void columns_begin(const struct posterior *p, struct column **list, int m, double *k)
{
    if (p->n_made > 0)
        cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, p->n_made,
                    1, p->factor, POSTERIOR_MOST, k, POSTERIOR_MOST);
    for (int j = 0; j < m; j++) {
        struct column *c = list[j];
        c->v = heap_array(POSTERIOR_MOST, sizeof *c->v);
        for (; c->n < p->n_made; c->n++) {
            c->v[c->n] = (float)k[(size_t)j * POSTERIOR_MOST + (size_t)c->n];
            count_in(p, c, c->n, 1);
        }
    }
}

/* Work out the rest of several: 'k' (m, POSTERIOR_MOST) is their covariance with the readings, read
 * where it is new and overwritten. All from numbers as they are kept and each by itself, so that
 * they are the same whenever they are asked for, and with whom; a row of the factor serves all.
 */
static void columns_extend(const struct posterior *p, struct column **list, int m, double *k)
{
    int from = p->n;

    for (int j = 0; j < m; j++) {
        struct column *c = list[j];
        if (!c->v)
            c->v = heap_array(POSTERIOR_MOST, sizeof *c->v);
        c->is_made = true;
        from = c->n < from ? c->n : from;
        for (int i = 0; i < c->n; i++)
            k[(size_t)j * POSTERIOR_MOST + (size_t)i] = (double)c->v[i];
    }
    for (int i = from; i < p->n; i++) {
        const double *row = p->factor + (size_t)i * POSTERIOR_MOST;
        for (int j = 0; j < m; j++) {
            struct column *c = list[j];
            double *v = k + (size_t)j * POSTERIOR_MOST;
            if (i < c->n)
                continue;
            if (i >= c->first)
                v[i] -= cblas_ddot(i - c->first, row + c->first, 1, v + c->first, 1);
            c->v[i] = (float)(v[i] / row[i]);
            v[i] = (double)c->v[i];
            c->n = i + 1;
            count_in(p, c, i, 1);
        }
    }
}

static void column_cut(const struct posterior *p, struct column *c, int n)
{
    for (; c->n > n; c->n--)
        count_in(p, c, c->n - 1, -1);
}

/* Add up anew: 's' is another. */
static void column_sum(const struct posterior *p, struct column *c)
{
    c->s = 0;
    for (int i = 0; i < c->n; i++)
        c->s += p->s[i] * (double)c->v[i];
}

/* ---- workloads on types ---- */

void columns_make_room(struct posterior *p)
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

/* A workload on a type beside itself: whose parts as job and as neighbour are everybody's. */
static struct effects beside_itself(const struct posterior *p, enum effects_part part, int type,
                                    int job)
{
    const struct reading r = { .of = part == PART_ALONE ? READ_ALONE : READ_SLOWDOWN,
                               .type = type,
                               .job = job,
                               .neighbour = part == PART_ALONE ? -1 : job };

    return effects_of(p->site, &r);
}

/* Its covariance with the readings that are new to it. */
static void fill_part(const struct posterior *p, enum effects_part part, int type, int workload,
                      struct column *c, double *k)
{
    struct effects q = beside_itself(p, part, type, workload);

    c->law = q.law;
    for (int i = c->n; i < p->n; i++)
        k[i] = effects_part(&p->v, part, &q, &p->at[i]);
    if (part == PART_ALONE && !c->is_made) {
        c->mean = effects_mean(&p->h, &q);
        c->prior = effects_part(&p->v, part, &q, &q);
    }
}

/* All columns of a workload, on all types. */
static void workload_solve(struct posterior *p, int workload)
{
    int n_types = p->site->n_types, m = n_types * PARTS;
    double *k = heap_array((size_t)m * POSTERIOR_MOST, sizeof *k);
    struct column **list = heap_array((size_t)m, sizeof(struct column *));

    for (int j = 0; j < m; j++) {
        enum effects_part part = (enum effects_part)(j % PARTS);
        list[j] = &p->columns[part][workload * n_types + j / PARTS];
        fill_part(p, part, j / PARTS, workload, list[j], k + (size_t)j * POSTERIOR_MOST);
    }
    columns_begin(p, list, m, k);
    columns_extend(p, list, m, k);
    free(list);
    free(k);
}

const struct column *column_of(struct posterior *p, enum effects_part part, int type, int workload)
{
    struct column *c = &p->columns[part][workload * p->site->n_types + type];

    if (!c->is_made)
        workload_solve(p, workload);
    if (c->n < p->n) {
        double k[POSTERIOR_MOST];
        fill_part(p, part, type, workload, c, k);
        columns_extend(p, &c, 1, k);
    }
    return c;
}

/* ---- crossed effects ---- */

/* Of a reading with what has this key. */
static double crossed_covariance(const struct posterior *p, const struct effects *e, uint64_t key)
{
    struct crossed c[CROSSED];

    if (e->of == READ_ALONE)
        return 0;
    effects_crossed(e, c);
    for (int i = 0; i < CROSSED; i++)
        if (c[i].key == key)
            return p->v.at[c[i].effect] * c[i].weight;
    return 0;
}

/* As many are worked out at once; those that stand together were read together. */
enum { BLOCK = 32 };

static void crossed_solve(struct posterior *p, int at)
{
    double *k = heap_array((size_t)BLOCK * POSTERIOR_MOST, sizeof *k);
    struct column *list[BLOCK];
    struct crossed c[CROSSED];
    int m = 0, from = p->n;

    while (m < BLOCK && at + m < p->n_crossed && !p->crossed[at + m].is_made) {
        list[m] = &p->crossed[at + m];
        from = list[m]->first < from ? list[m]->first : from;
        m++;
    }
    for (int i = from; i < p->n; i++) {
        effects_crossed(&p->at[i], c);
        for (int l = 0; l < CROSSED && p->at[i].of != READ_ALONE; l++) {
            int j = map_u64_get(&p->crossed_by_key, c[l].key) - at;
            if (j >= 0 && j < m)
                k[(size_t)j * POSTERIOR_MOST + (size_t)i] = p->v.at[c[l].effect] * c[l].weight;
        }
    }
    columns_extend(p, list, m, k);
    free(k);
}

const struct column *column_crossed(struct posterior *p, const struct crossed *q)
{
    int at = map_u64_get(&p->crossed_by_key, q->key);

    if (at < 0)
        return NULL;
    struct column *c = &p->crossed[at];
    if (!c->is_made)
        crossed_solve(p, at);
    if (c->n < p->n) {
        double k[POSTERIOR_MOST];
        for (int i = c->n; i < p->n; i++)
            k[i] = crossed_covariance(p, &p->at[i], q->key);
        columns_extend(p, &c, 1, k);
    }
    return c;
}

void posterior_warm(struct posterior *p)
{
    for (int at = 0; at < p->n_crossed; at++)
        if (!p->crossed[at].is_made)
            crossed_solve(p, at);
}

/* A reading beside a neighbour: its crossed effects have columns from now on. */
static void note_crossed(struct posterior *p, int reading)
{
    const struct effects *e = &p->at[reading];
    struct crossed c[CROSSED];

    effects_crossed(e, c);
    for (int i = 0; i < CROSSED && e->of != READ_ALONE; i++) {
        if (map_u64_get(&p->crossed_by_key, c[i].key) >= 0)
            continue;
        GROW(p->crossed, p->n_crossed, p->cap_crossed);
        p->crossed[p->n_crossed] = (struct column){ .first = reading, .law = e->law };
        map_u64_set(&p->crossed_by_key, c[i].key, p->n_crossed++);
    }
}

/* ---- all of them ---- */

static void extend_joint(struct posterior *p, enum beside_law law)
{
    double k[POSTERIOR_MOST], (*both)[JOINTS] = p->joint_joint[law];
    struct column *joint = p->joint[law];

    for (int l = 0; l < JOINTS; l++) {
        int at = BESIDE_JOINT + l;
        struct column *c = &joint[l];
        c->law = law;
        for (int i = c->n; i < p->n; i++)
            k[i] = p->at[i].law == law
                       ? effects_law_sd[law] * p->v.at[BESIDE_SLOPES + at] * p->at[i].beside[at]
                       : 0;
        columns_extend(p, &c, 1, k);
    }
    for (int l = 0; l < JOINTS; l++)
        for (int m = 0; m < JOINTS; m++)
            both[l][m] = (double)cblas_sdot(p->n, joint[l].v, 1, joint[m].v, 1);
}

void columns_add(struct posterior *p, int from)
{
    for (int i = from; i < p->n; i++)
        note_crossed(p, i);
    for (enum beside_law law = 0; law < LAWS; law++)
        if (p->has_law[law])
            extend_joint(p, law);
}

void columns_cut(struct posterior *p, int n)
{
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < p->n_columns; k++)
            column_cut(p, &p->columns[i][k], n);
    for (int k = 0; k < p->n_crossed; k++) {
        column_cut(p, &p->crossed[k], n);
        p->crossed[k].first = p->crossed[k].first < n ? p->crossed[k].first : n;
    }
    for (int l = 0; l < LAWS * JOINTS; l++)
        column_cut(p, &p->joint[l / JOINTS][l % JOINTS], n);
}

void columns_renew(struct posterior *p)
{
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < p->n_columns; k++)
            column_sum(p, &p->columns[i][k]);
    for (int k = 0; k < p->n_crossed; k++)
        column_sum(p, &p->crossed[k]);
    for (int l = 0; l < LAWS * JOINTS; l++)
        column_sum(p, &p->joint[l / JOINTS][l % JOINTS]);
}

static void release(struct column *list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i].v);
}

void columns_release(struct posterior *p)
{
    for (int law = 0; law < LAWS; law++)
        release(p->joint[law], JOINTS);
    release(p->crossed, p->n_crossed);
    free(p->crossed);
    map_u64_release(&p->crossed_by_key);
    for (int i = 0; i < PARTS; i++) {
        release(p->columns[i], p->n_columns);
        free(p->columns[i]);
    }
}
