/* inner.h - what the files of http share: servers, listeners, connections, requests on their way.
 *
 *     WAITING --first line--> ARRIVING --body whole--> ANSWERING --sent--> WAITING
 *        |                       |                        |
 *        +----- longer than timeout_s: cut ---------------+ (slower than SEND_BYTES_S)
 *
 * A connection has at most one request at a time; those that follow wait in its buffer. A
 * request whose handler has not answered, or whose answer is held back, sleeps: libmicrohttpd
 * calls that suspended, and it is neither read nor timed then.
 */
#ifndef DAEMON_HTTP_INNER_H
#define DAEMON_HTTP_INNER_H

#include <microhttpd.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "daemon/config/config.h"
#include "daemon/http/http.h"
#include "daemon/http/route.h"

#define SEND_BYTES_S (16.0 * 1024)    // who reads an answer slower than this, and timeout_s, is cut
#define LIMIT_BUCKETS 4096
#define PARTIES 4096
#define SERVERS 2
#define LISTENERS 2

/* One libmicrohttpd daemon: with TLS, or without. */
struct server {
    struct http *http;
    struct MHD_Daemon *mhd;    // NULL: not needed
    int epoll_fd;
    struct loop_timer timer;    // when it wants to run though nothing is ready
};

struct listener {
    struct http *http;
    struct server *server;
    int fd;              // -1: none
    dev_t dev;           // of a Unix socket's file,
    ino_t ino;           // so that only ours is removed
    const char *path;    // NULL: TCP
};

enum conn_state { CONN_WAITING, CONN_ARRIVING, CONN_ANSWERING };

struct conn {
    struct http *http;
    struct server *server;
    struct conn *prev, *next;
    struct request_inner *request;    // NULL: none
    enum conn_state state;
    double since_s;      // in that state, on the stopwatch
    double allowed_s;    // for the answer; INFINITY: not timed
    int fd;
    bool is_unix, is_cut;
    uint64_t party;         // a number for who is at the other end: a user here, or an address
    struct arena arena;     // texts of 'peer'
    struct caller peer;     // of a Unix socket
    int peer_generation;    // of the auth that said so; 0: not asked yet
};

enum stage {
    STAGE_ARRIVING,
    STAGE_WORKING,    // the handler has it
    STAGE_HELD,       // answered, and held back
    STAGE_READY,      // answered, to be queued
    STAGE_SENT,
};

struct request_inner {
    struct request r;    // first: what handlers see
    struct http *http;
    struct conn *conn;
    struct MHD_Connection *mhd;
    struct request_inner *next;    // in the list of held ones
    char *uri;                     // as it came
    const char *query;             // after the '?'; NULL: none
    enum stage stage;
    bool has_begun;     // its headers were looked at
    bool is_refused;    // has an answer before its body is whole, which is thrown away
    bool is_asleep;     // suspended
    bool is_too_large;
    size_t n_thrown;    // bytes of body
    struct buf body;
    int status;
    size_t n_answer;                  // bytes
    struct MHD_Response *response;    // until queued
    struct stream *stream;
    const char *location;    // of what was made; NULL: nothing was
};

struct stream {
    struct request_inner *request;
    struct buf out;
    size_t n_taken;    // of 'out', by libmicrohttpd
    bool is_ended, is_cut;
    void (*on_end)(void *self);    // NULL: forgotten
    void *self;
};

struct bucket {
    uint64_t key;
    double left, at_s;
};

struct http {
    struct loop *loop;
    const struct config *config;
    struct auth *auth;
    int auth_generation;
    const struct route *routes;
    int n_routes;
    void *service;
    struct server servers[SERVERS];          // without TLS, with
    struct listener listeners[LISTENERS];    // Unix, TCP
    bool is_full;    // listeners are not watched: too many connections, or descriptors
    struct conn *conns;
    int parties[PARTIES];        // connections of each party; those that meet in one place share it
    struct loop_timer sweep;     // looks for connections that dawdle
    struct loop_timer reopen;    // listen again after the system was out of descriptors
    bool is_holding, is_stopping;
    struct request_inner *held, **held_end;
    int port;
    struct bucket *buckets;    // (LIMIT_BUCKETS)
    struct http_stats stats;
};

/* http.c */
void http_run_server(void *self);             // a struct server
void http_resume(struct request_inner *q);    // it sleeps; its server runs in the next turn
void http_cut(struct conn *c);

/* How many connections a party has. */
int *http_party(struct http *h, uint64_t party);

/* accept.c: listeners, and the connections that come through them. */
int http_open_listeners(struct http *h, struct err *e);
void http_close_listeners(struct http *h);
void http_conn_closed(struct http *h);    // there is room again
void http_reopen(void *self);

/* request.c: what libmicrohttpd calls. */
void *http_on_uri(void *self, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result http_on_access(void *self, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **request);
void http_on_completed(void *self, struct MHD_Connection *mhd, void **request,
                       enum MHD_RequestTerminationCode why);

/* The listener of a stream is asked about anew: may it still listen? */
bool http_may_stay(struct request_inner *q);

/* The same without a connection, for tests: a query against its route, a body against its schema.
 */
int http_check_args(const struct route *r, json_t *args, const char *query, struct err *e);
json_t *http_parse_body(const struct schema *s, const char *bytes, size_t len, struct err *e);

/* reply.c */
enum MHD_Result http_queue(struct request_inner *q);

/* Answer before a handler has seen it; false, always, so that a check can end with it. */
bool http_refuse(struct request_inner *q, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void http_stream_over(struct request_inner *q);

/* limit.c: 0, or the seconds until 'key' may ask again. */
double http_limit(struct http *h, uint64_t key, double now_s);
uint64_t http_mix(uint64_t x);    // all its bits into all of the result
uint64_t http_hash(const void *bytes, size_t n);

#endif
