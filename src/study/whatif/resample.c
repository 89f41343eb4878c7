#include "study/whatif/resample.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"

#define DAY_S 86400.0
#define BLOCKS_MAX 1000

int resample_n_blocks(double period_s)
{
    return (int)fmin(fmax(floor(period_s / DAY_S), RESAMPLE_BLOCKS), BLOCKS_MAX);
}

int *resample_draw(struct arena *a, uint64_t seed, int n_draws, int n_blocks)
{
    const int n = n_draws * n_blocks;
    int *drawn = ARENA_ARRAY(a, int, (size_t)n);
    struct rng r;

    rng_init(&r, seed, "whatif blocks");
    for (int i = 0; i < n; i++)
        drawn[i] = i % n_blocks;
    for (int i = n - 1; i > 0; i--) {
        int other = (int)rng_below(&r, (uint64_t)i + 1), one = drawn[i];

        drawn[i] = drawn[other];
        drawn[other] = one;
    }
    return drawn;
}

static int block_of(const struct trace_job *j, double block_s, int n_blocks)
{
    return (int)fmin(floor(j->at_s / block_s), n_blocks - 1);
}

void resample_jobs(struct arena *a, const struct trace *t, double period_s, const int *blocks,
                   int n_blocks, struct trace *out)
{
    const double block_s = period_s / n_blocks;
    int cap = t->n_jobs;

    *out = (struct trace){ .name = t->name,
                           .jobs = ARENA_ARRAY(a, struct trace_job, (size_t)t->n_jobs) };
    for (int b = 0; b < n_blocks; b++)
        for (int i = 0; i < t->n_jobs; i++) {
            struct trace_job j = t->jobs[i];

            if (block_of(&j, block_s, n_blocks) != blocks[b])
                continue;
            j.at_s += (b - blocks[b]) * block_s;
            j.name = arena_printf(a, "%d.%d", b, i);
            j.duration_s = fmin(j.duration_s, period_s);
            ARENA_GROW(a, out->jobs, out->n_jobs, cap);
            out->jobs[out->n_jobs++] = j;
        }
    trace_sort(a, out);    // a rounded sum may be a bit before the end of the block before
}
