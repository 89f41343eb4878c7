#include "nn/stop.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void stop_init(struct stop *s, int n, int patience)
{
    assert(n > 0 && patience > 0);
    *s = (struct stop){
        .n = n,
        .patience = patience,
        .best_at = -1,
        .best = (double)INFINITY,
        .w = malloc((size_t)n * sizeof *s->w),
    };
    assert(s->w);    // out of memory: stop; restart replays the journal
}

void stop_release(struct stop *s)
{
    free(s->w);
    *s = (struct stop){ .best_at = -1, .best = (double)INFINITY };
}

bool stop_take(struct stop *s, double loss, const float *w)
{
    if (isfinite(loss) && loss < s->best) {
        s->best = loss;
        s->best_at = s->n_taken;
        memcpy(s->w, w, (size_t)s->n * sizeof *w);
    }
    s->n_taken++;
    return s->n_taken - 1 - s->best_at >= s->patience;
}

bool stop_best(const struct stop *s, float *w)
{
    if (s->best_at < 0)
        return false;
    memcpy(w, s->w, (size_t)s->n * sizeof *w);
    return true;
}
