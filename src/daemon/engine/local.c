/* local.c - this box as an engine: its node and GPUs, declared or found; its processes. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "act/local/local.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/engine/engine.h"
#include "daemon/service/service.h"
#include "monitor/watch.h"

/* Did a node of that name have other GPUs than these before? */
static bool is_another(const struct service *s, const char *name, const struct cluster *now,
                       const int *of, int n)
{
    const struct state *st = &s->base.ledger.state;
    int node = state_find_node(st, name);
    bool is_same = node < 0 || st->nodes[node].n_gpus == n;

    for (int i = 0; i < n && is_same && node >= 0; i++) {
        int type = st->gpus[st->nodes[node].first_gpu + i].type;
        is_same = strcmp(s->base.catalog.types[type].name, now->types[of[i]].name) == 0;
    }
    return !is_same;
}

/* This machine's name; "box-2" and so on once its GPUs have changed, since nodes never do. */
static int node_name(struct service *s, const struct cluster *now, const int *of, int n,
                     const char **out, struct err *e)
{
    char host[200] = "";

    if (gethostname(host, sizeof host - 1) < 0)
        return err_set(e, errno, "the name of this machine: %s", strerror(errno));
    host[strcspn(host, ".")] = '\0';
    *out = arena_strdup(&s->arena, host);
    for (int i = 2; is_another(s, *out, now, of, n); i++)
        *out = arena_printf(&s->arena, "%s-%d", host, i);
    return 0;
}

/* A cluster of this one box, with the GPUs that the drivers show. */
static int found_cluster(struct service *s, const struct devices *devices, struct cluster *out,
                         struct err *e)
{
    int n = devices_n(devices);
    int *of = ARENA_ARRAY(&s->arena, int, (size_t)n);
    struct cluster_node *node = ARENA_NEW(&s->arena, struct cluster_node);

    out->n_types = 0;
    out->types = ARENA_ARRAY(&s->arena, struct gpu_type, (size_t)n);
    out->is_described = ARENA_ARRAY(&s->arena, bool, (size_t)n);
    for (int i = 0; i < n; i++) {
        bool is_described;
        const char *title = devices_get(devices, i)->title;
        const struct gpu_type *t = engine_gpu_type(&s->config.cluster, title, &is_described);
        if (!t)
            return err_set(e, EINVAL,
                           "GPU %d is a '%s', which is no type known here; describe it by a "
                           "'gputype' line in the configuration",
                           i, title);
        while (of[i] < out->n_types && strcmp(out->types[of[i]].name, t->name) != 0)
            of[i]++;
        out->types[of[i]] = *t;
        out->is_described[of[i]] = is_described;
        out->n_types += of[i] == out->n_types;
    }
    *node = (struct cluster_node){ .n_gpus = n, .types = of };
    out->n_nodes = 1;
    out->nodes = node;
    out->n_gpus = n;
    return node_name(s, out, of, n, &node->name, e);
}

/* ---- how its GPUs are shared ---- */

/* The box, until it is known whether MPS is up. */
struct box {
    struct service *service;
    const struct devices *devices;
    struct cluster cluster;
};

/* Of types that the configuration says nothing of. What was known of one is taken back where its
 * GPUs are in several modes.
 */
static void tell_sharing(struct box *b, enum mps_state mps)
{
    struct cluster *cl = &b->cluster;
    const struct cluster *said = &b->service->config.cluster;
    const struct cluster_node *node = &cl->nodes[0];
    struct gpu_type *types = ARENA_ARRAY(&b->service->arena, struct gpu_type, (size_t)cl->n_types);

    for (int t = 0; t < cl->n_types; t++) {
        int n_modes = 0;
        enum sharing is = SHARING_UNKNOWN, own = SHARING_UNKNOWN;
        types[t] = cl->types[t];
        for (int i = 0; i < said->n_types; i++)
            if (strcmp(said->types[i].name, types[t].name) == 0)
                own = said->types[i].sharing;
        for (int i = 0; i < node->n_gpus && i < devices_n(b->devices); i++) {
            enum sharing of = engine_sharing(devices_get(b->devices, i), mps);
            n_modes += node->types[i] == t && (n_modes == 0 || of != is);
            is = node->types[i] == t ? of : is;
        }
        if (n_modes > 1 && !own)
            log_warn("GPUs of type %s are shared in several ways; make a type of each by 'gputype "
                     "NAME like=%s sharing=...' lines",
                     types[t].name, types[t].name);
        types[t].sharing = own ? own : n_modes > 1 ? SHARING_TAKEN_BACK : is;
    }
    cl->types = types;
}

/* It serves one user at a time: where others' jobs are started too, these take turns. */
static bool serves_all(void)
{
    struct err e;

    return local_may_run_as(geteuid() + 1, &e) < 0;
}

static void on_mps(void *self, bool is_up)
{
    struct box *b = self;
    struct err e = { 0 };

    tell_sharing(b, is_up && serves_all() ? MPS_UP : MPS_OFF);
    struct cluster types = b->cluster;
    types.n_nodes = types.n_gpus = 0;
    if (service_install(b->service, &types, &e) < 0)
        log_error("how GPUs are shared: %s", e.text);
}

/* Nodes that the configuration has no more are down; those that are back are up. */
static int update_nodes(struct service *s, const struct cluster *cl, struct err *e)
{
    const struct state *st = &s->base.ledger.state;
    int rc = 0;

    for (int n = 0; n < st->n_nodes && rc == 0; n++) {
        const char *name = st->nodes[n].name;
        int i = 0;
        while (i < cl->n_nodes && strcmp(cl->nodes[i].name, name) != 0)
            i++;
        bool is_here = i < cl->n_nodes;
        bool is_down = st->nodes[n].state == NODE_DOWN;
        if (is_here != is_down)
            continue;
        struct event ev = { .kind = EVENT_NODE_CHANGED,
                            .time_s = clock_now_s(&s->clock),
                            .node = name,
                            .node_state = is_here ? NODE_UP : NODE_DOWN };
        log_warn("node %s is %s", name, is_here ? "there again" : "not configured any more: down");
        rc = ledger_append(&s->base.ledger, &ev, 1, e);
    }
    return rc;
}

/* This box as the configuration declares it, or with the GPUs that the drivers show; '*node' is its
 * number in the state.
 */
static int find_gpus(struct box *b, int *node, struct err *e)
{
    struct service *s = b->service;
    const struct config *c = &s->config;
    const char *path = c->path ? c->path : "configuration";
    struct cluster *cl = &b->cluster;
    int rc = 0;

    *cl = c->cluster;
    if (c->gpus != GPUS_DECLARED && cl->n_nodes == 0 && devices_n(b->devices) > 0)
        rc = found_cluster(s, b->devices, cl, e);
    if (rc == 0 && cl->n_gpus == 0)
        rc = err_set(e, EINVAL,
                     "%s: no GPUs: NVML and ROCm show none, and no 'node' line declares any", path);
    if (rc == 0 && cl->n_nodes > 1)
        rc =
            err_set(e, EINVAL, "%s: %d nodes: processes are started on this box alone; declare one",
                    path, cl->n_nodes);
    if (rc < 0)
        return rc;
    tell_sharing(b, c->uses_mps ? MPS_AWAITED : MPS_OFF);
    rc = service_install(s, cl, e);
    if (rc < 0)
        return rc;
    *node = state_find_node(&s->base.ledger.state, cl->nodes[0].name);
    return update_nodes(s, cl, e);
}

/* For a job that starts again: later than the journal, which hears of steps now and then. */
static double steps_heard(void *self, int job)
{
    const struct service *s = self;
    struct watch_job w;

    if (s->watch && watch_job(s->watch, job, &w) && w.has_reported)
        return w.steps;
    return s->base.ledger.state.jobs[job]->steps_done;
}

int engine_open_local(struct service *s, const char *program, struct executor *out, struct err *e)
{
    const struct config *c = &s->config;
    const bool is_asked = c->gpus == GPUS_NVML || c->gpus == GPUS_ROCM;
    struct local_setup setup = {
        .loop = s->loop,
        .clock = &s->clock,
        .state = &s->base.ledger.state,
        .catalog = &s->base.catalog,
        .run_dir = c->run_dir,
        .keeper = program,
        .reports = arena_printf(&s->arena, c->reports ? "unix:%s" : "udp:%s",
                                c->reports ? c->reports : c->reports_udp),
        .grace_s = c->grace_s,
        .uses_mps = c->uses_mps,
        .on_mps = on_mps,
        .steps_done = steps_heard,
        .steps_self = s,
    };
    struct local *l = NULL;
    struct box *b = ARENA_NEW(&s->arena, struct box);
    int rc =
        devices_open(c->gpus == GPUS_AUTO || c->gpus == GPUS_NVML,
                     c->gpus == GPUS_AUTO || c->gpus == GPUS_ROCM, is_asked, &setup.devices, e);

    if (rc < 0)
        return rc;
    *b = (struct box){ .service = s, .devices = setup.devices };
    setup.mps_self = b;
    rc = find_gpus(b, &setup.node, e);
    if (rc == 0)
        rc = local_create(&setup, &l, e);
    if (rc < 0)
        devices_close(setup.devices);
    else
        *out = local_executor(l);
    return rc;
}
