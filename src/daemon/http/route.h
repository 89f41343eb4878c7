/* route.h - everything that can be asked of the daemon, as one table.
 *
 * Drives dispatch, argument checks, permission, /openapi.json and its tests. Handlers are in
 * api_*.c, by subject.
 */
#ifndef DAEMON_HTTP_ROUTE_H
#define DAEMON_HTTP_ROUTE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/auth.h"
#include "daemon/http/schema.h"

struct request;

struct route {
    const char *method;    // "GET", "POST", "DELETE"
    const char *path;      // "/v1/jobs/{id}"
    const char *id;        // OpenAPI's operationId: "listJobs"
    const char *summary;
    enum scope scope;               // the least that the caller needs
    const struct schema *query;     // all path and query parameters; NULL: none
    const struct schema *body;      // NULL: none
    const struct schema *answer;    // NULL: not JSON; see 'type'
    const char *type;               // content type of other answers
    int status;                     // of success
    void (*handle)(struct request *r);
    unsigned also;    // ROUTE_...: what its handler answers beside that
};

enum {
    ROUTE_200 = 1,    // it was there before
    ROUTE_404 = 2,    // what a parameter names is not there; said of paths with "{...}" anyway
    ROUTE_409 = 4,
    ROUTE_422 = 8,    // minds the Idempotency-Key
};

/* Can the route answer with this status, as far as /openapi.json says? */
bool route_may_answer(const struct route *r, int status);

/* The daemon's (routes.c). */
extern const struct route routes[];
extern const int n_routes;

/* The route for a request; 'path' is as it came, without the query. Path parameters go into 'args'
 * as texts, percent-decoded; what is not UTF-8 then is no path. HEAD goes where GET does. NULL with
 * 404 (no such path) or 405 (no such method there; '*allow' names those that are, until the next
 * call) in '*status'.
 */
const struct route *route_find(const struct route *table, int n, const char *method,
                               const char *path, json_t *args, int *status, const char **allow);

/* Is "{name}" in its path? */
bool route_has_parameter(const struct route *r, const char *name);

/* Undo %XX (and '+', in a query) into 'out' ('max' bytes with the NUL). Gives the length, or -1:
 * a broken escape, not UTF-8, a NUL, too long.
 */
int route_decode(char *out, size_t max, const char *text, size_t len, bool is_query);

/* The word for an error with that status, as "not_found". */
const char *route_error_code(int status);

/* The whole description, OpenAPI 3.0.3. Errors are all of 'route_error'. */
extern const struct schema route_error;
json_t *route_openapi(const struct route *table, int n);

#endif
