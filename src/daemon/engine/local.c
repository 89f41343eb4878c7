/* service_cluster.c - which nodes and GPUs there are: declared, or found by the drivers. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/service/inner.h"

/* The type of that name: as the configuration describes it, else a built-in one; NULL: none. */
static const struct gpu_type *type_named(const char *name, const struct cluster *declared,
                                         bool *is_described)
{
    for (int t = 0; t < declared->n_types; t++) {
        *is_described = declared->is_described[t];
        if (text_alike(declared->types[t].name, name))
            return &declared->types[t];
    }
    *is_described = false;
    return gpu_type_builtin(name);
}

/* The type that a driver's title means: that of the longest run of its words that names one, those
 * further in front first ("NVIDIA Tesla V100-SXM2-16GB" is "v100").
 */
const struct gpu_type *service_type_of(const struct service *s, const char *title,
                                       bool *is_described)
{
    const struct cluster *declared = &s->config.cluster;

    for (const char *from = title; *from; from += strcspn(from, " "), from += strspn(from, " ")) {
        for (size_t len = strlen(from); len > 0; len--) {
            char name[200];
            if (from[len] != '\0' && from[len] != ' ' && from[len] != '-')
                continue;
            snprintf(name, sizeof name, "%.*s", (int)len, from);
            const struct gpu_type *found = type_named(name, declared, is_described);
            if (found)
                return found;
        }
    }
    return NULL;
}

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
static int found_cluster(struct service *s, struct cluster *out, struct err *e)
{
    int n = devices_n(s->devices);
    int *of = ARENA_ARRAY(&s->arena, int, (size_t)n);
    struct cluster_node *node = ARENA_NEW(&s->arena, struct cluster_node);

    out->n_types = 0;
    out->types = ARENA_ARRAY(&s->arena, struct gpu_type, (size_t)n);
    out->is_described = ARENA_ARRAY(&s->arena, bool, (size_t)n);
    for (int i = 0; i < n; i++) {
        bool is_described;
        const char *title = devices_get(s->devices, i)->title;
        const struct gpu_type *t = service_type_of(s, title, &is_described);
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

/* What the configuration says of types and workloads; nodes come with the first view. */
static int install_described(struct service *s, struct err *e)
{
    struct cluster cl = s->config.cluster;

    if (cl.n_nodes > 0)
        log_warn("%s: 'node' lines say nothing where Slurm does: left out", s->config.path);
    cl.n_nodes = 0;
    s->inner->node = -1;
    return cluster_install(&cl, &s->base.catalog, &s->base.ledger, clock_now_s(&s->clock), e);
}

int service_find_gpus(struct service *s, struct err *e)
{
    const struct config *c = &s->config;
    struct cluster cl = c->cluster;
    bool is_asked = c->gpus == GPUS_NVML || c->gpus == GPUS_ROCM;

    if (c->executor == EXECUTOR_SLURM)
        return install_described(s, e);
    int rc = devices_open(c->gpus == GPUS_AUTO || c->gpus == GPUS_NVML,
                          c->gpus == GPUS_AUTO || c->gpus == GPUS_ROCM, is_asked, &s->devices, e);

    if (rc < 0)
        return rc;
    if (c->gpus != GPUS_DECLARED && cl.n_nodes == 0 && devices_n(s->devices) > 0)
        rc = found_cluster(s, &cl, e);
    if (rc == 0 && cl.n_gpus == 0)
        rc = err_set(e, EINVAL,
                     "%s: no GPUs: NVML and ROCm show none, and no 'node' line declares any",
                     c->path ? c->path : "configuration");
    if (rc == 0 && cl.n_nodes > 1)
        rc =
            err_set(e, EINVAL, "%s: %d nodes: processes are started on this box alone; declare one",
                    c->path ? c->path : "configuration", cl.n_nodes);
    if (rc == 0)
        rc = cluster_install(&cl, &s->base.catalog, &s->base.ledger, clock_now_s(&s->clock), e);
    if (rc == 0)
        s->inner->node = state_find_node(&s->base.ledger.state, cl.nodes[0].name);
    return rc < 0 ? rc : update_nodes(s, &cl, e);
}
