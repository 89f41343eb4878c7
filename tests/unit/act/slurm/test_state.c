/* The life of a managed job: every state with every event, and what states ask for. */
#include "unit/act/slurm/stage.h"

#define OF(event) (1u << (event))
#define WORLD                                                                            \
    "type v100\nworkload w batch=8\nnode n0 v100\nnode n1 v100\nnode n2 v100\njob a w\n" \
    "job b w\njob c w\njob d w\n"

enum { N_JOBS = 4, N_GPUS = 3, N_STEPS = 150, N_SEEDS = 20 };

/* ---- the arrows ---- */

/* What alone may lead to a state: so nothing runs, or is submitted, that nobody has seen or sent. */
static const struct {
    const char *name;
    enum managed_state to;
    unsigned events;
} enters[] = {
    { "is to be submitted only when Slurm has none of it", MANAGED_ABSENT,
      OF(ON_NEW) | OF(ON_SUBMIT_FAILED) | OF(ON_REPLACED) | OF(ON_LOST) },
    { "is submitted by a request", MANAGED_SUBMITTED, OF(ON_SUBMIT_SENT) },
    { "waits where a view, or a refusal, says so", MANAGED_HELD,
      OF(ON_PENDING) | OF(ON_PIN_FAILED) },
    { "is pinned by a request, or starts by itself", MANAGED_PINNED,
      OF(ON_PIN_SENT) | OF(ON_STARTING) },
    { "runs where it is seen, or cannot leave", MANAGED_RUNNING, OF(ON_RUNNING) | OF(ON_STAYS) },
    { "stops by an order, or where it must not be", MANAGED_STOPPING,
      OF(ON_STOP) | OF(ON_UNWANTED) | OF(ON_RETRY) },
    { "moves by an order", MANAGED_MOVING, OF(ON_MOVE) },
    { "is cancelled by GOGH", MANAGED_CANCELLING, OF(ON_CANCEL) | OF(ON_RISEN) },
    { "retires when it has served", MANAGED_RETIRING, OF(ON_SERVED) },
    { "ends", MANAGED_ENDED, OF(ON_CANCEL) | OF(ON_ENDED) | OF(ON_UNREPORTED) },
    { "has its end told", MANAGED_REPORTED, OF(ON_REPORTED) },
    { "is parked", MANAGED_PARKED, OF(ON_PARKED) },
    { "is taken", MANAGED_TAKEN, OF(ON_TAKEN) },
};

TEST(every_event_leads_somewhere_once)
{
    ck_assert_int_eq(sizeof enters / sizeof *enters, MANAGED_STATES);
    for (int s = 0; s < MANAGED_STATES; s++) {
        for (int e = 0; e < MANAGED_EVENTS; e++) {
            const enum managed_event event = (enum managed_event)e;
            const enum managed_state to = managed_next((enum managed_state)s, event);

            ck_assert_int_lt(to, MANAGED_STATES);
            ck_assert_int_eq(enters[to].to, to);
            ck_assert_msg((int)to == s || enters[to].events & OF(e),
                          "state %d: event %d, and it %s", s, e, enters[to].name);
            ck_assert_msg(managed_next(to, event) == to, "state %d: event %d twice", s, e);
        }
    }
}

/* Orders come at any time, and move nobody who has ended, or is about to for good. */
TEST(orders_bring_nobody_back)
{
    static const enum managed_state over[] = { MANAGED_CANCELLING, MANAGED_ENDED, MANAGED_REPORTED,
                                               MANAGED_TAKEN };
    static const enum managed_event orders[] = { ON_NEW, ON_STOP, ON_MOVE, ON_CANCEL };

    for (size_t s = 0; s < sizeof over / sizeof *over; s++)
        for (size_t e = 0; e < sizeof orders / sizeof *orders; e++)
            ck_assert_int_eq(managed_next(over[s], orders[e]), over[s]);
}

static unsigned reach(unsigned states)
{
    for (unsigned before = 0; before != states;) {
        before = states;
        for (int s = 0; s < MANAGED_STATES; s++)
            for (int e = 0; e < MANAGED_EVENTS && states & OF(s); e++)
                states |= OF(managed_next((enum managed_state)s, (enum managed_event)e));
    }
    return states;
}

TEST(no_state_is_a_trap_and_none_is_out_of_reach)
{
    for (int s = 0; s < MANAGED_STATES; s++)
        ck_assert_msg(reach(OF(s)) == OF(MANAGED_STATES) - 1, "from state %d: %x", s, reach(OF(s)));
}

/* ---- what states ask for ---- */

static struct fake_job *some_job(struct slurm_stage *s, struct rng *r)
{
    struct fake_job *j = &s->fake.jobs[rng_below(r, FAKE_JOBS)];

    for (int i = 0; i < FAKE_JOBS && !j->is_there; i++)
        j = &s->fake.jobs[rng_below(r, FAKE_JOBS)];
    return j->is_there ? j : NULL;
}

/* Users, nodes and Slurm: whatever they like. */
static void meddle(struct slurm_stage *s, struct rng *r)
{
    static const char *const ends[] = { "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL" };
    struct fake_job *j = some_job(s, r);
    const uint64_t what = rng_below(r, 9);

    if (j && what == 0 && fake_holds_node(j))
        fake_end(&s->fake, j, ends[rng_below(r, 4)], 0, 0);
    else if (j && what == 1 && fake_holds_node(j))
        fake_requeued(&s->fake, j, rng_below(r, 2) ? "no" : "user");
    else if (j && what == 2 && fake_is(j, "PENDING"))
        fake_set(j->held, sizeof j->held, rng_below(r, 2) ? "no" : "user");
    else if (j && what == 3 && rng_below(r, 4) == 0)
        j->is_there = false;
    else if (what == 4)
        s->fake.fault = (enum fake_fault)rng_below(r, FAULTS);
    else if (j && what == 5 && rng_below(r, 8) == 0)
        fake_set(j->partition, sizeof j->partition, rng_below(r, 2) ? "gogh" : "debug");
    else
        fake_schedule(&s->fake);
}

static void order(struct slurm_stage *s, struct rng *r)
{
    const int job = (int)rng_below(r, N_JOBS), gpu = (int)rng_below(r, N_GPUS);
    const struct placement p = { .job = job, .n_gpus = 1, .gpus = &gpu };

    switch (rng_below(r, 10)) {
    case 0:
        (void)s->exec.stop(s->exec.self, job, NULL);
        break;
    case 1:
    case 2:
        (void)s->exec.move(s->exec.self, &p, NULL);
        break;
    case 3:
        if (rng_below(r, 10) == 0)
            (void)s->exec.cancel(s->exec.self, job, NULL);
        break;
    case 4:
        executor_job_is(&s->exec, job, JOB_IS_HELD);
        break;
    default:
        (void)s->exec.start(s->exec.self, &p, NULL);
    }
}

static int n_asked(const struct slurm *x)
{
    int n = link_n_pending(x->link);

    for (int b = 0; b < BATCHES; b++)
        n += x->batch[b].n;
    return n;
}

/* Act, and act again: the second time nothing is asked, and nothing changes. */
static void act_twice(struct slurm *x, uint64_t seed, unsigned *met)
{
    for (int i = 0; x->is_up && link_is_up(x->link) && i < x->n_active; i++) {
        struct managed *m = x->active[i];
        enum managed_state state;
        int n_gpus, n;

        managed_action(x, m);
        n = n_asked(x);
        state = m->state;
        n_gpus = m->next.n_gpus;
        *met |= OF(state);
        managed_action(x, m);
        ck_assert_msg(n_asked(x) == n, "seed %d: state %d asks twice", (int)seed, state);
        ck_assert_int_eq(m->state, state);
        ck_assert_int_eq(m->next.n_gpus, n_gpus);
    }
    if (link_is_up(x->link))
        ask_flush(x);
}

TEST(acting_twice_is_acting_once)
{
    struct slurm_stage *s = calloc(1, sizeof *s);
    unsigned met = 0;

    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct rng r;

        rng_init(&r, seed, "state");
        stage_open_with(s, WORLD);
        s->fake.is_quiet = true;
        for (int i = 0; i < N_GPUS; i++)
            stage_node(s, s->w.ledger.state.nodes[i].name, "gpu:v100:1,shard:2", 2);
        for (int job = 0; job < N_JOBS; job++)
            stage_command(s, job, job % 2 ? ",\"checkpoint_signal\":\"USR1\"" : "");
        stage_wake(s);
        for (int i = 0; i < N_STEPS; i++) {
            if (i % 2)
                order(s, &r);
            else
                meddle(s, &r);
            act_twice(s->x, seed, &met);
            stage_look(s, rng_below(&r, 3) ? 2 : 12);
        }
        stage_close(s);
    }
    free(s);
    for (int state = 0; state <= MANAGED_CANCELLING; state++)
        ck_assert_msg(met & OF(state), "no job was ever in state %d", state);
}
