/* planned.h - a world's plan in words, and judged. */
#ifndef TESTS_UNIT_OPTIMIZE_PLANNED_H
#define TESTS_UNIT_OPTIMIZE_PLANNED_H

#include <check.h>
#include <stdio.h>

#include "base/err.h"
#include "unit/support.h"

/* "a 0 1, b capacity": GPUs, or why not, in the snapshot's order. */
static inline void describe(const struct world *w, const struct plan *p, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (int j = 0; j < p->n_jobs; j++) {
        const struct plan_job *pj = &p->jobs[j];
        at += (size_t)snprintf(out + at, size - at, "%s%s", j ? ", " : "",
                               w->snapshot.jobs[j].spec->name);
        for (int i = 0; i < pj->n_gpus; i++)
            at += (size_t)snprintf(out + at, size - at, " %d", pj->gpus[i]);
        if (!pj->n_gpus)
            at += (size_t)snprintf(out + at, size - at, " %s", wait_reason_name(pj->reason));
    }
}

static inline void must_pass(struct world *w, const struct plan *p, const char *name)
{
    struct err e = { 0 };

    if (plan_check(&w->arena, &w->asked.problem, p, &e) < 0)
        ck_abort_msg("%s: %s", name, e.text);
}

#endif
