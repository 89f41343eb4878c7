/* optimize.h - what the parts of `gogh bench optimize` share.
 *
 * Each part makes its instances from seeds, plans them in child processes, and gives back JSON;
 * optimize.c prints it, as it is or as tables. Used by optimize.c,
 * events.c and references.c, and by nobody else.
 */
#ifndef BENCH_OPTIMIZE_H
#define BENCH_OPTIMIZE_H

#include <stdbool.h>

#include "base/text/json.h"
#include "base/text/text.h"

struct err;
struct optimize_options;
struct problem;

/* What planning an instance gave. Costs include problem_base_w. */
struct bench_plan {
    double cost_w, bound_w;
    double seconds;
    bool is_proven;
    double more_bytes;    // most memory at a time, beyond the instance
};

/* Plan in a child process, which sees nothing of what was planned before. */
int bench_plan(const struct problem *p, const struct optimize_options *how, struct bench_plan *out,
               struct err *e);

/* How far 'cost_w' is above 'than_w', in percent of that. */
double bench_above(double cost_w, double than_w);

/* Tell on stderr how far we are. */
void bench_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Is 'name' in the list, or is there no list? */
bool bench_wants(const char *list, const char *name);

/* Decisions one after the other while the cluster changes: one object, appended to 'list'. 'scale':
 * sizes are divided by it.
 */
int bench_events(int seeds, int scale, json_t *list, struct err *e);

/* What others do, beside us on the same instances: appended to 'list', one object each. 'rows' as
 * in bench_optimize; "references" means all of them.
 */
bool bench_references_know(struct slice name);
int bench_references(const char *rows, json_t *list, struct err *e);

#endif
