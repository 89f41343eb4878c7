/* optimize.h - a problem in, the best answer that the budget allows out, with its bound.
 *
 *     problem -> prices -> class program -> rounding -> search -> (exact) -> judged answer
 *                  |                                                  |
 *                  '-> certificate: the bound ------------------------'
 *
 * Called by: the solver "gogh", `gogh optimize`, problem_make (for what runs
 * already), and benches. Keeps nothing between calls. With a budget of nodes, the same problem,
 * seed and budget give the same answer, byte for byte, on any number of threads; with a budget of
 * seconds they need not.
 */
#ifndef OPTIMIZE_OPTIMIZE_H
#define OPTIMIZE_OPTIMIZE_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct clock;
struct err;
struct kept_prices;
struct plan;
struct prices;
struct problem;

/* Goes on from an answer until it is proven or time is up, as exact_run (exact.h) does. */
typedef int optimize_exact_f(struct arena *a, const struct problem *p, const struct plan *start,
                             double time_s, struct plan *out, struct err *e);

enum optimize_method {
    METHOD_AUTO,        // fast; then exact where the problem is small enough and time is left
    METHOD_FAST,        // class program, rounding, search
    METHOD_STANDING,    // from the present allocation, by kept prices; as FAST where none are kept
    METHOD_EXACT,       // as far as proven, whatever the size
};

struct optimize_options {
    enum optimize_method method;
    double time_s;    // at most about this long; 0: as long as the nodes take
    long nodes;       // search steps; 0: as many as suit the problem's size
    int threads;      // 1 or 2; 0: 2
    uint64_t seed;
    struct kept_prices *kept;     // STANDING: filled by the first plan, read by the next; else NULL
    optimize_exact_f *exact;      // NULL: nothing is proven; a daemon has none, and so no CBC
    const struct clock *clock;    // NULL: the machine's; only for time_s and the report's seconds
};

/* 'auto', no limit but the nodes, seed 1. */
extern const struct optimize_options optimize_defaults;

enum optimize_status {
    STATUS_FEASIBLE,
    STATUS_OPTIMAL,    // proven: the bound meets the cost within 1e-6 of it
};

struct optimize_report {
    const char *method;    // "fast", "standing", "exact", "greedy"
    enum optimize_status status;
    double cost_w;        // the answer's, with problem_base_w
    double bound_w;       // no answer costs less; likewise
    double lp_bound_w;    // the certificate's alone
    double seconds;       // in all
    double lp_s, round_s, search_s, exact_s;
    long nodes;    // search steps done
    int lp_rows, lp_columns, lp_rounds;
};

/* Plan. The answer has been through
 * plan_check. 0, or -EINVAL when the problem is none (problem_check).
 */
int optimize_run(struct arena *a, const struct problem *p, const struct optimize_options *o,
                 struct plan *out, struct optimize_report *report, struct err *e);

#endif
