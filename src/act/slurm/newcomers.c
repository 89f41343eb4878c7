#include "act/slurm/newcomers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/output.h"
#include "act/slurm/slurm.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/map.h"
#include "catalog/cluster/state.h"

/* A node, as it was seen last. A drain may be Slurm's or have been asked of GOGH; who undoes one
 * must not undo the other.
 */
struct seen_node {
    char *name;          // owned
    char *gres;          // owned; NULL: not looked at yet
    char *complaint;     // owned: logged last; NULL: nothing
    bool is_odd;         // its GPUs are not those that the state has
    bool is_slurms;      // the state's drain came from Slurm, and ends there
    bool was_drained;    // by somebody else, before it went down
};

/* New jobs handed over in one view: a turn that takes 1000 in lasts 57 ms without sanitizers, and
 * nothing may hold the loop for 100 ms.
 */
#define TAKE_MOST 200

/* A job that has been handed over, and carries no token yet. */
struct seen_job {
    long id, task;
    double submit_s;
    bool is_safe;    // what came of it is in the store
};

struct newcomers {
    struct slurm_setup setup;
    struct arena arena;    // of one view
    struct map by_name;
    struct seen_node *nodes;
    int n_nodes, cap_nodes;
    struct seen_job *taken, *before;    // in the order of views; 'before': of the last one
    int n_taken, cap_taken, n_before, cap_before;
    struct seen_job next;    // whom to ask for first in the next view; id 0: the first
    int n_foreign;
};

struct newcomers *newcomers_create(const struct slurm_setup *s)
{
    struct newcomers *w = heap_array(1, sizeof *w);

    w->setup = *s;
    arena_init(&w->arena);
    return w;
}

void newcomers_destroy(struct newcomers *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->n_nodes; i++) {
        free(w->nodes[i].name);
        free(w->nodes[i].gres);
        free(w->nodes[i].complaint);
    }
    free(w->nodes);
    free(w->taken);
    free(w->before);
    map_release(&w->by_name);
    arena_release(&w->arena);
    free(w);
}

/* ---- nodes ---- */

static struct seen_node *node_seen(struct newcomers *w, const char *name, bool *is_first)
{
    int i = map_get(&w->by_name, name);

    *is_first = i < 0;
    if (i >= 0)
        return &w->nodes[i];
    GROW(w->nodes, w->n_nodes, w->cap_nodes);
    w->nodes[w->n_nodes] = (struct seen_node){ .name = heap_text(name) };
    map_set(&w->by_name, w->nodes[w->n_nodes].name, w->n_nodes);
    return &w->nodes[w->n_nodes++];
}

/* What is wrong with a node is said once, and again when it is something else. NULL: nothing is. */
static void complain(struct seen_node *n, const char *text)
{
    if (text && n->complaint && strcmp(n->complaint, text) == 0)
        return;
    free(n->complaint);
    n->complaint = heap_text(text);
    if (text)
        log_warn("Slurm's node %s: %s", n->name, text);
}

static void tell(struct newcomers *w, int node, enum node_state is, bool ends_drain, double now_s)
{
    static const char *const words[] = {
        [NODE_UP] = "up", [NODE_DRAINED] = "drained", [NODE_DOWN] = "down"
    };

    log_info("node %s is %s", w->setup.state->nodes[node].name, words[is]);
    w->setup.node_is(w->setup.owner, node, is, ends_drain, now_s);
}

static void see_down(struct newcomers *w, struct seen_node *n, int node, double now_s)
{
    const enum node_state is = w->setup.state->nodes[node].state;

    if (is == NODE_DOWN)
        return;
    n->was_drained = is == NODE_DRAINED && !n->is_slurms;
    tell(w, node, NODE_DOWN, false, now_s);
}

static void see_drained(struct newcomers *w, struct seen_node *n, int node, bool is_first,
                        double now_s)
{
    if (w->setup.state->nodes[node].state == NODE_DRAINED) {
        n->is_slurms |= is_first;    // told before this process began, most likely
        return;
    }
    n->is_slurms = !n->was_drained;
    n->was_drained = false;
    tell(w, node, NODE_DRAINED, false, now_s);
}

static void see_up(struct newcomers *w, struct seen_node *n, int node, bool is_first, double now_s)
{
    const enum node_state is = w->setup.state->nodes[node].state;

    if (is == NODE_DOWN) {
        tell(w, node, n->was_drained ? NODE_DRAINED : NODE_UP, false, now_s);
        n->was_drained = n->is_slurms = false;
    } else if (is == NODE_DRAINED && n->is_slurms) {
        tell(w, node, NODE_UP, true, now_s);
    } else if (is == NODE_DRAINED && is_first) {
        log_warn("node %s is up in Slurm and drained in GOGH; 'gogh nodes resume %s' ends that",
                 n->name, n->name);
    }
}

/* Nodes never change in the state: one with other GPUs than before gets nothing new, and what runs
 * there goes on.
 */
static void check_gres(struct newcomers *w, struct seen_node *n, int node, const char *gres)
{
    const struct slurm_slot *slots = NULL;
    struct err e = { 0 };

    if (n->gres && strcmp(n->gres, gres) == 0)
        return;
    free(n->gres);
    n->gres = heap_text(gres);
    const int n_slots = slurm_slots_read(&w->arena, gres, &slots, &e);
    const int n_had = w->setup.state->nodes[node].n_gpus;
    n->is_odd = n_slots != n_had;
    if (n_slots >= 0 && n->is_odd)
        err_fill(
            &e, EINVAL,
            "it has %d GPUs now, and had %d when GOGH met it; it gets no more jobs. Set its gres "
            "back, or give it a new name in Slurm",
            n_slots, n_had);
    if (n->is_odd)
        complain(n, e.text);
    else if (w->setup.node_has)
        w->setup.node_has(w->setup.owner, node, slots);
}

static void see_known(struct newcomers *w, struct seen_node *n, int node,
                      const struct slurm_node *is, bool is_first, double now_s)
{
    check_gres(w, n, node, is->gres);
    if (!n->is_odd)
        complain(n, NULL);
    if ((is->flags & SLURM_NODE_DOWN) != 0)
        see_down(w, n, node, now_s);
    else if (n->is_odd || (is->flags & SLURM_NODE_DRAINED) != 0)
        see_drained(w, n, node, is_first, now_s);
    else
        see_up(w, n, node, is_first, now_s);
}

/* A node without GPUs is none of ours; one that is not understood is asked for again. */
static void see_new(struct newcomers *w, struct seen_node *n, const struct slurm_node *is)
{
    const struct slurm_slot *slots = NULL;
    struct err e = { 0 };
    int n_slots = slurm_slots_read(&w->arena, is->gres, &slots, &e);

    if (n_slots == 0)
        return;
    if (n_slots < 0 || w->setup.add_node(w->setup.owner, is, slots, n_slots, &e) < 0)
        complain(n, e.text);
    else
        complain(n, NULL);
}

/* What the state has and Slurm has no more. */
static void see_missing(struct newcomers *w, const bool *is_here, int n_known, double now_s)
{
    const struct state *s = w->setup.state;
    bool is_first;

    for (int i = 0; i < n_known; i++) {
        if (is_here[i])
            continue;
        struct seen_node *n = node_seen(w, s->nodes[i].name, &is_first);
        complain(n, "it is not in GOGH's partition any more: down");
        see_down(w, n, i, now_s);
    }
}

static void see_nodes(struct newcomers *w, const struct slurm_view *v, double now_s)
{
    const struct state *s = w->setup.state;
    const int n_known = s->n_nodes;    // those that are added here are here
    bool *is_here = ARENA_ARRAY(&w->arena, bool, (size_t)n_known);
    bool is_first;

    for (int i = 0; i < v->n_nodes; i++) {
        const struct slurm_node *is = &v->nodes[i];
        struct seen_node *n = node_seen(w, is->name, &is_first);
        const int was = state_find_node(s, is->name);
        if (was < 0)
            see_new(w, n, is);
        const int node = state_find_node(s, is->name);
        if (node < 0)
            continue;
        if (node < n_known)
            is_here[node] = true;
        see_known(w, n, node, is, is_first, now_s);
    }
    if (v->n_nodes > 0)    // a partition without any: somebody is at its definition
        see_missing(w, is_here, n_known, now_s);
}

/* ---- jobs ---- */

/* Views are by rising numbers. */
static bool is_before(long id, long task, long other_id, long other_task)
{
    return id < other_id || (id == other_id && task < other_task);
}

/* In the last view? NULL: no. '*at' is how far we are in that one. */
static const struct seen_job *find_taken(const struct newcomers *w, const struct slurm_job *j,
                                         int *at)
{
    while (*at < w->n_before && is_before(w->before[*at].id, w->before[*at].task, j->id, j->task))
        ++*at;
    const struct seen_job *b = *at < w->n_before ? &w->before[*at] : NULL;
    return b && b->id == j->id && b->task == j->task && b->submit_s == j->submit_s ? b : NULL;
}

/* One that came by sbatch, and that nobody has refused or given a token. */
static bool is_for_us(const struct slurm_job *j, const struct slurm_note *note)
{
    if (strncmp(j->admin, SLURM_REFUSED, strlen(SLURM_REFUSED) - 1) == 0)
        return false;
    return note->token[0] == '\0' && (note->is_new || output_has_gpus(j->gres));
}

/* A token that this store has not given out: another one has, or this one before a backup. */
static bool is_foreign(const struct newcomers *w, const struct slurm_note *note)
{
    const char *site = w->setup.site;

    return site && note->token[0] && slurm_token_job(note->token, site, w->setup.state->n_jobs) < 0;
}

static bool take(struct newcomers *w, const struct slurm_job *j)
{
    if (j->state != SLURM_PENDING && !w->setup.only_watches)
        log_warn("Slurm's job %ld runs in partition %s, and GOGH has not placed it: somebody "
                 "released it, or job_submit.lua is not in force",
                 j->id, w->setup.partition);
    return w->setup.take_job(w->setup.owner, j);
}

static void add_taken(struct newcomers *w, const struct slurm_job *j, bool is_safe)
{
    GROW(w->taken, w->n_taken, w->cap_taken);
    w->taken[w->n_taken++] = (struct seen_job){
        .id = j->id, .task = j->task, .submit_s = j->submit_s, .is_safe = is_safe
    };
}

/* What was 'taken' is now 'before'. */
static void turn_page(struct newcomers *w)
{
    struct seen_job *old = w->before;
    const int cap_old = w->cap_before;

    w->before = w->taken;
    w->n_before = w->n_taken;
    w->cap_before = w->cap_taken;
    w->taken = old;
    w->cap_taken = cap_old;
    w->n_taken = 0;
}

static void tell_foreign(struct newcomers *w, int n)
{
    if (n > 0 && w->n_foreign == 0)
        log_warn(
            "%d jobs of Slurm's partition %s carry tokens that this store has not given out, so "
            "they are left alone: another goghd is at work there, or the store is new or from "
            "a backup; 'scontrol update JobId=ID AdminComment=\"gogh1 new gres=gpu:1 nodes=1\"' "
            "hands over one that came by sbatch",
            n, w->setup.partition);
    w->n_foreign = n;
}

/* Whoever is beyond TAKE_MOST is the first of the next view: those who could not be taken must not
 * keep out the others for ever.
 */
static bool may_ask(struct newcomers *w, const struct slurm_job *j, struct seen_job first,
                    int *n_asked)
{
    if (is_before(j->id, j->task, first.id, first.task))
        return false;
    if (*n_asked == TAKE_MOST)
        w->next = (struct seen_job){ .id = j->id, .task = j->task };
    return (*n_asked)++ < TAKE_MOST;
}

static void see_jobs(struct newcomers *w, const struct slurm_view *v)
{
    const struct seen_job first = w->next;
    int at = 0, n_asked = 0, n_foreign = 0;    // at: in 'before'; asked: handed over

    turn_page(w);
    w->next = (struct seen_job){ 0 };
    for (int i = 0; i < v->n_jobs; i++) {
        const struct slurm_job *j = &v->jobs[i];
        struct slurm_note note = { 0 };
        if (j->state > SLURM_RUNNING || strcmp(j->partition, w->setup.partition) != 0)
            continue;
        slurm_note_read(&w->arena, j->comment, j->admin, &note);
        n_foreign += is_foreign(w, &note);
        if (!is_for_us(j, &note))
            continue;
        const struct seen_job *was = find_taken(w, j, &at);
        if (was)
            add_taken(w, j, was->is_safe);
        else if (may_ask(w, j, first, &n_asked) && take(w, j))
            add_taken(w, j, false);
    }
    tell_foreign(w, n_foreign);
}

void newcomers_see(struct newcomers *w, const struct slurm_view *v, double now_s)
{
    see_nodes(w, v, now_s);
    see_jobs(w, v);
    arena_reset(&w->arena);
}

void newcomers_committed(struct newcomers *w)
{
    for (int i = 0; i < w->n_taken; i++)
        w->taken[i].is_safe = true;
    for (int i = 0; i < w->n_before; i++)
        w->before[i].is_safe = true;
}

/* May come in the middle of a view, from take_job: 'before' keeps its places. */
void newcomers_undone(struct newcomers *w)
{
    int n = 0;

    for (int i = 0; i < w->n_taken; i++)
        if (w->taken[i].is_safe)
            w->taken[n++] = w->taken[i];
    w->n_taken = n;
    for (int i = 0; i < w->n_before; i++)
        if (!w->before[i].is_safe)
            w->before[i].submit_s = NAN;
    w->next = (struct seen_job){ 0 };
}

int newcomers_n_foreign(const struct newcomers *w)
{
    return w->n_foreign;
}
