#include "serve/any_server.h"

#include <math.h>

void any_server_init(struct any_server *s, const struct server_terms *terms,
                     const struct server_times *t, double now_s, double free_s)
{
    s->is_llm = terms->tpot_s > 0;
    if (s->is_llm) {
        continuous_server_init(&s->continuous, t->t0_s, t->a_s, t->c_s, terms->max_batch,
                               terms->latency_s, terms->tpot_s, now_s);
        s->continuous.free_s = free_s;
        return;
    }
    batch_server_init(&s->batch, t->t0_s, t->a_s, terms->max_batch, terms->latency_s, now_s);
    s->batch.free_s = free_s;
}

void any_server_release(struct any_server *s)
{
    if (s->is_llm)
        continuous_server_release(&s->continuous);
    else
        batch_server_release(&s->batch);
}

void any_server_set_times(struct any_server *s, const struct server_times *t)
{
    if (s->is_llm) {
        s->continuous.t0_s = t->t0_s;
        s->continuous.a_s = t->a_s;
        s->continuous.c_s = t->c_s;
        return;
    }
    s->batch.t0_s = t->t0_s;
    s->batch.a_s = t->a_s;
}

void any_server_advance(struct any_server *s, double now_s)
{
    if (s->is_llm)
        continuous_server_advance(&s->continuous, now_s);
    else
        batch_server_advance(&s->batch, now_s);
}

bool any_server_arrive(struct any_server *s, const struct llm_request *r)
{
    return s->is_llm ? continuous_server_arrive(&s->continuous, r)
                     : batch_server_arrive(&s->batch, r->at_s);
}

void any_server_drain(struct any_server *s)
{
    if (s->is_llm)
        s->continuous.is_draining = true;
    else
        s->batch.is_draining = true;
}

int any_server_abandon(struct any_server *s)
{
    double *n_late = s->is_llm ? &s->continuous.n_late : &s->batch.n_late;
    const double late = *n_late;
    const int n =
        s->is_llm ? continuous_server_abandon(&s->continuous) : batch_server_abandon(&s->batch);

    *n_late = late;
    return n;
}

double any_server_done_s(const struct any_server *s, const struct server_times *t, double longest)
{
    const struct batch_server *b = &s->batch;

    if (s->is_llm)
        return continuous_server_look_s(&s->continuous);
    double done_s = b->n_batch > 0 ? b->batch_end_s : b->now_s;
    for (int n = b->n_queue - b->n_batch; n > 0; n -= b->max_batch)
        done_s += longest * (t->t0_s + t->a_s * fmin(n, b->max_batch));
    return done_s;
}

struct server_sums any_server_sums(const struct any_server *s)
{
    const struct continuous_server *c = &s->continuous;
    const struct batch_server *b = &s->batch;

    if (s->is_llm)
        return (struct server_sums){ .n_served = c->n_served,
                                     .n_late = c->n_late,
                                     .n_refused = c->n_refused,
                                     .n_batches = NAN,
                                     .busy_s = c->busy_s,
                                     .n_open = c->n_queue + c->n_runs };
    return (struct server_sums){ .n_served = b->n_served,
                                 .n_late = b->n_late,
                                 .n_refused = b->n_refused,
                                 .n_batches = b->n_batches,
                                 .busy_s = b->busy_s,
                                 .n_open = b->n_queue };
}

struct latencies *any_server_latencies(struct any_server *s)
{
    return s->is_llm ? &s->continuous.ttft : &s->batch.latencies;
}
