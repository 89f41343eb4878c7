/* Is a replica ready, and does it still answer? Where it has a probe, it is asked by HTTP on a
 * worker; where it has none and says nothing, it is taken to be ready after its time to load.
 */
#include <curl/curl.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/service/inner.h"
#include "daemon/service/upkeep.h"
#include "monitor/watch.h"

#define STARTING_S 1.0      // between two questions while it loads
#define READY_S 10.0        // and later
#define PATIENCE_MS 2000    // an answer takes at most so long
#define FAILURES_MOST 3     // in a row, and it is replaced
#define AT_ONCE 16

struct patient {
    int job;
    int n_failed;
    double due_s;    // on the stopwatch
};

struct question {
    int job;
    char *url;
    bool is_good;
};

struct round {
    struct health *health;    // NULL: it is gone
    struct question *questions;
    int n, cap;
};

struct health {
    struct service *service;
    struct loop_timer timer;
    struct patient *patients;    // (n) replicas that run
    int n, cap;
    struct round *under_way;
};

/* ---- on a worker ---- */

static size_t drop_bytes(char *bytes, size_t size, size_t n, void *self)
{
    (void)bytes;
    (void)self;
    return size * n;
}

static CURL *ask(struct question *q)
{
    CURL *c = curl_easy_init();

    if (!c)
        return NULL;
    curl_easy_setopt(c, CURLOPT_URL, q->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)PATIENCE_MS);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop_bytes);
    curl_easy_setopt(c, CURLOPT_PRIVATE, q);
    return c;
}

static void take_answer(CURLM *all, const CURLMsg *m)
{
    CURL *c = m->easy_handle;
    struct question *q = NULL;
    long status = 0;

    curl_easy_getinfo(c, CURLINFO_PRIVATE, &q);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    q->is_good = m->data.result == CURLE_OK && status == 200;
    curl_multi_remove_handle(all, c);
    curl_easy_cleanup(c);
}

static void work(void *self)
{
    struct round *r = self;
    CURLM *all = curl_multi_init();
    int n_left = 1, n_told;

    if (!all)
        return;
    curl_multi_setopt(all, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)AT_ONCE);
    for (int i = 0; i < r->n; i++) {
        CURL *c = ask(&r->questions[i]);
        if (c)
            curl_multi_add_handle(all, c);
    }
    while (n_left > 0) {
        if (curl_multi_perform(all, &n_left) != CURLM_OK)
            break;
        if (n_left > 0)
            curl_multi_poll(all, NULL, 0, 100, NULL);
        for (CURLMsg *m; (m = curl_multi_info_read(all, &n_told)) != NULL;)
            if (m->msg == CURLMSG_DONE)
                take_answer(all, m);
    }
    curl_multi_cleanup(all);
}

/* ---- on the loop ---- */

static void round_free(struct round *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->questions[i].url);
    free(r->questions);
    free(r);
}

static struct patient *find(struct health *h, int job)
{
    for (int i = 0; i < h->n; i++)
        if (h->patients[i].job == job)
            return &h->patients[i];
    return NULL;
}

static void tell_ready(struct service *s, int job)
{
    const double now_s = clock_now_s(&s->clock);
    const struct served ready = { .is_ready = true,
                                  .from_s = now_s,
                                  .to_s = now_s,
                                  .n_requests = NAN,
                                  .n_late = NAN,
                                  .n_batches = NAN,
                                  .busy_s = NAN,
                                  .n_queued = NAN };

    watch_tell(s->watch, &(struct observation){ .kind = OBS_SERVED,
                                                .time_s = now_s,
                                                .job = job,
                                                .watts = NAN,
                                                .noise = NAN,
                                                .served = &ready });
}

static void give_up(struct service *s, int job)
{
    struct err e = { 0 };
    const struct event ev = { .kind = EVENT_REPLICA_DRAINING,
                              .time_s = clock_now_s(&s->clock),
                              .job = job,
                              .steps_done = s->base.ledger.state.jobs[job]->steps_done,
                              .reason = "does not answer" };

    if (service_append(s, &ev, &e) < 0)
        log_warn("replica %d: %s", job, e.text);
}

static bool is_patient(const struct state *st, int job)
{
    const struct job *j = job < st->n_jobs ? st->jobs[job] : NULL;

    return j && j->spec.kind == JOB_REPLICA && j->state == JOB_RUNNING && isnan(j->drain_s);
}

static void hear(struct health *h, const struct question *q)
{
    struct service *s = h->service;
    struct patient *p = find(h, q->job);

    if (!p || !is_patient(&s->base.ledger.state, q->job))
        return;
    bool is_ready = !isnan(s->base.ledger.state.jobs[q->job]->ready_s);
    p->n_failed = q->is_good ? 0 : p->n_failed + 1;
    if (q->is_good && !is_ready)
        tell_ready(s, q->job);
    else if (is_ready && p->n_failed >= FAILURES_MOST)
        give_up(s, q->job);
    bool is_calm = q->is_good && is_ready;
    p->due_s = clock_stopwatch_s() + (is_calm ? READY_S : STARTING_S);
}

static void on_answers(void *self)
{
    struct round *r = self;
    struct health *h = r->health;

    for (int i = 0; h && i < r->n; i++)
        hear(h, &r->questions[i]);
    if (h) {
        h->under_way = NULL;
        loop_timer_set(&h->timer, 0.1);
    }
    round_free(r);
}

/* Without a probe: what it says itself counts, and where it says nothing, its time to load. */
static void wait_for(struct service *s, struct patient *p, const struct job *j)
{
    double load_s = j->spec.terms->load_s > 0 ? j->spec.terms->load_s : SERVICE_LOAD_S;
    struct watch_job w;

    if (!isnan(j->ready_s) || (watch_job(s->watch, j->id, &w) && w.has_reported))
        return;
    if (clock_now_s(&s->clock) < j->changed_s + load_s)
        return;
    log_info("replica %s reports nothing; taken to be ready", j->spec.name);
    tell_ready(s, j->id);
    p->due_s += READY_S;
}

static void add_question(struct health *h, struct round *r, const struct job *j)
{
    struct question q = { .job = j->id };

    q.url = endpoints_url(h->service, j, j->spec.terms->probe);
    if (!q.url)
        return;
    GROW(r->questions, r->n, r->cap);
    r->questions[r->n++] = q;
}

static void on_timer(void *self)
{
    struct health *h = self;
    struct service *s = h->service;
    struct round *r = h->under_way ? NULL : heap_array(1, sizeof *r);
    double at_s = clock_stopwatch_s();

    for (int i = 0; i < h->n; i++) {
        struct patient *p = &h->patients[i];
        if (!is_patient(&s->base.ledger.state, p->job)) {
            *p = h->patients[--h->n];
            i--;
            continue;
        }
        const struct job *j = s->base.ledger.state.jobs[p->job];
        if (at_s < p->due_s)
            continue;
        if (j->spec.terms->probe == NULL)
            wait_for(s, p, j);
        else if (r)
            add_question(h, r, j);
    }
    if (r && r->n > 0) {
        r->health = h;
        h->under_way = r;
        loop_work(s->loop, "health of replicas", work, on_answers, r);
    } else if (r) {
        round_free(r);
    }
    if (h->n > 0)
        loop_timer_set(&h->timer, STARTING_S);
}

void health_is_safe(struct health *h)
{
    const struct state *st = &h->service->base.ledger.state;

    for (int i = 0; i < st->n_running; i++) {
        int job = st->running[i];
        if (!is_patient(st, job) || find(h, job))
            continue;
        GROW(h->patients, h->n, h->cap);
        h->patients[h->n++] = (struct patient){ .job = job };
    }
    if (h->n > 0 && h->timer.due_s == (double)INFINITY)
        loop_timer_set(&h->timer, 0.1);
}

struct health *health_create(struct service *s)
{
    struct health *h = heap_array(1, sizeof *h);

    h->service = s;
    loop_timer_init(&h->timer, s->loop, "health of replicas", on_timer, h);
    return h;
}

void health_destroy(struct health *h)
{
    if (h->under_way)
        h->under_way->health = NULL;
    loop_timer_clear(&h->timer);
    free(h->patients);
    free(h);
}
