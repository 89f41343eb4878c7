/* table.c - what a study found, as lines on a terminal. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/words.h"
#include "cli/study/study.h"
#include "study/results.h"
#include "study/spread.h"

static void print_head(const struct study_run *k)
{
    printf("\n%s", k->scenario->name);
    if (k->load > 0)
        printf(", load %g", k->load);
    printf(": %s\n%-14s %-7s %-9s %-11s %7s %9s %8s %9s %8s %9s\n", k->scenario->title, "policy",
           "limits", "without", "knows", "price", "J/work", "", "promises", "JCT h", "kWh");
}

/* Mean and half-width over seeds of the figure that stands 'at' bytes into a result, times 'by'. */
static struct spread spread_rows(struct arena *a, const struct results_row *rows, int n, size_t at,
                                 double by)
{
    double *v = ARENA_ARRAY(a, double, (size_t)n);

    for (int i = 0; i < n; i++) {
        memcpy(&v[i], (const char *)&rows[i].result + at, sizeof v[i]);
        v[i] *= by;
    }
    return spread_of(v, n);
}

#define SPREAD(figure, by) spread_rows(a, rows, n, offsetof(struct study_result, figure), by)

/* "-" for what there is none of. */
static const char *shown(struct arena *a, const char *unit, double v)
{
    return isfinite(v) ? arena_printf(a, "%.2f%s", v, unit) : "-";
}

/* "60", and where promises were priced too "60/3000"; "-" is the cluster's own. */
static const char *prices(struct arena *a, const struct study_run *k)
{
    const char *delay = k->delay_w != NULL ? words_number(a, *k->delay_w) : "-";

    return k->promise_w != NULL ? arena_printf(a, "%s/%s", delay, words_number(a, *k->promise_w))
                                : delay;
}

/* Who has not finished is in no completion time. */
static const char *unfinished(struct arena *a, const struct results_row *rows, int n)
{
    int left = 0, jobs = 0;

    for (int i = 0; i < n; i++) {
        left += rows[i].result.jobs - rows[i].result.finished;
        jobs += rows[i].result.jobs;
    }
    if (left == 0 || strcmp(rows[0].key.policy, "bound") == 0)
        return "";
    return arena_printf(a, "  %d of %d jobs unfinished", left, jobs);
}

static void print_kind(struct arena *a, const struct results_row *rows, int n)
{
    const struct study_run *k = &rows[0].key;
    struct spread j = SPREAD(energy_j_per_work, 1);
    const char *half = isfinite(j.half) ? arena_printf(a, "± %6.2f", j.half) : "        ";

    printf("%-14s %-7s %-9s %-11s %7s %9s %s %9s %8s %9s%s\n", k->policy,
           k->has_limits ? "yes" : "no", k->without[0] != '\0' ? k->without : "-",
           knowledge_name(k->knows), prices(a, k), shown(a, "", j.mean), half,
           shown(a, " %", SPREAD(promise_attainment, 100).mean),
           shown(a, "", SPREAD(mean_jct_s, 1.0 / 3600).mean),
           shown(a, "", SPREAD(energy_kwh, 1).mean), unfinished(a, rows, n));
}

void study_print_table(struct arena *a, const struct results *b)
{
    for (int i = 0; i < b->n_rows;) {
        const struct study_run *k = &b->rows[i].key;
        int n = 1;

        while (i + n < b->n_rows && study_run_is_alike(k, &b->rows[i + n].key))
            n++;
        if (i == 0 || k->scenario != b->rows[i - 1].key.scenario ||
            k->load != b->rows[i - 1].key.load)
            print_head(k);
        print_kind(a, &b->rows[i], n);
        i += n;
    }
    printf("\nJ/work: joules a second of work alone on the reference GPU, in the steady window;\n"
           "mean over seeds and half of its 95 %% confidence interval. %s/report.html has more.\n",
           b->dir);
}
