/* inner.h - the results as the report reads it: scenarios of groups. For report*.c alone.
 *
 * A scenario is a scenario; a group, the runs that differ only in their seed. Everything lives in
 * the report's arena.
 */
#ifndef STUDY_REPORT_INNER_H
#define STUDY_REPORT_INNER_H

#include "study/results.h"
#include "study/plot/plot.h"
#include "study/plot/markup.h"
#include "study/spread.h"

/* Percent or points that do not show with one decimal: called the same. */
#define REPORT_LEVEL 0.05

struct run_group {
    struct study_run key;    // of its first run; but for the seed, of all
    int n;
    const struct results_row **rows;    // (n) one a seed
};

struct scenario_results {
    const struct scenario *scenario;
    int n_groups;
    struct run_group *groups;    // in the results's order
    int n_loads;
    double *loads;
    int n_knows;
    enum knowledge *knows;    // of groups that are no oracle's
    int n_types;
    const char **types;    // names, as the first run has them
    struct cluster cluster;
    bool has_cluster;                     // the scenario has its text
    const double *delay_w, *promise_w;    // prices that stand for all that were tried (below)
};

struct report {
    struct arena *a;
    struct buf *out;
    const struct results *results;
    int n_scenarios;
    struct scenario_results *scenarios;
};

void report_sort(struct report *r);    // fills the scenarios

/* Whoever is compared has the same prices: the cluster's own or, where these were not tried, the
 * middle one of those that were. Has the run them, as far as it minds?
 */
bool scenario_shows(const struct scenario_results *s, const struct study_run *k);

/* ", with a second of a job's time at 60 J"; nothing where they are the cluster's own. */
void report_put_prices(struct report *r, const struct scenario_results *s);

/* A group as it is asked for, at the prices that are shown. 'knows' -1: any. Where it is given and
 * no such group is there, an oracle's or the first of that policy is taken. NULL: none.
 */
struct group_query {
    double load;
    const char *policy;
    bool has_limits;
    const char *without;
    int knows;
};
const struct run_group *scenario_group(const struct scenario_results *s, struct group_query w);

/* The most seeds that any of its groups has. */
int scenario_seeds(const struct scenario_results *s);
int report_seeds(const struct report *r);

/* One footing for all who are shown together: with power limits where gogh and somebody else have
 * runs with them at that load, or nobody has runs without; else without.
 */
bool scenario_footing(const struct scenario_results *s, double load);

/* Figures of a run, as they are shown; none is below 0, a share not above 100. */
enum report_figure {
    REPORT_ENERGY,    // J per unit of work
    REPORT_KWH,
    REPORT_ATTAINMENT,    // percent, as all shares
    REPORT_JCT_H,
    REPORT_JCT95_H,
    REPORT_QUEUE_MIN,
    REPORT_EFFICIENCY,
    REPORT_FIRST,    // promises kept of jobs 1 to 100, and of those after them
    REPORT_NEXT,
    REPORT_ERROR,    // of predictions
    REPORT_COVERAGE,
    REPORT_MOVES,
    REPORT_MOVES_PER_JOB,
};
struct spread group_spread(const struct report *r, const struct run_group *c, enum report_figure f);

/* Jobs of all seeds that did not finish; of a bound, which runs nobody, none. */
struct unfinished {
    int n, jobs, failed;
};
struct unfinished group_unfinished(const struct run_group *c);
void report_put_unfinished(struct report *r, const struct scenario_results *s,
                           const struct run_group *c);

/* By seed, over the seeds that both have: percent that 'ours' is above 'theirs', and the plain
 * difference.
 */
struct spread group_change(const struct report *r, const struct run_group *ours,
                           const struct run_group *theirs, enum report_figure f);
struct spread group_difference(const struct report *r, const struct run_group *ours,
                               const struct run_group *theirs, enum report_figure f);

/* "gogh", "gogh at 60 W": with what else tells a group from others of its scenario. */
const char *report_group_title(const struct report *r, const struct scenario_results *s,
                               const struct study_run *k);

/* "load 0.6", "the trace as it is". */
const char *load_title(struct arena *a, double load);

/* What runs begin with, for a column or a legend. */
const char *knowledge_title(enum knowledge k);

/* Has a part of the page something to show of the scenario? */
typedef bool report_has_f(const struct report *r, const struct scenario_results *s);

/* Looks and words of the page: style.c, text.c. */
void report_style(struct report *r);
void report_assumptions(struct report *r);
void report_scenario_assumptions(struct report *r, const struct scenario_results *s);
void report_definitions(struct report *r);
void report_command(struct report *r);

/* The command that makes a figure: of one load, or (load below 0) of the scenario. */
void report_put_command(struct report *r, const struct scenario_results *s, double load);

/* finding.c: the first sentence. */
void report_finding(struct report *r);

/* front.c: energy against time. */
report_has_f report_has_front;
void report_front(struct report *r);

/* summary.c: gogh against everybody else. */
report_has_f report_has_summary;
void report_summary(struct report *r);

/* tables.c: every figure; figures.c: bars. */
void report_policies(struct report *r, const struct scenario_results *s);
void report_bars(struct report *r, const struct scenario_results *s);

/* levers.c */
report_has_f report_has_levers;
void report_levers(struct report *r);

/* times.c: curves; knowledge.c: the table below those of learning. */
report_has_f report_has_times;
void report_times(struct report *r);
report_has_f report_has_learning;
void report_learning(struct report *r);
void report_knowledge(struct report *r);

/* gantt.c */
report_has_f report_has_gantt;
void report_gantt(struct report *r);

/* The label of an axis of shares, which says where the axis begins unless at 0 or 50. */
const char *report_axis_label(struct arena *a, const char *label, double low);

/* A series of bars with whiskers in the making; gaps where nothing was set. */
struct report_column {
    double *y, *low, *high;    // (n)
};
struct report_column report_column(struct arena *a, int n);
void report_column_set(struct report_column *c, int i, struct spread s);
struct plot_series report_column_series(const struct report_column *c, int n, const char *name);

/* A text as HTML. */
const char *html(const struct report *r, const char *text);

/* What is shown around a mean, small: " ±3" or, below it, "110..115"; nothing of one seed. */
void report_put_around(struct buf *out, struct spread s, int decimals);

/* What whiskers are, for a chart's description. */
const char *report_whiskers(const struct scenario_results *s);

/* A number and what is around it as a table's data; 'decimals' -1: as the mean needs. */
void report_put_spread(struct buf *out, struct spread s, int decimals);

/* The same with its sign, one decimal, and the unit (plain HTML) after it: "−12.3 % ±0.4". */
void report_put_signed(struct buf *out, struct spread s, const char *unit);
void report_put_sign(struct buf *out, double v);    // one decimal, '+' where it shows above 0

#endif
