/* stage.h - the Slurm executor, a small Slurm behind it, and a state that hears every notice.
 *
 * What happens is a script of steps, one a word with its arguments, parted by ';'. Time passes
 * only by 'look S'. What was asked of Slurm, and what was told, is one transcript.
 */
#ifndef TESTS_UNIT_ACT_SLURM_STAGE_H
#define TESTS_UNIT_ACT_SLURM_STAGE_H

#include "act/slurm/inner.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "catalog/cluster/state.h"
#include "unit/act/slurm/fake.h"
#include "unit/support.h"

#define SITE "0123456789abcdef"
#define OWNER 1000

struct slurm_stage {
    struct world w;
    struct loop *loop;
    struct clock_manual time;
    struct clock clock;
    struct fake fake;
    struct slurm_setup setup;
    struct slurm *x;
    struct executor exec;
    bool is_deaf;     // notices stay where they are
    bool is_lossy;    // they are taken off, and the disk has none of it
    double skew_s;
    long n_requests;    // when they were last asked for
    struct arena arena;
};

/* ---- hearing ---- */

static inline void stage_say_notice(struct slurm_stage *s, const struct run_notice *n)
{
    static const char *const kinds[] = { "started", "stopped", "finished", "failed" };
    struct fake *f = &s->fake;

    fake_note(f, "> %s %s.%d", kinds[n->kind], s->w.ledger.state.jobs[n->job]->spec.name, n->run);
    for (int i = 0; i < n->n_gpus && n->kind == NOTICE_STARTED; i++)
        fake_note(f, "%s%d", i ? "," : " on ", n->gpus[i]);
    fake_note(f, "%s%s%s\n", n->is_move ? " moved" : "", n->reason ? ": " : "",
              n->reason ? n->reason : "");
}

static inline void stage_apply(struct slurm_stage *s, const struct run_notice *n)
{
    static const enum event_kind kinds[] = { EVENT_JOB_STARTED, EVENT_JOB_STOPPED,
                                             EVENT_JOB_FINISHED, EVENT_JOB_FAILED };
    const struct event ev = { .kind = kinds[n->kind],
                              .time_s = n->time_s,
                              .job = n->job,
                              .gpus = n->gpus,
                              .n_gpus = n->n_gpus,
                              .steps_done = s->w.ledger.state.jobs[n->job]->steps_done,
                              .reason = n->reason };
    struct err e = { 0 };

    if (state_apply(&s->w.ledger.state, &ev, &e) < 0)
        fake_note(&s->fake, "> refused: %s\n", e.text);
}

static inline void stage_hear_changes(struct slurm_stage *s)
{
    static const struct {
        const char *word;
        enum event_kind kind;
    } changes[] = { [JOB_IS_HELD] = { "held", EVENT_JOB_HELD },
                    [JOB_IS_RELEASED] = { "released", EVENT_JOB_RELEASED },
                    [JOB_IS_CANCELLED] = { "cancelled", EVENT_JOB_CANCELLED } };
    struct engine_change c;

    while (executor_next_change(&s->exec, &c)) {
        const bool is_plain = strcmp(c.reason, "by Slurm's commands") == 0;
        const struct event ev = {
            .kind = changes[c.change].kind, .time_s = c.time_s, .job = c.job, .reason = c.reason
        };

        fake_note(&s->fake, "> %s %s%s%s\n", changes[c.change].word,
                  s->w.ledger.state.jobs[c.job]->spec.name, is_plain ? "" : ": ",
                  is_plain ? "" : c.reason);
        if (!s->is_lossy)
            (void)state_apply(&s->w.ledger.state, &ev, NULL);
    }
}

/* What the engine says of itself under that key. */
static inline struct engine_fact stage_fact(const struct slurm_stage *s, const char *key)
{
    struct engine_fact facts[ENGINE_FACTS_MAX];
    const int n = executor_facts(&s->exec, facts);

    for (int i = 0; i < n; i++)
        if (facts[i].key && strcmp(facts[i].key, key) == 0)
            return facts[i];
    ck_abort_msg("there is no fact '%s'", key);
}

static inline void stage_hear(void *self)
{
    struct slurm_stage *s = self;
    struct run_notice n;

    while (!s->is_deaf && s->exec.next(s->exec.self, &n)) {
        stage_say_notice(s, &n);
        if (!s->is_lossy)
            stage_apply(s, &n);
        s->exec.done(s->exec.self);
    }
    if (!s->is_deaf)
        stage_hear_changes(s);
    executor_committed(&s->exec, true);
}

/* ---- life ---- */

/* Until nobody has anything to say. */
static inline void stage_pump(struct slurm_stage *s)
{
    struct err e = { 0 };

    for (int idle = 0; idle < 3; idle++) {
        const bool is_up = !s->x || link_is_up(s->x->link);

        ck_assert_int_eq(loop_turn(s->loop, is_up ? 0 : 0.001, &e), 0);
        if (fake_serve(&s->fake) || !is_up || (s->x && link_n_pending(s->x->link) > 0))
            idle = 0;
    }
}

static inline void stage_wake(struct slurm_stage *s)
{
    struct err e = { 0 };
    const int rc = slurm_create(&s->setup, &s->x, &e);

    ck_assert_msg(rc == 0, "%s", e.text);
    s->x->skew_s = s->skew_s;
    for (int i = 0; i < s->x->n_managed; i++)
        s->x->managed[i]->doubt_s += s->skew_s;
    s->exec = slurm_executor(s->x);
    s->exec.on_news(s->exec.self, stage_hear, s);
    stage_pump(s);
}

static inline void stage_sleep(struct slurm_stage *s)
{
    slurm_destroy(s->x);
    s->x = NULL;
    fake_die(&s->fake);
}

static inline void stage_node(struct slurm_stage *s, const char *name, const char *gres,
                              int n_shards)
{
    struct fake_node *d = &s->fake.nodes[s->fake.n_nodes++];

    fake_set(d->name, sizeof d->name, name);
    fake_set(d->state, sizeof d->state, "idle");
    fake_set(d->gres, sizeof d->gres, gres);
    d->n_shards = n_shards;
}

static inline void stage_command(struct slurm_stage *s, int job, const char *more)
{
    struct state *st = &s->w.ledger.state;

    st->jobs[job]->spec.command = arena_printf(
        &st->arena, "{\"argv\":[\"train\"],\"cwd\":\"/home/u\",\"uid\":%d,\"gid\":%d%s}", OWNER,
        OWNER, more);
    st->jobs[job]->spec.submit_s = s->time.t_s;
}

/* It comes to Slurm first, and is taken in by the next view. */
static inline int stage_sbatch(struct slurm_stage *s, struct fake_job *j, const char *name,
                               const char *more)
{
    const struct slurm_job as = {
        .id = j->id, .array = j->array, .task = j->task, .submit_s = j->submit_s
    };
    struct job_spec spec = spec_of(arena_strdup(&s->arena, name), 0);
    char key[60];
    int job;

    j->uid = OWNER;
    slurm_key(&as, key, sizeof key);
    spec.key = arena_strdup(&s->arena, key);
    world_apply(&s->w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
    job = world_job(&s->w, name);
    stage_command(s, job, more);
    return job;
}

static inline void stage_open_with(struct slurm_stage *s, const char *text)
{
    struct err e = { 0 };

    *s = (struct slurm_stage){ .time = { .t_s = 1000 } };
    log_set_level(LOG_ERROR);
    fake_init(&s->fake);
    world_init(&s->w, text);
    s->clock = clock_manual(&s->time);
    ck_assert_int_eq(loop_create(&s->loop, &e), 0);
    s->setup = (struct slurm_setup){ .loop = s->loop,
                                     .clock = &s->clock,
                                     .state = &s->w.ledger.state,
                                     .catalog = &s->w.catalog,
                                     .partition = "gogh",
                                     .site = SITE,
                                     .theta = 2,
                                     .open = fake_open,
                                     .open_self = &s->fake,
                                     .poll_s = 1000,    // only when the test says so
                                     .grace_s = 20,
                                     .patience_s = 60,
                                     .wake_s = 100 };
    arena_init(&s->arena);
}

static inline void stage_close(struct slurm_stage *s)
{
    stage_sleep(s);
    loop_settle(s->loop, 1e9);
    loop_destroy(s->loop);
    world_release(&s->w);
    fake_release(&s->fake);
    arena_release(&s->arena);
}

/* ---- time ---- */

static inline void stage_pass_time(struct slurm_stage *s, double by_s)
{
    s->time.t_s += by_s;
    s->fake.now_s = s->time.t_s;
    s->skew_s += by_s;
    if (s->x)
        s->x->skew_s = s->skew_s;
}

static inline void stage_look(struct slurm_stage *s, double by_s)
{
    stage_pass_time(s, by_s);
    s->x->wants_nodes = true;
    look_on_timer(s->x);
    stage_pump(s);
}

#endif
