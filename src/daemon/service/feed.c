#include "daemon/service/feed.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/http/http.h"
#include "daemon/service/service.h"

#define SLICE_EVENTS 200            // read for one listener in one turn: about 1 ms
#define SLICE_BYTES (128 * 1024)    // and no more in its backlog, half of STREAM_MAX
#define EVENT_MAX (4 << 20)         // bytes of one event, spelt out
#define HEARTBEAT_S 15.0
#define TURN_S 0.005    // of all listeners together
#define SUBMITTED "job_submitted"
#define PATIENCE_S 0.05    // before looking again whether a slow listener has read something

struct subscriber {
    struct feed *feed;
    struct subscriber *prev, *next;
    struct stream *stream;
    int64_t at;    // the last event it has, or that is not for it
    int job;       // -1: all
};

struct feed {
    struct service *service;
    struct subscriber *listeners;
    int n_listeners;
    struct subscriber *next_up;    // whose turn it is; NULL: the first one's
    int64_t last_seq;              // on disk
    struct loop_timer pump, heart;
    struct buf text;    // one event
};

/* ---- one event ---- */

/* Is it the submission of 'job'? Names come again once their job has ended; times tell them apart.
 */
static bool is_submission(const struct feed *f, json_t *o, int job)
{
    const struct state *st = &f->service->base.ledger.state;
    const char *name = json_string_value(json_object_get(o, "name"));

    return name != NULL && job < st->n_jobs && strcmp(st->jobs[job]->spec.name, name) == 0 &&
           json_number_value(json_object_get(o, "submit_s")) == st->jobs[job]->spec.submit_s;
}

/* Is the event about 'job'? Most are not, and are told by a look at their text. */
static bool is_of_job(const struct feed *f, const struct row_event *r, int job)
{
    const bool is_new = strcmp(r->kind, SUBMITTED) == 0;
    char text[32];
    json_t *o, *v;
    bool is;

    snprintf(text, sizeof text, "\"job\":%d", job);
    if (!is_new && strstr(r->body, text) == NULL)
        return false;
    o = json_loads(r->body, 0, NULL);
    v = json_object_get(o, "job");
    is = is_new ? is_submission(f, o, job) : json_is_integer(v) && json_integer_value(v) == job;
    json_decref(o);
    return is;
}

/* What everybody may know of a submission: neither its key, nor the values of its environment. */
static char *submission_text(const char *body)
{
    json_t *o = json_loads(body, 0, NULL);
    json_t *command = json_object_get(o, "command");
    json_t *names = json_array(), *v;
    const char *name;
    char *text;

    json_object_foreach(json_object_get(command, "env"), name, v)
    {
        json_array_append_new(names, json_string(name));
    }
    if (json_object_get(command, "env") != NULL)
        json_object_set(command, "env", names);
    json_object_del(o, "key");
    json_object_del(o, "digest");
    text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(names);
    json_decref(o);
    return text;
}

/* The body is a JSON object on one line; the time is put in front of what it has. */
static int spell(struct buf *out, const struct row_event *r)
{
    char *told = strcmp(r->kind, SUBMITTED) == 0 ? submission_text(r->body) : strdup(r->body);
    const char *rest = told != NULL ? strchr(told, '{') : NULL;
    int rc = -1;

    buf_clear(out);
    if (rest != NULL) {
        rest += 1 + strspn(rest + 1, " ");
        rc = buf_printf(out, "id: %" PRId64 "\nevent: %s\ndata: {\"time_s\":%.6f%s%s\n\n", r->seq,
                        r->kind, r->time_s, *rest == '}' ? "" : ",", rest);
    }
    free(told);
    return rc;
}

/* ---- listeners ---- */

static void on_end(void *self)
{
    struct subscriber *l = self;

    l->feed->n_listeners--;
    if (l->feed->next_up == l)
        l->feed->next_up = l->next;
    if (l->prev != NULL)
        l->prev->next = l->next;
    else
        l->feed->listeners = l->next;
    if (l->next != NULL)
        l->next->prev = l->prev;
    free(l);
}

struct slice_read {
    struct subscriber *listener;
    int n;
};

/* One row of the journal for one listener; 1: that is enough for this turn. */
static int deliver(void *self, const struct row_event *r)
{
    struct slice_read *s = self;
    struct subscriber *l = s->listener;
    struct feed *f = l->feed;

    if (r->seq > f->last_seq) {    // of a transaction that is not committed
        l->at = f->last_seq;
        return 1;
    }
    if ((l->job < 0 || is_of_job(f, r, l->job)) && spell(&f->text, r) == 0)
        stream_write(l->stream, f->text.data, f->text.len);
    l->at = r->seq;
    return ++s->n == SLICE_EVENTS || stream_backlog(l->stream) >= SLICE_BYTES;
}

/* A slice for 'l'; true: it could take more at once. */
static bool feed_one(struct feed *f, struct subscriber *l)
{
    struct slice_read s = { .listener = l };
    struct err e = { 0 };
    int rc;

    if (stream_backlog(l->stream) >= SLICE_BYTES / 2)
        return false;
    rc = store_each_event(f->service->base.store, l->at, deliver, &s, &e);
    if (rc < 0) {
        log_warn("events: %s", e.text);
        stream_end(l->stream);
        l->at = f->last_seq;
    } else if (rc == 0) {    // to the end of the journal
        l->at = f->last_seq;
    }
    return stream_backlog(l->stream) < SLICE_BYTES / 2;
}

/* Give those who are behind a slice each, in a circle, as long as a turn may take; and come back
 * while somebody is behind.
 */
static void on_pump(void *self)
{
    const double until_s = clock_stopwatch_s() + TURN_S;
    struct feed *f = self;
    struct subscriber *l = f->next_up != NULL ? f->next_up : f->listeners;
    bool is_behind = false, may_go_on = false;

    for (int i = 0; i < f->n_listeners; i++) {
        if (l->at < f->last_seq) {
            bool takes_more = feed_one(f, l);

            is_behind = is_behind || l->at < f->last_seq;
            may_go_on = may_go_on || (takes_more && l->at < f->last_seq);
        }
        l = l->next != NULL ? l->next : f->listeners;
        if (i + 1 < f->n_listeners && clock_stopwatch_s() > until_s) {
            is_behind = may_go_on = true;    // for all we know
            break;
        }
    }
    f->next_up = l;
    if (is_behind)
        loop_timer_set(&f->pump, may_go_on ? 0 : PATIENCE_S);
}

/* Proxies close what is silent, and we learn of listeners that are gone only by writing. */
static void on_heart(void *self)
{
    static const char beat[] = ": still here\n\n";
    struct feed *f = self;

    for (struct subscriber *l = f->listeners; l != NULL; l = l->next)
        if (stream_backlog(l->stream) == 0)
            stream_write(l->stream, beat, sizeof beat - 1);
    loop_timer_set(&f->heart, HEARTBEAT_S);
}

/* ---- in and out ---- */

struct feed *feed_create(struct service *s)
{
    struct feed *f = heap_array(1, sizeof *f);

    *f = (struct feed){ .service = s, .last_seq = s->base.ledger.last_seq };
    buf_init(&f->text, EVENT_MAX);
    loop_timer_init(&f->pump, s->loop, "events: a slice", on_pump, f);
    loop_timer_init(&f->heart, s->loop, "events: the heartbeat", on_heart, f);
    loop_timer_set(&f->heart, HEARTBEAT_S);
    return f;
}

void feed_destroy(struct feed *f)
{
    if (f == NULL)
        return;
    for (struct subscriber *l = f->listeners, *next; l != NULL; l = next) {
        next = l->next;
        stream_forget(l->stream);
        free(l);
    }
    loop_timer_clear(&f->pump);
    loop_timer_clear(&f->heart);
    buf_release(&f->text);
    free(f);
}

void feed_open(struct feed *f, struct request *r, int64_t after_seq, int job)
{
    static const char hello[] = "retry: 2000\n\n";
    struct subscriber *l = heap_array(1, sizeof *l);

    *l = (struct subscriber){ .feed = f, .next = f->listeners, .job = job };
    l->at = after_seq >= 0 && after_seq < f->last_seq ? after_seq : f->last_seq;
    l->stream = reply_stream(r, "text/event-stream", on_end, l);
    if (l->stream == NULL) {
        free(l);
        return;
    }
    if (f->listeners != NULL)
        f->listeners->prev = l;
    f->listeners = l;
    f->n_listeners++;
    stream_write(l->stream, hello, sizeof hello - 1);
    if (l->at < f->last_seq)
        loop_timer_set(&f->pump, 0);
}

void feed_committed(struct feed *f, int64_t last_seq)
{
    assert(last_seq >= f->last_seq);
    f->last_seq = last_seq;
    if (f->listeners != NULL)
        loop_timer_set(&f->pump, 0);
}
