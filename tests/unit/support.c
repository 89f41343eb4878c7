#include "unit/support.h"

#include <check.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text/text.h"
#include "store/inner.h"

enum { WORDS_MAX = 24 };

struct line {
    int n;
    char *word[WORDS_MAX];
    const char *text;    // for messages
};

static void must(int rc, const struct err *e, const char *what)
{
    if (rc < 0)
        ck_abort_msg("%s: %s", what, e->text);
}

int count_rows(struct store *s, const char *table)
{
    sqlite3_stmt *q = NULL;
    char sql[64];

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    ck_assert_int_eq(sqlite3_prepare_v2(s->db, sql, -1, &q, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
    int n = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return n;
}

static double number(const char *word)
{
    double v = NAN;

    if (text_to_double(slice_of(word), &v) < 0)
        ck_abort_msg("'%s' is not a number", word);
    return v;
}

/* The value of the word "key=value", or NULL. */
static const char *value_of(const struct line *l, const char *key)
{
    size_t n = strlen(key);

    for (int i = 1; i < l->n; i++)
        if (strncmp(l->word[i], key, n) == 0 && l->word[i][n] == '=')
            return l->word[i] + n + 1;
    return NULL;
}

static double value_or(const struct line *l, const char *key, double otherwise)
{
    const char *v = value_of(l, key);

    return v ? number(v) : otherwise;
}

int world_job(const struct world *w, const char *name)
{
    int j = state_find_job(&w->ledger.state, name);

    if (j < 0)
        ck_abort_msg("no job '%s' in this world", name);
    return j;
}

int world_workload(const struct world *w, const char *name)
{
    int i = catalog_find_workload(&w->catalog, name);

    if (i < 0)
        ck_abort_msg("no workload '%s' in this world", name);
    return i;
}

int world_type(const struct world *w, const char *name)
{
    int i = catalog_find_type(&w->catalog, name);

    if (i < 0)
        ck_abort_msg("no GPU type '%s' in this world", name);
    return i;
}

void world_apply(struct world *w, const struct event *ev)
{
    struct err e = { 0 };

    must(ledger_append(&w->ledger, ev, 1, &e), &e, event_kind_name(ev->kind));
}

/* ---- the catalog's lines ---- */

static void type_line(struct world *w, const struct line *l)
{
    char *equals = strchr(l->word[1], '=');
    struct err e = { 0 };
    int index;

    if (equals)
        *equals = '\0';
    const struct gpu_type *builtin = gpu_type_builtin(equals ? equals + 1 : l->word[1]);
    ck_assert_msg(builtin != NULL, "no built-in type for %s", l->word[1]);
    struct gpu_type t = *builtin;
    t.name = l->word[1];
    for (int i = 2; i < l->n; i++) {
        char *value = strchr(l->word[i], '=');
        struct slice key = { l->word[i], (size_t)(value - l->word[i]) };
        must(gpu_type_set(&t, key, slice_of(value + 1), &e), &e, l->text);
    }
    must(catalog_add_type(&w->catalog, &t, &index, &e), &e, l->text);
}

static void workload_line(struct world *w, const struct line *l)
{
    struct workload added;
    struct err e = { 0 };
    int index;

    workload_init(&added, l->word[1]);
    for (int i = 2; i < l->n; i++) {
        char *value = strchr(l->word[i], '=');
        struct slice key = { l->word[i], (size_t)(value - l->word[i]) };
        must(workload_set(&w->catalog.arena, &added, key, slice_of(value + 1), &e), &e, l->text);
    }
    added.name = l->word[1];    // a batch renames
    must(catalog_add_workload(&w->catalog, &added, &index, &e), &e, l->text);
}

static void estimate_line(struct world *w, const struct line *l)
{
    int workload = world_workload(w, l->word[1]), type = world_type(w, l->word[2]);
    const char *beside = value_of(l, "beside");
    int neighbour = beside ? world_workload(w, beside) : -1;
    const struct told_cell *known = estimate_told(&w->est, workload, type, neighbour);
    struct told_cell is = { .ln_watts = NAN, .watts_sd = NAN };

    if (known)
        is = *known;
    if (strcmp(l->word[0], "watts") == 0) {
        ck_assert_msg(known != NULL, "%s: give the speed first", l->text);
        is.ln_watts = log(number(l->word[3]));
        is.watts_sd = 0;
    } else {
        is.ln_speed = log(number(l->word[3]));
        is.sd = value_or(l, "sd", 0);
    }
    estimate_tell(&w->est, workload, type, neighbour, &is);
}

static void pairs_line(struct world *w, const struct line *l)
{
    const struct catalog *c = &w->catalog;

    for (int i = 0; i < c->n_workloads; i++)
        for (int t = 0; t < c->n_types; t++) {
            const struct told_cell *alone = estimate_told(&w->est, i, t, -1);
            for (int n = 0; n < c->n_workloads && alone; n++) {
                struct told_cell is = *alone;
                if (estimate_told(&w->est, i, t, n))
                    continue;
                is.ln_speed += log(number(l->word[1]));
                is.ln_watts = is.watts_sd = NAN;
                estimate_tell(&w->est, i, t, n, &is);
                alone = estimate_told(&w->est, i, t, -1);
            }
        }
}

static void unfit_line(struct world *w, const struct line *l)
{
    const char *beside = value_of(l, "beside");
    struct err e = { 0 };
    struct measurement m = { .key = { .workload = world_workload(w, l->word[1]),
                                      .gpu_type = world_type(w, l->word[2]),
                                      .neighbour = beside ? world_workload(w, beside) : -1,
                                      .n_gpus = 1 },
                             .throughput = NAN,
                             .watts = NAN,
                             .noise = NAN };

    must(catalog_record(&w->catalog, &m, 0, &e), &e, l->text);
}

/* ---- the state's lines ---- */

static void node_line(struct world *w, const struct line *l)
{
    int types[WORDS_MAX];

    for (int i = 2; i < l->n; i++)
        types[i - 2] = world_type(w, l->word[i]);
    world_apply(w, &(struct event){ .kind = EVENT_NODE_ADDED,
                                    .time_s = w->now_s,
                                    .node = l->word[1],
                                    .gpu_types = types,
                                    .n_gpus = l->n - 2 });
}

struct job_spec spec_of(const char *name, int workload)
{
    return (struct job_spec){ .name = name,
                              .workload = workload,
                              .steps = 1000,
                              .deadline_s = NAN,
                              .n_gpus = 1,
                              .max_gpus = 1 };
}

static uint64_t types_of(const struct world *w, const char *names)
{
    uint64_t bits = 0;
    char *copy = strdup(names), *rest = copy, *name;

    while ((name = strsep(&rest, ",")))
        bits |= UINT64_C(1) << world_type(w, name);
    free(copy);
    return bits;
}

/* job NAME WORKLOAD [steps= rate= duration= min= deadline= gpus= max= prio= owner=
 * exclusive=1 one_node=1 nodes=2 types=a,b]
 */
static void job_line(struct world *w, const struct line *l)
{
    struct job_spec s = spec_of(l->word[1], world_workload(w, l->word[2]));
    const char *types = value_of(l, "types");

    s.submit_s = w->now_s;
    s.owner = value_of(l, "owner");
    s.steps = value_or(l, "steps", s.steps);
    s.rate = value_or(l, "rate", 0);
    s.kind = s.rate > 0 ? JOB_INFERENCE : JOB_TRAINING;
    s.duration_s = value_or(l, "duration", 3600);
    s.min_throughput = value_or(l, "min", 0);
    s.deadline_s = value_or(l, "deadline", NAN);
    s.n_gpus = (int)value_or(l, "gpus", 1);
    s.max_gpus = (int)value_or(l, "max", s.n_gpus);
    s.priority = (int)value_or(l, "prio", 0);
    s.urgency = value_or(l, "urgency", 0);
    s.is_exclusive = value_or(l, "exclusive", 0) > 0;
    s.n_nodes = value_or(l, "one_node", 0) > 0 ? 1 : (int)value_or(l, "nodes", 0);
    s.allowed_types = types ? types_of(w, types) : 0;
    world_apply(w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .time_s = w->now_s, .spec = &s });
}

static void start_line(struct world *w, const struct line *l)
{
    int gpus[WORDS_MAX], n = 0;
    char *rest = l->word[2], *word;

    while ((word = strsep(&rest, ",")))
        gpus[n++] = (int)number(word);
    world_apply(w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                    .time_s = w->now_s,
                                    .job = world_job(w, l->word[1]),
                                    .gpus = gpus,
                                    .n_gpus = n });
}

static bool change_line(struct world *w, const struct line *l)
{
    static const struct {
        const char *word;
        enum event_kind kind;
    } words[] = {
        { "stop", EVENT_JOB_STOPPED },     { "hold", EVENT_JOB_HELD },
        { "release", EVENT_JOB_RELEASED }, { "finish", EVENT_JOB_FINISHED },
        { "fail", EVENT_JOB_FAILED },      { "cancel", EVENT_JOB_CANCELLED },
    };
    static const char *const node_words[] = { "up", "drain", "down" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(l->word[0], words[i].word) == 0) {
            world_apply(w, &(struct event){ .kind = words[i].kind,
                                            .time_s = w->now_s,
                                            .job = world_job(w, l->word[1]) });
            return true;
        }
    for (int i = 0; i < 3; i++)
        if (strcmp(l->word[0], node_words[i]) == 0) {
            world_apply(w, &(struct event){ .kind = EVENT_NODE_CHANGED,
                                            .time_s = w->now_s,
                                            .node = l->word[1],
                                            .node_state = (enum node_state)i });
            return true;
        }
    return false;
}

static void have_rules(struct world *w)
{
    for (int i = 0; i < WORLD_RULED && !w->has_rules; i++) {
        w->room[i] = (struct engine_node){ LONG_MAX, LONG_MAX };
        w->needs[i] = (struct engine_job){ .barred = w->barred[i] };
    }
    w->has_rules = true;
}

static bool rule_line(struct world *w, const struct line *l)
{
    int node = state_find_node(&w->ledger.state, l->word[strcmp(l->word[0], "bar") == 0 ? 2 : 1]);
    int job = state_find_job(&w->ledger.state, l->word[1]);

    if (strcmp(l->word[0], "room") != 0 && strcmp(l->word[0], "needs") != 0 &&
        strcmp(l->word[0], "bar") != 0)
        return false;
    have_rules(w);
    if (strcmp(l->word[0], "room") == 0)
        w->room[node] = (struct engine_node){ (long)number(l->word[2]), (long)number(l->word[3]) };
    else if (strcmp(l->word[0], "bar") == 0)
        w->barred[job][node] = ENGINE_FEATURE;
    else {
        w->needs[job].cpus = (int)number(l->word[2]);
        w->needs[job].mem_mib = (int)number(l->word[3]);
    }
    return true;
}

/* By the jobs of the snapshot. */
static const struct engine_rules *rules_of(struct world *w)
{
    struct engine_rules *rules = ARENA_ARRAY(&w->arena, struct engine_rules, 1);
    struct engine_job *jobs = ARENA_ARRAY(&w->arena, struct engine_job, (size_t)w->snapshot.n_jobs);

    for (int j = 0; j < w->snapshot.n_jobs; j++)
        if (w->snapshot.jobs[j].id < WORLD_RULED)
            jobs[j] = w->needs[w->snapshot.jobs[j].id];
    *rules = (struct engine_rules){ .nodes = w->room, .jobs = jobs };
    return rules;
}

static bool wake_line(struct world *w, const struct line *l)
{
    const struct state *s = &w->ledger.state;

    if (strcmp(l->word[0], "wake") != 0)
        return false;
    for (int g = 0; g < s->n_gpus; g++)
        if (strcmp(s->nodes[s->gpus[g].node].name, l->word[1]) == 0)
            w->wake_s[g] = number(l->word[2]);
    return true;
}

/* ---- worlds ---- */

static void world_line(struct world *w, const struct line *l)
{
    static const struct {
        const char *word;
        int n_min;
        void (*read)(struct world *w, const struct line *l);
    } kinds[] = {
        { "type", 2, type_line },      { "workload", 2, workload_line },
        { "speed", 4, estimate_line }, { "watts", 4, estimate_line },
        { "pairs", 2, pairs_line },    { "unfit", 3, unfit_line },
        { "node", 2, node_line },      { "job", 3, job_line },
        { "start", 3, start_line },
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(l->word[0], kinds[i].word) == 0) {
            ck_assert_msg(l->n >= kinds[i].n_min, "too short: %s", l->text);
            kinds[i].read(w, l);
            return;
        }
    if (strcmp(l->word[0], "at") == 0)
        w->now_s = number(l->word[1]);
    else if (!wake_line(w, l) && !rule_line(w, l) && !change_line(w, l))
        ck_abort_msg("not a line of a world: %s", l->text);
}

void world_add(struct world *w, const char *text)
{
    char *copy = strdup(text), *rest = copy, *row;

    while ((row = strsep(&rest, "\n"))) {
        char *whole = strdup(row), *word;
        struct line l = { .text = whole };
        row[strcspn(row, "#")] = '\0';
        while ((word = strsep(&row, " ")))
            if (*word && l.n < WORDS_MAX)
                l.word[l.n++] = word;
        if (l.n > 0)
            world_line(w, &l);
        free(whole);
    }
    free(copy);
}

void world_init(struct world *w, const char *text)
{
    struct err e = { 0 };

    *w = (struct world){ .options = solve_defaults, .theta = 2 };
    w->options.price_w = 50;    // what tables by hand were made with
    w->options.delay_w = 0;
    w->options.promise_w = 3000;
    catalog_init(&w->catalog);
    must(ledger_open(&w->ledger, &w->catalog, NULL, &e), &e, "ledger");
    estimator_init(&w->est, &w->catalog, 1);
    estimate_use(&w->est, NULL, ESTIMATOR_ROOFLINE);
    arena_init(&w->arena);
    world_add(w, text);
    world_look(w);
}

void world_release(struct world *w)
{
    estimator_release(&w->est);
    ledger_close(&w->ledger);
    arena_release(&w->arena);
    catalog_release(&w->catalog);
}

void world_look(struct world *w)
{
    arena_reset(&w->arena);
    estimate_refresh(&w->est);
    const bool is_small = w->ledger.state.n_gpus <= WORLD_GPUS;
    snapshot_take(&w->arena, &w->ledger.state, &w->catalog, w->now_s, w->theta,
                  (struct snapshot_marks){ .wake_s = is_small ? w->wake_s : NULL }, &w->snapshot);
    w->snapshot.engine = w->has_rules ? rules_of(w) : NULL;
}

void world_solve(struct world *w, const char *name, struct plan *out)
{
    struct solver solver;
    struct err e = { 0 };

    must(solver_by_name(name, 1, &solver, &e), &e, name);
    must(solver_lower(&solver, &w->arena, &w->snapshot, &w->est, &w->options, &w->asked, &e), &e,
         name);
    must(solver_plan(&solver, &w->arena, &w->asked, out, &e), &e, name);
}

/* ---- files ---- */

char *scratch_make(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = NULL;

    ck_assert_int_gt(asprintf(&dir, "%s/gogh-test-XXXXXX", tmp && *tmp ? tmp : "/tmp"), 0);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

void scratch_remove(char *dir)
{
    ck_assert_int_eq(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(dir);
}

/* ---- comparing states ---- */

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static const char *spec_differs(const struct job_spec *a, const struct job_spec *b)
{
    if (!same_text(a->name, b->name) || !same_text(a->owner, b->owner))
        return "a job's name or owner";
    if (a->kind != b->kind || a->workload != b->workload || a->submit_s != b->submit_s)
        return "a job's kind, workload or submission";
    if (a->kind == JOB_TRAINING ? a->steps != b->steps
                                : a->rate != b->rate || a->duration_s != b->duration_s)
        return "what a job has to do";
    if (a->min_throughput != b->min_throughput || !same(a->deadline_s, b->deadline_s))
        return "a job's promise";
    if (a->n_gpus != b->n_gpus || a->max_gpus != b->max_gpus || a->priority != b->priority)
        return "a job's gang or priority";
    if (job_urgency(a) != job_urgency(b))
        return "a job's urgency";
    if (a->is_exclusive != b->is_exclusive || a->n_nodes != b->n_nodes ||
        a->allowed_types != b->allowed_types)
        return "a job's conditions";
    if (a->is_guess != b->is_guess || !same_text(a->command, b->command))
        return "a job's command, or whether its length is a guess";
    if (!same_text(a->key, b->key) || !same_text(a->digest, b->digest))
        return "the key of a submission";
    return NULL;
}

static const char *terms_differ(const struct job_spec *a, const struct job_spec *b)
{
    const struct service_terms *x = a->terms, *y = b->terms;

    if (!x || !y)
        return x == y ? NULL : "whether it is a service";
    if (x->latency_s != y->latency_s || x->ttft_s != y->ttft_s || x->tpot_s != y->tpot_s ||
        x->max_batch != y->max_batch || x->load_s != y->load_s || x->is_unmoved != y->is_unmoved ||
        !same_text(x->probe, y->probe) || !same_text(x->metrics, y->metrics) || a->rate != b->rate)
        return "a service's terms";
    if (a->kind == JOB_REPLICA && (a->service != b->service || a->replica != b->replica ||
                                   a->port != b->port || a->gpu != b->gpu))
        return "a replica";
    return NULL;
}

static const char *job_differs(const struct job *a, const struct job *b)
{
    if (a->state != b->state || a->id != b->id)
        return "a job's state";
    if (a->steps_done != b->steps_done || !same(a->changed_s, b->changed_s) ||
        !same(a->started_s, b->started_s) || a->heard_s != b->heard_s || a->pace != b->pace)
        return "a job's progress or times";
    if (a->n_held != b->n_held || a->limit_w != b->limit_w || a->n_moves != b->n_moves)
        return "a job's place";
    if (!same(a->ready_s, b->ready_s) || !same(a->drain_s, b->drain_s))
        return "since when a replica serves";
    if (terms_differ(&a->spec, &b->spec))
        return terms_differ(&a->spec, &b->spec);
    for (int i = 0; i < a->n_held; i++)
        if (a->gpus[i] != b->gpus[i])
            return "a job's GPUs";
    if (a->next_waiting != b->next_waiting || a->prev_waiting != b->prev_waiting)
        return "the queue";
    return spec_differs(&a->spec, &b->spec);
}

static const char *gpu_differs(const struct gpu *a, const struct gpu *b)
{
    if (a->node != b->node || a->slot != b->slot || a->type != b->type || a->n_jobs != b->n_jobs)
        return "a GPU";
    for (int i = 0; i < a->n_jobs; i++) {
        bool is_found = false;
        for (int k = 0; k < b->n_jobs; k++)
            is_found |= a->jobs[i] == b->jobs[k];
        if (!is_found)
            return "who is on a GPU";
    }
    return NULL;
}

const char *state_differs(const struct state *a, const struct state *b)
{
    const char *what = NULL;

    if (a->n_nodes != b->n_nodes || a->n_gpus != b->n_gpus || a->n_jobs != b->n_jobs)
        return "how many there are";
    if (a->n_running != b->n_running || a->n_waiting != b->n_waiting || a->n_ended != b->n_ended)
        return "how many run, wait or have ended";
    if (a->first_waiting != b->first_waiting || a->last_waiting != b->last_waiting)
        return "the ends of the queue";
    for (int i = 0; i < a->n_nodes && !what; i++)
        if (!same_text(a->nodes[i].name, b->nodes[i].name) ||
            a->nodes[i].state != b->nodes[i].state ||
            a->nodes[i].first_gpu != b->nodes[i].first_gpu ||
            a->nodes[i].n_gpus != b->nodes[i].n_gpus)
            what = "a node";
    for (int i = 0; i < a->n_gpus && !what; i++)
        what = gpu_differs(&a->gpus[i], &b->gpus[i]);
    for (int i = 0; i < a->n_jobs && !what; i++)
        what = job_differs(a->jobs[i], b->jobs[i]);
    for (int i = 0; i < a->n_jobs && !what; i++)
        if (state_find_job(a, a->jobs[i]->spec.name) != state_find_job(b, a->jobs[i]->spec.name))
            what = "who has a name";
    return what;
}
