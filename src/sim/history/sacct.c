#include "sim/history/sacct.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text/words.h"
#include "catalog/cluster/job.h"
#include "sim/trace/import.h"

/* ---- states ---- */

const char *sacct_state_name(enum sacct_state s)
{
    static const char *const names[SACCT_STATES] = {
        [SACCT_COMPLETED] = "completed", [SACCT_FAILED] = "failed",
        [SACCT_CANCELLED] = "cancelled", [SACCT_TIMEOUT] = "timeout",
        [SACCT_NODE_FAIL] = "node_fail", [SACCT_PREEMPTED] = "preempted",
        [SACCT_RUNNING] = "running",     [SACCT_OTHER] = "other",
    };

    return names[s];
}

/* "CANCELLED by 1000", "CANCELLED+": the first word says it. */
static enum sacct_state parse_state(struct slice s)
{
    size_t len = 0;

    while (len < s.len && (isalpha((unsigned char)s.at[len]) || s.at[len] == '_'))
        len++;
    for (int i = 0; i < SACCT_OTHER; i++) {
        const char *name = sacct_state_name((enum sacct_state)i);

        if (strlen(name) == len && strncasecmp(name, s.at, len) == 0)
            return (enum sacct_state)i;
    }
    return SACCT_OTHER;
}

/* ---- trackable resources ---- */

static int add_type(struct arena *a, struct sacct_job *j, struct slice type, int n)
{
    if (j->n_types == SACCT_TYPES_MAX || !text_is_name(type))
        return -EINVAL;
    j->types[j->n_types++] = (struct sacct_gres){ arena_strndup(a, type.at, type.len), n };
    return 0;
}

/* "billing=8,cpu=8,gres/gpu:v100=2,gres/gpu=2,mem=64G,node=2": the GPUs of it, or shards. Sites
 * count the types, all GPUs, or both.
 */
static int parse_tres(struct arena *a, struct slice text, struct sacct_job *j)
{
    static const char *const kinds[] = { "gres/gpu", "gres/shard" };
    long all[2] = { 0 }, typed[2] = { 0 };
    struct slice entry, key, type;

    while (text.len > 0 && trace_cut(&text, ',', &entry)) {
        long n = 0;

        trace_cut(&entry, '=', &key);
        type = key;
        trace_cut(&type, ':', &key);
        for (int k = 0; k < 2; k++) {
            if (!slice_is(key, kinds[k]))
                continue;
            if (!sacct_digits(entry, &n) || n > SACCT_GPUS_MAX ||
                (type.at != NULL && n > 0 && add_type(a, j, type, (int)n) < 0))
                return -EINVAL;
            *(type.at != NULL ? &typed[k] : &all[k]) += n;
        }
    }
    j->n_gpus = (int)(all[0] > typed[0] ? all[0] : typed[0]);
    j->n_shards = (int)(j->n_gpus > 0 ? 0 : all[1] > typed[1] ? all[1] : typed[1]);
    return j->n_gpus <= SACCT_GPUS_MAX && j->n_shards <= SACCT_GPUS_MAX ? 0 : -EINVAL;
}

/* ---- comments ---- */

/* One "key=value" of ours; keys that only the daemon reads are none of our business. */
static int take_word(struct words *w, const struct word *word, struct sacct_job *j)
{
    struct {
        const char *key;
        double *out, low, high;
    } numbers[] = { { "batch", &j->batch, 1, 1e9 },
                    { "min-throughput", &j->min_throughput, 0, 1e9 },
                    { "rate", &j->rate, 0, 1e9 },
                    { "urgency", &j->urgency, URGENCY_LEAST, URGENCY_MOST } };

    if (word->key.at != NULL && slice_is(word->key, "exclusive"))
        j->is_exclusive = slice_is(word->value, "yes");
    if (word->key.at != NULL && slice_is(word->key, "workload")) {
        j->workload = words_name(w, word->value);
        return j->workload != NULL ? 0 : -EINVAL;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double v;

        if (word->key.at == NULL || !slice_is(word->key, numbers[i].key))
            continue;
        if (text_to_double(word->value, &v) < 0 || v < numbers[i].low || v > numbers[i].high)
            return -EINVAL;
        *numbers[i].out = v;
    }
    return 0;
}

/* Where "gogh:" stands in a comment, as a word of its own; what is behind it. NULL: nowhere. */
static const char *find_mark(struct slice comment)
{
    static const char mark[] = "gogh:";
    const size_t len = sizeof mark - 1;

    for (size_t i = 0; i + len <= comment.len; i++) {
        const bool begins = i == 0 || strchr(" \t;,", comment.at[i - 1]) != NULL;

        if (begins && strncasecmp(comment.at + i, mark, len) == 0)
            return comment.at + i + len;
    }
    return NULL;
}

/* What a comment says to us. 1: something, 0: nothing, -EINVAL. */
static int parse_comment(struct arena *a, struct slice comment, struct sacct_job *j)
{
    const char *at = find_mark(comment);
    struct words w;

    if (at == NULL)
        return 0;
    words_open(&w, a, "comment", at, (size_t)(comment.at + comment.len - at));
    int rc = words_next(&w, NULL);
    for (int i = 0; i < w.n && rc > 0; i++) {
        if (take_word(&w, &w.word[i], j) < 0)
            rc = -EINVAL;
    }
    return rc;
}

/* ---- lines ---- */

enum sacct_column {
    JOB_ID_RAW,
    JOB_ID,
    JOB_NAME,
    USER,
    PARTITION,
    STATE,
    SUBMIT,
    ELIGIBLE,
    START,
    END,
    ELAPSED_RAW,
    ELAPSED,
    ALLOC_TRES,
    REQ_TRES,
    NODE_LIST,
    COMMENT,
    ADMIN_COMMENT,
    COLUMNS,
};

static const char *const column_names[COLUMNS] = {
    "JobIDRaw",  "JobID",    "JobName",  "User",    "Partition",    "State",
    "Submit",    "Eligible", "Start",    "End",     "ElapsedRaw",   "Elapsed",
    "AllocTRES", "ReqTRES",  "NodeList", "Comment", "AdminComment",
};

struct sacct_parser {
    struct arena *arena;
    struct sacct *out;
    const char *partition;
    int cap_jobs;
    int n_columns;
    enum sacct_column column[SACCT_COLUMNS_MAX];    // COLUMNS: not ours
    bool has[COLUMNS];
    bool has_tail;    // --parsable ends every line with a separator
    int line;
    struct slice field[COLUMNS];    // of the line being read
    struct map hosts;               // lists of nodes, to jobs that have them
    struct map runs;                // "id start": which are here
    struct map ids;
};

static void read_header(struct sacct_parser *p, struct slice line)
{
    struct slice name;

    while (trace_cut(&line, '|', &name)) {
        p->has_tail = name.len == 0 && line.at == NULL;
        if (p->has_tail)
            break;
        if (p->n_columns == SACCT_COLUMNS_MAX)
            return;
        p->column[p->n_columns] = COLUMNS;
        for (int c = 0; c < COLUMNS; c++) {
            if (strlen(column_names[c]) == name.len &&
                strncasecmp(column_names[c], name.at, name.len) == 0 && !p->has[c]) {
                p->column[p->n_columns] = (enum sacct_column)c;
                p->has[c] = true;
            }
        }
        p->n_columns++;
    }
}

static int check_header(const struct sacct_parser *p, struct err *e)
{
    static const struct {
        enum sacct_column any[3];    // one of these
        const char *what;
    } needed[] = {
        { { JOB_ID_RAW, JOB_ID, JOB_ID }, "JobIDRaw" },
        { { SUBMIT, SUBMIT, SUBMIT }, "Submit" },
        { { START, START, START }, "Start" },
        { { ELAPSED_RAW, ELAPSED, END }, "ElapsedRaw" },
        { { ALLOC_TRES, ALLOC_TRES, ALLOC_TRES }, "AllocTRES" },
        { { NODE_LIST, NODE_LIST, NODE_LIST }, "NodeList" },
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const enum sacct_column *any = needed[i].any;

        if (!p->has[any[0]] && !p->has[any[1]] && !p->has[any[2]])
            return err_set(e, EINVAL, "%s:1: no column '%s' in the header: make the file with '%s'",
                           p->out->name, needed[i].what, SACCT_COMMAND);
    }
    if (p->partition != NULL && !p->has[PARTITION])
        return err_set(e, EINVAL,
                       "%s:1: no column 'Partition' to choose one by: add it to --format",
                       p->out->name);
    return 0;
}

/* The line as fields. NULL, or what is wrong with it. */
static const char *split(struct sacct_parser *p, struct slice line)
{
    struct slice field;
    int n = 0;

    if (!text_is_utf8(line.at, line.len, NULL))
        return "bytes that are no text";
    for (size_t i = 0; i < line.len; i++) {
        if ((unsigned char)line.at[i] < ' ' || line.at[i] == 127)
            return "control characters in it";
    }
    memset(p->field, 0, sizeof p->field);
    while (trace_cut(&line, '|', &field)) {
        if (p->has_tail && n == p->n_columns && field.len == 0 && line.at == NULL)
            break;
        if (n < p->n_columns && p->column[n] != COLUMNS)
            p->field[p->column[n]] = field;
        n++;
    }
    if (n == p->n_columns)
        return NULL;
    return n > p->n_columns ? "more fields than the header has: a '|' in a name?"
                            : "fewer fields than the header has: a line break in a name?";
}

static const char *text_of(struct sacct_parser *p, enum sacct_column c)
{
    return arena_strndup(p->arena, p->field[c].at != NULL ? p->field[c].at : "", p->field[c].len);
}

#define ELAPSED_MAX_S 1e9

/* Times of a run. NULL, or what is wrong with them; who did not run has no start. */
static const char *read_times(struct sacct_parser *p, struct sacct_job *j)
{
    double eligible_s, end_s = NAN, elapsed_s = NAN;
    const struct slice *f = p->field;

    if (sacct_time(f[SUBMIT], &j->submit_s) < 0 || sacct_time(f[ELIGIBLE], &eligible_s) < 0 ||
        sacct_time(f[START], &j->start_s) < 0 || sacct_time(f[END], &end_s) < 0)
        return "a time that is none";
    if (f[ELAPSED_RAW].len > 0) {
        if (text_to_double(f[ELAPSED_RAW], &elapsed_s) < 0 || elapsed_s < 0)
            return "ElapsedRaw is no number of seconds";
    } else if (!sacct_is_nothing(f[ELAPSED]) && sacct_elapsed(f[ELAPSED], &elapsed_s) < 0) {
        return "Elapsed is no [D-]HH:MM:SS";
    }
    if (isnan(j->start_s))
        return NULL;
    if (isnan(elapsed_s))
        elapsed_s = end_s - j->start_s;
    if (isnan(elapsed_s))
        return "neither an elapsed time nor an end";
    if (elapsed_s < 0 || elapsed_s > ELAPSED_MAX_S)
        return "an end before the start, or decades after it";
    j->elapsed_s = elapsed_s;
    if (isnan(j->submit_s) || j->submit_s > j->start_s)
        j->submit_s = j->start_s;
    j->ready_s = fmax(isnan(eligible_s) ? j->submit_s : eligible_s, j->submit_s);
    j->ready_s = fmin(j->ready_s, j->start_s);
    return NULL;
}

/* The nodes of the list, which jobs have again and again. */
static const char *read_nodes(struct sacct_parser *p, struct sacct_job *j)
{
    const char *list = text_of(p, NODE_LIST);
    int known = map_get(&p->hosts, list);

    if (known >= 0) {
        j->nodes = p->out->jobs[known].nodes;
        j->n_nodes = p->out->jobs[known].n_nodes;
    } else if (sacct_hosts(p->arena, slice_of(list), &j->nodes, &j->n_nodes) < 0) {
        return "NodeList is no list of nodes";
    }
    return NULL;
}

/* Is it the same run as on an earlier line? One of the same job, at another time, is not. */
static bool is_repeated(struct sacct_parser *p, struct slice id, double start_s)
{
    const char *job = arena_strndup(p->arena, id.at, id.len);
    const char *run = arena_printf(p->arena, "%s %.0f", job, start_s);

    if (map_get(&p->runs, run) >= 0)
        return true;
    map_set(&p->runs, run, 0);
    if (map_get(&p->ids, job) >= 0)
        p->out->n_requeued++;
    map_set(&p->ids, job, 0);
    return false;
}

static void read_comments(struct sacct_parser *p, struct sacct_job *j)
{
    static const enum sacct_column where[] = { COMMENT, ADMIN_COMMENT };

    for (int i = 0; i < 2; i++) {
        struct sacct_job said = *j;
        int rc = parse_comment(p->arena, p->field[where[i]], &said);

        p->out->n_unclear += rc < 0;
        if (rc > 0) {
            *j = said;
            return;
        }
    }
}

static void keep(struct sacct_parser *p, struct sacct_job *j)
{
    struct sacct *out = p->out;

    j->line = p->line;
    j->id = text_of(p, p->field[JOB_ID].len > 0 ? JOB_ID : JOB_ID_RAW);
    j->name = text_of(p, JOB_NAME);
    j->user = text_of(p, USER);
    j->partition = text_of(p, PARTITION);
    j->state = parse_state(p->field[STATE]);
    read_comments(p, j);
    out->n_states[j->state]++;
    ARENA_GROW(p->arena, out->jobs, out->n_jobs, p->cap_jobs);
    map_set(&p->hosts, text_of(p, NODE_LIST), out->n_jobs);
    out->jobs[out->n_jobs++] = *j;
}

/* A line: a run on GPUs, or it is counted as what it is. NULL, or what is wrong with it. */
static const char *read_line(struct sacct_parser *p, struct slice line)
{
    struct sacct_job j = { .batch = NAN };
    const char *bad = split(p, line);
    const struct slice *f = p->field;
    struct slice id = f[JOB_ID_RAW].len > 0 ? f[JOB_ID_RAW] : f[JOB_ID];

    if (bad != NULL)
        return bad;
    if (id.len == 0 || !isdigit((unsigned char)id.at[0]) || !text_is_name(id))
        return "no job id";
    if (memchr(id.at, '.', id.len) != NULL)
        return p->out->n_steps++, NULL;
    if (p->partition != NULL && !slice_is(f[PARTITION], p->partition))
        return p->out->n_elsewhere++, NULL;
    bad = read_times(p, &j);
    if (bad != NULL)
        return bad;
    if (isnan(j.start_s) || j.elapsed_s <= 0)
        return p->out->n_unstarted++, NULL;
    if (parse_tres(p->arena, f[ALLOC_TRES].len > 0 ? f[ALLOC_TRES] : f[REQ_TRES], &j) < 0)
        return "AllocTRES is no list of resources";
    if (j.n_gpus == 0 && j.n_shards == 0)
        return p->out->n_cpu++, NULL;
    bad = read_nodes(p, &j);
    if (bad != NULL)
        return bad;
    if (is_repeated(p, id, j.start_s))
        return p->out->n_repeated++, NULL;
    keep(p, &j);
    return NULL;
}

static void take_line(struct sacct_parser *p, struct slice line)
{
    const char *bad = read_line(p, line);

    p->out->n_lines++;
    if (bad == NULL)
        return;
    if (p->out->n_refused++ == 0) {
        p->out->refused_line = p->line;
        p->out->refused_why = bad;
    }
}

static int parse(struct sacct_parser *p, struct slice text, struct err *e)
{
    struct slice line;
    int rc = 0;

    for (p->line = 1; trace_cut(&text, '\n', &line) && rc == 0; p->line++) {
        if (line.len > 0 && line.at[line.len - 1] == '\r')
            line.len--;
        if (p->line == 1) {
            read_header(p, line);
            rc = check_header(p, e);
        } else if (line.len > 0) {
            take_line(p, line);
        }
    }
    return rc;
}

int sacct_parse(struct arena *a, const char *name, const char *text, size_t len,
                const char *partition, struct sacct *out, struct err *e)
{
    struct sacct_parser p = { .arena = a, .out = out, .partition = partition };

    *out = (struct sacct){ .name = name };
    int rc = parse(&p, (struct slice){ text, len }, e);
    map_release(&p.hosts);
    map_release(&p.runs);
    map_release(&p.ids);
    return rc;
}
