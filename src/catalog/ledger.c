#include "catalog/ledger.h"

#include <errno.h>

#include "base/err.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/checkpoint.h"
#include "store/store.h"

struct replay {
    struct ledger *ledger;
    struct err *e;
};

static int replay_one(void *self, const struct row_event *row)
{
    struct replay *r = self;
    struct ledger *l = r->ledger;
    struct event ev;
    int rc = event_decode(&l->scratch, row->kind, row->time_s, row->body, &l->state, l->catalog,
                          &ev, r->e);

    if (rc == 0)
        rc = state_apply(&l->state, &ev, r->e);
    if (rc < 0)
        return err_prefix(r->e, "journal: event %lld", (long long)row->seq);
    l->last_seq = row->seq;
    l->n_since_checkpoint++;
    arena_reset(&l->scratch);
    return 0;
}

int ledger_open(struct ledger *l, struct catalog *c, struct store *s, struct err *e)
{
    struct replay r = { .ledger = l, .e = e };
    int rc;

    *l = (struct ledger){ .catalog = c, .store = s };
    state_init(&l->state);
    arena_init(&l->scratch);
    if (!s)
        return 0;
    rc = store_hold(s, e);
    if (rc == 0) {
        rc = checkpoint_read(l, e);
        if (rc == 0)
            rc = store_each_event(s, l->last_seq, replay_one, &r, e);
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
    state_release(&l->state);
    arena_release(&l->scratch);
}

/* An event must be known to apply before it may be journalled, and journalled before
 * anybody may act on it; so: apply, write, and only then commit.
 */
static int journal(struct ledger *l, const struct event *ev, struct err *e)
{
    const char *body = event_encode(&l->scratch, ev, &l->state, l->catalog);
    int64_t seq;

    if (!body)
        return err_set(e, EINVAL, "%s: a text is not UTF-8, or a number is not finite",
                       event_kind_name(ev->kind));
    int rc = store_append_event(l->store, ev->time_s, event_kind_name(ev->kind), body, &seq, e);
    if (rc == 0 && seq != l->last_seq + 1)
        rc = err_set(e, EBUSY, "another process writes this journal; stop one of them");
    if (rc == 0)
        l->last_seq = seq;
    return rc;
}

/* Events that were applied and then rolled back are undone by a replay. When even that
 * fails, the ledger takes no more events: better stopped than wrong.
 */
static int reopen_after(struct ledger *l, int rc)
{
    struct err why = { 0 };
    struct catalog *c = l->catalog;
    struct store *s = l->store;

    ledger_close(l);
    if (ledger_open(l, c, s, &why) == 0)
        return rc;
    log_error("the journal cannot be read again: %s", why.text);
    state_init(&l->state);
    arena_init(&l->scratch);
    l->is_broken = true;
    return rc;
}

static int append_stored(struct ledger *l, const struct event *events, int n, struct err *e)
{
    int n_applied = 0, rc;

    if (l->is_broken)
        return err_set(e, EIO, "the journal could not be read again after a failure; restart");
    rc = store_begin(l->store, e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < n && rc == 0; i++) {
        rc = state_apply(&l->state, &events[i], e);
        n_applied += rc == 0;
        if (rc == 0)
            rc = journal(l, &events[i], e);
    }
    arena_reset(&l->scratch);
    if (rc == 0)
        rc = store_commit(l->store, e);
    if (rc == 0) {
        l->n_since_checkpoint += n;
        return 0;
    }
    store_rollback(l->store);
    return n_applied ? reopen_after(l, rc) : rc;
}

int ledger_append(struct ledger *l, const struct event *events, int n, struct err *e)
{
    int rc = 0;

    if (l->store)
        return append_stored(l, events, n, e);
    for (int i = 0; i < n && rc == 0; i++)
        rc = state_apply(&l->state, &events[i], e);
    return rc;
}

int ledger_checkpoint(struct ledger *l, struct err *e)
{
    int rc = store_begin(l->store, e);

    if (rc < 0)
        return rc;
    rc = checkpoint_write(l, e);
    if (rc == 0)
        rc = store_commit(l->store, e);
    if (rc < 0)
        store_rollback(l->store);
    else
        l->n_since_checkpoint = 0;
    return rc;
}
