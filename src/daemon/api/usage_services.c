/* usage_services.c - a period's rows of usage, added up by service. */
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/text/json.h"
#include "catalog/cluster/state.h"
#include "daemon/api/usage.h"

struct service_line {
    struct row_usage sum;
    int n_hours, n_kept;
    bool has_any;
    double hour_requests, hour_late;    // of the hour that is being added up
};

/* The line of a row's service; NULL: its job is no replica. */
static struct service_line *line_of(struct service_line *lines, const struct state *s, int64_t job)
{
    const struct job *j = job >= 0 && job < s->n_jobs ? s->jobs[job] : NULL;

    for (int i = 0; j && j->spec.kind == JOB_REPLICA && i < s->n_services; i++)
        if (s->services[i] == j->spec.service)
            return &lines[i];
    return NULL;
}

/* An hour is over: was the promise kept in it? */
static void judge_hour(struct service_line *lines, int n)
{
    for (int i = 0; i < n; i++) {
        struct service_line *l = &lines[i];
        l->n_hours += l->hour_requests > 0;
        l->n_kept += l->hour_requests > 0 && l->hour_late <= SERVICE_LATE_MOST * l->hour_requests;
        l->hour_requests = l->hour_late = 0;
    }
}

static void add_up(struct service_line *lines, const struct usage *u, const struct state *s)
{
    for (int i = 0; i < u->n_parts; i++) {
        const struct row_usage *p = &u->parts[i];
        struct service_line *l = line_of(lines, s, p->job);
        if (!l)
            continue;
        l->has_any = true;
        l->sum.active_j += p->active_j;
        l->sum.idle_j += p->idle_j;
        l->sum.gpu_s += p->gpu_s;
        l->sum.requests += p->requests;
        l->sum.late += p->late;
    }
    for (int i = 0; i < u->n_served; i++) {
        struct service_line *l = line_of(lines, s, u->served[i].job);
        if (i > 0 && u->served[i].hour_s != u->served[i - 1].hour_s)
            judge_hour(lines, s->n_services);
        if (!l)
            continue;
        l->hour_requests += u->served[i].requests;
        l->hour_late += u->served[i].late;
    }
    judge_hour(lines, s->n_services);
}

static json_t *line_json(const struct service_line *l, const struct job *j, double from_s,
                         double to_s)
{
    const struct row_usage *s = &l->sum;
    double end_s = job_is_over(j) ? fmin(to_s, j->changed_s) : to_s;
    double life_s = end_s - fmax(from_s, j->spec.submit_s), joules = usage_joules(s);

    return json_pack(
        "{s:i, s:s, s:o, s:f, s:f, s:o, s:i, s:i, s:n, s:f, s:f, s:f, s:o, s:o}",    //
        "id", j->id, "name", j->spec.name,                                           //
        "owner", j->spec.owner ? json_string(j->spec.owner) : json_null(),           //
        "requests", s->requests, "late", s->late,                                    //
        "late_share", json_number_or_null(s->requests > 0 ? s->late / s->requests : (double)NAN),
        "hours", l->n_hours, "kept_hours", l->n_kept, "p99_s",                   //
        "promised_p99_s", service_latency_s(j->spec.terms), "joules", joules,    //
        "gpu_s", s->gpu_s, "watts", json_number_or_null(life_s > 0 ? joules / life_s : (double)NAN),
        "joules_per_1000_requests",
        json_number_or_null(s->requests > 0 ? 1000 * joules / s->requests : (double)NAN));
}

json_t *usage_services_json(const struct usage *u, const struct state *s, double from_s,
                            double to_s)
{
    struct service_line *lines = heap_array((size_t)s->n_services + 1, sizeof *lines);
    json_t *list = json_array();

    add_up(lines, u, s);
    for (int i = 0; i < s->n_services; i++)
        if (lines[i].has_any)
            json_array_append_new(list,
                                  line_json(&lines[i], s->jobs[s->services[i]], from_s, to_s));
    free(lines);
    return list;
}
