#include "daemon/http/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/suite.h"

static const struct field job_fields[] = {
    { "name", FIELD_TEXT, .is_required = true, .about = "what it is called" },
    { 0 },
};
static const struct schema job = { "Job", job_fields };
static const struct field jobs_fields[] = {
    { "jobs", FIELD_LIST, .is_required = true, .of = &job, .about = "all of them" },
    { 0 },
};
static const struct schema jobs = { "Jobs", jobs_fields };
static const struct field list_fields[] = {
    { "limit", FIELD_WHOLE, .low = 1, .high = 10, .about = "how many" },
    { "types", FIELD_TEXTS, .about = "which" },
    { 0 },
};
static const struct schema list_query = { "ListQuery", list_fields };
static const struct field at_fields[] = {
    { "id", FIELD_TEXT, .about = "the job" },
    { "at", FIELD_TIME, .about = "when" },
    { 0 },
};
static const struct schema at_query = { "AtQuery", at_fields };
static const struct field gpu_fields[] = {
    { "node", FIELD_TEXT, .about = "the node" },
    { "slot", FIELD_TEXT, .about = "its place there" },
    { 0 },
};
static const struct schema gpu_query = { "GpuQuery", gpu_fields };

static const struct route table[] = {
    { "GET", "/v1/jobs", "listJobs", "All jobs", SCOPE_READ, &list_query, NULL, &jobs, NULL, 200,
      NULL, 0 },
    { "POST", "/v1/jobs", "submitJob", "A new job", SCOPE_SUBMIT, NULL, &job, &job, NULL, 201, NULL,
      0 },
    { "GET", "/v1/jobs/{id}", "showJob", "One job", SCOPE_READ, &at_query, NULL, &job, NULL, 200,
      NULL, 0 },
    { "POST", "/v1/jobs/{id}/cancel", "cancelJob", "No more", SCOPE_SUBMIT, NULL, NULL, &job, NULL,
      200, NULL, 0 },
    { "GET", "/v1/gpus/{node}/{slot}", "showGpu", "A GPU", SCOPE_READ, &gpu_query, NULL, NULL,
      "text/plain", 200, NULL, 0 },
    { "GET", "/healthz", "health", "Alive", SCOPE_NONE, NULL, NULL, NULL, "text/plain", 200, NULL,
      0 },
};
enum { N = sizeof table / sizeof *table };

static const struct {
    const char *name, *method, *path;
    const char *want;    // operationId; NULL: none
    const char *args;    // or Allow
} cases[] = {
    { "a plain path", "GET", "/v1/jobs", "listJobs", "{}" },
    { "by the method", "POST", "/v1/jobs", "submitJob", "{}" },
    { "a parameter", "GET", "/v1/jobs/12", "showJob", "{\"id\":\"12\"}" },
    { "a parameter with more behind it", "POST", "/v1/jobs/a-b/cancel", "cancelJob",
      "{\"id\":\"a-b\"}" },
    { "two parameters", "GET", "/v1/gpus/box/0", "showGpu", "{\"node\":\"box\",\"slot\":\"0\"}" },
    { "an escaped slash does not part", "GET", "/v1/jobs/a%2fcancel", "showJob",
      "{\"id\":\"a/cancel\"}" },
    { "letters beyond ASCII", "GET", "/v1/jobs/%C3%BC", "showJob", "{\"id\":\"\xc3\xbc\"}" },
    { "HEAD goes where GET does", "HEAD", "/healthz", "health", "{}" },
    { "no such path", "GET", "/v1/job", NULL, NULL },
    { "more than the path", "GET", "/v1/jobs/1/2/3", NULL, NULL },
    { "less than the path", "GET", "/v1", NULL, NULL },
    { "a slash at the end", "GET", "/v1/jobs/", NULL, NULL },
    { "an empty parameter", "POST", "/v1/jobs//cancel", NULL, NULL },
    { "nothing", "GET", "", NULL, NULL },
    { "not UTF-8", "GET", "/v1/jobs/%80", NULL, NULL },
    { "a NUL", "GET", "/v1/jobs/%00", NULL, NULL },
    { "half an escape", "GET", "/v1/jobs/%4", NULL, NULL },
    { "half an escape and nothing", "GET", "/v1/jobs/%", NULL, NULL },
    { "no escape at all", "GET", "/v1/jobs/%zz", NULL, NULL },
    { "no such method", "DELETE", "/v1/jobs", NULL, "GET, HEAD, POST" },
    { "no such method with a parameter", "PUT", "/v1/jobs/1", NULL, "GET, HEAD" },
    { "HEAD where there is no GET", "HEAD", "/v1/jobs/1/cancel", NULL, "POST" },
    { "methods are in capitals", "get", "/v1/jobs", NULL, "GET, HEAD, POST" },
};

EACH(found, cases)
{
    json_t *args = json_object();
    const char *allow = NULL;
    int status = 0;
    const struct route *r =
        route_find(table, N, cases[_i].method, cases[_i].path, args, &status, &allow);
    char *text = json_dumps(args, JSON_COMPACT);

    if (cases[_i].want != NULL) {
        ck_assert_msg(r != NULL, "%s: %d", cases[_i].name, status);
        ck_assert_str_eq(r->id, cases[_i].want);
        ck_assert_str_eq(text, cases[_i].args);
    } else {
        ck_assert_msg(r == NULL, "%s: %s", cases[_i].name, r != NULL ? r->id : "");
        ck_assert_int_eq(status, cases[_i].args != NULL ? 405 : 404);
        ck_assert_pstr_eq(allow, cases[_i].args);
        ck_assert_str_eq(text, "{}");
    }
    free(text);
    json_decref(args);
}

static const struct {
    const char *text;
    size_t len, max;
    bool is_query;
    const char *want;    // NULL: refused
} escapes[] = {
    { "a%41b", 5, 8, false, "aAb" },      { "%41", 3, 2, false, "A" },
    { "%41", 3, 1, false, NULL },         { "%41", 2, 8, false, NULL },
    { "%41", 1, 8, false, NULL },         { "a+b%2b", 6, 8, true, "a b+" },
    { "a+b%2b", 6, 8, false, "a+b+" },    { "", 0, 1, true, "" },
    { "%c3%bc", 6, 8, true, "\xc3\xbc" }, { "%c3", 3, 8, true, NULL },
};

EACH(escapes_are_undone, escapes)
{
    char out[8] = "";
    int n =
        route_decode(out, escapes[_i].max, escapes[_i].text, escapes[_i].len, escapes[_i].is_query);

    ck_assert_int_eq(n, escapes[_i].want != NULL ? (int)strlen(escapes[_i].want) : -1);
    if (n >= 0)
        ck_assert_str_eq(out, escapes[_i].want);
}

/* What is at a path of keys and indices, "paths|/v1/jobs|get"; NULL: nothing. */
static json_t *at(json_t *o, const char *path)
{
    while (o != NULL && *path != '\0') {
        size_t n = strcspn(path, "|");
        char key[64];

        snprintf(key, sizeof key, "%.*s", (int)n, path);
        o = json_is_array(o) ? json_array_get(o, strtoul(key, NULL, 10)) : json_object_get(o, key);
        path += n + (path[n] == '|');
    }
    return o;
}

static const struct {
    const char *path, *want;    // as JSON; NULL: nothing is there
} described[] = {
    { "openapi", "\"3.0.3\"" },
    { "info|title", "\"GOGH\"" },
    { "paths|/v1/jobs|get|operationId", "\"listJobs\"" },
    { "paths|/v1/jobs|post|operationId", "\"submitJob\"" },
    { "paths|/v1/jobs|get|tags", "[\"jobs\"]" },
    { "paths|/healthz|get|tags", "[\"daemon\"]" },
    { "paths|/healthz|get|security", "[]" },
    { "paths|/v1/jobs|get|security", NULL },
    { "security", "[{\"bearer\":[]}]" },
    { "components|securitySchemes|bearer|scheme", "\"bearer\"" },
    { "paths|/v1/jobs|post|x-scope", "\"submit\"" },
    { "paths|/v1/jobs|post|requestBody|content|application/json|schema",
      "{\"$ref\":\"#/components/schemas/Job\"}" },
    { "paths|/v1/jobs|get|requestBody", NULL },
    { "paths|/v1/jobs|post|responses|201|content|application/json|schema",
      "{\"$ref\":\"#/components/schemas/Job\"}" },
    { "paths|/healthz|get|responses|200|content|text/plain|schema", "{\"type\":\"string\"}" },
    { "paths|/healthz|get|responses|401", NULL },
    { "paths|/healthz|get|responses|503", "{\"$ref\":\"#/components/responses/Unavailable\"}" },
    { "paths|/v1/jobs|get|responses|409", NULL },
    { "paths|/v1/jobs|post|responses|422", NULL },    // where no key is minded
    { "paths|/v1/jobs|get|responses|405", "{\"$ref\":\"#/components/responses/NotAllowed\"}" },
    { "paths|/v1/jobs|get|responses|401", "{\"$ref\":\"#/components/responses/Unauthorised\"}" },
    { "paths|/v1/jobs/{id}|get|responses|404", "{\"$ref\":\"#/components/responses/NotFound\"}" },
    { "paths|/v1/jobs|get|parameters|0",
      "{\"name\":\"limit\",\"in\":\"query\",\"required\":false,\"schema\":{\"type\":\"integer\","
      "\"format\":\"int64\",\"minimum\":1,\"maximum\":10},\"description\":\"how many\"}" },
    { "paths|/v1/jobs/{id}|get|parameters|0|in", "\"path\"" },
    { "paths|/v1/jobs/{id}|get|parameters|0|required", "true" },
    { "paths|/v1/jobs/{id}|get|parameters|1|in", "\"query\"" },
    { "paths|/v1/gpus/{node}/{slot}|get|parameters|1|name", "\"slot\"" },
    { "paths|/v1/gpus/{node}/{slot}|get|parameters|2", NULL },
    { "components|schemas|Jobs|properties|jobs|items|$ref", "\"#/components/schemas/Job\"" },
    { "components|schemas|Job|required", "[\"name\"]" },
    { "components|schemas|Error|required", "[\"error\"]" },
    { "components|schemas|ErrorBody|type", "\"object\"" },
    { "components|schemas|ListQuery", NULL },
};

EACH(it_describes_itself, described)
{
    json_t *o = route_openapi(table, N);
    json_t *v = at(o, described[_i].path);
    char *text = v != NULL ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    ck_assert_ptr_nonnull(o);
    ck_assert_pstr_eq(text, described[_i].want);
    free(text);
    json_decref(o);
}

/* Every "$ref" below 'o' leads somewhere in 'root'. */
static void check_references(json_t *root, json_t *o)
{
    const char *key;
    size_t i;
    json_t *v;

    if (json_is_array(o)) {
        json_array_foreach(o, i, v) check_references(root, v);
        return;
    }
    json_object_foreach(o, key, v)
    {
        if (strcmp(key, "$ref") == 0) {
            char path[128];

            ck_assert(strncmp(json_string_value(v), "#/", 2) == 0);
            snprintf(path, sizeof path, "%s", json_string_value(v) + 2);
            for (char *p = path; *p != '\0'; p++)
                *p = *p == '/' ? '|' : *p;
            ck_assert_msg(at(root, path) != NULL, "%s leads nowhere", json_string_value(v));
        }
        check_references(root, v);
    }
}

TEST(references_lead_somewhere)
{
    json_t *o = route_openapi(table, N);

    check_references(o, o);
    json_decref(o);
}
