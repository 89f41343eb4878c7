/* What is asked of Slurm about managed, and what its answers mean. An answer is half the truth:
 * whether something came of it is seen in the next view.
 */
#include "act/slurm/inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/wire.h"
#include "act/local/command.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"

#define AGAIN_S 3.0         // what came to nothing is asked again
#define REFUSED_S 10.0      // what Slurm said no to
#define SUBMIT_S 60.0       // a submission that Slurm said no to
#define SUBMITTING_MAX 8    // submissions likewise, each of which is a call
#define CHANGING_MAX 32     // pins at a time, so that views come in between
#define STALE_S 3.0         // in an older view a number may be somebody else's by now
#define NOTING_MAX 4        // notes ahead of anything else that is asked
#define BATCH_MAX 500       // jobs in a request

/* ---- requests ---- */

/* A request that was sent, and the jobs it is about. They are answered in their order. */
struct slurm_request {
    struct slurm *slurm;
    struct slurm_request *next;
    const char *verb;
    int *counter;    // of those of its kind that are under way; NULL: not counted
    int refusal;     // which one this is the note of; -1: none
    int n;
    struct {
        struct managed *m;
        enum link_kind kind;    // of a 'trouble' line
        char *text;             // likewise
    } jobs[];
};

static struct slurm_request *request_make(struct slurm *x, const char *verb, int *counter,
                                          struct managed *const *jobs, int n)
{
    struct slurm_request *r = heap_array(1, sizeof *r + (size_t)n * sizeof *r->jobs);

    *r = (struct slurm_request){
        .slurm = x, .verb = verb, .counter = counter, .refusal = -1, .n = n
    };
    for (int i = 0; i < n; i++)
        r->jobs[i].m = jobs[i];
    *x->last_request = r;
    x->last_request = &r->next;
    return r;
}

/* The first one. */
static void request_free(struct slurm *x)
{
    struct slurm_request *r = x->requests;

    x->requests = r->next;
    if (!r->next)
        x->last_request = &x->requests;
    for (int i = 0; i < r->n; i++)
        free(r->jobs[i].text);
    free(r);
}

void ask_release(struct slurm *x)
{
    while (x->requests)
        request_free(x);
    for (int b = 0; b < BATCHES; b++)
        free(x->batch[b].jobs);
    for (int i = 0; i < x->n_refusals; i++)
        free(x->refusals[i].why);
    free(x->refusals);
}

/* ---- answers ---- */

static bool is_refused(const struct link_end *how)
{
    return how->outcome == LINK_FAILED && (how->kind == LINK_REFUSED || how->kind == LINK_MISUSE);
}

static void on_pin(struct slurm *x, struct managed *m, const struct link_end *how)
{
    const double now_s = slurm_now_s(x);
    bool is_slow = !nodes_are_awake(x, &m->at);

    if (m->state != MANAGED_PINNED)
        return;    // it was stopped or cancelled meanwhile
    if (how->outcome != LINK_FAILED) {
        m->pinned_s = now_s;
        m->due_s = now_s + x->setup.patience_s + (is_slow ? x->setup.wake_s : 0);
        return;
    }
    managed_update(x, m, ON_PIN_FAILED);
    if (is_refused(how)) {
        managed_pause(x, m, how->text);
        managed_give_up(x, m, how->text);
    } else {
        gpu_set_copy(&m->next, m->at.gpus, m->at.n_gpus);
    }
}

/* Slurm does not take it, or would not. */
static void put_off(struct slurm *x, struct managed *m, const char *why)
{
    keep_text(&m->why, why);
    m->again_s = slurm_now_s(x) + SUBMIT_S;
    if (managed_is_replica(x, m))    // its service hears of that
        m->paused_s = m->again_s;
}

static void on_submit(struct slurm *x, struct managed *m, const struct link_end *how)
{
    if (how->outcome != LINK_FAILED || !managed_update(x, m, ON_SUBMIT_FAILED) ||
        how->kind == LINK_DOWN)
        return;
    log_warn("job %s: Slurm does not take it: %s; again in %.0f s", managed_name(x, m), how->text,
             SUBMIT_S);
    put_off(x, m, how->text);
    if (m->next.n_gpus > 0)
        managed_give_up(x, m, how->text);    // no GPU waits for that
}

/* It cannot be put back: it runs on where it is. */
static void on_stuck(struct slurm *x, struct managed *m, const char *text)
{
    log_warn("job %s: Slurm does not put job %s back into its queue: %s; it stays",
             managed_name(x, m), m->number, text);
    m->stuck_run = m->last.run;
    gpu_set_clear(&m->next);
    managed_update(x, m, ON_STAYS);
}

static bool is_stuck(const struct slurm *x, const struct slurm_request *r, const struct managed *m)
{
    return strcmp(r->verb, "requeue") == 0 &&
           (m->state == MANAGED_STOPPING || m->state == MANAGED_MOVING) &&
           m->last.state == SLURM_RUNNING && managed_may_run(x, m);
}

static void settle(struct slurm *x, struct slurm_request *r, struct managed *m,
                   const struct link_end *how)
{
    const double now_s = slurm_now_s(x);

    m->is_in_flight = false;
    if (how->outcome == LINK_UNKNOWN)
        m->doubt_s = now_s;
    if (strcmp(r->verb, "signal") == 0 && how->outcome == LINK_FAILED)
        m->asked_run = -1;    // it was not told
    if (strcmp(r->verb, "pin") == 0) {
        on_pin(x, m, how);
    } else if (strcmp(r->verb, "submit") == 0) {
        on_submit(x, m, how);
    } else if (is_refused(how) && is_stuck(x, r, m)) {
        on_stuck(x, m, how->text);
    } else if (is_refused(how)) {
        m->is_noteless |= r->counter == &x->n_noting;
        if (!m->is_logged)
            log_warn("job %s: %s of Slurm's job %s: %s", managed_name(x, m), r->verb, m->number,
                     how->text);
        m->is_logged = true;
        m->again_s = now_s + REFUSED_S;
    } else if (how->outcome == LINK_FAILED && how->kind == LINK_DOWN) {
        m->again_s = 0;
    }
    if (strcmp(r->verb, "devices") == 0 && m->lookup == LOOKUP_ASKED)
        m->lookup = how->outcome == LINK_DONE ? LOOKUP_DONE : LOOKUP_NONE;
}

static void on_refusal(struct slurm *x, const struct slurm_request *r, const struct link_end *how)
{
    const bool is_over =
        how->outcome == LINK_DONE || (how->outcome == LINK_FAILED && how->kind != LINK_DOWN);

    if (r->refusal < 0)
        return;
    x->refusals[r->refusal].is_done = is_over;
    x->refusals[r->refusal].is_sent = is_over;
}

static void on_end(void *self, const struct link_end *how)
{
    struct slurm_request *r = self;
    struct slurm *x = r->slurm;
    bool has_trouble = false;

    assert(r == x->requests);
    for (int i = 0; i < r->n; i++)
        has_trouble |= r->jobs[i].kind != LINK_NONE;
    for (int i = 0; i < r->n; i++) {
        struct link_end one = *how;

        if (has_trouble && how->outcome == LINK_FAILED) {    // the others went well
            one.outcome = r->jobs[i].kind == LINK_NONE ? LINK_DONE : LINK_FAILED;
            one.kind = r->jobs[i].kind;
            one.text = r->jobs[i].text ? r->jobs[i].text : "";
        }
        settle(x, r, r->jobs[i].m, &one);
    }
    if (r->counter)
        --*r->counter;
    x->n_busy = -1;
    on_refusal(x, r, how);
    if (how->outcome == LINK_FAILED && how->kind == LINK_DOWN)
        slurm_set_down(x, how->text);
    else if (r->counter != &x->n_noting)
        look_soon(x);
    request_free(x);
    slurm_pass_soon(x);
}

static void on_trouble(struct slurm_request *r, const struct wire_message *m)
{
    const char *id = wire_get(m, "id"), *text = wire_get(m, "text");

    for (int i = 0; id && i < r->n; i++) {
        if (strcmp(r->jobs[i].m->number, id) != 0)
            continue;
        r->jobs[i].kind = link_kind_of(wire_get(m, "kind"));
        keep_text(&r->jobs[i].text, text);
    }
}

static void on_line(void *self, const struct wire_message *m)
{
    struct slurm_request *r = self;

    if (strcmp(m->verb, "trouble") == 0)
        on_trouble(r, m);
    else if (strcmp(m->verb, "device") == 0)
        place_on_device(r->slurm, m);
}

static void send(struct slurm *x, struct slurm_request *r)
{
    const uint64_t seq = link_ask(x->link, on_line, on_end, r);

    if (r->counter)
        ++*r->counter;
    x->n_noted += r->counter == &x->n_noting;
    for (int i = 0; i < r->n; i++) {
        r->jobs[i].m->seq = seq;
        r->jobs[i].m->is_in_flight = true;
        r->jobs[i].m->again_s = slurm_now_s(x) + AGAIN_S;
    }
}

/* ---- may anything be asked? ---- */

static bool is_open(const struct slurm *x)
{
    return x->is_up && link_is_up(x->link) && x->has_view && !x->setup.only_watches;
}

bool ask_may(const struct slurm *x, const struct managed *m)
{
    return is_open(x) && m->now && !m->is_in_flight && managed_is_fresh(x, m) &&
           slurm_now_s(x) >= m->again_s &&
           (x->is_believing || slurm_now_s(x) < x->view.asked_s + STALE_S);
}

/* ---- several at a time ---- */

static const char *const batch_verbs[] = { [BATCH_HOLD] = "hold",
                                           [BATCH_REQUEUE] = "requeue",
                                           [BATCH_SIGNAL] = "signal",
                                           [BATCH_CANCEL] = "cancel",
                                           [BATCH_DEVICES] = "devices" };

void ask_batch(struct slurm *x, struct managed *m, enum batch_kind b)
{
    GROW(x->batch[b].jobs, x->batch[b].n, x->batch[b].cap);
    x->batch[b].jobs[x->batch[b].n++] = m;
    m->is_in_flight = true;    // from here on: nothing else is asked meanwhile
}

static void flush_part(struct slurm *x, enum batch_kind b, struct managed *const *managed, int n)
{
    struct buf *out = link_begin(x->link, batch_verbs[b]);

    for (int i = 0; i < n; i++)
        wire_put(out, "id", managed[i]->number);
    if (b == BATCH_SIGNAL)
        wire_put(out, "signal", "USR1");
    send(x, request_make(x, batch_verbs[b], NULL, managed, n));
}

void ask_flush(struct slurm *x)
{
    for (int b = 0; b < BATCHES; b++) {
        const int n = x->batch[b].n;

        for (int from = 0; from < n; from += BATCH_MAX)
            flush_part(x, (enum batch_kind)b, x->batch[b].jobs + from,
                       n - from < BATCH_MAX ? n - from : BATCH_MAX);
        x->batch[b].n = 0;
    }
}

/* ---- one at a time ---- */

void ask_submit(struct slurm *x, struct managed *m)
{
    struct command command;
    struct err e = { 0 };
    struct buf *out;
    int rc;

    if (x->n_submitting >= SUBMITTING_MAX || !is_open(x) || slurm_now_s(x) < m->again_s)
        return;
    rc = submit_check(x, m, &command, &e);
    if (rc < 0) {
        if (!m->is_logged)
            log_warn("job %s: %s", managed_name(x, m), e.text);
        m->is_logged = true;
        put_off(x, m, e.text);
        gpu_set_clear(&m->next);
        return;
    }
    out = link_begin(x->link, "submit");
    submit_put(x, m, &command, out);
    managed_update(x, m, ON_SUBMIT_SENT);
    m->absent_s = (double)NAN;
    send(x, request_make(x, "submit", &x->n_submitting, &m, 1));
}

void ask_pin(struct slurm *x, struct managed *m)
{
    struct err e = { 0 };
    struct buf *out;
    const char *gres;
    int n_nodes;

    if (x->n_changing >= CHANGING_MAX)
        return;
    arena_reset(&x->scratch);
    gres = place_gres(x, m, &m->next, &e);
    if (gres && place_needs_new(x, m, gres)) {    // not a user's
        log_info("job %s: Slurm's job %s cannot ask for %s any more; submitted anew",
                 managed_name(x, m), m->number, gres);
        managed_replace(x, m);
        return;
    }
    if (!gres) {
        managed_pause(x, m, e.text);
        managed_give_up(x, m, e.text);
        return;
    }
    out = link_begin(x->link, "pin");
    wire_put(out, "id", m->number);
    wire_put_long(out, "uid", (long)m->uid);
    wire_put(out, "nodes", place_nodes(x, &m->next, &n_nodes));
    wire_put_long(out, "n_nodes", n_nodes);
    wire_put(out, "gres", gres);
    wire_put(out, "admin", place_note(x, m, &m->next, -1));
    keep_text(&m->pin_gres, gres);
    gpu_set_take(&m->at, &m->next);
    m->pin_run = m->last.run;
    m->pinned_s = slurm_now_s(x);
    managed_update(x, m, ON_PIN_SENT);
    send(x, request_make(x, "pin", &x->n_changing, &m, 1));
}

bool ask_may_note(const struct slurm *x)
{
    return x->n_noting < NOTING_MAX;
}

void ask_note(struct slurm *x, struct managed *m, int asked_run)
{
    struct buf *out = link_begin(x->link, "note");

    arena_reset(&x->scratch);
    wire_put(out, "id", m->number);
    wire_put_long(out, "uid", (long)m->uid);
    wire_put(out, "admin", place_note(x, m, &m->at, asked_run));
    send(x, request_make(x, "note", &x->n_noting, &m, 1));
}

/* All holds of those who were refused in a few requests: that is what counts. */
static void hold_refused(struct slurm *x)
{
    struct buf *out = NULL;
    int n = 0;

    for (int i = 0; i < x->n_refusals && n < BATCH_MAX; i++) {
        struct refusal *r = &x->refusals[i];

        if (!r->needs_hold)
            continue;
        out = out ? out : link_begin(x->link, "hold");
        wire_put(out, "id", r->number);
        r->needs_hold = false;
        n++;
    }
    if (out)
        send(x, request_make(x, "hold", NULL, NULL, 0));
}

static void note_refused(struct slurm *x, int i)
{
    struct buf *out = link_begin(x->link, "note");
    struct slurm_request *r = request_make(x, "note", &x->n_noting, NULL, 0);

    arena_reset(&x->scratch);
    wire_put(out, "id", x->refusals[i].number);
    wire_put_long(out, "uid", (long)x->refusals[i].uid);
    wire_put(out, "admin", arena_printf(&x->scratch, "gogh1 refused: %s", x->refusals[i].why));
    r->refusal = i;
    x->refusals[i].is_sent = true;
    send(x, r);
}

void ask_refusals(struct slurm *x)
{
    bool is_over = true;

    hold_refused(x);
    for (int i = 0; i < x->n_refusals; i++) {
        if (!x->refusals[i].is_sent && ask_may_note(x) && x->n_noted < NOTING_MAX)
            note_refused(x, i);
        is_over &= x->refusals[i].is_done;
    }
    if (!is_over)
        return;
    for (int i = 0; i < x->n_refusals; i++)
        free(x->refusals[i].why);
    x->n_refusals = 0;
}

void ask_strays(struct slurm *x, const char *const *numbers, int n)
{
    struct buf *out;

    if (!is_open(x))
        return;
    out = link_begin(x->link, "cancel");
    for (int i = 0; i < n; i++)
        wire_put(out, "id", numbers[i]);
    send(x, request_make(x, "cancel", NULL, NULL, 0));
}

void ask_power(struct slurm *x, const char *const *nodes, int n, const char *state)
{
    struct buf *out;

    if (!is_open(x) || n == 0)
        return;
    out = link_begin(x->link, "power");
    for (int i = 0; i < n; i++)
        wire_put(out, "node", nodes[i]);
    wire_put(out, "state", state);
    send(x, request_make(x, "power", NULL, NULL, 0));
    x->wants_nodes = true;
}
