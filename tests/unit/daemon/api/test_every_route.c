/* A daemon in a process of its own, asked everything: each answer is as its schema says, and each
 * route refuses who may not.
 */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/file.h"
#include "daemon/config/auth.h"
#include "daemon/config/config.h"
#include "daemon/http/http.h"
#include "daemon/http/route.h"
#include "daemon/engine/engine.h"
#include "daemon/service/service.h"
#include "unit/suite.h"
#include "unit/support.h"

/* Callers: one of each scope, all of one account; and somebody else, who may submit. */
enum { SCOPES = SCOPE_ADMIN + 1, STRANGER = SCOPES, CALLERS };

static char *dir;
static pid_t daemon_pid;
static int port;
static struct arena arena;
static const char *tokens[CALLERS];    // by scope; NULL: SCOPE_NONE

/* ---- the daemon ---- */

static void must(int rc, const struct err *e)
{
    ck_assert_msg(rc == 0, "%s", e->text);
}

/* A token of each scope, all of the account that runs the test. */
static void make_tokens(const char *path)
{
    struct buf lines;
    struct err e = { 0 };
    const struct passwd *account = getpwuid(geteuid());
    const char *line;

    buf_init(&lines, 1 << 16);
    for (int s = SCOPE_READ; s < CALLERS; s++) {
        enum scope scope = s == STRANGER ? SCOPE_SUBMIT : (enum scope)s;
        const char *name = s == STRANGER ? "stranger" : scope_name(scope);
        const char *whose = s == STRANGER ? "daemon" : account ? account->pw_name : "nobody";
        must(auth_make_token(&arena, name, scope, whose, &tokens[s], &line, &e), &e);
        buf_puts(&lines, line);
    }
    must(file_write(path, lines.data, lines.len, &e), &e);
    chmod(path, 0600);
    buf_release(&lines);
}

static const char *at(const char *name)
{
    return arena_printf(&arena, "%s/%s", dir, name);
}

_Noreturn static void run_daemon(const struct config *c, int told)
{
    static struct service s;
    struct err e = { 0 };

    if (service_open(&s, c, &(struct engine){ engine_open_local, "/bin/false" }, &e) < 0) {
        fprintf(stderr, "the daemon does not start: %s\n", e.text);
        _exit(1);
    }
    int p = http_port(s.http);
    if (write(told, &p, sizeof p) != sizeof p)
        _exit(1);
    int rc = service_run(&s, &e);
    service_close(&s);
    _exit(rc < 0);
}

static void setup(void)
{
    struct config c;
    struct err e = { 0 };
    int told[2];

    arena_init(&arena);
    dir = scratch_make();
    make_tokens(at("tokens"));
    const char *text = arena_printf(
        &arena,
        "store %s\nrun_dir %s\nsocket %s\nreports %s\nlisten 127.0.0.1:0\ntokens %s\n"
        "gpus declared\npower model\nmodel none\nlearn no\npolicy greedy\ndecide_s 0.01\nlog error\nnode box k80:1 v100:2\n",
        at("g.db"), at("runs"), at("sock"), at("reports"), at("tokens"));
    must(config_parse(&arena, "gogh.conf", text, strlen(text), &c, &e), &e);
    ck_assert_int_eq(pipe(told), 0);
    daemon_pid = fork();
    if (daemon_pid == 0)
        run_daemon(&c, told[1]);
    close(told[1]);
    ck_assert_msg(read(told[0], &port, sizeof port) == sizeof port, "the daemon did not start");
    close(told[0]);
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void teardown(void)
{
    int status = 0;

    kill(daemon_pid, SIGTERM);
    waitpid(daemon_pid, &status, 0);
    scratch_remove(dir);
    arena_release(&arena);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ended badly: %x",
                  (unsigned)status);
}

FIXTURE_ONCE(setup, teardown)

/* ---- asking ---- */

struct answer {
    int status;
    char type[128];
    struct buf body;
};

static size_t on_body(char *bytes, size_t size, size_t n, void *self)
{
    struct answer *a = self;

    return buf_append(&a->body, bytes, size * n) == 0 ? size * n : 0;
}

static void answer_release(struct answer *a)
{
    buf_release(&a->body);
}

/* With a scope's token over TCP, or (scope -1) as ourselves by the socket. */
static struct answer ask(const char *method, const char *path, int scope, const char *body,
                         const char *key)
{
    struct answer a = { 0 };
    CURL *c = curl_easy_init();
    struct curl_slist *headers = NULL;
    long status = 0;
    const char *type = NULL;

    buf_init(&a.body, 64 << 20);
    curl_easy_setopt(c, CURLOPT_URL,
                     scope < 0 ? arena_printf(&arena, "http://gogh%s", path)
                               : arena_printf(&arena, "http://127.0.0.1:%d%s", port, path));
    if (scope < 0)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, at("sock"));
    if (scope > 0)
        headers = curl_slist_append(
            headers, arena_printf(&arena, "Authorization: Bearer %s", tokens[scope]));
    if (key)
        headers = curl_slist_append(headers, arena_printf(&arena, "Idempotency-Key: %s", key));
    if (strcmp(method, "POST") == 0) {
        headers = curl_slist_append(headers, "Content-Type: application/json");
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, body ? body : "");
    }
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &a);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    CURLcode rc = curl_easy_perform(c);
    ck_assert_msg(rc == CURLE_OK, "%s %s: %s", method, path, curl_easy_strerror(rc));
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c, CURLINFO_CONTENT_TYPE, &type);
    a.status = (int)status;
    snprintf(a.type, sizeof a.type, "%s", type ? type : "");
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    return a;
}

static const struct route *route_of(const char *method, const char *path)
{
    json_t *args = json_object();
    int status = 0;
    const char *allow = NULL;
    char bare[512];

    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(path, "?"), path);
    const struct route *r = route_find(routes, n_routes, method, bare, args, &status, &allow);
    json_decref(args);
    return r;
}

/* Is it as the table of routes says? */
static void hold_against_schema(const char *what, const struct route *r, const struct answer *a)
{
    struct err e = { 0 };
    const struct schema *s = a->status >= 400 ? &route_error : r->answer;

    ck_assert_msg(route_may_answer(r, a->status), "%s: %d is nowhere declared", what, a->status);
    if (!s) {
        ck_assert_msg(strncmp(a->type, r->type, strcspn(r->type, ";")) == 0, "%s: %s", what,
                      a->type);
        return;
    }
    ck_assert_msg(strncmp(a->type, "application/json", 16) == 0, "%s: %s", what, a->type);
    json_t *o = json_loadb(buf_text(&a->body), a->body.len, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(o != NULL, "%s: not JSON: %.300s", what, buf_text(&a->body));
    ck_assert_msg(schema_check(s, o, &e) == 0, "%s: %s in\n%.2000s", what, e.text,
                  buf_text(&a->body));
    json_decref(o);
}

/* ---- a day of requests ---- */

#define NEW_JOB \
    "{\"name\":\"first\",\"workload\":\"resnet50\",\"steps\":100,\"hold\":true,\"argv\":[\"true\"]}"
#define SECOND                                                                                        \
    "{\"name\":\"second\",\"workload\":\"resnet50\",\"batch\":32,\"steps\":100,\"min_throughput\":1," \
    "\"types\":[\"v100\"],\"argv\":[\"true\"],\"env\":{\"A\":\"b\"}}"

#define SERVICE                                                                                  \
    "{\"name\":\"web\",\"service\":true,\"rate\":40,\"p99_s\":0.2,\"max_gpus\":4,\"hold\":true," \
    "\"workload\":\"resnet50-infer\",\"argv\":[\"true\"]}"

#define PROGRAMS(a, b) "{\"programs\":[{\"workload\":\"" a "\"},{\"workload\":\"" b "\"}]"
#define ABOUT(gpu, w)                                                                  \
    "{\"programs\":[],\"pairs\":0,\"targets\":[{\"gpu\":\"" gpu "\",\"workload\":\"" w \
    "\",\"beside\":null}]}"

static const struct {
    const char *method, *path, *body, *key;
    int want;
    const char *has;    // somewhere in the answer; NULL: whatever
} day[] = {
    { "GET", "/healthz", NULL, NULL, 200, "true" },
    { "GET", "/readyz", NULL, NULL, 200, "true" },
    { "GET", "/openapi.json", NULL, NULL, 200, "\"submitJob\"" },
    { "GET", "/v1/status", NULL, NULL, 200, "\"gpus\":3" },
    { "GET", "/v1/status", NULL, NULL, 200, "\"delay_w\":64.9" },    // 0.3 (149 + 2 * 250) / 3
    { "GET", "/v1/jobs", NULL, NULL, 200, "\"total\":0" },

    { "POST", "/v1/jobs", NEW_JOB, "k", 201, "\"state\":\"held\"" },
    { "POST", "/v1/jobs", NEW_JOB, "k", 200, "\"id\":0" },
    { "POST", "/v1/jobs", SECOND, "k", 422, "key_reused" },
    { "POST", "/v1/jobs", NEW_JOB, NULL, 409, "choose another name" },
    { "POST", "/v1/jobs", "{\"argv\":[\"true\"],\"steps\":-1}", NULL, 400, "steps" },
    { "POST", "/v1/jobs", "{\"workload\":\"resnet51\",\"argv\":[\"true\"]}", NULL, 400,
      "did you mean" },
    { "GET", "/v1/jobs", NULL, NULL, 200, "\"total\":1" },
    { "GET", "/v1/jobs?state=running", NULL, NULL, 200, "\"total\":0" },
    { "GET", "/v1/jobs?state=nonsense", NULL, NULL, 400, "state" },
    { "GET", "/v1/jobs?limit=0", NULL, NULL, 400, "limit" },
    { "GET", "/v1/jobs/0", NULL, NULL, 200, "\"argv\":[\"true\"]" },
    { "GET", "/v1/jobs/first", NULL, NULL, 200, "\"id\":0" },
    { "GET", "/v1/jobs/99", NULL, NULL, 404, "no job '99'" },
    { "GET", "/v1/jobs/0/explain", NULL, NULL, 404, "no decision" },

    { "GET", "/v1/nodes", NULL, NULL, 200, "\"k80:1\",\"v100:2\"" },
    { "POST", "/v1/nodes/box/drain", NULL, NULL, 200, "drained" },
    { "POST", "/v1/nodes/box/drain", NULL, NULL, 200, "drained" },
    { "POST", "/v1/nodes/nowhere/drain", NULL, NULL, 404, "no node" },

    { "POST", "/v1/jobs/0/hold", NULL, NULL, 409, "only jobs that wait" },
    { "POST", "/v1/jobs/0/release", NULL, NULL, 200, "\"state\":\"waiting\"" },
    { "POST", "/v1/jobs/0/release", NULL, NULL, 409, "only jobs that are held" },
    { "POST", "/v1/jobs/0/hold", NULL, NULL, 200, "\"state\":\"held\"" },
    { "POST", "/v1/jobs/first/cancel", NULL, NULL, 200, "\"state\":\"cancelled\"" },
    { "POST", "/v1/jobs/first/cancel", NULL, NULL, 409, "ended already" },
    { "POST", "/v1/jobs", SECOND, NULL, 201, "\"env\":[\"A\"]" },
    { "GET", "/v1/jobs?limit=1", NULL, NULL, 200, "\"next\":0" },
    { "GET", "/v1/jobs?limit=1&after=0", NULL, NULL, 200, "\"next\":null" },
    { "GET", "/v1/plan", NULL, NULL, 200, "\"does\":\"wait\"" },
    { "GET", "/v1/plan", NULL, NULL, 200, "\"delay_w\":64.9" },

    { "POST", "/v1/commission", "{\"programs\":[]}", NULL, 404, "no GPUs to measure on" },

    { "GET", "/v1/gpus", NULL, NULL, 200, "\"box/2\"" },
    { "GET", "/v1/gpus?limit=2", NULL, NULL, 200, "\"next\":1" },
    { "POST", "/v1/workloads", "{\"name\":\"mine\",\"batch\":4,\"params\":1e6}", NULL, 201,
      "mine (batch size 4)" },
    { "POST", "/v1/workloads", "{\"name\":\"mine\",\"conv\":7}", NULL, 400, "conv" },
    { "GET", "/v1/workloads", NULL, NULL, 200, "\"params\":1000000" },
    { "GET", "/v1/workloads?limit=1", NULL, NULL, 200, "\"next\":0" },
    { "POST", "/v1/measurements",
      "{\"measurements\":[{\"workload\":\"mine (batch size 4)\",\"gpu\":\"v100\",\"throughput\":12.5,"
      "\"watts\":150},{\"workload\":\"mine (batch size 4)\",\"gpu\":\"k80\",\"unfit\":true}]}",
      NULL, 200, "\"taken\":2" },
    { "POST", "/v1/measurements",
      "{\"measurements\":[{\"workload\":\"mine (batch size 4)\",\"gpu\":\"v100\"}]}", NULL, 400,
      "measurements[0]: nothing was measured" },
    { "POST", "/v1/measurements", "{\"measurements\":[]}", NULL, 400, "measurements" },
    { "GET", "/v1/measurements", NULL, NULL, 200, "\"throughput\":12.5" },
    { "GET", "/v1/measurements?gpu=k80", NULL, NULL, 200, "\"total\":1" },
    { "GET", "/v1/estimates?workload=mine%20(batch%20size%204)", NULL, NULL, 200, "\"k80\"" },
    { "GET",
      "/v1/estimates?workload=mine%20(batch%20size%204)&gpu=v100&beside=mine%20(batch%20size%204)",
      NULL, NULL, 200, "\"slowdown\":" },
    { "GET", "/v1/estimates?workload=unheard-of", NULL, NULL, 404, "no workload" },
    { "GET", "/v1/estimates", NULL, NULL, 400, "workload" },

    { "GET", "/v1/report", NULL, NULL, 200, "\"total\"" },
    { "GET", "/v1/report?by=gpu_type", NULL, NULL, 200, "gpu_type" },
    { "GET", "/v1/report?from=20&to=10", NULL, NULL, 400, "from" },
    { "POST", "/v1/workloads", "{\"name\":\"newest\"}", NULL, 201, "newest" },
    { "GET", "/v1/shadow", NULL, NULL, 200, "\"fifo-fastest\"" },
    { "GET", "/v1/shadow?from=1000&to=2000", NULL, NULL, 404, "no" },
    { "POST", "/v1/jobs/second/cancel", NULL, NULL, 200, "\"state\":\"cancelled\"" },
    { "GET", "/v1/jobs/second/explain", NULL, NULL, 200, "\"candidates\":" },
    { "POST", "/v1/nodes/box/resume", NULL, NULL, 200, "\"up\"" },

    { "POST", "/v1/commission", PROGRAMS("resnet50", "lm") ",\"pairs\":2}", NULL, 200, "surer" },
    { "POST", "/v1/commission", PROGRAMS("resnet50", "resnet50") "}", NULL, 400, "there twice" },
    { "POST", "/v1/commission", PROGRAMS("resnet50", "resnet51") "}", NULL, 400,
      "programs[1]: workload: 'resnet51' is not known" },
    { "POST", "/v1/commission", PROGRAMS("resnet50", "lm") ",\"own\":true,\"pairs\":0}", NULL, 200,
      "\"measurements\":[]" },
    { "POST", "/v1/commission", PROGRAMS("resnet50", "lm") ",\"pairs\":51}", NULL, 400, "pairs" },
    { "POST", "/v1/commission", ABOUT("v100", "mine (batch size 4)"), NULL, 200, "\"mean\":" },
    { "POST", "/v1/commission", ABOUT("abacus", "mine (batch size 4)"), NULL, 400,
      "targets[0]: there is no GPU type" },
    { "POST", "/v1/commission", ABOUT("v100", "unheard-of"), NULL, 400,
      "targets[0]: there is no workload" },
    { "GET", "/v1/workloads?after=2", NULL, NULL, 200, "\"next\":null" },

    { "GET", "/v1/services", NULL, NULL, 200, "\"total\":0" },
    { "POST", "/v1/jobs", SERVICE, NULL, 201, "\"serving\":\"held\"" },
    { "GET", "/v1/jobs/web", NULL, NULL, 200, "\"kind\":\"service\"" },
    { "GET", "/v1/services", NULL, NULL, 200, "\"promised_rate\":40" },
    { "GET", "/v1/services/web", NULL, NULL, 200, "\"places\":[{\"type\":\"k80\"" },
    { "GET", "/v1/services/first", NULL, NULL, 404, "is no service" },
    { "GET", "/v1/services/nowhere", NULL, NULL, 404, "no job 'nowhere'" },
    { "GET", "/v1/services/web/endpoints", NULL, NULL, 200, "\"endpoints\":[]" },
    { "POST", "/v1/services/web/scale", "{\"rate\":80}", NULL, 200, "\"promised_rate\":80" },
    { "POST", "/v1/services/web/scale", "{\"max_gpus\":2}", NULL, 200, "\"max_gpus\":2" },
    { "GET", "/v1/services/web", NULL, NULL, 200, "\"promised_rate\":80" },
    { "POST", "/v1/services/web/scale", "{}", NULL, 400, "scale to what?" },
    { "POST", "/v1/services/web/scale", "{\"max_gpus\":65}", NULL, 400, "max_gpus" },
    { "POST", "/v1/services/first/scale", "{\"rate\":1}", NULL, 404, "is no service" },
    { "POST", "/v1/jobs/web/cancel", NULL, NULL, 200, "\"serving\":\"ended\"" },
    { "POST", "/v1/services/web/scale", "{\"rate\":9}", NULL, 409, "ended already" },
    { "GET", "/v1/services", NULL, NULL, 200, "\"total\":0" },
    { "GET", "/v1/services?ended=1", NULL, NULL, 200, "\"state\":\"ended\"" },
    { "GET", "/metrics", NULL, NULL, 200, "gogh_jobs{state=\"cancelled\"} 3\n" },
};
enum { N_DAY = sizeof day / sizeof *day };

static const struct route *route_asked(int i)
{
    const struct route *r = route_of(day[i].method, day[i].path);

    ck_assert_msg(r != NULL, "no route for %s %s", day[i].method, day[i].path);
    return r;
}

/* Compact or not: compare without blanks behind colons and commas. */
static bool tells(const struct answer *a, const char *has)
{
    struct buf plain;

    buf_init(&plain, 64 << 20);
    for (const char *p = buf_text(&a->body); *p; p++)
        if (!(*p == ' ' && p > a->body.data && (p[-1] == ':' || p[-1] == ',')))
            buf_append(&plain, p, 1);
    bool is_there = strstr(buf_text(&plain), has) || strstr(buf_text(&a->body), has);
    buf_release(&plain);
    return is_there;
}

static void wait_for_decision(void)
{
    double until_s = clock_stopwatch_s() + 300;
    struct answer a;

    do {
        a = ask("GET", "/v1/jobs/second/explain", -1, NULL, NULL);
        if (a.status == 200)
            hold_against_schema("explain", route_of("GET", "/v1/jobs/1/explain"), &a);
        answer_release(&a);
        usleep(10000);
    } while (a.status != 200 && clock_stopwatch_s() < until_s);
    ck_assert_msg(a.status == 200, "no decision was recorded in 300 s");
}

TEST(every_answer_is_as_its_schema_says)
{
    bool is_asked[128] = { false };

    for (int i = 0; i < N_DAY; i++) {
        const struct route *r = route_asked(i);
        const char *what = arena_printf(&arena, "%s %s", day[i].method, day[i].path);
        if (strcmp(day[i].path, "/v1/jobs/second/cancel") == 0)
            wait_for_decision();
        struct answer a = ask(day[i].method, day[i].path, -1, day[i].body, day[i].key);
        ck_assert_msg(a.status == day[i].want, "%s: %d\n%.600s", what, a.status, buf_text(&a.body));
        hold_against_schema(what, r, &a);
        ck_assert_msg(!day[i].has || tells(&a, day[i].has), "%s: no '%s' in\n%.2000s", what,
                      day[i].has, buf_text(&a.body));
        answer_release(&a);
        is_asked[r - routes] = true;
    }
    for (int i = 0; i < n_routes; i++)
        ck_assert_msg(is_asked[i] || strcmp(routes[i].id, "streamEvents") == 0,
                      "nobody asked %s %s", routes[i].method, routes[i].path);
}

/* ---- who may ---- */

/* A path that exists: {id} and {name} filled in. */
static const char *path_of(const struct route *r)
{
    const char *brace = strchr(r->path, '{');

    if (!brace)
        return r->path;
    return arena_printf(&arena, "%.*s%s%s", (int)(brace - r->path), r->path,
                        strncmp(brace, "{id}", 4) == 0 ? "0" : "box", strchr(brace, '}') + 1);
}

TIMES(every_route_refuses_callers_below_its_scope, n_routes)
{
    const struct route *r = &routes[_i];

    for (int scope = SCOPE_NONE; scope < (int)r->scope; scope++) {
        struct answer a = ask(r->method, path_of(r), scope, r->body ? "{}" : NULL, NULL);
        int want = scope == SCOPE_NONE ? 401 : 403;
        ck_assert_msg(a.status == want, "%s %s as %s: %d", r->method, r->path,
                      scope_name((enum scope)scope), a.status);
        hold_against_schema(r->path, r, &a);
        answer_release(&a);
    }
}

/* A body that makes no sense gets as far as its check. */
TIMES(and_takes_those_of_its_scope, n_routes)
{
    const struct route *r = &routes[_i];

    if (r->scope == SCOPE_NONE || strcmp(r->id, "streamEvents") == 0)
        return;
    struct answer a = ask(r->method, path_of(r), (int)r->scope, r->body ? "{}" : NULL, NULL);
    ck_assert_msg(a.status != 401 && a.status != 403 && a.status < 500, "%s %s: %d\n%.300s",
                  r->method, r->path, a.status, buf_text(&a.body));
    answer_release(&a);
}

/* After its day job 0 has ended: whoever may change it hears that. */
static const struct {
    const char *name;
    int who, want;
} hands[] = {
    { "its owner", SCOPE_SUBMIT, 409 },
    { "an operator", SCOPE_OPERATE, 409 },
    { "somebody else", STRANGER, 403 },
};

EACH(jobs_are_changed_by_owners_and_operators, hands)
{
    static const char *const what[] = { "cancel", "hold", "release" };

    for (int i = 0; i < 3; i++) {
        const char *path = arena_printf(&arena, "/v1/jobs/first/%s", what[i]);
        struct answer a = ask("POST", path, hands[_i].who, NULL, NULL);
        ck_assert_msg(a.status == hands[_i].want, "%s by %s: %d\n%.300s", path, hands[_i].name,
                      a.status, buf_text(&a.body));
        answer_release(&a);
    }
}

EACH(and_so_are_services, hands)
{
    struct answer a = ask("POST", "/v1/services/web/scale", hands[_i].who, "{\"rate\":1}", NULL);
    ck_assert_msg(a.status == hands[_i].want, "scaled by %s: %d\n%.300s", hands[_i].name, a.status,
                  buf_text(&a.body));
    answer_release(&a);
}

/* ---- events ---- */

/* Enough once it has told of the first job. */
static size_t on_event(char *bytes, size_t size, size_t n, void *self)
{
    struct buf *got = self;

    buf_append(got, bytes, size * n);
    return strstr(buf_text(got), "\n\n") && strstr(buf_text(got), "job_cancelled") ? 0 : size * n;
}

TEST(what_happened_is_told_to_listeners)
{
    CURL *c = curl_easy_init();
    struct buf got;

    buf_init(&got, 1 << 20);
    curl_easy_setopt(c, CURLOPT_URL, "http://gogh/v1/events?after=0&job=first");
    curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, at("sock"));
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_event);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &got);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, 30L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    CURLcode rc = curl_easy_perform(c);
    ck_assert_msg(rc == CURLE_WRITE_ERROR, "%s\n%.1000s", curl_easy_strerror(rc), buf_text(&got));
    ck_assert_ptr_nonnull(strstr(buf_text(&got), "event: job_submitted"));
    ck_assert_ptr_nonnull(strstr(buf_text(&got), "\nid: "));
    ck_assert_ptr_null(strstr(buf_text(&got), "node_added"));
    curl_easy_cleanup(c);
    buf_release(&got);
}
