/* What is asked of Slurm about wards, and what its answers mean. An answer is half the truth:
 * whether something came of it is seen in the next view.
 */
#include "act/slurm/inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/wire.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define AGAIN_S 3.0         // what came to nothing is asked again
#define REFUSED_S 10.0      // what Slurm said no to
#define SUBMIT_S 60.0       // a submission that Slurm said no to
#define SUBMITTING_MAX 8    // submissions likewise, each of which is a call
#define CHANGING_MAX 32     // pins at a time, so that views come in between
#define STALE_S 3.0         // in an older view a number may be somebody else's by now
#define NOTING_MAX 4        // notes ahead of anything else that is asked
#define BATCH_MAX 500       // jobs in a request

/* ---- errands ---- */

/* A request that was sent, and the wards it is about. Owned by the list until it is answered. */
struct errand {
    struct slurm *slurm;
    struct errand *next, *prev;
    const char *verb;
    int n;
    struct ward **wards;
    enum link_kind *kinds;    // (n) of 'trouble' lines
    char **texts;             // (n) likewise
    bool is_change;           // counted in n_changing
    bool is_submit;           // in n_submitting
    bool is_note;             // in n_noting
    int refusal;              // which one this is the note of; -1: none
};

static struct errand *errand_make(struct slurm *x, const char *verb, struct ward *const *wards,
                                  int n)
{
    struct errand *r = heap_array(1, sizeof *r);

    *r = (struct errand){ .slurm = x, .next = x->errands, .verb = verb, .n = n, .refusal = -1 };
    if (r->next)
        r->next->prev = r;
    r->wards = heap_array((size_t)n, sizeof(struct ward *));
    r->kinds = heap_array((size_t)n, sizeof *r->kinds);
    r->texts = heap_array((size_t)n, sizeof *r->texts);
    for (int i = 0; i < n; i++)
        r->wards[i] = wards[i];
    x->errands = r;
    return r;
}

static void errand_free(struct errand *r)
{
    if (r->prev)
        r->prev->next = r->next;
    else
        r->slurm->errands = r->next;
    if (r->next)
        r->next->prev = r->prev;
    for (int i = 0; i < r->n; i++)
        free(r->texts[i]);
    free(r->wards);
    free(r->kinds);
    free(r->texts);
    free(r);
}

void ask_release(struct slurm *x)
{
    struct errand *r = x->errands;

    while (r) {
        struct errand *next = r->next;

        r->prev = NULL;    // it has gone before
        errand_free(r);
        r = next;
    }
    for (int b = 0; b < BATCHES; b++)
        free(x->batch[b].wards);
    for (int i = 0; i < x->n_refusals; i++)
        free(x->refusals[i].why);
    free(x->refusals);
}

/* ---- answers ---- */

static void on_pin(struct slurm *x, struct ward *w, const struct link_end *how)
{
    const double now_s = slurm_now_s(x);
    bool is_slow = !nodes_are_awake(x, &w->at);

    if (w->phase != WARD_WANTED)
        return;    // it was stopped or cancelled meanwhile
    if (how->outcome != LINK_FAILED) {
        w->pinned_s = now_s;
        w->due_s = now_s + x->setup.patience_s + (is_slow ? x->setup.wake_s : 0);
    } else if (how->kind == LINK_REFUSED || how->kind == LINK_MISUSE) {
        ward_set_phase(x, w, WARD_HELD);
        ward_pause(x, w, how->text);
        ward_give_up(x, w, how->text);
    } else {
        spot_set(&w->next, w->at.gpus, w->at.n_gpus, w->at.limit_w);
        w->has_next = true;
        ward_set_phase(x, w, WARD_HELD);
    }
}

static void on_submit(struct slurm *x, struct ward *w, const struct link_end *how)
{
    if (w->phase != WARD_ASKED || how->outcome != LINK_FAILED)
        return;
    ward_set_phase(x, w, WARD_ABSENT);
    if (how->kind == LINK_DOWN)
        return;
    log_warn("job %s: Slurm does not take it: %s; again in %.0f s", ward_name(x, w), how->text,
             SUBMIT_S);
    ward_say_why(w, how->text);
    w->again_s = slurm_now_s(x) + SUBMIT_S;
    if (w->has_next)
        ward_give_up(x, w, how->text);    // no GPU waits for that
}

/* It cannot be put back: it runs on where it is. */
static void on_stuck(struct slurm *x, struct ward *w, const char *text)
{
    log_warn("job %s: Slurm does not put job %s back into its queue: %s; it stays", ward_name(x, w),
             w->number, text);
    w->stuck_run = w->run;
    w->has_next = w->is_move = false;
    ward_set_phase(x, w, WARD_RUNNING);
}

static bool is_stuck(const struct slurm *x, const struct errand *r, const struct ward *w)
{
    return strcmp(r->verb, "requeue") == 0 && w->phase == WARD_LEAVING &&
           w->leave != LEAVE_CANCEL && w->leave != LEAVE_SERVED && w->state == SLURM_RUNNING &&
           ward_may_run(x, w);
}

static bool is_refused(const struct link_end *how)
{
    return how->outcome == LINK_FAILED && (how->kind == LINK_REFUSED || how->kind == LINK_MISUSE);
}

static void settle(struct slurm *x, struct errand *r, struct ward *w, const struct link_end *how)
{
    const double now_s = slurm_now_s(x);

    w->is_in_flight = false;
    if (how->outcome == LINK_UNKNOWN)
        w->doubt_s = now_s;
    if (strcmp(r->verb, "signal") == 0 && how->outcome == LINK_FAILED)
        w->asked_run = -1;    // it was not told
    if (strcmp(r->verb, "pin") == 0) {
        on_pin(x, w, how);
    } else if (strcmp(r->verb, "submit") == 0) {
        on_submit(x, w, how);
    } else if (is_refused(how) && is_stuck(x, r, w)) {
        on_stuck(x, w, how->text);
    } else if (is_refused(how)) {
        w->is_noteless |= r->is_note;
        if (!w->is_grumbled)
            log_warn("job %s: %s of Slurm's job %s: %s", ward_name(x, w), r->verb, w->number,
                     how->text);
        w->is_grumbled = true;
        w->again_s = now_s + REFUSED_S;
    } else if (how->outcome == LINK_FAILED && how->kind == LINK_DOWN) {
        w->again_s = 0;
    }
    if (strcmp(r->verb, "devices") == 0 && w->found == FOUND_ASKED)
        w->found = how->outcome == LINK_DONE ? FOUND_YES : FOUND_NOT;
}

static void on_refusal(struct slurm *x, const struct errand *r, const struct link_end *how)
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
    struct errand *r = self;
    struct slurm *x = r->slurm;
    bool has_trouble = false;

    for (int i = 0; i < r->n; i++)
        has_trouble |= r->kinds[i] != LINK_NONE;
    for (int i = 0; i < r->n; i++) {
        struct link_end one = *how;

        if (has_trouble && how->outcome == LINK_FAILED) {    // the others went well
            one.outcome = r->kinds[i] == LINK_NONE ? LINK_DONE : LINK_FAILED;
            one.kind = r->kinds[i];
            one.text = r->texts[i] ? r->texts[i] : "";
        }
        settle(x, r, r->wards[i], &one);
    }
    x->n_changing -= r->is_change;
    x->n_submitting -= r->is_submit;
    x->n_noting -= r->is_note;
    x->n_busy = -1;
    on_refusal(x, r, how);
    if (how->outcome == LINK_FAILED && how->kind == LINK_DOWN)
        slurm_set_down(x, how->text);
    else if (!r->is_note)
        look_soon(x);
    errand_free(r);
    slurm_pass_soon(x);
}

static void on_trouble(struct errand *r, const struct wire_message *m)
{
    const char *id = wire_get(m, "id"), *text = wire_get(m, "text");

    for (int i = 0; id && i < r->n; i++) {
        if (strcmp(r->wards[i]->number, id) != 0)
            continue;
        r->kinds[i] = link_kind_of(wire_get(m, "kind"));
        free(r->texts[i]);
        r->texts[i] = strdup(text ? text : "");
    }
}

static void on_line(void *self, uint64_t seq, const struct wire_message *m)
{
    struct errand *r = self;

    (void)seq;
    if (strcmp(m->verb, "trouble") == 0)
        on_trouble(r, m);
    else if (strcmp(m->verb, "device") == 0)
        place_heard(r->slurm, m);
}

static void send(struct slurm *x, struct errand *r)
{
    const uint64_t seq = link_ask(x->link, on_line, on_end, r);

    x->n_changing += r->is_change;
    x->n_submitting += r->is_submit;
    x->n_noting += r->is_note;
    x->n_noted += r->is_note;
    for (int i = 0; i < r->n; i++) {
        r->wards[i]->seq = seq;
        r->wards[i]->is_in_flight = true;
        r->wards[i]->again_s = slurm_now_s(x) + AGAIN_S;
    }
}

/* ---- may anything be asked? ---- */

static bool is_open(const struct slurm *x)
{
    return x->is_up && link_is_up(x->link) && x->has_view && !x->setup.only_watches;
}

bool ask_may(const struct slurm *x, const struct ward *w)
{
    return is_open(x) && w->is_there && !w->is_in_flight && ward_is_fresh(x, w) &&
           slurm_now_s(x) >= w->again_s &&
           (x->is_believing || slurm_now_s(x) < x->view.asked_s + STALE_S);
}

/* ---- several at a time ---- */

static const struct {
    const char *verb, *key, *value;
} batches[] = {
    [BATCH_HOLD] = { "hold", NULL, NULL },           [BATCH_REQUEUE] = { "requeue", NULL, NULL },
    [BATCH_SIGNAL] = { "signal", "signal", "USR1" }, [BATCH_CANCEL] = { "cancel", NULL, NULL },
    [BATCH_DEVICES] = { "devices", NULL, NULL },
};

void ask_batch(struct slurm *x, struct ward *w, enum batch b)
{
    struct ward_list *l = &x->batch[b];

    GROW(l->wards, l->n, l->cap);
    l->wards[l->n++] = w;
    w->is_in_flight = true;    // from here on: nothing else is asked meanwhile
}

static void flush_part(struct slurm *x, enum batch b, struct ward *const *wards, int n)
{
    struct buf *out = link_begin(x->link, batches[b].verb);

    for (int i = 0; i < n; i++)
        wire_put(out, "id", wards[i]->number);
    if (batches[b].key)
        wire_put(out, batches[b].key, batches[b].value);
    send(x, errand_make(x, batches[b].verb, wards, n));
}

void ask_flush(struct slurm *x)
{
    for (int b = 0; b < BATCHES; b++) {
        struct ward_list *l = &x->batch[b];

        for (int from = 0; from < l->n; from += BATCH_MAX)
            flush_part(x, (enum batch)b, l->wards + from,
                       l->n - from < BATCH_MAX ? l->n - from : BATCH_MAX);
        l->n = 0;
    }
}

/* ---- one at a time ---- */

void ask_submit(struct slurm *x, struct ward *w)
{
    struct err e = { 0 };
    struct errand *r;
    struct buf *out;
    int rc;

    if (x->n_submitting >= SUBMITTING_MAX || !is_open(x) || slurm_now_s(x) < w->again_s)
        return;
    rc = submit_check(x, w, &e);
    if (rc < 0) {
        if (!w->is_grumbled)
            log_warn("job %s: %s", ward_name(x, w), e.text);
        w->is_grumbled = true;
        ward_say_why(w, e.text);
        w->again_s = slurm_now_s(x) + SUBMIT_S;
        w->has_next = w->is_move = false;
        return;
    }
    out = link_begin(x->link, "submit");
    submit_put(x, w, out);
    ward_set_phase(x, w, WARD_ASKED);
    w->absent_s = (double)NAN;
    r = errand_make(x, "submit", &w, 1);
    r->is_submit = true;
    send(x, r);
}

void ask_pin(struct slurm *x, struct ward *w)
{
    struct err e = { 0 };
    struct errand *r;
    struct buf *out;
    const char *gres;
    int n_nodes;

    if (x->n_changing >= CHANGING_MAX)
        return;
    arena_reset(&x->scratch);
    gres = place_gres(x, w, &w->next, &e);
    if (gres && place_needs_new(x, w, gres) && !ward_is_users(x, w)) {
        log_info("job %s: Slurm's job %s cannot ask for %s any more; submitted anew",
                 ward_name(x, w), w->number, gres);
        ward_renew(x, w);
        return;
    }
    if (!gres || place_check(x, w, &w->next, &e) < 0) {
        ward_pause(x, w, e.text);
        ward_give_up(x, w, e.text);
        return;
    }
    gres = place_gres(x, w, &w->next, &e);    // the check has used the same memory
    out = link_begin(x->link, "pin");
    wire_put(out, "id", w->number);
    wire_put_long(out, "uid", (long)w->uid);
    wire_put(out, "nodes", place_nodes(x, &w->next, &n_nodes));
    wire_put_long(out, "n_nodes", n_nodes);
    wire_put(out, "gres", gres);
    wire_put(out, "admin", place_note(x, w, &w->next, -1));
    free(w->pin_gres);
    w->pin_gres = strdup(gres);
    spot_move(&w->at, &w->next);
    w->at.limit_w = 0;    // Slurm sets none, and so it is told
    w->has_next = false;
    w->pin_run = w->run;
    w->pinned_s = slurm_now_s(x);
    ward_set_phase(x, w, WARD_WANTED);
    r = errand_make(x, "pin", &w, 1);
    r->is_change = true;
    send(x, r);
}

bool ask_may_note(const struct slurm *x)
{
    return x->n_noting < NOTING_MAX;
}

void ask_note(struct slurm *x, struct ward *w, int asked_run)
{
    struct buf *out = link_begin(x->link, "note");
    struct errand *r = errand_make(x, "note", &w, 1);

    arena_reset(&x->scratch);
    wire_put(out, "id", w->number);
    wire_put_long(out, "uid", (long)w->uid);
    wire_put(out, "admin", place_note(x, w, &w->at, asked_run));
    r->is_note = true;
    send(x, r);
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
        send(x, errand_make(x, "hold", NULL, 0));
}

static void note_refused(struct slurm *x, int i)
{
    struct buf *out = link_begin(x->link, "note");
    struct errand *r = errand_make(x, "note", NULL, 0);

    arena_reset(&x->scratch);
    wire_put(out, "id", x->refusals[i].number);
    wire_put_long(out, "uid", (long)x->refusals[i].uid);
    wire_put(out, "admin", arena_printf(&x->scratch, "gogh1 refused: %s", x->refusals[i].why));
    r->is_note = true;
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
    send(x, errand_make(x, "cancel", NULL, 0));
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
    send(x, errand_make(x, "power", NULL, 0));
    x->wants_nodes = true;
}
