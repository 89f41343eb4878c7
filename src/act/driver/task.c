#include "act/driver/task.h"

#include <errno.h>
#include <string.h>

#include "act/driver/output.h"
#include "act/driver/owners.h"
#include "act/driver/task_inner.h"
#include "base/text/buf.h"
#include "base/err.h"

/* ---- answers ---- */

/* "done", "failed" or "unknown", with what it has to say: NULL is nothing. */
static void part_end(struct task_part *p, const char *end, const char *kind, const char *text)
{
    if (p && !p->end) {    // NULL: none of these
        p->end = end;
        p->kind = kind;
        p->text = text;
    }
}

/* All that are not over yet. */
static void parts_end(struct task *t, const char *end, const char *kind, const char *text)
{
    for (int i = 0; i < t->n_parts; i++)
        part_end(&t->parts[i], end, kind, text);
}

/* In the order of the requests; those that are not over yet end so. */
static void answer(struct task *t, const char *end, const char *kind, const char *text,
                   struct buf *out)
{
    parts_end(t, end, kind, text);
    for (int i = 0; i < t->n_parts; i++) {
        const struct task_part *p = &t->parts[i];

        wire_begin(out, p->m.seq, p->end);
        wire_put(out, "kind", p->kind);
        wire_put(out, "text", p->text);
        wire_end(out);
    }
    t->is_answered = true;
}

/* 'key' is what the names are: ids of jobs, or nodes. */
static void tell_bad(const struct task *t, const struct output_bad *bad, const char *key,
                     struct buf *out)
{
    if (bad->n == 0)
        return;
    wire_begin(out, 0, "trouble");
    wire_put(out, "of", t->verb->name);
    wire_put_long(out, "n", bad->n);
    for (int i = 0; i < bad->n_names; i++)
        wire_put(out, key, bad->names[i]);
    wire_put(out, "text", bad->why);
    wire_end(out);
}

/* ---- reading results ---- */

void task_read_hello(struct task *t, struct call_result *r, struct buf *out)
{
    if (output_config(&t->arena, r->out, t->m.seq, out) < 0)
        answer(t, "failed", "refused", "scontrol show config has no SLURM_VERSION", out);
}

/* Nothing of the partitions was listed: are there such? */
static void read_partitions(struct task *t, struct call_result *r, struct buf *out)
{
    const char *missing = output_partition_missing(r->out, &t->m);

    if (missing)
        answer(t, "failed", "refused",
               arena_printf(&t->arena, "Slurm has no partition '%.80s'", missing), out);
}

void task_read_listing(struct task *t, struct call_result *r, struct buf *out)
{
    const bool is_jobs = strcmp(t->verb->name, "jobs") == 0;
    struct owners *owners = t->setup->owners;
    struct output_bad bad;

    if (t->step == 2) {
        read_partitions(t, r, out);
        return;
    }
    if (is_jobs && owners)
        owners_begin(owners, t->asked_s);
    bad = is_jobs ? output_jobs(&t->arena, r->out, r->out_len, t->mark, &t->m, owners, out)
                  : output_nodes(&t->arena, r->out, r->out_len, t->mark, &t->m, out);
    tell_bad(t, &bad, is_jobs ? "id" : "node", out);
    if (bad.n_good > 0 || !task_get(t, "partition"))
        t->step = t->verb->n_steps;    // no doubt about partitions
}

void task_read_devices(struct task *t, struct call_result *r, struct buf *out)
{
    const struct output_bad bad = output_devices(&t->arena, r->out, t->mark, t->ids + t->first_id,
                                                 t->n_sent - t->first_id, t->m.seq, out);

    tell_bad(t, &bad, "id", out);
}

void task_read_submit(struct task *t, struct call_result *r, struct buf *out)
{
    const long id = output_submitted(r->out);

    if (id == 0) {
        answer(t, "unknown", NULL, "sbatch ended well, and did not say the job's number", out);
        return;
    }
    wire_begin(out, t->m.seq, "submitted");
    wire_put_long(out, "id", id);
    wire_end(out);
}

/* ---- a task's life ---- */

/* From a copy, in 'a': a line may hold anything, also NUL. */
static int read_line(struct arena *a, const char *line, size_t len, struct task *to, struct err *e)
{
    char *copy = arena_alloc(a, len + 1);
    int rc;

    memcpy(copy, line, len);
    rc = wire_read(a, copy, len, &to->m, e);
    if (rc < 0)
        return rc;
    to->ids = ARENA_ARRAY(a, const char *, (size_t)to->m.n_pairs);
    for (int i = 0; i < to->m.n_pairs; i++)
        if (strcmp(to->m.pairs[i].key, "id") == 0)
            to->ids[to->n_ids++] = to->m.pairs[i].value;
    return 0;
}

void task_init(struct task *t, const struct task_setup *setup, const char *line, size_t len,
               struct buf *out)
{
    struct err e = { 0 };
    int rc;

    *t = (struct task){ .setup = setup };
    arena_init(&t->arena);
    t->parts = ARENA_ARRAY(&t->arena, struct task_part, TASK_PARTS_MAX);
    rc = read_line(&t->arena, line, len, t, &e);
    if (rc == 0) {
        t->verb = task_find_verb(t->m.verb);
        rc = t->verb ? t->verb->check(t, &e)
                     : err_set(&e, EINVAL, "'%.40s' is not a request", t->m.verb);
    }
    t->parts[t->n_parts++] = (struct task_part){ .m = t->m, .id = t->n_ids ? t->ids[0] : NULL };
    if (rc < 0)
        answer(t, "failed", "misuse", e.text, out);
}

/* "SEQ VERB" of the same verb, without reading all of it. */
static bool is_alike(const struct task *t, const char *line, size_t len)
{
    const char *blank = memchr(line, ' ', len);
    const size_t n = strlen(t->verb->name);

    return blank && (size_t)(line + len - blank) > n + 1 &&
           strncmp(blank + 1, t->verb->name, n) == 0 && blank[1 + n] == '\t';
}

bool task_join(struct task *t, const char *line, size_t len)
{
    struct task other = { .setup = t->setup };
    struct err e = { 0 };

    if (t->is_answered || t->is_begun || !t->verb->is_joined || t->n_parts == TASK_PARTS_MAX ||
        !task_is_plain(&t->m) || len > WIRE_LINE_MAX || !is_alike(t, line, len))
        return false;
    if (read_line(&t->arena, line, len, &other, &e) < 0 || t->verb->check(&other, &e) < 0 ||
        !task_is_plain(&other.m))
        return false;
    for (int i = 0; i < t->n_parts; i++)
        if (strcmp(t->parts[i].id, other.ids[0]) == 0)
            return false;    // errors are told apart by the jobs they name
    t->parts[t->n_parts++] = (struct task_part){ .m = other.m, .id = other.ids[0] };
    return true;
}

void task_release(struct task *t)
{
    arena_release(&t->arena);
}

/* With troubles of single jobs the whole has failed; of one kind if they all are. */
static void answer_end(struct task *t, struct buf *out)
{
    if (t->n_troubles)
        answer(t, "failed", t->trouble_kind, t->trouble_text, out);
    else
        answer(t, "done", NULL, NULL, out);
}

/* ---- whose jobs they are ---- */

static bool is_owned(const struct task *t, const struct task_part *p)
{
    return !p->end && t->setup->owners && wire_get(&p->m, "uid");
}

/* Before each step, so that one that took long is not followed by another in good faith. */
static bool wants_check(const struct task *t, double now_s)
{
    bool is_owned_any = false;

    for (int i = 0; i < t->n_parts; i++)
        is_owned_any |= is_owned(t, &t->parts[i]);
    return is_owned_any && !t->is_checked && !owners_are_fresh(t->setup->owners, now_s);
}

static void drop_strangers(struct task *t)
{
    for (int i = 0; i < t->n_parts; i++) {
        struct task_part *p = &t->parts[i];

        if (is_owned(t, p) &&
            !owners_agree(t->setup->owners, p->id, wire_get_long(&p->m, "uid", -1)))
            part_end(p, "failed", "gone",
                     "the number is not, or not any more, of a job of that user's");
    }
}

static bool next_of_parts(struct task *t, struct call_order *order, struct buf *out)
{
    if (t->step < t->verb->n_steps) {
        t->is_checking = wants_check(t, t->asked_s);
        if (t->is_checking) {
            task_order_owners(t, order);
            return true;
        }
        drop_strangers(t);
    }
    if (t->step < t->verb->n_steps && task_count_open(t) > 0) {
        t->verb->order(t, order);
        return true;
    }
    answer(t, "done", NULL, NULL, out);
    return false;
}

bool task_next(struct task *t, double now_s, struct call_order *order, struct buf *out)
{
    if (t->is_answered)
        return false;
    t->asked_s = now_s;
    t->is_begun = true;
    if (t->verb->is_joined)
        return next_of_parts(t, order, out);
    if (t->verb->n_steps ? t->step == t->verb->n_steps : t->n_sent == t->n_ids) {
        answer_end(t, out);
        return false;
    }
    t->verb->order(t, order);
    return true;
}

static void add_trouble(struct task *t, const struct output_trouble *x, struct buf *out)
{
    const char *kind = output_kind_word(x->kind);

    if (t->n_troubles++ == 0) {
        t->trouble_kind = kind;
        t->trouble_text = x->text;
    } else if (strcmp(kind, t->trouble_kind) != 0) {
        t->trouble_kind = "refused";
    }
    wire_begin(out, t->m.seq, "trouble");
    wire_put(out, "id", x->id);
    wire_put(out, "kind", kind);
    wire_put(out, "text", x->text);
    wire_end(out);
}

/* What a call with several jobs says of each. False: it says something, but of none of them. */
static bool take_troubles(struct task *t, const struct call_result *r, struct buf *out)
{
    struct output_trouble *x = ARENA_ARRAY(&t->arena, struct output_trouble, (size_t)t->n_ids);
    const int n = output_troubles(&t->arena, r->errors, t->ids, t->n_ids, x);

    for (int i = 0; i < n; i++)
        add_trouble(t, &x[i], out);
    return n > 0;
}

static bool reached(enum output_kind k)
{
    return k == OUTPUT_REFUSED || k == OUTPUT_GONE;
}

/* A command that ended with another status than 0. */
static bool take_refusal(struct task *t, const struct call_result *r, struct buf *out)
{
    const enum output_kind kind = output_kind_of(r->errors);
    const char *text = output_first_line(&t->arena, r->errors);

    if (!*text)
        text = arena_printf(&t->arena, "the command ended with status %d", r->status);
    if (kind == OUTPUT_DOUBT && t->verb->is_change)
        answer(t, "unknown", NULL, text, out);
    else if (t->verb->n_steps || !t->verb->is_change || !take_troubles(t, r, out))
        answer(t, "failed", output_kind_word(kind), text, out);
    else if (!reached(kind))
        answer_end(t, out);
    return reached(kind);
}

/* Of a command that did not end by itself. */
static const char *loss_text(struct task *t, const struct call_result *r)
{
    switch (r->end) {
    case CALL_LATE:
        return arena_printf(&t->arena, "no answer within %.0f s", r->took_s);
    case CALL_FLOODED:
        return "the command said more than it could have to say";
    case CALL_KILLED:
        return arena_printf(&t->arena, "the command died of signal %d", r->status);
    case CALL_HOPELESS:
        return output_first_line(&t->arena, r->errors);
    case CALL_NOT_BEGUN:
        return arena_strdup(&t->arena, r->errors);
    case CALL_EXITED:
        break;
    }
    return "";
}

/* What it was to change may be changed, unless it has not begun, or gave up by itself. */
static bool take_loss(struct task *t, const struct call_result *r, struct buf *out)
{
    const char *text = loss_text(t, r);

    if (r->end == CALL_HOPELESS || (r->end == CALL_NOT_BEGUN && task_is_users(t)))
        answer(t, "failed", "refused", text, out);
    else if (r->end != CALL_NOT_BEGUN && t->verb->is_change)
        answer(t, "unknown", NULL, text, out);
    else
        answer(t, "failed", "down", text, out);
    return r->end == CALL_HOPELESS;
}

/* ---- results of parts ---- */

static struct task_part *find_part(struct task *t, const char *id)
{
    for (int i = 0; i < t->n_parts; i++)
        if (strcmp(t->parts[i].id, id) == 0)
            return &t->parts[i];
    return NULL;
}

static void end_by_kind(struct task_part *p, enum output_kind kind, const char *text)
{
    if (kind == OUTPUT_DOUBT)
        part_end(p, "unknown", NULL, text);
    else
        part_end(p, "failed", output_kind_word(kind), text);
}

/* Each error is of the job it names. Of one that names none, nobody knows whose it is, and none of
 * the jobs is taken any further.
 */
static bool take_part_errors(struct task *t, const struct call_result *r)
{
    struct output_trouble *x = ARENA_ARRAY(&t->arena, struct output_trouble, TASK_PARTS_MAX);
    const char *ids[TASK_PARTS_MAX], *strange;
    bool is_reached = true;
    int n = 0, n_troubles;

    for (int i = 0; i < t->n_parts; i++)
        if (!t->parts[i].end)
            ids[n++] = t->parts[i].id;
    n_troubles = output_troubles(&t->arena, r->errors, ids, n, x);
    for (int i = 0; i < n_troubles; i++) {
        end_by_kind(find_part(t, x[i].id), x[i].kind, x[i].text);
        is_reached &= reached(x[i].kind);
    }
    strange = output_strange_line(&t->arena, r->errors, ids, n);
    if (n_troubles == 0 && !*strange)
        strange = arena_printf(&t->arena, "the command ended with status %d", r->status);
    if (!*strange)
        return is_reached;
    if (n == 1)
        end_by_kind(find_part(t, ids[0]), output_kind_of(strange), strange);
    parts_end(t, "unknown", NULL, strange);
    return is_reached && reached(output_kind_of(strange));
}

/* Of the listing that says whose jobs they are: it changes nothing. */
static bool take_owners(struct task *t, const struct call_result *r)
{
    const bool is_good = r->end == CALL_EXITED && r->status == 0;
    const char *text = loss_text(t, r);

    if (is_good) {
        owners_begin(t->setup->owners, t->asked_s);
        output_owners(r->out, r->out_len, t->mark, t->setup->owners);
        t->is_checked = true;
    } else {
        parts_end(t, "failed", "down", *text ? text : output_first_line(&t->arena, r->errors));
    }
    return is_good;
}

static bool take_step(struct task *t, const struct call_result *r)
{
    t->step++;
    t->is_checked = false;
    if (r->end == CALL_EXITED)
        return r->status == 0 || take_part_errors(t, r);
    if (r->end == CALL_NOT_BEGUN)
        parts_end(t, "failed", "down", loss_text(t, r));
    else
        parts_end(t, "unknown", NULL, loss_text(t, r));
    return false;
}

static bool take_parts(struct task *t, const struct call_result *r, struct buf *out)
{
    const bool is_reached = t->is_checking ? take_owners(t, r) : take_step(t, r);

    if (!is_reached)
        answer(t, "failed", "down", "Slurm cannot be reached any more", out);
    return is_reached;
}

bool task_take(struct task *t, struct call_result *r, struct buf *out)
{
    if (t->verb->is_joined)
        return take_parts(t, r, out);
    if (r->end != CALL_EXITED)
        return take_loss(t, r, out);
    t->step++;
    if (t->verb->is_gone_fine && output_kind_of(r->errors) == OUTPUT_GONE)
        r->status = 0;
    if (r->status != 0)
        return take_refusal(t, r, out);
    if (t->verb->read)
        t->verb->read(t, r, out);
    return true;
}

void task_give_up(struct task *t, const char *why, struct buf *out)
{
    if (!t->is_answered)
        answer(t, "failed", "down", why, out);
}
