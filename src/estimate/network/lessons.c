/* Lessons: what is known of a world at some moment, and what is asked. */
#include "estimate/network/worlds.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"

struct drawing {
    struct rng *r;
    const struct synthetic_world *w;
    int newcomer, hidden_type;        // -1: no type is hidden
    bool is_held[WORLD_WORKLOADS];    // nothing of it is known but the newcomer's own
    float noise;
};

static int below(struct rng *r, int n)
{
    return (int)rng_below(r, (uint64_t)n);
}

static bool has_cell(int n, const struct reading *list, const struct reading *c)
{
    for (int i = 0; i < n; i++)
        if (list[i].of == c->of && list[i].type == c->type && list[i].job == c->job &&
            list[i].neighbour == c->neighbour)
            return true;
    return false;
}

static void know(const struct drawing *d, struct reading c, struct lesson *e)
{
    if (e->n_known == LESSON_KNOWN || has_cell(e->n_known, e->known, &c))
        return;
    c.noise = d->noise;
    c.value = synthetic_value(d->w, c.of, c.type, c.job, c.neighbour) +
              d->noise * (float)rng_normal(d->r);
    e->known[e->n_known++] = c;
}

static void ask(const struct drawing *d, struct reading c, struct lesson *e)
{
    if (e->n_asked == LESSON_ASKED || has_cell(e->n_known, e->known, &c) ||
        has_cell(e->n_asked, e->asked, &c))
        return;
    c.value = synthetic_value(d->w, c.of, c.type, c.job, c.neighbour);
    e->asked[e->n_asked++] = c;
}

/* Somebody for the job to share with; -1: nobody that may be known. */
static int neighbour_draw(const struct drawing *d, int job, bool may_be_held)
{
    int other = below(d->r, d->w->site.n_workloads);

    if (d->w->only_alike)
        other = job;
    return may_be_held || !d->is_held[other] ? other : -1;
}

/* Readings of others. Not all sites have both kinds. */
static void know_others(const struct drawing *d, int n, struct lesson *e)
{
    const struct site *s = &d->w->site;
    double alone = fmin(rng_uniform(d->r), rng_uniform(d->r));    // part of them; rather few

    if (rng_uniform(d->r) < 0.2)
        alone = rng_uniform(d->r) < 0.5;
    for (int tries = 4 * n; tries > 0 && e->n_known < n; tries--) {
        const bool is_alone = rng_uniform(d->r) < alone;
        const int type = below(d->r, s->n_types), job = below(d->r, s->n_workloads);
        struct reading c = { is_alone ? READ_ALONE : READ_SLOWDOWN, type, job, -1, 0, 0 };

        if (d->is_held[c.job] || c.type == d->hidden_type)
            continue;
        if (!is_alone && (c.neighbour = neighbour_draw(d, c.job, false)) < 0)
            continue;
        know(d, c, e);
    }
}

/* A measurement of the newcomer: alone; or packed, which shows its speed, the slowdown of a
 * neighbour that is known alone, and its own where it was measured alone before.
 */
static void know_own(const struct drawing *d, struct lesson *e)
{
    const int job = d->newcomer, type = below(d->r, d->w->site.n_types);
    const int other = neighbour_draw(d, job, true);
    const struct reading alone = { READ_ALONE, type, job, -1, 0, 0 };

    if (type == d->hidden_type)
        return;
    if (rng_uniform(d->r) < 0.3) {
        know(d, alone, e);
        return;
    }
    know(d, (struct reading){ READ_PACKED, type, job, other, 0, 0 }, e);
    know(d, (struct reading){ READ_SLOWDOWN, type, other, job, 0, 0 }, e);
    if (has_cell(e->n_known, e->known, &alone))
        know(d, (struct reading){ READ_SLOWDOWN, type, job, other, 0, 0 }, e);
}

static void ask_all(const struct drawing *d, struct lesson *e)
{
    const struct site *s = &d->w->site;
    const int job = d->newcomer;

    for (int t = 0; t < s->n_types; t++)
        ask(d, (struct reading){ READ_ALONE, t, job, -1, 0, 0 }, e);
    for (int i = 0; i < 14; i++) {
        int other = neighbour_draw(d, job, rng_uniform(d->r) < 0.5), t = below(d->r, s->n_types);

        if (other < 0)
            continue;
        ask(d, (struct reading){ READ_PACKED, t, job, other, 0, 0 }, e);
        ask(d, (struct reading){ READ_SLOWDOWN, t, job, other, 0, 0 }, e);
        ask(d, (struct reading){ READ_SLOWDOWN, t, other, job, 0, 0 }, e);
    }
}

void lesson_draw(struct arena *a, struct rng *r, const struct synthetic_world *w, int n_most,
                 struct lesson *out)
{
    const struct site *s = &w->site;
    const int known[] = { 0, 5, 10, n_most / 4, n_most / 2, n_most };
    static const int own[] = { 0, 0, 1, 2, 3, 5 };
    static const float noises[] = { 0.02f, 0.03f, 0.03f, 0.06f };
    struct drawing d = { .r = r, .w = w, .newcomer = below(r, s->n_workloads), .hidden_type = -1 };
    const bool is_stranger = rng_uniform(r) < 0.65;    // no relative is known either

    d.noise = noises[rng_below(r, 4)];
    for (int i = 0; i < s->n_workloads; i++)
        d.is_held[i] = i == d.newcomer || (is_stranger && s->family[i] == s->family[d.newcomer]);
    if (s->n_types > 1 && rng_uniform(r) < 0.15)
        d.hidden_type = below(r, s->n_types);
    *out = (struct lesson){ .known = ARENA_ARRAY(a, struct reading, LESSON_KNOWN),
                            .asked = ARENA_ARRAY(a, struct reading, LESSON_ASKED) };
    know_others(&d, known[rng_below(r, 6)], out);
    for (int k = own[rng_below(r, 6)]; k > 0; k--)
        know_own(&d, out);
    ask_all(&d, out);
    if (out->n_asked == 0)    // all of it is known: ask for what it would be on a second look
        out->asked[out->n_asked++] =
            (struct reading){ READ_ALONE, 0, d.newcomer, -1, w->alone[d.newcomer][0], 0 };
}
