#include "daemon/service/service.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/snapshot.h"
#include "daemon/config/auth.h"
#include "daemon/service/decide.h"
#include "daemon/service/feed.h"
#include "daemon/http/http.h"
#include "daemon/service/record.h"
#include "daemon/http/route.h"
#include "daemon/service/inner.h"
#include "daemon/service/upkeep.h"
#include "monitor/energy.h"
#include "monitor/monitor.h"
#include "monitor/watch.h"
#include "nn/gp.h"
#include "estimate/model/model.h"
#include "refine/trainer.h"

/* How long somebody else may take to let go of what is ours. */
#define LOCK_PATIENCE_S 2.0

/* How long work that was begun may take at the end, a reading of power for instance. */
#define SETTLE_S 5.0

/* Another process that writes the store (an import) is waited for this long, then the turn fails
 * and is tried again: half of what may hold the loop.
 */
#define STORE_PATIENCE_S 0.05

/* ---- what a GPU draws by the model ---- */

static double model_w(void *self, int gpu)
{
    const struct service *s = self;
    const struct state *st = &s->base.ledger.state;
    const struct gpu *g = &st->gpus[gpu];
    int workloads[THETA_MAX];
    double rates[THETA_MAX];
    int n = g->n_jobs < THETA_MAX ? g->n_jobs : THETA_MAX;    // one may be about to leave

    for (int i = 0; i < n; i++) {
        const struct job_spec *spec = &st->jobs[g->jobs[i]]->spec;
        if (spec->workload >= s->cycle.estimator.n_workloads)
            return s->base.catalog.types[g->type].idle_w;    // not met yet: the next decision does
        workloads[i] = spec->workload;
        rates[i] = job_serves(spec);
    }
    if (n == 0 && executor_wake_s(&s->cycle.executor, gpu) > 0)
        return s->base.catalog.types[g->type].sleep_w;
    if (n == 0 || s->cycle.estimator.n_types <= g->type)
        return s->base.catalog.types[g->type].idle_w;
    int limit_w = st->jobs[g->jobs[0]]->limit_w;
    return estimate_limited(&s->cycle.estimator, g->type, workloads, rates, n, limit_w).watts;
}

static double alone_speed(void *self, int job, int gpu)
{
    const struct service *s = self;
    const struct state *st = &s->base.ledger.state;
    int workload = st->jobs[job]->spec.workload, type = st->gpus[gpu].type;

    if (workload >= s->cycle.estimator.n_workloads || type >= s->cycle.estimator.n_types)
        return NAN;    // not met yet
    return (double)estimate_cell(&s->cycle.estimator, workload, type, -1).speed;
}

/* ---- opening ---- */

static int make_dir(const char *path, mode_t mode, struct err *e)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return err_set(e, errno, "%s: %s; make it, or name another directory in the configuration",
                       path, strerror(errno));
    return 0;
}

/* A file that is locked as long as we live: one daemon to a run_dir, and one to a store. A daemon
 * that was killed leaves a child behind for a moment, which still has its descriptors.
 */
static int keep_others_out(const char *path, const char *what, int *lock, struct err *e)
{
    double until_s = clock_stopwatch_s() + LOCK_PATIENCE_S;

    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*lock < 0)
        return err_set(e, errno, "%s: %s", path, strerror(errno));
    int rc = flock(*lock, LOCK_EX | LOCK_NB);
    while (rc < 0 && clock_stopwatch_s() < until_s) {
        poll(NULL, 0, 10);
        rc = flock(*lock, LOCK_EX | LOCK_NB);
    }
    if (rc < 0)
        return err_set(e, EBUSY, "%s is held: another goghd runs with this %s; stop it first", path,
                       what);
    return 0;
}

/* Commands and their environments are in the store: it is for nobody else to read. SQLite gives the
 * files beside it the same mode.
 */
static int keep_private(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0)
        return errno == ELOOP || errno == EACCES || errno == EROFS
                   ? 0    // what is wrong with it, opening it says better
                   : err_set(e, errno, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && (st.st_mode & 077) != 0 && fchmod(fd, 0600) < 0)
        log_warn("%s: others may read it, and with it what jobs were given: %s", path,
                 strerror(errno));
    close(fd);
    return 0;
}

static int open_cycle(struct service *s, struct err *e)
{
    const struct cluster_settings *set = &s->config.cluster.settings;
    struct cycle *c = &s->cycle;
    int rc = solver_by_name(s->config.policy, (uint64_t)s->config.seed, &c->solver, e);

    if (rc == 0)
        rc = model_open(s->config.model, s->base.store, &s->model, e);
    if (rc < 0)
        return rc;
    c->clock = s->clock;
    c->ledger = &s->base.ledger;
    c->catalog = &s->base.catalog;
    c->options = solve_defaults;
    c->theta = set->theta;
    c->kind = (enum estimator_kind)s->config.estimator;
    cycle_init(c);
    cycle_use(c, s->model);
    if (s->config.is_learning) {
        struct trainer_options learning = trainer_defaults;
        learning.seed = (uint64_t)s->config.seed;
        cycle_learn(c, &learning, NAN);
    }
    return 0;
}

/* Estimates of everybody who runs, before anybody asks what their GPUs draw. */
static int believe(struct service *s, struct err *e)
{
    struct arena a;
    struct snapshot unused;

    arena_init(&a);
    int rc = cycle_look(&s->cycle, &a, &unused, e);
    arena_release(&a);
    return rc;
}

/* What may change while the daemon runs. */
static void use_settings(struct service *s)
{
    const struct cluster_settings *set = &s->config.cluster.settings;
    const struct executor *x = &s->cycle.executor;
    struct solve_options *o = &s->cycle.options;
    struct err e;

    log_set_level(s->config.log);
    if (solver_by_name(s->config.policy, (uint64_t)s->config.seed, &s->cycle.solver, &e) < 0)
        log_error("%s", e.text);    // it was there when the configuration was checked
    executor_set_grace(x, s->config.grace_s);
    if (s->config.cluster.notice != NULL)
        log_warn("%s", s->config.cluster.notice);
    o->price_w = set->price_w;
    o->delay_w = set->delay_w;
    o->promise_w = set->promise_w;
    s->cycle.probe.share = set->probe_share;
    o->may_probe = set->probe_share > 0;
    o->settle_s = set->settle_s;
    o->power_cap_w = set->power_cap_w;
    o->may_limit = set->power_limits && x->takes_limits;
    if (set->power_limits && !x->takes_limits)
        log_warn("set power_limits: these GPUs take no power limits; plans do without");
    o->may_sleep = x->may_sleep;
    o->move_s = set->move_s + set->restart_s;
    s->cycle.settings++;
    s->acting_policy = NULL;
    if (s->config.mode == MODE_SHADOW && !x->only_watches)
        s->acting_policy = s->config.shadow_policy;
}

static enum watch_power power_source(const struct service *s)
{
    const struct devices *devices = s->cycle.executor.devices;

    switch (s->config.power) {
    case POWER_DCGM:
        return WATCH_DCGM;
    case POWER_MODEL:
        return WATCH_MODEL;
    default:
        return devices && devices_n(devices) > 0 ? WATCH_DEVICES : WATCH_MODEL;
    }
}

static int open_sensor(struct service *s, struct err *e)
{
    const struct config *c = &s->config;
    struct watch_setup setup = {
        .loop = s->loop,
        .clock = &s->clock,
        .state = &s->base.ledger.state,
        .catalog = &s->base.catalog,
        .executor = &s->cycle.executor,
        .node = s->cycle.executor.node,
        .devices = s->cycle.executor.devices,
        .energy = s->energy,
        .socket = c->reports,
        .udp = c->reports_udp,
        .power = power_source(s),
        .dcgm_url = c->dcgm_url,
        .power_s = c->power_s,
        .warmup_s = c->warmup_s,
        .report_s = c->cluster.settings.report_s,
        .model_w = model_w,
        .alone_speed = alone_speed,
        .model_self = s,
    };
    int rc = watch_create(&setup, &s->watch, e);

    if (rc < 0)
        return rc;
    s->cycle.sensor = watch_sensor(s->watch);
    watch_on_news(s->watch, service_on_news, s);
    return 0;
}

static int open_doors(struct service *s, struct err *e)
{
    int rc = open_sensor(s, e);

    if (rc == 0)
        rc = auth_open(&s->config, &s->auth, e);
    if (rc < 0)
        return rc;
    s->http = http_create(s->loop, &s->config, s->auth, routes, n_routes, s);
    s->feed = feed_create(s);
    s->decider = decider_create(s);
    return upkeep_create(s, e);
}

/* ---- signals ---- */

static void on_end(void *self)
{
    service_stop(self);
}

static int reread(struct service *s, struct arena *a, struct config *now, struct auth **auth,
                  struct err *e)
{
    int rc = s->config.path ? config_read(a, s->config.path, now, e)
                            : err_set(e, ENOENT, "there is no configuration file to read again");
    struct solver unused;

    if (rc == 0)
        rc = config_may_reload(&s->config, now, e);
    if (rc == 0)
        rc = solver_by_name(now->policy, (uint64_t)now->seed, &unused, e);
    if (rc == 0)
        rc = solver_by_name(now->shadow_policy, (uint64_t)now->seed, &unused, e);
    if (rc == 0)
        rc = auth_open(now, auth, e);
    return rc;
}

static void on_reload(void *self)
{
    struct service *s = self;
    struct arena a;
    struct config now;
    struct auth *auth = NULL;
    struct err e = { 0 };

    arena_init(&a);
    service_notify("RELOADING=1");
    if (reread(s, &a, &now, &auth, &e) < 0) {
        log_error("reload: %s; everything stays as it was", e.text);
        arena_release(&a);
    } else {
        arena_release(&s->arena_config);
        s->arena_config = a;
        s->config = now;
        http_use_auth(s->http, auth);
        auth_close(s->auth);
        s->auth = auth;
        use_settings(s);
        log_info("the configuration was read again");
        service_wake(s);
    }
    service_notify("READY=1");
}

static int open_signals(struct service *s, struct err *e)
{
    int rc = loop_signal(s->loop, SIGTERM, on_end, s, e);

    if (rc == 0)
        rc = loop_signal(s->loop, SIGINT, on_end, s, e);
    if (rc == 0)
        rc = loop_signal(s->loop, SIGHUP, on_reload, s, e);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);    // a file that may not grow is an error to be told, not an end
    return rc;
}

/* ---- now and then ---- */

static void on_flush(void *self)
{
    struct service *s = self;

    service_flush(s);
    loop_timer_set(&s->inner->flush, 60);
}

static void on_accounts(void *self)
{
    struct service *s = self;

    service_account(s);
    service_notify("WATCHDOG=1");
    loop_timer_set(&s->inner->accounts, 5);
}

static void open_timers(struct service *s)
{
    struct service_inner *in = s->inner;

    service_turn_open(s);
    loop_timer_init(&in->flush, s->loop, "usage", on_flush, s);
    loop_timer_init(&in->accounts, s->loop, "promises", on_accounts, s);
    loop_timer_set(&in->flush, 60);
    loop_timer_set(&in->accounts, 5);
}

/* ---- the whole ---- */

static int open_parts(struct service *s, const struct engine *engine, struct err *e)
{
    int rc = make_dir(s->config.run_dir, 0711, e);

    if (rc == 0)
        rc = keep_others_out(arena_printf(&s->arena, "%s/daemon.lock", s->config.run_dir),
                             "run_dir", &s->inner->locks[0], e);
    if (rc == 0)
        rc = loop_create(&s->loop, e);
    if (rc == 0)
        rc = open_signals(s, e);
    if (rc == 0)
        rc = keep_private(s->config.store, e);
    if (rc == 0)
        rc = recover_open(&s->base, s->config.store, STORE_CREATE, e);
    if (rc < 0)
        return rc;
    s->is_open = true;
    store_set_patience(s->base.store, STORE_PATIENCE_S);
    rc = keep_others_out(arena_printf(&s->arena, "%s.lock", s->config.store), "store",
                         &s->inner->locks[1], e);
    if (rc == 0)
        rc = ledger_begin(&s->base.ledger,
                          e);    // rows of an older store are made anew before anybody waits
    if (rc == 0)
        rc = ledger_commit(&s->base.ledger, e);
    if (rc == 0)
        rc = engine->open(s, engine->program, &s->cycle.executor, e);
    if (rc == 0)
        rc = open_cycle(s, e);
    if (rc < 0)
        return rc;
    s->has_cycle = true;
    s->energy = energy_create(&s->base.ledger.state, &s->base.catalog);
    use_settings(s);
    open_timers(s);
    rc = believe(s, e);
    if (rc == 0)
        rc = record_open(s->config.record, &s->config, &s->cycle, s->config.slurm_sleep, &s->record,
                         e);
    if (rc < 0)
        return rc;
    record_orders(s->record, &s->cycle.executor);
    return open_doors(s, e);
}

int service_open(struct service *s, const struct config *c, const struct engine *engine,
                 struct err *e)
{
    *s = (struct service){ .clock = clock_real(), .config = *c };
    s->inner = heap_array(1, sizeof *s->inner);
    s->inner->locks[0] = s->inner->locks[1] = -1;
    s->began_s = clock_now_s(&s->clock);
    s->inner->accounted_s = s->began_s;
    s->flushed_s = s->last_decision_s = s->acting_w = s->shadow_w = NAN;
    arena_init(&s->arena);
    arena_init(&s->arena_config);
    metrics_init(&s->metrics);
    nn_init();
    int rc = open_parts(s, engine, e);
    if (rc == 0)
        rc = http_listen(s->http, e);
    if (rc < 0) {
        service_close(s);
        return rc;
    }
    service_decide_open(s);
    service_recall_usage(s);
    loop_at_turn_end(s->loop, "commit", service_turn_end, s);
    s->inner->has_news = true;    // what became of the runs that were adopted
    service_wake(s);
    return 0;
}

int service_run(struct service *s, struct err *e)
{
    s->is_ready = true;
    service_notify("READY=1\nSTATUS=ready");
    log_info("ready: %d nodes, %d GPUs, %d jobs known, %d running", s->base.ledger.state.n_nodes,
             s->base.ledger.state.n_gpus, s->base.ledger.state.n_jobs,
             s->base.ledger.state.n_running);
    return loop_run(s->loop, e);
}

void service_stop(struct service *s)
{
    s->is_stopping = true;
    service_notify("STOPPING=1");
    loop_stop(s->loop);
}

/* A driver that hangs keeps its thread, and with it what the thread uses; all that lasts is on
 * disk.
 */
static _Noreturn void end_without_them(void)
{
    log_info(
        "work that was begun (a training, a reading of power) takes longer; ending without it");
    _exit(EXIT_SUCCESS);
}

/* Jobs go on: they are the engine's. */
void service_close(struct service *s)
{
    s->is_stopping = true;
    if (s->http) {
        service_account(s);
        service_flush(s);
        service_commit(s);
        upkeep_save_all(s->inner->upkeep);
    }
    decider_destroy(s->decider);
    http_destroy(s->http);    // ends streams, which belong to the feed
    feed_destroy(s->feed);
    auth_close(s->auth);
    bool is_training = s->has_cycle && s->cycle.trainer && trainer_is_busy(s->cycle.trainer);
    if (s->loop && (!loop_settle(s->loop, SETTLE_S) || is_training))
        end_without_them();
    record_close(s->record);
    upkeep_destroy(s->inner->upkeep);
    watch_destroy(s->watch);
    executor_close(&s->cycle.executor);
    if (s->has_cycle)
        cycle_release(&s->cycle);
    model_destroy(s->model);
    energy_destroy(s->energy);
    devices_close(s->cycle.executor.devices);
    if (s->is_open)
        recover_close(&s->base);
    loop_destroy(s->loop);
    for (int i = 0; i < 2; i++)
        if (s->inner->locks[i] >= 0)
            close(s->inner->locks[i]);
    free(s->inner->explained);
    free(s->inner->changes);
    free(s->inner->done);
    free(s->inner);
    arena_release(&s->arena);
    arena_release(&s->arena_config);
}

void service_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path)
        return;
    size_t len = strlen(path);
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to, size) < 0)
        log_debug("systemd cannot be told: %s", strerror(errno));
    close(fd);
}
