#include "daemon/service/feed.h"

#include <inttypes.h>
#include <math.h>

#include "daemon/service/service.h"
#include "unit/daemon/box.h"
#include "unit/suite.h"

/* A service that has no more than a feed needs. */
static struct box box;
static struct service service;
static char db[300];

static void open_feed(struct request *r)
{
    feed_open(service.feed, r, (int64_t)request_number(r, "after", -1),
              (int)request_number(r, "job", -1));
}

static const struct field fields[] = {
    { "after", FIELD_WHOLE, .about = "a sequence number" },
    { "job", FIELD_WHOLE, .about = "a job" },
    { 0 },
};
static const struct schema query = { "EventsQuery", fields };
static const struct route table[] = {
    { "GET", "/v1/events", "events", "Events", SCOPE_READ, &query, NULL, NULL, "text/event-stream",
      200, open_feed, 0 },
};

static void set_up(void)
{
    struct err e = { 0 };

    box_init(&box);
    box_open(&box, table, 1, &service);
    snprintf(db, sizeof db, "%s/db", box.dir);
    service = (struct service){ .loop = box.loop, .http = box.http };
    ck_assert_msg(store_open(db, STORE_CREATE, &service.base.store, &e) == 0, "%s", e.text);
    state_init(&service.base.ledger.state);
    service.feed = feed_create(&service);
}

static void tear_down(void)
{
    char name[320];

    feed_destroy(service.feed);
    state_release(&service.base.ledger.state);
    store_close(service.base.store);
    unlink(db);
    snprintf(name, sizeof name, "%s-wal", db);
    unlink(name);
    snprintf(name, sizeof name, "%s-shm", db);
    unlink(name);
    box_close(&box);
}

FIXTURE(set_up, tear_down)

/* Journal one event of a job; not told yet. */
static int64_t journal(const char *kind, const char *body)
{
    int64_t seq = 0;
    struct err e = { 0 };

    ck_assert_msg(store_append_event(service.base.store, 1.5, kind, body, &seq, &e) == 0, "%s",
                  e.text);
    return seq;
}

/* Events first..last, of jobs 0, 1, 2, 0, ...; committed and told. */
static void happen(int n)
{
    struct err e = { 0 };
    int64_t seq = 0;

    ck_assert_int_eq(store_begin(service.base.store, &e), 0);
    for (int i = 0; i < n; i++)
        seq = journal("job_started",
                      arena_printf(&box.arena, "{\"job\":%d,\"steps_done\":0}", i % 3));
    ck_assert_int_eq(store_commit(service.base.store, &e), 0);
    feed_committed(service.feed, seq);
}

static struct client listen_to(const char *line)
{
    struct client c = client_unix(&box);
    const char *ask = request_of(&box, line, "", "");

    ck_assert(client_send(&c, ask, strlen(ask)));
    BOX_UNTIL(&box, (client_take(&c), strstr(c.in, "retry: ") != NULL));
    return c;
}

static bool has_id(const struct client *c, int64_t id)
{
    char text[40];

    snprintf(text, sizeof text, "id: %" PRId64 "\n", id);
    return c->in != NULL && strstr(c->in, text) != NULL;
}

/* Among the last ones: what came is large, and looked at often. */
static bool ends_with_id(const struct client *c, int64_t id)
{
    struct client tail = *c;

    tail.in += tail.n_in > 300 ? tail.n_in - 300 : 0;
    return has_id(&tail, id);
}

static int count(const struct client *c, const char *word)
{
    const char *at = c->in, *end = c->in + c->n_in;
    int n = 0;

    while ((at = memmem(at, (size_t)(end - at), word, strlen(word))) != NULL) {
        at++;
        n++;
    }
    return n;
}

TEST(a_listener_hears_what_happens_from_now_on)
{
    happen(3);
    struct client c = listen_to("GET /v1/events");

    happen(2);
    BOX_UNTIL(&box, (client_take(&c), has_id(&c, 5)));
    ck_assert(has_id(&c, 4));
    ck_assert(!has_id(&c, 3));
    ck_assert_ptr_nonnull(strstr(c.in,
                                 "id: 4\nevent: job_started\n"
                                 "data: {\"time_s\":1.500000,\"job\":0,\"steps_done\":0}\n\n"));
    client_close(&c);
}

TEST(what_was_missed_comes_from_the_journal_in_order)
{
    happen(2000);
    struct client c = listen_to("GET /v1/events?after=10");

    BOX_UNTIL(&box, (client_take(&c), ends_with_id(&c, 2000)));
    happen(1);
    BOX_UNTIL(&box, (client_take(&c), has_id(&c, 2001)));
    ck_assert(!has_id(&c, 10));
    ck_assert_int_eq(count(&c, "id: "), 1991);
    const char *at = c.in;
    for (int64_t id = 11; id <= 2001; id++) {
        char text[40];

        snprintf(text, sizeof text, "id: %" PRId64 "\n", id);
        at = memmem(at, (size_t)(c.in + c.n_in - at), text, strlen(text));
        ck_assert_msg(at != NULL, "%s is missing, or not in its place", text);
    }
    client_close(&c);
}

TEST(a_sequence_number_of_the_future_is_now)
{
    happen(3);
    struct client c = listen_to("GET /v1/events?after=99");

    happen(1);
    BOX_UNTIL(&box, (client_take(&c), has_id(&c, 4)));
    client_close(&c);
}

TEST(one_job_alone)
{
    struct job_spec spec = {
        .name = "b", .steps = 10, .deadline_s = NAN, .n_gpus = 1, .max_gpus = 1
    };
    struct event ev = { .kind = EVENT_JOB_SUBMITTED, .spec = &spec };
    struct err e = { 0 };
    int64_t seq;

    spec.name = "a";
    ck_assert_msg(state_apply(&service.base.ledger.state, &ev, &e) == 0, "%s", e.text);
    spec.name = "b";
    spec.submit_s = 7.25;
    ck_assert_msg(state_apply(&service.base.ledger.state, &ev, &e) == 0, "%s", e.text);
    ck_assert_int_eq(store_begin(service.base.store, &e), 0);
    journal("job_submitted", "{\"name\":\"b\",\"submit_s\":3.5}");    // a namesake of before
    journal("job_submitted", "{\"name\":\"b\",\"submit_s\":7.25}");
    journal("node_added", "{\"node\":\"b\"}");
    seq = journal("node_changed", "{}");
    ck_assert_int_eq(store_commit(service.base.store, &e), 0);
    feed_committed(service.feed, seq);
    struct client c = listen_to("GET /v1/events?after=0&job=1");

    happen(9);
    BOX_UNTIL(&box, (client_take(&c), has_id(&c, 12)));
    ck_assert_int_eq(count(&c, "id: "), 4);
    ck_assert_int_eq(count(&c, "\"job\":1"), 3);
    ck_assert(has_id(&c, 2));
    client_close(&c);
}

TEST(a_submission_is_told_without_its_secrets)
{
    struct client c = listen_to("GET /v1/events");
    struct err e = { 0 };

    ck_assert_int_eq(store_begin(service.base.store, &e), 0);
    int64_t seq = journal(
        "job_submitted",
        "{\"name\":\"a\",\"submit_s\":1.5,\"key\":\"0123\",\"digest\":\"4567\","
        "\"command\":{\"argv\":[\"x\"],\"env\":{\"TOKEN\":\"s3cret\",\"B\":\"2\"},\"uid\":7}}");
    ck_assert_int_eq(store_commit(service.base.store, &e), 0);
    feed_committed(service.feed, seq);
    BOX_UNTIL(&box, (client_take(&c), has_id(&c, 1)));
    ck_assert_ptr_nonnull(strstr(c.in, "data: {\"time_s\":1.500000,\"name\":\"a\",\"submit_s\":1.5,"
                                       "\"command\":{\"argv\":[\"x\"],\"env\":[\"TOKEN\",\"B\"],"
                                       "\"uid\":7}}\n\n"));
    ck_assert_ptr_null(strstr(c.in, "s3cret"));
    client_close(&c);
}

TEST(what_is_not_on_disk_is_not_told)
{
    struct client c = listen_to("GET /v1/events");
    struct err e = { 0 };

    happen(1);
    ck_assert_int_eq(store_begin(service.base.store, &e), 0);
    journal("job_started", "{\"job\":7}");
    struct client late = listen_to("GET /v1/events?after=0");
    BOX_UNTIL(&box, (client_take(&c), client_take(&late), has_id(&c, 1) && has_id(&late, 1)));
    for (int i = 0; i < 20; i++)
        box_turn(&box);
    store_rollback(service.base.store);
    happen(1);
    BOX_UNTIL(&box, (client_take(&c), client_take(&late), has_id(&c, 2) && has_id(&late, 2)));
    ck_assert_int_eq(count(&c, "\"job\":7"), 0);
    ck_assert_int_eq(count(&late, "\"job\":7"), 0);
    client_close(&c);
    client_close(&late);
}

TEST(a_slow_listener_falls_behind_and_loses_nothing)
{
    enum { N = 10000 };    // some 1 MB: more than the socket and the stream hold
    struct client c = listen_to("GET /v1/events");

    for (int i = 0; i < N / 1000; i++) {
        happen(1000);
        for (int turns = 0; turns < 3; turns++)
            box_turn(&box);
    }
    BOX_UNTIL(&box, (client_take(&c), ends_with_id(&c, N)));
    ck_assert_int_eq(count(&c, "id: "), N);
    ck_assert_uint_eq(http_stats(box.http).n_cut, 0);
    client_close(&c);
}

TEST(listeners_come_and_go)
{
    struct client c[5];

    for (int i = 0; i < 5; i++)
        c[i] = listen_to("GET /v1/events");
    client_close(&c[0]);
    client_close(&c[2]);
    client_close(&c[4]);
    BOX_UNTIL(&box, (happen(1), box_turn(&box), http_stats(box.http).n_streams == 2));
    feed_destroy(service.feed);    // before http: the streams end
    service.feed = NULL;
    for (int i = 1; i < 5; i += 2) {
        BOX_UNTIL(&box, (client_take(&c[i]), strstr(c[i].in, "\r\n0\r\n\r\n") != NULL));
        client_close(&c[i]);
    }
}

TEST(http_may_end_before_the_feed)
{
    struct client c = listen_to("GET /v1/events");

    http_destroy(box.http);
    box.http = NULL;
    BOX_UNTIL(&box, (client_take(&c), c.is_over));
    happen(1);    // nobody hears it
    box_turn(&box);
    client_close(&c);
}
