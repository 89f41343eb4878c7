#include "daemon/config/config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/un.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/words.h"
#include "daemon/config/auth.h"
#include "daemon/config/inner.h"
#include "estimate/beliefs.h"

/* A line of text describes at most one thing, and no site writes a million lines. */
#define FILE_MAX ((size_t)16 << 20)

#define REPORTS_NAME "reports.sock"    // beside the socket
#define SERVICES_NAME "services"       // beside the store
#define REPORT_S 60                    // a daemon measures sooner than a simulation, which has 300

static const char *const yes_no[] = { "no", "yes", NULL };
const char *const config_modes[] = { "active", "shadow", NULL };
static const char *const executor_words[] = { "local", "slurm", NULL };
static const char *const gpus_words[] = { "auto", "nvml", "rocm", "declared", NULL };
static const char *const power_words[] = { "auto", "nvml", "rocm", "dcgm", "model", NULL };
static const char *const log_words[] = { "error", "warn", "info", "debug", NULL };

#define AT(field) .offset = offsetof(struct config, field)

const struct setting config_settings[] = {
    { "store", SETTING_PATH, AT(store) },
    { "run_dir", SETTING_PATH, AT(run_dir) },
    { "services_dir", SETTING_PATH, AT(services_dir) },
    { "service_ports", SETTING_OWN, AT(port_first) },
    { "scrape_table", SETTING_PATH, AT(scrape_table) },
    { "socket", SETTING_OWN, AT(socket) },
    { "listen", SETTING_OWN, AT(listen) },
    { "tokens", SETTING_PATH, AT(tokens), .may_reload = true },
    { "reports", SETTING_SOCKET, AT(reports) },
    { "reports_udp", SETTING_ADDRESS, AT(reports_udp) },
    { "mode", SETTING_CHOICE, AT(mode), .words = config_modes },
    { "policy", SETTING_TEXT, AT(policy), .may_reload = true },
    { "shadow_policy", SETTING_TEXT, AT(shadow_policy), .may_reload = true },
    { "model", SETTING_TEXT, AT(model) },
    { "estimator", SETTING_CHOICE, AT(estimator), .words = estimator_names },
    { "learn", SETTING_FLAG, AT(is_learning) },
    { "seed", SETTING_WHOLE, AT(seed), 0, 1e15 },
    { "executor", SETTING_CHOICE, AT(executor), .words = executor_words },
    { "slurm_partition", SETTING_TEXT, AT(slurm_partition) },
    { "slurm_conf", SETTING_PATH, AT(slurm_conf) },
    { "slurm_commands", SETTING_PATH, AT(slurm_commands) },
    { "slurm_poll_s", SETTING_NUMBER, AT(slurm_poll_s), 0.5, 600 },
    { "slurm_patience_s", SETTING_NUMBER, AT(slurm_patience_s), 5, 86400 },
    { "slurm_rate", SETTING_NUMBER, AT(slurm_rate), 0.5, 1000 },
    { "slurm_sleep", SETTING_FLAG, AT(slurm_sleep) },
    { "record", SETTING_PATH, AT(record) },
    { "gpus", SETTING_CHOICE, AT(gpus), .words = gpus_words },
    { "power", SETTING_OWN, AT(power), .words = power_words },
    { "power_s", SETTING_NUMBER, AT(power_s), 0.1, 3600 },
    { "mps", SETTING_FLAG, AT(uses_mps) },
    { "grace_s", SETTING_NUMBER, AT(grace_s), 0, 86400, .may_reload = true },
    { "warmup_s", SETTING_NUMBER, AT(warmup_s), 0, 86400 },
    { "solve_s", SETTING_NUMBER, AT(solve_s), 0.1, 3600, .may_reload = true },
    { "decide_s", SETTING_NUMBER, AT(decide_s), 0, 86400, .may_reload = true },
    { "timeout_s", SETTING_NUMBER, AT(timeout_s), 1, 3600 },
    { "body_max", SETTING_WHOLE, AT(body_max), 4096, 1 << 30 },
    { "connections_max", SETTING_WHOLE, AT(connections_max), 4, 1 << 20 },
    { "rate_max", SETTING_NUMBER, AT(rate_max), 0, 1e9 },
    { "job_labels", SETTING_FLAG, AT(has_job_labels), .may_reload = true },
    { "log", SETTING_CHOICE, AT(log), .words = log_words, .may_reload = true },
};
const int config_n_settings = sizeof config_settings / sizeof *config_settings;

struct config_reader {
    struct words words;
    struct arena *arena;
    struct config *out;
    int *lines;      // (of config_settings)
    int set_line;    // of 'set decide_s'; 0: none
    bool has_nodes, sets_report;
    int cap_allow;
    struct buf cluster;    // the text with all other lines blank
    struct buf own;        // more lines for it: see add_own_node
    int n_own;
};

#define HERE(r) (r)->words.name, (r)->words.line
#define SHORT(s) (int)((s).len < 60 ? (s).len : 60), (s).at

/* ---- defaults ---- */

void config_defaults(struct config *c)
{
    *c = (struct config){
        .store = "/var/lib/gogh/gogh.db",
        .run_dir = "/var/lib/gogh/runs",
        .services_dir = "/var/lib/gogh/" SERVICES_NAME,
        .port_first = 20000,
        .port_last = 29999,
        .socket = CONFIG_SOCKET,
        .socket_mode = 0666,
        .socket_scope = SCOPE_SUBMIT,
        .reports = "/run/gogh/" REPORTS_NAME,
        .policy = "gogh",
        .shadow_policy = "fifo-fastest",
        .is_learning = true,
        .seed = 1,
        .slurm_partition = "gogh",
        .slurm_poll_s = 2,
        .slurm_patience_s = 60,
        .slurm_rate = 4,
        .uses_mps = false,
        .power_s = 5,
        .grace_s = 30,
        .warmup_s = 10,
        .solve_s = 10,
        .decide_s = 1,
        .timeout_s = 15,
        .body_max = 1 << 20,
        .connections_max = 512,
        .rate_max = 2000,
        .log = LOG_INFO,
    };
    cluster_defaults(&c->cluster.settings);
    c->cluster.settings.report_s = REPORT_S;
    c->cluster.settings.decide_s = c->decide_s;
}

/* ---- words ---- */

/* "; did you mean 'x'?" when one of the words is near, else "". */
static const char *meant(struct config_reader *r, struct slice given, const char *const *words)
{
    const int limit = given.len > 5 ? 3 : 2;    // farther is another word, not a slip
    const char *best = text_nearest(arena_strndup(r->arena, given.at, given.len), words, limit);

    return best != NULL ? arena_printf(r->arena, "; did you mean '%s'?", best) : "";
}

static const char *list_of(struct config_reader *r, const char *const *words)
{
    const char *list = words[0];

    for (int i = 1; words[i] != NULL; i++)
        list =
            arena_printf(r->arena, "%s%s%s", list, words[i + 1] != NULL ? ", " : " or ", words[i]);
    return list;
}

/* The place of a word among others, or -EINVAL. */
static int take_choice(struct config_reader *r, const char *what, struct slice given,
                       const char *const *words, struct err *e)
{
    for (int i = 0; words[i] != NULL; i++)
        if (slice_is(given, words[i]))
            return i;
    return err_set(e, EINVAL, "%s:%d: %s is %s, not '%.*s'%s", HERE(r), what, list_of(r, words),
                   SHORT(given), meant(r, given, words));
}

static int take_path(struct config_reader *r, const char *what, struct slice given, size_t max,
                     const char **out, struct err *e)
{
    char here[4096];

    *out = words_name(&r->words, given);
    if (*out == NULL)
        return err_set(e, EINVAL, "%s:%d: %s wants a path, not '%.*s'", HERE(r), what,
                       SHORT(given));
    if ((*out)[0] != '/' && getcwd(here, sizeof here) != NULL)    // as seen from where we are
        *out = arena_printf(r->words.arena, "%s/%s", here, *out);
    if (max > 0 && strlen(*out) >= max)
        return err_set(e, EINVAL,
                       "%s:%d: %s: a socket's path has at most %zu bytes; choose a "
                       "shorter one",
                       HERE(r), what, max - 1);
    return 0;
}

#define SOCKET_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* "HOST:PORT", "[::1]:PORT". */
static int take_address(struct config_reader *r, const char *what, struct slice given,
                        const char **out, struct err *e)
{
    const char *text = words_name(&r->words, given);
    const char *colon = text != NULL ? strrchr(text, ':') : NULL;
    long port;

    if (colon == NULL || colon == text || text_to_long(slice_of(colon + 1), 0, 65535, &port) < 0)
        return err_set(e, EINVAL, "%s:%d: %s wants HOST:PORT, e.g. 127.0.0.1:7117, not '%.*s'",
                       HERE(r), what, SHORT(given));
    if (memchr(text, ':', (size_t)(colon - text)) != NULL && text[0] != '[')
        return err_set(e, EINVAL, "%s:%d: %s: put the address in brackets: [%.*s]%s", HERE(r), what,
                       (int)(colon - text), text, colon);
    *out = text;
    return 0;
}

/* The whole host counts: "127.example.org" and "localhost.example.org" are elsewhere. */
bool config_is_loopback(const char *address)
{
    const size_t n = address[0] == '[' ? strcspn(address, "]") + 1 : strcspn(address, ":/?#");

    return (n == 9 && strncmp(address, "localhost", n) == 0) ||
           (n == 5 && strncmp(address, "[::1]", n) == 0 && strchr(":/?#", address[n]) != NULL) ||
           (strncmp(address, "127.", 4) == 0 && strspn(address, "0123456789.") == n);
}

/* The line has one value, and that has no key. */
static int need_one(struct config_reader *r, const char *what, struct err *e)
{
    if (r->words.n < 2)
        return err_set(e, EINVAL, "%s:%d: %s has no value; 'gogh config template' shows one",
                       HERE(r), what);
    if (r->words.n > 2)
        return err_set(e, EINVAL,
                       "%s:%d: %s takes one value, and '%.*s' is one more; a value with blanks "
                       "wants quotes",
                       HERE(r), what, SHORT(r->words.word[2].value));
    if (r->words.word[1].key.at != NULL)
        return err_set(e, EINVAL, "%s:%d: %s wants no KEY=; a value with '=' wants quotes", HERE(r),
                       what);
    return 0;
}

/* ---- lines of their own shape ---- */

/* The words from 'first' on are keys and values out of 'keys' (up to NULL); values into 'out'. */
static int take_keys(struct config_reader *r, const char *what, int first, const char *const *keys,
                     struct slice *out, struct err *e)
{
    for (int i = first; i < r->words.n; i++) {
        const struct word *w = &r->words.word[i];
        int k = 0;

        if (w->key.at == NULL)
            return err_set(e, EINVAL, "%s:%d: %s: want KEY=VALUE, not '%.*s'", HERE(r), what,
                           SHORT(w->value));
        while (keys[k] != NULL && !slice_is(w->key, keys[k]))
            k++;
        if (keys[k] == NULL)
            return err_set(e, EINVAL, "%s:%d: %s has no '%.*s='; there is %s%s", HERE(r), what,
                           SHORT(w->key), list_of(r, keys), meant(r, w->key, keys));
        if (out[k].at != NULL)
            return err_set(e, EINVAL, "%s:%d: %s: %s= is there twice", HERE(r), what, keys[k]);
        out[k] = w->value;
    }
    return 0;
}

/* Octal, as chmod has it. */
static int take_mode(struct config_reader *r, struct slice given, mode_t *out, struct err *e)
{
    mode_t mode = 0;

    for (size_t i = 0; i < given.len; i++) {
        if (given.at[i] < '0' || given.at[i] > '7' || mode > 0777)
            mode = 01000;
        else
            mode = mode * 8 + (mode_t)(given.at[i] - '0');
    }
    if (given.len == 0 || mode > 0777)
        return err_set(e, EINVAL, "%s:%d: socket: mode= wants octal digits up to 0777, not '%.*s'",
                       HERE(r), SHORT(given));
    *out = mode;
    return 0;
}

/* socket PATH|none [mode=0666] [scope=submit] */
static int take_socket(struct config_reader *r, struct err *e)
{
    static const char *const keys[] = { "mode", "scope", NULL };
    struct slice values[2] = { 0 }, path = r->words.word[1].value;
    int rc = 0;

    if (r->words.n < 2 || r->words.word[1].key.at != NULL)
        return err_set(e, EINVAL, "%s:%d: want 'socket PATH [mode=0666] [scope=submit]'", HERE(r));
    if (slice_is(path, "none"))
        r->out->socket = NULL;
    else
        rc = take_path(r, "socket", path, SOCKET_PATH_MAX, &r->out->socket, e);
    if (rc == 0)
        rc = take_keys(r, "socket", 2, keys, values, e);
    if (rc == 0 && values[0].at != NULL)
        rc = take_mode(r, values[0], &r->out->socket_mode, e);
    if (rc == 0 && values[1].at != NULL) {
        rc = take_choice(r, "scope", values[1], scope_names, e);
        r->out->socket_scope = rc;
    }
    return rc < 0 ? rc : 0;
}

/* listen HOST:PORT [cert=FILE key=FILE] */
static int take_listen(struct config_reader *r, struct err *e)
{
    static const char *const keys[] = { "cert", "key", NULL };
    struct slice values[2] = { 0 };
    struct config *c = r->out;
    int rc;

    if (r->words.n < 2 || r->words.word[1].key.at != NULL)
        return err_set(e, EINVAL, "%s:%d: want 'listen HOST:PORT [cert=FILE key=FILE]'", HERE(r));
    rc = take_address(r, "listen", r->words.word[1].value, &c->listen, e);
    if (rc == 0)
        rc = take_keys(r, "listen", 2, keys, values, e);
    if (rc == 0 && values[0].at != NULL)
        rc = take_path(r, "cert=", values[0], 0, &c->cert, e);
    if (rc == 0 && values[1].at != NULL)
        rc = take_path(r, "key=", values[1], 0, &c->key, e);
    if (rc == 0 && (c->cert == NULL) != (c->key == NULL))
        return err_set(e, EINVAL, "%s:%d: listen: cert= and key= go together", HERE(r));
    if (rc == 0 && c->cert == NULL && !config_is_loopback(c->listen))
        return err_set(e, EINVAL,
                       "%s:%d: listen: without TLS only on the loopback: add cert=FILE key=FILE, "
                       "or listen on 127.0.0.1",
                       HERE(r));
    return rc;
}

/* power auto|nvml|rocm|model|dcgm=URL */
static int take_power(struct config_reader *r, struct err *e)
{
    const struct word *w = &r->words.word[1];
    int rc;

    if (r->words.n == 2 && slice_is(w->key, "dcgm")) {
        const char *url = words_name(&r->words, w->value);

        if (url == NULL || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
            return err_set(e, EINVAL,
                           "%s:%d: power: dcgm= wants an address, e.g. "
                           "dcgm=http://127.0.0.1:9400/metrics",
                           HERE(r));
        r->out->power = POWER_DCGM;
        r->out->dcgm_url = url;
        return 0;
    }
    rc = need_one(r, "power", e);
    if (rc == 0)
        rc = take_choice(r, "power", w->value, power_words, e);
    if (rc == POWER_DCGM)
        return err_set(e, EINVAL,
                       "%s:%d: power: dcgm needs its address: dcgm=http://HOST:PORT/metrics",
                       HERE(r));
    r->out->power = rc < 0 ? POWER_AUTO : (enum config_power)rc;
    return rc < 0 ? rc : 0;
}

/* allow user=NAME|group=NAME SCOPE */
static int take_allow(struct config_reader *r, struct err *e)
{
    const struct word *who = &r->words.word[1];
    struct config *c = r->out;
    bool is_group = r->words.n == 3 && slice_is(who->key, "group");
    const char *name;
    int scope;

    if (r->words.n != 3 || r->words.word[2].key.at != NULL ||
        (!is_group && !slice_is(who->key, "user")))
        return err_set(e, EINVAL, "%s:%d: want 'allow user=NAME SCOPE' or 'allow group=NAME SCOPE'",
                       HERE(r));
    name = words_name(&r->words, who->value);
    if (name == NULL)
        return err_set(e, EINVAL, "%s:%d: allow: '%.*s' is no name", HERE(r), SHORT(who->value));
    scope = take_choice(r, "what is allowed", r->words.word[2].value, scope_names, e);
    if (scope < 0)
        return scope;
    for (int i = 0; i < c->n_allow; i++)
        if (c->allow[i].is_group == is_group && strcmp(c->allow[i].name, name) == 0)
            return err_set(e, EINVAL, "%s:%d: allow: line %d is about '%s' already", HERE(r),
                           c->allow[i].line, name);
    ARENA_GROW(r->arena, c->allow, c->n_allow, r->cap_allow);
    c->allow[c->n_allow++] = (struct config_allow){ is_group, name, scope, r->words.line };
    return 0;
}

/* ---- plain lines ---- */

static int take_number(struct config_reader *r, const struct setting *s, struct slice given,
                       struct err *e)
{
    double v;

    if (text_to_double(given, &v) < 0 || v < s->low || v > s->high)
        return err_set(e, EINVAL, "%s:%d: %s wants a number from %.10g to %.10g, not '%.*s'",
                       HERE(r), s->name, s->low, s->high, SHORT(given));
    memcpy((char *)r->out + s->offset, &v, sizeof v);
    return 0;
}

static int take_whole(struct config_reader *r, const struct setting *s, struct slice given,
                      struct err *e)
{
    long *out = (long *)((char *)r->out + s->offset);

    if (text_to_long(given, (long)s->low, (long)s->high, out) < 0)
        return err_set(e, EINVAL, "%s:%d: %s wants a whole number from %.0f to %.0f, not '%.*s'",
                       HERE(r), s->name, s->low, s->high, SHORT(given));
    return 0;
}

static int take_text(struct config_reader *r, const struct setting *s, struct slice given,
                     struct err *e)
{
    const char **out = (const char **)((char *)r->out + s->offset);

    *out = words_name(&r->words, given);
    return *out != NULL
               ? 0
               : err_set(e, EINVAL, "%s:%d: %s wants 1 to 200 printable bytes", HERE(r), s->name);
}

static int take_plain(struct config_reader *r, const struct setting *s, struct err *e)
{
    void *out = (char *)r->out + s->offset;
    struct slice value = r->words.word[1].value;
    int rc = need_one(r, s->name, e);

    if (rc < 0)
        return rc;
    switch (s->kind) {
    case SETTING_PATH:
        return take_path(r, s->name, value, 0, out, e);
    case SETTING_SOCKET:
        if (!slice_is(value, "none"))
            return take_path(r, s->name, value, SOCKET_PATH_MAX, out, e);
        *(const char **)out = NULL;
        return 0;
    case SETTING_ADDRESS:
        return take_address(r, s->name, value, out, e);
    case SETTING_TEXT:
        return take_text(r, s, value, e);
    case SETTING_NUMBER:
        return take_number(r, s, value, e);
    case SETTING_WHOLE:
        return take_whole(r, s, value, e);
    case SETTING_FLAG:
        rc = take_choice(r, s->name, value, yes_no, e);
        *(bool *)out = rc == 1;
        break;
    default:
        rc = take_choice(r, s->name, value, s->words, e);
        *(int *)out = rc;
    }
    return rc < 0 ? rc : 0;
}

/* 20000-29999 */
static int take_ports(struct config_reader *r, struct err *e)
{
    struct slice given = r->words.word[1].value;
    const char *dash = given.len > 0 ? memchr(given.at, '-', given.len) : NULL;
    long first = 0, last = 0;
    int rc = need_one(r, "service_ports", e);

    if (rc < 0)
        return rc;
    if (dash == NULL ||
        text_to_long((struct slice){ given.at, (size_t)(dash - given.at) }, 1, 65535, &first) < 0 ||
        text_to_long((struct slice){ dash + 1, given.len - (size_t)(dash - given.at) - 1 }, 1,
                     65535, &last) < 0 ||
        last < first)
        return err_set(e, EINVAL,
                       "%s:%d: service_ports wants the first and the last port, say 20000-29999",
                       HERE(r));
    r->out->port_first = (int)first;
    r->out->port_last = (int)last;
    return 0;
}

static int take_own(struct config_reader *r, const struct setting *s, struct err *e)
{
    if (strcmp(s->name, "service_ports") == 0)
        return take_ports(r, e);
    if (strcmp(s->name, "socket") == 0)
        return take_socket(r, e);
    return strcmp(s->name, "listen") == 0 ? take_listen(r, e) : take_power(r, e);
}

static int take_setting(struct config_reader *r, int i, struct err *e)
{
    const struct setting *s = &config_settings[i];

    if (r->lines[i] != 0)
        return err_set(e, EINVAL, "%s:%d: %s is set in line %d already; keep one of the two",
                       HERE(r), s->name, r->lines[i]);
    r->lines[i] = r->words.line;
    return s->kind == SETTING_OWN ? take_own(r, s, e) : take_plain(r, s, e);
}

/* ---- the file ---- */

static int find_setting(struct slice name)
{
    for (int i = 0; i < config_n_settings; i++)
        if (slice_is(name, config_settings[i].name))
            return i;
    return -1;
}

/* cluster_parse keeps the types that nodes have and wants a node. Here GPUs may be found instead of
 * declared, so every described type gets a node of its own, which is forgotten afterwards.
 */
static void add_own_node(struct config_reader *r, struct slice type)
{
    buf_printf(&r->own, "\nnode \"(gogh.conf gputype %d)\" ", r->n_own++);
    words_put(&r->own, arena_printf(r->arena, "%.*s:1", (int)type.len, type.at));
}

/* A line for cluster_parse, which says what is wrong with it; true when it is one. */
static bool is_cluster_line(struct config_reader *r, struct slice verb)
{
    struct slice key = r->words.n > 1 ? r->words.word[1].value : (struct slice){ "", 0 };

    if (slice_is(verb, "set")) {
        r->sets_report = r->sets_report || slice_is(key, "report_s");
        if (slice_is(key, "decide_s"))
            r->set_line = r->words.line;
        return true;
    }
    r->has_nodes = r->has_nodes || slice_is(verb, "node");
    if (slice_is(verb, "gputype") && r->words.n > 1 && r->words.word[1].key.at == NULL &&
        text_is_name(key))
        add_own_node(r, key);
    return slice_is(verb, "node") || slice_is(verb, "gputype") || slice_is(verb, "workload");
}

/* The same of what a line may begin with. */
static const char *meant_setting(struct config_reader *r, struct slice given)
{
    static const char *const more[] = { "allow", "node", "gputype", "workload", "set", NULL };
    const char
        *words[sizeof config_settings / sizeof *config_settings + sizeof more / sizeof *more];

    for (int i = 0; i < config_n_settings; i++)
        words[i] = config_settings[i].name;
    memcpy(words + config_n_settings, more, sizeof more);
    return meant(r, given, words);
}

static int take_line(struct config_reader *r, bool *is_cluster, struct err *e)
{
    const struct word *first = &r->words.word[0];
    struct slice verb = first->key.at == NULL ? first->value : first->key;
    int i = find_setting(verb);

    *is_cluster = false;
    if (first->key.at != NULL)
        return err_set(e, EINVAL, "%s:%d: want '%.*s VALUE', without '='%s", HERE(r), SHORT(verb),
                       i < 0 ? meant_setting(r, verb) : "");
    if (i >= 0)
        return take_setting(r, i, e);
    if (slice_is(verb, "allow"))
        return take_allow(r, e);
    *is_cluster = is_cluster_line(r, verb);
    if (*is_cluster)
        return 0;
    return err_set(e, EINVAL,
                   "%s:%d: there is no setting '%.*s'%s ('gogh config template' has them all)",
                   HERE(r), SHORT(verb), meant_setting(r, verb));
}

/* A copy of 'text' for cluster_parse, where line numbers stay what they were. */
static void keep_lines(struct config_reader *r, const char *from, const char *to, bool is_cluster)
{
    if (is_cluster) {
        buf_append(&r->cluster, from, (size_t)(to - from));
        return;
    }
    for (; from < to; from++)
        if (*from == '\n')
            buf_append(&r->cluster, "\n", 1);
}

static int take_cluster(struct config_reader *r, struct err *e)
{
    struct cluster *c = &r->out->cluster;
    const bool has_types = r->has_nodes || r->n_own > 0;

    if (!has_types)
        add_own_node(r, slice_of("v100"));
    buf_puts(&r->cluster, buf_text(&r->own));
    int rc = cluster_parse(r->arena, r->words.name, buf_text(&r->cluster), r->cluster.len, c, e);
    if (rc < 0)
        return rc;
    c->n_nodes -= r->n_own;
    c->n_gpus -= r->n_own;
    if (!has_types)
        c->n_types = 0;
    if (!r->sets_report)
        c->settings.report_s = REPORT_S;
    return 0;
}

/* decide_s is a setting of ours and one of clusters: one value for both. */
static int settle_decide(struct config_reader *r, struct err *e)
{
    struct config *c = r->out;
    int line = r->lines[find_setting(slice_of("decide_s"))];

    if (line != 0 && r->set_line != 0)
        return err_set(e, EINVAL, "%s:%d: decide_s is set in line %d already; keep one of the two",
                       r->words.name, line > r->set_line ? line : r->set_line,
                       line > r->set_line ? r->set_line : line);
    if (r->set_line != 0)
        c->decide_s = c->cluster.settings.decide_s;
    else
        c->cluster.settings.decide_s = c->decide_s;
    return 0;
}

static void settle_services(struct config_reader *r)
{
    const char *slash = strrchr(r->out->store, '/');

    if (r->lines[find_setting(slice_of("services_dir"))] == 0 && slash != NULL)
        r->out->services_dir = arena_printf(r->arena, "%.*s/" SERVICES_NAME,
                                            (int)(slash - r->out->store), r->out->store);
}

static int settle_reports(struct config_reader *r, struct err *e)
{
    struct config *c = r->out;
    const char *beside = c->socket != NULL ? c->socket : c->run_dir;
    const char *slash = strrchr(beside, '/');
    const int line = r->lines[find_setting(slice_of("reports"))];

    if (c->reports == NULL && c->reports_udp == NULL)
        return err_set(e, EINVAL,
                       "%s:%d: reports none: then jobs need 'reports_udp HOST:PORT' to report to",
                       r->words.name, line);
    if (line == 0)
        c->reports = arena_printf(r->arena, "%.*s/" REPORTS_NAME, (int)(slash - beside), beside);
    if (c->reports && strlen(c->reports) >= SOCKET_PATH_MAX)
        return err_set(e, EINVAL,
                       "%s: socket: its directory leaves no room for " REPORTS_NAME
                       " beside it; want a shorter one, or 'reports PATH'",
                       r->words.name);
    return 0;
}

static int read_lines(struct config_reader *r, struct err *e)
{
    const char *from = r->words.at;
    int rc;

    while ((rc = words_next(&r->words, e)) > 0) {
        bool is_cluster;

        rc = take_line(r, &is_cluster, e);
        if (rc < 0)
            return rc;
        keep_lines(r, from, r->words.at, is_cluster);
        from = r->words.at;
    }
    if (rc == 0)
        settle_services(r);
    return rc < 0 ? rc : settle_reports(r, e);
}

int config_parse(struct arena *a, const char *name, const char *text, size_t len,
                 struct config *out, struct err *e)
{
    struct config_reader r = { .arena = a, .out = out };
    int rc;

    config_defaults(out);
    out->path = name;
    r.lines = ARENA_ARRAY(a, int, (size_t)config_n_settings);
    out->lines = r.lines;
    words_open(&r.words, a, name, text, len);
    buf_init(&r.cluster, 8 * len + 1024);    // a described type gets a line of 40 bytes more
    buf_init(&r.own, 8 * len + 1024);
    rc = read_lines(&r, e);
    if (rc == 0)
        rc = take_cluster(&r, e);
    if (rc == 0)
        rc = settle_decide(&r, e);
    buf_release(&r.cluster);
    buf_release(&r.own);
    return rc;
}

int config_read(struct arena *a, const char *path, struct config *out, struct err *e)
{
    const char *text;
    size_t len;
    int rc = file_read_text(a, path, NULL, FILE_MAX, &text, &len, e);

    return rc < 0 ? rc : config_parse(a, arena_strdup(a, path), text, len, out, e);
}

int config_line(const struct config *c, const char *word)
{
    int i = find_setting(slice_of(word));

    if (strcmp(word, "allow") == 0)
        return c->n_allow > 0 ? c->allow[0].line : 0;
    return i < 0 || c->lines == NULL ? 0 : c->lines[i];
}
