#include "study/scenario/site.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/text/file.h"
#include "sim/history/history.h"
#include "sim/history/sacct.h"

#define SACCT_BYTES_MAX ((size_t)1 << 30)

/* As `gogh advise` has them unless one says otherwise. */
#define USUAL_WORKLOAD "ResNet-50"
#define USUAL_SHARDS 2
#define USUAL_TOLERANCE 1.1

/* ---- other jobs of the same kind ---- */

/* Blocks in a trace: long enough for queues to build up within one, and enough of them to differ
 * between seeds.
 */
#define BLOCKS 20

static double gap_before(const struct trace *t, int job)
{
    if (job > 0)
        return t->jobs[job].at_s - t->jobs[job - 1].at_s;
    return t->n_jobs > 1 ? (t->jobs[t->n_jobs - 1].at_s - t->jobs[0].at_s) / (t->n_jobs - 1) : 0;
}

void site_resample(struct arena *a, int seed, int n_jobs, struct trace *t)
{
    const int block = (t->n_jobs + BLOCKS - 1) / BLOCKS;
    struct trace_job *drawn = ARENA_ARRAY(a, struct trace_job, (size_t)n_jobs);
    double at_s = 0;
    struct rng r;
    int from = 0;

    rng_init(&r, (uint64_t)seed, "blocks of jobs");
    for (int i = 0; i < n_jobs; i++) {
        if (i % block == 0)
            from = (int)rng_below(&r, (uint64_t)t->n_jobs - (uint64_t)block + 1);
        const int job = from + i % block;

        at_s += i > 0 ? gap_before(t, job) : 0;
        drawn[i] = t->jobs[job];
        drawn[i].name = arena_printf(a, "%s.%d", t->jobs[job].name, i);
        drawn[i].at_s = at_s;
    }
    t->jobs = drawn;
    t->n_jobs = n_jobs;
}

/* ---- accounting ---- */

static int read_history(struct arena *a, const struct scenario *s, const struct cluster *cl,
                        struct history *out, struct err *e)
{
    struct history_options o = { .from_s = -INFINITY, .to_s = INFINITY, .shards = USUAL_SHARDS };
    const char *usual = s->workload != NULL ? s->workload : USUAL_WORKLOAD, *text;
    struct sacct *sacct = ARENA_NEW(a, struct sacct);
    size_t len;

    o.workload = history_workload(a, cl, usual, NAN);
    if (o.workload == NULL)
        return err_set(e, EINVAL,
                       "workload %s: neither built in ('gogh catalog models') nor described by a "
                       "'workload' line of the cluster",
                       usual);
    int rc = file_read(a, s->jobs_file, NULL, SACCT_BYTES_MAX, &text, &len, e);
    if (rc == 0)
        rc = sacct_parse(a, s->jobs_file, text, len, s->partition, sacct, e);
    if (rc == 0 && sacct->n_jobs == 0)
        return err_set(e, ENOENT,
                       "%s: no run on GPUs in %d lines; 'gogh advise --sacct' says more of them",
                       s->jobs_file, sacct->n_lines);
    return rc < 0 ? rc : history_make(a, sacct, cl, &o, out, e);
}

/* Also what jobs may have to be taken for, as one more job. */
static void add_usual(struct arena *a, const struct history *h, struct trace *out)
{
    const struct trace_job *jobs = out->jobs;

    out->jobs = ARENA_ARRAY(a, struct trace_job, (size_t)out->n_jobs + 1);
    memcpy(out->jobs, jobs, (size_t)out->n_jobs * sizeof *jobs);
    out->jobs[out->n_jobs++] =
        (struct trace_job){ .name = "workload", .workload = h->options.workload };
}

static int sacct_jobs(struct arena *a, const struct scenario *s, const struct cluster *cl,
                      const struct truth *truth, struct trace *out, struct err *e)
{
    struct history_figures unused;
    struct history h;
    int rc = read_history(a, s, cl, &h, e);

    if (rc == 0)
        rc = history_fit(&h, truth, e);
    if (rc < 0)
        return rc;
    history_play(a, &h, truth, USUAL_TOLERANCE, false, &unused);
    *out = h.trace;
    return 0;
}

/* ---- a trace file ---- */

static int trace_jobs(struct arena *a, const struct scenario *s, const struct cluster *cl,
                      struct trace *out, struct err *e)
{
    int rc = trace_read(a, s->jobs_file, out, e);

    if (rc < 0)
        return rc;
    ground_name_batches(a, out, cl);
    if (out->n_jobs == 0)
        return err_set(e, EINVAL, "%s: has no job", s->jobs_file);
    return 0;
}

int site_named(struct arena *a, const struct scenario *s, const struct cluster *cl,
               struct trace *out, struct err *e)
{
    struct history h;

    if (s->jobs == JOBS_TRACE)
        return trace_jobs(a, s, cl, out, e);
    int rc = read_history(a, s, cl, &h, e);
    if (rc < 0)
        return rc;
    *out = h.trace;
    add_usual(a, &h, out);
    return 0;
}

int site_jobs(struct arena *a, const struct study_run *k, const struct cluster *cl,
              const struct truth *truth, struct trace *out, struct err *e)
{
    const struct scenario *s = k->scenario;
    int rc =
        s->jobs == JOBS_TRACE ? trace_jobs(a, s, cl, out, e) : sacct_jobs(a, s, cl, truth, out, e);

    if (rc == 0 && (s->n_jobs > 0 || k->seed != s->first_seed))
        site_resample(a, k->seed, s->n_jobs > 0 ? s->n_jobs : out->n_jobs, out);
    return rc;
}
