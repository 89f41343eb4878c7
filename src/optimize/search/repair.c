#include "optimize/search/search.h"

#include "base/arena.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/search/assignment.h"

struct repair {
    const struct problem *p;
    struct assignment *assignment;
    struct plan_job *wanted;    // (n_jobs)
    const bool *is_left;        // (n_jobs)
    bool *changes;              // (n_jobs) it is to get, change or lose its place
};

static int setting_of(const struct problem *p, int gpu, int limit_w)
{
    return problem_setting(&p->types[p->gpus[gpu].type], limit_w);
}

static void leave_as_it_is(struct repair *r, int job)
{
    const struct problem_job *j = &r->p->jobs[job];
    struct plan_job *to = &r->wanted[job];

    r->changes[job] = false;
    *to = (struct plan_job){ .n_gpus = j->n_present, .gpus = j->present };
    if (j->n_present > 0)
        to->limit_w = r->p->types[r->p->gpus[j->present[0]].type].limits[j->present_limit].limit_w;
}

/* From where everybody is to where they are wanted; false: one who runs cannot have its place, and
 * stays: then its GPUs are taken, and all begin anew.
 */
static bool move_all(struct repair *r)
{
    const struct problem *p = r->p;

    for (int j = 0; j < p->n_jobs; j++)
        if (r->changes[j] && p->jobs[j].n_present > 0 && !assignment_take(r->assignment, j)) {
            leave_as_it_is(r, j);
            return false;
        }
    for (int j = 0; j < p->n_jobs; j++) {
        const struct plan_job *to = &r->wanted[j];
        if (!r->changes[j] || to->n_gpus == 0 ||
            assignment_put(r->assignment, j, to->gpus, to->n_gpus,
                           setting_of(p, to->gpus[0], to->limit_w)))
            continue;
        leave_as_it_is(r, j);
        if (p->jobs[j].n_present > 0)
            return false;
    }
    return true;
}

/* The limit that all on a GPU want, or one who is left alone; -1: they want different ones. */
static int wanted_setting(const struct repair *r, int gpu)
{
    const struct assignment_gpu *at = &r->assignment->gpus[gpu];
    bool agree = at->n_jobs > 0;

    for (int i = 0; i < at->n_jobs; i++) {
        if (r->is_left[at->jobs[i]])
            return setting_of(r->p, gpu, r->wanted[at->jobs[i]].limit_w);
        agree &= r->wanted[at->jobs[i]].limit_w == r->wanted[at->jobs[0]].limit_w;
    }
    return agree ? setting_of(r->p, gpu, r->wanted[at->jobs[0]].limit_w) : -1;
}

/* As far as the caps allow it. */
static void set_limits(struct repair *r)
{
    for (int g = 0; g < r->p->n_gpus; g++) {
        const struct assignment_gpu *at = &r->assignment->gpus[g];
        int setting = wanted_setting(r, g);
        if (setting >= 0 && setting != at->limit)
            assignment_set_limit(r->assignment, g, setting);
    }
}

void plan_repair(struct arena *a, const struct problem *p, struct plan_job *wanted,
                 const bool *is_left, struct plan *out)
{
    struct repair r = { .p = p, .wanted = wanted, .is_left = is_left };

    r.changes = ARENA_ARRAY(a, bool, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *job = &p->jobs[j];
        r.changes[j] = job->name && !problem_is_at(job, wanted[j].gpus, wanted[j].n_gpus);
        if (r.changes[j] && job->is_fixed)
            leave_as_it_is(&r, j);
    }
    for (bool is_done = false; !is_done;) {
        assignment_destroy(r.assignment);
        r.assignment = assignment_create(p);
        assignment_lay_present(r.assignment);
        is_done = move_all(&r);
    }
    set_limits(&r);
    assignment_plan(r.assignment, a, out);
    assignment_destroy(r.assignment);
}
