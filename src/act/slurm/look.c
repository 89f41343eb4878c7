/* Views: asked for every few seconds, collected line by line, believed when they are complete. */
#include "act/slurm/inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/wire.h"
#include "act/slurm/newcomers.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define SOON_S 0.5        // between two views, at least
#define WAIT_S 1.0        // while orders are under way
#define SOON_N 4          // views in quick succession after something was changed
#define NODES_EVERY 5     // views: nodes change less than jobs do
#define HELLO_EVERY 30    // views: slurmctld may have been restarted
#define YOUNG_S 10.0      // a slurmctld of that age does not know all that runs
#define IDLE_TIMES 3      // slower while nothing runs and nothing is to
#define SETTLED_S 30.0    // what Slurm has had for so long, no crash makes it forget
#define GONE_MAX 3        // more jobs than that do not vanish at once,
#define GONE_S 3600.0     // until they have been away for so long

/* ---- when ---- */

static bool is_idle(const struct slurm *x)
{
    for (int i = 0; i < x->n_active; i++)
        if (x->active[i]->state != MANAGED_HELD || x->active[i]->next.n_gpus > 0)
            return false;
    return true;
}

static bool is_under_way(const struct slurm *x)
{
    for (int i = 0; i < x->n_active; i++)
        if (managed_is_under_way(x->active[i]))
            return true;
    return false;
}

static double interval_s(const struct slurm *x)
{
    if (!x->is_up)
        return x->setup.poll_s;
    if (x->n_soon > 0)
        return fmin(SOON_S, x->setup.poll_s);
    if (is_under_way(x))
        return fmin(WAIT_S, x->setup.poll_s);
    return is_idle(x) ? IDLE_TIMES * x->setup.poll_s : x->setup.poll_s;
}

static void schedule(struct slurm *x)
{
    const double due_s = x->coming.asked_s + interval_s(x);

    if (!x->is_looking)
        loop_timer_set(&x->look, fmax(due_s - slurm_now_s(x), 0));
}

void look_soon(struct slurm *x)
{
    x->n_soon = SOON_N;
    schedule(x);
}

void slurm_set_down(struct slurm *x, const char *why)
{
    if (x->is_up)
        log_warn("Slurm does not answer: %s", why);
    x->is_up = false;
    snprintf(x->why_down, sizeof x->why_down, "%s", why);
}

/* ---- collecting ---- */

static void drop_unread(struct slurm *x)
{
    for (int i = 0; i < x->n_unread; i++)
        free(x->unread[i]);
    x->n_unread = 0;
}

bool look_is_unread(const struct slurm *x, const struct managed *m)
{
    for (int i = 0; i < x->n_unread; i++)
        if (strcmp(x->unread[i], m->number) == 0 || (x->n_unread > 0 && isnan(m->seen_s)))
            return true;
    return false;
}

static void take_job(struct slurm *x, const struct wire_message *m)
{
    struct arena *a = &x->job_arena[x->job_side];
    struct err e = { 0 };
    struct slurm_job j;

    if (slurm_job_read(a, m, &j, &e) < 0) {
        log_warn("Slurm: %s", e.text);
        x->coming.is_whole = false;
        return;
    }
    ARENA_GROW(a, x->coming.jobs, x->coming.n_jobs, x->cap_jobs);
    x->coming.jobs[x->coming.n_jobs++] = j;
}

static void take_other(struct slurm *x, const struct wire_message *m)
{
    struct arena *a = &x->job_arena[x->job_side];
    const char *nodes = wire_get(m, "nodes"), *gres = wire_get(m, "gres");

    ARENA_GROW(a, x->coming.others, x->coming.n_others, x->cap_others);
    x->coming.others[x->coming.n_others++] =
        (struct slurm_other){ .id = wire_get_long(m, "id", 0),
                              .nodes = arena_strdup(a, nodes ? nodes : ""),
                              .gres = arena_strdup(a, gres ? gres : ""),
                              .cpus = (int)wire_get_long(m, "cpus", 0),
                              .mem_mib = (int)wire_get_long(m, "mem_mib", 0) };
}

static void on_job_line(void *self, const struct wire_message *m)
{
    struct slurm *x = self;

    if (strcmp(m->verb, "job") == 0)
        take_job(x, m);
    else if (strcmp(m->verb, "other") == 0)
        take_other(x, m);
}

static void on_node_line(void *self, const struct wire_message *m)
{
    struct slurm *x = self;
    struct arena *a = &x->node_arena[x->node_side];
    struct err e = { 0 };
    struct slurm_node n;

    if (strcmp(m->verb, "node") != 0)
        return;
    if (slurm_node_read(a, m, &n, &e) < 0) {
        log_warn("Slurm: %s", e.text);
        x->is_node_partial = true;
        return;
    }
    ARENA_GROW(a, x->coming.nodes, x->coming.n_nodes, x->cap_nodes);
    x->coming.nodes[x->coming.n_nodes++] = n;
}

static int by_number(const void *a, const void *b)
{
    const struct slurm_job *p = a, *q = b;

    if (p->id != q->id)
        return p->id < q->id ? -1 : 1;
    return (p->task > q->task) - (p->task < q->task);
}

/* Nodes whose lines could not be read are as they were. */
static void add_unread_nodes(struct slurm *x)
{
    struct arena *a = &x->node_arena[x->node_side];
    struct slurm_view *v = &x->coming;
    const int n_read = v->n_nodes;

    for (int i = 0; i < x->view.n_nodes; i++) {
        struct slurm_node old = x->view.nodes[i];
        bool is_there = false;

        for (int k = 0; k < n_read && !is_there; k++)
            is_there = strcmp(v->nodes[k].name, old.name) == 0;
        if (is_there)
            continue;
        old.name = arena_strdup(a, old.name);
        old.gres = arena_strdup(a, old.gres);
        old.reason = arena_strdup(a, old.reason);
        old.features = arena_strdup(a, old.features);
        ARENA_GROW(a, v->nodes, v->n_nodes, x->cap_nodes);
        v->nodes[v->n_nodes++] = old;
    }
}

static void keep_view(struct slurm *x)
{
    struct slurm_view *v = &x->coming;

    if (v->n_jobs > 1)
        qsort(v->jobs, (size_t)v->n_jobs, sizeof *v->jobs, by_number);
    x->job_side = 1 - x->job_side;
    if (x->has_nodes) {
        if (x->is_node_partial)
            add_unread_nodes(x);
        x->node_side = 1 - x->node_side;
    } else {    // not asked for, this time
        v->nodes = x->view.nodes;
        v->n_nodes = x->view.n_nodes;
    }
    x->view = *v;
}

/* ---- believing ---- */

static void set_up(struct slurm *x)
{
    if (!x->is_up && x->n_views > 0) {
        log_warn("Slurm answers again");
        x->reborn_s = slurm_now_s(x);
    }
    x->is_up = true;
    x->n_views++;
    if (x->n_soon > 0)
        x->n_soon--;
}

/* Was it there for long, and must be there now? Of those that ran when we began it is known if
 * nobody was away for long.
 */
static bool is_expected(const struct slurm *x, const struct managed *m)
{
    const double since_s = isnan(x->gone_s) ? x->view.asked_s : x->gone_s;
    const struct job *j = managed_job(x, m);

    if (!isnan(m->absent_s) || managed_is_over(x, m))
        return false;
    if (isnan(m->seen_s))
        return j->state == JOB_RUNNING && m->away_s <= x->min_job_age_s &&
               slurm_wall_s(x) - j->changed_s > SETTLED_S;
    return !slurm_has_ended(m->last.state) && m->state != MANAGED_ABSENT &&
           m->state != MANAGED_SUBMITTED && m->seen_s - m->first_s > SETTLED_S &&
           since_s - m->seen_s <= x->min_job_age_s;
}

/* Jobs that end stay in the listing for a while: of those that it had for long, most are missing
 * at once only where the listing is another one. Goghd may not see all jobs any more, the
 * partition has another name, slurmctld began without its files.
 */
static bool is_implausible(struct slurm *x)
{
    int n = 0, n_gone = 0;

    for (int i = 0; i < x->n_active; i++) {
        const struct managed *m = x->active[i];

        if (!is_expected(x, m))
            continue;
        n++;
        n_gone += !m->now;
    }
    if (!x->view.is_whole || n_gone <= GONE_MAX || 2 * n_gone <= n) {
        x->gone_s = (double)NAN;
        return false;
    }
    if (isnan(x->gone_s)) {
        log_error(
            "%d of %d jobs are missing from Slurm's listing at once; nothing is done until they "
            "are back, or an hour is over: may goghd still see all jobs of partition %s?",
            n_gone, n, x->setup.partition);
        x->gone_s = x->view.asked_s;
    }
    snprintf(x->why_down, sizeof x->why_down, "%d of %d jobs are missing from its listing at once",
             n_gone, n);
    return x->view.asked_s < x->gone_s + GONE_S;
}

/* Whoever is shown the view may change the state by it: nodes and jobs come first. */
static void believe(struct slurm *x, uint64_t seq)
{
    keep_view(x);
    x->view_seq = seq;
    x->has_view = true;
    nodes_learn(x);
    match_view(x);
    if (is_implausible(x)) {
        x->is_up = x->has_nodes = false;
        x->wants_nodes = true;
        return;
    }
    set_up(x);
    if (x->setup.take_job) {
        newcomers_see(x->newcomers, &x->view, slurm_wall_s(x));
        x->setup.on_view(x->setup.owner);
        x->has_nodes = false;
        nodes_learn(x);
        match_view(x);
    }
    x->has_nodes = false;
    for (int i = x->n_active - 1; i >= 0; i--)
        see_managed(x, x->active[i]);
    match_strays(x);
    x->is_believing = true;
    slurm_pass(x);
    x->is_believing = false;
    nodes_hurry(x);
}

static void on_nodes_end(void *self, const struct link_end *how)
{
    struct slurm *x = self;

    x->has_nodes = how->outcome == LINK_DONE;
    x->is_node_failed = !x->has_nodes;
    snprintf(x->why_nodes, sizeof x->why_nodes, "%s", how->text);
}

static void on_jobs_end(void *self, const struct link_end *how)
{
    struct slurm *x = self;

    x->is_looking = false;
    if (how->outcome == LINK_DONE && !x->is_node_failed && (x->has_nodes || x->n_views > 0)) {
        believe(x, how->seq);
    } else {
        slurm_set_down(x, x->is_node_failed && *x->why_nodes ? x->why_nodes
                          : *how->text                       ? how->text
                                                             : "no answer");
        x->wants_nodes = true;
    }
    schedule(x);
}

/* ---- asking ---- */

static void on_config(void *self, const struct wire_message *m)
{
    struct slurm *x = self;
    const char *version = wire_get(m, "version"), *can = wire_get(m, "can_move_typed");
    const double age_s = wire_get_double(m, "min_job_age_s");
    const double boot_s = wire_get_double(m, "boot_s");

    if (strcmp(m->verb, "config") != 0)
        return;
    snprintf(x->version, sizeof x->version, "%s", version ? version : "");
    x->can_move_typed = !can || strcmp(can, "no") != 0;
    if (!isnan(age_s))
        x->min_job_age_s = age_s;
    if (isnan(x->boot_s) ? slurm_wall_s(x) < boot_s + YOUNG_S
                         : boot_s < x->boot_s || boot_s > x->boot_s)
        x->reborn_s = slurm_now_s(x);
    if (!isnan(boot_s))
        x->boot_s = boot_s;
}

static void on_hello_end(void *self, const struct link_end *how)
{
    struct slurm *x = self;

    if (how->outcome == LINK_FAILED && how->kind == LINK_MISUSE)
        log_error("the Slurm driver does not speak our protocol: %s", how->text);
    else if (how->outcome != LINK_DONE)
        x->n_since_hello = HELLO_EVERY;    // with the next view
}

static void say_hello(struct slurm *x)
{
    x->n_since_hello = 0;
    wire_put_long(link_begin(x->link, "hello"), "protocol", 1);
    link_ask(x->link, on_config, on_hello_end, x);
}

static void ask_nodes(struct slurm *x)
{
    arena_reset(&x->node_arena[x->node_side]);
    x->is_node_partial = false;
    x->n_since_nodes = 0;
    x->wants_nodes = false;
    wire_put(link_begin(x->link, "nodes"), "partition", x->setup.partition);
    link_ask(x->link, on_node_line, on_nodes_end, x);
}

void look_on_timer(void *self)
{
    struct slurm *x = self;

    if (!link_is_up(x->link) || x->is_looking)
        return;
    x->is_looking = true;
    x->has_nodes = x->is_node_failed = false;
    drop_unread(x);
    x->coming = (struct slurm_view){ .time_s = slurm_wall_s(x),
                                     .asked_s = slurm_now_s(x),
                                     .is_whole = true };
    x->cap_jobs = x->cap_others = x->cap_nodes = 0;
    if (++x->n_since_hello >= HELLO_EVERY)
        say_hello(x);
    if (++x->n_since_nodes >= NODES_EVERY || x->wants_nodes || !x->has_view)
        ask_nodes(x);
    arena_reset(&x->job_arena[x->job_side]);
    wire_put(link_begin(x->link, "jobs"), "partition", x->setup.partition);
    link_ask(x->link, on_job_line, on_jobs_end, x);
}

void look_begin(void *self)
{
    struct slurm *x = self;

    x->is_looking = false;
    x->calls_before = x->n_calls;
    x->late_before = x->n_late;
    say_hello(x);
    loop_timer_set(&x->look, 0);
}

/* ---- what the driver says by itself ---- */

static void on_state(struct slurm *x, const struct wire_message *m)
{
    const char *word = wire_get(m, "slurm"), *text = wire_get(m, "text");

    if (word && strcmp(word, "down") == 0)
        slurm_set_down(x, text ? text : "");
    else if (word && !x->is_looking && link_is_up(x->link)) {
        say_hello(x);
        loop_timer_set(&x->look, 0);
    }
}

/* Lines that cannot be read: whose they are is told, or else anybody's. */
static void on_trouble(struct slurm *x, const struct wire_message *m)
{
    const char *text = wire_get(m, "text"), *of = wire_get(m, "of");
    const long n = wire_get_long(m, "n", 1);
    long n_named = 0;

    if (!text || strncmp(x->trouble, text, sizeof x->trouble - 1) != 0)
        log_warn("Slurm: %ld lines of a listing cannot be read: %s", n, text ? text : "");
    snprintf(x->trouble, sizeof x->trouble, "%s", text ? text : "");
    if (of && strcmp(of, "jobs") != 0) {
        x->is_node_partial |= strcmp(of, "nodes") == 0;
        return;
    }
    for (int i = 0; i < m->n_pairs; i++) {
        if (strcmp(m->pairs[i].key, "id") != 0)
            continue;
        GROW(x->unread, x->n_unread, x->cap_unread);
        x->unread[x->n_unread++] = heap_text(m->pairs[i].value);
        n_named++;
    }
    x->coming.is_whole &= n_named >= n;
}

void look_on_line(void *self, const struct wire_message *m)
{
    struct slurm *x = self;

    if (strcmp(m->verb, "state") == 0) {
        on_state(x, m);
    } else if (strcmp(m->verb, "calls") == 0) {
        x->n_calls = x->calls_before + (uint64_t)wire_get_long(m, "n", 0);
        x->n_late = x->late_before + (uint64_t)wire_get_long(m, "late", 0);
    } else if (strcmp(m->verb, "trouble") == 0) {
        on_trouble(x, m);
    }
}

void look_release(struct slurm *x)
{
    drop_unread(x);
    free(x->unread);
    loop_timer_clear(&x->look);
    for (int i = 0; i < 2; i++) {
        arena_release(&x->job_arena[i]);
        arena_release(&x->node_arena[i]);
    }
}
