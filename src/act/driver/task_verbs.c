/* The requests that there are: each is checked before anything is run, so that words which become
 * arguments cannot be options, and then becomes commands.
 */
#include "act/driver/task_inner.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "act/driver/hosts.h"
#include "act/driver/output.h"
#include "base/text/buf.h"
#include "base/err.h"

const char *task_get(const struct task *t, const char *key)
{
    return wire_get(&t->m, key);
}

/* A word that is safe as a part of an argument: it cannot be an option, nor end one. */
static bool is_word(const char *s, const char *also)
{
    if (!s || !*s || *s == '-')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(also, *s))
            return false;
    return true;
}

/* "12" or "12_3". */
static bool is_id(const char *s)
{
    const size_t n = strspn(s, "0123456789");
    const size_t m = s[n] == '_' ? strspn(s + n + 1, "0123456789") : 0;

    return n > 0 && n <= 18 && m <= 18 && (s[n] == '\0' || (m > 0 && s[n + 1 + m] == '\0'));
}

static int check_ids(const struct task *t, struct err *e)
{
    if (t->n_ids == 0)
        return err_set(e, EINVAL, "'%s' wants 'id'", t->m.verb);
    for (int i = 0; i < t->n_ids; i++)
        if (!is_id(t->ids[i]))
            return err_set(e, EINVAL, "'%.40s' is not a job's number, or ARRAY_TASK", t->ids[i]);
    return 0;
}

static int check_id(const struct task *t, struct err *e)
{
    if (t->n_ids != 1)
        return err_set(e, EINVAL, "'%s' wants one 'id'", t->m.verb);
    if (task_get(t, "uid") && wire_get_long(&t->m, "uid", -1) < 0)
        return err_set(e, EINVAL, "'uid' must be a number");
    return check_ids(t, e);
}

static int check_hello(const struct task *t, struct err *e)
{
    if (wire_get_long(&t->m, "protocol", 0) != 1)
        return err_set(e, EINVAL, "'hello' wants protocol=1, which is all this driver speaks");
    return 0;
}

static int check_partitions(const struct task *t, struct err *e)
{
    for (int i = 0; i < t->m.n_pairs; i++)
        if (strcmp(t->m.pairs[i].key, "partition") == 0 && !is_word(t->m.pairs[i].value, "._-"))
            return err_set(e, EINVAL, "'%.40s' is not a partition's name", t->m.pairs[i].value);
    return 0;
}

static int check_pin(const struct task *t, struct err *e)
{
    const char *nodes = task_get(t, "nodes"), *gres = task_get(t, "gres");
    int rc = check_id(t, e);

    if (rc < 0)
        return rc;
    if (!nodes || !hosts_are_plain(nodes))
        return err_set(e, EINVAL, "'pin' wants nodes=a,b");
    if (gres && *gres && !is_word(gres, ":,_.-"))
        return err_set(e, EINVAL, "'%.40s' is not a gres", gres);
    if (task_get(t, "n_nodes") && wire_get_long(&t->m, "n_nodes", 0) < 1)
        return err_set(e, EINVAL, "'n_nodes' must be a number from 1 on");
    return 0;
}

static int check_note(const struct task *t, struct err *e)
{
    if (task_get(t, "nodes"))
        return err_set(e, EINVAL, "'note' wants no 'nodes': that would be a 'pin'");
    if (!task_get(t, "admin"))
        return err_set(e, EINVAL, "'note' wants 'admin'");
    return check_id(t, e);
}

static int check_signal(const struct task *t, struct err *e)
{
    if (!is_word(task_get(t, "signal"), ""))
        return err_set(e, EINVAL, "'signal' wants signal=USR1, or another one's name");
    return check_ids(t, e);
}

static int check_power(const struct task *t, struct err *e)
{
    const char *state = task_get(t, "state");
    int n = 0;

    for (int i = 0; i < t->m.n_pairs; i++) {
        const char *name = t->m.pairs[i].value;

        if (strcmp(t->m.pairs[i].key, "node") != 0)
            continue;
        if (!hosts_are_plain(name))
            return err_set(e, EINVAL, "'%.40s' is not a node's name", name);
        n++;
    }
    if (n == 0 || !state || (strcmp(state, "up") != 0 && strcmp(state, "down") != 0))
        return err_set(e, EINVAL, "'power' wants 'node', and state=up or down");
    return 0;
}

static int check_submit(const struct task *t, struct err *e)
{
    const char *cwd = task_get(t, "cwd");

    if (!is_word(task_get(t, "token"), "-_") || !task_get(t, "name") || !task_get(t, "script"))
        return err_set(e, EINVAL, "'submit' wants 'token', 'name' and 'script'");
    if (!is_word(task_get(t, "partition"), "._-"))
        return err_set(e, EINVAL, "'submit' wants a 'partition'");
    if (cwd && *cwd != '/')
        return err_set(e, EINVAL, "'%.40s' is a 'cwd' that does not begin with '/'", cwd);
    for (int i = 0; i < 2; i++) {
        const long n = wire_get_long(&t->m, i ? "gid" : "uid", -1);

        if (n < 0 || n >= (long)UINT_MAX)
            return err_set(e, EINVAL, "'submit' wants the numbers 'uid' and 'gid'");
    }
    for (int i = 0; i < t->m.n_pairs; i++) {
        const char *value = t->m.pairs[i].value;

        if (strcmp(t->m.pairs[i].key, "env") == 0 && (*value == '=' || !strchr(value, '=')))
            return err_set(e, EINVAL, "'%.40s' is not NAME=value", value);
    }
    return 0;
}

/* ---- commands ---- */

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/slurm/bin"

/* Of a listing: 100 000 jobs of 2 kB. */
#define OUTPUT_MAX ((size_t)200 << 20)

/* In one call: a list of ids stays well below the 128 kB that one argument may have, and a call of
 * 5 ms a job below its limit; `scontrol show job` asks Slurm for each.
 */
#define IDS_MAX 500
#define DEVICE_IDS_MAX 100

#define PING_LIMIT_S 3.0

struct arg_list {
    const char *at[40];
    int n;
};

static void add(struct arg_list *w, const char *word)
{
    assert(w->n < 39);
    w->at[w->n++] = word;
}

static char *const *keep_words(struct arena *a, const struct arg_list *w)
{
    char **out = ARENA_ARRAY(a, char *, (size_t)w->n + 1);

    for (int i = 0; i < w->n; i++)
        out[i] = arena_strdup(a, w->at[i]);
    return out;
}

/* The command with its environment. Where the commands are by themselves is where they are looked
 * for, never in anybody's PATH.
 */
static void order_make(const struct task_setup *s, struct arena *a, const struct arg_list *w,
                       const char *more, struct call_order *o)
{
    const char *path = s->commands ? s->commands : PATH_DEFAULT;
    struct arg_list env = { .n = 0 };

    add(&env, arena_printf(a, "PATH=%s%s" PATH_DEFAULT, s->commands ? s->commands : "",
                           s->commands ? ":" : ""));
    if (s->conf)
        add(&env, arena_printf(a, "SLURM_CONF=%s", s->conf));
    add(&env, "SLURM_TIME_FORMAT=%s");
    add(&env, "LC_ALL=C");
    add(&env, "TZ=UTC");
    if (more)
        add(&env, more);
    *o = (struct call_order){ .program = w->at[0],
                              .path = path,
                              .argv = keep_words(a, w),
                              .env = keep_words(a, &env),
                              .output_max = OUTPUT_MAX };
}

static void task_order(struct task *t, const struct arg_list *w, const char *more,
                       struct call_order *o)
{
    order_make(t->setup, &t->arena, w, more, o);
    o->limit_s = t->verb->is_change ? t->setup->change_limit_s : t->setup->read_limit_s;
}

/* Sixteen digits that nobody could foresee. */
static void make_mark(struct task *t)
{
    unsigned char bytes[OUTPUT_MARK_LEN / 2];
    const ssize_t n = getrandom(bytes, sizeof bytes, 0);

    assert(n == (ssize_t)sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(t->mark + 2 * i, 3, "%02x", bytes[i]);
}

/* The values of one key, parted by commas. */
static const char *joined(struct task *t, const char *key)
{
    struct buf b;

    buf_init(&b, 2 * WIRE_LINE_MAX);
    for (int i = 0; i < t->m.n_pairs; i++)
        if (strcmp(t->m.pairs[i].key, key) == 0)
            (void)buf_printf(&b, "%s%s", b.len ? "," : "", t->m.pairs[i].value);
    return buf_keep(&b, &t->arena);
}

static void order_hello(struct task *t, struct call_order *o)
{
    task_order(t, &(struct arg_list){ { "scontrol", "show", "config" }, 3 }, NULL, o);
}

/* All jobs, of all partitions: slurmctld sends them in any case. */
static void order_squeue(struct task *t, const char *format, struct call_order *o)
{
    task_order(t,
               &(struct arg_list){
                   { "squeue", "--noheader", "--all", "--local", "--array", "--states=all" }, 6 },
               arena_printf(&t->arena, "SQUEUE_FORMAT2=%s", format), o);
    o->limit_s = t->setup->read_limit_s;
}

/* For a partition that does not exist squeue and sinfo list nothing, and are content. */
static void order_partitions(struct task *t, struct call_order *o)
{
    task_order(t, &(struct arg_list){ { "scontrol", "--all", "show", "partition" }, 4 }, NULL, o);
}

static void order_jobs(struct task *t, struct call_order *o)
{
    if (t->step == 1) {
        order_partitions(t, o);
        return;
    }
    make_mark(t);
    order_squeue(t, output_jobs_format(&t->arena, t->mark), o);
}

void task_order_owners(struct task *t, struct call_order *o)
{
    make_mark(t);
    order_squeue(t, output_owners_format(&t->arena, t->mark), o);
}

static void order_nodes(struct task *t, struct call_order *o)
{
    struct arg_list w = { { "sinfo", "--noheader", "--Node" }, 3 };
    const char *partitions = joined(t, "partition");

    if (t->step == 1) {
        order_partitions(t, o);
        return;
    }
    make_mark(t);
    add(&w, *partitions ? arena_printf(&t->arena, "--partition=%s", partitions) : "--all");
    add(&w, arena_printf(&t->arena, "--Format=%s", output_nodes_format(&t->arena, t->mark)));
    task_order(t, &w, NULL, o);
}

/* The ids from 'first_id' up to 'n_sent' are those of this call. */
static void count_ids(struct task *t, int max)
{
    t->first_id = t->n_sent;
    t->n_sent = t->n_ids - t->n_sent > max ? t->n_sent + max : t->n_ids;
}

static void order_devices(struct task *t, struct call_order *o)
{
    make_mark(t);
    count_ids(t, DEVICE_IDS_MAX);
    task_order(t, &(struct arg_list){ { "scontrol", "-d" }, 2 }, NULL, o);
    o->input =
        output_devices_input(&t->arena, t->mark, t->ids + t->first_id, t->n_sent - t->first_id);
    o->input_len = strlen(o->input);
}

/* ---- pins and notes, one or several ---- */

/* Lines that scontrol reads by itself: it parts them at blanks outside of quotes, keeps the quotes
 * (output_jobs takes them off notes of GOGH's), and reads as from a terminal, where other bytes may
 * be keys. Builds without readline cut lines at 4096 bytes.
 */
#define LINE_MAX_PLAIN 2000

bool task_is_plain(const struct wire_message *m)
{
    const char *admin = wire_get(m, "admin"), *nodes = wire_get(m, "nodes");
    const size_t len = (admin ? strlen(admin) : 0) + (nodes ? strlen(nodes) : 0);

    if (admin && strncmp(admin, "gogh1 ", 6) != 0)
        return false;
    for (const char *c = admin; c && *c; c++)
        if (*c < ' ' || *c > '~' || strchr("\"'\\", *c))
            return false;
    return len <= LINE_MAX_PLAIN;
}

/* The words of `scontrol update` for one. 'quote' goes around what may have blanks. */
static struct arg_list update_words(struct task *t, const struct task_part *p, const char *quote)
{
    const char *nodes = wire_get(&p->m, "nodes"), *n_nodes = wire_get(&p->m, "n_nodes");
    const char *gres = wire_get(&p->m, "gres"), *admin = wire_get(&p->m, "admin");
    struct arg_list w = { { "scontrol", "update" }, 2 };
    struct arena *a = &t->arena;

    add(&w, arena_printf(a, "JobId=%s", p->id));
    if (nodes)
        add(&w, arena_printf(a, "ReqNodeList=%s", hosts_compress(a, nodes)));
    if (nodes && n_nodes)
        add(&w, arena_printf(a, "NumNodes=%s", n_nodes));
    if (nodes && gres)
        add(&w, arena_printf(a, "Gres=%s", gres));
    if (nodes)
        add(&w, "StartTime=now");
    if (admin)
        add(&w, arena_printf(a, "AdminComment=%s%s%s", quote, admin, quote));
    return w;
}

int task_count_open(const struct task *t)
{
    int n = 0;

    for (int i = 0; i < t->n_parts; i++)
        n += !t->parts[i].end;
    return n;
}

/* Several: a line for each on its standard input. It goes on after one that is refused. */
static void order_updates(struct task *t, struct call_order *o)
{
    struct buf b;

    buf_init(&b, TASK_PARTS_MAX * WIRE_LINE_MAX);
    for (int i = 0; i < t->n_parts; i++) {
        const struct arg_list w = update_words(t, &t->parts[i], "\"");

        for (int k = 1; k < w.n && !t->parts[i].end; k++)
            (void)buf_printf(&b, "%s%s", w.at[k], k == w.n - 1 ? "\n" : " ");
    }
    task_order(t, &(struct arg_list){ { "scontrol" }, 1 }, NULL, o);
    o->input = buf_keep(&b, &t->arena);
    o->input_len = strlen(o->input);
}

static void order_update(struct task *t, struct call_order *o)
{
    int i = 0;

    if (task_count_open(t) > 1) {
        order_updates(t, o);
        return;
    }
    while (t->parts[i].end)
        i++;
    const struct arg_list w = update_words(t, &t->parts[i], "");
    task_order(t, &w, NULL, o);
}

static void order_release(struct task *t, struct call_order *o)
{
    const char *ids = "";

    for (int i = 0; i < t->n_parts; i++)
        if (!t->parts[i].end)
            ids = arena_printf(&t->arena, "%s%s%s", ids, *ids ? "," : "", t->parts[i].id);
    task_order(t, &(struct arg_list){ { "scontrol", "release", ids }, 3 }, NULL, o);
}

/* A pin in two steps: an update of a held job cannot release it, and a release cannot place it.
 * What the update was refused is not released.
 */
static void order_part(struct task *t, struct call_order *o)
{
    if (t->step == 1)
        order_release(t, o);
    else
        order_update(t, o);
}

static void order_power(struct task *t, struct call_order *o)
{
    const char *nodes = hosts_compress(&t->arena, joined(t, "node"));
    const bool is_up = strcmp(task_get(t, "state"), "up") == 0;

    task_order(
        t,
        &(struct arg_list){ { "scontrol", "update", arena_printf(&t->arena, "NodeName=%s", nodes),
                              is_up ? "State=POWER_UP" : "State=POWER_DOWN" },
                            4 },
        NULL, o);
}

/* The next IDS_MAX ids, as one word. */
static const char *next_ids(struct task *t)
{
    struct buf b;

    count_ids(t, IDS_MAX);
    buf_init(&b, WIRE_LINE_MAX);
    for (int i = t->first_id; i < t->n_sent; i++)
        (void)buf_printf(&b, "%s%s", b.len ? "," : "", t->ids[i]);
    return buf_keep(&b, &t->arena);
}

static void order_hold(struct task *t, struct call_order *o)
{
    task_order(t, &(struct arg_list){ { "scontrol", "hold", next_ids(t) }, 3 }, NULL, o);
}

static void order_requeue(struct task *t, struct call_order *o)
{
    task_order(t, &(struct arg_list){ { "scontrol", "requeuehold", next_ids(t) }, 3 }, NULL, o);
}

/* scancel takes its ids as words of their own. */
static void order_scancel(struct task *t, const struct arg_list *w, struct call_order *o)
{
    char **argv;

    count_ids(t, IDS_MAX);
    task_order(t, w, NULL, o);
    argv = ARENA_ARRAY(&t->arena, char *, (size_t)(w->n + t->n_sent - t->first_id) + 1);
    for (int i = 0; i < w->n; i++)
        argv[i] = o->argv[i];
    for (int i = t->first_id; i < t->n_sent; i++)
        argv[w->n + i - t->first_id] = arena_strdup(&t->arena, t->ids[i]);
    o->argv = argv;
}

static void order_signal(struct task *t, struct call_order *o)
{
    order_scancel(
        t,
        &(struct arg_list){
            { "scancel", "--batch", arena_printf(&t->arena, "--signal=%s", task_get(t, "signal")) },
            3 },
        o);
}

static void order_cancel(struct task *t, struct call_order *o)
{
    order_scancel(t, &(struct arg_list){ { "scancel" }, 1 }, o);
}

/* ---- submit ---- */

/* The job's environment, NUL after each: what was asked for; the call adds what a login gives. It
 * reaches sbatch by a descriptor, not as its own: nothing in it can change what sbatch does.
 */
static void make_environment(struct task *t, struct call_order *o)
{
    char *copy;
    struct buf b;

    buf_init(&b, 2 * WIRE_LINE_MAX);
    for (int i = 0; i < t->m.n_pairs; i++)
        if (strcmp(t->m.pairs[i].key, "env") == 0)
            (void)buf_append(&b, t->m.pairs[i].value, strlen(t->m.pairs[i].value) + 1);
    copy = arena_alloc(&t->arena, b.len + 1);
    memcpy(copy, buf_text(&b), b.len);
    o->extra = copy;
    o->extra_len = b.len;
    buf_release(&b);
}

static const char *submit_comment(struct task *t)
{
    const char *comment = task_get(t, "comment"), *token = task_get(t, "token");

    if (comment && strstr(comment, token))
        return comment;
    return arena_printf(&t->arena, "gogh: token=%s%s%s", token, comment ? " " : "",
                        comment ? comment : "");
}

static void add_option(struct task *t, struct arg_list *w, const char *option, const char *key)
{
    const char *value = task_get(t, key);

    if (value && *value)
        add(w, arena_printf(&t->arena, "--%s=%s", option, value));
}

/* The script goes in by standard input. What it says in #SBATCH lines counts less than this. Who
 * the user is, is looked up by the call itself: directories of users have been known to hang.
 */
static void order_submit(struct task *t, struct call_order *o)
{
    /* sbatch then waits for room, for minutes. The second is from its public sources. */
    static const char *const full[] = { "Slurm temporarily unable to accept job",
                                        "Slurm job queue full", NULL };
    struct arg_list w = { { "sbatch", "--parsable", "--hold", "--requeue", "--open-mode=append",
                            "--export-file=3" },
                          6 };

    add_option(t, &w, "partition", "partition");
    add_option(t, &w, "job-name", "name");
    add_option(t, &w, "chdir", "cwd");
    add_option(t, &w, "output", "out");
    add_option(t, &w, "error", "err");
    add_option(t, &w, "nodes", "nodes");
    add_option(t, &w, "time", "minutes");
    add_option(t, &w, "cpus-per-task", "cpus");
    add_option(t, &w, "mem", "mem_mib");
    add(&w, arena_printf(&t->arena, "--comment=%s", submit_comment(t)));
    task_order(t, &w, NULL, o);
    o->as_user = o->has_login = true;
    o->home_option = task_get(t, "cwd") ? NULL : "--chdir=";
    o->last_words = full;
    o->uid = (uid_t)wire_get_long(&t->m, "uid", -1);
    o->gid = (gid_t)wire_get_long(&t->m, "gid", -1);
    o->input = task_get(t, "script");
    o->input_len = strlen(o->input);
    make_environment(t, o);
}

/* ---- all of them ---- */

static const struct task_verb verbs[] = {
    { "hello", false, 1, false, false, check_hello, order_hello, task_read_hello },
    { "jobs", false, 2, false, false, check_partitions, order_jobs, task_read_listing },
    { "nodes", false, 2, false, false, check_partitions, order_nodes, task_read_listing },
    { "devices", false, 0, false, true, check_ids, order_devices, task_read_devices },
    { "submit", true, 1, false, false, check_submit, order_submit, task_read_submit },
    { "pin", true, 2, true, false, check_pin, order_part, NULL },
    { "note", true, 1, true, false, check_note, order_part, NULL },
    { "hold", true, 0, false, false, check_ids, order_hold, NULL },
    { "requeue", true, 0, false, false, check_ids, order_requeue, NULL },
    { "signal", true, 0, false, false, check_signal, order_signal, NULL },
    { "cancel", true, 0, false, false, check_ids, order_cancel, NULL },
    { "power", true, 1, false, false, check_power, order_power, NULL },
};

const struct task_verb *task_find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

bool task_is_users(const struct task *t)
{
    return t->verb && t->verb->order == order_submit;
}

/* ---- the probe ---- */

void task_ping(const struct task_setup *setup, struct arena *a, struct call_order *order)
{
    order_make(setup, a, &(struct arg_list){ { "scontrol", "ping" }, 2 }, NULL, order);
    order->limit_s = PING_LIMIT_S;
    order->output_max = 65536;
}

bool task_ping_worked(const struct call_result *r)
{
    return r->end == CALL_EXITED && output_is_up(r->out);
}
