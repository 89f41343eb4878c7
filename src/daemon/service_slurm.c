/* service_slurm.c - the daemon and a Slurm cluster: its nodes become ours, its users' jobs, too.
 *
 *     driver ---> act/slurm ---> view ---> monitor/slurm ---> nodes that are new, jobs that came by sbatch
 *                     |                                              |
 *                     '---> notices, deeds of users ---> events <----'
 *
 * Everything waits for views; none of it waits for Slurm.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <jansson.h>

#include "act/slurm/slurm.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/submit/intake.h"
#include "daemon/service/record.h"
#include "daemon/service/inner.h"
#include "daemon/submit/submit.h"
#include "monitor/slurm.h"
#include "monitor/watch.h"

/* Nodes that a view showed first, until all of them are installed in one step. */
struct newcomers {
    struct arena arena;
    struct cluster_node *nodes;
    int n_nodes, cap_nodes;
    struct gpu_type *types;
    bool *is_described;
    int n_types, cap_types;
};

/* ---- who we are ---- */

/* Numbers of this store, for good: which one it is, and what the secrets of its jobs are made from. */
static int read_site(struct service *s, struct err *e)
{
    static const char *const names[] = { "site", "secret_1", "secret_2" };
    int64_t chance[3], is[3] = { 0 };

    if (getrandom(chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return err_set(e, EIO, "the kernel gives no random bytes for the store's own number");
    int rc = store_begin(s->base.store, e);
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = store_number(s->base.store, names[i], chance[i], &is[i], e);
    if (rc == 0)
        rc = store_commit(s->base.store, e);
    if (rc < 0) {
        store_rollback(s->base.store);
        return rc;
    }
    struct service_inner *in = s->inner;
    snprintf(in->site, sizeof in->site, "%016llx", (unsigned long long)is[0]);
    memcpy(in->site_key, &is[1], sizeof in->site_key);
    return 0;
}

/* A job that came by sbatch brought its own, which its command keeps. */
static bool brought_secret(const struct job_spec *spec, char out[RUN_SECRET_BYTES + 1])
{
    json_t *command = spec->command ? json_loads(spec->command, 0, NULL) : NULL;
    json_t *env = json_object_get(command, "env");
    const char *text = json_string_value(json_object_get(env, "GOGH_SECRET"));
    const bool is_there = text && strlen(text) == RUN_SECRET_BYTES;

    if (is_there)
        memcpy(out, text, RUN_SECRET_BYTES + 1);
    json_decref(command);
    return is_there;
}

static const char *secret_of(void *self, int job)
{
    struct service *s = self;
    struct service_inner *in = s->inner;
    const struct job_spec *spec = &s->base.ledger.state.jobs[job]->spec;
    char digest[65];

    if (slurm_is_users(spec))
        return brought_secret(spec, in->secret) ? in->secret : NULL;
    struct {
        unsigned char key[16];
        double submit_s;
        int64_t job;
    } from = { .submit_s = spec->submit_s, .job = job };
    memcpy(from.key, in->site_key, sizeof from.key);
    file_digest(&from, sizeof from, digest);
    memcpy(in->secret, digest, RUN_SECRET_BYTES);
    in->secret[RUN_SECRET_BYTES] = '\0';
    return in->secret;
}

/* ---- nodes ---- */

/* Where nobody can say which GPU a second job would get, nobody shares. */
static struct gpu_type type_for(struct arena *a, const struct gpu_type *t,
                                const struct slurm_slot *slot)
{
    struct gpu_type own = *t;

    if (slot->exact == SLURM_EXACT && slot->n_shards > 1)
        return own;
    own.name = arena_printf(a, "%s-whole", t->name);
    own.share_max = 1;
    return own;
}

static int add_type(struct newcomers *n, const struct gpu_type *t, bool is_described)
{
    for (int i = 0; i < n->n_types; i++)
        if (strcmp(n->types[i].name, t->name) == 0)
            return i;
    GROW_BESIDE(n->is_described, n->n_types, n->cap_types);
    GROW(n->types, n->n_types, n->cap_types);
    n->is_described[n->n_types] = is_described;
    n->types[n->n_types] = *t;
    return n->n_types++;
}

static int add_node(void *self, const struct slurm_node *node, const struct slurm_slot *slots,
                    int n_slots, struct err *e)
{
    struct service *s = self;
    struct newcomers *n = s->inner->newcomers;
    int *types = ARENA_ARRAY(&n->arena, int, (size_t)n_slots);
    bool is_whole = false;

    for (int i = 0; i < n_slots; i++) {
        bool is_described;
        const struct gpu_type *t = service_type_of(s, slots[i].type, &is_described);
        if (!t)
            return err_set(e, EINVAL,
                           "node %s has a GPU of gres type '%s', which is no type known here; "
                           "describe it by a 'gputype %s ...' line in the configuration",
                           node->name, slots[i].type, slots[i].type);
        const struct gpu_type own = type_for(&n->arena, t, &slots[i]);
        types[i] = add_type(n, &own, is_described);
        is_whole = is_whole || slots[i].exact == SLURM_WHOLE;
    }
    if (is_whole)
        log_warn(
            "node %s has several GPUs of one gres type: which one a job gets is up to Slurm, so "
            "nobody shares there; 'gogh-slurm-setup --typed' names each of them",
            node->name);
    GROW(n->nodes, n->n_nodes, n->cap_nodes);
    n->nodes[n->n_nodes++] = (struct cluster_node){ .name = arena_strdup(&n->arena, node->name),
                                                    .n_gpus = n_slots,
                                                    .types = types };
    return 0;
}

/* One transaction for all of them; the next view brings again what could not be written. */
static void install_newcomers(struct service *s)
{
    struct newcomers *n = s->inner->newcomers;
    struct cluster cl = { .types = n->types,
                          .is_described = n->is_described,
                          .n_types = n->n_types,
                          .nodes = n->nodes,
                          .n_nodes = n->n_nodes };
    const int64_t before = s->base.ledger.last_seq;
    struct err e = { 0 };

    if (n->n_nodes == 0)
        return;
    for (int i = 0; i < n->n_nodes; i++)
        cl.n_gpus += n->nodes[i].n_gpus;
    service_commit(s);
    if (!s->broken) {
        const double now_s = clock_now_s(&s->clock);
        if (cluster_install(&cl, &s->base.catalog, &s->base.ledger, now_s, &e) < 0) {
            log_error("nodes of Slurm: %s", e.text);
        } else {
            log_info("Slurm has %d nodes with %d GPUs that are new here", cl.n_nodes, cl.n_gpus);
            record_installed(s->record, &cl, before);
        }
        service_wake(s);
    }
    n->n_nodes = n->n_types = 0;
    arena_reset(&n->arena);
}

/* ---- jobs ---- */

/* Who only watches holds nothing: what was promised in words that make no sense is left out. */
static int read_job(struct service *s, struct arena *a, const struct submit_scene *scene,
                    const struct slurm_job *j, struct submit *want, char *secret, struct err *e)
{
    struct slurm_job bare = *j;
    int rc = intake_read(s->inner->intake, a, scene, j, want, secret, e);

    if (rc != -EINVAL || !s->config.is_shadow)
        return rc;
    log_warn("Slurm's job %ld: %s; watched without its promise", j->id, e->text);
    bare.comment = "";
    return intake_read(s->inner->intake, a, scene, &bare, want, secret, e);
}

/* A user's job that GOGH cannot read stays held, and says why. */
static bool take_job(void *self, const struct slurm_job *j)
{
    struct service *s = self;
    struct submit_scene scene = { .catalog = &s->base.catalog,
                                  .state = &s->base.ledger.state,
                                  .estimator = &s->cycle.estimator,
                                  .now_s = clock_now_s(&s->clock),
                                  .wants_even = true };
    char secret[RUN_SECRET_BYTES + 1];
    struct submit want;
    struct arena a;
    struct err e = { 0 };
    int id;

    if (slurm_find_job(s->slurm, j) >= 0)
        return true;    // put back by somebody: its key is another one, and the job the same
    arena_init(&a);
    int rc = read_job(s, &a, &scene, j, &want, secret, &e);
    if (rc == 0 && want.again < 0)
        rc = service_submit(s, &want, &id, &e);
    if (rc == -EINVAL || rc == -EACCES || rc == -EEXIST || rc == -ENOTUNIQ) {
        log_warn("Slurm's job %ld: %s; %s", j->id, e.text,
                 s->config.is_shadow ? "it is not watched" : "it stays held");
        slurm_refuse(s->slurm, j, e.text);
        rc = 0;
    }
    arena_release(&a);
    return rc == 0;
}

/* What users did to their jobs by Slurm's own commands. */
void service_slurm_listen(struct service *s)
{
    static const enum event_kind kinds[] = { [DEED_HELD] = EVENT_JOB_HELD,
                                             [DEED_RELEASED] = EVENT_JOB_RELEASED,
                                             [DEED_CANCELLED] = EVENT_JOB_CANCELLED };
    const struct state *st = &s->base.ledger.state;
    struct slurm_did did;
    struct err e = { 0 };

    while (s->slurm && !s->broken && slurm_next_deed(s->slurm, &did)) {
        if (!state_expects(st, kinds[did.deed], did.job))
            continue;    // GOGH knew, or the job has ended meanwhile
        const struct event ev = { .kind = kinds[did.deed],
                                  .time_s = did.time_s,
                                  .job = did.job,
                                  .steps_done = st->jobs[did.job]->steps_done,
                                  .reason = did.reason ? did.reason : "by Slurm's commands" };
        if (service_append(s, &ev, &e) < 0)
            log_warn("job %d: %s", did.job, e.text);
    }
}

/* ---- putting together ---- */

static void on_view(void *self, const struct slurm_view *v)
{
    struct service *s = self;

    if (!s->slurm_watch)
        return;
    slurm_watch_see(s->slurm_watch, v, clock_now_s(&s->clock));
    install_newcomers(s);
    s->inner->has_news = true;
}

int service_slurm_open(struct service *s, struct err *e)
{
    const struct config *c = &s->config;
    const struct cluster_settings *set = &c->cluster.settings;
    int rc = read_site(s, e);
    struct slurm_setup setup = {
        .loop = s->loop,
        .clock = &s->clock,
        .state = &s->base.ledger.state,
        .catalog = &s->base.catalog,
        .driver = s->programs.slurm_driver,
        .commands = c->slurm_commands,
        .conf = c->slurm_conf,
        .partition = c->slurm_partition,
        .site = s->inner->site,
        .reports = service_reports(s),
        .only_watches = c->is_shadow,
        .theta = set->theta,
        .rate = c->slurm_rate,
        .poll_s = c->slurm_poll_s,
        .grace_s = c->grace_s,
        .patience_s = c->slurm_patience_s,
        .wake_s = set->wake_s,
        .sleep_after_s = c->slurm_sleep ? set->sleep_after_s : 0,
        .secret = secret_of,
        .secret_self = s,
    };

    if (rc == 0)
        rc = slurm_create(&setup, &s->slurm, e);
    if (rc < 0)
        return rc;
    s->cycle.executor = record_executor(s->record, slurm_executor(s->slurm));
    s->runs = slurm_runs(s->slurm);
    return 0;
}

void service_slurm_watch(struct service *s)
{
    const struct slurm_watch_setup setup = { .state = &s->base.ledger.state,
                                             .watch = s->watch,
                                             .partition = s->config.slurm_partition,
                                             .site = s->inner->site,
                                             .only_watches = s->config.is_shadow,
                                             .self = s,
                                             .add_node = add_node,
                                             .take_job = take_job };
    struct newcomers *n = heap_array(1, sizeof *n);

    arena_init(&n->arena);
    s->inner->newcomers = n;
    s->inner->intake = intake_create();
    s->slurm_watch = slurm_watch_create(&setup);
    slurm_on_view(s->slurm, on_view, s);
}

void service_slurm_close(struct service *s)
{
    struct newcomers *n = s->inner->newcomers;

    intake_destroy(s->inner->intake);
    slurm_watch_destroy(s->slurm_watch);
    slurm_destroy(s->slurm);
    if (n) {
        arena_release(&n->arena);
        free(n->nodes);
        free(n->types);
        free(n->is_described);
        free(n);
    }
}
