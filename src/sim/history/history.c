#include "sim/history/history.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"    // THETA_MAX
#include "sim/history/sacct.h"
#include "sim/world/truth.h"

/* ---- shared ---- */

struct trace_moment *history_moments(struct arena *a, const struct history *h, bool is_end)
{
    struct trace_moment *m = ARENA_ARRAY(a, struct trace_moment, (size_t)h->n_jobs);

    for (int i = 0; i < h->n_jobs; i++)
        m[i] = (struct trace_moment){ is_end ? h->jobs[i].end_s : h->jobs[i].start_s, i };
    trace_moments_sort(m, h->n_jobs);
    return m;
}

int *history_true_types(struct arena *a, const struct history *h, const struct truth *t)
{
    int *types = ARENA_ARRAY(a, int, (size_t)h->cluster->n_gpus);

    for (int g = 0; g < h->cluster->n_gpus; g++)
        types[g] = truth_find_type(t, h->cluster->types[h->type_of[g]].name);
    return types;
}

/* ---- making ---- */

/* Who is on a GPU while the jobs are put there in order of their starts. */
struct history_residents {
    int n;
    struct {
        int job, shards;
        double end_s;
    } on[THETA_MAX];
};

struct history_builder {
    struct arena *arena;
    struct history *h;
    struct map nodes, types, names;    // to indices: of the cluster, of it, of 'known'
    const char **known;                // workloads of names; NULL: not recognised
    int n_known;
    int *first_gpu;                     // (n_nodes)
    struct history_residents *slots;    // (n_gpus)
    int cap_pairs;
};

/* The cluster's type that gres.conf calls 'name', also one device's own ("v100_0"); n_types: none.
 */
static int find_type(struct history_builder *m, const char *name)
{
    const struct cluster *cl = m->h->cluster;
    int known = map_get(&m->types, name);
    size_t len = strlen(name), end = len;

    if (known >= 0)
        return known;
    while (end > 0 && isdigit((unsigned char)name[end - 1]))
        end--;
    const char *whole[] = { name, end > 1 && name[end - 1] == '_'
                                      ? arena_strndup(m->arena, name, end - 1)
                                      : name };
    known = cl->n_types;
    for (int i = 0; i < 2; i++) {
        const struct gpu_type *builtin = gpu_type_builtin(whole[i]);

        for (int t = 0; t < cl->n_types && known == cl->n_types; t++) {
            if (text_alike(cl->types[t].name, whole[i]) ||
                (builtin != NULL && gpu_type_builtin(cl->types[t].name) == builtin))
                known = t;
        }
    }
    map_set(&m->types, name, known);
    return known;
}

/* Let go whoever has left by then. */
static void free_slot(struct history_residents *s, double now_s)
{
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        if (s->on[i].end_s > now_s)
            s->on[n++] = s->on[i];
    }
    s->n = n;
}

static int shards_free(const struct history_builder *m, const struct history_residents *s)
{
    int n = m->h->options.shards;

    for (int i = 0; i < s->n; i++)
        n -= s->on[i].shards;
    return s->n < THETA_MAX ? n : 0;
}

/* Take up to 'n' GPUs of 'type' (n_types: any) of the job's nodes, at most 'each' of a node. */
static int take(struct history_builder *m, struct history_job *j, int type, int n, int each)
{
    const struct cluster *cl = m->h->cluster;
    const int need = j->shards > 0 ? j->shards : m->h->options.shards;
    int left = n;

    for (int i = 0; i < j->ran->n_nodes && left > 0; i++) {
        int node = map_get(&m->nodes, j->ran->nodes[i]), here = 0;

        for (int g = m->first_gpu[node]; g < m->first_gpu[node] + cl->nodes[node].n_gpus; g++) {
            const bool is_mine = gpus_have(j->gpus, j->n_gpus, g);

            here += is_mine;
            if (is_mine || left == 0 || here >= each ||
                (type < cl->n_types && m->h->type_of[g] != type))
                continue;
            free_slot(&m->slots[g], j->start_s);
            if (shards_free(m, &m->slots[g]) < need)
                continue;
            j->gpus[j->n_gpus++] = g;
            here++;
            left--;
        }
    }
    return n - left;
}

/* The whole gang: the types it had where they are told, in equal parts on its nodes, else as they
 * come. False: there are not that many.
 */
static bool take_in(struct history_builder *m, int job)
{
    struct history *h = m->h;
    struct history_job *j = &h->jobs[job];
    const struct sacct_job *ran = j->ran;
    const int any = h->cluster->n_types, want = j->n_gpus;
    const int each = (want + ran->n_nodes - 1) / ran->n_nodes;

    j->n_gpus = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < ran->n_types && j->n_gpus < want; i++) {
            int left = want - j->n_gpus, n = ran->types[i].n < left ? ran->types[i].n : left;

            if (pass == 0)
                take(m, j, find_type(m, ran->types[i].type), n, each);
        }
        take(m, j, any, want - j->n_gpus, pass == 0 ? each : want);
    }
    if (j->n_gpus < want)
        return false;
    for (int i = 0; i < want; i++) {
        struct history_residents *s = &m->slots[j->gpus[i]];

        for (int k = 0; k < s->n; k++) {
            ARENA_GROW(m->arena, h->pairs, h->n_pairs, m->cap_pairs);
            h->pairs[h->n_pairs][0] = s->on[k].job;
            h->pairs[h->n_pairs++][1] = job;
        }
        s->on[s->n].job = job;
        s->on[s->n].end_s = j->end_s;
        s->on[s->n++].shards = j->shards > 0 ? j->shards : h->options.shards;
    }
    return true;
}

/* A new index for each job that stays; -1: it goes. The trace goes with them. */
static void drop(struct arena *scratch, struct history *h, const bool *is_gone)
{
    int *index = ARENA_ARRAY(scratch, int, (size_t)h->n_jobs), n = 0, n_pairs = 0;

    for (int i = 0; i < h->n_jobs; i++) {
        index[i] = is_gone[i] ? -1 : n;
        if (is_gone[i])
            continue;
        h->jobs[n] = h->jobs[i];
        if (h->trace.jobs != NULL)
            h->trace.jobs[n] = h->trace.jobs[i];
        n++;
    }
    for (int i = 0; i < h->n_pairs; i++) {
        int a = index[h->pairs[i][0]], b = index[h->pairs[i][1]];

        if (a < 0 || b < 0)
            continue;
        h->pairs[n_pairs][0] = a;
        h->pairs[n_pairs++][1] = b;
    }
    h->n_pairs = n_pairs;
    h->n_jobs = n;
    if (h->trace.jobs != NULL)
        h->trace.n_jobs = n;
}

/* The run within the window, or false. */
static bool clip(struct history *h, const struct sacct_job *ran, struct history_job *out)
{
    const double from_s = h->options.from_s, to_s = h->options.to_s;
    int n_shards = ran->n_shards, per_gpu = h->options.shards;

    *out = (struct history_job){
        .ran = ran,
        .at_s = fmax(ran->ready_s, from_s),
        .start_s = fmax(ran->start_s, from_s),
        .end_s = fmin(ran->start_s + ran->elapsed_s, to_s),
        .n_gpus = ran->n_gpus > 0 ? ran->n_gpus : (n_shards + per_gpu - 1) / per_gpu,
        .shards = ran->n_gpus == 0 && n_shards < per_gpu ? n_shards : 0,
    };
    return out->end_s > out->start_s;
}

/* Its nodes must be of the cluster. */
static bool is_here(struct history_builder *m, const struct sacct_job *ran)
{
    for (int i = 0; i < ran->n_nodes; i++) {
        if (map_get(&m->nodes, ran->nodes[i]) >= 0)
            continue;
        if (m->h->n_unknown_node++ == 0)
            m->h->unknown_node = ran->nodes[i];
        return false;
    }
    return true;
}

/* Runs of the window on nodes that are here, by arrival; those that found a place. */
static void choose_jobs(struct history_builder *m, struct arena *scratch)
{
    struct history *h = m->h;
    const struct sacct *s = h->sacct;
    struct history_job *all = ARENA_ARRAY(scratch, struct history_job, (size_t)s->n_jobs);
    struct trace_moment *order = ARENA_ARRAY(scratch, struct trace_moment, (size_t)s->n_jobs);
    int n = 0;

    for (int i = 0; i < s->n_jobs; i++) {
        if (!clip(h, &s->jobs[i], &all[n]))
            h->n_outside++;
        else if (is_here(m, &s->jobs[i]))
            order[n] = (struct trace_moment){ all[n].at_s, n }, n++;
    }
    trace_moments_sort(order, n);
    h->jobs = ARENA_ARRAY(m->arena, struct history_job, (size_t)n);
    for (int i = 0; i < n; i++) {
        h->jobs[i] = all[order[i].job];
        h->jobs[i].gpus = ARENA_ARRAY(m->arena, int, (size_t)h->jobs[i].n_gpus);
    }
    h->n_jobs = n;
}

static void place_jobs(struct history_builder *m, struct arena *scratch)
{
    struct history *h = m->h;
    struct trace_moment *starts = history_moments(scratch, h, false);
    bool *is_gone = ARENA_ARRAY(scratch, bool, (size_t)h->n_jobs);

    for (int i = 0; i < h->n_jobs; i++) {
        int job = starts[i].job;

        is_gone[job] = !take_in(m, job);
        if (is_gone[job] && h->n_no_room++ == 0)
            h->no_room = h->jobs[job].ran->id;
    }
    drop(scratch, h, is_gone);
}

/* What names tell is looked up once for each. */
static const char *recognise(struct history_builder *m, const char *name)
{
    int known = map_get(&m->names, name);

    if (known < 0) {
        known = m->n_known++;
        m->known[known] = history_recognise(m->arena, m->h->cluster, name);
        map_set(&m->names, name, known);
    }
    return m->known[known];
}

static const char *find_workload(struct history_builder *m, struct history_job *j)
{
    const struct sacct_job *ran = j->ran;
    const char *is = NULL;

    j->source = FROM_COMMENT;
    if (ran->workload != NULL) {
        is = history_workload(m->arena, m->h->cluster, ran->workload, ran->batch);
        m->h->n_unknown_workload += is == NULL;
    }
    if (is == NULL) {
        j->source = FROM_NAME;
        is = recognise(m, ran->name);
    }
    if (is == NULL) {
        j->source = FROM_DEFAULT;
        is = m->h->options.workload;
    }
    return is;
}

/* "v100,a100": the types that it had. */
static const char *types_of(struct history_builder *m, const struct history_job *j)
{
    const struct cluster *cl = m->h->cluster;
    const char *names = NULL;

    for (int t = 0; t < cl->n_types; t++) {
        bool is_there = false;

        for (int i = 0; i < j->n_gpus; i++)
            is_there |= m->h->type_of[j->gpus[i]] == t;
        if (is_there)
            names = names ? arena_printf(m->arena, "%s,%s", names, cl->types[t].name)
                          : cl->types[t].name;
    }
    return names;
}

/* The nodes that a gang was on, where they can have equal parts; 0: any will do. */
static int nodes_of(const struct history_builder *m, const struct history_job *j)
{
    int n = 0;

    for (int i = 0; i < j->n_gpus; i++) {
        bool is_new = true;

        for (int k = 0; k < i; k++)
            is_new &= m->h->node_of[j->gpus[k]] != m->h->node_of[j->gpus[i]];
        n += is_new;
    }
    return j->n_gpus > 1 && j->n_gpus % n == 0 ? n : 0;
}

/* The jobs once more, their steps and promises yet unknown. */
static void make_trace(struct history_builder *m)
{
    struct history *h = m->h;

    h->trace = (struct trace){ .name = h->sacct->name, .n_jobs = h->n_jobs };
    h->trace.jobs = ARENA_ARRAY(m->arena, struct trace_job, (size_t)h->n_jobs);
    for (int i = 0; i < h->n_jobs; i++) {
        struct history_job *j = &h->jobs[i];

        h->trace.jobs[i] = (struct trace_job){
            .line = j->ran->line,
            .name = arena_printf(m->arena, "%d", j->ran->line),    // ids come again, lines do not
            .at_s = j->at_s,
            .workload = find_workload(m, j),
            .is_inference = j->ran->rate > 0,
            .rate = j->ran->rate,
            .duration_s = j->ran->rate > 0 ? j->end_s - j->start_s : 0,
            .deadline_s = NAN,
            .n_gpus = j->n_gpus,
            .max_gpus = j->n_gpus,
            .urgency = j->ran->urgency,
            .is_exclusive = j->ran->is_exclusive,
            .n_nodes = nodes_of(m, j),
            .types = h->options.keeps_types ? types_of(m, j) : NULL,
        };
    }
}

/* Time begins with the first arrival. */
static void begin_clock(struct history *h)
{
    h->begin_s = h->jobs[0].at_s;
    for (int i = 0; i < h->n_jobs; i++) {
        struct history_job *j = &h->jobs[i];

        j->at_s -= h->begin_s;
        j->start_s -= h->begin_s;
        j->end_s -= h->begin_s;
        h->end_s = fmax(h->end_s, j->end_s);
        h->first_end_s = i == 0 ? j->end_s : fmin(h->first_end_s, j->end_s);
        h->last_start_s = fmax(h->last_start_s, j->start_s);
    }
}

static void lay_out(struct history_builder *m)
{
    const struct cluster *cl = m->h->cluster;
    int *type_of = ARENA_ARRAY(m->arena, int, (size_t)cl->n_gpus);
    int *node_of = ARENA_ARRAY(m->arena, int, (size_t)cl->n_gpus);
    int gpu = 0;

    m->first_gpu = ARENA_ARRAY(m->arena, int, (size_t)cl->n_nodes);
    m->h->type_of = type_of;
    m->h->node_of = node_of;
    m->slots = ARENA_ARRAY(m->arena, struct history_residents, (size_t)cl->n_gpus);
    m->known = ARENA_ARRAY(m->arena, const char *, (size_t)m->h->sacct->n_jobs);
    for (int i = 0; i < cl->n_nodes; i++) {
        map_set(&m->nodes, cl->nodes[i].name, i);
        m->first_gpu[i] = gpu;
        for (int k = 0; k < cl->nodes[i].n_gpus; k++, gpu++) {
            type_of[gpu] = cl->nodes[i].types[k];
            node_of[gpu] = i;
        }
    }
}

/* What each source told, and how much there is. Again after jobs have been left out. */
static int count(struct history *h, struct err *e)
{
    memset(h->n_from, 0, sizeof h->n_from);
    h->n_asked = h->n_shared = 0;
    h->gpu_s = 0;
    for (int i = 0; i < h->n_jobs; i++) {
        const struct history_job *j = &h->jobs[i];

        h->n_from[j->source]++;
        h->n_asked += j->ran->min_throughput > 0 || j->ran->rate > 0;
        h->n_shared += j->shards > 0;
        h->gpu_s += (j->end_s - j->start_s) * j->n_gpus / (j->shards > 0 ? h->options.shards : 1) *
                    (j->shards > 0 ? j->shards : 1);
    }
    if (h->n_jobs > 0)
        return 0;
    return err_set(
        e, ENOENT,
        "%s: of %d runs on GPUs none is left: %d outside the window, %d on nodes that the "
        "cluster file has not%s%s, %d on more GPUs than it has, %d that would not fit, "
        "%d gangs that no plan can place",
        h->sacct->name, h->sacct->n_jobs, h->n_outside, h->n_unknown_node,
        h->unknown_node != NULL ? " as " : "", h->unknown_node != NULL ? h->unknown_node : "",
        h->n_no_room, h->n_unfit, h->n_mixed);
}

int history_make(struct arena *a, const struct sacct *s, const struct cluster *cl,
                 const struct history_options *o, struct history *out, struct err *e)
{
    struct history_builder m = { .arena = a, .h = out };
    struct arena scratch;
    int rc;

    *out = (struct history){ .sacct = s, .cluster = cl, .options = *o };
    arena_init(&scratch);
    lay_out(&m);
    choose_jobs(&m, &scratch);
    place_jobs(&m, &scratch);
    if (out->n_jobs > 0)
        begin_clock(out);
    make_trace(&m);
    rc = count(out, e);
    map_release(&m.nodes);
    map_release(&m.types);
    map_release(&m.names);
    arena_release(&scratch);
    return rc;
}

/* ---- what fits ---- */

static bool fits(const struct truth *t, const char *workload, const struct history_job *j,
                 const int *types)
{
    int w = truth_find_workload(t, workload);

    assert(w >= 0);
    for (int i = 0; i < j->n_gpus; i++) {
        if (truth_speed(t, w, types[j->gpus[i]]) <= 0)
            return false;
    }
    return true;
}

/* GPUs of one type that a gang could have: all, or in equal parts on 'n_nodes' nodes. */
static bool is_room(const struct cluster *cl, int type, int n_gpus, int n_nodes)
{
    const int each = n_nodes > 0 ? n_gpus / n_nodes : 1;
    int parts = 0;

    for (int i = 0; i < cl->n_nodes; i++) {
        int here = 0;

        for (int k = 0; k < cl->nodes[i].n_gpus; k++)
            here += cl->nodes[i].types[k] == type;
        parts += n_nodes > 0 ? here >= each : here;
    }
    return parts >= (n_nodes > 0 ? n_nodes : n_gpus);
}

/* Could any plan place it? Its gang would have to be of one type, on which it fits. */
static bool has_place(const struct history *h, const struct truth *t, int job)
{
    const struct cluster *cl = h->cluster;
    const struct trace_job *j = &h->trace.jobs[job];
    const int w = truth_find_workload(t, j->workload);

    for (int a = 0; a < cl->n_types && j->n_gpus > 1; a++) {
        const char *name = cl->types[a].name;

        if (j->types != NULL && strstr(j->types, name) == NULL)
            continue;
        if (truth_speed(t, w, truth_find_type(t, name)) > 0 &&
            is_room(cl, a, j->n_gpus, j->n_nodes))
            return true;
    }
    return j->n_gpus == 1;
}

int history_fit(struct history *h, const struct truth *t, struct err *e)
{
    struct arena scratch;

    arena_init(&scratch);
    int *types = history_true_types(&scratch, h, t);
    bool *is_gone = ARENA_ARRAY(&scratch, bool, (size_t)h->n_jobs);
    for (int i = 0; i < h->n_jobs; i++) {
        struct trace_job *j = &h->trace.jobs[i];

        if (fits(t, j->workload, &h->jobs[i], types))
            continue;
        is_gone[i] = !fits(t, h->options.workload, &h->jobs[i], types);
        h->n_taken_for_default += !is_gone[i] && h->jobs[i].source != FROM_DEFAULT;
        j->workload = h->options.workload;
    }
    for (int i = 0; i < h->n_pairs; i++) {
        const int *p = h->pairs[i], type = types[h->jobs[p[1]].gpus[0]];
        int a = truth_find_workload(t, h->trace.jobs[p[0]].workload);
        int b = truth_find_workload(t, h->trace.jobs[p[1]].workload);

        if (!is_gone[p[0]] &&
            (truth_slowdown(t, a, type, b) <= 0 || truth_slowdown(t, b, type, a) <= 0))
            is_gone[p[1]] = true;
    }
    for (int i = 0; i < h->n_jobs; i++) {
        h->n_unfit += is_gone[i];
        if (is_gone[i] || has_place(h, t, i))
            continue;
        is_gone[i] = true;
        h->n_mixed++;
    }
    drop(&scratch, h, is_gone);
    arena_release(&scratch);
    return count(h, e);
}
