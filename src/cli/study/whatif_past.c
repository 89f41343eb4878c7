/* whatif_past.c - a site for `gogh whatif`: its GPUs, its jobs, and what is true there. */
#include "cli/study/whatif.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "daemon/service/recover.h"
#include "estimate/estimate.h"
#include "estimate/model/model.h"
#include "sim/hindsight.h"
#include "sim/rerun/rerun.h"

/* ---- worlds ---- */

/* Of a trace: a store's measurements, or the built-in tables, off by what is hidden in the seed. */
static int open_trace(void *self, struct arena *a, uint64_t seed, struct whatif_world *out,
                      struct err *e)
{
    struct whatif_past *s = self;
    const char *truth = s->options->advise.truth;
    int rc = truth != NULL ? ground_open(&s->ground, truth, &s->types, &s->trace, e)
                           : ground_builtin(&s->ground, &s->types, &s->trace, NULL, seed, e);

    (void)a;
    if (rc == 0)
        rc = ground_meet_types(&s->ground, &s->types, e);
    if (rc < 0)
        return rc;
    *out = (struct whatif_world){ .truth = &s->ground.truth,
                                  .known = truth != NULL ? &s->ground.catalog : NULL,
                                  .trace = &s->trace };
    return 0;
}

/* Of accounting: the same, and what the jobs did on the GPUs that they had is their work. */
static int open_sacct(void *self, struct arena *a, uint64_t seed, struct whatif_world *out,
                      struct err *e)
{
    struct whatif_past *s = self;
    struct history *h = &s->advice->history;
    const char *truth = s->options->advise.truth;
    struct history_figures unused;
    int rc = advise_open_ground(s->advice, &s->types, seed, &s->ground, e);

    if (rc == 0)
        rc = ground_meet_types(&s->ground, &s->types, e);
    if (rc == 0 && !s->is_fitted)
        rc = history_fit(h, &s->ground.truth, e);
    if (rc < 0)
        return rc;
    s->is_fitted = true;
    history_play(a, h, &s->ground.truth, s->options->advise.tolerance, false, &unused);
    *out = (struct whatif_world){ .truth = &s->ground.truth,
                                  .known = truth != NULL ? &s->ground.catalog : NULL,
                                  .trace = &h->trace };
    return 0;
}

static void close_ground(void *self)
{
    struct whatif_past *s = self;

    ground_close(&s->ground);
}

/* Of a daemon: what it has measured, and what it believes where it has not. */
static int open_believed(void *self, struct arena *a, uint64_t seed, struct whatif_world *out,
                         struct err *e)
{
    const struct whatif_past *s = self;

    (void)a;
    (void)seed;
    (void)e;
    *out = (struct whatif_world){ .truth = &s->believed, .known = s->catalog, .trace = &s->trace };
    return 0;
}

static void close_nothing(void *self)
{
    (void)self;
}

static int believe(struct whatif_past *s, struct err *e)
{
    struct estimator est;
    int rc = 0, index;

    for (int i = 0; i < s->types.n_types && rc == 0; i++)
        if (catalog_find_type_alike(s->catalog, s->types.types[i].name) < 0)
            rc = catalog_add_type(s->catalog, &s->types.types[i], &index, e);
    if (rc < 0)
        return rc;
    estimator_init(&est, s->catalog, 1.0);
    estimate_use(&est, s->model, s->kind);
    estimate_refresh(&est);
    rc = truth_from_beliefs(&s->believed, s->catalog, &est, e);
    estimator_release(&est);
    return rc;
}

int past_begin(struct whatif_past *s, struct whatif *w, struct err *e)
{
    w->self = s;
    w->open = s->catalog != NULL ? open_believed : s->advice != NULL ? open_sacct : open_trace;
    w->close = s->catalog != NULL ? close_nothing : close_ground;
    return s->catalog != NULL ? believe(s, e) : 0;
}

void past_end(struct whatif_past *s)
{
    truth_release(&s->believed);
}

/* ---- sites ---- */

static int read_trace(struct whatif_past *s, past_f *then, struct err *e)
{
    int rc = cmd_cluster(s->arena, s->options->advise.cluster, &s->cluster, e);

    if (rc == 0)
        rc = trace_read(s->arena, s->options->trace, &s->trace, e);
    if (rc < 0)
        return rc;
    trace_begin_at_first(&s->trace);
    ground_name_batches(s->arena, &s->trace, &s->cluster);
    return then(s, e);
}

static int read_sacct(struct whatif_past *s, past_f *then, struct err *e)
{
    s->advice = ARENA_NEW(s->arena, struct advice);
    *s->advice = (struct advice){ .options = &s->options->advise, .arena = s->arena };
    int rc = advise_read(s->advice, e);
    if (rc < 0)
        return rc;
    s->cluster = s->advice->cluster;
    s->trace = s->advice->history.trace;
    return then(s, e);
}

/* What a daemon has in memory, as nodes and jobs. */
static int look_back(struct whatif_past *s, const struct state *state,
                     const struct cluster_settings *settings, past_f *then, struct err *e)
{
    const struct hindsight h = { .state = state,
                                 .catalog = s->catalog,
                                 .settings = settings,
                                 .from_s = -INFINITY,
                                 .to_s = INFINITY,
                                 .n_jobs_max = INT_MAX };
    int rc = hindsight_cluster(s->arena, state, s->catalog, settings, &s->cluster, e);

    if (rc == 0)
        rc = hindsight_trace(s->arena, &h, &s->cluster, &s->trace, e);
    return rc < 0 ? rc : then(s, e);
}

/* A store says what is there, but not how the daemon was set; a cluster file may. */
static int read_settings(const struct whatif_past *s, struct cluster_settings *out, struct err *e)
{
    struct cluster cl;

    cluster_defaults(out);
    if (s->options->advise.cluster == NULL)
        return 0;
    int rc = cmd_cluster(s->arena, s->options->advise.cluster, &cl, e);
    if (rc == 0)
        *out = cl.settings;
    return rc;
}

static int read_db(struct whatif_past *s, past_f *then, struct err *e)
{
    struct cluster_settings settings = { 0 };
    struct recovered *r = ARENA_NEW(s->arena, struct recovered);
    struct model *m = NULL;
    int rc = read_settings(s, &settings, e);

    if (rc == 0)
        rc = recover_open(r, s->options->db, STORE_READ, e);
    if (rc < 0)
        return rc;
    rc = model_open(NULL, r->store, &m, e);
    s->model = m;
    s->catalog = &r->catalog;
    r->catalog.store = NULL;    // what is added is added in memory
    if (rc == 0)
        rc = look_back(s, &r->ledger.state, &settings, then, e);
    model_destroy(m);
    recover_close(r);
    return rc;
}

struct recorded {
    struct whatif_past *past;
    past_f *then;
};

static int at_end(void *self, const struct rerun_site *is, struct err *e)
{
    const struct recorded *r = self;

    r->past->catalog = is->catalog;
    r->past->model = is->model;
    r->past->kind = is->kind;
    return look_back(r->past, is->state, is->settings, r->then, e);
}

int past_read(struct arena *a, const struct whatif_options *o, past_f *then, struct err *e)
{
    struct whatif_past *s = ARENA_NEW(a, struct whatif_past);

    *s = (struct whatif_past){ .options = o, .arena = a };
    s->source = o->trace != NULL          ? "trace"
                : o->advise.sacct != NULL ? "sacct"
                : o->db != NULL           ? "db"
                                          : "record";
    if (o->trace != NULL)
        return read_trace(s, then, e);
    if (o->advise.sacct != NULL)
        return read_sacct(s, then, e);
    if (o->db != NULL)
        return read_db(s, then, e);
    return rerun_end(a, o->record, at_end, &(struct recorded){ s, then }, e);
}
