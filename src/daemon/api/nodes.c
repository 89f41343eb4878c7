/* nodes.c - nodes and GPUs. */
#include <math.h>
#include <stdio.h>

#include "act/gpu/devices.h"
#include "base/err.h"
#include "daemon/api/api.h"
#include "daemon/http/shapes.h"
#include "daemon/service/job_json.h"
#include "daemon/service/service.h"
#include "monitor/energy.h"
#include "monitor/watch.h"

static const char *node_state_name(enum node_state s)
{
    return s == NODE_UP ? "up" : s == NODE_DRAINED ? "drained" : "down";
}

/* "k80:2", in the order of its slots. */
static void put_types(struct api_text *t, const struct service *s, const struct node *n)
{
    const struct gpu *gpus = s->base.ledger.state.gpus + n->first_gpu;
    char text[256];

    api_put_open(t, "types", '[');
    for (int i = 0; i < n->n_gpus;) {
        int k = i;
        while (k < n->n_gpus && gpus[k].type == gpus[i].type)
            k++;
        snprintf(text, sizeof text, "%s:%d", s->base.catalog.types[gpus[i].type].name, k - i);
        api_put_text(t, NULL, text);
        i = k;
    }
    api_put_close(t, ']');
}

static void put_node(struct api_text *t, const struct service *s, const struct node *n)
{
    const struct gpu *gpus = s->base.ledger.state.gpus + n->first_gpu;
    int busy = 0;

    for (int i = 0; i < n->n_gpus; i++)
        busy += gpus[i].n_jobs > 0;
    api_put_open(t, NULL, '{');
    api_put_text(t, "name", n->name);
    api_put_text(t, "state", node_state_name(n->state));
    api_put_whole(t, "gpus", n->n_gpus);
    api_put_whole(t, "busy", busy);
    put_types(t, s, n);
    api_put_close(t, '}');
}

void api_list_nodes(struct request *r)
{
    const struct service *s = api_service(r);
    const struct state *st = &s->base.ledger.state;
    struct api_text t = { 0 };

    api_put_open(&t, NULL, '{');
    api_put_open(&t, "nodes", '[');
    for (int i = 0; i < st->n_nodes; i++)
        put_node(&t, s, &st->nodes[i]);
    api_put_close(&t, ']');
    api_put_close(&t, '}');
    api_reply(r, 200, &t);
}

/* A node that is down stays so until its executor says otherwise; asking twice is asking once. */
static void change_node(struct request *r, enum node_state to)
{
    struct service *s = api_service(r);
    const struct state *st = &s->base.ledger.state;
    const char *name = request_text(r, "name");
    int n = state_find_node(st, name);
    struct err e = { 0 };
    struct api_text t = { 0 };

    if (n < 0) {
        reply_error(r, 404, "there is no node '%.100s'; 'gogh nodes' lists them", name);
        return;
    }
    if (st->nodes[n].state == NODE_DOWN) {
        reply_error(r, 409, "node '%.100s' is down", name);
        return;
    }
    struct event ev = { .kind = EVENT_NODE_CHANGED,
                        .time_s = api_now_s(r),
                        .node = st->nodes[n].name,
                        .node_state = to };
    if (st->nodes[n].state != to && service_append(s, &ev, &e) < 0) {
        reply_err(r, &e);
        return;
    }
    put_node(&t, s, &st->nodes[n]);
    api_reply(r, 200, &t);
}

void api_drain_node(struct request *r)
{
    change_node(r, NODE_DRAINED);
}

void api_resume_node(struct request *r)
{
    change_node(r, NODE_UP);
}

/* ---- GPUs ---- */

/* As its driver says, where there is one; devices are those of the first node, in order. */
static const char *title_of(const struct service *s, int g)
{
    const struct gpu *gpu = &s->base.ledger.state.gpus[g];
    const struct devices *devices = s->cycle.executor.devices;

    if (devices && gpu->node == 0 && gpu->slot < devices_n(devices))
        return devices_get(devices, gpu->slot)->title;
    return s->base.catalog.types[gpu->type].title;
}

static void put_gpu(struct api_text *t, const struct service *s, int g)
{
    const struct state *st = &s->base.ledger.state;
    const struct gpu *gpu = &st->gpus[g];
    char name[GPU_NAME_MAX];
    int limit_w = 0;

    api_gpu_name(s, g, name);
    api_put_open(t, NULL, '{');
    api_put_text(t, "gpu", name);
    api_put_text(t, "node", st->nodes[gpu->node].name);
    api_put_whole(t, "slot", gpu->slot);
    api_put_text(t, "type", s->base.catalog.types[gpu->type].name);
    api_put_text(t, "title", title_of(s, g));
    api_put_text(t, "sharing", sharing_name(s->base.catalog.types[gpu->type].sharing));
    api_put_open(t, "jobs", '[');
    for (int i = 0; i < gpu->n_jobs; i++) {
        const struct job *j = st->jobs[gpu->jobs[i]];
        api_put_open(t, NULL, '{');
        api_put_whole(t, "id", j->id);
        api_put_text(t, "name", j->spec.name);
        api_put_close(t, '}');
        limit_w = j->limit_w;
    }
    api_put_close(t, ']');
    api_put_number(t, "watts", s->watch ? watch_gpu_w(s->watch, g) : (double)NAN);
    api_put_text(t, "source", s->watch ? watch_power_source(s->watch, g) : NULL);
    api_put_number(t, "joules", s->energy ? energy_gpu_j(s->energy, g) : (double)NAN);
    api_put_whole(t, "limit_w", limit_w);
    api_put_close(t, '}');
}

void api_list_gpus(struct request *r)
{
    const struct service *s = api_service(r);
    int n_gpus = s->base.ledger.state.n_gpus;
    long first = (long)request_number(r, "after", -1) + 1;
    long end = first + (long)request_number(r, "limit", PAGE_MAX);
    struct api_text t = { 0 };

    if (end > n_gpus)
        end = n_gpus;
    api_put_open(&t, NULL, '{');
    api_put_open(&t, "gpus", '[');
    for (long g = first; g < end; g++)
        put_gpu(&t, s, (int)g);
    api_end_page(&t, n_gpus, end < n_gpus ? end - 1 : -1);
    api_reply(r, 200, &t);
}
