/* What Slurm would not do, told beforehand: a wrong pin is taken, and the job waits for ever. */
#include "act/slurm/inner.h"

#include <limits.h>
#include <string.h>

#include "act/local/command.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/state.h"

/* Nodes that are out of the reach of all jobs that ask for these features and this long. */
struct barred_nodes {
    const char *features;
    long limit_s;
    const unsigned char *barred;    // (n_nodes) of the state; NULL: none is
};

/* What all rules of one question are made from. */
struct rule_source {
    struct slurm *x;
    struct arena *arena;
    int n_nodes;
    const struct slurm_job **of;    // (n_jobs) by id: as the view has it; NULL: it is not there
    const int *devices;             // (n_gpus)
    struct barred_nodes *bars;      // (n_bars), as many as jobs at most
    int n_bars;
};

/* ---- what nodes have ---- */

static long less(long has, long by)
{
    return has > by ? has - by : 0;
}

/* A job that is not ours is there. */
static void give(const struct rule_source *r, const char *names, int cpus, int mem_mib,
                 struct engine_node *nodes)
{
    for (struct slice name; slice_next(&names, ',', &name);) {
        const int node = place_node(r->x, name);

        if (node < 0)
            continue;
        if (nodes[node].cpus < LONG_MAX)
            nodes[node].cpus = less(nodes[node].cpus, cpus);
        if (nodes[node].mem_mib < LONG_MAX)
            nodes[node].mem_mib = less(nodes[node].mem_mib, mem_mib);
    }
}

static const struct engine_node *find_nodes(const struct rule_source *r)
{
    const struct slurm_view *v = &r->x->view;
    struct engine_node *nodes = ARENA_ARRAY(r->arena, struct engine_node, (size_t)r->n_nodes);

    for (int n = 0; n < r->n_nodes; n++) {
        const int seen = nodes_find(r->x, n);
        const struct slurm_node *node = seen < 0 ? NULL : &v->nodes[seen];

        nodes[n] = (struct engine_node){ node && node->cpus ? node->cpus : LONG_MAX,
                                         node && node->mem_mib ? node->mem_mib : LONG_MAX };
    }
    for (int i = 0; i < v->n_others; i++)
        give(r, v->others[i].nodes, v->others[i].cpus, v->others[i].mem_mib, nodes);
    for (int i = 0; i < v->n_jobs; i++)
        if (nodes_has_stranger(r->x, i))
            give(r, v->jobs[i].nodes, v->jobs[i].cpus, v->jobs[i].mem_mib, nodes);
    return nodes;
}

/* A number for each thing that pins ask for, by its name and how much of it is one GPU. */
static const int *find_devices(const struct rule_source *r)
{
    const int n = r->x->setup.state->n_gpus;
    const struct slurm_slot **kinds = ARENA_ARRAY(r->arena, const struct slurm_slot *, (size_t)n);
    int *devices = ARENA_ARRAY(r->arena, int, (size_t)n), n_kinds = 0;

    for (int g = 0; g < n; g++) {
        const struct slurm_slot *slot = slurm_slot_of(r->x, g);
        int k = 0;

        while (slot && k < n_kinds &&
               (strcmp(kinds[k]->gres, slot->gres) != 0 || kinds[k]->n_shards != slot->n_shards))
            k++;
        if (slot && k == n_kinds)
            kinds[n_kinds++] = slot;
        devices[g] = slot ? k + 1 : 0;
    }
    return n_kinds > 1 ? devices : NULL;
}

/* ---- where a job cannot go ---- */

/* "a&b" of "b,c,a". What is more than a list of names is left to Slurm. */
static bool has_features(const char *want, const char *has)
{
    if (strpbrk(want, "|[]()*!:"))
        return true;
    for (size_t n; *want; want += n + (want[n] != '\0')) {
        const char *at = has;
        bool is_there = false;

        n = strcspn(want, "&,");
        for (struct slice f; !is_there && slice_next(&at, ',', &f);)
            is_there = f.len == n && memcmp(f.at, want, n) == 0;
        if (!is_there)
            return false;
    }
    return true;
}

static enum engine_rule bar_of(const struct rule_source *r, int node, const char *features,
                               long limit_s)
{
    const int seen = nodes_find(r->x, node);
    const struct slurm_node *n = seen < 0 ? NULL : &r->x->view.nodes[seen];

    if (!n)
        return r->x->setup.state->nodes[node].state == NODE_UP ? ENGINE_NODE : ENGINE_CAN;
    if (n->limit_s > 0 && limit_s > n->limit_s)
        return ENGINE_TIME;
    return has_features(features, n->features) ? ENGINE_CAN : ENGINE_FEATURE;
}

static const unsigned char *bars_for(struct rule_source *r, const char *features, long limit_s)
{
    unsigned char *barred;
    bool is_any = false;

    for (int i = 0; i < r->n_bars; i++)
        if (r->bars[i].limit_s == limit_s && strcmp(r->bars[i].features, features) == 0)
            return r->bars[i].barred;
    barred = ARENA_ARRAY(r->arena, unsigned char, (size_t)r->n_nodes);
    for (int n = 0; n < r->n_nodes; n++) {
        barred[n] = (unsigned char)bar_of(r, n, features, limit_s);
        is_any |= barred[n] != ENGINE_CAN;
    }
    r->bars[r->n_bars++] = (struct barred_nodes){ features, limit_s, is_any ? barred : NULL };
    return is_any ? barred : NULL;
}

/* Nodes that may take it for a second copy, too. */
static const unsigned char *with_shunned(const struct rule_source *r, const struct managed *m,
                                         const unsigned char *bars)
{
    unsigned char *barred;

    if (m->shunned.n_gpus == 0)
        return bars;
    barred = ARENA_ARRAY(r->arena, unsigned char, (size_t)r->n_nodes);
    if (bars)
        memcpy(barred, bars, (size_t)r->n_nodes);
    for (int i = 0; i < m->shunned.n_gpus; i++)
        barred[r->x->setup.state->gpus[m->shunned.gpus[i]].node] = ENGINE_COPY;
    return barred;
}

/* Before 23.02.6 a user's job that asked for a device of a type can ask for no other. */
static int device_of(const struct rule_source *r, const struct managed *m)
{
    const struct state *s = r->x->setup.state;
    const char *had = m->gres ? m->gres : m->pin_gres;

    if (r->x->can_move_typed || !had || !managed_is_users(r->x, m) || !r->devices ||
        s->jobs[m->job]->spec.max_gpus > 1)
        return 0;
    for (int g = 0; g < s->n_gpus; g++) {
        const struct slurm_slot *slot = slurm_slot_of(r->x, g);

        if (slot && gres_names(had, slot))
            return r->devices[g];
    }
    return 0;
}

/* ---- jobs ---- */

/* As Slurm has it, for each of its nodes; as its command says, where Slurm has it not. */
static struct engine_job needs_of(const struct rule_source *r, int job)
{
    const struct job_spec *spec = &r->x->setup.state->jobs[job]->spec;
    const struct slurm_job *j = r->of[job];
    const int n_nodes = spec->n_nodes > 1 ? spec->n_nodes : 1, n = spec->n_gpus / n_nodes;

    if (!j)
        return command_needs(r->arena, spec->command);
    /* Rounded down: a job that asks for all of a node must not count as more than that. */
    return (struct engine_job){ .cpus = j->cpus / n, .mem_mib = j->mem_mib / n };
}

static struct engine_job rules_for(struct rule_source *r, int job)
{
    const struct slurm_job *j = r->of[job];
    struct engine_job out = needs_of(r, job);
    const struct managed *m = managed_find(r->x, job);

    out.barred = bars_for(r, j ? j->features : "", j ? j->limit_s : 0);
    if (!m)
        return out;
    out.barred = with_shunned(r, m, out.barred);
    out.device = device_of(r, m);
    out.is_bound =
        m->state == MANAGED_RUNNING &&
        (m->stuck_run == m->last.run || (managed_is_users(r->x, m) && place_is_bound(r->x, m)));
    return out;
}

bool slurm_rules(void *self, struct arena *a, const int *jobs, int n_jobs, struct engine_rules *out)
{
    struct slurm *x = self;
    const struct state *s = x->setup.state;
    struct rule_source r = { .x = x, .arena = a, .n_nodes = s->n_nodes };
    struct engine_job *ruled = ARENA_ARRAY(a, struct engine_job, (size_t)n_jobs);

    if (x->setup.only_watches || !x->has_view)
        return false;
    r.of = ARENA_ARRAY(a, const struct slurm_job *, (size_t)s->n_jobs);
    r.bars = ARENA_ARRAY(a, struct barred_nodes, (size_t)n_jobs);
    r.devices = find_devices(&r);
    for (int i = 0; i < x->view.n_jobs; i++)
        if (x->managed_of && x->managed_of[i])
            r.of[x->managed_of[i]->job] = &x->view.jobs[i];
    for (int i = 0; i < n_jobs; i++)
        ruled[i] = rules_for(&r, jobs[i]);
    *out = (struct engine_rules){ .nodes = find_nodes(&r), .devices = r.devices, .jobs = ruled };
    return true;
}
