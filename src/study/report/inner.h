/* report_inner.h - the book as the report reads it: sheets of lots. For report*.c alone.
 *
 * A sheet is a scenario; a lot, the runs that differ only in their seed. Everything lives in the
 * report's arena.
 */
#ifndef STUDY_REPORT_INNER_H
#define STUDY_REPORT_INNER_H

#include "study/results.h"
#include "study/plot/plot.h"
#include "study/plot/markup.h"
#include "study/spread.h"

/* Percent or points that do not show with one decimal: called the same. */
#define REPORT_LEVEL 0.05

struct lot {
    struct run_key key;    // of its first run; but for the seed, of all
    int n;
    const struct book_row **rows;    // (n) one a seed
};

struct sheet {
    const struct scenario *scenario;
    int n_lots;
    struct lot *lots;    // in the book's order
    int n_loads;
    double *loads;
    int n_knows;
    enum knowledge *knows;    // of lots that are no oracle's
    int n_types;
    const char **types;    // names, as the first run has them
    struct cluster cluster;
    bool has_cluster;    // the scenario has its text
};

struct report {
    struct arena *a;
    struct buf *out;
    const struct book *book;
    int n_sheets;
    struct sheet *sheets;
};

void report_sort(struct report *r);    // fills the sheets

bool is_oracle(const char *policy);

/* A lot as it is asked for. 'knows' -1: any. Where it is given and no such lot is there, an
 * oracle's or the first of that policy is taken. NULL: none.
 */
struct wanted {
    double load;
    const char *policy;
    bool has_limits;
    const char *without;
    int knows;
};
const struct lot *sheet_find(const struct sheet *s, struct wanted w);

/* The most seeds that any of its lots has. */
int sheet_seeds(const struct sheet *s);
int report_seeds(const struct report *r);

/* One footing for all who are shown together: with power limits where gogh and somebody else have
 * runs with them at that load, or nobody has runs without; else without.
 */
bool sheet_footing(const struct sheet *s, double load);

/* Figures of a run. */
typedef double figure_f(const struct run_result *r);
double figure_energy(const struct run_result *r);        // J per unit of work
double figure_attainment(const struct run_result *r);    // percent
double figure_jct_h(const struct run_result *r);
struct spread lot_spread(const struct report *r, const struct lot *c, figure_f *f);
struct spread lot_share(const struct report *r, const struct lot *c, figure_f *f);    // in 0..100

/* Jobs of all seeds that did not finish; of a bound, which runs nobody, none. */
struct undone {
    int n, jobs, failed;
};
struct undone lot_undone(const struct lot *c);
void report_put_undone(struct report *r, const struct sheet *s, const struct lot *c);

/* By seed, over the seeds that both have: percent that 'ours' is above 'theirs', and the plain
 * difference.
 */
struct spread lot_change(const struct report *r, const struct lot *ours, const struct lot *theirs,
                         figure_f *f);
struct spread lot_difference(const struct report *r, const struct lot *ours,
                             const struct lot *theirs, figure_f *f);

/* "load 0.6", "the trace as it is". */
const char *load_title(struct arena *a, double load);

/* What runs begin with, for a column or a legend. */
const char *knowledge_title(enum knowledge k);

/* report.c */
bool report_has_sheets(const struct report *r);
void report_scenarios(struct report *r);

/* Looks and words of the page: report_style.c, report_text.c. */
void report_style(struct report *r);
void report_assumptions(struct report *r);
void report_scenario_assumptions(struct report *r, const struct sheet *s);
void report_definitions(struct report *r);
void report_command(struct report *r);

/* report_summary.c: gogh against everybody else. */
bool report_has_summary(const struct report *r);
void report_summary(struct report *r);

/* report_tables.c: every figure; report_figures.c: bars. */
void report_policies(struct report *r, const struct sheet *s);
void report_bars(struct report *r, const struct sheet *s);

/* report_levers.c */
bool report_has_levers(const struct report *r);
void report_levers(struct report *r);

/* report_times.c: curves; report_knowledge.c: the table below those of learning. */
bool report_has_times(const struct report *r);
void report_times(struct report *r);
bool report_has_learning(const struct report *r);
void report_learning(struct report *r);
void report_knowledge(struct report *r);

/* report_gantt.c */
bool report_has_gantt(const struct report *r);
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

/* What is shown around a mean, small: " ±3" or, below it, "110..115"; nothing of one seed. */
void report_put_around(struct buf *out, struct spread s, int decimals);

/* What whiskers are, for a chart's description. */
const char *report_whiskers(const struct sheet *s);

/* A number and what is around it as a table's data; 'decimals' -1: as the mean needs. */
void report_put_spread(struct buf *out, struct spread s, int decimals);

/* The same with its sign, one decimal, and the unit (plain HTML) after it: "−12.3 % ±0.4". */
void report_put_signed(struct buf *out, struct spread s, const char *unit);
void report_put_sign(struct buf *out, double v);    // one decimal, '+' where it shows above 0

#endif
