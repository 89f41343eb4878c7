#include "study/scenario/site.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "sim/history/history.h"
#include "sim/history/sacct.h"
#include "study/scenario/resample.h"

#define SACCT_BYTES_MAX ((size_t)1 << 30)

/* ---- accounting ---- */

static int read_history(struct arena *a, const struct scenario *s, const struct cluster *cl,
                        struct history *out, struct err *e)
{
    struct history_options o = { .from_s = -INFINITY, .to_s = INFINITY, .shards = HISTORY_SHARDS };
    const char *usual = s->workload != NULL ? s->workload : HISTORY_WORKLOAD, *text;
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
    history_play(a, &h, truth, HISTORY_TOLERANCE, false, &unused);
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
    trace_begin_at_first(out);
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

    if (rc == 0 && (s->n_jobs > 0 || k->seed != s->first_seed)) {
        const struct trace were = *out;

        resample_count(a, &were, (uint64_t)k->seed, s->n_jobs > 0 ? s->n_jobs : were.n_jobs, out);
    }
    return rc;
}
