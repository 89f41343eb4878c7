#include "daemon/http/http.h"

#include <curl/curl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/text/buf.h"
#include "base/log.h"
#include "daemon/http/inner.h"
#include "unit/daemon/box.h"
#include "unit/suite.h"

/* ---- a small daemon ---- */

static struct box box;
static struct request *later;    // of /v1/later, until somebody answers
static struct stream *stream;    // of /v1/stream
static int n_ended;              // streams
static int n_handled;

static const char *const states[] = { "waiting", "running", NULL };
static const struct field query_fields[] = {
    { "id", FIELD_TEXT, .is_required = true, .low = 1, .high = 20, .about = "which" },
    { "limit", FIELD_WHOLE, .low = 1, .high = 100, .about = "how many" },
    { "state", FIELD_TEXT, .words = states, .about = "only those" },
    { "since", FIELD_TIME, .about = "only after" },
    { "brief", FIELD_FLAG, .about = "less" },
    { 0 },
};
static const struct schema query = { "ThingQuery", query_fields };
static const struct field thing_fields[] = {
    { "name", FIELD_TEXT, .is_required = true, .low = 1, .high = 40, .about = "what it is called" },
    { "steps", FIELD_WHOLE, .low = 1, .high = 1e9, .about = "how many" },
    { "tags", FIELD_TEXTS, .low = 0, .high = 3, .about = "words" },
    { 0 },
};
static const struct schema thing = { "Thing", thing_fields };
static const struct field size_fields[] = {
    { "bytes", FIELD_WHOLE, .low = 0, .high = 1e8, .about = "how large" },
    { 0 },
};
static const struct schema size = { "SizeQuery", size_fields };

static void show(struct request *r)
{
    n_handled++;
    reply_json(r, 200, json_incref(r->args));
}

static void make(struct request *r)
{
    n_handled++;
    ck_assert_ptr_eq(r->service, &box);
    reply_location(r, "/v1/things/x");
    reply_json(r, 201,
               json_pack("{s:s, s:f, s:s, s:s?, s:s?}", "name", request_text(r, "name"), "steps",
                         request_number(r, "steps", -1), "owner", r->caller.owner, "token",
                         r->caller.token, "key", r->key));
}

static void keep(struct request *r)
{
    later = r;
}

static void save(struct request *r)
{
    http_hold(box.http);
    reply_location(r, "/v1/saved");
    reply_json(r, 201, json_pack("{s:b}", "saved", 1));
}

static void say(struct request *r)
{
    reply_take(r, 200, "text/plain", strdup("ok\n"), 3);
}

static void refuse(struct request *r)
{
    struct err e = { 0 };

    err_fill(&e, (int)request_number(r, "bytes", EINVAL), "because");
    reply_err(r, &e);
}

static void send_large(struct request *r)
{
    size_t n = (size_t)request_number(r, "bytes", 10);
    char *bytes = malloc(n + 1);

    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'x', n);
    reply_take(r, 200, "text/plain", bytes, n);
}

static void on_end(void *self)
{
    ck_assert_ptr_eq(self, &n_ended);
    stream = NULL;
    n_ended++;
}

static void open_stream(struct request *r)
{
    stream = reply_stream(r, "text/event-stream", on_end, &n_ended);
}

static const struct route table[] = {
    { "GET", "/v1/things/{id}", "showThing", "A thing", SCOPE_READ, &query, NULL, &thing, NULL, 200,
      show, 0 },
    { "POST", "/v1/things", "makeThing", "A new thing", SCOPE_SUBMIT, NULL, &thing, &thing, NULL,
      201, make, 0 },
    { "POST", "/v1/admin", "rule", "For admins", SCOPE_ADMIN, NULL, NULL, NULL, "text/plain", 200,
      say, 0 },
    { "GET", "/v1/later", "wait", "In its time", SCOPE_READ, NULL, NULL, &thing, NULL, 200, keep,
      0 },
    { "POST", "/v1/save", "save", "On disk", SCOPE_SUBMIT, NULL, NULL, &thing, NULL, 201, save, 0 },
    { "GET", "/v1/stream", "listen", "On and on", SCOPE_READ, NULL, NULL, NULL, "text/event-stream",
      200, open_stream, 0 },
    { "GET", "/v1/large", "large", "A lot", SCOPE_READ, &size, NULL, NULL, "text/plain", 200,
      send_large, 0 },
    { "GET", "/v1/refuse", "refuse", "An error", SCOPE_READ, &size, NULL, NULL, NULL, 200, refuse,
      0 },
    { "GET", "/open", "open", "For everybody", SCOPE_NONE, NULL, NULL, NULL, "text/plain", 200, say,
      0 },
};
enum { N_TABLE = sizeof table / sizeof *table };

static void prepare(void)
{
    later = NULL;
    stream = NULL;
    n_ended = n_handled = 0;
    box_init(&box);
}

static void start(void)
{
    box_open(&box, table, N_TABLE, &box);
}

static void set_up(void)
{
    prepare();
    start();
}

static void tear_down(void)
{
    box_close(&box);
}

FIXTURE(set_up, tear_down)

static const char *bearer(enum scope s)
{
    return s == SCOPE_NONE ? ""
                           : arena_printf(&box.arena, "Authorization: Bearer %s\r\n", box.token[s]);
}

/* ---- what is refused, and with which words ---- */

#define JSON "Content-Type: application/json\r\n"

static const struct {
    const char *name;
    enum scope scope;
    const char *line, *headers, *body;
    int want;
    const char *says;    // in the head or the body
} refusals[] = {
    { "a path that is not there", SCOPE_ADMIN, "GET /v1/nothing", "", "", 404, "not_found" },
    { "a path with one more slash", SCOPE_ADMIN, "GET /v1/things/", "", "", 404, "openapi" },
    { "a path that is not UTF-8", SCOPE_ADMIN, "GET /v1/things/%ff", "", "", 404, "not_found" },
    { "a path with a NUL", SCOPE_ADMIN, "GET /v1/things/a%00b", "", "", 404, "not_found" },
    { "a method that is not there names those that are", SCOPE_ADMIN, "DELETE /v1/things/x", "", "",
      405, "Allow: GET, HEAD" },
    { "the path comes before the caller", SCOPE_NONE, "GET /v1/nothing", "", "", 404, "" },
    { "nobody", SCOPE_NONE, "GET /v1/things/x", "", "", 401, "WWW-Authenticate: Bearer" },
    { "a wrong token", SCOPE_NONE, "GET /v1/things/x", "Authorization: Bearer gogh_no\r\n", "", 401,
      "unauthorised" },
    { "another kind of authorization", SCOPE_NONE, "GET /v1/things/x",
      "Authorization: Basic YTpi\r\n", "", 401, "Bearer TOKEN" },
    { "a scope that is too low is named", SCOPE_READ, "POST /v1/things", JSON, "{\"name\": \"a\"}",
      403, "needs the scope 'submit'" },
    { "the scope comes before the body", SCOPE_READ, "POST /v1/things", JSON, "{", 403,
      "forbidden" },
    { "an operator is no admin", SCOPE_OPERATE, "POST /v1/admin", "", "", 403, "forbidden" },
    { "a form is no JSON", SCOPE_SUBMIT, "POST /v1/things",
      "Content-Type: application/x-www-form-urlencoded\r\n", "name=a", 415, "application/json" },
    { "JSON lines are no JSON", SCOPE_SUBMIT, "POST /v1/things",
      "Content-Type: application/jsonl\r\n", "{\"name\": \"a\"}", 415, "unsupported" },
    { "a compressed body", SCOPE_SUBMIT, "POST /v1/things", JSON "Content-Encoding: gzip\r\n", "x",
      415, "gzip" },
    { "the type comes before the body", SCOPE_SUBMIT, "POST /v1/things",
      "Content-Type: text/plain\r\n", "{", 415, "unsupported" },
    { "no body", SCOPE_SUBMIT, "POST /v1/things", JSON, "", 400, "a Thing" },
    { "half a body says where it ends", SCOPE_SUBMIT, "POST /v1/things", JSON, "{\"name\":", 400,
      "line 1 column 8" },
    { "two values", SCOPE_SUBMIT, "POST /v1/things", JSON, "{\"name\": \"a\"} {}", 400,
      "bad_request" },
    { "a key that is given twice", SCOPE_SUBMIT, "POST /v1/things", JSON,
      "{\"name\": \"a\", \"name\": \"b\"}", 400, "duplicate" },
    { "a list for an object", SCOPE_SUBMIT, "POST /v1/things", JSON, "[]", 400, "an object" },
    { "a misspelt field is recognised", SCOPE_SUBMIT, "POST /v1/things", JSON,
      "{\"name\": \"a\", \"stepz\": 1}", 400, "did you mean 'steps'?" },
    { "a field that is missing", SCOPE_SUBMIT, "POST /v1/things", JSON, "{}", 400,
      "'name' is missing: what it is called" },
    { "a number out of bounds", SCOPE_SUBMIT, "POST /v1/things", JSON,
      "{\"name\": \"a\", \"steps\": 0}", 400, "from 1 to 1000000000" },
    { "a body that is not UTF-8", SCOPE_SUBMIT, "POST /v1/things", JSON, "{\"name\": \"\xff\"}",
      400, "bad_request" },
    { "a nest too deep", SCOPE_SUBMIT, "POST /v1/things", JSON,
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 400, "deeper" },
    { "a body that nobody wants", SCOPE_ADMIN, "POST /v1/admin", JSON, "{}", 400, "takes no body" },
    { "an unknown parameter is recognised", SCOPE_READ, "GET /v1/things/x?limt=3", "", "", 400,
      "did you mean 'limit'?" },
    { "an unknown parameter of a route without any", SCOPE_READ, "GET /v1/later?x=1", "", "", 400,
      "unknown parameter 'x'" },
    { "a parameter that is given twice", SCOPE_READ, "GET /v1/things/x?limit=3&limit=4", "", "",
      400, "twice" },
    { "a parameter of the path in the query", SCOPE_READ, "GET /v1/things/x?id=y", "", "", 400,
      "unknown parameter 'id'" },
    { "a parameter that is no number", SCOPE_READ, "GET /v1/things/x?limit=many", "", "", 400,
      "'limit' wants a whole number" },
    { "a parameter out of bounds", SCOPE_READ, "GET /v1/things/x?limit=101", "", "", 400,
      "from 1 to 100" },
    { "a word that is none of those", SCOPE_READ, "GET /v1/things/x?state=lost", "", "", 400,
      "waiting or running" },
    { "a time without its offset", SCOPE_READ, "GET /v1/things/x?since=2026-11-16T18:00:00", "", "",
      400, "2026-11-16T18:00:00Z" },
    { "a broken escape", SCOPE_READ, "GET /v1/things/x?state=%4", "", "", 400, "%XX" },
    { "a parameter that is not UTF-8", SCOPE_READ, "GET /v1/things/x?state=%c3%28", "", "", 400,
      "UTF-8" },
    { "a path parameter that is too long", SCOPE_READ, "GET /v1/things/123456789012345678901", "",
      "", 400, "'id' wants 1 to 20 bytes" },
    { "an idempotency key of blanks", SCOPE_SUBMIT, "POST /v1/things",
      JSON "Idempotency-Key: a\x01z\r\n", "{\"name\": \"a\"}", 400, "Idempotency-Key" },
};

EACH(refused_with_a_reason, refusals)
{
    const char *headers =
        arena_printf(&box.arena, "%s%s", bearer(refusals[_i].scope), refusals[_i].headers);
    const char *request = request_of(&box, refusals[_i].line, headers, refusals[_i].body);
    struct client c = client_tcp(&box);
    struct answer got = client_ask(&c, request);

    ck_assert_msg(got.status == refusals[_i].want, "%s: %d %s", refusals[_i].name, got.status,
                  got.body);
    ck_assert_msg(strstr(got.head, refusals[_i].says) || strstr(got.body, refusals[_i].says),
                  "%s: %s%s", refusals[_i].name, got.head, got.body);
    ck_assert_ptr_nonnull(strstr(got.body, "{\"error\":{\"code\":\""));
    ck_assert_int_eq(n_handled, 0);
    /* The connection goes on. */
    got = client_ask(&c, request_of(&box, "GET /open", "", ""));
    ck_assert_int_eq(got.status, 200);
    client_close(&c);
}

TEST(who_asks_too_often_is_told_when_to_come_back)
{
    box.config.rate_max = 3;
    struct client c = client_tcp(&box);
    const char *ask = request_of(&box, "GET /v1/things/x", bearer(SCOPE_READ), "");
    const char *other = request_of(&box, "GET /v1/things/x", bearer(SCOPE_ADMIN), "");
    struct answer got = { 0 };

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(client_ask(&c, ask).status, 200);
    got = client_ask(&c, ask);
    ck_assert_int_eq(got.status, 429);
    ck_assert_ptr_nonnull(strstr(got.head, "Retry-After: 1"));
    ck_assert_ptr_nonnull(strstr(got.body, "too_many"));
    ck_assert_int_eq(client_ask(&c, other).status, 200);    // has a limit of its own
    ck_assert_uint_eq(http_stats(box.http).n_limited, 1);
    BOX_UNTIL(&box, client_ask(&c, ask).status == 200);    // a third of a second later
    client_close(&c);
}

TEST(a_body_too_large_is_refused_before_it_comes)
{
    struct client c = client_tcp(&box);
    const char *head = arena_printf(&box.arena,
                                    "POST /v1/things HTTP/1.1\r\nHost: g\r\n%s%s"
                                    "Content-Length: 65537\r\n\r\n",
                                    bearer(SCOPE_SUBMIT), JSON);
    struct answer got = client_ask(&c, head);

    ck_assert_int_eq(got.status, 413);
    ck_assert_ptr_nonnull(strstr(got.body, "65536"));
    BOX_UNTIL(&box, (client_take(&c), c.is_over));
    client_close(&c);
}

/* 'n' chunks of 4000 blanks, then a thing. */
static void send_chunks(struct client *c, int n)
{
    char chunk[4096];

    (void)client_send(c, chunk,
                      (size_t)snprintf(chunk, sizeof chunk,
                                       "POST /v1/things HTTP/1.1\r\nHost: g\r\n%s%s"
                                       "Transfer-Encoding: chunked\r\n\r\n",
                                       bearer(SCOPE_SUBMIT), JSON));
    snprintf(chunk, sizeof chunk, "fa0\r\n%4000s\r\n", "");
    for (int i = 0; i < n; i++)
        if (!client_send(c, chunk, strlen(chunk)))
            return;
    (void)client_send(c, "e\r\n{\"name\": \"ch\"}\r\n0\r\n\r\n", 24);
}

TEST(a_body_in_chunks_is_put_together)
{
    struct client c = client_tcp(&box);
    struct answer got = { 0 };

    send_chunks(&c, 10);
    got = client_answer(&c);
    ck_assert_int_eq(got.status, 201);
    ck_assert_ptr_nonnull(strstr(got.body, "\"name\":\"ch\""));
    send_chunks(&c, 20);    // 80,000 bytes
    got = client_answer(&c);
    ck_assert_int_eq(got.status, 413);
    ck_assert_int_eq(client_ask(&c, request_of(&box, "GET /open", "", "")).status, 200);
    ck_assert_int_eq(n_handled, 1);
    client_close(&c);
}

TEST(chunks_without_end_are_cut)
{
    struct client c = client_tcp(&box);

    send_chunks(&c, 200);    // 800,000 bytes
    BOX_UNTIL(&box, (client_take(&c), c.is_over));
    ck_assert_int_eq(n_handled, 0);
    client_close(&c);
}

TEST(headers_too_large_are_refused)
{
    struct client c = client_tcp(&box);
    char *large = arena_alloc(&box.arena, 40000);
    struct answer got = { 0 };

    memset(large, 'h', 39000);
    memcpy(large, "X-Large: ", 9);
    memcpy(large + 39000, "\r\n", 3);
    got = client_ask(&c, request_of(&box, "GET /open", large, ""));
    ck_assert_msg(got.status == 431 || got.status == 413, "%d", got.status);
    client_close(&c);
}

/* ---- what is answered ---- */

static const struct {
    const char *name, *line, *want;
} asks[] = {
    { "a path parameter is decoded", "GET /v1/things/a%2Fb%20c", "{\"id\":\"a/b c\"}" },
    { "a plus in a path is a plus", "GET /v1/things/a+b", "{\"id\":\"a+b\"}" },
    { "parameters have their types",
      "GET /v1/things/x?limit=7&state=running&brief&since=1970-01-01T01:00:01.5%2B01:00",
      "{\"id\":\"x\",\"limit\":7,\"state\":\"running\",\"brief\":true,\"since\":1.5}" },
    { "empty parameters are none", "GET /v1/things/x?&&limit=7&", "{\"id\":\"x\",\"limit\":7}" },
    { "a proxy's way of asking", "GET http://gogh/v1/things/x?limit=7",
      "{\"id\":\"x\",\"limit\":7}" },
};

EACH(answered, asks)
{
    struct client c = client_tcp(&box);
    struct answer got = client_ask(&c, request_of(&box, asks[_i].line, bearer(SCOPE_READ), ""));

    ck_assert_msg(got.status == 200, "%s: %d %s", asks[_i].name, got.status, got.body);
    ck_assert_str_eq(got.body, asks[_i].want);
    ck_assert_ptr_nonnull(strstr(got.head, "X-Content-Type-Options: nosniff"));
    ck_assert_ptr_nonnull(strstr(got.head, "Cache-Control: no-store"));
    ck_assert_ptr_nonnull(strstr(got.head, "Content-Type: application/json"));
    client_close(&c);
}

TEST(a_body_comes_with_its_caller_and_key)
{
    struct client c = client_tcp(&box);
    const char *headers =
        arena_printf(&box.arena, "%sContent-Type: application/json; charset=utf-8\r\n%s",
                     bearer(SCOPE_SUBMIT), "Idempotency-Key: k1\r\n");
    struct answer got =
        client_ask(&c, request_of(&box, "POST /v1/things", headers, "{\"name\": \"a\"}"));

    ck_assert_int_eq(got.status, 201);
    ck_assert_ptr_nonnull(strstr(got.head, "Location: /v1/things/x"));
    ck_assert_str_eq(got.body,
                     "{\"name\":\"a\",\"steps\":-1.0,\"owner\":\"ann\",\"token\":\"submit\","
                     "\"key\":\"k1\"}");
    client_close(&c);
}

TEST(the_peer_of_the_socket_is_known)
{
    struct client c = client_unix(&box);
    struct answer got = client_ask(&c, request_of(&box, "POST /v1/admin", "", ""));
    struct stat st;

    ck_assert_int_eq(got.status, 200);    // the daemon's own user is an admin
    got = client_ask(&c, request_of(&box, "POST /v1/admin", bearer(SCOPE_READ), ""));
    ck_assert_int_eq(got.status, 403);    // a token counts before that
    ck_assert_int_eq(stat(box.sock, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    client_close(&c);
}

TEST(head_is_get_without_the_body)
{
    struct client c = client_tcp(&box);
    struct answer got =
        client_ask(&c, request_of(&box, "HEAD /v1/things/x", bearer(SCOPE_READ), ""));

    ck_assert_int_eq(got.status, 200);
    ck_assert_ptr_nonnull(strstr(got.head, "Content-Length: 10"));
    got = client_ask(&c, request_of(&box, "GET /open", "", ""));
    ck_assert_int_eq(got.status, 200);
    client_close(&c);
}

TEST(requests_in_one_piece_are_answered_in_order)
{
    struct client c = client_tcp(&box);
    char *all = arena_alloc(&box.arena, 65536);

    for (int i = 0; i < 20; i++) {
        char line[40];
        size_t n = strlen(all);

        snprintf(line, sizeof line, "GET /v1/things/%d", i);
        snprintf(all + n, 65536 - n, "%s", request_of(&box, line, bearer(SCOPE_READ), ""));
    }
    ck_assert(client_send(&c, all, strlen(all)));
    for (int i = 0; i < 20; i++) {
        char want[40];

        snprintf(want, sizeof want, "{\"id\":\"%d\"}", i);
        ck_assert_str_eq(client_answer(&c).body, want);
    }
    client_close(&c);
}

static const struct {
    int code, want;
} codes[] = { { EINVAL, 400 },    { EACCES, 403 }, { ENOENT, 404 }, { EEXIST, 409 },
              { EBUSY, 409 },     { ENOSPC, 503 }, { EROFS, 503 },  { EIO, 503 },
              { ECANCELED, 503 }, { EFBIG, 413 },  { EPROTO, 500 } };

EACH(an_error_of_ours_has_its_status, codes)
{
    char line[60];
    struct client c = client_tcp(&box);

    snprintf(line, sizeof line, "GET /v1/refuse?bytes=%d", codes[_i].code);
    struct answer got = client_ask(&c, request_of(&box, line, bearer(SCOPE_READ), ""));
    ck_assert_int_eq(got.status, codes[_i].want);
    ck_assert_ptr_nonnull(strstr(got.body, "\"message\":\"because\""));
    if (codes[_i].want == 503)
        ck_assert_ptr_nonnull(strstr(got.head, "Retry-After: "));
    client_close(&c);
}

TEST(a_large_answer_arrives_whole)
{
    struct client c = client_unix(&box);
    struct answer got = client_ask(&c, request_of(&box, "GET /v1/large?bytes=20000000", "", ""));

    ck_assert_int_eq(got.status, 200);
    ck_assert_uint_eq(got.n_body, 20000000);
    client_close(&c);
}

/* ---- later ---- */

TEST(an_answer_may_come_later)
{
    struct client c = client_tcp(&box), other = client_tcp(&box);
    const char *ask = request_of(&box, "GET /v1/later", bearer(SCOPE_READ), "");

    for (int i = 0; i < 3; i++) {
        ck_assert(client_send(&c, ask, strlen(ask)));
        BOX_UNTIL(&box, later != NULL);
        ck_assert_int_eq(client_ask(&other, request_of(&box, "GET /open", "", "")).status, 200);
        client_take(&c);
        ck_assert_uint_eq(c.n_in, 0);
        reply_json(later, 200, json_pack("{s:i}", "i", i));
        later = NULL;
        ck_assert_int_eq(client_answer(&c).status, 200);
    }
    client_close(&c);
    client_close(&other);
}

TEST(a_client_that_left_does_not_matter)
{
    struct client c = client_tcp(&box);
    const char *ask = request_of(&box, "GET /v1/later", bearer(SCOPE_READ), "");

    ck_assert(client_send(&c, ask, strlen(ask)));
    BOX_UNTIL(&box, later != NULL);
    client_close(&c);
    box_turn(&box);
    reply_take(later, 200, "text/plain", strdup("gone"), 4);
    BOX_UNTIL(&box, http_stats(box.http).n_connections == 0);
}

TEST(held_answers_leave_when_it_is_safe)
{
    struct client c[3];
    const char *ask = request_of(&box, "POST /v1/save", bearer(SCOPE_SUBMIT), "");
    const char *look = request_of(&box, "GET /v1/things/x", bearer(SCOPE_READ), "");

    for (int i = 0; i < 3; i++) {
        c[i] = client_tcp(&box);
        ck_assert(client_send(&c[i], i < 2 ? ask : look, strlen(i < 2 ? ask : look)));
        BOX_UNTIL(&box, http_stats(box.http).n_requests == (uint64_t)i + 1);
        for (int turns = 0; turns < 5; turns++)
            box_turn(&box);
    }
    ck_assert_int_eq(n_handled, 1);    // who looks now sees what is not safe yet: held, too
    for (int i = 0; i < 3; i++) {
        client_take(&c[i]);
        ck_assert_uint_eq(c[i].n_in, 0);
    }
    http_flush(box.http, NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(client_answer(&c[i]).status, i < 2 ? 201 : 200);
        ck_assert_int_eq(client_ask(&c[i], look).status, 200);    // held no longer
        client_close(&c[i]);
    }
}

TEST(held_answers_become_503_when_it_failed)
{
    struct client c = client_tcp(&box);
    const char *ask = request_of(&box, "POST /v1/save", bearer(SCOPE_SUBMIT), "");
    const struct err full = { .code = ENOSPC, .text = "the disk is full" };
    struct answer got = { 0 };

    ck_assert(client_send(&c, ask, strlen(ask)));
    BOX_UNTIL(&box, http_stats(box.http).n_requests == 1);
    for (int turns = 0; turns < 5; turns++)
        box_turn(&box);
    http_flush(box.http, &full);
    got = client_answer(&c);
    ck_assert_int_eq(got.status, 503);
    ck_assert_ptr_nonnull(strstr(got.body, "the disk is full"));
    ck_assert_ptr_null(strstr(got.head, "Location"));
    client_close(&c);
}

TEST(the_end_answers_what_is_open)
{
    struct client asleep = client_tcp(&box), held = client_tcp(&box), listens = client_unix(&box);
    const char *ask = request_of(&box, "GET /v1/later", bearer(SCOPE_READ), "");
    const char *save_it = request_of(&box, "POST /v1/save", bearer(SCOPE_SUBMIT), "");
    const char *hear = request_of(&box, "GET /v1/stream", "", "");

    ck_assert(client_send(&listens, hear, strlen(hear)));
    BOX_UNTIL(&box, stream != NULL);
    ck_assert(client_send(&asleep, ask, strlen(ask)));
    BOX_UNTIL(&box, later != NULL);
    ck_assert(client_send(&held, save_it, strlen(save_it)));
    BOX_UNTIL(&box, http_stats(box.http).n_requests == 3);
    for (int turns = 0; turns < 5; turns++)
        box_turn(&box);
    http_destroy(box.http);
    box.http = NULL;
    ck_assert_int_eq(n_ended, 1);
    ck_assert_int_eq(client_answer(&asleep).status, 503);
    ck_assert_int_eq(client_answer(&held).status, 503);
    client_take(&listens);
    ck_assert(listens.is_over);
    client_close(&asleep);
    client_close(&held);
    client_close(&listens);
}

/* ---- streams ---- */

static void listen_to(struct client *c)
{
    const char *hear = request_of(&box, "GET /v1/stream", "", "");

    stream = NULL;
    ck_assert(client_send(c, hear, strlen(hear)));
    BOX_UNTIL(&box, stream != NULL);
}

TEST(a_stream_goes_on_until_it_ends)
{
    struct client c = client_unix(&box);

    listen_to(&c);
    for (int i = 0; i < 3; i++) {
        char text[20];

        snprintf(text, sizeof text, "data: %d\n\n", i);
        stream_write(stream, text, strlen(text));
        BOX_UNTIL(&box, (client_take(&c), strstr(c.in, text) != NULL));
    }
    ck_assert_ptr_nonnull(strstr(c.in, "Content-Type: text/event-stream"));
    ck_assert_int_eq(http_stats(box.http).n_streams, 1);
    stream_write(stream, "bye\n\n", 5);
    stream_end(stream);
    BOX_UNTIL(&box, (client_take(&c), strstr(c.in, "bye\n\n\r\n0\r\n\r\n") != NULL));
    BOX_UNTIL(&box, n_ended == 1);
    ck_assert_int_eq(http_stats(box.http).n_streams, 0);
    client_close(&c);
}

TEST(a_listener_that_leaves_is_noticed)
{
    struct client c = client_unix(&box);

    listen_to(&c);
    client_close(&c);
    BOX_UNTIL(&box, (stream != NULL ? stream_write(stream, ":\n\n", 3) : (void)0, n_ended == 1));
}

TEST(a_listener_that_does_not_read_is_cut)
{
    struct client c = client_unix(&box);
    char *block = arena_alloc(&box.arena, 10000);

    memset(block, 'e', 10000);
    listen_to(&c);
    for (int i = 0; i < 2000 && stream != NULL; i++) {
        ck_assert_uint_le(stream_backlog(stream), STREAM_MAX);
        stream_write(stream, block, 10000);
        box_turn(&box);
    }
    BOX_UNTIL(&box, n_ended == 1);
    ck_assert_uint_eq(http_stats(box.http).n_cut, 1);
    client_close(&c);
}

TEST(streams_may_not_take_all_connections)
{
    struct client c[3];

    box.config.connections_max = 4;
    for (int i = 0; i < 2; i++) {
        c[i] = client_unix(&box);
        listen_to(&c[i]);
    }
    c[2] = client_unix(&box);
    ck_assert_int_eq(client_ask(&c[2], request_of(&box, "GET /v1/stream", "", "")).status, 503);
    for (int i = 0; i < 3; i++)
        client_close(&c[i]);
}

/* ---- clients that dawdle ---- */

static const struct {
    const char *name, *begin, *drip;
} drips[] = {
    { "one that says nothing", "", "" },
    { "one that drips its first line", "G", "E" },
    { "one that drips its headers", "GET /open HTTP/1.1\r\n", "a: b\r\n" },
    { "one that drips its body",
      "POST /v1/things HTTP/1.1\r\nHost: g\r\nContent-Length: 60000\r\n\r\n", " " },
};

/* Some bytes every 10 ms; no more than that, or they would be too many. */
static void drip(struct client *c, const char *bytes)
{
    static double last_s;

    if (clock_stopwatch_s() - last_s > 0.01) {
        last_s = clock_stopwatch_s();
        (void)client_send(c, bytes, strlen(bytes));
    }
}

EACH(a_client_that_dawdles_is_cut, drips)
{
    struct client c = client_tcp(&box);
    double began_s = clock_stopwatch_s();

    box.config.timeout_s = 0.3;
    (void)client_send(&c, drips[_i].begin, strlen(drips[_i].begin));
    BOX_UNTIL(&box, (drip(&c, drips[_i].drip), client_take(&c), c.is_over));
    ck_assert_double_ge(clock_stopwatch_s() - began_s, 0.2);
    ck_assert_uint_eq(http_stats(box.http).n_cut, 1);
    client_close(&c);
}

TEST(a_client_that_reads_too_slowly_is_cut)
{
    struct client c = client_unix(&box);
    const char *ask = request_of(&box, "GET /v1/large?bytes=2000000", "", "");
    char byte;

    box.config.timeout_s = -121;    // with the 122 s that 2 MB may take: one second
    ck_assert(client_send(&c, ask, strlen(ask)));
    BOX_UNTIL(&box, (recv(c.fd, &byte, 1, 0), http_stats(box.http).n_cut == 1));
    box.config.timeout_s = 10;
    BOX_UNTIL(&box, http_stats(box.http).n_connections == 0);
    client_close(&c);
}

TEST(a_handler_may_take_its_time)
{
    struct client c = client_tcp(&box);
    const char *ask = request_of(&box, "GET /v1/later", bearer(SCOPE_READ), "");
    double began_s;

    box.config.timeout_s = 0.5;
    ck_assert(client_send(&c, ask, strlen(ask)));
    BOX_UNTIL(&box, later != NULL);
    began_s = clock_stopwatch_s();
    BOX_UNTIL(&box, clock_stopwatch_s() - began_s > 1.8);    // the next sweep is in a second
    reply_take(later, 200, "text/plain", strdup("done"), 4);
    ck_assert_int_eq(client_answer(&c).status, 200);
    client_close(&c);
}

TEST(too_many_connections_wait_for_their_turn)
{
    struct client c[6];

    box.config.connections_max = 4;
    for (int i = 0; i < 6; i++)
        c[i] = client_tcp(&box);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(client_ask(&c[i], request_of(&box, "GET /open", "", "")).status, 200);
    for (int i = 0; i < 20; i++)
        box_turn(&box);
    ck_assert_int_eq(http_stats(box.http).n_connections, 4);
    client_close(&c[0]);
    ck_assert_int_eq(client_ask(&c[4], request_of(&box, "GET /open", "", "")).status, 200);
    /* Nobody leaves, but they have been idle for a second: one of them has to go. */
    ck_assert_int_eq(client_ask(&c[5], request_of(&box, "GET /open", "", "")).status, 200);
    for (int i = 1; i < 6; i++)
        client_close(&c[i]);
}

TEST(half_open_connections_do_not_keep_others_out)
{
    enum { HALF = 40 };
    struct client half[HALF];
    const double began_s = clock_stopwatch_s();

    box.config.connections_max = 8;
    box.config.timeout_s = 2 * BOX_PATIENCE_S;
    for (int i = 0; i < HALF; i++) {
        half[i] = client_unix(&box);
        ck_assert(client_send(&half[i], "GET /open HTTP/1.1\r\nHost", 24));
    }
    struct client c = client_unix(&box);
    ck_assert_int_eq(client_ask(&c, request_of(&box, "GET /open", "", "")).status, 200);
    ck_assert_double_lt(clock_stopwatch_s() - began_s, box.config.timeout_s / 2);
    client_close(&c);
    for (int i = 0; i < HALF; i++)
        client_close(&half[i]);
}

TEST(who_guesses_tokens_is_limited_too)
{
    box.config.rate_max = 3;
    struct client c = client_tcp(&box);
    const char *guess =
        request_of(&box, "GET /v1/things/x", "Authorization: Bearer gogh_none\r\n", "");

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(client_ask(&c, guess).status, 401);
    ck_assert_int_eq(client_ask(&c, guess).status, 429);
    ck_assert_int_eq(
        client_ask(&c, request_of(&box, "GET /v1/things/x", bearer(SCOPE_READ), "")).status, 200);
    client_close(&c);
}

TEST(without_descriptors_it_serves_who_is_there_and_recovers)
{
    struct client there = client_tcp(&box), newcomer = client_tcp(&box);
    struct rlimit was, none;

    log_set_level(LOG_ERROR);
    ck_assert_int_eq(client_ask(&there, request_of(&box, "GET /open", "", "")).status, 200);
    client_close(&newcomer);
    newcomer = client_tcp(&box);    // in the backlog
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3;    // descriptors that are open stay so
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 20; i++) {
        box_turn(&box);
        ck_assert_int_eq(client_ask(&there, request_of(&box, "GET /open", "", "")).status, 200);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert_int_eq(client_ask(&newcomer, request_of(&box, "GET /open", "", "")).status, 200);
    client_close(&there);
    client_close(&newcomer);
}

/* ---- listening ---- */

static int try_listen(struct config *c, struct err *e)
{
    struct http *h = http_create(box.loop, c, box.auth, table, N_TABLE, &box);
    int rc = http_listen(h, e);

    http_destroy(h);
    return rc;
}

TEST(a_socket_that_somebody_listens_to_is_left_alone)
{
    struct config c = box.config;
    struct err e = { 0 };
    struct stat before, after;

    ck_assert_int_eq(stat(box.sock, &before), 0);
    ck_assert_int_eq(try_listen(&c, &e), -EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(e.text, "another daemon"));
    ck_assert_int_eq(stat(box.sock, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
}

TEST(what_is_left_of_a_dead_daemon_is_replaced)
{
    char path[320];
    struct config c = box.config;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct err e = { 0 };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(path, sizeof path, "%s/old", box.dir);
    snprintf(at.sun_path, sizeof at.sun_path, "%.100s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    close(fd);    // the file stays
    c.socket = path;
    ck_assert_msg(try_listen(&c, &e) == 0, "%s", e.text);
    ck_assert_int_eq(access(path, F_OK), -1);

    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    ck_assert_int_eq(try_listen(&c, &e), -EEXIST);    // somebody's file
    ck_assert_int_eq(access(path, F_OK), 0);
    unlink(path);
}

static const struct {
    const char *name, *listen, *cert, *key;
    int want;
    const char *says;
} listens[] = {
    { "without TLS not on every address", "0.0.0.0:0", NULL, NULL, -EACCES, "cert=FILE" },
    { "nor on every one of IPv6", "[::]:0", NULL, NULL, -EACCES, "loopback" },
    { "all of 127 is the loopback", "127.3.4.5:0", NULL, NULL, 0, "" },
    { "a port alone", "7117", NULL, NULL, -EINVAL, "HOST:PORT" },
    { "a port that is none", "127.0.0.1:seventy", NULL, NULL, -EINVAL, "HOST:PORT" },
    { "a certificate that is not there", "127.0.0.1:0", "/nonexistent/c", "/nonexistent/k", -ENOENT,
      "/nonexistent/c" },
    { "a certificate without its key", "127.0.0.1:0", "/dev/null", NULL, -EINVAL, "key=FILE" },
    { "a certificate that is none", "127.0.0.1:0", "/dev/null", "/dev/null", -EINVAL, "" },
};

EACH(where_to_listen, listens)
{
    struct config c = box.config;
    struct err e = { 0 };

    log_set_level(LOG_ERROR);
    c.socket = NULL;
    c.listen = listens[_i].listen;
    c.cert = listens[_i].cert;
    c.key = listens[_i].key;
    int rc = try_listen(&c, &e);
    ck_assert_msg(rc == listens[_i].want, "%s: %d %s", listens[_i].name, rc, e.text);
    ck_assert_msg(strstr(e.text, listens[_i].says), "%s: %s", listens[_i].name, e.text);
}

/* ---- auth anew ---- */

TEST(new_tokens_count_at_once)
{
    struct client c = client_tcp(&box);
    const char *ask = request_of(&box, "GET /v1/things/x", bearer(SCOPE_READ), "");
    struct auth *fresh = NULL;
    struct err e = { 0 };

    ck_assert_int_eq(client_ask(&c, ask).status, 200);
    struct client hears = client_tcp(&box), stays = client_unix(&box);
    const char *hear = request_of(&box, "GET /v1/stream", bearer(SCOPE_READ), "");
    ck_assert(client_send(&hears, hear, strlen(hear)));
    BOX_UNTIL(&box, stream != NULL);
    listen_to(&stays);
    ck_assert_int_eq(file_write(box.tokens, "", 0, &e), 0);
    ck_assert_msg(auth_open(&box.config, &fresh, &e) == 0, "%s", e.text);
    http_use_auth(box.http, fresh);
    auth_close(box.auth);
    box.auth = fresh;
    ck_assert_int_eq(client_ask(&c, ask).status, 401);
    ck_assert_uint_eq(http_stats(box.http).n_unauthorised, 1);
    BOX_UNTIL(&box, n_ended == 1);    // whose token is gone
    ck_assert_int_eq(client_ask(&c, request_of(&box, "GET /open", "", "")).status, 200);
    ck_assert_int_eq(box.http->auth_generation, 2);    // peers of the socket are asked about anew
    ck_assert_int_eq(http_stats(box.http).n_streams, 1);
    client_close(&hears);
    client_close(&stays);
    ck_assert_uint_eq(http_stats(box.http).by_class[2], 4);
    ck_assert_uint_eq(http_stats(box.http).by_class[4], 1);
    client_close(&c);
}

/* ---- TLS ---- */

FIXTURE(prepare, tear_down)

static size_t take_body(char *bytes, size_t n, size_t items, void *self)
{
    return buf_append(self, bytes, n * items) == 0 ? n * items : 0;
}

/* GET over TLS with a client that trusts 'cert', while the loop turns. */
static CURLcode fetch(const char *cert, long version, struct buf *body, long *status)
{
    CURLM *all = curl_multi_init();
    CURL *c = curl_easy_init();
    int running = 1, left = 0;
    struct curl_slist *headers = curl_slist_append(
        NULL, arena_printf(&box.arena, "Authorization: Bearer %s", box.token[SCOPE_READ]));
    CURLcode rc;

    curl_easy_setopt(
        c, CURLOPT_URL,
        arena_printf(&box.arena, "https://localhost:%d/v1/things/x", http_port(box.http)));
    curl_easy_setopt(c, CURLOPT_CAINFO, cert);
    curl_easy_setopt(c, CURLOPT_SSLVERSION, version);
    curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(c, CURLOPT_IPRESOLVE, (long)CURL_IPRESOLVE_V4);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, body);
    curl_multi_add_handle(all, c);
    BOX_UNTIL(&box, (curl_multi_perform(all, &running), running == 0));
    CURLMsg *m = curl_multi_info_read(all, &left);
    rc = m != NULL ? m->data.result : CURLE_GOT_NOTHING;
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, status);
    curl_multi_remove_handle(all, c);
    curl_easy_cleanup(c);
    curl_multi_cleanup(all);
    curl_slist_free_all(headers);
    return rc;
}

/* A key and a certificate for localhost by certtool; false: it is not there. */
static bool make_certificate(const char *cert, const char *key)
{
    const char *template = arena_printf(&box.arena, "%s/template", box.dir);
    static const char text[] = "cn = localhost\ndns_name = localhost\ntls_www_server\n"
                               "signing_key\nca\nexpiration_days = 2\n";
    struct err e = { 0 };
    int status;

    ck_assert_int_eq(file_write(template, text, sizeof text - 1, &e), 0);
    status = system(arena_printf(&box.arena,
                                 "certtool --generate-privkey --key-type=ecdsa --outfile %s "
                                 ">/dev/null 2>&1 && certtool --generate-self-signed "
                                 "--load-privkey %s --template %s --outfile %s >/dev/null 2>&1",
                                 key, key, template, cert));
    unlink(template);
    return status == 0;
}

TEST(tls_with_a_certificate_of_ours)
{
    const char *cert = arena_printf(&box.arena, "%s/c.pem", box.dir);
    const char *key = arena_printf(&box.arena, "%s/k.pem", box.dir);
    long status = 0;
    struct buf body;

    buf_init(&body, 1000);
    if (!make_certificate(cert, key)) {
        fprintf(stderr, "skipped: no certtool (gnutls-bin) to make a certificate with\n");
        start();
    } else {
        box.config.cert = cert;
        box.config.key = key;
        start();
        ck_assert_int_eq(fetch(cert, CURL_SSLVERSION_TLSv1_3, &body, &status), CURLE_OK);
        ck_assert_int_eq(status, 200);
        ck_assert_str_eq(buf_text(&body), "{\"id\":\"x\"}");
        ck_assert_int_eq(fetch(cert, CURL_SSLVERSION_TLSv1_2, &body, &status), CURLE_OK);
        ck_assert_int_ne(fetch(cert, (long)CURL_SSLVERSION_TLSv1_1 | CURL_SSLVERSION_MAX_TLSv1_1,
                               &body, &status),
                         CURLE_OK);
        ck_assert_int_ne(fetch("/dev/null", CURL_SSLVERSION_TLSv1_3, &body, &status), CURLE_OK);
        /* Who speaks plainly to it gets nothing, and the daemon goes on. */
        struct client c = client_tcp(&box);
        ck_assert_int_ne(client_ask(&c, request_of(&box, "GET /open", "", "")).status, 200);
        client_close(&c);
        /* The socket beside it has no TLS. */
        c = client_unix(&box);
        ck_assert_int_eq(client_ask(&c, request_of(&box, "GET /open", "", "")).status, 200);
        client_close(&c);
    }
    unlink(cert);
    unlink(key);
    buf_release(&body);
}

TEST(a_tls_client_that_stops_in_the_handshake_is_cut)
{
    const char *cert = arena_printf(&box.arena, "%s/c.pem", box.dir);
    const char *key = arena_printf(&box.arena, "%s/k.pem", box.dir);
    bool has_tls = make_certificate(cert, key);

    if (has_tls) {
        box.config.cert = cert;
        box.config.key = key;
    }
    start();
    if (has_tls) {
        struct client c = client_tcp(&box);

        box.config.timeout_s = 0.2;
        (void)client_send(&c, "\x16\x03\x01", 3);
        BOX_UNTIL(&box, (client_take(&c), c.is_over));
        BOX_UNTIL(&box, http_stats(box.http).n_connections == 0);
        client_close(&c);
    }
    unlink(cert);
    unlink(key);
}
