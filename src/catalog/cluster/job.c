#include "catalog/cluster/job.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text/text.h"

static const char *const state_names[] = {
    [JOB_WAITING] = "waiting",   [JOB_HELD] = "held",     [JOB_RUNNING] = "running",
    [JOB_FINISHED] = "finished", [JOB_FAILED] = "failed", [JOB_CANCELLED] = "cancelled",
};

const char *job_state_name(enum job_state s)
{
    return state_names[s];
}

int job_state_parse(const char *name)
{
    return text_find(state_names, JOB_CANCELLED + 1, name);
}

double job_remaining(const struct job *j, double now_s)
{
    const struct job_spec *s = &j->spec;
    double asked = s->kind == JOB_TRAINING ? s->steps : s->rate * s->duration_s;

    if (s->terms)
        return 0;

    double since_s = j->state == JOB_RUNNING ? fmax(now_s - j->heard_s, 0) : 0;
    double left = asked - j->steps_done - j->pace * since_s;

    if (!s->is_guess || s->kind != JOB_TRAINING)
        return fmax(left, 0);
    return j->state == JOB_FINISHED ? 0 : fmax(left, asked - left);
}

double job_time_left_s(const struct job *j, double now_s)
{
    if (j->spec.kind == JOB_TRAINING)
        return NAN;
    if (j->spec.terms)
        return INFINITY;
    if (isnan(j->started_s))
        return j->spec.duration_s;
    return fmax(j->started_s + j->spec.duration_s - now_s, 0);
}

double job_need(const struct job *j, double now_s)
{
    const struct job_spec *s = &j->spec;
    double need = s->min_throughput;

    if (s->kind != JOB_TRAINING)
        need = fmax(need, s->rate);
    if (s->deadline_s > now_s)
        need = fmax(need, job_remaining(j, now_s) / (s->deadline_s - now_s));
    return need;
}

/* An owner's name and a key of the user's own, with something between them, fit. */
enum { TAG_MAX = 512 };

static bool is_tag(const char *text)
{
    size_t len = text ? strnlen(text, TAG_MAX + 1) : 1;

    return len >= 1 && len <= TAG_MAX;
}

/* A part of a second to an hour; 0: not said. */
static bool is_span(double s, double least)
{
    return s == 0 || (s >= least && s <= 3600);
}

static int terms_check(const struct service_terms *t, struct err *e)
{
    bool is_llm = t->ttft_s > 0 || t->tpot_s > 0;

    if (!is_span(t->latency_s, 1e-4) || !is_span(t->ttft_s, 1e-4) || !is_span(t->tpot_s, 1e-5))
        return err_set(e, EINVAL, "a promised latency is within 0.1 ms and an hour, say p99=200ms");
    if ((t->latency_s > 0) == is_llm || (t->ttft_s > 0) != (t->tpot_s > 0))
        return err_set(e, EINVAL, "a service promises p99, or ttft and tpot together");
    if (t->max_batch < 0 || t->max_batch > 65536)
        return err_set(e, EINVAL, "max batch is within 1 and 65536");
    if (!is_span(t->load_s, 1e-3))
        return err_set(e, EINVAL, "load time is within 1 ms and an hour");
    return 0;
}

static int service_check(const struct job_spec *s, struct err *e)
{
    if (!s->terms)
        return err_set(e, EINVAL, "a service needs a promised latency, say p99=200ms");
    if (!(s->rate > 0 && s->rate < 1e9))
        return err_set(e, EINVAL, "a service needs rate > 0 (requests/s)");
    if (s->n_gpus != 1 || s->max_gpus > SERVICE_GPUS_MOST || s->n_nodes > 1)
        return err_set(e, EINVAL, "a replica runs on one GPU, and a service has at most %d of them",
                       SERVICE_GPUS_MOST);
    if (s->kind == JOB_REPLICA &&
        (s->service < 0 || s->replica < 0 || s->port < 0 || s->port > 65535 || s->max_gpus != 1))
        return err_set(e, EINVAL, "a replica has a service, a number, a port and one GPU");
    return terms_check(s->terms, e);
}

int job_spec_check(const struct job_spec *s, struct err *e)
{
    if (s->kind >= JOB_SERVICE && service_check(s, e) < 0)
        return -EINVAL;

    if (!s->name || !text_is_name(slice_of(s->name)) ||
        (s->owner && !text_is_name(slice_of(s->owner))))
        return err_set(e, EINVAL, "names of jobs and owners are 1 to 200 printable bytes of UTF-8");
    if (s->kind == JOB_TRAINING && !(s->steps > 0 && s->steps < 1e15))
        return err_set(e, EINVAL, "a training job needs steps > 0");
    if (s->kind == JOB_INFERENCE && !(s->rate > 0 && s->rate < 1e9))
        return err_set(e, EINVAL, "an inference job needs rate > 0 (steps/s)");
    if (s->kind == JOB_INFERENCE && !(s->duration_s > 0 && s->duration_s < 1e10))
        return err_set(e, EINVAL, "an inference job needs duration > 0 (s)");
    if (s->kind == JOB_INFERENCE && s->min_throughput > s->rate)
        return err_set(e, EINVAL, "a promise of %g steps/s is more than the rate of %g asked of it",
                       s->min_throughput, s->rate);
    if (!(s->min_throughput >= 0 && s->min_throughput < 1e9))
        return err_set(e, EINVAL, "min throughput must be 0 or more (steps/s)");
    if (!isfinite(s->submit_s) || isinf(s->deadline_s))
        return err_set(e, EINVAL, "times must be finite; leave the deadline out for none");
    if (!isnan(s->deadline_s) && !(s->deadline_s > s->submit_s))
        return err_set(e, EINVAL, "the deadline must be after the submission");
    if (s->is_guess && !isnan(s->deadline_s))
        return err_set(e, EINVAL, "a deadline needs to know how many steps there are: say steps");
    if (!is_tag(s->key) || !is_tag(s->digest))
        return err_set(e, EINVAL, "a submission's key and digest have 1 to %d bytes", TAG_MAX);
    if (s->n_gpus < 1 || s->max_gpus < s->n_gpus || s->max_gpus > 4096)
        return err_set(e, EINVAL, "want 1 <= gpus <= max_gpus <= 4096, got %d and %d", s->n_gpus,
                       s->max_gpus);
    if (s->n_nodes < 0 || s->n_gpus % (s->n_nodes > 0 ? s->n_nodes : 1) != 0)
        return err_set(e, EINVAL,
                       "%d GPUs cannot stand on %d nodes in equal parts: ask for a multiple of the "
                       "nodes",
                       s->n_gpus, s->n_nodes);
    if (s->n_nodes > 1 && s->max_gpus != s->n_gpus)
        return err_set(e, EINVAL,
                       "a gang over %d nodes cannot grow: leave max_gpus out, or the nodes",
                       s->n_nodes);
    if (s->priority < -1000000 || s->priority > 1000000)
        return err_set(e, EINVAL, "priority must be within -1000000..1000000");
    if (!(job_urgency(s) >= URGENCY_LEAST && job_urgency(s) <= URGENCY_MOST) || isnan(s->urgency) ||
        s->urgency < 0)
        return err_set(e, EINVAL, "urgency must be within %g..%g", URGENCY_LEAST, URGENCY_MOST);
    return 0;
}
