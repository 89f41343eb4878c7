/* Jobs as Slurm has them, and what becomes of orders: scripts and the transcripts they must give. */
#include "unit/act/slurm/stage.h"

#include <limits.h>

#include "catalog/cluster/engine.h"

/* Four nodes of one GPU, and one of two with a gres type for each. */
#define WORLD                                                                                 \
    "type v100\nworkload w batch=8\nnode n0 v100\nnode n1 v100\nnode n2 v100\nnode n3 v100\n" \
    "node n4 v100 v100\n"

/* ---- steps ---- */

struct step {
    char word[6][60];
    int n;
};

static int job_of(struct slurm_stage *s, const char *name)
{
    return world_job(&s->w, name);
}

/* The Slurm job that counts for 'name': the youngest of it. */
static struct fake_job *slurm_job_of(struct slurm_stage *s, const char *name)
{
    struct fake_job *found = NULL;

    for (int i = 0; i < FAKE_JOBS; i++)
        if (s->fake.jobs[i].is_there && strcmp(s->fake.jobs[i].name, name) == 0 &&
            (!found || s->fake.jobs[i].id > found->id))
            found = &s->fake.jobs[i];
    ck_assert_msg(found, "no Slurm job is called %s", name);
    return found;
}

static void give(struct slurm_stage *s, const char *what, const struct step *t)
{
    struct placement p = { .job = job_of(s, t->word[1]) };
    int gpus[4], rc;
    struct err e = { 0 };

    for (char *at = (char *)t->word[2]; *at; at += strspn(at, ","))
        gpus[p.n_gpus++] = (int)strtol(at, &at, 10);
    p.gpus = gpus;
    if (strcmp(what, "start") == 0)
        rc = s->exec.start(s->exec.self, &p, &e);
    else if (strcmp(what, "move") == 0)
        rc = s->exec.move(s->exec.self, &p, &e);
    else if (strcmp(what, "stop") == 0)
        rc = s->exec.stop(s->exec.self, p.job, &e);
    else
        rc = s->exec.cancel(s->exec.self, p.job, &e);
    if (rc < 0)
        fake_note(&s->fake, "! %s\n", e.text);
    stage_pump(s);
}

/* "new NAME [key=value ...] [USR1] [retries]": submitted through GOGH. */
static void submit(struct slurm_stage *s, const struct step *t)
{
    const char *line = arena_printf(&s->arena, "job %s w", t->word[1]), *more = "";

    for (int i = 2; i < t->n; i++) {
        if (strcmp(t->word[i], "USR1") == 0)
            more = ",\"checkpoint_signal\":\"USR1\"";
        else if (strcmp(t->word[i], "retries") == 0)
            more = ",\"retries\":1,\"timeout_s\":61";
        else
            line = arena_printf(&s->arena, "%s %s", line, t->word[i]);
    }
    world_add(&s->w, line);
    stage_command(s, job_of(s, t->word[1]), more);
    if (s->x)
        executor_job_is(&s->exec, job_of(s, t->word[1]), JOB_IS_NEW);
}

/* "service NAME"; "replica NAME GPU", of the first job, with a command that may be tried again. */
static void serve(struct slurm_stage *s, const struct step *t)
{
    static const struct service_terms terms = { .latency_s = 0.2, .max_batch = 8 };
    const bool is_replica = strcmp(t->word[0], "replica") == 0;
    struct job_spec spec = spec_of(arena_strdup(&s->arena, t->word[1]), 0);

    spec.kind = is_replica ? JOB_REPLICA : JOB_SERVICE;
    spec.steps = 0;
    spec.rate = 5;
    spec.terms = &terms;
    spec.gpu = is_replica ? (int)strtol(t->word[2], NULL, 10) : 0;
    world_apply(&s->w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
    stage_command(s, job_of(s, t->word[1]), ",\"retries\":2");
    executor_job_is(&s->exec, job_of(s, t->word[1]), JOB_IS_NEW);
    stage_pump(s);
}

/* "sbatch NAME [held]", "array NAME": it comes to Slurm first, and is taken in by the next view. */
static void take_in(struct slurm_stage *s, const struct step *t)
{
    struct fake_job *j = fake_add(&s->fake);

    fake_set(j->name, sizeof j->name, t->word[1]);
    snprintf(j->admin, sizeof j->admin, "gogh1 new gres=gpu:1 nodes=1 held=no");
    if (strcmp(t->word[0], "array") == 0) {
        j->array = j->id;
        j->task = 3;
    }
    (void)stage_sbatch(s, j, t->word[1], "");
    if (t->n > 2)
        world_add(&s->w, arena_printf(&s->arena, "hold %s", t->word[1]));
    executor_job_is(&s->exec, job_of(s, t->word[1]), JOB_IS_NEW);
}

/* "tasks NAME N": an array that Slurm has not split. Those called 'u' are taken in. */
static void take_tasks(struct slurm_stage *s, const struct step *t)
{
    const long id = s->fake.next_id, n = strtol(t->word[2], NULL, 10);

    for (long task = 0; task < n; task++) {
        struct fake_job *j = fake_add(&s->fake);
        const char *name = arena_printf(&s->arena, "%s%ld", t->word[1], task);

        j->id = j->array = id;
        j->task = task;
        j->uid = OWNER;
        fake_set(j->name, sizeof j->name, t->word[1]);
        fake_set(j->held, sizeof j->held, "admin");
        if (strcmp(t->word[1], "u") == 0)
            executor_job_is(&s->exec, stage_sbatch(s, j, name, ""), JOB_IS_NEW);
    }
}

static bool do_order(struct slurm_stage *s, const struct step *t)
{
    const char *what = t->word[0];

    if (strcmp(what, "start") == 0 || strcmp(what, "move") == 0 || strcmp(what, "stop") == 0) {
        give(s, what, t);
    } else if (strcmp(what, "cancel") == 0) {
        world_add(&s->w, arena_printf(&s->arena, "cancel %s", t->word[1]));
        give(s, what, t);
    } else if (strcmp(what, "hold") == 0) {
        world_add(&s->w, arena_printf(&s->arena, "hold %s", t->word[1]));
        executor_job_is(&s->exec, job_of(s, t->word[1]), JOB_IS_HELD);
        stage_pump(s);
    } else if (strcmp(what, "release") == 0) {
        world_add(&s->w, arena_printf(&s->arena, "release %s", t->word[1]));
    } else if (strcmp(what, "tasks") == 0) {
        take_tasks(s, t);
    } else if (strcmp(what, "new") == 0) {
        submit(s, t);
        stage_pump(s);
    } else if (strcmp(what, "sbatch") == 0 || strcmp(what, "array") == 0) {
        take_in(s, t);
    } else if (strcmp(what, "service") == 0 || strcmp(what, "replica") == 0) {
        serve(s, t);
    } else {
        return false;
    }
    return true;
}

/* What users and nodes do. A "node NAME" without a state is one whose lines cannot be read. */
static bool do_slurm(struct slurm_stage *s, const struct step *t)
{
    struct fake *f = &s->fake;
    const char *what = t->word[0];

    if (strcmp(what, "exit") == 0) {
        const int code = (int)strtol(t->word[2], NULL, 10);

        fake_end(f, slurm_job_of(s, t->word[1]), code ? "FAILED" : "COMPLETED", code, 0);
    } else if (strcmp(what, "kill") == 0) {
        fake_end(f, slurm_job_of(s, t->word[1]), "FAILED", 0, 9);
    } else if (strcmp(what, "ends") == 0) {
        fake_end(f, slurm_job_of(s, t->word[1]), t->word[2], 0, 0);
    } else if (strcmp(what, "scancel") == 0) {
        fake_end(f, slurm_job_of(s, t->word[1]), "CANCELLED", 0, 0);
    } else if (strcmp(what, "held") == 0) {
        fake_set(slurm_job_of(s, t->word[1])->held, 8, t->word[2]);
    } else if (strcmp(what, "requeued") == 0) {
        fake_requeued(f, slurm_job_of(s, t->word[1]), t->word[2]);
    } else if (strcmp(what, "forget") == 0) {
        slurm_job_of(s, t->word[1])->is_there = false;
    } else if (strcmp(what, "reason") == 0) {
        fake_set(slurm_job_of(s, t->word[1])->reason, 60, t->word[2]);
    } else if (strcmp(what, "partition") == 0) {
        fake_set(slurm_job_of(s, t->word[1])->partition, 20, t->word[2]);
    } else if (strcmp(what, "recall") == 0) {
        for (int i = 0; i < FAKE_JOBS; i++)
            if (strcmp(f->jobs[i].name, t->word[1]) == 0)
                f->jobs[i].is_there = true;
    } else if (strcmp(what, "twin0") == 0) {    // another user's, with nothing of ours
        fake_add(f)->uid = 77;
    } else if (strcmp(what, "node") == 0) {
        for (int i = 0; i < f->n_nodes; i++)
            if (strcmp(f->nodes[i].name, t->word[1]) == 0)
                fake_set(f->nodes[i].state, sizeof f->nodes[i].state, t->word[2]);
    } else if (strcmp(what, "twin") == 0) {    // one more with the token of a job
        struct fake_job *j = slurm_job_of(s, t->word[1]), *twin = fake_add(f);

        memcpy(twin->comment, j->comment, sizeof twin->comment);
        snprintf(twin->name, sizeof twin->name, "twin");
        fake_set(twin->state, sizeof twin->state, t->word[2]);
        twin->uid = t->n > 3 ? 77 : OWNER;
    } else {
        return false;
    }
    return true;
}

/* As it was before it was pinned: a slurmctld that was killed had not saved that. */
static void unpin(struct fake_job *j)
{
    fake_set(j->state, sizeof j->state, "PENDING");
    fake_set(j->held, sizeof j->held, "user");
    fake_set(j->nodes, sizeof j->nodes, "");
    fake_set(j->pin, sizeof j->pin, "");
    fake_set(j->admin, sizeof j->admin, "");
    j->start_s = 0;
}

/* Runs where it likes: "runs NAME NODE GRES". */
static void run_wild(struct slurm_stage *s, const struct step *t)
{
    struct fake_job *j = slurm_job_of(s, t->word[1]);

    fake_set(j->state, sizeof j->state, "RUNNING");
    fake_set(j->held, sizeof j->held, "no");
    fake_set(j->nodes, sizeof j->nodes, t->word[2]);
    fake_set(j->gres, sizeof j->gres, t->word[3]);
    j->start_s = s->fake.now_s;
}

static bool do_setting(struct slurm_stage *s, const struct step *t)
{
    struct fake *f = &s->fake;
    const char *what = t->word[0];

    if (strcmp(what, "runs") == 0) {
        run_wild(s, t);
    } else if (strcmp(what, "unpin") == 0) {
        unpin(slurm_job_of(s, t->word[1]));
    } else if (strcmp(what, "index") == 0) {
        fake_set(f->index, sizeof f->index, t->word[1]);
    } else if (strcmp(what, "other") == 0) {
        fake_set(f->other_nodes, sizeof f->other_nodes, t->n > 1 ? t->word[1] : "");
        fake_set(f->other_gres, sizeof f->other_gres, t->n > 2 ? t->word[2] : "");
    } else if (strcmp(what, "sleep") == 0) {
        s->x->setup.sleep_after_s = strtod(t->word[1], NULL);
    } else if (strcmp(what, "typed") == 0) {
        f->typed = "no";
    } else if (strcmp(what, "hello") == 0) {
        fake_die(f);
        stage_pump(s);
    } else if (strcmp(what, "shadow") == 0) {
        s->setup.only_watches = s->x->setup.only_watches = true;
    } else if (strcmp(what, "done") == 0) {
        s->w.ledger.state.jobs[job_of(s, t->word[1])]->steps_done = 1e9;
    } else if (strcmp(what, "strays") == 0) {
        fake_note(f, "strays %d\n", (int)stage_fact(s, "strays").number);
    } else if (strcmp(what, "bare") == 0) {
        world_add(&s->w, arena_printf(&s->arena, "job %s w", t->word[1]));
        executor_job_is(&s->exec, job_of(s, t->word[1]), JOB_IS_NEW);
        stage_pump(s);
    } else if (strcmp(what, "stranger") == 0) {
        fake_set(fake_add(f)->name, 40, t->word[1]);
    } else if (strcmp(what, "refuse") == 0) {
        for (int i = 0; i < s->x->view.n_jobs; i++)
            if (strcmp(s->x->view.jobs[i].name, t->word[1]) == 0)
                slurm_refuse(s->x, &s->x->view.jobs[i], "no such workload");
        stage_pump(s);
    } else {
        return false;
    }
    return true;
}

static bool do_fault(struct slurm_stage *s, const struct step *t)
{
    static const char *const faults[] = { "none", "refused", "unknown", "unknown_done",
                                          "late", "die",     "die_done" };
    struct fake *f = &s->fake;
    const char *what = t->word[0];

    if (strcmp(what, "fault") == 0) {
        for (int i = 0; i < FAULTS; i++)
            if (strcmp(t->word[1], faults[i]) == 0)
                f->fault = (enum fake_fault)i;
    } else if (strcmp(what, "late") == 0) {
        fake_do_late(f);
    } else if (strcmp(what, "down") == 0) {
        f->is_down = true;
    } else if (strcmp(what, "up") == 0) {
        f->is_down = false;
    } else if (strcmp(what, "lazy") == 0) {
        f->is_lazy = t->n < 2;
    } else if (strcmp(what, "lingers") == 0) {
        f->lingers = true;
    } else if (strcmp(what, "settle") == 0) {
        f->lingers = false;
        fake_settle(f);
    } else if (strcmp(what, "hide") == 0) {
        f->hides = t->n < 2;
    } else if (strcmp(what, "cut") == 0) {
        f->is_cut = t->n < 2 || strcmp(t->word[1], "off") != 0;
        fake_set(f->cut_id, sizeof f->cut_id, f->is_cut && t->n > 1 ? t->word[1] : "");
    } else if (strcmp(what, "die") == 0) {
        fake_die(f);
        stage_pump(s);
    } else if (strcmp(what, "deaf") == 0) {
        s->is_deaf = t->n < 2;
        stage_hear(s);
    } else if (strcmp(what, "sched") == 0) {
        fake_schedule(f);
    } else if (strcmp(what, "lossy") == 0) {
        s->is_lossy = t->n < 2;
    } else if (strcmp(what, "restart") == 0) {
        stage_sleep(s);
        stage_wake(s);
    } else if (strcmp(what, "away") == 0) {
        stage_sleep(s);
        stage_pass_time(s, strtod(t->word[1], NULL));
    } else if (strcmp(what, "back") == 0) {
        stage_wake(s);
    } else if (strcmp(what, "crash") == 0) {
        fake_crash(f, strtod(t->word[1], NULL));
    } else {
        return do_setting(s, t);
    }
    return true;
}

/* "has NODE CPUS MIB FEATURES SECONDS", "asks JOB ...": '-' and 0 say nothing. */
static void set_needs(struct fake_needs *out, const struct step *t)
{
    *out = (struct fake_needs){ .cpus = (int)strtol(t->word[2], NULL, 10),
                                .mem_mib = (int)strtol(t->word[3], NULL, 10),
                                .limit_s = (int)strtol(t->word[5], NULL, 10) };
    if (strcmp(t->word[4], "-") != 0)
        fake_set(out->features, sizeof out->features, t->word[4]);
}

/* What cannot be done with a job: "a: 2 CPUs, 50 MiB; n0 has 4, 1000; n1 feature; bound; device 2". */
static void tell_rules(struct slurm_stage *s, const char *name)
{
    const struct state *st = &s->w.ledger.state;
    const int job = job_of(s, name);
    struct engine_rules r = { 0 };

    if (!s->exec.rules(s->exec.self, &s->arena, &job, 1, &r)) {
        fake_note(&s->fake, "no rules\n");
        return;
    }
    fake_note(&s->fake, "%s: %d CPUs, %d MiB", name, r.jobs[0].cpus, r.jobs[0].mem_mib);
    for (int n = 0; n < st->n_nodes; n++)
        if (r.nodes[n].cpus < LONG_MAX)
            fake_note(&s->fake, "; %s has %ld, %ld", st->nodes[n].name, r.nodes[n].cpus,
                      r.nodes[n].mem_mib);
    for (int n = 0; n < st->n_nodes && r.jobs[0].barred; n++)
        if (r.jobs[0].barred[n])
            fake_note(&s->fake, "; %s %s", st->nodes[n].name,
                      engine_rule_name((enum engine_rule)r.jobs[0].barred[n]));
    fake_note(&s->fake, r.jobs[0].is_bound ? "; bound" : "");
    if (r.jobs[0].device)
        fake_note(&s->fake, "; device %d of", r.jobs[0].device);
    for (int g = 0; g < st->n_gpus && r.jobs[0].device; g++)
        fake_note(&s->fake, " %d", r.devices[g]);
    fake_note(&s->fake, "\n");
}

static bool do_rules(struct slurm_stage *s, const struct step *t)
{
    if (strcmp(t->word[0], "has") == 0) {
        for (int i = 0; i < s->fake.n_nodes; i++)
            if (strcmp(s->fake.nodes[i].name, t->word[1]) == 0)
                set_needs(&s->fake.nodes[i].has, t);
    } else if (strcmp(t->word[0], "asks") == 0) {
        set_needs(&slurm_job_of(s, t->word[1])->needs, t);
    } else if (strcmp(t->word[0], "address") == 0) {
        fake_set(s->fake.nodes[0].address, 20, t->word[1]);
    } else if (strcmp(t->word[0], "where") == 0) {
        const char *at = executor_address(&s->exec, &s->w.ledger.state, 0);

        fake_note(&s->fake, "n0 is at %s\n", at ? at : "?");
    } else if (strcmp(t->word[0], "rules") == 0) {
        tell_rules(s, t->word[1]);
    } else {
        return false;
    }
    return true;
}

static bool do_look(struct slurm_stage *s, const struct step *t)
{
    if (strcmp(t->word[0], "jump") == 0) {    // the wall clock alone
        s->time.t_s += strtod(t->word[1], NULL);
    } else if (strcmp(t->word[0], "asked") == 0) {    // how often
        fake_note(&s->fake, "asked %ld\n", s->fake.n_requests - s->n_requests);
        s->n_requests = s->fake.n_requests;
    } else if (strcmp(t->word[0], "plannable") == 0) {
        fake_note(&s->fake, "%s %s\n", t->word[1],
                  s->exec.job_is_busy(s->exec.self, job_of(s, t->word[1])) ? "is busy"
                                                                           : "may be planned");
    } else if (strcmp(t->word[0], "up?") == 0) {
        const char *trouble = stage_fact(s, "trouble").text;

        fake_note(&s->fake, "%s%s\n",
                  stage_fact(s, "up").number ? "up" : "down: ", trouble ? trouble : "");
    } else if (strcmp(t->word[0], "look") == 0) {
        stage_look(s, t->n > 1 ? strtod(t->word[1], NULL) : 2);
    } else if (strcmp(t->word[0], "busy") == 0) {    // which GPUs are not to be had?
        fake_note(&s->fake, "busy");
        for (int g = 0; g < s->w.ledger.state.n_gpus; g++)
            if (s->exec.gpu_is_busy(s->exec.self, g))
                fake_note(&s->fake, " %d", g);
        fake_note(&s->fake, "\n");
    } else if (strcmp(t->word[0], "clear") == 0) {
        s->fake.asked[0] = '\0';
    } else {
        return false;
    }
    return true;
}

static void run(struct slurm_stage *s, const char *script)
{
    char *copy = strdup(script), *rest = copy, *one, *word;

    while ((one = strsep(&rest, ";")) != NULL) {
        struct step t = { .n = 0 };

        while ((word = strsep(&one, " \n")) != NULL)
            if (*word && t.n < 6)
                snprintf(t.word[t.n++], sizeof t.word[0], "%s", word);
        if (t.n > 0 && !do_order(s, &t) && !do_slurm(s, &t) && !do_fault(s, &t) &&
            !do_look(s, &t) && !do_rules(s, &t))
            ck_abort_msg("no step: %s", t.word[0]);
    }
    free(copy);
}

static void open_stage(struct slurm_stage *s)
{
    stage_open_with(s, WORLD);
    stage_node(s, "n0", "gpu:v100:1,shard:2", 2);
    stage_node(s, "n1", "gpu:v100:1,shard:v100:2", 2);
    stage_node(s, "n2", "gpu:v100:1,shard:2", 2);
    stage_node(s, "n3", "gpu:v100:1,shard:2", 2);
    stage_node(s, "n4", "gpu:v100_0:1,gpu:v100_1:1,shard:v100_0:2,shard:v100_1:2", 4);
    stage_wake(s);
    stage_look(s, 2);
}

/* ---- the specification ---- */

/* A service has one replica, which runs. */
#define SERVES "service web; replica web.0 1; look; look; start web.0 1; look; look; clear; "

static const struct {
    const char *name, *script, *want;
} cases
    [] = {
        { "a new job is submitted held, and held by us once it is seen", "new a; look; look",
          "submit a\n"
          "hold 1\n" },
        { "an order pins it and releases it", "new a; look; look; clear; start a 0; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "one that is not in Slurm yet cannot be ordered to start, nor planned",
          "new a; start a 0; plannable a; look; look; plannable a",
          "submit a\n"
          "! job 0 is not in Slurm yet\n"
          "a is busy\n"
          "hold 1\n"
          "a may be planned\n" },
        { "asking twice changes nothing",
          "new a; look; look; start a 0; start a 0; look; start a 0; look; clear; start a 0; look",
          "" },
        { "it cannot be started in two places", "new a; look; start a 0; start a 1",
          "submit a\n"
          "hold 1\n"
          "! job 0 runs elsewhere: move it\n" },
        { "two share a GPU", "new a; new b; look; look; clear; start a 1; start b 1; look; look",
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "pin 2 n1 gres:shard:1 at=n1/0 limit=0\n"
          "> started b.0 on 1\n"
          "> started a.0 on 1\n" },
        { "a job that is to be alone asks for all shards",
          "new a exclusive=1; look; look; clear; start a 0; look; look",
          "pin 1 n0 gres:shard:2 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "a gang asks for the same of each node",
          "new a gpus=2; look; look; clear; start a 0,1; look; look",
          "pin 1 n0,n1 gres:shard:2 at=n0/0,n1/0 limit=0\n"
          "> started a.0 on 0,1\n" },
        { "a gang on one node asks for both by name",
          "new a gpus=2; look; look; clear; start a 4,5; look; look",
          "pin 1 n4 gres:shard:v100_0:2,gres:shard:v100_1:2 at=n4/0,n4/1 limit=0\n"
          "> started a.0 on 4,5\n" },
        { "a gang of unlike nodes is refused", "new a gpus=2; look; look; clear; start a 0,4",
          "! node n0 would give gres:shard:2 and node n4 gres:shard:v100_0:2; Slurm gives a job the same of each of its nodes\n" },
        { "a stop requeues it, and is told once it is pending",
          "new a; look; look; start a 0; look; look; clear; stop a; look; look; look",
          "requeue 1\n"
          "> stopped a.0: stopped as planned\n" },
        { "a stop before it was pinned takes the order back",
          "new a; look; look; clear; node n0 idle,powered_down; look; start a 0; stop a; look; look",
          "" },
        { "a stop while it waits to start holds it again",
          "new a; look; look; lazy; start a 0; look; clear; stop a; look; look; look", "hold 1\n" },
        { "a move requeues, waits, and pins anew",
          "new a; look; look; start a 0; look; look; clear; move a 1; look 1; look 1; look 1; look 1; look 1; look 1",
          "requeue 1\n"
          "> stopped a.0: is being moved\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "> started a.1 on 1\n" },
        { "two change places when both have left",
          "new a; new b; look; look; start a 0; start b 1; look; look; clear; lingers; move a 1; move b 0; look; look; settle; look; look; look",
          "requeue 1 2\n"
          "> stopped b.0: is being moved\n"
          "> stopped a.0: is being moved\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "pin 2 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started b.1 on 0\n"
          "> started a.1 on 1\n" },
        { "the next job waits until the last one is seen gone",
          "new a; new b; look; look; start a 0; look; look; clear; lingers; stop a; start b 0; look; look; settle; look; look; look",
          "requeue 1\n"
          "> stopped a.0: stopped as planned\n"
          "pin 2 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started b.0 on 0\n" },
        { "USR1: asked to save, requeued once it has exited",
          "new saves USR1; look; look; start saves 0; look; look; clear; stop saves; look; look; look; look",
          "note 1 at=n0/0 limit=0 asked=0\n"
          "signal 1 USR1\n"
          "requeue 1\n"
          "> stopped saves.0: stopped as planned\n" },
        { "USR1: requeued when its grace is over",
          "new a USR1; look; look; start a 0; look; look; clear; stop a; look; look; look 10; look 10; look",
          "note 1 at=n0/0 limit=0 asked=0\n"
          "signal 1 USR1\n"
          "requeue 1\n"
          "> stopped a.0: stopped as planned\n" },
        { "a daemon that died in between does not take that exit for an end",
          "new saves USR1; look; look; start saves 0; look; look; clear; stop saves; look; restart; look; look; look",
          "note 1 at=n0/0 limit=0 asked=0\n"
          "signal 1 USR1\n"
          "requeue 1\n"
          "> stopped saves.1: stopped as planned\n" },
        { "exit 0 is finished",
          "new a; look; look; start a 0; look; look; clear; exit a 0; look; look",
          "> finished a.0\n" },
        { "another exit is a failure",
          "new a; look; look; start a 0; look; look; clear; exit a 3; look; look",
          "> failed a.0: exit 3\n" },
        { "so is a signal", "new a; look; look; start a 0; look; look; clear; kill a; look; look",
          "> failed a.0: signal 9 (Killed)\n" },
        { "and Slurm's time limit",
          "new a; look; look; start a 0; look; look; clear; ends a TIMEOUT; look; look",
          "> failed a.0: Slurm's time limit\n" },
        { "a failure with a retry left is tried again",
          "new a retries; look; look; start a 0; look; look; clear; exit a 3; look; look; look; start a 1; look; look; exit a 4; look; look",
          "> stopped a.0: exit 3; try 2 of 2\n"
          "requeue 1\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0 failures=1\n"
          "> started a.1 on 1\n"
          "> failed a.1: exit 4\n" },
        { "failures are counted across a restart",
          "new a retries; look; look; start a 0; look; look; exit a 3; look; look; start a 1; look; look; clear; restart; look; exit a 4; look; look",
          "> failed a.1: exit 4\n" },
        { "a job that ends between two views is told as a whole",
          "new a; look; look; clear; start a 0; look; sched; exit a 0; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n"
          "> finished a.0\n" },
        { "cancelled through GOGH: until it is gone",
          "new a; look; look; start a 0; look; look; clear; cancel a; look; look", "cancel 1\n" },
        { "cancelled through GOGH while it waits",
          "new a; look; look; clear; cancel a; look; look; look", "cancel 1\n" },
        { "cancelled before it was submitted", "down; look; new a; cancel a; up; look; look", "" },
        { "cancelled while Slurm is away: when it is back",
          "new a; look; look; start a 0; look; look; clear; down; look; cancel a; look; up; look; look",
          "cancel 1\n" },
        { "cancelled by its user",
          "new a; look; look; start a 0; look; look; clear; scancel a; look; look",
          "> cancelled a\n" },
        { "cancelled by its user while it waits", "new a; look; look; clear; scancel a; look; look",
          "> cancelled a\n" },
        { "a lost node puts it back: held, and told",
          "new a; look; look; start a 0; look; look; clear; node n0 down; requeued a no; look; look; look",
          "> stopped a.0: node n0 was lost\n"
          "hold 1\n" },
        { "node failure without a requeue",
          "new a; look; look; start a 0; look; look; clear; ends a NODE_FAIL; look; look; look",
          "> stopped a.0: Slurm took its node away\n"
          "requeue 1\n" },
        { "requeued by its user",
          "new a; look; look; start a 0; look; look; clear; requeued a no; lazy; look; look; look",
          "> stopped a.0: it was put back into Slurm's queue\n"
          "hold 1\n" },
        { "released by somebody else: held at once",
          "new a; look; look; clear; held a no; lazy; look; look; look", "hold 1\n" },
        { "runs without our order: told where it is",
          "new a; look; look; start a 0; look; look; stop a; look; look; look; clear; held a no; look; look",
          "> started a.1 on 0\n" },
        { "a user's hold of a job that waits to start",
          "new a; look; look; lazy; start a 0; look; look; clear; held a user; look 3; look; look; held a no; look; look; look",
          "> held a\n"
          "> released a\n"
          "hold 1\n" },
        { "and through GOGH it is let go again",
          "new a; look; look; lazy; start a 0; look; look; clear; held a user; look 3; look; release a; look; look; look",
          "> held a\n"
          "hold 1\n" },
        { "held through GOGH: it does not start",
          "new a; look; look; clear; start a 0; hold a; look; look; look", "" },
        { "held through GOGH while it was being started",
          "new a; look; look; lazy; start a 0; look; clear; hold a; look; look; look", "hold 1\n" },
        { "held through GOGH just as it began",
          "new a; look; look; start a 0; look; clear; hold a; look; look; look; look",
          "requeue 1\n" },
        { "ended while it was held: told when it is released",
          "new a; look; look; clear; deaf; start a 0; look; look; exit a 0; look; hold a; deaf off; look; release a; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n"
          "> finished a.0\n" },
        { "patience: taken back, and its GPUs left alone",
          "new a; look; look; clear; lazy; start a 0; look; look 30; busy; look 40; look; look; busy; look 70; busy",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "busy 0\n"
          "hold 1\n"
          "busy 0\n"
          "busy\n" },
        { "a pin that Slurm refuses",
          "new a; look; look; clear; start a 0; fault refused; look; busy; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "busy\n" },
        { "a submission that Slurm refuses is tried again after a minute",
          "fault refused; new a; look; look; look 30; look 40",
          "submit a\n"
          "submit a\n" },
        { "a submission without an answer that was not carried out",
          "fault unknown; new a; look; look; look; look 5; look 5; look; look",
          "submit a\n"
          "submit a\n"
          "hold 1\n" },
        { "a submission without an answer that was carried out",
          "fault unknown_done; new a; look; look; look 12; look",
          "submit a\n"
          "hold 1\n"
          "note 1 at= limit=0\n" },
        { "one that is carried out much later: one of the two goes",
          "fault late; new a; look; look 6; look 6; look; look; late; look; look; look",
          "submit a\n"
          "submit a\n"
          "hold 1\n"
          "cancel 2\n" },
        { "a pin without an answer that was carried out",
          "new a; look; look; clear; start a 0; fault unknown_done; look; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "a pin without an answer that was not",
          "new a; look; look; clear; start a 0; fault unknown; look; look; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "a pin that is carried out after a stop",
          "new a; new b; look; look; clear; start a 0; fault late; look; stop a; look; look; start b 0; look; late; look; look; look; look 6; look 6; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n"
          "pin 2 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started b.0 on 0\n" },
        { "a driver that dies with a submission",
          "fault die; new a; look; look; look 11; look; look",
          "submit a\n"
          "submit a\n"
          "hold 1\n" },
        { "a driver that dies after a submission",
          "fault die_done; new a; look; look; look 11; look; look",
          "submit a\n"
          "hold 1\n"
          "note 1 at= limit=0\n" },
        { "a driver that dies with a pin",
          "new a; look; look; clear; start a 0; fault die_done; look; look; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "nothing is ordered while Slurm is away",
          "new a; look; look; down; look; clear; start a 0; up; look; start a 0; look 3; look 4; look",
          "! Slurm does not answer: so it is\n"
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "Slurm forgets the last jobs in a crash: submitted again",
          "new a; look; look; clear; crash 60; look; look; look 5; look 5; look; look",
          "submit a\n"
          "hold 1\n" },
        { "also one that ran",
          "new a; look; look; start a 0; look; look; clear; crash 60; look; look; look 5; look 5; look; look",
          "> stopped a.0: Slurm lost it\n"
          "submit a\n"
          "hold 1\n" },
        { "it forgets a start: submitted anew, and the number that a node may know never runs",
          "new a; look; look; start a 0; look; look; clear; unpin a; look; look; look; look; start a 0; look; look 7; look; look",
          "> stopped a.0: Slurm has forgotten it\n"
          "submit a\n"
          "cancel 1\n"
          "hold 2\n"
          "pin 2 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "it forgets a pin: nobody takes that for a user's hold",
          "new a; look; look; lazy; start a 0; look; look; clear; unpin a; look; look; look",
          "submit a\n"
          "cancel 1\n"
          "hold 2\n" },
        { "it forgets a pin of a user's job, which goes to another node",
          "sbatch u; look; look; look; start u 2; look; look; clear; unpin u; look; look; look 7; start u 2; start u 1; look; look; look",
          "> stopped u.0: Slurm has forgotten it\n"
          "hold 1\n"
          "! Slurm forgot that job 0 ran on node n2, which takes it for a second copy; not there\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0 gres=gpu:1 nodes=1\n"
          "> started u.0 on 1\n" },
        { "scancel of one that GOGH holds",
          "new a; look; look; hold a; look; clear; scancel a; look; look", "> cancelled a\n" },
        { "the number of a lost job is given to another user's",
          "new a; look; look; start a 0; look; look; clear; crash 60; twin0; look; look; look 5; look 5; look; look",
          "> stopped a.0: Slurm lost it\n"
          "submit a\n"
          "hold 2\n" },
        { "a listing that is not whole loses nobody",
          "new a; look; look; start a 0; look; look; clear; cut; forget a; look; look 20; look 20; cut off; look; look 11; look",
          "> stopped a.0: Slurm lost it\n"
          "submit a\n"
          "hold 2\n" },
        { "away for long: ended, and nobody knows how",
          "new a; look; look; start a 0; look; look; clear; away 1000; forget a; back; look; look 11; look",
          "> failed a.0: ended while GOGH was away, and Slurm has forgotten how (MinJobAge)\n" },
        { "away for long: a training with all its steps done has finished",
          "new a steps=0.5; look; look; start a 0; look; look; clear; away 1000; forget a; done a; back; look; look 11; look",
          "> finished a.0\n" },
        { "away while Slurm crashed: submitted again",
          "new a; look; look; start a 0; look; look; clear; away 5; crash 60; back; look; look 11; look; look",
          "> stopped a.0: Slurm lost it\n"
          "submit a\n"
          "hold 1\n" },
        { "a restart changes nothing",
          "new a; new b; look; look; start a 0; look; look; clear; restart; look; look; look", "" },
        { "a restart after a submission", "new a; clear; restart; look; look; look 11; look",
          "hold 1\n"
          "note 1 at= limit=0\n" },
        { "a start that was not on disk is told again",
          "new a; look; look; lossy; start a 0; look; look; lossy off; clear; restart; look; look",
          "> started a.0 on 0\n" },
        { "an end that was not on disk is told again",
          "new a; look; look; start a 0; look; look; lossy; exit a 0; look; lossy off; clear; restart; look; look",
          "> finished a.0\n" },
        { "a move that was not on disk is told again",
          "new a; look; look; start a 0; look; look; lossy; move a 1; look; look; look; look; lossy off; clear; restart; look; look",
          "> started a.1 on 1\n" },
        { "a restart in the middle of a move",
          "new a; look; look; start a 0; look; look; clear; move a 1; look; restart; look; look; look",
          "requeue 1\n"
          "> stopped a.1: it was put back into Slurm's queue\n" },
        { "two with one token: the one that runs counts",
          "new a; look; look; start a 0; look; look; clear; twin a PENDING; look; look; look",
          "cancel 2\n" },
        { "two that wait: the one we know counts",
          "new a; look; look; clear; twin a PENDING; look; look", "cancel 2\n" },
        { "a twin that runs is a stray, and left alone",
          "new a; look; look; start a 0; look; look; clear; twin a RUNNING; look; look; strays",
          "strays 1\n" },
        { "a token of another user is nobody's",
          "new a; look; look; clear; twin a PENDING other; look; look", "" },
        { "a server has served its time",
          "new h rate=1 duration=100; look; look; start h 0; look; look; clear; look 50; look 50; look; look",
          "cancel 1\n"
          "> finished h.0\n" },
        { "a server that served while we were away",
          "new h rate=1 duration=100; look; look; start h 0; look; look; clear; away 200; scancel h; back; look; look",
          "> finished h.0\n" },
        { "sbatch: taken in, held by us, and given its token",
          "sbatch u; look; look; look; look 10; look",
          "hold 1\n"
          "note 1 at= limit=0 gres=gpu:1 nodes=1\n" },
        { "sbatch: started like any other",
          "sbatch u; look; look; look; look; clear; start u 2; look; look",
          "pin 1 n2 gres:shard:1 at=n2/0 limit=0 gres=gpu:1 nodes=1\n"
          "> started u.0 on 2\n" },
        { "sbatch: not submitted again when Slurm forgets it",
          "sbatch u; look; look; look; clear; forget u; look; look 11; look",
          "> cancelled u: Slurm does not know it any more\n" },
        { "sbatch: forgotten while it ran",
          "sbatch u; look; look; start u 2; look; look; clear; forget u; look; look 11; look",
          "> failed u.0: Slurm has forgotten it\n" },
        { "sbatch with a hold stays the user's, who lets it go",
          "sbatch u held; look; look; clear; held u no; lazy; look; look; look; look",
          "> released u\n"
          "hold 1\n"
          "note 1 at= limit=0 gres=gpu:1 nodes=1\n" },
        { "sbatch without a gate: it runs where it likes",
          "sbatch u; runs u n3 gres:gpu:1; look; look; look",
          "> started u.0 on 3\n"
          "note 1 at=n3/0 limit=0 gres=gpu:1 nodes=1\n" },
        { "sbatch without a gate on a node of two: the devices tell",
          "sbatch u; runs u n4 gres:gpu:1; index 1; look; look; look",
          "devices 1\n"
          "> started u.0 on 5\n"
          "note 1 at=n4/1 limit=0 gres=gpu:1 nodes=1\n" },
        { "sbatch without a gate: devices that cannot be told",
          "sbatch u; runs u n4 gres:gpu:1; index 7; look; look; look; look",
          "devices 1\n"
          "note 1 at= limit=0 gres=gpu:1 nodes=1\n" },
        { "it runs elsewhere than it was sent: stopped",
          "new a; look; look; lazy; start a 0; look; clear; runs a n2 gres:shard:1; look; look; look",
          "requeue 1\n" },
        { "GPUs that are not to be had",
          "new a; look; look; clear; busy; node n0 down; node n1 idle,drain; node n2 idle,powering_down; node n3 idle,powered_down; look; busy; node n0 idle; node n1 idle; node n2 idle; node n3 idle; look; busy",
          "busy\n"
          "busy 0 1 2\n"
          "busy\n" },
        { "GPUs that others hold",
          "look; clear; other n1 gpu:1; look; busy; other n4 shard:v100_1:1; look; busy; other n4 gpu:1; look; busy; other",
          "busy 1\n"
          "busy 5\n"
          "busy 4 5\n" },
        { "a sleeping node is woken, and the job pinned when it is awake",
          "new a; look; look; clear; node n0 idle,powered_down; look; start a 0; look; node n0 idle,powering_up,not_responding; look; node n0 idle; look; look",
          "power n0 up\n"
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n" },
        { "a node that does not wake",
          "new a; look; look; clear; node n0 idle,powered_down; look; start a 0; look 100; look 70; look; busy",
          "power n0 up\n"
          "power n0 up\n"
          "busy 0\n" },
        { "idle nodes are sent to sleep together",
          "sleep 50; new a; look; look; start a 0; look; look; clear; look 20; look 30; look 30",
          "power n1 n2 n3 n4 down\n"
          "power n1 n2 n3 n4 down\n" },
        { "a typed GPU cannot be changed in an old Slurm: ours is submitted anew",
          "typed no; hello; new a; look; look; start a 4; look; look; stop a; look; look; look; clear; start a 5; look; look; look; look; look",
          "submit a\n"
          "cancel 1\n"
          "hold 2\n"
          "pin 2 n4 gres:shard:v100_1:1 at=n4/1 limit=0\n"
          "> started a.0 on 5\n" },
        { "also after a restart",
          "typed no; hello; new a; look; look; start a 4; look; look; stop a; look; look; look; clear; restart; look; start a 5; look; look; look; look; look",
          "submit a\n"
          "cancel 1\n"
          "hold 2\n"
          "pin 2 n4 gres:shard:v100_1:1 at=n4/1 limit=0\n"
          "> started a.0 on 5\n" },
        { "and in a move; back to the same it is not",
          "typed no; hello; new a; look; look; start a 4; look; look; clear; move a 0; look; look; look; look; look; look; look; stop a; look; look; look; start a 0; look; look",
          "requeue 1\n"
          "> stopped a.0: is being moved\n"
          "submit a\n"
          "cancel 1\n"
          "hold 2\n"
          "pin 2 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.0 on 0\n"
          "requeue 2\n"
          "> stopped a.0: stopped as planned\n"
          "pin 2 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started a.1 on 0\n" },
        { "a user's job stays on its device there",
          "typed no; hello; sbatch u; look; look; start u 4; look; look; clear; move u 5; move u 0; stop u; look; requeued u admin; look; look; start u 5; plannable u; look 31; start u 4; look; look",
          "! Slurm 22.05.8 cannot give job 0 another device than gres:shard:v100_0:1; it stays (23.02.6 can)\n"
          "! Slurm 22.05.8 cannot give job 0 another device than gres:shard:v100_0:1; it stays (23.02.6 can)\n"
          "! Slurm 22.05.8 cannot give job 0 another device than gres:shard:v100_0:1; it stays (23.02.6 can)\n"
          "> stopped u.0: it was put back into Slurm's queue\n"
          "! Slurm 22.05.8 does not let a job that asked for gres:shard:v100_0:1 ask for gres:shard:v100_1:1; it needs 23.02.6\n"
          "u is busy\n"
          "pin 1 n4 gres:shard:v100_0:1 at=n4/0 limit=0 gres=gpu:1 nodes=1\n"
          "> started u.1 on 4\n" },
        { "a submission anew that Slurm refuses keeps no GPU",
          "typed no; hello; new a; look; look; start a 4; look; look; stop a; look; look; look; clear; start a 5; fault refused; look; busy; look 600; look; busy",
          "submit a\n"
          "busy\n"
          "submit a\n"
          "cancel 1\n"
          "hold 2\n"
          "busy\n" },
        { "a move to a sleeping node: it works on until that is awake",
          "new a; look; look; start a 0; look; look; clear; node n1 idle,powered_down; look; move a 1; look; look; node n1 idle; look; look; look; look",
          "power n1 up\n"
          "requeue 1\n"
          "> stopped a.0: is being moved\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "> started a.1 on 1\n" },
        { "a node that does not wake is not moved to",
          "new a; look; look; start a 0; look; look; clear; node n1 idle,powered_down; look; move a 1; look; look 100; look 70; look; busy",
          "power n1 up\n"
          "power n1 up\n"
          "busy 1\n" },
        { "shadow: nothing but reading",
          "shadow; new a; sbatch u; look; runs u n4 gres:gpu:1; index 1; look; look; look; exit u 0; look; start a 0; look 20; look 20",
          "devices 1\n"
          "> started u.0 on 5\n"
          "> finished u.0\n" },
        { "an array's task is named as one",
          "array u; look; look; look; look; clear; start u 2; look; look; stop u; look; look",
          "pin 1_3 n2 gres:shard:1 at=n2/0 limit=0 gres=gpu:1 nodes=1\n"
          "> started u.0 on 2\n"
          "requeue 1_3\n"
          "> stopped u.0: stopped as planned\n" },
        { "refused by the intake: held, and it says why", "stranger s; look; clear; refuse s; look",
          "hold 1\n"
          "note 1 gogh1 refused: no such workload\n" },
        { "a refused array: a hold for all, and a few notes after each view",
          "tasks s 10; look; clear; asked; refuse s; refuse s; asked; look; look; look; look; refuse s; look; asked",
          "asked 7\n"
          "note 1_0 gogh1 refused: no such workload\n"
          "note 1_1 gogh1 refused: no such workload\n"
          "note 1_2 gogh1 refused: no such workload\n"
          "note 1_3 gogh1 refused: no such workload\n"
          "asked 4\n"
          "note 1_4 gogh1 refused: no such workload\n"
          "note 1_5 gogh1 refused: no such workload\n"
          "note 1_6 gogh1 refused: no such workload\n"
          "note 1_7 gogh1 refused: no such workload\n"
          "note 1_8 gogh1 refused: no such workload\n"
          "note 1_9 gogh1 refused: no such workload\n"
          "asked 16\n" },
        { "a line that cannot be read spares its own job alone",
          "new a; new b; look; look; start a 0; start b 1; look; look; clear; cut 1; forget a; forget b; look; look 11; look; cut off; look 2; look 11; look",
          "> stopped b.0: Slurm lost it\n"
          "submit b\n"
          "hold 3\n"
          "> stopped a.0: Slurm lost it\n"
          "submit a\n"
          "note 3 at=n1/0 limit=0\n"
          "hold 4\n" },
        { "who was given up and comes back is not cancelled",
          "sbatch u; sbatch v; new a; look; look; look; start u 0; start a 1; look; look; clear; away 500; forget u; forget v; forget a; back; look; look 11; look; away 5; recall u; recall v; recall a; back; look; look; look; look",
          "> failed a.0: ended while GOGH was away, and Slurm has forgotten how (MinJobAge)\n"
          "> failed u.0: ended while GOGH was away, and Slurm has forgotten how (MinJobAge)\n"
          "> cancelled v: Slurm does not know it any more\n" },
        { "nor who is put back after his end",
          "sbatch u; look; look; start u 0; look; look; exit u 0; look; look; clear; requeued u no; lazy; look; look; look",
          "hold 1\n" },
        { "a daemon that begins to look at the wrong partition believes nothing",
          "new a; new b; new c; new d; new e; look; look; start a 0; start b 1; start c 2; start d 3; look; look; look 100; new f; look; away 5; hide; back; clear; look; look 11; look; up?; hide off; look; up?",
          "down: 4 of 4 jobs are missing from its listing at once\n"
          "up\n" },
        { "Slurm sets priority 0 with BadConstraints: nobody's hold",
          "new a; look; look; clear; lazy; start a 0; look; reason a BadConstraints; held a user; look 3; look; look; plannable a; reason a None; look 31; plannable a; start a 1; lazy off; look; look",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "hold 1\n"
          "a is busy\n"
          "a may be planned\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "> started a.0 on 1\n" },
        { "a pinned job whose node is drained is taken back at once",
          "new a; look; look; clear; lazy; start a 0; look; node n0 idle,drain; look; look; look; look; plannable a",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "hold 1\n"
          "a may be planned\n" },
        { "a good array: a few notes after each view",
          "tasks u 10; look; clear; look 11; look; look; look",
          "note 1_0 at= limit=0\n"
          "note 1_1 at= limit=0\n"
          "note 1_2 at= limit=0\n"
          "note 1_3 at= limit=0\n"
          "note 1_4 at= limit=0\n"
          "note 1_5 at= limit=0\n"
          "note 1_6 at= limit=0\n"
          "note 1_7 at= limit=0\n"
          "note 1_8 at= limit=0\n"
          "note 1_9 at= limit=0\n" },
        { "its user cancels it while it saves",
          "new a USR1; look; look; start a 0; look; look; clear; move a 1; look; look; scancel a; look; look; look; look",
          "note 1 at=n0/0 limit=0 asked=0\n"
          "signal 1 USR1\n"
          "> cancelled a\n" },
        { "and a daemon after us hears of it",
          "new a USR1; look; look; start a 0; look; look; clear; move a 1; look; look; scancel a; restart; look; look; look; look",
          "note 1 at=n0/0 limit=0 asked=0\n"
          "signal 1 USR1\n"
          "> cancelled a\n" },
        { "a user's job gets its token before it is put back, which changes its key",
          "sbatch u; runs u n3 gres:gpu:1; look; look; move u 1; look; look; look; look; look 11; look",
          "> started u.0 on 3\n"
          "note 1 at=n3/0 limit=0 gres=gpu:1 nodes=1\n"
          "requeue 1\n"
          "> stopped u.0: is being moved\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0 gres=gpu:1 nodes=1\n"
          "> started u.1 on 1\n" },
        { "one that was seen and put back at once",
          "sbatch u; runs u n3 gres:gpu:1; look; clear; look 4; requeued u no; look; look; look; look 11; look",
          "> stopped u.0: it was put back into Slurm's queue\n"
          "hold 1\n" },
        { "shadow: put back without a token",
          "shadow; sbatch u; runs u n3 gres:gpu:1; look; look; look 4; requeued u no; look; look; look 11; look; restart; look 11; look; runs u n2 gres:gpu:1; look; look",
          "> started u.0 on 3\n"
          "> stopped u.0: it was put back into Slurm's queue\n"
          "> started u.1 on 2\n" },
        { "a submission that is refused keeps no GPU",
          "fault refused; new a; look; start a 0; look; busy; look 600; busy",
          "submit a\n"
          "! job 0 is not in Slurm yet\n"
          "busy\n"
          "submit a\n"
          "busy\n" },
        { "a pin that is refused is the job's fault: it pauses, longer each time", "new a; look; look; clear; start a 0; fault refused; look; busy; plannable a; start a 1; look 31; plannable a; start a 1; fault refused; look; look 31; plannable a; look 31; plannable a",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "busy\n"
          "a is busy\n"
          "! job 0 pauses: so it is\n"
          "note 1 at=n0/0 limit=0\n"
          "a may be planned\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "a is busy\n"
          "a is busy\n" },
        { "a limit of the job: taken back soon, and no GPU is shut",
          "new a; look; look; clear; lazy; start a 0; reason a JobArrayTaskLimit; look; look 11; look; look; busy; plannable a; look 31; plannable a",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "hold 1\n"
          "busy\n"
          "a is busy\n"
          "a may be planned\n" },
        { "a second node that does not start it: the job pauses",
          "new a; look; look; clear; lazy; start a 0; reason a Resources; look; look 61; look; look; busy; plannable a; start a 1; look; look 61; look; look; busy; plannable a",
          "pin 1 n0 gres:shard:1 at=n0/0 limit=0\n"
          "hold 1\n"
          "busy 0\n"
          "a may be planned\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "hold 1\n"
          "busy\n"
          "a is busy\n" },
        { "away for long: one that waited may have run, and is held",
          "new a; look; look; lossy; start a 0; look; sched; exit a 0; away 1000; lossy off; forget a; back; clear; look; look 11; look; look; release a; look; look; look",
          "> held a: may have run while GOGH was away: release it, or cancel it\n"
          "submit a\n"
          "hold 2\n" },
        { "it has other GPUs than it was sent to: stopped",
          "new a; look; look; lazy; start a 4; look; clear; runs a n4 gres:shard:v100_1:1; look; look; look",
          "requeue 1\n" },
        { "a twin that waits while ours ends, in a listing that is not whole",
          "new a; look; look; start a 0; look; look; clear; cut; twin a PENDING; look; look; exit a 0; look; look; look",
          "cancel 2\n"
          "> finished a.0\n" },
        { "and for a daemon that begins then",
          "new a; look; look; start a 0; look; look; clear; twin a PENDING; exit a 0; restart; look; look; look",
          "> finished a.0\n"
          "cancel 2\n" },
        { "one that Slurm does not put back stays, and the next does not wait for ever",
          "new norequeue; new b; look; look; start norequeue 0; look; look; clear; stop norequeue; start b 0; look; look; look; stop norequeue; busy",
          "requeue 1\n"
          "pin 2 n0 gres:shard:1 at=n0/0 limit=0\n"
          "> started b.0 on 0\n"
          "! Slurm does not put job 0 back into its queue; it stays\n"
          "busy\n" },
        { "held by its user while it runs: counts when it is put back",
          "new a; look; look; start a 0; look; look; clear; held a user; look; move a 1; look; look; look; look; look",
          "requeue 1\n"
          "> stopped a.0: stopped as planned\n"
          "> held a\n" },
        { "ended while it was held, and forgotten by Slurm",
          "new a; look; look; deaf; start a 0; look; look; hold a; deaf off; look; exit a 0; look; look 100; clear; forget a; look 250; look 15; look 15; release a; look; look",
          "> started a.1 on 0\n"
          "> finished a.1\n" },
        { "most jobs are gone at once: not believed until they are back, or an hour is over",
          "new a; new b; new c; new d; new e; look; look; look 40; clear; hide; look; look 11; look; up?; start a 0; hide off; look; up?; hide; look; look 1800; up?; look 1801; look; look 11; look",
          "down: 5 of 5 jobs are missing from its listing at once\n"
          "! Slurm does not answer: 5 of 5 jobs are missing from its listing at once\n"
          "note 5 at= limit=0\n"
          "up\n"
          "down: 5 of 5 jobs are missing from its listing at once\n"
          "submit a\n"
          "submit b\n"
          "submit c\n"
          "submit d\n"
          "submit e\n" },
        { "a clock that jumps does not end anybody",
          "new a; look; look; start a 0; look; look; clear; jump 5000; forget a; look; look 11; look",
          "> stopped a.0: Slurm lost it\n"
          "submit a\n"
          "hold 2\n" },
        { "moved to another partition: its user's alone from then on",
          "new a; look; look; clear; partition a debug; look; look; look 11; look; partition a gogh; look; look",
          "> cancelled a: moved to another partition of Slurm's\n" },
        { "and while it runs",
          "new a; look; look; start a 0; look; look; clear; partition a debug; look; look; look 11; look; busy",
          "> cancelled a: moved to another partition of Slurm's\n"
          "busy 0\n" },
        { "failures are counted across a submission anew",
          "new a retries; look; look; start a 0; look; look; exit a 3; look; look; look; clear; crash 60; look; look 11; look; look; start a 1; look; look; exit a 3; look; look; look",
          "submit a 2\n"
          "hold 1\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0 failures=1\n"
          "> started a.0 on 1\n"
          "> failed a.0: exit 3\n" },
        { "a cancelled job that runs on is cancelled every few seconds",
          "new a; look; look; start a 0; look; look; clear; cancel a; fault refused; look 0.5; look 0.5; look 0.5; look 0.5; look 3; look",
          "cancel 1\n" },
        { "one that ended unseen on a node of two: the devices tell",
          "sbatch u; look; look; look; clear; runs u n4 gres:gpu:1; index 1; exit u 0; look; look; look",
          "hold 1\n"
          "devices 1\n"
          "> started u.0 on 5\n"
          "> finished u.0\n" },
        { "and where they do not",
          "sbatch u; look; look; look; clear; runs u n4 gres:gpu:1; index 7; exit u 0; look; look; look",
          "hold 1\n"
          "devices 1\n"
          "> started u.0 on 4\n"
          "> finished u.0\n" },
        { "a gang of unlike devices pauses",
          "new a gpus=2; look; look; clear; start a 0,5; plannable a; look 31; plannable a",
          "! node n0 would give gres:shard:2 and node n4 gres:shard:v100_1:2; Slurm gives a job the same of each of its nodes\n"
          "a is busy\n"
          "note 1 at= limit=0\n"
          "a may be planned\n" },
        { "a job without a command is not submitted", "bare a; look; look", "" },
        { "a service is no job of Slurm's, and nothing under way",
          "service web; look; look; plannable web; restart; look 11; look; plannable web; cancel web; look",
          "web may be planned\n"
          "web may be planned\n" },
        { "its replicas are, each where it was planned",
          "service web; replica web.0 1; look; look; plannable web.0; start web.0 1; look; look; cancel web.0; look; look",
          "submit web.0\n"
          "hold 1\n"
          "web.0 may be planned\n"
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "> started web.0.0 on 1\n"
          "cancel 1\n" },
        { "a replica that ends has failed, however it ends, and is not run again",
          SERVES "exit web.0 0; look; look; look", "> failed web.0.0: exit 0\n" },
        { "by a signal", SERVES "kill web.0; look; look; look",
          "> failed web.0.0: signal 9 (Killed)\n" },
        { "by Slurm's commands", SERVES "scancel web.0; look; look; look",
          "> failed web.0.0: cancelled by Slurm's commands\n" },
        { "with its node", SERVES "ends web.0 NODE_FAIL; look; look; look",
          "> failed web.0.0: Slurm took its node away\n" },
        { "or is forgotten in a crash", SERVES "crash 60; look; look 11; look; look",
          "> failed web.0.0: Slurm has forgotten it\n" },
        { "one that was put back waits, and is for its service to end",
          SERVES "lazy; requeued web.0 no; look; look; plannable web.0; cancel web.0; look; look",
          "> stopped web.0.0: it was put back into Slurm's queue\n"
          "hold 1\n"
          "web.0 may be planned\n"
          "cancel 1\n" },
        { "also where Slurm has begun it anew",
          SERVES "requeued web.0 no; look; look; look; plannable web.0; cancel web.0; look; look",
          "requeue 1\n"
          "> stopped web.0.0: Slurm has begun it anew\n"
          "web.0 may be planned\n"
          "cancel 1\n" },
        { "one that Slurm lost before it ran is not submitted again, and cancelled if it comes back",
          "service web; replica web.0 1; look; look; clear; forget web.0; look; look 11; look; recall web.0; look; look",
          "> cancelled web.0: Slurm lost it\n"
          "cancel 1\n" },
        { "also where nobody has looked for long",
          "service web; replica web.0 1; look; look; away 1000; forget web.0; back; clear; look; look 11; look",
          "> cancelled web.0: Slurm lost it\n" },
        { "one that Slurm does not take does not wait: who starts it hears why",
          "service web; fault refused; replica web.0 1; look; plannable web.0; start web.0 1",
          "submit web.0\n"
          "web.0 may be planned\n"
          "! job 1 pauses: so it is\n" },
        { "nor one that a limit keeps from starting",
          "service web; replica web.0 1; look; look; clear; lazy; start web.0 1; reason web.0 QOSMax; look; look 11; look; look; plannable web.0; start web.0 1",
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "hold 1\n"
          "web.0 may be planned\n"
          "! job 1 pauses: Slurm did not start it on n1: QOSMax\n" },
        { "nor one whose node does not start it, and the GPU is left alone",
          "service web; replica web.0 1; look; look; clear; lazy; start web.0 1; reason web.0 Resources; look; look 61; look; look; busy; plannable web.0; start web.0 1",
          "pin 1 n1 gres:shard:1 at=n1/0 limit=0\n"
          "hold 1\n"
          "busy 1\n"
          "web.0 may be planned\n"
          "! job 1 pauses: Slurm did not start it on n1: Resources\n" },
        { "nor one whose node does not wake",
          "service web; node n1 idle,powered_down; replica web.0 1; look; look; look; clear; start web.0 1; look; look 61; look 100; look; plannable web.0; start web.0 1",
          "power n1 up\n"
          "power n1 up\n"
          "note 1 at= limit=0\n"
          "web.0 may be planned\n"
          "! job 1 pauses: its node did not wake\n" },
        { "nodes are reached by the address that Slurm was told, and before a look nobody knows",
          "where; address 10.0.0.7; look; look; look; where; down; restart; where",
          "n0 is at n0\n"
          "n0 is at 10.0.0.7\n"
          "n0 is at ?\n" },
    };

/* What Slurm would not do. Nodes are looked at with every third view. */
#define LOOKS "look; look; look; look; look; look; "

static const struct {
    const char *name, *script, *want;
} rules[] = {
    { "what nodes have and a job asks of them is told",
      "has n0 4 1000 big,new 0; has n1 8 2000 - 0; new a; " LOOKS "asks a 2 300 big&new 0; "
      "look; look; clear; rules a",
      "a: 2 CPUs, 300 MiB; n0 has 4, 1000; n1 has 8, 2000; n1 feature; n2 feature; n3 feature; "
      "n4 feature\n" },
    { "for each GPU of a gang, rounded down; what is more than a list of names is left to Slurm",
      "new a gpus=2; look; look; asks a 3 300 big|new 0; look; look; clear; rules a",
      "a: 1 CPUs, 150 MiB\n" },
    { "what a stranger holds is not to be had",
      "has n0 4 1000 - 0; other n0 gpu:1; new a; " LOOKS "clear; rules a",
      "a: 0 CPUs, 0 MiB; n0 has 3, 1000\n" },
    { "what one of ours holds is",
      "has n0 4 1000 - 0; new a; " LOOKS "asks a 2 0 - 0; start a 0; look; look; clear; rules a",
      "a: 2 CPUs, 0 MiB; n0 has 4, 1000\n" },
    { "a job that may run for longer than the partition lets any",
      "has n1 8 2000 - 3600; new a; " LOOKS "asks a 0 0 - 3601; look; look; clear; rules a; "
      "asks a 0 0 - 3600; look; rules a",
      "a: 0 CPUs, 0 MiB; n1 has 8, 2000; n1 time limit\n"
      "a: 0 CPUs, 0 MiB; n1 has 8, 2000\n" },
    { "a node whose lines cannot be read keeps what it had, for as long as that lasts",
      "has n0 4 1000 big,new 0; has n1 8 2000 big 3600; new a; " LOOKS "asks a 2 300 big&new 3601; "
      "look; look; node n0; has n0 1 1 - 0; node n1; " LOOKS "clear; rules a; "
      "node n0 idle; " LOOKS "rules a",
      "a: 2 CPUs, 300 MiB; n0 has 4, 1000; n1 has 8, 2000; n1 time limit; n2 feature; "
      "n3 feature; n4 feature\n"
      "a: 2 CPUs, 300 MiB; n0 has 1, 1; n1 has 8, 2000; n0 feature; n1 time limit; n2 feature; "
      "n3 feature; n4 feature\n" },
    { "an old Slurm gives a user's job its typed device, and no other",
      "typed no; hello; sbatch u; look; look; start u 5; look; look; clear; rules u; "
      "requeued u admin; look; look; rules u",
      "u: 0 CPUs, 0 MiB; bound; device 3 of 1 1 1 1 2 3\n"
      "> stopped u.0: it was put back into Slurm's queue\n"
      "u: 0 CPUs, 0 MiB; device 3 of 1 1 1 1 2 3\n" },
    { "who only watches refuses nothing", "shadow; new a; look; clear; rules a", "no rules\n" },
};

static void must_say(const char *name, const char *script, const char *want)
{
    struct slurm_stage s;

    open_stage(&s);
    run(&s, script);
    ck_assert_msg(strcmp(s.fake.asked, want) == 0, "%s:\n%s", name, s.fake.asked);
    state_assert(&s.w.ledger.state);
    stage_close(&s);
}

EACH(what_is_asked_and_told, cases)
{
    must_say(cases[_i].name, cases[_i].script, cases[_i].want);
}

EACH(what_slurm_would_not_do, rules)
{
    must_say(rules[_i].name, rules[_i].script, rules[_i].want);
}
