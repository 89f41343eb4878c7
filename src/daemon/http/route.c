#include "daemon/http/route.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "daemon/config/version.h"

#define SEGMENT_MAX 1024    // bytes of a path parameter, decoded
#define METHODS_MAX 8       // on one path

/* ---- finding ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int route_decode(char *out, size_t max, const char *text, size_t len, bool is_query)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '%') {
            int high = i + 2 < len ? hex(text[i + 1]) : -1;
            int low = high >= 0 ? hex(text[i + 2]) : -1;

            if (low < 0)
                return -1;
            c = (char)(16 * high + low);
            i += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        if (n + 1 >= max)
            return -1;
        out[n++] = c;
    }
    out[n] = '\0';
    return text_is_utf8(out, n, NULL) ? (int)n : -1;
}

/* The parameter "{id}" at 'pattern' takes the segment at 'path'. Empty ones do not count. */
static bool take_parameter(const char **pattern, const char **path, json_t *args)
{
    size_t n_name = strcspn(*pattern, "}");
    size_t len = strcspn(*path, "/");
    char value[SEGMENT_MAX];
    char name[64];

    if (len == 0 || route_decode(value, sizeof value, *path, len, false) < 0)
        return false;
    if (args != NULL) {
        assert(n_name - 1 < sizeof name);
        snprintf(name, sizeof name, "%.*s", (int)(n_name - 1), *pattern + 1);
        json_object_set_new(args, name, json_string(value));
    }
    *pattern += n_name + 1;
    *path += len;
    return true;
}

static bool matches(const char *pattern, const char *path, json_t *args)
{
    while (*pattern != '\0' && *path != '\0') {
        if (*pattern == '{') {
            if (!take_parameter(&pattern, &path, args))
                return false;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *pattern == '\0' && *path == '\0';
}

static bool serves(const struct route *r, const char *method)
{
    return strcmp(r->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

static void allow_add(char *allow, size_t max, const char *method)
{
    size_t n = strlen(allow);

    snprintf(allow + n, max - n, "%s%s%s", n > 0 ? ", " : "", method,
             strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

const struct route *route_find(const struct route *table, int n, const char *method,
                               const char *path, json_t *args, int *status, const char **allow)
{
    static _Thread_local char methods[METHODS_MAX * 16];

    methods[0] = '\0';
    for (int i = 0; i < n; i++) {
        if (!matches(table[i].path, path, NULL))
            continue;
        if (serves(&table[i], method)) {
            matches(table[i].path, path, args);
            return &table[i];
        }
        allow_add(methods, sizeof methods, table[i].method);
    }
    *status = methods[0] != '\0' ? 405 : 404;
    *allow = methods[0] != '\0' ? methods : NULL;
    return NULL;
}

bool route_has_parameter(const struct route *r, const char *name)
{
    const size_t n = strlen(name);

    for (const char *p = r->path; (p = strchr(p, '{')) != NULL; p++)
        if (strncmp(p + 1, name, n) == 0 && p[1 + n] == '}')
            return true;
    return false;
}

/* ---- describing ---- */

static const struct {
    int status;
    const char *code;    // in the answer
    const char *name, *about;
} errors[] = {
    { 400, "bad_request", "BadRequest",
      "An argument or the body is not as described; the message names it" },
    { 401, "unauthorised", "Unauthorised", "Nobody known: send 'Authorization: Bearer TOKEN'" },
    { 403, "forbidden", "Forbidden", "The caller's scope does not allow this" },
    { 404, "not_found", "NotFound", "There is no such thing" },
    { 405, "method_not_allowed", "NotAllowed", "The path takes other methods; Allow names them" },
    { 409, "conflict", "Conflict", "The state does not allow this now" },
    { 413, "too_large", "TooLarge", "The body is larger than the daemon takes" },
    { 415, "unsupported", "Unsupported", "The body is not application/json" },
    { 422, "key_reused", "KeyReused", "The Idempotency-Key came with another request before" },
    { 429, "too_many", "TooMany",
      "Too many requests a second; Retry-After says when to come back" },
    { 503, "unavailable", "Unavailable",
      "Not now: the store cannot write, the daemon is busy or stopping; Retry-After says when to "
      "come back" },
};
enum { N_ERRORS = sizeof errors / sizeof *errors };

const char *route_error_code(int status)
{
    for (int i = 0; i < N_ERRORS; i++)
        if (errors[i].status == status)
            return errors[i].code;
    return "internal";
}

static const struct field error_body_fields[] = {
    { "code", FIELD_TEXT, .is_required = true, .about = "a word to branch on" },
    { "message", FIELD_TEXT, .is_required = true, .about = "a sentence to act on" },
    { 0 },
};
static const struct schema error_body = { "ErrorBody", error_body_fields };
static const struct field error_fields[] = {
    { "error", FIELD_OBJECT, .is_required = true, .of = &error_body, .about = "what went wrong" },
    { 0 },
};
const struct schema route_error = { "Error", error_fields };

/* Can the route answer with this error? Those of the rest are http's, and come from anywhere. */
static bool may_fail_with(const struct route *r, int status)
{
    switch (status) {
    case 401:
    case 403:
        return r->scope > SCOPE_NONE;
    case 404:
        return strchr(r->path, '{') != NULL || r->also & ROUTE_404;
    case 409:
        return r->also & ROUTE_409;
    case 415:
        return r->body != NULL;
    case 422:
        return r->also & ROUTE_422;
    default:
        return true;
    }
}

bool route_may_answer(const struct route *r, int status)
{
    if (status == r->status || (status == 200 && r->also & ROUTE_200))
        return true;
    for (int i = 0; i < N_ERRORS; i++)
        if (errors[i].status == status)
            return may_fail_with(r, status);
    return false;
}

static json_t *content(const char *type, json_t *schema)
{
    return json_pack("{s:{s:o}}", type, "schema", schema);
}

static json_t *success(const struct route *r)
{
    json_t *o = json_pack("{s:s}", "description", r->summary);

    if (r->answer != NULL)
        json_object_set_new(o, "content", content("application/json", schema_ref(r->answer)));
    else if (r->type != NULL)
        json_object_set_new(o, "content", content(r->type, json_pack("{s:s}", "type", "string")));
    return o;
}

static void set_by_status(json_t *o, int status, json_t *v)
{
    char key[16];

    snprintf(key, sizeof key, "%d", status);
    json_object_set_new(o, key, v);
}

static json_t *responses(const struct route *r)
{
    json_t *o = json_object();

    if (r->also & ROUTE_200)
        set_by_status(o, 200, success(r));
    set_by_status(o, r->status, success(r));
    for (int i = 0; i < N_ERRORS; i++) {
        if (!may_fail_with(r, errors[i].status))
            continue;
        set_by_status(
            o, errors[i].status,
            json_pack("{s:o}", "$ref", json_sprintf("#/components/responses/%s", errors[i].name)));
    }
    return o;
}

static json_t *parameter(const struct route *r, const struct field *f)
{
    const bool is_path = route_has_parameter(r, f->name);
    json_t *o = json_pack("{s:s, s:s, s:b, s:o}", "name", f->name, "in", is_path ? "path" : "query",
                          "required", is_path || f->is_required, "schema", schema_field_openapi(f));

    if (f->about != NULL)
        json_object_set_new(o, "description", json_string(f->about));
    return o;
}

static json_t *parameters(const struct route *r)
{
    json_t *list = json_array();

    for (const struct field *f = r->query != NULL ? r->query->fields : NULL; f && f->name; f++)
        json_array_append_new(list, parameter(r, f));
    if (r->also & ROUTE_422)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b, s:{s:s}, s:s}", "name", "Idempotency-Key",
                                        "in", "header", "required", 0, "schema", "type", "string",
                                        "description", "the same request twice counts once"));
    return list;
}

/* "/v1/jobs/{id}" belongs to "jobs", "/healthz" to "daemon". */
static json_t *tags(const struct route *r)
{
    const char *at = strncmp(r->path, "/v1/", 4) == 0 ? r->path + 4 : "daemon";
    json_t *list = json_array();

    json_array_append_new(list, json_stringn(at, strcspn(at, "/")));
    return list;
}

static json_t *operation(const struct route *r)
{
    json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:o, s:s}", "operationId", r->id, "summary",
                          r->summary, "tags", tags(r), "parameters", parameters(r), "responses",
                          responses(r), "x-scope", scope_name(r->scope));

    if (r->body != NULL)
        json_object_set_new(o, "requestBody",
                            json_pack("{s:b, s:o}", "required", 1, "content",
                                      content("application/json", schema_ref(r->body))));
    if (r->scope == SCOPE_NONE)
        json_object_set_new(o, "security", json_array());
    return o;
}

static json_t *paths(const struct route *table, int n)
{
    json_t *all = json_object();

    for (int i = 0; i < n; i++) {
        json_t *item = json_object_get(all, table[i].path);
        char method[16];

        if (item == NULL) {
            item = json_object();
            json_object_set_new(all, table[i].path, item);
        }
        snprintf(method, sizeof method, "%s", table[i].method);
        for (char *p = method; *p != '\0'; p++)
            *p = (char)tolower((unsigned char)*p);
        json_object_set_new(item, method, operation(&table[i]));
    }
    return all;
}

/* 's' and all that it refers to. */
static void collect(json_t *all, const struct schema *s)
{
    if (s == NULL || json_object_get(all, s->name) != NULL)
        return;
    json_object_set_new(all, s->name, schema_openapi(s));
    for (const struct field *f = s->fields; f->name != NULL; f++)
        collect(all, f->of);
}

static json_t *components(const struct route *table, int n)
{
    json_t *schemas = json_object();
    json_t *failures = json_object();

    collect(schemas, &route_error);
    for (int i = 0; i < n; i++) {
        collect(schemas, table[i].body);
        collect(schemas, table[i].answer);
    }
    for (int i = 0; i < N_ERRORS; i++)
        json_object_set_new(failures, errors[i].name,
                            json_pack("{s:s, s:o}", "description", errors[i].about, "content",
                                      content("application/json", schema_ref(&route_error))));
    return json_pack("{s:o, s:o, s:{s:{s:s, s:s, s:s}}}", "schemas", schemas, "responses", failures,
                     "securitySchemes", "bearer", "type", "http", "scheme", "bearer", "description",
                     "Over TCP. On the Unix socket the kernel says who the caller is, and no "
                     "token is needed.");
}

json_t *route_openapi(const struct route *table, int n)
{
    return json_pack(
        "{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s}], s:o, s:o, s:[{s:[]}]}", "openapi",
        "3.0.3", "info", "title", "GOGH", "version", gogh_version, "description",
        "Times are seconds since 1970, the unit of a number ends its key, a throughput is in steps "
        "per second, and what is not known is null.",
        "license", "name", "Apache-2.0", "url", "https://www.apache.org/licenses/LICENSE-2.0",
        "servers", "url", "/", "paths", paths(table, n), "components", components(table, n),
        "security", "bearer");
}
