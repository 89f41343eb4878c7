#include "daemon/submit/intake.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "act/slurm/view.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"
#include "base/text/words.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"
#include "daemon/http/shapes.h"
#include "daemon/config/auth.h"
#include "daemon/submit/inner.h"

#define NAME_ROOM 160    // bytes of a job's own name: there is room for its number behind it
#define NEAR 3           // letters that a misspelt key may be away from what was meant

/* ---- the promise ---- */

enum way { AS_IS, DURATION, DEADLINE, YES_NO };

static const struct promise_key {
    const char *key, *field;    // as users write it, and as the API does
    enum way way;
} keys[] = {
    { "min-throughput", "min_throughput", AS_IS },
    { "workload", "workload", AS_IS },
    { "batch", "batch", AS_IS },
    { "precision", "precision", AS_IS },
    { "steps", "steps", AS_IS },
    { "deadline", "deadline", DEADLINE },
    { "rate", "rate", AS_IS },
    { "duration", "duration_s", DURATION },
    { "kind", "kind", AS_IS },
    { "name", "name", AS_IS },
    { "priority", "priority", AS_IS },
    { "urgency", "urgency", AS_IS },
    { "exclusive", "exclusive", YES_NO },
    { "types", "types", AS_IS },
    { "gpus", "gpus", AS_IS },
    { "max-gpus", "max_gpus", AS_IS },
    { "nodes", "nodes", AS_IS },
    { "checkpoint", "checkpoint_signal", AS_IS },
    { "grace", "grace_s", DURATION },
    { "new-workload", "new_workload", YES_NO },
};
enum { N_KEYS = sizeof keys / sizeof *keys };

const char *intake_promise_text(const char *comment)
{
    static const char mark[] = "gogh:";

    for (const char *p = comment; p && *p; p++) {
        const bool begins = p == comment || strchr(" \t;,", p[-1]);
        if (begins && strncasecmp(p, mark, sizeof mark - 1) == 0)
            return p + sizeof mark - 1;
    }
    return "";
}

/* "90", "90s", "5m", "2h", "1d12h"; NaN: none of these. */
static double duration_s(const char *p)
{
    static const char units[] = "smhd";
    static const double unit_s[] = { 1, 60, 3600, 86400 };
    double sum = 0, v;

    if (text_to_double(slice_of(p), &v) == 0)
        return v >= 0 ? v : (double)NAN;
    while (*p) {
        const size_t len = strspn(p, "0123456789.");
        const char *unit = p[len] ? strchr(units, p[len]) : NULL;
        if (!unit || text_to_double((struct slice){ p, len }, &v) < 0)
            return NAN;
        sum += v * unit_s[unit - units];
        p += len + 1;
    }
    return sum;
}

/* A value as the API's tables read it. NULL: cannot be. */
static const char *value_text(struct arena *a, const struct promise_key *k, const char *value,
                              double submit_s, struct err *e)
{
    const bool is_relative = k->way == DEADLINE && value[0] == '+';
    double s;

    if (k->way == YES_NO && (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0))
        return value[0] == 'y' ? "true" : "false";
    if (k->way != DURATION && !is_relative)
        return value;
    s = value[is_relative] ? duration_s(value + is_relative) : (double)NAN;
    if (isnan(s)) {
        err_fill(e, EINVAL, "want %sseconds, or 90s, 5m, 2h, 1d12h",
                 is_relative ? "a time, or + and " : "");
        return NULL;
    }
    return arena_printf(a, "%.17g", is_relative ? submit_s + s : s);
}

static int unknown_key(const char *key, struct err *e)
{
    const char *meant = NULL;
    int limit = NEAR;

    if (strcmp(key, "retries") == 0)
        return err_set(
            e, EINVAL,
            "gogh: retries: a job of sbatch that fails has failed; those of 'gogh submit "
            "--retries N' are tried again");
    for (int i = 0; i < N_KEYS; i++) {
        const char *known = keys[i].key;

        if (text_distance(key, known) < (int)strlen(known) && text_is_nearer(key, known, &limit))
            meant = known;
    }
    if (meant)
        return err_set(e, EINVAL, "gogh: there is no '%.40s'; did you mean '%s'?", key, meant);
    return err_set(e, EINVAL,
                   "gogh: there is no '%.40s'; there are min-throughput, workload, batch, steps, "
                   "deadline, rate, duration and others: see 'Promises' in GOGH's docs/slurm.md",
                   key);
}

/* '-' and '_' are the same, as in the gate. */
static bool is_key(const char *said, const char *key)
{
    while (*said &&
           (*said == *key || (*said == '_' && *key == '-') || (*said == '-' && *key == '_'))) {
        said++;
        key++;
    }
    return *said == *key;
}

static const struct promise_key *find_key(const char *key)
{
    for (int i = 0; i < N_KEYS; i++)
        if (is_key(key, keys[i].key) || is_key(key, keys[i].field))
            return &keys[i];
    return NULL;
}

static int put_word(struct arena *a, const struct word *w, double submit_s, json_t *to,
                    struct err *e)
{
    const char *value = arena_strndup(a, w->value.at, w->value.len);

    if (!w->key.at)
        return err_set(e, EINVAL, "gogh: '%.60s' is not of the form key=value", value);
    const char *key = arena_strndup(a, w->key.at, w->key.len);
    const struct promise_key *k = find_key(key);
    if (!k)
        return unknown_key(key, e);
    if (json_object_get(to, k->field))
        return err_set(e, EINVAL, "gogh: '%s' is said twice: once is enough", k->key);
    const struct field *f = schema_find(&schema_submit, k->field);
    const char *text = value_text(a, k, value, submit_s, e);
    assert(f);    // the table above names fields that there are
    json_t *v = text ? schema_value(f, text, e) : NULL;
    if (!v)
        return err_prefix(e, "gogh: %s=%.60s", k->key, value);
    json_object_set_new(to, k->field, v);
    return 0;
}

int intake_promise(struct arena *a, const char *text, double submit_s, json_t **out, struct err *e)
{
    json_t *body = json_object();
    struct words w;
    int rc;

    words_open(&w, a, "gogh", text, strlen(text));
    while ((rc = words_next(&w, e)) > 0) {
        for (int i = 0; i < w.n && rc > 0; i++)
            rc = put_word(a, &w.word[i], submit_s, body, e) < 0 ? -EINVAL : 1;
        if (rc < 0)
            break;
    }
    if (rc < 0) {
        json_decref(body);
        return rc;
    }
    *out = body;
    return 0;
}

/* ---- whose it is ---- */

static int find_owner(struct accounts *known, struct arena *a, uid_t uid, struct caller *out,
                      struct err *e)
{
    const struct account *k = accounts_get(known, uid, (gid_t)uid);

    if (!k)
        return err_set(e, EAGAIN, "the system cannot say who user %u is now", (unsigned)uid);
    *out = (struct caller){
        .scope = SCOPE_SUBMIT, .owner = arena_strdup(a, k->name), .uid = uid, .gid = k->gid
    };
    return 0;
}

/* Bytes that no text of ours may have become '_'. */
static char *clean(struct arena *a, const char *text, size_t max)
{
    char *c = arena_strndup(a, text, strnlen(text, max));
    size_t bad;

    for (char *p = c; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '_';
    while (!text_is_utf8(c, strlen(c), &bad))
        c[bad] = '_';
    return c;
}

/* ---- its GPUs ---- */

/* What somebody asked Slurm for. */
struct gres_request {
    int n;               // GPUs; 0: not said
    const char *type;    // NULL: any
    bool is_alone;       // all of a GPU's shards
    bool is_strict;      // given: what is no GPU is an error
};

static bool is_digits(const char *text)
{
    return text[0] && strspn(text, "0123456789") == strlen(text);
}

/* Of "gpu:v100:2" what is behind the first ':'. A type may begin with a digit; digits alone are a
 * number unless one follows, as in Slurm.
 */
static int read_count(char *rest, const char **type, long *n)
{
    const char *count;

    *n = 1;
    *type = strsep(&rest, ":");
    count = strsep(&rest, ":");
    if (*type && !count && is_digits(*type)) {
        count = *type;
        *type = NULL;
    }
    return rest || (count && text_to_long(slice_of(count), 1, 4096, n) < 0) ? -EINVAL : 0;
}

/* One of "gpu", "gpu:2", "gpu:v100", "gpu:v100:2", perhaps with "gres:" or "gres/" before it. A
 * job's shards are of one GPU: several are all of it, or the gate would have made one of them.
 */
static int read_gres_item(struct arena *a, struct slice item, struct gres_request *out,
                          struct err *e)
{
    char *text = clean(a, item.at, item.len);
    char *rest = strncmp(text, "gres:", 5) == 0 || strncmp(text, "gres/", 5) == 0 ? text + 5 : text;
    const char *type;
    long n;

    if (*rest == '\0' || strcmp(rest, "(null)") == 0 || strcmp(rest, "N/A") == 0)
        return 0;
    const char *kind = strsep(&rest, ":");
    const bool is_part = strcmp(kind, "shard") == 0 || strcmp(kind, "mps") == 0;
    if (strcmp(kind, "gpu") != 0 && !is_part) {
        if (!out->is_strict)
            return 0;
        return err_set(e, EINVAL, "gres: '%.60s' is no GPU, and nothing else can be had here",
                       text);
    }
    if (read_count(rest, &type, &n) < 0)
        return err_set(e, EINVAL, "gres: '%.*s' is not of the form gpu:TYPE:NUMBER",
                       (int)(item.len < 60 ? item.len : 60), item.at);
    if (out->n > 0)
        return err_set(e, EINVAL,
                       "gres: GPUs of one kind, please; say types=A,B after 'gogh:' "
                       "where several will do");
    out->n = is_part ? 1 : (int)n;
    out->type = type && type[0] ? type : NULL;
    out->is_alone = strcmp(kind, "shard") == 0 && n > 1;
    return 0;
}

static int read_gres(struct arena *a, const char *gres, struct gres_request *out, struct err *e)
{
    while (*gres) {
        const size_t len = strcspn(gres, ",");
        if (read_gres_item(a, (struct slice){ gres, len }, out, e) < 0)
            return -EINVAL;
        gres += len + (gres[len] == ',');
    }
    return 0;
}

/* The GPU type that a gres type means: "v100" of "v100_1", where each device has one of its own. */
static const char *type_meant(struct arena *a, const struct catalog *c, const char *type)
{
    const char *bar = strrchr(type, '_');

    if (catalog_find_type_alike(c, type) >= 0 || submit_find_whole(a, c, type) >= 0 || !bar ||
        bar[1] == '\0' || strspn(bar + 1, "0123456789") != strlen(bar + 1))
        return type;
    return arena_strndup(a, type, (size_t)(bar - type));
}

/* GPUs, nodes and types into 'body', where the promise does not say them itself. Those of a node
 * times the nodes; where nobody said how many nodes, all of them, wherever.
 */
static int put_gpus(struct arena *a, const struct submit_context *context,
                    const struct slurm_job *j, const struct slurm_note *note, json_t *body,
                    struct err *e)
{
    const json_t *said = json_object_get(body, "nodes");
    struct gres_request asked = { .is_strict = note->is_new };

    if (read_gres(a, note->is_new ? note->gres : j->gres, &asked, e) < 0)
        return -EINVAL;
    const long n_nodes = said           ? (long)json_integer_value(said)
                         : note->is_new ? note->n_nodes
                                        : j->n_nodes;
    const long n = (asked.n ? asked.n : 1) * (n_nodes > 0 ? n_nodes : 1);
    if (!json_object_get(body, "gpus"))
        json_object_set_new(body, "gpus", json_integer(n));
    if (json_integer_value(json_object_get(body, "gpus")) == 1 && n_nodes == 1)
        json_object_del(body, "nodes");    // one is on one node wherever it is
    else if (n_nodes > 0)
        json_object_set_new(body, "nodes", json_integer(n_nodes));
    if (asked.is_alone && !json_object_get(body, "exclusive"))
        json_object_set_new(body, "exclusive", json_true());
    if (asked.type && !json_object_get(body, "types"))
        json_object_set_new(body, "types",
                            json_pack("[s]", type_meant(a, context->catalog, asked.type)));
    return 0;
}

/* ---- its name and command ---- */

/* The user's own name where nobody has it, else with the number that Slurm has for it. */
static const char *name_of(struct arena *a, const struct state *s, const struct slurm_job *j,
                           const char *asked)
{
    const struct slice trimmed = slice_trim(slice_of(clean(a, asked ? asked : j->name, NAME_ROOM)));
    const char *own = arena_strndup(a, trimmed.at, trimmed.len);
    const char *name;

    if (!text_is_name(slice_of(own)))
        own = "job";
    if (j->array >= 0)
        name = arena_printf(a, "%s-%ld_%ld", own, j->array, j->task);
    else if (reading_is_taken(s, own) || strspn(own, "0123456789") == strlen(own))
        name = arena_printf(a, "%s-%ld", own, j->id);
    else
        name = own;
    const char *first = name;
    for (int i = 2; reading_is_taken(s, name); i++)
        name = arena_printf(a, "%s-%d", first, i);
    return name;
}

static bool is_said(const char *text)
{
    return text && text[0] && strcmp(text, "(null)") != 0;
}

static void put_command(struct arena *a, const struct slurm_job *j, const char *secret,
                        json_t *body)
{
    const char *command = is_said(j->command) ? j->command : is_said(j->name) ? j->name : "sbatch";

    json_object_set_new(body, "argv", json_pack("[s]", clean(a, command, SUBMIT_COMMAND_MAX / 2)));
    if (is_said(j->cwd) && j->cwd[0] == '/')
        json_object_set_new(body, "cwd", json_string(clean(a, j->cwd, 4096)));
    if (secret[0])
        json_object_set_new(body, "env", json_pack("{s:s}", "GOGH_SECRET", secret));
}

/* ---- all of it ---- */

/* Nobody said what it runs: a model that its name is, as people write it, else its owner's own. */
static bool guess_workload(struct arena *a, const struct submit_context *context,
                           const struct slurm_job *j, json_t *body)
{
    const char *name = clean(a, j->name, NAME_ROOM);
    struct workload w;

    if (json_object_get(body, "workload") || !text_is_name(slice_of(name)))
        return false;
    if (workload_builtin(a, name, NAN, &w, NULL) < 0 &&
        catalog_find_workload_alike(context->catalog, name) < 0)
        return false;
    json_object_set_new(body, "workload", json_string(name));
    return true;
}

static int read_body(struct arena *a, const struct submit_context *context,
                     const struct slurm_job *j, json_t *body, struct submit *out, struct err *e)
{
    const bool is_guess = guess_workload(a, context, j, body);
    int rc = schema_check(&schema_submit, body, e);

    if (rc == 0)
        rc = submit_read(a, context, body, NULL, out, e);
    if (rc == -EINVAL && is_guess) {
        json_object_del(body, "workload");
        rc = schema_check(&schema_submit, body, e);
        if (rc == 0)
            rc = submit_read(a, context, body, NULL, out, e);
    }
    return rc;
}

/* As if it had been asked when sbatch was; who starts it, and as whom, is Slurm's business. */
static struct submit_context context_of(const struct submit_context *context,
                                        const struct slurm_job *j)
{
    struct submit_context s = *context;

    s.may_run_as = NULL;
    if (j->submit_s > 0 && j->submit_s < s.now_s)
        s.now_s = j->submit_s;
    return s;
}

static int read_new(struct arena *a, const struct submit_context *context,
                    const struct slurm_job *j, json_t *body, struct submit *out, struct err *e)
{
    struct slurm_note note;
    const char *name = json_string_value(json_object_get(body, "name"));

    json_object_set_new(body, "name", json_string(name_of(a, context->state, j, name)));
    slurm_note_read(a, j->comment, j->admin, &note);
    put_command(a, j, note.secret, body);
    int rc = put_gpus(a, context, j, &note, body, e);
    if (rc == 0)
        rc = read_body(a, context, j, body, out, e);
    out->is_held = note.is_new ? note.is_held : j->held == HOLD_USER;
    return rc;
}

/* What is refused names fields of the API; users have other words for some. */
static void put_in_words(struct arena *a, struct err *e)
{
    static const char *const words[][2] = {
        { "\"new_workload\": true", "new-workload=yes" },
        { "'grace_s'", "'grace'" },
        { "min_throughput", "min-throughput" },
        { "duration_s", "duration" },
        { "max_gpus", "max-gpus" },
    };
    const char *text = arena_strdup(a, e->text);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(text, words[i][0]);
        if (at)
            text = arena_printf(a, "%.*s%s%s", (int)(at - text), text, words[i][1],
                                at + strlen(words[i][0]));
    }
    snprintf(e->text, sizeof e->text, "%s", text);
}

int intake_read(struct accounts *known, struct arena *a, const struct submit_context *context,
                const struct slurm_job *j, struct submit *out, struct err *e)
{
    struct submit_context then = context_of(context, j);
    char key[96];
    struct caller owner;
    json_t *body = NULL;

    *out = (struct submit){ .again = -1 };
    slurm_key(j, key, sizeof key);
    out->again = state_find_key(context->state, key);
    if (out->again >= 0)
        return 0;
    then.caller = &owner;
    int rc = find_owner(known, a, j->uid, &owner, e);
    if (rc == 0)
        rc = intake_promise(a, intake_promise_text(j->comment), then.now_s, &body, e);
    if (rc == 0)
        rc = read_new(a, &then, j, body, out, e);
    if (rc < 0)
        put_in_words(a, e);
    json_decref(body);
    out->spec.key = arena_strdup(a, key);
    return rc;
}
