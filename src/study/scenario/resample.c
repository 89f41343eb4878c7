#include "study/scenario/resample.h"

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

static void draw_jobs(struct arena *a, const struct trace *t, double period_s, const int *blocks,
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
            ARENA_GROW(a, out->jobs, out->n_jobs, cap);
            out->jobs[out->n_jobs++] = j;
        }
    trace_sort(a, out);    // a rounded sum may be a bit before the end of the block before
}

void resample_jobs(struct arena *a, const struct trace *t, double period_s, const int *blocks,
                   int n_blocks, struct trace *out)
{
    draw_jobs(a, t, period_s, blocks, n_blocks, out);
    for (int i = 0; i < out->n_jobs; i++)
        out->jobs[i].duration_s = fmin(out->jobs[i].duration_s, period_s);
}

/* Of jobs that all come at once. */
#define AT_ONCE_S 1.0

/* From 0 to a mean time between two arrivals after the last. */
static double arrival_period_s(const struct trace *t)
{
    const double last_s = t->n_jobs > 0 ? t->jobs[t->n_jobs - 1].at_s : 0;

    return last_s > 0 ? last_s * t->n_jobs / fmax(t->n_jobs - 1, 1) : AT_ONCE_S;
}

/* Periods that are drawn besides those that are needed: blocks of one are then drawn almost as if
 * each were put back.
 */
#define DRAWS_MORE 20

void resample_count(struct arena *a, const struct trace *t, uint64_t seed, int n_jobs,
                    struct trace *out)
{
    const double period_s = arrival_period_s(t);
    const int n_blocks = resample_n_blocks(period_s);
    const int *blocks = resample_draw(a, seed, n_jobs / t->n_jobs + DRAWS_MORE, n_blocks);
    struct trace one;

    *out =
        (struct trace){ .name = t->name, .jobs = ARENA_ARRAY(a, struct trace_job, (size_t)n_jobs) };
    for (int p = 0; out->n_jobs < n_jobs; p++) {
        draw_jobs(a, t, period_s, blocks + (size_t)p * (size_t)n_blocks, n_blocks, &one);
        for (int i = 0; i < one.n_jobs && out->n_jobs < n_jobs; i++) {
            struct trace_job j = one.jobs[i];

            j.at_s += p * period_s;
            j.name = arena_printf(a, "%d.%s", p, j.name);
            out->jobs[out->n_jobs++] = j;
        }
    }
}
