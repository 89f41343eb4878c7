/* http.h - libmicrohttpd on our loop: requests in, replies out, nothing known of jobs.
 *
 * Made by the service; two listeners at most, a Unix socket and TCP with TLS. Requests reach
 * their route's handler (route.h) on the loop's thread once their body is whole, checked
 * and allowed. Ceilings on headers, bodies, connections and requests a second are the
 * configuration's; a client that dawdles is cut off.
 */
#ifndef DAEMON_HTTP_HTTP_H
#define DAEMON_HTTP_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "daemon/config/auth.h"

struct config;
struct err;
struct http;
struct loop;
struct route;

struct request {
    struct arena arena;    // dies with the request
    const struct route *route;
    const char *method, *path;    // the path as it came, without the query
    struct caller caller;
    json_t *args;         // path and query parameters by name, checked; absent ones are absent
    json_t *body;         // checked against the route's schema; NULL: the route takes none
    const char *bytes;    // the body as it came
    size_t n_bytes;
    const char *key;    // Idempotency-Key; NULL: none
    void *service;      // what http_create was given
    struct request_inner *inner;
};

/* Values of 'args' and 'body'; the default where absent or null. Texts are borrowed. A time is a
 * number of seconds since 1970, however it was written.
 */
const char *request_text(const struct request *r, const char *name);    // NULL: absent
double request_number(const struct request *r, const char *name, double otherwise);

/* A header that came with it ("Last-Event-ID"); NULL: none. Borrowed. */
const char *request_header(const struct request *r, const char *name);

/* Every request is answered exactly once by one of these, at once or later (until then the
 * connection sleeps, and 'r' stays valid). JSON references are taken over. An answer leaves only
 * when http_flush says that what this turn wrote is safe.
 */
void reply_json(struct request *r, int status, json_t *o);

/* 'text' is from malloc, and taken over. */
void reply_take(struct request *r, int status, const char *type, char *text, size_t len);

/* {"error": {"code": "not_found", "message": "..."}}; the code follows from the status. */
void reply_error(struct request *r, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The status that suits an error of ours: EINVAL 400, EACCES 403, ENOENT 404, EEXIST and EBUSY 409,
 * ENOSPC and EROFS and EIO 503, ...
 */
void reply_err(struct request *r, const struct err *e);

/* For the answer to come: where that is which was made. */
void reply_location(struct request *r, const char *path);

/* An endless answer (server-sent events), which is never held back: write only what is safe.
 * Whoever reads too slowly to keep its backlog below STREAM_MAX bytes is cut off, and so is
 * who reads nothing of it for timeout_s. 'on_end' is called once, when it is over from either
 * side; then 's' is gone. NULL, and answered with 503: half of all connections are streams.
 */
#define STREAM_MAX (256 * 1024)
struct stream;
struct stream *reply_stream(struct request *r, const char *type, void (*on_end)(void *self),
                            void *self);
void stream_write(struct stream *s, const char *text, size_t len);
size_t stream_backlog(const struct stream *s);    // bytes written and not yet on their way
void stream_end(struct stream *s);       // what was written still goes out; on_end comes later
void stream_forget(struct stream *s);    // end it; on_end will not be called

/* Serve the routes of 'table' (n) with 'service' in every request; all borrowed. */
struct http *http_create(struct loop *l, const struct config *c, struct auth *a,
                         const struct route *table, int n, void *service);

/* Answers what is open with 503 first: no handler may touch its request any more. NULL is fine. */
void http_destroy(struct http *h);

/* Listen; the socket is made with the configured mode, in the place of one that nobody listens
 * to (-EADDRINUSE: somebody does). TLS files are read here; without them TCP must be on the
 * loopback.
 */
int http_listen(struct http *h, struct err *e);

/* After a reload. Counts from the next request on; streams of who may not listen any more end. */
void http_use_auth(struct http *h, struct auth *a);

/* From now on hold answers back: something was written that is not on disk yet. */
void http_hold(struct http *h);

/* It is now (NULL), or never will be: then held answers become 503 with that error's text. */
void http_flush(struct http *h, const struct err *failed);

/* The port of the TCP listener, for tests that ask for port 0; 0: none. */
int http_port(const struct http *h);

/* For /metrics. */
struct http_stats {
    uint64_t n_requests, n_refused, n_unauthorised, n_limited;
    uint64_t by_class[6];    // answers by status / 100
    uint64_t n_cut;          // connections that dawdled
    int n_connections;
    int n_streams;
};
struct http_stats http_stats(const struct http *h);

#endif
