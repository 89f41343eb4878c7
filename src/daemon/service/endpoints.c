/* Where a service's replicas are, as balancers read it (docs/formats/endpoints.md). */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/text/file.h"
#include "daemon/service/inner.h"
#include "daemon/service/upkeep.h"

struct listed {
    int service;
    json_int_t version;
    json_t *list;    // its endpoints, as they are in the file; NULL: never written
    char *text;      // the file; NULL: it is gone, or never was
    bool is_gone;
};

struct endpoints {
    struct service *service;
    struct listed *listed;    // (n) as the state's services
    int n, cap;
    int next_port;
    bool is_warned;    // the directory cannot be written
};

/* ---- what is in it ---- */

const char *endpoints_host(const struct service *s, int gpu)
{
    const struct state *st = &s->base.ledger.state;

    return executor_address(&s->cycle.executor, st, st->gpus[gpu].node);
}

char *endpoints_url(const struct service *s, const struct job *j, const char *path)
{
    const char *host = endpoints_host(s, j->gpus[0]);
    const bool is_ipv6 = host && strchr(host, ':');
    char *url = NULL;

    if (host && asprintf(&url, "http://%s%s%s:%d%s%s", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "",
                         j->spec.port, path[0] == '/' ? "" : "/", path) < 0)
        abort();
    return url;
}

static double weight_of(const struct service *s, const struct job *j)
{
    int n;
    const struct service_route *r = services_routes(&s->cycle, j->spec.service, &n);

    for (int i = 0; i < n; i++)
        if (r[i].job == j->id && job_serves_now(j))
            return r[i].weight;
    return 0;
}

static json_t *endpoint_json(const struct service *s, const struct job *j)
{
    const char *state = !isnan(j->drain_s) ? "draining" : job_serves_now(j) ? "ready" : "starting";
    const char *host = endpoints_host(s, j->n_held ? j->gpus[0] : j->spec.gpu);

    return host ? json_pack("{s:i, s:s, s:i, s:f, s:s}", "replica", j->spec.replica, "host", host,
                            "port", j->spec.port, "weight", weight_of(s, j), "state", state)
                : NULL;
}

/* Live ones have ids after their service's. NULL: it is not known yet where one is. */
static json_t *list_json(const struct service *s, int service)
{
    const struct state *st = &s->base.ledger.state;
    json_t *list = json_array();

    for (int i = service + 1; i < st->n_jobs; i++) {
        const struct job *j = st->jobs[i];
        if (j->spec.kind != JOB_REPLICA || j->spec.service != service || job_is_over(j))
            continue;
        if (json_array_append_new(list, endpoint_json(s, j)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* ---- the file ---- */

/* A name that is no good as a file's is replaced by the number. */
static char *path_of(const struct service *s, const struct job *j)
{
    const char *name = j->spec.name;
    char *path = NULL;
    bool is_good =
        name[0] != '.' && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789._-")] == '\0';

    if ((is_good ? asprintf(&path, "%s/%s.json", s->config.services_dir, name)
                 : asprintf(&path, "%s/#%d.json", s->config.services_dir, j->id)) < 0)
        abort();
    return path;
}

/* Whoever reads sees the old one or the new one. It is made anew at a restart, so no fsync. */
static int replace(const char *path, const char *text)
{
    char *tmp = NULL;
    int rc = -1;

    if (asprintf(&tmp, "%s.tmp", path) < 0)
        abort();
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0) {
        rc = fchmod(fd, 0644) < 0 || file_write_all(fd, text, strlen(text)) < 0 ? -1 : 0;
        close(fd);
        rc = rc == 0 ? rename(tmp, path) : rc;
    }
    free(tmp);
    return rc;
}

/* Versions go on where the last daemon left off. */
static json_int_t version_of(const char *path, int service)
{
    json_t *was = json_load_file(path, 0, NULL);
    json_int_t id = -1, version = 0;

    if (json_unpack(was, "{s:I, s:I}", "id", &id, "version", &version) < 0 || id != service)
        version = 0;
    json_decref(was);
    return version;
}

static void write_file(struct endpoints *p, struct listed *l, const struct job *j, char *path)
{
    if (l->version == 0)
        l->version = version_of(path, l->service);
    json_t *all = json_pack("{s:s, s:i, s:I, s:O}", "service", j->spec.name, "id", j->id, "version",
                            ++l->version, "endpoints", l->list);
    free(l->text);
    l->text = json_dumps(all, JSON_REAL_PRECISION(6));
    json_decref(all);
    if (replace(path, l->text) == 0) {
        p->is_warned = false;
    } else if (!p->is_warned) {
        log_warn("%s: %s; balancers do not hear of changes", path, strerror(errno));
        p->is_warned = true;
    }
}

/* Nobody else has the name since. */
static void remove_file(struct endpoints *p, struct listed *l, const struct job *j, char *path)
{
    const struct state *st = &p->service->base.ledger.state;
    int now = state_find_job(st, j->spec.name);

    if (now < 0 || now == j->id || st->jobs[now]->spec.kind != JOB_SERVICE)
        (void)unlink(path);
    free(l->text);
    l->text = NULL;
    l->is_gone = true;
}

static void refresh_one(struct endpoints *p, struct listed *l)
{
    const struct job *j = p->service->base.ledger.state.jobs[l->service];
    json_t *list = list_json(p->service, l->service);

    if (!list)
        return;    // after a restart: the file of the last daemon stays
    char *path = path_of(p->service, j);
    if (job_is_over(j) && json_array_size(list) == 0) {
        remove_file(p, l, j, path);
    } else if (!l->list || !json_equal(list, l->list)) {
        json_decref(l->list);
        l->list = json_incref(list);
        write_file(p, l, j, path);
    }
    json_decref(list);
    free(path);
}

void endpoints_refresh(struct endpoints *p)
{
    const struct state *st = &p->service->base.ledger.state;

    for (; p->n < st->n_services; p->n++) {
        GROW(p->listed, p->n, p->cap);
        p->listed[p->n] = (struct listed){ .service = st->services[p->n] };
    }
    for (int i = 0; i < p->n; i++)
        if (!p->listed[i].is_gone)
            refresh_one(p, &p->listed[i]);
}

const char *endpoints_text(const struct endpoints *p, int service)
{
    for (int i = 0; i < p->n; i++)
        if (p->listed[i].service == service)
            return p->listed[i].text;
    return NULL;
}

/* ---- ports ---- */

static bool is_taken(const struct state *st, int port)
{
    for (int i = 0; i < st->n_jobs; i++) {
        const struct job *j = st->jobs[i];
        if (j->spec.kind == JOB_REPLICA && j->spec.port == port && !job_is_over(j))
            return true;
    }
    return false;
}

static bool is_bindable(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;

    if (fd >= 0)
        close(fd);
    return is;
}

/* Behind the newest replica's, also where the last daemon gave it. */
static int port_after_newest(const struct service *s)
{
    const struct state *st = &s->base.ledger.state;

    for (int i = st->n_jobs - 1; i >= 0; i--)
        if (st->jobs[i]->spec.kind == JOB_REPLICA && st->jobs[i]->spec.port > 0)
            return st->jobs[i]->spec.port + 1;
    return s->config.port_first;
}

/* One after the other, so that those who still ask a replica that is gone do not meet another. */
int endpoints_choose_port(void *service, int gpu)
{
    struct service *s = service;
    struct endpoints *p = s->inner->endpoints;
    const struct state *st = &s->base.ledger.state;
    int first = s->config.port_first, n = s->config.port_last - first + 1;
    const char *host = endpoints_host(s, gpu);
    bool is_here = host && strcmp(host, "127.0.0.1") == 0;

    if (p->next_port == 0)
        p->next_port = port_after_newest(s);
    for (int tries = 0; tries < n && tries < 256; tries++) {
        int port = p->next_port < first || p->next_port >= first + n ? first : p->next_port;
        p->next_port = port + 1;
        if (!is_taken(st, port) && (!is_here || is_bindable(port)))
            return port;
    }
    log_warn("no port of service_ports %d-%d is free; name more of them", s->config.port_first,
             s->config.port_last);
    return 0;
}

struct endpoints *endpoints_create(struct service *s)
{
    struct endpoints *p = heap_array(1, sizeof *p);

    p->service = s;
    s->inner->endpoints = p;
    if (mkdir(s->config.services_dir, 0755) < 0 && errno != EEXIST)
        log_warn("%s: %s; make it, or name another 'services_dir'", s->config.services_dir,
                 strerror(errno));
    return p;
}

void endpoints_destroy(struct endpoints *p)
{
    for (int i = 0; i < p->n; i++) {
        json_decref(p->listed[i].list);
        free(p->listed[i].text);
    }
    free(p->listed);
    free(p);
}
