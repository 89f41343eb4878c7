#include "catalog/cluster/ledger.h"

#include <assert.h>
#include <errno.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/rows.h"
#include "store/store.h"

/* ---- opening ---- */

static int replay_one(void *self, const struct row_event *row)
{
    struct ledger_reader *r = self;
    struct ledger *l = r->ledger;
    struct event ev;
    int rc = event_decode(&l->scratch, row, &l->state, l->catalog, &ev, r->e);

    if (rc == 0)
        rc = state_apply(&l->state, &ev, r->e);
    if (rc < 0)
        return err_prefix(r->e, "journal: event %lld", (long long)row->seq);
    l->last_seq = row->seq;
    l->is_behind = true;
    arena_reset(&l->scratch);
    return 0;
}

int ledger_open(struct ledger *l, struct catalog *c, struct store *s, struct err *e)
{
    struct err unasked = { 0 };
    struct ledger_reader r = { .ledger = l, .e = e ? e : &unasked };
    int rc;

    *l = (struct ledger){ .catalog = c, .store = s };
    state_init(&l->state);
    arena_init(&l->scratch);
    if (!s)
        return 0;
    rc = store_hold(s, e);
    if (rc == 0) {
        rc = rows_read(l, r.e);
        if (rc == 0)
            rc = store_each_event(s, l->last_seq, replay_one, &r, r.e);
        store_let_go(s);
    }
    if (rc == 0)
        state_assert(&l->state);
    else
        ledger_close(l);
    return rc;
}

void ledger_close(struct ledger *l)
{
    ledger_undo(l);
    state_release(&l->state);
    arena_release(&l->scratch);
}

/* ---- groups ---- */

int ledger_begin(struct ledger *l, struct err *e)
{
    int rc = 0;

    if (l->is_begun)
        return 0;
    if (l->store)
        rc = store_begin(l->store, e);
    if (rc < 0)
        return rc;
    l->is_begun = true;
    l->begun_seq = l->last_seq;
    state_mark(&l->state);
    if (l->store)
        rc = catalog_resync(l->catalog, e);
    if (rc == 0 && l->is_behind)
        rc = rows_write_all(l, e);
    if (rc < 0)
        ledger_undo(l);
    return rc;
}

/* The event as it goes into the journal: a command as it will be read again. */
static int prepare(struct ledger *l, struct event *ev, struct job_spec *spec, const char **body,
                   struct err *e)
{
    int rc = state_check(&l->state, ev, e);

    if (rc < 0)
        return rc;
    if (ev->kind == EVENT_JOB_SUBMITTED && ev->spec->command) {
        *spec = *ev->spec;
        spec->command = event_compact(&l->scratch, spec->command);
        ev->spec = spec;
        if (!spec->command)
            return err_set(e, EINVAL, "job %s: its command is not a JSON object", spec->name);
    }
    *body = l->store ? event_encode(&l->scratch, ev, &l->state, l->catalog) : "";
    if (!*body)
        return err_set(e, EINVAL, "%s: a text is not UTF-8, or a number is not finite",
                       event_kind_name(ev->kind));
    return 0;
}

static int journal(struct ledger *l, const struct event *ev, const char *body, struct err *e)
{
    int64_t seq = 0;
    int rc = store_append_event(l->store, ev->time_s, event_kind_name(ev->kind), body, &seq, e);

    if (rc == 0 && seq != l->last_seq + 1)
        rc = err_set(e, EBUSY, "another process writes this journal; stop one of them");
    if (rc == 0)
        rc = rows_write_event(l, ev, e);
    if (rc == 0)
        l->last_seq = seq;
    return rc;
}

/* What may be refused is found out before anything is changed; what fails after that is the
 * store, and takes the whole group with it.
 */
int ledger_add(struct ledger *l, const struct event *ev, struct err *e)
{
    struct err unasked = { 0 }, *why = e ? e : &unasked;
    struct event checked = *ev;
    struct job_spec spec;
    const char *body = NULL;
    int rc = prepare(l, &checked, &spec, &body, why);

    assert(l->is_begun);
    if (rc == 0) {
        rc = state_apply(&l->state, &checked, why);
        assert(rc == 0);
        if (l->store)
            rc = journal(l, &checked, body, why);
        if (rc < 0)
            ledger_undo(l);
        if (rc == -EINVAL)
            rc = err_negative(why->code = EIO);    // a row that the store refuses is no refusal
    }
    if (l->scratch.used > 0)
        arena_reset(&l->scratch);
    return rc;
}

int ledger_commit(struct ledger *l, struct err *e)
{
    bool has_news = l->is_behind || l->last_seq != l->begun_seq;
    int rc = 0;

    if (!l->is_begun)
        return 0;
    if (l->store && has_news)
        rc = store_mark_applied(l->store, l->last_seq, e);
    if (l->store && rc == 0)
        rc = store_commit(l->store, e);
    if (rc < 0) {
        ledger_undo(l);
        return rc;
    }
    state_keep(&l->state);
    l->is_begun = l->is_behind = false;
    return 0;
}

void ledger_undo(struct ledger *l)
{
    if (!l->is_begun)
        return;
    if (l->store) {
        store_rollback(l->store);
        catalog_doubt(l->catalog);
    }
    state_undo(&l->state);
    l->last_seq = l->begun_seq;
    l->is_begun = false;
}

static int add_all(struct ledger *l, const struct event *events, int n, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = ledger_add(l, &events[i], e);
    return rc;
}

int ledger_append(struct ledger *l, const struct event *events, int n, struct err *e)
{
    int rc = 0;

    if (l->is_begun)
        return add_all(l, events, n, e);
    if (!l->store) {
        for (int i = 0; i < n && rc == 0; i++)
            rc = state_apply(&l->state, &events[i], e);
        return rc;
    }
    rc = ledger_begin(l, e);
    if (rc == 0)
        rc = add_all(l, events, n, e);
    if (rc == 0)
        return ledger_commit(l, e);
    ledger_undo(l);
    return rc;
}
