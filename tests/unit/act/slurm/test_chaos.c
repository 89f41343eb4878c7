/* A Slurm that crashes, forgets, answers late or not at all, users who meddle, a driver and a
 * daemon that die: whatever happens, no job is released twice, nobody else's is touched, and when
 * all is well again everybody is where the state has them. What has run to its end, or was
 * cancelled, does not run again.
 */
#include "unit/act/slurm/stage.h"

enum { N_GPUS = 6, N_JOBS = 9, N_STEPS = 100, N_SEEDS = 40 };

struct chaos {
    struct slurm_stage s;
    struct rng rng;
    uint64_t seed;
    bool has_finished[N_JOBS], has_failed[N_JOBS];    // in Slurm, ever
    bool is_done[N_JOBS];                             // for good: nobody asked it to end
    bool is_forgetful;                                // a crash may have lost an end
};

static bool chance(struct chaos *c, double p)
{
    return rng_uniform(&c->rng) < p;
}

static struct fake_job *some_job(struct chaos *c, const char *state)
{
    struct fake_job *found = NULL;
    uint64_t n = 0;

    for (int i = 0; i < FAKE_JOBS; i++) {
        struct fake_job *j = &c->s.fake.jobs[i];

        if (j->is_there && j->uid == OWNER && fake_is(j, state) && rng_below(&c->rng, ++n) == 0)
            found = j;
    }
    return found;
}

/* ---- what must always hold ---- */

static bool is_released(const struct fake_job *j)
{
    return fake_holds_node(j) || (fake_is(j, "PENDING") && strcmp(j->held, "no") == 0);
}

static int job_of(const struct fake_job *j)
{
    return j->name[0] - 'a';
}

/* What GOGH had seen to have ended is not put back; what ended just before the request may be. */
static void check_risen(struct chaos *c, struct fake_job *j)
{
    const struct managed *w = c->s.x ? managed_find(c->s.x, job_of(j)) : NULL;

    if (j->n_risen > 0 && c->is_done[job_of(j)]) {
        ck_assert_msg(!w || isnan(w->seen_s) || !slurm_has_ended(w->last.state) ||
                          w->last.id != j->id,
                      "seed %d: %s was put back after its end", (int)c->seed, j->name);
        c->is_done[job_of(j)] = false;
    }
    j->n_risen = 0;
}

static void check_done(struct chaos *c)
{
    for (int i = 0; i < FAKE_JOBS; i++) {
        struct fake_job *j = &c->s.fake.jobs[i];

        if (!j->is_there || j->uid != OWNER)
            continue;
        check_risen(c, j);
        ck_assert_msg(!c->is_done[job_of(j)] || !is_released(j),
                      "seed %d: %s has ended, and runs again", (int)c->seed, j->name);
    }
}

static void check_always(struct chaos *c)
{
    const struct fake *f = &c->s.fake;

    check_done(c);
    for (int i = 0; i < FAKE_JOBS; i++) {
        const struct fake_job *j = &f->jobs[i];
        int n = 0;

        if (!j->is_there)
            continue;
        ck_assert_msg(j->uid == OWNER || !*j->admin, "seed %d: job %ld of another user was touched",
                      (int)c->seed, j->id);
        for (int k = 0; k < FAKE_JOBS && j->uid == OWNER; k++)
            n += f->jobs[k].is_there && f->jobs[k].uid == OWNER && is_released(&f->jobs[k]) &&
                 strcmp(f->jobs[k].name, j->name) == 0;
        ck_assert_msg(n <= 1, "seed %d: %s was released twice", (int)c->seed, j->name);
    }
    for (int i = 0; i < f->n_nodes; i++)
        ck_assert_int_le(fake_used(f, f->nodes[i].name), f->nodes[i].n_shards);
    state_assert(&c->s.w.ledger.state);
}

/* ---- what happens ---- */

/* Whoever waits goes to some GPU that is to be had. */
static void plan(struct chaos *c, double p)
{
    const struct state *st = &c->s.w.ledger.state;
    const struct executor *x = &c->s.exec;

    for (int job = 0; job < st->n_jobs; job++) {
        const struct job *j = st->jobs[job];
        const int gpu = (int)rng_below(&c->rng, N_GPUS);
        const struct placement at = { .job = job, .n_gpus = 1, .gpus = &gpu };

        if (!chance(c, p) || x->job_is_busy(x->self, job) || x->gpu_is_busy(x->self, gpu) ||
            st->gpus[gpu].n_jobs >= 2)
            continue;
        if (j->state == JOB_WAITING)
            (void)x->start(x->self, &at, NULL);
        else if (j->state == JOB_RUNNING && chance(c, 0.3))
            (void)x->move(x->self, &at, NULL);
        else if (j->state == JOB_RUNNING && chance(c, 0.2))
            (void)x->stop(x->self, job, NULL);
    }
}

/* Its user is to say whether it has run. */
static bool is_parked(const struct job *j)
{
    return j->state == JOB_HELD && j->reason && strncmp(j->reason, "may have run", 12) == 0;
}

/* GOGH's users. */
static void ask_gogh(struct chaos *c)
{
    struct state *st = &c->s.w.ledger.state;
    const int job = (int)rng_below(&c->rng, N_JOBS);
    struct event ev = { .time_s = c->s.time.t_s, .job = job };

    if (job >= st->n_jobs || is_parked(st->jobs[job]))
        return;
    ev.kind = chance(c, 0.03)  ? EVENT_JOB_CANCELLED
              : chance(c, 0.5) ? EVENT_JOB_HELD
                               : EVENT_JOB_RELEASED;
    if (state_apply(st, &ev, NULL) < 0)
        return;
    if (ev.kind == EVENT_JOB_CANCELLED)
        (void)c->s.exec.cancel(c->s.exec.self, job, NULL);
    else if (ev.kind == EVENT_JOB_HELD)
        executor_job_is(&c->s.exec, job, JOB_IS_HELD);
}

static bool is_alone(const struct chaos *c, const struct fake_job *j)
{
    int n = 0;

    for (int i = 0; i < FAKE_JOBS; i++)
        n += c->s.fake.jobs[i].is_there && c->s.fake.jobs[i].uid == OWNER &&
             strcmp(c->s.fake.jobs[i].name, j->name) == 0;
    return n == 1;
}

static void end_run(struct chaos *c, struct fake_job *j)
{
    const int code = chance(c, 0.5) ? 0 : 3;
    const struct managed *w = c->s.x ? managed_find(c->s.x, job_of(j)) : NULL;
    const bool is_asked = strstr(j->admin, "asked=") || (w && managed_is_asked(w));

    fake_end(&c->s.fake, j, code ? "FAILED" : "COMPLETED", code, 0);
    *(code ? &c->has_failed[job_of(j)] : &c->has_finished[job_of(j)]) = true;
    c->is_done[job_of(j)] |= !code && !is_asked && is_alone(c, j);
}

/* Somebody with the right to do so lets a job run that GOGH has not placed. */
static void run_wild(struct chaos *c, struct fake_job *j)
{
    snprintf(j->pin, sizeof j->pin, "n%d", (int)rng_below(&c->rng, 4));
    fake_set(j->gres, sizeof j->gres, "gres:shard:1");
    fake_set(j->held, sizeof j->held, "no");
    j->n_shards = 1;
}

/* Slurm's users, nodes, and the jobs themselves. */
static void meddle(struct chaos *c)
{
    struct fake *f = &c->s.fake;
    struct fake_job *runs = some_job(c, "RUNNING"), *waits = some_job(c, "PENDING");

    if (runs && chance(c, 0.04)) {
        end_run(c, runs);
    } else if (runs && chance(c, 0.02)) {
        fake_end(f, runs, "CANCELLED", 0, 0);
        c->is_done[job_of(runs)] = is_alone(c, runs);
    } else if (runs && chance(c, 0.15)) {
        fake_requeued(f, runs, "no");
    } else if (runs && chance(c, 0.1)) {
        fake_end(f, runs, "NODE_FAIL", 0, 0);
    } else if (waits && strstr(waits->admin, "gogh1 new") && chance(c, 0.2)) {
        run_wild(c, waits);
    } else if (waits && chance(c, 0.1)) {
        fake_set(waits->held, sizeof waits->held,
                 chance(c, 0.5) || !is_alone(c, waits) ? "user" : "no");
    } else if (waits && chance(c, 0.005)) {
        fake_end(f, waits, "CANCELLED", 0, 0);
    } else if (chance(c, 0.1)) {
        struct fake_job *j = fake_add(f);    // another user's

        j->uid = 77;
        fake_set(j->name, sizeof j->name, "z");
    }
}

/* Of what Slurm forgets with that nobody can know that it has ended. */
static void crash(struct chaos *c)
{
    fake_crash(&c->s.fake, 5);
    c->is_forgetful = true;
    for (int i = 0; i < FAKE_JOBS; i++) {
        const struct fake_job *j = &c->s.fake.jobs[i];

        if (!j->is_there && j->uid == OWNER && j->born_s > c->s.fake.now_s - 5)
            c->is_done[job_of(j)] = false;
    }
}

/* GOGH is away, and what happens meanwhile Slurm may have forgotten when it is back. */
static void go_away(struct chaos *c)
{
    const double for_s = chance(c, 0.5) ? 400 : 3;

    stage_sleep(&c->s);
    for (int i = 0; i < 3; i++) {
        struct fake_job *runs;

        fake_schedule(&c->s.fake);
        runs = some_job(c, "RUNNING");
        if (runs && chance(c, 0.5))
            end_run(c, runs);
    }
    stage_pass_time(&c->s, for_s);
    c->is_forgetful |= for_s > 300;
    fake_purge(&c->s.fake);
    stage_wake(&c->s);
}

static void break_something(struct chaos *c)
{
    struct fake *f = &c->s.fake;

    if (chance(c, 0.3))
        f->fault = (enum fake_fault)rng_below(&c->rng, FAULTS);
    if (chance(c, 0.5))
        fake_do_late(f);
    if (chance(c, 0.1))
        f->is_down = chance(c, 0.3);
    if (chance(c, 0.1))
        f->is_lazy = chance(c, 0.3);
    if (chance(c, 0.1))
        f->is_cut = chance(c, 0.2);
    if (chance(c, 0.2)) {
        f->lingers = !f->lingers;
        if (!f->lingers)
            fake_settle(f);
    }
    if (chance(c, 0.05)) {
        crash(c);
    }
    if (chance(c, 0.05))
        fake_die(f);
    if (chance(c, 0.05)) {
        c->s.is_deaf = false;
        go_away(c);
    }
    fake_purge(f);
    c->s.is_deaf = chance(c, 0.1);
}

/* Through GOGH or by sbatch, with manners of all kinds. */
static void add_job(struct chaos *c)
{
    static const char *const mores[] = { "", ",\"retries\":2", ",\"checkpoint_signal\":\"USR1\"" };
    const char *more = mores[rng_below(&c->rng, 3)];
    struct state *st = &c->s.w.ledger.state;
    const int job = st->n_jobs;
    char name[20], line[40];

    snprintf(name, sizeof name, "%c%s", 'a' + job, chance(c, 0.5) ? "-saves" : "");
    if (chance(c, 0.3)) {
        struct fake_job *j = fake_add(&c->s.fake);

        fake_set(j->name, sizeof j->name, name);
        snprintf(j->admin, sizeof j->admin, "gogh1 new gres=gpu:1 nodes=1 held=no");
        (void)stage_sbatch(&c->s, j, name, more);
    } else {
        snprintf(line, sizeof line, "job %s w", name);
        world_add(&c->s.w, line);
        stage_command(&c->s, job, more);
    }
    executor_job_is(&c->s.exec, job, JOB_IS_NEW);
}

static void step(struct chaos *c)
{
    struct state *st = &c->s.w.ledger.state;

    if (st->n_jobs < N_JOBS && chance(c, 0.3))
        add_job(c);
    break_something(c);
    meddle(c);
    if (chance(c, 0.1))
        ask_gogh(c);
    plan(c, 0.5);
    stage_pump(&c->s);
    check_always(c);
    stage_look(&c->s, rng_between(&c->rng, 0.5, 6));
    check_always(c);
}

/* ---- when all is well again ---- */

static void heal(struct chaos *c)
{
    struct fake *f = &c->s.fake;
    struct state *st = &c->s.w.ledger.state;

    f->fault = FAULT_NONE;
    f->is_down = f->is_lazy = f->is_cut = f->lingers = false;
    c->s.is_deaf = false;
    fake_do_late(f);
    fake_settle(f);
    stage_hear(&c->s);
    for (int i = 0; i < 80; i++) {
        for (int job = 0; job < st->n_jobs; job++)
            if (st->jobs[job]->state == JOB_HELD)
                (void)state_apply(st,
                                  &(struct event){ .kind = is_parked(st->jobs[job])
                                                               ? EVENT_JOB_CANCELLED
                                                               : EVENT_JOB_RELEASED,
                                                   .job = job },
                                  NULL);
        if (i < 60)
            plan(c, 1);
        stage_look(&c->s, 2);
        check_always(c);
    }
}

/* Exactly one Slurm job for each that is not over, where the state has it. */
static void check_job(struct chaos *c, const struct job *j)
{
    const struct state *st = &c->s.w.ledger.state;
    const bool is_over = j->state != JOB_WAITING && j->state != JOB_RUNNING;
    const struct fake_job *found = NULL;
    int n = 0;

    for (int i = 0; i < FAKE_JOBS; i++) {
        const struct fake_job *k = &c->s.fake.jobs[i];

        if (!k->is_there || k->uid != OWNER || strcmp(k->name, j->spec.name) != 0 ||
            (!fake_holds_node(k) && !fake_is(k, "PENDING")))
            continue;
        found = k;
        n++;
    }
    ck_assert_msg(n == !is_over, "seed %d: job %s is %s, and Slurm has %d of it", (int)c->seed,
                  j->spec.name, job_state_name(j->state), n);
    if (is_over)
        return;
    ck_assert_msg(fake_is(found, "RUNNING") == (j->state == JOB_RUNNING),
                  "seed %d: job %s is %s and in Slurm %s, held %s", (int)c->seed, j->spec.name,
                  job_state_name(j->state), found->state, found->held);
    if (j->state == JOB_RUNNING)
        ck_assert_str_eq(found->nodes, st->nodes[st->gpus[j->gpus[0]].node].name);
}

TIMES(whatever_happens, suite_size(25, N_SEEDS))
{
    struct chaos *c = calloc(1, sizeof *c);
    const struct state *st = &c->s.w.ledger.state;

    c->seed = (uint64_t)_i;
    rng_init(&c->rng, c->seed, "chaos");
    stage_open_with(&c->s,
                    "type v100\nworkload w batch=8\nnode n0 v100\nnode n1 v100\nnode n2 v100\n"
                    "node n3 v100\nnode n4 v100 v100\n");
    c->s.fake.is_quiet = true;
    log_set_level(LOG_ERROR);
    c->s.fake.typed = c->seed % 2 ? "no" : NULL;
    for (int i = 0; i < 4; i++) {
        char name[20];

        snprintf(name, sizeof name, "n%d", i);
        stage_node(&c->s, name, "gpu:v100:1,shard:2", 2);
    }
    stage_node(&c->s, "n4", "gpu:v100_0:1,gpu:v100_1:1,shard:v100_0:2,shard:v100_1:2", 4);
    stage_wake(&c->s);
    stage_look(&c->s, 1);
    for (int i = 0; i < N_STEPS; i++)
        step(c);
    heal(c);
    for (int job = 0; job < st->n_jobs; job++) {
        const struct job *j = st->jobs[job];

        check_job(c, j);
        ck_assert_msg(j->state != JOB_FINISHED || c->has_finished[job] || c->is_forgetful,
                      "seed %d: job %s has not finished", (int)c->seed, j->spec.name);
        ck_assert_msg(j->state != JOB_FAILED || c->has_failed[job] || c->is_forgetful,
                      "seed %d: job %s has not failed: %s", (int)c->seed, j->spec.name, j->reason);
    }
    ck_assert_int_eq((int)stage_fact(&c->s, "under_way").number, 0);
    stage_close(&c->s);
    free(c);
}
