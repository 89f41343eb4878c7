#include "monitor/servers/scraper.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/loop.h"
#include "monitor/pages/fetch.h"
#include "monitor/sensor.h"

#define SOON_S 0.5    // after the first page that does not come, twice as long

/* A server that is asked. */
struct scraped {
    int job;
    unsigned n;    // which watch of it this is: pages of an older one are dropped
    char *url;
    struct scrape_promise promise;
    double due_s;     // when it is asked next
    int n_failed;     // pages in a row that did not come
    double page_s;    // when the last page that was taken was asked for; NaN: none
    struct scrape_page page;
};

/* Those that are asked together; the worker's in between. */
struct scrape_round {
    struct scraper *scraper;    // NULL: it is gone
    const struct scrape_table *table;
    int n;
    struct asked {
        int job;
        unsigned n;
        char *url;
        double at_s;    // when its page was asked for
        struct err why;
        int rc;
        struct scrape_page page;
    } * asked;    // (n)
};

struct scraper {
    struct loop *loop;
    const struct scrape_table *table;
    double every_s;
    scraper_f *f;
    void *self;
    struct scraped **servers;    // (n_servers) in no order
    int n_servers, cap_servers;
    unsigned n_watches;
    struct scrape_round *under_way;
    struct loop_timer timer;
};

/* ---- on the worker ---- */

static void work(void *self)
{
    struct scrape_round *r = self;
    struct fetch *pages = heap_array((size_t)r->n, sizeof *pages);

    for (int i = 0; i < r->n; i++) {
        pages[i] = (struct fetch){ .url = r->asked[i].url };
        r->asked[i].at_s = clock_stopwatch_s();
    }
    fetch_all(pages, r->n);
    for (int i = 0; i < r->n; i++) {
        struct asked *a = &r->asked[i];

        a->rc = pages[i].rc;
        a->why = pages[i].why;
        if (a->rc == 0)
            a->rc = scrape_parse(r->table, buf_text(&pages[i].text), pages[i].text.len, &a->page);
        if (a->rc == -ENOENT)
            err_fill(&a->why, ENOENT,
                     "%s: nothing that the table of metrics has; name the server's", a->url);
        buf_release(&pages[i].text);
    }
    free(pages);
}

/* ---- back on the loop ---- */

static int find(const struct scraper *s, int job)
{
    for (int i = 0; i < s->n_servers; i++)
        if (s->servers[i]->job == job)
            return i;
    return -1;
}

static void take_page(struct scraper *s, struct scraped *x, const struct asked *a)
{
    const bool is_first = isnan(x->page_s);
    struct served told;

    if (a->rc < 0) {
        (void)s->f(s->self, a->job, NULL, &a->why);
        return;
    }
    scrape_between(is_first ? &a->page : &x->page, is_first ? a->at_s : x->page_s, &a->page,
                   a->at_s, &x->promise, &told);
    if (!s->f(s->self, a->job, &told, NULL) && !is_first)
        return;
    x->page = a->page;
    x->page_s = a->at_s;
}

/* Who has just begun to load is asked soon, then less often: one that hangs keeps a worker. */
static double wait_s(const struct scraper *s, const struct scraped *x)
{
    const double soon_s = SOON_S * exp2(x->n_failed);

    return clock_spread_s(isnan(x->page_s) ? fmin(soon_s, s->every_s) : s->every_s, x->job);
}

static void hear(struct scraper *s, const struct asked *a)
{
    const int at = find(s, a->job);

    if (at < 0 || s->servers[at]->n != a->n)
        return;
    struct scraped *x = s->servers[at];
    take_page(s, x, a);
    x->n_failed = a->rc < 0 ? x->n_failed + 1 : 0;
    x->due_s = clock_stopwatch_s() + wait_s(s, x);
}

static void round_free(struct scrape_round *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->asked[i].url);
    free(r->asked);
    free(r);
}

/* For whoever is due first. */
static void set_timer(struct scraper *s)
{
    double due_s = INFINITY;

    for (int i = 0; i < s->n_servers; i++)
        due_s = fmin(due_s, s->servers[i]->due_s);
    if (s->under_way || isinf(due_s))
        loop_timer_clear(&s->timer);
    else
        loop_timer_set(&s->timer, fmax(due_s - clock_stopwatch_s(), 0));
}

static void done(void *self)
{
    struct scrape_round *r = self;
    struct scraper *s = r->scraper;

    for (int i = 0; i < r->n && s; i++)
        hear(s, &r->asked[i]);
    if (s) {
        s->under_way = NULL;
        set_timer(s);
    }
    round_free(r);
}

static void ask(struct scrape_round *r, const struct scraped *x)
{
    r->asked[r->n++] = (struct asked){ .job = x->job, .n = x->n, .url = heap_text(x->url) };
}

static void on_timer(void *self)
{
    struct scraper *s = self;
    struct scrape_round *r = heap_array(1, sizeof *r);
    const double now_s = clock_stopwatch_s();

    *r = (struct scrape_round){ .scraper = s, .table = s->table };
    r->asked = heap_array((size_t)s->n_servers, sizeof *r->asked);
    for (int i = 0; i < s->n_servers; i++)
        if (s->servers[i]->due_s <= now_s)
            ask(r, s->servers[i]);
    if (r->n > 0) {
        s->under_way = r;
        loop_work(s->loop, "servers' pages", work, done, r);
    } else {
        round_free(r);
        set_timer(s);
    }
}

/* ---- who is asked ---- */

void scraper_watch(struct scraper *s, int job, const char *url, const struct scrape_promise *p)
{
    struct scraped *x = heap_array(1, sizeof *x);

    scraper_leave(s, job);
    *x = (struct scraped){
        .job = job, .n = s->n_watches++, .url = heap_text(url), .promise = *p, .page_s = NAN
    };
    GROW(s->servers, s->n_servers, s->cap_servers);
    s->servers[s->n_servers++] = x;
    set_timer(s);
}

void scraper_leave(struct scraper *s, int job)
{
    const int at = find(s, job);

    if (at < 0)
        return;
    free(s->servers[at]->url);
    free(s->servers[at]);
    s->servers[at] = s->servers[--s->n_servers];
}

int scraper_create(struct loop *l, const struct scrape_table *t, double every_s, scraper_f *f,
                   void *self, struct scraper **out, struct err *e)
{
    if (fetch_begin() < 0)
        return err_set(e, ENOMEM, "pages of servers: libcurl does not start");
    struct scraper *s = heap_array(1, sizeof *s);
    *s = (struct scraper){ .loop = l, .table = t, .every_s = every_s, .f = f, .self = self };
    loop_timer_init(&s->timer, l, "servers' pages", on_timer, s);
    *out = s;
    return 0;
}

void scraper_destroy(struct scraper *s)
{
    if (!s)
        return;
    loop_timer_clear(&s->timer);
    if (s->under_way)
        s->under_way->scraper = NULL;
    while (s->n_servers > 0)
        scraper_leave(s, s->servers[0]->job);
    free(s->servers);
    free(s);
}
