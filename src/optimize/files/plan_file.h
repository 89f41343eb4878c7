/* plan_file.h - answers as JSON files, in and out (docs/formats/plan.md).
 *
 * Called by: `gogh optimize`, tests. A plan file names jobs by name and GPUs by their place in the
 * problem, so it means something only beside its problem.
 */
#ifndef OPTIMIZE_FILES_ANSWER_FILE_H
#define OPTIMIZE_FILES_ANSWER_FILE_H

#include <stddef.h>

struct arena;
struct buf;
struct err;
struct plan;
struct problem;

/* What a plan says about itself, beside who is where. Costs are as a file shows them: with
 * problem_base_w.
 */
struct plan_claims {
    const char *made_by;    // NULL: not said
    const char *status;     // "optimal", "feasible"; NULL: not said
    double objective_w;     // NAN: not said
    double bound_w;         // NAN: not said
};

/* Append the answer as JSON; the objective is the answer's own. 0, or -ENOSPC past the buffer's
 * ceiling.
 */
int plan_write(const struct problem *p, const struct plan *x, const struct plan_claims *c,
               struct buf *out, struct err *e);

/* Read who is where, and price it (plan_price). The result is not yet judged: plan_check
 * does that. 0, or -EINVAL and the like naming file, place and cure.
 */
int plan_read(struct arena *a, const struct problem *p, const char *path, struct plan *out,
              struct plan_claims *c, struct err *e);
int plan_parse(struct arena *a, const struct problem *p, const char *name, const char *text,
               size_t len, struct plan *out, struct plan_claims *c, struct err *e);

#endif
