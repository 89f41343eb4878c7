#include "sim/world/service.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define HOUR_S 3600.0
#define NEVER_S 1e9    // latency of what is never answered: the longest bucket

void requests_init(struct world_service *s, const struct world_service_spec *ask, double now_s)
{
    *s = (struct world_service){
        .ask = *ask,
        .first_s = now_s,
        .now_s = now_s,
        .bin_s = fmax(fmax(ask->latency_s / 8, 1e-3), SERVED_EVERY_S / SERVED_BINS_MAX),
        .first_hour = (int)floor(now_s / HOUR_S),
    };
    s->bins_a_s = 1 / s->bin_s;
    assert(ask->latency_s > 0 && ask->max_batch >= 1);
    rng_init(&s->routes, ask->seed, "routes");
    rng_init(&s->tails, ask->seed, "tails");
}

void requests_release(struct world_service *s)
{
    for (int i = 0; i < s->n_replicas; i++) {
        any_server_release(&s->replicas[i].server);
        free(s->replicas[i].counts);
    }
    free(s->replicas);
    free(s->waiting);
    free(s->hours);
}

/* ---- hours ---- */

static struct service_hour *hour_at(struct world_service *s, double t_s)
{
    const int h = (int)floor(t_s / HOUR_S) - s->first_hour;

    while (s->n_hours <= h) {
        GROW(s->hours, s->n_hours, s->cap_hours);
        s->hours[s->n_hours++] = (struct service_hour){ 0 };
    }
    return &s->hours[h];
}

static void book_unanswered(struct service_hour *h, int n)
{
    h->n_requests += n;
    h->n_late += n;
    for (int i = 0; i < n; i++)
        latencies_add(&h->latencies, NEVER_S);
}

static void book_replica(struct service_hour *h, struct service_replica *r)
{
    const struct server_sums b = any_server_sums(&r->server);
    struct latencies *took = any_server_latencies(&r->server);

    h->n_requests += b.n_served - r->hour_served;
    h->n_late += b.n_late - r->hour_late;
    latencies_join(&h->latencies, took);
    *took = (struct latencies){ 0 };
    h->n_refused += b.n_refused - r->hour_refused;
    book_unanswered(h, (int)(b.n_refused - r->hour_refused));
    r->hour_served = b.n_served;
    r->hour_late = b.n_late;
    r->hour_refused = b.n_refused;
}

/* ---- requests ---- */

/* The next one; NULL: none comes. */
static const struct llm_request *next_arrival(struct world_service *s)
{
    if (s->next_ahead == s->n_ahead) {
        if (s->is_ended)
            return NULL;
        s->n_ahead = s->ask.next(s->ask.traffic, s->ahead, SERVICE_AHEAD);
        s->next_ahead = 0;
        if (s->n_ahead == 0) {
            s->is_ended = true;
            return NULL;
        }
    }
    return &s->ahead[s->next_ahead];
}

static struct service_replica *choose(struct world_service *s)
{
    const uint64_t draw = s->n_takers > 1 ? rng_u64(&s->routes) >> 11 : 0;
    struct service_replica *r = s->replicas;

    while (draw >= r->route_end)
        r++;
    return r;
}

static struct server_times times_of(const struct batch_time *f, double longer)
{
    return (struct server_times){ f->t0_s * longer, f->a_s * longer, f->c_s * longer };
}

/* Beside training: the batch that begins next may be a long one. */
static void stir(struct world_service *s, struct service_replica *r)
{
    const double longer = rng_below(&s->tails, TAIL_EVERY) == 0 ? r->figures.tail : 1;
    const struct server_times times = times_of(&r->figures, longer);

    any_server_set_times(&r->server, &times);
}

/* Or it is refused, and counted there. */
static void take(struct service_replica *r, const struct llm_request *q)
{
    any_server_arrive(&r->server, q);
    if (r->server.is_llm) {
        lengths_add(r->lengths.prompt, q->prompt);
        lengths_add(r->lengths.output, q->output);
    }
}

static void hand_over(struct world_service *s, const struct llm_request *q)
{
    struct service_replica *r = choose(s);

    if (r->figures.tail > 1)
        stir(s, r);
    take(r, q);
    const int bin = (int)((q->at_s - r->told_s) * s->bins_a_s);
    r->counts[bin < SERVED_BINS_MAX ? bin : SERVED_BINS_MAX - 1]++;
}

/* Nobody takes requests. The first that finds nobody where somebody was is an interruption. */
static void wait_for_replica(struct world_service *s, const struct llm_request *q)
{
    s->n_interruptions += s->was_served;
    s->was_served = false;
    if (s->first_waiting > 0 && s->n_waiting == s->cap_waiting) {
        s->n_waiting -= s->first_waiting;
        memmove(s->waiting, s->waiting + s->first_waiting,
                (size_t)s->n_waiting * sizeof *s->waiting);
        s->first_waiting = 0;
    }
    GROW(s->waiting, s->n_waiting, s->cap_waiting);
    s->waiting[s->n_waiting++] = *q;
}

static void refuse_old(struct world_service *s, double now_s)
{
    int n = 0;

    while (s->first_waiting + n < s->n_waiting &&
           now_s - s->waiting[s->first_waiting + n].at_s >= s->ask.latency_s)
        n++;
    if (n == 0)
        return;
    struct service_hour *h = hour_at(s, s->now_s);
    h->n_refused += n;
    book_unanswered(h, n);
    s->first_waiting += n;
    if (s->first_waiting == s->n_waiting)
        s->first_waiting = s->n_waiting = 0;
}

/* Everything before 't_s', which is at most the end of this hour. */
static void run_in_hour(struct world_service *s, double t_s)
{
    const struct llm_request *q;

    while ((q = next_arrival(s)) != NULL && q->at_s < t_s) {
        s->next_ahead++;
        s->n_arrived++;
        if (s->n_takers > 0)
            hand_over(s, q);
        else
            wait_for_replica(s, q);
    }
    refuse_old(s, t_s);
    for (int i = 0; i < s->n_replicas; i++)
        any_server_advance(&s->replicas[i].server, t_s);
}

void requests_hour_now(const struct world_service *s, int i, struct service_hour *out)
{
    *out = s->hours[i];
    if (i + s->first_hour != (int)floor(s->now_s / HOUR_S))
        return;
    for (int k = 0; k < s->n_replicas; k++) {
        struct service_replica r = s->replicas[k];    // booked, and forgotten

        book_replica(out, &r);
    }
}

void requests_run(struct world_service *s, double now_s)
{
    assert(now_s >= s->now_s);
    while (s->now_s < now_s) {
        const double hour_end_s = (floor(s->now_s / HOUR_S) + 1) * HOUR_S;
        const double t_s = fmin(now_s, hour_end_s);

        run_in_hour(s, t_s);
        for (int i = 0; i < s->n_replicas && t_s == hour_end_s; i++)
            book_replica(hour_at(s, s->now_s), &s->replicas[i]);
        hour_at(s, s->now_s);    // also one without requests
        s->now_s = t_s;
    }
}

void requests_end(struct world_service *s)
{
    s->is_ended = true;
    s->n_ahead = s->next_ahead = 0;
}

/* ---- replicas ---- */

static double weight_of(const struct service_replica *r, bool is_equal)
{
    return !r->takes ? 0 : is_equal ? 1 : r->weight;
}

/* The parts of the draws by weight; the last that takes requests also has what rounding leaves. */
static void route(struct world_service *s)
{
    double sum = 0, upto = 0;
    int last = -1;

    s->n_takers = 0;
    for (int i = 0; i < s->n_replicas; i++) {
        s->n_takers += s->replicas[i].takes;
        sum += weight_of(&s->replicas[i], false);
    }
    s->was_served |= s->n_takers > 0;
    for (int i = 0; i < s->n_replicas; i++) {
        const double weight = weight_of(&s->replicas[i], sum <= 0);

        upto += weight / (sum > 0 ? sum : fmax(s->n_takers, 1));
        s->replicas[i].route_end = (uint64_t)(fmin(upto, 1) * 0x1p53);
        last = weight > 0 ? i : last;
    }
    if (last >= 0)
        s->replicas[last].route_end = (uint64_t)1 << 53;
}

void requests_set_weights(struct world_service *s, const int *jobs, const double *weights, int n)
{
    for (int i = 0; i < s->n_replicas; i++)
        s->replicas[i].weight = 0;
    for (int i = 0; i < n; i++) {
        struct service_replica *r = requests_find(s, jobs[i]);

        if (r != NULL)
            r->weight = fmax(weights[i], 0);
    }
    route(s);
}

struct service_replica *requests_find(struct world_service *s, int job)
{
    for (int i = 0; i < s->n_replicas; i++)
        if (s->replicas[i].job == job)
            return &s->replicas[i];
    return NULL;
}

void requests_ready(struct world_service *s, int job, const struct batch_time *figures)
{
    const bool has_waiting = s->first_waiting < s->n_waiting;
    const struct server_terms terms = { s->ask.latency_s, s->ask.tpot_s, s->ask.max_batch };
    const struct server_times times = times_of(figures, 1);
    struct service_replica *r;

    GROW(s->replicas, s->n_replicas, s->cap_replicas);
    r = &s->replicas[s->n_replicas++];
    *r = (struct service_replica){ .job = job, .takes = true, .told_s = s->now_s };
    any_server_init(&r->server, &terms, &times,
                    has_waiting ? s->waiting[s->first_waiting].at_s : s->now_s, s->now_s);
    r->counts = heap_array(SERVED_BINS_MAX, sizeof *r->counts);
    requests_set_figures(r, figures);
    route(s);
    for (int i = s->first_waiting; i < s->n_waiting; i++)
        take(r, &s->waiting[i]);
    r->counts[0] = (unsigned)(s->n_waiting - s->first_waiting);    // it sees them now
    s->first_waiting = s->n_waiting = 0;
    any_server_advance(&r->server, s->now_s);
}

void requests_set_figures(struct service_replica *r, const struct batch_time *figures)
{
    const struct server_times times = times_of(figures, 1);

    r->figures = *figures;
    any_server_set_times(&r->server, &times);
}

void requests_drain(struct world_service *s, struct service_replica *r)
{
    r->takes = false;
    any_server_drain(&r->server);
    route(s);
}

double requests_done_s(const struct service_replica *r)
{
    const struct server_times times = times_of(&r->figures, 1);

    return any_server_done_s(&r->server, &times, r->figures.tail);
}

int requests_lose(struct world_service *s, struct service_replica *r)
{
    struct service_hour *h = hour_at(s, s->now_s);
    const int n = any_server_abandon(&r->server);

    book_replica(h, r);
    h->n_lost += n;
    book_unanswered(h, n);
    s->n_interruptions += n > 0;
    s->was_served &= n == 0;    // whoever finds nobody now is of the same one
    any_server_release(&r->server);
    free(r->counts);
    s->n_replicas--;
    memmove(r, r + 1, (size_t)(s->replicas + s->n_replicas - r) * sizeof *r);
    route(s);
    return n;
}

/* ---- telling ---- */

static int bins_now(const struct world_service *s, const struct service_replica *r)
{
    return (int)fmin(ceil((s->now_s - r->told_s) / s->bin_s), SERVED_BINS_MAX);
}

void requests_tell(const struct world_service *s, const struct service_replica *r,
                   struct served *out)
{
    const struct server_sums b = any_server_sums(&r->server);

    *out = (struct served){
        .is_ready = r->takes,
        .from_s = r->told_s,
        .to_s = s->now_s,
        .bin_s = s->bin_s,
        .n_bins = bins_now(s, r),
        .counts = r->counts,
        .n_requests = b.n_served - r->told_served,
        .n_late = b.n_late - r->told_late,
        .n_batches = b.n_batches - r->told_batches,
        .busy_s = b.busy_s - r->told_busy_s,
        .n_queued = b.n_open,
        .has_lengths = r->server.is_llm,
        .lengths = r->lengths,
    };
}

void requests_told(const struct world_service *s, struct service_replica *r)
{
    const struct server_sums b = any_server_sums(&r->server);

    memset(r->counts, 0, (size_t)bins_now(s, r) * sizeof *r->counts);
    r->lengths = (struct lengths){ 0 };
    r->told_s = s->now_s;
    r->told_served = b.n_served;
    r->told_late = b.n_late;
    r->told_batches = b.n_batches;
    r->told_busy_s = b.busy_s;
}
