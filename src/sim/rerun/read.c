#include "sim/rerun/read.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"

#define RECORD_VERSION 2

/* In the order of enum rerun_what. */
static const char *const whats[RERUN_WHATS] = {
    "begin", "event",  "measurement", "profile", "workload", "gpu_type", "model",  "look",
    "plan",  "prices", "cut",         "start",   "move",     "stop",     "cancel", "energy",
};

/* One line being read; the first thing that is wrong stays. */
struct rerun_reader {
    struct arena *arena;
    json_t *o;
    const char *wrong;    // the key that is; NULL: none so far
};

static void blame(struct rerun_reader *r, const char *key)
{
    if (!r->wrong)
        r->wrong = key;
}

static double number(struct rerun_reader *r, json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    if (json_is_number(v))
        return json_number_value(v);
    if (v && !json_is_null(v))
        blame(r, key);
    return NAN;
}

/* One that must be there. */
static double known(struct rerun_reader *r, json_t *o, const char *key)
{
    double v = number(r, o, key);

    if (isnan(v))
        blame(r, key);
    return v;
}

static int whole(struct rerun_reader *r, json_t *v, const char *key, int low)
{
    json_int_t n = json_integer_value(v);

    if (json_is_integer(v) && n >= low && n <= INT_MAX)
        return (int)n;
    blame(r, key);
    return low;
}

static bool flag(struct rerun_reader *r, json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    if (!json_is_boolean(v))
        blame(r, key);
    return json_is_true(v);
}

static const char *text(struct rerun_reader *r, const char *key)
{
    json_t *v = json_object_get(r->o, key);

    if (json_is_string(v))
        return arena_strdup(r->arena, json_string_value(v));
    if (v && !json_is_null(v))
        blame(r, key);
    return NULL;
}

static const char *word(struct rerun_reader *r, const char *key)
{
    const char *s = text(r, key);

    if (!s || !*s)
        blame(r, key);
    return s ? s : "";
}

/* Recordings of before do not have it. */
static int capability(struct rerun_reader *r, const char *key)
{
    json_t *v = json_object_get(r->o, key);

    return v ? whole(r, v, key, 0) : 0;
}

/* A list of GPUs from place 'from' on. */
static const int *wholes_from(struct rerun_reader *r, json_t *list, size_t from, const char *key,
                              int *n)
{
    size_t all = json_array_size(list);
    int *found = ARENA_ARRAY(r->arena, int, all > from ? all - from : 0);

    *n = 0;
    if (!json_is_array(list))
        blame(r, key);
    for (size_t i = from; i < all; i++)
        found[(*n)++] = whole(r, json_array_get(list, i), key, 0);
    return found;
}

/* ---- each kind ---- */

/* 'set' lines as of a cluster file, which has nodes too. */
static void read_settings(struct rerun_reader *r, struct cluster_settings *out)
{
    const char *lines = arena_printf(r->arena, "%snode any k80:1\n", word(r, "settings"));
    struct cluster cluster;

    if (cluster_parse(r->arena, "settings", lines, strlen(lines), &cluster, NULL) < 0)
        blame(r, "settings");
    else
        *out = cluster.settings;
}

static void read_begin(struct rerun_reader *r, struct rerun_entry *out)
{
    struct rerun_begin *b = ARENA_NEW(r->arena, struct rerun_begin);

    b->store = word(r, "store");
    b->model = text(r, "model");
    if (estimator_by_name(text(r, "estimator"), &b->estimator, NULL) < 0)
        blame(r, "estimator");
    b->can_sleep = flag(r, r->o, "sleeps");
    if (strchr(b->store, '/'))
        blame(r, "store");
    read_settings(r, &b->settings);
    out->begin = b;
}

static void read_event(struct rerun_reader *r, struct rerun_entry *out)
{
    struct row_event *event = ARENA_NEW(r->arena, struct row_event);
    json_t *body = json_object_get(r->o, "body");
    char *dumped =
        json_is_object(body) ? json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;

    event->time_s = out->time_s;
    event->kind = word(r, "kind");
    event->body = dumped ? arena_strdup(r->arena, dumped) : "{}";
    out->event = event;
    if (!dumped)
        blame(r, "body");
    free(dumped);
}

static void read_measurement(struct rerun_reader *r, struct rerun_entry *out)
{
    struct rerun_measurement *m = ARENA_NEW(r->arena, struct rerun_measurement);

    m->workload = word(r, "workload");
    m->gpu_type = word(r, "gpu_type");
    m->neighbour = text(r, "neighbour");
    m->is = (struct measurement){
        .key = { .neighbour = -1,
                 .n_gpus = whole(r, json_object_get(r->o, "n_gpus"), "n_gpus", 1),
                 .is_spread = flag(r, r->o, "spread"),
                 .limit_w = whole(r, json_object_get(r->o, "limit_w"), "limit_w", 0) },
        .fits = flag(r, r->o, "fits"),
        .throughput = number(r, r->o, "throughput"),
        .watts = number(r, r->o, "watts"),
        .time_s = out->time_s,
        .duration_s = number(r, r->o, "duration_s"),
        .noise = number(r, r->o, "noise"),
        .ln_pace = known(r, r->o, "ln_pace"),
        .ln_undone = known(r, r->o, "ln_undone"),
    };
    out->measurement = m;
}

/* An activity; not known, or 0 to 1. */
static double activity(struct rerun_reader *r, const char *key)
{
    double share = number(r, r->o, key);

    if (share < 0 || share > 1)
        blame(r, key);
    return share;
}

static void read_profile(struct rerun_reader *r, struct rerun_entry *out)
{
    struct rerun_profile *p = ARENA_NEW(r->arena, struct rerun_profile);

    p->workload = word(r, "workload");
    p->is = (struct solo_profile){ .gpu_activity = activity(r, "gpu_activity"),
                                   .mem_activity = activity(r, "mem_activity"),
                                   .watts = number(r, r->o, "watts"),
                                   .mem_used_bytes = number(r, r->o, "mem_used_bytes") };
    out->profile = p;
}

static void read_workload(struct rerun_reader *r, struct rerun_entry *out)
{
    struct workload *w = ARENA_NEW(r->arena, struct workload);

    workload_init(w, word(r, "name"));
    w->family = text(r, "family");
    w->task = text(r, "task");
    w->dataset = text(r, "dataset");
    w->batch = number(r, r->o, "batch");
    w->is_inference = flag(r, r->o, "inference");
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        workload_set_number(w, i, number(r, r->o, workload_number_names[i]));
    workload_doubt(w);
    const char *precision = text(r, "precision");
    if (precision && precision_read(slice_of(precision), &w->precision, NULL) < 0)
        blame(r, "precision");
    w->needs_capability = capability(r, "needs_capability");
    out->workload = w;
}

static void read_type(struct rerun_reader *r, struct rerun_entry *out)
{
    struct rerun_type_line *t = ARENA_NEW(r->arena, struct rerun_type_line);

    t->is_described = flag(r, r->o, "described");
    t->is = (struct gpu_type){
        .name = word(r, "name"),
        .title = text(r, "title"),
        .source = text(r, "source"),
        .peak_fp32_flops = number(r, r->o, "peak_fp32_flops"),
        .peak_tf32_flops = number(r, r->o, "peak_tf32_flops"),
        .peak_fp16_flops = number(r, r->o, "peak_fp16_flops"),
        .peak_fp8_flops = number(r, r->o, "peak_fp8_flops"),
        .peak_int8_flops = number(r, r->o, "peak_int8_flops"),
        .bandwidth_bytes_s = number(r, r->o, "bandwidth_bytes_s"),
        .mem_bytes = number(r, r->o, "mem_bytes"),
        .launch_s = number(r, r->o, "launch_s"),
        .idle_w = number(r, r->o, "idle_w"),
        .sleep_w = number(r, r->o, "sleep_w"),
        .cap_w = number(r, r->o, "cap_w"),
        .limit_low_w = number(r, r->o, "limit_low_w"),
        .year = whole(r, json_object_get(r->o, "year"), "year", 0),
        .share_max = whole(r, json_object_get(r->o, "share_max"), "share_max", 0),
        .capability = capability(r, "capability"),
    };
    const char *sharing = text(r, "sharing");
    if (sharing && sharing_read(slice_of(sharing), &t->is.sharing, NULL) < 0)
        blame(r, "sharing");
    out->type = t;
}

static void read_options(struct rerun_reader *r, json_t *o, struct solve_options *out)
{
    const char *objective = json_string_value(json_object_get(o, "objective"));

    *out = (struct solve_options){
        .objective =
            objective && strcmp(objective, "watts") == 0 ? OBJECTIVE_WATTS : OBJECTIVE_JOULES,
        .price_w = known(r, o, "price_w"),
        .delay_w = known(r, o, "delay_w"),
        .promise_w = known(r, o, "promise_w"),
        .power_cap_w = known(r, o, "power_cap_w"),
        .move_s = known(r, o, "move_s"),
        .settle_s = known(r, o, "settle_s"),
        .unfit_max = known(r, o, "unfit_max"),
        .alone_unfit_max = known(r, o, "alone_unfit_max"),
        .may_share = flag(r, o, "may_share"),
        .may_move = flag(r, o, "may_move"),
        .may_probe = flag(r, o, "may_probe"),
        .may_limit = flag(r, o, "may_limit"),
        .may_choose = flag(r, o, "may_choose"),
        .may_sleep = flag(r, o, "may_sleep"),
    };
}

static void read_asleep(struct rerun_reader *r, struct rerun_view *l)
{
    json_t *list = json_object_get(r->o, "wake");
    const size_t n = json_array_size(list);
    int *asleep = ARENA_ARRAY(r->arena, int, n);
    double *wake_s = ARENA_ARRAY(r->arena, double, n);

    if (!json_is_array(list))
        blame(r, "wake");
    for (size_t i = 0; i < n; i++) {
        json_t *seconds = json_array_get(json_array_get(list, i), 1);

        asleep[i] = whole(r, json_array_get(json_array_get(list, i), 0), "wake", 0);
        wake_s[i] = json_number_value(seconds);
        if (!(wake_s[i] > 0))
            blame(r, "wake");
    }
    l->n_asleep = (int)n;
    l->asleep = asleep;
    l->wake_s = wake_s;
}

static void read_rules(struct rerun_reader *r, struct rerun_view *l)
{
    json_t *list = json_object_get(r->o, "ruled");
    const size_t n = json_array_size(list);
    struct rerun_list *ruled = ARENA_ARRAY(r->arena, struct rerun_list, n);

    l->has_rules = list != NULL;
    if (!list)
        return;
    l->nodes = wholes_from(r, json_object_get(r->o, "nodes"), 0, "nodes", &l->n_nodes);
    l->devices = wholes_from(r, json_object_get(r->o, "devices"), 0, "devices", &l->n_devices);
    l->unlimited =
        wholes_from(r, json_object_get(r->o, "unlimited"), 0, "unlimited", &l->n_unlimited);
    for (size_t i = 0; i < n; i++) {
        ruled[i].at = wholes_from(r, json_array_get(list, i), 0, "ruled", &ruled[i].n);
        if (ruled[i].n < 5)
            blame(r, "ruled");
    }
    l->n_ruled = (int)n;
    l->ruled = ruled;
}

static void read_look(struct rerun_reader *r, struct rerun_entry *out)
{
    struct rerun_view *l = ARENA_NEW(r->arena, struct rerun_view);
    json_t *options = json_object_get(r->o, "options");
    json_t *seed = json_object_get(r->o, "seed");

    l->policy = word(r, "policy");
    l->seed = (uint64_t)json_integer_value(seed);
    if (!json_is_integer(seed))
        blame(r, "seed");
    l->busy = wholes_from(r, json_object_get(r->o, "busy"), 0, "busy", &l->n_busy);
    l->under_way =
        wholes_from(r, json_object_get(r->o, "under_way"), 0, "under_way", &l->n_under_way);
    read_asleep(r, l);
    read_rules(r, l);
    l->has_options = options != NULL;
    if (options)
        read_options(r, options, &l->options);
    out->look = l;
}

static enum wait_reason reason_of(struct rerun_reader *r, json_t *v)
{
    const char *name = json_string_value(v);

    for (int i = 0; i < WAIT_REASONS && name; i++)
        if (strcmp(wait_reason_name((enum wait_reason)i), name) == 0)
            return (enum wait_reason)i;
    blame(r, "wait");
    return WAIT_NOT;
}

static void read_plan(struct rerun_reader *r, struct rerun_entry *out)
{
    struct rerun_plan *p = ARENA_NEW(r->arena, struct rerun_plan);
    json_t *run = json_object_get(r->o, "run"), *wait = json_object_get(r->o, "wait");
    size_t n_run = json_array_size(run), n_wait = json_array_size(wait);
    struct rerun_placement *places = ARENA_ARRAY(r->arena, struct rerun_placement, n_run + n_wait);

    if (!json_is_array(run) || !json_is_array(wait))
        blame(r, "run");
    for (size_t i = 0; i < n_run; i++) {
        json_t *one = json_array_get(run, i);
        struct rerun_placement *at = &places[p->n++];

        at->job = whole(r, json_array_get(one, 0), "run", 0);
        at->limit_w = whole(r, json_array_get(one, 1), "run", 0);
        at->gpus = wholes_from(r, one, 2, "run", &at->n_gpus);
        at->reason = WAIT_NOT;
        if (at->n_gpus == 0)
            blame(r, "run");
    }
    p->n_run = p->n;
    for (size_t i = 0; i < n_wait; i++) {
        json_t *one = json_array_get(wait, i);

        places[p->n++] =
            (struct rerun_placement){ .job = whole(r, json_array_get(one, 0), "wait", 0),
                                      .reason = reason_of(r, json_array_get(one, 1)) };
    }
    p->places = places;
    p->look_s = known(r, r->o, "look_s");
    p->watts = known(r, r->o, "watts");
    p->is_fallback = flag(r, r->o, "fallback");
    p->is_acted = flag(r, r->o, "acted");
    p->is_repriced = json_is_true(json_object_get(r->o, "repriced"));
    out->plan = p;
}

static void read_order(struct rerun_reader *r, struct rerun_entry *out)
{
    struct rerun_placement *p = ARENA_NEW(r->arena, struct rerun_placement);

    p->job = whole(r, json_object_get(r->o, "job"), "job", 0);
    if (out->what == RERUN_START || out->what == RERUN_MOVE) {
        p->gpus = wholes_from(r, json_object_get(r->o, "gpus"), 0, "gpus", &p->n_gpus);
        p->limit_w = whole(r, json_object_get(r->o, "limit_w"), "limit_w", 0);
    }
    out->order = p;
}

static void read_energy(struct rerun_reader *r, struct rerun_entry *out)
{
    json_t *list = json_object_get(r->o, "joules");
    size_t n = json_array_size(list);
    double *joules = ARENA_ARRAY(r->arena, double, n);

    if (!json_is_array(list) || n > INT_MAX)
        blame(r, "joules");
    for (size_t i = 0; i < n; i++) {
        joules[i] = json_number_value(json_array_get(list, i));
        if (!json_is_number(json_array_get(list, i)))
            blame(r, "joules");
    }
    out->energy.n = (int)n;
    out->energy.joules = joules;
}

/* ---- all of it ---- */

static void read_as(struct rerun_reader *r, struct rerun_entry *out)
{
    static void (*const reads[RERUN_WHATS])(struct rerun_reader * r, struct rerun_entry * out) = {
        [RERUN_BEGIN] = read_begin,
        [RERUN_EVENT] = read_event,
        [RERUN_MEASUREMENT] = read_measurement,
        [RERUN_PROFILE] = read_profile,
        [RERUN_WORKLOAD] = read_workload,
        [RERUN_GPU_TYPE] = read_type,
        [RERUN_LOOK] = read_look,
        [RERUN_PLAN] = read_plan,
        [RERUN_START] = read_order,
        [RERUN_MOVE] = read_order,
        [RERUN_STOP] = read_order,
        [RERUN_CANCEL] = read_order,
        [RERUN_ENERGY] = read_energy,
    };

    out->time_s = known(r, r->o, "time_s");
    if (out->what == RERUN_MODEL)
        out->file = word(r, "file");
    else if (reads[out->what])
        reads[out->what](r, out);
}

/* Other versions lack what plans are made from now, or have what we do not know. */
static int check_version(const json_t *begin, struct err *e)
{
    const int is = (int)json_integer_value(json_object_get(begin, "version"));

    if (is == RECORD_VERSION)
        return 0;
    return err_set(e, EINVAL,
                   "begin: 'version' is %d, and this gogh reads %d: use the gogh that came with "
                   "the goghd that wrote it, or move the record away, and goghd begins a new one "
                   "at its next start",
                   is, RECORD_VERSION);
}

static int read_line(struct arena *a, json_t *o, struct rerun_entry *out, struct err *e)
{
    const char *what = json_string_value(json_object_get(o, "what"));
    struct rerun_reader r = { .arena = a, .o = o };
    int i = 0;

    while (what && i < RERUN_WHATS && strcmp(whats[i], what) != 0)
        i++;
    if (!what || i == RERUN_WHATS)
        return err_set(e, EINVAL, "what is '%s'? this is no record, or of a newer version",
                       what ? what : "");
    out->what = (enum rerun_what)i;
    if (out->what == RERUN_BEGIN && check_version(o, e) < 0)
        return -EINVAL;
    read_as(&r, out);
    return r.wrong ? err_set(e, EINVAL, "%s: '%s' is missing or wrong", what, r.wrong) : 0;
}

/* The look that a plan is of knows it; only those are worth making anew. */
static int find_look(struct rerun_entries *all, const struct rerun_entry *plan, struct err *e)
{
    for (struct rerun_entry *at = all->at + all->n; at > all->at;) {
        at--;
        if (at->what == RERUN_BEGIN)
            break;
        if (at->what != RERUN_LOOK || at->time_s != plan->plan->look_s)
            continue;
        at->look->has_plan = true;
        return 0;
    }
    return err_set(e, EINVAL, "plan: nobody looked at 'look_s'");
}

static int take_line(struct arena *a, struct rerun_entries *out, const char *line, size_t len,
                     struct err *e)
{
    struct rerun_entry *entry = &out->at[out->n];
    json_error_t why;
    json_t *o = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
    int rc = o ? read_line(a, o, entry, e) : err_set(e, EINVAL, "%s", why.text);

    json_decref(o);
    if (rc == 0 && out->n == 0 && entry->what != RERUN_BEGIN)
        rc = err_set(e, EINVAL, "a record starts with 'begin'");
    if (rc == 0 && entry->what == RERUN_PLAN)
        rc = find_look(out, entry, e);
    out->n += rc == 0;
    return rc;
}

int rerun_read(struct arena *a, const char *name, const char *bytes, size_t len,
               struct rerun_entries *out, struct err *e)
{
    const char *at = bytes, *end = bytes + len, *stop;
    size_t n = 0;
    int line = 0, rc = 0;

    for (const char *p = bytes; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    *out = (struct rerun_entries){ .at = ARENA_ARRAY(a, struct rerun_entry, n) };
    while (rc == 0 && at < end && (stop = memchr(at, '\n', (size_t)(end - at)))) {
        struct err why = { 0 };

        line++;
        out->at[out->n].line = line;
        rc = take_line(a, out, at, (size_t)(stop - at), &why);
        if (rc < 0)
            rc = err_set(e, EINVAL, "%s:%d: %s", name, line, why.text);
        at = stop + 1;
    }
    if (rc == 0 && out->n == 0)
        rc = err_set(e, EINVAL, "%s: nothing was recorded", name);
    return rc;
}
