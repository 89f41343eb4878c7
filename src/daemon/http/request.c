#include "daemon/http/inner.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/text/text.h"

#define DEPTH_MAX 32                    // of a JSON body; ours need four
#define VALUE_MAX 4096                  // bytes of a query parameter
#define KEY_MAX 200                     // bytes of an Idempotency-Key
#define BY_TOKEN 0x1000000000000000u    // kinds of callers, for the rate limit
#define BY_ADDRESS 0x2000000000000000u
#define BY_UID 0x3000000000000000u

/* ---- values ---- */

static json_t *value_of(const struct request *r, const char *name)
{
    json_t *v = json_object_get(r->args, name);

    return v != NULL ? v : json_object_get(r->body, name);
}

const char *request_text(const struct request *r, const char *name)
{
    return json_string_value(value_of(r, name));
}

double request_number(const struct request *r, const char *name, double otherwise)
{
    double v = schema_time_s(value_of(r, name));

    return isnan(v) ? otherwise : v;
}

const char *request_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->inner->mhd, MHD_HEADER_KIND, name);
}

/* ---- a request's life ---- */

/* Proxies ask for "http://host/path", too. */
static const char *without_host(const char *uri)
{
    const char *host = strncasecmp(uri, "http://", 7) == 0 ? uri + 7 : NULL;

    host = strncasecmp(uri, "https://", 8) == 0 ? uri + 8 : host;
    if (host == NULL)
        return uri;
    host += strcspn(host, "/?");
    return *host == '/' ? host : "/";
}

void *http_on_uri(void *self, const char *uri, struct MHD_Connection *mhd)
{
    struct http *h = self;
    struct request_inner *q = heap_array(1, sizeof *q);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    char *question;

    arena_init(&q->r.arena);
    q->http = h;
    q->mhd = mhd;
    q->conn = info->socket_context;
    q->conn->request = q;
    q->conn->state = CONN_ARRIVING;
    q->conn->since_s = clock_stopwatch_s();
    q->r.inner = q;
    q->r.service = h->service;
    q->uri = arena_strdup(&q->r.arena, without_host(uri));
    question = strchr(q->uri, '?');
    if (question != NULL) {
        *question = '\0';
        q->query = question + 1;
    }
    q->r.path = q->uri;
    buf_init(&q->body, (size_t)h->config->body_max);
    h->stats.n_requests++;
    return q;
}

void http_on_completed(void *self, struct MHD_Connection *mhd, void **request,
                       enum MHD_RequestTerminationCode why)
{
    struct request_inner *q = *request;

    (void)self;
    (void)mhd;
    (void)why;
    if (q == NULL)
        return;
    assert(!q->is_asleep && q->stage != STAGE_HELD && q->stage != STAGE_WORKING);
    if (q->stream != NULL)
        http_stream_over(q);
    if (q->response != NULL)
        MHD_destroy_response(q->response);
    json_decref(q->r.args);
    json_decref(q->r.body);
    q->conn->request = NULL;
    q->conn->state = CONN_WAITING;
    q->conn->since_s = clock_stopwatch_s();
    buf_release(&q->body);
    arena_release(&q->r.arena);
    free(q);
    *request = NULL;
}

/* ---- who asks ---- */

/* 0: known, or nobody (scope none, without an owner); -EACCES: the token is not one. */
static int find_caller(struct request_inner *q, struct err *e)
{
    const char *given = request_header(&q->r, "Authorization");
    struct http *h = q->http;
    struct conn *c = q->conn;
    int rc = 0;

    q->r.caller = (struct caller){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
    if (given != NULL && strncasecmp(given, "Bearer ", 7) == 0)
        return auth_token(h->auth, &q->r.arena, given + 7 + strspn(given + 7, " "), &q->r.caller,
                          e);
    if (given != NULL)
        return err_set(e, EACCES, "want 'Authorization: Bearer TOKEN'");
    if (!c->is_unix)
        return 0;
    if (c->peer_generation != h->auth_generation) {    // its answer holds for the connection
        rc = auth_peer(h->auth, &c->arena, c->fd, &c->peer, e);
        c->peer_generation = rc == 0 ? h->auth_generation : 0;
    }
    if (rc == 0)
        q->r.caller = c->peer;
    return rc;
}

static uint64_t caller_key(const struct request_inner *q)
{
    const struct caller *c = &q->r.caller;

    if (c->token != NULL)
        return BY_TOKEN | http_hash(c->token, strlen(c->token)) >> 4;
    if (c->owner != NULL)
        return BY_UID | c->uid;
    return q->conn->is_unix ? BY_ADDRESS : BY_ADDRESS | q->conn->party >> 4;
}

/* ---- before the body ---- */

static bool find_route(struct request_inner *q, const char *method)
{
    const char *allow = NULL;
    int status = 0;

    q->r.args = json_object();
    q->r.method = arena_strdup(&q->r.arena, method);
    q->r.route = route_find(q->http->routes, q->http->n_routes, method, q->r.path, q->r.args,
                            &status, &allow);
    if (q->r.route != NULL)
        return true;
    if (status == 405) {
        http_refuse(q, 405, "'%.200s' does not take %.20s, but %s", q->r.path, method, allow);
        MHD_add_response_header(q->response, "Allow", allow);
    } else {
        http_refuse(q, 404, "there is no '%.200s'; /openapi.json lists what there is", q->r.path);
    }
    return false;
}

static bool is_in_time(struct request_inner *q)
{
    double wait_s = http_limit(q->http, caller_key(q), clock_stopwatch_s());

    if (wait_s == 0)
        return true;
    q->http->stats.n_limited++;
    return http_refuse(q, 429, "more than %g requests a second: wait %.3f s",
                       q->http->config->rate_max, wait_s);
}

bool http_may_stay(struct request_inner *q)
{
    struct err e = { 0 };

    return find_caller(q, &e) == 0 && q->r.caller.scope >= q->r.route->scope;
}

/* Who knows no name may not try them all, either: refusals count for the address. */
static bool refuse_nobody(struct request_inner *q, const char *why)
{
    q->r.caller = (struct caller){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
    q->http->stats.n_unauthorised++;
    if (is_in_time(q))
        http_refuse(q, 401, "%s", why);
    return false;
}

static bool may_ask(struct request_inner *q)
{
    const enum scope need = q->r.route->scope;
    struct err e = { 0 };
    int rc = find_caller(q, &e);

    if (need == SCOPE_NONE)
        return true;
    if (rc == -EAGAIN)    // the system cannot say who it is
        return http_refuse(q, 503, "%s", e.text);
    if (rc < 0)
        return refuse_nobody(q, e.text);
    if (q->r.caller.owner == NULL)
        return refuse_nobody(q, "who are you? Send 'Authorization: Bearer TOKEN'; 'gogh token new' "
                                "makes one");
    if (q->r.caller.scope < need)
        return http_refuse(q, 403, "this needs the scope '%s', and '%s' has '%s': ask an admin",
                           scope_name(need), q->r.caller.owner, scope_name(q->r.caller.scope));
    return true;
}

/* "application/json", with parameters or without; or nothing said. */
static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    const size_t n = sizeof json - 1;

    return type == NULL || (strncasecmp(type, json, n) == 0 && strchr("; \t", type[n]) != NULL);
}

static bool takes_body(struct request_inner *q)
{
    const char *type = request_header(&q->r, "Content-Type");
    const char *coding = request_header(&q->r, "Content-Encoding");
    const char *length = request_header(&q->r, "Content-Length");
    const long max = q->http->config->body_max;
    long n = 0;

    if (q->r.route->body == NULL)
        type = coding = NULL;
    if (!is_json(type) || (coding != NULL && strcasecmp(coding, "identity") != 0))
        return http_refuse(q, 415, "want a body of 'Content-Type: application/json', not '%.60s'",
                           is_json(type) ? coding : type);
    if (length != NULL && text_to_long(slice_of(length), 0, max, &n) < 0) {
        q->is_too_large = true;
        http_refuse(q, 413, "the body may have %ld bytes, not %.20s: send less at once", max,
                    length);
        return false;
    }
    return true;
}

/* The headers are there. What is refused now still waits for the end of its body, so that the
 * connection can go on; only what is too large to wait for is answered at once and closed.
 */
static enum MHD_Result begin(struct request_inner *q, const char *method)
{
    q->has_begun = true;
    (void)(find_route(q, method) && may_ask(q) && is_in_time(q) && takes_body(q));
    if (!q->is_too_large)
        return MHD_YES;
    q->stage = STAGE_READY;
    return http_queue(q);
}

/* ---- the body ---- */

/* What cannot be used is thrown away, but not for ever. */
static enum MHD_Result take_body(struct request_inner *q, const char *data, size_t size)
{
    if (!q->is_refused && buf_append(&q->body, data, size) == 0)
        return MHD_YES;
    if (!q->is_refused) {
        buf_release(&q->body);
        http_refuse(q, 413, "the body may have %ld bytes: send less at once",
                    q->http->config->body_max);
    }
    q->n_thrown += size;
    return q->n_thrown <= (size_t)q->http->config->body_max ? MHD_YES : MHD_NO;
}

/* Is no value of a JSON text nested deeper than DEPTH_MAX? */
static bool is_shallow(const char *bytes, size_t len)
{
    bool is_text = false;
    int depth = 0;

    for (size_t i = 0; i < len; i++) {
        if (is_text) {
            i += bytes[i] == '\\';
            is_text = i < len && bytes[i] != '"';
        } else if (bytes[i] == '"') {
            is_text = true;
        } else if (bytes[i] == '{' || bytes[i] == '[') {
            if (++depth > DEPTH_MAX)
                return false;
        } else if (bytes[i] == '}' || bytes[i] == ']') {
            depth--;
        }
    }
    return true;
}

json_t *http_parse_body(const struct schema *s, const char *bytes, size_t len, struct err *e)
{
    json_error_t where;
    json_t *o;

    if (len == 0) {
        err_fill(e, EINVAL, "want a JSON object as the body: a %s", s->name);
        return NULL;
    }
    if (!is_shallow(bytes, len)) {
        err_fill(e, EINVAL, "the body is nested deeper than %d", DEPTH_MAX);
        return NULL;
    }
    o = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &where);
    if (o == NULL) {
        err_fill(e, EINVAL, "the body, line %d column %d: %s", where.line, where.column,
                 where.text);
        return NULL;
    }
    if (schema_check(s, o, e) < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}

/* ---- arguments ---- */

static int set_argument(const struct route *r, json_t *args, const char *name, const char *text,
                        struct err *e)
{
    const struct field *f = r->query != NULL ? schema_find(r->query, name) : NULL;
    json_t *v;

    if (f == NULL)    // a path parameter that nothing is said about stays a text
        return 0;
    v = schema_value(f, text, e);
    if (v == NULL)
        return -EINVAL;
    json_object_set_new(args, name, v);
    return 0;
}

static int check_path_arguments(const struct route *r, json_t *args, struct err *e)
{
    const char *name;
    json_t *v;
    void *after;

    json_object_foreach_safe(args, after, name, v)
    {
        json_t *kept = json_incref(v);
        int rc = set_argument(r, args, name, json_string_value(v), e);

        json_decref(kept);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int unknown_argument(const struct route *r, const char *name, struct err *e)
{
    const char *meant = r->query != NULL ? schema_near(r->query, name) : NULL;

    if (meant != NULL && !route_has_parameter(r, meant))
        return err_set(e, EINVAL, "unknown parameter '%.60s'; did you mean '%s'?", name, meant);
    return err_set(e, EINVAL, "unknown parameter '%.60s'; /openapi.json lists those of %s", name,
                   r->path);
}

/* One "name=value" of 'len' bytes. */
static int take_argument(const struct route *r, json_t *args, const char *at, size_t len,
                         struct err *e)
{
    char name[128], value[VALUE_MAX];
    const char *equals = memchr(at, '=', len);
    size_t n_name = equals != NULL ? (size_t)(equals - at) : len;
    size_t n_value = equals != NULL ? len - n_name - 1 : 0;

    if (route_decode(name, sizeof name, at, n_name, true) < 0)
        return err_set(e, EINVAL, "a parameter's name is too long, or not UTF-8 as %%XX");
    if (r->query == NULL || schema_find(r->query, name) == NULL || route_has_parameter(r, name))
        return unknown_argument(r, name, e);
    if (json_object_get(args, name) != NULL)
        return err_set(e, EINVAL, "the parameter '%s' is given twice", name);
    if (route_decode(value, sizeof value, equals != NULL ? equals + 1 : "", n_value, true) < 0)
        return err_set(e, EINVAL, "the parameter '%s' is too long, or not UTF-8 as %%XX", name);
    return set_argument(r, args, name, value, e);
}

int http_check_args(const struct route *r, json_t *args, const char *query, struct err *e)
{
    int rc = check_path_arguments(r, args, e);

    while (rc == 0 && query != NULL && *query != '\0') {
        size_t len = strcspn(query, "&");

        if (len > 0)
            rc = take_argument(r, args, query, len, e);
        query += len + (query[len] == '&');
    }
    if (rc == 0 && r->query != NULL)
        rc = schema_check(r->query, args, e);
    return rc;
}

/* ---- the request is whole ---- */

static bool check_key(struct request_inner *q)
{
    q->r.key = request_header(&q->r, "Idempotency-Key");
    if (q->r.key == NULL || (strlen(q->r.key) <= KEY_MAX && text_is_name(slice_of(q->r.key))))
        return true;
    return http_refuse(q, 400, "an Idempotency-Key has 1 to %d printable bytes", KEY_MAX);
}

static bool check_whole(struct request_inner *q)
{
    const struct route *route = q->r.route;
    struct err e = { 0 };

    q->r.bytes = buf_text(&q->body);
    q->r.n_bytes = q->body.len;
    if (q->is_refused)
        return false;
    if (q->http->is_stopping)
        return http_refuse(q, 503, "the daemon is stopping: come back soon");
    if (http_check_args(route, q->r.args, q->query, &e) < 0)
        return http_refuse(q, 400, "%s", e.text);
    if (route->body == NULL && q->r.n_bytes > 0)
        return http_refuse(q, 400, "%s %s takes no body: leave it out", route->method, route->path);
    if (route->body != NULL) {
        q->r.body = http_parse_body(route->body, q->r.bytes, q->r.n_bytes, &e);
        if (q->r.body == NULL)
            return http_refuse(q, 400, "%s", e.text);
    }
    return check_key(q);
}

static void finish(struct request_inner *q)
{
    q->conn->state = CONN_ANSWERING;
    q->conn->allowed_s = INFINITY;    // it is we who take time now
    if (!check_whole(q)) {
        q->stage = STAGE_READY;
        return;
    }
    q->stage = STAGE_WORKING;
    q->r.route->handle(&q->r);
}

enum MHD_Result http_on_access(void *self, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **request)
{
    struct request_inner *q = *request;
    enum MHD_Result rc = MHD_YES;

    (void)self;
    (void)url;
    (void)version;
    if (!q->has_begun)
        return begin(q, method);
    if (*size > 0) {
        rc = take_body(q, data, *size);
        *size = 0;
        return rc;
    }
    if (q->stage == STAGE_ARRIVING)
        finish(q);
    if (q->stage == STAGE_READY)
        return http_queue(q);
    q->is_asleep = true;
    MHD_suspend_connection(mhd);
    return MHD_YES;
}
