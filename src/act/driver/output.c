#include "act/driver/output.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/hosts.h"
#include "act/driver/owners.h"
#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"

/* ---- records ----
 *
 * A field ends with 0x1f, the mark, and '{' after the first one of a record, ';' after those
 * between, '}' after the last, which ends the line. No comma: the formats are parted by these.
 */
#define SEPARATOR '\x1f'

#define SITE_LEN 16    // hex digits of a token, before its '-'

static const char *format_of(struct arena *a, const char *const *names, int n, const char *mark)
{
    struct buf b;

    buf_init(&b, 8192);
    for (int i = 0; i < n; i++)
        (void)buf_printf(&b, "%s%s:0%c%s%c", i ? "," : "", names[i], SEPARATOR, mark,
                         i == 0       ? '{'
                         : i == n - 1 ? '}'
                                      : ';');
    return buf_keep(&b, a);
}

struct record_reader {
    char *at, *end;
    char needle[OUTPUT_MARK_LEN + 2];    // 0x1f and the mark
    size_t needle_len;
    bool is_lost;    // looking for the next record
};

static struct record_reader reader_of(char *text, size_t len, const char *mark)
{
    struct record_reader r = { .at = text, .end = text + len };

    assert(strlen(mark) <= OUTPUT_MARK_LEN);
    r.needle_len = (size_t)snprintf(r.needle, sizeof r.needle, "%c%s", SEPARATOR, mark);
    return r;
}

/* The field at 'at', ended by NUL in place, and what kind of mark ended it; NULL: there is none. */
static char *next_field(struct record_reader *r, char *kind)
{
    char *field = r->at;
    char *found = memmem(field, (size_t)(r->end - field), r->needle, r->needle_len);

    if (!found || found + r->needle_len == r->end) {
        r->at = r->end;
        return NULL;
    }
    *kind = found[r->needle_len];
    *found = '\0';
    r->at = found + r->needle_len + 1;
    return strlen(field) == (size_t)(found - field) ? field : NULL;    // no NUL inside
}

/* The line that a record's first field is on, where there is something unreadable before it. */
static char *last_line(char *text)
{
    char *feed = strrchr(text, '\n');

    return feed ? feed + 1 : text;
}

/* The first field of the next record; NULL: what is there is none, or (at the end) nothing is. */
static const char *next_head(struct record_reader *r)
{
    while (r->at < r->end) {
        char kind = '\0';
        char *field = next_field(r, &kind);
        const bool was_lost = r->is_lost;

        if (field && kind == '{')
            return was_lost ? last_line(field) : field;
        r->is_lost = true;
        if (!was_lost)
            return NULL;
    }
    return NULL;
}

/* The next record's 'n' fields. 1; 0: no more; -1: what is there is not one. */
static int next_record(struct record_reader *r, int n, const char **fields)
{
    const bool was_lost = r->is_lost;

    if (r->at == r->end)
        return 0;
    fields[0] = next_head(r);
    if (!fields[0])
        return r->is_lost && !was_lost ? -1 : 0;
    r->is_lost = false;
    for (int i = 1; i < n; i++) {
        char kind = '\0';
        char *field = next_field(r, &kind);

        fields[i] = field;
        if (field && kind == (i == n - 1 ? '}' : ';'))
            continue;
        if (field && kind == '{') {    // cut short, and here begins the next one
            field[strlen(field)] = SEPARATOR;
            r->at = memrchr(field, '\n', (size_t)(r->at - field));
            r->at = r->at ? r->at + 1 : field;
            return -1;
        }
        r->is_lost = true;
        return -1;
    }
    if (r->at < r->end && *r->at++ != '\n')
        return -1;
    return 1;
}

/* 'name' says which job or node it is; NULL: that cannot be told. */
static void bad_add(struct arena *a, struct output_bad *bad, const char *name, const char *why)
{
    if (name && bad->n_names < OUTPUT_BAD_MAX)
        bad->names[bad->n_names++] = arena_strdup(a, name);
    if (bad->n++ == 0)
        bad->why = arena_printf(a, "%.60s: %s", name ? name : "a line", why);
}

/* ---- jobs ---- */

/* Ours, and squeue's. */
// clang-format off
#define JOB_LIST(X) \
    X(ID, "JobID") X(ARRAY, "ArrayJobID") X(TASK, "ArrayTaskID") X(UID, "UserID") \
    X(PARTITION, "Partition") X(STATE, "State") X(REASON, "Reason") X(PRIORITY, "PriorityLong") \
    X(NODES, "NodeList") X(PIN, "ReqNodes") X(PER_NODE, "tres-per-node") \
    X(PER_JOB, "tres-per-job") X(PER_SOCKET, "tres-per-socket") X(PER_TASK, "tres-per-task") \
    X(N_NODES, "NumNodes") X(RUN, "RestartCnt") X(SUBMIT, "SubmitTime") X(START, "StartTime") \
    X(END, "EndTime") X(EXIT, "exit_code") X(CPUS, "NumCPUs") X(MEMORY, "MinMemory") \
    X(FEATURES, "Feature") X(LIMIT, "TimeLimit") X(NAME, "Name") X(COMMENT, "Comment") \
    X(ADMIN, "admin_comment") X(COMMAND, "Command") X(CWD, "WorkDir") X(OUT, "STDOUT")
// clang-format on

#define AS_ENUM(name, word) JOB_##name,
#define AS_WORD(name, word) word,

enum job_field { JOB_LIST(AS_ENUM) JOB_FIELDS };

static const char *const job_names[JOB_FIELDS] = { JOB_LIST(AS_WORD) };

const char *output_jobs_format(struct arena *a, const char *mark)
{
    return format_of(a, job_names, JOB_FIELDS, mark);
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* As Slurm says that there is nothing. */
static const char *present(const char *value)
{
    return is_one_of(value, (const char *const[]){ "(null)", "N/A", "", "None assigned", NULL })
               ? NULL
               : value;
}

static long number_or(const char *value, long otherwise)
{
    long n = otherwise;

    return text_to_long(slice_of(value), 0, LONG_MAX, &n) < 0 ? otherwise : n;
}

static bool is_pending(const char *state)
{
    return is_one_of(state,
                     (const char *const[]){ "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
                                            "SPECIAL_EXIT", "RESV_DEL_HOLD", NULL });
}

static bool holds_nodes(const char *state)
{
    return is_one_of(state, (const char *const[]){ "RUNNING", "CONFIGURING", "COMPLETING",
                                                   "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING",
                                                   "STAGE_OUT", NULL });
}

/* "gres:shard:1" (22.05) and "gres/shard:1" (later versions) are "shard:1"; what is not a gres is
 * left out.
 */
static const char *gres_of(struct arena *a, const char *tres)
{
    char *text = arena_strdup(a, tres), *to = text;

    for (struct slice s; slice_next(&tres, ',', &s);) {
        const bool is_gres = strncmp(s.at, "gres:", 5) == 0 || strncmp(s.at, "gres/", 5) == 0;

        if (is_gres && s.len > 5) {
            if (to > text)
                *to++ = ',';
            to = mempcpy(to, s.at + 5, s.len - 5);
        }
    }
    *to = '\0';
    return *text ? text : NULL;
}

bool output_has_gpus(const char *gres)
{
    for (struct slice s; gres && slice_next(&gres, ',', &s);) {
        const bool has_prefix = strncmp(s.at, "gres:", 5) == 0 || strncmp(s.at, "gres/", 5) == 0;
        const char *from = s.at + (has_prefix ? 5 : 0);
        const struct slice name = { from, strcspn(from, ":=,") };

        if (slice_is(name, "gpu") || slice_is(name, "mps") || slice_is(name, "shard"))
            return true;
    }
    return false;
}

/* The first of the ways to ask for GPUs that names any, as it was said; NULL: none does. */
static const char *gres_asked(struct arena *a, const char *const *f, int *way)
{
    for (*way = JOB_PER_NODE; *way <= JOB_PER_TASK; ++*way) {
        const char *gres = gres_of(a, f[*way]);
        if (output_has_gpus(gres))
            return gres;
    }
    return NULL;
}

/* What one of 'n' nodes has of it, rather too much than too little. */
static const char *gres_parted(struct arena *a, const char *gres, long n)
{
    char *text = arena_strdup(a, gres), *to = text;    // it only gets shorter

    while (*gres) {
        const size_t len = strcspn(gres, ",");
        const char *colon = memrchr(gres, ':', len);
        const size_t kept = colon ? (size_t)(colon - gres) + 1 : len;
        long all;

        memcpy(to, gres, len);
        if (text_to_long((struct slice){ gres + kept, len - kept }, 1, INT_MAX, &all) < 0)
            to += len;
        else
            to += kept + (size_t)snprintf(to + kept, len - kept + 1, "%ld", all / n + !!(all % n));
        gres += len;
        if (*gres == ',')
            *to++ = *gres++;
    }
    *to = '\0';
    return text;
}

/* Whether a list parted by commas has 'item'. */
static bool has_item(const char *list, const char *item)
{
    for (struct slice s; slice_next(&list, ',', &s);)
        if (slice_is(s, item))
            return true;
    return false;
}

/* A pending job may name several partitions. */
static bool is_wanted(const struct wire_message *m, const char *partitions)
{
    for (int i = 0; i < m->n_pairs; i++)
        if (strcmp(m->pairs[i].key, "partition") == 0 && has_item(partitions, m->pairs[i].value))
            return true;
    return false;
}

/* A user may hold a job that runs: it goes on, and waits once it is requeued, when its reason does
 * not say so any more. One that was requeued in held state is as good as held by us: it has no
 * user's hold on it that anybody could tell. Other pending jobs with priority 0 are held, whatever
 * the reason says.
 */
static const char *held_of(const char *const *f)
{
    const bool is_there = is_pending(f[JOB_STATE]) || holds_nodes(f[JOB_STATE]);

    if (is_there && strcmp(f[JOB_REASON], "JobHeldUser") == 0)
        return "user";
    return is_pending(f[JOB_STATE]) && number_or(f[JOB_PRIORITY], 1) == 0 ? "admin" : "no";
}

/* A status of wait(2); "3:0", as scontrol has it, will do. */
static void put_exit(struct buf *out, const char *value)
{
    const char *colon = strchr(value, ':');
    long code = number_or(value, -1), signal = 0;

    if (colon) {
        struct slice s = { value, (size_t)(colon - value) };

        signal = number_or(colon + 1, -1);
        if (text_to_long(s, 0, INT_MAX, &code) < 0)
            code = -1;
    } else if (code >= 0) {
        signal = code & 127;
        code = (code >> 8) & 255;
    }
    if (code >= 0 && signal >= 0) {
        wire_put_long(out, "exit", code);
        wire_put_long(out, "signal", signal);
    }
}

static void put_time(struct buf *out, const char *key, const char *value)
{
    const long t = number_or(value, -1);

    if (t > 0)
        wire_put_long(out, key, t);
}

/* A task whose number is still the array's is named so that nobody means the whole array. */
static const char *id_of(struct arena *a, const char *const *f)
{
    if (number_or(f[JOB_TASK], -1) >= 0 && strcmp(f[JOB_ID], f[JOB_ARRAY]) == 0)
        return arena_printf(a, "%.20s_%.20s", f[JOB_ARRAY], f[JOB_TASK]);
    return arena_printf(a, "%.20s", f[JOB_ID]);
}

static void put_id(struct arena *a, struct buf *out, const char *const *f)
{
    wire_put(out, "id", id_of(a, f));
    if (number_or(f[JOB_TASK], -1) >= 0) {
        wire_put(out, "array", f[JOB_ARRAY]);
        wire_put(out, "task", f[JOB_TASK]);
    }
}

/* Pending jobs have a time at which they might start, running ones one at which they must end. */
static void put_times(struct buf *out, const char *const *f)
{
    const bool has_begun = !is_pending(f[JOB_STATE]);
    const bool has_ended =
        has_begun && (!holds_nodes(f[JOB_STATE]) || strcmp(f[JOB_STATE], "COMPLETING") == 0);

    put_time(out, "submit_s", f[JOB_SUBMIT]);
    if (has_begun)
        put_time(out, "start_s", f[JOB_START]);
    if (has_ended) {
        put_time(out, "end_s", f[JOB_END]);
        put_exit(out, f[JOB_EXIT]);
    }
}

struct job_lists {
    const char *nodes, *pin;
    const char *gres;     // as it was asked for
    const char *share;    // a node's
};

/* "100M", "1.50G", a node's; "100Mc", a CPU's. 0: not said, or not understood. */
static long mib_of(const char *text, long cpus)
{
    char *end;
    double size = strtod(text, &end);
    const char *const units = "KMGTP", *unit = *end ? strchr(units, *end) : NULL;

    if (end == text || !(size > 0) || size > 1e9 || (*end && !unit))
        return 0;
    for (const char *at = units + 1; unit && at < unit; at++)
        size *= 1024;
    size = *end == 'K' ? size / 1024 : size;
    return (long)ceil(*end && end[1] == 'c' ? size * (double)cpus : size);
}

/* "1-02:00:00", "30:00"; 0: there is none ("UNLIMITED", "infinite"). */
static long seconds_of(const char *text)
{
    long days = 0, parts[3] = { 0 };
    const char *dash = strchr(text, '-');
    int n = 0;

    if (dash && text_to_long((struct slice){ text, (size_t)(dash - text) }, 0, 1000000, &days) < 0)
        return 0;
    for (const char *at = dash ? dash + 1 : text; n < 3; n++) {
        const size_t len = strcspn(at, ":");

        if (text_to_long((struct slice){ at, len }, 0, 1000000, &parts[n]) < 0)
            return 0;
        at += len;
        if (*at++ != ':')
            break;
    }
    const bool has_hours = n == 2 || dash;
    return 86400 * days +
           (has_hours ? 3600 * parts[0] + 60 * parts[1] + parts[2] : 60 * parts[0] + parts[1]);
}

static void put_unless_0(struct buf *out, const char *key, long value)
{
    if (value > 0)
        wire_put_long(out, key, value);
}

/* What it takes of nodes, and asks of them. */
static void put_needs(struct buf *out, const char *const *f)
{
    const long n_nodes = number_or(f[JOB_N_NODES], 1), cpus = number_or(f[JOB_CPUS], 0);
    const long on_node = n_nodes > 0 ? (cpus + n_nodes - 1) / n_nodes : cpus;

    put_unless_0(out, "cpus", on_node);
    put_unless_0(out, "mem_mib", mib_of(f[JOB_MEMORY], on_node));
}

static void put_job(struct arena *a, struct buf *out, uint64_t seq, const char *const *f,
                    const struct job_lists *x)
{
    wire_begin(out, seq, "job");
    put_id(a, out, f);
    wire_put(out, "uid", f[JOB_UID]);
    wire_put(out, "partition", f[JOB_PARTITION]);
    wire_put(out, "state", f[JOB_STATE]);
    wire_put(out, "reason", present(f[JOB_REASON]));
    wire_put(out, "held", held_of(f));
    wire_put(out, "nodes", x->nodes);
    wire_put(out, "pin", x->pin);
    wire_put(out, "gres", x->share);
    wire_put_long(out, "n_nodes", number_or(f[JOB_N_NODES], 1));
    wire_put_long(out, "run", number_or(f[JOB_RUN], 0));
    put_times(out, f);
    wire_put(out, "name", f[JOB_NAME]);
    wire_put(out, "comment", present(f[JOB_COMMENT]));
    wire_put(out, "admin", present(f[JOB_ADMIN]));
    wire_put(out, "command", present(f[JOB_COMMAND]));
    wire_put(out, "cwd", present(f[JOB_CWD]));
    wire_put(out, "out", present(f[JOB_OUT]));
    put_needs(out, f);
    wire_put(out, "features", present(f[JOB_FEATURES]));
    put_unless_0(out, "limit_s", seconds_of(f[JOB_LIMIT]));
    wire_end(out);
}

static void put_other(struct arena *a, struct buf *out, uint64_t seq, const char *const *f,
                      const struct job_lists *x)
{
    if (!holds_nodes(f[JOB_STATE]) || !x->nodes || !*x->nodes || !output_has_gpus(x->gres))
        return;
    wire_begin(out, seq, "other");
    put_id(a, out, f);
    wire_put(out, "nodes", x->nodes);
    wire_put(out, "gres", x->gres);
    put_needs(out, f);
    wire_end(out);
}

/* Numbers that must be there, and lists that must be lists. */
static int job_check(struct arena *a, const char *const *f, struct job_lists *x, struct err *e)
{
    const char *nodes = present(f[JOB_NODES]), *pin = present(f[JOB_PIN]);
    int rc = 0, way;

    *x = (struct job_lists){ .gres = gres_asked(a, f, &way) };
    const long n_nodes = number_or(f[JOB_N_NODES], 1);
    x->share = !x->gres                            ? gres_of(a, f[JOB_PER_NODE])
               : way == JOB_PER_JOB && n_nodes > 1 ? gres_parted(a, x->gres, n_nodes)
                                                   : x->gres;
    if (number_or(f[JOB_ID], 0) <= 0)
        return err_set(e, EINVAL, "not a job's number");
    if (number_or(f[JOB_UID], -1) < 0)
        return err_set(e, EINVAL, "user '%.40s' is not a number", f[JOB_UID]);
    if (!*f[JOB_STATE] ||
        strspn(f[JOB_STATE], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != strlen(f[JOB_STATE]))
        return err_set(e, EINVAL, "state '%.40s' is not a word", f[JOB_STATE]);
    if (nodes)
        rc = hosts_expand(a, nodes, &x->nodes, e);
    if (rc == 0 && pin)
        rc = hosts_expand(a, pin, &x->pin, e);
    return rc;
}

/* "PREFIX0123456789abcdef-17", and whatever comes behind it. */
static bool has_token(const char *text, const char *prefix)
{
    const size_t n = strlen(prefix);

    return strncmp(text, prefix, n) == 0 && strspn(text + n, "0123456789abcdef") == SITE_LEN &&
           text[n + SITE_LEN] == '-' && isdigit((unsigned char)text[n + SITE_LEN + 1]);
}

/* One that GOGH once had, and that somebody has moved to another partition. */
static bool is_marked(const char *const *f)
{
    return has_token(f[JOB_COMMENT], "gogh: token=") || has_token(f[JOB_ADMIN], "gogh1 token=");
}

/* A line that is too long for the wire is taken back. */
static int check_length(struct buf *out, size_t from, struct err *e)
{
    if (out->len - from <= WIRE_LINE_MAX)
        return 0;
    out->len = from;
    out->data[from] = '\0';
    return err_set(e, E2BIG, "too long");
}

static void note_owner(const char *id, const char *array, const char *task, const char *uid,
                       struct owners *owners)
{
    const struct owner one = { .id = number_or(id, 0),
                               .array = number_or(array, 0),
                               .task = number_or(task, -1),
                               .uid = number_or(uid, -1) };

    if (owners)
        owners_add(owners, &one);
}

/* A note that was written together with others came in quotes, and Slurm has kept them. */
static const char *unquoted(struct arena *a, const char *admin)
{
    const size_t n = strlen(admin);

    if (n < 3 || strncmp(admin, "\"gogh1 ", 7) != 0 || admin[n - 1] != '"')
        return admin;
    return arena_strndup(a, admin + 1, n - 2);
}

/* What is of other partitions, and cannot be read, is nobody's trouble here. */
static void take_job(struct arena *a, const char *const *f, const struct wire_message *m,
                     struct output_bad *bad, struct buf *out)
{
    const bool is_ours = is_wanted(m, f[JOB_PARTITION]);
    const bool is_job = is_ours || is_marked(f);
    const size_t from = out->len;
    struct err e = { 0 };
    struct job_lists x;
    int rc = job_check(a, f, &x, &e);

    if (rc == 0 && is_job) {
        put_job(a, out, m->seq, f, &x);
        rc = check_length(out, from, &e);
    }
    if (rc == 0 && !is_ours)
        put_other(a, out, m->seq, f, &x);
    bad->n_good += rc == 0 && is_ours;
    if (rc < 0 && is_job)
        bad_add(a, bad, number_or(f[JOB_ID], 0) > 0 ? id_of(a, f) : NULL, e.text);
}

struct output_bad output_jobs(struct arena *a, char *text, size_t len, const char *mark,
                              const struct wire_message *m, struct owners *owners, struct buf *out)
{
    struct record_reader r = reader_of(text, len, mark);
    struct output_bad bad = { 0 };
    const char *f[JOB_FIELDS];
    int rc;

    while ((rc = next_record(&r, JOB_FIELDS, f)) != 0) {
        if (rc < 0) {
            bad_add(a, &bad, NULL, "not of the form that was asked for");
            continue;
        }
        note_owner(f[JOB_ID], f[JOB_ARRAY], f[JOB_TASK], f[JOB_UID], owners);
        f[JOB_ADMIN] = unquoted(a, f[JOB_ADMIN]);
        take_job(a, f, m, &bad, out);
    }
    return bad;
}

/* ---- owners ---- */

#define OWNER_FIELDS 4

const char *output_owners_format(struct arena *a, const char *mark)
{
    return format_of(a, job_names, OWNER_FIELDS, mark);    // its first four
}

void output_owners(char *text, size_t len, const char *mark, struct owners *owners)
{
    struct record_reader r = reader_of(text, len, mark);
    const char *f[OWNER_FIELDS];
    int rc;

    _Static_assert(JOB_UID == OWNER_FIELDS - 1, "the user is among the first fields");
    while ((rc = next_record(&r, OWNER_FIELDS, f)) != 0)
        if (rc > 0)
            note_owner(f[JOB_ID], f[JOB_ARRAY], f[JOB_TASK], f[JOB_UID], owners);
}

/* ---- nodes ---- */

/* Ours, and sinfo's. */
// clang-format off
#define NODE_LIST(X) \
    X(NAME, "NodeList") X(STATE, "StateComplete") X(GRES, "Gres") X(CPUS, "CPUs") \
    X(MEMORY, "Memory") X(FEATURES, "Features") X(LIMIT, "Time") X(ADDRESS, "NodeAddr") \
    X(REASON, "Reason")
// clang-format on

#define AS_NODE_ENUM(name, word) NODE_##name,

enum node_field { NODE_LIST(AS_NODE_ENUM) NODE_FIELDS };

static const char *const node_names[NODE_FIELDS] = { NODE_LIST(AS_WORD) };

const char *output_nodes_format(struct arena *a, const char *mark)
{
    return format_of(a, node_names, NODE_FIELDS, mark);
}

/* Slurm's words for a node (those of 22.05's libraries and sinfo's manual) and ours. Others are
 * left out: they say something of a node that does not matter here (cloud, dynamic_norm,
 * completing, ...). A "future" node is only announced: nothing is there.
 */
static const struct {
    const char *word, *ours;
} node_words[] = {
    { "allocated", "allocated" },
    { "down", "down" },
    { "drain", "drain" },
    { "drained", "drain" },
    { "draining", "drain" },
    { "fail", "fail" },
    { "failing", "fail" },
    { "future", "down" },
    { "idle", "idle" },
    { "inval", "invalid" },
    { "invalid", "invalid" },
    { "invalid_reg", "invalid" },
    { "maint", "maint" },
    { "maintenance", "maint" },
    { "mixed", "mixed" },
    { "not_responding", "not_responding" },
    { "perfctrs", "allocated" },
    { "planned", "" },    // for a job that waits; it is what it is besides
    { "power_down", "powering_down" },
    { "power_up", "powering_up" },
    { "powered_down", "powered_down" },
    { "powering_down", "powering_down" },
    { "powering_up", "powering_up" },
    { "reboot", "powering_up" },
    { "reboot_issued", "powering_up" },
    { "reboot_requested", "drain" },
    { "reserved", "reserved" },
    { "unknown", "unknown" },
};

static const char *node_word(struct slice s)
{
    for (size_t i = 0; i < sizeof node_words / sizeof *node_words; i++)
        if (strlen(node_words[i].word) == s.len &&
            strncasecmp(node_words[i].word, s.at, s.len) == 0)
            return node_words[i].ours;
    return NULL;
}

/* "idle+drain+powered_down" of sinfo; capital letters, as scontrol has them, will do. NULL: no word
 * of it is known.
 */
static const char *node_state(struct arena *a, const char *state)
{
    const char *text = "";

    for (struct slice s; slice_next(&state, '+', &s);) {
        const char *word = node_word(s);

        if (word && *word && !has_item(text, word))
            text = arena_printf(a, "%s%s%s", text, *text ? "," : "", word);
    }
    return *text ? text : NULL;
}

/* "gpu:v100:1(S:0-1),shard:2" without the sockets. */
static const char *node_gres(struct arena *a, const char *gres)
{
    char *text = arena_strdup(a, gres), *to = text;

    for (; *gres; gres++) {
        if (*gres == '(')
            gres += strcspn(gres, ")");
        if (!*gres)
            break;
        if (*gres != ')')
            *to++ = *gres;
    }
    *to = '\0';
    return text;
}

/* In a state that is new to us what runs may go on, and nothing is begun. */
static void put_node(struct arena *a, struct buf *out, uint64_t seq, const char *const *f)
{
    const char *state = node_state(a, f[NODE_STATE]), *gres = present(f[NODE_GRES]);
    const char *reason = strcmp(f[NODE_REASON], "none") == 0 ? NULL : present(f[NODE_REASON]);
    const char *address = present(f[NODE_ADDRESS]);

    if (!state && !reason)
        reason = arena_printf(a, "its state '%.40s' is not known", f[NODE_STATE]);
    wire_begin(out, seq, "node");
    wire_put(out, "name", f[NODE_NAME]);
    wire_put(out, "state", state ? state : "drain");
    wire_put(out, "gres", gres ? node_gres(a, gres) : NULL);
    wire_put(out, "reason", reason);
    put_unless_0(out, "cpus", number_or(f[NODE_CPUS], 0));
    put_unless_0(out, "mem_mib", number_or(f[NODE_MEMORY], 0));
    wire_put(out, "features", present(f[NODE_FEATURES]));
    put_unless_0(out, "limit_s", seconds_of(f[NODE_LIMIT]));
    wire_put(out, "address", address && strcmp(address, f[NODE_NAME]) != 0 ? address : NULL);
    wire_end(out);
}

/* sinfo -N has a line for each partition that a node is in, one after the other. */
struct output_bad output_nodes(struct arena *a, char *text, size_t len, const char *mark,
                               const struct wire_message *m, struct buf *out)
{
    struct record_reader r = reader_of(text, len, mark);
    struct output_bad bad = { 0 };
    const char *f[NODE_FIELDS], *last = "";
    int rc;

    while ((rc = next_record(&r, NODE_FIELDS, f)) != 0) {
        if (rc < 0 || !hosts_are_plain(f[NODE_NAME]) || strchr(f[NODE_NAME], ',')) {
            bad_add(a, &bad, rc < 0 ? NULL : f[NODE_NAME], "not of the form that was asked for");
            continue;
        }
        if (strcmp(last, f[NODE_NAME]) != 0)
            put_node(a, out, m->seq, f);
        bad.n_good++;
        last = f[NODE_NAME];
    }
    return bad;
}
