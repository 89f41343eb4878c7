/* made_results.h - a results of figures that nobody measured, for tests of the report.
 *
 * Plausible and the same each time: every figure is a formula of the run's key.
 */
#ifndef TESTS_UNIT_STUDY_MADE_RESULTS_H
#define TESTS_UNIT_STUDY_MADE_RESULTS_H

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "study/results.h"

#define MADE_SLICES 130
#define MADE_HOURS 60.0

/* Joules per unit of work that a policy is said to take. */
static inline double made_energy(const struct study_run *k)
{
    static const struct {
        const char *policy;
        double joules;
    } table[] = {
        { "fifo-random", 230 }, { "fifo-fastest", 150 }, { "fifo-promise", 140 }, { "pack", 138 },
        { "gavel", 128 },       { "eaco", 136 },         { "watts", 145 },        { "gogh", 125 },
        { "gogh-oracle", 120 }, { "bound", 114 },
    };
    double joules = 100;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].policy, k->policy) == 0)
            joules = table[i].joules;
    if (strcmp(k->scenario->name, "no-k80") == 0 && strcmp(k->policy, "gogh") == 0)
        joules *= 1.06;    // here gogh loses to gavel
    if (k->without[0] != '\0')
        joules *= 1 + 0.05 * (double)(strlen(k->without) - 4);
    return joules * (k->has_limits ? 0.84 : 1) * (k->has_sleep ? 1 : 1.5) * (1.1 - 0.2 * k->load) *
           (k->knows == KNOWS_NOTHING ? 1.02 : 1);
}

static inline void made_types(struct arena *a, struct study_result *r)
{
    static const char *const names[] = { "k80", "p100", "v100" };

    r->n_types = 3;
    r->types = ARENA_ARRAY(a, struct study_type, 3);
    for (int i = 0; i < 3; i++)
        r->types[i] = (struct study_type){ names[i], 12, 100 + 200 * i, 10 + 20 * i };
}

static inline void made_slices(struct arena *a, const struct study_run *k, struct rng *rng,
                               struct study_result *r)
{
    const double start = k->knows == KNOWS_NOTHING ? 0.5 : 0.2;

    r->n_slices = MADE_SLICES;
    r->slices = ARENA_ARRAY(a, struct study_slice, MADE_SLICES);
    for (int i = 0; i < MADE_SLICES; i++) {
        const double part = (i + 1) / 100.0,
                     load = i < 100 ? k->load : k->load * (1.3 - part) / 0.3;
        const double wave = 1 + 0.2 * sin(i / 7.0) + 0.1 * (rng_uniform(rng) - 0.5);

        r->slices[i] = (struct study_slice){
            .time_s = part * MADE_HOURS * 3600,
            .watts = 36 * 10 + 30 * made_energy(k) * load * wave,
            .work_per_s = 30 * load,
            .error = i == 3 ? (double)NAN
                            : 0.06 + start * exp(-i / 15.0) * (0.8 + 0.4 * rng_uniform(rng)),
            .measurements = 3 + (long)(25 * (i < 100 ? i : 100) * k->load),
            .attainment = i < 100 ? 0.93 + 0.07 * rng_uniform(rng) : (double)NAN,
            .waiting = i % 5,
        };
    }
}

/* Two jobs share where the policy is gogh; one a GPU otherwise. */
static inline void made_stays(struct arena *a, const struct study_run *k, struct rng *rng,
                              struct study_result *r)
{
    const bool is_ours = strcmp(k->policy, "gogh") == 0;

    r->intervals_from_s = 27 * 3600;
    r->intervals_to_s = 33 * 3600;
    r->intervals = ARENA_ARRAY(a, struct study_interval, 36 * 32);
    for (int g = 0; g < 36; g++)
        for (int row = 0; row < (is_ours && g % 3 != 0 ? 2 : 1); row++)
            for (double t = r->intervals_from_s; t < r->intervals_to_s;) {
                const double end = t + 600 + 7200 * rng_uniform(rng);

                r->intervals[r->n_intervals] = (struct study_interval){
                    .gpu = g,
                    .job = r->n_intervals * 7 % 100,
                    .limit_w = k->has_limits && g % 2 == 0 ? 140 : 0,
                    .from_s = t,
                    .to_s = fmin(end, r->intervals_to_s),
                };
                r->n_intervals++;
                t = end + 1800 * rng_uniform(rng);
            }
}

static inline struct study_result made_result(struct arena *a, const struct study_run *k)
{
    const double nan = (double)NAN, joules = made_energy(k);
    struct study_result r = { .energy_kwh = nan,
                              .promise_attainment = nan,
                              .mean_jct_s = nan,
                              .p95_jct_s = nan,
                              .mean_queue_s = nan };
    struct rng rng;

    rng_init(&rng, (uint64_t)k->seed, "made");
    r.energy_j_per_work = joules * (1 + 0.04 * (rng_uniform(&rng) - 0.5));
    r.allocation_efficiency = 100 / joules;
    made_types(a, &r);
    if (strcmp(k->policy, "bound") == 0)
        return r;
    rng_init(&rng, (uint64_t)k->seed, study_run_name(a, k));
    r.energy_j_per_work *= 1 + 0.01 * (rng_uniform(&rng) - 0.5);
    r.energy_kwh = joules;
    r.promise_attainment = 0.995 - 0.02 * k->load -
                           (strncmp(k->policy, "fifo-r", 6) == 0 ? 0.2 : 0) -
                           0.01 * rng_uniform(&rng);
    r.mean_jct_s = 9000 + 10 * joules;
    r.p95_jct_s = 3 * r.mean_jct_s;
    r.mean_queue_s = 300 * k->load;
    r.makespan_s = 1.3 * MADE_HOURS * 3600;
    r.moves = strncmp(k->policy, "fifo", 4) == 0 ? 0 : 1234 + k->seed;
    r.jobs = r.finished = 1000;
    r.prediction_error = 0.11;
    r.coverage90 = 0.88;
    r.first_100_attainment = 0.96;
    r.next_attainment = 0.985;
    r.effective_delay_w = k->delay_w != NULL ? *k->delay_w : 65;
    made_slices(a, k, &rng, &r);
    if (k->seed == SCENARIO_FIRST_SEED)
        made_stays(a, k, &rng, &r);
    return r;
}

/* All runs of the scenarios named, NULL at the end, with 'n_seeds' seeds (0: as usual). */
static inline struct results made_results(struct arena *a, const char *const *names, int n_seeds)
{
    struct results b = { .dir = ".", .version = "0.0", .digest = "0123456789abcdef" };

    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1)
            b.rows = ARENA_ARRAY(a, struct results_row, (size_t)b.n_rows);
        b.n_rows = 0;
        for (const char *const *name = names; *name != NULL; name++) {
            struct study_run *keys;
            const int n = scenario_runs(a, scenario_by_name(*name), n_seeds, &keys);

            for (int i = 0; i < n; i++, b.n_rows++)
                if (pass == 1)
                    b.rows[b.n_rows] =
                        (struct results_row){ .key = keys[i], .result = made_result(a, &keys[i]) };
        }
    }
    return b;
}

#endif
