#include "act/driver/breaker.h"

#include <assert.h>
#include <math.h>

void breaker_init(struct breaker *b)
{
    *b = (struct breaker){ .pause_s = BREAKER_PAUSE_MIN_S, .closed_at_s = (double)-INFINITY };
}

bool breaker_failed(struct breaker *b, double now_s)
{
    const bool was_open = b->is_open;

    if (was_open || now_s - b->closed_at_s < BREAKER_STEADY_S)
        b->pause_s = fmin(2 * b->pause_s, BREAKER_PAUSE_MAX_S);
    else
        b->pause_s = BREAKER_PAUSE_MIN_S;
    b->is_open = true;
    b->probe_at_s = now_s + b->pause_s;
    return !was_open;
}

bool breaker_succeeded(struct breaker *b, double now_s)
{
    if (!b->is_open)
        return false;
    b->is_open = false;
    b->closed_at_s = now_s;
    return true;
}

bool breaker_wants_probe(const struct breaker *b, double now_s)
{
    return b->is_open && now_s >= b->probe_at_s;
}

void rate_bucket_init(struct rate_bucket *b, double rate, double burst, double now_s)
{
    assert(rate > 0 && burst >= 1);
    *b = (struct rate_bucket){ rate, burst, burst, now_s };
}

static void fill(struct rate_bucket *b, double now_s)
{
    if (now_s > b->at_s)
        b->level = fmin(b->burst, b->level + (now_s - b->at_s) * b->rate);
    b->at_s = fmax(b->at_s, now_s);
}

bool rate_bucket_take(struct rate_bucket *b, double now_s)
{
    fill(b, now_s);
    if (b->level < 1 - 1e-9)
        return false;
    b->level -= 1;
    return true;
}

double rate_bucket_wait_s(struct rate_bucket *b, double now_s)
{
    fill(b, now_s);
    return b->level >= 1 - 1e-9 ? 0 : (1 - b->level) / b->rate;
}
