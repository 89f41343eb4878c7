/* fuzz_http.c - any request against the daemon's routes: "METHOD PATH?QUERY", a newline, a body.
 *
 * What comes through is as its schema says; what does not is refused with a reason. The same
 * bytes as a file of tokens.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "daemon/config/auth.h"
#include "daemon/http/inner.h"
#include "daemon/http/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_args(const char *method, char *uri)
{
    json_t *args = json_object();
    const char *allow = NULL;
    struct err e = { 0 };
    int status = 0;
    char *question = strchr(uri, '?');
    const struct route *r;

    if (question != NULL)
        *question = '\0';
    r = route_find(routes, n_routes, method, uri, args, &status, &allow);
    if (r == NULL) {
        assert(status == (allow != NULL ? 405 : 404) && json_object_size(args) == 0);
    } else if (http_check_args(r, args, question != NULL ? question + 1 : NULL, &e) == 0) {
        if (r->query != NULL)
            assert(schema_check(r->query, args, &e) == 0);
    } else {
        assert(e.code == EINVAL && e.text[0] != '\0');
    }
    json_decref(args);
}

/* Against the body of every route. */
static void fuzz_body(const char *bytes, size_t len)
{
    for (int i = 0; i < n_routes; i++) {
        struct err e = { 0 };
        json_t *o;

        if (routes[i].body == NULL)
            continue;
        o = http_parse_body(routes[i].body, bytes, len, &e);
        if (o != NULL)
            assert(json_is_object(o) && schema_check(routes[i].body, o, &e) == 0);
        else
            assert(e.code == EINVAL && e.text[0] != '\0');
        json_decref(o);
    }
}

static void fuzz_tokens(const char *bytes, size_t len)
{
    struct auth_row *rows = NULL;
    struct arena a;
    struct err e = { 0 };
    int n = 0;

    arena_init(&a);
    if (auth_parse(&a, "tokens", bytes, len, &rows, &n, &e) == 0) {
        for (int i = 0; i < n; i++) {
            const char *line = auth_line(&a, &rows[i]);
            struct auth_row *again = NULL;
            int one = 0;

            assert(auth_parse(&a, "line", line, strlen(line), &again, &one, &e) == 0 && one == 1);
            assert(strcmp(again->name, rows[i].name) == 0);
        }
    } else {
        assert(e.text[0] != '\0');
    }
    arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    const char *newline = size > 0 ? memchr(bytes, '\n', size) : NULL;
    size_t n_line = newline != NULL ? (size_t)(newline - bytes) : size;
    char *line = strndup(bytes, n_line);
    char *uri = line + strcspn(line, " ");

    if (*uri == ' ')
        *uri++ = '\0';
    fuzz_args(line, uri);
    fuzz_body(newline != NULL ? newline + 1 : bytes, newline != NULL ? size - n_line - 1 : size);
    fuzz_tokens(bytes, size);
    free(line);
    return 0;
}
