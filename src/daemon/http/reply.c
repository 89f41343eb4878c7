#include "daemon/http/inner.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"

#define MESSAGE_MAX 1024
#define STREAM_BLOCK (16 << 10)    // bytes that libmicrohttpd asks a stream for

/* ---- responses ---- */

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (MHD_add_response_header(response, name, value) != MHD_YES)
        log_warn("http: the header '%s: %.100s' cannot be sent", name, value);
}

static struct MHD_Response *of_type(struct MHD_Response *response, const char *type)
{
    assert(response);    // out of memory: stop; restart replays the journal
    add_header(response, "Content-Type", type);
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_header(response, "Cache-Control", "no-store");
    return response;
}

/* Takes over 'text', which is from malloc. */
static struct MHD_Response *make(size_t len, char *text, const char *type)
{
    return of_type(MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE), type);
}

static char *dump(json_t *o, size_t *len)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

    assert(text);    // ours are UTF-8 and not circular; or out of memory
    *len = strlen(text);
    return text;
}

static struct MHD_Response *error_response(int status, const char *message, size_t *len)
{
    const char *code = route_error_code(status);
    json_t *o = json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message);

    if (o == NULL)    // not UTF-8: somebody's bytes are in the message
        o = json_pack("{s:{s:s, s:s}}", "error", "code", code, "message",
                      "what was sent is not UTF-8");
    char *text = dump(o, len);
    json_decref(o);
    struct MHD_Response *response = make(*len, text, "application/json");
    if (status == 503 || status == 429)
        add_header(response, "Retry-After", "1");
    if (status == 401)
        add_header(response, "WWW-Authenticate", "Bearer");
    return response;
}

/* ---- on their way ---- */

enum MHD_Result http_queue(struct request_inner *q)
{
    const unsigned status = (unsigned)q->status;
    struct MHD_Response *response = q->response;
    enum MHD_Result rc;

    assert(response && q->stage == STAGE_READY);
    if (q->location != NULL)
        add_header(response, "Location", q->location);
    if (q->http->is_stopping)
        add_header(response, "Connection", "close");
    rc = MHD_queue_response(q->mhd, status, response);
    MHD_destroy_response(response);
    q->response = NULL;
    q->stage = STAGE_SENT;
    q->http->stats.by_class[status / 100 % 6]++;
    q->conn->state = CONN_ANSWERING;
    q->conn->since_s = clock_stopwatch_s();
    q->conn->allowed_s = q->stream
                             ? (double)INFINITY
                             : q->http->config->timeout_s + (double)q->n_answer / SEND_BYTES_S;
    log_debug("http: %s %s: %u, %zu bytes", q->r.method, q->r.path, status, q->n_answer);
    return rc;
}

/* Its answer may leave. */
static void release(struct request_inner *q)
{
    q->stage = STAGE_READY;
    if (q->is_asleep)
        http_resume(q);
}

static void answer(struct request_inner *q, int status, struct MHD_Response *response, size_t len)
{
    struct http *h = q->http;

    assert(q->stage == STAGE_WORKING && q->response == NULL);    // answered twice
    assert(status >= 200 && status < 600);
    q->status = status;
    q->response = response;
    q->n_answer = len;
    if (!h->is_holding) {
        release(q);
        return;
    }
    q->stage = STAGE_HELD;
    q->next = NULL;
    *h->held_end = q;
    h->held_end = &q->next;
}

/* Depends on nothing that is written, so it is not held. Also while the body arrives: then it waits
 * for its end.
 */
bool http_refuse(struct request_inner *q, int status, const char *format, ...)
{
    char message[MESSAGE_MAX];
    va_list args;

    assert(q->response == NULL);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    q->status = status;
    q->response = error_response(status, message, &q->n_answer);
    q->is_refused = true;
    q->http->stats.n_refused++;
    return false;
}

void http_hold(struct http *h)
{
    h->is_holding = true;
}

static void fail(struct request_inner *q, const struct err *failed)
{
    MHD_destroy_response(q->response);
    q->location = NULL;
    q->status = 503;
    q->response = error_response(503, failed->text, &q->n_answer);
}

void http_flush(struct http *h, const struct err *failed)
{
    struct request_inner *q = h->held;

    h->is_holding = false;
    h->held = NULL;
    h->held_end = &h->held;
    while (q != NULL) {
        struct request_inner *next = q->next;

        if (failed != NULL)
            fail(q, failed);
        release(q);
        q = next;
    }
}

/* ---- what handlers call ---- */

void reply_location(struct request *r, const char *path)
{
    assert(r->inner->stage == STAGE_WORKING);
    r->inner->location = arena_strdup(&r->arena, path);
}

void reply_take(struct request *r, int status, const char *type, char *text, size_t len)
{
    answer(r->inner, status, make(len, text, type), len);
}

void reply_json(struct request *r, int status, json_t *o)
{
    size_t len = 0;
    char *text = dump(o, &len);

    json_decref(o);
    reply_take(r, status, "application/json", text, len);
}

void reply_error(struct request *r, int status, const char *format, ...)
{
    char message[MESSAGE_MAX];
    size_t len = 0;
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    struct MHD_Response *response = error_response(status, message, &len);
    answer(r->inner, status, response, len);
}

void reply_err(struct request *r, const struct err *e)
{
    static const struct {
        int code, status;
    } of[] = { { EINVAL, 400 },   { EILSEQ, 400 },       { ERANGE, 400 },    { EDOM, 400 },
               { E2BIG, 400 },    { ENAMETOOLONG, 400 }, { EACCES, 403 },    { EPERM, 403 },
               { ENOENT, 404 },   { ESRCH, 404 },        { EEXIST, 409 },    { EBUSY, 409 },
               { EFBIG, 413 },    { EMSGSIZE, 413 },     { ENOSPC, 503 },    { EDQUOT, 503 },
               { EROFS, 503 },    { EIO, 503 },          { EAGAIN, 503 },    { ENOMEM, 503 },
               { EMFILE, 503 },   { ENFILE, 503 },       { ETIMEDOUT, 503 }, { ESHUTDOWN, 503 },
               { ECANCELED, 503 } };
    int status = 500;

    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].code == e->code)
            status = of[i].status;
    reply_error(r, status, "%s", e->text);
}

/* ---- streams ---- */

/* libmicrohttpd wants the next bytes. */
static ssize_t read_stream(void *self, uint64_t at, char *to, size_t max)
{
    struct stream *s = self;
    size_t n = s->out.len - s->n_taken;

    (void)at;
    if (s->is_cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0 && s->is_ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        s->request->is_asleep = true;
        MHD_suspend_connection(s->request->mhd);
        return 0;
    }
    n = n < max ? n : max;
    memcpy(to, s->out.data + s->n_taken, n);
    s->n_taken += n;
    if (s->n_taken == s->out.len) {
        buf_clear(&s->out);
        s->n_taken = 0;
    }
    return (ssize_t)n;
}

struct stream *reply_stream(struct request *r, const char *type, void (*on_end)(void *self),
                            void *self)
{
    struct request_inner *q = r->inner;
    struct http *h = q->http;
    struct stream *s;

    if (h->stats.n_streams >= (h->config->connections_max + 1) / 2) {
        reply_error(r, 503, "there are %d listeners already: come back later", h->stats.n_streams);
        return NULL;
    }
    s = heap_array(1, sizeof *s);
    *s = (struct stream){ .request = q, .on_end = on_end, .self = self };
    buf_init(&s->out, 2 * STREAM_MAX);
    assert(q->stage == STAGE_WORKING && q->response == NULL);
    q->status = 200;
    q->response = of_type(
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, s, NULL),
        type);
    q->stream = s;
    h->stats.n_streams++;
    release(q);
    return s;
}

static void stream_wake(struct stream *s)
{
    struct request_inner *q = s->request;

    if (q->stage == STAGE_SENT && q->is_asleep)
        http_resume(q);
}

size_t stream_backlog(const struct stream *s)
{
    return s->out.len - s->n_taken;
}

/* Move what is left to the front once most of the room is in front of it. */
static void stream_tidy(struct stream *s)
{
    const size_t n = stream_backlog(s);

    if (s->n_taken < STREAM_MAX)
        return;
    memmove(s->out.data, s->out.data + s->n_taken, n);
    s->out.len = n;
    s->n_taken = 0;
}

void stream_write(struct stream *s, const char *text, size_t len)
{
    if (s->is_ended || s->is_cut)
        return;
    stream_tidy(s);
    if (stream_backlog(s) + len > STREAM_MAX || buf_append(&s->out, text, len) < 0) {
        log_info("http: a listener reads too slowly: cut off");
        s->is_cut = true;
        http_cut(s->request->conn);
    }
    stream_wake(s);
}

void stream_end(struct stream *s)
{
    s->is_ended = true;
    stream_wake(s);
}

void stream_forget(struct stream *s)
{
    s->on_end = NULL;
    stream_end(s);
}

void http_stream_over(struct request_inner *q)
{
    struct stream *s = q->stream;

    q->stream = NULL;
    q->http->stats.n_streams--;
    if (s->on_end != NULL)
        s->on_end(s->self);
    buf_release(&s->out);
    free(s);
}
