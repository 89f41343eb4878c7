/* What nodes allow: whose GPUs are not to be had, which of them sleep, and which may. */
#include "act/slurm/inner.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/text/text.h"
#include "catalog/cluster/state.h"

#define POWER_S 30.0         // between two orders to sleep
#define WAKE_S 5.0           // and to wake: one that comes while a node goes down is forgotten
#define SETTLE_MIN_S 6.0     // nodes report to a new slurmctld within some seconds,
#define SETTLE_MAX_S 20.0    // or they are lost
#define AWAY (SLURM_NODE_DOWN | SLURM_NODE_DRAINED | SLURM_NODE_SINKING)

/* ---- learning ---- */

static void learn_slots(struct slurm *x)
{
    struct arena *a = &x->node_arena[1 - x->node_side];    // where the view's nodes are

    x->seen = ARENA_ARRAY(a, struct node_seen, (size_t)x->view.n_nodes);
    for (int i = 0; i < x->view.n_nodes; i++) {
        struct node_seen *n = &x->seen[i];
        struct err e;

        n->n_slots = slurm_slots_read(a, x->view.nodes[i].gres, &n->slots, &e);
        n->n_slots = n->n_slots < 0 ? 0 : n->n_slots;
    }
}

void nodes_learn(struct slurm *x)
{
    const struct state *st = x->setup.state;

    if (x->has_nodes)
        learn_slots(x);
    free(x->view_node);
    x->n_view_node = st->n_nodes;
    x->view_node = heap_array((size_t)st->n_nodes, sizeof *x->view_node);
    for (int i = 0; i < st->n_nodes; i++)
        x->view_node[i] = -1;
    for (int i = 0; i < x->view.n_nodes; i++) {
        const int node = state_find_node(st, x->view.nodes[i].name);

        if (node >= 0)
            x->view_node[node] = i;
    }
    x->n_busy = -1;
}

int nodes_find(const struct slurm *x, int node)
{
    return node < x->n_view_node ? x->view_node[node] : -1;
}

static unsigned flags_of(const struct slurm *x, int gpu)
{
    const int n = nodes_find(x, x->setup.state->gpus[gpu].node);

    return n < 0 ? (unsigned)SLURM_NODE_DOWN : x->view.nodes[n].flags;
}

const struct slurm_slot *slurm_slot_of(const struct slurm *x, int gpu)
{
    const struct gpu *g = &x->setup.state->gpus[gpu];
    const int n = nodes_find(x, g->node);

    return n >= 0 && g->slot < x->seen[n].n_slots ? &x->seen[n].slots[g->slot] : NULL;
}

const char *nodes_address(void *self, int node)
{
    const struct slurm *x = self;
    const int n = nodes_find(x, node);

    if (x->view.n_nodes == 0)
        return NULL;
    return n < 0 ? x->setup.state->nodes[node].name : x->view.nodes[n].address;
}

/* ---- busy GPUs ---- */

static void mark(struct slurm *x, const struct gpu_set *s)
{
    for (int i = 0; i < s->n_gpus; i++)
        x->busy[s->gpus[i]] = true;
}

static void mark_node(struct slurm *x, const struct node *n, const char *gres)
{
    bool has_any = false;

    for (int g = n->first_gpu; g < n->first_gpu + n->n_gpus; g++) {
        const struct slurm_slot *slot = slurm_slot_of(x, g);

        if (slot && gres_names(gres, slot))
            x->busy[g] = has_any = true;
    }
    for (int g = n->first_gpu; g < n->first_gpu + n->n_gpus && !has_any; g++)
        x->busy[g] = true;
}

/* A job that is not ours is there: on the GPUs that its gres names, else on any. */
static void mark_foreign(struct slurm *x, const char *nodes, const char *gres)
{
    for (struct slice name; *gres && slice_next(&nodes, ',', &name);) {
        const int node = place_node(x, name);

        if (node >= 0)
            mark_node(x, &x->setup.state->nodes[node], gres);
    }
}

bool nodes_has_stranger(struct slurm *x, int i)
{
    const struct slurm_job *j = &x->view.jobs[i];
    const struct managed *m = x->managed_of ? x->managed_of[i] : NULL;
    const bool is_ours =
        m && m->now == j &&
        (m->state == MANAGED_PINNED || m->state == MANAGED_RUNNING || managed_is_leaving(m)) &&
        place_is_on(x, &m->at, j->nodes);

    return j->state != SLURM_PENDING && !slurm_has_ended(j->state) && !is_ours;
}

static void mark_jobs(struct slurm *x)
{
    for (int i = 0; i < x->view.n_jobs; i++)
        if (nodes_has_stranger(x, i))
            mark_foreign(x, x->view.jobs[i].nodes, x->view.jobs[i].gres);
    for (int i = 0; i < x->view.n_others; i++)
        mark_foreign(x, x->view.others[i].nodes, x->view.others[i].gres);
}

static void mark_managed(struct slurm *x, const struct managed *m)
{
    if (managed_is_going(m) || m->state == MANAGED_PINNED)
        mark(x, &m->at);
    if (m->next.n_gpus > 0)
        mark(x, &m->next);
}

static void find_busy(struct slurm *x)
{
    const int n = x->setup.state->n_gpus;

    free(x->busy);
    x->busy = heap_array((size_t)n, sizeof *x->busy);
    x->n_busy = n;
    for (int g = 0; g < n; g++)
        x->busy[g] = (flags_of(x, g) & AWAY) != 0;
    mark_jobs(x);
    for (int i = 0; i < x->n_active; i++)
        mark_managed(x, x->active[i]);
}

static bool is_shut(const struct slurm *x, int gpu)
{
    return gpu < x->n_shut && slurm_now_s(x) < x->shut_s[gpu];
}

bool nodes_gpu_is_busy(void *self, int gpu)
{
    struct slurm *x = self;

    if (!x->has_view)
        return true;
    if (x->n_busy != x->setup.state->n_gpus)
        find_busy(x);
    return x->busy[gpu] || is_shut(x, gpu);
}

static void tell_free(struct slurm *x)
{
    const int n = x->setup.state->n_gpus;
    bool *now = heap_array((size_t)n, sizeof *now), is_news = false;

    for (int g = 0; g < n; g++) {
        now[g] = nodes_gpu_is_busy(x, g);
        is_news |= !now[g] && g < x->n_was_busy && x->was_busy[g];
    }
    free(x->was_busy);
    x->was_busy = now;
    x->n_was_busy = n;
    for (int i = 0; i < x->n_active; i++) {
        struct managed *m = x->active[i];

        if (m->paused_s > 0 && !managed_is_paused(x, m)) {    // it may be planned again
            m->paused_s = 0;
            is_news = true;
        }
    }
    if (is_news)
        notices_tell(&x->notices);    // somebody may wait for it
}

void nodes_hurry(struct slurm *x)
{
    for (int i = 0; i < x->view.n_nodes; i++)
        x->wants_nodes |= (x->view.nodes[i].flags &
                           (SLURM_NODE_SINKING | SLURM_NODE_WAKING | SLURM_NODE_UNHEARD)) != 0;
    tell_free(x);
}

/* What a slurmctld that was killed had started last, the one after it does not know of, and it runs
 * on until its node has reported: started anew before that, it would run twice.
 */
bool nodes_are_settling(struct slurm *x)
{
    const double passed_s = slurm_now_s(x) - x->reborn_s;
    bool is_unheard = false;

    for (int i = 0; i < x->view.n_nodes; i++)
        is_unheard |= (x->view.nodes[i].flags & SLURM_NODE_UNHEARD) != 0;
    if (passed_s > SETTLE_MAX_S || (passed_s > SETTLE_MIN_S && !is_unheard))
        return false;
    x->wants_nodes = true;
    return true;
}

/* Make room for 'n' times in a list, each new one 'value'. */
static void reach(double **list, int *n_list, int n, double value)
{
    if (*n_list >= n)
        return;
    RESIZE(*list, n);
    while (*n_list < n)
        (*list)[(*n_list)++] = value;
}

void nodes_shut(struct slurm *x, const struct gpu_set *s, double for_s)
{
    reach(&x->shut_s, &x->n_shut, x->setup.state->n_gpus, 0);
    for (int i = 0; i < s->n_gpus; i++)
        x->shut_s[s->gpus[i]] = slurm_now_s(x) + for_s;
}

/* ---- sleep ---- */

double nodes_wake_s(void *self, int gpu)
{
    const struct slurm *x = self;
    const unsigned flags = x->has_view ? flags_of(x, gpu) : 0;

    return flags & (SLURM_NODE_ASLEEP | SLURM_NODE_WAKING) ? x->setup.wake_s : 0;
}

static bool has_flag(struct slurm *x, const struct gpu_set *s, unsigned flags)
{
    for (int i = 0; i < s->n_gpus; i++)
        if (flags_of(x, s->gpus[i]) & flags)
            return true;
    return false;
}

bool nodes_are_awake(struct slurm *x, const struct gpu_set *s)
{
    return !has_flag(x, s, SLURM_NODE_ASLEEP | SLURM_NODE_WAKING);
}

bool nodes_are_away(struct slurm *x, const struct gpu_set *s)
{
    return has_flag(x, s, SLURM_NODE_DOWN | SLURM_NODE_DRAINED);
}

static const char **list_nodes(struct slurm *x)
{
    arena_reset(&x->scratch);
    return ARENA_ARRAY(&x->scratch, const char *, (size_t)x->setup.state->n_nodes);
}

/* A node that is awake starts a job at once; one that Slurm wakes for a job lets that wait for
 * slurmctld's next half minute.
 */
void nodes_wake(struct slurm *x)
{
    const struct state *st = x->setup.state;
    const char **names = list_nodes(x);
    bool *wanted = ARENA_ARRAY(&x->scratch, bool, (size_t)st->n_nodes);
    int n = 0;

    if (slurm_now_s(x) < x->wake_s + WAKE_S)
        return;
    for (int i = 0; i < x->n_active; i++) {
        const struct managed *m = x->active[i];

        for (int g = 0; m->next.n_gpus > 0 && g < m->next.n_gpus; g++)
            if (flags_of(x, m->next.gpus[g]) & SLURM_NODE_ASLEEP)
                wanted[st->gpus[m->next.gpus[g]].node] = true;
    }
    for (int i = 0; i < st->n_nodes; i++)
        if (wanted[i])
            names[n++] = st->nodes[i].name;
    if (n > 0)
        x->wake_s = slurm_now_s(x);
    ask_power(x, names, n, "up");
}

static bool is_idle(struct slurm *x, int node)
{
    const struct node *n = &x->setup.state->nodes[node];
    const int seen = nodes_find(x, node);

    if (seen < 0 || x->view.nodes[seen].flags != 0)
        return false;
    for (int g = n->first_gpu; g < n->first_gpu + n->n_gpus; g++)
        if (x->setup.state->gpus[g].n_jobs > 0 || nodes_gpu_is_busy(x, g))
            return false;
    return true;
}

void nodes_sleep(struct slurm *x)
{
    const struct state *st = x->setup.state;
    const double now_s = slurm_now_s(x);
    const char **names;
    int n = 0;

    if (!(x->setup.sleep_after_s > 0))
        return;
    reach(&x->idle_s, &x->n_idle, st->n_nodes, (double)NAN);
    for (int i = 0; i < st->n_nodes; i++) {
        if (!is_idle(x, i))
            x->idle_s[i] = (double)NAN;
        else if (isnan(x->idle_s[i]))
            x->idle_s[i] = now_s;
    }
    if (now_s < x->power_s + POWER_S)
        return;
    names = list_nodes(x);
    for (int i = 0; i < st->n_nodes; i++)
        if (now_s >= x->idle_s[i] + x->setup.sleep_after_s)
            names[n++] = st->nodes[i].name;
    if (n > 0)
        x->power_s = now_s;
    ask_power(x, names, n, "down");
}

void nodes_release(struct slurm *x)
{
    free(x->busy);
    free(x->was_busy);
    free(x->shut_s);
    free(x->idle_s);
    free(x->view_node);
    free(x->managed_of);
}
