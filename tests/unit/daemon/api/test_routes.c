/* The table of routes is whole, says each thing once, and is what /openapi.json describes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "daemon/http/route.h"
#include "unit/suite.h"

TIMES(each_route_is_whole, n_routes)
{
    const struct route *r = &routes[_i];

    ck_assert_msg(strcmp(r->method, "GET") == 0 || strcmp(r->method, "POST") == 0, "%s", r->path);
    ck_assert_msg(r->path[0] == '/', "%s", r->path);
    ck_assert_ptr_nonnull(r->id);
    ck_assert_ptr_nonnull(r->summary);
    ck_assert_ptr_nonnull((void *)(size_t)r->handle);
    ck_assert_msg(!r->answer != !r->type, "%s: JSON or another type", r->path);
    ck_assert(r->status == 200 || r->status == 201);
    ck_assert_msg(!r->body || strcmp(r->method, "POST") == 0, "%s: a GET with a body", r->path);
}

TIMES(only_health_and_description_need_no_scope, n_routes)
{
    const struct route *r = &routes[_i];
    bool is_open = strncmp(r->path, "/v1/", 4) != 0 && strcmp(r->path, "/metrics") != 0;

    ck_assert_msg((r->scope == SCOPE_NONE) == is_open, "%s", r->path);
    if (strcmp(r->method, "POST") == 0)
        ck_assert_msg(r->scope >= SCOPE_SUBMIT, "%s changes something", r->path);
}

/* Who may change what, or have something worked out of a body; all that only looks takes 'read'. */
static const struct {
    const char *id;
    enum scope scope;
} changes[] = {
    { "submitJob", SCOPE_SUBMIT },
    { "cancelJob", SCOPE_SUBMIT },
    { "scaleService", SCOPE_SUBMIT },
    { "holdJob", SCOPE_SUBMIT },
    { "releaseJob", SCOPE_SUBMIT },
    { "drainNode", SCOPE_OPERATE },
    { "resumeNode", SCOPE_OPERATE },
    { "addWorkload", SCOPE_OPERATE },
    { "addMeasurements", SCOPE_OPERATE },
    { "chooseMeasurements", SCOPE_OPERATE },    // it changes nothing, and takes a core's time
};
enum { N_CHANGES = sizeof changes / sizeof *changes };

TIMES(changes_take_more_than_looking, n_routes)
{
    const struct route *r = &routes[_i];
    enum scope want = r->scope == SCOPE_NONE ? SCOPE_NONE : SCOPE_READ;
    int n = 0;

    for (int i = 0; i < N_CHANGES; i++) {
        if (strcmp(changes[i].id, r->id) == 0) {
            want = changes[i].scope;
            n++;
        }
    }
    ck_assert_msg(n == (strcmp(r->method, "POST") == 0), "%s", r->id);
    ck_assert_msg(r->scope == want, "%s takes %s", r->id, scope_name(r->scope));
}

TIMES(no_two_are_alike, n_routes)
{
    for (int i = 0; i < _i; i++) {
        ck_assert_str_ne(routes[i].id, routes[_i].id);
        ck_assert_msg(strcmp(routes[i].path, routes[_i].path) != 0 ||
                          strcmp(routes[i].method, routes[_i].method) != 0,
                      "%s %s twice", routes[i].method, routes[i].path);
    }
}

/* ---- schemas ---- */

static const struct schema *seen[256];
static int n_seen;

/* It and all that it refers to: named, each name once, fields once, with something about each. */
static void walk(const struct schema *s)
{
    if (!s)
        return;
    for (int i = 0; i < n_seen; i++) {
        if (seen[i] == s)
            return;
        ck_assert_str_ne(seen[i]->name, s->name);
    }
    ck_assert_int_lt(n_seen, 256);
    seen[n_seen++] = s;
    ck_assert_msg(s->name && s->name[0] >= 'A' && s->name[0] <= 'Z', "%s", s->name);
    ck_assert_msg(s->fields[0].name, "%s", s->name);
    for (int i = 0; s->fields[i].name; i++) {
        const struct field *f = &s->fields[i];
        ck_assert_msg(f->about && f->about[0], "%s.%s: about what?", s->name, f->name);
        ck_assert_msg(f->about[strlen(f->about) - 1] != '.', "%s.%s", s->name, f->name);
        ck_assert_msg(f->type != FIELD_LIST || f->of, "%s.%s: of what?", s->name, f->name);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(f->name, s->fields[k].name);
        walk(f->of);
    }
}

TEST(all_schemas_are_named_and_described)
{
    n_seen = 0;
    for (int i = 0; i < n_routes; i++) {
        walk(routes[i].query);
        walk(routes[i].body);
        walk(routes[i].answer);
    }
    ck_assert_int_gt(n_seen, 30);
}

TIMES(parameters_of_a_path_are_required_texts, n_routes)
{
    const struct route *r = &routes[_i];

    for (const char *at = strchr(r->path, '{'); at; at = strchr(at + 1, '{')) {
        char name[32];
        const struct field *f = NULL;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        for (int i = 0; r->query && r->query->fields[i].name; i++)
            if (strcmp(r->query->fields[i].name, name) == 0)
                f = &r->query->fields[i];
        ck_assert_msg(f && f->is_required && f->type == FIELD_TEXT, "%s: {%s}", r->path, name);
    }
}

/* ---- the description ---- */

TEST(openapi_has_exactly_the_routes)
{
    json_t *o = route_openapi(routes, n_routes), *paths = json_object_get(o, "paths");
    const char *path, *method;
    json_t *methods, *operation;
    int n = 0;

    for (int i = 0; i < n_routes; i++) {
        bool is_post = strcmp(routes[i].method, "POST") == 0;
        operation =
            json_object_get(json_object_get(paths, routes[i].path), is_post ? "post" : "get");
        ck_assert_msg(operation != NULL, "%s %s", routes[i].method, routes[i].path);
        ck_assert_str_eq(json_string_value(json_object_get(operation, "operationId")),
                         routes[i].id);
    }
    json_object_foreach(paths, path, methods) json_object_foreach(methods, method, operation) n +=
        json_object_get(operation, "operationId") != NULL;
    ck_assert_int_eq(n, n_routes);
    json_decref(o);
}

/* "POST /v1/jobs/{id}/cancel" may be written as "`/cancel`" behind its first line. */
TIMES(the_page_names_every_route, n_routes)
{
    const char *root = getenv("SRC"), *text, *last;
    char path[4096], word[256];
    struct arena a;
    struct err e = { 0 };
    size_t len;

    if (!root)
        return;    // run by hand, away from the source
    arena_init(&a);
    snprintf(path, sizeof path, "%s/docs/api.md", root);
    ck_assert_msg(file_read_text(&a, path, NULL, 1 << 20, &text, &len, &e) == 0, "%s", e.text);
    snprintf(word, sizeof word, "%s %s", routes[_i].method, routes[_i].path);
    last = strrchr(routes[_i].path, '/');
    char brief[256];
    snprintf(brief, sizeof brief, "`%s`", last);
    ck_assert_msg(strstr(text, word) || strstr(text, brief), "docs/api.md has no '%s'", word);
    arena_release(&a);
}
