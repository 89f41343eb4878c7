/* slurm.c - a Slurm cluster as an engine: its nodes become ours, its users' jobs, too.
 *
 *     driver ---> act/slurm ---> view ---> nodes that are new, jobs that came by sbatch ---> here
 *                     |                                                                      |
 *                     '---> notices, changes by users ---> events <--------------------------'
 *
 * Everything waits for views; none of it waits for Slurm.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "act/slurm/slurm.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/config/auth.h"
#include "daemon/engine/engine.h"
#include "daemon/service/service.h"
#include "daemon/submit/intake.h"
#include "daemon/submit/submit.h"
#include "monitor/watch.h"

/* The cluster, and what the service is told of it. */
struct slurm_site {
    struct service *service;
    struct slurm *slurm;
    struct accounts accounts;    // of users
    char name[17];               // of this store's tokens
    unsigned char key[16];       // its jobs' secrets are made from it

    /* Nodes that a view showed first, until all of them are installed in one step. */
    struct arena arena;
    struct cluster found;
    int cap_nodes, cap_types;
};

/* ---- who we are ---- */

/* Numbers of this store, for good: which one it is, and what the secrets of its jobs are made from.
 */
static int read_site(struct slurm_site *t, struct err *e)
{
    struct store *store = t->service->base.store;
    static const char *const names[] = { "site", "secret_1", "secret_2" };
    int64_t chance[3], site = 0, key[2] = { 0 };
    int64_t *const is[] = { &site, &key[0], &key[1] };

    if (getrandom(chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return err_set(e, EIO, "the kernel gives no random bytes for the store's own number");
    int rc = store_begin(store, e);
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = store_number(store, names[i], chance[i], is[i], e);
    if (rc == 0)
        rc = store_commit(store, e);
    if (rc < 0) {
        store_rollback(store);
        return rc;
    }
    snprintf(t->name, sizeof t->name, "%016llx", (unsigned long long)site);
    memcpy(t->key, key, sizeof t->key);
    return 0;
}

/* ---- nodes ---- */

/* Where nobody can say which GPU a second job would get, nobody shares. */
static struct gpu_type type_for(struct arena *a, const struct gpu_type *t,
                                const struct slurm_slot *slot)
{
    struct gpu_type own = *t;

    if (!own.sharing)    // a gres line says all there is: what it has no word for is no more so
        own.sharing = slot->sharing ? engine_slices(slot->sharing) : SHARING_TAKEN_BACK;
    if (slot->exact == SLURM_EXACT && slot->n_shards > 1)
        return own;
    own.name = arena_printf(a, "%s-whole", t->name);
    own.share_max = 1;
    return own;
}

/* GPUs of one type on nodes that share in several ways: it is not known of the type. */
static int add_type(struct slurm_site *to, const struct gpu_type *t, bool is_described)
{
    struct cluster *cl = &to->found;

    for (int i = 0; i < cl->n_types; i++) {
        if (strcmp(cl->types[i].name, t->name) != 0)
            continue;
        if (cl->types[i].sharing != t->sharing)
            cl->types[i].sharing = SHARING_TAKEN_BACK;
        return i;
    }
    GROW_BESIDE(cl->is_described, cl->n_types, to->cap_types);
    GROW(cl->types, cl->n_types, to->cap_types);
    cl->is_described[cl->n_types] = is_described;
    cl->types[cl->n_types] = *t;
    return cl->n_types++;
}

static int add_node(void *self, const struct slurm_node *node, const struct slurm_slot *slots,
                    int n_slots, struct err *e)
{
    struct slurm_site *to = self;
    struct cluster *cl = &to->found;
    int *types = ARENA_ARRAY(&to->arena, int, (size_t)n_slots);
    bool is_whole = false;

    for (int i = 0; i < n_slots; i++) {
        bool is_described;
        const struct gpu_type *t =
            engine_gpu_type(&to->service->config.cluster, slots[i].type, &is_described);
        if (!t)
            return err_set(e, EINVAL,
                           "node %s has a GPU of gres type '%s', which is no type known here; "
                           "describe it by a 'gputype %s ...' line in the configuration",
                           node->name, slots[i].type, slots[i].type);
        const struct gpu_type own = type_for(&to->arena, t, &slots[i]);
        types[i] = add_type(to, &own, is_described);
        is_whole = is_whole || slots[i].exact == SLURM_WHOLE;
    }
    if (is_whole)
        log_warn(
            "node %s has several GPUs of one gres type: which one a job gets is up to Slurm, so "
            "nobody shares there; 'gogh-slurm-setup --typed' names each of them",
            node->name);
    GROW(cl->nodes, cl->n_nodes, to->cap_nodes);
    cl->nodes[cl->n_nodes++] = (struct cluster_node){ .name = arena_strdup(&to->arena, node->name),
                                                      .n_gpus = n_slots,
                                                      .types = types };
    cl->n_gpus += n_slots;
    return 0;
}

/* How GPUs of a node that is known are shared now; their types stay what they are. */
static void node_has(void *self, int node, const struct slurm_slot *slots)
{
    struct slurm_site *to = self;
    const struct recovered *base = &to->service->base;
    const struct node *n = &base->ledger.state.nodes[node];

    for (int i = 0; i < n->n_gpus; i++) {
        bool is_described;
        const int known = base->ledger.state.gpus[n->first_gpu + i].type;
        const struct gpu_type *t =
            engine_gpu_type(&to->service->config.cluster, slots[i].type, &is_described);
        if (!t)
            continue;
        const struct gpu_type own = type_for(&to->arena, t, &slots[i]);
        if (strcmp(own.name, base->catalog.types[known].name) == 0)
            (void)add_type(to, &own, is_described);
    }
}

/* Is a type that was found shared otherwise than it was? */
static bool shares_anew(const struct slurm_site *t)
{
    const struct catalog *c = &t->service->base.catalog;

    for (int i = 0; i < t->found.n_types; i++) {
        const int known = catalog_find_type(c, t->found.types[i].name);
        const enum sharing was = known < 0 ? SHARING_UNKNOWN : c->types[known].sharing;
        if (sharing_after(was, t->found.types[i].sharing) != was)
            return true;
    }
    return false;
}

/* One transaction for all of them; the next view brings again nodes that could not be written. */
static void install_found(void *self)
{
    struct slurm_site *t = self;
    struct cluster *cl = &t->found;
    struct err e = { 0 };
    const bool is_news = cl->n_nodes > 0 || shares_anew(t);

    if (is_news && service_install(t->service, cl, &e) < 0) {
        if (!t->service->broken)
            log_error("nodes of Slurm: %s", e.text);
    } else if (cl->n_nodes > 0) {
        log_info("Slurm has %d nodes with %d GPUs that are new here", cl->n_nodes, cl->n_gpus);
    }
    cl->n_nodes = cl->n_types = cl->n_gpus = 0;
    arena_reset(&t->arena);
}

static void node_is(void *self, int node, enum node_state is, bool ends_drain, double time_s)
{
    static const enum observation_kind kinds[] = {
        [NODE_UP] = OBS_NODE_UP, [NODE_DRAINED] = OBS_NODE_DRAINED, [NODE_DOWN] = OBS_NODE_DOWN
    };
    const struct slurm_site *t = self;

    watch_tell(t->service->watch, &(struct observation){ .kind = kinds[is],
                                                         .time_s = time_s,
                                                         .node = node,
                                                         .ends_drain = ends_drain,
                                                         .watts = NAN,
                                                         .noise = NAN });
}

/* ---- jobs ---- */

static bool only_watches(const struct slurm_site *t)
{
    return t->service->cycle.executor.only_watches;
}

/* Who only watches holds nothing: what was promised in words that make no sense is left out. */
static int read_job(struct slurm_site *t, struct arena *a, const struct submit_context *context,
                    const struct slurm_job *j, struct submit *want, struct err *e)
{
    struct slurm_job bare = *j;
    int rc = intake_read(&t->accounts, a, context, j, want, e);

    if (rc != -EINVAL || !only_watches(t))
        return rc;
    log_warn("Slurm's job %ld: %s; watched without its promise", j->id, e->text);
    bare.comment = "";
    return intake_read(&t->accounts, a, context, &bare, want, e);
}

/* A user's job that GOGH cannot read stays held, and says why. */
static bool take_job(void *self, const struct slurm_job *j)
{
    struct slurm_site *t = self;
    struct service *s = t->service;
    struct submit_context context = { .catalog = &s->base.catalog,
                                      .state = &s->base.ledger.state,
                                      .estimator = &s->cycle.estimator,
                                      .now_s = clock_now_s(&s->clock),
                                      .wants_even = true };
    struct submit want;
    struct arena a;
    struct err e = { 0 };
    int id;

    if (slurm_find_job(t->slurm, j) >= 0)
        return true;    // put back by somebody: its key is another one, and the job the same
    arena_init(&a);
    int rc = read_job(t, &a, &context, j, &want, &e);
    if (rc == 0 && want.again < 0)
        rc = service_submit(s, &want, &id, &e);
    if (rc == -EINVAL || rc == -EACCES || rc == -EEXIST || rc == -ENOTUNIQ) {
        log_warn("Slurm's job %ld: %s; %s", j->id, e.text,
                 only_watches(t) ? "it is not watched" : "it stays held");
        slurm_refuse(t->slurm, j, e.text);
        rc = 0;
    }
    arena_release(&a);
    return rc == 0;
}

/* ---- putting together ---- */

/* What the configuration says of types and workloads; nodes come with the first view. */
static int install_described(struct service *s, struct err *e)
{
    struct cluster cl = s->config.cluster;

    if (cl.n_nodes > 0)
        log_warn("%s: 'node' lines say nothing where Slurm does: left out", s->config.path);
    cl.n_nodes = 0;
    return service_install(s, &cl, e);
}

static void site_destroy(struct slurm_site *t)
{
    slurm_destroy(t->slurm);
    accounts_release(&t->accounts);
    arena_release(&t->arena);
    free(t->found.nodes);
    free(t->found.types);
    free(t->found.is_described);
    free(t);
}

static void close_site(void *self)
{
    site_destroy(slurm_owner(self));
}

static int open_slurm(struct slurm_site *t, const char *driver, struct err *e)
{
    struct service *s = t->service;
    const struct config *c = &s->config;
    const struct cluster_settings *set = &c->cluster.settings;
    const bool has_udp = c->reports_udp || !c->reports;
    const struct slurm_setup setup = {
        .loop = s->loop,
        .clock = &s->clock,
        .state = &s->base.ledger.state,
        .catalog = &s->base.catalog,
        .driver = driver,
        .commands = c->slurm_commands,
        .conf = c->slurm_conf,
        .partition = c->slurm_partition,
        .site = t->name,
        .reports = arena_printf(&s->arena, has_udp ? "udp:%s" : "unix:%s",
                                has_udp ? c->reports_udp : c->reports),
        .only_watches = c->mode == MODE_SHADOW,
        .theta = set->theta,
        .rate = c->slurm_rate,
        .poll_s = c->slurm_poll_s,
        .grace_s = c->grace_s,
        .patience_s = c->slurm_patience_s,
        .wake_s = set->wake_s,
        .sleep_after_s = c->slurm_sleep ? set->sleep_after_s : 0,
        .key = t->key,
        .owner = t,
        .add_node = add_node,
        .node_has = node_has,
        .take_job = take_job,
        .node_is = node_is,
        .on_view = install_found,
    };

    return slurm_create(&setup, &t->slurm, e);
}

int engine_open_slurm(struct service *s, const char *program, struct executor *out, struct err *e)
{
    struct slurm_site *t = heap_array(1, sizeof *t);

    t->service = s;
    arena_init(&t->arena);
    int rc = install_described(s, e);
    if (rc == 0)
        rc = read_site(t, e);
    if (rc == 0)
        rc = open_slurm(t, program, e);
    if (rc < 0) {
        site_destroy(t);
        return rc;
    }
    *out = slurm_executor(t->slurm);
    out->may_sleep = s->config.slurm_sleep;
    out->close = close_site;
    return 0;
}
