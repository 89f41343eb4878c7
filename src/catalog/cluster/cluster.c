#include "catalog/cluster/cluster.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/map.h"
#include "base/text/words.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "store/store.h"

/* The largest site we know of has some 100,000 GPUs; a count above that is a slip. A
 * line of text describes at most that many, so a file of this size is no cluster.
 */
#define GPUS_MAX 100000
#define FILE_MAX ((size_t)64 << 20)

static const char *const power_models[POWER_MODELS + 1] = {
    [POWER_ADDITIVE] = "additive", [POWER_SATURATING] = "saturating"
};

const char *power_model_name(enum power_model m)
{
    return power_models[m];
}

/* What 'set' may change: name, place, and the range that makes sense. */
static const struct setting {
    const char *key;
    size_t offset;
    bool is_int;
    double normal, low, high;    // a normal value outside of the range is called "auto"
    const char *const *names;    // the values' names, up to NULL; NULL: a number
} settings[] = {
#define SET(field, is_int, normal, low, high)                                             \
    {                                                                                     \
#field, offsetof(struct cluster_settings, field), is_int, normal, low, high, NULL \
    }
    SET(sleep_after_s, false, 60, 0, 1e9),
    SET(wake_s, false, 5, 0, 3600),
    SET(move_s, false, 60, 0, 86400),
    SET(restart_s, false, 0, 0, 86400),
    SET(settle_s, false, 300, 0, 86400),
    SET(report_s, false, 300, 1, 1e9),
    SET(noise, false, 0.05, 0, 1),
    SET(watts_noise, false, 0.02, 0, 1),
    SET(delay_w, false, -1, 0, 1e6),
    SET(price_w, false, 0, 0, 1e5),
    SET(promise_w, false, 1000, 0, 1e6),
    SET(probe_share, false, 0.02, 0, 1),
    SET(power_cap_w, false, 0, 0, 1e9),
    SET(decide_s, false, 0, 0, 86400),
    SET(theta, true, 2, 1, THETA_MAX),
    SET(power_limits, true, 0, 0, 1),
    { "power_model", offsetof(struct cluster_settings, power_model), true, POWER_ADDITIVE, 0,
      POWER_MODELS - 1, power_models },
#undef SET
};

#define SETTING_AUTO "auto"

enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

/* A 'gputype' line's outcome, used or not. */
struct declared_type {
    struct gpu_type type;
    const struct gpu_type *builtin;    // what it stands for; NULL: nothing built in
    bool is_described;                 // by a 'gputype' line
    int index;                         // in cluster.types; -1: no node has it yet
};

struct parser {
    struct words words;
    struct arena *arena;
    struct cluster *out;
    struct declared_type *known;
    int n_known, cap_known;
    int cap_nodes, cap_types, cap_described, cap_workloads, cap_kinds;
    struct map nodes, workloads;
    bool is_set[N_SETTINGS];
    int *slots;    // types of the GPUs of the node being read
    int cap_slots;
};

#define HERE(p) (p)->words.name, (p)->words.line

static struct declared_type *add_known(struct parser *p)
{
    ARENA_GROW(p->arena, p->known, p->n_known, p->cap_known);
    return &p->known[p->n_known++];
}

/* The type people mean by 'name': one of this file, or a built-in one that it may share
 * with another name ("v100" and "v100-16" are one type).
 */
static struct declared_type *find_known(struct parser *p, const char *name)
{
    const struct gpu_type *builtin = gpu_type_builtin(name);

    for (int i = 0; i < p->n_known; i++) {
        if (text_alike(p->known[i].type.name, name))
            return &p->known[i];
    }
    for (int i = 0; builtin != NULL && i < p->n_known; i++) {
        if (p->known[i].builtin == builtin)
            return &p->known[i];
    }
    return NULL;
}

static const char *need_name(struct parser *p, int i, const char *what, struct err *e)
{
    const char *name = NULL;

    if (i < p->words.n && p->words.word[i].key.at == NULL)
        name = words_name(&p->words, p->words.word[i].value);
    if (name == NULL)
        err_set(e, EINVAL,
                "%s:%d: want a name of a %s here: 1 to 200 printable bytes, in quotes "
                "when it has blanks or '='",
                HERE(p), what);
    return name;
}

/* The value of like=, or NULL. It must come first, or it would wipe out what precedes it. */
static int find_like(struct parser *p, const char **like, struct err *e)
{
    *like = NULL;
    for (int i = 2; i < p->words.n; i++) {
        const struct word *w = &p->words.word[i];

        if (w->key.at == NULL)
            return err_set(e, EINVAL, "%s:%d: word %d has no '=': write key=value", HERE(p), i + 1);
        if (!slice_is(w->key, "like"))
            continue;
        *like = words_name(&p->words, w->value);
        if (*like == NULL || i != 2)
            return err_set(e, EINVAL, "%s:%d: write like=NAME once, right behind the name",
                           HERE(p));
    }
    return 0;
}

/* gputype NAME [like=OTHER] key=value ... */
static int parse_gputype(struct parser *p, struct err *e)
{
    const char *name = need_name(p, 1, "GPU type", e), *like;
    const struct gpu_type *base;
    struct declared_type *other;
    struct gpu_type type = { 0 };

    if (name == NULL || find_like(p, &like, e) < 0)
        return -EINVAL;
    other = find_known(p, name);
    if (other != NULL)
        return err_set(e, EINVAL,
                       "%s:%d: GPU type '%s' is described twice (as '%s'): keep one "
                       "line",
                       HERE(p), name, other->type.name);
    other = like != NULL ? find_known(p, like) : NULL;
    base = other != NULL ? &other->type : gpu_type_builtin(like != NULL ? like : name);
    if (like != NULL && base == NULL)
        return err_set(e, EINVAL,
                       "%s:%d: like=%s: no such GPU type is built in or described "
                       "above",
                       HERE(p), like);
    if (base != NULL)
        type = *base;
    type.name = name;
    for (int i = like != NULL ? 3 : 2; i < p->words.n; i++) {
        if (gpu_type_set(&type, p->words.word[i].key, p->words.word[i].value, e) < 0)
            return err_prefix(e, "%s:%d", HERE(p));
    }
    if (gpu_type_check(&type, e) < 0)
        return err_prefix(e, "%s:%d", HERE(p));
    if (p->n_known == CATALOG_TYPES_MAX)
        return err_set(e, EINVAL, "%s:%d: more than %d GPU types: keep those that nodes have",
                       HERE(p), CATALOG_TYPES_MAX);
    *add_known(p) = (struct declared_type){
        .type = type,
        .builtin = gpu_type_builtin(name),
        .is_described = true,
        .index = -1,
    };
    return 0;
}

/* workload NAME [like=MODEL] key=value ... */
static int parse_workload(struct parser *p, struct err *e)
{
    const char *name = need_name(p, 1, "workload", e), *like;
    struct cluster *c = p->out;
    struct workload w;
    bool says_kind;
    double batch;

    if (name == NULL || find_like(p, &like, e) < 0)
        return -EINVAL;
    if (map_get(&p->workloads, name) >= 0)
        return err_set(e, EINVAL, "%s:%d: workload '%s' is described twice: keep one line", HERE(p),
                       name);
    workload_init(&w, name);
    if (like != NULL) {
        struct slice model = workload_name_split(like, &batch);

        if (workload_builtin(p->arena, arena_strndup(p->arena, model.at, model.len), batch, &w, e) <
            0)
            return err_prefix(e, "%s:%d: like=%s", HERE(p), like);
    }
    w.name = name;
    workload_name_split(name, &batch);
    if (batch == batch)    // a batch in the name is the batch
        w.batch = batch;
    says_kind = like != NULL;
    for (int i = like != NULL ? 3 : 2; i < p->words.n; i++) {
        says_kind |= slice_is(p->words.word[i].key, "inference");
        if (workload_set(p->arena, &w, p->words.word[i].key, p->words.word[i].value, e) < 0)
            return err_prefix(e, "%s:%d", HERE(p));
    }
    ARENA_GROW(p->arena, c->workloads, c->n_workloads, p->cap_workloads);
    ARENA_GROW(p->arena, c->says_kind, c->n_workloads, p->cap_kinds);
    c->workloads[c->n_workloads] = w;
    c->says_kind[c->n_workloads] = says_kind;
    map_set(&p->workloads, name, c->n_workloads++);
    return 0;
}

/* Is its normal value one that stands for a rule? */
static bool has_auto(const struct setting *s)
{
    return s->normal < s->low;
}

/* A setting's value from a word: a number in its range, or the place of its name in the list. */
static int setting_value(const struct parser *p, const struct setting *s, struct slice word,
                         double *out, struct err *e)
{
    for (int i = 0; s->names != NULL && s->names[i] != NULL; i++) {
        *out = i;
        if (slice_is(word, s->names[i]))
            return 0;
    }
    if (s->names != NULL)
        return err_set(e, EINVAL, "%s:%d: %s wants %s or %s", HERE(p), s->key, s->names[0],
                       s->names[1]);
    if (has_auto(s) && slice_is(word, SETTING_AUTO)) {
        *out = s->normal;
        return 0;
    }
    if (text_to_double(word, out) < 0 || *out < s->low || *out > s->high ||
        (s->is_int && *out != (int)*out))
        return err_set(e, EINVAL, "%s:%d: %s wants a %snumber from %g to %g%s", HERE(p), s->key,
                       s->is_int ? "whole " : "", s->low, s->high, has_auto(s) ? ", or auto" : "");
    return 0;
}

static void put_setting(struct cluster_settings *to, const struct setting *s, double v)
{
    void *field = (char *)to + s->offset;

    if (s->is_int)
        *(int *)field = (int)v;
    else
        *(double *)field = v;
}

int cluster_set(struct cluster_settings *to, const char *key, double value, struct err *e)
{
    for (int i = 0; i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];

        if (strcmp(s->key, key) != 0)
            continue;
        if (!(value >= s->low && value <= s->high) || (s->is_int && value != (int)value))
            return err_set(e, EINVAL, "%s %g: want %g to %g", key, value, s->low, s->high);
        put_setting(to, s, value);
        return 0;
    }
    return err_set(e, EINVAL, "no setting '%s'", key);
}

/* set KEY VALUE */
static int parse_set(struct parser *p, struct err *e)
{
    const struct word *w = p->words.word;
    double v = 0;

    if (p->words.n != 3 || w[1].key.at != NULL || w[2].key.at != NULL)
        return err_set(e, EINVAL, "%s:%d: want 'set KEY VALUE', e.g. 'set sleep_after_s 60'",
                       HERE(p));
    for (int i = 0; i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];

        if (!slice_is(w[1].value, s->key))
            continue;
        if (p->is_set[i])
            return err_set(e, EINVAL, "%s:%d: %s is set twice: keep one line", HERE(p), s->key);
        if (setting_value(p, s, w[2].value, &v, e) < 0)
            return -EINVAL;
        p->is_set[i] = true;
        put_setting(&p->out->settings, s, v);
        return 0;
    }
    if (slice_is(w[1].value, "confidence_z")) {
        p->out->notice = arena_printf(p->arena,
                                      "%s:%d: confidence_z does nothing any more: what a promise "
                                      "is worth is promise_w, e.g. 'set promise_w 10000'",
                                      HERE(p));
        return 0;
    }
    const char *keys = settings[0].key;
    for (int i = 1; i < N_SETTINGS; i++)
        keys = arena_printf(p->arena, "%s, %s", keys, settings[i].key);
    return err_set(e, EINVAL, "%s:%d: no setting '%.*s'; there are %s", HERE(p),
                   (int)(w[1].value.len < 60 ? w[1].value.len : 60), w[1].value.at, keys);
}

/* The index in cluster.types of the type a node names. */
static int use_type(struct parser *p, struct slice written, int *index, struct err *e)
{
    const char *name = words_name(&p->words, written);
    struct cluster *c = p->out;
    const struct gpu_type *builtin;
    struct declared_type *k;

    if (name == NULL)
        return err_set(e, EINVAL, "%s:%d: want TYPE:COUNT with a printable TYPE", HERE(p));
    k = find_known(p, name);
    if (k == NULL) {
        builtin = gpu_type_builtin(name);
        if (builtin == NULL)
            return err_set(e, EINVAL,
                           "%s:%d: GPU type '%s' is not built in: describe it with a "
                           "line 'gputype %s like=OTHER key=value ...'",
                           HERE(p), name, name);
        k = add_known(p);
        *k = (struct declared_type){ .type = *builtin, .builtin = builtin, .index = -1 };
        k->type.name = name;
    }
    if (k->index < 0) {
        if (c->n_types == CATALOG_TYPES_MAX)
            return err_set(e, EINVAL, "%s:%d: more than %d GPU types", HERE(p), CATALOG_TYPES_MAX);
        ARENA_GROW(p->arena, c->types, c->n_types, p->cap_types);
        ARENA_GROW(p->arena, c->is_described, c->n_types, p->cap_described);
        c->types[c->n_types] = k->type;
        c->is_described[c->n_types] = k->is_described;
        k->index = c->n_types++;
    }
    *index = k->index;
    return 0;
}

/* One TYPE:COUNT; the last ':' parts them, so that a type's name may hold one. */
static int take_gpus(struct parser *p, struct slice s, int *n, struct err *e)
{
    const char *colon = memrchr(s.at, ':', s.len);
    int type = -1;
    long count;

    if (colon == NULL)
        return err_set(e, EINVAL, "%s:%d: '%.*s' is not TYPE:COUNT, e.g. v100:4", HERE(p),
                       (int)(s.len < 60 ? s.len : 60), s.at);
    if (text_to_long((struct slice){ colon + 1, (size_t)(s.at + s.len - colon - 1) }, 1,
                     GPUS_MAX - p->out->n_gpus - *n, &count) < 0)
        return err_set(e, EINVAL,
                       "%s:%d: '%.*s': want a count from 1; a cluster has at most %d "
                       "GPUs",
                       HERE(p), (int)(s.len < 60 ? s.len : 60), s.at, GPUS_MAX);
    if (use_type(p, (struct slice){ s.at, (size_t)(colon - s.at) }, &type, e) < 0)
        return -EINVAL;
    for (long i = 0; i < count; i++) {
        ARENA_GROW(p->arena, p->slots, *n, p->cap_slots);
        p->slots[(*n)++] = type;
    }
    return 0;
}

static int add_node(struct parser *p, const char *name, const int *types, int n, struct err *e)
{
    struct cluster *c = p->out;

    if (map_get(&p->nodes, name) >= 0)
        return err_set(e, EINVAL, "%s:%d: node '%s' is there twice: give each its own name",
                       HERE(p), name);
    if (c->n_gpus + n > GPUS_MAX)
        return err_set(e, EINVAL, "%s:%d: more than %d GPUs: check counts and ranges", HERE(p),
                       GPUS_MAX);
    ARENA_GROW(p->arena, c->nodes, c->n_nodes, p->cap_nodes);
    c->nodes[c->n_nodes] = (struct cluster_node){ .name = name, .n_gpus = n, .types = types };
    map_set(&p->nodes, name, c->n_nodes++);
    c->n_gpus += n;
    return 0;
}

/* "old-[01-12]": 'open' is at the '['. Numbers keep the width of the first. */
static int add_range(struct parser *p, const char *name, const char *open, const int *types, int n,
                     struct err *e)
{
    const char *dash = strchr(open, '-'), *close = strchr(open, ']');
    long first, last;

    if (dash == NULL || close == NULL || dash > close || strchr(close, '[') != NULL ||
        text_to_long((struct slice){ open + 1, (size_t)(dash - open - 1) }, 0, 9999999, &first) ||
        text_to_long((struct slice){ dash + 1, (size_t)(close - dash - 1) }, 0, 9999999, &last) ||
        open[1] == '+' || dash[1] == '+' || last < first || last - first >= GPUS_MAX)
        return err_set(e, EINVAL, "%s:%d: '%s': want one range of numbers like name-[1-3]", HERE(p),
                       name);
    for (long i = first; i <= last; i++) {
        const char *one = arena_printf(p->arena, "%.*s%0*ld%s", (int)(open - name), name,
                                       (int)(dash - open - 1), i, close + 1);

        if (add_node(p, one, types, n, e) < 0)
            return -EINVAL;
    }
    return 0;
}

/* node NAME TYPE:COUNT [TYPE:COUNT...] */
static int parse_node(struct parser *p, struct err *e)
{
    const char *name = need_name(p, 1, "node", e), *open;
    int n = 0, *types;

    if (name == NULL)
        return -EINVAL;
    if (p->words.n < 3)
        return err_set(e, EINVAL, "%s:%d: node '%s' has no GPUs: add TYPE:COUNT, e.g. v100:4",
                       HERE(p), name);
    for (int i = 2; i < p->words.n; i++) {
        if (p->words.word[i].key.at != NULL)
            return err_set(e, EINVAL, "%s:%d: want TYPE:COUNT, not key=value", HERE(p));
        if (take_gpus(p, p->words.word[i].value, &n, e) < 0)
            return -EINVAL;
    }
    types = ARENA_ARRAY(p->arena, int, (size_t)n);
    memcpy(types, p->slots, (size_t)n * sizeof *types);
    open = strchr(name, '[');
    return open == NULL ? add_node(p, name, types, n, e) : add_range(p, name, open, types, n, e);
}

/* Nodes are read in a second pass, so that 'gputype' lines may stand anywhere. */
static int parse_pass(struct parser *p, const char *name, const char *text, size_t len,
                      bool is_nodes, struct err *e)
{
    int rc;

    words_open(&p->words, p->arena, name, text, len);
    while ((rc = words_next(&p->words, e)) > 0) {
        const struct word *first = &p->words.word[0];
        struct slice verb = first->key.at == NULL ? first->value : (struct slice){ "", 0 };

        if (slice_is(verb, "node"))
            rc = is_nodes ? parse_node(p, e) : 0;
        else if (is_nodes)
            rc = 0;
        else if (slice_is(verb, "gputype"))
            rc = parse_gputype(p, e);
        else if (slice_is(verb, "workload"))
            rc = parse_workload(p, e);
        else if (slice_is(verb, "set"))
            rc = parse_set(p, e);
        else
            rc = err_set(e, EINVAL, "%s:%d: a line begins with node, gputype, workload, set or #",
                         HERE(p));
        if (rc < 0)
            return rc;
    }
    return rc;
}

void cluster_defaults(struct cluster_settings *s)
{
    for (int i = 0; i < N_SETTINGS; i++)
        put_setting(s, &settings[i], settings[i].normal);
}

bool cluster_setting(const struct cluster_settings *s, int i, struct cluster_setting *out)
{
    if (i >= N_SETTINGS)
        return false;
    const void *field = (const char *)s + settings[i].offset;
    out->key = settings[i].key;
    out->value = settings[i].is_int ? *(const int *)field : *(const double *)field;
    out->word = settings[i].names != NULL ? settings[i].names[(int)out->value]
                : has_auto(&settings[i]) && out->value == settings[i].normal ? SETTING_AUTO
                                                                             : NULL;
    return true;
}

int cluster_parse(struct arena *a, const char *name, const char *text, size_t len,
                  struct cluster *out, struct err *e)
{
    struct parser p = { .arena = a, .out = out };
    int rc;

    *out = (struct cluster){ 0 };
    cluster_defaults(&out->settings);
    rc = parse_pass(&p, name, text, len, false, e);
    if (rc == 0)
        rc = parse_pass(&p, name, text, len, true, e);
    if (rc == 0 && out->n_nodes == 0)
        rc = err_set(e, EINVAL, "%s: no node: add lines like 'node n-[1-3] v100:4'", name);
    map_release(&p.nodes);
    map_release(&p.workloads);
    return rc;
}

int cluster_read(struct arena *a, const char *path, struct cluster *out, struct err *e)
{
    const char *text;
    size_t len;
    int rc = file_read_text(a, path, NULL, FILE_MAX, &text, &len, e);

    return rc < 0 ? rc : cluster_parse(a, path, text, len, out, e);
}

double cluster_caps_w(const struct cluster *cl, int *n)
{
    double sum_w = 0;

    *n = 0;
    for (int i = 0; i < cl->n_nodes; i++)
        for (int g = 0; g < cl->nodes[i].n_gpus; g++) {
            double cap_w = cl->types[cl->nodes[i].types[g]].cap_w;
            sum_w += cap_w > 0 ? cap_w : 0;
            *n += cap_w > 0;
        }
    return sum_w;
}

static int install_descriptions(const struct cluster *cl, struct catalog *c, int *type_index,
                                struct err *e)
{
    int rc = 0, index;

    for (int i = 0; i < cl->n_types && rc == 0; i++)
        rc = cl->is_described[i] ? catalog_set_type(c, &cl->types[i], &type_index[i], e)
                                 : catalog_add_type(c, &cl->types[i], &type_index[i], e);
    for (int i = 0; i < cl->n_workloads && rc == 0; i++) {
        struct workload w = cl->workloads[i];
        int known = catalog_find_workload(c, w.name);

        if (known >= 0 && !cl->says_kind[i])
            w.is_inference = c->workloads[known].is_inference;
        rc = catalog_set_workload(c, &w, &index, e);
    }
    return rc;
}

/* Is the node there already, with these GPUs? -EINVAL: with others. */
static int has_node(const struct state *s, const struct cluster_node *n, const int *types,
                    struct err *e)
{
    int known = state_find_node(s, n->name);
    bool is_same = known >= 0 && s->nodes[known].n_gpus == n->n_gpus;

    for (int g = 0; g < n->n_gpus && is_same; g++)
        is_same = s->gpus[s->nodes[known].first_gpu + g].type == types[g];
    if (known >= 0 && !is_same)
        return err_set(e, EINVAL,
                       "node %s had other GPUs before; give it another name, or start a new store",
                       n->name);
    return known >= 0;
}

static int install_nodes(const struct cluster *cl, struct arena *a, const int *type_index,
                         struct ledger *l, double now_s, struct err *e)
{
    struct event *events = ARENA_ARRAY(a, struct event, (size_t)cl->n_nodes);
    int n_new = 0;

    for (int i = 0; i < cl->n_nodes; i++) {
        const struct cluster_node *n = &cl->nodes[i];
        int *types = ARENA_ARRAY(a, int, (size_t)n->n_gpus);

        for (int g = 0; g < n->n_gpus; g++)
            types[g] = type_index[n->types[g]];
        int is_known = has_node(&l->state, n, types, e);
        if (is_known < 0)
            return is_known;
        events[n_new] = (struct event){
            .kind = EVENT_NODE_ADDED,
            .time_s = now_s,
            .node = n->name,
            .n_gpus = n->n_gpus,
            .gpu_types = types,
        };
        n_new += !is_known;
    }
    return n_new ? ledger_append(l, events, n_new, e) : 0;
}

int cluster_install(const struct cluster *cl, struct catalog *c, struct ledger *l, double now_s,
                    struct err *e)
{
    struct arena scratch;
    int *type_index;
    int rc;

    arena_init(&scratch);
    type_index = ARENA_ARRAY(&scratch, int, (size_t)cl->n_types);
    rc = catalog_begin(c, e);
    if (rc == 0)
        rc = catalog_end(c, install_descriptions(cl, c, type_index, e), e);
    if (rc == 0)
        rc = install_nodes(cl, &scratch, type_index, l, now_s, e);
    arena_release(&scratch);
    return rc;
}
