#include "optimize/prices/prices.h"

#include <math.h>

#include "base/clock.h"
#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/kept.h"
#include "optimize/prices/master.h"

#define BINS_COARSE 32
#define BINS_MEDIUM 128
#define BINS_FINE 512

/* Temperatures of the ascent on more bins, from prices that are good already. */
#define TAU_AGAIN_FROM 0.001
#define TAU_AGAIN_TO 0.0001
#define TAU_FINE_FROM 0.0005

#define ROUNDS_MOST 12

/* Patterns beyond which the class program is not worth its time: with a thousand kinds hardly two
 * jobs of a pattern are alike, and a vertex rounds to nothing.
 */
#define VERTEX_PATTERNS_MOST 1000000

/* From prices on bins of 'from', or a guess, to prices on those of 'c'; false: there are no more.
 */
static bool convert(struct prices *u, const struct columns *from, const struct columns *c)
{
    struct dual now;

    dual_init(&u->arena, c, &now);
    if (from)
        dual_convert(from, &u->u, c, &now);
    else
        dual_guess(c, &now);
    u->u = now;
    return !from || c->n_bins > from->n_bins;
}

static void find_usual_classes(struct prices *u)
{
    const struct columns *c = u->columns;

    u->class_of_kind = ARENA_ARRAY(&u->arena, int, (size_t)c->p->n_kinds);
    for (int k = 0; k < c->p->n_kinds; k++)
        u->class_of_kind[k] = -1;
    for (int k = 0; k < c->n_classes; k++) {
        int *usual = &u->class_of_kind[c->classes[k].kind];
        if (*usual < 0 || c->classes[k].n_jobs > c->classes[*usual].n_jobs)
            *usual = k;
    }
}

static void certify(struct prices *u, int threads)
{
    const struct problem *p = u->columns->p;
    struct job_choice *choices = ARENA_ARRAY(&u->arena, struct job_choice, (size_t)p->n_jobs);
    struct arena scratch[2];

    arena_init(&scratch[0]);
    arena_init(&scratch[1]);
    u->bound_w = certificate_bound(scratch, u->columns, &u->u, threads, choices);
    u->job_w = ARENA_ARRAY(&u->arena, double, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++)
        u->job_w[j] = choices[j].cost_w;
    arena_release(&scratch[0]);
    arena_release(&scratch[1]);
}

/* From a guess, on ever more bins. */
static void ascend(struct prices *u, const struct problem *p, const struct prices_options *o)
{
    u->columns = columns_make(p, BINS_FINE, o->threads);
    struct columns *coarse = columns_coarse(u->columns, BINS_COARSE);
    struct columns *medium = columns_coarse(u->columns, BINS_MEDIUM);
    convert(u, NULL, coarse);
    ascent_run(coarse, o, o->ascent_until_s, 0, 0, &u->u);
    if (convert(u, coarse, medium))
        ascent_run(medium, o, o->refine_until_s, TAU_AGAIN_FROM, TAU_AGAIN_TO, &u->u);
    if (convert(u, medium, u->columns))
        ascent_run(u->columns, o, o->refine_until_s, TAU_FINE_FROM, TAU_AGAIN_TO, &u->u);
    columns_destroy(coarse);
    columns_destroy(medium);
}

/* As they were kept; false: nothing that fits was. */
static bool recall(struct prices *u, const struct problem *p, const struct prices_options *o)
{
    if (!o->kept || kept_is_empty(o->kept))
        return false;
    u->columns = columns_make(p, BINS_FINE, o->threads);
    dual_init(&u->arena, u->columns, &u->u);
    if (kept_give(o->kept, u->columns, &u->u))
        return true;
    columns_destroy(u->columns);
    return false;
}

struct prices *prices_find(const struct problem *p, const struct prices_options *o)
{
    struct prices *u = heap_array(1, sizeof *u);

    arena_init(&u->arena);
    bool is_kept = recall(u, p, o);
    if (!is_kept)
        ascend(u, p, o);
    if (!is_kept && o->wants_vertex && columns_n_patterns(u->columns) <= VERTEX_PATTERNS_MOST)
        u->master = master_solve(u->columns, o, ROUNDS_MOST, &u->u);
    find_usual_classes(u);
    certify(u, o->threads);
    return u;
}

void prices_destroy(struct prices *u)
{
    if (!u)
        return;
    master_destroy(u->master);
    columns_destroy(u->columns);
    arena_release(&u->arena);
    free(u);
}

double prices_slot_w(const struct prices *u, int kind, double low)
{
    if (u->class_of_kind[kind] < 0)
        return 0;
    const struct job_class *k = &u->columns->classes[u->class_of_kind[kind]];
    return u->u.slot_w[columns_slot(k, low)];
}
