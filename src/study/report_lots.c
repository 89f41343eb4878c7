#include "study/report/inner.h"

#include <math.h>
#include <string.h>

bool is_oracle(const char *policy)
{
    return strcmp(policy, "gogh-oracle") == 0 || strcmp(policy, "bound") == 0;
}

const char *load_title(struct arena *a, double load)
{
    return load > 0 ? arena_printf(a, "load %g", load) : "trace as it is";
}

const char *knowledge_title(enum knowledge k)
{
    static const char *const titles[] = {
        [KNOWS_NOTHING] = "an empty catalog",
        [KNOWS_PRETRAINED] = "the pretrained model",
        [KNOWS_OTHERS] = "a catalog without one family",
        [KNOWS_TRUTH] = "the truth",
    };

    return titles[k];
}

/* ---- rows to sheets ---- */

static struct sheet *sheet_of(struct report *r, const struct scenario *s)
{
    for (int i = 0; i < r->n_sheets; i++)
        if (r->sheets[i].scenario == s)
            return &r->sheets[i];
    r->sheets[r->n_sheets].scenario = s;
    return &r->sheets[r->n_sheets++];
}

static struct lot *lot_of(struct sheet *s, const struct run_key *k)
{
    for (int i = 0; i < s->n_lots; i++)
        if (run_is_alike(&s->lots[i].key, k))
            return &s->lots[i];
    s->lots[s->n_lots].key = *k;
    return &s->lots[s->n_lots++];
}

static void add_load(struct sheet *s, double load)
{
    for (int i = 0; i < s->n_loads; i++)
        if (s->loads[i] == load)
            return;
    s->loads[s->n_loads++] = load;
}

static void add_knowledge(struct sheet *s, const struct run_key *k)
{
    if (is_oracle(k->policy))
        return;
    for (int i = 0; i < s->n_knows; i++)
        if (s->knows[i] == k->knows)
            return;
    s->knows[s->n_knows++] = k->knows;
}

static void add_types(struct report *r, struct sheet *s, const struct run_result *res)
{
    if (s->n_types > 0 || res->n_types == 0)
        return;
    s->types = ARENA_ARRAY(r->a, const char *, (size_t)res->n_types);
    for (int i = 0; i < res->n_types; i++)
        s->types[s->n_types++] = res->types[i].name;
}

static void open_cluster(struct report *r, struct sheet *s)
{
    const char *text = s->scenario->cluster;

    s->has_cluster = text != NULL && cluster_parse(r->a, s->scenario->name, text, strlen(text),
                                                   &s->cluster, NULL) == 0;
}

/* Arrays are as long as the book could make them. */
static void sheet_make_room(struct report *r, struct sheet *s, size_t n_rows)
{
    if (s->lots != NULL)
        return;
    s->lots = ARENA_ARRAY(r->a, struct lot, n_rows);
    s->loads = ARENA_ARRAY(r->a, double, n_rows);
    s->knows = ARENA_ARRAY(r->a, enum knowledge, n_rows);
    open_cluster(r, s);
}

static void add_row(struct report *r, const struct book_row *row, size_t n_rows)
{
    struct sheet *s = sheet_of(r, row->key.scenario);
    struct lot *c;

    sheet_make_room(r, s, n_rows);
    c = lot_of(s, &row->key);
    if (c->rows == NULL)
        c->rows = ARENA_ARRAY(r->a, const struct book_row *, n_rows);
    c->rows[c->n++] = row;
    add_load(s, row->key.load);
    add_knowledge(s, &row->key);
    add_types(r, s, &row->result);
}

/* Rows of a scenario, so that arrays have no more room than they can need. */
static size_t count_rows(const struct book *b, const struct scenario *s)
{
    size_t n = 0;

    for (int i = 0; i < b->n_rows; i++)
        n += b->rows[i].key.scenario == s;
    return n;
}

void report_sort(struct report *r)
{
    const struct book *b = r->book;

    r->sheets = ARENA_ARRAY(r->a, struct sheet, (size_t)b->n_rows);
    for (int i = 0; i < b->n_rows; i++)
        add_row(r, &b->rows[i], count_rows(b, b->rows[i].key.scenario));
}

static const struct lot *find(const struct sheet *s, const struct wanted *w, int knows)
{
    for (int i = 0; i < s->n_lots; i++) {
        const struct run_key *k = &s->lots[i].key;

        if (k->load == w->load && strcmp(k->policy, w->policy) == 0 &&
            k->has_limits == w->has_limits && strcmp(k->without, w->without) == 0 &&
            (knows < 0 || (int)k->knows == knows))
            return &s->lots[i];
    }
    return NULL;
}

const struct lot *sheet_find(const struct sheet *s, struct wanted w)
{
    const struct lot *c = find(s, &w, w.knows);

    return c != NULL || strcmp(w.policy, "gogh") == 0 ? c : find(s, &w, -1);
}

int sheet_seeds(const struct sheet *s)
{
    int most = 0;

    for (int i = 0; i < s->n_lots; i++)
        most = s->lots[i].n > most ? s->lots[i].n : most;
    return most;
}

int report_seeds(const struct report *r)
{
    int most = 0;

    for (int i = 0; i < r->n_sheets; i++)
        most = sheet_seeds(&r->sheets[i]) > most ? sheet_seeds(&r->sheets[i]) : most;
    return most;
}

bool sheet_footing(const struct sheet *s, double load)
{
    int ours[2] = { 0, 0 }, theirs[2] = { 0, 0 };

    for (int i = 0; i < s->n_lots; i++) {
        const struct run_key *k = &s->lots[i].key;

        if (k->load != load || k->without[0] != '\0' || is_oracle(k->policy))
            continue;
        if (strcmp(k->policy, "gogh") == 0)
            ours[k->has_limits]++;
        else
            theirs[k->has_limits]++;
    }
    return (ours[1] > 0 && theirs[1] > 0) || ours[0] + theirs[0] == 0;
}

/* ---- figures ---- */

double figure_energy(const struct run_result *r)
{
    return r->energy_j_per_work;
}

double figure_attainment(const struct run_result *r)
{
    return 100 * r->promise_attainment;
}

struct spread lot_spread(const struct report *r, const struct lot *c, figure_f *f)
{
    double *v = ARENA_ARRAY(r->a, double, (size_t)c->n);

    for (int i = 0; i < c->n; i++)
        v[i] = f(&c->rows[i]->result);
    return spread_within(spread_of(v, c->n), 0, INFINITY);    // no figure is below 0
}

struct spread lot_share(const struct report *r, const struct lot *c, figure_f *f)
{
    return spread_within(lot_spread(r, c, f), 0, 100);
}

struct undone lot_undone(const struct lot *c)
{
    struct undone u = { 0 };

    if (strcmp(c->key.policy, "bound") == 0)
        return u;
    for (int i = 0; i < c->n; i++) {
        const struct run_result *res = &c->rows[i]->result;

        u.n += res->jobs - res->finished;
        u.jobs += res->jobs;
        u.failed += res->failed;
    }
    return u;
}

static const struct book_row *row_of_seed(const struct lot *c, int seed)
{
    for (int i = 0; i < c->n; i++)
        if (c->rows[i]->key.seed == seed)
            return c->rows[i];
    return NULL;
}

/* Change in percent, or the plain difference, seed by seed. */
static struct spread paired(const struct report *r, const struct lot *ours,
                            const struct lot *theirs, figure_f *f, bool is_change)
{
    double *v = ARENA_ARRAY(r->a, double, (size_t)ours->n);
    int n = 0;

    for (int i = 0; i < ours->n; i++) {
        const struct book_row *other = row_of_seed(theirs, ours->rows[i]->key.seed);
        double a, b;

        if (other == NULL)
            continue;
        a = f(&ours->rows[i]->result);
        b = f(&other->result);
        v[n++] = is_change ? 100 * (a / b - 1) : a - b;
    }
    return spread_of(v, n);
}

struct spread lot_change(const struct report *r, const struct lot *ours, const struct lot *theirs,
                         figure_f *f)
{
    return paired(r, ours, theirs, f, true);
}

struct spread lot_difference(const struct report *r, const struct lot *ours,
                             const struct lot *theirs, figure_f *f)
{
    return paired(r, ours, theirs, f, false);
}
